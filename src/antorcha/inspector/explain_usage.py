"""Why optimizers, checkpoints, constructors and Python's own operators refuse, and the way out."""

from __future__ import annotations

import ast
import re
import sys

from antorcha.inspector.explain_case import Case, Finding, Fixes, row
from antorcha.inspector.explain_draw import Picture, Shape
from antorcha.inspector.explain_layers import plain_argument
from antorcha.inspector.explain_values import fact_of, value_of
from antorcha.inspector.naming import module_fields


def _all_rows(case: Case) -> Picture | None:
    return Picture([row(o) for o in case.operands[:4]], right=False) if case.operands else None


# -------------------------------------------------------------------------- optimizers, checkpoints
def no_parameters(case: Case) -> Finding | None:
    """An optimizer of nothing."""
    models = [
        name for name, value in case.names.known.items()
        if type(name) is str and module_fields(value) and not name.startswith("_")
    ]  # fmt: skip
    call = case.call
    fixes: Fixes = []
    if call is not None and call.args and len(models) == 1:
        fixes = case.fix((call.args[0], f"{models[0]}.parameters()"))
    return Finding(case.say("no parameters"), None, fixes)


def module_as_parameters(case: Case) -> Finding | None:
    """``SGD(model)``, ``SGD([encoder, decoder])``."""
    call = case.call
    if call is None or value_of(call.func, case.names) not in _optimizers():
        return None
    given = [word.value for word in call.keywords if word.arg == "params"] + call.args[:1]
    if not given:
        return None
    node = given[0]
    parts = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
    found = [part for part in parts if module_fields(value_of(part, case.names)) is not None]
    if not found:
        return None
    texts = [f"{case.atom(part)}.parameters()" for part in found]
    made = texts[0] if len(texts) == 1 else f"[{', '.join([f'*{text}' for text in texts])}]"
    fixes = case.fix((node, made)) if len(found) == len(parts) else []
    return Finding(case.say("list of parameters"), None, fixes)


def _optimizers() -> list[type]:
    """The classes of antorcha.optim."""
    package = sys.modules.get("antorcha.optim")
    return [v for v in list(vars(package).values()) if isinstance(v, type)] if package else []


def bare_parameter(case: Case) -> Finding | None:
    """A tensor where a list of them is wanted."""
    call = case.call
    if call is None or not call.args:
        return None
    text = case.site.text_of(call.args[0])
    return Finding(case.say("list of parameters"), None, case.fix((call.args[0], f"[{text}]")))


def computed_parameter(case: Case) -> Finding | None:
    """An optimizer of what was computed."""
    if not case.operands:
        return None
    x = case.operands[0]
    fixes = case.with_suffix(x, ".detach().requires_grad_()")
    return Finding(case.say("computed parameter", label=x.label), None, fixes)


def state_dict(case: Case) -> Finding | None:
    """A checkpoint of another model."""
    lost = re.search(r"Missing key\(s\) in state_dict: (.*?)\. ?(\n|$)", case.message)
    found = re.search(r"Unexpected key\(s\) in state_dict: (.*?)\. ?(\n|$)", case.message)
    fixes: Fixes = []
    call = case.call
    if lost and found and call is not None and call.args:
        wanted, given = (re.findall(r'"([^"]+)"', each[1]) for each in (lost, found))
        text = case.atom(call.args[0])
        long, short = given[0], wanted[0]
        if "size mismatch" in case.message:  # (other names are not enough)
            pass
        elif long.endswith(f".{short}") and _renamed(given, wanted, long[: -len(short)]):
            start = long[: -len(short)]
            made = f'{{k.removeprefix("{start}"): v for k, v in {text}.items()}}'
            fixes = case.fix((call.args[0], made))
        elif short.endswith(f".{long}") and _renamed(wanted, given, short[: -len(long)]):
            start = short[: -len(long)]
            fixes = case.fix((call.args[0], f'{{"{start}" + k: v for k, v in {text}.items()}}'))
    key = "checkpoint names" if lost or found else "checkpoint sizes"
    return Finding(case.say(key), None, fixes)


def _renamed(long: list[str], short: list[str], start: str) -> bool:
    """Are these the same names, but for what they start with?"""
    return sorted(long) == sorted([start + name for name in short])


def no_super(case: Case) -> Finding | None:
    """A module whose ``__init__`` does not call that of Module."""
    return Finding(case.say("super"), None, [("super().__init__()", "")])


def no_forward(case: Case) -> Finding | None:
    """A module without ``forward``."""
    return Finding(case.say("forward"))


# -------------------------------------------------------------------------------------------- data
def sizes_of_a_dataset(case: Case) -> Finding | None:
    """``TensorDataset`` of tensors of another number of rows."""
    if len(case.operands) < 2:
        return None
    first = case.operands[0]
    rows = first.fact.shape[:1]
    fixes: Fixes = []
    for operand in case.operands:
        shape = operand.fact.shape
        if shape[:1] != rows and len(shape) == 2 and shape[1:] == rows:
            fixes += case.with_suffix(operand, ".T")
    counts = [str(o.fact.shape[0]) if o.fact.shape else "-" for o in case.operands]
    picture = Picture([row(o, {0}) for o in case.operands[:8]], right=False)
    return Finding(case.say("dataset", counts=", ".join(counts)), picture, fixes)


def unequal_samples(case: Case) -> Finding | None:
    """A batch of samples of different shapes."""
    calls = [frame.f_code.co_name for frame in case.site.inner]
    by_loader = any("collate" in name for name in calls) or "DataLoader worker" in case.message
    if not by_loader:
        return None
    found = re.search(
        r"got (\[[\d, ]*\]) at entry 0 and (\[[\d, ]*\]) at entry (\d+)", case.message
    )
    picture = None
    if found is not None:
        rows = [(0, re.findall(r"\d+", found[1])), (int(found[3]), re.findall(r"\d+", found[2]))]
        differ = {k for k, (a, b) in enumerate(zip(rows[0][1], rows[1][1], strict=False)) if a != b}
        picture = Picture([
            Shape(case.say("sample", number=number), list(sizes), differ) for number, sizes in rows
        ], right=False)  # fmt: skip
    return Finding(case.say("samples"), picture, _collated(case))


def _collated(case: Case) -> Fixes:
    """The loader with a function that makes batches of such samples."""
    fixes: Fixes = []
    for code in _batches(case):
        for node in ast.walk(case.site.node) if case.site.node is not None else ():
            if isinstance(node, (ast.Name, ast.Attribute)):
                kinds = [cls.__name__ for cls in type.mro(type(value_of(node, case.names)))]
                if "DataLoader" in kinds:
                    fixes += [(f"{case.site.text_of(node)}.collate_fn = {code}", "")]
                    break
            elif isinstance(node, ast.Call) and node.args:
                made = case.site.text_of(node.func).rpartition(".")[2] == "DataLoader"
                if made and not any(k.arg == "collate_fn" for k in node.keywords):
                    last = [*node.args, *[k.value for k in node.keywords]][-1]
                    text = f"{case.site.text_of(last)}, collate_fn={code}"
                    word = next((k for k in node.keywords if k.value is last), last)
                    text = text if word is last else f"{word.arg}={text}"  # type: ignore[union-attr]
                    fixes += case.fix((word, text))
                    break
    return fixes


def _batches(case: Case) -> list[str]:
    """Code for functions that make a batch of the samples that the loader was given: padded, as a
    tuple of each field's values, or as they are."""
    batches = [frame.f_locals.get("batch") for frame in case.site.inner
               if "collate" in frame.f_code.co_name]  # fmt: skip
    batch = batches[0] if batches else None
    if type(batch) is not list or not batch:
        return ["list"]
    if type(batch[0]) is tuple:
        return ["lambda batch: tuple(zip(*batch))"]
    facts = [fact_of(sample) for sample in batch]
    known = [fact.shape for fact in facts if fact is not None and fact.shape]
    if len(known) == len(batch) and len({shape[1:] for shape in known}) == 1:
        padded = f"{case.nn}.utils.rnn.pad_sequence(batch, batch_first=True)"
        return [f"lambda batch: {padded}", "list"]
    return ["list"]


# ----------------------------------------------------------------------------------- constructors
def not_a_tensor(case: Case) -> Finding | None:
    """A list, a number or an array where a tensor is wanted."""
    found = re.search(r"argument '(\w+)'.* must be Tensor, not (\w+)", case.message)
    call = case.call
    if found is None or call is None:
        return None
    fixes: Fixes = []
    for node in [*call.args, *[k.value for k in call.keywords if k.arg == found[1]]]:
        value = value_of(node, case.names)
        if type(value).__name__ == found[2] and fact_of(value) is None:
            text = case.site.text_of(node)
            fixes += case.fix((node, f"{case.torch}.as_tensor({text})"))
            break
    if not fixes and found[2] == "ndarray" and len(call.args) == 1:  # made on the line itself
        text = case.site.text_of(call.args[0])
        kind = f", dtype={case.torch}.float32" if case.failed.layer is not None else ""
        fixes = case.fix((call.args[0], f"{case.torch}.as_tensor({text}{kind})"))
    return Finding(case.say("tensor wanted", kind=found[2]), _all_rows(case), fixes)


def operators(case: Case) -> Finding | None:
    """An operator between a tensor and a list, an array or a text."""
    node = case.site.node
    if not isinstance(node, ast.BinOp):
        return None
    left, right = value_of(node.left, case.names), value_of(node.right, case.names)
    for tensor, other, at in ((left, right, node.right), (right, left, node.left)):
        fact = fact_of(tensor)
        if fact is not None and type(other) in (list, tuple):
            made = f"{case.torch}.tensor({case.site.text_of(at)}, dtype={case.torch}."
            fixes = case.fix((at, f"{made}{fact.dtype.name})"))
            return Finding(case.say("tensor wanted", kind=type(other).__name__), None, fixes)
    return None


def no_gradient_yet(case: Case) -> Finding | None:
    """``x.grad`` where it is None."""
    for node in ast.walk(case.site.node) if case.site.node is not None else ():
        if not isinstance(node, ast.Attribute) or node.attr != "grad":
            continue
        fact = fact_of(value_of(node.value, case.names))
        if fact is None or value_of(node, case.names) is not None:
            continue
        label = case.site.text_of(node.value)
        if not fact.is_leaf:
            return Finding(case.say("grad not kept", label=label), None,
                           [(f"{label}.retain_grad()", "")])  # fmt: skip
        if not fact.requires_grad:
            return Finding(case.say("grad unwanted", label=label), None,
                           [(f"{label}.requires_grad_()", "")])  # fmt: skip
        return Finding(case.say("grad not yet", label=label))
    return None


def ragged(case: Case) -> Finding | None:
    """Lists of different lengths."""
    return Finding(case.say("ragged"))


def tensor_as_size(case: Case) -> Finding | None:
    """A tensor where sizes are wanted."""
    if not case.operands:
        return None
    x = case.operands[0]
    if x.fact.numel == 1:
        fixes = case.fix((x.node, f"int({case.site.text_of(x.node)})")) if x.node else []
    else:
        fixes = case.with_suffix(x, ".shape", x.fact.shape)
    return Finding(case.say("size wanted"), Picture([row(x)]), fixes)


def backwards_array(case: Case) -> Finding | None:
    """A NumPy array that runs backwards."""
    call = case.call
    if call is None or not call.args:
        return None
    fixes = case.fix((call.args[0], f"{case.atom(call.args[0])}.copy()"))
    return Finding(case.say("backwards"), None, fixes)


# ------------------------------------------------------------------------------- numbers and views
def no_length(case: Case) -> Finding | None:
    """``len`` of, or a loop over, a number."""
    if not case.operands:
        return None
    x = case.operands[0]
    return Finding(case.say("no length"), Picture([row(x)]), case.with_suffix(x, ".reshape(1)"))


def mask_shape(case: Case) -> Finding | None:
    """A mask that does not fit the dims that it stands for."""
    if len(case.operands) < 2 or not isinstance(case.site.node, ast.Subscript):
        return None
    x, mask = case.operands[:2]
    fixes: Fixes = []
    have, want = mask.fact.shape, x.fact.shape
    for lead in range(1, len(want) - len(have) + 1):
        if want[lead : lead + len(have)] == have:
            fixes = case.fix((mask.node, f"{':, ' * lead}{case.site.text_of(mask.node)}"))  # type: ignore[arg-type]
            break
    marks = {k for k in range(min(len(have), len(want))) if have[k] != want[k]}
    picture = Picture([row(x, marks), row(mask, marks)], right=False)
    return Finding(case.say("mask shape"), picture, fixes)


def orders(case: Case) -> Finding | None:
    """``permute`` with fewer dims than there are."""
    if not case.operands:
        return None
    x, call = case.operands[0], case.call
    fixes: Fixes = []
    if call is not None and isinstance(call.func, ast.Attribute) and len(call.args) == 2:
        name = case.site.text_of(call.func).rpartition(".")[0]
        fixes = case.fix((call.func, f"{name}.transpose"))
    rule = case.say("permute", ndim=len(x.fact.shape))
    return Finding(rule, Picture([row(x), _dims(x.fact.shape)], right=False), fixes)


def _dims(shape: tuple[int, ...]) -> Shape:
    return Shape("dim", [str(k) for k in range(len(shape))])


def inference(case: Case) -> Finding | None:
    """A tensor of inference mode in a graph."""
    fixes: Fixes = []
    for operand in case.operands:
        if operand.fact.is_inference:
            fixes += case.with_suffix(operand, ".clone()")
    return Finding(case.say("inference"), _all_rows(case), fixes)


def deep_copy(case: Case) -> Finding | None:
    """A copy of what was computed."""
    fixes = case.with_suffix(case.operands[0], ".detach()") if case.operands else []
    return Finding(case.say("deep copy"), None, fixes)


def flag_of_computed(case: Case) -> Finding | None:
    """``requires_grad = False`` of what was computed."""
    label = case.operands[0].label if case.operands else "x"
    return Finding(case.say("computed flag"), None, [(f"{label} = {label}.detach()", "")])


def gradient_shape(case: Case) -> Finding | None:
    """``backward`` with a gradient of another shape."""
    if len(case.operands) < 2 or case.call is None:
        return None
    y, given = case.operands[:2]
    made = plain_argument(case, "gradient", 0)
    fixes: Fixes = []
    if made is not None and case.call.args:
        fixes = case.fix((case.call.args[0], f"{case.torch}.ones_like({y.label})"))
    picture = Picture([row(y), row(given, set(range(len(given.fact.shape))))])
    return Finding(case.say("gradient shape"), picture, fixes)
