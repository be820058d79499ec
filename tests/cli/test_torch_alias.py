"""The import hook: one module under two names, a version of its own, and a clean way back."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator

import pytest

import antorcha
from antorcha import torch_alias


@pytest.fixture
def torch() -> Iterator[torch_alias.TorchModule]:
    """``torch``, served by antorcha for one test."""
    torch_alias.install(hide=True)
    yield importlib.import_module("torch")  # type: ignore[misc]
    torch_alias.uninstall()


def test_modules_are_the_same_objects(torch: torch_alias.TorchModule) -> None:
    functional = importlib.import_module("torch.nn.functional")
    assert functional is importlib.import_module("antorcha.nn.functional")
    assert torch.nn is antorcha.nn
    assert torch.nn.functional is functional
    assert functional.__spec__ is not None
    assert functional.__spec__.name == "antorcha.nn.functional"
    assert torch.tensor is antorcha.tensor


def test_data_is_where_pytorch_has_it(torch: torch_alias.TorchModule) -> None:
    data = importlib.import_module("torch.utils.data")
    assert data.DataLoader is torch.utils.data.DataLoader


def test_a_function_keeps_its_name_from_a_module(torch: torch_alias.TorchModule) -> None:
    spawn = importlib.import_module("torch.multiprocessing.spawn")
    assert spawn is importlib.import_module("antorcha.multiprocessing.spawn")
    assert torch.multiprocessing.spawn is spawn.spawn


def test_the_version_is_pytorchs_and_compares_as_one(torch: torch_alias.TorchModule) -> None:
    assert torch.__version__ == "2.13.0+antorcha"
    assert torch.__version__ >= "2.6"  # as strings it would be less
    assert torch.__version__ >= (2, 13)
    assert torch.__version__ < (3,)
    assert antorcha.__version__ != torch.__version__
    assert importlib.import_module("torch.version").cuda is None


def test_names_are_written_through(torch: torch_alias.TorchModule) -> None:
    torch.a_name_of_this_test = 1
    assert antorcha.a_name_of_this_test == 1  # type: ignore[attr-defined]
    del torch.a_name_of_this_test
    assert not hasattr(antorcha, "a_name_of_this_test")
    assert "tensor" in dir(torch)


def test_a_program_can_look_for_it(torch: torch_alias.TorchModule) -> None:
    assert importlib.util.find_spec("torch") is not None
    assert importlib.util.find_spec("torch.nn") is not None


@pytest.mark.parametrize("name", ["torch.nothing", "torch.nn.nothing", "torch.tensor"])
def test_what_is_missing_is_called_by_its_name(torch: torch_alias.TorchModule, name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=f"No module named '{name}'") as caught:
        importlib.import_module(name)
    assert caught.value.name == name
    assert callable(torch.tensor)  # the package antorcha.tensor has not taken the function's place


def test_a_misspelt_module_gets_a_hint(torch: torch_alias.TorchModule) -> None:
    with pytest.raises(ModuleNotFoundError, match="Did you mean 'functional'"):
        importlib.import_module("torch.nn.functionall")


def test_a_misspelt_name_gets_a_hint(torch: torch_alias.TorchModule) -> None:
    with pytest.raises(AttributeError, match=r"module 'torch' has no attribute.*'tensor'"):
        torch.tensr


def test_everything_goes_back() -> None:
    before = {name: module for name, module in sys.modules.items() if name.startswith("torch")}
    finders = list(sys.meta_path)
    torch_alias.install(hide=True)
    torch_alias.install(hide=True)
    importlib.import_module("torch.nn")
    torch_alias.uninstall()
    torch_alias.uninstall()
    after = {name: module for name, module in sys.modules.items() if name.startswith("torch")}
    assert after == before
    assert sys.meta_path == finders


@pytest.mark.oracle
def test_an_installed_pytorch_is_not_hidden_unasked() -> None:
    with pytest.raises(ImportError, match="hide=True"):
        torch_alias.install()
    assert not any(isinstance(one, torch_alias._Finder) for one in sys.meta_path)
