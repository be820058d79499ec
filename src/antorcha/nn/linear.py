"""Linear maps: Identity, Linear, Bilinear."""

from __future__ import annotations

import math
from typing import Any

from antorcha.nn import functional as F
from antorcha.nn import init
from antorcha.nn.module import Module
from antorcha.nn.parameter import add_parameter
from antorcha.nn.words import showing


class Identity(Module):
    """Gives its input back; takes any arguments and ignores them.

    Shape: any; the output is the input.

    >>> torch.nn.Identity(54, unused=True)(torch.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """The input."""
        return input


class Linear(Module):
    r"""An affine map: ``y = x A^T + b``.

    Args:
        in_features (int): size of each input sample
        out_features (int): size of each output sample
        bias (bool): learn ``b``? Default: True

    Shape: input ``(*, in_features)``, output ``(*, out_features)``.

    Weight ``(out_features, in_features)`` and bias ``(out_features)`` start uniform in
    ``(-1/sqrt(in_features), 1/sqrt(in_features))`` (LeCun et al., "Efficient BackProp", 1998).

    >>> torch.nn.Linear(20, 30)(torch.zeros(128, 20)).shape
    torch.Size([128, 30])
    """

    __constants__ = ["in_features", "out_features"]  # noqa: RUF012
    in_features: int
    out_features: int

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        add_parameter(self, "weight", (out_features, in_features), device, dtype)
        add_parameter(self, "bias", out_features, device, dtype, wanted=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias afresh."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))  # a = sqrt(5): bound 1/sqrt(fan_in)
        if self.bias is not None:
            init.uniform_by_fan_in(self.weight, self.bias)

    def forward(self, input: Any) -> Any:
        """``input @ weight.T + bias``."""
        own = self._parameters  # quicker than attributes, which Module looks up last
        weight, bias = own.get("weight"), own.get("bias")
        if weight is None:
            weight = self.weight
        if bias is None and "bias" not in own:
            bias = self.bias
        return F.linear(input, weight, bias)

    extra_repr = showing("in_features=", "out_features=", "bias=")


class NonDynamicallyQuantizableLinear(Linear):
    """Linear by another name: PyTorch's quantiser leaves it alone, here there is no difference."""


class Bilinear(Module):
    r"""A bilinear map: ``y_k = x1^T A_k x2 + b_k``.

    Args:
        in1_features, in2_features (int): sizes of the two inputs' samples
        out_features (int): size of each output sample
        bias (bool): learn ``b``? Default: True

    Shape: inputs ``(*, in1_features)`` and ``(*, in2_features)``, output ``(*, out_features)``.

    Weight ``(out, in1, in2)`` and bias start uniform in ``(-1/sqrt(in1), 1/sqrt(in1))``.

    >>> torch.nn.Bilinear(20, 30, 40)(torch.zeros(8, 20), torch.zeros(8, 30)).shape
    torch.Size([8, 40])
    """

    __constants__ = ["in1_features", "in2_features", "out_features"]  # noqa: RUF012

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        add_parameter(self, "weight", (out_features, in1_features, in2_features), device, dtype)
        add_parameter(self, "bias", out_features, device, dtype, wanted=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias afresh."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Any, input2: Any) -> Any:
        """The bilinear form of the two inputs."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    extra_repr = showing("in1_features=", "in2_features=", "out_features=", "bias=")
