"""Numbers, dtypes and arguments that PyTorch refuses or bends, and what antorcha does with them."""

from __future__ import annotations

import contextlib
import itertools
import math
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.errors import AntorchaError
from tests.ops import records
from tests.ops.parity import numpy_of

BIG = (2**63, 2**64, -(2**63) - 1, math.inf, -math.inf, math.nan, 300, -2, -2.0, 1.5, 1e40,
       1j, 1 + 0j)  # fmt: skip
DATA = (1.0, 2.0, 2.0, 3.0)
DTYPES = ("uint8", "int8", "int64", "bool", "float16", "float32", "complex64")


def answer(call: Any, lib: Any) -> Any:
    """The result, or the exception."""
    try:
        return call(lib)
    except Exception as error:
        return error


def replaced(args: Any, kwargs: Any, k: int, name: str, value: Any) -> Any:
    """The arguments with another one at place `k`, or by its name."""
    if k < len(args):
        return (*args[:k], value, *args[k + 1 :]), kwargs
    return args, {**kwargs, name: value}


def differ(call: Any, told: bool = True) -> str:
    """How antorcha's answer differs from PyTorch's. An exception must be of PyTorch's class and,
    if `told`, one of antorcha's own: it comes from a check, not from inside."""
    import torch

    ours, theirs = answer(call, antorcha), answer(call, torch)
    if isinstance(theirs, Exception):
        if not isinstance(ours, type(theirs)) or (told and not isinstance(ours, AntorchaError)):
            return f"{ours!r:.150} for {theirs!r:.150}"
        return ""
    if isinstance(ours, Exception):
        return f"{ours!r:.150} for {theirs!r:.150}"
    return _unlike(ours, theirs)


def _unlike(ours: Any, theirs: Any) -> str:
    if isinstance(theirs, tuple):
        return "".join([_unlike(a, b) for a, b in zip(ours, theirs, strict=True)])
    if not hasattr(theirs, "dtype"):
        return "" if ours == theirs else f"{ours!r} for {theirs!r}"
    if str(ours.dtype) != str(theirs.dtype) or ours.requires_grad != theirs.requires_grad:
        return f"{ours!r} for {theirs!r}"
    floats = theirs.is_floating_point() or theirs.is_complex()
    same = np.array_equal(numpy_of(ours), numpy_of(theirs), equal_nan=floats)
    return "" if same else f"{ours!r} for {theirs!r}"


@pytest.mark.oracle
def test_small_things_are_refused_as_pytorch_refuses_them() -> None:
    """Tensors without dims or elements, arguments of another kind."""
    array = np.zeros(3)
    calls = [
        lambda t: t.flip(t.tensor(1.0), (0,)),
        lambda t: t.flip(t.tensor(1.0), (-1,)),
        lambda t: t.flip(t.tensor(1.0), (1,)),
        lambda t: t.roll(t.tensor(1.0), 1),
        lambda t: t.roll(t.tensor(1.0), 1, 0),
        lambda t: t.roll(t.tensor(1.0), (1, 1), (0, 0)),
        lambda t: t.trapezoid(t.tensor(1.0), t.tensor(1.0)),
        lambda t: t.cumulative_trapezoid(t.tensor(1.0)),
        lambda t: t.median(t.zeros(0)),
        lambda t: t.median(t.zeros(0, 3), 0),
        lambda t: t.kthvalue(t.zeros(0), 1),
        lambda t: t.zeros(0, dtype=t.int64) % 0,
        lambda t: t.zeros(0, dtype=t.int64) // 0,
        lambda t: t.zeros(0, dtype=t.int64).fmod(0),
        lambda t: t.zeros(0, dtype=t.int64).remainder_(0),
        lambda t: t.zeros(2, dtype=t.int64) % 0,
        lambda t: t.zeros(2, dtype=t.int64) % False,
        lambda t: t.div(t.zeros(0, dtype=t.int64), 0, rounding_mode="trunc"),
        lambda t: t.median(t.ones(3), out=t.ones(3)),
        lambda t: t.nanmedian(t.ones(3), out=t.ones(3)),
        lambda t: t.median(t.ones(3), 0, out=t.ones(3)),
        lambda t: t.max(t.ones(3), 0, out=t.ones(())),
        lambda t: t.ones(1).expand(2).zero_(),
        lambda t: t.ones(1).expand(2).fill_(3),
        lambda t: t.ones(1).expand(2).mul_(3),
        lambda t: t.bucketize(t.ones(2), None),
        lambda t: t.bucketize(None, t.ones(2)),
        lambda t: t.searchsorted(t.ones(2), None),
        lambda t: t.isin(t.ones(2), [1]),
        lambda t: t.isin([1], t.ones(2)),
        lambda t: t.isin(t.ones(2), 1),
        lambda t: t.nn.functional.pad(t.ones(2), (1, 1), value=1j),
        lambda t: t.nn.functional.pad(t.ones(2, dtype=t.complex64), (1, 1), value=1j),
        lambda t: t.nn.functional.pad(t.ones(2, dtype=t.uint8), (1, 1), value=-1),
        lambda t: t.bitwise_and(2, 3),
        lambda t: t.add(2, 3),
        lambda t: t.mean(t.ones(3), dtype=t.int64),
        lambda t: t.ones([1] * 65).sum(0),
        *[lambda t, d=d: t.sum(t.ones(2), dtype=d) for d in (array, [], "float32")],
        *[lambda t, d=d: t.zeros(2, dtype=d) for d in (array, [], "float32")],
        *[lambda t, d=d: t.ones(2).to(d) for d in (array, [])],
        lambda t: t.ones(2).type(array),
        lambda t: t.zeros(2, dtype=t.ones(3)),
        lambda t: t.arange(2, dtype=array),
        lambda t: t.zeros_like(t.ones(2), dtype=array),
    ]
    found = [f"{k}: {differ(call)}" for k, call in enumerate(calls)]
    assert not [each for each in found if not each.endswith(": ")], "\n".join(found)


@pytest.mark.oracle
def test_a_limit_that_is_not_a_number_is_refused() -> None:
    nan = math.nan
    for name, options in (
        ("nn.functional.huber_loss", {"delta": nan}),
        ("nn.functional.smooth_l1_loss", {"beta": nan}), ("cdist", {"p": nan}),
        ("isclose", {"rtol": nan}), ("isclose", {"atol": nan}),
        ("cosine_similarity", {"eps": -1.0}), ("cosine_similarity", {"eps": nan}),
    ):  # fmt: skip

        def call(t: Any, name: str = name, options: Any = options) -> Any:
            return attrgetter(name)(t)(t.ones(2, 2), t.ones(2, 2), **options)

        assert not differ(call), f"{name}: {differ(call)}"


@pytest.mark.oracle
def test_losses_look_at_dtypes() -> None:
    failures = []
    for name, x, y in itertools.product(
        ("binary_cross_entropy", "binary_cross_entropy_with_logits"), DTYPES, DTYPES
    ):
        if "complex64" in (x, y):
            continue

        def call(t: Any, name: str = name, x: str = x, y: str = y) -> Any:
            loss = getattr(t.nn.functional, name)
            return loss(t.zeros(2, dtype=getattr(t, x)), t.ones(2, dtype=getattr(t, y))).dtype

        import torch

        ours, theirs = answer(call, antorcha), answer(call, torch)
        if isinstance(ours, Exception) != isinstance(theirs, Exception):
            failures.append(f"{name} of {x} and {y}: {ours!r:.100} for {theirs!r:.100}")
    assert not failures, "\n".join(failures)


WRITES: dict[str, Any] = {
    "full": lambda t, x, v: t.full((2,), v, dtype=x.dtype),
    "full_like": lambda t, x, v: t.full_like(x, v),
    "new_full": lambda t, x, v: x.new_full((2,), v),
    "scatter": lambda t, x, v: x.scatter(0, t.tensor([0]), v),
    "index_fill": lambda t, x, v: x.index_fill(0, t.tensor([0]), v),
}


@pytest.mark.oracle
def test_a_number_that_a_dtype_does_not_hold_is_not_written() -> None:
    failures = []
    for (name, write), dtype, number in itertools.product(WRITES.items(), DTYPES, BIG):

        def call(t: Any, write: Any = write, dtype: str = dtype, number: Any = number) -> Any:
            return write(t, t.zeros(2, dtype=getattr(t, dtype)), number)

        found = differ(call)
        if found:
            failures.append(f"{name} of {dtype} and {number}: {found}")
    assert not failures, "\n".join(failures)


@pytest.mark.oracle
def test_the_weights_of_a_product_are_numbers_of_its_dtype() -> None:
    for dtype, number, name in itertools.product(
        ("int8", "int64", "float16", "float32"), BIG, ("alpha", "beta")
    ):

        def call(t: Any, dtype: str = dtype, number: Any = number, name: str = name) -> Any:
            x = t.ones(2, 2, dtype=getattr(t, dtype))
            t.addmm(x, x, x, **{name: number})
            t.baddbmm(x[None], x[None], x[None], **{name: number})
            return None

        assert not differ(call), f"{name}={number} of {dtype}: {differ(call)}"


@pytest.mark.oracle
def test_complex_numbers_lose_no_part_in_real_tensors() -> None:
    for dtype, number in itertools.product(DTYPES, (1 + 2j, 1j, 1 + 0j)):
        for write in (
            lambda x, v: x.fill_(v), lambda x, v: x.fill_(value=v),
            lambda x, v: x.add_(v), lambda x, v: x.__setitem__(0, v),
        ):  # fmt: skip

            def call(t: Any, write: Any = write, dtype: str = dtype, number: Any = number) -> Any:
                return write(t.zeros(2, dtype=getattr(t, dtype)), number)

            for _ in range(3):  # by the general way, and by what it has learnt
                assert not differ(call), f"{dtype}, {number}: {differ(call)}"


@pytest.mark.oracle
def test_numbers_are_compared_in_the_dtype_of_the_tensor() -> None:
    numbers = (-1, 255, 300, -129, 2**40, 1.5, -1.5, True, 2**31, -(2**63))
    for dtype, number in itertools.product(("uint8", "int8", "int16", "int32", "int64"), numbers):
        for name in ("eq", "ne", "lt", "le", "gt", "ge"):

            def call(t: Any, name: str = name, dtype: str = dtype, number: Any = number) -> Any:
                return getattr(t.tensor([0, 1, 44, 127, -1]).to(getattr(t, dtype)), name)(number)

            for _ in range(2):
                assert not differ(call), f"{name} of {dtype} and {number}: {differ(call)}"


@pytest.mark.oracle
def test_ints_beyond_64_bits() -> None:
    """``alpha`` beside floats is one of them; operands end at 64 bits."""
    for number, dtype in itertools.product((2**63, 2**64 - 1), ("float32", "complex64")):
        for call in (
            lambda t, x, v: t.add(x, x, alpha=v),
            lambda t, x, v: t.addcmul(x, x, x, value=v),
        ):

            def made(t: Any, call: Any = call, dtype: str = dtype, number: int = number) -> Any:
                return call(t, t.ones(2, dtype=getattr(t, dtype)), number)

            for _ in range(3):
                assert not differ(made), f"{number} and {dtype}: {differ(made)}"
    whole = antorcha.ones(2, dtype=antorcha.int64)
    for number in (2**63, 2**64, -(2**63) - 1):
        for refused in (lambda v: whole + v, lambda v: antorcha.add(whole, 1, alpha=v),
                        lambda v: antorcha.mul(whole, v), lambda v: whole.fill_(v)):  # fmt: skip
            with pytest.raises(OverflowError, match="too big to convert"):
                refused(number)
    assert whole.tolist() == [1, 1]


@pytest.mark.oracle
def test_ints_beyond_64_bits_are_refused_by_every_op_that_takes_an_int() -> None:
    import torch

    failures, compared = [], 0
    for op in records.records():
        theirs = records.torch_form(op, torch)
        with contextlib.suppress(Exception):  # no sample in float32, or PyTorch has another form
            args, kwargs = next(records.samples(op, antorcha.float32))
            given, options = records.to_torch((args, kwargs), torch)
            theirs(*given, **options)
            for k, param in enumerate(op.signature.params):
                for number in (2**63, 2**64, -(2**63) - 1) if param.kind in ("Int", "Dim") else ():
                    mine = replaced(args, kwargs, k, param.name, number)
                    hers = replaced(given, options, k, param.name, number)
                    refused = answer(lambda _, f=theirs, a=hers: f(*a[0], **a[1]), torch)
                    if not isinstance(refused, ValueError):
                        continue  # another name for the argument, or a form that it picks
                    compared += 1
                    ours = answer(lambda _, f=op, a=mine: f(*a[0], **a[1]), antorcha)
                    if not (isinstance(ours, ValueError) and isinstance(ours, AntorchaError)):
                        failures.append(f"{op.name} {param.name}: {ours!r:.150}")
    assert not failures, "\n".join(failures)
    assert compared > 250


@pytest.mark.oracle
def test_what_has_no_derivative_still_requires_a_gradient() -> None:
    calls = [
        lambda t, x: x // 2,
        lambda t, x: 2 // x,
        lambda t, x: t.floor_divide(x, x),
        lambda t, x: t.ones(4).floor_divide_(x),
        lambda t, x: t.heaviside(x, t.ones(4)),
        lambda t, x: t.heaviside(t.ones(4), x),
        lambda t, x: t.unique(x),
        lambda t, x: t.unique(x, return_inverse=True),
        lambda t, x: t.unique(x.reshape(2, 2), dim=0),
        lambda t, x: t.unique_consecutive(x),
        lambda t, x: t.bincount(t.tensor([0, 1, 1, 0]), weights=x),
        lambda t, x: t.nextafter(x, x),
        lambda t, x: t.histc(x),
        lambda t, x: t.bucketize(x, x),
    ]
    for call in calls:
        for _ in range(3):
            assert not differ(lambda t, f=call: f(t, t.tensor(DATA, requires_grad=True)))
    for call in calls[:11]:
        x = antorcha.tensor(DATA, requires_grad=True)
        result = call(antorcha, x)
        result = result[0] if isinstance(result, tuple) else result
        with pytest.raises(RuntimeError, match="not implemented"):
            result.sum().backward()
        assert x.grad is None


def test_gelu_of_infinity_is_infinity() -> None:
    for dtype in (antorcha.float16, antorcha.float32, antorcha.float64):
        x = antorcha.tensor([math.inf, 3e4], dtype=dtype)
        for form in ("none", "tanh"):
            assert antorcha.nn.functional.gelu(x, approximate=form).tolist() == x.tolist()


@pytest.mark.oracle
def test_assert_close_says_what_pytorch_says() -> None:
    pairs = [
        ([1.0, 2.0], [1.0, 2.1]), (1.0, 1.1), ([0.0, 2.0], [0.0, 0.0]), ([0.0, math.nan], [0.0, 0]),
        ([1, 3], [1, 2]), ([[1.0, 2.0], [3, 5]], [[1.0, 2], [3, 4]]), (1, 2), ([1 + 1j], [1 + 2j]),
        ([True], [False]), ([math.inf, 1.0], [1.0, 1.0]), ([1.0], [1.0, 2.0]), ([1.0], [1]),
    ]  # fmt: skip

    def said(lib: Any, a: Any, b: Any, **options: Any) -> str:
        with pytest.raises(AssertionError) as caught:
            lib.testing.assert_close(a, b, **options)
        return str(caught.value)

    import torch

    libs = (antorcha, torch)
    for a, b in pairs:
        for options in ({}, {"rtol": 0, "atol": 0}, {"rtol": 1e-6, "atol": 1e-3}):
            texts = [said(lib, lib.tensor(a), lib.tensor(b), **options) for lib in libs]
            assert texts[0] == texts[1]
            if not isinstance(a, list):
                assert said(antorcha, a, b, **options) == said(torch, a, b, **options)
        nested = [said(lib, {"a": [lib.tensor(a)]}, {"a": [lib.tensor(b)]}) for lib in libs]
        assert nested[0] == nested[1]
