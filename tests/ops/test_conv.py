"""Convolutions and fold: values and gradients against PyTorch, against the reference, errors."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.ops.kinds.record import NAMESPACES
from tests.ops.parity import needs_torch

F = SimpleNamespace(**NAMESPACES["nn.functional"])
TOLERANCE = {"float32": 2e-5, "float64": 1e-11}


def geometries(count: int) -> list[dict[str, Any]]:
    """Random convolutions that have a result."""
    rng = random.Random(5)
    made: list[dict[str, Any]] = []
    while len(made) < count:
        nd = rng.choice([1, 2, 2, 2, 3])
        groups = rng.choice([1, 1, 2, 3])
        case = {
            "groups": groups, "cg": rng.choice([1, 2, 5, 16, 33]), "kg": rng.choice([1, 4, 15, 32]),
            "n": rng.choice([1, 2, 9]), "taps": [rng.choice([1, 2, 3, 5]) for _ in range(nd)],
            "stride": [rng.choice([1, 1, 2, 3]) for _ in range(nd)],
            "padding": [rng.choice([0, 1, 2]) for _ in range(nd)],
            "dilation": [rng.choice([1, 1, 2]) for _ in range(nd)],
            "size": [rng.choice([5, 7, 8, 14, 33] if nd < 3 else [4, 5]) for _ in range(nd)],
            "transposed": rng.random() < 0.3, "bias": rng.random() < 0.5,
            "dtype": rng.choice(["float32", "float64"]),
        }  # fmt: skip
        fits = all(
            s + 2 * p >= d * (t - 1) + 1
            for s, p, d, t in zip(
                case["size"], case["padding"], case["dilation"], case["taps"], strict=True
            )
        )
        if fits and not (case["transposed"] and max(case["padding"]) > 0):
            made.append(case)
    return made


def run(lib: Any, case: dict[str, Any], device: str = "cpu") -> list[Any]:
    """The result and the gradients."""
    rng = np.random.default_rng(1)
    g, cg, kg, nd = case["groups"], case["cg"], case["kg"], len(case["size"])
    ins, outs = (g * kg, g * cg) if case["transposed"] else (g * cg, g * kg)
    arrays = [
        rng.standard_normal(shape).astype(case["dtype"])
        for shape in ((case["n"], ins, *case["size"]), (g * kg, cg, *case["taps"]), (outs,))
    ]
    leaves = [lib.tensor(a, device=device).requires_grad_() for a in arrays]
    bias = leaves[2] if case["bias"] else None
    y = lib.convolution(
        leaves[0], leaves[1], bias, case["stride"], case["padding"], case["dilation"],
        case["transposed"], [0] * nd, g,
    )  # fmt: skip
    y.backward(lib.tensor(rng.standard_normal(tuple(y.shape)).astype(case["dtype"]), device=device))
    grads = [leaf.grad for leaf in leaves if leaf.grad is not None]
    return [t.detach().numpy() for t in (y, *grads)]


def agree(ours: list[Any], theirs: list[Any], dtype: str) -> None:
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape
        scale = np.abs(b).max() + 1e-3 if b.size else 1
        np.testing.assert_allclose(a / scale, b / scale, rtol=0, atol=TOLERANCE[dtype])


@needs_torch
@pytest.mark.parametrize("case", geometries(60), ids=str)
def test_as_torch(case: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    agree(run(antorcha, case), run(torch, case), case["dtype"])


@pytest.mark.parametrize("case", geometries(12), ids=str)
def test_as_the_windows_say(case: dict[str, Any]) -> None:
    """Against the NumPy computation of the same descriptions."""
    from antorcha.devices.cpu import convolution
    from antorcha.devices.numpy_semantics.host import compile_host
    from antorcha.lang.kernels import Conv
    from antorcha.runtime.memory import layout as L
    from antorcha.runtime.memory.storage import as_numpy, new_storage

    if case["transposed"]:
        return
    g, cg, kg = case["groups"], case["cg"], case["kg"]
    dtype = getattr(antorcha, case["dtype"])
    x = (case["n"], g * cg, *case["size"])
    w = (g * kg, cg, *case["taps"])
    out = [
        (s + 2 * p - d * (t - 1) - 1) // st + 1
        for s, p, d, t, st in zip(
            case["size"], case["padding"], case["dilation"], case["taps"], case["stride"],
            strict=True,
        )
    ]  # fmt: skip
    y = (case["n"], g * kg, *out)
    lays = {k: L.contiguous(s, dtype, antorcha.device("cpu")) for k, s in zip("xwy", (x, w, y))}
    rng = np.random.default_rng(0)
    stores = {}
    for k, lay in lays.items():
        stores[k] = new_storage(lay.nbytes)
        as_numpy(stores[k], 0, lay.shape, tuple(s * lay.itemsize for s in lay.strides),
                 lay.dtype.np)[...] = rng.standard_normal(lay.shape)  # fmt: skip
    for kind, to, (a, b) in (("forward", "y", "xw"), ("data", "x", "yw"), ("weight", "w", "xy")):
        what = Conv(kind, x, w, y, tuple(case["stride"]), tuple(case["padding"]),
                    tuple(case["dilation"]), g)  # fmt: skip
        found = []
        for compiled in (convolution.compile_conv, compile_host):
            launch = compiled(what, [lays[to]], [lays[a], lays[b]])
            storage = launch.fresh(stores[a], 0, stores[b], 0)
            lay = lays[to]
            found.append(
                as_numpy(storage, 0, lay.shape, tuple(s * lay.itemsize for s in lay.strides),
                         lay.dtype.np).copy()
            )  # fmt: skip
        agree(found[:1], found[1:], case["dtype"])


CALLS = """
F.conv2d(x(2, 4, 6, 6), x(6, 2, 3, 3), groups=2)
F.conv2d(x(4, 6, 6), x(6, 2, 3, 3), groups=2)
F.conv2d(x(2, 4, 6, 6), x(6, 4, 2, 2), padding='same', dilation=3)
F.conv2d(x(2, 4, 6, 6), x(6, 4, 2, 2), x(6), padding='valid')
F.conv2d(x(2, 4, 6, 6).contiguous(memory_format=t.channels_last), x(6, 4, 2, 2))
F.conv2d(x(2, 4, 6, 6), x(6, 4, 2, 2).contiguous(memory_format=t.channels_last))
F.conv2d(x(2, 4, 6, 6).transpose(2, 3), x(6, 4, 2, 2), stride=[2], padding=(1,))
F.conv2d(x(0, 4, 6, 6), x(6, 4, 2, 2), x(6))
F.conv1d(x(2, 4, 6), x(3, 4, 2), padding=2)
F.conv3d(x(2, 4, 3, 4, 5), x(3, 4, 2, 2, 2), x(3))
F.conv_transpose1d(x(2, 4, 6), x(4, 3, 3), x(6), 2, 1, 1, 2)
F.conv_transpose2d(x(2, 4, 6, 6), x(4, 3, 3, 3), stride=2, output_padding=1)
F.conv_transpose2d(x(4, 6, 6), x(4, 3, 3, 3))
F.conv_transpose3d(x(1, 2, 3, 3, 3), x(2, 3, 2, 2, 2), x(3), 2)
t.conv2d(x(2, 4, 6, 6), x(6, 2, 3, 3), None, 1, 0, 1, 2)
F.unfold(x(2, 3, 6, 7), 3)
F.unfold(x(2, 3, 6, 7), (2, 3), 2, 1, 2)
F.fold(x(2, 36, 16), (6, 6), 3)
F.fold(x(2, 12, 6), (6, 5), 2, 2, (0, 1), 2)
""".strip().splitlines()

ERRORS = """
F.conv2d(x(2, 4, 6, 6), x(6, 2, 3, 3))
F.conv2d(x(2, 4, 6, 6), x(6, 2, 3, 3), x(5), groups=2)
F.conv2d(x(2, 4, 6, 6), x(6, 2, 3, 3), groups=4)
F.conv2d(x(6, 6), x(6, 2, 3, 3))
F.conv2d(x(2, 4, 6, 6), x(2, 3, 3))
F.conv2d(x(2, 4, 6, 6), x(6, 4, 3, 3), stride=0)
F.conv2d(x(2, 4, 6, 6), x(6, 4, 3, 3), padding=-1)
F.conv2d(x(2, 4, 6, 6), x(6, 4, 3, 3), dilation=0)
F.conv2d(x(2, 4, 6, 6), x(6, 4, 3, 3), dilation=4)
F.conv2d(x(2, 4, 6, 6), x(6, 4, 3, 3), groups=0)
F.conv2d(x(2, 4, 6, 6), x(6, 4, 3, 3), padding='same', stride=2)
F.conv2d(x(2, 4, 6, 6), x(6, 4, 3, 3), padding='foo')
F.conv2d(x(2, 4, 6, 6).double(), x(6, 4, 3, 3))
F.conv2d(x(2, 4, 6, 6), x(6, 4, 3, 3), stride=(1, 2, 3))
F.conv_transpose2d(x(2, 4, 6, 6), x(4, 3, 3, 3), stride=2, output_padding=2)
F.conv_transpose2d(x(2, 4, 6, 6), x(5, 3, 3, 3))
F.conv_transpose2d(x(2, 4, 6, 6), x(4, 3, 3, 3), padding=5)
F.conv1d(x(4, 6), x(3, 6, 2))
F.conv2d(3, x(6, 4, 3, 3))
F.unfold(x(2, 3, 6, 7), 9)
F.fold(x(2, 36, 15), (6, 6), 3)
F.fold(x(2, 35, 16), (6, 6), 3)
""".strip().splitlines()


def call(lib: Any, functional: Any, text: str, second: bool = False) -> Any:
    leaves: list[Any] = []

    def x(*shape: int) -> Any:
        made = np.random.default_rng(len(leaves)).standard_normal(shape).astype("f")
        leaves.append(lib.tensor(made).requires_grad_())
        return leaves[-1]

    try:
        y = eval(text, {"t": lib, "F": functional, "x": x})
    except Exception as error:
        return type(error)
    weights = np.random.default_rng(9).standard_normal(tuple(y.shape)).astype("f")
    grads = lib.autograd.grad(y, leaves, lib.tensor(weights), create_graph=second)
    found = [y, *grads]
    if second and len(leaves) > 1:
        total = sum((g * g).sum() for g in grads)
        more = lib.autograd.grad(total, leaves, allow_unused=True)
        found += [m for m in more if m is not None]
    return [t.detach().numpy() for t in found], y.stride(), type(y.grad_fn).__name__


@needs_torch
@pytest.mark.parametrize("text", CALLS)
def test_calls(text: str) -> None:
    torch = pytest.importorskip("torch")
    second = "x(0" not in text  # PyTorch gives no second gradient of nothing
    ours = call(antorcha, F, text, second)
    theirs = call(torch, torch.nn.functional, text, second)
    agree(ours[0], theirs[0], "float32")
    assert ours[1:] == theirs[1:]


@needs_torch
@pytest.mark.parametrize("text", ERRORS)
def test_errors(text: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = call(antorcha, F, text), call(torch, torch.nn.functional, text)
    assert isinstance(ours, type)
    assert isinstance(theirs, type)
    assert issubclass(ours, theirs)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int64"])
def test_other_dtypes(dtype: str) -> None:
    kind = getattr(antorcha, dtype)
    x = antorcha.arange(16).reshape(1, 1, 4, 4).to(kind)
    y = F.conv2d(x, antorcha.ones(1, 1, 2, 2).to(kind))
    assert y.dtype is kind
    assert y.tolist()[0][0][0] == [10, 14, 18]


@needs_torch
def test_strides_of_conv1d_of_permuted_operands() -> None:
    import torch

    for columns in (False, True):  # is the image's last dim the outer one in memory?
        for out, inner, size, options in ((3, 4, 2, {}), (4, 2, 3, {"groups": 2, "padding": 1})):
            found = []
            for lib in (antorcha, torch):
                image = lib.arange(72.0).reshape(2, 9, 4) / 72
                image = image.permute(0, 2, 1) if columns else image.reshape(2, 4, 9)
                weight = lib.arange(float(out * inner * size)).reshape(out, size, inner) / 9
                made = lib.nn.functional.conv1d(image, weight.permute(0, 2, 1), **options)
                found.append((tuple(made.stride()), made.numpy()))
            assert found[0][0] == found[1][0]
            np.testing.assert_allclose(found[0][1], found[1][1], 1e-5)


def test_depthwise_taps_in_a_square_and_not() -> None:
    """3 x 3 taps side by side have a kernel of their own; on either side of what it is for."""
    plain = {
        "groups": 6, "cg": 1, "kg": 1, "n": 2, "taps": [3, 3], "stride": [1, 1],
        "padding": [1, 1], "dilation": [1, 1], "size": [9, 37], "transposed": False, "bias": True,
        "dtype": "float32",
    }  # fmt: skip
    others: list[dict[str, Any]] = [
        {}, {"dtype": "float64"}, {"bias": False, "padding": [0, 0]}, {"kg": 2},
        {"padding": [2, 0]}, {"size": [3, 3], "padding": [0, 0]}, {"size": [1, 5]},
        {"stride": [2, 1]}, {"stride": [1, 2]}, {"dilation": [2, 1]}, {"taps": [3, 5]},
        {"taps": [5, 5], "padding": [2, 2]}, {"transposed": True},
        {name: [value] * 3 for name, value in
         (("taps", 3), ("stride", 1), ("padding", 1), ("dilation", 1), ("size", 4))},
        {"taps": [1, 3, 3], "stride": [1] * 3, "padding": [0, 1, 1], "dilation": [1] * 3,
         "size": [2, 6, 18]},
    ]  # fmt: skip
    for other in others:
        case = {**plain, **other}
        agree(run(antorcha, case), run(antorcha, case, "reference"), case["dtype"])


def blocked_geometries(count: int) -> list[dict[str, Any]]:
    """Random convolutions with enough channels and work for images in blocks of channels."""
    rng = random.Random(11)
    made: list[dict[str, Any]] = []
    while len(made) < count:
        case = {
            "groups": rng.choice([1, 1, 2]), "cg": rng.choice([16, 30, 32, 48]),
            "kg": rng.choice([16, 31, 32, 60]), "n": rng.choice([1, 2, 5]),
            "taps": [rng.choice([1, 2, 3]), rng.choice([2, 3, 5])],
            "stride": [rng.choice([1, 2, 3]), rng.choice([1, 1, 2])],
            "padding": [rng.choice([0, 1, 2]), rng.choice([0, 1, 3])],
            "dilation": [rng.choice([1, 2]), rng.choice([1, 2])],
            "size": [rng.choice([9, 17, 24]), rng.choice([13, 14, 15, 28, 33])],
            "transposed": False, "bias": rng.random() < 0.5,
            "dtype": rng.choice(["float32", "float32", "float64"]),
        }  # fmt: skip
        if is_blocked(case):
            made.append(case)
    return made


def is_blocked(case: dict[str, Any]) -> bool:
    """Do some of the three kernels of a convolution have the image in blocks?"""
    from antorcha.devices.cpu import convolution
    from antorcha.devices.cpu.matmul import shape_of
    from antorcha.lang.kernels import Conv
    from antorcha.lang.native import f32, f64

    geometry = zip(
        case["size"], case["padding"], case["dilation"], case["taps"], case["stride"], strict=True
    )
    out = [(s + 2 * p - d * (t - 1) - 1) // st + 1 for s, p, d, t, st in geometry]
    g, cg, kg = case["groups"], case["cg"], case["kg"]
    x = (case["n"], g * cg, *case["size"])
    shapes = x, (g * kg, cg, *case["taps"]), (case["n"], g * kg, *out)
    how = [tuple(case[name]) for name in ("stride", "padding", "dilation")]
    S = shape_of(f32 if case["dtype"] == "float32" else f64)
    return any(
        convolution.is_blocked(Conv(kind, *shapes, *how, g), S) for kind in ("forward", "weight")
    )


def test_images_in_blocks_of_channels() -> None:
    failed = []
    for case in blocked_geometries(24):
        try:
            agree(run(antorcha, case), run(antorcha, case, "reference"), case["dtype"])
        except AssertionError as error:
            failed.append(f"{case}: {error}")
    assert not failed, "\n".join(failed)
