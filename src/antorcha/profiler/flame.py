"""Flame graphs: where the time went, as a picture without a script.

Each box is a call, as wide as its share of the time; what it called stands on top of it, the
busiest first. With ``with_stack=True`` the boxes are the lines of the program, then the op, then
its kernels; else what ran inside of what. A line that calls itself again and again (a recursion) is
one box. Brendan Gregg, "The Flame Graph", CACM 59(6), 2016.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from antorcha.inspector import theme
from antorcha.inspector.explain.site import libraries
from antorcha.inspector.forms import escaped
from antorcha.inspector.vocabulary import Vocabulary
from antorcha.profiler.events import EventList, FunctionEvent, time_text
from antorcha.profiler.names import FURTHER_OUT

WIDTH, ROW, EDGE, TOP = 1200, 19, 10, 44
LETTER = 6.7  # width of a letter of 11 pixels, in a typeface of one width
LEAST = 0.3  # pixels: narrower boxes are left out
DEEPEST = 64  # rows: a picture that fits two screens; what lies deeper is counted only
RULES = (
    f".flame text{{font:11px {theme.MONO};fill:var(--ant-fg);pointer-events:none}}"
    f".flame .head{{font:600 14px {theme.SANS}}}"
    f".flame .word{{font:12px {theme.SANS};fill:var(--ant-muted)}}"
    ".flame .paper{fill:var(--ant-bg)}"
    ".flame .box{stroke:var(--ant-bg);fill-opacity:.55;rx:2}"
    ".flame g:hover>.box{stroke:var(--ant-fg)}"
    ".flame .stack{fill:#e2711d}.flame .op{fill:#efb036}.flame .back{fill:#4f93d8}"
    ".flame .user{fill:#5fb25c}.flame .kernel{fill:#d94b3d}.flame .rest{fill:#8b93a3}"
)
"""One set of colours, half transparent, does for both backgrounds."""
_KINDS = ("stack", "user", "op", "back", "kernel")


class FlameWords(Vocabulary):
    """What a flame graph says."""

    asked_by = "flame_graph"
    table = {  # noqa: RUF012
        "title": ("Where the time went", "En qué se fue el tiempo"),
        "label": ("Flame graph: {0}", "Gráfico de llamas: {0}"),
        "nothing": ("nothing was recorded", "no se anotó nada"),
        "all": ("all", "todo"),
        "event": ("{0} in 1 event", "{0} en 1 evento"),
        "events": ("{0} in {1} events", "{0} en {1} eventos"),
        "cut": ("; of {0} levels the upper {1} are left out",
                "; de {0} niveles faltan los {1} de arriba"),
        "call": ("1 call", "1 llamada"),
        "calls": ("{0} calls", "{0} llamadas"),
        "deep": (", {0} levels deep", ", {0} niveles de profundidad"),
        "stack": ("a line of source", "una línea del programa"),
        "user": ("a named block", "un bloque con nombre"),
        "op": ("an op", "una operación"),
        "back": ("a step of backward", "un paso hacia atrás"),
        "kernel": ("a kernel", "un kernel"),
    }  # fmt: skip


class _Box:
    """A call, or several by one name in one place."""

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind
        self.time = 0.0
        self.count = 0
        self.levels = 1  # that it stands for: of a recursion, how deep it went
        self.inner: dict[tuple[str, str], _Box] = {}

    def within(self, name: str, kind: str) -> _Box:
        box = self.inner.get((name, kind))
        if box is None:
            box = self.inner[name, kind] = _Box(name, kind)
        return box


def flame_graph(events: EventList, title: str = "", *, lang: str = "en") -> str:
    """The flame graph of a profile's events, as a self-contained SVG, in English or Spanish.

    >>> with torch.profiler.profile() as prof:
    ...     y = torch.ones(100) * 2
    >>> torch.profiler.flame_graph(prof.events()).startswith("<svg")
    True
    """
    words = FlameWords(lang)
    whole = _collect(events, words("all"))
    summary = _summary(whole, _depth(whole), words)
    depth = _depth(whole)
    rows = min(depth, DEEPEST)
    height = TOP + rows * ROW + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ant flame" viewBox="0 0 {WIDTH} {height}" '
        f'width="100%" style="min-width: 760px" role="img" '
        f'aria-label="{escaped(words("label", summary))}">',
        theme.style(RULES),
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
        f'<text class="head" x="{EDGE}" y="24">{escaped(title or words("title"))}</text>',
        f'<text class="word" x="{WIDTH - EDGE}" y="24" text-anchor="end">{escaped(summary)}</text>',
    ]
    if whole.time > 0:
        scale = (WIDTH - 2 * EDGE) / whole.time
        parts += _draw(whole, EDGE, 0, rows, scale, whole.time, words)
    parts += _legend(whole, height - 14, words)
    return "\n".join([*parts, "</svg>\n"])


def _summary(whole: _Box, depth: int, words: FlameWords) -> str:
    if not whole.count:
        return words("nothing")
    text = words("event" if whole.count == 1 else "events", time_text(whole.time), whole.count)
    return text + words("cut", depth, depth - DEEPEST) if depth > DEEPEST else text


def _depth(whole: _Box) -> int:
    """Levels of boxes on each other; without recursion, as there can be thousands."""
    deepest, todo = 1, [(whole, 1)]
    while todo:
        box, level = todo.pop()
        deepest = max(deepest, level)
        todo += [(inner, level + 1) for inner in box.inner.values()]
    return deepest


# ---- what stands on what
def _collect(events: EventList, all_word: str) -> _Box:
    whole = _Box(all_word, "rest")
    by_lines = any([event.stack for event in events])
    own: dict[int, list[FunctionEvent]] = {}
    for kernel in events.kernels:
        if kernel.cpu_parent is not None:
            own.setdefault(id(kernel.cpu_parent), []).append(kernel)
    orphans = [kernel for kernel in events.kernels if kernel.cpu_parent is None]
    todo = [(e, whole, 0) for e in events if e.cpu_parent is None and not e.is_kernel]
    while todo:
        event, below, lines = todo.pop()
        if event.name == "[memory]":
            continue
        whole.count += 1
        if event.cpu_parent is None:
            whole.time += event.cpu_time_total
        if by_lines:  # the lines between the parent's and this one's
            stack = _from_the_program(event.stack[::-1])
            for line, levels in _folded(stack[lines:]):
                below = below.within(line, "stack")
                below.time += event.cpu_time_total
                below.count += 1
                below.levels = max(below.levels, levels)
            lines = max(lines, len(stack))
        box = below.within(event.key, _kind(event))
        box.time += event.cpu_time_total
        box.count += 1
        for kernel in own.get(id(event), ()):
            inner = box.within(kernel.name, "kernel")
            inner.time += kernel.cpu_time_total
            inner.count += 1
        todo += [(child, box, lines) for child in event.cpu_children]
    for kernel in orphans:
        whole.time += kernel.cpu_time_total
        whole.count += 1
        inner = whole.within(kernel.name, "kernel")
        inner.time += kernel.cpu_time_total
        inner.count += 1
    return whole


def _folded(stack: list[str]) -> Iterator[tuple[str, int]]:
    """Each line, and how many times in a row it is there."""
    for line, same in itertools.groupby(stack):
        yield line, len(list(same))


def _from_the_program(stack: list[str]) -> list[str]:
    """Lines, outermost first, without those of libraries that started the program: a notebook's
    own, say. All of them where the program has none."""
    if stack and stack[0] == FURTHER_OUT:
        return stack
    for k, line in enumerate(stack):
        if not line.startswith(libraries()):
            return stack[k:]
    return stack


def _kind(event: FunctionEvent) -> str:
    if event.is_user_annotation:
        return "user"
    return "back" if event.scope == 1 else "op"


# ---- drawing
def _draw(
    box: _Box, x: float, level: int, rows: int, scale: float, total: float, words: FlameWords
) -> Iterator[str]:
    width = box.time * scale
    if width < LEAST or level >= rows:
        return
    y = TOP + (rows - 1 - level) * ROW
    share = f"{box.time * 100 / total:.1f} %"
    calls = words("call" if box.count == 1 else "calls", box.count)
    what = f"{box.name}: {time_text(box.time)}, {share}, {calls}"
    name = box.name
    if box.levels > 1:
        what += words("deep", box.levels)
        name += f" x {box.levels}"
    yield (
        f'<g><title>{escaped(what)}</title><rect class="box {box.kind}" x="{x:.2f}" y="{y}" '
        f'width="{width:.2f}" height="{ROW - 1}"/>{_label(name, x, y, width)}</g>'
    )
    at = x
    for inner in sorted(box.inner.values(), key=lambda each: -each.time):
        yield from _draw(inner, at, level + 1, rows, scale, total, words)
        at += inner.time * scale


def _label(name: str, x: float, y: int, width: float) -> str:
    room = int((width - 8) / LETTER)
    if room < 3:
        return ""
    text = name if len(name) <= room else name[: room - 2] + ".."
    return f'<text x="{x + 4:.2f}" y="{y + 13}">{escaped(text)}</text>'


def _legend(whole: _Box, y: int, words: FlameWords) -> list[str]:
    """The kinds of boxes that there are."""
    found: set[str] = set()
    todo = [whole]
    while todo:
        box = todo.pop()
        found.add(box.kind)
        todo += box.inner.values()
    parts, x = [], float(EDGE)
    for kind in _KINDS:
        if kind in found:
            word = words(kind)
            parts.append(
                f'<rect class="box {kind}" x="{x:.0f}" y="{y - 11}" width="14" height="14"/>'
            )
            parts.append(f'<text class="word" x="{x + 20:.0f}" y="{y}">{word}</text>')
            x += 44 + 6.6 * len(word)
    return parts
