"""Products by cuBLASLt, with a fake of it: matrices, strides, weights and what is added."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.core import switches
from antorcha.devices.cuda import libraries
from antorcha.devices.cuda.libraries import cublaslt, loader, products
from tests.devices.cuda import fake_libraries
from tests.devices.cuda.fake_driver import FakeLibrary
from tests.devices.cuda.fake_libraries import FakeCublasLt

Make = Callable[[Any], Any]
RNG = np.random.default_rng(0)


@pytest.fixture
def lt(monkeypatch: pytest.MonkeyPatch, library: FakeLibrary) -> Any:
    monkeypatch.setattr(products, "LEAST", 1)
    return fake_libraries.install(monkeypatch, library, "cublasLt")["cublasLt"]


def array(*shape: int) -> Any:
    return torch.tensor(RNG.standard_normal(shape))


A, B, C = array(6, 5), array(5, 7), array(6, 7)
ROW, COLUMN = array(7), array(6, 1)
STACK, OTHER = array(3, 6, 5), array(3, 5, 7)

CASES: dict[str, Make] = {
    "plain": lambda t: t(A) @ t(B),
    "left transposed": lambda t: t(A.t().contiguous()).t() @ t(B),
    "right transposed": lambda t: t(A) @ t(B.t().contiguous()).t(),
    "both transposed": lambda t: t(B).t() @ t(A).t(),
    "wide rows": lambda t: t(torch.cat([A, A], 1))[:, :5] @ t(torch.cat([B, B], 1))[:, 7:],
    "begins inside": lambda t: t(torch.cat([A, A]))[1:7] @ t(B),
    "row": lambda t: t(A)[:1] @ t(B),
    "column": lambda t: t(A) @ t(B)[:, :1],
    "vector": lambda t: t(A) @ t(B)[:, 2],
    "inner": lambda t: t(A)[0] @ t(B)[:, 0],
    "outer": lambda t: t(A)[:, :1] @ t(B)[:1],
    "stack": lambda t: t(STACK) @ t(OTHER),
    "stack, one right": lambda t: torch.matmul(t(STACK), t(B)),
    "stack, one left": lambda t: torch.matmul(t(A), t(OTHER)),
    "stack, transposed": lambda t: t(STACK) @ t(OTHER.transpose(1, 2).contiguous()).mT,
    "added row": lambda t: torch.addmm(t(ROW), t(A), t(B)),
    "added row, weighed": lambda t: torch.addmm(t(ROW), t(A), t(B), beta=0.5, alpha=2),
    "added column": lambda t: torch.addmm(t(COLUMN), t(A), t(B)),
    "added matrix": lambda t: torch.addmm(t(C), t(A), t(B), beta=-1.5),
    "added, turned": lambda t: torch.addmm(t(C.t().contiguous()).t(), t(A), t(B), alpha=3),
    "added number": lambda t: torch.addmm(t(ROW)[:1], t(A), t(B)),
    "linear": lambda t: torch.nn.functional.linear(t(STACK), t(B.t().contiguous()), t(ROW)),
    "in stack": lambda t: torch.baddbmm(t(C), t(STACK), t(OTHER), beta=2),
    "out": lambda t: torch.mm(t(A), t(B), out=t(C).clone()),
    "out, turned": lambda t: torch.mm(t(A), t(B), out=t(C.t().contiguous()).t()),
    "einsum": lambda t: torch.einsum("bij,bkj->bik", t(STACK), t(OTHER.mT.contiguous())),
}
DTYPES = {
    torch.float32: 1e-5, torch.float64: 1e-12, torch.float16: 4e-3, torch.bfloat16: 3e-2,
    torch.complex64: 1e-5, torch.complex128: 1e-12,
}  # fmt: skip


def on(device: str, dtype: torch.dtype) -> Make:
    """Makes a tensor that dtype, of complex numbers with two parts, there."""
    turn = 1 + 0.5j if dtype.is_complex else 1
    return lambda x: (x * turn).to(dtype).to(device)


def test_products_give_what_the_cpu_gives(lt: FakeCublasLt) -> None:
    wrong = []
    for dtype, tolerance in DTYPES.items():
        for name, make in CASES.items():
            before = lt.calls.count("cublasLtMatmul")
            ours, theirs = make(on("cuda", dtype)), make(on("cpu", dtype))
            error = (ours.cpu() - theirs).abs().max().item()
            size = theirs.abs().max().item()
            if not error <= tolerance * size or ours.stride() != theirs.stride():
                wrong.append(f"{name}, {dtype}: {error} of {size}")
            if lt.calls.count("cublasLtMatmul") == before:
                wrong.append(f"{name}, {dtype}: not by cuBLASLt")
    assert not wrong, "\n".join(wrong)


def test_what_it_cannot_see_is_left_to_our_kernels(lt: FakeCublasLt) -> None:
    x = torch.tensor(np.arange(36.0).reshape(6, 6), device="cuda")
    for make in (
        lambda x: x[:, ::2] @ x[::2],
        lambda x: x[:1].expand(6, 6) @ x,
        lambda x: x.flip(0)[:, :0] @ x[:0],
        lambda x: x.long() @ x.long(),
    ):
        assert torch.equal(make(x).cpu(), make(x.cpu()))
    lt.calls.clear()
    torch.backends.cuda.preferred_blas_library("antorcha")
    try:
        assert torch.equal((x @ x).cpu(), x.cpu() @ x.cpu())
    finally:
        torch.backends.cuda.preferred_blas_library("default")
    assert not lt.calls


def test_tf32_is_used_when_it_is_allowed(lt: FakeCublasLt) -> None:
    x = torch.ones(3, 3, device="cuda")

    def computed() -> int:
        assert (x @ x).sum().item() == 27
        return int(lt.jobs[-1]["compute"])

    switches_of = torch.backends.cuda.matmul
    try:
        assert computed() == cublaslt.COMPUTE_32F
        switches_of.allow_tf32 = True
        assert torch.get_float32_matmul_precision() == "high"
        assert computed() == cublaslt.COMPUTE_TF32
        torch.set_float32_matmul_precision("highest")
        assert not switches_of.allow_tf32
        assert computed() == cublaslt.COMPUTE_32F
        switches_of.fp32_precision = "tf32"
        assert computed() == cublaslt.COMPUTE_TF32
    finally:
        vars(switches.matmul).update(allow_tf32=False, fp32_precision="none")


def test_a_graph_takes_scratch_memory_of_its_own(lt: FakeCublasLt) -> None:
    x = torch.tensor(np.arange(9.0).reshape(3, 3), device="cuda")
    (x @ x).cpu()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x @ x
    x.fill_(1)
    graph.replay()
    assert torch.equal(y.cpu(), torch.full((3, 3), 3.0, dtype=torch.float64))


def test_a_library_that_does_not_start_is_not_used(lt: FakeCublasLt) -> None:
    lt.failing["cublasLtCreate"] = 1
    x = torch.eye(3, device="cuda")
    assert torch.equal((x @ x).cpu(), torch.eye(3))
    assert "cublasLtCreate" in libraries.noted["MatMul"]


def test_a_failing_product_says_why(lt: FakeCublasLt) -> None:
    lt.failing["cublasLtMatmul"] = 13
    words = r"CUBLAS_STATUS_EXECUTION_FAILED \(the words of the library\).*cublasLtMatmul"
    with pytest.raises(RuntimeError, match=words):
        torch.ones(3, 3, device="cuda") @ torch.ones(3, 3, device="cuda")


def test_a_library_is_found_where_pip_puts_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for version in ("cu12/lib/libcublasLt.so.12", "cu13/lib/libcublasLt.so.13"):
        (tmp_path / "nvidia" / version).parent.mkdir(parents=True)
        (tmp_path / "nvidia" / version).touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    found = loader.paths("cublasLt", (13, 12), loader.folders())
    assert [Path(each).name for each in found] == ["libcublasLt.so.13", "libcublasLt.so.12"]


def test_launches_run_in_machine_code(lt: FakeCublasLt, monkeypatch: pytest.MonkeyPatch) -> None:
    by_python: list[Any] = []
    monkeypatch.setattr(products.LtLaunch, "run", lambda *_: by_python.append(1))
    a, b, row = (x.real.float() for x in (A, B, ROW))
    flat = torch.cat([a.flatten(), a.flatten()]).cuda()
    for k in (0, 1, 2, 3, 4, 0):
        gc.collect()
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
            left = flat[k : k + 30].view(6, 5)
            assert torch.allclose((left @ b.cuda()).cpu(), left.cpu() @ b, atol=1e-6)
            found = torch.addmm(row.cuda(), a.cuda(), b.cuda()).cpu()
            assert torch.allclose(found, torch.addmm(row, a, b), atol=1e-6)
    for n in range(2, 40):
        x = torch.ones(n, n, device="cuda")
        assert (x @ x).sum().item() == n**3
    assert not by_python
