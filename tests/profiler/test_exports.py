"""What a profile gives to others: tables, traces, stacks, flame graphs; and when: schedules."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import re
import threading
import warnings
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

import antorcha as torch
from antorcha.autograd.profiler_util import EventList, FunctionEvent
from antorcha.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule

SVG = "{http://www.w3.org/2000/svg}"


def _work(n: int = 4) -> None:
    x = torch.ones(n, n, requires_grad=True)
    with record_function("forward <&>"):
        y = (x @ x).exp()
    y.sum().backward()


@pytest.fixture(scope="module")
def prof() -> Any:
    for _ in range(4):  # planning is not to be in the picture
        _work()
    with profile(
        record_shapes=True, profile_memory=True, with_stack=True, with_modules=True
    ) as made:
        _work()
        _work()
    return made


# ---- tables
def _events() -> EventList:
    def event(name: str, us: float, nbytes: int, flops: int) -> FunctionEvent:
        made = FunctionEvent(
            0, name, 1, 0.0, us, input_shapes=[[1, 2]], stack=["x.py(1): f", "g" * 99]
        )
        made.cpu_memory_usage, made.flops = nbytes, flops
        return made

    return EventList(
        [event("aaa", 10.0, 5, 0), event("b" * 80, 2500.0, -3000, 12345678),
         event("c", 3.1e6, 5 << 30, 10**9)],
        profile_memory=True, with_flops=True,
    )  # fmt: skip


def test_table_has_pytorchs_columns_and_look() -> None:
    lines = _events().key_averages().table(sort_by="cpu_time_total", time_unit="ms").splitlines()
    heads = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg",
             "CPU Mem", "Self CPU Mem", "# of Calls", "Total GFLOPs"]  # fmt: skip
    assert lines[1] == "  ".join([heads[0].rjust(55), *[h.rjust(12) for h in heads[1:]]]) + "  "
    assert lines[0] == lines[2] == lines[-2] == "  ".join(["-" * 55, *["-" * 12] * 9]) + "  "
    assert lines[3].split() == ["c", "99.92%", "3100.000ms", "99.92%", "3100.000ms", "3100.000ms",
                                "5.00", "GB", "5.00", "GB", "1", "1.000"]  # fmt: skip
    assert lines[4].startswith("b" * 52 + "...")
    assert lines[4].split()[6:10] == ["-2.93", "KB", "-2.93", "KB"]
    assert lines[5].split()[-1] == "--"
    assert lines[-1] == "Self CPU time total: 3102.510ms"


def test_table_options(prof: Any) -> None:
    events = _events()
    text = events.table(row_limit=1, max_name_column_width=20, header="what")
    lines = text.splitlines()
    assert lines[0] == "=" * len(lines[2])
    assert lines[1] == "what"
    assert text.count("x.py(1): f") == 1
    assert "..." + "g" * 72 in text
    assert EventList().table() == ""
    top = prof.events().table(top_level_events_only=True, row_limit=-1)
    assert "forward <&>" in top
    assert "aten::matmul" not in top
    for wrong, kind in (({"sort_by": "nope"}, AttributeError), ({"time_unit": "h"}, ValueError)):
        with pytest.raises(kind, match=r"nope|'h'"):
            prof.key_averages().table(**wrong)
    rows = prof.key_averages(group_by_stack_n=1)
    assert re.search(r"test_exports.py\(\d+\): _work", rows.table())
    by_device = prof.key_averages().table(sort_by="self_cuda_time_total")  # PyTorch's programs do
    assert "aten::exp" in by_device


# ---- traces
def _trace(path: Path) -> dict[str, Any]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    found: dict[str, Any] = json.loads(text, parse_constant=lambda word: pytest.fail(word))
    return found


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_chrome_trace(prof: Any, tmp_path: Path, name: str) -> None:
    prof.add_metadata("who", "a learner")
    prof.add_metadata_json("settings", '{"lr": 0.1}')
    prof.export_chrome_trace(tmp_path / name)
    assert os.listdir(tmp_path) == [name]
    trace = _trace(tmp_path / name)
    assert trace["who"] == "a learner"
    assert trace["settings"] == {"lr": 0.1}
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    kinds = {e["cat"] for e in spans}
    assert kinds == {"cpu_op", "kernel", "user_annotation"}
    assert len(spans) == len([e for e in prof.events() if e.name != "[memory]"]) + len(
        [k for k in prof.events().kernels if k.cpu_parent is not None]
    )
    for span in spans:
        assert span["dur"] >= 0
        assert span["ts"] >= 0
        assert span["pid"] == os.getpid()
    for a, b in itertools.combinations(spans, 2):  # boxes in a thread nest, or are apart
        if a["tid"] == b["tid"]:
            first, second = sorted((a, b), key=lambda e: (e["ts"], -e["dur"]))
            apart = first["ts"] + first["dur"] <= second["ts"] + 1e-6
            inside = second["ts"] + second["dur"] <= first["ts"] + first["dur"] + 1e-6
            assert apart or inside, (first["name"], second["name"])
    (matmul, *_) = [e for e in spans if e["name"] == "matmul"]
    assert matmul["args"]["Launched by"] == "aten::matmul"
    assert matmul["args"]["m"] == 4
    exp = next(e for e in spans if e["name"] == "aten::exp")
    assert exp["args"]["Input Dims"] == [[4, 4]]
    assert "_work" in exp["args"]["Call stack"]
    starts = {e["id"] for e in trace["traceEvents"] if e["ph"] == "s"}
    ends = {e["id"] for e in trace["traceEvents"] if e["ph"] == "f"}
    assert starts == ends
    assert exp["args"]["Sequence number"] in starts
    assert any(e["ph"] == "M" and "MainThread" in str(e["args"]) for e in trace["traceEvents"])
    assert any(e["name"] == "[memory]" and e["ph"] == "i" for e in trace["traceEvents"])


def test_threads_have_tracks_of_their_own(tmp_path: Path) -> None:
    together = threading.Barrier(2)  # (an ident is used again when its thread has ended)

    def work() -> None:
        together.wait()
        _work()
        together.wait()

    with profile() as prof:
        _work()
        others = [threading.Thread(target=work) for _ in range(2)]
        for other in others:
            other.start()
        for other in others:
            other.join()
    prof.export_chrome_trace(tmp_path / "trace.json")
    events = _trace(tmp_path / "trace.json")["traceEvents"]
    threads = {e["tid"] for e in events if e["ph"] == "X"}
    assert len(threads) == 3
    assert all(0 < e["tid"] < 1 << 32 for e in events)  # what Perfetto can tell apart
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert threads == set(names)
    assert names[os.getpid()].startswith("MainThread")


def test_a_trace_that_cannot_be_written(prof: Any, tmp_path: Path) -> None:
    with pytest.raises(OSError):
        prof.export_chrome_trace(tmp_path / "nowhere" / "trace.json")
    with pytest.raises(ValueError):
        prof.add_metadata_json("bad", "{")
    assert os.listdir(tmp_path) == []


def test_stacks(prof: Any, tmp_path: Path) -> None:
    file = tmp_path / "stacks.txt"
    prof.export_stacks(str(file), "self_cpu_time_total")
    lines = file.read_text().splitlines()
    assert lines
    for line in lines:
        assert re.fullmatch(r"\S+;\S+ \d+", line), line
        assert "_work" in line.split(";")[-2] or "forward" in line
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(str(file), "nope")
    with profile() as bare:
        _work()
    with pytest.raises(AssertionError, match="with_stack=True"):
        bare.export_stacks(str(file))


# ---- flame graphs
def test_flame_graph(tmp_path: Path) -> None:
    n = 400  # so that its product is wide enough to be drawn, whatever the machine does besides
    _work(n)
    with profile(with_stack=True) as prof:
        _work(n)
        _work(n)
    file = tmp_path / "flame.svg"
    prof.export_flame_graph(str(file))
    root = ElementTree.parse(file).getroot()
    assert root.tag == SVG + "svg"
    assert not list(root.iter(SVG + "script"))
    assert "http" not in file.read_text().replace(SVG[1:-1], "")
    width = float(root.attrib["viewBox"].split()[2])
    rows: dict[float, list[tuple[float, float]]] = {}
    titles = []
    for group in root.iter(SVG + "g"):
        titles.append(group.findtext(SVG + "title") or "")
        rect = group.find(SVG + "rect")
        assert rect is not None
        x, y, w = (float(rect.attrib[name]) for name in ("x", "y", "width"))
        assert x >= 0
        assert x + w <= width
        rows.setdefault(y, []).append((x, x + w))
        label = group.findtext(SVG + "text")
        if label:
            assert len(label) * 6.6 <= w  # it fits
    for boxes in rows.values():  # none lies over another
        boxes.sort()
        assert all(a[1] <= b[0] + 0.02 for a, b in itertools.pairwise(boxes))
    blocks = [title for title in titles if title.startswith("forward <&>")]
    assert [title.split(", ")[-1] for title in blocks] == ["1 call"] * 2  # from two lines
    assert any(re.match(r".*test_exports.py\(\d+\): _work", title) for title in titles)
    assert any(title.startswith("matmul: ") for title in titles)


def test_a_flame_graph_begins_with_the_program() -> None:
    library = f"{os.path.dirname(os.__file__)}/runpy.py(1): run"
    stack = ["a.py(2): inner", library, "a.py(1): outer", library]
    event = FunctionEvent(0, "aten::exp", 1, 0.0, 9.0, stack=stack)
    picture = torch.profiler.flame_graph(EventList([event]))
    titles = re.findall("<title>(.*?): 9.000us", picture)
    assert titles == ["all", "a.py(1): outer", library, "a.py(2): inner", "aten::exp"]
    event.stack = [library]
    assert "runpy" in torch.profiler.flame_graph(EventList([event]))


def test_a_notebook_shows_the_table() -> None:
    html = _events().key_averages()._repr_html_()
    assert html.startswith("<pre")
    assert "Self CPU time total" in html
    assert html.index("bbb") < html.index("aaa")  # the slowest first


def test_flame_graphs_of_little() -> None:
    with profile() as empty:
        pass
    assert "nothing was recorded" in empty.flame_graph()
    with profile() as nested, record_function("a"), record_function("b"):
        torch.ones(1) + 1
    root = ElementTree.fromstring(nested.flame_graph())
    order = [g.findtext(SVG + "title") for g in root.iter(SVG + "g")]
    assert [title.split(":")[0] for title in order[:3] if title] == ["all", "a", "b"]


def _recursive(n: int, x: torch.Tensor) -> torch.Tensor:
    return x * 2 if n == 0 else _recursive(n - 1, x) + 1


def test_a_recursion_is_one_box_of_a_flame_graph() -> None:
    with profile(with_stack=True) as prof:
        _recursive(500, torch.ones(3))
    picture = prof.flame_graph()
    root = ElementTree.fromstring(picture)
    assert float(root.attrib["viewBox"].split()[3]) < 1500
    titles = [g.findtext(SVG + "title") or "" for g in root.iter(SVG + "g")]
    (own,) = [each for each in titles if "calls further out" in each]
    assert own.startswith("...")  # the profiler keeps the innermost lines only
    assert any(re.search(r"_recursive: .* levels deep", each) for each in titles)
    assert any(each.startswith("aten::mul") for each in titles)


class _Deep(torch.nn.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.name = f"block {n}"
        self.inner = _Deep(n - 1) if n else torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with record_function(self.name):
            return self.inner(x)  # type: ignore[no-any-return]


@pytest.mark.parametrize("with_stack", [False, True])
def test_a_flame_graph_of_very_deep_calls_says_what_it_leaves_out(with_stack: bool) -> None:
    with profile(with_stack=with_stack, with_modules=True) as prof:
        _Deep(150)(torch.ones(1, 2))
    picture = prof.flame_graph()
    root = ElementTree.fromstring(picture)
    assert float(root.attrib["viewBox"].split()[3]) < 1500
    told = re.search(r"of (\d+) levels the upper (\d+) are left out", picture)
    assert told is not None
    assert int(told[1]) - int(told[2]) == 64


def test_a_flame_graph_needs_no_recursion() -> None:
    events: list[FunctionEvent] = []
    parent: FunctionEvent | None = None
    for level in range(5000):
        event = FunctionEvent(level, f"call {level}", 1, 0.0, 9.0)
        if parent is not None:
            parent.cpu_children.append(event)
            event.cpu_parent = parent
        parent = event
        events.append(event)
    picture = torch.profiler.flame_graph(EventList(events))
    assert "of 5001 levels the upper 4937 are left out" in picture


def test_names_may_hold_any_character() -> None:
    with profile(profile_memory=True) as prof, record_function("a\x00\x1b<&\ud800"):
        torch.ones(100) + 1
    for picture in (prof.flame_graph(), prof.memory_timeline()):
        ElementTree.fromstring(picture)
        picture.encode()


# ---- schedules
def test_schedule_hands_over_what_it_has_recorded() -> None:
    seen: list[tuple[int, dict[str, int]]] = []

    def ready(p: Any) -> None:
        seen.append((p.step_num, {row.key: row.count for row in p.key_averages()}))

    plan = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    with profile(schedule=plan, on_trace_ready=ready) as p:
        for k in range(12):
            for _ in range(k + 1):
                torch.ones(2) * 2
            p.step()
    assert [step for step, _ in seen] == [5, 9]
    assert [counts["aten::mul"] for _, counts in seen] == [4 + 5, 8 + 9]
    assert [counts["ProfilerStep*"] for _, counts in seen] == [2, 2]
    steps = [e.name for e in p.events() if e.name.startswith("ProfilerStep")]
    assert steps == ["ProfilerStep#7", "ProfilerStep#8"]


def test_a_profile_that_ends_in_its_middle_is_handed_over() -> None:
    seen: list[int] = []
    with profile(
        schedule=schedule(wait=0, warmup=1, active=9), on_trace_ready=lambda p: seen.append(1)
    ) as p:
        for _ in range(3):
            torch.ones(2) * 2
            p.step()
    assert seen == [1]
    assert {row.key: row.count for row in p.key_averages()}["aten::mul"] == 2
    with profile(
        schedule=schedule(wait=5, warmup=1, active=1), on_trace_ready=lambda p: seen.append(2)
    ) as p:
        p.step()
    assert seen == [1]
    with pytest.raises(AssertionError, match="must be initialized"):
        p.key_averages()


def test_tensorboard_handler(tmp_path: Path) -> None:
    for zipped in (False, True):
        handler = torch.profiler.tensorboard_trace_handler(str(tmp_path / "log"), "me", zipped)
        with profile(on_trace_ready=handler):
            _work()
    names = sorted(os.listdir(tmp_path / "log"), key=len)
    assert [name.split(".", 2)[2] for name in names] == ["pt.trace.json", "pt.trace.json.gz"]
    assert all(_trace(tmp_path / "log" / name)["traceEvents"] for name in names)


def test_arguments() -> None:
    with pytest.raises(AssertionError, match="No valid profiler activities"):
        profile(activities=[])
    with pytest.raises(TypeError, match="ProfilerActivity"):
        profile(activities=["cpu"])
    with pytest.warns(UserWarning, match="CUDA is not available"):
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
    with pytest.raises(AssertionError, match="Invalid profiler schedule"):
        schedule(wait=0, warmup=1, active=0)
    with pytest.raises(AssertionError, match="must be initialized"):
        profile().export_chrome_trace("x.json")
    with pytest.raises(RuntimeError, match="didn't finish"), profile() as p:
        p.key_averages()
    for emit in (torch.autograd.profiler.emit_nvtx, torch.autograd.profiler.emit_itt):
        with emit(enabled=False):
            pass
        with pytest.raises(NotImplementedError), emit():
            pass


def test_a_step_of_a_profile_that_was_not_started_starts_none() -> None:
    prof = profile()
    prof.step()
    assert prof.step_num == 1
    with profile():  # nothing else is running
        _work()


def test_names_that_programs_use_are_there() -> None:
    prof = profile()
    prof.preset_metadata_json("tags", "[1, 2]")
    prof.set_custom_trace_id_callback(lambda: "run 7")
    assert prof.get_trace_id() == "run 7"
    with pytest.raises(NotImplementedError, match="toggle_collection_dynamic"):
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
    with pytest.raises(NotImplementedError, match="ExecutionTraceObserver"):
        torch.profiler.ExecutionTraceObserver()


@pytest.mark.parametrize("write", ["export_chrome_trace", "export_flame_graph", "export_stacks"])
def test_a_file_is_whole_or_as_it_was(
    prof: Any, tmp_path: Path, write: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept"
    path.write_text("before")

    def full(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="no space"):
        getattr(prof, write)(str(path))
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]
    assert path.read_text() == "before"


# ---- PyTorch
@pytest.mark.oracle
def test_schedules_are_pytorchs() -> None:
    from torch.profiler import schedule as theirs

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for wait, warmup, active, repeat, skip, first in itertools.product(
            (0, 2), (0, 1), (1, 3), (0, 2), (0, 3), (0, 1)
        ):
            kw = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat,
                  "skip_first": skip, "skip_first_wait": first}  # fmt: skip
            mine = [schedule(**kw)(k).name for k in range(20)]
            assert mine == [theirs(**kw)(k).name for k in range(20)], kw
    assert ProfilerAction.RECORD_AND_SAVE.name in mine


@pytest.mark.oracle
@pytest.mark.parametrize("options", [{}, {"record_shapes": True}, {"profile_memory": True},
                                     {"record_shapes": True, "profile_memory": True}])  # fmt: skip
def test_names_and_columns_are_pytorchs(options: dict[str, bool]) -> None:
    import torch as theirs

    found: list[tuple[list[str], set[str]]] = []
    for lib in (torch, theirs):
        model = lib.nn.Sequential(lib.nn.Linear(8, 16), lib.nn.ReLU(), lib.nn.Linear(16, 3))
        optimizer = lib.optim.Adam(model.parameters())
        x, t = lib.ones(4, 8), lib.tensor([0, 1, 2, 0])
        with lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CPU], **options) as p:
            with lib.profiler.record_function("mine"):
                loss = lib.nn.functional.cross_entropy(model(x), t)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        rows = p.key_averages(group_by_input_shape=bool(options.get("record_shapes")))
        head = re.split(r" {2,}", rows.table().splitlines()[1].strip())
        found.append((head, {row.key for row in rows if not row.key.startswith("pointwise")}))
    (mine, ours), (head, names) = found
    assert mine == head
    shared = {
        "mine", "aten::linear", "aten::relu", "AddmmBackward0", "ReluBackward0", "NllLossBackward0",
        "torch::autograd::AccumulateGrad", "Optimizer.step#Adam.step",
        "Optimizer.zero_grad#Adam.zero_grad",
    }  # fmt: skip
    assert shared <= ours
    assert shared <= names
