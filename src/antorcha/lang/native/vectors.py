"""Vectors and math: each name has an LLVM side and a plain-Python side (in ``plain``).

A mask is a vector of bools. Reductions of floats add lane k to lane k + n/2, and so on by halves:
one order on every machine. Half types are reduced in f32 and rounded once.
"""

from __future__ import annotations

from typing import Any

from antorcha.lang.native import plain as py
from antorcha.lang.native.types import Ty, bool_, f32, i32, i64, ptr, u8, u32, u64, vec, void
from antorcha.lang.native.values import Intrinsic, V, intrinsic


# ---- lane by lane
@intrinsic(py.select)
def select(g: Any, node: Any, c: Any, a: Any, b: Any) -> Any:
    """``select(c, a, b)``: a where c holds, else b; both are computed. c may be a mask or a
    bool."""
    if not isinstance(c, V):
        return a if c else b
    if (isinstance(a, V) and isinstance(b, V)) or isinstance(a, V) or isinstance(b, V):
        a, b = g.same(a, b, node)
    else:
        a, b = g.rt(a, node), g.rt(b, node)
    if c.ty.scalar is not bool_:
        g.fail(node, f"select takes a bool or a mask, not {c.ty}")
    if c.ty.kind == "v" and a.ty.kind != "v":
        wide = vec[a.ty, c.ty.n]
        a, b = g.splat(wide, a), g.splat(wide, b)
    if c.ty.kind == "v" and c.ty.n != a.ty.n:
        g.fail(node, f"a mask of {c.ty.n} lanes chooses among {a.ty.n}")
    return g.choose(c, a, b)


@intrinsic(py.fma)
def fma(g: Any, node: Any, a: Any, b: Any, c: Any) -> V:
    """a * b + c, rounded once (half types: once to f32, once to themselves); integers wrap."""
    operands = [g.loaded(x, node) for x in (a, b, c)]
    values = [x for x in operands if isinstance(x, V)]
    ty: Any = next((x.ty for x in values if x.ty.kind == "v"), values[0].ty if values else None)
    if ty is None or ty.scalar.kind not in "fiu":
        g.fail(node, f"fma takes numbers, not {ty}")
    first, second, third = (g.widen(g.rt(x, node, ty)) for x in operands)
    if ty.scalar.kind != "f":
        product = g.binary("mul", first, second, node)
        return g.binary("add", product, third, node)  # type: ignore[no-any-return]
    found = g.overloaded("fma", first.ty, first, second, third)
    return g.narrow(ty, found) if ty.half else found  # type: ignore[no-any-return]


def _unary(name: str, kinds: str, python: Any, doc: str) -> Intrinsic:
    def emit(g: Any, node: Any, x: Any) -> V:
        x = g.rt(x, node)
        if x.ty.scalar.kind not in kinds:
            g.fail(node, f"{result.name} does not take {x.ty}")
        found = g.overloaded(name, x.ty.wide, g.widen(x))
        return g.narrow(x.ty, found) if x.ty.half else found  # type: ignore[no-any-return]

    result = Intrinsic(emit, python, name=name)
    result.__doc__ = doc
    return result


sqrt = _unary("sqrt", "f", py.unary("sqrt"), "The square root, correctly rounded.")
floor = _unary("floor", "f", py.unary("floor"), "The greatest whole number that is not above x.")
ceil = _unary("ceil", "f", py.unary("ceil"), "The least whole number that is not below x.")
trunc = _unary("trunc", "f", py.unary("trunc"), "x without its fraction.")
roundeven = _unary("roundeven", "f", py.unary("rint"), "The nearest whole number, ties to even.")
ctpop = _unary("ctpop", "iu", py.ctpop, "How many bits are set.")
bswap = _unary("bswap", "iu", py.bswap, "The bytes in the other order.")


@intrinsic(py.fabs)
def fabs(g: Any, node: Any, x: Any) -> V:
    """The absolute value; of integers too (the most negative stays as it is)."""
    return g.absolute(g.rt(x, node), node)  # type: ignore[no-any-return]


@intrinsic(py.copysign)
def copysign(g: Any, node: Any, x: Any, sign: Any) -> V:
    """x with the sign of `sign`."""
    x, sign = g.same(x, sign, node)
    if x.ty.scalar.kind != "f":
        g.fail(node, f"copysign takes floats, not {x.ty}")
    # The fence, for of a sign that was an f64 and a result that is an f16 LLVM would make a
    # conversion of one to the other, which calls a function that is nowhere. (In bits instead, LLVM
    # 22 makes a wrong masked vpternlog of it where a select follows.)
    wide = x.ty.wide
    fenced = g.overloaded("arithmetic.fence", wide, g.widen(sign))
    found = g.overloaded("copysign", wide, g.widen(x), fenced)
    return g.narrow(x.ty, found) if x.ty.half else found  # type: ignore[no-any-return]


def _zeros(name: str, python: Any, doc: str) -> Intrinsic:
    def emit(g: Any, node: Any, x: Any) -> V:
        x = g.rt(x, node)
        if x.ty.scalar.kind not in "iu":
            g.fail(node, f"{result.name} takes integers, not {x.ty}")
        return g.overloaded(name, x.ty, x, "i1 false")  # type: ignore[no-any-return]

    result = Intrinsic(emit, python, name={"ctlz": "clz", "cttz": "ctz"}[name])
    result.__doc__ = doc
    return result


clz = _zeros("ctlz", py.clz, "Zero bits above the highest set one; all bits of 0.")
ctz = _zeros("cttz", py.ctz, "Zero bits below the lowest set one; all bits of 0.")


def _nan_minmax(name: str) -> Intrinsic:
    def emit(g: Any, node: Any, a: Any, b: Any) -> V:
        a, b = g.same(a, b, node)
        if a.ty.scalar.kind != "f":
            return g.minmax(name == "minimum", a, b, node)  # type: ignore[no-any-return]
        found = g.overloaded(name, a.ty.wide, g.widen(a), g.widen(b))
        return g.narrow(a.ty, found) if a.ty.half else found  # type: ignore[no-any-return]

    result = Intrinsic(emit, py.nan_minmax(name), name=name)
    result.__doc__ = f"The {name} of two values; a NaN wins, and -0 is below +0."
    return result


minimum, maximum = _nan_minmax("minimum"), _nan_minmax("maximum")


def _truncating(op: str, doc: str) -> Intrinsic:
    def emit(g: Any, node: Any, a: Any, b: Any) -> V:
        return g.truncating(op, a, b, node)  # type: ignore[no-any-return]

    result = Intrinsic(emit, py.truncating(op), name=f"trunc_{op}")
    result.__doc__ = doc
    return result


trunc_div = _truncating("div", "C's integer a / b, towards zero; a / 0 is 0, MIN / -1 is MIN.")
trunc_mod = _truncating("mod", "C's integer a % b, the sign of a; a % 0 is 0.")


@intrinsic(py.mulhi)
def mulhi(g: Any, node: Any, a: Any, b: Any) -> V:
    """The upper half of the double-width product of two integers."""
    a, b = g.same(a, b, node)
    ty = a.ty
    if ty.scalar.kind not in "iu":
        g.fail(node, f"mulhi takes integers, not {ty}")
    bits = ty.scalar.size * 8
    wide = f"<{ty.n} x i{2 * bits}>" if ty.kind == "v" else f"i{2 * bits}"
    shift = f"splat (i{2 * bits} {bits})" if ty.kind == "v" else str(bits)
    if bits == 64 and g.target.grid == "spirv":  # (which has no integers of 128 bits)
        name = "_Z6mul_hill" if ty.scalar.kind == "i" else "_Z6mul_himm"
        return g.intr(name, ty, [a, b])  # type: ignore[no-any-return]
    word = "sext" if ty.scalar.kind == "i" else "zext"
    x, y = (g.op(f"{word} {ty.ll} {v.ref} to {wide}") for v in (a, b))
    high = g.op(f"lshr {wide} {g.op(f'mul {wide} {x}, {y}')}, {shift}")
    return g.v(ty, f"trunc {wide} {high} to {ty.ll}")  # type: ignore[no-any-return]


@intrinsic(py.dot_pairs)
def dot_pairs(g: Any, node: Any, total: Any, a: Any, b: Any) -> V:
    """total + a.high * b.high + a.low * b.low for the bf16 numbers in the halves of 16 u32.

    Only for x86 with avx512bf16 (`Target.has`); what is less than the least normal number is 0."""
    total, a, b = (g.rt(v, node) for v in (total, a, b))
    if total.ty is not vec[f32, 16] or any(v.ty is not vec[u32, 16] for v in (a, b)):
        g.fail(node, f"dot_pairs takes 16 f32 and twice 16 u32, not {total.ty}, {a.ty}, {b.ty}")
    pairs = [g.op(f"bitcast {v.ty.ll} {v.ref} to <32 x bfloat>") for v in (a, b)]
    args = [total, *[f"<32 x bfloat> {each}" for each in pairs]]
    return g.intr("llvm.x86.avx512bf16.dpbf16ps.512", total.ty, args)  # type: ignore[no-any-return]


# ---- making and taking apart
@intrinsic(py.lanes)
def lanes(g: Any, node: Any, ty: Ty, n: int) -> V:
    """The vector 0, 1, ..., n - 1."""
    items = ", ".join(f"{ty.ll} {g.const(k, ty, node).ref}" for k in range(n))
    return V(vec[ty, n], f"<{items}>")


@intrinsic(py.first)
def first(g: Any, node: Any, n: int, count: Any) -> V:
    """A mask of n lanes of which the first `count` are set (none when it is negative)."""
    count = g.rt(count, node)
    if count.ty.kind not in "iu":
        g.fail(node, f"first takes a count, not {count.ty}")
    few = g.cast(i32, g.minmax(True, count, min(n, count.ty.bounds()[1]), node), node)
    if count.ty.kind == "i" and count.ty.size == 8:
        few = g.cast(i32, g.minmax(False, g.minmax(True, count, n, node), 0, node), node)
    wide = g.splat(vec[i32, n], few)
    return g.compare("lt", lanes.emit(g, node, i32, n), wide, node)  # type: ignore[no-any-return]


@intrinsic(py.insert)
def insert(g: Any, node: Any, v: Any, i: Any, x: Any) -> V:
    """The vector with lane i set to x."""
    v, i = g.rt(v, node), g.rt(i, node)
    x = g.rt(x, node, v.ty.elem)
    return g.v(v.ty, f"insertelement {v.ty.ll} {v.ref}, {x.ty.ll} {x.ref}, {i.ty.ll} {i.ref}")  # type: ignore[no-any-return]


@intrinsic(py.shuffle)
def shuffle(g: Any, node: Any, a: Any, b: Any, ix: Any) -> V:
    """Lanes of a (0 .. n-1) and b (n .. 2n-1), chosen by compile-time numbers; -1: any value."""
    a = g.rt(a, node)
    b = a if b is None else g.rt(b, node, a.ty)
    if a.ty.kind != "v" or any(not -1 <= k < 2 * a.ty.n for k in ix):
        g.fail(node, f"shuffle of {a.ty} by {tuple(ix)}")
    text = ", ".join("i32 poison" if k < 0 else f"i32 {k}" for k in ix)
    mask = f"<{len(ix)} x i32> <{text}>"
    return g.v(  # type: ignore[no-any-return]
        vec[a.ty.elem, len(ix)], f"shufflevector {a.ty.ll} {a.ref}, {a.ty.ll} {b.ref}, {mask}"
    )


# ---- memory
def _masked(g: Any, node: Any, mask: Any, n: int) -> V:
    mask = g.rt(mask, node)
    if mask.ty is not vec[bool_, n]:
        g.fail(node, f"the mask is a {mask.ty}, not a {vec[bool_, n]}")
    return mask  # type: ignore[no-any-return]


def _stored(ty: Ty) -> Ty:
    """The vector type as it lies in memory: bools are bytes."""
    return vec[u8, ty.n] if ty.elem.kind == "b" else ty


@intrinsic(py.vload)
def vload(g: Any, node: Any, p: Any, n: int, mask: Any = None) -> V:
    """n values from p on; with a mask, only its lanes are read and the others are 0."""
    p = g.rt(p, node)
    if p.ty.kind != "p" or p.ty.elem.kind not in "iufbp":
        g.fail(node, f"vload takes a pointer to scalars, not {p.ty}")
    ty = vec[p.ty.elem, n]
    align = p.ty.elem.align
    if mask is None:
        return g.load(ty, p.ref, align)  # type: ignore[no-any-return]
    kept = _stored(ty)
    args = [p, f"i32 {align}", _masked(g, node, mask, n), V(kept, "zeroinitializer")]
    found = g.overloaded_at("masked.load", kept, ".p0", args)
    return g.from_bytes(ty, found.ref) if kept is not ty else found  # type: ignore[no-any-return]


@intrinsic(py.vstore)
def vstore(g: Any, node: Any, p: Any, v: Any, mask: Any = None, stream: bool = False) -> None:
    """Writes a vector's lanes from p on, all or those of the mask. ``stream``: past the caches; the
    address must then be a multiple of the vector's size, or of 64."""
    p, v = g.rt(p, node), g.rt(v, node)
    if p.ty.kind != "p" or v.ty.kind != "v" or v.ty.elem is not p.ty.elem:
        g.fail(node, f"a {v.ty} does not go through a {p.ty}")
    align = p.ty.elem.align
    if mask is None:
        extra = ", !nontemporal !0" if stream else ""
        return g.store(v, p.ref, min(v.ty.size, 64) if stream else align, extra)  # type: ignore[no-any-return]
    kept = _stored(v.ty)
    if kept is not v.ty:
        v = g.to_bytes(v)
    args = [v, p, f"i32 {align}", _masked(g, node, mask, v.ty.n)]
    g.overloaded_at("masked.store", kept, ".p0", args, void)


def _addresses(g: Any, node: Any, p: Any, ix: V) -> V:
    if p.ty.kind != "p" or p.ty.elem.kind not in "iufbp":
        g.fail(node, f"a gather or scatter takes a pointer to scalars, not {p.ty}")
    if ix.ty.kind != "v" or ix.ty.elem.kind not in "iu":
        g.fail(node, f"the indices are a vector of integers, not {ix.ty}")
    if ix.ty.elem.kind == "u":
        ix = g.cast(vec[i64, ix.ty.n], ix, node)  # LLVM takes indices as signed
    text = f"getelementptr inbounds {p.ty.elem.mem}, ptr {p.ref}, {ix.ty.ll} {ix.ref}"
    return V(vec[ptr[p.ty.elem], ix.ty.n], g.op(text))


@intrinsic(py.vgather)
def vgather(g: Any, node: Any, p: Any, ix: Any, mask: Any = None) -> V:
    """The values p[ix[k]]; lanes outside of the mask are not read and are 0."""
    p, ix = g.rt(p, node), g.rt(ix, node)
    at = _addresses(g, node, p, ix)
    ty = vec[p.ty.elem, ix.ty.n]
    kept = _stored(ty)
    few = g.const(True, vec[bool_, ty.n]) if mask is None else _masked(g, node, mask, ty.n)
    args = [at, f"i32 {p.ty.elem.align}", few, V(kept, "zeroinitializer")]
    found = g.overloaded_at("masked.gather", kept, f".v{ty.n}p0", args)
    return g.from_bytes(ty, found.ref) if kept is not ty else found  # type: ignore[no-any-return]


@intrinsic(py.vscatter)
def vscatter(g: Any, node: Any, p: Any, ix: Any, v: Any, mask: Any = None) -> None:
    """p[ix[k]] = v[k], in the order of the lanes; only the mask's lanes."""
    p, ix = g.rt(p, node), g.rt(ix, node)
    v = g.rt(v, node, vec[p.ty.elem, ix.ty.n])
    at = _addresses(g, node, p, ix)
    kept = _stored(v.ty)
    few = g.const(True, vec[bool_, v.ty.n]) if mask is None else _masked(g, node, mask, v.ty.n)
    if kept is not v.ty:
        v = g.to_bytes(v)
    args = [v, at, f"i32 {p.ty.elem.align}", few]
    g.overloaded_at("masked.scatter", kept, f".v{v.ty.n}p0", args, void)


# ---- reductions
def _halves(g: Any, v: V, join: Any) -> V:
    """Folds a vector by halves; a lane left over by an odd count is folded in at the end."""
    ty, rest = v.ty, []
    while ty.n > 1:
        half = ty.n // 2
        if ty.n % 2:
            rest.append(g.v(ty.elem, f"extractelement {ty.ll} {v.ref}, i64 {ty.n - 1}"))
        low, high = (shuffle.emit(g, None, v, v, range(k, k + half)) for k in (0, half))
        v, ty = join(low, high), vec[ty.elem, half]
    found = g.v(ty.elem, f"extractelement {ty.ll} {v.ref}, i64 0")
    for each in rest:
        found = join(found, each)
    return found  # type: ignore[no-any-return]


def _reduction(name: str, doc: str) -> Intrinsic:
    def emit(g: Any, node: Any, v: Any) -> V:
        v = g.rt(v, node)
        if v.ty.kind != "v" or v.ty.elem.kind not in "iuf":
            g.fail(node, f"{result.name} takes a vector of numbers, not {v.ty}")
        if name == "add" and v.ty.elem.kind in "iu":
            return g.intr(f"llvm.vector.reduce.add.v{v.ty.n}{v.ty.elem.ll}", v.ty.elem, [v])  # type: ignore[no-any-return]

        def join(a: V, b: V) -> Any:
            if name in ("add", "mul"):
                return g.binary(name, a, b, node)
            return g.minmax(name == "min", a, b, node)

        found = _halves(g, g.widen(v), join)
        return g.narrow(v.ty.elem, found) if v.ty.half else found

    result = Intrinsic(emit, py.reduction(name), name=f"reduce_{name}")
    result.__doc__ = doc
    return result


reduce_add = _reduction("add", "The sum of a vector's lanes (floats: by halves).")
reduce_mul = _reduction("mul", "The product of a vector's lanes (floats: by halves).")
reduce_max = _reduction("max", "The greatest lane (as max: a NaN loses to a number).")
reduce_min = _reduction("min", "The least lane (as min: a NaN loses to a number).")


def _mask_reduction(name: str) -> Intrinsic:
    def emit(g: Any, node: Any, mask: Any) -> V:
        mask = g.rt(mask, node)
        if mask.ty.kind != "v" or mask.ty.elem is not bool_:
            g.fail(node, f"{result.name} takes a mask, not {mask.ty}")
        return g.intr(  # type: ignore[no-any-return]
            f"llvm.vector.reduce.{'or' if name == 'any' else 'and'}.v{mask.ty.n}i1", bool_, [mask]
        )

    result = Intrinsic(emit, py.mask_reduction(name), name=f"reduce_{name}")
    result.__doc__ = f"Is {name} lane of a mask set? (A bool.)"
    return result


reduce_any, reduce_all = _mask_reduction("any"), _mask_reduction("all")


@intrinsic(py.mask_bits)
def mask_bits(g: Any, node: Any, mask: Any) -> V:
    """A mask of up to 64 lanes as a u64, lane 0 lowest."""
    mask = g.rt(mask, node)
    if mask.ty.kind != "v" or mask.ty.elem is not bool_ or mask.ty.n > 64:
        g.fail(node, f"mask_bits takes a mask of up to 64 lanes, not {mask.ty}")

    n = mask.ty.n
    word = g.op(f"bitcast {mask.ty.ll} {mask.ref} to i{n}")
    return V(u64, word if n == 64 else g.op(f"zext i{n} {word} to i64"))


__all__ = [
    "bswap", "ceil", "clz", "copysign", "ctpop", "ctz", "dot_pairs", "fabs", "first", "floor",
    "fma", "insert", "lanes", "mask_bits", "maximum", "minimum", "mulhi", "reduce_add",
    "reduce_all", "reduce_any", "reduce_max", "reduce_min", "reduce_mul", "roundeven", "select",
    "shuffle", "sqrt", "trunc", "trunc_div", "trunc_mod", "u32", "vgather", "vload", "vscatter",
    "vstore",
]  # fmt: skip
