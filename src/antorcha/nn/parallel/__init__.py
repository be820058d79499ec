"""``torch.nn.parallel``: DataParallel, for one device: it runs the module."""

from __future__ import annotations

from typing import Any

from antorcha.errors import MissingFeature, no_such_name
from antorcha.nn.module import Module

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]


class DataParallel(Module):
    """Splits each batch among several GPUs; on one device, or none, it runs the module.

    Args:
        module (Module): what to run; the attribute ``module``, and so the prefix of state names
        device_ids (list, optional): at most one device
        output_device (optional): the same device
        dim (int): the batch dim. Default: 0

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


class DistributedDataParallel(Module):
    """Training in several processes is not supported: making it raises NotImplementedError."""

    def __init__(self, module: Any, *args: Any, **kwargs: Any) -> None:
        raise MissingFeature(
            "DistributedDataParallel: training in several processes is not supported; use the "
            "module itself"
        )


def __getattr__(name: str) -> Any:
    raise no_such_name("torch.nn.parallel", name, globals())
