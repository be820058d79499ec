"""Fused optimizer updates: one pass over a parameter, its gradient and its state.

An update is a function of one element of each that gives the new parameter and the new state; it is
compiled as one pointwise kernel with several outputs that writes over its inputs, or, where a
device can, as one that updates many parameters (:meth:`UpdateStep.together`).

Updates are outside of any graph. They bump the versions of what they write, as any write does.
:meth:`UpdateStep.recorded` is the other way, for ``differentiable=True``: the same function as an
op with derivatives.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from antorcha.core import dtypes
from antorcha.core.device import Device, backend
from antorcha.core.lazy import lazy
from antorcha.core.shapes import may_overlap
from antorcha.errors import ShapeError
from antorcha.lang import expr as E
from antorcha.lang.kernels import Pointwise, Updates
from antorcha.ops.kinds.operands import common_device
from antorcha.ops.kinds.record import T
from antorcha.runtime.call.plan import remember, table
from antorcha.runtime.memory.layout import Layout, lies_alike
from antorcha.runtime.tensor import Tensor

ops_user = lazy("antorcha.ops.kinds.user")

Update = Callable[..., Any]
Numbers = Sequence[Any]  # a float, a tensor of one element on the device, or None: it is not used


class UpdateSet(NamedTuple):
    """What an update works on: ``tensors`` = (param, grad, \\*state), and tensors of one element
    that say how many steps there have been."""

    tensors: Sequence[Tensor]
    counts: Sequence[Tensor] = ()


class UpdateStep:
    """An update, compiled once for each combination of layouts and flags.

    ``fn(param, grad, *state, *numbers, **flags)`` gives (param, \\*state). Flags are booleans that
    change what is computed; :meth:`flags` packs them into one number, made once for a group.
    """

    grads = 1  # tensors that are only read, after the first
    wide = False  # are shared tensors not rounded to the dtype of what is written?

    def __init__(self, fn: Update) -> None:
        self.fn = fn
        self.name = fn.__name__.strip("_")
        self.names = inspect.getfullargspec(fn).kwonlyargs
        self.plans: dict[Any, Any] = table()
        self.op: Any = None  # the update as an op: see `recorded`
        self.derived: Update | None = None

    def derive(self, fn: Update) -> Update:
        """Says how the numbers follow from counts of steps and from settings: ``fn(*counts,
        *settings)``, for floats and for expressions alike."""
        self.derived = fn
        return fn

    def flags(self, **values: bool) -> int:
        """The flags as one number."""
        return sum([1 << k for k, name in enumerate(self.names) if values[name]])

    def __call__(self, tensors: Sequence[Tensor], numbers: tuple[float, ...], flags: int) -> None:
        """Updates ``tensors`` = (param, grad, \\*state) in place; the gradient is only read."""
        key = (flags, *[t._layout for t in tensors])
        launch = self.plans.get(key)
        if launch is None:
            launch = remember(self.plans, key, self._compile(tensors, len(numbers), flags))
        flat: list[Any] = []
        for t in tensors:
            flat += (t._storage, t._offset)
        launch.into(*flat[:2], *flat[4:], *flat, *numbers)
        tensors[0]._storage.version += 1
        for t in tensors[2:]:
            t._storage.version += 1

    def stateless(
        self, params: Sequence[Tensor], numbers: tuple[float, ...], flags: int
    ) -> list[Tensor]:
        """The same for parameters without state, by their gradients: a shorter way. It gives those
        that it leaves alone, as they have not been met before."""
        plans, left = self.plans, []
        for p in params:
            g: Any = p._grad
            launch = plans.get((flags, p._layout, g._layout))
            if launch is None:
                left.append(p)
                continue
            storage, at = p._storage, p._offset
            launch.into(storage, at, storage, at, g._storage, g._offset, *numbers)
            storage.version += 1
        return left

    def together(self, sets: Sequence[UpdateSet], numbers: Numbers, flags: int) -> None:
        """Updates many parameters of a device, in few launches. Where they have counts, the numbers
        are the settings from which those of the update are derived."""
        kinds = tuple([_kind_of(n) for n in numbers])
        layouts = tuple([(*[t._layout for t in s.tensors], None, *[t._layout for t in s.counts])
                         for s in sets])  # fmt: skip
        key = flags, kinds, layouts
        launches: Any = self.plans.get(key)
        if launches is None:
            launches = remember(self.plans, key, self._compile_sets(sets, kinds, flags))
        shared: list[Any] = []
        for n in numbers:
            if isinstance(n, Tensor):
                shared += (n._storage, n._offset)
            elif n is not None:
                shared.append(n)
        for launch, chosen in launches:
            outs: list[Any] = []
            ins: list[Any] = []
            for k in chosen:
                tensors, counts = sets[k]
                written = self._written(tensors)
                own = [at for t in written for at in (t._storage, t._offset)]
                outs += own
                ins += own
                for t in (*self._read(tensors), *counts):
                    ins += (t._storage, t._offset)
                for t in written:
                    t._storage.version += 1
            launch.into(*outs, *ins, *shared)

    def recorded(self, tensors: Sequence[Tensor], numbers: Sequence[Any], flags: int) -> None:
        """The same as ops that autograd records; ``numbers`` may be 0-dim tensors.

        The op reads copies of what is written afterwards: its derivative needs the old values.
        """
        if self.op is None:
            self.op = ops_user.UserKernel(self.fn, "promote", self.name)
        values = self._chosen(flags)
        param, grad, *state = tensors
        result = self.op(T.clone(param), grad, *[T.clone(t) for t in state], *numbers, **values)
        results = result if isinstance(result, tuple) else (result,)
        for target, value in zip((param, *state), results, strict=True):
            target.copy_(value)

    # ---- the parts of a set
    def _written(self, tensors: Sequence[Any]) -> list[Any]:
        return [tensors[0], *tensors[1 + self.grads :]]

    def _read(self, tensors: Sequence[Any]) -> Sequence[Any]:
        return tensors[1 : 1 + self.grads]

    def _chosen(self, flags: int) -> dict[str, bool]:
        return {name: bool(flags >> k & 1) for k, name in enumerate(self.names)}

    # ---- planning
    def _compile(self, tensors: Sequence[Tensor], numbers: int, flags: int) -> Any:
        layouts = [t._layout for t in tensors]
        self._check(layouts)
        dtype = layouts[0].dtype
        args = [E.input_(k, dtype) for k in range(len(layouts) + numbers)]
        exprs = self._results(args, dtype, flags)
        where = backend(common_device(self.name, layouts))
        return where.compile(
            Pointwise(exprs), self._written(layouts), [*layouts, *[float] * numbers]
        )  # fmt: skip

    def _results(self, args: Sequence[Any], dtype: dtypes.dtype, flags: int) -> tuple[Any, ...]:
        result = self.fn(*args, **self._chosen(flags))
        every = result if isinstance(result, tuple) else (result,)
        return tuple([E.cast(e, dtype) for e in every])

    def _compile_sets(self, sets: Sequence[UpdateSet], kinds: tuple[Any, ...], flags: int) -> Any:
        """Launches, and the numbers of the sets that each updates: all that lie in one piece are
        updated together, and the others one by one."""
        together: dict[Any, list[int]] = {}
        apart: list[int] = []
        for k, (tensors, counts) in enumerate(sets):
            layouts = [t._layout for t in tensors]
            self._check(layouts)
            common_device(self.name, [*layouts, *[t._layout for t in counts]])
            alike = all([lies_alike(each, layouts[0]) for each in layouts])
            if alike:
                dtypes_of = tuple([t._layout.dtype for t in (*tensors, *counts)])
                together.setdefault(dtypes_of, []).append(k)
            else:
                apart.append(k)
        shared = [float if kind is float else kind for kind in kinds if kind is not None]
        where = backend(sets[0].tensors[0]._layout.device)
        found = []
        for numbers in together.values():
            exprs = self._exprs_of(sets[numbers[0]], kinds, flags)
            what = Updates(exprs, self.grads, len(sets[0].counts), len(numbers))
            outs: list[Any] = []
            ins: list[Any] = []
            for k in numbers:
                own, read = self._layouts(sets[k])
                outs += own
                ins += (*own, *read)
            found.append((where.compile(what, outs, [*ins, *shared]), numbers))
        for k in apart:
            exprs = self._exprs_of(sets[k], kinds, flags)
            own, read = self._layouts(sets[k])
            every = [_spread(each, own[0]) for each in (*own, *read, *shared)]
            found.append((where.compile(Pointwise(exprs), own, every), [k]))
        return found

    def _layouts(self, one: UpdateSet) -> tuple[list[Any], list[Any]]:
        """Of what is written, and of what is only read."""
        layouts = [t._layout for t in one.tensors]
        return self._written(layouts), [*self._read(layouts), *[t._layout for t in one.counts]]

    def _exprs_of(self, one: UpdateSet, kinds: tuple[Any, ...], flags: int) -> tuple[Any, ...]:
        """The expressions over a set's inputs as `Updates` has them."""
        dtype = one.tensors[0]._layout.dtype
        written, read = self._layouts(one)
        places = [0, *range(len(written), len(written) + self.grads), *range(1, len(written))]
        args: list[Any] = [E.input_(k, dtype) for k in places]
        at = len(written) + len(read)
        kind = dtypes.promote_types(dtype, dtypes.float32)
        counts = [E.input_(len(written) + self.grads + k, kind) for k in range(len(one.counts))]
        derived = bool(one.counts) and self.derived is not None
        numbers: list[Any] = []
        for each in kinds:
            exact = derived or isinstance(each, Layout)
            numbers.append(None if each is None else E.input_(at, kind if exact else dtype))
            at += each is not None
        if derived:
            assert self.derived is not None
            numbers = self.derived(*counts, *numbers)
        else:
            numbers = [*counts, *numbers]
        if not self.wide:
            numbers = [E.cast(n, dtype) if isinstance(n, E.Expr) else n for n in numbers]
        return self._results([*args, *numbers], dtype, flags)

    def _check(self, layouts: Sequence[Layout]) -> None:
        """Raises where the tensors of a set do not fit one another."""
        param = layouts[0]
        for layout, what in zip(layouts[1:], ("gradient", *["state"] * len(layouts)), strict=False):
            if layout.shape != param.shape:
                raise ShapeError(
                    f"{self.name}: the parameter has shape {tuple(param.shape)}, its {what} "
                    f"{tuple(layout.shape)}"
                )
        for layout in self._written(layouts):
            if may_overlap(layout.shape, layout.strides):
                raise ShapeError(
                    f"{self.name}: unsupported operation: more than one element of the written-to "
                    f"tensor (shape {tuple(layout.shape)}, strides {layout.strides}) refers to a "
                    "single memory location. Please clone() the tensor before performing the "
                    "operation."
                )


class CountStep(UpdateStep):
    """An update of what is counted, in tensors of one element: ``fn(*written, *counts, *numbers)``
    gives what is written."""

    grads = 0


def runs_together(device: Device) -> bool:
    """Does a device run `Updates` and `Folds` in few launches?"""
    return getattr(backend(device), "runs_together", False)


def _kind_of(number: Any) -> Any:
    """A number in the key of a plan."""
    if number is None:
        return None
    return number._layout if isinstance(number, Tensor) else float


def _spread(what: Any, over: Layout) -> Any:
    """The layout of a single element, repeated over a shape; others as they are."""
    if not isinstance(what, Layout) or what.ndim:
        return what
    return what.like(tuple(over.shape), (0,) * over.ndim)


def unseen(step: Any, beta: Any, log_beta: Any) -> Any:
    """1 - beta^step: the share of what a running mean has not forgotten that it began with. Of an
    expression by the logarithm, which keeps the digits of a small one."""
    if isinstance(step, E.Expr):
        return -E.expm1(step * log_beta)
    return 1 - beta**step


def power(base: Any, exponent: Any, log_base: Any) -> Any:
    """base^exponent, of an expression by the logarithm."""
    if isinstance(exponent, E.Expr):
        return E.exp(exponent * log_base)
    return base**exponent


def root(x: Any) -> Any:
    """The square root of a number or an expression."""
    return E.sqrt(x) if isinstance(x, E.Expr) else x**0.5
