"""Statements: assignment, branches, loops, return. The top layer of lowering a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from antorcha.errors import NativeError
from antorcha.lang.native.function import Native
from antorcha.lang.native.intrinsics import static
from antorcha.lang.native.lower.assigned_names import changes, may_write
from antorcha.lang.native.lower.calls import Calls
from antorcha.lang.native.lower.emitter import Tile, Value
from antorcha.lang.native.lower.expressions import BINARY
from antorcha.lang.native.lower.flow import Arm, copy_env
from antorcha.lang.native.types import Ty, bool_, i64
from antorcha.lang.native.values import ExternData, Global, Lvalue, V

if TYPE_CHECKING:
    from antorcha.lang.native.lower.module import LoweredModule


class Statements(Calls):
    def __init__(self, module: LoweredModule, native: Native, ret: Ty) -> None:
        super().__init__(module, native, ret)
        self.loops = []
        self.inlined = []

    def function_body(self) -> None:
        """The whole function, its last return included."""
        tree = self.native.source.tree
        self.body(tree.body)
        if not self.dead:
            if self.ret.kind != "void":
                self.fail(tree, f"not every path returns a {self.ret}")
            self.do("ret void")

    def body(self, statements: list[ast.stmt]) -> None:
        for each in statements:
            if self.dead:
                return
            method = getattr(self, "s_" + type(each).__name__, None)
            if method is None:
                self.fail(each, f"{type(each).__name__} is not part of the native language")
            try:
                method(each)
            except NativeError:
                raise
            except Exception as err:
                self.fail(each, f"{type(err).__name__} at compile time: {err}")

    def s_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.expr(node.value)

    def s_Pass(self, node: ast.Pass) -> None:
        pass

    def s_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.fail(node, "local annotations are not used; write x = T(value)")

    def s_Assert(self, node: ast.Assert) -> None:
        test = self.value(node.test)
        if isinstance(test, V):
            self.fail(node, "assert takes a compile-time condition")
        if not test:
            text = self.value(node.msg) if node.msg else "the assertion does not hold"
            self.fail(node, str(text))

    def s_If(self, node: ast.If) -> None:
        test = self.condition(node.test)
        if not isinstance(test, V):
            return self.body(node.body if test else node.orelse)
        yes, no, end = self.label(), self.label(), self.label()
        self.branch(test, yes, no)
        before = self.env
        arms: list[Arm] = []
        for label, statements in ((yes, node.body), (no, node.orelse)):
            self.start(label)
            self.env = copy_env(before)
            self.body(statements)
            if not self.dead:
                arms.append((self.block, self.env))
                self.jump(end)
        if arms:
            self.start(end)
        self.merge(arms, node)

    # ---- loops
    def changed(self, *nodes: ast.AST) -> dict[str, int]:
        """Names that a loop may change, and how; see ``changes``."""
        found = self.module.changes.get(nodes)
        if found is None:
            found = self.module.changes[nodes] = changes(list(nodes), self.is_static)
        return found.how(self._may_write)

    def _may_write(self, f: ast.expr) -> bool:
        """May a call of this set items of a list that it is given?"""
        if not isinstance(f, ast.Name):
            return True
        try:
            called = self.env[f.id] if f.id in self.env else self.native.lookup(f.id)
        except (KeyError, ValueError):
            return False
        return isinstance(called, Native) and may_write(called)  # intrinsics do not write to lists

    def is_static(self, node: ast.expr) -> bool:
        """Is it a call of ``static``, by whatever name?"""
        if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Name, ast.Attribute)):
            return False
        if isinstance(node.func, ast.Attribute):
            return node.func.attr == "static"
        try:
            return node.func.id not in self.env and self.native.lookup(node.func.id) is static
        except (KeyError, ValueError):
            return False

    def s_While(self, node: ast.While) -> None:
        if node.orelse:
            self.fail(node, "while ... else is not part of the native language")
        varying = self.changed(node.test, *node.body)
        self.loop(
            node, varying, lambda: self.condition(node.test), lambda: None,
            lambda: self.body(node.body),
        )  # fmt: skip

    def s_For(self, node: ast.For) -> None:
        if node.orelse:
            self.fail(node, "for ... else is not part of the native language")
        if self.is_static(node.iter):
            return self._static_for(node)
        source = node.iter
        if not (isinstance(source, ast.Call) and self._is_range(source.func)):
            self.fail(node, "for takes range(...), or static(...) to unroll")
        if not isinstance(node.target, ast.Name):
            self.fail(node.target, "a loop over range(...) has one variable")
        self._range_for(node, source, node.target.id)

    def _is_range(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and self.value(node) is range

    def _static_for(self, node: ast.For) -> None:
        source = node.iter
        assert isinstance(source, ast.Call)
        if len(source.args) != 1:
            self.fail(source, "static(...) takes one sequence")
        for each in _leaving(node.body):
            self.fail(each, "an unrolled loop has no break or continue; use if")
        for item in list(self.compile_time(source.args[0], "static(...) unrolls")):
            self.assign(node.target, item, node, keep=True)
            self.body(node.body)
            if self.dead:
                return

    def _range_for(self, node: ast.For, source: ast.Call, name: str) -> None:
        given = [self.value(x) for x in source.args]
        given = [self.loaded(x, source) for x in given]
        if not 1 <= len(given) <= 3 or source.keywords:
            self.fail(source, "range takes 1 to 3 numbers")
        low, high = (0, given[0]) if len(given) == 1 else (given[0], given[1])
        step = given[2] if len(given) == 3 else 1
        ty = next((x.ty for x in (low, high, step) if isinstance(x, V)), i64)
        if ty.kind not in "iu":
            self.fail(source, f"range takes integers, not {ty}")
        if step == 0:
            self.fail(source, "range with a step of 0")
        down = not isinstance(step, V) and step < 0
        start, stop = self.rt(low, source, ty), self.rt(high, source, ty)
        if down and ty.kind == "u":
            self.fail(source, "an unsigned loop cannot go down; use i64")
        by = self.rt(step, source, ty)
        counter = f".{name}{self.count}"
        self.env[counter] = start
        self.env.pop(name, None)
        order = ("sgt" if down else "slt") if ty.kind == "i" else "ult"
        one = not isinstance(step, V) and abs(step) == 1 and ty.kind == "i"

        def test() -> V:
            now = self.env[name] = self.env[counter]
            return self.v(bool_, f"icmp {order} {ty.ll} {now.ref}, {stop.ref}")

        def advance() -> None:
            wrap = "nsw " if one else ""
            now = self.env[counter]
            self.env[counter] = self.v(ty, f"add {wrap}{ty.ll} {now.ref}, {by.ref}")

        varying = {k: v for k, v in self.changed(*node.body).items() if k != name}
        self.loop(
            node, {**varying, counter: 1}, test, advance, lambda: self.body(node.body),
            drop=(name, counter),
        )  # fmt: skip

    def s_Break(self, node: ast.Break) -> None:
        if not self.loops:
            self.fail(node, "break outside of a run-time loop")
        _, exits, _, end = self.loops[-1]
        exits.append((self.block, copy_env(self.env)))
        self.jump(end)

    def s_Continue(self, node: ast.Continue) -> None:
        if not self.loops:
            self.fail(node, "continue outside of a run-time loop")
        again, _, latch, _ = self.loops[-1]
        again.append((self.block, copy_env(self.env)))
        self.jump(latch)

    def s_Return(self, node: ast.Return) -> None:
        x = self.value(node.value) if node.value else None
        if self.dead:
            return
        if self.inlined:
            arms, end, tiles = self.inlined[-1]
            if isinstance(x, (Global, ExternData)):
                x = self.rt(x, node)
            env = copy_env({"return": x, **{k: self.env[k] for k in tiles}})
            arms.append((self.block, env))
            self.jump(end)
            return
        if self.ret.kind == "void":
            if x is not None:
                self.fail(node, "the function returns nothing (void)")
            self.do("ret void")
        else:
            if x is None and self.ret.kind != "p":
                self.fail(node, f"the function returns a {self.ret}")
            self.do(f"ret {self.ret.ll} {self.rt(x, node, self.ret).ref}")
        self.dead = True

    # ---- assignment
    def s_Assign(self, node: ast.Assign) -> None:
        x = self.expr(node.value)
        if isinstance(x, Lvalue):
            x = self.load_place(x)
        keep = self.is_static(node.value)
        if keep and isinstance(x, V):
            self.fail(node, f"static(...) of a run-time {x.ty}")
        for target in node.targets:
            self.assign(target, x, node, keep)

    def s_AugAssign(self, node: ast.AugAssign) -> None:
        op = BINARY[type(node.op)]
        target = node.target
        if isinstance(target, ast.Name):
            load = ast.copy_location(ast.Name(target.id, ast.Load()), target)
            found = self.binary(op, self.value(load), self.value(node.value), node)
            return self.assign(target, found, node)
        place = self.place(target)
        if isinstance(place, Lvalue):
            found = self.binary(op, self.load_place(place), self.value(node.value), node)
            return self.store(self.rt(found, node, place.ty), place.ref)
        tile, index = place
        tile[index] = self.rt(self.binary(op, tile[index], self.value(node.value), node), node)

    def assign(self, target: ast.expr, x: Value, node: Any, keep: bool = False) -> None:
        """Gives a target its value. A number becomes a run-time value, of the type that the name
        had, unless ``keep`` says that it stays a compile-time one."""
        if isinstance(target, ast.Name):
            self.env[target.id] = self._held(x, node, self.env.get(target.id), keep)
        elif isinstance(target, (ast.Tuple, ast.List)):
            items = list(x) if hasattr(x, "__iter__") and not isinstance(x, V) else None
            if items is None or len(items) != len(target.elts):
                count = "one value" if items is None else f"{len(items)} values"
                self.fail(node, f"{len(target.elts)} names for {count}")
            for each, item in zip(target.elts, items, strict=True):
                self.assign(each, item, node, keep)
        elif isinstance(target, (ast.Attribute, ast.Subscript)):
            place = self.place(target)
            if isinstance(place, Lvalue):
                self.store(self.rt(x, node, place.ty), place.ref)
            else:
                tile, index = place
                old = tile[index]
                if isinstance(x, Tile):
                    tile[index] = x.fresh()
                else:
                    tile[index] = self.rt(x, node, old.ty if isinstance(old, V) else None)
        else:
            self.fail(target, f"{type(target).__name__} cannot be assigned to")

    def _held(self, x: Value, node: Any, old: Value, keep: bool) -> Value:
        if isinstance(x, Tile):
            return x.fresh()
        if isinstance(x, (Global, ExternData)):
            return self.rt(x, node)
        if keep or not isinstance(x, (bool, int, float)):
            if x is None and isinstance(old, V) and old.ty.kind == "p":
                return V(old.ty, "null")
            return x
        return self.rt(x, node, old.ty if isinstance(old, V) else None)


def _leaving(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The break and continue statements that belong to the loop with this body."""
    for each in statements:
        if isinstance(each, (ast.Break, ast.Continue)):
            yield each
        elif isinstance(each, ast.If):
            yield from _leaving(each.body)
            yield from _leaving(each.orelse)
