"""The lab's smaller parts: words, losses, curves, completion, rows, and what is remembered."""

from __future__ import annotations

import ast
import asyncio
import doctest
import importlib
import itertools
import json
import math
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="needs antorcha[lab]")

import antorcha as torch
from antorcha.inspector.vocabulary import LANGUAGES
from antorcha.lab import complete, curves, hints, layout, namespace, words
from antorcha.lab.child_names import MANY
from antorcha.lab.files import WorkFile
from antorcha.lab.kernel import Limits
from antorcha.lab.notes import HOOK, LIMIT, TRAININGS, Curve, Notes, noting
from antorcha.lab.panes import editor
from antorcha.lab.program import ProgramRun, position
from antorcha.lab.session import TWICE, Session
from antorcha.lab.workplace import MEMORY, Workplace

LAB = Path(words.__file__).parent


@pytest.mark.parametrize(
    "name",
    [
        "allowance",
        "notes",
        "curves",
        "screen",
        "words",
        "namespace",
        "draft",
        "kernel",
        "panes.quiz",
        "panes.lesson",
    ],
)
def test_examples(name: str) -> None:
    module = importlib.import_module(f"antorcha.lab.{name}")
    found = doctest.testmod(module, extraglobs={"antorcha": torch})
    assert found.attempted > 0
    assert found.failed == 0


def test_examples_of_the_editor() -> None:
    assert doctest.testmod(editor).failed == 0


# ---- words --------------------------------------------------------------------------------------


def test_every_word_is_used_and_every_used_word_is_there() -> None:
    others = ("words.py", "check.py", "export.py")  # with words of their own
    source = "".join(path.read_text() for path in LAB.rglob("*.py") if path.name not in others)
    own = (LAB / "words.py").read_text()
    built = (
        "ended_",
        "problem_",
        "profile_",
        "split_",
        "tab_",
        "view_",
    )  # composed where they are said
    hints = {f"{key}_hint" for key in ("run", "stop", "reset")}
    for key in words.WORDS:
        is_said = re.search(f"[\"']{key}[\"']", source) or f'self("{key}"' in own
        assert key.startswith(built) or key in hints or is_said, key
    for key in re.findall(r'words\("(\w+)"', source + own):
        assert key in words.WORDS, key


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("ended", ["ok", "error", "exit", "stopped", "reset", "time", "memory",
                                   "killed", "crashed", "failed"])  # fmt: skip
def test_every_ending_is_told(lang: str, ended: str) -> None:
    said = words.LabWords(lang).ending({"ended": ended, "seconds": 0.5, "signal": "SIGABRT"})
    assert said.startswith("> ")
    assert "{" not in said


# ---- losses -------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _no_time_goes_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read of the losses is as much as there was time for: here there is."""
    monkeypatch.setattr("antorcha.lab.notes.perf_counter", lambda: 0.0)


def run(code: str) -> ProgramRun:
    program = ProgramRun(code, "mine.py", "/")
    notes = program.notes
    tree = compile(noting(ast.parse(code)), "mine.py", "exec")
    exec(tree, {HOOK: notes, "torch": torch})
    return program


def test_losses_are_noted_wherever_they_are_assigned() -> None:
    program = run(
        "def train():\n"
        "    for k in range(3):\n"
        "        train_loss = torch.tensor(float(k), requires_grad=True) * 2\n"
        "    return train_loss\n"
        "loss: float = 1.5\n"
        "loss, other = 2.5, 'x'\n"
        "pérdida = coste = 3.0\n"
        "glass = lossy = losses = 1.0\n"
        "train()\n"
    )
    curves = {name: curve["values"] for name, curve in program.notes.as_dict().items()}
    assert curves == {
        "loss": [1.5, 2.5], "pérdida": [3.0], "coste": [3.0], "train_loss": [0.0, 2.0, 4.0],
    }  # fmt: skip


def test_what_is_no_number_disturbs_nothing() -> None:
    program = run(
        "loss = torch.nn.MSELoss()\nloss = 'text'\nloss = torch.ones(3)\n"
        "loss = torch.ones((), device='meta')\nloss = None\n"
    )
    assert program.notes.as_dict() == {}


def test_a_long_curve_is_thinned_out_evenly() -> None:
    curve = Curve()
    for step in range(20 * LIMIT):
        curve.count += 1
        curve.add(float(step))
    assert LIMIT / 2 <= len(curve.values) <= LIMIT
    assert curve.values == [float(step) for step in curve.steps]
    assert len({b - a for a, b in itertools.pairwise(curve.steps)}) == 1


class Reading(float):
    """A number whose reading takes `work` seconds of this thread, and others `waited`."""

    clock, worked, reads = 0.0, 0.0, 0
    work, waited = 1e-6, 0.0

    def __float__(self) -> float:
        Reading.clock += self.work + self.waited
        Reading.worked += self.work
        Reading.reads += 1
        return 1.0


def noted(monkeypatch: pytest.MonkeyPatch, values: Iterable[Reading]) -> Notes:
    """The notes of a loop whose steps take a millisecond each."""
    monkeypatch.setattr("antorcha.lab.notes.perf_counter", lambda: Reading.clock)
    monkeypatch.setattr("antorcha.lab.notes.thread_time", lambda: Reading.worked)
    Reading.clock = Reading.worked = Reading.reads = 0
    notes = Notes((float,))
    for value in values:
        Reading.clock += 1e-3
        notes("loss", value)
    return notes


def test_reading_losses_takes_no_more_than_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    class Costly(Reading):
        work = 1e-3

    notes = noted(monkeypatch, (Costly() for _ in range(1000)))
    assert 10 < Reading.reads < 0.03 * 1000
    assert notes.curves["loss"].count == 1000


def test_an_interrupted_reading_leaves_no_hole(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(Reading):
        waited = 0.05

    notes = noted(monkeypatch, (Interrupted() for _ in range(1000)))
    assert notes.curves["loss"].steps == [*range(1000)]


def test_each_training_shows_however_long_the_first_took_to_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Costly(Reading):
        work = 60.0

    notes = noted(monkeypatch, [Costly()])
    for k in range(3):
        notes.begin(k + 1, True)
        notes("loss", Costly(), True)
    assert list(notes.as_dict()) == ["loss", "loss 2", "loss 3", "loss 4"]


def test_notes_keep_the_place_of_errors() -> None:
    program = ProgramRun("x = 1\nloss = x / 0\n", "mine.py", str(Path.cwd()))
    code = program._compile()
    names = {HOOK: Notes((float,)), hints.HOOK: program.hints, hints.SWITCH: program.hints.switches}
    try:
        exec(code, names)
    except ZeroDivisionError as error:
        error.__traceback__ = program._own_frames(error.__traceback__)
        place = position(error, program)
    assert place == {"line": 2, "column": 7, "end_line": 2, "end_column": 12}


def test_curves_are_drawn_with_gaps_and_scales() -> None:
    nan = float("nan")
    values = [100.0, 1.0, nan, 0.01, 0.001]
    picture = curves.draw(
        {"loss": {"values": values, "steps": [0, 2, 4, 6, 8], "count": 9}}, "a <b>", "step"
    )
    assert picture.count("<polyline") == 2
    assert 'aria-label="a &lt;b&gt;"' in picture
    assert ">0.01<" in picture.replace(" ", "")
    flat = curves.draw({"loss": {"values": [2.0, 2.0], "steps": [0, 1], "count": 2}}, "", "")
    assert "<polyline" in flat
    assert curves.draw({"loss": {"values": [], "steps": [], "count": 1}}, "", "") == ""


def test_a_training_that_diverges_is_drawn_and_told() -> None:
    program = run(
        "loss = 1.0\nloss = 1e300\nloss = float('inf')\nloss = float('nan')\nloss = 2.0\n"
    )
    sent = json.loads(json.dumps(program.notes.as_dict(), allow_nan=False))
    assert sent["loss"]["values"] == [1.0, 1e300, "inf", "nan", 2.0]
    picture = curves.draw(sent, "", "step")
    ElementTree.fromstring(picture)  # it is whole
    assert [mark for mark in (">∞<", ">NaN<") if mark in picture] == [">∞<", ">NaN<"]
    alone = re.findall(r"<circle(?![^>]*lab-point)", picture)
    assert (picture.count("<polyline"), len(alone)) == (1, 1)
    assert curves.first_gap(sent["loss"]) == 2


@pytest.mark.parametrize(
    "values",
    [["nan", "nan"], ["inf"], ["-inf", 1.0, "nan"], [-1.7e308, 1.7e308], [5e-324, 1.7e308],
     [0.0, 0.0], [1e16, 1e16 + 2], [1.7e308, 1.7e308], [5e-324, 1e-323], ["nan", 1.0] * 500],
)  # fmt: skip
def test_no_values_break_the_picture(values: list[Any]) -> None:
    curve = {"values": values, "steps": [*range(len(values))], "count": len(values)}
    picture = curves.draw({"loss": curve, "val_loss": curve}, "", "step")
    ElementTree.fromstring(picture)
    numbers = re.findall(r' (?:x|y|x1|x2|y1|y2|cx|cy)="([^"]*)"', picture)
    assert all(math.isfinite(float(number)) for number in numbers)
    assert picture.count('class="lab-curve-gap"') <= 2 * curves.GAPS


def test_curves_are_told_apart_without_their_colours() -> None:
    some = {"values": [3.0, 2.0, 1.0], "steps": [0, 1, 2], "count": 3}
    picture = curves.draw(dict.fromkeys(["loss", "val_loss", "cost"], some), "", "step")
    lines = re.findall(r"<polyline[^>]*>", picture)
    dashes = [re.findall(r'stroke-dasharray="([^"]*)"', line) for line in lines]
    assert dashes == [[], ["7 4"], ["2 3"]]
    for name in ("loss", "val_loss", "cost"):
        assert picture.count(f">{name}</text>") == 1  # in the legend
    assert "lab-curve-legend" not in curves.draw({"loss": some}, "", "step")


# ---- rows and completion ------------------------------------------------------------------------


HOSTILE = """
import antorcha as torch
from antorcha.lab import namespace

class Hostile(torch.Tensor):
    @property
    def shape(self):
        raise ValueError("no shape today")

names = {"before": torch.ones(2), "hostile": torch.zeros(2).as_subclass(Hostile)}
rows = {row["name"]: row["values"] for row in namespace.rows(names)}
assert list(rows) == ["before", "hostile"], rows
assert "no shape today" in rows["hostile"], rows
print("done")
"""


def test_rows_survive_a_tensor_of_a_hostile_class() -> None:
    """(In a process of its own: a subclass of Tensor is for good.)"""
    done = subprocess.run([sys.executable, "-c", HOSTILE], capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr


def test_rows_show_every_tensor() -> None:
    half_built = torch.nn.Linear.__new__(torch.nn.Linear)
    names = {
        "z": torch.tensor([1 + 2j]),
        "empty": torch.zeros(0, 3),
        "half": torch.ones((), dtype=torch.bfloat16),
        "nothing": torch.zeros(2, device="meta"),
        "big": torch.zeros(4, 1000).t(),
        "half_built": half_built,
        "__hidden": torch.zeros(1),
        "text": "x",
    }
    rows = {row["name"]: row for row in namespace.rows(names)}
    assert list(rows) == ["z", "empty", "half", "nothing", "big"]
    assert rows["z"]["values"] == "1+2j"
    assert rows["empty"]["values"] == rows["nothing"]["values"] == ""
    assert rows["half"]["dtype"] == "bfloat16"


def test_looking_neither_records_nor_writes() -> None:
    w = torch.ones(3, requires_grad=True)
    loss = (w * 2).sum()
    before = (w._version, loss._version, torch.is_grad_enabled())
    namespace.rows({"w": w, "loss": loss})
    assert (w._version, loss._version, torch.is_grad_enabled()) == before
    loss.backward()


def test_a_big_namespace_is_read_in_part() -> None:
    many = {f"n{k}": k for k in range(2 * namespace.NAMES)}
    assert namespace.rows({"first": torch.ones(1), **many})[0]["name"] == "first"
    read = 0

    class Layers(torch.nn.Module):
        def named_parameters(self, *_: Any, **__: Any) -> Any:
            nonlocal read
            for read in range(10**6):
                yield f"p{read}", torch.ones(1)

    assert len(namespace.rows({"model": Layers()})) == MANY
    assert read <= MANY


def test_many_tensors_are_bounded() -> None:
    names = {"every": [torch.zeros(1)] * 1000, "x": torch.zeros(1)}
    assert len(namespace.rows(names)) == namespace.MANY


def test_completion_knows_modules_and_tensors() -> None:
    table = complete.table()
    labels = {path: {label for label, _, _ in options} for path, options in table.items()}
    assert {"arange", "nn", "float32"} <= labels[""]
    assert "Linear" in labels["nn"]
    assert {"view", "shape", "backward"} <= labels["Tensor"]
    script = complete.script(7, 'Editor: "x".py')
    assert '"Editor: \\"x\\".py"' in script
    assert script.count("{") == script.count("}")


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("train()\ntrain()", {"loss": 6, "loss 2": 6}),
        ("for rate in range(3):\n    train()", {"loss": 6, "loss 2": 6, "loss 3": 6}),
        ("w = new()\nfor epoch in range(3):\n    train(w)", {"loss": 18}),
        ("for k in range(4):\n    loss = 1.0\nprint()\nloss = 2.0", {"loss": 5}),
        ("for k in range(4):\n    loss = 1.0\nfor k in range(2):\n    loss = 2.0",
         {"loss": 4, "loss 2": 2}),
        ("w = new()\nfor k in range(3):\n    train(w)\n    test(w)", {"loss": 18, "val_loss": 6}),
        ("loss = 1.0\nprint()\nloss = 2.0\nx = 1\nloss = 3.0", {"loss": 3}),
    ],
)  # fmt: skip
def test_each_training_has_its_curve(code: str, wanted: dict[str, int]) -> None:
    program = run(
        "'a docstring'\n"
        "def new():\n    return torch.zeros(3, requires_grad=True)\n"
        "def train(w=None):\n"
        "    w = new() if w is None else w\n"
        "    for epoch in range(2):\n"
        "        for batch in range(3):\n"
        "            loss = ((w - 1) ** 2).sum()\n"
        "            loss.backward()\n"
        "def test(w):\n"
        "    for batch in range(2):\n        val_loss = float(w.sum())\n" + code
    )
    assert {name: curve["count"] for name, curve in program.notes.as_dict().items()} == wanted


def test_very_many_trainings_keep_the_last() -> None:
    program = run("def f():\n    for k in range(2):\n        loss = 1.0\n" + "f()\n" * 40)
    assert len(program.notes.as_dict()) == TRAININGS
    assert "loss 40" in program.notes.as_dict()


def test_axes_tell_values_whatever_they_are() -> None:
    for values in ([0.011, 0.9], [1000.0001, 1000.0009], [3e-9, 5e-9], [1.0, 1e12], [-5.0, 4.0]):
        curve = {"values": values, "steps": [0, 1], "count": 2}
        picture = curves.draw({"loss": curve}, "", "step", ("value", "value (log)"))
        marks = re.findall(r'text-anchor="end" class="lab-mark">([^<]+)<', picture)
        assert len(marks) >= 3, (values, marks)
        assert len(set(marks)) == len(marks), (values, marks)
        assert ">value" in picture


# ---- the workplace ------------------------------------------------------------------------------


def test_what_is_remembered_is_found_again(tmp_path: Path) -> None:
    place = Workplace(tmp_path, Limits())
    place.answer("fundamentals", 1, 2)
    place.answer("fundamentals", 1, 0)
    place.pass_challenge("memory")
    again = Workplace(tmp_path, Limits())
    assert again.answers("fundamentals") == {"1": 0}
    assert again.passed("memory")
    assert not again.passed("fundamentals")


def test_progress_is_told(tmp_path: Path) -> None:
    place = Workplace(tmp_path, Limits())
    lesson = place.lessons("en")[0]
    spoken = words.LabWords("en")
    assert place.progress(lesson, spoken) == ""
    place.remember(opened={lesson.slug: True})
    assert place.progress(lesson, spoken) == "begun"
    for number, quiz in enumerate(lesson.quizzes, 1):
        place.answer(lesson.slug, number, [option.right for option in quiz.options].index(True))
    count = len(lesson.quizzes)
    assert place.progress(lesson, spoken) == f"{count} of {count} questions"
    place.answer(lesson.slug, 1, 99)
    assert place.answered(lesson) == count - 1
    place.pass_challenge(lesson.slug)
    assert place.progress(lesson, spoken) == "✓ Done"
    following = place.following(lesson)
    assert following is not None
    assert following.slug == place.lessons("en")[1].slug
    assert place.following(place.lessons("en")[-1]) is None


@pytest.mark.parametrize(
    "kept", [None, 3, [], {"lesson": "x", "full": 3}, {"lesson": 1e9, "rows": -4, "low": None},
             {"full": "lesson"}, {"lesson": True, "full": "evil"}, {"rows": float("nan")}]
)  # fmt: skip
def test_a_spoilt_layout_is_no_obstacle(tmp_path: Path, kept: Any) -> None:
    place = Workplace(tmp_path, Limits())
    place.memory["layout"] = kept
    made = layout.PageLayout(place, words.LabWords("en"), with_lesson=False)
    assert made.full == ""
    for name, split in layout.SPLITS.items():
        assert split.least <= made.shares[name] <= split.most


def test_two_labs_on_one_folder_keep_each_other_s_answers(tmp_path: Path) -> None:
    one, other = [Workplace(tmp_path, Limits()) for _ in range(2)]
    one.answer("memory", 1, 2)
    other.answer("memory", 2, 0)
    other.pass_challenge("graph")
    one.remember(dark=True)
    for each in (one, Workplace(tmp_path, Limits())):
        assert each.answers("memory") == {"1": 2, "2": 0}
        assert each.passed("graph")
    other.remember(lang="es")
    assert other.memory["dark"] is True


def test_what_cannot_be_written_down_is_remembered_for_now(tmp_path: Path) -> None:
    place = Workplace(tmp_path / "work", Limits())
    (tmp_path / "work").write_text("a file stands in the way")
    place.remember(dark=True)
    place.answer("memory", 1, 2)
    assert place.memory["dark"] is True
    assert place.answers("memory") == {"1": 2}


def test_rows_find_tensors_wherever_learners_keep_them() -> None:
    names: dict[str, Any] = {"torch": torch}
    code = """
import collections, types
class Own:
    def __init__(self):
        self.w = torch.ones(1)
        self.itself = self
own = Own()
deep = {"a": [torch.ones(1), {("b", 1): torch.ones(1)}]}
Pair = collections.namedtuple("Pair", "x y")
pair = Pair(torch.ones(1), 2)
line = collections.deque([torch.ones(1)])
state = torch.nn.Linear(1, 1).state_dict()
models = [torch.nn.Linear(1, 1)]
space = types.SimpleNamespace(q=torch.ones(1))
deep["again"] = deep
numbers = [0] * 1_000_000
last = torch.ones(1)
"""
    names["__name__"] = "__main__"
    exec(code, names)
    assert [row["name"] for row in namespace.rows(names)] == [
        "own.w", "deep['a'][0]", "deep['a'][1][('b', 1)]", "pair.x", "line[0]", "state['weight']",
        "state['bias']", "models[0].weight", "models[0].bias", "space.q", "last",
    ]  # fmt: skip
    assert namespace.find(names, "deep['a'][1][('b', 1)]") is names["deep"]["a"][1]["b", 1]


@pytest.mark.parametrize("text", ["", "[1]", '{"answers": 3}', "\x00", '{"answers": {"a": 1}'])
def test_a_spoilt_memory_is_no_obstacle(tmp_path: Path, text: str) -> None:
    (tmp_path / MEMORY).write_text(text)
    place = Workplace(tmp_path, Limits())
    assert place.answers("a") == {}
    place.answer("a", 1, 1)
    assert Workplace(tmp_path, Limits()).answers("a") == {"1": 1}


def test_files_that_lead_elsewhere_have_no_session(tmp_path: Path) -> None:
    place = Workplace(tmp_path, Limits())
    assert place.of_file("../evil.py") is None
    session = place.of_file("good.py")
    assert session is not None
    assert place.of_file("good.py") is session


def test_processes_that_rest_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    ended: list[str] = []

    class Child:
        pid = 1

        def __init__(self, name: str) -> None:
            self.name = name

        async def end(self) -> None:
            ended.append(self.name)

    async def tidy() -> None:
        place = Workplace(tmp_path, Limits())
        now = time.monotonic()
        for number, name in enumerate(["watched.py", "old.py", "new.py", "busy.py"]):
            session: Any = place.of_file(name)
            session.child = Child(name)
            session.left = now - (1000 if name != "new.py" else number)
        place.sessions["file watched.py"].viewers = 1
        place.sessions["file busy.py"].state = "running"
        await place.tidy()

    asyncio.run(tidy())
    assert ended == ["old.py"]


def test_a_key_seen_twice_is_one_run_and_another_text_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[str, str]] = []

    async def run(code: str, *, watched: str, **_: Any) -> dict[str, Any]:
        ran.append((code, watched))
        return {"ended": "ok", "seconds": 0.0}

    async def work() -> None:
        session = Session("", tmp_path, WorkFile(tmp_path / "one.py", "a"), Limits())
        monkeypatch.setattr(session.child, "start", lambda: asyncio.sleep(0))
        monkeypatch.setattr(session.child, "run", run)
        await asyncio.gather(session.run(), session.run())
        await session.run()
        session.file.text = "b"
        await session.run()
        await session.run(watched="profile")
        session.file.text = "c"
        await session.run(watched="profile")  # runs once before: compiling is not measured
        await asyncio.sleep(TWICE)
        await session.run(watched="profile")

    asyncio.run(work())
    assert ran == [
        ("a", ""), ("b", ""), ("b", "profile"), ("c", ""), ("c", "profile"), ("c", "profile"),
    ]  # fmt: skip


def test_a_stop_while_the_process_starts_is_obeyed(tmp_path: Path) -> None:
    async def both() -> Session:
        file = WorkFile(tmp_path / "mine.py", "while True: pass\n")
        session = Session("mine", tmp_path, file, Limits(seconds=300))
        work = asyncio.create_task(session.run())
        await asyncio.sleep(0)
        assert session.state == "starting"
        await session.stop()
        await asyncio.wait_for(work, 300)
        await session.close()
        return session

    session = asyncio.run(both())
    assert session.result["ended"] == "stopped"
    assert session.state == "ready"
