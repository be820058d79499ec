"""``torch._dynamo.exc``: errors of PyTorch's compiler, which programs catch. Of them
``torch.compile`` here raises InvalidBackend."""

from __future__ import annotations

from antorcha.compiler.eager import InvalidBackend
from antorcha.errors import explain_missing


class TorchDynamoException(RuntimeError):
    """The base of the compiler's errors."""


class Unsupported(TorchDynamoException):
    """Code that PyTorch's compiler cannot capture."""


class BackendCompilerFailed(TorchDynamoException):
    """A backend that failed."""


class InternalTorchDynamoError(TorchDynamoException):
    """A fault of PyTorch's compiler itself."""


class UserError(Unsupported):
    """Code that should be written otherwise for PyTorch's compiler."""


class TensorifyScalarRestartAnalysis(TorchDynamoException):
    """A second pass of PyTorch's compiler."""


__all__ = ["BackendCompilerFailed", "InternalTorchDynamoError", "InvalidBackend",
           "TensorifyScalarRestartAnalysis", "TorchDynamoException", "Unsupported",
           "UserError"]  # fmt: skip

explain_missing("torch._dynamo.exc", globals())
