"""The lessons, and what runs their code: what the tests of the course share."""

from __future__ import annotations

import contextlib
import io
import itertools
import linecache
import types
from typing import Any

import pytest

from antorcha.lab.lesson import Challenge, Lesson, languages, lessons

pytest.importorskip("yaml", reason="needs antorcha[lab]")

LESSONS = [lesson for lang in languages() for lesson in lessons(lang)]
every_lesson = pytest.mark.parametrize(
    "lesson", LESSONS, ids=[f"{lesson.lang}-{lesson.slug}" for lesson in LESSONS]
)


_COUNT = itertools.count(1)


def run(code: str, names: dict[str, Any], line: int = 1, file: str = "") -> str:
    """Run code; return what it prints. Blank lines before it: errors show the lesson's line.

    Its source can be looked up, as in the lab and in a notebook: native functions are compiled
    from it.
    """
    file = file or f"<lesson {next(_COUNT)}>"
    source = "\n" * (line - 1) + code
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, file, "exec", dont_inherit=True), names)
    return printed.getvalue()


def new_namespace() -> dict[str, Any]:
    return types.ModuleType("__main__").__dict__


def challenge_of(lesson: Lesson) -> Challenge:
    assert lesson.challenge, "a lesson has a challenge"
    return lesson.challenge
