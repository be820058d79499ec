"""Modules as functions of their parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from antorcha.errors import GraphError
from antorcha.nn.norm import _BatchNorm
from antorcha.nn.utils.stateless import functional_call as _stateless_call
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor


def functional_call(
    module: Any, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: Any = None, *,
    tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """``module(*args, **kwargs)`` with these tensors in place of the module's, for this call.

    Args:
        module (Module): what to call; it keeps its own parameters
        parameter_and_buffer_dicts (dict, or sequence of dicts): tensors by dotted name
        args (Any or tuple): the arguments
        kwargs (dict, optional): the keyword arguments
        tie_weights (bool): does a tensor that the module has under several names change under all
            of them? Default: True
        strict (bool): must all parameters and buffers be given, and no others? Default: False

    See https://docs.pytorch.org/docs/stable/generated/torch.func.functional_call.html.

    >>> layer = torch.nn.Linear(2, 1, bias=False)
    >>> torch.func.functional_call(layer, {'weight': torch.ones(1, 2)}, torch.tensor([3., 4.]))
    tensor([7.])
    """
    return _stateless_call(module, _joined(parameter_and_buffer_dicts), args, kwargs,
                           tie_weights=tie_weights, strict=strict)  # fmt: skip


def _joined(dicts: Any) -> dict[str, Any]:
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(dicts)}"
        )
    if not all(isinstance(each, dict) for each in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    counts = Counter([key for each in dicts for key in each])
    repeated = [key for key, count in counts.items() if count > 1]
    if repeated:
        raise ValueError(
            f"{repeated} appeared in multiple dictionaries; behavior of functional call is "
            "ambiguous"
        )
    return {key: value for each in dicts for key, value in each.items()}


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters, and the buffers, of several modules of one class, each name's stacked.

    Args:
        models (sequence of Module): in the same mode, with the same names and shapes

    The stacked tensors are leaves of their own: they may be given to an optimizer, and to
    :func:`vmap` over :func:`functional_call`.
    See https://docs.pytorch.org/docs/stable/generated/torch.func.stack_module_state.html.

    >>> params, buffers = torch.func.stack_module_state([torch.nn.Linear(3, 2) for _ in range(4)])
    >>> params['weight'].shape, buffers
    (torch.Size([4, 2, 3]), {})
    """
    if len(models) == 0:
        raise GraphError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise GraphError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if any(type(model) is not type(models[0]) for model in models):
        raise GraphError("stack_module_state: Expected all models to be of the same class.")
    return (
        _stacked([dict(model.named_parameters()) for model in models]),
        _stacked([dict(model.named_buffers()) for model in models]),
    )


def _stacked(dicts: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    result = {}
    for name in dicts[0]:
        tensors = tuple([each[name] for each in dicts])
        wants = [each.requires_grad for each in tensors]
        if any(wants) and not all(wants):
            raise GraphError(f"Expected {name} from each model to have the same .requires_grad")
        stacked: Tensor = T.stack(tensors).detach()
        result[name] = stacked.requires_grad_(wants[0])
    return result


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Has every batch normalisation below ``root`` (and it) use the batch's statistics, keeping
    none: it then changes no buffer. Gives ``root``.

    >>> net = torch.nn.Sequential(torch.nn.BatchNorm1d(3))
    >>> torch.func.replace_all_batch_norm_modules_(net)[0].running_mean is None
    True
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def debug_unwrap(tensor: Any, *, recurse: bool = True) -> Any:
    """The tensor itself: antorcha's transforms do not wrap what they pass to the function."""
    if not isinstance(tensor, Tensor):
        raise ValueError(f"Expected tensor to be a torch.Tensor, got {type(tensor)}")
    return tensor
