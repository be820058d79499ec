"""From a Spec to an address: the disk cache, the compiler, and one LLVM engine that links it all.

Everything that touches LLVM happens under one lock, which is held over a fork so that a child never
inherits it half way. A symbol that the process does not have is refused before linking: LLVM would
link a null.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
import threading
import time
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from antorcha.core.forks import held_over_forks
from antorcha.core.lazy import lazy
from antorcha.errors import NativeError
from antorcha.lang.native import cache as disk
from antorcha.lang.native import progress
from antorcha.lang.native.immortal import make_immortal
from antorcha.lang.native.machine import Target, binding, machine, optimise, target
from antorcha.lang.native.values import defined_globals

if TYPE_CHECKING:
    from antorcha.lang.native.function import GridSpec, Spec

native_lower = lazy("antorcha.lang.native.lower")
native_backend = lazy("antorcha.lang.native.backend")

__all__ = ["LOCK", "Target", "address_of", "define", "load", "lowered", "target"]

LEVEL = "small"
LOCK = held_over_forks(threading.RLock())
_exports: dict[str, Spec] = {}  # specs that other modules link by symbol
_loading: set[str] = set()
_defined: dict[str, int] = {}  # symbols given to LLVM by us
_outside: dict[str, int] = {}  # symbols that the process had, or has been given
compiled = 0  # functions, by this process
_ahead: dict[str, tuple[list[str], bytes]] = {}  # compiled (`compile_ahead`), to be linked


class Lowered(NamedTuple):
    """IR text, the exported functions it links to, and the level that it needs, if any."""

    ir: str
    exports: dict[str, Spec]
    level: str = ""


@cache
def _engine() -> Any:
    llvm = binding()
    empty = llvm.parse_assembly(f'target triple = "{target().triple}"')
    result = llvm.create_mcjit_compiler(empty, machine())
    for each in defined_globals():
        define(each.name, each.addr)
    return result


def define(name: str, addr: int) -> None:
    """Makes an address known to the linker under a name."""
    with LOCK:
        binding().add_symbol(name, addr)
        _defined[name] = addr


@cache
def _libraries() -> list[Any]:
    """Where C functions are looked up when LLVM does not find them: the process, then libm."""
    # find_library starts other programs to search; every Linux has one of these two
    names = [None, "libm.so.6" if sys.platform == "linux" else ctypes.util.find_library("m")]
    found = []
    for name in names:
        try:
            found.append(ctypes.CDLL(name))
        except OSError:
            continue
    return found


def find_symbol(name: str) -> int:
    """The address of a symbol of this process, or 0."""
    with LOCK:
        _engine()
        addr = _defined.get(name) or _outside.get(name) or binding().address_of_symbol(name)
        if addr:
            _outside[name] = int(addr)
            return int(addr)
        for library in _libraries():
            try:
                entry = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
            except AttributeError:
                continue
            if entry:
                define(name, entry)
                return entry
    return 0


def address_of(name: str) -> int:
    addr = find_symbol(name)
    if not addr:
        raise NativeError(f"the symbol {name!r} is not in this process")
    return addr


# ---- compiling and loading
def load(spec: Spec) -> int:
    """The address of a spec's machine code, from this process, the disk, or the compiler."""
    with LOCK:
        if spec._addr:
            return spec._addr
        start = time.perf_counter()
        symbol = spec.symbol
        if symbol in _loading:
            raise NativeError(f"{spec.native.__name__}: exported functions may not call each other")
        addr = _defined.get(symbol) or _link_stored(symbol)
        if not addr:
            found = _ahead.pop(symbol, None)
            if found is None:
                with progress.shown.compiling():
                    found = _compile_and_store(spec)
            needs, code = found
            _loading.add(symbol)
            try:
                _require(spec, needs)
            finally:
                _loading.discard(symbol)
            addr = _link(symbol, code)
        spec.stats["load_ms"] = (time.perf_counter() - start) * 1e3
        return addr


def compile_ahead(spec: Spec) -> list[Spec]:
    """Compiles a function that is neither in this process nor on the disk, and links nothing; gives
    the functions that it links to, which may have to be compiled, too."""
    with LOCK:
        if load_stored(spec):
            return []
        symbol = spec.symbol
        if symbol not in _ahead:
            _ahead[symbol] = _compile_and_store(spec)
        return [_exports[name] for name in _ahead[symbol][0] if name in _exports]


def is_stored(spec: Spec) -> bool:
    """Is it in this process, or on the disk, as far as a look at the folder can tell?"""
    return spec.symbol in _defined or disk.holds(spec.symbol)


def load_stored(spec: Spec) -> bool:
    """Loads a function from this process or the disk; False if it would have to be compiled."""
    with LOCK:
        if not spec._addr:
            spec._addr = _defined.get(spec.symbol) or _link_stored(spec.symbol)
        return bool(spec._addr)


def _compile_and_store(spec: Spec) -> tuple[list[str], bytes]:
    """`compile_spec`, kept on disk for the next process."""
    needs, code = compile_spec(spec)
    disk.write(spec.symbol, needs, code)
    return needs, code


def _link_stored(symbol: str) -> int:
    """Links a function from the disk and whatever it needs from there; 0 if some of it is not. A
    symbol is the hash of all it depends on, so stored code needs no Spec to say what it is."""
    stored = disk.read(symbol)
    if stored is None:
        return 0
    needs, code = stored
    if not disk.is_what_it_says(symbol, needs, code):
        return 0
    _loading.add(symbol)
    try:
        for name in needs:
            if not find_symbol(name) and (name in _loading or not _link_stored(name)):
                return 0
    finally:
        _loading.discard(symbol)
    try:
        return _link(symbol, code)
    except (NativeError, RuntimeError):  # no sound object file, whatever its checksum says
        return 0


def _link(symbol: str, code: bytes) -> int:
    engine = _engine()
    item = make_immortal(binding().ObjectFileRef.from_data(code))  # the engine does not own it
    engine.add_object_file(item)
    engine.finalize_object()
    addr = int(engine.get_function_address(symbol))
    if not addr:
        raise NativeError(f"{symbol} did not link")
    define(symbol, addr)
    return addr


def _require(spec: Spec, needs: list[str]) -> None:
    for name in needs:
        if name in _exports and name != spec.symbol:
            _ = _exports[name].addr
        elif not find_symbol(name):
            raise NativeError(f"{spec.native.__name__}: the symbol {name!r} is not in this process")


def lowered(spec: Spec) -> Lowered:
    with LOCK:
        try:
            found: Lowered = native_lower.lower(spec)
            return found
        except NativeError as err:
            # it says where the program is wrong; the compiler's own frames would only hide it
            raise err.with_traceback(None) from err.__cause__


def compile_spec(spec: Spec) -> tuple[list[str], bytes]:
    """Compiles to an object file; also gives the outside symbols that it needs."""
    global compiled
    with LOCK:
        compiled += 1
        begin = time.perf_counter()
        form = lowered(spec)
        _exports.update(form.exports)
        module, generator = _optimised(spec, form)
        code = bytes(generator.emit_object(module))
        needs = disk.undefined_symbols(code)
        if needs is None:  # not ELF: believe the IR
            needs = [f.name for f in module.functions if f.is_declaration]
            needs = [n for n in needs if not n.startswith("llvm.")]
        spec.stats.update(compile_ms=(time.perf_counter() - begin) * 1e3, size=len(code))
        return needs, code


def _optimised(spec: Spec, form: Lowered) -> tuple[Any, Any]:
    llvm = binding()
    try:
        module = llvm.parse_assembly(form.ir)
        module.triple = target().triple
        module.verify()
    except RuntimeError as err:
        raise NativeError(
            f"{spec.native.__name__}: the compiler made bad LLVM IR; this is a bug in it: {err}"
        ) from err
    return module, optimise(module, spec.native.options.level or form.level or LEVEL)


def image(spec: GridSpec) -> bytes:
    """What a GPU's driver compiles, from the disk or by LLVM's back end."""
    with LOCK:
        if spec.target.grid not in ("ptx", "spirv"):
            raise NativeError(
                f"{spec.native.__name__}: PTX and SPIR-V are images, not {spec.target}"
            )
        stored = disk.read(spec.symbol)
        if stored is not None:
            return stored[1]
        made: bytes = native_backend.process.compile(
            spec.native.__name__, lowered(spec).ir, spec.target
        )
        disk.write(spec.symbol, [], made)
        return made


def optimised_ir(spec: Spec) -> str:
    with LOCK:
        return str(_optimised(spec, lowered(spec))[0])


def assembly(spec: Spec) -> str:
    with LOCK:
        module, generator = _optimised(spec, lowered(spec))
        return str(generator.emit_assembly(module))
