"""``torch.nn.intrinsic.quantized``: names that libraries import; making a layer raises."""

from __future__ import annotations

from antorcha.errors import explain_missing
from antorcha.nn.quantization import unsupported

BNReLU2d = unsupported("torch.nn.intrinsic.quantized", "BNReLU2d")
BNReLU3d = unsupported("torch.nn.intrinsic.quantized", "BNReLU3d")
ConvReLU1d = unsupported("torch.nn.intrinsic.quantized", "ConvReLU1d")
ConvReLU2d = unsupported("torch.nn.intrinsic.quantized", "ConvReLU2d")
ConvReLU3d = unsupported("torch.nn.intrinsic.quantized", "ConvReLU3d")
LinearReLU = unsupported("torch.nn.intrinsic.quantized", "LinearReLU")

explain_missing("torch.nn.intrinsic.quantized", globals())
