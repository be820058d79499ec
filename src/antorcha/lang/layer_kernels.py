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
