"""``torch.optim._functional``: the optimizers as functions of lists of tensors."""

from __future__ import annotations

from antorcha.optim.adadelta import adadelta
from antorcha.optim.adagrad import adagrad
from antorcha.optim.adam import adam
from antorcha.optim.adamax import adamax
from antorcha.optim.adamw import adamw
from antorcha.optim.asgd import asgd
from antorcha.optim.nadam import nadam
from antorcha.optim.radam import radam
from antorcha.optim.rmsprop import rmsprop
from antorcha.optim.rprop import rprop
from antorcha.optim.sgd import sgd
from antorcha.optim.sparse_adam import sparse_adam

__all__ = [
    "adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop",
    "sgd", "sparse_adam",
]  # fmt: skip
