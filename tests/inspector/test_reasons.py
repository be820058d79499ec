"""Errors carry their facts, and ``antorcha.explain`` looks the reason up: every reason that there
is is raised by a real call here, and no rule reads the text of one of antorcha's own errors."""

from __future__ import annotations

import ast
import copy
import inspect
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha import errors
from antorcha.inspector.explain import case as explain_case
from antorcha.inspector.explain import layers, memory, rules, shapes, tensors
from antorcha.inspector.explain.words import WORDS
from antorcha.utils.data import DataLoader, TensorDataset

nn: Any = torch.nn
F: Any = torch.nn.functional
SOURCE = Path(errors.__file__).parent

A, B, V = torch.ones(3, 2), torch.ones(3, 2), torch.ones(3)
INTS, BOOLS = torch.tensor([1, 2, 3]), torch.tensor([True, False, True])
LEAF = torch.ones(3, requires_grad=True)


class NoSuper(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        self.layer = nn.Linear(1, 1)


def inference() -> Any:
    with torch.inference_mode():
        made = torch.ones(3)
    return (LEAF * made).sum()


def overwritten() -> None:
    y = LEAF.exp()
    y += 1
    y.sum().backward()


def twice() -> None:
    y = (LEAF * LEAF).sum()
    y.backward()
    y.backward()


def sobol_in_odd_numbers() -> Any:
    engine = torch.quasirandom.SobolEngine(2)
    engine.draw(3)
    return engine.draw_base2(1)


def assign(owner: Any, name: str, value: Any) -> None:
    setattr(owner, name, value)


def write(x: Any) -> None:
    x /= 2


CALLS: dict[str, Callable[[], Any]] = {
    # ---- shapes
    "matmul": lambda: A @ B,
    "vectors": lambda: torch.dot(torch.ones(2), V),
    "two dims": lambda: torch.mm(V, B),
    "scale": lambda: torch.tensor(2.0) @ A,
    "broadcast": lambda: A + V,
    "expand": lambda: A.expand(4, 2),
    "count": lambda: A.reshape(4, 2),
    "one -1": lambda: A.reshape(-1, -1),
    "contiguous": lambda: A.T.view(6),
    "cat": lambda: torch.cat([A, torch.ones(3, 4)]),
    "same dims": lambda: torch.cat([A, V]),
    "stack": lambda: torch.stack([A, V]),
    "square": lambda: torch.linalg.inv(A),
    "permute": lambda: torch.ones(2, 3, 4).permute(0, 2),
    "letter": lambda: torch.einsum("ij,jk->ik", A, B),
    "dim": lambda: A.sum(3),
    "index": lambda: A[0, 5],
    "too many": lambda: A[0, 0, 0],
    "index dims": lambda: A.gather(1, INTS),
    "mask shape": lambda: A[BOOLS[:2]],
    # ---- layers, losses
    "linear": lambda: nn.Linear(3, 1)(A),
    "channels": lambda: nn.Conv2d(3, 4, 3)(torch.ones(1, 1, 8, 8)),
    "conv dims": lambda: nn.Conv2d(1, 4, 3)(torch.ones(8, 8)),
    "window": lambda: nn.Conv2d(1, 1, 5)(torch.ones(1, 1, 2, 2)),
    "last sizes": lambda: nn.LayerNorm(4)(A),
    "one value": lambda: nn.BatchNorm1d(2)(A[:1]),
    "norm dims": lambda: nn.BatchNorm2d(2)(A),
    "batch": lambda: F.cross_entropy(A, INTS[:2]),
    "class dtype": lambda: F.cross_entropy(A, V),
    "class shape": lambda: F.cross_entropy(A, INTS[:, None]),
    "class": lambda: F.cross_entropy(A, INTS),
    "one-hot class": lambda: F.one_hot(INTS, num_classes=3),
    "same size": lambda: F.binary_cross_entropy(A, V),
    "probabilities": lambda: F.binary_cross_entropy(V * 2, V),
    # ---- optimizers, checkpoints, data, modules
    "no parameters": lambda: torch.optim.SGD([], lr=0.1),
    "parameters of a module": lambda: torch.optim.SGD([nn.Linear(1, 1)], lr=0.1),
    "list of parameters": lambda: torch.optim.SGD(LEAF, lr=0.1),
    "computed parameter": lambda: torch.optim.SGD([LEAF * 2], lr=0.1),
    "checkpoint": lambda: nn.Linear(1, 1).load_state_dict({}),
    "dataset": lambda: TensorDataset(A, torch.ones(4)),
    "samples": lambda: list(DataLoader([[1, 2], [1]], 2)),  # type: ignore[arg-type]
    "super": NoSuper,
    "forward": lambda: nn.Module()(A),
    "parameter wanted": lambda: assign(nn.Linear(1, 1), "weight", A),
    # ---- devices, dtypes
    "device": lambda: A + torch.ones(3, 2, device="meta"),
    "no device": lambda: torch.ones(2, device="cuda"),
    "dtype": lambda: A @ B.T.double(),
    "index dtype": lambda: A[V],
    "integer index": lambda: A.index_select(0, V),
    "needs float": lambda: INTS.mean(),
    "needs mask": lambda: V.masked_fill(V, 0),
    "int grad": lambda: torch.tensor([1], requires_grad=True),
    "keeps dtype": lambda: write(INTS),
    "bits": lambda: V & V,
    "bool numbers": lambda: -BOOLS,
    "dtype object": lambda: torch.ones(2, dtype="float32"),
    # ---- conversions
    "item": lambda: V.item(),
    "truth": lambda: bool(V > 0),
    "int wanted": lambda: torch.zeros(V),
    "too many arguments": lambda: torch.cat(V, V, V),
    "no tensor wanted": lambda: torch.cat(V, V),
    "tensor wanted": lambda: torch.sum([1, 2]),
    "backwards": lambda: torch.from_numpy(np.ones(3)[::-1]),
    "no length": lambda: len(torch.tensor(1)),
    "ragged": lambda: torch.tensor([[1, 2], [3]]),
    "no array": lambda: V.bfloat16().numpy(),
    "memory": lambda: torch.empty(1 << 50),
    "dimension out of range": lambda: torch.quasirandom.SobolEngine(0),
    "not a power of 2": sobol_in_odd_numbers,
    # ---- autograd
    "scalar": lambda: (LEAF * 2).backward(),
    "second": twice,
    "leaf": lambda: LEAF.add_(1),
    "overwritten": overwritten,
    "no graph": lambda: V.sum().backward(),
    "numpy": lambda: LEAF.numpy(),
    "inference": inference,
    "deep copy": lambda: copy.deepcopy(LEAF * 2),
    "computed flag": lambda: (LEAF * 2).requires_grad_(False),
    "gradient shape": lambda: (LEAF * 2).backward(torch.ones(2)),
}
ONLY_FACTS = {"unexpected keyword"}  # explained by its names alone, as a NameError is


def raised(call: Callable[[], Any]) -> BaseException:
    with pytest.raises(Exception) as caught:
        call()
    return caught.value


# ------------------------------------------------------------------------------- every reason
@pytest.mark.parametrize("reason", CALLS)
def test_a_reason_is_raised_and_reaches_its_rule(
    reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached: list[Any] = []
    rule = explain_case.RULES.get(reason, rules.sentence)

    def noted(case: explain_case.Case) -> explain_case.Finding | None:
        found = rule(case)
        reached.append(found)
        return found

    if reason in explain_case.RULES:
        monkeypatch.setitem(explain_case.RULES, reason, noted)
    else:
        monkeypatch.setattr(rules, "sentence", noted)
    error = raised(CALLS[reason])
    assert errors.facts_of(error).reason == reason
    found = torch.explain(error)
    assert len(reached) == 1
    assert reached[0] is not None
    assert found.rule == reached[0].rule != ""
    assert "{" not in str(error)


def test_every_reason_that_is_known_is_tried() -> None:
    known = {*explain_case.RULES} | (written() & WORDS.keys())
    assert known == CALLS.keys()


def test_every_reason_of_the_source_is_known() -> None:
    assert written() == CALLS.keys() | ONLY_FACTS


# --------------------------------------------------------------------------- what the source says
def statements() -> Iterator[tuple[Path, ast.Call, ast.expr]]:
    """Calls in the source that give an error a reason."""
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "reason=" not in text and "Facts(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call):
                continue
            for word in node.keywords:
                if word.arg == "reason":
                    yield path, node, word.value
            if isinstance(node.func, ast.Name) and node.func.id == "Facts" and node.args:
                yield path, node, node.args[0]


def written() -> set[str]:
    """The reasons that the source gives, docstrings left out."""
    return {
        each.value
        for _, _, reason in statements()
        for each in ast.walk(reason)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }


def test_a_text_with_a_reason_is_a_template() -> None:
    """One that was filled in already would be filled in again, with braces of the program's."""
    for path, call, _ in statements():
        for text in ast.walk(call.args[0]) if call.args else ():
            assert not isinstance(text, ast.JoinedStr), f"{path}:{call.lineno}"


@pytest.mark.parametrize(
    "module", [explain_case, layers, memory, rules, shapes,
               tensors],
)  # fmt: skip
def test_no_rule_reads_a_message(module: Any) -> None:
    tree = ast.parse(inspect.getsource(module))
    for node in ast.walk(tree):
        assert not (isinstance(node, ast.Attribute) and node.attr == "message"), node.lineno
        if isinstance(node, ast.Import):
            assert "re" not in [name.name for name in node.names]


@pytest.mark.parametrize("reason", ["matmul", "broadcast", "index", "truth", "dim"])
def test_a_text_of_ours_alone_has_no_rule(reason: str) -> None:
    text = str(raised(CALLS[reason]))

    def fails() -> None:
        raise errors.ShapeError(text)

    assert torch.explain(raised(fails)).rule == ""


# ------------------------------------------------------------------------------------ the facts
def test_facts() -> None:
    error: Any = raised(lambda: A @ B)
    assert isinstance(error, errors.AntorchaError)
    assert (error.reason, error.op, error.fix) == ("matmul", "matmul", "a @ b.T")
    assert [operand.shape for operand in error.operands] == [(3, 2), (3, 2)]
    assert (error.facts["one"], error.facts["other"]) == (2, 3)
    error = raised(lambda: A @ B.double())
    assert [operand.dtype for operand in error.operands] == [torch.float32, torch.float64]
    assert str(error.operands[0]) == "(3, 2) float32 cpu"
    plain = errors.ShapeError("text {0}", 3)
    assert (str(plain), plain.args) == ("('text {0}', 3)", ("text {0}", 3))
    assert (plain.reason, plain.op, plain.operands, plain.fix) == ("", "", (), "")
    assert dict(plain.facts) == {}
    assert errors.facts_of(KeyError("x")).reason == ""


@pytest.mark.parametrize("reason", CALLS)
def test_facts_are_copied_and_pickled(reason: str) -> None:
    error: Any = raised(CALLS[reason])
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert (type(other), str(other)) == (type(error), str(error))
        assert errors.facts_of(other).reason == reason
        assert errors.facts_of(other).more.keys() == errors.facts_of(error).more.keys()


def test_an_error_of_a_worker_brings_its_facts() -> None:
    loader: Any = DataLoader([torch.ones(3), torch.ones(4)], 2, num_workers=1)  # type: ignore[arg-type]
    error = raised(lambda: list(loader))
    assert errors.facts_of(error).more["first"] == [3]
    assert torch.explain(error).rule.startswith("A batch stacks its samples")


def test_a_reason_of_the_programs_own_is_not_ours() -> None:
    class Mine(Exception):
        reason = "matmul"
        _facts = errors.Facts("matmul")

    def fails() -> None:
        raise Mine

    assert torch.explain(raised(fails)).rule == ""


def test_an_error_keeps_no_operand() -> None:
    error: Any = raised(lambda: A @ B)
    held = [each for value in vars(error).values() for each in vars(value).values()]
    assert not any(isinstance(each, torch.Tensor) for each in held)
    assert all(type(operand) is errors.OperandFacts for operand in error.operands)
