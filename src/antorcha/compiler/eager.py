"""``torch.compile``: the function or module as it is, since its kernels are compiled already.

What programs see of a compiled module is as in PyTorch: an `OptimizedModule` around it, whose
``state_dict`` keys begin with ``_orig_mod.``, and which shares everything else with it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import antorcha.nn  # noqa: F401  (whole: another thread may be importing it)
from antorcha.errors import GraphError, MissingFeature, warn
from antorcha.nn.module import Module

BACKENDS = ("cudagraphs", "inductor", "onnxrt", "openxla", "tvm", "aot_eager", "eager")
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs",
         "lite")  # fmt: skip


class InvalidBackend(GraphError):
    """A backend of ``torch.compile`` that nobody has registered.

    Example: ``torch.compile(f, backend="indutcor")``.
    """


class OptimizedModule(Module):
    """What ``torch.compile`` makes of a module: it runs the module, and is it in all else."""

    def __init__(self, mod: Any, dynamo_ctx: Any = None) -> None:
        super().__init__()
        del self.__dict__["training"]  # (it is the module's)
        self._modules["_orig_mod"] = mod
        self.__dict__["dynamo_ctx"] = dynamo_ctx  # (libraries tell a compiled module by it)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        return self._modules["_orig_mod"](*args, **kwargs)

    @property
    def training(self) -> bool:
        """Is the module in training mode?"""
        return bool(self._modules["_orig_mod"].training)

    @training.setter
    def training(self, value: bool) -> None:
        if "_orig_mod" in self.__dict__.get("_modules", ()):
            self._modules["_orig_mod"].training = value

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__.get("_modules", {}).get("_orig_mod")
        if name == "_orig_mod" and own is not None:
            return own
        if own is None:
            raise AttributeError(name)
        return getattr(own, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_orig_mod":
            self._modules["_orig_mod"] = value
        elif hasattr(type(self), name):
            object.__setattr__(self, name, value)
        else:
            setattr(self._modules["_orig_mod"], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._modules["_orig_mod"], name)

    def __len__(self) -> int:
        return len(self._modules["_orig_mod"])

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Any:
        return iter(self._modules["_orig_mod"])

    def __getitem__(self, index: Any) -> Any:
        return self._modules["_orig_mod"][index]

    def __reduce__(self) -> Any:
        return type(self), (self._modules["_orig_mod"],)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._modules["_orig_mod"]), *super().__dir__()})


def compile(
    model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None,
    backend: Any = None, mode: str | None = None, options: Any = None, name: str | None = None,
    disable: bool = False, recompile_limit: int | None = None, isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:  # fmt: skip
    """The function or module, to be called as in PyTorch: it runs eagerly, and says so once.

    Args:
        model (callable, optional): a function or a Module; without it, a decorator is given
        backend (str, optional): one of PyTorch's names. Default: ``"inductor"``
        mode (str, optional), options (dict, optional): one of both, and without effect

    A module gives an ``OptimizedModule``: its ``state_dict`` keys begin with ``_orig_mod.``.
    Raises NotImplementedError for a backend that is a function: there is no graph to give it;
    RuntimeError for a backend, or a mode, that is not known.

    See https://docs.pytorch.org/docs/stable/generated/torch.compile.html.

    >>> f = torch.compile(lambda x: x * 2)
    >>> f(torch.ones(2))
    tensor([2., 2.])
    >>> list(torch.compile(torch.nn.Linear(2, 1)).state_dict())
    ['_orig_mod.weight', '_orig_mod.bias']
    """
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode,
            options=options, name=name, disable=disable, recompile_limit=recompile_limit,
            isolate_recompiles=isolate_recompiles, shapes_spec=shapes_spec,
        )  # fmt: skip
    if mode is not None and options is not None:
        raise GraphError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if mode is not None and mode not in MODES:
        raise GraphError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    check_backend(backend)
    if not disable:
        _say_once()
    return wrapped(model)


def check_backend(backend: Any) -> None:
    """Raises for a backend that cannot be asked for."""
    if backend is not None and not isinstance(backend, str):
        raise MissingFeature(
            "torch.compile: a backend that is a function is given a graph, and there is none: "
            'antorcha runs the program eagerly. Leave it out, or say backend="eager"'
        )
    if backend is not None and backend not in BACKENDS:
        raise InvalidBackend(f"Invalid backend: {backend!r}; there are {', '.join(BACKENDS)}")


def wrapped(model: Any) -> Any:
    """A module in its OptimizedModule, a function in a function; a class is given back."""
    if isinstance(model, (OptimizedModule, type)):
        return model
    if isinstance(model, Module):
        return OptimizedModule(model)
    if not callable(model):
        raise GraphError(
            f"torch.compile: a callable is needed, not a {type(model).__name__}: {model!r}"
        )

    def run(*args: Any, **kwargs: Any) -> Any:
        return model(*args, **kwargs)

    functools.update_wrapper(run, model)
    run._torchdynamo_orig_callable = model  # type: ignore[attr-defined]
    return run


def compile_in_place(module: Any, *args: Any, **kwargs: Any) -> None:
    """``Module.compile``: checks the options; the module runs as it is."""
    compile(_nothing, *args, **kwargs)


def _nothing() -> None:
    pass


_said = False


def _say_once() -> None:
    global _said
    if not _said:
        _said = True
        warn(
            "torch.compile: antorcha runs the program eagerly, and its results are the same: each "
            "op's kernel is compiled already, and nothing is captured or fused."
        )


def in_wrapper(fn: Callable[..., Any] | None) -> Any:
    """A decorator that changes nothing, with or without arguments."""
    return fn if fn is not None else lambda each: each
