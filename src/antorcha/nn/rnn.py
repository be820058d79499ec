"""Recurrent layers: RNN, LSTM and GRU over sequences, and their single steps."""

from __future__ import annotations

import math
from typing import Any

from antorcha.errors import ArgumentError, ShapeError, ValueRangeError, warn
from antorcha.nn import init
from antorcha.nn.module import Module
from antorcha.nn.parameter import add_parameter
from antorcha.nn.utils.packed import PackedSequence
from antorcha.ops.kinds.record import T

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _permuted(tensor: Any, order: Any, dim: int = 1) -> Any:
    return tensor if order is None else T.index_select(tensor, dim, order)


class RNNBase(Module):
    """What recurrent layers share: weights of all layers and directions, and the forms of input.

    Args:
        mode (str): ``'RNN_TANH'``, ``'RNN_RELU'``, ``'LSTM'`` or ``'GRU'``
        input_size (int): features of each element of the sequence
        hidden_size (int): features of the state
        num_layers (int): layers on top of each other. Default: 1
        bias (bool): learn addends? Default: True
        batch_first (bool): ``(N, L, H)`` instead of ``(L, N, H)``. Default: False
        dropout (float): between the layers. Default: 0
        bidirectional (bool): also from the end to the start? Default: False
        proj_size (int): an LSTM's output is projected to so many features. Default: 0

    Shape: as of :class:`RNN`, :class:`LSTM` and :class:`GRU`, which are made of it.
    All weights start uniform in ``(-1/sqrt(hidden_size), 1/sqrt(hidden_size))``.

    >>> list(torch.nn.RNNBase('GRU', 2, 3).state_dict())
    ['weight_ih_l0', 'weight_hh_l0', 'bias_ih_l0', 'bias_hh_l0']
    """

    __constants__ = [  # noqa: RUF012
        "mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout",
        "bidirectional", "proj_size",
    ]  # fmt: skip
    __jit_unused_properties__ = ["all_weights"]  # noqa: RUF012

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check_sizes(input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        _check_settings(mode, hidden_size, num_layers, dropout, proj_size, bias, batch_first)
        self.mode, self.input_size, self.hidden_size = mode, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        self.dropout, self.bidirectional = float(dropout), bidirectional
        self.proj_size = proj_size
        rows, result = _GATES[mode] * hidden_size, proj_size or hidden_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            inputs = input_size if layer == 0 else result * (2 if bidirectional else 1)
            shapes: dict[str, Any] = {"weight_ih": (rows, inputs), "weight_hh": (rows, result)}
            if bias:
                shapes |= {"bias_ih": rows, "bias_hh": rows}
            if proj_size:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for suffix in ("", "_reverse") if bidirectional else ("",):
                names = {f"{name}_l{layer}{suffix}": shape for name, shape in shapes.items()}
                for name, shape in names.items():
                    add_parameter(self, name, shape, device, dtype)
                self._all_weights.append(list(names))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights afresh, uniform in (-1/sqrt(hidden_size), 1/sqrt(hidden_size))."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Does nothing: it puts the weights into one block for cuDNN, which is not used here."""

    @property
    def all_weights(self) -> list[list[Any]]:
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights(self) -> list[Any]:
        return [getattr(self, name) for names in self._all_weights for name in names]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    def __getstate__(self) -> dict[str, Any]:
        """With what PyTorch keeps of a pickled module, and this class computes."""
        return {**self.__dict__, "_flat_weights": self._flat_weights,
                "_flat_weights_names": self._flat_weights_names}  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        computed = ("_flat_weights", "_flat_weights_names", "_flat_weight_refs")
        super().__setstate__({k: v for k, v in state.items() if k not in computed})
        self.__dict__.setdefault("proj_size", 0)

    def extra_repr(self) -> str:
        shown = f"{self.input_size}, {self.hidden_size}"
        usual = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False,
                 "dropout": 0.0, "bidirectional": False}  # fmt: skip
        for name, default in usual.items():
            value = getattr(self, name)
            if value != default:
                shown += f", {name}={value}"
        return shown

    # ------------------------------------------------------------------------------------ checking
    def check_input(self, input: Any, batch_sizes: Any) -> None:
        """Refuses inputs that do not fit the layer."""
        dtype = self._flat_weights[0].dtype
        if input.dtype is not dtype:
            raise ValueRangeError(
                f"{type(self).__name__}: RNN input dtype ({input.dtype}) does not match weight "
                f"dtype ({dtype}). Convert input: input.to({dtype}), or convert model: "
                f"model.to({input.dtype})"
            )
        wanted = 2 if batch_sizes is not None else 3
        if input.dim() != wanted:
            raise ShapeError(f"input must have {wanted} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise ShapeError(
                "input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {input.size(-1)}"
            )

    def get_expected_hidden_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """The shape that the first states must have."""
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0) if self.batch_first else input.size(1)
        count = self.num_layers * (2 if self.bidirectional else 1)
        return count, batch, self.proj_size or self.hidden_size

    def check_hidden_size(
        self, hx: Any, expected_hidden_size: Any, msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Refuses first states of another shape."""
        if tuple(hx.size()) != tuple(expected_hidden_size):
            raise ShapeError(msg.format(tuple(expected_hidden_size), list(hx.size())))

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """Refuses an input and states that do not fit the layer."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """The states with the sequences of the batch in another order."""
        return _permuted(hx, permutation)

    # ------------------------------------------------------------------------------------- running
    def _zero_states(self, input: Any, batch: int) -> Any:
        count = self.num_layers * (2 if self.bidirectional else 1)
        size = self.proj_size or self.hidden_size
        return T.zeros((count, batch, size), dtype=input.dtype, device=input.device)

    def _run(self, *args: Any) -> Any:
        op = {"LSTM": T.lstm, "GRU": T.gru, "RNN_TANH": T.rnn_tanh, "RNN_RELU": T.rnn_relu}
        return op[self.mode](*args)

    def _first(self, input: Any, hx: Any, batch: int, batched: bool, order: Any) -> Any:
        """The first states, with a batch of their own, in the order of the input."""
        if hx is None:
            return self._zero_states(input, batch)
        if hx.dim() != (3 if batched else 2):
            kind = "batched 3-D" if batched else "unbatched 2-D"
            shown = f"For {kind} input, hx should also be {3 if batched else 2}-D but got"
            raise ShapeError(f"{type(self).__name__}: {shown} {hx.dim()}-D tensor")
        return self.permute_hidden(hx if batched else hx.unsqueeze(1), order)

    def _ended(self, hidden: Any, batched: bool, order: Any) -> Any:
        return self.permute_hidden(hidden if batched else hidden.squeeze(1), order)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """(results of the last layer, last states of all layers)."""
        packed = isinstance(input, PackedSequence)
        batched, order, back = True, None, None
        if packed:
            data, batch_sizes, order, back = input
            batch = int(batch_sizes[0])
        else:
            data, batch_sizes = input, None
            if data.dim() not in (2, 3):
                raise ValueRangeError(
                    f"{type(self).__name__}: Expected input to be 2D or 3D, got {data.dim()}D "
                    "instead"
                )
            batched = data.dim() == 3
            if not batched:
                data = data.unsqueeze(0 if self.batch_first else 1)
            batch = data.size(0 if self.batch_first else 1)
        first = self._first(data, hx, batch, batched, order)
        self.check_forward_args(data, first, batch_sizes)
        rest = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
                self.bidirectional)  # fmt: skip
        if packed:
            result, *last = self._run(data, batch_sizes, first, *rest)
        else:
            result, *last = self._run(data, first, *rest, self.batch_first)
        hidden: Any = tuple(last) if len(last) > 1 else last[0]
        if packed:
            return PackedSequence(result, batch_sizes, order, back), self._ended(hidden, True, back)
        if not batched:
            result = result.squeeze(0 if self.batch_first else 1)
        return result, self._ended(hidden, batched, None)


def _check_sizes(**sizes: Any) -> None:
    for name, value in sizes.items():
        if not isinstance(value, int):
            raise ArgumentError(f"{name} should be of type int, got: {type(value).__name__}")
        if value <= 0:
            raise ValueRangeError(f"{name} must be greater than zero")


def _check_settings(
    mode: str, hidden_size: int, num_layers: int, dropout: Any, proj_size: int, bias: Any,
    batch_first: Any,
) -> None:  # fmt: skip
    for name, value in (("bias", bias), ("batch_first", batch_first)):
        if not isinstance(value, bool):
            raise ArgumentError(f"{name} should be of type bool, got: {type(value).__name__}")
    if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
        raise ValueRangeError(
            "dropout should be a number in range [0, 1] representing the probability of an element "
            f"being zeroed, got {dropout!r}"
        )
    if dropout > 0 and num_layers == 1:
        warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout "
            f"expects num_layers greater than 1, but got dropout={dropout} and "
            f"num_layers={num_layers}"
        )
    if proj_size < 0:
        raise ValueRangeError(
            "proj_size should be a positive integer or zero to disable projections"
        )
    if proj_size >= hidden_size:
        raise ValueRangeError("proj_size has to be smaller than hidden_size")
    if mode not in _GATES:
        raise ValueRangeError("Unrecognized RNN mode: " + mode)


_SEQUENCE = """{title}

{formula}

Args:
    input_size (int): features of each element of the input
    hidden_size (int): features of the state
    num_layers (int): layers over layers; each reads the results of the one below. Default: 1
{options}    bias (bool): add biases? Default: True
    batch_first (bool): input and results have ``(batch, time, features)`` instead of
        ``(time, batch, features)``; states do not change. Default: False
    dropout (float): of the results of all layers but the last, while training. Default: 0
    bidirectional (bool): also run from the end to the beginning; the results stand one after
        another in the last dim. Default: False
{projection}
Shape: input ``(L, N, input_size)``, or ``(L, input_size)`` without a batch, or a
:class:`~torch.nn.utils.rnn.PackedSequence`; {states}. Results ``(L, N, D*hidden_size)``, D = 2 if
bidirectional, else 1; the last states have the shape of the first.

All weights start uniform in ``(-1/sqrt(hidden_size), 1/sqrt(hidden_size))``. They are called
``weight_ih_l0``, ``weight_hh_l0``, ``bias_ih_l0``, ``bias_hh_l0``, ``weight_ih_l0_reverse``, ...
{paper}See https://docs.pytorch.org/docs/stable/generated/torch.nn.{name}.html.

>>> layer = torch.nn.{name}(10, 20, num_layers=2)
>>> results, last = layer(torch.zeros(5, 3, 10))
>>> results.shape
torch.Size([5, 3, 20])
"""
_STATES = "the first state ``h0`` ``(D*num_layers, N, hidden_size)``, zeros if it is not given"


class RNN(RNNBase):
    __doc__ = _SEQUENCE.format(
        name="RNN",
        title="An Elman network: the state is fed back through one nonlinearity.",
        formula="``h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh)``, or relu for tanh.",
        options="    nonlinearity (str): ``'tanh'`` or ``'relu'``. Default: ``'tanh'``\n",
        projection="", states=_STATES,
        paper='Elman, "Finding structure in time" (1990).\n',
    )  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueRangeError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            self.nonlinearity = args[3]
            args = (*args[:3], *args[4:])
        else:
            self.nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueRangeError(
                f"Unknown nonlinearity '{self.nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(f"RNN_{self.nonlinearity.upper()}", *args, **kwargs)


class LSTM(RNNBase):
    __doc__ = _SEQUENCE.format(
        name="LSTM",
        title="Long short-term memory: a cell that gates write, keep and show.",
        formula="``i, f, o = sigmoid(W_i* x_t + b_i* + W_h* h_(t-1) + b_h*)``, ``g = tanh(...)`` "
        "likewise;\n``c_t = f*c_(t-1) + i*g``; ``h_t = o*tanh(c_t)``. Rows of the weights: "
        "i, f, g, o.",
        options="",
        projection="    proj_size (int): states are projected to as many features; 0: they are "
        "not. Default: 0\n",
        states="the first states ``(h0, c0)``, each ``(D*num_layers, N, hidden_size)`` (``h0`` "
        "with proj_size\nfeatures where states are projected), zeros if they are not given",
        paper='Hochreiter & Schmidhuber, "Long short-term memory" (1997).\n',
    )  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """The shape that the first cells must have."""
        return *self.get_expected_hidden_size(input, batch_sizes)[:2], self.hidden_size

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """Refuses an input and states that do not fit the layer."""
        self.check_input(input, batch_sizes)
        expected = "Expected hidden[{}] size {{}}, got {{}}"
        sizes = (self.get_expected_hidden_size(input, batch_sizes),
                 self.get_expected_cell_size(input, batch_sizes))  # fmt: skip
        for k, (each, size) in enumerate(zip(hidden, sizes, strict=True)):
            self.check_hidden_size(each, size, expected.format(k))

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """The states with the sequences of the batch in another order."""
        return _permuted(hx[0], permutation), _permuted(hx[1], permutation)

    def _zero_states(self, input: Any, batch: int) -> Any:
        h = super()._zero_states(input, batch)
        if not self.proj_size:
            return h, h
        size = (h.size(0), batch, self.hidden_size)
        return h, T.zeros(size, dtype=h.dtype, device=h.device)

    def _first(self, input: Any, hx: Any, batch: int, batched: bool, order: Any) -> Any:
        if hx is None:
            return self._zero_states(input, batch)
        if not isinstance(hx, (tuple, list)) or len(hx) != 2:
            raise ArgumentError(
                f"LSTM: the states are a tuple (h0, c0), not {type(hx).__name__}; write "
                "lstm(input, (h0, c0))"
            )
        dims = 3 if batched else 2
        if hx[0].dim() != dims or hx[1].dim() != dims:
            raise ShapeError(
                f"For {'batched 3-D' if batched else 'unbatched 2-D'} input, hx and cx should also "
                f"be {dims}-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )
        both = tuple(hx) if batched else (hx[0].unsqueeze(1), hx[1].unsqueeze(1))
        return self.permute_hidden(both, order)

    def _ended(self, hidden: Any, batched: bool, order: Any) -> Any:
        if not batched:
            hidden = hidden[0].squeeze(1), hidden[1].squeeze(1)
        return self.permute_hidden(hidden, order)


class GRU(RNNBase):
    __doc__ = _SEQUENCE.format(
        name="GRU",
        title="Gated recurrent units: a state that gates renew.",
        formula="``r, z = sigmoid(W_i* x_t + b_i* + W_h* h_(t-1) + b_h*)``;\n"
        "``n = tanh(W_in x_t + b_in + r*(W_hn h_(t-1) + b_hn))``;\n"
        "``h_t = (1 - z)*n + z*h_(t-1)``. Rows of the weights: r, z, n.",
        options="", projection="", states=_STATES,
        paper='Cho et al., "Learning phrase representations using RNN encoder-decoder" (2014).\n',
    )  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueRangeError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


# ------------------------------------------------------------------------------------------- cells
class RNNCellBase(Module):
    """What the cells share: weights and biases of the input and of the state.

    Args:
        input_size (int): features of the input
        hidden_size (int): features of the state
        bias (bool): learn addends?
        num_chunks (int): gates: 1 of an RNN, 4 of an LSTM, 3 of a GRU

    Shape: the weights are ``(num_chunks * hidden_size, ...)``.
    They start uniform in ``(-1/sqrt(hidden_size), 1/sqrt(hidden_size))``.
    See https://docs.pytorch.org/docs/stable/generated/torch.nn.RNNCell.html.

    >>> torch.nn.RNNCellBase(2, 3, True, 4).weight_hh.shape
    torch.Size([12, 3])
    """

    __constants__ = ["input_size", "hidden_size", "bias"]  # noqa: RUF012

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        add_parameter(self, "weight_ih", (rows, input_size), device, dtype)
        add_parameter(self, "weight_hh", (rows, hidden_size), device, dtype)
        add_parameter(self, "bias_ih", rows, device, dtype, wanted=bias)
        add_parameter(self, "bias_hh", rows, device, dtype, wanted=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights afresh, uniform in (-1/sqrt(hidden_size), 1/sqrt(hidden_size))."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        shown = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            shown += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            shown += f", nonlinearity={self.nonlinearity}"
        return shown

    def _checked(self, what: str, tensor: Any) -> Any:
        """A tensor with a batch."""
        if tensor.dim() not in (1, 2):
            name = type(self).__name__
            raise ValueRangeError(
                f"{name}: Expected {what} to be 1D or 2D, got {tensor.dim()}D instead"
            )
        return tensor if tensor.dim() == 2 else tensor.unsqueeze(0)

    def _zeros(self, input: Any) -> Any:
        size = (input.size(0), self.hidden_size)
        return T.zeros(size, dtype=input.dtype, device=input.device)

    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _step(self, op: Any, input: Any, hx: Any) -> Any:
        """A step of a cell whose state is one tensor."""
        x = self._checked("input", input)
        h = self._zeros(x) if hx is None else self._checked("hidden", hx)
        result = op(x, h, *self._weights())
        return result if input.dim() == 2 else result.squeeze(0)


_CELL = """{title}

{formula}

Args:
    input_size (int): features of the input
    hidden_size (int): features of the state
    bias (bool): add biases? Default: True
{options}
Shape: input ``(N, input_size)`` or ``(input_size)``, state ``(N, hidden_size)`` or
``(hidden_size)``, zeros if it is not given; the new state has the state's.

All weights start uniform in ``(-1/sqrt(hidden_size), 1/sqrt(hidden_size))``.

>>> cell = torch.nn.{name}(10, 20)
>>> cell(torch.zeros(3, 10)){first}.shape
torch.Size([3, 20])
"""


class RNNCell(RNNCellBase):
    __doc__ = _CELL.format(
        name="RNNCell", title="A step of an Elman network (:class:`RNN`).", first="",
        formula="``h' = tanh(W_ih x + b_ih + W_hh h + b_hh)``, or relu for tanh.",
        options="    nonlinearity (str): ``'tanh'`` or ``'relu'``. Default: ``'tanh'``\n",
    )  # fmt: skip
    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]  # noqa: RUF012

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh",
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The new state."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise ShapeError(f"Unknown nonlinearity: {self.nonlinearity}")
        op = T.rnn_tanh_cell if self.nonlinearity == "tanh" else T.rnn_relu_cell
        return self._step(op, input, hx)


class LSTMCell(RNNCellBase):
    __doc__ = _CELL.format(
        name="LSTMCell", title="A step of long short-term memory (:class:`LSTM`).", first="[0]",
        formula="The new (h, c); the state is a tuple (h, c), too.", options="",
    )  # fmt: skip

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The new (h, c)."""
        x = self._checked("input", input)
        if hx is None:
            zeros = self._zeros(x)
            hx = zeros, zeros
        elif not isinstance(hx, (tuple, list)) or len(hx) != 2:
            raise ArgumentError(
                f"LSTMCell: the state is a tuple (h, c), not {type(hx).__name__}; write "
                "cell(input, (h, c))"
            )
        states = [self._checked(f"hx[{k}]", each) for k, each in enumerate(hx)]
        h, c = T.lstm_cell(x, states, *self._weights())
        return (h, c) if input.dim() == 2 else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    __doc__ = _CELL.format(
        name="GRUCell", title="A step of a gated recurrent unit (:class:`GRU`).", first="",
        formula="The new state.", options="",
    )  # fmt: skip

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The new state."""
        return self._step(T.gru_cell, input, hx)
