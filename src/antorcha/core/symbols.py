"""Sizes that stand for any number: what planning is done with to plan for sizes not yet seen.

A ``Symbol`` behaves as an int of which only one example is known. Sums, products, quotients and
remainders of symbols are symbols. What is *asked* of one (is it 0? is it less than that? is it this
very dim?) is answered for the example, and the answer is noted: what was planned holds for all
numbers that give the same answers, and for no others. A symbol that is needed as an int (an index,
a float, a text) is one from then on, which is noted as well; one that cannot be noted (in a hash)
raises. So nothing can depend on the example unseen.

A ``Trace`` has the symbols of one planning and the answers given; ``Trace.program`` makes of them a
function from numbers to numbers, or to None where an answer differs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any

from antorcha.core.structs import replace

Terms = dict[tuple[int, ...], int]
"""A sum: products of atoms (their numbers, in order) and the factor of each; ``()`` has the rest.
An atom is a given number, or a quotient or a remainder of two sums."""
Step = tuple[str, Terms, Terms, int]
"""What is done on the way: "//" or "%" of two sums gives the atom of that number; "==" or "<" of
two sums has that answer (0 or 1), or the program ends."""


traces: set[Trace] = set()
"""Those that are open. Where there is none, no number is a symbol."""


class Untold(TypeError):
    """A symbol was used in a way that cannot be noted."""


class Symbol:
    """A number of which an example is known. See the module."""

    __slots__ = ("least", "terms", "trace", "value")

    def __init__(self, trace: Trace, terms: Terms, value: int) -> None:
        self.trace, self.terms, self.value = trace, terms, value
        self.least = trace.least(terms)

    def known(self) -> int:
        """The example, as all that it may be from now on."""
        self.trace.note(self, "==", self.value, True)
        return self.value

    # ---- arithmetic
    def __add__(self, other: Any) -> Any:
        return self.trace.sum(self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self.trace.sum(self, other, -1)

    def __rsub__(self, other: Any) -> Any:
        return self.trace.sum(-self, other, 1)

    def __neg__(self) -> Any:
        return self.trace.product(self, -1)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __mul__(self, other: Any) -> Any:
        return self.trace.product(self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return self.trace.quotient(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self.trace.quotient(other, self)

    def __mod__(self, other: Any) -> Any:
        return self.trace.remainder(self, other)

    def __rmod__(self, other: Any) -> Any:
        return self.trace.remainder(other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rtruediv__(self, other: Any) -> Any:
        if self.trace.loose and type(other) in (int, float) and self != 0:
            return Ratio(float(other), self)
        return other / self.known()

    # ---- questions
    def __eq__(self, other: object) -> bool:
        return self.trace.ask(self, "==", other)

    def __ne__(self, other: object) -> bool:
        return not self.trace.ask(self, "==", other)

    def __lt__(self, other: Any) -> bool:
        return self.trace.ask(self, "<", other)

    def __ge__(self, other: Any) -> bool:
        return not self.trace.ask(self, "<", other)

    def __gt__(self, other: Any) -> bool:
        return self.trace.ask(other, "<", self)

    def __le__(self, other: Any) -> bool:
        return not self.trace.ask(other, "<", self)

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        raise Untold("a size that may be any number has no hash")

    # ---- as an int
    def __index__(self) -> int:
        return self.known()

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.known())

    def __str__(self) -> str:
        return str(self.known())

    def __format__(self, how: str) -> str:
        return format(self.known(), how)

    def __repr__(self) -> str:
        return f"<{self.trace.text(self.terms)}, e.g. {self.value}>"


def _as_ints(name: str) -> Callable[..., Any]:
    def method(self: Symbol, *others: Any) -> Any:
        return getattr(self.known(), name)(
            *[o.known() if isinstance(o, Symbol) else o for o in others]
        )

    return method


for _name in ("truediv", "pow", "rpow", "lshift", "rlshift", "rshift", "rrshift",
              "and", "rand", "or", "ror", "xor", "rxor", "invert"):  # fmt: skip
    setattr(Symbol, f"__{_name}__", _as_ints(f"__{_name}__"))


class Ratio:
    """A float that is a number by a size. It is good for no more than to be a kernel's number."""

    __slots__ = ("over", "trace", "under", "value")

    def __init__(self, over: float, under: Symbol) -> None:
        self.over, self.under, self.trace = over, under, under.trace
        self.value = over / under.value

    def __float__(self) -> float:
        return self.over / self.under.known()


class Trace:
    """The symbols of one planning, and what was asked of them."""

    def __init__(self, given: Sequence[int], loose: bool = False) -> None:
        """given: examples of the numbers, all of them 2 at least, as theirs will be. loose: a float
        that is an integer may become one beside a symbol, as in what only floats are computed from.
        """
        self.loose = loose
        traces.add(self)
        self.open = True
        self.count = len(given)
        self.values = list(given)  # of the atoms
        self.leasts = [2] * len(given)
        self.steps: list[Step] = []  # of the program, in order
        self.asked: set[tuple[str, str, str]] = set()
        self.atoms: dict[str, int] = {}  # quotients and remainders by their text
        self.layouts: dict[Any, Any] = {}  # see runtime.memory.layout
        self.symbols = [Symbol(self, {(k,): 1}, value) for k, value in enumerate(given)]

    def close(self) -> None:
        """No symbol can be asked anything from now on."""
        self.open = False
        traces.discard(self)

    def key(self, values: Iterable[Any]) -> tuple[Any, ...]:
        """Ints and symbols as something that has a hash."""
        return tuple([
            tuple(sorted(v.terms.items())) if isinstance(v, Symbol) else v for v in values
        ])  # fmt: skip

    # ---- sums
    def terms_of(self, x: Any) -> Terms | None:
        """An int or a symbol as a sum; None: neither."""
        if isinstance(x, Symbol):
            return x.terms
        if self.loose and type(x) is float and x.is_integer():
            return {(): int(x)}
        return {(): x} if type(x) is int else None

    def sure_terms(self, x: Any) -> Terms:
        """An int or a symbol as a sum."""
        return x.terms if isinstance(x, Symbol) else {(): int(x)}

    def least(self, terms: Terms) -> int | None:
        """A bound from below, where one is known."""
        bound = 0
        for atoms, factor in terms.items():
            product = factor
            for atom in atoms:
                product *= self.leasts[atom]
            if atoms and (factor < 0 or min([self.leasts[atom] for atom in atoms]) < 0):
                return None
            bound += product
        return bound

    def made(self, terms: Terms, value: int) -> Any:
        terms = {atoms: factor for atoms, factor in terms.items() if factor}
        if not terms or (len(terms) == 1 and () in terms):
            return value
        return Symbol(self, terms, value)

    def sum(self, a: Symbol, b: Any, sign: int) -> Any:
        more = self.terms_of(b)
        if more is None:
            return NotImplemented
        terms = dict(a.terms)
        for atoms, factor in more.items():
            terms[atoms] = terms.get(atoms, 0) + sign * factor
        return self.made(terms, a.value + sign * value_of(b))

    def product(self, a: Symbol, b: Any) -> Any:
        more = self.terms_of(b)
        if more is None:
            return NotImplemented
        terms: Terms = {}
        for one, factor in a.terms.items():
            for other, times in more.items():
                atoms = tuple(sorted(one + other))
                terms[atoms] = terms.get(atoms, 0) + factor * times
        return self.made(terms, a.value * value_of(b))

    def quotient(self, a: Any, b: Any) -> Any:
        """a // b, where both are ints or symbols."""
        exact = self._exactly(a, b)
        if exact is NotImplemented:
            return NotImplemented
        if exact is not None:
            return self.made(exact, value_of(a) // value_of(b))
        return self._atom(a, "//", b, value_of(a) // value_of(b))

    def remainder(self, a: Any, b: Any) -> Any:
        """a % b, as well."""
        exact = self._exactly(a, b)
        if exact is NotImplemented:
            return NotImplemented
        return self._atom(a, "%", b, value_of(a) % value_of(b)) if exact is None else 0

    def _exactly(self, a: Any, b: Any) -> Any:
        """a / b as a sum, where it is one for all numbers; else None. NotImplemented: they are no
        numbers."""
        over, under = self.terms_of(a), self.terms_of(b)
        if over is None or under is None:
            return NotImplemented
        if b == 0:
            raise ZeroDivisionError("integer division or modulo by zero")
        return _divided(over, under)

    def _atom(self, a: Any, what: str, b: Any, value: int) -> Any:
        text = f"({self.text_of(a)}) {what} ({self.text_of(b)})"
        number = self.atoms.get(text)
        if number is None:
            number = self.atoms[text] = len(self.values)
            self.values.append(value)
            self.leasts.append(0 if a >= 0 and b > 0 else -(1 << 64))
            self.steps.append((what, self.sure_terms(a), self.sure_terms(b), number))
        return Symbol(self, {(number,): 1}, value)

    # ---- questions
    def ask(self, a: Any, what: str, b: Any) -> bool:
        """a == b or a < b, noted unless it is so for all numbers."""
        one, other = self.terms_of(a), self.terms_of(b)
        if one is None or other is None:
            if isinstance(b, (float, bool)):
                return bool(a.known() == b if what == "==" else a.known() < b)
            if isinstance(a, (float, bool)):
                return bool(a == b.known() if what == "==" else a < b.known())
            if what == "==":
                return False
            raise Untold("a size is compared with what is no number")
        more = (b - a) if isinstance(b, Symbol) else -(a - b)
        if not isinstance(more, Symbol):
            return bool(more == 0 if what == "==" else more > 0)
        if (more.least or 0) > 0:
            return what == "<"
        below = self.least({atoms: -factor for atoms, factor in more.terms.items()})
        if below is not None and below >= (1 if what == "==" else 0):
            return False
        x, y = value_of(a), value_of(b)
        answer = x == y if what == "==" else x < y
        self.note(a, what, b, answer)
        return answer

    def note(self, a: Any, what: str, b: Any, answer: bool) -> None:
        if not self.open:
            raise Untold("a size that may be any number has outlived its planning")
        asked = (what, self.text_of(a), self.text_of(b))
        if what == "==":
            asked = ("==", min(asked[1:]), max(asked[1:]))
        if asked not in self.asked:
            self.asked.add(asked)
            self.steps.append((what, self.sure_terms(a), self.sure_terms(b), int(answer)))

    # ---- the program
    def text(self, terms: Terms) -> str:
        """A sum as Python text."""
        parts = []
        for atoms, factor in sorted(terms.items()):
            names = [f"a{atom}" for atom in atoms]
            parts.append("*".join(names if factor == 1 and names else [*names, str(factor)]))
        return " + ".join(parts) or "0"

    def text_of(self, value: Any) -> str:
        """An int or a symbol as Python text."""
        return self.text(value.terms) if isinstance(value, Symbol) else repr(int(value))

    def _line(self, step: Step) -> str:
        """A step as Python text."""
        what, one, other, number = step
        text = f"({self.text(one)}) {what} ({self.text(other)})"
        if what in ("//", "%"):
            return f"a{number} = {text}"
        return f"if {'not ' if number else ''}({text}): return None"

    def program(self, groups: Iterable[Sequence[Any]]) -> Callable[..., Any]:
        """``program(*numbers)``: a tuple of ints for each group of ints and symbols; None, where
        something that was asked has another answer."""
        results = ["(" + "".join([self.text_of(v) + ", " for v in group]) + ")" for group in groups]
        lines = [*map(self._line, self.steps), f"return ({''.join([r + ', ' for r in results])})"]
        names = ", ".join([f"a{k}" for k in range(self.count)])
        text = f"def program({names}):\n" + "".join([f"    {line}\n" for line in lines])
        space: dict[str, Any] = {}
        exec(compile(text, "<outline>", "exec"), space)
        result: Callable[..., Any] = space["program"]
        return result


def value_of(x: Any) -> int:
    """An int, or a symbol's example."""
    found: int = x.value if isinstance(x, Symbol) else int(x)
    return found


def _divided(over: Terms, under: Terms) -> Terms | None:
    """The quotient, where the divisor is one product that is in every term; else None."""
    if len(under) != 1:
        return None
    ((divisor, by),) = under.items()
    found: Terms = {}
    for atoms, factor in over.items():
        rest = list(atoms)
        for atom in divisor:
            if atom not in rest:
                return None
            rest.remove(atom)
        if factor % by:
            return None
        found[tuple(rest)] = factor // by
    return found


# ---- symbols inside of other things
_PLAIN = (int, float, complex, str, bytes, type(None), type, ModuleType)
_holding_none: list[tuple[type, ...]] = [_PLAIN]


def hold_no_sizes(*kinds: type) -> None:
    """Says of classes that their objects have no sizes in them: nobody need look."""
    _holding_none[0] = tuple({*_holding_none[0], *kinds})


def symbols_in(thing: Any, seen: set[int] | None = None) -> bool:
    """Is there a symbol in it, or in what it holds: items, fields, what a function closes over?"""
    if isinstance(thing, (Symbol, Ratio)):
        return True
    if isinstance(thing, _holding_none[0]):
        return False
    seen = set() if seen is None else seen
    if id(thing) in seen:
        return False
    seen.add(id(thing))
    return any([symbols_in(part, seen) for part in _parts(thing)])


def _parts(thing: Any) -> list[Any]:
    """What a thing holds."""
    if isinstance(thing, (tuple, list, set, frozenset)):
        return list(thing)
    if isinstance(thing, dict):
        return [*thing, *thing.values()]
    if isinstance(thing, functools.partial):
        return [thing.func, *thing.args, *thing.keywords.values()]
    found: list[Any] = []
    code = getattr(thing, "__code__", None)
    if code is not None:
        for cell in getattr(thing, "__closure__", None) or ():
            try:
                found.append(cell.cell_contents)
            except ValueError:  # an empty cell
                continue
        return [*found, *(getattr(thing, "__defaults__", None) or ()),
                getattr(thing, "__self__", None)]  # fmt: skip
    held = getattr(thing, "__self__", None)
    if held is not None and held is not thing and type(held).__name__ != "module":
        found.append(held)
    if type(thing).__module__ != "builtins":
        found += getattr(thing, "__dict__", {}).values()
        for kind in type(thing).__mro__:
            slots = kind.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if not name.startswith("__"):
                    found.append(getattr(thing, name, None))
    return found


def filled(thing: Any, number: Callable[[Symbol], int], other: Callable[[Any], Any]) -> Any:
    """The same with ``number(symbol)`` in the place of each symbol: of tuples, lists, dicts and
    records. ``other(part)`` is asked first of every part; None: it has nothing to say."""
    if isinstance(thing, Symbol):
        return number(thing)
    if isinstance(thing, _holding_none[0]):
        return thing
    found = other(thing)
    if found is not None:
        return found
    if isinstance(thing, tuple):
        items = [filled(item, number, other) for item in thing]
        return type(thing)(*items) if hasattr(thing, "_fields") else type(thing)(items)
    if isinstance(thing, list):
        return [filled(item, number, other) for item in thing]
    if isinstance(thing, dict):
        return {key: filled(value, number, other) for key, value in thing.items()}
    if not symbols_in(thing):
        return thing
    if getattr(type(thing), "__fields__", None) is not None:
        fields = {n: filled(getattr(thing, n), number, other) for n in thing.__fields__}
        return replace(thing, **fields)
    name = getattr(thing, "__qualname__", type(thing).__name__)
    raise Untold(f"a size that may be any number is inside of {name}")
