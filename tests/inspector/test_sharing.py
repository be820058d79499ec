"""Who else has a tensor's memory: found by name and without, and held by nobody afterwards."""

from __future__ import annotations

import gc
import weakref
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

import antorcha as torch
from antorcha.inspector.naming import names_of, users_frame
from antorcha.inspector.tensor import sharing
from antorcha.inspector.tensor.facts import gather
from antorcha.inspector.tensor.sharing import Sharing


def shared(t: Any, names: Any = None, **kwargs: Any) -> Sharing:
    return gather(t, names=names, **kwargs).sharing


def test_views_are_found_by_name() -> None:
    x = torch.arange(6.0)
    y = x.view(2, 3)
    other = torch.arange(6.0)
    found = shared(y, {"x": x, "y": y, "z": y[1], "other": other})
    assert found.name == "y"
    assert [(s.name, s.kind, s.is_base) for s in found.others] == [
        ("x", "view", True), ("z", "view", False),
    ]  # fmt: skip
    assert (found.others[1].shape, found.others[1].offset) == ((3,), 3)


def test_a_name_that_is_given_wins() -> None:
    x = torch.ones(2)
    assert shared(x, {"x": x}, name="weights").name == "weights"
    assert shared(x, {"_": x, "x": x}).name == "x"
    assert shared(x).name == ""


def test_what_names_hold_is_looked_through() -> None:
    layer = torch.nn.Sequential(torch.nn.Linear(2, 3))
    weight = layer[0].weight
    names = {"net": layer, "tied": [weight.t()], "state": {"w": weight.data}}
    found = shared(weight, names)
    assert found.name == "net.0.weight"
    assert [(s.name, s.kind) for s in found.others] == [
        ("tied[0]", "view"),
        ("state['w']", "alias"),
    ]


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass(slots=True)
class Slotted:
    kept: Any
    empty: Any = field(init=False)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(2, 3)])
        self.cache = [self.layers[0].weight.detach()]


def test_every_way_to_a_tensor_is_a_name() -> None:
    x = torch.arange(6.0)
    ways = {
        "x": x,
        "rows": [x[0:], [x[1:], {"k": (x[2:],)}]],
        "state": OrderedDict(w=x[3:]),
        "by_number": {0: x[0:2], (1, 2): "no constant"},
        "pair": Pair(x[0:3], [x[0:4]]),
        "slotted": Slotted([x[0:5]]),
        "space": SimpleNamespace(part=x[1:2]),
        "last": deque([x[5:]]),
    }
    found = shared(x.view(2, 3), ways, name="grid")
    names = [s.name for s in found.others]
    assert len(names) == 11
    for name, sharer in zip(names, found.others, strict=True):
        value = eval(name, dict(ways))
        assert (tuple(value.shape), value.storage_offset()) == (sharer.shape, sharer.offset)
    model, grad = Model(), torch.ones(3)
    found = shared(model.layers[0].weight, {"model": model})
    assert found.name == "model.layers.0.weight"
    assert ("model.cache[0]", "view") in [(s.name, s.kind) for s in found.others]
    leaf = torch.ones(3, requires_grad=True)
    leaf.grad = grad
    assert shared(grad[1:], {"leaf": leaf}).others[0].name == "leaf.grad"


def test_variables_of_functions_further_out_are_names() -> None:
    def look(part: Any) -> Any:
        return torch.inspect(part).facts.sharing

    def train() -> Any:
        batch = torch.arange(6.0)
        rows = {"first": batch[:3]}
        part = batch[1:]
        return look(batch[2:]), len(rows), len(part)

    found, _, _ = train()
    assert found.name == "part"
    assert {s.name for s in found.others} == {"batch", "train(): part", "rows['first']"}


def test_a_base_is_called_by_its_view() -> None:
    grid = torch.arange(6.0).view(2, 3)
    (base,) = torch.inspect(grid).facts.sharing.others
    assert (base.name, base.is_base) == ("grid._base", True)
    assert eval(base.name) is grid._base


def test_a_namespace_may_be_given() -> None:
    x = torch.arange(4.0)
    found = torch.inspect(x[1:], names={"mine": x}).facts.sharing
    assert [s.name for s in found.others] == ["mine"]


def test_arrays_are_found() -> None:
    x = torch.arange(6.0)
    array = x.numpy()
    found = shared(x, {"part": array[2:4], "other": np.ones(3)})
    assert [(s.name, s.kind, s.shape) for s in found.others] == [("part", "array", (2,))]


def test_tensors_without_a_name_are_found() -> None:
    x = torch.arange(6.0)
    hidden = [lambda part=x[2:]: part]
    found = shared(x)
    assert found.searched
    assert [(s.name, s.shape, s.offset) for s in found.others] == [("", (4,), 2)]
    assert shared(x, search=False).others == ()
    assert len(hidden) == 1


def test_a_base_without_a_name_is_told() -> None:
    y = torch.arange(6.0).view(2, 3)
    (base,) = shared(y, search=False).others
    assert (base.is_base, base.shape) == (True, (6,))


def test_saved_values_are_counted() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * x
    assert shared(x).saved == 2
    y.sum().backward()
    assert shared(x).saved == 0


def test_the_collector_is_not_asked_in_vain(monkeypatch: Any) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(sharing.gc, "get_referrers", lambda *of: asked.append(of) or [])
    x = torch.arange(6.0)
    y = x.view(2, 3)
    shared(torch.ones(3))
    shared(x, {"x": x, "y": y})
    assert asked == []
    shared(x)
    assert len(asked) == 1


def test_many_sharers_are_summed_up() -> None:
    x = torch.zeros(20)
    parts = list(x)
    found = shared(x, {"parts": parts})
    assert (len(found.others), found.more) == (12, 8)


def test_nothing_is_kept_alive() -> None:
    x = torch.ones(4)
    parts = [x[:2], x[2:]]
    refs = [weakref.ref(part) for part in parts]
    assert len(shared(x).others) == 2
    del parts
    assert [ref() for ref in refs] == [None, None]


def test_a_frame_does_not_keep_what_it_was_asked_for() -> None:
    x = torch.ones(3)
    ref = weakref.ref(x)
    names = names_of(users_frame())
    assert names["x"] is x
    assert "torch" in names
    del names, x
    assert ref() is None


def test_a_dictionary_of_locals_that_the_user_has_stays() -> None:
    x = torch.ones(3)
    mine = locals()
    assert names_of(users_frame())["x"] is x
    assert mine["x"] is x


def test_strange_names_do_no_harm() -> None:
    class Rude:
        def __getattribute__(self, name: str) -> Any:
            raise SystemExit("touched")

    x = torch.ones(3)
    broken = object.__new__(torch.Tensor)
    loop: list[Any] = [x]
    loop.append(loop)

    class Meta(type):
        def __getattribute__(cls, name: str) -> Any:
            raise SystemExit("touched")

    class Strange(metaclass=Meta):
        __slots__ = ("x",)

    strange = Strange()
    names = {"rude": Rude(), "broken": broken, 3: x, "loop": loop, "kind": Rude,
             "strange": strange, "class": Strange}  # fmt: skip
    assert shared(x, names).name == "loop[0]"


def test_whole_namespaces_do_no_harm() -> None:
    gather(torch.ones(3), names=vars(torch))
    gather(torch.ones(3), names=globals())
    assert gc.isenabled()
