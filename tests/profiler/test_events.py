"""What a profile sees: calls, nodes, kernels, what is inside of what, threads, memory, lines."""

from __future__ import annotations

import gc
import inspect
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import antorcha as torch
from antorcha.core import modes
from antorcha.runtime import launched, trace
from antorcha.runtime.call import native
from antorcha.runtime.memory.alloc import stats

pytestmark = pytest.mark.usefixtures("no_collection")

F = torch.nn.functional
Profile = torch.profiler.profile


@pytest.fixture(params=["native", "python"])
def path(request: pytest.FixtureRequest) -> Iterator[str]:
    """The same by the native call path, and by Python's."""
    if request.param == "native":
        yield "native"
    else:
        with native.off():
            yield "python"


@pytest.fixture(autouse=True)
def _leaves_all_as_it_was() -> Iterator[None]:
    before = modes.busy, modes.profiled, modes.state.word
    yield
    assert (modes.busy, modes.profiled, modes.state.word) == before
    assert not trace.state.on
    assert all(owner.words[0] == owner.kernel for owner in launched.all_owners())


def _step() -> Callable[[], None]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, t = torch.randn(4, 8), torch.tensor([0, 1, 2, 0])

    def step() -> None:
        loss = F.cross_entropy(model(x), t)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def _counts(prof: Any) -> dict[str, int]:
    return {row.key: row.count for row in prof.key_averages()}


def test_counts_are_those_of_the_program(path: str) -> None:
    a, b = torch.ones(4), torch.ones(4)
    for warm in range(3):  # planned in Python, learnt, served natively
        with Profile() as prof:
            for _ in range(7):
                c = a + b
                c = c * 2.0
                torch.exp(c)
                c.exp()
                c.view(2, 2).sum()
                a.add_(b)
                c[1:]
        counts = _counts(prof)
        wanted = {"aten::add": 7, "aten::mul": 7, "aten::exp": 14, "aten::view": 7, "aten::sum": 7,
                  "aten::add_": 7, "aten::slice": 7}  # fmt: skip
        assert counts == wanted, warm


def test_a_training_step(path: str) -> None:
    step = _step()
    for warm in range(4):
        with Profile() as prof:
            step()
        counts = _counts(prof)
        for name, count in {
            "aten::linear": 2, "aten::relu": 1, "AddmmBackward0": 2, "ReluBackward0": 1,
            "torch::autograd::AccumulateGrad": 4, "Optimizer.step#SGD.step": 1,
            "Optimizer.zero_grad#SGD.zero_grad": 1,
        }.items():  # fmt: skip
            assert counts[name] == count, (warm, name)
    nodes = [e for e in prof.events() if e.scope == 1]
    assert [e.name for e in nodes][-3:] == ["AddmmBackward0", "ReluBackward0", "AddmmBackward0"]


def test_nesting_and_times(path: str) -> None:
    step = _step()
    step()
    with Profile() as prof, torch.profiler.record_function("outer"):
        step()
        with torch.profiler.record_function("inner"):
            torch.ones(3) + 1
    events = prof.events()
    assert events[0].name == "outer"
    assert events[0].cpu_parent is None
    assert events[0].is_user_annotation
    for event in events:
        assert 0 <= event.self_cpu_time_total <= event.cpu_time_total, event
        for child in event.cpu_children:
            assert child.cpu_parent is event
            assert event.time_range.start <= child.time_range.start
            assert child.time_range.end <= event.time_range.end
    assert all(e.cpu_parent is not None for e in events[1:])
    (add,) = [e for e in events if e.name == "aten::add"]
    assert add.cpu_parent is not None
    assert add.cpu_parent.name == "inner"
    own = sum(e.self_cpu_time_total for e in events)
    assert own == pytest.approx(events[0].cpu_time_total)
    assert prof.total_average().cpu_time_total == pytest.approx(own)
    rows = prof.key_averages()
    assert sum(row.self_cpu_time_total for row in rows) == pytest.approx(own)
    assert prof.total_average().count == sum(row.count for row in rows) == len(events)


def test_kernels_are_below_what_launched_them(path: str) -> None:
    step = _step()
    for _ in range(4):
        step()
    with Profile() as prof:
        step()
    linear = [e for e in prof.events() if e.name == "aten::linear"]
    assert [[k.name for k in e.kernels] for e in linear] == [["matmul"], ["matmul"]]
    sizes = [[e.kernels[0].details[name] for name in "mnk"] for e in linear]
    assert sizes == [[4, 16, 8], [4, 3, 16]]
    for event in prof.events():
        assert event.kernel_time_total <= event.cpu_time_total
        for kernel in event.kernels:
            assert event.time_range.start <= kernel.start
    by_name = {e.name: e for e in prof.events()}
    assert len([k for k in by_name["AddmmBackward0"].kernels if k.name == "matmul"]) >= 1
    assert len(by_name["Optimizer.step#SGD.step"].kernels) == 4
    ops = prof.key_averages()
    rows = prof.key_averages(kernels=True)
    named = {row.key: row for row in rows if row.is_kernel}
    assert named["matmul"].count == sum(
        k.name == "matmul" for e in prof.events() for k in e.kernels
    )
    assert sum(r.self_cpu_time_total for r in rows) == pytest.approx(
        sum(r.self_cpu_time_total for r in ops)
    )  # a kernel's time is taken off what launched it


def test_backward_knows_its_call(path: str) -> None:
    x = torch.ones(3, requires_grad=True)
    for _ in range(3):
        with Profile(with_stack=True) as prof:
            y = (x * 2.0).exp()  # here
            y.sum().backward()
    events = {e.name: e for e in prof.events()}
    line = inspect.currentframe().f_lineno - 3  # type: ignore[union-attr]
    for call, node in [("aten::mul", "MulBackward0"), ("aten::exp", "ExpBackward0")]:
        assert events[call].sequence_nr == events[node].sequence_nr >= 0
        assert events[node].fwd_thread == threading.get_ident()
        assert events[node].stack == events[call].stack
        assert (
            events[node].stack[0].endswith(f"test_events.py({line}): test_backward_knows_its_call")
        )
    assert events["MulBackward0"].sequence_nr < events["ExpBackward0"].sequence_nr


def test_a_call_that_gives_its_argument_back_has_made_no_node() -> None:
    x = torch.ones(3, requires_grad=True)
    with Profile() as prof:
        y = x * 2.0
        y.contiguous()
    numbers = {e.name: e.sequence_nr for e in prof.events()}
    assert numbers["aten::mul"] >= 0
    assert numbers["aten::contiguous"] == -1


def test_shapes(path: str) -> None:
    a, b, w = torch.ones(2, 3), torch.ones(3), torch.ones(4, 3)
    for _ in range(3):
        with Profile(record_shapes=True) as prof:
            a + b
            a * 2
            F.linear(a, w, bias=torch.ones(4))
            torch.cat([a, a], 1)
    events = {e.name: e for e in prof.events()}
    assert events["aten::add"].input_shapes == [[2, 3], [3]]
    assert events["aten::mul"].input_shapes == [[2, 3], []]
    assert events["aten::mul"].concrete_inputs == ["", 2]
    assert events["aten::linear"].input_shapes == [[2, 3], [4, 3], [4]]
    assert events["aten::linear"].input_dtypes == ["float32"] * 3
    assert events["aten::cat"].input_shapes == [[[2, 3], [2, 3]], []]
    with Profile(record_shapes=True) as prof:
        for n in (2, 2, 5):
            torch.ones(n).exp()
    rows = prof.key_averages(group_by_input_shape=True)
    found = {str(r.input_shapes): r.count for r in rows if r.key == "aten::exp"}
    assert found == {"[[2]]": 2, "[[5]]": 1}
    assert "Input Shapes" in rows.table()


def test_modules() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())

        def forward(self, x: Any) -> Any:
            return self.layers(x).sum()

    net = Net()
    for _ in range(3):
        with Profile(with_modules=True) as prof:
            net(torch.ones(1, 2)).backward()
    found = {e.name: e.module_hierarchy for e in prof.events()}
    assert found["aten::linear"] == found["AddmmBackward0"] == "Net.layers.0"
    assert found["aten::tanh"] == "Net.layers.1"
    assert found["aten::sum"] == "Net"
    assert found["aten::ones"] == ""


def test_memory_balances(path: str) -> None:
    step = _step()
    step()
    kept: list[Any] = []
    gc.collect()  # what others have left is not to be freed in between
    before = stats().live
    with Profile(profile_memory=True) as prof:
        for k in range(3):
            step()
            kept.append(torch.ones(1000 * (k + 1)))
        kept.pop(0)
    after = stats().live
    own = sum(e.self_cpu_memory_usage for e in prof.events())
    assert own == after - before
    rows = prof.key_averages()
    assert sum(row.self_cpu_memory_usage for row in rows) == own
    assert all(e.bytes_allocated >= 0 and e.bytes_freed >= 0 for e in prof.events())
    assert sum(e.bytes_allocated - e.bytes_freed for e in prof.events()) == own
    ones = [e for e in prof.events() if e.name == "aten::ones"]
    assert [e.cpu_memory_usage >= 4000 * (k + 1) for k, e in enumerate(ones)] == [True] * 3
    assert any(e.name == "[memory]" and e.cpu_memory_usage <= -4000 for e in prof.events())


def test_what_is_freed_between_ops_is_nobodys() -> None:
    a = torch.ones(2)
    with Profile(profile_memory=True) as prof:
        big = torch.ones(10_000)
        del big
        a.exp()
    events = {e.name: e for e in prof.events()}
    assert events["aten::ones"].cpu_memory_usage >= 40_000
    between = [e.cpu_memory_usage for e in prof.events() if e.name == "[memory]"]
    assert min(between) <= -40_000
    assert events["aten::exp"].bytes_freed == 0


def test_reading_values_is_in_the_profile() -> None:
    x = torch.ones(1)
    with Profile(record_shapes=True, with_stack=True) as prof:
        for read in (x.item, x.__float__, x.__int__, x.__bool__, x.tolist):
            read()
        with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
            torch.ones(2).item()
    counts = _counts(prof)
    assert counts["aten::item"] == 5
    assert counts["tolist"] == 1
    item = next(e for e in prof.events() if e.name == "aten::item")
    assert item.input_shapes == [[1]]
    assert "test_events.py" in item.stack[0]


def test_flops() -> None:
    a, w = torch.ones(4, 8), torch.ones(16, 8)
    with Profile(with_flops=True) as prof:
        F.linear(a, w)
        a + a
        F.conv2d(torch.ones(1, 3, 8, 8), torch.ones(5, 3, 3, 3))
    found = {row.key: row.flops for row in prof.key_averages()}
    assert found["aten::linear"] == 2 * 4 * 16 * 8
    assert found["aten::add"] == 32
    assert sum(found.values()) == 2 * 4 * 16 * 8 + 32 + 2 * 5 * 6 * 6 * 27
    assert "Total KFLOPs" in prof.key_averages().table()


# ---- threads, and ways out
def test_threads() -> None:
    start = threading.Barrier(3)

    def work() -> None:
        x = torch.ones(5, requires_grad=True)
        start.wait()
        for _ in range(20):
            (x * 2.0).sum().backward()

    with Profile() as prof:
        others = [threading.Thread(target=work) for _ in range(2)]
        for each in others:
            each.start()
        start.wait()
        for _ in range(20):
            torch.ones(2) + 1
        for each in others:
            each.join()
    by_thread = Counter((e.thread, e.name) for e in prof.events())
    mine = threading.get_ident()
    assert by_thread[mine, "aten::add"] == 20
    assert by_thread[mine, "MulBackward0"] == 0
    theirs = [
        count for (t, name), count in by_thread.items() if name == "MulBackward0" and t != mine
    ]
    assert theirs == [20, 20]
    for event in prof.events():
        assert event.cpu_parent is None or event.cpu_parent.thread == event.thread


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_an_exception_leaves_nothing_behind(error: type[BaseException]) -> None:
    def fail() -> None:
        with torch.profiler.record_function("block"):
            torch.ones(2) + 1
            raise error

    with pytest.raises(error), Profile() as prof:
        fail()
    assert _counts(prof)["block"] == 1
    with pytest.raises(RuntimeError), Profile() as prof:
        torch.ones(2, 3) @ torch.ones(2, 3)
    assert _counts(prof)["aten::matmul"] == 1  # what failed has run, too


def test_one_at_a_time() -> None:
    with Profile():
        for other in (Profile(), torch.autograd.profiler.profile()):
            with pytest.raises(RuntimeError, match="already running"):
                other.start()
        with pytest.raises(RuntimeError, match="already running"), Profile():
            pass
    with torch.autograd.profiler.profile() as prof:
        pass
    with pytest.raises(RuntimeError, match="not reentrant"):
        prof.__enter__()
    with torch.autograd.profiler.profile(enabled=False), Profile() as inner:
        torch.ones(2) + 1
    assert _counts(inner)["aten::add"] == 1


def test_grad_modes_begin_and_end_anywhere() -> None:
    a = torch.ones(2, requires_grad=True)
    prof = Profile()
    with torch.no_grad():
        prof.start()
        assert not (a + a).requires_grad
    assert (a * a).requires_grad
    with torch.inference_mode():
        a - a
        prof.stop()
        a / a
    assert set(_counts(prof)) == {"aten::add", "aten::mul", "aten::sub"}
    assert (a * a).requires_grad


def test_within_a_generator() -> None:
    def steps() -> Iterator[int]:
        with Profile() as prof:
            for k in range(3):
                with torch.no_grad(), torch.profiler.record_function("piece"):
                    yield k
        seen.append(prof)

    seen: list[Any] = []
    for _ in steps():
        torch.ones(2) + 1
    counts = _counts(seen[0])
    assert counts["piece"] == 3
    assert counts["aten::add"] == 3
    walk = steps()
    next(walk)
    walk.close()  # its profile ends


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_is_not_profiled() -> None:
    with Profile() as prof:
        torch.ones(2) + 1
        child = os.fork()
        if child == 0:
            code = 1
            try:
                torch.ones(2) + 1
                prof.stop()
                with Profile() as own:
                    torch.ones(2) * 2
                fine = not modes.profiled and prof.profiler.function_events is None
                code = 0 if fine and "aten::mul" in _counts(own) else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert _counts(prof)["aten::ones"] == _counts(prof)["aten::add"] == 1  # the parent's


def test_a_profile_ends_inside_of_a_block() -> None:
    prof = Profile()
    with torch.profiler.record_function("before"):
        prof.start()
        with torch.profiler.record_function("open"):
            torch.ones(2) + 1
            prof.stop()
        torch.ones(2) * 2
    events = {e.name: e for e in prof.events()}
    assert {"open", "aten::ones", "aten::add"} <= set(events)
    assert not {"before", "aten::mul"} & set(events)
    assert events["open"].time_range.end >= events["aten::add"].time_range.end


def test_many_events_are_all_there(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.ones(2)
    for _ in range(3):
        x + x
    monkeypatch.setattr(trace, "KEPT", 2)
    count = 3 * trace.CHUNK
    with Profile() as prof:
        for _ in range(count):
            x + x
    events = prof.events()
    assert len(events) == len(events.kernels) == count
    assert [bool(trace.chunks[k].address) for k in range(7)] == [True] * 2 + [False] * 5


def test_functions_with_a_name() -> None:
    @torch.profiler.record_function("named")
    def double(x: Any) -> Any:
        """Twice."""
        return x * 2

    assert double.__name__ == "double"
    assert double.__doc__ == "Twice."
    with Profile() as prof:
        double(torch.ones(2))
        double(torch.ones(2))
    assert _counts(prof)["named"] == 2
    assert double(torch.ones(2)).tolist() == [2, 2]


def test_a_loader_and_a_function_of_ones_own() -> None:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 3 * x**2

    data = torch.utils.data.TensorDataset(torch.ones(6, 1))
    with Profile() as prof:
        for (x,) in torch.utils.data.DataLoader(data, batch_size=2):
            Cube.apply(x.requires_grad_()).sum().backward()
    counts = _counts(prof)
    assert counts["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"] == 4
    assert counts["Cube"] == counts["CubeBackward"] == 3
    (cube, *_) = [e for e in prof.events() if e.name == "Cube"]
    assert "aten::pow" in [child.name for child in cube.cpu_children]


def test_double_backward_and_hooks(path: str) -> None:
    x = torch.ones(3, requires_grad=True)
    x.register_hook(lambda g: g * 2)
    with Profile() as prof:
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        g.sum().backward()
    counts = _counts(prof)
    assert counts["PowBackward0"] == counts["PowBackwardBackward0"] == 1
    assert counts["SumBackward0"] == 2
    assert counts["torch::autograd::AccumulateGrad"] == 1


def test_sizes_never_seen_before() -> None:
    with Profile() as prof:
        for n in range(3, 40):
            torch.ones(n).exp()
    found = [e for e in prof.events() if e.name == "aten::exp"]
    assert len(found) == 37
    assert [[k.name for k in e.kernels] for e in found] == [["pointwise exp(x0)"]] * 37


def test_sizes_known_by_a_plan_for_any_size(path: str) -> None:
    for n in range(3, 30):  # from now on a size that was never seen is served natively
        a = torch.ones(n)
        a + a
        a.exp()
        torch.exp(a)
    a = torch.ones(31)
    a + a
    for _ in range(2):
        with Profile() as prof:
            for _ in range(5):
                a + a
                a.exp()
                torch.exp(a)
                a * a.sum()
        assert _counts(prof) == {"aten::add": 5, "aten::exp": 10, "aten::sum": 5, "aten::mul": 5}
        assert all(len(e.kernels) == 1 for e in prof.events())
