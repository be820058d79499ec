"""``torch.utils.benchmark``: how long statements take, with replicates, and tables of it.

See https://docs.pytorch.org/docs/stable/benchmark_utils.html.

>>> from torch.utils.benchmark import Timer
>>> timer = Timer("x + x", globals={"x": torch.ones(4)})
>>> measured = timer.timeit(100)
>>> len(measured.times), measured.number_per_run
(1, 100)
"""

from antorcha.errors import explain_missing
from antorcha.utils.benchmark.utils.common import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from antorcha.utils.benchmark.utils.compare import Colorize, Compare
from antorcha.utils.benchmark.utils.timer import Language, Timer, timer

__all__ = [
    "Colorize",
    "Compare",
    "Language",
    "Measurement",
    "TaskSpec",
    "Timer",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]

explain_missing("torch.utils.benchmark", globals())
