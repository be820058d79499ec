"""Noticing losses: the curve of every number that a training program calls its loss.

A loop overwrites `loss` thousands of times a second, often inside a function, where looking in now
and then would see next to nothing. So the program is compiled with one call added after every
assignment to a name that speaks of a loss; positions are those of the assignment, and tracebacks
show nothing of it. All other code is compiled as it stands, and runs as fast as ever.
"""

from __future__ import annotations

import ast
import math
import re
from time import perf_counter
from typing import Any

HOOK = "__antorcha_note__"  # the call's name; it stands among the builtins while a program runs
LIMIT = 1024  # points kept of a curve; a longer one is thinned out evenly
SHARE = 0.01  # of the program's time, at most, goes into reading losses
FREE = 0.003  # seconds of reading that any program may take: short ones are noted whole
FAR = 8  # times as long as usual: interrupted
_NAMES = re.compile(
    r"(?:(?:train|val|valid|test|batch|epoch|total)_)?(?:loss|cost|p[eé]rdida|coste)"
)


class Curve:
    """The values that one name took, and in which step each; thinned out when they are many.

    >>> curve = Curve()
    >>> for step in range(5000):
    ...     curve.count += 1
    ...     curve.add(float(step))
    >>> curve.count, len(curve.values) <= LIMIT, curve.steps[:3], curve.values[:2]
    (5000, True, [0, 8, 16], [0.0, 8.0])
    """

    def __init__(self) -> None:
        self.points: list[tuple[int, float]] = []  # (step, value): another thread looks at any time
        self.count = 0  # of all values, noted or not
        self._stride = 1

    def add(self, value: Any) -> None:
        """Note the newest value."""
        if (self.count - 1) % self._stride:
            return
        self.points.append((self.count - 1, float(value)))
        if len(self.points) > LIMIT:
            del self.points[1::2]
            self._stride *= 2

    @property
    def steps(self) -> list[int]:
        return [step for step, _ in self.points[:]]

    @property
    def values(self) -> list[float]:
        return [value for _, value in self.points[:]]

    def as_dict(self) -> dict[str, Any]:
        """It as JSON, which has no word for NaN and infinities: they are texts ("nan", "inf")."""
        count, points = self.count, self.points[:]
        return {
            "values": [value if math.isfinite(value) else str(value) for _, value in points],
            "steps": [step for step, _ in points],
            "count": max(count, points[-1][0] + 1),
        }


class Notes:
    """The curves of one run; calling it notes a value.

    Reading a number out of a tensor takes longer than many an operation. So that a tight loop is
    not slowed down, values are passed over while reading has taken more than its share of the time.
    One reading that took far longer than the others was interrupted (another thread had its turn):
    the time was not its own, and the curve is not to have a hole for it. Two in a row are slow.
    """

    def __init__(self, scalar: tuple[type, ...]) -> None:
        self.scalar = scalar  # classes of values that may be scalars: float, Tensor
        self.curves: dict[str, Curve] = {}
        self._begin = perf_counter()
        self._spent = 0.0
        self._usual = 1e-4  # seconds that a reading takes
        self._was_far = False  # did the last one take far longer?

    def __call__(self, name: str, value: Any) -> None:
        """Note `value` if it is a number; whatever else it is, the program is not disturbed."""
        now = perf_counter()
        curve = self.curves.get(name)
        if curve is None:
            if not isinstance(value, self.scalar):
                return
            curve = self.curves[name] = Curve()
        curve.count += 1
        if self._spent > FREE + SHARE * (now - self._begin):
            return
        try:
            if isinstance(value, self.scalar) and getattr(value, "numel", _one)() == 1:
                curve.add(value)
        except Exception:
            pass  # inside a transform, on the meta device, overwritten: no number to be had
        self._charge(perf_counter() - now)

    def _charge(self, took: float) -> None:
        self._was_far = took > FAR * self._usual and not self._was_far
        if self._was_far:
            self._spent += FAR * self._usual
        else:
            self._spent += took
            self._usual += (took - self._usual) / FAR

    def as_dict(self) -> dict[str, Any]:
        """The curves as JSON: values, their steps, and how many there were."""
        curves = list(self.curves.items())
        return {name: curve.as_dict() for name, curve in curves if curve.points}


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
