"""Convolution layers: Conv1d, Conv2d, Conv3d and their transposes."""

from __future__ import annotations

import math
from typing import Any

from antorcha.errors import ValueRangeError
from antorcha.nn import functional as F
from antorcha.nn import init
from antorcha.nn.families import LayerFamily
from antorcha.nn.parameter import add_parameter

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


def repeated(value: Any, n: int) -> tuple[Any, ...]:
    """One number for each dim; a sequence is taken as it is."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * n


class _ConvNd(LayerFamily):
    """What all convolutions share: the parameters and how they are printed."""

    __constants__ = [  # noqa: RUF012
        "stride", "padding", "dilation", "groups", "padding_mode", "output_padding", "in_channels",
        "out_channels", "kernel_size",
    ]  # fmt: skip
    bias: Any  # Parameter or None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: Any,
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check(in_channels, out_channels, groups, padding, padding_mode, stride, kernel_size)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = _padding_pairs(padding, kernel_size, dilation)
        channels = (
            (in_channels, out_channels // groups)
            if transposed else (out_channels, in_channels // groups)
        )  # fmt: skip
        add_parameter(self, "weight", (*channels, *kernel_size), device, dtype)
        add_parameter(self, "bias", out_channels, device, dtype, wanted=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias afresh: uniform in (-1/sqrt(k), 1/sqrt(k)) with k inputs to each
        output."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None and init._calculate_fan_in_and_fan_out(self.weight)[0]:
            init.uniform_by_fan_in(self.weight, self.bias)

    def extra_repr(self) -> str:
        zero = (0,) * len(self.kernel_size)
        one = (1,) * len(self.kernel_size)
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        if self.padding != zero:
            text += f", padding={self.padding}"
        if self.dilation != one:
            text += f", dilation={self.dilation}"
        if self.output_padding != zero:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")

    def _conv_forward(self, input: Any, weight: Any, bias: Any) -> Any:
        """The convolution with this layer's padding; layers that change the weight call it."""
        fn = getattr(F, f"conv{self.ndim}d")
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0,) * len(self.stride)
        return fn(input, weight, bias, self.stride, padding, self.dilation, self.groups)


def _check(
    in_channels: int, out_channels: int, groups: int, padding: Any, padding_mode: str,
    stride: Any, kernel_size: Any,
) -> None:  # fmt: skip
    if groups <= 0:
        raise ValueRangeError("groups must be a positive integer")
    if in_channels % groups:
        raise ValueRangeError("in_channels must be divisible by groups")
    if out_channels % groups:
        raise ValueRangeError("out_channels must be divisible by groups")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueRangeError(
                f"Invalid padding string {padding!r}, should be one of same, valid"
            )
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueRangeError("padding='same' is not supported for strided convolutions")
    if padding_mode not in PADDING_MODES:
        raise ValueRangeError(
            f"padding_mode must be one of {sorted(PADDING_MODES)}, but got "
            f"padding_mode='{padding_mode}'"
        )


def _padding_pairs(padding: Any, kernel_size: Any, dilation: Any) -> Any:
    """What ``F.pad`` wants for this padding: (before, after) for each dim, the last dim first."""
    pairs: list[int] = []
    for k in reversed(range(len(kernel_size))):
        if padding == "same":
            total = dilation[k] * (kernel_size[k] - 1)
            pairs += [total // 2, total - total // 2]
        elif padding == "valid":
            pairs += [0, 0]
        else:
            pairs += [padding[k], padding[k]]
    return pairs if isinstance(padding, str) else tuple(pairs)


class _Conv(_ConvNd):
    """A convolution (cross-correlation) over {over} of input with several channels.

    ``out[n, o] = bias[o] + sum_c weight[o, c] * input[n, c]``, ``*`` being the valid
    {d}-dimensional cross-correlation.

    Args:
        in_channels, out_channels (int): the numbers of channels
        kernel_size (int or tuple): the size of the window
        stride (int or tuple): steps of the window. Default: 1
        padding (int, tuple, 'same' or 'valid'): added on both sides. Default: 0
        dilation (int or tuple): steps between the elements under the window. Default: 1
        groups (int): the channels are divided into groups that do not see each other. Default: 1
        bias (bool): learn an addend for each output channel? Default: True
        padding_mode (str): 'zeros', 'reflect', 'replicate' or 'circular'. Default: 'zeros'

    Shape: input {shape_in} (or without N), output {shape_out} with
    ``L_out = floor((L + 2*padding - dilation*(kernel_size - 1) - 1) / stride + 1)`` along each dim.

    Weight ``(out_channels, in_channels/groups, *kernel_size)`` and bias start uniform in
    ``(-1/sqrt(k), 1/sqrt(k))``, ``k = in_channels/groups * prod(kernel_size)``.

    >>> torch.nn.Conv{d}d(16, 33, 3, stride=2)(torch.zeros({example})).shape
    torch.Size([{result}])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        n = self.ndim
        super().__init__(
            in_channels, out_channels, repeated(kernel_size, n), repeated(stride, n),
            padding if isinstance(padding, str) else repeated(padding, n), repeated(dilation, n),
            False, (0,) * n, groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input: Any) -> Any:
        """The convolution of the input with the weight."""
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(
    _Conv, ndim=1, over="one dim", shape_in="(N, C_in, L)", shape_out="(N, C_out, L_out)",
    example="20, 16, 50", result="20, 33, 24",
): ...  # fmt: skip


class Conv2d(
    _Conv, ndim=2, over="the last two dims", shape_in="(N, C_in, H, W)",
    shape_out="(N, C_out, H_out, W_out)", example="20, 16, 50, 100", result="20, 33, 24, 49",
): ...  # fmt: skip


class Conv3d(
    _Conv, ndim=3, over="the last three dims", shape_in="(N, C_in, D, H, W)",
    shape_out="(N, C_out, D_out, H_out, W_out)", example="2, 16, 5, 7, 9", result="2, 33, 2, 3, 4",
): ...  # fmt: skip


class _ConvTransposeNd(_ConvNd):
    """The transpose of a convolution over {dims}: its gradient with respect to its input.

    It enlarges its input by ``stride``; also called deconvolution, which it is not.

    Args:
        in_channels, out_channels (int): the numbers of channels
        kernel_size, stride, padding, dilation (int or tuple): as of the convolution that this one
            is the transpose of
        output_padding (int or tuple): added to one side of the output's size. Default: 0
        groups (int): the channels are divided into groups that do not see each other. Default: 1
        bias (bool): learn an addend for each output channel? Default: True
        padding_mode (str): only 'zeros'

    Shape: input ``(N, C_in, *)``, output ``(N, C_out, *)`` with
    ``L_out = (L - 1)*stride - 2*padding + dilation*(kernel_size - 1) + output_padding + 1``.

    Weight ``(in_channels, out_channels/groups, *kernel_size)`` and bias start uniform in
    ``(-1/sqrt(k), 1/sqrt(k))``, ``k = out_channels/groups * prod(kernel_size)``.

    >>> torch.nn.ConvTranspose{d}d(4, 6, 3, stride=2)
    ConvTranspose{d}d(4, 6, kernel_size={k}, stride={s})
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        n = self.ndim
        if padding_mode != "zeros":
            raise ValueRangeError(
                f'Only "zeros" padding mode is supported for {type(self).__name__}'
            )
        super().__init__(
            in_channels, out_channels, repeated(kernel_size, n), repeated(stride, n),
            repeated(padding, n), repeated(dilation, n), True, repeated(output_padding, n), groups,
            bias, padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input: Any, output_size: Any = None) -> Any:
        """The transposed convolution; ``output_size`` chooses among the sizes that fit."""
        fn = getattr(F, f"conv_transpose{self.ndim}d")
        extra = self._output_padding(input, output_size)
        return fn(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups,
                  self.dilation)  # fmt: skip

    def _output_padding(self, input: Any, output_size: Any) -> tuple[int, ...]:
        """What to add at the end of each dim so that the output has the size asked for."""
        if output_size is None:
            return self.output_padding
        n = self.ndim
        sizes = [int(v) for v in output_size][-n:] if len(output_size) in (n, n + 2) else None
        if sizes is None:
            raise ValueRangeError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or "
                f"{n + 2} elements (got {len(output_size)})"
            )
        smallest = [
            (input.size(k - n) - 1) * self.stride[k] - 2 * self.padding[k]
            + self.dilation[k] * (self.kernel_size[k] - 1) + 1
            for k in range(n)
        ]  # fmt: skip
        largest = [m + s - 1 for m, s in zip(smallest, self.stride, strict=True)]
        if any(not a <= v <= b for a, v, b in zip(smallest, sizes, largest, strict=True)):
            raise ValueRangeError(
                f"requested an output size of {output_size}, but valid sizes range from {smallest} "
                f"to {largest} (for an input of {list(input.size()[2:])})"
            )
        return tuple([v - m for v, m in zip(sizes, smallest, strict=True)])


class ConvTranspose1d(_ConvTransposeNd, ndim=1, k="(3,)", s="(2,)"): ...


class ConvTranspose2d(_ConvTransposeNd, ndim=2, k="(3, 3)", s="(2, 2)"): ...


class ConvTranspose3d(_ConvTransposeNd, ndim=3, k="(3, 3, 3)", s="(2, 2, 2)"): ...
