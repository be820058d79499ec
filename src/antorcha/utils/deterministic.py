"""``torch.utils.deterministic``: what ``use_deterministic_algorithms`` means for empty tensors."""

from __future__ import annotations

from antorcha.errors import explain_missing

fill_uninitialized_memory = True

explain_missing("torch.utils.deterministic", globals())
