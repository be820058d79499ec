"""BlockMask: which blocks of queries and keys meet at all, and a function that tells the rest."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, Final

from antorcha.core import dtypes
from antorcha.errors import GraphError, MissingFeature, ShapeError
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor

Mod = Callable[..., Any]

DEFAULT_BLOCK: Final = 128
NO_BLOCKS: Final = 1 << 30  # the block size of a mask that hides nothing


def noop_mask(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    """A mask that hides nothing."""
    return batch.new_ones((), dtype=dtypes.bool_)


def sliced_mask_mod_error(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    """The function of a mask that was indexed: its places are other ones now, so it raises."""
    raise GraphError(
        "Cannot use mask_mod from a sliced BlockMask. When you slice a BlockMask using [], the "
        "mask_mod attribute is reset. You must set it from the original BlockMask's mask_mod: "
        "sliced_mask.mask_mod = apply_offset(base_mask.mask_mod, offset)"
    )


def ordered_to_dense(count: Any, indices: Any, columns: int) -> Any:
    """Ones where a row's first ``count`` indices point: ``(*, rows, columns)``, int32."""
    place = T.arange(indices.shape[-1], device=indices.device)
    # What a row does not use goes to a column of its own, which is cut off.
    to = T.where(place < count.unsqueeze(-1), indices, columns).long()
    dense = T.zeros(*indices.shape[:-1], columns + 1, dtype=dtypes.int32, device=indices.device)
    return dense.scatter_(-1, to, 1)[..., :columns].contiguous()


def dense_to_ordered(dense: Any) -> tuple[Any, Any]:
    """How many ones each row has; its columns, those with ones first. Both int32."""
    dense = dense.to(dtypes.int32)
    order = T.argsort(dense, dim=-1, descending=True, stable=True)
    return dense.sum(-1).to(dtypes.int32), order.to(dtypes.int32)


def _transposed(count: Any, indices: Any) -> tuple[Any, Any]:
    dense = ordered_to_dense(count, indices, indices.shape[-1])
    return dense_to_ordered(dense.transpose(-2, -1))


class BlockMask:
    """A mask of attention in blocks: for each block of queries, the blocks of keys it meets.

    Args:
        seq_lengths (tuple of int): numbers of queries and of keys
        kv_num_blocks (Tensor): how many blocks of keys are masked in part ``(*, rows)``
        kv_indices (Tensor): which ones come first ``(*, rows, columns)``
        full_kv_num_blocks, full_kv_indices (Tensor, optional): those that are not masked at all
        q_num_blocks, q_indices, full_q_num_blocks, full_q_indices (Tensor, optional): the same
            seen from the keys
        BLOCK_SIZE (tuple of int): queries and keys of a block. Default: 128 each
        mask_mod (callable): ``mask_mod(batch, head, q, kv)``, True where a query sees a key

    ``create_block_mask`` makes one from a function, `from_kv_blocks` from the first tensors.
    The metadata of PyTorch's deterministic GPU kernel (``dq_write_order``) is not supported.
    See https://docs.pytorch.org/docs/stable/nn.attention.flex_attention.html.

    >>> from antorcha.nn.attention.flex_attention import create_block_mask
    >>> causal = create_block_mask(lambda b, h, q, kv: q >= kv, 1, 1, 256, 256)
    >>> causal.shape, causal.sparsity()
    ((1, 1, 256, 256), 25.0)
    """

    _TENSOR_ATTRS = (
        "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks",
        "q_indices", "full_q_num_blocks", "full_q_indices", "dq_write_order",
        "dq_write_order_full", "dq_kv_order",
    )  # fmt: skip

    def __init__(
        self, seq_lengths: tuple[int, int], kv_num_blocks: Any, kv_indices: Any,
        full_kv_num_blocks: Any, full_kv_indices: Any, q_num_blocks: Any, q_indices: Any,
        full_q_num_blocks: Any, full_q_indices: Any,
        BLOCK_SIZE: tuple[int, int] = (DEFAULT_BLOCK, DEFAULT_BLOCK), mask_mod: Mod = noop_mask,
        *, dq_write_order: Any = None, dq_write_order_full: Any = None, dq_kv_order: Any = None,
        dq_kv_order_spt: bool | None = None,
    ) -> None:  # fmt: skip
        if kv_num_blocks is None or kv_indices is None:
            raise AssertionError("kv_num_blocks and kv_indices must be provided")
        _check_blocks(kv_indices, full_kv_num_blocks, full_kv_indices)
        if (full_q_num_blocks is None) != (full_q_indices is None):
            raise AssertionError(
                "full_q_num_blocks and full_q_indices must be both provided or omitted"
            )
        if not all(each is None for each in (dq_write_order, dq_write_order_full, dq_kv_order)):
            raise MissingFeature("BlockMask: dq_write_order is for a GPU kernel that is not here")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.dq_write_order = self.dq_write_order_full = self.dq_kv_order = None
        self.dq_kv_order_spt = dq_kv_order_spt
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls, kv_num_blocks: Any, kv_indices: Any, full_kv_num_blocks: Any = None,
        full_kv_indices: Any = None, BLOCK_SIZE: int | tuple[int, int] = DEFAULT_BLOCK,
        mask_mod: Mod | None = None, seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True, *, dq_write_order: Any = None,
        dq_write_order_full: Any = None, dq_kv_order: Any = None,
    ) -> BlockMask:  # fmt: skip
        """A BlockMask from the blocks of keys; how they look from the keys is computed."""
        _check_blocks(kv_indices, full_kv_num_blocks, full_kv_indices)
        q_blocks: tuple[Any, Any] = (None, None)
        full_q_blocks: tuple[Any, Any] = (None, None)
        if compute_q_blocks:
            q_blocks = _transposed(kv_num_blocks, kv_indices)
            if full_kv_num_blocks is not None:
                full_q_blocks = _transposed(full_kv_num_blocks, full_kv_indices)
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        if seq_lengths is None:
            rows, columns = kv_indices.shape[-2:]
            seq_lengths = (rows * size[0], columns * size[1])
        spt = dq_kv_order if isinstance(dq_kv_order, bool) else None
        return cls(
            seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices,
            *q_blocks, *full_q_blocks, BLOCK_SIZE=size, mask_mod=mask_mod or noop_mask,
            dq_write_order=dq_write_order, dq_write_order_full=dq_write_order_full,
            dq_kv_order=None if spt is not None else dq_kv_order, dq_kv_order_spt=spt,
        )  # fmt: skip

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """The attributes in PyTorch's order; lengths and block sizes are loose if ``flatten``."""
        lengths = tuple(self.seq_lengths) if flatten else (self.seq_lengths,)
        size = tuple(self.BLOCK_SIZE) if flatten else (self.BLOCK_SIZE,)
        tensors = [getattr(self, name) for name in self._TENSOR_ATTRS]
        return (*lengths, *tensors, self.dq_kv_order_spt, *size, self.mask_mod)

    # ------------------------------------------------------------------------------ size and text
    @property
    def shape(self) -> tuple[int, ...]:
        """``(batch, heads, queries, keys)``; batch and heads are 1 where all share a mask."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """The number of elements of the whole mask."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """The percentage of the elements that lie in blocks nobody computes."""
        blocks = int(self.kv_num_blocks.sum())
        if self.full_kv_num_blocks is not None:
            blocks += int(self.full_kv_num_blocks.sum())
        computed = blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1]
        return 100 * (1 - computed / self.numel())

    def to_dense(self) -> Any:
        """Ones for the blocks that are computed, wholly or in part ``(*, rows, columns)``."""
        dense = ordered_to_dense(self.kv_num_blocks, self.kv_indices, self.kv_indices.shape[-1])
        if self.full_kv_num_blocks is None:
            return dense
        columns = self.full_kv_indices.shape[-1]
        return dense | ordered_to_dense(self.full_kv_num_blocks, self.full_kv_indices, columns)

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A picture of the blocks in characters, of the first ``limit`` masks."""
        dense = self.to_dense()
        *batch, rows, columns = dense.shape
        most = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        if grid_size == -1:
            most = (rows, columns)
        steps = max(1, -(-rows // most[0])), max(1, -(-columns // most[1]))
        pictures = []
        for number, place in enumerate(itertools.product(*map(range, batch))):
            if number == limit:
                pictures += [
                    "...",
                    "To print out more, set BlockMask.to_string(limit=N)",
                    "You can also index (BlockMask[batch, head]) to choose a specific batch or "
                    "head",
                ]
                break
            pictures.append(f"{place}\n" + _picture(dense[place], *steps))
        return "\n".join(pictures)

    def __str__(self) -> str:
        picture = self.to_string().strip()
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{picture}\n)"

    def __repr__(self) -> str:
        lines = []
        for name in self._TENSOR_ATTRS[:8]:
            tensor = getattr(self, name)
            lines.append(f"    {name}={None if tensor is None else tensor.shape},\n")
        function = getattr(self.mask_mod, "__name__", self.mask_mod)
        return (
            f"BlockMask(\n{''.join(lines)}    BLOCK_SIZE={self.BLOCK_SIZE},\n"
            f"    shape={self.shape},\n    sparsity={self.sparsity():.2f}%,\n"
            f"    mask_mod={function}\n)"
        )

    # ------------------------------------------------------------------------------------ parts
    def __getitem__(self, index: Any) -> BlockMask:
        """The mask of some batches, heads and blocks of queries; dims are kept.

        Its ``mask_mod`` raises until a new one is set: the old one's places are no longer these.
        """
        given = index if isinstance(index, tuple) else (index,)
        padded = (*given, slice(None), slice(None), slice(None))[:3]
        where = []
        for each, n in zip(padded, self.kv_num_blocks.shape[:3], strict=True):
            if isinstance(each, int):
                first = each + n if -n <= each < 0 else each
                each = slice(first, first + 1)
            where.append(each)
        return self._with(lambda tensor: tensor[tuple(where)], sliced_mask_mod_error)

    def _with(self, part: Callable[[Any], Any], mask_mod: Mod) -> BlockMask:
        """The same lengths, and of each tensor of keys a part."""
        full = self.full_kv_num_blocks is not None
        result = BlockMask.from_kv_blocks(
            part(self.kv_num_blocks), part(self.kv_indices),
            part(self.full_kv_num_blocks) if full else None,
            part(self.full_kv_indices) if full else None,
            BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=mask_mod, seq_lengths=self.seq_lengths,
            compute_q_blocks=self.q_indices is not None,
        )  # fmt: skip
        result.dq_kv_order_spt = self.dq_kv_order_spt
        return result

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The upper left corner of the mask, for fewer queries and keys."""
        rows = -(-new_q_len // self.BLOCK_SIZE[0])
        columns = -(-new_kv_len // self.BLOCK_SIZE[1])
        blocks = _cropped(self.kv_num_blocks, self.kv_indices, rows, columns)
        full: tuple[Any, Any] = (None, None)
        if self.full_kv_num_blocks is not None:
            full = _cropped(self.full_kv_num_blocks, self.full_kv_indices, rows, columns)
        return BlockMask.from_kv_blocks(
            *blocks, *full, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod,
            seq_lengths=(new_q_len, new_kv_len), compute_q_blocks=self.q_indices is not None,
        )  # fmt: skip

    def to(self, device: Any) -> BlockMask:
        """The same mask with its tensors on another device."""
        moved: dict[str, Any] = {}
        for name in self._TENSOR_ATTRS[:8]:
            tensor = getattr(self, name)
            moved[name] = tensor.to(device) if isinstance(tensor, Tensor) else tensor
        return BlockMask(
            self.seq_lengths, **moved, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod,
            dq_kv_order_spt=self.dq_kv_order_spt,
        )  # fmt: skip


def _check_blocks(kv_indices: Any, full_count: Any, full_indices: Any) -> None:
    if kv_indices.dim() < 2:
        raise ShapeError("BlockMask must have at least 2 dimensions")
    if (full_count is None) != (full_indices is None):
        raise AssertionError(
            "full_kv_num_blocks and full_kv_indices must be both provided or omitted"
        )


def _cropped(count: Any, indices: Any, rows: int, columns: int) -> tuple[Any, Any]:
    indices = indices[:, :, :rows, :columns]
    count = count[:, :, :rows].clamp(max=columns)
    return (indices < count.unsqueeze(-1)).sum(-1).to(dtypes.int32), indices


def _picture(dense: Any, row_step: int, column_step: int) -> str:
    """One mask: a full block is dark, one in part grey, none a space; two characters each."""
    lines = []
    for r in range(0, dense.shape[0], row_step):
        line = ""
        for c in range(0, dense.shape[1], column_step):
            share = dense[r : r + row_step, c : c + column_step].float().mean().item()
            line += ("█" if share == 1 else " " if share == 0 else "░") * 2
        lines.append(line + "\n")
    return "".join(lines)
