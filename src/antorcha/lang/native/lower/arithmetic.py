"""Operators on run-time values: arithmetic, bits, shifts, comparisons, minimum and maximum.

What is undefined in C is defined here: a shift by the width or more (or by a negative count) leaves
no bit but copies of the sign; x // 0 and x % 0 are 0; the most negative integer // -1 is itself.
Integers wrap. ``//`` and ``%`` round towards minus infinity, as in Python.
"""

from __future__ import annotations

from typing import Any

from antorcha.lang.native.lower.convert import Conversions
from antorcha.lang.native.lower.emitter import Value
from antorcha.lang.native.machine import target
from antorcha.lang.native.semantics import PYTHON, SIGN
from antorcha.lang.native.types import Ty, bool_, f32, f64, i64, u16
from antorcha.lang.native.values import ExternData, Global, Lvalue, V

# operator: LLVM predicate for signed, unsigned, float
_PREDICATES = {
    "lt": ("slt", "ult", "olt"), "le": ("sle", "ule", "ole"), "gt": ("sgt", "ugt", "ogt"),
    "ge": ("sge", "uge", "oge"), "eq": ("eq", "eq", "oeq"), "ne": ("ne", "ne", "une"),
}  # fmt: skip


class Arithmetic(Conversions):
    def binary(self, op: str, a: Value, b: Value, node: Any = None) -> Value:
        """``a op b``; op is add sub mul div floordiv mod shl shr and or xor pow."""
        a, b = self.loaded(a, node), self.loaded(b, node)
        if not isinstance(a, V) and not isinstance(b, V):
            return PYTHON[op](a, b)
        if isinstance(a, V) and a.ty.kind == "p":
            return self._pointer_math(op, a, b, node)
        if op == "add" and isinstance(b, V) and b.ty.kind == "p":
            return self._pointer_math(op, b, a, node)
        a, b = self.same(a, b, node)
        kind = a.ty.scalar.kind
        if kind == "f":
            return self._float_op(op, a, b, node)
        if (kind == "b" and op not in ("and", "or", "xor")) or kind not in "iub":
            self.fail(node, f"{SIGN[op]} does not take {a.ty}")
        if op in ("div", "pow"):
            hint = "write // or convert to a float" if op == "div" else "multiply"
            self.fail(node, f"{SIGN[op]} does not take {a.ty}: {hint}")
        if op in ("floordiv", "mod"):
            return self._divide(op, a, b)
        if op in ("shl", "shr"):
            return self._shift(op, a, b, node)
        result = self.v(a.ty, f"{op} {a.ty.ll} {a.ref}, {b.ref}")
        if op in ("and", "or", "xor") and a.ty.kind == "v":
            self.logic.add(result.ref)
        return result

    def loaded(self, x: Value, node: Any) -> Value:
        """Loads a place; makes a symbol a pointer."""
        if isinstance(x, Lvalue):
            return self.load_place(x)
        if isinstance(x, (Global, ExternData)):
            return self.symbol(x, node)
        return x

    def same(self, a: Value, b: Value, node: Any) -> tuple[V, V]:
        """Both operands as values of one type: numbers adapt, scalars fill vectors."""
        a, b = self.loaded(a, node), self.loaded(b, node)
        if not isinstance(a, V):
            if not isinstance(b, V):
                return self.rt(a, node), self.rt(b, node)
            return self.rt(a, node, b.ty), b
        if not isinstance(b, V):
            return a, self.rt(b, node, a.ty)
        if a.ty is b.ty or (a.ty.kind == "p" and b.ty.kind == "p"):
            return a, b
        if a.ty.kind == "v" and b.ty is a.ty.elem:
            return a, self.splat(a.ty, b)
        if b.ty.kind == "v" and a.ty is b.ty.elem:
            return self.splat(b.ty, a), b
        self.fail(node, f"{a.ty} and {b.ty} do not mix; convert one: {a.ty}(...) or {b.ty}(...)")

    def _float_op(self, op: str, a: V, b: V, node: Any) -> V:
        if op not in ("add", "sub", "mul", "div"):
            hint = "; use floor(a / b)" if op in ("floordiv", "mod") else ""
            self.fail(node, f"{SIGN[op]} does not take {a.ty}{hint}")
        if a.ty.half:
            found = self._float_op(op, self.widen(a), self.widen(b), node)
            return self.narrow(a.ty, found)
        return self.v(a.ty, f"f{op} {a.ty.ll} {a.ref}, {b.ref}")

    # ---- pointers
    def _pointer_math(self, op: str, a: V, b: Value, node: Any) -> V:
        if op == "sub" and isinstance(b, V) and b.ty.kind == "p":
            if a.ty is not b.ty:
                self.fail(node, f"{a.ty} and {b.ty} do not mix; convert one")
            left = self.op(f"ptrtoint ptr {a.ref} to i64")
            right = self.op(f"ptrtoint ptr {b.ref} to i64")
            apart = self.op(f"sub i64 {left}, {right}")
            return self.v(i64, f"sdiv exact i64 {apart}, {max(a.ty.elem.size, 1)}")
        if op not in ("add", "sub"):
            self.fail(node, f"{SIGN[op]} does not take {a.ty}")
        if op == "sub":
            b = -b if isinstance(b, int) else self.negate(self.rt(b, node), node)
        return self.gep(a, b, node)

    def gep(self, pointer: V, index: Value, node: Any) -> V:
        """``pointer + index``, in elements."""
        index = self.loaded(index, node)
        if isinstance(index, V):
            if index.ty.kind not in "iu":
                self.fail(node, f"an index must be an integer, not {index.ty}")
            index = self.cast(i64, index, node)
        elif isinstance(index, int) and not isinstance(index, bool):
            if index == 0:
                return pointer
            index = self.const(index, i64, node)
        else:
            self.fail(node, f"an index must be an integer, not {index!r}")
        elem = pointer.ty.elem
        if elem.kind == "void":
            self.fail(node, f"a {pointer.ty} has no elements")
        step = elem.mem if elem.kind in "iufbp" else f"[{elem.size} x i8]"
        return self.v(
            pointer.ty, f"getelementptr inbounds {step}, ptr {pointer.ref}, i64 {index.ref}"
        )

    # ---- integers
    def _divide(self, op: str, a: V, b: V) -> V:
        ty, divisor = a.ty, b.literal
        signed = ty.scalar.kind == "i"
        if divisor and divisor > 0 and divisor & (divisor - 1) == 0:
            if op == "mod":
                return self.v(ty, f"and {ty.ll} {a.ref}, {self.const(divisor - 1, ty).ref}")
            shift = "ashr" if signed else "lshr"
            bits = self.const(divisor.bit_length() - 1, ty)
            return self.v(ty, f"{shift} {ty.ll} {a.ref}, {bits.ref}")
        if divisor == 0:
            return self.zero(ty) if ty.kind == "v" else self.const(0, ty)
        safe, none = self.safe_divisor(a, b)
        whole, rest = self._quotient(a, safe, op == "floordiv")
        if signed:
            whole, rest = self._stepped("add", whole, rest, safe, safe)
        return self._chosen(op, whole, rest, none)

    def _chosen(self, op: str, whole: V, rest: V, none: V | None) -> V:
        """Quotient or rest, as asked for; ``none``: where the divisor is zero."""
        if op == "mod":
            return rest
        return whole if none is None else self.choose(none, self._nought(whole.ty), whole)

    def _nought(self, ty: Ty) -> V:
        return self.const(0, ty)

    def safe_divisor(self, a: V, b: V) -> tuple[V, V | None]:
        """The divisor with 1 in place of what would trap, and the mask of zero divisors.

        x % 1 is 0 and MIN // 1 is MIN: what the language defines for x % 0 and MIN // -1.
        """
        ty, divisor = b.ty, b.literal
        if divisor not in (None, 0, -1):
            return b, None
        one = self.const(1, ty)
        none = self._test("icmp eq", b, 0) if divisor is None else None
        bad = none
        if ty.scalar.kind == "i":
            low = self._test("icmp eq", a, ty.bounds()[0])
            minus = self._test("icmp eq", b, -1)
            over = self.v(low.ty, f"and {low.ty.ll} {low.ref}, {minus.ref}")
            bad = over if bad is None else self.v(low.ty, f"or {low.ty.ll} {bad.ref}, {over.ref}")
        return (b if bad is None else self.choose(bad, one, b)), none

    def _quotient(self, a: V, b: V, whole_wanted: bool) -> tuple[V, V]:
        """a / b rounded towards zero, or of signed vectors to an integer beside it, and the rest.

        Processors divide no vectors of integers, but of floats. A float's quotient is right where
        its digits hold both numbers; of 64 bits it leaves a small rest, which is divided once more.
        """
        ty, wide = a.ty, self._float_for_quotients(a.ty)
        if wide is None or b.literal is not None:
            word = "s" if ty.scalar.kind == "i" else "u"
            if not whole_wanted:
                return a, self.v(ty, f"{word}rem {ty.ll} {a.ref}, {b.ref}")
            whole = self.v(ty, f"{word}div {ty.ll} {a.ref}, {b.ref}")
            return whole, self._rest(a, whole, b)
        under = self.cast(wide, b, None)
        whole = self._float_quotient(a, under)
        rest = self._rest(a, whole, b)
        if ty.scalar.size == 8:
            more = self._float_quotient(rest, under)
            whole, rest = self._bit_op("add", whole, more), self._rest(rest, more, b)
        return whole, rest

    def _float_for_quotients(self, ty: Ty) -> Ty | None:
        """The floats by whose quotients vectors of integers are divided, if that is faster."""
        size = ty.scalar.size
        if ty.kind != "v" or target().arch != "x86_64" or (ty.scalar.kind == "u" and size == 8):
            return None
        if size == 8 and not target().has("avx512dq"):
            return None  # which converts them
        return ty.with_scalar(f32 if size < 4 else f64)

    def _float_quotient(self, a: V, under: V) -> V:
        """a / under, cut to the integers of a."""
        ty, wide = a.ty, under.ty
        over = self.cast(wide, a, None)
        found = self.v(wide, f"fdiv {wide.ll} {over.ref}, {under.ref}")
        if ty.scalar.size == 8:  # 2**63 is none of them
            found = self.overloaded("minnum", wide, found, self.const(2.0**63 - 1024, wide))
        word = "fptosi" if ty.scalar.kind == "i" else "fptoui"
        return self.v(ty, f"{word} {wide.ll} {found.ref} to {ty.ll}")

    def _rest(self, a: V, whole: V, b: V) -> V:
        return self._bit_op("sub", a, self._bit_op("mul", whole, b))

    def _stepped(self, op: str, whole: V, rest: V, divisor: V, like: V) -> tuple[V, V]:
        """With the divisor added to the rest, or subtracted, where that is not 0 and has not the
        sign of ``like``."""
        differ = self._test("icmp slt", self._bit_op("xor", rest, like), 0)
        inexact = self._test("icmp ne", rest, 0)
        fix = self.v(differ.ty, f"and {differ.ty.ll} {differ.ref}, {inexact.ref}")
        less = self.v(whole.ty, f"sext {fix.ty.ll} {fix.ref} to {whole.ty.ll}")
        more = self.choose(fix, divisor, self._nought(rest.ty))
        return self._bit_op(op, whole, less), self._bit_op(op, rest, more)

    def truncating(self, op: str, a: Value, b: Value, node: Any) -> V:
        """C's / and %: rounding towards zero; the same answers for zero divisors as // and %."""
        a, b = self.same(a, b, node)
        ty = a.ty
        if ty.scalar.kind not in "iu":
            self.fail(node, f"truncating division takes integers, not {ty}")
        if b.literal == 0:
            return self.const(0, ty)
        safe, none = self.safe_divisor(a, b)
        whole, rest = self._quotient(a, safe, op == "div")
        by_floats = b.literal is None and self._float_for_quotients(ty) is not None
        if by_floats and ty.scalar.kind == "i" and ty.scalar.size == 8:  # or the integer beside
            whole, rest = self._stepped("add", whole, rest, safe, safe)
            whole, rest = self._stepped("sub", whole, rest, safe, a)
        return self._chosen(op, whole, rest, none)

    def _shift(self, op: str, a: V, b: V, node: Any) -> V:
        ty = a.ty
        bits = ty.scalar.size * 8
        arithmetic = op == "shr" and ty.scalar.kind == "i"
        word = "shl" if op == "shl" else ("ashr" if arithmetic else "lshr")
        count = b.literal
        if count is not None:
            if count < 0:
                self.fail(node, f"a shift by {count}")
            if count >= bits:
                if not arithmetic:
                    return self.const(0, ty)
                b = self.const(bits - 1, ty)
            return self.v(ty, f"{word} {ty.ll} {a.ref}, {b.ref}")
        fits = self._test("icmp ult", b, bits)
        if arithmetic:
            safe = self.choose(fits, b, self.const(bits - 1, ty))
            return self.v(ty, f"{word} {ty.ll} {a.ref}, {safe.ref}")
        found = self.v(ty, f"{word} {ty.ll} {a.ref}, {b.ref}")
        return self.choose(fits, found, self._nought(ty))  # select stops the poison of `found`

    # ---- one operand
    def negate(self, x: V, node: Any) -> V:
        if x.ty.half:
            return self._bit_op_half("xor", x, 0x8000)
        if x.ty.scalar.kind == "f":
            return self.v(x.ty, f"fneg {x.ty.ll} {x.ref}")
        if x.ty.scalar.kind not in "iu":
            self.fail(node, f"- does not take {x.ty}")
        return self.v(x.ty, f"sub {x.ty.ll} {self._nought(x.ty).ref}, {x.ref}")

    def invert(self, x: V, node: Any) -> V:
        if x.ty.scalar.kind == "b":
            return self._bit_op("xor", x, self.const(True, x.ty))
        if x.ty.scalar.kind not in "iu":
            self.fail(node, f"~ does not take {x.ty}")
        ones = self.const(-1 if x.ty.scalar.kind == "i" else x.ty.bounds()[1], x.ty)
        return self._bit_op("xor", x, ones)

    def _bit_op_half(self, op: str, x: V, mask: int) -> V:
        other = self.const(mask, x.ty.with_scalar(u16))
        return self.v(x.ty, f"{op} {x.ty.ll} {x.ref}, {other.ref}")

    def absolute(self, x: V, node: Any) -> V:
        """abs and fabs; the most negative integer stays as it is."""
        kind = x.ty.scalar.kind
        if x.ty.half:
            return self._bit_op_half("and", x, 0x7FFF)
        if kind == "f":
            return self.overloaded("fabs", x.ty, x)
        if kind == "i":
            return self.overloaded("abs", x.ty, x, "i1 false")
        if kind == "u":
            return x
        self.fail(node, f"abs does not take {x.ty}")

    # ---- two operands, no operator
    def minmax(self, low: bool, a: Value, b: Value, node: Any) -> V:
        """min and max. Of floats, a NaN loses to a number; which zero wins is not said."""
        a, b = self.same(a, b, node)
        if a.ty.half:
            found = self.minmax(low, self.widen(a), self.widen(b), node)
            return self.narrow(a.ty, found)
        names = {"f": ("minnum", "maxnum"), "i": ("smin", "smax"), "u": ("umin", "umax")}
        if a.ty.scalar.kind not in names:
            self.fail(node, f"min and max do not take {a.ty}")
        return self.overloaded(names[a.ty.scalar.kind][0 if low else 1], a.ty, a, b)

    def compare(self, op: str, a: Value, b: Value, node: Any = None) -> Value:
        """``a op b``; op is lt le gt ge eq ne. NaN is unequal to all."""
        a, b = self.loaded(a, node), self.loaded(b, node)
        if not isinstance(a, V) and not isinstance(b, V):
            return PYTHON[op](a, b)
        a, b = self.same(a, b, node)
        result = a.ty.with_scalar(bool_)
        if a.ty.half:
            a, b = self.widen(a), self.widen(b)
        kind = a.ty.scalar.kind
        signed, unsigned, floating = _PREDICATES[op]
        if kind == "f":
            return self.v(result, f"fcmp {floating} {a.ty.ll} {a.ref}, {b.ref}")
        predicate = signed if kind == "i" else unsigned
        return self.v(result, f"icmp {predicate} {a.ty.ll} {a.ref}, {b.ref}")
