"""Tables of vectors: Embedding, and EmbeddingBag for sums of them."""

from __future__ import annotations

from typing import Any

from antorcha.nn import functional as F
from antorcha.nn import init
from antorcha.nn.module import Module
from antorcha.nn.parameter import Parameter, add_parameter
from antorcha.ops.kinds.record import T


class Embedding(Module):
    """A table of vectors, looked up by number: words to vectors.

    Args:
        num_embeddings (int): the size of the table
        embedding_dim (int): the size of each vector
        padding_idx (int, optional): this vector starts as zeros and gets no gradient
        max_norm (float, optional): vectors with a larger norm are scaled down when looked up
        norm_type (float): p of that norm. Default: 2
        scale_grad_by_freq (bool): divide gradients by how often the number occurs in the batch
        sparse (bool): is the table's gradient sparse (for SGD, Adagrad, SparseAdam)? Default: False

    Shape: input ``(*)`` of integers, output ``(*, embedding_dim)``.

    Weight ``(num_embeddings, embedding_dim)`` starts as draws from N(0, 1).

    >>> torch.nn.Embedding(10, 3)(torch.tensor([[1, 2, 4, 5], [4, 3, 2, 9]])).shape
    torch.Size([2, 4, 3])
    """

    __constants__ = [  # noqa: RUF012
        "num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type",
        "scale_grad_by_freq", "sparse",
    ]  # fmt: skip

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = F.padding_row(padding_idx, num_embeddings)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        if _weight is None:
            empty = T.empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
            self.weight = Parameter(empty, requires_grad=not _freeze)  # type: ignore[call-arg]
            self.reset_parameters()
        else:
            if tuple(_weight.shape) != (num_embeddings, embedding_dim):
                raise AssertionError(
                    "Shape of weight does not match num_embeddings and embedding_dim"
                )
            self.weight = Parameter(_weight, requires_grad=not _freeze)  # type: ignore[call-arg]
        self.sparse = sparse

    def reset_parameters(self) -> None:
        """Draws the table afresh."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            self.weight.data[self.padding_idx].fill_(0)

    def forward(self, input: Any) -> Any:
        """The vectors of these numbers."""
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
                           self.scale_grad_by_freq, self.sparse)  # fmt: skip

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq is not False:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        return text + ", sparse=True" if self.sparse is not False else text

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Any:
        """An Embedding over a table that exists; with ``freeze`` (default) it is not trained.

        >>> e = torch.nn.Embedding.from_pretrained(torch.tensor([[1., 2.3], [4., 5.1]]))
        >>> e(torch.tensor([1]))
        tensor([[4.0000, 5.1000]])
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, cols = embeddings.shape
        return cls(rows, cols, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
                   _weight=embeddings, _freeze=freeze)  # fmt: skip


class EmbeddingBag(Module):
    """The sum, mean or maximum of bags of vectors of a table, such as the words of a text.

    Args:
        num_embeddings (int): the size of the table
        embedding_dim (int): the size of each vector
        max_norm (float, optional): vectors with a larger norm are scaled down when looked up
        norm_type (float): p of that norm. Default: 2
        scale_grad_by_freq (bool): divide gradients by how often the number occurs in the batch
        mode (str): ``'sum'``, ``'mean'`` or ``'max'``. Default: ``'mean'``
        sparse (bool): is the table's gradient sparse (for SGD, Adagrad, SparseAdam)? Default: False
        include_last_offset (bool): does the last offset say where the last bag ends?
        padding_idx (int, optional): this vector starts as zeros, is left out of the bags, and gets
            no gradient

    Shape: input ``(bags, size)``, or ``(N)`` with ``offsets`` ``(bags)`` that say where each bag
    starts; output ``(bags, embedding_dim)``. A bag of nothing gives zeros.

    Weight ``(num_embeddings, embedding_dim)`` starts as draws from N(0, 1).

    >>> bag = torch.nn.EmbeddingBag(10, 3, mode='sum')
    >>> bag(torch.tensor([1, 2, 4, 5, 4]), torch.tensor([0, 3])).shape
    torch.Size([2, 3])
    """

    __constants__ = [  # noqa: RUF012
        "num_embeddings", "embedding_dim", "max_norm", "norm_type", "scale_grad_by_freq", "mode",
        "sparse", "include_last_offset", "padding_idx",
    ]  # fmt: skip

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = F.padding_row(padding_idx, num_embeddings)
        if _weight is None:
            add_parameter(self, "weight", (num_embeddings, embedding_dim), device, dtype)
            self.reset_parameters()
        else:
            if tuple(_weight.shape) != (num_embeddings, embedding_dim):
                raise AssertionError(
                    "Shape of weight does not match num_embeddings and embedding_dim"
                )
            self.weight = Parameter(_weight)  # type: ignore[call-arg]
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def reset_parameters(self) -> None:
        """Draws the table afresh."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight.data[self.padding_idx].fill_(0)

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        """The bags' vectors."""
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.mode, self.sparse, per_sample_weights, self.include_last_offset,
            self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq is not False:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        text += f", mode={self.mode!r}"
        return text + ("" if self.padding_idx is None else f", padding_idx={self.padding_idx}")

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Any:
        """An EmbeddingBag over a table that exists; with ``freeze`` (default) it is not trained.

        >>> table = torch.tensor([[1., 2.], [3., 4.]])
        >>> torch.nn.EmbeddingBag.from_pretrained(table)(torch.tensor([[0, 1]]))
        tensor([[2., 3.]])
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, cols = embeddings.shape
        result = cls(rows, cols, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings,
                   include_last_offset, padding_idx)  # fmt: skip
        result.weight.requires_grad = not freeze
        return result
