"""A derivative of one's own: autograd.Function, checked with finite differences.

    antorcha run examples/custom_function.py

log(1 + exp(x)) overflows when written as it reads. The class below computes it safely, saves one
tensor for the backward pass, and can itself be differentiated twice.
"""

import torch
from torch.autograd import Function, gradcheck, gradgradcheck


class SoftPlus(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0) + torch.log1p(torch.exp(-x.abs()))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * torch.sigmoid(x)  # of differentiable operations: second order works


class RoundStraightThrough(Function):
    """Rounds forward, and backward does as if it had not: a gradient that is no derivative."""

    @staticmethod
    def forward(ctx, x, step):
        ctx.step = step  # what is no tensor is kept on the context itself
        return torch.round(x / step) * step

    @staticmethod
    def backward(ctx, grad):
        return grad, None  # one for each argument of forward; a number has no gradient


class Wrong(Function):
    """Its backward forgets the factor 2; gradcheck must notice."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x


def main():
    x = torch.tensor([-1000.0, -1.0, 0.0, 1.0, 1000.0])
    print("as it reads:", torch.log(1 + torch.exp(x)))
    print("safely:     ", SoftPlus.apply(x))

    torch.manual_seed(0)
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    first, second = gradcheck(SoftPlus.apply, (x,)), gradgradcheck(SoftPlus.apply, (x,))
    print("first order: ", first)
    print("second order:", second)
    print("the node:    ", type(SoftPlus.apply(x).grad_fn).__name__)

    rounded = RoundStraightThrough.apply(x, 0.5)
    rounded.sum().backward()
    print("straight through:", rounded[0].tolist(), "gradient", x.grad[0].tolist())

    # raise_exception=True, the default, would show the two Jacobians beside each other.
    caught = not gradcheck(Wrong.apply, (x,), raise_exception=False)
    print(f"gradcheck passes the right one: {first and second}; catches the wrong one: {caught}")


if __name__ == "__main__":
    main()
