"""Home: the map of the course, answers to redo, and the goal on top."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="needs antorcha[lab]")
pytest.importorskip("ipykernel", reason="needs antorcha[lab]")

from antorcha.data.digits import _WAYS
from antorcha.lab import goal
from antorcha.lab.app import CommandOptions, first_page
from antorcha.lab.kernel import Limits
from antorcha.lab.lesson import lessons
from antorcha.lab.words import LabWords
from antorcha.lab.workplace import MEMORY, Workplace
from tests.lab.course import new_namespace, run
from tests.lab.learner import AGAIN, Lab, Learner


def test_the_goal_is_the_final_project_in_five_stages(tmp_path: Path) -> None:
    workplace = Workplace(tmp_path, Limits())
    for lang in ("en", "es"):
        slugs = [lesson.slug for lesson in lessons(lang)]
        assert slugs[-1] == goal.PROJECT
        stages = list(goal.STAGES.values())
        assert [slug for slug in slugs if slug in stages] == stages
        project = goal.project(workplace, lang)
        assert project is not None
        assert project.challenge is not None
        assert len(project.challenge.steps) == len(goal.STAGES)
        assert all(LabWords(lang)(key) for key in goal.STAGES)
        assert ".pt" not in goal.program(project)
    assert project is not None
    names = new_namespace()
    run(goal.program(project), names)
    scores = names[goal.MODEL](names["X_new"])
    assert (scores.argmax(dim=1) == names["y_new"]).float().mean().item() > 0.9
    assert goal.session(workplace).file.is_saved
    assert list(tmp_path.iterdir()) == []


def test_what_is_remembered_of_the_way(tmp_path: Path) -> None:
    workplace = Workplace(tmp_path, Limits())
    assert (workplace.here, workplace.reached("digits"), workplace.last) == ("", 0, "")
    workplace.reach("digits", 3)
    workplace.reach("digits", 1)
    workplace.remember(last="/home", here="memory")
    again = Workplace(tmp_path, Limits())
    assert (again.here, again.reached("digits"), again.last) == ("memory", 3, "/home")
    assert first_page("home", CommandOptions(folder=tmp_path)).first == "/home"


# ---- in the browser -----------------------------------------------------------------------------


def draw(page: Any, digit: int) -> None:
    """Draw a digit on the pad, with the mouse."""
    pad = page.locator(".lab-pad-board")
    pad.scroll_into_view_if_needed()
    box = pad.bounding_box()
    for line in _WAYS[digit][0]:
        points = [
            (
                box["x"] + box["width"] * (0.25 + 0.5 * x),
                box["y"] + box["height"] * (0.15 + 0.7 * y),
            )
            for x, y in line
        ]
        page.mouse.move(*points[0])
        page.mouse.down()
        for point in points[1:]:
            page.mouse.move(*point, steps=5)
        page.mouse.up()


@pytest.mark.slow
@AGAIN
def test_the_network_reads_what_is_drawn_on_home(lab: Lab, learner: Learner) -> None:
    page, words = learner.page, LabWords("en")
    page.locator(".lab-brand").click()
    page.get_by_text("Draw a digit here").wait_for()
    for digit in (3, 5, 8):
        draw(page, digit)
        wanted = f"It reads {digit}"
        page.locator(".lab-pad-said", has_text=wanted).wait_for()
        page.locator(".lab-pad-wipe").click()
    assert page.locator(".lab-stage").count() == 5
    assert page.locator(".lab-map-one").count() == len(lessons("en"))
    assert words("here") in page.locator(".lab-map-here").inner_text()
    assert not (lab.folder / "digits_goal.py").exists()
    assert learner.problems == []


@pytest.mark.slow
@AGAIN
def test_wrong_answers_are_redone_in_spanish_on_a_narrow_screen(lab: Lab, learner: Learner) -> None:
    page = learner.page
    base = page.url.partition("/home")[0].partition("/lesson")[0]
    learner.open(f"{base}/lesson/memory?lang=es")
    quiz = lessons("es")[1].quizzes[0]
    right = [option.right for option in quiz.options].index(True)
    options = page.locator(".lab-quiz").first.locator(".lab-option")
    options.nth((right + 1) % len(quiz.options)).click()
    page.locator(".lab-reason", has_text="No.").wait_for()
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto(f"{base}/home?lang=es")
    page.get_by_text("Dibuja aquí una cifra").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    again = page.locator(".lab-redo-one")
    assert again.count() == 1
    assert again.locator(".lab-wrong").count() == 0
    again.locator(".lab-option").nth(right).press("Enter")
    page.locator(".lab-reason", has_text="Correcto.").wait_for()
    kept = json.loads((lab.folder / MEMORY).read_text())["answers"]["memory"]
    assert kept == {"1": right}
    page.reload()
    page.get_by_text("Dibuja aquí una cifra").wait_for()
    assert again.count() == 0
    go = page.locator(".lab-go")
    assert go.inner_text().endswith(f"Seguir: 2. {lessons('es')[1].title}")
    go.press("Enter")
    page.wait_for_url("**/lesson/memory?lang=es")
    page.set_viewport_size({"width": 1280, "height": 800})
    assert learner.problems == []
