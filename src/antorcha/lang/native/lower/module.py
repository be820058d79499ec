"""One LLVM module: the function asked for, and copies of the native functions that it calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antorcha.core.lazy import lazy
from antorcha.lang.native.engine import Lowered
from antorcha.lang.native.lower.statements import Statements
from antorcha.lang.native.machine import Target
from antorcha.lang.native.types import Ty
from antorcha.lang.native.values import V

native_grid = lazy("antorcha.lang.native.lower.grid")

if TYPE_CHECKING:
    import ast

    from antorcha.lang.native.function import Spec
    from antorcha.lang.native.lower.assigned_names import Changes


class LoweredModule:
    """Declarations and functions as text, and the exported functions that are linked to."""

    def __init__(self, to: Target) -> None:
        self.target = to
        self.declarations: dict[str, str] = {}
        self.functions: list[str] = []
        self.copies: dict[Spec, str] = {}
        self.exports: dict[str, Spec] = {}
        self.changes: dict[tuple[ast.AST, ...], Changes] = {}  # of loops, by their statements
        self.root: Spec | None = None
        self.level = ""  # what the passes must be, if anything

    def declare(self, name: str, text: str) -> None:
        self.declarations.setdefault(name, text)

    def symbol_of(self, spec: Spec) -> str:
        """The name, in this module, of a function that is called and not expanded."""
        if spec is self.root:
            return spec.symbol
        if spec.native.options.export:
            name = spec.symbol
            ret, params = spec.signature()
            args = ", ".join(f"{t.ll} {t.attr}".rstrip() for _, t in params)
            self.declare(name, f"declare {ret.attr}{ret.ll} @{name}({args})")
            self.exports[name] = spec
            return name
        name = self.copies.get(spec, "")
        if not name:
            name = self.copies[spec] = f"{spec.native.__name__}.{len(self.copies)}"
            self.add(spec, name)
        return name

    def add(self, spec: Spec, name: str) -> None:
        """Lowers a function into this module."""
        place = len(self.functions)
        self.functions.append("")
        ret, params = spec.signature()
        options = spec.native.options
        body = Statements(self, spec.native, ret)
        body.on_grid = spec is self.root and bool(self.target.grid)
        body.env = {**spec.static, **{p: V(t, f"%{p}.in") for p, t in params}}
        body.function_body()
        texts = []
        for p, t in params:
            alias = "noalias " if options.noalias and t.kind == "p" else ""
            texts.append(f"{t.ll} {t.attr}{alias}%{p}.in")  # (no label, no alloca)
        self.functions[place] = self.definition(spec, name, texts, body)

    def definition(self, spec: Spec, name: str, params: list[str], body: Statements) -> str:
        """The text of a function whose body has been lowered."""
        linkage = "" if spec is self.root else "internal "
        attributes = 1 if spec.native.options.noinline else 0
        ret = body.ret
        return "\n".join([
            f"define {linkage}{ret.attr}{ret.ll} @{name}({', '.join(params)}) #{attributes} {{",
            "entry:", *body.allocas, *body.text(), "}",
        ])  # fmt: skip

    def ir(self) -> str:
        width = f'"prefer-vector-width"="{self.target.vector_bits}" "min-legal-vector-width"="0"'
        return "\n".join([
            *self.declarations.values(), *self.functions,
            f"attributes #0 = {{ nounwind {width} }}",
            f"attributes #1 = {{ nounwind noinline {width} }}",
            "!0 = !{i32 1}", "",
        ])  # fmt: skip


def lower(spec: Spec) -> Lowered:
    """The IR of a spec, and the exported functions it links to."""
    kind = LoweredModule if not spec.target.grid else native_grid.MODULES[spec.target.grid]
    module = kind(spec.target)
    module.root = spec
    module.add(spec, spec.symbol)
    return Lowered(module.ir(), module.exports, module.level)


__all__ = ["LoweredModule", "Ty", "lower"]
