"""Element types: identity, promotion and limits, against PyTorch where it is installed."""

from __future__ import annotations

import copy
import itertools
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from antorcha.core import dtypes
from antorcha.errors import ArgumentError, DtypeError

PAIRS = list(itertools.product(dtypes.ALL, repeat=2))
SCALARS: dict[type, Any] = {bool: True, int: 3, float: 2.5, complex: 1j}


@pytest.fixture(autouse=True)
def keep_default() -> Iterator[None]:
    before = dtypes.get_default_dtype()
    yield
    dtypes.set_default_dtype(before)


def theirs(torch: Any, dtype: dtypes.dtype) -> Any:
    return getattr(torch, dtype.name)


def name_or_error(call: Any) -> str:
    """The name of the dtype that `call` returns, or "error" for a RuntimeError."""
    try:
        result = call()
    except RuntimeError:
        return "error"
    return str(result).replace("complex32", "complex64")  # a type that antorcha does not have


def test_identity() -> None:
    for dtype in dtypes.ALL:
        assert repr(dtype) == f"torch.{dtype.name}"
        assert pickle.loads(pickle.dumps(dtype)) is dtype
        assert copy.deepcopy(dtype) is dtype
        assert dtypes.ALL[dtype.code] is dtype
        assert dtypes.from_numpy(dtype.np) is dtype
        assert dtype.np.itemsize == dtype.itemsize
        assert dtypes.by_name(repr(dtype)) is dtype
    with pytest.raises(ArgumentError, match="cannot create"):
        dtypes.dtype("float32")
    with pytest.raises(AttributeError, match="itemsiz"):
        dtypes.float32.itemsiz


def test_from_numpy_refuses_what_no_tensor_holds() -> None:
    for np_dtype in ("U3", "datetime64[s]", "O", np.longdouble):
        with pytest.raises(ArgumentError, match="no dtype for"):
            dtypes.from_numpy(np_dtype)
    with pytest.raises(ArgumentError, match="byte order"):
        dtypes.from_numpy(">f4" if sys.byteorder == "little" else "<f4")


def test_import_is_light() -> None:
    """Floor 0 alone, without the package's __init__, loads neither NumPy nor other slow modules."""
    folder = Path(dtypes.__file__).parent.parent
    code = f"""
import sys, types
package = types.ModuleType("antorcha")
package.__path__ = [{str(folder)!r}]
sys.modules["antorcha"] = package
from antorcha import config, errors
from antorcha.core import dtypes, indexing, shapes
print(sorted({{"numpy", "ml_dtypes", "inspect", "dataclasses"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_attributes(torch: Any) -> None:
    for dtype in dtypes.ALL:
        other = theirs(torch, dtype)
        for name in ("itemsize", "is_signed", "is_floating_point", "is_complex", "abbr"):
            assert getattr(dtype, name) == getattr(other, name), (dtype, name)
        assert repr(dtype.to_real()) == repr(other.to_real())
        assert name_or_error(dtype.to_complex) == name_or_error(other.to_complex)
    for alias, dtype in dtypes.ALIASES.items():
        assert getattr(torch, alias) is theirs(torch, dtype)


def test_promote_types(torch: Any) -> None:
    for a, b in PAIRS:
        ours = name_or_error(lambda a=a, b=b: dtypes.promote_types(a, b))
        expected = name_or_error(
            lambda a=a, b=b: torch.promote_types(theirs(torch, a), theirs(torch, b))
        )
        assert ours == expected, (a, b)


def test_promote_types_errors() -> None:
    with pytest.raises(DtypeError, match="uint16 and int8 have no common dtype"):
        dtypes.promote_types(dtypes.uint16, dtypes.int8)
    with pytest.raises(ArgumentError, match="expected a dtype, got int"):
        dtypes.promote_types(dtypes.int8, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("default", ["float32", "float64", "float16", "bfloat16"])
def test_result_type_of_pairs(torch: Any, default: str) -> None:
    """Every two operands, each a tensor with dims, a 0-dim tensor or a Python scalar."""
    operands: list[tuple[int, Any, Any]] = []
    for dtype in dtypes.ALL:
        operands.append((0, dtype, torch.ones(2, dtype=theirs(torch, dtype))))
        operands.append((1, dtype, torch.ones((), dtype=theirs(torch, dtype))))
    operands += [(2, kind, value) for kind, value in SCALARS.items()]
    dtypes.set_default_dtype(dtypes.by_name(default))
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, default))
    try:
        for one, two in itertools.product(operands, repeat=2):
            groups: list[list[Any]] = [[], [], []]
            for group, dtype, _ in (one, two):
                groups[group].append(dtype)
            ours = name_or_error(lambda groups=groups: dtypes.result_type(*groups))
            expected = name_or_error(lambda a=one[2], b=two[2]: torch.result_type(a, b))
            assert ours == expected, groups
    finally:
        torch.set_default_dtype(before)


def test_result_type_of_three(torch: Any) -> None:
    """A tensor with dims and two 0-dim ones, through an op that takes three."""
    real = [
        dtype
        for dtype in dtypes.ALL
        if (dtype.kind in "if" or dtype is dtypes.uint8) and dtype.name not in dtypes.FLOAT8
    ]
    for a, b, c in itertools.product(real, repeat=3):
        wide = torch.ones(2, dtype=theirs(torch, a))
        low, high = (torch.ones((), dtype=theirs(torch, each)) for each in (b, c))
        assert repr(dtypes.result_type([a], [b, c])) == repr(torch.clamp(wide, low, high).dtype)


def test_result_type_of_numpy_scalars() -> None:
    assert dtypes.result_type([dtypes.int32], [], [np.float64]) is dtypes.float32
    assert dtypes.result_type([dtypes.int32], [], [np.float32]) is dtypes.float32
    assert dtypes.result_type([dtypes.bool_], [], [np.int8]) is dtypes.int64
    assert dtypes.result_type([dtypes.uint8], [], [np.bool_]) is dtypes.uint8
    assert dtypes.result_type([dtypes.int8], [], [np.complex64]) is dtypes.complex64
    with pytest.raises(ArgumentError, match="expected a number, got str"):
        dtypes.result_type([dtypes.int8], [], [str])
    with pytest.raises(ArgumentError, match="at least one"):
        dtypes.result_type([], [], [])


def test_can_cast(torch: Any) -> None:
    for a, b in PAIRS:
        expected = torch.can_cast(theirs(torch, a), theirs(torch, b))
        assert dtypes.can_cast(a, b) == expected, (a, b)


def test_limits(torch: Any) -> None:
    for dtype in dtypes.ALL:
        other = theirs(torch, dtype)
        for ours, expected, names in (
            (dtypes.finfo, torch.finfo, "bits dtype eps max min resolution smallest_normal tiny"),
            (dtypes.iinfo, torch.iinfo, "bits dtype max min"),
        ):
            try:
                reference = expected(other)
            except TypeError:
                with pytest.raises(ArgumentError):
                    ours(dtype)
                continue
            mine = ours(dtype)
            assert repr(mine) == repr(reference)
            for name in names.split():
                assert getattr(mine, name) == getattr(reference, name), (dtype, name)
    for limits in (dtypes.finfo, dtypes.iinfo):
        with pytest.raises(ArgumentError, match="expected a dtype, got str"):
            limits("int8")  # type: ignore[arg-type]
    assert dtypes.finfo() == dtypes.finfo(dtypes.float32) == dtypes.finfo(dtypes.complex64)
    assert len({dtypes.iinfo(dtypes.int8), dtypes.iinfo(dtypes.int8)}) == 1


def test_default_dtype() -> None:
    dtypes.set_default_dtype(dtypes.float64)
    assert dtypes.get_default_complex_dtype() is dtypes.complex128
    assert dtypes.finfo().dtype == "float64"
    for wrong in (dtypes.int32, dtypes.complex64, "float32"):
        with pytest.raises(TypeError, match="only floating-point types"):
            dtypes.set_default_dtype(wrong)  # type: ignore[arg-type]
