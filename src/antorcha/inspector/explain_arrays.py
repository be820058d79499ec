"""Why NumPy's arrays do not fit together: the rules for tensors hold for them, too."""

from __future__ import annotations

import ast
import re
from types import ModuleType
from typing import Any

from antorcha.device import as_device
from antorcha.inspector import explain_shapes as shapes
from antorcha.inspector.explain_case import Case, Finding
from antorcha.inspector.explain_operands import Operand
from antorcha.inspector.explain_values import Fact, fact_of
from antorcha.lazy import np


def broadcasting(case: Case) -> Finding | None:
    """``a + b``, ``a[i] = b`` and ``a += b`` of arrays."""
    return shapes.broadcasting(case) if _take_arrays(case) else None


def matmul(case: Case) -> Finding | None:
    """``a @ b`` of arrays."""
    return shapes.matmul(case) if _take_arrays(case) else None


def element_count(case: Case) -> Finding | None:
    """``a.reshape(...)`` of an array."""
    return shapes.element_count(case) if _take_arrays(case) else None


def _take_arrays(case: Case) -> bool:
    """Makes the arrays on the line the operands. What was only computed there has the shape that
    the message says."""
    parts = [(part, value) for part, value in case.failed.parts.items()
             if type(value) is not ModuleType]  # fmt: skip
    said = [_sizes(text) for text in re.findall(r"\(([\d, ]*)\)", case.message)]
    written = "broadcast input array" in case.message  # "from shape (2,) into shape (3,)"
    said = said[::-1] if written else said
    both = written or "broadcast together" in case.message or "not aligned" in case.message
    in_order = both and len(said) == len(parts) and not isinstance(case.site.node, ast.AugAssign)
    found = []
    for k, (part, value) in enumerate(parts):
        fact = _array_fact(value)
        if fact is None and in_order:
            fact = _fact(said[k], "")
        if fact is not None:
            found.append(Operand(case.site.text_of(part), fact, part))
    if found:
        case.failed.operands = found
    return bool(found)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple([int(word) for word in re.findall(r"\d+", text)])


class _ArrayType:
    """The dtype of an array, which has a name as those of tensors do."""

    kind = "f"

    def __init__(self, name: str) -> None:
        self.name = name


def _array_fact(value: Any) -> Fact | None:
    """What is known of an array (or of a tensor beside it)."""
    if type(value) is not np.ndarray:
        return fact_of(value)
    strides = tuple([step // max(value.itemsize, 1) for step in value.strides])
    return _fact(value.shape, value.dtype.name, strides)


def _fact(shape: tuple[int, ...], dtype: str, strides: tuple[int, ...] = ()) -> Fact:
    return Fact(shape, strides, _ArrayType(dtype), as_device("cpu"), False, True, False, 0)
