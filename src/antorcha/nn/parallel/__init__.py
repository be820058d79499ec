"""``torch.nn.parallel``: DataParallel and its parts, for one device: they run the module."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from antorcha.errors import MissingFeature, ValueRangeError, no_such_name, warn
from antorcha.nn.module import Module
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor

__all__ = [
    "DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply",
    "replicate", "scatter",
]  # fmt: skip


class DataParallel(Module):
    """Splits each batch among several GPUs; on one device, or none, it runs the module.

    Args:
        module (Module): what to run; the attribute ``module``, and so the prefix of state names
        device_ids (list, optional): at most one device
        output_device (optional): the same device
        dim (int): the batch dim. Default: 0

    Shape: the module's.
    See https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html.

    >>> list(torch.nn.DataParallel(torch.nn.Linear(2, 1)).state_dict())
    ['module.weight', 'module.bias']
    """

    def __init__(
        self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        check_devices("DataParallel", device_ids)
        self.dim = dim
        self.module = module
        self.device_ids = list(device_ids or [])
        self.output_device = output_device

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        return self.module(*inputs, **kwargs)


def check_devices(what: str, device_ids: Any) -> None:
    """Raises where more than one device is asked for."""
    if device_ids is not None and len(device_ids) > 1:
        raise MissingFeature(
            f"{what}: batches are not split among several devices; give one of {device_ids}"
        )


def data_parallel(
    module: Any, inputs: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0,
    module_kwargs: Any = None,
) -> Any:  # fmt: skip
    """``module(*inputs)``, on one device."""
    check_devices("data_parallel", device_ids)
    given = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return module(*given, **(module_kwargs or {}))


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """The inputs' parts for each device: for one device, all of them, on that device.

    >>> torch.nn.parallel.scatter((torch.ones(2), 3), ["cpu"])
    [(tensor([1., 1.]), 3)]
    """
    check_devices("scatter", target_gpus)
    moved = _moved(inputs, target_gpus[0])
    return (moved,) if isinstance(inputs, Tensor) else [moved]


def _moved(value: Any, device: Any) -> Any:
    """The value with its tensors on a device."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[_moved(each, device) for each in value])
    if isinstance(value, (list, tuple)):
        return type(value)([_moved(each, device) for each in value])
    if isinstance(value, dict):
        return type(value)([(key, _moved(each, device)) for key, each in value.items()])
    return value


def gather(outputs: Sequence[Any], target_device: Any, dim: int = 0) -> Any:
    """The outputs joined along the batch dim, in the structure that each of them has.

    >>> torch.nn.parallel.gather([{"a": torch.ones(1)}, {"a": torch.zeros(2)}], "cpu")
    {'a': tensor([1., 0., 0.])}
    """
    first = outputs[0]
    if isinstance(first, Tensor):
        parts = [each.to(target_device) for each in outputs]
        if all(part.dim() == 0 for part in parts) and dim == 0:
            warn(
                "Was asked to gather along dimension 0, but all input tensors were scalars; will "
                "instead unsqueeze and return a vector."
            )
            return T.stack(parts)
        return T.cat(parts, dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if not all(len(first) == len(each) for each in outputs):
            raise ValueRangeError("All dicts must have the same number of keys")
        joined = [(key, gather([each[key] for each in outputs], target_device, dim))
                  for key in first]  # fmt: skip
        return type(first)(joined)
    parts = [gather(each, target_device, dim) for each in zip(*outputs, strict=True)]
    return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)


def replicate(network: Any, devices: Sequence[Any], detach: bool = False) -> list[Any]:
    """A module for each device: on one device, the module itself, which shares its parameters."""
    check_devices("replicate", devices)
    return [network]


def parallel_apply(
    modules: Sequence[Any], inputs: Sequence[Any], kwargs_tup: Any = None, devices: Any = None
) -> list[Any]:
    """Each module's output for its inputs; the modules run one after the other.

    >>> relu = torch.nn.ReLU()
    >>> torch.nn.parallel.parallel_apply([relu, relu], [torch.ones(1), (-torch.ones(1),)])
    [tensor([1.]), tensor([0.])]
    """
    if len(modules) != len(inputs):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of inputs "
            f"{len(inputs)}"
        )
    options = [{}] * len(modules) if kwargs_tup is None else kwargs_tup
    if len(modules) != len(options):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of kwargs_tup "
            f"{len(options)}"
        )
    results = []
    for module, given, kwargs in zip(modules, inputs, options, strict=True):
        args = given if isinstance(given, (list, tuple)) else (given,)
        results.append(module(*args, **kwargs))
    return results


class DistributedDataParallel(Module):
    """Training in several processes is not supported: making it raises NotImplementedError."""

    def __init__(self, module: Any, *args: Any, **kwargs: Any) -> None:
        raise MissingFeature(
            "DistributedDataParallel: there is no process group, and training in several processes "
            "is not supported; use the module itself"
        )


def __getattr__(name: str) -> Any:
    if name in ("distributed", "scatter_gather"):
        return importlib.import_module(f"antorcha.nn.parallel.{name}")
    raise no_such_name("torch.nn.parallel", name, globals())
