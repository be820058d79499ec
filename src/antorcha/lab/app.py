"""Starting the lab: the socket, the guarded server, the browser, and the end of it all."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import sys
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from nicegui import app as nicegui_app
from nicegui import ui

from antorcha.lab import complete, page
from antorcha.lab.files import FileProblem, find_problem
from antorcha.lab.guard import Guard
from antorcha.lab.kernel import Limits
from antorcha.lab.lesson import LessonError, find, load
from antorcha.lab.words import LabWords
from antorcha.lab.workplace import Workplace, recall

LOOPBACK = "127.0.0.1"
ANY = ("0.0.0.0", "::", "")  # these name no address that a browser could use


@dataclass(frozen=True)
class CommandOptions:
    """What the command line may say."""

    lang: str = "en"
    port: int = 0  # 0: a free one
    host: str = LOOPBACK
    folder: Path = field(default_factory=lambda: Path.home() / "antorcha-lab")
    first: str = "/home"  # the page that opens
    own: tuple[Path, ...] = ()  # lessons outside the course
    limits: Limits = field(default_factory=Limits)
    browser: bool = True


class CannotStart(Exception):
    """The lab cannot be started; the message says why, and what to do."""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises CannotStart, with a way out."""
    if host in ANY:
        raise CannotStart(
            f"--host {host or repr(host)}: give the one address that browsers will use, such as "
            "192.168.1.7; the lab answers to no other name"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(64)
    except (OSError, OverflowError) as error:
        sock.close()
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise CannotStart(
                f"port {port} is taken by another program; leave out --port to use a free one"
            ) from error
        raise CannotStart(f"cannot listen on {host}, port {port}: {error}") from error
    return sock


def build(
    options: CommandOptions,
    port: int,
    on_entry: Callable[[str], None],
    on_knock: Callable[[str], None] | None = None,
) -> tuple[Guard, Workplace]:
    """The whole application behind its guard."""
    workplace = Workplace(options.folder, options.limits, list(options.own))
    page.register(workplace, options.first, options.lang)

    @contextlib.asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        tending = asyncio.create_task(workplace.tend())
        threading.Thread(target=complete.table, daemon=True).start()  # ready for the first page
        yield
        tending.cancel()
        await workplace.close()

    outer = FastAPI(lifespan=life, docs_url=None, redoc_url=None, openapi_url=None)
    nicegui_app.config.socket_io_js_transports = ["websocket"]
    ui.add_head_html(page.head(), shared=True)
    ui.run_with(
        outer,
        title="antorcha lab",
        language=None,
        dark=None,
        tailwind=False,
        reconnect_timeout=20,
        gzip_middleware_factory=None,  # the guard reads pages, and nothing travels far
        show_welcome_message=False,
    )
    guard = Guard(
        outer, port=port, host=options.host, on_entry=on_entry, on_knock=on_knock,
        lang=options.lang,
    )  # fmt: skip
    return guard, workplace


def serve(options: CommandOptions) -> int:
    """Run the lab until it is interrupted; return the exit code."""
    try:
        sock = _listen_again(options)
    except CannotStart as error:
        print(f"antorcha lab: {error}", file=sys.stderr)
        return 1
    port = int(sock.getsockname()[1])
    words = LabWords(options.lang)

    def say(key: str) -> Callable[[str], None]:
        return lambda address: print(words(key, address), flush=True)

    guard, workplace = build(options, port, say("cli_again"), say("cli_knock"))
    path = f"{options.first}?lang={options.lang}"
    problem = find_problem(workplace.folder)
    if problem is not None:
        said = words(f"problem_{problem.kind}", problem.path, problem.detail)
        print(f"antorcha lab: {said}", file=sys.stderr)
    workplace.remember(port=port)
    config = uvicorn.Config(
        guard,
        log_level="warning",
        ws="wsproto",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    address = guard.address(path)
    print(f"antorcha lab: {address}", flush=True)
    print(words("cli_saved", workplace.folder), flush=True)
    if options.host not in (LOOPBACK, "localhost"):
        print(words("cli_open"), flush=True)
    if options.browser:
        opener = threading.Timer(0.8, webbrowser.open, (address,))
        opener.daemon = True
        opener.start()
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[sock])
    return 0


def _listen_again(options: CommandOptions) -> socket.socket:
    """Listen on the port of last time if it is free: pages still open find the lab again."""
    last = recall(options.folder).get("port") if not options.port else None
    if isinstance(last, int) and 1024 <= last <= 65535:
        with contextlib.suppress(CannotStart):
            return listen(options.host, last)
    return listen(options.host, options.port)


def first_page(what: str | None, options: CommandOptions) -> CommandOptions:
    """`options` with the page of a lesson, of a lesson's file, or of a program's file.

    Raises CannotStart where there is no such thing.
    """
    if what is None:
        last = Workplace(options.folder, options.limits).last
        return replace(options, first=last or options.first)
    if what == "home":
        return replace(options, first="/home")
    path = Path(what).expanduser()
    try:
        if path.suffix == ".md" and path.exists():
            lesson = load(path.absolute(), options.lang)
            own = (path.absolute(),)
            return replace(options, own=own, first=f"/lesson/{lesson.slug}")
        if path.suffix == ".py":
            return replace(options, folder=path.absolute().parent, first=f"/file/{path.name}")
        return replace(options, first=f"/lesson/{find(what, options.lang).slug}")
    except (ValueError, FileProblem, LessonError) as error:
        raise CannotStart(str(error)) from error
