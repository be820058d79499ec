"""Why Python's own operators, calls and loops refuse tensors and modules, and what was meant."""

from __future__ import annotations

import ast
import re

from antorcha.inspector.explain_case import Case, Finding, Fixes, row
from antorcha.inspector.explain_draw import Picture
from antorcha.inspector.explain_values import UNKNOWN, fact_of, value_of
from antorcha.ops.return_types import Named
from antorcha.runtime.tensor import Tensor

_VALUES = ("shape", "T", "mT", "H", "mH", "grad", "data", "dtype", "device", "ndim", "is_leaf",
           "requires_grad", "grad_fn", "itemsize", "nbytes")  # fmt: skip


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
            text = case.site.text_of(each)
            return Finding(case.say("not called", name=text), None, case.fix((each, f"{text}()")))
    return None


def call_of_a_value(case: Case) -> Finding | None:
    """``x.shape()``: a value that was called."""
    call = case.call
    if call is None or not isinstance(call.func, ast.Attribute) or call.func.attr not in _VALUES:
        return None
    if fact_of(value_of(call.func.value, case.names)) is None:
        return None
    text = case.site.text_of(call.func)
    fixes: Fixes = []
    if call.func.attr == "requires_grad":
        fixes = case.fix((call.func, f"{text}_"))
    elif not call.args and not call.keywords:
        fixes = case.fix((call, text))
    return Finding(case.say("no call", name=text), None, fixes)


def text_and_tensor(case: Case) -> Finding | None:
    """``"sum: " + x``."""
    node = case.site.node
    if not isinstance(node, ast.BinOp):
        return None
    fixes = case.fix((node.right, f"str({case.site.text_of(node.right)})"))
    return Finding(case.say("text"), None, fixes)


def values_and_indices(case: Case) -> Finding | None:
    """``x.max(1) + 1``: two results, not one."""
    node = case.site.node
    if not isinstance(node, ast.BinOp):
        return None
    for side in (node.left, node.right):
        value = value_of(side, case.names)
        kind = type(value)
        if issubclass(kind, Named) and "values" in type.__dict__["__dict__"].__get__(kind):
            fixes = case.fix((side, f"{case.atom(side)}.values"))
            return Finding(case.say("two results"), None, fixes)
    return None


def list_as_tensor(case: Case) -> Finding | None:
    """``[tensor, tensor].mean()``."""
    node = case.site.node
    if not isinstance(node, ast.Attribute) or plain_field_of_tensors(node.attr) is UNKNOWN:
        return None
    value = value_of(node.value, case.names)
    if type(value) not in (list, tuple) or not value:
        return None
    made = "stack" if all(fact_of(each) is not None for each in value) else "tensor"
    text = f"{case.torch}.{made}({case.site.text_of(node.value)})"
    rule = case.say("tensor wanted", kind=type(value).__name__)
    return Finding(rule, None, case.fix((node.value, text)))


def plain_field_of_tensors(name: str) -> object:
    """What Tensor has under a name; UNKNOWN: nothing."""
    return vars(Tensor).get(name, UNKNOWN)


def both(case: Case) -> Finding | None:
    """``a and b`` of tensors: element by element it is ``&``."""
    node = case.site.node
    if isinstance(node, ast.BoolOp):
        sign = " & " if isinstance(node.op, ast.And) else " | "
        parts = [case.atom(value) for value in node.values]
        fixes = case.fix((node, sign.join(parts)))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        fixes = case.fix((node, f"~{case.atom(node.operand)}"))
    else:
        return None
    return Finding(case.say("each element"), None, fixes)


def bits_of_floats(case: Case) -> Finding | None:
    """``x > 0 & x < 2``, and other bits of real numbers."""
    return Finding(case.say("bits"), Picture([row(o) for o in case.operands[:2]], right=False))


def bools(case: Case) -> Finding | None:
    """``-mask`` and ``mask - mask``."""
    node = case.site.node
    fixes: Fixes = []
    if isinstance(node, ast.UnaryOp):
        fixes = case.fix((node, f"~{case.atom(node.operand)}"))
    elif isinstance(node, ast.BinOp):
        fixes = case.fix((node, f"{case.atom(node.left)} ^ {case.atom(node.right)}"))
    return Finding(case.say("bool numbers"), None, fixes)


def keeps_its_dtype(case: Case) -> Finding | None:
    """``integers /= 2``."""
    node = case.site.node
    symbols = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
    fixes: Fixes = []
    if isinstance(node, ast.AugAssign) and type(node.op) in symbols:
        target = case.site.text_of(node.target)
        value = case.atom(node.value)
        fixes = [(f"{target} = {target} {symbols[type(node.op)]} {value}", "")]
    rows = Picture([row(o) for o in case.operands[:2]]) if case.operands else None
    return Finding(case.say("keeps dtype"), rows, fixes)


def list_of_tensors(case: Case) -> Finding | None:
    """``cat(a, b)``."""
    call = case.call
    if call is None:
        return None
    given = [node for node in call.args if fact_of(value_of(node, case.names)) is not None]
    fixes: Fixes = []
    if given and given == call.args[: len(given)]:
        texts = [case.site.text_of(node) for node in given]
        if len(given) == 1:
            fixes = case.fix((given[0], f"[{texts[0]}]"))
        else:
            fixes = case.fix((given[0], f"[{texts[0]}"), (given[-1], f"{texts[-1]}]"))
    return Finding(case.say("list of tensors"), None, fixes)


def number_times_matrix(case: Case) -> Finding | None:
    """``@`` with a tensor of no dims."""
    node = case.site.node
    fixes: Fixes = []
    if isinstance(node, ast.BinOp):
        fixes = case.fix((node, f"{case.atom(node.left)} * {case.atom(node.right)}"))
    return Finding(case.say("scale"), Picture([row(o) for o in case.operands[:2]]), fixes)


def one_unknown_size(case: Case) -> Finding | None:
    """``reshape(-1, -1)``."""
    return Finding(case.say("one -1"), Picture([row(o) for o in case.operands[:1]]))


def dtype_by_name(case: Case) -> Finding | None:
    """``dtype="float32"``."""
    found = re.search(r"not str \('(\w+)'\)", case.message)
    if found is None:
        return None
    fixes = case.fix((case.argument(found[1]), f"{case.torch}.{found[1]}"))
    return Finding(case.say("dtype object"), None, fixes)


def parameter_wanted(case: Case) -> Finding | None:
    """``layer.weight = tensor``."""
    return Finding(case.say("parameter wanted"))


def no_bfloat16(case: Case) -> Finding | None:
    """``numpy()`` of bfloat16."""
    fixes = case.with_suffix(case.operands[0], ".float()") if case.operands else []
    return Finding(case.say("no bfloat16"), None, fixes)
