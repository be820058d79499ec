"""What a change touches, in a repository of a few files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.choosing import changes
from tests.choosing.changes import ALL, OPS, RECORDS, Choice
from tests.choosing.graph import Graph

FILES = {
    "src/antorcha/__init__.py": "from antorcha import nn, ops",
    "src/antorcha/errors.py": "class ShapeError(Exception): ...",
    "src/antorcha/ops/__init__.py": "",
    "src/antorcha/ops/kinds/record.py": "from antorcha.errors import ShapeError\nREGISTRY = {}\n"
    "def pointwise(fn): return fn",
    "src/antorcha/ops/curves.py": "from antorcha.ops.kinds.record import pointwise\n"
    "@pointwise\ndef bend(x): ...\n@bend.samples\ndef _(make): ...",
    "src/antorcha/ops/lines.py": "from antorcha.ops.kinds.record import pointwise\n"
    "@pointwise\ndef draw(x): ...",
    "src/antorcha/nn/__init__.py": "from antorcha.nn.linear import Linear",
    "src/antorcha/nn/linear.py": "from antorcha.nn.weights import fill\nclass Linear: ...",
    "src/antorcha/nn/weights.py": "def fill(): ...\ndef _late():\n    import antorcha.lab",
    "src/antorcha/lab/__init__.py": "",
    "src/antorcha/lab/page.py": "",
    "src/antorcha/lab/lessons/one.yaml": "",
    "docs/guide.md": "",
    "tests/__init__.py": "",
    "tests/conftest.py": "",
    "tests/records.py": "from antorcha.ops.kinds.record import REGISTRY",
    "tests/ops/test_records.py": "from tests.records import REGISTRY",
    "tests/ops/test_bent.py": "import antorcha\ndef test(): antorcha.ones(2).bend()",
    "tests/ops/test_curves.py": "import antorcha",
    "tests/nn/conftest.py": "",
    "tests/nn/test_layers.py": "from antorcha import nn\ndef test(): nn.Linear(2, 3)",
    "tests/nn/test_by_import.py": "def test():\n    from antorcha.nn import Linear",
    "tests/nn/child.py": "import antorcha.lab.page",
    "tests/nn/test_program.py": "PROGRAM = 'tests/nn/child.py'",
    "tests/lab/test_lessons.py": "'''one.yaml, guide.md'''\nFOLDER = 'lessons'",
    "tests/docs/test_pages.py": "PAGE = ROOT / 'docs'",
}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    fillers = tmp_path / "tests" / "fillers"  # so that a few test files are no large part of all
    fillers.mkdir()
    for k in range(30):
        (fillers / f"test_filler{k}.py").write_text("")
    return Graph(tmp_path)


def touched(graph: Graph, *files: str) -> dict[str, str]:
    """The test files, each by the middle of its name, and which of their tests."""
    choice = changes.choose(graph, files)
    assert not choice.central
    return {Path(file).stem.removeprefix("test_"): part for file, part in choice.files.items()}


def test_a_test_file_touches_itself_and_a_helper_whom_it_helps(graph: Graph) -> None:
    assert touched(graph, "tests/nn/test_layers.py") == {"layers": ALL}
    assert touched(graph, "tests/nn/child.py") == {"program": ALL}
    assert touched(graph, "tests/records.py") == {"records": ALL}
    assert touched(graph, "tests/nn/conftest.py") == dict.fromkeys(
        ["layers", "by_import", "program"], ALL
    )


def test_names_and_imports_lead_to_the_file_that_defines_them(graph: Graph) -> None:
    layers = {"layers": ALL, "by_import": ALL}
    assert touched(graph, "src/antorcha/nn/linear.py") == layers
    assert touched(graph, "src/antorcha/nn/weights.py") == layers  # linear.py imports it


def test_an_import_inside_a_function_leads_nowhere_and_a_child_does(graph: Graph) -> None:
    assert touched(graph, "src/antorcha/lab/page.py") == {"program": ALL}


def test_of_the_tests_of_all_ops_only_the_cases_of_a_changed_one_run(graph: Graph) -> None:
    found = touched(graph, "src/antorcha/ops/curves.py")
    assert found == {"curves": ALL, "bent": OPS, "records": RECORDS}
    assert changes.choose(graph, ["src/antorcha/ops/curves.py"]).ops == {"antorcha.ops.curves"}


def test_a_file_that_most_tests_use_asks_for_the_quick_suite(graph: Graph, tmp_path: Path) -> None:
    for k in range(30):
        (tmp_path / f"tests/fillers/test_filler{k}.py").write_text("from antorcha import errors")
    choice = changes.choose(Graph(tmp_path), ["src/antorcha/errors.py"])
    assert choice.central == ["src/antorcha/errors.py"]
    assert not choice.files
    assert changes.choose(graph, ["tests/conftest.py"]).central == ["tests/conftest.py"]


def test_a_source_file_that_no_test_uses_asks_for_the_quick_suite(graph: Graph) -> None:
    choice = changes.choose(graph, ["src/antorcha/ops/__init__.py"])
    assert choice.central == ["src/antorcha/ops/__init__.py"]


def test_other_files_touch_the_tests_that_mention_them_or_their_folder(graph: Graph) -> None:
    assert touched(graph, "docs/guide.md") == {"pages": ALL}
    assert touched(graph, "src/antorcha/lab/lessons/one.yaml") == {"lessons": ALL}
    assert touched(graph, "LICENSE") == {}


def test_the_cases_of_ops_that_have_not_changed_are_left_out() -> None:
    choice = Choice({"a": ALL, "b": OPS, "c": RECORDS}, {"antorcha.ops.softmax"})

    def case(file: str, **params: Any) -> Any:
        return SimpleNamespace(nodeid=f"{file}::t", callspec=SimpleNamespace(params=params))

    ours, other, none = {"op": "softmax"}, {"op": "matmul", "dtype": "float32"}, {"n": 3}
    cases = [case(file, **params) for file in "abcd" for params in (ours, other, none)]
    found: list[Any] = list(changes.of_choice(cases, choice))
    kept = [(item.nodeid[0], item.callspec.params) for item in found]
    assert kept == [("a", ours), ("a", other), ("a", none), ("b", ours), ("b", none), ("c", ours)]


def test_what_git_says_has_changed(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    for name in ("kept", "edited", "removed"):
        (tmp_path / name).write_text(name)
    git("add", ".")
    git("commit", "-q", "-m", "one")
    (tmp_path / "edited").write_text("again")
    os.remove(tmp_path / "removed")
    (tmp_path / "new name").write_text("")
    assert changes.changed_files(tmp_path, "HEAD") == ["edited", "new name", "removed"]
    git("commit", "-q", "-a", "-m", "two")
    assert changes.changed_files(tmp_path, "HEAD") == ["new name"]
    assert changes.changed_files(tmp_path, "HEAD~1") == ["edited", "new name", "removed"]
    with pytest.raises(LookupError, match="no revision"):
        changes.changed_files(tmp_path, "nowhere")
