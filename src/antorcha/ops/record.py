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

Function, method, in-place and ``out=`` forms, shape inference, kernels for every device, the
generated documentation and the tests all come from the record. So does the line of the docstring
that names PyTorch's page (see ``pages``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from antorcha import modes
from antorcha.errors import ArgumentError, MissingFeature, ShapeError
from antorcha.lazy import lazy
from antorcha.ops.outs import check_apart, check_exact
from antorcha.ops.pages import address_of, naming_page
from antorcha.ops.params import NEVER_TENSORS, TENSORS, Signature, no_quick_bind
from antorcha.runtime.call import path, short
from antorcha.runtime.call.plan import table
from antorcha.runtime.tensor import Tensor

if TYPE_CHECKING:
    from antorcha.dtypes import dtype as DType
    from antorcha.ops.derive import Rule
    from antorcha.runtime.call.plan import Plan
    from antorcha.runtime.layout import Layout

sparse_create = lazy("antorcha.tensor.sparse.create")
sparse_gradients = lazy("antorcha.tensor.sparse.gradients")  # for rules of ops that look up
REGISTRY: dict[str, Op] = {}
NAMESPACES: dict[str, dict[str, Any]] = {"nn.functional": {}, "special": {}, "linalg": {}}
"""What the face shows elsewhere than under ``torch``: namespace -> name -> callable."""


class Op:
    """An operation. Calling it calls the op; ``samples`` describe how to test it."""

    rule: Rule | None = None
    planned_names: tuple[str, ...] = ()  # what plans of this kind add for the rules
    short_binary = False  # may two tensors take the short way of ``a + b``?
    own_bind = False  # does it look at its arguments' values before every call?
    random = False  # do two calls with the same arguments differ?
    native: Any = None  # set by the native path: serves any call, or has `in_python` serve it
    upgradable = True  # may it?
    is_composite = False
    differentiable = True  # False: the rule refuses to go back
    any_size = False  # does its plan say the same for operands of any size?
    outlined = True  # is it planned with symbols where sizes change (see runtime.call.sizes)?
    numbers_given = False  # of gradients: are its numbers those of the call that they are of?

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        name: str | None = None,
        inplace: bool = False,
        out: bool = True,
        method: Any = True,  # a function: what the method is, where its arguments differ
        function: bool = True,
        node: str | None = None,
        aliases: Sequence[str] = (),
        namespace: str = "torch",
        register: bool = True,
        samples: Callable[..., Iterator[Any]] | None = None,
        returns: Callable[..., Any] | None = None,  # packs several results
        page: bool = True,  # has PyTorch a page about it?
        sizes: Sequence[str] = (),  # the parameters whose integers are sizes, beside shapes
    ) -> None:
        self.fn = fn
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
        self.node_name = node_name(node or self.name)
        self.forms: dict[str, Op] = {}
        self.plans = table()
        self.short_plans = table()
        self.write_plans = table()  # of the in-place form
        self.sample_functions: list[Callable[..., Iterator[Any]]] = [samples] if samples else []
        self.error_functions: list[Callable[..., Iterator[Any]]] = []
        self.returns = returns
        self.inplace = InPlace(self) if inplace else None
        self.upgradable = type(self).__call__ in (Op.__call__, Composite.__call__)
        own = not self.upgradable or type(self).in_python is not Op.in_python
        general = self.in_python if self.upgradable else self.__call__
        self.slow = general if own else self._call  # any arguments; for the short cuts
        found = None if own else short.form(self)
        self.quick: Any = None
        self.quick, self.fewest, self.most = found or (None, 1, 0)
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
        if native is not None:
            return native(*args, **kwargs)
        return self.in_python(*args, **kwargs)

    def in_python(self, *args: Any, **kwargs: Any) -> Any:
        """The call by the Python path."""
        if not kwargs and self.fewest <= len(args) <= self.most:
            return self.quick(*args)
        return self._call(*args, **kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        if self.native is None and short.upgrade is not None:
            short.upgrade(self, False)
        if kwargs and "out" in kwargs:
            out = kwargs.pop("out")
            if out is not None:
                if not self.has_out:
                    raise ArgumentError(f"{self.name}() has no out= form")
                self.check_apart(out, args, kwargs)
                return path.call_out(self, out, args, kwargs)
        return path.call(self, args, kwargs)

    def use_bind(self, bind: Callable[..., Any]) -> None:
        """Binds arguments in a way of the op's own: the short cuts know only one, and are off."""
        self.bind, self.quick_bind, self.own_bind = bind, no_quick_bind, True
        self.quick, self.fewest, self.most = None, 1, 0

    def make_plan(self, values: list[Any], outs: tuple[Layout, ...] | None) -> Plan:
        """Plans a call with these bound values; with ``outs``, into results of these layouts."""
        raise NotImplementedError

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
        from antorcha.ops.derive import TensorRule

        self.rule = TensorRule(self, fn)
        return fn

    def has_no_derivative(self, shown: str = "") -> None:
        """The result requires a gradient where an operand does, as in PyTorch; backward through it
        is refused. ``shown`` is the op's public name."""
        from antorcha.ops.derive import TensorRule

        def refuse(g: Any) -> Any:
            raise MissingFeature(f"{shown or self.name}: its derivative is not implemented")

        self.rule, self.differentiable = TensorRule(self, refuse), False

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
        from antorcha.dtypes import can_cast

        if len(outs) != len(plan.outs):
            raise ArgumentError(f"{self.name}: out= needs {len(plan.outs)} tensors")
        for out, lay in zip(outs, plan.outs, strict=True):
            if not isinstance(out, Tensor):
                raise ArgumentError(f"{self.name}: out= must be a Tensor, not {type(out).__name__}")
            if not can_cast(lay.dtype, out._layout.dtype):
                raise ShapeError(
                    "{op}: result type {one} can't be cast to the desired output type {two}",
                    reason="keeps dtype", op=self.name, operands=(out._layout,),
                    one=_short(lay.dtype), two=_short(out._layout.dtype),
                )  # fmt: skip
            check_exact(self.name, out, lay.dtype)
            if out._layout.device is not lay.device:
                raise ShapeError(
                    f"{self.name}: Expected out tensor to have device {lay.device}, but got "
                    f"{out._layout.device} instead"
                )
            if out._layout.shape != lay.shape:
                resize_out(self.name, out, lay)

    def __repr__(self) -> str:
        return f"<op {self.signature}>"

    def __reduce__(self) -> Any:
        return get, (self.name,)


class InPlace:
    """The in-place form of an op, ``add_``: writes the result over the first operand."""

    native: Any = None  # set by the native path: serves any call, or has `in_python` serve it

    def __init__(self, op: Op) -> None:
        self.op = op
        self.in_python: Callable[..., Any] = self.general
        self.__name__ = self.name = op.name + "_"
        self.__doc__ = f"In-place form of :func:`antorcha.{op.name}`; gives the changed tensor."

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        native = self.native
        return self.in_python(*args, **kwargs) if native is None else native(*args, **kwargs)

    def general(self, *args: Any, **kwargs: Any) -> Any:
        """The call by the Python path, for any arguments."""
        if not args or not isinstance(args[0], Tensor):
            raise ArgumentError(f"{self.name}: the first argument must be a Tensor")
        return path.call_inplace(self.op, args, kwargs)


def _is_refused(sample: Any) -> bool:
    """Are these arguments that an op refuses?"""
    return len(sample) == 4 and isinstance(sample[2], type) and issubclass(sample[2], Exception)


resize_out: Any = None  # set by ops.memory


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

    def __getattr__(self, name: str) -> Any:
        found: Any
        if name.endswith("_") and name[:-1] in REGISTRY and REGISTRY[name[:-1]].inplace:
            found = REGISTRY[name[:-1]].inplace
        else:
            if name not in REGISTRY:
                raise AttributeError(f"there is no op {name!r}")
            found = REGISTRY[name]
        setattr(self, name, found)
        return found


T: Any = Sibling()


class Composite(Op):
    """An op made of others: its function takes tensors and calls ops. Gradients follow."""

    is_composite = True

    @property
    def makes(self) -> bool:
        """Does it make tensors of nothing, such as ``arange``?"""
        return "pin_memory" in self.signature.names

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        native = self.native
        if native is not None:
            return native(*args, **kwargs)
        if short.upgrade is not None:
            short.upgrade(self, False)
        return self.in_python(*args, **kwargs)

    def in_python(self, *args: Any, **kwargs: Any) -> Any:
        """The call by the Python path."""
        out = kwargs.pop("out", None) if kwargs else None
        if out is not None:
            self.check_apart(out, args, kwargs)
            if self.makes and isinstance(out, Tensor) and kwargs.get("dtype") is None:
                kwargs["dtype"] = out._layout.dtype  # what is computed, not only what is written
        if modes.busy and modes.subclasses:
            done = path.override(self, args, kwargs)
            if done is not NotImplemented:
                return done
        if modes.sparse:
            done = path.sparse(self, args, kwargs)
            if done is not NotImplemented:
                return done
        try:
            if modes.busy and modes.state.word & modes.AUTOCAST:
                result = path.autocast(self, args, kwargs, self.observed)
            else:
                result = self.observed(args, kwargs)
        except ArgumentError:
            result = path.foreign(self, args, kwargs)
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
                resize_out(self.name, each, value._layout)
            self.copy_into(each, value)
        return type(result)(outs) if isinstance(result, tuple) else out

    def observed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``run``, which a profile writes down."""
        if modes.watched:
            return path.observe(self, args, kwargs, self.run, args, kwargs)
        return self.run(args, kwargs)

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
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
            elif param.check in NEVER_TENSORS or not isinstance(value, Tensor):
                values[k] = param.checked(self.name, value)
        return self.apply_fn(values)


def composite(**options: Any) -> Callable[[Callable[..., Any]], Composite]:
    """Decorates a function of tensors as an op made of other ops."""
    return lambda fn: Composite(fn, **options)
