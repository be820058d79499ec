"""More pooling layers: unpooling, the p-norm of windows, windows at random places."""

from __future__ import annotations

from typing import Any

from antorcha.errors import ValueRangeError
from antorcha.nn import functional as F
from antorcha.nn.conv import repeated
from antorcha.nn.families import LayerFamily
from antorcha.nn.words import showing


class _MaxUnpoolNd(LayerFamily):
    """Puts each value back to the place that :class:`MaxPool{d}d` took it from; the rest is
    zero.

    Args:
        kernel_size (int or tuple): the size of the window
        stride (int or tuple, optional): steps of the window. Default: ``kernel_size``
        padding (int or tuple): what was added on both sides. Default: 0

    Shape: input and indices {shape} or without N; along each dim
    ``L_out = (L - 1)*stride - 2*padding + kernel_size``, or as the call's ``output_size`` says.

    >>> values, places = torch.nn.MaxPool{d}d(2, return_indices=True)(torch.ones({example}))
    >>> torch.nn.MaxUnpool{d}d(2)(values, places).shape
    torch.Size([{example}])
    """

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = repeated(kernel_size, self.ndim)
        self.stride = repeated(kernel_size if stride is None else stride, self.ndim)
        self.padding = repeated(padding, self.ndim)

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        """The values at their places, zeros elsewhere."""
        unpool = getattr(F, f"max_unpool{self.ndim}d")
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    extra_repr = showing("kernel_size=", "stride=", "padding=")


class MaxUnpool1d(_MaxUnpoolNd, ndim=1, example="1, 2, 6"): ...


class MaxUnpool2d(_MaxUnpoolNd, ndim=2, example="1, 2, 6, 4"): ...


class MaxUnpool3d(_MaxUnpoolNd, ndim=3, example="1, 2, 2, 4, 4"): ...


class _LPPoolNd(LayerFamily):
    """The p-norm of each window: ``(sum of x^p)^(1/p)``; infinity takes the largest ``|x|``.

    Args:
        norm_type (float): p
        kernel_size (int or tuple): the size of the window
        stride (int or tuple, optional): steps of the window. Default: ``kernel_size``
        ceil_mode (bool): round the output's size up? Default: False

    Shape: input {shape}; along each dim ``L_out = floor((L - kernel_size) / stride + 1)``.

    >>> torch.nn.LPPool{d}d(2, 2)(torch.ones({example})).shape
    torch.Size([{result}])
    """

    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]  # noqa: RUF012

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Any) -> Any:
        """The norm of each window."""
        pool = getattr(F, f"lp_pool{self.ndim}d")
        return pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    extra_repr = showing("norm_type=", "kernel_size=", "stride=", "ceil_mode=")


class LPPool1d(_LPPoolNd, ndim=1, example="1, 2, 6", result="1, 2, 3"): ...


class LPPool2d(_LPPoolNd, ndim=2, example="1, 2, 6, 4", result="1, 2, 3, 2"): ...


class LPPool3d(_LPPoolNd, ndim=3, example="1, 2, 2, 4, 4", result="1, 2, 1, 2, 2"): ...


class _FractionalMaxPoolNd(LayerFamily):
    """The largest element of each window; the windows' places are drawn at random, so
    that the output's size may be any part of the input's.

    Graham, "Fractional max-pooling" (2014).

    Args:
        kernel_size (int or tuple): the size of the window
        output_size (int or tuple, optional): how many windows along each dim
        output_ratio (float or tuple, optional): the same as a part of the input's size; give one of
            the two
        return_indices (bool): also give where the largest were found? Default: False

    Shape: input {shape} or without N.

    >>> torch.nn.FractionalMaxPool{d}d(2, output_size=3)(torch.ones({example})).shape
    torch.Size([{result}])
    """

    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]  # noqa: RUF012

    def __init__(
        self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        n = self.ndim
        self.kernel_size = repeated(kernel_size, n)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else repeated(output_size, n)
        self.output_ratio = None if output_ratio is None else repeated(output_ratio, n)
        if output_size is None and output_ratio is None:
            raise ValueRangeError(
                f"{type(self).__name__} requires specifying either an output size, or a pooling "
                "ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueRangeError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all([0 < r < 1 for r in self.output_ratio]):
            raise ValueRangeError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Any) -> Any:
        """The largest element of each window."""
        pool = getattr(F, f"fractional_max_pool{self.ndim}d")
        return pool(input, self.kernel_size, self.output_size, self.output_ratio,
                    self.return_indices, _random_samples=self._random_samples)  # fmt: skip


class FractionalMaxPool2d(
    _FractionalMaxPoolNd, ndim=2, example="1, 2, 5, 6", result="1, 2, 3, 3"
): ...


class FractionalMaxPool3d(
    _FractionalMaxPoolNd, ndim=3, example="1, 2, 5, 6, 5", result="1, 2, 3, 3, 3"
): ...
