"""``torch.nn.attention.varlen``: attention of sequences of several lengths, joined end to end."""

from __future__ import annotations

from typing import Any, NamedTuple

from antorcha.errors import MissingFeature, ShapeError, ValueRangeError, explain_missing
from antorcha.ops.kinds.record import T

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]


class AuxRequest(NamedTuple):
    """What `varlen_attn` gives besides the result: the log of each row's sum."""

    lse: bool = False


def varlen_attn(
    query: Any, key: Any, value: Any, cu_seq_q: Any, cu_seq_k: Any, max_q: int, max_k: int, *,
    return_aux: AuxRequest | None = None, scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1), enable_gqa: bool = False, seqused_k: Any = None,
    block_table: Any = None, num_splits: int | None = None,
) -> Any:  # fmt: skip
    """``softmax(scale * Q K^T) V`` of each sequence by itself.

    Args:
        query (Tensor): all queries ``(total_q, heads, E)``
        key (Tensor): all keys ``(total_k, heads, E)``
        value (Tensor): all values ``(total_k, heads, Ev)``
        cu_seq_q (Tensor): where each sequence of queries starts, and the end ``(sequences + 1)``
        cu_seq_k (Tensor): the same for the keys
        max_q (int): the longest sequence of queries
        max_k (int): the longest sequence of keys
        return_aux (AuxRequest, optional): with ``lse=True`` also the log of the sums, ``(heads,
            total_q)``
        scale (float, optional): multiplies the scores. Default: ``1 / sqrt(E)``
        window_size (tuple of int): how many keys before and after its own place a query sees; -1
            is all; ``(-1, 0)`` is causal. The places are counted from the end.
        enable_gqa (bool): may there be fewer heads of keys and values?
        seqused_k (Tensor, optional): how many keys of each sequence count
        block_table (Tensor, optional): not supported
        num_splits (int, optional): accepted; the numbers do not depend on it

    See https://docs.pytorch.org/docs/stable/nn.attention.varlen.html.

    >>> x = torch.ones(5, 2, 4)
    >>> ends = torch.tensor([0, 2, 5])
    >>> torch.nn.attention.varlen.varlen_attn(x, x, x, ends, ends, 3, 3).shape
    torch.Size([5, 2, 4])
    """
    if block_table is not None:
        raise MissingFeature("varlen_attn: keys in pages (block_table) are not supported")
    if cu_seq_k is None:
        raise ValueRangeError("varlen_attn: cu_seq_k may only be None with a block_table")
    if query.dim() != 3 or key.dim() != 3 or value.dim() != 3:
        raise ShapeError("varlen_attn: query, key and value must be (tokens, heads, features)")
    heads, few = query.shape[1], key.shape[1]
    if heads != few and not enable_gqa:
        raise ValueRangeError(
            f"varlen_attn: {heads} heads of queries and {few} of keys need enable_gqa=True"
        )
    if few == 0 or heads % few:
        raise ValueRangeError(
            f"varlen_attn: {heads} heads of queries are no multiple of {few} heads of keys"
        )
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    starts_q, starts_k = cu_seq_q.tolist(), cu_seq_k.tolist()
    used = None if seqused_k is None else seqused_k.tolist()
    results, sums = [], []
    for k in range(len(starts_q) - 1):
        end = starts_k[k + 1] if used is None else starts_k[k] + used[k]
        one = _attend(
            query[starts_q[k] : starts_q[k + 1]], key[starts_k[k] : end],
            value[starts_k[k] : end], factor, window_size, heads // few,
        )  # fmt: skip
        results.append(one[0])
        sums.append(one[1])
    result = T.cat(results) if results else T.empty_like(query)
    if return_aux is not None and return_aux.lse:
        return result, T.cat(sums, 1)
    return result


def _attend(query: Any, key: Any, value: Any, factor: float, window: Any, times: int) -> Any:
    """One sequence: its result ``(queries, heads, Ev)`` and logs of sums ``(heads, queries)``."""
    q, k, v = [each.transpose(0, 1) for each in (query, key, value)]  # (heads, tokens, features)
    if times > 1:
        k, v = k.repeat_interleave(times, 0), v.repeat_interleave(times, 0)
    scores = (q.float() @ k.float().transpose(1, 2)) * factor
    before, after = window
    place = T.arange(q.shape[1], device=q.device).unsqueeze(1) + (k.shape[1] - q.shape[1])
    other = T.arange(k.shape[1], device=q.device)
    if before >= 0:
        scores = scores.masked_fill(other < place - before, float("-inf"))
    if after >= 0:
        scores = scores.masked_fill(other > place + after, float("-inf"))
    total = scores.logsumexp(-1)
    hidden = (total == float("-inf")).unsqueeze(-1)
    weights = scores.softmax(-1).masked_fill(hidden, 0.0)
    return (weights.to(v.dtype) @ v).transpose(0, 1), total


def varlen_attn_out(out: Any, *args: Any, **kwargs: Any) -> Any:
    """:func:`varlen_attn`, its result written to ``out``."""
    result = varlen_attn(*args, **kwargs)
    if isinstance(result, tuple):
        out.copy_(result[0])
        return out, result[1]
    return out.copy_(result)


explain_missing("torch.nn.attention.varlen", globals())
