"""antorcha as a new process finds it: its settings, its hooks, its functions.

A program may set the default dtype or device, leave a mode on, hook all modules, or put a function
of its own in the place of ``Tensor.__repr__``. `as_new` takes all of that back.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from operator import is_
from types import FunctionType
from typing import Any

import antorcha
from antorcha import backends
from antorcha.amp import casts
from antorcha.autograd import saved
from antorcha.autograd.anomaly import set_detect_anomaly
from antorcha.autograd.origin import unwatch_all
from antorcha.core import modes, switches
from antorcha.core.dtypes import float32, set_default_dtype
from antorcha.nn.hooks import remove_global_hooks
from antorcha.nn.module import Module
from antorcha.optim.optimizer import remove_global_step_hooks
from antorcha.profiler import session
from antorcha.serialization import clear_safe_globals
from antorcha.tensor.printing import set_printoptions
from antorcha.tensor.subclass import leave_modes

_LAB = __package__ + "."


class SettingsKeeper:
    """antorcha as it is now; `restore` puts it back. For the thread that runs programs."""

    def __init__(self) -> None:
        self._threads = antorcha.get_num_threads()
        self._tops = {name.partition(".")[0] for name in sys.modules} - {"__main__"}
        owners = [*_backends(backends), switches.cudnn, switches.libraries]
        self._switches = [(owner, dict(vars(owner))) for owner in owners]
        self._owned: list[_Owned] = []
        self._known: set[str] = set()  # modules whose classes and functions are noted
        self._remember()

    def restore(self) -> None:
        """Put back all that a program may have set, and draw random numbers from a new seed."""
        self._restore_functions()
        if session.running is not None:  # a profile that was started, and never stopped
            session.running.stop()
        _leave_modes()
        antorcha.seed()
        set_default_dtype(float32)
        antorcha.set_default_device(None)
        set_printoptions(profile="default")
        antorcha.use_deterministic_algorithms(False)
        antorcha.set_warn_always(False)
        if antorcha.get_num_threads() != self._threads:
            antorcha.set_num_threads(self._threads)
        for owner, settings in self._switches:
            vars(owner).clear()
            vars(owner).update(settings)
        clear_safe_globals()
        remove_global_hooks()
        remove_global_step_hooks()

    # ---- functions put in the place of antorcha's -----------------------------------------------

    def _remember(self) -> None:
        """Of modules that are new since the last call, and their classes, note what they hold."""
        new = [name for name in list(sys.modules) if name not in self._known]
        self._known.update(new)
        self._owned += [_Owned(owner) for owner in _owners(new)]

    def _restore_functions(self) -> None:
        for owned in self._owned:
            if owned.is_as_seen():
                continue
            owner, before = owned.owner, owned.before
            for name, value in list(vars(owner).items()):
                old = before.get(name)
                if value is old or not (self._is_foreign(value) or _is_spoilt(old, value)):
                    continue
                if name in before:
                    setattr(owner, name, before[name])
                else:
                    delattr(owner, name)
            owned.look()
        self._remember()

    def _is_foreign(self, value: Any) -> bool:
        """Is that of a program's making? (antorcha puts functions in places, too.)"""
        if isinstance(value, property):
            value = value.fget
        value = getattr(value, "__func__", value)  # of a static or a class method
        if isinstance(value, FunctionType):
            home = value.__globals__.get("__name__")  # (functools.wraps copies __module__)
        elif isinstance(value, (functools.partial, Module)):
            return True  # antorcha puts none of these into a module
        else:
            home = (value if isinstance(value, type) else type(value)).__module__
        return isinstance(home, str) and home.partition(".")[0] not in self._tops


class _Owned:
    """A module or a class of antorcha's, and what it held before any program ran."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.before = dict(vars(owner))
        self.look()

    def look(self) -> None:
        """Note what it holds now."""
        self._seen = list(vars(self.owner).values())

    def is_as_seen(self) -> bool:
        """Does it hold the very same as at the last look? (Asked of some 27,000 values before
        every run, so without a Python statement for each.)"""
        values = vars(self.owner).values()
        return len(values) == len(self._seen) and all(map(is_, values, self._seen))


def _is_spoilt(old: Any, value: Any) -> bool:
    """Does something that cannot be called stand where a function stood?"""
    return callable(old) and not (callable(value) or hasattr(value, "__get__"))


def _owners(names: list[str]) -> Iterator[Any]:
    """Of these modules the ones of antorcha, and the classes that they define."""
    for name in names:
        module = sys.modules.get(name)
        ours = name.partition(".")[0] == "antorcha" and not name.startswith(_LAB)
        if not ours or not hasattr(module, "__dict__"):
            continue
        yield module
        for value in list(vars(module).values()):
            if isinstance(value, type) and value.__module__ == name:
                yield value


def _backends(owner: Any) -> Iterator[Any]:
    """The switches of ``torch.backends``: objects, some of them inside of each other."""
    for value in list(vars(owner).values()):
        if type(value).__module__ in (backends.__name__, switches.__name__):
            yield value
            yield from _backends(value)


def _leave_modes() -> None:
    """Leave what was entered: no_grad, inference_mode, hooks of saved tensors, ..."""
    modes.set_word(0)
    casts.state.renew()
    saved.leave_hooks()
    leave_modes()
    unwatch_all()
    set_detect_anomaly(False)
