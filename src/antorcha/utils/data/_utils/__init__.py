"""``torch.utils.data._utils``: private in PyTorch, yet imported by programs that collate."""

from __future__ import annotations

from antorcha.data import collate, fetch, worker
