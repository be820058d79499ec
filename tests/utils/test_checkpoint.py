"""utils.checkpoint: gradients, how often a part runs, state kept, errors; beside PyTorch's."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import weakref
from typing import Any

import pytest

import antorcha
from antorcha.core import modes

LIBRARIES = ["antorcha", pytest.param("torch", marks=pytest.mark.oracle)]


@pytest.fixture(params=LIBRARIES)
def lib(request: pytest.FixtureRequest) -> Any:
    pytest.importorskip(request.param)
    importlib.import_module(f"{request.param}.utils.checkpoint")
    return importlib.import_module(request.param)


class Part:
    """A small network that counts its runs."""

    def __init__(self, lib: Any) -> None:
        lib.manual_seed(0)
        nn = lib.nn
        self.net = nn.Sequential(
            nn.Linear(4, 8), nn.Dropout(0.5), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 4)
        )
        self.runs = 0

    def __call__(self, x: Any) -> Any:
        self.runs += 1
        return self.net(x)


def gradients(lib: Any, part: Part, call: Any) -> list[Any]:
    lib.manual_seed(1)
    part.net.zero_grad()
    x = lib.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
    call(x).pow(2).sum().backward()
    return [x.grad.tolist(), *[p.grad.tolist() for p in part.net.parameters()]]


@pytest.mark.parametrize(
    "options",
    [{"use_reentrant": True}, {"use_reentrant": False},
     {"use_reentrant": False, "early_stop": False},
     {"use_reentrant": False, "determinism_check": "none"},
     {"use_reentrant": False, "debug": True}],
)  # fmt: skip
def test_gradients_are_those_of_the_plain_call(lib: Any, options: Any) -> None:
    part = Part(lib)
    wanted = gradients(lib, part, part)
    part.runs = 0
    assert gradients(lib, part, lambda x: lib.utils.checkpoint.checkpoint(part, x, **options)) == (
        wanted
    )
    assert part.runs == 2


def test_parts_within_parts(lib: Any) -> None:
    part = Part(lib)
    checkpoint = functools.partial(lib.utils.checkpoint.checkpoint, use_reentrant=False)

    def outer(x: Any) -> Any:
        return checkpoint(part, checkpoint(part, x * 2).exp()) * 2

    wanted = gradients(lib, part, lambda x: part(part(x * 2).exp()) * 2)
    for call, runs in ((outer, 4), (lambda x: checkpoint(outer, x), 5)):
        part.runs = 0
        assert gradients(lib, part, call) == wanted
        assert part.runs == runs


def test_keywords_several_results_and_what_is_no_tensor(lib: Any) -> None:
    def fn(a: Any, factor: int, *, b: Any) -> Any:
        return {"sum": (a + b) * factor, "product": [a * b, factor]}

    a, b = lib.ones(2, requires_grad=True), lib.full((2,), 3.0, requires_grad=True)
    out = lib.utils.checkpoint.checkpoint(fn, a, 2, b=b, use_reentrant=False)
    (out["sum"] * out["product"][0]).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([30.0, 30.0], [14.0, 14.0])
    with pytest.raises(ValueError, match="Unexpected keyword"):
        lib.utils.checkpoint.checkpoint(fn, a, 2, b=b, use_reentrant=True)


def test_grad_and_second_backward(lib: Any) -> None:
    checkpoint = lib.utils.checkpoint.checkpoint
    runs = []

    def fn(x: Any) -> Any:
        runs.append(1)
        return x.exp().sin()

    x = lib.ones(2, requires_grad=True)
    y = checkpoint(fn, x, use_reentrant=False).sum()
    (first,) = lib.autograd.grad(y, x, retain_graph=True)
    (second,) = lib.autograd.grad(y, x)
    assert lib.equal(first, second)
    assert len(runs) == 3
    y = checkpoint(fn, x, use_reentrant=True).sum()
    with pytest.raises(RuntimeError, match=r"incompatible with \.grad\(\)"):
        lib.autograd.grad(y, x)
    y = checkpoint(fn, x, use_reentrant=False).sum()
    (g,) = lib.autograd.grad(y, x, create_graph=True)
    assert g.requires_grad


def test_backward_within_a_part(lib: Any) -> None:
    def fn(x: Any) -> Any:
        y = x.exp()
        (g,) = lib.autograd.grad(y.sum(), x, retain_graph=True)
        return y * g.detach()

    for early in (True, False):
        x = lib.ones(2, requires_grad=True)
        checkpoint = lib.utils.checkpoint.checkpoint
        checkpoint(fn, x, use_reentrant=False, early_stop=early).sum().backward()
        assert x.grad.tolist() == pytest.approx([7.389056] * 2)


def test_autocast_and_the_generator_are_as_before(lib: Any) -> None:
    seen = []

    def fn(x: Any) -> Any:
        y = x @ x
        seen.append((lib.is_autocast_enabled("cpu"), y.dtype, lib.rand(1).item()))
        return y.sum()

    for reentrant in (True, False):
        x = lib.ones(2, 2, requires_grad=True)
        with lib.autocast("cpu", dtype=lib.bfloat16):
            y = lib.utils.checkpoint.checkpoint(fn, x, use_reentrant=reentrant, early_stop=False)
        after = lib.get_rng_state()
        y.backward()
        assert seen[0] == seen[1]
        assert seen[0][:2] == (True, lib.bfloat16)
        assert lib.equal(after, lib.get_rng_state())
        seen.clear()
        y = lib.utils.checkpoint.checkpoint(
            fn, x, use_reentrant=reentrant, preserve_rng_state=False, early_stop=False
        )
        y.backward()
        assert seen[0] != seen[1]
        seen.clear()


def test_another_computation_is_refused(lib: Any) -> None:
    names = lib.utils.checkpoint
    first = [True]

    def fewer(x: Any) -> Any:
        y = x.exp().sin() if first[0] else x.exp()
        return y

    def larger(x: Any) -> Any:
        return (x if first[0] else lib.cat([x, x])).sin()

    for fn, text in ((fewer, "A different number"), (larger, "different metadata")):
        for debug in (False, True)[: 2 if lib is antorcha else 1]:  # (pytest's logging breaks its)
            first[0] = True
            y = names.checkpoint(
                fn, lib.ones(2, requires_grad=True), use_reentrant=False, debug=debug
            )
            first[0] = False
            shown = "Operations executed during recomputation" if debug else text
            with pytest.raises(names.CheckpointError, match=shown):
                y.sum().backward()


def test_arguments_are_checked(lib: Any) -> None:
    checkpoint = lib.utils.checkpoint.checkpoint
    x = lib.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed"):
        checkpoint(lib.sin, x)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad"):
        checkpoint(lib.sin, lib.ones(2), use_reentrant=True)
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        checkpoint(lib.sin, x, use_reentrant=False, determinism_check="some")
    with pytest.raises(ValueError, match="only supported when"):
        checkpoint(lib.sin, x, use_reentrant=True, debug=True)
    with pytest.raises(ValueError, match="only supported when"):
        checkpoint(lib.sin, x, use_reentrant=True, context_fn=lambda: None)
    y = checkpoint(lib.exp, x, use_reentrant=True)
    assert lib.equal(y, x.exp())
    with lib.no_grad():
        assert not checkpoint(lib.exp, x, use_reentrant=False).requires_grad


def test_sequential(lib: Any) -> None:
    part = Part(lib)
    names = lib.utils.checkpoint
    wanted = gradients(lib, part, part.net)
    for segments in (1, 2, 5):
        for reentrant in (True, False):
            found = gradients(
                lib,
                part,
                lambda x, s=segments, r=reentrant: names.checkpoint_sequential(
                    part.net, s, x, use_reentrant=r
                ),
            )
            assert found == wanted


def test_contexts(lib: Any) -> None:
    entered = []

    @contextlib.contextmanager
    def note(what: str) -> Any:
        entered.append(what)
        yield

    x = lib.ones(2, requires_grad=True)
    lib.utils.checkpoint.checkpoint(
        lib.exp, x, use_reentrant=False, context_fn=lambda: (note("forward"), note("again"))
    ).sum().backward()
    assert entered == ["forward", "again"]


# ----------------------------------------------------------------------------------- antorcha's own
def selective(wanted: Any) -> Any:
    names = importlib.import_module("antorcha.utils.checkpoint")
    return functools.partial(names.create_selective_checkpoint_contexts, wanted)


def test_selected_results_are_kept() -> None:
    part = Part(antorcha)
    checkpoint = importlib.import_module("antorcha.utils.checkpoint").checkpoint
    wanted = gradients(antorcha, part, part)
    asked: list[str] = []

    def policy(context: Any, op: Any, *tensors: Any) -> Any:
        name = getattr(op, "_opname", None) or op.__name__
        asked.append(name)
        assert context.op_output is not None
        return name == "addmm"

    for choice in ([antorcha.addmm], policy):
        found = gradients(
            antorcha,
            part,
            lambda x, c=choice: checkpoint(part, x, use_reentrant=False, context_fn=selective(c)),
        )
        assert found == wanted
    assert asked.count("addmm") == 2
    assert {"gelu", "native_layer_norm"} <= set(asked)
    assert not modes.state.word & modes.INTERCEPT


def test_what_is_kept_serves_one_backward() -> None:
    checkpoint = importlib.import_module("antorcha.utils.checkpoint").checkpoint
    x = antorcha.ones(2, 2, requires_grad=True)
    y = checkpoint(
        lambda x: (x @ x).sin().sin(), x, use_reentrant=False, context_fn=selective([antorcha.mm])
    ).sum()
    y.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        y.backward()
    with pytest.raises(TypeError, match="function or a list"):
        selective(3)()


def test_nothing_of_the_inside_is_kept() -> None:
    checkpoint = importlib.import_module("antorcha.utils.checkpoint").checkpoint
    inner: list[Any] = []

    def fn(x: Any) -> Any:
        y = x.exp()
        inner.append(weakref.ref(y))
        return y.sin()

    x = antorcha.ones(2, requires_grad=True)
    y = checkpoint(fn, x, use_reentrant=False)
    assert inner[0]() is None
    y.sum().backward()
    gc.collect()
    assert [each() for each in inner] == [None, None]
    y = checkpoint(antorcha.exp, x, use_reentrant=False)
    with antorcha.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
