"""Noticing losses: the curve of every number that a training program calls its loss.

A loop overwrites `loss` thousands of times a second, often inside a function, where looking in now
and then would see next to nothing. So the program is compiled with one call added after every
assignment to a name that speaks of a loss; positions are those of the assignment, and tracebacks
show nothing of it. All other code is compiled as it stands, and runs as fast as ever.
"""

from __future__ import annotations

import ast
import re
from typing import Any

HOOK = "__antorcha_note__"  # the call's name; it stands among the builtins while a program runs
LIMIT = 2048  # points kept of a curve; a longer one is thinned out evenly
_NAMES = re.compile(
    r"(?:(?:train|val|valid|test|batch|epoch|total)_)?(?:loss|cost|p[eé]rdida|coste)"
)


class Curve:
    """The values that one name took, thinned out: every `stride`-th is kept.

    >>> curve = Curve()
    >>> for i in range(5000):
    ...     curve.add(float(i))
    >>> curve.stride, len(curve.values), curve.values[:3], curve.count
    (4, 1250, [0.0, 4.0, 8.0], 5000)
    """

    def __init__(self) -> None:
        self.values: list[float] = []
        self.stride = 1
        self.count = 0

    def add(self, value: Any) -> None:
        """Add one value; it is read (a tensor's ``item``) only if it is kept."""
        if self.count % self.stride == 0:
            self.values.append(float(value))
            if len(self.values) > LIMIT:
                del self.values[1::2]
                self.stride *= 2
        self.count += 1


class Notes:
    """The curves of one run; calling it notes a value."""

    def __init__(self, scalar: tuple[type, ...]) -> None:
        self.scalar = scalar  # classes of values that may be scalars: float, Tensor
        self.curves: dict[str, Curve] = {}

    def __call__(self, name: str, value: Any) -> None:
        """Note `value` if it is a number; whatever else it is, the program is not disturbed."""
        try:
            if isinstance(value, self.scalar) and getattr(value, "numel", _one)() == 1:
                curve = self.curves.get(name)
                if curve is None:
                    curve = self.curves[name] = Curve()
                curve.add(value)
        except Exception:
            return  # inside a transform, on the meta device, overwritten: no number to be had

    def as_dict(self) -> dict[str, Any]:
        """The curves as JSON: the values, and how many steps lie between two of them."""
        return {
            name: {"values": curve.values[:], "stride": curve.stride, "count": curve.count}
            for name, curve in list(self.curves.items())
        }


def _one() -> int:
    return 1


def noting(tree: ast.Module) -> ast.Module:
    """Add the calls to a program, in place.

    >>> print(ast.unparse(noting(ast.parse("loss = f(x)\\nglass = 1"))))
    loss = f(x)
    __antorcha_note__('loss', loss)
    glass = 1
    """
    _Adder().visit(tree)
    return tree


class _Adder(ast.NodeTransformer):
    def visit_Assign(self, node: ast.Assign) -> Any:
        names = [name for target in node.targets for name in _names(target)]
        return _followed(node, names)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        return _followed(node, _names(node.target) if node.value is not None else [])


def _names(target: ast.expr) -> list[str]:
    if isinstance(target, ast.Name):
        return [target.id] if _NAMES.fullmatch(target.id) else []
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for each in target.elts for name in _names(each)]
    return []


def _followed(node: ast.stmt, names: list[str]) -> ast.stmt | list[ast.stmt]:
    if not names:
        return node
    calls: list[ast.stmt] = []
    for name in names:
        words = [ast.Constant(name), ast.Name(name, ast.Load())]
        call = ast.Expr(ast.Call(ast.Name(HOOK, ast.Load()), words, []))
        calls.append(ast.fix_missing_locations(ast.copy_location(call, node)))
    return [node, *calls]
