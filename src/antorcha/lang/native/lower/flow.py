"""Joining paths: what names mean after a branch, a loop or an inlined call.

Because the language is structured, every join knows its incoming paths and writes its phis at once;
no pass over memory is needed. A name that is not set on every path, or not with one type, has no
value after the join; using it says why.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable
from typing import Any, NoReturn

from antorcha.lang.native.lower.emitter import Tile, Value
from antorcha.lang.native.lower.expressions import Expressions
from antorcha.lang.native.types import bool_
from antorcha.lang.native.values import V

Env = dict[str, Value]
Arm = tuple[str, Env]  # the block that a path comes from, and what names mean there


class _Differ:
    """The paths do not agree."""


DIFFER: Any = _Differ()


def copy_env(env: Env) -> Env:
    """The same names, for one path to change: lists are copied, they can be written to."""
    result: dict[object, Tile] = {}
    return {k: _copy(x, result) for k, x in env.items()}


def _copy(x: Value, result: dict[object, Tile]) -> Value:
    if isinstance(x, Tile):
        return x.branch(result)
    if isinstance(x, tuple) and any(isinstance(y, (Tile, tuple)) for y in x):
        return tuple(_copy(y, result) for y in x)
    return x


def type_name(x: Value) -> str:
    if isinstance(x, V):
        return str(x.ty)
    return f"a list of {len(x)}" if isinstance(x, list) else repr(x)


class Flow(Expressions):
    def merge(self, arms: list[Arm], node: Any = None) -> None:
        """Sets ``env`` for a block that has just been started, reached from these arms."""
        if not arms:
            self.dead = True
            return
        if len(arms) == 1:
            self.env = arms[0][1]
            return
        env: Env = {}
        blocks = [block for block, _ in arms]
        result: dict[object, Value] = {}  # lists joined so far: two names of one list stay that
        for name, first in arms[0][1].items():
            values = [e.get(name, DIFFER) for _, e in arms]
            if any(x is DIFFER for x in values):
                self.unset[name] = "is not set on every path to here"
                continue
            joined = first if all(x is first for x in values) else self.join(blocks, values, result)
            if joined is DIFFER:
                kinds = " or ".join(dict.fromkeys(map(type_name, values)))
                self.unset[name] = f"is {kinds}, depending on the path to here"
            else:
                env[name] = joined
        for _, other in arms[1:]:
            for name in other:
                if name not in arms[0][1]:
                    self.unset[name] = "is not set on every path to here"
        self.env = env

    def join(
        self, blocks: list[str], values: list[Value], result: dict[object, Value] | None = None
    ) -> Value:
        """One value for what several paths bring, or DIFFER."""
        first = values[0]
        if all(x is first for x in values):
            return first
        if any(isinstance(x, V) for x in values):
            return self._join_values(blocks, values)
        if isinstance(first, (list, tuple)):
            if not all(type(x) is type(first) and len(x) == len(first) for x in values):
                return DIFFER
            if isinstance(first, Tile) and all(x.ident is first.ident for x in values):
                if result is not None and first.ident in result:
                    return result[first.ident]
                ident: object | None = first.ident
            else:
                ident = None
            items = [self.join(blocks, list(c), result) for c in zip(*values, strict=True)]
            if any(x is DIFFER for x in items):
                return DIFFER
            if not isinstance(first, Tile):
                return tuple(items)
            joined = Tile(items, ident)
            if result is not None and ident is not None:
                result[ident] = joined
            return joined
        try:
            equal = all(type(x) is type(first) and bool(x == first) for x in values)
        except Exception:
            return DIFFER
        return first if equal else DIFFER

    def _join_values(self, blocks: list[str], values: list[Value]) -> Value:
        ty = next(x.ty for x in values if isinstance(x, V))
        refs = []
        for x in values:
            if not isinstance(x, V):
                fits = (
                    isinstance(x, bool) == (ty.kind == "b")
                    if isinstance(x, int)
                    else (
                        ty.kind == "p"
                        if x is None
                        else isinstance(x, float) and ty.scalar.kind == "f"
                    )
                )
                if not fits:
                    return DIFFER
                x = self.const(x, ty, self.native.source.tree)
            if x.ty is not ty:
                return DIFFER
            refs.append(x.ref)
        if all(ref == refs[0] for ref in refs):
            return V(ty, refs[0])
        if not blocks:  # a comparison only
            return DIFFER
        pairs = ", ".join(f"[ {r}, %{b} ]" for r, b in zip(refs, blocks, strict=True))
        return self.v(ty, f"phi {ty.ll} {pairs}")

    # ---- expressions that branch
    def short_circuit(self, nodes: list[ast.expr], stop: bool) -> Value:
        """``and`` (stop is False) and ``or`` (True)."""
        end = self.label()
        arms: list[Arm] = []
        last = len(nodes) - 1
        for k, node in enumerate(nodes):
            x = self.condition(node)
            if not isinstance(x, V):
                if k < last and bool(x) is not stop:
                    continue  # says nothing
                if not arms:
                    return x
                x = V(bool_, "true" if x else "false")
                k = last  # a constant that decides
            if k == last:
                if not arms:
                    return x
                arms.append((self.block, {**self.env, ".": x}))
                self.jump(end)
                break
            follow = self.label()
            decided = V(bool_, "true" if stop else "false")
            arms.append((self.block, {**copy_env(self.env), ".": decided}))
            self.branch(x, end if stop else follow, follow if stop else end)
            self.start(follow)
        self.start(end)
        self.merge(arms)
        return self.env.pop(".")

    def e_IfExp(self, node: ast.IfExp) -> Value:
        test = self.condition(node.test)
        if not isinstance(test, V):
            return self.value(node.body if test else node.orelse)
        yes, no, end = self.label(), self.label(), self.label()
        self.branch(test, yes, no)
        before = self.env
        found: list[tuple[str, Env, Value]] = []
        holes = []
        for label, arm in ((yes, node.body), (no, node.orelse)):
            self.start(label)
            self.env = copy_env(before)
            x = self.value(arm)
            if not self.dead:
                found.append((self.block, self.env, x))
                holes.append(len(self.lines))
                self.lines.append(None)
        if len(found) == 1:
            self.lines[holes[0]] = f"  br label %{end}"
            self.start(end)
            self.env = found[0][1]
            return found[0][2]
        x, y = found[0][2], found[1][2]
        if not isinstance(x, (V, list, tuple)) and not isinstance(y, (V, list, tuple)):
            x, y = self.rt(x, node.body), self.rt(y, node.orelse)
        elif isinstance(x, V) or isinstance(y, V):
            x, y = self._unify(x, y, node)
        for hole in holes:
            self.lines[hole] = f"  br label %{end}"
        self.start(end)
        arms = [(b, {**e, ".": v}) for (b, e, _), v in zip(found, (x, y), strict=True)]
        self.merge(arms)
        if "." not in self.env:
            self.fail(node, f"the two arms are {type_name(x)} and {type_name(y)}")
        return self.env.pop(".")

    def _unify(self, x: Value, y: Value, node: Any) -> tuple[V, V]:
        ty = x.ty if isinstance(x, V) else y.ty
        if isinstance(x, V) and isinstance(y, V) and x.ty is not y.ty:
            if {x.ty.kind, y.ty.kind} == {"p"}:
                self.fail(node, f"the two arms are {x.ty} and {y.ty}; convert one")
            self.fail(node, f"the two arms are {x.ty} and {y.ty}; convert one")
        return self.rt(x, node, ty), self.rt(y, node, ty)

    # ---- loops
    def loop(
        self, node: Any, varying: dict[str, int], test: Callable[[], Value],
        step: Callable[[], None], body: Callable[[], None], drop: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        """A loop: ``test`` gives its condition, ``step`` runs after the body.

        ``varying``: names that the body may set (1), lists whose items it may set (2), names that
        it sets at compile time only (3). ``drop``: names that have no value after the loop.
        """
        before, head, latch, end = self.block, self.label(), self.label(), self.label()
        inside = self.label()
        holes = _Holes(self, node)
        fixed = {
            k: (x, list(x)) for k, x in self.env.items() if isinstance(x, Tile) and k not in varying
        }
        starts = {k: self._loop_start(k, how, node) for k, how in varying.items() if k in self.env}
        self.jump(head)
        self.start(head)
        for name, how in varying.items():
            if name in starts:
                self.env[name] = holes.open(starts[name]) if how != 3 else starts[name]
        exits: list[Arm] = []
        goes_on = test()
        if isinstance(goes_on, V):
            left = {k: x for k, x in copy_env(self.env).items() if k not in drop}
            exits.append((self.block, left))
            self.branch(goes_on, inside, end)
            self.start(inside)
        elif not goes_on:
            self.fail(node, "the loop's condition is false at compile time")
        again: list[Arm] = []
        self.loops.append((again, exits, latch, end))
        body()
        self.loops.pop()
        if not self.dead:
            again.append((self.block, self.env))
            self.jump(latch)
        self._close_loop(node, again, latch, head, before, starts, varying, holes, step)
        for name, (tile, items) in fixed.items():
            if any(x is not y for x, y in zip(tile, items, strict=True)):
                self.fail(node, f"{name!r} is a list that the loop changes in a way that was not "
                          "seen; change it by name in the loop itself")  # fmt: skip
        if exits:
            self.start(end)
        self.merge(exits)
        for name, how in varying.items():
            if how != 2 and name not in self.env:
                self.unset.setdefault(name, "is not set on every path to here")
        for name in drop:
            self.env.pop(name, None)
            self.unset[name] = "is the variable of a loop that is over; copy it to another name"

    loops: list[tuple[list[Arm], list[Arm], str, str]]

    def _loop_start(self, name: str, how: int, node: Any) -> Value:
        """A name's value before a loop that changes it: numbers become run-time values."""
        x = self.env[name]
        if how == 1 and isinstance(x, (bool, int, float)):
            return self.rt(x, node)
        if how != 3 and isinstance(x, Tile):
            self._run_time_tile(x, node)
        return x

    def _run_time_tile(self, tile: Tile, node: Any) -> None:
        """Numbers in a list that a loop changes become run-time values, in place."""
        for k, x in enumerate(tile):
            if isinstance(x, Tile):
                self._run_time_tile(x, node)
            elif isinstance(x, (bool, int, float)):
                tile[k] = self.rt(x, node)

    def _close_loop(
        self, node: Any, again: list[Arm], latch: str, head: str, before: str, starts: Env,
        varying: dict[str, int], holes: _Holes, step: Callable[[], None],
    ) -> None:  # fmt: skip
        if not again:
            holes.fill_once(before)
            return
        self.start(latch)
        self.merge(again)
        step()
        back = self.block
        for name, start in starts.items():
            if name not in self.env:
                self.fail(node, f"{name!r} {self.unset.get(name, 'changes in the loop')}")
            end = self.env[name]
            if varying[name] == 3:
                if end is not start and self.join([], [start, end]) is DIFFER:
                    holes.refuse(name, start, end)
                continue
            holes.fill(name, start, end, before, back)
        self.jump(head)


class _Holes:
    """The phis at the head of a loop: opened before its body is known, filled in after it, in the
    order in which they were opened."""

    def __init__(self, flow: Flow, node: Any) -> None:
        self.flow, self.node = flow, node
        self.waiting: deque[tuple[int, V, str]] = deque()  # line, value before the loop, phi
        self.tiles: dict[object, Tile] = {}  # lists by identity: two names of one stay that
        self.filled: set[object] = set()

    def open(self, x: Value) -> Value:
        """The value inside the loop of what was x before it."""
        if isinstance(x, V):
            flow = self.flow
            flow.count += 1
            name = f"%.{flow.count}"
            self.waiting.append((len(flow.lines), x, name))
            flow.lines.append(None)
            return V(x.ty, name)
        if isinstance(x, Tile):
            if x.ident not in self.tiles:
                self.tiles[x.ident] = Tile((self.open(y) for y in x), x.ident)
            return self.tiles[x.ident]
        return tuple(self.open(y) for y in x) if isinstance(x, tuple) else x

    def fill(self, name: str, start: Value, end: Value, before: str, back: str) -> None:
        """Completes the phis of a name, given its values before the loop and after the body."""
        flow = self.flow
        if isinstance(start, V):
            if end is None and start.ty.kind == "p":
                end = V(start.ty, "null")
            if not isinstance(end, V) or end.ty is not start.ty:
                self.refuse(name, start, end, "; convert one")
            line, _, phi = self.waiting.popleft()
            flow.lines[line] = (
                f"  {phi} = phi {start.ty.ll} [ {start.ref}, %{before} ], [ {end.ref}, %{back} ]"
            )
        elif isinstance(start, (list, tuple)):
            if type(end) is not type(start) or len(end) != len(start):
                self.refuse(name, start, end)
            if isinstance(start, Tile) and isinstance(end, Tile):
                if start.ident in self.filled:
                    if end.ident is not start.ident:
                        self.refuse(name, start, end, "; two names of one list part in the loop")
                    return
                self.filled.add(start.ident)
            for x, y in zip(start, end, strict=True):
                self.fill(name, x, y, before, back)
        elif end is not start and flow.join([], [start, end]) is DIFFER:
            hint = "; start it with a run-time value, such as ptr[T](None)" if start is None else ""
            self.refuse(name, start, end, hint)

    def refuse(self, name: str, start: Value, end: Value, hint: str = "") -> NoReturn:
        self.flow.fail(
            self.node, f"{name!r} is {type_name(start)} before the loop and {type_name(end)} after "
            f"its body{hint}",
        )  # fmt: skip

    def fill_once(self, before: str) -> None:
        """The body never comes back: each phi has one source."""
        for line, x, phi in self.waiting:
            self.flow.lines[line] = f"  {phi} = phi {x.ty.ll} [ {x.ref}, %{before} ]"
