"""``vmap``: a function of single examples, over a batch of them.

The function runs once, with examples in the place of batches (``tensor.batched``): each op runs for
all of them. A function that looks at an example's contents (``.item()``, Python's ``if``) is run on
one slice after another instead.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import NoneType
from typing import Any

from antorcha.errors import GraphError
from antorcha.ops.kinds.record import T
from antorcha.random import get_all_states, set_all_states
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.batched import Batch, OneByOne
from antorcha.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten

_RANDOMNESS = ("error", "different", "same")


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """A function of batches made of a function of single examples.

    Args:
        func (Callable): takes tensors (or trees of them) without the batch's dimension
        in_dims (int or nested tuple): which dim of each argument is the batch's, None for an
            argument that every example gets whole. Default: 0
        out_dims (int or nested tuple): where the batch's dim goes in the results, None for a result
            that does not depend on the example. Default: 0
        randomness (str): ``'error'`` refuses random numbers, ``'same'`` draws the same ones for
            every example, ``'different'`` draws on. Default: ``'error'``
        chunk_size (int, optional): how many examples run at once. Default: all

    Each op runs once for all examples; a few, and functions that ask for an example's contents
    (``.item()``, ``if x > 0``), run for one after another. What the function does besides, such as
    printing, it then does more than once.
    See https://docs.pytorch.org/docs/stable/generated/torch.func.vmap.html.

    >>> torch.func.vmap(torch.dot)(torch.tensor([[1., 2.], [3., 4.]]), torch.ones(2, 2))
    tensor([3., 7.])
    >>> x = torch.tensor([1., 2.])
    >>> torch.func.vmap(torch.func.grad(lambda x: x ** 2))(x)
    tensor([2., 4.])
    """
    if randomness not in _RANDOMNESS:
        raise GraphError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        _check_out_dims(out_dims, func)
        leaves, structure = tree_flatten(args)
        dims = _in_dims(in_dims, args, leaves, structure, func)
        size = _batch_size(dims, leaves)
        given = MappedCall(func, leaves, dims, structure, kwargs, randomness, out_dims)
        most = chunk_size or size
        if size <= most:
            return given.run()
        parts = [given.part(k, min(k + most, size)).run() for k in range(0, size, most)]
        return _joined(parts, out_dims)

    return functools.wraps(func)(wrapper) if hasattr(func, "__name__") else wrapper


class MappedCall:
    """What a function is run with."""

    def __init__(
        self, func: Callable[..., Any], leaves: list[Any], dims: list[int | None], structure: Any,
        kwargs: dict[str, Any], randomness: str, out_dims: Any,
    ) -> None:  # fmt: skip
        self.func, self.leaves, self.dims, self.structure = func, leaves, dims, structure
        self.kwargs, self.randomness, self.out_dims = kwargs, randomness, out_dims
        self.size = _batch_size(dims, leaves)

    def part(self, start: int, end: int) -> MappedCall:
        """Some of the examples."""
        leaves = [
            leaf if dim is None else T.slice(leaf, dim, start, end)
            for leaf, dim in zip(self.leaves, self.dims, strict=True)
        ]
        return MappedCall(
            self.func, leaves, self.dims, self.structure, self.kwargs, self.randomness,
            self.out_dims,
        )  # fmt: skip

    def run(self) -> Any:
        """The results for all examples: at once, or else one by one."""
        before = get_all_states()
        try:
            return self._at_once()
        except OneByOne:
            if not self.size:
                raise
            set_all_states(before)
            return self._one_by_one()

    def _at_once(self) -> Any:
        draws = _Draws(self.randomness)
        with Batch(self.size, self.randomness) as batch, draws:
            given = [
                leaf if dim is None else batch.example(T.movedim(leaf, dim, 0))
                for leaf, dim in zip(self.leaves, self.dims, strict=True)
            ]
            result = self.func(*tree_unflatten(given, self.structure), **self.kwargs)
            leaves, structure = tree_flatten(result)
            dims = _dims_of_results(self.out_dims, result, structure, self.func)
            found = [
                leaf if dim is None and not batch.has(leaf) else _whole(batch, leaf, dim, self.func)
                for leaf, dim in zip(leaves, dims, strict=True)
            ]
        return tree_unflatten(found, structure)

    def _one_by_one(self) -> Any:
        parts = [
            leaf if dim is None else T.unbind(leaf, dim)
            for leaf, dim in zip(self.leaves, self.dims, strict=True)
        ]
        draws = _Draws(self.randomness)
        results = []
        for k in range(self.size):
            given = [
                part if dim is None else part[k] for part, dim in zip(parts, self.dims, strict=True)
            ]
            with draws:
                results.append(self.func(*tree_unflatten(given, self.structure), **self.kwargs))
        return _stacked(results, self.out_dims, self.func)


def _whole(batch: Batch, leaf: Any, dim: int | None, func: Any) -> Tensor:
    """A result for all examples, with the batch's dim where it is wanted."""
    _check_result(leaf, func)
    if dim is None:
        raise ValueError(
            f"vmap({_name(func)}, ...): `{_name(func)}` can not return a BatchedTensor when "
            "out_dim is None"
        )
    ndim = leaf.dim() + 1
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got "
            f"{dim})"
        )
    result: Tensor = T.movedim(batch.whole(leaf), 0, dim)
    return result


def _joined(parts: list[Any], out_dims: Any) -> Any:
    """The results of the chunks as one tree."""
    flat = [tree_flatten(each) for each in parts]
    structure = flat[0][1]
    if isinstance(out_dims, tuple) and len(out_dims) == 1 and isinstance(parts[0], Tensor):
        out_dims = out_dims[0]
    dims = _broadcast_to_and_flatten(out_dims, structure)
    assert dims is not None  # the chunks have been checked
    result = [
        column[0] if dim is None else T.cat(tuple(column), dim)
        for column, dim in zip(zip(*[leaves for leaves, _ in flat], strict=True), dims, strict=True)
    ]
    return tree_unflatten(result, structure)


class _Draws:
    """Around each example's run: what it may do to the generator."""

    def __init__(self, randomness: str) -> None:
        self.randomness = randomness
        self.before = None if randomness == "different" else get_all_states()

    def __enter__(self) -> None:
        if self.randomness == "same":
            assert self.before is not None
            set_all_states(self.before)

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is not None or self.randomness != "error":
            return
        if get_all_states() != self.before:
            raise GraphError(
                "vmap: called random operation while in randomness error mode. Please either use "
                "the 'same' or 'different' randomness flags on vmap or perform the randomness "
                "operation out of vmap"
            )


def _name(func: Any) -> str:
    if hasattr(func, "__name__"):
        return str(func.__name__)
    if isinstance(func, functools.partial):
        return f"functools.partial({_name(func.func)}, ...)"
    return repr(func)


def _check_out_dims(out_dims: Any, func: Any) -> None:
    for each in tree_flatten(out_dims)[0]:
        if not isinstance(each, (int, NoneType)):
            raise ValueError(
                f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None "
                "or a python collection of ints representing where in the outputs the vmapped "
                "dimension should appear."
            )


def _in_dims(
    in_dims: Any, args: tuple[Any, ...], leaves: list[Any], structure: Any, func: Any
) -> list[int | None]:
    """The batch's dim of each leaf, not negative."""
    called = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        if isinstance(in_dims, list):
            in_dims = tuple(in_dims)
        else:
            raise ValueError(
                f"{called}: expected `in_dims` to be int or a (potentially nested) tuple matching "
                f"the structure of inputs, got: {type(in_dims)}."
            )
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you "
            "are trying to vmap over a function with no inputs. The latter is unsupported."
        )
    dims = _broadcast_to_and_flatten(in_dims, structure)
    if dims is None:
        raise ValueError(
            f"{called}: in_dims is not compatible with the structure of `inputs`. in_dims has "
            f"structure {tree_flatten(in_dims)[1]} but inputs has structure "
            f"{structure}."
        )
    return [_in_dim(dim, leaf, called) for dim, leaf in zip(dims, leaves, strict=True)]


def _in_dim(dim: Any, leaf: Any, called: str) -> int | None:
    if dim is None:
        return None
    if not isinstance(dim, int):
        raise ValueError(
            f"{called}: Got in_dim={dim} for an input but in_dim must be either an integer "
            "dimension or None."
        )
    if not isinstance(leaf, Tensor):
        raise ValueError(
            f"{called}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We "
            "cannot vmap over non-Tensor arguments, please use None as the respective in_dim"
        )
    ndim = leaf.dim()
    if not -ndim <= dim < ndim:
        raise ValueError(
            f"{called}: Got in_dim={dim} for some input, but that input is a Tensor of "
            f"dimensionality {ndim} so expected in_dim to satisfy -{ndim} <= in_dim < {ndim}."
        )
    return dim % ndim


def _batch_size(dims: list[int | None], leaves: list[Any]) -> int:
    sizes = [leaf.size(dim) for dim, leaf in zip(dims, leaves, strict=True) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return int(sizes[0])


def _dims_of_results(out_dims: Any, result: Any, structure: Any, func: Any) -> list[Any]:
    """Where the batch's dim goes in each leaf of the results."""
    if isinstance(result, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    dims = _broadcast_to_and_flatten(out_dims, structure)
    if dims is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible "
            f"with the structure of `outputs`. out_dims has structure "
            f"{tree_flatten(out_dims)[1]} but outputs has structure "
            f"{structure}."
        )
    return list(dims)


def _stacked(results: list[Any], out_dims: Any, func: Any) -> Any:
    """The examples' results as one tree of stacked tensors."""
    flat = [tree_flatten(each) for each in results]
    structure = flat[0][1]
    dims = _dims_of_results(out_dims, results[0], structure, func)
    columns = zip(*[leaves for leaves, _ in flat], strict=True)
    result = [
        column[0] if dim is None else _stack(column, dim, func)
        for column, dim in zip(columns, dims, strict=True)
    ]
    return tree_unflatten(result, structure)


def _check_result(leaf: Any, func: Any) -> None:
    if not isinstance(leaf, Tensor):
        raise ValueError(
            f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type "
            f"{type(leaf)}. Did you mean to set out_dims= to None for output?"
        )


def _stack(column: tuple[Any, ...], dim: int, func: Any) -> Tensor:
    _check_result(column[0], func)
    result: Tensor = T.stack(column, dim)
    return result
