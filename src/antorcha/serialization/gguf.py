"""Reading GGUF files, in which llama.cpp and its kin keep models: versions 2 and 3.

The file is mapped: tensors of plain dtypes are its memory, and nothing of them is read before it is
used; quantized ones become float32. Source: the specification,
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, and for the blocks ggml-common.h there.
"""

from __future__ import annotations

import math
import os
import struct
from typing import Any, Final, NamedTuple

import numpy as np

from antorcha.core import dtypes
from antorcha.core.device import CPU
from antorcha.core.lazy import Array
from antorcha.core.shapes import INT64_MAX, MOST_DIMS
from antorcha.errors import MissingFeature, shown
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.shared import map_file
from antorcha.runtime.memory.storage import Storage, as_numpy, part
from antorcha.runtime.tensor import Tensor, bare
from antorcha.serialization.errors import CheckpointError
from antorcha.tensor.interop import share

_NUMBERS: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q",
                   11: "q", 12: "d"}  # fmt: skip
"""Kinds of metadata that are numbers, as `struct` names them."""
_TEXT, _ARRAY = 8, 9
_DEEPEST = 16  # arrays in arrays

_PLAIN: Final = {0: dtypes.float32, 1: dtypes.float16, 24: dtypes.int8, 25: dtypes.int16,
                 26: dtypes.int32, 27: dtypes.int64, 28: dtypes.float64,
                 30: dtypes.bfloat16}  # fmt: skip
_Q4_0, _Q8_0 = 2, 8
_BLOCK = 32  # elements with one scale
_BYTES: Final = {_Q4_0: 2 + _BLOCK // 2, _Q8_0: 2 + _BLOCK}
"""Bytes of a block: a float16, the scale, and its elements."""
_OTHERS: Final = {
    3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K",
    14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL",
    21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
}  # fmt: skip


class GGUF(NamedTuple):
    """What is in a GGUF file."""

    tensors: dict[str, Tensor]
    metadata: dict[str, Any]


def load_gguf(path: Any) -> GGUF:
    """The tensors and the metadata of a GGUF file.

    Tensors of F32, F16, BF16, F64 and of integers are the mapped file's memory (what is written to
    them stays in this process); Q4_0 and Q8_0 become float32. A shape is written as NumPy writes
    it, the dim that varies fastest last.

    Args:
        path: of the file

    Returns: ``(tensors, metadata)``, two dicts by name. Metadata are numbers, strings and lists.

    Raises: RuntimeError for a file that is no GGUF, or damaged; NotImplementedError for another
    quantization, by its name, and for files of the other byte order.
    """
    place = os.fspath(path)
    size = os.path.getsize(place)
    file = map_file(place, False, size)
    reader = _HeaderReader(memoryview(file))
    metadata, infos = reader.read()
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or alignment <= 0:
        raise _damaged(f"an alignment of {shown(alignment)}")
    start = reader.at + -reader.at % alignment
    tensors = {info.name: _tensor(info, file, start, alignment) for info in infos}
    return GGUF(tensors, metadata)


def _damaged(what: str) -> CheckpointError:
    return CheckpointError(f"load_gguf: the file is truncated or damaged: {what}")


class _Info(NamedTuple):
    """What the file says of a tensor."""

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int


class _HeaderReader:
    """Reads the part before the tensors; every length is checked against the file's."""

    def __init__(self, data: memoryview) -> None:
        self.data, self.at = data, 0

    def read(self) -> tuple[dict[str, Any], list[_Info]]:
        if bytes(self.data[:4]) != b"GGUF":
            raise CheckpointError("load_gguf: this is no GGUF file: it does not begin with 'GGUF'")
        self.at = 4
        version = self._number("I")
        if version and version % 65536 == 0:
            raise MissingFeature("load_gguf: GGUF files of big-endian machines are not supported")
        if version not in (2, 3):
            raise MissingFeature(f"load_gguf: version {version} of GGUF; 2 and 3 are supported")
        tensors, entries = self._number("Q"), self._number("Q")
        metadata: dict[str, Any] = {}
        for _ in range(self._count(entries, 13)):  # bytes that an entry has at least
            name = self._text()
            if name in metadata:
                raise _damaged(f"metadata {shown(name, 60)} are there twice")
            metadata[name] = self._value(self._number("I"))
        infos: dict[str, _Info] = {}
        for _ in range(self._count(tensors, 24)):
            info = self._info()
            if info.name in infos:
                raise _damaged(f"tensor {shown(info.name, 60)} is there twice")
            infos[info.name] = info
        return metadata, list(infos.values())

    def _take(self, count: int) -> memoryview:
        end = self.at + count
        if end > len(self.data):
            raise _damaged("it ends too early")
        found = self.data[self.at : end]
        self.at = end
        return found

    def _number(self, form: str) -> Any:
        return struct.unpack(f"<{form}", self._take(struct.calcsize(f"<{form}")))[0]

    def _count(self, count: int, nbytes: int) -> int:
        """How many items follow, if the file has room for them."""
        if count * nbytes > len(self.data) - self.at:
            raise _damaged(f"{count:,} items are not in it")
        return count

    def _text(self) -> str:
        return str(self._take(self._count(self._number("Q"), 1)), "utf-8", "replace")

    def _value(self, kind: int, depth: int = 0) -> Any:
        if kind == _TEXT:
            return self._text()
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        if kind != _ARRAY or depth >= _DEEPEST:
            raise _damaged(f"metadata of kind {kind}")
        inner, count = self._number("I"), self._number("Q")
        if inner in _NUMBERS:
            form = np.dtype(_NUMBERS[inner]).newbyteorder("<")
            taken = self._take(self._count(count, form.itemsize) * form.itemsize)
            return np.frombuffer(taken, form).tolist()
        # (a text has at least 8 bytes, an array 12)
        return [self._value(inner, depth + 1) for _ in range(self._count(count, 8))]

    def _info(self) -> _Info:
        name, ndim = self._text(), self._number("I")
        if ndim > MOST_DIMS:
            raise _damaged(f"tensor {shown(name, 60)} has {ndim} dims")
        sizes = tuple(self._number("Q") for _ in range(ndim))
        if any(n > INT64_MAX for n in sizes) or math.prod(n for n in sizes if n) > INT64_MAX:
            raise _damaged(f"tensor {shown(name, 60)} has sizes {shown(sizes)}")
        return _Info(name, sizes[::-1], self._number("I"), self._number("Q"))


def _tensor(info: _Info, file: Storage, start: int, alignment: int) -> Tensor:
    """A tensor over its part of the file, or made of it."""
    count = math.prod(info.shape)
    name = shown(info.name, 60)
    if info.offset % alignment:
        raise _damaged(f"tensor {name} lies at {info.offset}, no multiple of {alignment}")
    dtype = _PLAIN.get(info.kind)
    if dtype is not None:
        nbytes = count * dtype.itemsize
    elif info.kind in _BYTES:
        if not info.shape or info.shape[-1] % _BLOCK:
            raise _damaged(f"tensor {name} of shape {info.shape} is no whole number of blocks")
        nbytes = count // _BLOCK * _BYTES[info.kind]
    else:
        kind = _OTHERS.get(info.kind, f"of kind {info.kind}")
        raise MissingFeature(
            f"load_gguf: tensor {name} is quantized as {kind}; F32, F16, BF16, Q4_0 and Q8_0 are "
            "supported"
        )
    place = start + info.offset
    if place + nbytes > file.nbytes:
        raise _damaged(f"tensor {name} lies beyond its end")
    if dtype is None:
        return share(_floats(file, place, nbytes, info.kind).reshape(info.shape))
    return bare(L.contiguous(info.shape, dtype, CPU), part(file, place, nbytes))


def _floats(file: Storage, place: int, nbytes: int, kind: int) -> Array:
    """The elements of blocks, as float32: each times the scale of its block."""
    width = _BYTES[kind]
    if not nbytes:
        return np.empty(0, np.float32)
    blocks = as_numpy(file, place, (nbytes // width, width), (width, 1), np.uint8)
    scales = blocks[:, :2].copy().view("<f2").astype(np.float32)
    if kind == _Q8_0:
        return blocks[:, 2:].view(np.int8) * scales
    pairs = blocks[:, 2:]  # elements k and k + 16, in the lower and the upper half of a byte
    result = np.empty((len(blocks), _BLOCK), np.float32)
    np.subtract(pairs & 15, 8, out=result[:, :16], dtype=np.float32)
    np.subtract(pairs >> 4, 8, out=result[:, 16:], dtype=np.float32)
    result *= scales
    return result
