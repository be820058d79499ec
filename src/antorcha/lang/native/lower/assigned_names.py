"""What statements may change: asked before a loop is written, because its phis come first.

A name is *set* (assigned at run time), *kept* (assigned at compile time only, by ``static`` or a
comprehension), its *items* are set, or it is *given* to an expanded function that may set them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from antorcha.lang.native.function import Native

SET, ITEMS, KEPT = 1, 2, 3


@dataclass
class Changes:
    assigned: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)
    items: set[str] = field(default_factory=set)
    given: list[tuple[ast.expr, str]] = field(default_factory=list)  # called function, name

    def how(self, writes: Callable[[ast.expr], bool]) -> dict[str, int]:
        """Each name's SET, ITEMS or KEPT; `writes` says whether a called function may set items."""
        found = dict.fromkeys(self.kept, KEPT)
        found.update(dict.fromkeys(self.items, ITEMS))
        found.update({name: ITEMS for f, name in self.given if writes(f)})
        found.update(dict.fromkeys(self.assigned, SET))
        return dict(sorted(found.items()))


def changes(nodes: list[ast.AST], is_static: Callable[[ast.expr], bool]) -> Changes:
    """What these statements and expressions may change."""
    found = Changes()
    for node in (n for each in nodes for n in ast.walk(each)):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                _target(target, found, is_static(node.value))
        elif isinstance(node, ast.AugAssign):
            _target(node.target, found, False)
        elif isinstance(node, ast.For):
            _target(node.target, found, is_static(node.iter))
        elif isinstance(node, ast.comprehension):
            _target(node.target, found, True)
        elif isinstance(node, ast.Call):
            for arg in (*node.args, *(k.value for k in node.keywords)):
                found.given += [(node.func, name) for name in _lists_in(arg)]
    return found


def _target(target: ast.expr, found: Changes, kept: bool) -> None:
    if isinstance(target, ast.Name):
        (found.kept if kept else found.assigned).add(target.id)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for each in target.elts:
            _target(each, found, kept)
    elif isinstance(target, ast.Subscript):
        found.items.update(_root(target))


def _root(node: ast.expr) -> Iterator[str]:
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def _lists_in(arg: ast.expr) -> Iterator[str]:
    """Names of lists that a function gets with this argument: themselves, or rows of them."""
    if isinstance(arg, ast.Starred):
        arg = arg.value
    if isinstance(arg, (ast.Tuple, ast.List)):
        for each in arg.elts:
            yield from _lists_in(each)
    else:
        yield from _root(arg)


_writers: dict[Native, bool] = {}


def may_write(native: Native) -> bool:
    """May an expanded function set items of a list that it is given?"""
    if native not in _writers:
        _writers[native] = False  # a function that calls itself adds nothing
        found = changes(list(native.source.tree.body), lambda _: False)
        _writers[native] = bool(found.items) or any(
            may_write(each) for each in _called(native, found)
        )
    return _writers[native]


def _called(native: Native, found: Changes) -> Iterator[Native]:
    for f, _ in found.given:
        try:
            called = native.lookup(f.id) if isinstance(f, ast.Name) else None
        except (KeyError, ValueError):
            called = None  # a parameter: it may be anything
        if isinstance(called, Native) and called.inline:
            yield called
