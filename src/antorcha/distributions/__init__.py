"""``torch.distributions``: probability distributions, their transforms and divergences.

A distribution draws (``sample``, and with gradients ``rsample``), rates values (``log_prob``) and
knows its moments. Draws at the same seed are PyTorch's.
See https://docs.pytorch.org/docs/stable/distributions.html.

>>> d = torch.distributions.Categorical(logits=torch.zeros(4))
>>> d.log_prob(torch.tensor(2))
tensor(-1.3863)
"""

from __future__ import annotations

from typing import Any

from antorcha.distributions import constraints, transforms
from antorcha.distributions.bernoulli import Bernoulli
from antorcha.distributions.beta import Beta
from antorcha.distributions.binomial import Binomial
from antorcha.distributions.categorical import Categorical
from antorcha.distributions.cauchy import Cauchy
from antorcha.distributions.chi2 import Chi2
from antorcha.distributions.constraint_registry import biject_to, transform_to
from antorcha.distributions.continuous_bernoulli import ContinuousBernoulli
from antorcha.distributions.dirichlet import Dirichlet
from antorcha.distributions.distribution import Distribution
from antorcha.distributions.exp_family import ExponentialFamily
from antorcha.distributions.exponential import Exponential
from antorcha.distributions.fishersnedecor import FisherSnedecor
from antorcha.distributions.gamma import Gamma
from antorcha.distributions.generalized_pareto import GeneralizedPareto
from antorcha.distributions.geometric import Geometric
from antorcha.distributions.gumbel import Gumbel
from antorcha.distributions.half_cauchy import HalfCauchy
from antorcha.distributions.half_normal import HalfNormal
from antorcha.distributions.independent import Independent
from antorcha.distributions.inverse_gamma import InverseGamma
from antorcha.distributions.kl import _KL_REGISTRY, kl_divergence, register_kl
from antorcha.distributions.kumaraswamy import Kumaraswamy
from antorcha.distributions.laplace import Laplace
from antorcha.distributions.lkj_cholesky import LKJCholesky
from antorcha.distributions.log_normal import LogNormal
from antorcha.distributions.logistic_normal import LogisticNormal
from antorcha.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from antorcha.distributions.mixture_same_family import MixtureSameFamily
from antorcha.distributions.multinomial import Multinomial
from antorcha.distributions.multivariate_normal import MultivariateNormal
from antorcha.distributions.negative_binomial import NegativeBinomial
from antorcha.distributions.normal import Normal
from antorcha.distributions.one_hot_categorical import (
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from antorcha.distributions.pareto import Pareto
from antorcha.distributions.poisson import Poisson
from antorcha.distributions.relaxed_bernoulli import RelaxedBernoulli
from antorcha.distributions.relaxed_categorical import RelaxedOneHotCategorical
from antorcha.distributions.studentT import StudentT
from antorcha.distributions.transformed_distribution import TransformedDistribution
from antorcha.distributions.transforms import *  # noqa: F403  (every transform)
from antorcha.distributions.uniform import Uniform
from antorcha.distributions.von_mises import VonMises
from antorcha.distributions.weibull import Weibull
from antorcha.distributions.wishart import Wishart
from antorcha.errors import no_such_name

__all__ = [
    "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ContinuousBernoulli",
    "Dirichlet", "Distribution", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma",
    "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent",
    "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal",
    "LowRankMultivariateNormal", "MixtureSameFamily", "Multinomial", "MultivariateNormal",
    "NegativeBinomial", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto",
    "Poisson", "RelaxedBernoulli", "RelaxedOneHotCategorical", "StudentT",
    "TransformedDistribution", "Uniform", "VonMises", "Weibull", "Wishart", "biject_to",
    "kl_divergence", "register_kl", "transform_to", *transforms.__all__,
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise no_such_name("torch.distributions", name, __all__)
