"""MLX: whether it is here, the stream that everything runs on, and its dtypes.

MLX is imported when somebody first uses the device, or asks whether there is one. It computes when
it is asked for values: until then an array is a note of what to compute. So that notes do not pile
up, arrays that were written are sent to the GPU after every ``MOST_PENDING`` writes.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from antorcha.core.dtypes import dtype
from antorcha.core.lazy import lazy
from antorcha.errors import ArgumentError, Facts, with_facts

mx = lazy("mlx.core")

SWITCH = "ANTORCHA_MPS"
"""Set to "cpu" in the environment, the device runs on MLX's CPU side: for tests, on any system."""
MOST_PENDING = 100

_lock = threading.RLock()
_pending: list[Any] = []  # weak references to what was written since it was last sent


def is_installed() -> bool:
    """Can MLX be imported?"""
    return importlib.util.find_spec("mlx") is not None


def kind() -> str:
    """What the device runs on: "gpu", "cpu" (in tests, see ``SWITCH``), or "" for nothing."""
    return _kind(os.environ.get(SWITCH) == "cpu")


@cache
def _kind(on_cpu: bool) -> str:
    if not is_installed():
        return ""
    try:
        if on_cpu:
            return "cpu" if mx.cpu else ""
        return "gpu" if mx.metal.is_available() else ""
    except ImportError:  # MLX is there, and its library is not
        return ""


def require() -> None:
    """RuntimeError where there is no GPU of Apple's, or no MLX."""
    if kind():
        return
    if sys.platform == "darwin" and not is_installed():
        why = "MLX is to be installed for it (pip install mlx)"
    else:
        why = "it needs a Mac with Apple silicon, and there is nothing else to install for it"
    error = RuntimeError(
        f"mps: there is no device 'mps' here: {why}. Use device='cpu' "
        "(torch.backends.mps.is_available() tells which)."
    )
    raise with_facts(error, Facts("no device", more={"device": "mps"}))


def fuses() -> bool:
    """Are expressions of several ops made into one kernel? (On the CPU MLX needs a C++ compiler
    for that, and seconds.)"""
    return kind() == "gpu"


@cache
def stream() -> Any:
    """The one stream, of all threads: they take turns."""
    device = mx.gpu if kind() == "gpu" else mx.cpu
    make = getattr(mx, "new_thread_unsafe_stream", None) or mx.new_stream
    return make(device)


@contextlib.contextmanager
def running() -> Iterator[None]:
    """What MLX is asked for meanwhile goes to the stream; other threads wait."""
    with _lock, mx.stream(stream()):
        yield


def note_written(buffer: Any) -> None:
    """Notes that a buffer holds an array that may not have been computed yet."""
    _pending.append(weakref.ref(buffer))
    if len(_pending) >= MOST_PENDING:
        mx.async_eval(*_written())


def _written() -> list[Any]:
    buffers = {id(b): b for b in [ref() for ref in _pending] if b is not None}
    _pending.clear()
    return [b.array for b in buffers.values() if b.array is not None]


def synchronize() -> None:
    """Computes everything that was asked for, and waits."""
    if not stream.cache_info().currsize:
        return
    with running():
        mx.eval(*_written())
        mx.synchronize(stream())


# ---- dtypes
NAMES = {"bool": "bool_"} | {
    name: name for name in (
        "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16",
        "bfloat16", "float32", "complex64",
    )
}  # fmt: skip
"""Our dtypes that MLX computes with, and what it calls them."""
RAW = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}
"""What others are kept as, by their size."""
ABSENT = {
    "float64": "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support "
               "float64. Please use float32 instead.",
    "complex128": "Trying to convert ComplexDouble to the MPS backend but it does not have support "
                  "for that dtype. Please use complex64 instead.",
}  # fmt: skip


def check_dtype(t: dtype) -> None:
    """TypeError for what Apple's GPUs do not have."""
    if t.name in ABSENT:
        raise ArgumentError(ABSENT[t.name])


def in_mlx(t: dtype) -> Any:
    """MLX's dtype for elements of ours, or for their bytes."""
    found = _in_mlx.get(t.name)
    if found is None:
        check_dtype(t)
        found = _in_mlx[t.name] = getattr(mx, NAMES.get(t.name) or RAW[t.itemsize])
    return found


_in_mlx: dict[str, Any] = {}


def to_mlx(array: np.ndarray[Any, Any], t: dtype) -> Any:
    """An array of NumPy's, of the dtype, copied to one of MLX's."""
    if t.name in NAMES and t.name != "bfloat16":
        return mx.array(array)
    raw = np.ascontiguousarray(array).view(RAW[t.itemsize]).reshape(array.shape)
    return mx.array(raw).view(in_mlx(t)) if array.ndim else mx.array(raw)[None].view(in_mlx(t))[0]


def to_numpy(array: Any, t: dtype) -> np.ndarray[Any, Any]:
    """An array of MLX's, whose elements are of the dtype, copied to one of NumPy's."""
    if t.name in NAMES and t.name != "bfloat16":
        return np.array(array)
    flat = array.reshape(-1).view(getattr(mx, RAW[t.itemsize]))
    return np.array(flat).view(t.np).reshape(tuple(array.shape))
