"""Makes modules of random arguments and gives them random inputs; run by test_fuzz.py in a process.

Each case is drawn from (seed, number): a class of ``antorcha.nn``, arguments that may fit its
parameters' names, an input whose dims may fit those, forward in training or evaluation, backward,
``state_dict``, ``repr``. To run one again::

    PYTHONPATH=src:. python -m tests.fuzz.modules --seed 1 --only 47
"""

from __future__ import annotations

import argparse
import faulthandler
import inspect
import os
import resource
import sys
import warnings
from typing import Any

from tests.fuzz.child import CONFUSED, GIGABYTE, Fuzzer, describe, tell

SECONDS = 20
SKIPPED = {"Module", "DataParallel", "Container", "Buffer", "Parameter", "UninitializedParameter",
           "UninitializedBuffer", "LinearCrossEntropyOptions"}  # fmt: skip
CHANNELS = {"in_channels", "out_channels", "num_features", "num_channels", "in_features",
            "out_features", "input_size", "hidden_size", "embed_dim", "d_model", "num_embeddings",
            "embedding_dim", "in1_features", "in2_features", "num_classes", "n_classes",
            "num_parameters"}  # fmt: skip
WINDOWS = {"kernel_size", "stride", "padding", "dilation", "output_padding", "output_size",
           "size", "normalized_shape", "unflattened_size", "shape"}  # fmt: skip
WORDS = {
    "reduction": ("mean", "sum", "none", "batchmean", "x"),
    "padding_mode": ("zeros", "reflect", "replicate", "circular", "x"),
    "mode": ("nearest", "linear", "bilinear", "bicubic", "trilinear", "area", "sum", "mean", "max"),
    "nonlinearity": ("tanh", "relu", "x"), "approximate": ("none", "tanh", "x"),
    "activation": ("relu", "gelu", "x"),
}  # fmt: skip


class ModuleFuzzer(Fuzzer):
    """Draws modules and inputs."""

    def find_targets(self) -> list[Any]:
        nn = self.torch.nn
        kinds = [value for name, value in sorted(vars(nn).items())
                 if isinstance(value, type) and name not in SKIPPED
                 and issubclass(value, nn.Module)]  # fmt: skip
        return [(kind.__name__, kind, inspect.signature(kind.__init__)) for kind in kinds]

    def argument(self, name: str, default: Any) -> Any:
        """A value that a parameter of this name may well want."""
        luck = self.random.random()
        if luck < 0.05:
            return self.anything()
        if luck < 0.08:
            return self.number()
        if name in WORDS:
            return self.pick(*WORDS[name])
        if name in WINDOWS:
            return self.pick(1, 1, 2, 2, 3, 3, 0, (2,), (1, 2), (2, 1), (3, 3), (1, 2, 1),
                             self.int(), self.ints(), "same", "valid", None)  # fmt: skip
        if name in CHANNELS or name in ("num_heads", "nhead", "num_groups", "groups", "num_layers"):
            return self.pick(1, 2, 2, 3, 4, 4, 6, 8, 8, 0, self.int())
        if isinstance(default, bool):
            return self.pick(True, False)
        if isinstance(default, float):
            return self.pick(default, 0.0, 0.1, 0.5, 1.0, 2.0, -1.0, self.number())
        if isinstance(default, int):
            return self.pick(default, 1, 2, 3, self.int())
        if name in ("weight", "pos_weight", "_weight"):
            return self.pick(None, self.tensor())
        if name == "device":
            return self.pick(None, "cpu", "meta")
        if name == "dtype":
            return self.pick(None, None, *self.dtypes)
        if name == "cutoffs":
            return self.pick([1], [1, 2], [2, 4], self.ints())
        if name.endswith("layer"):
            return self.torch.nn.TransformerEncoderLayer(4, 2, 4)
        return self.pick(default, None, 1, 2, self.anything())

    def construction(self, signature: Any) -> tuple[list[Any], dict[str, Any]]:
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for param in list(signature.parameters.values())[1:]:
            if param.kind is param.VAR_POSITIONAL:
                args += [self.torch.nn.Linear(2, 2) for _ in range(self.pick(0, 1, 2))]
            elif param.kind is param.VAR_KEYWORD:
                continue
            elif param.default is param.empty:
                value = self.argument(param.name, None)
                if param.kind is param.KEYWORD_ONLY:
                    kwargs[param.name] = value
                else:
                    args.append(value)
            elif self.random.random() < 0.3:
                kwargs[param.name] = self.argument(param.name, param.default)
        return args, kwargs

    def inputs(self, module: Any) -> list[Any]:
        """As many inputs as forward needs; the channels of the first are often the module's."""
        channels = [value for name, value in vars(module).items()
                    if name in CHANNELS and isinstance(value, int) and 0 <= value < 64]  # fmt: skip
        dims = [self.pick(1, 2, 3, 4, 5, 7) for _ in range(self.pick(1, 2, 3, 3, 4, 4, 5))]
        if channels and dims and self.random.random() < 0.8:
            places = (1, -1, 0) if len(dims) > 1 else (0,)
            dims[self.pick(*places)] = self.pick(*channels)
        wanted = [p for p in inspect.signature(module.forward).parameters.values()
                  if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]  # fmt: skip
        count = max(len(wanted), 1) + (self.random.random() < 0.1)
        return [self.input(tuple(dims)) for _ in range(count)]

    def input(self, dims: tuple[int, ...]) -> Any:
        torch = self.torch
        luck = self.random.random()
        if luck < 0.1:
            return self.tensor()
        if luck < 0.2:
            return self.tensor(dims)
        if luck < 0.23:
            return self.anything()
        if luck < 0.4:
            return torch.randint(0, self.pick(1, 2, 4, 9), dims)
        return torch.randn(dims, requires_grad=self.pick(True, False))


def exercise(fuzzer: ModuleFuzzer, number: int, say: Any) -> None:
    """One case; ``say`` hears what comes before it does."""
    fuzzer.random.seed(f"{fuzzer.seed}/{number}")
    torch = fuzzer.torch
    name, kind, signature = fuzzer.random.choice(fuzzer.targets)
    args, kwargs = fuzzer.construction(signature)
    given = ", ".join([*map(describe, args), *[f"{k}={describe(v)}" for k, v in kwargs.items()]])
    say(f"{name}({given})")
    module = kind(*args, **kwargs)
    repr(module)
    if fuzzer.random.random() < 0.3:
        module.eval()
    for _ in range(2):
        inputs = fuzzer.inputs(module)
        say(f"{name}({given})({', '.join(map(describe, inputs))})")
        try:
            result = module(*inputs)
            results = result if isinstance(result, tuple) else (result,)
            for each in results:
                if isinstance(each, torch.Tensor) and each.numel() < 1 << 16:
                    repr(each)
                    if each.requires_grad:
                        each.sum().backward(retain_graph=True)
        except CONFUSED:
            raise
        except Exception:  # the next inputs may fit
            continue
    module.load_state_dict(module.state_dict())


def is_ours(error: BaseException) -> bool:
    """Is it confusion? Modules assert what PyTorch's assert, in words."""
    return isinstance(error, SystemError) or (isinstance(error, AssertionError) and not str(error))


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--end", type=int, default=500)
    parser.add_argument("--only", type=int)
    parser.add_argument("--log", default=os.devnull)
    options = parser.parse_args()
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (6 * GIGABYTE, 6 * GIGABYTE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import antorcha

    warnings.simplefilter("ignore")
    fuzzer = ModuleFuzzer(antorcha, options.seed)
    if options.only is not None:
        exercise(fuzzer, options.only, print)
        return
    fine = 0
    with open(options.log, "w") as log:
        for number in range(options.first, options.end):
            words = ""

            def say(what: str, number: int = number) -> None:
                nonlocal words
                words = f"{fuzzer.seed} {number} {what}"
                log.seek(0)
                log.write(f"{words}\n"[:4000].ljust(4000))
                log.flush()

            faulthandler.dump_traceback_later(SECONDS, exit=True)
            try:
                exercise(fuzzer, number, say)
                fine += 1
            except Exception as error:
                if is_ours(error):
                    tell("confused", f"{words}: {error!r}"[:600])
            finally:
                faulthandler.cancel_dump_traceback_later()
            antorcha.set_grad_enabled(True)
    print(f"{fine} fine", file=sys.stderr)


if __name__ == "__main__":
    main()
