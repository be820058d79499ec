"""Whole modules, optimizers and other objects with ``weights_only=False``, both ways."""

from __future__ import annotations

import argparse
import collections
import copy
import dataclasses
import datetime
import enum
import functools
import inspect
import io
import os
import pathlib
import pickle
import re
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.serialization.homes import torch_module

SHAPES: dict[str, tuple[int, ...]] = {
    "convolutional": (2, 3, 8, 8), "lstm": (5, 2, 3), "gru": (5, 2, 3), "rnn": (5, 2, 3),
    "lstm cell": (2, 3), "encoder": (2, 5, 8), "encoder, gelu": (2, 5, 8),
    "encoder, a function": (2, 5, 8), "encoder, an op": (2, 5, 8), "layer norm": (2, 4),
    "group norm": (2, 4, 3), "instance norm": (2, 4, 3), "rms norm": (2, 4), "prelu": (2, 3),
    "gelu": (2, 3), "transposed": (1, 2, 4, 4), "padding": (1, 2, 3, 3), "upsample": (1, 2, 3, 3),
    "pixels": (1, 4, 3, 3), "dropout": (2, 4), "unflatten": (2, 4), "unfold": (1, 2, 4, 4),
    "weight norm": (2, 3), "pooling": (1, 2, 3, 3), "average": (1, 2), "data parallel": (2, 2),
}  # fmt: skip


def things(library: Any) -> dict[str, Any]:
    nn, optim = library.nn, library.optim
    data, distributions = library.utils.data, library.distributions
    parameters = [library.ones(2, requires_grad=True)]
    sgd = functools.partial(optim.SGD, parameters, lr=0.1)
    layer = functools.partial(nn.TransformerEncoderLayer, 8, 2, 16, dropout=0.0)
    dataset = data.TensorDataset(library.ones(3, 2))
    return {
        "convolutional": nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(36, 5),
        ),
        "lstm": nn.LSTM(3, 4, 2, bidirectional=True), "gru": nn.GRU(3, 4), "rnn": nn.RNN(3, 4),
        "lstm cell": nn.LSTMCell(3, 4),
        "encoder": nn.TransformerEncoder(layer(batch_first=True), 2),
        "encoder, gelu": layer(activation="gelu"),
        "encoder, a function": layer(activation=nn.functional.silu),
        "encoder, an op": layer(activation=library.relu), "transformer": nn.Transformer(8, 2, 1, 1),
        "layer norm": nn.LayerNorm(4), "group norm": nn.GroupNorm(2, 4),
        "instance norm": nn.InstanceNorm1d(4, affine=True), "rms norm": nn.RMSNorm(4),
        "prelu": nn.PReLU(), "gelu": nn.GELU(), "bilinear": nn.Bilinear(2, 3, 4),
        "embedding": nn.Embedding(4, 3, padding_idx=0), "bag": nn.EmbeddingBag(4, 3),
        "module list": nn.ModuleList([nn.Linear(1, 2)]),
        "module dict": nn.ModuleDict({"a": nn.Linear(1, 2)}),
        "parameter list": nn.ParameterList([library.ones(2)]),
        "parameter dict": nn.ParameterDict({"a": library.ones(2)}),
        "transposed": nn.ConvTranspose2d(2, 3, 3), "padding": nn.ConstantPad2d(1, 0.5),
        "upsample": nn.Upsample(scale_factor=2), "pixels": nn.PixelShuffle(2),
        "loss": nn.CrossEntropyLoss(label_smoothing=0.1),
        "weighted loss": nn.BCEWithLogitsLoss(pos_weight=library.ones(2)),
        "attention": nn.MultiheadAttention(4, 2), "dropout": nn.Dropout(0.2),
        "unflatten": nn.Unflatten(1, (2, 2)), "unfold": nn.Unfold(2),
        "lazy": nn.LazyLinear(3), "lazy convolution": nn.LazyConv2d(3, 2),
        "lazy norm": nn.LazyBatchNorm1d(), "weight norm": nn.utils.weight_norm(nn.Linear(3, 4)),
        "pooling": nn.AdaptiveAvgPool2d(1), "synchronized": nn.SyncBatchNorm(3),
        "data parallel": nn.DataParallel(nn.Linear(2, 3)),
        "triplets": nn.TripletMarginWithDistanceLoss(
            distance_function=nn.functional.pairwise_distance
        ),
        "average": optim.swa_utils.AveragedModel(nn.Linear(2, 3)),
        "sgd": sgd(momentum=0.9), "adamw": optim.AdamW(parameters),
        "adafactor": optim.Adafactor(parameters),
        "cosine": optim.lr_scheduler.CosineAnnealingLR(sgd(), 10),
        "one cycle": optim.lr_scheduler.OneCycleLR(sgd(), 0.1, 10),
        "plateau": optim.lr_scheduler.ReduceLROnPlateau(sgd()),
        "normal": distributions.Normal(0.0, 1.0),
        "categorical": distributions.Categorical(library.ones(3)),
        "transformed": distributions.TransformedDistribution(
            distributions.Normal(0.0, 1.0), [distributions.ExpTransform()]
        ),
        "dataset": dataset, "loader": data.DataLoader(dataset, batch_size=2),
        "generator": library.Generator().manual_seed(5), "layout": library.strided,
    }  # fmt: skip


def through(value: Any, writer: Any, reader: Any, **options: Any) -> Any:
    file = io.BytesIO()
    writer.save(value, file, **options)
    file.seek(0)
    return reader.load(file, weights_only=False)


def outputs(module: Any, library: Any, shape: tuple[int, ...]) -> list[Any]:
    module.eval()
    count = int(np.prod(shape))
    made = module(library.arange(float(count)).view(shape) / count)
    parts = made if isinstance(made, tuple) else (made,)
    return [part.detach().numpy() for part in parts if hasattr(part, "detach")]


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
def test_objects_go_both_ways() -> None:
    torch = pytest.importorskip("torch")
    for writer, reader in ((torch, antorcha), (antorcha, torch), (antorcha, antorcha)):
        writer.manual_seed(0)
        for name, value in things(writer).items():
            loaded = through(value, writer, reader)
            where = f"{name}: {writer.__name__} -> {reader.__name__}"
            assert type(loaded).__name__ == type(value).__name__, where
            if name in SHAPES:
                expected, got = (outputs(m, lib, SHAPES[name])
                                 for m, lib in ((value, writer), (loaded, reader)))  # fmt: skip
                for a, b in zip(expected, got, strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5, err_msg=where)
            if hasattr(value, "state_dict"):
                assert list(loaded.state_dict()) == list(value.state_dict()), where
            back = through(loaded, reader, writer)
            assert type(back) is type(value), where
            if name == "generator" and reader is not antorcha:
                continue  # PyTorch asks for its state before it has read it
            old = through(value, writer, reader, _use_new_zipfile_serialization=False)
            assert type(old) is type(loaded), where


@pytest.mark.oracle
def test_a_lazy_module_goes_on() -> None:
    torch = pytest.importorskip("torch")
    for writer, reader in ((torch, antorcha), (antorcha, torch)):
        loaded = through(writer.nn.LazyLinear(3), writer, reader)
        assert loaded(reader.ones(2, 4)).shape == (2, 3)
        assert type(loaded) is reader.nn.Linear


@pytest.mark.oracle
def test_generators_go_on() -> None:
    torch = pytest.importorskip("torch")
    for writer, reader in ((torch, antorcha), (antorcha, torch)):
        generator = writer.Generator().manual_seed(3)
        writer.rand(5, generator=generator)
        loaded = through(generator, writer, reader)
        assert loaded.initial_seed() == 3
        expected = writer.rand(4, generator=generator).tolist()
        assert reader.rand(4, generator=loaded).tolist() == expected


@pytest.mark.oracle
def test_classes_are_where_pytorch_has_them() -> None:
    torch = pytest.importorskip("torch")
    packages = (antorcha.nn, antorcha.optim, antorcha.optim.lr_scheduler, antorcha.distributions,
                antorcha.utils.data)  # fmt: skip
    for package in packages:
        theirs: Any = torch
        for part in package.__name__.replace("antorcha.data", "utils.data").split("."):
            theirs = getattr(theirs, part) if part != "antorcha" else theirs
        for name, kind in vars(package).items():
            found = getattr(theirs, name, None)
            both = inspect.isclass(kind) and inspect.isclass(found) and not name.startswith("_")
            homes = f"{kind.__module__} {found.__module__}" if both else ""
            if homes.startswith("antorcha.") and " torch" in homes:
                assert torch_module(kind) == found.__module__, name


class Net(antorcha.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = antorcha.nn.Linear(2, 3)
        self.activation = antorcha.nn.functional.relu
        self.make = functools.partial(antorcha.nn.LayerNorm, eps=1e-6)

    def forward(self, x: Any) -> Any:
        return self.activation(self.inner(x))


class Colour(enum.Enum):
    RED = "red"


class OldColour(enum.Enum):
    """Pickled as Python before 3.11.4 pickles every Enum."""

    RED = "red"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return getattr, (type(self), self.name)


@dataclasses.dataclass
class Config:
    depth: int
    colour: Colour | OldColour


Pair = collections.namedtuple("Pair", "a b")


class Slots:
    __slots__ = ("x",)


class Shown(dict[str, Any]):
    pass


class Own:
    def __init__(self, x: int) -> None:
        self.x = x

    def __reduce__(self) -> Any:
        return Own, (self.x,)


def test_the_programs_own_classes() -> None:
    slots = Slots()
    slots.x = 1
    value = {
        "net": Net(), "config": Config(3, Colour.RED), "pair": Pair(1, antorcha.ones(2)),
        "old": OldColour.RED,
        "namespace": argparse.Namespace(lr=0.1), "slots": slots, "shown": Shown(a=1),
        "own": Own(7), "when": datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
        "path": pathlib.PurePosixPath("a/b"), "many": collections.deque([1, 2], maxlen=3),
        "array": np.arange(6.0).reshape(2, 3)[:, 1:], "scalar": np.float64(2.5),
        "names": np.array(["a", "bc"]), "objects": np.array([1, "x", None], dtype=object),
        "kind": np.dtype("int16"), "structured": np.zeros(2, dtype=[("a", "i4"), ("b", "f8")]),
        "defaults": collections.defaultdict(list, {"a": [1]}), "range": range(3),
    }  # fmt: skip
    for protocol in (2, 4, 5):
        loaded = through(value, antorcha, antorcha, pickle_protocol=protocol)
        x = antorcha.ones(1, 2)
        assert loaded["net"](x).tolist() == value["net"](x).tolist()
        assert loaded["net"].make(2).eps == 1e-6
        assert loaded["config"] == value["config"]
        assert loaded["old"] is OldColour.RED
        assert loaded["pair"].b.tolist() == [1, 1]
        assert loaded["slots"].x == 1
        assert loaded["own"].x == 7
        assert type(loaded["shown"]) is Shown
        for name in ("namespace", "shown", "when", "path", "many", "scalar", "kind", "defaults",
                     "range"):  # fmt: skip
            assert loaded[name] == value[name], name
        for name in ("array", "names", "objects", "structured"):
            np.testing.assert_array_equal(loaded[name], value[name])
            assert loaded[name].dtype == value[name].dtype
        file = io.BytesIO()
        antorcha.save(value, file, pickle_protocol=protocol)
        with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
            antorcha.load(io.BytesIO(file.getvalue()))
        unsafe = antorcha.serialization.get_unsafe_globals_in_checkpoint
        names = unsafe(io.BytesIO(file.getvalue()))
        assert {f"{__name__}.Config", "argparse.Namespace", "datetime.datetime"} <= set(names)


def test_a_trusted_file_runs_no_function(tmp_path: pathlib.Path) -> None:
    place = tmp_path / "made"
    code = b"\x80\x02c%s\n%s\n(X%s\x00\x00\x00%stR."
    size = bytes([len(str(place))])
    for module, name in ((b"os", b"mkdir"), (b"posix", b"mkdir"), (b"pathlib", b"os.mkdir"),
                         (b"builtins", b"open"), (b"io", b"open"), (b"shutil", b"os.mkdir"),
                         (b"subprocess", b"Popen"), (b"numpy", b"memmap"), (b"numpy", b"save"),
                         (b"antorcha.core.files", b"os.mkdir"), (b"torch", b"save"),
                         (b"torch.nn", b"Module.__init__"), (b"pickle", b"loads"),
                         (__name__.encode(), b"os.mkdir"), (__name__.encode(), b"through"),
                         (b"pytest", b"main"), (b"operator", b"call"),
                         (b"torch.hub", b"load"), (b"functools", b"reduce")):  # fmt: skip
        first = b"".join(pickle.dumps(each, protocol=2) for each in (0x1950A86A20F9469CFC6C, 1001,
                                                                     {}))  # fmt: skip
        file = first + code % (module, name, size, str(place).encode())
        with pytest.raises((pickle.UnpicklingError, NotImplementedError)):
            antorcha.load(io.BytesIO(file), weights_only=False)
        assert not place.exists()


class Reaching:
    """Pickled as another attribute of an Enum than a member."""

    def __reduce__(self) -> Any:
        return getattr, (Colour, "__class__")


@pytest.mark.parametrize("trust", [False, True])
def test_of_an_enum_only_members_are_had(trust: bool) -> None:
    file = io.BytesIO()
    antorcha.save(Reaching(), file)
    with (
        antorcha.serialization.safe_globals([Colour]),
        pytest.raises(pickle.UnpicklingError, match="getattr of '__class__' is not allowed"),
    ):
        antorcha.load(io.BytesIO(file.getvalue()), weights_only=not trust)


@pytest.mark.parametrize("colour", [Colour, OldColour])
def test_what_the_errors_say(colour: Any) -> None:
    file = io.BytesIO()
    antorcha.save(Config(1, colour.RED), file)
    with pytest.raises(pickle.UnpicklingError) as caught:
        antorcha.load(io.BytesIO(file.getvalue()))
    message = str(caught.value)
    assert message.startswith("Weights only load failed. This file can still be loaded")
    found = re.search(r"GLOBAL (\S+) was not an allowed global by default", message)
    assert found is not None
    assert found[1] == f"{__name__}.Config"
    assert "torch.serialization.add_safe_globals([Config])" in message
    names = antorcha.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(file.getvalue()))
    assert set(names) == {f"{__name__}.{colour.__name__}", f"{__name__}.Config"}
    with antorcha.serialization.safe_globals([Config, colour]):
        unsafe = antorcha.serialization.get_unsafe_globals_in_checkpoint
        assert unsafe(io.BytesIO(file.getvalue())) == []
        assert antorcha.load(io.BytesIO(file.getvalue())) == Config(1, colour.RED)
    assert antorcha.serialization.get_safe_globals() == []
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        antorcha.load(io.BytesIO(file.getvalue()), pickle_module=pickle, weights_only=True)
    assert antorcha.load(io.BytesIO(file.getvalue()), pickle_module=pickle) == Config(1, colour.RED)
    with antorcha.serialization.safe_globals([(Config,)]), pytest.raises(ValueError):
        antorcha.load(io.BytesIO(file.getvalue()))


@pytest.mark.oracle
def test_names_are_allowed_as_in_pytorch() -> None:
    torch = pytest.importorskip("torch")
    value = {"a": np.float64(1.5), "b": np.arange(3), "c": torch.nn.ReLU()}
    file = io.BytesIO()
    torch.save(value, file)
    raw = file.getvalue()
    reconstruct: Any = np.zeros(0).__reduce__()[0]
    scalar: Any = np.float64(0).__reduce__()[0]
    allowed = [reconstruct, scalar, np.ndarray, np.dtype, type(np.dtype("f8")),
               type(np.dtype("i8"))]  # fmt: skip
    for library in (torch, antorcha):
        more = [*allowed, library.nn.ReLU, set]
        with library.serialization.safe_globals(more):
            assert library.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(raw)) == []
            loaded = library.load(io.BytesIO(raw))
        assert loaded["a"] == 1.5
        assert loaded["b"].tolist() == [0, 1, 2]
        assert type(loaded["c"]) is library.nn.ReLU
    unsafe = [set(library.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(raw)))
              for library in (torch, antorcha)]  # fmt: skip
    assert unsafe[0] == unsafe[1]


@pytest.mark.oracle
def test_quantized_tensors_are_refused_by_name() -> None:
    torch = pytest.importorskip("torch")
    file = io.BytesIO()
    torch.save(torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), file)
    for trust in (True, False):
        file.seek(0)
        with pytest.raises(NotImplementedError, match="quantized"):
            antorcha.load(file, weights_only=not trust)


def test_python_pickles_and_copies() -> None:
    module = antorcha.nn.Sequential(antorcha.nn.LSTM(2, 3), antorcha.nn.LazyLinear(2))
    for value in (module, antorcha.optim.Adam(antorcha.nn.Linear(1, 2).parameters()),
                  antorcha.ones(2).storage(), antorcha.ones(2).untyped_storage(),
                  antorcha.ones(2, dtype=antorcha.bfloat16)):  # fmt: skip
        for made in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
            assert type(made) is type(value)
            assert repr(made) == repr(value)
    shared = antorcha.arange(4.0)
    storage, tensor, view = copy.deepcopy((shared.untyped_storage(), shared, shared[1:3]))
    assert storage.data_ptr() == tensor.data_ptr() == view.data_ptr() - 4 != shared.data_ptr()


@pytest.mark.oracle
def test_pytorchs_python_pickles_under_its_name() -> None:
    """Python's own pickle of PyTorch's objects, where antorcha is served as torch."""
    torch = pytest.importorskip("torch")
    content = pickle.dumps({"t": torch.arange(3.0), "m": torch.nn.Linear(2, 1), "d": torch.int8,
                            "s": torch.Size([2]), "o": torch.optim.SGD([torch.ones(1)], lr=0.1),
                            "v": torch.device("cpu"),
                            "p": torch.nn.Parameter(torch.ones(2))})  # fmt: skip
    import subprocess
    import sys

    program = (
        "import antorcha.torch_alias as a; a.install(hide=True); import pickle, sys, torch\n"
        "d = pickle.loads(sys.stdin.buffer.read())\n"
        "print(d['t'].tolist(), d['m'](torch.ones(1, 2)).shape, d['d'], d['s'], d['v'], d['p'])\n"
        "print(d['o'].param_groups[0]['lr'], type(d['m']).__module__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=content, capture_output=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().splitlines() == [
        "[0.0, 1.0, 2.0] torch.Size([1, 1]) torch.int8 torch.Size([2]) cpu Parameter containing:",
        "tensor([1., 1.], requires_grad=True)",
        "0.1 antorcha.nn.linear",
    ]


def test_random_number_generators_of_numpy() -> None:
    kinds = (np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox,
             np.random.SFC64)  # fmt: skip
    for each in (*[np.random.Generator(kind(3)) for kind in kinds], np.random.RandomState(4)):
        file = io.BytesIO()
        antorcha.save({"generator": each}, file)
        found = antorcha.load(io.BytesIO(file.getvalue()), weights_only=False)["generator"]
        assert type(found) is type(each)
        assert found.random(5).tolist() == each.random(5).tolist()
        with pytest.raises(antorcha.serialization.UnpicklingError):
            antorcha.load(io.BytesIO(file.getvalue()))


class Maker:
    """Makes counters; a pickle holds one, and calls it."""

    def __call__(self, start: int) -> Counter:
        found = Counter()
        found.start = start
        return found


class Counter:
    start = 0

    def __reduce__(self) -> Any:
        return Maker(), (self.start,)


def test_an_object_of_the_programs_may_make_others() -> None:
    counter = Counter()
    counter.start = 5
    file = io.BytesIO()
    antorcha.save([counter, inspect.Parameter.empty], file)
    found, empty = antorcha.load(io.BytesIO(file.getvalue()), weights_only=False)
    assert (type(found), found.start) == (Counter, 5)
    assert empty is inspect.Parameter.empty
    with pytest.raises(antorcha.serialization.UnpicklingError):
        antorcha.load(io.BytesIO(file.getvalue()))
