"""Kernels of GPUs: a function that every thread of a grid of blocks runs.

For PTX the function gets another entry, with the launch's words as its parameter. For the
simulator it becomes an LLVM coroutine, if its threads wait for one another: LLVM splits it where it
suspends and keeps what lives across, and ``devices/sim`` resumes the threads of a block in turn.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from antorcha.lang.native.grid import PARAMETER_WORDS, SIMULATED_THREAD, WARP
from antorcha.lang.native.lower.module import LoweredModule

if TYPE_CHECKING:
    from antorcha.lang.native.function import GridSpec, Spec
    from antorcha.lang.native.lower.statements import Statements
    from antorcha.lang.native.machine import Target

_BEGIN = """
  %co.id = call token @llvm.coro.id(i32 16, ptr null, ptr null, ptr null)
  %co.size = call i64 @llvm.coro.size.i64()
  %co.memory = call ptr @malloc(i64 %co.size)
  %co.handle = call ptr @llvm.coro.begin(token %co.id, ptr %co.memory)"""
_END = """
co.end:
  %co.last = call i8 @llvm.coro.suspend(token none, i1 true)
  switch i8 %co.last, label %co.leave [i8 0, label %co.free i8 1, label %co.free]
co.free:
  %co.old = call ptr @llvm.coro.free(token %co.id, ptr %co.handle)
  call void @free(ptr %co.old)
  br label %co.leave
co.leave:
  call void @llvm.coro.end(ptr %co.handle, i1 false, token none)
  ret ptr %co.handle"""
_COROUTINES = {
    "llvm.coro.id": "declare token @llvm.coro.id(i32, ptr, ptr, ptr)",
    "llvm.coro.size": "declare i64 @llvm.coro.size.i64()",
    "llvm.coro.begin": "declare ptr @llvm.coro.begin(token, ptr)",
    "llvm.coro.suspend": "declare i8 @llvm.coro.suspend(token, i1)",
    "llvm.coro.free": "declare ptr @llvm.coro.free(token, ptr)",
    "llvm.coro.end": "declare void @llvm.coro.end(ptr, i1, token)",
    "malloc": "declare ptr @malloc(i64)",
    "free": "declare void @free(ptr)",
}


class GridModule(LoweredModule):
    """A kernel, and copies of the native functions that it calls.

    ``shared_bytes``: what the threads of a block share; ``suspends``: do they wait for others?
    ``resident_blocks``: those that are to run on a multiprocessor at a time, if the kernel says.
    """

    root: GridSpec

    def __init__(self, to: Target) -> None:
        super().__init__(to)
        self.shared_bytes = 0
        self.suspends = False
        self.resident_blocks = 0

    def reserve(self, nbytes: int, align: int) -> int:
        """Where memory begins that a block's threads share."""
        start = -(-self.shared_bytes // align) * align
        self.shared_bytes = start + nbytes
        return start


class SimulatedModule(GridModule):
    """Gives ``frame = kernel(words, thread)``: a coroutine's handle, or null where it has ended.

    What is simulated is small: making faster code would take longer than it saves.
    """

    def __init__(self, to: Target) -> None:
        super().__init__(to)
        self.level = "none.0"

    def definition(self, spec: Spec, name: str, params: list[str], body: Statements) -> str:
        if spec is not self.root:
            return super().definition(spec, name, params, body)
        lines = [*body.allocas]
        if self.shared_bytes:
            offset = SIMULATED_THREAD.fields["shared_bytes"][0]
            lines += [
                f"  %shared.size = getelementptr i8, ptr %thread, i64 {offset}",
                f"  store i64 {self.shared_bytes}, ptr %shared.size",
            ]
        attributes, end = "#0", ""
        leave = "  ret ptr null"
        if self.suspends:
            for declared, text in _COROUTINES.items():
                self.declare(declared, text)
            lines.append(_BEGIN)
            self.level = "O0.0"  # which has the passes for coroutines
            attributes, end, leave = "presplitcoroutine #0", _END, "  br label %co.end"
        lines += [leave if line == "  ret void" else line for line in body.text()]
        head = f"define ptr @{name}({', '.join(params)}, ptr %thread) {attributes} {{"
        return "\n".join([head, "entry:", *lines, end, "}"])


class PtxModule(GridModule):
    """A kernel as NVIDIA's driver calls it; the launch's words are in its parameter space."""

    def definition(self, spec: Spec, name: str, params: list[str], body: Statements) -> str:
        if spec is not self.root:
            return super().definition(spec, name, params, body)
        (words,) = params
        words = f"ptr byval([{PARAMETER_WORDS} x i64]) align 8 %{words.rpartition('%')[2]}"
        head = f"define ptx_kernel void @{name}({words}) #2 {{"
        return "\n".join([head, "entry:", *body.allocas, *body.text(), "}"])

    def ir(self) -> str:
        threads = f'"nvvm.maxntid"="{self.root.threads}"'
        if self.resident_blocks:
            threads += f' "nvvm.minctasm"="{self.resident_blocks}"'
        return "\n".join([
            f'target triple = "{self.target.triple}"',
            *self.declarations.values(), *self.functions,
            "attributes #0 = { nounwind convergent }",
            "attributes #1 = { nounwind convergent noinline }",
            f"attributes #2 = {{ nounwind convergent {threads} }}",
            "!0 = !{i32 1}", "",
        ])  # fmt: skip


class SpirvModule(GridModule):
    """A kernel of OpenCL's; its one argument is the address of the launch's words.

    Pointers are generic ones (``addrspace(4)``): SPIR-V's back end takes plain ones for pointers to
    a function's own memory.
    """

    swaps = False  # do lanes show one another values?

    def definition(self, spec: Spec, name: str, params: list[str], body: Statements) -> str:
        lines, allocas = body.text(), []
        for line in body.allocas:
            place, _, made = line.strip().partition(" = ")
            allocas += [
                f"  {place}.own = {made}, addrspace(0)",
                f"  {place} = addrspacecast ptr addrspace(0) {place}.own to ptr",
            ]
        body.allocas = allocas
        if spec is not self.root:
            return super().definition(spec, name, params, body)
        (words,) = params
        words = f"%{words.rpartition('%')[2]}"
        given = f"  {words} = addrspacecast ptr addrspace(1) {words}.given to ptr"
        warp = " !intel_reqd_sub_group_size !1" if self.swaps else ""
        head = f"define spir_kernel void @{name}(ptr addrspace(1) {words}.given) #0{warp} {{"
        return "\n".join([head, "entry:", *body.allocas, given, *lines, "}"])

    def ir(self) -> str:
        text = "\n".join([*self.declarations.values(), *self.functions])
        text = re.sub(r"\bptr\b(?! addrspace\()", "ptr addrspace(4)", text)
        return "\n".join([
            f'target triple = "{self.target.triple}"',
            re.sub(r"(@llvm\.[\w.]*)", lambda found: found[1].replace(".p0", ".p4"), text),
            "attributes #0 = { nounwind convergent }",
            "attributes #1 = { nounwind convergent noinline }",
            "!0 = !{i32 1}", f"!1 = !{{i32 {WARP}}}", "",
        ])  # fmt: skip


MODULES: dict[str, type[GridModule]] = {
    "sim": SimulatedModule,
    "ptx": PtxModule,
    "spirv": SpirvModule,
}
