"""One prepared run for the day that a GPU can be had: what works on it, and how fast.

    python tools/gpu_day.py [--hours 0.4] [--only STEP ...] [--out bench/results/cuda.json]

The steps come in the order of their value. Each runs in a process of its own, with a time limit, so
that one that crashes, hangs, or leaves the GPU in error costs no other; what is known is written
after each. PyTorch is measured beside antorcha where it is installed with CUDA. Further options
are those of a step's process: ``--step NAME --part K/N`` prints the step's result as JSON.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import antorcha  # noqa: E402
from antorcha import config  # noqa: E402
from antorcha.cli import info  # noqa: E402
from antorcha.devices.cuda import driver, gpu, modules  # noqa: E402
from antorcha.devices.gpu import fallback  # noqa: E402
from tests.devices.sim import sweep  # noqa: E402
from tests.ops.records import records  # noqa: E402
from tests.seeds import notebook  # noqa: E402
from tools.gpu_large import compare_large  # noqa: E402
from tools.gpu_programs import run_checks  # noqa: E402
from tools.gpu_trace import GpuTrace, times_of  # noqa: E402

MARK = "RESULT "
SWEEP_PARTS = 12
SEEDS = sorted((ROOT / "tests" / "seeds" / "cells").glob("seed_*.py"))
Libraries = dict[str, Any]


class Part(NamedTuple):
    """A step, or one of several parts of it; ``small``: for a test of this file without a GPU."""

    number: int = 0
    count: int = 1
    small: bool = False


# ---- what a step's process does
def libraries() -> Libraries:
    """antorcha, and PyTorch where it is installed with CUDA."""
    found: Libraries = {"antorcha": antorcha}
    if not config.libraries:
        return found
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return found
    if torch is not antorcha and torch.cuda.is_available():
        found["pytorch"] = torch
    return found


def milliseconds(torch: Any, call: Callable[[], Any], small: bool, turns: int = 7) -> float:
    """The median time of a call on the GPU, by its own events, when it has been called before."""
    for _ in range(1 if small else 3):
        call()
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    call()
    end.record()
    end.synchronize()
    calls = 1 if small else max(1, min(200, int(20 / max(start.elapsed_time(end), 1e-3))))
    times = []
    for _ in range(1 if small else turns):
        start.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / calls)
    return statistics.median(times)


def tell_driver(part: Part) -> Any:
    """What the GPU and its driver are."""
    found = antorcha.cuda.get_device_properties(0)
    version = driver.require().version
    return {
        "gpu": repr(found), "driver": f"CUDA {gpu.version_text(version)}",
        "compiles for": f"sm_{gpu.gpu(0).ptx_capability}", "devices": info.collect()["devices"],
        "free and total": antorcha.cuda.mem_get_info(), "system": platform.platform(),
        "others": {name: lib.__version__ for name, lib in libraries().items()},
    }  # fmt: skip


def smallest(part: Part) -> Any:
    """The smallest kernel, a sum, a copy each way, and what the driver's compiler made of them."""
    torch = antorcha
    here = torch.arange(1000.0)
    x = here.cuda()

    def on_a_stream() -> bool:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y = x * 2
        torch.cuda.current_stream().wait_stream(side)
        return bool((y + 1).sum().item() == 2 * 499500 + 1000)

    def in_a_graph() -> bool:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            z = x * 3
        graph.replay()
        return torch.equal(z.cpu(), here * 3)

    def bad_index() -> bool:
        try:
            x[torch.tensor([5, 1000]).cuda()].cpu()
        except IndexError:
            return (x + 1)[:2].tolist() == [1, 2]  # the GPU still answers
        return False

    asked: dict[str, Callable[[], bool]] = {
        "copy": lambda: torch.equal(x.cpu(), here),
        "add": lambda: torch.equal((x + 1).cpu(), here + 1),
        "sum": lambda: x.sum().item() == 499500,
        "strided": lambda: torch.equal(
            x.view(10, 100).t()[3:].clone().cpu(), here.view(10, 100).t()[3:]
        ),
        "pinned": lambda: torch.equal(
            torch.ones(9).pin_memory().cuda(non_blocking=True).cpu(), torch.ones(9)
        ),
        "streams": on_a_stream,
        "graph": in_a_graph,
        "bad index": bad_index,
    }
    checks = {name: answer(question) for name, question in asked.items()}
    device = gpu.gpu(0)
    kernels = {
        name: modules.function_facts(device, function)
        for (_, name), function in modules.loaded().items()
    }
    return {"checks": checks, "kernels": kernels}


def answer(question: Callable[[], bool]) -> Any:
    """True, False, or the error's text."""
    try:
        return bool(question())
    except Exception:
        return traceback.format_exc(limit=-3)


def compare_ops(part: Part) -> Any:
    """A share of all op records on the GPU beside the CPU: values, gradients, strides, errors."""
    sweep.DEVICE = "cuda"
    ops = sorted(records(), key=lambda op: op.name)[part.number :: part.count]
    ops = ops[:3] if part.small else ops
    wrong: list[str] = []
    host: dict[str, list[str]] = {}
    dtypes = ("float32", "float16", "bfloat16", "int64", "bool", "complex64")
    for op in ops:
        fallback.noted.clear()
        try:
            wrong += sweep.sweep([op], dtypes[:1] if part.small else dtypes)
            wrong += sweep.sweep([op], grad=True)
            wrong += [f"strided: {line}" for line in sweep.sweep([op], strided=True)]
        except Exception:
            wrong.append(f"{op.name}: {traceback.format_exc(limit=-2)}")
        for kind in fallback.noted:
            host.setdefault(kind, []).append(op.name)
        if wrong and "illegal" in wrong[-1]:
            wrong.append("the GPU is in error: what follows was not compared")
            break
    return {"ops": len(ops), "wrong": wrong, "by the host": host}


def copies(part: Part) -> Any:
    """Ops that read and write much, in GB/s of what must be read and written."""
    n = 1 << (10 if part.small else 26)  # float32: 256 MB
    found: dict[str, Any] = {}
    for name, torch in libraries().items():
        F = torch.nn.functional
        x = torch.full((n,), 0.5).cuda()
        y, rows = torch.empty_like(x), x.view(-1, 256 if part.small else 1024)
        square = x.view(1 << (5 if part.small else 13), -1)
        half = x.half()
        ops: dict[str, tuple[Callable[[], Any], float]] = {
            "copy": (lambda x=x, y=y: y.copy_(x), 8),
            "fill": (lambda y=y: y.fill_(1), 4),
            "add": (lambda x=x, y=y: x + y, 12),
            "exp": (lambda x=x: x.exp(), 8),
            "gelu": (lambda x=x, F=F: F.gelu(x), 8),
            "half": (lambda x=half: x * 2, 4),
            "cast": (lambda x=x, t=torch: x.to(t.bfloat16), 6),
            "transposed": (lambda x=square: x.t().contiguous(), 8),
            "sum": (lambda x=x: x.sum(), 4),
            "sum of rows": (lambda x=rows: x.sum(1), 4),
            "sum of columns": (lambda x=rows: x.sum(0), 4),
            "softmax": (lambda x=rows: x.softmax(1), 8),
            "layer_norm": (lambda x=rows, F=F: F.layer_norm(x, x.shape[1:]), 8),
            "cumsum": (lambda x=rows: x.cumsum(1), 8),
        }  # fmt: skip
        for op, (call, nbytes) in ops.items():
            found.setdefault(op, {})[name] = rate(torch, call, nbytes * n / 1e6, part.small)
    return found


def rate(torch: Any, call: Callable[[], Any], amount: float, small: bool) -> Any:
    """An amount per millisecond; the error's text where the call has one."""
    try:
        return round(amount / milliseconds(torch, call, small), 1)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"


def products(part: Part) -> Any:
    """Matrix products in TFLOP/s."""
    sizes = [32] if part.small else [512, 1024, 2048, 4096, 8192]
    found: dict[str, Any] = {}
    for n in sizes:
        for dtype in ("float32", "float16", "bfloat16"):
            for name, torch in libraries().items():
                # Random: of constant factors a GPU makes a tenth more, for they take less power.
                a = torch.randn(n, n, device="cuda").to(getattr(torch, dtype))
                key, flops = f"{dtype} {n}", 2 * n**3 / 1e9
                found.setdefault(key, {})[name] = rate(torch, lambda a=a: a @ a, flops, part.small)
                if dtype == "float32":
                    torch.backends.cuda.matmul.allow_tf32 = True
                    for how in ("", *((" NT", " TN", " TT") if n in (32, 4096) else ())):
                        left, right = [a.mT if "T" in how[k : k + 1] else a for k in (1, 2)]
                        there = found.setdefault(f"tf32 {n}{how}", {})
                        call = lambda left=left, right=right: left @ right  # noqa: E731
                        there[name] = rate(torch, call, flops, part.small)
                    torch.backends.cuda.matmul.allow_tf32 = False
    return found


def layers(part: Part) -> Any:
    """Convolution, attention, embedding and optimizers, forward and backward: milliseconds."""
    found: dict[str, Any] = {}
    k = 8 if part.small else 1
    for name, torch in libraries().items():
        F = torch.nn.functional
        torch.manual_seed(0)
        for dtype in (torch.float32, torch.bfloat16):
            image = (
                torch.randn(64 // k, 64 // k, 56 // k, 56 // k).cuda().to(dtype).requires_grad_()
            )
            weight = torch.randn(64 // k, 64 // k, 3, 3).cuda().to(dtype).requires_grad_()
            q, key, v = (
                torch.randn(8 // k, 12, 1024 // k, 64).cuda().to(dtype).requires_grad_()
                for _ in range(3)
            )
            table = torch.randn(50304 // k, 768).cuda().to(dtype).requires_grad_()
            ids = torch.randint(50304 // k, (8, 1024 // k)).cuda()

            def conv(F: Any = F, image: Any = image, weight: Any = weight) -> Any:
                return F.conv2d(image, weight, padding=1)

            def attend(F: Any = F, q: Any = q, key: Any = key, v: Any = v) -> Any:
                return F.scaled_dot_product_attention(q, key, v, is_causal=True)

            def embed(F: Any = F, ids: Any = ids, table: Any = table) -> Any:
                return F.embedding(ids, table)

            for what, call in (("conv", conv), ("attention", attend), ("embedding", embed)):
                text = f"{what} {str(dtype).rpartition('.')[2]}"
                found.setdefault(text, {})[name] = time_of(torch, call, part.small)
                both = lambda call=call: call().sum().backward()  # noqa: E731
                found.setdefault(text + " + backward", {})[name] = time_of(torch, both, part.small)
    return found


def time_of(torch: Any, call: Callable[[], Any], small: bool) -> Any:
    """Milliseconds, or the error's text."""
    try:
        return round(milliseconds(torch, call, small), 4)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"


def profile(part: Part) -> Any:
    """A step of the GPT, as a captured graph, too, beside the sum of all that the GPU runs in it,
    kernel by kernel, those of libraries among them."""
    steps = {name: gpt_step(part, name) for name in ("bfloat16", "float32")}
    found: dict[str, Any] = {name: profile_of(part, step) for name, step in steps.items()}
    try:
        trace = GpuTrace()
    except OSError as error:
        return found | {"no kernel times": str(error)}
    for name, step in steps.items():
        found[name] |= traced(step, trace, found[name]["captured ms"])
    trace.end()
    return found


def gpt_step(part: Part, dtype: str) -> Callable[[], None]:
    """A training step of the GPT that can be captured, run once."""
    torch = antorcha
    model, ids, _ = gpt_and_text(torch, part, "cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, capturable=True)

    def step() -> None:
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=dtype == "bfloat16"):
            loss = model(ids)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    step()
    return step


def captured(step: Callable[[], None]) -> Any:
    """A step as a graph."""
    graph = antorcha.cuda.CUDAGraph()
    with antorcha.cuda.graph(graph):
        step()
    return graph


def profile_of(part: Part, step: Callable[[], None]) -> dict[str, Any]:
    """Milliseconds of a step, and of one that is replayed."""
    found = {"a step ms": time_of(antorcha, step, part.small)}
    return found | {"captured ms": time_of(antorcha, captured(step).replay, part.small)}


def traced(step: Callable[[], None], trace: GpuTrace, whole: Any) -> dict[str, Any]:
    """What the GPU runs in a step, and in a replayed one; ``whole``: the latter's milliseconds
    without being traced."""
    eager = times_of(trace, antorcha, step)
    replayed = times_of(trace, antorcha, captured(step).replay)
    return {
        "busy ms": round(eager.busy, 3), "busy ms, captured": round(replayed.busy, 3),
        "span ms, captured and traced": round(replayed.span, 3),
        "captured over busy": round(whole / replayed.busy, 3) if isinstance(whole, float) else "",
        "kernels": replayed.table,
    }  # fmt: skip


def overhead(part: Part) -> Any:
    """Microseconds of the host for a small op, a copy each way, and a replayed graph."""
    found: dict[str, Any] = {}
    count = 3 if part.small else 2000
    for name, torch in libraries().items():
        x = torch.full((8,), 1.0).cuda()
        with torch.no_grad():
            calls = {
                "add": lambda x=x: x + 1,
                "sum": lambda x=x: x.sum(),
                "view": lambda x=x: x[2:],
                "item": lambda x=x: x[0].item(),
                "to the GPU": lambda t=torch: t.full((8,), 1.0).cuda(),
                "memory": lambda x=x, t=torch: t.empty_like(x),
            }
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y = x
                for _ in range(20):
                    y = y + 1
            calls["a graph of 20 adds"] = graph.replay
            for what, call in calls.items():
                for _ in range(count // 20 + 1):
                    call()
                torch.cuda.synchronize()
                start = time.perf_counter()
                for _ in range(count):
                    call()
                asked = time.perf_counter() - start
                torch.cuda.synchronize()
                done = time.perf_counter() - start
                found.setdefault(what, {})[name] = {
                    "asked us": round(asked / count * 1e6, 2),
                    "done us": round(done / count * 1e6, 2),
                }
    return found


def gpt(torch: Any, width: int, layers: int, symbols: int, context: int) -> Any:
    """A GPT and its loss on a window of symbols."""
    nn, F = torch.nn, torch.nn.functional
    heads = width // 64 or 1

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            B, T, C = x.shape
            qkv = self.qkv(self.norm1(x)).view(B, T, 3, heads, C // heads)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(B, T, C))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class Gpt(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.symbol, self.place = nn.Embedding(symbols, width), nn.Embedding(context, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, symbols, bias=False)

        def forward(self, ids: Any) -> Any:
            places = torch.arange(ids.shape[1] - 1, device=ids.device)
            x = self.symbol(ids[:, :-1]) + self.place(places)
            logits = self.head(self.norm(self.blocks(x)))
            return F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())

    return Gpt()


def gpt_and_text(torch: Any, part: Part, drawn: str = "cpu") -> tuple[Any, Any, tuple[int, ...]]:
    """The GPT on the GPU, its weights drawn by one device or the other, and a batch of text."""
    shape = (32, 1, 17, 8) if part.small else (768, 12, 50304, 1024)
    torch.manual_seed(0)
    with torch.device(drawn):
        model = gpt(torch, *shape).cuda()
    ids = torch.randint(shape[2], (2 if part.small else 8, shape[3] + 1)).cuda()
    return model, ids, shape


def training(part: Part) -> Any:
    """Steps of a GPT: their time, the losses (to be the same), and the memory."""
    steps = 2 if part.small else 10
    found: dict[str, Any] = {}
    for name, torch in libraries().items():
        for autocast in (False, True):
            model, ids, _ = gpt_and_text(torch, part)
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
            losses, times = [], []
            for _ in range(steps):
                start = time.perf_counter()
                with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
                    loss = model(ids)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
                times.append(time.perf_counter() - start)
            found[f"{name}, {'bfloat16' if autocast else 'float32'}"] = {
                "ms a step": round(statistics.median(times[len(times) // 2 :]) * 1e3, 2),
                "losses": losses, "MiB": torch.cuda.max_memory_allocated() >> 20,
            }  # fmt: skip
            del model, optimizer, loss, ids
            torch.cuda.empty_cache()
    return found


def programs(part: Part) -> Any:
    """What programs do: training, streams, memory, errors, other libraries."""
    return run_checks(part.number, part.count, small=part.small)


def seeds(part: Part) -> Any:
    """A founding tutorial's cells: what each prints or raises, and what is wrong with it."""
    page = SEEDS[-1 if part.small else part.number]
    shown = notebook.Notebook("face")
    return {page.stem: [asdict(shown.run(cell)) for cell in notebook.read_cells(page)]}


def large(part: Part) -> Any:
    """Large operands beside the CPU."""
    return compare_large(part.number, part.count, small=part.small)


class Step(NamedTuple):
    """A step: what it does, the seconds that one of its parts may take, into how many it is cut;
    ``own``: without NVIDIA's libraries, and without PyTorch beside it."""

    run: Callable[[Part], Any]
    seconds: int
    parts: int = 1
    own: bool = False


STEPS: dict[str, Step] = {
    "driver": Step(tell_driver, 60),
    "smallest": Step(smallest, 120),
    "seeds": Step(seeds, 120, len(SEEDS)),
    "programs": Step(programs, 240, 11),
    "large": Step(large, 120, 7),
    "own large": Step(large, 120, 7, own=True),
    "compare": Step(compare_ops, 120, SWEEP_PARTS),
    "overhead": Step(overhead, 120),
    "products": Step(products, 240),
    "own products": Step(products, 240, own=True),
    "layers": Step(layers, 240),
    "own layers": Step(layers, 240, own=True),
    "training": Step(training, 300),
    "own training": Step(training, 300, own=True),
    "profile": Step(profile, 300),
    "copies": Step(copies, 240),
}


# ---- the run
def child(name: str, part: Part, seconds: float) -> dict[str, Any]:
    """A part of a step in a process of its own."""
    words = [sys.executable, __file__, "--step", name, "--part", f"{part.number}/{part.count}"]
    start = time.perf_counter()
    environment = {**os.environ, "ANTORCHA_CALL": "native"}  # (from the first call on)
    if STEPS[name].own:
        environment["ANTORCHA_LIBRARIES"] = "off"
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=seconds, cwd=ROOT, env=environment
        )
    except subprocess.TimeoutExpired as error:
        said = (error.stderr or b"").decode(errors="replace")
        return {"failed": f"took more than {seconds:.0f} s", "said": said[-3000:]}
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    took = round(time.perf_counter() - start, 1)
    if not lines:
        return {"failed": f"exit code {done.returncode}", "said": done.stderr[-3000:], "s": took}
    return {"result": json.loads(lines[-1].removeprefix(MARK)), "s": took}


def run_all(names: list[str], seconds: float, out: Path) -> None:
    """The steps one after the other; the file is written after each part."""
    end = time.perf_counter() + seconds
    found: dict[str, Any] = {"date": time.strftime("%Y-%m-%d"), "steps": {}}
    for name in names:
        step = STEPS[name]
        left = end - time.perf_counter()
        if left < 5:
            print(f"{name}: no time is left")
            continue
        parts = [Part(number, step.parts) for number in range(step.parts)]
        run = functools.partial(child, name, seconds=min(step.seconds, left))
        with ThreadPoolExecutor(step.parts) as pool:  # (a comparison is no matter of speed)
            found["steps"][name] = list(pool.map(run, parts))
        out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        for part, result in zip(parts, found["steps"][name], strict=True):
            text = json.dumps(result.get("result", result))
            said = f"{name} {part.number + 1}/{step.parts}, {result.get('s')} s"
            print(f"{said}: {text[:1000]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=0.4, help="for everything")
    parser.add_argument("--only", nargs="*", choices=list(STEPS), help="these steps")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "cuda.json")
    parser.add_argument("--step", choices=list(STEPS), help=argparse.SUPPRESS)
    parser.add_argument("--part", default="0/1", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step is None:
        run_all(options.only or list(STEPS), options.hours * 3600, options.out)
        return
    number, _, count = options.part.partition("/")
    result = STEPS[options.step].run(Part(int(number), int(count)))
    print(MARK + json.dumps(result))


if __name__ == "__main__":
    main()
