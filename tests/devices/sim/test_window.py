"""Kernels of GPUs that move elements or work on windows, and vectors of pointwise ones, on the
simulator beside the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.core.device import backend
from antorcha.devices.gpu import fallback
from antorcha.devices.numpy_semantics.host import compile_host
from antorcha.lang.kernels import Check
from antorcha.runtime.tensor import Tensor

F = antorcha.nn.functional
MOVED = ("bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
         "complex128")  # fmt: skip
FLOATS = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5, "float64": 1e-12}


class Comparison:
    """What differs between the CPU and the simulator."""

    def __init__(self) -> None:
        self.failures: list[str] = []

    def same(self, what: str, f: Callable[..., Any], *given: Tensor, rtol: float = 0) -> None:
        """``f`` of the tensors gives the same tensors on both."""
        ours, theirs = f(*given), f(*[t.to("sim") for t in given])
        if isinstance(ours, Tensor):
            ours, theirs = (ours,), (theirs,)
        for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            problem = self.problem(a, b, rtol)
            if problem:
                self.failures.append(f"{what}, {given[0].dtype}, result {k}: {problem}")

    def problem(self, a: Tensor, b: Tensor, rtol: float) -> str:
        if b.device.type != "sim" or (a.shape, a.stride(), a.dtype) != (
            b.shape, b.stride(), b.dtype
        ):  # fmt: skip
            return f"{a.shape} {a.stride()} {a.dtype} is {b.shape} {b.stride()} {b.dtype}"
        x = np.asarray(a.detach().tolist(), np.complex128 if a.dtype.is_complex else None)
        y = np.asarray(b.detach().cpu().tolist(), x.dtype)
        right = np.isclose(x, y, rtol=rtol, atol=rtol, equal_nan=True) if rtol else (
            (x == y) | ((x != x) & (y != y))
        )  # fmt: skip
        wrong = np.argwhere(~np.atleast_1d(right))
        if not len(wrong):
            return ""
        at = tuple(wrong[0])
        return f"{len(wrong)} differ; at {at} {np.atleast_1d(y)[at]} is not {np.atleast_1d(x)[at]}"


@contextmanager
def comparison() -> Iterator[Comparison]:
    """Fails with all that differs, and where anything was left to the host."""
    fallback.noted.clear()
    found = Comparison()
    yield found
    assert not found.failures, "\n".join(found.failures)
    assert not fallback.noted


def numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Tensor:
    """Small numbers without order."""
    values = np.random.default_rng(seed).integers(0, 12, shape)
    if dtype == "bool":
        values = values % 2
    return antorcha.tensor(values.tolist(), dtype=getattr(antorcha, dtype)).reshape(shape)


def views(x: Tensor) -> list[Tensor]:
    """A tensor of 3 dims, and others that lie in other ways."""
    return [x, x.transpose(0, 2), x[:, ::3, 1:], x[:1, :, None, 0].expand(-1, -1, 5), x[:0], x[:1]]


def test_arrangements() -> None:
    with comparison() as both:
        for dtype in MOVED:
            x = numbers((3, 35, 40), dtype)
            for k in range(6):
                both.same(f"flip of view {k}", lambda t, k=k: views(t)[k].flip(0, 2), x)
                for turns in (1, 2, 3):
                    both.same(
                        f"rot90 by {turns} of view {k}",
                        lambda t, k=k, n=turns: views(t)[k].rot90(n, (1, 2)), x,
                    )  # fmt: skip
                for diagonal in (-50, -2, 0, 3, 50):
                    both.same(f"tril {diagonal} of view {k}",
                              lambda t, k=k, d=diagonal: views(t)[k].tril(d), x)  # fmt: skip
                    both.same(f"triu {diagonal} of view {k}",
                              lambda t, k=k, d=diagonal: views(t)[k].triu(d), x)  # fmt: skip
            both.same("triangle in place", lambda t: t.clone().mT.tril_(1), x)
            for order in ((0, 2, 1), (2, 0, 1), (2, 1, 0)):
                both.same(
                    f"transposing copy {order}", lambda t, o=order: t.permute(o).contiguous(), x
                )
        nan = antorcha.full((4, 4), float("nan"))
        both.same("zeros beside NaN", lambda t: antorcha.triu(t, 1), nan)
        both.same("no dims", lambda t: t.flip(()), antorcha.tensor(3.0))


def test_ranges() -> None:
    wrong = []
    for dtype in (*[d for d in MOVED if d[0] in "ui" or d in FLOATS], "int8", "int32"):
        t = getattr(antorcha, dtype)
        for make in (
            *[lambda on, a=a, t=t: antorcha.arange(*a, dtype=t, device=on)
              for a in ((1000,), (3, 100, 7), (0,), (5, -5, -1.7))],
            *[lambda on, a=a, t=t: antorcha.linspace(*a, dtype=t, device=on)
              for a in ((0, 1, 1000), (-3.5, 100, 77), (1, 5, 1), (2, -5, 2), (0, 1, 0))],
        ):  # fmt: skip
            ours, theirs = make("cpu"), make("sim")
            if ours.tolist() != theirs.cpu().tolist() or ours.dtype is not theirs.dtype:
                wrong.append(f"{dtype}: {theirs.cpu().tolist()[:5]} is not {ours.tolist()[:5]}")
    given = antorcha.zeros(20, device="sim")
    antorcha.arange(10, out=given[::2])
    if given.cpu().tolist()[:6] != [0, 0, 1, 0, 2, 0]:
        wrong.append(f"every second: {given.cpu().tolist()}")
    assert not wrong, "\n".join(wrong)


def test_the_first_wrong_element_is_named() -> None:
    def refuse(value: int) -> ValueError:
        return ValueError(f"{value} is wrong")

    def outcome(compile: Any, what: Check, x: Tensor) -> str:
        layout = x._layout
        try:
            compile(what, [], [layout]).into(x._storage, x.storage_offset())
        except ValueError as error:
            return str(error)
        return "right"

    wrong = []
    checks = [Check(0, 12, refuse), Check(0, 4, refuse), Check(1, 4, refuse, -1),
              Check(0, 11, refuse, 11), Check(0, 0, refuse), Check(2, 2, refuse, 0)]  # fmt: skip
    for dtype in ("bool", "uint8", "int8", "int32", "int64"):
        for shape in ((3, 5, 40), (9, 31, 40)):
            x = numbers(shape, dtype)
            for k, (a, b) in enumerate(zip(views(x), views(x.to("sim")), strict=True)):
                for n, what in enumerate(checks):
                    want = outcome(compile_host, what, a)
                    got = outcome(backend(b.device).compile, what, b)
                    if got != want:
                        wrong.append(f"{dtype} {shape} view {k} check {n}: {got}, not {want}")
    for places in ((99999,), (0,), (60000, 50000, 70000), (4095, 4096), ()):
        x = antorcha.zeros(100000, dtype=antorcha.int64)
        for place in places:
            x[place] = -place - 1
        want = f"{-min(places) - 1} is wrong" if places else "right"
        for given in (x.to("sim"), x.to("sim").reshape(100, 1000)):
            got = outcome(backend(given.device).compile, Check(0, 1, refuse), given)
            if got != want:
                wrong.append(f"{places}: {got}, not {want}")
    assert not wrong, "\n".join(wrong)
    with pytest.raises(IndexError, match="7"):
        F.nll_loss(antorcha.zeros(3, 5, device="sim"), antorcha.tensor([1, 7, 9]).to("sim"))


def with_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """The results of f and the gradient of their weighted sum."""

    def run(x: Tensor) -> tuple[Tensor, ...]:
        x = x.clone().requires_grad_()
        found = f(x)
        every = found if isinstance(found, tuple) else (found,)
        weights = antorcha.arange(every[0].numel(), dtype=x.dtype).reshape(every[0].shape)
        (every[0] * (weights % 7).to(x.device)).sum().backward()
        return (*[t.detach() for t in every], x.grad)

    return run


def test_pooling() -> None:
    slides = ((2, 2, 0, 1, False), (3, 1, 1, 1, False), (3, 2, 1, 2, True), ((3, 2), 3, (1, 0), 1,
              True))  # fmt: skip
    with comparison() as both:
        for dtype, rtol in FLOATS.items():
            x = numbers((2, 3, 17, 22), dtype)
            for a in slides:
                for name, lies in (
                    ("rows", lambda t: t), ("turned", lambda t: t.transpose(2, 3)),
                    ("channels last", lambda t: t.to(memory_format=antorcha.channels_last)),
                ):  # fmt: skip
                    both.same(
                        f"max {a} {name}",
                        with_gradient(
                            lambda t, a=a, lies=lies: F.max_pool2d(lies(t), *a, return_indices=True)
                        ), x,
                    )  # fmt: skip
                    for pad, divisor in ((True, None), (False, None), (True, 5)):
                        both.same(
                            f"average {a} {name} {pad} {divisor}",
                            with_gradient(
                                lambda t, a=a, lies=lies, b=pad, d=divisor: F.avg_pool2d(
                                    lies(t), *a[:3], a[4], b, d)
                            ), x, rtol=rtol,
                        )  # fmt: skip
            for size in (1, 5, (7, 30)):
                both.same(
                    f"adaptive max {size}",
                    with_gradient(lambda t, n=size: F.adaptive_max_pool2d(t, n, True)),
                    x,
                )
                both.same(f"adaptive average {size}",
                          with_gradient(lambda t, n=size: F.adaptive_avg_pool2d(t, n)), x,
                          rtol=rtol)  # fmt: skip
        deep = numbers((2, 7, 8, 9), "float32")
        both.same("volumes", with_gradient(lambda t: F.max_pool3d(t, 3, 2, 1)), deep)
        both.same("means of volumes", with_gradient(lambda t: F.avg_pool3d(t, 3, 2, 1)), deep,
                  rtol=1e-5)  # fmt: skip
        both.same("lines", with_gradient(lambda t: F.max_pool1d(t, 4, 3, 2)), deep[0])
        both.same("no images", lambda t: F.max_pool2d(t[:0], 2), numbers((2, 3, 4, 4), "float32"))
        ends = antorcha.tensor([[[float("-inf"), float("-inf"), 1, float("nan"), 2, -0.0]]])
        both.same("NaN and infinities", lambda t: F.max_pool1d(t, 2, return_indices=True), ends)
        for dtype in ("uint8", "int64", "int32"):
            both.same("integers", lambda t: F.max_pool2d(t - 5, 3, 2, return_indices=True),
                      numbers((3, 9, 9), dtype))  # fmt: skip
        both.same("integers' average", lambda t: F.avg_pool2d(t - 6, 3, 2, 1),
                  numbers((3, 9, 9), "int64"))  # fmt: skip


def test_resampling() -> None:
    with comparison() as both:
        for dtype, rtol in FLOATS.items():
            x = numbers((2, 3, 9, 14), dtype)
            for name, lies in (
                ("rows", lambda t: t), ("turned", lambda t: t.transpose(2, 3)),
                ("channels last", lambda t: t.to(memory_format=antorcha.channels_last)),
            ):  # fmt: skip
                for mode in ("nearest", "nearest-exact", "bilinear", "bicubic"):
                    for size in ((20, 5), (9, 31), (1, 1)):
                        both.same(
                            f"{mode} {size} {name}",
                            with_gradient(
                                lambda t, lies=lies, n=size, m=mode: F.interpolate(
                                    lies(t), n, mode=m)
                            ), x, rtol=rtol * 10,
                        )  # fmt: skip
                both.same(
                    f"antialiased {name}",
                    lambda t, lies=lies: F.interpolate(
                        lies(t), (4, 5), mode="bicubic", antialias=True
                    ), x, rtol=rtol * 10,
                )  # fmt: skip
            both.same("lines", lambda t: F.interpolate(t[0], 33, mode="linear"), x, rtol=rtol)
            both.same("none", lambda t: F.interpolate(t[:0], (3, 3), mode="bilinear"), x)
        both.same("bytes", lambda t: F.interpolate(t * 20, (5, 9), mode="bilinear"),
                  numbers((1, 2, 9, 14), "uint8"))  # fmt: skip
        both.same("nearest bytes", lambda t: F.interpolate(t, (5, 90)),
                  numbers((1, 2, 9, 14), "uint8"))  # fmt: skip


def test_unfolding() -> None:
    geometries = ((2, 1, 0, 1), (3, 1, 1, 1), ((3, 2), (2, 1), (1, 2), (2, 3)), (3, 3, 4, 2))
    with comparison() as both:
        for dtype in MOVED:
            x = numbers((2, 3, 9, 11), dtype)
            rtol = FLOATS.get(dtype, 1e-5 if dtype.startswith("c") else 0)
            for a in geometries:
                for name, lies in (("rows", lambda t: t), ("turned", lambda t: t.transpose(1, 3))):
                    both.same(f"unfold {a} {name}",
                              lambda t, a=a, lies=lies: F.unfold(lies(t), *a), x)  # fmt: skip
                    size = tuple(lies(x).shape[2:])
                    columns = F.unfold(lies(x), *a)
                    both.same(
                        f"fold {a} {name}",
                        lambda t, a=a, n=size: F.fold(t, n, *a),
                        columns,
                        rtol=rtol,
                    )
                    both.same(
                        f"fold of turned columns {a} {name}",
                        lambda t, a=a, n=size: F.fold(t.mT.contiguous().mT, n, *a), columns,
                        rtol=rtol,
                    )  # fmt: skip
        both.same("gradients", with_gradient(lambda t: F.unfold(t, 3, 2, 2, 2)),
                  numbers((2, 2, 30, 31), "float32"), rtol=1e-5)  # fmt: skip


def test_vectors_of_pointwise_kernels() -> None:
    with comparison() as both:
        for dtype in MOVED:

            def f(a: Tensor, b: Tensor, dtype: str = dtype) -> Tensor:
                return a | b if dtype == "bool" else a * b + a

            for n in (1, 3, 8, 1023, 5000):
                a, b = numbers((2 * n,), dtype), numbers((2 * n,), dtype, 1)
                both.same(f"{n} together", f, a, b)
                both.same(f"{n} off by one", lambda a, b, f=f: f(a[1:], b[:-1]), a, b)
                both.same(f"{n} in steps", lambda a, b, f=f: f(a[::2], b[1::2]), a, b)
            for shape in ((5, 16), (5, 12), (5, 6), (3, 7), (300, 8), (4, 3, 8)):
                a, b = numbers(shape, dtype), numbers(shape, dtype, 1)
                for what, g in (
                    ("a row", lambda a, b: (a, b[..., :1, :])),
                    ("a column", lambda a, b: (a, b[..., :1])),
                    ("a number", lambda a, b: (a, b[..., :1, :1])),
                    ("parts", lambda a, b: (a[..., 1:], b[..., :-1])),
                    ("turned", lambda a, b: (a.mT, b.mT)),
                    ("one turned", lambda a, b: (a, b.mT.contiguous().mT)),
                ):
                    both.same(f"{shape} {what}", lambda a, b, f=f, g=g: f(*g(a, b)), a, b)
            a = numbers((77,), dtype)
            for to in MOVED if not dtype.startswith("c") else ("complex64", "complex128"):
                both.same(f"to {to}", lambda t, to=to: t.to(getattr(antorcha, to)), a)
            if dtype != "bool":
                both.same("in place", lambda t: t.clone()[1:].mul_(t[1:]), a)
