"""What a record takes and refuses, found by calling it: dtypes, shapes, errors.

Results are asked of the ``meta`` device, which knows sizes and dtypes and computes nothing.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import antorcha
from antorcha.core.dtypes import dtype
from antorcha.ops.kinds.record import Op
from antorcha.runtime.tensor import Tensor
from tests.ops.records import Maker, all_samples, map_tensors, tensors_in

DTYPES: tuple[dtype, ...] = (
    antorcha.bool, antorcha.uint8, antorcha.int8, antorcha.int16, antorcha.int32, antorcha.int64,
    antorcha.float16, antorcha.bfloat16, antorcha.float32, antorcha.float64, antorcha.complex64,
    antorcha.complex128,
)  # fmt: skip
REFUSED = "refused"
MOST = 4  # samples, or errors, shown of an op
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")


def dtype_rule(op: Op) -> list[tuple[list[str], str]]:
    """Groups of dtypes and what the op gives for them; empty where it cannot be asked."""
    sample = next(iter(_samples(op)), None)
    floats = [] if sample is None else [t for t in tensors_in(sample) if t.dtype.kind in "fc"]
    if sample is None or not floats:
        return []
    given = {kind: _gives(op, sample, kind) for kind in DTYPES}
    if all([result == REFUSED for result in given.values()]):
        return []
    groups: dict[str, list[str]] = {}
    for kind, result in given.items():
        same = result == _name(kind)
        groups.setdefault("the same" if same else result, []).append(_name(kind))
    return [(kinds, result) for result, kinds in groups.items()]


def _gives(op: Op, sample: tuple[Any, Any], kind: dtype) -> str:
    """The dtypes of the results where the operands that are floats have this one."""

    def cast(t: Tensor) -> Tensor:
        wanted = kind if t.dtype.kind in "fc" else t.dtype
        return antorcha.empty(tuple(t.shape), dtype=wanted, device="meta")

    args, kwargs = map_tensors(sample[0], cast), map_tensors(sample[1], cast)
    try:
        result = _called(op, args, kwargs)
    except Exception:  # whatever it raises, this dtype is refused
        return REFUSED
    kinds = [_name(t.dtype) for t in tensors_in([result])]
    return ", ".join(kinds) if len(set(kinds)) > 1 else kinds[0] if kinds else REFUSED


def shapes(op: Op) -> list[tuple[str, str]]:
    """Calls by the shapes of their operands, and the shapes of the results."""
    found: dict[str, str] = {}
    for sample in _samples(op):
        call = _call_text(*sample)
        if len(call) > 70 or call in found:
            continue
        try:
            args, kwargs = [map_tensors(part, _on_meta) for part in sample]
            result = tensors_in([_called(op, args, kwargs)])
        except Exception:  # what depends on contents is not asked
            continue
        if result:
            found[call] = ", ".join([str(tuple(t.shape)) for t in result])
        if len(found) == MOST:
            break
    return [*found.items()]


def errors(op: Op) -> list[tuple[str, str, str]]:
    """Calls that the op refuses: the call, the error's class, and its text."""
    found: dict[str, tuple[str, str, str]] = {}
    for fn in op.error_functions:
        for args, kwargs, kind, _ in _made(fn, Maker(op.name)):
            text = _refusal(op, args, kwargs, kind)
            call = _call_text(args, kwargs)
            if text and not _ADDRESS.search(text + call) and len(call) <= 90:
                found.setdefault(text, (call, kind.__name__, text))
    return [*found.values()][:MOST]


def _made(fn: Any, make: Maker) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from fn(make)


def _refusal(op: Op, args: Any, kwargs: Any, kind: type[Exception]) -> str:
    try:
        _called(op, args, kwargs)
    except kind as error:
        return " ".join(str(error).split())
    except Exception:  # the record tests tell of another class
        return ""
    return ""


def _called(op: Op, args: Any, kwargs: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return op(*args, **kwargs)


def _samples(op: Op) -> Iterator[tuple[Any, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from all_samples(op)


def _on_meta(t: Tensor) -> Tensor:
    return antorcha.empty(tuple(t.shape), dtype=t.dtype, device="meta")


def _call_text(args: Any, kwargs: Any) -> str:
    named = [f"{name}={_text(value)}" for name, value in kwargs.items()]
    return ", ".join([*map(_text, args), *named])


def _text(value: Any) -> str:
    """A tensor as its shape, with its dtype where that is no float; others as they are written."""
    if isinstance(value, Tensor):
        kind = "" if value.dtype.kind == "f" else f" {_name(value.dtype)}"
        return f"{tuple(value.shape)}{kind}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_text, value)) + "]"
    return repr(value)


def _name(kind: dtype) -> str:
    return str(kind).removeprefix("torch.")
