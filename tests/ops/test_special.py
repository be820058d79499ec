"""Special functions where their records' samples do not reach: tails, ends, in-place forms."""

from __future__ import annotations

import math

import pytest

import antorcha as torch


def test_log_ndtr_in_the_tails() -> None:
    x = torch.tensor([-100.0, -1.0, 40.0], dtype=torch.float64, requires_grad=True)
    y = torch.special.log_ndtr(x)
    expected = torch.tensor([-5005.5242086942, -1.8410216450092636, 0.0], dtype=torch.float64)
    torch.testing.assert_close(y.detach(), expected)
    y.sum().backward()
    assert x.grad is not None
    slopes = torch.tensor([100.00999800099926, 1.525135276160981, 0.0], dtype=torch.float64)
    torch.testing.assert_close(x.grad, slopes)


def test_ndtri_goes_back() -> None:
    p = torch.tensor([1e-300, 1e-20, 0.1, 0.25, 0.5, 0.75, 0.999], dtype=torch.float64)
    torch.testing.assert_close(torch.special.ndtr(torch.special.ndtri(p)), p, rtol=2e-13, atol=0)
    assert torch.special.ndtri(torch.tensor([0.0, 1.0])).tolist() == [-math.inf, math.inf]
    assert torch.special.ndtri(torch.tensor([-0.1, 1.1])).isnan().all()


def test_integers_give_the_default_dtype() -> None:
    for name in ("i0", "i1e", "erfcx", "bessel_j0", "airy_ai", "ndtr"):
        assert getattr(torch.special, name)(torch.tensor([1, 2])).dtype is torch.float32
    assert torch.special.zeta(2, torch.tensor([1])).item() == pytest.approx(math.pi**2 / 6)
    assert torch.special.legendre_polynomial_p(torch.tensor([2]), 2).dtype is torch.float32


def test_zeta_has_a_slope_in_its_second_operand_alone() -> None:
    q = torch.tensor([1.0, 2.5], dtype=torch.float64, requires_grad=True)
    torch.special.zeta(torch.tensor(2.0, dtype=torch.float64), q).sum().backward()
    assert q.grad is not None
    assert q.grad[0].item() == pytest.approx(-2 * 1.2020569031595942)
    x = torch.tensor([2.0], requires_grad=True)
    with pytest.raises(NotImplementedError, match="derivative for 'zeta'"):
        torch.special.zeta(x, torch.tensor([1.0])).backward()


def test_degrees_of_polynomials() -> None:
    """Rounded towards 0; 0 below 0; NaN for Hermite's beyond what PyTorch computes."""
    n = torch.tensor([-2.0, -0.5, 0.0, 2.9])
    assert torch.special.hermite_polynomial_h(torch.tensor(2.0), n).tolist() == [0, 1, 1, 14]
    high = torch.tensor([513.0], dtype=torch.float64)
    assert torch.special.hermite_polynomial_he(torch.zeros(1).double(), high).isnan().all()
    assert not torch.special.bessel_j0(torch.ones(1, requires_grad=True)).requires_grad


def test_in_place_forms() -> None:
    x = torch.tensor([1.5, 2.5])
    for change, same in (
        (lambda t: t.i0_(), torch.i0(x)),
        (lambda t: t.polygamma_(2), torch.polygamma(2, x)),
        (lambda t: t.polygamma_(0), torch.digamma(x)),
        (lambda t: t.mvlgamma_(2), torch.mvlgamma(x, 2)),
        (lambda t: t.igamma_(x), torch.igamma(x, x)),
        (lambda t: t.igammac_(x), torch.igammac(x, x)),
    ):
        changed = x.clone()
        assert change(changed) is changed
        assert torch.equal(changed, same)
    whole = torch.tensor([12, -18], dtype=torch.int8)
    assert whole.clone().gcd_(torch.tensor([8, 12])).tolist() == [4, 6]
    assert whole.clone().lcm_(torch.tensor([8, 12])).tolist() == [24, 36]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_frexp_of_every_size(dtype: torch.dtype) -> None:
    info = torch.finfo(dtype)
    x = torch.tensor([info.max, -info.tiny, info.smallest_normal / 4, 0.0, -math.inf, 1.0]).to(
        dtype
    )
    x = torch.cat([x, torch.tensor([info.max, info.tiny / 4], dtype=dtype)])
    mantissa, exponent = torch.frexp(x)
    assert mantissa.dtype is dtype
    assert exponent.dtype is torch.int32
    for value, m, e in zip(x.tolist(), mantissa.tolist(), exponent.tolist(), strict=True):
        assert (m, e) == (math.frexp(value) if math.isfinite(value) else (value, 0))
    assert torch.frexp(torch.tensor([math.nan]))[0].isnan().all()
