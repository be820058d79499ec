"""Random numbers on a GPU: those of the simulator, of the right moments, and in graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import antorcha as torch
from tools.gpu_checks import check

nn, F = torch.nn, torch.nn.functional


def draws() -> dict[str, Callable[[str, int], Any]]:
    """Draws by name: of a device, and of so many elements."""

    def like(d: str, n: int, value: float) -> Any:
        return torch.full((n,), value, device=d)

    return {
        "rand": lambda d, n: torch.rand(n, device=d),
        "rand f64": lambda d, n: torch.rand(n, device=d, dtype=torch.float64),
        "rand bf16": lambda d, n: torch.rand(n, device=d, dtype=torch.bfloat16),
        "randn": lambda d, n: torch.randn(n, device=d),
        "randn f16": lambda d, n: torch.randn(n, device=d, dtype=torch.float16),
        "randn c64": lambda d, n: torch.view_as_real(torch.randn(n, device=d).to(torch.complex64)),
        "randint": lambda d, n: torch.randint(-5, 1 << 40, (n,), device=d),
        "randperm": lambda d, n: torch.randperm(n, device=d),
        "bernoulli": lambda d, n: torch.bernoulli(like(d, n, 0.3)),
        "normal": lambda d, n: torch.normal(like(d, n, 2.0), like(d, n, 0.5)),
        "uniform_": lambda d, n: torch.empty(n, device=d).uniform_(-2, 5),
        "exponential_": lambda d, n: torch.empty(n, device=d).exponential_(1.5),
        "geometric_": lambda d, n: torch.empty(n, device=d).geometric_(0.2),
        "log_normal_": lambda d, n: torch.empty(n, device=d).log_normal_(0.3, 0.7),
        "cauchy_": lambda d, n: torch.empty(n, device=d).cauchy_(),
        "poisson": lambda d, n: torch.poisson(torch.arange(n, device=d) % 40 * 0.7),
        "binomial": lambda d, n: torch.binomial(like(d, n, 50.0), torch.arange(n, device=d) / n),
        "gamma": lambda d, n: torch._standard_gamma(torch.arange(n, device=d) % 9 * 0.4 + 0.1),
        "dirichlet": lambda d, n: torch._sample_dirichlet(like(d, n, 0.8).view(-1, 4)),
        "multinomial": lambda d, n: torch.multinomial(like(d, 16, 1.0), n, replacement=True),
        "without replacement": lambda d, n: torch.multinomial(like(d, n, 1.0), n // 2),
        "dropout": lambda d, n: F.dropout(like(d, n, 1.0), 0.25),
        "alpha dropout": lambda d, n: F.alpha_dropout(like(d, n, 1.0), 0.25, training=True),
        "rrelu": lambda d, n: F.rrelu(like(d, n, -1.0), training=True),
        "kaiming": lambda d, n: nn.init.kaiming_uniform_(torch.empty(n // 4, 4, device=d)),
        "truncated": lambda d, n: nn.init.trunc_normal_(torch.empty(n, device=d)),
    }


@check
def draws_are_those_of_the_simulator(small: bool) -> str:
    """The bits are the same; what follows from them by logarithms and the like, nearly."""
    wrong, close = [], []
    for name, draw in draws().items():
        found = []
        for device in ("cuda", "sim"):
            torch.manual_seed(3)
            found.append([draw(device, n).cpu() for n in (16, 600)])
        for ours, theirs in zip(*found, strict=True):
            if torch.equal(ours, theirs):
                continue
            bad = ~torch.isclose(ours.double(), theirs.double(), rtol=1e-5, atol=1e-6)
            count = int(bad.sum())
            (wrong if count else close).append(f"{name}: {count} of {bad.numel()}")
    assert not wrong, f"differ: {wrong}; nearly the same: {close}"
    return f"nearly the same: {', '.join(dict.fromkeys(each.split(':')[0] for each in close))}"


def distributions(device: str) -> Iterator[Any]:
    """Distributions with a mean and a variance."""
    D = torch.distributions

    def t(*values: float) -> Any:
        return torch.tensor(values, device=device)

    yield D.Normal(t(0.0, 3.0), t(1.0, 0.2))
    yield D.Gamma(t(0.3, 1.0, 7.5), t(1.0, 2.0, 0.5))
    yield D.Beta(t(0.5, 2.0, 9.0), t(0.5, 5.0, 1.0))
    yield D.Dirichlet(t(0.4, 1.0, 6.0))
    yield D.Poisson(t(0.1, 3.0, 9.9, 10.1, 300.0))
    yield D.Binomial(t(5.0, 40.0, 1000.0), t(0.1, 0.5, 0.97))
    yield D.NegativeBinomial(t(4.0), t(0.3))
    yield D.StudentT(t(9.0))
    yield D.Chi2(t(1.0, 8.0))
    yield D.FisherSnedecor(t(6.0), t(12.0))
    yield D.InverseGamma(t(7.0), t(2.0))
    yield D.Exponential(t(0.5, 20.0))
    yield D.Laplace(t(1.0), t(2.0))
    yield D.Gumbel(t(1.0), t(2.0))
    yield D.Weibull(t(2.0), t(1.5))
    yield D.Pareto(t(1.0), t(6.0))
    yield D.Kumaraswamy(t(2.0), t(3.0))
    yield D.HalfNormal(t(2.0))
    yield D.LogNormal(t(0.1), t(0.3))
    yield D.Uniform(t(-1.0), t(4.0))
    yield D.Bernoulli(t(0.05, 0.5))
    yield D.Geometric(t(0.2, 0.9))
    yield D.ContinuousBernoulli(t(0.2, 0.8))
    yield D.OneHotCategorical(t(0.1, 0.2, 0.7))
    yield D.Multinomial(20, t(0.1, 0.2, 0.7))
    yield D.MultivariateNormal(t(1.0, 2.0), torch.eye(2, device=device) * 0.5 + 0.1)
    yield D.LowRankMultivariateNormal(t(1.0, 2.0), t(0.3, 0.4)[:, None], t(1.0, 2.0))


@check
def moments_of_distributions(small: bool) -> None:
    """The mean and the variance of many numbers are those that the distribution has."""
    torch.manual_seed(11)
    n, wrong = 200 if small else 400_000, []
    for each in distributions("cuda"):
        name = type(each).__name__
        x = each.sample((n,)).double()
        assert x.is_cuda, name
        mean, variance = each.mean.double(), each.variance.double()
        away = ((x.mean(0) - mean).abs() / (variance / n).sqrt()).max().item()
        spread = ((x - mean) ** 2).mean(0)
        fourth = ((x - mean) ** 4).mean(0) - spread**2  # the variance of the squares
        off = ((spread - variance).abs() / (fourth / n).sqrt().clamp(min=1e-9)).max().item()
        if not (away < 6 and off < 7):
            wrong.append(f"{name}: the mean is {away:.1f} deviations off, the variance {off:.1f}")
    assert not wrong, "; ".join(wrong)


@check
def generators(small: bool) -> None:
    """States are kept, set and forked; a generator of one's own; a seed reaches the GPU."""
    torch.manual_seed(5)
    state, first = torch.cuda.get_rng_state(), torch.rand(9, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.rand(9, device="cuda"), first)
    own = torch.Generator(device="cuda").manual_seed(5)
    assert torch.equal(torch.rand(9, device="cuda", generator=own), first)
    with torch.random.fork_rng():
        torch.rand(5, device="cuda")
        inside = torch.cuda.get_rng_state()
    assert not torch.equal(inside, torch.cuda.get_rng_state())
    with_checkpoint = nn.Dropout(0.5)
    x = torch.ones(1000, device="cuda", requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(with_checkpoint, x, use_reentrant=False)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach()), "a checkpoint draws the same numbers again"


@check
def draws_in_a_graph(small: bool) -> None:
    """Each replay draws numbers of its own."""
    x = torch.ones(256, device="cuda")
    F.dropout(x, 0.5)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = F.dropout(x, 0.5)
    seen = []
    for _ in range(3):
        graph.replay()
        seen.append(y.cpu())
    assert not torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[1], seen[2])
