"""Index ops: values, gradients, refusals; and their native kernels against the references."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.devices.cpu.gather import gather_kernel, scatter_kernel
from antorcha.devices.cpu.gather_walk import bad_index
from antorcha.devices.cpu.native import NativeKernel
from antorcha.devices.numpy_semantics.gather import compute_gather, compute_scatter
from antorcha.lang.kernels import Gather
from antorcha.lang.native import interpreted
from antorcha.ops.kinds.record import REGISTRY
from tests.ops.parity import compare, data, needs_torch
from tests.ops.records import tensors_in

# x, y: (3, 4), c: (2, 3, 4), s: (); L is torch.tensor; J a (2, 4) index of 3
CASES = """
x.index_select(0, L([2, 0, 0]))|x.t().index_select(1, L([2, 1]))
c.index_select(-1, L([2, 1]).int())
x.index_select(0, L(1))|s.index_select(0, L([0]))|x.index_add(0, L([2, 0]), y[:2])
x.index_add(1, L([2, 0, 2]), y[:, :3])|x.index_add(0, L([1, 1]), x[:2], alpha=2)
x.t().index_add(0, L([1, 1]), y.t()[:2])|x.index_copy(0, L([2, 0]), y[:2])
x.index_fill(1, L([0, -1]), 3.5)|x.index_fill(1, L([0]), s)|x.gather(0, L([[0, 1, 2, 0]]))
x.gather(1, L([[0, 1], [3, 3], [0, 0]]))|x.t().gather(0, L([[0, 1], [3, 3]]))|s.gather(0, L(0))
x.scatter(0, L([[0, 1, 2, 0]]), y[:1])|x.scatter(1, L([[0, 1], [3, 2]]), y[:2, :2])
x.scatter(1, L([[0, 1], [3, 2]]), 2.5)|x.scatter(1, L([[0, 1], [3, 2]]), 2)
x.scatter_add(0, J, y[:2])
x.scatter_reduce(0, J, y[:2], 'sum')|x.scatter_reduce(0, J, y[:2], 'prod')
x.scatter_reduce(0, J, y[:2], 'mean')|x.scatter_reduce(0, J, y[:2], 'amax')
x.scatter_reduce(0, J, y[:2], 'amin', include_self=False)|x.take(L([[0, 5], [-1, 5]]))
x.scatter_reduce(0, J, y[:2], 'mean', include_self=False)|x.t().take(L([0, 5]))
x.scatter_reduce(0, J, y[:2], 'prod', include_self=False)|x.take_along_dim(L([[1, -1]]), 1)
x.take_along_dim(L([1, 3]))|x.put(L([0, 5]), y[0, :2])|x.put(L([0, 5, 5]), y[0, :3], True)
x.masked_select(M)|x.masked_select(M[0])|x.masked_scatter(M, y)
torch.embedding(x, L([[0, 2], [1, 1]]))
torch.embedding(x, L([0, 2, 2]), 2)|x.index_put((L([0, 2]),), y[0])|x.index_put((M,), s)
x.index_put((L([0, 2]), L([1, 1])), y[0, :2])|x.index_put((L([0, 0]),), y[:2], True)
x.clone().index_put_((L([0, 0]),), y[:2], True)
x.clone().scatter_(1, L([[0, 1], [3, 2]]), y[:2, :2])
x.clone().t().index_add_(0, L([1, 1]), y.t()[:2])
x.clone().scatter_(0, J[:1], 1, reduce='multiply')
x.clone().index_fill_(0, L([1]), 2)|M.nonzero()|M.nonzero(as_tuple=True)|torch.argwhere(M)
torch.bincount(L([0, 3, 3]))|torch.bincount(L([0, 3, 3]), minlength=6)
torch.searchsorted(L([1., 2., 3.]), L([[0.5, 2.], [2.5, 9.]]))
torch.searchsorted(L([1., 2., 3.]), 2.0)
torch.searchsorted(L([1., 2., 3.]), L([[0.5, 2.], [2.5, 9.]]), right=True)
torch.searchsorted(L([[1., 2.], [4., 5.]]), L([[0.5, 2.], [5, 9.]]), side='right', out_int32=True)
torch.bucketize(L([1., 2.5]), L([1., 2., 3.]))
torch.bucketize(L([1., 2.5]), L([1., 2., 3.]), right=True)
torch.isin(L([1, 2, 3]), L([2, 5]))|torch.isin(L([1, 2, 3]), 2, invert=True)
torch.unique(L([3, 1, 2, 3]))
torch.unique(L([[3, 1], [2, 3]]), return_inverse=True, return_counts=True)
torch.unique(L([[3, 1], [3, 1], [0, 1]]), dim=0, return_inverse=True, return_counts=True)
torch.unique(L([[3, 1], [3, 1], [0, 1]]), dim=1, return_counts=True)
torch.unique_consecutive(L([1, 1, 2, 2, 1]), return_inverse=True, return_counts=True)
torch.unique_consecutive(L([[1, 1], [1, 1], [2, 1]]), dim=0)|x.repeat_interleave(L([0, 2, 1]), 0)
x.index_select(0, L([3]))|x.index_select(0, L([-1]))|x.index_select(0, L([1.]))
x.gather(0, L([[3]]))
x.gather(0, L([[-1]]))|x.gather(0, L([0]))|x.index_add(0, L([3]), y[:1])
x.index_copy(0, L([-1]), y[:1])
x.index_fill(0, L([4]), 1)|x.take(L([12]))|x.scatter(0, L([[3]]), 1.)|x.scatter_add(0, L([[5]]), y)
torch.embedding(x, L([3]))|x.index_put((L([9]),), s)|x.index_add(0, L([0]), y[:1].half())
x.scatter_reduce(0, J, y[:2], 'most')|torch.bincount(L([-1]))|torch.bincount(x)
x.masked_select(L([1, 0, 1, 0]))
""".replace("\n", "|").strip("|").split("|")  # fmt: skip


@needs_torch
@pytest.mark.parametrize("text", CASES)
def test_as_pytorch(text: str) -> None:
    mask = data(3, 4) > 0

    def call(torch: Any, x: Any, y: Any, c: Any, s: Any) -> Any:
        names = {"L": torch.tensor, "M": torch.tensor(mask), "torch": torch}
        names["J"] = torch.tensor([[0, 1, 2, 0], [0, 1, 1, 1]])
        return eval(text, {**names, "x": x, "y": y, "c": c, "s": s})

    arrays = [data(3, 4), data(3, 4, seed=1), data(2, 3, 4), data()]
    compare(call, *arrays, dtype="float64", grad=0 if "reduce=" in text else 2, strides=True)
    for dtype in ("int64", "bfloat16", "complex64"):
        compare(call, *arrays, dtype=dtype, strides=True)


def test_as_numpy() -> None:
    a = np.arange(12.0).reshape(3, 4)
    x, i = antorcha.tensor(a), antorcha.tensor([2, 0, 2])
    assert x.index_select(0, i).tolist() == a[[2, 0, 2]].tolist()
    at = np.array([[0, 1, 2, 1], [2, 2, 0, 0]])
    assert x.gather(0, antorcha.tensor(at)).tolist() == np.take_along_axis(a, at, 0).tolist()
    added = a.copy()
    np.add.at(added, [2, 0, 2], a)
    assert x.index_add(0, i, x).tolist() == added.tolist()
    values, counts = np.unique([3, 1, 3], return_counts=True)
    found = antorcha.unique(antorcha.tensor([3, 1, 3]), return_counts=True)
    assert [v.tolist() for v in found] == [values.tolist(), counts.tolist()]


def test_nothing_is_written_when_an_index_is_bad() -> None:
    x = antorcha.zeros(3, 2)
    for write in (
        lambda: x.index_add_(0, antorcha.tensor([0, 3]), antorcha.ones(2, 2)),
        lambda: x.index_copy_(0, antorcha.tensor([0, 3]), antorcha.ones(2, 2)),
        lambda: x.scatter_(0, antorcha.tensor([[0, 0], [0, 3]]), 1.0),
        lambda: x.scatter_add_(0, antorcha.tensor([[0, 0], [0, 3]]), antorcha.ones(2, 2)),
        lambda: x.index_put_((antorcha.tensor([0, 3]),), antorcha.tensor(1.0)),
    ):
        with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size"):
            write()
        assert x.sum().item() == 0


# ---------------------------------------------------------------------- kernels against references
def run_native(what: NativeKernel, arrays: list[Any]) -> int:
    bufs = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
    desc = (ctypes.c_int64 * len(what.desc))(*what.desc)
    address = what.fn.spec(**what.static).addr
    kernel = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(address)
    return int(kernel(ctypes.addressof(bufs), ctypes.addressof(desc)))


def described(name: str, values: list[Any]) -> tuple[NativeKernel, Any]:
    """The kernel of what an op plans for contiguous operands, and the reference."""
    lays = [v._layout if isinstance(v, antorcha.Tensor) else v for v in values]
    lays = [tuple([t._layout for t in v]) if isinstance(v, list) else v for v in lays]
    planned = REGISTRY[name].apply_fn(lays)
    what, ins = planned.what, planned.ins or [t._layout for t in tensors_in(values)]
    if isinstance(what, Gather):
        return gather_kernel(what, planned.outs, ins), compute_gather(what, planned.outs)
    return scatter_kernel(what, planned.outs, ins), compute_scatter(what, planned.outs)


X, Y = data(5, 6, seed=3), data(5, 6, seed=4)
I = np.array([4, 0, 2, 0, 1])
G = np.random.default_rng(0).integers(0, 5, (5, 6))
KERNELS: dict[str, list[Any]] = {
    "index_select": [X, 0, I], "index_add": [X, 0, I, Y, 1], "index_copy": [X, 0, I[:3], Y[:3]],
    "gather": [X, 0, G, False], "scatter_add": [X, 0, G, Y], "scatter_src": [X, 1, G, Y],
    "index_at": [X, [I, I - 5], (0, 1)], "index_put_at": [X, Y[:, 0], [I, I], (0, 1), True],
    "embedding": [X, I, -1, False, False], "embedding_add": [X, Y, I, 2],
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8", "bool"])
@pytest.mark.parametrize("name", list(KERNELS))
def test_native_kernels(name: str, dtype: str) -> None:
    def give(value: Any) -> Any:
        if isinstance(value, list):
            return [give(v) for v in value]
        if not isinstance(value, np.ndarray):
            return value
        return antorcha.tensor(value if value.dtype.kind == "i" else (value * 2).astype(dtype))

    values = [give(v) for v in KERNELS[name]]
    what, reference = described(name, values)
    arrays = [t.numpy() for t in tensors_in(values)]
    wanted = np.ascontiguousarray(reference(arrays)[0])
    out = arrays[0].copy() if what.preload else np.zeros_like(wanted)
    assert run_native(what, [out, *arrays]) == 0
    np.testing.assert_allclose(out, wanted, rtol=1e-2 if dtype == "float16" else 1e-6)


@pytest.mark.parametrize("name", ["index_select", "scatter_add"])
def test_kernels_as_plain_python(name: str) -> None:
    """The same source, interpreted, which checks every access."""
    values = [antorcha.tensor(v) if isinstance(v, np.ndarray) else v for v in KERNELS[name]]
    what, reference = described(name, values)
    arrays = [v.numpy() for v in values if isinstance(v, antorcha.Tensor)]
    out = arrays[0].copy()
    bufs = np.array([a.ctypes.data for a in (out, *arrays)], np.uint64)
    with interpreted():
        assert what.fn(bufs, np.array(what.desc), **what.static) == 0
    np.testing.assert_allclose(out, reference(arrays)[0], rtol=1e-6)


def test_a_kernel_names_the_bad_index() -> None:
    x, i = antorcha.zeros(3, 2), antorcha.tensor([0, 1, 7])
    what, _ = described("index_select", [x, 0, i])
    code = run_native(what, [np.zeros((3, 2), np.float32), x.numpy(), i.numpy()])
    assert bad_index(code) == (7, 0)
    assert what.fail is not None
    assert "index 7" in str(what.fail(code))
