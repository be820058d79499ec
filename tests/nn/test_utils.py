"""``nn.utils`` beside PyTorch's: parametrizations, norms of weights, fusion, pruning."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import pytest

import antorcha
from tests.nn.beside import both_sides, numbers, same, trained

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def test_parametrizations() -> None:
    cases = [
        ("weight_norm", "Linear(4, 3)", {}), ("weight_norm", "Conv2d(2, 3, 2)", {"dim": None}),
        ("weight_norm", "Conv2d(2, 3, 2)", {"dim": 1}), ("spectral_norm", "Linear(4, 3)", {}),
        ("spectral_norm", "ConvTranspose2d(2, 3, 2)", {}), ("spectral_norm", "Linear(4, 3)",
        {"name": "bias"}), ("orthogonal", "Linear(4, 4)", {}),
        ("orthogonal", "Linear(4, 4)", {"orthogonal_map": "cayley"}),
        ("orthogonal", "Linear(4, 3)", {}), ("orthogonal", "Linear(4, 6)", {}),
        ("orthogonal", "Linear(4, 6)", {"orthogonal_map": "matrix_exp"}),
    ]  # fmt: skip
    for kind, layer, options in cases:

        def run(library: Any, kind: str = kind, layer: str = layer, options: Any = options) -> Any:
            from importlib import import_module

            made = import_module(f"{library.__name__}.nn.utils.parametrizations")
            library.manual_seed(4)
            module = eval("nn." + layer, {"nn": library.nn})
            module = getattr(made, kind)(module, **options)
            x = library.from_numpy(numbers(0, 2, *((2, 4, 4) if "Conv" in layer else (4,))))
            values = trained(library, module, x)
            again = copy.deepcopy(module).eval()
            return module, [*values, again(x), getattr(module, options.get("name", "weight"))]

        both_sides(run, (kind, layer, options))


def test_register_parametrization() -> None:
    for library in (antorcha, torch):
        from importlib import import_module

        nn = library.nn
        made = import_module(f"{library.__name__}.nn.utils.parametrize")

        class Twice(nn.Module):  # type: ignore[misc, name-defined]
            def forward(self, x: Any) -> Any:
                return x * 2

            def right_inverse(self, x: Any) -> Any:
                return x / 2

        class Wide(nn.Module):  # type: ignore[misc, name-defined]
            def forward(self, x: Any) -> Any:
                return x[:1]

        layer = nn.Linear(3, 2)
        weight = layer.weight.detach().clone()
        made.register_parametrization(layer, "weight", Twice())
        made.register_parametrization(layer, "weight", Twice())
        assert (layer.weight == weight * 2).all()
        assert type(layer).__name__ == "ParametrizedLinear"
        assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
        layer.weight = library.ones(2, 3)
        assert (layer.parametrizations.weight.original == 0.25).all()
        with made.cached():
            assert layer.weight is layer.weight
        other = made.transfer_parametrizations_and_params(layer, nn.Linear(3, 2), "weight")
        assert (other.weight == 1).all()
        with pytest.raises(ValueError, match="may not change the shape"):
            made.register_parametrization(nn.Linear(3, 2), "weight", Wide())
        with pytest.raises(ValueError, match="does not have a parameter"):
            made.register_parametrization(layer, "nothing", Twice())
        with pytest.raises(RuntimeError, match="state_dict"):
            pickle.dumps(layer)
        made.remove_parametrizations(layer, "weight")
        assert type(layer) is nn.Linear
        assert isinstance(layer.weight, nn.Parameter)
        assert (layer.weight == 1).all()
        assert not made.is_parametrized(layer)


def test_old_norms() -> None:
    for kind in ("weight_norm", "spectral_norm"):
        for layer in ("Linear(4, 3)", "ConvTranspose2d(2, 3, 2)"):

            def run(library: Any, kind: str = kind, layer: str = layer) -> Any:
                library.manual_seed(4)
                utils = library.nn.utils
                module = getattr(utils, kind)(eval("nn." + layer, {"nn": library.nn}))
                x = library.from_numpy(numbers(0, 2, *((2, 4, 4) if "Conv" in layer else (4,))))
                values = trained(library, module, x)
                state = dict(module.state_dict())
                getattr(utils, f"remove_{kind}")(module)
                assert list(module.state_dict()) in (["bias", "weight"], ["weight", "bias"])
                return None, [*values, *state.values(), module(x)]

            both_sides(run, (kind, layer))


def test_fusion_and_calls_without_state() -> None:
    def run(library: Any) -> Any:
        library.manual_seed(5)
        nn, utils = library.nn, library.nn.utils
        values = []
        for layer, norm, x in (
            (nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3), numbers(0, 4, 2, 4, 4)),
            (nn.Linear(4, 3, bias=False), nn.BatchNorm1d(3), numbers(0, 5, 4)),
        ):
            x = library.from_numpy(x)
            norm(layer(x))
            fuse = utils.fuse_conv_bn_eval if x.dim() == 4 else utils.fuse_linear_bn_eval
            made = fuse(layer.eval(), norm.eval())
            values += [made.weight, made.bias, made(x)]
            same(made(x), norm(layer(x)), "fused", 1e-4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from importlib import import_module

            call = import_module(f"{library.__name__}.nn.utils.stateless").functional_call
            net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
            given = {"0.weight": library.ones(2, 2, requires_grad=True),
                     "1.running_mean": library.zeros(2)}  # fmt: skip
            x = library.from_numpy(numbers(1, 3, 2))
            values += [call(net, given, (x,)), given["1.running_mean"], net[1].running_mean,
                       net[0].weight]  # fmt: skip
            with pytest.raises(RuntimeError, match="Missing key"):
                call(net, given, (x,), strict=True)
        return None, values

    both_sides(run, "fusion")
    for library in (antorcha, torch):
        made = library.nn.utils.skip_init(library.nn.Linear, 4, 3)
        assert made.weight.shape == (3, 4)
        assert made.weight.device.type == "cpu"
        conv = library.nn.Sequential(library.nn.Conv2d(3, 2, 2))
        library.nn.utils.convert_conv2d_weight_memory_format(conv, library.channels_last)
        assert conv[0].weight.stride() == (12, 1, 6, 3)


def test_pruning() -> None:
    cases = [
        [("l1_unstructured", (0.4,)), ("l1_unstructured", (3,))],
        [("random_unstructured", (0.3,)), ("ln_structured", (1, 2, 0))],
        [("ln_structured", (0.5, 1, 1)), ("l1_unstructured", (2,))],
        [("random_structured", (2, 1)), ("random_structured", (1, -1)), ("identity", ())],
    ]
    for steps in cases:

        def run(library: Any, steps: Any = steps) -> Any:
            from importlib import import_module

            prune = import_module(f"{library.__name__}.nn.utils.prune")
            library.manual_seed(6)
            module = library.nn.Linear(4, 5)
            for name, args in steps:
                getattr(prune, name)(module, "weight", *args)
            x = library.from_numpy(numbers(0, 2, 4))
            values = [*trained(library, module, x), module.weight]
            assert prune.is_pruned(module)
            state = dict(module.state_dict())
            prune.remove(module, "weight")
            assert not prune.is_pruned(module)
            assert "weight" in module._parameters
            return module, [*values, *state.values(), module(x)]

        both_sides(run, steps)

    def run_global(library: Any) -> Any:
        from importlib import import_module

        prune = import_module(f"{library.__name__}.nn.utils.prune")
        library.manual_seed(6)
        net = library.nn.Sequential(library.nn.Linear(4, 5), library.nn.Linear(5, 2))
        prune.l1_unstructured(net[0], "weight", 3)
        pairs = [(net[0], "weight"), (net[1], "weight")]
        prune.global_unstructured(pairs, prune.L1Unstructured, amount=0.5)
        for bad, kind in ((1.5, ValueError), ("a", TypeError), (999, ValueError)):
            with pytest.raises(kind, match="amount"):
                prune.l1_unstructured(library.nn.Linear(2, 2), "weight", bad)
        return net, list(net.state_dict().values())

    both_sides(run_global, "global")
