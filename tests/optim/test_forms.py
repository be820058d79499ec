"""Functional forms, modules as programs import them, averaged weights, gradient scaling."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import warnings
from typing import Any

import numpy as np
import pytest

import antorcha

FORMS: list[tuple[str, list[str], dict[str, Any], dict[str, Any]]] = [
    ("adadelta", ["square_avg", "acc_delta", "step"],
     {"lr": 1.0, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.1, "maximize": True}, {}),
    ("adagrad", ["sum", "step"],
     {"lr": 0.1, "weight_decay": 0.1, "lr_decay": 0.1, "eps": 1e-10, "maximize": False}, {}),
    ("adam", ["exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"],
     {"amsgrad": True, "beta1": 0.9, "beta2": 0.99, "lr": 0.1, "weight_decay": 0.1, "eps": 1e-8,
      "maximize": False}, {}),
    ("adamw", ["exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"],
     {"amsgrad": True, "beta1": 0.9, "beta2": 0.99, "lr": 0.1, "weight_decay": 0.1, "eps": 1e-8,
      "maximize": False}, {}),
    ("adamax", ["exp_avg", "exp_inf", "step"],
     {"eps": 1e-8, "beta1": 0.9, "beta2": 0.99, "lr": 0.1, "weight_decay": 0.1}, {}),
    ("asgd", ["ax", "mu", "eta", "step"],
     {"lambd": 1e-2, "lr": 0.1, "t0": 1.0, "alpha": 0.75, "weight_decay": 0.1}, {"eta": 0.1}),
    ("nadam", ["exp_avg", "exp_avg_sq", "mu_product", "step"],
     {"beta1": 0.9, "beta2": 0.99, "lr": 0.1, "weight_decay": 0.1, "momentum_decay": 4e-3,
      "eps": 1e-8}, {}),
    ("radam", ["exp_avg", "exp_avg_sq", "step"],
     {"beta1": 0.9, "beta2": 0.99, "lr": 0.1, "weight_decay": 0.1, "eps": 1e-8}, {}),
    ("rmsprop", ["square_avg", "grad_avg", "momentum_buffer", "step"],
     {"lr": 0.1, "alpha": 0.9, "eps": 1e-8, "weight_decay": 0.1, "momentum": 0.5,
      "centered": True}, {}),
    ("rprop", ["prev", "step_size", "step"],
     {"step_size_min": 1e-6, "step_size_max": 50, "etaminus": 0.5, "etaplus": 1.2},
     {"step_size": 0.1}),
    ("sgd", ["momentum_buffer"],
     {"weight_decay": 0.1, "momentum": 0.9, "lr": 0.1, "dampening": 0.1, "nesterov": False,
      "maximize": False}, {"momentum_buffer": None}),
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "states", "settings", "starts"), FORMS)
def test_functional_forms(
    name: str, states: list[str], settings: dict[str, Any], starts: dict[str, Any]
) -> None:
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(0)
    values = [random.standard_normal((3, 4)) for _ in range(6)]
    results, signatures = [], []
    for library in (antorcha, torch):
        module = importlib.import_module(f"{library.__name__}.optim.{name}")
        form = getattr(module, name)
        assert form is getattr(importlib.import_module(f"{library.__name__}.optim._functional"),
                               name)  # fmt: skip
        params = [library.tensor(v) for v in values[:2]]
        lists: list[Any] = []
        for state in states:
            start = starts.get(state, 1.0 if state in ("mu", "mu_product") else 0.0)
            shape = () if state in ("mu", "eta", "mu_product", "step") else (3, 4)
            dtype = library.float32 if shape == () else library.float64
            lists.append([None if start is None else library.full(shape, start, dtype=dtype)
                          for _ in params])  # fmt: skip
        for k in (2, 4):
            form(params, [library.tensor(v) for v in values[k : k + 2]], *lists, foreach=False,
                 **settings)  # fmt: skip
        results.append([t.numpy() for t in [*params, *[t for each in lists for t in each]]])
        signatures.append([(p.name, p.kind, p.default if p.default is not p.empty else "none")
                           for p in inspect.signature(form).parameters.values()])  # fmt: skip
    assert signatures[0] == signatures[1]
    for x, y in zip(*results, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6 if x.ndim == 0 else 1e-9)


@pytest.mark.oracle
def test_names_are_where_programs_import_them() -> None:
    torch = pytest.importorskip("torch")
    assert set(antorcha.optim.__all__) == set(torch.optim.__all__)
    for name in antorcha.optim.__all__:
        theirs, mine = getattr(torch.optim, name), getattr(antorcha.optim, name)
        if not inspect.isclass(theirs):
            continue
        shapes = [
            [(p.name, p.kind, p.default if p.default is not p.empty else "none")
             for p in inspect.signature(cls).parameters.values()]
            for cls in (mine, theirs)
        ]  # fmt: skip
        assert shapes[0] == shapes[1], name
        for method in dir(theirs):
            if not method.startswith("_"):
                assert hasattr(mine, method), (name, method)
    for name in ("Adam", "AdamW", "SGD", "LBFGS", "RMSprop", "NAdam", "RAdam", "Rprop", "ASGD"):
        module = importlib.import_module(f"antorcha.optim.{name.lower()}")
        assert getattr(module, name) is getattr(antorcha.optim, name)
    old = importlib.import_module("antorcha.optim._multi_tensor")
    w = antorcha.nn.Parameter(antorcha.ones(1))
    assert old.Adam([w]).param_groups[0]["foreach"] is True


@pytest.mark.oracle
@pytest.mark.parametrize("how", ["swa", "ema", "multi", "multiswa", "buffers"])
def test_averaged_models(how: str) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for library in (antorcha, torch):
        swa, nn = library.optim.swa_utils, library.nn
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
        options = {
            "swa": {}, "ema": {"avg_fn": swa.get_ema_avg_fn(0.8)},
            "multi": {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.8)},
            "multiswa": {"multi_avg_fn": swa.get_swa_multi_avg_fn()},
            "buffers": {"use_buffers": True},
        }[how]  # fmt: skip
        average = swa.AveragedModel(model, **options)
        random = np.random.default_rng(0)
        for _ in range(4):
            with library.no_grad():
                for t in [*model.parameters(), *model.buffers()]:
                    t.copy_(library.tensor(random.uniform(1, 4, tuple(t.shape))))
            average.update_parameters(model)
        batches = [library.tensor(random.standard_normal((8, 3)).astype("float32"))
                   for _ in range(3)]  # fmt: skip
        first = [t.detach().numpy().copy() for t in average.state_dict().values()]
        average.eval()
        swa.update_bn([(b, 0) for b in batches], average)
        assert not average.training
        assert average.module[1].momentum == 0.1
        assert next(iter(average.state_dict())) == "n_averaged"
        last = [t.detach().numpy() for t in average.state_dict().values()]
        results.append([*first, *last, average(batches[0]).detach().numpy()])
    for x, y in zip(*results, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)
    with pytest.raises(AssertionError, match="Only one"):
        antorcha.optim.swa_utils.AveragedModel(model, avg_fn=abs, multi_avg_fn=abs)


def test_a_gradient_scaler_may_leave_the_division_to_fused_steps() -> None:
    torch: Any = antorcha
    for name in ("SGD", "Adam", "AdamW", "Adagrad"):
        w, v = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
        one, two = [getattr(torch.optim, name)([p], lr=0.1, fused=True) for p in (w, v)]
        assert one._step_supports_amp_scaling
        w.grad, v.grad = torch.tensor([4.0, 8.0]), torch.tensor([1.0, 2.0])
        one.grad_scale, one.found_inf = torch.tensor(4.0), torch.tensor(0.0)
        one.step()
        two.step()
        assert torch.equal(w, v)
        assert torch.equal(w.grad, v.grad)
        before = w.detach().clone()
        one.found_inf = torch.tensor(1.0)
        one.step()
        assert torch.equal(w, before)


def test_sparse_adam_needs_sparse_gradients() -> None:
    torch: Any = antorcha
    w = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SparseAdam([w])
    optimizer.step()
    w.grad = torch.ones(2)
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        optimizer.step()
    w.grad = torch.tensor([0.0, 2.0]).to_sparse()
    optimizer.step()
    assert w.tolist() == pytest.approx([1.0, 0.999])


def test_older_checkpoints_are_read() -> None:
    """Python numbers for step counts, and groups without the newer options."""
    torch: Any = antorcha
    for name in ("Adam", "NAdam", "ASGD", "RMSprop", "Rprop", "RAdam", "Adamax", "Adadelta"):
        w = torch.nn.Parameter(torch.ones(2))
        optimizer = getattr(torch.optim, name)([w])
        w.grad = torch.ones(2)
        optimizer.step()
        state = optimizer.state_dict()
        kept = {
            key: (value.item() if value.ndim == 0 else value)
            for key, value in state["state"][0].items()
        }
        group = state["param_groups"][0]
        for option in ("foreach", "maximize", "capturable", "differentiable"):
            group.pop(option, None)
        v = torch.nn.Parameter(w.detach().clone())
        again = getattr(torch.optim, name)([v])
        again.load_state_dict({"state": {0: kept}, "param_groups": [group]})
        v.grad = torch.ones(2)
        optimizer.step()
        again.step()
        assert torch.equal(w, v), name
        assert again.state_dict()["state"][0]["step"].item() == 2


def test_an_optimizer_written_for_pytorch_runs() -> None:
    """With the helpers that such files import, hooks by their names in PyTorch, and pickling."""
    torch: Any = antorcha
    base = importlib.import_module("antorcha.optim.optimizer")

    class Plain(base.Optimizer):  # type: ignore[misc, name-defined]
        def __init__(self, params: Any, lr: float = 0.1) -> None:
            super().__init__(params, {"lr": lr, "differentiable": False})

        @base._use_grad_for_differentiable
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad, alpha=-base._get_value(base._to_scalar(group["lr"])))

    w = torch.nn.Parameter(torch.ones(1))
    optimizer = Plain([w], lr=torch.tensor([0.5]))
    seen: list[str] = []
    handle = optimizer.register_step_post_hook(lambda *args: seen.append("post"))
    assert list(optimizer._optimizer_step_post_hooks) == [handle.id]
    w.grad = torch.ones(1)
    optimizer.step()
    handle.remove()
    optimizer.step()
    assert seen == ["post"]
    assert w.item() == 0
    for name in ("ParamsT", "_params_doc", "_default_to_fused_or_foreach", "required"):
        assert getattr(base, name) is not None
    with pytest.raises(AttributeError, match="Did you mean"):
        base.Optimzer


def test_an_optimizer_that_wraps_another_has_no_hooks_of_its_own() -> None:
    """As accelerate's AcceleratedOptimizer: a subclass that never calls ``Optimizer.__init__``."""
    torch: Any = antorcha
    seen: list[str] = []

    class Wrapper(torch.optim.Optimizer):  # type: ignore[misc, name-defined]
        def __init__(self, optimizer: Any) -> None:
            self.optimizer = optimizer

        @property
        def param_groups(self) -> Any:
            return self.optimizer.param_groups

        def step(self, closure: Any = None) -> None:
            seen.append("wrapper")
            self.optimizer.step(closure)

    w = torch.nn.Parameter(torch.ones(1))
    inner = torch.optim.SGD([w], lr=0.5)
    inner.register_step_pre_hook(lambda *args: seen.append("hook"))
    optimizer = Wrapper(inner)
    w.grad = torch.ones(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the scheduler has seen the step
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        optimizer.step()
        scheduler.step()
        again = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        optimizer.step()
        again.step()
    assert seen == ["wrapper", "hook"] * 2
    assert w.item() == pytest.approx(0.45)


def test_hooks_run_once_where_a_step_calls_the_one_it_inherits() -> None:
    """Only the step of a class of which an optimizer was made has hooks around it."""
    torch: Any = antorcha
    seen: list[str] = []

    class Base(torch.optim.Optimizer):  # type: ignore[misc, name-defined]
        def step(self, closure: Any = None) -> None:
            seen.append("base")

    class Derived(Base):
        def step(self, closure: Any = None) -> None:
            super().step(closure)

    optimizer = Derived([torch.nn.Parameter(torch.ones(1))], {"lr": 0.1})
    optimizer.register_step_post_hook(lambda *args: seen.append("post"))
    optimizer.step()
    assert seen == ["base", "post"]


@pytest.mark.oracle
def test_zero_grad_and_groups_as_in_pytorch() -> None:
    torch = pytest.importorskip("torch")
    for library in (antorcha, torch):
        w, v = library.nn.Parameter(library.ones(2)), library.nn.Parameter(library.ones(2))
        w.grad = library.ones(2) * 3
        grad = w.grad
        optimizer = library.optim.SGD([w], lr=0.1)
        optimizer.zero_grad(set_to_none=False)
        assert w.grad is grad
        assert grad.tolist() == [0, 0]
        (w * w * v).sum().backward(create_graph=True)
        optimizer.zero_grad(set_to_none=False)
        assert not w.grad.requires_grad
        named = library.optim.SGD([("w", w)], lr=0.1)
        assert named.param_groups[0]["param_names"] == ["w"]
        with pytest.raises(ValueError, match="without names to the optimizer"):
            named.add_param_group({"params": [v]})
        named.add_param_group({"params": [("v", v)]})
        assert named.state_dict()["param_groups"][1]["param_names"] == ["v"]
        with pytest.raises(ValueError, match="Invalid learning rate"):
            library.optim.SGD([w], lr=library.tensor(-1.0))


def test_swapping_leaves_the_optimizer_as_it_was() -> None:
    torch: Any = antorcha
    w, v = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.zeros(2))
    w.grad, v.grad = torch.ones(2), torch.ones(2)
    optimizer = torch.optim.Adam([w], lr=0.1)
    with pytest.raises(RuntimeError, match="initialized"):
        optimizer_swap(optimizer, {}, {}).__enter__()
    optimizer.step()
    state = optimizer.state_dict()
    other = {
        "state": {0: {key: t.clone() for key, t in state["state"][0].items()}},
        "param_groups": [{**state["param_groups"][0], "lr": 1.0}],
    }
    before = w.detach().clone()
    with optimizer_swap(optimizer, {"v": v}, other):
        assert optimizer.param_groups[0]["lr"] == 1.0
        optimizer.step()
    assert optimizer.param_groups[0]["lr"] == 0.1
    assert optimizer.param_groups[0]["params"] == [w]
    assert torch.equal(w, before)
    assert v.detach().tolist() == pytest.approx([-1, -1], rel=1e-4)
    assert other["state"][0]["step"].item() == 2
    assert optimizer.state[w]["step"].item() == 1
    for change in (
        {"state": [], "param_groups": other["param_groups"]},
        {"state": {}, "param_groups": []},
        {"state": {5: {}}, "param_groups": other["param_groups"]},
        {"state": {}, "param_groups": [{"params": [0]}]},
        {"state": {}, "param_groups": [{**other["param_groups"][0], "params": []}]},
    ):
        with pytest.raises(RuntimeError), optimizer_swap(optimizer, {"v": v}, change):
            pass
    with pytest.raises(RuntimeError), optimizer_swap(optimizer, {}, other):
        pass


def optimizer_swap(*args: Any) -> Any:
    return antorcha.optim.swap_in_optimizer_params_and_state(*args)


def test_the_examples_of_docstrings() -> None:
    names = {"torch": antorcha, "antorcha": antorcha}
    attempted = 0
    for found in pkgutil.iter_modules(antorcha.optim.__path__):
        module = importlib.import_module(f"antorcha.optim.{found.name}")
        result = doctest.testmod(module, extraglobs=names)
        assert result.failed == 0, found.name
        attempted += result.attempted
    assert attempted > 80
