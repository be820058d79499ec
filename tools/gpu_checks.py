"""A table of checks of what programs do on a GPU: each says "ok", or why not.

A check raises where something is wrong; what it returns is a remark. ``small``: with so few
elements that a simulator can do it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import antorcha as torch

Check = Callable[[bool], Any]
CHECKS: dict[str, Check] = {}


def check(run: Check) -> Check:
    """Adds a check to the table, under its name."""
    CHECKS[run.__name__.replace("_", " ")] = run
    return run


def peer() -> Any:
    """PyTorch, where it is installed with CUDA; None elsewhere."""
    try:
        found = importlib.import_module("torch")
    except ImportError:
        return None
    return found if found is not torch and found.cuda.is_available() else None


def near(ours: Any, theirs: Any, tolerance: float, what: str) -> None:
    """Raises where two tensors differ by more than so much of the largest element, or of 0.001."""
    ours, theirs = ours.detach().cpu().double(), theirs.detach().cpu().double()
    assert ours.shape == theirs.shape, f"{what}: {ours.shape} is not {theirs.shape}"
    if ours.numel():
        away, largest = (ours - theirs).abs().max().item(), theirs.abs().max().item()
        assert away <= tolerance * max(largest, 1e-3), f"{what}: {away} of {largest} away"


def raised(kind: Any, call: Callable[[], Any]) -> Any:
    """The error of that kind that a call raises."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")
