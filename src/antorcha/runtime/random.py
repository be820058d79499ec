"""Random numbers on the CPU: generators, and functions that fill memory from them.

A `Generator` is PyTorch's: MT19937, seeded from the low 32 bits, with the second value of a
Box-Muller pair waiting inside; its state saves to and loads from PyTorch's 5056 bytes.  The fill
functions draw what PyTorch 2.13 draws, in the same order, with the same bits.  They fill `n` values
side by side; a caller with strides fills a contiguous copy (normal has a word for that).

Invariants: whoever draws holds the generator's lock, or the interpreter lock from before it finds
``held`` 0 until it has drawn (``devices.cpu.draw``); large fills release the interpreter lock; a
fork waits for those who draw, and the child goes on from a whole state, the same as its parent's.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from antorcha.core.forks import held_over_forks
from antorcha.errors import ArgumentError, MissingFeature, RandomError
from antorcha.lang.native import (
    Extern,
    bind,
    bool_,
    f32,
    f64,
    func,
    i8,
    i16,
    i32,
    i64,
    native,
    ptr,
    raw,
    u8,
    u16,
    u32,
    u64,
)
from antorcha.runtime import rejection, samplers
from antorcha.runtime.cpython import (
    PyEval_RestoreThread,
    PyEval_SaveThread,
    PyFloat_AsDouble,
    PyLong_AsLongLong,
    PyLong_FromLongLong,
    failed,
    fast_def,
)
from antorcha.runtime.integer_bounds import HALVES, MANTISSA, bounds_of, half_dtype
from antorcha.runtime.memory.storage import as_numpy, new_storage
from antorcha.runtime.mt19937 import N, Twister, seed_twister, temper_all

DEFAULT_SEED = 67280421310721
"""The seed of a new generator, PyTorch's."""
MANY = 4096
"""From this many values on, the interpreter lock is released."""


# ---- calling a sampler
sampler_t = func[i64, ptr[Twister], raw, i64, f64, f64, u64, i64]
PyLong_AsUnsignedLongLongMask = Extern("PyLong_AsUnsignedLongLongMask", u64, raw)


@native
def py_sample(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """(sampler, generator, memory, count, a, b, u, i) -> the sampler's result."""
    sampler = sampler_t(PyLong_AsLongLong(args[0]))
    g = ptr[Twister](PyLong_AsLongLong(args[1]))
    out = raw(PyLong_AsLongLong(args[2]))
    n = PyLong_AsLongLong(args[3])
    a = PyFloat_AsDouble(args[4])
    b = PyFloat_AsDouble(args[5])
    u = PyLong_AsUnsignedLongLongMask(args[6])
    i = PyLong_AsLongLong(args[7])
    if failed():
        return None
    if n >= MANY:
        token = PyEval_SaveThread()
        result = sampler(g, out, n, a, b, u, i)
        PyEval_RestoreThread(token)
    else:
        result = sampler(g, out, n, a, b, u, i)
    return PyLong_FromLongLong(result)


_sample = bind(fast_def("sample", py_sample.spec().addr))


@functools.cache
def _address(name: str, **static: Any) -> int:
    """The machine address of a sampler, compiled when first needed."""
    home = samplers if hasattr(samplers, name) else rejection
    address: int = getattr(home, name).spec(**static).addr
    return address


# ---- generators
STATE_BYTES = 5056
_STATE = np.dtype(
    {
        "names": "seed left seeded next words normal has_normal float_normal has_float".split(),
        "formats": ["<u8", "<i4", "<i4", "<u8", ("<u8", N), "<f8", "<i4", "<f4", "u1"],
        "offsets": [0, 8, 12, 16, 24, 5024, 5040, 5048, 5052],
        "itemsize": STATE_BYTES,
    }
)
_FORMATS = {
    "words": ("<u4", N),
    "seed": "<u8",
    "left": "<i8",
    "next": "<i8",
    "normal": "<f8",
    "has_normal": "<i8",
}
_LAYOUT: Any = {
    "names": list(_FORMATS),
    "formats": list(_FORMATS.values()),
    "offsets": [Twister.fields[name][0] for name in _FORMATS],
    "itemsize": Twister.size,
}
_TWISTER: np.dtype[Any] = np.dtype(_LAYOUT)


class StateLock:
    """The lock of a generator's state; while it is held, the state says so (``Twister.held``)."""

    def __init__(self, address: int) -> None:
        self._lock = threading.Lock()
        self._held = ctypes.c_int64.from_address(address + Twister.fields["held"][0])
        self._held.value = 0
        held_over_forks(self)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As ``threading.Lock.acquire``."""
        taken = self._lock.acquire(blocking, timeout)
        if taken:
            self._held.value = 1
        return taken

    def release(self) -> None:
        """As ``threading.Lock.release``."""
        self._held.value = 0
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Generator:
    """A stream of random numbers on the CPU, with PyTorch's state and seeds."""

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        self._memory = new_storage(Twister.size)
        self.address: int = self._memory.ptr
        self.lock = StateLock(self.address)
        self._fields = as_numpy(self._memory, 0, (), (), _TWISTER)
        self._float_normal = (0.0, 0)  # PyTorch's CPU never uses it; kept for round trips
        self.manual_seed(seed)

    def manual_seed(self, seed: int) -> Generator:
        """Starts the stream that belongs to `seed`; negative seeds count from 2**64 - 1 down."""
        seed = int(seed)
        if not -(1 << 63) <= seed < 1 << 64:
            raise RandomError(f"manual_seed: {seed} is outside -2**63 to 2**64 - 1")
        if seed < 0:
            seed += (1 << 64) - 1
        with self.lock:
            seed_twister(self.address, seed)
            self._float_normal = (0.0, 0)
        return self

    def seed(self) -> int:
        """Seeds from the system's randomness; gives the seed (53 bits, as PyTorch's)."""
        seed = int.from_bytes(os.urandom(8), "little") & ((1 << 53) - 1)
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed that this stream started from."""
        return int(self._fields["seed"])

    def get_state(self) -> bytes:
        """The state, in the 5056 bytes of PyTorch's CPU generator."""
        state = np.zeros((), _STATE)
        with self.lock:
            for name in ("seed", "left", "next", "words", "has_normal"):
                state[name] = self._fields[name]
            state["normal"] = self._fields["normal"] if self._fields["has_normal"] else 0.0
            state["float_normal"], state["has_float"] = self._float_normal
        state["seeded"] = 1
        return state.tobytes()

    def set_state(self, state: Any) -> None:
        """Goes on from a saved state (anything with 5056 bytes)."""
        data = bytes(state)
        if len(data) != STATE_BYTES:
            raise ArgumentError(
                f"set_state: a CPU generator's state has {STATE_BYTES} bytes, not {len(data)}"
            )
        new = np.frombuffer(data, _STATE)[0]
        left, following = int(new["left"]), int(new["next"])
        whole = left + following == N + 1 or (left == 1 and following == 0)
        if not (new["seeded"] and 1 <= left <= N and following <= N and whole):
            raise RandomError("set_state: these bytes are not the state of a generator")
        with self.lock:
            for name in ("seed", "left", "next", "words", "normal"):
                self._fields[name] = new[name]
            self._fields["has_normal"] = int(new["has_normal"] != 0)
            self._float_normal = (float(new["float_normal"]), int(new["has_float"]))
            temper_all(self.address)

    def clone(self) -> Generator:
        """A generator that will draw the same numbers."""
        other = Generator()
        other.set_state(self.get_state())
        return other

    def share(self, other: Generator) -> None:
        """Goes on as another, with it: the state is one."""
        self.lock, self._memory, self.address = other.lock, other._memory, other.address
        self._fields, self._float_normal = other._fields, other._float_normal

    def sample(
        self, sampler: int, out: int, n: int, a: float = 0.0, b: float = 0.0, u: int = 0, i: int = 0
    ) -> int:
        """Runs the sampler at an address over n values at `out`."""
        with self.lock:
            result: int = _sample(sampler, self.address, out, n, a, b, u, i)
        return result


default_generator = Generator()
default_generator.seed()


def default() -> Generator:
    """The generator of draws that name none (``antorcha.random`` puts its own here)."""
    return default_generator


def manual_seed(seed: int) -> Generator:
    """Seeds the default generator."""
    return default_generator.manual_seed(seed)


def initial_seed() -> int:
    """The default generator's seed."""
    return default_generator.initial_seed()


def seed() -> int:
    """Seeds the default generator from the system's randomness."""
    return default_generator.seed()


# ---- element types
_TYPES = {
    "float32": f32,
    "float64": f64,
    "int8": i8,
    "int16": i16,
    "int32": i32,
    "int64": i64,
    "uint8": u8,
    "uint16": u16,
    "uint32": u32,
    "uint64": u64,
    "bool": bool_,
}


def _at(address: int, n: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The n values at an address, as an array."""
    raw_bytes = (ctypes.c_char * (n * dtype.itemsize)).from_address(address)
    return np.frombuffer(memoryview(raw_bytes), dtype)


def _need(op: str, name: str, floating: bool = True) -> None:
    if name not in HALVES and (name not in _TYPES or (floating and name not in MANTISSA)):
        error = MissingFeature if name.startswith("float8") else ArgumentError
        raise error(f"{op} does not fill {name}")


def _fill(
    gen: Generator, address: int, n: int, name: str, sampler: str, a: float, b: float, **static: Any
) -> None:
    """Runs a sampler with an element type T; half types go through float32."""
    if n <= 0:
        return
    if name in HALVES:
        wide = np.empty(n, np.float32)
        gen.sample(_address(sampler, T=f32, **static), wide.ctypes.data, n, a, b)
        _at(address, n, half_dtype(name))[:] = wide
    else:
        gen.sample(_address(sampler, T=_TYPES[name], **static), address, n, a, b)


# ---- the samplers
def fill_uniform(
    gen: Generator, address: int, n: int, dtype_name: str, low: float = 0.0, high: float = 1.0
) -> None:
    """Uniform in [low, high)."""
    _need("uniform", dtype_name)
    if n <= 0:
        return
    if dtype_name == "float64":
        gen.sample(_address("fill_uniform64"), address, n, low, high)
    elif dtype_name == "float32":
        gen.sample(_address("fill_uniform32"), address, n, low, high)
    else:
        wide = np.empty(n, np.float32)
        gen.sample(_address("fill_uniform32"), wide.ctypes.data, n, low, high)
        half = half_dtype(dtype_name)
        values = wide.astype(half)
        values[values == half.type(high)] = half.type(low)  # what was rounded up to the end
        _at(address, n, half)[:] = values


def fill_normal(
    gen: Generator,
    address: int,
    n: int,
    dtype_name: str,
    mean: float = 0.0,
    std: float = 1.0,
    contiguous: bool = True,
) -> None:
    """Normal with a mean and a standard deviation.

    PyTorch draws 16 or more values otherwise than fewer, and only where they lie side by side: a
    caller that fills strided memory through a copy passes contiguous=False.
    """
    _need("normal", dtype_name)
    if n < 16 or not contiguous:
        _fill(gen, address, n, dtype_name, "fill_normal_few", mean, std)
    elif dtype_name == "float32":
        gen.sample(_address("fill_normal32"), address, n, mean, std)
    elif dtype_name == "float64":
        gen.sample(_address("fill_normal64"), address, n, mean, std)
    else:
        _fill_normal_half(gen, address, n, dtype_name, mean, std)


def _fill_normal_half(
    gen: Generator, address: int, n: int, dtype_name: str, mean: float, std: float
) -> None:
    """16 or more normals of a half type: float32 blocks of 16, the last one for the last 16."""
    whole = n // 16 * 16
    wide = np.empty(whole + (16 if n % 16 else 0), np.float32)
    gen.sample(_address("fill_normal32"), wide.ctypes.data, wide.size, mean, std)
    out = _at(address, n, half_dtype(dtype_name))
    out[:whole] = wide[:whole]
    out[n - 16 :] = wide[-16:]


def fill_bernoulli(gen: Generator, address: int, n: int, dtype_name: str, p: float) -> None:
    """One with probability p, else zero (dropout's mask)."""
    _need("bernoulli", dtype_name, floating=False)
    if not 0.0 <= p <= 1.0:
        raise RandomError(f"bernoulli: {p} is not a probability")
    _fill(gen, address, n, dtype_name, "fill_formula", p, 0.0, FORMULA=samplers.bernoulli)


def fill_bernoulli_each(
    gen: Generator, address: int, n: int, dtype_name: str, p_address: int, p_dtype_name: str
) -> None:
    """One with a probability of its own for each value (float32 or float64, side by side)."""
    if dtype_name in HALVES and n > 0:
        wide = np.empty(n, np.float32)
        fill_bernoulli_each(gen, wide.ctypes.data, n, "float32", p_address, p_dtype_name)
        _at(address, n, half_dtype(dtype_name))[:] = wide
        return
    if dtype_name not in _TYPES or p_dtype_name not in ("float32", "float64"):
        raise ArgumentError(
            f"bernoulli: {dtype_name} with probabilities of {p_dtype_name} has no sampler"
        )
    static = {"T": _TYPES[dtype_name], "P": _TYPES[p_dtype_name]}
    bad = gen.sample(_address("fill_bernoulli_each", **static), address, n, u=p_address)
    if bad:
        raise RandomError(f"bernoulli: the value at position {bad - 1} is not a probability")


def fill_from_parameters(
    gen: Generator, address: int, n: int, dtype_name: str, sampler: str, parameters: int
) -> None:
    """A sampler of `rejection`: parameters of their own for each value, at an address, of its
    type."""
    kind = _TYPES[dtype_name]
    gen.sample(_address(sampler, T=kind, P=kind), address, n, u=parameters)


def fill_exponential(
    gen: Generator, address: int, n: int, dtype_name: str, rate: float = 1.0
) -> None:
    """Exponential with a rate."""
    _need("exponential", dtype_name)
    if dtype_name == "float64":
        _fill(gen, address, n, dtype_name, "fill_formula", rate, 0.0, FORMULA=samplers.exponential)
    else:
        _fill(gen, address, n, dtype_name, "fill_exponential32", rate, 0.0)


def fill_geometric(gen: Generator, address: int, n: int, dtype_name: str, p: float) -> None:
    """The number of tries up to the first success."""
    _need("geometric", dtype_name, floating=False)
    _fill(gen, address, n, dtype_name, "fill_formula", p, 0.0, FORMULA=samplers.geometric)


def fill_cauchy(
    gen: Generator, address: int, n: int, dtype_name: str, median: float = 0.0, sigma: float = 1.0
) -> None:
    """Cauchy with a median and a half-width."""
    _need("cauchy", dtype_name)
    _fill(gen, address, n, dtype_name, "fill_formula", median, sigma, FORMULA=samplers.cauchy)


def fill_log_normal(
    gen: Generator, address: int, n: int, dtype_name: str, mean: float = 1.0, std: float = 2.0
) -> None:
    """exp of a normal."""
    _need("log_normal", dtype_name)
    _fill(gen, address, n, dtype_name, "fill_log_normal", mean, std)


# ---- integers
def fill_random(
    gen: Generator,
    address: int,
    n: int,
    dtype_name: str,
    low: int | None = None,
    high: int | None = None,
) -> None:
    """Whole numbers from low up to but not including high.

    Without bounds: what the type holds from zero on (for floats, up to 2**mantissa).  With low
    only, up to the same largest; low = -2**63 alone draws all 64 bits.
    """
    _need("random_", dtype_name, floating=False)
    first, width, wide = bounds_of(dtype_name, low, high)
    if n <= 0:
        return
    name = "float32" if dtype_name in HALVES else dtype_name
    target = np.empty(n, np.float32) if dtype_name in HALVES else None
    sampler = _address("fill_wide_integers" if wide else "fill_integers", T=_TYPES[name])
    out = address if target is None else target.ctypes.data
    gen.sample(sampler, out, n, u=width & ((1 << 64) - 1), i=first)
    if target is not None:
        with np.errstate(over="ignore"):
            _at(address, n, half_dtype(dtype_name))[:] = target


def randperm(gen: Generator, address: int, n: int, dtype_name: str) -> None:
    """0 to n - 1 in random order."""
    _need("randperm", dtype_name, floating=False)
    if n >= (1 << 32) // 20:
        raise RandomError(f"randperm: {n} is more than antorcha permutes (2**32 / 20)")
    _fill(gen, address, n, dtype_name, "fill_permutation", 0.0, 0.0)


def fill_choices(
    gen: Generator, address: int, n: int, _dtype_name: str, samples: int, categories: int,
    weights: int, weights_dtype_name: str,
) -> None:  # fmt: skip
    """Categories, ``samples`` of each row of weights (float32 or float64, side by side); int64."""
    sampler = _address("fill_choices", P=_TYPES[weights_dtype_name])
    if gen.sample(sampler, address, n, samples, u=weights, i=categories):
        raise MemoryError(f"multinomial: no memory for sums of {categories} weights")


# ---- by name
SAMPLERS: dict[str, Callable[..., None]] = {
    "uniform": fill_uniform,
    "normal": fill_normal,
    "log_normal": fill_log_normal,
    "exponential": fill_exponential,
    "cauchy": fill_cauchy,
    "geometric": fill_geometric,
    "bernoulli": fill_bernoulli,
    "random": fill_random,
    "permutation": randperm,
    "choices": fill_choices,
}
"""What draws each distribution that a ``Draw`` names."""
PARTS = {"complex64": "float32", "complex128": "float64"}


def fill(
    distribution: str, gen: Generator, address: int, n: int, dtype_name: str,
    parameters: tuple[Any, ...], contiguous: bool = True,
) -> None:  # fmt: skip
    """Fills n elements with numbers of a distribution; a complex one takes two."""
    part = PARTS.get(dtype_name)
    if part is not None:
        dtype_name, n = part, 2 * n
    named = {"contiguous": contiguous} if distribution == "normal" else {}
    SAMPLERS[distribution](gen, address, n, dtype_name, *parameters, **named)


class NotedDraw(NamedTuple):
    """What a sampler is asked for: its address, where to, how many, its parameters."""

    sampler: int
    out: int
    n: int
    a: float = 0.0
    b: float = 0.0
    u: int = 0
    i: int = 0


class DrawNotes:
    """In a generator's place: notes what is drawn, and draws nothing."""

    def __init__(self) -> None:
        self.found: list[NotedDraw] = []

    def sample(self, *args: Any, **named: Any) -> int:
        """As ``Generator.sample``."""
        self.found.append(NotedDraw(*args, **named))
        return 0
