"""What the record tests share: sample arguments, and ways to call an op on other libraries."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.ops.kinds.record import NAMESPACES, REGISTRY, Op
from antorcha.runtime.tensor import Tensor
from tests.choosing import quick


class Maker:
    """Makes the tensors of samples: ``make(3, 4, low=0.5)``. Seeded by the op's name."""

    def __init__(self, name: str, dtype: Any = None) -> None:
        self.random = np.random.default_rng(zlib.crc32(name.encode()))
        self.dtype = dtype or antorcha.float64

    def __call__(
        self, *shape: int, low: float = -2.0, high: float | None = None, dtype: Any = None
    ) -> Tensor:
        top = max(2.0, low + 3.0) if high is None else high
        values = self.random.uniform(low, top, shape)
        return antorcha.tensor(values, dtype=dtype or self.dtype)

    def ints(self, shape: Any, high: int, low: int = 0, dtype: Any = None) -> Tensor:
        values = self.random.integers(low, high, shape)
        return antorcha.tensor(values, dtype=dtype or antorcha.int64)

    def bools(self, shape: Any) -> Tensor:
        return antorcha.tensor(self.random.integers(0, 2, shape).astype(bool))


def records() -> list[Op]:
    """Every op that has samples, once."""
    found: dict[int, Op] = {}
    for op in REGISTRY.values():
        if op.sample_functions:
            found[id(op)] = op
    return sorted(found.values(), key=lambda op: op.name)


def samples(op: Op, dtype: Any = None) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The op's sample arguments as (args, kwargs); in the quick suite the first of them."""
    found = all_samples(op, dtype)
    return itertools.islice(found, 1) if quick.active else found


def all_samples(op: Op, dtype: Any = None) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    make = Maker(op.name, dtype)
    for fn in op.sample_functions:
        for sample in fn(make):
            if len(sample) == 2 and isinstance(sample[0], tuple) and isinstance(sample[1], dict):
                yield sample[0], sample[1]
            else:
                yield tuple(sample), {}


def map_tensors(value: Any, fn: Any) -> Any:
    """``value`` with every tensor in it replaced."""
    if isinstance(value, Tensor):
        return fn(value)
    if isinstance(value, (list, tuple)) and not isinstance(value, antorcha.Size):
        return type(value)([map_tensors(v, fn) for v in value])
    if isinstance(value, dict):
        return {k: map_tensors(v, fn) for k, v in value.items()}
    return value


def tensors_in(value: Any) -> list[Tensor]:
    found: list[Tensor] = []
    map_tensors(value, lambda t: found.append(t) or t)
    return found


def results(value: Any) -> list[Tensor]:
    """A result's tensors."""
    return tensors_in(list(value) if isinstance(value, tuple) else value)


def differentiable(op: Op, args: Any, kwargs: Any) -> bool:
    floats = any(t.dtype.is_floating_point for t in tensors_in((args, kwargs)))
    return op.differentiable and floats


def torch_name(op: Op) -> str:
    return op.name if op.namespace == "torch" else f"{op.namespace}.{op.name}"


def torch_form(op: Op, torch: Any) -> Any:
    """The op in PyTorch: a function of the namespace, or a method; None if there is none."""
    where = torch
    if op.namespace != "torch":
        for part in op.namespace.split("."):
            where = getattr(where, part)
        return getattr(where, op.name.removeprefix(f"{op.namespace}_"), None)
    if op.is_function and hasattr(torch, op.name):
        return getattr(torch, op.name)
    if op.is_method and hasattr(torch.Tensor, op.name):
        return getattr(torch.Tensor, op.name)
    return None


def to_torch(value: Any, torch: Any) -> Any:
    """Arguments with tensors and dtypes of PyTorch in the place of ours."""

    def one(t: Tensor) -> Any:
        plain = t.detach()
        array = (plain.float() if t.dtype is antorcha.bfloat16 else plain).numpy()
        made = torch.from_numpy(array.copy())
        if t.dtype is antorcha.bfloat16:
            made = made.bfloat16()
        if not t.is_contiguous():
            laid = torch.empty_strided(tuple(t.shape), t.stride(), dtype=made.dtype)
            made = laid.copy_(made)
        return made.requires_grad_(t.requires_grad)

    value = map_tensors(value, one)

    def dtypes_too(v: Any) -> Any:
        if isinstance(v, antorcha.dtype):
            return getattr(torch, v.name)
        if isinstance(v, (list, tuple)):
            return type(v)([dtypes_too(x) for x in v])
        if isinstance(v, dict):
            return {k: dtypes_too(x) for k, x in v.items()}
        if isinstance(v, antorcha.device):
            return torch.device(str(v))
        return v

    return dtypes_too(value)


def close(ours: Tensor, theirs: Any, what: str, tolerance: float | None = None) -> None:
    """Asserts equal dtype, shape and values (to rounding)."""
    assert str(ours.dtype) == str(theirs.dtype), f"{what}: {ours.dtype} is not {theirs.dtype}"
    assert tuple(ours.shape) == tuple(theirs.shape), f"{what}: {ours.shape}, not {theirs.shape}"
    a, b = ours.detach(), theirs.detach()
    a = (a.float() if a.dtype in (antorcha.bfloat16, antorcha.float16) else a).numpy()
    b = (b.float() if "float16" in str(b.dtype) else b).resolve_conj().numpy(force=True)
    rtol = tolerance or {"float32": 2e-5, "complex64": 2e-5}.get(ours.dtype.name, 1e-9)
    if ours.dtype.name in ("float16", "bfloat16"):
        rtol = 1e-2
    if a.dtype.kind in "fc":
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol, err_msg=what)
    else:
        np.testing.assert_array_equal(a, b, err_msg=what)


def identify(op: Op) -> str:
    return torch_name(op)


everything = pytest.mark.parametrize("op", records(), ids=identify)
assert NAMESPACES is not None
