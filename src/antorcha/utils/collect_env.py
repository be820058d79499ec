"""``torch.utils.collect_env``: facts of this machine, for a report of a fault.

``python -m antorcha info`` prints more of antorcha's own.
"""

from __future__ import annotations

import platform
import sys
from typing import NamedTuple

from antorcha import __config__
from antorcha._version import __version__
from antorcha.errors import explain_missing


class SystemEnv(NamedTuple):
    """What `get_env_info` finds; what antorcha has none of is ``"N/A"``."""

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str
    os: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    cpu_info: str
    config: str


def get_env_info() -> SystemEnv:
    """The facts."""
    return SystemEnv(
        torch_version=f"antorcha {__version__}", is_debug_build="False",
        cuda_compiled_version="None", os=platform.platform(),
        python_version=f"{sys.version} ({sys.maxsize.bit_length() + 1}-bit runtime)",
        python_platform=platform.platform(), is_cuda_available="False",
        cpu_info=platform.processor() or platform.machine(), config=__config__.show(),
    )  # fmt: skip


def pretty_str(envinfo: SystemEnv) -> str:
    """The facts, a line each."""
    return "\n".join([f"{k.replace('_', ' ')}: {v}" for k, v in envinfo._asdict().items()])


def get_pretty_env_info() -> str:
    """The facts as text.

    >>> from torch.utils import collect_env
    >>> "antorcha" in collect_env.get_pretty_env_info()
    True
    """
    return pretty_str(get_env_info())


def main() -> None:
    """Prints the facts."""
    print(get_pretty_env_info())


explain_missing("torch.utils.collect_env", globals())

if __name__ == "__main__":
    main()
