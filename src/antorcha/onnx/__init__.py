"""``torch.onnx``: programs ask whether they are being exported; there is no export.

See https://docs.pytorch.org/docs/stable/onnx.html.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from antorcha.core import absent

producer_name = "pytorch"
producer_version = "2.13.0"


def is_in_onnx_export() -> bool:
    """False: nothing is ever exported.

    >>> torch.onnx.is_in_onnx_export()
    False
    """
    return False


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int
) -> None:
    """Accepts how an operator, ``"namespace::name"``, is to be exported; there is no export that
    would ask for it."""
    if not re.fullmatch(r"[a-zA-Z0-9-_]+::[a-zA-Z-_]+[a-zA-Z0-9-_]*", symbolic_name):
        raise OnnxExporterError(
            f"Failed to register operator {symbolic_name}. The symbolic name must match the format "
            "domain::name, and should start with a letter and contain only alphanumerical "
            "characters"
        )


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Forgets what :func:`register_custom_op_symbolic` was told."""


class OnnxExporterError(RuntimeError):
    """An export that failed; programs catch it."""


__getattr__ = absent.names("torch.onnx", globals())
