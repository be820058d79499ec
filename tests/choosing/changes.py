"""What a change touches: the test files for ``./run test --changed``.

A changed test file runs, and every test file that a changed helper is part of. Of a changed source
file those run that are near to it, those that name it and those that are far (``graph`` says what
that means), the nearest first, as long as they are no more than a quarter of all test files. Where
they are more, the file is central: the quick suite stands for what is left out. Of tests with a
case for each op only the cases of the changed ops run. Any other file touches the tests that
mention it, or else its folder.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import pytest

from tests.choosing.graph import PACKAGE, TESTS, Graph, closure
from tests.choosing.quick import file_of

ALL, OPS, RECORDS = "all", "but the cases of other ops", "the cases of the changed ops"
ORDER = (ALL, OPS, RECORDS)
OF_ALL = ("pyproject.toml", f"{TESTS}/conftest.py")


@dataclass
class Choice:
    """Which tests run."""

    files: dict[str, str] = field(default_factory=dict)  # test file -> which of its tests
    ops: set[str] = field(default_factory=set)  # modules whose ops have changed
    central: list[str] = field(default_factory=list)  # files for which the quick suite runs, too

    def add(self, files: Iterable[str], part: str = ALL) -> None:
        for file in files:
            self.files[file] = min(self.files.get(file, part), part, key=ORDER.index)

    def plain(self) -> tuple[dict[str, str], list[str], list[str]]:
        """What another process makes the same choice of."""
        return self.files, sorted(self.ops), self.central

    def explained(self, changed: list[str]) -> str:
        """One line for who asked."""
        text = f"changed files: {len(changed)}; test files that use them: {len(self.files)}"
        if self.central:
            others = f" and {len(self.central) - 1} more" if len(self.central) > 1 else ""
            text += f"; the quick suite, too: nearly all uses {self.central[0]}{others}"
        return text


def changed_files(root: Path, revision: str) -> list[str]:
    """The files of the working tree that differ from the revision, or are new."""
    if not _git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"):
        raise LookupError(f"git knows no revision {revision} (paths go before --changed)")
    tracked = _git(root, "diff", "--name-only", "--no-renames", "-z", "--relative", revision)
    fresh = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    return sorted({*tracked.split("\0"), *fresh.split("\0")} - {""})


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    return done.stdout


def choose(graph: Graph, changed: Iterable[str]) -> Choice:
    """The tests that a change of these files touches."""
    choice = Choice()
    for file in changed:
        path = PurePosixPath(file)
        module = graph.at.get(file)
        if file in OF_ALL:
            choice.central.append(file)
        elif path.name == "conftest.py":
            choice.add([test for test in _files(graph, graph.tests)
                        if PurePosixPath(test).is_relative_to(path.parent)])  # fmt: skip
        elif module is not None and path.parts[0] != TESTS:
            _of_source(graph, choice, file, module)
        else:
            found = graph.of_helper(module) if module is not None else set()
            choice.add(_files(graph, found or _that_mention(graph, path)))
    return choice


def _of_source(graph: Graph, choice: Choice, file: str, module: str) -> None:
    near = graph.near(module)
    levels = near, near | graph.named(module), near | graph.far(module)
    most = len(graph.tests) // 4
    fitting = [level for level in levels if len(level) <= most]
    found = max(fitting, key=len, default=set())
    users = closure([module], graph.users()) if found == levels[-1] else {module}
    ops = {each for each in users if graph.modules[each].ops()}
    choice.ops |= ops
    choice.add(_files(graph, near & found))
    choice.add(_files(graph, found), OPS if ops else ALL)
    choice.add(_files(graph, graph.of_records()) if ops else (), RECORDS)
    if found != levels[-1] or not found:
        choice.central.append(file)


def _files(graph: Graph, modules: Iterable[str]) -> list[str]:
    return [graph.file(module) for module in modules]


def _that_mention(graph: Graph, path: PurePosixPath) -> set[str]:
    """The test modules with the file's name in a string, or else that of a folder it is in."""
    folders = [part for part in reversed(path.parts[:-1]) if part not in ("src", PACKAGE, TESTS)]
    names = (path.name, path.stem) if path.suffix else ()  # (`run` is a word)
    for name in (*names, *folders):
        found = {test for test in graph.tests if name in graph.mentioned(test)}
        if found:
            return found
    return {test for test in graph.tests if folders and folders[0] in test.split(".")}


# ----------------------------------------------------------------------------- cases of changed ops
def of_choice(items: list[pytest.Item], choice: Choice) -> list[pytest.Item]:
    """The tests of the choice."""
    return [item for item in items if _is_wanted(item, choice.files.get(file_of(item)), choice.ops)]


def _is_wanted(item: pytest.Item, part: str | None, changed: set[str]) -> bool:
    """Is a test a case of an op that has changed, or in a part of its file that runs anyway?"""
    if part is None or part == ALL:
        return part == ALL
    from antorcha.ops.kinds.record import REGISTRY

    homes = {REGISTRY[name].fn.__module__ for name in _ops_of(item) if name in REGISTRY}
    return not homes.isdisjoint(changed) or (part == OPS and not homes)


def _ops_of(item: pytest.Item) -> list[str]:
    """The names among a case's parameters that may be those of ops, and of ops themselves."""
    callspec = getattr(item, "callspec", None)
    values = [] if callspec is None else list(callspec.params.values())
    return [value if isinstance(value, str) else value.name for value in values
            if isinstance(value, str) or hasattr(value, "sample_functions")]  # fmt: skip
