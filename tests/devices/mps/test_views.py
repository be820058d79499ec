"""Strided tensors and views that share memory: every result, and what is left in memory, as on the
CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import antorcha
import antorcha as torch

DTYPES = ("float32", "float16", "bfloat16", "int64", "int32", "int16", "uint8", "bool", "complex64")


def made(dtype: str, device: str, *shape: int) -> Any:
    values = torch.arange(int(np.prod(shape))).reshape(shape) % 7
    return values.to(getattr(torch, dtype)).to(device)


def numbers(x: Any) -> Any:
    return np.asarray(x.cpu().tolist())


def fill_column(x: Any) -> None:
    x[:, 1] = 3


def fill_every_second(x: Any) -> None:
    x[::2, 1::2] = 1


def add_to_transposed(x: Any) -> None:
    if x.dtype is not torch.bool:
        x.t().add_(x[:5, :5].sum(0)[:, None].to(x.dtype) if x.shape[0] == 5 else 1)


def copy_into_transposed(x: Any) -> None:
    x.t()[1:3].copy_(x[2:4, :].clone().t()[1:3, :1].expand(2, x.shape[0]))


def diagonal(x: Any) -> None:
    x.diagonal().fill_(5)


def flipped_into_slice(x: Any) -> None:
    x[:, ::2] = x.flip(1)[:, ::2]


def expanded_source(x: Any) -> None:
    x[1:, 1:].copy_(x[:1, :1].expand(x.shape[0] - 1, x.shape[1] - 1))


def overlapping_read(x: Any) -> None:
    windows = x.as_strided((4, 3), (1, 2), 2)
    x[0, :3] = windows.clone()[1]


def masked(x: Any) -> None:
    x[:, 1:].masked_fill_(x[:, 1:] == 2, 0)


def by_mask(x: Any) -> None:
    view = x[1:, ::2]
    view[view == 3] = 1


def by_index(x: Any) -> None:
    index = torch.tensor([0, 2, 0], device=x.device)
    x.t()[index] = x.t()[1:4].clone()


def by_two_indices(x: Any) -> None:
    rows = torch.tensor([0, 3, 1, 0], device=x.device)
    columns = torch.tensor([1, -1, 2, 1], device=x.device)
    x[rows, columns] = x[0, :4].clone()


def index_added(x: Any) -> None:
    if x.dtype is not torch.bool:
        x[:, 1:4].index_add_(1, torch.tensor([0, 2, 0], device=x.device), x[:, :3].clone())


def scattered(x: Any) -> None:
    x[::2].scatter_(1, torch.tensor([[0, 2], [1, 4], [3, 0]], device=x.device), x[:3, :2].clone())


def a_row_of_a_chunk(x: Any) -> None:
    first, second, *_ = x.chunk(3, 1)
    second[1] = first[2]


def zeroed_unfold(x: Any) -> None:
    x.unfold(1, 2, 3)[..., 0].zero_()


def out_argument(x: Any) -> None:
    torch.maximum(x[:2], x[2:4], out=x[1:3].clone()) if x.dtype.is_complex else torch.eq(
        x[:2], x[2:4], out=torch.empty(2, x.shape[1], dtype=torch.bool, device=x.device)
    )
    torch.sum(x, 0, out=x[4]) if x.dtype not in (torch.bool,) and x.dtype.is_floating_point else 0


def moved_within(x: Any) -> None:
    x[:, 1:].copy_(x[:, :-1].clone())


WRITES: list[Callable[[Any], None]] = [
    fill_column, fill_every_second, add_to_transposed, copy_into_transposed, diagonal,
    flipped_into_slice, expanded_source, overlapping_read, masked, by_mask, by_index,
    by_two_indices, index_added, scattered, a_row_of_a_chunk, zeroed_unfold, moved_within,
]  # fmt: skip


def test_writes_through_views_are_seen_by_all() -> None:
    wrong = []
    for dtype in DTYPES:
        for write in WRITES:
            found = []
            for device in ("cpu", "mps"):
                base = made(dtype, device, 9, 8)
                views = [base, base.t(), base.view(-1)[5:], base[2::3, ::3], base.detach()]
                write(base[1:7, 1:7])
                found.append([numbers(v) for v in views])
            for k, (ours, theirs) in enumerate(zip(*found, strict=True)):
                if not np.array_equal(ours, theirs):
                    wrong.append(f"{dtype} {write.__name__} view {k}")
    assert not wrong, wrong


READS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda x: x.t(), "sliced": lambda x: x[1::2, ::3], "flipped": lambda x: x.flip(0),
    "expanded": lambda x: x[:, :1].expand(-1, 4), "row expanded": lambda x: x[0].expand(3, -1),
    "overlapping": lambda x: x.as_strided((3, 4), (1, 1), 3), "one": lambda x: x[2:3, 3],
    "scalar": lambda x: x[1, 2], "nothing": lambda x: x[2:2], "diagonal": lambda x: x.diagonal(1),
    "windows": lambda x: x.unfold(0, 3, 1), "permuted": lambda x: x.view(3, 2, 4).permute(2, 0, 1),
}  # fmt: skip
USES: dict[str, Callable[[Any], Any]] = {
    "clone": lambda v: v.clone(), "sum": lambda v: v.sum(), "sums": lambda v: v.sum(-1) if v.ndim
    else v.sum(0), "double": lambda v: v + v, "contiguous": lambda v: v.contiguous(),
    "reshape": lambda v: v.reshape(-1), "cat": lambda v: torch.cat([v.reshape(-1), v.reshape(-1)]),
    "compare": lambda v: v == v.flip(0) if v.ndim else v == v, "where": lambda v: torch.where(
    v != 0, v, v), "product": lambda v: torch.matmul(v.reshape(1, -1).float(), v.reshape(-1, 1)
    .float()), "running": lambda v: v.cumsum(0) if v.dtype is not torch.bool else v,
    "sorted": lambda v: v.real.sort(0)[0] if v.dtype.is_complex else v.sort(0)[0],
    "other dtype": lambda v: v.to(torch.int32) if not v.dtype.is_complex else v.real,
    "softmax": lambda v: v.softmax(0) if v.dtype.is_floating_point else v,
}  # fmt: skip


def test_strided_operands() -> None:
    wrong = []
    for dtype in DTYPES:
        for seen, read in READS.items():
            for used, use in USES.items():
                results = []
                for device in ("cpu", "mps"):
                    with np.errstate(all="ignore"):
                        results.append(use(read(made(dtype, device, 6, 4))))
                ours, theirs = results
                near = (ours.shape, ours.stride(), ours.dtype) == (
                    theirs.shape, theirs.stride(), theirs.dtype
                ) and np.allclose(numbers(ours), numbers(theirs), 1e-2, 1e-2)  # fmt: skip
                if not near or theirs.device.type != "mps":
                    wrong.append(f"{dtype} {seen} {used}")
    assert not wrong, wrong


def test_one_memory_seen_as_several_dtypes() -> None:
    x = torch.arange(8, dtype=torch.float32, device="mps")
    bits = x.view(torch.int32)
    bits[1::2] = 0
    assert x.tolist() == [0, 0, 2, 0, 4, 0, 6, 0]
    x[2:4].view(torch.int64).fill_(-1)
    assert bits.tolist()[2:4] == [-1, -1]
    z = torch.view_as_complex(torch.arange(8.0, device="mps").reshape(4, 2))
    z.imag[1:3] = 9
    z.real.mul_(2)
    assert z.tolist() == [0 + 1j, 4 + 9j, 8 + 9j, 12 + 7j]
    assert torch.view_as_real(z)[1].tolist() == [4, 9]
    halves = torch.arange(4, dtype=torch.float16, device="mps")
    halves.view(torch.uint8)[0] = 1
    assert 0 < halves[0].item() < 1e-6
    odd = torch.zeros(3, dtype=torch.uint8, device="mps")
    odd[1:3].view(torch.int8)[1] = -1
    assert odd.tolist() == [0, 0, 255]


def test_parts_of_storages_and_growth() -> None:
    x = torch.arange(6, device="mps")
    y = torch.empty(0, dtype=torch.int64, device="mps").set_(x.untyped_storage(), 2, (2, 2), (2, 1))
    y.mul_(10)
    assert x.tolist() == [0, 1, 20, 30, 40, 50]
    x.resize_(8)
    assert x[:6].tolist() == [0, 1, 20, 30, 40, 50]
    x[6:] = 7
    assert x.tolist()[6:] == [7, 7]
    assert bytes(x.untyped_storage().tolist()) == np.asarray(x.tolist(), np.int64).tobytes()
    again = torch.from_numpy(np.arange(12.0, dtype=np.float32).reshape(3, 4)[:, ::-2].copy())
    assert again.to("mps").cpu().tolist() == again.tolist()
    wide = torch.zeros(4, 6).t()
    assert wide.to("mps").stride() == wide.stride()


def test_gradients_of_views() -> None:
    found = []
    for device in ("cpu", "mps"):
        x = made("float32", device, 4, 6).requires_grad_()
        y = x * 2
        y[:, 1:3] = x[:, :2] ** 2
        y.t()[::2].mul_(3)
        z = y.as_strided((3, 4), (2, 3), 1).flip(0)
        (z.exp().sum(0) * y[0, :4]).sum().backward()
        found.append(numbers(x.grad))
    assert np.allclose(found[0], found[1], 1e-4)
    assert antorcha.ones(2, device="mps").device == antorcha.device("mps", 0)
