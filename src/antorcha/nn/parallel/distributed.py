"""``torch.nn.parallel.distributed``: the module that libraries import DistributedDataParallel from."""

from __future__ import annotations

from antorcha.errors import explain_missing
from antorcha.nn.parallel import DistributedDataParallel as DistributedDataParallel

explain_missing("torch.nn.parallel", globals())
