"""``torch.fx``: traces, graphs, generated code; the texts are PyTorch's."""

from __future__ import annotations

import copy
import importlib
import operator
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import antorcha as torch
from antorcha.core import modes
from tests.fx import programs

fx = torch.fx


@fx.wrap
def leaf(x: Any, n: Any) -> Any:
    return x * 2 if n > 1 else x


@pytest.mark.oracle
def test_texts_are_pytorchs() -> None:
    ours, theirs = programs.texts(torch), programs.texts(importlib.import_module("torch"))
    for a, b in zip(ours, theirs, strict=True):
        assert a == b


def test_a_traced_module_computes_the_same() -> None:
    net = programs.module(torch)
    gm = fx.symbolic_trace(net)
    x = torch.randn(2, 1, 6, 6)
    wanted = net(x)
    runs = {
        "code": gm, "interpreted": fx.Interpreter(gm).run, "copied": copy.deepcopy(gm),
        "pickled": pickle.loads(pickle.dumps(gm)), "transformed": fx.Transformer(gm).transform(),
    }  # fmt: skip
    for name, run in runs.items():
        assert torch.equal(run(x), wanted), name
    from antorcha.fx.experimental.optimization import fuse

    assert torch.allclose(fuse(net)(x), wanted, atol=1e-5)
    loss = gm(x).sum()
    loss.backward()
    assert net.scale.grad is not None
    assert not modes.subclasses


def test_graphs_are_changed() -> None:
    gm = fx.symbolic_trace(lambda x, y: torch.add(x, y).relu())
    x, y, add, relu, out = gm.graph.nodes
    assert add.users == {relu: None}
    assert relu.all_input_nodes == [add]
    assert (add.next, add.prev, out.op) == (relu, y, "output")
    with gm.graph.inserting_after(add):
        new = gm.graph.call_function(torch.mul, (x, y))
    add.replace_all_uses_with(new)
    with pytest.raises(RuntimeError, match="still had 1 users"):
        gm.graph.erase_node(new)
    gm.graph.erase_node(add)
    gm.graph.lint()
    gm.recompile()
    assert gm(torch.tensor([-2.0]), torch.tensor([-3.0])).tolist() == [6.0]
    with pytest.raises(TypeError, match="does not support mutation"):
        relu.kwargs["a"] = 1
    relu.append(new)
    with pytest.raises(RuntimeError, match="used before it has been defined"):
        gm.graph.lint()
    assert next(n.name for n in reversed(gm.graph.nodes)) == "output"
    assert len(gm.graph.nodes) == 5


def test_a_graph_built_by_hand() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    proxy = fx.Proxy(x)
    graph.output((torch.relu(proxy) + 1 - torch.add(proxy, proxy)).node)
    assert fx.GraphModule({}, graph)(torch.tensor([3.0])).tolist() == [-2.0]
    graph = fx.Graph()
    graph.output(graph.call_module("a.b", (graph.placeholder("x"),)))
    assert fx.GraphModule({"a.b": torch.nn.ReLU()}, graph)(torch.tensor([-1.0])).tolist() == [0.0]
    with pytest.raises(RuntimeError, match="was not provided"):
        fx.GraphModule({}, graph)
    with pytest.raises(ValueError, match="Callable is expected"):
        graph.call_function("relu")


def test_functions_that_are_leaves() -> None:
    gm = fx.symbolic_trace(lambda x: leaf(x, x.size(0)) + 1)
    assert [n.name for n in gm.graph.nodes] == ["x", "size", "leaf", "add", "output"]
    assert gm(torch.ones(3)).tolist() == [3.0, 3.0, 3.0]
    assert leaf(2.0, 1) == 2.0

    class Whole(fx.Tracer):
        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return True

    graph = Whole().trace(torch.nn.Sequential(torch.nn.Sequential(torch.nn.ReLU())))
    assert [n.op for n in graph.nodes] == ["placeholder", "call_module", "output"]


def test_known_arguments() -> None:
    def f(x: Any, double: bool) -> Any:
        return x * 2 if double else x

    gm = fx.symbolic_trace(f, concrete_args={"double": True})
    assert gm(torch.ones(1), True).tolist() == [2.0]
    with pytest.raises(AssertionError, match="specialized to have value True"):
        gm(torch.ones(1), False)


@pytest.mark.parametrize(
    ("fn", "error", "text"),
    [
        (lambda x: x if x.sum() > 0 else -x, ValueError, "cannot be used as inputs to control"),
        (lambda x: list(x), ValueError, "Proxy object cannot be iterated"),
        (lambda x: len(x), RuntimeError, "'len' is not supported in symbolic tracing"),
        (lambda x: torch.relu(object(), x), NotImplementedError, "argument of type"),
    ],
)
def test_what_cannot_be_traced(fn: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        fx.symbolic_trace(fn)
    assert not modes.subclasses
    assert torch.nn.Module.__call__.__module__ == "antorcha.nn.module"


def test_a_transformer_and_an_interpreter_change_calls() -> None:
    class Swap(fx.Transformer):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            return super().call_function(
                operator.sub if target is operator.add else target, args, kwargs
            )

    gm = Swap(fx.symbolic_trace(lambda x: x + 3)).transform()
    assert gm(torch.ones(1)).tolist() == [-2.0]

    class Names(fx.Interpreter):
        def run_node(self, n: Any) -> Any:
            seen.append(n.name)
            return super().run_node(n)

    seen: list[str] = []
    Names(gm).run(torch.ones(1))
    assert seen == ["x", "sub", "output"]


def test_a_module_is_written_to_a_folder(tmp_path: Path) -> None:
    gm = fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)))
    gm.to_folder(tmp_path / "written", "Net")
    program = (
        f"import sys, antorcha.torch_alias as a; a.install(hide=True); "
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "from written import Net; import torch; print(tuple(Net()(torch.zeros(2, 3)).shape))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "(2, 4)", done.stderr


def test_the_code_of_a_graph_can_be_transformed() -> None:
    gm = fx.symbolic_trace(lambda x: x.relu())

    def insert(body: list[str]) -> Iterator[str]:
        return ["x = x + 1\n", *body]  # type: ignore[return-value]

    with gm.graph.on_generate_code(lambda before: insert):
        gm.recompile()
        assert gm(torch.zeros(1)).tolist() == [1.0]
    gm.recompile()
    assert gm(torch.zeros(1)).tolist() == [0.0]
