"""Layers of sliding blocks: Unfold, Fold."""

from __future__ import annotations

from typing import Any

from antorcha.nn import functional as F
from antorcha.nn.module import Module
from antorcha.nn.words import showing


class Fold(Module):
    """Adds blocks, given as columns, up to images: the transpose of :class:`Unfold`.

    Args:
        output_size (int or tuple): the images' height and width
        kernel_size (int or tuple): the blocks' height and width
        dilation (int or tuple): the distance of a block's elements. Default: 1
        padding (int or tuple): zeros on both sides of the images. Default: 0
        stride (int or tuple): the distance of the blocks. Default: 1

    Shape: input ``(N, C * taps, blocks)`` or ``(C * taps, blocks)``, result ``(N, C, H, W)`` or
    ``(C, H, W)``.

    >>> torch.nn.Fold((1, 3), (1, 2))(torch.ones(1, 2, 2))
    tensor([[[[1., 2., 1.]]]])
    """

    __constants__ = [  # noqa: RUF012
        "dilation", "kernel_size", "output_size", "padding", "stride",
    ]  # fmt: skip

    def __init__(
        self,
        output_size: Any,
        kernel_size: Any,
        dilation: Any = 1,
        padding: Any = 0,
        stride: Any = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Any) -> Any:
        """The images."""
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    extra_repr = showing("output_size=", "kernel_size=", "dilation=", "padding=", "stride=")


class Unfold(Module):
    """The sliding blocks of images, as columns.

    Args:
        kernel_size (int or tuple): the blocks' height and width
        dilation (int or tuple): the distance of a block's elements. Default: 1
        padding (int or tuple): zeros on both sides of the images. Default: 0
        stride (int or tuple): the distance of the blocks. Default: 1

    Shape: input ``(N, C, H, W)`` or ``(C, H, W)``, result ``(N, C * taps, blocks)`` or
    ``(C * taps, blocks)``.

    >>> torch.nn.Unfold((1, 2))(torch.arange(4.).reshape(1, 1, 2, 2))
    tensor([[[0., 2.],
             [1., 3.]]])
    """

    __constants__ = ["dilation", "kernel_size", "padding", "stride"]  # noqa: RUF012

    def __init__(
        self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Any) -> Any:
        """The blocks."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    extra_repr = showing("kernel_size=", "dilation=", "padding=", "stride=")
