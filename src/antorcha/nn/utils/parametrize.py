"""``torch.nn.utils.parametrize``: parameters computed from others each time they are used.

A parametrized module gets a class of its own, with a property in the parameter's place. What the
parameter is computed from stays in ``module.parametrizations.<name>`` as ``original``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from antorcha.autograd import no_grad
from antorcha.errors import ShapeError, ValueRangeError
from antorcha.nn.containers import ModuleDict, ModuleList
from antorcha.nn.module import Module
from antorcha.nn.parameter import Parameter
from antorcha.runtime.tensor import Tensor

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization",
    "remove_parametrizations", "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]  # fmt: skip

_depth = 0
_cache: dict[tuple[int, str], Any] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Inside, a parametrized parameter is computed once and kept: for a recurrent layer's loop.

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrize.cached.html.
    """
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if not _depth:
            _cache.clear()


def _register(module: Module, name: str, tensor: Any) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and what it is computed from: ``original``, or
    ``original0``, ``original1``, .. where the first one's ``right_inverse`` gives several tensors.

    :func:`register_parametrization` makes it.
    """

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        if not modules:
            raise ValueRangeError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        new = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):  # then the identity is taken
                        new = module.right_inverse(new)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueRangeError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if isinstance(new, Tensor) else len(new)
        if isinstance(new, Tensor):
            self._take_one(original, new)
        else:
            self._take_several(original, new)
        if not unsafe:
            result = self()
            if not isinstance(result, Tensor):
                raise ValueRangeError(
                    f"A parametrization must return a tensor. Got {type(result).__name__}."
                )
            _unchanged("Registering a parametrization", dtype, shape, result)

    def _take_one(self, original: Any, new: Any) -> None:
        for what in ("dtype", "device"):
            if getattr(original, what) != getattr(new, what):
                raise ValueRangeError(
                    f"When `right_inverse` outputs one tensor, it may not change the {what}.\n"
                    f"original.{what}: {getattr(original, what)}\n"
                    f"right_inverse(original).{what}: {getattr(new, what)}"
                )
        original.data = new.detach()
        _register(self, "original", original)

    def _take_several(self, original: Any, new: Sequence[Any]) -> None:
        for k, each in enumerate(new):
            if not isinstance(each, Tensor):
                raise ValueRangeError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                    f"tuple...). Got element {k} of the sequence with type {type(each).__name__}."
                )
            if isinstance(original, Parameter):
                each = Parameter(each, requires_grad=original._rg)  # type: ignore[call-arg]
            each.requires_grad_(original._rg)
            _register(self, f"original{k}", each)

    def right_inverse(self, value: Any) -> None:
        """Sets what the tensor is computed from so that it becomes ``value``."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise ShapeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, Tensor):
                    raise ValueRangeError(
                        f"`right_inverse` should return a tensor. Got {type(value).__name__}"
                    )
                names, values = ["original"], [value]
            else:
                if not isinstance(value, Sequence):
                    raise ValueRangeError(
                        "'right_inverse' must return a sequence of tensors. "
                        f"Got {type(value).__name__}."
                    )
                if len(value) != self.ntensors:
                    raise ValueRangeError(
                        "'right_inverse' must return a sequence of tensors of length "
                        f"{self.ntensors}. Got a sequence of length {len(value)}."
                    )
                names, values = [f"original{k}" for k in range(self.ntensors)], list(value)
            for name, new in zip(names, values, strict=True):
                own = getattr(self, name)
                if own.dtype != new.dtype:
                    raise ValueRangeError(
                        f"The tensor returned by `right_inverse` has dtype {new.dtype} while "
                        f"`{name}` has dtype {own.dtype}"
                    )
                own.data = new.detach()

    def forward(self) -> Any:
        """The tensor."""
        if self.is_tensor:
            value = self[0](self.original)
        else:
            value = self[0](*[getattr(self, f"original{k}") for k in range(self.ntensors)])
        for k in range(1, len(self)):
            value = self[k](value)
        return value


def _unchanged(what: str, dtype: Any, shape: Any, result: Any) -> None:
    """Raises where a parametrization changes the tensor's dtype or shape."""
    for name, old, new in (("dtype", dtype, result.dtype), ("shape", shape, result.shape)):
        if old != new:
            raise ValueRangeError(
                f"{what} may not change the {name} of the tensor, unless `unsafe` flag is "
                f"enabled.\nunparametrized {name}: {old}\nparametrized {name}: {new}"
            )


def _own_class(module: Module) -> None:
    """Gives the module a class of its own, which can have properties of its own."""
    base = type(module)

    def no_state(self: Any) -> Any:
        raise ShapeError(
            "Serialization of parametrized modules is only supported through state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
            "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    def copied(self: Any, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            result = memo[id(self)] = object.__new__(type(self))
            result.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return memo[id(self)]

    members: dict[str, Any] = {"__getstate__": no_state}
    if not hasattr(base, "__deepcopy__"):
        members["__deepcopy__"] = copied
    module.__class__ = type(f"Parametrized{base.__name__}", (base,), members)


def _property(module: Module, name: str) -> None:
    def get(self: Any) -> Any:
        if not _depth:
            return self.parametrizations[name]()
        key = id(self), name
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def put(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, put))


def register_parametrization(
    module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False
) -> Any:
    """From now on ``module.<tensor_name>`` is what ``parametrization`` makes of the tensor.

    Args:
        module (Module): whose parameter or buffer it is
        tensor_name (str): its name
        parametrization (Module): computes it; its ``right_inverse``, if it has one, says from what
            an assigned value is computed. A second one is applied to the first one's result
        unsafe (bool): may it change the tensor's dtype and shape? Default: False

    See
    https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrize.register_parametrization.html.

    >>> class Symmetric(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> import antorcha.nn.utils.parametrize as P
    >>> m = P.register_parametrization(torch.nn.Linear(3, 3), 'weight', Symmetric())
    >>> torch.equal(m.weight, m.weight.T)
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_another(module, tensor_name, parametrization)
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        result = ParametrizationList([parametrization], original, unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _own_class(module)
            module.parametrizations = ModuleDict()
        _property(module, tensor_name)
        module.parametrizations[tensor_name] = result
    else:
        raise ValueRangeError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    return module


def _check_another(module: Any, name: str, parametrization: Any) -> None:
    """One more parametrization keeps dtype and shape, and so does its inverse."""
    old = getattr(module, name)
    result = parametrization(old)
    if not isinstance(result, Tensor):
        raise ValueRangeError(
            f"A parametrization must return a tensor. Got {type(result).__name__}."
        )
    _unchanged("Registering a parametrization", old.dtype, old.shape, result)
    if hasattr(parametrization, "right_inverse"):
        try:
            back = parametrization.right_inverse(result)
        except NotImplementedError:
            return
        if not isinstance(back, Tensor):
            raise ValueRangeError(
                f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}"
            )
        _unchanged("parametrization.right_inverse", old.dtype, old.shape, back)


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Has the module parametrizations (of this tensor)?"""
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Takes a tensor's parametrizations away; it keeps the value that they gave, or goes back to
    ``original`` with ``leave_parametrized=False``.

    See
    https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrize.remove_parametrizations.html.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueRangeError(f"Module {module} does not have a parametrization on {tensor_name}")
    held = module.parametrizations[tensor_name]
    if held.is_tensor:
        original = held.original
        if leave_parametrized:
            with no_grad():
                original.data = getattr(module, tensor_name).detach()
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value  # type: ignore[call-arg]
    else:
        raise ValueRangeError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Any) -> type:
    """The class that the module had before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Any, to_module: Any, tensor_name: str | None = None
) -> Any:
    """Gives ``to_module`` the parametrizations of another (of one tensor, or all), and what the
    tensors are computed from."""
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        held = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            value = getattr(from_module, name).detach()
            setattr(to_module, name, Parameter(value))  # type: ignore[call-arg]
        for each in held:
            register_parametrization(to_module, name, each)
        result = to_module.parametrizations[name]
        for own in ["original"] if held.is_tensor else [
            f"original{k}" for k in range(held.ntensors)
        ]:  # fmt: skip
            setattr(result, own, getattr(held, own))
    return to_module
