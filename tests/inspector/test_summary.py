"""``antorcha.summary``: the table's numbers, and that the model stays as it was."""

from __future__ import annotations

import sys

import pytest

import antorcha as torch
from antorcha.inspector.summary.multiply_adds import RULES, TABLE, rule_of
from antorcha.nn import hooks

nn = torch.nn


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(channels)

    def forward(self, x):
        return self.bn(self.conv(x)).relu() + x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)
        self.first = Block(8)
        self.again = self.first
        self.head = nn.Linear(8, 10)
        self.unused = nn.Linear(2, 2)

    def forward(self, x):
        x = self.again(self.first(self.stem(x)))  # (B, 8, 30, 30)
        return self.head(x.mean((2, 3)))


class Scaled(nn.Module):
    """A layer that the table of rules does not know."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(10))

    def forward(self, x):
        return x * self.w


def rows_of(table):
    return {row.path: row for row in table.rows}


def test_rows_and_totals():
    table = torch.summary(Net(), (2, 3, 32, 32))
    rows = rows_of(table)
    assert list(rows) == ["", "stem", "first", "first.conv", "first.bn", "again", "head", "unused"]
    assert rows["stem"].outputs == [(2, 8, 30, 30)]
    assert rows["stem"].multiply_adds == 2 * 8 * 30 * 30 * 27
    assert rows["first.conv"].params == 8 * 8 * 9
    assert rows["first"].params == 8 * 8 * 9 + 16
    assert rows["first"].calls == 2
    one_block = 2 * 8 * 30 * 30 * 72 + 2 * 8 * 30 * 30
    assert rows["first"].multiply_adds == 2 * one_block  # it runs twice
    assert rows["again"].shared == "first"
    assert rows["again"].params == 0
    assert rows["unused"].calls == 0
    assert table.totals.params == sum(p.numel() for p in Net().parameters())
    assert table.totals.multiply_adds == 2 * 8 * 30 * 30 * 27 + 2 * one_block + 2 * 10 * 8
    assert table.totals.buffer_bytes == 8 * 4 * 2 + 8
    assert table.totals.input_bytes == 2 * 3 * 32 * 32 * 4
    assert table.totals.outputs == 4 * (5 * 2 * 8 * 30 * 30 + 20)
    assert table.on_meta


def test_depth_folds_numbers_into_the_parent():
    rows = rows_of(torch.summary(Net(), (1, 3, 8, 8), depth=1))
    assert "first.conv" not in rows
    assert rows["first"].params == 592


def test_tied_and_frozen_parameters():
    a, b = nn.Linear(4, 4), nn.Linear(4, 4)
    b.weight = a.weight
    b.bias.requires_grad_(False)
    rows = rows_of(torch.summary(nn.Sequential(a, b), (1, 4)))
    assert (rows["0"].params, rows["1"].params) == (20, 4)
    assert (rows[""].params, rows[""].trainable) == (24, 20)


def test_unknown_work_is_said():
    table = torch.summary(nn.Sequential(nn.Linear(4, 10), Scaled()), (2, 4))
    assert table.unknown == ["1"]
    assert table.totals.multiply_adds == 80
    assert "80, and those of 1, unknown" in str(table)
    assert "80 + ?" in str(table)


def test_a_subclass_with_its_own_forward_has_no_rule():
    class Twice(nn.Linear):
        def forward(self, x):
            return super().forward(x) * 2

    class Named(nn.Linear):
        pass

    assert rule_of(Twice(2, 2)) is None
    assert rule_of(Named(2, 2)) is rule_of(nn.Linear(2, 2))


@pytest.mark.parametrize(
    ("layer", "shape", "expected"),
    [
        (lambda: nn.Linear(6, 5), (7, 6), 7 * 5 * 6),
        (lambda: nn.Conv1d(4, 6, 3, groups=2), (1, 4, 10), 6 * 8 * 2 * 3),
        (lambda: nn.ConvTranspose2d(4, 6, 3), (1, 4, 5, 5), 4 * 25 * 6 * 9),
        (lambda: nn.LayerNorm(6), (3, 6), 54),
        (lambda: nn.LayerNorm(6, elementwise_affine=False), (3, 6), 36),
        (lambda: nn.GroupNorm(2, 4), (1, 4, 3), 36),
        (lambda: nn.InstanceNorm1d(4), (2, 4, 3), 48),
        (lambda: nn.LocalResponseNorm(3), (1, 4, 3), 48),
        (lambda: nn.ReLU(), (3, 3), 0),
        (lambda: nn.MaxPool1d(2), (1, 2, 4), 0),
    ],
)
def test_rules(layer, shape, expected):
    assert torch.summary(layer(), shape).totals.multiply_adds == expected


def test_bilinear_counts_what_its_sum_takes():
    table = torch.summary(nn.Bilinear(3, 4, 5), (2, 3), (2, 4))
    assert table.totals.multiply_adds == 2 * 5 * (3 * 4 + 4)


def test_every_layer_of_nn_but_containers_and_losses_has_a_rule():
    layers = {
        each for name, each in vars(nn).items()
        if isinstance(each, type) and issubclass(each, nn.Module) and not name.endswith("Loss")
    }  # fmt: skip
    without = {each.__name__ for each in layers - set(RULES)}
    assert without == {
        "Module", "Container", "Sequential", "ModuleList", "ModuleDict", "ParameterList",
        "ParameterDict",
        "PairwiseDistance", "Upsample", "UpsamplingBilinear2d", "NLLLoss2d", "DataParallel",
        "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
        "TransformerEncoderLayer",  # (made of layers that have)
    }  # fmt: skip
    assert len(RULES) == sum(len(names.split()) for _, names in TABLE)


class Choosy(nn.Module):
    """Cannot run without values; writes to a buffer and draws random numbers even in evaluation."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)
        self.bn = nn.BatchNorm1d(2)
        self.drop = nn.Dropout(0.5)
        self.register_buffer("seen", torch.zeros(1))
        self.grad_was_on = None

    def forward(self, x):
        self.seen += 1
        self.grad_was_on = torch.is_grad_enabled()
        if x.sum() > 0:
            x = x + torch.rand(4)
        return self.drop(self.bn(self.fc(x)))


def test_the_model_is_left_as_it_was():
    net = Choosy()
    net.drop.eval()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    state = torch.get_rng_state()
    any_hooks = hooks.any_hooks
    table = torch.summary(net, torch.ones(3, 4))
    assert not table.on_meta
    assert rows_of(table)["fc"].outputs == [(3, 2)]
    assert not net.grad_was_on
    assert net.training
    assert not net.drop.training
    assert net.bn.training
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
    assert hooks.any_hooks == any_hooks
    assert all("forward" not in module.__dict__ for module in net.modules())


def test_an_error_names_the_layer():
    net = nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.ReLU(), nn.Linear(9, 2)))
    with pytest.raises(RuntimeError, match="inner sizes") as caught:
        torch.summary(net, (5, 4))
    assert caught.value.__notes__ == [
        "summary: it failed in 1.1: Linear, which was given (5, 8)",
    ]
    assert caught.value.__context__ is None  # the attempt on meta is nobody's business


def test_after_an_error_too():
    net = Choosy()
    with pytest.raises(RuntimeError, match="do not broadcast"):
        torch.summary(net, torch.ones(3, 5))
    assert net.training
    assert net.seen.item() == 0
    assert all("forward" not in module.__dict__ for module in net.modules())


def test_shapes_are_of_floats_and_an_error_says_so():
    words = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 2))
    with pytest.raises(Exception, match="float") as caught:
        torch.summary(words, (2, 5))
    assert "dtype=torch.long" in caught.value.__notes__[-1]
    table = torch.summary(words, torch.zeros(2, 5, dtype=torch.long))
    assert table.rows[0].outputs == [(2, 5, 2)]


def test_nothing_is_computed_where_meta_will_do():
    class Big(nn.Module):
        def forward(self, x):
            return x @ x

    table = torch.summary(Big(), (1 << 20, 1 << 20))  # 4 TiB, if it were
    assert table.rows[0].outputs == [(1 << 20, 1 << 20)]


def test_inputs_that_are_nested_and_several_outputs():
    class Several(nn.Module):
        def forward(self, batch, flag):
            return {"a": batch["x"], "b": [batch["x"] * 2, 1]} if flag else None

    table = torch.summary(Several(), {"x": torch.ones(2, 3)}, True)
    assert table.rows[0].outputs == [(2, 3), (2, 3)]
    assert "no tensor" in str(torch.summary(Several(), {"x": torch.ones(2)}, False))


def test_without_inputs_nothing_runs():
    table = torch.summary(Choosy())
    assert table.totals.multiply_adds is None
    assert "multiply-adds" not in str(table)
    assert table.totals.params == 14


def test_faces():
    table = torch.summary(nn.Sequential(nn.Linear(4, 2), nn.ReLU()), (1, 4))
    text = str(table)
    assert text.splitlines()[1].split() == ["Sequential", "(1,", "2)", "10", "8"]
    assert "├─ 0 Linear" in text
    assert "└─ 1 ReLU" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    html = table._repr_html_()
    assert "<script" not in html
    assert html.count("<tr>") == 4

    from rich.console import Console

    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(table)
    assert "└─ 1 ReLU" in console.export_text()


def test_a_list_of_layers_is_not_idle():
    class Listed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])

        def forward(self, x):
            return self.layers[0](x)

    lines = str(torch.summary(Listed(), (1, 2))).splitlines()
    assert lines[2].split() == ["└─", "layers", "ModuleList", "-", "12", "4"]
    assert lines[4].split()[:5] == ["└─", "1", "Linear", "not", "run"]


def test_markup_in_names_is_text():
    net = nn.Module()
    net.add_module("<b>[bold]", nn.Linear(1, 1))
    table = torch.summary(net)
    assert "<b>[bold]" in str(table)
    assert "<b>" not in table.html()
    assert "&lt;b&gt;" in table.html()


class Deep(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.inner = Deep(n - 1) if n else nn.Linear(2, 2)

    def forward(self, x):
        return self.inner(x)


def test_a_model_is_summarised_as_deep_as_it_runs(monkeypatch):
    monkeypatch.setattr("antorcha.nn.hooks.any_hooks", False)  # (another test may have had some)
    limit = sys.getrecursionlimit()
    deepest = limit // 4
    model = Deep(deepest)
    model(torch.ones(1, 2))
    assert torch.summary(model, (1, 2)).rows[-1].params == 6
    assert sys.getrecursionlimit() == limit


def test_a_module_that_contains_itself():
    net = nn.Sequential(nn.Linear(2, 2))
    net.add_module("self", net)
    assert rows_of(torch.summary(net))["self"].shared == "Sequential"
    assert torch.summary(net).totals.params == 6


@pytest.mark.parametrize("depth", [0, -1, 1.5, "2"])
def test_refuses_a_depth(depth):
    with pytest.raises(TypeError, match="depth"):
        torch.summary(nn.Linear(1, 1), depth=depth)


def test_refuses_what_is_no_module():
    with pytest.raises(TypeError, match=r"must be a torch\.nn\.Module, not function"):
        torch.summary(lambda x: x, (1,))
