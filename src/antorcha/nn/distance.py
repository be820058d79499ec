"""Distances between vectors: CosineSimilarity, PairwiseDistance."""

from __future__ import annotations

from typing import Any

from antorcha.nn import functional as F
from antorcha.nn.module import Module


class PairwiseDistance(Module):
    """The p-norm of the difference of two batches of vectors: ``||x1 - x2 + eps||_p``.

    Args:
        p (float): which norm. Default: 2
        eps (float): keeps the gradient finite at zero. Default: 1e-6
        keepdim (bool): keep the vectors' dim, of size 1? Default: False

    Shape: inputs ``(N, D)`` or ``(D)``, output ``(N)`` or ``()``.

    >>> torch.nn.PairwiseDistance()(torch.zeros(1, 2), torch.tensor([[3., 4.]]))
    tensor([5.0000])
    """

    __constants__ = ["norm", "eps", "keepdim"]  # noqa: RUF012

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Any, x2: Any) -> Any:
        """The distances."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between vectors: ``x1.x2 / max(||x1|| * ||x2||, eps)``.

    Args:
        dim (int): along which dim the vectors lie. Default: 1
        eps (float): keeps the quotient finite. Default: 1e-8

    Shape: two tensors that broadcast; the output lacks dim ``dim``.

    >>> torch.nn.CosineSimilarity()(torch.ones(1, 2), torch.ones(1, 2))
    tensor([1.0000])
    """

    __constants__ = ["dim", "eps"]  # noqa: RUF012

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Any, x2: Any) -> Any:
        """The cosines."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
