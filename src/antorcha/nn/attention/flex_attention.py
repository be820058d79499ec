"""``torch.nn.attention.flex_attention``: attention whose scores a function of the program changes.

PyTorch maps the function over every (batch, head, query, key) with ``vmap`` and compiles kernels
that skip blocks. Here it is called once for each batch and head with all queries ``(Q, 1)`` and all
keys ``(1, K)``, and the whole matrix of scores is computed: the same numbers, with gradients. A
function that this does not fit (it multiplies matrices, say) is called for each place by itself.

See https://docs.pytorch.org/docs/stable/nn.attention.flex_attention.html and
https://arxiv.org/abs/2412.05496.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple, TypedDict

from antorcha.autograd import no_grad
from antorcha.core import dtypes
from antorcha.errors import (
    DeviceError,
    GraphError,
    MissingFeature,
    ShapeError,
    ValueRangeError,
    explain_missing,
    warn,
)
from antorcha.nn.attention.block_mask import (
    DEFAULT_BLOCK,
    NO_BLOCKS,
    BlockMask,
    Mod,
    dense_to_ordered,
    noop_mask,
    sliced_mask_mod_error,
)
from antorcha.ops.kinds.record import T

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask",
    "create_mask", "flex_attention", "noop_mask", "or_masks",
]  # fmt: skip

_DEFAULT_SPARSE_BLOCK_SIZE = DEFAULT_BLOCK
_LARGE_SPARSE_BLOCK_SIZE = NO_BLOCKS
_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = False
_mask_mod_signature = Mod
_score_mod_signature = Mod


class FlexKernelOptions(TypedDict, total=False):
    """Options of PyTorch's GPU kernels; accepted, and without effect on the numbers."""

    num_warps: int
    num_stages: int
    BLOCK_M: int
    BLOCK_N: int
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    BLOCKS_ARE_CONTIGUOUS: bool
    WRITE_DQ: bool
    FORCE_USE_FLEX_ATTENTION: bool
    USE_TMA: bool
    BACKEND: str


class AuxRequest(NamedTuple):
    """What `flex_attention` gives besides the result: ``return_aux=AuxRequest(lse=True)``."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for with `AuxRequest`, each ``(batch, heads, queries)``; the rest is None."""

    lse: Any = None
    max_scores: Any = None


# ------------------------------------------------------------------------------------------ masks
def or_masks(*mask_mods: Mod) -> Mod:
    """The mask that shows what one of the masks shows.

    >>> from antorcha.nn.attention.flex_attention import create_mask, or_masks
    >>> near = or_masks(lambda b, h, q, kv: q == kv, lambda b, h, q, kv: kv == 0)
    >>> create_mask(near, 1, 1, 2, 3)
    tensor([[[[ True, False, False],
              [ True,  True, False]]]])
    """
    _check_callable(mask_mods)

    def or_mask(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        result = b.new_zeros((), dtype=dtypes.bool_)
        for mask in mask_mods:
            result = result | mask(b, h, q_idx, kv_idx)
        return result

    return or_mask


def and_masks(*mask_mods: Mod) -> Mod:
    """The mask that shows what all of the masks show.

    >>> from antorcha.nn.attention.flex_attention import and_masks, create_mask
    >>> window = and_masks(lambda b, h, q, kv: q >= kv, lambda b, h, q, kv: q - kv < 2)
    >>> create_mask(window, 1, 1, 3, 3)
    tensor([[[[ True, False, False],
              [ True,  True, False],
              [False,  True,  True]]]])
    """
    _check_callable(mask_mods)

    def and_mask(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        result = b.new_ones((), dtype=dtypes.bool_)
        for mask in mask_mods:
            result = result & mask(b, h, q_idx, kv_idx)
        return result

    return and_mask


def _check_callable(mask_mods: tuple[Any, ...]) -> None:
    if not all(map(callable, mask_mods)):
        raise GraphError(f"All inputs should be callable mask_mods: {mask_mods}")


def _arguments(mod: Mod) -> int:
    """How many arguments without a default it takes: 5 of a score_mod, 4 of a mask_mod."""
    code = getattr(mod, "__code__", None)
    if code is not None:
        count = code.co_argcount - len(getattr(mod, "__defaults__", None) or ())
    else:
        params = inspect.signature(mod).parameters.values()
        count = sum(param.default is inspect.Parameter.empty for param in params)
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    return int(count)


def create_mask(
    mod_fn: Mod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Any:
    """The whole mask ``(B, H, Q_LEN, KV_LEN)`` that a function describes, True where it shows.

    Args:
        mod_fn (callable): ``mask_mod(b, h, q_idx, kv_idx)``, or ``score_mod(score, b, h, q_idx,
            kv_idx)``, which hides what it makes ``-inf``
        B (int, optional): batches; None is 1
        H (int, optional): heads; None is 1
        Q_LEN (int): queries
        KV_LEN (int): keys
        device (optional): where the mask is made

    >>> from antorcha.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, kv: q >= kv, None, None, 2, 2)
    tensor([[[[ True, False],
              [ True,  True]]]])
    """
    sizes = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    if _arguments(mod_fn) == 4:
        return _everywhere(mod_fn, sizes, device)
    scores = T.zeros(*sizes, device=device)
    return ~T.isneginf(_everywhere(mod_fn, sizes, device, scores))


def create_block_mask(
    mask_mod: Mod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = DEFAULT_BLOCK, _compile: bool = False,
    separate_full_blocks: bool = True, compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:  # fmt: skip
    """The BlockMask of a function.

    Args:
        mask_mod (callable): ``mask_mod(b, h, q_idx, kv_idx)``, True where the query sees the key
        B (int, optional): batches; None: all share one mask
        H (int, optional): heads; None: all share one mask
        Q_LEN (int): queries
        KV_LEN (int): keys
        device (optional): where its tensors are made
        BLOCK_SIZE (int or pair of int): queries and keys of a block. Default: 128
        separate_full_blocks (bool): list blocks that hide nothing apart? Default: True

    Raises AssertionError if ``mask_mod`` does not take four arguments.
    See https://docs.pytorch.org/docs/stable/nn.attention.flex_attention.html.

    >>> from antorcha.nn.attention.flex_attention import create_block_mask
    >>> mask = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 4, 4, BLOCK_SIZE=2)
    >>> print(mask)
    BlockMask(shape=(1, 1, 4, 4), sparsity=25.00%,
    (0, 0)
    ██
    ████
    )
    """
    if _arguments(mask_mod) != 4:
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    if compute_dq_write_order:
        raise MissingFeature("create_block_mask: dq_write_order is for a GPU kernel not here")
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    if mask.dtype is not dtypes.bool_:
        raise AssertionError(f"mask.dtype must be torch.bool, got {mask.dtype}")
    seen = _blocks_seen(mask, *size)
    most = size[0] * size[1]
    partial: Any = (seen > 0) & (seen < most) if separate_full_blocks else seen > 0
    full: tuple[Any, Any] = (None, None)
    if separate_full_blocks:
        full = dense_to_ordered(seen == most)
    return BlockMask.from_kv_blocks(
        *dense_to_ordered(partial), *full, BLOCK_SIZE=(size[0], size[1]), mask_mod=mask_mod,
        seq_lengths=(Q_LEN, KV_LEN),
    )  # fmt: skip


def _blocks_seen(mask: Any, rows: int, columns: int) -> Any:
    """How many elements of each block are True ``(B, H, blocks of queries, blocks of keys)``."""
    B, H, Q, K = mask.shape
    down, across = -(-Q // rows), -(-K // columns)
    padded = T.zeros(B, H, down * rows, across * columns, dtype=dtypes.int32, device=mask.device)
    padded[:, :, :Q, :K] = mask
    return padded.view(B, H, down, rows, across, columns).sum((3, 5))


# ------------------------------------------------------------------- a function of every place
def _everywhere(mod: Mod, sizes: tuple[int, ...], device: Any, scores: Any = None) -> Any:
    """``mod`` at every (batch, head, query, key); a score_mod also gets the score there."""
    B, H, Q, K = sizes
    b, h, q, kv = [T.arange(n, device=device) for n in sizes]
    dtype = dtypes.bool_ if scores is None else scores.dtype
    if not (B and H and Q and K):
        return T.empty(*sizes, dtype=dtype, device=device)
    rows = []
    for i in range(B):
        for j in range(H):
            row = _on_one_head(mod, b[i], h[j], q, kv, None if scores is None else scores[i, j])
            rows.append(row.expand(Q, K))
    return T.stack(rows).view(sizes)


def _on_one_head(mod: Mod, b: Any, h: Any, q: Any, kv: Any, scores: Any) -> Any:
    lead = () if scores is None else (scores,)
    try:
        found = mod(*lead, b, h, q.unsqueeze(1), kv.unsqueeze(0))
    except Exception:  # it may still be a function of scalars; if not, the next line raises
        return _at_each_place(mod, b, h, q, kv, scores)
    fits = found.dim() <= 2 and all(
        n in (1, most) for n, most in zip(found.shape[::-1], (len(kv), len(q)), strict=False)
    )
    if fits and _is_so(mod, b, h, q, kv, scores, found):
        return found
    return _at_each_place(mod, b, h, q, kv, scores)


def _is_so(mod: Mod, b: Any, h: Any, q: Any, kv: Any, scores: Any, found: Any) -> bool:
    """Is this what the function gives at single places? Not if it adds up what it computes: then
    it has added up all places."""
    Q, K = len(q), len(kv)
    with no_grad():
        found = found.expand(Q, K)
        for i, j in {(0, 0), (Q - 1, K - 1), (0, K - 1), (Q - 1, 0), (Q // 2, K // 2)}:
            lead = () if scores is None else (scores[i, j],)
            one = mod(*lead, b, h, q[i], kv[j]).reshape(())
            if not T.isclose(one.double(), found[i, j].double(), 1e-4, 1e-6, equal_nan=True):
                return False
    return True


def _at_each_place(mod: Mod, b: Any, h: Any, q: Any, kv: Any, scores: Any) -> Any:
    values = []
    for i in range(len(q)):
        for j in range(len(kv)):
            lead = () if scores is None else (scores[i, j],)
            values.append(mod(*lead, b, h, q[i], kv[j]).reshape(()))
    return T.stack(values).view(len(q), len(kv))


# -------------------------------------------------------------------------------------- attention
_warned = False


def flex_attention(
    query: Any, key: Any, value: Any, score_mod: Mod | None = None,
    block_mask: BlockMask | None = None, scale: float | None = None, enable_gqa: bool = False,
    return_lse: bool = False, kernel_options: Any = None, *, return_aux: AuxRequest | None = None,
) -> Any:  # fmt: skip
    """``softmax(score_mod(scale * Q K^T)) V``, where ``block_mask`` hides what is not to be seen.

    Args:
        query (Tensor): ``(B, Hq, L, E)``
        key (Tensor): ``(B, Hkv, S, E)``
        value (Tensor): ``(B, Hkv, S, Ev)``
        score_mod (callable, optional): ``score_mod(score, batch, head, q_idx, kv_idx)`` gives the
            new score; it may use tensors from outside, which get gradients
        block_mask (BlockMask, optional): from `create_block_mask`
        scale (float, optional): multiplies the scores. Default: ``1 / sqrt(E)``
        enable_gqa (bool): may ``Hq`` be a multiple of ``Hkv``?
        return_lse (bool): also the logs of the sums. Deprecated: use ``return_aux``
        kernel_options (dict, optional): accepted; the numbers do not depend on it
        return_aux (AuxRequest, optional): also the logs of the sums, the largest scores

    Returns ``(B, Hq, L, Ev)``, alone or with ``(B, Hq, L)`` or an AuxOutput. Scores are computed in
    float32 (float64 for float64). A query that sees nothing gets zeros, and ``-inf`` as its log.

    Raises ValueError where numbers of heads, batches, features or the mask's lengths do not fit.
    See https://docs.pytorch.org/docs/stable/nn.attention.flex_attention.html.

    >>> from antorcha.nn.attention.flex_attention import flex_attention
    >>> x = torch.eye(3)[None, None]
    >>> causal = lambda score, b, h, q, kv: torch.where(q >= kv, score, -float("inf"))
    >>> flex_attention(x, x, x, score_mod=causal)[0, 0, 0]
    tensor([1., 0., 0.])
    """
    _check(query, key, value, enable_gqa, block_mask)
    if return_lse and return_aux is not None:
        raise ValueRangeError(
            "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use "
            "return_aux=AuxRequest(lse=True) instead."
        )
    if return_lse:
        _warn_of_return_lse()
    times, batches = query.shape[1] // max(key.shape[1], 1), query.shape[0]
    if times > 1:
        key, value = key.repeat_interleave(times, 1), value.repeat_interleave(times, 1)
    if key.shape[0] != batches:
        key, value = [each.expand(batches, *each.shape[1:]) for each in (key, value)]
    scores = _scores(query, key, query.shape[-1] ** -0.5 if scale is None else scale)
    if score_mod is not None:
        scores = _everywhere(score_mod, scores.shape, scores.device, scores).to(scores.dtype)
    if block_mask is not None and block_mask.mask_mod is not noop_mask:
        seen = _everywhere(block_mask.mask_mod, scores.shape, scores.device)
        scores = T.where(seen, scores, -float("inf"))
    hidden = (scores == -float("inf")).all(-1)
    weights = scores.softmax(-1).masked_fill(hidden.unsqueeze(-1), 0.0)
    result = weights.to(query.dtype) @ value.to(query.dtype)
    if return_aux is None and not return_lse:
        return result
    lse = scores.logsumexp(-1).masked_fill(hidden, -float("inf"))
    if return_aux is None:
        return result, lse
    largest = scores.amax(-1) if return_aux.max_scores else None
    return result, AuxOutput(lse if return_aux.lse else None, largest)


def _scores(query: Any, key: Any, scale: float) -> Any:
    exact = dtypes.float64 if query.dtype is dtypes.float64 else dtypes.float32
    return (query.to(exact) @ key.to(exact).transpose(-2, -1)) * scale


def _warn_of_return_lse() -> None:
    global _warned
    if not _warned:
        _warned = True
        warn(
            "return_lse is deprecated and will be removed in v2.10. "
            "Please use return_aux=AuxRequest(lse=True) instead.",
            FutureWarning,
        )


def _check(query: Any, key: Any, value: Any, gqa: bool, block_mask: BlockMask | None) -> None:
    if not query.device == key.device == value.device:
        raise ValueRangeError(
            "Expected query, key, and value to have the same device type, but got query.device: "
            f"{query.device}, key.device: {key.device}, and value.device: {value.device} instead."
        )
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise MissingFeature("NYI: query, key, and value must be 4D tensors")
    if query.shape[-1] != key.shape[-1]:
        raise ValueRangeError(
            "Expect query and key/value to have the same embedding dimension "
            f"but got E={query.shape[-1]} and E={key.shape[-1]}."
        )
    if key.shape[:3] != value.shape[:3]:
        raise ShapeError(
            f"flex_attention: keys {tuple(key.shape)} and values {tuple(value.shape)} differ in "
            "batches, heads or number"
        )
    heads, few = query.shape[1], key.shape[1]
    if not gqa and heads != few:
        raise ValueRangeError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and "
            f"Hkv={few}. Try setting enable_gqa=True for GQA."
        )
    if gqa and (few == 0 or heads % few):
        raise ValueRangeError(
            "Expect number of query heads to be a multiple of kv heads for GQA but got "
            f"Hq={heads} and Hkv={few}."
        )
    _check_batches(query.shape[0], key.shape[0], block_mask)
    if block_mask is not None:
        _check_mask(query, key, block_mask)


def _check_batches(queries: int, keys: int, block_mask: BlockMask | None) -> None:
    if queries == keys:
        return
    if block_mask is None:
        raise ValueRangeError(
            "Expect query and key/value to have the same batch size, or non-none block_mask, but "
            f"got block_mask=None, Bq={queries}, and Bkv={keys}."
        )
    batches = block_mask.kv_num_blocks.shape[0]
    if batches != queries:
        raise ValueRangeError(
            "Expect query and key/value to have the same batch size, or block_mask and query to "
            f"have the same batch size, but got Bq={queries}, Bkv={keys}, B_block_mask={batches}."
        )
    if keys != 1:
        raise ShapeError(f"Bq and Bkv must broadcast. Got Bq={queries} and Bkv={keys}")


def _check_mask(query: Any, key: Any, block_mask: BlockMask) -> None:
    if block_mask.mask_mod is sliced_mask_mod_error:
        raise GraphError("Cannot use mask_mod from a sliced BlockMask")
    if query.device != block_mask.kv_num_blocks.device:
        raise DeviceError(
            "Expect q/k/v and block_mask to be on the same device but got "
            f"{query.device} and {block_mask.kv_num_blocks.device}."
        )
    if tuple(block_mask.BLOCK_SIZE) == (NO_BLOCKS, NO_BLOCKS):
        return
    lengths = query.shape[-2], key.shape[-2]
    made_for = block_mask.shape[-2:]
    if lengths == made_for:
        return
    said = (
        f"block_mask was created for block_mask.shape={block_mask.shape} but got "
        f"q_len={lengths[0]} and kv_len={lengths[1]}. "
    )
    if lengths[0] > made_for[0] or lengths[1] > made_for[1]:
        raise ValueRangeError(
            f"{said}As the block mask was created for a smaller length than you're using it for, "
            "you likely need to create a new block mask."
        )
    raise ValueRangeError(
        f"{said}As the block mask was created for a larger length than you're using it for, you "
        "can either 1. create a new block mask with the correct length, or 2. 'adjust' the "
        "existing block mask to the correct length by calling block_mask._adjust(q_len, kv_len). "
        "This essentially 'crops' the block mask to the upper left corner, which does not work "
        "for all mask_mods!"
    )


BlockMask.__module__ = noop_mask.__module__ = __name__  # where PyTorch has them
explain_missing("torch.nn.attention.flex_attention", globals())
