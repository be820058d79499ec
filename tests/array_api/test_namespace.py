"""``antorcha.array_api``: its functions beside NumPy's, which has the standard, too; its arrays."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha import array_api as xp
from antorcha.array_api import elementwise, types
from antorcha.array_api.arrays import Array

NAMES = [dtype.name for dtype in types.ALL]


def data(name: str, shape: Any, seed: int = 0) -> Any:
    """Numbers of a dtype for which all functions have values."""
    random = np.random.default_rng(seed)
    if name == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if name.startswith(("int", "uint")):
        return random.integers(1, 5, shape).astype(name)
    values = random.uniform(0.1, 0.9, shape)
    return (values + 1j * values[..., ::-1] if name.startswith("complex") else values).astype(name)


def agree(ours: Any, theirs: Any) -> bool:
    """Shape, dtype (but that NumPy's default is float64) and values."""
    if isinstance(theirs, tuple):
        return len(ours) == len(theirs) and all(map(agree, ours, theirs))
    theirs = np.asarray(theirs)
    assert tuple(ours.shape) == theirs.shape
    assert ours.dtype.name == str(theirs.dtype)
    rtol = 1e-5 if theirs.dtype.name in ("float32", "complex64") else 1e-10
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=rtol, atol=rtol)
    return True


def calls(name: str, *shapes: Any, **named: Any) -> list[str]:
    """What differs from NumPy of a function, for arrays of every dtype that NumPy takes."""
    failures = []
    for dtype in NAMES:
        arrays = [data(dtype, shape, k) for k, shape in enumerate(shapes)]
        try:
            expected = getattr(np, name)(*arrays, **named)
        except (TypeError, ValueError):
            continue
        if np.asarray(expected[0] if isinstance(expected, tuple) else expected).dtype == np.float16:
            continue  # (NumPy's answer for integers of 8 bits: the standard leaves it open)
        given = [xp.asarray(each) for each in arrays]
        if left_open(name, dtype):
            continue
        try:
            assert agree(getattr(xp, name)(*given, **named), expected)
        except Exception as error:
            failures.append(f"{name}({dtype}): {type(error).__name__}: {str(error)[:200]}")
    return failures


def left_open(name: str, dtype: str) -> bool:
    """Does the standard not say what a function is of this dtype?"""
    if dtype == "bool":
        return name not in BOOLS
    if dtype.startswith("complex"):
        return name in REALS
    return name == "imag" or (dtype.startswith(("int", "uint")) and name in FLOATS)


BOOLS = {
    "all", "any", "bitwise_and", "bitwise_invert", "bitwise_or", "bitwise_xor", "count_nonzero",
    "equal", "expand_dims", "flip", "logical_and", "logical_not", "logical_or", "logical_xor",
    "matrix_transpose", "nonzero", "not_equal", "permute_dims", "reshape", "roll", "tril",
    "triu", "unique_all", "unique_values",
}  # fmt: skip
REALS = {
    "argmax", "argmin", "greater", "greater_equal", "less", "less_equal", "max", "maximum", "min",
    "minimum", "sort", "std", "unique_all", "unique_values", "var",
}  # fmt: skip
FLOATS = {
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "copysign", "cos", "cosh", "divide",
    "exp", "expm1", "hypot", "log", "log10", "log1p", "log2", "logaddexp", "mean", "nextafter",
    "reciprocal", "signbit", "sin", "sinh", "sqrt", "std", "tan", "tanh", "var",
}  # fmt: skip
"""Functions whose result for integers the standard leaves open."""
SHAPES: dict[str, list[Any]] = {"matmul": [(2, 3), (3, 4)], "tensordot": [(2, 3, 4), (3, 4, 5)],
                                "vecdot": [(2, 3), (2, 3)]}  # fmt: skip
AXES: dict[str, list[dict[str, Any]]] = {
    **{name: [{}, {"axis": 1}, {"axis": (0, -1)}, {"keepdims": True}, {"axis": ()}] for name in (
        "all", "any", "max", "mean", "min", "prod", "std", "sum", "var")},
    **{name: [{}, {"axis": 0}, {"axis": 1, "keepdims": True}] for name in ("argmax", "argmin")},
    "count_nonzero": [{}, {"axis": 0}], "flip": [{}, {"axis": 1}], "sort": [{}, {"axis": 0}],
    "cumulative_sum": [{"axis": 1}, {"axis": 0, "include_initial": True}],
    "cumulative_prod": [{"axis": 1}], "diff": [{}, {"axis": 0, "n": 2}],
    "expand_dims": [{"axis": (0, -1)}], "matrix_transpose": [{}], "nonzero": [{}],
    "permute_dims": [{"axes": (1, 0)}], "roll": [{"shift": 1}, {"shift": (1, 2), "axis": (0, 1)}],
    "reshape": [{"shape": (4, 3)}],
    "tril": [{"k": 1}], "triu": [{"k": -1}], "unique_all": [{}], "unique_values": [{}],
}  # fmt: skip


def test_functions_beside_numpys() -> None:
    failures = []
    for name in elementwise.UNARY:
        failures += calls(name, (3, 4))
    for name in ("expm1", "round", "sign", "tanh"):
        failures += calls(name, (3, 4))
    for name in (*elementwise.BINARY, "floor_divide", "remainder"):
        failures += calls(name, (3, 4), (4,))
    for name, shapes in SHAPES.items():
        failures += calls(name, *shapes)
    for name, options in AXES.items():
        for named in options:
            failures += calls(name, (3, 4), **named)
    assert not failures, "\n".join(failures)


def test_repeat() -> None:
    x = xp.asarray([[1, 2], [3, 4]])
    assert xp.repeat(x, 2).tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert xp.repeat(x, xp.asarray([0, 2], dtype=xp.uint8), axis=1).tolist() == [[2, 2], [4, 4]]


def test_dtypes_promote_as_numpys_arrays_do() -> None:
    for a in types.ALL:
        for b in types.ALL:
            kinds = {a.kind, b.kind}
            if {a, b} >= {types.UNSIGNED[3]} and "i" in kinds:
                with pytest.raises(RuntimeError, match="no common dtype"):
                    xp.result_type(a, b)
                continue
            if kinds <= {"i", "u"} or kinds <= {"f", "c"} or len(kinds) == 1:
                expected = np.result_type(np.dtype(a.name), np.dtype(b.name)).name
                assert xp.result_type(a, b).name == expected
                for shape in ((2,), ()):  # (whatever the shapes are)
                    sum_ = xp.ones((2,), dtype=a) + xp.ones(shape, dtype=b)
                    assert sum_.dtype.name == (expected if a.kind != "b" else "bool")


def test_arrays() -> None:
    x = xp.reshape(xp.arange(6), (2, 3))
    assert isinstance(x, torch.Tensor)
    assert (x.size, x.T.shape, x.mT.shape) == (6, (3, 2), (3, 2))
    assert x[::-1, 2:0:-1].tolist() == [[5, 4], [2, 1]]
    y = xp.asarray(x, copy=True)
    y[:, ::-1] = xp.asarray([7, 8, 9])
    assert y.tolist() == [[9, 8, 7], [9, 8, 7]]
    y += 1
    assert y.tolist() == [[10, 9, 8], [10, 9, 8]]
    assert (1 - y).tolist() == [[-9, -8, -7], [-9, -8, -7]]
    for bad in (lambda: y.__iadd__(0.5), lambda: xp.ones(2).__iadd__(xp.ones((3, 2)))):
        with pytest.raises(TypeError, match="does not go into"):
            bad()
    assert x[xp.zeros((2, 0), dtype=xp.bool)].shape == (0,)
    for shape in ((0, 2), (0, 3, 0)):
        with pytest.raises(IndexError):
            x[xp.zeros(shape, dtype=xp.bool)]
    assert x.__add__("a") is NotImplemented
    assert xp.signbit(xp.asarray([-math.nan, math.nan, -0.0, 0.0] * 5)).tolist() == (
        [True, False, True, False] * 5
    )
    assert xp.clip(xp.asarray([7], dtype=xp.uint64), max=2**64 - 1).tolist() == [7]
    assert type(x + torch.ones(3)) is type(torch.ones(3) + x) is Array
    assert type(torch.nn.Linear(3, 2)(xp.ones((1, 3)))) is torch.Tensor
    assert np.from_dlpack(x).tolist() == x.tolist()
    assert bool(xp.all(xp.from_dlpack(np.arange(3.0)) == xp.arange(3.0, dtype=xp.float64)))


def test_a_tensors_namespace() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    assert x.__array_namespace__() is x.__array_namespace__(api_version="2024.12") is xp
    with pytest.raises(ValueError, match="no api_version"):
        x.__array_namespace__(api_version="1999.12")
    y = xp.sum(xp.square(x))
    assert type(y) is torch.Tensor
    y.backward()
    assert x.grad.tolist() == [2, 4, 6]
    leaf = xp.asarray([1.0, 2.0])
    leaf.requires_grad_()
    (leaf * leaf).sum().backward()
    assert leaf.grad.tolist() == [2, 4]


def test_every_public_function_has_the_standards_form() -> None:
    for module in (xp, xp.linalg, xp.fft):
        for name in module.__all__:
            found = getattr(module, name)
            if inspect.isfunction(found):
                assert found.__name__ == name
                assert inspect.getdoc(found), name
                assert "args" not in inspect.signature(found).parameters, name
    info = xp.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] is True
    assert set(info.dtypes(kind="integral")) == {n for n in NAMES if "int" in n}
    assert info.default_device() in info.devices()
    assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (math.e, math.pi, math.inf, None)
    assert xp.iinfo(xp.uint64).max == 2**64 - 1
    assert xp.finfo(xp.complex64).dtype is xp.float32
    with pytest.raises(AttributeError, match="Did you mean"):
        xp.concatt


def test_linear_algebra_and_transforms() -> None:
    a = data("float64", (2, 3, 3)) + 3 * np.eye(3)
    sym, x = a + a.transpose(0, 2, 1), xp.asarray(a)
    pairs = {
        "det": x, "inv": x, "svdvals": x, "eigvalsh": xp.asarray(sym), "matrix_rank": x, "pinv": x,
        "slogdet": x, "qr": x, "matrix_norm": x, "cholesky": xp.asarray(a @ a.transpose(0, 2, 1)),
    }  # fmt: skip
    for name, given in pairs.items():
        ours, theirs = [
            getattr(lib.linalg, name)(v) for lib, v in ((xp, given), (np, given.numpy()))
        ]
        for one, other in zip(
            *[r if isinstance(r, tuple) else (r,) for r in (ours, theirs)], strict=True
        ):
            np.testing.assert_allclose(abs(one.numpy()), abs(other), rtol=1e-8, atol=1e-10)
    b = xp.asarray(data("float64", (3,)))
    np.testing.assert_allclose(
        (x @ xp.linalg.solve(x, b)[..., None])[..., 0].numpy(), [b.numpy()] * 2
    )
    for name in xp.fft.__all__:
        given = (4,) if name.endswith("freq") else (b,)
        expected = getattr(np.fft, name)(*[np.asarray(v) if v is b else v for v in given])
        np.testing.assert_allclose(getattr(xp.fft, name)(*given).numpy(), expected, atol=1e-7)
