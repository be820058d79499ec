"""``torch.nn.utils.spectral_norm``, the old form: a hook sets the weight before each call."""

from __future__ import annotations

from typing import Any

from antorcha.autograd import no_grad
from antorcha.errors import ShapeError, ValueRangeError, explain_missing
from antorcha.nn import functional as F
from antorcha.nn.parameter import Parameter, is_lazy
from antorcha.nn.utils.parametrizations import as_matrix, output_dim, unit_noise
from antorcha.ops.kinds.record import T


class SpectralNorm:
    """The hook: ``module.<name>`` becomes the original divided by its largest singular value."""

    _version = 1

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        if n_power_iterations <= 0:
            raise ValueRangeError(
                "Expected n_power_iterations to be positive, but got n_power_iterations="
                f"{n_power_iterations}"
            )
        self.name, self.dim, self.eps = name, dim, eps
        self.n_power_iterations = n_power_iterations

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Any:
        """The weight, of what the module has now; the vectors are improved in place."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(T.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(T.mv(matrix, v), dim=0, eps=self.eps))
                u, v = u.clone(), v.clone()  # the originals change with the next call
        return weight / T.dot(u, T.mv(matrix, v))

    @staticmethod
    def apply(
        module: Any, name: str, n_power_iterations: int, dim: int, eps: float
    ) -> SpectralNorm:
        """Takes the parameter's place and registers the hooks."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise ShapeError(
                    f"Cannot register two spectral_norm hooks on the same parameter {name}"
                )
        result = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueRangeError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueRangeError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make "
                "sure to run the dummy forward before applying spectral normalization"
            )
        with no_grad():
            rows, columns = as_matrix(weight, dim).shape
            u, v = unit_noise(weight, rows, eps), unit_noise(weight, columns, eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(result)
        module._register_state_dict_hook(SpectralNormStateDictHook(result))
        return result

    def remove(self, module: Any) -> None:
        """Makes the weight a parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))  # type: ignore[call-arg]

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


class SpectralNormStateDictHook:
    """Notes the form of the state, as PyTorch's files have it."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module: Any, state_dict: Any, prefix: str, local_metadata: Any) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        key = self.fn.name + ".version"
        if key in versions:
            raise ShapeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """Divides a parameter, as a matrix, by its largest singular value (Miyato et al., 2018).

    See :func:`torch.nn.utils.parametrizations.spectral_norm`, the newer form, for the arguments.

    >>> torch.nn.utils.spectral_norm(torch.nn.Linear(20, 40)).weight_u.shape
    torch.Size([40])
    """
    SpectralNorm.apply(module, name, n_power_iterations, output_dim(module, dim), eps)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Undoes :func:`spectral_norm`: the weight is a parameter again, with the value that it has."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueRangeError(f"spectral_norm of '{name}' not found in {module}")
    for key, hook in module._state_dict_hooks.items():
        if isinstance(hook, SpectralNormStateDictHook) and hook.fn.name == name:
            del module._state_dict_hooks[key]
            break
    return module


explain_missing("torch.nn.utils.spectral_norm", globals())
