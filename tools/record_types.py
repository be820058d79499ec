"""A plugin of mypy: what the functions of op records are given, and what they answer.

A record's annotations name parameter kinds (``ops/kinds/types.py``). What a tensor is in its
function depends on the kind of record: the element that an expression is traced with, a layout, a
tensor. The parts below a record (its derivative, its samples, ...) have the parameters of the
record by name, and some of their own: their types are said nowhere else. All are named in
``ops/kinds/in_records.pyi``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from mypy.nodes import Expression, FuncDef, ImportFrom, MemberExpr, MypyFile, NameExpr
from mypy.plugin import Plugin
from mypy.types import NoneType, Type, UnboundType, UnionType
from typed_functions import (
    annotate,
    anything,
    called,
    functions,
    imports,
    is_open,
    name_of,
    type_in,
    written_types,
)

OPS = "antorcha.ops."
NAMES = f"{OPS}kinds.in_records"
TYPES = f"{OPS}kinds.types"
KINDS = {
    "Tensor": "", "Number": "", "OptTensor": "OptTensor", "Tensors": "Tensors",
    "Operand": "Operand", "Power": "Operand",
}  # fmt: skip
"""The kinds that depend on what a tensor is, and the name of those made of it."""
RECORDS = {
    **dict.fromkeys(
        ("composite", "creating", "_creating", "drawing", "like", "several", "custom_vjp"),
        ("Composites", ""),
    ),
    "pointwise": ("Elements", ""),
    "reduction": ("Foldings", "Folding"),
    "kernel": ("Layouts", "Planned"),
    "view": ("Layouts", "View"),
    "views": ("Layouts", "Views"),
    "embed": ("Layouts", "View"),
    "recast": ("Layouts", "Recast"),
    "reshaping": ("Layouts", "Sizes"),
    "rows": ("Layouts", "Row"),
    "product_op": ("Layouts", "Product"),
    "pieces": ("Layouts", "Pieces"),
    "sampler": ("Drawings", "Draw"),
}
"""Decorator -> what tensors are in the function under it, and what it answers ("": anything)."""
UPDATES = ("UpdateStep", "CountStep")


class Record(NamedTuple):
    """What the parts below a record need to know of it."""

    decorator: str
    parameters: dict[str, Type]


class RecordTypes(Plugin):
    def get_additional_deps(self, file: MypyFile) -> list[tuple[int, str, int]]:
        if not any(each.id.startswith(OPS) for each in _imports(file)):
            return []
        kinds = _names_of_kinds(file)
        records: dict[str, Record] = {}
        found = False
        for func, decorators in functions(file.defs):
            _let_be_none(func, kinds)
            found |= bool(decorators) and _annotate(func, decorators[-1], records)
        return imports(file, NAMES) if found else []


def _imports(file: MypyFile) -> list[ImportFrom]:
    return [node for node in file.imports if isinstance(node, ImportFrom)]


def _names_of_kinds(file: MypyFile) -> set[str]:
    """The parameter kinds that a file imports."""
    found = [each for each in _imports(file) if each.id == TYPES]
    return {as_name or name for each in found for name, as_name in each.names}


def _let_be_none(func: FuncDef, kinds: set[str]) -> None:
    """A parameter whose default is None may be None, whatever its kind."""
    written = written_types(func)
    types = list(written)
    for k, (argument, kind) in enumerate(zip(func.arguments, written)):
        none = argument.initializer
        if isinstance(none, NameExpr) and none.name == "None" and isinstance(kind, UnboundType):
            types[k] = UnionType([kind, UnboundType("None")]) if kind.name in kinds else kind
    if types != written:
        annotate(func, types)


def _annotate(func: FuncDef, decorator: Expression, records: dict[str, Record]) -> bool:
    """Puts types into a record's function, or into a part of a record; False: it is neither."""
    part, name = called(decorator), name_of(decorator)
    if name in RECORDS:
        stage, answer = RECORDS[name]
        written = written_types(func)
        records[func.name] = Record(name, dict(zip(map(str, func.arg_names), written)))
        types = [_in_stage(each, stage) for each in written]
        annotate(func, types, _named(answer) if answer else anything())
    elif name in UPDATES:
        flags = [kind.is_named() for kind in func.arg_kinds]
        types = [UnboundType("bool") if flag else _named("Elements.Tensor") for flag in flags]
        annotate(func, types, anything())
    elif isinstance(part, MemberExpr) and part.name in PARTS:
        above = part.expr.name if isinstance(part.expr, NameExpr) else ""
        PARTS[part.name](func, records.get(above, Record("", {})))
    else:
        return False
    return True


def _in_stage(written: Type, stage: str) -> Type:
    """A parameter's type where tensors are of a stage."""
    if isinstance(written, UnionType):  # a kind, or None
        return UnionType([_in_stage(each, stage) for each in written.items])
    if isinstance(written, UnboundType) and written.name in KINDS:
        return _of_stage(written.name, stage)
    return written


def _of_stage(kind: str, stage: str) -> Type:
    """The type of a kind in a stage."""
    made = KINDS[kind]
    if not made:
        return _named(f"{stage}.{kind}")
    return type_in(NAMES, made, [_named(f"{stage}.Tensor")])


def _named(name: str) -> Type:
    return type_in(NAMES, name)


def _fill(func: FuncDef, type_of: Callable[[int, str], Type | None], result: Type) -> None:
    """Types the parameters about which nothing is written, where anything is known of them."""
    written = written_types(func)
    known = [type_of(k, str(name)) for k, name in enumerate(func.arg_names)]
    types = [old if not is_open(old) else new or old for old, new in zip(written, known)]
    annotate(func, types, result)


def _samples(func: FuncDef, record: Record) -> None:
    _fill(func, lambda k, name: _named("Make") if k == 0 else None, _named("Samples"))


def _derive(func: FuncDef, record: Record) -> None:
    """What works out an update's numbers: see ``ops/optim_step.py``."""
    _fill(func, lambda k, name: _named("Elements.Number"), anything())


def _accepts(func: FuncDef, record: Record) -> None:
    _fill(func, lambda k, name: _in_place(record, k), NoneType())


def _batches(func: FuncDef, record: Record) -> None:
    """The batch, the op, and its arguments."""
    first = (_named("Batch"), _named("Run"))
    _fill(func, lambda k, name: first[k] if k < 2 else _in_place(record, k - 2), anything())


def _in_place(record: Record, place: int) -> Type | None:
    found = list(record.parameters.values())
    return _in_stage(found[place], "Composites") if place < len(found) else None


def _derivative(func: FuncDef, record: Record) -> None:
    stage = "Elements" if record.decorator == "pointwise" else "Composites"
    given = {
        "g": _of_stage("Operand", stage), "outs": _of_stage("Tensors", stage),
        "layouts": _of_stage("Tensors", "Layouts"), "needs": _named("Needs"),
        "create": _named("Create"), "dims": _named("Dims"),
    }  # fmt: skip

    def type_of(k: int, name: str) -> Type | None:
        if name in record.parameters:
            return _of_record(record, name, stage)
        if name.endswith("_layout"):
            return _of_record(record, name.removesuffix("_layout"), "Layouts")
        if re.fullmatch(r"out\d*", name):
            return _named(f"{stage}.Tensor")
        return given.get(name)

    _fill(func, type_of, anything())


def _of_record(record: Record, name: str, stage: str) -> Type | None:
    found = record.parameters.get(name)
    return None if found is None else _in_stage(found, stage)


PARTS: dict[str, Callable[[FuncDef, Record], None]] = {
    "samples": _samples, "errors": _samples, "derivative": _derivative, "batches": _batches,
    "accepts": _accepts, "accepts_values": _accepts, "derive": _derive,
}  # fmt: skip


def plugin(version: str) -> type[Plugin]:
    return RecordTypes
