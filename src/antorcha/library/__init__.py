"""``torch.library``: operators of a program's own, written in Python.

See https://docs.pytorch.org/docs/stable/library.html.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from antorcha.errors import ArgumentError, GraphError, MissingFeature, explain_missing
from antorcha.library import operators
from antorcha.library.checks import opcheck
from antorcha.library.custom import CustomOpDef, custom_op, overload_behind
from antorcha.library.custom import register_autograd as _register_autograd
from antorcha.library.operators import PythonOverload
from antorcha.library.schema import infer_schema, parse_schema

__all__ = [
    "CustomOpDef", "Library", "custom_op", "define", "fallthrough_kernel", "get_ctx", "impl",
    "impl_abstract", "infer_schema", "opcheck", "register_autocast", "register_autograd",
    "register_fake", "register_kernel", "register_torch_dispatch", "register_vmap", "triton_op",
    "wrap_triton",
]  # fmt: skip

_KEYS = {
    "": "implicit", "CompositeImplicitAutograd": "implicit",
    "CompositeExplicitAutograd": "default", "CompositeExplicitAutogradNonFunctional": "default",
    "BackendSelect": "default", "default": "default",
    "Autograd": "autograd", "AutogradCPU": "autograd",
}  # fmt: skip
_defining: set[str] = set()


def fallthrough_kernel() -> None:
    """What is given to :meth:`Library.impl` to say that a key has no kernel of its own."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def _key(dispatch_key: Any) -> str:
    name = getattr(dispatch_key, "name", dispatch_key)
    return str(_KEYS.get(name, name.lower()))


class Library:
    """A set of operators of one namespace, or of kernels for them.

    Args:
        ns (str): the namespace
        kind (str): ``"DEF"`` defines the namespace, ``"FRAGMENT"`` adds to it, ``"IMPL"`` adds
            kernels
        dispatch_key (str): for which device the kernels are, where they do not say. Default: all

    See https://docs.pytorch.org/docs/stable/library.html#torch.library.Library.

    >>> lib = torch.library.Library("docs_lib", "DEF")
    >>> lib.define("plus(Tensor x, int n=1) -> Tensor")
    'plus'
    >>> lib.impl("plus", lambda x, n=1: x + n, "CPU")
    >>> torch.ops.docs_lib.plus(torch.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in ("prim",):
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")  # fmt: skip  # noqa: E501
        if kind == "DEF":
            if ns in _defining:
                raise GraphError(
                    "Only a single TORCH_LIBRARY can be used to register the namespace "
                    f"{ns}; please put all of your definitions in a single TORCH_LIBRARY block, or "
                    "use the kind FRAGMENT"
                )
            _defining.add(ns)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._ops: list[PythonOverload] = []

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Defines an operator by its schema, ``"name(Tensor x) -> Tensor"``; gives its name."""
        parsed = parse_schema(schema)
        name = parsed.name.rpartition("::")[2]
        self._ops.append(operators.define(self.ns, parsed))
        return f"{name}.{parsed.overload_name}" if parsed.overload_name else name

    def impl(
        self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *,
        with_keyset: bool = False, allow_override: bool = False,
    ) -> None:  # fmt: skip
        """Registers a kernel for an operator: by its name in this namespace, or the overload."""
        if not callable(fn):
            raise ArgumentError(f"Input function is required to be a callable but found type {type(fn)}")  # fmt: skip  # noqa: E501
        if with_keyset:
            raise MissingFeature("Library.impl: with_keyset=True is not supported")
        op = self._find(op_name)
        if fn is fallthrough_kernel:
            return
        op.kernels[_key(dispatch_key or self.dispatch_key)] = fn

    def _find(self, op_name: Any) -> PythonOverload:
        if isinstance(op_name, PythonOverload):
            return op_name
        text = op_name if isinstance(op_name, str) else op_name.name()
        name = text if "::" in text else f"{self.ns}::{text}"
        if name.startswith("aten::"):
            raise MissingFeature(f"Library.impl: {name} is antorcha's own and cannot be replaced")
        return operators.lookup(name)

    def _register_fake(self, op_name: Any, fn: Callable[..., Any], *_: Any, **__: Any) -> None:
        self._find(op_name).fake = fn

    def fallback(self, fn: Callable[..., Any], dispatch_key: str = "", **_: Any) -> None:
        """Not supported: raises NotImplementedError."""
        raise MissingFeature("Library.fallback is not supported")

    def _destroy(self) -> None:
        """Takes back what it has defined."""
        for op in self._ops:
            operators.forget(op)
        self._ops.clear()
        if self.kind == "DEF":
            _defining.discard(self.ns)


@contextlib.contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """A library that is taken back at the end of the block."""
    result = Library(*args, **kwargs)
    try:
        yield result
    finally:
        result._destroy()


def define(qualname: Any, schema: str, *, lib: Library | None = None, tags: Any = ()) -> Any:
    """Defines the operator ``"namespace::name"`` by its schema ``"(Tensor x) -> Tensor"``.

    Given a Library first, it decorates the kernel: ``define(lib, "name(Tensor x) -> Tensor")``.

    >>> torch.library.define("docs::cube", "(Tensor x) -> Tensor")
    >>> @torch.library.impl("docs::cube", "default")
    ... def cube(x):
    ...     return x ** 3
    >>> torch.ops.docs.cube(torch.tensor([2.]))
    tensor([8.])
    """
    if isinstance(qualname, Library):
        name = qualname.define(schema)

        def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
            qualname.impl(name, fn)
            return fn

        return decorate
    if not isinstance(qualname, str):
        raise ValueError(
            f"define(qualname, schema): expected qualname to be instance of str, got "
            f"{type(qualname)}"
        )
    namespace, colons, name = qualname.partition("::")
    if not colons:
        raise ValueError(f"define: the name must have the form 'namespace::name', got {qualname!r}")
    if not schema.lstrip().startswith("("):
        raise ValueError(
            f'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> '
            f'Tensor" but got "{schema}"'
        )
    result = operators.define(namespace, parse_schema(name + schema))
    if lib is not None:
        lib._ops.append(result)
    return None


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Library | None = None) -> Any:
    """Registers, or decorates, a kernel of an operator for device types (``"default"``: all).

    ``impl(lib, name, dispatch_key="")`` decorates a kernel for an operator of a Library.
    """
    if isinstance(qualname, Library):
        library, name, key = qualname, types, func or ""

        def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(name, fn, key)
            return fn

        return decorate
    op = overload_behind(qualname)

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        for each in [types] if isinstance(types, str) else types:
            op.kernels[_key(each)] = fn
        return fn

    return register if func is None else register(func)


def register_kernel(
    op: Any, device_types: Any, func: Any = None, /, *, lib: Library | None = None
) -> Any:
    """Registers, or decorates, an operator's kernel for a device type, several, or all (None)."""
    return impl(overload_behind(op), "default" if device_types is None else device_types, func)


def register_fake(
    op: Any, func: Any = None, /, *, lib: Library | None = None, _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:  # fmt: skip
    """Registers, or decorates, what gives results for tensors without data (``device='meta'``).

    >>> torch.library.define("docs::pair", "(Tensor x) -> (Tensor, Tensor)")
    >>> @torch.library.register_fake("docs::pair")
    ... def _(x):
    ...     return torch.empty_like(x), x.new_empty(3)
    >>> torch.ops.docs.pair(torch.ones(2, device='meta'))[1].shape
    torch.Size([3])
    """
    found = overload_behind(op)

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        found.fake = fn
        return fn

    return register if func is None else register(func)


def impl_abstract(qualname: str, func: Any = None, *, lib: Any = None, _stacklevel: int = 1) -> Any:
    """The older name of :func:`register_fake`."""
    return register_fake(qualname, func, lib=lib)


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:  # fmt: skip
    """Registers the derivative of an operator.

    Args:
        op (str, OpOverload or CustomOpDef): the operator
        backward (Callable): ``backward(ctx, *grads)`` gives a gradient for each argument of the
            operator, None where there is none
        setup_context (Callable, optional): ``setup_context(ctx, inputs, output)`` keeps what
            ``backward`` needs: ``ctx.save_for_backward(..)``; an operator with keyword-only
            arguments also gets ``keyword_only_inputs``

    See https://docs.pytorch.org/docs/stable/library.html#torch.library.register_autograd.
    """
    _register_autograd(overload_behind(op), backward, setup_context)


def register_vmap(op: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Accepted: ``vmap`` runs the operator on one example after another."""
    overload_behind(op)
    return func if func is not None else lambda fn: fn


def register_torch_dispatch(op: Any, torch_dispatch_class: Any, func: Any = None, /, *, lib: Any = None) -> Any:  # fmt: skip  # noqa: E501
    """Not supported: raises NotImplementedError."""
    raise MissingFeature("torch.library.register_torch_dispatch is not supported")


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Not supported: raises NotImplementedError."""
    raise MissingFeature("torch.library.register_autocast is not supported")


def get_ctx() -> Any:
    """Not supported: sizes that only the data tell are no part of this version."""
    raise MissingFeature("torch.library.get_ctx: fake tensors have no symbolic sizes in antorcha")


def triton_op(name: str, fn: Any = None, /, *, mutates_args: Any, schema: Any = None) -> Any:
    """Not supported: raises NotImplementedError. Write a kernel with ``antorcha.kernel``."""
    raise MissingFeature("torch.library.triton_op: there is no Triton here; see antorcha.kernel")


def wrap_triton(triton_kernel: Any, /) -> Any:
    """Not supported: raises NotImplementedError. Write a kernel with ``antorcha.kernel``."""
    raise MissingFeature("torch.library.wrap_triton: there is no Triton here; see antorcha.kernel")


explain_missing("torch.library", globals())
