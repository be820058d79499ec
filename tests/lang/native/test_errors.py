"""What is refused, and what the refusal says: the line, a caret, and the chain of expansions."""

# ruff: noqa: F821 (annotations name compile-time parameters)

from __future__ import annotations

import re

import numpy as np
import pytest

import antorcha.lang.native as language
from antorcha.lang.native import (
    Extern,
    NativeError,
    f32,
    f64,
    i32,
    i64,
    inline,
    native,
    ptr,
    struct,
    void,
)


@struct
class Pair:
    a: i64
    b: f32


@native
def takes_two(a: i64, b: f32) -> i64:
    return a


@inline
def doubled(x):
    return x * 2


@inline
def picky(x):
    return x + i32(1)


missing = Extern("antorcha_no_such_symbol", i64, i64)
TABLE = np.zeros(3)
PAIRS = (1, 2, 3)

# each: the body of a function (x: i64, p: ptr[f32], s: ptr[Pair], v from memory) and what is said
CASES = [
    ("return x + i32(1)", "i64 and i32 do not mix; convert one: i64(...) or i32(...)"),
    ("return x / 2", "/ does not take i64: write // or convert to a float"),
    ("y = p[0] // 2.0", "// does not take f32; use floor(a / b)"),
    ("y = p[0] % 2.0", "% does not take f32"),
    ("y = p[0] & 3.0", "& does not take f32"),
    ("return x ** 2", "** does not take i64: multiply"),
    ("return x @ x", "@ is not part of the native language"),
    ("return x + 1.5", "the float 1.5 is used as i64; write i64(1.5)"),
    ("return x + True", "True is not a number; a i64 is needed"),
    ("y = u8(3) + 300", "300 does not fit in u8 (0..255)"),
    ("y = i8(3) + 128", "128 does not fit in i8 (-128..127)"),
    ("return nowhere", "'nowhere' is not defined"),
    ("return takes_tow(x, p[0])", "'takes_tow' is not defined. Did you mean 'takes_two'?"),
    ("if x:\n        return 1", "a condition must be a bool, not i64; compare it"),
    ("if vload(p, 4) < 1.0:\n        return 1", "a condition must be a bool, not vec[bool,4]"),
    ("while x:\n        x -= 1", "a condition must be a bool, not i64"),
    ("return 1 if p[0] else 2", "a condition must be a bool, not f32"),
    ("return not x", "not takes a bool, not i64"),
    ("return x and x", "a condition must be a bool, not i64"),
    ("if x > 1:\n        y = 1\n    return y", "'y' is not set on every path to here"),
    ("if x > 1:\n        y = 1\n    else:\n        y = 1.5\n    return y",
     "'y' is i64 or f64, depending on the path to here"),
    ("y = x\n    if x > 1:\n        y = p\n    return y", "'y' is ptr[f32] or i64, depending"),
    ("while x > 1:\n        x = f32(x)", "'x' is i64 before the loop and f32 after its body"),
    ("y = None\n    while x > 1:\n        y = p\n        x -= 1", "start it with a run-time value"),
    ("for i in range(x):\n        pass\n    return i", "'i' is the variable of a loop"),
    ("return y\n    y = 1", "'y' is used before it is set"),
    ("for i in range(3):\n        y = i\n    return y", "'y' is not set on every path"),
    ("for i in p:\n        pass", "for takes range(...), or static(...) to unroll"),
    ("for i in range(p[0]):\n        pass", "range takes integers, not f32"),
    ("for i in range(0, 9, 0):\n        pass", "range with a step of 0"),
    ("for i in static(x):\n        pass", "static(...) unrolls a compile-time sequence, not a i64"),
    ("for i in static(range(3)):\n        break", "an unrolled loop has no break or continue"),
    ("return takes_two(x)", "takes_two also needs b"),
    ("return takes_two(x, p[0], x)", "takes_two takes 2 arguments, not 3"),
    ("return takes_two(x, x)", "a i64 where a f32 is needed; write f32(...) to convert"),
    ("return takes_two(x, b=p[0], c=1)", "takes_two has no parameter 'c'"),
    ("return doubled(x, x)", "doubled takes 1 arguments, not 2"),
    ("return missing()", "antorcha_no_such_symbol takes 1 arguments, not 0"),
    ("return s.c", "ptr[Pair] has no field 'c' (its fields: a, b)"),
    ("return p.c", "ptr[f32] has no field 'c' (its fields: none)"),
    ("s.a = p[0]", "a f32 where a i64 is needed"),
    ("p[0] = x", "a i64 where a f32 is needed"),
    ("p[p[0]] = p[0]", "an index must be an integer, not f32"),
    ("p[1:2] = p[0]", "takes no slice|an index must be an integer"),
    ("return x[0]", "a i64 cannot be indexed"),
    ("s[0] = s", "a whole ptr[Pair] cannot be assigned"),
    ("t = [x, x]\n    return t[x]", "takes a compile-time index"),
    ("t = [x, x]\n    t[2] = x", "index 2 of a list of 2"),
    ("t = [x, x]\n    t[x] = x", "a list of values needs a compile-time index"),
    ("a, b = PAIRS", "2 names for 3 values"),
    ("a, b = x", "2 names for one value"),
    ("v = vload(p, 4)\n    v[0] = p[0]", "use insert(v, i, x)"),
    ("v = vload(p, 4)\n    return v[9]", "lane 9 of a vec[f32,4]"),
    ("y = vload(p, 4) + vload(p, 8)", "vec[f32,4] and vec[f32,8] do not mix"),
    ("y = vec[f32, 4](vload(p, 8))", "the lanes differ"),
    ("y = f32(vload(p, 4))", "does not become the scalar f32; take an element"),
    ("vstore(ptr[i32](p), vload(p, 4))", "a vec[f32,4] does not go through a ptr[i32]"),
    ("y = vload(p, 4, vload(p, 4))", "the mask is a vec[f32,4], not a vec[bool,4]"),
    ("y = shuffle(vload(p, 4), vload(p, 4), (0, 9))", "shuffle of vec[f32,4] by (0, 9)"),
    ("y = select(x, p[0], p[0])", "select takes a bool or a mask, not i64"),
    ("y = bitcast(u8, p[0])", "the bits of a f32 are not those of a u8"),
    ("y = atomic_load(p, 'release')", "'release' is not one of the orders"),
    ("y = cas(p, 1.0, 2.0)", "cas takes a pointer to an integer or a pointer, not to f32"),
    ("y = atomic_add(x, 1)", "an atomic access takes a pointer to a scalar, not i64"),
    ("y = ref(x)", "ref takes a field or an element"),
    ("y = local(f32, x)", "local(T, n) takes a type and a compile-time count"),
    ("y = p + p", "+ does not take ptr[f32]|an index must be an integer"),
    ("y = p * 2", "* does not take ptr[f32]"),
    ("y = p - raw(p)", "do not mix; convert one"),
    ("return p", "a ptr[f32] where a i64 is needed"),
    ("return", "the function returns a i64"),
    ("x += 1", "not every path returns a i64"),
    ("y: i64 = 3", "local annotations are not used; write x = T(value)"),
    ("import os", "Import is not part of the native language"),
    ("try:\n        pass\n    except E:\n        pass", "Try is not part of the native language"),
    ("y = lambda: 1", "Lambda is not part of the native language"),
    ("y = {1, 2}", "Set is not part of the native language"),
    ("global TABLE", "Global is not part of the native language"),
    ("y = int(x)", "write i64(x) to convert a run-time value"),
    ("y = print(x)", "'print' cannot be called"),
    ("y = open('f')", "'open' cannot be called in native code"),
    ("y = static(x)", "static(...) of a run-time i64"),
    ("assert x > 1", "assert takes a compile-time condition"),
    ("assert 1 > 2, 'never'", "never"),
    ("y = 1 // 0", "ZeroDivisionError at compile time"),
    ("y = x << -1", "a shift by -1"),
    ("y = PAIRS[7]", "IndexError: tuple index out of range"),
    ("return x is x", "`is` compares with None"),
    ("y = x in (x, 1)", "`in` is decided at compile time"),
    ("y = min(x, p[0])", "i64 and f32 do not mix"),
    ("y = x(3)", "a i64 cannot be called"),
    ("y = ~p[0]", "~ does not take f32"),
    ("y = [k for k in x]", "a comprehension goes over a compile-time sequence, not a i64"),
    ("y = select()", "missing 3 required positional arguments"),
    ("y = select(x > 1, 1, 2, 3)", "takes 5 positional arguments but 6 were given"),
]  # fmt: skip


def make(body: str, path, name: str = "f"):
    text = f"def {name}(x: i64, p: ptr[f32], s: ptr[Pair]) -> i64:\n    {body}\n"
    path.write_text(text)
    space = {**vars(language), **globals()}
    exec(compile(text, str(path), "exec"), space)
    return native(space[name])


@pytest.mark.parametrize(("body", "said"), CASES, ids=[c[0].split("\n")[0] for c in CASES])
def test_refusals(body, said, tmp_path):
    f = make(body, tmp_path / "program.py")
    with pytest.raises(NativeError) as caught:
        _ = f.spec().ir
    text = str(caught.value)
    assert any(part in text for part in said.split("|")), text
    assert re.search(r'File ".*program\.py", line [1-9]\n    .+\n +\^', text), text


def test_the_caret_stands_under_the_expression(tmp_path):
    f = make("y = x * 2 + (x + i32(1))", tmp_path / "program.py")
    with pytest.raises(NativeError) as caught:
        _ = f.spec().ir
    _, _, line, caret = str(caught.value).split("\n")
    assert line[caret.index("^") :].startswith("x + i32(1)")


@inline
def outer_call(x):
    y = picky(x)
    return y


@native
def chain(x: i64) -> i64:
    return outer_call(x)


def test_expansions_are_named_from_the_inside_out():
    with pytest.raises(NativeError) as caught:
        _ = chain.spec().ir
    text = str(caught.value)
    assert text.index("picky: ") < text.index("in outer_call: y = picky(x)")
    assert text.index("in outer_call") < text.index("in chain: return outer_call(x)")
    assert text.count("inlined from") == 2


@inline
def endless(x):
    return endless(x)


@native
def runs_endless(x: i64) -> i64:
    return endless(x)


def test_endless_expansion_ends():
    with pytest.raises(NativeError, match="expanded inside itself"):
        _ = runs_endless.spec().ir


@native
def needs_missing(x: i64) -> i64:
    return missing(x)


def test_a_missing_symbol_is_refused_before_linking():
    for _ in range(2):  # the second time it comes from the disk
        with pytest.raises(NativeError, match="'antorcha_no_such_symbol' is not in this process"):
            needs_missing(1)


@native
def untyped(x) -> i64:
    return 1


@native
def badly_typed(x: 3) -> i64:
    return 1


@native
def unknown_type(x: whatever) -> i64:
    return 1


@native
def specialised(x: ptr[T], *, T, n=2) -> void:
    x[0] = T(n)


def test_signatures_and_compile_time_parameters():
    with pytest.raises(NativeError, match="parameter 'x' needs a type"):
        _ = untyped.spec().ir
    with pytest.raises(NativeError, match="not a type"):
        _ = badly_typed.spec().ir
    with pytest.raises(NativeError, match="whatever"):
        _ = unknown_type.spec().ir
    with pytest.raises(NativeError, match=r"also needs T \(its compile-time parameters: T, n\)"):
        specialised.spec()
    with pytest.raises(NativeError, match="has no q"):
        specialised.spec(T=f32, q=1)
    with pytest.raises(NativeError, match=r"\*args and \*\*kwargs"):
        native(lambda *args: 1)
    with pytest.raises(NativeError, match="@inline"):
        doubled(2)
    with pytest.raises(NativeError, match="has no size"):

        @struct
        class Bad:
            x: 3


def test_one_and_true_and_one_point_zero_are_three_values():
    specs = {specialised.spec(T=f32, n=n) for n in (1, True, 1.0)}
    assert len(specs) == 3
    assert specialised.spec(T=f32) is specialised.spec(n=2, T=f32) is specialised[f32, 2]


def test_the_forms_of_a_function_can_be_read():
    spec = specialised.spec(T=f64)
    assert "define void" in spec.ir
    assert "define" in spec.optimized
    assert "ret" in spec.asm
    assert repr(spec) == "<native specialised[T=f64, n=2]>"
