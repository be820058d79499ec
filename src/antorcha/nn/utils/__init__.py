"""``torch.nn.utils``: gradients clipped, parameters as one vector, padded sequences (``rnn``)."""

from __future__ import annotations

from antorcha.errors import explain_missing
from antorcha.nn.utils import rnn
from antorcha.nn.utils.clip import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from antorcha.nn.utils.vectors import parameters_to_vector, vector_to_parameters

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_",
    "get_total_norm", "parameters_to_vector", "rnn", "vector_to_parameters",
]  # fmt: skip

explain_missing("torch.nn.utils", globals())
