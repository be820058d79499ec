"""What the native backward pass must do; each function is run in a process of its own.

The Python engine is the oracle: ``create_graph=True`` always takes it.
"""

from __future__ import annotations

import contextlib
import gc
import random
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import antorcha as torch
from antorcha.runtime.call import native
from antorcha.runtime.call import plan as plans
from antorcha.runtime.memory import alloc
from tests.runtime.watch import functions_run

WARM = 4  # passes until replays serve


def by_python(root: Any, leaves: list[Any], seed: Any = None) -> list[Any]:
    """The gradients by the Python engine and the rules themselves."""
    found = torch.autograd.grad(root, leaves, seed, create_graph=True, allow_unused=True)
    return [None if g is None else g.detach() for g in found]


def check(make: Callable[..., Any], *leaves: Any) -> None:
    """Passes one after another give what the Python engine gives, and leave no trace."""
    for _ in range(WARM):
        expected = by_python(make(*leaves), list(leaves))
        for leaf in leaves:
            leaf.grad = None
        make(*leaves).backward()
        for leaf, g in zip(leaves, expected, strict=True):
            assert (leaf.grad is None) == (g is None)
            if g is not None:
                assert leaf.grad.shape == g.shape == leaf.shape
                assert leaf.grad.dtype is g.dtype
                assert torch.allclose(leaf.grad, g, equal_nan=True), (leaf.grad, g)
                assert (leaf.grad.grad_fn, leaf.grad.requires_grad) == (None, False)


def leaf(*shape: int) -> Any:
    return torch.randn(*shape, requires_grad=True)


def uses_python(run: Callable[[], Any]) -> set[str]:
    """The Python functions of the engine and of the rules that a call runs."""
    files = ("engine.py", "replay.py", "derive.py")
    return {name for file, name in functions_run(run) if file.endswith(files)}


def served() -> None:
    """What has been met often never reaches the rules, or the Python engine's loop."""
    assert native.ACTIVE, native.why_not()
    w, b, x = leaf(5, 4), leaf(5), torch.randn(3, 4)
    t = torch.tensor([0, 1, 2])

    def run() -> None:
        out = torch.nn.functional.linear(x, w, b).relu()
        loss = torch.nn.functional.cross_entropy(out, t) + (out * 0.5).mean()
        loss.backward()
        w.grad = b.grad = None

    for _ in range(WARM):
        run()
    used = uses_python(run)
    assert used == {"backward_from", "ones"}, used
    (w * 2).grad_fn.next_functions  # to have been looked at costs a leaf nothing
    used = uses_python(run)
    assert used == {"backward_from", "ones"}, used


def graphs() -> None:
    """Diamonds, several results, broadcasting, reductions, views, products, indices."""
    torch.manual_seed(0)
    check(lambda a: (a * a + a).sum(), leaf(3, 4))
    check(lambda a, b: (a * b).sum(), leaf(3, 1), leaf(4))
    check(lambda a, b: torch.nn.functional.linear(a, b).tanh().sum(), leaf(3, 4), leaf(5, 4))
    check(lambda a: torch.cat([a, a * 2, a[1:]]).exp().sum(), leaf(3, 4))
    check(lambda a: a.max(0).values.sum() + a.std(1).sum(), leaf(3, 4))
    check(lambda a: sum([c.sum() * k for k, c in enumerate(a.chunk(3, 1))]), leaf(3, 6))
    check(lambda a: sum([c.sum() * k for k, c in enumerate(a.unbind(0))]), leaf(12, 2))
    check(lambda a: torch.stack([p.sin() for p in a.unbind(0)]).sum(), leaf(20, 2))
    check(lambda a: a.view(2, 6).t()[1:4].softmax(1).log().sum(), leaf(3, 4))
    check(lambda a, b: torch.where(a > b, a, b).clamp(-1, 1).sum(), leaf(3, 4), leaf(3, 4))
    check(lambda a, b: (a @ b).matmul(b.t()).norm(), leaf(3, 4), leaf(4, 5))
    check(lambda a: a[torch.tensor([0, 2, 0])].pow(2).sum() + a[0, 1], leaf(3, 4))
    check(lambda a: torch.layer_norm(a, (4,)).mul(a).cumsum(0).sum(), leaf(3, 4))
    check(lambda a: a.expand(5, 3, 4).sum() + a.t().reshape(-1).prod(), leaf(3, 4))
    check(lambda a: (a.to(torch.float64) / 3).sum(), leaf(3, 4))
    check(lambda a: torch.complex(a, a.sin()).abs().sum(), leaf(3, 4))
    check(lambda a, unused: a.sum(), leaf(3), leaf(4))


def numbers() -> None:
    """A replay takes the numbers of its own call, not of the call that it was noted at."""
    x = leaf(4)
    for k in range(12):
        x.grad = None
        (x * float(k) + k / 2).div(k + 1.0).sum().backward()
        assert torch.allclose(x.grad, torch.full((4,), k / (k + 1.0))), k
    for k in range(12):
        x.grad = None
        torch.nn.functional.leaky_relu(-abs(x.detach()) * 1 + 0 * x, k / 8).sum().backward()
        assert torch.allclose(x.grad, torch.zeros(4))
    for k in range(8):
        x.grad = None
        torch.clamp(x * 0 + 3, 0, k).sum().backward()
        assert x.grad.tolist() == [0.0] * 4
    for k in range(8):
        x.grad = None
        torch.add(x, x * 2, alpha=k).sum().backward()
        assert x.grad.tolist() == [1.0 + 2 * k] * 4


def accumulation() -> None:
    x = leaf(3)
    other = torch.ones(3)
    for k in range(1, 8):
        (x * other).sum().backward()
        assert x.grad.tolist() == [float(k)] * 3
    kept = x.grad
    (x * other).sum().backward()
    assert x.grad is kept  # added in place, as PyTorch does
    x.grad = None
    g = torch.tensor([1.0, 2.0, 3.0])
    for _ in range(WARM):
        y = x + 0.0
        y.backward(g)
        assert x.grad is not g
        assert x.grad.data_ptr() != g.data_ptr()  # nobody may share a gradient
        x.grad = None
    y = torch.tensor(2.0, requires_grad=True)
    y.backward()
    y.backward()
    assert y.grad.item() == 2.0
    a, b = leaf(3), leaf(3)
    for _ in range(WARM):
        a.grad = b.grad = None
        torch.autograd.backward([(a * b).sum(), (a + b).sum()])
        assert torch.allclose(a.grad, b.detach() + 1)
        total = a + b  # one gradient goes to both
        total.sum().backward()
        assert a.grad.data_ptr() != b.grad.data_ptr()


def hooks() -> None:
    """The Python engine goes on from where something of the user's own comes."""
    for where in range(6):
        for _ in range(WARM):
            seen: list[Any] = []
            x, w = leaf(3), leaf(3)
            y = x * w
            z = y.sin()
            u = (z * x + y).exp()
            root = u.sum() * 2.0
            expected = by_python(root, [x, w])
            hooked = [x, w, y, z, u, root][where]
            hooked.register_hook(lambda g, seen=seen: seen.append(g) or None)
            z.retain_grad()
            root.backward()
            assert [g.shape for g in seen] == [hooked.shape]
            assert torch.allclose(x.grad, expected[0])
            assert torch.allclose(w.grad, expected[1])
            assert z.grad is not None
    x = leaf(3)
    x.register_post_accumulate_grad_hook(lambda t: setattr(t, "grad", None))
    for _ in range(WARM):
        (x * x).sum().backward()
        assert x.grad is None
    changed = leaf(3)
    changed.register_hook(lambda g: g * 3)
    (changed * 1.0).sum().backward()
    assert changed.grad.tolist() == [3.0] * 3


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        assert not torch.is_grad_enabled()
        return 3 * x * x * g


def functions() -> None:
    x = leaf(3)
    for _ in range(WARM):
        x.grad = None
        (Cube.apply(x * 2.0) + x).sum().backward()
        assert torch.allclose(x.grad, 24 * x.detach() ** 2 + 1)

    class Broken(Cube):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise KeyError("in backward")

    y = leaf(3)
    for _ in range(WARM):
        root = Broken.apply(y * y).sum() + (y + y).sum()
        try:
            root.backward()
        except KeyError:
            pass
        else:
            raise AssertionError("the error was lost")
        assert y.grad is None  # all leaves, or none


def errors() -> None:
    """A second pass, a write in between, what needs no gradient."""
    x = leaf(3)
    for _ in range(WARM):
        root = (x * x).sum()
        root.backward(retain_graph=True)
        root.backward()
        assert_raises("second time", root.backward)
        y = x * 2.0
        root = (y * y).sum()
        before = x.grad.clone()
        y.detach().add_(1)
        assert_raises("modified by an inplace", root.backward)
        assert torch.equal(before, x.grad)
    assert_raises("does not require grad", torch.ones(3).sum().backward)
    assert_raises("scalar outputs", (x * x).backward)


def assert_raises(text: str, run: Callable[[], Any]) -> None:
    said = ""
    try:
        run()
    except RuntimeError as error:
        said = str(error)
    assert text in said, said


def writes() -> None:
    """In place within graphs: copies are saved, views keep their histories."""

    def make(a: Any) -> Any:
        y = a * 1.0
        y[0].mul_(3)
        y.add_(a).sin_()
        y.view(-1)[2:4] *= 2
        return y.sum()

    torch.manual_seed(1)
    check(make, leaf(3, 4))


def deep() -> None:
    x = torch.ones(2, requires_grad=True)
    for _ in range(3):
        y = x
        for _ in range(50_000):
            y = y + 1.0
        y.sum().backward()
        del y
    assert x.grad.tolist() == [3.0, 3.0]
    terms = [x * float(k) for k in range(3000)]  # a wide front: the pool, heap and table grow
    total = torch.stack(terms).sum()
    x.grad = None
    total.backward()
    assert x.grad.tolist() == [float(sum(range(3000)))] * 2
    leaves = [leaf(1) for _ in range(500)]
    for _ in range(WARM):
        torch.cat([p * p for p in leaves]).sum().backward()
    assert all(torch.allclose(p.grad, WARM * 2 * p.detach()) for p in leaves)


def memory() -> None:
    """Nothing is kept, and what a graph held goes when it has served."""
    x, w = leaf(16), leaf(16)

    def run() -> None:
        y = (x * w).sin() + w
        (y.sum() * 0.5).backward()
        x.grad = w.grad = None

    gc.collect()
    gc.disable()
    for _ in range(4000):  # until the interpreter's free lists (2000 tuples) are full
        run()
    live, blocks = alloc.stats().live, sys.getallocatedblocks()
    for _ in range(2000):
        run()
    assert alloc.stats().live == live
    assert abs(sys.getallocatedblocks() - blocks) < 60
    y = (x * w).exp()
    saved = weakref.ref(y)
    root = y.sum()
    del y
    root.backward()
    assert saved() is None
    gc.enable()


def flushed() -> None:
    """Plans may be forgotten between the call and its backward pass, and during it."""
    x = leaf(3)
    for k in range(12):
        root = (x * x).sin().sum()
        if k % 2:
            plans.flush()
        if k % 3 == 0:
            y = x * 2.0
            y.register_hook(lambda g: plans.flush())
            root = root + y.sum()
        x.grad = None
        root.backward()
        want = 2 * x.detach() * (x.detach() ** 2).cos() + (2.0 if k % 3 == 0 else 0.0)
        assert torch.allclose(x.grad, want)


def threads() -> None:
    """Many threads: graphs of their own, leaves shared; and one graph for two."""
    x = torch.ones(64, requires_grad=True)
    failures: list[Any] = []

    def work(seed: int) -> None:
        try:
            local = random.Random(seed)
            for _ in range(150):
                y = x * 1.0
                for _ in range(local.randrange(4)):
                    y = y + 0.0
                y.sum().backward()
                if local.random() < 0.1:
                    with torch.no_grad():
                        y.sum()
                if local.random() < 0.02:
                    plans.flush()
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert not failures, failures
    assert x.grad.tolist() == [1200.0] * 64


def tampered() -> None:
    """Whatever is done to a node's fields, the process lives, and the next pass is right."""
    x = leaf(3)
    for _ in range(WARM):
        (x * x).sum().backward()
    fields = ("mask", "edges", "saved", "values", "plan", "op", "seq", "hooks", "stack")
    for field in fields:
        for value in (..., None, 1, (), "x", (1, 2), [1]):
            y = x * x
            root = y.sum()
            with contextlib.suppress(Exception):
                if value is ...:
                    delattr(y.grad_fn, field)
                else:
                    setattr(y.grad_fn, field, value)
            with contextlib.suppress(Exception):
                root.backward()
    x.grad = None
    (x * x).sum().backward()
    assert torch.allclose(x.grad, 2 * x.detach())


def replayed_rules() -> None:
    """A rule that looks at contents, or that draws, is never replayed."""
    x = leaf(4)
    for k in range(6):
        weights = torch.full((4,), float(k))
        x.grad = None
        torch.nn.functional.dropout(x, 0.5, True).mul(weights).sum().backward()
        assert x.grad.shape == (4,)
        kept = x.grad != 0
        if k:
            assert torch.allclose(x.grad[kept], weights[kept] * 2)
    masks = []
    for _ in range(8):
        x.grad = None
        torch.nn.functional.dropout(x, 0.5, True).sum().backward()
        masks.append(tuple((x.grad != 0).tolist()))
    assert len(set(masks)) > 1


if __name__ == "__main__":
    torch.set_num_threads(2)
    globals()[sys.argv[1]]()
    print("done")
