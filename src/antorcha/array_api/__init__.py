"""``antorcha.array_api``: the array API standard 2025.12, for programs that work with any library.

A program asks an array for its namespace, ``xp = x.__array_namespace__()``, and uses nothing else.
Functions given Tensors give Tensors; arrays that are made here are ``Array``, which behave as the
standard says where PyTorch's tensors do otherwise. ``linalg`` and ``fft`` are there.

See https://data-apis.org/array-api/latest/.

>>> x = torch.tensor([1., 2., 3.])
>>> xp = x.__array_namespace__()
>>> xp.sum(xp.square(x))
tensor(14.)
"""

from __future__ import annotations

import math
import sys
from typing import Any

from antorcha.array_api import (
    creation,
    elementwise,
    fft,
    linalg,
    manipulation,
    searching,
    statistics,
    types,
)
from antorcha.array_api.arrays import Array
from antorcha.errors import no_such_name

__array_api_version__ = "2025.12"
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")

_FROM: dict[Any, tuple[str, ...]] = {
    creation: tuple(creation.__all__),
    elementwise: (*elementwise.__all__, "matmul"),
    linalg: ("tensordot", "vecdot"),
    manipulation: (
        "astype", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "diff",
        "expand_dims", "flip", "matrix_transpose", "moveaxis", "permute_dims", "repeat", "reshape",
        "roll", "squeeze", "stack", "take", "take_along_axis", "tile", "unstack",
    ),
    searching: (
        "argmax", "argmin", "argsort", "isin", "nonzero", "searchsorted", "sort", "unique_all",
        "unique_counts", "unique_inverse", "unique_values", "where",
    ),
    statistics: (
        "all", "any", "count_nonzero", "cumulative_prod", "cumulative_sum", "max", "mean", "min",
        "prod", "std", "sum", "var",
    ),
    types: ("__array_namespace_info__", "can_cast", "finfo", "iinfo", "isdtype", "result_type"),
}  # fmt: skip
_PUBLIC: dict[str, Any] = {
    name: getattr(module, name) for module, names in _FROM.items() for name in names
}
_PUBLIC |= {each.name: each for each in types.ALL}
_PUBLIC |= {"e": math.e, "inf": math.inf, "nan": math.nan, "newaxis": None, "pi": math.pi}
globals().update(_PUBLIC)
__all__ = [*_PUBLIC, "Array", "fft", "linalg"]


def itself() -> Any:
    """This module."""
    return sys.modules[__name__]


def __getattr__(name: str) -> Any:
    raise no_such_name("antorcha.array_api", name, _PUBLIC)
