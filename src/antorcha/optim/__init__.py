"""``torch.optim``: optimizers and learning rate schedulers.

See https://docs.pytorch.org/docs/stable/optim.html.
"""

from __future__ import annotations

import importlib
from typing import Any

from antorcha.errors import explain_missing, no_such_name
from antorcha.ops.kinds.pages import name_pages
from antorcha.optim import (
    _adafactor,
    _muon,
    adadelta,
    adagrad,
    adam,
    adamax,
    adamw,
    asgd,
    lbfgs,
    nadam,
    radam,
    rmsprop,
    rprop,
    sgd,
    sparse_adam,
)  # fmt: skip
from antorcha.optim._adafactor import Adafactor
from antorcha.optim._muon import Muon
from antorcha.optim._stateless import swap_in_optimizer_params_and_state
from antorcha.optim.adadelta import Adadelta
from antorcha.optim.adagrad import Adagrad
from antorcha.optim.adam import Adam
from antorcha.optim.adamax import Adamax
from antorcha.optim.adamw import AdamW
from antorcha.optim.asgd import ASGD
from antorcha.optim.lbfgs import LBFGS
from antorcha.optim.nadam import NAdam
from antorcha.optim.optimizer import Optimizer
from antorcha.optim.radam import RAdam
from antorcha.optim.rmsprop import RMSprop
from antorcha.optim.rprop import Rprop
from antorcha.optim.sgd import SGD
from antorcha.optim.sparse_adam import SparseAdam

name_pages("torch.optim", globals())
__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon",
    "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop", "SparseAdam", "lr_scheduler",
    "swa_utils", "swap_in_optimizer_params_and_state",
]  # fmt: skip

_MODULES = ("lr_scheduler", "swa_utils", "_functional", "_multi_tensor")  # at their first use

for _module in (_adafactor, _muon, adadelta, adagrad, adam, adamax, adamw, asgd, lbfgs, nadam,
                radam, rmsprop, rprop, sgd, sparse_adam):  # fmt: skip
    explain_missing(_module.__name__.replace("antorcha", "torch"), vars(_module))


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"antorcha.optim.{name}")
    raise no_such_name("torch.optim", name, globals())
