"""Recurrent networks: one op runs a layer over a whole sequence, with one gradient of its own.

A step is a product with the recurrent weight and one pointwise kernel; the weights' gradients are
one product over all steps at the end. What is run for sequences that lie alike is noted once, and
then replayed without this Python (see ``opaque`` and ``replay``).

Sequences lie *packed*: the rows of all steps one after another, step t having ``sizes[t]`` of them
(a sequence that has ended has none). Sequences of one length are packed with equal sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as _Any
from typing import NamedTuple

from antorcha.lang import expr as E
from antorcha.ops.kinds.custom_vjp import custom_vjp
from antorcha.ops.kinds.pointwise import PointwiseOp, pointwise
from antorcha.ops.kinds.record import REGISTRY, Op, T
from antorcha.ops.kinds.samples import of_shapes
from antorcha.ops.kinds.types import Bool, Ints, OptTensor, Tensor
from antorcha.runtime.tensor import Tensor as TensorType


# ------------------------------------------------------------------------------------- the steps
@pointwise("floating", method=False, function=False, out=False)
def lstm_step(i: Tensor, f: Tensor, g: Tensor, o: Tensor, c: Tensor):
    """The state (h, c) after a step, from the gates before their nonlinearities."""
    return _lstm(i, f, g, o, c)[:2]


@pointwise("floating", method=False, function=False, out=False)
def lstm_step_kept(i: Tensor, f: Tensor, g: Tensor, o: Tensor, c: Tensor):
    """As lstm_step, and then the gates (i, f, g, o), which the step's gradient is made of."""
    return _lstm(i, f, g, o, c)


def _lstm(i: _Any, f: _Any, g: _Any, o: _Any, c: _Any) -> tuple[_Any, ...]:
    i, f, g, o = E.sigmoid(i), E.sigmoid(f), E.tanh(g), E.sigmoid(o)
    c = f * c + i * g
    return o * E.tanh(c), c, i, f, g, o


@pointwise("floating", method=False, function=False, out=False)
def lstm_step_backward(
    i: Tensor, f: Tensor, g: Tensor, o: Tensor, c: Tensor, dh: Tensor, dc: Tensor
):
    """The gradients of a step's operands, by the gates that it gave and the cell before it."""
    bent = E.tanh(f * c + i * g)
    dc = dc + dh * o * (1 - bent * bent)
    return (
        dc * g * (i * (1 - i)), dc * c * (f * (1 - f)), dc * i * (1 - g * g),
        dh * bent * (o * (1 - o)), dc * f,
    )  # fmt: skip


def _slopes(gates: _Any) -> _Any:
    """The derivatives of an LSTM's gates, by what they are after their nonlinearities."""
    i, f, g, o = _parts(gates, 4)
    return T.cat([i * (1 - i), f * (1 - f), 1 - g * g, o * (1 - o)], 1)


@pointwise("floating", method=False, function=False, out=False)
def gru_step(
    h: Tensor, xr: Tensor, xz: Tensor, xn: Tensor, hr: Tensor, hz: Tensor, hn: Tensor
):  # fmt: skip
    """The state after a step, from the one before, the input's and the state's parts of the gates.
    (The result lies as the state before.)"""
    reset, update = E.sigmoid(xr + hr), E.sigmoid(xz + hz)
    new = E.tanh(xn + reset * hn)
    return (h - new) * update + new


@pointwise("floating", method=False, function=False, out=False)
def gru_step_backward(
    h: Tensor, xr: Tensor, xz: Tensor, xn: Tensor, hr: Tensor, hz: Tensor, hn: Tensor, dh: Tensor
):  # fmt: skip
    """The gradients of gru_step's operands, the state's last."""
    operands = (h, xr, xz, xn, hr, hz, hn)
    return E.vjp((gru_step.fn(*operands),), (dh,), (*operands[1:], h))


@pointwise("floating", method=False, function=False, out=False, samples=of_shapes((2, 3), (2, 3)))
def rnn_tanh_step_backward(h: Tensor, dh: Tensor):
    """The gradient of tanh, by its result."""
    return dh * (1 - h * h)


@pointwise("floating", method=False, function=False, out=False, samples=of_shapes((2, 3), (2, 3)))
def rnn_relu_step_backward(h: Tensor, dh: Tensor):
    """The gradient of relu, by its result."""
    return E.where(h > 0, dh, 0)


@lstm_step.samples
@lstm_step_kept.samples
def _(make):
    yield tuple(make(2, 3) for _ in range(5))


@lstm_step_backward.samples
@gru_step.samples
def _(make):
    yield tuple(make(2, 3) for _ in range(7))


@gru_step_backward.samples
def _(make):
    yield tuple(make(2, 3) for _ in range(8))


# --------------------------------------------------------------------------------- packed sequences
class StepRows(NamedTuple):
    """The rows of one step: where they begin, and how many there are."""

    start: int
    rows: int

    def of(self, t: _Any) -> _Any:
        return T.narrow(t, 0, self.start, self.rows)


def steps_of(sizes: Sequence[int], reverse: bool) -> list[StepRows]:
    """The steps in the order in which they are run."""
    found, start = [], 0
    for n in sizes:
        found.append(StepRows(start, n))
        start += n
    return found[::-1] if reverse else found


def carried(before: _Any, first: _Any, rows: int) -> _Any:
    """The state that a step begins with: rows of the step before (None: there is none), and first
    states of the sequences that begin here."""
    if before is None:
        return T.narrow(first, 0, 0, rows)
    have = before._layout.shape[0]
    if rows <= have:
        return T.narrow(before, 0, 0, rows) if rows < have else before
    return T.cat([before, T.narrow(first, 0, have, rows - have)], 0)


class StateGradient:
    """The gradient of a state on its way back through the steps."""

    def __init__(self, first: _Any) -> None:
        self.first = first
        self.now: _Any = None
        self.begun: list[_Any] = []

    def at(self, step: StepRows, more: _Any) -> _Any:
        """The gradient of a step's result: what came back, and ``more`` (of all steps, or None)."""
        now, rows = self.now, step.rows
        layout = self.first._layout
        if now is not None and now._layout.shape[0] < rows:
            rest = rows - now._layout.shape[0]
            now = T.cat(
                [now, T.zeros((rest, layout.shape[1]), dtype=layout.dtype, device=layout.device)], 0
            )
        if more is not None:
            own = step.of(more)
            now = own if now is None else now + own
        if now is None:
            now = T.zeros((rows, layout.shape[1]), dtype=layout.dtype, device=layout.device)
        return now

    def back(self, gradient: _Any, rows_before: int) -> None:
        """Goes on to the step before, which has so many rows (0: there is none)."""
        rows = gradient._layout.shape[0]
        if rows > rows_before:  # those sequences begin here
            self.begun.append(T.narrow(gradient, 0, rows_before, rows - rows_before))
            gradient = T.narrow(gradient, 0, 0, rows_before) if rows_before else None
        self.now = gradient

    def of_first(self) -> _Any:
        """The gradient of the first states."""
        return self.begun[0] if len(self.begun) == 1 else T.cat(self.begun[::-1], 0)


def _in_time(steps: list[StepRows], values: list[_Any]) -> _Any:
    """The rows of all steps, given in the order in which the steps were run."""
    if len(values) == 1:
        return values[0]
    return T.cat(values if steps[0].start == 0 else values[::-1], 0)


def _like(t: _Any, columns: int) -> _Any:
    layout = t._layout
    return T.empty((layout.shape[0], columns), dtype=layout.dtype, device=layout.device)


def _turned(w: _Any, steps: list[StepRows]) -> _Any:
    """A weight's transpose, for a product at each step: many small products are quicker where it
    lies in memory as it is read."""
    return T.clone(T.t(w), memory_format="contiguous") if len(steps) > 4 else T.t(w)


def _parts(t: _Any, count: int) -> _Any:
    """The gates' columns."""
    return T.split(t, t._layout.shape[1] // count, 1)


def _states_before(steps: list[StepRows], states: _Any, first: _Any) -> list[_Any]:
    """The state with which each step began."""
    found: list[_Any] = []
    for k, step in enumerate(steps):
        found.append(carried(steps[k - 1].of(states) if k else None, first, step.rows))
    return found


class GateGradients:
    """The gradients of one or two tensors of gates, of all steps: written into one tensor where
    nothing is recorded, else put together from the steps' own.

    ``parts`` is the number of gates in each tensor, ``rest`` of the op's further results.
    """

    def __init__(
        self, op: PointwiseOp, gates: Sequence[_Any], parts: int, rest: int, steps: list[StepRows],
        create: bool,
    ) -> None:  # fmt: skip
        self.op, self.parts, self.rest, self.steps, self.create = op, parts, rest, steps, create
        self.whole = [] if create else [T.empty_like(each) for each in gates]
        self.own: list[list[_Any]] = [[] for _ in gates]

    def put(
        self, step: StepRows, operands: Sequence[_Any], more: Sequence[_Any]
    ) -> tuple[list[_Any], Sequence[_Any]]:
        """Runs the op for a step: the gates' gradients, to which there may be ``more`` (of all
        steps), and the op's further results."""
        parts = self.parts
        if self.create:
            result = self.op(*operands)
            result = result if isinstance(result, tuple) else (result,)
            count = len(result) - self.rest
            gates = [T.cat(list(result[k : k + parts]), 1) for k in range(0, count, parts)]
            gates = [each if m is None else each + step.of(m) for each, m in zip(gates, more)]
            for own, each in zip(self.own, gates):
                own.append(each)
            return gates, result[count:]
        gates = [step.of(each) for each in self.whole]
        rest = [T.empty_like(operands[-1]) for _ in range(self.rest)]
        self.op.into((*[p for each in gates for p in _parts(each, parts)], *rest), operands)
        for each, m in zip(gates, more):
            if m is not None:
                T.add_(each, step.of(m))
        return gates, rest

    def all(self) -> list[_Any]:
        """The gradients of all steps."""
        return self.whole or [_in_time(self.steps, own[::-1]) for own in self.own]


def _add(a: _Any, step: StepRows, more: _Any) -> _Any:
    return a if more is None else a + step.of(more)


def _of_examples(batch: _Any, run: _Any, *values: _Any) -> _Any:
    """All examples' sequences at once, where they have the weights in common: a step has the rows
    of each sequence's examples one after another."""
    *tensors, sizes, reverse = values
    first = run.signature.names.index("w_hh")
    if any([batch.has(each) for each in tensors[first:]]):
        return batch.one_by_one(run, values)
    together = [T.flatten(T.movedim(batch.whole(t), 0, 1), 0, 1) for t in tensors[:first]]
    rows = tuple([n * batch.size for n in sizes])
    result = run(*together, *tensors[first:], rows, reverse)

    def apart(t: _Any) -> _Any:
        count, *rest = t._layout.shape
        return T.movedim(T.reshape(t, (count // batch.size, batch.size, *rest)), 1, 0)

    return batch.each(result, apart)


# ------------------------------------------------------------------------------------------- LSTM
@custom_vjp(method=False)
def lstm_sequence(
    x: Tensor, h0: Tensor, c0: Tensor, w_hh: Tensor, w_hr: OptTensor, sizes: Ints, reverse: Bool
):
    """One layer in one direction: (results, cells, gates, results before their projection).

    ``x`` has the input's part of the gates before their nonlinearities, (rows, 4 * hidden).
    """
    steps = steps_of(sizes, reverse)
    hidden = w_hh._layout.shape[0] // 4
    gates, w = T.clone(x, memory_format="contiguous"), _turned(w_hh, steps)
    raw, cells = _like(x, hidden), _like(x, hidden)
    results = raw if w_hr is None else _like(x, w_hr._layout.shape[0])
    h = c = None
    for step in steps:
        h, c = carried(h, h0, step.rows), carried(c, c0, step.rows)
        rows = step.of(gates)
        T.addmm_(rows, h, w)
        outs, parts = (step.of(raw), step.of(cells)), _parts(rows, 4)
        lstm_step_kept.into((*outs, *parts), (*parts, c))
        h, c = outs
        if w_hr is not None:
            h = T.copy_(step.of(results), T.matmul(h, T.t(w_hr)))
    return results, cells, gates, T.empty_like(T.narrow(raw, 0, 0, 0)) if w_hr is None else raw


@lstm_sequence.derivative
def _(g, h0, c0, w_hh, w_hr, sizes, reverse, out0, out1, out2, out3, create, needs):
    steps = steps_of(sizes, reverse)
    before = _states_before(steps, out1, c0)
    dh, dc = StateGradient(h0), StateGradient(c0)
    gates = GateGradients(lstm_step_backward, (out2,), 4, 1, steps, create)
    of_gates = None if g[2] is None else g[2] * _slopes(out2)
    projected: list[_Any] = []
    for k in range(len(steps) - 1, -1, -1):
        step, rows_before = steps[k], steps[k - 1].rows if k else 0
        gh, gc = dh.at(step, g[0]), dc.at(step, g[1])
        if w_hr is not None:
            projected.append(gh)
            gh = _add(T.matmul(gh, w_hr), step, g[3])
        operands = (*_parts(step.of(out2), 4), before[k], gh, gc)
        (result,), (c_gradient,) = gates.put(step, operands, (of_gates,))
        dh.back(T.matmul(result, w_hh), rows_before)
        dc.back(c_gradient, rows_before)
    (dx,) = gates.all()
    dw = dr = None
    if needs[3]:
        dw = T.matmul(T.t(dx), _in_time(steps, _states_before(steps, out0, h0)))
    if w_hr is not None and needs[4]:
        dr = T.matmul(T.t(_in_time(steps, projected[::-1])), out3)
    return dx, dh.of_first(), dc.of_first(), dw, dr


# -------------------------------------------------------------------------------------------- GRU
@custom_vjp(method=False)
def gru_sequence(
    x: Tensor, h0: Tensor, w_hh: Tensor, b_hh: OptTensor, sizes: Ints, reverse: Bool
):  # fmt: skip
    """One layer in one direction: (results, the state's part of the gates).

    ``x`` has the input's part, with its bias, (rows, 3 * hidden).
    """
    steps = steps_of(sizes, reverse)
    w = _turned(w_hh, steps)
    results, gates = _like(x, w_hh._layout.shape[1]), T.empty_like(x, memory_format="contiguous")
    h = None
    for step in steps:
        h = carried(h, h0, step.rows)
        rows = step.of(gates)
        T.copy_(rows, T.matmul(h, w) if b_hh is None else T.addmm(b_hh, h, w))
        out = step.of(results)
        gru_step.into((out,), (h, *_parts(step.of(x), 3), *_parts(rows, 3)))
        h = out
    return results, gates


@gru_sequence.derivative
def _(g, x, h0, w_hh, b_hh_layout, sizes, reverse, out0, out1, create, needs):
    steps = steps_of(sizes, reverse)
    before = _states_before(steps, out0, h0)
    dh = StateGradient(h0)
    gates = GateGradients(gru_step_backward, (x, out1), 3, 1, steps, create)
    for k in range(len(steps) - 1, -1, -1):
        step = steps[k]
        operands = (
            before[k], *_parts(step.of(x), 3), *_parts(step.of(out1), 3), dh.at(step, g[0]),
        )  # fmt: skip
        (_, result), (own,) = gates.put(step, operands, (None, g[1]))
        dh.back(own + T.matmul(result, w_hh), steps[k - 1].rows if k else 0)
    dx, dgates = gates.all()
    dw = T.matmul(T.t(dgates), _in_time(steps, before)) if needs[2] else None
    return dx, dh.of_first(), dw, None if b_hh_layout is None else T.sum(dgates, 0)


# -------------------------------------------------------------------------------------------- RNN
def _elman(nonlinearity: str, backward: PointwiseOp) -> Op:
    """The op of a layer of an Elman network."""

    def rnn_sequence(x: Tensor, h0: Tensor, w_hh: Tensor, sizes: Ints, reverse: Bool) -> Tensor:
        step_op: _Any = REGISTRY[nonlinearity]
        steps = steps_of(sizes, reverse)
        w, results = _turned(w_hh, steps), T.clone(x, memory_format="contiguous")
        h = None
        for step in steps:
            h = carried(h, h0, step.rows)
            rows = step.of(results)
            T.addmm_(rows, h, w)
            step_op.into((rows,), (rows,))
            h = rows
        return results

    def derivative(
        g: TensorType, h0: TensorType, w_hh: TensorType, sizes: Ints, reverse: bool,
        out0: TensorType, create: bool, needs: tuple[bool, ...],
    ) -> tuple[OptTensor, ...]:  # fmt: skip
        steps = steps_of(sizes, reverse)
        dh = StateGradient(h0)
        gates = GateGradients(backward, (out0,), 1, 0, steps, create)
        for k in range(len(steps) - 1, -1, -1):
            step = steps[k]
            (result,), _ = gates.put(step, (step.of(out0), dh.at(step, g)), (None,))
            dh.back(T.matmul(result, w_hh), steps[k - 1].rows if k else 0)
        (dx,) = gates.all()
        dw = T.matmul(T.t(dx), _in_time(steps, _states_before(steps, out0, h0)))
        return dx, dh.of_first(), dw if needs[2] else None

    rnn_sequence.__doc__ = f"""One layer in one direction of an Elman network with {nonlinearity}.

    ``x`` has the input's part, with both biases, (rows, hidden).
    """
    result = custom_vjp(method=False, name=f"rnn_{nonlinearity}_sequence")(rnn_sequence)
    result.derivative(derivative)
    return result


rnn_tanh_sequence = _elman("tanh", rnn_tanh_step_backward)
rnn_relu_sequence = _elman("relu", rnn_relu_step_backward)


for _each in (lstm_sequence, gru_sequence, rnn_tanh_sequence, rnn_relu_sequence):
    _each.batches(_of_examples)


@lstm_sequence.samples
def _(make):
    yield make(6, 8), make(3, 2), make(3, 2), make(8, 2), None, (3, 2, 1), False
    yield make(6, 8), make(3, 2), make(3, 2), make(8, 2), None, (3, 2, 1), True
    yield make(4, 12), make(2, 2), make(2, 3), make(12, 2), make(2, 3), (2, 2), False


@gru_sequence.samples
def _(make):
    yield make(6, 6), make(3, 2), make(6, 2), make(6), (3, 2, 1), False
    yield make(6, 6), make(3, 2), make(6, 2), None, (3, 2, 1), True


@rnn_tanh_sequence.samples
def _(make):
    yield make(6, 2), make(3, 2), make(2, 2), (3, 2, 1), False
    yield make(6, 2), make(3, 2), make(2, 2), (3, 2, 1), True


@rnn_relu_sequence.samples
def _(make):
    yield make(6, 2), make(3, 2), make(2, 2), (3, 3), False
