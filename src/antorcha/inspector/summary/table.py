"""``antorcha.summary``: the layers of a model, what they make, hold and compute, as a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from antorcha.core.lazy import lazy
from antorcha.errors import ArgumentError
from antorcha.inspector.forms import count_text, escaped, shape_text
from antorcha.inspector.numbers import memory_size
from antorcha.inspector.page import block
from antorcha.inspector.shown import Shown, plain_console
from antorcha.inspector.summary.layers import ForwardPass, LayerCall, run
from antorcha.inspector.summary.multiply_adds import rule_of
from antorcha.nn.module import Module

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

    from antorcha.nn.module import Module

rich_measure = lazy("rich.measure")
rich_markup = lazy("rich.markup")
rich_table = lazy("rich.table")
rich_text = lazy("rich.text")


@dataclass
class LayerRow:
    """One layer: its place in the tree, what it makes, and what it and its parts hold.

    ``params``, ``trainable`` and ``multiply_adds`` are those of the layer with all its parts;
    ``multiply_adds`` is None where nothing has run, and ``unknown`` says that a part of it, counted
    as 0, has no rule. A layer that stands in two places has its numbers at the first (``shared``
    names that place at the others).
    """

    path: str
    name: str
    kind: str
    depth: int
    outputs: list[tuple[int, ...]] = field(default_factory=list)
    params: int = 0
    trainable: int = 0
    multiply_adds: int | None = None
    unknown: bool = False
    calls: int = 0
    parts_ran: bool = False  # a list of layers has no calls of its own
    shared: str | None = None
    lead: str = ""  # the lines of the tree before the name


class Totals(NamedTuple):
    """Of the whole model; memory in bytes. ``outputs`` is what the innermost layers make anew."""

    params: int
    trainable: int
    multiply_adds: int | None
    parameter_bytes: int
    buffer_bytes: int
    input_bytes: int
    outputs: int


def summary(model: Module, *inputs: Any, depth: int | None = None) -> Summary:
    """A table of a model's layers: output shapes, parameters, multiply-adds, memory.

    The model is run once, on tensors without elements where its operations allow it (nothing is
    computed then), else on the inputs, in evaluation mode and outside of any graph. The model, its
    buffers and the random numbers to come are afterwards as they were. Multiply-adds are counted
    from shapes, by a rule per class of layers (``antorcha.inspector.summary.multiply_adds``); what
    a ``forward`` computes outside of layers is not counted.

    Args:
        model (torch.nn.Module): the model
        inputs: what it is called with: tensors, or shapes as tuples of ints (float tensors of that
            shape); without any the model is not run, and the table has its parameters only
        depth (int): the levels of the tree to show below the model; the numbers of what lies
            deeper stand in its parent's row. Default: all

    Raises:
        TypeError: where `model` is no module, or `depth` no number above 0.

    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    >>> table = torch.summary(net, (8, 4))
    >>> [(row.name, row.outputs, row.params) for row in table.rows][1]
    ('0', [(8, 3)], 15)
    >>> table.totals.params, table.totals.multiply_adds
    (19, 120)
    """
    if not isinstance(model, Module):
        raise ArgumentError(
            f"summary: the model must be a torch.nn.Module, not {type(model).__name__}: "
            "summary(model, input)"
        )
    if depth is not None and (type(depth) is not int or depth < 1):
        raise ArgumentError(f"summary: depth must be a whole number above 0, not {depth!r}")
    return Summary(model, run(model, inputs) if inputs else None, depth)


class Summary(Shown):
    """What :func:`summary` found: ``rows``, ``totals``; prints as a table, shows as HTML."""

    rows: list[LayerRow]
    totals: Totals

    def __init__(self, model: Module, passed: ForwardPass | None, depth: int | None) -> None:
        self.on_meta = passed is None or passed.on_meta
        self.ran = passed is not None
        found = _Gathering(model, passed)
        rows, self.unknown = found.rows, found.unknown
        self.totals = _totals(model, passed, rows)
        self.rows = [row for row in rows if depth is None or row.depth <= depth]
        _draw_tree(self.rows)

    # -------------------------------------------------------------------------------------- faces
    def plain(self) -> str:
        """The table, as wide as it needs."""
        table = self._table()
        wide = plain_console(10_000)
        width = max(80, rich_measure.Measurement.get(wide, wide.options, table).maximum)
        console = plain_console(width)
        with console.capture() as captured:
            console.print(table)
        text = "\n".join([line.rstrip() for line in captured.get().splitlines()])
        return text + "\n" + "\n".join(self.footer())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._table()
        yield from self.footer()

    def _repr_html_(self) -> str:
        return self.html()

    def footer(self) -> list[str]:
        """The totals, in words."""
        t = self.totals
        lines = [f"parameters     {t.params:,} ({t.trainable:,} trainable)"]
        if t.multiply_adds is not None:
            more = f", and those of {', '.join(self.unknown)}, unknown" if self.unknown else ""
            lines.append(f"multiply-adds  {count_text(t.multiply_adds)}{more}")
        parts = [(t.parameter_bytes, "parameters"), (t.buffer_bytes, "buffers")]
        if self.ran:
            parts += [(t.input_bytes, "inputs"), (t.outputs, "outputs")]
        listed = [f"{memory_size(count)} {what}" for count, what in parts if count]
        lines.append(f"memory         {memory_size(sum([count for count, _ in parts]))}")
        if len(listed) > 1:
            lines.append(f"               {', '.join(listed)}")
        return lines

    def cells(self, row: LayerRow) -> list[str]:
        """What stands in a row's columns after the first."""
        if row.shared is not None:
            shown = [self._shapes(row), f"as {row.shared}", ""]
        else:
            shown = [self._shapes(row), f"{row.params:,}" if row.params else "-", self._work(row)]
        return shown if self.ran else [shown[1]]

    def _shapes(self, row: LayerRow) -> str:
        if not row.calls:
            idle = self.ran and row.shared is None and not row.parts_ran
            return "not run" if idle else "-"
        shapes = ", ".join([shape_text(shape) for shape in row.outputs[:3]]) or "no tensor"
        more = ", …" if len(row.outputs) > 3 else ""
        return shapes + more + (f"  x{row.calls}" if row.calls > 1 else "")

    def _work(self, row: LayerRow) -> str:
        if row.multiply_adds is None:
            return "-"
        if row.unknown:
            return f"{count_text(row.multiply_adds)} + ?" if row.multiply_adds else "?"
        return count_text(row.multiply_adds) if row.multiply_adds else "-"

    @property
    def columns(self) -> list[str]:
        """The columns' names."""
        if self.ran:
            return ["layer", "output", "parameters", "multiply-adds"]
        return ["layer", "parameters"]

    def _table(self) -> Table:
        table = rich_table.Table(box=None, pad_edge=False, header_style="bold")
        for name in self.columns:
            table.add_column(
                name, justify="left" if name in ("layer", "output") else "right", no_wrap=True
            )
        for row in self.rows:
            name, kind = [rich_markup.escape(each) for each in (row.name, row.kind)]
            first = rich_text.Text.from_markup(f"[dim]{row.lead}[/dim]{name} [dim]{kind}[/dim]")
            table.add_row(first, *[rich_text.Text(cell) for cell in self.cells(row)])
        found: Table = table
        return found

    def html(self) -> str:
        """A self-contained ``<div>``: no script, nothing from outside."""
        head = "".join([f'<th scope="col">{name}</th>' for name in self.columns])
        body = "".join([self._html_row(row) for row in self.rows])
        foot = "".join([f"<div>{escaped(line)}</div>" for line in self.footer()])
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return block(
            f'<div class="wide">{table}</div><div class="foot">{foot}</div>', "Summary of a model"
        )

    def _html_row(self, row: LayerRow) -> str:
        cells = "".join([f"<td>{escaped(cell)}</td>" for cell in self.cells(row)])
        return (
            f'<tr><th scope="row" title="{escaped(row.path or row.name)}">'
            f'<span class="tree">{row.lead}</span>{escaped(row.name)} '
            f'<span class="muted">{escaped(row.kind)}</span></th>{cells}</tr>'
        )


# ----------------------------------------------------------------------------------- gathering
class _Gathering:
    """Walks the tree of modules; each parameter and each module is counted where it comes first."""

    def __init__(self, model: Module, passed: ForwardPass | None) -> None:
        self.passed = passed
        self.rows: list[LayerRow] = []
        self.unknown: list[str] = []  # the layers without a rule
        self.first: dict[int, str] = {}  # module -> where it came first
        self.counted: set[int] = set()  # parameters
        parents: list[LayerRow] = []
        for path, name, module, depth in _tree(model):
            del parents[depth:]
            row = self.row(path, name, module, depth)
            for above in parents if row.calls else ():
                above.parts_ran = True
            parents.append(row)
            self.rows.append(row)
            if row.shared is None:
                self.add(row, module, parents)

    def row(self, path: str, name: str, module: Module, depth: int) -> LayerRow:
        """The row with what stands in it by itself."""
        kind = type(module).__name__ if depth else ""
        row = LayerRow(path, name, kind, depth, shared=self.first.get(id(module)))
        self.first.setdefault(id(module), path or name)
        calls = self.calls(module)
        row.calls = len(calls)
        row.outputs = [tuple(layout.shape) for layout in calls[-1].made] if calls else []
        return row

    def calls(self, module: Module) -> list[LayerCall]:
        return [] if self.passed is None else self.passed.calls.get(id(module), [])

    def add(self, row: LayerRow, module: Module, parents: list[LayerRow]) -> None:
        """Adds the module's own parameters and multiply-adds to its row and to those above."""
        params = trainable = 0
        for param in module._parameters.values():
            if param is not None and id(param) not in self.counted:
                self.counted.add(id(param))
                params += param._layout.numel
                trainable += param._layout.numel if param._rg else 0
        work, unknown = self.work(module)
        if unknown:
            self.unknown.append(row.path or row.name)
        for each in parents:
            each.params += params
            each.trainable += trainable
            if work is not None:
                each.multiply_adds = (each.multiply_adds or 0) + work
            each.unknown |= unknown

    def work(self, module: Module) -> tuple[int | None, bool]:
        """The module's own multiply-adds in all its calls; and are some of them unknown?"""
        if self.passed is None:
            return None, False
        rule, calls = rule_of(module), self.calls(module)
        if rule is None:
            computes = any(param is not None for param in module._parameters.values())
            return 0, bool(calls) and (computes or not module._modules)
        total = 0
        for call in calls:
            total += rule(module, _shapes(call.given), _shapes(call.made))
        return total, False


def _shapes(layouts: list[Any]) -> list[tuple[int, ...]]:
    return [tuple(layout.shape) for layout in layouts]


def _tree(model: Module) -> Iterator[tuple[str, str, Module, int]]:
    """Each module with its path, name and depth, parents first. (A module that contains itself is
    gone into once.)"""
    inside: set[int] = set()
    waiting: list[tuple[str, str, Module, int]] = [("", type(model).__name__, model, 0)]
    while waiting:
        path, name, module, depth = waiting.pop()
        yield path, name, module, depth
        if id(module) in inside:
            continue  # its parts have been listed where it came first
        inside.add(id(module))
        for key, child in reversed(list(module._modules.items())):
            if child is not None:
                waiting.append((f"{path}.{key}" if path else key, key, child, depth + 1))


def _totals(model: Module, passed: ForwardPass | None, rows: list[LayerRow]) -> Totals:
    top = rows[0]
    result = given = 0
    if passed is not None:
        given = sum([layout.numel * layout.itemsize for layout in passed.given])
        for module in model.modules():
            if not any(child is not None for child in module._modules.values()):
                result += sum([call.fresh for call in passed.calls.get(id(module), [])])
    return Totals(
        top.params,
        top.trainable,
        top.multiply_adds,
        sum([p._layout.numel * p._layout.itemsize for p in model.parameters()]),
        sum([b._layout.numel * b._layout.itemsize for b in model.buffers()]),
        given,
        result,
    )


def _draw_tree(rows: list[LayerRow]) -> None:
    """The lines before each name."""
    more: list[bool] = []  # at each depth: does a sibling follow below?
    for row in reversed(rows):
        del more[row.depth + 1 :]
        more += [False] * (row.depth + 1 - len(more))
        bars = ["│  " if more[k] else "   " for k in range(1, row.depth)]
        turn = ("├─ " if more[row.depth] else "└─ ") if row.depth else ""
        row.lead = "".join(bars) + turn
        more[row.depth] = True
