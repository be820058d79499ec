"""Why devices, dtypes, dims, indices and autograd refuse, and what they would take."""

from __future__ import annotations

import ast
import re
from math import prod

from antorcha.inspector.explain_case import Case, Finding, Fixes, row, sizes
from antorcha.inspector.explain_draw import Picture, Shape
from antorcha.inspector.explain_operands import Operand
from antorcha.inspector.explain_site import program_of
from antorcha.inspector.explain_values import fact_of
from antorcha.inspector.forms import shape_text
from antorcha.runtime.tensor import Tensor

_IGNORED = -100  # the target that losses of classes leave out
_SHORT = {"float32": ".float()", "float64": ".double()", "float16": ".half()",
          "bfloat16": ".bfloat16()", "int64": ".long()", "int32": ".int()"}  # fmt: skip


# ------------------------------------------------------------------------------ devices and dtypes
def devices(case: Case) -> Finding | None:
    """Operands on different devices."""
    operands = case.operands
    where = [str(operand.fact.device) for operand in operands]
    if len(set(where)) < 2:
        return None
    rows = []
    for o in operands:
        note = case.say("on", dtype=o.fact.dtype.name, device=o.fact.device)
        rows.append(Shape(o.label, sizes(o.fact), set(), note, True))
    real = [o for o in operands if o.fact.device.type != "meta"]
    if len(real) < len(operands):
        unreal = [o for o in operands if o.fact.device.type == "meta"]
        fixes: Fixes = []
        if real and unreal:
            other = real[0]
            like = f"{case.torch}.zeros_like({unreal[0].label}, device={_device(case, other)})"
            fixes += case.fix((unreal[0].node, like))
        return Finding(f"{case.say('device')} {case.say('meta')}", Picture(rows), fixes)
    a, b = operands[0], next(o for o in operands if o.fact.device != operands[0].fact.device)
    fixes = case.with_suffix(b, f".to({_device(case, a)})")
    fixes += case.with_suffix(a, f".to({_device(case, b)})")
    return Finding(case.say("device"), Picture(rows), fixes)


def _device(case: Case, operand: Operand) -> str:
    """Code for an operand's device."""
    return f"{case.atom(operand.node)}.device" if operand.node is not None else (
        repr(str(operand.fact.device))
    )  # fmt: skip


def no_device(case: Case) -> Finding | None:
    """A device that is not there."""
    for word in ("cuda", "mps", "xpu"):
        node = case.argument(word) or case.argument(f"{word}:0")
        if node is not None:
            asked = f'"{word}" if {case.torch}.{word}.is_available() else "cpu"'
            fixes = case.fix((node, '"cpu"'))
            fixes += case.fix((node, asked)) if word == "cuda" else []
            return Finding(case.say("no device"), None, fixes)
    named = re.search(r"no device '(\w+)'", case.message)
    fixes = case.fix((case.argument(named[1]), '"cpu"')) if named else []
    if fixes:
        return Finding(case.say("no device"), None, fixes)
    call = case.call
    if call is not None and isinstance(call.func, ast.Attribute) and call.func.attr == "cuda":
        fixes = case.fix((call, f'{case.site.text_of(call.func.value)}.to("cpu")'))
        return Finding(case.say("no device"), None, fixes)
    return Finding(case.say("no device"))


def dtypes(case: Case) -> Finding | None:
    """Operands of dtypes that the op does not mix."""
    operands = [o for o in case.operands if o.fact.shape or len(case.operands) == 2]
    kinds = {operand.fact.dtype.name for operand in operands}
    if len(kinds) < 2:
        return None
    rows = [Shape(o.label, sizes(o.fact), set(), o.fact.dtype.name, True) for o in operands]
    a, b = operands[0], next(o for o in operands if o.fact.dtype is not operands[0].fact.dtype)
    change, to = (b, a)
    if (a.fact.dtype.kind not in "fc" and b.fact.dtype.kind in "fc") or (
        b.fact.is_parameter and not a.fact.is_parameter
    ):
        change, to = (a, b)
    wanted = to.fact.dtype.name
    suffix = _SHORT.get(wanted, f".to({case.torch}.{wanted})")
    return Finding(case.say("dtype"), Picture(rows), case.with_suffix(change, suffix))


def index_dtype(case: Case) -> Finding | None:
    """Indices that are no integers."""
    wrong = [o for o in case.operands if o.fact.dtype.kind in "fc"]
    index = wrong[-1] if wrong else None
    key = "index dtype" if "tensors used as indices" in case.message else "integer index"
    if index is None:
        return Finding(case.say(key))
    rows = [
        Shape(o.label, sizes(o.fact), set(), o.fact.dtype.name, o is index) for o in case.operands
    ]
    fixes = case.with_suffix(index, ".long()")
    mask, masked = index.fact.shape, case.operands[0].fact.shape
    if key == "index dtype" and mask and mask == masked[: len(mask)]:
        fixes += case.with_suffix(index, ".bool()")
    return Finding(case.say(key), Picture(rows, right=False), fixes)


def needs_float(case: Case) -> Finding | None:
    """Integers where real numbers are wanted."""
    wrong = [o for o in case.operands if o.fact.dtype.kind not in "fc"]
    if not wrong:
        return None
    x = wrong[0]
    rows = [
        Shape(o.label, sizes(o.fact), set(), o.fact.dtype.name, o in wrong) for o in case.operands
    ]
    rule = case.say("needs float", label=x.label, dtype=x.fact.dtype.name)
    return Finding(rule, Picture(rows, right=False), case.with_suffix(x, ".float()"))


def needs_mask(case: Case) -> Finding | None:
    """Numbers where a mask is wanted."""
    at = 0 if case.failed.op.startswith("where") else 1
    if len(case.operands) <= at:
        return None
    mask = case.operands[at]
    rows = [
        Shape(o.label, sizes(o.fact), set(), o.fact.dtype.name, o is mask) for o in case.operands
    ]
    fixes = case.fix((mask.node, f"{case.atom(mask.node)} != 0"))
    return Finding(case.say("needs mask"), Picture(rows), fixes)


def integer_gradient(case: Case) -> Finding | None:
    """requires_grad of integers."""
    call = case.call
    fixes: Fixes = []
    if call is not None:
        given = [word.value for word in call.keywords if word.arg == "dtype"]
        if case.receiver is not None:
            fixes += case.fix((case.receiver, f"{case.atom(case.receiver)}.float()"))
        elif given:
            fixes += case.fix((given[0], f"{case.torch}.float32"))
        elif call.args:
            last = call.args[-1]
            text = f"{case.site.text_of(last)}, dtype={case.torch}.float32"
            fixes += case.fix((last, text))
    rows = [Shape(o.label, sizes(o.fact), set(), o.fact.dtype.name, True) for o in case.operands]
    picture = Picture(rows) if rows else None
    return Finding(case.say("int grad"), picture, fixes)


# -------------------------------------------------------------------------------- dims and indices
def dims(case: Case) -> Finding | None:
    """A dim that the tensor does not have."""
    pattern = (
        r"dim (-?\d+) is out of range for a tensor of (\d+) dimensions? \(expected (-?\d+)\.\."
    )
    found = re.search(pattern, case.message)
    if found is None:
        return None
    given, ndim, low = int(found[1]), int(found[2]), int(found[3])
    high = max(ndim - 1, 0)
    rule = case.say("dim", ndim=ndim, low=low, high=high, given=given)
    picture = None
    if case.operands and len(case.operands[0].fact.shape) == ndim:
        x = case.operands[0]
        picture = Picture(
            [row(x), Shape("dim", [str(k) for k in range(ndim)]),
             Shape("", [str(k - ndim) for k in range(ndim)])], right=False,
        )  # fmt: skip
    nearest = high if given > high else low
    return Finding(rule, picture, case.fix((case.argument(given), str(nearest))))


def indices(case: Case) -> Finding | None:
    """An index that the dim does not have."""
    pattern = r"index (-?\d+) is out of bounds for dimension (\d+) with size (\d+)"
    found = re.search(pattern, case.message)
    if found is None:
        return None
    given, dim, size = int(found[1]), int(found[2]), int(found[3])
    rule = case.say("index", size=size, low=-size, high=size - 1, given=given)
    hit = [o for o in case.operands if len(o.fact.shape) > dim and o.fact.shape[dim] == size]
    picture = Picture([row(hit[0], {dim})], right=False) if hit else None
    if isinstance(case.site.node, ast.Subscript) and size:
        return Finding(rule, picture, case.fix((case.argument(given), "-1" if given > 0 else "0")))
    return Finding(rule, picture)


def too_many(case: Case) -> Finding | None:
    """More indices than dims."""
    found = re.search(r"(\d+) indices for shape", case.message)
    if found is None or not case.operands:
        return None
    x = case.operands[0]
    rule = case.say("too many", given=found[1], ndim=len(x.fact.shape))
    node, most = case.site.node, len(x.fact.shape)
    fixes: Fixes = []
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and most:
        given = [case.site.text_of(each) for each in node.slice.elts[:most]]
        fixes = case.fix((node.slice, ", ".join(given)))
    return Finding(rule, Picture([row(x)]), fixes)


def classes(case: Case) -> Finding | None:
    """A target that is no class."""
    if not case.operands or not case.operands[0].fact.shape:
        return None
    shape = case.operands[0].fact.shape
    at = 1 if len(shape) > 1 else 0
    rows = [row(case.operands[0], {at}), *[row(o) for o in case.operands[1:2]]]
    rule = case.say("class", count=shape[at], high=shape[at] - 1)
    fixes: Fixes = []
    target = case.operands[1] if len(case.operands) > 1 else None
    every = case.extremes(target) if target is not None else None
    some = case.extremes(target, but=_IGNORED) if target is not None else None
    if target is not None and every is not None and some is not None:
        rule += f" {case.say('class range', low=some[0], high=some[1])}"
        if every[0] == 1 and every[1] <= shape[at]:
            fixes = case.with_suffix(target, " - 1")
        elif some[0] >= 0:
            rule += f" {case.say('class outputs', count=some[1] + 1)}"
    return Finding(rule, Picture(rows, right=False), fixes)


# ----------------------------------------------------------------------------------------- autograd
def _subject(case: Case) -> tuple[str, Operand | None]:
    """The tensor that a method was called on: its label, and what is known of it."""
    first = case.operands[0] if case.operands else None
    return (first.label if first is not None else "x"), first


def not_scalar(case: Case) -> Finding | None:
    """``backward()`` of more than one number."""
    label, x = _subject(case)
    if x is None:
        return None
    rule = case.say("scalar", label=label, count=x.fact.numel)
    fixes = case.with_suffix(x, ".sum()") + case.with_suffix(x, ".mean()")
    return Finding(rule, Picture([row(x)]), fixes)


def second_backward(case: Case) -> Finding | None:
    """``backward()`` through a graph that was freed."""
    call = case.call
    if call is None or not isinstance(call.func, ast.Attribute):
        return Finding(case.say("second"))
    text = case.site.expression
    inside = "" if text.endswith("()") else ", "
    fixes = [(f"{text[:-1]}{inside}retain_graph=True)", "")]
    tree, notes = program_of(case.site), []
    every = list(ast.walk(tree)) if tree is not None else []
    loops = [node for node in every if isinstance(node, (ast.For, ast.While))]
    if not any(loop.lineno <= case.site.number <= (loop.end_lineno or 0) for loop in loops):
        first = [node for node in every if isinstance(node, ast.Call) and _same_call(node, call)]
        before = [node.lineno for node in first if node.lineno < case.site.number]
        notes = [case.say("first call", number=min(before))] if before else []
    return Finding(case.say("second"), None, fixes, notes)


def _same_call(one: ast.Call, two: ast.Call) -> bool:
    return ast.unparse(one.func) == ast.unparse(two.func)


def leaf_write(case: Case) -> Finding | None:
    """A write to a leaf that collects gradients."""
    statement = case.site.lines[0].strip() if len(case.site.lines) == 1 else case.site.expression
    fixes = [(f"with {case.torch}.no_grad():\n    {statement}", "")] if statement else []
    node = case.site.node
    symbols = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
    if isinstance(node, ast.AugAssign) and type(node.op) in symbols:
        target, value = case.site.text_of(node.target), case.site.text_of(node.value)
        fixes.append((f"{target} = {target} {symbols[type(node.op)]} {value}", ""))
    picture = Picture([row(case.operands[0])]) if case.operands else None
    return Finding(case.say("leaf"), picture, fixes)


def overwritten(case: Case) -> Finding | None:
    """A saved value that has been written to."""
    tree = program_of(case.site)
    found = [fix for node in ast.walk(tree) if (fix := _out_of_place(case, node))] if tree else []
    return Finding(case.say("overwritten"), None, [(found[0], "")] if len(found) == 1 else [])


def _out_of_place(case: Case, node: ast.AST) -> str:
    """A write in place to a tensor, ``y += 1`` or ``y.add_(1)``, as code that makes a new one."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        name = node.target.id
        made: ast.expr = ast.BinOp(ast.Name(name, ast.Load()), node.op, node.value)
    elif (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and isinstance(node.value.func.value, ast.Name)
        and (method := node.value.func.attr).endswith("_") and hasattr(Tensor, method[:-1])
    ):  # fmt: skip
        name = node.value.func.value.id
        func = ast.Attribute(ast.Name(name, ast.Load()), method[:-1], ast.Load())
        made = ast.Call(func, node.value.args, node.value.keywords)
    else:
        return ""
    fact = fact_of(case.names.get(name))
    return f"{name} = {ast.unparse(made)}" if fact is not None and not fact.is_leaf else ""


def no_graph(case: Case) -> Finding | None:
    """``backward()`` of what was computed from nothing that wants a gradient."""
    label, _ = _subject(case)
    fixes: Fixes = []
    if not isinstance(case.receiver, ast.Name):  # what it was computed from is on the line
        for node in ast.walk(case.receiver) if case.receiver is not None else ():
            fact = fact_of(case.names.get(node.id)) if isinstance(node, ast.Name) else None
            if fact is not None and fact.dtype.kind in "fc":
                fixes = [(f"{case.site.text_of(node)}.requires_grad_()", "")]
    return Finding(case.say("no graph", label=label), None, fixes)


def numpy(case: Case) -> Finding | None:
    """A NumPy array of a tensor in a graph."""
    _, x = _subject(case)
    return Finding(case.say("numpy"), None, case.with_suffix(x, ".detach()") if x else [])


def one_element(case: Case) -> Finding | None:
    """``item()`` of several elements."""
    label, x = _subject(case)
    if x is None:
        return None
    rule = case.say("item", label=label, count=x.fact.numel)
    fixes = case.with_suffix(x, ".mean()")
    call = case.call
    if call is not None and isinstance(call.func, ast.Attribute):
        fixes += case.fix((call.func, f"{case.atom(call.func.value)}.tolist"))
    return Finding(rule, Picture([row(x)]), fixes)


def truth(case: Case) -> Finding | None:
    """``if x`` of several elements."""
    _, x = _subject(case)
    if x is None:
        return None
    picture = Picture([Shape(x.label or "?", sizes(x.fact), set(), shape_text(x.fact.shape))])
    node = case.site.node
    whole = case.site.expression
    inside = node.args[0] if isinstance(node, ast.Call) and node.args else node
    fixes: Fixes = []
    for name in ("any", "all"):
        if whole and inside is not None:
            fixes += case.fix((inside, f"{case.atom(inside)}.{name}()"))
    return Finding(case.say("truth", count=prod(x.fact.shape)), picture, fixes)
