"""A training that moves: PyTorch, antorcha, PyTorch, with the losses of one that stayed."""

from __future__ import annotations

import io
from typing import Any

import pytest

import antorcha

STEPS = 4


def residual(library: Any) -> Any:
    """A small ResNet-18: a stem, stages of two blocks, the second of which halves the image."""
    nn, F = library.nn, library.nn.functional

    class Block(nn.Module):
        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(after)
            self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(after)
            self.downsample = None
            if stride != 1 or before != after:
                self.downsample = nn.Sequential(
                    nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)
                )

        def forward(self, x: Any) -> Any:
            out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
            return F.relu(out + (x if self.downsample is None else self.downsample(x)))

    blocks = [Block(8, 8, 1), Block(8, 8, 1), Block(8, 16, 2), Block(16, 16, 1)]
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), *blocks,
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4),
    )  # fmt: skip


def generative(library: Any) -> Any:
    """A small GPT: causal attention, dropout, tied embeddings."""
    nn, F = library.nn, library.nn.functional

    class Block(nn.Module):
        def __init__(self, width: int, heads: int) -> None:
            super().__init__()
            self.heads = heads
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                     nn.Linear(4 * width, width), nn.Dropout(0.1))  # fmt: skip
            self.register_buffer("bias", library.ones(8, 8).tril() == 0, persistent=True)

        def forward(self, x: Any) -> Any:
            B, T, C = x.shape
            split = self.qkv(self.ln_1(x)).split(C, dim=2)
            q, k, v = (t.view(B, T, self.heads, -1).transpose(1, 2) for t in split)
            weights = (q @ k.transpose(-2, -1) / (C // self.heads) ** 0.5).masked_fill(
                self.bias[:T, :T], float("-inf")
            )
            y = F.softmax(weights, dim=-1) @ v  # (B, heads, T, C / heads)
            x = x + self.proj(y.transpose(1, 2).reshape(B, T, C))
            return x + self.mlp(self.ln_2(x))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wte, self.wpe = nn.Embedding(11, 16), nn.Embedding(8, 16)
            self.drop = nn.Dropout(0.1)
            self.blocks = nn.ModuleList([Block(16, 2), Block(16, 2)])
            self.head = nn.Linear(16, 11, bias=False)
            self.head.weight = self.wte.weight

        def forward(self, tokens: Any) -> Any:
            x = self.wte(tokens) + self.wpe(library.arange(tokens.shape[1]))
            x = self.drop(x)
            for block in self.blocks:
                x = block(x)
            return self.head(x).flatten(0, 1)

    return GPT()


class Training:
    """Model, optimizer, schedule and random numbers in one library."""

    def __init__(self, library: Any, kind: str) -> None:
        self.library, self.kind = library, kind
        self.before: list[Any] = []
        library.manual_seed(1)
        self.model = (residual if kind == "residual" else generative)(library)
        optim = library.optim
        if kind == "residual":
            self.optimizer = optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9,
                                       weight_decay=1e-3, nesterov=True)  # fmt: skip
            self.schedule = optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 3 * STEPS)
        else:
            plain = [p for p in self.model.parameters() if p.dim() < 2]
            decayed = [p for p in self.model.parameters() if p.dim() >= 2]
            groups = [{"params": decayed, "weight_decay": 0.1}, {"params": plain}]
            self.optimizer = optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95), amsgrad=True)
            warm = optim.lr_scheduler.LinearLR(self.optimizer, 0.1, total_iters=3)
            cool = optim.lr_scheduler.StepLR(self.optimizer, 4, 0.5)
            self.schedule = optim.lr_scheduler.SequentialLR(self.optimizer, [warm, cool], [5])

    def step(self) -> float:
        library = self.library
        if self.kind == "residual":
            inputs = library.randn(4, 3, 8, 8)
            targets = library.randint(0, 4, (4,))
        else:
            tokens = library.randint(0, 11, (4, 9))
            inputs, targets = tokens[:, :-1], tokens[:, 1:].reshape(-1)
        loss = library.nn.functional.cross_entropy(self.model(inputs), targets)
        self.optimizer.zero_grad()
        loss.backward()
        library.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.schedule.step()
        return float(loss.item())

    def saved(self, **options: Any) -> io.BytesIO:
        file = io.BytesIO()
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
                 "schedule": self.schedule.state_dict(), "random": self.library.get_rng_state(),
                 "epoch": 3}  # fmt: skip
        self.library.save(state, file, **options)
        file.seek(0)
        return file

    def restore(self, file: io.BytesIO, assign: bool) -> None:
        state = self.library.load(file, map_location="cpu")
        self.model.load_state_dict(state["model"], assign=assign)
        if assign and self.kind == "generative":
            self.model.head.weight = self.model.wte.weight
        if assign:  # the optimizer is to have the parameters that are there now
            names = dict(zip(self.before, self.model.parameters(), strict=True))
            for group in self.optimizer.param_groups:
                group["params"] = [names[p] for p in group["params"]]
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        self.library.set_rng_state(state["random"])

    def moved_to(self, library: Any, assign: bool = False, **options: Any) -> Training:
        file = self.saved(**options)  # first: a new training seeds the random numbers
        other = Training(library, self.kind)
        other.before = list(other.model.parameters())
        other.restore(file, assign)
        return other


@pytest.mark.oracle
@pytest.mark.parametrize(("kind", "old"), [("residual", False), ("generative", False),
                                           ("generative", True)])  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_a_training_moves_and_moves_back(kind: str, old: bool) -> None:
    torch = pytest.importorskip("torch")
    stayed = Training(torch, kind)
    expected = [stayed.step() for _ in range(3 * STEPS)]
    options = {"_use_new_zipfile_serialization": not old}
    training = Training(torch, kind)
    losses = [training.step() for _ in range(STEPS)]
    training = training.moved_to(antorcha, **options)
    losses += [training.step() for _ in range(STEPS)]
    training = training.moved_to(torch, assign=old, **options)
    losses += [training.step() for _ in range(STEPS)]
    assert losses[:STEPS] == expected[:STEPS]
    assert losses == pytest.approx(expected, rel=2e-5)
    assert training.schedule.get_last_lr() == stayed.schedule.get_last_lr()


@pytest.mark.parametrize("kind", ["residual", "generative"])
@pytest.mark.filterwarnings("ignore")
def test_a_training_goes_on_as_if_it_had_not_stopped(kind: str) -> None:
    stayed = Training(antorcha, kind)
    expected = [stayed.step() for _ in range(2 * STEPS)]
    training = Training(antorcha, kind)
    losses = [training.step() for _ in range(STEPS)]
    training = training.moved_to(antorcha, assign=True)
    losses += [training.step() for _ in range(STEPS)]
    assert losses == expected
