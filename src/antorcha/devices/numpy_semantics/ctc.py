"""Connectionist temporal classification with NumPy: a time step of all samples and states at once.

A target of S labels is written with blanks around each label: 2S + 1 *states*. ``alpha[t, n, s]``
is the log probability of every way to read inputs 0 .. t that ends in state s; ``beta`` of every
way to read the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from antorcha.lang.layer_kernels import Ctc
from antorcha.runtime.memory.layout import Layout

Array = np.ndarray[Any, Any]


class _States:
    """Each sample's labels with blanks between, and which states may be reached from where."""

    def __init__(self, labels: Array, target_lengths: Array, blank: int) -> None:
        n, longest = labels.shape
        self.labels = np.full((n, 2 * longest + 1), blank, np.int64)
        self.labels[:, 1::2] = labels
        place = np.arange(2 * longest + 1)
        self.inside = place <= 2 * target_lengths[:, None]
        self.labels[~self.inside] = blank
        self.skips = np.zeros(self.labels.shape, np.bool_)  # from two states before
        self.skips[:, 2:] = self.labels[:, 2:] != self.labels[:, :-2]
        self.last = 2 * target_lengths

    def emitted(self, log_probs: Array) -> Array:
        """The log probability of each state's label: (T, N, states)."""
        found = np.take_along_axis(log_probs, self.labels[None], 2)
        return np.where(self.inside, found, -np.inf).astype(log_probs.dtype)


def _moved(a: Array, by: int) -> Array:
    """``a`` moved along the states; minus infinity comes in."""
    result = np.full_like(a, -np.inf)
    if by > 0:
        result[:, by:] = a[:, :-by]
    else:
        result[:, :by] = a[:, -by:]
    return result


def _alpha(emitted: Array, states: _States) -> Array:
    alpha = np.full_like(emitted, -np.inf)
    for t in range(len(emitted)):
        if t == 0:
            alpha[0, :, :2] = emitted[0, :, :2]
            continue
        old = alpha[t - 1]
        ways = np.logaddexp(old, _moved(old, 1))
        if old.shape[1] > 2:
            ways = np.logaddexp(ways, np.where(states.skips, _moved(old, 2), -np.inf))
        alpha[t] = ways + emitted[t]
    return alpha


def _beta(emitted: Array, states: _States, input_lengths: Array) -> Array:
    beta = np.full_like(emitted, -np.inf)
    place = np.arange(emitted.shape[2])
    ends = (place == states.last[:, None]) | (place == states.last[:, None] - 1)
    may_skip = np.zeros_like(states.skips)
    may_skip[:, :-2] = states.skips[:, 2:]
    for t in reversed(range(len(emitted))):
        here = np.where(ends & (input_lengths == t + 1)[:, None], emitted[t], -np.inf)
        if t + 1 < len(emitted):
            new = beta[t + 1]
            ways = np.logaddexp(new, _moved(new, -1))
            if new.shape[1] > 2:
                ways = np.logaddexp(ways, np.where(may_skip, _moved(new, -2), -np.inf))
            here = np.where((t + 1 < input_lengths)[:, None], ways + emitted[t], here)
        beta[t] = here
    return beta


def _states_of(
    what: Ctc, lp: Array, targets: Array, input_lengths: Array, target_lengths: Array
) -> _States:
    """The states, of arguments whose values are checked."""
    steps, _, classes = lp.shape
    for name, lengths in (("input", input_lengths), ("target", target_lengths)):
        if lengths.size and lengths.min() < 0:
            raise what.refuse(f"negative {name}", int(lengths.min()))
    if input_lengths.size and input_lengths.max() > steps:
        raise what.refuse("long input", int(input_lengths.max()))
    longest = int(target_lengths.max()) if target_lengths.size else 0
    labels = np.zeros((len(target_lengths), longest), np.int64)
    if targets.ndim == 1:
        if target_lengths.sum() > len(targets):
            raise what.refuse("few labels", int(target_lengths.sum()))
        labels[np.arange(longest) < target_lengths[:, None]] = targets[: target_lengths.sum()]
    else:
        if longest > targets.shape[1]:
            raise what.refuse("long target", longest)
        labels[:] = targets[:, :longest]
        labels[np.arange(longest) >= target_lengths[:, None]] = 0
    wrong = labels[(labels < 0) | (labels >= classes)]
    if wrong.size:
        raise what.refuse("label", int(wrong[0]))
    return _States(labels, target_lengths, what.blank)


def compute_ctc(what: Ctc, outs: Sequence[Layout]) -> Callable[[list[Any]], list[Array]]:
    def compute(values: list[Any]) -> list[Array]:
        lp, labels, ins, targets = values[-4:]
        states = _states_of(what, lp, labels, ins, targets)
        with np.errstate(all="ignore"):
            if what.gradient:
                return [_gradient(what, states, *values)]
            nothing = np.where(targets == 0, 0.0, np.inf)
            if not lp.shape[0] or not lp.shape[1]:
                return [nothing.astype(lp.dtype)]
            alpha = _alpha(states.emitted(lp), states)
            return [_losses(alpha, states, ins, nothing).astype(lp.dtype)]

    return compute


def _losses(alpha: Array, states: _States, ins: Array, nothing: Array) -> Array:
    samples = np.arange(len(ins))
    end = np.maximum(ins - 1, 0)
    in_blank = alpha[end, samples, states.last]
    in_label = np.where(
        states.last > 0, alpha[end, samples, np.maximum(states.last - 1, 0)], -np.inf
    )
    return np.where(ins == 0, nothing, -np.logaddexp(in_blank, in_label))


def _gradient(
    what: Ctc, states: _States, g: Array, loss: Array, lp: Array, labels: Array, ins: Array,
    lengths: Array,
) -> Array:  # fmt: skip
    steps, n, _ = lp.shape
    summed = np.zeros_like(lp)
    if not steps or not n:
        return summed
    emitted = states.emitted(lp)
    both = _alpha(emitted, states) + _beta(emitted, states, ins)
    share = np.exp(both + loss[:, None] - emitted)
    share = np.where(np.isneginf(both) & ~np.isposinf(loss)[:, None], 0, share)
    for t in range(steps):
        np.add.at(summed[t], (np.arange(n)[:, None], states.labels),
                  np.where(states.inside, share[t], 0))  # fmt: skip
    result: Array = (np.exp(lp) - summed) * g[:, None]
    result[np.arange(steps)[:, None] >= ins] = 0
    if what.zero_infinity:
        result[:, np.isposinf(loss)] = 0
    return result
