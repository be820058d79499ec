"""The dtypes of the array API standard: promotion, kinds, limits.

See https://data-apis.org/array-api/latest/API_specification/type_promotion.html.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from antorcha.core import dtypes as d
from antorcha.core.device import CPU
from antorcha.core.dtypes import dtype as DType
from antorcha.errors import ArgumentError, DtypeError
from antorcha.runtime.tensor import Tensor

SIGNED = (d.int8, d.int16, d.int32, d.int64)
UNSIGNED = (d.uint8, d.uint16, d.uint32, d.uint64)
REAL = (d.float32, d.float64)
COMPLEX = (d.complex64, d.complex128)
KINDS: dict[str, tuple[DType, ...]] = {
    "bool": (d.bool_,), "signed integer": SIGNED, "unsigned integer": UNSIGNED,
    "integral": SIGNED + UNSIGNED, "real floating": REAL, "complex floating": COMPLEX,
    "numeric": SIGNED + UNSIGNED + REAL + COMPLEX,
}  # fmt: skip
ALL = KINDS["bool"] + KINDS["numeric"]


def common_dtype(a: DType, b: DType) -> DType:
    """The dtype of a result of operands of two dtypes, whatever their shapes."""
    if a is b:
        return a
    if a.kind not in "iu" or b.kind not in "iu" or a.kind == b.kind:
        if a.kind == b.kind == "u":
            return a if a.itemsize > b.itemsize else b
        return d.promote_types(a, b)
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    size = max(signed.itemsize, 2 * unsigned.itemsize)
    if size > 8:
        raise DtypeError(f"{signed} and {unsigned} have no common dtype: cast one of them")
    return d.by_name(f"int{8 * size}")


def dtype_of(value: Any) -> DType:
    """The dtype of an array, or the dtype itself."""
    if isinstance(value, Tensor):
        return value._layout.dtype
    if isinstance(value, DType):
        return value
    raise ArgumentError(f"an array or a dtype is wanted, not {type(value).__name__}")


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype that operands, or dtypes, have in common; Python numbers take that of the arrays of
    their kind.

    >>> xp.result_type(xp.uint16, xp.int16)
    torch.int32
    """
    found = [dtype_of(each) for each in arrays_and_dtypes if not isinstance(each, _NUMBERS)]
    if not found:
        raise ArgumentError("result_type: at least one array or dtype is wanted")
    result = found[0]
    for each in found[1:]:
        result = common_dtype(result, each)
    for each in arrays_and_dtypes:
        if isinstance(each, _NUMBERS):
            result = beside_number(result, each)
    return result


_NUMBERS = (bool, int, float, complex)


def beside_number(dtype: DType, number: Any) -> DType:
    """The dtype of a result of an array of ``dtype`` and a Python number."""
    return d.result_type([dtype], [], [type(number)])


def can_cast(from_: Any, to: DType, /) -> bool:
    """Does promotion lead from one dtype to the other?

    >>> xp.can_cast(xp.int8, xp.int16)
    True
    """
    try:
        return common_dtype(dtype_of(from_), to) is to
    except DtypeError:
        return False


def isdtype(dtype: DType, kind: Any) -> bool:
    """Is a dtype of a kind: another dtype, a name such as ``'real floating'``, or one of several?

    >>> xp.isdtype(xp.float32, ("integral", "real floating"))
    True
    """
    if isinstance(kind, tuple):
        return any([isdtype(dtype, each) for each in kind])
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ArgumentError(f"isdtype: {kind!r} is no kind: they are {', '.join(KINDS)}")
        return dtype in KINDS[kind]
    return dtype is kind


class finfo_object(NamedTuple):
    """The limits of a floating dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class iinfo_object(NamedTuple):
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: Any, /) -> finfo_object:
    """The limits of a floating dtype (of a complex one: of its parts)."""
    real = dtype_of(type).to_real()
    found = d.finfo(real)
    return finfo_object(found.bits, found.eps, found.max, found.min, found.smallest_normal, real)


def iinfo(type: Any, /) -> iinfo_object:
    """The limits of an integer dtype."""
    dtype = dtype_of(type)
    found = d.iinfo(dtype)
    return iinfo_object(found.bits, found.max, found.min, dtype)


class NamespaceInfo:
    """What the namespace can do: see `__array_namespace_info__`."""

    def capabilities(self) -> dict[str, Any]:
        """What is optional in the standard, and whether it is there."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """The device of arrays for which none is named."""
        return CPU

    def devices(self) -> tuple[Any, ...]:
        """The devices there are."""
        return (self.default_device(),)

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The dtypes of arrays for which none is named."""
        real = d.get_default_dtype()
        return {"real floating": real, "complex floating": real.to_complex(), "integral": d.int64,
                "indexing": d.int64}  # fmt: skip

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The dtypes of a kind, or of all, by name."""
        return {each.name: each for each in ALL if kind is None or isdtype(each, kind)}


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807  # (the standard names it)
    """What the namespace can do.

    >>> xp.__array_namespace_info__().default_dtypes()["integral"]
    torch.int64
    """
    return NamespaceInfo()
