"""``FlopCounterMode``: how many floating-point operations run, by op and by module.

What counts is what PyTorch counts: matrix products and convolutions, a multiply-add as two. They
are seen where they compute (`runtime.call.intercepting`), in backward passes too. The products of
attention count (PyTorch leaves them out on the CPU, not on a GPU); those of a recurrent layer's
steps, which run inside one op, do not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from math import prod
from typing import Any

from antorcha.autograd import engine
from antorcha.core.lazy import lazy
from antorcha.errors import ArgumentError, GraphError, explain_missing, warn
from antorcha.runtime.call.intercepting import Interceptor, Results, Run, aten_name
from antorcha.runtime.call.plan import Plan
from antorcha.runtime.memory.layout import Layout
from antorcha.utils.module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

torch_ops = lazy("antorcha._ops")
Layouts = tuple[Layout, ...]
flop_registry: dict[str, Callable[..., int]] = {}
"""The formulas of ``register_flop_formula``, by the ops' names."""

_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "linear", "matmul")


# ------------------------------------------------------------------------------------- what counts
def _counted(plan: Plan, given: list[Layout | None]) -> tuple[str, int]:
    """PyTorch's name of the op that runs, and how many operations it takes; 0 for most."""
    name, out = plan.op.name, plan.outs[0]
    if name in ("conv_forward", "conv_data", "conv_weight"):
        return _convolution(name, given, out)
    if name in ("attention", "attention_with_sums", "attention_backward"):
        return _attention(name, given, out)
    if name not in _PRODUCTS:
        return aten_name(plan), 0
    first, second = given[1:3] if name in ("addmm", "baddbmm") else given[:2]
    assert first is not None
    assert second is not None
    if name == "linear":
        name = "addmm" if len(given) > 2 and given[2] is not None else "mm"
    elif name == "matmul":
        least, most = sorted([first.ndim, second.ndim])
        if least == 1:
            return "mv" if most > 1 else "dot", 0
        name = "mm" if least == 2 else "bmm"  # (a matrix meets the rows of all at once)
    return name, 2 * out.numel * first.shape[-1]


def _attention(name: str, given: list[Layout | None], out: Layout) -> tuple[str, int]:
    """Both products, or the four of the gradient, as they count where a graph records them."""
    query, key, value = given[:3]
    assert query is not None
    assert key is not None
    assert value is not None
    scores = prod(out.shape[:-1]) * key.shape[-2]
    count = 4 if name == "attention_backward" else 2
    flops = count * scores * (query.shape[-1] + value.shape[-1])
    return "mm" if out.ndim == 2 else "bmm", flops


def _convolution(name: str, given: list[Layout | None], out: Layout) -> tuple[str, int]:
    x, w = given[:2]
    assert x is not None
    assert w is not None
    shown = "convolution_backward" if engine.running.inside else "convolution"
    if name == "conv_weight":  # w is the result's gradient; groups do not count, as in PyTorch
        channels = x.shape[0] * x.shape[1] * w.shape[1]
        return shown, 2 * channels * prod(w.shape[2:]) * prod(out.shape[2:])
    places = out if name == "conv_forward" else x
    return shown, 2 * w.numel * places.shape[0] * prod(places.shape[2:])


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[..., Any]:
    """Decorates a formula for one op, or several: ``formula(*shapes, out_shape=...)``, or with
    ``get_raw`` ``formula(*tensors, out_val=...)``."""

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        counting = formula if get_raw else _of_shapes(formula)
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            name = _name_of(target)
            if name in flop_registry:
                raise GraphError(f"duplicate registrations for {target}")
            flop_registry[name] = counting
        return counting

    return register


def _of_shapes(formula: Callable[..., int]) -> Callable[..., int]:
    def counting(*tensors: Any, out_val: Any = None, **kwargs: Any) -> int:
        shapes = [getattr(each, "shape", each) for each in tensors]
        if isinstance(out_val, tuple):
            return formula(*shapes, out_shape=tuple([t.shape for t in out_val]), **kwargs)
        return formula(*shapes, out_shape=getattr(out_val, "shape", out_val), **kwargs)

    return counting


def _name_of(target: Any) -> str:
    name = getattr(target, "__name__", target)
    if not isinstance(name, str):
        raise ArgumentError(f"register_flop_formula(targets): expected operators, got {target!r}")
    return name.split(".")[0]


def _packet(name: str) -> Any:
    """``torch.ops.aten.mm``, or its name where ``torch.ops`` has it not."""
    try:
        return getattr(torch_ops.ops.aten, name)
    except (ModuleNotFoundError, AttributeError):
        return f"aten.{name}"


# ------------------------------------------------------------------------------------- the counter
class FlopCounterMode(Interceptor):
    """A context that counts operations, and prints a table of them at its end.

    Args:
        mods: not needed
        depth (int): how deep the table goes into the modules. Default: 2
        display (bool): print the table. Default: True
        custom_mapping (dict): formulas of other ops, as ``register_flop_formula`` takes them

    See https://docs.pytorch.org/docs/stable/torch.html and torch/utils/flop_counter.py.

    >>> from torch.utils.flop_counter import FlopCounterMode
    >>> with FlopCounterMode(display=False) as counter:
    ...     y = torch.ones(2, 3) @ torch.ones(3, 4)
    >>> counter.get_total_flops()
    48
    """

    def __init__(
        self, mods: Any = None, depth: int | None = 2, display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:  # fmt: skip
        if mods is not None:
            warn("mods argument is not needed anymore, you can stop passing it", UserWarning)
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth: int | None = depth
        self.display = display
        self.mod_tracker = ModuleTracker()
        self._formulas = {
            _name_of(op): formula if getattr(formula, "_get_raw", False) else _of_shapes(formula)
            for op, formula in (custom_mapping or {}).items()
        }

    def see(self, plan: Plan, operands: Any, run: Run) -> Results:
        outs = run()
        name, count = _counted(plan, [None if t is None else t._layout for t in operands])
        formula = self._formulas.get(name, flop_registry.get(name))
        if formula is not None:
            count = formula(*operands, out_val=outs if len(outs) > 1 else outs[0])
        if count:
            packet = _packet(name)
            for parent in self.mod_tracker.parents:
                self.flop_counts[parent][packet] += count
        return outs

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *args: object) -> None:
        super().__exit__(*args)
        self.mod_tracker.__exit__(*args)
        if self.display:
            print(self.get_table(self.depth))

    def get_total_flops(self) -> int:
        """All operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Module -> op -> operations; ``"Global"`` has all."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The table that is printed at the end."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        rows: list[list[str]] = []
        whole = False  # does one module have all of it?
        for name in sorted(self.flop_counts):
            level = name.count(".")
            if name != "Global" and (depth is None or level < depth):
                whole |= sum(self.flop_counts[name].values()) >= total
                rows += self._rows(name, level, total)
        if "Global" in self.flop_counts and not whole:
            rows = self._rows("Global", 0, total) + [[f" {row[0]}", *row[1:]] for row in rows]
        return _table(rows or [["Global", "0", "0%"]])

    def _rows(self, name: str, level: int, total: int) -> list[list[str]]:
        counts = self.flop_counts[name]
        lines = [(name, sum(counts.values()))]
        lines += [(f" - {op}", count) for op, count in counts.items()]
        return [
            [" " * level + text, _shortened(count, total),
             f"{count / total:.2%}" if total else "0%"]
            for text, count in lines
        ]  # fmt: skip


def _shortened(count: int, total: int) -> str:
    """``count`` in the unit that suits ``total``: 1.234K."""
    suffixes = ("", "K", "M", "B", "T")
    k = max(0, min(len(suffixes) - 1, (len(str(total)) - 2) // 3))
    return f"{count / 1000**k:.3f}{suffixes[k]}" if k else str(count)


def _table(rows: list[list[str]]) -> str:
    head = ["Module", "FLOP", "% Total"]
    widths = [
        max(len(title) + 2, *[len(row[k]) for row in rows]) for k, title in enumerate(head)
    ]  # as the package tabulate lays it out

    def line(cells: list[str]) -> str:
        rest = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        return "  ".join([cells[0].ljust(widths[0]), *rest])

    return "\n".join([line(head), line(["-" * width for width in widths]), *map(line, rows)])


explain_missing("torch.utils.flop_counter", globals())
