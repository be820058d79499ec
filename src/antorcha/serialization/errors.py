"""What can be wrong with a checkpoint."""

from __future__ import annotations

import pickle

from antorcha.errors import AntorchaError, ArgumentError


class CheckpointError(AntorchaError, RuntimeError):
    """A checkpoint that cannot be read or written."""


class CorruptFile(CheckpointError, pickle.UnpicklingError):
    """A file that is damaged, cut short, or no checkpoint at all."""


class UnsafeFile(AntorchaError, pickle.UnpicklingError):
    """A file that names a class or a function which nobody allowed it to use."""


class NotAFile(ArgumentError, AttributeError):
    """Neither a path nor an open binary file (PyTorch raises AttributeError here)."""
