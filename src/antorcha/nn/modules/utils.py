"""``torch.nn.modules.utils``: one number or several, and prefixes of state dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from antorcha.errors import ValueRangeError, explain_missing

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """A function that makes a tuple of `n` numbers of one number, and of several just a tuple."""

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    parse.__name__ = name
    return parse


_single, _pair = _ntuple(1, "_single"), _ntuple(2, "_pair")
_triple, _quadruple = _ntuple(3, "_triple"), _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Sequence[Any], n: int) -> tuple[Any, ...]:
    """The elements from the last to the first, each `n` times: a layer's padding for `F.pad`."""
    return tuple([x for x in reversed(t) for _ in range(n)])


def _list_with_default(out_size: Any, defaults: Sequence[int]) -> Any:
    """The sizes, with the last of `defaults` where there is a None."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueRangeError(f"Input dimension should be at least {len(out_size) + 1}")
    last = defaults[-len(out_size) :]
    return [default if v is None else v for v, default in zip(out_size, last, strict=False)]


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Takes the prefix off the keys that have it, in place: a model that was saved within
    DataParallel (``"module."``) or ``torch.compile`` (``"_orig_mod."``) loads as the model itself.

    >>> from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present
    >>> state = {"module.weight": 1}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'weight': 1}
    """
    _strip(state_dict, prefix)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is not None:
        own = metadata.pop(prefix.rstrip("."), None)  # (that of the wrapper)
        if own is not None:
            metadata[""] = own
        _strip(metadata, prefix)


def _strip(names: dict[str, Any], prefix: str) -> None:
    for name in list(names):
        if name.startswith(prefix):
            names[name[len(prefix) :]] = names.pop(name)


explain_missing("torch.nn.modules.utils", globals())
