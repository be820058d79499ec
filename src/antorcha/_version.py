"""The version of antorcha; served as ``torch`` it reads as PyTorch's, see ``torch_alias``."""

__version__ = "0.1.0"
