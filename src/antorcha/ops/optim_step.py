"""Fused optimizer updates: one pass over a parameter, its gradient and its state.

An update is a function of one element of each that gives the new parameter and the new state; it is
compiled as one pointwise kernel with several outputs that writes over its inputs. Learning rates
and the like are run-time numbers: changing them compiles nothing. The order of operations is that
of PyTorch's unfused loops, so the values agree with them to the last bit or nearly so.

Updates are outside of any graph. They bump the versions of what they write, as any write does.
:meth:`UpdateStep.recorded` is the other way, for ``differentiable=True``: the same function as an
op with derivatives.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core.device import backend
from antorcha.core.lazy import lazy
from antorcha.core.shapes import may_overlap
from antorcha.errors import ShapeError
from antorcha.lang import expr as E
from antorcha.lang.kernels import Pointwise
from antorcha.ops.kinds.operands import common_device
from antorcha.ops.kinds.record import T
from antorcha.runtime.call.plan import remember, table
from antorcha.runtime.tensor import Tensor

ops_user = lazy("antorcha.ops.kinds.user")

Update = Callable[..., Any]


class UpdateStep:
    """An update, compiled once for each combination of layouts and flags.

    ``fn(param, grad, *state, *numbers, **flags)`` gives (param, \\*state). Flags are booleans that
    change what is computed; :meth:`flags` packs them into one number, made once for a group.
    """

    def __init__(self, fn: Update) -> None:
        self.fn = fn
        self.name = fn.__name__.strip("_")
        self.names = inspect.getfullargspec(fn).kwonlyargs
        self.plans: dict[Any, Any] = table()
        self.op: Any = None  # the update as an op: see `recorded`

    def flags(self, **values: bool) -> int:
        """The flags as one number."""
        return sum([1 << k for k, name in enumerate(self.names) if values[name]])

    def __call__(self, tensors: Sequence[Tensor], numbers: tuple[float, ...], flags: int) -> None:
        """Updates ``tensors`` = (param, grad, \\*state) in place; the gradient is only read."""
        key = (flags, *[t._layout for t in tensors])
        launch = self.plans.get(key)
        if launch is None:
            launch = remember(self.plans, key, self._compile(tensors, len(numbers), flags))
        flat: list[Any] = []
        for t in tensors:
            flat += (t._storage, t._offset)
        launch.into(*flat[:2], *flat[4:], *flat, *numbers)
        tensors[0]._storage.version += 1
        for t in tensors[2:]:
            t._storage.version += 1

    def stateless(
        self, params: Sequence[Tensor], numbers: tuple[float, ...], flags: int
    ) -> list[Tensor]:
        """The same for parameters without state, by their gradients: a shorter way. It gives those
        that it leaves alone, as they have not been met before."""
        plans, left = self.plans, []
        for p in params:
            g: Any = p._grad
            launch = plans.get((flags, p._layout, g._layout))
            if launch is None:
                left.append(p)
                continue
            storage, at = p._storage, p._offset
            launch.into(storage, at, storage, at, g._storage, g._offset, *numbers)
            storage.version += 1
        return left

    def recorded(self, tensors: Sequence[Tensor], numbers: Sequence[Any], flags: int) -> None:
        """The same as ops that autograd records; ``numbers`` may be 0-dim tensors.

        The op reads copies of what is written afterwards: its derivative needs the old values.
        """
        if self.op is None:
            self.op = ops_user.UserKernel(self.fn, "promote", self.name)
        values = {name: bool(flags >> k & 1) for k, name in enumerate(self.names)}
        param, grad, *state = tensors
        result = self.op(T.clone(param), grad, *[T.clone(t) for t in state], *numbers, **values)
        results = result if isinstance(result, tuple) else (result,)
        for target, value in zip((param, *state), results, strict=True):
            target.copy_(value)

    def _compile(self, tensors: Sequence[Tensor], numbers: int, flags: int) -> Any:
        layouts = [t._layout for t in tensors]
        param = layouts[0]
        for layout, what in zip(layouts[1:], ("gradient", *["state"] * len(layouts)), strict=False):
            if layout.shape != param.shape:
                raise ShapeError(
                    f"{self.name}: the parameter has shape {tuple(param.shape)}, its {what} "
                    f"{tuple(layout.shape)}"
                )
        for layout in (param, *layouts[2:]):
            if may_overlap(layout.shape, layout.strides):
                raise ShapeError(
                    f"{self.name}: unsupported operation: more than one element of the written-to "
                    f"tensor (shape {tuple(layout.shape)}, strides {layout.strides}) refers to a "
                    "single memory location. Please clone() the tensor before performing the "
                    "operation."
                )
        dtype = param.dtype
        n = len(layouts)
        args = [E.input_(k, dtype) for k in range(n + numbers)]
        values = {name: bool(flags >> k & 1) for k, name in enumerate(self.names)}
        result = self.fn(*args, **values)
        exprs = tuple(
            [E.cast(e, dtype) for e in (result if isinstance(result, tuple) else (result,))]
        )
        outs = (param, *layouts[2:])
        where = backend(common_device(self.name, layouts))
        return where.compile(Pointwise(exprs), outs, [*layouts, *[float] * numbers])


def _with_decay(g: Any, p: Any, weight_decay: Any, maximize: bool, decay: bool) -> Any:
    """The gradient as the update uses it."""
    if maximize:
        g = -g
    return E.fma(p, weight_decay, g) if decay else g


@UpdateStep
def sgd(p, g, lr, weight_decay, *, maximize, decay):
    """``p - lr * g``."""
    g = _with_decay(g, p, weight_decay, maximize, decay)
    return E.fma(g, -lr, p)


@UpdateStep
def sgd_first(p, g, buf, lr, momentum, weight_decay, *, maximize, decay, nesterov):
    """The first step with momentum: the buffer becomes the gradient."""
    g = _with_decay(g, p, weight_decay, maximize, decay)
    step = E.fma(g, momentum, g) if nesterov else g
    return E.fma(step, -lr, p), g


@UpdateStep
def sgd_momentum(p, g, buf, lr, momentum, rate, weight_decay, *, maximize, decay, nesterov):
    """``buf = momentum*buf + rate*g; p - lr*buf``; rate is 1 - dampening."""
    g = _with_decay(g, p, weight_decay, maximize, decay)
    buf = E.fma(g, rate, buf * momentum)
    step = E.fma(buf, momentum, g) if nesterov else buf
    return E.fma(step, -lr, p), buf


def _lerp(start: Any, end: Any, weight: Any, near: bool) -> Any:
    """Linear interpolation; ``near``: the weight is below one half."""
    if near:
        return E.fma(weight, end - start, start)
    return E.fma(end - start, weight - 1, end)


@UpdateStep
def adam(
    p, g, mean, square, rate1, beta2, rate2, step_size, root, eps, weight_decay, *, maximize, decay,
    decoupled, near,
):  # fmt: skip
    """Adam: rate1 = 1 - beta1, rate2 = 1 - beta2, root = sqrt(1 - beta2^t), step_size =
    lr / (1 - beta1^t). ``decoupled``: weight_decay is 1 - lr*decay and scales the parameter."""
    if decoupled:
        p = p * weight_decay
    g = _with_decay(g, p, weight_decay, maximize, decay)
    mean = _lerp(mean, g, rate1, near)
    square = E.fma(rate2 * g, g, square * beta2)
    bottom = E.sqrt(square) / root + eps
    return p + (-step_size) * mean / bottom, mean, square


@UpdateStep
def adam_amsgrad(
    p, g, mean, square, largest, rate1, beta2, rate2, step_size, root, eps, weight_decay, *,
    maximize, decay, decoupled, near,
):  # fmt: skip
    """Adam that divides by the largest mean square so far (Reddi et al., 2018)."""
    if decoupled:
        p = p * weight_decay
    g = _with_decay(g, p, weight_decay, maximize, decay)
    mean = _lerp(mean, g, rate1, near)
    square = E.fma(rate2 * g, g, square * beta2)
    largest = E.maximum(largest, square)
    bottom = E.sqrt(largest) / root + eps
    return p + (-step_size) * mean / bottom, mean, square, largest


@UpdateStep
def adagrad(p, g, total, lr, eps, weight_decay, *, maximize, decay):
    """``total += g^2; p - lr * g / (sqrt(total) + eps)``."""
    g = _with_decay(g, p, weight_decay, maximize, decay)
    total = E.fma(g, g, total)
    return p + (-lr) * g / (E.sqrt(total) + eps), total


@UpdateStep
def rmsprop(p, g, square, lr, alpha, rate, eps, weight_decay, *, maximize, decay):
    """``square = alpha*square + rate*g^2; p - lr * g / (sqrt(square) + eps)``."""
    g = _with_decay(g, p, weight_decay, maximize, decay)
    square = E.fma(rate * g, g, square * alpha)
    return p + (-lr) * g / (E.sqrt(square) + eps), square


@UpdateStep
def rmsprop_momentum(
    p, g, square, buf, lr, alpha, rate, eps, weight_decay, momentum, *, maximize, decay
):
    """RMSprop with a momentum buffer of the divided gradients."""
    g = _with_decay(g, p, weight_decay, maximize, decay)
    square = E.fma(rate * g, g, square * alpha)
    buf = buf * momentum + g / (E.sqrt(square) + eps)
    return E.fma(buf, -lr, p), square, buf


@UpdateStep
def rmsprop_centered(
    p, g, square, mean, lr, alpha, rate, eps, weight_decay, *, maximize, decay, near
):
    """RMSprop that divides by the standard deviation instead of the root mean square."""
    g = _with_decay(g, p, weight_decay, maximize, decay)
    square = E.fma(rate * g, g, square * alpha)
    mean = _lerp(mean, g, rate, near)
    bottom = E.sqrt(E.fma(-mean, mean, square)) + eps
    return p + (-lr) * g / bottom, square, mean


@UpdateStep
def rmsprop_centered_momentum(
    p, g, square, mean, buf, lr, alpha, rate, eps, weight_decay, momentum, *, maximize, decay, near
):
    """Both: centred, with a momentum buffer."""
    g = _with_decay(g, p, weight_decay, maximize, decay)
    square = E.fma(rate * g, g, square * alpha)
    mean = _lerp(mean, g, rate, near)
    buf = buf * momentum + g / (E.sqrt(E.fma(-mean, mean, square)) + eps)
    return E.fma(buf, -lr, p), square, mean, buf


@UpdateStep
def adadelta(p, g, square, total, lr, rho, rate, eps, weight_decay, *, maximize, decay):
    """``delta = sqrt(total + eps) / sqrt(square + eps) * g; p - lr * delta``, where ``square`` and
    ``total`` are running means of g^2 and of delta^2; rate is 1 - rho."""
    g = _with_decay(g, p, weight_decay, maximize, decay)
    square = E.fma(rate * g, g, square * rho)
    delta = E.sqrt(total + eps) / E.sqrt(square + eps) * g
    total = E.fma(rate * delta, delta, total * rho)
    return E.fma(delta, -lr, p), square, total


@UpdateStep
def adamax(
    p, g, mean, largest, rate1, beta2, step_size, eps, weight_decay, *, maximize, decay, near
):
    """``largest = max(beta2 * largest, |g| + eps); p - step_size * mean / largest``."""
    g = _with_decay(g, p, weight_decay, maximize, decay)
    mean = _lerp(mean, g, rate1, near)
    largest = E.maximum(largest * beta2, E.abs(g) + eps)
    return p + (-step_size) * mean / largest, mean, largest


@UpdateStep
def asgd(p, g, average, shrink, eta, mu, weight_decay, *, maximize, decay, averaging):
    """``p = shrink*p - eta*g``; the average follows p by the share mu, or is p."""
    g = _with_decay(g, p, weight_decay, maximize, decay)
    p = E.fma(g, -eta, p * shrink)
    return p, average + (p - average) * mu if averaging else p


@UpdateStep
def nadam(
    p, g, mean, square, rate1, beta2, rate2, correction, size_g, size_mean, eps, weight_decay, *,
    maximize, decay, decoupled, near,
):  # fmt: skip
    """Adam with Nesterov momentum: a step along g and one along the mean, of sizes of their own;
    correction = 1 - beta2^t. ``decoupled``: weight_decay is 1 - lr*decay and scales p."""
    if decoupled:
        p = p * weight_decay
    g = _with_decay(g, p, weight_decay, maximize, decay)
    mean = _lerp(mean, g, rate1, near)
    square = E.fma(rate2 * g, g, square * beta2)
    bottom = E.sqrt(square / correction) + eps
    return p + (-size_g) * g / bottom + (-size_mean) * mean / bottom, mean, square


@UpdateStep
def radam(
    p, g, mean, square, rate1, beta2, rate2, correction, lr, root, rectify, eps, weight_decay, *,
    maximize, decay, decoupled, near, rectified,
):  # fmt: skip
    """Rectified Adam: correction = 1 - beta1^t, root = sqrt(1 - beta2^t). Not ``rectified``: plain
    momentum, while too few squares have been seen."""
    if decoupled:
        p = p * weight_decay
    g = _with_decay(g, p, weight_decay, maximize, decay)
    mean = _lerp(mean, g, rate1, near)
    square = E.fma(rate2 * g, g, square * beta2)
    step = mean / correction * lr
    if rectified:
        step = step * (root / (E.sqrt(square) + eps)) * rectify
    return p - step, mean, square


@UpdateStep
def rprop(p, g, previous, size, shrink, grow, least, most, *, maximize):
    """The sign of the gradient times a step size that grows while the sign stays and shrinks when
    it changes; after a change the gradient counts as 0."""
    g = -g if maximize else g
    turn = E.sign(g * previous)
    size = size * E.where(turn > 0, grow, E.where(turn < 0, shrink, 1))
    size = E.minimum(E.maximum(size, least), most)
    g = E.where(turn < 0, 0, g)
    return E.fma(-E.sign(g), size, p), g, size


@UpdateStep
def along(p, direction, shrink, size):
    """``shrink*p - size*direction``, for optimizers that work their direction out otherwise."""
    return E.fma(direction, -size, p * shrink)
