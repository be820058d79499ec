"""Decompositions of small matrices by LAPACK's functions, which SciPy has: a matrix at a time.

A tile is one matrix, which lies column by column. The functions are called natively: to call one
from Python takes as long as what it does, and holds the interpreter. Their arguments are addresses.
"""

from __future__ import annotations

from functools import cache

from antorcha.core.lazy import imported, lazy
from antorcha.devices.cpu.small_linalg.common import scale_values, scaled_to_one
from antorcha.devices.cpu.small_linalg.tiles import (
    LATEST,
    read_columns,
    write,
    write_columns,
    write_matrices,
)
from antorcha.devices.emit import Unsupported
from antorcha.lang.native import (
    atomic_max,
    func,
    i8,
    i32,
    i64,
    inline,
    local,
    ptr,
    raw,
    reduce_any,
    ref,
    void,
)

ctypes = lazy("ctypes")

eleven_t = func[(void, *[raw] * 11)]
fourteen_t = func[(void, *[raw] * 14)]
LETTERS = {"float32": "s", "float64": "d"}
ALL, SOME, NONE, VECTORS, LOWER, UPPER = [ord(c) for c in "ASNVLU"]


@cache
def function_address(name: str, dtype: str) -> int:
    """Where LAPACK's function of that name is, for numbers of a dtype."""
    capsule = imported("scipy.linalg.cython_lapack").__pyx_capi__[LETTERS[dtype] + name]
    python = ctypes.pythonapi
    get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", python))
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", python)
    )
    signature = get_name(capsule)
    if b" int *," not in signature:
        raise Unsupported  # its integers are of 8 bytes
    return int(get_pointer(capsule, signature))


@inline
def refuse(tile):
    """Notes that LAPACK gave up on a matrix."""
    atomic_max(tile.failed, i64(LATEST) - ((tile.first << 8) + 1))


@inline
def singular_by_lapack(T, W, FLAGS, tile):
    """Operands: U, the singular values and V^T, or the "values" alone, then A."""
    t = tile.task
    m = t.m
    n = t.n
    k = min(m, n)
    thin = t.right == k
    left = k if thin else m
    right = k if thin else n
    a = ptr[T](tile.space)
    s = a + m * n
    u = s + k
    vt = u + m * left
    work = vt + right * n
    whole = ptr[i32](work + (5 * k * k + 8 * k + m + n))
    ints = local(i32, 5)
    ints[0] = i32(m)
    ints[1] = i32(n)
    ints[2] = i32(right)
    ints[3] = i32(5 * k * k + 8 * k + m + n)
    ints[4] = 0
    letter = local(i8)
    letter[0] = i8(NONE) if "values" in FLAGS else (i8(SOME) if thin else i8(ALL))
    read_columns(T, W, tile, 1 if "values" in FLAGS else 3, a, m, n)
    gesdd = ptr[fourteen_t](ref(t.function))[0]
    gesdd(
        raw(letter), raw(ints), raw(ints + 1), raw(a), raw(ints), raw(s), raw(u), raw(ints),
        raw(vt), raw(ints + 2), raw(work), raw(ints + 3), raw(whole), raw(ints + 4),
    )  # fmt: skip
    if ints[4] != 0:
        refuse(tile)
    write(T, W, tile, 0 if "values" in FLAGS else 1, s, i64(1), k)
    if "values" not in FLAGS:
        write_columns(T, W, tile, 0, u, m, m, left)
        write_columns(T, W, tile, 2, vt, right, right, n)


@inline
def eigen_by_lapack(T, W, FLAGS, tile):
    """Operands: the eigenvalues, the eigenvectors unless FLAGS has "values", then A: its lower
    triangle, or "upper"."""
    t = tile.task
    n = t.n
    a = ptr[T](tile.space)
    w = a + n * n
    work = w + n
    whole = ptr[i32](work + (2 * n * n + 6 * n + 1))
    ints = local(i32, 4)
    ints[0] = i32(n)
    ints[1] = i32(2 * n * n + 6 * n + 1)
    ints[2] = i32(5 * n + 3)
    ints[3] = 0
    letters = local(i8, 2)
    letters[0] = i8(NONE) if "values" in FLAGS else i8(VECTORS)
    letters[1] = i8(UPPER) if "upper" in FLAGS else i8(LOWER)
    read_columns(T, W, tile, 1 if "values" in FLAGS else 2, a, n, n)
    syevd = ptr[eleven_t](ref(t.function))[0]
    syevd(
        raw(letters), raw(letters + 1), raw(ints), raw(a), raw(ints), raw(w), raw(work),
        raw(ints + 1), raw(whole), raw(ints + 2), raw(ints + 3),
    )  # fmt: skip
    if ints[3] != 0:
        refuse(tile)
    write(T, W, tile, 0, w, i64(1), n)
    if "values" not in FLAGS:
        write_columns(T, W, tile, 1, a, n, n, n)


@inline
def write_parts(T, W, tile, k, real, imaginary, rows, cols):
    """Matrices that lie column by column to operand k, of complex numbers."""
    steps = tile.steps + 2 * k
    offsets = tile.offsets + k * W
    x = ptr[T](tile.bufs[k])
    write_matrices(
        raw(x), raw(real), rows, offsets, tile.lanes, cols, rows, steps[1], steps[0], T=T, W=W
    )
    write_matrices(
        raw(x + 1), raw(imaginary), rows, offsets, tile.lanes, cols, rows, steps[1], steps[0],
        T=T, W=W,
    )  # fmt: skip


@inline
def general_by_lapack(T, W, FLAGS, tile):
    """Operands: the eigenvalues and eigenvectors, which are complex, then A."""
    t = tile.task
    n = t.n
    a = ptr[T](tile.space)
    v = a + n * n
    values = v + n * n
    others = values + n
    work = others + n
    ints = local(i32, 3)
    ints[0] = i32(n)
    ints[1] = i32(8 * n)
    ints[2] = 0
    letters = local(i8, 2)
    letters[0] = i8(NONE)
    letters[1] = i8(VECTORS)
    read_columns(T, W, tile, 2, a, n, n)
    # (geev scales what is tiny itself, but in some versions does not scale its values back)
    scale, spoilt = scaled_to_one(T, W, a, n * n)
    if reduce_any(spoilt):
        refuse(tile)
        return
    geev = ptr[fourteen_t](ref(t.function))[0]
    geev(
        raw(letters), raw(letters + 1), raw(ints), raw(a), raw(ints), raw(values), raw(others),
        raw(a), raw(ints), raw(v), raw(ints), raw(work), raw(ints + 1), raw(ints + 2),
    )  # fmt: skip
    if ints[2] != 0:
        refuse(tile)
    scale_values(T, W, values, 2 * n, scale)
    write_parts(T, W, tile, 0, values, others, i64(1), n)
    for k in range(n * n):  # the imaginary parts, in the place of A
        a[k] = T(0)
    for j in range(n - 1):
        if others[j] > T(0):  # columns j and j + 1 are the parts of one vector
            for i in range(n):
                part = v[(j + 1) * n + i]
                a[j * n + i] = part
                a[(j + 1) * n + i] = -part
                v[(j + 1) * n + i] = v[j * n + i]
    write_parts(T, W, tile, 1, v, a, n, n)
