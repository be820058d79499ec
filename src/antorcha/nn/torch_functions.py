"""Functions of ``torch`` that PyTorch's layers call, with PyTorch's positional arguments.

``torch.nn.functional`` has the same with names and defaults; programs that copy a layer's code call
these, also as ``torch._VF``.
"""

from __future__ import annotations

from typing import Any

from antorcha import dtypes
from antorcha.errors import ValueRangeError
from antorcha.nn import functional as F
from antorcha.nn.utils.parametrizations import norm_except
from antorcha.ops.record import T

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
    count, bag = F._bags_at(indices, offsets, include_last_offset)
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
