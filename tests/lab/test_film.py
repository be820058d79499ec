"""The film of a training: its frames are what a run stopped there has, and it stays small."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("nicegui", reason="needs antorcha[lab]")
pytest.importorskip("ipykernel", reason="needs antorcha[lab]")

import antorcha as torch
from antorcha.lab import curves, film, plane
from antorcha.lab.film import FRAMES, SIDE, Film
from antorcha.lab.kernel import Limits
from antorcha.optim.optimizer import register_optimizer_step_pre_hook, remove_global_step_hooks
from tests.lab.bench import PATIENCE, Bench, patient
from tests.lab.learner import AGAIN, Learner

TRAIN = (
    "import torch\ntorch.manual_seed(3)\nX = torch.randn(40, 2)\ny = (X[:, 0] > 0).long()\n"
    "model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))\n"
    "opt = torch.optim.SGD(model.parameters(), lr=0.5)\nfor step in range({}):\n"
    "    loss = torch.nn.functional.cross_entropy(model(X), y)\n    opt.zero_grad()\n"
    "    loss.backward()\n    opt.step()\n"
)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = Bench(tmp_path_factory.mktemp("work"), Limits(seconds=PATIENCE, memory=3 << 30))
    with patient():
        yield bench
        bench.close()


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Film]:
    """A film that has all the time it wants."""
    monkeypatch.setattr(film, "FREE", 1e9)
    found = Film(lambda: ("loss", 0))
    register_optimizer_step_pre_hook(found)
    try:
        yield found
    finally:
        remove_global_step_hooks()


def trained(steps: int) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(TRAIN.format(steps).replace("import torch", "import antorcha as torch"), names)
    return names


def test_a_frame_is_what_a_run_stopped_there_has(noted: Film) -> None:
    names = trained(30)
    noted.finish()
    frames = list(noted.frames)
    assert [frame.step for frame in frames] == list(range(31))
    assert noted.names(names) == [
        "model.0.weight",
        "model.0.bias",
        "model.2.weight",
        "model.2.bias",
    ]
    assert noted.as_dict(names)["steps"] == list(range(31))
    remove_global_step_hooks()
    for steps in (0, 7, 30):
        stopped = trained(steps)["model"].state_dict()
        for number, value in enumerate(stopped.values()):
            assert np.array_equal(frames[steps].weights[number], value.numpy())
    assert set(frames[0].gradients) == {0, 1, 2, 3}


def test_long_films_are_thinned_by_halves(noted: Film) -> None:
    trained(3 * FRAMES)
    noted.finish()
    steps = [frame.step for frame in noted.frames]
    assert FRAMES / 2 < len(steps) <= FRAMES
    assert (steps[0], steps[-1]) == (0, 3 * FRAMES)
    assert max(np.diff(steps)) <= 8


def test_large_parameters_are_samples_and_memory_is_bounded(
    noted: Film, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(film, "BYTES", 1 << 20)
    weight = torch.randn(1000, 300, requires_grad=True)
    kernel = torch.randn(8, 5, 60, 70, requires_grad=True)
    optimizer = torch.optim.SGD([weight, kernel], lr=0.1)
    for _ in range(200):
        optimizer.step()
    arrays = [a for f in noted.frames for a in (*f.weights.values(), *f.gradients.values())]
    assert all(array.size <= SIDE * SIDE for array in arrays)
    assert sum([array.nbytes for array in arrays]) <= film.BYTES
    assert noted.frames[0].weights[0][0, 1] == weight[0, 7].item()


def test_little_time_makes_few_frames(noted: Film, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(film, "FREE", 0.0)
    monkeypatch.setattr(film, "SHARE", 0.0)
    trained(50)
    noted.finish()
    assert [frame.step for frame in noted.frames] == [0, 50]


def test_what_resists_makes_no_film(noted: Film) -> None:
    class Odd(torch.optim.SGD):
        pass

    optimizer = Odd([torch.ones(2, requires_grad=True)], lr=0.1)
    optimizer.param_groups[0]["params"].append("no tensor")
    noted(optimizer, (), {})
    assert noted.frames == []
    assert noted.as_dict({}) == {}


def test_a_plane_is_offered_where_it_fits() -> None:
    names = trained(5)
    found = plane.find(names)
    assert found is not None
    assert found[0] == "model"
    names["model"].train()
    before = found[1].draw(dict(trained(0)["model"].named_parameters()), "plane")
    after = found[1].draw(dict(trained(60)["model"].named_parameters()), "plane")
    assert before != after
    assert after.count("<circle") == 40
    assert names["model"].training
    assert plane.find({"model": names["model"]}) is None  # no points
    assert plane.find({"X": names["X"], "model": torch.nn.Linear(3, 1)}) is None


def test_curves_of_another_run_are_grey_and_a_step_is_marked() -> None:
    curve = {"values": [3.0, 2.0, 1.0], "steps": [0, 1, 2], "count": 3}
    longer = {"values": [4.0, 4.0], "steps": [0, 9], "count": 10}
    picture = curves.draw({"loss": curve}, "", "step", grey={"loss": longer}, mark=("loss", 1))
    assert picture.count("lab-curve-before") == 1
    assert picture.count("lab-curve-mark") == 1
    assert picture.count("<polyline") == 1
    assert "lab-curve-mark" not in curves.draw({"loss": curve}, "", "step", mark=("other", 1))


def test_a_run_tells_its_film_and_draws_it(bench: Bench) -> None:
    done = bench.run(TRAIN.format(20))
    assert done["ended"] == "ok", done
    told = done["film"]
    assert (told["steps"][0], told["steps"][-1]) == (0, 20)
    assert told["curves"][0] == ["loss", 0]
    assert told["curves"][-1] == ["loss", 19]
    look = bench.child.look
    first = bench.do(look("film", "0 0"))["html"]
    last = bench.do(look("film", f"{len(told['steps']) - 1} 0"))["html"]
    assert first != last
    for heading in ("Values", "Gradient", "Histogram of the values", "The plane"):
        assert heading in first
    assert bench.do(look("film", "999 0")) == {"gone": True}
    assert bench.text("stderr") == ""
    bench.run(TRAIN.format(0) + "print(repr(model[0].weight.flatten().tolist()))\n")
    wanted = {float(text) for text in re.findall(r"-?[\d.]+", bench.text())}
    shown = re.findall(r"<title>\[\d, \d\]: (-?[\d.]+)</title>", first)
    assert len(shown) >= 8
    assert all(min([abs(float(text) - each) for each in wanted]) < 1e-5 for text in shown[:8])
    assert bench.run("x = 1")["film"] == {}


def test_nothing_of_a_film_is_left(bench: Bench) -> None:
    bench.run(TRAIN.format(20))
    bench.run(
        "import antorcha.optim.optimizer as optimizer\n"
        "print(len(optimizer._global_optimizer_pre_hooks))\n"
    )
    assert bench.text() == "1\n"


# ---- in the browser -----------------------------------------------------------------------------


@pytest.mark.slow
@AGAIN
def test_the_film_is_walked_and_two_runs_are_compared(learner: Learner) -> None:
    page = learner.page
    learner.run(TRAIN.format(40))
    learner.run(TRAIN.format(40).replace("lr=0.5", "lr=0.05"))
    learner.tab("Loss")
    step, frame = page.locator(".lab-film-step"), page.locator(".lab-film-frame")
    learner.until(lambda: step.inner_text() == "after 40 of 40 steps", "the last frame")
    learner.until(lambda: frame.locator("svg").count() >= 4, "its pictures")
    learner.until(lambda: page.locator(".lab-curve-before").count() == 1, "the run before")
    assert page.locator(".lab-curve polyline").count() == 1
    assert "grey: the run before" in page.inner_text(".lab-curves")
    end = frame.inner_html()
    slider = page.locator(".lab-film .q-slider__track-container")
    width = slider.bounding_box()["width"]
    slider.click(position={"x": 1, "y": 8})
    learner.until(lambda: step.inner_text() == "after 0 of 40 steps", "step 0")
    learner.until(lambda: frame.inner_html() != end, "another picture")
    begin = frame.inner_html()
    slider.press("ArrowRight")  # (the slider's own keys)
    learner.until(lambda: re.fullmatch("after [1-9] of 40 steps", step.inner_text()), "a key")
    slider.click(position={"x": width - 1, "y": 8})
    learner.until(lambda: frame.inner_html() == end, "the way back")
    learner.button("Play").click()
    learner.until(lambda: step.inner_text() != "after 40 of 40 steps", "the film, playing")
    learner.until(lambda: step.inner_text() == "after 40 of 40 steps", "its end")
    assert begin != end
    learner.button("Pin this curve").click()
    learner.until(lambda: "grey: the pinned run" not in page.inner_text(".lab-curves"), "one run")
    learner.run(TRAIN.format(40).replace("lr=0.5", "lr=2.0"))
    learner.until(lambda: "grey: the pinned run" in page.inner_text(".lab-curves"), "both runs")
    learner.button("Unpin the grey curve").click()
    learner.tab("Tensor inspector")
    assert learner.problems == []
