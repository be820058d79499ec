"""The printed text of tensors: PyTorch 2.13's, character for character.

Nothing here knows a Tensor. What is printed is a NumPy array, or a `Readable`: anything with a
shape that hands out its elements as a NumPy array, only those at the edges when the text will be
summarised (a tensor on another device, or one of ten billion elements, never comes over whole).

The steps: read what will be shown; look at all of it to choose one number format (`_Floats`,
`_Words`); lay the texts out in nested brackets, broken at the line width; append the suffixes
(``dtype=``, ``grad_fn=``), each on the last line while it fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from antorcha.core import dtypes, float8
from antorcha.core.lazy import np
from antorcha.errors import ArgumentError, ValueRangeError, did_you_mean

if TYPE_CHECKING:
    import numpy as np


class Readable(Protocol):
    """What can be printed beside a NumPy array."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def read_edges(self, edgeitems: int | None) -> np.ndarray[Any, Any]:
        """Give the elements as an array of as many dims.

        With None all of them; else of each dim longer than ``2 * edgeitems`` only that many of its
        first and of its last ones (`edge_indices` lists them).
        """
        ...


# Options ---------------------------------------------------------------------------------------


class PrintOptions(NamedTuple):
    """How tensors print; `sci_mode` None means that the values decide."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}

_options = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print; what is not given stays, except `sci_mode`, which goes back to None.

    Args:
        precision: digits after the point (4).
        threshold: more elements than this are summarised with ``...`` (1000).
        edgeitems: items shown at both ends of a summarised dimension (3).
        linewidth: characters in a line (80).
        profile: "default", "short" (2 digits, 2 items) or "full" (never summarise).
        sci_mode: True or False to force or forbid 1.0000e+00.
    """
    global _options
    new = _options
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueRangeError(
                f"set_printoptions: profile {profile!r} must be one of {', '.join(_PROFILES)}."
                + did_you_mean(str(profile), _PROFILES)
            )
        new = _PROFILES[profile]
    given: dict[str, Any] = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    for name, value in given.items():
        if value is not None and (not isinstance(value, (int, float)) or value < 0):
            raise ArgumentError(f"set_printoptions: {name}={value!r} must be a number, 0 or more")
    new = new._replace(**{name: value for name, value in given.items() if value is not None})
    _options = new._replace(sci_mode=sci_mode)


def get_printoptions() -> dict[str, Any]:
    """The options as a dictionary that `set_printoptions` takes."""
    return _options._asdict()


@contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Set options (those of `set_printoptions`) for the length of a ``with`` block."""
    global _options
    before = _options
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        _options = before


# The text of a whole tensor --------------------------------------------------------------------


def tensor_repr(
    source: np.ndarray[Any, Any] | Readable,
    *,
    dtype: dtypes.dtype,
    device: str = "",
    grad_fn: str = "",
    requires_grad: bool = False,
    tangent: str = "",
    name: str = "tensor",
    is_meta: bool = False,
    options: PrintOptions | None = None,
) -> str:
    """Return ``repr(tensor)``.

    `device` is shown when given: the caller leaves it out for the default device. `grad_fn` is the
    node's name; `name` that of the class, for subclasses. Of a meta tensor only the shape is read.
    """
    options = options or _options
    suffixes = [f"device='{device}'"] if device else []
    suffixes += _type_suffixes(source.shape, dtype, is_meta, options)
    if grad_fn:
        suffixes.append(f"grad_fn=<{grad_fn}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    if tangent:
        suffixes.append(f"tangent={tangent}")
    if is_meta:
        return with_suffixes(f"{name}(...", suffixes, len(name) + 1, options)
    return format_tensor(source, dtype=dtype, suffixes=suffixes, name=name, options=options)


def parameter_repr(text: str) -> str:
    """The text of a Parameter, from the text of the tensor that it is."""
    return f"Parameter containing:\n{text}"


def format_tensor(
    source: np.ndarray[Any, Any] | Readable,
    *,
    dtype: dtypes.dtype,
    suffixes: Sequence[str] = (),
    name: str = "tensor",
    options: PrintOptions | None = None,
) -> str:
    """Return ``name([...], suffix, ...)`` with suffixes that the caller has chosen."""
    options = options or _options
    indent = len(name) + 1
    contents = format_contents(source, dtype=dtype, indent=indent, options=options)
    return with_suffixes(f"{name}({contents}", suffixes, indent, options)


def _type_suffixes(
    shape: Sequence[int], dtype: dtypes.dtype, is_meta: bool, options: PrintOptions
) -> list[str]:
    """``size=`` and ``dtype=``, each only where the elements shown do not tell it."""
    is_empty = 0 in shape
    if is_meta:
        shows_size = True
    elif is_empty:
        shows_size = len(shape) != 1
    else:
        shows_size = options.edgeitems == 0
    default = dtypes.get_default_dtype()
    known_by_sight = [default]
    if not (is_empty or is_meta):
        default_complex = dtypes.complex128 if default is dtypes.float64 else dtypes.complex64
        known_by_sight += [default_complex, dtypes.int64, dtypes.bool_]
    suffixes = [f"size={tuple(shape)}"] if shows_size else []
    if dtype not in known_by_sight:
        suffixes.append(f"dtype={dtype}")
    return suffixes


def with_suffixes(
    text: str,
    suffixes: Sequence[str],
    indent: int,
    options: PrintOptions,
    force_newline: bool = False,
) -> str:
    """The text with ``, suffix`` for each, on a new line where the line is full (the first one also
    for `force_newline`), and the closing bracket."""
    pieces = [text]
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or column + len(suffix) + 2 > options.linewidth:
            force_newline = False
            pieces.append(f",\n{' ' * indent}{suffix}")
            column = indent + len(suffix)
        else:
            pieces.append(f", {suffix}")
            column += len(suffix) + 2
    pieces.append(")")
    return "".join(pieces)


# Elements --------------------------------------------------------------------------------------


def format_contents(
    source: np.ndarray[Any, Any] | Readable,
    *,
    dtype: dtypes.dtype,
    indent: int,
    options: PrintOptions,
) -> str:
    """The nested brackets alone, for a text that starts in column `indent`."""
    shape = tuple(source.shape)
    if 0 in shape:
        return "[]"
    summarize = bool(shape) and math.prod(shape) > options.threshold
    edgeitems = options.edgeitems if summarize else None
    if edgeitems == 0:
        return "[...]"
    values = _read(source, edgeitems).reshape(-1)
    texts, width = _element_texts(values, dtype, options)
    per_line = max(1, math.floor((options.linewidth - indent - len(shape) + 1) / (width + 2)))
    return _Layout(shape, texts, per_line, edgeitems).text(indent)


def _read(source: np.ndarray[Any, Any] | Readable, edgeitems: int | None) -> np.ndarray[Any, Any]:
    if not isinstance(source, np.ndarray):
        return np.asarray(source.read_edges(edgeitems))
    if edgeitems is None:
        return source
    edges: np.ndarray[Any, Any] = source[np.ix_(*edge_indices(source.shape, edgeitems))]
    return edges


def edge_indices(shape: Sequence[int], edgeitems: int) -> list[list[int]]:
    """Per dim the indices that a summary shows.

    >>> edge_indices((2, 100), 3)
    [[0, 1], [0, 1, 2, 97, 98, 99]]
    """
    return [
        [*range(edgeitems), *range(size - edgeitems, size)]
        if size > 2 * edgeitems
        else list(range(size))
        for size in shape
    ]


class _Layout(NamedTuple):
    """Nested brackets around the texts of the elements, which come in row-major order."""

    shape: tuple[int, ...]
    texts: list[str]
    per_line: int
    edgeitems: int | None

    def text(self, indent: int) -> str:
        return self._block(0, 0, indent)[0]

    def _block(self, dim: int, start: int, indent: int) -> tuple[str, int]:
        """The text of one sub-tensor, whose texts begin at `start`, and where they end."""
        if dim == len(self.shape):
            return self.texts[start], start + 1
        shown, cut_at = self._shown(dim)
        if dim == len(self.shape) - 1:
            end = start + shown
            items = self.texts[start:end]
            if cut_at:
                items.insert(cut_at, " ...")
            return self._row(items, indent), end
        blocks = []
        for _ in range(shown):
            block, start = self._block(dim + 1, start, indent + 1)
            blocks.append(block)
        if cut_at:
            blocks.insert(cut_at, "...")
        newlines = "\n" * (len(self.shape) - dim - 1)
        joint = f",{newlines}{' ' * (indent + 1)}"
        return f"[{joint.join(blocks)}]", start

    def _shown(self, dim: int) -> tuple[int, int]:
        """How many items of this dim were read, and before which of them "..." stands (0: none)."""
        size = self.shape[dim]
        if self.edgeitems is None or size <= 2 * self.edgeitems:
            return size, 0
        return 2 * self.edgeitems, self.edgeitems

    def _row(self, items: list[str], indent: int) -> str:
        lines = [
            ", ".join(items[first : first + self.per_line])
            for first in range(0, len(items), self.per_line)
        ]
        joint = f",\n{' ' * (indent + 1)}"
        return f"[{joint.join(lines)}]"


def _element_texts(
    values: np.ndarray[Any, Any], dtype: dtypes.dtype, options: PrintOptions
) -> tuple[list[str], int]:
    """The texts of all elements, right-aligned, and the width to count for one in a line."""
    if dtype.is_complex:
        real = _Floats(values.real, options)
        imag = _Floats(values.imag, options)
        # The "j" is counted, the "+" between the parts is not: PyTorch's count.
        return _complex_texts(values, real, imag), real.width + imag.width + 1
    if dtype.is_floating_point:
        floats = _Floats(values, options)
        return [floats.text(value) for value in floats.values.tolist()], floats.width
    words = [str(value) for value in values.tolist()]
    width = max(map(len, words))
    return [word.rjust(width) for word in words], width


def _complex_texts(values: np.ndarray[Any, Any], real: _Floats, imag: _Floats) -> list[str]:
    texts = []
    for real_part, imag_part in zip(real.values.tolist(), imag.values.tolist(), strict=True):
        imag_text = imag.text(imag_part).lstrip()
        sign = "" if imag_text[0] in "+-" else "+"
        texts.append(f"{real.text(real_part)}{sign}{imag_text}j")
    return texts


class _Floats:
    """One format for all floats of a tensor: whole numbers ("2."), fixed ("2.5000") or scientific.

    What has to be aligned decides: only values that are finite and not zero count.
    """

    def __init__(self, values: np.ndarray[Any, Any], options: PrintOptions) -> None:
        self.values = values.astype(np.float64)  # exact, also from bfloat16
        self.width = 1
        self.spec = ".0f"
        self.point = "."
        counts = np.isfinite(self.values) & (self.values != 0)
        if values.dtype.name == "float8_e8m0fnu":  # no zero, no infinity; PyTorch counts its NaN
            counts = self.values != float8.ZERO_E8M0
        counted = self.values[counts]
        if counted.size == 0:
            return
        magnitudes = np.abs(counted)
        if _needs_exponent(float(magnitudes.min()), float(magnitudes.max()), options):
            self.spec, self.point = f".{options.precision}e", ""
        elif not (counted == np.ceil(counted)).all():
            self.spec, self.point = f".{options.precision}f", ""
        self.width = max(len(format(value, self.spec)) for value in counted.tolist())
        self.width += len(self.point)

    def text(self, value: float) -> str:
        text = format(value, self.spec)
        if self.point and math.isfinite(value):
            text += self.point
        return text.rjust(self.width)


def _needs_exponent(least: float, greatest: float, options: PrintOptions) -> bool:
    if options.sci_mode is not None:
        return options.sci_mode
    return greatest / least > 1000.0 or greatest > 1.0e8 or least < 1.0e-4
