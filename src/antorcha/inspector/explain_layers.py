"""Why layers and losses refuse, and what they would take."""

from __future__ import annotations

import ast
import re
from math import prod
from typing import Any

from antorcha.inspector.explain_case import Case, Finding, Fixes, row, sizes
from antorcha.inspector.explain_draw import Picture, Shape
from antorcha.inspector.explain_operands import Operand
from antorcha.inspector.explain_trial import try_layer
from antorcha.inspector.explain_values import plain_field
from antorcha.inspector.forms import shape_text

_DEFAULTS = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "padding_mode": "zeros"}


def remade(case: Case, code: str, gives: tuple[int, ...] | None = None) -> Fixes:
    """The layer that it happened in, made otherwise: ``name = nn.`` and the code; nothing where
    that one would fail, too."""
    if case.failed.layer is None:
        return []
    name = case.failed.layer_name
    made = f"{case.nn}.{code}"
    if try_layer(made, case.failed.layer_args, case.names).holds is False:
        return []
    return [(f"{name} = {made}" if name else made, "" if gives is None else shape_text(gives))]


def conv_code(layer: Any, **changes: Any) -> str:
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


def _rows(case: Case, marked: Operand | None = None) -> Picture:
    """The operands, the dtype of one of them marked."""
    return Picture(
        [Shape(o.label, sizes(o.fact), set(), o.fact.dtype.name, o is marked)
         for o in case.operands[:4]], right=False,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------ losses
def class_dtype(case: Case) -> Finding | None:
    """Targets that should be numbers of classes."""
    if len(case.operands) < 2:
        return None
    target = case.operands[1]
    rule = case.say("class dtype", dtype=target.fact.dtype.name)
    return Finding(rule, _rows(case, target), case.with_suffix(target, ".long()"))


def class_shape(case: Case) -> Finding | None:
    """Targets of another shape than one for each row."""
    if len(case.operands) < 2:
        return None
    x, target = case.operands[:2]
    shape, given = x.fact.shape, target.fact.shape
    wanted = (shape[0], *shape[2:]) if len(shape) > 1 else ()
    fixes: Fixes = []
    if given == shape:  # one-hot
        fixes += case.with_suffix(target, f".argmax({min(1, len(shape) - 1)})")
        fixes += case.with_suffix(target, ".float()")
    elif len(given) == len(wanted) + 1 and tuple([n for n in given if n != 1]) == tuple(
        [n for n in wanted if n != 1]
    ):
        fixes += case.with_suffix(target, f".squeeze({given.index(1)})")
    rule = case.say("class shape", wanted=shape_text(wanted), shape=shape_text(shape))
    picture = Picture([row(x), row(target, set(range(len(given))))], right=False)
    return Finding(rule, picture, fixes)


def same_size(case: Case) -> Finding | None:
    """A loss of two tensors of one shape."""
    if len(case.operands) < 2:
        return None
    x, target = case.operands[:2]
    fixes: Fixes = []
    one, two = x.fact.shape, target.fact.shape
    cast = "" if target.fact.dtype.kind in "fc" else ".float()"
    for a, b, short, long in ((target, x, two, one), (x, target, one, two)):
        if (*short, 1) == long:
            fixes += _matched(case, a, ".unsqueeze(-1)", target, cast)
            fixes += _matched(case, b, ".squeeze(-1)", target, cast)
    if not fixes and prod(one) == prod(two):
        fixes += case.with_suffix(target, f".reshape{shape_text(one)}{cast}")
    if not fixes and len(one) == 2 and one[:1] == two and target.fact.dtype.kind in "iu":
        fixes += _as_classes(case)
    return Finding(case.say("same size"), Picture([row(x), row(target)], right=False), fixes)


def _matched(case: Case, changed: Operand, suffix: str, target: Operand, cast: str) -> Fixes:
    """The line with one operand in another shape, and with targets of integers as floats."""
    if changed is target or not cast:
        return case.with_suffix(changed, suffix + cast)
    floats = (target.node, case.atom(target.node) + cast)
    return case.fix((changed.node, case.atom(changed.node) + suffix), floats)


def _as_classes(case: Case) -> Fixes:
    """The loss for one class number in each row."""
    call = case.call
    if case.failed.layer is not None:
        return remade(case, "CrossEntropyLoss()")
    if call is None or not isinstance(call.func, ast.Attribute):
        return []
    return case.fix((call.func, f"{case.site.text_of(call.func.value)}.cross_entropy"))


def probabilities(case: Case) -> Finding | None:
    """Scores where probabilities are wanted."""
    call = case.call
    fixes: Fixes = []
    if case.failed.layer is not None:
        fixes += remade(case, "BCEWithLogitsLoss()")
    elif call is not None and isinstance(call.func, ast.Attribute):
        name = f"{case.site.text_of(call.func.value)}.binary_cross_entropy_with_logits"
        fixes += case.fix((call.func, name))
    if case.operands:
        fixes += case.with_suffix(case.operands[0], ".sigmoid()")
    return Finding(case.say("probabilities"), _rows(case), fixes)


# ----------------------------------------------------------------------------------------- indices
def rows_of_a_table(case: Case) -> Finding | None:
    """A row that an embedding does not have."""
    found = re.search(r"index (-?\d+) is out of bounds for dimension \d+ with size (\d+)",
                      case.message)  # fmt: skip
    if found is None or not case.operands:
        return None
    given, size = int(found[1]), int(found[2])
    table = next((o for o in case.operands if o.fact.shape[:1] == (size,)), None)
    if table is None or len(table.fact.shape) != 2:
        return None
    fixes: Fixes = []
    most = max([given, *[e[1] for o in case.operands if (e := case.extremes(o)) is not None]])
    if given >= size:
        fixes = remade(case, f"Embedding({most + 1}, {table.fact.shape[1]})")
    rule = case.say("table", size=size, high=size - 1, given=given)
    return Finding(rule, Picture([row(table, {0})], right=False), fixes)


def class_values(case: Case) -> Finding | None:
    """Classes that a one-hot code has no place for."""
    found = re.search(r"(-?\d+) is not smaller than (\d+)", case.message)
    if found is None:
        return None
    given, count = int(found[1]), int(found[2])
    every = case.extremes(case.operands[0]) if case.operands else None
    given = max(given, every[1]) if every is not None else given
    fixes = case.fix((case.argument(count), str(given + 1)))
    return Finding(case.say("class", count=count, high=count - 1), _rows(case), fixes)


def gathering(case: Case) -> Finding | None:
    """``gather`` with an index of fewer dims."""
    if len(case.operands) < 2:
        return None
    x, index = case.operands[:2]
    call = case.call
    fixes: Fixes = []
    if call is not None and len(index.fact.shape) == len(x.fact.shape) - 1:
        dim = plain_argument(case, "dim", 0 if case.receiver is not None else 1)
        if dim is not None:
            fixes += case.with_suffix(index, f".unsqueeze({dim})")
    rule = case.say("index dims", ndim=len(x.fact.shape), given=len(index.fact.shape))
    return Finding(rule, Picture([row(x), row(index)], right=False), fixes)


def plain_argument(case: Case, name: str, place: int) -> str | None:
    """The source of an argument, by name or place."""
    call = case.call
    if call is None:
        return None
    for keyword in call.keywords:
        if keyword.arg == name:
            return case.site.text_of(keyword.value)
    return case.site.text_of(call.args[place]) if place < len(call.args) else None


def letters(case: Case) -> Finding | None:
    """A letter of ``einsum`` that has two sizes."""
    found = re.search(r"subscript (\w) has size (\d+) for operand \d+ .* size (\d+)", case.message)
    call = case.call
    equation = call.args[0] if call is not None and call.args else None
    if found is None or not isinstance(equation, ast.Constant) or type(equation.value) is not str:
        return None
    terms = equation.value.replace(" ", "").partition("->")[0].split(",")
    rows = []
    for operand, term in zip(case.operands, terms, strict=False):
        plain = "." not in term
        marks = {k for k, letter in enumerate(term) if letter == found[1]} if plain else set()
        rows.append(row(operand, marks, term))
    rule = case.say("letter", letter=found[1], one=found[3], two=found[2])
    return Finding(rule, Picture(rows, right=False))


# ------------------------------------------------------------------------------------------ layers
def layer_norm(case: Case) -> Finding | None:
    """An input whose last sizes are not those that are normalised."""
    found = re.search(r"normalized_shape=\[([\d, ]*)\]", case.message)
    if found is None or not case.operands:
        return None
    x, wanted = case.operands[0], [int(n) for n in found[1].split(",")]
    last = x.fact.shape[len(x.fact.shape) - len(wanted) :]
    at = range(len(x.fact.shape) - len(last), len(x.fact.shape))
    marks = {k for k, size, want in zip(at, last, wanted, strict=False) if size != want}
    sizes_now = str(last[0]) if len(last) == 1 else shape_text(last)
    fixes = remade(case, f"LayerNorm({sizes_now})", x.fact.shape) if last else []
    picture = Picture([row(x, marks), *[row(o) for o in case.operands[1:2]]])
    return Finding(case.say("last sizes", wanted=shape_text(tuple(wanted))), picture, fixes)


def one_value(case: Case) -> Finding | None:
    """Batch normalisation of one value while training."""
    name = case.failed.layer_name
    fixes: Fixes = [(f"{name}.eval()", "")] if name else []
    return Finding(case.say("one value"), Picture([row(o) for o in case.operands[:1]]), fixes)


def norm_dims(case: Case) -> Finding | None:
    """Batch normalisation for another number of dims."""
    found = re.search(r"\(got (\d)D input", case.message)
    layer = case.failed.layer
    if found is None or layer is None or not case.operands:
        return None
    has, kind = int(found[1]), type(layer).__name__
    fitting = {2: "1d", 3: "1d", 4: "2d", 5: "3d"}.get(has)
    count = plain_field(layer, "num_features")
    fixes: Fixes = []
    if fitting and kind[-2:] in ("1d", "2d", "3d") and type(count) is int:
        fixes = remade(case, f"{kind[:-2]}{fitting}({count})", case.operands[0].fact.shape)
    return Finding(case.say("norm dims", kind=kind), Picture([row(case.operands[0])]), fixes)


def conv_dims(case: Case) -> Finding | None:
    """A convolution's input with too few dims."""
    if len(case.operands) < 2:
        return None
    x, weight = case.operands[:2]
    have, full = len(x.fact.shape), len(weight.fact.shape)
    spatial = ["D", "H", "W"][5 - full :] if full < 5 else ["D", "H", "W"]
    names = ", ".join(["C", *spatial])
    fixes: Fixes = []
    if have == full - 2 and weight.fact.shape[1] == 1:
        fixes += case.with_suffix(x, ".unsqueeze(0)")
    rule = case.say("conv dims", one=f"({names})", many=f"(N, {names})")
    return Finding(rule, Picture([row(x), row(weight)]), fixes)


def window(case: Case) -> Finding | None:
    """A window that is larger than what it slides over."""
    if not case.operands:
        return None
    fixes: Fixes = []
    layer = case.failed.layer
    kernel = plain_field(layer, "kernel_size") if layer is not None else None
    x = case.operands[0]
    if type(kernel) is tuple and type(layer).__name__.startswith("Conv"):
        around = max([n // 2 for n in kernel])
        if all(n + 2 * around >= k for n, k in zip(x.fact.shape[-len(kernel) :], kernel,
                                                  strict=False)):  # fmt: skip
            fixes = remade(case, conv_code(layer, padding=around))
    marks = {len(x.fact.shape) - k for k in range(1, 1 + max(len(x.fact.shape) - 2, 1))}
    return Finding(case.say("window"), Picture([row(x, marks)]), fixes)
