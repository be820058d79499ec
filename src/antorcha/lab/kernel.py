"""The child process's life: started when it is first needed, told what to run, stopped, restarted.

A `Child` keeps one process. Whatever the program in it does (loops for ever, takes all the memory,
prints without end, aborts), the parent learns how it ended and the next run finds a working child.
The two speak through sockets in a folder that only this user may enter, so nothing listens on the
network; the folder goes when the process does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import psutil
import zmq
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager

import antorcha
from antorcha.lab.child_names import CRASH, FOLDER, MEMORY, REMEMBERED
from antorcha.lab.tail import unsent

STARTING = 60  # seconds that a new process may take until it answers
GRACE = 2.0  # seconds between one request to stop and the next, firmer one
TICK = 0.25  # seconds between two looks at the process's health
LONGEST = 80  # bytes of a folder's path, so that a socket in it has a name that systems take
LATE = 2.0  # seconds that the last output may come after the reply


@dataclass(frozen=True)
class Limits:
    """What one run may take."""

    seconds: float = 600.0
    memory: int = 0  # bytes; 0 is half of the machine's

    @property
    def bytes(self) -> int:
        return self.memory or int(psutil.virtual_memory().total) // 2


@dataclass(frozen=True)
class KernelEvent:
    """Something that the child said. `kind` and `content`:

    output   stream (stdout, stderr) and text         picture  kind (a MIME type) and data (base64)
    live     rows and losses of a running program     input    prompt: the program waits for a line
    """

    kind: str
    content: dict[str, Any]


class _Specs(KernelSpecManager):
    """The one kind of kernel there is; nothing on disk says how to start it."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        # -P: a file of the learner's called random.py must not take the library's place.
        root = str(Path(antorcha.__file__).parents[1])  # the very antorcha that runs here
        start = f"import sys; sys.path.insert(0, {root!r})\n"
        start += "from antorcha.lab.child import main\nmain()"
        argv = [sys.executable, "-P", "-c", start, "-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name="antorcha", language="python")


class Child:
    """A process that runs programs, one at a time.

    Args:
        tell: called with each `KernelEvent`, in the event loop.
        limits: of each run.
    """

    def __init__(self, tell: Callable[[KernelEvent], None], limits: Limits | None = None) -> None:
        self.tell = tell
        self.limits = limits or Limits()
        self._over: asyncio.Event | None = None  # of what runs now: set when it ended
        self._stopping: str | None = None  # why the running program is being ended
        self._starting = asyncio.Lock()
        self._manager: AsyncKernelManager | None = None
        self._client: AsyncKernelClient | None = None
        self._folder: Path | None = None
        self._readers: list[asyncio.Task[None]] = []
        self._idle: dict[str, asyncio.Event] = {}  # by request: all its output has come
        self._replies: dict[str, asyncio.Future[dict[str, Any]]] = {}  # by request
        self._name = ""  # of the program that runs, or ran last
        self._received: Counter[str] = Counter()  # by stream: bytes of what runs that have come

    # ---- life -----------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Is a program running, or being checked?"""
        return self._over is not None

    @property
    def pid(self) -> int | None:
        """The process's number; None where none is there."""
        provisioner = self._manager.provisioner if self._manager is not None else None
        return getattr(provisioner, "pid", None) if provisioner is not None else None

    async def start(self) -> None:
        """Start the process, if there is none. Raises RuntimeError where it does not come up."""
        async with self._starting:
            if self._client is None:
                await self._start()

    async def _start(self) -> None:
        try:
            client = await self._launch()
        except (RuntimeError, OSError, zmq.ZMQError) as error:
            said = "\n".join([str(error), *self._last_words().splitlines()[-1:]])
            await self.end()
            raise RuntimeError(said) from error
        self._readers = [
            asyncio.create_task(self._read_output(client)),
            asyncio.create_task(self._read_replies(client.get_shell_msg)),
            asyncio.create_task(self._read_replies(client.get_control_msg)),
            asyncio.create_task(self._read_questions(client)),
        ]

    async def _launch(self) -> AsyncKernelClient:
        """Start a process, and wait until it answers."""
        self._folder = folder = _private_folder()
        manager = self._manager = AsyncKernelManager(
            kernel_spec_manager=_Specs(),
            transport="ipc",
            ip=str(folder / "s"),
            connection_file=str(folder / "kernel.json"),
        )
        environment = {
            **os.environ,
            FOLDER: str(folder),
            MEMORY: str(self.limits.bytes),
            "IPYTHONDIR": str(folder),
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
            "PYTHONUNBUFFERED": "1",
        }
        # What it prints comes by message; to our own terminal it has nothing to say.
        await manager.start_kernel(env=environment, stdout=DEVNULL, stderr=DEVNULL)
        client = self._client = manager.client()
        client.session.digest_history_size = REMEMBERED
        client.start_channels()
        await client.wait_for_ready(timeout=STARTING)
        return client

    async def end(self) -> None:
        """End the process, and those it started; remove what it had on disk."""
        manager, client, folder = self._manager, self._client, self._folder
        readers, self._readers = self._readers, []
        self._manager = self._client = self._folder = None
        for task in readers:
            task.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
        for reply in self._replies.values():
            reply.cancel()
        self._replies.clear()
        if client is not None:
            client.stop_channels()
        if manager is not None:
            with contextlib.suppress(RuntimeError, OSError):
                await manager.shutdown_kernel(now=True)
            manager.context.destroy(linger=0)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    async def restart(self) -> None:
        """End the process and start a new one."""
        self._stopping = self._stopping or "reset"
        await self.end()
        await self.start()

    # ---- running --------------------------------------------------------------------------------

    async def run(
        self,
        code: str,
        *,
        name: str,
        folder: Path,
        watched: str = "",
        size: tuple[int, int] = (80, 24),
        moved: bool = False,
    ) -> dict[str, Any]:
        """Run a program and return what came of it; to it the terminal has `size` columns, rows.

        What is `watched` besides costs time: "profile" measures every operation, "lines" notes
        which line of the program asked for it, for the graph.

        `moved`: it runs because a number in it is moved; it is ended before it writes a file, asks
        for a line, or has another effect beyond its memory.

        ``ended`` says how it ended: ok, error, exit, stopped (by the learner), refused (an effect
        of one that is `moved`), or, where the process did not live through it: killed (it did not
        react to Stop), crashed, time, memory, reset. ``effects``: did it have one?
        Raises RuntimeError when one is running already, or the process cannot be started.
        """
        self._name = name
        request = {"do": "run", "code": code, "name": name, "folder": str(folder),
                   "watched": watched, "size": size, "moved": moved}  # fmt: skip
        return await self._do(request)

    async def check(self, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Check a challenge's steps on what the last run left, up to the first that fails."""
        answer = await self._do({"do": "check", "steps": steps})
        return list(answer.get("verdicts", []))

    async def try_fixes(self) -> list[str]:
        """Try the fixes of the last error: for each the program with it, "" where it did not come
        further."""
        answer = await self._do({"do": "fixes"})
        return list(answer.get("texts", []))

    async def run_cells(self, cells: list[str], name: str) -> dict[str, Any]:
        """Run these cells of a lesson, in a namespace of their own. ``ended`` as `run` has it; of
        the last one ``printed``, ``text`` (of an error), ``rows`` (tensors that it made or changed)
        and ``losses``."""
        return await self._do({"do": "cells", "cells": cells, "name": name})

    async def draw(self, steps: list[dict[str, str]], lang: str = "en") -> list[str]:
        """Run a lesson's cells (``code``) and draw what it shows (``inspect``, an expression)."""
        answer = await self._do({"do": "draw", "steps": steps, "lang": lang})
        return list(answer.get("drawings", []))

    async def stop(self) -> None:
        """Interrupt the program; end the process if it does not listen."""
        manager, over = self._manager, self._over
        if over is None or manager is None:
            return
        self._stopping = self._stopping or "stopped"
        for _ in range(2):
            with contextlib.suppress(RuntimeError, OSError):
                await manager.interrupt_kernel()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), GRACE)
                return
        self._stopping = "killed" if self._stopping == "stopped" else self._stopping
        await self._kill(manager)

    async def look(
        self, what: str, name: str, lang: str = "en", *, pressed: bool = True
    ) -> dict[str, Any]:
        """Ask to see one tensor of the last program, or of the one that runs.

        Returns ``html``, or ``gone``, or ``problem``, a message (empty where no answer came); while
        a program runs with the seconds to ``wait`` before asking again. Who asks sooner than that
        gets nothing else, but for a person who `pressed` something.
        """
        if self._client is None:
            return {"gone": True}
        content = {"what": what, "name": name, "lang": lang, "pressed": pressed}
        message = self._client.session.msg("look_request", content)
        reply = self._expect(message)
        self._client.control_channel.send(message)
        # That goes past the asynchronous socket, which would then not hear of an answer that has
        # come meanwhile, nor of any later one: let it look.
        self._client.control_channel.socket.get(zmq.EVENTS)
        try:
            return await asyncio.wait_for(reply, 30)
        except (asyncio.CancelledError, TimeoutError):
            return {"problem": ""}
        finally:
            self._forget(message)

    def answer(self, line: str) -> None:
        """Give the program the line that it waits for."""
        if self._client is not None:
            self._client.input(line)

    # ---- one request ----------------------------------------------------------------------------

    async def _do(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._over is not None:
            raise RuntimeError("a program is running")
        over = self._over = asyncio.Event()
        self._stopping = None
        try:
            await self.start()
            return await self._watched(self._request(request))
        finally:
            self._over = None
            over.set()

    async def _request(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._client is not None
        content = {"code": json.dumps(request), "silent": True, "store_history": False,
                   "user_expressions": {}, "allow_stdin": True, "stop_on_error": False}  # fmt: skip
        message = self._client.session.msg("execute_request", content)
        reply = self._expect(message)
        idle = self._idle[message["header"]["msg_id"]] = asyncio.Event()
        try:
            self._client.shell_channel.send(message)
            waiting = asyncio.ensure_future(idle.wait())
            either: set[asyncio.Future[Any]] = {reply, waiting}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            # Either may come first. Without a reply the program was interrupted at the very end.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(waiting, LATE)
            with contextlib.suppress(TimeoutError):
                answer: dict[str, Any] = (await asyncio.wait_for(reply, LATE))["lab"]
                return answer
            return {"ended": "stopped"}
        finally:
            self._forget(message)

    async def _watched(self, work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
        """Do `work`, watching the process: its life, its memory, its time."""
        task = asyncio.ensure_future(work)
        manager = self._manager
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.limits.seconds
        try:
            while not (await asyncio.wait({task}, timeout=TICK))[0]:
                if manager is not self._manager:  # it was reset meanwhile
                    break
                if manager is None or not await manager.is_alive():
                    return await self._ended()
                if self._memory() > self.limits.bytes * 1.1:
                    self._stopping = "memory"
                    await self._kill(manager)
                elif loop.time() > deadline and self._stopping is None:
                    self._stopping = "time"
                    stopper = asyncio.ensure_future(self.stop())
                    stopper.add_done_callback(lambda done: done.exception())
            if not task.done() or task.cancelled():
                return {"ended": self._stopping or "reset"}
            answer = task.result()
            if answer.get("ended") == "stopped" and self._stopping == "time":
                answer["ended"] = "time"
            return answer
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _ended(self) -> dict[str, Any]:
        """The process is gone: say why, and clear away what is left of it."""
        provisioner = self._manager.provisioner if self._manager is not None else None
        code = await provisioner.poll() if provisioner is not None else None
        await asyncio.sleep(TICK)  # its last output is on its way
        self._tell_unsent()
        words = self._last_words()
        await self.end()
        if self._stopping is not None:
            return {"ended": self._stopping}
        text, line = crash_told(words, self._name)
        place = {"line": line, "column": 0, "end_line": line, "end_column": 0} if line else None
        name = _signal_name(code)
        return {"ended": "crashed", "signal": name, "code": code, "text": text, "place": place}

    def _tell_unsent(self) -> None:
        """Show what the process wrote just before it died, and could not send."""
        if self._folder is not None:
            for stream in ("stdout", "stderr"):
                text = unsent(self._folder, stream, self._received[stream])
                if text:
                    self._received[stream] += len(text.encode())
                    self.tell(KernelEvent("output", {"stream": stream, "text": text}))

    async def _kill(self, manager: AsyncKernelManager) -> None:
        if manager.provisioner is not None:
            with contextlib.suppress(OSError):
                await manager.provisioner.kill()

    def _memory(self) -> int:
        try:
            process = psutil.Process(self.pid)
            every = [process, *process.children(recursive=True)]
            return sum(each.memory_info().rss for each in every)
        except psutil.Error:
            return 0

    def _last_words(self) -> str:
        """What Python wrote when the process crashed: the signal, and the program's lines."""
        try:
            assert self._folder is not None
            return (self._folder / CRASH).read_text(encoding="utf-8", errors="replace")[:4000]
        except (OSError, AssertionError):
            return ""

    # ---- what comes from the child --------------------------------------------------------------

    def _expect(self, message: dict[str, Any]) -> asyncio.Future[dict[str, Any]]:
        reply: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._replies[message["header"]["msg_id"]] = reply
        return reply

    def _forget(self, message: dict[str, Any]) -> None:
        self._replies.pop(message["header"]["msg_id"], None)
        self._idle.pop(message["header"]["msg_id"], None)

    async def _read_replies(self, get: Callable[..., Any]) -> None:
        while True:
            message = await get(timeout=None)
            reply = self._replies.get(message["parent_header"].get("msg_id", ""))
            if reply is not None and not reply.done():
                reply.set_result(message["content"])

    async def _read_questions(self, client: AsyncKernelClient) -> None:
        while True:
            message = await client.get_stdin_msg(timeout=None)
            if message["msg_type"] == "input_request":
                self.tell(KernelEvent("input", {"prompt": message["content"]["prompt"]}))

    async def _read_output(self, client: AsyncKernelClient) -> None:
        while True:
            message = await client.get_iopub_msg(timeout=None)
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                self._received[content["name"]] += len(content["text"].encode("utf-8", "replace"))
                text = {"stream": content["name"], "text": content["text"]}
                self.tell(KernelEvent("output", text))
            elif kind == "display_data":
                for mime, data in content["data"].items():
                    self.tell(KernelEvent("picture", {"kind": mime, "data": data}))
            elif kind == "live":
                self.tell(KernelEvent("live", content))
            elif kind == "status":
                idle = self._idle.get(message["parent_header"].get("msg_id", ""))
                if idle is not None and content["execution_state"] == "idle":
                    idle.set()
                elif idle is not None:  # it begins
                    self._received.clear()


def _private_folder() -> Path:
    """A new folder that only this user may enter, with a path short enough for sockets in it."""
    folder = tempfile.mkdtemp(prefix="antorcha-lab-")
    if len(os.fsencode(folder)) > LONGEST and os.path.isdir("/tmp"):
        os.rmdir(folder)
        folder = tempfile.mkdtemp(prefix="antorcha-lab-", dir="/tmp")
    return Path(folder)


def crash_told(words: str, name: str) -> tuple[str, int]:
    """Of what Python wrote when it crashed: the part about the program `name`, and its line.

    >>> crash_told('Fatal Python error: Aborted\\n\\nThread 1:\\n  File "a.py", line 2 in f\\n'
    ...            '  File "lab.py", line 9 in run', "a.py")
    ('Fatal Python error: Aborted\\n\\nThread 1:\\n  File "a.py", line 2 in f\\n', 2)
    """
    lines = words.splitlines(keepends=True)
    own = [index for index, line in enumerate(lines) if f'File "{name}", line ' in line]
    if not own:
        return "".join(lines[:1]), 0
    found = re.search(r", line (\d+)", lines[own[0]])
    return "".join(lines[: own[-1] + 1]), int(found[1]) if found else 0


def _signal_name(code: int | None) -> str:
    """The signal that ended a process; empty where it ended with a code of its own."""
    if code is None or code >= 0:
        return ""
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"
