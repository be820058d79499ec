"""SummaryWriter: the events that are read back are those of PyTorch's."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

import antorcha

pytest.importorskip("tensorboard")


def read(folder: Path) -> list[Any]:
    """All values in all files under a folder: (folder, step, the value's bytes)."""
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event

    found = []
    for path in sorted(folder.rglob("events.out.*")):
        for raw in RawEventFileLoader(str(path)).Load():
            event = Event.FromString(raw)
            where = path.parent.relative_to(folder).as_posix()
            found += [(where, event.step, str(value)) for value in event.summary.value]
            if event.HasField("session_log"):
                found.append((where, event.step, str(event.session_log)))
    return found


def report(lib: Any, folder: Path) -> None:
    writing = importlib.import_module(f"{lib.__name__}.utils.tensorboard")
    x = (lib.arange(24) / 8 - 1.5).reshape(2, 3, 4)
    image = (lib.arange(48) / 64).reshape(3, 4, 4)
    with writing.SummaryWriter(folder, purge_step=3) as w:
        for step in range(3):
            w.add_scalar("loss/train", lib.tensor(0.5 + step), step)
        w.add_scalar("new", 2, 1, new_style=True)
        w.add_scalar("double", 2.5, 1, new_style=True, double_precision=True)
        w.add_scalar("bfloat16", lib.tensor(1.5, dtype=lib.bfloat16, requires_grad=True))
        w.add_scalars("both", {"a": 1.0, "b": lib.tensor(2)}, 4)
        w.add_histogram("x", x, 1)
        w.add_histogram("auto", x, 1, bins="auto")
        w.add_histogram("few", x, 1, bins=list(range(-3, 4)), max_bins=2)
        w.add_histogram("many", x, max_bins=10)
        w.add_histogram_raw("raw", 0, 1, 2, 1.5, 1.25, [0.5, 1], [1, 1])
        w.add_image("image", image)
        w.add_image("bytes", (image * 255).to(lib.uint8), 1, dataformats="CHW")
        w.add_image("gray", image[0], dataformats="HW")
        w.add_images("images", lib.stack([image] * 3))
        w.add_images("ones", image[:, None])
        boxes = lib.tensor([[0.0, 0.0, 2.0, 2.0]])
        w.add_image_with_boxes("boxes", lib.zeros(3, 20, 20), boxes, labels="a")
        w.add_audio("tone", lib.arange(100) / 128, sample_rate=8000)
        w.add_text("words", "# what\n*it* is ä", 2)
        w.add_pr_curve("pr", lib.tensor([0, 1, 1, 0]), lib.tensor([0.2, 0.7, 0.4, 0.6]), 1, 11)
        w.add_pr_curve_raw("raw pr", *[[1, 2]] * 4, [0.5, 1.0], [0.25, 0.5], num_thresholds=2)
        w.add_custom_scalars({"c": {"t": ["Multiline", ["a", "b"]], "m": ["Margin", list("abc")]}})
        w.add_custom_scalars_multilinechart(["a", "b"])
        w.add_custom_scalars_marginchart(["a", "b", "c"])
        w.add_mesh("body", x[:, :, :3], (x[:, :, :3] * 9).abs().to(lib.int32))
        for dtype in (lib.float32, lib.float16, lib.int64, lib.bool, lib.complex64, lib.uint8):
            w.add_tensor(str(dtype), lib.tensor([0, 1, 1]).to(dtype))
        w.add_hparams(
            {"lr": 0.1, "name": "sgd", "fast": True, "n": 3, "t": lib.tensor([2.0]), "none": None},
            {"accuracy": 0.5}, {"n": [1, 3], "name": ["sgd", "adam"]}, run_name="trial",
        )  # fmt: skip
        w.add_embedding(
            lib.arange(12).reshape(4, 3) / 8, [["a", 1], ["b", 2], ["c", 3], ["d", 4]],
            lib.stack([image] * 4), 7, "the/tag", ["letter", "number"],
        )  # fmt: skip
        w.add_embedding(lib.eye(2), ["a", "b"])
        w.flush()


@pytest.mark.oracle
def test_files_are_pytorchs(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    for lib in (antorcha, torch):
        report(lib, tmp_path / lib.__name__)
    ours, theirs = [read(tmp_path / name) for name in ("antorcha", "torch")]
    assert len(ours) > 35
    for a, b in zip(ours, theirs, strict=True):
        assert a == b
    names = [
        sorted(p.relative_to(root) for p in root.rglob("*") if "events.out" not in p.name)
        for root in (tmp_path / "antorcha", tmp_path / "torch")
    ]
    assert names[0] == names[1]
    for name in names[0]:
        if (tmp_path / "antorcha" / name).is_file():
            left, right = [(tmp_path / each / name).read_bytes() for each in ("antorcha", "torch")]
            assert left == right, name


def test_reports_are_read_back(tmp_path: Path) -> None:
    report(antorcha, tmp_path)
    assert {where for where, _, _ in read(tmp_path)} == {".", "both_a", "both_b", "trial"}
    assert (tmp_path / "00007" / "the%2ftag" / "sprite.png").exists()


def test_figures_and_videos(tmp_path: Path) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    from antorcha.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as w:
        for many in (1, 2):
            figures = []
            for _ in range(many):
                figure, axes = pyplot.subplots(figsize=(1, 1))
                axes.plot([0, 1])
                figures.append(figure)
            w.add_figure(f"{many}", figures if many > 1 else figures[0])
        w.add_video("video", antorcha.rand(3, 2, 3, 4, 4))
    assert not pyplot.get_fignums()
    shown = [value for _, _, value in read(tmp_path)]
    assert len(shown) == 3
    assert "GIF89a" in shown[2]
    assert "width: 16" in shown[2]
    assert "height: 4" in shown[2]


def test_wrong_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from antorcha.utils.tensorboard import SummaryWriter, summary

    w = SummaryWriter(tmp_path)
    with pytest.raises(AssertionError, match="one element"):
        w.add_scalar("a", antorcha.ones(2))
    with pytest.raises(NotImplementedError, match="numpy array or torch tensor"):
        w.add_scalar("a", [1])
    with pytest.raises(NotImplementedError, match="add_graph"):
        w.add_graph(antorcha.nn.Linear(1, 1), antorcha.ones(1))
    with pytest.raises(TypeError, match="should be dictionary"):
        w.add_hparams([], {})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no element"):
        w.add_histogram("a", antorcha.ones(0))
    with pytest.raises(AssertionError, match="Expected 3 tags"):
        w.add_custom_scalars_marginchart(["a"])
    with pytest.raises(AssertionError, match="#labels"):
        w.add_embedding(antorcha.eye(2), ["a"])
    summary.audio("a", antorcha.full((3,), 2.0))
    assert "auto clipped" in capsys.readouterr().out
    w.close()
    w.add_scalar("again", 1.0)  # opens another file
    w.close()
