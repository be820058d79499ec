"""Loss layers: each is the function of the same name in ``torch.nn.functional``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from antorcha.errors import ArgumentError
from antorcha.nn import functional as F
from antorcha.nn._reduction import legacy_get_string
from antorcha.nn.distance import PairwiseDistance
from antorcha.nn.families import LayerFamily

_OF_REDUCTION = ("size_average", "reduce", "reduction")


def _reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction, PyTorch's deprecated arguments considered."""
    if size_average is None and reduce is None:
        return reduction
    return legacy_get_string(size_average, reduce)


class _Loss(LayerFamily):
    """{formula}

    {paper}Args:{args}
        reduction (str): ``'mean'``, ``'sum'`` or ``'none'``. Default: ``'mean'``
        size_average, reduce: deprecated

    Shape: {shape}; the result is a number, or the shape of the losses with ``'none'``.

    >>> torch.nn.{name}({init})({call})
    {result}
    """

    _words: ClassVar[dict[str, str]] = {"init": "", "shape": "input and target alike"}
    _fn: str = ""  # in torch.nn.functional
    _settings: tuple[str, ...] = ()  # arguments of the constructor that the function takes by name

    def __init_subclass__(cls, fn: str = "", args: str = "", paper: str = "", **words: Any) -> None:
        if fn:
            cls._fn, code = fn, cls.__init__.__code__
            names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
            cls._settings = tuple([name for name in names if name not in _OF_REDUCTION])
            words["args"] = "".join([f"\n        {line}" for line in args.split("\n") if line])
            words["paper"] = f"{paper}\n\n    " if paper else ""
        super().__init_subclass__(**words)

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.reduction = _reduction(size_average, reduce, reduction)

    def _keep(self, **settings: Any) -> None:
        """Keeps arguments of the constructor as attributes; weights are buffers."""
        for name, value in settings.items():
            if name.endswith("weight"):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def _of(self, *inputs: Any) -> Any:
        """The loss of these inputs."""
        given = {name: getattr(self, name) for name in self._settings}
        return getattr(F, self._fn)(*inputs, reduction=self.reduction, **given)


class _LossOfTwo(_Loss):
    def forward(self, input: Any, target: Any) -> Any:
        """The loss."""
        return self._of(input, target)


class _WeightedLoss(_LossOfTwo):
    def __init__(
        self,
        weight: Any = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self._keep(weight=weight)


_ONE_TWO = "torch.tensor([1., 2.]), torch.tensor([1., 4.])"


class L1Loss(
    _LossOfTwo, fn="l1_loss", formula="The absolute error: ``|x - y|``.", call=_ONE_TWO,
    result="tensor(1.)",
):  # fmt: skip
    __constants__ = ["reduction"]  # noqa: RUF012


class MSELoss(
    _LossOfTwo, fn="mse_loss", formula="The squared error: ``(x - y)^2``.", call=_ONE_TWO,
    result="tensor(2.)",
):  # fmt: skip
    __constants__ = ["reduction"]  # noqa: RUF012


class SmoothL1Loss(
    _LossOfTwo, fn="smooth_l1_loss",
    formula="``(x - y)^2 / (2*beta)`` where ``|x - y| < beta``, else ``|x - y| - beta/2``.",
    call=_ONE_TWO, result="tensor(0.7500)",
    args="beta (float): where the parabola ends. Default: 1.0",
    paper='Girshick, "Fast R-CNN" (2015).',
):  # fmt: skip
    __constants__ = ["reduction"]  # noqa: RUF012

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self._keep(beta=beta)


class HuberLoss(
    _LossOfTwo, fn="huber_loss",
    formula="``(x - y)^2 / 2`` where ``|x - y| < delta``, else ``delta * (|x - y| - delta/2)``.",
    call=_ONE_TWO, result="tensor(0.7500)",
    args="delta (float): where the parabola ends. Default: 1.0",
):  # fmt: skip
    __constants__ = ["reduction", "delta"]  # noqa: RUF012

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        if not isinstance(delta, (float, int)):
            raise ArgumentError(f"HuberLoss: delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self._keep(delta=delta)


_CLASSES = (
    "weight (Tensor, optional): a weight for each class\n"
    "ignore_index (int): targets with this value do not count. Default: -100"
)


class NLLLoss(
    _WeightedLoss, fn="nll_loss",
    formula="The negative log likelihood: ``-weight[y] * x[y]``, x being log probabilities; the "
        "mean is weighted.", call="torch.tensor([[-1., -2.]]), torch.tensor([1])",
    result="tensor(2.)", args=_CLASSES,
    shape="input ``(N, C, ...)``, target ``(N, ...)`` of class numbers",
):  # fmt: skip
    __constants__ = ["ignore_index", "reduction"]  # noqa: RUF012

    def __init__(
        self,
        weight: Any = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self._keep(ignore_index=ignore_index)


class NLLLoss2d(NLLLoss):
    """The old name of :class:`NLLLoss`.

    Args:
        weight (Tensor, optional): a weight for each class
        ignore_index (int): targets with this value do not count. Default: -100
        reduction (str): ``'mean'``, ``'sum'`` or ``'none'``. Default: ``'mean'``

    Shape: input ``(N, C, H, W)``, target ``(N, H, W)`` of class numbers.
    See https://docs.pytorch.org/docs/stable/generated/torch.nn.NLLLoss.html.

    >>> torch.nn.NLLLoss2d()(torch.full((1, 2, 2, 2), -3.0), torch.zeros(1, 2, 2, dtype=torch.long))
    tensor(3.)
    """


class CrossEntropyLoss(
    _WeightedLoss, fn="cross_entropy",
    formula="``-log(softmax(x))[y]``: the negative log likelihood of class y, x being logits.",
    call="torch.zeros(1, 2), torch.tensor([1])", result="tensor(0.6931)",
    args=_CLASSES + "\nlabel_smoothing (float): this share of the target is spread over all "
        "classes. Default: 0.0",
    shape="input ``(N, C, ...)`` or ``(C)``; target ``(N, ...)`` of class numbers, or "
        "probabilities of the input's shape",
):  # fmt: skip
    __constants__ = ["ignore_index", "reduction", "label_smoothing"]  # noqa: RUF012

    def __init__(
        self,
        weight: Any = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self._keep(ignore_index=ignore_index, label_smoothing=label_smoothing)


class BCELoss(
    _WeightedLoss, fn="binary_cross_entropy",
    formula="Binary cross entropy: ``-(y*log(x) + (1 - y)*log(1 - x))``, x being probabilities "
        "(the logarithms are not below -100).", call="torch.tensor([0.5]), torch.tensor([1.])",
    result="tensor(0.6931)", args="weight (Tensor, optional): multiplies each sample's loss",
):  # fmt: skip
    __constants__ = ["reduction"]  # noqa: RUF012


class BCEWithLogitsLoss(
    _LossOfTwo, fn="binary_cross_entropy_with_logits",
    formula="Binary cross entropy of ``sigmoid(x)``, computed without overflow.",
    call="torch.tensor([0.]), torch.tensor([1.])", result="tensor(0.6931)",
    args="weight (Tensor, optional): multiplies each sample's loss\n"
        "pos_weight (Tensor, optional): multiplies the part of the positive class",
):  # fmt: skip
    def __init__(
        self,
        weight: Any = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        pos_weight: Any = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self._keep(weight=weight, pos_weight=pos_weight)


class KLDivLoss(
    _LossOfTwo, fn="kl_div",
    formula="The Kullback-Leibler divergence: ``y * (log y - x)``, x being log probabilities.",
    init="reduction='batchmean'",
    call="torch.tensor([[0.]]).log_softmax(1), torch.tensor([[1.]])", result="tensor(0.)",
    args="log_target (bool): is the target given in logarithms? Default: False",
):  # fmt: skip
    __constants__ = ["reduction"]  # noqa: RUF012

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
        log_target: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self._keep(log_target=log_target)


class PoissonNLLLoss(
    _Loss, fn="poisson_nll_loss",
    formula="The negative log likelihood of a Poisson distribution: ``exp(x) - y*x``, x being "
        "the log of its mean.", call="torch.tensor([0.]), torch.tensor([1.])",
    result="tensor(1.)",
    args="log_input (bool): is the input a logarithm? Default: True\n"
        "full (bool): add Stirling's term for large targets? Default: False\n"
        "eps (float): keeps log(x) finite where ``log_input=False``. Default: 1e-8",
):  # fmt: skip
    __constants__ = ["log_input", "full", "eps", "reduction"]  # noqa: RUF012

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: Any = None,
        eps: float = 1e-8,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self._keep(log_input=log_input, full=full, eps=eps)

    def forward(self, log_input: Any, target: Any) -> Any:
        """The loss."""
        return self._of(log_input, target)


class GaussianNLLLoss(
    _Loss, fn="gaussian_nll_loss",
    formula="The negative log likelihood of a normal distribution: ``(log(var) + (x - y)^2 / "
        "var) / 2``.", call="torch.zeros(1), torch.ones(1), torch.ones(1)",
    result="tensor(0.5000)",
    args="full (bool): add the constant ``log(2 pi) / 2``? Default: False\n"
        "eps (float): the least variance. Default: 1e-6",
):  # fmt: skip
    __constants__ = ["full", "eps", "reduction"]  # noqa: RUF012

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self._keep(full=full, eps=eps)

    def forward(self, input: Any, target: Any, var: Any) -> Any:
        """The loss."""
        return self._of(input, target, var)


class SoftMarginLoss(
    _LossOfTwo, fn="soft_margin_loss", formula="``log(1 + exp(-y*x))``, y being 1 or -1.",
    call="torch.tensor([0.]), torch.tensor([1.])", result="tensor(0.6931)",
):  # fmt: skip
    __constants__ = ["reduction"]  # noqa: RUF012


class MultiLabelMarginLoss(
    _LossOfTwo, fn="multilabel_margin_loss",
    formula="``sum over wrong i, right j of max(0, 1 - (x[j] - x[i])) / C``.",
    call="torch.tensor([0.1, 0.2, 0.4, 0.8]), torch.tensor([3, 0, -1, 1])",
    result="tensor(0.8500)",
    shape="input ``(N, C)`` or ``(C)``; target alike, class numbers ended by -1",
):  # fmt: skip
    __constants__ = ["reduction"]  # noqa: RUF012


class MultiLabelSoftMarginLoss(
    _WeightedLoss, fn="multilabel_soft_margin_loss",
    formula="Binary cross entropy of logits, averaged over the classes.",
    call="torch.zeros(1, 2), torch.ones(1, 2)", result="tensor(0.6931)",
    args="weight (Tensor, optional): a weight for each class",
):  # fmt: skip
    __constants__ = ["reduction"]  # noqa: RUF012


class MultiMarginLoss(
    _WeightedLoss, fn="multi_margin_loss",
    formula="``sum over i != y of max(0, margin - x[y] + x[i])^p / C``.",
    call="torch.tensor([[0.1, 0.2, 0.4, 0.8]]), torch.tensor([3])", result="tensor(0.3250)",
    args="p (int): 1 or 2. Default: 1\nmargin (float): Default: 1.0\n"
        "weight (Tensor, optional): a weight for each class",
    shape="input ``(N, C)`` or ``(C)``, target ``(N)`` or ``()`` of class numbers",
):  # fmt: skip
    __constants__ = ["p", "margin", "reduction"]  # noqa: RUF012

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Any = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self._keep(p=p, margin=margin)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(
                f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D"
            )


class _MarginLoss(_Loss):
    __constants__ = ["margin", "reduction"]  # noqa: RUF012

    def __init__(
        self,
        margin: float = 0.0,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self._keep(margin=margin)


class HingeEmbeddingLoss(
    _LossOfTwo, fn="hinge_embedding_loss",
    formula="``x`` where y is 1, ``max(0, margin - x)`` where y is -1.",
    call="torch.tensor([0.2, 0.2]), torch.tensor([1., -1.])", result="tensor(0.5000)",
    args="margin (float): Default: 1.0",
):  # fmt: skip
    __constants__ = ["margin", "reduction"]  # noqa: RUF012

    def __init__(
        self,
        margin: float = 1.0,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self._keep(margin=margin)


class CosineEmbeddingLoss(
    _MarginLoss, fn="cosine_embedding_loss",
    formula="``1 - cos(x1, x2)`` where y is 1, ``max(0, cos(x1, x2) - margin)`` where y is -1.",
    call="torch.ones(1, 2), torch.ones(1, 2), -torch.ones(1)", result="tensor(1.)",
    args="margin (float): Default: 0.0",
    shape="inputs ``(N, D)`` or ``(D)``, target ``(N)`` or ``()``",
):  # fmt: skip
    def forward(self, input1: Any, input2: Any, target: Any) -> Any:
        """The loss."""
        return self._of(input1, input2, target)


class MarginRankingLoss(
    _MarginLoss, fn="margin_ranking_loss",
    formula="``max(0, -y*(x1 - x2) + margin)``: x1 should rank above x2 where y is 1.",
    call="torch.zeros(1), torch.ones(1), torch.ones(1)", result="tensor(1.)",
    args="margin (float): Default: 0.0",
):  # fmt: skip
    def forward(self, input1: Any, input2: Any, target: Any) -> Any:
        """The loss."""
        return self._of(input1, input2, target)


class TripletMarginLoss(
    _Loss, fn="triplet_margin_loss",
    formula="``max(0, d(anchor, positive) - d(anchor, negative) + margin)``, d being the p-norm "
        "of the difference.", call="torch.zeros(1, 2), torch.zeros(1, 2), torch.ones(1, 2)",
    result="tensor(0.)",
    args="margin (float): Default: 1.0\np (float): which norm. Default: 2.0\n"
        "eps (float): keeps the gradient finite at 0. Default: 1e-6\n"
        "swap (bool): take the negative's smaller distance to anchor and positive. Default: False",
    shape="``(N, D)`` or ``(D)`` each",
):  # fmt: skip
    __constants__ = ["margin", "p", "eps", "swap", "reduction"]  # noqa: RUF012

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self._keep(margin=margin, p=p, eps=eps, swap=swap)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginLoss: expected margin to be greater than 0, got {margin}"
            )

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Any:
        """The loss."""
        return self._of(anchor, positive, negative)


class TripletMarginWithDistanceLoss(_Loss):
    """:class:`TripletMarginLoss` with a distance of one's own.

    Args:
        distance_function (callable, optional): of two tensors. Default: the 2-norm
        margin (float): Default: 1.0
        swap (bool): as there. Default: False
        reduction (str): ``'mean'``, ``'sum'`` or ``'none'``. Default: ``'mean'``

    Shape: three tensors ``(N, *)`` as the distance takes them; the result is a number, or the
    distances' shape with ``'none'``.

    >>> loss = torch.nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).sum(1))
    >>> loss(torch.zeros(1, 2), torch.ones(1, 2), torch.zeros(1, 2))
    tensor(0.)
    """

    __constants__ = ["margin", "swap", "reduction"]  # noqa: RUF012

    def __init__(
        self,
        *,
        distance_function: Callable[[Any, Any], Any] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin}"
            )
        self.distance_function: Any = (
            PairwiseDistance() if distance_function is None else distance_function
        )
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Any:
        """The loss."""
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function,
            margin=self.margin, swap=self.swap, reduction=self.reduction,
        )  # fmt: skip


class CTCLoss(_Loss):
    """Connectionist temporal classification: minus the log probability that inputs, one label or
    blank a time step, read as the targets once repeats are joined and blanks taken out.

    Graves et al., "Connectionist temporal classification: labelling unsegmented sequence data with
    recurrent neural networks" (2006).

    Args:
        blank (int): the label that stands for nothing. Default: 0
        reduction (str): ``'mean'`` (of losses divided by their target's length), ``'sum'`` or
            ``'none'``. Default: ``'mean'``
        zero_infinity (bool): count impossible targets as a loss of 0. Default: False

    Shape: log probabilities ``(T, N, C)`` or ``(T, C)``; targets ``(N, S)`` or joined; the lengths
    of the inputs and of the targets ``(N)``.

    >>> x = torch.tensor([[[0.5, 0.5]], [[0.5, 0.5]]]).log()
    >>> torch.nn.CTCLoss()(x, torch.tensor([[1]]), (2,), (1,))
    tensor(0.2877)
    """

    __constants__ = ["blank", "reduction"]  # noqa: RUF012

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any) -> Any:
        """The loss."""
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank,
                          self.reduction, self.zero_infinity)  # fmt: skip
