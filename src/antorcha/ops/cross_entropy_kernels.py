"""The native part of cross_entropy: checks the targets and adds the rows up."""

# mypy: ignore-errors
# (the kernel language's types are values: mypy cannot read them)
from __future__ import annotations

from antorcha.lang.native import bf16, f16, f32, f64, i64, native, ptr, raw, select, u8

NO_CLASS = -(1 << 62)  # the status for a target where there are no classes at all
TYPES = {
    "float64": f64, "float32": f32, "float16": f16, "bfloat16": bf16, "int64": i64, "uint8": u8,
}  # fmt: skip


@native
def total_kernel(bufs: ptr[raw], desc: ptr[i64], *, T, O, I, mean) -> i64:
    """Checks the targets, then adds up the rows' losses and weights.

    bufs: loss, total weight, row losses, row weights, targets; desc: rows, classes, ignore_index.
    A target that is no class is the status.
    """
    n = desc[0]
    classes = desc[1]
    ignored = desc[2]
    loss = ptr[O](bufs[0])
    total = ptr[T](bufs[1])
    losses = ptr[T](bufs[2])
    weights = ptr[T](bufs[3])
    targets = ptr[I](bufs[4])
    for i in range(n):
        t = i64(targets[i])
        if t != ignored and (t < 0 or t >= classes):
            return select(t == 0, i64(NO_CLASS), t)
    s = f64(0.0)
    w = f64(0.0)
    for i in range(n):
        s = s + f64(losses[i])
        w = w + f64(weights[i])
    total[0] = T(w)
    if mean:
        s = s / w
    loss[0] = O(s)
    return 0
