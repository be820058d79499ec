"""PyTorch's samples of its operators: antorcha gives what PyTorch gives, gradients included.

What antorcha lacks is told by the name (``lacking``) and is no failure; what it has must agree, but
for the few entries of the tables below.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.choosing import quick
from tests.ops import samples

pytestmark = pytest.mark.oracle

CHUNKS = 4
QUICK, MOST = 10, 20  # samples of an entry, spread over all of them

PARTLY = {
    "chalf": "no complex32 yet",
    "complex": "no complex32 yet",
    "view_as_complex": "no complex32 yet",
}
"""Entries of which antorcha lacks a part, and says so with NotImplementedError."""

DEVIATES = {
    "nn.functional.hardsigmoid": "PyTorch's gradient takes 1 / 6 as a float32",
    "polygamma.polygamma_n_0": "PyTorch's trigamma is good to 10 digits",
    "polygamma.polygamma_n_1": "PyTorch's trigamma is good to 10 digits",
    "polygamma.polygamma_n_2": "PyTorch's trigamma is good to 10 digits",
    "polygamma.polygamma_n_3": "PyTorch's trigamma is good to 10 digits",
    "polygamma.polygamma_n_4": "PyTorch's trigamma is good to 10 digits",
    "special.airy_ai": "PyTorch's is good to 7 digits",
    "special.bessel_j0": "PyTorch's is good to 7 digits",
    "special.bessel_j1": "PyTorch's is good to 7 digits",
    "special.bessel_y0": "PyTorch's is good to 7 digits",
    "special.bessel_y1": "PyTorch's is good to 7 digits",
    "special.polygamma.special_polygamma_n_0": "PyTorch's trigamma is good to 10 digits",
}
"""In float64 the numbers of these differ in the last digits: compared as if float32."""

COARSE_HALVES = {"logspace": "PyTorch rounds the step between two powers to a half"}
"""In halves PyTorch's numbers of these are the coarser ones: compared to a digit less."""

STRIDES = {
    "linalg.lstsq": "PyTorch's solution is a part of LAPACK's workspace",
    "linalg.lstsq.grad_oriented": "PyTorch's solution is a part of LAPACK's workspace",
}
"""Results of other strides than PyTorch's."""

NO_NUMBERS = {("matrix_exp", "bfloat16"), ("matrix_exp", "float16")}
"""Entries and dtypes of which PyTorch's results are nan."""
WRONG_GRADIENTS = {
    "as_strided_scatter": "PyTorch's gradient of the whole is that of what is written over",
}
"""Entries whose gradients PyTorch gets wrong (finite differences say so): results are compared."""

UNORDERED = {"argsort", "kthvalue", "mode", "msort", "sort", "topk"}
"""Which of equal elements they choose is nobody's promise: in dtypes where there are some, only the
values are compared."""

UP_TO_PHASE = {"linalg.eig", "linalg.eigh", "linalg.qr", "linalg.svd", "pca_lowrank", "qr", "svd",
               "svd_lowrank"}  # fmt: skip
"""A vector and its negative are equally right: compared as PyTorch's gradient tests do."""


SPARSE = {"sparse.mm", "sparse.sampled_addmm", "to_sparse"}
"""Entries whose samples or results are sparse: ``tests/sparse`` compares them."""


def held() -> list[Any]:
    return [entry for entry in samples.operators()
            if samples.named(entry.name) is not None and entry.name not in SPARSE]  # fmt: skip


def lacking() -> list[str]:
    """The entries that antorcha has no name for."""
    return [samples.title(e) for e in samples.operators() if samples.named(e.name) is None]


def check(entry: Any, dtype: str, grad: bool, most: int) -> list[str]:
    """What differs in an entry's samples."""
    import torch

    title = samples.title(entry)
    kind = getattr(torch, dtype)
    grad = grad and entry.supports_autograd and title not in WRONG_GRADIENTS
    if kind not in entry.dtypes or (grad and kind not in entry.backward_dtypes):
        return []
    if (title, dtype) in NO_NUMBERS:
        return []
    call, ours = samples.both(entry, grad)
    ties = title in UNORDERED and dtype not in ("float32", "float64")
    wrong = []
    for k, sample in samples.spread(entry.sample_inputs("cpu", kind, requires_grad=grad), most):
        processed = grad or title in UP_TO_PHASE
        message = samples.compare(
            call, ours, sample, grad=grad and not ties,
            process=sample.output_process_fn_grad if processed else None,
            strides=title not in STRIDES, indices=not ties,
            sums=not samples.elementwise(entry),
            values="empty" not in title and not entry.has_nondeterministic_output,
            scale=scale_of(title, dtype),
        )  # fmt: skip
        if message.startswith("lacks") and title in PARTLY:
            continue
        if message:
            wrong.append(f"{title} {dtype} sample {k}: {message}")
    return wrong


def scale_of(title: str, dtype: str) -> float:
    """How much further than usual the numbers may lie apart."""
    if dtype == "float64":
        return 1e5 if title in DEVIATES else 1
    return 10 if title in COARSE_HALVES and dtype in ("float16", "bfloat16") else 1


def check_chunk(dtype: str, chunk: int, grad: bool, most: int) -> None:
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for entry in held()[chunk::CHUNKS]:
            wrong += check(entry, dtype, grad, 1 if quick.active else most)
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:100])


def test_most_of_pytorchs_entries_are_here() -> None:
    assert len(held()) >= 680
    assert not set(PARTLY) & set(lacking())


@pytest.mark.each_op
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_samples_in_float32(chunk: int) -> None:
    check_chunk("float32", chunk, False, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_samples_and_their_gradients(dtype: str, chunk: int) -> None:
    check_chunk(dtype, chunk, True, MOST)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "complex64"])
def test_samples_and_their_gradients_in_narrower_dtypes(dtype: str, chunk: int) -> None:
    check_chunk(dtype, chunk, True, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_samples_in_other_dtypes(dtype: str, chunk: int) -> None:
    check_chunk(dtype, chunk, False, QUICK)
