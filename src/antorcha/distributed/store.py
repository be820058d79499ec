"""Stores: keys and values that processes share, as programs use to find one another.

``TCPStore`` is a table that one process serves to others, ``HashStore`` one within a process,
``PrefixStore`` a part of another store. FileStore is absent.

See https://docs.pytorch.org/docs/stable/distributed.html#distributed-key-value-store.

>>> store = torch.distributed.HashStore()
>>> store.set("name", "torch")
>>> store.get("name"), store.add("steps", 2), store.add("steps", 3)
(b'torch', 2, 5)
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final

from antorcha.distributed.wire import DistError, Link, Server
from antorcha.errors import ArgumentError, MissingFeature, ValueRangeError

TIMEOUT: Final = timedelta(seconds=300)
_MET: Final = b"\xff"  # the key under which a TCPStore counts who came; no str is written like that


class DistStoreError(DistError):
    """A store did not answer in time."""


class QueueEmptyError(DistStoreError):
    """A queue has nothing to take."""


class _KeyTable:
    """Keys and values, which any thread may ask for. Everything in it is bytes."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.queues: defaultdict[bytes, deque[bytes]] = defaultdict(deque)
        self.changed = threading.Condition()

    def ask(self, what: str, given: Sequence[bytes], patience: float) -> list[bytes]:
        """What an operation of the table gives. Waits so many seconds for keys that are not there;
        raises DistStoreError then, and ValueRangeError where a value is no number."""
        with self.changed:
            return _OPERATIONS[what](self, given, patience)

    def wait(self, keys: Sequence[bytes], patience: float) -> list[bytes]:
        if not self.changed.wait_for(lambda: all(k in self.values for k in keys), patience):
            raise DistStoreError(_late(keys, patience))
        return []

    def set(self, given: Sequence[bytes], patience: float) -> list[bytes]:
        self.values.update(zip(given[::2], given[1::2], strict=True))
        self.changed.notify_all()
        return []

    def get(self, keys: Sequence[bytes], patience: float) -> list[bytes]:
        self.wait(keys, patience)
        return [self.values[key] for key in keys]

    def add(self, given: Sequence[bytes], patience: float) -> list[bytes]:
        key, amount = given
        try:
            total = b"%d" % (int(self.values.get(key, b"0")) + int(amount))
        except ValueError:
            raise ValueRangeError(
                f"add: the value of {_shown(key)} is no whole number: {self.values[key]!r}"
            ) from None
        self.set([key, total], patience)
        return [total]

    def append(self, given: Sequence[bytes], patience: float) -> list[bytes]:
        key, value = given
        return self.set([key, self.values.get(key, b"") + value], patience)

    def compare_set(self, given: Sequence[bytes], patience: float) -> list[bytes]:
        key, expected, desired = given
        held = self.values.get(key)
        if held == expected or (held is None and not expected):
            self.set([key, desired], patience)
            return [desired]
        return [expected if held is None else held]

    def delete_key(self, keys: Sequence[bytes], patience: float) -> list[bytes]:
        return [] if self.values.pop(keys[0], None) is None else [b""]

    def check(self, keys: Sequence[bytes], patience: float) -> list[bytes]:
        return [b""] if all(key in self.values for key in keys) else []

    def list_keys(self, given: Sequence[bytes], patience: float) -> list[bytes]:
        return [key for key in self.values if key != _MET]

    def num_keys(self, given: Sequence[bytes], patience: float) -> list[bytes]:
        return [b"%d" % len(self.values)]

    def queue_push(self, given: Sequence[bytes], patience: float) -> list[bytes]:
        self.queues[given[0]].append(given[1])
        self.changed.notify_all()
        return []

    def queue_pop(self, given: Sequence[bytes], patience: float) -> list[bytes]:
        key, blocks = given
        if not blocks and not self.queues.get(key):
            raise QueueEmptyError("queue is empty")
        if not self.changed.wait_for(lambda: bool(self.queues.get(key)), patience):
            raise DistStoreError(_late([key], patience))
        value = self.queues[key].popleft()
        if not self.queues[key]:
            del self.queues[key]
        return [value]

    def queue_len(self, keys: Sequence[bytes], patience: float) -> list[bytes]:
        return [b"%d" % len(self.queues.get(keys[0], ()))]


_OPERATIONS: Final[dict[str, Callable[[_KeyTable, Sequence[bytes], float], list[bytes]]]] = {
    each.__name__: each
    for each in (
        _KeyTable.set, _KeyTable.get, _KeyTable.add, _KeyTable.append, _KeyTable.compare_set,
        _KeyTable.delete_key, _KeyTable.check, _KeyTable.list_keys, _KeyTable.num_keys,
        _KeyTable.wait, _KeyTable.queue_push, _KeyTable.queue_pop, _KeyTable.queue_len,
    )
}  # fmt: skip
_ERRORS: Final = {
    each.__name__: each for each in (DistStoreError, QueueEmptyError, ValueRangeError)
}


def _late(keys: Sequence[bytes], patience: float) -> str:
    shown = ", ".join([_shown(key) for key in keys])
    return f"wait timeout after {patience * 1000:.0f}ms, keys: {shown}"


def _shown(key: bytes) -> str:
    return "/" + key.decode("utf-8", "backslashreplace")


def _key(op: str, value: Any) -> bytes:
    if not isinstance(value, str):
        raise ArgumentError(f"{op}: a key is a str, not {type(value).__name__}")
    return value.encode()


def _value(op: str, value: Any) -> bytes:
    if not isinstance(value, (str, bytes)):
        raise ArgumentError(f"{op}: a value is a str or bytes, not {type(value).__name__}")
    return value.encode() if isinstance(value, str) else value


def _duration(op: str, value: Any) -> timedelta:
    if not isinstance(value, timedelta):
        raise ArgumentError(f"{op}: a timeout is a timedelta, not {type(value).__name__}")
    return value


class Store:
    """Keys and values; what all stores can do. Keys are str, values str or bytes; what comes back
    is bytes."""

    def __init__(self) -> None:
        self._timeout = TIMEOUT

    def _ask(self, what: str, given: Sequence[bytes], patience: timedelta) -> list[bytes]:
        raise MissingFeature(f"{type(self).__name__}.{what}: a store of its own says how")

    @property
    def timeout(self) -> timedelta:
        """How long it waits for a key."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets how long it waits for a key."""
        self._timeout = _duration("set_timeout", timeout)

    def set(self, key: str, value: str | bytes) -> None:
        """Sets the value of a key."""
        self._ask("set", [_key("set", key), _value("set", value)], self.timeout)

    def get(self, key: str) -> bytes:
        """The value of a key. Waits for it; raises DistStoreError after the timeout."""
        return self._ask("get", [_key("get", key)], self.timeout)[0]

    def add(self, key: str, amount: int) -> int:
        """Adds to a number (0 where there is none), and gives the sum. Raises ValueError where the
        value is no whole number."""
        if not isinstance(amount, int):
            raise ArgumentError(f"add: an amount is an int, not {type(amount).__name__}")
        return int(self._ask("add", [_key("add", key), b"%d" % amount], self.timeout)[0])

    def append(self, key: str, value: str | bytes) -> None:
        """Appends to a value."""
        self._ask("append", [_key("append", key), _value("append", value)], self.timeout)

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        """Sets the value if it is the expected one, or if there is none and ``expected`` is empty.
        Gives the value then (``expected`` where there is none)."""
        given = [_value("compare_set", value) for value in (expected, desired)]
        return self._ask("compare_set", [_key("compare_set", key), *given], self.timeout)[0]

    def delete_key(self, key: str) -> bool:
        """Removes a key; was it there?"""
        return bool(self._ask("delete_key", [_key("delete_key", key)], self.timeout))

    def check(self, keys: Sequence[str]) -> bool:
        """Are all keys there?"""
        return bool(self._ask("check", [_key("check", key) for key in keys], self.timeout))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Waits until all keys are there. Raises DistStoreError after the timeout."""
        patience = self.timeout if timeout is None else _duration("wait", timeout)
        self._ask("wait", [_key("wait", key) for key in keys], patience)

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Waits until ``world_size`` processes have called it with the same key."""
        if self.add(f"{key}/count", 1) == world_size:
            self.set(f"{key}/done", "1")
        self.wait([f"{key}/done"], timeout)

    def num_keys(self) -> int:
        """How many keys there are: with a ``world_size``, one is the TCPStore's own."""
        return int(self._ask("num_keys", [], self.timeout)[0])

    def list_keys(self) -> list[str]:
        """All keys."""
        return [key.decode() for key in self._ask("list_keys", [], self.timeout)]

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys; waits for all."""
        return self._ask("get", [_key("multi_get", key) for key in keys], self.timeout)

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Sets several values."""
        if len(keys) != len(values):
            raise ValueRangeError(f"multi_set: {len(keys)} keys and {len(values)} values")
        pairs = zip(keys, values)
        given = [b for k, v in pairs for b in (_key("multi_set", k), _value("multi_set", v))]
        self._ask("set", given, self.timeout)

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Puts a value at the end of a queue."""
        given = [_key("queue_push", key), _value("queue_push", value)]
        self._ask("queue_push", given, self.timeout)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Takes the first value of a queue. Waits for one, or raises QueueEmptyError."""
        given = [_key("queue_pop", key), b"1" if block else b""]
        return self._ask("queue_pop", given, self.timeout)[0]

    def queue_len(self, key: str) -> int:
        """How many values are in a queue."""
        return int(self._ask("queue_len", [_key("queue_len", key)], self.timeout)[0])

    def has_extended_api(self) -> bool:
        """Are there ``append``, ``multi_get`` and ``multi_set``?"""
        return True

    def __reduce__(self) -> Any:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")


class HashStore(Store):
    """A store within a process, for its threads."""

    def __init__(self) -> None:
        super().__init__()
        self._table = _KeyTable()

    def _ask(self, what: str, given: Sequence[bytes], patience: timedelta) -> list[bytes]:
        return self._table.ask(what, given, patience.total_seconds())

    def clone(self) -> HashStore:
        """Another store of the same keys and values."""
        result = HashStore()
        result._table, result._timeout = self._table, self._timeout
        return result


class PrefixStore(Store):
    """The part of a store whose keys begin with ``prefix/``, under shorter names."""

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self.prefix, self.underlying_store = prefix, store

    def _ask(self, what: str, given: Sequence[bytes], patience: timedelta) -> list[bytes]:
        start, own = self.prefix.encode() + b"/", list(given)
        pairs = what == "set"
        every = what in ("get", "check", "wait")
        for k in range(0, len(own), 2 if pairs else 1 if every else max(len(own), 1)):
            own[k] = start + own[k]
        result = self.underlying_store._ask(what, own, patience)
        if what == "list_keys":
            result = [key.removeprefix(start) for key in result if key.startswith(start)]
        return result

    @property
    def timeout(self) -> timedelta:
        """How long the store waits for a key."""
        return self.underlying_store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets how long the store waits for a key."""
        self.underlying_store.set_timeout(timeout)

    def clone(self) -> PrefixStore:
        """The same part of another store of the same keys and values."""
        store: Any = self.underlying_store
        return PrefixStore(self.prefix, store.clone())


def _served(table: _KeyTable) -> Callable[[list[bytes]], list[bytes]]:
    """What a server answers to a request, both as they go over the wire: an operation, how long it
    may wait, and what it is given; the error's class, and what the operation gives or says."""

    def answer(request: list[bytes]) -> list[bytes]:
        try:
            what, patience, *given = request
            return [b"", *table.ask(what.decode(), given, float(patience))]
        except tuple(_ERRORS.values()) as error:
            return [type(error).__name__.encode(), str(error).encode()]

    return answer


class TCPStore(Store):
    """A store that one process serves to others, on this machine or on others.

    The server takes requests from whoever reaches its port, and has no password, as PyTorch's: it
    is for networks that one trusts. With a host that is this machine's own (127.0.0.1, localhost)
    it serves this machine only.

    Args:
        host_name: the server's host
        port: the server's port; 0: a free one
        world_size: how many stores are to meet, the server's included; None: no fixed number
        is_master: serve?
        timeout: how long to wait: for the server, for the others, for keys
        wait_for_workers: does the server wait until all stores have met?
        multi_tenant, use_libuv: accepted for PyTorch's sake
        master_listen_fd: must be None

    Raises DistNetworkError where there is no server, or the port is taken; DistStoreError where
    not all came in time.
    """

    def __init__(
        self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
        timeout: timedelta = TIMEOUT, wait_for_workers: bool = True, multi_tenant: bool = False,
        master_listen_fd: int | None = None, use_libuv: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if master_listen_fd is not None:
            raise MissingFeature("TCPStore: master_listen_fd is not supported; leave it out")
        self.set_timeout(timeout)
        self.host, self.libuvBackend = host_name, use_libuv
        self._server = Server(host_name, port, _served(_KeyTable())) if is_master else None
        self.port = port if self._server is None else self._server.port
        self._link = Link(host_name, self.port, timeout.total_seconds())
        if world_size is not None and world_size > 0:
            self._ask("add", [_MET, b"1"], self.timeout)
            if is_master and wait_for_workers:
                self._wait_for(world_size)

    def _wait_for(self, count: int) -> None:
        deadline = time.monotonic() + self.timeout.total_seconds()
        while (joined := int(self._ask("get", [_MET], self.timeout)[0])) < count:
            if time.monotonic() > deadline:
                seconds = self.timeout.total_seconds()
                raise DistStoreError(
                    f"Timed out after {seconds:g} seconds waiting for clients. {joined}/{count} "
                    "clients joined."
                )
            time.sleep(0.01)

    def _ask(self, what: str, given: Sequence[bytes], patience: timedelta) -> list[bytes]:
        seconds = b"%r" % patience.total_seconds()
        problem, *result = self._link.ask([what.encode(), seconds, *given])
        if problem:
            raise _ERRORS[problem.decode()](result[0].decode())
        return result

    def clone(self) -> TCPStore:
        """Another store of the same server."""
        result = TCPStore.__new__(TCPStore)
        result.__dict__.update(self.__dict__)
        result._link = Link(self.host, self.port, self.timeout.total_seconds())
        return result
