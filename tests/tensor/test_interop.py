"""Tensors and other libraries: NumPy, buffers, DLPack."""

from __future__ import annotations

import array
import gc
import mmap
import subprocess
import sys
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.core.dtypes import ALL, BEYOND_NUMPY
from antorcha.tensor.dlpack import DLDeviceType, to_dlpack
from tests.patience import PATIENCE

SHAPES: list[tuple[tuple[int, ...], Any]] = [
    ((), ...), ((0,), ...), ((3,), ...), ((2, 3), ...), ((2, 0, 3), ...), ((1, 5, 1), ...),
    ((4, 6), (slice(None, None, 2), slice(1, None, 2))), ((3, 4), (slice(None), 1)),
]  # fmt: skip


def sample(dtype: Any, shape: Any, part: Any) -> torch.Tensor:
    count = int(np.prod(shape))
    return torch.arange(count).reshape(shape).to(dtype)[part]


# ---------------------------------------------------------------------------------------- DLPack
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_numpy_reads_tensors_through_dlpack(dtype: Any) -> None:
    if dtype.name in BEYOND_NUMPY:
        with pytest.raises((BufferError, RuntimeError)):
            np.from_dlpack(torch.ones(2, dtype=dtype))
        return
    for shape, part in SHAPES:
        tensor = sample(dtype, shape, part)
        found = np.from_dlpack(tensor)
        assert found.tolist() == tensor.tolist()
        if found.size:
            assert found.__array_interface__["data"][0] == tensor.data_ptr()
        back = torch.from_dlpack(found)
        assert back.dtype is dtype
        assert back.shape == tensor.shape
        assert back.tolist() == tensor.tolist()


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_pytorch_and_back_through_dlpack(dtype: Any) -> None:
    import torch as oracle

    for shape, part in SHAPES:
        tensor = sample(dtype, shape, part)
        theirs = oracle.from_dlpack(tensor)
        assert str(theirs.dtype) == str(dtype)
        assert tuple(theirs.shape) == tuple(tensor.shape)
        assert theirs.tolist() == tensor.tolist()
        if tensor.numel():
            assert theirs.data_ptr() == tensor.data_ptr()
        assert torch.from_dlpack(theirs).tolist() == tensor.tolist()
        assert oracle.from_dlpack(tensor.__dlpack__()).tolist() == tensor.tolist()  # unversioned


def test_dlpack_shares_memory_and_lets_go_of_it() -> None:
    tensor = torch.zeros(10)
    storage = weakref.ref(tensor._storage)
    theirs: Any = np.from_dlpack(tensor)
    del tensor
    gc.collect()
    assert storage() is not None
    assert theirs.size == 10
    theirs = None
    assert storage() is None
    owner = np.zeros(10)
    seen = sys.getrefcount(owner)
    tensor = torch.from_dlpack(owner)
    tensor += 1
    assert owner.tolist() == [1.0] * 10
    view = tensor[2:]
    del tensor
    view.mul_(2)
    assert owner[5] == 2
    del view
    assert sys.getrefcount(owner) == seen


def test_capsules_that_nobody_takes_go_away() -> None:
    tensor = torch.zeros(10)
    storage = weakref.ref(tensor._storage)
    capsules = [tensor.__dlpack__(), tensor.__dlpack__(max_version=(1, 0)), to_dlpack(tensor)]
    assert [repr(c).split('"')[1] for c in capsules] == [
        "dltensor", "dltensor_versioned", "dltensor",
    ]  # fmt: skip
    del tensor
    assert storage() is not None
    capsules.clear()
    assert storage() is None


def test_a_capsule_can_be_taken_once() -> None:
    capsule = torch.ones(2).__dlpack__()
    assert torch.from_dlpack(capsule).tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="only once"):
        torch.from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="invalid capsule"):
        torch.from_dlpack([1])


def test_exported_memory_stays_where_it_is() -> None:
    tensor = torch.zeros(4)
    other = np.from_dlpack(tensor)
    with pytest.raises(BufferError):
        tensor.untyped_storage().resize_(1 << 20)
    assert other.sum() == 0


def test_dlpack_arguments() -> None:
    tensor = torch.ones(2)
    assert tensor.__dlpack_device__() == (DLDeviceType.kDLCPU, 0)
    copied = np.from_dlpack(tensor, copy=True)
    tensor.zero_()
    assert copied.tolist() == [1.0, 1.0]
    assert torch.from_dlpack(np.ones(2), copy=True).tolist() == [1.0, 1.0]
    assert torch.from_dlpack(np.ones(2), device="cpu").tolist() == [1.0, 1.0]
    for wrong, error in (
        ({"stream": "a"}, TypeError), ({"stream": 1}, AssertionError),
        ({"dl_device": (2, 0)}, BufferError),
    ):  # fmt: skip
        with pytest.raises(error):
            tensor.__dlpack__(**wrong)
    with pytest.raises(BufferError, match="require gradient"):
        torch.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises(BufferError):
        torch.ones(2, device="meta").__dlpack__()
    with pytest.raises(ValueError, match="meta"):
        torch.ones(2, device="meta").__dlpack_device__()
    with pytest.raises(ValueError, match="negative"):
        torch.from_dlpack(np.arange(4)[::-1])


def test_dlpack_says_what_is_read_only() -> None:
    frozen = np.arange(4.0)
    frozen.setflags(write=False)
    tensor = torch.from_dlpack(frozen)
    with pytest.raises(TypeError, match="read-only"):
        tensor.add_(1)
    with pytest.raises(BufferError, match="read-only"):
        tensor.__dlpack__()
    assert not np.from_dlpack(tensor).flags.writeable


@pytest.mark.oracle
def test_nobody_crashes_at_exit() -> None:
    code = (
        "import antorcha as a, torch, numpy as np\n"
        "kept = [torch.from_dlpack(a.ones(3)), np.from_dlpack(a.ones(3)), a.ones(3).__dlpack__(),"
        " a.from_dlpack(torch.ones(3)), a.from_dlpack(np.ones(3))]\n"
        "torch.kept, np.kept, a.kept = kept, kept, kept\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=PATIENCE).returncode == 0


# ---------------------------------------------------------------------------------- from_numpy
def test_from_numpy_shares_both_ways() -> None:
    for dtype in ALL:
        if dtype.name in BEYOND_NUMPY:
            continue
        for shape, part in SHAPES:
            owner = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype.np)[part]
            owner = np.asarray(owner)
            tensor = torch.from_numpy(owner)
            assert tensor.dtype is dtype
            assert tensor.tolist() == owner.tolist()
            assert np.shares_memory(tensor.numpy(), owner) or not owner.size
            if owner.ndim and owner.size > 1:
                wanted = [s // owner.itemsize for s in owner.strides]
                sizes = owner.shape
                got = tensor.stride()
                assert all(a == b for a, b, n in zip(got, wanted, sizes) if n > 1)


@pytest.mark.parametrize(
    ("made", "error", "text"),
    [
        (lambda: np.array([None]), TypeError, "object_"),
        (lambda: np.array(["a"]), TypeError, "str_"),
        (lambda: np.zeros(2, [("a", "i4")]), TypeError, "void"),
        (lambda: np.zeros(2, "M8[s]"), TypeError, "datetime64"),
        (lambda: np.zeros(2, np.longdouble), TypeError, "longdouble"),
        (lambda: np.arange(4).astype(">i4"), ValueError, "byte order"),
        (lambda: np.arange(4)[::-1], ValueError, "negative"),
        (lambda: np.zeros(2, [("a", "i4"), ("b", "i1")])["a"], ValueError, "multiple"),
        (lambda: [1, 2], TypeError, "expected np.ndarray"),
        (lambda: np.float32(1), TypeError, "expected np.ndarray"),
    ],
)
def test_arrays_that_cannot_be_shared(made: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        torch.from_numpy(made())
    if isinstance(made(), np.ndarray):
        with pytest.raises(error, match=text):
            torch.as_tensor(made())


def test_nothing_writes_to_read_only_memory() -> None:
    """Over memory that the system itself protects: a write would end the process."""
    pages = mmap.mmap(-1, 4096, prot=mmap.PROT_READ)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        tensor = torch.from_numpy(np.frombuffer(pages, np.float32))
    assert "not writable" in str(seen[0].message)
    other = torch.ones(1024)
    writes = [
        lambda t: t.add_(1), lambda t: t.mul_(other), lambda t: t.fill_(1),
        lambda t: t.copy_(other),
        lambda t: t.__setitem__(0, 1), lambda t: t.__setitem__(slice(2, 5), 1.0),
        lambda t: t.__setitem__(torch.tensor([1]), 1.0), lambda t: t.__setitem__(t == 0, 1.0),
        lambda t: torch.add(other, 1, out=t), lambda t: torch.sum(other[None], 0, out=t),
        lambda t: torch.cumsum(other, 0, out=t), lambda t: torch.cat([other], out=t),
        lambda t: t.uniform_(), lambda t: t.normal_(), lambda t: t.bernoulli_(0.5),
        lambda t: t.random_(), lambda t: t.exponential_(), lambda t: torch.randn(1024, out=t),
        lambda t: t.view(32, 32).t().add_(1), lambda t: t[::2].uniform_(), lambda t: t.sin_(),
        lambda t: t.clamp_(0, 1), lambda t: t.masked_fill_(t == 0, 1),
        lambda t: t.index_fill_(0, torch.tensor([0]), 1.0),
        lambda t: t.scatter_(0, torch.tensor([0]), 1.0),
        lambda t: t.index_add_(0, torch.tensor([0]), torch.ones(1)), lambda t: t.data.add_(1),
        lambda t: t.detach().add_(1), lambda t: t.numpy().__setitem__(0, 1),
        lambda t: t.untyped_storage().fill_(1), lambda t: t.storage().__setitem__(0, 1.0),
        lambda t: torch.from_dlpack(t).add_(1), lambda t: np.from_dlpack(t).__setitem__(0, 1),
        lambda t: torch.set_flush_denormal(False) or t.resize_(5000),
    ]  # fmt: skip
    for k, write in enumerate(writes):
        with pytest.raises(Exception) as caught:
            write(tensor)
        assert not isinstance(caught.value, SystemError), k
    assert tensor.sum().item() == 0
    assert (tensor + 1).sum().item() == 1024


def test_samplers_stay_inside_the_storage() -> None:
    tensor = torch.zeros(100)
    tensor.untyped_storage().resize_(8)
    for write in (lambda: tensor.uniform_(), lambda: tensor.normal_(), lambda: tensor.add_(1)):
        with pytest.raises(Exception, match=r"storage|outside|bytes|size of buffer"):
            write()


# ------------------------------------------------------------------------- buffers and asarray
def test_frombuffer() -> None:
    memory = bytearray(range(16))
    tensor = torch.frombuffer(memory, dtype=torch.uint8, count=4, offset=2)
    assert tensor.tolist() == [2, 3, 4, 5]
    tensor[0] = 99
    assert memory[2] == 99
    with pytest.raises(BufferError):
        memory.append(1)  # the tensor holds it in its place
    doubles = array.array("d", [1.5, 2.5])
    assert torch.frombuffer(doubles, dtype=torch.float64).tolist() == [1.5, 2.5]
    wrong: list[dict[str, Any]] = [
        {"buffer": b"", "dtype": torch.uint8}, {"buffer": bytearray(6), "dtype": torch.int32},
        {"buffer": bytearray(8), "dtype": torch.int32, "offset": 9},
        {"buffer": bytearray(8), "dtype": torch.int32, "offset": -1},
        {"buffer": bytearray(8), "dtype": torch.int32, "count": 3},
        {"buffer": bytearray(8), "dtype": torch.int32, "count": 0},
        {"buffer": bytearray(8), "dtype": torch.int32, "count": 1 << 70},
        {"buffer": 3, "dtype": torch.int32},
    ]  # fmt: skip
    for each in wrong:
        with pytest.raises((ValueError, RuntimeError)):
            torch.frombuffer(**each)
    with pytest.warns(UserWarning, match="not writable"):
        frozen = torch.frombuffer(b"abcd", dtype=torch.uint8)
    with pytest.raises(TypeError, match="read-only"):
        frozen.add_(1)


def test_asarray() -> None:
    tensor = torch.ones(3)
    assert torch.asarray(tensor) is tensor
    assert torch.asarray(tensor, copy=True).data_ptr() != tensor.data_ptr()
    owner = np.arange(3)
    shared = torch.asarray(owner)
    shared[0] = 9
    assert owner[0] == 9
    assert torch.asarray(owner, copy=True).data_ptr() != shared.data_ptr()
    assert torch.asarray(owner, dtype=torch.float32).tolist() == [9.0, 1.0, 2.0]
    assert torch.asarray([1, 2.5]).tolist() == [1.0, 2.5]
    assert torch.asarray(bytearray(8), dtype=torch.int32).tolist() == [0, 0]
    assert torch.asarray(np.float32(3)).tolist() == 3.0
    assert torch.asarray(owner.astype(float), requires_grad=True).requires_grad
    for wrong in (
        lambda: torch.asarray([1], copy=False), lambda: torch.asarray(3.5, copy=False),
        lambda: torch.asarray(tensor, dtype=torch.float64, copy=False),
        lambda: torch.asarray(tensor, device="meta", copy=False),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="alias"):
            wrong()


# -------------------------------------------------------------------------------- NumPy protocols
def test_asarray_shares() -> None:
    tensor = torch.arange(6.0).reshape(2, 3)
    assert np.shares_memory(np.asarray(tensor), tensor.numpy())
    assert not np.shares_memory(np.array(tensor), tensor.numpy())
    assert np.asarray(tensor, dtype=np.float64).dtype == np.float64
    assert np.shares_memory(np.array(tensor, copy=False), tensor.numpy())
    with pytest.raises(ValueError, match="copy"):
        np.array(tensor, dtype=np.int8, copy=False)
    with pytest.raises(RuntimeError, match="requires grad"):
        np.asarray(torch.ones(2, requires_grad=True))


CASES = [
    "np.sin(x)", "np.add(x, x)", "np.maximum(x, 1)", "np.multiply(2, x)", "np.isnan(x)",
    "np.float32(2) * x", "x * np.float32(2)", "np.float64(3) - x", "np.float64(3) ** x",
    "np.float64(3) < x", "np.int64(2) * x", "np.bool_(True) * x", "np.float16(2) * x.half()",
    "x * np.arange(3.)", "x - np.arange(3.)", "x @ np.ones(3, np.float32)", "x == np.arange(3.)",
    "x == [1, 2, 3]", "x == None",
    "x == 'a'", "x + [1, 2, 3]", "[1, 2, 3] + x", "np.concatenate([x, x])", "np.stack([x, x])",
    "np.where(x > 1, x, 0)", "torch.add(x, np.float32(3))", "torch.add(x, np.ones(3))",
    "np.greater(x, 1)", "np.sin(x.requires_grad_())",
]  # fmt: skip


def test_an_array_may_come_first() -> None:
    """PyTorch refuses most of these; libraries of arrays, such as xarray, write them."""
    a, x = np.arange(1.0, 4.0), torch.tensor([4.0, 5.0, 6.0], requires_grad=True)
    pairs = {
        "+": a + x, "-": a - x, "*": a * x, "/": a / x, "//": a // x, "%": a % x, "**": a**x,
        "@": a.astype(np.float32) @ x, "<": a < x, ">=": a >= x, "==": a == x,
    }  # fmt: skip
    for name, found in pairs.items():
        value = x.detach().numpy()
        expected = eval(f"a {name} value", {"a": a, "value": value})
        assert isinstance(found, torch.Tensor), name
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-6, err_msg=name)
        assert found.requires_grad == found.dtype.is_floating_point, name
    n = torch.tensor([1, 2])
    assert (np.array([3, 3]) & n).tolist() == [1, 2]
    with pytest.raises(TypeError):
        np.array(["a", "b"]) + n


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore")
def test_numpy_meets_tensors_as_in_pytorch(case: str) -> None:
    import torch as oracle

    def answer(library: Any) -> Any:
        x = library.arange(6.0).reshape(2, 3)
        try:
            made = eval(case, {"np": np, "torch": library, "x": x})
        except Exception as error:
            return next(c for c in type(error).__mro__ if c.__module__ == "builtins")
        if hasattr(made, "tolist"):
            return type(made).__name__, str(made.dtype), made.tolist()
        return type(made).__name__, made

    mine, theirs = answer(torch), answer(oracle)
    if isinstance(theirs, tuple):
        assert mine[:2] == theirs[:2]
        np.testing.assert_allclose(mine[-1], theirs[-1], rtol=1e-6)
    else:
        assert mine is theirs
