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
    "complex": "no complex32 yet",
    "linalg.lu": "no derivative yet",
    "linalg.lu_factor": "no derivative yet",
    "linalg.matrix_norm": "no halves yet",
    "linalg.norm": "no halves yet",
    "linalg.norm.subgradients_at_zero": "no halves yet",
    "linalg.slogdet": "no gradient of a complex sign yet",
    "logaddexp": "no complex numbers yet",
    "logcumsumexp": "no complex numbers yet",
    "logdet": "no gradient of a complex sign yet",
    "logsumexp": "no complex numbers yet",
    "nn.functional.rms_norm": "no complex numbers yet",
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
    "special.polygamma.special_polygamma_n_0": "PyTorch's trigamma is good to 10 digits",
}
"""In float64 the numbers of these differ in the last digits: compared as if float32."""

STRIDES = {
    "linalg.lstsq": "PyTorch's solution is a part of LAPACK's workspace",
    "linalg.lstsq.grad_oriented": "PyTorch's solution is a part of LAPACK's workspace",
    "linalg.solve_triangular": "PyTorch's depend on which triangle BLAS is asked for",
}
"""Results of other strides than PyTorch's."""

UNORDERED = {"argsort", "kthvalue", "mode", "msort", "sort", "topk"}
"""Which of equal elements they choose is nobody's promise: in dtypes where there are some, only the
values are compared."""

UP_TO_PHASE = {"linalg.eig", "linalg.eigh", "linalg.qr", "linalg.svd", "qr", "svd"}
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
    grad = grad and entry.supports_autograd
    if kind not in entry.dtypes or (grad and kind not in entry.backward_dtypes):
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
            scale=1e5 if title in DEVIATES and dtype == "float64" else 1,
        )  # fmt: skip
        if message.startswith("lacks") and title in PARTLY:
            continue
        if message:
            wrong.append(f"{title} {dtype} sample {k}: {message}")
    return wrong


def check_chunk(dtype: str, chunk: int, grad: bool, most: int) -> None:
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for entry in held()[chunk::CHUNKS]:
            wrong += check(entry, dtype, grad, 1 if quick.active else most)
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:100])


def test_most_of_pytorchs_entries_are_here() -> None:
    assert len(held()) >= 490
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
@pytest.mark.parametrize("dtype", ["bfloat16"])
def test_samples_and_their_gradients_in_halves(dtype: str, chunk: int) -> None:
    check_chunk(dtype, chunk, True, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("dtype", ["float16", "complex64", "int64", "uint8", "bool"])
def test_samples_in_other_dtypes(dtype: str, chunk: int) -> None:
    check_chunk(dtype, chunk, False, QUICK)
