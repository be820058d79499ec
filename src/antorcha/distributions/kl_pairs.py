"""KL divergences between distributions of two families: see ``kl``.

They are ``-entropy(p) - E_p[log q(x)]`` in closed form.
"""

from __future__ import annotations

import math
from typing import Any

from antorcha.distributions.bernoulli import Bernoulli
from antorcha.distributions.beta import Beta
from antorcha.distributions.binomial import Binomial
from antorcha.distributions.continuous_bernoulli import ContinuousBernoulli
from antorcha.distributions.exponential import Exponential
from antorcha.distributions.gamma import Gamma
from antorcha.distributions.gumbel import Gumbel
from antorcha.distributions.kl import infinite, register_kl, where_infinite
from antorcha.distributions.laplace import Laplace
from antorcha.distributions.normal import Normal
from antorcha.distributions.pareto import Pareto
from antorcha.distributions.poisson import Poisson
from antorcha.distributions.uniform import Uniform
from antorcha.distributions.utils import euler_constant
from antorcha.ops.kinds.record import T

_BOUNDED = (Beta, ContinuousBernoulli, Pareto, Uniform)  # a half line is not in their support
_POSITIVE = (*_BOUNDED, Exponential, Gamma)  # nor is the whole line in that of these

for _type_p, _name, _types_q in (
    (Beta, "concentration1", (Pareto,)),
    (ContinuousBernoulli, "probs", (Pareto,)),
    (Exponential, "rate", _BOUNDED),
    (Gamma, "concentration", _BOUNDED),
    (Gumbel, "loc", _POSITIVE),
    (Laplace, "loc", _POSITIVE),
    (Normal, "loc", _POSITIVE),
    (Pareto, "scale", (Beta, ContinuousBernoulli, Uniform)),
    (Poisson, "rate", (Bernoulli, Binomial)),
):
    for _type_q in _types_q:
        register_kl(_type_p, _type_q)(lambda p, q, name=_name: infinite(getattr(p, name)))


def _log_gamma_norm(q: Any) -> Any:
    """The logarithm of one over a gamma density's factor."""
    return q.concentration.lgamma() - q.concentration * q.rate.log()


def _to_normal(q: Any, mean: Any, variance: Any) -> Any:
    """``-E[log q(x)]`` of a normal q, for x of a mean and a variance."""
    spread = (variance + mean.pow(2) - 2 * q.loc * mean + q.loc.pow(2)) / (2 * q.scale.pow(2))
    return 0.5 * math.log(2 * math.pi) + q.scale.log() + spread


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


# ------------------------------------------------------------------- from beta
@register_kl(Beta, ContinuousBernoulli)
@register_kl(Uniform, ContinuousBernoulli)
def _to_continuous_bernoulli(p: Any, q: Any) -> Any:
    kl = -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._log_norm()
    if isinstance(p, Uniform):
        return where_infinite((p.high >= 1.0) | (p.low <= 0.0), kl)
    return kl


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
def _to_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _beta_gamma(p: Any, q: Any) -> Any:
    log_mean = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    power = (q.concentration - 1) * log_mean
    return -p.entropy() + _log_gamma_norm(q) - power + q.rate * p.mean


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def _any_to_normal(p: Any, q: Any) -> Any:
    return -p.entropy() + _to_normal(q, p.mean, p.variance)


@register_kl(Beta, Uniform)
def _beta_uniform(p: Any, q: Any) -> Any:
    kl = -p.entropy() + (q.high - q.low).log()
    return where_infinite((q.low > 0.0) | (q.high < 1.0), kl)


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: Any, q: Any) -> Any:
    kl = -p.entropy() + (q.high - q.low).log()
    # (PyTorch's condition: infinite where q's interval is in p's or only touches its ends)
    return where_infinite((q.low >= 0.0) | (q.high <= 1.0), kl)


# ------------------------------------------------------------------- from exponential and gamma
@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    power = -q.concentration * ratio.log() + q.concentration * euler_constant
    return power + ratio + q.concentration.lgamma() - (1 + euler_constant)


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Any, q: Any) -> Any:
    product, shift = p.rate * q.scale, q.loc / q.scale
    expected = shift.exp() * product / (product + 1)
    return product.log() - 1 - shift + expected + product.reciprocal()


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Any, q: Any) -> Any:
    product, shift, a = p.rate * q.scale, q.loc / q.scale, p.concentration
    expected = shift.exp() * (1 + product.reciprocal()).pow(-a) - shift
    entropy = (a - 1) * a.digamma() - a.lgamma() - a
    return entropy + product.log() + a / product + expected


# ------------------------------------------------------------------- from normal
@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Any, q: Any) -> Any:
    mine, theirs, ratio = p.loc / q.scale, q.loc / q.scale, (p.scale / q.scale).pow(2)
    expected = (-mine + 0.5 * ratio + theirs).exp()
    constant = 0.5 * (1 + math.log(2 * math.pi))
    return -ratio.log() * 0.5 + (mine - theirs) + expected - constant


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Any:
    away = p.loc - q.loc
    ratio = away / p.scale
    density = math.sqrt(2 / math.pi) * p.scale * (-0.5 * ratio.pow(2)).exp()
    expected = density + away * T.erf(math.sqrt(0.5) * ratio)  # E|x - loc|
    constant = 0.5 * (1 + math.log(0.5 * math.pi))
    return -(p.scale / q.scale).log() + expected / q.scale - constant


# ------------------------------------------------------------------- from Pareto
@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Any, q: Any) -> Any:
    product = p.scale * q.rate
    mean = p.alpha * product / (p.alpha - 1)
    kl = (p.alpha / product).log() - p.alpha.reciprocal() + mean - 1
    return where_infinite(p.alpha <= 1, kl)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Any, q: Any) -> Any:
    log_mean = p.scale.log() + p.alpha.reciprocal()
    mean = q.rate * p.alpha * p.scale / (p.alpha - 1)
    power = (1 - q.concentration) * log_mean
    kl = p.alpha.log() - log_mean + _log_gamma_norm(q) + power + mean - 1
    return where_infinite(p.alpha <= 1, kl)


@register_kl(Pareto, Normal)
def _pareto_normal(p: Any, q: Any) -> Any:
    step = p.scale / (p.alpha - 1)
    spread = p.alpha * step.pow(2) / (p.alpha - 2) + (p.alpha * step - q.loc).pow(2)
    kl = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log() - p.alpha.reciprocal()
    return where_infinite(p.alpha <= 2, kl + spread / (2 * q.scale.pow(2)) - 1)


# ------------------------------------------------------------------- from uniform
def _log_integral(p: Any, mirrored: bool = False) -> Any:
    """``E[log x]`` of a uniform p, or ``E[log(1 - x)]``."""
    low, high = (1 - p.high, 1 - p.low) if mirrored else (p.low, p.high)
    width = p.high - p.low
    return (T.xlogy(high, high) - T.xlogy(low, low) - width) / width


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Any:
    a, b = q.concentration1, q.concentration0
    log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
    powers = (a - 1) * _log_integral(p) + (b - 1) * _log_integral(p, mirrored=True)
    return where_infinite((p.high > 1.0) | (p.low < 0.0), log_beta - p.entropy() - powers)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Any:
    kl = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return where_infinite(p.low < 0.0, kl)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Any:
    power = (1 - q.concentration) * _log_integral(p)
    kl = -p.entropy() + _log_gamma_norm(q) + power + q.rate * p.mean
    return where_infinite(p.low < 0.0, kl)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Any, q: Any) -> Any:
    ratio = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return ratio.log() + 0.5 * (high + low) - ratio * ((-high).exp() - (-low).exp())


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Any:
    norm = (q.alpha * q.scale.pow(q.alpha) * (p.high - p.low)).log()
    return where_infinite(p.low < q.scale, _log_integral(p) * (q.alpha + 1) - norm)
