"""``torch.nn.intrinsic``: layers that are fused when a model is quantized: here in sequence.

See https://docs.pytorch.org/docs/stable/quantization.html.
"""

from __future__ import annotations

from typing import Any

from antorcha.errors import explain_missing
from antorcha.nn.activation import ReLU
from antorcha.nn.containers import Sequential
from antorcha.nn.conv import Conv1d, Conv2d, Conv3d
from antorcha.nn.intrinsic import qat, quantized
from antorcha.nn.linear import Linear
from antorcha.nn.norm import BatchNorm1d, BatchNorm2d, BatchNorm3d


class _FusedModule(Sequential):
    """Layers one after the other, each of the class that its place asks for."""

    kinds: tuple[type, ...] = ()

    def __init__(self, *layers: Any) -> None:
        if tuple(map(type, layers)) != self.kinds:
            got = "".join([str(type(layer)) for layer in layers])
            raise AssertionError(f"Incorrect types for input modules{got}")
        super().__init__(*layers)


def _fused(name: str, *kinds: type) -> type[_FusedModule]:
    words = ", ".join([kind.__name__ for kind in kinds])
    body = {"__doc__": f"``{words}`` in sequence.", "__module__": __name__, "kinds": kinds}
    return type(name, (_FusedModule,), body)


BNReLU2d = _fused("BNReLU2d", BatchNorm2d, ReLU)
BNReLU3d = _fused("BNReLU3d", BatchNorm3d, ReLU)
ConvBn1d = _fused("ConvBn1d", Conv1d, BatchNorm1d)
ConvBn2d = _fused("ConvBn2d", Conv2d, BatchNorm2d)
ConvBn3d = _fused("ConvBn3d", Conv3d, BatchNorm3d)
ConvBnReLU1d = _fused("ConvBnReLU1d", Conv1d, BatchNorm1d, ReLU)
ConvBnReLU2d = _fused("ConvBnReLU2d", Conv2d, BatchNorm2d, ReLU)
ConvBnReLU3d = _fused("ConvBnReLU3d", Conv3d, BatchNorm3d, ReLU)
ConvReLU1d = _fused("ConvReLU1d", Conv1d, ReLU)
ConvReLU2d = _fused("ConvReLU2d", Conv2d, ReLU)
ConvReLU3d = _fused("ConvReLU3d", Conv3d, ReLU)
LinearBn1d = _fused("LinearBn1d", Linear, BatchNorm1d)
LinearReLU = _fused("LinearReLU", Linear, ReLU)

explain_missing("torch.nn.intrinsic", globals())
