"""Pooling layers: one value for each window of the input."""

from __future__ import annotations

from typing import Any, ClassVar

from antorcha.nn import functional as F
from antorcha.nn.families import LayerFamily
from antorcha.nn.words import showing


class _MaxPoolNd(LayerFamily):
    """The largest element of each window, over {dims}.

    Args:
        kernel_size (int or tuple): the size of the window
        stride (int or tuple, optional): steps of the window. Default: ``kernel_size``
        padding (int or tuple): minus infinity added on both sides. Default: 0
        dilation (int or tuple): steps between the elements under the window. Default: 1
        return_indices (bool): also give where the largest were found? Default: False
        ceil_mode (bool): round the output's size up? Default: False

    Shape: input {shape}; along each dim
    ``L_out = floor((L + 2*padding - dilation*(kernel_size - 1) - 1) / stride + 1)``.

    >>> torch.nn.MaxPool{d}d(2)(torch.zeros({example})).shape
    torch.Size([{result}])
    """

    __constants__ = [  # noqa: RUF012
        "kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode",
    ]  # fmt: skip

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    extra_repr = showing("kernel_size=", "stride=", "padding=", "dilation=", "ceil_mode=")

    def forward(self, input: Any) -> Any:
        """The largest element of each window."""
        pool = getattr(F, f"max_pool{self.ndim}d")
        return pool(input, self.kernel_size, self.stride, self.padding, self.dilation,
                    ceil_mode=self.ceil_mode, return_indices=self.return_indices)  # fmt: skip


class MaxPool1d(_MaxPoolNd, ndim=1, example="1, 2, 6", result="1, 2, 3"): ...


class MaxPool2d(_MaxPoolNd, ndim=2, example="1, 2, 6, 8", result="1, 2, 3, 4"): ...


class MaxPool3d(_MaxPoolNd, ndim=3, example="1, 2, 2, 6, 8", result="1, 2, 1, 3, 4"): ...


_DIVISOR = "\n        divisor_override (int, optional): divide by this instead of the window's size"


class _AvgPoolNd(LayerFamily):
    """The mean of each window, over {dims}.

    Args:
        kernel_size (int or tuple): the size of the window
        stride (int or tuple, optional): steps of the window. Default: ``kernel_size``
        padding (int or tuple): zeros added on both sides. Default: 0
        ceil_mode (bool): round the output's size up? Default: False
        count_include_pad (bool): do the zeros count in the mean? Default: True{divisor}

    Shape: input {shape}; along each dim
    ``L_out = floor((L + 2*padding - kernel_size) / stride + 1)``.

    >>> torch.nn.AvgPool{d}d(2)(torch.ones({example})).shape
    torch.Size([{result}])
    """

    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]  # noqa: RUF012

    extra_repr = showing("kernel_size=", "stride=", "padding=")


class AvgPool1d(_AvgPoolNd, ndim=1, example="1, 2, 6", result="1, 2, 3", divisor=""):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = (kernel_size,) if isinstance(kernel_size, int) else tuple(kernel_size)
        stride = kernel_size if stride is None else stride
        self.stride = (stride,) if isinstance(stride, int) else tuple(stride)
        self.padding = (padding,) if isinstance(padding, int) else tuple(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Any) -> Any:
        """The mean of each window."""
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                            self.count_include_pad)  # fmt: skip


class _AvgPoolWithDivisor(_AvgPoolNd):
    __constants__ = [  # noqa: RUF012
        "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override",
    ]  # fmt: skip

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Any) -> Any:
        """The mean of each window."""
        pool = getattr(F, f"avg_pool{self.ndim}d")
        return pool(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                    self.count_include_pad, self.divisor_override)  # fmt: skip


class AvgPool2d(
    _AvgPoolWithDivisor, ndim=2, example="1, 2, 6, 8", result="1, 2, 3, 4", divisor=_DIVISOR
): ...


class AvgPool3d(
    _AvgPoolWithDivisor, ndim=3, example="1, 2, 2, 6, 8", result="1, 2, 1, 3, 4", divisor=_DIVISOR
): ...


class _AdaptivePoolNd(LayerFamily):
    """The {what} of each of ``output_size`` windows that cover the input, over {dims}.

    Window i of n over L elements is ``[floor(i*L/n), ceil((i+1)*L/n))``.

    Args:
        output_size (int, None or tuple): windows along each dim; None keeps the input's size{more}

    Shape: input {shape}, output the same with ``output_size`` in the last {d} dims.

    >>> torch.nn.Adaptive{name}Pool{d}d(2)(torch.zeros({example})).shape
    torch.Size([{result}])
    """

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    extra_repr = showing("output_size=")


class _AdaptiveAvgPoolNd(_AdaptivePoolNd):
    _words: ClassVar[dict[str, str]] = {"what": "mean", "name": "Avg", "more": ""}
    __constants__ = ["output_size"]  # noqa: RUF012

    def forward(self, input: Any) -> Any:
        """The means."""
        return getattr(F, f"adaptive_avg_pool{self.ndim}d")(input, self.output_size)


class _AdaptiveMaxPoolNd(_AdaptivePoolNd):
    _words: ClassVar[dict[str, str]] = {
        "what": "largest element", "name": "Max",
        "more": "\n        return_indices (bool): also give where the largest were found? "
                "Default: False",
    }  # fmt: skip
    __constants__ = ["output_size", "return_indices"]  # noqa: RUF012

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Any) -> Any:
        """The largest elements."""
        pool = getattr(F, f"adaptive_max_pool{self.ndim}d")
        return pool(input, self.output_size, self.return_indices)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd, ndim=1, example="1, 4, 7", result="1, 4, 2"): ...


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd, ndim=2, example="1, 4, 7, 5", result="1, 4, 2, 2"): ...


class AdaptiveAvgPool3d(
    _AdaptiveAvgPoolNd, ndim=3, example="1, 4, 7, 5, 6", result="1, 4, 2, 2, 2"
): ...


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd, ndim=1, example="1, 4, 7", result="1, 4, 2"): ...


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd, ndim=2, example="1, 4, 7, 5", result="1, 4, 2, 2"): ...


class AdaptiveMaxPool3d(
    _AdaptiveMaxPoolNd, ndim=3, example="1, 4, 7, 5, 6", result="1, 4, 2, 2, 2"
): ...
