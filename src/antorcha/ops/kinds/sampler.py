"""Ops that draw random numbers: a kind of record of their own, because their calls are no function
of their arguments.

The record's function gets the call's numbers as they are and NumPy arrays for its tensors, checks
them, and gives what fills the result: ``draw(out)``, where ``out`` is the :class:`DrawTarget`::

    @sampler(inplace=True)
    def uniform(input: Tensor, from_: Float = 0.0, to: Float = 1.0, *, generator: Any = None):
        return lambda out: out.fill("uniform", from_, to)

On a device whose kernels draw, it gets tensors as they are, and a :class:`DeviceTarget`; with
``on_tensors`` it gets tensors in the host's memory, too.

Nothing is written before the arguments have been checked. Values are drawn in the order of the
elements in memory, as PyTorch does, whatever the strides are. A draw does not depend on what was
there, nor smoothly on its parameters: the gradients are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from antorcha.core import dtypes, modes
from antorcha.core.device import CPU, Device, as_device, backend
from antorcha.core.hooks import hooks
from antorcha.core.lazy import lazy
from antorcha.core.symbols import Untold
from antorcha.errors import ArgumentError, DeviceError, ShapeError
from antorcha.ops.create import unwritten
from antorcha.ops.kinds.derive import Rule, saved_items
from antorcha.ops.kinds.draw_targets import (
    DeviceTarget,
    DrawTarget,
    PlannedTarget,
    check_place,
    draws_by_counting,
)
from antorcha.ops.kinds.operands import common_device
from antorcha.ops.kinds.params import OPERAND, STATIC, TENSOR, Param, to_number
from antorcha.ops.kinds.record import Composite, Op, T
from antorcha.runtime.call import path
from antorcha.runtime.call import tape as tapes
from antorcha.runtime.call.plan import FRESH, Plan, make
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor, bare

if TYPE_CHECKING:
    from antorcha.runtime.call.node import Node
    from antorcha.runtime.memory.storage import Storage
    from antorcha.runtime.philox import PhiloxGenerator
    from antorcha.runtime.random import Generator

runtime = lazy("antorcha.runtime.random")
philox = lazy("antorcha.runtime.philox")


class ZeroRule(Rule):
    """The derivative of a draw: zeros."""

    replays = True

    def saves(self, plan: Plan, mask: int) -> tuple[int, ...]:
        return ()

    def backward(self, node: Node, grads: list[Tensor | None], create: bool) -> Any:
        saved_items(node)
        assert node.plan is not None
        return [
            None if edge is None or layout is None
            else T.full_layout(tuple(layout.shape), 0, layout.dtype, layout.device)
            for edge, layout in zip(node.edges, node.plan.tensors, strict=True)
        ]  # fmt: skip


class SamplerOp(Op):
    """An op that fills its result, or the operand itself, with random numbers."""

    random = True  # tests: two calls differ
    general: Composite | None = None  # the function, where its arguments are not the method's

    def __init__(
        self, fn: Callable[..., Any], result: Callable[..., Any] | None = None,
        nodes: Callable[[list[Any], bool], str] | None = None, on_tensors: bool = False,
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(fn, nodes=nodes, outlined=False, **options)  # (its plans are Python's)
        self.on_tensors = on_tensors
        self.result = result
        self.rule = ZeroRule()
        for k, param in enumerate(self.signature.params):  # PyTorch's names may be keywords
            if param.name in ("from_", "lambda_"):
                param.name = self.signature.names[k] = param.name[:-1]
        self.use_bind(self.bind_call)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.general is not None:
            return self.general(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    def bind_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """As ``Signature.bind``, but numbers and the generator are handed to each call: a plan
        must not depend on them."""
        signature = self.signature
        values = signature.fill(args, kwargs)
        operands: list[Tensor | None] = []
        flat: list[Any] = []
        key: list[Any] = []
        for k, param in enumerate(signature.params):
            value = values[k]
            if param.name == "generator":
                continue
            if isinstance(value, Tensor) and param.code <= OPERAND:
                operands.append(value)
                flat += (value._storage, value._offset)
                key.append(value._layout)
                continue
            if param.code == TENSOR:
                signature.bind(args, kwargs)  # raises what a call with this value raises
            if param.code <= OPERAND:
                operands.append(None)
            value = values[k] = self._checked(param, value)
            if self.result is not None and param.code == STATIC:
                key.append(value)
        if self.nodes is not None:  # an in-place call's key says so itself
            key.append(self.nodes(values, False))
        generator = values[signature.names.index("generator")]
        numbers = [None if isinstance(v, Tensor) else v for v in values]
        flat += (numbers, self.generator_for(generator, operands[0]))
        return tuple(key), operands, flat, (), values

    def _checked(self, param: Param, value: Any) -> Any:
        """An argument that is no tensor, as the record's function gets it."""
        if value is not param.default and param.check is not None:
            return param.checked(self.name, value)
        if value is not param.default and param.code == OPERAND:
            return to_number(self.name, param.name, value)
        return value

    def generator_for(self, given: Any, like: Tensor | None) -> Generator | PhiloxGenerator:
        """The generator to draw from: the one given, or the device's default one."""
        path.check_runs(self.name)
        device = CPU if like is None else like._layout.device
        counting = device is not CPU and draws_by_counting(device)
        if given is None:
            default: Any = philox.default(device) if counting else runtime.default()
            return default  # type: ignore[no-any-return]
        if not isinstance(given, runtime.Generator):
            raise ArgumentError(
                f"{self.name}(): generator must be a torch.Generator, not {type(given).__name__}"
            )
        place = getattr(given, "device", CPU if counting else None)
        if like is not None and place is not None and device.type != place.type:
            raise DeviceError(
                f"{self.name}: Expected a {device.type!r} device type for generator "
                f"but found {place.type!r}"
            )
        chosen: Any = given.stream if counting else given
        return chosen  # type: ignore[no-any-return]

    def make_plan(self, values: list[Any], outs: tuple[Layout, ...] | None) -> Plan:
        seen = [v._layout if isinstance(v, Tensor) else v for v in values]
        tensors = tuple(
            [v if isinstance(v, Layout) else None
             for v, p in zip(seen, self.signature.params, strict=True) if p.code <= OPERAND]
        )  # fmt: skip
        device = common_device(self.name, tensors)
        if outs is not None:
            out = outs[0]
        else:
            first: Any = tensors[0]
            shape, dtype = self.result(*seen) if self.result else (first.shape, first.dtype)
            out = L.contiguous(tuple(shape), dtype, device)
        where = backend(device)
        counting = draws_by_counting(device)
        written = [isinstance(v, Layout) for v in seen]

        def into(storage: Storage, offset: int, *flat: Any) -> None:
            if where.name == "meta":
                return
            numbers, generator = flat[-2:]
            given = list(numbers)
            at = 0
            for k, is_tensor in enumerate(written):
                if is_tensor:
                    given[k] = self._operand(seen[k], flat[at], flat[at + 1], device)
                    at += 2
            inplace = outs is not None and flat[0] is storage and flat[1] == offset
            target: Any
            if counting:
                target = DeviceTarget(self.name, out, storage, offset, generator, inplace)
                self._fill_on_device(given, target)
                return
            with memoryview(storage):  # nobody resizes it meanwhile
                check_place(self.name, out, storage, offset)
                target = DrawTarget(self.name, out, storage, offset, generator, inplace)
                self.apply_fn_to(given)(target)

        def fresh(*flat: Any) -> Storage:
            storage = where.allocate(out.nbytes)
            into(storage, 0, *flat)
            return storage

        op = self if self.nodes is None else self.form(self.nodes(values, outs is not None))
        rule = self.rule if out.dtype.kind in "fc" else None
        return make(op, FRESH, (out,), fresh=fresh, into=into, tensors=tensors, rule=rule)

    def _operand(self, layout: Layout, storage: Storage, offset: int, device: Device) -> Any:
        """A tensor as the record's function gets it: an array, or a tensor."""
        host = not draws_by_counting(device)
        if (host and not self.on_tensors) or layout.device is not device:
            array = backend(layout.device).to_host(layout, storage, offset)
            if host:
                return array
            layout = L.contiguous(layout.shape, layout.dtype, device)
            storage, offset = backend(device).from_host(array, layout), 0
        return bare(layout, storage, offset)

    def _fill_on_device(self, values: list[Any], target: DeviceTarget) -> None:
        filled: Any = self.apply_fn_to(values)
        filled(target)

    def draw(self, result: Tensor, values: tuple[Any, ...], generator: Any) -> None:
        """Fills a fresh tensor, which has no history: the short way for ``rand`` and its like."""
        layout = result._layout
        if modes.busy and modes.state.word & modes.SYMBOLS:
            if generator is not None:
                raise Untold("it has a generator of its own")
            tape = tapes.current.tape
            assert tape is not None  # (what is only planned is noted)
            tape.note_into(self.plan_draw(layout, (*values, None)), (result,), ())
            return
        drawn_from: Any = self.generator_for(generator, result)
        storage = result._storage
        target: Any
        if layout.device is not CPU and draws_by_counting(layout.device):
            target = DeviceTarget(self.name, layout, storage, 0, drawn_from, True)
        else:
            target = DrawTarget(self.name, layout, storage, 0, drawn_from, True)
        filled = self.fn(layout, *values)
        if layout.device.type != "meta":
            filled(target)

    def plan_draw(self, layout: Layout, values: Sequence[Any]) -> Plan:
        """The plan of a draw from the default generator into memory of that layout, for machine
        code; Untold where it is for Python."""
        if layout.device.type != "cpu":
            raise Untold("machine code draws with the CPU's generator")
        target: Any = PlannedTarget(self.name, layout)
        self.apply_fn_to([layout, *values])(target)
        launch = backend(layout.device).compile(target.draw(), (layout,), ())
        return make(self, FRESH, (layout,), fresh=launch.fresh, into=launch.into, tensors=(layout,))

    def plan_write(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Plan, Tensor]:
        """The plan of a call of the in-place form, and what it writes over; Untold as above."""
        values = self.signature.fill(args, kwargs)
        target = values[0]
        if not isinstance(target, Tensor) or values[-1] is not None:
            raise Untold("it has a generator of its own")
        for k, param in enumerate(self.signature.params[:-1]):
            if k and isinstance(values[k], Tensor):
                raise Untold("its parameters are tensors")
            if k:
                values[k] = self._checked(param, values[k])
        return self.plan_draw(target._layout, values[1:]), target

    def apply_fn_to(self, values: list[Any]) -> Callable[[DrawTarget], None]:
        """The record's function: its keywords are the Python names, not PyTorch's."""
        n = self.signature.positional
        names = self.signature.names
        draw: Callable[[DrawTarget], None] = self.fn(
            *values[:n], **dict(zip(names[n:], values[n:], strict=True))
        )
        return draw


def sampler(**options: Any) -> Callable[[Callable[..., Any]], SamplerOp]:
    """Decorates a function that checks a draw's arguments and gives what fills the result."""
    return lambda fn: SamplerOp(fn, **options)


def target_of(name: str, out: Any, shape: Any, make_new: Callable[[], Tensor]) -> Tensor:
    """The ``out=`` tensor in the right shape, or a new one."""
    if out is None:
        return make_new()
    if not isinstance(out, Tensor):
        raise ArgumentError(f"{name}(): out must be a Tensor, not {type(out).__name__}")
    if tuple(out._layout.shape) != tuple(shape):
        if any(s < 0 for s in shape):
            raise ShapeError(f"{name}: a size must not be negative, got {tuple(shape)}")
        hooks.resize_out(name, out, L.contiguous(shape, out._layout.dtype, out._layout.device))
    return out


def new_target(name: str, size: Any, dtype: Any, device: Any, out: Any) -> Tensor:
    """A fresh (or the ``out=``) tensor to draw into."""
    if size is None:
        raise ArgumentError(f"{name}() missing required argument 'size'")
    if any(s < 0 for s in size):
        raise ShapeError(f"{name}: Trying to create tensor with negative dimension in {list(size)}")
    chosen = dtype or dtypes.get_default_dtype()
    return target_of(name, out, size, lambda: unwritten(size, chosen, as_device(device)))


def drawn(result: Tensor, out: Any, op: SamplerOp, args: tuple[Any, ...], generator: Any) -> Tensor:
    """A new tensor filled by a sampler, or the ``out=`` tensor, which has a history."""
    if out is None:
        op.draw(result, args, generator)
    else:
        into: Any = op.inplace
        into(result, *args, generator=generator)
    return result


@contextmanager
def unrecorded() -> Iterator[None]:
    """What is drawn into a fresh tensor is no history of it."""
    before = modes.set_word(modes.state.word | modes.NO_GRAD)
    try:
        yield
    finally:
        modes.set_word(before)
