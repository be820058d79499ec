"""Puts None, and objects of wrong types, in every place of every record; run by test_fuzz.py.

Each record is called as its samples say, but for one argument, which is wrong: by position and by
keyword, as a function, as a method, in place and with ``out=``. To run one call again::

    PYTHONPATH=src:. python -m tests.fuzz.places --only 4711

A wrong argument gives an error of antorcha's own, or is accepted; what raises leaves the tensor
that it was to write as it was.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import resource
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from tests.fuzz.child import CONFUSED, EXPECTED, GIGABYTE, POOR, describe, tell

SECONDS = 20  # that a call may take


class Thing:
    """An object that is no argument of anything."""

    def __repr__(self) -> str:
        return "<a thing>"


Case = tuple[str, Callable[..., Any], list[Any], dict[str, Any], bool, bool]
"""Name, what to call, its arguments; does it write its first argument, can users call it?"""


def wrong(param: Any, value: Any) -> list[Any]:
    """What is put in a parameter's place: None is always among it."""
    import antorcha as torch

    found: list[Any] = [None, Thing(), [None], "text"]
    if not isinstance(value, torch.Tensor):
        found.append(torch.ones(2, 3))
    if isinstance(value, (list, tuple)):
        found += [[*value, None], [*value, Thing()]]
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        found += [1 << 70, 2.5]
    return found


def by_kind(param: Any) -> Any:
    """An argument for a record that has no samples."""
    import antorcha as torch

    if param.name in ("index", "indices", "target"):
        return torch.zeros(2, 3, dtype=torch.int64)
    return {
        "Tensor": torch.ones(3, 3), "OptTensor": torch.ones(3, 3), "Operand": 2.0, "Power": 2.0,
        "Number": 2.0, "Tensors": [torch.ones(3, 3)], "Int": 1, "Float": 0.5, "Bool": False,
        "Str": "sum", "OptInt": None, "OptFloat": 0.5, "Ints": (2, 3), "Shape": (2, 3), "Dim": 0,
        "Floats": (0.5,), "Dims": (0,),
        "Dtype": torch.float32, "DeviceArg": torch.device("cpu"), "StaticNumber": 2, "EndNumber": 2,
        "Any": torch.ones(3, 3),
    }[param.kind]  # fmt: skip


def filled(op: Any) -> list[Any]:
    """An argument for each parameter."""
    from tests.ops.records import samples

    signature = op.signature
    given = next(samples(op), None) if op.sample_functions else None
    if given is None or len(given[0]) > signature.positional:  # block_diag(a, b, c)
        missing = [p for p in signature.params if repr(p.default) == "<no default>"]
        return [by_kind(p) if p in missing else p.default for p in signature.params]
    values: list[Any] = signature.fill(*given)
    return values


def copied(value: Any) -> Any:
    from tests.ops.records import map_tensors

    return map_tensors(value, lambda t: t.detach().clone())


def forms(op: Any) -> Iterator[tuple[str, Callable[..., Any], bool]]:
    """The record's public forms: name, what to call, does it write its first argument?"""
    import antorcha as torch

    yield op.name, op, op.name.endswith("_")
    method = torch.Tensor.__dict__.get(op.name) if op.is_method else None
    if method is not None:
        yield f"Tensor.{op.name}", method, False
    if op.inplace is not None:
        yield f"{op.name}_", op.inplace, True
    written = torch.Tensor.__dict__.get(f"{op.name}_") if op.is_method else None
    if written is not None:
        yield f"Tensor.{op.name}_", written, True


def is_public(op: Any) -> bool:
    return bool(op.is_function or op.is_method or op.namespace != "torch")


def cases() -> Iterator[Case]:
    """Every call, in an order that is always the same."""
    from antorcha.ops.kinds.record import REGISTRY

    ops = {id(op): op for op in REGISTRY.values()}
    for op in sorted(ops.values(), key=lambda op: op.name):
        values = filled(op)
        for name, call, writes in forms(op):
            for args, kwargs in spoilt(op, values):
                yield name, call, args, kwargs, writes, is_public(op)
        for args, kwargs in with_outs(op, values):
            yield f"{op.name} out=", op, args, kwargs, False, is_public(op)


def spoilt(op: Any, values: list[Any]) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """The arguments with one of them wrong: by position, and None also by its name."""
    signature = op.signature
    count, names = signature.positional, signature.names
    for k, param in enumerate(signature.params):
        for bad in wrong(param, values[k]):
            given = [*values[:k], bad, *values[k + 1 :]]
            yield given[:count], dict(zip(names[count:], given[count:], strict=True))
        if 0 < k < count:
            given = [*values[:k], None, *values[k + 1 :]]
            yield given[:1], dict(zip(names[1:], given[1:], strict=True))


def with_outs(op: Any, values: list[Any]) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """The same with ``out=``, which is wrong itself once."""
    import antorcha as torch

    count, names = op.signature.positional, op.signature.names
    if not op.has_out:
        return
    for bad in (Thing(), [None], "text", torch.ones(2, dtype=torch.bool), (None, None), []):
        rest = dict(zip(names[count:], values[count:], strict=True))
        yield values[:count], {**rest, "out": bad}
    for k in range(len(values)):
        given = [*values[:k], None, *values[k + 1 :]]
        rest = dict(zip(names[count:], given[count:], strict=True))
        yield given[:count], {**rest, "out": torch.empty(0)}


def run(number: int, case: Case, log: Any) -> str:
    """Makes one call; what became of it."""
    from antorcha.errors import AntorchaError

    name, call, args, kwargs, writes, public = case
    args, kwargs = copied(args), copied(kwargs)
    given = ", ".join([*map(describe, args), *[f"{k}={describe(v)}" for k, v in kwargs.items()]])
    words = f"0 {number} {name}({given})"
    log.seek(0)
    log.write(f"{words}\n"[:4000].ljust(4000))
    log.flush()
    before = None
    if writes and hasattr(args[0], "_layout"):
        before = args[0].tolist(), args[0]._version
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    try:
        call(*args, **kwargs)
        return "fine"
    except AntorchaError as error:
        if before is not None and repr(before) != repr((args[0].tolist(), args[0]._version)):
            tell("confused", f"{words}: has written, and raised {error!r}"[:600])
        return "error"
    except CONFUSED as error:
        if str(error).startswith(EXPECTED):
            return "error"
        tell("confused", f"{words}: {error!r}"[:600])
    except (*POOR, IndexError) as error:  # none of antorcha's own: from somewhere inside
        if public:
            tell("poor", f"{name}: {type(error).__name__}: {error} by {words}"[:600])
            return "poor"
    except Exception as error:  # of the right class, in Python's words
        if public:
            tell("plain", f"{name}: {type(error).__name__}: {error} by {words}"[:600])
            return "plain"
    finally:
        faulthandler.cancel_dump_traceback_later()
    return "error"


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0, help="for the parent's sake: no effect")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--end", type=int, default=1 << 30)
    parser.add_argument("--only", type=int)
    parser.add_argument("--log", default=os.devnull)
    options = parser.parse_args()
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (6 * GIGABYTE, 6 * GIGABYTE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    first, end = options.first, options.end
    if options.only is not None:
        first, end = options.only, options.only + 1
    counts: dict[str, int] = {}
    with open(options.log, "w") as log:
        for number, case in enumerate(cases()):
            if number >= end:
                break
            if number < first:
                continue
            if options.only is not None:
                name, call, args, kwargs, *_ = case
                print(name, [*map(describe, args)], {k: describe(v) for k, v in kwargs.items()})
                print(call(*copied(args), **copied(kwargs)))
                continue
            what = run(number, case, log)
            counts[what] = counts.get(what, 0) + 1
    print(counts, file=sys.stderr)


if __name__ == "__main__":
    main()
