"""What test_subclass.py runs."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import pytest

import antorcha as torch
from antorcha import overrides
from antorcha.core import modes

assert not modes.subclasses, "nothing may watch before there is a subclass"
PLAIN_ADD = torch.Tensor.add


class Plain(torch.Tensor):
    pass


class Deeper(Plain):
    pass


class Loud(torch.Tensor):
    def item(self) -> Any:
        return "loud"


def test_an_element_is_read_by_the_class() -> None:
    x = torch.tensor(2.5)
    assert [x.item(), x.item(), float(x)] == [2.5, 2.5, 2.5]
    assert x.as_subclass(Loud).item() == "loud"
    assert [float(x.as_subclass(Loud)), x.item()] == [2.5, 2.5]


class Logged(torch.Tensor):
    calls: list[str] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Logged.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


class Foreign:
    """No tensor at all."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return "asked", func, types


class Silent:
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return NotImplemented


def make(cls: Any) -> Any:
    return torch.arange(4.0).as_subclass(cls)


def test_results_keep_the_class() -> None:
    x, p = make(Plain), torch.ones(4)
    for y in (x + 1, 1 + x, p + x, x * p, x - p, -x, x @ p, x > 1, x.exp(), torch.exp(x), x.sum(),
              x.view(2, 2), x[0], x[1:], x[x > 1], x.T, x.clone(), x.detach(), x.double(), x.data,
              torch.cat([p, x]), torch.where(x > 1, x, p), torch.nn.functional.relu(x),
              x.unsqueeze(0), torch.zeros_like(x), x.add_(1), x.new_zeros(2)):  # fmt: skip
        assert type(y) is Plain, y
    assert [type(e) for e in x.split(2)] == [Plain, Plain]
    assert [type(e) for e in x] == [Plain] * 4
    values = x.max(0)
    assert type(values).__name__ == "max"
    assert type(values.values) is Plain
    assert type(x.shape) is torch.Size
    assert type(x.numpy()).__name__ == "ndarray"
    assert repr(x).startswith("Plain(")


def test_the_deeper_class_wins() -> None:
    assert type(make(Plain) + make(Deeper)) is type(make(Deeper) + make(Plain)) is Deeper
    with pytest.raises(TypeError, match="no implementation found"):
        torch.add(make(Plain), make(Logged))
    with pytest.raises(TypeError):
        make(Plain) + make(Logged)


def test_calls_are_seen_by_the_names_of_methods() -> None:
    x = make(Logged)

    def seen(fn: Any) -> list[str]:
        Logged.calls.clear()
        fn()
        return list(Logged.calls)

    assert seen(lambda: x + 1) == seen(lambda: 1 + x) == seen(lambda: x.add(1)) == ["add"]
    assert seen(lambda: torch.add(x, 1)) == ["add"]
    assert seen(lambda: 2 - x) == ["__rsub__"]
    assert seen(lambda: x[0]) == ["__getitem__"]
    assert seen(lambda: x.shape) == ["__get__"]
    assert seen(lambda: x.__setitem__(0, 1.0)) == ["__setitem__"]
    assert seen(lambda: x.mul_(2)) == ["mul_"]
    assert seen(lambda: x.sum().item()) == ["sum", "item"]
    assert seen(lambda: torch.nn.functional.softmax(x, 0)) == ["softmax"]


def test_gradients_reach_the_leaf() -> None:
    leaf = torch.arange(4.0, requires_grad=True)
    (leaf.as_subclass(Plain) * 2).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [2.0] * 4
    own = make(Plain).requires_grad_()
    (own * own).sum().backward()
    assert own.grad.tolist() == [0.0, 2.0, 4.0, 6.0]


def test_making_subclasses() -> None:
    x = torch.arange(4.0)
    assert type(Plain([1, 2])) is Plain
    assert Plain(2, 3).shape == (2, 3)
    assert Plain(x).data_ptr() == x.data_ptr()
    made = torch.Tensor._make_subclass(Plain, x, True)
    assert made.requires_grad
    assert made.is_leaf
    assert torch.Tensor.__new__(Plain, [1]).tolist() == [1.0]
    for wrong in (int, 3):
        with pytest.raises(TypeError, match="inherit"):
            x.as_subclass(wrong)
    with pytest.raises(NotImplementedError):
        torch.Tensor._make_wrapper_subclass(Plain, (2,))


def test_a_subclass_with_a_constructor() -> None:
    class Named(torch.Tensor):
        @staticmethod
        def __new__(cls: Any, data: Any, label: str, **_: Any) -> Any:
            return torch.Tensor._make_subclass(cls, torch.tensor(data))

        def __init__(self, data: Any, label: str) -> None:
            self.label = label

    x = Named([1.0, 2.0], "here")
    assert x.label == "here"
    assert type(x * 2) is Named
    assert x.as_subclass(torch.Tensor).tolist() == [1.0, 2.0]


def test_foreign_classes() -> None:
    f, p = Foreign(), torch.ones(4)
    for name, call in {
        "mean": lambda: torch.mean(f), "add": lambda: torch.add(p, f), "sin": lambda: torch.sin(f),
        "cat": lambda: torch.cat([p, f]), "where": lambda: torch.where(f, p, p),
        "gelu": lambda: torch.nn.functional.gelu(f), "sum": lambda: torch.sum(f, dim=0),
    }.items():  # fmt: skip
        answer, func, types = call()
        assert answer == "asked"
        assert func.__name__ == name
        assert types == (Foreign,)
    assert (p + f)[0] == "asked"
    for call in (lambda: torch.mean(Silent()), lambda: torch.add(p, Silent())):
        with pytest.raises(TypeError, match="no implementation found"):
            call()


def test_parameters_are_not_asked() -> None:
    w = torch.nn.Parameter(torch.ones(2))
    assert type(w + 1) is torch.Tensor
    assert type(w + make(Plain)[:2]) is Plain

    class Special(torch.nn.Parameter):
        pass

    assert type(Special(torch.ones(2)) * 2) is torch.Tensor


def test_overrides() -> None:
    x, f = make(Plain), Foreign()
    assert overrides.has_torch_function((x,))
    assert overrides.has_torch_function_unary(f)
    assert not overrides.has_torch_function((torch.ones(1), 3))
    assert overrides.is_tensor_like(f)
    assert not overrides.is_tensor_like(3)

    def mine(a: Any) -> Any:
        if overrides.has_torch_function_unary(a):
            return overrides.handle_torch_function(mine, (a,), a)
        return "plain"

    assert mine(3) == "plain"
    assert mine(f)[1] is mine
    with overrides.DisableTorchFunctionSubclass():
        assert type(x + 1) is torch.Tensor
    assert torch.Tensor.grad.__get__ in overrides.get_default_nowrap_functions()


def test_modes() -> None:
    class Count(overrides.TorchFunctionMode):
        def __init__(self) -> None:
            self.calls: list[str] = []

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.calls.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with Count() as outer, Count() as inner:
        torch.ones(2).exp().sum()
    assert outer.calls == inner.calls == ["ones", "exp", "sum"]
    torch.ones(2)
    assert len(outer.calls) == 3


LIBRARIES = [torch]
try:
    import torch as pytorch
except ImportError:
    pass
else:
    LIBRARIES.append(pytorch)


class Kept(torch.nn.Parameter):
    pass


def _parameter_facts(library: Any, cls: Any, deeper: Any) -> list[Any]:
    nn = library.nn
    data = library.tensor([1.0, 2.0]).as_subclass(cls)
    p, q = nn.Parameter(data), deeper(library.ones(2))
    module = nn.Module()
    module.p, module.q = p, q
    state = module.state_dict()
    facts = [
        type(p) is cls, isinstance(p, nn.Parameter), isinstance(data, nn.Parameter),
        isinstance(p, deeper), isinstance(q, nn.Parameter), issubclass(cls, nn.Parameter),
        p.requires_grad, p.is_leaf, p.data_ptr() == data.data_ptr(), vars(p), repr(p), repr(q),
        type(nn.Parameter(p)) is cls, nn.Parameter(data, requires_grad=False).requires_grad,
        [(n, type(x).__name__, isinstance(x, nn.Parameter)) for n, x in module.named_parameters()],
        {k: (type(v).__name__, isinstance(v, nn.Parameter)) for k, v in state.items()},
        repr(nn.ParameterList([p])),
    ]  # fmt: skip
    for made in (p + 1, p.detach(), p.clone(), p.sum(), p[0]):
        facts += [type(made) is cls, isinstance(made, nn.Parameter)]
    (p * 2).sum().backward()
    facts += [type(p.grad).__name__, p.grad.tolist()]
    library.optim.SGD(module.parameters(), lr=0.5).step()
    facts.append(repr(p))
    again = pickle.loads(pickle.dumps(p))
    facts += [type(again) is cls, isinstance(again, nn.Parameter), again.requires_grad]
    module.load_state_dict(state)
    module.to(library.float64)
    facts += [type(module.p) is cls, str(module.p.dtype), isinstance(module.p, nn.Parameter)]
    return facts


class TheirPlain:
    """Replaced below, where PyTorch is installed."""


TheirKept: Any = TheirPlain
if len(LIBRARIES) > 1:
    TheirPlain = type("Plain", (pytorch.Tensor,), {"__module__": __name__})  # type: ignore
    TheirPlain.__qualname__ = "TheirPlain"
    TheirKept = type("Kept", (pytorch.nn.Parameter,), {})


@pytest.mark.skipif(len(LIBRARIES) < 2, reason="PyTorch is not installed")
def test_a_parameter_of_a_subclass_is_as_in_pytorch() -> None:
    theirs = _parameter_facts(pytorch, TheirPlain, TheirKept)
    assert _parameter_facts(torch, Plain, Kept) == theirs


def test_a_parameter_of_a_subclass() -> None:
    p = torch.nn.Parameter(make(Plain))
    assert type(p) is Plain
    assert isinstance(p, torch.nn.Parameter)
    assert not isinstance(p.detach(), torch.nn.Parameter)
    assert repr(p) == "Parameter(Plain([0., 1., 2., 3.], requires_grad=True))"
    again = copy.deepcopy(p)
    assert type(again) is Plain
    assert isinstance(again, torch.nn.Parameter)
    assert again.is_leaf
    assert again.requires_grad

    class Forgetful(torch.Tensor):
        def detach(self) -> Any:
            return torch.ones(1)

    with pytest.raises(RuntimeError, match="Creating a Parameter from an instance of type Forget"):
        torch.nn.Parameter(make(Forgetful))


def test_calls_look_at_their_arguments_while_there_is_an_instance() -> None:
    # (instances that other tests left in this process are not counted on)
    done = subprocess.run([sys.executable, "-c", LOOKS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = ["False", "True", "Kept", "True", "True", "False", "True", "False"]
    assert done.stdout.split() == expected


LOOKS = """
import gc
import antorcha as torch
from antorcha.core import modes
ASKED = {torch.Tensor.clone, torch.Tensor.sum}  # before anything is replaced
class Kept(torch.Tensor):
    seen = []
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(func in ASKED)
        return super().__torch_function__(func, types, args, kwargs)
print(modes.subclasses)
x = torch.ones(2).as_subclass(Kept)
print(modes.subclasses)
y = x.clone()
print(type(y).__name__, Kept.seen[-1])
y.sum()
print(Kept.seen[-1])
del x, y
gc.collect()
print(modes.subclasses)
with torch.overrides.BaseTorchFunctionMode():
    print(modes.subclasses)
print(modes.subclasses)
"""
