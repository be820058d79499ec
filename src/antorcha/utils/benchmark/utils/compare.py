"""``Compare``: measurements as tables, one for each label; rows are the sub-labels (below their
number of threads), columns the descriptions."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any, TypeAlias

from antorcha.errors import ValueRangeError, explain_missing
from antorcha.utils.benchmark.utils.common import (
    Measurement,
    magnitude,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)

__all__ = ["Colorize", "Compare"]

_BEST, _GOOD, _BAD, _VERY_BAD = "\033[92m", "\033[34m", "\033[2m\033[91m", "\033[31m"
_BOLD, _END = "\033[1m", "\033[0m"
Row: TypeAlias = "list[Measurement | None]"


class Colorize(enum.Enum):
    """Among which times the best is looked for."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """Tables of measurements, by ``str`` or ``print()``.

    See https://docs.pytorch.org/docs/stable/benchmark_utils.html#torch.utils.benchmark.Compare.
    """

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim, self._highlight, self._colorize = False, False, Colorize.NONE

    def extend_results(self, results: Iterable[Any]) -> None:
        """Adds measurements."""
        results = list(results)
        for each in results:
            if not isinstance(each, Measurement):
                raise ValueRangeError(
                    f"Expected an instance of `Measurement`, got {type(each)} instead."
                )
        self._results += results

    def trim_significant_figures(self) -> None:
        """Shows no more digits than are certain."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colors the best and the worst of each column, or row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Marks times that vary much."""
        self._highlight = True

    def print(self) -> None:
        """Prints the tables."""
        print(str(self))

    def __str__(self) -> str:
        tables: dict[str | None, list[Measurement]] = {}
        for each in Measurement.merge(self._results):
            tables.setdefault(each.task_spec.label, []).append(each)
        return "\n".join(
            [str(_Table(r, self._colorize, self._trim, self._highlight)) for r in tables.values()]
        )


class _Table:
    """The measurements of one label."""

    def __init__(
        self, results: list[Measurement], colorize: Colorize, trim: bool, highlight: bool
    ) -> None:
        self.results, self.colorize, self.trim, self.highlight = results, colorize, trim, highlight
        self.unit, self.scale = select_unit(min([r.median for r in results]))
        self.columns = ordered_unique([r.task_spec.description for r in results])
        self.keys = ordered_unique([_row_of(r) for r in results])
        self.keys.sort(key=lambda key: key[:2])  # (the statements keep their order)
        self.rows: dict[Any, Row] = {key: [None] * len(self.columns) for key in self.keys}
        for r in results:
            self.rows[_row_of(r)][self.columns.index(r.task_spec.description)] = r

    def __str__(self) -> str:
        formats = [_Format(self, k) for k in range(len(self.columns))]
        names = self._row_names()
        cells = [
            [name, *[form.cell(r) for form, r in zip(formats, self.rows[key], strict=True)]]
            for name, key in zip(names, self.keys, strict=True)
        ]
        head = ["", *[str(c) if c is not None else "" for c in self.columns]]
        widths = [max([len(cell) for cell in column]) for column in zip(head, *cells, strict=True)]
        lines = ["  |  ".join([c.center(w) for c, w in zip(head, widths, strict=True)])]
        width, threads = len(lines[0]), None
        for key, row in zip(self.keys, cells, strict=True):
            if key[0] != threads:
                threads = key[0]
                lines.append(f"{threads} threads: ".ljust(width, "-"))
            lines.append(self._line(key, row, widths))
        label = self.results[0].task_spec.label or ""
        text = f"[{f' {label} '.center(width - 2, '-')}]\n" + "\n".join(lines)
        text += f"\n\nTimes are in {unit_to_english(self.unit)}s ({self.unit}).\n"
        if self.highlight and any([r.has_warnings for r in self.results]):
            text += "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n"
        return text

    def _row_names(self) -> list[str]:
        """Where there are several environments, each is named in its first row."""
        envs = {_row_of(r)[1] for r in self.results}
        room = max([len(env) for env in envs]) + 4 if len(envs) > 1 else 4
        names, before = [], None
        for key in self.keys:
            shown = f"({key[1]})" if len(envs) > 1 and key[:2] != before else ""
            names.append("  " + shown.ljust(room) + key[2])
            before = key[:2]
        return names

    def _line(self, key: Any, row: list[str], widths: list[int]) -> str:
        parts = [row[0].ljust(widths[0])]
        for k, (cell, width) in enumerate(zip(row[1:], widths[1:], strict=True)):
            r, cell = self.rows[key][k], cell.center(width)
            parts.append(cell if r is None else self._colored(cell, r.median, key, k))
        return "  |  ".join(parts)

    def _colored(self, cell: str, value: float, key: Any, k: int) -> str:
        if self.colorize is Colorize.NONE:
            return cell
        if self.colorize is Colorize.ROWWISE:
            among: Row = self.rows[key]
        else:
            among = [self.rows[each][k] for each in self.keys if each[0] == key[0]]
        best = min([r.median for r in among if r is not None])
        if value <= best * 1.01 or value <= best + 100e-9:
            return _BEST + _BOLD + cell + _END * 2
        if value <= best * 1.1:
            return _GOOD + _BOLD + cell + _END * 2
        if value >= best * 5:
            return _VERY_BAD + _BOLD + cell + _END * 2
        return _BAD + cell + _END * 2 if value >= best * 2 else cell


def _row_of(r: Measurement) -> tuple[int, str, str]:
    return r.task_spec.num_threads, r.task_spec.env or "Unspecified env", r.as_row_name


class _Format:
    """How the numbers of a column are written: all with as many decimals as one of them needs."""

    def __init__(self, table: _Table, k: int) -> None:
        self.table = table
        results = [r for row in table.rows.values() if (r := row[k]) is not None]
        self.warns = table.highlight and any([r.has_warnings for r in results])
        digits = [magnitude(r.median / table.scale) for r in results]
        self.decimals = 1
        if table.trim:
            certain = [r.significant_figures for r in results]
            self.decimals = min([max(c - d, 0) for c, d in zip(certain, digits, strict=True)])
        self.width = max(digits) + self.decimals + bool(self.decimals)

    def cell(self, r: Measurement | None) -> str:
        """A time; blanks where nothing was measured."""
        if r is None:
            return " " * (max(self.width, len(f"{1:.{self.decimals}f}")) + 7 * self.warns)
        value = r.median / self.table.scale
        if self.table.trim:
            value = trim_sigfig(value, r.significant_figures)
        spread = f" (! {r.iqr / r.median * 100:.0f}%)" if self.warns and r.has_warnings else ""
        return f"{value:>{self.width}.{self.decimals}f}" + (f"{spread:>7}" if self.warns else "")


explain_missing("torch.utils.benchmark.utils.compare", globals())
