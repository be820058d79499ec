"""``torch.optim._multi_tensor``: the optimizers with ``foreach=True``, an old spelling."""

from __future__ import annotations

from functools import partialmethod
from typing import Any

from antorcha import optim

__all__ = [
    "ASGD", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop",
    "Rprop",
]  # fmt: skip


def _with_foreach(cls: Any) -> Any:
    return type(cls.__name__, (cls,), {"__init__": partialmethod(cls.__init__, foreach=True)})


ASGD, SGD, Adadelta, Adagrad, Adam, AdamW, Adamax, NAdam, RAdam, RMSprop, Rprop = [
    _with_foreach(getattr(optim, name)) for name in __all__
]
