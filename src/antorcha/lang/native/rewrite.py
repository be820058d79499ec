"""Rewrites a native function's syntax tree into Python that runs on the interpreter's values.

Only what Python would do differently is replaced: operators, comparisons, tests, loads, stores,
calls, ranges and assignments become calls of the interpreter. Lines and names stay, so tracebacks
and debuggers show the source as written. Loaded only when something is interpreted.
"""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING, Any

from antorcha.lang.native.intrinsics import static
from antorcha.lang.native.lower.expressions import BINARY, COMPARE

if TYPE_CHECKING:
    from antorcha.lang.native.function import Native
    from antorcha.lang.native.interpret import NativeInterpreter

RT = "_native_rt"
_OTHER: dict[type, str] = {
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_UNARY = {ast.USub: "neg", ast.Invert: "invert", ast.Not: "not", ast.UAdd: "pos"}


def rewrite(f: Native, interpreter: NativeInterpreter) -> Any:
    """A Python function that does what `f` does."""
    tree = copy.deepcopy(f.source.tree)
    tree.decorator_list, tree.returns = [], None
    arguments = tree.args
    for arg in (*arguments.args, *arguments.kwonlyargs):
        arg.annotation = None
    arguments.defaults, arguments.kw_defaults = [], [None] * len(arguments.kwonlyargs)
    params = {arg.arg for arg in (*arguments.args, *arguments.kwonlyargs)}
    rewriter = _Rewriter(f)
    body = [s for each in tree.body for s in _listed(rewriter.visit(each))]
    names = [n for n in rewriter.names if n not in params]
    unset = ast.Attribute(ast.Name(RT, ast.Load()), "UNSET", ast.Load())
    prelude: list[ast.stmt] = []
    if names:
        targets: list[ast.expr] = [ast.Name(n, ast.Store()) for n in names]
        prelude.append(ast.copy_location(ast.Assign(targets, unset), tree.body[0]))
    tree.body = prelude + body
    outer = ast.parse(f"def outer({', '.join((RT, *f.cells))}):\n return {tree.name}")
    function: Any = outer.body[0]
    function.body.insert(0, tree)
    code = compile(ast.fix_missing_locations(outer), f.fn.__code__.co_filename, "exec")
    space: dict[str, Any] = {}
    exec(code, f.fn.__globals__, space)
    cells = []
    for cell in f.cells.values():
        try:
            cells.append(cell.cell_contents)
        except ValueError:
            cells.append(interpreter.UNSET)
    return space["outer"](interpreter, *cells)


def _listed(x: Any) -> list[Any]:
    return x if isinstance(x, list) else [x]


class _Rewriter(ast.NodeTransformer):
    def __init__(self, native: Native) -> None:
        self.native = native
        self.names: dict[str, None] = {}  # set by assignments and loops
        self.bound: list[set[str]] = []  # by comprehensions around
        self.count = 0

    def _rt(self, node: ast.AST, method: str, *args: ast.expr, keywords: Any = ()) -> ast.Call:
        f = ast.Attribute(ast.Name(RT, ast.Load()), method, ast.Load())
        return ast.copy_location(ast.Call(f, list(args), list(keywords)), node)

    def _const(self, value: Any) -> ast.expr:
        return ast.Constant(value)

    def _is_static(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Attribute):
            return node.func.attr == "static"
        try:
            return isinstance(node.func, ast.Name) and self.native.lookup(node.func.id) is static
        except (KeyError, ValueError):
            return False

    # ---- expressions
    def visit_BinOp(self, node: ast.BinOp) -> Any:
        op = self._const(BINARY[type(node.op)])
        return self._rt(node, "binary", op, self.visit(node.left), self.visit(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.operand, ast.Constant):
            return node
        return self._rt(node, "unary", self._const(_UNARY[type(node.op)]), self.visit(node.operand))

    def visit_Compare(self, node: ast.Compare) -> Any:
        words = tuple(COMPARE.get(type(op)) or _OTHER[type(op)] for op in node.ops)
        values = [self.visit(x) for x in (node.left, *node.comparators)]
        return self._rt(node, "compare", self._const(words), ast.List(values, ast.Load()))

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        node.values = [self._rt(x, "test", self.visit(x)) for x in node.values]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        self.generic_visit(node)
        node.test = self._rt(node.test, "test", node.test)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        return self._rt(node, "attr", self.visit(node.value), self._const(node.attr))

    def _index(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Slice):
            parts = [self.visit(x) if x else self._const(None) for x in
                     (node.lower, node.upper, node.step)]  # fmt: skip
            return ast.Call(ast.Name("slice", ast.Load()), parts, [])
        return self.visit(node)  # type: ignore[no-any-return]

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        return self._rt(node, "item", self.visit(node.value), self._index(node.slice))

    def visit_Call(self, node: ast.Call) -> Any:
        if self._is_static(node) and len(node.args) == 1:
            return self.visit(node.args[0])
        f = self.visit(node.func)
        if len(node.args) == 1 and not node.keywords:
            arg = node.args[0]
            if isinstance(arg, ast.Attribute):
                return self._rt(node, "call_place", f, self.visit(arg.value),
                                self._const(arg.attr), self._const(True))  # fmt: skip
            if isinstance(arg, ast.Subscript):
                return self._rt(node, "call_place", f, self.visit(arg.value),
                                self._index(arg.slice), self._const(False))  # fmt: skip
        args = [self.visit(x) for x in node.args]
        keywords = [ast.keyword(k.arg, self.visit(k.value)) for k in node.keywords]
        return self._rt(node, "call", f, *args, keywords=keywords)

    # ---- statements
    def _set(self, target: ast.expr, value: ast.expr, keep: bool, weak: bool) -> list[ast.stmt]:
        """Statements that give a target a value."""
        at = target
        result: ast.stmt
        if isinstance(target, ast.Name):
            self.names[target.id] = None
            held = self._rt(at, "hold", value, ast.Name(target.id, ast.Load()), self._const(keep),
                            self._const(weak))  # fmt: skip
            result = ast.Assign([ast.Name(target.id, ast.Store())], held)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.count += 1
            items = f"_native_items{self.count}"
            unpacked = self._rt(at, "unpack", value, self._const(len(target.elts)))
            result = ast.copy_location(ast.Assign([ast.Name(items, ast.Store())], unpacked), at)
            found: list[ast.stmt] = [result]
            for k, each in enumerate(target.elts):
                part = ast.Subscript(ast.Name(items, ast.Load()), self._const(k), ast.Load())
                found += self._set(each, part, keep, weak)
            return found
        elif isinstance(target, ast.Attribute):
            result = ast.Expr(self._rt(at, "set_attr", self.visit(target.value),
                                     self._const(target.attr), value))  # fmt: skip
        else:
            assert isinstance(target, ast.Subscript)
            result = ast.Expr(self._rt(at, "set_item", self.visit(target.value),
                                     self._index(target.slice), value))  # fmt: skip
        return [ast.copy_location(result, at)]

    def visit_Assign(self, node: ast.Assign) -> Any:
        keep = self._is_static(node.value)
        weak = any(isinstance(n, (ast.Call, ast.IfExp)) for n in ast.walk(node.value))
        value = self.visit(node.value)
        if len(node.targets) == 1 and not isinstance(
            node.targets[0], (ast.Attribute, ast.Subscript)
        ):
            return self._set(node.targets[0], value, keep, weak)
        self.count += 1
        name = f"_native_value{self.count}"
        found: list[ast.stmt] = [
            ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), node)
        ]
        for target in node.targets:
            found += self._set(target, ast.Name(name, ast.Load()), keep, weak)
        return found

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        op, target = self._const(BINARY[type(node.op)]), node.target
        if isinstance(target, ast.Name):
            now = self._rt(node, "binary", op, ast.Name(target.id, ast.Load()),
                           self.visit(node.value))  # fmt: skip
            return self._set(target, now, False, False)
        self.count += 1
        base, key = f"_native_base{self.count}", f"_native_key{self.count}"
        is_field = isinstance(target, ast.Attribute)
        index = (
            self._const(target.attr)
            if isinstance(target, ast.Attribute)
            else self._index(target.slice)
        )
        holds = ast.Assign(
            [ast.Tuple([ast.Name(base, ast.Store()), ast.Name(key, ast.Store())], ast.Store())],
            ast.Tuple([self.visit(target.value), index], ast.Load()),
        )
        spot = (ast.Name(base, ast.Load()), ast.Name(key, ast.Load()))
        now = self._rt(node, "attr" if is_field else "item", *spot)
        total = self._rt(node, "binary", op, now, self.visit(node.value))
        write = ast.Expr(self._rt(node, "set_attr" if is_field else "set_item", *spot, total))
        return [ast.copy_location(holds, node), ast.copy_location(write, node)]

    def visit_If(self, node: ast.If) -> Any:
        node.test = self._rt(node.test, "test", self.visit(node.test))
        node.body = [s for each in node.body for s in _listed(self.visit(each))]
        node.orelse = [s for each in node.orelse for s in _listed(self.visit(each))]
        return node

    def visit_While(self, node: ast.While) -> Any:
        return self.visit_If(node)  # type: ignore[arg-type]

    def visit_For(self, node: ast.For) -> Any:
        names = [n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)]
        self.names.update(dict.fromkeys(names))
        unrolled = self._is_static(node.iter)
        if unrolled or not isinstance(node.iter, ast.Call):
            node.iter = ast.copy_location(
                ast.Call(ast.Name("list", ast.Load()), [self.visit(node.iter)], []), node.iter
            )
        else:
            node.iter = self._rt(node.iter, "range", *[self.visit(x) for x in node.iter.args])
        node.body = [s for each in node.body for s in _listed(self.visit(each))]
        if unrolled:
            return node
        unset = ast.Attribute(ast.Name(RT, ast.Load()), "UNSET", ast.Load())
        gone = ast.Assign([ast.Name(n, ast.Store()) for n in names], unset)
        return [node, ast.copy_location(gone, node)]
