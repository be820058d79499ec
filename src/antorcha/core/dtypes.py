"""Element types, PyTorch's promotion rules, and the limits of each type.

A `dtype` is made once and compared by identity: ``torch.float32 is torch.float``, also after
pickling. Promotion follows c10's ``promoteTypes`` and ATen's ``result_type``, uint16, uint32 and
uint64 included: these three only meet themselves and the floating types.

This module imports nothing heavy: NumPy (and ml_dtypes, for bfloat16) come when ``dtype.np`` is
first read.
"""

from __future__ import annotations

import builtins
import math
import numbers
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

from antorcha.core.lazy import lazy, np
from antorcha.errors import ArgumentError, DtypeError

ml_dtypes = lazy("ml_dtypes")

if TYPE_CHECKING:
    import numpy


class dtype:
    """The type of a tensor's elements; not to be made by users.

    `kind` is NumPy's letter ('b' bool, 'u' unsigned, 'i' signed, 'f' floating, 'c' complex), `code`
    a small integer that indexes tables (its place in `ALL`), `abbr` a short name, `np` the NumPy
    dtype.
    """

    __slots__ = (
        "abbr",
        "code",
        "is_complex",
        "is_floating_point",
        "is_signed",
        "itemsize",
        "kind",
        "name",
        "np",
    )

    name: str
    itemsize: int
    kind: str
    code: int
    abbr: str
    is_floating_point: builtins.bool
    is_complex: builtins.bool
    is_signed: builtins.bool
    np: numpy.dtype[Any]

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        raise ArgumentError(
            "cannot create 'torch.dtype' instances; use the ones there are, such as torch.float32"
        )

    def __getattr__(self, attribute: str) -> Any:
        # Runs only for what is not set: the slot `np`, until it is first read.
        if attribute != "np":
            raise AttributeError(f"'torch.dtype' object has no attribute '{attribute}'")
        self.np = _numpy_dtype(self.name)
        return self.np

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return by_name, (self.name,)

    def to_real(self) -> dtype:
        """The type of the real part: float32 for complex64; itself when not complex."""
        return _TO_REAL.get(self, self)

    def to_complex(self) -> dtype:
        """The complex type with parts of this type (float16 has none here: complex64)."""
        complex_type = self if self.is_complex else _TO_COMPLEX.get(self)
        if complex_type is None:
            raise DtypeError(f"to_complex: {self.name} has no complex type; use a floating dtype")
        return complex_type


def _make(name: str, kind: str, itemsize: int) -> dtype:
    result = object.__new__(dtype)
    result.name = name
    result.kind = kind
    result.itemsize = itemsize
    result.code = -1 if kind == "?" else len(_REGISTRY)
    letter = "bf" if name == "bfloat16" else "b" if kind == "b" else kind
    result.abbr = f"f8{name[7:]}" if name.startswith("float8") else f"{letter}{8 * itemsize}"
    result.is_floating_point = kind == "f"
    result.is_complex = kind == "c"
    result.is_signed = kind in "ifc" and name != "float8_e8m0fnu"
    (_NAMES_ONLY if kind == "?" else _REGISTRY)[name] = result
    return result


_REGISTRY: Final[dict[str, dtype]] = {}
_NAMES_ONLY: Final[dict[str, dtype]] = {}

bool_ = _make("bool", "b", 1)
uint8 = _make("uint8", "u", 1)
uint16 = _make("uint16", "u", 2)
uint32 = _make("uint32", "u", 4)
uint64 = _make("uint64", "u", 8)
int8 = _make("int8", "i", 1)
int16 = _make("int16", "i", 2)
int32 = _make("int32", "i", 4)
int64 = _make("int64", "i", 8)
float16 = _make("float16", "f", 2)
bfloat16 = _make("bfloat16", "f", 2)
float32 = _make("float32", "f", 4)
float64 = _make("float64", "f", 8)
complex64 = _make("complex64", "c", 8)
complex128 = _make("complex128", "c", 16)
float8_e5m2 = _make("float8_e5m2", "f", 1)
float8_e4m3fn = _make("float8_e4m3fn", "f", 1)
float8_e5m2fnuz = _make("float8_e5m2fnuz", "f", 1)
float8_e4m3fnuz = _make("float8_e4m3fnuz", "f", 1)
float8_e8m0fnu = _make("float8_e8m0fnu", "f", 1)

ALL: Final[tuple[dtype, ...]] = tuple(_REGISTRY.values())

for _name in (
    "qint8",
    "quint8",
    "quint4x2",
    "quint2x4",
    "bits8",
    "bits1x8",
    "bits2x4",
    "bits4x2",
    "float4_e2m1fn_x2",
    *[f"{sign}int{n}" for sign in ("", "u") for n in range(1, 8)],
):
    _make(_name, "?", 1)  # fmt: skip
_make("bits16", "?", 2)
_make("qint32", "?", 4)
complex32 = _make("complex32", "?", 4)
complex32.is_complex = True
for _each in _NAMES_ONLY.values():
    _each.is_signed = _each.name.startswith(("qint", "int", "complex"))
_NAMES_ONLY["float4_e2m1fn_x2"].is_floating_point = True

NAMES_ONLY: Final[tuple[dtype, ...]] = tuple(_NAMES_ONLY.values())
"""The types that programs name (quantized, of few bits, complex of halves) and of which there are
no tensors here."""

FLOAT8: Final = frozenset(name for name in _REGISTRY if name.startswith("float8"))
"""The types whose numbers are stored, moved and converted, but not computed with."""
BEYOND_NUMPY: Final = FLOAT8 | {"bfloat16"}
"""The types that NumPy has from ml_dtypes only."""

ALIASES: Final[dict[str, dtype]] = {
    "half": float16,
    "float": float32,
    "double": float64,
    "short": int16,
    "int": int32,
    "long": int64,
    "chalf": complex32,
    "cfloat": complex64,
    "cdouble": complex128,
}

_TO_REAL: Final = {complex64: float32, complex128: float64}
_TO_COMPLEX: Final = {
    float16: complex64,
    bfloat16: complex64,
    float32: complex64,
    float64: complex128,
}


def by_name(name: str) -> dtype:
    """Look a dtype up by its name or alias, with or without "torch." before it.

    >>> by_name("torch.float32") is by_name("float")
    True
    """
    bare = name.removeprefix("torch.")
    found = _REGISTRY.get(bare) or ALIASES.get(bare) or _NAMES_ONLY.get(bare)
    if found is None:
        raise ArgumentError(f"there is no dtype {name!r}; there are {', '.join(_REGISTRY)}")
    return found


def _numpy_dtype(name: str) -> numpy.dtype[Any]:
    if name in BEYOND_NUMPY:
        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return found
    return np.dtype(name)


def from_numpy(np_dtype: Any) -> dtype:
    """Return the dtype of a NumPy dtype (or of anything that ``numpy.dtype`` takes).

    >>> from_numpy("float32")
    torch.float32
    """
    given = np.dtype(np_dtype)
    found = _REGISTRY.get(given.name)  # ml_dtypes registers "bfloat16" under that name
    if found is None:
        raise ArgumentError(
            f"from_numpy: no dtype for NumPy's {given}; there are {', '.join(_REGISTRY)}"
        )
    if not given.isnative:
        raise ArgumentError(
            f"from_numpy: {given!r} has another byte order; use a.astype(a.dtype.newbyteorder('='))"
        )
    return found


# Promotion -------------------------------------------------------------------------------------

_KIND_RANK: Final = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_LONE_UNSIGNED: Final = frozenset({uint16, uint32, uint64})


def _promote(a: dtype, b: dtype) -> dtype | None:
    """The rule behind the table; None where PyTorch refuses."""
    if a is b:
        return a
    if a.name in FLOAT8 or b.name in FLOAT8:
        return None
    low, high = sorted((a, b), key=lambda t: (_KIND_RANK[t.kind], t.itemsize))
    if low in _LONE_UNSIGNED or high in _LONE_UNSIGNED:
        return high if high.is_floating_point else None
    if high.is_complex:
        return complex128 if float64 in (low, high) or complex128 in (low, high) else complex64
    if low.is_floating_point and high.itemsize == 2:  # float16 and bfloat16 hold neither the other
        return float32
    if low.kind == "u" or high.kind == "u":
        return int16 if int8 in (low, high) else high
    return high


_PROMOTED: Final = tuple(tuple(_promote(a, b) for b in ALL) for a in ALL)


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest type that both may be converted to, as PyTorch's table has it.

    >>> promote_types(int32, float16), promote_types(uint8, int8)
    (torch.float16, torch.int16)
    """
    _require_dtype("promote_types", type1)
    _require_dtype("promote_types", type2)
    known = type1.code >= 0 and type2.code >= 0
    common = _PROMOTED[type1.code][type2.code] if known else None
    if common is None and (type1.name in FLOAT8 or type2.name in FLOAT8):
        raise DtypeError(
            "promote_types: Promotion for Float8 Types is not supported, attempted to promote "
            f"{type1.name} and {type2.name}; cast with .to(dtype) first"
        )
    if common is None:
        raise DtypeError(
            f"promote_types: {type1.name} and {type2.name} have no common dtype; "
            "convert one of them with .to(dtype)"
        )
    return common


def _promote_all(types: Iterable[dtype]) -> dtype | None:
    common: dtype | None = None
    for each in types:
        common = each if common is None else promote_types(common, each)
    return common


def result_type(
    dimensioned: Sequence[dtype], zero_dim: Sequence[dtype] = (), scalars: Sequence[type] = ()
) -> dtype:
    """The result type of an op over tensors with dimensions, 0-dim tensors, and Python scalars.

    Each group is promoted by itself; a lower group then counts only where it is of a higher kind:
    an int tensor and a 0-dim float64 give float64, a float32 tensor and a 0-dim float64 stay
    float32.

    >>> result_type([int32], [], [float]), result_type([float16], [float64])
    (torch.float32, torch.float16)
    """
    common = _combine(
        _promote_all(dimensioned),
        _combine(_promote_all(zero_dim), _promote_all(scalar_dtype(s) for s in scalars)),
    )
    if common is None:
        raise ArgumentError("result_type: needs at least one operand")
    return common


def _combine(higher: dtype | None, lower: dtype | None) -> dtype | None:
    """ATen's ``combine_categories``: the group of higher priority decides, up to the kind."""
    if higher is None or lower is None:
        return higher or lower
    if higher.is_complex:
        return higher
    if higher.is_floating_point:
        return higher.to_complex() if lower.is_complex else higher
    if lower.is_complex:
        return lower
    if higher is bool_ or lower.is_floating_point:
        return promote_types(higher, lower)
    return higher


def scalar_dtype(scalar_type: type) -> dtype:
    """The dtype that a Python (or NumPy) scalar of this type stands for: int64 for int, ..."""
    if scalar_type is float or issubclass(scalar_type, float):
        return _default_dtype
    if issubclass(scalar_type, builtins.bool):
        return bool_
    if issubclass(scalar_type, numbers.Integral):
        return int64
    if issubclass(scalar_type, numbers.Real):
        return _default_dtype
    if issubclass(scalar_type, numbers.Complex):
        return get_default_complex_dtype()
    if scalar_type.__name__ in ("bool", "bool_"):  # NumPy's, which no number class knows
        return bool_
    raise ArgumentError(f"expected a number, got {scalar_type.__name__}")


def holds(dtype: dtype, value: Any) -> bool:
    """Whether a Python number can be written to a tensor of the dtype, as PyTorch decides it: a
    negative int wraps in an unsigned dtype, inf and nan are floats, a fraction is cut off.

    >>> holds(uint8, -2), holds(uint8, 300), holds(uint8, -2.0), holds(int8, 1.5), holds(int8, 1j)
    (True, False, False, True, False)
    """
    if dtype.kind == "b":
        return True
    if isinstance(value, complex) and (dtype.kind == "c" or value.imag):
        return dtype.kind == "c"
    real = value.real
    if dtype.kind in "iu":
        top = iinfo(dtype).max
        low = -top if dtype.kind == "u" and isinstance(value, int) else iinfo(dtype).min
        return bool(low <= real <= top)
    if isinstance(real, float) and not math.isfinite(real):
        return True
    return bool(abs(real) <= finfo(dtype).max)


def can_cast(from_: dtype, to: dtype) -> builtins.bool:
    """Whether an op may store a result of type `from_` in an output of type `to`.

    What is lost must not be a kind: complex to real, floating to integer and number to bool are
    refused.

    >>> can_cast(float64, float32), can_cast(float32, int64)
    (True, False)
    """
    _require_dtype("can_cast", from_)
    _require_dtype("can_cast", to)
    return _KIND_RANK[from_.kind] <= _KIND_RANK[to.kind]


# The default dtype -----------------------------------------------------------------------------

_default_dtype = float32


def get_default_dtype() -> dtype:
    """The type of tensors made from Python floats."""
    return _default_dtype


def get_default_complex_dtype() -> dtype:
    """The type of tensors made from Python complex numbers; follows the default dtype."""
    return _default_dtype.to_complex()


def set_default_dtype(d: dtype) -> None:
    """Set the type of tensors made from Python floats: a floating dtype."""
    global _default_dtype
    if type(d) is not dtype or not d.is_floating_point:
        raise ArgumentError(
            "set_default_dtype: only floating-point types are supported as the default type, "
            f"got {d!r}"
        )
    if d is not _default_dtype:
        _default_dtype = d
        for each in on_new_default:
            each()


on_new_default: list[Callable[[], object]] = []
"""What is to be forgotten when the default dtype becomes another: plans were made with the old."""


# Limits ----------------------------------------------------------------------------------------

#: name -> (bits of the significand after the point, largest exponent, decimal digits always kept)
_FORMATS: Final = {
    "float16": (10, 15, 3),
    "bfloat16": (7, 127, 2),
    "float32": (23, 127, 6),
    "float64": (52, 1023, 15),
}
#: name -> (eps, largest number, smallest normal one); these formats keep few or no special values
_FORMATS_8: Final = {
    "float8_e5m2": (2.0**-2, 57344.0, 2.0**-14),
    "float8_e4m3fn": (2.0**-3, 448.0, 2.0**-6),
    "float8_e5m2fnuz": (2.0**-3, 57344.0, 2.0**-15),
    "float8_e4m3fnuz": (2.0**-3, 240.0, 2.0**-7),
    "float8_e8m0fnu": (1.0, 2.0**127, 2.0**-127),
}


class finfo:
    """Limits of a floating type (for a complex one: of its parts).

    >>> finfo(float16)
    finfo(resolution=0.001, min=-65504, max=65504, eps=0.000976562, smallest_normal=6.10352e-05, \
tiny=6.10352e-05, dtype=float16)
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, type: dtype | None = None) -> None:
        given = get_default_dtype() if type is None else type
        _require_dtype("finfo", given)
        real = given.to_real()
        if not real.is_floating_point:
            raise ArgumentError(
                f"finfo: {given.name} is not a floating-point type; use torch.iinfo({given!r})"
            )
        self.dtype = real.name
        self.bits = 8 * real.itemsize
        if real.name in FLOAT8:
            self.eps, self.max, self.smallest_normal = _FORMATS_8[real.name]
            self.resolution = 1.0
        else:
            significand, exponent, digits = _FORMATS[real.name]
            self.eps = 2.0**-significand
            self.max = math.ldexp(2.0 - self.eps, exponent)
            self.smallest_normal = 2.0 ** (1 - exponent)
            self.resolution = float(f"1e-{digits}")
        self.min = self.smallest_normal if real is float8_e8m0fnu else -self.max  # (no sign)
        self.tiny = self.smallest_normal

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )

    def __eq__(self, other: object) -> builtins.bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((finfo, self.dtype))


class iinfo:
    """Limits of an integer type.

    >>> iinfo(int8)
    iinfo(min=-128, max=127, dtype=int8)
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type: dtype) -> None:
        _require_dtype("iinfo", type)
        if type is bool_:
            raise ArgumentError("iinfo: torch.bool is not supported by torch.iinfo")
        if type.kind not in "ui":
            raise ArgumentError(
                f"iinfo: {type.name} is not an integer type; use torch.finfo({type!r})"
            )
        self.dtype = type.name
        self.bits = 8 * type.itemsize
        value_bits = self.bits - type.is_signed
        self.max = 2**value_bits - 1
        self.min = -(2**value_bits) if type.is_signed else 0

    def __repr__(self) -> str:
        # PyTorch prints these as C++ doubles.
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

    def __eq__(self, other: object) -> builtins.bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((iinfo, self.dtype))


def _require_dtype(op: str, value: object) -> None:
    if not isinstance(value, dtype):
        raise ArgumentError(f"{op}: expected a dtype, got {type(value).__name__}")
