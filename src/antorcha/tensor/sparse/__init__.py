"""Sparse tensors: a subclass of Tensor whose components are dense tensors.

`tensor.py` has the class, `parts.py` what ops see of it, `rules.py` and `products.py` the ops that
know it, `compressed.py` the formats of rows and columns. Loaded when the first sparse tensor is
made; a program without one pays nothing.
"""

from __future__ import annotations

from antorcha.autograd import accumulate
from antorcha.core import modes
from antorcha.core.hooks import hooks
from antorcha.runtime.call import path
from antorcha.tensor.sparse import gradients, methods, products, rules
from antorcha.tensor.sparse.dispatch import dispatch
from antorcha.tensor.sparse.tensor import SparseTensor

methods.bind()
hooks.sparse = dispatch
hooks.sparse_gradients = gradients
modes.sparse = True

__all__ = ["SparseTensor", "products", "rules"]
