"""Exact descriptions: the text that a compiled function's name on disk is hashed from.

Two programs that could compile differently must never get the same description. A function is
described by its bytecode, constants, names, defaults and annotations, and by every value its names
stand for, other functions included. A value with no exact description is refused. Describing never
parses source and never loads the compiler.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import os
import sys
import types
from collections.abc import Iterable, Iterator
from opcode import opmap
from typing import TYPE_CHECKING, Any

import numpy as np

from antorcha.core.lazy import lazy
from antorcha.errors import NativeError

if TYPE_CHECKING:
    from antorcha.lang.native.function import Native

native_function = lazy("antorcha.lang.native.function")

PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LOADS_GLOBAL = {opmap[n] for n in ("LOAD_GLOBAL", "LOAD_NAME") if n in opmap}
_LOADS_ATTR = {opmap[n] for n in ("LOAD_ATTR", "LOAD_METHOD") if n in opmap}
_EXTENDED, _CACHE = opmap["EXTENDED_ARG"], opmap.get("CACHE", 0)
_ATTR_SHIFT = 1 if sys.version_info >= (3, 12) else 0  # there the low bit of LOAD_ATTR is a flag
_file_hashes: dict[str, str] = {}


class NoDescription(NativeError):
    """A compile-time value of which no exact description exists."""


def digest_of(text: str | bytes, size: int = 16) -> str:
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return hashlib.blake2b(data, digest_size=size).hexdigest()


def file_hash(path: str) -> str:
    """Hash of a file's contents, read once in a process."""
    found = _file_hashes.get(path)
    if found is None:
        try:
            with open(path, "rb") as file:
                found = digest_of(file.read())
        except OSError:
            raise NoDescription(
                f"{path} cannot be read, so what it compiles to is unknown"
            ) from None
        _file_hashes[path] = found
    return found


def module_file(module: types.ModuleType) -> str:
    if not module.__file__:
        raise NoDescription(f"module {module.__name__} has no file")
    return module.__file__


def compiler_hash() -> str:
    """Hash of the compiler's own sources: an edited compiler never meets an older one's output."""
    names = []
    for folder in (PACKAGE, os.path.join(PACKAGE, "lower")):
        names += [os.path.join(folder, n) for n in os.listdir(folder) if n.endswith(".py")]
    return digest_of("".join(map(file_hash, sorted(names))))


# ---- values
def describe(value: Any, used: dict[Native, None]) -> str:
    """The exact description of a compile-time value; native functions in it are added to `used`."""
    own = getattr(type(value), "__native_key__", None)
    if own is not None:
        return str(own(value))
    if value is None or isinstance(value, (bool, str, bytes, types.EllipsisType, complex)):
        return repr(value)
    kind = type(value)
    if kind in (int, float, range, slice):
        return repr(value)
    if isinstance(value, enum.Enum):
        return f"{kind.__module__}.{kind.__qualname__}.{value.name}={value.value!r}"
    if isinstance(value, (tuple, list)):
        inner = ",".join([describe(x, used) for x in value])
        return f"{kind.__name__}({inner})"
    if isinstance(value, dict):
        pairs = [f"{describe(k, used)}:{describe(x, used)}" for k, x in value.items()]
        return f"{{{','.join(pairs)}}}"
    if isinstance(value, (set, frozenset)):
        return f"{kind.__name__}({','.join(sorted(describe(x, used) for x in value))})"
    return _describe_object(value, used)


def _describe_object(value: Any, used: dict[Native, None]) -> str:
    if isinstance(value, native_function.Native):
        return _mention("native", value, used)
    if isinstance(value, types.FunctionType):
        if value.__name__ == "<lambda>":
            raise NoDescription("a lambda; write it as a function with def, marked @inline")
        return _mention("function", native_function.Native.helper(value), used)
    if isinstance(value, np.generic):
        return f"{value.dtype.str}:{value.tobytes().hex()}"
    if isinstance(value, np.dtype):
        return f"dtype {value.str}"
    if isinstance(value, (types.BuiltinFunctionType, np.ufunc)):
        return f"builtin {getattr(value, '__module__', '')}.{value.__name__}"
    if isinstance(value, type):
        return f"class {value.__module__}.{value.__qualname__}"
    kind = type(value)
    what = "a module used as a value" if kind is types.ModuleType else f"a {kind.__qualname__}"
    raise NoDescription(
        f"{what}; use numbers, strings, types, tuples of them, native functions, or give "
        "its class a __native_key__() that says everything it contributes"
    )


def _mention(kind: str, native: Native, used: dict[Native, None]) -> str:
    """Which of the functions used it is: two of them may share one qualified name."""
    used.setdefault(native)
    return f"{kind} {native.fn.__qualname__} #{list(used).index(native)}"


# ---- functions
def code_key(code: types.CodeType) -> str:
    """Everything a code object says, but for where its lines stand."""
    consts = [
        code_key(k) if isinstance(k, types.CodeType) else f"{type(k).__name__}:{k!r}"
        for k in code.co_consts
    ]
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return f"{code.co_code.hex()}{counts}{names}[{'|'.join(consts)}]"


def dotted_names(code: types.CodeType) -> Iterator[tuple[str, ...]]:
    """Global names that the code loads, each with the attributes read from it at once."""
    ops, wide = code.co_code, 0
    path: list[str] = []
    for op, low in zip(ops[::2], ops[1::2], strict=True):
        if op == _CACHE:
            continue
        arg = low | wide
        wide = arg << 8 if op == _EXTENDED else 0
        if op == _EXTENDED:
            continue
        if op in _LOADS_ATTR and path:
            shift = _ATTR_SHIFT if opmap["LOAD_ATTR"] == op else 0
            path.append(code.co_names[arg >> shift])
            continue
        if path:
            yield tuple(path)
            path = []
        if op in _LOADS_GLOBAL:
            path = [code.co_names[arg >> 1 if opmap["LOAD_GLOBAL"] == op else arg]]
    if path:
        yield tuple(path)
    for name in code.co_freevars:
        yield (name,)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from dotted_names(inner)


def _is_added(name: str) -> bool:
    """Was a call with that name added to the program by the lab? It is no part of what it says."""
    return name.startswith("__antorcha_")


@functools.cache
def annotation_names(note: str) -> tuple[tuple[str, ...], ...]:
    """The names in an annotation's text, of which few are met again and again."""
    return tuple(dotted_names(compile(note, "<annotation>", "eval")))


class FunctionDigest:
    """One function's part of a description, remembered while its names mean what they meant."""

    def __init__(self, native: Native) -> None:
        fn = native.fn
        self.native = native
        paths = {path: None for path in dotted_names(fn.__code__) if not _is_added(path[0])}
        notes = fn.__annotations__
        for note in [note for note in notes.values() if isinstance(note, str)]:
            paths.update(dict.fromkeys(annotation_names(note)))
        self.paths = list(paths)
        self.fixed = [
            f"{fn.__module__}.{fn.__qualname__}", repr(native.options), code_key(fn.__code__),
        ]  # fmt: skip
        used: dict[Native, None] = {}
        for name, note in notes.items():
            self.fixed.append(f"{name}:{note if isinstance(note, str) else describe(note, used)}")
        for name, value in self._defaults():
            self.fixed.append(f"{name}={self._described(name, value, used)}")
        self.fixed_uses = used
        self.profiled: list[tuple[dict[str, Any], str, Any]] | None = None
        self.key = ""
        self.uses: dict[Native, None] = {}

    def _defaults(self) -> Iterator[tuple[str, Any]]:
        for k, value in enumerate(self.native.fn.__defaults__ or ()):
            yield f"default {k}", value
        yield from sorted((self.native.fn.__kwdefaults__ or {}).items())

    def _described(self, name: str, value: Any, used: dict[Native, None]) -> str:
        try:
            return describe(value, used)
        except NoDescription as err:
            code = self.native.fn.__code__
            raise NoDescription(
                f"{self.native.__name__}: the compile-time value {name!r} has no exact "
                f'description: {err}\n  File "{code.co_filename}", line {code.co_firstlineno}'
            ) from None

    def _value(self, path: tuple[str, ...]) -> tuple[str, Any]:
        """What a dotted name stands for, and how much of it was resolved (modules only)."""
        value = self.native.lookup(path[0])
        name = path[0]
        for attr in path[1:]:
            if not isinstance(value, types.ModuleType):
                break
            value = getattr(value, attr)
            name += "." + attr
        return name, value

    def update(self) -> tuple[str, dict[Native, None]]:
        """The key of this function alone, and the functions it uses."""
        if self.current():
            return self.key, self.uses
        found = []
        for path in self.paths:
            try:
                found.append(self._value(path))
            except (KeyError, ValueError, AttributeError):
                found.append((path[0], NotImplemented))  # lowering says so, if it matters
        uses = dict(self.fixed_uses)
        parts = list(self.fixed)
        for name, value in found:
            text = "?" if value is NotImplemented else self._described(name, value, uses)
            parts.append(f"{name}={text}")
        self.key, self.uses = digest_of("\n".join(parts)), uses
        self.profiled = self._watch()
        return self.key, uses

    def current(self) -> bool:
        """Do all its names still mean what they meant? This is asked whenever a kernel is."""
        profiled = self.profiled
        if profiled is None:
            return False
        return all([names.get(name, NotImplemented) is value for names, name, value in profiled])

    def _watch(self) -> list[tuple[dict[str, Any], str, Any]] | None:
        """Every dictionary entry that the description came from (NotImplemented: none must be
        there); None when some of it can change in another way."""
        if self.native.cells:
            return None
        found: dict[tuple[int, str], tuple[dict[str, Any], str, Any]] = {}
        for path in self.paths:
            names = self.native.fn.__globals__
            if path[0] not in names:
                found[id(names), path[0]] = (names, path[0], NotImplemented)
                builtins = names.get("__builtins__", {})
                names = builtins if isinstance(builtins, dict) else vars(builtins)
            for k, name in enumerate(path):
                value = names.get(name, NotImplemented)
                if isinstance(value, (list, dict, set)) or (k and value is NotImplemented):
                    return None  # a module may make an attribute when it is asked for
                found[id(names), name] = (names, name, value)
                if not isinstance(value, types.ModuleType):
                    break
                names = vars(value)
        return list(found.values())


_closures: dict[tuple[Native, ...], tuple[list[FunctionDigest], str]] = {}


def closure_key(roots: Iterable[Native]) -> str:
    """One key for functions and everything they call, directly or not: each function's own key and
    the places, in this list, of the functions it uses."""
    asked = tuple(roots)
    known = _closures.get(asked)
    if known is not None and all([each.current() for each in known[0]]):
        return known[1]
    seen: dict[Native, int] = {root: k for k, root in enumerate(asked)}
    order, parts = list(seen), []
    for native in order:  # grows while it is walked
        key, uses = native.digest.update()
        for each in uses:
            if each not in seen:
                seen[each] = len(order)
                order.append(each)
        parts.append(f"{key}{[seen[each] for each in uses]}")
    result = digest_of("".join(parts))
    if len(_closures) > 4096:
        _closures.clear()
    _closures[asked] = [each.digest for each in order], result
    return result
