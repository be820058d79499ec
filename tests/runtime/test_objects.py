"""Objects made natively are what object.__new__ and assignments would have made."""

import copy
import gc
import subprocess
import sys
import weakref

import pytest

import antorcha as torch
from antorcha.errors import ArgumentError
from antorcha.runtime import objects
from antorcha.runtime.call.node import FIELDS, Node
from antorcha.runtime.tensor import PLAIN, Tensor, bare


class Base:
    __slots__ = ("__dict__", "__weakref__", "a", "b")


class Derived(Base):
    __slots__ = ("c",)


class Layouts:
    basicsize = type.__dict__["__basicsize__"]  # a member of another kind


MAKERS = [objects.native_maker, objects.python_maker] if objects.NATIVE else [objects.python_maker]


@pytest.mark.parametrize("maker", MAKERS)
def test_fields_and_references(maker):
    mark, value = object(), [1, 2]
    make = maker(Derived, ("c", "a"), {"b": mark})
    before = sys.getrefcount(value), sys.getrefcount(mark), sys.getrefcount(Derived)
    many = [make(value, 7) for _ in range(100)]
    assert all(m.c is value and m.a == 7 and m.b is mark for m in many)
    assert type(many[0]) is Derived
    assert gc.is_tracked(many[0])
    many[0].extra = 1
    assert many[0].__dict__ == {"extra": 1}
    assert many[1].__dict__ == {}
    seen = weakref.ref(many[2])
    many.clear()
    assert seen() is None
    assert (sys.getrefcount(value), sys.getrefcount(mark), sys.getrefcount(Derived)) == before


@pytest.mark.parametrize("maker", MAKERS)
def test_cycles_are_collected(maker):
    make = maker(Derived, ("a", "b", "c"), {})
    made = make(None, 1, 2)
    made.a = made
    seen = weakref.ref(made)
    del made
    gc.collect()
    assert seen() is None


def test_wrong_use():
    if objects.NATIVE:
        make = objects.native_maker(Derived, ("a", "b"), {"c": 1})
        with pytest.raises(ArgumentError, match="takes 2 fields"):
            make(1)
        with pytest.raises(KeyError):
            objects.field_offset(Derived, "a")  # a slot of Base
        with pytest.raises(ArgumentError, match="is not a slot"):
            objects.field_offset(Layouts, "basicsize")


def test_results_are_as_bare_makes_them():
    x = torch.rand(3)
    y = x + x
    y = x + x  # by its plan's run
    other = bare(x._layout, x._storage)
    for name in Tensor.__slots__:
        if name in ("__dict__", "__weakref__", "_layout", "_storage"):
            continue
        if name == "_seen":
            assert not hasattr(y, name)
            continue
        assert getattr(y, name) is getattr(other, name)
    assert set(PLAIN) <= set(Tensor.__slots__)
    y.note = "mine"
    assert copy.copy(y).tolist() == y.tolist()


def test_nodes_have_every_field():
    x = torch.rand(3, requires_grad=True)
    y = x * x
    y = x * 2.0
    node = y._fn
    assert all(hasattr(node, name) for name in Node.__slots__ if name != "__weakref__")
    assert set(FIELDS) | {"op", "hooks", "stack", "__weakref__"} == set(Node.__slots__)
    assert type(node) is Node
    assert type(y.grad_fn).__name__ == "MulBackward0"  # named once somebody looks
    assert y.grad_fn is node


PLAIN_PYTHON = """
import antorcha.runtime.objects as objects
objects.NATIVE, objects.maker = False, objects.python_maker
import antorcha as torch
x = torch.tensor([1.0, 2.0], requires_grad=True)
for _ in range(3):
    x.grad = None
    y = (x * x + x.view(2, 1).sum(1)) / 2
    values, places = y.max(0)
    (y.sum() + values).backward()
print(x.grad.tolist(), type(y.grad_fn).__name__, places.item())
"""


def test_the_same_where_no_object_can_be_made_natively():
    done = subprocess.run(
        [sys.executable, "-c", PLAIN_PYTHON], capture_output=True, text=True, check=False
    )
    assert done.stdout == "[1.5, 5.0] DivBackward0 1\n", done.stderr
