"""The exceptions that antorcha raises, and the words they share.

Each class says what kind of mistake was made and also derives from the builtin that PyTorch raises
in its place, so ``except RuntimeError`` in a program written for PyTorch keeps working. A message
names the op first, then shows the operands, then says the fix where one is likely.

An error may carry what its message says as *facts*, under a short and stable `reason`, so that
nobody has to read them out of the text; ``antorcha.explain`` looks the reason up.
"""

from __future__ import annotations

import os
import reprlib
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from antorcha.core.lazy import lazy
from antorcha.core.structs import struct

if TYPE_CHECKING:
    from typing import Self

opcode = lazy("opcode")
difflib = lazy("difflib")

PACKAGE = __name__.partition(".")[0]
OUR_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep


# ---- what an error knows -------------------------------------------------------------------------


@struct
class OperandFacts:
    """What an error tells of an operand: all but its elements, which no error keeps alive."""

    shape: tuple[int, ...]
    dtype: Any = None
    device: Any = None

    def __str__(self) -> str:
        return operand(self.shape, self.dtype, self.device)


@struct
class Facts:
    """What is wrong (`reason`), in which op, with which operands; code that would do; and the
    further facts by name."""

    reason: str = ""
    op: str = ""
    operands: tuple[OperandFacts, ...] = ()
    fix: str = ""
    more: Mapping[str, Any] = {}

    def rendered(self, text: str) -> str:
        """A message whose ``{}`` are filled in: ``{0.shape}`` is the first operand's; without an
        op the message does not begin with one."""
        text = text if self.op else text.removeprefix("{op}: ")
        return text.format(*self.operands, op=self.op, fix=self.fix, **self.more)


Error = TypeVar("Error", bound=BaseException)
_NONE = Facts()


def with_facts(error: Error, facts: Facts) -> Error:
    """An error with facts whose class does not take them: where PyTorch raises one of Python's own,
    and where an error of another process is raised again."""
    if facts.reason:
        error._facts = facts  # type: ignore[attr-defined]
    return error


def facts_of(error: BaseException | None) -> Facts:
    """The facts that antorcha gave an error of any class; none where it gave none. Nothing that the
    error's class defines is run."""
    if not issubclass(type(error), BaseException):
        return _NONE
    found = object.__getattribute__(error, "__dict__").get("_facts")
    return found if type(found) is Facts else _NONE


# ---- the classes ---------------------------------------------------------------------------------


class AntorchaError(Exception):
    """Base of every error of antorcha: ``except AntorchaError`` catches them all.

    With a `reason` the text is a template, which the facts fill in; without one it is the message.

    Example: ``pytest.raises(AntorchaError)`` holds for ``torch.ones(2) + torch.ones(3)``.

    >>> error = ShapeError("{op}: {0.shape} is no {what}", reason="square", op="inv",
    ...                    operands=[(3, 2)], what="square matrix")
    >>> str(error), error.reason, error.op, error.operands[0].shape, error.facts["what"]
    ('inv: (3, 2) is no square matrix', 'square', 'inv', (3, 2), 'square matrix')
    """

    _facts = _NONE

    def __init__(
        self, *args: object, reason: str = "", op: str = "", operands: Iterable[Any] = (),
        fix: str = "", **more: Any,
    ) -> None:  # fmt: skip
        if reason:
            told = tuple([_told(each) for each in operands])
            self._facts = Facts(reason, op, told, fix, more)
            args = (self._facts.rendered(str(args[0])), *args[1:])
        super().__init__(*args)

    @classmethod
    def of_dtype(cls, op: str, dtype: object, advice: str = "") -> Self:
        """What an op for real numbers says of another dtype."""
        text = "{op}: not implemented for {dtype}" + ("; {advice}" if advice else "")
        return cls(text, reason="needs float", op=op, dtype=dtype, advice=advice)

    @property
    def reason(self) -> str:
        """What is wrong, in a word or two that stay the same; "" where the error has no facts."""
        return self._facts.reason

    @property
    def op(self) -> str:
        """The name of the op that refused, where one did."""
        return self._facts.op

    @property
    def operands(self) -> tuple[OperandFacts, ...]:
        """The shape, dtype and device of the operands that do not fit."""
        return self._facts.operands

    @property
    def fix(self) -> str:
        """Code that would do, in the names of the op's parameters; "" where none is known."""
        return self._facts.fix

    @property
    def facts(self) -> Mapping[str, Any]:
        """The further facts by name, such as the `dim` and the `size` that an index is outside."""
        return self._facts.more


def _told(value: Any) -> OperandFacts:
    """What is told of a layout (or of anything with shape, dtype, device), or of a shape alone."""
    if hasattr(value, "dtype"):
        return OperandFacts(tuple(value.shape), value.dtype, value.device)
    return OperandFacts(tuple(value))


class ShapeError(AntorchaError, RuntimeError):
    """Sizes that do not fit together, or that no tensor can have.

    Example: ``torch.ones(3, 2) + torch.ones(4, 2)`` raises
    ``add: shapes (3, 2) and (4, 2) do not broadcast: at dimension 0, 3 and 4 differ and neither
    is 1``.
    """


class DtypeError(AntorchaError, RuntimeError):
    """An element type that the op does not take, or two types with no common one.

    Example: ``torch.promote_types(torch.uint16, torch.int8)`` raises
    ``promote_types: uint16 and int8 have no common dtype; convert one of them with .to(dtype)``.
    """


class DeviceError(AntorchaError, RuntimeError):
    """Operands on different devices, or a device that is not there.

    Example: ``torch.ones(2) + torch.ones(2, device="cuda")`` raises
    ``add: operands are on cpu and cuda:0; move one of them with .to(device)``.
    """


class ZeroDivisor(AntorchaError, RuntimeError, ZeroDivisionError):
    """Integers divided by 0, which they have no value for. PyTorch raises RuntimeError here.

    Example: ``torch.tensor([1, 2]) // torch.tensor([0, 1])`` raises
    ``floor_divide: ZeroDivisionError: the divisor, of torch.int64, has zeros; replace them first``.
    """


class NumberOverflow(AntorchaError, RuntimeError, OverflowError):
    """A number that the dtype it is meant for does not hold. PyTorch raises RuntimeError for some,
    OverflowError for ints beyond 64 bits.

    Example: ``torch.full((2,), 300, dtype=torch.uint8)`` raises
    ``full: value cannot be converted to type torch.uint8 without overflow: 300``.
    """


class GraphError(AntorchaError, RuntimeError):
    """A derivative that cannot be computed: freed graph, overwritten value, no path.

    Example: calling ``loss.backward()`` twice without ``retain_graph=True``.
    """


class OutOfRange(AntorchaError, IndexError):
    """A dimension or an index outside the tensor.

    Example: ``torch.ones(2, 3).sum(3)`` raises
    ``sum: dim 3 is out of range for a tensor of 2 dimensions (expected -2..1)``.
    """


class ArgumentError(AntorchaError, TypeError):
    """An argument of the wrong type, an unknown keyword, or a senseless setting.

    Example: ``torch.ones(2).sum(axes=0)`` raises
    ``sum: unexpected keyword 'axes'. Did you mean 'axis'?``.
    """


class ValueRangeError(AntorchaError, ValueError):
    """An argument of the right type with a value that is not allowed.

    Example: ``torch.arange(4)[::-1]`` raises ``step must be greater than zero``.
    """


class AcceleratorError(AntorchaError, RuntimeError):
    """What a GPU's driver reports; ``error_code`` is its number.

    Example: ``torch.ones(2, device="cuda:9")`` on a machine with one GPU.
    """

    error_code = 0


class OutOfMemoryError(AntorchaError, RuntimeError):
    """No memory on a GPU. (Without memory on the CPU PyTorch raises RuntimeError: so do we.)

    Example: ``torch.empty(1 << 40, device="cuda")``.
    """

    error_code = 2


class RandomError(ValueRangeError, RuntimeError):
    """A parameter that no distribution has. PyTorch raises RuntimeError here.

    Example: ``torch.empty(2).normal_(0, -1)`` raises
    ``normal_: normal expects std >= 0.0, but found std -1``.
    """


class NativeError(AntorchaError, TypeError):
    """A native function that the kernel language cannot compile; the message shows the line.

    Example: adding an ``i32`` to an ``f32`` in an ``@native`` function: nothing converts by itself.
    """


class MissingFeature(AntorchaError, NotImplementedError):
    """Part of PyTorch's interface that antorcha does not have (yet).

    Example: ``torch.empty(2, dtype=torch.qint8)``: antorcha knows the name of that dtype only.
    """


class MissingName(AttributeError):
    """A name that is not there. The one that was perhaps `meant`, or the text `instead` of all, is
    worked out only if somebody reads it: ``hasattr`` raises this too. Tracebacks call it
    AttributeError, and it is pickled as one.

    `obj` stays unset, or Python would add a second hint to ours.
    """

    __module__ = "builtins"
    __qualname__ = "AttributeError"

    def __init__(
        self, text: str, name: str, meant: Callable[[], str], instead: Callable[[], str] = str
    ) -> None:
        super().__init__(text, name=name)
        self._meant, self._instead = meant, instead

    def __str__(self) -> str:
        if instead := self._instead():
            return instead
        text, meant = super().__str__(), self._meant()
        return f"{text.rstrip('.')}.{_did_you_mean(meant)}" if meant else text

    def meant(self) -> str:
        """The name that was perhaps meant; "" where none is near, or PyTorch has this one."""
        return "" if self._instead() else self._meant()

    def __reduce__(self) -> tuple[Any, ...]:
        return AttributeError, (str(self),)


MissingName.__name__ = "AttributeError"


# ---- names and modules that are not there --------------------------------------------------------

NOT_YET = "PyTorch 2.13 has it, antorcha not yet. docs/coverage.md lists what there is."
Names: TypeAlias = "Iterable[str] | Callable[[], Iterable[str]]"


def no_such_name(module: str, name: str, names: Names) -> AttributeError | ImportError:
    """What a module's ``__getattr__`` raises: of a name that PyTorch has, that antorcha has it not
    yet; of any other, PyTorch's words, with a hint from the public ones of `names`.

    ``from torch.linalg import nrom`` gets an ImportError: Python would put its own in the place of
    an AttributeError, without the hint.

    >>> raise no_such_name("torch.linalg", "nrom", ["norm"])
    Traceback (most recent call last):
    AttributeError: module 'torch.linalg' has no attribute 'nrom'. Did you mean 'norm'?
    >>> print(no_such_name("torch.nn", "Fold2d", ["Fold"]))
    module 'torch.nn' has no attribute 'Fold2d'. Did you mean 'Fold'?
    """

    def meant() -> str:
        public = [each for each in (names() if callable(names) else names) if each[:1] != "_"]
        return nearest(name, public)

    if _is_from_import(name):
        text = f"cannot import name {name!r} from {module!r}."
        return ImportError(not_yet(module, name) or f"{text}{_did_you_mean(meant())}", name=module)
    text = f"module {module!r} has no attribute {name!r}."
    return MissingName(text, name, meant, lambda: not_yet(module, name))


def explain_missing(module: str, names: dict[str, Any]) -> None:
    """Give the module of those names (its ``globals()``) a ``__getattr__`` that speaks of it as
    PyTorch's `module`."""

    def __getattr__(name: str) -> Any:  # noqa: N807
        raise no_such_name(module, name, names)

    names.setdefault("__getattr__", __getattr__)


def no_such_module(module: str, siblings: Iterable[str] = ()) -> ModuleNotFoundError:
    """What the import of a module of PyTorch's raises that antorcha lacks."""
    child = module.rpartition(".")[2]
    if module in pytorch_names():
        return ModuleNotFoundError(f"{module}: {NOT_YET}", name=module)
    text = f"No module named {module!r}: antorcha does not have it.{did_you_mean(child, siblings)}"
    return ModuleNotFoundError(text, name=module)


class MissingModules:
    """The last of the import system's finders: ``import antorcha.export`` fails with our words."""

    @staticmethod
    def find_spec(fullname: str, path: object = None, target: object = None) -> None:
        """Finds nothing, and says so where somebody imports (a program may also only ask)."""
        package, _, rest = fullname.partition(".")
        if package == PACKAGE and f"torch.{rest}" in pytorch_names() and is_importing():
            raise ModuleNotFoundError(f"torch.{rest}: {NOT_YET}", name=fullname)


def is_importing() -> bool:
    """Is the finder that asks this called by an import? Else by ``importlib.util.find_spec``."""
    asker = sys._getframe(2).f_back  # (of the import system's loop over the finders)
    return asker is not None and asker.f_code.co_name == "_find_and_load_unlocked"


def not_yet(owner: str, name: str) -> str:
    """Says that PyTorch's `owner` has a name that antorcha's lacks; "" where neither has it.

    >>> not_yet("torch", "mtia"), not_yet("torch", "zebra")
    ('torch.mtia: PyTorch 2.13 has it, antorcha not yet. docs/coverage.md lists what there is.', '')
    """
    known = pytorch_names()
    if name in known.get(owner, ()) or f"{owner}.{name}" in known:
        return f"{owner}.{name}: {NOT_YET}"
    return ""


def missing_attribute_text(error: AttributeError) -> str:
    """What to say of an error that Python made of a Tensor's missing method, or a module's: Tensor
    has no ``__getattr__``, which would slow down every attribute. "" where Python's text is right.
    """
    face, owner, name = sys.modules.get(PACKAGE), error.obj, error.name
    tensor = getattr(face, "Tensor", None)
    if tensor is None or type(name) is not str:
        return ""
    if owner is tensor or isinstance(owner, tensor):
        return not_yet("torch.Tensor", name)
    if isinstance(owner, ModuleType) and owner.__name__.startswith(f"{PACKAGE}."):
        return not_yet(f"torch{owner.__name__.removeprefix(PACKAGE)}", name)
    return ""


@cache
def pytorch_names() -> dict[str, frozenset[str]]:
    """The public names of PyTorch by module (written by tools/list_pytorch_names.py)."""
    try:
        with open(os.path.join(OUR_FOLDER, "pytorch_names.txt"), encoding="utf-8") as file:
            lines = [line.partition(":") for line in file]
    except OSError:  # packed without it
        return {}
    return {owner: frozenset(names.split()) for owner, _, names in lines}


def _is_from_import(name: str) -> bool:
    """Does the program's line say ``from .. import name``? Its frame stands at that instruction."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and ours(frame):
        frame = frame.f_back
    if frame is None or frame.f_lasti < 0 or name not in frame.f_code.co_names:
        return False
    code, at = frame.f_code, frame.f_lasti
    if code.co_code[at] != opcode.opmap.get("IMPORT_FROM"):
        return False
    return code.co_code[at + 1] == code.co_names.index(name) & 255  # (a prefix holds the rest)


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the candidate nearest to `name`; ``""`` if none is.

    >>> did_you_mean("channel_last", ["channels_last", "contiguous_format"])
    " Did you mean 'channels_last'?"
    """
    return _did_you_mean(nearest(name, candidates))


def _did_you_mean(meant: str) -> str:
    return f" Did you mean '{meant}'?" if meant else ""


def nearest(name: str, candidates: Iterable[str]) -> str:
    """The candidate nearest to `name`; ``""`` if none is near. The name itself is no candidate.

    >>> nearest("matmul_", ["matmul", "mul"]), nearest("zebra", ["matmul", "mul"])
    ('matmul', '')
    """
    others = [candidate for candidate in candidates if candidate != name]
    near = difflib.get_close_matches(name, others, n=1, cutoff=0.7)
    return near[0] if near else ""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the program that called antorcha, however deep in antorcha we are."""
    if sys.version_info >= (3, 12):
        warnings.warn(message, category, skip_file_prefixes=(OUR_FOLDER,))
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and (ours(frame) or _is_import(frame)):
        level += not _is_import(frame)  # `warnings` does not count those
        frame = frame.f_back
    warnings.warn(message, category, stacklevel=level)


def ours(frame: FrameType) -> bool:
    """Does a frame run antorcha's own code?"""
    return frame.f_code.co_filename.startswith(OUR_FOLDER)


def _is_import(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith("<frozen importlib._bootstrap")


def shown(value: Any, most: int = 30) -> str:
    """A value's text, short enough for a message, and quickly made: nested lists may have any
    length. That a value has no text is no error."""
    shortened = reprlib.Repr()
    shortened.maxlevel = 3
    shortened.maxstring = shortened.maxother = shortened.maxlong = most
    try:
        return shortened.repr(value)[:most]
    except Exception:
        return f"a {type(value).__name__}"


def operand(shape: Sequence[int], dtype: object = None, device: object = None) -> str:
    """Format one operand for a message: its shape, then its dtype and device where given.

    >>> operand((3, 2), "float32")
    '(3, 2) float32'
    >>> operand((4,), "int64", "cuda:0")
    '(4,) int64 cuda:0'
    """
    words = [str(tuple(shape))]
    if dtype is not None:
        words.append(str(getattr(dtype, "name", dtype)))
    if device is not None:
        words.append(str(device))
    return " ".join(words)


def listed(words: Sequence[object], joint: str = "and") -> str:
    """Join words for a sentence.

    >>> listed([(3, 2), (4, 2), (2,)])
    '(3, 2), (4, 2) and (2,)'
    """
    texts = [str(word) for word in words]
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} {joint} {texts[-1]}"


def labelled(op: str, message: str) -> str:
    """Put the op's name before a message; `op` may be empty where the caller has no name.

    >>> labelled("sum", "dim 3 is out of range"), labelled("", "dim 3 is out of range")
    ('sum: dim 3 is out of range', 'dim 3 is out of range')
    """
    return f"{op}: {message}" if op else message
