"""``torch.quasirandom``: Sobol sequences, points that fill the unit cube evenly.

The points without scrambling are SciPy's (`scipy.stats.qmc`, of Joe and Kuo's direction numbers);
scrambling is PyTorch's: the same seed gives the same points.

See https://docs.pytorch.org/docs/stable/generated/torch.quasirandom.SobolEngine.html.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antorcha.core import dtypes
from antorcha.core.lazy import lazy, np
from antorcha.errors import ValueRangeError, explain_missing
from antorcha.ops.random_new import randint
from antorcha.random import Generator
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.interop import from_numpy

if TYPE_CHECKING:
    from scipy.stats import qmc
else:
    qmc = lazy("scipy.stats.qmc")

__all__ = ["SobolEngine"]


class SobolEngine:
    """Draws the points of a Sobol sequence, one after another, each of `dimension` coordinates.

    Args:
        dimension: coordinates of a point, 1 to 21201.
        scramble: scramble the sequence at random (Owen, Journal of Complexity 14, 1998): a random
            linear map of each coordinate's bits, and a random shift.
        seed: of the scrambling; None: the default generator's numbers.

    Raises:
        ValueError: a dimension outside 1 to 21201.

    >>> torch.quasirandom.SobolEngine(dimension=3).draw(3)
    tensor([[0.0000, 0.0000, 0.0000],
            [0.5000, 0.5000, 0.5000],
            [0.7500, 0.2500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueRangeError(
                "SobolEngine: a point has 1 to {most} coordinates, not {dimension}",
                reason="dimension out of range",
                most=self.MAXDIM,
                dimension=dimension,
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.num_generated = 0
        self._shift = np.zeros(dimension, np.int64)
        self._columns: Any = None
        if scramble:
            self._scramble()
        self._points = self._start()

    def draw(self, n: int = 1, out: Any = None, dtype: Any = None) -> Any:
        """The next `n` points, a tensor of shape (n, dimension); None: of the default dtype."""
        points = from_numpy(self._next(n)).to(dtype or dtypes.get_default_dtype())
        points = points * 2.0**-self.MAXBIT
        return points if out is None else out.resize_as_(points).copy_(points)

    def draw_base2(self, m: int, out: Any = None, dtype: Any = None) -> Any:
        """The next ``2 ** m`` points; after them a power of 2 must have been drawn in all."""
        count = 2**m
        total = self.num_generated + count
        if total & (total - 1):
            raise ValueRangeError(
                "SobolEngine.draw_base2: {drawn} points were drawn, and {count} more make {total}, "
                "no power of 2; use {fix}",
                reason="not a power of 2",
                fix=f"draw({count})",
                drawn=self.num_generated,
                count=count,
                total=total,
            )
        return self.draw(count, out, dtype)

    def reset(self) -> SobolEngine:
        """Goes back to the first point."""
        self._points, self.num_generated = self._start(), 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Passes over `n` points."""
        self._points.fast_forward(n)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        scrambled = ", scramble=True" if self.scramble else ""
        seed = "" if self.seed is None else f", seed={self.seed}"
        return f"SobolEngine(dimension={self.dimension}{scrambled}{seed})"

    @property
    def shift(self) -> Tensor:
        """What every coordinate's bits are XORed with: int64, of shape (dimension,)."""
        return from_numpy(self._shift.copy())

    def _start(self) -> Any:
        return qmc.Sobol(self.dimension, scramble=False, bits=self.MAXBIT)

    def _next(self, n: int) -> np.ndarray[Any, Any]:
        """The next points as whole numbers of `MAXBIT` bits."""
        if self.num_generated == 0 and n > 1:  # (SciPy warns of first draws that are no power of 2)
            drawn = np.concatenate([self._points.random(1), self._points.random(n - 1)])
        else:
            drawn = self._points.random(n)
        self.num_generated += n
        points = (drawn * 2**self.MAXBIT).astype(np.int64)
        return self._scrambled(points) ^ self._shift

    def _scrambled(self, points: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The linear map of the bits: the XOR of the columns where a bit is set."""
        if self._columns is None:
            return points
        found = np.zeros_like(points)
        for k in range(self.MAXBIT):  # (the first column belongs to the highest bit)
            found ^= (points >> (self.MAXBIT - 1 - k) & 1) * self._columns[:, k]
        return found

    def _scramble(self) -> None:
        """Draws the shift and the map, in PyTorch's order."""
        generator = None if self.seed is None else Generator().manual_seed(self.seed)
        bits, d = self.MAXBIT, self.dimension
        shift = randint(0, 2, (d, bits), generator=generator).numpy()
        self._shift = shift @ (1 << np.arange(bits))
        lower = np.tril(randint(0, 2, (d, bits, bits), generator=generator).numpy())
        lower[:, range(bits), range(bits)] = 1  # so that no two points become one
        self._columns = (lower * (1 << np.arange(bits)[::-1])[:, None]).sum(1)


explain_missing("torch.quasirandom", globals())
