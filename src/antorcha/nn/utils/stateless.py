"""``torch.nn.utils.stateless``: a module called with other parameters than its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from antorcha.errors import ShapeError

__all__ = ["functional_call"]


def functional_call(
    module: Any, parameters_and_buffers: dict[str, Any], args: Any = None, kwargs: Any = None, *,
    tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """``module(*args, **kwargs)`` with these tensors in place of the module's, for this call.

    Args:
        module (Module): what to call; it keeps its own parameters
        parameters_and_buffers (dict): tensors by dotted name; buffers that the call changes in the
            module's dictionaries are put here
        args (Any or tuple): the arguments
        kwargs (dict, optional): the keyword arguments
        tie_weights (bool): does a tensor that the module has under several names change under all
            of them? Default: True
        strict (bool): must all parameters and buffers be given, and no others? Default: False

    See https://docs.pytorch.org/docs/stable/generated/torch.func.functional_call.html.

    >>> from antorcha.nn.utils.stateless import functional_call
    >>> functional_call(torch.nn.Linear(2, 1, bias=False), {'weight': torch.ones(1, 2)},
    ...                 torch.tensor([[3., 4.]]))
    tensor([[7.]])
    """
    given = args if isinstance(args, tuple) else () if args is None else (args,)
    with _replaced(module, parameters_and_buffers, tie_weights, strict):
        return module(*given, **(kwargs or {}))


def _named(module: Any) -> dict[str, Any]:
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _tied(own: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """What is given, also under the other names of the same tensors."""
    names: dict[int, list[str]] = {}
    for name, tensor in own.items():
        names.setdefault(id(tensor), []).append(name)
    result = dict(given)
    for group in names.values():
        values = {id(given[n]): given[n] for n in group if n in given}
        if len(values) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(group)}, which are tied. "
                "Consider using tie_weights=False"
            )
        for value in values.values():
            result.update(dict.fromkeys(group, value))
    return result


@contextmanager
def _replaced(module: Any, given: dict[str, Any], tie: bool, strict: bool) -> Iterator[None]:
    own = _named(module)
    wanted = _tied(own, given) if tie else dict(given)
    if strict:
        unexpected = [k for k in wanted if k not in own]
        missing = [k for k in own if k not in wanted]
        errors = [
            f"{what} key(s): {', '.join([repr(k) for k in keys])}."
            for what, keys in (("Unexpected", unexpected), ("Missing", missing)) if keys
        ]  # fmt: skip
        if errors:
            raise ShapeError(
                f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(errors)
            )
    places = []
    for name in wanted:
        path, _, last = name.rpartition(".")
        owner = module.get_submodule(path)
        store = owner._buffers if last in owner._buffers else owner._parameters
        if last not in store:
            raise AttributeError(f"{owner._get_name()} has no attribute `{last}`")
        places.append((name, store, last, store[last]))
    try:
        for name, store, last, _old in places:
            store[last] = wanted[name]
        yield
    finally:
        for name, store, last, old in places:
            if name in given:
                given[name] = store[last]
            store[last] = old
