"""How the reference is divided: the namespaces that have a page, and the families of large ones.

An op belongs to the family of the file that its record stands in, any other name to that of the
module that defines it; so a new op finds its page by itself.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from antorcha.ops.kinds.record import Op

OWN = "antorcha"
"""The names that PyTorch does not have."""

SPACES: dict[str, str] = {
    "torch": "Tensors: making them, computing with them, settings.",
    "torch.Tensor": "Attributes and methods of a tensor.",
    "torch.nn": "Layers, losses and containers.",
    "torch.nn.functional": "The functions that layers are made of.",
    "torch.nn.init": "First values of parameters.",
    "torch.nn.utils": "Clipping, parametrizations, pruning, packed sequences.",
    "torch.nn.attention": "Attention with masks and scores of your own.",
    "torch.optim": "Optimizers.",
    "torch.optim.lr_scheduler": "Learning rates that change with time.",
    "torch.optim.swa_utils": "Averages of weights over a training.",
    "torch.autograd": "Differentiation: the graph, functions of your own, checks.",
    "torch.func": "Functions of functions: vmap, grad, vjp, jvp.",
    "torch.linalg": "Linear algebra.",
    "torch.fft": "Discrete Fourier transforms.",
    "torch.special": "Special functions.",
    "torch.signal": "Windows for signals.",
    "torch.random": "Seeds and generators.",
    "torch.distributions": "Probability distributions, transforms and constraints.",
    "torch.sparse": "Tensors that keep only what is not zero.",
    "torch.masked": "Reductions over the elements that a mask chooses.",
    "torch.utils": "Checkpointing, benchmarks, counting operations, and more.",
    "torch.utils.data": "Data sets, samplers and loaders.",
    "torch.serialization": "What saving and loading allow.",
    "torch.amp": "Computing in halves where that is enough.",
    "torch.fx": "Programs as graphs that can be changed.",
    "torch.library": "Ops of your own under a name.",
    "torch.profiler": "Where time and memory go.",
    "torch.testing": "Comparing tensors in tests.",
    "torch.overrides": "Classes that take over functions.",
    "torch.multiprocessing": "Processes that share tensors.",
    "torch.backends": "What the machine and its libraries can do.",
    "torch.accelerator": "The device that computes fastest, if there is one.",
    "torch.cuda": "What programs ask about a GPU.",
    "torch.compiler": "What programs say to a compiler of graphs.",
    "torch.jit": "What programs say to TorchScript.",
    "torch.distributed": "What programs ask before they train on several machines.",
    "torch.others": "Small modules.",
    OWN: "What antorcha has beyond PyTorch.",
    "antorcha.array_api": "The array API standard.",
    "antorcha.data": "Data sets that are made, not downloaded.",
}
"""A page for each, and what it is about."""

FAMILIES: dict[str, dict[str, str]] = {
    "torch": {
        "Creating tensors": "create tensor.create interop dlpack storages random_new",
        "Arithmetic and rounding": "elementwise rounding complexes",
        "Functions of a number": "transcendental special gammas",
        "Comparison and logic": "compare select",
        "Reductions, sorting and scans": "reduce extrema statistics sort scan histograms segments",
        "Shapes and views": "views slices splits join arrange view_copies memory padding metadata "
        "attributes",
        "Indexing and scattering": "index advanced scatter lookup membership",
        "Matrices": "products contract norms factor solve spectra determinant householder lobpcg "
        "lowrank removed distance",
        "Random numbers": "random random_each dropout",
        "Networks": "activation softmax conv pool pool_more norm row_norm recurrent "
        "recurrent_layers attention cross_entropy ctc loss bags grid fold torch_functions "
        "functional resize",
        "Signals": "fourier spectrogram windows gradient",
        "Sparse tensors": "sparse",
        "Modes, settings and types": "",
    },
    "torch.nn": {
        "Modules and containers": "module containers parameter parallel",
        "Linear layers and embeddings": "linear sparse embedding flatten lazy",
        "Convolutions": "conv fold",
        "Pooling and padding": "pooling pooling_more padding",
        "Activations": "activation",
        "Normalization and dropout": "norm dropout",
        "Recurrent layers and transformers": "rnn transformer multihead",
        "Losses and distances": "loss linear_cross_entropy distance adaptive",
        "Images and other layers": "",
    },
    "torch.nn.functional": {
        "Convolutions and pooling": "conv pool pool_more fold",
        "Activation functions": "activation softmax compare transcendental elementwise",
        "Normalization and dropout": "norm row_norm dropout statistics norms",
        "Linear functions, attention and embeddings": "linear attention lookup bags products "
        "multihead recurrent",
        "Losses and distances": "loss losses cross_entropy linear_cross_entropy ctc distance",
        "Images, padding and others": "",
    },
}
"""Of namespaces with several pages: each page's title, and the files whose names stand on it. The
last page of a namespace takes all others."""


def slug(title: str) -> str:
    """A title as a part of a file's name."""
    return "-".join(re.findall(r"[a-z]+", title.lower()))


def page_space(space: str) -> str:
    """The namespace on whose page the names of another one stand."""
    nearest = space
    while nearest and nearest not in SPACES:
        nearest = nearest.rpartition(".")[0]
    return "torch.others" if nearest == "torch" != space else nearest


def family(space: str, op: Op | None, value: Any) -> str:
    """The title of the page, among those of a large namespace, that a name stands on."""
    home = home_file(op)[0] if op is not None else str(getattr(value, "__module__", ""))
    words = home.removesuffix(".py").replace("/", ".").split(".")
    titles = FAMILIES[space]
    for title, files in titles.items():
        known = files.split()
        if words[-1] in known or ".".join(words[-2:]) in known:
            return title
    return next(reversed(titles))


def home_file(op: Op) -> tuple[str, int]:
    """The file of a record below src/antorcha, and its line there."""
    module = op.fn.__module__
    if module == "antorcha.ops.kinds.functions":  # made from a line of a table
        return _line_of_table(op.name)
    line = op.fn.__code__.co_firstlineno
    return module.removeprefix("antorcha.").replace(".", "/") + ".py", line


def _line_of_table(name: str) -> tuple[str, int]:
    for file, text in _sources().items():
        if "kinds.functions import" not in text:
            continue
        found = re.search(rf'^\s*(?:function\()?\(?\s*"{name}[" ]', text, re.MULTILINE)
        found = found or re.search(rf'^\s+"{name}",?$', text, re.MULTILINE)
        found = found or re.search(rf'"{name}"', text)
        if found:
            return f"ops/{file}", text.count("\n", 0, found.end()) + 1
    raise LookupError(f"no file of ops has a line for {name}")


@cache
def _sources() -> dict[str, str]:
    folder = Path(__file__).resolve().parents[2] / "src" / "antorcha" / "ops"
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py"))}
