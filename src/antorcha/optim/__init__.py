"""``torch.optim``: optimizers and learning rate schedulers.

See https://docs.pytorch.org/docs/stable/optim.html.
"""

from __future__ import annotations

import importlib
from typing import Any

from antorcha.errors import explain_missing, no_such_name
from antorcha.optim import adagrad, adam, optimizer, rmsprop, sgd
from antorcha.optim.adagrad import Adagrad
from antorcha.optim.adam import Adam, AdamW
from antorcha.optim.optimizer import Optimizer
from antorcha.optim.rmsprop import RMSprop
from antorcha.optim.sgd import SGD

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]

for _module in (adagrad, adam, optimizer, rmsprop, sgd):
    explain_missing(_module.__name__.replace("antorcha", "torch"), vars(_module))


def __getattr__(name: str) -> Any:
    if name == "lr_scheduler":
        return importlib.import_module("antorcha.optim.lr_scheduler")
    raise no_such_name("torch.optim", name, globals())
