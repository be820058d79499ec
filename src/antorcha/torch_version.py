"""``torch.torch_version``: the class of ``torch.__version__``."""

from __future__ import annotations

from antorcha.errors import explain_missing
from antorcha.torch_alias import TorchVersion

__all__ = ["TorchVersion"]

explain_missing("torch.torch_version", globals())
