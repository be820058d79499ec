"""Functions of ``torch`` that PyTorch's layers call, with PyTorch's positional arguments.

``torch.nn.functional`` has the same with names and defaults; programs that copy a layer's code call
these, also as ``torch._VF``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.core import dtypes
from antorcha.errors import ArgumentError, ShapeError, ValueRangeError
from antorcha.nn import functional as F
from antorcha.nn.utils.parametrizations import norm_except
from antorcha.ops.bags import bag_of_each
from antorcha.ops.kinds.record import T
from antorcha.ops.loss import reduced

_MODES = ("sum", "mean", "max")


def embedding_bag(
    weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool = False, mode: int = 0,
    sparse: bool = False, per_sample_weights: Any = None, include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """``nn.functional.embedding_bag`` of joined bags, and how the bags lie.

    Args:
        weight (Tensor): the table ``(rows, columns)``
        indices (LongTensor): all bags joined ``(N)``
        offsets (LongTensor): where each bag starts
        scale_grad_by_freq (bool): divide a row's gradient by how often it was taken
        mode (int): 0 is the sum, 1 the mean, 2 the maximum
        sparse (bool): sparse gradients
        per_sample_weights (Tensor, optional): multiply the rows; only with the sum
        include_last_offset (bool): does the last offset say where the last bag ends?
        padding_idx (int, optional): this row is left out

    Returns the bags ``(bags, columns)``, the bag of each index ``(N)``, the sizes of the bags, and
    for the maximum which row each element is from. As PyTorch leaves them: a sum, which needs none
    of these, has zeros as its sizes (and no bags of indices without a ``padding_idx``); only the
    maximum has rows.

    >>> table = torch.tensor([[1., 2.], [3., 4.]])
    >>> indices, offsets = torch.tensor([1, 0, 1]), torch.tensor([0, 2])
    >>> out, bag, size, _ = torch.embedding_bag(table, indices, offsets, mode=1)
    >>> out, bag, size
    (tensor([[2., 3.],
            [3., 4.]]), tensor([0, 0, 1]), tensor([2, 1]))
    """
    if mode not in (0, 1, 2):
        raise ValueRangeError(f"embedding_bag: mode is 0 (sum), 1 (mean) or 2 (max), not {mode}")
    result = F.embedding_bag(
        indices, weight, offsets, None, 2.0, scale_grad_by_freq, _MODES[mode], sparse,
        per_sample_weights, include_last_offset, padding_idx,
    )  # fmt: skip
    starts = F._starts(indices, offsets, include_last_offset)
    count, bag = starts.size(0), bag_of_each(indices, starts).to(indices.dtype)
    row = F.padding_row(padding_idx, weight.size(0))
    kept = indices != (-1 if row is None else row)
    none = T.zeros(count, dtype=indices.dtype, device=indices.device)
    if mode == 0:
        none = T.zeros_like(offsets)
        return result, bag if row is not None else bag[:0], none, none.clone()
    size = none.index_add(0, bag, kept.to(indices.dtype))
    if mode == 1:
        return result, bag, size, size.clone()
    return result, bag, size, _largest_rows(weight, indices, bag, kept, count)


def _largest_rows(weight: Any, indices: Any, bag: Any, kept: Any, count: int) -> Any:
    """The row of the table that each element of each bag's maximum is from; 0 in an empty bag."""
    rows = weight.detach()[indices].masked_fill(~kept.unsqueeze(1), float("-inf"))
    shape = (count, weight.shape[1])
    where = bag.unsqueeze(1).expand(rows.shape)
    top = T.full(shape, float("-inf"), dtype=rows.dtype, device=rows.device)
    top = top.scatter_reduce(0, where, rows, "amax")
    place = T.arange(len(indices), device=rows.device).unsqueeze(1).expand(rows.shape)
    is_top = (rows == top.gather(0, where)) & kept.unsqueeze(1)
    place = place.masked_fill(~is_top, len(indices))
    first = T.full(shape, len(indices), dtype=dtypes.int64, device=rows.device)
    first = first.scatter_reduce(0, where, place, "amin")
    padded = T.cat([indices.long(), T.zeros(1, dtype=dtypes.int64, device=rows.device)])
    return padded[first].to(indices.dtype)


_embedding_bag = embedding_bag


def batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
    momentum: float, eps: float, cudnn_enabled: bool,
) -> Any:  # fmt: skip
    """``nn.functional.batch_norm`` with every argument in PyTorch's order.

    >>> x = torch.tensor([[1.], [3.]])
    >>> torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-12, False)
    tensor([[-1.],
            [ 1.]])
    """
    return F.batch_norm(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )  # fmt: skip


def instance_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any,
    use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool,
) -> Any:  # fmt: skip
    """``nn.functional.instance_norm`` with every argument in PyTorch's order.

    >>> x = torch.tensor([[[1., 3.]]])
    >>> torch.instance_norm(x, None, None, None, None, True, 0.1, 1e-12, False)
    tensor([[[-1.,  1.]]])
    """
    return F.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


def rrelu(
    input: Any, lower: float = 0.125, upper: float = 1 / 3, training: bool = False,
    generator: Any = None,
) -> Any:  # fmt: skip
    """``nn.functional.rrelu``: a leaky relu whose slope is drawn while training.

    >>> torch.rrelu(torch.tensor([3., -6.]), 0.5, 0.5)
    tensor([ 3., -3.])
    """
    if generator is not None:
        raise ValueRangeError("rrelu: the default generator draws the slopes; give no generator")
    return F.rrelu(input, lower, upper, training)


def norm_except_dim(v: Any, pow: int = 2, dim: int = 0) -> Any:
    """The norm over all dims but one, which are kept with size 1.

    >>> torch.norm_except_dim(torch.tensor([[3., 4.], [0., 2.]]))
    tensor([[5.],
            [2.]])
    """
    if pow == 2:
        return norm_except(v, dim)
    if dim == -1:
        return v.norm(pow)
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    return T.linalg_vector_norm(v, pow, others, True)


def _weight_norm(v: Any, g: Any, dim: int = 0) -> Any:
    """``g * v / norm_except_dim(v)``."""
    return v * (g / norm_except_dim(v, 2, dim))


def embedding_renorm_(input: Any, indices: Any, max_norm: float, norm_type: float) -> Any:
    """Scales the rows of a table that ``indices`` names down to the norm ``max_norm``, in place.

    >>> torch.embedding_renorm_(torch.tensor([[3., 4.], [3., 4.]]), torch.tensor([1]), 1., 2.)
    tensor([[3.0000, 4.0000],
            [0.6000, 0.8000]])
    """
    F._renormalize(input, indices, max_norm, norm_type)
    return input


def max_pool1d_with_indices(
    input: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """``nn.functional.max_pool1d``, and where each maximum is from.

    >>> torch.max_pool1d_with_indices(torch.tensor([[1., 3., 2., 4.]]), 2)
    (tensor([[3., 4.]]), tensor([[1, 3]]))
    """
    found: tuple[Any, Any] = F.max_pool1d(
        input, kernel_size, stride or None, padding, dilation, ceil_mode, return_indices=True
    )
    return found


def _sampler_of(ndim: int) -> Callable[..., Any]:
    def grid_sampler(
        input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool
    ) -> Any:
        if input.dim() != ndim:
            raise ShapeError(
                f"{grid_sampler.__name__}: expected a {ndim}D input, got shape {tuple(input.shape)}"
            )
        return T.grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)

    grid_sampler.__name__ = grid_sampler.__qualname__ = f"grid_sampler_{ndim - 2}d"
    grid_sampler.__doc__ = f"``torch.grid_sampler`` of a {ndim}-dim input."
    return grid_sampler


grid_sampler_2d, grid_sampler_3d = _sampler_of(4), _sampler_of(5)

# ------------------------------------------------------------- losses whose reduction is a number
_REDUCTIONS = ("none", "mean", "sum")
_NEEDED = object()  # the default of an argument that has none
_LOSSES: dict[str, dict[str, Any]] = {
    "binary_cross_entropy_with_logits": {
        "input": _NEEDED, "target": _NEEDED, "weight": None, "pos_weight": None, "reduction": 0,
    },
    "cosine_embedding_loss": {
        "input1": _NEEDED, "input2": _NEEDED, "target": _NEEDED, "margin": 0.0, "reduction": 0,
    },
    "hinge_embedding_loss": {"input": _NEEDED, "target": _NEEDED, "margin": 1.0, "reduction": 0},
    "kl_div": {"input": _NEEDED, "target": _NEEDED, "reduction": 0, "log_target": False},
    "margin_ranking_loss": {
        "input1": _NEEDED, "input2": _NEEDED, "target": _NEEDED, "margin": 0.0, "reduction": 0,
    },
    "poisson_nll_loss": {
        "input": _NEEDED, "target": _NEEDED, "log_input": _NEEDED, "full": _NEEDED,
        "eps": _NEEDED, "reduction": _NEEDED,
    },
    "triplet_margin_loss": {
        "anchor": _NEEDED, "positive": _NEEDED, "negative": _NEEDED, "margin": 1.0, "p": 2.0,
        "eps": 1e-6, "swap": False, "reduction": 0,
    },
}  # fmt: skip
"""The arguments of each, in PyTorch's order, and their defaults. (PyTorch's schemas say that the
reduction is 1, the mean, by default; its functions take 0.)"""


def _numbered(name: str) -> Callable[..., Any]:
    """The loss of ``nn.functional`` as a function whose ``reduction`` is 0, 1 or 2."""
    defaults = _LOSSES[name]

    def loss(*args: Any, **kwargs: Any) -> Any:
        given = {**defaults, **dict(zip(defaults, args, strict=False)), **kwargs}
        missing = [each for each, value in given.items() if value is _NEEDED]
        if missing or len(given) > len(defaults) or len(args) > len(defaults):
            raise ArgumentError(f"{name}() takes ({', '.join(defaults)}); missing: {missing}")
        number = given.pop("reduction")
        if number not in (0, 1, 2):
            raise ValueRangeError(
                f"{name}: reduction is 0 (none), 1 (mean) or 2 (sum), not {number}"
            )
        return reduced(getattr(F, name)(**given, reduction="none"), _REDUCTIONS[number])

    loss.__name__ = loss.__qualname__ = name
    loss.__doc__ = f"``nn.functional.{name}``; ``reduction`` is 0 (none), 1 (mean) or 2 (sum)."
    return loss


for _name in _LOSSES:
    globals()[_name] = _numbered(_name)
