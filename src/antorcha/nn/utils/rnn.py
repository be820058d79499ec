"""Sequences of different lengths in one tensor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from antorcha.errors import ArgumentError, ValueRangeError, explain_missing
from antorcha.nn.utils.packed import (
    PackedSequence,
    invert_permutation,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    unpack_sequence,
)
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence",
    "pad_packed_sequence", "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip


def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Any:
    """Puts sequences into one tensor, the shorter ones padded.

    Args:
        sequences (list of Tensor): of shapes ``(L, *)``
        batch_first (bool): give ``(B, T, *)`` instead of ``(T, B, *)``? Default: False
        padding_value (float): Default: 0
        padding_side (str): ``'right'`` or ``'left'``. Default: ``'right'``

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pad_sequence.html.

    >>> torch.nn.utils.rnn.pad_sequence([torch.ones(1), torch.ones(2)], batch_first=True)
    tensor([[1., 0.],
            [1., 1.]])
    """
    if not isinstance(sequences, (Iterable, Tensor)):
        raise ArgumentError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences).__name__}"
        )
    if padding_side not in ("left", "right"):
        raise ValueRangeError(f"pad_sequence: padding_side is {padding_side!r}, not left or right")
    listed = list(sequences.unbind(0)) if isinstance(sequences, Tensor) else list(sequences)
    if not listed:
        raise ValueRangeError("pad_sequence: received an empty list of sequences")
    longest = max([s.size(0) for s in listed])
    rest = listed[0].shape[1:]
    result = listed[0].new_full((len(listed), longest, *rest), padding_value)
    for k, sequence in enumerate(listed):
        n = sequence.size(0)
        start = 0 if padding_side == "right" else longest - n
        result[k, start : start + n] = sequence
    return result if batch_first else result.transpose(0, 1).contiguous()


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """Takes the sequences out of a padded tensor again.

    >>> torch.nn.utils.rnn.unpad_sequence(torch.ones(2, 1), torch.tensor([1]))
    [tensor([1.])]
    """
    if not batch_first:
        padded_sequences = T.transpose(padded_sequences, 0, 1)
    return [s[: int(n)] for s, n in zip(padded_sequences, lengths, strict=True)]


explain_missing("torch.nn.utils.rnn", globals())
