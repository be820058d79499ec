"""Expressions: names, constants, fields, elements, operators, comparisons, conditions.

``expr`` may give an Lvalue (a field or an element, not yet loaded); ``value`` never does.
"""

from __future__ import annotations

import ast
import operator
from typing import Any

from antorcha.errors import did_you_mean
from antorcha.lang.native.lower.arithmetic import Arithmetic
from antorcha.lang.native.lower.emitter import Tile, Value
from antorcha.lang.native.types import bool_, i64, ptr
from antorcha.lang.native.values import ExternData, Global, Lvalue, V

BINARY: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv",
    ast.Mod: "mod", ast.LShift: "shl", ast.RShift: "shr", ast.BitAnd: "and", ast.BitOr: "or",
    ast.BitXor: "xor", ast.Pow: "pow", ast.MatMult: "matmul",
}  # fmt: skip
COMPARE: dict[type, str] = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip
_UNARY: dict[type, Any] = {
    ast.USub: operator.neg, ast.Not: operator.not_, ast.Invert: operator.invert,
    ast.UAdd: operator.pos,
}  # fmt: skip


class Expressions(Arithmetic):
    def expr(self, node: ast.expr) -> Value:
        method = getattr(self, "e_" + type(node).__name__, None)
        if method is None:
            self.fail(node, f"{type(node).__name__} is not part of the native language")
        return method(node)

    def value(self, node: ast.expr) -> Value:
        found = self.expr(node)
        return self.load_place(found) if isinstance(found, Lvalue) else found

    def condition(self, node: ast.expr) -> Value:
        """A bool at run time, or anything at compile time."""
        found = self.value(node)
        if isinstance(found, V) and found.ty is not bool_:
            hint = "compare it" if found.ty.kind != "v" else "a mask goes to select or a reduction"
            self.fail(node, f"a condition must be a bool, not {found.ty}; {hint}")
        return found

    def e_Constant(self, node: ast.Constant) -> Value:
        return node.value

    def e_Tuple(self, node: ast.Tuple) -> Value:
        return tuple(self.elements(node.elts))

    def e_List(self, node: ast.List) -> Value:
        return Tile(self.elements(node.elts))

    def e_Dict(self, node: ast.Dict) -> Value:
        if None in node.keys:
            self.fail(node, "** is not part of the native language")
        return {
            self.value(k): self.value(v) for k, v in zip(node.keys, node.values, strict=True) if k
        }

    def e_JoinedStr(self, node: ast.JoinedStr) -> Value:
        parts = [
            self.value(p.value if isinstance(p, ast.FormattedValue) else p) for p in node.values
        ]
        return "".join(str(p) for p in parts)

    def elements(self, nodes: list[ast.expr]) -> list[Value]:
        """Values of a list of expressions, ``*sequence`` spread out."""
        found: list[Value] = []
        for each in nodes:
            if isinstance(each, ast.Starred):
                found.extend(self.value(each.value))
            else:
                found.append(self.value(each))
        return found

    def e_Name(self, node: ast.Name) -> Value:
        name = node.id
        if name in self.env:
            return self.env[name]
        if name in self.native.fn.__code__.co_varnames or name in self.unset:
            self.fail(node, f"{name!r} {self.unset.get(name, 'is used before it is set')}")
        try:
            found = self.native.lookup(name)
        except KeyError:
            near = did_you_mean(name, [*self.env, *self.native.fn.__globals__])
            self.fail(
                node, f"{name!r} is not defined.{near}" if near else f"{name!r} is not defined"
            )
        except ValueError:
            self.fail(node, f"{name!r} has no value yet")
        return Tile(found) if type(found) is list else found

    def e_ListComp(self, node: ast.ListComp) -> Value:
        found: list[Value] = []
        bound = [
            n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)
        ]
        kept = {name: self.env[name] for name in bound if name in self.env}
        self._comprehend(node, 0, found)
        for name in bound:
            self.env.pop(name, None)
        self.env.update(kept)
        return Tile(found)

    def e_GeneratorExp(self, node: Any) -> Value:
        return self.e_ListComp(node)

    def _comprehend(self, node: ast.ListComp, depth: int, found: list[Value]) -> None:
        if depth == len(node.generators):
            found.append(self.value(node.elt))
            return
        generator = node.generators[depth]
        for item in self.compile_time(generator.iter, "a comprehension goes over"):
            self.assign(generator.target, item, node, keep=True)
            tests = [self.value(test) for test in generator.ifs]
            if any(isinstance(test, V) for test in tests):
                self.fail(node, "a comprehension's `if` is decided at compile time")
            if all(tests):
                self._comprehend(node, depth + 1, found)

    def compile_time(self, node: ast.expr, what: str) -> Value:
        """The value of an expression that must be a compile-time sequence."""
        found = self.value(node)
        if isinstance(found, V) or not hasattr(found, "__iter__"):
            kind = found.ty if isinstance(found, V) else type(found).__name__
            self.fail(node, f"{what} a compile-time sequence, not a {kind}")
        return found

    def assign(self, target: ast.expr, x: Value, node: Any, keep: bool = False) -> None:
        raise NotImplementedError

    # ---- memory
    def e_Attribute(self, node: ast.Attribute) -> Value:
        base = self.value(node.value)
        if isinstance(base, (V, Global, ExternData)):
            return self.field(base, node)
        try:
            return getattr(base, node.attr)
        except AttributeError as err:
            self.fail(node, str(err))

    def field(self, base: Value, node: ast.Attribute) -> Lvalue:
        """The field of a struct, given a pointer to it."""
        base = self.rt(base, node)
        struct = base.ty.elem if base.ty.kind == "p" else None
        if struct is None or node.attr not in struct.fields:
            known = ", ".join(struct.fields) if struct is not None and struct.fields else "none"
            self.fail(node, f"{base.ty} has no field {node.attr!r} (its fields: {known})")
        offset, ty = struct.fields[node.attr]
        if offset == 0:
            return Lvalue(ty, base.ref)
        return Lvalue(ty, self.op(f"getelementptr inbounds i8, ptr {base.ref}, i64 {offset}"))

    def e_Subscript(self, node: ast.Subscript) -> Value:
        base = self.value(node.value)
        if isinstance(base, (V, Global, ExternData)):
            base = self.rt(base, node)
            if isinstance(node.slice, ast.Slice):
                self.fail(node, "memory and vectors take one index, not a slice")
            index = self.value(node.slice)
            if base.ty.kind == "v":
                return self.lane(base, index, node)
            return self.element(base, index, node)
        index = self.index(node.slice)
        if isinstance(index, V):
            self.fail(node, "a compile-time sequence takes a compile-time index; use local(T, n) "
                      "for any other")  # fmt: skip
        try:
            found = base[index]
        except (LookupError, TypeError) as err:
            self.fail(node, f"{type(err).__name__}: {err}")
        return Tile(found) if type(found) is list else found

    def index(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Slice):
            return slice(
                *(self.value(x) if x else None for x in (node.lower, node.upper, node.step))
            )
        return self.value(node)

    def lane(self, base: V, index: Value, node: Any) -> V:
        if isinstance(index, int) and not -base.ty.n <= index < base.ty.n:
            self.fail(node, f"lane {index} of a {base.ty}")
        if isinstance(index, int):
            index %= base.ty.n
        index = self.rt(index, node)
        if index.ty.kind not in "iu":
            self.fail(node, f"a lane is an integer, not {index.ty}")
        return self.v(
            base.ty.elem, f"extractelement {base.ty.ll} {base.ref}, {index.ty.ll} {index.ref}"
        )

    def element(self, base: V, index: Value, node: Any) -> Value:
        if base.ty.kind != "p":
            self.fail(node, f"a {base.ty} cannot be indexed")
        at = self.gep(base, index, node)
        elem = base.ty.elem
        if elem.kind in "sa":
            return V(ptr[elem] if elem.kind == "s" else ptr[elem.elem], at.ref)
        return Lvalue(elem, at.ref)

    def place(self, node: ast.Attribute | ast.Subscript) -> Lvalue | tuple[Tile, Any]:
        """What is assigned to: a spot in memory, or a compile-time list and an index in it."""
        base = self.value(node.value)
        if isinstance(node, ast.Attribute):
            if not isinstance(base, (V, Global, ExternData)):
                self.fail(node, f"a field of {base!r} cannot be set")
            return self._settable(self.field(base, node), node)
        if isinstance(base, list):
            index = self.index(node.slice)
            if isinstance(index, V):
                self.fail(node, "a list of values needs a compile-time index; use local(T, n) for "
                          "an array in memory")  # fmt: skip
            if not isinstance(index, int) or not -len(base) <= index < len(base):
                self.fail(node, f"index {index} of a list of {len(base)}")
            return base, index  # type: ignore[return-value]
        if isinstance(base, V) and base.ty.kind == "v":
            self.fail(node, "a vector's lanes cannot be set; use insert(v, i, x)")
        if not isinstance(base, (V, Global, ExternData)):
            self.fail(node, f"an item of a {type(base).__name__} cannot be set")
        at = self.element(self.rt(base, node), self.index(node.slice), node)
        return self._settable(at, node)

    def _settable(self, at: V, node: Any) -> Lvalue:
        if not isinstance(at, Lvalue) or at.ty.kind in "sa":
            self.fail(node, f"a whole {at.ty} cannot be assigned; set its parts, or memcpy")
        return at

    # ---- operators
    def e_UnaryOp(self, node: ast.UnaryOp) -> Value:
        x = self.value(node.operand)
        kind = type(node.op)
        if not isinstance(x, V):
            return _UNARY[kind](x)
        if kind is ast.USub:
            return self.negate(x, node)
        if kind is ast.UAdd:
            return x
        if kind is ast.Not and x.ty is not bool_:
            self.fail(node, f"not takes a bool, not {x.ty}")
        return self.invert(x, node)

    def e_BinOp(self, node: ast.BinOp) -> Value:
        op = BINARY[type(node.op)]
        if op == "matmul":
            self.fail(node, "@ is not part of the native language")
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(left, Tile) or isinstance(right, Tile):
            if isinstance(left, V) or isinstance(right, V):
                self.fail(node, "a list of values does not take part in arithmetic as a whole")
            found = [x for x in (left, right) if isinstance(x, int)]
            if op == "mul" and found:
                return Tile(list(left if isinstance(left, Tile) else right) * found[0])
            if op == "add" and isinstance(left, list) and isinstance(right, list):
                return Tile(list(left) + list(right))
        return self.binary(op, left, right, node)

    def e_Compare(self, node: ast.Compare) -> Value:
        result: Value = None
        left = self.value(node.left)
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.value(right_node)
            each = self._compare_one(op, left, right, node)
            result = each if result is None else self.both(result, each)
            left = right
        return result

    def both(self, a: Value, b: Value) -> Value:
        if isinstance(a, V) and isinstance(b, V):
            return self.v(a.ty, f"and {a.ty.ll} {a.ref}, {b.ref}")
        if isinstance(a, V):
            a, b = b, a
        return b if a else False

    def _compare_one(self, op: ast.cmpop, a: Value, b: Value, node: Any) -> Value:
        if type(op) in COMPARE:
            return self.compare(COMPARE[type(op)], a, b, node)
        if isinstance(op, (ast.Is, ast.IsNot)):
            a, b = self.loaded(a, node), self.loaded(b, node)
            for x, y in ((a, b), (b, a)):
                if isinstance(x, V) and y is None and x.ty.kind == "p":
                    return self.compare("eq" if isinstance(op, ast.Is) else "ne", x, None, node)
            if isinstance(a, V) and isinstance(b, V):
                self.fail(node, "`is` compares with None, or compile-time values; write ==")
            # a run-time value is never the same thing as a compile-time one (None, a type)
            return (a is b) == isinstance(op, ast.Is)
        if isinstance(a, V) or (isinstance(b, (list, tuple)) and any(isinstance(x, V) for x in b)):
            self.fail(node, "`in` is decided at compile time; compare with ==")
        return (a in b) == isinstance(op, ast.In)

    # ---- conditions with short cuts; the arms are expressions, joined by the flow layer
    def e_BoolOp(self, node: ast.BoolOp) -> Value:
        return self.short_circuit(node.values, isinstance(node.op, ast.Or))

    def short_circuit(self, nodes: list[ast.expr], stop: bool) -> Value:
        raise NotImplementedError


__all__ = ["BINARY", "COMPARE", "Expressions", "i64"]
