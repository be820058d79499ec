"""PyTorch's samples of its modules: the same results and gradients with the same parameters."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import pytest

from tests.ops import samples

pytestmark = pytest.mark.oracle


def held() -> list[Any]:
    """The entries whose module antorcha has."""
    return [info for info in samples.modules() if samples.named(info.name) is not None]


def check(info: Any, dtype: str, training: bool) -> list[str]:
    """What differs in a module's samples."""
    import torch

    kind = getattr(torch, dtype)
    if kind not in info.dtypes:
        return []
    wrong = []
    torch.manual_seed(0)
    options = {"device": "cpu", "dtype": kind, "requires_grad": True, "training": training}
    for k, given in enumerate(info.module_inputs_func(info, **options)):
        if given.forward_input is None:
            continue
        try:
            theirs, ours = samples.twins(info, given, kind, training)
        except NotImplementedError:
            continue
        except Exception as error:
            wrong.append(f"{info.name} {dtype} sample {k}: {type(error).__name__}: {error}")
            continue
        sample = SimpleNamespace(args=given.forward_input.args, kwargs=given.forward_input.kwargs)
        message = samples.compare(theirs, ours, sample, grad=True)
        if message:
            wrong.append(f"{info.name} {dtype} sample {k} ({given.desc}): {message}")
    return wrong


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_modules_as_pytorch(dtype: str, training: bool) -> None:
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for info in held():
            wrong += check(info, dtype, training)
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:60])


def test_most_of_pytorchs_modules_are_here() -> None:
    assert len(held()) >= 80
