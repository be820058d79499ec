"""Recurrent layers beside PyTorch's: initial values, results, gradients, state dicts, errors."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.ops.kinds.record import REGISTRY
from tests.ops.parity import needs_torch

SETTINGS: list[tuple[str, dict[str, Any]]] = [
    (kind, settings)
    for kind in ("RNN", "LSTM", "GRU")
    for settings in (
        {},
        {"num_layers": 2, "bidirectional": True},
        {"batch_first": True, "bias": False},
        {"num_layers": 3, "dropout": 0.4},
        {"nonlinearity": "relu"} if kind == "RNN" else {"bidirectional": True},
        {"proj_size": 2, "num_layers": 2, "bidirectional": True} if kind == "LSTM" else {},
    )
]
LENGTHS = [[5, 3, 3, 1], [4, 4, 4, 4], [2, 5, 1, 3]]


def both(kind: str, settings: dict[str, Any], dtype: str = "float32") -> list[tuple[Any, Any]]:
    """(library, layer) for ours and PyTorch's, made at the same seed."""
    import torch

    made = []
    for lib in (antorcha, torch):
        lib.manual_seed(3)
        made.append((lib, getattr(lib.nn, kind)(3, 4, **settings).to(getattr(lib, dtype))))
    return made


def numbers(value: Any) -> list[np.ndarray]:
    """All numbers of a result, in order."""
    if isinstance(value, (tuple, list)):
        return [array for each in value for array in numbers(each)]
    return [] if value is None else [value.detach().numpy()]


def gradients(layer: Any, inputs: list[Any], result: Any) -> list[np.ndarray]:
    flat: list[Any] = []

    def collect(value: Any) -> None:
        if isinstance(value, (tuple, list)):
            for each in value:
                collect(each)
        elif value is not None and value.requires_grad:
            flat.append(value)

    collect(result)
    sum([(t * t + t).sum() * (k + 1) for k, t in enumerate(flat)]).backward()
    return [t.grad.numpy() for t in (*inputs, *layer.parameters())]


def same(ours: list[np.ndarray], theirs: list[np.ndarray], what: str, rtol: float = 1e-4) -> None:
    assert len(ours) == len(theirs), what
    for a, b in zip(ours, theirs):
        assert a.shape == b.shape, what
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol, err_msg=what)


def states(lib: Any, layer: Any, batch: int | None, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    sizes = [layer.proj_size or layer.hidden_size]
    if layer.mode == "LSTM":
        sizes.append(layer.hidden_size)
    dtype = next(layer.parameters()).dtype
    return [
        lib.tensor(rng.normal(size=(count, *([] if batch is None else [batch]), size)), dtype=dtype)
        .requires_grad_()
        for size in sizes
    ]  # fmt: skip


@needs_torch
@pytest.mark.parametrize(("kind", "settings"), SETTINGS)
def test_sequences(kind: str, settings: dict[str, Any]) -> None:
    pytest.importorskip("torch")
    for dtype, batch, given in itertools.product(("float32", "float64"), (4, 1, None), (0, 1)):
        found = []
        for lib, layer in both(kind, settings, dtype):
            initial = numbers(list(layer.parameters()))
            rng = np.random.default_rng(0)
            shape = [5, 3] if batch is None else [5, batch, 3]
            if layer.batch_first and batch is not None:
                shape = [batch, 5, 3]
            x = lib.tensor(rng.normal(size=shape), dtype=getattr(lib, dtype)).requires_grad_()
            first = states(lib, layer, batch, 1) if given else []
            hx: Any = None if not given else tuple(first) if kind == "LSTM" else first[0]
            lib.manual_seed(7)  # dropout draws
            result = layer(x, hx)
            found.append((initial, numbers(result), gradients(layer, [x, *first], result)))
            keys = list(layer.state_dict())
            found[-1] += (keys, repr(layer))
        for a, b in zip(found[0][:3], found[1][:3]):
            same(a, b, f"{dtype}, batch {batch}, given {given}")
        for a, b in zip(found[0][0], found[1][0]):
            assert (a == b).all()  # drawn bit for bit
        assert found[0][3:] == found[1][3:]


@needs_torch
@pytest.mark.parametrize(("kind", "settings"), SETTINGS)
def test_packed_sequences(kind: str, settings: dict[str, Any]) -> None:
    pytest.importorskip("torch")
    for lengths, given in itertools.product(LENGTHS, (0, 1)):
        found = []
        for lib, layer in both(kind, settings, "float64"):
            rnn = lib.nn.utils.rnn
            rng = np.random.default_rng(0)
            shape = [4, 5, 3] if layer.batch_first else [5, 4, 3]
            x = lib.tensor(rng.normal(size=shape)).requires_grad_()
            ordered = sorted(lengths, reverse=True) == lengths
            packed = rnn.pack_padded_sequence(
                x, lengths, batch_first=layer.batch_first, enforce_sorted=ordered
            )
            first = states(lib, layer, 4, 1) if given else []
            hx: Any = None if not given else tuple(first) if kind == "LSTM" else first[0]
            lib.manual_seed(7)
            result, last = layer(packed, hx)
            padded, ends = rnn.pad_packed_sequence(
                result, batch_first=layer.batch_first, padding_value=-2.0, total_length=6
            )
            assert ends.tolist() == lengths
            values = numbers([*packed, *result, padded, last])
            found.append((values, gradients(layer, [x, *first], (padded, last))))
        for a, b in zip(*found):
            same(a, b, f"{lengths}, given {given}", 1e-9)


@needs_torch
def test_cells() -> None:
    torch = pytest.importorskip("torch")
    for kind, settings in (
        ("RNNCell", {}), ("RNNCell", {"nonlinearity": "relu", "bias": False}), ("LSTMCell", {}),
        ("LSTMCell", {"bias": False}), ("GRUCell", {}), ("GRUCell", {"bias": False}),
    ):  # fmt: skip
        for batch, given in itertools.product((None, 1, 5), (0, 1)):
            found = []
            for lib in (antorcha, torch):
                lib.manual_seed(3)
                cell = getattr(lib.nn, kind)(3, 4, **settings, dtype=lib.float64)
                rng = np.random.default_rng(0)
                head = [] if batch is None else [batch]
                x = lib.tensor(rng.normal(size=[*head, 3])).requires_grad_()
                first = [
                    lib.tensor(rng.normal(size=[*head, 4])).requires_grad_()
                    for _ in range((2 if kind == "LSTMCell" else 1) * given)
                ]
                hx: Any = None if not given else tuple(first) if kind == "LSTMCell" else first[0]
                result = cell(x, hx)
                values = numbers([list(cell.parameters()), result])
                found.append((values, gradients(cell, [x, *first], result), repr(cell)))
            assert found[0][2] == found[1][2]
            for a, b in zip(found[0][:2], found[1][:2]):
                same(a, b, f"{kind} {settings} {batch} {given}", 1e-9)


@needs_torch
def test_packing_beside_pytorch() -> None:
    torch = pytest.importorskip("torch")
    for lengths, first in itertools.product(LENGTHS, (False, True)):
        found = []
        for lib in (antorcha, torch):
            rnn = lib.nn.utils.rnn
            sequences = [lib.arange(10.0 * k, 10.0 * k + n) for k, n in enumerate(lengths)]
            packed = rnn.pack_sequence(sequences, enforce_sorted=False)
            padded, _ = rnn.pad_packed_sequence(packed, batch_first=first)
            again = rnn.unpack_sequence(packed)
            moved = packed.to(lib.float64)
            assert moved.data.dtype is lib.float64
            assert packed.to(lib.float32) is packed
            found.append(numbers([*packed, padded, again, rnn.invert_permutation(packed[2])]))
        same(*found, what=f"{lengths}", rtol=0)


ERRORS: dict[str, Any] = {
    "no features": lambda lib: lib.nn.LSTM(3, 0),
    "no layers": lambda lib: lib.nn.GRU(3, 4, 0),
    "negative projection": lambda lib: lib.nn.LSTM(3, 4, proj_size=-1),
    "large projection": lambda lib: lib.nn.LSTM(3, 4, proj_size=4),
    "projection of a GRU": lambda lib: lib.nn.GRU(3, 4, proj_size=2),
    "dropout": lambda lib: lib.nn.GRU(3, 4, dropout=2),
    "float features": lambda lib: lib.nn.GRU(3, 4.0),
    "nonlinearity": lambda lib: lib.nn.RNN(3, 4, nonlinearity="swish"),
    "cell's nonlinearity": lambda lib: lib.nn.RNNCell(3, 4, nonlinearity="x")(lib.zeros(2, 3)),
    "dims": lambda lib: lib.nn.LSTM(3, 4)(lib.zeros(3)),
    "features": lambda lib: lib.nn.LSTM(3, 4)(lib.zeros(5, 2, 4)),
    "integers": lambda lib: lib.nn.LSTM(3, 4)(lib.zeros(5, 2, 3, dtype=lib.int64)),
    "no time": lambda lib: lib.nn.LSTM(3, 4)(lib.zeros(0, 2, 3)),
    "states": lambda lib: lib.nn.GRU(3, 4)(lib.zeros(5, 2, 3), lib.zeros(1, 3, 4)),
    "cells": lambda lib: lib.nn.LSTM(3, 4)(
        lib.zeros(5, 2, 3), (lib.zeros(1, 2, 4), lib.zeros(1, 2, 5))
    ),
    "states' dims": lambda lib: lib.nn.GRU(3, 4)(lib.zeros(5, 2, 3), lib.zeros(1, 4)),
    "cell's features": lambda lib: lib.nn.GRUCell(3, 4)(lib.zeros(2, 4)),
    "cell's dims": lambda lib: lib.nn.GRUCell(3, 4)(lib.zeros(2, 4, 3)),
    "lengths": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.zeros(3, 2), [3, 0]),
    "order": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.zeros(3, 2), [2, 3]),
    "count": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.zeros(3, 2), [3]),
    "total": lambda lib: lib.nn.utils.rnn.pad_packed_sequence(
        lib.nn.utils.rnn.pack_sequence([lib.zeros(3)]), total_length=2
    ),
}


@needs_torch
@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.filterwarnings("ignore")
def test_errors(name: str) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(Exception) as theirs:
        ERRORS[name](torch)
    with pytest.raises(theirs.type):
        ERRORS[name](antorcha)


def test_a_length_beyond_the_input_is_refused() -> None:
    with pytest.raises(RuntimeError, match="a length is 4, but the input has 3 steps"):
        antorcha.nn.utils.rnn.pack_padded_sequence(antorcha.zeros(3, 2), [4, 1])


def test_gradients_to_order_two() -> None:
    for kind in ("RNN", "LSTM", "GRU"):
        layer = getattr(antorcha.nn, kind)(2, 3, bidirectional=True).double()
        x = antorcha.randn(3, 2, 2, dtype=antorcha.float64, requires_grad=True)
        call = lambda x, layer=layer: layer(x)[0]  # noqa: E731
        assert antorcha.autograd.gradcheck(call, (x,))
        assert antorcha.autograd.gradgradcheck(call, (x,))


def test_a_layer_learns_to_remember() -> None:
    """The last result is the first input, four steps later: only a gradient through time finds
    that."""
    antorcha.manual_seed(0)
    layer, read = antorcha.nn.LSTM(1, 16, batch_first=True), antorcha.nn.Linear(16, 1)
    optimizer = antorcha.optim.Adam([*layer.parameters(), *read.parameters()], lr=0.03)
    x = antorcha.rand(64, 4, 1)
    losses = []
    for _ in range(150):
        loss = ((read(layer(x)[0][:, -1]) - x[:, 0]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0], losses[::20]


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_what_is_replayed_equals_what_was_computed(kind: str, monkeypatch: Any) -> None:
    """From the third call on, noted kernels run in place of the op's Python: with other data, in
    other modes, after a gradient of a gradient, with the same results to the last bit."""
    layer = getattr(antorcha.nn, kind)(3, 4, num_layers=2, bidirectional=True)
    op = REGISTRY[f"{kind.lower()}{'_tanh' * (kind == 'RNN')}_sequence"]
    computed = [0]
    apply = op.apply_fn
    monkeypatch.setattr(op, "apply_fn", lambda args: computed.append(0) or apply(args))

    def run(x: Any, packed: bool, watched: bool) -> list[np.ndarray]:
        x = x.clone().requires_grad_()
        sequences = x
        if packed:
            sequences = antorcha.nn.utils.rnn.pack_padded_sequence(x, [5, 3, 2])
        with antorcha.profiler.profile() if watched else contextlib.nullcontext():
            result, last = layer(sequences)
            layer.zero_grad()
            total = sum([(t * t).sum() for t in (result[0], *last)])
            total.backward()
        return [t.numpy().copy() for t in (x.grad, *[p.grad for p in layer.parameters()])]

    for packed in (False, True):
        for k in range(5):
            x = antorcha.randn(5, 3, 3)
            wanted = run(x, packed, True)
            before = len(computed)
            found = run(x, packed, False)
            for a, b in zip(found, wanted, strict=True):
                assert a.tobytes() == b.tobytes(), (packed, k)
            if k > 2:
                assert len(computed) == before, "the op's Python still runs"
    x = antorcha.randn(5, 3, 3)
    expected = layer(x)[0].detach()
    before = len(computed)
    for mode in (antorcha.no_grad, antorcha.inference_mode):
        with mode():
            result = layer(x)[0]
        assert antorcha.equal(result, expected)
        assert len(computed) == before
    assert layer(x)[0]._version == 0
