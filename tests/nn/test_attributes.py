"""What programs read of a module: every attribute, constant and base class that PyTorch's has.

PyTorch's own list of modules (``module_db``) makes them; what differs is in `EXPLAINED`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import antorcha
from tests.ops import samples

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

EXPLAINED = {
    "T_destination": "a type variable of PyTorch's annotations",
    "_get_backward_hooks": "machinery of PyTorch's call, which is in nn.hooks here",
    "_get_backward_pre_hooks": "the same",
    "_maybe_warn_non_full_backward_hook": "the same",
    "_slow_forward": "PyTorch's tracer",
    "_replicate_for_data_parallel": "there is one device",
    "ipu": "a device that is not here",
    "mtia": "the same",
    "xpu": "the same",
    "_apply_instance_norm": "a step of PyTorch's forward",
    "_handle_no_batch_input": "the same",
    "_get_no_batch_dim": "the same",
    "_get_in_channels": "a step of PyTorch's lazy initialisation",
    "_get_num_spatial_dims": "the same",
    "_init_flat_weights": "weights of layers are looked up by name: nothing is flattened",
    "_update_flat_weights": "the same",
    "_weights_have_changed": "the same",
    "_flat_weight_refs": "the same",
    "_flat_weights": "the same: a property",
    "_flat_weights_names": "the same: a property",
    "activation_relu_or_gelu": "a property, computed from the activation",
}
BASES = {"_ConvTransposeMixin": "deprecated in PyTorch"}


def moved(value: Any) -> Any:
    """An argument of PyTorch's module as antorcha's; raises TypeError for a function."""
    if isinstance(value, torch.Tensor):
        kind = getattr(antorcha, str(value.dtype).removeprefix("torch."))
        return antorcha.tensor(value.detach().tolist(), dtype=kind)
    if isinstance(value, torch.dtype):
        return getattr(antorcha, str(value).removeprefix("torch."))
    if isinstance(value, (tuple, list)):
        return type(value)([moved(each) for each in value])
    if isinstance(value, dict):
        return {key: moved(each) for key, each in value.items()}
    if callable(value) or isinstance(value, torch.nn.Module):
        raise TypeError("made of functions and other modules")
    return value


def pairs(entry: Any) -> Iterator[tuple[Any, Any]]:
    """The entry's modules, antorcha's and PyTorch's."""
    kind = getattr(antorcha.nn, entry.module_cls.__name__)
    given = entry.module_inputs_func(
        entry, device="cpu", dtype=torch.float32, requires_grad=False, training=True
    )
    for each in given:
        made = each.constructor_input
        try:
            args, kwargs = moved(made.args), moved(made.kwargs)
        except TypeError:
            continue
        yield kind(*args, **kwargs), entry.module_cls(*made.args, **made.kwargs)


def differences(mine: Any, theirs: Any) -> Iterator[str]:
    """What the one has and the other lacks, or has otherwise."""
    for name in dir(theirs):
        if not name.startswith("__") and name not in EXPLAINED and not hasattr(mine, name):
            yield f"{name} is missing"
    for name, value in vars(theirs).items():
        if name in EXPLAINED or name not in vars(mine):
            if name not in EXPLAINED:
                yield f"{name} is no attribute of the instance"
            continue
        own = vars(mine)[name]
        if isinstance(value, dict):
            # (hooks are kept by numbers, counted through the whole process)
            keys = [len(d) if "hooks" in name else list(d) for d in (value, own)]
            if keys[0] != keys[1]:
                yield f"{name} has {list(own)}, not {list(value)}"
        elif type(value).__module__ == "builtins" and not callable(value):
            same = (type(own).__name__, repr(own)) == (type(value).__name__, repr(value))
            yield from () if same else [f"{name} is {own!r}, not {value!r}"]
    extra = [name for name in vars(mine) if name not in vars(theirs)]
    if extra:
        yield f"has also {extra}"
    bases = [{base.__name__ for base in type(m).__mro__} for m in (mine, theirs)]
    if bases[1] - bases[0] - set(BASES):
        yield f"is no {bases[1] - bases[0]}"
    if set(getattr(mine, "__constants__", ())) != set(getattr(theirs, "__constants__", ())):
        yield f"has the constants {mine.__constants__}, not {theirs.__constants__}"


def test_modules_have_pytorchs_attributes() -> None:
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for entry in samples.modules():
            for mine, theirs in pairs(entry):
                found += [f"{entry.name}: {said}" for said in differences(mine, theirs)]
    assert not found, "\n".join(dict.fromkeys(found))


CLASSES = """Conv2d ConvTranspose1d BatchNorm2d SyncBatchNorm InstanceNorm1d LazyBatchNorm2d
LazyConv2d CrossEntropyLoss NLLLoss2d BCEWithLogitsLoss LSTM GRUCell ZeroPad2d ReflectionPad1d
MaxPool2d AvgPool1d AdaptiveMaxPool3d LPPool1d MaxUnpool2d Dropout2d FeatureAlphaDropout ReLU6
Softmax2d MultiheadAttention TransformerEncoderLayer UpsamplingNearest2d Linear Identity Sequential
ModuleList ParameterDict DataParallel Container LinearCrossEntropyLoss Buffer Parameter""".split()
PRIVATE = {
    "conv": ("_ConvNd", "_ConvTransposeNd"),
    "batchnorm": ("_NormBase", "_BatchNorm"),
    "instancenorm": ("_InstanceNorm",),
    "loss": ("_Loss", "_WeightedLoss"),
    "dropout": ("_DropoutNd",),
    "pooling": ("_MaxPoolNd", "_AvgPoolNd", "_AdaptiveMaxPoolNd", "_AdaptiveAvgPoolNd", "_LPPoolNd",
                "_MaxUnpoolNd"),
    "padding": ("_ConstantPadNd", "_ReflectionPadNd", "_ReplicationPadNd", "_CircularPadNd"),
    "rnn": ("RNNBase", "RNNCellBase"),
    "lazy": ("LazyModuleMixin",),
    "activation": ("Threshold", "Hardtanh"),
    "container": ("Sequential", "ModuleList"),
}  # fmt: skip


def test_classes_stand_to_each_other_as_pytorchs() -> None:
    tables = []
    for library in (antorcha, torch):
        nn = library.nn
        kinds = {name: getattr(nn, name) for name in CLASSES}
        for file, names in PRIVATE.items():
            kinds |= {name: getattr(getattr(nn.modules, file), name) for name in names}
        tables.append({(a, b) for a in kinds for b in kinds if issubclass(kinds[a], kinds[b])})
    assert tables[0] ^ tables[1] == set()


def test_layers_with_a_weight_of_their_own() -> None:
    """Weight standardisation, as timm and many others write it."""
    layer = antorcha.nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect")
    x = antorcha.randn(1, 2, 5, 5)
    assert antorcha.equal(layer._conv_forward(x, layer.weight, layer.bias), layer(x))
    doubled = layer._conv_forward(x, layer.weight * 2, None)
    assert antorcha.allclose(doubled, 2 * layer._conv_forward(x, layer.weight, None), atol=1e-5)
