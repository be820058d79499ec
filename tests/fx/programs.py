"""Programs that are traced with antorcha and with PyTorch; the texts must be the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any


def functions(torch: Any) -> Iterator[Callable[..., Any]]:
    F = torch.nn.functional

    def arithmetic(x, y=2, *rest, flag=True, **more):
        return {"a": -x + 3 // y - x @ x, "b": [x[0, 1:3, ...], (2**x, x == y)]}

    def calls(x):
        a, b = x.chunk(2, dim=1)
        z = torch.cat([a, b], dim=1).view(x.size(0), -1)
        z += torch.zeros(x.size(0)) * math.pi
        return torch.max(z, dim=1).values, z.shape[0], torch.einsum("ij,jk->ik", z, z)

    def layers(x):
        x = F.max_pool2d(F.relu(x), 2)
        x = F.dropout(F.softmax(x, -1), 0.5, training=False)
        x = F.linear(F.gelu(x), x, bias=None) + F.layer_norm(x, (2,))
        return F.cross_entropy(F.interpolate(x, scale_factor=2.0), F.pad(x, (1, 1)))

    def handed_on(x, y):
        """Functions that PyTorch hands on with arguments by name."""
        pairs = torch.einsum("ij,jk->ik", [x, y]) + torch.einsum("ij,jk->ik", x, y)
        parts = torch.split(x, 2) + torch.split(x, 2, 1) + torch.meshgrid(x, y)
        norms = torch.norm(x) + torch.norm(x, 2, 1) + torch.tensordot(x, y) + torch.cdist(x, y)
        rest = torch.unique(x), torch.unique_consecutive(y), torch.unravel_index(x, (2, 3))
        return pairs, parts, norms, rest, torch.stft(x, 4), torch.lu(x), x.norm(), x.split(2)

    def unused(x):
        x.relu()
        torch.sigmoid(input=x)
        x.add_(1)
        return x.T

    def nothing():
        return 1.5

    return iter((arithmetic, calls, layers, handed_on, unused, nothing))


def module(torch: Any) -> Any:
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(1, 2, 3)
            self.bn = torch.nn.BatchNorm2d(2)
            self.layers = torch.nn.Sequential(torch.nn.Linear(16, 4), torch.nn.ReLU())
            self.scale = torch.nn.Parameter(torch.ones(4))
            self.register_buffer("shift", torch.zeros(4))
            self.plain = torch.arange(4.0)

        def forward(self, x):
            x = torch.nn.functional.relu(self.bn(self.conv(x)))
            x = self.layers(torch.flatten(x, 1)[:, :16])
            return x * self.scale + self.shift + self.plain

    torch.manual_seed(0)
    return Net().eval()


def rewritten(torch: Any) -> Iterator[str]:
    """The code after patterns were replaced."""
    fx = torch.fx
    for program, pattern, new in (
        (lambda x, a, b: x + torch.cat([a, b]).sum() + torch.cat([b, a]).sum(),
         lambda a, b: torch.cat([a, b]).sum(), lambda a, b: torch.stack([a, b])),
        (lambda x: torch.relu(torch.relu(torch.relu(x))), lambda x: torch.relu(x),
         lambda x: x.sigmoid()),
        (lambda x: (x + 1).relu() + (x + 2).relu(), lambda x: (x + 1).relu(), lambda x: x.exp()),
        (lambda x: x.relu().exp() + x.relu(), lambda x: x.relu().exp(), lambda x: x.log()),
        (lambda x: x.neg(), lambda x: x.exp(), lambda x: x.log()),
    ):  # fmt: skip
        gm = fx.symbolic_trace(program)
        matches = fx.replace_pattern(gm, pattern, new)
        yield f"{len(matches)} {gm.code}"


def texts(torch: Any) -> Iterator[str]:
    """Everything that is printed."""
    import copy
    import pickle

    fx = torch.fx
    for fn in functions(torch):
        gm = fx.symbolic_trace(fn)
        yield gm.code
        yield str(gm.graph)
        gm.graph.eliminate_dead_code()
        gm.recompile()
        yield gm.code
        yield gm.print_readable(print_output=False)
    net = module(torch)
    gm = fx.symbolic_trace(net)
    yield f"{gm}"
    yield str(gm.graph)
    yield str(list(gm.state_dict()))
    for made in (copy.deepcopy(gm), pickle.loads(pickle.dumps(gm))):
        yield made.code + type(made).__name__
    shapes = __import__(f"{torch.__name__}.fx.passes.shape_prop", fromlist=["ShapeProp"])
    shapes.ShapeProp(gm).propagate(torch.zeros(2, 1, 5, 5))
    yield gm.print_readable(print_output=False)
    optimization = __import__(f"{torch.__name__}.fx.experimental.optimization", fromlist=["fuse"])
    yield optimization.fuse(net).code
    yield from rewritten(torch)
