"""``antorcha.graph``: what is read of a graph, with and without recording; its pictures."""

from __future__ import annotations

import gc
import re
import threading
import weakref
import xml.etree.ElementTree as ET
from typing import Any

import pytest

import antorcha as torch
from antorcha.autograd import origin
from antorcha.core import modes
from antorcha.nn import hooks

nn: Any = torch.nn
recording = torch.graph.recording  # type: ignore[attr-defined]


class Block(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.fc = nn.Linear(size, size)

    def forward(self, x: Any) -> Any:
        return self.fc(x).relu() + x


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Block(3)
        self.second = Block(3)
        self.head = nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        return self.head(self.second(self.first(x)))


def names(graph: Any) -> list[str]:
    return [op.name for op in graph.operations]


def valid(svg: str) -> ET.Element:
    """The SVG, parsed; it is self-contained."""
    assert "<script" not in svg
    assert "href" not in svg
    assert "url(" not in svg
    return ET.fromstring(svg)


def test_operations_leaves_and_names() -> None:
    a = torch.ones(3, 2, requires_grad=True)
    w = torch.ones(2, 4, requires_grad=True)
    hidden = a @ w
    loss = hidden.exp().sum()
    graph = torch.graph(loss)
    assert names(graph) == ["MmBackward0", "ExpBackward0", "SumBackward0"]
    assert [(leaf.name, leaf.shape, leaf.dtype) for leaf in graph.leaves] == [
        ("w", (2, 4), "float32"), ("a", (3, 2), "float32")
    ] or [leaf.name for leaf in graph.leaves] == ["a", "w"]  # fmt: skip
    mm, exp, total = graph.operations
    assert mm.results[0].names == ["hidden"]
    assert total.results[0].names == ["loss"]
    assert [str(saved) for saved in exp.saved] == ["result (3, 4)"]
    assert {source.kind for source in mm.operands} == {"leaf"}
    assert [(s.kind, s.index) for s in exp.operands] == [("operation", 0)]
    assert graph.facts.saved_bytes == 3 * 4 * 4  # exp's result; the leaves are there anyway
    assert "graph of loss: 3 operations, 2 leaves, 48 B kept" in str(graph)


def test_names_that_are_given_come_first() -> None:
    local = torch.ones(2, requires_grad=True)
    layer = nn.Linear(2, 2)
    result = layer(local)
    shown = [leaf.name for leaf in torch.graph(result).leaves]
    assert sorted(shown) == ["layer.bias", "layer.weight", "local"]
    shown = [leaf.name for leaf in torch.graph(result, model=layer, names={"x": local}).leaves]
    assert sorted(shown) == ["bias", "weight", "x"]


def test_names_in_containers() -> None:
    params = [torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)]
    table = {"k": torch.ones(1, requires_grad=True)}
    graph = torch.graph(params[0] + params[1] * table["k"])
    assert {leaf.name for leaf in graph.leaves} == {"params[0]", "params[1]", "table['k']"}


def test_without_recording_no_line_is_told() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    graph = torch.graph(y)
    assert graph.operations[0].line is None
    assert graph.groups == []
    assert "not noted" in str(graph)


def test_recording_notes_lines() -> None:
    x = torch.ones(2, requires_grad=True)
    with recording():
        y = x * 2
        z = y.exp()
    w = z + 1
    lines = [op.line for op in torch.graph(w).operations]
    assert [line.text if line else None for line in lines] == ["y = x * 2", "z = y.exp()", None]
    assert lines[0].function == "test_recording_notes_lines"
    assert lines[1].number == lines[0].number + 1
    assert lines[0].file == __file__


def test_anomaly_mode_notes_lines_too() -> None:
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        y = x * 2
    assert torch.graph(y).operations[0].line.text == "y = x * 2"


def test_code_without_source_has_a_number_only() -> None:
    space: dict[str, Any] = {"x": torch.ones(2, requires_grad=True)}
    with recording():
        exec(compile("\ny = x * 2", "<nowhere>", "exec"), space)
    line = torch.graph(space["y"]).operations[0].line
    assert (line.number, line.text) == (2, "")
    assert "<nowhere>:2" in str(torch.graph(space["y"]))


def test_recording_ends_and_nests() -> None:
    before = modes.state.word, modes.busy
    with recording():
        with recording():
            pass
        assert modes.state.word & modes.ORIGINS
    assert (modes.state.word, modes.busy) == before
    with pytest.raises(KeyError), recording():
        raise KeyError
    assert (modes.state.word, modes.busy) == before
    assert origin._watch.around == ()
    assert origin._watch.code is None


def test_recording_is_of_its_thread() -> None:
    x = torch.ones(2, requires_grad=True)
    made = []
    with recording():
        other = threading.Thread(target=lambda: made.append(x * 2))
        other.start()
        other.join()
    assert torch.graph(made[0]).operations[0].line is None


def test_recording_holds_no_tensor() -> None:
    with recording():
        x = torch.ones(2, requires_grad=True)
        y = nn.Linear(2, 2)(x * 2)
    dead = weakref.ref(x)
    graph = torch.graph(y)
    del x, y
    gc.collect()
    assert dead() is None
    assert len(graph.operations) == 2


def test_recording_leaves_no_hook() -> None:
    before = hooks.any_hooks
    with recording():
        Net()(torch.ones(1, 3))
    assert hooks.any_hooks == before


def test_errors_of_backward_tell_the_line() -> None:
    x = torch.ones(2, requires_grad=True)
    with recording():
        y = x.exp()  # here
    y.detach().add_(1)
    with pytest.raises(RuntimeError, match=r"y = x\.exp"):
        y.sum().backward()


def test_groups() -> None:
    net = Net()
    with recording():
        loss = net(torch.ones(1, 3)).sum()
    graph = torch.graph(loss, model=net)
    shown = [(g.path, g.kind, g.depth, g.operations) for g in graph.groups]
    assert shown == [
        ("", "Net", 1, 7), ("first", "Block", 2, 3), ("first.fc", "Linear", 3, 1),
        ("second", "Block", 2, 3), ("second.fc", "Linear", 3, 1), ("head", "Linear", 2, 1),
    ]  # fmt: skip
    names_without = [g.path for g in torch.graph(loss).groups]
    assert names_without == [path for path, *_ in shown]  # the outermost module knows its parts


def test_parameters_stand_in_their_module_and_inputs_outside() -> None:
    layer = nn.Linear(2, 2)
    x = torch.ones(1, 2, requires_grad=True)
    with recording():
        y = layer(x)
    graph = torch.graph(y, names={"x": x})
    outside = [item for item in graph._nest.groups[0].items if item[0] == "leaf"]
    assert [graph.leaves[index].name for _, index in outside] == ["x"]


def test_calls_of_one_module_are_apart() -> None:
    layer = nn.Linear(2, 2)
    x = torch.ones(1, 2)
    with recording():
        y = layer(layer(x))
        for _ in range(2):
            y = layer(y)
    graph = torch.graph(y, model=nn.Sequential(layer))
    assert [g.title for g in graph.groups] == [f"0 (call {k} of 4)" for k in (1, 2, 3, 4)]
    assert [g.operations for g in graph.groups] == [1, 1, 1, 1]


def test_gradients() -> None:
    x = torch.tensor([3.0, 4.0], requires_grad=True)
    y = x * 1
    y.retain_grad()
    s = (y * y).sum() / 2
    before = torch.graph(s)
    assert [leaf.gradient for leaf in before.leaves] == [""]
    s.backward()
    graph = torch.graph(s)
    assert graph.leaves[0].gradient == "norm 5"
    assert graph.operations[0].results[0].gradient == "norm 5"
    assert graph.operations[1].results[0].gradient == ""
    assert "grad norm 5" in graph.svg()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.complex64])
def test_gradients_of_other_dtypes(dtype: Any) -> None:
    x = torch.tensor([3.0, 4.0]).to(dtype).requires_grad_()
    x.grad = torch.tensor([3.0, 4.0]).to(dtype)
    assert torch.graph(x * 1).leaves[0].gradient == "norm 5"


def test_after_backward_what_is_known_is_still_shown() -> None:
    x = torch.ones(3, requires_grad=True)
    loss = (x.exp() * x).sum()
    loss.backward()
    graph = torch.graph(loss)
    assert names(graph) == ["ExpBackward0", "MulBackward0", "SumBackward0"]
    assert [(s.name, s.shape, s.state) for s in graph.operations[0].saved] == [
        ("result", (3,), "freed")
    ]
    assert "saved values freed by backward" in str(graph)
    valid(graph.svg())


def test_what_was_overwritten_is_marked() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    total = y.sum()
    y.detach().zero_()
    graph = torch.graph(total)
    assert graph.operations[0].saved[0].state == "overwritten"
    assert "was overwritten since" in graph.svg()


def test_in_place_on_views() -> None:
    x = torch.ones(4, requires_grad=True)
    y = x * 2
    with recording():
        y[1:3].mul_(3)
    graph = torch.graph(y.sum())
    assert names(graph) == ["MulBackward0", "CopySlices", "SumBackward0"]
    assert graph.operations[1].line.text == "y[1:3].mul_(3)"
    assert str(graph.operations[1].saved[0]) == "the write, MulBackward0"
    valid(graph.svg())


def test_custom_functions_and_packed_values() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2, torch.ones(1, dtype=torch.int64)

        @staticmethod
        def backward(ctx: Any, g: Any, _: Any) -> Any:
            return g * 2

    x = torch.ones(3, requires_grad=True)
    with recording(), torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y, _ = Twice.apply(x)
        z = y * y
    graph = torch.graph(z)
    assert names(graph) == ["TwiceBackward", "MulBackward0"]
    assert [s.state for s in graph.operations[0].saved] == ["packed"]
    assert {s.state for s in graph.operations[1].saved} == {"packed"}
    assert graph.operations[0].line.text == "y, _ = Twice.apply(x)"


def test_several_results_and_roots() -> None:
    x = torch.arange(4.0).requires_grad_()
    a, b = x.chunk(2)
    graph = torch.graph([a.sum(), b.exp()])
    assert names(graph) == ["SplitBackward0", "SumBackward0", "ExpBackward0"]
    assert [r.names for r in graph.operations[0].results] == [["a"], ["b"]]
    assert graph.operations[2].operands[0].result == 1
    assert "ExpBackward0(%0.1)" in str(graph)


def test_second_order() -> None:
    x = torch.ones(2, requires_grad=True)
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    graph = torch.graph(g.sum())
    assert names(graph) == ["PowBackwardBackward0", "SumBackward0"]
    assert [leaf.name for leaf in graph.leaves] == ["x"]


def test_a_leaf_and_a_tensor_without_graph() -> None:
    leaf, plain = torch.ones(2, requires_grad=True), torch.ones(2)
    assert "it is a leaf" in str(torch.graph(leaf))
    assert "it requires no gradient" in str(torch.graph(plain))
    valid(torch.graph(leaf).svg())
    valid(torch.graph(plain).svg())


def test_reading_changes_nothing() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y.retain_grad()
    z = y.sum()
    version, word = y._version, modes.state.word
    torch.graph(z).html()
    z.backward()
    assert (y._version, modes.state.word) == (version, word)
    assert x.grad.tolist() == y.grad.tolist() * 0 + (y * y.grad).tolist()


def test_pictures_are_valid_and_self_contained() -> None:
    net = Net()
    with recording():
        loss = net(torch.ones(1, 3)).sum()
    graph = torch.graph(loss, model=net)
    root = valid(graph.svg())
    space = "{http://www.w3.org/2000/svg}"
    drawn = [g.get("class") for g in root.iter(f"{space}g")]
    assert drawn.count("operation") == 8
    assert drawn.count("leaf") == 6
    assert drawn.count("frame") == 6
    paths = [path.get("d", "") for path in root.iter(f"{space}path")]
    assert sum(path.endswith("v-26.0") for path in paths) == 3  # into groups
    assert sum(path.endswith("v12.0") for path in paths) == 6  # out of them
    html = graph._repr_html_()
    assert "<script" not in html
    assert html.count("<details>") >= 3
    assert "first.fc: Linear" in html


def test_user_text_is_escaped() -> None:
    x = torch.ones(2, requires_grad=True)
    graph = torch.graph(x * 2, names={"<b>&\x00\"'": x})
    assert "<b>" not in graph.svg()
    valid(graph.svg())


def test_a_chain_of_ten_thousand() -> None:
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(10_000):
        y = y * 1.5
    graph = torch.graph(y)
    assert len(graph.operations) == 10_000
    svg = graph.svg()
    valid(svg)
    assert "… 9,851 operations …" in svg
    assert "too much for one picture" in svg
    text = str(graph)
    assert "… 9,920 operations …" in text
    assert len(text.splitlines()) < 120
    small = graph.svg(boxes=20)
    assert len(small) < len(svg) / 3


def test_more_than_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from antorcha.inspector.graph import facts as graph_facts

    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(30):
        y = y * 1.5
    facts = graph_facts.read([y], {}, None, {}, most=10)
    assert len(facts.operations) == 10
    assert facts.more
    assert facts.operations[0].operands == [None, None]  # the first is not read, the other a number


def test_a_thousand_leaves() -> None:
    many = [torch.ones(1, requires_grad=True) for _ in range(1000)]
    svg = torch.graph(torch.cat(many)).svg()
    assert "… 994 leaves …" in svg
    assert "many[5]" in svg


def test_two_thousand_modules() -> None:
    net = nn.Sequential(*[nn.Sequential(nn.Linear(2, 2), nn.ReLU()) for _ in range(1000)])
    with recording():
        loss = net(torch.ones(1, 2)).sum()
    graph = torch.graph(loss, model=net)
    assert len(graph.groups) == 3001
    html = graph.html()
    assert len(html) < 2_000_000
    assert "more groups" in html


def test_deep_nesting_needs_no_stack() -> None:
    net = nn.Identity()
    for _ in range(150):
        net = nn.Sequential(net, nn.Linear(1, 1))
    with recording():
        loss = net(torch.ones(1, 1)).sum()
    valid(torch.graph(loss, model=net).svg())


def test_groups_in_a_circle_are_not_drawn() -> None:
    """A call of a module whose inside waits for what is outside: no box can stand for it."""
    first, second = nn.Identity(), nn.Identity()
    x = torch.ones(1, requires_grad=True)
    with recording():
        a = x * 2
        b = a * 3
        c = b * 4
    call = (
        origin.ModuleCall(weakref.ref(first), 10**9),
        origin.ModuleCall(weakref.ref(second), 10**9 + 1),
    )
    a.grad_fn.stack.calls = c.grad_fn.stack.calls = (call[0],)
    graph = torch.graph(c)
    assert graph.groups == []
    valid(graph.svg())


def test_save(tmp_path: Any) -> None:
    graph = torch.graph(torch.ones(2, requires_grad=True) * 2)
    for name in ("g.svg", "g.html", "g.txt"):
        graph.save(tmp_path / name)
        assert "MulBackward0" in (tmp_path / name).read_text()
    with pytest.raises(TypeError, match=r"\.svg, \.html or \.txt"):
        graph.save(tmp_path / "g.png")
    assert not (tmp_path / "g.png").exists()


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.graph(3),
        lambda: torch.graph([]),
        lambda: torch.graph([torch.ones(1), "x"]),
        lambda: torch.graph(torch.ones(1), model=3),
        lambda: torch.graph(torch.ones(1), names={"x": 3}),
        lambda: torch.graph(torch.ones(1), names={3: torch.ones(1)}),
    ],
)
def test_refuses(call: Any) -> None:
    with pytest.raises(TypeError, match=r"^graph: "):
        call()


def test_the_graph_speaks_spanish() -> None:
    w = torch.ones(2, 3, requires_grad=True)
    layer = torch.nn.Linear(3, 1)
    loss = layer(w).exp().sum()
    picture = torch.graph(loss, names={"loss": loss, "w": w}, lang="es")
    text = str(picture)
    assert text.startswith("grafo de loss: 3 operaciones, 3 hojas, ")
    assert "operaciones, de la primera a la última" in text
    assert "guarda result (2, 1)" in text
    svg = picture.svg()
    assert "hoja w" in svg
    assert "parámetro" in svg
    loss.backward()
    assert "liberados por backward" in str(torch.graph(loss, lang="es"))
    for shown in (svg, picture.html(), text):
        html = " ".join(re.findall(r">([^<]+)<", re.sub(r"<style.*?</style>", "", f">{shown}<")))
        assert "operaciones" in html
        for word in ("operation", "leaf", "leaves", "keeps", "kept", "graph of", "result:"):
            assert word not in html
    with pytest.raises(TypeError, match="lang='fr' must be one of en, es"):
        torch.graph(loss, lang="fr")
