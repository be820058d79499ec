"""Activation layers: each is the function of the same name in ``torch.nn.functional``.

A layer without parameters is a class with a few settings and one call: most are made from the table
at the end of this file.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from antorcha.errors import ValueRangeError, warn
from antorcha.nn import functional as F
from antorcha.nn.families import LayerFamily
from antorcha.nn.module import Module
from antorcha.nn.parameter import add_parameter
from antorcha.nn.words import showing
from antorcha.ops.kinds.record import REGISTRY

_MISSING = inspect.Parameter.empty


class Activation(Module):
    """An activation made from the table: ``fn`` of the input and the settings, in their order."""

    fn: str = ""
    settings: tuple[str, ...] = ()  # attributes, in the order of the function's arguments

    def forward(self, input: Any) -> Any:
        """The function of each element."""
        return getattr(F, self.fn)(input, *[getattr(self, name) for name in self.settings])


def _activation(
    name: str,
    fn: str,
    formula: str,
    settings: dict[str, Any],
    repr_of: Callable[[Any], str] | None,
    example: str,
    result: str,
    paper: str = "",
) -> type[Activation]:
    """A class with these settings (name -> default; no default: required)."""
    parameters = [
        inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=d)
        for n, d in settings.items()
    ]
    signature = inspect.Signature(
        [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY), *parameters]
    )

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        Module.__init__(self)
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}.__init__() {error}") from None
        bound.apply_defaults()
        for setting in settings:
            setattr(self, setting, bound.arguments[setting])

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    listed = "".join(
        [f"\n    {n}: {'required' if d is _MISSING else f'Default: {d!r}'}"
         for n, d in settings.items()]
    )  # fmt: skip
    doc = (
        f"{formula}\n\n{paper}{chr(10) * 2 if paper else ''}"
        + (f"Args:{listed}\n\n" if listed else "")
        + "Shape: any; the output has the input's.\n\n"
        f">>> torch.nn.{example}\n{result}\n"
    )
    body = {"__doc__": doc, "__module__": __name__, "fn": fn, "settings": tuple(settings),
            "__init__": __init__, "__constants__": list(settings)}  # fmt: skip
    if repr_of is not None:
        body["extra_repr"] = repr_of
    if settings == {"inplace": False}:
        body["forward"] = _plain_forward(fn)
    elif not settings:
        body["forward"] = _bare_forward(fn)
    return type(name, (Activation,), body)


def _plain_forward(fn: str) -> Callable[[Any, Any], Any]:
    """``forward`` without a loop over settings, for the commonest kind."""

    op = REGISTRY[fn]

    def forward(self: Any, input: Any) -> Any:
        """The function of each element."""
        return getattr(F, fn)(input, True) if self.inplace else op(input)

    return forward


def _bare_forward(fn: str) -> Callable[[Any, Any], Any]:
    op = REGISTRY[fn]

    def forward(self: Any, input: Any) -> Any:
        """The function of each element."""
        return op(input)

    return forward


def _inplace(self: Any) -> str:
    return "inplace=True" if self.inplace else ""


def _shown(*names: str) -> Callable[[Any], str]:
    """``extra_repr`` that shows these settings, and ``inplace`` when it is set."""

    def extra_repr(self: Any) -> str:
        text = ", ".join([f"{n}={getattr(self, n)}" for n in names])
        return f"{text}, inplace=True" if getattr(self, "inplace", False) else text

    return extra_repr


_IN = {"inplace": False}
ReLU = _activation("ReLU", "relu", "The positive part: ``max(0, x)``.", _IN, _inplace,
                   "ReLU()(torch.tensor([-1., 2.]))", "tensor([0., 2.])")  # fmt: skip
SiLU = _activation("SiLU", "silu", "``x * sigmoid(x)``, also called swish.", _IN, _inplace,
                   "SiLU()(torch.tensor([0., 1.]))", "tensor([0.0000, 0.7311])",
                   'Hendrycks & Gimpel, "Gaussian error linear units" (2016).')  # fmt: skip
Mish = _activation("Mish", "mish", "``x * tanh(softplus(x))``.", _IN, _inplace,
                   "Mish()(torch.tensor([0., 1.]))", "tensor([0.0000, 0.8651])",
                   'Misra, "Mish: a self regularized non-monotonic activation function" '
                   "(2019).")  # fmt: skip
SELU = _activation(
    "SELU", "selu", "``scale * (max(0, x) + min(0, alpha * (exp(x) - 1)))`` with alpha = 1.6733, "
    "scale = 1.0507.", _IN, _inplace, "SELU()(torch.tensor([0., 1.]))",
    "tensor([0.0000, 1.0507])", 'Klambauer et al., "Self-normalizing neural networks" (2017).',
)  # fmt: skip
Hardswish = _activation("Hardswish", "hardswish", "``x * relu6(x + 3) / 6``.", _IN, None,
                        "Hardswish()(torch.tensor([-4., 1.]))",
                        "tensor([-0.0000, 0.6667])")  # fmt: skip
Hardsigmoid = _activation("Hardsigmoid", "hardsigmoid", "``relu6(x + 3) / 6``.", _IN, None,
                          "Hardsigmoid()(torch.tensor([-4., 0.]))",
                          "tensor([0.0000, 0.5000])")  # fmt: skip
ELU = _activation("ELU", "elu", "``x`` where positive, else ``alpha * (exp(x) - 1)``.",
                  {"alpha": 1.0, **_IN}, _shown("alpha"), "ELU()(torch.tensor([0., 1.]))",
                  "tensor([0., 1.])", "Clevert et al. (2015).")  # fmt: skip
CELU = _activation("CELU", "celu", "``max(0, x) + min(0, alpha * (exp(x/alpha) - 1))``.",
                   {"alpha": 1.0, **_IN}, _shown("alpha"), "CELU()(torch.tensor([0., 1.]))",
                   "tensor([0., 1.])", "Barron (2017).")  # fmt: skip
LeakyReLU = _activation("LeakyReLU", "leaky_relu",
                        "``x`` where positive, else ``negative_slope * x``.",
                        {"negative_slope": 1e-2, **_IN}, _shown("negative_slope"),
                        "LeakyReLU(0.1)(torch.tensor([-1., 1.]))",
                        "tensor([-0.1000,  1.0000])")  # fmt: skip
Threshold = _activation("Threshold", "threshold",
                        "``x`` where above ``threshold``, else ``value``.",
                        {"threshold": _MISSING, "value": _MISSING, **_IN},
                        _shown("threshold", "value"),
                        "Threshold(0.1, 20)(torch.tensor([0., 1.]))",
                        "tensor([20.,  1.])")  # fmt: skip
Softplus = _activation("Softplus", "softplus",
                       "``log(1 + exp(beta*x)) / beta``; x itself where ``beta*x > threshold``.",
                       {"beta": 1.0, "threshold": 20.0}, _shown("beta", "threshold"),
                       "Softplus()(torch.tensor([0.]))", "tensor([0.6931])")  # fmt: skip
Hardshrink = _activation("Hardshrink", "hardshrink",
                         "``x`` where ``|x| > lambd``, else 0.", {"lambd": 0.5},
                         lambda self: f"{self.lambd}", "Hardshrink()(torch.tensor([0.3, 1.]))",
                         "tensor([0., 1.])")  # fmt: skip
Softshrink = _activation("Softshrink", "softshrink",
                         "``x`` moved towards 0 by ``lambd``, 0 where that would pass it.",
                         {"lambd": 0.5}, lambda self: f"{self.lambd}",
                         "Softshrink()(torch.tensor([0.3, 1.]))",
                         "tensor([0.0000, 0.5000])")  # fmt: skip
Sigmoid = _activation("Sigmoid", "sigmoid", "``1 / (1 + exp(-x))``.", {}, None,
                      "Sigmoid()(torch.tensor([0.]))", "tensor([0.5000])")  # fmt: skip
Tanh = _activation("Tanh", "tanh", "The hyperbolic tangent.", {}, None,
                   "Tanh()(torch.tensor([0.]))", "tensor([0.])")  # fmt: skip
LogSigmoid = _activation("LogSigmoid", "logsigmoid", "``log(1 / (1 + exp(-x)))``.", {}, None,
                         "LogSigmoid()(torch.tensor([0.]))", "tensor([-0.6931])")  # fmt: skip
Softsign = _activation("Softsign", "softsign", "``x / (1 + |x|)``.", {}, None,
                       "Softsign()(torch.tensor([1.]))", "tensor([0.5000])")  # fmt: skip
Tanhshrink = _activation("Tanhshrink", "tanhshrink", "``x - tanh(x)``.", {}, None,
                         "Tanhshrink()(torch.tensor([0.]))", "tensor([0.])")  # fmt: skip
GLU = _activation("GLU", "glu", "``a * sigmoid(b)``, a and b being the halves along ``dim``.",
                  {"dim": -1}, _shown("dim"), "GLU()(torch.tensor([2., 0.]))", "tensor([1.])",
                  'Dauphin et al., "Language modeling with gated convolutional networks" '
                  "(2016).")  # fmt: skip


class Hardtanh(Module):
    """``x`` limited to [min_val, max_val].

    Args:
        min_val (float): Default: -1
        max_val (float): Default: 1
        inplace (bool): write the result over the input? Default: False
        min_value, max_value (float): the old names of the bounds

    Shape: any; the output has the input's.

    >>> torch.nn.Hardtanh(-2, 2)(torch.tensor([-3., 1.]))
    tensor([-2.,  1.])
    """

    __constants__ = ["min_val", "max_val", "inplace"]  # noqa: RUF012

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        for old, value in (("min_value", min_value), ("max_value", max_value)):
            if value is not None:
                warn(
                    f"keyword argument `{old}` is deprecated and rename to `{old[:-2]}`",
                    FutureWarning,
                )  # fmt: skip
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError("max_val must be larger than min_val")

    def forward(self, input: Any) -> Any:
        """The limited input."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        text = f"min_val={self.min_val}, max_val={self.max_val}"
        return f"{text}, inplace=True" if self.inplace else text


class ReLU6(Hardtanh):
    """``min(max(0, x), 6)``.

    Args:
        inplace (bool): write the result over the input? Default: False

    Shape: any; the output has the input's.

    >>> torch.nn.ReLU6()(torch.tensor([-1., 9.]))
    tensor([0., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return _inplace(self)


class GELU(Module):
    """``x * Phi(x)``, Phi being the normal distribution function.

    Hendrycks & Gimpel, "Gaussian error linear units" (2016).

    Args:
        approximate (str): ``'none'``, or ``'tanh'`` to compute it with tanh. Default: ``'none'``

    Shape: any; the output has the input's.

    >>> torch.nn.GELU()(torch.tensor([0., 1.]))
    tensor([0.0000, 0.8413])
    """

    __constants__ = ["approximate"]  # noqa: RUF012

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        """The function of each element."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class RReLU(Module):
    """Leaky ReLU with a random slope, uniform in [lower, upper), while training; their mean after.

    Xu et al., "Empirical evaluation of rectified activations in convolutional network" (2015).

    Args:
        lower (float): Default: 1/8
        upper (float): Default: 1/3
        inplace (bool): write the result over the input? Default: False

    Shape: any; the output has the input's.

    >>> torch.nn.RReLU(0.1, 0.3).eval()(torch.tensor([-1., 1.]))
    tensor([-0.2000,  1.0000])
    """

    __constants__ = ["lower", "upper", "inplace"]  # noqa: RUF012

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """The input with its negative part made smaller."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        text = f"lower={self.lower}, upper={self.upper}"
        return f"{text}, inplace=True" if self.inplace else text


class PReLU(Module):
    """``x`` where positive, else ``weight * x`` with a weight that is learnt.

    He et al., "Delving deep into rectifiers" (2015).

    Args:
        num_parameters (int): one weight, or one for each channel. Default: 1
        init (float): how the weights start. Default: 0.25

    Shape: any; the output has the input's.

    >>> torch.nn.PReLU()(torch.tensor([-1., 1.])).detach()
    tensor([-0.2500,  1.0000])
    """

    __constants__ = ["num_parameters"]  # noqa: RUF012

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        add_parameter(self, "weight", num_parameters, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the weights to their start."""
        self.weight.data.fill_(self.init)

    def forward(self, input: Any) -> Any:
        """The input with its negative part scaled."""
        return F.prelu(input, self.weight)

    extra_repr = showing("num_parameters=")


class _AlongDim(LayerFamily):
    """{formula}

    Args:
        dim (int): along which dim the sum is taken

    Shape: any; the output has the input's.

    >>> torch.nn.{name}(dim=0)(torch.tensor([0., 0.]))
    {result}
    """

    __constants__ = ["dim"]  # noqa: RUF012
    fn = ""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    def forward(self, input: Any) -> Any:
        """The function along the dim."""
        return getattr(F, self.fn)(input, self.dim)

    extra_repr = showing("dim=")


class Softmax(
    _AlongDim, formula="``exp(x_i) / sum_j exp(x_j)``: positive, with sum 1.",
    result="tensor([0.5000, 0.5000])",
):  # fmt: skip
    fn = "softmax"


class Softmin(
    _AlongDim, formula="``exp(-x_i) / sum_j exp(-x_j)``: softmax of ``-x``.",
    result="tensor([0.5000, 0.5000])",
):  # fmt: skip
    fn = "softmin"


class LogSoftmax(
    _AlongDim, formula="``log(exp(x_i) / sum_j exp(x_j))``, without overflow.",
    result="tensor([-0.6931, -0.6931])",
):  # fmt: skip
    fn = "log_softmax"


class Softmax2d(Module):
    """Softmax over the channels of each pixel.

    Shape: ``(N, C, H, W)`` or ``(C, H, W)``; the output has the input's.

    >>> torch.nn.Softmax2d()(torch.zeros(1, 2, 1, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Any) -> Any:
        """The softmax of each pixel."""
        if input.dim() not in (3, 4):
            raise ValueRangeError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead"
            )
        return F.softmax(input, -3)
