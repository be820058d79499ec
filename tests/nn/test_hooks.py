"""Hooks of modules, of every kind: the same order, arguments and messages as PyTorch's."""

from __future__ import annotations

import importlib
import itertools
import warnings
from typing import Any

import pytest

import antorcha

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def both(run: Any) -> None:
    """``run(library, module of hooks, log)`` notes and warns the same on both sides."""
    noted = []
    for library in (antorcha, torch):
        file = importlib.import_module(f"{library.__name__}.nn.modules.module")
        log: list[Any] = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                run(library, file, log)
            except Exception as error:
                log.append((isinstance(error, RuntimeError), str(error)))
            finally:
                for name in ("backward", "forward", "backward_pre", "forward_pre"):
                    getattr(file, f"_global_{name}_hooks", {}).clear()
                if library is antorcha:
                    antorcha.nn.hooks.remove_global_hooks()
                else:
                    file._global_is_full_backward_hook = None
        noted.append((log, [(w.category, str(w.message)) for w in caught]))
    for mine, theirs in zip(*noted, strict=True):
        for k, pair in enumerate(itertools.zip_longest(mine, theirs)):
            assert pair[0] == pair[1], k


def linear(library: Any) -> Any:
    layer = library.nn.Linear(2, 2, bias=False)
    with library.no_grad():
        layer.weight.copy_(library.tensor([[1.0, 2.0], [3.0, 4.0]]))
    return layer


def shown(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(map(shown, value))
    if isinstance(value, dict):
        return {key: shown(each) for key, each in value.items()}
    return (value * 4096).round().tolist() if hasattr(value, "tolist") else value


def test_forward_hooks_of_every_kind() -> None:
    def run(library: Any, file: Any, log: list[Any]) -> None:
        class Scaled(library.nn.Module):  # type: ignore[misc]
            def forward(self, x: Any, *, by: float = 1.0) -> Any:
                return x * by

        def note(name: str, result: Any = None) -> Any:
            def hook(module: Any, *args: Any) -> Any:
                log.append((name, shown(args)))
                return result

            return hook

        m, x = Scaled(), library.ones(2)
        m.register_forward_pre_hook(note("pre"))
        m.register_forward_pre_hook(note("pre first"), prepend=True)
        m.register_forward_pre_hook(note("pre kwargs", ((x * 2,), {"by": 3.0})), with_kwargs=True)
        m.register_forward_pre_hook(note("pre one", x * 4))
        m.register_forward_hook(note("post"))
        m.register_forward_hook(note("post first", x * 9), prepend=True)
        handle = m.register_forward_hook(note("post kwargs"), with_kwargs=True)
        m.register_forward_hook(note("always"), always_call=True)
        file.register_module_forward_pre_hook(note("global pre"))
        file.register_module_forward_hook(note("global post"))
        file.register_module_forward_hook(note("global always"), always_call=True)
        file.register_module_forward_hook(note("global kwargs"), with_kwargs=True)
        log.append(shown(m(x, by=2.0)))
        handle.remove()
        log.append(shown(m(x)))
        m.register_forward_pre_hook(note("bad", 3), with_kwargs=True)
        m(x)

    both(run)


def test_always_called_hooks_after_an_exception() -> None:
    def run(library: Any, file: Any, log: list[Any]) -> None:
        def note(name: str, fails: bool = False) -> Any:
            def hook(module: Any, args: Any, result: Any) -> None:
                log.append((name, shown(args), shown(result)))
                if fails:
                    raise ValueError(name)

            return hook

        m = library.nn.Identity()
        file.register_module_forward_hook(note("global", True), always_call=True)
        m.register_forward_hook(note("never after it"))
        m.register_forward_hook(note("last", True), always_call=True)
        m.register_forward_hook(note("last of all"), always_call=True)
        try:
            m(library.ones(1))
        except ValueError as error:
            log.append(str(error))
        m(library.ones(1), library.ones(1), nonsense=1)
        library.nn.Linear(3, 3)(library.ones(2))

    both(run)


@pytest.mark.parametrize("grads", [True, False])
def test_full_backward_hooks(grads: bool) -> None:
    def run(library: Any, file: Any, log: list[Any]) -> None:
        def note(name: str, result: Any = None) -> Any:
            def hook(module: Any, *grads: Any) -> Any:
                log.append((name, type(module).__name__, shown(grads)))
                return result

            return hook

        m = library.nn.Sequential(linear(library), library.nn.ReLU())
        m[0].register_full_backward_pre_hook(note("pre"))
        m[0].register_full_backward_pre_hook(note("pre first", (library.ones(1, 2),)), prepend=True)
        m[0].register_full_backward_hook(note("post"))
        m[0].register_full_backward_hook(note("first"), prepend=True)
        m.register_full_backward_hook(note("whole"))
        file.register_module_full_backward_pre_hook(note("global pre"))
        file.register_module_full_backward_hook(note("global"))
        x = library.tensor([[1.0, 1.0]], requires_grad=grads)
        m(x).sum().backward()
        log.append((shown(m[0].weight.grad), shown(x.grad)))
        m[1].register_full_backward_hook(note("replaced", (library.full((1, 2), 5.0),)))
        m(x).sum().backward()
        log.append((shown(m[0].weight.grad), shown(x.grad)))
        m[0].register_full_backward_pre_hook(note("too many", (None, None)))
        m(x).sum().backward()

    both(run)


def test_old_backward_hooks_and_what_cannot_be_mixed() -> None:
    def run(library: Any, file: Any, log: list[Any]) -> None:
        def note(module: Any, *grads: Any) -> None:
            log.append((type(module).__name__, shown(grads)))

        m = library.nn.ReLU()
        m.register_backward_hook(note)
        x = library.ones(2, requires_grad=True)
        m(x * 2).sum().backward()
        with_list = library.nn.Sequential(library.nn.ReLU(), library.nn.Tanh())
        with_list.register_backward_hook(note)
        with_list(x * 2).sum().backward()
        for first, second in (("register_backward_hook", "register_full_backward_hook"),) * 2:
            other = library.nn.ReLU()
            getattr(other, first)(note)
            try:
                getattr(other, second)(note)
            except RuntimeError as error:
                log.append(str(error))
        file.register_module_backward_hook(note)
        tanh = library.nn.Tanh()
        tanh(x).sum().backward()
        file.register_module_full_backward_hook(note)

    both(run)


def test_registration_hooks() -> None:
    def run(library: Any, file: Any, log: list[Any]) -> None:
        def note(kind: str) -> Any:
            def hook(module: Any, name: str, value: Any) -> None:
                log.append((kind, type(module).__name__, name, type(value).__name__))

            return hook

        with (
            file.register_module_parameter_registration_hook(note("parameter")),
            file.register_module_buffer_registration_hook(note("buffer")),
            file.register_module_module_registration_hook(note("module")),
        ):
            m = library.nn.Sequential(library.nn.BatchNorm1d(2), library.nn.ReLU())
            m.extra = library.nn.Linear(1, 1)
            m.extra.weight = library.nn.Parameter(library.ones(1, 1))
            m[0].running_mean = library.zeros(2)
            m.add_module("late", library.nn.Tanh())
            m.register_buffer("own", library.ones(1))
            m.register_parameter("none", None)
        library.nn.Linear(1, 1)

        def replace(module: Any, name: str, value: Any) -> Any:
            return library.nn.Parameter(value.detach() * 0 + 7)

        library.manual_seed(0)
        with file.register_module_parameter_registration_hook(replace):
            log.append(shown(library.nn.Linear(1, 2).weight))

    both(run)


def test_hooks_of_state_dicts() -> None:
    def run(library: Any, file: Any, log: list[Any]) -> None:
        m = library.nn.Sequential(linear(library))

        def note(name: str) -> Any:
            def hook(*args: Any) -> None:
                log.append((name, [shown(a) if isinstance(a, (str, list, bool, dict)) else
                                   type(a).__name__ for a in args]))  # fmt: skip

            return hook

        m.register_state_dict_pre_hook(note("before giving"))
        m[0].register_state_dict_post_hook(note("after giving"))
        m[0]._register_state_dict_hook(lambda module, state, prefix, meta: state.update(more=1))
        m.register_load_state_dict_pre_hook(note("before taking"))
        m[0].register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
        m.register_load_state_dict_post_hook(note("after taking"))
        state = m.state_dict()
        log.append(list(state))
        log.append(str(m.load_state_dict({}, strict=True)))
        m.load_state_dict(state)

    both(run)
