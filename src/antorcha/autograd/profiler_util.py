"""``torch.autograd.profiler_util``: another name of `antorcha.profiler.events`."""

import sys

from antorcha.core.lazy import imported

sys.modules[__name__] = imported("antorcha.profiler.events")
