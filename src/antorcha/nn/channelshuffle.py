"""ChannelShuffle: groups of channels mixed."""

from __future__ import annotations

from typing import Any

from antorcha.nn import functional as F
from antorcha.nn.module import Module
from antorcha.nn.words import showing


class ChannelShuffle(Module):
    """Deals the channels of ``(N, C, *)``, which lie in ``groups`` groups, one of each in turn.

    Zhang et al., "ShuffleNet: an extremely efficient convolutional neural network for mobile
    devices" (2018).

    Args:
        groups (int): how many groups

    >>> torch.nn.ChannelShuffle(2)(torch.arange(4.).reshape(1, 4, 1, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    __constants__ = ["groups"]  # noqa: RUF012

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Any) -> Any:
        """The rearranged input."""
        return F.channel_shuffle(input, self.groups)

    extra_repr = showing("groups=")
