"""Parameters and buffers: the tensors that a Module counts as its own.

The class Parameter is the runtime's (a Tensor subclass without fields of its own); this file gives
it its constructor. A Buffer is a plain tensor that carries a mark.
"""

from __future__ import annotations

import copy
from typing import Any

from antorcha.errors import ArgumentError, GraphError, ShapeError, explain_missing
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Parameter, Tensor, new
from antorcha.tensor.subclass import disabled_torch_function

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]


def _new_parameter(cls: type, data: Any = None, requires_grad: bool = True) -> Any:
    """A parameter that shares the elements of ``data`` (an empty one without it)."""
    if data is None:
        data = T.empty(0)
    elif not isinstance(data, Tensor):
        raise ArgumentError(
            f"Parameter: data must be a Tensor, not {type(data).__name__}: "
            "write Parameter(torch.tensor(...))"
        )
    elif type(data) is not Tensor and type(data) is not Parameter:
        return _marked(data, requires_grad)
    result: Any = new(cls)
    result._layout, result._storage, result._offset = data._layout, data._storage, data._offset
    result._rg, result._fn, result._nr = False, None, 0
    result._grad = result._base = result._extra = None
    if requires_grad:
        result.requires_grad_(True)  # checks the dtype
    return result


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
    result = data.detach()
    if type(result) is not type(data):
        raise GraphError(
            f"Parameter: Creating a Parameter from an instance of type {type(data).__name__} "
            "requires that detach() returns an instance of the same type, but return type "
            f"{type(result).__name__} was found instead."
        )
    result.requires_grad_(requires_grad)
    result._is_param = True
    return result


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    """A parameter with a copy of the elements, and, as PyTorch copies parameters, no gradient."""
    result = memo.get(id(self))
    if result is None:
        result = memo[id(self)] = _new_parameter(type(self), T.clone(self.detach()), self._rg)
        if self.__dict__:
            result.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return result


Parameter.__new__ = staticmethod(_new_parameter)  # type: ignore[method-assign]
Parameter.__deepcopy__ = _deepcopy  # type: ignore[method-assign]
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
        result = data.detach().requires_grad_(data.requires_grad)
        result.persistent = persistent
        result._is_buffer = True
        return result


class UninitializedTensorMixin:
    """What tensors without a shape yet share: asking for the shape is an error."""

    __slots__ = ()
    __torch_function__ = classmethod(disabled_torch_function)

    def materialize(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Gives it this shape: from now on it is a tensor like others, its elements still to be
        set."""
        device = self._layout.device if device is None else device
        dtype = self._layout.dtype if dtype is None else dtype
        self.data = T.empty(tuple(shape), device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        """There is none yet: raises RuntimeError."""
        raise ShapeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually "
            "happens in `load_state_dict` when trying to load an uninitialized parameter into an "
            "initialized one. Call `forward` to initialize the parameters before accessing their "
            "attributes."
        )

    def share_memory_(self) -> Any:
        """Raises RuntimeError."""
        raise ShapeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to "
            "initialize the parameters before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        return type(self), (self._rg, str(self._layout.device), self._layout.dtype)

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self._rg, self._layout.device, self._layout.dtype)
        return memo[id(self)]


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A parameter whose shape is not known yet: a lazy module gives it one at its first call.

    Args:
        requires_grad (bool): will it want a gradient? Default: True
        device, dtype: of the parameter to be

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.UninitializedParameter.html.

    >>> p = torch.nn.UninitializedParameter()
    >>> p
    <UninitializedParameter>
    >>> p.materialize((2, 3))
    >>> p.shape
    torch.Size([2, 3])
    """

    __slots__ = ()
    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        return _new_parameter(cls, T.empty(0, device=device, dtype=dtype), requires_grad)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):  # type: ignore[misc]
    """A buffer whose shape is not known yet: a lazy module gives it one at its first call.

    Args:
        requires_grad (bool): Default: False
        device, dtype: of the buffer to be
        persistent (bool): is it part of the ``state_dict``? Default: True

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.UninitializedBuffer.html.

    >>> torch.nn.LazyBatchNorm1d().running_mean
    <UninitializedBuffer>
    """

    __slots__ = ()
    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None,
        persistent: bool = True,
    ) -> Any:  # fmt: skip
        result: Any = _new_parameter(cls, T.empty(0, device=device, dtype=dtype), requires_grad)
        result.persistent = persistent
        result._is_buffer = True
        return result


def is_buffer(value: Any) -> bool:
    """Is it a tensor that carries Buffer's mark?"""
    return isinstance(value, Tensor) and getattr(value, "_is_buffer", False)


def is_lazy(param: Any) -> bool:
    """Is it a parameter or buffer without a shape yet?"""
    return isinstance(param, UninitializedTensorMixin)


explain_missing("torch.nn.parameter", globals())
