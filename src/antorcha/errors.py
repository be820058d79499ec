"""The exceptions that antorcha raises, and the words they share.

Each class says what kind of mistake was made and also derives from the builtin that PyTorch raises
in its place, so ``except RuntimeError`` in a program written for PyTorch keeps working. A message
names the op first, then shows the operands, then says the fix where one is likely.
"""

from __future__ import annotations

import os
import reprlib
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any


class AntorchaError(Exception):
    """Base of every error of antorcha: ``except AntorchaError`` catches them all.

    Example: ``pytest.raises(AntorchaError)`` holds for ``torch.ones(2) + torch.ones(3)``.
    """


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

    Example: ``torch.ones(2).to_sparse()`` raises ``to_sparse: sparse tensors are not supported``.
    """


class MissingName(AttributeError):
    """A name that is not there. Its hint is worked out only if somebody reads it: ``hasattr``
    raises this too. Tracebacks call it AttributeError, and it is pickled as one.

    `obj` stays unset, or Python would add a second hint to ours.
    """

    __module__ = "builtins"
    __qualname__ = "AttributeError"

    def __init__(self, text: str, name: str, hint: Callable[[], str]) -> None:
        super().__init__(text, name=name)
        self._hint = hint

    def __str__(self) -> str:
        text, hint = super().__str__(), self._hint()
        return f"{text.rstrip('.')}.{hint}" if hint else text

    def __reduce__(self) -> tuple[Any, ...]:
        return AttributeError, (str(self),)


MissingName.__name__ = "AttributeError"


def no_such_name(module: str, name: str, names: Iterable[str]) -> MissingName:
    """What a module's ``__getattr__`` raises: PyTorch's words, with a hint from its names.

    >>> raise no_such_name("torch.linalg", "nrom", ["norm"])
    Traceback (most recent call last):
    AttributeError: module 'torch.linalg' has no attribute 'nrom'. Did you mean 'norm'?
    """
    text = f"module {module!r} has no attribute {name!r}."
    return MissingName(text, name, lambda: did_you_mean(name, names))


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the candidate nearest to `name`; ``""`` if none is.

    The name itself is no hint.

    >>> did_you_mean("channel_last", ["channels_last", "contiguous_format"])
    " Did you mean 'channels_last'?"
    >>> did_you_mean("matmul_", ["matmul", "mul"])
    " Did you mean 'matmul'?"
    >>> did_you_mean("zebra", ["matmul", "mul"])
    ''
    """
    import difflib  # slow to import, and needed only when an error is raised

    others = [candidate for candidate in candidates if candidate != name]
    near = difflib.get_close_matches(name, others, n=1, cutoff=0.7)
    return f" Did you mean '{near[0]}'?" if near else ""


_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the program that called antorcha, however deep in antorcha we are."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


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
