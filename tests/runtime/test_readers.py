"""What machine code reads of tensors, shapes and arrays is what Python reads of them."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.runtime.call import native

pytestmark = [
    pytest.mark.skipif(not native.ACTIVE, reason=native.why_not()),
    pytest.mark.filterwarnings("ignore:The given NumPy array is not writable"),
]


def tensors() -> dict[str, torch.Tensor]:
    whole = torch.arange(24.0).reshape(2, 3, 4)
    return {
        "whole": whole,
        "part": whole[:, 1:, ::2],
        "transposed": whole[0].t(),
        "number": whole[0, 0, 0],
        "empty": torch.zeros(2, 0),
        "repeated": torch.ones(1).expand(3),
        "bool": whole > 3,
        "int64": torch.arange(5)[1:],
        "half": whole.half(),
        "bfloat16": whole.bfloat16(),
        "complex": torch.ones(2, dtype=torch.complex64),
        "leaf": torch.ones(3, requires_grad=True),
        "view of a leaf": torch.ones(3, requires_grad=True)[1:],
        "parameter": torch.nn.Parameter(torch.ones(2), requires_grad=False),
        "meta": torch.ones(2, 3, device="meta"),
        "read-only": torch.from_numpy(np.broadcast_to(np.float32(1), (2, 2))),
    }


READS: dict[str, Callable[[Any], Any]] = {
    "size": lambda x: x.size(),
    **{f"size({d})": lambda x, d=d: x.size(d) for d in (0, 1, -1, -3, 5, 1 << 70, True)},  # type: ignore[misc]
    "size(dim=0)": lambda x: x.size(dim=0),
    "size of a name": lambda x: x.size("a"),
    "stride(-1)": lambda x: x.stride(-1),
    "stride(3)": lambda x: x.stride(3),
    "len": len,
    "is_contiguous": lambda x: x.is_contiguous(),
    "channels last": lambda x: x.is_contiguous(memory_format=torch.channels_last),
    "data_ptr": lambda x: x.data_ptr(),
    **{f"shape[{i}]": lambda x, i=i: x.shape[i] for i in (0, -1, 2, 7, -7, 1 << 70, "a")},  # type: ignore[misc]
    "shape[1:]": lambda x: (x.shape[1:], type(x.shape[1:])),
    "shape[::2]": lambda x: (x.shape[::2], type(x.shape[::2])),
    "shape[-9:9]": lambda x: x.shape[-9:9],
    "tolist": lambda x: (x.tolist(), str(x.tolist())),
    "numpy": lambda x: described(x.numpy()),
    "forced": lambda x: described(x.numpy(force=True)),
    "asarray": lambda x: described(np.asarray(x)),
}


def described(array: Any) -> tuple[Any, ...]:
    where = array.__array_interface__["data"] if array.size else None
    return array.dtype, array.shape, array.strides, where, array.flags.writeable, array.tolist()


def outcome(read: Callable[[Any], Any], x: Any) -> Any:
    try:
        return read(x)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", READS)
def test_tensors_read_alike_on_both_paths(name: str) -> None:
    for kind, x in tensors().items():
        ours = [outcome(READS[name], x) for _ in range(3)]
        with native.off():
            theirs = outcome(READS[name], x)
        forced_copy = name == "forced" and kind not in ("whole", "part", "transposed")
        assert forced_copy or ours == [theirs] * 3, kind


ARRAYS: dict[str, Callable[[], Any]] = {
    "whole": lambda: np.arange(6, dtype=np.float32).reshape(2, 3),
    "part": lambda: np.arange(24, dtype=np.int64).reshape(2, 3, 4)[:, 1:, ::2],
    "columns": lambda: np.asfortranarray(np.ones((2, 3))),
    "number": lambda: np.array(3, dtype=np.int16),
    "one row": lambda: np.ones((4, 4), np.float32)[1:2, ::2],
    "empty": lambda: np.zeros((0, 3)),
    "backwards": lambda: np.arange(3.0)[::-1],
    "swapped": lambda: np.arange(3, dtype=">i4"),
    "odd": lambda: np.zeros(3, dtype=[("a", np.int8), ("b", np.float32)])["b"],
    "text": lambda: np.array(["a"]),
    "repeated": lambda: np.broadcast_to(np.float64(2), (2, 3)),
    "half": lambda: np.ones(2, np.float16),
    "uint16": lambda: np.ones(2, np.uint16),
    "own": lambda: np.ones((2, 2)).view(np.matrix),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_shared_alike_on_both_paths(name: str) -> None:
    array = ARRAYS[name]()

    def facts(make: Callable[[Any], torch.Tensor]) -> Any:
        made = outcome(make, array)
        if isinstance(made, tuple):
            return made
        lay = made._layout
        return lay.shape, lay.strides, lay.dtype, made._storage.flags & 2, made.tolist()

    for make in (torch.from_numpy, torch.tensor, torch.as_tensor, torch.asarray):
        ours = [facts(make) for _ in range(3)]
        with native.off():
            assert ours == [facts(make)] * 3


def test_memory_is_shared_and_held() -> None:
    array = np.zeros(3, np.float32)
    x = torch.from_numpy(array)
    array[0] = 1
    x[1] = 2
    assert x.tolist() == array.tolist() == [1, 2, 0]
    del array
    gc.collect()
    assert x.tolist() == [1, 2, 0]
    y = torch.ones(100_000)
    seen = y[5:].numpy()
    with pytest.raises(BufferError):  # an array looks at it
        y.untyped_storage().resize_(8)
    del y
    gc.collect()
    seen[0] = 7
    assert seen[:2].tolist() == [7, 1]


def test_methods_are_pickled_by_name() -> None:
    for method in (torch.Tensor.size, torch.Tensor.numpy, torch.Size.__getitem__):
        assert pickle.loads(pickle.dumps(method)) is method
