"""``torch.nn.parallel.scatter_gather``: the module that libraries import these from."""

from __future__ import annotations

from typing import Any

from antorcha.errors import explain_missing
from antorcha.nn.parallel import gather as gather
from antorcha.nn.parallel import scatter as scatter


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Any, dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """The arguments' parts for each device, those by position and those by name."""
    return tuple(scatter(inputs, target_gpus, dim)), tuple(scatter(kwargs or {}, target_gpus, dim))


explain_missing("torch.nn.parallel", globals())
