"""Products on a GPU, of matrices and of what is seen as matrices: operands, words, how work is cut.

A `GridProduct` is a stack of products of an m x k by a k x n matrix. An index along one side of an
operand is taken apart into dims, each with a stride of its own, so that a convolution is a product
too: the rows of its images are found by a window. What is computed is cut in tiles of results; few
tiles of a long depth are cut along the depth too, and a second kernel adds the parts' sums up, in
their order. Which kernel runs, and the order of additions, depend on the shapes and strides, and on
what GPU it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from antorcha.core import dtypes
from antorcha.core.memo import kept
from antorcha.core.structs import replace as changed
from antorcha.core.structs import struct
from antorcha.devices.emit import MOST_KEPT, Unsupported
from antorcha.devices.gpu.frame import (
    THREADS,
    GridPlan,
    GridStep,
    GridTemplate,
    blocks_for,
    planning,
)
from antorcha.devices.gpu.product_bulk import MAP_WORDS, depth_of, product_bulk, shared_bytes
from antorcha.devices.gpu.product_copies import as_multiplied, copy_step
from antorcha.devices.gpu.product_cores import dynamic_bytes, product_cores
from antorcha.devices.gpu.product_operands import (
    GridProduct,
    ProductAxis,
    ProductOperand,
    has_map,
    lies_in_pieces,
    lies_whole,
)
from antorcha.devices.gpu.product_pieces import product_pieces, shared_bytes_at_most
from antorcha.devices.gpu.product_pieces import shared_bytes as pieces_bytes
from antorcha.devices.gpu.product_thin import product_columns, product_dots, product_join
from antorcha.devices.gpu.product_tiles import product_tiles
from antorcha.lang.native import bool_, f32, i32, i64, u32, u64
from antorcha.lang.native.grid import PARAMETER_WORDS, WARP
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.layout import Layout

THIN = 8  # rows, or columns, up to which no tile of results is worth it
SHALLOW = 8  # depth up to which it is not
ENOUGH = 256  # blocks that keep a GPU busy
DEEP_SHARED = 160 << 10  # bytes of a block's shared memory for many stages of two blocks
BULK_WIDTHS = (256, 1.0, 4.0, 4), (128, 0.53, 2.5, 6), (64, 0.5, 1.5, 8)
"""Columns of tiles for warpgroups, what a step and the rest take, stages; the last pays for f32
alone."""
HOPPER = 90  # the compute capability with products by warpgroups
OWN_WORDS = (
    "batch", "m", "n", "k", "each", "parts", "tiles_m", "tiles_n", "a", "b", "out", "bias",
    "alpha", "alpha_im", "beta", "beta_im",
)  # fmt: skip
"""A step's first words: sizes, the depth of a part, parts, tiles, strides from one product of the
stack to the next, weights."""


# ---------------------------------------------------------------------------- what is compiled
@struct
class AxisCode:
    """An axis as a kernel's code sees it, its last dim first: from word ``at`` on stand the sizes
    and strides of its dims."""

    at: int
    dims: int
    sizes: tuple[int, ...]  # where they are known
    spatial: int
    inner: int


@struct
class OperandCode:
    """An operand as a kernel's code sees it; the words of its window begin at ``window``."""

    number: int
    outer: AxisCode
    depth: AxisCode
    spatial: int
    steps: tuple[int, ...]
    window: int
    by_depth: bool
    whole: bool  # do rows of 16 bytes lie together, and begin at multiples of 16 bytes?
    pieces: bool  # does it consist of whole pieces of 16 bytes?
    name: str = ""  # of a factor: the word with its stride in the stack
    side: str = ""  # of a factor: the word with its size beside the depth


@dataclass(frozen=True)
class ProductCut:
    """How a kernel cuts results: rows and columns of a block, depth of a tile, threads; the rest
    is the kernel's own affair."""

    kind: str  # "tiles", "cores", "bulk", "dots", "columns", "join"
    rows: int
    columns: int
    depth: int
    threads: int
    vector: int = 1  # tiles: neighbours in one load of shared memory
    together: int = 0  # tiles, pieces: blocks that a multiprocessor is to run at once
    warps: tuple[int, int] = (1, 1)  # but bulk: along the rows and columns of a tile
    stages: int = 2  # cores, pieces, bulk: tiles in shared memory
    slices: int = 1  # columns: threads that share the depth of a result
    band: int = 8  # rows of tiles that are neighbours in time: they share columns
    parts: int = 0  # bulk: those of the depth


@dataclass
class ProductWords:
    """The words of a step, and what the code knows of them."""

    first: int
    words: list[int] = field(default_factory=list)

    def axis(self, of: ProductAxis) -> AxisCode:
        at = self.first + len(self.words)
        for size, stride in zip(reversed(of.sizes), reversed(of.strides), strict=True):
            self.words += [size, stride]
        known = tuple(reversed(of.sizes[1:])) if of.fixed else ()
        return AxisCode(at, len(of.sizes), known, of.spatial, of.inner)

    def operand(self, of: ProductOperand, itemsize: int, *names: str) -> OperandCode:
        outer, depth = self.axis(of.outer), self.axis(of.depth)
        at, window = self.first + len(self.words), of.window
        if window is not None:
            for k in range(len(window.sizes)):
                self.words += [window.shifts[k], window.sizes[k], window.strides[k]]
        spatial, steps = (len(window.sizes), window.steps) if window else (0, ())
        return OperandCode(
            of.number, outer, depth, spatial, steps, at, of.by_depth, lies_whole(of, itemsize),
            lies_in_pieces(of, itemsize),
            *names,
        )  # fmt: skip


class ProductGrid(GridTemplate):
    """What a product's kernel is compiled for: the operands' types and dims, and the cut."""

    def __init__(
        self, outs: Sequence[Layout], ins: Sequence[Layout], index: Ty, codes: Any, cut: ProductCut,
        split: bool, weights: tuple[bool, bool],
    ) -> None:  # fmt: skip
        super().__init__(outs, ins, index)
        self.a, self.b, self.out, self.bias = codes
        self.cut, self.split = cut, split
        self.has_alpha, self.has_beta = weights
        self.threads = cut.threads
        self.U = u32 if index is i32 else u64
        self.of_bool = self.types[0] is bool_
        self.C = sum_type(self.parts[0] or self.types[0])
        self.planes = 1 if self.parts[0] is None else 2
        self.maps = self.head + split
        self.own = self.maps + (cut.kind == "bulk")
        self.word = {name: self.own + k for k, name in enumerate(OWN_WORDS)}

    def __native_key__(self) -> str:
        codes = (self.a, self.b, self.out, self.bias)
        flags = f"{self.split}{self.has_alpha}{self.has_beta}"
        return f"{self.operands_key()}|{codes}|{self.cut}|{flags}"


def sum_type(ty: Ty) -> Ty:
    """The type in which products of elements are added up."""
    if ty.kind == "f":
        return f32 if ty.half else ty
    if ty.size == 8:
        return ty
    return u32 if ty.kind == "u" else i32


# ------------------------------------------------------------------------------------ planning
def plan_product(
    product: GridProduct, outs: Sequence[Layout], ins: Sequence[Layout],
    cut: ProductCut | None = None,
) -> GridPlan:  # fmt: skip
    """The kernels of a product; ``cut``: the one to use, where it is not to be chosen."""
    if not product.batch * product.m * product.n:
        return GridPlan(())
    dtype = ins[0].dtype
    product = oriented(product)
    alike = all(i.dtype is dtype for i in ins)
    half = alike and dtype.kind == "f" and dtype.itemsize == 2
    single = alike and product.tf32 and dtype is dtypes.float32
    turned, copied = as_multiplied(product) if single else (product, [])
    if cut is None and (half or single) and takes_bulk(turned, dtype.itemsize):
        cut = bulk_cut(turned, dtype.itemsize)
    cut = cut or cut_of(product, dtype, half)
    bulk = cut.kind == "bulk"
    product = turned if bulk else product
    tiles = -(-product.m // cut.rows), -(-product.n // cut.columns)
    blocks = product.batch * tiles[0] * tiles[1]
    each, parts = parts_of(product.k, blocks, cut)
    sums = product.batch * product.m * product.n
    index = index_of(product, sums * parts, outs[0].dtype)
    steps = [product_step(product, outs, ins, cut, index, tiles, each, parts, parts > 1)]
    template = steps[0].static["P"]
    room = [sums * parts * template.planes * template.C.size] if parts > 1 else []
    if bulk:
        room.append(8 * MAP_WORDS * planning.multiprocessors)
    for operand in copied if bulk else ():
        to = len(outs) + len(ins) + len(room)
        copy, nbytes = copy_step(product, operand, ins[operand.number - len(outs)], to)
        operands = [to if k == operand.number else k for k in steps[-1].operands]
        steps = [*steps[:-1], copy, changed(steps[-1], operands=tuple(operands))]
        room.append(nbytes)
    if parts > 1:
        join = ProductCut("join", 1, 1, 1, THREADS)
        steps.append(product_step(product, outs, ins, join, index, tiles, each, parts, True))
    return GridPlan(tuple(steps), tuple(room))


def oriented(product: GridProduct) -> GridProduct:
    """The product whose few results are rows, or whose results' rows lie together."""
    m, n, out = product.m, product.n, product.out
    if min(m, n) <= THIN:
        turn = m > n
    else:
        turn = bool(out.outer.step) and (out.outer.step < out.depth.step or not out.depth.step)
    return product.transposed() if turn else product


def index_of(product: GridProduct, count: int, dtype: Any) -> Ty:
    """The type of offsets and counts."""
    each = [product.a, product.b, product.out, *([product.bias] if product.bias else [])]
    reach = [o.reach + product.batch * abs(o.batch) for o in each]
    wide = max(count, product.k, *reach) * (2 if dtype.kind == "c" else 1) >= 1 << 30
    return i64 if wide else i32


def takes_bulk(product: GridProduct, itemsize: int) -> bool:
    """Is a product one for warpgroups?"""
    large = min(product.m, product.n) > 64 and product.k > SHALLOW
    mapped = has_map(product.a, itemsize) and has_map(product.b, itemsize)
    return large and mapped and planning.capability == HOPPER


def bulk_cut(product: GridProduct, itemsize: int) -> ProductCut:
    """The width of tiles, and the parts of the depth, that take the least time: in units of a step
    along the depth of a wide tile, as an H100 takes it."""
    m, n, batch, line = product.m, product.n, product.batch, depth_of(itemsize)
    steps, tall = -(-product.k // line), batch * -(-m // 128)
    found = []
    for columns, step, rest, stages in BULK_WIDTHS[: 2 if itemsize == 2 else 3]:
        tiles = tall * -(-n // columns)
        for parts in (1, 2, 3, 4, 6, 8):
            turns = -(-tiles * parts // planning.multiprocessors)
            time = turns * (-(-steps // parts) * step + rest)
            time += (6 + parts * batch * m * n / (1 << 18)) * (parts > 1)
            found.append((time, columns, stages, parts))
    _, columns, stages, parts = min(found)
    return ProductCut("bulk", 128, columns, line, 384, stages=stages, parts=parts)


def cut_of(product: GridProduct, dtype: Any, half: bool) -> ProductCut:
    """How the results are cut, where no warpgroups multiply."""
    m, n, k = product.m, product.n, product.k
    if m <= THIN:
        rows = 1 << (m - 1).bit_length()
        if product.b.by_depth and k >= 2 * WARP:
            return ProductCut("dots", rows, THREADS // WARP, 4 * WARP, THREADS)
        return columns_cut(rows, product)
    if k <= SHALLOW:
        return columns_cut(THIN, product)
    tiles = product.batch * -(-m // 128) * -(-n // 128)
    many = min(m, n) > 64 and tiles >= ENOUGH // 2
    factors = product.a, product.b
    if half:
        apart = not all(lies_whole(o, dtype.itemsize) for o in factors)
    else:
        apart = product.tf32 and dtype is dtypes.float32
    if apart and all(lies_in_pieces(o, dtype.itemsize) for o in factors):
        return pieces_cut(product, half)
    if half:
        if many:
            stages = 4 if planning.shared_bytes >= DEEP_SHARED else 2
            return ProductCut("cores", 128, 128, 32, 256, warps=(2, 4), stages=stages)
        return ProductCut("cores", 64, 64, 32, 128, warps=(2, 2), stages=3)
    return tiles_cut(dtype, min(m, n) > 32, tiles if min(m, n) > 64 else 0)


def columns_cut(rows: int, product: GridProduct) -> ProductCut:
    """A thread for a column of few results, or several where there is much to add up."""
    blocks = product.batch * -(-product.m // rows) * -(-product.n // THREADS)
    slices = 8 if product.k >= 64 and blocks < ENOUGH else 1
    return ProductCut("columns", rows, THREADS // slices, 4 * slices, THREADS, slices=slices)


def tiles_cut(dtype: Any, large: bool, tiles: int) -> ProductCut:
    """Tiles of registers: a thread has 8 x 8 results of small numbers where there are many (there
    would be ``tiles``), 8 x 4 where there are few, and fewer of numbers of 8 and 16 bytes."""
    size = max(dtype.itemsize // (2 if dtype.kind == "c" else 1), 4)
    vector = 16 // size
    if dtype.kind == "c" and size == 8:
        return ProductCut("tiles", 32, 32, 8, 128, 1, warps=(2, 2))
    if large and tiles >= ENOUGH // 5 and dtype.itemsize <= 4:
        depth = 16 if tiles > ENOUGH // 2 else 8
        return ProductCut("tiles", 128, 128, depth, 256, vector, 2, (4, 2))
    if large:
        return ProductCut("tiles", 64, 64, 8, 128, vector, warps=(2, 2))
    return ProductCut("tiles", 32, 32, 8, 64, vector, warps=(2, 1))


PIECES = (
    # rows, columns, depth of halves, of f32, threads, blocks together, warps, stages
    (128, 128, 32, 0, 256, 2, (2, 4), 3), (128, 128, 0, 32, 128, 2, (2, 2), 2),
    (64, 256, 32, 16, 256, 2, (1, 8), 3), (256, 64, 32, 16, 256, 2, (8, 1), 3),
    (64, 192, 32, 16, 256, 2, (2, 4), 3), (64, 128, 32, 16, 128, 3, (1, 4), 3),
    (128, 64, 32, 16, 128, 3, (4, 1), 3),
)  # fmt: skip


def pieces_cut(product: GridProduct, half: bool) -> ProductCut:
    """Tiles of pieces: the largest of which there are enough and that waste little. A long depth,
    which is cut in parts, makes up for few tiles."""
    m, n = product.m, product.n
    for rows, columns, of_half, of_single, threads, together, warps, stages in PIECES:
        depth = of_half if half else of_single
        high, wide = -(-m // rows), -(-n // columns)
        little = high * rows * wide * columns <= m * n * 5 // 4
        blocks = product.batch * high * wide * max(product.k // 2048, 1)
        cut = ProductCut("pieces", rows, columns, depth, threads, 1, together, warps, stages)
        room = shared_bytes_at_most(cut, 2 if half else 4) <= planning.shared_bytes
        if depth and little and room and blocks >= ENOUGH // 2:
            return cut
    return ProductCut("pieces", 64, 64, 32 if half else 16, 128, warps=(2, 2), stages=3)


def parts_of(k: int, blocks: int, cut: ProductCut) -> tuple[int, int]:
    """The depth of a part, and how many parts the depth is cut in."""
    least = {"dots": 2048, "columns": 64 * cut.slices, "tiles": 128}.get(cut.kind, 256)
    parts = cut.parts or max(min(ENOUGH // blocks, k // least), 1)
    each = max(-(-k // (parts * cut.depth)), 1) * cut.depth
    return each, max(-(-k // each), 1)


KERNELS: dict[str, Any] = {
    "tiles": product_tiles, "cores": product_cores, "pieces": product_pieces, "dots": product_dots,
    "bulk": product_bulk, "columns": product_columns, "join": product_join,
}  # fmt: skip


def product_step(
    product: GridProduct, outs: Sequence[Layout], ins: Sequence[Layout], cut: ProductCut,
    index: Ty, tiles: tuple[int, int], each: int, parts: int, split: bool,
) -> GridStep:  # fmt: skip
    count = len(outs) + len(ins)
    bulk = cut.kind == "bulk"
    head = count + split + bulk  # (operands are tensors: an address each)
    own = ProductWords(head, own_words(product, outs[0].dtype, tiles, each, parts))
    itemsize = outs[0].itemsize
    codes = (
        own.operand(product.a, itemsize, "a", "m"), own.operand(product.b, itemsize, "b", "n"),
        own.operand(product.out, itemsize),
        None if product.bias is None else own.operand(product.bias, itemsize),
    )  # fmt: skip
    if head + len(own.words) > PARAMETER_WORDS:
        raise Unsupported("operands of many dims")
    weights = product.alpha != 1, product.bias is not None and product.beta != 1
    types = tuple([o.dtype for o in (*outs, *ins)])
    key = types, index, codes, cut, split, weights
    template = kept(
        _templates, key, lambda _: ProductGrid(outs, ins, index, codes, cut, split, weights),
        MOST_KEPT,
    )  # fmt: skip
    blocks = product.batch * parts * tiles[0] * tiles[1]
    if bulk:
        blocks = min(blocks, planning.multiprocessors)
    if cut.kind == "join":
        blocks = blocks_for(product.batch * product.m * product.n)[0]
    return GridStep(
        KERNELS[cut.kind], {"P": template}, blocks_for(blocks, 1), cut.threads,
        tuple(range(head)), tuple(own.words), *needs_of(template),
    )  # fmt: skip


def needs_of(template: ProductGrid) -> tuple[int, int]:
    """The dynamic shared memory and the compute capability that a step needs."""
    cut = template.cut
    if cut.kind == "bulk":
        return shared_bytes(cut), HOPPER
    if cut.kind == "pieces":
        return pieces_bytes(template), 0
    return (dynamic_bytes(template), 0) if cut.kind == "cores" else (0, 0)


def own_words(
    product: GridProduct, dtype: Any, tiles: tuple[int, int], each: int, parts: int
) -> list[int]:
    """The words of OWN_WORDS."""
    bias = 0 if product.bias is None else product.bias.batch
    return [
        product.batch, product.m, product.n, product.k, each, parts, *tiles, product.a.batch,
        product.b.batch, product.out.batch, bias, *weight_words(product.alpha, dtype),
        *weight_words(product.beta, dtype),
    ]  # fmt: skip


def weight_words(number: complex, dtype: Any) -> list[int]:
    """Alpha or beta: two float64 as bits, or an integer where all are integers."""
    number = complex(number)
    if dtype.kind in "iub":
        whole = int(number.real) if dtype.kind != "b" else int(number.real != 0)
        return [(whole + (1 << 63)) % (1 << 64) - (1 << 63), 0]
    bits = np.array([number.real, number.imag], np.float64).view(np.int64)
    return [int(bits[0]), int(bits[1])]


_templates: dict[Any, ProductGrid] = {}
__all__ = ["ProductCut", "plan_product"]
