"""``antorcha demo``: train a convolutional network to read handwritten digits.

The 1797 images of 8 x 8 pixels come with scikit-learn. Everything is written against PyTorch's API
and takes the library as the argument `torch`, so that the same lines train on antorcha and, for
comparison (``bench/``, tests), on PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import antorcha

TEST_SHARE = 5  # one image in so many is kept for the test
SAMPLES_SHOWN = 24

Tensor = Any  # of whichever library `torch` is
Images = npt.NDArray[Any]


class Digits(NamedTuple):
    """Images as (N, 1, 8, 8) floats from 0 to 1, labels as (N,) integers."""

    train_images: Images
    train_labels: Images
    test_images: Images
    test_labels: Images


@dataclass
class TrainingHistory:
    """What the loss curve shows: the loss of every step, the test accuracy after every epoch."""

    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)


def main(*, epochs: int, out: Path, seed: int, batch_size: int, device: str = "cpu") -> int:
    """Train, test, draw and save; return the exit code."""
    packages = {"sklearn": "scikit-learn", "matplotlib": "matplotlib"}
    missing = [package for name, package in packages.items() if find_spec(name) is None]
    if missing:
        print(f"antorcha demo needs {' and '.join(missing)}: pip install 'antorcha[demo]'")
        return 1
    torch = antorcha
    out.mkdir(parents=True, exist_ok=True)
    digits = load_digits(seed)
    torch.manual_seed(seed)
    model = build_model(torch).to(device)
    history = _train_with_progress(torch, model, digits, epochs, batch_size)

    model_path = out / "digits.pt"
    torch.save(model.state_dict(), model_path)
    reloaded = build_model(torch)  # what is reported is what the file holds
    reloaded.load_state_dict(torch.load(model_path, map_location="cpu"))
    predicted = predict(torch, reloaded, digits.test_images)
    picture_path = out / "digits.png"
    draw(picture_path, history, digits, predicted)
    _report(digits, predicted, picture_path, model_path)
    return 0


# ---- the data, the network, the training: what one writes for PyTorch ---------------------------


def load_digits(seed: int) -> Digits:
    """scikit-learn's digits, shuffled by `seed` and split into training and test images."""
    from sklearn.datasets import load_digits as sklearn_digits

    data = sklearn_digits()
    order = np.random.default_rng(seed).permutation(len(data.target))
    images = (data.images[order] / 16.0).astype(np.float32)[:, None]  # (N, 1, 8, 8)
    labels = data.target[order].astype(np.int64)
    kept = len(labels) // TEST_SHARE
    return Digits(images[kept:], labels[kept:], images[:kept], labels[:kept])


def build_model(torch: Any) -> Any:
    """Two convolutions, a pooling, two linear layers: about 39,000 parameters."""
    nn = torch.nn
    return nn.Sequential(  # (B, 1, 8, 8)
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),  # (B, 16, 8, 8)
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 32, 4, 4)
        nn.Flatten(),  # (B, 512)
        nn.Linear(512, 64),
        nn.ReLU(),
        nn.Dropout(0.25),
        nn.Linear(64, 10),
    )


def make_loader(torch: Any, digits: Digits, batch_size: int) -> Any:
    """Batches of the training images, in a new order every epoch."""
    dataset = torch.utils.data.TensorDataset(
        torch.from_numpy(digits.train_images), torch.from_numpy(digits.train_labels)
    )
    return torch.utils.data.DataLoader(dataset, batch_size=batch_size, shuffle=True)


def train_epoch(torch: Any, model: Any, loader: Any, optimizer: Any) -> Iterator[float]:
    """One pass over the training images; yields the loss of every step."""
    loss_of = torch.nn.CrossEntropyLoss()
    device = next(model.parameters()).device
    model.train()
    for images, labels in loader:
        loss = loss_of(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def predict(torch: Any, model: Any, images: Images) -> Images:
    """The digit that the model reads in each image."""
    device = next(model.parameters()).device
    model.eval()
    with torch.no_grad():
        scores: Tensor = model(torch.from_numpy(images).to(device))  # (N, 10)
    answers: Images = scores.argmax(dim=1).cpu().numpy()
    return answers


def train(
    torch: Any,
    model: Any,
    digits: Digits,
    epochs: int,
    batch_size: int,
    after_step: Callable[[TrainingHistory], None] = lambda history: None,
) -> TrainingHistory:
    """Train `model` with Adam; `after_step` is told after every step and every epoch."""
    history = TrainingHistory()
    loader = make_loader(torch, digits, batch_size)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(epochs):
        for loss in train_epoch(torch, model, loader, optimizer):
            history.losses.append(loss)
            after_step(history)
        right = predict(torch, model, digits.test_images) == digits.test_labels
        history.accuracies.append(float(right.mean()))
        after_step(history)
    return history


# ---- what is shown ------------------------------------------------------------------------------


def _train_with_progress(
    torch: Any, model: Any, digits: Digits, epochs: int, batch_size: int
) -> TrainingHistory:
    steps = epochs * -(-len(digits.train_labels) // batch_size)
    columns = (
        TextColumn("[bold]training"),
        BarColumn(),
        TextColumn("epoch {task.fields[epoch]}/" + str(epochs)),
        TextColumn("loss {task.fields[loss]:.4f}"),
        TextColumn("test accuracy {task.fields[accuracy]:.1%}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns) as progress:
        task = progress.add_task("training", total=steps, epoch=1, loss=float("nan"), accuracy=0.0)

        def after_step(history: TrainingHistory) -> None:
            done = len(history.accuracies)
            progress.update(
                task,
                completed=len(history.losses),
                epoch=min(done + 1, epochs),
                loss=float(np.mean(history.losses[-20:])),
                accuracy=history.accuracies[-1] if done else 0.0,
            )

        return train(torch, model, digits, epochs, batch_size, after_step)


def _report(digits: Digits, predicted: Images, picture: Path, model: Path) -> None:
    right = int((predicted == digits.test_labels).sum())
    total = len(predicted)
    console = Console(highlight=False)
    console.print(f"test accuracy [bold green]{right / total:.2%}[/] ({right} of {total} images)")
    console.print(f"picture       {picture}")
    console.print(f"model         {model}")


def draw(path: Path, history: TrainingHistory, digits: Digits, predicted: Images) -> None:
    """Write one picture: the loss curve, the confusion matrix, and sample predictions."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(11, 8), layout="constrained")
    FigureCanvasAgg(figure)  # draws without a screen
    top, bottom = figure.subfigures(2, 1, height_ratios=(3, 2))
    left, right = top.subplots(1, 2)
    _draw_loss(left, history)
    _draw_confusion(right, digits.test_labels, predicted)
    _draw_samples(bottom, digits, predicted)
    figure.savefig(path, dpi=120)


def _draw_loss(axes: Any, history: TrainingHistory) -> None:
    axes.plot(history.losses, color="0.75", linewidth=0.8, label="loss of a step")
    window = min(20, len(history.losses))
    smooth = np.convolve(history.losses, np.ones(window) / window, mode="valid")
    axes.plot(np.arange(len(smooth)) + window - 1, smooth, color="C0", label=f"mean of {window}")
    axes.set(title="Training", xlabel="step", ylabel="cross entropy", yscale="log")
    accuracy = axes.twinx()
    steps = len(history.losses) // len(history.accuracies)
    ends = steps * np.arange(1, len(history.accuracies) + 1)
    accuracy.plot(ends, history.accuracies, "C1o-", markersize=3, label="test accuracy")
    accuracy.set_ylabel("test accuracy")
    lines = axes.get_lines() + accuracy.get_lines()
    axes.legend(lines, [line.get_label() for line in lines], loc="center right")


def _draw_confusion(axes: Any, labels: Images, predicted: Images) -> None:
    counts = np.zeros((10, 10), int)
    np.add.at(counts, (labels, predicted), 1)
    axes.imshow(counts, cmap="Blues")
    for (row, column), count in np.ndenumerate(counts):
        if count:
            colour = "white" if count > counts.max() / 2 else "black"
            axes.text(column, row, count, ha="center", va="center", color=colour, fontsize=8)
    accuracy = float((labels == predicted).mean())
    axes.set(title=f"Test images: {accuracy:.1%} right", xlabel="read as", ylabel="digit")
    axes.set_xticks(range(10))
    axes.set_yticks(range(10))


def _draw_samples(figure: Any, digits: Digits, predicted: Images) -> None:
    """The images read wrongly first, in red: they are the ones worth looking at."""
    wrong = predicted != digits.test_labels
    order = np.argsort(~wrong, kind="stable")[:SAMPLES_SHOWN]
    figure.suptitle("What it read (red: wrongly)")
    for axes, index in zip(figure.subplots(2, SAMPLES_SHOWN // 2).flat, order):
        axes.imshow(digits.test_images[index, 0], cmap="gray_r")
        said, truth = int(predicted[index]), int(digits.test_labels[index])
        title = f"{said}, not {truth}" if said != truth else str(said)
        axes.set_title(title, fontsize=9, color="red" if said != truth else "black")
        axes.set_axis_off()
    for axes in figure.axes[len(order) :]:
        axes.set_axis_off()
