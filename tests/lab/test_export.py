"""Lessons as notebooks: valid, whole, and their cells run."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

import antorcha as torch
from antorcha.lab.export import Notebook, export, notebook
from antorcha.lab.lesson import Inspect, Lesson, languages, lessons
from tests.lab.course import challenge_of, every_lesson, new_namespace, run

nbformat = pytest.importorskip("nbformat", reason="needs antorcha[lab]")


def code_of(made: Notebook) -> list[str]:
    return ["".join(cell["source"]) for cell in made["cells"] if cell["cell_type"] == "code"]


@every_lesson
def test_a_notebook_is_valid_and_says_all(lesson: Lesson) -> None:
    made = notebook(lesson)
    nbformat.validate(made)
    text = "".join("".join(cell["source"]) + "\n" for cell in made["cells"])
    assert text.startswith(f"# {lesson.title}\n")
    for quiz in lesson.quizzes:
        assert quiz.question in text
        for option in quiz.options:
            assert f"{option.text}\n" in text
            assert option.why in text
    for step in challenge_of(lesson).steps:
        assert all(words in text for words in (step.ask, *step.hints, step.solution.rstrip()))
    outputs = ["".join(cell["outputs"][0]["text"]) for cell in made["cells"] if cell.get("outputs")]
    assert outputs == [cell.output for cell in lesson.cells if cell.output and not cell.predict]
    assert all(cell.output in text for cell in lesson.cells if cell.predict and cell.output)
    assert text.count("<details>") == text.count("</details>") > 3


@every_lesson
def test_the_cells_of_a_notebook_run(
    lesson: Lesson, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = new_namespace()
    solutions = iter(challenge_of(lesson).steps)
    passed = []
    check = ""  # of the step that the cell before asked for
    for code in code_of(notebook(lesson)):
        if code.startswith("torch.inspect(") and not hasattr(torch, "inspect"):
            continue
        if re.fullmatch(r"# \w+ c\w+ (for|para) [^\n]*", code):  # where the learner writes
            step = next(solutions)
            with pytest.raises((AssertionError, NameError)):  # the lesson's own names do not pass
                run(step.check, dict(names))
            code, check = step.solution, step.check
        elif check:
            assert code.startswith(check)
            check = ""
            passed.append(run(code, names))
            continue
        run(code, names)
    steps = len(challenge_of(lesson).steps)
    assert [re.findall(r"\d", words) for words in passed] == [[str(k + 1)] for k in range(steps)]


@pytest.mark.parametrize(("lang", "words"), [("en", ""), ("es", ', lang="es"')])
def test_pictures_are_drawn_by_the_inspector(lang: str, words: str) -> None:
    lesson = lessons(lang)[0]
    pictures = [part for part in lesson.parts if isinstance(part, Inspect)]
    shown = [f"torch.inspect({part.expression}{words})" for part in pictures]
    assert shown
    assert [code for code in code_of(notebook(lesson)) if code in shown] == shown


def test_all_lessons_are_written(tmp_path: Path) -> None:
    paths = export(tmp_path / "new")
    assert len(paths) == sum(len(lessons(lang)) for lang in languages())
    for path in paths:
        made = json.loads(path.read_text(encoding="utf-8"))
        assert made["nbformat"] == 4
    assert len(list((tmp_path / "new").rglob("*"))) == len(paths) + len(languages())
    assert [path.parent.name for path in export(tmp_path, ["es"])] == ["es"] * len(lessons("es"))


def test_a_file_is_replaced_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (old,) = export(tmp_path, ["en"])[:1]
    old.write_text("mine")

    def full_disk(*paths: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full_disk)
        with pytest.raises(OSError, match="No space left"):
            export(tmp_path, ["en"])
    assert old.read_text() == "mine"
    assert len(list(old.parent.iterdir())) == len(lessons("en"))
    export(tmp_path, ["en"])
    assert old.read_text() != "mine"
