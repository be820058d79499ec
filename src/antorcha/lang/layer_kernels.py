"""Descriptions of kernels that a single layer wants; those of many are in ``lang/kernels``."""

from __future__ import annotations

from collections.abc import Callable

from antorcha.core.structs import struct


@struct
class Ctc:
    """Connectionist temporal classification: each sample's loss, or with ``gradient`` the gradient
    of the log probabilities.

    The inputs: log probabilities (T, N, C), labels (N, S) or joined, the inputs' and the targets'
    lengths (N, int64); a gradient has before these that of the losses and the losses. Wrong values
    stop it: ``refuse(what, value)`` is raised, ``what`` being one of `CTC_FAULTS`.
    """

    blank: int
    zero_infinity: bool
    refuse: Callable[[str, int], BaseException]
    gradient: bool = False


CTC_FAULTS = ("", "negative input", "negative target", "long input", "few labels", "long target",
              "label")  # fmt: skip


@struct
class GridSample:
    """The elements of images at any places, as ``nn.functional.grid_sample`` reads them, or one of
    the gradients of that.

    ``mode``: 0 linear, 1 nearest, 2 cubic; ``padding``: 0 zeros, 1 the border, 2 reflection. With
    images x of (N, C, spatial), places of (N, out, dims) and results y of (N, C, out), ``kind`` is

    "values": y, of x and places.
    "images": the gradient of x, of y's gradient and places.
    "places": the gradient of the places, of y's gradient, x and places.
    """

    kind: str
    mode: int
    padding: int
    align: bool
