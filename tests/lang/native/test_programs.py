"""Random programs, compiled against interpreted: branches, loops, tiles, inline calls, returns."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Any

import pytest

from antorcha.lang.native import interpreted

HEAD = """
from __future__ import annotations
from antorcha.lang.native import *

@inline
def clamp(x, lo, hi):
    if x < lo:
        return lo
    if x > hi:
        return hi
    return x

@inline
def bump(t, k, by):
    t[k] += by
    if t[k] > 1000:
        t[k] = t[k] % 7
    return t[k]

@inline
def find(x, n):
    for i in range(n):
        if i * i > x:
            return i
        if x % (i + 1) == 5:
            return -i
    return n

@native
def helper(a: i64, b: i64) -> i64:
    if a > b:
        return a - b
    return b // 3
"""


class Maker:
    """Writes one random function of the native language."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.counters = 0
        self.names = ["a", "b", "x", "y", "z"]
        self.loops: list[str] = []

    def expr(self, depth: int = 0) -> str:
        r = self.random
        if depth > 2 or r.random() < 0.25:
            return r.choice(
                [*self.names, *self.loops, str(r.randint(-9, 9)), f"t[{r.randrange(3)}]"]
            )
        e = self.expr
        kinds = [
            lambda: f"({e(depth + 1)} {r.choice(['+', '-', '*', '^', '&', '|'])} {e(depth + 1)})",
            lambda: f"(i64({e(depth + 1)}) {r.choice(['//', '%'])} {e(depth + 1)})",
            lambda: f"({e(depth + 1)} {r.choice(['<<', '>>'])} {r.randint(0, 5)})",
            lambda: f"min({e(depth + 1)}, {e(depth + 1)})",
            lambda: f"clamp({r.choice(self.names)}, {r.randint(-20, 0)}, {r.randint(1, 40)})",
            lambda: f"i64(i8({e(depth + 1)}))",
            lambda: f"i64(u16({e(depth + 1)}))",
            lambda: f"helper(i64({e(depth + 1)}), i64({e(depth + 1)}))",
            lambda: f"(i64({e(depth + 1)}) if {self.test(depth + 1)} else i64({e(depth + 1)}))",
            lambda: f"-{r.choice(self.names)}",
            lambda: f"m[({r.choice(self.names)} & 3)]",
            lambda: f"find({r.choice(self.names)} & 255, {r.randint(1, 12)})",
        ]
        return r.choice(kinds)()

    def test(self, depth: int = 0) -> str:
        r = self.random
        sign = r.choice(["<", "<=", ">", "==", "!="])
        one = f"{r.choice(self.names)} {sign} {self.expr(depth + 1)}"
        pick = r.random()
        if pick < 0.2 and depth < 3:
            return f"({one} and {self.test(depth + 1)})"
        if pick < 0.4 and depth < 3:
            return f"({one} or not {self.test(depth + 1)})"
        return one

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def block(self, depth: int, size: int, in_loop: bool) -> None:
        for _ in range(size):
            self.statement(depth, in_loop)

    def statement(self, depth: int, in_loop: bool) -> None:
        r = self.random
        name = r.choice(["x", "y", "z"])
        pick = r.random()
        if pick < 0.3 or depth > 4:
            self.put(depth, f"{name} = i64({self.expr()})")
        elif pick < 0.4:
            self.put(depth, f"{name} {r.choice(['+=', '-=', '^='])} i64({self.expr()})")
        elif pick < 0.47:
            self.put(depth, f"t[{r.randrange(3)}] = i64({self.expr()})")
        elif pick < 0.53:
            self.put(depth, f"m[{r.choice(self.names)} & 3] = i64({self.expr()})")
        elif pick < 0.6:
            self.put(depth, f"{name} = bump(t, {r.randrange(3)}, {r.choice(self.names)})")
        elif pick < 0.64:
            self.put(depth, "x, y = y, x")
        elif pick < 0.8:
            self.put(depth, f"if {self.test()}:")
            self.block(depth + 1, r.randint(1, 3), in_loop)
            if in_loop and r.random() < 0.3:
                self.put(depth + 1, r.choice(["break", "continue"]))
            elif r.random() < 0.15:
                self.put(depth + 1, f"return i64({self.expr()})")
            if r.random() < 0.5:
                self.put(depth, "else:")
                self.block(depth + 1, r.randint(1, 2), in_loop)
        elif pick < 0.92:
            self.loop(depth)
        else:
            self.put(depth, f"for k{depth} in static(range(3)):")
            self.put(
                depth + 1, f"t[k{depth}] = t[2 - k{depth}] + k{depth} * {r.choice(self.names)}"
            )
            self.put(depth + 1, f"if t[k{depth}] > {r.randint(0, 99)}:")
            self.put(depth + 2, f"t[k{depth}] -= {r.randint(1, 9)}")

    def loop(self, depth: int) -> None:
        r = self.random
        self.counters += 1
        i = f"loop{self.counters}"
        if r.random() < 0.7:
            limits = r.choice(
                ["5", "b & 7", "1, 9, 3", "6, 0, -2", "clamp(x, 0, 6)", "0, b & 15, 4"]
            )
            self.put(depth, f"for {i} in range({limits}):")
            self.loops.append(i)
            self.block(depth + 1, r.randint(1, 3), True)
            self.loops.pop()
        else:
            self.put(depth, f"{i} = 0")
            self.put(depth, f"while {i} < {r.randint(1, 6)} and {self.test(1)}:")
            self.put(depth + 1, f"{i} += 1")
            self.block(depth + 1, r.randint(1, 3), True)

    def function(self, name: str) -> str:
        self.put(0, "@native")
        self.put(0, f"def {name}(a: i64, b: i64) -> i64:")
        self.put(1, "x, y, z = a, b, i64(3)")
        self.put(1, "t = [x, y, z]")
        self.put(1, "m = local(i64, 4)")
        self.put(1, "for q in range(4):")
        self.put(2, "m[q] = q * a")
        self.block(1, self.random.randint(3, 7), False)
        self.put(1, "return x ^ (y << 1) ^ (z << 2) ^ t[0] ^ (t[1] << 3) ^ t[2] ^ m[0] ^ m[3]")
        return "\n".join(self.lines)


def load(text: str, path: Path) -> Any:
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


INPUTS = [(0, 0), (1, -1), (5, 9), (-17, 300), (2**40 + 3, -7), (-(2**63), 2**63 - 1)]


@pytest.mark.parametrize("group", range(4))
def test_random_programs(group, tmp_path):
    count = 15
    texts = [Maker(group * 1000 + k).function(f"program{k}") for k in range(count)]
    module = load(HEAD + "\n\n".join(texts), tmp_path / f"programs{group}.py")
    for k in range(count):
        f = getattr(module, f"program{k}")
        for a, b in INPUTS:
            compiled = f(a, b)
            with interpreted():
                plain = f(a, b)
            assert compiled == plain, f"f({a}, {b}): {compiled} and {plain}\n{texts[k]}"


def test_the_generator_makes_different_programs():
    assert len({Maker(k).function("f") for k in range(50)}) == 50
