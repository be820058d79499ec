"""Tests that follow from the records alone: every op with samples passes through all of them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.ops.kinds.record import Composite, Op
from antorcha.runtime.tensor import Tensor
from tests.ops.records import (
    Maker,
    close,
    differentiable,
    everything,
    map_tensors,
    results,
    samples,
    tensors_in,
    to_torch,
    torch_form,
)

# The one check of test_parity that does not hold of an op, and why; all others do.
DEVIATIONS = {
    # What is written over has the gradient there, what stays has none: the wrong way round.
    "as_strided_scatter": "gradient",
    # The slope is 1/6; PyTorch's constant is a float32, in float64 too.
    "hardsigmoid": "gradient in float64",
    # Its own backward fails: it writes to the inverse that it has saved.
    "linalg_cond": "backward",
    # So does this one's: it writes to the powers that it has saved.
    "vander": "backward",
}
# Functions of symmetric matrices read one triangle; their gradient is that of the symmetric part.
SYMMETRIC = ("linalg_cholesky", "linalg_cholesky_ex", "linalg_eigvalsh", "linalg_eigh")
# A triangular factor gets, as in PyTorch, the gradient of a full one: only its triangle counts.
TRIANGULAR = {"cholesky_solve": 1}

MAKES_RANDOM = ("rand", "normal", "bernoulli", "dropout", "multinomial", "poisson", "empty")


def is_random(op: Op) -> bool:
    return any(word in op.name for word in MAKES_RANDOM)


def same_values(a: Tensor, b: Tensor, what: str, rtol: float = 1e-9) -> None:
    x, y = a.detach(), b.detach()
    assert x.dtype is y.dtype, what
    assert x.shape == y.shape, what
    left, right = np.asarray(x.tolist()), np.asarray(y.tolist())
    if left.dtype.kind in "fc":
        np.testing.assert_allclose(left, right, rtol=rtol, atol=rtol, err_msg=what)
    else:
        np.testing.assert_array_equal(left, right, err_msg=what)


@everything
@pytest.mark.each_op
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_cpu_is_reference(op: Op, dtype: str) -> None:
    """The CPU's kernels compute what the interpreted descriptions do."""
    if is_random(op):
        pytest.skip("random")
    rtol = 1e-9 if dtype == "float64" else 3e-5
    for args, kwargs in samples(op, getattr(antorcha, dtype)):
        if not tensors_in((args, kwargs)):
            continue
        ours = op(*args, **kwargs)
        there = map_tensors((args, kwargs), lambda t: t.to("reference"))
        if kwargs.get("device") is not None:
            continue
        theirs = op(*there[0], **there[1])
        for k, (a, b) in enumerate(zip(results(ours), results(theirs), strict=True)):
            assert b.device.type == "reference", f"{op.name}: result {k} left the device"
            same_values(a, b.to("cpu"), f"{op.name}{args}{kwargs} result {k}", rtol)


@everything
def test_strided_operands(op: Op) -> None:
    """An operand's strides do not change the result."""
    if is_random(op):
        pytest.skip("random")

    def spread(t: Tensor) -> Tensor:
        """The same values, every second element of something larger, dims in another order."""
        if t.ndim == 0:
            return t
        wide = antorcha.zeros(*[2 * n for n in reversed(t.shape)], dtype=t.dtype)
        view = wide[tuple([slice(None, None, 2)] * t.ndim)].permute(*reversed(range(t.ndim)))
        view.copy_(t)
        return view

    for args, kwargs in samples(op):
        try:
            ours = op(*args, **kwargs)
            other = map_tensors((args, kwargs), spread)
            theirs = op(*other[0], **other[1])
        except RuntimeError as error:
            if "view size is not compatible" in str(error) or "view" in op.name:
                continue
            raise
        if op.name.startswith(("as_strided", "empty")):
            continue
        for a, b in zip(results(ours), results(theirs), strict=True):
            same_values(a, b, f"{op.name}{args}{kwargs}")


@everything
def test_meta_knows_the_shape(op: Op) -> None:
    """The meta device gives the same shapes, strides and dtypes without computing."""
    for args, kwargs in samples(op):
        if not tensors_in((args, kwargs)) or kwargs.get("device") is not None:
            continue
        there = map_tensors((args, kwargs), lambda t: t.to("meta"))
        try:
            theirs = op(*there[0], **there[1])
        except NotImplementedError:
            continue  # data-dependent, and says so
        for a, b in zip(results(op(*args, **kwargs)), results(theirs), strict=True):
            assert (a.shape, a.stride(), a.dtype) == (b.shape, b.stride(), b.dtype), op.name


@everything
def test_inplace_and_out(op: Op) -> None:
    """``op_`` and ``out=`` write what ``op`` gives."""
    if is_random(op):
        pytest.skip("random")
    for args, kwargs in samples(op):
        if "inplace" in kwargs or not args or not isinstance(args[0], Tensor):
            continue
        expected = op(*args, **kwargs)
        if not isinstance(expected, Tensor):
            continue
        if (
            op.inplace is not None
            and expected.shape == args[0].shape
            and (expected.dtype is args[0].dtype)
        ):
            target = args[0].clone()
            version = target._version
            assert op.inplace(target, *args[1:], **kwargs) is target
            assert target._version > version, f"{op.name}_ does not count its write"
            same_values(target, expected, f"{op.name}_{args[1:]}")
        if op.has_out and not isinstance(op, Composite) and expected._base is None:
            out = antorcha.empty(0, dtype=expected.dtype)
            assert op(*args, **kwargs, out=out) is out
            same_values(out, expected, f"{op.name} out=")


@everything
def test_gradients(op: Op) -> None:
    """Gradients of first and second order by finite differences."""
    if is_random(op):
        pytest.skip("random")
    from antorcha.autograd import gradcheck, gradgradcheck

    for args, kwargs in samples(op):
        if not differentiable(op, args, kwargs):
            continue
        inputs = [t for t in tensors_in((args, kwargs)) if t.dtype.is_floating_point]
        symmetric = op.name in SYMMETRIC
        probe = map_tensors((args, kwargs), lambda t: t.detach().requires_grad_(True)
                            if t.dtype.is_floating_point else t)  # fmt: skip
        outs = [r for r in results(op(*probe[0], **probe[1])) if r.requires_grad]
        if not outs:
            continue

        def run(
            *leaves: Tensor, args: Any = args, kwargs: Any = kwargs, symmetric: bool = symmetric
        ) -> Any:
            queue = [(t + t.mT) / 2 for t in leaves] if symmetric else list(leaves)
            if (at := TRIANGULAR.get(op.name)) is not None:
                queue[at] = queue[at].tril()

            def take(each: Tensor) -> Tensor:
                return queue.pop(0) if each.dtype.is_floating_point else each

            filled = map_tensors((args, kwargs), take)
            made = [r for r in results(op(*filled[0], **filled[1])) if r.requires_grad]
            return tuple(made)

        leaves = [t.detach().clone().requires_grad_(True) for t in inputs]
        assert gradcheck(run, leaves), f"{op.name}{args}{kwargs}"
        assert gradgradcheck(run, leaves), f"{op.name}{args}{kwargs} (second order)"


@everything
def test_errors(op: Op) -> None:
    """Wrong arguments get the class and the words that the record promises."""
    make = Maker(op.name)
    for fn in op.error_functions:
        for args, kwargs, kind, text in fn(make):
            with pytest.raises(kind) as caught:
                op(*args, **kwargs)
            assert text in str(caught.value), f"{op.name}: {caught.value}"


@everything
@pytest.mark.oracle
def test_parity(op: Op) -> None:
    """Values, dtypes, shapes, strides and gradients are PyTorch's."""
    torch = pytest.importorskip("torch")
    form = torch_form(op, torch)
    if form is None or is_random(op):
        pytest.skip("PyTorch shows no such function")
    known = DEVIATIONS.get(op.name, "")
    for dtype in (antorcha.float32, antorcha.float64):
        for args, kwargs in samples(op, dtype):
            args, kwargs = map_tensors(
                (args, kwargs), lambda t: t.requires_grad_(t.dtype.is_floating_point)
            )
            theirs_in = to_torch((args, kwargs), torch)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs = form(*theirs_in[0], **theirs_in[1])
                ours = op(*args, **kwargs)
            what = f"{op.name}{args}{kwargs}"
            left = results(ours)
            right = [t for t in (theirs if isinstance(theirs, tuple) else [theirs])
                     if isinstance(t, torch.Tensor)]  # fmt: skip
            if not isinstance(ours, (Tensor, tuple, list)):
                assert ours == theirs, what
                continue
            assert len(left) == len(right), what
            for a, b in zip(left, right, strict=True):
                close(a, b, what)
                if a.numel():
                    assert a.stride() == b.stride(), f"{what}: strides {a.stride()}"
                assert a.requires_grad == b.requires_grad, what
                if "NotImplemented" in str(b.grad_fn):  # PyTorch has no derivative: nor have we
                    assert not op.differentiable, what
                    left = [r for r in left if r is not a]
                    right = [r for r in right if r is not b]
            total = sum([r.sum() for r in left if r.requires_grad and r.dtype.is_floating_point])
            if not isinstance(total, Tensor) or known == "backward":
                continue
            total.backward()
            sum([r.sum() for r in right if r.requires_grad]).backward()
            pairs = zip(tensors_in((args, kwargs)), torch_tensors(theirs_in, torch), strict=True)
            for a, b in pairs:
                assert (a.grad is None) == (b.grad is None), f"{what}: a gradient is missing"
                if a.grad is not None and known not in ("gradient", f"gradient in {dtype.name}"):
                    close(a.grad, b.grad, f"{what} gradient")


def torch_tensors(value: Any, torch: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for v in value.values() for t in torch_tensors(v, torch)]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in torch_tensors(v, torch)]
    return []
