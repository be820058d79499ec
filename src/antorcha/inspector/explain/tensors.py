"""Why devices, dtypes, conversions and autograd refuse, and what they would take."""

from __future__ import annotations

import ast

from antorcha.inspector.explain.case import (
    Case,
    Finding,
    Fixes,
    by_dtype,
    row,
    rows,
    rule,
    sizes,
)
from antorcha.inspector.explain.draw import Picture, ShapeRow
from antorcha.inspector.explain.operands import NamedOperand
from antorcha.inspector.explain.site import program_of
from antorcha.inspector.explain.values import fact_of, value_of
from antorcha.inspector.forms import shape_text
from antorcha.runtime.tensor import Tensor

_SHORT = {"float32": ".float()", "float64": ".double()", "float16": ".half()",
          "bfloat16": ".bfloat16()", "int64": ".long()", "int32": ".int()"}  # fmt: skip


# ------------------------------------------------------------------------------ devices and dtypes
@rule("device", takes=2)
def devices(case: Case, a: NamedOperand, *_: NamedOperand) -> Finding | None:
    """Operands on different devices."""
    others = [o for o in case.operands if o.fact.device != a.fact.device]
    if not others:
        return None
    picture = Picture([
        ShapeRow(o.label, sizes(o.fact), set(),
              case.say("on", dtype=o.fact.dtype.name, device=o.fact.device), True)
        for o in case.operands
    ])  # fmt: skip
    unreal = [o for o in case.operands if o.fact.device.type == "meta"]
    if unreal:
        real = next(o for o in [a, *others] if o.fact.device.type != "meta")
        like = f"{case.torch}.zeros_like({unreal[0].label}, device={_device(case, real)})"
        found = case.finding(picture, case.fix((unreal[0].node, like)))
        found.rule += f" {case.say('meta')}"
        return found
    fixes = case.with_suffix(others[0], f".to({_device(case, a)})")
    return case.finding(picture, fixes + case.with_suffix(a, f".to({_device(case, others[0])})"))


def _device(case: Case, operand: NamedOperand) -> str:
    """Code for an operand's device."""
    return f"{case.atom(operand.node)}.device" if operand.node is not None else (
        repr(str(operand.fact.device))
    )  # fmt: skip


@rule("no device")
def no_device(case: Case) -> Finding:
    """A device that is not there."""
    name = case["device"]
    node = case.argument(name) or case.argument(f"{name}:0")
    fixes = case.fix((node, '"cpu"'))
    if name == "cuda":
        asked = f'"cuda" if {case.torch}.cuda.is_available() else "cpu"'
        fixes += case.fix((node, asked))
    func = case.call.func if case.call is not None else None
    if node is None and isinstance(func, ast.Attribute) and func.attr == "cuda":
        fixes = case.fix((case.call, f'{case.text(func.value)}.to("cpu")'))
    return case.finding(None, fixes)


@rule("dtype")
def dtypes(case: Case) -> Finding | None:
    """Operands of dtypes that the op does not mix."""
    operands = [o for o in case.operands if o.fact.shape or len(case.operands) == 2]
    if len({operand.fact.dtype.name for operand in operands}) < 2:
        return None
    a, b = operands[0], next(o for o in operands if o.fact.dtype is not operands[0].fact.dtype)
    change, to = (b, a)
    if (a.fact.dtype.kind not in "fc" and b.fact.dtype.kind in "fc") or (
        b.fact.is_parameter and not a.fact.is_parameter
    ):
        change, to = (a, b)
    wanted = to.fact.dtype.name
    suffix = _SHORT.get(wanted, f".to({case.torch}.{wanted})")
    return case.finding(by_dtype(operands, operands, right=True), case.with_suffix(change, suffix))


@rule("index dtype", "integer index")
def index_dtype(case: Case) -> Finding:
    """Indices that are no integers."""
    wrong = [o for o in case.operands if o.fact.dtype.kind in "fc"][-1:]
    fixes: Fixes = []
    for index in wrong:
        fixes = case.with_suffix(index, ".long()")
        mask, masked = index.fact.shape, case.operands[0].fact.shape
        if case.facts.reason == "index dtype" and mask and mask == masked[: len(mask)]:
            fixes += case.with_suffix(index, ".bool()")
    return case.finding(by_dtype(case.operands, wrong) if wrong else None, fixes)


@rule("needs float")
def needs_float(case: Case) -> Finding | None:
    """Integers where real numbers are wanted."""
    wrong = [o for o in case.operands if o.fact.dtype.kind not in "fc"]
    if not wrong:
        return None
    x = wrong[0]
    picture, fixes = by_dtype(case.operands, wrong), case.with_suffix(x, ".float()")
    return case.finding(picture, fixes, label=x.label, dtype=x.fact.dtype.name)


@rule("needs mask")
def needs_mask(case: Case) -> Finding | None:
    """Numbers where a mask is wanted."""
    at = 0 if case.failed.op.startswith("where") else 1
    if len(case.operands) <= at:
        return None
    mask = case.operands[at]
    fixes = case.fix((mask.node, f"{case.atom(mask.node)} != 0"))
    return case.finding(by_dtype(case.operands, [mask], right=True), fixes)


@rule("int grad")
def integer_gradient(case: Case) -> Finding:
    """requires_grad of integers."""
    dtype, last = case.given("dtype", 99), case.call.args[-1:] if case.call is not None else []
    fixes: Fixes = []
    if case.receiver is not None:
        fixes = case.fix((case.receiver, f"{case.atom(case.receiver)}.float()"))
    elif dtype is not None:
        fixes = case.fix((dtype, f"{case.torch}.float32"))
    elif last:
        fixes = case.fix((last[0], f"{case.text(last[0])}, dtype={case.torch}.float32"))
    loud = by_dtype(case.operands, case.operands, right=True) if case.operands else None
    return case.finding(loud, fixes)


@rule("keeps dtype")
def keeps_its_dtype(case: Case) -> Finding:
    """``integers /= 2``."""
    result = out_of_place(case.site.node)
    picture = rows(case.operands[:2]) if case.operands else None
    return case.finding(picture, [(result, "")] if result else [])


@rule("bool numbers")
def bools(case: Case) -> Finding:
    """``-mask`` and ``mask - mask``."""
    node = case.site.node
    fixes: Fixes = []
    if isinstance(node, ast.UnaryOp):
        fixes = case.fix((node, f"~{case.atom(node.operand)}"))
    elif isinstance(node, ast.BinOp):
        fixes = case.fix((node, f"{case.atom(node.left)} ^ {case.atom(node.right)}"))
    return case.finding(None, fixes)


@rule("dtype object")
def dtype_by_name(case: Case) -> Finding | None:
    """``dtype="float32"``."""
    name = case["given"]
    fixes = case.fix((case.argument(name), f"{case.torch}.{name}"))
    return case.finding(None, fixes) if name else None


# ------------------------------------------------------------------------------------- conversions
@rule("item", takes=1)
def one_element(case: Case, x: NamedOperand) -> Finding:
    """``item()`` of several elements."""
    fixes = case.with_suffix(x, ".mean()") + case.renamed("tolist")
    return case.finding(rows([x]), fixes, label=x.label)


@rule("truth")
def truth(case: Case) -> Finding | None:
    """``if x`` of several elements, and ``a and b``, which is ``&`` element by element."""
    node = case.site.node
    if isinstance(node, ast.BoolOp):
        sign = " & " if isinstance(node.op, ast.And) else " | "
        fixes = case.fix((node, sign.join([case.atom(value) for value in node.values])))
        return case.finding(None, fixes, "each element")
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return case.finding(None, case.fix((node, f"~{case.atom(node.operand)}")), "each element")
    if not case.operands:
        return None
    inside = node.args[0] if isinstance(node, ast.Call) and node.args else node
    fixes = []
    for name in ("any", "all"):
        fixes += case.fix((inside, f"{case.atom(inside)}.{name}()"))
    x = case.operands[0]
    return case.finding(Picture([row(x, note=shape_text(x.fact.shape))]), fixes)


@rule("int wanted", takes=1)
def tensor_as_size(case: Case, x: NamedOperand) -> Finding | None:
    """A tensor where sizes are wanted."""
    if case["kind"] != "Tensor" or not case["name"].endswith("size"):
        return None
    if x.fact.numel == 1:
        fixes = case.fix((x.node, f"int({case.text(x.node)})"))
    else:
        fixes = case.with_suffix(x, ".shape", gives=True)
    return case.finding(rows([x]), fixes, "size wanted")


@rule("too many arguments", "no tensor wanted")
def list_of_tensors(case: Case) -> Finding | None:
    """``cat(a, b)``."""
    call = case.call
    if call is None or case.facts.op not in ("cat", "stack"):
        return None
    given = [node for node in call.args if fact_of(value_of(node, case.names)) is not None]
    fixes: Fixes = []
    if given and given == call.args[: len(given)]:
        first, last = given[0], given[-1]
        fixes = (
            case.fix((first, f"[{case.text(first)}]")) if first is last
            else case.fix((first, f"[{case.text(first)}"), (last, f"{case.text(last)}]"))
        )  # fmt: skip
    return case.finding(None, fixes, "list of tensors")


@rule("backwards")
def backwards_array(case: Case) -> Finding:
    """A NumPy array that runs backwards."""
    node = case.given("data", 0)
    return case.finding(None, case.fix((node, f"{case.atom(node)}.copy()")))


# ----------------------------------------------------------------------------------------- autograd
@rule("second")
def second_backward(case: Case) -> Finding:
    """``backward()`` through a graph that was freed."""
    call = case.call
    if call is None or not isinstance(call.func, ast.Attribute):
        return case.finding()
    text = case.site.expression
    inside = "" if text.endswith("()") else ", "
    found = case.finding(None, [(f"{text[:-1]}{inside}{case.facts.fix})", "")])
    tree = program_of(case.site)
    every = list(ast.walk(tree)) if tree is not None else []
    loops = [node for node in every if isinstance(node, (ast.For, ast.While))]
    if not any(loop.lineno <= case.site.number <= (loop.end_lineno or 0) for loop in loops):
        same = [node for node in every if isinstance(node, ast.Call) and _same_call(node, call)]
        before = [node.lineno for node in same if node.lineno < case.site.number]
        found.notes = [case.say("first call", number=min(before))] if before else []
    return found


def _same_call(one: ast.Call, two: ast.Call) -> bool:
    return ast.unparse(one.func) == ast.unparse(two.func)


@rule("leaf")
def leaf_write(case: Case) -> Finding:
    """A write to a leaf that collects gradients."""
    statement = case.site.lines[0].strip() if len(case.site.lines) == 1 else case.site.expression
    fixes = [(f"with {case.torch}.no_grad():\n    {statement}", "")] if statement else []
    result = out_of_place(case.site.node)
    fixes += [(result, "")] if result else []
    return case.finding(rows(case.operands[:1]) if case.operands else None, fixes)


def out_of_place(node: ast.AST | None) -> str:
    """``y += 1`` as code that makes a new tensor; "" of anything else."""
    if not isinstance(node, ast.AugAssign):
        return ""
    result = ast.BinOp(node.target, node.op, node.value)
    return f"{ast.unparse(node.target)} = {ast.unparse(result)}"


@rule("overwritten")
def overwritten(case: Case) -> Finding:
    """A saved value that has been written to; the fix, where there is one such write only."""
    tree = program_of(case.site)
    found = [fix for node in ast.walk(tree) if (fix := _write(case, node))] if tree else []
    return case.finding(None, [(found[0], "")] if len(found) == 1 else [])


def _write(case: Case, node: ast.AST) -> str:
    """A write in place to a computed tensor, ``y += 1`` or ``y.add_(1)``, made out of place."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        name, result = node.target.id, out_of_place(node)
    elif (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        and isinstance(func := node.value.func, ast.Attribute)
        and isinstance(func.value, ast.Name)
        and func.attr.endswith("_") and hasattr(Tensor, func.attr[:-1])
    ):  # fmt: skip
        name, method = func.value.id, ast.Attribute(func.value, func.attr[:-1], ast.Load())
        call = ast.Call(method, node.value.args, node.value.keywords)
        result = f"{name} = {ast.unparse(call)}"
    else:
        return ""
    fact = fact_of(case.names.get(name))
    return result if fact is not None and not fact.is_leaf else ""


@rule("no graph")
def no_graph(case: Case) -> Finding:
    """``backward()`` of what was computed from nothing that wants a gradient."""
    fixes: Fixes = []
    if not isinstance(case.receiver, ast.Name):  # what it was computed from is on the line
        for node in ast.walk(case.receiver) if case.receiver is not None else ():
            fact = fact_of(case.names.get(node.id)) if isinstance(node, ast.Name) else None
            if fact is not None and fact.dtype.kind in "fc":
                fixes = [(f"{case.text(node)}.requires_grad_()", "")]
    return case.finding(None, fixes, label=case.operands[0].label if case.operands else "x")


@rule("inference")
def inference(case: Case) -> Finding:
    """A tensor of inference mode in a graph."""
    fixes: Fixes = []
    for operand in case.operands:
        if operand.fact.is_inference:
            fixes += case.with_suffix(operand, ".clone()")
    picture = rows(case.operands[:4], right=False) if case.operands else None
    return case.finding(picture, fixes)


@rule("computed flag")
def flag_of_computed(case: Case) -> Finding:
    """``requires_grad = False`` of what was computed."""
    label = case.operands[0].label if case.operands else "x"
    return case.finding(None, [(f"{label} = {label}.detach()", "")])


@rule("gradient shape", takes=2)
def gradient_shape(case: Case, y: NamedOperand, given: NamedOperand) -> Finding:
    """``backward`` with a gradient of another shape."""
    fixes = case.fix((case.given("gradient", 0), f"{case.torch}.ones_like({y.label})"))
    return case.finding(Picture([row(y), row(given, range(len(given.fact.shape)))]), fixes)
