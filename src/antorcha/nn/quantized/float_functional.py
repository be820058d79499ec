"""FloatFunctional: a module for each sum and product, which quantization would observe."""

from __future__ import annotations

from typing import Any

from antorcha.errors import GraphError
from antorcha.nn import functional as F
from antorcha.nn.linear import Identity
from antorcha.nn.module import Module
from antorcha.ops.kinds.record import T


class FloatFunctional(Module):
    """Sums, products and joins as methods, each seen by ``activation_post_process``.

    See https://docs.pytorch.org/docs/stable/generated/
    torch.ao.nn.quantized.FloatFunctional.html.

    >>> torch.nn.quantized.FloatFunctional().add(torch.ones(2), torch.ones(2))
    tensor([2., 2.])
    """

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = Identity()

    def forward(self, x: Any) -> Any:
        """Raises: call one of the other methods."""
        raise GraphError("FloatFunctional is not intended to use the 'forward'. Please use the "
                         "underlying operation")  # fmt: skip

    def add(self, x: Any, y: Any) -> Any:
        """``x + y``."""
        return self.activation_post_process(T.add(x, y))

    def add_scalar(self, x: Any, y: float) -> Any:
        """``x + y``, a number."""
        return T.add(x, y)

    def mul(self, x: Any, y: Any) -> Any:
        """``x * y``."""
        return self.activation_post_process(T.mul(x, y))

    def mul_scalar(self, x: Any, y: float) -> Any:
        """``x * y``, a number."""
        return T.mul(x, y)

    def cat(self, x: Any, dim: int = 0) -> Any:
        """The tensors joined."""
        return self.activation_post_process(T.cat(x, dim))

    def add_relu(self, x: Any, y: Any) -> Any:
        """``relu(x + y)``."""
        return self.activation_post_process(F.relu(T.add(x, y)))

    def matmul(self, x: Any, y: Any) -> Any:
        """``x @ y``."""
        return self.activation_post_process(T.matmul(x, y))
