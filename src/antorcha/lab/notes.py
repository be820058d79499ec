"""Noticing losses: the curve of every number that a training program calls its loss.

A loop overwrites `loss` thousands of times a second, often inside a function, where looking in now
and then would see next to nothing. So the program is compiled with one call added after every
assignment to a name that speaks of a loss; positions are those of the assignment, and tracebacks
show nothing of it. All other code is compiled as it stands, and runs as fast as ever.

Each training has curves of its own. A new one begins where another statement of the program starts
a loop that assigns losses; and, in the same statement (a loop over learning rates), where such a
loop is entered and the loss is computed from other parameters than the last time.
"""

from __future__ import annotations

import ast
import contextlib
import math
import re
import weakref
from time import perf_counter, thread_time
from typing import Any

from antorcha.profiler import session as profiling
from antorcha.runtime.tensor import Tensor

HOOK = "__antorcha_note__"  # the call's name; it stands among the builtins while a program runs
LIMIT = 1024  # points kept of a curve; a longer one is thinned out evenly
SHARE = 0.01  # of the program's time, at most, goes into reading losses
FREE = 0.003  # seconds of reading that any program may take: short ones are noted whole
TRAININGS = 12  # curves kept: of more, the last
NODES = 300  # of a loss's graph that are looked at, for what it trains
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
        self.begun = (0, 0)  # the statement and the loop that its last value was noted in
        self.trained: list[weakref.ref[Any]] = []  # some of the parameters that it is computed from
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
    What counts is the time in which this thread worked: where another one had its turn meanwhile,
    or another program, the curve is not to have a hole for it. A curve's first value always counts.
    """

    def __init__(self, scalar: tuple[type, ...]) -> None:
        self.scalar = scalar  # classes of values that may be scalars: float, Tensor
        self.curves: dict[str, Curve] = {}  # by name and, of later trainings, number: "loss 2"
        self._current: dict[str, tuple[int, Curve]] = {}  # by name: which training, its curve
        self._newest: Curve | None = None  # the one that got a value last
        self._statement = 0  # the number of the program's statement that runs
        self._is_loop = False  # is it a loop?
        self._loops = 0  # how many loops that assign losses were entered
        self._begin = perf_counter()
        self._spent = 0.0  # seconds of work

    def __call__(self, name: str, value: Any, in_loop: bool = False) -> None:
        """Note `value` if it is a number; whatever else it is, the program is not disturbed.
        `in_loop`: is it assigned in a loop, of the function or the program?"""
        _, curve = self._current.get(name, (0, None))
        begin = None
        if curve is None or curve.begun != (self._statement, self._loops):
            if curve is None and not isinstance(value, self.scalar):
                return
            begin = thread_time()
            curve = self._curve_of(name, value, in_loop)
        curve.count += 1
        self._newest = curve
        reads = profiling.running is None  # (a profile would count our calls)
        if reads and not (curve.points and self._is_late()):
            begin = begin or thread_time()
            self._read(curve, value)
        if begin is not None:
            self._spent += thread_time() - begin

    def newest(self) -> tuple[str, int]:
        """The curve that got a value last, and in which of its steps."""
        named = [name for name, curve in self.curves.items() if curve is self._newest]
        return (named[0], self._newest.count - 1) if named and self._newest else ("", 0)

    def _is_late(self) -> bool:
        """Has reading taken more than its share?"""
        return self._spent > FREE + SHARE * (perf_counter() - self._begin)

    def _read(self, curve: Curve, value: Any) -> None:
        with contextlib.suppress(Exception):  # in a transform, on the meta device, overwritten
            if isinstance(value, self.scalar) and getattr(value, "numel", _one)() == 1:
                curve.add(value)

    def begin(self, statement: int, is_loop: bool) -> None:
        """Another statement of the program runs."""
        self._statement, self._is_loop = statement, is_loop

    def enter(self) -> None:
        """A loop that assigns losses is entered."""
        self._loops += 1

    def _curve_of(self, name: str, value: Any, in_loop: bool) -> Curve:
        """The curve to go on with, or a new one where another training has begun."""
        number, curve = self._current.get(name, (0, None))
        here = self._statement, self._loops
        try:
            trained = _trained(value)
        except Exception:  # a graph that is freed, a subclass that resists
            trained = []
        if curve is not None and in_loop | self._is_loop and self._begins(curve, trained):
            curve = None
        if curve is None:
            curve, number = Curve(), number + 1
            self._current[name] = number, curve
            self.curves[name if number == 1 else f"{name} {number}"] = curve
            if len(self.curves) > TRAININGS:
                del self.curves[next(iter(self.curves))]
        curve.begun = here
        curve.trained = [weakref.ref(each) for each in trained] or curve.trained
        return curve

    def _begins(self, curve: Curve, trained: list[Any]) -> bool:
        """Does another training begin, with a loss of these parameters?"""
        if curve.begun[0] != self._statement:
            return True
        before = {id(each()) for each in curve.trained}
        return bool(before and trained) and not any(id(each) in before for each in trained)

    def as_dict(self) -> dict[str, Any]:
        """The curves as JSON: values, their steps, and how many there were."""
        curves = [*self.curves.items()]
        return {name: curve.as_dict() for name, curve in curves if curve.points}


def _one() -> int:
    return 1


def _trained(loss: Any) -> list[Any]:
    """Leaves that a loss is computed from, of the nearest part of its graph."""
    found: list[Any] = []
    todo: list[Any] = [getattr(loss, "grad_fn", None)]
    seen: set[Any] = set()
    while todo and len(seen) < NODES:
        node = todo.pop()
        node = node[0] if type(node) is tuple else node
        if isinstance(node, Tensor):
            found.append(node)
        elif node is not None and node not in seen:
            seen.add(node)
            todo += node.edges
    return found


def noting(tree: ast.Module) -> ast.Module:
    """Add the calls to a program, in place.

    >>> print(ast.unparse(noting(ast.parse("loss = f(x)\\nglass = 1"))))
    loss = f(x)
    __antorcha_note__('loss', loss, False)
    __antorcha_note__.begin(2, False)
    glass = 1
    >>> print(ast.unparse(noting(ast.parse("for x in data:\\n    loss = f(x)"))))
    __antorcha_note__.begin(1, True)
    __antorcha_note__.enter()
    for x in data:
        loss = f(x)
        __antorcha_note__('loss', loss, True)
    """
    adder = _Adder()
    body: list[ast.stmt] = []
    for number, statement in enumerate(tree.body, 1):
        assigns = isinstance(statement, (ast.Assign, ast.AnnAssign)) and adder.names(statement)
        if not (assigns or isinstance(statement, _QUIET) or _is_text(statement)):
            is_loop = isinstance(statement, _LOOPS)
            values: list[ast.expr] = [ast.Constant(number), ast.Constant(is_loop)]
            body.append(_call(statement, values, "begin"))
        changed = adder.visit(statement)
        body += changed if isinstance(changed, list) else [changed]
    tree.body = body
    return tree


_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_QUIET = (ast.Import, ast.ImportFrom, ast.ClassDef, *_FUNCTIONS, ast.Pass)  # they train nothing


def _is_text(statement: ast.stmt) -> bool:
    """Is it a docstring? (What stands before it makes it none.)"""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


class _Adder(ast.NodeTransformer):
    def __init__(self) -> None:
        self._in_loop = False  # of the function that is being visited, or of the program
        self._count = 0  # assignments that are noted, so far

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, _LOOPS):
            return self._visit_loop(node)
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            return self._visit_assignment(node)
        outer = self._in_loop
        self._in_loop = outer and not isinstance(node, _FUNCTIONS)
        self.generic_visit(node)
        self._in_loop = outer
        return node

    def _visit_loop(self, node: ast.stmt) -> Any:
        outer, before = self._in_loop, self._count
        self._in_loop = True
        self.generic_visit(node)
        self._in_loop = outer
        return node if self._count == before else [_call(node, [], "enter"), node]

    @staticmethod
    def names(node: ast.Assign | ast.AnnAssign) -> list[str]:
        """What is noted after an assignment."""
        if isinstance(node, ast.Assign):
            return [name for target in node.targets for name in _names(target)]
        return _names(node.target) if node.value is not None else []

    def _visit_assignment(self, node: Any) -> Any:
        names = self.names(node)
        self._count += len(names)
        calls: list[ast.stmt] = []
        for name in names:
            words: list[ast.expr] = [ast.Constant(name), ast.Name(name, ast.Load())]
            calls.append(_call(node, [*words, ast.Constant(self._in_loop)]))
        return [node, *calls] if calls else node


def _call(node: ast.stmt, values: list[ast.expr], method: str = "") -> ast.stmt:
    """A call of the hook, at the place of `node`."""
    hook: ast.expr = ast.Name(HOOK, ast.Load())
    if method:
        hook = ast.Attribute(hook, method, ast.Load())
    call = ast.Expr(ast.Call(hook, values, []))
    return ast.fix_missing_locations(ast.copy_location(call, node))


def _names(target: ast.expr) -> list[str]:
    if isinstance(target, ast.Name):
        return [target.id] if _NAMES.fullmatch(target.id) else []
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for each in target.elts for name in _names(each)]
    return []
