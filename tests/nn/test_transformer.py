"""Attention and transformers beside PyTorch's: initial values, results, gradients, errors."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import antorcha
from tests.nn.test_rnn import gradients, numbers, same
from tests.ops.parity import needs_torch

F = antorcha.nn.functional
MASKS = ("none", "bool", "float", "causal", "bool for heads")


def mask_of(lib: Any, kind: str, batch: int, heads: int, length: int, source: int) -> Any:
    rng = np.random.default_rng(5)
    if kind == "none":
        return None
    if kind == "causal":
        return lib.nn.Transformer.generate_square_subsequent_mask(length, dtype=lib.float64)
    shape = (batch * heads, length, source) if "heads" in kind else (length, source)
    if kind == "float":
        return lib.tensor(rng.normal(size=shape))
    hidden = rng.random(shape) < 0.4
    hidden[..., 0] = False  # (where nothing may be looked at, results are nan)
    return lib.tensor(hidden)


def tensor(lib: Any, *shape: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed + sum(shape))
    return lib.tensor(rng.normal(size=shape)).requires_grad_()


def shaped(layout: str, sizes: dict[str, int], length: int, features: int) -> list[int]:
    """The shape with dims in that order; those of no size are not there."""
    sizes = {**sizes, "L": length, "E": features}
    return [sizes[name] for name in layout if name in sizes]


@needs_torch
def test_scaled_dot_product_attention() -> None:
    torch = pytest.importorskip("torch")
    shapes = [((2, 3, 4, 8), (2, 3, 5, 8), (2, 3, 5, 6)), ((4, 8), (5, 8), (5, 8))]
    for q, k, v in shapes:
        for kind, causal, scale in itertools.product(
            ("none", "bool", "float"), (False, True), (None, 0.3)
        ):
            if causal and kind != "none":
                continue
            found = []
            for lib in (antorcha, torch):
                inputs = [tensor(lib, *shape, seed=i) for i, shape in enumerate((q, k, v))]
                mask = mask_of(lib, kind, 1, 1, 4, 5)
                if kind == "bool":
                    mask = mask.logical_not()
                    mask[2] = False  # a query that may look nowhere
                made = lib.nn.functional.scaled_dot_product_attention(
                    *inputs, attn_mask=mask, is_causal=causal, scale=scale
                )
                (made * made + made).sum().backward()
                found.append(numbers([made, *[t.grad for t in inputs]]))
            same(*found, what=f"{q} {kind} {causal} {scale}", rtol=1e-9)
    for lib in (antorcha, torch):
        grouped = lib.nn.functional.scaled_dot_product_attention(
            tensor(lib, 2, 6, 4, 8), tensor(lib, 2, 2, 4, 8), tensor(lib, 2, 3, 4, 8),
            enable_gqa=True,
        )  # fmt: skip
        assert tuple(grouped.shape) == (2, 6, 4, 8)


def test_a_query_that_may_look_nowhere_finds_zeros() -> None:
    q = tensor(antorcha, 3, 4)
    hidden = antorcha.zeros(3, 3, dtype=antorcha.bool)
    for mask in (hidden, antorcha.full((3, 3), -antorcha.inf, dtype=antorcha.float64)):
        found = F.scaled_dot_product_attention(q, q, q, attn_mask=mask)
        assert (found == 0).all()
        found.sum().backward()
        assert (q.grad == 0).all()


@needs_torch
@pytest.mark.parametrize(
    "options",
    [
        {}, {"batch_first": True}, {"bias": False}, {"add_bias_kv": True, "add_zero_attn": True},
        {"kdim": 5, "vdim": 3, "batch_first": True},
    ],
)  # fmt: skip
def test_multihead_attention(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    batch, length, source = 2, 4, 5
    for kind, padded, weights, own, batched in itertools.product(
        MASKS, (False, True), (True, False), (True, False), (True, False)
    ):
        if own and "kdim" in options:
            continue
        s = length if own or kind == "causal" else source
        found = []
        for lib in (antorcha, torch):
            lib.manual_seed(1)
            layer = lib.nn.MultiheadAttention(8, 2, **options, dtype=lib.float64)
            layout = "NLE" if options.get("batch_first") else "LNE"
            sizes = {"N": batch} if batched else {}
            query = tensor(lib, *shaped(layout, sizes, length, 8))
            key = (
                query
                if own
                else tensor(lib, *shaped(layout, sizes, s, options.get("kdim", 8)), seed=1)
            )
            value = (
                query
                if own
                else tensor(lib, *shaped(layout, sizes, s, options.get("vdim", 8)), seed=2)
            )
            padding = None
            if padded:
                rows = [[False] * (s - 2) + [True] * 2, [False] * s]
                padding = lib.tensor(rows if batched else rows[0])
            mask = mask_of(lib, kind, batch if batched else 1, 2, length, s)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of masks of two kinds, in PyTorch
                result = layer(
                    query, key, value, key_padding_mask=padding, attn_mask=mask,
                    need_weights=weights, average_attn_weights=not padded,
                    is_causal=kind == "causal",
                )  # fmt: skip
            inputs = [query] if own else [query, key, value]
            initial = numbers(list(layer.parameters()))
            keys = list(layer.state_dict())
            found.append((initial, numbers(result), gradients(layer, inputs, result), keys))
        what = f"{kind}, padded {padded}, weights {weights}, own {own}, batched {batched}"
        for a, b in zip(found[0][0], found[1][0]):
            assert (a == b).all(), what
        same(found[0][1], found[1][1], what, 1e-9)
        same(found[0][2], found[1][2], what, 1e-9)
        assert found[0][3] == found[1][3]


@needs_torch
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_transformer(norm_first: bool, batch_first: bool) -> None:
    torch = pytest.importorskip("torch")
    for activation, bias, training in itertools.product(
        ("relu", "gelu"), (True, False), (True, False)
    ):
        found = []
        for lib in (antorcha, torch):
            lib.manual_seed(2)
            model = lib.nn.Transformer(
                8, 2, 2, 2, 16, dropout=0.2, activation=activation, batch_first=batch_first,
                norm_first=norm_first, bias=bias, dtype=lib.float64,
            )  # fmt: skip
            model.train(training)
            shape = lambda n: (3, n, 8) if batch_first else (n, 3, 8)  # noqa: E731
            src, tgt = tensor(lib, *shape(5)), tensor(lib, *shape(4), seed=1)
            padding = lib.tensor([[False] * 5, [False] * 3 + [True] * 2, [False] * 4 + [True]])
            causal = model.generate_square_subsequent_mask(4, dtype=lib.float64)
            lib.manual_seed(3)
            result = model(
                src, tgt, tgt_mask=causal, src_key_padding_mask=padding,
                memory_key_padding_mask=padding,
            )  # fmt: skip
            values = numbers([list(model.parameters()), result])
            text = repr(model), list(model.state_dict())
            found.append((values, gradients(model, [src, tgt], result), text))
        what = f"{activation}, bias {bias}, training {training}"
        same(found[0][0], found[1][0], what, 1e-9)
        same(found[0][1], found[1][1], what, 1e-8)
        assert found[0][2] == found[1][2]


@needs_torch
def test_padding_in_evaluation() -> None:
    """Results at padded places are zeros where PyTorch leaves them out."""
    torch = pytest.importorskip("torch")
    rows = {"at the end": [[0, 0, 0, 1], [0, 0, 0, 0]], "between": [[0, 1, 0, 0], [0, 0, 0, 1]]}
    for name, nested, heads in itertools.product(rows, (True, False), (1, 2)):
        found = []
        for lib in (antorcha, torch):
            lib.manual_seed(2)
            layer = lib.nn.TransformerEncoderLayer(8, heads, 16, batch_first=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = lib.nn.TransformerEncoder(layer, 2, enable_nested_tensor=nested).eval()
            x = tensor(lib, 2, 4, 8).detach().float()
            with lib.no_grad():
                found.append(numbers(model(x, src_key_padding_mask=lib.tensor(rows[name]).bool())))
        same(*found, what=f"{name}, {nested}, {heads}", rtol=1e-5)


ERRORS: dict[str, Any] = {
    "heads": lambda lib: lib.nn.MultiheadAttention(8, 3),
    "no heads": lambda lib: lib.nn.MultiheadAttention(8, 0),
    "activation": lambda lib: lib.nn.TransformerEncoderLayer(8, 2, activation="tanh"),
    "features": lambda lib: attend(lib, (4, 2, 6), (5, 2, 6)),
    "values": lambda lib: attend(lib, (4, 2, 8), (5, 2, 8), value=(4, 2, 8)),
    "dims": lambda lib: attend(lib, (4, 2, 8), (5, 8)),
    "mask": lambda lib: attend(lib, (4, 2, 8), (5, 2, 8), mask=(5, 4)),
    "mask of heads": lambda lib: attend(lib, (4, 2, 8), (5, 2, 8), mask=(2, 4, 5)),
    "mask's dims": lambda lib: attend(lib, (4, 2, 8), (5, 2, 8), mask=(5,)),
    "padding": lambda lib: attend(lib, (4, 2, 8), (5, 2, 8), padding=(2, 4)),
    "padding's dims": lambda lib: attend(lib, (4, 2, 8), (5, 2, 8), padding=(5,)),
    "batch": lambda lib: lib.nn.Transformer(8, 2, 1, 1, 8)(lib.ones(4, 3, 8), lib.ones(4, 2, 8)),
    "model": lambda lib: lib.nn.Transformer(8, 2, 1, 1, 8)(lib.ones(4, 3, 6), lib.ones(4, 3, 6)),
}


def attend(
    lib: Any, query: Any, key: Any, value: Any = None, mask: Any = None, padding: Any = None
) -> Any:
    return lib.nn.MultiheadAttention(8, 2)(
        lib.ones(query), lib.ones(key), lib.ones(value or key),
        attn_mask=None if mask is None else lib.zeros(mask, dtype=lib.bool),
        key_padding_mask=None if padding is None else lib.zeros(padding, dtype=lib.bool),
    )  # fmt: skip


@needs_torch
@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.filterwarnings("ignore")
def test_errors(name: str) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(Exception) as theirs:
        ERRORS[name](torch)
    with pytest.raises(theirs.type):
        ERRORS[name](antorcha)
