"""The driver: found, missing, forked, failing; what a GPU says of itself; errors found in data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha import config
from antorcha.cli import info
from antorcha.core.device import backend
from antorcha.devices.cuda import driver, gpu, modules
from antorcha.devices.cuda.device import backend_of_gpu
from antorcha.devices.emit import Unsupported
from antorcha.devices.gpu import templates
from antorcha.devices.gpu.frame import DynamicPlan, GridPlan, GridStep, blocks_for
from antorcha.devices.gpu.launcher import dynamic_launch_of, launch_of
from antorcha.errors import OutOfRange
from antorcha.lang.kernels import Gather
from antorcha.lang.native import i64, native, ptr, void
from antorcha.lang.native.grid import block, device_pointer, thread
from tests.devices.cuda import fake_driver
from tests.devices.cuda.fake_driver import FakeLibrary

HERE = "import antorcha as torch, sys; "


def run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    ).stdout


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    found = run(HERE + "print([m for m in sys.modules if 'devices.cuda' in m or 'antorcha.cuda' == "
                       "m], 'libcuda' in open('/proc/self/maps').read())")  # fmt: skip
    assert found.strip() == "[] False"


def test_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_driver.forget()

    def absent() -> Any:
        raise OSError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr(driver, "open_library", absent)
    assert not torch.cuda.is_available()
    assert not torch.accelerator.is_available()
    assert torch.cuda.memory_allocated() == 0
    for call in (
        lambda: torch.ones(2, device="cuda"), lambda: torch.ones(2).cuda(),
        torch.cuda.synchronize, torch.cuda.Stream, torch.cuda.CUDAGraph,
        lambda: torch.cuda.get_device_name(0), lambda: torch.cuda.utilization(),
    ):  # fmt: skip
        with pytest.raises(AssertionError, match=r"not compiled with CUDA.*no NVIDIA driver"):
            call()
    x = torch.ones(2)
    assert x.pin_memory() is x
    assert info.collect()["devices"]["cuda needs"].startswith("no NVIDIA driver is installed")
    with pytest.warns(UserWarning, match="CUDA is not available"):
        torch.autocast("cuda")
    fake_driver.forget()


def test_a_driver_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    library = fake_driver.install(monkeypatch, FakeLibrary())
    library.failing["cuInit"] = 2
    assert not torch.cuda.is_available()
    with pytest.raises(AssertionError, match=r"does not start.*out of memory.*cuInit gives 2"):
        torch.ones(2, device="cuda")
    fake_driver.install(monkeypatch, FakeLibrary(gpus=0))
    with pytest.raises(AssertionError, match="shows no GPU"):
        torch.ones(2, device="cuda")
    fake_driver.forget()


def test_what_a_gpu_says_of_itself(library: FakeLibrary) -> None:
    assert (torch.cuda.is_available(), torch.cuda.device_count()) == (True, 2)
    assert not torch.cuda.is_initialized()
    assert torch.cuda.get_device_capability() == (9, 0)
    assert torch.cuda.get_device_name(1) == "Simulated GPU"
    found = torch.cuda.get_device_properties("cuda:1")
    assert (found.major, found.total_memory, found.multi_processor_count) == (9, 1 << 30, 132)
    assert "name='Simulated GPU', major=9" in repr(found)
    assert torch.cuda.is_bf16_supported()
    assert "sm_90" in torch.cuda.get_arch_list()
    torch.cuda.init()
    assert torch.cuda.is_initialized()
    assert torch.cuda.can_device_access_peer(0, 1)
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        torch.cuda.get_device_name("cpu")
    with pytest.raises(RuntimeError, match="no cuda:2"):
        torch.cuda.get_device_name(2)
    shown = info.collect()["devices"]
    assert shown["cuda driver"] == "for CUDA 12.8"
    assert shown["cuda:1"] == "Simulated GPU, compute capability 9.0, 1.0 GiB"
    json.dumps(shown)
    accelerator = torch.accelerator
    assert accelerator.is_available()
    assert accelerator.current_accelerator() == torch.device("cuda")
    assert accelerator.current_device_index() == 0
    with accelerator.device_index(1):
        assert accelerator.current_device_index() == 1
    accelerator.synchronize()
    assert torch.float32 in accelerator.get_device_capability()["supported_dtypes"]
    with pytest.raises(NotImplementedError):
        torch.cuda.utilization()


def test_the_state_of_generators(library: FakeLibrary) -> None:
    torch.cuda.manual_seed_all(5)
    with torch.cuda.device(1):
        torch.cuda.manual_seed(7)
        assert torch.cuda.initial_seed() == 7
    assert torch.cuda.initial_seed() == 5
    state = torch.cuda.get_rng_state_all()
    assert (len(state), state[0].tolist()[:1], state[0].device.type) == (2, [5], "cpu")
    torch.cuda.seed_all()
    torch.cuda.set_rng_state_all(state)
    assert torch.cuda.initial_seed() == 5


def test_the_capability_that_kernels_are_compiled_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for own, version, wanted in (
        ((9, 0), 12080, 90), ((9, 0), 11020, 86), ((8, 7), 12000, 86), ((12, 1), 13000, 120),
        ((12, 1), 12000, 90), ((10, 3), 12080, 100), ((7, 5), 12080, 75),
    ):  # fmt: skip
        library = fake_driver.install(monkeypatch, FakeLibrary(version=version))
        library.attributes[75], library.attributes[76] = own
        assert gpu.gpu(0).ptx_capability == wanted, (own, version)
    library = fake_driver.install(monkeypatch, FakeLibrary())
    library.attributes[75], library.attributes[76] = 6, 1
    with pytest.raises(NotImplementedError, match=r"compute capability 6\.1.*7\.5 and newer"):
        torch.ones(2, device="cuda")
    fake_driver.forget()


def test_the_image_is_the_kernels_ptx(library: FakeLibrary, monkeypatch: Any) -> None:
    seen: list[tuple[str, bytes]] = []
    real = modules.__dict__["image_of"]
    assert real == library.image_of
    monkeypatch.undo()  # (the fake's)
    own = modules.image_of

    def image_of(spec: Any) -> bytes:
        seen.append((spec.symbol, own(spec)))
        return library.image_of(spec)

    fake_driver.install(monkeypatch, library)
    monkeypatch.setattr(modules, "image_of", image_of)
    assert (torch.ones(5, device="cuda") * 3).sum().item() == 15
    assert len(seen) >= 2
    for name, image in seen:
        text = image.decode()
        assert ".target sm_90" in text
        assert f".visible .entry {name}(" in text
        assert f".param .align 8 .b8 {name}_param_0[1024]" in text


def test_the_drivers_compiler_is_quoted(library: FakeLibrary, monkeypatch: Any) -> None:
    monkeypatch.setattr(modules, "image_of", lambda spec: b"no such kernel")
    with pytest.raises(TypeError, match=r"does not compile it for cuda:0.*ptxas fatal: no such"):
        torch.ones(5, device="cuda")


def test_errors_of_the_driver_have_its_words(library: FakeLibrary) -> None:
    x = torch.ones(5, device="cuda")
    library.failing["cuLaunchKernel"] = 1
    with pytest.raises(torch.AcceleratorError) as raised:
        x + 1
    text = "CUDA error: invalid argument: CUDA_ERROR_INVALID_VALUE (cuLaunchKernel of Pointwise"
    assert str(raised.value).startswith(text)
    assert raised.value.error_code == 1
    del library.failing["cuLaunchKernel"]
    library.fault = 700
    with pytest.raises(RuntimeError, match=r"illegal memory access.*Pointwise.* ran last"):
        (x + 1).cpu()


# ---- errors found in data
@native
def checked_rows(words: ptr[i64]) -> void:
    """Words: out, x, index, status, how many, how many rows: one of x's elements for each index."""
    out, x = device_pointer(i64, words[0]), device_pointer(i64, words[1])
    index, status = device_pointer(i64, words[2]), device_pointer(i64, words[3])
    at = i64(block()) * 256 + i64(thread())
    if at < words[4]:
        k = index[at]
        if k < 0 or k >= words[5]:
            status[0] = at + 1
        else:
            out[at] = x[k]


def plan_gather(what: Gather, outs: Any, ins: Any) -> GridPlan:
    """One kernel, for an index of one dim into one dim of int64."""
    x, index = ins
    if x.ndim != 1 or x.dtype.name != "int64":
        raise Unsupported("the test's own")
    step = GridStep(
        checked_rows, {}, blocks_for(index.numel), 256, (0, 1, 2, 3), (index.numel, x.numel)
    )
    return GridPlan((step,), (8,), 0, lambda code: OutOfRange(f"take: index {code - 1} is bad"))


@pytest.fixture
def _gathers(monkeypatch: pytest.MonkeyPatch, library: FakeLibrary) -> None:
    monkeypatch.setitem(templates.PLANNERS, Gather, plan_gather)


@pytest.mark.usefixtures("_gathers")
def test_a_bad_index_is_told_at_the_next_wait(library: FakeLibrary) -> None:
    x = torch.arange(10).cuda()
    good, bad = torch.tensor([1, 9]).cuda(), torch.tensor([1, 2, 10]).cuda()
    assert torch.take(x, good).tolist() == [1, 9]
    waits: dict[str, Any] = {
        "synchronize": torch.cuda.synchronize,
        "a stream": torch.cuda.current_stream().synchronize,
        "a copy": lambda: x.cpu(),
        "a number": lambda: x[:1].item(),
    }
    for name, wait in waits.items():
        for _ in range(3):
            torch.take(x, good)
        torch.take(x, bad)  # (no error yet)
        with pytest.raises(IndexError, match="take: index 2 is bad") as raised:
            wait()
        notes = "".join(raised.value.__notes__)
        for part in ("Gather", "(3,), (10,), (3,)", "cuda:0", "ANTORCHA_SYNC=1"):
            assert part in notes, (name, notes)
        assert torch.take(x, good).tolist() == [1, 9]  # once is enough


@pytest.mark.usefixtures("_gathers")
def test_a_bad_index_at_its_line(library: FakeLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "sync", True)
    x, bad = torch.arange(10).cuda(), torch.tensor([-1, -11]).cuda()
    with pytest.raises(IndexError, match="take: index 1 is bad") as raised:
        torch.take(x, torch.where(bad < -10, bad, bad + 10))
    assert raised.value.__notes__ == ["(Gather of (2,), (10,), (2,) on cuda:0 found it.)"]


@pytest.mark.usefixtures("_gathers")
def test_more_reports_than_a_page_holds(library: FakeLibrary, monkeypatch: Any) -> None:
    monkeypatch.setattr("antorcha.devices.cuda.streams.PAGE_WORDS", 4)
    x, good, bad = (torch.tensor(v).cuda() for v in ([5, 6, 7], [2, 0], [3, 3]))
    for _ in range(6):
        found = torch.take(x, good)
    assert found.tolist() == [7, 5]
    for index in (bad, good, good, good):
        torch.take(x, index)
    with pytest.raises(IndexError):
        torch.take(x, good)


@pytest.mark.usefixtures("_gathers")
def test_a_bad_index_in_a_graph(library: FakeLibrary) -> None:
    x, index = torch.arange(4).cuda(), torch.tensor([1, 2]).cuda()
    torch.take(x, index)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = torch.take(x, index)
    graph.replay()
    assert found.tolist() == [1, 2]
    index.fill_(9)
    graph.replay()
    with pytest.raises(IndexError, match="take: index"):
        torch.cuda.synchronize()
    index.fill_(3)
    graph.replay()
    assert found.tolist() == [3, 3]


def test_a_kernel_outside_of_memory_is_found_by_the_fake(library: FakeLibrary) -> None:
    x = torch.ones(5, device="cuda")
    torch.cuda.synchronize()
    found = backend_of_gpu(0)
    step = GridStep(checked_rows, {}, (1,), 256, (), ())
    words = torch.zeros(128, dtype=torch.int64).numpy()
    words[:6] = x.data_ptr(), x.data_ptr(), x.data_ptr(), x.data_ptr() + 16, 200, 1 << 40
    found.launch("wild", found.load(step), words, step)
    with pytest.raises(RuntimeError, match=r"illegal memory access.*wild ran last"):
        torch.cuda.synchronize()
    assert len(library.errors) == 1
    assert "outside of all tensors' memory" in str(library.errors.pop())
    library.fault = 0


# ---- plans of the other kinds
@native
def count_positive(words: ptr[i64]) -> void:
    """Words: x, count, how many: one thread counts."""
    x, count = device_pointer(i64, words[0]), device_pointer(i64, words[1])
    if thread() == 0 and block() == 0:
        found = i64(0)
        for k in range(words[2]):
            found += 1 if x[k] > 0 else 0
        count[0] = found


@native
def fill_table(words: ptr[i64]) -> void:
    """Words: out, table, how many: the table's first elements."""
    out, table = device_pointer(i64, words[0]), device_pointer(i64, words[1])
    at = i64(thread())
    if at < words[2]:
        out[at] = table[at]


@pytest.mark.parametrize("name", ["cuda", "sim"])
def test_sizes_that_depend_on_data_and_constants(library: FakeLibrary, name: str) -> None:
    x = torch.tensor([3, -1, 4, 0, 5]).to(name)
    table = np.arange(10, 20)

    def rest(numbers: Any) -> GridPlan:
        # (outputs, inputs, what the first stage left, then a constant)
        step = GridStep(fill_table, {}, (1,), 256, (0, 3), (numbers[0],))
        return GridPlan((step,), constants=(table,))

    first = GridPlan((GridStep(count_positive, {}, (1,), 32, (0, 1), (5,)),), (8,))
    layout = x._layout
    plan = DynamicPlan(first, 0, 1, lambda n: [layout.like(shape=(n[0],))], rest)
    launch = dynamic_launch_of(backend(x.device), "Counted", plan, [layout])
    ((found, storage),) = launch.fresh(x._storage, 0)
    assert tuple(found.shape) == (3,)
    assert backend(x.device).to_host(found, storage, 0).tolist() == [10, 11, 12]


def test_a_plan_over_what_is_there(library: FakeLibrary) -> None:
    out = torch.zeros(4, dtype=torch.int64, device="cuda")
    table = np.array([4, 3, 2, 1])

    def plan(count: int, over: GridPlan | None = None) -> GridPlan:
        step = GridStep(fill_table, {}, (1,), 256, (0, 1), (count,))
        return GridPlan((step,), constants=(table,), over=over)

    launch = launch_of(backend(out.device), "Filled", plan(4, plan(2)), [out._layout], [])
    launch.into(out._storage, 0)
    assert out.tolist() == [4, 3, 0, 0]


def test_draws_are_those_of_the_simulator_at_the_same_seed(library: FakeLibrary) -> None:
    """Numbers depend on the seed alone, not on the GPU; manual_seed reaches every GPU."""
    draws = {
        "rand": lambda d: torch.rand(300, device=d),
        "randn": lambda d: torch.randn(7, 5, device=d),
        "randint": lambda d: torch.randint(0, 99, (50,), device=d),
        "randperm": lambda d: torch.randperm(40, device=d),
        "dropout": lambda d: torch.nn.functional.dropout(torch.ones(100, device=d), 0.3),
        "exponential_": lambda d: torch.empty(9, device=d).exponential_(),
    }
    found = {}
    for device in ("cuda", "cuda:1", "sim"):
        torch.manual_seed(3)
        found[device] = {name: draw(device).tolist() for name, draw in draws.items()}
    assert found["cuda"] == found["cuda:1"] == found["sim"]
    torch.cuda.manual_seed_all(3)
    state = torch.cuda.get_rng_state()
    again = torch.rand(300, device="cuda")
    assert again.tolist() == found["cuda"]["rand"]
    torch.cuda.set_rng_state(state)
    assert (torch.rand(300, device="cuda") == again).all()
    generator = torch.Generator(device="cuda").manual_seed(3)
    assert (torch.rand(300, device="cuda", generator=generator) == again).all()
