"""Tensors on a GPU, with the fake driver: made, computed, differentiated, trained, moved."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha import nn
from tests.devices.cuda.fake_driver import FakeLibrary

F = nn.functional
Make = Callable[[str], Any]
X = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)


def there(device: str) -> torch.Tensor:
    return torch.tensor(X, device=device)


OPS: dict[str, Make] = {
    "made": lambda d: torch.arange(5, device=d) + torch.ones(5, device=d),
    "full": lambda d: torch.full((2, 3), 2.5, device=d, dtype=torch.float64),
    "pointwise": lambda d: torch.exp(there(d)) * 2 - there(d).sin(),
    "numbers": lambda d: there(d) * 3 + 1j,
    "a number of the cpu": lambda d: there(d) + torch.tensor(2.0, device=d),
    "sum": lambda d: there(d).sum(1),
    "all": lambda d: there(d).mean(),
    "strided": lambda d: there(d).t()[1:, ::2].clone(),
    "expanded": lambda d: there(d)[:1].expand(6, 8) + 1,
    "half": lambda d: there(d).half().relu(),
    "bfloat16": lambda d: there(d).bfloat16() * 2,
    "bool": lambda d: there(d) > 0,
    "complex": lambda d: there(d).to(torch.complex64) * 2j,
    "product": lambda d: there(d) @ there(d).t(),
    "softmax": lambda d: there(d).softmax(-1),
    "layer_norm": lambda d: F.layer_norm(there(d), (8,)),
    "index": lambda d: there(d)[torch.tensor([3, 0], device=d)],
    "written": lambda d: there(d).clone().index_fill_(0, torch.tensor([1], device=d), 9.0),
    "sort": lambda d: there(d).sort(1).values,
    "nonzero": lambda d: (there(d) > 1).nonzero(),
    "cat": lambda d: torch.cat([there(d), there(d)], 1),
    "conv": lambda d: F.conv1d(there(d).view(1, 6, 8), torch.ones(2, 6, 3, device=d)),
    "pool": lambda d: F.max_pool1d(there(d).view(1, 6, 8), 2),
    "cumsum": lambda d: there(d).cumsum(1),
    "no elements": lambda d: torch.ones(0, 3, device=d) + 1,
    "no dims": lambda d: torch.tensor(3.0, device=d).exp(),
    "grown": lambda d: there(d).resize_(2, 2) + torch.zeros(8, device=d).resize_(2, 2),
    "in place": lambda d: there(d).add_(1).mul_(there(d)),
    "filled": lambda d: there(d).fill_(2).zero_() + 1,
}  # fmt: skip


def test_ops_give_what_the_cpu_gives(library: FakeLibrary) -> None:
    wrong = []
    for name, make in OPS.items():
        ours, theirs = make("cuda"), make("cpu")
        same = ours.shape == theirs.shape and ours.dtype == theirs.dtype
        on_gpu = ours.is_cuda and ours.get_device() == 0
        if not (same and on_gpu and torch.allclose(ours.cpu(), theirs, rtol=1e-4, atol=1e-6)):
            wrong.append(f"{name}: {ours} is not {theirs}")
    assert not wrong, "\n".join(wrong)
    assert library.calls.count("cuLaunchKernel") > len(OPS)


def test_a_model_trains_as_on_the_cpu(library: FakeLibrary) -> None:
    torch.manual_seed(0)
    start = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))
    target = torch.tensor([0, 3, 1, 2, 0, 1])
    for make in (
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: torch.optim.AdamW(p, lr=0.01),
    ):
        losses = []
        for device in ("cpu", "cuda"):
            model = copy.deepcopy(start).to(device)
            optimizer = make(model.parameters())
            for _ in range(3):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(there(device)), target.to(device))
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        assert np.allclose(losses[:3], losses[3:], rtol=1e-4), losses
        assert losses[2] < losses[0]


def test_gradients_of_second_order(library: FakeLibrary) -> None:
    found = []
    for device in ("cpu", "cuda"):
        x = there(device).requires_grad_()
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
        found.append(h.cpu())
    assert torch.allclose(found[0], found[1])


def test_autocast_and_gradient_scaler(library: FakeLibrary) -> None:
    model = nn.Linear(8, 4).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda", init_scale=8.0)
    with torch.autocast("cuda", dtype=torch.float16):
        y = model(there("cuda"))
        assert y.dtype is torch.float16
    before = model.weight.detach().cpu().clone()
    scaler.scale(y.float().square().mean()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert not torch.equal(before, model.weight.detach().cpu())
    assert scaler.get_scale() == 8.0
    (y.detach().sum() * model.weight.sum() * float("inf")).backward()
    kept = model.weight.detach().cpu().clone()
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(kept, model.weight.detach().cpu())
    assert scaler.get_scale() == 4.0


def test_tensors_move(library: FakeLibrary) -> None:
    x = torch.tensor(X)
    for moved in (x.cuda(), x.to("cuda"), x.to("cuda:0"), x.cuda(0), x.to(0), x.to(x.cuda())):
        assert moved.device == torch.device("cuda", 0)
        assert torch.equal(moved.cpu(), x)
    assert x.cuda().cuda().data_ptr() != x.data_ptr()
    there_too = x.cuda(1)
    assert there_too.device.index == 1
    strided = x.cuda().t()[2:, 1:]
    for peer in (strided.cuda(1), strided.to("cuda:1").to("cuda:0")):
        assert torch.equal(peer.cpu(), x.t()[2:, 1:])
    assert strided.cpu().stride() == torch.empty_strided((6, 5), (1, 6)).copy_(strided).stride()
    with pytest.raises(RuntimeError, match=r"same device.*cuda:0 and cuda:1"):
        x.cuda() + x.cuda(1)
    with pytest.raises(RuntimeError, match="cuda:0 and cpu"):
        x.cuda() + x
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        x.cuda().numpy()
    target = torch.zeros(6, 8, device="cuda")
    target.copy_(x)
    target[:, ::2].copy_(torch.ones(6, 4))
    assert target.cpu()[:, ::2].eq(1).all()
    back = torch.zeros(6, 8)
    back.copy_(target)
    assert torch.equal(back, target.cpu())


def test_the_current_device(library: FakeLibrary) -> None:
    assert torch.ones(2, device="cuda").device.index == 0
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1
        one = torch.ones(2, device="cuda")
        assert one.device.index == 1
        assert (torch.ones(2, device="cuda:0") + 1).device.index == 0
    assert torch.equal((one + 1).cpu(), torch.full((2,), 2.0))
    torch.cuda.set_device(1)
    assert torch.zeros(1).cuda().device.index == 1
    torch.cuda.set_device(0)
    with torch.device("cuda"):
        x = torch.ones(2)
        assert x.is_cuda
        assert repr(x) == "tensor([1., 1.])"
    assert repr(x) == "tensor([1., 1.], device='cuda:0')"
    with pytest.raises(torch.AcceleratorError, match=r"invalid device ordinal.*no cuda:5"):
        torch.ones(2, device="cuda:5")
    with pytest.raises(RuntimeError):
        torch.cuda.set_device(2)
    with torch.cuda.device_of(one):
        assert torch.cuda.current_device() == 1


def test_copies_and_files(library: FakeLibrary) -> None:
    x = torch.tensor(X).cuda()
    again = copy.deepcopy({"a": x, "b": x})
    assert again["a"] is again["b"]
    assert again["a"].is_cuda
    assert torch.equal(again["a"].cpu(), x.cpu())
    file = io.BytesIO()
    torch.save({"x": x, "view": x[1:]}, file)
    for where, kind in ((None, "cuda"), ("cpu", "cpu"), ("cuda:1", "cuda")):
        file.seek(0)
        found = torch.load(file, map_location=where)
        assert found["view"].device.type == kind
        assert torch.equal(found["view"].cpu(), x[1:].cpu())
    assert torch.equal(pickle.loads(pickle.dumps(x)).cpu(), x.cpu())
    model = nn.Linear(2, 2)
    model.cuda().load_state_dict(nn.Linear(2, 2).state_dict())
    assert all([p.is_cuda for p in model.parameters()])
    storage = torch.tensor([1, 2], dtype=torch.uint8).cuda().untyped_storage()
    assert (storage.tolist(), storage.is_cuda, storage[1]) == ([1, 2], True, 2)
    assert storage.clone().fill_(7).cpu().tolist() == [7, 7]


def test_other_libraries_see_the_memory(library: FakeLibrary) -> None:
    x = torch.tensor(X).cuda()
    seen = x[:, 1:].__cuda_array_interface__
    assert seen["data"] == (x.data_ptr() + 4, False)
    assert (seen["shape"], seen["strides"], seen["typestr"]) == ((6, 7), (32, 4), "<f4")
    assert x.__cuda_array_interface__["strides"] is None
    assert not hasattr(torch.ones(2), "__cuda_array_interface__")
    assert x.__dlpack_device__() == (2, 0)
    shared = torch.from_dlpack(x[1:])
    assert shared.device == x.device
    shared.add_(1)
    assert torch.equal(x.cpu()[1:], torch.tensor(X)[1:] + 1)


def test_arrays_of_other_libraries(library: FakeLibrary) -> None:
    """By DLPack where they have it, else by the CUDA array interface."""

    class Array:
        def __init__(self, x: Any, **more: Any) -> None:
            self.x, self.more = x, more

        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            return {**self.x.__cuda_array_interface__, **self.more}

    class Both(Array):
        def __dlpack__(self, **how: Any) -> Any:
            return self.x.__dlpack__(**how)

        def __dlpack_device__(self) -> Any:
            return self.x.__dlpack_device__()

    x = torch.tensor(X).cuda()
    stream = torch.cuda.Stream()
    for view in (x, x[:, 1:], x.t(), x[:0], x.half(), x > 0):
        for array in (Array(view), Both(view), Array(view, stream=stream.cuda_stream)):
            for make in (torch.as_tensor, torch.asarray):
                seen = make(array)
                assert (seen.device, seen.dtype) == (view.device, view.dtype)
                assert seen.data_ptr() == view.data_ptr() or not view.numel()
                assert torch.equal(seen.cpu(), view.cpu())
            assert torch.as_tensor(array, device="cpu").device.type == "cpu"
            assert torch.tensor(array, device="cuda").data_ptr() != view.data_ptr()
    with pytest.raises(TypeError, match="masked"):
        torch.as_tensor(Array(x, mask=x))


def test_older_names(library: FakeLibrary) -> None:
    x = torch.ones(2, device="cuda")
    assert isinstance(x, torch.cuda.FloatTensor)
    assert not isinstance(x, torch.cuda.LongTensor)
    assert not isinstance(x.cpu(), torch.cuda.FloatTensor)
    assert torch.cuda.IntTensor([1, 2]).device == x.device
    assert x.type() == "torch.cuda.FloatTensor"
