"""``antorcha precompile``: compiles what most programs call, so that none of them waits for it.

What is compiled is kept on disk (``antorcha info`` says where), for every later process. There is
no list of kernels: small programs of the usual kinds run a few steps each, and what they need is
what others need, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console

import antorcha
from antorcha.cli.info import cached
from antorcha.core.lazy import lazy

native_path = lazy("antorcha.runtime.call.native")


def main(*, quiet: bool = False) -> int:
    """Runs the programs; says how many kernels have been compiled. 0, or 1 if one has failed."""
    console = Console(quiet=quiet)
    before, begin = cached(), time.perf_counter()
    native_path.finish()
    failed = [name for name, run in programs() if not _runs(run)]
    result = cached()["files"] - before["files"]
    seconds = time.perf_counter() - begin
    console.print(f"{result} functions compiled in {seconds:.0f} s; kept in {before['folder']}")
    for name in failed:
        console.print(f"[red]the program '{name}' has failed")
    return int(bool(failed))


def _runs(program: Callable[[Any], None]) -> bool:
    try:
        program(antorcha)
    except Exception:  # the others may still be of use
        return False
    return True


def programs() -> Iterator[tuple[str, Callable[[Any], None]]]:
    """The programs by name."""
    yield "elements", _elements
    yield "layers", _layers
    yield "images", _images
    yield "text", _text
    yield "sequences", _sequences


def _elements(torch: Any) -> None:
    """Arithmetic, comparisons, folds, indexing and printing, of the usual dtypes."""
    for dtype in (torch.float32, torch.float64, torch.int64):
        a = torch.arange(1, 13).view(3, 4).to(dtype)
        for b in (a, a[0], 2):
            for result in (a + b, a - b, a * b, a / b, a > b, a == b):
                result.sum()
        for result in (a.max(), a.min(1), a.sum(0), a.argmax(1), a.sort(1), a.T, a[1:], a[a > 3]):
            str(result)
        torch.cat([a, a])
        torch.stack([a, a])
        a[0] = 1
        a += 1
    x = torch.rand(3, 4).requires_grad_()
    for name in (
        "exp",
        "log",
        "sqrt",
        "sin",
        "cos",
        "tanh",
        "sigmoid",
        "relu",
        "abs",
        "mean",
        "std",
    ):
        getattr(x, name)().sum().backward()
    torch.where(x > 0.5, x, 0.0).clamp(0, 1).pow(2).sum().backward()
    str(torch.randn(3, 4) @ torch.randn(4, 2))
    torch.zeros(3), torch.ones(3), torch.full((3,), 2.0), torch.randint(0, 9, (3,))


def _train(torch: Any, model: Any, loss: Callable[[], Any], *names: str) -> None:
    """Three steps with each of these optimizers."""
    for name in names:
        settings = {"lr": 0.1, "momentum": 0.9} if name == "SGD" else {"lr": 0.01}
        optimizer = getattr(torch.optim, name)(model.parameters(), **settings)
        for _ in range(3):
            optimizer.zero_grad()
            loss().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()


def _layers(torch: Any) -> None:
    """A network of linear layers; regression and classification."""
    nn = torch.nn
    F = nn.functional
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4))
    x, y, target = torch.randn(40, 8), torch.randn(40, 4), torch.randint(0, 4, (40,))
    _train(torch, model, lambda: F.mse_loss(model(x), y), "SGD")
    _train(torch, model, lambda: F.cross_entropy(model(x), target), "Adam", "AdamW")
    with torch.no_grad():
        (model.eval()(x).argmax(1) == target).float().mean().item()


def _images(torch: Any) -> None:
    """A convolutional network with batch normalisation and pooling."""
    nn = torch.nn

    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(4 * 4 * 4, 3),
    )  # fmt: skip
    x, target = torch.rand(4, 1, 8, 8), torch.randint(0, 3, (4,))
    _train(torch, model, lambda: nn.functional.cross_entropy(model(x), target), "SGD", "Adam")
    with torch.no_grad():
        model.eval()(x).softmax(1)


def _text(torch: Any) -> None:
    """An embedding, a layer of a transformer, and the loss of a language model."""
    nn = torch.nn

    layer = nn.TransformerEncoderLayer(16, 2, 32, 0.1, "gelu", batch_first=True)
    embedding, norm, head = nn.Embedding(20, 16), nn.LayerNorm(16), nn.Linear(16, 20)
    model = nn.ModuleList([embedding, layer, norm, head])
    words = torch.randint(0, 20, (2, 7))

    def predicted(words: Any) -> Any:
        mask = nn.Transformer.generate_square_subsequent_mask(words.shape[1])
        return head(norm(layer(embedding(words), src_mask=mask, is_causal=True)))

    def loss() -> Any:
        result = predicted(words[:, :-1])
        return nn.functional.cross_entropy(result.reshape(-1, 20), words[:, 1:].reshape(-1))

    _train(torch, model, loss, "AdamW")
    with torch.no_grad():
        model.eval()
        probabilities = predicted(words)[:, -1].div(0.8).softmax(-1)
        torch.multinomial(probabilities, 1)


def _sequences(torch: Any) -> None:
    """A recurrent network."""
    nn = torch.nn

    lstm, head = nn.LSTM(3, 8, batch_first=True), nn.Linear(8, 1)
    model = nn.ModuleList([lstm, head])
    x, y = torch.randn(4, 5, 3), torch.randn(4, 1)
    _train(torch, model, lambda: nn.functional.mse_loss(head(lstm(x)[0][:, -1]), y), "Adam")
