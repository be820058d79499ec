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
    with pytest.raises(AttributeError, match=r"torch\.functional"):
        _ = functional.no_such_function


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


def older_forms() -> list[Any]:
    a, b, c = torch.ones(2, 2), torch.full((2, 2), 2.0), torch.full((2, 2), 3.0)
    v, many = torch.ones(2), torch.Tensor.unsqueeze
    return [
        (lambda: a.clone().add_(2, b), 5.0), (lambda: torch.add(a, 2, b), 5.0),
        (lambda: torch.sub(a, 2, b), -3.0), (lambda: a.clone().sub_(2, b), -3.0),
        (lambda: a.clone().addcmul_(2, b, c), 13.0), (lambda: torch.addcmul(a, 2, b, c), 13.0),
        (lambda: a.clone().addcdiv_(-3, b, c), -1.0), (lambda: a.addcdiv(3, b, c), 3.0),
        (lambda: torch.addmm(2, a, 3, b, c), 38.0), (lambda: torch.addmm(2, a, b, c), 14.0),
        (lambda: a.clone().addmm_(2, 3, b, c), 38.0), (lambda: a.addmm(2, b, c), 14.0),
        (lambda: torch.addmv(2, v, 3, b, v), 14.0), (lambda: torch.addr(2, a, 3, v, v), 5.0),
        (lambda: torch.baddbmm(2, many(a, 0), 3, many(b, 0), many(c, 0)), 38.0),
        (lambda: torch.addbmm(2, a, 3, many(b, 0), many(c, 0)), 38.0),
    ]  # fmt: skip


@pytest.mark.parametrize("k", range(len(older_forms())))
def test_numbers_before_the_tensors(k: int) -> None:
    call, expected = older_forms()[k]
    with pytest.warns(UserWarning, match="numbers before the tensors are deprecated"):
        result = call()
    assert result.unique().tolist() == [expected]


def test_older_forms_are_still_checked() -> None:
    a = torch.ones(2)
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        a.add(1, 2)
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        a.mul(1, a)  # type: ignore[call-arg]
    assert torch.detach(torch.ones(2, requires_grad=True)).requires_grad is False


def test_what_replaces_a_name_of_torch_for_a_while_leaves_it_there() -> None:
    from antorcha.torch_alias import TorchModule

    module = TorchModule(torch)
    own = torch.sigmoid
    module.sigmoid = len
    assert torch.sigmoid is len
    del module.sigmoid
    assert module.sigmoid is torch.sigmoid is own


def test_inner_names_that_libraries_import() -> None:
    """kornia, captum, MONAI and tensordict import these."""
    from antorcha._C._functorch import is_batchedtensor
    from antorcha._subclasses.fake_tensor import FakeTensor, is_fake
    from antorcha.data.collate import np_str_obj_array_pattern
    from antorcha.fx.experimental.proxy_tensor import get_proxy_mode
    from antorcha.utils._contextlib import _DecoratorContextManager

    seen: list[bool] = []
    x = torch.ones(2)
    torch.func.vmap(lambda example: seen.append(is_batchedtensor(example)) or example)(x)
    assert seen == [True]
    assert not is_batchedtensor(x)
    assert not is_fake(x)
    assert not isinstance(x, FakeTensor)
    assert get_proxy_mode() is None
    assert np_str_obj_array_pattern.search("<U3")
    assert not np_str_obj_array_pattern.search("<f4")

    class Counting(_DecoratorContextManager):
        def __enter__(self) -> None:
            seen.append(False)

        def __exit__(self, *_: Any) -> None: ...

    @Counting()
    def numbers() -> Any:
        yield 1
        yield 2

    assert list(numbers()) == [1, 2]
    assert seen == [True, False, False, False]  # a context for each step


def futures_of(library: Any) -> list[Any]:
    """What a program sees of futures: values, errors, callbacks, in order."""
    found: list[Any] = []
    first, second = library.futures.Future(), library.futures.Future()
    both = library.futures.collect_all([first, second])
    later = first.then(lambda done: done.value() * 2).then(lambda done: found.append(done.value()))
    first.add_done_callback(lambda done: found.append(done.done()))
    found.append((first.done(), both.done(), library.futures.collect_all([]).done()))
    first.set_result(3)
    found += [first.wait(), first.value(), later.done(), both.done()]
    second.set_exception(ValueError("no"))
    found.append(library.futures.collect_all([first, first]).wait()[1].value())
    failing = second.then(lambda done: done.value())
    for ask in (both.wait, second.wait, second.value, failing.wait,
                lambda: library.futures.wait_all([first, second])):  # fmt: skip
        try:
            ask()
        except Exception as error:
            found.append("no" in str(error))
    for wrong in (lambda: first.set_result(4), library.futures.Future().value):
        try:
            wrong()
        except Exception as error:
            found.append(isinstance(error, RuntimeError))
    return found


@pytest.mark.oracle
def test_futures_are_pytorchs() -> None:
    pytorch = importlib.import_module("torch")
    importlib.import_module("torch.futures")
    assert futures_of(torch) == futures_of(pytorch)
