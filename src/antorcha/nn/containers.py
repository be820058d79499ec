"""Containers: Container, Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from antorcha.errors import ArgumentError, OutOfRange, ShapeError, ValueRangeError, warn
from antorcha.nn.module import Module
from antorcha.nn.parameter import Parameter
from antorcha.nn.words import indented, typename
from antorcha.runtime.tensor import Tensor


def _position(index: Any, length: int) -> int:
    """An index, negative ones counted from the end, checked."""
    at = operator.index(index)
    if not -length <= at < length:
        raise OutOfRange(f"index {at} is out of range")
    return at % length


class Container(Module):
    """The oldest container: its keyword arguments are its children. Deprecated in PyTorch.

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html.

    >>> torch.nn.Container(act=torch.nn.ReLU())
    Container(
      (act): ReLU()
    )
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        warn(
            "nn.Container is deprecated. All of it's functionality is now implemented in "
            "nn.Module. Subclass that instead.",
            FutureWarning,
        )
        for name, module in kwargs.items():
            self.add_module(name, module)


class Sequential(Module):
    """Runs modules one after the other, each on what the one before gave.

    Args:
        *args: the modules, or one OrderedDict of named modules

    >>> torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
    )
    """

    _modules: dict[str, Any]

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for key, module in args[0].items():
                self.add_module(key, module)
        else:
            for k, module in enumerate(args):
                self.add_module(str(k), module)

    def forward(self, input: Any) -> Any:
        """Runs the modules in order."""
        for module in self._modules.values():
            input = module(input)
        return input

    def _key(self, index: Any) -> str:
        return list(self._modules)[_position(index, len(self))]

    def _renumber(self, modules: Iterable[Module]) -> None:
        self._modules = {str(k): m for k, m in enumerate(modules)}

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._key(index)]

    def __setitem__(self, index: Any, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index: Any) -> None:
        keys = list(self._modules)
        for key in keys[index] if isinstance(index, slice) else [self._key(index)]:
            delattr(self, key)
        self._renumber(list(self._modules.values()))

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueRangeError(
                "add operator supports only objects of Sequential class, but "
                f"{type(other)} is given."
            )
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Any:
        if not isinstance(other, Sequential):
            raise ValueRangeError(
                "add operator supports only objects of Sequential class, but "
                f"{type(other)} is given."
            )
        return self.extend(list(other))

    def __mul__(self, other: int) -> Sequential:
        self._check_times(other)
        return Sequential(*(list(self) * other))

    def __rmul__(self, other: int) -> Sequential:
        return self * other

    def __imul__(self, other: int) -> Any:
        self._check_times(other)
        return self.extend(list(self) * (other - 1))

    def _check_times(self, other: Any) -> None:
        if not isinstance(other, int):
            raise ArgumentError(
                f"unsupported operand type(s) for *: {type(self)} and {type(other)}"
            )
        if other <= 0:
            raise ValueRangeError(f"Non-positive multiplication factor {other} for {type(self)}")

    def __dir__(self) -> list[str]:
        return [n for n in super().__dir__() if not n.isdigit()]

    def append(self, module: Module) -> Any:
        """Adds a module at the end; gives the Sequential."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Puts a module before position ``index``; gives the Sequential."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self)
        if not -n <= index <= n:
            raise OutOfRange(f"Index out of range: {index}")
        modules = list(self._modules.values())
        modules.insert(index + n if index < 0 else index, module)
        self._renumber(modules)
        return self

    def extend(self, sequential: Iterable[Module]) -> Any:
        """Adds modules at the end; gives the Sequential."""
        for module in sequential:
            self.append(module)
        return self

    def pop(self, key: int | slice) -> Any:
        """Takes a module out and gives it."""
        found = self[key]
        del self[key]
        return found


class ModuleList(Module):
    """A list of modules, registered; it has no ``forward`` of its own.

    Args:
        modules (iterable, optional): what to start with

    >>> torch.nn.ModuleList([torch.nn.Linear(2, 2) for _ in range(3)])
    ModuleList(
      (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
    )
    """

    _modules: dict[str, Any]

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _key(self, index: Any) -> str:
        return str(_position(index, len(self)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._key(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self._modules.values())
        del modules[index]
        self._modules = {str(k): m for k, m in enumerate(modules)}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, modules: Iterable[Module]) -> Any:
        return self.extend(modules)

    def __repr__(self) -> str:
        if not len(self):
            return f"{self._get_name()}()"
        runs: list[list[Any]] = []  # [first, last, text]: equal neighbours are shown once
        for k, module in enumerate(self):
            text = repr(module)
            if runs and runs[-1][2] == text:
                runs[-1][1] = k
            else:
                runs.append([k, k, text])
        lines = []
        for first, last, text in runs:
            several = f"({first}-{last}): {last - first + 1} x {text}"
            lines.append(indented(several if last > first else f"({first}): {text}", 2))
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"

    def __dir__(self) -> list[str]:
        return [n for n in super().__dir__() if not n.isdigit()]

    def insert(self, index: int, module: Module) -> None:
        """Puts a module before position ``index``."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._modules = {str(k): m for k, m in enumerate(modules)}

    def append(self, module: Module) -> Any:
        """Adds a module at the end; gives the list."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: int | slice) -> Any:
        """Takes a module out and gives it."""
        found = self[key]
        del self[key]
        return found

    def extend(self, modules: Iterable[Module]) -> Any:
        """Adds modules at the end; gives the list."""
        if not isinstance(modules, Iterable):
            raise ArgumentError(
                "ModuleList.extend should be called with an iterable, but got "
                f"{type(modules).__name__}"
            )
        for module in modules:
            self.append(module)
        return self


class ModuleDict(Module):
    """A dictionary of modules, registered, in the order of insertion.

    Args:
        modules (mapping or iterable of pairs, optional): what to start with

    >>> torch.nn.ModuleDict({'act': torch.nn.ReLU()})
    ModuleDict(
      (act): ReLU()
    )
    """

    _modules: dict[str, Any]

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]  # type: ignore[no-any-return]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Takes all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Takes a module out and gives it."""
        return self._modules.pop(key)  # type: ignore[no-any-return]

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Names and modules."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Adds the pairs of a mapping or of an iterable."""
        for key, module in _pairs("ModuleDict", modules):
            self[key] = module


def _pairs(name: str, source: Any) -> list[tuple[Any, Any]]:
    if not isinstance(source, Iterable):
        raise ArgumentError(
            f"{name}.update should be called with an iterable of key/value pairs, but got "
            f"{type(source).__name__}"
        )
    if isinstance(source, (Mapping, ModuleDict, ParameterDict)):
        return list(source.items())
    pairs = []
    for k, pair in enumerate(source):
        if not isinstance(pair, Iterable):
            raise ArgumentError(
                f"{name} update sequence element #{k} should be Iterable; is {type(pair).__name__}"
            )
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueRangeError(
                f"{name} update sequence element #{k} has length {len(pair)}; 2 is required"
            )
        pairs.append(pair)
    return pairs


def _as_parameter(value: Any) -> Any:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)  # type: ignore[call-arg]
    return value


def _about(value: Any) -> str:
    """A parameter as the lists of them show it."""
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    where = "" if value._layout.device.type == "cpu" else f" ({value._layout.device})"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{kind} containing: [{typename(value)} of size {_size(value)}{where}]"


def _size(value: Tensor) -> str:
    return "x".join([str(n) for n in value._layout.shape])


class ParameterList(Module):
    """A list whose tensors are registered as parameters (other values are kept as they are).

    Args:
        values (iterable, optional): what to start with

    >>> torch.nn.ParameterList([torch.zeros(2), torch.zeros(2, 3)])
    ParameterList(
        (0): Parameter containing: [torch.float32 of size 2]
        (1): Parameter containing: [torch.float32 of size 2x3]
    )
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _key(self, index: Any) -> str:
        return str(_position(index, len(self)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([self[k] for k in range(len(self))[index]])
        return getattr(self, self._key(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._key(index), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[k] for k in range(len(self))])

    def __iadd__(self, values: Iterable[Any]) -> Any:
        return self.extend(values)

    def __dir__(self) -> list[str]:
        return [n for n in super().__dir__() if not n.isdigit()]

    def append(self, value: Any) -> Any:
        """Adds a value at the end; gives the list."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Any:
        """Adds values at the end; gives the list."""
        listed: Any = values
        if not isinstance(listed, Iterable) or isinstance(listed, Tensor):
            raise ArgumentError(
                "ParameterList.extend should be called with an iterable, but got "
                f"{type(values).__name__}"
            )
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        lines = [f"  ({k}): {_list_line(v)}" for k, v in enumerate(self)]
        return "\n".join(lines)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise ShapeError("ParameterList should not be called.")


def _list_line(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    where = "" if value._layout.device.type == "cpu" else f" ({value._layout.device})"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{kind} containing: [{value._layout.dtype} of size {_size(value)}{where}]"


class ParameterDict(Module):
    """A dictionary whose tensors are registered as parameters, in the order of insertion.

    Args:
        parameters (mapping or iterable of pairs, optional): what to start with

    >>> torch.nn.ParameterDict({'scale': torch.ones(1)})['scale'].requires_grad
    True
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _attr(self, key: Any) -> str:
        if not isinstance(key, str):
            raise ArgumentError(
                "Index given to ParameterDict cannot be used as a key as it is not a string "
                f"(type is '{type(key).__name__}'). Open an issue on github if you need non-string "
                "keys."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, self._attr(key))

    def __setitem__(self, key: str, value: Any) -> None:
        name = self._attr(key)
        self._keys[key] = None
        setattr(self, name, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._attr(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __or__(self, other: ParameterDict) -> ParameterDict:
        result = self.copy()
        result.update(other)
        return result

    def __ior__(self, other: ParameterDict) -> Any:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """Another dictionary of the same parameters."""
        return ParameterDict(OrderedDict((k, self[k]) for k in self._keys))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value under ``key``, which becomes ``default`` if there is none."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Takes all values out."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Takes a value out and gives it."""
        found = self[key]
        del self[key]
        return found

    def popitem(self) -> tuple[str, Any]:
        """Takes the last pair out and gives it."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value under ``key``, or ``default``."""
        return getattr(self, key) if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new dictionary with these keys, all with the value ``default``."""
        return ParameterDict((k, default) for k in keys)

    def keys(self) -> Any:
        """The names."""
        return self._keys.keys()

    def items(self) -> Any:
        """Names and values."""
        return [(k, self[k]) for k in self._keys]

    def values(self) -> Any:
        """The values."""
        return [self[k] for k in self._keys]

    def update(self, parameters: Any) -> None:
        """Adds the pairs of a mapping or of an iterable."""
        for key, value in _pairs("ParameterDict", parameters):
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join([f"  ({k}): {_about(v)}" for k, v in self.items()])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise ShapeError("ParameterDict should not be called.")
