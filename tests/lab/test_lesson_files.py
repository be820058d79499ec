"""Reading a lesson: what its parts become, and that every mistake is named with its line."""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path

import pytest

import antorcha.lab.lesson as lesson_module
from antorcha.errors import ValueRangeError
from antorcha.lab.check import check_step
from antorcha.lab.fields import LessonError
from antorcha.lab.lesson import Cell, Inspect, Text, find, lessons, load
from tests.lab.course import challenge_of, new_namespace, run

pytest.importorskip("yaml", reason="needs antorcha[lab]")

LESSON = """\
---
title: "Cats: counted"
minutes: 5
file: cats.py
---
Some *text*.

```bash
not a cell
```

```python
cats = 3
print(cats)
```

```output
3
```
```python varies
print(object())
```
```inspect
torch.ones(cats)
```
```quiz
question: How many?
options:
  - text: 3
    right: true
    why: We counted.
  - text: true
    why: "That is no number: it is a truth."
```
````challenge
title: Count
intro: Count on.
start: |
  cats = 3
steps:
  - ask: |
      More:
      ```text
      cats
      ```
    hints:
      - Add one.
    solution: |
      cats += 1
    check: |
      assert cats == 4, f"cats is {cats}"
````
The end.
"""


def write(folder: Path, text: str, name: str = "07_cats.md") -> Path:
    path = folder / "en" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_lesson_is_read(tmp_path: Path) -> None:
    lesson = load(write(tmp_path, LESSON))
    assert (lesson.slug, lesson.lang, lesson.title) == ("cats", "en", "Cats: counted")
    assert (lesson.minutes, lesson.file) == (5, "cats.py")
    assert [type(part).__name__ for part in lesson.parts] == (
        "Text Cell Cell Inspect Quiz Challenge Text".split()
    )
    text, cell, varying, picture, quiz, challenge, end = lesson.parts
    assert text == Text("Some *text*.\n\n```bash\nnot a cell\n```", 6)
    assert cell == Cell("cats = 3\nprint(cats)", "3\n", False, 13)
    assert varying == Cell("print(object())", None, True, 21)
    assert picture == Inspect("torch.ones(cats)", 24)
    assert end.markdown == "The end."
    assert [cell, varying] == lesson.cells
    assert [quiz] == lesson.quizzes
    assert challenge is lesson.challenge


def test_yaml_values_are_taken_as_written(tmp_path: Path) -> None:
    lesson = load(write(tmp_path, LESSON))
    three, truth = lesson.quizzes[0].options
    assert (three.text, three.right, truth.text, truth.right) == ("3", True, "true", False)
    assert truth.why == "That is no number: it is a truth."
    step = lesson.challenge.steps[0]
    assert step.ask == "More:\n```text\ncats\n```"
    assert (step.hints, step.solution) == (("Add one.",), "cats += 1\n")
    assert step.lang == "en"


MISTAKES = {
    "no head": (LESSON, "Cats.\n" + LESSON, 1, "a lesson has a head"),
    "open head": ("cats.py\n---", "cats.py", 1, "the head has no end"),
    "no title": ('title: "Cats: counted"\n', "", 2, "the head needs `title`"),
    "colon": ('"Cats: counted"', "Cats: counted", 2, "stands in quotes"),
    "minutes": ("minutes: 5", "minutes: five", 3, "whole number from 1, not 'five'"),
    "file": ("cats.py", "../cats.py", 4, "`file` is a plain name"),
    "field": ("minutes", "minuets", 3, "Did you mean 'minutes'?"),
    "twice": ("minutes: 5", "file: a.py", 4, "has `file` twice"),
    "open fence": ("````\nThe", "The", 35, "never closed"),
    "fence": ("```quiz", "```quizz", 26, "no fence is called 'quizz'. Did you mean 'quiz'?"),
    "syntax": ("print(cats)\n", "print(cats\n", 14, "not Python"),
    "lone output": ("```python varies", "```output", 20, "right below a `python` one"),
    "no expression": ("torch.ones(cats)", "x = 1", 24, "not Python"),
    "no why": ("    why: We counted.\n", "", 29, "an option needs `why`"),
    "two right": ("text: true\n", "text: true\n    right: true\n", 28, "2 of them right"),
    "right": ("right: true", "right: yes", 30, "true or false, not 'yes'"),
    "empty": ("We counted.", "''", 31, "not an empty one"),
    "options": ("options:\n", "options: 3\nrest:\n", 29, "no field `rest`"),
    "start": ("start: |\n  cats = 3", "start: |\n  cats = = 3", 39, "not Python"),
    "no message": (', f"cats is {cats}"', "", 51, "this assert needs a message"),
    "no assert": (
        'assert cats == 4, f"cats is {cats}"',
        "print(cats)",
        51,
        "a check has an assert",
    ),
    "hints": ("hints:\n      - Add one.", "hints: Add one.", 46, "`hints` is a list"),
    "broken yaml": ("intro: Count on.", "intro: 'Count on.", 37, "a challenge is not YAML"),
    "two": ("The end.", "```challenge\n{}\n```", 54, "a challenge needs `steps`"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_named_with_file_and_line(case: str, tmp_path: Path) -> None:
    old, new, line, message = MISTAKES[case]
    assert LESSON.count(old) >= 1
    path = write(tmp_path, LESSON.replace(old, new, 1))
    with pytest.raises(LessonError) as caught:
        load(path)
    said = str(caught.value)
    assert message in said
    assert said.startswith(f"07_cats.md, line {line}: "), said


def test_a_file_that_is_no_text_says_so(tmp_path: Path) -> None:
    path = write(tmp_path, "")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LessonError, match=r"07_cats\.md is not UTF-8"):
        load(path)


def test_without_the_extra_the_fix_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)  # importing it fails
    with pytest.raises(ModuleNotFoundError, match=r"pip install .antorcha\[lab\]"):
        load(write(tmp_path, LESSON))


def test_line_ends_of_windows_are_fine(tmp_path: Path) -> None:
    path = write(tmp_path, "")
    path.write_bytes(b"\xef\xbb\xbf" + LESSON.replace("\n", "\r\n").encode())
    assert load(path).cells == load(write(tmp_path, LESSON, "08_cats.md")).cells


def test_lessons_are_found_by_name_and_number(tmp_path: Path) -> None:
    write(tmp_path, LESSON, "05_dogs.md")
    write(tmp_path, LESSON, "01_cats.md")
    write(tmp_path, LESSON, "mice.md")
    found = lessons("en", tmp_path)
    assert [(lesson.slug, lesson.number) for lesson in found] == [
        ("cats", 1),
        ("dogs", 5),
        ("mice", None),
    ]
    for name in ("dogs", "05_dogs", "05_dogs.md", "5", "05"):
        assert find(name, "en", tmp_path).slug == "dogs"
    with pytest.raises(ValueRangeError, match="Did you mean 'dogs'"):
        find("dog", "en", tmp_path)
    with pytest.raises(ValueRangeError, match="no language 'fr'; there is en"):
        lessons("fr", tmp_path)


def test_two_lessons_of_one_name_are_refused(tmp_path: Path) -> None:
    write(tmp_path, LESSON, "01_cats.md")
    write(tmp_path, LESSON, "02_cats.md")
    with pytest.raises(LessonError, match=r"02_cats\.md has the name of 01_cats\.md"):
        lessons("en", tmp_path)


def test_the_lesson_in_the_page_about_lessons_can_be_passed(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "lessons.md"
    shown = re.findall(r"^````markdown\n(.*?)^````$", page.read_text("utf-8"), re.M | re.S)
    lesson = load(write(tmp_path, "".join(shown), "01_means.md"))
    assert (len(lesson.cells), len(lesson.quizzes)) == (1, 1)
    assert run(lesson.cells[0].code, new_namespace()) == lesson.cells[0].output
    challenge, names = challenge_of(lesson), new_namespace()
    run(challenge.start, names)
    assert not check_step(challenge.steps[0], names).ok
    run(challenge.steps[0].solution, names)
    assert check_step(challenge.steps[0], names).ok


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(lesson_module).failed == 0
