"""A plugin of mypy: what the types of the kernel language are, written and not written.

The annotations of a native function are values (``i64`` is a ``Ty``), read by the language's own
compiler, which refuses a wrong type with file and line. To mypy they say how the same source runs
as plain Python (``lang/native/interpret``): a scalar is a number, ``void`` is None. A struct, a
class with ``@struct`` over it, is itself a ``Ty``.

A parameter without annotation has the type of what each call gives it. To mypy that is a ``Value``
(``lang/native/inferred.pyi``), as are pointers and vectors, which may be called, indexed, or have
the fields of their structs: what they may do is left to the compiler. Compile-time parameters, the
keyword-only ones and by custom those in capitals, hold any Python object. What an @inline function
returns is inferred as well; a @native one returns nothing unless it says so.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.nodes import CallExpr, Expression, FuncDef, MypyFile, RefExpr
from mypy.plugin import AnalyzeTypeContext, ClassDefContext, MethodContext, Plugin
from mypy.traverser import has_return_statement
from mypy.types import NoneType, Type, UnionType
from typed_functions import (
    annotate,
    anything,
    depends,
    functions,
    imports,
    is_open,
    name_of,
    type_in,
    written_types,
)

TYPES = "antorcha.lang.native.types."
INFERRED = "antorcha.lang.native.inferred"
STATIC = "antorcha.lang.native.intrinsics.static"
NUMBERS = {
    **dict.fromkeys(("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"), "builtins.int"),
    **dict.fromkeys(("f16", "bf16", "f32", "f64"), "builtins.float"),
    "bool_": "builtins.bool",
}
LEFT_TO_THE_COMPILER = ("ptr", "raw", "array", "func", "vec")


class NativeTypes(Plugin):
    def get_additional_deps(self, file: MypyFile) -> list[tuple[int, str, int]]:
        found = [_infer(func, decorators) for func, decorators in functions(file.defs)]
        if any(found):
            return imports(file, INFERRED)
        return depends(INFERRED) if file.fullname.startswith("antorcha.") else []

    def get_type_analyze_hook(self, fullname: str) -> Callable[[AnalyzeTypeContext], Type] | None:
        if fullname.startswith(TYPES):
            name = fullname.removeprefix(TYPES)
            if name in NUMBERS:
                return lambda context: context.api.named_type(NUMBERS[name], [])
            if name == "void":
                return lambda context: NoneType()
            if name in LEFT_TO_THE_COMPILER:
                return _value
        if fullname.startswith("antorcha.") and fullname.endswith("_t"):
            return _value  # a module's name for a type of functions: job_t = func[void, raw]
        return None

    def get_class_decorator_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        return _is_type if fullname == f"{TYPES}struct" else None

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        return _result if fullname == "antorcha.lang.native.values.Intrinsic.__call__" else None


def _infer(func: FuncDef, decorators: list[Expression]) -> bool:
    """Says what a function of the kernel language leaves open; False: it is none."""
    names = [name_of(each) for each in decorators]
    if "native" not in names and "inline" not in names:
        return False
    written = written_types(func)
    value = type_in(INFERRED, "Value")
    types = [
        each if not is_open(each) else anything() if static or name.isupper() else value
        for each, name, static in zip(
            written, map(str, func.arg_names), [kind.is_named() for kind in func.arg_kinds]
        )
    ]
    returns = "inline" in names and has_return_statement(func)
    annotate(func, types, value if returns else NoneType())
    return True


def _value(context: AnalyzeTypeContext) -> Type:
    return UnionType([context.api.named_type(f"{INFERRED}.NativeValue", []), anything()])


def _is_type(context: ClassDefContext) -> None:
    """What the name of the class holds has the attributes of ``Ty``."""
    context.cls.info.metaclass_type = context.api.named_type(f"{TYPES}Ty")


def _result(context: MethodContext) -> Type:
    """``static(x)`` is x."""
    callee = context.context.callee if isinstance(context.context, CallExpr) else None
    if isinstance(callee, RefExpr) and callee.fullname == STATIC and context.arg_types[0]:
        return context.arg_types[0][0]
    return context.default_return_type


def plugin(version: str) -> type[Plugin]:
    return NativeTypes
