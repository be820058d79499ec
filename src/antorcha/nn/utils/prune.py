"""``torch.nn.utils.prune``: parameters multiplied by masks of zeros and ones.

A pruned parameter stays as ``<name>_orig``, its mask is the buffer ``<name>_mask``, and a hook sets
``<name>`` to their product before each call. Pruning it again narrows the mask.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from antorcha.errors import ArgumentError, OutOfRange, ValueRangeError
from antorcha.nn.utils.convert_parameters import parameters_to_vector
from antorcha.ops.kinds.record import T


class BasePruningMethod(ABC):
    """A way to choose what is pruned: a subclass has ``compute_mask``, and ``PRUNING_TYPE``:
    ``'unstructured'`` (single elements), ``'structured'`` (slices), or ``'global'``."""

    PRUNING_TYPE: str = "unstructured"
    _tensor_name: str

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask of a tensor of importance scores that has ``default_mask`` already."""

    def apply_mask(self, module: Any) -> Any:
        """The original times the mask."""
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> Any:
        """Prunes a module's parameter; gives the method, which is now one of the module's hooks."""
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        before = [
            (key, hook) for key, hook in module._forward_pre_hooks.items()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
        ]  # fmt: skip
        for key, old in before:
            container = PruningContainer(*(old if isinstance(old, PruningContainer) else (old,)))
            container._tensor_name = name
            container.add_pruning_method(method)
            method = container
            del module._forward_pre_hooks[key]
        original = getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}"
            )
        if before:
            default = getattr(module, name + "_mask").detach().clone()
        else:
            module.register_parameter(name + "_orig", module._parameters[name])
            del module._parameters[name]
            default = T.ones_like(original.detach())
        mask = method.compute_mask(scores.detach(), default)
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """The tensor with what this method chooses set to zero."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        default = T.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=default)

    def remove(self, module: Any) -> None:
        """Makes the pruned values the parameter."""
        name = self._tensor_name
        original = module._parameters[name + "_orig"]
        original.data = self.apply_mask(module).detach()
        del module._parameters[name + "_orig"], module._buffers[name + "_mask"]
        delattr(module, name)
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods, one after the other, on what those before have left."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        given = args[0] if len(args) == 1 and not isinstance(args[0], BasePruningMethod) else args
        if args and isinstance(args[0], BasePruningMethod):
            self._tensor_name = args[0]._tensor_name
        for method in given:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Adds one for the same parameter."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise ArgumentError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueRangeError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The last method's mask of what is left, within ``default_mask``."""
        method = self._pruning_methods[-1]
        where: Any
        if method.PRUNING_TYPE == "unstructured":
            where = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(
                    "Pruning methods of PRUNING_TYPE 'structured' need to have the attribute `dim` "
                    "defined."
                )
            dim = method.dim % t.dim()
            others = tuple([d for d in range(t.dim()) if d != dim])
            left = default_mask.sum(others) != 0
            where = (*[slice(None)] * dim, left)
        elif method.PRUNING_TYPE == "global":
            where = (slice(None),) * t.dim()
        else:
            raise ValueRangeError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask = default_mask.detach().clone()
        own = method.compute_mask(t[where], default_mask=default_mask[where])
        mask[where] = own.to(mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing: the parameter gets a mask of ones."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """``default_mask``."""
        return default_mask


class _Amount(BasePruningMethod):
    """Prunes an amount: a count, or a part from 0 to 1."""

    amount: Any

    def __init__(self, amount: Any) -> None:
        _check_amount(amount)
        self.amount = amount

    def count(self, size: int) -> int:
        """How many of ``size`` are pruned."""
        if not is_whole(self.amount):
            whole: int = round(self.amount * size)
            return whole
        if self.amount > size:
            raise ValueRangeError(
                f"amount={self.amount} should be smaller than the number of parameters to "
                f"prune={size}"
            )
        return int(self.amount)


def is_whole(amount: Any) -> bool:
    """Is it a count, and not a part?"""
    return isinstance(amount, numbers.Integral)


def _check_amount(amount: Any) -> None:
    if not isinstance(amount, (int, float, numbers.Real)):
        raise ArgumentError(f"Invalid type for amount: {amount}. Must be int or float.")
    if float(amount) < 0 or (not is_whole(amount) and float(amount) > 1.0):
        raise ValueRangeError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
            "integer"
        )


class _Elements(_Amount):
    """Prunes single elements."""

    def chosen(self, t: Any, count: int) -> Any:
        """The numbers of the elements to prune."""
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """``default_mask`` with zeros where this method prunes."""
        count = self.count(t.numel())
        mask = default_mask.clone().contiguous()
        if count:
            mask.view(-1)[self.chosen(t, count)] = 0
        return mask


class RandomUnstructured(_Elements):
    """Prunes elements at random."""

    def chosen(self, t: Any, count: int) -> Any:
        """Those with the largest random numbers."""
        return T.topk(T.rand_like(t).reshape(-1), count)[1]


class L1Unstructured(_Elements):
    """Prunes the elements with the smallest absolute values."""

    def chosen(self, t: Any, count: int) -> Any:
        """Those nearest to zero."""
        return T.topk(t.abs().reshape(-1), count, largest=False)[1]


class _Slices(_Amount):
    """Prunes whole slices along ``dim``."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def kept(self, t: Any, count: int) -> Any:
        """Which slices stay: an index along the dim."""
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """``default_mask`` with zeros in the slices that this method prunes."""
        if t.dim() <= 1:
            raise ValueRangeError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor "
                f"of shape {t.shape} with {t.dim()} dims"
            )
        if self.dim >= t.dim():
            raise OutOfRange(f"Invalid index {self.dim} for tensor of size {t.shape}")
        count = self.count(t.shape[self.dim])
        if not count:
            return default_mask
        mask = T.zeros_like(t)
        mask[(*[slice(None)] * (self.dim % t.dim()), self.kept(t, count))] = 1
        return mask * default_mask.to(dtype=mask.dtype)


class RandomStructured(_Slices):
    """Prunes slices at random."""

    def kept(self, t: Any, count: int) -> Any:
        """Those without the smallest random numbers."""
        drawn = T.rand((t.shape[self.dim],))
        return drawn > T.kthvalue(drawn, count)[0]


class LnStructured(_Slices):
    """Prunes the slices with the smallest ``n`` norm."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def kept(self, t: Any, count: int) -> Any:
        """Those with the largest norms."""
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        norms = T.norm(t, self.n, others)
        return T.topk(norms, t.shape[self.dim] - count)[1]


class CustomFromMask(BasePruningMethod):
    """Prunes where a given mask is zero."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """``default_mask`` times the mask."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape "
                f"{self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def identity(module: Any, name: str) -> Any:
    """Gives the parameter a mask of ones; gives the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prunes an amount of the parameter's elements at random; gives the module."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prunes the amount of elements with the smallest absolute values; gives the module.

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.prune.l1_unstructured.html.

    >>> from antorcha.nn.utils import prune
    >>> m = prune.l1_unstructured(torch.nn.Linear(2, 3), 'weight', amount=0.5)
    >>> int((m.weight == 0).sum())
    3
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prunes an amount of slices along ``dim`` at random; gives the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
) -> Any:
    """Prunes the amount of slices along ``dim`` with the smallest ``n`` norm; gives the module."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Any) -> Any:
    """Prunes the parameter where ``mask`` is zero; gives the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prunes several parameters as if they were one: ``parameters`` lists (module, name) pairs."""
    if not isinstance(parameters, Iterable):
        raise ArgumentError("global_unstructured(): parameters is not an Iterable")
    pairs = list(parameters)
    given = {} if importance_scores is None else importance_scores
    if not isinstance(given, dict):
        raise ArgumentError("global_unstructured(): importance_scores must be of type dict")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise ArgumentError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    scores = parameters_to_vector(
        [given.get((m, name), getattr(m, name)).detach() for m, name in pairs]
    )
    masks = [
        getattr(m, name + "_mask", T.ones_like(getattr(m, name).detach())) for m, name in pairs
    ]
    method._tensor_name = "temp"
    final = PruningContainer(method).compute_mask(scores, parameters_to_vector(masks))
    start = 0
    for module, name in pairs:
        size = getattr(module, name).numel()
        mask = final[start : start + size].reshape(getattr(module, name).shape)
        custom_from_mask(module, name, mask)
        start += size


def remove(module: Any, name: str) -> Any:
    """Makes pruning permanent: the parameter has its pruned values, mask and hook are gone."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueRangeError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
    )


def is_pruned(module: Any) -> bool:
    """Is a parameter of the module, or of one below it, pruned?"""
    return any([
        isinstance(hook, BasePruningMethod)
        for each in module.modules() for hook in each._forward_pre_hooks.values()
    ])  # fmt: skip
