"""Every optimizer with every option, from PyTorch's own database of them, beside PyTorch's.

Ten steps; after five, each side's state goes to a fresh optimizer of the other library, which goes
on. Parameters and state agree within rounding throughout.
"""

from __future__ import annotations

import copy
import importlib.util
import sys
import types
import unittest
from typing import Any

import numpy as np
import pytest

import antorcha

pytestmark = pytest.mark.oracle

NAMES = [
    "Adadelta", "Adafactor", "Adagrad", "Adam", "Adamax", "AdamW", "ASGD", "LBFGS", "Muon", "NAdam",
    "RAdam", "RMSprop", "Rprop", "SGD", "SparseAdam",
]  # fmt: skip
SHAPES = ((7, 13), (5,), (), (2, 3, 4))
MATRICES = ((7, 13), (6, 3), (1, 1))
SPARSE = ((7, 13), (5,), (2, 3, 4))


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Any:
    """PyTorch's threads would wait for one another longer than they work here."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def info(name: str) -> Any:
    """PyTorch's record of an optimizer. Its module wants `expecttest`, of which it uses a class."""
    pytest.importorskip("torch")
    missing = importlib.util.find_spec("expecttest") is None
    if missing:
        stand_in = types.ModuleType("expecttest")
        stand_in.TestCase = unittest.TestCase  # type: ignore[attr-defined]
        sys.modules["expecttest"] = stand_in
    try:
        common = importlib.import_module("torch.testing._internal.common_optimizers")
    finally:
        if missing:
            del sys.modules["expecttest"]
    return next(found for found in common.optim_db if found.name == name)


def draw(seed: int, shape: tuple[int, ...], dtype: str) -> Any:
    random = np.random.default_rng(seed)
    values = random.standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * random.standard_normal(shape)
    return np.asarray(values).astype(dtype)


def to(library: Any, value: Any) -> Any:
    """A tree of tensors of either library, as tensors of this one."""
    if isinstance(value, dict):
        return {key: to(library, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([to(library, item) for item in value])
    if hasattr(value, "detach"):
        leaf = value.detach()
        if "sparse" in str(leaf.layout):
            return library.zeros(tuple(leaf.shape), layout=library.sparse_coo)
        if "bfloat16" in str(leaf.dtype):
            return library.tensor(leaf.float().numpy()).bfloat16()
        return library.tensor(leaf.numpy().copy())
    return value


class Side:
    """One library's parameters and optimizer."""

    def __init__(self, library: Any, name: str, options: dict[str, Any], dtype: str) -> None:
        self.library, self.name, self.dtype = library, name, dtype
        self.options = to(library, options)
        self.shapes = {"Muon": MATRICES, "SparseAdam": SPARSE}.get(name, SHAPES)
        self.params = [
            library.nn.Parameter(library.tensor(draw(k, shape, dtype)))
            for k, shape in enumerate(self.shapes)
        ]
        self.optimizer = self.make()

    def make(self) -> Any:
        return getattr(self.library.optim, self.name)(self.params, **self.options)

    def step(self, seed: int) -> None:
        if self.name == "LBFGS":
            self.optimizer.step(self.closure)
            return
        for k, p in enumerate(self.params):
            grad = draw(100 + 10 * seed + k, self.shapes[k], self.dtype)
            if self.name == "SparseAdam":  # half of the elements, those of a row together or alone
                some = np.random.default_rng(k + seed).random(grad.shape) < 0.5
                dims = 1 if seed % 2 else grad.ndim
                p.grad = self.library.tensor(grad * some).to_sparse(dims)
            else:
                p.grad = self.library.tensor(grad)
        self.optimizer.step()

    def closure(self) -> Any:
        """A convex loss, so that rounding does not grow from iteration to iteration."""
        self.optimizer.zero_grad()
        loss = 0.0
        for p in self.params:
            x = (self.library.view_as_real(p) if p.is_complex() else p).reshape(-1)
            loss = loss + (x - 0.5).cosh().sum() + 0.5 * ((x[1:] - x[:-1]) ** 2).sum()
        loss.backward()
        return loss

    def state(self) -> Any:
        return copy.deepcopy(to(antorcha, self.optimizer.state_dict()))


def close(x: Any, y: Any, tolerance: float, where: str) -> None:
    """Two trees agree; the kinds and the order of keys too."""
    if isinstance(y, dict):
        assert list(x) == list(y), where
        for key in y:
            close(x[key], y[key], tolerance, f"{where}.{key}")
    elif isinstance(y, (list, tuple)):
        assert type(x) is type(y), where
        for a, b in zip(x, y, strict=True):
            close(a, b, tolerance, where)
    elif hasattr(y, "numpy"):
        assert (x.dtype, x.shape) == (y.dtype, y.shape), where
        np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=tolerance,
                                   atol=tolerance, err_msg=where)  # fmt: skip
    elif isinstance(y, float):
        assert x == pytest.approx(y, rel=tolerance, abs=tolerance), where
    else:
        assert x == y, where


def variants(found: Any, kwargs: dict[str, Any], dtype: str) -> Any:
    """An input, and the same with the hints that PyTorch takes."""
    yield kwargs
    tensors = any(hasattr(v, "detach") for v in kwargs.values())
    if "foreach" in found.supported_impls and not (tensors and found.name in ("Adam", "AdamW")):
        yield {**kwargs, "foreach": True}
    if "cpu" in found.supports_fused_on and dtype != "complex64":
        yield {**kwargs, "fused": True}


def tolerance_of(name: str, dtype: str, options: dict[str, Any]) -> float:
    if name == "ASGD" and options.get("foreach"):
        return 1e-5  # there PyTorch computes the learning rate in float32
    if name == "Muon":
        return 1e-4  # a bit of bfloat16, in which its steps are computed, times the learning rate
    if name == "LBFGS":
        return 1e-7 if dtype == "float64" else 1e-3  # two hundred iterations, each from the last
    return 1e-11 if dtype == "float64" else 2e-5


@pytest.mark.parametrize("name", NAMES)
def test_ten_steps_and_checkpoints_both_ways(name: str) -> None:
    torch = pytest.importorskip("torch")
    found = info(name)
    steps = 4 if name == "LBFGS" else 10  # of twenty iterations each
    middle = steps // 2 - 1
    dtypes = ["float32", "float64", *["complex64"] * found.supports_complex]
    for dtype in dtypes:
        for given in found.optim_inputs_func("cpu"):
            for options in variants(found, given.kwargs, dtype):
                where = f"{name} {dtype} {options}"
                tolerance = tolerance_of(name, dtype, options)
                sides = [Side(library, name, options, dtype) for library in (antorcha, torch)]
                for step in range(steps):
                    for side in sides:
                        side.step(step)
                    x, y = [to(antorcha, side.params) for side in sides]
                    close(x, y, tolerance, f"{where} step {step}")
                    if step in (middle, steps - 1) and not (name == "LBFGS" and dtype != "float64"):
                        x, y = [side.state() for side in sides]
                        close(x, y, 10 * tolerance, where)
                    if step == middle:
                        dicts = [side.optimizer.state_dict() for side in sides]
                        for side, state in zip(sides, reversed(dicts), strict=True):
                            side.optimizer = side.make()
                            side.optimizer.load_state_dict(to(side.library, state))


@pytest.mark.parametrize("name", NAMES)
def test_refusals(name: str) -> None:
    torch = pytest.importorskip("torch")
    common = importlib.import_module(type(info(name)).__module__)
    count = 0
    for given in info(name).optim_error_inputs_func("cpu", torch.float32):
        bad = given.optimizer_error_input
        params = bad.params
        if params is None:
            params = [torch.nn.Parameter(torch.ones(2, 2))]
        params, options = moved(params), to(antorcha, bad.kwargs)
        make = getattr(antorcha.optim, name)
        late = given.error_on is common.OptimizerErrorEnum.STEP_ERROR
        optimizer = make(params, **options) if late else None
        if given.error_type is UserWarning:
            with pytest.warns(UserWarning, match=given.error_regex):
                make(params, **options)
        else:
            with pytest.raises(given.error_type, match=given.error_regex):
                optimizer.step() if late else make(params, **options)
        count += 1
    assert count >= 5


def moved(params: Any) -> Any:
    """What an error input optimizes, as antorcha's: one, a list, pairs with names, or groups."""
    if isinstance(params, dict):
        return {key: moved(v) if key == "params" else v for key, v in params.items()}
    if isinstance(params, (list, tuple)):
        return type(params)([moved(p) for p in params])
    if hasattr(params, "detach"):
        mine = antorcha.nn.Parameter(to(antorcha, params))
        if params.grad is not None:
            mine.grad = to(antorcha, params.grad)
        return SHARED.setdefault(id(params), (mine, params))[0]
    return params


SHARED: dict[int, Any] = {}  # the same parameter twice stays the same; both live on with their ids


def refused(side: Side) -> tuple[type, str] | None:
    """The class of the error that making it or its first step ends with."""
    try:
        side.optimizer = side.make()
        side.step(0)
    except Exception as error:
        return next(c for c in type(error).__mro__ if c.__module__ == "builtins"), str(error)
    return None


@pytest.mark.parametrize("name", [n for n in NAMES if n != "SparseAdam"])
def test_hints_are_taken_and_refused_alike(name: str) -> None:
    torch = pytest.importorskip("torch")
    names = ("foreach", "fused", "differentiable", "capturable", "maximize")
    has = [n for n in names if n in Side(torch, name, {}, "float32").optimizer.defaults]
    pairs = [{a: True, b: True} for k, a in enumerate(has) for b in has[k:]]
    for options in [*pairs, {"lr": -1.0}, {"lr": torch.tensor(-1.0)}, {"lr": torch.tensor([0.1])}]:
        for dtype in ("float32", "complex64"):
            results = []
            for library in (antorcha, torch):
                side = Side(library, name, {}, dtype)
                side.options = to(library, options)
                if options.get("differentiable"):  # what is stepped must not be a leaf
                    side.params = [p.detach() for p in side.params]
                results.append(refused(side))
            mine, theirs = results
            assert (mine is None) == (theirs is None), (options, dtype, results)
            if theirs is not None:
                assert mine[0] is theirs[0], (options, dtype, results)
