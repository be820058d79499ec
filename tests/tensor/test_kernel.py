"""``@antorcha.kernel``: users' own fused ops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.autograd import gradcheck, gradgradcheck
from antorcha.lang import expr

kernel = torch.kernel


@kernel
def swish(x: Any, beta: Any = 1.0) -> Any:
    """x * sigmoid(beta * x)."""
    return x * torch.sigmoid(beta * x)


def rand(*shape: int) -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(*shape, dtype=torch.float64).requires_grad_()


def test_it_computes() -> None:
    x = rand(5).detach()
    np.testing.assert_allclose(swish(x, 2.0).numpy(), (x * torch.sigmoid(2 * x)).numpy())
    np.testing.assert_allclose(swish(x).numpy(), (x * torch.sigmoid(x)).numpy())
    assert swish.__doc__ == "x * sigmoid(beta * x)."
    out = torch.empty(5, dtype=torch.float64)
    assert swish(x, out=out) is out
    assert swish(x, beta=3).shape == (5,)


def test_gradients_of_two_orders() -> None:
    x, b = rand(4), rand(3, 1)
    assert gradcheck(swish, (x, b))
    assert gradgradcheck(swish, (x, b))
    assert type(swish(x).grad_fn).__name__ == "SwishBackward0"


def test_promotion_and_broadcasting() -> None:
    half = torch.ones(2, dtype=torch.float16)
    assert swish(torch.arange(3)).dtype is torch.float32
    assert swish(half).dtype is swish(half, 2.0).dtype is torch.float16
    assert swish(half, torch.ones(2)).dtype is torch.float32
    assert swish(torch.ones(2), torch.tensor(2.0, dtype=torch.float64)).dtype is torch.float32
    assert swish(torch.ones(3, 1), torch.ones(4)).shape == (3, 4)
    assert kernel(lambda a, b: a > b)(torch.ones(2), 0.5).dtype is torch.bool
    assert kernel(lambda a: a + 1, types="float")(torch.arange(2)).dtype is torch.float32
    with pytest.raises(RuntimeError):
        swish(torch.ones(2), torch.ones(3))
    with pytest.raises(TypeError):
        swish("a")


def test_an_if_names_its_line() -> None:
    @kernel
    def wrong(x: Any) -> Any:
        if x > 0:
            return x
        return -x

    with pytest.raises(RuntimeError, match=r"wrong: line \d+ of .*test_kernel.py, `if x > 0:`"):
        wrong(torch.ones(2))
    with pytest.raises(RuntimeError, match="math or NumPy"):
        kernel(lambda x: math.exp(x))(torch.ones(2))
    with pytest.raises(RuntimeError, match="sort is not available"):
        kernel(lambda x: torch.sort(x))(torch.ones(2))
    with pytest.raises(TypeError, match="args"):
        kernel(lambda *x: x)


def test_explicit_derivative() -> None:
    @kernel
    def straight(x: Any, y: Any) -> Any:
        return torch.round(x) * y

    @straight.derivative
    def _(g: Any, x: Any, y: Any, out: Any) -> Any:
        return g * y, g * out

    x, y = rand(3), rand(3)
    straight(x, y).sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), y.detach().numpy())
    np.testing.assert_allclose(y.grad.numpy(), straight(x, y).detach().numpy())
    with pytest.raises(TypeError, match="neither g, out nor"):
        straight.derivative(lambda g, z: g)


def test_a_derivative_given_after_a_backward_pass_counts() -> None:
    @kernel
    def rounded(x: Any) -> Any:
        return torch.round(x)

    def slope() -> list[float]:
        x = torch.tensor([0.2, 1.7], requires_grad=True)
        (grad,) = torch.autograd.grad(rounded(x).sum(), x)
        return grad.tolist()

    assert [slope() for _ in range(3)] == [[0, 0]] * 3
    rounded.derivative(lambda g, x: g)
    assert [slope() for _ in range(3)] == [[1, 1]] * 3


def test_options_are_compiled_in() -> None:
    @kernel
    def f(x: Any, *, kind: str = "a", scale: float = 1.0) -> Any:
        return x * scale if kind == "a" else torch.nn.functional.silu(x)

    x = torch.ones(2)
    assert f(x, scale=3.0).tolist() == [3.0, 3.0]
    assert f(x, scale=4.0).tolist() == [4.0, 4.0]
    np.testing.assert_allclose(f(x, kind="b").numpy(), torch.nn.functional.silu(x).numpy())


def test_kernels_and_torch_functions_inside() -> None:
    x = torch.tensor([0.0, 3.0])
    both = kernel(lambda x: swish(x) + torch.lerp(x, x + 1, 0.5) + torch.clamp(x, -1, 1) + abs(x))
    wanted = swish(x) + torch.lerp(x, x + 1, 0.5) + torch.clamp(x, -1, 1) + abs(x)
    np.testing.assert_allclose(both(x).numpy(), wanted.numpy(), rtol=1e-6)


def test_expression_functions_on_tensors_call_ops() -> None:
    x = torch.tensor([1.0, 4.0])
    assert expr.sqrt(x).tolist() == [1.0, 2.0]
    assert expr.where(x > 2, x, 0.0).tolist() == [0.0, 4.0]
    assert expr.cast(x, torch.int64).dtype is torch.int64


# ------------------------------------------------------------------------------------------ rows
@kernel(rows=True)
def softmax(x: Any) -> Any:
    e = (x - x.max().detach()).exp()
    return e / e.sum()


@kernel(rows=True)
def norm(x: Any, w: Any, b: Any, *, eps: float = 1e-5) -> Any:
    d = x - x.mean()
    return d * torch.rsqrt((d * d).mean() + eps) * w + b


@pytest.mark.parametrize("dim", [0, 1, -1, -2])
def test_rows_along_any_dim(dim: int) -> None:
    x = rand(3, 4)
    np.testing.assert_allclose(
        softmax(x, dim=dim).detach().numpy(), torch.softmax(x, dim).detach().numpy(), rtol=1e-12
    )
    assert gradcheck(lambda x: softmax(x, dim=dim), (x,))
    assert gradgradcheck(lambda x: softmax(x, dim=dim), (x,))


def test_rows_with_shared_operands() -> None:
    x, w, b = rand(3, 4), rand(4), rand(4)
    assert gradcheck(norm, (x, w, b))
    assert gradgradcheck(norm, (x, w, b))
    assert gradcheck(lambda *a: norm(*a, eps=0.1), (x, rand(3, 1), b))


def test_rows_that_end_in_one_value() -> None:
    @kernel(rows=True)
    def moments(x: Any) -> Any:
        return x.mean(), x.var()

    x = rand(3, 4)
    mean, var = moments(x)
    assert mean.shape == var.shape == (3,)
    np.testing.assert_allclose(var.detach().numpy(), x.var(-1).detach().numpy())
    assert gradcheck(moments, (x,))
    assert kernel(rows=True)(lambda x: torch.sum(x))(torch.ones(4)).shape == ()


def test_rows_with_an_explicit_derivative() -> None:
    @kernel(rows=True)
    def same(x: Any) -> Any:
        e = (x - x.max()).exp()
        return e / e.sum()

    @same.derivative
    def _(g: Any, out: Any) -> Any:
        return out * (g - (g * out).sum())

    assert gradcheck(same, (rand(3, 4),))
    assert gradgradcheck(same, (rand(3, 4),))


def test_rows_refuse() -> None:
    for wrong, error in (
        (lambda: softmax(3.0), TypeError), (lambda: softmax(torch.tensor(1.0)), RuntimeError),
        (lambda: softmax(torch.ones(2), dim=3), IndexError),
        (lambda: softmax(torch.ones(2), sise=3), TypeError),
        (lambda: norm(torch.ones(2), torch.ones(3), torch.ones(2)), RuntimeError),
    ):  # fmt: skip
        with pytest.raises(error):
            wrong()


def chosen_bits(m, a, b):
    return torch.where(m > 0, (a & 0x7FFFFFFF) | (b & -0x80000000), b)


def chosen_bits_the_other_way(m, a, b):
    return torch.where(m > 0, (b & 0x7FFFFFF0) | (a & 15), b)


def chosen_bits_or_the_first(m, a, b):
    return torch.where(m > 0, (a & 0x7FFFFFF0) | (b & 15), a)


def by_differences(m, a, b):
    return torch.where(m > 0, ((a ^ b) & 0x7FFF00) ^ b, b)


def kept_above(m, a, b):
    return torch.where(m > 0, b, (a & b) | (b ^ 5))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(
    "fn",
    [chosen_bits, chosen_bits_the_other_way, chosen_bits_or_the_first, by_differences, kept_above],
)
def test_bits_chosen_by_a_condition(fn: Any, dtype: str) -> None:
    """AVX-512 has one instruction for the whole; LLVM 22 gives it its operands in a wrong order."""
    random = np.random.default_rng(0)
    m, a, b = (random.integers(-(1 << 31), 1 << 31, 1000).astype(dtype) for _ in range(3))
    expected = fn(torch.tensor(m), torch.tensor(a), torch.tensor(b))  # op by op
    found = torch.kernel(fn)(torch.tensor(m), torch.tensor(a), torch.tensor(b))
    assert found.equal(expected)


# ------------------------------------------------------------------------------- several results
@kernel
def scaled_pair(x: Any, y: Any = 2.0) -> Any:
    return torch.sin(x) * y, torch.cos(x), x > 0


def test_several_results_of_one_pass() -> None:
    x, y = rand(2, 3), rand(3)
    sine, _, positive = scaled_pair(x, y)
    np.testing.assert_allclose(sine.detach().numpy(), np.sin(x.detach()) * y.detach().numpy())
    assert (sine.dtype, positive.dtype) == (torch.float64, torch.bool)
    assert not positive.requires_grad
    assert torch.equal(positive, x > 0)
    for both in (scaled_pair, lambda x, y: scaled_pair(x, y)[0], lambda x, y: scaled_pair(x, y)[1]):
        numbers = lambda x, y, both=both: [  # noqa: E731
            t for t in both(x, y) if t.is_floating_point()
        ]  # fmt: skip
        assert gradcheck(numbers, (x, y))
        assert gradgradcheck(numbers, (x, y))
    for n in range(1, 6):  # sizes never met
        again = rand(n, 1)
        scaled_pair(again)[1].sum().backward()
        np.testing.assert_allclose(again.grad.numpy(), -np.sin(again.detach().numpy()))


def test_several_results_elsewhere() -> None:
    x = rand(2, 3).detach()
    outs = (torch.empty(3, 2, dtype=torch.float64).t(), torch.empty(2, 3, dtype=torch.float64),
            torch.empty(2, 3, dtype=torch.bool))  # fmt: skip
    made = scaled_pair(x, out=outs)
    assert all(a is b for a, b in zip(made, outs))
    for out, fresh in zip(outs, scaled_pair(x)):
        assert torch.equal(out, fresh)
    for out, same in zip(scaled_pair(x), scaled_pair(x.to("reference"))):
        np.testing.assert_allclose(out.numpy(), same.cpu().numpy())
    assert [t.shape for t in scaled_pair(x.to("meta"))] == [(2, 3)] * 3

    @kernel
    def total(x):
        sine, cosine, _ = scaled_pair(x)
        return sine + cosine

    np.testing.assert_allclose(total(x).numpy(), 2 * np.sin(x.numpy()) + np.cos(x.numpy()))


def test_an_explicit_derivative_of_several_results() -> None:
    @kernel
    def polar(r, angle):
        return r * torch.cos(angle), r * torch.sin(angle)

    r, angle = rand(4), rand(4)
    found = [polar(r, angle)[1].sum(), sum(polar(r, angle)).sum()]
    expected = [torch.autograd.grad(f, (r, angle), retain_graph=True) for f in found]

    @polar.derivative
    def _(g, out, angle):
        return (
            g[0] * torch.cos(angle) + g[1] * torch.sin(angle), g[1] * out[0] - g[0] * out[1],
        )  # fmt: skip

    found = [polar(r, angle)[1].sum(), sum(polar(r, angle)).sum()]
    for f, wanted in zip(found, expected):
        for a, b in zip(torch.autograd.grad(f, (r, angle)), wanted):
            np.testing.assert_allclose(a.numpy(), b.numpy())


def test_a_kernel_returns_something() -> None:
    for wrong in (kernel(lambda x: None), kernel(lambda x: ())):
        with pytest.raises(RuntimeError, match="a kernel returns a value, or several"):
            wrong(rand(2))


# ---------------------------------------------------------------------------- traced once, anywhere
def test_rows_are_traced_once_a_kind() -> None:
    traced = []

    @kernel(rows=True)
    def centred(x, *, scale=1.0):
        traced.append(scale)
        return (x - x.mean()) * scale

    for n in range(2, 6):
        x = rand(n, 4)
        centred(x).sum().backward()
        centred(x, scale=2)
    assert traced == [1.0, 2]
    for _ in range(2):
        centred(rand(3, 2), scale=math.nan)
        centred(rand(3, 2), scale=float("nan"))
    assert len(traced) == 3
    with pytest.raises(TypeError, match=r"centred: scale must be a number, not list"):
        centred(rand(3, 2), scale=[1])


@pytest.mark.parametrize("rows", [False, True])
def test_options_that_are_equal_but_not_the_same(rows: bool) -> None:
    @kernel(rows=rows)
    def signed(x, *, of=1.0):
        return torch.copysign(x, of)

    x = torch.ones(2)
    found = [signed(x, of=of).tolist() for of in (0.0, -0.0, 0, -1, -1.0, True)]
    assert found == [[1.0] * 2, [-1.0] * 2, [1.0] * 2, [-1.0] * 2, [-1.0] * 2, [1.0] * 2]


MODES: dict[str, Any] = {
    "inference": torch.inference_mode,
    "no_grad": torch.no_grad,
    "anomaly": lambda: torch.autograd.set_detect_anomaly(True),
    "profile": torch.profiler.profile,
    "saved": lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    "graph": torch.graph.recording,
    "device": lambda: torch.device("cpu"),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", [False, True])
def test_a_kernel_is_first_traced_in_any_mode(mode: str, rows: bool) -> None:
    @kernel(rows=rows)
    def gated(x):
        return torch.where(x > 0, torch.exp(x), 1) * torch.nn.functional.silu(torch.sigmoid(x))

    x = rand(3, 4)
    plain = torch.where(x > 0, torch.exp(x), 1) * torch.nn.functional.silu(torch.sigmoid(x))
    with MODES[mode]():
        made = gated(x)
        if made.requires_grad:
            made.sum().backward()
    np.testing.assert_allclose(made.detach().numpy(), plain.detach().numpy())


def test_operands_of_other_classes_are_asked_in_any_mode() -> None:
    class Meter:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            return getattr(func, "__name__", func)

        __torch_function_symbolic__ = True  # (other tests are not to be watched from now on)

    for mode in MODES.values():
        with mode():
            assert torch.exp(Meter()) == "exp"
            assert torch.nn.functional.gelu(Meter()) == "gelu"
