"""Every record beside PyTorch, its samples in every dtype and laid out in three ways.

What PyTorch computes we compute alike, or say by NotImplementedError that we do not; where both
refuse, with the same class. What it refuses we may know.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import antorcha
from antorcha.ops.kinds.record import Op
from antorcha.runtime.tensor import Tensor
from tests.ops.parity import DTYPES
from tests.ops.records import close, map_tensors, records, samples, to_torch, torch_form
from tests.ops.test_records import is_random

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

CLASSES = (IndexError, TypeError, ValueError, RuntimeError)
# where equal elements come from is told by the first result only
TIES = ("sort", "topk", "kthvalue", "mode", "median", "nanmedian", "argsort")
LAID_OUT_OTHERWISE = {
    "adjoint": "PyTorch's is a view, whose numbers are conjugated where they are read",
    "angle": "PyTorch's of complex numbers is row-major",
    "conv1d": "PyTorch's depends on the library that it calls",
    "conv_transpose1d": "the same",
    "max_pool1d": "PyTorch's goes by another way where nothing is recorded",
    "kron": "PyTorch's cannot be had by a view of a row-major product",
}
NOT_ALIKE = {
    ("softsign", "uint8"): "PyTorch's 1 + 255 is 0",
    ("ldexp", "uint8"): "PyTorch's 0 * 2**255 is nan: its power is infinite",
    ("grid_sampler", "float16"): "PyTorch's places are halves; ours are ten times as near",
    ("grid_sampler", "bfloat16"): "the same",
    ("interpolate", "uint8"): "PyTorch's weights have 8 bits",
    ("affine_grid_generator", "uint8"): "PyTorch's places are integers that wrap around",
    ("affine_grid_generator", "int8"): "the same",
    ("affine_grid_generator", "int64"): "the same",
    ("linalg_matrix_exp", "float16"): "PyTorch's is nan",
    ("linalg_matrix_exp", "bfloat16"): "PyTorch's is nan",
    ("as_strided", "strided"): "it shows what lies between the elements",
    ("as_strided_copy", "strided"): "the same",
}


def permuted(t: Tensor) -> Tensor:
    return t.mT.contiguous().mT if t.ndim > 1 else t


def strided(t: Tensor) -> Tensor:
    if not t.ndim:
        return t
    wide = antorcha.zeros([2 * size for size in t.shape], dtype=t.dtype)
    shown = wide[(slice(None, None, 2),) * t.ndim]
    return shown.copy_(t)


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "row-major": lambda t: t,
    "permuted": permuted,
    "strided": strided,
}


def forms(op: Op, dtype: str, layout: str) -> Iterator[tuple[Any, Any]]:
    """The samples' arguments of that dtype and layout."""
    wanted, lay_out = getattr(antorcha, dtype), LAYOUTS[layout]

    def one(t: Tensor) -> Tensor:
        return lay_out(t.to(wanted) if t.dtype is antorcha.float64 else t)

    for args, kwargs in samples(op):
        yield map_tensors(args, one), map_tensors(kwargs, one)


def outcome(call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What a call gives, or the exception that it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call(*args, **kwargs)
    except Exception as error:
        return error


def tensors(value: Any, kind: type) -> list[Any]:
    if isinstance(value, (tuple, list)) and not isinstance(value, antorcha.Size):
        return [t for each in value for t in tensors(each, kind)]
    return [value] if isinstance(value, kind) else []


def compared() -> list[Op]:
    return [op for op in records() if not is_random(op) and "randint" not in op.name]


@pytest.mark.parametrize("op", compared(), ids=lambda op: f"{op.namespace}.{op.name}")
def test_as_pytorch(op: Op) -> None:
    torch = pytest.importorskip("torch")
    form = torch_form(op, torch)
    if form is None:
        pytest.skip("PyTorch shows no such function")
    for dtype in DTYPES:
        for layout in LAYOUTS:
            if (op.name, dtype) in NOT_ALIKE or (op.name, layout) in NOT_ALIKE:
                continue
            for args, kwargs in forms(op, dtype, layout):
                given = to_torch((args, kwargs), torch)  # (some ops write to their operands)
                theirs = outcome(form, *given)
                ours = outcome(op, args, kwargs)
                check(op, f"{op.name} of {layout} {dtype} {args}{kwargs}", ours, theirs, torch)


def check(op: Op, what: str, ours: Any, theirs: Any, torch: Any) -> None:
    if isinstance(theirs, Exception):
        known = [kind for kind in CLASSES if isinstance(theirs, kind)]
        if isinstance(ours, Exception) and not isinstance(theirs, NotImplementedError):
            assert isinstance(ours, tuple(known)), f"{what}: {ours!r}, not {theirs!r}"
        return
    if isinstance(ours, Exception):
        assert isinstance(ours, NotImplementedError), f"{what}: {ours!r}"
        return
    left, right = tensors(ours, Tensor), tensors(theirs, torch.Tensor)
    assert len(left) == len(right), what
    for a, b in list(zip(left, right, strict=True))[: 1 if op.name in TIES else None]:
        close(a, b, what)
        if op.name not in LAID_OUT_OTHERWISE and a.numel() > 1:
            assert a.stride() == b.stride(), f"{what}: strides {a.stride()}, not {b.stride()}"
