"""Shapes beside lines: what every assignment of a program made, noted while it runs.

The program is compiled with a call added after each assignment to names, at the beginning of each
function that takes arguments and of each loop that assigns its names. A call stands behind a switch
of its own, which is off after `VISITS` visits: from then on the place costs a few nanoseconds.
(In the program's own statements, too: there the two names would be looked for among its own first,
did not a ``global`` statement say where they are.)
Functions below a decorator that may read them (`antorcha.kernel`) are left as they are.
Positions are those of the assignment, so errors are told of as if nothing had been added. What is
noted are shapes and dtypes; no tensor is kept.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from antorcha.runtime.tensor import Tensor

HOOK = "__antorcha_shapes__"  # the call's name; it stands among the builtins while a program runs
SWITCH = "__antorcha_looks__"  # and that of the switches
VISITS = 64  # of a place, until its switch is off
VARY = 3  # different shapes of a name that are told
MOST = 500  # lines that are told of


@dataclass
class HintSite:
    """A place of the program: its line, the names that it gives, and the texts of each."""

    line: int
    names: list[str]
    texts: dict[str, list[str]] = field(default_factory=dict)
    layouts: dict[str, Any] = field(default_factory=dict)  # of each name, the one seen last
    left: int = VISITS


class ShapeHints:
    """The hints of one run; calling it notes the values of a place."""

    def __init__(self) -> None:
        self.switches: list[bool] = []
        self._sites: list[HintSite] = []

    def add_to(self, tree: ast.Module) -> ast.Module:
        """Add the calls to a program, in place.

        >>> print(ast.unparse(ShapeHints().add_to(ast.parse("x, y = f()"))))
        global __antorcha_shapes__, __antorcha_looks__
        x, y = f()
        if __antorcha_looks__[0]:
            __antorcha_shapes__(0, x, y)
        """
        adder = _CallAdder(self._sites)
        adder.visit(tree)
        if self._sites:
            begin = _after_head(tree.body)
            names = ast.copy_location(ast.Global([HOOK, SWITCH]), tree.body[begin])
            tree.body.insert(begin, names)
        self.switches += [True] * len(self._sites)
        return tree

    def __call__(self, number: int, *values: Any) -> None:
        """Note the shapes of `values`; whatever else they are, the program is not disturbed."""
        site = self._sites[number]
        site.left -= 1
        if site.left <= 0:
            self.switches[number] = False
        for name, value in zip(site.names, values):
            if issubclass(type(value), Tensor):  # (isinstance may ask a class of the learner's)
                try:
                    if value._layout is site.layouts.get(name):
                        continue
                    site.layouts[name] = value._layout
                    text = told(value)
                except Exception:  # a subclass that resists
                    self.switches[number] = False
                    return
                texts = site.texts.setdefault(name, [])
                if text not in texts:
                    texts.append(text)
                    if len(texts) > VARY:
                        self.switches[number] = False

    def as_list(self) -> list[dict[str, Any]]:
        """What to write beside which line: ``[{"line": 3, "text": "300×2"}, ...]``."""
        lines: dict[int, list[tuple[str, str]]] = {}
        named: dict[int, int] = {}  # names that each line gives
        for site in list(self._sites):
            named[site.line] = named.get(site.line, 0) + len(site.names)
            for name, texts in list(site.texts.items()):
                lines.setdefault(site.line, []).append((name, _several(texts)))
        found = []
        for line, pairs in sorted(lines.items())[:MOST]:
            alone = len(pairs) == 1 == named[line]
            said = [text if alone else f"{name} {text}" for name, text in dict(pairs).items()]
            found.append({"line": line, "text": ", ".join(said)})
        return found


def told(tensor: Any) -> str:
    """Shape, and dtype and device where they are not the usual ones.

    >>> import antorcha
    >>> told(antorcha.ones(300, 2)), told(antorcha.arange(3)), told(antorcha.tensor(1.0))
    ('300×2', '3 int64', '()')
    """
    layout = tensor._layout
    words = ["×".join([str(size) for size in layout.shape]) or "()"]
    if layout.dtype.name != "float32":
        words.append(layout.dtype.name)
    if layout.device.type != "cpu":
        words.append(str(layout.device))
    return " ".join(words)


def _several(texts: list[str]) -> str:
    return " | ".join([*texts[:VARY], *["…"][: len(texts) - VARY if len(texts) > VARY else 0]])


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (ast.For, ast.AsyncFor)
_HARMLESS = {"no_grad", "enable_grad", "inference_mode", "staticmethod", "classmethod", "property",
             "setter", "cache", "lru_cache", "cached_property", "wraps", "contextmanager",
             "abstractmethod", "override"}  # fmt: skip


class _CallAdder(ast.NodeTransformer):
    """Adds the calls; each place gets the next number."""

    def __init__(self, sites: list[HintSite]) -> None:
        self._sites = sites

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            return [node, *self._call(node, list(_assigned(node)), node.end_lineno or node.lineno)]
        if isinstance(node, _FUNCTIONS) and not all(map(_is_harmless, node.decorator_list)):
            return node
        self.generic_visit(node)
        if isinstance(node, _FUNCTIONS):
            place = 1 if ast.get_docstring(node, clean=False) is not None else 0
            node.body[place:place] = self._call(node, _arguments(node.args), _head(node))
        elif isinstance(node, _LOOPS):
            line = node.iter.end_lineno or node.lineno
            node.body[0:0] = self._call(node, list(_names(node.target)), line)
        return node

    def _call(self, node: ast.stmt, names: list[str], line: int) -> list[ast.stmt]:
        """The call for these names, if there are any, at the place of `node`."""
        names = list(dict.fromkeys(names))
        if not names:
            return []
        number = ast.Constant(len(self._sites))
        self._sites.append(HintSite(line, names))
        values: list[ast.expr] = [ast.Name(name, ast.Load()) for name in names]
        call = ast.Expr(ast.Call(ast.Name(HOOK, ast.Load()), [number, *values], []))
        switch = ast.Subscript(ast.Name(SWITCH, ast.Load()), number, ast.Load())
        guarded = ast.copy_location(ast.If(switch, [call], []), node)
        return [ast.fix_missing_locations(guarded)]


def _is_harmless(decorator: ast.expr) -> bool:
    """Does that decorator take a function as it is?"""
    if isinstance(decorator, ast.Call):
        decorator = decorator.func
    return getattr(decorator, "attr", getattr(decorator, "id", "")) in _HARMLESS


def _assigned(node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> Iterator[str]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _names(target)
    elif node.value is not None:
        yield from _names(node.target)


def _names(target: ast.expr) -> Iterator[str]:
    """The names that are assigned, but for those by convention not looked at (``_``)."""
    if isinstance(target, ast.Name) and target.id.strip("_"):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for each in target.elts:
            yield from _names(each)


def _arguments(given: ast.arguments) -> list[str]:
    """Arguments, but for ``*args`` and ``**kwargs``, which are no tensors."""
    return [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def _after_head(body: list[ast.stmt]) -> int:
    """Behind a program's docstring and what it imports from the future."""
    for index, each in enumerate(body):
        is_text = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
        if not is_text and getattr(each, "module", "") != "__future__":
            return index
    return len(body)


def _head(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The last line of a function's head, as far as anything stands in it."""
    given = node.args
    parts = [*given.posonlyargs, *given.args, *given.kwonlyargs, *given.defaults, node.returns]
    return max([node.lineno, *[part.end_lineno or 0 for part in parts if part is not None]])
