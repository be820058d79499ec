"""``torch.nn._reduction``: the name and the number of a loss's reduction."""

from __future__ import annotations

from antorcha.errors import ValueRangeError, explain_missing, warn

_NUMBERS = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """``'none'`` is 0, ``'mean'`` 1, ``'sum'`` 2."""
    if reduction == "elementwise_mean":
        warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
        )
        return 1
    if reduction not in _NUMBERS:
        raise ValueRangeError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """The reduction that PyTorch's deprecated arguments mean."""
    averaged = size_average is None or size_average
    found = "none" if reduce is not None and not reduce else "mean" if averaged else "sum"
    if emit_warning:
        warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{found}' instead.",
        )
    return found


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """The number of the reduction that PyTorch's deprecated arguments mean."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))


explain_missing("torch.nn._reduction", globals())
