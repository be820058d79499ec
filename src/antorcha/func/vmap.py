"""``vmap``: a function of single examples, over a batch of them.

The function is run on one slice after another and the results are stacked. What it gives is what
PyTorch's batching rules give, with every op, Python's ``if`` on values and ``.item()`` included;
it takes as long as the loop that it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import NoneType
from typing import Any

from antorcha.errors import GraphError
from antorcha.ops.record import T
from antorcha.random import get_rng_state, set_rng_state
from antorcha.runtime.tensor import Tensor
from antorcha.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten

_RANDOMNESS = ("error", "different", "same")


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """A function of batches made of a function of single examples; it loops over the examples.

    Args:
        func (Callable): takes tensors (or trees of them) without the batch's dimension
        in_dims (int or nested tuple): which dim of each argument is the batch's, None for an
            argument that every example gets whole. Default: 0
        out_dims (int or nested tuple): where the batch's dim goes in the results, None for a result
            that does not depend on the example. Default: 0
        randomness (str): ``'error'`` refuses random numbers, ``'same'`` draws the same ones for
            every example, ``'different'`` draws on. Default: ``'error'``
        chunk_size (int, optional): accepted; the examples run one by one in any case

    The numbers of ``'different'`` are those of the loop, not of one draw for the whole batch.
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
        parts = [
            leaf if dim is None else T.unbind(leaf, dim)
            for leaf, dim in zip(leaves, dims, strict=True)
        ]
        draws = _Draws(randomness)
        results = []
        for k in range(size):
            given = [
                part if dim is None else part[k] for part, dim in zip(parts, dims, strict=True)
            ]
            with draws:
                results.append(func(*tree_unflatten(given, structure), **kwargs))
        if not results:
            raise ValueError("vmap: the batch has no examples, so the function cannot be run")
        return _stacked(results, out_dims, func)

    return functools.wraps(func)(wrapper) if hasattr(func, "__name__") else wrapper


class _Draws:
    """Around each example's run: what it may do to the generator."""

    def __init__(self, randomness: str) -> None:
        self.randomness = randomness
        self.before = None if randomness == "different" else get_rng_state()

    def __enter__(self) -> None:
        if self.randomness == "same":
            assert self.before is not None
            set_rng_state(self.before)

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is not None or self.randomness != "error":
            return
        if not T.equal(get_rng_state(), self.before):
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


def _stacked(results: list[Any], out_dims: Any, func: Any) -> Any:
    """The examples' results as one tree of stacked tensors."""
    flat = [tree_flatten(each) for each in results]
    structure = flat[0][1]
    if isinstance(results[0], Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    dims = _broadcast_to_and_flatten(out_dims, structure)
    if dims is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible "
            f"with the structure of `outputs`. out_dims has structure "
            f"{tree_flatten(out_dims)[1]} but outputs has structure "
            f"{structure}."
        )
    columns = zip(*[leaves for leaves, _ in flat], strict=True)
    made = [
        column[0] if dim is None else _stack(column, dim, func)
        for column, dim in zip(columns, dims, strict=True)
    ]
    return tree_unflatten(made, structure)


def _stack(column: tuple[Any, ...], dim: int, func: Any) -> Tensor:
    if not isinstance(column[0], Tensor):
        raise ValueError(
            f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type "
            f"{type(column[0])}. Did you mean to set out_dims= to None for output?"
        )
    made: Tensor = T.stack(column, dim)
    return made
