"""A process of its own for Intel's OpenCL for CPUs: it runs kernels of SPIR-V.

Run as a script by ``opencl``; it imports nothing of antorcha, for LLVM and that OpenCL, which has
an LLVM, too, do not get on in one process. It reads launches from its standard input (a line of
JSON, then the kernel's SPIR-V and the bytes of the buffers) and answers each with a line of JSON
and the buffers' bytes afterwards. A buffer's address is that of this process's memory.
"""

from __future__ import annotations

import ctypes
import json
import sys
from typing import Any, BinaryIO

ALIGNED = 256
DEVICE_CPU = 1 << 1
BUILD_LOG = 0x1183
GLOBAL_PLACES = 3  # of a grid's dims


class OpenCLError(Exception):
    """What a function of OpenCL said."""


class Runtime:
    """A context and a queue on the CPU; programs that were built are kept."""

    def __init__(self, library: str) -> None:
        self.cl = ctypes.CDLL(library)
        platform, self.device = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("clGetPlatformIDs", 1, ctypes.byref(platform), None)
        kind = ctypes.c_uint64(DEVICE_CPU)
        self.call("clGetDeviceIDs", platform, kind, 1, ctypes.byref(self.device), None)
        self.context = self.made("clCreateContext", None, 1, ctypes.byref(self.device), None, None)
        self.queue = self.made(
            "clCreateCommandQueueWithProperties", self.context, self.device, None
        )
        self.kernels: dict[str, ctypes.c_void_p] = {}

    def call(self, name: str, *args: Any) -> None:
        """Calls a function that returns an error code."""
        code = getattr(self.cl, name)(*args)
        if code:
            raise OpenCLError(f"{name} gave {code}")

    def made(self, name: str, *args: Any) -> ctypes.c_void_p:
        """Calls a function that makes an object, whose last argument is the error code's place."""
        function = getattr(self.cl, name)
        function.restype = ctypes.c_void_p
        code = ctypes.c_int32()
        found = function(*args, ctypes.byref(code))
        if code.value:
            raise OpenCLError(f"{name} gave {code.value}")
        return ctypes.c_void_p(found)

    def kernel(self, name: str, image: bytes) -> ctypes.c_void_p:
        """The kernel of a module of SPIR-V."""
        if name not in self.kernels:
            size = ctypes.c_size_t(len(image))
            program = self.made("clCreateProgramWithIL", self.context, image, size)
            try:
                self.call("clBuildProgram", program, 0, None, None, None, None)
            except OpenCLError as error:
                raise OpenCLError(f"{error}: {self.log(program)}") from None
            self.kernels[name] = self.made("clCreateKernel", program, name.encode())
        return self.kernels[name]

    def log(self, program: ctypes.c_void_p) -> str:
        """What the compiler said of a program."""
        text = ctypes.create_string_buffer(2000)
        which = ctypes.c_uint32(BUILD_LOG)
        self.cl.clGetProgramBuildInfo(
            program, self.device, which, ctypes.c_size_t(len(text)), text, None
        )
        return text.value.decode(errors="replace")

    def launch(self, job: dict[str, Any], image: bytes, given: list[bytes]) -> list[bytes]:
        """Runs a kernel over a grid; gives its buffers' bytes."""
        kernel = self.kernel(job["name"], image)
        rooms = [ctypes.create_string_buffer(len(each) + 2 * ALIGNED) for each in given]
        starts = [-(-ctypes.addressof(room) // ALIGNED) * ALIGNED for room in rooms]
        for start, each in zip(starts, given, strict=True):
            ctypes.memmove(start, each, len(each))
        words = (ctypes.c_int64 * len(job["words"]))(*job["words"])
        for k, buffer, offset in job["places"]:
            words[k] = starts[buffer] + offset
        self.call("clSetKernelArgSVMPointer", kernel, 0, words)
        threads = (job["threads"], 1, 1)
        sizes = [b * t for b, t in zip(job["blocks"], threads, strict=True)]
        dims = ctypes.c_size_t * GLOBAL_PLACES
        self.call(
            "clEnqueueNDRangeKernel", self.queue, kernel, GLOBAL_PLACES, None, dims(*sizes),
            dims(*threads), 0, None, None,
        )  # fmt: skip
        self.call("clFinish", self.queue)
        return [ctypes.string_at(a, len(each)) for a, each in zip(starts, given, strict=True)]


def serve(library: str, jobs: BinaryIO, answers: BinaryIO) -> None:
    """Answers launches until there are no more."""
    runtime = Runtime(library)
    for line in jobs:
        job = json.loads(line)
        image = jobs.read(job["image"])
        given = [jobs.read(size) for size in job["sizes"]]
        try:
            error, found = "", runtime.launch(job, image, given)
        except OpenCLError as problem:
            error, found = str(problem), []
        answers.write(json.dumps({"error": error}).encode() + b"\n" + b"".join(found))
        answers.flush()


if __name__ == "__main__":
    serve(sys.argv[1], sys.stdin.buffer, sys.stdout.buffer)
