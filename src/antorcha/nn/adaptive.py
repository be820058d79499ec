"""AdaptiveLogSoftmaxWithLoss: a softmax over very many classes, most of them rare."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from antorcha.errors import ShapeError, ValueRangeError
from antorcha.nn import functional as F
from antorcha.nn.containers import ModuleList, Sequential
from antorcha.nn.linear import Linear
from antorcha.nn.module import Module
from antorcha.ops.kinds.record import T


class _ASMoutput(NamedTuple):
    output: Any  # the log probability of each target
    loss: Any


_ASMoutput.__name__ = _ASMoutput.__qualname__ = "ASMoutput"


class AdaptiveLogSoftmaxWithLoss(Module):
    """The negative log likelihood of classes that are sorted by how often they occur.

    The frequent classes, and one entry for each cluster of rarer ones, share a *head*; a cluster
    has a smaller projection of its own, of ``in_features / div_value^k`` columns. The log
    probability of a rare class is its cluster's plus its own within the cluster.

    Grave et al., "Efficient softmax approximation for GPUs" (2017).

    Args:
        in_features (int): size of each input sample
        n_classes (int): the number of classes
        cutoffs (sequence of int): where each cluster begins, rising
        div_value (float): how much smaller each cluster's projection is. Default: 4
        head_bias (bool): does the head have a bias? Default: False

    Shape: input ``(N, in_features)`` or ``(in_features)``, target ``(N)`` or ``()``; gives
    ``(output, loss)``: each target's log probability, and the mean of their negatives.

    The weights of head and clusters are initialised as Linear's.

    >>> layer = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10])
    >>> layer(torch.zeros(2, 8), torch.tensor([1, 12])).output.shape
    torch.Size([2])
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueRangeError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(set(cutoffs)) or min(cutoffs) <= 0 or max(cutoffs) > n_classes - 1
            or any([int(c) != c for c in cutoffs])
        ):  # fmt: skip
            raise ValueRangeError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
                "order, where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        where = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **where)
        self.tail = ModuleList()
        for k, (low, high) in enumerate(pairwise(self.cutoffs)):
            columns = int(in_features // div_value ** (k + 1))
            self.tail.append(Sequential(
                Linear(in_features, columns, bias=False, **where),
                Linear(columns, high - low, bias=False, **where),
            ))  # fmt: skip

    def reset_parameters(self) -> None:
        """Draws all weights afresh."""
        self.head.reset_parameters()
        for cluster in self.tail:
            for layer in cluster.children():
                layer.reset_parameters()

    def forward(self, input_: Any, target_: Any) -> _ASMoutput:
        """Each target's log probability, and the loss."""
        self._check(input_, target_)
        batched = target_.dim() > 0
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        output = T.zeros((target.size(0),), dtype=input.dtype, device=input.device)
        entries = target  # of the head: the class, or its cluster
        used = int((target.ge(0) & target.lt(self.shortlist_size)).sum())
        for k, (low, high) in enumerate(pairwise(self.cutoffs)):
            mask = target.ge(low) & target.lt(high)
            rows = mask.nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            inside = F.log_softmax(self.tail[k](input.index_select(0, rows)), dim=1)
            chosen = inside.gather(1, (target[mask] - low).unsqueeze(1)).squeeze(1)
            entries = entries.index_fill(0, rows, self.shortlist_size + k)
            output = output.index_copy(0, rows, chosen)
            used += rows.numel()
        if used != target.size(0):
            raise ShapeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, entries.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _check(self, input: Any, target: Any) -> None:
        if target.dim() > 1:
            raise ShapeError("0D or 1D target tensor expected, multi-target not supported")
        if target.dim() == 1 and input.size(0) != target.size(0):
            raise ShapeError("Input and target should have the same size in the batch dimension.")
        if input.dim() != target.dim() + 1:
            raise ShapeError(
                f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but "
                f"found inputs with size {input.size()}"
            )

    def log_prob(self, input: Any) -> Any:
        """The log probabilities of all classes: ``(N, n_classes)``."""
        return self._full(input, self.head(input))

    def _full(self, input: Any, head_output: Any) -> Any:
        head = F.log_softmax(head_output, dim=1)
        parts = [head.narrow(1, 0, self.shortlist_size)]
        for k, cluster in enumerate(self.tail):
            own = head.narrow(1, self.shortlist_size + k, 1)
            parts.append(F.log_softmax(cluster(input), dim=1) + own)
        return T.cat(parts, 1)

    def predict(self, input: Any) -> Any:
        """The most probable class of each sample, ``self.log_prob(input).argmax(1)``; where the
        head decides, the clusters are not asked."""
        head = self.head(input)
        found = head.argmax(1)
        rare = found.ge(self.shortlist_size)
        if not bool(rare.any()):
            return found
        found[rare] = self._full(input[rare], head[rare]).argmax(1)
        return found
