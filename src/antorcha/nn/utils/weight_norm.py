"""``torch.nn.utils.weight_norm``, the old form: a hook sets the weight before each call."""

from __future__ import annotations

from typing import Any

from antorcha.errors import ShapeError, ValueRangeError
from antorcha.nn.parameter import Parameter, is_lazy
from antorcha.nn.utils.parametrizations import norm_except


class WeightNorm:
    """The hook: ``module.<name>`` becomes ``g * v / |v|``."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Any:
        """The weight, of what the module has now."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / norm_except(v, self.dim))

    @staticmethod
    def apply(module: Any, name: str, dim: int | None) -> WeightNorm:
        """Splits the parameter and registers the hook."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise ShapeError(
                    f"Cannot register two weight_norm hooks on the same parameter {name}"
                )
        result = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueRangeError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure "
                "to run the dummy forward before applying weight normalization"
            )
        del module._parameters[name]
        length = Parameter(norm_except(weight, result.dim).detach())  # type: ignore[call-arg]
        module.register_parameter(name + "_g", length)
        module.register_parameter(name + "_v", Parameter(weight.detach()))  # type: ignore[call-arg]
        setattr(module, name, result.compute_weight(module))
        module.register_forward_pre_hook(result)
        return result

    def remove(self, module: Any) -> None:
        """Makes the weight a parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"], module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.detach()))  # type: ignore[call-arg]

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Splits a parameter into length ``<name>_g`` and direction ``<name>_v``.

    Deprecated in PyTorch: see :func:`torch.nn.utils.parametrizations.weight_norm`.

    >>> torch.nn.utils.weight_norm(torch.nn.Linear(20, 40)).weight_g.shape
    torch.Size([40, 1])
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Undoes :func:`weight_norm`: the weight is a parameter again, with the value that it has."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueRangeError(f"weight_norm of '{name}' not found in {module}")
