"""Initial values of parameters: ``torch.nn.init``.

Every function fills a tensor in place, outside of any graph, and gives it back. The random numbers
are PyTorch's: the same draws in the same order, so a seed gives the same network.
See https://docs.pytorch.org/docs/stable/nn.init.html.
"""

from __future__ import annotations

import math
from typing import Any

from antorcha.autograd import no_grad
from antorcha.errors import ValueRangeError, explain_missing, warn
from antorcha.ops.kinds.record import T

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_",
    "normal_", "ones_", "orthogonal_", "sparse_", "trunc_normal_", "uniform_", "xavier_normal_",
    "xavier_uniform_", "zeros_",
]  # fmt: skip

_LINEAR = (
    "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "sigmoid",
)  # fmt: skip


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """The factor by which a nonlinearity wants its weights' standard deviation enlarged.

    linear, conv, sigmoid: 1; tanh: 5/3; relu: sqrt(2); leaky_relu: sqrt(2 / (1 + slope^2));
    selu: 3/4.

    >>> torch.nn.init.calculate_gain('leaky_relu', 0.2)
    1.3867504905630728
    """
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "selu":
        return 3.0 / 4
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueRangeError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    raise ValueRangeError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Fills with draws from the uniform distribution over [a, b).

    >>> torch.nn.init.uniform_(torch.empty(3, 5)).shape
    torch.Size([3, 5])
    """
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Fills with draws from the normal distribution."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Any,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Any:
    """Fills with draws from the normal distribution restricted to [a, b].

    By rejection: from the normal distribution itself where the interval holds more than 30 % of it,
    else from the uniform distribution under the density's peak.

    >>> bool(torch.nn.init.trunc_normal_(torch.empty(100)).abs().max() <= 2)
    True
    """
    if tensor.is_meta:
        return tensor
    if mean < a - 2 * std or mean > b + 2 * std:
        warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
        )
    with no_grad():
        if _below((b - mean) / std) - _below((a - mean) / std) > 0.3:
            return _reject_normal(tensor, mean, std, a, b, generator)
        return _reject_uniform(tensor, mean, std, a, b, generator)


def _below(x: float) -> float:
    """The standard normal distribution's share below x."""
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def _reject_normal(t: Any, mean: float, std: float, a: float, b: float, generator: Any) -> Any:
    low, high = t.new_tensor(a).item(), t.new_tensor(b).item()  # as the dtype rounds them
    t.normal_(mean, std, generator=generator)
    while True:
        outside = (t < low) | (t > high)
        if not outside.any():
            return t
        again = T.empty_like(t).normal_(mean, std, generator=generator)
        t.copy_(T.where(outside, again, t))


def _reject_uniform(t: Any, mean: float, std: float, a: float, b: float, generator: Any) -> Any:
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    candidates, heights = T.empty_like(t), T.empty_like(t)

    def rejected() -> Any:
        """Which candidates lie above the density, relative to its peak (in logarithms)."""
        candidates.sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
        return heights.uniform_(generator=generator).log_().gt(candidates)

    t.uniform_(a, b, generator=generator)
    candidates.copy_(t)
    pending = rejected()
    while pending.any():
        candidates.uniform_(a, b, generator=generator)
        t.copy_(T.where(pending, candidates, t))
        pending = T.where(pending, rejected(), pending)
    return t


def constant_(tensor: Any, val: float) -> Any:
    """Fills with one value.

    >>> torch.nn.init.constant_(torch.empty(2), 0.3)
    tensor([0.3000, 0.3000])
    """
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Any) -> Any:
    """Fills with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Any) -> Any:
    """Fills with zeros."""
    return constant_(tensor, 0.0)


def eye_(tensor: Any) -> Any:
    """Makes a matrix the identity: a linear layer passes on as many inputs as it can.

    >>> torch.nn.init.eye_(torch.empty(2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    if tensor.ndim != 2:
        raise ValueRangeError("Only tensors with 2 dimensions are supported")
    with no_grad():
        tensor.zero_()
        for k in range(min(tensor.shape)):
            tensor[k, k] = 1
        return tensor


def dirac_(tensor: Any, groups: int = 1) -> Any:
    """Makes a convolution's weight (3 to 5 dims) pass its input channels on unchanged.

    With ``groups`` > 1 each group of output channels passes on the inputs from the first.
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueRangeError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.shape
    if sizes[0] % groups:
        raise ValueRangeError("dim 0 must be divisible by groups")
    out_each = sizes[0] // groups
    centre = tuple([n // 2 for n in sizes[2:]])
    with no_grad():
        tensor.zero_()
        for g in range(groups):
            for k in range(min(out_each, sizes[1])):
                tensor[(g * out_each + k, k, *centre)] = 1
        return tensor


def _calculate_fan_in_and_fan_out(tensor: Any) -> tuple[int, int]:
    """How many inputs each output of a weight has, and how many outputs each input feeds."""
    shape = tensor.shape
    if len(shape) < 2:
        raise ValueRangeError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def _calculate_correct_fan(tensor: Any, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueRangeError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Uniform in (-a, a), ``a = gain * sqrt(6 / (fan_in + fan_out))``.

    Glorot & Bengio, "Understanding the difficulty of training deep feedforward neural networks"
    (2010).

    >>> w = torch.nn.init.xavier_uniform_(torch.empty(3, 5))
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Normal with mean 0 and ``std = gain * sqrt(2 / (fan_in + fan_out))`` (Glorot & Bengio)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return normal_(tensor, 0.0, std, generator)


def _kaiming_std(tensor: Any, a: float, mode: str, nonlinearity: str) -> float:
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def _nothing_to_fill(tensor: Any) -> bool:
    if 0 in tensor.shape:
        warn("Initializing zero-element tensors is a no-op")
        return True
    return False


def kaiming_uniform_(
    tensor: Any,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:
    """Uniform in (-bound, bound), ``bound = gain * sqrt(3 / fan)``.

    He et al., "Delving deep into rectifiers" (2015).

    Args:
        tensor (Tensor): what to fill
        a (float): the slope for negative values, of leaky_relu
        mode (str): ``"fan_in"`` keeps the variance of the forward pass, ``"fan_out"`` that of the
            backward pass
        nonlinearity (str): see :func:`calculate_gain`

    >>> w = torch.nn.init.kaiming_uniform_(torch.empty(3, 5), nonlinearity='relu')
    """
    if _nothing_to_fill(tensor):
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Any,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:
    """Normal with mean 0 and ``std = gain / sqrt(fan)``; arguments as :func:`kaiming_uniform_`."""
    if _nothing_to_fill(tensor):
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Any, gain: float = 1, generator: Any = None) -> Any:
    """Fills a matrix with orthonormal rows or columns (later dims are flattened), times ``gain``.

    Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural
    networks" (2013).

    >>> w = torch.nn.init.orthogonal_(torch.empty(2, 2))
    >>> torch.allclose(w @ w.T, torch.eye(2), atol=1e-6)
    True
    """
    if tensor.ndim < 2:
        raise ValueRangeError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    with no_grad():
        flat = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
        if rows < cols:
            flat = flat.t()
        q, r = T.linalg_qr(flat)
        q = q * r.diagonal().sign()  # the signs make the distribution uniform
        if rows < cols:
            q = q.t()
        tensor.view_as(q).copy_(q)
        return tensor.mul_(gain)


def sparse_(tensor: Any, sparsity: float, std: float = 0.01, generator: Any = None) -> Any:
    """Fills a matrix with normal draws, and sets a share ``sparsity`` of each column to zero.

    Martens, "Deep learning via Hessian-free optimization" (2010).
    """
    if tensor.ndim != 2:
        raise ValueRangeError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(cols):
            tensor[T.randperm(rows)[:zeros], column] = 0
    return tensor


def uniform_by_fan_in(weight: Any, bias: Any) -> Any:
    """A layer's bias: uniform in (-1/sqrt(fan_in), 1/sqrt(fan_in)) of its weight."""
    fan_in = _calculate_fan_in_and_fan_out(weight)[0]
    bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
    return uniform_(bias, -bound, bound)


def _deprecated(fn: Any) -> Any:
    old = fn.__name__[:-1]

    def named(*args: Any, **kwargs: Any) -> Any:
        warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{fn.__name__}`.",
            FutureWarning,
        )  # fmt: skip
        return fn(*args, **kwargs)

    named.__name__, named.__doc__ = old, f"The old name of :func:`{fn.__name__}`."
    return named


for _fn in (uniform_, normal_, constant_, eye_, dirac_, xavier_uniform_, xavier_normal_,
            kaiming_uniform_, kaiming_normal_, orthogonal_, sparse_):  # fmt: skip
    globals()[_fn.__name__[:-1]] = _deprecated(_fn)

explain_missing("torch.nn.init", globals())
