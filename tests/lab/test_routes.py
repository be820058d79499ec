"""Every route of the whole application, HTTP and socket: none is reached past the guard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="needs antorcha[lab]")

from starlette.routing import Mount

from antorcha.lab import app
from antorcha.lab.guard import SOCKETS, Guard
from tests.lab.test_guard import HOST, ORIGIN, PORT, ask, enter

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Reached(Exception):
    """A request came through the guard."""


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Guard:
    options = app.CommandOptions(folder=tmp_path_factory.mktemp("work"))
    guard, _ = app.build(options, PORT, lambda address: None)
    whole = guard.app

    async def reached(scope: Any, receive: Any, send: Any) -> None:
        raise Reached(scope["path"])

    guard.app = reached
    guard.whole = whole  # type: ignore[attr-defined]
    return guard


def paths(application: Any, before: str = "") -> Iterator[str]:
    """The paths of all routes, of mounted applications too, with something in their gaps."""
    for route in getattr(application, "routes", []):
        path = before + re.sub(r"\{[^}]*\}", "x", route.path)
        if isinstance(route, Mount):
            yield path + "/"
            yield from paths(route.app, path)
        else:
            yield path
    if type(application).__name__ == "SocketIoApp":
        yield before + "/socket.io/"


def test_the_routes_are_those_we_know(guard: Guard) -> None:
    every = set(paths(guard.whole))  # type: ignore[attr-defined]
    assert {"/", "/lesson/x", "/file/x", SOCKETS + "socket.io/"} <= every
    assert len(every) >= 10
    # The framework's interactive documentation would be one more way in.
    assert not {"/docs", "/redoc", "/openapi.json"} & every


def test_no_route_is_reached_without_the_cookie_by_another_name_or_from_another_page(
    guard: Guard,
) -> None:
    cookie = enter(guard)
    bad: list[dict[str, str]] = [
        {"host": HOST, "origin": ORIGIN},
        {"host": HOST, "origin": ORIGIN, "cookie": cookie[:-1] + "x"},
        {"host": "evil.example", "origin": "http://evil.example", "cookie": cookie},
        {"host": f"127.0.0.1:{PORT + 1}", "origin": ORIGIN, "cookie": cookie},
        {"host": HOST, "origin": "http://evil.example", "cookie": cookie},
        {"host": HOST, "origin": "null", "cookie": cookie},
    ]
    for path in paths(guard.whole):  # type: ignore[attr-defined]
        for headers in bad:
            for method in METHODS:
                assert ask(guard, path, method=method, **headers).refused, (path, method, headers)
            assert ask(guard, path, kind="websocket", **headers).refused, (path, headers)
        assert ask(guard, path, kind="websocket", host=HOST, cookie=cookie).refused
        for method in METHODS[2:]:
            assert ask(guard, path, method=method, host=HOST, cookie=cookie).refused


def test_the_way_is_open_with_all_three(guard: Guard) -> None:
    """The other tests would pass, too, if the guard refused everything."""
    good = {"host": HOST, "origin": ORIGIN, "cookie": enter(guard)}
    for path in paths(guard.whole):  # type: ignore[attr-defined]
        with pytest.raises(Reached):
            ask(guard, path, **good)
        with pytest.raises(Reached):
            ask(guard, path, kind="websocket", **good)
