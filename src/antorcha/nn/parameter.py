"""Parameters and buffers: the tensors that a Module counts as its own.

The class Parameter is the runtime's (a Tensor subclass without fields of its own); this file gives
it its constructor. A Buffer is a plain tensor that carries a mark.
"""

from __future__ import annotations

from typing import Any

from antorcha.errors import ArgumentError, GraphError, MissingFeature, explain_missing
from antorcha.ops.record import T
from antorcha.runtime.tensor import Parameter, Tensor, new

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter"]


def _new_parameter(cls: type, data: Any = None, requires_grad: bool = True) -> Parameter:
    """A parameter that shares the elements of ``data`` (an empty one without it)."""
    if data is None:
        data = T.empty(0)
    elif not isinstance(data, Tensor):
        raise ArgumentError(
            f"Parameter: data must be a Tensor, not {type(data).__name__}: "
            "write Parameter(torch.tensor(...))"
        )
    elif type(data) is not Tensor and type(data) is not Parameter:
        return _marked(data, requires_grad)  # type: ignore[no-any-return]
    made: Parameter = new(cls)
    made._layout, made._storage, made._offset = data._layout, data._storage, data._offset
    made._rg, made._fn, made._nr = False, None, 0
    made._grad = made._base = made._extra = None
    if requires_grad:
        made.requires_grad_(True)  # checks the dtype
    return made


def add_parameter(
    module: Any, name: str, shape: Any, device: Any, dtype: Any, wanted: bool = True
) -> None:
    """Gives a module a parameter, whose elements are still to be set; None where none is wanted."""
    if wanted:
        empty = T.empty(shape, device=device, dtype=dtype)
        setattr(module, name, Parameter(empty))  # type: ignore[call-arg]
    else:
        module.register_parameter(name, None)


def _marked(data: Any, requires_grad: bool) -> Any:
    """Of a subclass of Tensor: an instance of that class, which carries a mark."""
    made = data.detach()
    if type(made) is not type(data):
        raise GraphError(
            f"Parameter: Creating a Parameter from an instance of type {type(data).__name__} "
            "requires that detach() returns an instance of the same type, but return type "
            f"{type(made).__name__} was found instead."
        )
    made.requires_grad_(requires_grad)
    made._is_param = True
    return made


Parameter.__new__ = staticmethod(_new_parameter)  # type: ignore[assignment]
Parameter.__module__ = __name__  # where pickle finds it
Parameter.__doc__ = """A tensor that is a module's parameter.

Assigned as an attribute of a :class:`Module` it appears among ``parameters()``, and so an
optimizer trains it.

Args:
    data (Tensor): the elements (shared, not copied)
    requires_grad (bool): does it want a gradient? Default: True

See https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.Parameter.html.

>>> torch.nn.Parameter(torch.zeros(2))
Parameter containing:
tensor([0., 0.], requires_grad=True)
"""


class _BufferType(type):
    """Makes ``isinstance(tensor, Buffer)`` look at the mark."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return is_buffer(instance)


class Buffer(metaclass=_BufferType):
    """A tensor that, assigned as a module's attribute, becomes one of its buffers.

    A buffer is part of the module's state (it moves with ``to`` and is saved when ``persistent``)
    but is no parameter.

    Args:
        data (Tensor): the elements (shared)
        persistent (bool): is it part of the ``state_dict``? Default: True

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.Buffer.html.

    >>> m = torch.nn.Module()
    >>> m.mean = torch.nn.Buffer(torch.zeros(1))
    >>> list(m.state_dict().items())
    [('mean', tensor([0.]))]
    """

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = T.empty(0)
        made = data.detach().requires_grad_(data.requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made


class _Uninitialized:
    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise MissingFeature(
            f"{cls.__name__}: tensors without a shape (lazy modules) are not supported; "
            "give the layer its sizes"
        )


class UninitializedParameter(_Uninitialized):
    """Lazy parameters are not supported: making one raises NotImplementedError."""


class UninitializedBuffer(_Uninitialized):
    """Lazy buffers are not supported: making one raises NotImplementedError."""


def is_buffer(value: Any) -> bool:
    """Is it a tensor that carries Buffer's mark?"""
    return isinstance(value, Tensor) and getattr(value, "_is_buffer", False)


def is_lazy(param: Any) -> bool:
    """Is it a parameter without a shape yet? Never, here."""
    return False


explain_missing("torch.nn.parameter", globals())
