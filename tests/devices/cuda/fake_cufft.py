"""cuFFT without a GPU (see ``fake_functions``)."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from antorcha.devices.cuda.libraries import cufft
from tests.devices.cuda.fake_driver import FakeLibrary
from tests.devices.cuda.fake_functions import TYPES, FakeFunctions


class FakeCufft(FakeFunctions):
    """cuFFT. Its plans are numbers from 1 on."""

    PROTOTYPES = cufft.PROTOTYPES
    WORKSPACE = 1536

    def __init__(self, driver: FakeLibrary) -> None:
        super().__init__(driver)
        self.plans: dict[int, Any] = {}
        self.made_plans = 0

    def do_cufftGetVersion(self, out: int) -> None:
        ctypes.c_int.from_address(out).value = 12000

    def do_cufftCreate(self, out: int) -> None:
        self.made_plans += 1
        self.plans[self.made_plans] = {"stream": 0, "area": 0}
        ctypes.c_int.from_address(out).value = self.made_plans

    def do_cufftDestroy(self, plan: int) -> None:
        del self.plans[plan]

    def do_cufftSetAutoAllocation(self, plan: int, allocates: int) -> None:
        assert not allocates
        assert "sizes" not in self.plans[plan]

    def do_cufftXtMakePlanMany(
        self, plan: int, rank: int, sizes: int, embed: int, step: int, apart: int, kind: int,
        out_embed: int, out_step: int, out_apart: int, out_kind: int, count: int, workspace: int,
        computed: int,
    ) -> None:  # fmt: skip
        def numbers(at: int) -> list[int]:
            return list((ctypes.c_int64 * rank).from_address(at))

        lengths = numbers(sizes)
        half = [*lengths[:-1], lengths[-1] // 2 + 1]
        types = TYPES[kind], TYPES[out_kind]
        assert 1 <= rank <= 3
        assert computed == max(kind, out_kind)
        assert (embed is None) == (out_embed is None)
        given = (embed, step, apart), (out_embed, out_step, out_apart)
        lies = []
        for dtype, other, (rows, each, far) in zip(types, types[::-1], given, strict=True):
            if rows is None:  # signals without gaps, whatever else is said
                own = half if np.dtype(other).kind == "f" else lengths
                lies.append((own, 1, int(np.prod(own)), dtype))
            else:
                assert min(each, far) > 0
                lies.append((numbers(rows), each, far, dtype))
        self.plans[plan].update(sizes=lengths, count=count, source=lies[0], target=lies[1])
        ctypes.c_size_t.from_address(workspace).value = self.WORKSPACE

    def do_cufftSetStream(self, plan: int, stream: int) -> None:
        self.plans[plan]["stream"] = stream

    def do_cufftSetWorkArea(self, plan: int, area: int) -> None:
        self.plans[plan]["area"] = area

    def _signals(self, address: int, sizes: list[int], count: int, lies: Any) -> Any:
        embed, step, apart, dtype = lies
        strides = [step]
        for rows in embed[:0:-1]:
            strides.insert(0, strides[0] * rows)
        return self.array(address, dtype, (count, *sizes), (apart, *strides))

    def do_cufftXtExec(self, plan: int, x: int, out: int, direction: int) -> None:
        given = dict(self.plans[plan])
        self.driver.check(given["area"], self.WORKSPACE)
        sizes, count, dtype = given["sizes"], given["count"], np.dtype(given["source"][3])
        real = dtype.kind == "f"
        if real:
            assert direction == cufft.FORWARD
            assert x % (2 * dtype.itemsize) == 0, "real numbers begin where no complex one would"

        def work() -> None:
            half = [*sizes[:-1], sizes[-1] // 2 + 1]
            source = self._signals(x, sizes, count, given["source"])
            target = self._signals(out, half if real else sizes, count, given["target"])
            axes = tuple(range(1, 1 + len(sizes)))
            if real:
                target[...] = np.fft.rfftn(source, axes=axes)
            elif direction == cufft.FORWARD:
                target[...] = np.fft.fftn(source, axes=axes)
            else:
                target[...] = np.fft.ifftn(source, axes=axes, norm="forward")

        self.give(given["stream"], work)
