"""``torch.compiler``: what programs ask and tell a compiler; ops run eagerly here.

``is_compiling()`` is False everywhere. The decorators give the function they decorate.

See https://docs.pytorch.org/docs/stable/torch.compiler.html.
"""

from __future__ import annotations

from typing import Any

from antorcha.compiler.eager import BACKENDS, check_backend, in_wrapper
from antorcha.compiler.eager import compile as _compile
from antorcha.errors import GraphError, MissingFeature, explain_missing

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
    "get_default_backend", "is_compiling", "is_dynamo_compiling", "is_exporting",
    "keep_portable_guards_unsafe", "keep_tensor_guards_unsafe", "list_backends",
    "load_cache_artifacts", "nested_compile_region", "reset", "save_cache_artifacts",
    "set_default_backend", "set_enable_guard_collectives", "set_stance", "skip_all_guards_unsafe",
    "skip_guard_on_all_nn_modules_unsafe", "skip_guard_on_globals_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe", "substitute_in_graph",
]  # fmt: skip


def compile(*args: Any, **kwargs: Any) -> Any:
    """``torch.compile``."""
    return _compile(*args, **kwargs)


def is_compiling() -> bool:
    """False: the program is never being captured.

    >>> torch.compiler.is_compiling()
    False
    """
    return False


def is_dynamo_compiling() -> bool:
    """False: the program is never being captured."""
    return False


def is_exporting() -> bool:
    """False: the program is never being exported."""
    return False


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A decorator, with or without arguments: the function stays as it is."""
    return in_wrapper(fn)


def allow_in_graph(fn: Any) -> Any:
    """A decorator: the function (or each of a list of functions) stays as it is."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """A decorator: the function stays as it is."""
    return fn


def nested_compile_region(fn: Any = None, **options: Any) -> Any:
    """A decorator: the function stays as it is."""
    return in_wrapper(fn)


def substitute_in_graph(original_fn: Any, *, can_constant_fold_through: bool = False,
                        skip_signature_check: bool = False) -> Any:  # fmt: skip
    """A decorator of what stands for `original_fn` in a graph: it stays as it is."""
    return lambda fn: fn


def reset() -> None:
    """Nothing to forget: nothing was captured."""


def cudagraph_mark_step_begin() -> None:
    """Nothing to mark: there are no CUDA graphs."""


class set_stance:
    """How functions are compiled from here on, or in a ``with`` block: they run eagerly always."""

    _STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile",
                "eager_then_compile", "aot_eager_then_compile")  # fmt: skip

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False,
                 force_backend: Any = None) -> None:  # fmt: skip
        if stance not in self._STANCES:
            raise GraphError(f"invalid stance {stance!r}; there are {', '.join(self._STANCES)}")
        check_backend(force_backend)

    def __enter__(self) -> None:
        """Enters; nothing changes."""

    def __exit__(self, *_: object) -> None:
        """Leaves; nothing changes."""

    def __call__(self, fn: Any) -> Any:
        return fn


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Notes nothing: there are no guards. Gives False, what was set before."""
    return False


_default_backend = "inductor"


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names that ``torch.compile(backend=...)`` takes; all of them run eagerly."""
    hidden = ("aot_eager", "eager") if exclude_tags else ()
    return sorted([each for each in BACKENDS if each not in hidden])


def get_default_backend() -> str:
    """The name that `set_default_backend` was given."""
    return _default_backend


def set_default_backend(backend: str) -> None:
    """Notes the backend that is meant where none is named."""
    global _default_backend
    check_backend(backend)
    _default_backend = backend


def skip_guard_on_inbuilt_nn_modules_unsafe(guard_entries: list[Any]) -> list[bool]:
    """Which guards to keep; there are none."""
    return [True for _ in guard_entries]


skip_guard_on_all_nn_modules_unsafe = skip_guard_on_inbuilt_nn_modules_unsafe
skip_guard_on_globals_unsafe = skip_guard_on_inbuilt_nn_modules_unsafe
skip_all_guards_unsafe = keep_portable_guards_unsafe = skip_guard_on_inbuilt_nn_modules_unsafe
keep_tensor_guards_unsafe = skip_guard_on_inbuilt_nn_modules_unsafe


def save_cache_artifacts() -> None:
    """None, as in PyTorch where nothing was compiled. (Kernels are kept in ANTORCHA_CACHE.)"""


def load_cache_artifacts(serialized_artifacts: bytes) -> Any:
    """Raises NotImplementedError: antorcha's kernels have a cache of their own."""
    raise MissingFeature(
        "load_cache_artifacts: what PyTorch's compiler kept is of no use to antorcha; its own "
        "kernels are cached on disk (ANTORCHA_CACHE)"
    )


explain_missing("torch.compiler", globals())
