"""Views: tensors that share another's storage, and what base and version they note.

Owns nothing. A view's tensor is made as ``path.view_of`` makes it: `base` is
never itself a view, `seen` the storage's version (of a base: how many views there have been).
"""

from __future__ import annotations

from antorcha.lang.native import i64, local, native, ptr, raw, ref
from antorcha.runtime.call.native.tensors import TensorObject, is_whole, new_tensor
from antorcha.runtime.call.node import CONSTANT
from antorcha.runtime.cpython import (
    FALSE,
    NONE,
    Py_DecRef,
    Py_IncRef,
    failed,
    int_object,
    int_type,
    int_value,
    new_reference,
    type_of,
)
from antorcha.runtime.memory.storage import StorageObject

MANY = 2  # views of a base are not counted further: nobody asks


@native
def put_number(field: ptr[raw], value: i64) -> bool:
    """Puts a number into a field, whose old value it drops; False with an exception."""
    number = int_object(value)
    if number is None:
        return False
    old = field[0]
    field[0] = number
    Py_DecRef(old)
    return True


@native
def is_count(o: raw) -> bool:
    return o is None or type_of(o) == raw(int_type)


@native
def has_counts(a: raw) -> bool:
    """Are the fields of a tensor and of its base such that a view of it can be counted?"""
    x = ptr[TensorObject](a)
    if not is_count(x.seen) or x.base is None:
        return False
    if x.base == raw(NONE):
        return True
    return is_whole(x.base) and is_count(ptr[TensorObject](x.base).seen)


@native
def constant_mark(x: ptr[TensorObject], base: raw, version: i64) -> i64:
    """`seen` of a view that is made where nothing is recorded."""
    if x.rg != raw(FALSE) or ptr[TensorObject](base).rg != raw(FALSE):
        return CONSTANT
    return ~version


@native
def new_view(a: raw, layout: raw, delta: i64, recorded: bool) -> raw:
    """A view of a tensor that `has_counts`, counted at its base, outside of any graph."""
    return view_of(a, ptr[TensorObject](a), layout, delta, recorded)


@native
def new_views(
    a: raw, layouts: ptr[raw], deltas: ptr[i64], count: i64, recorded: bool, outs: ptr[raw]
) -> bool:  # fmt: skip
    """Several views of a tensor, as it is now: making one may run code that gives it other memory.
    False with an exception."""
    if count == 1:
        outs[0] = new_view(a, layouts[0], deltas[0], recorded)
        return outs[0] is not None
    now = local(TensorObject)
    x = ptr[TensorObject](a)
    now.base = new_reference(x.base)
    now.offset = new_reference(x.offset)
    now.rg = x.rg  # (False or True: they stay)
    now.storage = new_reference(x.storage)
    ok = True
    for k in range(count):
        now.seen = x.seen
        outs[k] = None
        if ok:
            outs[k] = view_of(a, now, layouts[k], deltas[k], recorded)
            ok = outs[k] is not None
    Py_DecRef(now.base)
    Py_DecRef(now.offset)
    Py_DecRef(now.storage)
    return ok


@native
def view_of(a: raw, x: ptr[TensorObject], layout: raw, delta: i64, recorded: bool) -> raw:
    """The same of a tensor whose fields are, or were, these."""
    base = x.base
    version = ptr[StorageObject](x.storage).version
    seen = version
    if base == raw(NONE):
        base = a
    elif x.seen is not None:
        own = int_value(x.seen)
        if own < 0:
            seen = own
    views = i64(0)
    if ptr[TensorObject](base).seen is not None:
        views = int_value(ptr[TensorObject](base).seen)
    start = int_value(x.offset)
    offset = start + delta
    if (start == -1 or views == -1 or seen == -1) and failed():
        return None
    if not recorded and version >= 0:  # (of an inference tensor it is below 0)
        seen = constant_mark(x, base, version)
    if views < MANY and not put_number(ref(ptr[TensorObject](base).seen), views + 1):
        return None
    Py_IncRef(base)  # before anything is allocated, which may run any code
    Py_IncRef(x.storage)
    result = new_tensor(layout, x.storage)
    if result is None:
        Py_DecRef(base)
        return result
    t = ptr[TensorObject](result)
    Py_DecRef(t.base)
    t.base = base
    if not put_number(ref(t.offset), offset) or not put_number(ref(t.seen), seen):
        Py_DecRef(result)
        return None
    return result
