"""Upsampling layers: an image made larger (or smaller) by :func:`interpolate`."""

from __future__ import annotations

from typing import Any

from antorcha.nn import functional as F
from antorcha.nn.module import Module
from antorcha.nn.words import showing


class Upsample(Module):
    """Resamples the last dims to another size.

    Args:
        size (int or tuple, optional): the output's spatial sizes
        scale_factor (float or tuple, optional): multiplies the input's; give one of the two
        mode (str): ``'nearest'`` and others. Default: ``'nearest'``
        align_corners (bool, optional): for the linear modes
        recompute_scale_factor (bool, optional): compute the scale again from the sizes

    Shape: input ``(N, C, W)``, ``(N, C, H, W)`` or ``(N, C, D, H, W)``.

    >>> torch.nn.Upsample(scale_factor=2)(torch.tensor([[[1., 2.]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    __constants__ = [  # noqa: RUF012
        "size", "scale_factor", "mode", "align_corners", "name", "recompute_scale_factor",
    ]  # fmt: skip

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, (tuple, list)):
            self.scale_factor: Any = tuple([float(f) for f in scale_factor])
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Any) -> Any:
        """The resampled input."""
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )  # fmt: skip

    def extra_repr(self) -> str:
        what = (
            f"scale_factor={self.scale_factor!r}" if self.scale_factor is not None
            else f"size={self.size!r}"
        )  # fmt: skip
        return f"{what}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Upsampling of images by repeating the nearest pixel.

    Args:
        size (int or tuple, optional): the output's (height, width)
        scale_factor (float or tuple, optional): multiplies the input's

    Shape: input ``(N, C, H, W)``, output ``(N, C, H_out, W_out)``.

    >>> torch.nn.UpsamplingNearest2d(scale_factor=2)(torch.ones(1, 1, 2, 2)).shape
    torch.Size([1, 1, 4, 4])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Upsampling of images, bilinear between the corners (``align_corners=True``).

    Args:
        size (int or tuple, optional): the output's (height, width)
        scale_factor (float or tuple, optional): multiplies the input's

    Shape: input ``(N, C, H, W)``, output ``(N, C, H_out, W_out)``.

    >>> torch.nn.UpsamplingBilinear2d(size=3)(torch.tensor([[[[0., 2.], [4., 6.]]]]))
    tensor([[[[0., 1., 2.],
              [2., 3., 4.],
              [4., 5., 6.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelShuffle(Module):
    """Rearranges ``(*, C*r^2, H, W)`` to ``(*, C, H*r, W*r)``: channels become pixels.

    Shi et al., "Real-time single image and video super-resolution using an efficient sub-pixel
    convolutional neural network" (2016).

    Args:
        upscale_factor (int): r

    >>> torch.nn.PixelShuffle(3)(torch.zeros(1, 9, 4, 4)).shape
    torch.Size([1, 1, 12, 12])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Any) -> Any:
        """The rearranged input."""
        return F.pixel_shuffle(input, self.upscale_factor)

    extra_repr = showing("upscale_factor=")


class PixelUnshuffle(Module):
    """Rearranges ``(*, C, H*r, W*r)`` to ``(*, C*r^2, H, W)``: undoes :class:`PixelShuffle`.

    Args:
        downscale_factor (int): r

    >>> torch.nn.PixelUnshuffle(3)(torch.zeros(1, 1, 12, 12)).shape
    torch.Size([1, 9, 4, 4])
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Any) -> Any:
        """The rearranged input."""
        return F.pixel_unshuffle(input, self.downscale_factor)

    extra_repr = showing("downscale_factor=")
