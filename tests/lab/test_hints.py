"""Shapes beside lines: they are those of the tensors, and a program does not notice them."""

from __future__ import annotations

import ast
import builtins
import dis
import doctest
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="needs antorcha[lab]")

import antorcha as torch
from antorcha.lab import hints
from antorcha.lab.hints import HOOK, SWITCH, VARY, VISITS, ShapeHints
from antorcha.lab.kernel import Limits
from antorcha.lab.lesson import Lesson
from antorcha.lab.notes import HOOK as NOTE
from antorcha.lab.notes import Notes, noting
from antorcha.lab.panes import editor
from tests.lab.bench import PATIENCE, Bench, patient
from tests.lab.course import every_lesson, new_namespace


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = Bench(tmp_path_factory.mktemp("work"), Limits(seconds=PATIENCE, memory=3 << 30))
    with patient():
        yield bench
        bench.close()


def run(code: str, names: dict[str, Any] | None = None) -> ShapeHints:
    """Run a program with hints."""
    found = ShapeHints()
    tree = found.add_to(ast.parse(code))
    names = {"torch": torch} if names is None else names
    exec(compile(tree, "mine.py", "exec"), names | {HOOK: found, SWITCH: found.switches})
    return found


def told(code: str) -> dict[int, str]:
    return {hint["line"]: hint["text"] for hint in run(code).as_list()}


@pytest.mark.parametrize("module", [hints, editor])
def test_examples(module: Any) -> None:
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


def test_assignments_arguments_and_loops_are_told_of() -> None:
    code = """
X = torch.ones(300, 2)
y = torch.arange(300)
a, (b, *rest) = X.T, (y[:3], 1)
def f(x, n=2,
      *, scale: float = 1.0):
    "It doubles."
    z: object = x * scale
    z += 1
    return z
w = f(X) ; v = 1
for xb, _ in [(X[:10], 0), (X[:4], 0)]:
    h = xb.sum(1)
class Layer:
    weight = torch.zeros(
        2, 2)
    __mine = torch.zeros(7)
loss = X.sum()
n = 3
"""
    assert told(code) == {
        2: "300×2",
        3: "300 int64",
        4: "a 2×300, b 3 int64",
        6: "x 300×2",
        8: "300×2",
        9: "300×2",
        11: "w 300×2",
        12: "10×2 | 4×2",
        13: "10 | 4",
        16: "2×2",
        17: "7",
        18: "()",
    }


def test_where_they_vary_some_are_told() -> None:
    assert told("for k in range(2, 9):\n    x = torch.ones(k)\n") == {2: "2 | 3 | 4 | …"}
    assert told("x = torch.ones(2, device='meta').double()") == {1: "2 float64 meta"}


def test_where_a_program_says_global_itself_nothing_changes() -> None:
    code = '"About."\nfrom __future__ import annotations\nglobal a\na = torch.ones(2)\nb = a\n'
    assert told(code) == {4: "2", 5: "2"}
    tree = ast.parse("\n".join([f"x{k} = torch.ones({k})" for k in range(3)]))
    instructions = [each.opname for each in dis.get_instructions(compile(
        ShapeHints().add_to(tree), "mine.py", "exec")) if each.argval == SWITCH]  # fmt: skip
    assert instructions == ["LOAD_GLOBAL"] * 3  # the quick way


def test_a_place_is_looked_at_so_often_and_no_more() -> None:
    found = run(f"for k in range({VISITS} * 2):\n    x = torch.ones(1 + (k == {VISITS}))\n")
    assert found.switches == [False, False]
    assert {hint["line"]: hint["text"] for hint in found.as_list()} == {2: "1"}
    varied = run(f"for k in range({VARY} + 1):\n    x = torch.ones(k)\n")
    assert varied.switches[-1] is False or varied.switches[0] is False


def test_what_resists_does_not_disturb() -> None:
    code = """
class Strange:
    @property
    def __class__(self): raise RuntimeError("asked")
    def __getattr__(self, name): raise RuntimeError("asked")
s = Strange()
x = torch.ones(2)
"""
    assert told(code) == {7: "2"}


def test_a_run_tells_its_hints_and_subclasses_are_not_asked(bench: Bench) -> None:
    done = bench.run(
        """
        import torch
        class Mine(torch.Tensor):
            @property
            def shape(self): raise RuntimeError("asked")
        x = torch.ones(2).as_subclass(Mine)
        @torch.no_grad()
        def f(v): return v
        f(torch.ones(3))
        assert False
        """
    )
    assert [(hint["line"], hint["text"]) for hint in done["hints"]] == [(6, "2"), (8, "3")]
    assert done["message"] == "AssertionError: "
    assert bench.run("x = (")["hints"] == []


def test_native_functions_are_left_as_they_are(bench: Bench) -> None:
    code = """
    import torch
    import antorcha
    def half(x):
        loss = x * 0.5
        return loss
    @antorcha.kernel
    def halved(x):
        y = half(x)
        return y
    print(halved(torch.ones(2)))
    """
    assert bench.run(code)["ended"] == "ok", bench.text("stderr")
    assert bench.text() == "tensor([0.5000, 0.5000])\n"


def test_what_a_program_left_can_be_called_later(bench: Bench) -> None:
    code = "import torch\ndef f(x):\n    for y in x:\n        loss = y.sum()\n    return loss\n"
    assert bench.run(code)["ended"] == "ok"
    step = {"ask": "", "hints": [], "solution": "", "lang": "en"}
    step["check"] = "assert f(torch.ones(1, 2)) == 2, 'no'"
    assert bench.do(bench.child.check([step])) == [{"ok": True, "message": "Right."}]


def test_a_function_keeps_its_docstring_and_a_program_its_future() -> None:
    code = 'from __future__ import annotations\ndef f(x: No):\n    "About f."\nd = f.__doc__\n'
    names: dict[str, Any] = {}
    found = ShapeHints()
    names |= {HOOK: found, SWITCH: found.switches}
    exec(compile(found.add_to(ast.parse(code)), "mine.py", "exec"), names)
    assert names["d"] == "About f."
    names["f"](torch.ones(1))


# ---- nothing of it shows ------------------------------------------------------------------------

ERRORS = [
    "import antorcha as torch\nx = torch.ones(2)\ny = x @ torch.ones(3)\n",
    "def f(a,\n      b):\n    c = a / b\n    return c\nf(1,\n  0)\n",
    "for k in [1, 2]:\n    d = k / (k - 2)\n",
    "class A:\n    def g(self, v): v += [][1]\nA().g(1)\n",
    "x, y = 1, 2, 3\n",
    "def f(n): return f(n + 1)\nf(0)\n",
]


def trouble(tree: ast.Module, names: dict[str, Any]) -> list[Any]:
    """Where an error was: file, line and columns of each frame of the program, and its words."""
    try:
        exec(compile(tree, "mine.py", "exec"), names)
    except Exception as error:
        frames = traceback.TracebackException.from_exception(error).stack
        own = [f for f in frames if f.filename == "mine.py"]
        places = [(f.name, f.lineno, f.end_lineno, f.colno, f.end_colno) for f in own]
        return [type(error), str(error), places[:10]]
    return []


@pytest.mark.parametrize("code", ERRORS)
def test_errors_are_where_they_would_be(code: str) -> None:
    plain = trouble(ast.parse(code), {})
    assert plain
    found, notes = ShapeHints(), Notes((float, torch.Tensor))
    tree = found.add_to(noting(ast.parse(code)))
    assert trouble(tree, {NOTE: notes, HOOK: found, SWITCH: found.switches}) == plain


def test_a_noted_loss_leaves_its_leaves_as_they_are() -> None:
    """What a leaf has beside its values (``_extra``) sends every backward pass Python's way."""
    code = "w = torch.ones(2, requires_grad=True)\nfor k in range(3):\n    loss = (w * k).sum()\n"
    names: dict[str, Any] = {"torch": torch}
    notes = Notes((float, torch.Tensor))
    exec(compile(noting(ast.parse(code)), "mine.py", "exec"), names | {NOTE: notes}, names)
    (curve,) = notes.curves.values()
    assert curve.values == [0.0, 2.0, 4.0]
    assert [leaf() is names["w"] for leaf in curve.trained] == [True]
    assert names["w"]._extra is None


# ---- in every lesson ----------------------------------------------------------------------------


class Watcher(ShapeHints):
    """Hints that are held against the shapes of the values."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted: dict[int, dict[str, list[str]]] = {}

    def __call__(self, number: int, *values: Any) -> None:
        site = self._sites[number]
        for name, value in zip(site.names, values):
            if isinstance(value, torch.Tensor):
                shape = "×".join(map(str, value.shape)) or "()"
                shapes = self.wanted.setdefault(number, {}).setdefault(name, [])
                if shape not in shapes:
                    shapes.append(shape)
        super().__call__(number, *values)


def assigned(code: str) -> set[tuple[int, str]]:
    """The last line of each assignment, and every name that it gives. Not of kernels, which are
    compiled from their text, nor the lists of ``*rest``."""
    tree = ast.parse(code)
    heads = [(node, ast.unparse(node).partition("def ")[0]) for node in ast.walk(tree)
             if isinstance(node, ast.FunctionDef)]  # fmt: skip
    kernels = [node for node, head in heads if re.search("kernel|native", head)]
    lists = [node.value for node in ast.walk(tree) if isinstance(node, ast.Starred)]
    inside = {id(node) for kernel in kernels for node in ast.walk(kernel)} | {*map(id, lists)}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AugAssign)) and id(node) not in inside:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for each in [part for target in targets for part in ast.walk(target)]:
                is_name = isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
                if is_name and each.id != "_" and id(each) not in inside:
                    found.add((node.end_lineno or 0, each.id))
    return found


@pytest.fixture
def hooked() -> Iterator[Watcher]:
    found = Watcher()
    setattr(builtins, HOOK, found)
    setattr(builtins, SWITCH, found.switches)
    try:
        yield found
    finally:
        delattr(builtins, HOOK)
        delattr(builtins, SWITCH)


@every_lesson
def test_hints_are_the_shapes_of_every_assignment(
    lesson: Lesson, hooked: Watcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    names = new_namespace()
    code = "\n".join([cell.code for cell in lesson.cells])
    file = tmp_path / "lesson.py"  # (native functions are compiled from their source)
    file.write_text(code)
    exec(compile(hooked.add_to(ast.parse(code)), str(file), "exec"), names)
    capsys.readouterr()
    assert hooked.as_list()
    watched = {(site.line, name) for site in hooked._sites for name in site.names}
    assert assigned(code) <= watched
    for number, wanted in hooked.wanted.items():
        site = hooked._sites[number]
        for name, shapes in wanted.items():
            told = [text.split(" ")[0] for text in site.texts[name]]
            assert list(dict.fromkeys(told))[:VARY] == shapes[:VARY], (site.line, name)
