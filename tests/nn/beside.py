"""What the tests of layers share that run both libraries; it can be imported without PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import antorcha


def numbers(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def same(mine: Any, theirs: Any, what: Any, rtol: float = 3e-5) -> None:
    if isinstance(theirs, (tuple, list)):
        for a, b in zip(mine, theirs, strict=True):
            same(a, b, what, rtol)
        return
    a, b = mine.detach().numpy(), theirs.detach().numpy()
    assert (a.dtype, a.shape) == (b.dtype, b.shape), what
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol / 3, err_msg=str(what))


def both_sides(run: Any, what: Any) -> None:
    """``run(library)`` gives (module or None, values): the same on both sides."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine, theirs = [run(library) for library in (antorcha, torch)]
    if theirs[0] is not None:
        assert repr(mine[0]) == repr(theirs[0]), what
        assert list(mine[0].state_dict()) == list(theirs[0].state_dict()), what
        same(list(mine[0].state_dict().values()), list(theirs[0].state_dict().values()), what)
    same(mine[1], theirs[1], what)


def trained(library: Any, module: Any, *inputs: Any) -> list[Any]:
    """The output, and all gradients of its product with fixed numbers."""
    library.manual_seed(3)
    out = module(*inputs)
    values = list(out) if isinstance(out, tuple) else [out]
    first = values[0]
    (first * library.from_numpy(numbers(9, *first.shape)).to(first.dtype)).sum().backward()
    return [*values, *[i.grad for i in inputs if getattr(i, "grad", None) is not None],
            *[p.grad for p in module.parameters() if p.grad is not None]]  # fmt: skip
