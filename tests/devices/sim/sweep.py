"""Every record's samples on the simulator, or on another device, beside the CPU, and what was left
to the host.

python -m tests.devices.sim.sweep [--device=mps] [NAMES]     only ops whose names begin so
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np

import antorcha
from antorcha.core import switches
from antorcha.devices.gpu import fallback
from antorcha.ops.kinds.record import Op
from antorcha.runtime.call import plan
from antorcha.runtime.tensor import Tensor
from tests.ops.records import all_samples, differentiable, map_tensors, records, results, tensors_in

DEVICE = "sim"  # (tools/gpu_day.py sweeps a GPU)
LACKING = {"mps": ("float64", "complex128")}
"""What devices have no numbers of: such results are not compared."""
RANDOM = (
    "rand",
    "normal",
    "bernoulli",
    "dropout",
    "multinomial",
    "poisson",
    "empty",
    "exponential",
)
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool",
          "complex64", "complex128")  # fmt: skip
TOLERANCE = {"float32": 1e-4, "complex64": 1e-4, "float16": 2e-2, "bfloat16": 8e-2}


def is_random(op: Op) -> bool:
    return any(word in op.name for word in RANDOM)


def differs(a: Tensor, b: Tensor) -> str:
    """How the device's result b differs from the CPU's; empty if it does not."""
    if b.device.type != DEVICE:
        return f"is on {b.device}"
    if (a.shape, a.stride(), a.dtype) != (b.shape, b.stride(), b.dtype):
        return f"{a.dtype} {tuple(a.shape)} {a.stride()} is {b.dtype} {tuple(b.shape)} {b.stride()}"
    rtol = TOLERANCE.get(a.dtype.name, 1e-8)
    x, y = np.asarray(a.detach().tolist()), np.asarray(b.detach().cpu().tolist())
    if x.dtype.kind in "fc":
        if not np.allclose(x, y, rtol=rtol, atol=rtol, equal_nan=True):
            return f"{y.ravel()[:4]} is not {x.ravel()[:4]}"
    elif not np.array_equal(x, y):
        return f"{y.ravel()[:4]} is not {x.ravel()[:4]}"
    return ""


def spread(t: Tensor) -> Tensor:
    """The same values, every second element of something larger, dims in another order."""
    if t.ndim == 0:
        return t
    sizes = [2 * n for n in reversed(t.shape)]
    wide = antorcha.zeros(sizes, dtype=t.dtype, device=t.device)
    view = wide[tuple([slice(None, None, 2)] * t.ndim)].permute(*reversed(range(t.ndim)))
    view.copy_(t)
    return view


def call(op: Op, args: Any, kwargs: Any, grad: bool, second: bool = False) -> list[Tensor]:
    """The results, and the gradients of their sum where asked; ``second``: those of the gradients'
    sum, too."""
    args, kwargs = map_tensors((args, kwargs), lambda t: t.detach().clone() if grad else t)
    leaves = [t for t in tensors_in((args, kwargs)) if t.dtype.is_floating_point]
    if grad:
        for leaf in leaves:
            leaf.requires_grad_()
    found = [t for t in results(op(*args, **kwargs)) if isinstance(t, Tensor)]
    ends = [t for t in found if t.requires_grad] if grad else []
    if ends and second:
        total = sum([(t * t.detach().cos()).abs().sum() for t in ends])
        firsts = antorcha.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
        again = [t for t in firsts if t is not None and t.requires_grad]
        found += [t.detach() for t in firsts if t is not None]
        if again:
            sum([t.abs().sum() for t in again]).backward()
    elif ends:
        sum([t.abs().sum() for t in ends]).backward()
    return [*found, *[leaf.grad for leaf in leaves if grad and leaf.grad is not None]]


def without_signs(op: Op, found: list[Tensor]) -> list[Tensor]:
    """Results of which the signs of vectors are free as what they say all the same."""
    if op.name != "linalg_svd" or len(found) < 3:
        return found
    u, s, vh, *rest = found
    return [
        u.abs(),
        s,
        vh.abs(),
        (u[..., : s.shape[-1]] * s.unsqueeze(-2)) @ vh[..., : s.shape[-1], :],
        *rest,
    ]


def check(
    op: Op, args: Any, kwargs: Any, grad: bool, strided: bool = False, second: bool = False
) -> str:
    """What is wrong with a sample on the device; empty if nothing is."""
    if kwargs.get("device") is not None or not tensors_in((args, kwargs)):
        return ""
    there = map_tensors((args, kwargs), lambda t: t.to(DEVICE))
    if strided:
        (args, kwargs), there = map_tensors((args, kwargs), spread), map_tensors(there, spread)
    try:
        ours = call(op, args, kwargs, grad, second)
    except Exception as error:
        try:
            call(op, *there, grad, second)
        except type(error):
            return ""
        except Exception as other:
            return f"raises {type(other).__name__}: {other}, not {type(error).__name__}"
        return f"does not raise {type(error).__name__}: {error}"
    if any([t.dtype.name in LACKING.get(DEVICE, ()) for t in ours]):
        return ""
    try:
        ours, theirs = without_signs(op, ours), without_signs(op, call(op, *there, grad, second))
        if len(ours) != len(theirs):
            return f"gives {len(theirs)} tensors, not {len(ours)}"
        found = [differs(a, b) for a, b in zip(ours, theirs, strict=True)]
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return "; ".join([f"result {k} {text}" for k, text in enumerate(found) if text])


def sweep(
    ops: list[Op], dtypes: Any = ("float32",), strided: bool = False, grad: bool = False,
    second: bool = False, most: int = 1000,
) -> list[str]:  # fmt: skip
    """Everything that differs; no convolution rounds to TF32. ``most``: samples of a record."""
    before, switches.cudnn.allow_tf32 = switches.cudnn.allow_tf32, False
    try:
        return _sweep(ops, dtypes, strided, grad, second, most)
    finally:
        switches.cudnn.allow_tf32 = before


def _sweep(
    ops: list[Op], dtypes: Any, strided: bool, grad: bool, second: bool, most: int
) -> list[str]:  # fmt: skip
    wrong = []
    for op in ops:
        if is_random(op):
            continue
        for dtype in dtypes:
            try:
                given = list(all_samples(op, getattr(antorcha, dtype)))[:most]
            except Exception:  # a sample that this dtype has not
                continue
            for k, (args, kwargs) in enumerate(given):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    wanted = (grad or second) and differentiable(op, args, kwargs)
                    text = check(op, args, kwargs, wanted, strided, second)
                if text:
                    wrong.append(f"{op.name} {dtype} sample {k}: {text}")
    return wrong


def left_to_host(ops: list[Op]) -> dict[str, str]:
    """Which ops asked for NumPy, and of what."""
    found = {}
    for op in ops:
        fallback.noted.clear()
        plan.flush()  # (what has been planned is not planned again)
        sweep([op])
        if fallback.noted:
            found[op.name] = ", ".join(sorted(fallback.noted))
    return found


def main(names: list[str]) -> None:
    global DEVICE
    named = [n for n in names if n.startswith("--device=")]
    if named:
        DEVICE = named[0].partition("=")[2]
        names = [n for n in names if n not in named]
    ops = [op for op in records() if not names or any(op.name.startswith(n) for n in names)]
    start = time.perf_counter()
    for line in left_to_host(ops).items():
        print("host:", *line)
    for line in sweep(ops, DTYPES if names else ("float32",), grad=bool(names)):
        print(line)
    if names:
        for line in sweep(ops, strided=True):
            print("strided:", line)
    print(f"{len(ops)} records, {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
