"""Every public layer, loss, optimizer and scheduler says what a reader looks for.

Meaning, arguments, shapes, how it is initialised, the page of PyTorch, an example (which
test_examples.py runs).
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from antorcha import nn, optim
from antorcha.optim import lr_scheduler

CONTAINERS = {"Module", "Container", "Sequential", "ModuleList", "ModuleDict", "ParameterList",
              "ParameterDict"}  # fmt: skip
OLD = {"device", "dtype", "size_average", "reduce"}  # arguments that all have, or nobody should use
LIKE_ANOTHER = re.compile("Args: those of|Args: as")
INITIALISED = re.compile(r"start|initial|uniform|drawn|normal\(")


def classes() -> dict[str, Any]:
    """The public classes by name."""
    found = {}
    for space in (nn, optim, lr_scheduler):
        home = space.__name__.rpartition(".")[0] if space is lr_scheduler else space.__name__
        for name, value in sorted(vars(space).items()):
            if isinstance(value, type) and name[0].isupper() and value.__module__.startswith(home):
                found[f"{space.__name__.removeprefix('antorcha.')}.{name}"] = value
    return found


def lacks(name: str, kind: Any) -> list[str]:
    """What its docstring does not say."""
    doc = kind.__doc__ or ""
    said = {
        "an example": ">>>" in doc,
        "the page of PyTorch": "https://docs.pytorch.org" in doc,
    }
    params = [p for p in list(inspect.signature(kind.__init__).parameters)[1:]
              if p not in ("args", "kwargs") and not p.startswith("_")]  # fmt: skip
    if params:
        said["arguments"] = "Args:" in doc
    if issubclass(kind, nn.Module) and name.rpartition(".")[2] not in CONTAINERS:
        said["shapes"] = "Shape" in doc or "shape" in doc
        if not LIKE_ANOTHER.search(doc):
            said |= {f"the argument {p}": p in doc for p in params if p not in OLD}
        if hasattr(kind, "reset_parameters"):
            said["initial values"] = bool(INITIALISED.search(doc))
    return [what for what, is_said in said.items() if not is_said]


@pytest.mark.parametrize("name", classes())
def test_a_public_class_is_documented(name: str) -> None:
    assert not lacks(name, classes()[name])
