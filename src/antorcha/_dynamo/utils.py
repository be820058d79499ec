"""``torch._dynamo.utils``: what libraries ask of it."""

from __future__ import annotations

from typing import Any

from antorcha.errors import explain_missing


def is_compile_supported(device_type: Any) -> bool:
    """False: programs run eagerly."""
    return False


def compile_times(repr: str = "str", aggregate: bool = False) -> Any:
    """How long functions took to compile: none has been."""
    return "TorchDynamo compilation metrics:\n" if repr == "str" else ([], [])


explain_missing("torch._dynamo.utils", globals())
