"""What can be wrong with a checkpoint."""

from __future__ import annotations

import pickle

from antorcha.errors import AntorchaError


class CheckpointError(AntorchaError, RuntimeError):
    """The file is truncated, damaged, or no checkpoint."""


class UnpicklingError(AntorchaError, pickle.UnpicklingError):
    """The pickle in the file wants what loading does not do, or is damaged."""
