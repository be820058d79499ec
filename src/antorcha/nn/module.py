"""Module: the base class of layers and networks.

A module is a tree. Assigning a Parameter, a Buffer or another Module as an attribute registers it,
so that the tree's tensors can be listed, moved, saved and trained together. Registered tensors and
modules live in dictionaries (``_parameters``, ``_buffers``, ``_modules``), never in ``__dict__``.
Hooks are in ``hooks``, the state dictionary in ``state``, moves and casts in ``moving``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from antorcha.autograd import no_grad
from antorcha.core.lazy import lazy
from antorcha.errors import ArgumentError, Facts, ValueRangeError, with_facts
from antorcha.nn import hooks as H
from antorcha.nn.hooks import (  # noqa: F401  (PyTorch has them here)
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from antorcha.nn.moving import MovingMixin
from antorcha.nn.parameter import Parameter, is_buffer, is_lazy
from antorcha.nn.state import EXTRA as _EXTRA_STATE_KEY_SUFFIX  # noqa: F401  (as above)
from antorcha.nn.state import StateDictMixin, _IncompatibleKeys  # noqa: F401  (as above)
from antorcha.nn.words import indented, missing_attribute, typename
from antorcha.runtime.tensor import Tensor

compiler_eager = lazy("antorcha.compiler.eager")

_DICTS = (
    "_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)  # fmt: skip


_addindent = indented


class Module(H.Hooks, StateDictMixin, MovingMixin):
    """Base class of all neural network modules.

    Write a subclass: make the layers in ``__init__`` (after ``super().__init__()``), use them in
    ``forward``. Calling the module runs ``forward`` and its hooks.

    Attributes:
        training (bool): is it in training mode? Changed by :meth:`train` and :meth:`eval`

    >>> class Net(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.fc = torch.nn.Linear(4, 2)
    ...     def forward(self, x):
    ...         return self.fc(x).relu()
    >>> Net()
    Net(
      (fc): Linear(in_features=4, out_features=2, bias=True)
    )
    >>> Net()(torch.zeros(3, 4)).shape
    torch.Size([3, 2])
    """

    dump_patches: bool = False
    call_super_init: bool = False
    _compiled_call_impl: None = None
    training: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            name = type(self).__name__
            if kwargs:
                raise ArgumentError(
                    f"{name}.__init__() got an unexpected keyword argument {next(iter(kwargs))!r}"
                )
            raise ArgumentError(
                f"{name}.__init__() takes 1 positional argument but {len(args) + 1} were given"
            )
        fields = self.__dict__
        fields["training"] = True
        fields["_parameters"] = {}
        fields["_buffers"] = {}
        fields["_non_persistent_buffers_set"] = set()
        fields["_is_full_backward_hook"] = None
        for name in _DICTS:
            fields[name] = OrderedDict()
        fields["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # ------------------------------------------------------------------------------------ calling
    def forward(self, *input: Any) -> Any:
        """What the module computes; every subclass has its own."""
        text = f'Module [{type(self).__name__}] is missing the required "forward" function'
        raise with_facts(NotImplementedError(text), Facts("forward"))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if H.any_hooks:
            return H.call_with_hooks(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        """What calling the module does, under the name that PyTorch has for it."""
        return Module.__call__(self, *args, **kwargs)

    _wrapped_call_impl = _call_impl

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Takes the options of ``torch.compile``; the module goes on to run eagerly."""
        compiler_eager.compile_in_place(self, *args, **kwargs)

    # ---------------------------------------------------------------------------------- registering
    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter (or None, a parameter that is left out) under a name.

        >>> m = torch.nn.Module()
        >>> m.register_parameter('scale', torch.nn.Parameter(torch.ones(1)))
        >>> m.scale.shape
        torch.Size([1])
        """
        if "_parameters" not in self.__dict__:
            raise _not_ready("parameter")
        self._check_name("parameter", name, self._parameters)
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise ArgumentError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        if param._fn is not None:
            raise ValueRangeError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                f"created explicitly. To express '{name}' as a function of another Tensor, compute "
                "the value in the forward() method."
            )
        self._parameters[name] = H.registered(H.at_parameter, self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is state but no parameter, such as a running mean.

        Args:
            name (str): the attribute's name
            tensor (Tensor or None): None is a buffer that is left out
            persistent (bool): is it part of the ``state_dict``? Default: True

        >>> m = torch.nn.Module()
        >>> m.register_buffer('mean', torch.zeros(2))
        >>> m.mean
        tensor([0., 0.])
        """
        if "_buffers" not in self.__dict__:
            raise _not_ready("buffer")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise ArgumentError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        self._buffers[name] = H.registered(H.at_buffer, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a child module under a name.

        >>> m = torch.nn.Module()
        >>> m.add_module('act', torch.nn.ReLU())
        >>> m.act
        ReLU()
        """
        if not isinstance(module, Module) and module is not None:
            raise ArgumentError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = H.registered(H.at_module, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as :meth:`add_module`."""
        self.add_module(name, module)

    def _check_name(self, kind: str, name: Any, own: dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise ArgumentError(f"{kind} name should be a string. Got {typename(name)}")
        if "." in name:
            got = f", got: {name}" if kind == "module" else ""
            raise KeyError(f'{kind} name can\'t contain "."{got}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in own and (
            name in self.__dict__ or name in self._parameters or name in self._buffers
            or name in self._modules or hasattr(type(self), name)
        ):  # fmt: skip
            raise KeyError(f"attribute '{name}' already exists")

    # ----------------------------------------------------------------------------------- attributes
    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__
        found = fields.get("_parameters")
        if found is not None:
            if name in found:
                return found[name]
            found = fields["_modules"]
            if name in found:
                return found[name]
            found = fields["_buffers"]
            if name in found:
                return found[name]
        raise missing_attribute(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        fields = self.__dict__
        params = fields.get("_parameters")
        if isinstance(value, Parameter):
            self._ready("parameters")
            self._forget(name, params)
            self.register_parameter(name, value)
        elif params is not None and name in params:
            if value is not None:
                raise ArgumentError(
                    "cannot assign '{kind}' as parameter '{name}' (torch.nn.Parameter or None "
                    "expected)",
                    reason="parameter wanted", kind=typename(value), name=name,
                )  # fmt: skip
            params[name] = None
        elif isinstance(value, Module):
            self._ready("module")
            self._forget(name, fields["_modules"])
            fields["_modules"][name] = H.registered(H.at_module, self, name, value)
        elif params is not None and name in fields["_modules"]:
            if value is not None:
                raise ArgumentError(
                    f"cannot assign '{typename(value)}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            fields["_modules"][name] = None
        elif (params is not None and name in fields["_buffers"]) or is_buffer(value):
            self._set_buffer(name, value)
        else:
            object.__setattr__(self, name, value)

    def _set_buffer(self, name: str, value: Any) -> None:
        self._ready("buffer")
        if value is not None and not isinstance(value, Tensor):
            raise ArgumentError(
                f"cannot assign '{typename(value)}' as buffer '{name}' "
                "(torch.nn.Buffer, torch.Tensor or None expected)"
            )
        if is_buffer(value):
            self._forget(name, self._buffers)
            self.register_buffer(name, value, getattr(value, "persistent", True))
        else:
            self._buffers[name] = H.registered(H.at_buffer, self, name, value)

    def _ready(self, what: str) -> None:
        if "_parameters" not in self.__dict__:
            raise _not_ready(what)

    def _forget(self, name: str, keep: Any) -> None:
        """Takes ``name`` out of every store but ``keep``, where it is about to go."""
        fields = self.__dict__
        fields.pop(name, None)
        for store in (fields["_parameters"], fields["_buffers"], fields["_modules"]):
            if store is not keep:
                store.pop(name, None)
        fields["_non_persistent_buffers_set"].discard(name)

    def __delattr__(self, name: str) -> None:
        for store in (self._parameters, self._buffers, self._modules):
            if name in store:
                del store[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules,
                 *self._buffers]  # fmt: skip
        return sorted({n for n in names if not n[:1].isdigit()})

    def __setstate__(self, state: dict[str, Any]) -> None:
        fields = self.__dict__
        fields.update(state)
        for name in _DICTS:
            if name not in fields:
                fields[name] = OrderedDict()
            elif fields[name]:
                H.note_hooks()
        fields.setdefault("_non_persistent_buffers_set", set())
        fields.setdefault("_is_full_backward_hook", None)

    # ------------------------------------------------------------------------------------ listing
    def _named_members(
        self, members: Callable[[Module], Any], prefix: str, recurse: bool, once: bool
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=once)
            if recurse else [(prefix, self)]
        )  # fmt: skip
        for start, module in modules:
            for name, value in members(module):
                if value is None or id(value) in seen:
                    continue
                if once:
                    seen.add(id(value))
                yield f"{start}.{name}" if start else name, value

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once: what an optimizer is given.

        >>> [p.shape for p in torch.nn.Linear(3, 2).parameters()]
        [torch.Size([2, 3]), torch.Size([2])]
        """
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their dotted names.

        Args:
            prefix (str): goes before every name
            recurse (bool): those of all submodules too? Default: True
            remove_duplicate (bool): give a shared parameter once only? Default: True

        >>> [n for n, _ in torch.nn.Sequential(torch.nn.Linear(3, 2)).named_parameters()]
        ['0.weight', '0.bias']
        """
        return self._named_members(
            lambda m: m._parameters.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their dotted names."""
        return self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Module]:
        """The modules directly below this one, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly below this one, with their names."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self) -> Iterator[Module]:
        """This module and all below it, each once."""
        for _, module in self.named_modules():
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with their dotted names (this one's is ``prefix``).

        >>> [n for n, _ in torch.nn.Sequential(torch.nn.ReLU()).named_modules()]
        ['', '0']
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                below = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, below, remove_duplicate)

    def get_submodule(self, target: str) -> Module:
        """The submodule of that dotted name; AttributeError if there is none."""
        found: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(found, name):
                raise AttributeError(f"{found._get_name()} has no attribute `{name}`")
            found = getattr(found, name)
            if not isinstance(found, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return found  # type: ignore[no-any-return]

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts ``module`` at that dotted name; with ``strict`` there must be one already."""
        if target == "":
            raise ValueRangeError("Cannot set the submodule without a target name!")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of that dotted name; AttributeError if there is none."""
        _owner, name, found = self._find(target)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of that dotted name; AttributeError if there is none."""
        owner, name, found = self._find(target)
        if name not in owner._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found  # type: ignore[no-any-return]

    def _find(self, target: str) -> tuple[Module, str, Any]:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        return owner, name, getattr(owner, name)

    # --------------------------------------------------------------------------------- changing all
    def apply(self, fn: Callable[[Module], Any]) -> Any:
        """Calls ``fn`` on every submodule, then on this module; gives the module.

        >>> m = torch.nn.Linear(1, 1).apply(lambda m: torch.nn.init.ones_(m.weight))
        >>> m.weight
        Parameter containing:
        tensor([[1.]], requires_grad=True)
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """Replaces the elements of every parameter, its gradient, and every buffer by ``fn``'s."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for param in self._parameters.values():
            if param is None:
                continue
            with no_grad():
                param.data = fn(param)
                grad = param._grad
                if grad is not None:
                    grad.data = fn(grad)
        for key, buffer in self._buffers.items():
            if is_lazy(buffer):
                buffer.data = fn(buffer)
            elif buffer is not None:
                self._buffers[key] = fn(buffer)
        return self

    def train(self, mode: bool = True) -> Any:
        """Sets training mode here and below (dropout drops, batch norm uses the batch).

        >>> torch.nn.Dropout().train(False).training
        False
        """
        if not isinstance(mode, bool):
            raise ValueRangeError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Any:
        """Sets evaluation mode: ``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Sets ``requires_grad`` of every parameter: False freezes the module."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the parameters' gradients (or sets them to zero)."""
        for param in self.parameters():
            grad = param._grad
            if grad is None:
                continue
            if set_to_none:
                param._grad = None
            else:
                if grad._fn is not None:
                    grad = param._grad = grad.detach()
                grad._rg = False
                grad.zero_()

    # ------------------------------------------------------------------------------------- printing
    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands between the parentheses when the module is printed; override to say more."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [
            f"({name}): " + indented(repr(module), 2) for name, module in self._modules.items()
        ]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({lines[0]})"
        if not lines and not children:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"


def _not_ready(what: str) -> AttributeError:
    text = f"cannot assign {what} before Module.__init__() call"
    return with_facts(AttributeError(text), Facts("super", fix="super().__init__()"))
