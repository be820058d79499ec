"""Each run finds the process as a new one is: nothing that one program set reaches the next."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import pytest

pytest.importorskip("psutil", reason="the lab's extra is not installed")
pytest.importorskip("ipykernel", reason="the lab's extra is not installed")

import antorcha
from antorcha.lab.kernel import Limits
from tests.lab.bench import PATIENCE, Bench, patient


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = Bench(tmp_path_factory.mktemp("work"), Limits(seconds=PATIENCE, memory=3 << 30))
    with patient():
        yield bench
        bench.close()


def test_what_a_program_breaks_is_whole_again_for_the_next(bench: Bench) -> None:
    done = bench.run(
        """
        import builtins, gc, logging, os, signal, sys, warnings
        sys.stdout = sys.stderr = sys.excepthook = None
        builtins.print = None
        builtins.mine = 1
        os.environ["MINE"] = "1"
        os.environ.pop("PATH")
        logging.basicConfig(level=10)
        warnings.simplefilter("error")
        sys.setrecursionlimit(200)
        gc.disable()
        signal.setitimer(signal.ITIMER_REAL, 1000)
        """
    )
    assert done["ended"] == "ok"
    done = bench.run(
        """
        import builtins, gc, logging, os, signal, sys, warnings
        print(hasattr(builtins, "mine"), "MINE" in os.environ, "PATH" in os.environ,
              logging.root.handlers, sys.getrecursionlimit() > 500, gc.isenabled(),
              signal.getitimer(signal.ITIMER_REAL)[0])
        warnings.warn("careful")
        """
    )
    assert done["ended"] == "ok"
    assert bench.text() == "False False True [] True True 0.0\n"
    assert "careful" in bench.text("stderr")


def test_settings_of_one_run_are_not_those_of_the_next(bench: Bench) -> None:
    code = """
    import antorcha as torch, decimal, functools, multiprocessing, os, signal, socket, sys, time
    import numpy as np
    x = torch.ones(3, requires_grad=True)
    def facts():
        return [
            torch.get_default_dtype(), torch.get_default_device(), torch.get_num_threads(),
            torch.are_deterministic_algorithms_enabled(), torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(), torch.is_anomaly_enabled(),
            torch.is_anomaly_check_nan_enabled(), torch.backends.cudnn.benchmark,
            torch.backends.cuda.matmul.allow_tf32, hasattr(torch.backends.cudnn, "mine"),
            repr(torch.tensor([0.123456, 1e10])), repr(x), (x * 2).grad_fn.name(),
            torch.nn.functional.relu(x).sum().item(), torch.sum(x).item(),
            type(torch.relu).__name__, type(torch.sigmoid).__name__,
            torch.nn.Linear(1, 1).bias.shape, hasattr(torch.Tensor, "mine"),
            np.geterr()["divide"], repr(np.array([0.123456])), decimal.getcontext().prec,
            signal.getsignal(signal.SIGTERM), os.umask(0o022), sys.getswitchinterval(),
            socket.getdefaulttimeout(), time.tzname, torch.serialization.get_safe_globals(),
            multiprocessing.get_start_method(allow_none=True),
            torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("cuda"),
            torch.get_autocast_dtype("cpu"), torch.is_autocast_cache_enabled(),
        ]
    print(facts())
    multiprocessing.set_start_method("spawn")
    """
    spoil = """
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    torch.set_num_threads(7)
    torch.autocast("cpu", torch.float16, cache_enabled=False).__enter__()
    torch.set_autocast_enabled("cuda", True)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.mine = 1
    torch.set_printoptions(precision=1, sci_mode=True)
    torch.autograd.set_detect_anomaly(True, check_nan=False)
    torch.autograd.graph.saved_tensors_hooks(lambda t: t * 0, lambda t: t).__enter__()
    torch.graph.recording().__enter__()
    torch.inference_mode().__enter__()
    torch.nn.modules.module.register_module_forward_hook(lambda *_: print("hooked"))
    torch.optim.optimizer.register_optimizer_step_post_hook(lambda *_: print("hooked"))
    torch.profiler.profile().start()
    plain = torch.Tensor.__repr__
    torch.Tensor.__repr__ = lambda self: f"{tuple(self.shape)} {plain(self)}"
    torch.Tensor.mine = lambda self: 1
    torch.nn.functional.relu = lambda x: x * 0
    torch.sum = lambda x: x[0]
    torch.relu = torch.nn.GELU()
    torch.sigmoid = functools.partial(torch.mul, 2)
    class Layer(torch.nn.Module): bias = x
    torch.nn.Linear = lambda *_: Layer()
    torch.nn.Module.__call__ = None
    np.seterr(divide="raise")
    np.set_printoptions(precision=1)
    decimal.getcontext().prec = 3
    signal.signal(signal.SIGTERM, lambda *_: None)
    os.umask(0)
    sys.setswitchinterval(1)
    socket.setdefaulttimeout(1)
    os.environ["TZ"] = "Asia/Tokyo"
    time.tzset()
    torch.serialization.add_safe_globals([Layer])
    """
    assert bench.run(code)["ended"] == "ok"
    before = bench.text()
    done = bench.run(textwrap.dedent(code) + textwrap.dedent(spoil))
    assert done["ended"] == "ok", done
    done = bench.run(code)
    assert done["ended"] == "ok", bench.text("stderr")
    assert bench.text() == before
    done = bench.run(
        """
        import antorcha as torch
        layer = torch.nn.Linear(2, 1)
        loss = layer(torch.ones(1, 2)).sum()
        loss.backward()
        torch.optim.SGD(layer.parameters()).step()
        """,
        watched="profile",
    )
    assert (done["ended"], bench.text()) == ("ok", ""), bench.text("stderr")
    assert "aten::linear" in [row["name"] for row in done["profile"]["rows"]]


def test_every_setting_of_antorcha_is_put_back() -> None:
    """A setter that is new belongs into `antorcha.lab.settings`, and then here."""
    restored = {
        "set_default_device", "set_default_dtype", "set_default_tensor_type", "set_num_threads",
        "set_grad_enabled", "set_printoptions", "set_rng_state", "use_deterministic_algorithms",
        "set_deterministic_debug_mode", "set_warn_always", "set_anomaly_enabled",
        *[name for name in dir(antorcha) if name.startswith("set_autocast_")],
    }  # fmt: skip
    without_effect = {
        "set_float32_matmul_precision", "set_flush_denormal", "set_num_interop_threads",
    }  # fmt: skip
    setters = {name for name in dir(antorcha) if name.startswith(("set_", "use_"))}
    assert setters == restored | without_effect
