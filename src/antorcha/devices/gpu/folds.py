"""What reductions and scans on GPUs share: states, and how they are joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core import dtypes
from antorcha.devices.emit import TYPES, body_of, evaluate
from antorcha.devices.gpu.frame import GridTemplate
from antorcha.devices.narrow import in_float32
from antorcha.lang import expr as E
from antorcha.lang.native import inline, select, static
from antorcha.lang.native.grid import device_pointer
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.layout import Layout


class FoldTemplate(GridTemplate):
    """What a fold's code depends on: its start, lift, merge and finish (``lang.kernels.Reduce``),
    and whether the states of parts lie in temporaries, whose addresses follow the operands'."""

    def __init__(
        self, fold: Any, outs: Sequence[Layout], ins: Sequence[Layout], index: Ty, stored: bool
    ) -> None:
        super().__init__(outs, ins, index)
        self.start, lift, merge, finish = fold
        self.lift, self.merge, self.finish = body_of(lift), body_of(merge), body_of(finish)
        self.state_types = [TYPES[e.dtype.name] for e in self.lift.exprs]
        self.nstate = len(self.state_types)
        self.narrow, self.sums_inputs = None, False
        if _adds_narrow_numbers(self, lift, (*outs, *ins)):
            narrow = in_float32(lift)
            self.narrow = body_of(narrow)
            self.sums_inputs = all([e.op == "input" for e in narrow])
        used = E.inputs_used(*self.lift.exprs)
        self.used = [k in used for k in range(self.nin)]
        self.own_words = self.head + (self.nstate if stored else 0)

    def fold_key(self) -> str:
        """The fold's part of ``__native_key__``."""
        start = ",".join([float(s).hex() for s in self.start])
        bodies = f"{self.lift.key}|{self.merge.key}|{self.finish.key}"
        return f"{bodies}|{start}|{self.operands_key()}|{self.own_words}"


def _adds_narrow_numbers(fold: FoldTemplate, lift: Any, operands: Sequence[Layout]) -> bool:
    """Does a fold add up in float64 what is computed from narrower numbers, to give such?"""
    if any([e.dtype is not dtypes.float64 for e in lift]) or any(fold.start):
        return False
    if any([o.dtype.kind not in "fc" or o.dtype.to_real().itemsize > 4 for o in operands]):
        return False
    n = fold.nstate
    return all([
        e.op == "add" and {a.payload for a in e.args if a.op == "input"} == {k, n + k}
        for k, e in enumerate(fold.merge.exprs)
    ])  # fmt: skip


@inline
def fresh_state(P):
    """The state of no elements."""
    return [P.state_types[k](P.start[k]) for k in static(range(P.nstate))]


@inline
def merged(P, a, b):
    return evaluate(P.merge, a + b, 0)


@inline
def keep(P, state, new):
    """state[:] = new (a list that lives through a loop stays the same list)."""
    for k in static(range(P.nstate)):
        state[k] = new[k]


@inline
def chosen(P, condition, a, b):
    """State a where the condition holds, else b."""
    return [select(condition, a[k], b[k]) for k in static(range(P.nstate))]


@inline
def state_places(P, words):
    """Where the parts' states lie, an array for each of a state's values."""
    return [device_pointer(P.state_types[k], words[P.head + k]) for k in static(range(P.nstate))]
