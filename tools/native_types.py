"""A plugin of mypy: what the types of the kernel language are where annotations name them.

The annotations of a native function are values (``i64`` is a ``Ty``), read by the language's own
compiler, which refuses a wrong type with file and line. To mypy they say how the same source runs
as plain Python (``lang/native/interpret``): a scalar is a number, ``void`` is None. A pointer may
be null, called, indexed, or have the fields of its struct, and a vector takes part in arithmetic:
what they may do is left to the compiler. A struct, a class with ``@struct`` over it, is itself a
``Ty``.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.plugin import AnalyzeTypeContext, ClassDefContext, Plugin
from mypy.types import AnyType, NoneType, Type, TypeOfAny

TYPES = "antorcha.lang.native.types."
NUMBERS = {
    **dict.fromkeys(("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"), "builtins.int"),
    **dict.fromkeys(("f16", "bf16", "f32", "f64"), "builtins.float"),
    "bool_": "builtins.bool",
}
LEFT_TO_THE_COMPILER = ("ptr", "raw", "array", "func", "vec")


class NativeTypes(Plugin):
    def get_type_analyze_hook(self, fullname: str) -> Callable[[AnalyzeTypeContext], Type] | None:
        if fullname.startswith(TYPES):
            name = fullname.removeprefix(TYPES)
            if name in NUMBERS:
                return lambda context: context.api.named_type(NUMBERS[name], [])
            if name == "void":
                return lambda context: NoneType()
            if name in LEFT_TO_THE_COMPILER:
                return _any
        if fullname.startswith("antorcha.") and fullname.endswith("_t"):
            return _any  # a module's name for a type of functions: job_t = func[void, raw]
        return None

    def get_class_decorator_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        return _is_type if fullname == f"{TYPES}struct" else None


def _any(context: AnalyzeTypeContext) -> Type:
    return AnyType(TypeOfAny.explicit)


def _is_type(context: ClassDefContext) -> None:
    """What the name of the class holds has the attributes of ``Ty``."""
    context.cls.info.metaclass_type = context.api.named_type(f"{TYPES}Ty")


def plugin(version: str) -> type[Plugin]:
    return NativeTypes
