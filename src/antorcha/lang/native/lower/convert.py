"""Conversions between types, for scalars and vectors alike.

- int to int keeps the low bits; int to float rounds to nearest; a bool is 0 or 1; x to bool is
  x != 0 (a NaN is true).
- float to int drops the fraction. Outside of the i32 range (i64 for u32, i64 and u64) the result is
  the machine's; narrower integers take the low bits of the i32.
- f16 and bf16 go through f32, in bits where the machine has no instruction for it: the code
  generator would call C functions that a process need not have. float64 to a half type thus rounds
  twice, as PyTorch does.
"""

from __future__ import annotations

from typing import Any

from antorcha.lang.native.lower.emitter import Emitter, Value
from antorcha.lang.native.types import Ty, bool_, f16, f32, f64, i32, i64, u8, u16, u32, vec
from antorcha.lang.native.values import Lvalue, V


class Conversions(Emitter):
    def cast(self, ty: Ty, x: Value, node: Any = None) -> V:
        """``ty(x)``: the conversion that a program asks for."""
        if isinstance(x, Lvalue):
            x = self.load_place(x)
        if not isinstance(x, V):
            named = self.symbol(x, node)
            if named is None:
                return self._cast_constant(ty, x, node)
            x = named
        have: Ty = x.ty
        if have is ty:
            return x  # type: ignore[no-any-return]
        if ty.kind == "v":
            if have.kind != "v":
                return self.splat(ty, self.cast(ty.elem, x, node))
            if have.n != ty.n:
                self.fail(node, f"a {have} does not become a {ty}: the lanes differ")
        elif have.kind == "v":
            self.fail(node, f"a {have} does not become the scalar {ty}; take an element")
        if "p" in (have.kind, ty.kind):
            return self._cast_pointer(ty, x, node)
        if ty.kind not in "iufbv" or have.kind not in "iufbv":
            self.fail(node, f"a {have} does not become a {ty}")
        return self._cast_number(ty, x)

    def _cast_constant(self, ty: Ty, x: Any, node: Any) -> V:
        kind = ty.scalar.kind
        if not isinstance(x, (int, float, type(None))):
            self.fail(node, f"{x!r} does not become a {ty}")
        if kind == "p" and isinstance(x, int) and not isinstance(x, bool) and x:
            return self.v(ty, f"inttoptr i64 {i64.wrap(x)} to ptr")
        if kind in "iu" and x is not None:
            try:
                x = ty.scalar.wrap(int(x))
            except (ValueError, OverflowError):
                self.fail(node, f"{x} does not become a {ty}")
        if kind == "f" and x is not None:
            x = float(x)
        if kind == "b" and x is not None:
            x = bool(x)
        return self.const(x, ty, node)

    def _cast_pointer(self, ty: Ty, x: V, node: Any) -> V:
        if x.ty.kind == ty.kind:
            return V(ty, x.ref)
        other = x.ty if ty.kind == "p" else ty
        if other.kind not in "iu":
            self.fail(node, f"a {x.ty} does not become a {ty}")
        if x.ty.kind == "p":
            return self.v(ty, f"ptrtoint ptr {x.ref} to {ty.ll}")
        wide = self.cast(i64, x, node)
        return self.v(ty, f"inttoptr i64 {wide.ref} to ptr")

    def _cast_number(self, ty: Ty, x: V) -> V:
        have = x.ty
        a, b = have.scalar, ty.scalar
        if b.kind == "b":
            if have.half:
                x = self.widen(x)
            zero = self.zero(x.ty).ref if x.ty.kind == "v" else ("0.0" if a.kind == "f" else "0")
            test = "fcmp une" if a.kind == "f" else "icmp ne"
            return self.v(ty, f"{test} {x.ty.ll} {x.ref}, {zero}")
        if have.half:
            return (
                self._cast_number(ty, self.widen(x))
                if not ty.half
                else self.narrow(ty, self.widen(x))
            )
        if ty.half:
            return self.narrow(ty, self.cast(ty.with_scalar(f32), x))
        if a is b:
            return x
        if a.kind == "f" and b.kind == "f":
            word = "fpext" if a.size < b.size else "fptrunc"
        elif a.kind == "f":
            return self._float_to_int(ty, x)
        elif b.kind == "f":
            word = "sitofp" if a.kind == "i" else "uitofp"
        elif a.kind == "b" or a.size < b.size:
            word = "sext" if a.kind == "i" else "zext"
        elif a.size == b.size:
            return V(ty, x.ref)
        else:
            word = "trunc"
        return self.v(ty, f"{word} {have.ll} {x.ref} to {ty.ll}")

    def _float_to_int(self, ty: Ty, x: V) -> V:
        to = ty.scalar
        if to.size == 8 and to.kind == "u":
            return self.v(ty, f"fptoui {x.ty.ll} {x.ref} to {ty.ll}")
        middle = ty.with_scalar(i64 if to.size == 8 or to is u32 else i32)
        found = self.v(middle, f"fptosi {x.ty.ll} {x.ref} to {middle.ll}")
        return self._cast_number(ty, found)

    # ---- f16 and bf16
    def widen(self, x: V) -> V:
        """A half-type value as f32; anything else as it is."""
        if not x.ty.half:
            return x
        ty = x.ty
        wide, word = ty.with_scalar(f32), ty.with_scalar(u32)
        if ty.scalar is not f16:
            bits = self.op(f"zext {ty.ll} {x.ref} to {word.ll}")
            high = self.op(f"shl {word.ll} {bits}, {self.const(16, word).ref}")
            return self.v(wide, f"bitcast {word.ll} {high} to {wide.ll}")
        if self.target.converts_f16:
            half = f"<{ty.n} x half>" if ty.kind == "v" else "half"
            bits = self.op(f"bitcast {ty.ll} {x.ref} to {half}")
            return self.v(wide, f"fpext {half} {bits} to {wide.ll}")
        return self._widen_bits(x, wide, word)

    def narrow(self, ty: Ty, x: V) -> V:
        """f32 rounded to a half type, ties to even."""
        word = ty.with_scalar(u32)
        if ty.scalar is not f16:
            return self._narrow_bf16(ty, x, word)
        if self.target.converts_f16:
            half = f"<{ty.n} x half>" if ty.kind == "v" else "half"
            bits = self.op(f"fptrunc {x.ty.ll} {x.ref} to {half}")
            return self.v(ty, f"bitcast {half} {bits} to {ty.ll}")
        return self._narrow_bits(ty, x, word)

    def _bits(self, word: Ty, x: V) -> V:
        return self.v(word, f"bitcast {x.ty.ll} {x.ref} to {word.ll}")

    def _bit_op(self, name: str, a: V, b: V | int) -> V:
        other = b if isinstance(b, V) else self.const(b, a.ty)
        return self.v(a.ty, f"{name} {a.ty.ll} {a.ref}, {other.ref}")

    def _test(self, name: str, a: V, b: V | int) -> V:
        other = b if isinstance(b, V) else self.const(b, a.ty)
        return self.v(a.ty.with_scalar(bool_), f"{name} {a.ty.ll} {a.ref}, {other.ref}")

    def choose(self, mask: V, a: V, b: V) -> V:
        """Lane by lane, a where the mask is set, else b (LLVM's select).

        For AVX-512, LLVM 22 makes one masked vpternlog of a select between x and bits of x and of
        another value, and it takes the operands in the wrong order: logic is fenced off there.
        """
        a, b = self._fenced(a), self._fenced(b)
        return self.v(a.ty, f"select {mask.ty.ll} {mask.ref}, {a.ty.ll} {a.ref}, {b.ty.ll} {b.ref}")

    def _fenced(self, x: V) -> V:
        """The value, out of sight of what would fuse its computation with its use."""
        if x.ref not in self.logic or x.ty.scalar.size < 4 or self.target.vector_bits != 512:
            return x
        floats = x.ty.with_scalar(f64 if x.ty.scalar.size == 8 else f32)
        result = self.overloaded("arithmetic.fence", floats, self.bitcast(floats, x))
        return self.bitcast(x.ty, result)

    def _narrow_bf16(self, ty: Ty, x: V, word: Ty) -> V:
        bits = self._bits(word, x)
        last = self._bit_op("and", self._bit_op("lshr", bits, 16), 1)
        rounded = self._bit_op("add", self._bit_op("add", bits, last), 0x7FFF)
        high = self._bit_op("lshr", rounded, 16)
        nan = self._test("fcmp uno", x, x)
        high = self.choose(nan, self.const(0x7FC0, word), high)
        return self.v(ty, f"trunc {word.ll} {high.ref} to {ty.ll}")

    def _widen_bits(self, x: V, wide: Ty, word: Ty) -> V:
        """Exact also for denormals: the exponent is moved by a multiplication."""
        bits = self.v(word, f"zext {x.ty.ll} {x.ref} to {word.ll}")
        body = self._bit_op("shl", self._bit_op("and", bits, 0x7FFF), 13)
        scaled = self.v(
            wide,
            f"fmul {wide.ll} {self.v(wide, f'bitcast {word.ll} {body.ref} to {wide.ll}').ref}, "
            f"{self.const(2.0**112, wide).ref}",
        )
        special = self._test("icmp uge", body, 0x7C00 << 13)
        large = self._bit_op("or", body, 0x7F800000)
        sign = self._bit_op("shl", self._bit_op("and", bits, 0x8000), 16)
        chosen = self.choose(special, large, self._bits(word, scaled))
        both = self._bit_op("or", chosen, sign)
        return self.v(wide, f"bitcast {word.ll} {both.ref} to {wide.ll}")

    def _narrow_bits(self, ty: Ty, x: V, word: Ty) -> V:
        """Rounding by adding a power of two that leaves the wanted bits at the bottom (the method
        of M. Dukhan's FP16 library)."""
        wide = x.ty
        bits = self._bits(word, x)
        sign = self._bit_op("and", self._bit_op("lshr", bits, 16), 0x8000)
        twice = self._bit_op("shl", bits, 1)
        absolute = self._bit_op("lshr", twice, 1)
        base = self.v(wide, f"bitcast {word.ll} {absolute.ref} to {wide.ll}")
        for scale in (2.0**112, 2.0**-110):  # large values become infinite
            base = self.v(wide, f"fmul {wide.ll} {base.ref}, {self.const(scale, wide).ref}")
        bias = self._bit_op("and", twice, 0xFF000000)
        low = self._test("icmp ult", bias, 0x71000000)
        bias = self.choose(low, self.const(0x71000000, word), bias)
        magic = self._bit_op("add", self._bit_op("lshr", bias, 1), 0x07800000)
        added = self.v(wide, f"bitcast {word.ll} {magic.ref} to {wide.ll}")
        total = self._bits(word, self.v(wide, f"fadd {wide.ll} {added.ref}, {base.ref}"))
        exponent = self._bit_op("and", self._bit_op("lshr", total, 13), 0x7C00)
        found = self._bit_op("add", exponent, self._bit_op("and", total, 0x0FFF))
        nan = self._test("icmp ugt", twice, 0xFF000000)
        found = self._bit_op("or", self.choose(nan, self.const(0x7E00, word), found), sign)
        return self.v(ty, f"trunc {word.ll} {found.ref} to {ty.ll}")

    # ---- reinterpretation
    def bitcast(self, ty: Ty, x: V, node: Any = None) -> V:
        """The same bits as another type of the same size."""
        have = x.ty
        if have.size != ty.size or {have.kind, ty.kind} - set("iufv") or "b" in (
            have.scalar.kind, ty.scalar.kind,
        ):  # fmt: skip
            self.fail(node, f"the bits of a {have} are not those of a {ty}")
        if have.ll == ty.ll:
            return V(ty, x.ref)
        result = self.v(ty, f"bitcast {have.ll} {x.ref} to {ty.ll}")
        if x.ref in self.logic:
            self.logic.add(result.ref)
        return result


__all__ = ["Conversions", "i32", "u8", "u16", "vec"]
