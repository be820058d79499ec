"""The child process: what runs in it, how it is ended, and what it leaves behind."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

psutil = pytest.importorskip("psutil", reason="the lab's extra is not installed")
pytest.importorskip("ipykernel", reason="the lab's extra is not installed")

import antorcha  # noqa: E402
from antorcha.lab import child, kernel, notes  # noqa: E402
from antorcha.lab.allowance import Allowance  # noqa: E402
from antorcha.lab.kernel import Limits  # noqa: E402
from antorcha.lab.lesson import Cell, Inspect, lessons  # noqa: E402
from antorcha.lab.notes import LIMIT  # noqa: E402
from tests.lab.bench import PATIENCE, Bench, patient  # noqa: E402

RUNS = int(os.environ.get("ANTORCHA_LAB_RUNS", "20"))  # 1000 is run by hand


@pytest.fixture(scope="module", autouse=True)
def patience() -> Iterator[None]:
    with patient():
        yield


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = Bench(tmp_path_factory.mktemp("work"), Limits(seconds=PATIENCE, memory=3 << 30))
    yield bench
    bench.close()


# ---- what a program finds -----------------------------------------------------------------------


def test_output_streams_and_tensors_are_told_of(bench: Bench) -> None:
    done = bench.run(
        """
        import antorcha as torch
        x = torch.arange(6.).view(2, 3)
        print("shape", x.shape)
        w = torch.ones(3, requires_grad=True)
        model = torch.nn.Linear(3, 1)
        pair = [x, 1, {"deep": x}]
        loss = (x @ w).sum()
        """
    )
    assert done["ended"] == "ok"
    assert bench.text() == "shape torch.Size([2, 3])\n"
    rows = {row["name"]: row for row in done["rows"]}
    assert list(rows) == [
            "x", "w", "model.weight", "model.bias", "pair[0]", "pair[2]['deep']", "loss",
        ]  # fmt: skip
    assert rows["x"]["shape"] == [2, 3]
    assert rows["x"]["values"] == "0, 1, 2, …"
    assert rows["w"]["grad"]
    assert rows["loss"]["values"] == "15"
    assert done["graphs"] == ["loss"]
    assert done["losses"] == {"loss": {"values": [15.0], "steps": [0], "count": 1}}


def test_each_run_has_names_of_its_own(bench: Bench) -> None:
    bench.run("import torch\ntorch.set_default_dtype(torch.float64)\nleft = 1")
    done = bench.run("import torch\nprint(torch.ones(1).dtype)\nprint(left)")
    assert bench.text() == "torch.float32\n"
    assert done["message"] == "NameError: name 'left' is not defined"


def test_it_runs_as_python_would_run_the_file(bench: Bench) -> None:
    (bench.folder / "helper.py").write_text("value = 1\n")
    code = """
    import asyncio, pickle, sys
    import helper
    class Thing: pass
    print(__name__, sys.argv, helper.value, type(pickle.loads(pickle.dumps(Thing()))) is Thing)
    asyncio.run(asyncio.sleep(0))
    """
    assert bench.run(code)["ended"] == "ok"
    assert bench.text() == "__main__ ['fundamentals.py'] 1 True\n"
    (bench.folder / "helper.py").write_text("value = 2  # edited meanwhile\n")
    bench.run(code)
    assert " 2 True" in bench.text()


def test_import_torch_is_antorcha(bench: Bench) -> None:
    bench.run("import torch, torch.nn as nn\nprint(torch.__version__, nn.Linear.__module__)")
    assert bench.text() == "2.13.0+antorcha antorcha.nn.linear\n"


def test_a_program_can_ask_for_a_line(bench: Bench) -> None:
    async def answer() -> None:
        bench.child.answer("Ada")

    done = bench.run("name = input('who? ')\nprint('hello', name)", after=answer)
    assert done["ended"] == "ok"
    assert bench.text() == "hello Ada\n"
    assert [e.content for e in bench.events if e.kind == "input"] == [{"prompt": "who? "}]


def test_pictures_are_sent(bench: Bench) -> None:
    pytest.importorskip("matplotlib", reason="the lab's extra is not installed")
    bench.run("import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.show()\nplt.figure()")
    pictures = [event.content for event in bench.events if event.kind == "picture"]
    assert [picture["kind"] for picture in pictures] == ["image/png"]
    assert pictures[0]["data"].startswith("iVBORw0KGgo")  # what every PNG begins with, in base64


# ---- errors -------------------------------------------------------------------------------------


def test_an_error_tells_its_place_and_hides_our_frames(bench: Bench) -> None:
    done = bench.run("import torch\né = 1; y = torch.ones(3, 2) @ torch.ones(3, 2)\n")
    assert done["ended"] == "error"
    assert done["place"] == {"line": 2, "column": 11, "end_line": 2, "end_column": 46}
    assert done["message"].startswith("ShapeError: matmul: (3, 2) @ (3, 2)")
    text = done["text"]
    assert text.startswith('Traceback (most recent call last):\n  File "fundamentals.py", line 2')
    assert "lab/" not in text
    assert text.count("  File ") == 1


def test_a_syntax_error_tells_its_place(bench: Bench) -> None:
    done = bench.run("x = (1,\n")
    assert done["place"] == {"line": 1, "column": 4, "end_line": 1, "end_column": 5}
    assert done["text"].startswith('  File "fundamentals.py", line 1\n')


def test_sys_exit_ends_a_program_quietly(bench: Bench) -> None:
    assert bench.run("import sys\nsys.exit()")["ended"] == "ok"
    assert bench.run("import sys\nsys.exit(3)")["ended"] == "exit"


def test_sharers_of_a_program_and_of_a_lesson_have_their_names(bench: Bench) -> None:
    bench.run(
        """
        import torch
        model = torch.nn.Linear(3, 2)
        parts = [model.weight[0], {"last": model.weight[1]}]
        def look():
            inner = model.weight.view(-1)
            print(torch.inspect(inner))
        look()
        """
    )
    for name in ("model.weight", "parts[0]", "parts[1]['last']"):
        assert f" {name} " in bench.text()
    seen = bench.do(bench.child.look("inspect", "model.weight", pressed=True))["html"]
    assert "parts[1][&#x27;last&#x27;]" in seen
    assert "(no name)" not in bench.text() + seen
    for lang in ("en", "es"):
        steps = [
            step for part in lessons(lang)[1].parts
            if (step := {"code": part.code} if isinstance(part, Cell) else
                {"inspect": part.expression} if isinstance(part, Inspect) else None)
        ]  # fmt: skip
        drawings = bench.do(bench.child.draw(steps, lang))
        assert len(drawings) == 3
        assert not [drawn for drawn in drawings if "(no name)" in drawn or "(sin nombre)" in drawn]


# ---- while it runs ------------------------------------------------------------------------------


def test_a_running_loop_is_looked_at_and_can_be_asked(bench: Bench) -> None:
    answers: list[dict[str, Any]] = []

    def live() -> list[dict[str, Any]]:
        return [event.content for event in bench.events if event.kind == "live"]

    async def ask() -> None:
        answers.append(await bench.child.look("inspect", "nothing of that name"))
        await bench.until(lambda: len(live()) >= 2)
        await bench.until(lambda: live()[-1]["losses"]["loss"]["count"] > 3 * LIMIT)
        await bench.child.stop()

    done = bench.run(
        """
        import torch
        import antorcha.lab.notes as notes
        def train():
            for step in range(10**9):
                loss = torch.tensor(1. / (1 + step))
        x = torch.zeros(2)
        free, notes.FREE = notes.FREE, 1e9  # every loss is read, however long that takes
        print("begun")
        try:
            train()
        finally:
            notes.FREE = free
        """,
        after=ask,
    )
    assert done["ended"] == "stopped"
    assert answers[0]["gone"]
    assert [row["name"] for row in live()[-1]["rows"]] == ["x"]
    curve = live()[-1]["losses"]["loss"]
    assert curve["count"] > LIMIT + 1 >= len(curve["values"]) >= LIMIT / 2
    assert curve["steps"][-1] > curve["steps"][1] > 0
    wanted = [1 / (1 + step) for step in curve["steps"]]
    assert curve["values"] == pytest.approx(wanted)


def test_looks_at_a_running_program_are_rationed(bench: Bench) -> None:
    answers: list[dict[str, Any]] = []

    async def ask() -> None:
        look = bench.child.look
        answers.extend([
            await look("inspect", "x", pressed=pressed) for pressed in (False, False, True, False)
        ])  # fmt: skip
        await bench.child.stop()

    done = bench.run(
        """
        import torch, types
        import antorcha.lab.allowance as allowance
        clock, allowance.time = allowance.time, types.SimpleNamespace(monotonic=float)
        x = torch.ones(3)
        print("begun")
        try:
            while True: pass
        finally:
            allowance.time = clock
        """,
        after=ask,
    )
    assert done["ended"] == "stopped"
    first, soon, pressed, again = answers
    assert "html" in first
    assert set(soon) == set(again) == {"wait"}  # another page's look counts, too
    assert 0 < soon["wait"] == first["wait"]
    assert "html" in pressed  # a person is answered at once, and the pauses add up
    assert again["wait"] > soon["wait"]
    after = bench.do(bench.child.look("inspect", "x", pressed=False))
    assert "html" in after
    assert "wait" not in after


def test_looking_takes_no_more_than_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of big namespaces, and of those that resist, too."""
    clock = [0.0]
    monkeypatch.setattr("antorcha.lab.allowance.time.monotonic", lambda: clock[0])
    for share, took in ((child.ROWS, [0.001, 0.5, 0.02]), (child.OPENED, [0.3, 0.05, 2.0])):
        looks, spent, begin = Allowance(share, child.PACE), 0.0, clock[0]
        for seconds in took:
            clock[0] += looks.wait() + seconds
            spent += seconds
            looks.spend(seconds)
        clock[0] += looks.wait()
        assert spent <= share * (clock[0] - begin)
    assert child.ROWS + child.OPENED + notes.SHARE <= 0.05


def test_stop_ends_an_endless_loop(bench: Bench) -> None:
    pid = bench.child.pid
    done = bench.run("print('begun')\nwhile True:\n    pass", after=bench.child.stop)
    assert done["ended"] == "stopped"
    assert bench.child.pid == pid
    assert bench.run("print(1)")["ended"] == "ok"


def test_a_program_that_does_not_listen_is_ended(bench: Bench, monkeypatch: Any) -> None:
    monkeypatch.setattr("antorcha.lab.kernel.GRACE", 0.3)
    code = """
    import signal
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("begun")
    while True: pass
    """
    assert bench.run(code, after=bench.child.stop)["ended"] == "killed"
    assert bench.run("print(1)")["ended"] == "ok"


def test_a_stop_is_for_the_run_that_it_was_meant_for(bench: Bench, monkeypatch: Any) -> None:
    stopping: list[asyncio.Future[None]] = []

    async def stop() -> None:
        stopping.append(asyncio.ensure_future(bench.child.stop()))

    async def stopped() -> None:
        await stopping[0]  # with no second request, which would be this run's
        bench.child.answer("")

    monkeypatch.setattr(kernel, "GRACE", 2 * PATIENCE)
    assert bench.run("print('begun')\nwhile True: pass", after=stop)["ended"] == "stopped"
    assert bench.run("input()", after=stopped)["ended"] == "ok"


def test_reset_ends_what_runs_and_gives_a_new_process(bench: Bench) -> None:
    pid = bench.child.pid
    done = bench.run("print('begun')\nwhile True:\n    pass", after=bench.child.restart)
    assert done["ended"] == "reset"
    assert bench.child.pid not in (None, pid)
    assert bench.run("print(1)")["ended"] == "ok"


def test_a_crash_is_told_of_and_survived(bench: Bench) -> None:
    done = bench.run("import os\n\nos.abort()")
    assert done["ended"] == "crashed"
    assert done["signal"] == "SIGABRT"
    assert 'File "fundamentals.py", line 3' in done["text"]
    assert bench.run("print(1)")["ended"] == "ok"


@pytest.mark.parametrize(
    "death",
    [
        "os._exit(3)",
        "os.abort()",
        "os.kill(os.getpid(), signal.SIGKILL)",
        "ctypes.string_at(0)",
    ],
)
def test_what_is_printed_before_a_crash_is_kept(bench: Bench, death: str) -> None:
    done = bench.run(
        "import ctypes, os, signal, sys\n"
        "for k in range(20000):\n"
        "    print('line', k, 'ñ')\n"
        "print('to stderr', file=sys.stderr)\n"
        "sys.stdout.write('half a line')\n" + death
    )
    assert done["ended"] == "crashed"
    wanted = "".join([f"line {k} ñ\n" for k in range(20000)]) + "half a line"
    assert bench.text() == wanted
    assert bench.text("stderr") == "to stderr\n"
    assert done.get("signal") or done["code"] == 3
    assert bench.run("print('next')")["ended"] == "ok"
    assert bench.text() == "next\n"


def test_of_very_much_before_a_crash_the_end_is_kept(bench: Bench) -> None:
    bench.run("import os\nprint('x' * 3_000_000)\nprint('the end')\nos._exit(1)")
    assert bench.text().endswith("x\nthe end\n")


def test_programs_learn_the_terminal_s_size_and_tensors_stay_at_80(bench: Bench) -> None:
    code = (
        "import os, shutil, subprocess, sys\nimport torch\n"
        "print(*shutil.get_terminal_size(), flush=True)\n"
        "ask = 'import shutil; print(*shutil.get_terminal_size())'\n"
        "print(subprocess.check_output([sys.executable, '-c', ask], text=True), end='')\n"
        "os.environ['COLUMNS'] = '7'\n"
        "print(max([len(line) for line in str(torch.rand(40)).splitlines()]) <= 80)\n"
    )
    for size in ((133, 40), (90, 12)):
        bench.run(code, size=size)
        assert bench.text() == f"{size[0]} {size[1]}\n{size[0]} {size[1]}\nTrue\n"


def test_a_profile_has_the_program_s_calls_alone(bench: Bench) -> None:
    code = (
        "import time, torch\n"
        "x = [torch.rand(3) for _ in range(20)]\n"
        "end = time.monotonic() + 2\n"
        "while time.monotonic() < end:\n    time.sleep(0.01)\n"
        "for k in range(5):\n    loss = (x[0] * k).sum()\n"
        "values = [each[0].item() for each in x[:6]]\n"
    )
    done = bench.run(code, watched="profile")
    calls = {row["name"]: row["calls"] for row in done["profile"]["rows"]}
    assert calls["aten::item"] == 6
    assert calls["aten::sum"] == 5
    assert not {"aten::detach", "aten::tolist"} & calls.keys(), calls
    assert "aten::item" in done["profile"]["flame"]["es"]


def test_a_profile_of_the_program_s_own_has_its_calls_alone(bench: Bench) -> None:
    code = (
        "import time, torch\n"
        "x = [torch.rand(3) for _ in range(20)]\n"
        "with torch.profiler.profile() as prof:\n"
        "    end = time.monotonic() + 2\n"
        "    while time.monotonic() < end:\n        time.sleep(0.01)\n"
        "    for k in range(5):\n        loss = (x[0] * k).sum()\n"
        "    value = loss.item()\n"
        "print({row.key: row.count for row in prof.key_averages()}['aten::item'])\n"
    )
    bench.run(code)
    assert bench.text() == "1\n"


def test_an_error_is_explained_in_every_language(bench: Bench) -> None:
    done = bench.run("import torch\ny = torch.ones(3, 2) @ torch.ones(3, 2)\n")
    assert "Rule:" in done["explanation"]["en"]
    assert "Regla:" in done["explanation"]["es"]
    assert done["kinds"][0] == "ShapeError"
    assert done["fixes"][0][0] == "y = torch.ones(3, 2) @ torch.ones(3, 2).T"


def test_a_crash_tells_the_program_s_line(bench: Bench) -> None:
    done = bench.run("import os\ndef f():\n    os.abort()\nf()\n")
    assert done["text"].startswith("Fatal Python error: Aborted")
    assert done["text"].endswith('line 3 in f\n  File "fundamentals.py", line 4 in <module>\n')
    assert done["place"]["line"] == 3


def test_output_is_taken_in_whatever_form_it_comes(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.delenv("PYTEST_CURRENT_TEST")  # ipykernel takes no other programs' output in tests
    bench = Bench(tmp_path, Limits())
    done = bench.run(
        r"""
        import subprocess, sys
        sys.stdout.buffer.write("ñ\n".encode() + b"\xff\n")
        print("\ud800")
        subprocess.run(["echo", "theirs"], stdout=sys.stdout)
        sys.stdout.close()
        sys.stdout.write("after\n")  # in one piece: theirs come by another way
        raise ValueError("\ud800")
        """
    )
    assert done["ended"] == "error"
    assert done["message"] == "ValueError: ?"
    bench.do(bench.until(lambda: {"theirs", "after"} <= set(bench.text().split())))
    assert sorted(bench.text().split()) == sorted(["ñ", "\ufffd", "?", "theirs", "after"])
    bench.close()


def test_only_threads_of_the_program_are_told_of(bench: Bench) -> None:
    assert bench.run("print('x' * 30_000_000)")["threads"] == []
    done = bench.run(
        """
        import threading
        def wait():
            import os, time  # the module's names go with the next run
            while not os.path.exists("go on"):
                time.sleep(0.01)
        threading.Thread(target=wait, name="mine", daemon=True).start()
        """
    )
    assert done["threads"] == ["mine"]
    (bench.folder / "go on").touch()
    assert _in_time(lambda: bench.run("pass")["threads"] == [])


def test_a_stop_in_input_shows_the_program_alone(bench: Bench) -> None:
    done = bench.run("input('? ')", after=bench.child.stop)
    assert done["ended"] == "stopped"
    assert "ipykernel" not in done["text"]


def test_names_that_are_no_text_do_no_harm(bench: Bench) -> None:
    done = bench.run(
        "import torch\nglobals()[5] = torch.ones(1)\nglobals()['\\ud800'] = torch.ones(2)\n"
    )
    assert done["ended"] == "ok"
    assert [row["name"] for row in done["rows"]] == ["?"]


@pytest.mark.parametrize("length", [10, 120])
def test_the_child_starts_where_temporary_files_have_long_paths(
    tmp_path: Path, monkeypatch: Any, length: int
) -> None:
    deep = tmp_path / ("d" * length)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    bench = Bench(tmp_path, Limits())
    try:
        assert bench.run("print(1)")["ended"] == "ok"
    finally:
        bench.close()


def test_a_child_that_cannot_start_is_told_of(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "not there"))
    bench = Bench(tmp_path, Limits())
    with pytest.raises(RuntimeError, match="No such file"):
        bench.run("print(1)")
    monkeypatch.undo()
    assert bench.run("print(1)")["ended"] == "ok"
    bench.close()


def test_two_programs_do_not_run_at_once(bench: Bench) -> None:
    async def second() -> None:
        with pytest.raises(RuntimeError, match="is running"):
            await bench.child.run("1", name="f.py", folder=bench.folder)
        bench.child.answer("")

    assert bench.run("input()", after=second)["ended"] == "ok"


# ---- limits -------------------------------------------------------------------------------------


def test_time_is_limited(bench: Bench, monkeypatch: Any) -> None:
    monkeypatch.setattr(bench.child, "limits", Limits(seconds=0.5, memory=3 << 30))
    assert bench.run("while True:\n    pass")["ended"] == "time"


def test_more_memory_than_allowed_is_refused_to_the_program(bench: Bench) -> None:
    done = bench.run("import torch\nx = torch.ones(10**10)")
    assert done["ended"] == "error"
    assert "OutOfMemory: cannot allocate 40,000,000,000 bytes" in done["message"]
    assert bench.run("print(1)")["ended"] == "ok"


@pytest.mark.slow
def test_memory_that_is_not_refused_is_watched(bench: Bench, monkeypatch: Any) -> None:
    bench.run("pass")
    monkeypatch.setattr(bench.child, "limits", Limits(seconds=PATIENCE, memory=1 << 20))
    assert bench.run("import time\ntime.sleep(1000)")["ended"] == "memory"


# ---- what is left behind ------------------------------------------------------------------------


@pytest.mark.slow
def test_endless_output_does_not_stop_the_stop(bench: Bench) -> None:
    done = bench.run("while True:\n    print('begun' * 20)", after=bench.child.stop)
    assert done["ended"] in ("stopped", "killed")
    assert bench.run("print(1)")["ended"] == "ok"


@pytest.mark.slow
def test_many_runs_leave_everything_as_it_was(bench: Bench) -> None:
    code = """
    import torch
    import matplotlib.pyplot as plt
    data = [torch.rand(500, 500) for _ in range(8)]
    w = torch.rand(500, requires_grad=True)
    me = [data]; me.append(me)
    (data[0] @ w).sum().backward()
    figure = plt.figure()
    open("result.txt", "w").write("same")
    """

    def state() -> tuple[int, int, int, int, int]:
        gc.collect()
        child, parent = psutil.Process(bench.child.pid), psutil.Process()
        folder = [*bench.folder.iterdir(), *Path(bench.child._folder or "").iterdir()]
        processes = len(parent.children(recursive=True))
        return child.memory_info().rss, parent.num_fds(), child.num_fds(), processes, len(folder)

    for _ in range(5):
        bench.run(code)
    before = state()
    for _ in range(RUNS):
        assert bench.run(code)["ended"] == "ok"
    after = state()
    assert after[1] <= before[1]
    assert after[2] <= before[2]
    assert after[3:] == before[3:]
    assert after[0] - before[0] < 16e6  # two runs' tensors; each run's would add up to more


def test_processes_of_a_program_can_print(bench: Bench) -> None:
    done = bench.run(
        """
        import multiprocessing
        def work(): print("from below")
        process = multiprocessing.get_context("fork").Process(target=work)
        process.start(); process.join()
        """
    )
    assert done["ended"] == "ok"
    bench.do(bench.until(lambda: "from below" in bench.text()))


def test_ending_removes_processes_and_files(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Limits())
    code = "import subprocess\np = subprocess.Popen(['sleep', '1000'])\nprint(p.pid)"
    bench.run(code)
    folder, pids = bench.child._folder, [bench.child.pid, int(bench.text())]
    assert folder is not None
    assert folder.stat().st_mode & 0o077 == 0
    bench.close()
    assert not folder.exists()
    assert _in_time(lambda: not any(_alive(pid) for pid in pids))


def test_nothing_listens_on_the_network(bench: Bench) -> None:
    bench.run("pass")
    child = psutil.Process(bench.child.pid)
    assert [c for c in child.net_connections("inet") if c.status == psutil.CONN_LISTEN] == []


@pytest.mark.slow
def test_a_child_ends_when_its_parent_is_gone(tmp_path: Path) -> None:
    parent = """
    import asyncio, os, sys
    from pathlib import Path
    from antorcha.lab.kernel import Child
    async def main():
        child = Child(lambda event: None)
        await child.start()
        print(child.pid, child._folder, flush=True)
        os.kill(os.getpid(), 9)
    asyncio.run(main())
    """
    code = textwrap.dedent(parent)
    paths = [str(Path(antorcha.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment,
        capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL
    pid, folder = done.stdout.split()
    assert _in_time(lambda: not _alive(int(pid)))
    assert not Path(folder).exists()


def _alive(pid: int | None) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _in_time(holds: Callable[[], bool]) -> bool:
    """Does something come to hold that no event tells of?"""
    end = time.monotonic() + PATIENCE
    while not (held := holds()) and time.monotonic() < end:
        time.sleep(0.05)
    return held
