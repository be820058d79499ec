"""``torch.onnx.symbolic_helper``: libraries write down how their operators would be exported."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from antorcha.core import absent
from antorcha.errors import MissingFeature


def parse_args(*arg_descriptors: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a function that writes an operator in ONNX. Only an export calls it, and there is
    none: a call raises NotImplementedError."""

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def refuse(*args: Any, **kwargs: Any) -> Any:
            raise MissingFeature(f"{fn.__name__}: {absent.reason('torch.onnx')}")

        return refuse

    return decorate


__getattr__ = absent.names("torch.onnx.symbolic_helper", globals())
