"""A module's state by name: ``state_dict`` and ``load_state_dict``.

Keys are the dotted names of parameters and persistent buffers, in the order of registration, as in
PyTorch: files go both ways. ``_metadata`` on the dictionary holds each module's ``_version``.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from typing import Any

from antorcha.autograd import no_grad
from antorcha.autograd.hooks import RemovableHandle
from antorcha.errors import ArgumentError, ShapeError
from antorcha.nn.parameter import Parameter
from antorcha.runtime.tensor import Tensor

EXTRA = "_extra_state"


class _IncompatibleKeys(namedtuple("_IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What ``load_state_dict`` found missing and unexpected."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class StateDictMixin:
    """The part of Module that gives and takes state dictionaries."""

    _version: int = 1
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: OrderedDict[int, Any]
    _state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_post_hooks: OrderedDict[int, Any]

    # ------------------------------------------------------------------------------------- giving
    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """Every parameter and persistent buffer by its dotted name, detached (but sharing memory).

        Args:
            destination (dict, optional): where to put them; a new OrderedDict by default
            prefix (str): goes before every name. Default: ``""``
            keep_vars (bool): give the tensors themselves, not detached. Default: False

        >>> list(torch.nn.Linear(2, 1).state_dict())
        ['weight', 'bias']
        """
        if args:  # the old positional order
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, metadata)
            if result is not None:
                if getattr(hook, "_from_public_api", False):
                    raise ShapeError("state_dict post-hook must return None")
                destination = result
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Puts this module's own tensors into ``destination``; submodules are not visited."""
        for name, tensor in self._own_state():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if type(self).get_extra_state is not StateDictMixin.get_extra_state:
            destination[prefix + EXTRA] = self.get_extra_state()

    def _own_state(self) -> list[tuple[str, Any]]:
        """Own parameters and persistent buffers that are not None."""
        temporary = self._non_persistent_buffers_set
        found = [(n, p) for n, p in self._parameters.items() if p is not None]
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in temporary:
                found.append((name, buffer))
        return found

    def get_extra_state(self) -> Any:
        """Override to save more than tensors with the module (see :meth:`set_extra_state`)."""
        raise NotImplementedError(
            "Reached a code path in Module.get_extra_state() that should never be called."
        )

    def set_extra_state(self, state: Any) -> None:
        """Override to take back what :meth:`get_extra_state` gave."""
        raise NotImplementedError(
            "Reached a code path in Module.set_extra_state() that should never be called."
        )

    # ------------------------------------------------------------------------------------- taking
    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Copies the tensors of ``state_dict`` into this module's.

        Args:
            state_dict (dict): tensors by dotted name
            strict (bool): must the names match exactly? Default: True
            assign (bool): take the tensors themselves instead of copying. Default: False

        Returns the names missing and unexpected. Raises RuntimeError that lists every mismatch.

        >>> m = torch.nn.Linear(2, 1)
        >>> m.load_state_dict({'weight': torch.ones(1, 2), 'bias': torch.zeros(1)})
        <All keys matched successfully>
        """
        if not isinstance(state_dict, Mapping):
            raise ArgumentError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state: Any = OrderedDict(state_dict)
        if metadata is not None:
            state._metadata = metadata

        def load(module: Any, local: Any, prefix: str) -> None:
            about = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                about["assign_to_params_buffers"] = True
            module._load_from_state_dict(local, prefix, about, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    start = f"{prefix}{name}."
                    load(child, {k: v for k, v in local.items() if k.startswith(start)}, start)
            keys = _IncompatibleKeys(missing, unexpected)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, keys) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not "
                        "expected to return new values, if incompatible_keys need to be modified, "
                        "it should be done inplace."
                    )

        load(self, state, "")
        sizes = len(errors)
        if strict:
            for what, names in (("Unexpected", unexpected), ("Missing", missing)):
                if names:
                    listed = ", ".join([f'"{k}"' for k in names])
                    errors.insert(0, f"{what} key(s) in state_dict: {listed}. ")
        if errors:
            raise ShapeError(
                "Error(s) in loading state_dict for {model}:\n\t{errors}", reason="checkpoint",
                model=type(self).__name__, errors="\n\t".join(errors), missing=missing,
                unexpected=unexpected, sizes=sizes,
            )  # fmt: skip
        return _IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Takes this module's own tensors from ``state_dict``; submodules are not visited."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                 error_msgs)  # fmt: skip
        own = dict(self._own_state())
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, target in own.items():
            key = prefix + name
            if key in state_dict:
                problem = self._take(name, key, target, state_dict[key], assign)
                if problem:
                    error_msgs.append(problem)
            elif strict:
                missing_keys.append(key)
        extra = prefix + EXTRA
        if type(self).set_extra_state is not StateDictMixin.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    first, dot, _ = key[len(prefix) :].partition(".")
                    if first not in (self._modules if dot else own):
                        unexpected_keys.append(key)

    def _take(self, name: str, key: str, target: Any, value: Any, assign: bool) -> str:
        """Copies (or assigns) one tensor; gives what went wrong."""
        if not isinstance(value, Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
                f"object from checkpoint but received {type(value)}"
            )
        want, have = target._layout.shape, value._layout.shape
        if len(want) == 0 and len(have) == 1:  # checkpoints from before there were 0-dim tensors
            value = value[0]
            have = value._layout.shape
        if want != have:
            return (
                f"size mismatch for {key}: copying a param with shape {have} from checkpoint, the "
                f"shape in current model is {want}."
            )
        try:
            with no_grad():
                if not assign:
                    target.copy_(value)
                elif isinstance(target, Parameter) and not isinstance(value, Parameter):
                    setattr(self, name, Parameter(value, requires_grad=target._rg))  # type: ignore[call-arg]
                else:
                    if isinstance(target, Parameter):
                        value.requires_grad_(target._rg)
                    setattr(self, name, value)
        except Exception as error:
            return (
                f'While copying the parameter named "{key}", whose dimensions in the model are '
                f"{want} and whose dimensions in the checkpoint are {have}, an exception occurred "
                f": {error.args}."
            )
        return ""

    # -------------------------------------------------------------------------------------- hooks
    def register_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Runs ``hook(module, prefix, keep_vars)`` before ``state_dict`` collects."""
        return _add(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Any) -> RemovableHandle:
        """Runs ``hook(module, state_dict, prefix, local_metadata)``, which may change the dict."""
        hook._from_public_api = True
        return _add(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False):
            raise ShapeError(
                "Cannot register the same function as the state dict post hook that was previously "
                "registered via register_state_dict_post_hook"
            )
        return _add(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Runs ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)`` before the module takes its tensors."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., None], with_module: bool = False
    ) -> RemovableHandle:
        if with_module:
            return _add(self._load_state_dict_pre_hooks, _WrappedHook(hook, self))
        return _add(self._load_state_dict_pre_hooks, hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Runs ``hook(module, incompatible_keys)`` after the module took its tensors."""
        return _add(self._load_state_dict_post_hooks, hook)


class _WrappedHook:
    """A hook that may want its module first; holds it weakly, and is copied with it.

    (Pickles of whole modules have it under this name.)
    """

    def __init__(self, hook: Callable[..., Any], module: Any = None) -> None:
        self.hook, self.with_module = hook, module is not None
        if module is not None:
            self.module = weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise ShapeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        state = {"hook": self.hook, "with_module": self.with_module}
        return {**state, "module": self.module()} if self.with_module else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state["with_module"] and state["module"] is None:
            raise ShapeError("You are trying to revive the hook of a dead Module!")
        self.__init__(state["hook"], state.get("module"))  # type: ignore[misc]


def _add(hooks: Any, hook: Any) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle
