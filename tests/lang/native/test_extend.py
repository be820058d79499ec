"""What others build on: intrinsics of their own, builtins for CPython, exported functions."""

# ruff: noqa: F821 (annotations name compile-time parameters)

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest

from antorcha.lang.native import (
    METH_FASTCALL,
    METH_NOARGS,
    METH_O,
    Extern,
    ExternData,
    Intrinsic,
    NativeError,
    V,
    address,
    builtin,
    cstr,
    f32,
    f64,
    first,
    func,
    i64,
    inline,
    interpreted,
    intrinsic,
    local,
    native,
    ptr,
    raw,
    static,
    target,
    u8,
    vec,
    vload,
    void,
    vstore,
)


class Graph:
    """A small expression graph: what an op's description looks like to the compiler."""

    def __init__(self, op: str, *args: object) -> None:
        self.op, self.args = op, args

    def __native_key__(self) -> str:
        args = (a.__native_key__() if isinstance(a, Graph) else repr(a) for a in self.args)
        return f"{self.op}({','.join(args)})"

    def plain(self, values):
        if self.op == "input":
            return values[self.args[0]]
        a, *rest = (x.plain(values) if isinstance(x, Graph) else x for x in self.args)
        if self.op == "relu":
            return plain_relu(a)
        return {"add": lambda x, y: x + y, "mul": lambda x, y: x * y}[self.op](a, rest[0])


def plain_relu(a):
    return np.where(a > 0, a, a * 0)


@inline
def relu(x):
    return max(x, 0.0)


@intrinsic(lambda graph, values: graph.plain(values))
def evaluate(g, node, graph, values):
    """The value of an expression graph, given those of its inputs."""
    if graph.op == "input":
        return values[graph.args[0]]
    args = [evaluate.emit(g, node, a, values) if isinstance(a, Graph) else a for a in graph.args]
    if graph.op == "relu":
        return g.call_inline(relu, args, {}, node)
    return g.binary(graph.op, *args, node)


@native(noalias=True)
def pointwise(out: ptr[T], a: ptr[T], b: ptr[T], n: i64, *, T, E, W=8) -> void:
    for i in range(0, n, W):
        few = first(W, n - i)
        x = [vload(a + i, W, few), vload(b + i, W, few)]
        vstore(out + i, evaluate(E, x), few)


X, Y = Graph("input", 0), Graph("input", 1)


@pytest.mark.parametrize("ty", [f32, f64])
def test_an_expression_graph_inside_a_template(ty):
    graph = Graph("relu", Graph("add", Graph("mul", X, 2.0), Y))
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(21).astype(ty.np) for _ in range(2))
    compiled, plain = np.zeros_like(a), np.zeros_like(a)
    pointwise(compiled, a, b, 21, T=ty, E=graph)
    with interpreted():
        pointwise(plain, a, b, 21, T=ty, E=graph)
    np.testing.assert_array_equal(compiled, np.maximum(a * 2 + b, 0).astype(ty.np))
    np.testing.assert_array_equal(compiled, plain)
    same = pointwise.spec(T=ty, E=Graph("relu", Graph("add", Graph("mul", X, 2.0), Y)))
    other = pointwise.spec(T=ty, E=Graph("relu", Graph("add", Graph("mul", X, 3.0), Y)))
    assert same is pointwise.spec(T=ty, E=graph)
    assert other.key != same.key


def emit_all(g, node, x):
    """Uses every stable name of the extension interface once."""
    x = g.rt(x, node)
    ty = x.ty
    two = g.const(2, ty, node)
    a = g.binary("mul", x, two, node)
    mask = g.compare("lt", a, x, node)
    a = g.choose(mask, g.negate(a, node), a)
    b = g.cast(f64, a, node)
    b = g.overloaded("sqrt", f64, b)
    c = g.cast(ty, b, node)
    c, d = g.same(c, 3, node)
    e = g.minmax(True, g.absolute(c, node), d, node)
    e = g.invert(e, node)
    spot = g.alloca(ty, 2, 16)
    g.store(e, spot)
    p = g.gep(V(ptr[ty], spot), 0, node)
    f = g.load(ty, p.ref)
    h = g.v(ty, f"add {ty.ll} {f.ref}, {x.ref}")
    h = V(ty, g.op(f"sub {ty.ll} {h.ref}, {two.ref}"))
    bits = g.bitcast(f64, h, node)
    h = g.bitcast(ty, bits, node)
    h = g.intr(f"llvm.smax.{ty.ll}", ty, [h, g.const(-5, ty)])
    h = g.call(abs, [h], {}, node)
    wide = g.splat(vec[ty, 4], h)
    assert g.target is target()
    return h, wide


uses_all = Intrinsic(emit_all, name="uses_all")


@native
def all_names(x: i64) -> i64:
    h, wide = uses_all(x)
    return h + wide[2]


def test_the_extension_interface():
    assert all_names(10) == all_names.spec()(10)
    with interpreted(), pytest.raises(NativeError, match="no plain-Python side"):
        all_names(10)


@native
def refusing(x: i64) -> i64:
    return refuses(x)


refuses = Intrinsic(lambda g, node, x: g.fail(node, "no such thing"), name="refuses")


def test_an_intrinsic_can_refuse():
    with pytest.raises(NativeError, match="no such thing\n  File"):
        refusing(1)


# ---- CPython
PyLong_AsLongLong = Extern("PyLong_AsLongLong", i64, raw)
PyLong_FromLongLong = Extern("PyLong_FromLongLong", raw, i64)
PyErr_SetString = Extern("PyErr_SetString", void, raw, raw)
PyErr_Occurred = Extern("PyErr_Occurred", raw)
PyExc_ValueError = ExternData("PyExc_ValueError", raw)
Py_IncRef = Extern("Py_IncRef", void, raw)


@native
def py_sum(me: raw, args: ptr[raw], count: i64) -> raw:
    total = 0
    for k in range(count):
        x = PyLong_AsLongLong(args[k])
        if x == -1 and PyErr_Occurred() is not None:
            return None
        total += x
    if total < 0:
        PyErr_SetString(PyExc_ValueError[0], cstr("the sum is negative"))
        return None
    return PyLong_FromLongLong(total)


@native
def py_self(me: raw, arg: raw) -> raw:
    Py_IncRef(me)
    return me


def test_builtins():
    total = builtin("total", py_sum.spec().addr, METH_FASTCALL, doc="The sum.")
    assert total(1, 2, 40) == 43
    assert (total.__name__, total.__doc__) == ("total", "The sum.")
    with pytest.raises(ValueError, match="the sum is negative"):
        total(-5)
    with pytest.raises(TypeError):
        total("x")
    owner = [1]
    before = sys.getrefcount(owner)
    me = builtin("me", py_self.spec().addr, METH_O, owner)
    assert me(0) is owner
    assert me.__self__ is owner
    assert builtin("me0", py_self.spec().addr, METH_NOARGS, owner)() is owner
    assert sys.getrefcount(owner) == before + 1
    del me
    gc.collect()
    assert sys.getrefcount(owner) == before


# ---- functions that others link to, or call by address
@native(export=True)
def exported(x: i64, *, k) -> i64:
    return x * k


@native
def links(x: i64) -> i64:
    return exported(x, k=3) + exported(x, k=5) + exported(1, k=3)


@native
def apply(f: func[i64, i64], x: i64) -> i64:
    return f(x)


@native
def applies(x: i64) -> i64:
    return apply(address(exported, k=7), x) + apply(local_step, x)


@native
def local_step(x: i64) -> i64:
    if x > 100:
        return x
    return local_step(x * 2)


def test_linked_and_called_by_address():
    assert links(10) == 83
    assert applies(10) == 70 + 160
    assert apply(local_step, 3) == 192
    assert apply(exported.spec(k=2), 3) == 6
    with interpreted():
        assert (links(10), applies(10), apply(local_step, 3)) == (83, 230, 192)


llvm_rotate = Extern("llvm.fshl.i64", i64, i64, i64, i64)


@native(level="O2")
def rotates(x: i64) -> i64:
    total = 0
    for k in static(range(3)):
        total += llvm_rotate(x, x, k)
    return total


def test_an_llvm_intrinsic_by_name():
    assert rotates(1) == 7


@native(level="none.0")
def unoptimised(x: ptr[u8], n: i64) -> i64:
    total = 0
    for k in range(n):
        total += i64(x[k])
    return total


def test_other_levels():
    assert unoptimised(np.arange(10, dtype=np.uint8), 10) == 45


@native
def awkward(entry: i64, a1: i64, a2: i64, L1: i64, L2: i64) -> i64:
    """Parameters named as the compiler might name its own blocks and memory."""
    room = local(i64, 2)
    room[0] = entry
    if a1 > a2:
        room[1] = L1
    else:
        room[1] = L2
    return room[0] + room[1]


def test_parameters_may_have_any_name():
    assert awkward(1, 2, 1, 10, 20) == 11
    assert awkward(1, 1, 2, 10, 20) == 21
