"""Sparse tensors without PyTorch: what they hold, what they refuse, that nothing reads memory."""

from __future__ import annotations

import copy
import pickle
import re
import warnings
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.ops.kinds.record import REGISTRY


def random_pair(rng: np.random.Generator, *shape: int) -> tuple[Any, Any]:
    """A sparse matrix (uncoalesced: one index is there twice) and the same, dense."""
    count = 6
    at = np.stack([rng.integers(0, n, count) for n in shape])
    at[:, 1] = at[:, 0]
    values = torch.tensor(rng.standard_normal(count))
    x = torch.sparse_coo_tensor(torch.tensor(at), values, shape)
    dense = np.zeros(shape)
    np.add.at(dense, tuple(at), values.numpy())
    return x, torch.tensor(dense)


def test_conversions_and_products() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        n, m, p = (int(k) for k in rng.integers(1, 6, 3))
        x, dense = random_pair(rng, n, m)
        assert torch.allclose(x.to_dense(), dense)
        assert torch.allclose(x.coalesce().to_dense(), dense)
        assert torch.equal(dense.to_sparse().to_dense(), dense)
        y = torch.tensor(rng.standard_normal((m, p)))
        z, dense_z = random_pair(rng, m, p)
        for form in ("to_sparse", "to_sparse_csr", "to_sparse_csc"):
            other = getattr(x, form)()
            assert torch.allclose(other.to_dense(), dense)
            assert torch.allclose(other @ y, dense @ y)
            assert torch.allclose(torch.mm(y.t(), other.t()), y.t() @ dense.t())
            assert torch.allclose((other @ z).to_dense(), dense @ dense_z)
        blocks = dense.to_sparse_bsr((n, 1))
        assert torch.allclose(blocks.to_dense(), dense)
        assert torch.allclose(blocks @ y, dense @ y)
        assert torch.allclose(torch.sparse.sum(x, 0).to_dense(), dense.sum(0))
        assert torch.allclose((x + x.coalesce()).to_dense(), 2 * dense)
        assert torch.allclose((x * x).to_dense(), dense * dense)


def test_gradients_by_finite_differences() -> None:
    rng = np.random.default_rng(1)
    x, _ = random_pair(rng, 4, 3)
    a = x.coalesce().requires_grad_()
    y = torch.tensor(rng.standard_normal((3, 2)), requires_grad=True)
    check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
    assert check(torch.sparse.mm, (a, y))
    assert check(lambda s: torch.sparse.softmax(s, 1), (a,))
    assert check(lambda s: torch.sparse.sum(s, 0), (a,))
    assert check(lambda s: s.to_sparse_csr() @ y.detach(), (a,))
    assert check(lambda s: (s + s) * 2 - s, (a,))
    assert check(lambda s: torch.sparse.mm(s, s.t()), (a,))


def test_a_graph_network_learns() -> None:
    torch.manual_seed(0)
    edges = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]])
    adjacency = torch.sparse_coo_tensor(edges, torch.full((8,), 0.5), (4, 4))
    features, wanted = torch.eye(4), torch.tensor([0, 1, 0, 1])
    first = torch.nn.Parameter(torch.randn(4, 8) * 0.5)
    second = torch.nn.Parameter(torch.randn(8, 2) * 0.5)
    optimizer = torch.optim.Adam([first, second], lr=0.05)
    for _ in range(40):
        hidden = torch.spmm(adjacency, features @ first).relu()
        loss = torch.nn.functional.cross_entropy(torch.mm(adjacency, hidden @ second), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.05


def test_contents_copies_and_invariants() -> None:
    x = torch.sparse_coo_tensor([[1, 0, 1], [0, 2, 0]], [1.0, 2.0, 3.0], (2, 3))
    assert (x.is_sparse, x.layout, x._nnz()) == (True, torch.sparse_coo, 3)
    assert not x.is_coalesced()
    with pytest.raises(RuntimeError, match="uncoalesced"):
        x.values()
    x = x.coalesce()
    assert x.indices().tolist() == [[0, 1], [2, 0]]
    assert x.values().tolist() == [2.0, 4.0]
    again = pickle.loads(pickle.dumps(x))
    for each in (again, copy.deepcopy(x), x.clone(), x.detach(), x.to(torch.float32)):
        assert repr(each) == repr(x)
    assert x.double().dtype is torch.float64
    far = torch.tensor([[5], [0]])
    torch.sparse_coo_tensor(far, torch.ones(1), (2, 3))  # not checked, as in PyTorch ...
    with pytest.raises(IndexError):
        torch.sparse_coo_tensor(far, torch.ones(1), (2, 3)).to_dense()  # ... until it is used
    with (
        torch.sparse.check_sparse_tensor_invariants(),
        pytest.raises(RuntimeError, match="inconsistent"),
    ):
        torch.sparse_coo_tensor(far, torch.ones(1), (2, 3))
    with pytest.raises(RuntimeError):
        torch.sparse_csr_tensor([0, 1, 9], [0, 1], [1.0, 2.0], (2, 2))
    with pytest.raises(NotImplementedError, match="semi-structured"):
        torch.sparse.to_sparse_semi_structured(torch.ones(4, 4))


def test_every_op_answers_or_refuses() -> None:
    """No op reads memory that a sparse tensor does not have, whatever else it is given."""
    small = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4, 5], (2, 3))
    large = torch.sparse_coo_tensor([[0, 1], [2, 0]], [1.0, 2.0], (2000, 3000))
    dense, at = torch.ones(2, 3), torch.tensor([0])
    functions = dict(REGISTRY)
    functions.update({f"{n}_": op.inplace for n, op in REGISTRY.items() if op.inplace})
    refused, unclear = 0, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, fn in functions.items():
            for x in (large.detach(),):
                for args in ((x,), (x, x), (dense, x), (x, 0), ([x, x],), (x, 0, at)):
                    try:
                        fn(*args)
                    except NotImplementedError as error:
                        refused += 1
                        if not re.search("sparse|storage", str(error)):
                            unclear[name] = str(error)
                    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError):
                        pass
                    except (AssertionError, StopIteration):
                        pass  # what is asked of a device that is not there
    assert refused > 300
    assert not unclear
    assert torch.equal(small.to_dense(), torch.tensor([[0.0, 0, 3], [4, 0, 5]]))


def test_refusals_name_op_and_layout() -> None:
    x = torch.eye(2).to_sparse()
    with pytest.raises(NotImplementedError, match=r"exp.*torch\.sparse_coo.*to_dense"):
        x.exp()
    with pytest.raises(NotImplementedError, match=r"cumsum.*torch\.sparse_csr"):
        torch.cumsum(x.to_sparse_csr(), 0)
    with pytest.raises(TypeError, match="to_dense"):
        x.numpy()
    with pytest.raises(RuntimeError, match=r"add\(dense, sparse\)"):
        x + torch.ones(2, 2)


def test_sparse_and_dense_gradients_add_up() -> None:
    for second in ("sparse", "dense"):
        e = torch.nn.Embedding(4, 2, sparse=True)
        e(torch.tensor([1, 1, 3])).sum().backward()
        assert e.weight.grad.is_sparse
        if second == "sparse":
            e(torch.tensor([0])).sum().backward()
            assert e.weight.grad.is_sparse
            wanted = [1.0, 2.0, 0.0, 1.0]
        else:
            e.weight.sum().backward()
            assert not e.weight.grad.is_sparse
            wanted = [1.0, 3.0, 1.0, 2.0]
        assert e.weight.grad.to_dense()[:, 0].tolist() == wanted
    w = torch.ones(3, 2, requires_grad=True)
    (torch.nn.functional.embedding(torch.tensor([0, 0]), w, sparse=True).sum() + w.sum()).backward()
    assert w.grad.tolist() == [[3.0, 3.0], [1.0, 1.0], [1.0, 1.0]]
    e = torch.nn.Embedding(4, 2, sparse=True)
    e(torch.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match="does not support sparse gradients"):
        torch.optim.RMSprop(e.parameters()).step()


def test_deep_lists_are_looked_through_to_a_depth() -> None:
    """Once there is a sparse tensor, calls look for one among their arguments: not without end."""
    torch.eye(2).to_sparse()
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(TypeError):
        torch.stack(deep)


def test_older_constructors_and_names() -> None:
    indices, values = torch.tensor([[0, 1], [1, 0]]), torch.tensor([1.0, 2.0])
    kind = torch.sparse.FloatTensor
    made = kind(indices, values, torch.Size([2, 3]))
    assert made.to_dense().tolist() == [[0, 1, 0], [2, 0, 0]]
    assert kind(indices, values).shape == (2, 2)
    assert kind(2, 3).shape == kind(torch.Size([2, 3])).shape == (2, 3)
    assert kind().shape == (0,)
    assert isinstance(made, kind)
    assert not isinstance(made, torch.sparse.DoubleTensor)
    assert not isinstance(values, kind)
    dense = torch.ones(3, 2)
    assert torch.dsmm(made, dense).tolist() == [[1, 1], [2, 2]]
    assert torch.hsmm(made, dense).to_dense().tolist() == made.smm(dense).to_dense().tolist()


def test_what_has_a_history_is_pickled_without_it() -> None:
    x = torch.tensor([0.0, 3.0], requires_grad=True)
    for result in (x * 2, (x * 2).to_sparse()):
        found = pickle.loads(pickle.dumps(result))
        assert found.is_leaf
        assert found.requires_grad
        assert found.to_dense().tolist() == [0.0, 6.0]


def test_products_reduced_otherwise() -> None:
    dense = [[0.0, 2.0, -1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    a = torch.tensor(dense, dtype=torch.float64).to_sparse_csr()
    b = torch.tensor([[1.0, 2.0], [3.0, -4.0], [5.0, 6.0]], dtype=torch.float64)
    wanted = {
        "mean": [[0.5, -7.0], [0.0, 0.0], [1.0, 2.0]],
        "amax": [[6.0, -6.0], [0.0, 0.0], [1.0, 2.0]],
        "amin": [[-5.0, -8.0], [0.0, 0.0], [1.0, 2.0]],
    }
    for reduce, result in wanted.items():
        assert torch.sparse.mm(a, b, reduce).tolist() == result
        check = torch.autograd.gradcheck
        assert check(lambda y, how=reduce: torch.sparse.mm(a, y, how), b.clone().requires_grad_())
    with pytest.raises(RuntimeError, match="reduce must be sum, mean, amax or amin, not 'prod'"):
        torch.sparse.mm(a, b, "prod")
    with pytest.raises(NotImplementedError, match=r"use mat1\.to_sparse_csr"):
        torch.sparse.mm(a.to_sparse_coo(), b, "mean")


def test_indices_compressed_and_back() -> None:
    rows, columns = torch.tensor([0, 0, 2]), torch.tensor([1, 2, 0])
    starts = torch._convert_indices_from_coo_to_csr(rows, 4, out_int32=True)
    assert (starts.tolist(), starts.dtype) == ([0, 2, 2, 3, 3], torch.int32)
    back = torch._convert_indices_from_csr_to_coo(starts, columns)
    assert back.tolist() == [rows.tolist(), columns.tolist()]
    turned = torch._convert_indices_from_csr_to_coo(starts, columns, transpose=True)
    assert turned.tolist() == [columns.tolist(), rows.tolist()]
