"""``torch.utils._contextlib``: context managers that decorate functions, for libraries' own."""

from __future__ import annotations

from antorcha.core.contexts import DecoratorContextManager as _DecoratorContextManager
from antorcha.core.contexts import (
    NoParamDecoratorContextManager as _NoParamDecoratorContextManager,
)
from antorcha.core.contexts import context_decorator

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager", "context_decorator"]
