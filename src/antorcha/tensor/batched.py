"""Tensors in the place of a batch of examples: what a function under ``vmap`` is given.

An ``Example`` has the shape of one example, and behind it is the tensor of all of them, whose first
dim is the batch's. While a ``vmap`` runs, calls look for examples among their arguments; an op that
finds some runs once for all, by its batching rule (``ops.kinds.batching``), or one by one.
Gradients are recorded beneath, on the tensors of all examples; as no example has a part in
another's results, a gradient of all is each one's own.

What asks for the contents of an example (``item``, ``if x > 0``) has as many answers as there are
examples: it raises ``OneByOne``, and ``vmap`` runs the function for one after another.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

from antorcha.core import modes
from antorcha.core.hooks import hooks
from antorcha.core.lazy import lazy
from antorcha.errors import GraphError
from antorcha.ops.kinds.batching import beside, call, instances_in, record_of, rule_of
from antorcha.ops.kinds.record import InPlace, Op, T
from antorcha.runtime.memory import layout as L
from antorcha.runtime.tensor import Tensor, bare, take_fields

philox = lazy("antorcha.runtime.philox")
random = lazy("antorcha.runtime.random")


class OneByOne(GraphError):
    """The examples of a batch have to be looked at one by one."""


def _looked_at(what: str) -> Callable[..., NoReturn]:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise OneByOne(
            f"vmap: {what} of a batch's example has another answer for each of them: vmap runs the "
            "function once for all. Where it is called by another name, use torch.where, or a loop"
        )

    return refuse


class Example(Tensor):
    """One example of a batch, which stands for all of them."""

    __slots__ = ()
    _batch: Batch
    _whole: Tensor

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]  # (the stub's has no names)
        return f"BatchedTensor(lvl={self._batch.level}, bdim=0, value={self._whole!r})"

    def detach(self) -> Tensor:
        return self._batch.example(self._whole.detach())

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        self._whole.requires_grad_(requires_grad)
        return self

    def view(self, *args: Any, **kwargs: Any) -> Tensor:
        kinds = [*args, *kwargs.values()]
        if len(kinds) == 1 and not isinstance(kinds[0], (int, tuple, list)):  # a dtype
            return self._batch.example(self._whole.view(kinds[0]))
        result: Tensor = T.view(self, *args, **kwargs)
        return result

    @property
    def requires_grad(self) -> bool:
        return self._whole.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._whole.requires_grad = value

    @property
    def grad_fn(self) -> Any:
        return self._whole.grad_fn

    @property
    def is_leaf(self) -> bool:
        return self._whole.is_leaf

    def __iter__(self) -> Any:
        return iter(T.unbind(self, 0))


for _name in ("item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__complex__",
              "__index__", "__array__", "__dlpack__", "data_ptr", "untyped_storage", "storage",
              "backward", "retain_grad", "register_hook", "share_memory_", "pin_memory",
              "__reduce_ex__", "__deepcopy__", "__format__", "__contains__", "detach_", "squeeze_",
              "unsqueeze_", "t_", "transpose_", "swapaxes_", "swapdims_", "resize_", "resize_as_",
              "set_", "as_strided_"):  # fmt: skip
    setattr(Example, _name, _looked_at(f"{_name}()"))
for _name in ("grad", "_version"):
    setattr(Example, _name, property(_looked_at(_name)))
setattr(Example, "data", property(Example.detach))  # noqa: B010  # (Tensor's can be set)


class _RunningBatches(threading.local):
    batches: tuple[Batch, ...] = ()


_running = _RunningBatches()


class Batch:
    """A batch while a function runs for it: how many examples, inside of how many others."""

    def __init__(self, size: int, randomness: str) -> None:
        self.size, self.randomness = size, randomness
        self.level = len(_running.batches) + 1
        self._examples: list[weakref.ref[Example]] = []

    def __enter__(self) -> Batch:
        self._outer = _running.batches
        _running.batches = (*self._outer, self)
        modes.count_batches(1)
        if self.randomness == "different":
            modes.hear_every_call(1)
        return self

    def __exit__(self, *_: object) -> None:
        _running.batches = self._outer
        modes.count_batches(-1)
        if self.randomness == "different":
            modes.hear_every_call(-1)
        for each in self._examples:  # one that has got out is the tensor of all from now on
            left = each()
            if left is not None:
                _become(left, left._whole)

    # ---- examples and what is behind them
    def example(self, whole: Tensor) -> Tensor:
        """The example of a tensor whose first dim is the batch's. (One that is an example already
        comes of a rule made of examples' ops.)"""
        if self.has(whole):
            return whole
        given = whole._layout
        one = L.layout(given.shape[1:], given.strides[1:], given.dtype, given.device)
        result: Any = bare(one, whole._storage, whole._offset)
        result.__class__ = Example  # it has the same fields
        result._batch, result._whole = self, whole
        self._examples.append(weakref.ref(result))
        return result  # type: ignore[no-any-return]

    def has(self, value: Any) -> bool:
        """Is it an example of this batch?"""
        return type(value) is Example and value._batch is self

    def whole(self, value: Tensor) -> Tensor:
        """The tensor of all examples; of what is none, the same for each."""
        if self.has(value):
            found: Tensor = value._whole  # type: ignore[attr-defined]  # an Example has one
            return found
        wide: Tensor = T.expand(value, (self.size, *value._layout.shape))
        return wide

    def beside(self, value: Tensor, ndim: int) -> Tensor:
        """The same, whose examples have at least so many dims: those of size 1 are in front."""
        return beside(self.whole(value), ndim)

    def each(self, result: Any, fn: Callable[[Tensor], Tensor]) -> Any:
        """One result, or several, each changed."""
        if isinstance(result, Tensor):
            return fn(result)
        if isinstance(result, tuple):
            changed = [self.each(item, fn) for item in result]
            return tuple(changed) if type(result) is tuple else type(result)(*changed)
        if isinstance(result, list):
            return [self.each(item, fn) for item in result]
        return result

    # ---- running
    def one_by_one(self, run: Any, values: Sequence[Any]) -> Any:
        """What an op gives for one example after another, stacked."""
        generator = random.default()
        same = self.randomness == "same"
        before = (generator.get_state(), philox.get_states()) if same else None
        results = []
        for k in range(self.size):
            if before is not None:
                generator.set_state(before[0])
                philox.set_states(before[1])
            results.append(call(run, [self._of_example(v, k) for v in values]))
        if not results:
            raise OneByOne(f"vmap: {run.name} has no batching rule, and there are no examples")
        if isinstance(run, InPlace):
            return self.whole(values[0])
        return self._stacked(run.name, results)

    def _of_example(self, value: Any, k: int) -> Any:
        if self.has(value):
            return T.select(value._whole, 0, k)
        if isinstance(value, (tuple, list)):
            return type(value)([self._of_example(item, k) for item in value])
        return value

    def _stacked(self, name: str, results: list[Any]) -> Any:
        first = results[0]
        if isinstance(first, Tensor):
            if any([each._layout.shape != first._layout.shape for each in results]):
                raise OneByOne(f"vmap: {name} gives results of another shape for each example")
            return T.stack(tuple(results), 0)
        if isinstance(first, (tuple, list)):
            columns = [self._stacked(name, list(each)) for each in zip(*results, strict=True)]
            return type(first)(*columns) if hasattr(first, "_fields") else type(first)(columns)
        if any([each != first for each in results]):
            raise OneByOne(f"vmap: {name} gives another answer for each example")
        return first


def _become(example: Example, whole: Tensor) -> None:
    if type(whole) is Example:
        example.__dict__.update(_batch=whole._batch, _whole=whole._whole)
    else:
        example.__dict__.clear()
        example.__class__ = Tensor  # type: ignore[assignment]  # they have the same fields
    take_fields(example, whole)


def innermost(values: Iterable[Any]) -> Batch | None:
    """The innermost of the batches that the values are examples of."""
    found = None
    for each in instances_in(values, Example):
        if found is None or each._batch.level > found.level:
            found = each._batch
    return found


def run_batched(op: Op | InPlace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call for a whole batch; NotImplemented where there is none among its arguments, or it is
    made of other ops."""
    record = record_of(op)
    batch = innermost((*args, *kwargs.values()))
    if record.random and _running.batches:
        return _drawn(op, args, kwargs, batch or _running.batches[-1])
    if batch is None or (record.is_composite and record.batching == ""):
        return NotImplemented
    values = _bound(record, args, kwargs)
    if op is not record and not batch.has(args[0]):
        raise GraphError(
            f"vmap: inplace arithmetic({op.name}) is not possible: the tensor that is written to "
            "is the same for all examples, and what is written is not. Use the op that gives a "
            "new tensor, or give vmap the tensor as an argument"
        )
    rule = rule_of(record)
    whole = batch.one_by_one(op, values) if rule is None else rule(batch, op, values)
    return args[0] if op is not record else batch.each(whole, batch.example)


def _bound(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    if not op.is_composite:
        values: list[Any] = op.bind(args, kwargs)[4]
        return values
    if op.rewrite is not None:
        args, kwargs = op.rewrite(op, args, kwargs)
    return op.signature.fill(args, kwargs)


def _drawn(op: Op | InPlace, args: tuple[Any, ...], kwargs: dict[str, Any], batch: Batch) -> Any:
    """Random numbers: the same for every example, or others for each."""
    if batch.randomness == "error":
        raise GraphError(
            "vmap: called random operation while in randomness error mode. Please either use the "
            "'same' or 'different' randomness flags on vmap or perform the randomness operation "
            "out of vmap"
        )
    if batch.randomness == "same" and innermost((*args, *kwargs.values())) is None:
        return NotImplemented
    record = record_of(op)
    if op is not record and not batch.has(args[0]):
        raise OneByOne(f"vmap: {op.name} draws into a tensor that is the same for all examples")
    active = _running.batches
    _running.batches = active[: batch.level - 1]
    try:
        whole = batch.one_by_one(op, _bound(record, args, kwargs))
    finally:
        _running.batches = active
    return args[0] if op is not record else batch.each(whole, batch.example)


def for_each_example(tensor: Tensor) -> Tensor:
    """The tensor as an example of every batch that runs: what is changed of it is one example's."""
    return _as_examples(tensor, _running.batches)


def _as_examples(tensor: Tensor, batches: Sequence[Batch]) -> Tensor:
    if not batches:
        return tensor
    batch = batches[-1]
    return batch.example(_as_examples(batch.whole(tensor), batches[:-1]))


def recorded(tensor: Tensor) -> Tensor:
    """The tensor that graphs know an example by: that of all examples, of all batches."""
    while type(tensor) is Example:
        tensor = tensor._whole
    return tensor


def gradients(
    grad: Callable[..., Any], outputs: Sequence[Tensor], inputs: Sequence[Tensor], vectors: Any,
    **options: Any,
) -> Any:  # fmt: skip
    """``autograd.grad`` of examples: of all at once. NotImplemented where there are none."""
    given = vectors if vectors is not None else [None] * len(outputs)
    batch = innermost((*outputs, *inputs, *given))
    if batch is None:
        return NotImplemented
    if not all([batch.has(each) for each in inputs]):
        raise OneByOne("vmap: a gradient by a tensor that is the same for all examples")
    seeds = []
    for output, vector in zip(outputs, given, strict=True):
        if not batch.has(output) and batch.has(vector):
            raise OneByOne("vmap: another vector for each example, one graph for all of them")
        if vector is None and output._layout.numel != 1:
            raise GraphError("grad can be implicitly created only for scalar outputs")
        if vector is None:
            vector = T.ones_like(output.detach())
        seeds.append(batch.whole(vector) if batch.has(output) else vector)
    whole = [batch.whole(each) for each in inputs]
    roots = [each._whole if batch.has(each) else each for each in outputs]  # type: ignore[attr-defined]
    found = grad(roots, whole, seeds, **options)
    return tuple([None if g is None else batch.example(g) for g in found])


class VmapInfo(NamedTuple):
    """What the ``vmap`` of an ``autograd.Function`` is told."""

    batch_size: int
    randomness: str


def run_function(cls: Any, args: tuple[Any, ...]) -> Any:
    """``Function.apply`` of examples: by its own ``vmap``, if it has one, else one by one."""
    batch = innermost(args)
    if batch is None:
        return NotImplemented
    own = getattr(cls, "vmap", None)
    if own is None:
        raise OneByOne(f"vmap: {cls.__name__} has no vmap staticmethod")
    dims = tuple([0 if batch.has(each) else None for each in args])
    whole = [each._whole if batch.has(each) else each for each in args]
    results, places = own(VmapInfo(batch.size, batch.randomness), dims, *whole)
    several = isinstance(results, tuple)
    places = places if isinstance(places, tuple) else (places,) * (len(results) if several else 1)
    found = [
        each if place is None else batch.example(T.movedim(each, place, 0))
        for each, place in zip(results if several else (results,), places, strict=True)
    ]
    return tuple(found) if several else found[0]


def check_contents(tensor: Tensor) -> None:
    """Refuses to give an example's elements: they are another's each time."""
    if type(tensor) is Example:
        tensor.item()


hooks.batch = run_batched
hooks.batch_function = run_function
hooks.check_contents = check_contents
hooks.batch_gradients = gradients
