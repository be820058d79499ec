"""Why shapes do not fit, and what would: products, broadcasting, reshaping, joining, indexing."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from math import prod

from antorcha.inspector.explain.case import Case, Finding, Fixes, numbers, row, rows, rule
from antorcha.inspector.explain.draw import Picture, ShapeRow
from antorcha.inspector.explain.layers import rows_of_a_table, samples
from antorcha.inspector.explain.operands import NamedOperand
from antorcha.inspector.forms import shape_text


# ------------------------------------------------------------------------------------ a @ b
@rule("matmul", "vectors")
def product(case: Case) -> Finding | None:
    """Inner sizes that differ."""
    factors = _factors(case)
    if len(factors) < 2:
        return None
    a, b = factors
    if not a.fact.shape or not b.fact.shape:
        return None
    inner_a, inner_b = len(a.fact.shape) - 1, max(len(b.fact.shape) - 2, 0)
    left, right = a.fact.shape[inner_a], b.fact.shape[inner_b]
    if left == right:  # the dims before them differ
        marks = clashes([a.fact.shape[:-2], b.fact.shape[:-2]])
        if not any(marks):
            return None
        return case.finding(Picture([row(a, marks[0]), row(b, marks[1])]), key="batch dims")
    both = len(a.fact.shape) == len(b.fact.shape) == 1
    picture = Picture([row(a, {inner_a}), row(b, {inner_b})], True, "@", f"{left} ≠ {right}")
    return case.finding(picture, _products(case, a, b), "vectors" if both else "matmul")


def _factors(case: Case) -> list[NamedOperand]:
    """What is multiplied: the last two of ``addmm(x, a, b)`` and its like."""
    adds = case.failed.op.startswith(("add", "badd"))
    return case.operands[-2:] if adds else case.operands[:2]


def _products(case: Case, a: NamedOperand, b: NamedOperand) -> Fixes:
    """The products of the same matrices that there are: transposed, or the other way round."""
    found: Fixes = []
    for operand in (b, a):
        if len(operand.fact.shape) > 1:
            turned = ".T" if len(operand.fact.shape) == 2 else ".mT"
            found += case.with_suffix(operand, turned, gives=True)
    swapped = (a.node, case.text(b.node)), (b.node, case.text(a.node))
    return found + case.fix(*swapped, gives=True)


@rule("two dims")
def number_of_dims(case: Case) -> Finding | None:
    """A vector where a matrix is wanted; a vector is made a matrix of one row, or one column."""
    factors = _factors(case)
    given, wanted = case.facts.operands[0].shape, case["wanted"]
    wrong = [operand for operand in factors if operand.fact.shape == given]
    if len(factors) < 2 or not wrong:
        return None
    a, b = factors
    fixes: Fixes = []
    if wanted == 2:
        fixes += case.with_suffix(a, ".unsqueeze(0)", gives=True)
        fixes += case.with_suffix(b, ".unsqueeze(1)", gives=True)
    fixes += case.renamed("matmul", gives=True)
    key = "one dim" if wanted == 1 else "two dims"
    return case.finding(rows(factors), fixes, key, label=wrong[0].label, ndim=len(given))


@rule("scale")
def number_times_matrix(case: Case) -> Finding:
    """``@`` with a tensor of no dims."""
    node = case.site.node
    fixes: Fixes = []
    if isinstance(node, ast.BinOp):
        fixes = case.fix((node, f"{case.atom(node.left)} * {case.atom(node.right)}"))
    return case.finding(rows(case.operands[:2]), fixes)


# ------------------------------------------------------------------------------- element by element
@rule("broadcast")
def broadcasting(case: Case) -> Finding | None:
    """Shapes that do not broadcast."""
    operands = case.operands
    if len(operands) < 2:
        return None
    if case.failed.op in ("matmul", "bmm"):
        return product(case)
    marks = clashes([operand.fact.shape for operand in operands])
    if not any(marks):
        return None
    picture = Picture([row(each, marked) for each, marked in zip(operands, marks, strict=True)])
    pair = [each for each, marked in zip(operands, marks, strict=True) if marked][:2]
    fixes = _fitted(case, *pair) if len(pair) == 2 and len(operands) == 2 else []
    found = case.finding(picture, fixes, "broadcast")
    if not fixes:
        found.rule += f" {case.say('same shape needed')}"
    return found


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


def _fitted(case: Case, a: NamedOperand, b: NamedOperand) -> Fixes:
    """What makes two shapes broadcast: new dims of size 1, a transpose, a reshape."""
    found: Fixes = []
    # A write in place leaves the left side as it is.
    in_place = isinstance(case.site.node, (ast.AugAssign, ast.Assign))
    for one, other in ((b, a), (a, b))[: 1 if in_place else 2]:
        for suffix in _forms(one.fact.shape, other.fact.shape) if not found else ():
            found += case.with_suffix(one, suffix, gives=True)
    return found[:2]


def _forms(shape: tuple[int, ...], target: tuple[int, ...]) -> list[str]:
    """Code for other forms of a shape, which may fit a target."""
    forms = [
        f"[{', '.join([':'] * len(shape) + ['None'] * new)}]"
        for new in range(1, len(target) - len(shape) + 1 if shape else 1)
    ]
    forms += [".T"] if len(shape) == 2 else []
    return forms + ([f".reshape{shape_text(target)}"] if prod(shape) == prod(target) else [])


@rule("expand")
def expanding(case: Case) -> Finding:
    """``expand`` to sizes that cannot be stretched to."""
    old, new = case.facts.operands[0].shape, case["new"]
    wrong = [
        back for back in range(1, min(len(old), len(new)) + 1)
        if new[-back] not in (-1, old[-back]) and old[-back] != 1
    ]  # fmt: skip
    label = case.operands[0].label if case.operands else "x"
    return case.finding(Picture([
        ShapeRow(name, numbers(shape), {len(shape) - back for back in wrong})
        for name, shape in ((label, old), ("expand", new))
    ]))  # fmt: skip


# ---------------------------------------------------------------------------------- other shapes
@rule("count", takes=1)
def element_count(case: Case, x: NamedOperand) -> Finding:
    """``view`` or ``reshape`` to another number of elements."""
    return counted(case, x, case["shape"])


def counted(case: Case, x: NamedOperand, new: tuple[int, ...]) -> Finding:
    """How many elements a tensor has, and how many a new shape has."""
    have = x.fact.numel
    rest = prod([size for size in new if size != -1])
    picture = Picture([row(x), ShapeRow(case.failed.op or "view", numbers(new))], right=False)
    open_ = [case.fix((case.argument(n), "-1"), gives=True) for n in new if -1 not in new]
    fixes = next(filter(None, open_), [])
    return case.finding(
        picture, fixes, "count", old=" x ".join(map(str, x.fact.shape)) or "1", have=have,
        new=" x ".join(["?" if size == -1 else str(size) for size in new]) or "1",
        want=f"{rest}" if -1 not in new else f"{rest} x ?",
    )  # fmt: skip


@rule("contiguous", takes=1)
def not_contiguous(case: Case, x: NamedOperand) -> Finding:
    """``view`` of a tensor whose elements are not in order."""
    wanted = tuple([prod(x.fact.shape[k + 1 :]) for k in range(len(x.fact.shape))])
    off = {k for k, (a, b) in enumerate(zip(x.fact.strides, wanted, strict=True)) if a != b}
    picture = Picture(
        [row(x), ShapeRow("strides", numbers(x.fact.strides), off),
         ShapeRow("contiguous", numbers(wanted))], right=False,
    )  # fmt: skip
    fixes: Fixes = []
    if case.call is not None and getattr(case.call.func, "attr", "") == "view":
        fixes = case.renamed("reshape") + case.with_suffix(x, ".contiguous()")
    return case.finding(picture, fixes, label=x.label, strides=x.fact.strides, wanted=wanted)


@rule("cat", takes=2)
def joining(case: Case, *_: NamedOperand) -> Finding | None:
    """``cat`` of shapes that differ elsewhere."""
    shapes, call = [operand.fact.shape for operand in case.operands], case.call
    if len({len(shape) for shape in shapes}) != 1:
        return None
    differ = _differing(shapes)
    fixes: Fixes = []
    for other in range(len(shapes[0])):
        if call is not None and call.args:
            given, first = case.given("dim", 1) or case.given("axis", 1), call.args[0]
            change = (
                (first, f"{case.text(first)}, dim={other}") if given is None
                else (given, str(other))
            )  # fmt: skip
            fixes += case.fix(change, gives=True)
    return case.finding(rows(case.operands, differ - {case["dim"]}, right=False), fixes)


def _differing(shapes: Sequence[tuple[int, ...]]) -> set[int]:
    """The dims in which shapes of one length differ."""
    return {k for k, column in enumerate(zip(*shapes, strict=True)) if len({*column}) > 1}


@rule("same dims", takes=1)
def joining_ranks(case: Case, *_: NamedOperand) -> Finding:
    """``cat`` of tensors with another number of dims."""
    fixes: Fixes = []
    for operand in case.operands:
        places = range(len(operand.fact.shape) + 1)
        result = [case.with_suffix(operand, f".unsqueeze({k})") for k in places]
        fixes += next(filter(None, result), [])
    return case.finding(rows(case.operands, right=False), fixes)


@rule("stack")
def stacking(case: Case) -> Finding | None:
    """``stack`` of different shapes, by the program or by a loader."""
    of_loader = samples(case)
    if of_loader is not None or len(case.operands) < 2:
        return of_loader
    shapes = [operand.fact.shape for operand in case.operands]
    marks = _differing(shapes) if len({len(shape) for shape in shapes}) == 1 else set()
    fixes = case.renamed("cat", gives=True) if case.given("dim", 1) is None else []
    return case.finding(rows(case.operands, marks, right=False), fixes)


@rule("square", takes=1)
def not_square(case: Case, x: NamedOperand) -> Finding | None:
    """A decomposition of what is no square matrix."""
    last = len(x.fact.shape) - 1
    return case.finding(rows([x], {last - 1, last})) if last > 0 else None


@rule("permute", takes=1)
def orders(case: Case, x: NamedOperand) -> Finding:
    """``permute`` with fewer dims than there are."""
    dims = ShapeRow("dim", numbers(range(case["ndim"])))
    of_two = case.call is not None and len(case.call.args) == 2
    fixes = case.renamed("transpose") if of_two else []
    return case.finding(Picture([row(x), dims], right=False), fixes)


@rule("letter")
def letters(case: Case) -> Finding | None:
    """A letter of ``einsum`` that has two sizes."""
    equation = case.given("equation", 0)
    if not isinstance(equation, ast.Constant) or type(equation.value) is not str:
        return None
    terms = equation.value.replace(" ", "").partition("->")[0].split(",")
    drawn = []
    for operand, term in zip(case.operands, terms, strict=False):
        places = [k for k, letter in enumerate(term) if letter == case["letter"]]
        drawn.append(row(operand, places if "." not in term else (), term))
    return case.finding(Picture(drawn, right=False))


# -------------------------------------------------------------------------------- dims and indices
@rule("dim")
def dims(case: Case) -> Finding:
    """A dim that the tensor does not have."""
    given, ndim, low = case["given"], case["ndim"], case["low"]
    high = max(ndim - 1, 0)
    picture = None
    if case.operands and len(case.operands[0].fact.shape) == ndim:
        counts = [ShapeRow("dim", numbers(range(ndim))), ShapeRow("", numbers(range(-ndim, 0)))]
        picture = Picture([row(case.operands[0]), *counts], right=False)
    nearest = high if given > high else low
    return case.finding(picture, case.fix((case.argument(given), str(nearest))))


@rule("index")
def indices(case: Case) -> Finding | None:
    """An index that the dim does not have."""
    given, dim, size = case["given"], case["dim"], case["size"]
    if case.facts.op == "embedding" and (of_table := rows_of_a_table(case, given, size)):
        return of_table
    hit = [o for o in case.operands if len(o.fact.shape) > dim and o.fact.shape[dim] == size]
    fixes: Fixes = []
    if isinstance(case.site.node, ast.Subscript) and size:
        fixes = case.fix((case.argument(given), "-1" if given > 0 else "0"))
    picture = rows(hit[:1], {dim}, right=False) if hit else None
    return case.finding(picture, fixes, low=-size, high=size - 1)


@rule("too many", takes=1)
def too_many(case: Case, x: NamedOperand) -> Finding:
    """More indices than dims."""
    node, most = case.site.node, len(x.fact.shape)
    fixes: Fixes = []
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and most:
        given = [case.text(each) for each in node.slice.elts[:most]]
        fixes = case.fix((node.slice, ", ".join(given)))
    return case.finding(rows([x]), fixes)


@rule("index dims", takes=2)
def gathering(case: Case, x: NamedOperand, index: NamedOperand) -> Finding:
    """``gather`` with an index of fewer dims."""
    dim = case.text(case.given("dim", 0 if case.receiver is not None else 1))
    fixes = case.with_suffix(index, f".unsqueeze({dim})") if dim else []
    return case.finding(rows([x, index], right=False), fixes)


@rule("mask shape", takes=2)
def mask_shape(case: Case, x: NamedOperand, mask: NamedOperand) -> Finding | None:
    """A mask that does not fit the dims that it stands for."""
    if not isinstance(case.site.node, ast.Subscript):
        return None
    have, want = mask.fact.shape, x.fact.shape
    leads = [f"{':, ' * lead}{case.text(mask.node)}" for lead in range(1, len(want))]
    fixes = next(filter(None, [case.fix((mask.node, text)) for text in leads]), [])
    marks = {k for k, (a, b) in enumerate(zip(have, want, strict=False)) if a != b}
    return case.finding(rows([x, mask], marks, right=False), fixes)
