"""The op record: one op, everything about it in one place.

A record is made by decorating a Python function. Its annotations are the signature, its docstring
the documentation, its body what is computed (what exactly depends on the kind: see ``pointwise``,
``reduction``, ``kernel``, ``view``, ``composite``). Its derivative, and samples of what it takes
and of what it refuses, are added below it::

    @pointwise(inplace=True)
    def mul(input: Tensor, other: Operand):
        \"\"\"Multiplies ``input`` by ``other``. ...\"\"\"
        return input * other

    @mul.derivative
    def _(g, input, other):
        return g * other.conj(), g * input.conj()

    @mul.samples
    def _(make):
        yield make(3, 4), make(4)

A kind is a *planner*: a function that gets the op, its sorted arguments and the layouts of results
that are given, and says what runs. What else differs between ops is data of their records.

Function, method, in-place and ``out=`` forms, shape inference, kernels for every device, the
generated documentation and the tests all come from the record. So does the line of the docstring
that names PyTorch's page (see ``pages``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from antorcha.core import modes
from antorcha.core.dtypes import can_cast
from antorcha.core.hooks import hooks
from antorcha.core.lazy import lazy
from antorcha.errors import ArgumentError, MissingFeature, ShapeError
from antorcha.ops.kinds.arguments import sort
from antorcha.ops.kinds.outs import check_apart, check_exact
from antorcha.ops.kinds.pages import address_of, naming_page
from antorcha.ops.kinds.params import (
    OPERAND,
    OPTIONAL,
    TENSOR,
    TENSORS,
    Signature,
    no_quick_bind,
)
from antorcha.runtime.call import path
from antorcha.runtime.call.plan import table
from antorcha.runtime.tensor import Tensor

if TYPE_CHECKING:
    from antorcha.core.dtypes import dtype as DType
    from antorcha.ops.kinds.arguments import Arguments
    from antorcha.ops.kinds.derive import Rule
    from antorcha.runtime.call.plan import Plan
    from antorcha.runtime.memory.layout import Layout

ops_derive = lazy("antorcha.ops.kinds.derive")

sparse_create = lazy("antorcha.tensor.sparse.create")
sparse_gradients = lazy("antorcha.tensor.sparse.gradients")  # for rules of ops that look up
REGISTRY: dict[str, Op] = {}
NAMESPACES: dict[str, dict[str, Any]] = {"nn.functional": {}, "special": {}, "linalg": {}}
"""What the face shows elsewhere than under ``torch``: namespace -> name -> callable."""
Planner = Callable[["Op", "Arguments", "tuple[Layout, ...] | None"], "Plan"]
"""Plans a call with these arguments; with layouts, into results that lie so."""
Call = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional arguments, and those by name."""


class Op:
    """An operation. Calling it calls the op; ``samples`` describe how to test it."""

    rule: Rule | None = None
    planned_names: tuple[str, ...] = ()  # what plans of this kind add for the rules
    own_bind = False  # does it look at its arguments' values before every call?
    random = False  # do two calls with the same arguments differ?
    native: Any = None  # set by the native path: serves any call, or has `in_python` serve it
    upgradable = True  # may it?
    is_composite = False
    is_inplace = False
    differentiable = True  # False: the rule refuses to go back
    any_size = False  # does its plan say the same for operands of any size?
    why_not_written = ""  # why a result must not be written to, where it must not
    only_moves = False  # does it take elements of any kind, as it does not look at them?
    batching: Any = ""  # its batching rule, or the name of one; "": what its kind says
    numbers_given = False  # of gradients: are its numbers those of the call that they are of?

    def __init__(
        self,
        fn: Callable[..., Any],
        planner: Planner | None = None,
        *,
        name: str | None = None,
        inplace: bool = False,
        out: bool = True,
        method: Any = True,  # a function: what the method is, where its arguments differ
        function: bool = True,
        node: str | None = None,
        nodes: Callable[[list[Any], bool], str] | None = None,  # of the values; is it in place?
        aliases: Sequence[str] = (),
        namespace: str = "torch",
        register: bool = True,
        samples: Callable[..., Iterator[Any]] | None = None,
        returns: Callable[..., Any] | None = None,  # packs several results
        page: bool = True,  # has PyTorch a page about it?
        sizes: Sequence[str] = (),  # the parameters whose integers are sizes, beside shapes
        outlined: bool = True,  # is it planned with symbols for sizes (see runtime.call.sizes)?
        dense: Sequence[str] | bool = (),  # the operands to make contiguous first; True: all
        rewrite: Callable[[Op, tuple[Any, ...], dict[str, Any]], Call] | None = None,
        other_form: Callable[[Op, tuple[Any, ...], dict[str, Any]], Any] | None = None,
        out_decides_dtype: bool = False,  # does a result that is given say what ``dtype`` is?
        batching: str = "",  # a rule of ops.kinds.batching
    ) -> None:
        """``rewrite`` spells a call's arguments, in any way that PyTorch takes, as the signature
        has them; ``other_form`` serves a call that is none of the signature, and gives
        NotImplemented for those that are."""
        self.fn, self.planner = fn, planner
        self.outlined = outlined
        self.name = self.__name__ = name or fn.__name__.rstrip("_")
        self.__module__ = "antorcha"
        self.__qualname__ = self.name
        self.signature = Signature(self.name, fn, sizes)
        self.bind, self.quick_bind = self.signature.bind, self.signature.quick_bind
        self.shapes = self.signature.shapes
        self.static_number = any(p.static for p in self.signature.params)
        self.has_inplace, self.has_out = inplace, out
        self.namespace = namespace  # where the function is public: "torch", "linalg", ...
        self.is_method = method if namespace == "torch" else False
        self.is_function = function and namespace == "torch"
        self.aliases = tuple(aliases)
        self.__doc__ = naming_page(fn.__doc__, address_of(self) if page and register else None)
        self.node_name, self.nodes = node_name(node or self.name), nodes
        self.forms: dict[str, Op] = {}
        self.plans = table()
        self.methods: list[str] = []  # of Tensor, that are this op
        self.sample_functions: list[Callable[..., Iterator[Any]]] = [samples] if samples else []
        self.error_functions: list[Callable[..., Iterator[Any]]] = []
        self.returns = returns
        self.inplace = InPlace(self) if inplace else None
        self.rewrite, self.other_form = rewrite, other_form
        self.out_decides_dtype, self.batching = out_decides_dtype, batching
        self.upgradable = type(self).__call__ is Op.__call__
        self.dense = self._dense(dense)
        if not self.is_composite and (rewrite is not None or self.dense):
            self.use_bind(self._bind_rewritten)
        if register:
            if self.name in REGISTRY:
                raise ValueError(f"there are two records for {self.name!r}")
            REGISTRY[self.name] = self
            for alias in self.aliases:
                if "." not in alias:
                    REGISTRY[alias] = self
            if namespace != "torch":
                # linalg_det, told apart from torch.det in the registry, is torch.linalg.det
                expose(f"{namespace}.{self.name.removeprefix(namespace + '_')}", self)
            for alias in aliases:
                if "." in alias:  # "special.expit": the same op under another namespace
                    expose(alias, self)

    # ------------------------------------------------------------------------------------ calling
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        native = self.native
        if native is None and hooks.upgrade is not None:
            native = hooks.upgrade(self)
        return self.in_python(*args, **kwargs) if native is None else native(*args, **kwargs)

    def in_python(self, *args: Any, **kwargs: Any) -> Any:
        """The call by the Python path."""
        if self.other_form is not None:
            result = self.other_form(self, args, kwargs)
            if result is not NotImplemented:
                return result
        if kwargs and "out" in kwargs:
            out = kwargs.pop("out")
            if out is not None:
                if not self.has_out:
                    raise ArgumentError(f"{self.name}() has no out= form")
                self.check_apart(out, args, kwargs)
                return path.call_out(self, out, args, kwargs)
        return path.call(self, args, kwargs)

    def use_bind(self, bind: Callable[..., Any]) -> None:
        """Binds arguments in a way of the op's own."""
        self.bind, self.quick_bind, self.own_bind = bind, no_quick_bind, True

    def _dense(self, wanted: Sequence[str] | bool) -> list[int]:
        """The places of the operands that are made contiguous first."""
        params = [(k, p.name) for k, p in enumerate(self.signature.params) if p.code in _OF_TENSORS]
        if not isinstance(wanted, bool):
            missing = set(wanted).difference([name for _, name in params])
            assert not missing, f"{self.name}: no operands {missing}"
        return [k for k, name in params if wanted is True or (wanted and name in wanted)]

    def _bind_rewritten(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``Signature.bind`` of a call as the signature spells it, with operands as they must
        lie."""
        if self.rewrite is not None:
            args, kwargs = self.rewrite(self, args, kwargs)
        bound = self.signature.bind(args, kwargs)
        values = bound[4]
        laid = [_laid_out(v) if k in self.dense else v for k, v in enumerate(values)]
        if all([a is b for a, b in zip(values, laid, strict=True)]):
            return bound
        n = self.signature.positional
        return self.signature.bind(
            tuple(laid[:n]), dict(zip(self.signature.names[n:], laid[n:], strict=True))
        )

    def make_plan(self, values: list[Any], outs: tuple[Layout, ...] | None) -> Plan:
        """Plans a call with these bound values; with ``outs``, into results of these layouts."""
        if self.out_decides_dtype and outs is not None:
            values = self._with_dtype_of(outs[0], values)
        given = sort(self.signature, values)
        plan = self.plan(given, outs)
        plan.tensors, plan.statics = given.tensors, given.statics
        plan.post_names = given.numbers
        if self.rule is not None and (
            not plan.outs or any([out.dtype.kind in "fc" for out in plan.outs])
        ):
            plan.rule = self.rule
        if self.nodes is not None:
            plan.op = self.form(self.nodes(values, outs is not None))
        return plan

    def plan(self, given: Arguments, outs: tuple[Layout, ...] | None) -> Plan:
        """What runs, and the results' layouts: what the planner says."""
        assert self.planner is not None
        return self.planner(self, given, outs)

    def _with_dtype_of(self, out: Layout, values: list[Any]) -> list[Any]:
        """The values with the dtype of a result that is given."""
        at = self.signature.names.index("dtype")
        if values[at] is not None and values[at] is not out.dtype:
            raise ShapeError(
                f"{self.name}: a result of dtype {values[at]} does not go into a tensor of dtype "
                f"{out.dtype}; leave dtype= out, or cast first"
            )
        return [*values[:at], out.dtype, *values[at + 1 :]]

    def pack(self, outs: tuple[Tensor, ...]) -> Any:
        """What the caller gets for several results."""
        if self.returns is not None:
            return self.returns(*outs)
        return outs if len(outs) != 1 else outs[0]

    def apply_fn(self, values: Sequence[Any]) -> Any:
        """The record's function on a value for each parameter."""
        n = self.signature.positional
        names = self.signature.names
        return self.fn(*values[:n], **dict(zip(names[n:], values[n:])))

    def form(self, node: str) -> Op:
        """This op under another node name, for a plan of one of PyTorch's overloads."""
        found = self.forms.get(node)
        if found is None:
            found = self.forms[node] = object.__new__(type(self))  # not copy.copy, which gives self
            found.__dict__.update(self.__dict__)
            found.node_name = node_name(node)
        return found

    # ------------------------------------------------------------------------ parts of the record
    def derivative(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Decorates the derivative rule; see ``derive``."""
        self.rule = ops_derive.TensorRule(self, fn)
        return fn

    def batches(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Decorates the batching rule; see ``batching``."""
        self.batching = fn
        return fn

    def has_no_derivative(self, shown: str = "") -> None:
        """The result requires a gradient where an operand does, as in PyTorch; backward through it
        is refused. ``shown`` is the op's public name."""

        def refuse(g: Any) -> Any:
            raise MissingFeature(f"{shown or self.name}: its derivative is not implemented")

        self.rule, self.differentiable = ops_derive.TensorRule(self, refuse), False

    def gives_constants(self) -> None:
        """The result never requires a gradient, as PyTorch's does not."""
        self.rule = None

    def samples(self, fn: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        """Decorates a generator of sample arguments: tuples, or (tuple, dict). Arguments that the
        op refuses are (tuple, dict, exception class, text in the message)."""
        self.sample_functions.append(lambda make: (s for s in fn(make) if not _is_refused(s)))
        self.error_functions.append(lambda make: (s for s in fn(make) if _is_refused(s)))
        return fn

    def errors(self, fn: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        """Decorates a generator of what an op without samples refuses."""
        self.error_functions.append(fn)
        return fn

    # ----------------------------------------------------------------------------------- for path
    def copy_of(self, tensor: Tensor) -> Tensor:
        copied: Tensor = path.run(REGISTRY["clone"], (tensor,), {}, False)
        return copied

    def copy_into(self, out: Tensor, result: Tensor) -> None:
        path.run_inplace(REGISTRY["copy"], (out, result), {}, False)

    def check_apart(self, out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Refuses ``out=`` tensors that share memory with the operands, or with themselves."""
        outs = out if isinstance(out, (tuple, list)) else (out,)
        check_apart(self.name, outs, (*args, *kwargs.values()))

    def fit_outs(self, plan: Plan, outs: Sequence[Tensor]) -> None:
        """Checks ``out=`` tensors and resizes those whose shape is not the result's."""
        if len(outs) != len(plan.outs):
            raise ArgumentError(f"{self.name}: out= needs {len(plan.outs)} tensors")
        any_dtype = self.out_decides_dtype and plan.statics["dtype"] is None
        for out, layout in zip(outs, plan.outs, strict=True):
            if not isinstance(out, Tensor):
                raise ArgumentError(f"{self.name}: out= must be a Tensor, not {type(out).__name__}")
            if not any_dtype and not can_cast(layout.dtype, out._layout.dtype):
                raise ShapeError(
                    "{op}: result type {one} can't be cast to the desired output type {two}",
                    reason="keeps dtype", op=self.name, operands=(out._layout,),
                    one=_short(layout.dtype), two=_short(out._layout.dtype),
                )  # fmt: skip
            if not any_dtype:
                check_exact(self.name, out, layout.dtype)
            if out._layout.device is not layout.device:
                raise ShapeError(
                    f"{self.name}: Expected out tensor to have device {layout.device}, but got "
                    f"{out._layout.device} instead"
                )
            if out._layout.shape != layout.shape:
                hooks.resize_out(self.name, out, layout)

    def __repr__(self) -> str:
        return f"<op {self.signature}>"

    def __reduce__(self) -> Any:
        return get, (self.name,)


class InPlace:
    """The in-place form of an op, ``add_``: writes the result over the first operand."""

    native: Any = None  # set by the native path: serves any call, or has `in_python` serve it
    is_inplace = True

    def __init__(self, op: Op) -> None:
        self.op = op
        self.methods: list[str] = []
        self.__name__ = self.name = op.name + "_"
        self.__doc__ = f"In-place form of :func:`antorcha.{op.name}`; gives the changed tensor."

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        native = self.native
        if native is None and hooks.upgrade is not None:
            native = hooks.upgrade(self)
        return self.in_python(*args, **kwargs) if native is None else native(*args, **kwargs)

    def in_python(self, *args: Any, **kwargs: Any) -> Any:
        """The call by the Python path."""
        if not args or not isinstance(args[0], Tensor):
            raise ArgumentError(f"{self.name}: the first argument must be a Tensor")
        return path.call_inplace(self.op, args, kwargs)


_OF_TENSORS = (TENSOR, OPTIONAL, OPERAND, TENSORS)


def _laid_out(value: Any) -> Any:
    """An operand, or several, as contiguous tensors."""
    if isinstance(value, tuple):
        laid = tuple([_laid_out(each) for each in value])
        return value if all([a is b for a, b in zip(value, laid, strict=True)]) else laid
    loose = isinstance(value, Tensor) and not value._layout.contiguous
    return T.contiguous(value) if loose else value


def _is_refused(sample: Any) -> bool:
    """Are these arguments that an op refuses?"""
    return len(sample) == 4 and isinstance(sample[2], type) and issubclass(sample[2], Exception)


def expose(path_name: str, value: Any) -> None:
    """Shows ``value`` to users as ``torch.<path_name>``, e.g. ``special.expit``.

    In ``nn.functional`` an op with an in-place form takes PyTorch's last argument ``inplace=``.
    """
    space, name = path_name.rsplit(".", 1)
    shown = NAMESPACES.setdefault(space, {})
    if name in shown:
        raise ValueError(f"there are two torch.{path_name}")
    shown[name] = value
    if space == "nn.functional" and getattr(value, "inplace", None) is not None:
        shown[name] = _with_inplace_argument(value)
        shown[name + "_"] = value.inplace


def _with_inplace_argument(op: Op) -> Callable[..., Any]:
    place = op.signature.positional

    def functional(*args: Any, inplace: bool = False, **kwargs: Any) -> Any:
        if len(args) > place:
            args, inplace = args[:place], args[place]
        return op.inplace(*args, **kwargs) if inplace else op(*args, **kwargs)  # type: ignore[misc]

    functional.__name__ = functional.__qualname__ = op.name
    functional.__doc__, functional.__module__ = op.__doc__, "antorcha.nn.functional"
    return functional


def _short(dtype: DType) -> str:
    return {"float32": "Float", "float64": "Double", "int64": "Long", "int32": "Int",
            "bool": "Bool", "float16": "Half", "bfloat16": "BFloat16", "uint8": "Byte",
            "int8": "Char", "int16": "Short", "complex64": "ComplexFloat",
            "complex128": "ComplexDouble"}.get(dtype.name, dtype.name)  # fmt: skip


def node_name(name: str) -> str:
    """The grad_fn's name: ``to_copy`` is ToCopyBackward0; one with its overload's digit stays."""
    return name if "Backward" in name else _camel(name) + "Backward0"


def _camel(name: str) -> str:
    return "".join([part.capitalize() for part in name.split("_")])


def get(name: str) -> Op:
    """The op of that name."""
    return REGISTRY[name]


class Sibling:
    """Other ops, by name, for derivative rules and composites: ``T.sum(g, 0)``.

    Resolved at the first use, so records may be written in any order.
    """

    def __getattr__(self, name: str) -> Op:
        found: Any
        if name.endswith("_") and name[:-1] in REGISTRY and REGISTRY[name[:-1]].inplace:
            found = REGISTRY[name[:-1]].inplace
        else:
            if name not in REGISTRY:
                raise AttributeError(f"there is no op {name!r}")
            found = REGISTRY[name]
        setattr(self, name, found)
        op: Op = found
        return op


T = Sibling()


class Composite(Op):
    """An op made of others: its function takes tensors and calls ops. Gradients follow."""

    is_composite = True

    def __init__(
        self, fn: Callable[..., Any], *, random: bool = False, out_needs: str = "", **options: Any
    ) -> None:
        """random: its function draws into what it makes, or into ``out=``, which it takes itself:
        what is drawn depends on where it goes. out_needs: the parameter that a call with ``out=``
        must have."""
        super().__init__(fn, **options)
        self.random, self.out_needs = random, out_needs

    @property
    def makes(self) -> bool:
        """Does it make tensors of nothing, such as ``arange``?"""
        return "pin_memory" in self.signature.names

    def in_python(self, *args: Any, **kwargs: Any) -> Any:
        """The call by the Python path."""
        if self.random:
            if modes.batched:
                done = hooks.batch(self, args, kwargs)
                if done is not NotImplemented:
                    return done
            return self.run(args, kwargs)
        out = kwargs.pop("out", None) if kwargs else None
        if out is not None:
            if self.out_needs and len(args) < 2 and kwargs.get(self.out_needs) is None:
                raise ArgumentError(
                    f'{self.name}() missing 1 required positional argument: "{self.out_needs}"'
                )
            self.check_apart(out, args, kwargs)
            if self.makes and isinstance(out, Tensor) and kwargs.get("dtype") is None:
                kwargs["dtype"] = out._layout.dtype  # what is computed, not only what is written
        if modes.others_asked():
            done = path.asked(self, args, kwargs)
            if done is not NotImplemented:
                return done
        try:
            if modes.busy and modes.state.word & modes.AUTOCAST:
                result = hooks.autocast(self, args, kwargs, self.observed)
            else:
                result = self.observed(args, kwargs)
        except ArgumentError:
            result = hooks.foreign(self, args, kwargs)
            if result is NotImplemented:
                raise
        except AttributeError as error:
            wanted = ("_layout", "_storage", "_rg")
            if error.name not in wanted or isinstance(error.obj, Tensor):
                raise
            raise ArgumentError(
                f"{self.name}(): expected a Tensor, not {type(error.obj).__name__}; its "
                f"signature is {self.signature}"
            ) from None
        if out is None:
            return result
        results = result if isinstance(result, tuple) else (result,)
        outs = out if isinstance(out, (tuple, list)) else (out,)
        if isinstance(result, tuple) is isinstance(out, Tensor) or len(outs) != len(results):
            several = f"tuple of {len(results)} Tensors"
            raise ArgumentError(
                f"{self.name}(): argument 'out' must be "
                f"{several if isinstance(result, tuple) else 'Tensor'}, not {type(out).__name__}"
            )
        path.check_outs(self.name, (*outs, *results))
        if any([each._storage.version < 0 for each in outs]):
            path.check_inference(self.name)  # before anything is resized
        for each, value in zip(outs, results, strict=True):
            check_exact(self.name, each, value._layout.dtype)
        for each, value in zip(outs, results, strict=True):
            if each._layout.shape != value._layout.shape:
                hooks.resize_out(self.name, each, value._layout)
            self.copy_into(each, value)
        return type(result)(outs) if isinstance(result, tuple) else out

    def observed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``run``, which a profile writes down."""
        if modes.profiled:
            return hooks.observe_call(self, args, kwargs, self.run, args, kwargs)
        return self.run(args, kwargs)

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.other_form is not None:
            result = self.other_form(self, args, kwargs)
            if result is not NotImplemented:
                return result
        if self.rewrite is not None:
            args, kwargs = self.rewrite(self, args, kwargs)
        signature = self.signature
        values = signature.fill(args, kwargs)
        for k, param in enumerate(signature.params):
            value = values[k]
            if value is param.default or param.check is None:
                if param.kind == "Tensor" and not isinstance(value, Tensor):
                    signature.bind(args, kwargs)  # raises what a call with this value raises
                elif param.code == TENSORS and not isinstance(value, (tuple, list)):
                    signature.bind(args, kwargs)
                elif type(value) is list:
                    values[k] = tuple(value)  # which stays as it is, whatever code runs meanwhile
            elif param.never_tensor or not isinstance(value, Tensor):
                values[k] = param.checked(self.name, value)
        return self.apply_fn(values)


def composite(**options: Any) -> Callable[[Callable[..., Any]], Composite]:
    """Decorates a function of tensors as an op made of other ops."""
    return lambda fn: Composite(fn, **options)
