"""Module's own behaviour: registration, traversal, hooks, state, printing. No PyTorch needed."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections import OrderedDict
from typing import Any

import pytest

import antorcha as torch

nn: Any = torch.nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(3, 4)
        self.fc2 = nn.Linear(4, 2)
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("temporary", torch.ones(1), persistent=False)

    def forward(self, x: Any, scale: float = 1.0) -> Any:
        return self.fc2(self.fc1(x).relu()) * scale


def test_registration_and_listing() -> None:
    net = Net()
    assert [n for n, _ in net.named_parameters()] == [
        "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"
    ]  # fmt: skip
    assert list(net.state_dict()) == ["count", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"]
    assert [n for n, _ in net.named_buffers()] == ["count", "temporary"]
    assert [n for n, _ in net.named_modules()] == ["", "fc1", "fc2"]
    assert "fc1" not in net.__dict__
    net.fc1 = None
    assert net.fc1 is None
    assert len(list(net.parameters())) == 2
    del net.fc2
    assert not hasattr(net, "fc2")
    net.extra = nn.Parameter(torch.zeros(1))
    net.extra = None
    assert net.extra is None


def test_shared_parameters_are_listed_once() -> None:
    layer = nn.Linear(2, 2)
    net = nn.Sequential(layer, layer)
    assert len(list(net.parameters())) == 2
    assert len(list(net.named_parameters(remove_duplicate=False))) == 4
    assert list(net.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    again = copy.deepcopy(net)
    assert again[0] is again[1]
    assert again[0].weight is not layer.weight


def test_missing_attribute_says_what_was_meant() -> None:
    with pytest.raises(AttributeError, match=r"'Net' object has no attribute 'fc3'.*'fc1'"):
        _ = Net().fc3
    with pytest.raises(AttributeError, match="requires_grad_"):
        nn.Linear(2, 2).requires_grad(False)
    assert not hasattr(Net(), "nothing")


def test_assignment_before_init() -> None:
    class Bad(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"cannot assign module before Module.__init__\(\)"):
        Bad()


def test_training_mode_requires_grad_zero_grad() -> None:
    net = Net()
    assert net.eval() is net
    assert not net.fc1.training
    net.train()
    net(torch.ones(1, 3)).sum().backward()
    assert net.fc1.weight.grad is not None
    net.zero_grad(set_to_none=False)
    assert float(net.fc1.weight.grad.abs().sum()) == 0
    net.zero_grad()
    assert net.fc1.weight.grad is None
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())


def test_to_changes_in_place() -> None:
    net = Net()
    weight = net.fc1.weight
    net(torch.ones(1, 3)).sum().backward()
    assert net.double() is net
    assert net.fc1.weight is weight
    assert weight.dtype is torch.float64
    assert weight.grad.dtype is torch.float64
    assert net.count.dtype is torch.float64
    assert net.to(torch.float32)(torch.ones(1, 3)).dtype is torch.float32
    net.register_buffer("integers", torch.zeros(1, dtype=torch.int64))
    assert net.half().integers.dtype is torch.int64
    with pytest.raises(TypeError, match="floating point or complex"):
        net.to(torch.int32)


def test_forward_hooks() -> None:
    net, seen = Net(), []
    handles = [
        net.register_forward_pre_hook(lambda m, args: seen.append("pre")),
        net.register_forward_hook(lambda m, args, out: seen.append("post")),
        net.register_forward_hook(lambda m, args, out: seen.append("first"), prepend=True),
        net.register_forward_pre_hook(
            lambda m, args, kwargs: (args, {"scale": 2.0}), with_kwargs=True
        ),
        net.register_forward_hook(lambda m, args, kwargs, out: out * 0, with_kwargs=True),
    ]
    assert float(net(torch.ones(1, 3)).abs().sum()) == 0
    assert seen == ["pre", "first", "post"]
    for handle in handles:
        handle.remove()
    assert float(net(torch.ones(1, 3)).abs().sum()) != 0
    assert len(seen) == 3


def test_hook_that_is_always_called() -> None:
    class Fails(nn.Module):
        def forward(self, x: Any) -> Any:
            raise KeyError("x")

    seen = []
    module = Fails()
    module.register_forward_hook(lambda *a: seen.append("never"))
    module.register_forward_hook(lambda *a: seen.append("always"), always_call=True)
    with pytest.raises(KeyError):
        module(1)
    assert seen == ["always"]


def test_global_hooks() -> None:
    seen = []
    handle = nn.modules.module.register_module_forward_hook(lambda m, a, o: seen.append(type(m)))
    Net()(torch.ones(1, 3))
    handle.remove()
    Net()(torch.ones(1, 3))
    assert seen == [nn.Linear, nn.Linear, Net]


def test_backward_hooks() -> None:
    layer = nn.Linear(2, 2, bias=False)
    seen: list[Any] = []
    layer.register_full_backward_pre_hook(lambda m, go: (go[0] * 2,))
    layer.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
    x = torch.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    ((gi, go),) = seen
    assert go[0].tolist() == [[2.0, 2.0]]
    assert torch.allclose(gi[0], 2 * layer.weight.sum(0, keepdim=True))
    assert torch.equal(x.grad, gi[0])


def test_state_dict_round_trip_and_hooks() -> None:
    a, b = Net(), Net()
    result = b.load_state_dict(a.state_dict())
    assert repr(result) == "<All keys matched successfully>"
    assert torch.equal(a.fc2.weight, b.fc2.weight)
    assert a.state_dict()._metadata[""] == {"version": 1}
    missing, unexpected = b.load_state_dict({"fc1.bias": torch.zeros(4), "q": 1}, strict=False)
    assert "fc2.bias" in missing
    assert unexpected == ["q"]
    state = {k: v.clone() for k, v in a.state_dict().items()}
    b.load_state_dict(state, assign=True)
    assert b.fc1.weight.data_ptr() == state["fc1.weight"].data_ptr()
    assert isinstance(b.fc1.weight, nn.Parameter)
    one = torch.ones(())
    b.register_load_state_dict_pre_hook(lambda m, sd, *rest: sd.__setitem__("count", one))
    b.load_state_dict(a.state_dict())
    assert float(b.count) == 1
    b.register_state_dict_post_hook(lambda m, sd, prefix, meta: sd.pop("count") and None)
    assert "count" not in b.state_dict()


def test_extra_state() -> None:
    class Extra(nn.Module):
        value = 1

        def get_extra_state(self) -> Any:
            return {"value": self.value}

        def set_extra_state(self, state: Any) -> None:
            self.value = state["value"]

    a, b = Extra(), Extra()
    a.value = 5
    b.load_state_dict(a.state_dict())
    assert b.value == 5
    with pytest.raises(RuntimeError, match="Missing key"):
        b.load_state_dict({})


def test_pickle_and_deepcopy() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    again = pickle.loads(pickle.dumps(net))
    assert repr(again) == repr(net)
    assert torch.equal(again[0].weight, net[0].weight)
    assert again[0].weight.requires_grad
    twin = copy.deepcopy(net)
    twin[0].weight.data.zero_()
    assert float(net[0].weight.abs().sum()) > 0


def test_a_copied_parameter_has_memory_of_its_own_and_no_gradient() -> None:
    p = nn.Parameter(torch.arange(6.0).view(2, 3).t()[1:])
    p.sum().backward()
    p.note = [1]  # type: ignore[attr-defined]
    again, same = copy.deepcopy([p, p])
    assert again is same
    assert type(again) is nn.Parameter
    assert again.requires_grad
    assert again.grad is None
    assert again.note == [1]
    assert again.note is not p.note  # type: ignore[attr-defined]
    assert again.tolist() == p.tolist()
    assert again.untyped_storage().nbytes() == 16


def test_sequential() -> None:
    net = nn.Sequential(OrderedDict(a=nn.Linear(2, 3), b=nn.ReLU()))
    assert repr(net[:1]) == f"Sequential(\n  (a): {net.a}\n)"
    assert net.b is net[1] is net[-1]
    assert len(net) == 2
    both = nn.Sequential(nn.ReLU()) + nn.Sequential(nn.Tanh())
    both.append(nn.ELU()).insert(0, nn.GELU())
    both.extend([nn.SiLU()])
    assert [type(m).__name__ for m in both] == ["GELU", "ReLU", "Tanh", "ELU", "SiLU"]
    del both[1:3]
    assert list(both._modules) == ["0", "1", "2"]
    both[0] = nn.Identity()
    assert isinstance(both.pop(0), nn.Identity)
    assert len(both) == 2
    with pytest.raises(IndexError):
        both[5]


def test_module_list_and_dict() -> None:
    layers = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), nn.ReLU()])
    assert repr(layers) == (
        "ModuleList(\n  (0-1): 2 x Linear(in_features=1, out_features=1, bias=True)\n"
        "  (2): ReLU()\n)"
    )
    layers.insert(0, nn.Tanh())
    layers += [nn.ELU()]
    assert len(layers[1:3]) == 2
    assert isinstance(layers.pop(0), nn.Tanh)
    table = nn.ModuleDict({"a": nn.ReLU()})
    table.update([["b", nn.Tanh()]])
    assert list(table) == ["a", "b"]
    assert "a" in table
    assert len(table) == 2
    table.pop("a")
    assert list(table.keys()) == ["b"]


def test_parameter_list_and_dict() -> None:
    values = nn.ParameterList([torch.zeros(2), torch.ones(1, 3)])
    values.append(5)
    assert len(list(values.parameters())) == 2
    assert values[-1] == 5
    assert values[:2][1].shape == (1, 3)
    table = nn.ParameterDict({"a": torch.zeros(2)})
    table["b"] = nn.Parameter(torch.ones(1))
    assert list(table.state_dict()) == ["a", "b"]
    assert table.get("c") is None
    assert table.pop("a").requires_grad


def test_parameter() -> None:
    p = nn.Parameter(torch.arange(2.0))
    assert repr(p) == "Parameter containing:\ntensor([0., 1.], requires_grad=True)"
    assert isinstance(p, torch.Tensor)
    assert p.is_leaf
    assert type(p + 1) is torch.Tensor
    assert type(copy.deepcopy(p)) is nn.Parameter
    with pytest.raises(RuntimeError):
        nn.Parameter(torch.arange(2))
    assert not nn.Parameter(torch.arange(2), requires_grad=False).requires_grad
    buffer = nn.Buffer(torch.zeros(1), persistent=False)
    module = nn.Module()
    module.b = buffer
    assert isinstance(buffer, nn.Buffer)
    assert dict(module.named_buffers()).keys() == {"b"}
    assert list(module.state_dict()) == []


def test_apply_get_and_compile() -> None:
    net = Net()
    net.apply(lambda m: nn.init.zeros_(m.weight) if isinstance(m, nn.Linear) else None)
    assert float(net.fc1.weight.abs().sum()) == 0
    assert net.get_submodule("fc1") is net.fc1
    assert net.get_parameter("fc1.weight") is net.fc1.weight
    assert net.get_buffer("count") is net.count
    net.set_submodule("fc1", nn.Identity())
    assert isinstance(net.fc1, nn.Identity)
    linear = nn.Linear(2, 1)
    before = linear(torch.ones(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        linear.compile(fullgraph=True)
    assert torch.equal(linear(torch.ones(2)), before)


def test_utils() -> None:
    w = nn.Parameter(torch.zeros(2))
    w.grad = torch.tensor([3.0, 4.0])
    assert float(nn.utils.clip_grad_norm_([w], 1.0)) == 5.0
    assert torch.allclose(w.grad, torch.tensor([0.6, 0.8]))
    nn.utils.clip_grad_value_([w], 0.7)
    assert torch.allclose(w.grad, torch.tensor([0.6, 0.7]))
    vector = nn.utils.parameters_to_vector([w, nn.Parameter(torch.ones(1, 2))])
    assert vector.tolist() == [0, 0, 1, 1]
    nn.utils.vector_to_parameters(torch.arange(2.0), [w])
    assert w.tolist() == [0, 1]
    padded = nn.utils.rnn.pad_sequence([torch.ones(1), torch.ones(2)])
    assert padded.tolist() == [[1, 1], [0, 1]]
    assert [len(s) for s in nn.utils.rnn.unpad_sequence(padded, torch.tensor([1, 2]))] == [1, 2]


def test_what_is_not_there_says_so() -> None:
    with pytest.raises(NotImplementedError, match="several processes"):
        nn.parallel.DistributedDataParallel(nn.ReLU())
    with pytest.raises(NotImplementedError, match="among several devices"):
        nn.DataParallel(nn.ReLU(), device_ids=[0, 1])


def test_config_says_what_runs() -> None:
    assert torch.__config__.show().startswith(f"antorcha {torch.__version__}")
    assert f": {torch.get_num_threads()}\n" in torch.__config__.parallel_info()
