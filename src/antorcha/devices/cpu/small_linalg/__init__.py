"""The template of Matrices: stacks of small matrices, as many at a time as a vector has lanes.

Few matrices whose values or vectors are wanted go to LAPACK one by one, natively; large matrices
and complex ones go there through NumPy and SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core import structs
from antorcha.core.loops import collapse
from antorcha.core.shapes import broadcast_strides
from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.devices.cpu.passes import NO_MEMORY, PassWork, failed, work_of
from antorcha.devices.cpu.small_linalg.bidiagonal import singular_tile
from antorcha.devices.cpu.small_linalg.cholesky import cholesky_tile
from antorcha.devices.cpu.small_linalg.lapack import (
    eigen_by_lapack,
    function_address,
    general_by_lapack,
    singular_by_lapack,
)
from antorcha.devices.cpu.small_linalg.least_squares import least_squares_tile
from antorcha.devices.cpu.small_linalg.lu import determinant_tile, lu_tile, solve_tile
from antorcha.devices.cpu.small_linalg.reflectors import (
    product_tile,
    qr_tile,
    reflected_tile,
    reflectors_tile,
)
from antorcha.devices.cpu.small_linalg.systems import (
    cholesky_solve_tile,
    lu_solve_tile,
    permutation_tile,
    triangular_tile,
)
from antorcha.devices.cpu.small_linalg.tiles import LATEST, MatrixTask, MatrixTile, place_lanes
from antorcha.devices.cpu.small_linalg.tridiagonal import eigen_tile
from antorcha.devices.emit import TYPES, Unsupported
from antorcha.lang.kernels import Launch, Matrices
from antorcha.lang.native import address, i64, local, native, ptr, raw, ref, static, void
from antorcha.lang.native.machine import target
from antorcha.runtime.memory.alloc import allocate, release
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.pool import pool_run

MOST = 64
"""Rows and columns of the largest matrix, and columns of the widest right side."""
MOST_ALONE = 32
"""Rows and columns of the largest matrix that is worked on in a stack of fewer than MANY."""
MANY = 6
MOST_VALUES_ALONE = 16
"""Rows and columns of the largest single matrix whose values alone are wanted."""
FEW = 4
"""Of fewer matrices vectors come from LAPACK, with the signs that it happens to give them:
kernels give others, and would leave most lanes idle."""


@native
def matrices_job(u0: i64, u1: i64, args: raw, *, BODY, T, W, OPS, FLAGS) -> void:
    """Tiles u0..u1."""
    work = ptr[PassWork](args)
    tile = local(MatrixTile)
    tile.bufs = work.bufs
    tile.task = ptr[MatrixTask](raw(work.desc))
    tile.steps = ptr[i64](tile.task + 1)
    tile.offsets = local(i64, static(OPS * W))
    tile.failed = ref(work.failed)
    space = allocate(tile.task.room * W * T.size)
    if space is None:
        work.failed = NO_MEMORY
        return
    tile.space = space
    for u in range(u0, u1):
        place_lanes(W, OPS, tile, u)
        BODY(T, W, FLAGS, tile)
    release(space)


@native
def matrices_kernel(bufs: ptr[raw], desc: ptr[i64], *, BODY, T, W, OPS, FLAGS) -> i64:
    work = work_of(bufs, desc)
    t = ptr[MatrixTask](raw(desc))
    job = address(matrices_job, BODY=BODY, T=T, W=W, OPS=OPS, FLAGS=FLAGS)
    pool_run(job, (t.count + W - 1) // W, t.grain, raw(work))
    return work.failed


# ---------------------------------------------------------------------------------------- planning
@structs.struct
class MatrixKernel:
    """How a kind of Matrices is computed: by ``body``, a tile at a time.

    ``operands`` has a letter for each operand, the results first: the part of it that belongs to
    one matrix is a (m)atrix, a (v)ector, a (n)umber, a vector of int32 (p)ivots, an int32 (i)nfo,
    or there is none (-); a (C)omplex matrix or (c)omplex vector. ``room`` counts the elements that
    a matrix of m rows and n columns needs to be worked on, with so many columns of right sides, or
    of Q. ``flags`` are ``body``'s.
    ``matrix`` is the number of the input A (-1: the result is A). A ``tall`` one has as many rows
    as columns or more; of others the transpose is worked on: ``body`` gets the flag "wide".
    ``function`` is LAPACK's name of what ``body`` calls, whose tiles are single matrices.
    """

    body: Any
    operands: str
    room: Callable[[int, int, int], int]
    flags: tuple[str, ...] = ()
    matrix: int = 0
    tall: bool = False
    function: str = ""


RANKS = {"m": 2, "C": 2, "v": 1, "c": 1, "p": 1, "n": 0, "i": 0, "-": 0}
_SQUARE, _SOLVING, _FACTORS, _PRODUCT = [
    lambda m, n, right: n * n,
    lambda m, n, right: n * (n + right + 1),
    lambda m, n, right: m * n + min(m, n) + m * right,
    lambda m, n, right: 2 * m * n + right,
]


def _eigen_room(m: int, n: int, right: int) -> int:
    return 2 * n * n + 4 * n


def _singular_room(m: int, n: int, right: int) -> int:
    return m * n + 2 * n * n + m * right + 4 * n + m


def _least_squares_room(m: int, n: int, right: int) -> int:
    return m * n + 3 * n + m * right + 2 * n * right


KERNELS = {
    "lu": MatrixKernel(lu_tile, "mpim", _FACTORS),
    "solve": MatrixKernel(solve_tile, "mmm", _SOLVING),
    "solve info": MatrixKernel(solve_tile, "mimm", _SOLVING, ("info",)),
    "inverse": MatrixKernel(solve_tile, "mm", _SOLVING, ("inverse",)),
    "inverse info": MatrixKernel(solve_tile, "mim", _SOLVING, ("info", "inverse")),
    "cholesky": MatrixKernel(cholesky_tile, "mm", _SQUARE),
    "cholesky info": MatrixKernel(cholesky_tile, "mim", _SQUARE, ("info",)),
    "determinant": MatrixKernel(determinant_tile, "nm", _SQUARE),
    "logarithm": MatrixKernel(determinant_tile, "nnm", _SQUARE, ("logarithm",)),
    "qr": MatrixKernel(qr_tile, "mmm", _FACTORS, ("q",)),
    "r": MatrixKernel(qr_tile, "-mm", _FACTORS),
    "eigh": MatrixKernel(eigen_tile, "vmm", _eigen_room),
    "eigenvalues": MatrixKernel(eigen_tile, "vm", _eigen_room, ("values",)),
    "svd": MatrixKernel(singular_tile, "mvmm", _singular_room, tall=True),
    "singular values": MatrixKernel(singular_tile, "vm", _singular_room, ("values",), tall=True),
    "least squares": MatrixKernel(least_squares_tile, "mvmm", _least_squares_room, tall=True),
    "triangular": MatrixKernel(triangular_tile, "mmm", _SOLVING),
    "cholesky solve": MatrixKernel(cholesky_solve_tile, "mmm", _SOLVING, matrix=1),
    "lu solve": MatrixKernel(lu_solve_tile, "mmpm", _SOLVING),
    "permutation": MatrixKernel(permutation_tile, "mp", _SOLVING, matrix=-1),
    "reflectors": MatrixKernel(reflectors_tile, "mvm", _FACTORS),
    "reflector product": MatrixKernel(product_tile, "mmv", _PRODUCT),
    "reflected": MatrixKernel(reflected_tile, "mmvm", _FACTORS),
}


def _lapacks_room(m: int, n: int, right: int) -> int:
    return 12 * (max(m, n) + 2) ** 2  # with what gesdd, syevd or geev works in


BY_LAPACK = {
    "svd": MatrixKernel(singular_by_lapack, "mvmm", _lapacks_room, function="gesdd"),
    "singular values": MatrixKernel(
        singular_by_lapack, "vm", _lapacks_room, ("values",), function="gesdd"
    ),
    "eigh": MatrixKernel(eigen_by_lapack, "vmm", _lapacks_room, function="syevd"),
    "eigenvalues": MatrixKernel(
        eigen_by_lapack, "vm", _lapacks_room, ("values",), function="syevd"
    ),
    "eig": MatrixKernel(general_by_lapack, "cCm", _lapacks_room, function="geev"),
}
DETAILS = ("upper", "unit", "adjoint", "right", "wide")
"""Words of a kind that are flags of its body's; the rest says what is computed."""


def compile_matrices(what: Matrices, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    words = what.kind.split()
    name = " ".join([word for word in words if word not in DETAILS])
    details = [word for word in words if word in DETAILS]
    for how in (KERNELS.get(name), BY_LAPACK.get(name)):
        if how is not None and _takes(how, what, outs, ins):
            return _compiled(how, details, what, outs, ins)
    raise Unsupported


def _takes(how: MatrixKernel, what: Matrices, outs: Sequence[Layout], ins: Sequence[Any]) -> bool:
    """Are these matrices not too large, nor too few?"""
    a = [*outs, *ins][len(outs) + how.matrix]
    if a.dtype.name not in ("float32", "float64") or not all([each.numel for each in ins]):
        return False
    most = int(max(a.shape[-2:]))
    if how.function and how.body is not general_by_lapack:
        return most <= MOST_ALONE  # from there on OpenBLAS has threads, which wait for each other
    if most > MOST or how.function:
        return most <= MOST
    count = math.prod(_stack(how, what, outs))
    vectors = how.body in (eigen_tile, singular_tile)
    fewest = 1 if not vectors or most <= MOST_VALUES_ALONE else 2
    fewest = FEW if vectors and len(outs) > 1 else fewest
    return count >= (fewest if most <= MOST_ALONE else MANY)


def _compiled(
    how: MatrixKernel, details: list[str], what: Matrices, outs: Sequence[Layout],
    ins: Sequence[Any],
) -> Launch:  # fmt: skip
    a = [*outs, *ins][len(outs) + how.matrix]
    m, n = [a.shape[d] for d in (-2, -1)]
    if how.tall and m < n:
        details, m, n = ["wide"], n, m
    right = _right(how, details, what, n, outs, ins)
    if right > MOST:
        raise Unsupported
    placed = _Placed(what, a, _stack(how, what, outs))
    count = math.prod(placed.stack)
    T, layouts = TYPES[a.dtype.name], [*outs, *ins]
    W = 1 if how.function else max(target().vector_bits // 8 // T.size, 4)
    function = function_address(how.function, a.dtype.name) if how.function else 0
    where = [
        placed.operand(layout, part, k < len(outs))
        for k, (layout, part) in enumerate(zip(layouts, how.operands, strict=True))
    ]
    sizes, walks = collapse(placed.stack, [walk for _, walk in where])
    grain = max((1 << 15 if how.function else 1 << 12) // (m * n * n), 1)
    desc = [count, m, n, right, how.room(m, n, right), grain, function, len(sizes)]
    for steps, _ in where:
        desc += steps
    for d in reversed(range(len(sizes))):
        desc += [sizes[d], *[walk[d] for walk in walks]]
    flags = (*how.flags, *details, *(["check"] if what.refuse is not None else []))
    options = {"BODY": how.body, "T": T, "W": W, "OPS": len(layouts), "FLAGS": flags}
    kernel = NativeKernel(matrices_kernel, options, tuple(desc), _failure(what), count * m * n * n)
    return compile_native(what, kernel, outs, ins)


def _right(
    how: MatrixKernel, details: Sequence[str], what: Matrices, n: int, outs: Sequence[Layout],
    ins: Sequence[Any],
) -> int:  # fmt: skip
    """The columns of the right sides, of Q, which are the rows of R, or of U; or the reflectors of
    a product, or the pivots."""
    if how.body is qr_tile:
        return outs[1].shape[-2]
    if how.body is singular_tile and len(outs) > 1:
        return outs[2].shape[-2] if "wide" in details else outs[0].shape[-1]
    if how.body is singular_by_lapack and len(outs) > 1:
        return max(outs[0].shape[-1], outs[2].shape[-2])  # the smaller size, unless both are full
    if how.body in (product_tile, permutation_tile):
        return int(ins[-1].shape[-1])
    if how.body in (reflected_tile, least_squares_tile) or (
        how.room is _SOLVING and "inverse" not in how.flags
    ):
        turned = what.transposed or "right" in details
        return 1 if what.vectors else outs[0].shape[-2 if turned else -1]
    return n


def _stack(how: MatrixKernel, what: Matrices, outs: Sequence[Layout]) -> tuple[int, ...]:
    """The dims of the stack, which all results have."""
    last = len(outs) - 1
    rank = RANKS[how.operands[last]]
    return tuple(outs[last].shape[: outs[last].ndim - rank + (rank == 2 and what.vectors)])


@structs.struct
class _Placed:
    """How the operands of matrices like ``a`` lie."""

    what: Matrices
    a: Layout
    stack: tuple[int, ...]

    def operand(
        self, layout: Layout, part: str, result: bool
    ) -> tuple[list[int], Sequence[int]]:  # fmt: skip
        """How a matrix of an operand lies, [row step, column step], and the operand's steps along
        the stack's dims."""
        if part == "-":
            return [0, 0], (0,) * len(self.stack)
        dtype = self.a.dtype.to_complex() if part in "cC" else self.a.dtype
        if layout.dtype.name != ("int32" if part in "pi" else dtype.name):
            raise Unsupported  # a result that is cast
        column = part == "m" and self.what.vectors and layout is not self.a
        cut = layout.ndim - RANKS[part] + column
        own, strides = tuple(layout.shape[:cut]), layout.strides
        if result and own != self.stack:
            raise Unsupported  # info of one matrix whose right sides are many
        steps = [0, 0, *strides[cut:]][-2:]
        if column:
            steps = [strides[-1], 0]
        elif part == "m" and self.what.transposed:
            steps = [steps[1], steps[0]]
        walk = broadcast_strides(own, strides[:cut], self.stack)
        if part in "cC":  # in parts, real and imaginary
            return [2 * step for step in steps], [2 * step for step in walk]
        return steps, walk


def _failure(what: Matrices) -> Callable[[int], BaseException]:
    """What a status of the kernels means."""
    refuse, fail = what.refuse, failed(what.name)

    def failure(code: int) -> BaseException:
        if code == NO_MEMORY or refuse is None:
            return fail(code)
        return refuse(*divmod(LATEST - code, 256))

    return failure
