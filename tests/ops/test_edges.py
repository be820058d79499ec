"""Zero sizes, huge sizes, arguments of a wrong kind, and NumPy's scalars, as PyTorch has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.ops.kinds.record import T
from antorcha.runtime.launched import slot_of
from tests.ops.parity import needs_torch

F = antorcha.nn.functional
HUGE = 1 << 70


@pytest.mark.parametrize("call", [
    lambda: antorcha.can_cast(7, {}),
    lambda: antorcha.can_cast(antorcha.float32, 7),
    lambda: antorcha.ones(2).resize_as_(1.5),
    lambda: antorcha.ones(2).resize_(2, memory_format=3),
    lambda: T.to_device(antorcha.ones(2), None),
    lambda: antorcha.is_complex([antorcha.ones(2)]),
    lambda: antorcha.is_floating_point(1.5),
    lambda: F.adaptive_avg_pool1d(antorcha.ones(1, 1, 4), 1.5),
    lambda: antorcha.is_inference(0),
    lambda: T.as_strided_backward(antorcha.ones(2), 3, (1,), 0),
    lambda: T.as_strided_backward(antorcha.ones(2), None, (1,), 0),
])  # fmt: skip
def test_wrong_kinds_are_type_errors(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r"must be|expected a dtype|not (float|list)"):
        call()


@pytest.mark.parametrize("nd", [1, 2, 3])
@pytest.mark.parametrize("name", ["adaptive_max_pool", "adaptive_avg_pool"])
def test_adaptive_pools_refuse_huge_sizes_at_once(name: str, nd: int) -> None:
    x = antorcha.ones(1, 1, *[4] * nd)
    pool = getattr(F, f"{name}{nd}d")
    with pytest.raises(ValueError, match=f"{name}{nd}d: output_size .* Overflow"):
        pool(x, HUGE)
    with pytest.raises(RuntimeError, match="more windows than fit"):
        pool(x, 1 << 40)


def test_windows_over_a_huge_dim_are_refused_at_once() -> None:
    x = antorcha.ones(1, 1, 1, device="meta").expand(1, 1, 1 << 40)
    with pytest.raises(RuntimeError, match="more windows than fit"):
        F.max_pool1d(x, 1)


@pytest.mark.parametrize("size", [0, -1, 1 << 40, HUGE])
def test_interpolate_refuses_sizes_at_once(size: int) -> None:
    with pytest.raises(RuntimeError, match="interpolate: Input and output sizes"):
        F.interpolate(antorcha.ones(1, 1, 4), size=size)


@pytest.mark.parametrize("call", [
    lambda: antorcha.tensor_split(antorcha.ones(3), HUGE),
    lambda: antorcha.chunk(antorcha.ones(0), 1 << 62),
    lambda: antorcha.split(antorcha.ones(1).expand(1 << 40), 1),
    lambda: antorcha.unbind(antorcha.ones(1).expand(1 << 40)),
    lambda: iter(antorcha.ones(1).expand(1 << 40)),
])  # fmt: skip
def test_parts_without_end_are_refused_at_once(call: Callable[[], Any]) -> None:
    with pytest.raises(RuntimeError, match="parts are too many"):
        call()


def test_group_norm_checks_its_numbers() -> None:
    x = antorcha.ones(2, 4, 3)
    with pytest.raises(RuntimeError, match="greater than 0"):
        antorcha.native_group_norm(x, None, None, 2, 4, 3, 0, 1e-5)
    for sizes in ((0, 4, 3), (2, 0, 3), (2, 4, 0), (2, 4, 5)):
        with pytest.raises(RuntimeError, match="does not have N"):
            antorcha.native_group_norm(x, None, None, *sizes, 2, 1e-5)
    out, mean, rstd = antorcha.native_group_norm(x[..., :0], None, None, 2, 4, 0, 2, 1e-5)
    assert out.shape == (2, 4, 0)
    assert mean.tolist() == [[0, 0], [0, 0]]
    assert bool(rstd.isnan().all())


def test_gradients_of_convolutions_without_groups() -> None:
    x, y = antorcha.ones(2, 0, 3), antorcha.ones(2, 4, 3)
    with pytest.raises(RuntimeError, match="do not fit together"):
        T.conv_weight(x, y, (2,), (1,), (0,), (1,), 0)


@pytest.mark.parametrize("dtype", ["complex64", "float64", "int64"])
@pytest.mark.parametrize("loss", ["nll_loss", "cross_entropy"])
def test_class_weights_have_the_dtype_of_the_input(loss: str, dtype: str) -> None:
    x = antorcha.ones(2, 3, requires_grad=True)
    weight = antorcha.ones(3, dtype=getattr(antorcha, dtype))
    with pytest.raises(RuntimeError, match=f"{loss}: expected scalar type torch.float32"):
        getattr(F, loss)(x, antorcha.tensor([0, 1]), weight=weight)


def test_embed_view_wants_a_view() -> None:
    with pytest.raises(ValueError, match="embed_view: 'reflect'"):
        T.embed_view(antorcha.ones(2), (2, 2), "reflect", ())


def test_slots_of_numbers() -> None:
    assert [slot_of(kind) for kind in (float, int, bool, complex)] == ["f64", "i64", "i64", "c128"]


def test_iteration_is_one_node() -> None:
    a, b = antorcha.ones(2, 3, requires_grad=True)
    assert a.grad_fn is b.grad_fn
    assert "UnbindBackward0" in str(a.grad_fn)
    x = antorcha.ones(2, 3, requires_grad=True) * 1
    with pytest.raises(RuntimeError, match="multiple views"):
        next(iter(x)).mul_(2)


def test_scaled_embedding_has_a_second_order_gradient() -> None:
    table = antorcha.ones(2, 3, dtype=antorcha.float64, requires_grad=True)
    g = antorcha.ones(3, 3, dtype=antorcha.float64, requires_grad=True)
    taken = F.embedding(antorcha.tensor([0, 1, 1]), table, scale_grad_by_freq=True)
    (made,) = antorcha.autograd.grad(taken, table, g, create_graph=True)
    (found,) = antorcha.autograd.grad(made.sum(), g)
    assert found[:, 0].tolist() == [1.0, 0.5, 0.5]  # by how often each row was taken


SCALARS = [
    [np.float64(1)], [np.float32(1)], [np.float16(1)], [np.int32(1)], [np.int8(1)], [np.uint8(1)],
    [np.bool_(True)], [np.complex64(1)], [np.complex128(1)], (np.float64(1),), [[np.float64(1)]],
    [np.float32(1), np.float64(2)], [np.int64(1), np.float32(2)], [2.5, np.float64(2)],
    [1, np.float64(2)], [1, np.int32(2)], [np.int8(2), np.uint8(1)], [[1.0], [np.float64(2)]],
    [np.float64(2), 1j], [2.5, np.float16(2)], [True, np.float16(2)], [np.int32(1), np.int64(2)],
    [np.bool_(True), 2.5], [np.array([1.0, 2.0])], [np.array([1, 2], dtype=np.int32)],
]  # fmt: skip


@needs_torch
@pytest.mark.parametrize("data", SCALARS, ids=repr)
@pytest.mark.parametrize("make", ["tensor", "as_tensor", "asarray"])
def test_numpy_scalars_keep_their_dtype(make: str, data: Any) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = getattr(antorcha, make)(data), getattr(torch, make)(data)
    assert str(ours.dtype) == str(theirs.dtype)
    assert ours.tolist() == theirs.tolist()


def test_lists_of_tensors_keep_their_dtype() -> None:
    assert antorcha.tensor([antorcha.tensor(1.0, dtype=antorcha.float64)]).dtype is antorcha.float64
    with pytest.raises(ValueError, match="too many dimensions 'str'"):
        antorcha.tensor(["a"])


@needs_torch
@pytest.mark.parametrize("shape", [
    (2, 3, 4, 5), (1, 3, 4, 5), (2, 1, 4, 5), (2, 3, 1, 5), (2, 3, 4, 1), (2, 3, 1, 1),
    (1, 1, 4, 5), (1, 1, 1, 1), (2, 0, 4, 5), (1, 3, 1, 5), (1, 1, 4, 1),
])  # fmt: skip
def test_stack_and_cat_of_channels_last(shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    for count in (1, 2):
        for dim in range(5):
            found = []
            for lib in (antorcha, torch):
                x = lib.ones(shape).to(memory_format=lib.channels_last)
                joined = [lib.stack([x] * count, dim)]
                joined += [lib.cat([x] * count, dim)] if dim < 4 else []
                found.append([tuple(each.stride()) for each in joined])
            assert found[0] == found[1], (count, dim)


@needs_torch
def test_gradient_of_nextafter() -> None:
    torch = pytest.importorskip("torch")
    found = []
    for lib in (antorcha, torch):
        x = lib.tensor([1.0, 2.0, 3.0, float("nan")], requires_grad=True)
        y = lib.tensor([2.0, 1.0, 3.0, 1.0], requires_grad=True)
        lib.nextafter(x, y).sum().backward()
        found.append((x.grad.tolist(), y.grad.tolist()))
    assert found[0] == found[1]


@needs_torch
def test_the_zeroth_power_is_in_the_graph() -> None:
    torch = pytest.importorskip("torch")
    found = []
    for lib in (antorcha, torch):
        x = lib.ones(2, 3, 3, requires_grad=True)
        made = lib.matrix_power(x.mT, 0)
        made.sum().backward()
        found.append((made.tolist(), made.stride(), x.grad.tolist()))
    assert found[0] == found[1]


def test_layouts_without_a_device_are_on_the_default_one() -> None:
    assert T.full_layout((2,), 1.0, antorcha.float32, None).tolist() == [1.0, 1.0]
    assert T.arange_kernel(3, 0, 1, antorcha.int64, None).tolist() == [0, 1, 2]


@pytest.mark.parametrize("times", [1 << 50, HUGE])
def test_repeats_without_end_are_refused_by_their_size(times: int) -> None:
    with pytest.raises(RuntimeError, match=f"repeat_interleave: {times} times"):
        antorcha.repeat_interleave(antorcha.ones(2), times)


@needs_torch
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
@pytest.mark.parametrize("shape", [(), (5,), (3, 5), (2, 3, 4), (4, 1), (2, 1, 3)])
def test_quantiles_lie_as_pytorchs(name: str, shape: tuple[int, ...]) -> None:
    import torch

    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    for fractions in (0.3, [0.3], [0.1, 0.9], []):
        for dim in (None, *range(len(shape))):
            for keepdim in (False, True):
                found = []
                for library in (antorcha, torch):
                    q = library.tensor(fractions) if isinstance(fractions, list) else fractions
                    found.append(getattr(library, name)(library.tensor(x).mT if len(shape) > 1
                                 else library.tensor(x), q, dim, keepdim))  # fmt: skip
                ours, theirs = found
                assert (ours.shape, ours.stride()) == (theirs.shape, theirs.stride())
                np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-6)
