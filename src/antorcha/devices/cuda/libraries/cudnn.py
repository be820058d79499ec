"""cuDNN's functions: its graphs of operations, of which convolutions are used.

Everything is a descriptor with attributes, which is finalised before it is used: tensors, an
operation over them, a graph of it, a heuristic that ranks ways (engine configurations) to run the
graph, a plan of one of these. A variant pack says where the tensors lie.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from ctypes import c_char_p, c_int, c_int64, c_size_t, c_void_p
from typing import Any

from antorcha.core.forks import held_over_forks
from antorcha.devices.cuda.libraries.loader import NvidiaLibrary

_OUT, _HANDLE = c_void_p, c_void_p

PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cudnnCreate": (_OUT,),
    "cudnnSetStream": (_HANDLE, _HANDLE),
    "cudnnGetVersion": (),
    "cudnnGetErrorString": (c_int,),
    "cudnnGetLastErrorString": (c_void_p, c_size_t),
    "cudnnBackendCreateDescriptor": (c_int, _OUT),
    "cudnnBackendDestroyDescriptor": (_HANDLE,),
    "cudnnBackendSetAttribute": (_HANDLE, c_int, c_int, c_int64, c_void_p),
    "cudnnBackendGetAttribute": (_HANDLE, c_int, c_int, c_int64, _OUT, c_void_p),
    "cudnnBackendFinalize": (_HANDLE,),
    "cudnnBackendExecute": (_HANDLE, _HANDLE, _HANDLE),
}
"""What is used of cuDNN: the functions' names, and the types of their arguments."""
RESULTS = {
    "cudnnGetVersion": c_size_t, "cudnnGetErrorString": c_char_p, "cudnnGetLastErrorString": None,
}  # fmt: skip
"""The functions that give something else than a status."""

DATA_TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 9}
CONVOLUTION, ENGINE, ENGINE_CONFIG, HEURISTIC, PLAN, GRAPH, PACK, TENSOR = 1, 2, 3, 4, 5, 15, 16, 17
"""Numbers of ``cudnnBackendDescriptorType_t``."""
OPERATIONS = {"forward": 10, "weight": 11, "data": 12}
"""The descriptors of convolutions, by the kinds of a description."""
OPERATION_ATTRIBUTES = {
    "forward": (700, 701, 702, 703, 704, 705),
    "data": (706, 707, 708, 709, 710, 711),
    "weight": (712, 713, 714, 715, 716, 717),
}
"""Of each operation: alpha, beta, the convolution, w, x, y."""
TYPES: dict[str, tuple[int, Any]] = {
    "handle": (0, c_void_p), "data type": (1, c_int), "integer": (3, c_int64),
    "float": (4, ctypes.c_float), "double": (5, ctypes.c_double), "address": (6, c_void_p),
    "mode": (7, c_int), "heuristic": (8, c_int), "note": (11, c_int), "descriptor": (15, c_void_p),
}  # fmt: skip
"""Numbers of ``cudnnBackendAttributeType_t``, and the type of such a value."""
CROSS_CORRELATION = 1
BY_MODEL, FALLBACK = 3, 2
"""Heuristics: ways ranked by a model of their speed; ways that work for all."""
TENSOR_CORE, DOWN_CONVERTS, NOT_DETERMINISTIC, NOTES = 0, 1, 4, 10
"""Numbers of ``cudnnBackendNumericalNote_t``, and how many there are."""
WORDS = 512


class Cudnn(NvidiaLibrary):
    """cuDNN, and a handle of it for each GPU. ``lock``: a handle is one thread's at a time."""

    STEM = "cudnn"

    def __init__(self, handle: Any) -> None:
        super().__init__("cuDNN", handle, PROTOTYPES, RESULTS)
        self.version = int(self.functions["cudnnGetVersion"]())
        self.execute = self.functions["cudnnBackendExecute"]
        self.handles: dict[int, int] = {}
        self.lock = held_over_forks(threading.RLock())

    def text(self, status: int) -> str:
        name = self.functions["cudnnGetErrorString"](status) or b"unknown status"
        more = ctypes.create_string_buffer(WORDS)
        self.functions["cudnnGetLastErrorString"](more, WORDS)
        words = more.value.decode(errors="replace").strip()
        return f"{name.decode()} ({words})" if words else name.decode()

    def begin(self, gpu: Any) -> int:
        """The handle of a GPU, whose context is current, set to its current stream."""
        found = self.handles.get(gpu.index)
        if found is None:
            found = self.handles[gpu.index] = self.made("cudnnCreate")
        self.call("cudnnSetStream", found, gpu.stream.handle)
        return found


class Descriptor:
    """A descriptor of the library's."""

    def __init__(self, dnn: Cudnn, kind: int) -> None:
        self.dnn, self.keep = dnn, []  # type: tuple[Cudnn, list[Any]]
        out = c_void_p()
        dnn.call("cudnnBackendCreateDescriptor", kind, ctypes.byref(out))
        self.handle = out.value or 0

    def set(self, attribute: int, kind: str, *values: Any) -> None:
        """Sets an attribute: values of a type of ``TYPES``; descriptors are kept."""
        number, ctype = TYPES[kind]
        if kind == "descriptor":
            self.keep += values
            values = tuple([each.handle for each in values])
        given = (ctype * len(values))(*values)
        self.dnn.call(
            "cudnnBackendSetAttribute", self.handle, attribute, number, len(values), given
        )

    def finalize(self) -> Descriptor:
        """Says that all attributes are set."""
        self.dnn.call("cudnnBackendFinalize", self.handle)
        return self

    def count(self, attribute: int, kind: str) -> int:
        """How many values an attribute has."""
        out = c_int64()
        self.dnn.call(
            "cudnnBackendGetAttribute", self.handle, attribute, TYPES[kind][0], 0,
            ctypes.byref(out), None,
        )  # fmt: skip
        return out.value

    def numbers(self, attribute: int, kind: str, most: int) -> list[int]:
        """The values of an attribute."""
        number, ctype = TYPES[kind]
        out, given = c_int64(), (ctype * most)()
        self.dnn.call(
            "cudnnBackendGetAttribute", self.handle, attribute, number, most, ctypes.byref(out),
            given,
        )  # fmt: skip
        return list(given[: min(out.value, most)])

    def descriptors(self, attribute: int, kind: int, most: int) -> list[Descriptor]:
        """The descriptors that are an attribute's values."""
        found = [Descriptor(self.dnn, kind) for _ in range(most)]
        out, given = c_int64(), (c_void_p * most)(*[each.handle for each in found])
        self.dnn.call(
            "cudnnBackendGetAttribute", self.handle, attribute, TYPES["descriptor"][0], most,
            ctypes.byref(out), given,
        )  # fmt: skip
        for each in found:
            each.keep.append(self)
        return found[: out.value]

    def __del__(self) -> None:
        if getattr(self, "handle", 0):
            self.dnn.functions["cudnnBackendDestroyDescriptor"](self.handle)


def tensor(
    dnn: Cudnn, number: int, dtype: str, sizes: Sequence[int], strides: Sequence[int], aligned: int
) -> Descriptor:
    """A tensor, and its number in variant packs."""
    found = Descriptor(dnn, TENSOR)
    found.set(901, "data type", DATA_TYPES[dtype])
    found.set(902, "integer", *sizes)
    found.set(903, "integer", *strides)
    found.set(906, "integer", number)
    found.set(900, "integer", aligned)
    return found.finalize()


def convolution(
    dnn: Cudnn, computes: str, before: Sequence[int], after: Sequence[int], steps: Sequence[int],
    dilation: Sequence[int],
) -> Descriptor:  # fmt: skip
    """How windows move: padding before and after, steps, dilation, for each spatial dim."""
    found = Descriptor(dnn, CONVOLUTION)
    found.set(100, "data type", DATA_TYPES[computes])
    found.set(101, "mode", CROSS_CORRELATION)
    found.set(106, "integer", len(steps))
    found.set(102, "integer", *dilation)
    found.set(103, "integer", *steps)
    found.set(105, "integer", *before)
    found.set(104, "integer", *after)
    return found.finalize()


def operation(
    dnn: Cudnn, kind: str, how: Descriptor, w: Descriptor, x: Descriptor, y: Descriptor,
    double: bool,
) -> Descriptor:  # fmt: skip
    """A convolution of tensors."""
    found = Descriptor(dnn, OPERATIONS[kind])
    alpha, beta, of, *tensors = OPERATION_ATTRIBUTES[kind]
    for attribute, number in ((alpha, 1.0), (beta, 0.0)):
        found.set(attribute, "double" if double else "float", number)
    found.set(of, "descriptor", how)
    for attribute, each in zip(tensors, (w, x, y)):
        found.set(attribute, "descriptor", each)
    return found.finalize()


def ways(dnn: Cudnn, handle: int, of: Descriptor, mode: int) -> list[Descriptor]:
    """The ways to compute an operation that a heuristic gives, the best first."""
    graph = Descriptor(dnn, GRAPH)
    graph.set(800, "handle", handle)
    graph.set(801, "descriptor", of)
    graph.finalize()
    heuristic = Descriptor(dnn, HEURISTIC)
    heuristic.set(201, "descriptor", graph)
    heuristic.set(200, "heuristic", mode)
    heuristic.finalize()
    count = heuristic.count(202, "descriptor")
    return heuristic.descriptors(202, ENGINE_CONFIG, count) if count else []


def notes_of(way: Descriptor) -> list[int]:
    """What the library says of the numbers that a way gives."""
    (engine,) = way.descriptors(300, ENGINE, 1)
    return engine.numbers(1303, "note", NOTES)


def plan_of(dnn: Cudnn, handle: int, way: Descriptor) -> tuple[Descriptor, int]:
    """A plan, and how many bytes of scratch memory it takes."""
    plan = Descriptor(dnn, PLAN)
    plan.set(400, "handle", handle)
    plan.set(401, "descriptor", way)
    plan.finalize()
    (nbytes,) = plan.numbers(402, "integer", 1)
    return plan, nbytes


def pack(dnn: Cudnn, places: Sequence[int], workspace: int) -> Descriptor:
    """Where the tensors, by their numbers from 0 on, and the scratch memory are."""
    found = Descriptor(dnn, PACK)
    found.set(1001, "address", *places)
    found.set(1000, "integer", *range(len(places)))
    found.set(1003, "address", workspace)
    return found.finalize()
