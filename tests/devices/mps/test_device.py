"""torch.mps and the device's own rules: dtypes, errors, seeds, threads, storages, saving."""

from __future__ import annotations

import io
import threading
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.devices.mps import library


def test_no_float64() -> None:
    x = torch.ones(2, device="mps")
    text = "Cannot convert a MPS Tensor to float64 dtype.*Please use float32 instead"
    for make in (
        lambda: torch.ones(2, dtype=torch.float64, device="mps"),
        lambda: torch.empty(2, dtype=torch.float64, device="mps"),
        lambda: torch.tensor(np.ones(2), device="mps"),
        lambda: torch.ones(2, dtype=torch.float64).to("mps"),
        lambda: x.double(),
        lambda: x.to(torch.float64),
        lambda: torch.nn.Linear(2, 2).double().to("mps"),
    ):
        with pytest.raises(TypeError, match=text):
            make()
    with pytest.raises(TypeError, match="ComplexDouble"):
        torch.ones(2, dtype=torch.complex128, device="mps")
    assert torch.ones(2, dtype=torch.float64).to("mps", torch.float32).tolist() == [1, 1]
    assert (x * 0.1).dtype is torch.float32
    assert torch.tensor([1.5], device="mps").dtype is torch.float32


def test_what_programs_ask() -> None:
    assert torch.backends.mps.is_available()
    assert torch.backends.mps.is_built()
    assert torch.mps.is_available()
    assert torch.mps.device_count() == 1
    assert str(torch.accelerator.current_accelerator()) == "mps"
    assert torch.accelerator.is_available()
    x = torch.arange(1000.0, device="mps") * 2
    torch.mps.synchronize()
    torch.accelerator.synchronize()
    assert torch.mps.current_allocated_memory() >= x.nbytes
    assert torch.mps.driver_allocated_memory() >= torch.mps.current_allocated_memory()
    assert torch.mps.recommended_max_memory() >= 0
    torch.mps.empty_cache()
    with pytest.raises(NotImplementedError, match="no events"):
        torch.mps.Event()
    assert x.is_mps
    assert str(x.device) == "mps:0"
    assert x.device == torch.device("mps:0")
    with pytest.raises(RuntimeError, match="one device"):
        torch.ones(1, device="mps:1")
    with torch.device("mps"):
        assert torch.zeros(2).device.type == "mps"


def test_errors_in_data() -> None:
    x = torch.arange(12.0, device="mps").reshape(3, 4)
    for wrong in (
        lambda: x[torch.tensor([0, 3], device="mps")],
        lambda: x.gather(1, torch.tensor([[4]], device="mps")),
        lambda: x.index_select(0, torch.tensor([5], device="mps")),
        lambda: torch.nn.functional.embedding(torch.tensor([3], device="mps"), x),
        lambda: x.scatter(0, torch.tensor([[-1]], device="mps"), 1.0),
        lambda: torch.nn.functional.one_hot(torch.tensor([3], device="mps"), 2),
    ):
        with pytest.raises((IndexError, RuntimeError)):
            wrong()
    with pytest.raises(RuntimeError, match="device"):
        x + torch.ones(3, 4)
    with pytest.raises((TypeError, RuntimeError)):
        x.numpy()


def test_seeds_and_states() -> None:
    torch.manual_seed(5)
    first = torch.rand(4, device="mps").tolist()
    torch.mps.manual_seed(5)
    assert torch.rand(4, device="mps").tolist() == first
    state = torch.mps.get_rng_state()
    second = torch.randn(3, 3, device="mps").tolist()
    torch.mps.set_rng_state(state)
    assert torch.randn(3, 3, device="mps").tolist() == second
    torch.mps.seed()
    assert torch.rand(4, device="mps").tolist() != first
    generator = torch.Generator("mps").manual_seed(5)
    assert torch.rand(4, device="mps", generator=generator).tolist() == first


DRAWS: list[Any] = [
    lambda d: torch.rand(3, 5, device=d), lambda d: torch.randn(7, device=d, dtype=torch.float16),
    lambda d: torch.randint(-5, 100, (9,), device=d), lambda d: torch.randperm(12, device=d),
    lambda d: torch.empty(8, device=d).exponential_(2.0),
    lambda d: torch.empty(8, device=d).cauchy_(1, 2), lambda d: torch.empty(8, device=d).
    log_normal_(), lambda d: torch.empty(8, device=d).geometric_(0.3),
    lambda d: torch.bernoulli(torch.linspace(0, 1, 9).to(d)),
    lambda d: torch.randn(5, device=d, dtype=torch.complex64).real,
    lambda d: torch.empty(6, device=d, dtype=torch.int64).random_(),
    lambda d: torch.rand(4, 3, device=d).t().uniform_(1, 2),
    lambda d: torch.empty(300000, device=d).uniform_()[::9973],
    lambda d: torch.normal(torch.zeros(3, device=d), torch.ones(3, device=d)),
    lambda d: torch.nn.functional.dropout(torch.ones(20, device=d)),
    lambda d: torch.multinomial(torch.ones(6, device=d), 3),
]  # fmt: skip


def test_draws_are_those_of_other_devices_that_count() -> None:
    for k, draw in enumerate(DRAWS):
        found = []
        for device in ("sim", "mps"):
            torch.manual_seed(11)
            found.append(np.asarray(draw(device).cpu().tolist()))
        assert np.allclose(found[0], found[1], 1e-4, 1e-5), k


def test_threads_share_the_device() -> None:
    x = torch.zeros(8, device="mps")
    base = torch.arange(8.0, device="mps") * 2  # noted here, computed there
    failed: list[BaseException] = []

    def work(k: int) -> None:
        try:
            for _ in range(20):
                x[k : k + 1] += 1
                assert (base + k).sum().item() == 56 + 8 * k
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failed, failed
    assert base.tolist()[-1] == 14


def test_notes_do_not_pile_up() -> None:
    x = torch.zeros(3, device="mps")
    for _ in range(3 * library.MOST_PENDING):
        x += 1
        assert len(library._pending) < library.MOST_PENDING
    assert x.tolist() == [300, 300, 300]


def test_saving_and_copying() -> None:
    x = torch.arange(6, dtype=torch.bfloat16, device="mps").reshape(2, 3).t()
    file = io.BytesIO()
    torch.save({"x": x}, file)
    file.seek(0)
    again = torch.load(file)["x"]
    assert again.device.type == "mps"
    assert again.stride() == x.stride()
    assert again.tolist() == x.tolist()
    file.seek(0)
    assert torch.load(file, map_location="cpu")["x"].tolist() == x.tolist()
    y = x.clone()
    y.copy_(torch.ones(3, 2))
    assert y.tolist() == [[1, 1]] * 3
    z = torch.zeros(3, 2)
    z.copy_(x)
    assert z.tolist() == x.tolist()
    with pytest.raises(Exception, match=r"mps|device"):
        np.from_dlpack(x)
    assert x.to(torch.float8_e4m3fn).float().tolist() == x.tolist()


def test_autocast() -> None:
    linear = torch.nn.Linear(4, 3).to("mps")
    x = torch.ones(2, 4, device="mps")
    with torch.autocast("mps"):
        y = linear(x)
        total = y.softmax(-1)
    assert y.dtype is torch.float16
    assert total.dtype is torch.float32
    with torch.autocast("cpu"):
        assert linear(x).dtype is torch.float32
    with torch.autocast("mps", dtype=torch.bfloat16):
        assert (x @ x.t()).dtype is torch.bfloat16
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.float32


def test_numbers_on_the_cpu_go_with_tensors_there() -> None:
    x, n = torch.arange(6.0).view(2, 3).to("mps"), torch.tensor(2.0, requires_grad=True)
    (x * n).sum().backward()
    assert (n.grad.item(), n.grad.device.type) == (15, "cpu")
    assert (x + torch.tensor(3, dtype=torch.float64)).tolist() == [[3, 4, 5], [6, 7, 8]]
    assert torch.addmm(n.detach(), x, x.t()).tolist() == [[7, 16], [16, 52]]
    with pytest.raises(RuntimeError, match="same device"):
        torch.nn.functional.mse_loss(x, torch.ones(2, 3))
