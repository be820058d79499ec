"""Forward-mode differentiation: every record's tangents beside finite differences; programs beside
PyTorch's."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pytest

import antorcha
import antorcha.autograd.forward_ad as fwAD
from antorcha.ops.kinds.record import Op
from antorcha.runtime.tensor import Tensor
from tests.ops.records import map_tensors, records, results, samples, tensors_in

CHUNKS = 4
STEP = 1e-6


def wants(tensor: Tensor) -> bool:
    return tensor.dtype is antorcha.float64 or tensor.dtype is antorcha.complex128


def direction(tensor: Tensor, seed: int) -> Any:
    values = np.random.default_rng(seed).uniform(-1, 1, tuple(tensor.shape))
    if values.ndim > 1 and values.shape[-1] == values.shape[-2]:
        values = values + np.swapaxes(values, -1, -2)  # symmetric matrices stay so
    return antorcha.tensor(values, dtype=tensor.dtype)


def run(op: Op, args: Any, kwargs: Any, given: list[Any]) -> list[Any]:
    queue = list(given)
    values, named = map_tensors((args, kwargs), lambda t: queue.pop(0))
    return results(op(*values, **named))


def compare(op: Op, args: Any, kwargs: Any) -> str:
    tensors = tensors_in((args, kwargs))
    constant = op.rule is None and not op.is_composite
    if not any(map(wants, tensors)) or not op.differentiable or constant:
        return ""
    ways = [direction(t, k) if wants(t) else None for k, t in enumerate(tensors)]

    def moved(step: float) -> list[Any]:
        return [
            t.clone() if w is None else t + step * w for t, w in zip(tensors, ways, strict=True)
        ]

    try:
        with fwAD.dual_level():
            duals = [t if w is None else fwAD.make_dual(t.clone(), w)
                     for t, w in zip(tensors, ways, strict=True)]  # fmt: skip
            found = [fwAD.unpack_dual(each) for each in run(op, args, kwargs, duals)]
    except NotImplementedError:
        return ""
    plain = run(op, args, kwargs, [t.clone() for t in tensors])
    ends = [run(op, args, kwargs, moved(step)) for step in (STEP, -STEP)]
    for pair, value, up, down in zip(found, plain, *ends, strict=True):
        if not np.allclose(pair.primal.numpy(), value.detach().numpy(), equal_nan=True):
            return f"values {pair.primal.tolist()}, not {value.tolist()}"
        if not (value.dtype.is_floating_point or value.dtype.is_complex):
            continue
        expected = (up.detach().numpy() - down.detach().numpy()) / (2 * STEP)
        tangent = np.zeros(tuple(value.shape)) if pair.tangent is None else pair.tangent.numpy()
        smooth = np.isfinite(expected) & (np.abs(expected) < 1e4)  # no step, no pole beside it
        if not np.allclose(tangent[smooth], expected[smooth], rtol=1e-4, atol=1e-4):
            return f"tangents {tangent.tolist()}, not {expected.tolist()}"
    return ""


SIGNS = {"cholesky_solve", "linalg_qr", "linalg_svd", "linalg_eigh", "linalg_eig", "qr", "svd"}
"""Their vectors have a sign, or a phase, of their own; what nobody can tell has no derivative. The
gradient of a Cholesky factor has, as PyTorch's, the triangle that is not read."""


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_records(chunk: int) -> None:
    failures = []
    for op in records()[chunk::CHUNKS]:
        if op.random or op.name in SIGNS:
            continue
        for k, (args, kwargs) in enumerate(samples(op)):
            found = compare(op, args, kwargs)
            if found:
                failures.append(f"{op.name}, sample {k}: {found[:400]}")
    assert not failures, "\n".join(failures)


def program(torch: Any) -> None:
    """Prints what forward mode gives, in ways that both libraries print alike."""
    fw = torch.autograd.forward_ad
    x, t = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0])

    def show(value: Any) -> None:
        primal, tangent = fw.unpack_dual(value)
        print(primal.tolist(), None if tangent is None else tangent.tolist())

    def error(call: Any) -> None:
        with pytest.raises(Exception) as caught:
            call()
        assert isinstance(caught.value, (RuntimeError, ValueError))
        print(str(caught.value)[:60])

    with fw.dual_level():
        d = fw.make_dual(x, t)
        print(d.requires_grad, d.grad_fn, "tangent=" in repr(d))
        for value in (d * d, x, d.detach(), d > 1, torch.cat([d, x]), d[0], d.view(2, 1).T,
                      torch.ones_like(d), d.to(torch.float64), torch.where(d > 1, d, x),
                      torch.nn.functional.softmax(d, 0), d @ d, d.sort(descending=True)[0],
                      ):  # fmt: skip
            show(value)
        z = d.clone()
        z.mul_(3)
        show(z)
        part = z[0]
        part.mul_(2)
        show(z)
        show(part)
        for make in (lambda w: w.copy_(d), lambda w: w.__setitem__(0, d[0]), lambda w: w.add_(d)):
            w = torch.zeros(2)
            make(w)
            show(w)
        with torch.no_grad():
            show(d.exp())
        show(x)
        print(t.tolist(), d.sum().item())
        error(lambda: fw.make_dual(d, t))
        error(lambda: fw.make_dual(x, torch.ones(3)))
        error(lambda: fw.make_dual(torch.ones(2).long(), torch.ones(2).long()))
        error(lambda: fw.enter_dual_level())
        leaf = torch.nn.Parameter(x)
        y = fw.make_dual(leaf, t)
        tangent = fw.unpack_dual((y**3).sum()).tangent
        print(torch.autograd.grad(tangent, leaf)[0].tolist())
        kept = d * 2
    show(kept)
    error(lambda: fw.make_dual(x, t))


@pytest.mark.oracle
def test_a_program() -> None:
    torch = pytest.importorskip("torch")
    printed = []
    for library in (antorcha, torch):
        with contextlib.redirect_stdout(io.StringIO()) as text:
            program(library)
        printed.append(text.getvalue().splitlines())
    assert printed[0] == printed[1]


def test_gradcheck_of_forward_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    x = antorcha.tensor([[1.0, 2.0], [0.5, 3.0]], dtype=antorcha.float64, requires_grad=True)
    z = antorcha.tensor([1 + 2j, 0.5j], requires_grad=True, dtype=antorcha.complex128)
    check = antorcha.autograd.gradcheck
    assert check(lambda x: (x @ x).sin(), (x,), check_forward_ad=True)
    assert check(lambda z: (z * z, z.abs()), (z,), check_forward_ad=True)
    monkeypatch.setattr(fwAD, "_push", lambda roots, duals, leaves: [r.detach() for r in roots])
    with pytest.raises(RuntimeError, match="forward mode mismatch"):
        check(lambda x: x.sin(), (x,), check_forward_ad=True)


def test_modules_and_transforms() -> None:
    net = antorcha.nn.Sequential(antorcha.nn.Linear(3, 4), antorcha.nn.LayerNorm(4),
                                 antorcha.nn.GELU(), antorcha.nn.Linear(4, 2)).double()  # fmt: skip
    x, t = [antorcha.tensor(np.random.default_rng(k).normal(size=(5, 3))) for k in (0, 1)]
    with fwAD.dual_level():
        tangent = fwAD.unpack_dual(net(fwAD.make_dual(x, t))).tangent
    expected = antorcha.func.jvp(net, (x,), (t,))[1]
    np.testing.assert_allclose(tangent.detach().numpy(), expected.detach().numpy())
    assert antorcha.core.modes.duals == 0


def test_a_level_that_fails_leaves_nothing() -> None:
    kept: list[Any] = []

    def fail() -> None:
        with fwAD.dual_level():
            kept.append(fwAD.make_dual(antorcha.ones(2), antorcha.ones(2)))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert type(kept[0]) is antorcha.Tensor
    assert antorcha.core.modes.duals == 0
