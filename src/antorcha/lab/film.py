"""A training as a film: what the parameters and their gradients were, step by step.

Before each step of an optimizer its parameters are noted, and the gradients that they are about to
follow; of large ones a sample. Where that grows too long or too large, every second frame goes, and
only every second step is noted from then on; where noting has taken more than its share of time,
steps are passed over. After the last step comes one more frame: what the training arrived at.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import thread_time
from typing import Any

from antorcha.core import modes
from antorcha.core.lazy import Array, np
from antorcha.inspector.reading import Elements
from antorcha.inspector.tensor import html
from antorcha.inspector.tensor.grids import HeatMap, heat_map
from antorcha.inspector.tensor.words import WordTable
from antorcha.lab import plane
from antorcha.nn.module import Module
from antorcha.profiler import session as profiling
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.interop import from_numpy

FRAMES = 400  # at most
BYTES = 16 << 20  # that all of them may take
SHARE = 0.01  # of the time in which the program's thread works, at most, goes into noting
FREE = 0.001  # seconds of noting that any program may take
PASSED = 16  # steps that are passed over, at least, where it was too slow
SIDE = 48  # rows and columns of the sample of a large parameter


@dataclass(frozen=True)
class FilmFrame:
    """One moment: how many steps were done, the value of which curve it belongs to, and the arrays
    of each parameter and of its gradient, by number."""

    step: int
    curve: tuple[str, int]
    weights: dict[int, Array]
    gradients: dict[int, Array]

    @property
    def nbytes(self) -> int:
        """What it takes."""
        return sum([array.nbytes for array in (*self.weights.values(), *self.gradients.values())])


class Film:
    """The film of one run; calling it notes the moment before an optimizer's step.

    Args:
        newest: gives the name and the step of the loss that was noted last.
    """

    def __init__(self, newest: Callable[[], tuple[str, int]]) -> None:
        self.frames: list[FilmFrame] = []
        self.count = 0  # steps done
        self._newest = newest
        self._numbers: dict[int, int] = {}  # id of a parameter -> its number
        self._parameters: list[weakref.ref[Tensor]] = []
        self._stride = 1
        self._next = 0  # the step that is noted next
        self._bytes = 0
        self._begin = thread_time()
        self._spent = 0.0
        self._last: Any = None  # the optimizer that stepped last
        self._resists = False

    def __call__(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """A step is about to be made."""
        count = self.count
        self.count = count + 1
        self._last = optimizer
        if count < self._next or self._resists or profiling.running is not None:
            return
        begin = thread_time()
        late = self._spent > FREE + SHARE * (begin - self._begin)
        if not late:
            self._note(count, optimizer)
            self._spent += thread_time() - begin
        after = count + (PASSED if late else 1)
        self._next = -(-after // self._stride) * self._stride

    def finish(self) -> None:
        """The program is over: note what the training arrived at."""
        if self.frames and self._last is not None and not self._resists:
            self._note(self.count, self._last)
        self._last = None

    def clear(self) -> None:
        """Forget it."""
        self.frames.clear()
        self._last = None

    # ---- noting ---------------------------------------------------------------------------------

    def _note(self, count: int, optimizer: Any) -> None:
        try:
            frame = self._frame(count, optimizer)
        except Exception:  # an optimizer of the learner's, a parameter whose memory is gone
            self._resists = True
            return
        self.frames.append(frame)
        self._bytes += frame.nbytes
        while len(self.frames) > 2 and (len(self.frames) > FRAMES or self._bytes > BYTES):
            del self.frames[1:-1:2]
            self._stride *= 2
            self._bytes = sum([frame.nbytes for frame in self.frames])

    def _frame(self, count: int, optimizer: Any) -> FilmFrame:
        weights, gradients = {}, {}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                layout = parameter._layout
                if layout.device.type != "cpu":
                    continue
                number = self._number(parameter)
                weights[number] = _sample(parameter)
                gradient = parameter.grad
                if isinstance(gradient, Tensor) and gradient._layout.shape == layout.shape:
                    gradients[number] = _sample(gradient)
        return FilmFrame(count, self._newest(), weights, gradients)

    def _number(self, parameter: Tensor) -> int:
        number = self._numbers.get(id(parameter))
        if number is None or self._parameters[number]() is not parameter:
            number = self._numbers[id(parameter)] = len(self._parameters)
            self._parameters.append(weakref.ref(parameter))
        return number

    # ---- telling --------------------------------------------------------------------------------

    def as_dict(self, names: dict[str, Any]) -> dict[str, Any]:
        """What can be looked at: the frames' steps, their places in curves, the parameters."""
        if len(self.frames) < 2:
            return {}
        return {
            "steps": [frame.step for frame in self.frames],
            "curves": [list(frame.curve) for frame in self.frames],
            "names": self.names(names),
        }

    def names(self, namespace: dict[str, Any]) -> list[str]:
        """What the parameters are called in the program, by number."""
        found: dict[int, str] = {}
        for name, value in list(namespace.items()):
            if isinstance(value, Module):
                for inner, parameter in value.named_parameters():
                    found.setdefault(id(parameter), f"{name}.{inner}")
            elif isinstance(value, Tensor):
                found.setdefault(id(value), name)
        return [
            found.get(id(parameter()), "") or f"#{number}"
            for number, parameter in enumerate(self._parameters)
        ]

    def draw(
        self,
        index: int,
        number: int,
        lang: str,
        headings: tuple[str, str, str, str],
        namespace: dict[str, Any],
    ) -> str:
        """One parameter in one frame, as HTML; `headings`: of the values, of the gradient, of the
        histogram, of the plane (where the program has one). Colours mean the same in all frames."""
        frame = self.frames[index]
        parts = []
        for heading, kind in zip(headings, ("weights", "gradients")):
            array = getattr(frame, kind).get(number)
            if array is not None:
                elements = Elements(from_numpy(array))
                parts.append((heading, elements, self._coloured(heat_map(elements), kind, number)))
        picture = self._plane(frame, namespace, headings[3])
        return html.panels(parts, headings[2], WordTable(lang), (headings[3], picture))

    def _plane(self, frame: FilmFrame, namespace: dict[str, Any], label: str) -> str:
        """The plane of a network of two inputs in that frame; "" where there is none."""
        found = plane.find(namespace)
        if found is None:
            return ""
        name, drawing = found
        numbers = {inner: number for number, inner in enumerate(self.names(namespace))}
        parameters = {}
        for inner, parameter in drawing.module.named_parameters():
            array = frame.weights.get(numbers.get(f"{name}.{inner}", -1))
            if array is None or array.shape != tuple(parameter._layout.shape):
                return ""  # it was not trained, or is so large that a sample was noted
            parameters[inner] = from_numpy(array)
        try:
            return drawing.draw(parameters, label)
        except Exception:  # the learner's module takes something else
            return ""

    def _coloured(self, heat: HeatMap, kind: str, number: int) -> HeatMap:
        """A heat map with colours from the lowest to the highest value of all frames."""
        arrays = [getattr(frame, kind).get(number) for frame in self.frames]
        finite = [each[np.isfinite(each)] for each in arrays if each is not None]
        ends = [(float(each.min()), float(each.max())) for each in finite if each.size]
        if heat.extent is None or not ends:
            return heat
        extent = min([low for low, _ in ends]), max([high for _, high in ends])
        return replace(heat, extent=extent)


def _sample(tensor: Tensor) -> Array:
    """A copy of the values; of many, those of some rows and columns."""
    layout = tensor._layout
    is_small = layout.numel <= SIDE * SIDE
    if is_small and layout.contiguous and not modes.busy:  # by far the most: one copy of the bytes
        size, begin = layout.itemsize, tensor._offset * layout.itemsize
        held = bytearray(memoryview(tensor._storage)[begin : begin + layout.numel * size])
        return np.ndarray(layout.shape, layout.dtype.np, held)
    elements = Elements(tensor)
    shape = layout.shape
    if is_small:
        steps = [1] * len(shape)
    else:
        steps = [max(-(-size // SIDE), 1) for size in shape]
        for place in range(len(shape) - 2):  # of kernels and the like, the first
            steps[place] = max(shape[place], 1)
    return np.array(elements.thinned(steps))
