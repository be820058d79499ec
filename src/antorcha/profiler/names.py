"""What people read of a record: names of kernels, lines of source, modules, operations."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Sequence
from functools import cache
from types import CodeType
from typing import Any

from antorcha.errors import OUR_FOLDER
from antorcha.lang.kernels import Conv, MatMul, Pointwise, Reduce, Rows, Scan

LONGEST = 60  # characters of a kernel's name


def kernel_name(what: Any) -> str:
    """Of a description: its kind, and what tells it from others of the kind."""
    if isinstance(what, Pointwise):
        name = "pointwise " + "; ".join([repr(each) for each in what.exprs])
    elif isinstance(what, (Reduce, Scan)):
        kind = "reduce" if isinstance(what, Reduce) else "scan"
        name = f"{kind} {getattr(what, 'name', '') or '; '.join([repr(e) for e in what.finish])}"
    elif isinstance(what, Rows):
        name = "rows " + "; ".join([repr(each) for each in what.program.outputs])
    elif isinstance(what, MatMul):
        name = "matmul" + (" of a batch" if what.batch > 1 else "")
    elif isinstance(what, Conv):
        name = f"convolution {what.kind}"
    else:
        more = getattr(what, "kind", None) or getattr(what, "fold", None) or ""
        name = f"{type(what).__name__.lower()} {more}".rstrip()
    return name if len(name) <= LONGEST else name[: LONGEST - 3] + "..."


def kernel_details(what: Any) -> dict[str, Any]:
    """What its name does not say, for a trace."""
    if isinstance(what, MatMul):
        return {"batch": what.batch, "m": what.m, "n": what.n, "k": what.k}
    if isinstance(what, Conv):
        return {"x": list(what.x), "w": list(what.w), "y": list(what.y)}
    if isinstance(what, Rows):
        return {"length": what.length}
    if isinstance(what, (Pointwise, Reduce, Scan)):
        exprs = what.exprs if isinstance(what, Pointwise) else what.finish
        return {"computes": [repr(each) for each in exprs]}
    return {}


# ---- source lines
@cache
def is_users(file: str) -> bool:
    """Is it none of antorcha's own files, nor one of the interpreter's?"""
    return not (file.startswith((OUR_FOLDER, "<frozen ")))


@cache
def short_path(file: str) -> str:
    """The file as seen from the current folder, if it lies below it."""
    if not os.path.isabs(file):
        return file
    folder = os.getcwd() + os.sep
    return file[len(folder) :] if file.startswith(folder) else file


MOST_FRAMES = 96  # of a stack: what lies further out is left out
FURTHER_OUT = "... (calls further out)"  # the last line, where a stack was cut


def stack_of(frames: Sequence[tuple[CodeType, int]]) -> list[str]:
    """Lines of the user's own code, innermost first, as PyTorch writes them."""
    found = [
        f"{short_path(code.co_filename)}({line}): {code.co_name}"
        for code, line in frames
        if is_users(code.co_filename)
    ]
    return found if len(frames) < MOST_FRAMES else [*found, FURTHER_OUT]


def hierarchy_of(modules: Sequence[Any]) -> str:
    """``MLP.layers.0``: the class of the outermost module, and the way to the innermost."""
    if not modules:
        return ""
    words = [type(modules[0]).__name__]
    for parent, child in itertools.pairwise(modules):
        if child is not parent:
            words.append(_name_within(parent, child))
    return ".".join(words)


def _name_within(parent: Any, child: Any) -> str:
    for name, each in parent._modules.items():
        if each is child:
            return str(name)
    found = [name for name, each in parent.named_modules() if each is child]
    return found[0] if found else type(child).__name__


# ---- operations
_COUNTED = ("add", "sub", "mul", "div")


def kernel_flops(what: Any) -> int:
    """Floating point operations of a kernel whose description says them: a product of matrices, a
    convolution or one of its gradients (a multiplication and an addition for each term)."""
    if isinstance(what, MatMul):
        return 2 * what.batch * what.m * what.n * what.k
    if isinstance(what, Conv):
        return 2 * math.prod(what.y) * math.prod(what.w[1:])
    return 0


def call_flops(name: str, shapes: Sequence[Any]) -> int:
    """Those of a sum, difference, product or quotient of tensors: one for each element."""
    if name.removeprefix("aten::").removesuffix("_") not in _COUNTED or not shapes:
        return 0
    given = [s for s in shapes if s]
    longest = max([len(s) for s in given], default=0)
    padded = [[1] * (longest - len(s)) + list(s) for s in given]
    return math.prod([max(sizes) for sizes in zip(*padded, strict=True)])
