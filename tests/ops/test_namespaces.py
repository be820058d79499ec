"""``torch.linalg`` and ``torch.special``: the names are there, and are the records'."""

from __future__ import annotations

import pytest

import antorcha as torch
from antorcha.ops.kinds.record import NAMESPACES


@pytest.mark.parametrize("name", ["linalg", "special"])
def test_every_record_has_its_public_name(name: str) -> None:
    module = getattr(torch, name)
    for each, op in NAMESPACES[name].items():
        assert getattr(module, each) is op
        assert each in dir(module)
    with pytest.raises(AttributeError, match=f"module 'torch.{name}' has no attribute 'nothing'"):
        _ = module.nothing


def test_special_functions_by_both_names() -> None:
    x = torch.tensor([0.25, 0.5])
    assert torch.special.expit(x).equal(torch.sigmoid(x))
    assert torch.special.gammaln(x).equal(torch.lgamma(x))
    assert torch.special.logsumexp(x, 0).equal(torch.logsumexp(x, 0))


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["linalg", "special"])
def test_no_name_that_pytorch_has_not(name: str) -> None:
    theirs = pytest.importorskip("torch")
    assert not set(dir(getattr(torch, name))) - set(dir(getattr(theirs, name)))
