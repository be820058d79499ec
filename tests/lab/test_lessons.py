"""The course: every lesson runs, prints what it says and can be passed, in every language."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import antorcha as torch
from antorcha.lab.check import check_step
from antorcha.lab.lesson import FOLDER, Cell, Inspect, Lesson, languages, lessons
from tests.lab.course import challenge_of, every_lesson, new_namespace, run

ENGLISH = lessons("en")


@pytest.fixture(autouse=True)
def _as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A lesson may write files, and set the number of threads, the seed and the default dtype."""
    monkeypatch.chdir(tmp_path)
    threads, state, dtype = (
        torch.get_num_threads(),
        torch.get_rng_state(),
        torch.get_default_dtype(),
    )
    yield
    torch.set_num_threads(threads)
    torch.set_rng_state(state)
    torch.set_default_dtype(dtype)


# ---- each lesson --------------------------------------------------------------------------------


@every_lesson
def test_cells_run_and_print_what_they_say(lesson: Lesson) -> None:
    names = new_namespace()
    assert lesson.cells
    for part in lesson.parts:
        if isinstance(part, Inspect):
            assert isinstance(eval(part.expression, names), torch.Tensor), part.expression
        elif isinstance(part, Cell):
            printed = run(part.code, names, part.line, lesson.path.name)
            if part.varies:
                assert printed, f"line {part.line}: prints nothing, so it does not vary"
            else:
                assert printed == (part.output or ""), f"line {part.line}"


@every_lesson
def test_three_questions_and_a_challenge(lesson: Lesson) -> None:
    assert len(lesson.quizzes) == 3
    for quiz in lesson.quizzes:
        assert sum(option.right for option in quiz.options) == 1
        assert all(option.why for option in quiz.options)
        texts = [option.text for option in quiz.options]
        assert len(set(texts)) == len(texts)
    assert all(step.hints for step in challenge_of(lesson).steps)


@every_lesson
def test_right_answers_are_not_always_in_the_same_place(lesson: Lesson) -> None:
    places = {[option.right for option in quiz.options].index(True) for quiz in lesson.quizzes}
    assert len(places) > 1


@every_lesson
def test_the_challenge_can_be_passed_and_not_otherwise(lesson: Lesson) -> None:
    challenge = challenge_of(lesson)
    code = challenge.start
    for step in challenge.steps:
        for later in challenge.steps[challenge.steps.index(step) :]:
            verdict = check_step(later, _names_after(code))
            assert not verdict.ok, f"line {later.line}: passes without its solution"
            _is_readable(verdict.message)
        code += step.solution
        verdict = check_step(step, _names_after(code))
        assert verdict.ok, f"line {step.line}: {verdict.message}"
    names = _names_after(code)
    for step in challenge.steps:  # what comes later undoes nothing
        assert check_step(step, names).ok, f"line {step.line}"


WRONG: list[Any] = [
    None,
    3,
    "word",
    [1, 2],
    torch.zeros(2, 2),
    torch.zeros(7, dtype=torch.int64),
    torch.tensor(True),
    lambda *_: None,
    lambda *_: torch.zeros(2, 2),
]


@every_lesson
def test_checks_have_an_answer_to_values_of_any_kind(lesson: Lesson) -> None:
    challenge = challenge_of(lesson)
    code, names = challenge.start, _names_after(challenge.start)
    for step in challenge.steps:
        code += step.solution
        known, names = set(names), _names_after(code)
        looked_at = {node.id for node in ast.walk(ast.parse(step.check)) if type(node) is ast.Name}
        for name in looked_at & (set(names) - known):
            for value in WRONG:
                verdict = check_step(step, {**names, name: value})
                assert not verdict.ok, f"line {step.line}: {name} = {value!r}"
                assert not re.search("could not go on|no pudo seguir", verdict.message), (
                    f"line {step.line}: {name} = {value!r}: {verdict.message}"
                )


def _names_after(code: str) -> dict[str, Any]:
    names = new_namespace()
    run(code, names)
    return names


def _is_readable(message: str) -> None:
    assert 15 < len(message) < 400, message
    assert message[-1] in ".!?`", message
    assert "object at 0x" not in message


@every_lesson
def test_prose_is_well_kept(lesson: Lesson) -> None:
    for number, line in enumerate(lesson.path.read_text(encoding="utf-8").splitlines(), 1):
        assert line == line.rstrip(), f"line {number} ends with blanks"
        assert "\t" not in line, f"line {number} has a tab"


# ---- the course ---------------------------------------------------------------------------------


def test_every_language_has_the_same_lessons() -> None:
    files = {
        lang: [path.name for path in sorted((FOLDER / lang).glob("*"))] for lang in languages()
    }
    assert set(files) >= {"en", "es"}
    assert all(names == files["en"] for names in files.values())


@pytest.mark.parametrize("lang", languages())
def test_the_editors_files_do_not_overwrite_each_other(lang: str) -> None:
    files = [lesson.file for lesson in lessons(lang)]
    assert len(set(files)) == len(files)


@pytest.mark.parametrize("lang", [lang for lang in languages() if lang != "en"])
@pytest.mark.parametrize("number", range(len(ENGLISH)), ids=[lesson.slug for lesson in ENGLISH])
def test_only_the_words_differ(lang: str, number: int) -> None:
    english, other = ENGLISH[number], lessons(lang)[number]
    assert (other.minutes, other.file) == (english.minutes, english.file)
    assert other.title != english.title
    kinds = [[type(part).__name__ for part in lesson.parts] for lesson in (english, other)]
    assert kinds[0] == kinds[1]
    assert _shown(other) == _shown(english)
    for ours, theirs in zip(english.cells, other.cells, strict=True):
        assert _skeleton(theirs.code) == _skeleton(ours.code), f"lines {ours.line}, {theirs.line}"
        assert _numbers(theirs.output) == _numbers(ours.output), f"lines {ours.line}, {theirs.line}"
        assert theirs.varies == ours.varies
    for ours, theirs in zip(english.quizzes, other.quizzes, strict=True):
        rights = [[option.right for option in quiz.options] for quiz in (ours, theirs)]
        assert rights[0] == rights[1], f"lines {ours.line}, {theirs.line}"
    ours, theirs = challenge_of(english), challenge_of(other)
    assert _skeleton(theirs.start) == _skeleton(ours.start)
    for mine, yours in zip(ours.steps, theirs.steps, strict=True):
        assert _skeleton(yours.solution) == _skeleton(mine.solution), f"line {yours.line}"
        assert _skeleton(yours.check) == _skeleton(mine.check), f"line {yours.line}"
        assert len(yours.hints) == len(mine.hints), f"line {yours.line}"


def _shown(lesson: Lesson) -> list[str]:
    return [part.expression for part in lesson.parts if isinstance(part, Inspect)]


def _skeleton(code: str) -> str:
    """The code without comments and without the words that are printed or said."""
    return ast.dump(_Wordless().visit(ast.parse(code)))


class _Wordless(ast.NodeTransformer):
    """Blanks the texts in asserts' messages, print's arguments and docstrings."""

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        names = {child.id for child in ast.walk(node.msg or node) if isinstance(child, ast.Name)}
        node.msg = ast.Constant(" ".join(sorted(names)))
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "print":
            return _Textless().visit(node)
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Constant):
            return ast.Pass()
        return self.generic_visit(node)


class _Textless(ast.NodeTransformer):
    """Blanks all texts; of an f-string the values stay, in whatever order the sentence has them."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        values = [ast.dump(value) for value in node.values if isinstance(value, ast.FormattedValue)]
        return ast.Constant(" ".join(sorted(values)))


def _numbers(output: str | None) -> list[str]:
    return sorted(re.findall(r"\d+\.?\d*", output or ""))


def test_the_same_code_is_the_same_and_other_code_is_not() -> None:
    same = "x = 1  # one\nprint('it is', x, f'{x} of {x + 1}')\nassert x, f'not {x}'"
    spanish = "x = 1  # uno\nprint('es', x, f'de {x + 1}, {x}')\nassert x, f'{x} no vale'"
    assert _skeleton(same) == _skeleton(spanish)
    for old, new in (("x = 1", "x = 2"), ("is', x", "is', y"), ("assert x", "assert not x")):
        assert _skeleton(same.replace(old, new)) != _skeleton(same)
    assert _skeleton("x.to('cpu')") != _skeleton("x.to('cuda')")
