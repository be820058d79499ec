"""``torch.version``: what this antorcha stands in for."""

from __future__ import annotations

from antorcha._version import __version__
from antorcha.errors import explain_missing

cuda = None
hip = None
git_version = "antorcha"
debug = False
__all__ = ["__version__", "cuda", "debug", "git_version", "hip"]

explain_missing("torch.version", globals())
