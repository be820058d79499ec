"""The named tuples that ops with several results give, as ``torch.return_types``.

Each is a tuple whose fields have names, made from its values or from one sequence of them, and
printed as PyTorch's structseqs are::

    torch.return_types.max(
    values=tensor([2.]),
    indices=tensor([1]))
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, ClassVar

from antorcha.errors import ArgumentError


class Named(tuple[Any, ...]):
    """A tuple with named fields; what all return types share."""

    __slots__ = ()
    fields: ClassVar[tuple[str, ...]] = ()
    n_fields: ClassVar[int] = 0
    n_sequence_fields: ClassVar[int] = 0
    n_unnamed_fields: ClassVar[int] = 0

    def __new__(cls, *values: Any) -> Named:
        items: Iterable[Any] = values
        if len(values) == 1 and cls.n_fields != 1:
            (items,) = values
        result = tuple.__new__(cls, items)
        if len(result) != cls.n_fields:
            raise ArgumentError(
                f"torch.return_types.{cls.__name__}() takes a {cls.n_fields}-sequence "
                f"({len(result)}-sequence given)"
            )
        return result

    def __repr__(self) -> str:
        pairs = [f"{name}={value!r}" for name, value in zip(self.fields, self, strict=True)]
        return f"torch.return_types.{type(self).__name__}(\n" + ",\n".join(pairs) + ")"

    def __reduce__(self) -> Any:
        return type(self), (tuple(self),)


def named(name: str, fields: str) -> type[Named]:
    """A return type of that name, with these fields."""
    names = tuple(fields.split())
    body: dict[str, Any] = {
        "__slots__": (), "__module__": "torch.return_types", "fields": names,
        "n_fields": len(names), "n_sequence_fields": len(names), "__match_args__": names,
    }  # fmt: skip
    body |= {field: property(operator.itemgetter(k)) for k, field in enumerate(names)}
    return type(name, (Named,), body)


max = named("max", "values indices")
min = named("min", "values indices")
median = named("median", "values indices")
nanmedian = named("nanmedian", "values indices")
mode = named("mode", "values indices")
sort = named("sort", "values indices")
topk = named("topk", "values indices")
kthvalue = named("kthvalue", "values indices")
cummax = named("cummax", "values indices")
cummin = named("cummin", "values indices")
aminmax = named("aminmax", "min max")
frexp = named("frexp", "mantissa exponent")
histogram = named("histogram", "hist bin_edges")
histogramdd = named("histogramdd", "hist bin_edges")
frexp = named("frexp", "mantissa exponent")
qr = named("qr", "Q R")
svd = named("svd", "U S V")
slogdet = named("slogdet", "sign logabsdet")
geqrf = named("geqrf", "a tau")
lu_unpack = named("lu_unpack", "P L U")
triangular_solve = named("triangular_solve", "solution cloned_coefficient")
linalg_slogdet = named("linalg_slogdet", "sign logabsdet")
linalg_qr = named("linalg_qr", "Q R")
linalg_svd = named("linalg_svd", "U S Vh")
linalg_eig = named("linalg_eig", "eigenvalues eigenvectors")
linalg_eigh = named("linalg_eigh", "eigenvalues eigenvectors")
linalg_lstsq = named("linalg_lstsq", "solution residuals rank singular_values")
linalg_lu = named("linalg_lu", "P L U")
linalg_lu_factor = named("linalg_lu_factor", "LU pivots")
_lu_with_info = named("_lu_with_info", "LU pivots info")
linalg_lu_factor_ex = named("linalg_lu_factor_ex", "LU pivots info")
linalg_ldl_factor = named("linalg_ldl_factor", "LD pivots")
linalg_ldl_factor_ex = named("linalg_ldl_factor_ex", "LD pivots info")
linalg_solve_ex = named("linalg_solve_ex", "result info")
linalg_inv_ex = named("linalg_inv_ex", "inverse info")
linalg_cholesky_ex = named("linalg_cholesky_ex", "L info")

ALL: dict[str, type[Named]] = {
    name: value for name, value in list(globals().items())
    if isinstance(value, type) and issubclass(value, Named) and value is not Named
}  # fmt: skip
