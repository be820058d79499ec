"""Which buffers a kernel reads, by its syntax tree; asked by ``ANTORCHA_CALL=checked``.

A kernel trusts that there is a buffer for each ``bufs[k]`` that it names. What plans it may have
left an operand out (a number that is None, say): then it would read whatever lies there.
"""

from __future__ import annotations

import ast
from typing import Any

from antorcha import config
from antorcha.errors import NativeError

CHECKED = config.call_path == "checked"


class _Reader(ast.NodeVisitor):
    """Finds the highest buffer among those that compile-time values name; branches that they rule
    out are left out, and what only run time knows is passed over, as are the buffers that other
    functions are handed."""

    def __init__(self, buffers: str, names: dict[str, Any]) -> None:
        self.buffers, self.names = buffers, names
        self.highest = -1

    def value(self, node: ast.expr) -> Any:
        """What an expression of compile-time values is; None where it is of others."""
        try:
            return eval(compile(ast.Expression(node), "<kernel>", "eval"), self.names)
        except Exception:  # a name, or a type of the kernel language, that is not there yet
            return None

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.value, ast.Name) and node.value.id == self.buffers:
            at = self.value(node.slice)
            if type(at) is int:
                self.highest = max(self.highest, at)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        known = self.value(node.test)
        if known is None:
            self.generic_visit(node)
        for each in () if known is None else node.body if known else node.orelse:
            self.visit(each)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        known = self.value(node.test)
        if known is None:
            self.generic_visit(node)
        else:
            self.visit(node.body if known else node.orelse)

    def visit_For(self, node: ast.For) -> None:
        """``for k in static(range(..))``: every k is known."""
        given = node.iter
        unrolled = isinstance(given, ast.Call) and getattr(given.func, "id", "") == "static"
        turns = self.value(given.args[0]) if unrolled and isinstance(given, ast.Call) else None
        if turns is None or not isinstance(node.target, ast.Name):
            self.generic_visit(node)
            return
        for each in turns:
            self.names[node.target.id] = each
            for line in node.body:
                self.visit(line)
        self.names.pop(node.target.id, None)


def buffers_named(spec: Any) -> int:
    """How many buffers a kernel counts on: one more than the highest that its code names."""
    kernel = spec.native
    tree = kernel.source.tree
    names = {**kernel.fn.__globals__, **(kernel.fn.__kwdefaults__ or {}), **spec.static}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.pop(node.id, None)  # a variable, whose value nobody knows yet
    reader = _Reader(kernel.params[0], names)
    for line in tree.body:
        reader.visit(line)
    return reader.highest + 1


def check_buffers(spec: Any, given: int) -> None:
    """Refuses to launch a kernel that counts on more buffers than it is given."""
    wanted = buffers_named(spec)
    if wanted > given:
        raise NativeError(
            f"{spec!r} reads buffer {wanted - 1}, and is given {given}: an operand is missing"
        )
