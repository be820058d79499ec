"""``torch.nn.grad``: the gradients of convolutions, as functions.

See https://docs.pytorch.org/docs/stable/nn.functional.html.
"""

from __future__ import annotations

from typing import Any

from antorcha.autograd import enable_grad, grad
from antorcha.errors import explain_missing
from antorcha.nn import functional as F
from antorcha.ops.kinds.record import T

__all__ = [
    "conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input",
    "conv3d_weight",
]  # fmt: skip

_DOC = """The gradient of ``conv{d}d`` with respect to its {what}.

Args:
    {args}
    grad_output (Tensor): the gradient of the result
    stride, padding, dilation, groups: those of the convolution

>>> x, w = torch.ones(1, 1, {example}), torch.ones(1, 1, {window})
>>> g = torch.ones_like(torch.nn.functional.conv{d}d(x, w))
>>> torch.nn.grad.conv{d}d_{name}({call}, g).shape
torch.Size([1, 1, {result}])
"""


def _gradient(convolve: Any, input: Any, weight: Any, wanted: Any, g: Any, rest: Any) -> Any:
    """The gradient of what the convolution gives, with ``g``, for one of its two operands."""
    with enable_grad():
        return grad(convolve(input, weight, None, *rest), wanted, g)[0]


def _functions(d: int) -> tuple[Any, Any]:
    convolve = getattr(F, f"conv{d}d")

    def of_input(
        input_size: Any, weight: Any, grad_output: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1,
    ) -> Any:  # fmt: skip
        input = T.zeros(tuple(input_size), dtype=weight.dtype, device=weight.device)
        input.requires_grad_()
        rest = (stride, padding, dilation, groups)
        return _gradient(convolve, input, weight, input, grad_output, rest)

    def of_weight(
        input: Any, weight_size: Any, grad_output: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1,
    ) -> Any:  # fmt: skip
        weight = T.zeros(tuple(weight_size), dtype=input.dtype, device=input.device)
        weight.requires_grad_()
        rest = (stride, padding, dilation, groups)
        return _gradient(convolve, input, weight, weight, grad_output, rest)

    sizes = ", ".join(["3"] * d), ", ".join(["2"] * d)
    for fn, what, args, call, result in (
        (of_input, "input", "input_size (tuple): the input's shape\n    weight (Tensor): the "
         "convolution's weight", "x.shape, w", sizes[0]),
        (of_weight, "weight", "input (Tensor): the convolution's input\n    weight_size (tuple): "
         "the weight's shape", "x, w.shape", sizes[1]),
    ):  # fmt: skip
        fn.__name__ = fn.__qualname__ = f"conv{d}d_{what}"
        fn.__doc__ = _DOC.format(d=d, what=what, args=args, name=what, call=call, result=result,
                                 example=sizes[0], window=sizes[1])  # fmt: skip
    return of_input, of_weight


conv1d_input, conv1d_weight = _functions(1)
conv2d_input, conv2d_weight = _functions(2)
conv3d_input, conv3d_weight = _functions(3)

explain_missing("torch.nn.grad", globals())
