"""The door of the lab: what is let in, what is not, and what the answers carry."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from antorcha.lab.guard import SOCKETS, Guard

PORT = 8123
HOST = f"127.0.0.1:{PORT}"
ORIGIN = f"http://{HOST}"
PAGE = b"<html><script>one</script><script type='module'>two</script></html>"


class Inner:
    """The guarded app: notes what reaches it, and answers with a page."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.seen.append(scope)
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
            return
        headers = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", b"1")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": PAGE[:9], "more_body": True})
        await send({"type": "http.response.body", "body": PAGE[9:]})


class Answer:
    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self.messages = messages
        start = messages[0]
        self.kind = start["type"]
        self.status = start.get("status")
        self.headers = dict(start.get("headers", ()))
        self.body = b"".join(m.get("body", b"") for m in messages[1:])

    @property
    def refused(self) -> bool:
        return self.kind == "websocket.close" or (self.status or 0) >= 400


def ask(
    guard: Guard, path: str = "/", kind: str = "http", query: str = "", **headers: str
) -> Answer:
    method = headers.pop("method", "GET")
    pairs = [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]
    scope = {"type": kind, "path": path, "method": method, "query_string": query.encode()}
    return ask_scope(guard, {**scope, "headers": pairs})


def ask_scope(guard: Guard, scope: dict[str, Any]) -> Answer:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect" if scope["type"] == "websocket" else "http.request"}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    asyncio.run(guard(scope, receive, send))
    return Answer(sent)


def enter(guard: Guard) -> str:
    """Come in with the token; return the cookie to show from then on."""
    token = guard.address().partition("token=")[2]
    answer = ask(guard, query=f"token={token}", host=HOST)
    assert answer.status == 200
    return answer.headers[b"set-cookie"].decode().partition(";")[0]


@pytest.fixture
def inner() -> Inner:
    return Inner()


@pytest.fixture
def guard(inner: Inner) -> Guard:
    return Guard(inner, port=PORT)


def test_nothing_is_served_without_the_cookie(guard: Guard, inner: Inner) -> None:
    assert ask(guard, host=HOST).status == 403
    assert ask(guard, "/_nicegui/static/nicegui.js", host=HOST).refused
    assert ask(guard, kind="websocket", host=HOST, origin=ORIGIN).refused
    assert ask(guard, host=HOST, cookie=f"antorcha-lab-{PORT}=guess").refused
    assert inner.seen == []


def test_the_token_is_exchanged_for_a_strict_cookie_once(guard: Guard, inner: Inner) -> None:
    address = guard.address("/lesson/01?lang=es")
    assert address.startswith(f"{ORIGIN}/lesson/01?lang=es&token=")
    token = address.partition("token=")[2]
    first = ask(guard, "/lesson/01", query=f"lang=es&token={token}", host=HOST)
    assert b'url=/lesson/01?lang=es"' in first.body
    assert token.encode() not in first.body
    given = first.headers[b"set-cookie"].decode()
    assert "; HttpOnly; SameSite=Strict; Path=/" in given
    assert ask(guard, query=f"token={token}", host=HOST).status == 403
    assert ask(guard, host=HOST, cookie=given.partition(";")[0]).status == 200
    assert len(inner.seen) == 1


def test_a_used_token_gives_way_to_a_new_one(inner: Inner) -> None:
    said: list[str] = []
    guard = Guard(inner, port=PORT, on_entry=said.append)
    enter(guard)
    assert said == [guard.address()]
    enter(guard)
    assert len(set(said)) == 2


def test_a_token_is_taken_from_a_plain_get_with_one_token_only(guard: Guard) -> None:
    token = guard.address().partition("token=")[2]
    assert ask(guard, query=f"token={token}", host="evil.example").refused
    assert ask(guard, query=f"token={token}", host=HOST, origin="http://evil.example").refused
    assert ask(guard, query=f"token={token}&token=x", host=HOST).refused
    post = ask(guard, query=f"token={token}", host=HOST, method="POST", origin=ORIGIN)
    assert post.refused
    assert ask(guard, query=f"token={token}", host=HOST).status == 200


@pytest.mark.parametrize("path", ["//evil.example", "/\\evil.example", '/"><script>'])
def test_the_way_on_from_the_token_leads_to_ourselves(guard: Guard, path: str) -> None:
    token = guard.address().partition("token=")[2]
    body = ask(guard, path, query=f"token={token}", host=HOST).body.decode()
    target = re.search(r'url=([^"]*)"', body)
    assert target is not None
    assert re.match(r"/[^/\\]", target[1])
    assert "<script" not in body


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", f"127.0.0.1.evil.example:{PORT}",
                                  f"127.0.0.1:{PORT + 1}", ""])  # fmt: skip
def test_other_names_for_this_machine_are_refused(guard: Guard, inner: Inner, host: str) -> None:
    cookie = enter(guard)
    assert ask(guard, host=host, cookie=cookie).status == 421
    origin = f"http://{host}"
    assert ask(guard, kind="websocket", host=host, origin=origin, cookie=cookie).refused
    assert inner.seen == []


def test_a_request_without_a_host_or_with_two_is_refused(guard: Guard, inner: Inner) -> None:
    cookie = enter(guard).encode()
    scope = {"type": "http", "path": "/", "method": "GET", "query_string": b""}
    for hosts in ([], [HOST, HOST], [HOST, "evil.example"]):
        headers = [(b"cookie", cookie), *[(b"host", h.encode()) for h in hosts]]
        assert ask_scope(guard, {**scope, "headers": headers}).refused
    assert inner.seen == []


OTHERS = ["http://evil.example", f"https://{HOST}", "null", "", f"http://127.0.0.1:{PORT + 1}",
          f"http://localhost:{PORT}"]  # fmt: skip


@pytest.mark.parametrize("origin", OTHERS)
def test_another_origin_is_refused_everywhere(guard: Guard, inner: Inner, origin: str) -> None:
    cookie = enter(guard)
    for kind, method in [("http", "GET"), ("http", "POST"), ("websocket", "GET")]:
        answer = ask(guard, kind=kind, method=method, host=HOST, origin=origin, cookie=cookie)
        assert answer.refused, (kind, method)
    assert inner.seen == []


def test_what_changes_something_must_say_where_it_comes_from(guard: Guard, inner: Inner) -> None:
    cookie = enter(guard)
    polling = SOCKETS + "socket.io/"
    assert ask(guard, method="POST", host=HOST, cookie=cookie).refused
    assert ask(guard, method="DELETE", host=HOST, cookie=cookie).refused
    assert ask(guard, kind="websocket", host=HOST, cookie=cookie).refused
    assert ask(guard, polling, host=HOST, cookie=cookie).refused
    assert ask(guard, polling, host=HOST, cookie=cookie, sec_fetch_site="same-site").refused
    assert inner.seen == []
    assert not ask(guard, polling, host=HOST, cookie=cookie, sec_fetch_site="same-origin").refused
    assert not ask(guard, method="POST", host=HOST, cookie=cookie, origin=ORIGIN).refused
    assert not ask(guard, kind="websocket", host=HOST, cookie=cookie, origin=ORIGIN).refused


def test_a_socket_is_refused_before_it_is_accepted(guard: Guard) -> None:
    answer = ask(guard, kind="websocket", host=HOST, origin="http://evil.example")
    assert [m["type"] for m in answer.messages] == ["websocket.close"]


def test_unknown_kinds_of_connection_are_refused(guard: Guard, inner: Inner) -> None:
    cookie = enter(guard)
    scope = {"type": "webtransport", "path": "/", "query_string": b""}
    headers = [(b"host", HOST.encode()), (b"origin", ORIGIN.encode()), (b"cookie", cookie.encode())]
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(guard({**scope, "headers": headers}, None, send))  # type: ignore[arg-type]
    assert inner.seen == []
    assert sent == []


def test_headers_of_proxies_do_not_reach_the_framework(guard: Guard, inner: Inner) -> None:
    cookie = enter(guard)
    ask(guard, host=HOST, cookie=cookie, x_forwarded_prefix="//evil", x_forwarded_for="1.2.3.4")
    assert {name for name, _ in inner.seen[0]["headers"]} == {b"host", b"cookie"}


def test_a_page_s_own_scripts_get_the_number_that_the_policy_names(guard: Guard) -> None:
    cookie = enter(guard)
    first, second = [ask(guard, host=HOST, cookie=cookie) for _ in range(2)]
    policy = first.headers[b"content-security-policy"].decode()
    nonce = re.search(r"'nonce-([^']+)'", policy)
    assert nonce is not None
    assert first.body.count(f'<script nonce="{nonce[1]}"'.encode()) == 2
    assert first.headers[b"content-length"] == str(len(first.body)).encode()
    assert nonce[1].encode() not in second.body
    for rule in ("default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"):
        assert rule in policy
    scripts = re.search(r"script-src ([^;]*)", policy)
    assert scripts is not None
    assert scripts[1].split() == ["'self'", f"'nonce-{nonce[1]}'", "'unsafe-eval'"]
    assert policy.count("script-src") == 1
    assert "http:" not in policy


def test_refusals_carry_the_headers_too(guard: Guard) -> None:
    answer = ask(guard, host=HOST)
    assert answer.headers[b"x-content-type-options"] == b"nosniff"
    assert b"default-src 'none'" in answer.headers[b"content-security-policy"]
    assert b"open the address that the terminal shows" in answer.body


def test_another_address_to_listen_on_is_another_name(inner: Inner) -> None:
    guard = Guard(inner, port=PORT, host="192.168.1.7")
    assert guard.address().startswith(f"http://192.168.1.7:{PORT}/?token=")
    assert ask(guard, host=f"192.168.1.7:{PORT}").status == 403
    assert ask(guard, host=f"192.168.1.8:{PORT}").status == 421
    guard = Guard(inner, port=PORT, host="::1")
    assert guard.address().startswith(f"http://[::1]:{PORT}/?token=")
    assert ask(guard, host=f"[::1]:{PORT}").status == 403  # (no cookie yet)


@pytest.mark.parametrize("other", ['a={"x": 1}', "b=one two", "ñ=1", "flag", "_xsrf=2|a|b", "="])
def test_cookies_of_other_programs_do_not_hide_ours(guard: Guard, inner: Inner, other: str) -> None:
    cookie = enter(guard)
    for cookies in (f"{other}; {cookie}", f"{cookie}; {other}"):
        assert ask(guard, host=HOST, cookie=cookies).status == 200
    name = cookie.partition("=")[0]
    assert ask(guard, host=HOST, cookie=f"{other}; {name}=wrong").refused
    assert ask(guard, host=HOST, cookie=f"{cookie}; {name}=wrong").refused


def test_who_lacks_the_key_is_told_how_to_get_it(inner: Inner) -> None:
    knocks: list[str] = []
    guard = Guard(inner, port=PORT, on_knock=knocks.append, lang="es")
    page = {"host": HOST, "accept": "text/html,application/xhtml+xml"}
    answer = ask(guard, "/lesson/memory", **page)
    assert answer.status == 403
    assert "Cómo entrar" in answer.body.decode()
    assert "How to get in" in ask(guard, **page, accept_language="en-GB,en;q=0.5").body.decode()
    assert "How to get in" in ask(guard, query="lang=en", **page).body.decode()
    assert "Cómo entrar" in ask(guard, query="lang=<b>", **page).body.decode()
    assert knocks == [guard.address()]  # once for each token
    assert guard._token not in answer.body.decode()
    policy = answer.headers[b"content-security-policy"].decode()
    assert "default-src 'none'" in policy
    assert "script" not in policy
    assert b"<script" not in answer.body
    enter(guard)
    ask(guard, **page)
    assert knocks[1:] == [guard.address()]


def test_what_is_no_page_gets_a_word_only(guard: Guard) -> None:
    for path, accept in (("/_nicegui/x.js", "*/*"), ("/", "")):
        answer = ask(guard, path, host=HOST, accept=accept)
        assert answer.status == 403
        assert answer.headers[b"content-type"].startswith(b"text/plain")
    foreign = ask(guard, host=HOST, accept="text/html", origin="http://evil.example")
    assert b"<form" not in foreign.body


def test_a_pasted_address_lets_in_as_its_token_does(guard: Guard, inner: Inner) -> None:
    from urllib.parse import quote

    def paste(text: str) -> Answer:
        return ask(guard, query=f"token={quote(text)}", host=HOST)

    token = guard.address().partition("token=")[2]
    for wrong in (f"{ORIGIN}/?token={token}&token={token}", "token=", f"{token}x", f"{ORIGIN}/"):
        assert paste(wrong).status == 403
    first = paste(f"  {ORIGIN}/lesson/x?lang=es&token={token}\n")
    assert first.status == 200
    assert token.encode() not in first.body
    assert paste(f"{ORIGIN}/?token={token}").status == 403
    assert inner.seen == []
