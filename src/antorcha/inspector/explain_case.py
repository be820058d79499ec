"""What a rule of explanation is given, and what it finds."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass, field
from typing import Any

from antorcha.inspector.explain_draw import Picture, Shape
from antorcha.inspector.explain_operands import Failed, Operand
from antorcha.inspector.explain_site import Site
from antorcha.inspector.explain_trial import try_code
from antorcha.inspector.explain_values import Fact, Names, constant_of
from antorcha.inspector.explain_words import say
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
    """An exception of antorcha at its site."""

    error: BaseException
    message: str
    site: Site
    names: Names
    failed: Failed
    lang: str

    @property
    def operands(self) -> list[Operand]:
        return self.failed.operands

    @property
    def call(self) -> ast.Call | None:
        """The failing part, where it is a call."""
        return self.site.node if isinstance(self.site.node, ast.Call) else None

    def say(self, key: str, **values: object) -> str:
        return say(self.lang, key, **values)

    def fix(self, *changes: tuple[ast.AST | None, str], gives: object = "") -> Fixes:
        """The line with parts of it replaced; nothing where one of them is not in it, or where it
        would fail, too."""
        known = [(node, text) for node, text in changes if node is not None]
        if len(known) < len(changes) or not known:
            return []
        code = self.site.rewritten(known)
        verdict = try_code(self.site.replaced(known), self.names, self.failed.parts)
        if not code or verdict.holds is False:
            return []
        gives = verdict.shape if gives and verdict.shape is not None else gives
        return [(code, shape_text(gives) if isinstance(gives, tuple) else str(gives))]

    def atom(self, node: ast.AST | None) -> str:
        """The source of an operand, such that ``.name`` can follow it."""
        text = "" if node is None else self.site.text_of(node)
        return text if isinstance(node, _ATOMS) else f"({text})"

    def with_suffix(self, operand: Operand, suffix: str, gives: object = "") -> Fixes:
        """The line with something done to an operand."""
        return self.fix((operand.node, self.atom(operand.node) + suffix), gives=gives)

    @property
    def receiver(self) -> ast.AST | None:
        """``x`` in ``x.method()``; None where that is a package."""
        call = self.call
        if call is None or not isinstance(call.func, ast.Attribute):
            return None
        node = call.func.value
        return None if isinstance(node, ast.Name) and node.id == self.torch else node

    @property
    def torch(self) -> str:
        """What the program calls antorcha."""
        package = sys.modules.get("antorcha")
        for name, value in self.names.known.items():
            if value is package and type(name) is str and not name.startswith("_"):
                return name
        return "torch"

    @property
    def nn(self) -> str:
        """What the program calls ``antorcha.nn``."""
        package = sys.modules.get("antorcha.nn")
        for name, value in self.names.known.items():
            if value is package and type(name) is str and not name.startswith("_"):
                return name
        return f"{self.torch}.nn"

    def extremes(self, operand: Operand, but: int | None = None) -> tuple[int, int] | None:
        """The lowest and the highest element of an operand of integers, `but` left out; None where
        they cannot be told."""
        for at, tensor in zip(self.operands, self.failed.tensors, strict=False):
            if at is operand:
                return _extremes(tensor, but)
        return None

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


def _extremes(tensor: Any, but: int | None) -> tuple[int, int] | None:
    if not is_tensor(tensor):
        return None
    elements = Elements(tensor)
    lay = elements.layout
    if elements.why_not or lay.dtype.kind not in "iu" or not 0 < lay.numel <= _READ:
        return None
    found = elements.thinned((1,) * lay.ndim)
    found = found if but is None else found[found != but]
    return (int(found.min()), int(found.max())) if found.size else None


def sizes(fact: Fact) -> list[str | None]:
    """The boxes of a shape."""
    return [str(size) for size in fact.shape]


def row(operand: Operand, marked: set[int] | None = None, note: str = "") -> Shape:
    """An operand as a row of boxes; by itself the note says its dtype."""
    said = note or operand.fact.dtype.name
    return Shape(operand.label, sizes(operand.fact), marked or set(), said)
