"""Indexing: ``x[...]`` and ``x[...] = value``.

Ints, slices, None and ``...`` make one view, whose plan is found by (layout, index): ``getitem``
does no more than that when the plan is there. Everything else goes through ``indexing.plan_index``:
the basic part of the index makes a view, and the index tensors are looked up in the view.
"""

from __future__ import annotations

from typing import Any

from antorcha.core import dtypes, modes
from antorcha.core.device import CPU
from antorcha.core.hooks import hooks
from antorcha.core.indexing import as_integer, plan_index
from antorcha.core.lazy import lazy, np
from antorcha.errors import ArgumentError, DeviceError
from antorcha.ops.advanced import mask_indices
from antorcha.ops.kinds.record import T
from antorcha.runtime.call.plan import Plan
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.subclass import asking

tensor_create = lazy("antorcha.tensor.create")
arrays = lazy("antorcha.runtime.memory.arrays")
_SIMPLE = {int, type(None), type(Ellipsis)}


# ------------------------------------------------------------------------------------- reading
def getitem(self: Tensor, index: Any) -> Any:
    """The elements at ``index``: a view for ints, slices, None and ``...``, else a copy."""
    if type(index) is Tensor and index._layout.ndim:
        return gather_all(self, index)
    basic = basic_key(index)
    return gather_all(self, index) if basic is None else T.index_view(self, basic)


def plan_of_view(self: Tensor, index: Any) -> Plan | None:
    """The plan of a view that ``self[index]`` has made."""
    basic = basic_key(index)
    return None if basic is None else T.index_view.plans.get((self._layout, basic))


def basic_key(index: Any) -> tuple[Any, ...] | None:
    """The index as a key that says all of it, if it makes a view."""
    items = index if type(index) is tuple else (index,)
    key: list[Any] = []
    for item in items:
        if type(item) in _SIMPLE:
            key.append(item)
        elif type(item) is slice:
            key.append((slice, _bound(item.start), _bound(item.stop), _bound(item.step)))
        else:
            integer = as_integer(item)
            if integer is None:
                return None
            key.append(integer)
    return tuple(key)


def _bound(value: Any) -> int | None:
    if value is None or type(value) is int:
        return value
    try:
        return int(value.__index__())
    except AttributeError:
        raise ArgumentError(
            "slice indices must be integers or None or have an __index__ method, not "
            f"{type(value).__name__}"
        ) from None


def gather_all(self: Tensor, index: Any) -> Tensor:
    """``self[index]`` with index tensors, lists or masks among the items."""
    if isinstance(index, Tensor):
        layout = index._layout
        if (
            layout.dtype is dtypes.int64
            and self._layout.ndim
            and layout.device is self._layout.device
        ):
            rows: Tensor = T.index_at(self, [index], (0,))
            return rows
        if selects(self, index):
            found: Tensor = T.selected(self, index)
            return found
    if type(index) is list and index and type(index[0]) is int and arrays.kind_of(index):
        return gather_all(self, as_index(index, self))
    view, indices, dims = apart(self, index)
    if not indices:  # a list that stands for a tuple of ints, slices, None and ...
        return view
    found = T.index_at(view, indices, dims)
    return found


def selects(self: Tensor, mask: Tensor) -> bool:
    """Is this a mask over the whole tensor, and nothing to be recorded (by another node's name)?
    Then its elements are taken at once, without a list of their places."""
    layout = mask._layout
    if layout.dtype is not dtypes.bool_ or layout.shape != self._layout.shape or not layout.ndim:
        return False
    recorded = self._rg or (self._base is not None and self._base._rg)
    return layout.device is self._layout.device and not recorded


def apart(self: Tensor, index: Any) -> tuple[Tensor, list[Tensor], tuple[int, ...]]:
    """The view that the basic part of the index makes, and the index tensors with their dims."""
    layout = self._layout
    plan = plan_index(layout.shape, layout.strides, 0, index)
    view = self
    for name, *args in plan.steps:
        view = getattr(T, name)(view, *args)
    indices: list[Tensor] = []
    dims: list[int] = []
    for each in plan.advanced:
        tensor = as_index(each.index, self)
        if each.is_mask:
            sizes = tuple(view._layout.shape[each.dim : each.dim + each.span])
            indices += mask_indices(tensor, sizes, each.dim)
        else:
            indices.append(tensor)
        dims += range(each.dim, each.dim + each.span)
    return view, indices, tuple(dims)


def as_index(item: Any, like: Tensor) -> Tensor:
    """An index as a tensor beside the one that it indexes."""
    if type(item) is list and arrays.kind_of(item) == arrays.INTS:
        item = tensor_create.tensor(item)
    elif not isinstance(item, Tensor):
        array = np.asarray(item)
        item = tensor_create.tensor(array.astype(np.int64) if array.dtype.kind in "iu" else array)
    elif item._layout.device not in (CPU, like._layout.device):
        raise DeviceError(
            "indices should be either on cpu or on the same device as the indexed tensor "
            f"({like._layout.device}), not on {item._layout.device}"
        )
    moved: Tensor = item
    if item._layout.device is not like._layout.device:
        moved = item.to(like._layout.device)
    return moved


# ------------------------------------------------------------------------------------- writing
def setitem(self: Tensor, index: Any, value: Any) -> None:
    """Writes a number, tensor or array, broadcast, to the elements at ``index``."""
    if not isinstance(value, Tensor):
        value = assignable(value, self)
    basic = basic_key(index)
    if basic is None:
        put_all(self, index, value)
        return
    target = self
    if index is not Ellipsis:  # (machine code makes such views at any size)
        target = T.index_view(self, basic) if modes.subclasses else self[index]
    if isinstance(value, Tensor):
        T.copy_(target, trimmed(value, target._layout.ndim))
    else:
        T.fill_(target, value)


def assignable(value: Any, like: Tensor) -> Any:
    if isinstance(value, (bool, int, float, complex)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return tensor_create.tensor(value).to(like._layout.dtype)
    raise ArgumentError(
        f"can't assign a {type(value).__name__} to a {like._layout.dtype} tensor of shape "
        f"{tuple(like._layout.shape)}: assign a number or a tensor, e.g. torch.tensor(value)"
    )


def trimmed(value: Tensor, ndim: int) -> Tensor:
    """Without the dims of size 1 in front that the target does not have."""
    shape = value._layout.shape
    extra = len(shape) - ndim
    if extra <= 0 or any(n != 1 for n in shape[:extra]):
        return value
    return T.reshape(value, tuple(shape[extra:]))  # type: ignore[no-any-return]


def put_all(self: Tensor, index: Any, value: Any) -> None:
    """``self[index] = value`` with index tensors, lists or masks among the items."""
    layout = self._layout
    if type(value) in (bool, int, float) and whole_mask(self, index):
        shape = index._layout.shape
        wide = T.reshape(index, (*shape, *[1] * (layout.ndim - len(shape))))
        T.masked_fill_(self, wide, value)
        return
    view, indices, dims = apart(self, index)
    if not indices:
        view[...] = value
        return
    if not isinstance(value, Tensor):
        check_number(value, layout)
        value = T.full_layout((), value, layout.dtype, layout.device)
    T.index_put_at_(view, value, indices, dims)


def check_number(value: Any, layout: Any) -> None:
    if isinstance(value, complex) and layout.dtype.kind != "c":
        raise ArgumentError(
            f"can't assign a complex number to a {layout.dtype} tensor without losing its "
            "imaginary part"
        )


def whole_mask(self: Tensor, index: Any) -> bool:
    """Is the index one bool tensor over the leading dims?"""
    if not isinstance(index, Tensor) or index._layout.dtype.kind != "b":
        return False
    shape = index._layout.shape
    return bool(shape) and tuple(shape) == tuple(self._layout.shape[: len(shape)])


def bind() -> None:
    getitem.__name__, setitem.__name__ = "__getitem__", "__setitem__"
    hooks.plan_of_view = plan_of_view
    setattr(Tensor, "__getitem__", asking(getitem, "__getitem__"))  # noqa: B010
    setattr(Tensor, "__setitem__", asking(setitem, "__setitem__"))  # noqa: B010
