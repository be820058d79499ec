"""``antorcha.sim.recording``: what simulated threads read and wrote."""

from __future__ import annotations

import doctest

import antorcha as torch
from antorcha.devices.sim import recording


def test_the_example_shows_what_is_printed() -> None:
    found = doctest.DocTestFinder().find(recording.recording, "recording", module=recording)
    results = [doctest.DocTestRunner().run(test) for test in found]
    assert sum(result.attempted for result in results) == 5
    assert not any(result.failed for result in results)


def test_every_access_is_noted() -> None:
    x = torch.arange(600.0).to("sim")
    with torch.sim.recording() as launches:
        total = x.sum()
        turned = x.reshape(20, 30).t() * 2
    total.cpu(), turned.cpu()
    fold, scale = launches
    assert (fold.description, fold.kernel, fold.blocks) == ("Reduce", "reduce_grid", (1,))
    assert fold.count == len(fold.accesses) == 601
    assert scale.count == 300  # vectors of four
    assert all(a.count == 4 for a in scale.accesses)
    assert fold.shared_bytes >= 8 * 4
    read = sorted(a.element for a in fold.accesses if a.operand == "in0")
    assert read == list(range(600))
    assert [a.thread for a in fold.accesses if a.write] == [0]
    written = sorted(a.element + k for a in scale.accesses if a.write for k in range(a.count))
    assert written == list(range(600))
    assert scale.source.startswith("devices/gpu/pointwise.py:")


def test_operands_that_share_memory_are_told_apart() -> None:
    pair = torch.arange(20.0).view(2, 10).to("sim")
    first, second = pair
    with torch.sim.recording() as launches:
        first + second
        pair.add_(1)
    plus, bump = launches
    for name in ("in0", "in1", "out0"):
        own = [a for a in plus.accesses if a.operand == name]
        assert sorted(a.element + k for a in own for k in range(a.count)) == list(range(10)), name
    assert {(a.operand, a.write) for a in bump.accesses} == {("in0", False), ("out0", True)}


def test_nothing_is_noted_otherwise() -> None:
    x = torch.ones(4).to("sim")
    with torch.sim.recording() as launches:
        pass
    (x + 1).cpu()
    assert launches == []
