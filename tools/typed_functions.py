"""What our plugins of mypy share: types are put into functions' definitions before mypy reads them.

``get_additional_deps`` is the one hook that sees a file's syntax tree before its analysis. mypy
calls it for the files that it parses at the start, and not for those that it parses again because
something that they import has changed: hence ``incremental = false`` in pyproject.toml. (Nor does
it show the tree to plugins with ``--num-workers``.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mypy.build import PRI_MYPY
from mypy.fastparse import _dummy_fallback
from mypy.nodes import (
    Block,
    CallExpr,
    ClassDef,
    Decorator,
    Expression,
    ForStmt,
    FuncDef,
    IfStmt,
    Import,
    MypyFile,
    NameExpr,
    Statement,
)
from mypy.types import AnyType, CallableType, Type, TypeOfAny, UnboundType


def functions(body: Sequence[Statement]) -> Iterator[tuple[FuncDef, list[Expression]]]:
    """The functions, wherever they are defined, and their decorators, the outer ones first."""
    for node in body:
        if isinstance(node, Decorator):
            yield node.func, node.decorators
            yield from functions(node.func.body.body)
        elif isinstance(node, FuncDef):
            yield node, []
            yield from functions(node.body.body)
        else:
            for block in _blocks(node):
                yield from functions(block.body)


def _blocks(node: Statement) -> list[Block]:
    if isinstance(node, ClassDef):
        return [node.defs]
    if isinstance(node, ForStmt):
        return [node.body]
    if isinstance(node, IfStmt):
        return [*node.body, *([node.else_body] if node.else_body else [])]
    return []


def called(decorator: Expression) -> Expression:
    """A decorator without the arguments that it is given."""
    return decorator.callee if isinstance(decorator, CallExpr) else decorator


def name_of(decorator: Expression) -> str:
    """A decorator's name; "" where it is something's attribute."""
    plain = called(decorator)
    return plain.name if isinstance(plain, NameExpr) else ""


def imports(file: MypyFile, module: str) -> list[tuple[int, str, int]]:
    """Has the file import a module, under a name that no source can have: see ``type_in``."""
    node = Import([(module, _alias(module))])
    node.is_top_level = True
    file.defs.insert(0, node)
    return depends(module)


def depends(module: str) -> list[tuple[int, str, int]]:
    """What ``get_additional_deps`` says of a module that a file needs."""
    return [(PRI_MYPY, module, -1)]  # as if it were imported for type checkers only; of no line


def type_in(module: str, name: str, of: Sequence[Type] = ()) -> UnboundType:
    """A type by its name in a module that the file imports; ``of``: its arguments."""
    return UnboundType(f"{_alias(module)}.{name}", list(of))


def _alias(module: str) -> str:
    return "@" + module.rpartition(".")[2]


def anything() -> AnyType:
    """Any, as if it were written."""
    return AnyType(TypeOfAny.explicit)


def written_types(func: FuncDef) -> list[Type]:
    """What is written of the parameters."""
    if isinstance(func.type, CallableType):
        return list(func.type.arg_types)
    return [_unwritten() for _ in func.arguments]


def is_open(annotation: Type) -> bool:
    """Is nothing written?"""
    return isinstance(annotation, AnyType) and annotation.type_of_any == TypeOfAny.unannotated


def annotate(func: FuncDef, parameters: Sequence[Type], result: Type | None = None) -> None:
    """Gives the parameters these types, and the result this one if nothing is written about it."""
    old = func.type.ret_type if isinstance(func.type, CallableType) else _unwritten()
    func.type = CallableType(
        list(parameters), func.arg_kinds, func.arg_names,
        result if result is not None and is_open(old) else old, _dummy_fallback,
    )  # fmt: skip
    func.type.definition = func
    func.type.set_line(func.line)
    func.unanalyzed_type = func.type.copy_modified()  # analysis changes the other one in place


def _unwritten() -> AnyType:
    return AnyType(TypeOfAny.unannotated)
