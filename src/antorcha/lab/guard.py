"""The lab's door: who may speak to the server that runs the learner's code.

One ASGI middleware stands in front of everything, pages, files and sockets alike, and lets nothing
through that is not known to come from the page it opened itself:

- the address that is opened carries a *token* that works once; it is exchanged for a cookie that
  scripts cannot read and that other sites' requests do not carry (who comes without either gets a
  page that says so, `way_in`, with a field for the address);
- the ``Host`` must be one of the lab's own names, or another page could give its own name our
  address (DNS rebinding);
- every request that is not a plain GET, and every socket, must come from the lab's own page: its
  ``Origin`` must be the lab's, exactly. (All ports of a machine share cookies, and are one site to
  browsers: the origin is what tells our page from another program's.)

What it lets through is answered with a content security policy: the page may load nothing from
elsewhere, speak to nobody else, and run only the scripts that the server wrote into it.
"""

from __future__ import annotations

import hmac
import html
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from antorcha.lab import way_in

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]

SOCKETS = (
    "/_nicegui_ws/"  # where the page's socket lives; its long polling is held to the same rule
)
POLICY_VIOLATION = 1008  # RFC 6455, 7.4.1

# Headers that proxies add. There is none here, and the framework would believe them.
_PROXY_HEADERS = (b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-prefix",
                  b"x-forwarded-proto", b"x-real-ip")  # fmt: skip

# What every answer carries, besides the content security policy.
_ALWAYS: list[Header] = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
]
_NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


class GuardRefusal(Exception):
    """Why a request goes no further: the status, and a sentence for whoever reads it."""

    def __init__(self, status: HTTPStatus, reason: str, *, lacks_key: bool = False) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.lacks_key = lacks_key


class Guard:
    """The middleware: ``Guard(app, port=8123)`` is an ASGI app that asks before `app` is called.

    Args:
        app: what is guarded.
        port: the port that the server listens on; part of its names and of the cookie's.
        host: the address that it listens on, beside the names of this machine's loopback.
        on_entry: called with a fresh address whenever the last one was used up.
        on_knock: called with the address that lets in when somebody opens a page without it; once
            for each address.
        lang: of the page that says how to get in, where the browser wants no other.
    """

    def __init__(
        self,
        app: App,
        *,
        port: int,
        host: str = "127.0.0.1",
        on_entry: Callable[[str], None] | None = None,
        on_knock: Callable[[str], None] | None = None,
        lang: str = "en",
    ) -> None:
        self.app = app
        self.port = port
        self.host = host = f"[{host}]" if ":" in host else host  # RFC 3986, 3.2.2
        self.on_entry = on_entry
        self.on_knock = on_knock
        self.lang = lang
        self._knocked = ""  # the token that was spoken of last
        self.cookie = f"antorcha-lab-{port}"
        names = dict.fromkeys((host, "127.0.0.1", "localhost"))
        self.hosts = {f"{name}:{port}" for name in names} | (set(names) if port == 80 else set())
        self._secret = secrets.token_urlsafe(32)
        self._token = secrets.token_urlsafe(32)
        self._opened = "/"

    def address(self, path: str = "/") -> str:
        """The address to open, with the token that is good for one visit."""
        self._opened = path
        joint = "&" if "?" in path else "?"
        return f"http://{self.host}:{self.port}{path}{joint}token={self._token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, or refuse it."""
        kind = scope["type"]
        if kind == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = _Headers(scope)
        try:
            self._check_host(headers)
            self._check_origin(scope, headers)
            if kind == "http" and self._brings_token(scope):
                await self._welcome(scope, send)
                return
            self._check_cookie(headers)
            if kind not in ("http", "websocket"):
                raise GuardRefusal(
                    HTTPStatus.FORBIDDEN, "only pages and their sockets are served here"
                )
        except GuardRefusal as refusal:
            if kind == "http" and refusal.lacks_key and _wants_page(scope):
                await self._show_way_in(scope, send)
            else:
                await _refuse(kind, refusal, receive, send)
            return
        scope["headers"] = [pair for pair in scope["headers"] if pair[0] not in _PROXY_HEADERS]
        if kind == "websocket":
            await self.app(scope, receive, send)
        else:
            await self.app(scope, receive, _Answer(send, self.hosts).send)

    # ---- the three questions --------------------------------------------------------------------

    def _check_host(self, headers: _Headers) -> None:
        if headers.only(b"host") not in self.hosts:
            raise GuardRefusal(
                HTTPStatus.MISDIRECTED_REQUEST, "this server does not answer to that name"
            )

    def _check_origin(self, scope: Scope, headers: _Headers) -> None:
        """The origin must be ours where it matters, and must never be another's."""
        origin = headers.only(b"origin")
        if origin is not None:
            if origin != f"http://{headers.only(b'host')}":
                raise GuardRefusal(HTTPStatus.FORBIDDEN, "the request comes from another page")
            return
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD"):
            if not scope["path"].startswith(SOCKETS):
                return
            # Browsers send no Origin with a GET of the page's own, and say so in this header.
            if headers.only(b"sec-fetch-site") == "same-origin":
                return
        raise GuardRefusal(
            HTTPStatus.FORBIDDEN, "the request does not say which page it comes from"
        )

    def _check_cookie(self, headers: _Headers) -> None:
        if not _same(headers.cookie(self.cookie), self._secret):
            raise GuardRefusal(
                HTTPStatus.FORBIDDEN,
                "open the address that the terminal shows: it carries the key to this page",
                lacks_key=True,
            )

    # ---- the token ------------------------------------------------------------------------------

    def _brings_token(self, scope: Scope) -> bool:
        if scope["method"] != "GET":
            return False
        given = [value for name, value in _query(scope) if name == "token"]
        return len(given) == 1 and _same(_token_in(given[0]), self._token)

    async def _show_way_in(self, scope: Scope, send: Send) -> None:
        """Answer who comes without the key: with a page that says how to get it."""
        wanted = [*_values(scope, b"accept-language"), ""][0]
        asked = [value for name, value in _query(scope) if name == "lang"]
        lang = asked[0] if asked else wanted[:2].lower() or self.lang
        tried = any(name == "token" for name, _ in _query(scope))
        page, policy = way_in.page(lang, self.lang, was_wrong=tried)
        if self.on_knock is not None and self._knocked != self._token:
            self._knocked = self._token
            self.on_knock(self.address(self._opened))
        await _answer(HTTPStatus.FORBIDDEN, page, "text/html", send, [], policy)

    async def _welcome(self, scope: Scope, send: Send) -> None:
        """Take the token, give the cookie, and send the browser on to the address without it.

        By a page that refreshes itself, not by a redirect: a strict cookie would not be sent along
        where a link of another page began the journey.
        """
        self._token = secrets.token_urlsafe(32)
        rest = urlencode([(name, value) for name, value in _query(scope) if name != "token"])
        # One slash in front: two would name another host.
        target = "/" + quote(scope["path"].lstrip("/")) + ("?" + rest if rest else "")
        link = html.escape(target)
        page = (
            f'<!doctype html><meta http-equiv="refresh" content="0;url={link}">'
            f'<title>antorcha lab</title><a href="{link}">antorcha lab</a>'
        )
        cookie = f"{self.cookie}={self._secret}; HttpOnly; SameSite=Strict; Path=/"
        extra = [(b"set-cookie", cookie.encode("latin-1"))]
        await _answer(HTTPStatus.OK, page, "text/html", send, extra)
        if self.on_entry is not None:
            self.on_entry(self.address(self._opened))


class _Answer:
    """Passes an answer on with the security headers, and lets a page's own scripts run.

    A page's inline scripts are the framework's; each gets a number used once (a nonce) that the
    policy names, so that a script that came into the page in any other way does not run.
    """

    def __init__(self, send: Send, hosts: set[str]) -> None:
        self._send = send
        self._sockets = " ".join(sorted(f"ws://{host}" for host in hosts))
        self._start: Message | None = None  # of a page, held back until its length is known
        self._body: list[bytes] = []
        self._nonce = secrets.token_urlsafe(16)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [*message["headers"], *_ALWAYS]
            headers.append((b"content-security-policy", self._policy().encode()))
            message = {**message, "headers": headers}
            if _is_page(headers):
                self._start = message
                return
        elif self._start is not None and message["type"] == "http.response.body":
            self._body.append(message.get("body", b""))
            if not message.get("more_body", False):
                await self._send_page(self._start)
            return
        await self._send(message)

    async def _send_page(self, start: Message) -> None:
        nonce = f'<script nonce="{self._nonce}"'.encode()
        body = b"".join(self._body).replace(b"<script", nonce)
        headers = [pair for pair in start["headers"] if pair[0] != b"content-length"]
        headers.append((b"content-length", str(len(body)).encode()))
        await self._send({**start, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    def _policy(self) -> str:
        # The framework builds its components and its event handlers from text ('unsafe-eval'), and
        # writes styles into elements ('unsafe-inline' for styles only).
        return (
            f"{_NOTHING}; script-src 'self' 'nonce-{self._nonce}' 'unsafe-eval'; "
            "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; "
            f"connect-src 'self' {self._sockets}"
        )


class _Headers:
    """The request's headers; asking for one that is there twice refuses the request."""

    def __init__(self, scope: Scope) -> None:
        self._pairs: list[Header] = list(scope.get("headers", ()))

    def only(self, name: bytes) -> str | None:
        found = [value for key, value in self._pairs if key == name]
        if len(found) > 1:
            raise GuardRefusal(HTTPStatus.BAD_REQUEST, f"the header {name.decode()} is there twice")
        return found[0].decode("latin-1") if found else None

    def cookie(self, name: str) -> str:
        """A cookie's value; empty where there is none, or two.

        Read by hand: all programs on this machine share their cookies, and the standard library's
        parser gives up at the first that it finds odd (a space, JSON, a letter beyond ASCII).
        """
        pairs = [pair.partition("=") for pair in (self.only(b"cookie") or "").split(";")]
        found = [value.strip() for key, _, value in pairs if key.strip() == name]
        return found[0] if len(found) == 1 else ""


def _token_in(given: str) -> str:
    """The token, of which somebody may have pasted the whole address."""
    given = given.strip()
    if "token=" not in given:
        return given
    found = [value for name, value in parse_qsl(urlsplit(given).query) if name == "token"]
    return found[0] if len(found) == 1 else ""


def _wants_page(scope: Scope) -> bool:
    """Does a person look at the answer? (What a page loads by itself asks for no text/html.)"""
    accepted = ",".join(_values(scope, b"accept"))
    return scope["method"] == "GET" and "text/html" in accepted


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope.get("headers", ()) if key == name]


def _query(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())


def _is_page(headers: list[Header]) -> bool:
    kinds = [value for key, value in headers if key.lower() == b"content-type"]
    encoded = any(key.lower() == b"content-encoding" for key, _ in headers)
    return bool(kinds) and kinds[0].startswith(b"text/html") and not encoded


async def _refuse(kind: str, refusal: GuardRefusal, receive: Receive, send: Send) -> None:
    if kind == "websocket":
        await receive()  # the request to connect; closing before accepting refuses it
        await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": refusal.reason})
    elif kind == "http":
        text = f"antorcha lab: {refusal.reason}\n"
        await _answer(refusal.status, text, "text/plain", send, [])


async def _answer(
    status: HTTPStatus,
    text: str,
    kind: str,
    send: Send,
    extra: list[Header],
    policy: str = _NOTHING,
) -> None:
    body = text.encode()
    headers = [
        (b"content-type", f"{kind}; charset=utf-8".encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"content-security-policy", policy.encode()),
        *_ALWAYS,
        *extra,
    ]
    await send({"type": "http.response.start", "status": int(status), "headers": headers})
    await send({"type": "http.response.body", "body": body})
