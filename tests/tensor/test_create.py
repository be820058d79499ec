"""Making tensors: what the default dtype decides."""

from __future__ import annotations

import antorcha


def test_a_new_default_dtype_holds_at_once() -> None:
    """Also for what has been planned with the old one."""
    x = antorcha.arange(3)
    makers = [
        lambda: x.exp(), lambda: x / 2, lambda: x * 2.5, lambda: antorcha.zeros(3),
        lambda: antorcha.ones(3), lambda: antorcha.linspace(0, 1, 3),
        lambda: antorcha.full((2,), 1.5),
        lambda: antorcha.tensor(1.5), lambda: antorcha.rand(3),
    ]  # fmt: skip
    for _ in range(5):
        assert [make().dtype for make in makers] == [antorcha.float32] * len(makers)
    antorcha.set_default_dtype(antorcha.float64)
    try:
        for _ in range(5):
            assert [make().dtype for make in makers] == [antorcha.float64] * len(makers)
    finally:
        antorcha.set_default_dtype(antorcha.float32)
    assert [make().dtype for make in makers] == [antorcha.float32] * len(makers)
