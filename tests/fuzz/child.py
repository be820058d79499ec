"""Throws random arguments at everything, so many times; run by test_fuzz.py in a process.

Each call stands alone: its function and arguments are drawn from (seed, number), and written to the
log before it runs, so that a dead process leaves its last words. To run one call again::

    PYTHONPATH=src:. python -m tests.fuzz.child --seed 1 --only 4711

Exceptions are what bad arguments should give. SystemError and AssertionError are not: they are the
interpreter's or our own confusion, and are reported. A process that dies by a signal is a failure.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import json
import math
import os
import random
import resource
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

GIGABYTE = 1 << 30
CONFUSED = (SystemError, AssertionError)
EXPECTED = ("stream should be None", "Torch not compiled with")  # PyTorch asserts these too
POOR = (KeyError, AttributeError, UnboundLocalError, RecursionError, ZeroDivisionError, NameError)
SKIPPED = {
    "save", "load", "compile", "set_default_device", "set_default_dtype", "set_num_threads",
    "set_default_tensor_type", "set_printoptions", "set_num_interop_threads", "empty_cache",
    "share_memory_", "__class__", "__init_subclass__", "__new__", "__getattribute__",
    "__setattr__", "__delattr__", "__torch_function__", "set_grad_enabled", "inference_mode",
    "no_grad", "enable_grad", "__init__", "kernel", "set_flush_denormal", "device", "dtype",
    "layout", "memory_format", "set_float32_matmul_precision", "use_deterministic_algorithms",
    "set_rng_state", "finfo", "iinfo", "set_deterministic_debug_mode", "__reduce_ex__",
    "manual_seed", "seed", "set_warn_always", "__dlpack__", "__getattr__", "__dir__", "_assert",
}  # fmt: skip


class BadIndex:
    """An object whose ``__index__`` raises."""

    def __index__(self) -> int:
        raise ZeroDivisionError("no index today")

    def __float__(self) -> float:
        raise ZeroDivisionError("no float today")

    def __len__(self) -> int:
        return 3

    def __getitem__(self, k: Any) -> Any:
        raise ZeroDivisionError("no items today")


class Liar:
    """Says that it has items, a shape and an item() that it has not."""

    ndim = 0
    shape = (3, -1)

    def item(self) -> Any:
        return self

    def __len__(self) -> int:
        return 1 << 40

    def __index__(self) -> int:
        return 1 << 70


class Fuzzer:
    """Draws calls. ``torch`` is antorcha."""

    def __init__(self, torch: Any, seed: int) -> None:
        self.torch, self.seed = torch, seed
        self.random = random.Random()
        self.dtypes = list(torch.dtypes.ALL)
        self.targets = self.find_targets()

    def find_targets(self) -> list[tuple[str, Callable[..., Any], Any]]:
        """(name, callable, signature or None) of everything public that can be called."""
        from antorcha.ops.kinds.record import NAMESPACES, REGISTRY

        torch = self.torch
        found: dict[str, tuple[Any, Any]] = {}
        for name, op in REGISTRY.items():
            found[f"op {name}"] = (op, getattr(op, "signature", None))
            if getattr(op, "inplace", None) is not None:
                found[f"op {name}_"] = (op.inplace, op.signature)
        for space, functions in NAMESPACES.items():
            for name, fn in functions.items():
                found[f"{space}.{name}"] = (fn, getattr(fn, "signature", None))
        for name, method in torch.Tensor.__dict__.items():
            if isinstance(method, types.FunctionType):
                op = REGISTRY.get(name.rstrip("_"))
                found[f"Tensor.{name}"] = (method, getattr(op, "signature", None))
        for name in (*dir(torch), "from_dlpack"):
            value = getattr(torch, name, None)
            if isinstance(value, types.FunctionType):
                found.setdefault(f"torch.{name}", (value, None))
        return [
            (name, fn, signature)
            for name, (fn, signature) in sorted(found.items())
            if name.split(" ")[-1].split(".")[-1] not in SKIPPED
        ]

    # ------------------------------------------------------------------------------ values
    def pick(self, *choices: Any) -> Any:
        return choices[self.random.randrange(len(choices))]

    def size(self) -> int:
        return self.pick(0, 1, 1, 2, 3, 3, 4, 5, 8, 17, 33)

    def shape(self) -> tuple[int, ...]:
        return tuple([self.size() for _ in range(self.pick(0, 1, 1, 2, 2, 3, 4))])

    def tensor(self, shape: Any = None, kinds: str = "") -> Any:
        torch, rnd = self.torch, self.random
        shape = self.shape() if shape is None else shape
        choices = [d for d in self.dtypes if not kinds or d.kind in kinds]
        dtype = torch.float32 if rnd.random() < 0.3 and not kinds else rnd.choice(choices)
        count = math.prod(shape)
        values = [self.pick(0, 1, 2, -1, 3, 0.5, -2.5, 100, 7) for _ in range(count)]
        if rnd.random() < 0.15:
            values = [self.pick(math.nan, math.inf, -math.inf, 1e30, -1e300, 0.0) for _ in values]
        made = torch.tensor(values, dtype=torch.float64).reshape(shape).to(dtype)
        way = rnd.random()
        if way < 0.08:
            made = made.to("meta")
        elif way < 0.16 and len(shape) >= 2:
            made = made.transpose(0, -1)
        elif way < 0.24 and shape and shape[0] > 1:
            made = made[:: self.pick(2, 3)]
        elif way < 0.30:
            made = made[None].expand(self.pick(1, 3, 1 << 16), *shape)
        elif way < 0.32:
            made = torch.zeros((1,) * max(len(shape), 1), dtype=dtype).expand(
                self.pick(1 << 22, 1 << 26, 1 << 40, 1 << 62), *[1] * (max(len(shape), 1) - 1)
            )
        elif way < 0.34:
            made = made.detach().clone()
            made.untyped_storage().resize_(0)
        elif way < 0.36 and dtype.kind in "biuf" and not dtype.name.startswith(("bfl", "float8")):
            array = made.numpy().copy()
            array.setflags(write=False)
            made = torch.from_numpy(array)
        if rnd.random() < 0.2 and made.dtype.kind in "fc" and made._base is None:
            made.requires_grad_()
        return made

    def number(self) -> Any:
        return self.pick(
            0, 1, 2, 3, -1, -2, 5, 7, 64, 0.0, 0.5, -1.5, 1e-12, 1e40, True, False, math.nan,
            math.inf, -math.inf, 1 << 31, 1 << 40, (1 << 63) - 1, 1 << 63, -(1 << 63), 1 << 70,
            -(1 << 70), 1 + 2j, complex(math.nan, 1),
        )  # fmt: skip

    def small(self) -> int:
        return self.pick(0, 0, 1, 1, 2, 3, -1, -1, -2, -3, 4, 9)

    def int(self) -> Any:
        return self.small() if self.random.random() < 0.8 else self.number()

    def ints(self) -> Any:
        many = [self.int() for _ in range(self.pick(0, 1, 1, 2, 2, 3, 4))]
        return self.pick(tuple(many), tuple(many), many, self.shape())

    def index(self) -> Any:
        def one() -> Any:
            return self.pick(
                self.int(), slice(None), slice(self.int(), self.int(), self.int()), None, ...,
                self.tensor(kinds="i"), self.tensor(kinds="b"), [self.small(), self.small()],
                True, self.tensor(), slice(None, None, 2),
            )  # fmt: skip

        many = [one() for _ in range(self.pick(1, 1, 2, 3))]
        return many[0] if self.random.random() < 0.5 else tuple(many)

    def anything(self) -> Any:
        import numpy as np

        return self.pick(
            self.tensor, self.tensor, self.tensor, self.number, self.int, self.ints, self.index,
            lambda: None, lambda: self.pick("mean", "sum", "none", "a", "", "cuda", "cpu", "meta",
                                            "reference", "xpu:99", "ij,jk->ik", "\0", "é" * 300),
            list, lambda: [[1, 2], [3]], lambda: [[1.0, 2.0], [3.0, 4.0]], lambda: (),
            dict, lambda: {1: 2}, lambda: {1, 2}, BadIndex, Liar, lambda: object(),
            lambda: b"bytes", lambda: range(3), lambda: self.pick(*self.dtypes), lambda: float,
            lambda: np.arange(6.0).reshape(2, 3), lambda: np.float32(2.5), lambda: np.int64(2),
            lambda: np.array(["a"]), lambda: np.arange(4)[::-1], lambda: lambda *a: a[0],
            lambda: self.torch.device("cpu"), lambda: self.torch.strided,
            lambda: self.torch.channels_last, lambda: [self.tensor(), self.tensor()],
            lambda: self.torch.Generator(), lambda: self.torch.Size([2, 3]), lambda: int,
        )()  # fmt: skip

    def of_kind(self, kind: str) -> Any:
        """A value that may well be what a parameter of this kind wants."""
        return {
            "Tensor": self.tensor, "OptTensor": lambda: self.pick(None, self.tensor()),
            "Operand": lambda: self.pick(self.tensor, self.number)(), "Power": self.number,
            "Number": self.number, "StaticNumber": self.number, "Int": self.int,
            "EndNumber": self.number, "Dim": self.small,
            "OptInt": lambda: self.pick(None, self.int()), "OptFloat": self.number,
            "Dims": lambda: self.pick(self.small(), self.ints(), None), "Ints": self.ints,
            "Shape": self.ints, "Float": self.number, "Floats": lambda: [self.number()],
            "Bool": lambda: self.pick(True, False), "Str": lambda: self.pick("mean", "sum", "none",
            "reflect", "constant", "floor", "trunc", "tanh", "fro", "nuc", "left", "contiguous"),
            "Tensors": lambda: [self.tensor() for _ in range(self.pick(0, 1, 2, 3))],
            "Dtype": lambda: self.pick(None, *self.dtypes),
            "DeviceArg": lambda: self.pick(None, "cpu", "meta"), "Any": self.anything,
        }[kind]()  # fmt: skip

    # ------------------------------------------------------------------------------- calls
    def draw(self, number: int) -> tuple[str, Callable[..., Any], list[Any], dict[str, Any]]:
        """The call of that number."""
        self.random.seed(f"{self.seed}/{number}")
        name, fn, signature = self.random.choice(self.targets)
        if signature is not None and self.random.random() < 0.8:
            args, kwargs = self.by_signature(signature)
        else:
            args = [self.anything() for _ in range(self.pick(0, 1, 2, 2, 3, 4))]
            kwargs = {}
            if name.startswith("Tensor."):
                args.insert(0, self.tensor())
        if name in ("Tensor.__getitem__", "Tensor.__setitem__") and len(args) > 1:
            args[1] = self.index()
        if self.random.random() < 0.05:
            kwargs["out"] = self.pick(self.tensor, self.anything)()
        return name, fn, args, kwargs

    def by_signature(self, signature: Any) -> tuple[list[Any], dict[str, Any]]:
        shared = self.shape()  # operands that fit one another go deeper than those that do not
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for param in signature.params:
            has_default = repr(param.default) != "<no default>"
            if has_default and self.random.random() < 0.5:
                if not param.keyword_only:
                    args.append(param.default)
                continue
            if self.random.random() < 0.08:
                value = self.anything()
            elif param.kind in ("Tensor", "OptTensor", "Operand") and self.random.random() < 0.6:
                value = self.tensor(shared)
            else:
                value = self.of_kind(param.kind)
            if param.keyword_only:
                kwargs[param.name] = value
            else:
                args.append(value)
        return args, kwargs


def describe(value: Any) -> str:
    """A value in a few words; reads no tensor."""
    layout = getattr(value, "_layout", None)
    if layout is not None:
        return (
            f"Tensor({tuple(layout.shape)}, {layout.strides}, {layout.dtype}, {layout.device}, "
            f"storage={value._storage.nbytes}, grad={value._rg})"
        )
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}[{', '.join(map(describe, value[:8]))}]"
    return repr(value)[:80]


def touch(result: Any) -> None:
    """Reads what came out."""
    if hasattr(result, "_layout"):
        if result._layout.numel < 1 << 16:
            repr(result)
        if result.requires_grad and result._layout.numel < 1 << 12 and result.grad_fn is not None:
            result.sum().backward()
    elif isinstance(result, (tuple, list)):
        for each in result[:4]:
            touch(each)


def run(fuzzer: Fuzzer, number: int, log: Any, found: dict[str, Any]) -> None:
    """Makes one call; its description is in the log before."""
    try:
        name, fn, args, kwargs = fuzzer.draw(number)
    except MemoryError:
        return
    given = ", ".join([*map(describe, args), *[f"{k}={describe(v)}" for k, v in kwargs.items()]])
    words = f"{fuzzer.seed} {number} {name}({given})"
    log.seek(0)
    log.write(f"{words}\n"[:4000].ljust(4000))
    log.flush()
    faulthandler.dump_traceback_later(20, exit=True)
    try:
        touch(fn(*args, **kwargs))
        found["fine"] += 1
    except CONFUSED as error:
        if not str(error).startswith(EXPECTED):
            tell("confused", f"{words}: {error!r}"[:600])
    except POOR as error:
        if "today" not in str(error):
            key = f"{name}: {type(error).__name__}: {error}"[:200]
            if key not in found["poor"]:
                found["poor"].add(key)
                tell("poor", f"{key} by {words}"[:600])
    except Exception as error:
        found["errors"][type(error).__name__] += 1
    finally:
        faulthandler.cancel_dump_traceback_later()


def tell(kind: str, words: str) -> None:
    """Says it at once: the process may not live to the end."""
    print(json.dumps({kind: words}), flush=True)


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--end", type=int, default=1000, help="the number after the last call's")
    parser.add_argument("--only", type=int)
    parser.add_argument("--log", default=os.devnull)
    options = parser.parse_args()
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (6 * GIGABYTE, 6 * GIGABYTE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import antorcha

    warnings.simplefilter("ignore")
    fuzzer = Fuzzer(antorcha, options.seed)
    found: dict[str, Any] = {
        "calls": 0, "fine": 0, "poor": set(), "errors": collections.Counter(),
    }  # fmt: skip
    if options.only is not None:
        name, fn, args, kwargs = fuzzer.draw(options.only)
        print(name, *map(describe, args), {k: describe(v) for k, v in kwargs.items()}, flush=True)
        touch(fn(*args, **kwargs))
        return
    with open(options.log, "w") as log:
        for number in range(options.first, options.end):
            run(fuzzer, number, log, found)
            antorcha.set_grad_enabled(True)
            found["calls"] += 1
    print(json.dumps({**found, "poor": len(found["poor"])}), file=sys.stderr)


if __name__ == "__main__":
    main()
