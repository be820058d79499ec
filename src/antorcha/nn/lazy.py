"""Lazy modules: layers that learn their input's size from their first input.

Until then their parameters have no shape (:class:`UninitializedParameter`); a hook before the first
``forward`` gives them one, draws them, and turns the layer into the ordinary one. All the lazy
classes below follow from their ordinary class.
"""

from __future__ import annotations

import inspect
from typing import Any

from antorcha.autograd import no_grad
from antorcha.core import dtypes
from antorcha.errors import ShapeError, ValueRangeError
from antorcha.nn import conv, linear, norm
from antorcha.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from antorcha.ops.kinds.record import T


class LazyModuleMixin:
    """Makes a module lazy: comes before the ordinary class among a class's bases.

    The subclass makes ``UninitializedParameter`` s in ``__init__`` and has
    ``initialize_parameters(*args)``, which is called with the first input and gives them their
    shapes; ``cls_to_become`` is the class that the module has from then on.

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.modules.lazy.LazyModuleMixin.html.

    >>> net = torch.nn.Sequential(torch.nn.LazyLinear(2), torch.nn.ReLU())
    >>> net[0].weight
    <UninitializedParameter>
    >>> net(torch.zeros(4, 3)).shape
    torch.Size([4, 2])
    >>> net[0]
    Linear(in_features=3, out_features=2, bias=True)
    """

    cls_to_become: Any = None
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def _save_to_state_dict(self: Any, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, value in self._own_state():
            destination[prefix + name] = value if is_lazy(value) or keep_vars else value.detach()

    def _lazy_load_hook(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        """Gives lazy parameters the shapes of those that are about to be loaded."""
        for name, own in (*self._parameters.items(), *self._buffers.items()):
            value = state_dict.get(prefix + name)
            if value is not None and is_lazy(own) and not is_lazy(value):
                with no_grad():
                    own.materialize(value.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Gives the parameters their shapes and values; every subclass has its own."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Is there a parameter or buffer without a shape yet?"""
        return any([is_lazy(v) for v in (*self._parameters.values(), *self._buffers.values())])

    def _infer_parameters(self: Any, module: Any, args: Any, kwargs: Any = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise ShapeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become


class LazyLinear(LazyModuleMixin, linear.Linear):
    """A :class:`Linear` that takes ``in_features`` from its first input.

    Args:
        out_features (int): size of each output sample
        bias (bool): learn an addend? Default: True

    Shape: as :class:`Linear`'s. Weight and bias are initialised at the first call, as Linear's.

    >>> torch.nn.LazyLinear(3)(torch.zeros(2, 5)).shape
    torch.Size([2, 3])
    """

    cls_to_become = linear.Linear

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draws weight and bias afresh, once they have a shape."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Any) -> None:
        """Takes ``in_features`` from the input."""
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:  # loaded before the first input
            if input.shape[-1] != self.weight.shape[-1]:
                raise AssertionError(
                    f"The in_features inferred from input: {input.shape[-1]} is not equal to "
                    f"in_features from self.weight: {self.weight.shape[-1]}"
                )
            self.in_features = input.shape[-1]


class _LazyConvXdMixin(LazyModuleMixin):
    """What lazy convolutions share; the signature is the ordinary one without ``in_channels``."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        names = list(inspect.signature(self.cls_to_become.__init__).parameters)[2:]
        if len(args) > len(names):
            inspect.signature(type(self)).bind(*args, **kwargs)  # raises the usual error
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        where: dict[str, Any] = {"device": given.get("device"), "dtype": given.get("dtype")}
        wanted, out = given.pop("bias", True), given.pop("out_channels")
        super().__init__(0, 0, bias=False, **given)
        self.weight = UninitializedParameter(**where)
        self.out_channels = out
        if wanted:
            self.bias = UninitializedParameter(**where)

    def reset_parameters(self: Any) -> None:
        """Draws weight and bias afresh, once they have a shape."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self: Any, input: Any, *args: Any, **kwargs: Any) -> None:
        """Takes ``in_channels`` from the input."""
        if not self.has_uninitialized_params():
            return
        n = self.ndim
        if input.dim() not in (n + 1, n + 2):
            raise ShapeError(
                "Expected {one}D (unbatched) or {many}D (batched) input to {layer}, but got input "
                "of size: {size}",
                reason="conv dims", operands=(input,), one=n + 1, many=n + 2,
                layer=type(self).__name__, size=input.shape,
            )  # fmt: skip
        self.in_channels = input.shape[-n - 1]
        if self.in_channels % self.groups:
            raise ValueRangeError("in_channels must be divisible by groups")
        channels = (
            (self.in_channels, self.out_channels // self.groups)
            if self.transposed else (self.out_channels, self.in_channels // self.groups)
        )  # fmt: skip
        self.weight.materialize((*channels, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class _LazyNormBase(LazyModuleMixin):
    """What lazy normalisations share; the signature is the ordinary one without
    ``num_features``."""

    def __init__(
        self: Any, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: Any = None, dtype: Any = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine, self.track_running_stats = affine, track_running_stats
        where: dict[str, Any] = {"device": device, "dtype": dtype}
        if affine:
            self.weight = UninitializedParameter(**where)
            if bias:
                self.bias = UninitializedParameter(**where)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**where)
            self.running_var = UninitializedBuffer(**where)
            self.num_batches_tracked = T.zeros((), dtype=dtypes.int64, device=device)

    def reset_parameters(self: Any) -> None:
        """Scale 1, shift 0, fresh statistics, once they have a shape."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self: Any, input: Any) -> None:
        """Takes ``num_features`` from the input."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        for value in (self.weight, self.bias, self.running_mean, self.running_var):
            if is_lazy(value):
                value.materialize((self.num_features,))
        self.reset_parameters()


_DOC = """A :class:`{name}` that takes ``{what}`` from its first input's size.

Args: those of :class:`{name}` but ``{what}``.

Shape and initial values are those of :class:`{name}`; before the first input there are none.

>>> torch.nn.Lazy{name}({call})(torch.zeros(1, 2{sizes})).shape
torch.Size([1, {out}])
"""


def _class(
    kind: type,
    base: type,
    what: str,
    call: str,
    shown: str,
    parent: type | None = None,
    **more: Any,
) -> Any:
    name = base.__name__
    n = int(name[-2])
    doc = _DOC.format(name=name, what=what, call=call, sizes=", 4" * n, out=shown)
    members = {"__doc__": doc, "__module__": __name__, "cls_to_become": base}
    return type(f"Lazy{name}", (kind, parent or base), {**more, **members})


def _conv(base: type) -> Any:
    n = int(base.__name__[-2])
    return _class(_LazyConvXdMixin, base, "in_channels", "3, 1", ", ".join(["3", *["4"] * n]))


def _norm(base: type) -> Any:
    n = int(base.__name__[-2])
    # As in PyTorch a LazyBatchNorm2d is no BatchNorm2d before it becomes one: it has its parent,
    # and what it defines.
    own = {name: value for name, value in vars(base).items() if not name.startswith("__")}
    shown = ", ".join(["2", *["4"] * n])
    return _class(_LazyNormBase, base, "num_features", "", shown, base.__bases__[0], **own)


LazyConv1d, LazyConv2d, LazyConv3d = _conv(conv.Conv1d), _conv(conv.Conv2d), _conv(conv.Conv3d)
LazyConvTranspose1d = _conv(conv.ConvTranspose1d)
LazyConvTranspose2d = _conv(conv.ConvTranspose2d)
LazyConvTranspose3d = _conv(conv.ConvTranspose3d)
LazyBatchNorm1d, LazyBatchNorm2d = _norm(norm.BatchNorm1d), _norm(norm.BatchNorm2d)
LazyBatchNorm3d = _norm(norm.BatchNorm3d)
LazyInstanceNorm1d, LazyInstanceNorm2d = _norm(norm.InstanceNorm1d), _norm(norm.InstanceNorm2d)
LazyInstanceNorm3d = _norm(norm.InstanceNorm3d)
