"""``torch.__config__``: how this library was built, and how it runs in parallel."""

from __future__ import annotations

import platform
from importlib.metadata import version

from antorcha import config
from antorcha._version import __version__
from antorcha.basics import get_num_threads


def show() -> str:
    """What antorcha is made with: there is no build, kernels are compiled while it runs.

    See https://docs.pytorch.org/docs/stable/config_mod.html.
    """
    target = config.target or "this CPU"
    return (
        f"antorcha {__version__}:\n"
        f"  - {platform.python_implementation()} {platform.python_version()}\n"
        f"  - NumPy {version('numpy')}\n"
        f"  - llvmlite {version('llvmlite')}: kernels are compiled for {target} while it runs\n"
        "  - CUDA is not supported\n"
    )


def parallel_info() -> str:
    """How many threads ops run on.

    See https://docs.pytorch.org/docs/stable/config_mod.html.
    """
    return (
        "antorcha's own thread pool:\n"
        f"\ttorch.get_num_threads() : {get_num_threads()}\n"
        f"\tCPUs that this process may use : {config.available_cpus()}\n"
    )
