"""``torch.jit``, ``torch.compile``, ``torch._dynamo``: programs run, and nothing pretends."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import antorcha as torch
from antorcha import _dynamo, compiler, jit, nn
from antorcha.compiler import eager


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.compile")
        yield


def net() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))


def test_a_scripted_module_shares_its_tensors_and_runs() -> None:
    model = net()
    x = torch.randn(5, 3)
    scripted = jit.script(model)
    assert isinstance(scripted, jit.ScriptModule)
    assert scripted.original_name == "Sequential"
    assert scripted[0].weight is model[0].weight
    assert list(scripted.state_dict()) == list(model.state_dict())
    scripted.eval()
    assert model.training
    assert not scripted.training
    assert not scripted[1].training
    model.eval()
    assert torch.equal(scripted(x), model(x))
    scripted[0].weight.data.zero_()
    assert not model[0].weight.any()
    assert copy.deepcopy(scripted)(x).shape == (5, 4)
    assert jit.script(scripted) is scripted
    assert jit.freeze(scripted) is scripted
    assert str(jit.script(nn.Linear(1, 1))) == "RecursiveScriptModule(original_name=Linear)"
    hooked: list[int] = []
    scripted.register_forward_hook(lambda *_: hooked.append(1))
    model(x)
    assert not hooked
    scripted(x)
    assert hooked == [1]


def test_traces_and_functions_run_the_python() -> None:
    seen: list[Any] = []

    def f(x: Any, y: Any = None) -> Any:
        seen.append(y)
        return x + 1

    traced = jit.trace(f, torch.ones(2))
    assert torch.equal(traced(torch.ones(3), 2), torch.full((3,), 2.0))
    assert seen == [None, 2]
    module = jit.trace(net(), (torch.ones(2, 3),))
    assert isinstance(module, jit.TopLevelTracedModule)
    assert isinstance(module[0], jit.TracedModule)
    scripted = jit.script(f)
    assert scripted.__name__ == "f"
    assert isinstance(scripted, jit.ScriptFunction)
    assert jit.script_if_tracing(f)(1) == 2
    assert jit.wait(jit.fork(f, 1)) == 2


def test_notes_for_the_script_compiler_change_nothing() -> None:
    class Old(jit.ScriptModule):
        __constants__ = ["n"]
        n: jit.Final[int]

        @jit.script_method
        def forward(self, x: Any) -> Any:
            return self.helper(x) if not jit.is_scripting() else None

        @jit.ignore
        def helper(self, x: Any) -> Any:
            return x * 2

        @jit.ignore(drop=True)
        def other(self) -> int:
            return 3

        @jit.unused
        @jit.export
        def last(self) -> int:
            return jit.annotate(int, 4)

    old = Old()
    assert old(torch.ones(1)).item() == 2.0
    assert old.other() == 3
    assert old.last() == 4
    assert not jit.is_tracing()
    assert jit.isinstance({"a": [1]}, dict[str, list[int]])
    assert not jit.isinstance((1, "a"), tuple[int, int])
    with pytest.raises(TypeError, match="without a contained type"):
        jit.isinstance([1], list)


def test_what_needs_torchscript_raises() -> None:
    scripted = jit.script(net())
    for use in (
        lambda: scripted.save("f"), lambda: scripted.graph, lambda: scripted.code,
        lambda: jit.save(scripted, "f"), lambda: jit.load("f"), lambda: jit.CompilationUnit(""),
    ):  # fmt: skip
        with pytest.raises(NotImplementedError, match="there is no TorchScript"):
            use()
    with pytest.raises(RuntimeError, match="Freezing is currently only implemented"):
        jit.freeze(scripted)


def test_a_compiled_module_is_the_module() -> None:
    model = net()
    compiled = torch.compile(model, mode="reduce-overhead", fullgraph=True)
    assert isinstance(compiled, _dynamo.eval_frame.OptimizedModule)
    assert next(iter(compiled.state_dict())) == "_orig_mod.0.weight"
    compiled.eval()
    assert not model.training
    assert not compiled.training
    assert not model[2].training
    compiled.note = 3
    assert model.note == 3
    assert compiled.note == 3
    assert len(compiled) == 3
    assert compiled[0] is model[0]
    assert compiled._orig_mod is model
    x = torch.ones(2, 3)
    assert torch.equal(compiled(x), model(x))
    assert torch.equal(copy.deepcopy(compiled)(x), model(x))
    assert torch.equal(pickle.loads(pickle.dumps(compiled))(x), model(x))
    assert next(name for name, _ in compiled.named_parameters()) == "_orig_mod.0.weight"
    model.compile(dynamic=True)
    assert torch.compile(compiled) is compiled


def test_functions_are_compiled_as_decorated() -> None:
    @torch.compile
    def f(x: Any) -> Any:
        """Adds one."""
        return x + 1

    @torch.compile(backend="eager", dynamic=False)
    def g(x: Any) -> Any:
        return x + 2

    assert f(1) == 2
    assert g(1) == 3
    assert f.__doc__ == "Adds one."

    class Net(nn.Module):
        @torch.compile
        def forward(self, x: Any) -> Any:
            return x * 2

    assert Net()(2) == 4


def test_options_are_checked() -> None:
    for options, kind, text in (
        ({"mode": "default", "options": {}}, RuntimeError, "both can't be specified"),
        ({"mode": "fast"}, RuntimeError, "Unrecognized mode=fast"),
        ({"backend": "indutcor"}, RuntimeError, "Invalid backend"),
        ({"backend": lambda graph, inputs: graph}, NotImplementedError, "there is none"),
    ):
        with pytest.raises(kind, match=text):  # type: ignore[arg-type]
            torch.compile(torch.relu, **options)  # type: ignore[arg-type]
    assert eager.BACKENDS
    assert "inductor" in compiler.list_backends()


def test_it_says_once_that_it_runs_eagerly() -> None:
    code = ("import antorcha as torch, warnings; warnings.simplefilter('always'); "
            "f = torch.compile(abs); g = torch.compile(abs); print(f(-1))")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
    assert done.stderr.count("runs the program eagerly") == 1


def test_marks_and_settings_of_dynamo_are_accepted() -> None:
    def f(x: Any) -> Any:
        return x

    for decorate in (
        _dynamo.disable, _dynamo.disable(recursive=False), _dynamo.allow_in_graph,
        compiler.disable(reason="r"), compiler.assume_constant_result, _dynamo.run,
    ):  # fmt: skip
        assert decorate(f)(1) == 1
    x = torch.ones(2)
    _dynamo.mark_dynamic(x, 0)
    _dynamo.mark_static_address(x)
    _dynamo.reset()
    compiler.cudagraph_mark_step_begin()
    assert not (compiler.is_compiling())
    assert not (_dynamo.is_compiling())
    with _dynamo.config.patch(verbose=True, capture_scalar_outputs=True):
        assert _dynamo.config.verbose
    assert not _dynamo.config.verbose
    with compiler.set_stance("force_eager"):
        assert torch.compile(f)(2) == 2
    with pytest.raises(NotImplementedError, match="there is no graph"):
        _dynamo.explain(f)
