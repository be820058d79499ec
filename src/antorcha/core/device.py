"""Devices: a small interned value (type and index) and the registry of what can run on them.

A backend is a module ``antorcha.devices.<type>`` with an object ``backend``; it is imported the
first time somebody uses the device, so the core never names one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antorcha.core import modes
from antorcha.core.lazy import imported
from antorcha.errors import ArgumentError, DeviceError, did_you_mean

if TYPE_CHECKING:
    from antorcha.lang.kernels import Backend

KNOWN = ("cpu", "reference", "meta", "sim", "cuda", "mps")
NUMBERED = ("cuda", "mps")
"""Kinds of which a machine may have several: their modules have ``backend_of`` (a device), and
``current_index``, what a device without an index means, and ``device_count``."""
_TORCH_ONLY = (
    "xpu mkldnn opengl opencl ideep hip ve fpga maia xla lazy vulkan mtia privateuseone hpu".split()
)
_interned: dict[tuple[str, int | None], Device] = {}
_backends: dict[str, Backend] = {}
_modules: dict[str, Any] = {}


class Device:
    """Where a tensor lives, e.g. ``device('cpu')`` or ``device('cuda', 1)``.

    Two equal devices are the same object.
    """

    __slots__ = ("index", "type")
    type: str
    index: int | None

    def __new__(cls, type: str | int | Device = "cpu", index: int | None = None) -> Device:
        if isinstance(type, Device):
            return type
        if isinstance(type, str) and (type, index) in _interned:  # as most are
            return _interned[type, index]
        if isinstance(type, int) and not isinstance(type, bool):
            index = type
            type = "cuda"
        if not isinstance(type, str):
            raise ArgumentError(f"device: a name such as 'cpu' is needed, not {type!r}")
        name, _, number = type.partition(":")
        if number:
            if index is not None:
                raise DeviceError(f"device: the index is given twice: {type!r} and {index}")
            if not number.isdigit():
                raise DeviceError(f"device: invalid device string {type!r}")
            index = int(number)
        if name not in KNOWN:
            if name in _TORCH_ONLY:
                raise DeviceError(f"device: antorcha has no {name!r} device; it has {KNOWN}")
            raise DeviceError(
                "device: there is no device {device!r}; there are cpu, cuda, mps, meta.{hint}",
                reason="no device", device=name, hint=did_you_mean(name, KNOWN),
            )  # fmt: skip
        if name in ("cpu", "reference", "meta", "sim") and index in (0, None):
            key: tuple[str, int | None] = (name, None if name != "cpu" else index)
        else:
            key = (name, index)
        result = _interned.get(key)
        if result is None:
            result = object.__new__(cls)
            object.__setattr__(result, "type", name)
            object.__setattr__(result, "index", key[1])
            _interned[key] = result
        return result

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a device cannot be changed: {name!r} is read-only")

    def __repr__(self) -> str:
        tail = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{tail})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[Any, ...]:
        return Device, (self.type, self.index)

    def __enter__(self) -> Device:
        _set_defaults([*_defaults, as_device(self)])
        return self

    def __exit__(self, *_: object) -> None:
        _set_defaults(_defaults[:-1] or [CPU])


CPU = Device("cpu")
META = Device("meta")
_defaults: list[Device] = [CPU]


def as_device(value: Device | str | int | None) -> Device:
    """The device that an argument names; None is the default device."""
    if value is None:
        return _defaults[-1]
    found = value if type(value) is Device else Device(value)
    if found.type == "cpu":
        return CPU
    return _current(found) if found.index is None and found.type in NUMBERED else found


def _current(device: Device) -> Device:
    """Of a kind of which there are several, the current one; as it is where there is none."""
    index = _module_of(device.type).current_index()
    return device if index is None else Device(device.type, index)


def depends_on_thread(value: object) -> bool:
    """Does it name a kind of device of which there are several, and not which?"""
    kind = value.type if type(value) is Device and value.index is None else value
    if type(kind) is not str or kind not in NUMBERED:
        return False
    return bool(_module_of(kind).device_count() > 1)


def set_default(value: Device | str | int | None) -> None:
    """New tensors are made there when no device is said."""
    _set_defaults([CPU if value is None else as_device(value)])


def _set_defaults(devices: list[Device]) -> None:
    before = _defaults[-1] is CPU
    _defaults[:] = devices
    if before is not (_defaults[-1] is CPU):
        modes.note_default_device(1 if before else -1)


def _module_of(kind: str) -> Any:
    """The module of a kind of device, imported at first use."""
    found = _modules.get(kind)
    if found is None:
        found = _modules[kind] = imported(f"antorcha.devices.{kind}")
    return found


def backend(device: Device) -> Backend:
    """What runs on ``device``; its module is imported at first use."""
    found = _backends.get(device.type)
    if found is None:
        module = _module_of(device.type)
        if device.type in NUMBERED:  # (which has a table of its own)
            return module.backend_of(device)  # type: ignore[no-any-return]
        found = module.backend
        assert found is not None
        _backends[device.type] = found
    return found
