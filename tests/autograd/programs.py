"""Random programs of views, operations and writes in place, that run on two libraries.

A program is a list of steps; a step names what to do and the numbers of the tensors it takes. Each
step ends in a value or in an error, and both must be the same on antorcha and on PyTorch.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

SHAPES = [(3,), (2, 3), (3, 2), (2, 2), (1, 3), ()]
POINTWISE = ["mul", "add", "sub"]
UNARY = ["exp", "tanh", "relu", "neg"]


@dataclass
class Step:
    """One line of a program."""

    what: str
    args: tuple[Any, ...]
    no_grad: bool = False


@dataclass
class Outcome:
    """What a program did: an event per step, and at the end values, flags and gradients."""

    events: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    flags: list[Any] = field(default_factory=list)
    grads: list[Any] = field(default_factory=list)


def make_program(seed: int, length: int = 14) -> list[Step]:
    """A program that makes sense most of the time."""
    rng = random.Random(seed)
    steps = [Step("leaf", (rng.choice(SHAPES), rng.randrange(1000), True))]
    steps.append(Step("times1", (0,)))
    count = 2
    kinds = (
        ["view"] * 6 + ["write"] * 6 + ["binary"] * 3 + ["unary"] * 2 + ["leaf", "times1"]
        + ["detach", "data", "clone", "backward", "writes", "splits", "setitem", "retain"]
    )  # fmt: skip
    for _ in range(length):
        kind = rng.choice(kinds)
        some = [rng.randrange(count) for _ in range(3)]
        no_grad = rng.random() < 0.08
        if kind == "leaf":
            steps.append(Step(kind, (rng.choice(SHAPES), rng.randrange(1000), rng.random() < 0.6)))
            count += 1
        elif kind in ("times1", "detach", "data", "clone"):
            steps.append(Step(kind, (some[0],), no_grad))
            count += 1
        elif kind == "view":
            steps.append(Step(kind, (some[0], rng.randrange(9), rng.randrange(3)), no_grad))
            count += 1
        elif kind == "binary":
            steps.append(Step(kind, (rng.choice(POINTWISE), some[0], some[1]), no_grad))
            count += 1
        elif kind == "unary":
            steps.append(Step(kind, (rng.choice(UNARY), some[0]), no_grad))
            count += 1
        elif kind == "write":
            what = rng.choice(["mul", "add", "copy", "mul2", "add1", "tanh", "exp", "fill", "relu"])
            steps.append(Step(kind, (what, some[0], some[1]), no_grad))
        elif kind == "setitem":
            steps.append(Step(kind, (some[0], rng.randrange(3), some[1]), no_grad))
        elif kind == "writes":
            steps.append(Step("write", ("mul2", some[0], some[1]), no_grad))
            steps.append(Step("write", ("add", some[0], some[2]), no_grad))
        elif kind == "splits":
            steps.append(Step(kind, (some[0], rng.randrange(2)), no_grad))
            count += 2
        else:
            steps.append(Step(kind, (some[0], rng.random() < 0.5)))
    steps += [Step("total", (), False), Step("backward", (-1, False))]
    return steps


class Machine:
    """Runs a program on a library."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.vars: list[Any] = []
        self.outcome = Outcome()

    def run(self, steps: list[Step]) -> Outcome:
        for step in steps:
            before = len(self.vars)
            try:
                if step.no_grad and not self.differs(step):
                    with self.torch.no_grad():
                        self.do(step)
                else:
                    self.do(step)
                self.outcome.events.append("ok")
            except (RuntimeError, IndexError, TypeError, ValueError) as error:
                self.outcome.events.append(f"{_kind(error)}: {error}")
                wanted = 2 if step.what == "splits" else 0 if step.what in _NO_VALUE else 1
                while len(self.vars) < before + wanted:
                    self.vars.append(None)
        self.finish()
        return self.outcome

    def differs(self, step: Step) -> bool:
        """PyTorch says that a view made in no_grad mode requires a gradient (and sends it
        nowhere); antorcha says that it does not."""
        makes_view = step.what in ("view", "splits", "setitem")
        return makes_view and bool(self.var(step.args[0]).requires_grad)

    def finish(self) -> None:
        for var in self.vars:
            if var is None:
                for each in (self.outcome.values, self.outcome.flags, self.outcome.grads):
                    each.append(None)
                continue
            self.outcome.values.append(var.detach().tolist())
            try:
                flags: Any = (var.requires_grad, var.is_leaf, tuple(var.shape))
            except RuntimeError as error:
                flags = _kind(error)
            self.outcome.flags.append(flags)
            has_one = flags != "RuntimeError" and (flags[1] or var.retains_grad)
            grad = var.grad if has_one else None
            self.outcome.grads.append(None if grad is None else grad.tolist())

    def var(self, k: int) -> Any:
        found = self.vars[k]
        if found is None:
            raise IndexError("no such tensor")
        return found

    def do(self, step: Step) -> None:
        getattr(self, f"do_{step.what}")(*step.args)

    def do_leaf(self, shape: tuple[int, ...], seed: int, rg: bool) -> None:
        rng = random.Random(seed)
        count = 1
        for n in shape:
            count *= n
        flat = [rng.randrange(-8, 9) / 8 for _ in range(count)]
        leaf = self.torch.tensor(flat, dtype=self.torch.float64).reshape(shape).clone()
        self.vars.append(leaf.requires_grad_(rg))

    def do_times1(self, k: int) -> None:
        self.vars.append(self.var(k) + 0)

    def do_detach(self, k: int) -> None:
        self.vars.append(self.var(k).detach())

    def do_data(self, k: int) -> None:
        self.vars.append(self.var(k).data)

    def do_clone(self, k: int) -> None:
        self.vars.append(self.var(k).clone())

    def do_view(self, k: int, how: int, at: int) -> None:
        x = self.var(k)
        if how == 0:
            made = x[at]
        elif how == 1:
            made = x[at:]
        elif how == 2:
            made = x.t()
        elif how == 3:
            made = x.view(-1)
        elif how == 4:
            made = x.unsqueeze(0)
        elif how == 5:
            made = x[:, at]
        elif how == 6:
            made = x.expand(2, *x.shape)
        elif how == 7:
            made = x[..., ::2]
        else:
            made = x.transpose(0, -1)
        self.vars.append(made)

    def do_splits(self, k: int, how: int) -> None:
        x = self.var(k)
        if not x.requires_grad:  # PyTorch refuses more than it must where a part is written to
            a, b = x[:1], x[1:]
        else:
            a, b = (x.unbind(0) if how == 0 else x.split(1))[:2]
        self.vars += [a, b]

    def do_binary(self, op: str, a: int, b: int) -> None:
        self.vars.append(getattr(self.var(a), op)(self.var(b)))

    def do_unary(self, op: str, a: int) -> None:
        self.vars.append(getattr(self.var(a), op)())

    def do_write(self, op: str, a: int, b: int) -> None:
        x = self.var(a)
        if x.numel() == 0:  # in PyTorch a write of nothing moves the version, too
            raise IndexError("nothing to write to")
        if op in ("mul", "add", "copy"):
            getattr(x, op + "_")(self.apart(x, self.var(b)))
        elif op in ("mul2", "add1"):
            x.mul_(2) if op == "mul2" else x.add_(1)
        elif op == "fill":
            x.fill_(0.5)
        else:
            getattr(x, op + "_")()

    def apart(self, x: Any, y: Any) -> Any:
        """``y``, copied if it shares memory with ``x`` in another way than all of it: PyTorch
        saves the overwritten operand of ``x.mul_(x)`` and fails in backward, antorcha a copy."""
        first = [t.data_ptr() - t.storage_offset() * t.element_size() for t in (x, y)]
        return y.clone() if first[0] == first[1] else y

    def do_setitem(self, a: int, at: int, b: int) -> None:
        self.var(a)[at] = self.var(b)

    def do_retain(self, a: int, _: bool) -> None:
        self.var(a).retain_grad()

    def do_backward(self, a: int, keep: bool) -> None:
        self.var(a).sum().backward(retain_graph=keep)

    def do_total(self) -> None:
        """The sum of all that can be used: its gradients say whether every history is right."""
        total = self.torch.zeros((), dtype=self.torch.float64)
        for var in list(self.vars):
            if var is not None:
                try:
                    total = total + var.sum()
                except RuntimeError:
                    continue
        self.vars.append(total)


_NO_VALUE = ("write", "setitem", "retain", "backward")


def _kind(error: Exception) -> str:
    for cls in (NotImplementedError, RuntimeError, IndexError, TypeError, ValueError):
        if isinstance(error, cls):
            return cls.__name__
    return type(error).__name__
