"""The updates of the optimizers, one function each (:class:`~antorcha.ops.update_step.UpdateStep`).

Learning rates and the like are run-time numbers: changing them compiles nothing. The order of
operations is that of PyTorch's unfused loops, so the values agree with them to the last bit or
nearly so.

Numbers that depend on how many steps there have been are worked out by a function beside the update
(``derive``): by the host, or, where a count lies in a GPU's memory, by the update's kernel itself.
"""

from __future__ import annotations

from typing import Any

from antorcha.lang import expr as E
from antorcha.ops.update_step import CountStep, UpdateStep, power, root, unseen


def _with_decay(g: Any, p: Any, weight_decay: Any, maximize: bool, decay: bool) -> Any:
    """The gradient as the update uses it."""
    if maximize:
        g = -g
    return E.fma(p, weight_decay, g) if decay else g


@CountStep
def count(step):
    """One more step."""
    return step + 1


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


@adam.derive
def adam_numbers(step, lr, beta1, beta2, rate1, rate2, log1, log2, eps, decay, share):
    """log1, log2: of the betas; weight_decay is decay - lr*share."""
    size, bottom = lr / unseen(step, beta1, log1), root(unseen(step, beta2, log2))
    return rate1, beta2, rate2, size, bottom, eps, less(decay, lr, share)


def less(decay: Any, lr: Any, share: Any) -> Any:
    """decay - lr*share, where there is one."""
    return decay if share is None else decay - lr * share


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


adam_amsgrad.derive(adam_numbers)


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


@adamax.derive
def adamax_numbers(step, lr, beta1, beta2, rate1, log1, eps, decay):
    """log1: of beta1."""
    return rate1, beta2, lr / unseen(step, beta1, log1), eps, decay


@UpdateStep
def asgd(p, g, average, shrink, eta, mu, weight_decay, *, maximize, decay, averaging):
    """``p = shrink*p - eta*g``; the average follows p by the share mu, or is p."""
    g = _with_decay(g, p, weight_decay, maximize, decay)
    p = E.fma(g, -eta, p * shrink)
    return p, average + (p - average) * mu if averaging else p


@asgd.derive
def asgd_numbers(eta, mu, lambd, decay):
    """Of what the last step left."""
    return 1 - lambd * eta, eta, mu, decay


@CountStep
def asgd_count(eta, mu, step, lr, lambd, alpha, t0):
    """eta and mu for the step after this one."""
    eta = lr / E.pow(lambd * lr * step + 1, alpha)
    return eta, 1 / E.maximum(step - t0, 1)


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


LOG_OF_096 = -0.040821994520255166


def nadam_momentum(step: Any, beta1: Any, momentum_decay: Any) -> Any:
    """The momentum at a step."""
    return beta1 * (1.0 - 0.5 * power(0.96, step * momentum_decay, LOG_OF_096))


@nadam.derive
def nadam_numbers(
    step, product, lr, beta1, beta2, rate1, rate2, log2, eps, decay, share, momentum_decay
):
    """product: of the momenta so far; log2: of beta2; weight_decay is decay - lr*share."""
    mu, after = [nadam_momentum(t, beta1, momentum_decay) for t in (step, step + 1)]
    size_g = lr * (1.0 - mu) / (1.0 - product)
    size_mean = lr * after / (1.0 - product * after)
    correction = unseen(step, beta2, log2)
    return rate1, beta2, rate2, correction, size_g, size_mean, eps, less(decay, lr, share)


@CountStep
def nadam_count(step, product, beta1, momentum_decay):
    """One more step, and the product of the momenta."""
    step = step + 1
    return step, product * nadam_momentum(step, beta1, momentum_decay)


@UpdateStep
def radam(
    p, g, mean, square, rate1, beta2, rate2, correction, lr, root, rectify, eps, weight_decay, *,
    maximize, decay, decoupled, near, rectified, judged,
):  # fmt: skip
    """Rectified Adam: correction = 1 - beta1^t, root = sqrt(1 - beta2^t). Not ``rectified``: plain
    momentum, while too few squares have been seen; ``judged``: ``rectify`` is then 0."""
    if decoupled:
        p = p * weight_decay
    g = _with_decay(g, p, weight_decay, maximize, decay)
    mean = _lerp(mean, g, rate1, near)
    square = E.fma(rate2 * g, g, square * beta2)
    step = mean / correction * lr
    if rectified:
        whole = step * (root / (E.sqrt(square) + eps)) * rectify
        step = E.where(rectify > 0, whole, step) if judged else whole
    return p - step, mean, square


@radam.derive
def radam_numbers(
    step, lr, beta2, rate1, rate2, log1, log2, longest, eps, decay, share
):  # fmt: skip
    """log1, log2: of the betas; longest = 2/(1 - beta2) - 1; weight_decay is decay - lr*share."""
    unseen2 = unseen(step, beta2, log2)
    length = longest - 2 * step * (1 - unseen2) / unseen2
    square = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
    rectify = E.where(length > 5, E.sqrt(square), 0)
    correction = unseen(step, None, log1)
    decay = less(decay, lr, share)
    return rate1, beta2, rate2, correction, lr, root(unseen2), rectify, eps, decay


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
