"""Sparse tensors beside PyTorch: what is printed, what is refused, and gradients."""

from __future__ import annotations

import copy
import importlib
import re
import warnings
from typing import Any

import pytest

import antorcha

pytestmark = pytest.mark.oracle

EXPRESSIONS = """
s
s.coalesce()
s.to_sparse_csr()
s.to_sparse_csc()
s.to_sparse_bsr((1,3))
s.to_sparse_bsc((2,1))
s.to_sparse_csr().to_dense()
s.to_sparse_csc().to_dense()
s.to_sparse_bsr((1,3)).to_dense()
s.to_sparse_bsc((2,1)).to_dense()
s.to_sparse_csr().to_sparse()
torch.sparse_coo_tensor(i,v)
torch.sparse_coo_tensor((3,4))
torch.sparse_coo_tensor((2,3),dtype=torch.int64)
torch.sparse_coo_tensor(i,torch.ones(3,2))
torch.sparse_coo_tensor(indices=i,values=v,size=(4,4),dtype=torch.float64)
torch.sparse_coo_tensor([[0,1],[1,1]],[1,2])
torch.sparse_coo_tensor(i,3.0,(2,3))
torch.sparse_coo_tensor(torch.tensor([[0,0,1],[1,1,0]]),v).coalesce()
torch.sparse_coo_tensor(torch.tensor([[0,0,1],[1,1,0]]),v)
torch.sparse_coo_tensor(torch.tensor([[0,0,1],[1,1,0]]),v).to_dense()
torch.sparse_coo_tensor(torch.tensor([[0,-1],[0,0]]),torch.ones(2))
torch.sparse_coo_tensor(i,torch.ones(2))
torch.sparse_coo_tensor(torch.tensor([[0,9],[0,0]]),torch.ones(2),(2,3),check_invariants=True)
torch.ones(2).indices()
torch.ones(2).coalesce()
torch.ones(2)._nnz()
torch.ones(2).values()
torch.ones(3).to_dense()
torch.ones(2,2).sparse_dim()
torch.ones(2,2).crow_indices()
s.crow_indices()
s.stride()
s.storage()
s.exp()
s.numpy()
s.data_ptr()
s.values()
s.indices()
s._values()
s._indices()
s._nnz()
s.view(6)
s[0]
s[0,2]
s.tolist()
s.sum()
s.sum(0)
s.sum(1)
s.numel()
s.size()
s.size(1)
s.shape
s.dim()
s.is_contiguous()
len(s)
s==s
s.max()
s/2
2*s
s*2
s-s
-s
s**2
s.sqrt()
s+1
s*dd
s+dd
dd+s
dd*s
s.mm(s.t())
d2@s
s@torch.ones(3)
s.mv(torch.ones(3))
s.detach()
s.clone()
s.double()
s.to(torch.float16)
s.int()
s.type()
s.coalesce().indices()
s.item()
bool(s)
s.is_leaf
torch.zeros_like(s)
s.layout
s.is_sparse
s.is_sparse_csr
s.to_sparse_csr().layout
s.norm()
torch.cat([s,s])
torch.cat([s,s],1)
torch.stack([s,s])
s.unsqueeze(0)
s.unsqueeze(2)
s.reshape(6)
s.abs()
s.relu()
torch.relu(s)
s.sign()
s.any()
s.nonzero()
s.permute(1,0)
s.transpose(0,1)
s.t()
torch.t(s)
torch.transpose(s,0,1)
torch.transpose(s,0,1)
s.T
s.index_select(0,torch.tensor([1,0]))
s.index_select(1,torch.tensor([2,2,0]))
torch.index_select(s,0,torch.tensor([1,0]))
s.select(0,1)
torch.select(s,0,1)
s.narrow(0,0,1)
torch.equal(s,s)
torch.allclose(s,s)
s.sparse_mask(s.coalesce())
dd.sparse_mask(s.coalesce())
torch.eye(2).to_sparse()
torch.eye(2).to_sparse(1)
torch.eye(3).to_sparse_csr()
torch.eye(3).to_sparse(layout=torch.sparse_csc)
torch.eye(4).to_sparse_bsr((2,2))
torch.zeros(2,2).to_sparse()
s.is_coalesced()
s.mul_(2)
s.add_(s)
s.div_(2)
s.zero_()
s.copy_(s)
s.data
s.untyped_storage()
torch.addmm(torch.ones(2,2),s,d32)
torch.sparse.addmm(torch.ones(2,2),s,d32)
torch.sparse.addmm(torch.ones(2,2),s,d32,beta=2,alpha=3)
torch.sparse.mm(s,d32)
torch.mm(s,d32)
torch.matmul(s,d32)
torch.spmm(s,d32)
s@d32
s.to_sparse_csr()@d32
s.to_sparse_csc()@d32
s.to_sparse_csr().matmul(d32)
torch.sparse.mm(s.to_sparse_csr(),d32)
torch.hspmm(s,d32)
torch.bmm(torch.ones(1,2,3).to_sparse(), torch.ones(1,3,2))
s.mean()
s.isnan()
torch.where(s,s,s)
s.element_size()
s.nbytes
s.pow(2)
s.log1p()
s.floor()
s.neg()
s.requires_grad
s.dense_dim()
s.sparse_dim()
s.to_sparse()
s.share_memory_()
s.cpu()
s.sin()
s.tanh()
torch.sparse.sum(s)
torch.sparse.sum(s,0)
torch.sparse.sum(s,[0,1])
torch.sparse.softmax(s,1)
torch.sparse.softmax(s,0)
torch.sparse.log_softmax(s,1)
s.to_sparse_csr().crow_indices()
s.to_sparse_csr().col_indices()
s.to_sparse_csr().values()
s.to_sparse_csr().t()
s.to_sparse_csr()*2
s.to_sparse_csr()+s.to_sparse_csr()
torch.sparse_csr_tensor(torch.tensor([0,1,3]),torch.tensor([2,0,2]),v,(2,3))
torch.sparse_csr_tensor(torch.tensor([0,1,3]),torch.tensor([2,0,2]),v)
torch.sparse_csr_tensor([0,1,3],[2,0,2],[1.,2.,3.],dtype=torch.float64)
torch.sparse_csc_tensor(torch.tensor([0,1,3]),torch.tensor([1,0,1]),v)
torch.sparse_compressed_tensor(torch.tensor([0,1,3]),torch.tensor([2,0,2]),v,(2,3),layout=torch.sparse_csr)
torch.sparse.sampled_addmm(s.to_sparse_csr(), d2, torch.ones(2,3))
torch.sparse.spdiags(torch.ones(2,3), torch.tensor([0,-1]), (3,3))
s.sparse_resize_((3,3),2,0)
copy.deepcopy(s)
s.half()
(s.bool(), s.bool().to_dense())
s.device
s.dtype
s.clone().requires_grad_()
torch.exp(s)
torch.argmax(s)
s.cumsum(0)
s.view_as(s)
s.expand(2,2,3)
F.relu(s)
s.flatten()
s.masked_fill(s,0)
s.topk(1)
s.sort()
torch.einsum('ij,jk->ik',s,d32)
s.repeat(2,2)
torch.add(dd,s)
torch.add(s,s,alpha=2)
torch.mul(s,s)
s.sub(s,alpha=3)
s.get_device()
s.is_floating_point()
s.grad
s.permute(0,1)
s.squeeze()
s.contiguous()
s.is_pinned()
s.index_add(0,torch.tensor([0]),torch.ones(1,3))
dd.copy_(s)
dd.add_(s)
dd.sub_(s)
dd.add_(s,alpha=-0.5)
dd-s
torch.empty(2).copy_(s)
s.resize_(3)
s.fill_(1)
s.unbind()
s.chunk(2)
torch.nn.Parameter(s)
torch.ones(2,3)@s
torch.ones(3)@s.t()
torch.dot(s,s)
torch.sum(s)
torch.sum(s,dim=0)
torch.sum(s,(0,),True)
s.trace()
s.diag()
torch.tril(s)
s.bmm(s)
s.outer(s)
s.contiguous().view(-1)
torch.isclose(s,s)
torch.ones_like(s)
torch.empty_like(s)
torch.full_like(s,2)
s.norm(1)
s.conj()
s.logical_not()
""".strip().split("\n")
GRADIENTS = """
torch.sparse.mm(q,d)
torch.mm(q,d)
q@d
q.t()@e
e.t()@q
q.to_dense()
q.coalesce().values()
q*2
q/3
-q
q+q
q-2*q
q*q
e2+q
torch.sparse.sum(q)
torch.sparse.sum(q,0)
torch.sparse.softmax(q,1)
torch.sparse.log_softmax(q,1)
q**2
q.to_sparse_csr()@d
q.to_sparse_csr()
e2.to_sparse()
e2.sparse_mask(q.coalesce())
q.sparse_mask(q.coalesce().detach())
torch.sparse.mm(q,q.t())
torch.sparse.addmm(torch.ones(2,2),q,d)
torch.addmm(torch.ones(2,2),q,d)
q.clone()
q.double()
q.sum()
torch.sparse.mm(e2.to_sparse(),d)
torch.mv(q,d[:,0])
e2.to_sparse().to_dense()
torch.sparse_csr_tensor(torch.tensor([0,1,3]),torch.tensor([2,0,2]),w,(2,3))@d
""".strip().split("\n")
DENSE_THERE = ("torch.mm(q,d)", "q@d", "q.t()@e", "e.t()@q", "e2+q", "q.sum()", "torch.mv",
               "torch.addmm(", "q.to_sparse_csr()@d")  # fmt: skip
"""Of these PyTorch gives a sparse leaf a dense gradient; here it has the leaf's elements only."""


def setting(m: Any) -> dict[str, Any]:
    i, v = m.tensor([[0, 1, 1], [2, 0, 2]]), m.tensor([3.0, 4, 5])
    return {
        "torch": m, "F": m.nn.functional, "copy": copy, "i": i, "v": v,
        "s": m.sparse_coo_tensor(i, v, (2, 3)), "dd": m.arange(6.0).reshape(2, 3),
        "d32": m.arange(6.0).reshape(3, 2) / 7, "d2": m.arange(4.0).reshape(2, 2),
    }  # fmt: skip


def outcome(m: Any, expression: str) -> Any:
    """The text of what it gives, or the builtin class of the error."""
    try:
        return repr(eval(expression, setting(m))).replace("antorcha", "torch")
    except Exception as error:
        kinds = [k.__name__ for k in type(error).__mro__ if k.__module__ == "builtins"]
        return "RuntimeError" if "RuntimeError" in kinds else kinds[0]


def test_expressions() -> None:
    oracle = importlib.import_module("torch")
    wrong = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for expression in EXPRESSIONS:
            mine, theirs = outcome(antorcha, expression), outcome(oracle, expression)
            if mine != theirs:
                wrong[expression] = mine, theirs
    assert not wrong


def gradients(m: Any, expression: str, leaf: bool) -> list[Any]:
    """The result without its node's name, and all gradients as dense lists."""
    i = m.tensor([[0, 1, 1], [2, 0, 2]])
    w = m.tensor([1.0, 2, 3], requires_grad=not leaf)
    q = m.sparse_coo_tensor(i, w, (2, 3))
    if leaf:
        q = q.coalesce().requires_grad_()
    d = (m.arange(6.0).reshape(3, 2) / 7).requires_grad_()
    e = (m.arange(4.0).reshape(2, 2) + 1).requires_grad_()
    e2 = (m.arange(6.0).reshape(2, 3) - 1).requires_grad_()
    out = eval(expression, {"torch": m, "q": q, "d": d, "e": e, "e2": e2, "w": w})
    text = re.sub(r",\s*grad_fn=<\w+>|\s", "", repr(out))
    dense = out.to_dense() if out.layout != m.strided else out
    weight = (m.arange(dense.numel()) + 1).reshape(dense.shape).to(dense.dtype)
    (dense * weight).sum().backward()
    found = []
    for x in (w, q, d, e, e2):
        g = x.grad if x.is_leaf else None
        if g is not None and leaf and x is q and expression.startswith(DENSE_THERE):
            g = g.to_dense() * q.detach().to_dense().ne(0)
        found.append(None if g is None else g.to_dense().tolist())
    return [text, found]


@pytest.mark.parametrize("leaf", [False, True])
def test_gradients(leaf: bool) -> None:
    oracle = importlib.import_module("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for expression in GRADIENTS:
            (text, mine), (shown, theirs) = [
                gradients(m, expression, leaf) for m in (antorcha, oracle)
            ]
            assert text == shown, expression
            for a, b in zip(mine, theirs, strict=True):
                assert (a is None) == (b is None), expression
                if a is not None:
                    assert antorcha.allclose(antorcha.tensor(a), antorcha.tensor(b)), expression


def embeddings(m: Any) -> list[Any]:
    """What embeddings with sparse gradients accumulate, and what optimizers make of them."""
    out = []
    m.manual_seed(0)
    e, x = m.nn.Embedding(6, 3, sparse=True, padding_idx=1), m.tensor([[0, 2, 2], [1, 5, 0]])
    y = e(x)
    (y * m.arange(18.0).reshape(2, 3, 3)).sum().backward()
    out += [y, e.weight.grad]
    e(x).sum().backward()
    out += [e.weight.grad.clone(), e.weight.grad.coalesce()]
    (e.weight.sum() + e(x).sum()).backward()
    out.append(e.weight.grad.clone())
    e.weight.grad = None
    e.weight.sum().backward()
    e(x).sum().backward()
    out.append(e.weight.grad.clone())
    for mode, args in (("sum", (x,)), ("mean", (x.flatten(), m.tensor([0, 2])))):
        b = m.nn.EmbeddingBag(6, 3, sparse=True, mode=mode)
        b(*args).pow(2).sum().backward()
        out.append(b.weight.grad.coalesce())
    w = m.arange(6.0).reshape(2, 3).requires_grad_()
    m.gather(w, 1, m.tensor([[0, 2], [1, 1]]), sparse_grad=True).pow(2).sum().backward()
    out.append(w.grad)
    return out


def test_embedding_gradients() -> None:
    for mine, theirs in zip(
        embeddings(antorcha), embeddings(importlib.import_module("torch")), strict=True
    ):
        assert repr(mine) == repr(theirs)


OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1}), ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "maximize": True}),
    ("Adagrad", {"lr": 0.1, "weight_decay": 0.1}), ("SparseAdam", {"lr": 0.1}),
    ("SparseAdam", {"lr": 0.1, "maximize": True, "betas": (0.5, 0.9)}), ("LBFGS", {}),
    *[(name, {}) for name in ("Adam", "AdamW", "RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam",
                              "Rprop", "ASGD", "Adafactor", "Muon")],
]  # fmt: skip


def trained(m: Any, name: str, options: dict[str, Any]) -> Any:
    m.manual_seed(0)
    e, x = m.nn.Embedding(6, 3, sparse=True), m.tensor([[0, 2, 2], [1, 5, 0]])
    try:
        optimizer = getattr(m.optim, name)(e.parameters(), **options)
        for k in range(4):
            optimizer.zero_grad()
            loss = (e(x).pow(2) * (k + 1)).sum()
            loss.backward()
            optimizer.step(lambda loss=loss: loss)
        return e.weight.tolist()
    except RuntimeError as error:
        return str(error).removeprefix("add: ")


def test_optimizers_with_sparse_gradients() -> None:
    oracle = importlib.import_module("torch")
    for name, options in OPTIMIZERS:
        mine, theirs = trained(antorcha, name, options), trained(oracle, name, options)
        if isinstance(theirs, str):
            assert mine == theirs, (name, options)
        else:
            found, wanted = antorcha.tensor(mine), antorcha.tensor(theirs)
            assert antorcha.allclose(found, wanted, rtol=1e-4), (name, options)


def test_checkpoints_both_ways() -> None:
    import io

    oracle = importlib.import_module("torch")
    kinds = ("to_sparse", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc")
    for kind in kinds:
        for write, read in ((antorcha, oracle), (oracle, antorcha)):
            x = write.tensor([[0.0, 2, 0, 4], [1, 0, 3, 0]])
            x = getattr(x, kind)(*[(2, 2)] * kind.endswith(("bsr", "bsc")))
            file = io.BytesIO()
            write.save({"x": x, "layout": x.layout}, file)
            file.seek(0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = read.load(file)
            assert repr(found["x"]) == repr(x)
            assert repr(found["layout"]) == repr(x.layout)
