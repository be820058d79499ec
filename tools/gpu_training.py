"""Training on a GPU beside the CPU: optimizers in graphs, clipped gradients, autocast, modules."""

from __future__ import annotations

import copy
import io
import math
from collections.abc import Callable
from typing import Any

import antorcha as torch
from tools.gpu_checks import check, near, raised

nn, F = torch.nn, torch.nn.functional


def optimizers() -> dict[str, tuple[Any, dict[str, Any]]]:
    """All that count their steps on the GPU where they are asked to."""
    o = torch.optim
    return {
        "Adam": (o.Adam, {}), "Adam amsgrad": (o.Adam, {"amsgrad": True, "weight_decay": 0.1}),
        "AdamW": (o.AdamW, {}), "NAdam": (o.NAdam, {}), "RAdam": (o.RAdam, {}),
        "Adamax": (o.Adamax, {}), "ASGD": (o.ASGD, {"lambd": 0.1}), "Adadelta": (o.Adadelta, {}),
        "RMSprop": (o.RMSprop, {"momentum": 0.9, "centered": True}), "Rprop": (o.Rprop, {}),
    }  # fmt: skip


@check
def capturable_optimizers(small: bool) -> None:
    """As many steps as replays, those that the CPU takes."""
    wrong = []
    for name, (make, options) in optimizers().items():
        ours = steps_of(make, options, "cuda")
        theirs = steps_of(make, options, "cpu")
        for one, other in zip(ours, theirs, strict=True):
            if not torch.allclose(one, other, rtol=1e-5, atol=1e-6):
                wrong.append(f"{name}: {one.tolist()} is not {other.tolist()}")
    assert not wrong, "\n".join(wrong)


def steps_of(make: Any, options: dict[str, Any], device: str) -> list[Any]:
    """Parameters after five steps; on a GPU those after the first are replays of one graph."""
    params = [
        torch.linspace(-1, 1, n, device=device).requires_grad_() for n in (3, 5)
    ]  # fmt: skip
    lr: Any = 0.1
    if device == "cuda":
        lr, options = torch.tensor(0.1, device=device), {**options, "capturable": True}
    optimizer = make(params, lr=lr, **options)
    for p in params:
        p.grad = torch.zeros_like(p)

    def step() -> None:
        for p in params:
            p.grad.copy_(p.detach() * 3 + 1)
        optimizer.step()

    step()
    if device == "cpu":
        for rate in (0.1, 0.05, 0.2, 0.2):
            optimizer.param_groups[0]["lr"] = rate
            step()
        return [p.detach() for p in params]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for rate in (0.1, 0.05, 0.2, 0.2):
        lr.fill_(rate)
        graph.replay()
    return [p.detach().cpu() for p in params]


@check
def clipped_gradients(small: bool) -> None:
    """Norms, of one dtype and of several, and values."""
    for kinds in ((torch.float32,), (torch.float32, torch.bfloat16, torch.float16)):
        for norm in (1.0, 2.0, 3.5, math.inf):
            totals, clipped = [], []
            for device in ("cuda", "cpu"):
                torch.manual_seed(0)
                grads = [torch.randn(7, k + 3).to(kinds[k % len(kinds)]) for k in range(6)]
                params = [nn.Parameter(torch.zeros_like(g.to(device))) for g in grads]
                for p, g in zip(params, grads, strict=True):
                    p.grad = g.to(device)
                totals.append(nn.utils.clip_grad_norm_(params, 0.5, norm_type=norm))
                clipped.append(torch.cat([p.grad.float().flatten() for p in params]))
                assert totals[-1].device.type == device
            near(totals[0], totals[1], 1e-2 if len(kinds) > 1 else 1e-5, f"the norm {norm}")
            near(clipped[0], clipped[1], 1e-2 if len(kinds) > 1 else 1e-5, f"clipped by {norm}")
    p = nn.Parameter(torch.zeros(4, device="cuda"))
    p.grad = torch.tensor([-3.0, 0.1, 2.0, math.nan], device="cuda")
    nn.utils.clip_grad_value_([p], 0.5)
    assert p.grad[:3].tolist() == [-0.5, torch.tensor(0.1).item(), 0.5]
    call = lambda: nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)  # noqa: E731
    assert "non-finite" in str(raised(RuntimeError, call))


def small_cnn() -> Any:
    """Convolutions, normalisation, pooling: (N, 3, 12, 12) -> (N, 10)."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.SiLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(16, 10),
    )  # fmt: skip


def small_transformer() -> Any:
    """An encoder over 12 places of 3 * 12 numbers: (N, 3, 12, 12) -> (N, 10)."""

    class Reader(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
            self.inner, self.first = nn.TransformerEncoder(layer, 2), nn.Linear(36, 32)
            self.last = nn.Linear(32, 10)

        def forward(self, x: Any) -> Any:
            rows = x.permute(0, 2, 1, 3).flatten(2)  # (N, 12, 36)
            return self.last(self.inner(self.first(rows)).mean(1))

    return Reader()


def losses(make: Any, device: str, steps: int, dtype: Any = None, scaled: bool = False) -> Any:
    """The losses of a model's first steps, by autocast to a dtype where one is given."""
    torch.manual_seed(0)
    model, x = make().to(device), torch.randn(16, 3, 12, 12).to(device)
    target = (torch.arange(16) % 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scaler = torch.amp.GradScaler(device, init_scale=2.0**12, enabled=scaled)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast(device, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            out = model(x)
            loss = F.cross_entropy(out, target)
        if dtype is not None:
            assert (out.dtype, loss.dtype) == (dtype, torch.float32), (out.dtype, loss.dtype)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        scaler.step(optimizer)
        scaler.update()
        found.append(loss.item())
    return torch.tensor(found)


@check
def a_cnn_by_autocast(small: bool) -> str:
    """It learns the same in float32, bfloat16 and, with scaled gradients, float16."""
    return compare_losses(small_cnn, 1 if small else 12)


@check
def a_transformer_by_autocast(small: bool) -> str:
    """So does this."""
    return compare_losses(small_transformer, 1 if small else 12)


def compare_losses(make: Callable[[], Any], steps: int) -> str:
    """The losses of all dtypes on a GPU beside those of the CPU in float32, which fall."""
    right = losses(make, "cpu", steps)
    near(losses(make, "cuda", steps), right, 2e-4, "float32")
    near(losses(make, "cuda", steps, torch.bfloat16), right, 5e-3, "bfloat16")
    near(losses(make, "cuda", steps, torch.float16, True), right, 3e-3, "float16")
    assert steps == 1 or right[-1] < 0.97 * right[0], right.tolist()
    return f"from {right[0].item():.3f} to {right[-1].item():.3f}"


@check
def an_overflow_is_skipped(small: bool) -> None:
    """GradScaler leaves the parameters, and halves its scale; fused optimizers do the same."""
    for options in ({}, {"fused": True}):
        p = nn.Parameter(torch.ones(5, device="cuda"))
        optimizer = torch.optim.AdamW([p], lr=0.1, **options)
        scaler = torch.amp.GradScaler("cuda", init_scale=2.0**20, growth_interval=2)
        for factor, power, moved in ((1e35, 19, False), (1.0, 19, True), (1.0, 20, True)):
            before = p.detach().clone()
            optimizer.zero_grad()
            scaler.scale((p * factor).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            assert scaler.get_scale() == 2.0**power, (options, scaler.get_scale())
            assert torch.equal(p.detach(), before) is not moved, (options, factor)


@check
def modules_beside_the_cpu(small: bool) -> None:
    """Forward and backward of modules that are made of many ops."""
    made: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
        "LSTM": (lambda: nn.LSTM(5, 7, 2, batch_first=True), (3, 6, 5)),
        "GRU": (lambda: nn.GRU(5, 7, bidirectional=True), (6, 3, 5)),
        "attention": (lambda: small_transformer(), (2, 3, 12, 12)),
        "cnn": (small_cnn, (4, 3, 12, 12)),
        "conv transposed": (lambda: nn.ConvTranspose2d(3, 4, 3, stride=2), (2, 3, 5, 6)),
        "batch norm": (lambda: nn.BatchNorm1d(5), (7, 5)),
        "bilinear": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), (1, 2, 5, 6)),
        "spectral": (lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(5, 4)), (3, 5)),
    }
    for name, (make, shape) in made.items():
        torch.manual_seed(1)
        here, x = make(), torch.randn(*shape)
        found = []
        for device in ("cpu", "cuda"):
            model = copy.deepcopy(here).to(device)
            given = x.clone().to(device).detach().requires_grad_()
            out = model(given)
            out = out[0] if isinstance(out, tuple) else out
            (out * out.detach().cos()).sum().backward()
            grads = [p.grad for p in model.parameters() if p.grad is not None]
            found.append([out, given.grad, *grads])
        for k, (theirs, ours) in enumerate(zip(*found, strict=True)):
            near(ours, theirs, 2e-5 if k == 0 else 2e-4, f"{name}, {k}")


@check
def a_compiled_step(small: bool) -> None:
    """What is compiled computes what eager ops do."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 3)).cuda()
    x = torch.randn(8, 12, device="cuda")
    compiled = torch.compile(model)
    near(compiled(x), model(x), 1e-5, "forward")
    compiled(x).square().sum().backward()
    ours = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model(x).square().sum().backward()
    for one, p in zip(ours, model.parameters(), strict=True):
        near(one, p.grad, 1e-4, "a gradient")


@check
def transforms(small: bool) -> None:
    """vmap, derivatives of functions, and second order."""
    x = torch.linspace(-1, 1, 12, device="cuda").view(3, 4)

    def f(v: Any) -> Any:
        return (v.sin() * v.roll(1)).sum()

    rows = torch.stack([torch.func.grad(f)(row) for row in x.cpu()])
    near(torch.func.vmap(torch.func.grad(f))(x), rows, 1e-5, "vmap of grad")
    near(torch.func.hessian(f)(x[0]), torch.func.hessian(f)(x[0].cpu()), 1e-5, "hessian")
    near(torch.func.jacfwd(lambda v: v**3)(x[0]), torch.diag(3 * x[0].cpu() ** 2), 1e-5, "jacfwd")


@check
def checkpoints(small: bool) -> None:
    """A model and its optimizer are written and read, here and for the CPU."""
    model = small_cnn().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 3, 12, 12, device="cuda")).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    for where in (None, "cpu", "cuda:0"):
        file.seek(0)
        found = torch.load(file, map_location=where)
        again = small_cnn().to(where or "cuda")
        again.load_state_dict(found["model"])
        torch.optim.Adam(again.parameters()).load_state_dict(found["optimizer"])
        for key, value in model.state_dict().items():
            assert torch.equal(again.state_dict()[key].cpu(), value.cpu()), key
