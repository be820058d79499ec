"""What ops ask of a device: descriptions, which any can compile, and few functions of NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest

import antorcha
from antorcha.devices.cpu import backend
from antorcha.devices.numpy_semantics import host
from antorcha.lang.kernels import Description, Host, Matrices
from antorcha.ops.kinds.record import Op
from antorcha.runtime.call import plan
from tests.ops.records import everything, samples

ON_THE_HOST = {
    "LAPACK": "cholesky_solve det linalg_cholesky linalg_cholesky_ex linalg_cond linalg_det "
    "linalg_eigvalsh linalg_householder_product linalg_inv linalg_inv_ex linalg_ldl_factor_ex "
    "linalg_ldl_solve linalg_lu_factor_ex linalg_lu_solve linalg_matrix_exp linalg_matrix_norm "
    "linalg_pinv linalg_qr linalg_slogdet linalg_solve linalg_solve_ex linalg_solve_triangular "
    "linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve logdet lu_unpack nuclear_norm "
    "ormqr triangular_solve",
    "SciPy and NumPy": "kaiser_window",
}  # fmt: skip
"""The ops of which a device needs the host's memory, and why."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What the CPU device is asked to compile meanwhile."""
    found: list[Any] = []
    compiled = type(backend).compile

    def compile(self: Any, what: Any, outs: Any, ins: Any) -> Any:
        found.append(what)
        return compiled(self, what, outs, ins)

    monkeypatch.setattr(type(backend), "compile", compile)
    plan.flush()
    yield found
    plan.flush()


@everything
@pytest.mark.each_op
def test_ops_describe_what_they_compute(op: Op, asked: list[Any]) -> None:
    for args, kwargs in samples(op, antorcha.float32):
        op(*args, **kwargs)
    assert all([isinstance(what, get_args(Description)) for what in asked])
    known = " ".join(ON_THE_HOST.values()).split()
    assert op.name in known or not any([isinstance(what, Host | Matrices) for what in asked])


def test_every_description_is_interpreted() -> None:
    for kind in get_args(Description):
        assert kind in host._COMPUTE
        assert kind.__doc__
