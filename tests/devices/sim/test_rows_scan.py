"""Row programs and scans on the simulator: descriptions beside NumPy's answers, ops beside the
CPU's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.core import dtypes
from antorcha.core.device import as_device
from antorcha.devices.gpu import fallback
from antorcha.devices.gpu import rows as gpu_rows
from antorcha.devices.gpu import scan as gpu_scan
from antorcha.devices.gpu.templates import plan_for
from antorcha.devices.numpy_semantics.host import computes
from antorcha.devices.sim import backend
from antorcha.lang import expr as E
from antorcha.lang.expr import per_row, trace_rows
from antorcha.lang.kernels import Rows, Scan
from antorcha.lang.native import i64
from antorcha.ops.scan import scan
from antorcha.runtime.memory import layout as L

F = antorcha.nn.functional
SIM = as_device("sim")
FLOATS = ("float32", "float64", "float16", "bfloat16")
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-5, "complex64": 2e-5}
Strides = Sequence[int]


class Operand:
    """Random elements of a shape with some strides, in a buffer of the simulator's."""

    def __init__(
        self, shape: Sequence[int], dtype: str, order: str = "rows", seed: int = 0
    ) -> None:
        kind = getattr(antorcha, dtype)
        steps = strides_of(shape, order)
        high = sum([(n - 1) * s for n, s in zip(shape, steps, strict=True)])
        self.layout = L.layout(tuple(shape), tuple(steps), kind, SIM)
        self.offset = 3
        count = high + 1 + self.offset if math.prod(shape) else 0
        flat = some(count, kind, seed)
        self.storage = backend.from_host(flat, L.contiguous((count,), kind, SIM))

    @property
    def array(self) -> Any:
        return backend.to_host(self.layout, self.storage, self.offset)


def some(count: int, kind: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(count)
    if kind.kind == "c":
        return (values + 1j * rng.standard_normal(count)).astype(kind.np)
    if kind.kind == "f":
        return values.astype(kind.np)
    return rng.integers(0, 2 if kind.kind == "b" else 9, count).astype(kind.np)


def strides_of(shape: Sequence[int], order: str) -> list[int]:
    """Row-major ("rows"), the other way round ("columns"), with every second element of each dim
    skipped ("gaps"), or with all lines the first one ("same")."""
    dims = range(len(shape))
    if order == "columns":
        return [math.prod(shape[:d]) for d in dims]
    steps = [math.prod(shape[d + 1 :]) for d in dims]
    if order == "gaps":
        return [2 * (s + s // 2) for s in steps]
    if order == "same":
        return [0] * (len(shape) - 1) + [1]
    return steps


def differs(what: Any, outs: Sequence[Operand], ins: Sequence[Operand], tol: float) -> str:
    """How a description's results on the simulator differ from NumPy's; empty if they do not."""
    layouts = [o.layout for o in outs], [i.layout for i in ins]
    try:
        plan_for(what, *layouts)
        launch = backend.compile(what, *layouts)
        launch.into(*[x for o in (*outs, *ins) for x in (o.storage, o.offset)])
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    with np.errstate(all="ignore"):
        wanted = computes(what, *layouts)([i.array for i in ins])
    for k, (out, want) in enumerate(zip(outs, wanted, strict=True)):
        found = out.array
        wide = complex if found.dtype.kind == "c" else float
        want = np.asarray(np.broadcast_to(want, found.shape)).astype(found.dtype).astype(wide)
        if not np.allclose(found.astype(wide), want, rtol=tol, atol=tol, equal_nan=True):
            return f"result {k}: {found.ravel()[:5]} is not {want.ravel()[:5]}"
    return ""


# ------------------------------------------------------------------------------------ scans
def sums(dim: int, t: Any, **how: Any) -> tuple[Scan, list[str]]:
    acc = {"c": dtypes.complex128, "f": dtypes.float64}.get(t.kind, dtypes.int64)
    what = scan(dim, [t], lambda x, i: E.cast(x, acc), lambda a, b: a + b, (0,), (acc,), **how)
    return what, [acc.name]


def steps(dim: int, t: Any, **how: Any) -> tuple[Scan, list[str]]:
    """Affine functions one after the other: no order but this."""
    acc = dtypes.complex128 if t.kind == "c" else dtypes.float64

    def lift(x: Any, i: Any) -> Any:
        return E.cast(E.where(i % 3 == 0, 0.5, -0.75), acc), E.cast(x, acc)

    what = scan(
        dim, [t], lift, lambda a, x, b, y: (a * b, x * b + y), (1, 0), (acc, acc),
        lambda a, x: (x, a), **how,
    )  # fmt: skip
    return what, [acc.name, acc.name]


def places(dim: int, t: Any, **how: Any) -> tuple[Scan, list[str]]:
    """The greatest so far, and where the last of equals is."""

    def merge(a: Any, i: Any, b: Any, j: Any) -> Any:
        return E.where(b >= a, b, a), E.where(b >= a, j, i)

    acc = dtypes.float64
    what = scan(
        dim, [t], lambda x, i: (E.cast(x, acc), i), merge, (-math.inf, 0), (acc, dtypes.int64),
        **how,
    )  # fmt: skip
    return what, ["float64", "int64"]


SHAPES = ((1, 1), (3, 5), (40, 7), (300, 40), (2, 2500), (1500, 40), (5, 2100), (2, 0))
SOME_DTYPES = ("float32", "int64", "bool", "bfloat16", "complex64")


def scans() -> Iterator[tuple[str, Any, list[Operand], list[Operand], float]]:
    count = 0
    for make in (sums, steps, places):
        for shape in SHAPES:
            for dim in (0, 1):
                for how in ({}, {"reverse": True}, {"run": 1}, {"run": 8, "reverse": True}):
                    count += 1
                    dtype = SOME_DTYPES[count % (4 if make is places else 5)]
                    order = ("rows", "columns", "gaps")[count % 3]
                    what, results = make(dim, getattr(antorcha, dtype), **how)
                    ins = [Operand(shape, dtype, order)]
                    outs = [Operand(shape, r, ("rows", "columns")[count % 2]) for r in results]
                    name = f"{make.__name__} {shape} {dim} {how} {dtype} {order}"
                    yield name, what, outs, ins, TOLERANCE.get(dtype, 1e-8)


def test_scans_of_all_forms() -> None:
    wrong = [(name, text) for name, *given in scans() if (text := differs(*given))]
    assert not wrong, "\n".join([f"{name}: {text}" for name, text in wrong])


def test_scans_of_extremes_keep_nan_and_infinity() -> None:
    """An infinity is where the state of nothing is, too: its place must not be lost."""
    wrong = []
    for n in (3, 130, 5000):
        x = antorcha.full((3, n), -math.inf)
        x[1, n // 2 :] = math.nan
        x[2, ::2] = -0.0
        for op in (antorcha.cummax, antorcha.cummin, antorcha.logcumsumexp):
            for given in (x, x.t().contiguous()):
                dim = 1 if given is x else 0
                ours, theirs = op(given, dim), op(given.to("sim"), dim)
                pairs = zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [
                    (ours, theirs)
                ]  # fmt: skip
                for a, b in pairs:
                    if not np.array_equal(
                        a.numpy(), b.cpu().numpy(), equal_nan=a.is_floating_point()
                    ):
                        wrong.append((op.__name__, n, dim))
    assert not wrong


# ------------------------------------------------------------------------------------ rows
def softmax(x: Any) -> Any:
    e = E.exp(x - x.max())
    return e / e.sum()


def statistics(x: Any, w: Any, m: Any) -> Any:
    """Rows, values a row, and an operand of each kind."""
    centred = x - x.mean()
    deviation = E.sqrt((centred * centred).mean() + 0.5)
    return centred / deviation * w + m, deviation, x.min() + m


def positions(x: Any) -> Any:
    return x.argmax(), x.argmin(), E.where(E.position() == x.argmax(), 1, 0)


def truths(x: Any) -> Any:
    return (x > 1).any(), (x > -9).all(), E.where((x > 2).any(), x, 0 * x)


def spectrum(x: Any) -> Any:
    """Of complex numbers."""
    total = x.sum()
    return x * total, E.real(total), x.sum() / E.length(dtypes.float32)


ROW_SHAPES = ((1, 1), (5, 3), (3, 50), (40, 33), (2, 700), (300, 4), (2, 10000), (70, 300),
              (40, 9000), (3, 0))  # fmt: skip


ORDERS = ("rows", "columns", "gaps", "same")


def row_programs() -> Iterator[tuple[str, Any, list[Operand], list[Operand], float]]:
    count = 0
    for which, fn in enumerate((softmax, statistics, positions, truths, spectrum)):
        kinds = ("complex64", "complex128") if fn is spectrum else FLOATS
        kinds = ("float32", "int64", "bool") if fn is positions else kinds
        for size, shape in enumerate(ROW_SHAPES):
            if not shape[1] and fn is not softmax:
                continue
            for order in ORDERS[(which + size) % 2 :: 2]:  # each shape has all, by some program
                count += 1
                dtype = kinds[count % len(kinds)]
                t = getattr(antorcha, dtype)
                ins, types = [Operand(shape, dtype, order)], [t]
                if fn is statistics:
                    value = Operand((shape[0], 1), dtype, seed=2)
                    ins += [Operand(shape, dtype, "same", 1), value]
                    types += [t, per_row(t)]
                program = trace_rows(fn, types)
                outs = [
                    Operand(shape if is_row else (shape[0], 1), e.dtype.name,
                            ("rows", "columns")[count % 2])
                    for e, is_row in zip(program.outputs, program.rows, strict=True)
                ]  # fmt: skip
                name = f"{fn.__name__} {shape} {dtype} {order}"
                tol = TOLERANCE.get(dtype, 1e-8)
                yield name, Rows(program, shape[1]), outs, ins, tol


def test_row_programs_of_all_forms() -> None:
    wrong = [(name, text) for name, *given in row_programs() if (text := differs(*given))]
    assert not wrong, "\n".join([f"{name}: {text}" for name, text in wrong])


# ------------------------------------------------------------------------------------ ops
def calls() -> dict[str, Callable[..., Any]]:
    return {
        "softmax 0": lambda x: antorcha.softmax(x, 0),
        "softmax -1": lambda x: antorcha.softmax(x, -1),
        "log_softmax": lambda x: antorcha.log_softmax(x, -1),
        "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:], x[0], x[-1]),
        "rms_norm": lambda x: F.rms_norm(x, x.shape[-1:], x[0]),
        "cross_entropy": lambda x: F.cross_entropy(
            x, antorcha.arange(len(x), device=x.device) % x.shape[-1], x[0], label_smoothing=0.1
        ),
        "cumsum": lambda x: antorcha.cumsum(x, 0),
        "cumprod": lambda x: antorcha.cumprod(x, -1),
        "cumprod 0": lambda x: antorcha.cumprod(x, 0),
        "logcumsumexp": lambda x: antorcha.logcumsumexp(x, -1),
    }


def test_long_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elements counted in 64 bits, as where there are very many."""
    for module in (gpu_rows, gpu_scan):
        monkeypatch.setattr(module, "index_type", lambda layouts, count: i64)
    some = [*list(scans())[::17], *list(row_programs())[::11]]
    wrong = [(name, text) for name, *given in some if (text := differs(*given))]
    assert not wrong, "\n".join([f"{name}: {text}" for name, text in wrong])


def test_ops_and_gradients_beside_the_cpu() -> None:
    fallback.noted.clear()
    wrong = []
    for name, f in calls().items():
        for k, shape in enumerate(((4, 5), (33, 40), (2, 1500))):
            dtype = ("float32", "float64", "bfloat16")[k]
            x = antorcha.from_numpy(np.random.default_rng(k).standard_normal(shape))
            x = (x * 0.5).to(getattr(antorcha, dtype))
            found = []
            for each in (x.clone(), x.to("sim")):
                each.requires_grad_()
                y = f(each)
                (y * y).sum().backward()
                found.append([t.detach().cpu().double().numpy() for t in (y, each.grad)])
            tol = TOLERANCE.get(dtype, 1e-8) * 4
            for a, b in zip(*found, strict=True):
                if not np.allclose(a, b, rtol=tol, atol=tol):
                    wrong.append((name, shape, dtype, float(np.abs(a - b).max())))
    assert not wrong
    assert not {"Rows", "Scan"} & set(fallback.noted)
