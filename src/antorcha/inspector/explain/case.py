"""What a rule of explanation is given, and what it finds."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from antorcha.errors import Facts, facts_of
from antorcha.inspector.explain.draw import Picture, ShapeRow
from antorcha.inspector.explain.operands import Failed, NamedOperand
from antorcha.inspector.explain.site import Site
from antorcha.inspector.explain.trial import try_code
from antorcha.inspector.explain.values import Fact, Names, constant_of
from antorcha.inspector.explain.words import say
from antorcha.inspector.forms import shape_text
from antorcha.inspector.naming import is_tensor
from antorcha.inspector.reading import Elements

Fixes = list[tuple[str, str]]
"""Pieces of code, each with the shape of what it gives (empty where that is not known)."""
_READ = 1 << 22  # integers that are looked through
_ATOMS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.List)


@dataclass
class Finding:
    """What is wrong, drawn and in one sentence; and how to mend it."""

    rule: str
    picture: Picture | None = None
    fixes: Fixes = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class Case:
    """An exception at its site; ``case["dim"]`` is a fact that antorcha gave it."""

    error: BaseException
    message: str
    site: Site
    names: Names
    failed: Failed
    lang: str

    @property
    def operands(self) -> list[NamedOperand]:
        return self.failed.operands

    @property
    def facts(self) -> Facts:
        return facts_of(self.error)

    def __getitem__(self, fact: str) -> Any:
        return self.facts.more[fact]

    # ------------------------------------------------------------------------------ what is said
    def say(self, key: str, **values: object) -> str:
        """A sentence, its gaps filled in with the error's facts and these values."""
        return say(self.lang, key, **{**self.facts.more, "op": self.failed.op, **values})

    def finding(
        self, picture: Picture | None = None, fixes: Fixes | None = None, key: str = "",
        **values: object,
    ) -> Finding:  # fmt: skip
        """A finding with the sentence of the error's reason, or of `key`."""
        return Finding(self.say(key or self.facts.reason, **values), picture, fixes or [])

    # -------------------------------------------------------------------------------- the source
    @property
    def call(self) -> ast.Call | None:
        """The failing part, where it is a call."""
        return self.site.node if isinstance(self.site.node, ast.Call) else None

    def given(self, name: str, place: int) -> ast.expr | None:
        """An argument of the failing call, by its name or else its place."""
        call = self.call
        if call is None:
            return None
        named = [word.value for word in call.keywords if word.arg == name]
        return next(iter([*named, *call.args[place : place + 1]]), None)

    def argument(self, value: Any) -> ast.AST | None:
        """The argument (or index) that is written as this constant."""
        node = self.site.node
        if isinstance(node, ast.Call):
            given = [*node.args, *[keyword.value for keyword in node.keywords]]
        elif isinstance(node, ast.Subscript):
            index = node.slice
            given = list(index.elts) if isinstance(index, ast.Tuple) else [index]
        else:
            given = []
        for each in given:
            inside = each.elts if isinstance(each, (ast.Tuple, ast.List)) else [each]
            for one in inside:
                found = constant_of(one)
                if type(found) is type(value) and found == value:
                    return one
        return None

    @property
    def receiver(self) -> ast.AST | None:
        """``x`` in ``x.method()``; None where that is a package."""
        call = self.call
        if call is None or not isinstance(call.func, ast.Attribute):
            return None
        node = call.func.value
        return None if isinstance(node, ast.Name) and node.id == self.torch else node

    def text(self, node: ast.AST | None) -> str:
        """The source of a part of the failing expression."""
        return "" if node is None else self.site.text_of(node)

    def atom(self, node: ast.AST | None) -> str:
        """The same, such that ``.name`` can follow it."""
        text = self.text(node)
        return text if isinstance(node, _ATOMS) else f"({text})"

    @property
    def torch(self) -> str:
        """What the program calls antorcha."""
        return self._name_of("antorcha") or "torch"

    @property
    def nn(self) -> str:
        """What the program calls ``antorcha.nn``."""
        return self._name_of("antorcha.nn") or f"{self.torch}.nn"

    def _name_of(self, module: str) -> str:
        package = sys.modules.get(module)
        for name, value in self.names.known.items():
            if value is package and type(name) is str and not name.startswith("_"):
                return name
        return ""

    # ------------------------------------------------------------------------------------- fixes
    def fix(self, *changes: tuple[ast.AST | None, str], gives: bool = False) -> Fixes:
        """The line with parts of it replaced; nothing where one of them is not in it, or where it
        would fail, too. With `gives` only where it is known to hold, with the shape that it gives:
        so a rule may propose whatever could fit."""
        known = [(node, text) for node, text in changes if node is not None]
        if len(known) < len(changes) or not known:
            return []
        code = self.site.rewritten(known)
        verdict = try_code(self.site.replaced(known), self.names, self.failed.parts)
        if not code or verdict.holds is False or (gives and not verdict.holds):
            return []
        return [(code, shape_text(verdict.shape) if gives and verdict.shape is not None else "")]

    def with_suffix(self, operand: NamedOperand, suffix: str, gives: bool = False) -> Fixes:
        """The line with something done to an operand."""
        return self.fix((operand.node, self.atom(operand.node) + suffix), gives=gives)

    def renamed(self, name: str, gives: bool = False) -> Fixes:
        """The failing call with another of its package's functions, or of its object's methods."""
        func = self.call.func if self.call is not None else None
        if not isinstance(func, ast.Attribute):
            return []
        return self.fix((func, f"{self.atom(func.value)}.{name}"), gives=gives)

    def extremes(self, operand: NamedOperand, but: int | None = None) -> tuple[int, int] | None:
        """The lowest and the highest element of an operand of integers, `but` left out; None where
        they cannot be told."""
        for at, tensor in zip(self.operands, self.failed.tensors, strict=False):
            if at is operand:
                return _extremes(tensor, but)
        return None


def _extremes(tensor: Any, but: int | None) -> tuple[int, int] | None:
    if not is_tensor(tensor):
        return None
    elements = Elements(tensor)
    layout = elements.layout
    if elements.why_not or layout.dtype.kind not in "iu" or not 0 < layout.numel <= _READ:
        return None
    found = elements.thinned((1,) * layout.ndim)
    found = found if but is None else found[found != but]
    return (int(found.min()), int(found.max())) if found.size else None


# ----------------------------------------------------------------------------------------- rules
Rule = Callable[[Case], Finding | None]
RULES: dict[str, Rule] = {}
"""Which rule explains which reason. A rule that finds nothing leaves the operands to be drawn."""


def rule(*reasons: str, takes: int = 0) -> Callable[[Callable[..., Finding | None]], Rule]:
    """Decorates a function of a case, and of the first operands where it `takes` some: it explains
    the errors of these reasons, where there are as many operands."""

    def add(fn: Callable[..., Finding | None]) -> Rule:
        def guarded(case: Case) -> Finding | None:
            first = case.operands[:takes]
            return fn(case, *first) if len(first) == takes else None

        RULES.update(dict.fromkeys(reasons, guarded))
        return guarded

    return add


# -------------------------------------------------------------------------------------- pictures
def sizes(fact: Fact) -> list[str | None]:
    """The boxes of a shape."""
    return [str(size) for size in fact.shape]


def row(operand: NamedOperand, marked: Iterable[int] = (), note: str = "") -> ShapeRow:
    """An operand as a row of boxes; by itself the note says its dtype."""
    return ShapeRow(operand.label, sizes(operand.fact), {*marked}, note or operand.fact.dtype.name)


def rows(
    operands: Iterable[NamedOperand], marked: Iterable[int] = (), right: bool = True
) -> Picture:
    """Operands one below the other, the same boxes marked in each."""
    marks = {*marked}
    return Picture([row(operand, marks) for operand in operands], right)


def by_dtype(
    operands: Iterable[NamedOperand], wrong: Iterable[NamedOperand] = (), right: bool = False
) -> Picture:
    """Operands one below the other, the dtypes of some of them marked."""
    loud = [*wrong]
    return Picture(
        [ShapeRow(o.label, sizes(o.fact), set(), o.fact.dtype.name, o in loud) for o in operands],
        right,
    )  # fmt: skip


def numbers(values: Iterable[Any]) -> list[str | None]:
    """Boxes with these in them."""
    return [str(value) for value in values]
