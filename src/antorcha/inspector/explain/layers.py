"""Why layers, losses, optimizers, checkpoints and data refuse, and what they would take."""

from __future__ import annotations

import ast
import sys
from math import prod
from typing import Any

from antorcha.inspector.explain.case import (
    Case,
    Finding,
    Fixes,
    by_dtype,
    numbers,
    row,
    rows,
    rule,
)
from antorcha.inspector.explain.draw import Picture, ShapeRow
from antorcha.inspector.explain.operands import NamedOperand
from antorcha.inspector.explain.trial import try_layer
from antorcha.inspector.explain.values import fact_of, plain_field, type_name, value_of
from antorcha.inspector.forms import shape_text
from antorcha.inspector.naming import module_fields

_DEFAULTS = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "padding_mode": "zeros"}
_IGNORED = -100  # the target that losses of classes leave out


def remade(case: Case, code: str, gives: tuple[int, ...] | None = None) -> Fixes:
    """The layer that it happened in, made otherwise: ``name = nn.`` and the code; nothing where
    that one would fail, too."""
    if case.failed.layer is None:
        return []
    name = case.failed.layer_name
    result = f"{case.nn}.{code}"
    if try_layer(result, case.failed.layer_args, case.names).holds is False:
        return []
    return [(f"{name} = {result}" if name else result, "" if gives is None else shape_text(gives))]


# ------------------------------------------------------------------------------------------ layers
@rule("linear", takes=2)
def linear(case: Case, x: NamedOperand, weight: NamedOperand) -> Finding | None:
    """An input that a linear layer does not take."""
    shape, got = x.fact.shape, case["got"]
    if len(weight.fact.shape) != 2:
        return None
    outputs = weight.fact.shape[0]
    fixes = case.with_suffix(x, ".flatten(1)", gives=True) if len(shape) > 2 else []
    fixes += case.with_suffix(x, ".T", gives=True) if len(shape) == 2 else []
    fixes += remade(case, f"Linear({got}, {outputs})", (*shape[:-1], outputs))
    return case.finding(Picture([row(x, {len(shape) - 1}), row(weight, {1})]), fixes)


@rule("channels", takes=2)
def channels(case: Case, x: NamedOperand, weight: NamedOperand) -> Finding:
    """An image with another number of channels than a convolution takes."""
    shape, full = x.fact.shape, len(weight.fact.shape)
    at = 1 if len(shape) == full else 0
    layout = ", ".join((["N"] if at else []) + _image_dims(full))
    fixes: Fixes = []
    if shape[-1] == case["wanted"]:
        order = (*range(at), len(shape) - 1, *range(at, len(shape) - 1))
        fixes = case.with_suffix(x, f".permute{order}")
    if case.failed.layer is not None and not fixes:
        fixes = remade(case, _conv_code(case.failed.layer, in_channels=case["got"]))
    picture = Picture([row(x, {at}), row(weight, {1})], right=False)
    return case.finding(picture, fixes, layout=f"({layout})")


def _image_dims(full: int) -> list[str]:
    """The dims of one input of a convolution whose weight has so many."""
    return ["C", *["D", "H", "W"][max(5 - full, 0) :]]


@rule("conv dims", takes=2)
def conv_dims(case: Case, x: NamedOperand, weight: NamedOperand) -> Finding:
    """A convolution's input with too few dims."""
    full = len(weight.fact.shape)
    names = ", ".join(_image_dims(full))
    fixes: Fixes = []
    if len(x.fact.shape) == full - 2 and weight.fact.shape[1] == 1:
        fixes = case.with_suffix(x, ".unsqueeze(0)")
    return case.finding(rows([x, weight]), fixes, one=f"({names})", many=f"(N, {names})")


@rule("window", takes=1)
def window(case: Case, x: NamedOperand) -> Finding:
    """A window that is larger than what it slides over."""
    fixes: Fixes = []
    layer, shape = case.failed.layer, x.fact.shape
    kernel = plain_field(layer, "kernel_size") if layer is not None else None
    if type(kernel) is tuple and type(layer).__name__.startswith("Conv"):
        around = max([size // 2 for size in kernel])
        inner = shape[-len(kernel) :]
        if all(n + 2 * around >= k for n, k in zip(inner, kernel, strict=False)):
            fixes = remade(case, _conv_code(layer, padding=around))
    count = max(len(shape) - 2, 1)
    return case.finding(rows([x], range(len(shape) - count, len(shape))), fixes)


def _conv_code(layer: Any, **changes: Any) -> str:
    """How a convolution would be made, with some of its arguments changed."""
    known = {name: plain_field(layer, name) for name in ("in_channels", "out_channels", *_DEFAULTS)}
    known |= {"kernel_size": plain_field(layer, "kernel_size")} | changes
    first = [str(_one(known[name])) for name in ("in_channels", "out_channels", "kernel_size")]
    rest = [
        f"{name}={_one(known[name])!r}"
        for name, usual in _DEFAULTS.items()
        if _one(known[name]) != usual and type(_one(known[name])) in (int, str, tuple)
    ]
    if plain_field(layer, "_parameters")["bias"] is None:
        rest.append("bias=False")
    return f"{type(layer).__name__}({', '.join(first + rest)})"


def _one(value: Any) -> Any:
    """``(3, 3)`` as 3."""
    return value[0] if type(value) is tuple and len(set(value)) == 1 else value


@rule("last sizes", takes=1)
def layer_norm(case: Case, x: NamedOperand) -> Finding:
    """An input whose last sizes are not those that are normalised."""
    shape, wanted = x.fact.shape, case["normalized"]
    first = max(len(shape) - len(wanted), 0)
    last = shape[first:]
    marks = {first + k for k, (a, b) in enumerate(zip(last, wanted, strict=False)) if a != b}
    sizes = str(last[0]) if len(last) == 1 else shape_text(last)
    fixes = remade(case, f"LayerNorm({sizes})", shape) if last else []
    picture = Picture([row(x, marks), *map(row, case.operands[1:2])])
    return case.finding(picture, fixes, wanted=shape_text(tuple(wanted)))


@rule("one value")
def one_value(case: Case) -> Finding:
    """Batch normalisation of one value while training."""
    name = case.failed.layer_name
    return case.finding(rows(case.operands[:1]), [(f"{name}.eval()", "")] if name else [])


@rule("norm dims", takes=1)
def norm_dims(case: Case, x: NamedOperand) -> Finding | None:
    """Batch normalisation for another number of dims."""
    layer = case.failed.layer
    if layer is None:
        return None
    kind, count = type(layer).__name__, plain_field(layer, "num_features")
    fitting = {2: "1d", 3: "1d", 4: "2d", 5: "3d"}.get(case["ndim"])
    fixes: Fixes = []
    if fitting and kind[-2:] in ("1d", "2d", "3d") and type(count) is int:
        fixes = remade(case, f"{kind[:-2]}{fitting}({count})", x.fact.shape)
    return case.finding(rows([x]), fixes, kind=kind)


def rows_of_a_table(case: Case, given: int, size: int) -> Finding | None:
    """A row that an embedding does not have."""
    tables = [o for o in case.operands if o.fact.shape[:1] == (size,) and len(o.fact.shape) == 2]
    if not tables:
        return None
    fixes: Fixes = []
    if given >= size:
        every = [case.extremes(operand) for operand in case.operands]
        most = max([given, *[high for _, high in filter(None, every)]])
        fixes = remade(case, f"Embedding({most + 1}, {tables[0].fact.shape[1]})")
    return case.finding(rows(tables[:1], {0}, right=False), fixes, "table", high=size - 1)


# ------------------------------------------------------------------------------------------ losses
@rule("batch", takes=2)
def batches(case: Case, x: NamedOperand, target: NamedOperand) -> Finding:
    """A loss with more, or fewer, targets than rows."""
    return case.finding(rows([x, target], {0}, right=False))


@rule("class dtype", takes=2)
def class_dtype(case: Case, _: NamedOperand, target: NamedOperand) -> Finding:
    """Targets that should be numbers of classes."""
    picture = by_dtype(case.operands[:4], [target])
    return case.finding(picture, case.with_suffix(target, ".long()"), dtype=target.fact.dtype.name)


@rule("class shape", takes=2)
def class_shape(case: Case, x: NamedOperand, target: NamedOperand) -> Finding:
    """Targets of another shape than one for each row."""
    shape, given = x.fact.shape, target.fact.shape
    wanted = (shape[0], *shape[2:]) if len(shape) > 1 else ()
    fixes: Fixes = []
    if given == shape:  # one-hot
        fixes = case.with_suffix(target, f".argmax({min(1, len(shape) - 1)})")
        fixes += case.with_suffix(target, ".float()")
    elif len(given) == len(wanted) + 1 and [n for n in given if n > 1] == [
        n for n in wanted if n > 1
    ]:
        fixes = case.with_suffix(target, f".squeeze({given.index(1)})")
    picture = Picture([row(x), row(target, range(len(given)))], right=False)
    return case.finding(picture, fixes, wanted=shape_text(wanted), shape=shape_text(shape))


@rule("class", takes=1)
def classes(case: Case, x: NamedOperand) -> Finding | None:
    """A target that is no class."""
    shape = x.fact.shape
    if not shape:
        return None
    at = 1 if len(shape) > 1 else 0
    picture = Picture([row(x, {at}), *map(row, case.operands[1:2])], right=False)
    found = case.finding(picture, count=shape[at], high=shape[at] - 1)
    for target in case.operands[1:2]:
        every, some = case.extremes(target), case.extremes(target, but=_IGNORED)
        if every is None or some is None:
            continue
        found.rule += f" {case.say('class range', low=some[0], high=some[1])}"
        if every[0] == 1 and every[1] <= shape[at]:
            found.fixes = case.with_suffix(target, " - 1")
        elif some[0] >= 0:
            found.rule += f" {case.say('class outputs', count=some[1] + 1)}"
    return found


@rule("one-hot class")
def class_values(case: Case) -> Finding:
    """Classes that a one-hot code has no place for."""
    count = case["count"]
    fixes = case.fix((case.argument(count), str(case["given"] + 1)))
    return case.finding(by_dtype(case.operands[:4]), fixes, "class", high=count - 1)


@rule("same size", takes=2)
def same_size(case: Case, x: NamedOperand, target: NamedOperand) -> Finding:
    """A loss of two tensors of one shape."""
    fixes: Fixes = []
    one, two = x.fact.shape, target.fact.shape
    cast = "" if target.fact.dtype.kind in "fc" else ".float()"
    for a, b in ((target, x), (x, target)):
        if len(a.fact.shape) < len(b.fact.shape):
            fixes += _matched(case, a, ".unsqueeze(-1)", target, cast)
            fixes += _matched(case, b, ".squeeze(-1)", target, cast)
    if not fixes and prod(one) == prod(two):
        fixes = case.with_suffix(target, f".reshape{shape_text(one)}{cast}")
    if not fixes and len(one) == 2 and one[:1] == two and target.fact.dtype.kind in "iu":
        fixes = _other_loss(case, "CrossEntropyLoss()", "cross_entropy")
    return case.finding(rows([x, target], right=False), fixes)


def _matched(
    case: Case, changed: NamedOperand, suffix: str, target: NamedOperand, cast: str
) -> Fixes:
    """The line with one operand in another shape, and with targets of integers as floats."""
    if changed is target or not cast:
        return case.with_suffix(changed, suffix + cast)
    floats = (target.node, case.atom(target.node) + cast)
    return case.fix((changed.node, case.atom(changed.node) + suffix), floats)


def _other_loss(case: Case, layer: str, function: str) -> Fixes:
    """Another loss in the place of the one that refused: its layer, or its function."""
    return case.renamed(function) if case.failed.layer is None else remade(case, layer)


@rule("probabilities")
def probabilities(case: Case) -> Finding:
    """Scores where probabilities are wanted."""
    fixes = _other_loss(case, "BCEWithLogitsLoss()", "binary_cross_entropy_with_logits")
    for scores in case.operands[:1]:
        fixes += case.with_suffix(scores, ".sigmoid()")
    return case.finding(by_dtype(case.operands[:4]), fixes)


# -------------------------------------------------------------------------- optimizers, checkpoints
@rule("no parameters")
def no_parameters(case: Case) -> Finding:
    """An optimizer of nothing."""
    models = [
        name for name, value in case.names.known.items()
        if type(name) is str and module_fields(value) and not name.startswith("_")
    ]  # fmt: skip
    fixes: Fixes = []
    if len(models) == 1:
        fixes = case.fix((case.given("params", 0), f"{models[0]}.parameters()"))
    return case.finding(None, fixes)


@rule("list of parameters")
def bare_parameter(case: Case) -> Finding:
    """A tensor where a list of them is wanted."""
    node = case.given("params", 0)
    return case.finding(None, case.fix((node, f"[{case.text(node)}]")))


@rule("parameters of a module")
def no_tensors(case: Case) -> Finding:
    """A list of modules, or of anything else that is no tensor."""
    return module_as_parameters(case) or case.finding(key="list of parameters")


def module_as_parameters(case: Case) -> Finding | None:
    """``SGD(model)``, ``SGD([encoder, decoder])``."""
    node = case.given("params", 0)
    if case.call is None or node is None or not _is_optimizer(value_of(case.call.func, case.names)):
        return None
    parts = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
    found = [part for part in parts if module_fields(value_of(part, case.names)) is not None]
    if not found:
        return None
    texts = [f"{case.atom(part)}.parameters()" for part in found]
    result = texts[0] if len(texts) == 1 else f"[{', '.join([f'*{text}' for text in texts])}]"
    fixes = case.fix((node, result)) if len(found) == len(parts) else []
    return case.finding(None, fixes, "list of parameters")


def _is_optimizer(value: Any) -> bool:
    package = sys.modules.get("antorcha.optim")
    known = [*vars(package).values()] if package is not None else []
    return any(value is each for each in known if isinstance(each, type))


@rule("checkpoint")
def state_dict(case: Case) -> Finding:
    """A checkpoint of another model: of a part of it, or of what it is a part of."""
    wanted, given = case["missing"], case["unexpected"]
    node = case.given("state_dict", 0)
    fixes: Fixes = []
    if wanted and given and not case["sizes"]:  # (of other sizes other names are not enough)
        text = case.atom(node)
        if start := _start(given, wanted):
            result = f'{{k.removeprefix("{start}"): v for k, v in {text}.items()}}'
            fixes = case.fix((node, result))
        elif start := _start(wanted, given):
            fixes = case.fix((node, f'{{"{start}" + k: v for k, v in {text}.items()}}'))
    return case.finding(None, fixes, f"checkpoint {'names' if wanted or given else 'sizes'}")


def _start(long: list[str], short: list[str]) -> str:
    """What the first names start with, where they are the others but for that; else ""."""
    start = long[0].removesuffix(short[0])
    same = start.endswith(".") and sorted(long) == sorted([start + name for name in short])
    return start if same else ""


# -------------------------------------------------------------------------------------------- data
@rule("dataset", takes=2)
def sizes_of_a_dataset(case: Case, *_: NamedOperand) -> Finding:
    """``TensorDataset`` of tensors of another number of rows."""
    fixes: Fixes = []
    for operand in case.operands:
        fixes += case.with_suffix(operand, ".T") if len(operand.fact.shape) == 2 else []
    return case.finding(rows(case.operands[:8], {0}, right=False), fixes)


@rule("samples")
def samples(case: Case) -> Finding | None:
    """A batch of samples of different shapes, made by a loader here or in another process."""
    calls = [frame.f_code.co_name for frame in case.site.inner]
    if not any("collate" in name or name == "reraise" for name in calls):
        return None
    picture = None
    if case.facts.reason == "stack":
        first, other = case["first"], case["other"]
        differ = {k for k, (a, b) in enumerate(zip(first, other, strict=False)) if a != b}
        picture = Picture([
            ShapeRow(case.say("sample", number=number), numbers(shape), differ)
            for number, shape in ((0, first), (case["number"], other))
        ], right=False)  # fmt: skip
    return case.finding(picture, _collated(case), "samples")


def _collated(case: Case) -> Fixes:
    """The loader with a function that makes batches of such samples."""
    fixes: Fixes = []
    for code in _batches(case):
        for node in ast.walk(case.site.node) if case.site.node is not None else ():
            if isinstance(node, (ast.Name, ast.Attribute)):
                kinds = [cls.__name__ for cls in type.mro(type(value_of(node, case.names)))]
                if "DataLoader" in kinds:
                    fixes += [(f"{case.text(node)}.collate_fn = {code}", "")]
                    break
            elif isinstance(node, ast.Call) and node.args:
                result = case.text(node.func).rpartition(".")[2] == "DataLoader"
                if result and not any(k.arg == "collate_fn" for k in node.keywords):
                    last = max([*node.args, *node.keywords], key=lambda n: case.site.span(n) or ())
                    fixes += case.fix((last, f"{case.text(last)}, collate_fn={code}"))
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
@rule("tensor wanted")
def not_a_tensor(case: Case) -> Finding | None:
    """A list, a number or an array where a tensor is wanted."""
    call, kind = case.call, case["kind"]
    if call is None:
        return None
    fixes: Fixes = []
    named = [word.value for word in call.keywords if word.arg == case["name"]]
    for node in [*call.args, *named]:
        value = value_of(node, case.names)
        if type_name(value) == kind and fact_of(value) is None:
            fixes = case.fix((node, f"{case.torch}.as_tensor({case.text(node)})"))
            break
    if not fixes and kind == "ndarray" and len(call.args) == 1:  # made on the line itself
        dtype = f", dtype={case.torch}.float32" if case.failed.layer is not None else ""
        result = f"{case.torch}.as_tensor({case.text(call.args[0])}{dtype})"
        fixes = case.fix((call.args[0], result))
    picture = rows(case.operands[:4], right=False) if case.operands else None
    return case.finding(picture, fixes)
