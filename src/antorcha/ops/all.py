"""Imports every file of records, so that the registry is complete."""

from __future__ import annotations

from antorcha.ops import (  # noqa: F401
    activation,
    compare,
    create,
    elementwise,
    extrema,
    memory,
    reduce,
    rounding,
    scan,
    select,
    softmax,
    sort,
    special,
    statistics,
    transcendental,
    views,
)
