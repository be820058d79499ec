"""Names of ``torch.nn.functional`` that libraries copy from PyTorch's own layers: helpers with an
underscore, products of groups of matrices."""

from __future__ import annotations

import enum
from typing import Any

from antorcha.core import dtypes
from antorcha.errors import MissingFeature, ShapeError, ValueRangeError, warn
from antorcha.nn import functional as F
from antorcha.ops.kinds.record import T


def _none_or_dtype(input: Any) -> Any:
    """A tensor's dtype; None of None."""
    if input is None:
        return None
    dtype = getattr(input, "dtype", None)
    if dtype is None:
        raise ShapeError("input to _none_or_dtype() must be None or torch.Tensor")
    return dtype


def _canonical_mask(
    mask: Any, mask_name: str, other_type: Any, other_name: str, target_type: Any,
    check_other: bool = True,
) -> Any:  # fmt: skip
    """A mask as what is added to the scores: 0, and -inf where a bool one is True."""
    if mask is None:
        return None
    floating = mask.is_floating_point()
    if mask.dtype is not dtypes.bool_ and not floating:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type "
            "for both instead."
        )
    if floating:
        return mask
    zeros = T.zeros(tuple(mask.shape), dtype=target_type, device=mask.device)
    return T.masked_fill(zeros, mask, float("-inf"))


def _in_projection_packed(q: Any, k: Any, v: Any, w: Any, b: Any = None) -> tuple[Any, ...]:
    """Queries, keys and values through the three parts of one weight ``(3 * E, E)``."""
    if q is k and k is v:
        return tuple(F.linear(q, w, b).chunk(3, -1))
    biases = (None,) * 3 if b is None else b.chunk(3)
    parts = zip((q, k, v), w.chunk(3), biases, strict=True)
    return tuple([F.linear(*part) for part in parts])


def _in_projection(
    q: Any, k: Any, v: Any, w_q: Any, w_k: Any, w_v: Any, b_q: Any = None, b_k: Any = None,
    b_v: Any = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Queries, keys and values through a weight each, to the size of the queries."""
    size = q.shape[-1]
    for what, x, w in (("query", q, w_q), ("key", k, w_k), ("value", v, w_v)):
        if tuple(w.shape) != (size, x.shape[-1]):
            raise AssertionError(
                f"expecting {what} weights shape of {(size, x.shape[-1])}, but got {w.shape}"
            )
    for what, bias in (("query", b_q), ("key", b_k), ("value", b_v)):
        if bias is not None and tuple(bias.shape) != (size,):
            raise AssertionError(f"expecting {what} bias shape of {(size,)}, but got {bias.shape}")
    return F.linear(q, w_q, b_q), F.linear(k, w_k, b_k), F.linear(v, w_v, b_v)


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    """The dim of a softmax without one: the first of 0, 1 or 3 dims, else the second."""
    warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument."
    )
    return 0 if ndim in (0, 1, 3) else 1


def _verify_batch_size(size: Any) -> None:
    """Raises where a channel has one value: batch norm cannot train on that."""
    count = size[0]
    for n in size[2:]:
        count *= n
    if count == 1:
        raise ValueRangeError(
            "Expected more than 1 value per channel when training, got input size {size}",
            reason="one value", size=size,
        )  # fmt: skip


def _verify_spatial_size(size: Any) -> None:
    """Raises where an instance has one value: instance norm cannot train on that."""
    count = 1
    for n in size[2:]:
        count *= n
    if count == 1:
        raise ValueRangeError(
            f"Expected more than 1 spatial element when training, got input size {size}"
        )


def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
    """Raises AssertionError where ``arg`` is neither a number nor a pair."""
    if not isinstance(arg, int) and len(arg) != 2:
        raise AssertionError(message.format(arg_name))


def grouped_mm(
    mat_a: Any, mat_b: Any, *, offs: Any = None, bias: Any = None, out_dtype: Any = None
) -> Any:
    """Products of matrices in groups: the tokens of each expert with its weight.

    Args:
        mat_a (Tensor): ``(M, K)`` whose rows (or columns, if both are 2-D) are groups; or
            ``(G, M, K)``
        mat_b (Tensor): ``(G, K, N)``; or 2-D
        offs (Tensor, optional): where each group of a 2-D operand ends
        bias: not supported
        out_dtype (torch.dtype, optional): the result's. Default: that of ``mat_a``

    Rows and columns behind the last group give zeros.
    See https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.grouped_mm.html.

    >>> x, w = torch.ones(3, 2), torch.stack([torch.eye(2), 2 * torch.eye(2)])
    >>> torch.nn.functional.grouped_mm(x, w, offs=torch.tensor([1, 3], dtype=torch.int32))
    tensor([[1., 1.],
            [2., 2.],
            [2., 2.]])
    """
    if bias is not None:
        raise MissingFeature("grouped_mm: bias is not supported (nor is it in PyTorch 2.13)")
    if mat_a.dim() not in (2, 3) or mat_b.dim() not in (2, 3):
        raise ShapeError(
            f"grouped_mm: operands are 2-D or 3-D, got {mat_a.dim()} and {mat_b.dim()}"
        )
    if (mat_a.dim() == 2 or mat_b.dim() == 2) != (offs is not None):
        raise ShapeError("grouped_mm: give offs if, and only if, an operand is 2-D")
    result = _groups(mat_a, mat_b, None if offs is None else offs.tolist())
    return result if out_dtype is None else result.to(out_dtype)


def _groups(a: Any, b: Any, ends: list[int] | None) -> Any:
    if ends is None:
        return T.bmm(a, b)
    spans = list(zip([0, *ends], ends, strict=False))
    if a.dim() == 2 and b.dim() == 2:  # (M, total) @ (total, N) -> (groups, M, N)
        return T.stack([a[:, i:j] @ b[i:j] for i, j in spans])
    if a.dim() == 2:  # (total, K) @ (groups, K, N) -> (total, N)
        done = T.cat([a[i:j] @ b[k] for k, (i, j) in enumerate(spans)])
        rest = a.new_zeros(a.shape[0] - done.shape[0], done.shape[1])
        return T.cat([done, rest]) if len(rest) else done
    done = T.cat([a[k] @ b[:, i:j] for k, (i, j) in enumerate(spans)], 1)
    rest = b.new_zeros(done.shape[0], b.shape[1] - done.shape[1])
    return T.cat([done, rest], 1) if rest.shape[1] else done


class ScalingType(enum.IntEnum):
    """How an operand of `scaled_mm` was scaled."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.IntEnum):
    """How the scales of `scaled_mm` lie in memory."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


def scaled_mm(*args: Any, **kwargs: Any) -> Any:
    """A product of float8 matrices; not supported: raises NotImplementedError."""
    raise MissingFeature("scaled_mm: products of scaled float8 matrices are not supported")


def scaled_grouped_mm(*args: Any, **kwargs: Any) -> Any:
    """Products of float8 matrices in groups; not supported: raises NotImplementedError."""
    raise MissingFeature("scaled_grouped_mm: products of scaled float8 matrices are not supported")
