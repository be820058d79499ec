"""``@native`` and ``@inline``: Python functions that become machine code, and their instances.

A function's keyword-only parameters are compile time; ``fn.spec(T=f32)`` fixes them and gives a
``Spec``, which is compiled (or found on disk) when its address is first wanted. Calling the
function from Python compiles it, checks every argument against the parameter's type, and runs it;
inside ``with interpreted():`` it runs as plain Python instead.
"""

from __future__ import annotations

import ctypes
import os
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar, overload

from antorcha.core.lazy import imported, lazy
from antorcha.errors import NativeError
from antorcha.lang.native.digest import FunctionDigest, closure_key, describe, digest_of
from antorcha.lang.native.types import Ty, as_type
from antorcha.lang.native.values import Extern, ExternData, Global, Intrinsic, c_type

if TYPE_CHECKING:
    import ast

    from typing_extensions import TypeVar as DefaultTypeVar

    from antorcha.lang.native.machine import Target
    from antorcha.lang.native.types import Ty as NativeType

    Result = DefaultTypeVar("Result", default=Any)
else:
    Result = TypeVar("Result")

native_interpret = lazy("antorcha.lang.native.interpret")
ast = lazy("ast")
textwrap = lazy("textwrap")
native_engine = lazy("antorcha.lang.native.engine")
native_entry = lazy("antorcha.lang.native.entry")

_PLAIN = (int, str, bool, type(None), Ty)
_file_stamps: dict[str, tuple[int, int]] = {}


class Options(NamedTuple):
    """How a function is compiled.

    ``inline``: expanded where it is called. ``export``: one copy, linked by its symbol, shared by
    all callers (else each caller's module holds its own). ``noalias``: the pointers given to it do
    not overlap. ``noinline``: LLVM must not merge it into its callers. ``level``: optimisation, one
    of none, small (the default), O0 to O3, with the code generator's level after a dot
    (``O2.3``).
    """

    inline: bool = False
    export: bool = False
    noalias: bool = False
    noinline: bool = False
    level: str = ""


class Native(Generic[Result]):
    """A function of the native language. Made by ``@native`` and ``@inline``."""

    _helpers: ClassVar[dict[types.FunctionType, Native]] = {}

    def __init__(self, fn: Callable[..., Result], options: Options) -> None:
        if not isinstance(fn, types.FunctionType):
            raise NativeError(f"@native takes a Python function, not {fn!r}")
        code = fn.__code__
        self.fn, self.options = fn, options
        self.__name__, self.__doc__, self.__module__ = fn.__name__, fn.__doc__, fn.__module__
        self.__qualname__ = fn.__qualname__
        self.__wrapped__ = fn
        self.params: tuple[str, ...] = code.co_varnames[: code.co_argcount]
        count = code.co_argcount + code.co_kwonlyargcount
        self.statics: tuple[str, ...] = code.co_varnames[code.co_argcount : count]
        self.specs: dict[Any, Spec] = {}
        self.cells = dict(zip(code.co_freevars, fn.__closure__ or (), strict=True))
        self._digest: FunctionDigest | None = None
        self._source: Any = None
        self.python: Any = None  # its plain-Python form, made by the interpreter
        _stamp(code.co_filename)

    def __repr__(self) -> str:
        return f"<native {self.__qualname__}>"

    @staticmethod
    def helper(fn: types.FunctionType) -> Native:
        """A plain function called at compile time, as far as its description goes."""
        result = Native._helpers.get(fn)
        if result is None:
            result = Native._helpers[fn] = Native(fn, Options(inline=True))
        return result

    @property
    def inline(self) -> bool:
        return self.options.inline

    @property
    def digest(self) -> FunctionDigest:
        if self._digest is None:
            self._digest = FunctionDigest(self)
        return self._digest

    @property
    def source(self) -> Source:
        """The syntax tree and where it stands; read from the file when first compiled."""
        if self._source is None:
            self._source = read_source(self.fn)
        return self._source  # type: ignore[no-any-return]

    def lookup(self, name: str) -> Any:
        """What a name means outside the function; KeyError when nothing does."""
        if name in self.cells:
            return self.cells[name].cell_contents
        names = self.fn.__globals__
        if name in names:
            return names[name]
        builtins = names.get("__builtins__", {})
        return (builtins if isinstance(builtins, dict) else vars(builtins))[name]

    # ---- instances
    def spec(self, **static: Any) -> Spec:
        """The instance with these compile-time parameters."""
        key = _static_key(static)
        found = self.specs.get(key)
        if found is None:
            found = self.specs[key] = self._full_spec({**(self.fn.__kwdefaults__ or {}), **static})
        return found

    def _full_spec(self, static: dict[str, Any]) -> Spec:
        if set(static) != set(self.statics):
            want = ", ".join(self.statics) or "none"
            extra = sorted(set(static) - set(self.statics))
            missing = sorted(set(self.statics) - set(static))
            what = f"has no {', '.join(extra)}" if extra else f"also needs {', '.join(missing)}"
            raise NativeError(f"{self.__name__}: {what} (its compile-time parameters: {want})")
        static = {name: static[name] for name in self.statics}
        return self.specs.setdefault(_static_key(static), Spec(self, static))

    def on_grid(self, to: Target, threads: int, **static: Any) -> GridSpec:
        """The instance with these compile-time parameters as a kernel for a GPU."""
        host = self.spec(**static)
        key = (to.key, threads, _static_key(host.static))
        found = self.specs.get(key)
        if found is None:
            found = self.specs.setdefault(key, GridSpec(self, host.static, to, threads))
        return found  # type: ignore[return-value]

    def __getitem__(self, key: Any) -> Spec:
        """``fn[f32, 4]``: the instance with these compile-time parameters, in their order."""
        values = key if isinstance(key, tuple) else (key,)
        return self.spec(**dict(zip(self.statics, values, strict=False)))

    def __call__(self, *args: Any, **static: Any) -> Result:
        result: Result
        if native_interpret.interpreting():
            result = native_interpret.current().call_native(self, args, static, entry=True)
            return result
        if self.inline:
            raise NativeError(
                f"{self.__name__} is @inline: it is called from native code only, or inside "
                "`with interpreted():`"
            )
        result = self.spec(**static)(*args)
        return result

    def signature(self, static: dict[str, Any]) -> tuple[NativeType, list[tuple[str, NativeType]]]:
        """Result type and typed parameters, given the compile-time ones."""
        notes = self.fn.__annotations__
        params = []
        for name in self.params:
            if name not in notes:
                raise NativeError(f"{self.__name__}: parameter {name!r} needs a type")
            params.append((name, self.note(name, static)))
        return self.note("return", static) if "return" in notes else as_type(None), params

    def note(self, name: str, static: dict[str, Any]) -> Ty:
        """The type that an annotation names."""
        note = self.fn.__annotations__[name]
        if isinstance(note, str):
            cells = {}
            for k, cell in self.cells.items():
                try:
                    cells[k] = cell.cell_contents
                except ValueError:
                    continue
            try:
                note = eval(note, self.fn.__globals__, {**cells, **static})
            except Exception as err:
                raise NativeError(f"{self.__name__}: the type of {name!r}: {err}") from None
        ty = as_type(note)
        if not isinstance(ty, Ty):
            raise NativeError(f"{self.__name__}: the type of {name!r} is {note!r}, not a type")
        return ty


def _static_key(static: dict[str, Any]) -> Any:
    """A dict key for compile-time values: 1, True and 1.0 are equal, but not the same value."""
    return tuple(
        [(k, type(v), v if isinstance(v, _PLAIN) else _by_text(v)) for k, v in static.items()]
    )


def _by_text(value: Any) -> str:
    used: dict[Native, None] = {}
    text = describe(value, used)
    return text + "".join(f"@{id(each)}" for each in used)  # they live as long as their tables


class Source(NamedTuple):
    """A function's syntax tree (line numbers as in the file) and the columns that were cut off."""

    tree: ast.FunctionDef
    indent: int


def _stamp(path: str) -> None:
    if path not in _file_stamps:
        try:
            stat = os.stat(path)
        except OSError:
            return
        _file_stamps[path] = (stat.st_mtime_ns, stat.st_size)


def read_source(fn: types.FunctionType) -> Source:
    code = fn.__code__
    first = code.co_firstlineno
    source = imported("linecache")  # (whose functions doctest replaces)
    lines = source.getlines(code.co_filename, fn.__globals__)[first - 1 :]
    if not lines:
        raise NativeError(f"{fn.__qualname__}: its source is not in a file ({code.co_filename})")
    end = _last_line(code) - first + 1
    while True:  # the last statement's line is known; closing brackets may follow it
        try:
            text = textwrap.dedent("".join(lines[:end]))
            tree = ast.parse("\n" * (first - 1) + text).body[0]  # so that its lines are the file's
            break
        except SyntaxError:
            end += 1
            if end > len(lines):
                raise NativeError(f"{fn.__qualname__}: its source cannot be parsed") from None
    if not isinstance(tree, ast.FunctionDef):
        raise NativeError(f"{fn.__qualname__}: a native function is a plain def")
    _check_unchanged(fn, tree)
    return Source(tree, len(lines[0]) - len(lines[0].lstrip()))


def _check_unchanged(fn: types.FunctionType, tree: ast.FunctionDef) -> None:
    """The file may have been edited since Python read it: then tree and bytecode disagree."""
    code = fn.__code__
    before = _file_stamps.get(code.co_filename)
    try:
        stat = os.stat(code.co_filename)
    except OSError:
        return
    if before is None or (stat.st_mtime_ns, stat.st_size) == before:
        return
    around = ast.parse(f"def around({', '.join(code.co_freevars)}):\n pass")
    inner = ast.FunctionDef(**{**dict(ast.iter_fields(tree)), "decorator_list": []})
    around.body[0].body = [ast.copy_location(inner, tree)]  # type: ignore[attr-defined]
    outer: Any = compile(ast.fix_missing_locations(around), code.co_filename, "exec").co_consts[0]
    for k in outer.co_consts:
        if isinstance(k, types.CodeType) and k.co_code == code.co_code:
            return
    raise NativeError(
        f"{fn.__qualname__}: {code.co_filename} has changed since it was imported; restart Python"
    )


def _last_line(code: types.CodeType) -> int:
    ends = [end for _, end, _, _ in code.co_positions() if end]
    ends += [_last_line(k) for k in code.co_consts if isinstance(k, types.CodeType)]
    return max(ends, default=code.co_firstlineno)


class Spec:
    """A native function with its compile-time parameters fixed: one piece of machine code."""

    def __init__(self, native: Native, static: dict[str, Any]) -> None:
        self.native, self.static = native, static
        self.stats: dict[str, Any] = {}
        self._addr = 0
        self._symbol = ""
        self._enter: Any = None

    def __repr__(self) -> str:
        static = ", ".join(f"{k}={v}" for k, v in self.static.items())
        return f"<native {self.native.__qualname__}[{static}]>"

    @property
    def target(self) -> Target:
        """The machine that it is compiled for."""
        return native_engine.target()  # type: ignore[no-any-return]

    def __native_key__(self) -> str:
        return f"spec {self.symbol}"

    @property
    def key(self) -> str:
        """The hash of everything its machine code depends on."""
        used: dict[Native, None] = {self.native: None}
        static = describe(self.static, used)
        return digest_of(f"{self.target.key}\0{closure_key(used)}\0{static}", 12)

    @property
    def symbol(self) -> str:
        if not self._symbol:
            self._symbol = f"{self.native.__name__}_{self.key}"
        return self._symbol

    @property
    def addr(self) -> int:
        """The machine address; compiles, or loads from disk, when first asked."""
        if not self._addr:
            self._addr = native_engine.load(self)
        return self._addr

    @property
    def ir(self) -> str:
        """Its LLVM IR as lowered, before any optimisation."""
        text: str = native_engine.lowered(self).ir
        return text

    @property
    def optimized(self) -> str:
        """Its LLVM IR after the passes of its level."""
        text: str = native_engine.optimised_ir(self)
        return text

    @property
    def asm(self) -> str:
        """Its assembly text."""
        text: str = native_engine.assembly(self)
        return text

    def signature(self) -> tuple[Ty, list[tuple[str, Ty]]]:
        return self.native.signature(self.static)

    def __call__(self, *args: Any) -> Any:
        """Runs it; arguments are checked against the parameters' types, ints against their
        range."""
        if self._enter is None:
            self._enter = native_entry.entry(self)
        return self._enter(*args)

    @property
    def cfunc(self) -> Any:
        """A bare ctypes function at its address: nothing is checked."""
        ret, params = self.signature()
        return ctypes.CFUNCTYPE(c_type(ret), *(c_type(t) for _, t in params))(self.addr)


class GridSpec(Spec):
    """A native function as the kernel of a GPU, run by each thread of a grid of blocks.

    Its one parameter, ``ptr[i64]``, points to the launch's words. ``threads``: of a block, at most.
    """

    def __init__(self, native: Native, static: dict[str, Any], to: Target, threads: int) -> None:
        super().__init__(native, static)
        self.to, self.threads = to, threads

    @property
    def target(self) -> Target:
        return self.to

    @property
    def key(self) -> str:
        return digest_of(f"{super().key}\0{self.threads}", 12)

    @property
    def image(self) -> str:
        """What NVIDIA's driver takes (PTX); compiled, or found on disk, when first asked."""
        return self.binary.decode()

    @property
    def binary(self) -> bytes:
        """What a GPU's driver takes, as bytes: those of PTX, or SPIR-V."""
        made: bytes = native_engine.image(self)
        return made


class NativeDecorator(Protocol):
    def __call__(self, fn: Callable[..., Result], /) -> Native[Result]: ...


@overload
def native(fn: Callable[..., Result]) -> Native[Result]: ...
@overload
def native(
    *, export: bool = ..., noalias: bool = ..., noinline: bool = ..., level: str = ...
) -> NativeDecorator: ...
def native(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Makes a function native; see :class:`Options` for what ``@native(...)`` takes."""
    if fn is not None:
        return _checked(fn, Options())
    return lambda f: _checked(f, Options(**options))


def inline(fn: Callable[..., Result]) -> Native[Result]:
    """Makes a function that is expanded where native code calls it; its types may stay open."""
    return _checked(fn, Options(inline=True))


def _checked(fn: Callable[..., Result], options: Options) -> Native[Result]:
    result = Native(fn, options)
    if result.fn.__code__.co_flags & 0x0C:
        raise NativeError(f"{fn.__qualname__}: *args and **kwargs are not part of the language")
    return result


__all__ = ["Extern", "ExternData", "Global", "GridSpec", "Intrinsic", "Native", "Options", "Spec",
           "inline", "native"]  # fmt: skip
