"""Matrix products on a GPU: operands as stacks of matrices through their strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core import switches
from antorcha.devices.gpu.frame import GridPlan
from antorcha.devices.gpu.product import plan_product
from antorcha.devices.gpu.product_operands import GridProduct, ProductOperand, axis
from antorcha.lang.kernels import MatMul
from antorcha.runtime.memory.layout import Layout


def plan_matmul(what: MatMul, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    return plan_product(matrix_product(what), outs, ins)


def matrix_product(what: MatMul) -> GridProduct:
    """The product that is asked for."""
    m, n, k = what.m, what.n, what.k
    bias = None if what.bias is None else _matrix(3, m, n, what.bias)
    return GridProduct(
        what.batch, m, n, k, _matrix(1, m, k, what.a), _turned(2, k, n, what.b),
        _matrix(0, m, n, what.out), bias, what.alpha, what.beta, bool(switches.matmul.allow_tf32),
    )  # fmt: skip


def _matrix(number: int, rows: int, columns: int, strides: Sequence[int]) -> ProductOperand:
    stack, row, column = strides
    return ProductOperand(number, stack, axis((rows,), (row,)), axis((columns,), (column,)))


def _turned(number: int, rows: int, columns: int, strides: Sequence[int]) -> ProductOperand:
    """A right factor: its depth are its rows."""
    stack, row, column = strides
    return ProductOperand(number, stack, axis((columns,), (column,)), axis((rows,), (row,)))
