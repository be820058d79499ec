"""kl_divergence: how far one distribution is from another; the table of pairs.

``KL(p || q) = E_p[log p(x) - log q(x)]``. This file has the table and the pairs of one family;
``kl_pairs`` has those of two.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from antorcha.autograd import grad
from antorcha.core.shapes import broadcast_shapes
from antorcha.distributions.bernoulli import Bernoulli
from antorcha.distributions.beta import Beta
from antorcha.distributions.binomial import Binomial
from antorcha.distributions.categorical import Categorical
from antorcha.distributions.cauchy import Cauchy
from antorcha.distributions.continuous_bernoulli import ContinuousBernoulli
from antorcha.distributions.dirichlet import Dirichlet
from antorcha.distributions.distribution import Distribution
from antorcha.distributions.exp_family import ExponentialFamily
from antorcha.distributions.exponential import Exponential
from antorcha.distributions.gamma import Gamma
from antorcha.distributions.geometric import Geometric
from antorcha.distributions.gumbel import Gumbel
from antorcha.distributions.half_normal import HalfNormal
from antorcha.distributions.independent import Independent
from antorcha.distributions.laplace import Laplace
from antorcha.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from antorcha.distributions.multivariate_normal import MultivariateNormal, mahalanobis
from antorcha.distributions.normal import Normal
from antorcha.distributions.one_hot_categorical import OneHotCategorical
from antorcha.distributions.pareto import Pareto
from antorcha.distributions.poisson import Poisson
from antorcha.distributions.transformed_distribution import TransformedDistribution
from antorcha.distributions.uniform import Uniform
from antorcha.distributions.utils import _sum_rightmost, euler_constant
from antorcha.errors import ArgumentError, MissingFeature, ValueRangeError, warn
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor

__all__ = ["kl_divergence", "register_kl"]

Pair = tuple[type, type]
_KL_REGISTRY: dict[Pair, Callable[..., Any]] = {}
_KL_MEMOIZE: dict[Pair, Callable[..., Any] | None] = {}


def register_kl(type_p: Any, type_q: Any) -> Callable[[Any], Any]:
    """Decorates a function (p, q) that gives KL(p || q) for two classes and their subclasses.

    Where several pairs match, the one with the most specific classes is taken; where that is not
    clear, a warning says which pair to register.

    >>> class Mine(torch.distributions.Normal): pass
    >>> @torch.distributions.register_kl(Mine, Mine)
    ... def _(p, q): return p.loc - q.loc
    """
    for name, each in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(each, type):  # (libraries register classes of their own, as in PyTorch)
            raise ArgumentError(f"Expected {name} to be a Distribution subclass but got {each}")

    def decorator(fn: Any) -> Any:
        _KL_REGISTRY[type_p, type_q] = fn
        _KL_MEMOIZE.clear()
        return fn

    return decorator


def _dispatch(type_p: type, type_q: type) -> Callable[..., Any] | None:
    """The function of the most specific pair: by p's class first, and by q's first."""
    matches = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not matches:
        return None

    def depth(pair: Pair) -> tuple[int, int]:  # how far above the classes asked for
        return type_p.__mro__.index(pair[0]), type_q.__mro__.index(pair[1])

    left = min(matches, key=depth)
    right = min(matches, key=lambda pair: depth(pair)[::-1])
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please "
            f"register_kl({left[0].__name__}, {right[1].__name__})",
            RuntimeWarning,
        )
    return _KL_REGISTRY[left]


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """The Kullback-Leibler divergence ``KL(p || q)``, one for each distribution of the batch.

    >>> d = torch.distributions
    >>> d.kl_divergence(d.Normal(0.0, 1.0), d.Normal(1.0, 1.0))
    tensor(0.5000)
    """
    pair = type(p), type(q)
    if pair not in _KL_MEMOIZE:
        _KL_MEMOIZE[pair] = _dispatch(*pair)
    found = _KL_MEMOIZE[pair]
    if found is None:
        raise MissingFeature(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
            f"{type(q).__name__}"
        )
    return found(p, q)


def infinite(tensor: Tensor) -> Any:
    """Infinity for each: p has values that q has not."""
    return T.full_like(tensor, math.inf)


def where_infinite(condition: Any, result: Any) -> Any:
    """The result, infinite where p has values that q has not."""
    return T.where(condition, math.inf, result)


# ------------------------------------------------------------------- any exponential family
@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_families(p: Any, q: Any) -> Any:
    """A Bregman divergence of the log normaliser (Nielsen & Nock 2010)."""
    if type(p) is not type(q):
        raise MissingFeature(
            "The cross KL-divergence between different exponential families cannot be computed "
            "using Bregman divergences"
        )
    at_p = [each.detach().requires_grad_() for each in p._natural_params]
    of_p = p._log_normalizer(*at_p)
    slopes = grad(of_p.sum(), at_p, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - of_p
    for mine, theirs, slope in zip(at_p, q._natural_params, slopes, strict=True):
        result = result - _sum_rightmost((theirs - mine) * slope, len(q.event_shape))
    return result


# ------------------------------------------------------------------- discrete
@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    hit = p.probs * (T.softplus(-q.logits) - T.softplus(-p.logits))
    hit = T.where(p.probs == 0, 0.0, where_infinite(q.probs == 0, hit))
    miss = (1 - p.probs) * (T.softplus(q.logits) - T.softplus(p.logits))
    return hit + T.where(p.probs == 1, 0.0, where_infinite(q.probs == 1, miss))


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    if (p.total_count < q.total_count).any():
        raise MissingFeature(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    misses = (-p.probs).log1p() - (-q.probs).log1p()
    kl = p.total_count * (p.probs * (p.logits - q.logits) + misses)
    return where_infinite(p.total_count > q.total_count, kl)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    terms = where_infinite(q.probs == 0, p.probs * (p.logits - q.logits))
    return T.where(p.probs == 0, 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Any:
    return _categorical(p._categorical, q._categorical)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


# ------------------------------------------------------------------- numbers
@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    total_p, total_q = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    log_betas = (
        q.concentration1.lgamma() + q.concentration0.lgamma() + total_p.lgamma()
        - (p.concentration1.lgamma() + p.concentration0.lgamma() + total_q.lgamma())
    )  # fmt: skip
    return (
        log_betas
        + (p.concentration1 - q.concentration1) * p.concentration1.digamma()
        + (p.concentration0 - q.concentration0) * p.concentration0.digamma()
        + (total_q - total_p) * total_p.digamma()
    )


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    distance = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return distance.log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Any:
    of_p = p._log_norm() + (-p.probs).log1p()
    return p.mean * (p.logits - q.logits) + of_p - q._log_norm() - (-q.probs).log1p()


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Any:
    return (
        q.concentration * (p.rate / q.rate).log()
        + (q.concentration.lgamma() - p.concentration.lgamma())
        + (p.concentration - q.concentration) * p.concentration.digamma()
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Any:
    ratio, mine, theirs = p.scale / q.scale, p.loc / q.scale, q.loc / q.scale
    expected = (theirs + (1 + ratio).lgamma() - mine).exp()
    shifted = -ratio.log() - theirs + mine
    return shifted + ratio * euler_constant + expected - (1 + euler_constant)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * (-away / p.scale).exp() - 1


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Any:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    kl = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return where_infinite(p.scale < q.scale, kl)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    kl = ((q.high - q.low) / (p.high - p.low)).log()
    return where_infinite((q.low > p.low) | (q.high < p.high), kl)


# ------------------------------------------------------------------- vectors
@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    logs = a.digamma() - total.digamma().unsqueeze(-1)  # E[log x]
    normalizers = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return normalizers + ((a - b) * logs).sum(-1)


def _same_size(p: Any, q: Any) -> None:
    if p.event_shape != q.event_shape:
        raise ValueRangeError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes "
            f"cannot be computed: {tuple(p.event_shape)} and {tuple(q.event_shape)}"
        )


def _square_norm(matrix: Tensor) -> Any:
    """``trace(M @ M.mT)``."""
    return matrix.pow(2).sum((-2, -1))


def _solved(factor: Tensor, matrix: Tensor) -> Any:
    """``factor^-1 @ matrix`` for a lower triangle, over all batch dims."""
    shape = broadcast_shapes(factor.shape[:-2], matrix.shape[:-2], op="kl_divergence")
    factor, matrix = [m.expand((*shape, *m.shape[-2:])) for m in (factor, matrix)]
    return T.linalg_solve_triangular(factor, matrix, upper=False)


def _from_parts(p: Any, q: Any, of_dets: Any, trace: Any, distance: Any) -> Any:
    """``(log det Cq - log det Cp + trace(Cq^-1 Cp) + distance - n) / 2``."""
    return 0.5 * (of_dets + trace + distance - p.event_shape[0])


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p: Any, q: Any) -> Any:
    _same_size(p, q)
    mine, theirs = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    dets = 2 * (q._half_log_det() - p._half_log_det())
    trace = _square_norm(_solved(theirs, mine))
    return _from_parts(p, q, dets, trace, mahalanobis(theirs, q.loc - p.loc))


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _multivariate_low_rank(p: Any, q: Any) -> Any:
    _same_size(p, q)
    mine, diagonal = p._unbroadcasted_scale_tril, q._unbroadcasted_cov_diag
    dets = q._log_det() - 2 * p._half_log_det()
    trace = _square_norm(mine * diagonal.rsqrt().unsqueeze(-1))
    trace = trace - _square_norm(q._whitened_factor() @ mine)
    return _from_parts(p, q, dets, trace, q._distance(q.loc - p.loc))


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_multivariate(p: Any, q: Any) -> Any:
    _same_size(p, q)
    theirs = q._unbroadcasted_scale_tril
    dets = 2 * q._half_log_det() - p._log_det()
    trace = _square_norm(_solved(theirs, p._unbroadcasted_cov_factor))
    trace = trace + _square_norm(_solved(theirs, p._unbroadcasted_cov_diag.sqrt().diag_embed()))
    return _from_parts(p, q, dets, trace, mahalanobis(theirs, q.loc - p.loc))


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p: Any, q: Any) -> Any:
    _same_size(p, q)
    mine, theirs = p._unbroadcasted_cov_diag, q._unbroadcasted_cov_diag
    factor, whitened = p._unbroadcasted_cov_factor, q._whitened_factor()
    trace = (
        (mine / theirs).sum(-1)
        + _square_norm(factor * theirs.rsqrt().unsqueeze(-1))
        - _square_norm(whitened * mine.sqrt().unsqueeze(-2))
        - _square_norm(whitened @ factor)
    )
    return _from_parts(p, q, q._log_det() - p._log_det(), trace, q._distance(q.loc - p.loc))


# ------------------------------------------------------------------- made of others
@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise MissingFeature("KL between transformed distributions needs equal transforms")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise MissingFeature("KL between Independents needs equal reinterpreted_batch_ndims")
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


import antorcha.distributions.kl_pairs  # noqa: E402, F401  (it registers with this table)
