"""The child process: an ipykernel that runs the learner's programs and tells what they hold.

It is started by `antorcha.lab.kernel` and speaks Jupyter's messages, over sockets in a private
folder, with a vocabulary of its own: an ``execute_request`` holds JSON that says what to do (run,
check, draw); a ``look_request`` on the control channel asks to see one tensor, also while a program
runs. While one runs, a thread tells of its tensors a few times a second.

The child ends itself when its parent is gone.
"""

from __future__ import annotations

import builtins
import contextlib
import faulthandler
import gc
import io
import json
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ipykernel.kernelapp
from ipykernel.kernelbase import Kernel

import antorcha
from antorcha._version import __version__
from antorcha.core.lazy import lazy
from antorcha.inspector.forms import escaped
from antorcha.inspector.graph.picture import graph_among
from antorcha.inspector.vocabulary import LANGUAGES
from antorcha.lab import asleep, fixes, namespace
from antorcha.lab.allowance import Allowance
from antorcha.lab.cells import CellsRun
from antorcha.lab.child_names import CRASH, FOLDER, MEMORY, REMEMBERED
from antorcha.lab.effects import EffectsWatch, Refused
from antorcha.lab.output import PrivateThread
from antorcha.lab.process_reset import Beginning
from antorcha.lab.program import ProgramRun, position, traceback_text
from antorcha.lab.views import look as views
from antorcha.lab.words import LabWords
from antorcha.nn.module import Module
from antorcha.profiler import session as profiling
from antorcha.runtime.tensor import Tensor

checks = lazy("antorcha.lab.check", before_forks=False)
lessons = lazy("antorcha.lab.lesson", before_forks=False)
resource = lazy("resource", before_forks=False)  # (Windows has none)
PACE = 0.3  # seconds between two looks at a running program
ROWS = 0.01  # of its time, at most, is spent on telling of all of its tensors
OPENED = 0.02  # and on showing those that are opened, in however many pages
DRAWN = 2.0  # seconds that a picture of the last program's model may delay the next program
MESSAGE = 2000  # characters of an error's message shown beside the program


class LabKernel(Kernel):  # type: ignore[misc]
    """Runs programs; one at a time, each in a namespace of its own."""

    implementation = "antorcha-lab"
    implementation_version = __version__
    language_info = {"name": "python", "mimetype": "text/x-python", "file_extension": ".py"}  # noqa: RUF012
    banner = "antorcha lab"
    control_msg_types = [*Kernel.control_msg_types, "look_request"]  # noqa: RUF012

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.program: ProgramRun | None = None
        self.cells: CellsRun | None = None  # of a lesson, that ran last
        self._cell_runs = 0
        self._beginning: Beginning | None = None
        self._effects = EffectsWatch()
        self._looking: _Looking | None = None  # at the program that runs
        self._views: views.ModelViews | None = None  # of the last program's models
        self._drawing = threading.Lock()  # held while a model of the learner's runs for a picture
        builtins.input = self._ask
        asleep.install()

    def _ask(self, prompt: object = "") -> str:
        """``input`` as programs find it."""
        self._effects.note()
        return str(self.raw_input(prompt))

    # ---- requests -------------------------------------------------------------------------------

    async def do_execute(
        self,
        code: str,
        silent: bool,
        store_history: bool = True,
        user_expressions: Any = None,
        allow_stdin: bool = False,
        *,
        cell_meta: Any = None,
        cell_id: Any = None,
    ) -> dict[str, Any]:
        """Answer a request of the lab."""
        self._allow_stdin = allow_stdin
        streams: tuple[Any, ...] = sys.stdout, sys.stderr  # both of them an Output
        for stream in streams:
            stream.begin()
        request = json.loads(code)
        work = {"run": self._run, "check": self._check, "draw": self._draw,
                "cells": self._run_cells, "fixes": self._try_fixes}[request["do"]]  # fmt: skip
        try:
            answer = work(request)
        except Exception as error:  # in the telling, not in the program: without a reply, no page
            answer = {"ended": "untold", "message": _message(error)}
        return {"status": "ok", "execution_count": 0, "lab": _sendable(answer)}

    def _begin(self) -> Beginning:
        """The process as programs find it; remembered before the first of them."""
        if self._beginning is None:
            self._beginning = Beginning()
            gc.freeze()  # what is loaded stays: no search of the memory need go through it
        return self._beginning

    @contextlib.contextmanager
    def _undrawn(self) -> Iterator[None]:
        """Something runs beside the last program, whose models and film are not drawn meanwhile."""
        drawn = self._drawing.acquire(timeout=DRAWN)
        try:
            yield
        finally:
            if drawn:
                self._drawing.release()

    def _run(self, request: dict[str, Any]) -> dict[str, Any]:
        beginning = self._begin()
        drawn = self._drawing.acquire(timeout=DRAWN)
        self._views = None
        if self.program is not None:
            self.program.forget(request["folder"])
        if drawn:
            self._drawing.release()
        program = ProgramRun(
            request["code"], request["name"], request["folder"], beginning, request["size"]
        )
        self.program = program
        with _Looking(self, program) as self._looking:
            self._effects.begin(refuse=request["moved"])
            error = program.run(watched=request["watched"])
            self._effects.end()
        self._looking = None
        # From here on, a Stop that comes late must not end the telling.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _show_pictures()
        sys.stdout.flush()
        program.film.finish()
        self._views = views.ModelViews(program.namespace)
        return {
            **_tell_error(error, program, explain=not request["moved"]),
            "effects": self._effects.seen,
            "seconds": program.seconds,
            "watched": request["watched"],
            "threads": beginning.threads(),
            "rows": namespace.rows(program.namespace),
            "graphs": namespace.graph_names(program.namespace),
            "losses": program.notes.as_dict(),
            "hints": program.hints.as_list(),
            "film": program.film.as_dict(program.namespace),
            "views": views.offers(program.namespace),
            "profile": _tell_profile(program),
        }

    def _try_fixes(self, request: dict[str, Any]) -> dict[str, Any]:
        """Try what would mend the last program; each text that went further, or ""."""
        program = self.program
        if program is None or program.explained is None or program.error is None:
            return {"texts": []}
        try:
            with self._undrawn():
                texts = fixes.tried(program, program.explained, self._begin(), self._effects)
        except KeyboardInterrupt:
            texts = []
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in `_run`
        return {"texts": texts}

    def _check(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run the checks of a challenge's steps on what the last program left."""
        self._touch()
        names = {} if self.program is None else self.program.namespace
        verdicts = []
        for step in request["steps"]:
            verdict = checks.check_step(lessons.Step(**step), names)
            verdicts.append({"ok": verdict.ok, "message": verdict.message})
            if not verdict.ok:
                break
        return {"verdicts": verdicts}

    def _run_cells(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run a lesson from the top to one of its cells."""
        beginning = self._begin()
        if self.cells is not None:
            self.cells.forget(self.cells.folder)
        self.cells = CellsRun(request["cells"], request["name"], beginning)
        with self._undrawn():
            answer = self.cells.run_cells()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in `_run`
        self._cell_runs += 1
        return {**answer, "count": self._cell_runs, "threads": beginning.threads()}

    def _draw(self, request: dict[str, Any]) -> dict[str, Any]:
        """Draw the tensors that a lesson shows, in a namespace that no program sees."""
        self._touch()
        names: dict[str, Any] = {"__name__": "__lesson__"}
        drawings = []
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            for step in request["steps"]:
                try:
                    if "code" in step:
                        exec(step["code"], names)
                    else:
                        tensor = eval(step["inspect"], names)
                        shown = antorcha.inspect(
                            tensor, name=step["inspect"], lang=request["lang"], names=names
                        )
                        drawings.append(shown.html())
                except Exception as error:  # a lesson's tests find it; the page shows the rest
                    if "inspect" in step:
                        drawings.append(escaped(f"{type(error).__name__}: {error}"))
        return {"drawings": drawings}

    def look_request(self, stream: Any, ident: Any, parent: Any) -> None:
        """Show one tensor (``what``: inspect or graph); answered in the control thread.

        While a program runs, only every now and then, unless a person asked (``pressed``): else
        the answer is to ``wait`` so many seconds.
        """
        begin, content = time.thread_time(), parent["content"]
        looking = self._looking
        reply: dict[str, Any]
        if profiling.running is not None:  # it would count our calls
            reply = {"wait": PACE}
        elif looking is not None and not content["pressed"] and looking.opened.wait():
            reply = {"wait": looking.opened.wait()}
        else:
            try:
                reply = self._look(content["what"], content["name"], content["lang"])
            except Exception as error:
                reply = {"problem": f"{type(error).__name__}: {error}"}
            if looking is not None:
                reply["wait"] = looking.opened.spend(time.thread_time() - begin)
        if self.session is not None:
            self.session.send(stream, "look_reply", _sendable(reply), parent, ident)

    def _touch(self) -> None:
        """What runs now may set something that the next program must not find."""
        if self._beginning is not None:
            self._beginning.touch()

    def _look(self, what: str, name: str, lang: str) -> dict[str, Any]:
        """Show a tensor of the program, or (``cell``) of that run of cells."""
        if what in ("film", "model"):
            with self._drawing:
                return self._look_at_model(what, name, lang)
        program = self.program
        if what == "cell":
            count, _, name = name.partition(" ")
            program = self.cells if count == str(self._cell_runs) else None
        names = {} if program is None else program.namespace
        tensor = namespace.find(names, name)
        if tensor is None:
            return {"gone": True}
        self._touch()  # (a subclass of the learner's may do anything when it is shown)
        if what == "graph":
            models = [value for value in names.values() if isinstance(value, Module)]
            model = models[0] if len(models) == 1 else None  # its parameters have better names
            own = _leaf_names(names)  # before what the model calls them
            graph = graph_among(names, tensor, model=model, names=own, lang=lang)
            return {"html": graph.svg()}
        return {"html": antorcha.inspect(tensor, name=name, lang=lang, names=names).html()}

    def _look_at_model(self, what: str, name: str, lang: str) -> dict[str, Any]:
        """A frame of the film, or a picture of a model (`name` is the request, as JSON); neither
        while a program runs: models of the last one run for it."""
        if self._looking is not None or self._views is None:
            return {"gone": True}
        self._touch()
        if what == "film":
            return self._look_at_film(name, lang)
        return self._views.look(json.loads(name), lang)

    def _look_at_film(self, name: str, lang: str) -> dict[str, Any]:
        """A parameter in a frame: `name` is the frame's number and the parameter's."""
        words = LabWords(lang)
        index, number = map(int, name.split())
        if self.program is None or index >= len(self.program.film.frames):
            return {"gone": True}
        headings = (words("film_weight"), words("film_gradient"), words("film_histogram"),
                    words("film_plane"))  # fmt: skip
        names = self.program.namespace
        return {"html": self.program.film.draw(index, number, lang, headings, names)}

    # ---- what is told without being asked -------------------------------------------------------

    def publish_picture(self, kind: str, data: str) -> None:
        """Send a picture of the program's to the page."""
        content = {"data": {kind: data}, "metadata": {}, "transient": {}}
        self.send_response(self.iopub_socket, "display_data", content, channel="shell")

    def publish_live(self, program: ProgramRun, parent: Any) -> None:
        """Send the rows of a running program, and its curves."""
        content = {"rows": namespace.rows(program.namespace), "losses": program.notes.as_dict(),
                   "hints": program.hints.as_list()}  # fmt: skip
        if self.session is not None:
            self.session.send(self.iopub_socket, "live", _sendable(content), parent)


class _Looking:
    """Looks at a program while it runs, in a thread that takes at most `ROWS` of the time; `opened`
    is what may go into single tensors. What counts is the time in which these threads worked: while
    they wait for their turn, the program goes on."""

    def __init__(self, kernel: LabKernel, program: ProgramRun) -> None:
        self._kernel = kernel
        self._program = program
        self._parent = kernel.get_parent("shell")
        self._rows, self.opened = Allowance(ROWS, PACE), Allowance(OPENED)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True, name="antorcha-lab")

    def __enter__(self) -> _Looking:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(timeout=2)

    def _look_on(self) -> None:
        pause = PACE
        while not self._done.wait(pause):
            if profiling.running is not None:  # it would count our calls
                continue
            begin = time.thread_time()
            with contextlib.suppress(Exception):  # something in the namespace resists
                self._kernel.publish_live(self._program, self._parent)
            pause = self._rows.spend(time.thread_time() - begin)


def _tell_error(
    error: BaseException | None, program: ProgramRun, *, explain: bool = True
) -> dict[str, Any]:
    """How the program ended: ``ended`` is ok, error, stopped, exit or refused; and what to show of
    it, in every language: another page may be in another one."""
    if isinstance(error, Refused):
        return {"ended": "refused"}
    if error is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
        return {"ended": "ok"}
    if isinstance(error, SystemExit):
        return {"ended": "exit", "text": f"SystemExit: {error.code}\n"}
    text = traceback_text(error)
    told: dict[str, Any] = {
        "text": text, "place": position(error, program), "message": _message(error),
        "kinds": [kind.__name__ for kind in type(error).__mro__],
    }  # fmt: skip
    if isinstance(error, KeyboardInterrupt):
        return {**told, "ended": "stopped"}
    told["ended"] = "error"
    if not explain:
        return told
    try:
        found = {lang: antorcha.explain(error, lang=lang) for lang in LANGUAGES}
        told["explanation"] = {lang: each.html() for lang, each in found.items()}
        program.explained = next(iter(found.values()))
        told["fixes"] = program.explained.fixes
    except Exception as failure:  # the traceback stands in the terminal all the same
        told["problem"] = f"{type(failure).__name__}: {failure}"
    return told


def _message(error: BaseException) -> str:
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__
    return text if len(text) <= MESSAGE else text[:MESSAGE] + " …"


def _sendable(content: dict[str, Any]) -> dict[str, Any]:
    """`content` as it can be sent: half of a surrogate pair has no bytes in UTF-8, and no message
    that holds one would leave."""
    text = json.dumps(content, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return dict(json.loads(text.encode("utf-8", "replace")))
    return content


def _tell_profile(program: ProgramRun) -> dict[str, Any] | None:
    """The rows of the table, the busiest first, and the picture, in every language."""
    if program.profile is None:
        return None
    rows = sorted(program.profile.key_averages(), key=lambda row: -row.self_cpu_time_total)
    events = program.profile.events()
    for event in events:  # of whose calls, those of the program: not what called it
        own = [k for k, line in enumerate(event.stack) if line.startswith(f"{program.name}(")]
        if own:
            event.stack = event.stack[: own[-1] + 1]
    flame = antorcha.profiler.flame_graph
    return {
        "rows": [
            {"name": row.key, "calls": row.count, "own": row.self_cpu_time_total / 1e6,
             "whole": row.cpu_time_total / 1e6, "memory": row.self_cpu_memory_usage}
            for row in rows
        ],
        "flame": {lang: flame(events, lang=lang) for lang in LANGUAGES},
    }  # fmt: skip


def _leaf_names(names: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in names.items()
        if isinstance(value, Tensor) and not name.startswith("__")
    }


def _show_pictures() -> None:
    pictures = sys.modules.get("antorcha.lab.pictures")
    if pictures is not None:
        try:
            pictures.show()
        except Exception as error:
            print(f"matplotlib: {type(error).__name__}: {error}", file=sys.stderr)


# ---- the process --------------------------------------------------------------------------------


def _limit_memory() -> None:
    """More memory than allowed is refused to the program, which can say so, and not to the machine.

    Where the system has no such limit, the parent watches.
    """
    try:
        allowed = int(os.environ[MEMORY])
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if hard != resource.RLIM_INFINITY:
            allowed = min(allowed, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (allowed, hard))
    except (ImportError, OSError, ValueError):
        return


def _end_with_parent(folder: Path) -> None:
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        shutil.rmtree(folder, ignore_errors=True)
        os.killpg(0, signal.SIGKILL)  # the processes that the program started, too

    threading.Thread(target=watch, daemon=True, name="antorcha-lab-parent").start()


def main() -> None:
    """Be the child process."""
    folder = Path(os.environ[FOLDER])
    with open(folder / CRASH, "w", encoding="utf-8") as crash:
        faulthandler.enable(crash, all_threads=False)
        try:
            _serve(folder)
        except Exception:
            traceback.print_exc(file=crash)
            raise


def _serve(folder: Path) -> None:
    os.environ["MPLBACKEND"] = "module://antorcha.lab.pictures"
    _limit_memory()
    _end_with_parent(folder)
    antorcha.torch_alias.install(hide=True)
    # Loads the runtime, so that the first run need not wait, and what draws tensors: a first look
    # at a running program that took long would be followed by a long pause.
    antorcha.inspect(antorcha.rand(2, 2) + antorcha.rand(2, 2).sum().item()).html()
    ipykernel.kernelapp.IOPubThread = PrivateThread
    app = ipykernel.kernelapp.IPKernelApp.instance(
        kernel_class=LabKernel,
        outstream_class="antorcha.lab.output.Output",
        parent_handle=1,  # we watch the parent ourselves
    )
    app.initialize()
    app.session.digest_history_size = REMEMBERED
    app.start()
