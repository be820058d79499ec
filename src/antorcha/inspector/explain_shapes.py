"""Why shapes do not fit, and what would: multiplying, broadcasting, reshaping, joining, layers."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from math import prod

from antorcha.errors import ShapeError
from antorcha.inspector.explain_case import Case, Finding, Fixes, row, sizes
from antorcha.inspector.explain_draw import Picture, Shape
from antorcha.inspector.explain_layers import conv_code, remade
from antorcha.inspector.explain_operands import Operand
from antorcha.inspector.forms import shape_text
from antorcha.shapes import broadcast_shapes


def product_shape(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...] | None:
    """The shape of a @ b; None where there is none.

    >>> product_shape((3, 2), (2, 4)), product_shape((10,), (10, 5)), product_shape((3,), (2, 4))
    ((3, 4), (5,), None)
    """
    if not a or not b or a[-1] != b[-2 if len(b) > 1 else 0]:
        return None
    batch = broadcast(a[:-2], b[:-2])
    if batch is None:
        return None
    return (*batch, *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))


def broadcast(*shapes: Sequence[int]) -> tuple[int, ...] | None:
    """The shape that shapes broadcast to; None where they do not.

    >>> broadcast((3, 1), (2,)), broadcast((3, 2), (3,))
    ((3, 2), None)
    """
    try:
        return tuple(broadcast_shapes(*[tuple(shape) for shape in shapes]))
    except ShapeError:
        return None


# ------------------------------------------------------------------------------------ a @ b
def matmul(case: Case) -> Finding | None:
    """Inner sizes that differ, or a vector where a matrix is wanted."""
    found = case.operands[-2:] if case.failed.op.startswith("add") else case.operands[:2]
    if len(found) < 2:
        return None
    a, b = found
    if not a.fact.shape or not b.fact.shape:
        return None
    inner_a, inner_b = len(a.fact.shape) - 1, max(len(b.fact.shape) - 2, 0)
    left, right = a.fact.shape[inner_a], b.fact.shape[inner_b]
    wanted = {"mm": 2, "bmm": 3, "addmm": 2}.get(case.failed.op)
    for operand in (a, b):
        if wanted is not None and len(operand.fact.shape) != wanted:
            rule = case.say(
                "two dims", op=case.failed.op, wanted=wanted, label=operand.label,
                ndim=len(operand.fact.shape),
            )  # fmt: skip
            return Finding(rule, Picture([row(a), row(b)]), _as_matrix(case, a, b))
    if left == right:  # the dims before them differ
        marks = clashes([a.fact.shape[:-2], b.fact.shape[:-2]])
        if not any(marks):
            return None
        return Finding(case.say("batch dims"), Picture([row(a, marks[0]), row(b, marks[1])]))
    picture = Picture(
        [row(a, {inner_a}), row(b, {inner_b})], joint="@", verdict=f"{left} ≠ {right}"
    )
    both = len(a.fact.shape) == len(b.fact.shape) == 1
    return Finding(
        case.say("vectors" if both else "matmul"), picture, _products(case, a, b)
    )  # fmt: skip


def _products(case: Case, a: Operand, b: Operand) -> Fixes:
    """The products of the same matrices that there are: transposed, or the other way round."""
    shape_a, shape_b = a.fact.shape, b.fact.shape
    found: Fixes = []
    for operand, one, two in ((b, shape_a, _turned(shape_b)), (a, _turned(shape_a), shape_b)):
        made = product_shape(one, two)
        if made is not None and len(operand.fact.shape) > 1:
            suffix = ".T" if len(operand.fact.shape) == 2 else ".mT"
            found += case.with_suffix(operand, suffix, made)
    made = product_shape(shape_b, shape_a)
    if made is not None and a.node is not None and b.node is not None:
        text_a, text_b = case.site.text_of(a.node), case.site.text_of(b.node)
        found += case.fix((a.node, text_b), (b.node, text_a), gives=made)
    return found


def _turned(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape if len(shape) < 2 else (*shape[:-2], shape[-1], shape[-2])


def _as_matrix(case: Case, a: Operand, b: Operand) -> Fixes:
    """A vector as a matrix of one row (or, on the right, of one column)."""
    one, two = a.fact.shape, b.fact.shape
    found: Fixes = []
    if len(one) == 1 and len(two) == 2 and (made := product_shape((1, *one), two)):
        found += case.with_suffix(a, ".unsqueeze(0)", made)
    if len(two) == 1 and len(one) == 2 and (made := product_shape(one, (*two, 1))):
        found += case.with_suffix(b, ".unsqueeze(1)", made)
    made = product_shape(one, two)
    call = case.call
    if made is not None and call is not None and isinstance(call.func, ast.Attribute):
        name = case.site.text_of(call.func).rpartition(".")[0]
        found += case.fix((call.func, f"{name}.matmul"), gives=made)
    return found


# ------------------------------------------------------------------------------- element by element
def broadcasting(case: Case) -> Finding | None:
    """Shapes that do not broadcast."""
    operands = case.operands
    if len(operands) < 2:
        return None
    marks = clashes([operand.fact.shape for operand in operands])
    if not any(marks):
        return None
    picture = Picture([row(each, marked) for each, marked in zip(operands, marks, strict=True)])
    pair = [each for each, marked in zip(operands, marks, strict=True) if marked][:2]
    fixes = _fitted(case, *pair) if len(pair) == 2 and len(operands) == 2 else []
    rule = case.say("broadcast")
    return Finding(rule if fixes else f"{rule} {case.say('same shape needed')}", picture, fixes)


def clashes(shapes: Sequence[tuple[int, ...]]) -> list[set[int]]:
    """In each shape the dims that do not fit those of others.

    >>> clashes([(3, 2), (4, 2), (2,)])
    [{0}, {0}, set()]
    """
    marks: list[set[int]] = [set() for _ in shapes]
    for back in range(1, max(map(len, shapes)) + 1):
        there = {shape[-back] for shape in shapes if len(shape) >= back and shape[-back] != 1}
        if len(there) > 1:
            for shape, mark in zip(shapes, marks, strict=True):
                if len(shape) >= back and shape[-back] != 1:
                    mark.add(len(shape) - back)
    return marks


def _fitted(case: Case, a: Operand, b: Operand) -> Fixes:
    """What makes two shapes broadcast: new dims of size 1, a transpose, a reshape."""
    found: Fixes = []
    in_place = isinstance(case.site.node, (ast.AugAssign, ast.Assign))
    for one, other, is_first in ((b, a, False), (a, b, True)):
        shape, target = one.fact.shape, other.fact.shape
        if is_first and in_place:
            break  # the left side is what it is
        for suffix, made in _forms(shape, target):
            result = broadcast(made, target)
            if result is not None and not (in_place and result != target):
                found += case.with_suffix(one, suffix, result)
        if found:
            break
    return found[:2]


def _forms(shape: tuple[int, ...], target: tuple[int, ...]) -> list[tuple[str, tuple[int, ...]]]:
    """Other forms of a shape that may fit a target, with the code for them."""
    forms: list[tuple[str, tuple[int, ...]]] = []
    for new in range(1, len(target) - len(shape) + 1 if shape else 1):
        code = ", ".join([":"] * len(shape) + ["None"] * new)
        forms.append((f"[{code}]", (*shape, *(1,) * new)))
    if len(shape) == 2:
        forms.append((".T", shape[::-1]))
    if prod(shape) == prod(target) and shape != target:
        forms.append((f".reshape{shape_text(target)}", target))
    return forms


def expanding(case: Case) -> Finding | None:
    """``expand`` to sizes that cannot be stretched to."""
    found = re.search(r"shape \(([\d, ]*)\) does not expand to \(([-\d, ]*)\)", case.message)
    if found is None:
        return None
    old, new = _numbers(found[1]), _numbers(found[2])
    marks = [
        {len(shape) - back for back in range(1, len(old) + 1)
         if back <= len(new) and new[-back] not in (-1, old[-back]) and old[-back] != 1}
        for shape in (old, new)
    ]  # fmt: skip
    label = case.operands[0].label if case.operands else "x"
    rows = [
        Shape(name, [str(size) for size in shape], mark)
        for name, shape, mark in zip((label, "expand"), (old, new), marks, strict=True)
    ]
    return Finding(case.say("expand"), Picture(rows))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple([int(word) for word in re.findall(r"-?\d+", text)])


# ---------------------------------------------------------------------------------- other shapes
def element_count(case: Case) -> Finding | None:
    """``view`` or ``reshape`` to another number of elements."""
    found = re.search(r"shape '?[\[(]([-\d, ]*)[\])]'?", case.message)
    if found is None or not case.operands:
        return None
    x = case.operands[0]
    new = _numbers(found[1])
    have = x.fact.numel
    rest = prod([size for size in new if size != -1])
    wanted = f"{rest}" if -1 not in new else f"{rest} x ?"
    rule = case.say(
        "count", old=" x ".join(map(str, x.fact.shape)) or "1", have=have,
        new=" x ".join(["?" if size == -1 else str(size) for size in new]) or "1", want=wanted,
    )  # fmt: skip
    picture = Picture([row(x), Shape(case.failed.op or "view", [str(size) for size in new])], False)
    fixes: Fixes = []
    if -1 not in new:
        for k, size in enumerate(new):
            others = prod(new[:k] + new[k + 1 :])
            if others and have % others == 0:
                made = (*new[:k], have // others, *new[k + 1 :])
                fixes += case.fix((case.argument(size), "-1"), gives=made)
                break
    return Finding(rule, picture, fixes)


def not_contiguous(case: Case) -> Finding | None:
    """``view`` of a tensor whose elements are not in order."""
    if not case.operands:
        return None
    x = case.operands[0]
    wanted = tuple([prod(x.fact.shape[k + 1 :]) for k in range(len(x.fact.shape))])
    rule = case.say("contiguous", label=x.label, strides=x.fact.strides, wanted=wanted)
    off = {k for k, (a, b) in enumerate(zip(x.fact.strides, wanted, strict=True)) if a != b}
    rows = [
        Shape(x.label, sizes(x.fact), set(), x.fact.dtype.name),
        Shape("strides", [str(step) for step in x.fact.strides], off),
        Shape("contiguous", [str(step) for step in wanted]),
    ]
    fixes: Fixes = []
    call = case.call
    if call is not None and isinstance(call.func, ast.Attribute) and call.func.attr == "view":
        fixes += case.fix((call.func, case.site.text_of(call.func)[: -len("view")] + "reshape"))
        fixes += case.with_suffix(x, ".contiguous()")
    return Finding(rule, Picture(rows, right=False), fixes)


def joining(case: Case) -> Finding | None:
    """``cat`` of shapes that differ elsewhere."""
    found = re.search(r"except in dimension (\d+)", case.message)
    shapes = [operand.fact.shape for operand in case.operands]
    if found is None or len(shapes) < 2 or len({len(shape) for shape in shapes}) != 1:
        return None
    dim = int(found[1])
    marks = {k for k in range(len(shapes[0])) if k != dim and _differ(shapes, k)}
    picture = Picture([row(each, marks) for each in case.operands], right=False)
    fixes: Fixes = []
    call = case.call
    for other in range(len(shapes[0])):
        fits = not any(_differ(shapes, k) for k in range(len(shapes[0])) if k != other)
        if fits and call is not None and call.args:
            made = list(shapes[0])
            made[other] = sum([shape[other] for shape in shapes])
            given = [word.value for word in call.keywords if word.arg in ("dim", "axis")]
            given += call.args[1:2]
            change = (
                (given[0], str(other)) if given
                else (call.args[0], f"{case.site.text_of(call.args[0])}, dim={other}")
            )  # fmt: skip
            fixes += case.fix(change, gives=tuple(made))
    return Finding(case.say("cat", dim=dim), picture, fixes)


def _differ(shapes: Sequence[tuple[int, ...]], k: int) -> bool:
    return len({shape[k] for shape in shapes}) > 1


def joining_ranks(case: Case) -> Finding | None:
    """``cat`` of tensors with another number of dims."""
    operands = case.operands
    most = max([len(operand.fact.shape) for operand in operands], default=0)
    fixes: Fixes = []
    for operand in operands:
        if len(operand.fact.shape) == most - 1:
            made = [case.with_suffix(operand, f".unsqueeze({k})") for k in range(most)]
            fixes += next(filter(None, made), [])
    picture = Picture([row(operand) for operand in operands], right=False) if operands else None
    return Finding(case.say("same dims"), picture, fixes)


def not_square(case: Case) -> Finding | None:
    """A decomposition of what is no square matrix."""
    if not case.operands or len(case.operands[0].fact.shape) < 2:
        return None
    x = case.operands[0]
    last = len(x.fact.shape) - 1
    return Finding(case.say("square"), Picture([row(x, {last - 1, last})]))


def stacking(case: Case) -> Finding | None:
    """``stack`` of different shapes."""
    shapes = [operand.fact.shape for operand in case.operands]
    if len(shapes) < 2:
        return None
    same = len({len(shape) for shape in shapes}) == 1
    marks = {k for k in range(len(shapes[0])) if _differ(shapes, k)} if same else set()
    picture = Picture([row(each, marks) for each in case.operands], right=False)
    fixes: Fixes = []
    call = case.call
    if marks == {0} and call is not None and isinstance(call.func, ast.Attribute):
        made = (sum([shape[0] for shape in shapes]), *shapes[0][1:])
        name = case.site.text_of(call.func).rpartition(".")[0]
        if not call.keywords and len(call.args) == 1:
            fixes += case.fix((call.func, f"{name}.cat"), gives=made)
    return Finding(case.say("stack"), picture, fixes)


# --------------------------------------------------------------------------------------- layers
def linear(case: Case) -> Finding | None:
    """An input that a linear layer does not take."""
    if len(case.operands) < 2:
        return None
    x, weight = case.operands[:2]
    if not x.fact.shape or len(weight.fact.shape) != 2:
        return None
    got, wanted = x.fact.shape[-1], weight.fact.shape[1]
    picture = Picture([row(x, {len(x.fact.shape) - 1}), row(weight, {1})])
    fixes: Fixes = []
    made: tuple[int, ...]
    if len(x.fact.shape) > 2 and prod(x.fact.shape[1:]) == wanted:
        made = (x.fact.shape[0], weight.fact.shape[0])
        fixes += case.with_suffix(x, ".flatten(1)", made)
    if len(x.fact.shape) == 2 and x.fact.shape[0] == wanted:
        fixes += case.with_suffix(x, ".T", (got, weight.fact.shape[0]))
    made = (*x.fact.shape[:-1], weight.fact.shape[0])
    fixes += remade(case, f"Linear({got}, {weight.fact.shape[0]})", made)
    return Finding(case.say("linear", wanted=wanted, got=got), picture, fixes)


def channels(case: Case) -> Finding | None:
    """An image with another number of channels than a convolution takes."""
    found = re.search(r"to have (\d+) channels, but got (\d+)", case.message)
    if found is None or len(case.operands) < 2:
        return None
    wanted, got = int(found[1]), int(found[2])
    x, weight = case.operands[:2]
    batched = len(x.fact.shape) == len(weight.fact.shape)
    at = 1 if batched else 0
    layout = ", ".join((["N"] if batched else []) + ["C", "D", "H", "W"][: 1] +
                       ["D", "H", "W"][5 - len(weight.fact.shape) :])  # fmt: skip
    picture = Picture([row(x, {at}), row(weight, {1})], right=False)
    fixes: Fixes = []
    shape = x.fact.shape
    if shape[-1] == wanted:
        order = (*range(at), len(shape) - 1, *range(at, len(shape) - 1))
        fixes += case.with_suffix(x, f".permute{order}")
    layer = case.failed.layer
    if layer is not None and not fixes:
        fixes += remade(case, conv_code(layer, in_channels=got))
    rule = case.say("channels", wanted=wanted, got=got, layout=f"({layout})")
    return Finding(rule, picture, fixes)


def batches(case: Case) -> Finding | None:
    """A loss with more, or fewer, targets than rows."""
    found = re.search(r"batch_size \((\d+)\) to match target batch_size \((\d+)\)", case.message)
    if found is None or len(case.operands) < 2:
        return None
    picture = Picture([row(case.operands[0], {0}), row(case.operands[1], {0})], right=False)
    return Finding(case.say("batch", rows=found[1], targets=found[2]), picture)
