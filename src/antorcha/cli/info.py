"""``antorcha info``: what antorcha finds on this machine, as a table or as JSON.

A report of a fault should carry this text, so it names no user and no host.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Callable
from functools import partial
from typing import Any

import antorcha
from antorcha import config
from antorcha._version import __version__
from antorcha.core.lazy import lazy

cuda_driver, cuda_gpu = lazy("antorcha.devices.cuda.driver"), lazy("antorcha.devices.cuda.gpu")
cuda_libraries = lazy("antorcha.devices.cuda.libraries")
llvm, native_path = lazy("llvmlite.binding"), lazy("antorcha.runtime.call.native")
report = lazy("antorcha.runtime.call.native.report", before_forks=False)
runner = lazy("antorcha.cli.runner", before_forks=False)
rich_box = lazy("rich.box", before_forks=False)
rich_console = lazy("rich.console", before_forks=False)
rich_table = lazy("rich.table", before_forks=False)
REQUIRED = ("numpy", "scipy", "llvmlite", "ml_dtypes", "rich", "typer")
OPTIONAL = ("scikit-learn", "matplotlib", "torch", "pytest")

# Bits of the widest vectors, by the feature that LLVM reports; the first that is there counts.
VECTOR_BITS = {"avx512f": 512, "avx2": 256, "avx": 256, "sse2": 128, "neon": 128}
FEATURES_SHOWN = (
    "sse4.2 avx avx2 fma f16c bmi2 avx512f avx512bw avx512vl avx512vnni avx512bf16 avx512fp16 "
    "amx-tile amx-bf16 amx-int8 neon fullfp16 bf16 dotprod i8mm sve sve2"
).split()


def show(*, as_json: bool) -> None:
    """Print what `collect` finds."""
    found = collect()
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        _print_table(found)


def show_calls(words: list[str], *, as_json: bool) -> int:
    """Run a script (its words: the path and what it finds in ``sys.argv``) and say, for each op,
    how many calls the native path served and how many Python did, and why. The script's exit code.
    """
    native_path.finish()
    try:
        code: int = runner.run(words)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    rows = report.served()
    if as_json:
        print(json.dumps([row._asdict() for row in rows], indent=2))
        return code
    table = rich_table.Table("op", "natively", "by Python", "mostly because of", box=None)
    for row in rows:
        table.add_row(row.name, str(row.native), str(row.python), row.why)
    console = rich_console.Console()
    if reason := native_path.why_not():
        console.print(f"The native path does not run: {reason}")
    console.print(table)
    return code


def collect() -> dict[str, dict[str, Any]]:
    """Everything there is to say, as plain values: a section each for software, CPU, ..."""
    return {
        "software": _software(),
        "cpu": _cpu(),
        "antorcha": _engine(),
        "devices": _devices(),
        "cache": cached(),
        "packages": {name: package_version(name) for name in (*REQUIRED, *OPTIONAL)},
    }


def _software() -> dict[str, Any]:
    return {
        "antorcha": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": platform.platform(),
    }


def _cpu() -> dict[str, Any]:
    features = {name for name, there in llvm.get_host_cpu_features().items() if there}
    return {
        "model": _cpu_model(),
        "llvm name": llvm.get_host_cpu_name(),
        "cores": os.cpu_count(),
        "features": [name for name in FEATURES_SHOWN if name in features],
        "vector bits": next((bits for name, bits in VECTOR_BITS.items() if name in features), 128),
    }


def _cpu_model() -> str:
    """The processor's name as its maker writes it, else the machine's kind."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _engine() -> dict[str, Any]:
    return {
        "threads": _ask(lambda torch: torch.get_num_threads(), config.num_threads),
        "call path": _ask(_call_path, config.call_path),
        "compiles for": config.target or "this machine",
    }


def _call_path(_torch: Any) -> str:
    """The implementation that runs, and why it is not the native one."""
    why_not = native_path.why_not()
    if why_not:
        return f"python ({why_not})"
    if config.call_path == "auto" and native_path.is_to_be_compiled():
        return "native, once it is compiled in the background"
    return "native, checked" if config.call_path == "checked" else "native"


def _devices() -> dict[str, Any]:
    return {
        "cpu": True,
        **_gpus(),
        "mps": _ask(lambda torch: bool(torch.backends.mps.is_available()), False),
    }


def _gpus() -> dict[str, Any]:
    """The NVIDIA GPUs and their driver; what is missing where there is none."""
    there = _ask(lambda torch: bool(torch.cuda.is_available()), False)
    if not there:
        return {"cuda": False, "cuda needs": _ask(lambda torch: cuda_driver.missing(), "")}

    def line(torch: Any, index: int) -> str:
        """What a GPU says of itself."""
        found = torch.cuda.get_device_properties(index)
        return (
            f"{found.name}, compute capability {found.major}.{found.minor}, "
            f"{found.total_memory / 2**30:.1f} GiB"
        )

    version = _ask(lambda torch: cuda_gpu.version_text(cuda_driver.found().version), "")
    gpus = {
        f"cuda:{k}": _ask(partial(line, index=k), "does not answer")
        for k in range(_ask(lambda torch: torch.cuda.device_count(), 0))
    }
    used = _ask(lambda torch: cuda_libraries.used(), [])
    listed = ", ".join(used) or "none is installed, or wanted"
    return {"cuda": True, "cuda driver": f"for CUDA {version}", "cuda libraries": listed, **gpus}


def _ask(question: Callable[[Any], Any], otherwise: Any) -> Any:
    """Ask antorcha; a part that does not answer must not keep the rest from being shown."""
    try:
        return question(antorcha)
    except Exception:
        return otherwise


def cached() -> dict[str, Any]:
    files = size = 0
    for folder, _, names in os.walk(config.cache_dir):
        for name in names:
            try:
                size += os.path.getsize(os.path.join(folder, name))
            except OSError:  # another process has just replaced it
                continue
            files += 1
    return {
        "folder": config.cache_dir, "files": files, "bytes": size,
        "bound": config.cache_size or None,
    }  # fmt: skip


def package_version(package: str) -> str | None:
    """The installed version of a distribution, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _print_table(found: dict[str, dict[str, Any]]) -> None:
    table = rich_table.Table(box=rich_box.SIMPLE_HEAD, show_header=False, pad_edge=False)
    table.add_column(style="bold cyan", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for section, rows in found.items():
        title = section
        for name, value in rows.items():
            table.add_row(title, name, _text(name, value))
            title = ""
        table.add_section()
    rich_console.Console(soft_wrap=False).print(table)


def _text(name: str, value: Any) -> str:
    if name == "bound":
        return f"{value / 2**20:.0f} MiB of kernels" if value else "none"
    if value is None:
        return "[dim]not installed[/dim]"
    if isinstance(value, bool):
        return "available" if value else "[dim]not available[/dim]"
    if isinstance(value, list):
        return " ".join(value)
    if name == "bytes":
        return f"{value / 2**20:.1f} MiB"
    return str(value)
