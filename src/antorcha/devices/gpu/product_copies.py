"""Copies of factors that a product by warpgroups reads in their stead.

TF32 are multiplied along the depth alone. A left factor that lies along its rows goes through
registers, a right factor that lies along its columns is copied, and so is one that has no tensor
map.
"""

from __future__ import annotations

from dataclasses import replace

from antorcha.core.structs import replace as changed
from antorcha.devices.gpu.arrange import copy_by_strides
from antorcha.devices.gpu.frame import GridStep
from antorcha.devices.gpu.product_operands import GridProduct, ProductOperand, axis, has_map
from antorcha.runtime.memory.layout import Layout, layout

ENOUGH_TO_COPY = 1 << 28  # products of numbers that are worth copies of both factors


def as_multiplied(product: GridProduct) -> tuple[GridProduct, list[ProductOperand]]:
    """The product of TF32 whose right factor lies along its depth; and the operands, of whose
    copies it is one."""
    copied = []
    if product.m * product.n * product.k >= ENOUGH_TO_COPY:
        if not has_map(product.a, 4) and _is_matrix(product.a):
            copied.append(product.a)
            product = replace(product, a=_copy_of(product.a, product.m, product.k))
        if not has_map(product.b, 4) and _is_matrix(product.b):
            copied.append(product.b)
            product = replace(product, b=_copy_of(product.b, product.n, product.k))
    if not product.b.by_depth:
        both_across = not product.a.by_depth
        if not both_across or product.m < product.n:
            product = product.transposed()
        if both_across and _is_matrix(product.b):
            copied.append(product.b)
            product = replace(product, b=_copy_of(product.b, product.n, product.k))
    return product, copied


def _is_matrix(of: ProductOperand) -> bool:
    return len(of.outer.sizes) == len(of.depth.sizes) == 1 and of.window is None and of.batch >= 0


def _copy_of(factor: ProductOperand, rows: int, depth: int) -> ProductOperand:
    """The operand that is a factor's copy: along its depth, in pieces of 16 bytes."""
    pitch = -(-depth // 4) * 4
    batch = rows * pitch if factor.batch else 0
    return ProductOperand(factor.number, batch, axis((rows,), (pitch,)), axis((depth,), (1,)))


def copy_step(
    product: GridProduct, operand: ProductOperand, of: Layout, to: int
) -> tuple[GridStep, int]:
    """The step that copies an operand to buffer number ``to`` as the product reads it, and the
    bytes of the copy."""
    copy = product.a if product.a.number == operand.number else product.b
    stack = product.batch if operand.batch else 1
    (rows,), (pitch,) = copy.outer.sizes, copy.outer.strides
    there = layout((stack, rows, product.k), (rows * pitch, pitch, 1), of.dtype, of.device)
    read = operand.batch, *operand.outer.strides, *operand.depth.strides
    step = copy_by_strides(there, read).steps[0]
    return changed(step, operands=(to, operand.number)), stack * rows * pitch * of.itemsize
