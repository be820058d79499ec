"""``torch.save`` and ``torch.load``: checkpoints in PyTorch's own format.

Files go both ways between antorcha and PyTorch. Loading never executes code from a file: a
checkpoint holds tensors, numbers, strings and containers; of anything else the user must say, class
by class, that it is safe (:func:`add_safe_globals`), or, with ``weights_only=False``, that the file
is trusted: it may then hold whole modules, and objects of classes that the program has imported.
See https://docs.pytorch.org/docs/stable/notes/serialization.html.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import IO, Any, TypeAlias

from antorcha.core.device import Device
from antorcha.core.files import replacing
from antorcha.core.lazy import lazy
from antorcha.errors import (
    ArgumentError,
    GraphError,
    MissingFeature,
    ValueRangeError,
    no_such_name,
    warn,
)
from antorcha.serialization.errors import CheckpointError, UnpicklingError
from antorcha.serialization.names import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from antorcha.serialization.options import (
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    register_package,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from antorcha.tensor.storages import UntypedStorage

serialization_writer = lazy("antorcha.serialization.writer")
serialization_reader = lazy("antorcha.serialization.reader")
serialization_config = lazy("antorcha.utils.serialization.config")
serialization_gguf = lazy("antorcha.serialization.gguf")

__all__ = [
    "CheckpointError", "LoadEndianness", "UnpicklingError", "add_safe_globals",
    "clear_safe_globals", "default_restore_location", "get_crc32_options",
    "get_default_load_endianness", "get_default_mmap_options", "get_safe_globals",
    "get_unsafe_globals_in_checkpoint", "load", "load_gguf", "location_tag",
    "register_package", "safe_globals", "save", "set_crc32_options", "set_default_load_endianness",
    "set_default_mmap_options", "skip_data",
]  # fmt: skip
DEFAULT_PROTOCOL = 2
FILE_LIKE: TypeAlias = str | os.PathLike[str] | IO[bytes]
MAP_LOCATION: TypeAlias = Callable[[Any, str], Any] | Device | str | dict[str, str] | None


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Saves an object to a file.

    Tensors that share memory share it again when they are loaded; their storage is written once,
    whole. A file at a path is replaced only when the new one is complete.

    Args:
        obj: what to save: tensors, state dicts, containers and numbers
        f: a path, or a binary file object
        pickle_module: a module whose ``Pickler`` is written in Python, as dill's. Default: pickle
        pickle_protocol (int): Default: 2, which every PyTorch reads
        _use_new_zipfile_serialization (bool): False: the format from before PyTorch 1.6

    See https://docs.pytorch.org/docs/stable/generated/torch.save.html.

    >>> import io
    >>> buffer = io.BytesIO()
    >>> torch.save({'x': torch.tensor([0, 1, 2])}, buffer)
    >>> torch.load(io.BytesIO(buffer.getvalue()))
    {'x': tensor([0, 1, 2])}
    """

    def put(file: Any, name: str) -> None:
        if _use_new_zipfile_serialization:
            serialization_writer.write(
                obj, file, name, pickle_protocol, pickle_module, not _disable_byteorder_record
            )
        else:
            serialization_writer.write_old(obj, file, pickle_protocol, pickle_module)

    if isinstance(f, (str, os.PathLike)):
        path = os.path.realpath(os.fspath(f))
        name = os.path.splitext(os.path.basename(os.fspath(f)))[0] or "archive"
        parent = os.path.dirname(path)
        if not os.path.isdir(parent):
            raise CheckpointError(f"save: Parent directory {parent} does not exist.")
        with replacing(path, durable=False) as file:
            put(file, str(name))
        return
    if not hasattr(f, "write"):
        raise AttributeError(
            f"save: expected 'f' to be string, path, or a file-like object with a 'write' "
            f"attribute, not {type(f).__name__}"
        )
    put(f, "archive")
    if hasattr(f, "flush"):
        f.flush()


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Loads what :func:`save` (or PyTorch) saved.

    No code from the file is ever executed: what is not a tensor, a number, a string or a container,
    and was not declared safe, raises ``pickle.UnpicklingError``. With ``weights_only=False`` whole
    modules, optimizers, NumPy's arrays and objects of the program's own classes are loaded, too.
    They are made as Python's pickle makes them; yet no module is imported, and no function called,
    because the file says so, but for a short list and the constructors of classes of the program
    that define ``__reduce__``.

    Args:
        f: a path, or a binary file object that can seek
        map_location: where storages go: a device, its name, a dict of names, or a function
            (storage, location) -> storage. Default: where they were
        pickle_module: accepted if it is Python's own ``pickle``, with ``weights_only=False``
        weights_only (bool, optional): see above. Default: True
        mmap (bool, optional): maps the file instead of reading it: what is not used is not read,
            and what is written to tensors stays in this process (see
            ``serialization.set_default_mmap_options``)

    See https://docs.pytorch.org/docs/stable/generated/torch.load.html.
    """
    unknown = set(pickle_load_args) - {"encoding", "errors", "fix_imports", "buffers"}
    if unknown:
        raise ArgumentError(f"load() got an unexpected keyword argument {min(unknown)!r}")
    trust = not _is_weights_only(weights_only, pickle_module)
    if pickle_load_args and not trust:
        warn("pickle_load_args only works if `weights_only=False`.", UserWarning)
    encoding = pickle_load_args.get("encoding", "utf-8")
    is_path = isinstance(f, (str, os.PathLike))
    if mmap is None:
        mmap = serialization_config.load.mmap and is_path
    if mmap and not is_path:
        raise ValueRangeError("f must be a file path in order to use the mmap argument")
    wanted = serialization_reader.Wanted(
        map_location, trust, encoding, os.fspath(f) if mmap else None
    )
    try:
        if is_path:
            if os.fspath(f).endswith(".safetensors"):
                return _load_safetensors(os.fspath(f), map_location)
            with open(f, "rb") as file:
                return serialization_reader.read(file, wanted)
        _check_seekable(f)
        return serialization_reader.read(f, wanted)
    except UnpicklingError as error:
        raise error if trust else UnpicklingError(_weights_only_message(str(error))) from None


def _is_weights_only(weights_only: bool | None, pickle_module: Any) -> bool:
    """What the arguments and PyTorch's two environment variables say together."""
    force, never = (
        os.environ.get(f"TORCH_FORCE_{name}_LOAD", "0").lower() in ("1", "y", "yes", "true")
        for name in ("WEIGHTS_ONLY", "NO_WEIGHTS_ONLY")
    )
    if force and never:
        raise GraphError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` "
            "should be set, but both were set."
        )
    if force:
        weights_only = True
    elif weights_only is None:
        weights_only = not never and pickle_module is None
    if pickle_module is not None:
        if weights_only:
            raise GraphError("Can not safely load weights when explicit pickle_module is specified")
        if getattr(pickle_module, "__name__", "") != "pickle":
            raise MissingFeature("load: only Python's own pickle module is supported")
    return weights_only


def _weights_only_message(message: str) -> str:
    """As PyTorch tells of what ``weights_only=True`` does not load."""
    message = message.removeprefix("load: ")
    if "was not an allowed global by default" not in message:
        return f"Weights only load failed. WeightsUnpickler error: {message}"
    return (
        "Weights only load failed. This file can still be loaded, to do so you have two options, "
        "\033[1mdo those steps only if you trust the source of the checkpoint\033[0m. \n\t(1) "
        "Re-running `torch.load` with `weights_only` set to `False` will likely succeed: it loads "
        "objects of the classes that the program has imported. Do it only if you got the file from "
        "a trusted source.\n\t(2) Alternatively, to load with `weights_only=True` please check the "
        f"recommended steps in the following error message.\n\tWeightsUnpickler error: {message}"
        "\n\nCheck the documentation of torch.load to learn more about types accepted by default "
        "with weights_only https://pytorch.org/docs/stable/generated/torch.load.html."
    )


def _check_seekable(f: Any) -> None:
    for method in ("read", "seek", "tell"):
        if not hasattr(f, method):
            raise AttributeError(
                f"load: '{type(f).__name__}' has no '{method}': You can only torch.load from a "
                "file that is seekable. Please pre-load the data into a buffer like io.BytesIO and "
                "try to load from it instead."
            )


def _load_safetensors(path: str, map_location: Any) -> Any:
    """A safetensors file, by the package of that name."""
    torch = sys.modules.get("torch")
    if torch is None or "antorcha" not in getattr(torch, "__version__", ""):
        raise MissingFeature(
            "load: a .safetensors file is read by the package safetensors, which works on antorcha "
            "where it is served as torch: antorcha run, or antorcha.torch_alias.install()"
        )
    if isinstance(map_location, dict) or callable(map_location):
        raise GraphError(
            "Loading safetensors file with dict or callable map_location is not supported. Use a "
            "device string or torch.device instead."
        )
    try:
        package: Any = importlib.import_module("safetensors.torch")
    except ImportError:
        raise GraphError(
            "Attempting to load a safetensors file but safetensors is not installed. Please "
            "install safetensors with: pip install safetensors"
        ) from None
    return package.load_file(path, device="cpu" if map_location is None else str(map_location))


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names of classes and functions in a checkpoint that ``weights_only`` does not allow.

    Nothing is loaded. Raises ValueError for a file that is no checkpoint of today's format.

    >>> import io
    >>> file = io.BytesIO()
    >>> torch.save({"model": torch.nn.ReLU()}, file)
    >>> torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(file.getvalue()))
    ['torch.nn.modules.activation.ReLU']
    """
    found: list[str]
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            found = serialization_reader.unsafe_names(file)
            return found
    _check_seekable(f)
    found = serialization_reader.unsafe_names(f)
    return found


def location_tag(storage: Any) -> str:
    """How a checkpoint names the place of a storage: ``cpu``, ``meta``, or what a package says."""
    text: str = serialization_writer.place(getattr(storage, "_untyped_storage", storage))
    return text


def default_restore_location(storage: Any, location: str) -> Any:
    """A storage at the place of that name, as ``load`` brings it there without ``map_location``.

    >>> storage = torch.ones(2).untyped_storage()
    >>> torch.serialization.default_restore_location(storage, "cpu").nbytes()
    8
    """
    untyped = getattr(storage, "_untyped_storage", storage)
    return UntypedStorage._of(*serialization_reader.placed(untyped._storage, location, None))


def __getattr__(name: str) -> Any:
    if name == "load_gguf":
        return serialization_gguf.load_gguf
    raise no_such_name("torch.serialization", name, __all__)
