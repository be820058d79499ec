"""Expressions as text that reads like the function they were traced from.

`x0 + 2.0 * exp(x1)`; what is used twice, or is long, gets a name: `t0 = exp(x0); t0 / (1.0 + t0)`.
"""

from __future__ import annotations

from collections import Counter

from antorcha.lang.expr.graph import LEAVES, OPS, Expr, walk

_INFIX = {
    "or": ("|", 1), "xor": ("^", 2), "and": ("&", 3),
    "eq": ("==", 0), "ne": ("!=", 0),
    "lt": ("<", 0), "le": ("<=", 0), "gt": (">", 0), "ge": (">=", 0),
    "shl": ("<<", 4), "shr": (">>", 4), "add": ("+", 5), "sub": ("-", 5),
    "mul": ("*", 6), "div": ("/", 6), "floordiv": ("//", 6), "mod": ("%", 6), "pow": ("**", 8),
}  # fmt: skip
_PREFIX = {"neg": "-", "not": "~"}
_ATOM = 10
_LONG = 120  # characters after which a subexpression gets its own name


def show(*roots: Expr) -> str:
    """The graph as Python text; several roots print as a tuple."""
    uses = Counter(a for e in walk(*roots) for a in e.args)
    texts: dict[Expr, tuple[str, int]] = {}
    names: list[str] = []
    for expr in walk(*roots):
        text, level = _one(expr, texts)
        shared = uses[expr] > 1 or (len(text) > _LONG and uses[expr])
        if shared and expr.op not in LEAVES:
            name = f"t{len(names)}"
            names.append(f"{name} = {text}; ")
            text, level = name, _ATOM
        texts[expr] = text, level
    result = ", ".join(texts[r][0] for r in roots)
    return "".join(names) + (result if len(roots) == 1 else f"({result})")


def _one(expr: Expr, texts: dict[Expr, tuple[str, int]]) -> tuple[str, int]:
    """The text of one node given its arguments' texts, and how tightly it binds."""
    if expr.op == "input":
        return f"x{expr.payload}", _ATOM
    if expr.op == "scalar":
        return str(expr.payload), _ATOM
    if expr.op == "const":
        text = repr(expr.payload)
        return text, 7 if text.startswith("-") else _ATOM
    if expr.op in _INFIX:
        sign, level = _INFIX[expr.op]
        right_first = expr.op == "pow"
        left = _wrap(texts[expr.args[0]], level + (right_first or level == 0))
        right = _wrap(texts[expr.args[1]], level + (not right_first))
        return f"{left} {sign} {right}", level
    if expr.op in _PREFIX:
        return _PREFIX[expr.op] + _wrap(texts[expr.args[0]], 7), 7
    inner = [texts[a][0] for a in expr.args]
    if expr.op == "cast":
        inner.append(expr.dtype.name)
    elif expr.payload is not None:
        inner.insert(0, repr(expr.payload))
    record = OPS.get(expr.op)
    if record is not None and record.reduction:
        return f"{_wrap(texts[expr.args[0]], _ATOM)}.{record.public}()", _ATOM
    name = record.public if record is not None else expr.op
    return f"{name}({', '.join(inner)})", _ATOM


def _wrap(text: tuple[str, int], level: int) -> str:
    return text[0] if text[1] >= level else f"({text[0]})"
