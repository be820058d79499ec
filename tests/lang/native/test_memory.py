"""Memory, structs, vectors, masks, atomics, pointers: compiled against interpreted, and bounds."""

# ruff: noqa: F821 (annotations name compile-time parameters)

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from antorcha.lang.native import (
    Extern,
    Global,
    NativeError,
    Ptr,
    address,
    array,
    atomic_add,
    atomic_and,
    atomic_load,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_store,
    atomic_sub,
    atomic_xchg,
    atomic_xor,
    bitcast,
    bool_,
    cas,
    cstr,
    f16,
    f32,
    f64,
    fence,
    first,
    func,
    i8,
    i32,
    i64,
    inline,
    insert,
    interpreted,
    lanes,
    local,
    mask_bits,
    memcpy,
    memmove,
    memset,
    native,
    pause,
    prefetch,
    ptr,
    raw,
    reduce_add,
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_min,
    reduce_mul,
    ref,
    select,
    shuffle,
    sizeof,
    static,
    struct,
    u8,
    u16,
    u32,
    u64,
    vec,
    vgather,
    vload,
    void,
    vscatter,
    vstore,
)


def both(f, *args, **static_args):
    """Runs a native function on copies of its arrays both ways; gives the one result they share."""
    found = []
    for mode in ("compiled", "plain"):
        given = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        if mode == "plain":
            with interpreted():
                result = f(*given, **static_args)
        else:
            result = f(*given, **static_args)
        found.append([result, *[a for a in given if isinstance(a, np.ndarray)]])
    for x, y in zip(*found, strict=True):
        np.testing.assert_array_equal(x, y)
    return found[0]


@struct
class Node:
    value: i32
    flag: bool
    small: u8
    weight: f64
    next: ptr[Self]
    half: f16
    items: array[i32, 4]
    lanes4: vec[f32, 4]
    action: func[i64, i64, i64]


def test_a_struct_lies_as_in_c():
    class C(ctypes.Structure):
        _fields_ = (
            ("value", ctypes.c_int32), ("flag", ctypes.c_bool), ("small", ctypes.c_uint8),
            ("weight", ctypes.c_double), ("next", ctypes.c_void_p), ("half", ctypes.c_uint16),
            ("items", ctypes.c_int32 * 4), ("lanes4", ctypes.c_float * 4),
            ("action", ctypes.c_void_p),
        )  # fmt: skip

    assert Node.size == ctypes.sizeof(C)
    assert {k: o for k, (o, _) in Node.fields.items()} == {
        k: getattr(C, k).offset for k, _ in C._fields_
    }
    assert Node.fields["next"][1] is ptr[Node]


@native
def plus(a: i64, b: i64) -> i64:
    return a + b


@native
def times(a: i64, b: i64) -> i64:
    return a * b


@inline
def push(node, head, value):
    node.value = value
    node.flag = value > 1
    node.small = u8(value) + 250
    node.weight = f64(value) / 3.0
    node.half = f16(f64(value)) / f16(3.0)
    node.next = head
    node.action = address(plus) if value % 2 == 0 else address(times)
    for k in range(4):
        node.items[k] = value * i32(k)
    vstore(ptr[f32](ref(node.lanes4)), vec[f32, 4](f32(value)))
    return node


@native
def list_walk(out: ptr[f64]) -> i64:
    nodes = local(Node, 5)
    head = ptr[Node](None)
    for k in range(5):
        head = push(ref(nodes[k]), head, i32(k))
    total = 0
    p = head
    while p is not None:
        total = total * 3 + i64(p.value) + i64(p.flag) + i64(p.small) + i64(p.items[3])
        total += p.action(total & 1023, 3)
        out[0] += p.weight + f64(p.half) + f64(p.lanes4[2])
        p.items[1] += 1
        p = p.next
    return total * 10 + (ref(nodes[4]) - ref(nodes[0]))


def test_structs_lists_and_function_pointers():
    total, out = both(list_walk, np.zeros(1))
    assert total != 0
    assert out[0] != 0


counters = Global("test_memory_counters", i64, 8)
record = Global("test_memory_record", Node)


@native
def count(by: i64) -> i64:
    counters[2] += by
    record.value = i32(counters[2])
    record.items[2] = 7
    return counters[2] + i64(record.items[2])


def test_globals_are_shared_with_python():
    counters[2] = 40
    assert count(2) == 49
    assert counters[2] == 42
    assert record.value == 42
    assert record.items[2] == 7
    with interpreted():
        assert count(1) == 50
    assert counters.np[2] == 43
    record.store(value=5, weight=2.5)
    assert (record.value, record.weight) == (5, 2.5)
    with pytest.raises(IndexError):
        counters[8]


@native
def atomics(p: ptr[T], x: T, *, T) -> T:
    a = atomic_add(p, x)
    b = atomic_sub(p, 3)
    atomic_store(p + 1, a, "release")
    c = atomic_xchg(p, x)
    d = atomic_max(p, 5)
    e = atomic_min(p, 4)
    swapped = cas(p, 4, 9)
    failed = cas(p, 4, 100)
    f = atomic_xor(p, 6) ^ atomic_or(p, 8) ^ atomic_and(p, 13)
    fence()
    pause()
    g = atomic_load(p, "acquire")
    if swapped and not failed:
        g += 1
    return a + b * 2 + c * 3 + d * 5 + e * 7 + f * 11 + g


@pytest.mark.parametrize("ty", [i8, u8, i32, u32, i64, u64])
def test_atomics(ty):
    both(atomics, np.array([3, 0], ty.np), 77, T=ty)


@native
def float_atomics(p: ptr[T], *, T) -> T:
    a = atomic_add(p, 1.5)
    b = atomic_max(p, 100.0)
    return a + b + atomic_xchg(p, 2.0) + atomic_sub(p, 0.5)


@pytest.mark.parametrize("ty", [f32, f64])
def test_float_atomics(ty):
    both(float_atomics, np.array([3.25], ty.np), T=ty)


@native
def bytes_about(p: ptr[u8], n: i64) -> i64:
    memset(p, 7, 4)
    memcpy(p + 8, p, 4)
    memmove(p + 1, p, 6)
    prefetch(p)
    text = cstr("hello")
    q = ptr[u32](p)
    q[3] = bitcast(u32, f32(1.5))
    return i64(text[1]) + i64(text[5]) + sizeof(Node) + (p + n - p) + i64(q[0])


def test_bytes():
    both(bytes_about, np.arange(32, dtype=np.uint8), 32)


@native
def vectors(x: ptr[f32], ix: ptr[i32], out: ptr[f32], flags: ptr[bool_], n: i64) -> i64:
    few = first(8, n)
    v = vload(x, 8, few)
    i = vload(ix, 8)
    g = vgather(x, i, few)
    vscatter(out, i, v + 1.0, few)
    s = shuffle(v, g, (0, 8, 1, 9, 7, 15, 3, 2))
    s = insert(s, 2, v[1])
    m = (v < g) | ~few
    vstore(flags, m)
    n2 = vload(flags, 8)
    vstore(out + 8, select(n2, s, v), few)
    vstore(out + 16, vec[f32, 8](lanes(i32, 8)) * reduce_add(v) + reduce_max(g) - reduce_min(s))
    vstore(flags + 8, n2, few)
    total = i64(mask_bits(m)) + (1 if reduce_any(m) else 0) + (2 if reduce_all(m) else 0)
    return total + i64(reduce_add(i)) + i64(reduce_mul(i + 1))


@pytest.mark.parametrize("n", [-1, 0, 3, 8, 100])
def test_vectors_and_masks(n):
    x = np.random.default_rng(0).standard_normal(16).astype(np.float32)
    ix = np.array([3, 1, 0, 2, 7, 6, 5, 4], np.int32)
    both(vectors, x, ix, np.zeros(24, np.float32), np.zeros(16, np.bool_), n)


@native
def halves(x: ptr[T], out: ptr[T], *, T) -> f32:
    v = vload(x, 6)
    out[0] = reduce_add(v)
    out[1] = reduce_max(v) * x[2]
    vstore(out + 2, -v / 3.0, first(6, 4))
    w = [x[0], x[1]]
    for k in range(3):
        w[0] += w[1] * f16_or(T, k)
    out[7] = w[0]
    return f32(abs(w[0]))


@inline
def f16_or(T, k):
    return T(k) + 0.5


@pytest.mark.parametrize("ty", [f16, vec[f32, 1].elem])
def test_half_types_in_tiles_and_vectors(ty):
    x = np.array([1.5, -2.25, 1e-7, 3.75, 100.0, 0.1], ty.np)
    both(halves, x, np.zeros(8, ty.np), T=ty)


@inline
def swap_rows(rows, i, j):
    for k in static(range(len(rows[0]))):
        rows[i][k], rows[j][k] = rows[j][k], rows[i][k]
    return rows[i][0]


@inline
def maybe_set(t, flag, x):
    if flag:
        t[0] = x
    t = [x, x]
    t[1] = x * 100  # another list by now
    return t[1]


@native
def tiles(a: i64, b: i64) -> i64:
    rows = [[a + k * 10 + j for j in range(2)] for k in range(3)]
    first_row = rows[0]
    c = swap_rows(rows, 0, 2)
    for _ in range(b):
        rows[1][0] += swap_rows(rows, 0, 1)
        first_row[1] += 1
    t = [a, b]
    d = maybe_set(t, b > 2, 7)
    both_names = t
    both_names[0] += 1000
    return (
        rows[0][0] + rows[1][0] * 3 + rows[2][1] * 5 + c + d + t[0] * 7 + t[1] + first_row[1]
        + both_names[0] + sum(rows[1]) + max(t)
    )  # fmt: skip


@pytest.mark.parametrize("b", [0, 1, 5])
def test_tiles_are_given_by_reference_and_copied_by_assignment(b):
    both(tiles, 4, b)


strlen = Extern("strlen", i64, raw)
calloc = Extern("calloc", raw, i64, i64)
free = Extern("free", void, raw)
c_hypot = Extern("hypot", f64, f64, f64)


@native
def call_c(x: f64) -> f64:
    p = ptr[f64](calloc(4, 8))
    p[1] = x
    found = c_hypot(p[1], 4.0) + f64(strlen(cstr("four")))
    free(p)
    return found


def test_c_functions():
    assert both(call_c, 3.0) == [9.0]
    assert strlen(b"x".__class__ and Ptr(np.array([65, 66, 0], np.uint8)).address) == 2


@native
def past_the_end(p: ptr[i32], n: i64) -> i32:
    total = i32(0)
    for k in range(n + 1):
        total += p[k]
    return total


@native
def vector_past_the_end(p: ptr[f32], out: ptr[f32]) -> void:
    vstore(out, vload(p, 8))


def test_interpreted_code_checks_bounds():
    with interpreted():
        with pytest.raises(IndexError, match="load of 4 bytes at byte 16 of 16"):
            past_the_end(np.zeros(4, np.int32), 4)
        with pytest.raises(IndexError):
            vector_past_the_end(np.zeros(7, np.float32), np.zeros(8, np.float32))
        with pytest.raises(IndexError, match="null pointer"):
            past_the_end(None, 4)


@native
def pointers(p: ptr[i32], q: ptr[i32]) -> i64:
    n = 0
    r = q if p == q else p + 1
    if p is None:
        n += 100
    if p < q:
        n += 1
    if raw(p) != raw(q):
        n += 2
    n += i64(r[0]) + (q - p) + i64((1 + p)[0]) + i64((q - 1)[0])
    k = u64(q) - u64(p)
    back = ptr[i32](u64(p) + k)
    if back == q:
        n += 10
    return n


def test_pointer_arithmetic():
    x = np.arange(10, dtype=np.int32)
    compiled = pointers(x.ctypes.data, x.ctypes.data + 12)
    with interpreted():
        assert pointers(Ptr(x), Ptr(x) + 3) == compiled


@native
def typed_entry(a: i8, b: u16, c: f32, d: bool, e: f16) -> f64:
    return f64(a) + f64(b) * 2.0 + f64(c) + (1.0 if d else 0.0) + f64(e)


@pytest.mark.parametrize("plain", [False, True])
def test_arguments_are_checked_at_the_door(plain):
    with interpreted() if plain else pytest.MonkeyPatch.context():
        assert typed_entry(-3, 7, 0.5, True, 1.5) == 14.0
        with pytest.raises(OverflowError, match="a: 200 does not fit in i8"):
            typed_entry(200, 7, 0.5, True, 1.5)
        with pytest.raises(OverflowError):
            typed_entry(1, -1, 0.5, True, 1.5)
        with pytest.raises(TypeError, match="b is an u16, not a float"):
            typed_entry(1, 7.0, 0.5, True, 1.5)
        with pytest.raises(TypeError):
            typed_entry(1, 7, "x", True, 1.5)
        with pytest.raises(TypeError):
            typed_entry(1, 7, 0.5, 1, 1.5)
        with pytest.raises(TypeError):
            typed_entry(1, 7, 0.5, True)
        with pytest.raises(TypeError, match="array of float64"):
            past_the_end(np.zeros(4), 3)
        with pytest.raises(TypeError, match="not contiguous"):
            past_the_end(np.zeros(8, np.int32)[::2], 3)
        assert past_the_end(np.ones(4, np.int32), np.int64(3)) == 4


def test_a_global_name_belongs_to_one_module():
    with pytest.raises(NativeError, match="already defined"):
        exec("Global('test_memory_counters', i64)", {"Global": Global, "i64": i64, "__name__": "m"})


def test_small_integers_cross_calls_whole():
    assert both(narrow_sum, -100, 200) == [-100 - 56]


@native
def narrow_sum(a: i8, b: u8) -> i64:
    return i64(narrow_call(a, i8(b)))


@native
def narrow_call(a: i8, b: i8) -> i32:
    return i32(a) + i32(b)


@inline
def advance(t, by):
    t[0] += by
    return t[0]


@inline
def total(t):
    return t[0] + t[1] * 2


@native
def condition_writes(n: i64) -> i64:
    t = [n, n]
    offsets = [1, 2, 3]
    count = 0
    while advance(t, 3) < 50:
        count += total(t)
        for k in static(range(offsets[1])):  # still known at compile time
            count += k + offsets[k]
        t[1] = count & 7
    return count * 100 + t[0]


@pytest.mark.parametrize("n", [0, 5, 100])
def test_a_loop_condition_may_write_to_a_list(n):
    both(condition_writes, n)


OFFSETS = [4, 5]


@native
def global_after_loop(n: i64) -> i64:
    count = 0
    for i in range(n):
        counters[0] = i
        count += min(OFFSETS[0], i) + len(OFFSETS)
    return count + OFFSETS[1] + counters[0]


def test_names_of_the_module_are_not_changed_by_loops():
    both(global_after_loop, 3)


def test_a_tensor_is_passed_as_an_array():
    import antorcha

    @native
    def first(p: ptr[f32]) -> f32:
        return p[0]

    x = antorcha.ones(2)
    with pytest.raises(TypeError, match=r"not a Tensor: pass its elements, as x.numpy\(\)"):
        first(x)
    assert first(x.numpy()) == 1.0
