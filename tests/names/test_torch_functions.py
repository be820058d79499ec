"""Functions of ``torch`` that are methods or ``nn.functional``'s elsewhere: beside PyTorch's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import antorcha
from tests.ops.parity import compare, data

pytestmark = pytest.mark.oracle

Call = Callable[..., Any]
MATRIX, OTHER = data(3, 4), data(3, 4, seed=1)
CALLS: dict[str, Call] = {
    "bilinear": lambda lib, a, b: lib.bilinear(a, b, lib.ones(2, 4, 4), lib.ones(2)),
    "binary_cross_entropy_with_logits": lambda lib, a, b: lib.binary_cross_entropy_with_logits(
        a, b.sigmoid(), None, lib.full((4,), 2.0)
    ),
    "cosine_embedding_loss": lambda lib, a, b: lib.cosine_embedding_loss(
        a, b, lib.tensor([1, -1, 1]), 0.1, 2
    ),
    "hinge_embedding_loss": lambda lib, a, b: lib.hinge_embedding_loss(a, b.sign(), 0.5, 0),
    "kl_div": lambda lib, a, b: lib.kl_div(a, b, log_target=True),
    "margin_ranking_loss": lambda lib, a, b: lib.margin_ranking_loss(a, b, a.sign(), 0.1),
    "poisson_nll_loss": lambda lib, a, b: lib.poisson_nll_loss(a, b.abs(), True, False, 1e-8, 1),
    "triplet_margin_loss": lambda lib, a, b: lib.triplet_margin_loss(a, b, b + 1, swap=True),
    "grid_sampler_2d": lambda lib, a, b: lib.grid_sampler_2d(
        a[None, None], b.reshape(1, 2, 3, 2), 0, 0, True
    ),
    "max_pool1d_with_indices": lambda lib, a, b: lib.max_pool1d_with_indices(a, 2, 1),
    "pixel_shuffle": lambda lib, a, b: lib.pixel_shuffle(a.reshape(4, 1, 3), 2),
    "native_channel_shuffle": lambda lib, a, b: lib.native_channel_shuffle(a[:, :, None], 2),
    "native_dropout": lambda lib, a, b: lib.native_dropout(a, 0.5, False)[0],
    "addr_": lambda lib, a, b: (a * 1)[:, :3].addr_(b[:, 0], b[:, 1], beta=0.5),
    "addbmm_": lambda lib, a, b: (a * 1)[:, :3].addbmm_(a[None], b.t()[None], alpha=2.0),
    "renorm_": lambda lib, a, b: (a * 1).renorm_(2, 0, 1.0),
    "fill_diagonal_": lambda lib, a, b: (a * 1).t().fill_diagonal_(2.0, wrap=True),
    "index_reduce_": lambda lib, a, b: (a * 1).index_reduce_(
        0, lib.tensor([0, 0]), b[:2], "amax", include_self=False
    ),
    "float_power_": lambda lib, a, b: (a * 1).double().abs().float_power_(b),
    "resize": lambda lib, a, b: a.resize(4, 3),
    "resize_as": lambda lib, a, b: a.resize_as(b.t()),
}


@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grad = int(name != "native_channel_shuffle")  # PyTorch has no derivative of it
        compare(CALLS[name], MATRIX, OTHER, grad=grad)


@pytest.mark.parametrize("name", ["dropout_", "alpha_dropout_", "feature_dropout_",
                                  "feature_alpha_dropout_", "rrelu_"])  # fmt: skip
def test_functions_that_draw_in_place(name: str) -> None:
    args = (0.5, True) if "dropout" in name else (0.1, 0.3, True)

    def call(lib: Any, x: Any) -> Any:
        lib.manual_seed(4)
        drawn = x * 1
        assert getattr(lib, name)(drawn, *args) is drawn
        return drawn

    compare(call, MATRIX)


def test_what_a_tensor_is_asked() -> None:
    import torch

    for name in ("is_conj", "is_neg", "is_signed", "is_distributed", "get_device",
                 "cudnn_is_acceptable"):  # fmt: skip
        ours, theirs = getattr(antorcha, name), getattr(torch, name)
        assert ours(antorcha.zeros(2)) == theirs(torch.zeros(2))
    assert antorcha.is_same_size(antorcha.zeros(2), antorcha.ones(2))
    assert antorcha.has_lapack == torch.has_lapack
    leaf = antorcha.zeros(2)
    assert leaf.grad_dtype is antorcha.float32
    assert leaf.volatile is False
    leaf.grad_dtype = antorcha.float32
    with pytest.raises(NotImplementedError, match="grad_dtype"):
        leaf.grad_dtype = antorcha.float64
    with pytest.raises(RuntimeError, match="Categorical"):
        leaf.reinforce(1.0)
    assert leaf.module_load(antorcha.ones(2)).tolist() == [1.0, 1.0]
    with antorcha.autograd.set_multithreading_enabled(False):
        assert antorcha.is_grad_enabled()


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", "int64", "uint8", "bool"])
def test_make_tensor_draws_pytorchs_numbers(dtype: str) -> None:
    import torch

    for options in ({}, {"low": 0, "high": 2}, {"noncontiguous": True}, {"exclude_zero": True}):
        made = []
        for lib in (antorcha, torch):
            lib.manual_seed(2)
            kind = getattr(lib, dtype)
            made.append(lib.testing.make_tensor(3, 4, dtype=kind, device="cpu", **options))
        assert made[0].tolist() == made[1].tolist()
        assert made[0].stride() == made[1].stride()
    with pytest.raises(ValueError, match="must be less than"):
        antorcha.testing.make_tensor(2, dtype=antorcha.float32, device="cpu", low=2, high=1)
    with pytest.warns(FutureWarning, match="assert_close"):
        antorcha.testing.assert_allclose([1.0], [1.0 + 1e-6])


def test_conditions_and_loops_run_at_once() -> None:
    x = antorcha.tensor([1.0, 2.0], requires_grad=True)
    up = antorcha.cond(x.sum() > 2, lambda x: x * 3, lambda x: x - 1, (x,))
    up.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert antorcha.cond(False, lambda: 1, lambda: 2) == 2
    steps, power = antorcha.while_loop(
        lambda k, y: k < 3, lambda k, y: (k + 1, y * 2), (antorcha.tensor(0), antorcha.tensor(1.0))
    )
    assert (steps.item(), power.item()) == (3, 8.0)
    for wrong in (
        lambda: antorcha.cond(x, abs, abs, (x,)), lambda: antorcha.cond(True, 1, abs, (x,)),
        lambda: antorcha.cond(True, abs, abs, x), lambda: antorcha.cond("a", abs, abs, (x,)),
        lambda: antorcha.while_loop(lambda y: y > 0, abs, (x,)),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=r"cond: |while_loop: "):
            wrong()
