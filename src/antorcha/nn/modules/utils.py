"""``torch.nn.modules.utils``: small helpers that libraries import from PyTorch's layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from antorcha.errors import ValueRangeError, explain_missing

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """A function that makes `n` of one value; a sequence is taken as it is."""

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Sequence[Any], n: int) -> tuple[Any, ...]:
    """The values from last to first, each ``n`` times: a layer's padding as ``F.pad`` takes it."""
    return tuple([x for x in reversed(t) for _ in range(n)])


def _list_with_default(out_size: Any, defaults: Sequence[int]) -> Any:
    """The sizes, those that are None taken from the end of ``defaults``."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueRangeError(f"Input dimension should be at least {len(out_size) + 1}")
    last = defaults[-len(out_size) :]
    return [d if size is None else size for size, d in zip(out_size, last, strict=False)]


def consume_prefix_in_state_dict_if_present(state_dict: Any, prefix: str) -> None:
    """Takes a prefix off the keys of a ``state_dict``, in place, and off those of its metadata.

    Args:
        state_dict (dict): of a module inside DataParallel, say
        prefix (str): such as ``"module."``

    >>> state = {"module.weight": 1, "step": 2}
    >>> torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'step': 2, 'weight': 1}
    """
    for key in [key for key in state_dict if key.startswith(prefix)]:
        state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", {})
    for key in list(metadata):
        if key and (key == prefix.replace(".", "") or key.startswith(prefix)):
            metadata[key[len(prefix) :]] = metadata.pop(key)


explain_missing("torch.nn.modules.utils", globals())
