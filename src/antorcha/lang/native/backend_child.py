"""A process of its own for LLVM's back ends of GPUs: what they cannot select ends the process.

Run as a script by ``backend``; it imports nothing of antorcha. It reads jobs from its standard
input (a line of JSON, then the IR) and answers each with a line of JSON and the image.
"""

from __future__ import annotations

import json
import sys
from typing import Any, BinaryIO

import llvmlite.binding as llvm


def compiled(job: dict[str, Any], ir: str) -> bytes:
    """The target's image of a module: assembly text, or binary."""
    module = llvm.parse_assembly(ir)
    module.verify()
    machine = llvm.Target.from_triple(module.triple).create_target_machine(
        cpu=job["cpu"], features=job["features"], opt=job["generator"]
    )
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=job["level"])
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    if job["text"]:
        return str(machine.emit_assembly(module)).encode()
    return bytes(machine.emit_object(module))


def serve(jobs: BinaryIO, answers: BinaryIO) -> None:
    """Answers jobs until there are no more."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for line in jobs:
        job = json.loads(line)
        ir = jobs.read(job["size"]).decode()
        try:
            error, image = "", compiled(job, ir)
        except RuntimeError as problem:
            error, image = str(problem), b""
        answers.write(json.dumps({"error": error, "size": len(image)}).encode() + b"\n" + image)
        answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
