"""Draws by counting on the simulator: known bits, NumPy's meaning, statistics, generators."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.core.device import backend
from antorcha.core.lazy import lazy
from antorcha.devices.gpu import fallback
from antorcha.devices.numpy_semantics.draw import compute_draw
from antorcha.lang.kernels import Draw
from antorcha.runtime import philox
from antorcha.runtime.philox import LANES

stats: Any = lazy("scipy.stats")  # (which looks at a PyTorch that is there)

SIM = torch.device("sim")
FLOATS = ("float32", "float64", "float16", "bfloat16")
F = torch.nn.functional


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Every draw has a kernel."""
    fallback.noted.clear()
    yield
    assert "Draw" not in fallback.noted


def empty(dtype: str, *shape: int) -> Any:
    return torch.empty(*shape, dtype=getattr(torch, dtype), device=SIM)


def array(t: Any) -> np.ndarray[Any, Any]:
    """The numbers on the host; bfloat16, exactly, as float32."""
    t = t.detach().cpu()
    return np.array((t.float() if t.dtype is torch.bfloat16 else t).numpy())


# ------------------------------------------------------------------------------- bits
ANSWERS = (  # of Random123's kat_vectors, philox4x32 10
    ("00000000 00000000 00000000 00000000", "00000000 00000000",
     "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
     "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
)  # fmt: skip


def words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


def test_known_answers() -> None:
    for counter, key, expected in ANSWERS:
        assert list(philox.block_of(words(counter), words(key))) == words(expected)
    # a device's lane 0 gives the four words of its block LANES elements apart
    g = torch.Generator(device=SIM).manual_seed(0)
    whole = array(empty("uint32", 3 * LANES + 1).random_(generator=g))
    assert whole[::LANES].tolist() == words(ANSWERS[0][2])
    # a counter whose lane is 0, with all of the other words and of the key
    low, high, key_low, key_high = 0x85A308D3, 0x03707344, 0xA4093822, 0x299F31D0
    seed, start = key_low | key_high << 32, low | (high & 0x3FFFFFFF) << 32
    g.set_state(np.array([seed, 4 * start], np.uint64).tobytes())
    first = array(empty("uint32", 1).random_(generator=g))[0]
    block = philox.block_of((low, start >> 32, 0, 0), (key_low, key_high))
    assert first == block[0]


def test_numbers_of_cuda() -> None:
    """What PyTorch prints on CUDA."""
    torch.manual_seed(0)
    assert str(torch.rand(3, device=SIM)) == "tensor([0.3990, 0.5167, 0.0249], device='sim')"
    torch.manual_seed(0)
    assert torch.randn(6, device=SIM).cpu().mul(1e4).round().tolist() == [
        -9247, -4253, -26438, 1452, -1209, -5797
    ]  # fmt: skip
    torch.manual_seed(42)
    assert torch.randn(3, device=SIM).cpu().mul(1e4).round().tolist() == [1940, 21614, -1721]


DRAWS: dict[str, tuple[Callable[[Any, Any], Any], Draw, str, bool]] = {
    # name: what draws into a tensor, its description, the dtypes, equal to the last bit?
    "uniform": (lambda t, g: t.uniform_(generator=g), Draw("uniform", (0.0, 1.0)), "f", True),
    "uniform wide": (
        lambda t, g: t.uniform_(-1, 3, generator=g), Draw("uniform", (-1.0, 3.0)), "f", True
    ),
    "uniform odd": (
        lambda t, g: t.uniform_(0.1, 0.7, generator=g), Draw("uniform", (0.1, 0.7)), "f", True
    ),
    "normal": (lambda t, g: t.normal_(1, 2, generator=g), Draw("normal", (1.0, 2.0)), "f", False),
    "log normal": (
        lambda t, g: t.log_normal_(0.5, 0.7, generator=g), Draw("log_normal", (0.5, 0.7)), "f",
        False,
    ),
    "exponential": (
        lambda t, g: t.exponential_(2.0, generator=g), Draw("exponential", (2.0,)), "f", False
    ),
    "cauchy": (lambda t, g: t.cauchy_(1, 2, generator=g), Draw("cauchy", (1.0, 2.0)), "f", False),
    "geometric": (
        lambda t, g: t.geometric_(0.3, generator=g), Draw("geometric", (0.3,)), "fiu", True
    ),
    "bernoulli": (
        lambda t, g: t.bernoulli_(0.3, generator=g), Draw("bernoulli", (0.3,)), "fiub", True
    ),
    "random": (lambda t, g: t.random_(generator=g), Draw("random", (None, None)), "fiub", True),
    "random to": (lambda t, g: t.random_(17, generator=g), Draw("random", (0, 17)), "fiu", True),
    "random from": (
        lambda t, g: t.random_(-(1 << 40), 1 << 41, generator=g),
        Draw("random", (-(1 << 40), 1 << 41)), "long", True,
    ),
}  # fmt: skip
KINDS = {
    "f": FLOATS, "long": ("int64",), "fiu": (*FLOATS, "int64", "int32", "int8", "uint8"),
    "fiub": (*FLOATS, "int64", "int32", "int16", "int8", "uint8", "uint32",
             "uint64", "bool"),
}  # fmt: skip
LAYOUTS: tuple[Callable[[str], Any], ...] = (
    lambda d: empty(d, 0, 3),
    lambda d: empty(d, 1).view(()),
    lambda d: empty(d, 257),
    lambda d: empty(d, 9, 7).t(),
    lambda d: empty(d, 9, 8, 6)[::2, 1:7, 3],
    lambda d: empty(d, 5, 6, 7).permute(2, 0, 1)[1:],
)
TOLERANCE = {"float32": 4e-6, "float64": 1e-13, "float16": 2e-3, "bfloat16": 2e-2}


def expected(what: Draw, t: Any, state: tuple[int, int]) -> np.ndarray[Any, Any]:
    found = compute_draw(what, (t._layout,), (int, int))([*state])[0]
    with np.errstate(all="ignore"):
        return np.asarray(found).astype(t._layout.dtype.np).astype(array(t).dtype)


def test_the_meaning_of_descriptions() -> None:
    wrong = []
    g = torch.Generator(device=SIM)
    for name, (draw, what, kinds, exact) in DRAWS.items():
        for dtype in KINDS[kinds]:
            for k, make in enumerate(LAYOUTS):
                g.manual_seed(k - 3)
                g.stream.take(4 * k)
                state = g.initial_seed(), g.stream.offset
                t = make(dtype)
                draw(t, g)
                ours, theirs = array(t), expected(what, t, state)
                rtol = 0 if exact else TOLERANCE[dtype]
                scale = 0 if exact else rtol * 4
                if not np.allclose(ours, theirs, rtol, scale, equal_nan=True):
                    wrong.append(f"{name} {dtype} layout {k}: {ours.ravel()[:3]}, "
                                 f"not {theirs.ravel()[:3]}")  # fmt: skip
                if g.stream.offset != state[1] + (4 if t.numel() else 0):
                    wrong.append(f"{name} {dtype} layout {k}: offset {g.stream.offset}")
    assert not wrong, "\n".join(wrong)


def test_many_numbers() -> None:
    """Past the lanes' first numbers, and their first blocks; the offset moves by the blocks."""
    wrong = []
    cases = (
        ("uniform", "float32", LANES + 5, 4),
        ("uniform", "float64", 2 * LANES + 3, 8),
        ("random", "int64", LANES + 300, 4),
        ("bernoulli", "bool", 4 * LANES + 7, 8),
        ("normal", "float32", 3 * LANES + 9, 4),
        ("normal", "float64", LANES + 9, 4),
    )
    for name, dtype, count, used in cases:
        draw, what, _, exact = DRAWS[name]
        g = torch.Generator(device=SIM).manual_seed(5)
        t = empty(dtype, count)
        draw(t, g)
        ours, theirs = array(t), expected(what, t, (5, 0))
        same = np.array_equal(ours, theirs) if exact else np.allclose(ours, theirs, 1e-5, 1e-5)
        if not same:
            wrong.append(f"{name} {dtype}: differs first at {np.argmax(ours != theirs)}")
        if g.stream.offset != used:
            wrong.append(f"{name} {dtype}: offset {g.stream.offset}")
    assert not wrong, "\n".join(wrong)


def test_complex_numbers() -> None:
    for dtype, real in (("complex64", "float32"), ("complex128", "float64")):
        g = torch.Generator(device=SIM).manual_seed(1)
        for shape in ((5,), (3, 4)):
            g.manual_seed(1)
            z = array(empty(dtype, *shape).t().normal_(generator=g) if len(shape) == 2
                      else empty(dtype, *shape).normal_(generator=g))  # fmt: skip
            g.manual_seed(1)
            parts = array(empty(real, *shape, 2).normal_(0, 1 / 2**0.5, generator=g))
            whole = parts[..., 0] + 1j * parts[..., 1]
            assert np.array_equal(z, whole.T if len(shape) == 2 else whole)


def test_a_number_depends_on_its_place_alone() -> None:
    """Not on the number of numbers, nor on the order of threads."""
    torch.manual_seed(3)
    state = philox.get_states()
    runs = []
    for count in (1000, 1000, 300, 1000, 7):  # (the simulator's threads take turns otherwise)
        philox.set_states(state)
        runs.append(torch.randn(count, device=SIM).tolist())
    for run in runs:
        assert run == runs[0][: len(run)]
    after = torch.rand(3, device=SIM).tolist()
    philox.set_states(state)
    torch.rand(5, 5, device=SIM)
    assert torch.rand(3, device=SIM).tolist() == after != runs[0][:3]


def test_parameters_of_each_element() -> None:
    g = torch.Generator(device=SIM)
    chance = torch.linspace(0, 1, 50, device=SIM)
    for dtype in ("float32", "float64", "bool", "int64"):
        t = empty(dtype, 4, 50)
        u = empty("float64" if dtype == "float64" else "float32", 4, 50)
        t.bernoulli_(chance, generator=g.manual_seed(2))
        u.uniform_(generator=g.manual_seed(2))
        assert np.array_equal(array(t) != 0, array(u) <= array(chance).astype(array(u).dtype))
    p = torch.tensor([0.0, 1.0], device=SIM).repeat(500)
    assert torch.equal(torch.bernoulli(p), p)
    mean, std = torch.arange(3.0, device=SIM)[:, None], torch.tensor([0.0, 0.5, 2.0], device=SIM)
    z = empty("float32", 3, 3).normal_(generator=g.manual_seed(4))
    cases = (
        (torch.normal(mean, std, generator=g.manual_seed(4)), z * std + mean),
        (torch.normal(mean.expand(3, 3), 2.0, generator=g.manual_seed(4)), z * 2.0 + mean),
        (torch.normal(1.5, std.expand(3, 3), generator=g.manual_seed(4)), z * std + 1.5),
    )
    for ours, theirs in cases:
        assert torch.equal(ours, theirs)


# ------------------------------------------------------------------------------- statistics
N = 20_000
FITS: dict[str, tuple[Callable[[Any], Any], Callable[[], Any]]] = {
    "uniform": (lambda t: t.uniform_(-1, 3), lambda: stats.uniform(-1, 4)),
    "normal": (lambda t: t.normal_(1, 2), lambda: stats.norm(1, 2)),
    "log_normal": (
        lambda t: t.log_normal_(0.5, 0.7),
        lambda: stats.lognorm(0.7, scale=np.exp(0.5)),
    ),
    "exponential": (lambda t: t.exponential_(2.0), lambda: stats.expon(scale=0.5)),
    "cauchy": (lambda t: t.cauchy_(1, 2), lambda: stats.cauchy(1, 2)),
    "gamma": (lambda t: torch._standard_gamma(t.fill_(2.5)), lambda: stats.gamma(2.5)),
    "gamma small": (lambda t: torch._standard_gamma(t.fill_(0.3)), lambda: stats.gamma(0.3)),
    "beta": (
        lambda t: torch.distributions.Beta(t.fill_(0.6), t * 0 + 3.0).sample(),
        lambda: stats.beta(0.6, 3.0),
    ),
}
COUNTS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "geometric": (lambda: empty("float32", N).geometric_(0.3), lambda: stats.geom(0.3)),
    "bernoulli": (lambda: empty("int32", N).bernoulli_(0.3), lambda: stats.bernoulli(0.3)),
    "random": (lambda: empty("int64", N).random_(-3, 9), lambda: stats.randint(-3, 9)),
    "random wide": (
        lambda: empty("int64", N).random_(0, 12 << 40) >> 40, lambda: stats.randint(0, 12)
    ),
    "randint": (lambda: torch.randint(7, (N,), device=SIM), lambda: stats.randint(0, 7)),
    "poisson": (
        lambda: torch.poisson(torch.full((N,), 4.0, device=SIM)), lambda: stats.poisson(4.0)
    ),
    "poisson large": (
        lambda: torch.poisson(torch.full((N,), 30.0, device=SIM)), lambda: stats.poisson(30.0)
    ),
    "binomial": (
        lambda: torch.binomial(*[torch.full((N,), v, device=SIM) for v in (10.0, 0.3)]),
        lambda: stats.binom(10, 0.3),
    ),
    "binomial large": (
        lambda: torch.binomial(*[torch.full((N,), v, device=SIM) for v in (90.0, 0.7)]),
        lambda: stats.binom(90, 0.7),
    ),
    "multinomial": (
        lambda: torch.multinomial(torch.tensor([0.0, 1, 2, 0, 5, 0], device=SIM), N, True),
        lambda: stats.rv_discrete(values=([1, 2, 4], [1 / 8, 2 / 8, 5 / 8])),
    ),
    "multinomial, one": (
        lambda: torch.multinomial(torch.tensor([[0.0, 1, 3]], device=SIM).expand(N, 3), 1),
        lambda: stats.rv_discrete(values=([1, 2], [1 / 4, 3 / 4])),
    ),
}  # fmt: skip


REJECTING: dict[str, tuple[str, Callable[..., Any], tuple[tuple[float, ...], ...]]] = {
    "gamma": ("gamma", torch._standard_gamma, ((0.0, 0.05, 0.5, 1.0, 2.5, 40.0, 1e6),)),
    "poisson": ("poisson", torch.poisson, ((0.0, 0.1, 3.0, 9.99, 10.0, 47.0, 1e5),)),
    "binomial": (
        "binomial", torch.binomial,
        ((0.0, 9.0, 20.0, 100.0, 1000.0, 1e6, 7.0), (0.3, 0.4, 0.95, 0.05, 0.6, 0.2, 1.0)),
    ),
}  # fmt: skip


def test_numbers_that_are_tried_again() -> None:
    """As NumPy draws them from the same words, but for a few that hang on a rounding; by parameters
    of each element's own, however they lie."""
    fallback.noted.clear()
    wrong = []
    g = torch.Generator(device=SIM)
    for name, (distribution, draw, values) in REJECTING.items():
        for dtype in ("float32", "float64"):
            kind = getattr(torch, dtype)
            flat = [torch.tensor(v, dtype=kind, device=SIM) for v in values]
            for way, given in {
                "rows": [v.expand(200, 7) for v in flat],
                "columns": [v[:, None].repeat(1, 100).t() for v in flat],
                "many": [v.repeat(LANES // 7 + 9) for v in flat] if dtype == "float32" else [],
            }.items():
                if not given or (way == "many" and name != "gamma"):
                    continue
                g.manual_seed(7)
                ours = draw(*given, generator=g)
                what = Draw(distribution, (None,) * len(given))
                compute = compute_draw(
                    what, (ours._layout,), (int, int, *[x._layout for x in given])
                )
                (theirs,) = compute([7, 0, *[array(x) for x in given]])
                near = np.isclose(array(ours), theirs, 2e-4 if dtype == "float32" else 1e-9)
                if not near.mean() > 0.995:
                    wrong.append(f"{name} {dtype} {way}: {1 - near.mean()} differ")
                if g.stream.offset != (8 if way == "many" else 4):
                    wrong.append(f"{name} {dtype} {way}: offset {g.stream.offset}")
    nan = torch.full((3,), float("nan"), device=SIM)
    assert torch._standard_gamma(nan).isnan().all()
    assert torch.binomial(nan * 0 + 5, nan).isnan().all()
    none = torch.ones(0, 3, device=SIM)
    assert torch.poisson(none).shape == torch.binomial(none, none).shape == (0, 3)
    assert not fallback.noted
    assert not wrong, "\n".join(wrong)
    with pytest.raises(NotImplementedError):
        torch.poisson(torch.ones(3, dtype=torch.float16, device=SIM))


def test_distributions() -> None:
    wrong = []
    torch.manual_seed(11)
    for name, (draw, make_law) in FITS.items():
        law = make_law()
        for dtype in ("float32", "float64"):
            x = array(draw(empty(dtype, N))).astype(np.float64)
            p = stats.kstest(x, law.cdf).pvalue
            if not p > 1e-3:
                wrong.append(f"{name} {dtype}: p = {p}")
            if name != "cauchy" and not abs(x.mean() - law.mean()) < 5 * law.std() / N**0.5:
                wrong.append(f"{name} {dtype}: mean {x.mean()}, not {law.mean()}")
            if abs(np.corrcoef(x.argsort().argsort()[1:], x.argsort().argsort()[:-1])[0, 1]) > 0.04:
                wrong.append(f"{name} {dtype}: neighbours are alike")
    for name, (make, make_law) in COUNTS.items():
        law = make_law()
        values, seen = np.unique(array(make()), return_counts=True)
        chance = law.pmf(values)
        often = chance * N >= 5
        total = [*seen[often], seen.sum() - seen[often].sum()]
        wanted = [*(N * chance[often]), N * (1 - chance[often].sum())]
        if wanted[-1] < 5:  # (what is rare, together)
            total, wanted = total[:-1], wanted[:-1]
            wanted = [w * sum(total) / sum(wanted) for w in wanted]
        p = stats.chisquare(total, wanted).pvalue if chance.all() else 0.0
        if not p > 1e-3:
            wrong.append(f"{name}: p = {p}")
    assert not wrong, "\n".join(wrong)


TOP = np.array([0, 4 * 38471471], np.uint64).tobytes()
"""A state after which the first word is 0xFFFFFFEC, which rounds to 1.0 in float32."""


def test_ends() -> None:
    """Numbers that must not be, or must."""
    torch.manual_seed(1)
    u = array(torch.rand(3 * LANES, dtype=torch.float16, device=SIM))
    assert (u < 1).all()
    assert (u >= 0).all()
    assert (u == 0).any()
    assert torch.empty(LANES, device=SIM).bernoulli_(0.0).max().item() == 0
    assert np.isfinite(array(torch.randn(LANES, device=SIM))).all()
    g = torch.Generator(device=SIM)

    def first(draw: Callable[[Any], Any]) -> float:
        g.set_state(TOP)
        return float(draw(empty("float32", 1)).item())

    assert first(lambda t: t.uniform_(generator=g)) == 0
    assert first(lambda t: t.uniform_(2, 5, generator=g)) == 2
    assert first(lambda t: t.bernoulli_(1.0, generator=g)) == 1
    assert first(lambda t: t.bernoulli_(torch.ones_like(t), generator=g)) == 1
    assert first(lambda t: t.geometric_(0.5, generator=g)) == 1
    assert first(lambda t: t.exponential_(generator=g)) == 2.0**-24
    assert np.isfinite(first(lambda t: t.cauchy_(generator=g)))


def test_choices_and_permutations() -> None:
    torch.manual_seed(2)
    orders = np.zeros((4, 4))
    for _ in range(300):
        order = torch.randperm(4, device=SIM)
        assert sorted(order.tolist()) == [0, 1, 2, 3]
        assert order.dtype is torch.int64
        orders[np.arange(4), order.tolist()] += 1
    assert stats.chisquare(orders.ravel(), [75] * 16).statistic < 40
    order = torch.randperm(1000, dtype=torch.int32, device=SIM)
    assert order.sort()[0].tolist() == list(range(1000))
    assert order.dtype is torch.int32
    weights = torch.tensor([[0.0, 1, 2, 3, 0], [4, 0, 1, 1, 1]], device=SIM)
    for samples in (2, 3):
        for row, taken in zip(weights.tolist(), torch.multinomial(weights, samples).tolist(),
                              strict=True):  # fmt: skip
            assert len(set(taken)) == samples
            assert all(row[k] for k in taken)
    assert torch.multinomial(weights.bfloat16()[0], 2).shape == (2,)


def test_ops_draw_there() -> None:
    """All that draws, in its usual forms: results are there, and differ from call to call."""
    ones = torch.ones(20, 30, device=SIM)
    calls: dict[str, Callable[[], Any]] = {
        "rand_like": lambda: torch.rand_like(ones.t()),
        "randn_like": lambda: torch.randn_like(ones, dtype=torch.float64),
        "randint_like": lambda: torch.randint_like(ones, 3, 90),
        "normal": lambda: torch.normal(0.0, 1.0, (4, 5), device=SIM),
        "out": lambda: torch.rand(4, 5, out=torch.empty(4, 5, device=SIM)),
        "dropout": lambda: F.dropout(ones),
        "dropout2d": lambda: F.dropout2d(ones[None, :, :, None]),
        "alpha_dropout": lambda: F.alpha_dropout(ones, training=True),
        "rrelu": lambda: F.rrelu(-ones, training=True),
        "gumbel_softmax": lambda: F.gumbel_softmax(ones),
        "bernoulli": lambda: torch.bernoulli(ones / 2),
        "_standard_gamma": lambda: torch._standard_gamma(ones),
        "_sample_dirichlet": lambda: torch._sample_dirichlet(ones),
        "Normal": lambda: torch.distributions.Normal(ones, 1.0).sample(),
        "Categorical": lambda: torch.distributions.Categorical(ones).sample(),
        "xavier": lambda: torch.nn.init.xavier_normal_(torch.empty(4, 5, device=SIM)),
    }
    torch.manual_seed(9)
    for name, call in calls.items():
        first, second = call(), call()
        assert (first.device, first.shape) == (SIM, second.shape), name
        assert not torch.equal(first, second), name
    mask = F.dropout(torch.ones(10_000, device=SIM), 0.25)
    assert set(mask.unique().tolist()) == {0.0, np.float32(1 / 0.75)}
    assert abs((mask == 0).float().mean().item() - 0.25) < 0.02
    x = torch.ones(50, device=SIM, requires_grad=True)
    y = F.dropout(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


# ------------------------------------------------------------------------------- generators
def test_generators() -> None:
    g = torch.Generator(device="sim")
    assert isinstance(g, torch.Generator)
    assert g.device == SIM
    assert g.manual_seed(-1) is g
    assert g.initial_seed() == 2**64 - 2
    assert g.manual_seed(5).initial_seed() == 5
    torch.rand(3, device=SIM, generator=g)
    state = g.get_state()
    assert bytes(state.numpy()) == np.array([5, 4], np.uint64).tobytes()
    ahead = torch.rand(3, device=SIM, generator=g)
    for other in (g.clone_state(), copy.deepcopy(g)):
        other.set_state(state)
        assert other.device == SIM
        assert other is not g
        assert torch.equal(torch.rand(3, device=SIM, generator=other), ahead)
    file = io.BytesIO()
    torch.save(g, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    assert loaded.device == SIM
    assert torch.equal(loaded.get_state(), g.get_state())
    assert g.seed() == g.initial_seed() < 2**53
    bad: list[tuple[Callable[[], Any], type[Exception]]] = [
        (lambda: g.set_state(torch.zeros(5056, dtype=torch.uint8)), RuntimeError),
        (lambda: g.set_state(np.array([5, 3], np.uint64).tobytes()), RuntimeError),
        (lambda: g.set_state(torch.zeros(16)), TypeError),
        (lambda: g.manual_seed(2**64), RuntimeError),
        (lambda: torch.Generator(device="meta"), RuntimeError),
        (lambda: torch.rand(2, device=SIM, generator=torch.Generator()), RuntimeError),
        (lambda: torch.rand(2, generator=g), RuntimeError),
        (lambda: torch.rand(2, device=SIM, generator=3), TypeError),
    ]
    for call, kind in bad:
        with pytest.raises(kind):
            call()


def test_seeds_and_states_of_all_devices() -> None:
    torch.manual_seed(7)
    here, there = torch.rand(3), torch.rand(3, device=SIM)
    with torch.random.fork_rng():
        torch.rand(3, device=SIM)
        torch.manual_seed(7)
        assert torch.equal(torch.rand(3, device=SIM), there)
    assert not torch.equal(torch.rand(3, device=SIM), there)
    with torch.random.fork_rng(devices=[]):  # the CPU's alone
        torch.manual_seed(7)
        torch.rand(3)
    assert torch.equal(torch.rand(3, device=SIM), there)
    torch.manual_seed(7)
    assert torch.equal(torch.rand(3), here)
    assert torch.equal(torch.rand(3, device=SIM), there)
    seed = torch.seed()
    assert philox.default(SIM).initial_seed() == seed
    # what is recomputed draws the same
    x = torch.ones(100, device=SIM, requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(lambda t: F.dropout(t) * t, x, use_reentrant=False)
    y.sum().backward()
    assert torch.equal(x.grad, 2 * y.detach())


def test_refused_draws() -> None:
    wrong: tuple[tuple[str, type[Exception]], ...] = (
        ("zeros(2).uniform_(1, 0)", RuntimeError),
        ("zeros(2, dtype=torch.int64).uniform_()", NotImplementedError),
        ("zeros(2, dtype=torch.uint8).random_(0, 300)", RuntimeError),
        ("zeros(0, dtype=torch.uint8).random_(0, 300)", RuntimeError),
        ("zeros(2).bernoulli_(1.5)", RuntimeError),
        ("zeros(3).bernoulli_(zeros(3) + 2)", RuntimeError),
        ("zeros(3).bernoulli_(zeros(3) * float('nan'))", RuntimeError),
        ("zeros(3).bernoulli_(zeros(3, dtype=torch.int64))", NotImplementedError),
        ("torch.normal(zeros(2), zeros(2) - 1)", RuntimeError),
        ("torch.multinomial(zeros(3), 1)", RuntimeError),
        ("torch.multinomial(zeros(3) - 1, 1)", RuntimeError),
        ("torch.multinomial(zeros(3) / 0, 1)", RuntimeError),
        ("torch.poisson(zeros(3) - 1)", RuntimeError),
        ("zeros(3).expand(2, 3).uniform_()", RuntimeError),
        ("zeros(3, requires_grad=True).uniform_()", RuntimeError),
    )  # fmt: skip
    names = {"torch": torch, "zeros": lambda *n, **how: torch.zeros(*n, device=SIM, **how)}
    for text, kind in wrong:
        with pytest.raises(kind):
            eval(text, names)


def test_a_state_in_memory_draws_the_same() -> None:
    """As a captured graph has it: seed and offset in a tensor; the draw's own offset is added."""
    device, seed, start, more = backend(SIM), 77, 40, 8
    state = torch.tensor([seed, start]).to("sim")
    given: tuple[Any, ...]
    for name, given, dtype in (
        ("uniform", (-1.0, 3.0), "float32"), ("normal", (0.0, 2.0), "float64"),
        ("random", (0, 99), "int64"), ("gamma", (None,), "float32"),
        ("poisson", (None,), "float32"),
    ):  # fmt: skip
        what, out = Draw(name, given), empty(dtype, 300)
        tensors = [torch.full((300,), 12.0).to("sim")] if None in given else []
        layouts = [t._layout for t in tensors]
        flat = [part for t in tensors for part in (t._storage, t._offset)]
        plain = device.compile(what, (out._layout,), (int, int, *layouts))
        plain.into(out._storage, 0, seed, start + more, *flat)
        held, ins = empty(dtype, 300), (state._layout, int, *layouts)
        device.compile(what, (held._layout,), ins).into(
            held._storage, 0, state._storage, 0, more, *flat
        )
        assert torch.equal(held.cpu(), out.cpu()), name
        numbers = [np.asarray(state.tolist()), more, *[array(t) for t in tensors]]
        meaning = compute_draw(what, (held._layout,), ins)(numbers)[0]
        assert np.allclose(meaning, array(held), rtol=1e-5), name
