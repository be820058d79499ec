"""Rows that lie in lanes, copied there or side by side: lengths, blocks not whole, layouts."""

from __future__ import annotations

import math

import numpy as np

import antorcha as torch
from antorcha.devices.cpu.rows_in_lanes import COLUMNS
from antorcha.nn import functional as F

LENGTHS = (1, 2, 3, 7, 8, 15, 16, 17, 31, 33, COLUMNS - 1, COLUMNS, COLUMNS + 1)
ROWS = (1, 2, 7, 8, 15, 16, 17, 40)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def norm(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    moved = x - x.mean(-1, keepdims=True)
    return moved / np.sqrt((moved**2).mean(-1, keepdims=True) + 1e-5) * weight


def close(found: torch.Tensor, wanted: np.ndarray, tolerance: float) -> bool:
    return np.allclose(found.detach().double().numpy(), wanted, tolerance, tolerance)


def test_lengths_and_numbers_of_rows() -> None:
    wrong = []
    torch.manual_seed(3)
    for dtype, tolerance in ((torch.float32, 2e-5), (torch.float64, 1e-9), (torch.bfloat16, 2e-2)):
        for n in LENGTHS:
            weight = torch.randn(n, dtype=dtype)
            for rows in ROWS:
                x = (3 * torch.randn(rows, n)).to(dtype)
                classes = torch.randint(0, n, (rows,))
                own = x.double().numpy()
                logs = np.log(softmax(own))
                picked = -logs[np.arange(rows), classes.numpy()]
                places = own.argmax(-1), own.argmin(-1)
                checks = {
                    "softmax": close(x.softmax(-1), softmax(own), tolerance),
                    "log_softmax": close(x.log_softmax(-1), logs, 3 * tolerance),
                    "cross_entropy": close(
                        F.cross_entropy(x, classes, reduction="none"), picked, 3 * tolerance
                    ),
                    "layer_norm": close(
                        F.layer_norm(x, (n,), weight),
                        norm(own, weight.double().numpy()),
                        10 * tolerance,
                    ),
                    "var": n == 1 or close(x.var(-1), own.var(-1, ddof=1), 10 * tolerance),
                    "argmax": (x.argmax(-1).numpy() == places[0]).all(),
                    "argmin": (x.argmin(-1).numpy() == places[1]).all(),
                }
                wrong += [(name, dtype, n, rows) for name, ok in checks.items() if not ok]
    assert not wrong, wrong[:20]


def test_layouts_of_rows() -> None:
    wrong = []
    base = torch.randn(6, 4, 5, 24)
    for name, x in {
        "dims exchanged": base.transpose(0, 2),
        "every second row": base[:, ::2],
        "parts of rows": base[..., 3:20],
        "one row for all": base[0, 0, 0].expand(40, 24),
        "rows expanded": base[:, :1].expand(6, 9, 5, 24),
        "strided along": base[..., ::2],
        "turned": base.transpose(2, 3),
    }.items():
        wanted = softmax(x.double().numpy())
        out = torch.full((*x.shape[:-1], x.shape[-1] + 3), 7.0)
        torch.softmax(x, -1, out=out[..., 1:-2])
        aside = torch.cat((out[..., :1], out[..., -2:]), -1)
        if not close(x.softmax(-1), wanted, 1e-5) or not close(out[..., 1:-2], wanted, 1e-5):
            wrong.append(name)
        if (aside != 7).any():
            wrong.append(f"{name}: written outside")
    assert not wrong, wrong


def test_rows_side_by_side() -> None:
    """Along any dim but the last: lengths, numbers of neighbours, and what is the same for them."""
    wrong = []
    torch.manual_seed(4)
    shapes = [((n, 40), 0) for n in (1, 2, 15, 17, 300, 700)]
    shapes += [((5, m), 0) for m in (1, 7, 8, 16, 33, 64, 129, 300)]
    shapes += [((3, 20, 17), 1), ((2, 3, 4, 5, 6), 2), ((0, 20), 0), ((4, 3, 150), 1)]
    for dtype, tolerance in ((torch.float32, 2e-5), (torch.float64, 1e-9), (torch.bfloat16, 2e-2)):
        for shape, dim in shapes:
            x = (3 * torch.randn(shape)).to(dtype).requires_grad_()
            own = np.moveaxis(x.detach().double().numpy(), dim, -1)
            wanted = softmax(own) if own.size else own
            result = x.softmax(dim)
            logs = x.log_softmax(dim)
            grads = []
            for start in (torch.randn(shape).to(dtype), torch.ones((), dtype=dtype).expand(shape)):
                (grad,) = torch.autograd.grad(result, x, start, retain_graph=True)
                g = np.moveaxis(start.double().numpy(), dim, -1)
                expected = wanted * (g - (wanted * g).sum(-1, keepdims=True))
                grads.append(close(grad.movedim(dim, -1), expected, 2 * tolerance))
            out = torch.full((*shape[:-1], shape[-1] + 3), 7.0, dtype=dtype)
            torch.softmax(x.detach(), dim, out=out[..., 1:-2])
            checks = {
                "softmax": close(result.movedim(dim, -1), wanted, tolerance),
                "log_softmax": close(logs.movedim(dim, -1), np.log(wanted), 3 * tolerance),
                "gradient": grads[0], "gradient of one number": grads[1],
                "out": close(out[..., 1:-2].movedim(dim, -1), wanted, tolerance),
                "beside out": bool((out[..., [0, -2, -1]] == 7).all()),
            }  # fmt: skip
            wrong += [(name, dtype, shape) for name, ok in checks.items() if not ok]
    assert not wrong, wrong[:20]


def test_numbers_that_are_none_stay_in_their_rows() -> None:
    x = torch.randn(37, 12)
    x[5, 3], x[17] = math.nan, -math.inf
    x[30, 11] = math.inf
    result = x.softmax(-1).isnan().any(-1)
    assert result.nonzero().flatten().tolist() == [5, 17, 30]
    result = x.t().contiguous().softmax(0).isnan().any(0)
    assert result.nonzero().flatten().tolist() == [5, 17, 30]


def test_any_number_of_threads_gives_the_same() -> None:
    x = torch.randn(5000, 37)
    threads = torch.get_num_threads()
    try:
        found = []
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            found.append(F.layer_norm(x.softmax(-1), (37,)))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(each, found[0]) for each in found[1:])
    # A row's result does not depend on which rows it lies beside.
    assert torch.equal(found[0][13:14], F.layer_norm(x[13:14].softmax(-1), (37,)))
    down = x.softmax(0)
    assert torch.equal(down[:, 13:14], x[:, 13:29].contiguous().softmax(0)[:, :1])
