"""The layers that the other files of tests leave out, beside PyTorch's."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
import pytest

import antorcha
from tests.nn.beside import both_sides, numbers, same, trained

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


LAYERS = {
    "LazyLinear(3)": (2, 4),
    "LazyLinear(3, bias=False)": (2, 5, 4),
    "LazyConv1d(4, 3, 2)": (2, 3, 9),
    "LazyConv2d(4, 3, padding=1, groups=2)": (2, 6, 5, 5),
    "LazyConv3d(4, 2, bias=False)": (1, 2, 3, 3, 3),
    "LazyConvTranspose1d(4, 3)": (2, 3, 5),
    "LazyConvTranspose2d(4, 3, 2, 1, 1)": (2, 3, 5, 4),
    "LazyConvTranspose3d(4, 2)": (1, 3, 2, 2, 2),
    "LazyBatchNorm1d()": (5, 3),
    "LazyBatchNorm2d(1e-3, 0.2)": (2, 3, 4, 4),
    "LazyBatchNorm3d(affine=False)": (2, 3, 2, 2, 2),
    "LazyInstanceNorm1d()": (2, 3, 5),
    "LazyInstanceNorm2d(track_running_stats=False)": (2, 3, 4, 5),
    "LazyInstanceNorm3d(affine=False)": (2, 3, 2, 2, 2),
    "ChannelShuffle(3)": (2, 6, 2, 2),
    "LPPool1d(2, 3)": (2, 3, 7),
    "LPPool2d(1.5, (2, 3), stride=2)": (2, 3, 7, 8),
    "LPPool3d(2, 2, ceil_mode=True)": (1, 2, 4, 4, 4),
    "FractionalMaxPool2d(2, output_size=(3, 4), return_indices=True)": (2, 3, 7, 8),
    "FractionalMaxPool2d((2, 3), output_ratio=0.5)": (3, 7, 9),
    "FractionalMaxPool3d(2, output_ratio=(0.5, 0.6, 0.5))": (1, 2, 6, 7, 8),
    "Upsample(scale_factor=1.6, mode='bilinear')": (1, 2, 4, 5),
    "Upsample(size=7, mode='linear', align_corners=True)": (1, 2, 4),
    "Upsample(size=(6, 3), mode='bicubic')": (1, 2, 4, 5),
    "UpsamplingBilinear2d(scale_factor=2)": (1, 2, 4, 5),
    "DataParallel(nn.Linear(4, 3))": (2, 4),
}


def test_layers() -> None:
    """Printed text, state, results and gradients at the same seed."""
    for text, shape in LAYERS.items():

        def run(library: Any, text: str = text, shape: Any = shape) -> Any:
            library.manual_seed(7)
            module = eval("nn." + text, {"nn": library.nn})
            x = library.from_numpy(numbers(0, *shape))
            if "LPPool" in text:
                x = x.abs()
            before = repr(module)
            values = trained(library, module, x.requires_grad_())
            assert repr(copy.deepcopy(module)) == repr(module)
            assert before
            return module, values

        both_sides(run, text)


def test_cross_map_lrn() -> None:
    """Results only: PyTorch's gradient is not its result's derivative."""

    def run(library: Any) -> Any:
        layer = library.nn.CrossMapLRN2d(3, 0.1)
        return layer, layer(library.from_numpy(numbers(0, 2, 6, 2, 2)))

    both_sides(run, "CrossMapLRN2d")


def test_unpooling() -> None:
    for d in (1, 2, 3):

        def run(library: Any, d: int = d) -> Any:
            x = library.from_numpy(numbers(0, *(2, 2, 5, 6, 4)[: d + 2]))
            pool = getattr(library.nn, f"MaxPool{d}d")(2, return_indices=True)
            unpool = getattr(library.nn, f"MaxUnpool{d}d")(2)
            values, places = pool(x)
            values = values.detach().requires_grad_()
            out = unpool(values, places, output_size=x.size())
            (out * library.from_numpy(numbers(9, *out.shape))).sum().backward()
            return unpool, [out, values.grad, unpool(values, places)]

        both_sides(run, d)
    for library in (antorcha, torch):
        x, places = library.ones(1, 1, 2), library.tensor([[[0, 9]]])
        with pytest.raises(RuntimeError, match="invalid max index"):
            library.nn.functional.max_unpool1d(x, places, 2)
        with pytest.raises(ValueError, match="invalid output_size"):
            library.nn.functional.max_unpool1d(x, places, 2, output_size=(9,))


def test_embedding_bag() -> None:
    cases = [
        {"mode": mode, **more}
        for mode in ("sum", "mean", "max")
        for more in ({}, {"padding_idx": 2}, {"include_last_offset": True}, {"max_norm": 1.0})
    ]
    for options in cases:

        def run(library: Any, options: Any = options) -> Any:
            library.manual_seed(1)
            bag = library.nn.EmbeddingBag(6, 3, **options)
            index = library.tensor([1, 2, 2, 5, 1, 0, 2])
            offsets = library.tensor([0, 3, 3, 5, 7] if "include_last_offset" in options
                                     else [0, 3, 3, 5])  # fmt: skip
            values = trained(library, bag, index, offsets)
            bag.zero_grad()
            return bag, [*values, *trained(library, bag, library.tensor([[1, 2], [2, 2]]))]

        both_sides(run, options)
    for library in (antorcha, torch):
        table = library.ones(3, 2)
        for given in ((library.tensor([0, 1]), None), (library.tensor([[0, 1]]), table[0].long())):
            with pytest.raises(ValueError, match="offsets has to be"):
                library.nn.functional.embedding_bag(given[0], table, given[1])
        with pytest.raises(RuntimeError, match=r"offsets\[0\] has to be 0"):
            library.nn.functional.embedding_bag(table[:, 0].long(), table, library.tensor([1]))


def test_bags_of_wide_rows() -> None:
    """Rows of some blocks of columns, and what is left over; NaN, int32, bags of none."""
    wrong = []
    for columns, mode, index, ragged, padding in itertools.product(
        (1, 130, 300), ("sum", "mean", "max"), ("int32", "int64"), (False, True), (None, 4)
    ):
        table, numbers_of = numbers(0, 9, columns), numbers(1, 5, 7)
        table[2, 0] = np.nan
        places = np.arange(35).reshape(5, 7) % 9
        offsets = np.array([0, 3, 3, 20, 35])
        if ragged:
            places, numbers_of = places.reshape(-1), numbers_of.reshape(-1)
        found = []
        for library in (antorcha, torch):
            kind = getattr(library, index)
            x = library.from_numpy(table.copy()).requires_grad_()
            w = library.from_numpy(numbers_of.copy()).requires_grad_()
            weighted = mode == "sum" and padding is not None
            out = library.nn.functional.embedding_bag(
                library.from_numpy(places).to(kind), x,
                library.from_numpy(offsets).to(kind) if ragged else None, mode=mode,
                per_sample_weights=w if weighted else None, padding_idx=padding,
            )  # fmt: skip
            (out * out).sum().backward()
            found.append([out.detach().numpy(), x.grad.numpy()])
            found[-1] += [w.grad.numpy()] if weighted else []
        if not all([np.allclose(a, b, 1e-5, 1e-5, equal_nan=True)
                    for a, b in zip(*found, strict=True)]):  # fmt: skip
            wrong.append((columns, mode, index, ragged, padding))
    assert not wrong, wrong
    bag = antorcha.nn.functional.embedding_bag
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        bag(antorcha.tensor([[1, 9]]), antorcha.ones(9, 2))
    half = antorcha.ones(3, 2, dtype=antorcha.bfloat16)
    assert bag(antorcha.zeros(1, 1000).long(), half, mode="sum").tolist() == [[1000.0, 1000.0]]


def test_embedding_bag_by_frequency() -> None:
    """As documented (PyTorch's CPU kernel divides by another row's frequency)."""
    index = antorcha.tensor([1, 2, 2, 5, 1, 0, 2])
    made = []
    for bags in (True, False):
        table = antorcha.ones(6, 3).requires_grad_()
        if bags:
            out = antorcha.nn.functional.embedding_bag(
                index, table, antorcha.tensor([0, 3]), mode="sum", scale_grad_by_freq=True
            )
        else:
            out = antorcha.nn.functional.embedding(index, table, scale_grad_by_freq=True)
        out.sum().backward()
        made.append(table.grad)
    assert made[0].equal(made[1])


def test_ctc_loss() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((70, 3, 5)).astype(np.float32)
    targets = rng.integers(1, 5, (3, 30))
    targets[0, :2] = 3  # a repeat
    for ins, outs in (
        ((12, 9, 7), (6, 3, 0)), ((12, 3, 12), (6, 6, 1)), ((12, 12, 0), (2, 2, 0)),
        ((70, 9, 66), (30, 3, 17)),
    ):  # fmt: skip
        for reduction in ("none", "sum", "mean"):
            for zero in (True, False):
                if not zero and ins[1] == 3 and reduction != "none":
                    continue
                for joined in (True, False):

                    def run(library: Any, reduction: str = reduction, zero: bool = zero,
                            joined: bool = joined, ins: Any = ins, outs: Any = outs):  # fmt: skip
                        loss = library.nn.CTCLoss(0, reduction, zero)
                        inputs = library.from_numpy(x.copy()).requires_grad_()
                        flat = np.concatenate([t[:n] for t, n in zip(targets, outs, strict=True)])
                        labels = library.from_numpy(flat if joined else targets.copy())
                        lengths = library.tensor(ins), library.tensor(outs)
                        value = loss(inputs.log_softmax(2), labels, *lengths)
                        finite = value[value.isfinite()] if value.dim() else value
                        finite.sum().backward()
                        if not zero and ins[1] == 3:
                            return loss, [value]
                        return loss, [value, inputs.grad]

                    both_sides(run, (ins, outs, reduction, zero, joined))


def test_adaptive_log_softmax() -> None:
    def run(library: Any) -> Any:
        library.manual_seed(2)
        layer = library.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10], 2.0, head_bias=True)
        x = library.from_numpy(numbers(1, 6, 8)).requires_grad_()
        values = trained(library, layer, x, library.tensor([0, 4, 5, 11, 19, 9]))
        return layer, [*values, layer.log_prob(x), layer.predict(x)]

    both_sides(run, "adaptive")


def test_sync_batch_norm_converts() -> None:
    for library in (antorcha, torch):
        net = library.nn.Sequential(library.nn.BatchNorm2d(3), library.nn.BatchNorm1d(2))
        made = library.nn.SyncBatchNorm.convert_sync_batchnorm(net.eval())
        assert [type(m).__name__ for m in made] == ["SyncBatchNorm"] * 2
        assert not made[0].training
    net = antorcha.nn.SyncBatchNorm(3)
    x = antorcha.from_numpy(numbers(0, 4, 3, 2))
    same(net(x), torch.nn.BatchNorm1d(3)(torch.from_numpy(numbers(0, 4, 3, 2))), "sync")


def test_lazy_state() -> None:
    """A lazy module saves, loads, is copied and is cast before it knows its sizes."""
    for library in (antorcha, torch):
        nn = library.nn
        lazy = nn.Sequential(nn.LazyConv2d(3, 2), nn.LazyBatchNorm2d()).double()
        assert repr(lazy[0].weight) == "<UninitializedParameter>"
        assert nn.parameter.is_lazy(lazy.state_dict()["1.running_mean"])
        assert nn.parameter.is_lazy(copy.deepcopy(lazy[0]).bias)
        with pytest.raises(RuntimeError, match="uninitialized parameter"):
            _ = lazy[0].weight.shape
        full = nn.Sequential(nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3)).double()
        lazy.load_state_dict(full.state_dict())
        assert lazy[0].weight.shape == (3, 2, 2, 2)
        x = library.ones(1, 2, 4, 4, dtype=library.float64)
        assert (lazy(x) == full(x)).all()
        assert type(lazy[1]) is nn.BatchNorm2d
        assert lazy[1].weight.dtype is library.float64
        with pytest.raises(ValueError, match="divisible by groups"):
            nn.LazyConv2d(4, 1, groups=2)(library.ones(1, 3, 2, 2))


def test_nearest_takes_pytorchs_element() -> None:
    """Which element is the nearest is decided in PyTorch's precision."""
    for dtype in ("float32", "float64"):
        for mode in ("nearest", "nearest-exact"):
            for n in range(1, 32, 3):
                x = np.arange(n, dtype=dtype).reshape(1, 1, n)
                for wanted in (1, 2, 7, 22, 26, 41, 44, 46, 47, 55, 58):
                    a = antorcha.nn.functional.interpolate(
                        antorcha.from_numpy(x), size=wanted, mode=mode
                    )
                    b = torch.nn.functional.interpolate(torch.from_numpy(x), size=wanted, mode=mode)
                    assert np.array_equal(a.numpy(), b.numpy()), (dtype, mode, n, wanted)


BYTE_SIZES: tuple[dict[str, Any], ...] = (
    {"size": (20, 45)},
    {"size": (80, 60)},
    {"size": (7, 3)},
    {"size": (40, 30)},
    {"scale_factor": (0.31, 1.7)},
    {"scale_factor": 1.3, "recompute_scale_factor": True},
)


def test_bytes_are_resampled_to_the_last_bit() -> None:
    """Pixels as bytes are filtered in fixed point, and equal PyTorch's in every bit."""
    for channels in (1, 3, 5):
        pixels = np.random.default_rng(channels).integers(0, 256, (2, channels, 40, 30), np.uint8)
        for mode, aligns in {"bilinear": (0, 1), "bicubic": (0, 1), "lanczos": (0,)}.items():
            for align in map(bool, aligns):
                for antialias in (True,) if mode == "lanczos" else (False, True):
                    options = {"mode": mode, "align_corners": align, "antialias": antialias}
                    for size in BYTE_SIZES:
                        a, b = (
                            library.nn.functional.interpolate(
                                library.from_numpy(pixels), **size, **options
                            ).numpy()
                            for library in (antorcha, torch)
                        )
                        assert np.array_equal(a, b), (channels, options, size)


def test_antialias_and_scales() -> None:
    for mode in ("bilinear", "bicubic"):
        for size in ((3, 4), (9, 11), (1, 20)):
            for align in (False, True):
                for antialias in (False, True):

                    def run(library: Any, given: Any = (size, None, mode, align, None, antialias)):
                        x = library.from_numpy(numbers(0, 2, 2, 9, 8)).requires_grad_()
                        out = library.nn.functional.interpolate(x, *given)
                        out.pow(2).sum().backward()
                        return None, [out, x.grad]

                    both_sides(run, (mode, size, align, antialias))


def test_classes_made_from_layers_compute_what_their_bases_do() -> None:
    class Weighted(antorcha.nn.CrossEntropyLoss):
        def __init__(self, share: float) -> None:
            super().__init__(label_smoothing=share)
            self.share = share

    class Thinned(antorcha.nn.AlphaDropout): ...

    x, y = antorcha.tensor([[0.0, 1.0]]), antorcha.tensor([1])
    expected = antorcha.nn.functional.cross_entropy(x, y, label_smoothing=0.1)
    assert Weighted(0.1)(x, y) == expected
    assert Thinned(0.5).eval()(x) is not None
