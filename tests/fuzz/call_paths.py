"""Random programs on both call paths: ``python -m tests.fuzz.call_paths [--minutes M] [--seed S]``.

A program makes leaves, runs ops on what there is (functions, methods, operators, views, indices),
writes in place, hangs hooks on things (some raise), drops tensors, collects garbage, goes backward
and steps in and out of modes. It is run some times natively, so that every key is learnt and
served, and once by the Python path alone; what it does must be the same: results, dtypes, shapes,
strides, versions, gradients, classes of errors. A difference prints the program's seed.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
import warnings
from collections.abc import Callable
from typing import Any

import antorcha as torch
from antorcha.runtime.call import native
from antorcha.runtime.call import plan as plans
from antorcha.runtime.memory import alloc

F = torch.nn.functional
NATIVE_RUNS = 5
SHAPES = [(3,), (2, 3), (3, 2), (2, 2), (1, 3), (), (2, 3, 2), (0, 3)]
DTYPES = [torch.float32, torch.float32, torch.float64, torch.int64, torch.bool]


class Index:
    """An integer of the user's own, which calls back into antorcha."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        torch.ones(2).sum()
        if self.value > 5:
            raise KeyError("no such index")
        return self.value


UNARY: list[Callable[[Any], Any]] = [
    lambda a: a.exp(), torch.tanh, torch.relu, lambda a: -a, torch.sigmoid, lambda a: a.abs(),
    lambda a: a.sum(), lambda a: a.mean(), lambda a: a.sum(0), lambda a: a.sum(-1, True),
    lambda a: a.max(0), lambda a: a.sort(), lambda a: a.t(), lambda a: a.T,
    lambda a: a.view(-1), lambda a: a.reshape(-1, 1), lambda a: a.flatten(), lambda a: a.clone(),
    lambda a: a.unsqueeze(0), lambda a: a.transpose(0, -1), lambda a: a[0], lambda a: a[..., 1:],
    lambda a: a[:, None], lambda a: a[Index(0)], lambda a: a[Index(9)], lambda a: a.chunk(2),
    lambda a: a.unbind(-1), lambda a: a.split(1, -1), lambda a: F.softmax(a, -1),
    lambda a: a.to(torch.float64), lambda a: a.float(), lambda a: a.detach(), lambda a: a.data,
    lambda a: a.expand(2, *a.shape), lambda a: a.permute(*range(a.ndim)), lambda a: a.squeeze(),
    lambda a: a.cumsum(0), lambda a: a.argmax(), lambda a: a.contiguous(), lambda a: a * 2.5,
    lambda a: 3 - a, lambda a: a / 2, lambda a: a ** 2, lambda a: a + True, lambda a: a + 1j,
    lambda a: torch.clamp(a, -0.5, 0.5), lambda a: F.leaky_relu(a, 0.1), lambda a: F.gelu(a),
    lambda a: torch.zeros_like(a), lambda a: a.var(0), lambda a: a.norm(), lambda a: a + "text",
    lambda a: a.sum(7), lambda a: a.view(5, 7), lambda a: a.no_such_method(), lambda a: a[5],
    lambda a: torch.where(a > 0, a, -a), lambda a: a.masked_fill(a > 0, 0.5), lambda a: a.item(),
    lambda a: torch.cat([a, a]), lambda a: torch.stack([a, a], -1), lambda a: a.index_select(
        0, torch.tensor([0, 0])), lambda a: a.tolist(), lambda a: a.numpy(), lambda a: a.real,
]  # fmt: skip
BINARY: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b,
    lambda a, b: a @ b, lambda a, b: a > b, lambda a, b: a == b, lambda a, b: a & b,
    torch.maximum, torch.mul, lambda a, b: torch.add(a, b, alpha=2),
    lambda a, b: torch.where(a > 0, a, b), lambda a, b: torch.cat([a, b]),
    lambda a, b: torch.stack((a, b)), lambda a, b: F.linear(a, b), lambda a, b: F.mse_loss(a, b),
    lambda a, b: a.view_as(b), lambda a, b: torch.lerp(a, b, 0.25), lambda a, b: a.expand_as(b),
    lambda a, b: torch.addcmul(a, a, b, value=0.5), lambda a, b: a // b, lambda a, b: a % b,
    lambda a, b: torch.atan2(a, b), lambda a, b: a.dot(b), lambda a, b: torch.matmul(a, b.t()),
]  # fmt: skip
WRITES: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a.add_(b), lambda a, b: a.mul_(2.0), lambda a, b: a.sub_(b, alpha=2),
    lambda a, b: a.copy_(b), lambda a, b: a.zero_(), lambda a, b: a.fill_(0.5),
    lambda a, b: a.relu_(), lambda a, b: a.tanh_(), lambda a, b: a.div_(b),
    lambda a, b: a.__setitem__(0, b), lambda a, b: a.__setitem__(0, 1.5), lambda a, b: a.t_(),
    lambda a, b: a.clamp_(0, 1), lambda a, b: a.__iadd__(1), lambda a, b: a.__imul__(b),
    lambda a, b: a.requires_grad_(), lambda a, b: a.detach_(), lambda a, b: a.squeeze_(),
    lambda a, b: torch.add(a, b, out=a), lambda a, b: torch.exp(a, out=b),
    lambda a, b: a.masked_fill_(a > 0, -1.0), lambda a, b: a.exp_(), lambda a, b: a.neg_(),
]  # fmt: skip


def raising(g: Any) -> None:
    raise ZeroDivisionError("a hook")


HOOKS: list[Callable[[Any], Any]] = [
    lambda g: g * 2, lambda g: None, raising, lambda g: g.detach().clone(),
    lambda g: (gc.collect(), None)[1], lambda g: plans.flush(),
]  # fmt: skip


class Machine:
    """Runs one program: what it has made, and what has happened."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.values: list[Any] = []
        self.events: list[Any] = []
        for k in range(4):
            self.leaf(k)

    def leaf(self, seed: int) -> None:
        r = self.random
        shape, dtype = r.choice(SHAPES), r.choice(DTYPES)
        count = 1
        for n in shape:
            count *= n
        made = torch.tensor([r.uniform(-2, 2) for _ in range(count)]).view(shape).to(dtype)
        if dtype.is_floating_point and r.random() < 0.7:
            made.requires_grad_()
        self.keep(made)

    def keep(self, made: Any) -> None:
        if isinstance(made, torch.Tensor):
            if len(self.values) > 12:
                self.values.pop(self.random.randrange(len(self.values)))
            if made.numel() < 200:
                self.values.append(made)
        elif isinstance(made, (tuple, list)):
            for each in made[:3]:
                self.keep(each)

    def step(self) -> None:
        r = self.random
        kind = r.choices(
            ["unary", "binary", "write", "leaf", "hook", "backward", "drop", "collect", "flush",
             "root"],
            [12, 10, 5, 1, 1, 3, 1, 0.3, 0.1, 1],
        )[0]  # fmt: skip
        a, b = r.choice(self.values), r.choice(self.values)
        which = r.random()
        mode = r.choices([None, "no_grad", "inference", "anomaly"], [20, 2, 0.5, 0.3])[0]
        done: Any = None
        try:
            with (
                torch.no_grad() if mode == "no_grad"
                else torch.inference_mode() if mode == "inference"
                else torch.autograd.detect_anomaly() if mode == "anomaly"
                else torch.enable_grad()
            ):  # fmt: skip
                if kind == "unary":
                    done = UNARY[int(which * len(UNARY))](a)
                elif kind == "binary":
                    done = BINARY[int(which * len(BINARY))](a, b)
                elif kind == "write":
                    done = WRITES[int(which * len(WRITES))](a, b)
                elif kind == "hook":
                    done = a.register_hook(HOOKS[int(which * len(HOOKS))]) and None
                elif kind == "root":
                    done = sum([t.sum() for t in self.values if t.requires_grad])
                elif kind == "backward":
                    done = a.sum().backward(retain_graph=which < 0.3)
        except Exception as error:
            done = type(error).__name__
        if kind == "leaf":
            self.leaf(r.randrange(100))
        elif kind == "drop" and len(self.values) > 3:
            self.values.pop(r.randrange(len(self.values)))
        elif kind == "collect":
            gc.collect()
        elif kind == "flush":
            plans.flush()
        self.events.append((kind, int(which * 1000), look(done)))
        self.keep(done)

    def run(self, length: int) -> list[Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(length):
                self.step()
                self.events.append([look(t) for t in self.values])
        return self.events


def look(value: Any) -> Any:
    """All that can be seen of a value; equal for equal values."""
    if isinstance(value, torch.Tensor):
        return [outcome(value, see) for see in SEEN]
    if isinstance(value, (tuple, list)):
        return [look(each) for each in value]
    return type(value).__name__ if not isinstance(value, (str, int, float, bool)) else repr(value)


def outcome(value: Any, see: Callable[[Any], Any]) -> Any:
    try:
        return see(value)
    except RuntimeError as error:  # a view that was written to has no history
        return type(error).__name__


SEEN: list[Callable[[Any], Any]] = [
    lambda t: str(t.dtype), lambda t: tuple(t.shape), lambda t: t.stride(),
    lambda t: t.storage_offset(), lambda t: t.requires_grad, lambda t: t.output_nr,
    lambda t: type(t.grad_fn).__name__, lambda t: t._version, lambda t: t._is_view(),
    lambda t: repr(t.detach().tolist()), lambda t: t.grad.stride() if t.is_leaf and t.requires_grad
    and t.grad is not None else None, lambda t: repr(t.grad.tolist()) if t.is_leaf and
    t.requires_grad and t.grad is not None else None,
]  # fmt: skip


def compare(seed: int, length: int = 30) -> str:
    """What differs between the two paths on a program; empty when nothing does."""
    natively = [Machine(seed).run(length) for _ in range(NATIVE_RUNS)]
    with native.off():
        by_python = Machine(seed).run(length)
    for turn, events in enumerate(natively):
        for k, (a, b) in enumerate(zip(events, by_python, strict=True)):
            if a != b:
                return f"seed {seed}, run {turn}, event {k}:\n  native {a}\n  python {b}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(2)
    end = time.monotonic() + 60 * given.minutes
    seed, found = given.seed, 0
    while time.monotonic() < end and found < 10:
        difference = compare(seed)
        if difference:
            found += 1
            print(difference, flush=True)
        seed += 1
    gc.collect()
    print(f"{seed - given.seed} programs, {found} differences, {alloc.stats().live} bytes live")


if __name__ == "__main__":
    main()
