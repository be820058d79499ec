"""Stores: beside PyTorch's, between threads and processes, and when something goes wrong."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import pickle
import socket
import threading
import weakref
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import antorcha.distributed as ours
from antorcha.distributed import wire

SOON = timedelta(seconds=0.05)
LATER = timedelta(seconds=60)

CALLS: list[Callable[[Any], Any]] = [
    lambda s: s.set("a", "1"),
    lambda s: s.set("b", b"\x00\xff"),
    lambda s: s.set("é", "ñ"),
    lambda s: (s.get("a"), s.get("b"), s.get("é")),
    lambda s: s.get("none"),
    lambda s: (s.add("n", 3), s.add("n", -5), s.get("n"), s.add("a", 2)),
    lambda s: (s.num_keys(), s.check(["a", "b"]), s.check(["a", "none"]), s.wait(["a", "n"])),
    lambda s: s.wait(["none"]),
    lambda s: s.wait(["none"], SOON / 2),
    lambda s: (s.compare_set("c", "", "x"), s.compare_set("c", "y", "z")),
    lambda s: (s.compare_set("c", "x", "z"), s.compare_set("d", "e", "z"), s.check(["d"])),
    lambda s: (s.delete_key("c"), s.delete_key("c")),
    lambda s: (s.append("p", "1"), s.append("p", "22"), s.get("p")),
    lambda s: (s.multi_set(["m", "o"], ["1", "2"]), s.multi_get(["m", "o"])),
    lambda s: s.multi_get(["m", "none"]),
    lambda s: sorted(s.list_keys()),
    lambda s: (s.queue_push("q", "1"), s.queue_push("q", "2"), s.queue_len("q")),
    lambda s: (s.queue_pop("q"), s.queue_pop("q"), s.queue_len("q")),
    lambda s: s.queue_pop("q", block=False),
    lambda s: s.queue_pop("q"),
    lambda s: (s.has_extended_api(), s.timeout, type(s).__name__, type(s.clone()).__name__),
    lambda s: (s.clone().set("of a clone", "1"), s.get("of a clone")),
    lambda s: s.barrier("meet", 1),
    lambda s: s.set(1, "x"),
    lambda s: s.set("a", 1),
    lambda s: s.get(1),
    lambda s: s.add("a", "1"),
    lambda s: pickle.dumps(s),
]
KINDS: dict[str, Callable[[Any], Any]] = {
    "hash": lambda dist: dist.HashStore(),
    "prefix": lambda dist: dist.PrefixStore("in", dist.HashStore()),
    "tcp": lambda dist: dist.TCPStore("127.0.0.1", 0, 1, True, LATER),
    "free": lambda dist: dist.TCPStore("localhost", 0, is_master=True),
    "both": lambda dist: dist.PrefixStore("in", dist.TCPStore("127.0.0.1", 0, 1, True, LATER)),
}


def outcome(call: Callable[[Any], Any], store: Any) -> Any:
    """What a call gives, or the error's class as PyTorch has it."""
    try:
        return call(store)
    except Exception as error:
        theirs = (
            "DistStoreError",
            "QueueEmptyError",
            "DistNetworkError",
            "TypeError",
            "ValueError",
        )
        return next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in theirs)


@pytest.mark.oracle
@pytest.mark.parametrize("kind", KINDS)
def test_as_pytorch(kind: str) -> None:
    import torch.distributed as theirs

    mine, other = KINDS[kind](ours), KINDS[kind](theirs)
    for k, call in enumerate(CALLS):
        mine.set_timeout(SOON)
        other.set_timeout(SOON)
        assert outcome(call, mine) == outcome(call, other), k


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_number_is_refused_and_the_store_goes_on(kind: str) -> None:
    store = KINDS[kind](ours)
    store.set("a", "word")
    with pytest.raises(ValueError, match=r"/(in/)?a is no whole number: b'word'"):
        store.add("a", 1)
    assert store.get("a") == b"word"


def meet(port: int, rank: int) -> None:
    store = ours.TCPStore("127.0.0.1", port, 3, False, LATER)
    store.set(f"rank {rank}", "x" * 1_000_000)
    store.add("sum", rank)
    store.barrier("written", 3)


def test_processes_meet() -> None:
    store = ours.TCPStore("127.0.0.1", 0, 3, True, LATER, wait_for_workers=False)
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=meet, args=(store.port, rank)) for rank in (1, 2)]
    for each in others:
        each.start()
    store.barrier("written", 3)
    assert store.get("sum") == b"3"
    assert store.multi_get(["rank 1", "rank 2"]) == [b"x" * 1_000_000] * 2
    for each in others:
        each.join()
    assert [each.exitcode for each in others] == [0, 0]
    assert store.get("sum") == b"3"  # those that left took nothing along


def test_a_waiting_thread_hinders_nobody() -> None:
    server = ours.TCPStore("127.0.0.1", 0, is_master=True, timeout=LATER)
    found: list[bytes] = []
    other = ours.TCPStore("127.0.0.1", server.port, timeout=LATER)
    waiting = threading.Thread(target=lambda: found.append(other.get("late")))
    waiting.start()
    assert server.add("early", 1) == 1
    server.set("late", "here")
    waiting.join()
    assert found == [b"here"]


def test_a_server_that_ends_is_told() -> None:
    server = ours.TCPStore("127.0.0.1", 0, is_master=True, timeout=LATER)
    client = ours.TCPStore("127.0.0.1", server.port, timeout=LATER)
    port = server.port
    del server
    gc.collect()
    for _ in range(2):
        with pytest.raises(ours.DistNetworkError):
            client.get("a")
    with pytest.raises(ours.DistNetworkError, match=f"connect to .127.0.0.1, {port}"):
        ours.TCPStore("127.0.0.1", port, timeout=SOON)


def test_a_server_that_ends_while_it_accepts_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    accepted, ended = threading.Event(), threading.Event()

    class LateSet(weakref.WeakSet[Any]):
        def add(self, item: Any) -> None:
            accepted.set()
            ended.wait(10)
            super().add(item)

    monkeypatch.setattr(wire.weakref, "WeakSet", LateSet)
    server = wire.Server("127.0.0.1", 0, lambda request: request)
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        assert accepted.wait(10)
        del server
        gc.collect()
        ended.set()
        assert client.recv(1) == b""


def test_what_cannot_begin_is_told() -> None:
    server = ours.TCPStore("127.0.0.1", 0, is_master=True, timeout=LATER)
    with pytest.raises(ours.DistNetworkError, match=f"failed to listen.*port: {server.port}"):
        ours.TCPStore("127.0.0.1", server.port, is_master=True)
    with pytest.raises(ours.DistStoreError, match=r"waiting for clients\. 1/2 clients joined"):
        ours.TCPStore("127.0.0.1", 0, 2, True, SOON)
    with pytest.raises(NotImplementedError, match="master_listen_fd"):
        ours.TCPStore("127.0.0.1", 0, master_listen_fd=3)
    with pytest.raises(TypeError, match="timedelta"):
        ours.TCPStore("127.0.0.1", 0, is_master=True, timeout=5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET / HTTP/1.0\r\n\r\n", b"\xff" * 4096, b"\x00" * 64, b"\x01\0\0\0" + b"\xff" * 8],
)
def test_what_is_no_request_hurts_only_who_sent_it(sent: bytes) -> None:
    server = ours.TCPStore("127.0.0.1", 0, is_master=True, timeout=LATER)
    server.set("a", "1")
    with socket.create_connection(("127.0.0.1", server.port)) as wild:
        wild.sendall(sent)
        with contextlib.suppress(OSError):  # (the server may have hung up already)
            wild.shutdown(socket.SHUT_WR)
        wild.settimeout(60)
        with contextlib.suppress(ConnectionResetError):  # (what it had not read yet)
            assert wild.recv(100) == b""
    assert server.get("a") == b"1"


def test_a_server_for_this_machine_is_not_seen_from_others() -> None:
    for host in ("127.0.0.1", "localhost"):
        server = ours.TCPStore(host, 0, is_master=True, timeout=LATER)
        assert server._server is not None
        assert server._server._listener.getsockname()[0] == "127.0.0.1"
