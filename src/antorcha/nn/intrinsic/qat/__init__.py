"""``torch.nn.intrinsic.qat``: names that libraries import; making a layer raises."""

from __future__ import annotations

from antorcha.errors import explain_missing
from antorcha.nn.quantization import unsupported

ConvBn1d = unsupported("torch.nn.intrinsic.qat", "ConvBn1d")
ConvBn2d = unsupported("torch.nn.intrinsic.qat", "ConvBn2d")
ConvBn3d = unsupported("torch.nn.intrinsic.qat", "ConvBn3d")
ConvBnReLU1d = unsupported("torch.nn.intrinsic.qat", "ConvBnReLU1d")
ConvBnReLU2d = unsupported("torch.nn.intrinsic.qat", "ConvBnReLU2d")
ConvBnReLU3d = unsupported("torch.nn.intrinsic.qat", "ConvBnReLU3d")
ConvReLU1d = unsupported("torch.nn.intrinsic.qat", "ConvReLU1d")
ConvReLU2d = unsupported("torch.nn.intrinsic.qat", "ConvReLU2d")
ConvReLU3d = unsupported("torch.nn.intrinsic.qat", "ConvReLU3d")
LinearBn1d = unsupported("torch.nn.intrinsic.qat", "LinearBn1d")
LinearReLU = unsupported("torch.nn.intrinsic.qat", "LinearReLU")

explain_missing("torch.nn.intrinsic.qat", globals())
