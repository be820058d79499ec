"""The compiler proper: syntax trees of native functions to SSA text. Loaded only to compile."""

from antorcha.lang.native.lower.module import lower

__all__ = ["lower"]
