"""``torch.nn.utils.skip_init``: a module whose parameters are not drawn."""

from __future__ import annotations

import inspect
from typing import Any

from antorcha.errors import ShapeError
from antorcha.nn.module import Module


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A module with parameters whose elements are not set: for one that is loaded next.

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.skip_init.html.

    >>> torch.nn.utils.skip_init(torch.nn.Linear, 5, 1)
    Linear(in_features=5, out_features=1, bias=True)
    """
    if not issubclass(module_cls, Module):
        raise ShapeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise ShapeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)
