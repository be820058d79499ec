"""Random draws: in place (``uniform_``, ``normal_``, ...) and choices (``multinomial``, ...).

On the CPU the numbers are PyTorch's, bit for bit, after the same ``manual_seed``. ``sampler`` says
how a draw runs, ``runtime.random`` draws there, a ``Draw`` describes it to devices that draw by
counting, and ``random_new`` makes new tensors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from antorcha.core import dtypes
from antorcha.core.lazy import lazy, np
from antorcha.core.shapes import broadcast_shapes
from antorcha.errors import ArgumentError, DtypeError, MissingFeature, RandomError, ShapeError
from antorcha.ops.create import check_format, finish
from antorcha.ops.kinds.draw_targets import DrawTarget, check_kind, memory_order
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.sampler import drawn, new_target, sampler
from antorcha.ops.kinds.types import (
    Any,
    Bool,
    DeviceArg,
    Dtype,
    Float,
    Int,
    Operand,
    Shape,
    Tensor,
)
from antorcha.runtime.memory.layout import Layout

ALL_REAL = "fuib"

R = lazy("antorcha.runtime.random")


# ------------------------------------------------------------------------------- draws in place
@sampler(inplace=True, function=False, method=False, out=False)
def uniform(input: Tensor, from_: Float = 0.0, to: Float = 1.0, *, generator: Any = None):
    """``uniform_`` fills with numbers from ``from`` up to but not including ``to``, all as likely.

    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.uniform_.html.

    >>> _ = torch.manual_seed(42)
    >>> torch.empty(3).uniform_()
    tensor([0.8823, 0.9150, 0.3829])
    """
    if not from_ <= to:
        raise RandomError(
            f"uniform_: expects to return a [from, to) range, but found from={from_} > to={to}"
        )
    return lambda out: out.fill("uniform", from_, to)


@uniform.errors
def _(make):
    yield (make(3), 1.0, 0.0), {}, RuntimeError, "from=1"


def _check_std(std: Any, op: str = "normal") -> None:
    if not std >= 0:
        raise RandomError(f"{op}: normal expects std >= 0.0, but found std {std}")


@sampler(inplace=True, method=False, out=False)
def normal(input: Tensor, mean: Float = 0.0, std: Float = 1.0, *, generator: Any = None):
    """Normal numbers of a mean and a standard deviation.

    ``torch.normal(mean, std)`` takes a tensor for either and draws one number for each element;
    with two numbers it takes the result's ``size``. ``normal_`` fills a tensor.

    >>> _ = torch.manual_seed(42)
    >>> torch.normal(2.0, 3.0, (3,))
    tensor([3.0101, 2.3864, 2.7034])
    """
    _check_std(std)
    return lambda out: _fill_normal(out, mean, std)


def _fill_normal(out: DrawTarget, mean: float, std: float) -> None:
    if out.layout.dtype.kind == "c":
        std = std / math.sqrt(2)  # of each part; the mean is both parts', as in PyTorch
    out.fill("normal", mean, std)


@normal.errors
def _(make):
    yield (0.0, -1.0, (3,)), {}, RuntimeError, "std"


@sampler(function=False, method=False, node="NormalBackward1",
         result=lambda mean, std, generator: (mean.shape, mean.dtype))  # fmt: skip
def normal_around(mean: Tensor, std: Float, *, generator: Any = None):
    """Normal numbers, each around its own mean."""
    _check_std(std)
    return lambda out: _fill_around(out, mean, std)


@sampler(function=False, method=False, node="NormalBackward2",
         result=lambda mean, std, generator: (std.shape, std.dtype))  # fmt: skip
def normal_scaled(mean: Float, std: Tensor, *, generator: Any = None):
    """Normal numbers, each with its own deviation."""
    return lambda out: _fill_scaled(out, mean, std)


@sampler(function=False, method=False, node="NormalBackward3",
         result=lambda mean, std, generator: (
             broadcast_shapes(mean.shape, std.shape, op="normal"), mean.dtype))  # fmt: skip
def normal_each(mean: Tensor, std: Tensor, *, generator: Any = None):
    """Normal numbers, each with its own mean and deviation."""
    return lambda out: _fill_scaled(out, mean, std)


def _fill_scaled(out: Any, mean: Any, std: Any) -> None:
    """The same, where the deviation is an array, or a device's tensor."""
    if std.dtype.kind == "c":
        raise DtypeError("normal: expects standard deviation to be non-complex")
    if not out.on_host:
        out.require(T.all(T.ge(std, 0)), _negative_std)
    elif std.size and not (np.asarray(std) >= 0).all():
        raise _negative_std()
    _fill_around(out, mean, std)


def _fill_around(out: Any, mean: Any, std: Any) -> None:
    """Normal numbers, of which the mean, the deviation or both are tensors."""
    if not out.on_host:
        _fill_around_on_device(out, mean, std)
        return
    scaled = isinstance(std, np.ndarray)
    out.fill("normal", 0.0, 1.0 if scaled else std)
    array = out.array()
    if scaled:
        array[...] *= std
    array[...] += mean if isinstance(mean, np.ndarray) else array.dtype.type(mean)


def _fill_around_on_device(out: Any, mean: Any, std: Any) -> None:
    if out.layout.dtype.kind == "f":
        out.fill("normal", mean, std)
        return
    out.fill("normal", 0.0, 1.0)
    T.add_(T.mul_(out.tensor(), std), mean)


def _negative_std(found: int = 0) -> RandomError:
    return RandomError("normal: normal expects all elements of std >= 0.0")


@composite(random=True, register=False, method=False)
def normal_function(
    mean: Operand,
    std: Operand = 1.0,
    size: Shape = None,
    *,
    generator: Any = None,
    out: Any = None,
    dtype: Dtype = None,
    layout: Any = None,
    device: DeviceArg = None,
    requires_grad: Bool = False,
    pin_memory: Bool = False,
):
    """See ``normal``."""
    tensors = hasattr(mean, "_layout"), hasattr(std, "_layout")
    if size is not None:
        if any(tensors):
            raise ArgumentError("normal(): takes a size with two numbers only, not with tensors")
        _check_std(std)
        chosen = dtype or dtypes.get_default_dtype()
        check_format(layout)
        result = new_target("normal", size, chosen, device, out)
        normal_numbers = drawn(result, out, normal, (float(mean), float(std)), generator)
        return finish(normal_numbers, requires_grad)
    if not any(tensors):
        raise ArgumentError("normal(): with two numbers it needs size=, the result's shape")
    op = T.normal_each if all(tensors) else T.normal_around if tensors[0] else T.normal_scaled
    return op(mean, std, generator=generator, out=out)


normal.general = normal_function


def _random_node(values: Sequence[Any], inplace: bool) -> str:
    _, low, high, _ = values
    return f"RandomBackward{2 if low is None else 1 if high is None else 0}"


@sampler(inplace=True, function=False, method=False, out=False, nodes=_random_node)
def random(input: Tensor, from_: Int = None, to: Int = None, *, generator: Any = None):
    """``random_`` fills with whole numbers, all as likely.

    ``random_(to)`` draws from 0 to ``to - 1``, ``random_(from, to)`` from ``from``; without bounds
    from 0 up to the largest number that the dtype holds (floats: 2 to the bits of the mantissa).
    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.random_.html.

    >>> _ = torch.manual_seed(42)
    >>> torch.empty(4).random_(10)
    tensor([2., 7., 6., 4.])
    """
    low, high = (0, from_) if to is None and from_ is not None else (from_, to)
    if low is not None and high is not None and low >= high:
        raise RandomError(
            f"random_: expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    return lambda out: out.fill("random", low, high, kinds=ALL_REAL)


@random.errors
def _(make):
    yield (make(3), 5, 3), {}, RuntimeError, "less than 'to'"


def _bernoulli_node(values: Sequence[Any], inplace: bool) -> str:
    p = values[1]
    kind = 1 if hasattr(p, "_layout") else 0 if p is None and not inplace else 2
    return f"BernoulliBackward{kind}"


@sampler(inplace=True, nodes=_bernoulli_node)
def bernoulli(input: Tensor, p: Operand = None, *, generator: Any = None):
    """Ones and zeros: 1 with the probability that ``input`` has at that place.

    ``bernoulli_(p)`` fills a tensor of any dtype; ``p`` is a number (default 0.5) or a tensor.

    >>> torch.bernoulli(torch.tensor([0., 1., 1., 0.]))
    tensor([0., 1., 1., 0.])
    """

    def draw(out: DrawTarget) -> None:
        chance = p if p is not None else 0.5 if out.inplace else input
        if hasattr(chance, "_layout"):
            _bernoulli_on_device(out, chance)
            return
        if isinstance(chance, np.ndarray):
            _bernoulli_each(out, chance)
            return
        if not 0 <= chance <= 1:
            raise RandomError(f"bernoulli_: expects p to be in [0, 1], but got p={chance}")
        out.fill("bernoulli", chance, kinds=ALL_REAL)

    return draw


def _bernoulli_on_device(out: Any, chance: Tensor) -> None:
    """One draw for each element, by its own chance, which is a tensor there."""
    layout = chance._layout
    if layout.dtype.kind != "f":
        raise MissingFeature(
            f"bernoulli: not implemented for probabilities of {layout.dtype}; cast them to float"
        )
    good = T.all(T.logical_and(T.ge(chance, 0), T.le(chance, 1)))
    out.require(good, _no_chance)
    out.fill("bernoulli", chance, kinds=ALL_REAL)


def _no_chance(found: int = 0) -> RandomError:
    return RandomError("bernoulli: Expected p_in >= 0 && p_in <= 1 to be true")


def _bernoulli_each(out: Any, chance: np.ndarray[Any, Any]) -> None:
    """One draw for each element, in the order of the result's memory."""
    if chance.dtype.kind not in "fV":
        raise MissingFeature(
            f"bernoulli: not implemented for probabilities of {chance.dtype}; cast them to float"
        )
    wide = chance if chance.dtype == np.float64 else chance.astype(np.float32)
    spread = np.broadcast_to(wide, tuple(out.layout.shape))
    p = np.ascontiguousarray(np.transpose(spread, memory_order(out.layout)))
    outside = ~((p >= 0) & (p <= 1))
    if outside.any():
        raise RandomError(f"{_no_chance()}, got {p[outside][0]}")
    if not p.size:
        return
    out.fill_with(R.fill_bernoulli_each, p.ctypes.data, p.dtype.name, kinds=ALL_REAL)


@bernoulli.errors
def _(make):
    yield (make(3, low=2, high=3),), {}, RuntimeError, "p_in"


@sampler(inplace=True, function=False, method=False, out=False)
def exponential(input: Tensor, lambd: Float = 1.0, *, generator: Any = None):
    """``exponential_`` fills with exponential numbers of rate ``lambd``.

    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.exponential_.html.

    >>> _ = torch.manual_seed(42)
    >>> (torch.empty(1000).exponential_() > 0).all()
    tensor(True)
    """
    if not lambd > 0:
        raise RandomError(f"exponential_: expects lambda > 0.0, but found lambda={lambd}")
    return lambda out: out.fill("exponential", lambd, kinds="f")


@sampler(inplace=True, function=False, method=False, out=False)
def geometric(input: Tensor, p: Float, *, generator: Any = None):
    """``geometric_`` fills with the number of tries up to the first success, each of chance ``p``.

    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.geometric_.html.

    >>> _ = torch.manual_seed(42)
    >>> (torch.empty(1000).geometric_(0.5) >= 1).all()
    tensor(True)
    """
    if not 0 < p < 1:
        raise RandomError(f"geometric_: expects p to be in (0, 1), but got p={p}")
    return lambda out: out.fill("geometric", p, kinds="fui")


@sampler(inplace=True, function=False, method=False, out=False)
def cauchy(input: Tensor, median: Float = 0.0, sigma: Float = 1.0, *, generator: Any = None):
    """``cauchy_`` fills with numbers of the Cauchy distribution.

    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.cauchy_.html.

    >>> torch.empty(3).cauchy_().shape
    torch.Size([3])
    """
    if not sigma > 0:
        raise RandomError(f"cauchy_: expects sigma > 0.0, but found sigma={sigma}")
    return lambda out: out.fill("cauchy", median, sigma, kinds="f")


@sampler(inplace=True, function=False, method=False, out=False, node="log_normal")
def log_normal(input: Tensor, mean: Float = 1.0, std: Float = 2.0, *, generator: Any = None):
    """``log_normal_`` fills with the exponentials of normal numbers.

    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.log_normal_.html.

    >>> (torch.empty(100).log_normal_() >= 0).all()
    tensor(True)
    """
    if not std > 0:
        raise RandomError(f"log_normal_: expects std > 0.0, but found std={std}")
    return lambda out: out.fill("log_normal", mean, std, kinds="f")


# ------------------------------------------------------------------------------- choosing
def _multinomial_result(
    input: Layout, num_samples: int, replacement: bool, generator: Any
) -> tuple[tuple[int, ...], dtypes.dtype]:
    if input.ndim not in (1, 2):
        raise ShapeError(f"multinomial: prob_dist must be 1 or 2 dim, got shape {input.shape}")
    if input.dtype.kind != "f":
        raise DtypeError(
            "multinomial: only supports floating-point dtypes for input, got: "
            f"{input.dtype}; cast it first: x.float()"
        )
    if num_samples <= 0:
        raise ShapeError(f"multinomial: cannot sample n_sample <= 0 samples, got {num_samples}")
    if not replacement and num_samples > input.shape[-1]:
        raise ShapeError(
            "multinomial: cannot sample n_sample > prob_dist.size(-1) samples without replacement: "
            f"{num_samples} of {input.shape[-1]} categories"
        )
    return (*input.shape[:-1], num_samples), dtypes.int64


@sampler(result=_multinomial_result, on_tensors=True)
def multinomial(input: Tensor, num_samples: Int, replacement: Bool = False, *,
                generator: Any = None):  # fmt: skip
    """``num_samples`` categories of each row, drawn by the row's weights (they need not sum to 1).

    >>> torch.multinomial(torch.tensor([0., 10., 0.]), 1)
    tensor([1])
    """

    def draw(out: Any) -> None:
        rows = input if input._layout.ndim == 2 else T.unsqueeze(input, 0)
        if not rows._layout.shape[0]:
            return
        if not rows._layout.shape[1]:
            raise _no_weight()
        _require_weights(out, rows)
        if replacement and num_samples > 1:
            found = (_choices if out.on_host else _choices_on_device)(out, rows, num_samples)
        else:
            found = _race(out, rows, num_samples)
        out.write(T.view(found, out.layout.shape))

    return draw


def _require_weights(out: Any, rows: Tensor) -> None:
    least, most = T.amin(rows), T.amax(rows, -1)  # NaN where there is one
    finite = T.all(T.lt(most, math.inf))
    out.require(T.logical_and(T.ge(least, 0), finite), _bad_weight)
    out.require(T.gt(T.amin(most), 0), _no_weight)


def _race(out: Any, rows: Tensor, samples: int) -> Tensor:
    """A race of exponential numbers, whose first ones are the samples."""
    layout = rows._layout
    if not out.on_host and layout.dtype is not dtypes.float64:
        rows = T.to_dtype(rows, dtypes.float32)
    dtype = rows._layout.dtype
    if 0 < layout.strides[0] < layout.strides[1]:  # numbers are drawn in the order of memory
        race = T.transpose(out.drawn("exponential", layout.shape[::-1], dtype, 1.0), 0, 1)
    else:
        race = out.drawn("exponential", layout.shape, dtype, 1.0)
    score = T.div(rows, race)
    if samples == 1:
        return T.argmax(score, -1, True)
    return T.topk(score, samples, -1)[1]


def _choices(out: Any, rows: Tensor, samples: int) -> Tensor:
    """A search in the running sums of a row."""
    if rows._layout.dtype is not dtypes.float64:
        rows = T.to_dtype(rows, dtypes.float32)
    rows = T.contiguous(rows)
    layout = rows._layout
    count, categories = layout.shape
    address = rows._storage.ptr + rows._offset * layout.itemsize
    return out.drawn(
        "choices", (count, samples), dtypes.int64, samples, categories, address, layout.dtype.name
    )


def _choices_on_device(out: Any, rows: Tensor, samples: int) -> Tensor:
    """The same, as PyTorch does it for CUDA."""
    wide = dtypes.float64 if rows._layout.dtype is dtypes.float64 else dtypes.float32
    table = T.cumsum(T.to_dtype(rows, wide), -1)
    table = T.div(table, T.narrow(table, -1, table._layout.shape[1] - 1, 1))
    # (a number above 0 finds no category of weight 0)
    drawn = out.drawn("uniform", (table._layout.shape[0], samples), wide, 0.0, 1.0)
    return T.searchsorted(table, T.rsub(drawn, 1))


def _bad_weight(found: int = 0) -> RandomError:
    return RandomError(
        "multinomial: probability tensor contains either `inf`, `nan` or element < 0"
    )


def _no_weight(found: int = 0) -> RandomError:
    return RandomError("multinomial: invalid multinomial distribution (sum of probabilities <= 0)")


@multinomial.errors
def _(make):
    yield (make(3, low=0, high=1), 4), {}, RuntimeError, "without replacement"
    yield (make(2, 2, 2), 1), {}, RuntimeError, "1 or 2 dim"
    yield (make(3, low=-2, high=-1), 1), {}, RuntimeError, "element < 0"


@sampler(inplace=True, function=False, method=False, out=False)
def permutation(input: Tensor, *, generator: Any = None):
    """A random order of the numbers below the size: what ``randperm`` fills its result with."""

    def draw(out: DrawTarget) -> None:
        if out.on_host:
            out.fill("permutation", kinds="fui")
        else:
            _permutation_on_device(out)

    return draw


def _permutation_on_device(out: Any) -> None:
    """The order of random keys. They have 63 bits: two that are equal are too rare to matter."""
    check_kind(out.name, out.layout, "fui")
    keys = out.drawn("random", out.layout.shape, dtypes.int64, None, None)
    out.write(T.argsort(keys, stable=True))
