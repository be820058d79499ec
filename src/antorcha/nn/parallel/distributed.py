"""``torch.nn.parallel.distributed``: where libraries look for DistributedDataParallel."""

from __future__ import annotations

from antorcha.errors import explain_missing
from antorcha.nn.parallel import DistributedDataParallel as DistributedDataParallel

explain_missing("torch.nn.parallel", globals())
