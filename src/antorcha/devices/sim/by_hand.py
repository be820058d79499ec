"""Kernels of one's own on the simulated GPU: ``antorcha.sim.launch``."""

from __future__ import annotations

from typing import Any

import numpy as np

from antorcha.core.lazy import lazy
from antorcha.devices.gpu.frame import GridStep
from antorcha.devices.sim.device import grid_runner, target
from antorcha.devices.sim.streams import current
from antorcha.errors import ArgumentError
from antorcha.lang.native.grid import PARAMETER_WORDS

runner = lazy("antorcha.devices.sim.runner")


def launch(
    kernel: Any, blocks: int | tuple[int, ...], threads: int, *operands: Any, **static: Any
) -> None:
    """Runs a kernel of yours over a grid on ``sim``: ``blocks`` of ``threads`` threads.

    The kernel is a native function of one parameter, ``words: ptr[i64]``. Word k is operand k: the
    address of a tensor's first element, which ``device_pointer(T, words[k])`` makes a pointer, or
    an integer. What stands behind the ``*`` of the kernel is given by name.

    Raises:
        OutOfRange: a thread read or wrote outside of all tensors' memory.
        NativeError: some threads wait at a barrier that others never reach.
        TypeError: an operand is neither a tensor on ``sim`` nor an integer, or the grid has no
            such form.

    >>> from antorcha.lang.native import f32, i64, native, ptr, void
    >>> from antorcha.lang.native.grid import block, device_pointer, thread, threads
    >>> @native
    ... def double(words: ptr[i64]) -> void:
    ...     x, n = device_pointer(f32, words[0]), words[1]
    ...     i = block() * threads() + thread()
    ...     if i64(i) < n:
    ...         x[i] = x[i] + x[i]
    >>> x = torch.arange(5.).to("sim")
    >>> torch.sim.launch(double, 2, 4, x, 5)
    >>> x
    tensor([0., 2., 4., 6., 8.], device='sim')
    """
    grid = (blocks,) if isinstance(blocks, int) else tuple(blocks)
    if not hasattr(kernel, "on_grid"):
        raise ArgumentError(
            f"launch: a kernel is a function with @native above it, not {type(kernel).__name__}"
        )
    if not 1 <= len(grid) <= 3 or not all(type(n) is int and n > 0 for n in grid):
        raise ArgumentError(f"launch: blocks={blocks!r} must be one to three numbers above 0")
    if type(threads) is not int or not 1 <= threads <= runner.MOST_THREADS:
        raise ArgumentError(
            f"launch: threads={threads!r} must be a number from 1 to {runner.MOST_THREADS}"
        )
    if len(operands) > PARAMETER_WORDS:
        raise ArgumentError(f"launch: {len(operands)} operands; at most {PARAMETER_WORDS}")
    words = np.zeros(PARAMETER_WORDS, np.int64)
    given = [_word(k, operand) for k, operand in enumerate(operands)]
    words[: len(given)] = given
    code = kernel.on_grid(target(), threads, **static).addr
    step = GridStep(kernel, static, grid, threads, tuple(range(len(given))))
    current().give(lambda: grid_runner().launch(kernel.__name__, code, words, step))


def _word(k: int, operand: Any) -> int:
    """An operand as a word of the launch."""
    if type(operand) is int:
        return operand
    device = getattr(getattr(operand, "device", None), "type", "")
    if device != "sim":
        where = f"a tensor on {device}" if device else type(operand).__name__
        raise ArgumentError(
            f"launch: operand {k} is {where}; it must be a tensor on sim (x.to('sim')) or an int"
        )
    return int(operand.data_ptr())
