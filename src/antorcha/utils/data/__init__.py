"""``torch.utils.data``: data sets, samplers and loaders. They are written in ``antorcha.data``.

PyTorch's submodules (``torch.utils.data.dataset``, ...) are the very modules of ``antorcha.data``
under a second name, so what a program changes in one it changes in the other.
"""

from __future__ import annotations

import sys

from antorcha.data import *  # noqa: F403  (every public name)
from antorcha.data import (
    __all__,
    collate,
    dataloader,
    dataset,
    distributed,
    fetch,
    sampler,
    worker,
)
from antorcha.data.fetch import _DatasetKind
from antorcha.errors import explain_missing
from antorcha.utils.data import _utils

for _module in (dataloader, dataset, distributed, sampler):
    explain_missing(_module.__name__.replace("antorcha", "torch.utils"), vars(_module))
    sys.modules[f"{__name__}.{_module.__name__.rpartition('.')[2]}"] = _module
for _module in (collate, fetch, worker):
    sys.modules[f"{_utils.__name__}.{_module.__name__.rpartition('.')[2]}"] = _module
del collate, fetch, worker

explain_missing("torch.utils.data", globals())
