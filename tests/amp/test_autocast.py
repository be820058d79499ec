"""autocast: dtypes and values beside PyTorch's for every op with samples; blocks, caches, state."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.amp.casts import FLOAT32, LOWER, POLICIES, WIDEST
from antorcha.core import modes
from antorcha.ops.kinds.record import REGISTRY, Op
from tests.ops.records import results, samples, to_torch, torch_form

F = antorcha.nn.functional
OTHERWISE = {
    "complex": "PyTorch takes float16 here, autocast or not",
    "interpolate": "PyTorch cannot resize halves",
    "linalg_pinv": "on no list, so in its operand's dtype; PyTorch casts a product in it",
    "linalg_matrix_exp": "PyTorch's is nan for halves",
}
"""Ops whose call differs from PyTorch's, and why."""


def ops() -> list[Op]:
    return list(dict.fromkeys(REGISTRY.values()))


@pytest.mark.oracle
@pytest.mark.parametrize("low", ["bfloat16", "float16"])
def test_every_op_has_pytorchs_dtypes_and_values(low: str) -> None:
    torch = pytest.importorskip("torch")
    seen = set()
    for op in ops():
        form = torch_form(op, torch)
        if form is None or op.random or op.name in OTHERWISE:
            continue
        for dtype in (antorcha.float32, getattr(antorcha, low)):
            try:
                calls = list(samples(op, dtype))[:6]
            except Exception:  # it takes no such dtype
                continue
            for args, kwargs in calls:
                seen.add(op.name)
                compare(torch, low, op, form, args, kwargs)
    apart = {"linalg_vecdot", "scaled_dot_product_attention"}  # tested below
    assert {*LOWER, *WIDEST, "mse_loss", "cross_entropy", "gru"} - apart <= seen


def compare(torch: Any, low: str, op: Op, form: Any, args: Any, kwargs: Any) -> None:
    theirs_in = to_torch((args, kwargs), torch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with torch.autocast("cpu", dtype=getattr(torch, low)):
                theirs = form(*theirs_in[0], **theirs_in[1])
        except Exception:
            return  # not for this dtype
        with antorcha.autocast("cpu", dtype=getattr(antorcha, low)):
            ours = op(*args, **kwargs)
    if not isinstance(ours, (antorcha.Tensor, tuple, list)):
        return
    right = theirs if isinstance(theirs, (tuple, list)) else [theirs]
    right = [t for t in right if isinstance(t, torch.Tensor)]
    for a, b in zip(results(ours), right, strict=False):
        what = f"{op.name}{args}{kwargs}"
        assert str(a.dtype) == str(b.dtype), what
        if a.dtype.is_floating_point and tuple(a.shape) == tuple(b.shape):
            left = a.detach().double().numpy()
            np.testing.assert_allclose(left, b.detach().double().numpy(), 2e-2, 2e-2, err_msg=what)


def test_ops_without_samples_of_their_own() -> None:
    x = antorcha.rand(2, 3, 4)
    with antorcha.autocast("cpu"):
        attended = F.scaled_dot_product_attention(x, x, x)
        assert (attended.dtype, antorcha.linalg.vecdot(x, x).dtype) == (antorcha.bfloat16,) * 2
        assert antorcha.einsum("bij,bkj->bik", x, x).dtype is antorcha.bfloat16


def test_the_lists_name_ops() -> None:
    """A name on a list is an op's."""
    assert not [name for name in POLICIES if name not in REGISTRY]
    assert not set(LOWER) & set(FLOAT32)


def test_a_training_step_keeps_the_weights_dtype() -> None:
    model = antorcha.nn.Sequential(
        antorcha.nn.Linear(4, 8), antorcha.nn.ReLU(), antorcha.nn.Linear(8, 2)
    )
    seen = []
    model[0].register_forward_hook(lambda m, x, y: seen.append(y.dtype))
    with antorcha.autocast("cpu"):
        out = model(antorcha.randn(3, 4))
        loss = F.mse_loss(out, antorcha.zeros(3, 2))
    assert (seen, out.dtype, loss.dtype) == (
        [antorcha.bfloat16], antorcha.bfloat16, antorcha.float32,
    )  # fmt: skip
    loss.backward()
    assert {p.grad.dtype for p in model.parameters()} == {antorcha.float32}
    assert modes.busy == 0


@pytest.mark.oracle
def test_a_training_step_has_pytorchs_gradients() -> None:
    torch = pytest.importorskip("torch")
    found = []
    for lib in (antorcha, torch):
        lib.manual_seed(0)
        model = lib.nn.Sequential(
            lib.nn.Conv2d(1, 4, 3), lib.nn.BatchNorm2d(4), lib.nn.ReLU(), lib.nn.Flatten(),
            lib.nn.Linear(144, 8), lib.nn.LayerNorm(8), lib.nn.GELU(), lib.nn.Linear(8, 3),
        )  # fmt: skip
        optimizer = lib.optim.SGD(model.parameters(), lr=0.1)
        x, y = lib.randn(5, 1, 8, 8), lib.tensor([0, 1, 2, 0, 1])
        losses = []
        for _ in range(4):
            optimizer.zero_grad()
            with lib.autocast("cpu", dtype=lib.bfloat16):
                loss = lib.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        found.append(losses)
    np.testing.assert_allclose(found[0], found[1], 2e-2)


def test_blocks_nest_and_may_be_switched_off() -> None:
    a, b = antorcha.ones(2, 2), antorcha.ones(2, 2)
    with antorcha.autocast("cpu", dtype=antorcha.float16):
        assert (a @ b).dtype is antorcha.float16
        with antorcha.autocast("cpu", enabled=False):
            assert (a @ b).dtype is antorcha.float32
            assert not antorcha.is_autocast_enabled("cpu")
        with antorcha.autocast("cpu", dtype=antorcha.bfloat16):
            assert antorcha.mm(a, b).dtype is antorcha.bfloat16
        assert antorcha.get_autocast_dtype("cpu") is antorcha.float16
        assert (a @ b).dtype is antorcha.float16
        assert (a.double() @ b.double()).dtype is antorcha.float64
        assert (a + b.half()).dtype is antorcha.float32
        out = antorcha.empty(2, 2)
        assert antorcha.mm(a, b, out=out) is out  # this form is not cast
        with pytest.raises(RuntimeError), antorcha.autocast("cpu"):
            raise RuntimeError
    assert (a @ b).dtype is antorcha.float32
    assert antorcha.get_autocast_dtype("cpu") is antorcha.bfloat16


def test_it_decorates() -> None:
    @antorcha.autocast("cpu")
    def product(a: Any) -> Any:
        return a @ a

    assert product(antorcha.ones(2, 2)).dtype is antorcha.bfloat16
    assert product.__name__ == "product"
    with pytest.raises(TypeError, match="requires a callable"):
        antorcha.autocast("cpu")(3)  # type: ignore[arg-type]


def test_a_weight_is_cast_once() -> None:
    weight = antorcha.nn.Parameter(antorcha.ones(2, 2))
    x = antorcha.ones(1, 2)
    with antorcha.autocast("cpu"):
        nodes = [F.linear(x, weight).grad_fn.next_functions for _ in range(2)]
        assert nodes[0] == nodes[1]
        with antorcha.no_grad():
            F.linear(x, weight)
            weight.add_(1)  # a cast from before is no longer what the weight is
        assert F.linear(x, weight).tolist() == [[4.0, 4.0]]
        assert F.linear(x, weight).requires_grad
    with antorcha.autocast("cpu", cache_enabled=False):
        nodes = [F.linear(x, weight).grad_fn.next_functions for _ in range(2)]
        assert nodes[0] != nodes[1]


def test_a_cast_made_where_nothing_is_recorded_is_not_used_elsewhere() -> None:
    weight = antorcha.nn.Parameter(antorcha.ones(2, 2))
    with antorcha.autocast("cpu"):
        with antorcha.no_grad():
            F.linear(antorcha.ones(1, 2), weight)
        F.linear(antorcha.ones(1, 2), weight).sum().backward()
    assert weight.grad is not None


def test_backward_inside_the_block_runs_as_outside() -> None:
    grads = []
    for inside in (False, True):
        x = antorcha.linspace(0, 1, 6).reshape(2, 3).requires_grad_()
        with antorcha.autocast("cpu"):
            y = ((x @ x.T).softmax(1).float() @ x.detach()).float().exp().sum()
            if inside:
                y.backward()
        if not inside:
            y.backward()
        grads.append(x.grad.tolist())
    assert grads[0] == grads[1]


def test_the_state_is_the_threads_own() -> None:
    seen = []
    with antorcha.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append(antorcha.is_autocast_enabled("cpu")))
        thread.start()
        thread.join()
        assert antorcha.is_autocast_enabled("cpu")
    assert seen == [False]


def test_setters() -> None:
    assert antorcha.is_autocast_cache_enabled()
    antorcha.set_autocast_enabled("cpu", True)
    try:
        antorcha.set_autocast_dtype("cpu", antorcha.float16)
        x = antorcha.ones(2, 2)
        assert (x @ x).dtype is antorcha.float16
    finally:
        antorcha.set_autocast_enabled("cpu", False)
        antorcha.set_autocast_dtype("cpu", antorcha.bfloat16)
    assert not antorcha.is_autocast_enabled()
    with pytest.warns(DeprecationWarning, match=r"get_autocast_dtype\('cpu'\)"):
        assert antorcha.get_autocast_cpu_dtype() is antorcha.bfloat16
    with pytest.raises(RuntimeError, match="unsupported"):
        antorcha.autocast("meta")
    with pytest.raises(ValueError, match="of type `str`"):
        antorcha.autocast(antorcha.device("cpu"))  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        antorcha.autocast("gpu")


def test_what_cannot_be_done_warns_and_is_off() -> None:
    with pytest.warns(UserWarning, match="CUDA is not available"):
        block = antorcha.autocast("cuda")
    with block:
        assert not antorcha.is_autocast_enabled("cuda")
    with pytest.warns(UserWarning, match="only supports dtypes of torch.bfloat16, torch.float16"):
        assert not antorcha.autocast("cpu", dtype=antorcha.float32)._enabled
    with pytest.warns(FutureWarning, match="deprecated"):
        block = antorcha.cpu.amp.autocast()
    with block:
        assert antorcha.is_autocast_enabled("cpu")


def test_custom_functions() -> None:
    class Product(antorcha.autograd.Function):
        @staticmethod
        @antorcha.amp.custom_fwd(device_type="cpu")
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @antorcha.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, g: Any) -> Any:
            seen.append(antorcha.is_autocast_enabled("cpu"))
            a, b = ctx.saved_tensors
            return g @ b.T, a.T @ g

    class Exact(antorcha.autograd.Function):
        @staticmethod
        @antorcha.amp.custom_fwd(device_type="cpu", cast_inputs=antorcha.float32)
        def forward(ctx: Any, a: Any) -> Any:
            seen.append(antorcha.is_autocast_enabled("cpu"))
            return a @ a

        @staticmethod
        @antorcha.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, g: Any) -> Any:
            return g

    seen: list[bool] = []
    a = antorcha.ones(2, 2, requires_grad=True)
    with antorcha.autocast("cpu"):
        y = Product.apply(a, a)
        assert y.dtype is antorcha.bfloat16
        assert Exact.apply(y).dtype is antorcha.float32
    y.sum().backward()
    assert seen == [False, True]
    Product.apply(a, a).sum().backward()
    assert seen == [False, True, False]
