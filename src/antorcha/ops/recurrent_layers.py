"""Recurrent layers over layers (``torch.lstm``), and cells (``torch.lstm_cell``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as _Any

from antorcha.errors import ArgumentError, ShapeError
from antorcha.ops.kinds.record import Composite, T, composite
from antorcha.ops.kinds.types import Any, OptTensor, Tensor
from antorcha.runtime.tensor import Tensor as TensorType


# ---------------------------------------------------------------------------- layers over layers
def _direction(
    mode: str, data: _Any, first: tuple[_Any, ...], weights: Sequence[_Any], sizes: tuple[int, ...],
    reverse: bool,
) -> tuple[_Any, tuple[_Any, ...]]:  # fmt: skip
    """One layer in one direction: (results, last states)."""
    w_ih, w_hh, *rest = weights
    biases = rest[:2] if len(rest) >= 2 else (None, None)
    if mode == "gru":
        x = T.linear(data, w_ih, biases[0])
        states: tuple[_Any, ...] = (
            T.gru_sequence(x, first[0], w_hh, biases[1], sizes, reverse)[0],
        )
    else:
        bias = None if biases[0] is None else biases[0] + biases[1]
        x = T.linear(data, w_ih, bias)
        if mode == "lstm":
            projection = rest[-1] if len(rest) % 2 else None
            states = T.lstm_sequence(x, *first, w_hh, projection, sizes, reverse)[:2]
        else:
            states = (getattr(T, f"{mode}_sequence")(x, first[0], w_hh, sizes, reverse),)
    return states[0], tuple([_last_of(each, sizes, reverse) for each in states])


def _last_of(states: _Any, sizes: tuple[int, ...], reverse: bool) -> _Any:
    """Each sequence's last state (in reverse, that of its first element)."""
    if reverse:
        return T.narrow(states, 0, 0, sizes[0])
    if sizes[-1] == sizes[0]:
        return T.narrow(states, 0, (len(sizes) - 1) * sizes[0], sizes[0])
    pieces, start, after = [], sum(sizes), 0
    for n in reversed(sizes):  # the sequences that end here are the step's last rows
        start -= n
        if n > after:
            pieces.append(T.narrow(states, 0, start + after, n - after))
        after = n
    return T.cat(pieces, 0)


def _stacked(
    mode: str, data: _Any, states: tuple[_Any, ...], weights: Sequence[_Any],
    sizes: tuple[int, ...], layers: int, per_direction: int, dropout: float, train: bool,
    bidirectional: bool,
) -> tuple[_Any, ...]:  # fmt: skip
    """Layers over layers: (results of the last one, last states of all directions of all)."""
    directions = 2 if bidirectional else 1
    if len(weights) != layers * directions * per_direction:
        raise ShapeError(
            f"{mode}: {layers} layers of {directions} direction(s) have "
            f"{layers * directions * per_direction} weights, got {len(weights)}"
        )
    last: list[tuple[_Any, ...]] = []
    for layer in range(layers):
        results = []
        for direction in range(directions):
            k = layer * directions + direction
            own = weights[k * per_direction : (k + 1) * per_direction]
            first = tuple([T.select(each, 0, k) for each in states])
            result, ends = _direction(mode, data, first, own, sizes, direction == 1)
            results.append(result)
            last.append(ends)
        data = T.cat(results, 1) if bidirectional else results[0]
        if dropout and train and layer < layers - 1:
            data = T.dropout(data, dropout, True)
    return data, *[T.stack(list(each), 0) for each in zip(*last)]


def _weights_of_one(mode: str, has_biases: bool, count: int, layers: int, directions: int) -> int:
    """How many weights a layer has in a direction: LSTMs with projections have one more."""
    usual = 4 if has_biases else 2
    return usual + 1 if mode == "lstm" and count == layers * directions * (usual + 1) else usual


def _recurrent(mode: str, *args: _Any) -> _Any:
    """PyTorch's two forms: (input, states, ..) and, packed, (data, sizes, states, ..)."""
    packed = isinstance(args[3], (tuple, list))
    if packed:
        data, batch_sizes, hx, weights, biases, layers, dropout, train, both = args
        _tensors(mode, "batch_sizes", [batch_sizes])
        sizes = tuple([int(n) for n in batch_sizes.tolist()])
        batch_first = False
    else:
        data, hx, weights, biases, layers, dropout, train, both, batch_first = args
        if data._layout.ndim != 3:
            raise ShapeError(
                f"{mode}: the input has (time, batch, features), got shape "
                f"{tuple(data._layout.shape)}"
            )
        if batch_first:
            data = T.transpose(data, 0, 1)
        time, batch, features = data._layout.shape
        if time == 0:
            raise ShapeError(f"{mode}: Expected sequence length to be larger than 0 in RNN")
        sizes = (batch,) * time
        data = T.reshape(data, (time * batch, features))
    states = _tensors(mode, "hx", hx if mode == "lstm" else [hx])
    weights = _tensors(mode, "params", weights)
    per = _weights_of_one(mode, biases, len(weights), layers, 2 if both else 1)
    _check_states(mode, states, weights, sizes[0], layers * (2 if both else 1), per)
    result, *last = _stacked(
        mode, data, states, weights, sizes, layers, per, dropout, train, both
    )  # fmt: skip
    if not packed:
        result = T.reshape(result, (len(sizes), sizes[0], result._layout.shape[1]))
        result = T.transpose(result, 0, 1) if batch_first else result
    return result, *last


def _tensors(mode: str, name: str, values: _Any) -> tuple[_Any, ...]:
    """A tuple of tensors, which the values must be."""
    if isinstance(values, (tuple, list)) and values:
        wrong = [each for each in values if not isinstance(each, TensorType)]
        if not wrong:
            return tuple(values)
        values = wrong[0]
    raise ArgumentError(
        f"{mode}(): argument {name!r} must be made of tensors, not {type(values).__name__}"
    )


def _check_states(
    mode: str, states: tuple[_Any, ...], weights: Sequence[_Any], batch: int, count: int, per: int
) -> None:
    """Refuses first states of other shapes than the weights ask for."""
    wanted = 2 if mode == "lstm" else 1
    if len(states) != wanted:
        raise ArgumentError(f"{mode}: expects {wanted} hidden states, got {len(states)}")
    hidden = weights[1]._layout.shape[0] // {"lstm": 4, "gru": 3}.get(mode, 1)
    sizes = [weights[1]._layout.shape[1], hidden]
    for each, size in zip(states, sizes):
        if tuple(each._layout.shape) != (count, batch, size):
            raise ShapeError(
                f"{mode}: Expected hidden size {(count, batch, size)}, got "
                f"{list(each._layout.shape)}"
            )


def _layers(mode: str, what: str) -> Composite:
    """The op of layers over layers of one mode, ``torch.lstm``."""

    def layers(
        input: Tensor, hx: Any, params: Any, has_biases: Any, num_layers: Any, dropout: Any,
        train: Any, bidirectional: Any, batch_first: Any,
    ) -> _Any:  # fmt: skip
        return _recurrent(
            mode, input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
            batch_first,
        )  # fmt: skip

    layers.__doc__ = f"""{what} over sequences: (results, last states).

    Also with the packed sequences' ``batch_sizes`` as second argument, and without ``batch_first``.
    """
    return composite(method=False, out=False, name=mode)(layers)


lstm = _layers("lstm", "Long short-term memory (torch.nn.LSTM)")
gru = _layers("gru", "Gated recurrent units (torch.nn.GRU)")
rnn_tanh = _layers("rnn_tanh", "An Elman network with tanh (torch.nn.RNN)")
rnn_relu = _layers("rnn_relu", "An Elman network with relu (torch.nn.RNN)")


def _weights(make: _Any, gates: int, inputs: int, hidden: int, count: int = 4) -> list[_Any]:
    rows = gates * hidden
    return [make(rows, inputs), make(rows, hidden), make(rows), make(rows)][:count]


@lstm.samples
def _(make):
    weights = [*_weights(make, 4, 4, 2), *_weights(make, 4, 4, 2)]
    yield make(5, 3, 4), (make(2, 3, 2), make(2, 3, 2)), weights, True, 1, 0.0, False, True, False
    states = make(1, 3, 2), make(1, 3, 2)
    yield make(3, 5, 4), states, _weights(make, 4, 4, 2, 2), False, 1, 0.0, False, False, True
    states = make(1, 3, 2), make(1, 4, 2)
    weights = [make(8, 4), make(8, 2)]
    given = (make(5, 3, 4), states, weights, False, 1, 0.0, False, False, False)
    yield given, {}, RuntimeError, "Expected hidden size"


@gru.samples
def _(make):
    weights = [*_weights(make, 3, 2, 2), *_weights(make, 3, 2, 2)]
    yield make(5, 3, 2), make(2, 3, 2), weights, True, 2, 0.0, False, False, False


@rnn_tanh.samples
def _(make):
    weights = _weights(make, 1, 2, 2)
    yield make(5, 3, 2), make(1, 3, 2), weights, True, 1, 0.0, False, False, False


@rnn_relu.samples
def _(make):
    weights = _weights(make, 1, 2, 2, 2)
    yield make(5, 3, 2), make(1, 3, 2), weights, False, 1, 0.0, False, False, False


# ------------------------------------------------------------------------------------------- cells
def _gates_of(
    name: str, input: _Any, h: _Any, w_ih: _Any, w_hh: _Any, b_ih: _Any, b_hh: _Any
) -> tuple[_Any, _Any]:
    for what, each, weight in (("input", input, w_ih), ("hx", h, w_hh)):
        if each._layout.shape[-1] != weight._layout.shape[1]:
            raise ShapeError(
                f"{name}: {what} has {each._layout.shape[-1]} features, its weight "
                f"{tuple(weight._layout.shape)} takes {weight._layout.shape[1]}"
            )
    return T.linear(input, w_ih, b_ih), T.linear(h, w_hh, b_hh)


@composite(method=False, out=False, page=False)
def lstm_cell(
    input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: OptTensor = None,
    b_hh: OptTensor = None,
):  # fmt: skip
    """One step of an LSTM: the new (h, c); see torch.nn.LSTMCell.

    >>> h = c = torch.zeros(1, 1)
    >>> w = torch.ones(4, 1)
    >>> torch.lstm_cell(torch.zeros(1, 1), (h, c), w, w)[0]
    tensor([[0.]])
    """
    h, c = hx
    x, more = _gates_of("lstm_cell", input, h, w_ih, w_hh, b_ih, b_hh)
    return T.lstm_step(*T.chunk(x + more, 4, 1), c)


@composite(method=False, out=False, page=False)
def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: OptTensor = None,
    b_hh: OptTensor = None,
):  # fmt: skip
    """One step of a gated recurrent unit: the new h; see torch.nn.GRUCell.

    >>> w = torch.ones(3, 1)
    >>> torch.gru_cell(torch.zeros(1, 1), torch.zeros(1, 1), w, w)
    tensor([[0.]])
    """
    x, more = _gates_of("gru_cell", input, hx, w_ih, w_hh, b_ih, b_hh)
    return T.gru_step(hx, *T.chunk(x, 3, 1), *T.chunk(more, 3, 1))


def _elman_cell(nonlinearity: str, operands: str, result: str) -> Composite:
    """The op of one step of an Elman network."""
    name = f"rnn_{nonlinearity}_cell"

    def fn(
        input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: OptTensor = None,
        b_hh: OptTensor = None,
    ) -> Tensor:  # fmt: skip
        x, more = _gates_of(name, input, hx, w_ih, w_hh, b_ih, b_hh)
        return getattr(T, nonlinearity)(x + more)

    fn.__doc__ = f"""``{nonlinearity}(w_ih input + b_ih + w_hh hx + b_hh)``; see torch.nn.RNNCell.

    >>> one, zero = torch.ones(1, 1), torch.zeros(1, 1)
    >>> torch.{name}({operands})
    tensor([[{result}]])
    """
    return composite(name=name, method=False, out=False, page=False)(fn)


rnn_tanh_cell = _elman_cell("tanh", "zero, zero, one, one", "0.")
rnn_relu_cell = _elman_cell("relu", "zero, one, one, one", "1.")


@lstm_cell.samples
def _(make):
    yield make(3, 2), (make(3, 4), make(3, 4)), make(16, 2), make(16, 4), make(16), make(16)


@gru_cell.samples
def _(make):
    yield make(3, 2), make(3, 4), make(12, 2), make(12, 4), make(12), make(12)
    yield make(3, 2), make(3, 4), make(12, 2), make(12, 4)


@rnn_tanh_cell.samples
@rnn_relu_cell.samples
def _(make):
    yield make(3, 2), make(3, 4), make(4, 2), make(4, 4), make(4), make(4)
    yield make(3, 2), make(3, 4), make(4, 2), make(4, 4)
    yield (make(3, 1), make(3, 4), make(4, 2), make(4, 4)), {}, RuntimeError, "takes 2"
