"""Hooks of modules: what a user asks to run around ``forward`` and around its gradient.

``Module.__call__`` goes straight to ``forward`` until the first hook of the process is registered
(:data:`any_hooks`); from then on calls come through :func:`call_with_hooks`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from antorcha.autograd import Function
from antorcha.autograd.hooks import RemovableHandle
from antorcha.errors import ArgumentError, GraphError, warn
from antorcha.runtime.tensor import Tensor

if TYPE_CHECKING:
    from antorcha.nn.module import Module

any_hooks = False
"""Has a hook ever been registered, on any module?"""

Hook = Callable[..., Any]
_global_forward_pre: OrderedDict[int, Hook] = OrderedDict()
_global_forward: OrderedDict[int, Hook] = OrderedDict()
_global_backward_pre: OrderedDict[int, Hook] = OrderedDict()
_global_backward: OrderedDict[int, Hook] = OrderedDict()
_global_is_full: bool | None = None  # of which form the global backward hooks are
at_parameter: OrderedDict[int, Hook] = OrderedDict()
at_buffer: OrderedDict[int, Hook] = OrderedDict()
at_module: OrderedDict[int, Hook] = OrderedDict()


def note_hooks() -> None:
    """From now on every call looks for hooks."""
    global any_hooks
    any_hooks = True


def add_hook(
    hooks: OrderedDict[int, Hook], hook: Hook, *flags: tuple[Any, bool], prepend: bool = False
) -> RemovableHandle:
    """Registers ``hook`` in ``hooks``, and its id in the flag dicts that are set."""
    if not callable(hook):
        raise ArgumentError(f"a hook must be callable, not {type(hook).__name__}")
    note_hooks()
    handle = RemovableHandle(hooks, extra_dict=[d for d, _ in flags])
    hooks[handle.id] = hook
    for flag_dict, is_set in flags:
        if is_set:
            flag_dict[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


class _Flags(dict[int, bool]):
    """A dict that can be weakly referenced."""

    __slots__ = ("__weakref__",)


_global_forward_with_kwargs = _Flags()
_global_forward_always = _Flags()


def remove_global_hooks() -> None:
    """Removes the hooks of all modules (``register_module_forward_hook`` and its like)."""
    global _global_is_full
    for hooks in (_global_forward_pre, _global_forward, _global_backward_pre, _global_backward,
                  at_parameter, at_buffer, at_module):  # fmt: skip
        hooks.clear()
    _global_is_full = None
    _global_forward_with_kwargs.clear()
    _global_forward_always.clear()


class Hooks:
    """The part of Module that registers hooks."""

    _forward_pre_hooks: OrderedDict[int, Hook]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks: OrderedDict[int, Hook]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _backward_pre_hooks: OrderedDict[int, Hook]
    _backward_hooks: OrderedDict[int, Hook]
    _is_full_backward_hook: bool | None

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Runs ``hook(module, args)`` before every ``forward``.

        What it returns (None, one value, or a tuple) replaces the arguments. With ``with_kwargs``
        it is called as ``hook(module, args, kwargs)`` and returns None or ``(args, kwargs)``.

        >>> m = torch.nn.Identity()
        >>> handle = m.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
        >>> m(torch.zeros(2))
        tensor([1., 1.])
        """
        flags = (self._forward_pre_hooks_with_kwargs, with_kwargs)
        return add_hook(self._forward_pre_hooks, hook, flags, prepend=prepend)

    def register_forward_hook(
        self,
        hook: Hook,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Runs ``hook(module, args, output)`` after every ``forward``; what it returns, if not
        None, replaces the output.

        With ``with_kwargs`` it is called as ``hook(module, args, kwargs, output)``; with
        ``always_call`` also when ``forward`` raises.

        >>> m = torch.nn.Identity()
        >>> handle = m.register_forward_hook(lambda module, args, output: output * 2)
        >>> m(torch.ones(2))
        tensor([2., 2.])
        """
        return add_hook(
            self._forward_hooks,
            hook,
            (self._forward_hooks_with_kwargs, with_kwargs),
            (self._forward_hooks_always_called, always_call),
            prepend=prepend,
        )

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Runs ``hook(module, grad_output)`` when the outputs' gradients are there, before the
        module's own backward; what it returns replaces them."""
        return add_hook(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Runs ``hook(module, grad_input, grad_output)`` when the gradients with respect to the
        module's inputs are there; what it returns replaces ``grad_input``.

        >>> m = torch.nn.Identity()
        >>> handle = m.register_full_backward_hook(lambda module, gi, go: print(go))
        >>> m(torch.ones(1, requires_grad=True) * 3).sum().backward()
        (tensor([1.]),)
        """
        if self._is_full_backward_hook is False:
            raise GraphError(
                "Cannot use both regular backward hooks and full backward hooks on a single "
                "Module. Please use only one of them."
            )
        self._is_full_backward_hook = True
        return add_hook(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Hook) -> RemovableHandle:
        """The old form of :meth:`register_full_backward_hook`: the hook hears of the last op only.

        Deprecated in PyTorch.
        """
        if self._is_full_backward_hook is True:
            raise GraphError(
                "Cannot use both regular backward hooks and full backward hooks on a single "
                "Module. Please use only one of them."
            )
        self._is_full_backward_hook = False
        return add_hook(self._backward_hooks, hook)


# ------------------------------------------------------------------------------------ all modules
def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """A forward pre-hook of every module: ``hook(module, args)``."""
    return add_hook(_global_forward_pre, hook)


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """A forward hook of every module: ``hook(module, args, output)``."""
    return add_hook(
        _global_forward,
        hook,
        (_global_forward_with_kwargs, with_kwargs),
        (_global_forward_always, always_call),
    )


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """A backward pre-hook of every module: ``hook(module, grad_output)``."""
    return add_hook(_global_backward_pre, hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """A backward hook of every module: ``hook(module, grad_input, grad_output)``."""
    _set_global_form(True)
    return add_hook(_global_backward, hook)


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """The old form of `register_module_full_backward_hook`. Deprecated in PyTorch."""
    _set_global_form(False)
    return add_hook(_global_backward, hook)


def _set_global_form(is_full: bool) -> None:
    global _global_is_full
    if _global_is_full is not None and _global_is_full is not is_full:
        raise GraphError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module "
            "hook. Please use only one of them."
        )
    _global_is_full = is_full


def _at_registration(hooks: OrderedDict[int, Hook], hook: Hook) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """Runs ``hook(module, name, buffer)`` when any module gets a buffer; what it returns, if not
    None, replaces the buffer."""
    return _at_registration(at_buffer, hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """Runs ``hook(module, name, submodule)`` when any module gets a child; what it returns, if not
    None, replaces the child."""
    return _at_registration(at_module, hook)


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """Runs ``hook(module, name, param)`` when any module gets a parameter; what it returns, if not
    None, replaces the parameter.

    >>> from antorcha.nn.modules.module import register_module_parameter_registration_hook
    >>> with register_module_parameter_registration_hook(lambda m, name, p: print(name)):
    ...     layer = torch.nn.Linear(1, 1)
    weight
    bias
    """
    return _at_registration(at_parameter, hook)


def registered(hooks: OrderedDict[int, Hook], module: Module, name: str, value: Any) -> Any:
    """What the hooks make of a value that a module gets under a name."""
    for hook in hooks.values():
        changed = hook(module, name, value)
        if changed is not None:
            value = changed
    return value


# --------------------------------------------------------------------------------------- the call
def call_with_hooks(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``module(*args, **kwargs)`` with every hook that stands around it."""
    call = _Call(module, args, kwargs)
    try:
        return call.run()
    except Exception:
        call.run_always_called()
        raise


class _Call:
    """One call of a module: its arguments and result, which hooks change."""

    def __init__(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.module, self.args, self.kwargs = module, args, kwargs
        self.result: Any = None
        self.called: set[int] = set()

    def run(self) -> Any:
        """The result."""
        module = self.module
        before = [*_global_backward_pre.values(), *module._backward_pre_hooks.values()]
        full, old = _backward_hooks(module)
        self._run_pre_hooks()
        tap = Taps(module, full, before) if full or before else None
        if tap is not None:
            self.args = tap.inputs(self.args)
        self.result = module.forward(*self.args, **self.kwargs)
        for key, hook in (*_global_forward.items(), *module._forward_hooks.items()):
            self.called.add(key)
            self._run_forward_hook(key, hook)
        if tap is not None:
            if not isinstance(self.result, (Tensor, tuple)):
                warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple "
                    f"of Tensors but received {type(self.result)}"
                )
            self.result = tap.outputs(self.result)
        if old:
            _old_backward_hooks(module, old, self.args, self.result)
        return self.result

    def _run_pre_hooks(self) -> None:
        module = self.module
        for key, hook in (*_global_forward_pre.items(), *module._forward_pre_hooks.items()):
            if key in module._forward_pre_hooks_with_kwargs:
                changed = hook(module, self.args, self.kwargs)
                if changed is not None:
                    if not isinstance(changed, tuple) or len(changed) != 2:
                        raise GraphError(
                            "forward pre-hook must return None or a tuple of (new_args, "
                            f"new_kwargs), but got {changed}."
                        )
                    self.args, self.kwargs = changed
            else:
                changed = hook(module, self.args)
                if changed is not None:
                    self.args = changed if isinstance(changed, tuple) else (changed,)

    def _run_forward_hook(self, key: int, hook: Hook) -> None:
        module = self.module
        if key in module._forward_hooks_with_kwargs or key in _global_forward_with_kwargs:
            changed = hook(module, self.args, self.kwargs, self.result)
        else:
            changed = hook(module, self.args, self.result)
        if changed is not None:
            self.result = changed

    def run_always_called(self) -> None:
        """After an exception: the hooks that are to be called whatever happens."""
        module = self.module
        for what, always, hooks in (
            ("global module", _global_forward_always, _global_forward),
            ("module", module._forward_hooks_always_called, module._forward_hooks),
        ):
            for key, hook in hooks.items():
                if key not in always or key in self.called:
                    continue
                try:
                    self._run_forward_hook(key, hook)
                except Exception as error:
                    warn(
                        f"{what} forward hook with ``always_call=True`` raised an exception that "
                        f"was silenced as another error was raised in forward: {error!s}",
                    )


def _backward_hooks(module: Module) -> tuple[list[Hook], list[Hook]]:
    """The full backward hooks of a call, and those of the old form."""
    found: tuple[list[Hook], list[Hook]] = ([], [])
    found[_global_is_full is False].extend(_global_backward.values())
    found[module._is_full_backward_hook is False].extend(module._backward_hooks.values())
    return found


class Taps:
    """Two identity ops around a module, whose backward runs its backward hooks."""

    def __init__(self, module: Module, hooks: list[Hook], before: list[Hook]) -> None:
        self.module, self.hooks, self.before = module, hooks, before
        self.grad_outputs: tuple[Any, ...] | None = None
        self.inputs_want_gradients = False
        self.nothing: tuple[None, ...] = ()  # the gradients of inputs that want none

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        places = [k for k, a in enumerate(args) if isinstance(a, Tensor) and a._rg]
        self.inputs_want_gradients = bool(places)
        self.nothing = (None,) * len(args)
        if not places or not self.hooks:
            return args
        result = list(args)
        fn = self._on_inputs(len(args), places)
        tapped = tap_function().apply(fn, *[args[k] for k in places])
        for k, tensor in zip(places, tapped, strict=True):
            result[k] = tensor
        return tuple(result)

    def outputs(self, result: Any) -> Any:
        results = result if isinstance(result, tuple) else (result,)
        places = [k for k, r in enumerate(results) if isinstance(r, Tensor) and r._rg]
        if not places:
            return result
        made = list(results)
        fn = self._on_outputs(len(results), places)
        tapped = tap_function().apply(fn, *[results[k] for k in places])
        for k, tensor in zip(places, tapped, strict=True):
            made[k] = tensor
        return tuple(made) if isinstance(result, tuple) else made[0]

    def _tell_of_outputs(self, full: tuple[Any, ...]) -> None:
        """No input wants a gradient: the hooks are told when the outputs' are there."""
        warn(
            "Full backward hook is firing when gradients are computed with respect to module "
            "outputs since no inputs require gradients. See https://docs.pytorch.org/docs/main/"
            "generated/torch.nn.Module.html#torch.nn.Module.register_full_backward_hook for more "
            "details."
        )
        for hook in self.hooks:
            changed = hook(self.module, self.nothing, full)
            if changed is not None and changed != self.nothing:
                raise GraphError(
                    "Backward hook for Modules where no input requires gradient should always "
                    "return None or None for all gradients."
                )

    def _on_outputs(self, count: int, places: list[int]) -> Any:
        def run(grads: tuple[Any, ...]) -> tuple[Any, ...]:
            full: Any = [None] * count
            for k, g in zip(places, grads, strict=True):
                full[k] = g
            full = tuple(full)
            for hook in self.before:
                changed = hook(self.module, full)
                if changed is not None:
                    full = _checked("pre hook", "grad_output", changed, full)
            self.grad_outputs = full
            if not self.inputs_want_gradients:
                self._tell_of_outputs(full)
            return tuple([full[k] for k in places])

        return run

    def _on_inputs(self, count: int, places: list[int]) -> Any:
        def run(grads: tuple[Any, ...]) -> tuple[Any, ...]:
            full: Any = [None] * count
            for k, g in zip(places, grads, strict=True):
                full[k] = g
            full = tuple(full)
            if self.grad_outputs is None:
                return tuple(grads)
            for hook in self.hooks:
                changed = hook(self.module, full, self.grad_outputs)
                if changed is not None:
                    full = _checked("hook", "grad_input", changed, full)
            self.grad_outputs = None
            return tuple([full[k] for k in places])

        return run


def _checked(kind: str, what: str, changed: Any, old: tuple[Any, ...]) -> tuple[Any, ...]:
    changed = changed if isinstance(changed, tuple) else (changed,)
    if len(changed) != len(old):
        raise GraphError(
            f"Backward {kind} returned an invalid number of {what}, got {len(changed)}, but "
            f"expected {len(old)}"
        )
    return tuple(changed)


_tap: Any = None


def tap_function() -> Any:
    """The identity op whose backward asks a function; made when first needed."""
    global _tap
    if _tap is None:

        class BackwardHookFunction(Function):  # type: ignore[misc]
            @staticmethod
            def forward(ctx: Any, fn: Any, *tensors: Any) -> Any:
                ctx.fn = fn
                ctx.set_materialize_grads(False)
                return tuple([t.view_as(t) for t in tensors])

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                return (None, *ctx.fn(grads))

        _tap = BackwardHookFunction
    return _tap


def _old_backward_hooks(module: Module, hooks: list[Hook], args: Any, result: Any) -> None:
    found = result
    while not isinstance(found, Tensor):
        if isinstance(found, dict):
            found = next(value for value in found.values() if isinstance(value, Tensor))
        else:
            found = found[0]
    node = found.grad_fn
    if node is not None:
        for hook in hooks:
            node.register_hook(lambda gi, go, hook=hook: hook(module, gi, go))
        _warn_of_old_hooks(args, result, node)


def _warn_of_old_hooks(args: Any, result: Any, node: Any) -> None:
    """What the hooks will not be told of, in PyTorch's words."""
    please = "Please use register_full_backward_hook to get the documented behavior."
    results = result if isinstance(result, tuple) else (result,)
    nodes = {r.grad_fn for r in results if isinstance(r, Tensor) and r.grad_fn is not None}
    sources = {a.grad_fn for a in args if isinstance(a, Tensor) and a.grad_fn is not None}
    if not all(isinstance(r, Tensor) for r in results):
        said = (
            "Using non-full backward hooks on a Module that does not return a single Tensor or a "
            "tuple of Tensors is deprecated and will be removed in future versions. This hook will "
            f"be missing some of the grad_output. {please}"
        )
    elif not all(isinstance(a, Tensor) for a in args):
        said = (
            "Using non-full backward hooks on a Module that does not take as input a single Tensor "
            "or a tuple of Tensors is deprecated and will be removed in future versions. This hook "
            f"will be missing some of the grad_input. {please}"
        )
    elif len(nodes) > 1:
        said = (
            "Using a non-full backward hook when outputs are generated by different autograd Nodes "
            "is deprecated and will be removed in future versions. This hook will be missing some "
            f"grad_output. {please}"
        )
    elif sources != {edge[0] for edge in node.next_functions}:
        said = (
            "Using a non-full backward hook when the forward contains multiple autograd Nodes is "
            "deprecated and will be removed in future versions. This hook will be missing some "
            f"grad_input. {please}"
        )
    else:
        return
    warn(said, FutureWarning)
