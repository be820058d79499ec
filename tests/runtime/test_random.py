"""Random numbers: the same bits as PyTorch, states both ways, threads, forks, errors."""

from __future__ import annotations

import math
import os
import threading

import numpy as np
import pytest

import antorcha
from antorcha.runtime import random
from antorcha.runtime.random import Generator

try:
    import torch
except ImportError:  # PyTorch is the oracle where it is installed
    torch = None
oracle = pytest.mark.oracle

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTS = ["int8", "int16", "int32", "int64", "uint8"]
COUNTS = [*range(1, 41), 100, 624, 625, 1000, 4097]


def array(n, name):
    return np.zeros(n, {"bool": np.bool_, "bfloat16": np.uint16}.get(name, name))


def drawn(gen, fill, n, name, *args, **kwargs):
    """The n values that a fill function draws, bit patterns for bfloat16."""
    out = array(n, name)
    fill(gen, out.ctypes.data, n, name, *args, **kwargs)
    return out


def bits(values):
    """A NumPy array or PyTorch tensor as its bytes."""
    if isinstance(values, np.ndarray):
        return values.tobytes()
    if values.dtype == torch.bfloat16:
        values = values.view(torch.int16)
    return values.numpy().tobytes()


def chosen(weights, samples, replacement, gen):
    """What ``multinomial`` draws from a generator."""
    p = antorcha.from_numpy(np.asarray(weights))
    return antorcha.multinomial(p, samples, replacement, generator=gen).numpy()


class Pair:
    """Our generator and PyTorch's, side by side."""

    def __init__(self, seed):
        self.ours, self.theirs = Generator(seed), torch.Generator().manual_seed(seed)

    def check(self, fill, args, method, method_args, n, name):
        ours = drawn(self.ours, fill, n, name, *args)
        theirs = torch.zeros(n, dtype=getattr(torch, name))
        getattr(theirs, method)(*method_args, generator=self.theirs)
        assert bits(ours) == bits(theirs), (method, method_args, n, name)
        self.check_state()

    def check_state(self):
        assert self.ours.get_state() == bits(self.theirs.get_state())


# ---- without an oracle
def test_the_twister():
    """The reference implementation's first and 10,000th outputs for seed 5489."""
    gen = Generator(5489)
    words = drawn(gen, random.fill_random, 10_000, "uint32")
    assert words[0] == 3499211612
    assert words[-1] == 4123659995


def test_numbers_of_seed_42():
    """What PyTorch prints after manual_seed(42)."""
    random.manual_seed(42)
    rand = drawn(random.default_generator, random.fill_uniform, 4, "float32")
    assert [round(float(x), 4) for x in rand] == [0.8823, 0.9150, 0.3829, 0.9593]
    random.manual_seed(42)
    randn = drawn(random.default_generator, random.fill_normal, 3, "float32")
    assert [round(float(x), 4) for x in randn] == [0.3367, 0.1288, 0.2345]
    random.manual_seed(42)
    many = drawn(random.default_generator, random.fill_normal, 16, "float32")
    assert [round(float(x), 4) for x in many[:4]] == [1.9269, 1.4873, 0.9007, -2.1055]
    random.manual_seed(42)
    assert drawn(random.default_generator, random.randperm, 5, "int64").tolist() == [2, 4, 3, 0, 1]


def test_distributions_have_their_moments():
    gen, n = Generator(1), 200_000

    def mean_std(fill, *args):
        values = drawn(gen, fill, n, "float64", *args)
        return values.mean(), values.std()

    for fill, args, mean, std in [
        (random.fill_uniform, (-1.0, 3.0), 1.0, 4 / math.sqrt(12)),
        (random.fill_normal, (2.0, 3.0), 2.0, 3.0),
        (random.fill_exponential, (2.0,), 0.5, 0.5),
        (random.fill_bernoulli, (0.3,), 0.3, math.sqrt(0.21)),
        (random.fill_geometric, (0.25,), 4.0, math.sqrt(12.0)),
        (random.fill_log_normal, (0.0, 0.5), math.exp(0.125), 0.6039),
    ]:
        m, s = mean_std(fill, *args)
        assert abs(m - mean) < 5 * std / math.sqrt(n), fill
        assert abs(s / std - 1) < 0.05, fill


def test_a_permutation_permutes():
    values = drawn(Generator(), random.randperm, 1000, "int32")
    assert sorted(values.tolist()) == list(range(1000))


@pytest.mark.parametrize("name", [*FLOATS, *INTS, "uint16", "uint32", "uint64", "bool"])
def test_bounds(name):
    gen = Generator(9)
    values = array(5000, name)
    if name in FLOATS:
        random.fill_uniform(gen, values.ctypes.data, 5000, name, 1000, 1001)
        if name != "bfloat16":
            assert values.min() >= 1000
            assert values.max() < 1001
    random.fill_random(gen, values.ctypes.data, 5000, name)
    random.fill_random(gen, values.ctypes.data, 5000, name, 0, 2)
    if name != "bfloat16":
        assert set(values.tolist()) == {0, 1}


def test_fills_touch_only_their_memory():
    gen = Generator()
    for fill in (random.fill_uniform, random.fill_normal, random.fill_exponential):
        for name in FLOATS:
            for n in (0, 1, 15, 16, 17, 31, 623, 625, 1300):
                memory = array(n + 40, name)
                memory.view(np.uint8)[:] = 0xA5
                fill(gen, memory[20:].ctypes.data, n, name)
                edges = np.concatenate([memory[:20], memory[n + 20 :]])
                assert (edges.view(np.uint8) == 0xA5).all(), (fill, name, n)


def test_seeds():
    gen = Generator()
    assert gen.initial_seed() == 67280421310721
    assert gen.manual_seed(-1).initial_seed() == (1 << 64) - 2
    seed = gen.seed()
    assert 0 <= seed < 1 << 53
    assert gen.initial_seed() == seed
    a = drawn(gen.manual_seed(5), random.fill_normal, 3, "float32")  # leaves a value waiting
    b = drawn(gen.manual_seed(5), random.fill_normal, 3, "float32")
    assert bits(a) == bits(b)
    c = drawn(gen.manual_seed(5 + (1 << 32)), random.fill_normal, 3, "float32")
    assert bits(a) == bits(c)
    random.manual_seed(11)
    assert random.initial_seed() == 11
    assert random.seed() == random.initial_seed()
    for bad in (1 << 64, -(1 << 63) - 1):
        with pytest.raises(RuntimeError, match="manual_seed"):
            gen.manual_seed(bad)
    with pytest.raises((TypeError, ValueError)):
        gen.manual_seed("x")


def test_states():
    gen = Generator(3)
    drawn(gen, random.fill_normal, 3, "float32")
    state = gen.get_state()
    assert len(state) == 5056
    first = drawn(gen, random.fill_normal, 1000, "float32")
    other = gen.clone()
    gen.set_state(state)
    assert bits(drawn(gen, random.fill_normal, 1000, "float32")) == bits(first)
    assert other.get_state() == gen.get_state()
    assert bits(drawn(other, random.fill_uniform, 9, "float32")) == bits(
        drawn(gen, random.fill_uniform, 9, "float32")
    )


def test_bad_states():
    gen = Generator(3)
    state = gen.get_state()
    with pytest.raises(TypeError, match="5056 bytes, not 5055"):
        gen.set_state(state[:-1])
    fields = np.frombuffer(state, np.int32).copy()
    for index, value in ((2, 0), (2, 625), (2, -5), (4, 700), (4, 600), (5, 1), (3, 0)):
        broken = fields.copy()
        broken[index] = value
        with pytest.raises(RuntimeError, match="not the state"):
            gen.set_state(broken.tobytes())
    assert gen.get_state() == state


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda g, a: random.fill_uniform(g, a, 1, "int32"), TypeError),
        (lambda g, a: random.fill_normal(g, a, 1, "complex64"), TypeError),
        (lambda g, a: random.fill_random(g, a, 1, "int64", 5, 5), RuntimeError),
        (lambda g, a: random.fill_random(g, a, 1, "int64", 5, 4), RuntimeError),
        (lambda g, a: random.fill_random(g, a, 1, "uint8", 0, 257), RuntimeError),
        (lambda g, a: random.fill_random(g, a, 1, "int8", -129, 0), RuntimeError),
        (lambda g, a: random.fill_random(g, a, 1, "float16", 0, 1 << 17), RuntimeError),
        (lambda g, a: random.fill_bernoulli(g, a, 1, "float32", 1.5), RuntimeError),
        (lambda g, a: random.fill_bernoulli(g, a, 1, "float32", float("nan")), RuntimeError),
        (lambda g, a: random.randperm(g, a, 1 << 30, "int64"), RuntimeError),
        (lambda g, a: chosen([0.0, 0.0], 1, True, g), RuntimeError),
        (lambda g, a: chosen([[0.5, 0.5], [0.0, 0.0]], 2, False, g), RuntimeError),
        (lambda g, a: chosen([0.5, -1.0], 1, True, g), RuntimeError),
        (lambda g, a: chosen([0.5, np.inf], 2, True, g), RuntimeError),
        (lambda g, a: chosen([0.5, np.nan], 2, False, g), RuntimeError),
    ],
)
def test_errors_draw_nothing(call, error):
    gen = Generator()
    state = gen.get_state()
    with pytest.raises(error):
        call(gen, np.zeros(1).ctypes.data)
    assert gen.get_state() == state


def test_a_bad_probability_among_many():
    p, out = np.array([0.5, 0.5, 1.5]), np.zeros(3)
    with pytest.raises(RuntimeError, match="position 2"):
        random.fill_bernoulli_each(
            Generator(), out.ctypes.data, 3, "float64", p.ctypes.data, "float64"
        )


def test_threads_share_a_generator():
    """Draws interleave whole: together they are the stream of one thread."""
    n, parts = 5000, 40
    gen, out = Generator(7), np.zeros((parts, n), np.float32)

    def work(k):
        for row in out[k::4]:
            random.fill_uniform(gen, row.ctypes.data, n, "float32")

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = drawn(Generator(7), random.fill_uniform, n * parts, "float32").reshape(parts, n)
    assert {row.tobytes() for row in out} == {row.tobytes() for row in alone}


def test_a_forked_child_goes_on_from_its_parents_state():
    gen, stop = Generator(7), threading.Event()
    out = np.zeros(100_000)

    def work():
        while not stop.is_set():
            random.fill_uniform(gen, out.ctypes.data, 100_000, "float64")

    thread = threading.Thread(target=work)  # forks come while numbers are drawn
    thread.start()
    random.manual_seed(3)
    for _ in range(5):
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            drawn(gen, random.fill_normal, 100, "float32")
            os.write(
                write_end, bits(drawn(random.default_generator, random.fill_normal, 8, "float32"))
            )
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert os.read(read_end, 100) == bits(
            drawn(random.default_generator, random.fill_normal, 8, "float32")
        )
        os.close(read_end)
        os.close(write_end)
    stop.set()
    thread.join()


# ---- against PyTorch
SAMPLERS = [
    (random.fill_uniform, (), "uniform_", ()),
    (random.fill_uniform, (-1.3, 2.7), "uniform_", (-1.3, 2.7)),
    (random.fill_uniform, (1000, 1001), "uniform_", (1000, 1001)),
    (random.fill_normal, (), "normal_", ()),
    (random.fill_normal, (-1.3, 2.7), "normal_", (-1.3, 2.7)),
    (random.fill_exponential, (2.5,), "exponential_", (2.5,)),
    (random.fill_cauchy, (0.5, 2.5), "cauchy_", (0.5, 2.5)),
    (random.fill_log_normal, (0.5, 1.5), "log_normal_", (0.5, 1.5)),
    (random.fill_geometric, (0.3,), "geometric_", (0.3,)),
    (random.fill_bernoulli, (0.3,), "bernoulli_", (0.3,)),
    (random.fill_bernoulli, (0.0,), "bernoulli_", (0.0,)),
    (random.fill_bernoulli, (1.0,), "bernoulli_", (1.0,)),
    (random.fill_random, (), "random_", ()),
    (random.fill_random, (None, 100), "random_", (100,)),
]


@oracle
@pytest.mark.parametrize("name", FLOATS)
def test_floats_have_pytorchs_bits(name):
    for fill, args, method, method_args in SAMPLERS:
        for n in COUNTS:
            Pair(7).check(fill, args, method, method_args, n, name)


@oracle
@pytest.mark.parametrize("name", [*INTS, "bool"])
def test_integers_have_pytorchs_bits(name):
    for fill, args, method, method_args in SAMPLERS[8:]:
        if name == "bool" and method == "geometric_":
            continue
        top = ((None, 2), (2,)) if name == "bool" and args == (None, 100) else (args, method_args)
        for n in COUNTS:
            Pair(7).check(fill, top[0], method, top[1], n, name)


@oracle
@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("seed", [0, 42, 123_456_789])
def test_a_million(name, seed):
    pair = Pair(seed)
    for fill, args, method, method_args in SAMPLERS[:6]:
        pair.check(fill, args, method, method_args, 1_000_003, name)


@oracle
@pytest.mark.filterwarnings("ignore:.*out of bounds")
@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16", "int64"])
@pytest.mark.parametrize(
    ("low", "high"),
    [
        (-5, (1 << 28) - 6),
        (-5, (1 << 28) - 5),
        (-5, 1 << 28),
        (-(1 << 31), (1 << 31) - 1),
        (-(1 << 40), 1 << 41),
        (-(1 << 63), (1 << 63) - 1),
        (-(1 << 63), None),
        (5, None),
        (-100, None),
        ((1 << 24) + 1, (1 << 25) + 3),
    ],
)
def test_wide_ranges(name, low, high):
    for n in (1, 2, 7, 1000):
        pair = Pair(7)
        theirs = torch.zeros(n, dtype=getattr(torch, name))
        try:
            theirs.random_(low, high, generator=pair.theirs)
        except RuntimeError:
            with pytest.raises(RuntimeError):
                drawn(pair.ours, random.fill_random, n, name, low, high)
            continue
        assert bits(drawn(pair.ours, random.fill_random, n, name, low, high)) == bits(theirs)
        pair.check_state()


@oracle
@pytest.mark.parametrize("name", [*FLOATS, *INTS])
def test_permutations(name):
    for n in [0, *COUNTS]:
        if n > 127 and name in ("int8", "uint8", "float16", "bfloat16"):
            continue
        pair = Pair(n)
        theirs = torch.randperm(n, generator=pair.theirs, dtype=getattr(torch, name))
        assert bits(drawn(pair.ours, random.randperm, n, name)) == bits(theirs)
        pair.check_state()


@oracle
@pytest.mark.parametrize("name", ["float32", "float64", "int64", "uint8", "bool"])
@pytest.mark.parametrize("p_name", ["float32", "float64"])
def test_a_probability_for_each(name, p_name):
    for n in COUNTS:
        pair, p = Pair(7), np.random.default_rng(n).random(n).astype(p_name)
        out, theirs = array(n, name), torch.zeros(n, dtype=getattr(torch, name))
        random.fill_bernoulli_each(pair.ours, out.ctypes.data, n, name, p.ctypes.data, p_name)
        theirs.bernoulli_(torch.from_numpy(p), generator=pair.theirs)
        assert bits(out) == bits(theirs)
        pair.check_state()


@pytest.mark.parametrize("rate", [1.0, 0.3, 7.7, 1e-38, 1e-40, 1e40, 1e300])
def test_a_quick_exponential_is_the_rounded_double(rate):
    """To the last bit; doubles are computed by the C library, one by one."""
    for n in (1, 7, 8, 257, 300_003):
        quick = drawn(Generator(n), random.fill_exponential, n, "float32", rate)
        double = drawn(Generator(n), random.fill_exponential, n, "float64", rate)
        with np.errstate(over="ignore", under="ignore"):
            np.testing.assert_array_equal(bits(quick), bits(double.astype(np.float32)))


@oracle
@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(5,), (1, 3), (7, 9), (4, 7), (2, 300)])
@pytest.mark.parametrize(
    ("samples", "replacement"), [(1, False), (3, False), (1, True), (2, True), (50, True)]
)
def test_multinomial(name, shape, samples, replacement):
    p = np.random.default_rng(1).random(shape).astype(name)
    p[..., 1] *= 0 if shape[-1] > 3 else 1
    pair = Pair(5)
    theirs = torch.multinomial(torch.from_numpy(p), samples, replacement, generator=pair.theirs)
    out = chosen(p, samples, replacement, pair.ours)
    assert (out == theirs.numpy()).all()
    pair.check_state()


@oracle
def test_normals_that_do_not_lie_side_by_side():
    pair = Pair(7)
    for n in (5, 16, 33, 100):
        theirs = torch.zeros(2 * n)[::2].normal_(generator=pair.theirs).clone()
        ours = drawn(pair.ours, random.fill_normal, n, "float32", 0.0, 1.0, False)
        assert bits(ours) == bits(theirs)
        pair.check_state()


@oracle
def test_samplers_in_any_order():
    """Odd draws before 64-bit ones, waiting normals, refills in the middle."""
    rng, pair = np.random.default_rng(0), Pair(2026)
    for _ in range(1500):
        fill, args, method, method_args = SAMPLERS[rng.integers(len(SAMPLERS))]
        n = int(rng.integers(1, 60)) if rng.random() < 0.9 else int(rng.integers(1, 3000))
        pair.check(fill, args, method, method_args, n, FLOATS[rng.integers(4)])


@oracle
@pytest.mark.parametrize("k", [0, 1, 2, 623, 624, 625, 1247, 1248, 1249])
def test_states_travel_both_ways(k):
    pair = Pair(k)
    pair.check_state()
    if k:
        pair.check(random.fill_uniform, (), "uniform_", (), k, "float32")
        pair.check(random.fill_normal, (), "normal_", (), 1, "float32")
    other, theirs = Generator(99), torch.Generator()
    other.set_state(bits(pair.theirs.get_state()))
    theirs.set_state(torch.frombuffer(bytearray(pair.ours.get_state()), dtype=torch.uint8))
    pair.ours, pair.theirs = other, theirs
    pair.check_state()
    pair.check(random.fill_normal, (), "normal_", (), 3, "float32")
    pair.check(random.fill_uniform, (), "uniform_", (), 2000, "float64")
