"""Sobol sequences: PyTorch's points, scrambled and not."""

from __future__ import annotations

import pytest

import antorcha as torch
from antorcha.quasirandom import SobolEngine

FIRST = [[0.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75]]


def test_the_first_points():
    engine = SobolEngine(3)
    assert engine.draw(4).tolist() == FIRST
    assert engine.reset().draw(1).tolist() == FIRST[:1]
    assert engine.draw(2).tolist() == FIRST[1:3]
    assert engine.reset().fast_forward(2).draw(2, dtype=torch.float64).tolist() == FIRST[2:]


@pytest.mark.oracle
@pytest.mark.parametrize("dimension", [1, 5, 1000, 21201])
def test_points_are_pytorchs(dimension):
    oracle = pytest.importorskip("torch")
    for scramble in (False, True):
        theirs = oracle.quasirandom.SobolEngine(dimension, scramble, seed=3)
        ours = SobolEngine(dimension, scramble, seed=3)
        assert repr(ours) == repr(theirs)
        for draw in (1, 4, 7):
            assert ours.draw(draw).tolist() == theirs.draw(draw).tolist()
        theirs.fast_forward(5), ours.fast_forward(5)
        assert ours.draw(3, dtype=torch.float64).tolist() == (
            theirs.draw(3, dtype=oracle.float64).tolist()
        )
        assert ours.shift.tolist() == theirs.shift.tolist()
        assert ours.reset().draw_base2(3).tolist() == theirs.reset().draw_base2(3).tolist()


@pytest.mark.oracle
def test_the_default_generator_scrambles_where_no_seed_is_given():
    oracle = pytest.importorskip("torch")
    torch.manual_seed(5), oracle.manual_seed(5)
    ours, theirs = SobolEngine(4, True), oracle.quasirandom.SobolEngine(4, True)
    assert ours.draw(8).tolist() == theirs.draw(8).tolist()


def test_every_coordinate_is_even():
    points = SobolEngine(6, scramble=True, seed=0).draw_base2(8)
    for coordinate in points.T:
        assert (coordinate * 256).floor().long().bincount(minlength=256).eq(1).all()


def test_refusals():
    with pytest.raises(ValueError, match="1 to 21201 coordinates, not 0"):
        SobolEngine(0)
    engine = SobolEngine(2)
    engine.draw(3)
    with pytest.raises(ValueError, match=r"no power of 2; use draw\(2\)"):
        engine.draw_base2(1)
    with pytest.raises(AttributeError, match="quasirandom"):
        torch.quasirandom.halton
