"""Causal biases, subclasses of Tensor; test_attention.py runs this file in a process of its own."""

from __future__ import annotations

from typing import Any

import pytest

import antorcha
from antorcha.nn.attention.bias import causal_lower_right, causal_upper_left
from tests.nn.test_attention import inputs

F = antorcha.nn.functional


@pytest.mark.parametrize("make", [causal_lower_right, causal_upper_left])
def test_causal_biases(make: Any) -> None:
    q, k, v = inputs(antorcha, q=4, k=7)
    bias = make(4, 7)
    mask = antorcha.ones(4, 7).tril(3 if make is causal_lower_right else 0).bool()
    want = F.scaled_dot_product_attention(q, k, v, mask)
    assert antorcha.equal(F.scaled_dot_product_attention(q, k, v, bias), want)
    assert antorcha.equal(F.scaled_dot_product_attention(q, k, v, attn_mask=bias), want)
    assert repr(bias) == repr(mask)
    assert isinstance(bias, antorcha.Tensor)
    with pytest.warns(UserWarning, match="will produce NaNs"):
        causal_lower_right(3, 2)
