"""The mistakes that beginners make: each has its rule, and each fix that is shown does mend it."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

import antorcha as torch

HEAD = "import numpy as np\nimport antorcha as torch\nfrom antorcha import nn\nF = nn.functional\n"

# name: (what comes before, the line that fails, how many fixes are shown)
MISTAKES: dict[str, tuple[str, str, int]] = {
    # ---- shapes
    "mm": ("a = b = torch.ones(3, 2)", "c = torch.mm(a, b)", 2),
    "two batches": ("a = b = torch.ones(4, 3, 2)", "c = torch.bmm(a, b)", 2),
    "channel means": ("img, mean = torch.ones(3, 8, 8), torch.ones(3)", "c = img * mean", 1),
    "view": ("a = torch.ones(2, 3)", "c = a.t().view(6)", 2),
    "reshape": ("a = torch.ones(2, 3)", "c = a.reshape(4, 2)", 1),
    "rows of no size": ("a = torch.ones(2, 3)", "c = a.view(4, -1)", 0),
    "permute": ("x = torch.ones(3, 4, 5)", "v = x.permute(0, 2)", 1),
    "gather": ("x, i = torch.ones(3, 4), torch.zeros(3, dtype=torch.int64)", "v = x.gather(1, i)",
               1),
    "gather by name": ("x, i = torch.ones(3, 4), torch.zeros(3, dtype=torch.int64)",
                       "v = torch.gather(x, index=i, dim=1)", 1),
    "einsum": ("a, b = torch.ones(2, 3), torch.ones(4, 5)", "v = torch.einsum('ij,jk->ik', a, b)",
               0),
    # ---- layers
    "linear": ("x, lin = torch.ones(5, 7), nn.Linear(10, 2)", "y = lin(x)", 1),
    "linear of images": ("x, lin = torch.ones(2, 1, 28, 28), nn.Linear(784, 2)", "y = lin(x)", 2),
    "linear in a model": ("m = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Linear(4, 2))\n"
                          "x = torch.ones(2, 1, 8, 8)", "y = m(x)", 1),
    "channels": ("x, conv = torch.ones(2, 1, 8, 8), nn.Conv2d(3, 4, 3, stride=2, bias=False)",
                 "y = conv(x)", 1),
    "channels last": ("x, conv = torch.ones(2, 8, 8, 3), nn.Conv2d(3, 4, 3)", "y = conv(x)", 1),
    "one grey image": ("x, conv = torch.ones(8, 8), nn.Conv2d(1, 4, 3)", "y = conv(x)", 1),
    "small image": ("x, conv = torch.ones(1, 1, 2, 2), nn.Conv2d(1, 1, 5)", "y = conv(x)", 1),
    "small pool": ("x = torch.ones(1, 1, 2, 2)", "y = F.max_pool2d(x, 3)", 0),
    "layer norm": ("x, norm = torch.ones(2, 5), nn.LayerNorm(4)", "y = norm(x)", 1),
    "batch of one": ("x, norm = torch.ones(1, 4), nn.BatchNorm1d(4)", "y = norm(x)", 1),
    "batch norm dims": ("x, norm = torch.ones(2, 4), nn.BatchNorm2d(4)", "y = norm(x)", 1),
    "rows of a table": ("t, i = nn.Embedding(10, 3), torch.tensor([3, 10])", "v = t(i)", 1),
    "rows by floats": ("t, i = nn.Embedding(10, 3), torch.tensor([3.0])", "v = t(i)", 1),
    "no super": ("class M(nn.Module):\n    def __init__(self):\n        self.a = nn.Linear(1, 1)",
                 "m = M()", 1),
    "no forward": ("class M(nn.Module):\n    pass\nm = M()", "m(torch.ones(1))", 0),
    # ---- losses
    "float classes": ("s, t = torch.ones(3, 4), torch.ones(3)", "v = F.cross_entropy(s, t)", 1),
    "short classes": ("s, t = torch.ones(3, 4), torch.ones(3, dtype=torch.int32)",
                      "v = nn.CrossEntropyLoss()(s, t)", 1),
    "one-hot classes": ("s, t = torch.ones(3, 4), torch.eye(4, dtype=torch.int64)[:3]",
                        "v = F.cross_entropy(s, t)", 2),
    "a column of classes": ("s, t = torch.ones(3, 4), torch.ones(3, 1, dtype=torch.int64)",
                            "v = F.cross_entropy(s, t)", 1),
    "classes from 1": ("s, t = torch.ones(3, 4), torch.tensor([1, 2, 4])",
                       "v = F.cross_entropy(s, t)", 1),
    "a class too high": ("s, t = torch.ones(3, 4), torch.tensor([1, 2, 9])",
                         "v = F.cross_entropy(s, t)", 0),
    "fewer targets": ("s, t = torch.ones(3, 4), torch.tensor([1, 2])", "v = F.cross_entropy(s, t)",
                      0),
    "a column of scores": ("s, t = torch.rand(3, 1), torch.rand(3)",
                           "v = F.binary_cross_entropy_with_logits(s, t)", 2),
    "scores": ("s, t = torch.tensor([1.5, 0.2]), torch.rand(2)",
               "v = F.binary_cross_entropy(s, t)", 2),
    "scores in a layer": ("s, t, loss = torch.tensor([1.5]), torch.rand(1), nn.BCELoss()",
                          "v = loss(s, t)", 2),
    "one-hot of floats": ("t = torch.tensor([1.0, 2.0])", "v = F.one_hot(t)", 1),
    "one-hot of few": ("t = torch.tensor([1, 5])", "v = F.one_hot(t, num_classes=3)", 1),
    # ---- devices and dtypes
    "cuda": ("a = torch.ones(2)", "c = a.cuda()", 1),
    "a model on cuda": ("m = nn.Linear(2, 2)", "m.cuda()", 1),
    "made on cuda": ("", "c = torch.ones(2, device='cuda')", 2),
    "doubles": ("x, lin = torch.from_numpy(np.ones((2, 2))), nn.Linear(2, 2)", "c = lin(x)", 1),
    "whole numbers": ("x, lin = torch.tensor([[1, 2]]), nn.Linear(2, 2)", "c = lin(x)", 1),
    "mean of integers": ("x = torch.tensor([1, 2])", "v = x.mean()", 1),
    # ---- indices
    "index": ("x = torch.ones(3, 4)", "v = x[0, 7]", 1),
    "three indices": ("x = torch.ones(3, 4)", "v = x[0, 1, 2]", 1),
    "float index": ("x, i = torch.ones(3, 4), torch.tensor([0.0, 1.0])", "v = x[i]", 1),
    "float mask": ("x, i = torch.ones(2, 4), torch.tensor([0.0, 1.0])", "v = x[i]", 2),
    "mask of columns": ("x, m = torch.ones(3, 4), torch.ones(4, dtype=torch.bool)", "v = x[m]", 1),
    "dim": ("x = torch.ones(3, 4)", "v = x.sum(dim=2)", 1),
    # ---- autograd
    "no graph": ("x = torch.ones(3)", "x.sum().backward()", 1),
    "many": ("x = torch.ones(3, requires_grad=True)\ny = x * 2", "y.backward()", 2),
    "write to a leaf": ("x = torch.ones(3, requires_grad=True)", "x += 1", 2),
    "numpy": ("x = torch.ones(3, requires_grad=True)", "v = x.numpy()", 1),
    "inference": ("with torch.inference_mode():\n    x = torch.ones(3)\n"
                  "w = torch.ones(3, requires_grad=True)", "v = (w * x).sum()", 1),
    "deep copy": ("import copy\nx = torch.ones(2, requires_grad=True) * 2",
                  "v = copy.deepcopy(x)", 1),
    "flag": ("x = torch.ones(2, requires_grad=True) * 2", "x.requires_grad = False", 1),
    "gradient's shape": ("y = torch.ones(2, requires_grad=True) * 2", "y.backward(torch.ones(3))",
                         1),
    "gradient not kept": ("x = torch.ones(2, requires_grad=True)\ny = x * 2\n# here\n"
                          "y.sum().backward()", "v = y.grad + 1", 1),
    "gradient not wanted": ("x, w = torch.ones(2), torch.ones(2, requires_grad=True)\n# here\n"
                            "(x * w).sum().backward()", "v = x.grad.sum()", 1),
    "gradient not yet": ("x = torch.ones(2, requires_grad=True)", "v = x.grad.sum()", 0),
    # ---- optimizers, checkpoints, Python
    "nothing to optimize": ("net = nn.Linear(1, 1)", "o = torch.optim.SGD([], lr=0.1)", 1),
    "a tensor to optimize": ("x = torch.ones(2, requires_grad=True)",
                             "o = torch.optim.SGD(x, lr=0.1)", 1),
    "a result to optimize": ("x = torch.ones(2, requires_grad=True) * 2",
                             "o = torch.optim.SGD([x], lr=0.1)", 1),
    "wrapped checkpoint": ("m = nn.Linear(1, 1)\nkept = nn.Sequential(m).state_dict()",
                           "m.load_state_dict(kept)", 1),
    "part of a model": ("m = nn.Linear(1, 1)\nkept = m.state_dict()\nm = nn.Sequential(m)",
                        "m.load_state_dict(kept)", 1),
    "other sizes": ("m, kept = nn.Linear(1, 1), nn.Linear(2, 1).state_dict()",
                    "m.load_state_dict(kept)", 0),
    "sum of a list": ("", "v = torch.sum([1, 2, 3])", 1),
    "sum of an array": ("a = np.ones(3)", "v = torch.sum(a)", 1),
    "times a list": ("a = torch.ones(2, 2)", "v = a @ [1, 2]", 1),
    "ragged": ("", "v = torch.tensor([[1, 2], [3]])", 0),
    "size of a tensor": ("n = torch.ones(3)", "v = torch.zeros(n)", 1),
    "backwards": ("a = np.ones((2, 2))", "v = torch.from_numpy(a[::-1])", 1),
    "length": ("x = torch.tensor(3.0)", "v = len(x)", 1),
    "loop": ("x = torch.tensor(3.0)", "v = list(x)", 1),
    "item": ("x = torch.ones(3)", "v = x.item()", 2),
    "truth": ("x = torch.ones(3)", "v = 1 if x > 0 else 2", 2),
    # ---- Python's own
    "parameters, not called": ("m = nn.Linear(2, 2)", "v = list(m.parameters)", 1),
    "parameters for an optimizer": ("m = nn.Linear(2, 2)",
                                    "o = torch.optim.SGD(m.parameters, lr=0.1)", 1),
    "size, not called": ("x = torch.ones(2, 3)", "n = x.size[0]", 1),
    "shape, called": ("x = torch.ones(2, 3)", "n = x.shape()", 1),
    "T, called": ("x = torch.ones(2, 3)", "n = x.T()", 1),
    "requires_grad, called": ("x = torch.ones(2, 3)", "n = x.requires_grad(True)", 1),
    "text": ("x = torch.ones(2)", "v = 'sum: ' + x.sum()", 1),
    "two results": ("x = torch.ones(2, 3)\nm = x.max(1)", "v = m + 1", 1),
    "mean of a list": ("x = [torch.ones(2), torch.ones(2)]", "v = x.mean()", 1),
    "mean of numbers": ("x = [1.0, 2.0]", "v = x.mean()", 1),
    "and": ("x = torch.ones(3)", "v = x > 0 and x < 2", 1),
    "or": ("x = torch.ones(3)", "v = (x > 0) or (x < 2)", 1),
    "not": ("x = torch.ones(3) > 0", "v = not x", 1),
    "precedence": ("x = torch.ones(3)", "v = x > 0 & x < 2", 0),
    "minus a mask": ("x = torch.ones(3) > 0", "v = -x", 1),
    "a mask less a mask": ("x = torch.ones(3) > 0", "v = x - x", 1),
    "integers divided": ("x = torch.arange(3)", "x /= 2", 1),
    "cat of two": ("a = b = torch.ones(2)", "v = torch.cat(a, b)", 1),
    "cat of three": ("a = b = c = torch.ones(2)", "v = torch.cat(a, b, c)", 1),
    "a number and a matrix": ("a, b = torch.tensor(2.0), torch.ones(2, 2)", "v = a @ b", 1),
    "two unknown sizes": ("x = torch.ones(2, 3)", "v = x.reshape(-1, -1)", 0),
    "dtype by name": ("", "v = torch.ones(2, dtype='float32')", 1),
    "no such device": ("", "v = torch.ones(2, device='gpu')", 1),
    "an array for a layer": ("m = nn.Linear(2, 2)", "v = m(np.ones((1, 2)))", 1),
    "weights": ("m = nn.Linear(2, 2)", "m.weight = torch.ones(2, 2)", 0),
    "bfloat16": ("x = torch.ones(3, dtype=torch.bfloat16)", "v = x.numpy()", 1),
    # ---- where it stands
    "over lines": ("a = w = torch.ones(3, 2)", "v = torch.relu(\n    a\n    @ w\n)", 2),
    "in a chain": ("a = torch.ones(3, 2)", "v = a.t().relu().view(6).sum()", 2),
    "in a comprehension": ("xs, w = [torch.ones(3, 2)], torch.ones(3)",
                           "v = [x + w for x in xs]", 1),
    "in a lambda": ("w = torch.ones(3)", "v = (lambda x: x + w)(torch.ones(3, 2))", 1),
    "in a text": ("w = torch.ones(3)", "v = f'{w + torch.ones(3, 2)}'", 1),
}  # fmt: skip
WITHOUT_RULE = {
    "attribute": ("x = torch.ones(2)", "v = x.sahpe", 1),
    "function": ("", "v = torch.zeroes(2)", 1),
    "keyword": ("x = torch.ones(2)", "v = x.sum(dims=0)", 1),
    "name": ("features = torch.ones(2)", "v = feature * 2", 1),
}


def run(path: Path, code: str) -> BaseException | None:
    path.write_text(code)
    try:
        exec(compile(code, str(path), "exec"), {"__name__": "mistake"})
    except Exception as error:
        return error
    return None


def mended(before: str, line: str, found: Any, fix: str) -> list[str]:
    """The program with a fix: instead of the line, before it, or where the program says."""
    if len(found.lines) > 1:
        text = "\n".join(found.lines)
        instead = line.replace(text, textwrap.indent(fix, found.lines[0][: found.start]))
    else:
        instead = fix
    programs = [f"{before}\n{instead}\n", f"{before}\n{fix}\n{line}\n"]
    if "# here" in before:
        programs.append(f"{before.replace('# here', fix)}\n{line}\n")
    if found.lines and found.lines[0] in before:  # in a function of the program's
        deep = found.lines[0][: found.start]
        programs.append(f"{before.replace(found.lines[0], f'{deep}{fix}{chr(10)}{found.lines[0]}')}"
                        f"\n{line}\n")  # fmt: skip
    return [HEAD + program for program in programs]


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize("name", [*MISTAKES, *WITHOUT_RULE])
def test_every_fix_mends_it(name: str, tmp_path: Path) -> None:
    before, line, count = (MISTAKES | WITHOUT_RULE)[name]
    error = run(tmp_path / "mistake.py", f"{HEAD}{before}\n{line}\n")
    assert error is not None
    found = torch.explain(error)
    assert bool(found.rule) == (name in MISTAKES)
    assert len(found.fixes) == count, found.fixes
    spanish = torch.explain(error, lang="es")
    assert spanish.fixes == found.fixes
    assert (spanish.rule != found.rule) == bool(found.rule)
    for k, (fix, _) in enumerate(found.fixes):
        programs = mended(before, line, found, fix)
        assert programs[0] != f"{HEAD}{before}\n{line}\n"
        results = [run(tmp_path / f"{k}_{n}.py", text) for n, text in enumerate(programs)]
        assert None in results, (fix, results[0])
