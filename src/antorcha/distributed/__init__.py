"""``torch.distributed``: not available, and it says so. A program runs in one process here.

Libraries ask ``torch.distributed.is_available()`` and ``is_initialized()``: both are False. The
names that they import on the way are there; using one raises NotImplementedError. Stores, which
need no backend, work (`store`).

See https://docs.pytorch.org/docs/stable/distributed.html.
"""

from __future__ import annotations

import enum
import os
from typing import Any, ClassVar

from antorcha.core import absent
from antorcha.distributed.store import (
    DistStoreError,
    HashStore,
    PrefixStore,
    QueueEmptyError,
    Store,
    TCPStore,
)
from antorcha.distributed.wire import DistBackendError, DistError, DistNetworkError
from antorcha.errors import ValueRangeError


def is_available() -> bool:
    """False: there is no communication between processes.

    >>> torch.distributed.is_available()
    False
    """
    return False


def is_initialized() -> bool:
    """False: there is no process group."""
    return False


def is_mpi_available() -> bool:
    """False: there is no MPI backend."""
    return False


def is_nccl_available() -> bool:
    """False: there is no NCCL backend."""
    return False


def is_gloo_available() -> bool:
    """False: there is no Gloo backend."""
    return False


def is_ucc_available() -> bool:
    """False: there is no UCC backend."""
    return False


def is_xccl_available() -> bool:
    """False: there is no XCCL backend."""
    return False


def is_backend_available(backend: str) -> bool:
    """False: there is no backend."""
    return False


def is_torchelastic_launched() -> bool:
    """Was this process started by ``torchrun``, which sets ``TORCHELASTIC_RUN_ID``?"""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


class ReduceOp:
    """The reductions of a collective operation, by name: default arguments name them."""

    class RedOpType(enum.IntEnum):
        """PyTorch's numbers of the reductions."""

        SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM, UNUSED = range(10)

    SUM, AVG, PRODUCT, MIN = RedOpType.SUM, RedOpType.AVG, RedOpType.PRODUCT, RedOpType.MIN
    MAX, BAND, BOR, BXOR = RedOpType.MAX, RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR
    PREMUL_SUM, UNUSED = RedOpType.PREMUL_SUM, RedOpType.UNUSED


class Backend(str):
    """A backend's name in small letters: ``Backend("GLOO")`` is ``"gloo"``."""

    __slots__ = ()
    UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE = (
        "undefined", "gloo", "nccl", "xccl", "ucc", "mpi", "fake",
    )  # fmt: skip
    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]
    default_device_backend_map: ClassVar[dict[str, str]] = {
        "cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO,
    }  # fmt: skip

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueRangeError(f"Backend constructor parameter must be string-ish: {name!r}")
        return str.__new__(cls, name.lower())


class group:
    """The default process group, ``group.WORLD``: None until one is initialised."""

    WORLD: Any = None


class GroupMember:
    """Whether a process belongs to a group."""

    WORLD: Any = None
    NON_GROUP_MEMBER = -100


__getattr__ = absent.names("torch.distributed", globals())
