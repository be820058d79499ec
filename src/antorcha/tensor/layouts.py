"""How a tensor's elements are kept: ``torch.strided``, ``torch.sparse_coo``, ..."""

from __future__ import annotations

from typing import Any


class layout:
    """How a tensor's elements are kept: in strides, or only those that are not zero."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> Any:
        return by_name, (self.name,)


strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
sparse_csc = layout("sparse_csc")
sparse_bsr = layout("sparse_bsr")
sparse_bsc = layout("sparse_bsc")
jagged = layout("jagged")
_mkldnn = layout("_mkldnn")
ALL = (strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, jagged, _mkldnn)


def by_name(name: str) -> layout:
    """The layout of that name."""
    return next(each for each in ALL if each.name == name)
