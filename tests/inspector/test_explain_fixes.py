"""The mistakes that beginners make: each has its rule, and each fix that is shown does mend it."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import antorcha as torch

HEAD = "import numpy as np\nimport antorcha as torch\nfrom antorcha import nn\nF = nn.functional\n"

DATA = "from antorcha.utils.data import DataLoader, TensorDataset"

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
    "more rows of a table": ("t, i = nn.Embedding(10, 3), torch.tensor([10, 12])", "v = t(i)", 1),
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
    "a class more": ("s, t = torch.ones(3, 3), torch.tensor([0, 1, 3])",
                     "v = F.cross_entropy(s, t)", 0),
    "many classes from 1": ("s, t = torch.zeros(30000, 10), torch.arange(30000) % 10 + 1",
                            "v = F.cross_entropy(s, t)", 1),
    "a class more of many": ("s, t = torch.zeros(30000, 10), torch.arange(30000) % 11",
                             "v = F.cross_entropy(s, t)", 0),
    "classes and ignored ones": ("s, t = torch.ones(3, 2), torch.tensor([1, 2, -100])",
                                 "v = F.cross_entropy(s, t)", 0),
    "a column of probabilities": ("s, t = torch.rand(3, 1), torch.rand(3)",
                                  "v = F.binary_cross_entropy(s, t)", 2),
    "a column in a layer": ("s, t, loss = torch.rand(3), torch.rand(3, 1), nn.BCELoss()",
                            "v = loss(s, t)", 2),
    "a column of scores and integers": ("s, t = torch.rand(3, 1), torch.tensor([0, 1, 1])",
                                        "v = F.binary_cross_entropy_with_logits(s, t)", 2),
    "scores of classes": ("s, t = torch.rand(3, 2), torch.tensor([0, 1, 1])",
                          "v = F.binary_cross_entropy_with_logits(s, t)", 1),
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
    "one-hot of fewer": ("t = torch.tensor([5, 1, 9])", "v = F.one_hot(t, num_classes=3)", 1),
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
    "backward twice": ("x = torch.ones(2, requires_grad=True)\ny = (x * x).sum()\ny.backward()",
                       "y.backward()", 1),
    "backward in a loop": ("x = torch.ones(2, requires_grad=True)\ny = (x * x).sum()",
                           "for _ in range(2): y.backward()", 1),
    "overwritten": ("x = torch.ones(2, requires_grad=True)\ny = x.exp()\ny += 1 # write",
                    "y.sum().backward()", 1),
    "overwritten by a method": ("x = torch.ones(2, requires_grad=True)\ny = x.exp()\n"
                                "y.mul_(2) # write", "y.sum().backward()", 1),
    "overwritten twice": ("x = torch.ones(2, requires_grad=True)\ny = x.exp()\ny += 1\ny -= 1",
                          "y.sum().backward()", 0),
    "a loss without a graph": ("x = torch.ones(3)\nloss = x.sum()", "loss.backward()", 0),
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
    "part of other names": ("m = nn.Sequential(nn.Linear(1, 1))\n"
                            "kept = {'a.0.weight': m[0].weight, 'a.0.scale': m[0].bias}",
                            "m.load_state_dict(kept)", 0),
    "other sizes": ("m, kept = nn.Linear(1, 1), nn.Linear(2, 1).state_dict()",
                    "m.load_state_dict(kept)", 0),
    "sum of a list": ("", "v = torch.sum([1, 2, 3])", 1),
    "sum of an array": ("a = np.ones(3)", "v = torch.sum(a)", 1),
    "times a list": ("a = torch.ones(2, 2)", "v = a @ [1, 2]", 1),
    "a model to optimize": ("m = nn.Linear(2, 2)", "o = torch.optim.SGD(m, lr=0.1)", 1),
    "a model by name": ("m = nn.Linear(2, 2)", "o = torch.optim.Adam(lr=0.1, params=m)", 1),
    "two models to optimize": ("a, b = nn.Linear(2, 2), nn.Linear(2, 2)",
                               "o = torch.optim.AdamW([a, b])", 1),
    # ---- data, memory, NumPy
    "rows of a dataset": (f"{DATA}\nx, y = torch.ones(5, 2), torch.ones(4)",
                          "d = TensorDataset(x, y)", 0),
    "a dataset of columns": (f"{DATA}\nx, y = torch.ones(5, 2), torch.ones(3, 5)",
                             "d = TensorDataset(x, y)", 1),
    "unequal samples": (f"{DATA}\nd = [torch.ones(3), torch.ones(4)]",
                        "for x in DataLoader(d, batch_size=2): pass", 2),
    "unequal pairs": (f"{DATA}\nd = [(torch.ones(3), 0), (torch.ones(4), 1)]\n"
                      "b = DataLoader(d, batch_size=2)", "for x, y in b: len(x[0]), y[1]", 1),
    "unequal images": (f"{DATA}\nd = [torch.ones(1, 3), torch.ones(1, 4)]\n"
                       "b = DataLoader(d, 2)", "v = next(iter(b))", 1),
    "unequal lists": (f"{DATA}\nb = DataLoader([[1, 2], [1]], 2)", "v = list(b)", 1),
    "too large": ("", "v = torch.empty(10**13)", 0),
    "an array too large": ("", "v = np.empty((10**7, 10**7))", 0),
    "arrays": ("a, b = np.ones((3, 2)), np.ones(3)", "v = a + b", 1),
    "computed arrays": ("a, b = np.ones((3, 2)), np.ones(3)", "v = (a + 1) * (b + 1)", 1),
    "arrays in place": ("a, b = np.ones(3), np.ones((3, 2))", "a += b", 0),
    "write to an array": ("a, b = np.ones((2, 3)), np.ones(2)", "a[0] = b", 0),
    "product of arrays": ("a, b = np.ones((3, 2)), np.ones((3, 4))", "v = a @ b", 1),
    "dot of arrays": ("a, b = np.ones((3, 2)), np.ones((3, 4))", "v = np.dot(a, b)", 1),
    "an array reshaped": ("a = np.ones((2, 3))", "v = a.reshape(4, 2)", 1),
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
    programs.append(f"{before.replace(line, fix)}\n{line}\n")  # the same line, earlier
    rows = [fix if row.endswith("# write") else row for row in before.splitlines()]
    programs.append("\n".join([*rows, line, ""]))
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


# ------------------------------------------------------------------------------ varied operands
# The same mistakes with operands by chance: what is proposed for one shape may fail for another.
# Each gives what comes before and the line that may fail; where that holds, nothing is said.
Draw = random.Random


def shape(r: Draw, least: int = 1, most: int = 3, top: int = 4) -> tuple[int, ...]:
    return tuple([r.randint(1, top) for _ in range(r.randint(least, most))])


def ones(r: Draw, *dims: int) -> str:
    return f"torch.rand({dims or shape(r)})"


def dtype(r: Draw) -> str:
    return "torch." + r.choice(["float32", "float64", "float16", "bfloat16", "int64", "int32",
                                "uint8", "bool", "complex64"])  # fmt: skip


def labels(r: Draw, count: int, low: int = -1, high: int = 6) -> str:
    return f"torch.tensor({[r.randint(low, high) for _ in range(count)]})"


def of_two(line: str, least: int = 1, most: int = 3) -> Callable[[Draw], tuple[str, str]]:
    return lambda r: (
        f"a, b = {ones(r, *shape(r, least, most))}, {ones(r, *shape(r, least, most))}", line
    )  # fmt: skip


def of_dtypes(line: str) -> Callable[[Draw], tuple[str, str]]:
    def made(r: Draw) -> tuple[str, str]:
        size = r.randint(1, 3)
        return (f"a = torch.ones({size}, {r.choice([size, 2])}, dtype={dtype(r)})\n"
                f"b = torch.ones({size}, {size}, dtype={dtype(r)})", line)  # fmt: skip

    return made


def classes(line: str, low: int = -1) -> Callable[[Draw], tuple[str, str]]:
    def made(r: Draw) -> tuple[str, str]:
        rows, count = r.randint(1, 4), r.randint(1, 5)
        low_, high = r.choice([(0, count), (1, count), (0, count + 2), (low, count - 1)])
        given = rows if r.random() < 0.8 else rows + 1
        return (f"s, t = torch.randn({rows}, {count}), {labels(r, given, low_, max(high, low_))}",
                line)  # fmt: skip

    return made


def images(r: Draw) -> tuple[str, str]:
    dims = r.choice([(2, 8, 8, 3), (2, 3, 8, 8), (8, 8, 3), (2, 1, 8, 8), (8, 8), (1, 4, 2, 3),
                     (3, 3, 8, 3), (3, 3, 2, 2)])  # fmt: skip
    kernel, groups = r.choice([1, 3, 5]), r.choice([1, 1, 3])
    return (f"x = torch.rand({dims})\n"
            f"conv = nn.Conv2d(3, 6, {kernel}, groups={groups}, padding={r.randint(0, 1)})",
            "v = conv(x)")  # fmt: skip


def views(r: Draw) -> tuple[str, str]:
    new = [*shape(r, 1, 3, 6)]
    if r.random() < 0.3:
        new[r.randrange(len(new))] = -1
    turn = r.choice(["", ".t()", "[:, ::2]", ".expand(3, 4)"])
    what = "torch.rand(1, 4)" if "expand" in turn else f"torch.rand({r.randint(1, 6)}, 4)"
    return f"x = {what}{turn}", f"v = x.{r.choice(['view', 'reshape'])}{tuple(new)}"


def joined(r: Draw) -> tuple[str, str]:
    parts = [ones(r, *shape(r, 1, 2, 3)) for _ in range(r.randint(2, 3))]
    names = "abc"[: len(parts)]
    dim = r.choice(["", ", 0", ", 1", ", dim=1", ", dim=-1"])
    text = f"[{', '.join(names)}]"
    if r.random() < 0.3:
        text = ", ".join(names)
    return (
        f"{', '.join(names)}, = {', '.join(parts)}",
        f"v = torch.{r.choice(['cat', 'stack'])}({text}{dim})",
    )


def layers(r: Draw) -> tuple[str, str]:
    size = r.randint(1, 4)
    made = r.choice([f"nn.Linear({size}, 2)", f"nn.LayerNorm({size})", f"nn.BatchNorm1d({size})",
                     f"nn.BatchNorm2d({size})",
                     f"nn.Sequential(nn.Flatten(), nn.Linear({size}, 3))",
                     f"nn.Bilinear({size}, 2, 3)"])  # fmt: skip
    cast = r.choice(["", "", ".double()", ".long()", ".numpy()", ".tolist()"])
    return f"x, m = {ones(r, *shape(r, 1, 4))}{cast}, {made}", "v = m(x)"


def tables(r: Draw) -> tuple[str, str]:
    kind = r.choice(["", ".float()", ".int()"])
    given = labels(r, 3, r.choice([0, 0, -2]), 5)
    return f"m, i = nn.Embedding({r.randint(1, 4)}, 2), {given}{kind}", "v = m(i)"


def picked(r: Draw) -> tuple[str, str]:
    x = f"x = {ones(r, *shape(r))}"
    given = r.choice(
        [labels(r, 2), f"{labels(r, 2, 0, 1)}.float()", f"{labels(r, 3, 0, 1)}.bool()"]
    )
    index = r.choice(["7", "0, 5", "0, 0, 1, 0", "-9", "i", ":, i", "i, 0", "..., 9"])
    return f"{x}\ni = {given}", f"v = x[{index}]"


def gathered(r: Draw) -> tuple[str, str]:
    line = r.choice(["v = x.gather(1, i)", "v = torch.gather(x, 0, i)", "v = x.index_select(1, i)",
                     "v = x.scatter(1, i, 1.0)", "v = torch.take(x, i)"])  # fmt: skip
    given = labels(r, 4, 0, 3) + r.choice(["", ".view(2, 2)", ".float()", ".view(4, 1)"])
    return f"x, i = {ones(r, *shape(r, 1, 3))}, {given}", line


VARIED: dict[str, Callable[[Draw], tuple[str, str]]] = {
    "matmul": of_two("v = a @ b"),
    "mm": of_two("v = torch.mm(a, b)", 1, 2),
    "bmm": of_two("v = torch.bmm(a, b)", 2, 3),
    "dot": of_two("v = torch.dot(a, b)", 1, 2),
    "addmm": of_two("v = torch.addmm(torch.zeros(2), a, b)", 1, 2),
    "add": of_two("v = a + b"),
    "in place": of_two("a -= b"),
    "where": of_two("v = torch.where(a > 0.5, a, b)"),
    "write": of_two("a[0] = b"),
    "masked": of_two("v = a[b > 0.5]"),
    "mse": of_two("v = F.mse_loss(a, b)"),
    "bce": of_two("v = F.binary_cross_entropy(a, b)"),
    "bce with logits": of_two("v = F.binary_cross_entropy_with_logits(a, b)"),
    "bce in a layer": of_two("v = nn.BCELoss()(a, b)"),
    "expand": of_two("v = a.expand(b.shape)"),
    "product of dtypes": of_dtypes("v = a @ b"),
    "linear of dtypes": of_dtypes("v = F.linear(a, b)"),
    "mean of dtypes": of_dtypes("v = a.mean()"),
    "bits of dtypes": of_dtypes("v = a & b"),
    "minus of dtypes": of_dtypes("v = a - b"),
    "division in place": of_dtypes("a /= b"),
    "mask of dtypes": of_dtypes("v = a.masked_fill(b, 0)"),
    "softmax of dtypes": of_dtypes("v = a.softmax(1)"),
    "grad of dtypes": of_dtypes("v = a.requires_grad_()"),
    "cross entropy": classes("v = F.cross_entropy(s, t)"),
    "cross entropy in a layer": classes("v = nn.CrossEntropyLoss()(s, t)"),
    "nll": classes("v = F.nll_loss(s.log_softmax(1), t)"),
    "cross entropy of floats": classes("v = F.cross_entropy(s, t.float())"),
    "cross entropy of a column": classes("v = F.cross_entropy(s, t[:, None])"),
    "cross entropy of one-hot": classes("v = F.cross_entropy(s, torch.eye(4)[t % 4].long())"),
    "scores": classes("v = F.binary_cross_entropy(s[:, 0], t.float())"),
    "one-hot": classes("v = F.one_hot(t, num_classes=3)"),
    "images": images,
    "views": views,
    "joined": joined,
    "layers": layers,
    "tables": tables,
    "picked": picked,
    "gathered": gathered,
    "dim": lambda r: (f"x = {ones(r)}", f"v = x.sum({r.randint(-5, 4)})"),
    "permute": lambda r: (f"x = {ones(r)}", f"v = x.permute({r.choice(['0, 1', '1, 2', '0, 2', '1, 0'])})"),  # noqa: E501
    "square": lambda r: (f"x = {ones(r)}", "v = torch.linalg.inv(x)"),
    "item": lambda r: (f"x = {ones(r)}", r.choice(["v = x.item()", "v = float(x)", "v = bool(x)"])),
    "backward": lambda r: (f"x = {ones(r)}.requires_grad_()\ny = x * 2",
                           r.choice(["y.backward()", "y.backward(torch.ones(2))"])),
    "arrays": lambda r: (f"a, b = np.ones({shape(r)}), np.ones({shape(r)})",
                         r.choice(["v = a + b", "v = a * b", "a += b", "v = a @ b"])),
    "pairs": lambda r: (f"from antorcha.utils.data import TensorDataset\n"
                        f"x, y = {ones(r, *shape(r, 1, 2))}, {ones(r, *shape(r, 1, 2))}",
                        "d = TensorDataset(x, y)"),
    "a list": lambda r: (f"a = {ones(r, 2, 2)}", r.choice(
        ["v = a @ [1, 2]", "v = a + [1, 2, 3]", "v = a * [[1, 2]]", "v = torch.cat(a, a)"])),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", VARIED)
def test_no_fix_fails_whatever_the_operands(name: str, tmp_path: Path) -> None:
    r = random.Random(name)
    for turn in range(25):
        torch.manual_seed(turn)
        before, line = VARIED[name](r)
        error = run(tmp_path / f"{turn}.py", f"{HEAD}torch.manual_seed({turn})\n{before}\n{line}\n")
        if error is None:
            continue
        found = torch.explain(error)
        assert torch.explain(error, lang="es").fixes == found.fixes
        for k, (fix, gives) in enumerate(found.fixes):
            programs = mended(f"torch.manual_seed({turn})\n{before}", line, found, fix)
            results = [run(tmp_path / f"{turn}_{k}_{n}.py", text)
                       for n, text in enumerate(programs)]  # fmt: skip
            assert None in results, (before, line, str(error), fix, gives, results)
