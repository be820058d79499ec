"""Products as a GPU sees them: operands through their strides, and how these lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from antorcha.core.loops import collapse


@dataclass(frozen=True)
class ProductAxis:
    """A side of an operand: an index along it is that of an element of dims in row-major order.

    The last ``spatial`` dims but ``inner`` move a window: their strides are what a step adds to its
    place along each spatial dim. ``fixed``: the sizes, but the first, are known when the kernel is
    compiled.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    fixed: bool = False
    spatial: int = 0
    inner: int = 0

    @property
    def reach(self) -> int:
        """The largest offset along it, at most."""
        return sum([abs(s) * max(n - 1, 0) for n, s in zip(self.sizes, self.strides, strict=True)])

    @property
    def step(self) -> int:
        """How far neighbours along it lie apart."""
        moves = [abs(s) for n, s in zip(self.sizes, self.strides, strict=True) if n > 1]
        return moves[-1] if moves else 0


@dataclass(frozen=True)
class ProductWindow:
    """Where the elements of an operand lie along spatial dims, in the order of the axes' dims.

    A place is what both axes add up to, plus ``shifts``, divided by ``steps``; the operand is zero
    where that leaves a rest, and outside of ``sizes``.
    """

    shifts: tuple[int, ...]
    steps: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def reach(self) -> int:
        return sum([abs(s) * n for n, s in zip(self.sizes, self.strides, strict=True)])


@dataclass(frozen=True)
class ProductOperand:
    """An operand, number ``number`` of the description's: rows (or columns) and depth of a factor,
    rows and columns of the results and of what is added to them."""

    number: int
    batch: int  # stride from one product of the stack to the next
    outer: ProductAxis
    depth: ProductAxis
    window: ProductWindow | None = None
    reads_depth: bool | None = None  # is it to be read along its depth? (else its strides say so)

    @property
    def by_depth(self) -> bool:
        """Do neighbours along the depth lie closer together than those along the other side?"""
        if self.reads_depth is not None:
            return self.reads_depth
        if not self.depth.step or not self.outer.step:
            return bool(self.depth.step)
        return self.depth.step < self.outer.step

    @property
    def reach(self) -> int:
        return self.outer.reach + self.depth.reach + (self.window.reach if self.window else 0)


@dataclass(frozen=True)
class GridProduct:
    """``out[z, m, n] = alpha * sum_k a[z, m, k] * b[z, k, n] + beta * bias[z, m, n]``."""

    batch: int
    m: int
    n: int
    k: int
    a: ProductOperand
    b: ProductOperand
    out: ProductOperand
    bias: ProductOperand | None = None
    alpha: complex = 1.0
    beta: complex = 1.0
    tf32: bool = False  # may factors of float32 be rounded to TF32?

    def transposed(self) -> GridProduct:
        """The same with rows for columns."""
        return replace(
            self, m=self.n, n=self.m, a=self.b, b=self.a, out=_turned(self.out),
            bias=None if self.bias is None else _turned(self.bias),
        )  # fmt: skip


def _turned(operand: ProductOperand) -> ProductOperand:
    return replace(operand, outer=operand.depth, depth=operand.outer)


def axis(sizes: Sequence[int], strides: Sequence[int]) -> ProductAxis:
    """An axis over dims that move no window."""
    shape, columns = collapse(sizes, [strides])
    return ProductAxis(tuple(shape), tuple(columns[0]))


def lies_whole(of: ProductOperand, itemsize: int) -> bool:
    """Is an operand a matrix whose rows lie in one piece, at multiples of 16 bytes?"""
    inner, other = (of.depth, of.outer) if of.by_depth else (of.outer, of.depth)
    one = len(inner.sizes) == 1 and inner.strides == (1,) and of.window is None
    return one and all(s * itemsize % 16 == 0 for s in (*other.strides, of.batch))


def lies_in_pieces(of: ProductOperand, itemsize: int) -> bool:
    """Is an operand made of whole pieces of 16 bytes, each of which a window sees or not at all?"""
    inner, other = (of.depth, of.outer) if of.by_depth else (of.outer, of.depth)
    piece = 16 // itemsize
    apart = [*inner.strides[:-1], *other.strides, of.batch]
    if of.window is not None:
        moves = inner.spatial, other.spatial
        apart = [of.batch, *of.window.strides]
        for side, spatial in zip((inner, other), moves, strict=True):
            last = len(side.sizes) - side.inner
            apart += [
                s for d, s in enumerate(side.strides)
                if not last - spatial <= d < last and (side is other or d < len(side.sizes) - 1)
            ]  # fmt: skip
        if inner.spatial and not inner.inner:
            return False
    one = bool(inner.sizes) and inner.strides[-1] == 1 and inner.sizes[-1] % piece == 0
    return one and not any(s % piece for s in apart)


def has_map(of: ProductOperand, itemsize: int) -> bool:
    """Can a tensor map say where an operand lies: rows in one piece, one step apart, at multiples
    of 16 bytes?"""
    inner, other = (of.depth, of.outer) if of.by_depth else (of.outer, of.depth)
    if len(other.sizes) != 1 or not 0 < other.strides[0] * itemsize < 1 << 40:
        return False
    return lies_whole(of, itemsize) and of.batch >= 0 and inner.sizes[0] < 1 << 31
