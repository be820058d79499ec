"""What fakes of NVIDIA's libraries share: C functions over NumPy.

Each is a library object for ``devices/cuda/libraries/loader.py``: every function is a C function of
the type that ``PROTOTYPES`` gives, so that arguments go through C. Matrices are read and written in
the simulator's memory, and the work is done when the stream of the fake driver is waited for.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from antorcha.devices.sim.memory import memory as arena
from tests.devices.cuda.fake_driver import FakeLibrary

TYPES: dict[int, Any] = {
    0: np.float32, 1: np.float64, 2: np.float16, 4: np.complex64, 5: np.complex128,
    14: ml_dtypes.bfloat16,
}  # fmt: skip


class FakeFunctions:
    """The functions of a library: methods ``do_<name>`` of a subclass."""

    PROTOTYPES: Mapping[str, tuple[Any, ...]] = {}
    RESULTS: Mapping[str, Any] = {}
    BROKEN = 99  # the status of a function that raised

    def __init__(self, driver: FakeLibrary) -> None:
        self.driver = driver
        self.own: dict[str, Any] = {}
        self.calls: list[str] = []
        self.failing: dict[str, int] = {}
        self.objects: dict[int, Any] = {}
        self.kept: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        own = self.own.get(name) or getattr(type(self), "do_" + name, None)
        if name not in self.PROTOTYPES or own is None:
            raise AttributeError(name)
        result = self.RESULTS.get(name, ctypes.c_int)

        def run(*args: Any) -> Any:
            self.calls.append(name)
            if name in self.failing:
                return self.failing[name]
            try:
                return own(self, *args) or 0
            except BaseException as error:  # (C cannot pass it on: the fixture raises it)
                self.driver.errors.append(error)
                return self.BROKEN

        if result is ctypes.c_char_p:  # a callback cannot give one: the text is kept here

            def text(*args: Any) -> int:
                buffer = ctypes.create_string_buffer(own(self, *args))
                self.kept.append(buffer)
                return ctypes.addressof(buffer)

            found: Any = ctypes.CFUNCTYPE(ctypes.c_void_p, *self.PROTOTYPES[name])(text)
            address = ctypes.cast(found, ctypes.c_void_p).value
            self.kept.append(found)
            found = ctypes.CFUNCTYPE(ctypes.c_char_p, *self.PROTOTYPES[name])(address)
        else:
            found = ctypes.CFUNCTYPE(result, *self.PROTOTYPES[name])(run)
        self.kept.append(found)
        return found

    def made(self, out: int, thing: Any) -> None:
        """Leaves a handle of a new object where it goes."""
        number = 0x5000 + 16 * len(self.objects)
        self.objects[number] = thing
        ctypes.c_void_p.from_address(out).value = number

    def dropped(self, handle: int) -> None:
        assert self.objects[handle] is not None, "it is given back twice"
        self.objects[handle] = None

    def give(self, stream: int | None, work: Any) -> None:
        """Work for a stream of the current GPU."""

        def guarded() -> None:
            try:
                work()
            except BaseException as error:
                self.driver.errors.append(error)

        self.driver.give(self.driver.stream(stream), guarded)

    def array(
        self, address: int, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> Any:
        """The elements at an address of the simulator's; strides in elements."""
        size = np.dtype(dtype).itemsize
        reach = sum([s * (n - 1) for n, s in zip(shape, strides, strict=True)]) + 1
        self.driver.check(address, reach * size)
        data = arena.bytes_at(address, reach * size)
        return np.ndarray(shape, dtype, data, 0, tuple([s * size for s in strides]))
