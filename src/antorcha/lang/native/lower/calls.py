"""Calls: types as conversions, intrinsics, native functions (expanded or called), C functions."""

from __future__ import annotations

import _operator
import ast
import linecache
import math
import types
from typing import Any

from antorcha.errors import NativeError
from antorcha.lang.native.function import Native, Spec
from antorcha.lang.native.lower.emitter import Tile, Value
from antorcha.lang.native.lower.flow import DIFFER, Arm, Env, Flow
from antorcha.lang.native.types import Ty
from antorcha.lang.native.values import Extern, ExternData, Global, Intrinsic, Lvalue, V

# Python's own functions that may be called at compile time
_PURE: tuple[Any, ...] = (
    len, min, max, abs, range, tuple, list, dict, set, int, float, bool, str, sum, zip, enumerate,
    divmod, reversed, sorted, isinstance, issubclass, type, round, any, all, getattr, hasattr, repr,
    pow, map, filter, frozenset, ord, chr, hash,
)  # fmt: skip


def _run_time(x: Value) -> bool:
    if isinstance(x, (V, Global, ExternData)):
        return True
    return isinstance(x, (list, tuple)) and any(_run_time(y) for y in x)


class Calls(Flow):
    def e_Call(self, node: ast.Call) -> Value:
        f = self.value(node.func)
        if isinstance(f, Intrinsic):
            take = self.expr if f.places else self.value
            args: list[Value] = []
            for each in node.args:
                if isinstance(each, ast.Starred):
                    args.extend(self.value(each.value))
                else:
                    args.append(take(each))
        else:
            args = self.elements(node.args)
        kw: dict[str, Value] = {}
        for word in node.keywords:
            if word.arg is None:
                kw.update(self.value(word.value))
            else:
                kw[word.arg] = self.value(word.value)
        return self.call(f, args, kw, node)

    def call(self, f: Value, args: list[Value], kw: dict[str, Value], node: Any) -> Value:
        """``f(*args, **kw)`` for anything that can be called in native code."""
        if isinstance(f, Ty):
            if len(args) > 1 or kw:
                self.fail(node, f"{f}(x) takes one value")
            return self.cast(f, args[0] if args else 0, node)
        if isinstance(f, Intrinsic):
            try:
                return f.emit(self, node, *args, **kw)
            except TypeError as err:
                if isinstance(err, NativeError) or err.__traceback__ is None:
                    raise
                if err.__traceback__.tb_next is None:  # the arguments did not fit
                    self.fail(node, str(err).replace("emit()", f"{f.name}()"))
                raise
        if isinstance(f, Native):
            if f.inline:
                return self.call_inline(f, args, kw, node)
            return self.call_native(f, args, kw, node)
        if isinstance(f, Spec):
            return self.call_native(f.native, args, {**f.static, **kw}, node)
        if isinstance(f, Extern):
            callee = self.symbol(f, node)
            assert callee is not None
            return self.emit_call(callee.ref, f.ret, f.args, args, node, f.name)
        if isinstance(f, V):
            if not f.ty.is_function:
                self.fail(node, f"a {f.ty} cannot be called")
            return self.emit_call(f.ref, f.ty.ret, f.ty.args, args, node, str(f.ty))
        return self._call_python(f, args, kw, node)

    def _call_python(self, f: Any, args: list[Value], kw: dict[str, Value], node: Any) -> Value:
        if not any(_run_time(x) for x in (*args, *kw.values())) or f in (
            len, tuple, list, zip, enumerate, reversed, isinstance,
        ):  # fmt: skip
            return self._at_compile_time(f, args, kw, node)
        if f in (min, max):
            items = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
            found = items[0]
            for each in items[1:]:
                found = self.minmax(f is min, found, each, node)
            return found
        if f is sum and isinstance(args[0], (list, tuple)):
            items = [*args[1:], *args[0]]
            found = items[0]
            for each in items[1:]:
                found = self.binary("add", found, each, node)
            return found
        if f is abs and len(args) == 1:
            return self.absolute(self.rt(args[0], node), node)
        if f in (int, float, bool):
            better = {int: "i64(x)", float: "f64(x)", bool: "x != 0"}[f]
            self.fail(node, f"write {better} to convert a run-time value")
        name = getattr(f, "__name__", repr(f))
        hint = "; mark it @inline" if isinstance(f, types.FunctionType) else ""
        self.fail(node, f"{name!r} cannot be called with run-time values{hint}")

    def _at_compile_time(self, f: Any, args: list[Value], kw: Env, node: Any) -> Value:
        if not _harmless(f):
            self.fail(node, f"{getattr(f, '__name__', f)!r} cannot be called in native code")
        try:
            found = f(*args, **kw)
        except NativeError:
            raise
        except Exception as err:
            self.fail(node, f"{type(err).__name__} at compile time: {err}")
        return Tile(found) if type(found) is list else found

    # ---- machine calls
    def emit_call(
        self, ref: str, ret: Ty, kinds: tuple[Ty, ...], args: list[Value], node: Any, name: str
    ) -> V | None:
        if len(args) != len(kinds):
            self.fail(node, f"{name} takes {len(kinds)} arguments, not {len(args)}")
        texts = [
            f"{t.ll} {t.attr}{self.rt(a, node, t).ref}" for t, a in zip(kinds, args, strict=True)
        ]
        text = f"call {ret.attr}{ret.ll} {ref}({', '.join(texts)})"
        if ret.kind == "void":
            self.do(text)
            return None
        return self.v(ret, text)

    def call_native(self, f: Native, args: list[Value], kw: Env, node: Any) -> V | None:
        """Calls a native function; its compile-time parameters are keywords."""
        args, kw = self._bind(f, args, kw, node)
        static = {k: kw[k] for k in f.statics if k in kw}
        for name, x in static.items():
            if _run_time(x):
                self.fail(node, f"{f.__name__}: {name!r} is a compile-time parameter; it is given "
                          f"a run-time {type_of(x)}")  # fmt: skip
            if isinstance(x, Tile):
                static[name] = tuple(x)
        spec = f.spec(**static)
        ret, params = spec.signature()
        kinds = tuple(t for _, t in params)
        return self.emit_call(f"@{self.module.symbol_of(spec)}", ret, kinds, args, node, f.__name__)

    def _bind(self, f: Native, args: list[Value], kw: Env, node: Any) -> tuple[list[Value], Env]:
        """Every parameter's value: the positional ones in order, and the compile-time ones."""
        names, kw = f.params, dict(kw)
        if len(args) > len(names):
            self.fail(node, f"{f.__name__} takes {len(names)} arguments, not {len(args)}")
        given = dict(zip(names, args, strict=False))
        for name in names:
            if name in kw:
                if name in given:
                    self.fail(node, f"{f.__name__}: {name!r} is given twice")
                given[name] = kw.pop(name)
        defaults = f.fn.__defaults__ or ()
        for name, x in zip(reversed(names), reversed(defaults), strict=False):
            given.setdefault(name, x)
        for name, x in (f.fn.__kwdefaults__ or {}).items():
            kw.setdefault(name, x)
        missing = [n for n in (*names, *f.statics) if n not in given and n not in kw]
        if missing:
            self.fail(node, f"{f.__name__} also needs {', '.join(missing)}")
        unknown = [n for n in kw if n not in f.statics]
        if unknown:
            self.fail(node, f"{f.__name__} has no parameter {unknown[0]!r}")
        return [given[n] for n in names], kw

    # ---- expansion
    inlined: list[tuple[list[Arm], str, tuple[str, ...]]]

    def call_inline(
        self, f: Native, args: list[Value], kw: Env | None = None, node: Any = None
    ) -> Value:
        """Expands a native function here, as if it were ``@inline``: gives what it returns.

        Arguments are values or compile-time objects. Lists are given by reference: what the
        function writes to them is seen here.
        """
        values, static = self._bind(f, list(args), kw or {}, node)
        if len(self.inlined) > 100:
            self.fail(node, f"{f.__name__} is expanded inside itself too often")
        env: Env = {**static, **dict(zip(f.params, values, strict=True))}
        for name in f.params:
            if name in f.fn.__annotations__:
                env[name] = self.rt(env[name], node, self._note(f, name, env, node))
        outer = self.native, self.env, self.loops, self.unset
        arms: list[Arm] = []
        end = self.label()
        tiles = {f".{k}": x for k, x in enumerate(_tiles(values))}
        self.native, self.env, self.loops, self.unset = f, {**env, **tiles}, [], {}
        self.inlined.append((arms, end, tuple(tiles)))
        try:
            self.body(f.source.tree.body)
        except NativeError as err:
            raise self._inlined_from(err, outer[0], node) from None
        finally:
            self.inlined.pop()
            ended, self.native, self.env, self.loops, self.unset = self.env, *outer
        if not self.dead:
            arms.append((self.block, {"return": None, **{k: ended[k] for k in tiles}}))
            self.jump(end)
        if not arms:
            self.dead = True
            return None
        if len(arms) == 1 and self.lines[-1] == f"  br label %{end}":
            self.lines.pop()  # the only way out is the one just written: the block goes on
            self.block, self.dead = arms[0][0], False
        else:
            self.start(end)
        return self._returned(f, arms, tiles, node)

    def _note(self, f: Native, name: str, env: Env, node: Any) -> Ty:
        try:
            return f.note(name, env)
        except NativeError as err:
            self.fail(node, str(err))

    def _inlined_from(self, err: NativeError, native: Native, node: Any) -> NativeError:
        path = native.fn.__code__.co_filename
        line = getattr(node, "lineno", native.fn.__code__.co_firstlineno)
        text = linecache.getline(path, line).strip()
        return type(err)(
            f'{err}\n  inlined from "{path}", line {line}, in {native.__name__}: {text}'
        )

    def _returned(self, f: Native, arms: list[Arm], tiles: Env, node: Any) -> Value:
        found = [env["return"] for _, env in arms]
        ty = next((x.ty for x in found if isinstance(x, V)), None)
        if (
            ty is None
            and len(arms) > 1
            and self.join([], found) is DIFFER
            and all(isinstance(x, (int, float)) for x in found)
        ):  # numbers that depend on the path are run-time values
            ty = self.rt(found[0], node).ty
        if ty is not None:
            for _, env in arms:
                if isinstance(env["return"], (bool, int, float)) or env["return"] is None:
                    if env["return"] is None and ty.kind != "p":
                        self.fail(node, f"{f.__name__} does not return a {ty} on every path")
                    env["return"] = self.rt(env["return"], node, ty)
        outer = self.env
        self.merge(arms)
        merged, self.env = self.env, outer
        if "return" not in merged:
            why = self.unset.pop("return", "differs")
            self.fail(node, f"what {f.__name__} returns {why}")
        for name, tile in tiles.items():
            self._write_back(tile, merged[name])
        return merged["return"]

    def _write_back(self, tile: Tile, new: Value) -> None:
        """A list that was given to an expanded function gets the values it has there."""
        for k, x in enumerate(new):
            if isinstance(x, Tile) and isinstance(tile[k], Tile) and x.ident is tile[k].ident:
                self._write_back(tile[k], x)
            else:
                tile[k] = x

    def body(self, statements: list[ast.stmt]) -> None:
        raise NotImplementedError


def _tiles(values: list[Value]) -> list[Tile]:
    found: list[Tile] = []
    for x in values:
        if isinstance(x, Tile):
            found.append(x)
        elif isinstance(x, tuple):
            found.extend(_tiles(list(x)))
    return found


def _harmless(f: Any) -> bool:
    """May it be called at compile time? Python functions, methods of values, classes, and builtins
    that only compute."""
    if isinstance(f, (types.FunctionType, types.MethodType)) or f in _PURE:
        return True
    if isinstance(f, types.BuiltinMethodType):
        home = f.__self__
        return not isinstance(home, types.ModuleType) or home in (math, _operator)
    return isinstance(f, type) and f.__module__ != "builtins"


def type_of(x: Value) -> str:
    return str(x.ty) if isinstance(x, V) else type(x).__name__


__all__ = ["Calls", "Lvalue"]
