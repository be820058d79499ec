"""Expressions as MathML, which browsers draw without a script.

What is used more than once, and is more than a leaf, gets a name, as in printed expressions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from html import escape

from antorcha.lang.expr.graph import LEAVES, OPS, Expr, walk

_INFIX = {
    "or": ("∨", 1), "xor": ("⊕", 2), "and": ("∧", 3), "eq": ("=", 4), "ne": ("≠", 4),
    "lt": ("<", 4), "le": ("≤", 4), "gt": (">", 4), "ge": ("≥", 4), "shl": ("≪", 5),
    "shr": ("≫", 5), "add": ("+", 6), "sub": ("−", 6), "mul": ("", 7), "mod": ("mod", 7),
}  # fmt: skip
_ATOM, _PRODUCT, _SUM, _LOOSE = 10, 7, 6, 0
_GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "eps": "ε", "lambd": "λ",
          "rho": "ρ", "threshold": "θ"}  # fmt: skip
_LETTERS = {"input": "x", "other": "y", "self": "x", "out": "out", "grad": "g"}
_PI, _TWO_PI = "<mi>π</mi>", "<mrow><mn>2</mn><mi>π</mi></mrow>"
_CONSTANTS = {
    math.pi: _PI,
    2 / math.sqrt(math.pi): f"<mfrac><mn>2</mn><msqrt>{_PI}</msqrt></mfrac>",
    math.sqrt(math.pi) / 2: f"<mfrac><msqrt>{_PI}</msqrt><mn>2</mn></mfrac>",
    math.sqrt(0.5): "<mfrac><mn>1</mn><msqrt><mn>2</mn></msqrt></mfrac>",
    1 / math.sqrt(2 * math.pi): f"<mfrac><mn>1</mn><msqrt>{_TWO_PI}</msqrt></mfrac>",
    math.sqrt(2 * math.pi): f"<msqrt>{_TWO_PI}</msqrt>",
    math.sqrt(2 / math.pi): f"<msqrt><mfrac><mn>2</mn>{_PI}</mfrac></msqrt>",
    math.log(2): "<mrow><mi>ln</mi><mspace width='0.15em'/><mn>2</mn></mrow>",
    math.log(10): "<mrow><mi>ln</mi><mspace width='0.15em'/><mn>10</mn></mrow>",
    math.pi / 180: f"<mfrac>{_PI}<mn>180</mn></mfrac>",
    180 / math.pi: f"<mfrac><mn>180</mn>{_PI}</mfrac>",
    1 / 6: "<mfrac><mn>1</mn><mn>6</mn></mfrac>",
}
"""Numbers that records round, as what they are."""
_FENCES = {"abs": "||", "floor": "⌊⌋", "ceil": "⌈⌉"}
_NAMES = {
    "minimum": "min", "maximum": "max", "log": "ln", "lgamma": "ln |Γ|", "erfinv": "erf⁻¹",
    "digamma": "ψ", "sigmoid": "σ", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
}  # fmt: skip
Piece = tuple[str, int]
"""Markup, and how tightly it binds."""


def shown(left: str, expr: Expr, names: Sequence[str]) -> str:
    """``left = expr`` as a ``<math>`` block; input k is called ``names[k]``."""
    writer = _MathWriter([letter(name) for name in names])
    body = writer.write(expr)
    rows = [(left, body), *writer.named]
    lines = "".join([_line(a, b, k > 0) for k, (a, b) in enumerate(rows)])
    return f'<math display="block"><mtable columnalign="right left">{lines}</mtable></math>'


def letter(name: str) -> str:
    """The letter, or letters, that stand for a parameter."""
    base, _, mark = name.partition("_") if name.startswith(("out_", "grad_")) else (name, "", "")
    text = _LETTERS.get(base) or _GREEK.get(base) or base
    return f"<msub><mi>{text}</mi><mn>{mark}</mn></msub>" if mark else f"<mi>{escape(text)}</mi>"


def _line(left: str, right: str, is_named: bool) -> str:
    before = "<mtext>with&#xA0;</mtext>" if is_named else ""
    return f"<mtr><mtd>{before}{left}</mtd><mtd><mo>=</mo>{right}</mtd></mtr>"


class _MathWriter:
    """Writes one expression, and notes the names that it gave to parts."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.named: list[tuple[str, str]] = []

    def write(self, root: Expr) -> str:
        uses = Counter(a for e in walk(root) for a in e.args)
        pieces: dict[Expr, Piece] = {}
        for expr in walk(root):
            piece = self._one(expr, pieces)
            shared = uses[expr] > 1 and expr.op not in LEAVES and len(piece[0]) > 80
            if shared:
                name = f"<msub><mi>t</mi><mn>{len(self.named) + 1}</mn></msub>"
                self.named.append((name, piece[0]))
                piece = name, _ATOM
            pieces[expr] = piece
        return pieces[root][0]

    def _one(self, expr: Expr, pieces: dict[Expr, Piece]) -> Piece:
        if expr.op == "input":
            return self.names[int(str(expr.payload))], _ATOM
        if expr.op == "scalar":
            return letter(str(expr.payload)), _ATOM
        if expr.op == "const":
            return _number(expr.payload)
        args = [pieces[a] for a in expr.args]
        if expr.op == "cast":
            return args[0]
        special = getattr(self, f"_{expr.op}", None)
        if special is not None:
            made: Piece = special(*args)
            return made
        if expr.op in _INFIX:
            return _joined(expr.op, *args)
        return _call(expr, args)

    def _div(self, a: Piece, b: Piece) -> Piece:
        return f"<mfrac>{_row(a[0])}{_row(b[0])}</mfrac>", 8

    def _floordiv(self, a: Piece, b: Piece) -> Piece:
        return f"<mrow><mo>⌊</mo>{self._div(a, b)[0]}<mo>⌋</mo></mrow>", _ATOM

    def _pow(self, a: Piece, b: Piece) -> Piece:
        return f"<msup>{_row(_within(a, _ATOM))}{_row(b[0])}</msup>", 9

    def _exp(self, a: Piece) -> Piece:
        return f"<msup><mi>e</mi>{_row(a[0])}</msup>", 9

    def _exp2(self, a: Piece) -> Piece:
        return f"<msup><mn>2</mn>{_row(a[0])}</msup>", 9

    def _expm1(self, a: Piece) -> Piece:
        return f"<mrow>{self._exp(a)[0]}<mo>−</mo><mn>1</mn></mrow>", _SUM

    def _log1p(self, a: Piece) -> Piece:
        inner = f"<mrow><mo>(</mo><mn>1</mn><mo>+</mo>{a[0]}<mo>)</mo></mrow>"
        return f"<mrow><mi>ln</mi><mo>&#x2061;</mo>{inner}</mrow>", 8

    def _sqrt(self, a: Piece) -> Piece:
        return f"<msqrt>{_row(a[0])}</msqrt>", _ATOM

    def _rsqrt(self, a: Piece) -> Piece:
        return f"<mfrac><mn>1</mn>{self._sqrt(a)[0]}</mfrac>", 8

    def _reciprocal(self, a: Piece) -> Piece:
        return f"<mfrac><mn>1</mn>{_row(a[0])}</mfrac>", 8

    def _neg(self, a: Piece) -> Piece:
        return f"<mrow><mo>−</mo>{_within(a, _PRODUCT)}</mrow>", _SUM

    def _not(self, a: Piece) -> Piece:
        return f"<mrow><mo>¬</mo>{_within(a, _ATOM)}</mrow>", 8

    def _where(self, condition: Piece, yes: Piece, no: Piece) -> Piece:
        first = f"<mtr><mtd>{yes[0]}</mtd><mtd><mtext>if&#xA0;</mtext>{condition[0]}</mtd></mtr>"
        rows = f"{first}<mtr><mtd>{no[0]}</mtd><mtd><mtext>otherwise</mtext></mtd></mtr>"
        table = f'<mtable class="cases" columnalign="left left">{rows}</mtable>'
        return f'<mrow><mo stretchy="true">{{</mo>{table}</mrow>', _LOOSE


def _number(value: object) -> Piece:
    if isinstance(value, bool):
        return f"<mtext>{value}</mtext>", _ATOM
    if isinstance(value, complex):
        return f"<mn>{value}</mn>", _LOOSE
    number = float(str(value))
    known = next((m for k, m in _CONSTANTS.items() if math.isclose(abs(number), k)), None)
    if known is None:
        size = abs(number)
        known = "<mi>∞</mi>" if math.isinf(size) else f"<mn>{size:.10g}</mn>"
        if math.isnan(size):
            return "<mi>nan</mi>", _ATOM
    negative = math.copysign(1.0, number) < 0
    return (f"<mrow><mo>−</mo>{known}</mrow>", _SUM) if negative else (known, _ATOM)


def _joined(op: str, a: Piece, b: Piece) -> Piece:
    sign, level = _INFIX[op]
    if op == "mul":
        return _product(a, b)
    left = _within(a, level + (level == 4))
    right = _within(b, level + (op != "add"))
    return f"<mrow>{left}<mo>{escape(sign)}</mo>{right}</mrow>", level


def _product(a: Piece, b: Piece) -> Piece:
    """Two factors: a dot before a digit, a square for two equal ones, a minus sign in front."""
    if a[0] == b[0]:
        return f"<msup>{_row(_within(a, _ATOM))}<mn>2</mn></msup>", 9
    minus = a[0].startswith("<mrow><mo>−</mo>")
    left = a[0] if minus else _within(a, _PRODUCT)
    right = _within(b, _PRODUCT)
    digits = right.replace("<mrow>", "").startswith(("<mn", "<mfrac"))
    between = "<mo>·</mo>" if digits else '<mo>&#x2062;</mo><mspace width="0.12em"/>'
    return f"<mrow>{left}{between}{right}</mrow>", _SUM if minus else _PRODUCT


def _call(expr: Expr, args: list[Piece]) -> Piece:
    """A function that has no sign of its own."""
    if expr.op in _FENCES:
        first, last = _FENCES[expr.op]
        return f"<mrow><mo>{first}</mo>{args[0][0]}<mo>{last}</mo></mrow>", _ATOM
    record = OPS.get(expr.op)
    name = _NAMES.get(expr.op) or (record.public if record is not None else expr.op)
    inner = [text for text, _ in args]
    if expr.payload is not None:
        inner.insert(0, f"<mn>{expr.payload}</mn>")
    listed = "<mo>,</mo>".join(inner)
    shown_name = f"<mi>{escape(name)}</mi><mo>&#x2061;</mo>"
    return f"<mrow>{shown_name}<mrow><mo>(</mo>{listed}<mo>)</mo></mrow></mrow>", 8


def _within(piece: Piece, level: int) -> str:
    """The markup, in parentheses where it binds less tightly than what is around it."""
    text, binds = piece
    return text if binds >= level else f"<mrow><mo>(</mo>{text}<mo>)</mo></mrow>"


def _row(text: str) -> str:
    return f"<mrow>{text}</mrow>"
