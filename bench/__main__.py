"""``python -m bench [NAMES]``: measure, print a table, write ``bench/results/NAME.json``.

NAMES are groups (eager, everyday, sizes, kernels, operators, train, programs, survey, start, lab)
or parts of row names; without any, everything runs but lab, which needs Chromium and Playwright,
and the survey of all kinds of ops, which takes long: they run by name, the survey also in part
(``survey softmax``). A group's file is written only when the whole group was measured.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from antorcha.cli import info
from antorcha.core.lazy import lazy
from bench import harness, start
from bench.rows import ROWS

GROUPS = (
    "eager", "everyday", "sizes", "kernels", "operators", "train", "programs", "survey", "start",
    "lab",
)  # fmt: skip
lab: Any = lazy("bench.lab")  # (what it needs is not always there)
RESULTS = Path(__file__).parent / "results"


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code tells a target missed only with ``--check``."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", help="groups, or parts of row names")
    parser.add_argument("--list", action="store_true", help="show the rows and measure nothing")
    parser.add_argument("--check", action="store_true", help="exit 1 when a target is missed")
    parser.add_argument("--no-write", action="store_true", help="write no result files")
    options = parser.parse_args(words)
    rows = [row for row in ROWS if _chosen(options.names, row.group, row.name)]
    with_start = not options.names or "start" in options.names
    with_lab = "lab" in options.names
    if not rows and not with_start and not with_lab:
        parser.error(f"no row is called {' or '.join(options.names)}; --list shows them")
    if options.list:
        print("\n".join(f"{row.group:8} {row.name}" for row in rows))
        return 0

    records = _measure_rows(rows)
    if with_start:
        records += _measure_start()
    if with_lab:
        records += _measure_lab()
    if not options.no_write:
        _write(records, options.names)
    missed = [record["name"] for record in records if record["reached"] is False]
    if missed:
        print(f"targets missed: {', '.join(missed)}")
    return 1 if missed and options.check else 0


def _chosen(names: Sequence[str], group: str, row: str) -> bool:
    if group == "survey":
        parts = [name for name in names if name not in GROUPS]
        return group in names and (not parts or any([part in row for part in parts]))
    return not names or any(name == group or (name not in GROUPS and name in row) for name in names)


# ---- measuring ----------------------------------------------------------------------------------


def _measure_rows(rows: Sequence[harness.Row]) -> list[dict[str, Any]]:
    """Measure, and show each row when it is done: a full run takes minutes."""
    if not rows:
        return []
    libraries = harness.libraries()
    table = _table("group", "row", "antorcha", "PyTorch", "floor", "ratio", "target", "")
    records = []
    with Live(table, auto_refresh=False, vertical_overflow="visible") as live:
        for row in rows:
            done = harness.measure(row, libraries)
            records.append(_row_record(done))
            table.add_row(
                row.group,
                row.name,
                _seconds(done.antorcha),
                _seconds(done.pytorch),
                "" if done.floor is None else _seconds(done.floor),
                "" if done.ratio is None else f"{done.ratio:.2f}",
                "" if row.target is None else f"{row.target:g}",
                _verdict(done.reached) or escape(done.problem),
            )
            live.refresh()
    return records


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        number = column in ("antorcha", "PyTorch", "floor", "ratio", "target", "at most")
        table.add_column(column, justify="right" if number else "left", no_wrap=column != "")
    return table


def _row_record(done: harness.Measured) -> dict[str, Any]:
    return {
        "group": done.row.group,
        "name": done.row.name,
        "statement": done.row.statement,
        "antorcha_s": done.antorcha,
        "pytorch_s": done.pytorch,
        "floor_s": done.floor,
        "ratio": None if done.ratio is None else round(done.ratio, 3),
        "target": done.row.target,
        "reached": done.reached,
        "problem": done.problem,
    }


def _measure_start() -> list[dict[str, Any]]:
    table = _table("group", "figure", "antorcha", "PyTorch", "at most", "")
    records = []
    for one in start.measure(info.package_version("torch") is not None):
        table.add_row(
            "start",
            one.name,
            _amount(one.value, one.unit),
            _amount(one.pytorch, one.unit),
            _amount(one.bound, one.unit),
            _verdict(one.reached),
        )
        records.append({"group": "start", **vars(one), "reached": one.reached})
    Console().print(table)
    return records


def _measure_lab() -> list[dict[str, Any]]:
    table = _table("group", "figure", "median", "at most", "p90", "at most", "")
    records = []
    with Live(table, auto_refresh=False, vertical_overflow="visible") as live:
        for one in lab.measure():
            row = [_amount(each, one.unit) for each in (one.value, one.bound, one.p90)]
            last = _amount(one.bound_p90, one.unit), _verdict(one.reached)
            table.add_row("lab", one.name, *row, *last)
            live.refresh()
            records.append({"group": "lab", **vars(one), "reached": one.reached})
    return records


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    return _seconds(value) if unit == "s" else f"{value:.4g} {unit}".rstrip()


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def _verdict(reached: bool | None) -> str:
    return "" if reached is None else "[green]reached[/]" if reached else "[bold red]missed[/]"


# ---- writing ------------------------------------------------------------------------------------


def _write(records: Sequence[dict[str, Any]], names: Sequence[str]) -> None:
    RESULTS.mkdir(exist_ok=True)
    for group in GROUPS:
        rows = [record for record in records if record["group"] == group]
        if rows and (not names or (group in names and set(names) <= set(GROUPS))):
            content = {"machine": _machine(), "rows": rows}
            text = json.dumps(content, indent=1, ensure_ascii=False)
            (RESULTS / f"{group}.json").write_text(text + "\n", encoding="utf-8")


def _machine() -> dict[str, Any]:
    """The machine as a reader needs to know it: its kind, and neither its name nor its paths."""
    found = info.collect()
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "cpu": found["cpu"],
        "threads": harness.THREADS,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "call path": found["antorcha"]["call path"],
        "packages": {
            name: info.package_version(name)
            for name in ("antorcha", "torch", "numpy", "scipy", "llvmlite")
        },
    }


if __name__ == "__main__":
    sys.exit(main())
