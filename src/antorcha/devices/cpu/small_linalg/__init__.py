"""The template of Matrices: stacks of small matrices, as many at a time as a vector has lanes.

Large matrices and complex ones are LAPACK's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core import structs
from antorcha.core.loops import collapse
from antorcha.core.shapes import broadcast_strides
from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.devices.cpu.passes import NO_MEMORY, PassWork, failed, work_of
from antorcha.devices.cpu.small_linalg.cholesky import cholesky_tile
from antorcha.devices.cpu.small_linalg.jacobi import eigen_tile, singular_tile
from antorcha.devices.cpu.small_linalg.lu import determinant_tile, lu_tile, solve_tile
from antorcha.devices.cpu.small_linalg.reflectors import qr_tile
from antorcha.devices.cpu.small_linalg.tiles import LATEST, MatrixTask, MatrixTile, place_lanes
from antorcha.devices.emit import TYPES, Unsupported
from antorcha.lang.kernels import Launch, Matrices
from antorcha.lang.native import address, i64, local, native, ptr, raw, ref, static, void
from antorcha.lang.native.machine import target
from antorcha.runtime.memory.alloc import allocate, release
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.pool import pool_run

MOST = 32
"""Rows and columns of the largest matrix."""
MOST_RIGHT = 64
"""Columns of the widest right side."""
FEW = 4
"""Of fewer matrices vectors come from LAPACK, with the signs that it happens to give them:
rotations give others, and would leave most lanes idle."""


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
def _lu_room(m: int, n: int, right: int) -> int:
    return m * n + min(m, n)


def _square_room(m: int, n: int, right: int) -> int:
    return n * n


def _solving_room(m: int, n: int, right: int) -> int:
    return n * n + n * right


def _qr_room(m: int, n: int, right: int) -> int:
    return m * n + min(m, n) + m * right


def _eigen_room(m: int, n: int, right: int) -> int:
    return 2 * n * n + n


def _singular_room(m: int, n: int, right: int) -> int:
    return m * n + n * n + 2 * n + m * right


@structs.struct
class MatrixKernel:
    """How a kind of Matrices is computed: by ``body``, a tile at a time.

    ``operands`` has a letter for each operand, the results first: the part of it that belongs to
    one matrix is a (m)atrix, a (v)ector, a (n)umber, a vector of int32 (p)ivots, an int32 (i)nfo,
    or there is none (-). ``room`` counts the elements that a matrix of m rows and n columns needs
    to be worked on, with so many columns of right sides, or of Q. ``flags`` are ``body``'s.
    """

    body: Any
    operands: str
    room: Callable[[int, int, int], int]
    flags: tuple[str, ...] = ()


RANKS = {"m": 2, "v": 1, "p": 1, "n": 0, "i": 0, "-": 0}
KERNELS = {
    "lu": MatrixKernel(lu_tile, "mpim", _lu_room),
    "solve": MatrixKernel(solve_tile, "mmm", _solving_room),
    "solve info": MatrixKernel(solve_tile, "mimm", _solving_room, ("info",)),
    "inverse": MatrixKernel(solve_tile, "mm", _solving_room, ("inverse",)),
    "inverse info": MatrixKernel(solve_tile, "mim", _solving_room, ("info", "inverse")),
    "cholesky": MatrixKernel(cholesky_tile, "mm", _square_room),
    "cholesky info": MatrixKernel(cholesky_tile, "mim", _square_room, ("info",)),
    "determinant": MatrixKernel(determinant_tile, "nm", _square_room),
    "logarithm": MatrixKernel(determinant_tile, "nnm", _square_room, ("logarithm",)),
    "qr": MatrixKernel(qr_tile, "mmm", _qr_room, ("q",)),
    "r": MatrixKernel(qr_tile, "-mm", _qr_room),
    "eigh": MatrixKernel(eigen_tile, "vmm", _eigen_room),
    "eigh upper": MatrixKernel(eigen_tile, "vmm", _eigen_room, ("upper",)),
    "svd": MatrixKernel(singular_tile, "mvmm", _singular_room),
    "svd wide": MatrixKernel(singular_tile, "mvmm", _singular_room, ("wide",)),
}


def compile_matrices(what: Matrices, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    a, kind = ins[0], what.kind
    m, n = [a.shape[d] for d in (-2, -1)]
    if kind == "svd" and m < n:
        kind, m, n = "svd wide", n, m
    how = KERNELS.get(kind)
    if how is None or a.dtype.name not in ("float32", "float64") or not a.numel:
        raise Unsupported
    right, count = _right(kind, what, n, outs), a.numel // (m * n)
    if m > MOST or n > MOST or right > MOST_RIGHT:
        raise Unsupported
    if how.body in (eigen_tile, singular_tile) and count < FEW:
        raise Unsupported
    T, layouts, batch = TYPES[a.dtype.name], [*outs, *ins], tuple(a.shape[:-2])
    W = max(target().vector_bits // 8 // T.size, 4)
    placed = [
        _placed(what, layout, part, a, k < len(outs))
        for k, (layout, part) in enumerate(zip(layouts, how.operands, strict=True))
    ]
    sizes, walks = collapse(batch, [walk for _, walk in placed])
    grain = max(4096 // (m * n * n), 1)
    words = [count, m, n, right, how.room(m, n, right), grain, len(sizes)]
    for steps, _ in placed:
        words += steps
    for d in reversed(range(len(sizes))):
        words += [sizes[d], *[walk[d] for walk in walks]]
    flags = how.flags if what.refuse is None else (*how.flags, "check")
    options = {"BODY": how.body, "T": T, "W": W, "OPS": len(layouts), "FLAGS": flags}
    kernel = NativeKernel(matrices_kernel, options, tuple(words), _failure(what), a.numel * n)
    return compile_native(what, kernel, outs, ins)


def _right(kind: str, what: Matrices, n: int, outs: Sequence[Layout]) -> int:
    """The columns of the right sides, of Q, which are the rows of R, or of U."""
    if kind in ("solve", "solve info"):
        return 1 if what.vectors else outs[0].shape[-2 if what.transposed else -1]
    if kind in ("qr", "r"):
        return outs[1].shape[-2]
    if kind in ("svd", "svd wide"):
        return outs[0].shape[-1] if kind == "svd" else outs[2].shape[-2]
    return n


def _placed(
    what: Matrices, layout: Layout, part: str, a: Layout, result: bool
) -> tuple[list[int], Sequence[int]]:
    """How a matrix of an operand lies, [row step, column step], and the operand's steps along the
    stack's dims."""
    batch = tuple(a.shape[:-2])
    if part == "-":
        return [0, 0], (0,) * len(batch)
    if layout.dtype.name != ("int32" if part in "pi" else a.dtype.name):
        raise Unsupported  # a result that is cast
    column = part == "m" and what.vectors and layout is not a
    cut = layout.ndim - RANKS[part] + column
    own, strides = tuple(layout.shape[:cut]), layout.strides
    if own != batch and (result or len(own) > len(batch)):
        raise Unsupported  # the right sides' stack is larger than the matrices'
    steps = [0, 0, *strides[cut:]][-2:]
    if column:
        steps = [strides[-1], 0]
    elif part == "m" and what.transposed:
        steps = [steps[1], steps[0]]
    return steps, broadcast_strides(own, strides[:cut], batch)


def _failure(what: Matrices) -> Callable[[int], BaseException]:
    """What a status of the kernels means."""
    refuse, fail = what.refuse, failed(what.name)

    def failure(code: int) -> BaseException:
        if code == NO_MEMORY or refuse is None:
            return fail(code)
        return refuse(*divmod(LATEST - code, 256))

    return failure
