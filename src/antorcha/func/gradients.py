"""Functions made of functions: their gradients, products with Jacobians, Jacobians, Hessians.

A transform runs the function on variables of its own. Where an argument already has a history (an
outer transform's, or a caller's ``requires_grad``) the variable continues it, so transforms nest;
else it is a fresh leaf. Results stay in the graph only as far as it leads to somebody else's leaf.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from antorcha.autograd import grad as _autograd_grad
from antorcha.autograd.modes import enable_grad, is_grad_enabled
from antorcha.errors import GraphError
from antorcha.func.vmap import vmap
from antorcha.ops.kinds.record import T
from antorcha.random import get_all_states, set_all_states
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.batched import for_each_example, recorded
from antorcha.utils._pytree import tree_flatten, tree_map, tree_unflatten

Argnums = int | tuple[int, ...]


class _Level:
    """One transform's variables."""

    def __init__(self) -> None:
        self.outer = is_grad_enabled()
        self.leaves: list[Tensor] = []

    def variables(self, values: Any) -> Any:
        """The tree with its tensors as variables of this level."""
        return tree_map(self._variable, values)

    def _variable(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        value = for_each_example(value)
        if value.requires_grad and self.outer:
            return T.alias(value)
        result = value.detach().requires_grad_()
        self.leaves.append(recorded(result))
        return result

    def results(self, values: Any) -> Any:
        """The tree with its tensors outside of the graph, unless others than this level's variables
        are behind them."""
        return tree_map(self._result, values)

    def _result(self, value: Any) -> Any:
        if not isinstance(value, Tensor) or not value.requires_grad:
            return value
        return value if self.outer and _leads_elsewhere(value, self.leaves) else value.detach()


def _leads_elsewhere(value: Tensor, own: list[Tensor]) -> bool:
    """Does the history of ``value`` reach a leaf that is none of ``own``?"""
    if value.grad_fn is None:
        return all([recorded(value) is not leaf for leaf in own])
    seen, todo = set(), [value.grad_fn]
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None and all([leaf is not each for each in own]):
            return True
        todo += [inner for inner, _ in node.next_functions if inner is not None]
    return False


def _gradients(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], vectors: Any = None,
    create_graph: bool = True,
) -> list[Tensor]:  # fmt: skip
    """Vector-Jacobian products, zeros for what the outputs do not depend on."""
    given = [None] * len(outputs) if vectors is None else vectors
    pairs = [(o, v) for o, v in zip(outputs, given, strict=True) if o.requires_grad]
    if not pairs or not inputs:
        return [T.zeros_like(x) for x in inputs]
    found = _autograd_grad(
        [o for o, _ in pairs], inputs, [v for _, v in pairs], retain_graph=True,
        create_graph=create_graph, allow_unused=True,
    )  # fmt: skip
    return [T.zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True)]


def _places(argnums: Any, count: int) -> Argnums:
    """``argnums`` checked, none of them negative."""
    if not isinstance(argnums, (int, tuple)):
        raise GraphError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if isinstance(argnums, int):
        if not -count <= argnums < count:
            raise GraphError(f"Got argnum={argnums}, but only {count} positional inputs")
        return argnums % count
    if not argnums:
        raise GraphError("argnums must be non-empty")
    for each in argnums:
        if not isinstance(each, int):
            raise GraphError(f"argnum must be int, got: {type(each)}")
    places = tuple([_places(each, count) for each in argnums])
    if len(set(places)) != len(places):
        raise GraphError(f"argnums elements must be unique, got {places}")
    return places  # type: ignore[return-value]


def _with_variables(level: _Level, args: tuple[Any, ...], argnums: Argnums) -> tuple[Any, Any]:
    """The arguments with variables at ``argnums``; those variables (a tuple for a tuple)."""
    places = argnums if isinstance(argnums, tuple) else (argnums,)
    changed = list(args)
    for place in places:
        changed[place] = level.variables(args[place])
    chosen = tuple([changed[place] for place in places])
    _check_tensors(tree_flatten(chosen)[0])
    return tuple(changed), chosen if isinstance(argnums, tuple) else chosen[0]


def _split_aux(output: Any, what: str, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise GraphError(
            f"{what}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return output


# -------------------------------------------------------------------------------------------- grad
def grad_and_value(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives (gradients, value) of ``func``, which gives one number.

    Args:
        func (Callable): a function of tensors, or of nested tuples, lists and dicts of them; its
            result is a tensor of shape ()
        argnums (int or tuple of int): by which positional arguments to differentiate. Default: 0
        has_aux (bool): does ``func`` give ``(value, aux)``? Then the result is
            ``(gradients, (value, aux))``. Default: False

    See https://docs.pytorch.org/docs/stable/generated/torch.func.grad_and_value.html.

    >>> torch.func.grad_and_value(lambda x: (x ** 2).sum())(torch.tensor([1., 3.]))
    (tensor([2., 6.]), tensor(10.))
    """
    name = "grad_and_value(f)(*args)"

    @_named_like(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        level = _Level()
        with enable_grad():
            given, chosen = _with_variables(level, args, _places(argnums, len(args)))
            output, aux = _split_aux(func(*given, **kwargs), name, has_aux)
            if not isinstance(output, Tensor):
                raise GraphError(
                    f"{name}: Expected f(*args) to return a Tensor, got {type(output)}"
                )
            if output.dim() != 0:
                raise GraphError(
                    f"{name}: Expected f(*args) to return a scalar Tensor, got tensor with "
                    f"{output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            leaves, structure = tree_flatten(chosen)
            result = tree_unflatten(_gradients([output], leaves), structure)
            result, output, aux = level.results(result), level.results(output), level.results(aux)
        return (result, (output, aux)) if has_aux else (result, output)

    return wrapper


def grad(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the gradients of ``func``, which gives one number.

    Args:
        func (Callable): a function of tensors, or of nested tuples, lists and dicts of them; its
            result is a tensor of shape ()
        argnums (int or tuple of int): by which positional arguments to differentiate; gradients
            have the structure of that argument, a tuple of them for a tuple. Default: 0
        has_aux (bool): does ``func`` give ``(value, aux)``? Then so does the result:
            ``(gradients, aux)``. Default: False

    It nests, and inside of it ``.backward()`` has no business.
    See https://docs.pytorch.org/docs/stable/generated/torch.func.grad.html.

    >>> torch.func.grad(torch.func.grad(torch.sin))(torch.tensor(0.5))
    tensor(-0.4794)
    """
    both = grad_and_value(func, argnums, has_aux)

    @_named_like(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        result, value = both(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    return wrapper


def _named_like(func: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return functools.wraps(func) if hasattr(func, "__name__") else lambda wrapper: wrapper


def _check_tensors(leaves: list[Any]) -> None:
    for each in leaves:
        if not isinstance(each, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(each)}")


# --------------------------------------------------------------------------------------------- vjp
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """``(func(*primals), fn)``, where ``fn(cotangents)`` gives their product with the Jacobian.

    Args:
        func (Callable): a function of tensors (or trees of them) to tensors
        primals (Tensors): where it is evaluated
        has_aux (bool): does ``func`` give ``(output, aux)``? Then ``aux`` is a third result.

    ``fn`` takes cotangents of the output's structure, and gives a tuple: a product for each primal.
    See https://docs.pytorch.org/docs/stable/generated/torch.func.vjp.html.

    >>> value, fn = torch.func.vjp(lambda x: x * x, torch.tensor([1., 2.]))
    >>> fn(torch.ones(2))
    (tensor([2., 4.]),)
    """
    output, fn, aux = _pullback(func, primals, None, has_aux)
    return (output, fn, aux) if has_aux else (output, fn)


def _pullback(
    func: Callable[..., Any], args: tuple[Any, ...], argnums: Argnums | None, has_aux: bool,
    kwargs: Any = None,
) -> tuple[Any, Callable[..., Any], Any]:  # fmt: skip
    """Output, pullback and aux. ``argnums`` None: by all arguments."""
    level = _Level()
    with enable_grad():
        if argnums is None:
            given = chosen = level.variables(args)
            _check_tensors(tree_flatten(args)[0])
        else:
            given, chosen = _with_variables(level, args, argnums)
        output, aux = _split_aux(func(*given, **(kwargs or {})), "vjp(f, *primals)", has_aux)
        leaves, structure = tree_flatten(chosen)
        outputs, shape_of_output = tree_flatten(output)
        _check_outputs(outputs, output)
        shown_output, aux = level.results(output), level.results(aux)

    def fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        vectors, found = tree_flatten(cotangents)
        if found != shape_of_output:
            raise GraphError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {found}, primal output: "
                f"{shape_of_output}"
            )
        create = is_grad_enabled() if create_graph is None else create_graph
        result = _gradients(outputs, leaves, vectors, create)
        return tree_unflatten([level._result(g) for g in result], structure)

    return shown_output, fn, aux


def _check_outputs(outputs: list[Any], output: Any) -> None:
    name = "vjp(f, *primals)"
    if not outputs:
        raise GraphError(
            f"{name}: Expected f to be a function that has non-empty output (got output = {output})"
        )
    for each in outputs:
        if not isinstance(each, Tensor):
            raise GraphError(
                f"{name}: expected f(*primals) to return only tensors, got unsupported type "
                f"{type(each)}"
            )
        if each.dtype.kind not in "fc":
            raise GraphError(
                "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got "
                f"Tensor with dtype {each.dtype}"
            )


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    """``(func(*primals), product of its Jacobian with the tangents)``.

    Args:
        func (Callable): a function of tensors (or trees of them) to tensors
        primals (tuple): where it is evaluated
        tangents (tuple): the vectors, of the primals' structure
        strict (bool): accepted; a result that does not depend on the primals has the product 0
        has_aux (bool): does ``func`` give ``(output, aux)``? Then ``aux`` is a third result.

    Found by differentiating twice in reverse: ``u -> vjp(u)`` is linear, and its own product with
    the tangents is the one that is looked for.
    See https://docs.pytorch.org/docs/stable/generated/torch.func.jvp.html.

    >>> torch.func.jvp(torch.sin, (torch.tensor(0.),), (torch.tensor(2.),))
    (tensor(0.), tensor(2.))
    """
    if not isinstance(primals, tuple):
        raise GraphError(
            "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to "
            "call f(*primals)."
        )
    output, push, aux = _pushforward(func, primals, tangents, has_aux)
    return (output, push, aux) if has_aux else (output, push)


def _pushforward(
    func: Callable[..., Any], primals: tuple[Any, ...], tangents: Any, has_aux: bool
) -> tuple[Any, Any, Any]:
    vectors, found = tree_flatten(tangents)
    structure = tree_flatten(primals)[1]
    if found != structure:
        raise GraphError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python "
            "structure. For example, if primals is a tuple of 3 tensors, tangents also must be. "
            f"Got primals with structure {structure} and tangents with structure "
            f"{found}"
        )
    level = _Level()
    with enable_grad():
        variables = level.variables(primals)
        output, aux = _split_aux(func(*variables), "jvp(f, primals, tangents)", has_aux)
        outputs, shape_of_output = tree_flatten(output)
        dummies = [for_each_example(T.zeros_like(out)).requires_grad_() for out in outputs]
        level.leaves += [recorded(each) for each in dummies]
        first = _gradients(outputs, tree_flatten(variables)[0], dummies)
        result = _gradients(first, dummies, vectors)
        push = tree_unflatten([level._result(each) for each in result], shape_of_output)
        return level.results(output), push, level.results(aux)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """``(func(*primals), fn)``, where ``fn(*tangents)`` gives the Jacobian's product with them.

    See https://docs.pytorch.org/docs/stable/generated/torch.func.linearize.html.

    >>> value, fn = torch.func.linearize(lambda x: x ** 2, torch.tensor([1., 2.]))
    >>> fn(torch.ones(2))
    tensor([2., 4.])
    """

    def fn(*tangents: Any) -> Any:
        return _pushforward(func, primals, tangents, False)[1]

    return _Level().results(func(*primals)), fn


# ---------------------------------------------------------------------------------------- jacobian
def jacrev(
    func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False,
    chunk_size: int | None = None, _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """A function that gives the Jacobian of ``func``: a backward pass for each output element.

    Args:
        func (Callable): a function of real tensors (or trees of them) to real tensors
        argnums (int or tuple of int): by which positional arguments to differentiate. Default: 0
        has_aux (bool): does ``func`` give ``(output, aux)``? Then so does the result.
        chunk_size (int, optional): how many passes run at once. Default: all

    The passes are one batch, of which ``func`` is run once more. The result has the structure of
    the output, in each place that of the arguments, in each of those a tensor of shape (output's,
    argument's).
    See https://docs.pytorch.org/docs/stable/generated/torch.func.jacrev.html.

    >>> torch.func.jacrev(torch.square)(torch.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @_named_like(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        places = _places(argnums, len(args))
        before = get_all_states()
        output, fn, aux = _pullback(func, args, places, has_aux, kwargs)
        outputs, shape_of_output = tree_flatten(output)
        _refuse_complex("jacrev", "outputs", outputs)

        def again(cotangents: Any) -> Any:
            set_all_states(before)
            return _pullback(func, args, places, has_aux, kwargs)[1](cotangents)

        rows = [
            _rows(fn if out.numel() < _FEW else again, outputs, k, shape_of_output, chunk_size)
            for k, out in enumerate(outputs)
        ]
        result = tree_unflatten(rows, shape_of_output)
        return (result, aux) if has_aux else result

    return wrapper


_FEW = 3  # passes that are run one by one


def _rows(
    fn: Callable[..., Any], outputs: list[Tensor], at: int, structure: Any, chunk_size: int | None
) -> Any:
    """The Jacobian of one output, a tree like the arguments: a backward pass for each element of
    the output, as one batch of them."""
    out = outputs[at]
    count = out.numel()

    def row(unit: Tensor) -> Any:
        seeds = [T.zeros_like(each) for each in outputs]
        seeds[at] = unit
        return fn(tree_unflatten(seeds, structure))

    units = T.eye(max(count, 1), count, dtype=out.dtype, device=out.device)
    units = T.reshape(units, (max(count, 1), *out.shape))  # (of no elements: once, for the trees)
    passes = vmap(row, randomness="same", chunk_size=chunk_size)(units)
    return tree_map(lambda t: T.reshape(t[:count], (*out.shape, *t.shape[1:])), passes)


def _refuse_complex(name: str, what: str, values: list[Any]) -> None:
    for k, each in enumerate(values):
        if isinstance(each, Tensor) and each.dtype.is_complex:
            raise GraphError(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened "
                f"input idx: {k}"
            )


def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *,
    chunk_size: int | None = None, randomness: str = "error",
) -> Callable[..., Any]:  # fmt: skip
    """The Jacobian, as :func:`jacrev` gives it: forward mode's numbers, found in reverse.

    Args:
        func (Callable): a function of real tensors (or trees of them) to real tensors
        argnums (int or tuple of int): by which positional arguments to differentiate. Default: 0
        has_aux (bool): does ``func`` give ``(output, aux)``? Then so does the result.
        chunk_size (int, optional): how many passes run at once. Default: all
        randomness (str): accepted; the function is run once

    See https://docs.pytorch.org/docs/stable/generated/torch.func.jacfwd.html.

    >>> torch.func.jacfwd(torch.square)(torch.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    return jacrev(func, argnums, has_aux=has_aux, chunk_size=chunk_size)


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that gives the Hessian of ``func``: the Jacobian of its Jacobian, both in reverse.

    Args:
        func (Callable): a function of tensors (or trees of them) to tensors
        argnums (int or tuple of int): by which positional arguments to differentiate. Default: 0

    See https://docs.pytorch.org/docs/stable/generated/torch.func.hessian.html.

    >>> torch.func.hessian(lambda x: (x ** 3).sum())(torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacrev(jacrev(func, argnums), argnums)
