"""Sequences of different lengths packed one after another, as recurrent layers read them."""

from __future__ import annotations

from typing import Any, NamedTuple

from antorcha.core import dtypes
from antorcha.core.lazy import lazy
from antorcha.errors import ShapeError, ValueRangeError
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.create import tensor

utils_rnn = lazy("antorcha.nn.utils.rnn")


class _Parts(NamedTuple):
    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


class PackedSequence(_Parts):
    """Sequences packed by time: first the first elements of all, then the second, ...

    Made by :func:`pack_padded_sequence` or :func:`pack_sequence`, longest sequence first.

    Attributes:
        data (Tensor): the elements, ``(sum of lengths, *)``
        batch_sizes (Tensor): how many sequences have an element at each time
        sorted_indices (Tensor or None): which sequence of the batch each one was
        unsorted_indices (Tensor or None): the inverse of that

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.PackedSequence.html.

    >>> torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])]).data
    tensor([1, 3, 2])
    """

    def __new__(
        cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None,
        unsorted_indices: Any = None,
    ) -> PackedSequence:  # fmt: skip
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is not None:
            if batch_sizes.device.type != "cpu":
                raise ValueRangeError(
                    "batch_sizes should always be on CPU. Instances of PackedSequence should never "
                    "be created manually. They should be instantiated by functions like "
                    "pack_sequence and pack_padded_sequences in nn.utils.rnn. "
                    "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
                )
        else:
            data, batch_sizes = data  # an older form: a pair
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same on another device, or the data in another dtype."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        kwargs = {name: value for name, value in kwargs.items() if name not in ("device", "dtype")}
        orders = [None if t is None else t.to(data.device, **kwargs) for t in self[2:]]
        return type(self)(data, self.batch_sizes, *orders)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same on a GPU."""
        result = T.empty((), dtype=self.data.dtype, device=self.data.device).to(*args, **kwargs)
        if result.is_cuda:
            return self.to(*args, **kwargs)
        kwargs["device"] = "cuda"
        return self.to(*args, **kwargs)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same on the CPU."""
        return self.to(*args, **{"device": "cpu", **kwargs})

    def double(self) -> PackedSequence:
        return self.to(dtype=dtypes.float64)

    def float(self) -> PackedSequence:
        return self.to(dtype=dtypes.float32)

    def half(self) -> PackedSequence:
        return self.to(dtype=dtypes.float16)

    def long(self) -> PackedSequence:
        return self.to(dtype=dtypes.int64)

    def int(self) -> PackedSequence:
        return self.to(dtype=dtypes.int32)

    def short(self) -> PackedSequence:
        return self.to(dtype=dtypes.int16)

    def char(self) -> PackedSequence:
        return self.to(dtype=dtypes.int8)

    def byte(self) -> PackedSequence:
        return self.to(dtype=dtypes.uint8)

    def pin_memory(self) -> PackedSequence:
        """The same: there is no memory to be pinned for."""
        return type(self)(self.data.pin_memory(), *self[1:])

    @property
    def is_cuda(self) -> bool:
        """Is the data on a GPU?"""
        return bool(self.data.is_cuda)

    def is_pinned(self) -> bool:
        """Is the data's memory pinned?"""
        return bool(self.data.is_pinned())


def invert_permutation(permutation: Any) -> Any:
    """The permutation that undoes another; None of None.

    >>> torch.nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    return None if permutation is None else T.argsort(permutation)


def _counts(lengths: list[int]) -> list[int]:
    """How many of sequences, longest first, have an element at each time."""
    return [sum([n > t for n in lengths]) for t in range(lengths[0])]


def _rows(counts: list[int], batch: int) -> list[int]:
    """Where each packed element is among the ``time * batch`` padded ones."""
    return [t * batch + b for t, n in enumerate(counts) for b in range(n)]


def _as_tensor(values: list[int], device: Any = None) -> Any:
    return tensor(values, dtype=dtypes.int64, device=device)


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs padded sequences.

    Args:
        input (Tensor): ``(T, B, *)``, with ``batch_first`` ``(B, T, *)``
        lengths (Tensor or list of int): each sequence's length (a tensor on the CPU)
        enforce_sorted (bool): the sequences come longest first; otherwise they are sorted, and the
            order is kept. Default: True

    Raises ``RuntimeError`` for lengths that are not positive, not sorted, or too many.
    See https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pack_padded_sequence.html.

    >>> padded = torch.tensor([[1, 2], [3, 0]])
    >>> torch.nn.utils.rnn.pack_padded_sequence(padded, [2, 1], batch_first=True)[:2]
    (tensor([1, 3, 2]), tensor([2, 1]))
    """
    if isinstance(lengths, Tensor):
        listed = [int(n) for n in lengths.tolist()]
    else:
        listed = [int(n) for n in lengths]
    order = None
    if not enforce_sorted:
        numbers = sorted(range(len(listed)), key=lambda k: -listed[k])
        listed = [listed[k] for k in numbers]
        order = _as_tensor(numbers, input.device)
        input = T.index_select(input, 0 if batch_first else 1, order)
    if batch_first:
        input = T.transpose(input, 0, 1)
    time, batch, *rest = input.shape
    _check_lengths(listed, time, batch)
    counts = _counts(listed)
    if counts == [batch] * time:
        data = T.reshape(input, (time * batch, *rest))
    else:
        wanted = _as_tensor(_rows(counts, batch), input.device)
        data = T.index_select(T.reshape(input, (time * batch, *rest)), 0, wanted)
    return PackedSequence(data, _as_tensor(counts), order, None)


def _check_lengths(lengths: list[int], time: int, batch: int) -> None:
    name = "pack_padded_sequence"
    if len(lengths) != batch:
        raise ShapeError(
            f"{name}: Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} "
            f"(batch_size={batch})"
        )
    if not lengths or min(lengths) <= 0:
        raise ShapeError(
            f"{name}: Length of all samples has to be greater than 0, but found an element in "
            f"'lengths' that is <= 0: {lengths}"
        )
    if sorted(lengths, reverse=True) != lengths:
        raise ShapeError(
            f"{name}: `lengths` array must be sorted in decreasing order when `enforce_sorted` is "
            "True. You can pass `enforce_sorted=False` to pack_padded_sequence and/or "
            "pack_sequence to sidestep this requirement."
        )
    if lengths[0] > time:
        raise ShapeError(f"{name}: a length is {lengths[0]}, but the input has {time} steps")


def pad_packed_sequence(
    sequence: Any, batch_first: bool = False, padding_value: float = 0.0,
    total_length: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """(padded sequences, their lengths): undoes :func:`pack_padded_sequence`.

    Args:
        sequence (PackedSequence): what to pad
        batch_first (bool): give ``(B, T, *)`` instead of ``(T, B, *)``? Default: False
        padding_value (float): Default: 0
        total_length (int or None): pad to this length, at least the longest's. Default: None

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pad_packed_sequence.html.

    >>> packed = torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])])
    >>> torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    (tensor([[1, 2],
            [3, 0]]), tensor([2, 1]))
    """
    counts = [int(n) for n in sequence.batch_sizes.tolist()]
    longest = len(counts)
    if total_length is not None:
        if total_length < longest:
            raise ValueRangeError(
                "Expected total_length to be at least the length of the longest sequence in "
                f"input, but got total_length={total_length} and max sequence length being "
                f"{longest}"
            )
        longest = total_length
    batch, data = counts[0], sequence.data
    padded = data.new_full((longest * batch, *data.shape[1:]), padding_value)
    padded = T.index_copy(padded, 0, _as_tensor(_rows(counts, batch), data.device), data)
    padded = T.reshape(padded, (longest, batch, *data.shape[1:]))
    lengths = _as_tensor([sum([n > b for n in counts]) for b in range(batch)])
    if batch_first:
        padded = T.transpose(padded, 0, 1)
    back = sequence.unsorted_indices
    if back is not None:
        return T.index_select(padded, 0 if batch_first else 1, back), lengths[back.cpu()]
    return padded, lengths


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> PackedSequence:
    """Packs a list of sequences ``(L, *)``, longest first unless ``enforce_sorted`` is False.

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pack_sequence.html.

    >>> torch.nn.utils.rnn.pack_sequence([torch.ones(2), torch.zeros(1)]).batch_sizes
    tensor([2, 1])
    """
    lengths = [s.size(0) for s in sequences]
    return pack_padded_sequence(
        utils_rnn.pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted
    )


def unpack_sequence(packed_sequences: Any) -> list[Any]:
    """The sequences of a packed one.

    >>> packed = torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])])
    >>> torch.nn.utils.rnn.unpack_sequence(packed)
    [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    found: list[Any] = utils_rnn.unpad_sequence(padded, lengths, batch_first=True)
    return found
