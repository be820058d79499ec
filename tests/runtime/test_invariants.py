"""``ANTORCHA_CALL=checked``: what is in order passes, and each thing that is not is found."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from antorcha.runtime.call import native
from tests.patience import PATIENCE

pytestmark = pytest.mark.skipif(not native.ACTIVE, reason="the native path does not run")
WARM = """
import antorcha as torch
from antorcha.runtime.call.native import dealloc, invariants, methods, places, slots

def work():
    x, y = torch.rand(3, 4, requires_grad=True), torch.rand(3, 4)
    for _ in range(6):
        z = ((x + y) * 2 - x.t().t()).exp()
        z.sum().backward()
        with torch.no_grad():
            y.add_(y)
            torch.cat([x, y])[1:, 2].max(0)
    return x, z

x, z = work()
table, room, used = [places.Quick.fields[name][0] // 8 for name in ("table", "room", "used")]
invariants.check_everything()
"""
HARM = {
    "places are not there": "memory = next(m for _, m in methods.quicks if m[used]); "
    "memory[used] -= 1",
    "another key": "memory = next(m for _, m in methods.quicks if m[used]); "
    "words = [slots.word(memory[table] + 8 * k).value for k in range(memory[room])]; "
    "place = next(w for w in words if w);"
    "words = slots.word(invariants._object(place).ptr + 8); words.value ^= 1 << 40",
    "spare objects": "slots.word(dealloc.lives.addr + 16).value += 1",
    "a thread in a mode": "from antorcha.runtime.call.native import mode; "
    "mode.current()(); slots.word(mode.answer.addr + 8).value = 1",
    "numel": "z._layout.numel += 1; invariants.check_result(z)",
    "outside": "z._offset = 5; invariants.check_result(z)",
    "no older": "z._fn.seq = 0; invariants.check_result(z)",
    "view of a view": "v = x.detach().view(12); v._base = v; invariants.check_result(v)",
}


def run(program: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "ANTORCHA_CALL": "checked"}
    return subprocess.run(
        [sys.executable, "-c", program], env=environ,
        capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip


def test_what_is_in_order_passes() -> None:
    done = run(WARM + "assert invariants._count > 20; print('done')")
    assert done.stdout.endswith("done\n"), done.stderr


def test_no_kernel_runs_without_an_operand_that_it_reads() -> None:
    """(As when a number was None, and so no operand.)"""
    done = run("""
from antorcha.core import dtypes
from antorcha.core.device import as_device, backend
from antorcha.devices.cpu.gather import scatter_kernel
from antorcha.devices.cpu.native import compile_native
from antorcha.errors import NativeError
from antorcha.lang.kernels import Scatter
from antorcha.runtime.memory import layout as L

cpu = as_device("cpu")
big, index = L.contiguous((3, 3), dtypes.float32, cpu), L.contiguous((2, 3), dtypes.int64, cpu)
what = Scatter("set", (0,), None, None, source=2)
backend(cpu).compile(what, (big,), (big, index, float))
try:
    kernel = scatter_kernel(what, (big,), (big, index, float))
    compile_native(what, kernel, (big,), (big, index))
except NativeError as error:
    print(error)
""")
    assert done.returncode == 0, done.stderr
    assert "reads buffer 3, and is given 3: an operand is missing" in done.stdout, done.stdout


@pytest.mark.parametrize("found", HARM)
def test_what_is_not_is_found(found: str) -> None:
    """(The process ends at once: what has been harmed must not be taken apart.)"""
    program = f"""{WARM}
import os
try:
    {HARM[found]}
    invariants.check_everything()
except invariants.Broken as error:
    print(error, flush=True)
    os._exit(0)
print("nothing was found", flush=True)
os._exit(1)
"""
    done = run(program)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert found in done.stdout
