"""The template of Ctc: connectionist temporal classification, a sample at a time.

A target of S labels is written with blanks around each label: 2S + 1 *states*. ``alpha[t, s]`` is
the log probability of every way to read inputs 0 .. t that ends in state s; ``beta`` of every way
to read the rest, input t included. A vector holds states that follow each other: each comes from
itself, the one before it, and the one before that unless both are the same label. Rows of states
have a margin of two on both sides, which are -inf.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.devices.cpu.passes import NO_MEMORY, failed
from antorcha.devices.emit import Unsupported
from antorcha.devices.math.exponential import exp
from antorcha.devices.math.logarithm import log
from antorcha.lang.kernels import Launch
from antorcha.lang.layer_kernels import CTC_FAULTS, Ctc
from antorcha.lang.native import (
    address,
    f32,
    f64,
    first,
    i32,
    i64,
    inline,
    local,
    native,
    ptr,
    raw,
    select,
    static,
    struct,
    target,
    u8,
    vec,
    vgather,
    vload,
    void,
    vstore,
)
from antorcha.runtime.memory.alloc import allocate, release
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.pool import pool_run

INF = float("inf")
MARGIN = 2
WORTH = 4096  # states that are worth another thread
FAULT = 8  # a status: this times the wrong value, and which of CTC_FAULTS; 0 is memory's
TYPES: dict[str, Any] = {"float32": f32, "float64": f64}
LABELS: dict[str, Any] = {"int32": i32, "int64": i64}


class CtcProgram:
    """The compile-time choices of a kernel."""

    def __init__(self, T: Any, I: Any, gradient: bool) -> None:
        self.T, self.I, self.gradient = T, I, gradient
        self.L = max(target().vector_bits // 8 // T.size, 2)

    def __native_key__(self) -> str:
        return f"{self.T.name} {self.I.name} {self.gradient} {self.L}"


@struct
class CtcTask:
    steps: i64
    samples: i64
    classes: i64
    blank: i64
    zero_infinity: i64
    lp_step: i64  # strides
    lp_sample: i64
    out_step: i64
    out_sample: i64
    label_sample: i64  # 0 where the targets are joined
    label_step: i64
    labels: i64  # of a target, or of all
    input_step: i64
    target_step: i64
    grad_step: i64
    loss_step: i64


@struct
class CtcWork:
    bufs: ptr[raw]
    task: ptr[CtcTask]
    begins: ptr[i64]  # where each sample's labels begin
    pitch: i64  # elements of a row of states
    failed: i64


@inline
def operand(P, w, k):
    """The k-th input but for a gradient's own."""
    return w.bufs[k + static(3 if P.gradient else 1)]


@inline
def length_of(P, w, k, n):
    step = w.task.input_step if k == 2 else w.task.target_step
    return ptr[i64](operand(P, w, k))[n * step]


@native
def check_values(w: ptr[CtcWork], *, P) -> i64:
    """A status, if a length or label is wrong; notes where labels begin, and the longest row."""
    t = w.task
    longest, total = i64(0), i64(0)
    for n in range(t.samples):
        if length_of(P, w, 2, n) < 0:
            return length_of(P, w, 2, n) * FAULT + 1
    for n in range(t.samples):
        if length_of(P, w, 3, n) < 0:
            return length_of(P, w, 3, n) * FAULT + 2
    for n in range(t.samples):
        if length_of(P, w, 2, n) > t.steps:
            return length_of(P, w, 2, n) * FAULT + 3
    for n in range(t.samples):
        count = length_of(P, w, 3, n)
        w.begins[n] = total if t.label_sample == 0 else n * t.label_sample
        total += count * t.label_step
        longest = max(longest, count)
    if t.label_sample == 0 and total > t.labels * t.label_step:
        return total // t.label_step * FAULT + 4
    if t.label_sample != 0 and longest > t.labels:
        return longest * FAULT + 5
    for n in range(t.samples):
        for k in range(length_of(P, w, 3, n)):
            label = label_at(P, w, n, k)
            if label < 0 or label >= t.classes:
                return label * FAULT + 6
    w.pitch = (2 * longest + P.L) // P.L * P.L + static(2 * MARGIN)
    return 0


@inline
def label_at(P, w, n, k):
    return i64(ptr[P.I](operand(P, w, 1))[w.begins[n] + k * w.task.label_step])


@inline
def sum_of_logs(P, a, b, c):
    """log(exp(a) + exp(b) + exp(c))."""
    top = select((a > b) | (a != a), a, b)
    top = select((top > c) | (top != top), top, c)
    top = select(top == -INF, vec[P.T, P.L](0), top)
    return log(exp(a - top) + exp(b - top) + exp(c - top)) + top


@inline
def write_states(P, w, n, states, labels):
    """The label of each state."""
    for s in range(w.pitch):
        labels[s] = i32(w.task.blank)
    for k in range(states // 2):
        labels[static(MARGIN + 1) + 2 * k] = i32(label_at(P, w, n, k))


@inline
def first_row(P, x, labels, row, begin, end, states):
    """Row of states of which those from begin to end are where a reading begins, or ends."""
    for s in range(0, states, P.L):
        here = first(P.L, end - s) & ~first(P.L, begin - s)
        emitted = vgather(x, vload(labels + (s + MARGIN), P.L), here)
        vstore(row + (s + MARGIN), select(here, emitted, vec[P.T, P.L](-INF)))


@inline
def next_row(P, back, x, labels, old, row, states):
    """alpha's row after ``old``; with ``back`` beta's row before it."""
    sign = static(1 if back else -1)
    for s in range(0, states, P.L):
        few = first(P.L, states - s)
        at = s + MARGIN
        label = vload(labels + at, P.L)
        skip = vload(old + (at + 2 * sign), P.L)
        skip = select(label != vload(labels + (at + 2 * sign), P.L), skip, vec[P.T, P.L](-INF))
        ways = sum_of_logs(P, vload(old + at, P.L), vload(old + (at + sign), P.L), skip)
        row_at = ways + vgather(x, label, few)
        vstore(row + at, select(few, row_at, vec[P.T, P.L](-INF)))


@inline
def log_probs(P, w, n, t):
    return ptr[P.T](operand(P, w, 0)) + (t * w.task.lp_step + n * w.task.lp_sample)


@inline
def alphas(P, w, n, steps, states, labels, rows, kept):
    """alpha row by row: all, or the last two where not ``kept``. Gives the loss."""
    first_row(P, log_probs(P, w, n, 0), labels, rows, 0, min(states, i64(2)), states)
    row = rows
    for t in range(1, steps):
        old = row
        row = rows + (t if kept else t & 1) * w.pitch
        next_row(P, False, log_probs(P, w, n, t), labels, old, row, states)
    end = row + (states + static(MARGIN - 1))
    both = sum_of_logs(P, vec[P.T, P.L](end[0]), vec[P.T, P.L](end[-1]), vec[P.T, P.L](-INF))
    return -both[0]


@inline
def add_shares(P, x, labels, alpha, beta, loss, share, y, states):
    """Adds each state's share of the readings to its label's place in y."""
    none = vec[P.T, P.L](0)
    for s in range(0, states, P.L):
        few = first(P.L, states - s)
        at = s + MARGIN
        both = vload(alpha + at, P.L) + vload(beta + at, P.L)
        emitted = vgather(x, vload(labels + at, P.L), few)
        part = exp(both + vec[P.T, P.L](loss) - emitted)
        vstore(share + at, select((both == -INF) & (vec[P.T, P.L](loss) != INF), none, part))
    for s in range(MARGIN, states + MARGIN):
        y[labels[s]] += share[s]


@inline
def finish_row(P, w, x, y, g):
    """y = (exp(x) - y) * g."""
    for c in range(0, w.task.classes, P.L):
        few = first(P.L, w.task.classes - c)
        part = exp(vload(x + c, P.L, few)) - vload(y + c, P.L, few)
        vstore(y + c, part * vec[P.T, P.L](g), few)


@inline
def zero_row(P, w, y):
    for c in range(0, w.task.classes, P.L):
        vstore(y + c, vec[P.T, P.L](0), first(P.L, w.task.classes - c))


@inline
def gradients(P, w, n, steps, states, labels, rows):
    """The gradient of a sample's log probabilities, of which the first ``steps`` count."""
    t = w.task
    y = ptr[P.T](w.bufs[0]) + n * t.out_sample
    g = ptr[P.T](w.bufs[1])[n * t.grad_step]
    loss = ptr[P.T](w.bufs[2])[n * t.loss_step]
    for k in range(t.steps):
        zero_row(P, w, y + k * t.out_step)
    if steps == 0 or (t.zero_infinity != 0 and loss == INF):
        return
    alphas(P, w, n, steps, states, labels, rows, True)
    share = rows + steps * w.pitch
    row = share + w.pitch
    for back in range(steps):
        k = steps - 1 - back
        x, old = log_probs(P, w, n, k), row
        if back == 0:
            first_row(P, x, labels, row, max(states - 2, i64(0)), states, states)
        else:
            row = share + (1 + (back & 1)) * w.pitch
            next_row(P, True, x, labels, old, row, states)
        add_shares(P, x, labels, rows + k * w.pitch, row, loss, share, y + k * t.out_step, states)
        finish_row(P, w, x, y + k * t.out_step, g)


@native
def sample_job(n0: i64, n1: i64, args: raw, *, P) -> void:
    """The losses, or the gradients, of samples n0..n1."""
    w = ptr[CtcWork](args)
    count = w.pitch * ((w.task.steps + 3) if P.gradient else 2)
    block = allocate(count * static(P.T.size) + w.pitch * 4)
    if block is None:
        w.failed = NO_MEMORY * FAULT
        return
    rows = ptr[P.T](block)
    clear(P, rows, count)
    labels = ptr[i32](ptr[u8](block) + count * static(P.T.size))
    for n in range(n0, n1):
        steps, states = length_of(P, w, 2, n), 2 * length_of(P, w, 3, n) + 1
        write_states(P, w, n, states, labels)
        if P.gradient:
            clear(P, rows + (count - 2 * w.pitch), 2 * w.pitch)  # a longer target's states
            gradients(P, w, n, steps, states, labels, rows)
        else:
            loss = P.T(0) if states == 1 else P.T(INF)
            if steps > 0:
                loss = alphas(P, w, n, steps, states, labels, rows, False)
            ptr[P.T](w.bufs[0])[n * w.task.out_sample] = loss
    release(block)


@inline
def clear(P, p, count):
    for k in range(0, count, P.L):
        vstore(p + k, vec[P.T, P.L](-INF), first(P.L, count - k))


@native
def ctc_kernel(bufs: ptr[raw], desc: ptr[i64], *, P) -> i64:
    w = local(CtcWork)
    w.bufs = bufs
    w.task = ptr[CtcTask](raw(desc))
    w.failed = 0
    w.begins = ptr[i64](allocate(w.task.samples * 8))
    if raw(w.begins) is None:
        return NO_MEMORY * FAULT
    wrong = check_values(w, P=P)
    if wrong == 0:
        each = max(w.task.steps * w.pitch, i64(1))
        pool_run(address(sample_job, P=P), w.task.samples, max(WORTH // each, 1), raw(w))
        wrong = w.failed
    release(raw(w.begins))
    return wrong


# ------------------------------------------------------------------------------------ descriptions
def compile_ctc(what: Ctc, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    own, (lp, labels, inputs, targets), (out,) = ins[:-4], ins[-4:], outs
    T, kind = TYPES.get(lp.dtype.name), LABELS.get(labels.dtype.name)
    steps, samples, classes = lp.shape
    widest = max(steps, 1) * classes
    apart = lp.strides[2] != 1 or (what.gradient and out.strides[2] != 1)
    empty = 0 in lp.shape or 0 in labels.strides
    if T is None or kind is None or apart or empty or widest >= 1 << 31:
        raise Unsupported
    joined = labels.ndim == 1
    task = [
        steps, samples, classes, what.blank, int(what.zero_infinity), *lp.strides[:2],
        *(out.strides[:2] if what.gradient else (0, out.strides[0])),
        0 if joined else labels.strides[0], labels.strides[-1], labels.shape[-1],
        inputs.strides[0], targets.strides[0], *[each.strides[0] for each in own or (out, out)],
    ]  # fmt: skip
    program = {"P": CtcProgram(T, kind, what.gradient)}
    work = steps * samples * max(labels.shape[-1], 1) * 8
    return compile_native(
        what, NativeKernel(ctc_kernel, program, tuple(task), _fault(what), work), outs, ins
    )


def _fault(what: Ctc) -> Callable[[int], BaseException]:
    """What a status means."""

    def fail(code: int) -> BaseException:
        fault = CTC_FAULTS[code % FAULT]
        return what.refuse(fault, code // FAULT) if fault else failed("ctc_loss")(code // FAULT)

    return fail
