"""The options that say which tests run, as a plugin of pytest.

pytest by itself runs all tests that are not marked slow. ``./run test`` adds ``--quick``: unless
the call names tests, by a path or by one of the options ``NAMING``, those of the quick suite run
(``quick``), in two processes. ``--all`` runs everything; ``--changed`` runs what a change touches
(``changes``). Several processes begin with the longest files (``order``).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.choosing import changes, order, quick
from tests.choosing.graph import Graph

ROOT = Path(__file__).parents[2]
NAMING = ("keyword", "markexpr", "lf", "failedfirst", "newfirst", "stepwise")
"""The options of pytest that name tests, as a path does."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which tests run."""
    group = parser.getgroup("antorcha")
    group.addoption(
        "--all", "--slow", dest="slow", action="store_true", help="run the tests marked slow, too"
    )
    group.addoption("--exhaustive", action="store_true", help="run the sweeps of all floats, too")
    group.addoption(
        "--quick", action="store_true",
        help="where no test is named, run the quick suite (./run test gives this option)",
    )  # fmt: skip
    group.addoption(
        "--changed", nargs="?", const="HEAD", metavar="REVISION",
        help="run the tests that the changes since a git revision touch (default: HEAD)",
    )  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Settles which tests run, before pytest-xdist starts its processes."""
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    option = config.option
    option.choice = None
    if worker is not None:
        option.quick, config.args = worker["quick"], worker["paths"]
        if worker["choice"] is not None:
            files, ops, central = worker["choice"]
            option.choice = changes.Choice(files, set(ops), central)
        return None
    named = _names_tests(config)
    option.quick = option.quick and not (named or option.slow or option.exhaustive)
    if option.changed is not None and not _choose_changed(config):
        return 0
    if option.quick or option.changed:
        _in_two_processes(option)
    option.loadscopereorder = False  # (files are ordered where they are collected)
    return None


def _names_tests(config: pytest.Config) -> bool:
    by_path = config.args_source is pytest.Config.ArgsSource.ARGS
    return by_path or any([getattr(config.option, name, None) for name in NAMING])


def _choose_changed(config: pytest.Config) -> bool:
    """Takes the tests that the changes touch, of the paths that the call names; are there any?"""
    try:
        changed = changes.changed_files(ROOT, config.option.changed)
    except LookupError as error:
        raise pytest.UsageError(f"--changed: {error}") from None
    choice = changes.choose(Graph(ROOT), changed) if changed else changes.Choice()
    print("tests:", choice.explained(changed), file=sys.stderr)
    config.option.choice = choice
    config.option.quick = bool(choice.central)
    if choice.central:
        return True
    paths = [Path(path.partition("::")[0]).resolve() for path in config.args]
    config.args = [str(ROOT / file) for file in choice.files
                   if any([(ROOT / file).is_relative_to(path) for path in paths])]  # fmt: skip
    return bool(config.args)


def _in_two_processes(option: argparse.Namespace) -> None:
    """Unless the call says how many, or wants to see or stop what happens."""
    watched = option.usepdb or option.trace or option.capture == "no" or option.collectonly
    if not watched and getattr(option, "numprocesses", 0) is None:
        option.numprocesses, option.dist = 2, "loadfile"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells a process of pytest-xdist what was settled."""
    option = node.config.option
    node.workerinput["quick"] = option.quick
    node.workerinput["paths"] = [str(path) for path in node.config.args]
    node.workerinput["choice"] = option.choice and option.choice.plain()


def pytest_configure(config: pytest.Config) -> None:
    quick.active = config.option.quick and config.option.choice is None


@pytest.hookimpl(trylast=True)  # the others say what is skipped
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is not chosen; what several processes share, they begin with the longest."""
    if config.option.quick or config.option.choice:
        _leave_out(config, items)
    if hasattr(config, "workerinput"):
        items[:] = order.longest_first(items)


def _leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    option = config.option
    chosen = changes.of_choice(items, option.choice) if option.choice else []
    if option.quick:
        chosen += quick.choose(items)
    kept = {item.nodeid for item in chosen}
    left_out = [item for item in items if item.nodeid not in kept]
    items[:] = [item for item in items if item.nodeid in kept]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
