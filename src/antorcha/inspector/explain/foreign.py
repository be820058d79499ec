"""Why Python's own operators, calls and loops, and NumPy's arrays, refuse, and what was meant.

These errors are not antorcha's and carry no facts: what is wrong is read out of their messages.
"""

from __future__ import annotations

import ast
import re
from types import ModuleType
from typing import Any

from antorcha.core.device import as_device
from antorcha.core.lazy import np
from antorcha.inspector.explain import shapes as shapes
from antorcha.inspector.explain.case import Case, Finding, Fixes, Rule
from antorcha.inspector.explain.layers import module_as_parameters
from antorcha.inspector.explain.memory import refused
from antorcha.inspector.explain.operands import NamedOperand
from antorcha.inspector.explain.values import UNKNOWN, Fact, fact_of, value_of
from antorcha.ops.kinds.return_types import Named
from antorcha.runtime.tensor import Tensor

_VALUES = ("shape", "T", "mT", "H", "mH", "grad", "data", "dtype", "device", "ndim", "is_leaf",
           "requires_grad", "grad_fn", "itemsize", "nbytes")  # fmt: skip


def find(case: Case) -> Finding | None:
    """What the first rule finds whose pattern is in the message."""
    if issubclass(type(case.error), MemoryError):
        return memory(case)
    for pattern, rule in PATTERNS:
        if re.search(pattern, case.message) and (found := rule(case)) is not None:
            return found
    return None


# ---------------------------------------------------------------------------------------- Python's
def method_without_call(case: Case) -> Finding | None:
    """``list(model.parameters)``, ``x.size[0]``: a method that was not called."""
    node = case.site.node
    if isinstance(node, ast.Subscript):
        given: list[ast.expr] = [node.value]
    elif isinstance(node, ast.Call):
        given = [*node.args, *[keyword.value for keyword in node.keywords]]
    else:
        given = [node] if isinstance(node, ast.expr) else []
    for each in given:
        if isinstance(each, ast.Attribute) and value_of(each, case.names) is UNKNOWN:
            text = case.text(each)
            return case.finding(None, case.fix((each, f"{text}()")), "not called", name=text)
    return None


def call_of_a_value(case: Case) -> Finding | None:
    """``x.shape()``: a value that was called."""
    call = case.call
    if call is None or not isinstance(call.func, ast.Attribute) or call.func.attr not in _VALUES:
        return None
    if fact_of(value_of(call.func.value, case.names)) is None:
        return None
    text = case.text(call.func)
    fixes: Fixes = []
    if call.func.attr == "requires_grad":
        fixes = case.renamed("requires_grad_")
    elif not call.args and not call.keywords:
        fixes = case.fix((call, text))
    return case.finding(None, fixes, "no call", name=text)


def text_and_tensor(case: Case) -> Finding | None:
    """``"sum: " + x``."""
    node = case.site.node
    if not isinstance(node, ast.BinOp):
        return None
    return case.finding(None, case.fix((node.right, f"str({case.text(node.right)})")), "text")


def values_and_indices(case: Case) -> Finding | None:
    """``x.max(1) + 1``: two results, not one."""
    node = case.site.node
    for side in (node.left, node.right) if isinstance(node, ast.BinOp) else ():
        kind = type(value_of(side, case.names))
        if issubclass(kind, Named) and "values" in type.__dict__["__dict__"].__get__(kind):
            fixes = case.fix((side, f"{case.atom(side)}.values"))
            return case.finding(None, fixes, "two results")
    return None


def list_as_tensor(case: Case) -> Finding | None:
    """``[tensor, tensor].mean()``."""
    node = case.site.node
    if not isinstance(node, ast.Attribute) or node.attr not in vars(Tensor):
        return None
    value = value_of(node.value, case.names)
    if type(value) not in (list, tuple) or not value:
        return None
    result = "stack" if all(fact_of(each) is not None for each in value) else "tensor"
    fixes = case.fix((node.value, f"{case.torch}.{result}({case.text(node.value)})"))
    return case.finding(None, fixes, "tensor wanted", kind=type(value).__name__)


def operators(case: Case) -> Finding | None:
    """An operator between a tensor and a list, an array or a text."""
    node = case.site.node
    if not isinstance(node, ast.BinOp):
        return None
    left, right = value_of(node.left, case.names), value_of(node.right, case.names)
    for tensor, other, at in ((left, right, node.right), (right, left, node.left)):
        fact = fact_of(tensor)
        if fact is not None and type(other) in (list, tuple):
            result = f"{case.torch}.tensor({case.text(at)}, dtype={case.torch}.{fact.dtype.name})"
            fixes = case.fix((at, result))
            return case.finding(None, fixes, "tensor wanted", kind=type(other).__name__)
    return None


def no_gradient_yet(case: Case) -> Finding | None:
    """``x.grad`` where it is None."""
    for node in ast.walk(case.site.node) if case.site.node is not None else ():
        if not isinstance(node, ast.Attribute) or node.attr != "grad":
            continue
        fact = fact_of(value_of(node.value, case.names))
        if fact is None or value_of(node, case.names) is not None:
            continue
        label = case.text(node.value)
        if not fact.is_leaf:
            key, fixes = "grad not kept", [(f"{label}.retain_grad()", "")]
        elif not fact.requires_grad:
            key, fixes = "grad unwanted", [(f"{label}.requires_grad_()", "")]
        else:
            key, fixes = "grad not yet", []
        return case.finding(None, fixes, key, label=label)
    return None


# ----------------------------------------------------------------------------------------- NumPy's
def broadcasting(case: Case) -> Finding | None:
    """``a + b``, ``a[i] = b`` and ``a += b`` of arrays."""
    return shapes.broadcasting(case) if _take_arrays(case) else None


def matmul(case: Case) -> Finding | None:
    """``a @ b`` of arrays."""
    return shapes.product(case) if _take_arrays(case) else None


def element_count(case: Case) -> Finding | None:
    """``a.reshape(...)`` of an array."""
    new = re.search(r"into shape \(([-\d, ]*)\)", case.message)
    if new is None or not _take_arrays(case):
        return None
    return shapes.counted(case, case.operands[0], _sizes(new[1]))


def memory(case: Case) -> Finding | None:
    """An array that there is no memory for, or Python's own MemoryError."""
    size = re.search(r"Unable to allocate (.+?) for an array", case.message)
    return refused(case, size[1] if size else "")


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
            found.append(NamedOperand(case.text(part), fact, part))
    if found:
        case.failed.operands = found
    return bool(found)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple([int(word) for word in re.findall(r"-?\d+", text)])


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


PATTERNS: tuple[tuple[str, Rule], ...] = (
    (r"object is not iterable", module_as_parameters),
    (r"object is not (iterable|subscriptable)", method_without_call),
    (r"object is not callable", call_of_a_value),
    (r"can only concatenate str", text_and_tensor),
    (r"can only concatenate tuple", values_and_indices),
    (r"'(list|tuple)' object has no attribute", list_as_tensor),
    (r"NoneType", no_gradient_yet),
    (r"unsupported operand type\(s\)", operators),
    (r"broadcast together|match the broadcast shape|broadcast input array", broadcasting),
    (r"mismatch in its core dimension|^shapes \(.*not aligned", matmul),
    (r"cannot reshape array", element_count),
)
