"""A pickle machine that builds data and runs no code.

Python's own unpickler calls whatever a file names. This one knows a short list of names (see
``names``) and refuses the rest; it sets attributes only on OrderedDicts and on instances of classes
that the user has declared safe. With ``trust`` (``weights_only=False``) the list is longer: see
``trusted``. Protocols 2 to 5.
"""

from __future__ import annotations

import _compat_pickle
import codecs
import functools
import struct
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

from antorcha.core.lazy import lazy
from antorcha.errors import AntorchaError, MissingFeature, shown
from antorcha.runtime.tensor import Tensor
from antorcha.serialization.errors import UnpicklingError
from antorcha.serialization.names import REFUSED, added, known

serialization_trusted = lazy("antorcha.serialization.trusted")

_NEVER = (
    "os",
    "posix",
    "nt",
    "sys",
    "subprocess",
    "builtins",
    "__builtin__",
    "importlib",
    "shutil",
)


def _new_name(module: str, name: str) -> tuple[str, str]:
    """What Python 2, and with it protocol 2, calls otherwise, by its name of today."""
    modules = _compat_pickle.IMPORT_MAPPING
    return _compat_pickle.NAME_MAPPING.get((module, name), (modules.get(module, module), name))


_HASHED = (set, frozenset, Counter, OrderedDict)  # these hash what they are called with
_MOST_HASHED = 10_000  # parts of one key


def _check_key(key: Any) -> Any:
    """The key, if its hash can be had: of a tuple of tuples it takes as long as there are ways
    through them, and as much of the machine's stack as they are deep."""
    left, waiting = _MOST_HASHED, [key]
    while waiting:
        part = waiting.pop()
        left -= 1
        if left < 0:
            raise UnpicklingError("load: a key of more than 10,000 parts: the pickle is damaged")
        if isinstance(part, tuple):
            waiting.extend(part[: left + 1])
    return key


class Unpickler:
    """Runs one pickle in ``data`` from ``start``; ``persistent_load`` gives storages by id."""

    def __init__(
        self,
        data: Any,
        persistent_load: Callable[[Any], Any],
        start: int = 0,
        trust: bool = False,
        encoding: str = "utf-8",
    ) -> None:
        self.data, self.at, self.trust, self.encoding = memoryview(data), start, trust, encoding
        self.persistent_load = persistent_load
        self.stack: list[Any] = []
        self.outer: list[list[Any]] = []  # the stacks below each mark
        self.memo: dict[int, Any] = {}
        self.values, self.functions = known()
        self.safe = dict(added())
        self.trusted: list[Any] = []  # what the pickle has named of what only trust allows

    def load(self) -> Any:
        """The object; afterwards ``at`` is behind the pickle."""
        try:
            while True:
                code = self._byte()
                if code == 0x2E:  # STOP
                    return self.stack.pop()
                handler = _HANDLERS.get(code)
                if handler is None:
                    raise UnpicklingError(
                        f"load: Unsupported operand {code} (opcode {chr(code)!r}) in the pickle"
                    )
                handler(self)
        except UnpicklingError:
            raise
        except (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError,
                TypeError, ValueError, struct.error) as error:  # fmt: skip
            if isinstance(error, AntorchaError) and isinstance(error, RuntimeError):
                raise  # it says what is wrong, in a class that is expected
            raise UnpicklingError(
                f"load: the pickle is damaged at byte {self.at}: {type(error).__name__}: {error}"
            ) from error

    # ------------------------------------------------------------------------------------ reading
    def _byte(self) -> int:
        value = self.data[self.at]
        self.at += 1
        return value

    def _take(self, count: int) -> bytes:
        end = self.at + count
        if count < 0 or end > len(self.data):
            raise UnpicklingError("load: the pickle is truncated")
        part = bytes(self.data[self.at : end])
        self.at = end
        return part

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _bytes(self, form: str) -> bytes:
        return self._take(self._number(form))

    def _text(self, form: str) -> str:
        return str(self._take(self._number(form)), "utf-8", "surrogatepass")

    def _old_text(self, form: str) -> Any:
        """A string of Python 2, which may have been meant as bytes."""
        content = self._take(self._number(form))
        return content if self.encoding == "bytes" else content.decode(self.encoding)

    def _line(self) -> str:
        end = self.at
        while self.data[end] != 10:
            end += 1
        text = bytes(self.data[self.at : end]).decode("utf-8")
        self.at = end + 1
        return text

    def _group(self) -> list[Any]:
        """The items above the last mark, which goes away."""
        if not self.outer:
            raise UnpicklingError("load: the pickle is damaged: a mark is missing")
        items, self.stack = self.stack, self.outer.pop()
        return items

    # -------------------------------------------------------------------------------------- names
    def find(self, module: str, name: str) -> Any:
        """What a name stands for; refuses what is not on the list."""
        module, name = _new_name(module, name)
        full = f"{module}.{name}"
        if full in self.safe:
            return self.safe[full]
        if full in REFUSED:
            raise MissingFeature(f"load: {REFUSED[full]} are not in this version of antorcha")
        for table in (self.values, self.functions):
            if full in table:
                return table[full]
        if self.trust:
            found = serialization_trusted.find(module, name)
            if found is not None:
                self.trusted += serialization_trusted.classes_of(found)
                return found
        raise UnpicklingError(_refusal(module, name, self.trust))

    def _is_safe(self, thing: Any) -> bool:
        return any(thing is each for each in self.safe.values())

    def _is_trusted(self, kind: Any) -> bool:
        """Is it a class that only ``weights_only=False`` gives objects of?"""
        return isinstance(kind, type) and any(kind is each for each in self.trusted)

    def _may_call(self, fn: Any, args: Any) -> bool:
        if any(fn is each for each in self.functions.values()):
            return True
        if not any(each is fn or each is type(fn) for each in self.trusted):
            return False
        found: bool = serialization_trusted.may_call(fn, args)
        return found

    def call(self, fn: Any, args: Any) -> Any:
        """REDUCE: calls one of the functions on the list."""
        if not isinstance(args, tuple):
            raise UnpicklingError("load: the pickle is damaged: arguments that are no tuple")
        if self._is_safe(fn):
            return fn(*args)
        if not self._may_call(fn, args):
            raise UnpicklingError(
                f"load: Trying to call reduce for unrecognized function {shown(fn, 60)}"
            )
        if fn is defaultdict and args and args[0] not in (None, list, dict, int, float, set, str):
            raise UnpicklingError(f"load: a defaultdict of {shown(args[0])} is not allowed")
        if fn is bytearray and args and isinstance(args[0], int):  # so many zeros
            raise UnpicklingError("load: the pickle is damaged: a bytearray of a number")
        if fn in _HASHED and args and isinstance(args[0], (list, tuple)):
            for item in args[0]:
                pair = fn is OrderedDict and isinstance(item, (list, tuple)) and item
                _check_key(item[0] if pair else item)
        return fn(*args)

    def make(self, kind: Any, args: Any, more: Any = None) -> Any:
        """NEWOBJ: an instance of one of the classes on the list."""
        if self._is_safe(kind) or self._is_trusted(kind):
            return kind.__new__(kind, *args, **(more or {}))
        if kind in (OrderedDict, Counter, defaultdict, set):
            return kind(*args)
        raise UnpicklingError(
            f"load: Trying to create new object for unrecognized class {shown(kind, 60)}"
        )

    def _may_build(self, kind: Any) -> bool:
        if self._is_safe(kind) or self._is_trusted(kind):
            return True
        if not self.trust:
            return False
        # (NumPy's dtypes, whose classes need no name)
        found: bool = serialization_trusted.is_known(kind)
        return found

    def build(self, result: Any, state: Any) -> None:
        """BUILD: sets an object's attributes."""
        kind = type(result)
        if kind is OrderedDict and isinstance(state, dict):
            result.__dict__.update(state)
        elif not self._may_build(kind) or isinstance(result, Tensor):
            raise UnpicklingError(
                "load: Can only build OrderedDict or types allowlisted via "
                f"`add_safe_globals`, but got {kind}"
            )
        elif hasattr(result, "__setstate__"):
            result.__setstate__(state)
        else:
            state, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
            for key, value in (state or {}).items():
                result.__dict__[key] = value
            for key, value in (slots or {}).items():
                setattr(result, key, value)


class Nothing:
    """Stands for an object that a pickle would make."""

    __slots__ = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        pass

    append = extend = update = lambda self, items: None


class Scanner(Unpickler):
    """Runs a pickle for its storages alone: nothing is called, and no object made."""

    def call(self, fn: Any, args: Any) -> Any:
        return Nothing()

    def make(self, kind: Any, args: Any, more: Any = None) -> Any:
        return Nothing()

    def build(self, result: Any, state: Any) -> None:
        pass


class NameScanner(Scanner):
    """Runs a pickle for the names that ``weights_only`` does not allow: `unsafe`."""

    def __init__(self, data: Any) -> None:
        super().__init__(data, lambda id: Nothing())
        self.unsafe: dict[str, None] = {}

    def find(self, module: str, name: str) -> Any:
        full = ".".join(_new_name(module, name))
        if full not in self.safe and full not in self.values and full not in self.functions:
            self.unsafe[full] = None
        return Nothing()


def _refusal(module: str, name: str, trust: bool) -> str:
    full = f"{module}.{name}"
    if module.split(".")[0] in _NEVER:
        return (
            f"load: Trying to load unsupported GLOBAL {full} whose module {module} is blocked. "
            "Loading never executes code from a file; do not trust this one."
        )
    if trust:
        known = "gives a file no such class" if module in sys.modules else "is not imported here"
        return (
            f"load: Unsupported global: GLOBAL {full}: module {module} {known}. "
            "Import what the file's objects are made of before it is loaded, or allow another "
            f"class under that name: torch.serialization.add_safe_globals([(cls, {full!r})])."
        )
    return (
        f"load: Unsupported global: GLOBAL {full} was not an allowed global by default. Please use "
        f"`torch.serialization.add_safe_globals([{name}])` or the "
        f"`torch.serialization.safe_globals([{name}])` context manager to allowlist this global "
        f"if you trust this class/function (or [({name}, {full!r})], if its name is another here). "
        "Loading never executes code from a file: a state_dict needs none."
    )


_HANDLERS: dict[int, Callable[[Unpickler], None]] = {}


def _on(*codes: bytes) -> Callable[[Any], Any]:
    def register(fn: Any) -> Any:
        for code in codes:
            _HANDLERS[code[0]] = fn
        return fn

    return register


def _constant(code: bytes, make: Callable[[], Any]) -> None:
    _HANDLERS[code[0]] = lambda u: u.stack.append(make())


def _reads(code: bytes, read: Callable[[Unpickler], Any]) -> None:
    def handler(u: Unpickler) -> None:
        value = read(u)  # (which may change the stack)
        u.stack.append(value)

    _HANDLERS[code[0]] = handler


for _code, _make in ((b"N", lambda: None), (b"\x88", lambda: True), (b"\x89", lambda: False),
                     (b"}", dict), (b"]", list), (b")", tuple), (b"\x8f", set)):  # fmt: skip
    _constant(_code, _make)
for _code, _form in ((b"J", "<i"), (b"K", "<B"), (b"M", "<H"), (b"G", ">d")):
    _reads(_code, functools.partial(Unpickler._number, form=_form))
for _code, _form in ((b"X", "<I"), (b"\x8c", "<B"), (b"\x8d", "<Q")):
    _reads(_code, functools.partial(Unpickler._text, form=_form))
for _code, _form in ((b"B", "<I"), (b"C", "<B"), (b"\x8e", "<Q")):
    _reads(_code, functools.partial(Unpickler._bytes, form=_form))
for _code, _form in ((b"T", "<i"), (b"U", "<B")):
    _reads(_code, functools.partial(Unpickler._old_text, form=_form))
_reads(b"\x96", lambda u: bytearray(u._take(u._number("<Q"))))
_reads(b"\x8a", lambda u: int.from_bytes(u._take(u._number("<B")), "little", signed=True))
_reads(b"\x8b", lambda u: int.from_bytes(u._take(u._number("<i")), "little", signed=True))
_reads(b"h", lambda u: u.memo[u._number("<B")])
_reads(b"j", lambda u: u.memo[u._number("<I")])
_reads(b"t", lambda u: tuple(u._group()))
_reads(b"l", lambda u: u._group())
_reads(b"\x91", lambda u: frozenset(map(_check_key, u._group())))
_reads(b"c", lambda u: u.find(u._line(), u._line()))
_reads(b"Q", lambda u: u.persistent_load(u.stack.pop()))
_reads(b"S", lambda u: codecs.escape_decode(u._line()[1:-1].encode("ascii"))[0].decode("ascii"))
_reads(b"V", lambda u: codecs.raw_unicode_escape_decode(u._line().encode("latin-1"))[0])
_reads(b"F", lambda u: float(u._line()))


@_on(b"(")
def _mark(u: Unpickler) -> None:
    u.outer.append(u.stack)
    u.stack = []


@_on(b"I")
def _int_line(u: Unpickler) -> None:
    text = u._line()
    u.stack.append({"00": False, "01": True}.get(text) if text in ("00", "01") else int(text))


@_on(b"L")
def _long_line(u: Unpickler) -> None:
    u.stack.append(int(u._line().rstrip("L")))


@_on(b"\x80")
def _proto(u: Unpickler) -> None:
    protocol = u._byte()
    if not 2 <= protocol <= 5:
        raise UnpicklingError(f"load: pickle protocol {protocol} is not supported")


@_on(b"\x95")
def _frame(u: Unpickler) -> None:
    u._number("<Q")


@_on(b"q")
def _put(u: Unpickler) -> None:
    u.memo[u._number("<B")] = u.stack[-1]


@_on(b"r")
def _long_put(u: Unpickler) -> None:
    u.memo[u._number("<I")] = u.stack[-1]


@_on(b"\x94")
def _memoize(u: Unpickler) -> None:
    u.memo[len(u.memo)] = u.stack[-1]


@_on(b"0")
def _pop(u: Unpickler) -> None:
    if u.stack:
        u.stack.pop()
    else:  # a mark is what lies on top
        u._group()


@_on(b"1")
def _pop_group(u: Unpickler) -> None:
    u._group()


@_on(b"2")
def _duplicate(u: Unpickler) -> None:
    u.stack.append(u.stack[-1])


@_on(b"\x85", b"\x86", b"\x87")
def _tuple(u: Unpickler) -> None:
    count = u.data[u.at - 1] - 0x84
    items = tuple(u.stack[-count:])
    if len(items) != count:
        raise UnpicklingError("load: the pickle is damaged: a tuple is incomplete")
    u.stack[-count:] = [items]


@_on(b"d")
def _dict(u: Unpickler) -> None:
    items = u._group()
    u.stack.append(dict(zip(map(_check_key, items[::2]), items[1::2], strict=True)))


def _container(u: Unpickler, *kinds: type) -> Any:
    kind = type(u.stack[-1])
    if (
        kind not in kinds
        and kind is not Nothing
        and not (u._is_trusted(kind) and issubclass(kind, (*kinds, deque)))
    ):
        raise UnpicklingError(
            f"load: items for a {type(u.stack[-1]).__name__}: the pickle is damaged"
        )
    return u.stack[-1]


@_on(b"s")
def _set_item(u: Unpickler) -> None:
    value, key = u.stack.pop(), u.stack.pop()
    _container(u, dict, OrderedDict, Counter, defaultdict)[_check_key(key)] = value


@_on(b"u")
def _set_items(u: Unpickler) -> None:
    items = u._group()
    target = _container(u, dict, OrderedDict, Counter, defaultdict)
    for key, value in zip(items[::2], items[1::2], strict=True):
        target[_check_key(key)] = value


@_on(b"a")
def _append(u: Unpickler) -> None:
    value = u.stack.pop()
    _container(u, list).append(value)


@_on(b"e")
def _appends(u: Unpickler) -> None:
    items = u._group()
    _container(u, list).extend(items)


@_on(b"\x90")
def _add_items(u: Unpickler) -> None:
    items = u._group()
    _container(u, set).update(map(_check_key, items))


@_on(b"\x93")
def _stack_global(u: Unpickler) -> None:
    name, module = u.stack.pop(), u.stack.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise UnpicklingError("load: the pickle is damaged: a name that is no string")
    u.stack.append(u.find(module, name))


@_on(b"R")
def _reduce(u: Unpickler) -> None:
    args = u.stack.pop()
    u.stack[-1] = u.call(u.stack[-1], args)


@_on(b"\x81")
def _new_object(u: Unpickler) -> None:
    args = u.stack.pop()
    u.stack[-1] = u.make(u.stack[-1], args)


@_on(b"\x92")
def _new_object_with_names(u: Unpickler) -> None:
    more, args = u.stack.pop(), u.stack.pop()
    u.stack[-1] = u.make(u.stack[-1], args, more)


@_on(b"b")
def _build(u: Unpickler) -> None:
    state = u.stack.pop()
    u.build(u.stack[-1], state)
