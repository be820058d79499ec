"""Names that programs reach as attributes or import from where PyTorch defines them."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import pytest

import antorcha as torch


@pytest.mark.parametrize(
    "name",
    ["serialization.safe_globals", "functional.einsum", "functional.F.relu", "functional.Tensor",
     "nn.utils.clip_grad.clip_grad_norm_", "_C._LinAlgError",
     "nn.utils.convert_parameters.parameters_to_vector"],
)  # fmt: skip
def test_import_torch_is_enough(name: str) -> None:
    program = f"import antorcha as torch; torch.{name}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_modules_hold_the_public_functions() -> None:
    from antorcha.nn.utils import clip_grad, convert_parameters

    assert clip_grad.clip_grad_norm_ is torch.nn.utils.clip_grad_norm_
    assert convert_parameters.vector_to_parameters is torch.nn.utils.vector_to_parameters
    functional: Any = importlib.import_module("antorcha.functional")
    for name in functional.__all__:
        expected = torch.Tensor if name == "Tensor" else getattr(torch, name)
        assert getattr(functional, name) is expected
    with pytest.raises(AttributeError, match=r"torch\.functional\.stft: PyTorch 2\.13 has it"):
        _ = functional.stft


def test_the_error_of_a_singular_matrix_has_its_internal_name() -> None:
    with pytest.raises(torch._C._LinAlgError, match="singular"):
        torch.linalg.solve(torch.zeros(2, 2), torch.ones(2))


def test_blocks_of_the_profiler_as_operators() -> None:
    enter, leave = (torch.ops.profiler._record_function_enter,
                    torch.ops.profiler._record_function_exit)  # fmt: skip
    with torch.autograd.profiler.profile() as prof:
        block = enter("foo")
        torch.ones(2).relu()
        leave(block)
    assert "foo" in [event.name for event in prof.function_events]
    with pytest.raises(AttributeError, match="no attribute '_record_function'"):
        _ = torch.ops.profiler._record_function


def test_operators_of_the_profiler_are_traced() -> None:
    class Marks(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            y = x.relu()
            torch.ops.profiler._record_function_exit(y)
            return y

    graph = torch.fx.Tracer().trace(Marks())
    assert [node.op for node in graph.nodes].count("call_function") == 1
    assert "torch.ops.profiler._record_function_exit(relu)" in graph.python_code("self").src
