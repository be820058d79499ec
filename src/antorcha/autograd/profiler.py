"""``torch.autograd.profiler``: another name of `antorcha.profiler.autograd_profiler`."""

import sys

from antorcha.core.lazy import imported

sys.modules[__name__] = imported("antorcha.profiler.autograd_profiler")
