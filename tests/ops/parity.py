"""Comparing a call with PyTorch's, or NumPy's where PyTorch is not installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import antorcha

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.oracle
DTYPES = ("bool", "uint8", "int8", "int64", "float16", "bfloat16", "float32", "float64",
          "complex64", "complex128")  # fmt: skip
FLOATS = ("float32", "float64")
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-5, "float64": 1e-11,
             "complex64": 2e-5, "complex128": 1e-11}  # fmt: skip


def data(
    *shape: int, dtype: str = "float32", seed: int = 0, low: float = -3, high: float = 3
) -> Any:
    """Random values as NumPy sees them; integers are small."""
    rng = np.random.default_rng(seed + len(shape))
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype == "uint8":
        return rng.integers(0, 6, shape).astype(np.uint8)
    if dtype.startswith("int"):
        return rng.integers(-4, 5, shape).astype(dtype)
    real = rng.uniform(low, high, shape)
    if dtype.startswith("complex"):
        return (real + 1j * rng.uniform(low, high, shape)).astype(dtype)
    return real.astype("float32" if dtype == "bfloat16" else dtype)


def pair(array: Any, dtype: str | None = None, grad: bool = False) -> tuple[Any, Any]:
    """The same data as an antorcha and a PyTorch tensor."""
    import torch

    made = []
    for lib in (antorcha, torch):
        each = lib.tensor(array) if array.ndim else lib.tensor(array.item())
        each = each.to(getattr(lib, dtype or str(array.dtype)))
        if grad:
            each.requires_grad_(True)
        made.append(each)
    return made[0], made[1]


def functional(lib: Any) -> Any:
    """``lib.nn.functional``; of antorcha, what the records put there."""
    if lib is antorcha:
        from types import SimpleNamespace

        from antorcha.ops.kinds.record import NAMESPACES

        return SimpleNamespace(**NAMESPACES["nn.functional"])
    return lib.nn.functional


def numpy_of(tensor: Any) -> Any:
    tensor = tensor.detach()
    if hasattr(tensor, "resolve_conj"):
        tensor = tensor.resolve_conj()
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()


def same(ours: Any, theirs: Any, *, strides: bool = False, scale: float = 1.0) -> None:
    """The same values, dtypes, shapes (and strides)."""
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b, strides=strides, scale=scale)
        return
    if not hasattr(theirs, "dtype"):
        assert ours == theirs
        return
    assert str(ours.dtype) == str(theirs.dtype)
    assert tuple(ours.shape) == tuple(theirs.shape)
    if strides:
        assert ours.stride() == theirs.stride()
    tolerance = TOLERANCE.get(str(theirs.dtype)[6:], 0) * scale
    wanted = theirs.detach().to(_wide(theirs)).numpy(force=True)
    np.testing.assert_allclose(numpy_of(ours), wanted, rtol=tolerance, atol=tolerance)


def _wide(tensor: Any) -> Any:
    import torch

    return torch.float32 if tensor.dtype == torch.bfloat16 else tensor.dtype


def compare(call: Callable[..., Any], *arrays: Any, dtype: str | None = None, grad: int = 0,
            strides: bool = False, scale: float = 1.0) -> None:  # fmt: skip
    """``call(lib, *tensors)`` on both libraries: values, ``grad`` orders of gradients, errors."""
    import torch

    ours, theirs = zip(*[pair(a, dtype, bool(grad)) for a in arrays], strict=True)
    try:
        expected = call(torch, *theirs)
    except Exception as error:
        if isinstance(error, NotImplementedError):
            return  # we may know more
        kinds = tuple([k for k in type(error).__mro__ if k in _RAISED]) or (Exception,)
        with pytest.raises(kinds[0]):
            call(antorcha, *ours)
        return
    found = call(antorcha, *ours)
    same(found, expected, strides=strides, scale=scale)
    if grad:
        _gradients(found, expected, ours, theirs, grad, scale)


_RAISED = (IndexError, TypeError, ValueError, NotImplementedError, RuntimeError)


def _gradients(found: Any, expected: Any, ours: Any, theirs: Any, order: int, scale: float) -> None:
    """Weighted sums of the results are differentiated, and their gradients again."""
    import torch

    totals = []
    for lib, results, inputs in ((antorcha, found, ours), (torch, expected, theirs)):
        results = results if isinstance(results, (tuple, list)) else (results,)
        total: Any = 0
        for k, each in enumerate(results):
            if each.requires_grad:
                weight = np.cos(np.arange(each.numel()) + k).reshape(each.shape)
                part = (each * lib.tensor(weight).to(each.dtype)).sum()
                total = total + (lib.real(part) if each.is_complex() else part)
        totals.append((lib, total, inputs))
    if isinstance(totals[0][1], int):
        return
    for step in range(order):
        grads = []
        for lib, total, inputs in totals:
            more = step + 1 < order
            grads.append(lib.autograd.grad(total, inputs, create_graph=more, allow_unused=True))
        for a, b in zip(*grads, strict=True):
            if b is None or a is None:
                other = a if b is None else b
                assert other is None or not np.any(numpy_of(other))
            else:
                same(a, b, scale=10 * scale * 10**step)
        if step + 1 < order:
            totals = [
                (lib, sum((g * g.detach().cos()).sum() for g in gs if g is not None), inputs)
                for (lib, _, inputs), gs in zip(totals, grads, strict=True)
            ]
            if not getattr(totals[1][1], "requires_grad", False):
                return
