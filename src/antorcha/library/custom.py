"""``custom_op``: a Python function as an operator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from antorcha.errors import GraphError, MissingFeature
from antorcha.library.operators import PythonOverload, define, forget, lookup
from antorcha.library.schema import infer_schema, parse_schema

_defined: dict[str, CustomOpDef] = {}


class CustomOpDef:
    """What :func:`custom_op` gives: an operator, to which more can be registered."""

    def __init__(self, namespace: str, name: str, text: str, fn: Callable[..., Any]) -> None:
        self._namespace, self._name, self._init_fn = namespace, name, fn
        self.__name__, self.__doc__ = name, fn.__doc__
        schema = parse_schema(name + text)
        before = _defined.get(self._qualname)
        if before is not None:
            forget(before._opoverload)  # (a notebook's cell that is run again)
        self._opoverload: PythonOverload = define(namespace, schema)
        self._opoverload.is_functional, self._opoverload.shown = True, self
        _defined[self._qualname] = self
        self._disabled: set[str] = set()

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def register_kernel(self, device_types: Any, fn: Any = None, /) -> Any:
        """Registers another implementation for one device type, several, or all (None).

        >>> @torch.library.custom_op("docs::twice", mutates_args=())
        ... def twice(x: torch.Tensor) -> torch.Tensor:
        ...     return x * 2
        >>> @twice.register_kernel("cpu")
        ... def _(x):
        ...     return x + x
        >>> twice(torch.ones(2))
        tensor([2., 2.])
        """

        def register(fn: Callable[..., Any]) -> Callable[..., Any]:
            for device in _devices(device_types):
                self._opoverload.kernels[device] = fn
            return fn

        return register if fn is None else register(fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Registers what gives results of the right shape and dtype for tensors without data.

        >>> @torch.library.custom_op("docs::thrice", mutates_args=())
        ... def thrice(x: torch.Tensor) -> torch.Tensor:
        ...     return x * 3
        >>> @thrice.register_fake
        ... def _(x):
        ...     return torch.empty_like(x)
        >>> thrice(torch.ones(2, device='meta')).shape
        torch.Size([2])
        """
        self._opoverload.fake = fn
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Registers the derivative; see :func:`torch.library.register_autograd`."""
        register_autograd(self._opoverload, backward, setup_context)

    def register_vmap(self, func: Any = None) -> Any:
        """Accepted: ``vmap`` runs the operator on one example after another."""
        return func if func is not None else lambda fn: fn

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Any = None, /) -> Any:
        """Not supported: raises NotImplementedError."""
        raise MissingFeature("torch.library.register_torch_dispatch is not supported")

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Not supported: raises NotImplementedError."""
        raise MissingFeature("torch.library.register_autocast is not supported")


def register_autograd(
    op: PythonOverload, backward: Callable[..., Any], setup_context: Callable[..., Any] | None
) -> None:
    """Gives an operator its derivative."""
    if op.schema.is_mutable:
        raise GraphError(
            f"Cannot register autograd formula for non-functional operator {op.shown} with schema "
            f"{op.schema}. Please create a functional operator and register an autograd formula "
            "for that."
        )
    op.backward, op.setup_context = backward, setup_context


def _devices(device_types: Any) -> list[str]:
    if device_types is None:
        return ["default"]
    return [device_types] if isinstance(device_types, str) else list(device_types)


def custom_op(
    name: str, fn: Any = None, /, *, mutates_args: str | Iterable[str], device_types: Any = None,
    schema: str | None = None, tags: Any = None,
) -> Any:  # fmt: skip
    """Decorates a function with type hints as the operator ``torch.ops.<namespace>.<name>``.

    Args:
        name (str): ``"namespace::name"``
        fn (Callable): the function, where this is not used as a decorator
        mutates_args (iterable of str, or "unknown"): the names of the tensors that it changes
        device_types (str, sequence of str, or None): for which devices it is; None: all
        schema (str, optional): ``"(Tensor x) -> Tensor"``, instead of the type hints
        tags: accepted

    Inside, nothing is recorded: to be differentiated an operator needs a derivative of its own,
    ``register_autograd``. Its results must be new tensors.
    See https://docs.pytorch.org/docs/stable/library.html#torch.library.custom_op.

    >>> @torch.library.custom_op("docs::scaled", mutates_args=())
    ... def scaled(x: torch.Tensor, by: float = 2.0) -> torch.Tensor:
    ...     return x * by
    >>> def backward(ctx, grad):
    ...     return grad * ctx.by, None
    >>> def setup_context(ctx, inputs, output):
    ...     ctx.by = inputs[1]
    >>> scaled.register_autograd(backward, setup_context=setup_context)
    >>> x = torch.ones(2, requires_grad=True)
    >>> scaled(x, 3.0).sum().backward()
    >>> x.grad, torch.ops.docs.scaled(x.detach())
    (tensor([3., 3.]), tensor([2., 2.]))
    """

    def inner(fn: Callable[..., Any]) -> CustomOpDef:
        text = infer_schema(fn, mutates_args=mutates_args) if schema is None else schema
        namespace, colons, short = name.partition("::")
        if not colons:
            raise ValueError(
                f"custom_op: the name must have the form 'namespace::name', got {name!r}"
            )
        if "." in short:
            raise ValueError(f"custom_op: an overload ({name!r}) cannot be defined this way")
        result = CustomOpDef(namespace, short, text, fn)
        result.register_kernel(device_types, fn)
        return result

    return inner if fn is None else inner(fn)


def overload_behind(op: Any) -> PythonOverload:
    """The operator that a name, an overload or a CustomOpDef means."""
    if isinstance(op, CustomOpDef):
        return op._opoverload
    if isinstance(op, PythonOverload):
        return op
    if not isinstance(op, str):
        raise ValueError(f"expected an operator or its name, got {type(op)}")
    return lookup(op)
