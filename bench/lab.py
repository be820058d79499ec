"""How long the lab's page takes to follow, measured in Chromium; and what hints and film cost.

A lab is started on an empty folder and used by mouse and keys, as in its tests. A time begins with
the key's or the pointer's event, as the page gets it, and ends when what it asked for stands in the
page's document. Of each, the median of `TIMES`, and the 90th percentile.

What hints and film cost a program is measured in turns with the same program without them, in one
process, by the time in which its thread works.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.lab.learner import Lab, Learner, browser

TIMES = 60
REST = 250  # ms between two: an input is not to wait for the work of the last one
TURNS = 25

TRAIN = """import torch
torch.manual_seed(0)
X = torch.randn(60, 2)
y = (X[:, 0] > X[:, 1]).long()
model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
lr = 1e-1
opt = torch.optim.SGD(model.parameters(), lr)
for step in range(100):
    loss = torch.nn.functional.cross_entropy(model(X), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
"""
SLICE = "import torch\nx = torch.arange(40.0).view(8, 5)\ny = x[3]\nprint(y)\n"
READER = """import torch
from torch import nn
X, y = torch.data.strokes(200)
model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(256, 10))
"""

# Of the next event of a kind: ms until the document, in one place, holds what it asked for.
_CLOCK = """([place, kind, wanted]) => {
  const all = document.querySelector(place);
  let begin = null;
  addEventListener(kind, () => { begin ??= performance.now(); }, {capture: true, once: true});
  window.took = new Promise(done => {
    setTimeout(() => done(null), 5000);
    const watch = new MutationObserver(() => {
      if (begin === null || !all.textContent.includes(wanted)) return;
      watch.disconnect();
      done(performance.now() - begin);
    });
    watch.observe(all, {childList: true, subtree: true, characterData: true});
  });
}"""
# The middle of what stands before a place in the editor's text: [x, y].
_PLACE = """([line, column]) => {
  const editor = getElement(document.querySelector(".lab-editor").id.slice(1)).editor;
  const found = editor.coordsAtPos(editor.state.doc.line(line).from + column);
  return [found.left, (found.top + found.bottom) / 2];
}"""


@dataclass
class Followed:
    """Seconds of one figure, or a share; `bound` and `bound_p90` are the most they may be."""

    name: str
    value: float
    bound: float
    unit: str = "s"
    p90: float | None = None
    bound_p90: float | None = None

    @property
    def reached(self) -> bool:
        """Whether the bounds are kept."""
        return self.value <= self.bound and (self.p90 or 0) <= (self.bound_p90 or float("inf"))


def measure() -> Iterator[Followed]:
    """All figures of this file."""
    with tempfile.TemporaryDirectory() as name:
        lab = Lab(Path(name) / "work")
        try:
            size = {"width": 1280, "height": 800}
            with browser(Path(name) / "profile", viewport=size) as context:
                page = _MeasuredPage(Learner(context.pages[0]), lab.address)
                yield page.one_line()
                yield page.memory()
                yield page.curve()
                yield page.film()
                yield page.pad()
        finally:
            lab.close()
    yield _assignment()
    yield _step()


class _MeasuredPage:
    """The page, and what is measured on it."""

    def __init__(self, learner: Learner, address: str) -> None:
        self._learner = learner
        self._page = learner.page
        learner.open(address)

    def one_line(self) -> Followed:
        """The key that runs ``print(...)``, to the end of the run in the terminal."""
        times: list[float | None] = []
        for number in range(TIMES):
            self._learner.write(f"print('line {number}')\n")
            self._learner.rest()
            times.append(self._time(
                ".lab-terminal .xterm-rows", "keydown",
                lambda: self._page.keyboard.press("Control+Enter"), f"line {number}",
            ))  # fmt: skip
        return _followed("run of one line, to the page", times, 0.045)

    def memory(self) -> Followed:
        """A step of a dragged number, to the drawing of the opened tensor's memory."""
        self._ready(SLICE)
        self._learner.tab("Tensor inspector")
        self._page.click(".lab-row:has(b:text-is('y'))")
        self._page.locator(".lab-detail svg").first.wait_for()
        times = self._drag("x[3", ".lab-detail")
        return _followed("drag, to the drawing of memory", times, 0.070)

    def curve(self) -> Followed:
        """A step of a dragged number, to the curve of the training that it is part of."""
        self._ready(TRAIN)
        self._learner.tab("Loss")
        self._page.locator(".lab-curve").wait_for()
        times = self._drag("1e-1", ".lab-curves")
        return _followed("drag, to the curve of 100 steps run anew", times, 0.080, 0.120)

    def film(self) -> Followed:
        """A move of the film's slider, to the frame."""
        slider = self._page.locator(".lab-film .q-slider__track-container")
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        y = box["y"] + box["height"] / 2
        places = [box["x"] + box["width"] * share for share in (0.2, 0.8, 0.4, 0.6)]
        self._page.mouse.move(box["x"] + box["width"] / 10, y)  # (to where it began, none moves)
        self._page.mouse.down()
        times = [self._move(places[k % 4], y, ".lab-film-frame") for k in range(1, TIMES)]
        self._page.mouse.up()
        return _followed("slider of the film, to the frame", times, 0.045)

    def pad(self) -> Followed:
        """A move of the mouse on the pad, to what the model reads."""
        self._ready(READER)
        self._learner.tab("Your model")
        board = self._page.locator(".lab-pad-board")
        board.wait_for()
        self._page.locator(".lab-pad-read .lab-empty").wait_for()
        board.scroll_into_view_if_needed()
        box = board.bounding_box()
        self._page.mouse.move(box["x"] + 30, box["y"] + 30)
        self._page.mouse.down()
        times: list[float | None] = []
        for k in range(TIMES):
            share = (0.2 + 0.6 * (k % 10) / 10, 0.2 + 0.06 * (k // 10))
            x, y = box["x"] + box["width"] * share[0], box["y"] + box["height"] * share[1]
            times.append(self._move(x, y, ".lab-pad-read"))
        self._page.mouse.up()
        return _followed("pad, to what the model reads", times, 0.025)

    # ---- its hands ------------------------------------------------------------------------------

    def _ready(self, program: str) -> None:
        """Run a program twice: the second time everything is compiled."""
        self._learner.run(program + "#\n")
        self._learner.run(program)

    def _drag(self, number: str, place: str) -> list[float | None]:
        """Take hold of a number and move it to and fro."""
        before, _, _ = self._learner.text().partition(number)
        column = len(before.rpartition("\n")[2]) + len(number)
        x, y = self._page.evaluate(_PLACE, [before.count("\n") + 1, column])
        self._page.mouse.move(x - 30, y)
        self._page.mouse.move(x - 3, y)
        grip = self._page.locator(".lab-grip")
        grip.wait_for(state="visible")
        box = grip.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        self._page.mouse.move(x, y)
        self._page.mouse.down()
        times = [self._move(x + 8 * (1 + k % 3) + 3, y, place) for k in range(TIMES)]
        self._page.mouse.move(x, y)
        self._page.mouse.up()
        self._page.wait_for_timeout(4 * REST)
        return times

    def _move(self, x: float, y: float, place: str) -> float | None:
        return self._time(place, "pointermove", lambda: self._page.mouse.move(x, y))

    def _time(
        self, place: str, kind: str, work: Callable[[], None], wanted: str = ""
    ) -> float | None:
        """Seconds from the next event of that kind to what it changes in a place; None: nothing."""
        self._page.wait_for_timeout(REST)
        self._page.evaluate(_CLOCK, [place, kind, wanted])
        work()
        took = self._page.evaluate("() => window.took")
        return None if took is None else took / 1000


def _followed(
    name: str, times: list[float | None], bound: float, bound_p90: float | None = None
) -> Followed:
    found = [each for each in times if each is not None]
    if len(found) < 0.8 * len(times):
        raise RuntimeError(f"{name}: the page showed {len(found)} of {len(times)}")
    p90 = statistics.quantiles(found, n=10)[-1]
    return Followed(name, statistics.median(found), bound, "s", p90, bound_p90)


# ---- what hints and film cost -------------------------------------------------------------------

_WATCHED = """
import ast, builtins, gc, sys, time
import antorcha as torch
from antorcha.lab import hints
from antorcha.lab.film import Film
from antorcha.optim.optimizer import register_optimizer_step_pre_hook, remove_global_step_hooks
from antorcha.runtime.call import native
native.finish()
gc.freeze()
def run(is_watched):
    tree = ast.parse(sys.argv[1])
    names = {"torch": torch, "time": time, "__builtins__": builtins}
    if is_watched:
        shapes, film = hints.ShapeHints(), Film(lambda: ("loss", 0))
        shapes.add_to(tree)
        setattr(builtins, hints.HOOK, shapes)
        setattr(builtins, hints.SWITCH, shapes.switches)
        register_optimizer_step_pre_hook(film)
    exec(compile(tree, "program.py", "exec"), names)
    remove_global_step_hooks()
    return names["seconds"]
run(False), run(True)  # at first kernels are compiled
turns = [(run(False), run(True)) for _ in range(int(sys.argv[2]))]
print(*[min(times) for times in zip(*turns)])
"""
_ASSIGNED = 10**6
_ASSIGNMENTS = f"""
t = torch.ones(2)
begin = time.thread_time()
for _ in range({_ASSIGNED // 10}):
    a = t; a = t; a = t; a = t; a = t
    a = t; a = t; a = t; a = t; a = t
seconds = time.thread_time() - begin
"""
_STEPS = """
torch.manual_seed(0)
X = torch.randn(256, 2)
y = (X[:, 0] > X[:, 1]).long()
model = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
opt = torch.optim.Adam(model.parameters(), 0.01)
begin = time.thread_time()
for step in range(5000):
    scores = model(X)
    loss = torch.nn.functional.cross_entropy(scores, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
seconds = time.thread_time() - begin
"""


def _assignment() -> Followed:
    off, on = _in_turns(_ASSIGNMENTS)
    seconds = max(on - off, 0.0) / _ASSIGNED
    return Followed("hints, of an assignment at a program's top", seconds, 30e-9)


def _step() -> Followed:
    off, on = _in_turns(_STEPS)
    return Followed("hints and film, of a training step", 100 * (on / off - 1), 5.0, "%")


def _in_turns(code: str) -> tuple[float, float]:
    """Seconds without and with hints and film: the least of the turns."""
    command = [sys.executable, "-c", _WATCHED, code, str(TURNS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    off, on = map(float, done.stdout.split())
    return off, on
