"""``antorcha.explain``: what it says of antorcha's errors, and that nothing makes it fail."""

from __future__ import annotations

import gc
import linecache
import re
import subprocess
import sys
import textwrap
import traceback
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.inspector.explain import operands, rules, values
from antorcha.inspector.explain import site as explain_site
from antorcha.inspector.explain.case import Case

nn: Any = torch.nn
F: Any = torch.nn.functional


def explained(fails: Any, lang: str = "en") -> Any:
    try:
        fails()
    except BaseException as error:
        return torch.explain(error, lang=lang)
    raise AssertionError("it did not fail")


# ------------------------------------------------------------------------ the line and its part
def test_the_line_and_the_failing_part() -> None:
    a, b = torch.ones(3, 2), torch.ones(3, 2)

    def fails() -> None:
        c = (a + 1) + (a @ b)  # ñandú
        print(c)

    found = explained(fails)
    assert found.file == __file__
    assert found.function == "fails"
    assert found.lines[0].strip() == "c = (a + 1) + (a @ b)  # ñandú"
    assert found.lines[0][found.start : found.end] == found.expression == "a @ b"
    assert found.number == fails.__code__.co_firstlineno + 1


def test_columns_count_characters() -> None:
    a = torch.ones(2)
    found = explained(lambda: ("ñandú €", a @ torch.ones(3)))
    assert found.expression == "a @ torch.ones(3)"
    assert found.lines[0][found.start : found.end] == found.expression
    text = found.text.splitlines()
    at = next(k for k, line in enumerate(text) if "^" in line)
    assert text[at].index("^") == text[at - 1].index("a @ torch")


def test_a_part_over_several_lines() -> None:
    a = torch.ones(3, 2)

    def fails() -> Any:
        return torch.matmul(
            F.relu(a),
            a,
        )

    found = explained(fails)
    assert len(found.lines) == 4
    assert "a.T" in found.fix
    assert found.expression.startswith("torch.matmul(")


def test_the_innermost_line_of_the_program() -> None:
    def inner(x: Any) -> Any:
        return x @ x

    def outer() -> Any:
        return inner(torch.ones(3, 2))

    assert explained(outer).function == "inner"


def test_a_line_in_a_library_is_told_at_the_programs_own() -> None:
    found = explained(lambda: re.compile("("))
    assert found.function == "<lambda>"
    assert "re.compile" in found.expression


# --------------------------------------------------------------------------------------- shapes
A, B, C = torch.ones(3, 2), torch.ones(3, 2), torch.ones(4, 2)
V, W, P = torch.ones(10), torch.ones(10, 5), torch.ones(3)
IDS = torch.tensor([0.0, 1.0])


def cells(found: Any) -> list[tuple[str, list[str], set[int]]]:
    return [(shape.label, shape.cells, shape.marked) for shape in found.picture.shapes]


def test_matmul() -> None:
    found = explained(lambda: A @ B)
    assert cells(found) == [("A", ["3", "2"], {1}), ("B", ["3", "2"], {0})]
    assert (found.picture.joint, found.picture.verdict) == ("@", "2 ≠ 3")
    assert [code.partition("lambda: ")[2] for code, _ in found.fixes] == ["A @ B.T)", "A.T @ B)"]
    assert [shape for _, shape in found.fixes] == ["(3, 3)", "(2, 2)"]
    assert "last size of a must equal" in found.rule
    for code, shape in found.fixes:
        made = eval(code.partition("lambda: ")[2][:-1])
        assert str(tuple(made.shape)) == shape


def test_what_was_only_computed_has_its_shape_too() -> None:
    found = explained(lambda: F.relu(A) @ (B * 2 + 1))
    assert [label for label, _, _ in cells(found)] == ["F.relu(A)", "B * 2 + 1"]
    assert found.fix.endswith("F.relu(A) @ (B * 2 + 1).T)")


def test_a_vector_and_a_matrix() -> None:
    found = explained(lambda: torch.mm(V, W))
    assert found.rule == "mm takes matrices of 2 dims, and V has 1."
    assert "torch.mm(V.unsqueeze(0), W)" in found.fix
    assert found.fixes[0][1] == "(1, 5)"
    found = explained(lambda: W @ V)
    assert cells(found) == [("W", ["10", "5"], {1}), ("V", ["10"], {0})]
    assert {code.partition("lambda: ")[2] for code, _ in found.fixes} == {"W.T @ V)", "V @ W)"}


def test_batches_of_matrices() -> None:
    found = explained(lambda: torch.ones(2, 3, 4) @ torch.ones(5, 4, 2))
    assert [marked for _, _, marked in cells(found)] == [{0}, {0}]
    found = explained(lambda: torch.ones(2, 3, 4) @ torch.ones(2, 3, 4))
    assert ".mT" in found.fix


def test_broadcasting() -> None:
    found = explained(lambda: A * P)
    assert cells(found) == [("A", ["3", "2"], {1}), ("P", ["3"], {0})]
    assert found.fix.endswith("A * P[:, None])")
    assert found.fixes[0][1] == "(3, 2)"
    rows = [line for line in found.text.splitlines() if line.startswith(("  A ", "  P "))]
    assert rows[0].index("[ 2 ]") == rows[1].index("[ 3 ]")  # one below the other
    assert explained(lambda: A + C).fixes == []


def test_broadcasting_channels() -> None:
    image, mean = torch.ones(3, 8, 8), torch.ones(3)
    found = explained(lambda: image - mean)
    assert "image - mean[:, None, None]" in found.fix


def test_in_place_the_left_side_stays() -> None:
    def fails() -> None:
        x = torch.ones(3)
        x += torch.ones(2, 3)

    assert explained(fails).fixes == []


def test_assignment_to_a_part() -> None:
    def fails() -> None:
        x = torch.ones(2, 3)
        x[0] = torch.ones(4)

    found = explained(fails)
    assert found.expression == "x[0] = torch.ones(4)"
    assert cells(found) == [("x[0]", ["3"], {0}), ("torch.ones(4)", ["4"], {0})]


def test_view_of_what_is_not_contiguous() -> None:
    found = explained(lambda: A.T.view(-1))
    assert "has strides (1, 2)" in found.rule
    assert found.fix.endswith("A.T.reshape(-1))")
    assert found.fixes[1][0].endswith("A.T.contiguous().view(-1))")


@pytest.mark.parametrize("name", ["view", "reshape"])
def test_another_number_of_elements(name: str) -> None:
    found = explained(lambda: A.view(4, 2) if name == "view" else A.reshape(4, 2))
    assert "3 x 2 = 6, 4 x 2 = 8" in found.rule
    assert f"A.{name}(-1, 2)" in found.fix


def test_cat_and_stack() -> None:
    found = explained(lambda: torch.cat([A, torch.ones(3, 4)]))
    assert [marked for _, _, marked in cells(found)] == [{1}, {1}]
    assert "torch.cat([A, torch.ones(3, 4)], dim=1)" in found.fix
    found = explained(lambda: torch.cat([A, torch.ones(3, 4)], dim=0))
    assert "dim=1" in found.fix
    both = [A, C]
    found = explained(lambda: torch.stack(both))
    assert [label for label, _, _ in cells(found)] == ["both[0]", "both[1]"]
    assert "torch.cat(both)" in found.fix


def test_expand() -> None:
    found = explained(lambda: A.expand(4, 2))
    assert cells(found) == [("A", ["3", "2"], {0}), ("expand", ["4", "2"], {0})]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 2), nn.Linear(3, 1))

    def forward(self, x: Any) -> Any:
        return self.body(x)


def test_linear_layers() -> None:
    net = Net()
    found = explained(lambda: net(torch.ones(1, 4)))
    assert found.function == "forward"
    assert cells(found)[1] == ("self.body[1].weight", ["1", "3"], {1})
    assert found.fix == "self.body[1] = nn.Linear(2, 1)"
    assert "self.body[1]: Linear(in_features=3, out_features=1)" in found.notes[0]
    head = nn.Linear(784, 10)
    found = explained(lambda: head(torch.ones(8, 1, 28, 28)))
    assert ".flatten(1)" in found.fix


def test_channels() -> None:
    conv, image = nn.Conv2d(3, 8, 3), torch.ones(1, 28, 28, 3)
    found = explained(lambda: conv(image))
    assert found.fix.endswith("conv(image.permute(0, 3, 1, 2)))")
    assert "(N, C, H, W)" in found.rule
    gray = torch.ones(1, 1, 28, 28)
    assert explained(lambda: conv(gray)).fix == "conv = nn.Conv2d(1, 8, 3)"


def test_losses() -> None:
    found = explained(lambda: F.cross_entropy(torch.ones(2, 3), torch.tensor([0, 1, 2])))
    assert "2 rows, 3 targets" in found.rule
    found = explained(lambda: F.cross_entropy(torch.ones(2, 3), torch.tensor([0, 5])))
    assert "a target is 0 to 2" in found.rule


# -------------------------------------------------------------------- devices, dtypes, indices
def test_devices() -> None:
    m = torch.ones(3, 2, device="meta")
    found = explained(lambda: A + m)
    assert [shape.note for shape in found.picture.shapes] == ["float32 on cpu", "float32 on meta"]
    assert "nothing is moved by itself" in found.rule
    assert "A + torch.zeros_like(m, device=A.device)" in found.fix


def test_two_real_devices() -> None:
    r = torch.ones(3, 2, device="reference")
    found = explained(lambda: A + r)
    assert found.fix.endswith("A + r.to(A.device))")
    assert found.fixes[1][0].endswith("A.to(r.device) + r)")


def test_a_device_that_is_not_there() -> None:
    found = explained(lambda: torch.ones(2, device="cuda"))
    assert 'torch.ones(2, device="cpu")' in found.fix
    assert "torch.cuda.is_available()" in found.fixes[1][0]


def test_dtypes() -> None:
    found = explained(lambda: A @ C.T.double())
    assert "A @ C.T.double().float())" in found.fix
    assert explained(lambda: A @ W.double()).fixes == []  # the shapes do not fit either
    layer = nn.Linear(4, 2)
    ints = torch.ones(3, 4, dtype=torch.int64)
    found = explained(lambda: layer(ints))
    assert "layer(ints.float())" in found.fix


def test_dtype_of_an_index() -> None:
    found = explained(lambda: P[IDS])
    assert found.fix.endswith("P[IDS.long()])")
    assert [shape.loud for shape in found.picture.shapes] == [False, True]
    found = explained(lambda index=IDS[:, None]: A.gather(0, index))
    assert "index.long()" in found.fix


def test_integers_have_no_gradient() -> None:
    found = explained(lambda: torch.tensor([1, 2], requires_grad=True))
    assert "torch.tensor([1, 2], dtype=torch.float32, requires_grad=True)" in found.fix
    ints = torch.tensor([1])
    found = explained(lambda: ints.requires_grad_())
    assert "ints.float().requires_grad_()" in found.fix


def test_integers_bools_ranks_and_squares() -> None:
    ints, numbers = torch.tensor([1, 2]), torch.tensor([1.0, 0.0])
    found = explained(lambda: ints.mean())
    assert "ints.float().mean()" in found.fix
    assert "ints holds int64" in found.rule
    found = explained(lambda: torch.where(numbers, ints, ints))
    assert found.rule.startswith("A mask says")
    found = explained(lambda: numbers.masked_fill(numbers, 0))
    assert "numbers.masked_fill(numbers != 0, 0)" in found.fix
    found = explained(lambda: torch.cat([A, P[:2]]))
    assert "torch.cat([A, P[:2].unsqueeze(0)])" in found.fix
    found = explained(lambda: torch.cat([A, P], 1))
    assert "torch.cat([A, P.unsqueeze(1)], 1)" in found.fix
    assert explained(lambda: torch.cat([A, P])).fixes == []
    found = explained(lambda: torch.linalg.det(A))
    assert cells(found) == [("A", ["3", "2"], {0, 1})]
    assert explained(lambda: P.cumsum(1)).rule.startswith("A tensor of 1 dims")


def samples_of_errors() -> Any:
    """What each op's record promises to refuse."""
    from antorcha.ops.kinds.record import REGISTRY
    from tests.ops.records import Maker

    for op in {id(op): op for op in REGISTRY.values()}.values():
        for fn in op.error_functions:
            for args, kwargs, _, _ in fn(Maker(op.name)):
                yield op, args, kwargs


def test_no_rule_stumbles_over_the_errors_of_any_op() -> None:
    count = 0
    for op, args, kwargs in samples_of_errors():
        with pytest.raises(Exception) as caught:
            op(*args, **kwargs)
        error = caught.value
        count += 1
        site = explain_site.find(error)
        assert site is not None
        names = values.Names(site.frame)
        failed = operands.gather(site, names, "")
        rules.find(Case(error, str(error), site, names, failed, "en"))
    assert count > 100


def test_dims_and_indices() -> None:
    found = explained(lambda: A.sum(3))
    assert "A tensor of 2 dims has dims -2 to 1; 3 is none of them." in found.rule
    assert "A.sum(1)" in found.fix
    assert [shape.cells for shape in found.picture.shapes][1:] == [["0", "1"], ["-2", "-1"]]
    found = explained(lambda: A[0, 5])
    assert cells(found) == [("A", ["3", "2"], {1})]
    assert "A[0, -1]" in found.fix
    assert "3 indices for 2" in explained(lambda: A[0, 0, 0]).rule
    table = nn.Embedding(3, 2)
    found = explained(lambda: table(torch.tensor([7])))
    assert cells(found) == [("table.weight", ["3", "2"], {0})]


# ------------------------------------------------------------------------------------- autograd
def test_backward_of_more_than_a_number() -> None:
    x = torch.ones(2, requires_grad=True)

    def fails() -> None:
        loss = x * 2
        loss.backward()

    found = explained(fails)
    assert found.fix == "loss.sum().backward()"
    assert found.fixes[1][0] == "loss.mean().backward()"


def test_backward_twice() -> None:
    def fails() -> None:
        x = torch.ones(2, requires_grad=True)
        loss = (x * x).sum()
        loss.backward()
        loss.backward()

    assert explained(fails).fix == "loss.backward(retain_graph=True)"


def test_a_write_to_a_leaf() -> None:
    def fails() -> None:
        w = torch.ones(2, requires_grad=True)
        w -= 0.1 * w

    found = explained(fails)
    assert found.fix == "with torch.no_grad():\n    w -= 0.1 * w"
    assert found.fixes[1][0] == "w = w - 0.1 * w"


def test_no_graph_numpy_item_truth() -> None:
    x = torch.ones(3, requires_grad=True)
    found = explained(lambda: A.sum().backward())
    assert found.fix == "A.requires_grad_()"
    found = explained(lambda: x.numpy())
    assert "x.detach().numpy()" in found.fix
    found = explained(lambda: A.item())
    assert ["A.mean().item()" in found.fix, "A.tolist()" in found.fixes[1][0]] == [True, True]
    found = explained(lambda: bool(A > 0))
    assert "bool((A > 0).any())" in found.fix

    def overwritten() -> None:
        y = x.exp()
        y.add_(1)
        y.sum().backward()

    assert "written to afterwards" in explained(overwritten).rule


# ------------------------------------------------------------------------------ other exceptions
def test_other_exceptions_tell_the_values_on_the_line() -> None:
    def fails() -> Any:
        count, words, x = 3, ["a", "b"], torch.ones(2)
        return count / len(words[:0]) + x

    found = explained(fails)
    assert found.kind == "ZeroDivisionError"
    assert dict(found.names) == {"count": "3", "words": "list of 2"}
    assert found.picture is None
    assert found.fix == ""


def test_did_you_mean() -> None:
    class Thing:
        colour = 1

    def misspelt() -> Any:
        weights = 1
        return weigths + weights  # type: ignore[name-defined]  # noqa: F821

    thing, table = Thing(), {"weight": 1}
    assert explained(misspelt).notes == ["Did you mean 'weights'?"]
    assert explained(lambda: thing.color).notes == ["Did you mean 'colour'?"]  # type: ignore[attr-defined]
    assert explained(lambda: table["wieght"]).notes == ["Did you mean 'weight'?"]
    net = nn.Sequential(nn.Linear(1, 1))
    net.add_module("decoder", nn.Linear(1, 1))
    assert "Did you mean 'decoder'?" in explained(lambda: net.decodr).text
    assert explained(lambda: torch.channel_last).notes == []  # its message says so


def test_name_errors_look_at_globals_and_builtins() -> None:
    assert explained(lambda: explaind).notes == ["Did you mean 'explained'?"]  # type: ignore[name-defined]  # noqa: F821
    assert explained(lambda: pritn).notes == ["Did you mean 'print'?"]  # type: ignore[name-defined]  # noqa: F821


def test_syntax_errors() -> None:
    found = explained(lambda: compile("x = 1\ny = (2 +\n", "lesson.py", "exec"))
    assert (found.kind, found.file) == ("SyntaxError", "lesson.py")
    assert found.number == 2
    found = explained(lambda: compile("for x in y\n    pass", "a.py", "exec"))
    assert found.lines == ["for x in y"]
    assert "^" in found.text


BRACKETS = {
    "y = torch.ones((2, 3)\nz = 3\n": "y = torch.ones((2, 3))",
    "x = [1,\n     2\nfor i in x:\n    print(i)\n": "2]",
    "print('a'  # first\nprint('b')\n": "print('a')  # first",
    "def f(a:\n    return a\n": "def f(a):",
    "if (a == 1:\n    pass\n": "if (a == 1):",
    "x = (1, 2]\n": "x = (1, 2)",
    "x = [(1, 2), (3, 4]\n": "x = [(1, 2), (3, 4)]",
    "x = 1)\n": "x = 1",
    "d = {'a': [1, 2}\n": "d = {'a': [1, 2]}",
    "x = 1\ny = f'{x'\n": "y = f'{x}'",
    "x = f(1, (2\n": "",
    "x = 1 +\n": "",
}


@pytest.mark.parametrize("text", BRACKETS)
@pytest.mark.parametrize("known", [True, False])
def test_brackets(text: str, known: bool, tmp_path: Any) -> None:
    path = tmp_path / "lesson.py"
    if known:
        path.write_text(text)
    found = explained(lambda: compile(text, str(path), "exec"))
    spanish = explained(lambda: compile(text, str(path), "exec"), "es")
    fix = BRACKETS[text]
    assert len(found.fixes) <= 1
    if known:  # (of one line alone nobody knows how it goes on)
        assert found.fix == fix
    assert found.fixes == spanish.fixes
    assert (found.rule != "") == (text != "x = 1 +\n")
    assert (spanish.rule != found.rule) == bool(found.rule)
    if known and fix:
        lines = text.splitlines()
        at = next(k for k, line in enumerate(lines) if fix.startswith(line.strip()[:4]))
        lead = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        compile("\n".join([*lines[:at], lead + found.fix, *lines[at + 1 :]]), "x", "exec")


def test_labels_say_where_they_lie() -> None:
    labels = torch.tensor([0, 3, -100])
    found = explained(lambda: F.cross_entropy(torch.ones(3, 3), labels))
    assert found.rule.endswith("These go from 0 to 3. The model must give 4 scores for each row.")
    assert found.fixes == []


LEARNT: dict[str, Callable[[int], Any]] = {
    "index": lambda i: torch.arange(6.0)[torch.tensor([1, i])],
    "gather": lambda i: torch.gather(torch.ones(2, 3) * 1, 1, torch.tensor([[i]])),
    "embedding": lambda i: F.embedding(torch.tensor([i]) * 1, torch.ones(3, 4) * 1),
    "floor_divide": lambda i: (torch.tensor([4, 5]) * 1) // (torch.tensor([2, i - 9]) * 1),
    "remainder": lambda i: (torch.tensor([4, 5]) * 1) % (torch.tensor([2, i - 9]) * 1),
    "nll_loss": lambda i: F.nll_loss(torch.ones(2, 3) * 1, torch.tensor([i, 1])),
    "cross_entropy": lambda i: F.cross_entropy(torch.ones(2, 3) * 1, torch.tensor([i, 1])),
    "take": lambda i: torch.take(torch.ones(2) * 1, torch.tensor([i])),
    "index_select": lambda i: torch.index_select(torch.ones(2) * 1, 0, torch.tensor([i])),
    "scatter": lambda i: torch.scatter(torch.ones(2) * 1, 0, torch.tensor([i]), 1.0),
    "index_add_": lambda i: (torch.ones(2) * 1).index_add_(0, torch.tensor([i]), torch.ones(1)),
    "bincount": lambda i: torch.bincount(torch.tensor([1 - i]) * 1),
}
"""Calls that refuse 9, and take 1."""


@pytest.mark.parametrize("name", LEARNT)
def test_a_call_that_was_learnt_is_explained_as_the_first(name: str) -> None:
    call = LEARNT[name]
    fresh = explained(lambda: call(9)).text
    for _ in range(6):
        call(1)
    assert explained(lambda: call(9)).text == fresh


def test_memory_that_runs_out() -> None:
    weights = {"first": torch.zeros(1000, 1000)}
    images = torch.zeros(3, 1000, 1000)

    def load() -> Any:
        part = images[0]
        return torch.empty(1 << 40), part

    found = explained(load)
    assert "This asks for 4 TiB at once" in found.rule
    assert found.notes[0] == "The largest tensors:"
    assert found.notes[1].split() == ["images", "11.44", "MiB", "(3,", "1000,", "1000)", "float32"]
    assert found.notes[2].split()[:3] == ["weights['first']", "3.815", "MiB"]
    assert explained(load, "es").notes[0] == "Los tensores más grandes:"
    assert "This asks for 4.00 TiB" in explained(lambda: np.empty(1 << 39)).rule
    assert explained(lambda: exec("raise MemoryError")).rule.startswith("There is no memory left")
    assert len(weights) == 1


def test_groups_and_chains() -> None:
    def group() -> None:
        raise ExceptionGroup("several", [ValueError("one"), KeyError("two")])

    found = explained(group)
    assert "2 errors together:" in found.text
    assert "ValueError: one" in found.text

    def chained() -> None:
        try:
            raise OSError("disk")
        except OSError as error:
            raise ValueError("no data") from error

    assert explained(chained).notes == ["It was caused by OSError: disk"]

    def while_handling() -> None:
        try:
            raise OSError("disk")
        except OSError:
            raise ValueError("no data")  # noqa: B904

    assert explained(while_handling).notes == ["It came up while this was handled: OSError: disk"]


def test_notes_of_the_exception() -> None:
    error = ValueError("x")
    error.add_note("try another")
    error.__notes__.append(3)  # type: ignore[arg-type]
    assert torch.explain(error).notes == ["try another"]


# ------------------------------------------------------------------------------------- hostile
class Alarm(Exception):
    """Something of the program's was run."""


class Hostile:
    """Whoever touches it hears of it."""

    calls: list[str] = []

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        Hostile.calls.append("touched")
        raise Alarm

    __repr__ = __str__ = __bool__ = __len__ = __iter__ = __eq__ = __getitem__ = _refuse  # type: ignore[assignment]
    __hash__ = __call__ = __add__ = __format__ = __dir__ = __index__ = _refuse  # type: ignore[assignment]
    __getattr__ = _refuse
    __class__ = property(_refuse)  # type: ignore[assignment]
    field = property(_refuse)


def test_nothing_of_the_program_is_run() -> None:
    thing: Any = Hostile()
    holder = type("Holder", (), {"computed": property(Hostile._refuse)})()
    Hostile.calls.clear()

    def fails() -> Any:
        x = torch.ones(2)
        return [x @ torch.ones(3), thing.field, holder.computed, thing[0], thing + thing, thing()]

    explained(fails)

    def other() -> Any:
        return (thing, holder, {}["missing"], thing)

    found = explained(other)
    assert "KeyError" in found.html()
    try:
        raise ValueError(1)
    except ValueError as error:
        torch.explain(error)
    assert Hostile.calls == []


def test_hostile_operand_in_the_failing_part() -> None:
    thing: Any = Hostile()
    Hostile.calls.clear()

    def fails() -> Any:
        return len(thing, thing)  # type: ignore[call-arg]

    try:
        fails()
    except BaseException as error:
        Hostile.calls.clear()
        found = torch.explain(error)
        assert dict(found.names)["thing"] == "Hostile"
        found.html()
    assert Hostile.calls == []


def test_hostile_exceptions() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise Alarm

        __repr__ = __str__
        args = property(lambda self: 1 / 0)  # type: ignore[assignment]
        __traceback__ = property(lambda self: 1 / 0)  # type: ignore[assignment]
        __cause__ = property(lambda self: 1 / 0)  # type: ignore[assignment]

    def fails() -> None:
        raise Silent

    found = explained(fails)
    assert found.message == "(its text cannot be shown)"
    assert found.function == "fails"

    class Odd(str):
        def __str__(self) -> str:
            raise Alarm

    def odd() -> None:
        raise ValueError(Odd("x"))

    assert explained(odd).kind == "ValueError"


def test_hostile_metaclass_and_subclass_of_tensor() -> None:
    class Meta(type):
        def __getattribute__(cls, name: str) -> Any:
            raise Alarm

    class Strange(metaclass=Meta):
        pass

    strange = Strange()
    found = explained(lambda: (strange, 1 / 0))
    assert found.kind == "ZeroDivisionError"
    code = """
import antorcha as torch
class Shy(torch.Tensor):
    def __getattribute__(self, name):
        raise RuntimeError("no")
x = torch.ones(2).as_subclass(Shy)
def fails():
    return x + (1 / 0), x
try:
    fails()
except Exception as error:
    print(torch.explain(error).kind)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "ZeroDivisionError"


_COMMAND = """
import antorcha as torch
def f(a, b):
    return (a + 1) @ b.relu()
try:
    f(torch.ones(3, 2), torch.ones(3, 2))
except Exception as error:
    print(torch.explain(error))
try:
    exec("\\n\\ny = torch.ones(3) + torch.ones(4)")
except Exception as error:
    print(torch.explain(error))
"""


def test_what_was_given_on_the_command_line() -> None:
    """From Python 3.13 on its source is known, as that of the file <string>, which is the name of
    all that exec() runs, too."""
    run = subprocess.run(
        [sys.executable, "-c", _COMMAND], capture_output=True, text=True, check=True
    )
    of_file, of_exec = run.stdout.split("ShapeError: add")
    assert "source is not known" in of_exec
    if sys.version_info >= (3, 13):
        assert "    return (a + 1) @ b.relu()\n           ^^^^^^^^^^^^^^^^^^" in of_file
        assert "Fix:  return (a + 1) @ b.relu().T" in of_file


def test_a_text_is_only_shown_with_its_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def f(x):\n    return x @ x\n\n\nf(a)\n"
    lines = text.splitlines(keepends=True)
    monkeypatch.setitem(linecache.cache, "<string>", (len(text), None, lines, "<string>"))
    found = explained(lambda: exec(text, {"a": A}))
    assert found.lines == ["    return x @ x"]
    found = explained(lambda: exec(f"if a is not None:\n{textwrap.indent(text, '  ')}", {"a": A}))
    assert "the source is not known" in found.text
    monkeypatch.setitem(linecache.cache, "<string>", (3, None, ["x = ("], "<string>"))
    assert "the source is not known" in explained(lambda: exec(text, {"a": A})).text


def test_without_source_frames_or_traceback() -> None:
    space = {"a": A}
    found = explained(lambda: exec("y = a @ a", space))
    assert found.file == "<string>"
    assert [(shape.label, shape.cells) for shape in found.picture.shapes] == [
        ("a", ["3", "2"]), ("a", ["3", "2"])
    ]  # fmt: skip
    assert "the source is not known" in found.text
    assert found.fix == ""
    error = RuntimeError("never raised")
    assert torch.explain(error).text == "RuntimeError: never raised"
    with pytest.raises(RuntimeError) as caught:
        A @ B
    traceback.clear_frames(caught.value.__traceback__)
    assert torch.explain(caught.value).message.startswith("matmul")
    caught.value.__traceback__ = None
    assert torch.explain(caught.value).lines == []


def test_source_that_has_changed_since(tmp_path: Any) -> None:
    path = tmp_path / "changing.py"
    path.write_text("def f(a):\n    return a @ a\n")
    space: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    path.write_text("x = 1")
    found = explained(lambda: space["f"](A))
    assert found.kind == "ShapeError"
    path.unlink()
    linecache.clearcache()
    assert explained(lambda: space["f"](A)).lines == []


def test_locals_in_a_mapping_of_ones_own() -> None:
    class Names(dict):  # type: ignore[type-arg]
        armed = False

        def __getitem__(self, name: str) -> Any:
            if Names.armed:
                raise Alarm
            return dict.__getitem__(self, name)

        def keys(self) -> Any:
            raise Alarm

    with pytest.raises(RuntimeError) as caught:
        exec("y = a @ a", {}, Names(a=A))
    Names.armed = True
    assert torch.explain(caught.value).kind == "ShapeError"


def test_without_columns(tmp_path: Any) -> None:
    """Where a line has one operation, it is that one."""
    path = tmp_path / "plain.py"
    path.write_text(
        "import antorcha as torch\na = torch.ones(3, 2)\n"
        "def show(text):\n"
        "    try:\n        exec(text)\n    except RuntimeError as error:\n"
        "        print([s.cells for s in torch.explain(error).picture.shapes])\n"
        "try:\n    b = a @ a\nexcept RuntimeError as error:\n    print(torch.explain(error).fix)\n"
        "try:\n    b = (a + 1) @ a\nexcept RuntimeError as error:\n"
        "    print(repr(torch.explain(error).fix))\nshow('a @ a')\n"
    )
    run = subprocess.run(
        [sys.executable, "-X", "no_debug_ranges", str(path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run.stdout.splitlines() == ["b = a @ a.T", "''", "[['3', '2'], ['3', '2']]"]


def test_endless_recursion_and_great_depth() -> None:
    def endless(n: int) -> int:
        return endless(n + 1)

    found = explained(lambda: endless(0))
    assert found.kind == "RecursionError"
    deep = "a" + " + a" * 3000
    assert explained(lambda: exec(f"{deep} + (a @ a)", {"a": A})).kind in (
        "ShapeError", "RecursionError", "MemoryError",
    )  # fmt: skip


def test_circles_of_causes_and_long_messages() -> None:
    a, b = ValueError("a"), ValueError("b")
    a.__cause__, b.__cause__ = b, a
    assert "caused by ValueError: b" in torch.explain(a).text
    long = torch.explain(ValueError("x" * 100_000))
    assert len(long.text) < 4000


@pytest.mark.parametrize("thing", [None, 3, ValueError, "text", A])
def test_what_is_no_exception(thing: Any) -> None:
    assert "is no exception" in torch.explain(thing).message


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit(), Exception()]
)
def test_exceptions_of_all_kinds(error: BaseException) -> None:
    assert torch.explain(error).kind == type(error).__name__
    assert torch.explain(error).html()


def test_it_keeps_nothing_alive() -> None:
    def fails() -> Any:
        x = torch.ones(3, 2)
        kept.append(weakref.ref(x))
        return x @ x

    kept: list[Any] = []
    found = explained(fails)
    gc.collect()
    assert kept[0]() is None
    assert found.picture is not None


# ---------------------------------------------------------------------------------------- faces
def test_spanish() -> None:
    found = explained(lambda: A @ B, lang="es")
    assert found.rule.startswith("En a @ b el último tamaño")
    assert "Regla: " in found.text
    assert "Arreglo: " in found.text
    assert "línea" in found.text
    assert 'lang="es"' in found.html()
    with pytest.raises(TypeError, match="explain: lang='fr' must be one of en, es"):
        torch.explain(ValueError(), lang="fr")


def test_html() -> None:
    found = explained(lambda: A * P)
    html = found._repr_html_()
    assert "<script" not in html
    assert html.count("<svg") == 1
    assert "<mark>A * P</mark>" in html
    assert "P[:, None]" in html
    nasty = torch.explain(ValueError("<b>&\x00"))
    assert "<b>&" not in nasty.html()


def test_rich() -> None:
    from rich.console import Console

    found = explained(lambda: A @ B)
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(found)
    assert "2 ≠ 3" in console.export_text()


def test_str_is_the_text() -> None:
    found = explained(lambda: A @ B)
    assert str(found) == repr(found) == found.text
    rows = [line for line in found.text.splitlines() if not line.startswith(("ShapeError", "    "))]
    assert all(len(line) <= 100 for line in rows)
