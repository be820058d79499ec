"""``torch.onnx``: programs ask whether they are being exported; there is no export.

See https://docs.pytorch.org/docs/stable/onnx.html.
"""

from __future__ import annotations

from antorcha import absent

producer_name = "pytorch"
producer_version = "2.13.0"


def is_in_onnx_export() -> bool:
    """False: nothing is ever exported.

    >>> torch.onnx.is_in_onnx_export()
    False
    """
    return False


class OnnxExporterError(RuntimeError):
    """An export that failed; programs catch it."""


__getattr__ = absent.names("torch.onnx", globals())
