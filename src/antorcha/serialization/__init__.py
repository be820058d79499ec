"""``torch.save`` and ``torch.load``: checkpoints in PyTorch's own format.

Files go both ways between antorcha and PyTorch. Loading never executes code from a file: a
checkpoint holds tensors, numbers, strings and containers; of anything else the user must say, class
by class, that it is safe (:func:`add_safe_globals`).
See https://docs.pytorch.org/docs/stable/notes/serialization.html.
"""

from __future__ import annotations

import io
import os
from typing import Any

from antorcha.errors import ArgumentError, MissingFeature, explain_missing
from antorcha.files import replacing
from antorcha.serialization.errors import CheckpointError, UnpicklingError
from antorcha.serialization.names import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)

__all__ = [
    "CheckpointError", "UnpicklingError", "add_safe_globals", "clear_safe_globals",
    "get_safe_globals", "load", "safe_globals", "save",
]  # fmt: skip
DEFAULT_PROTOCOL = 2


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Saves an object to a file.

    Tensors that share memory share it again when they are loaded; their storage is written once,
    whole. A file at a path is replaced only when the new one is complete.

    Args:
        obj: what to save: tensors, state dicts, containers and numbers
        f: a path, or a binary file object
        pickle_protocol (int): Default: 2, which every PyTorch reads

    See https://docs.pytorch.org/docs/stable/generated/torch.save.html.

    >>> import io
    >>> buffer = io.BytesIO()
    >>> torch.save({'x': torch.tensor([0, 1, 2])}, buffer)
    >>> torch.load(io.BytesIO(buffer.getvalue()))
    {'x': tensor([0, 1, 2])}
    """
    if not _use_new_zipfile_serialization:
        raise MissingFeature("save: the format from before PyTorch 1.6 is read but not written")
    if pickle_module is not None and getattr(pickle_module, "__name__", "") != "pickle":
        raise MissingFeature("save: only Python's own pickle module is supported")
    from antorcha.serialization.writer import write

    if isinstance(f, (str, os.PathLike)):
        path = os.path.realpath(os.fspath(f))
        name = os.path.splitext(os.path.basename(os.fspath(f)))[0] or "archive"
        parent = os.path.dirname(path)
        if not os.path.isdir(parent):
            raise CheckpointError(f"save: Parent directory {parent} does not exist.")
        with replacing(path) as file:
            write(obj, file, str(name), pickle_protocol)
        return
    if not hasattr(f, "write"):
        raise ArgumentError(
            f"save: expected 'f' to be string, path, or a file-like object with a 'write' "
            f"attribute, not {type(f).__name__}"
        )
    whole = io.BytesIO()
    write(obj, whole, "archive", pickle_protocol)
    f.write(whole.getbuffer())


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

    No code from the file is ever executed, whatever ``weights_only`` says: what is not a tensor, a
    number, a string or a container, and was not declared safe, raises ``pickle.UnpicklingError``.

    Args:
        f: a path, or a binary file object that can seek
        map_location: where storages go: a device, a dict of devices, or a function
            (storage, location) -> storage. Default: where they were
        weights_only (bool, optional): accepted; see above
        mmap (bool, optional): accepted; the file is read

    See https://docs.pytorch.org/docs/stable/generated/torch.load.html.
    """
    if pickle_module is not None and getattr(pickle_module, "__name__", "") != "pickle":
        raise MissingFeature("load: only PyTorch's restricted pickle is supported")
    unknown = set(pickle_load_args) - {"encoding", "errors", "fix_imports", "buffers"}
    if unknown:
        raise ArgumentError(f"load() got an unexpected keyword argument {min(unknown)!r}")
    from antorcha.serialization.reader import read

    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return read(file, map_location)
    for method in ("read", "seek", "tell"):
        if not hasattr(f, method):
            raise AttributeError(
                f"load: '{type(f).__name__}' has no '{method}': You can only torch.load from a "
                "file that is seekable. Please pre-load the data into a buffer like io.BytesIO and "
                "try to load from it instead."
            )
    return read(f, map_location)


explain_missing("torch.serialization", globals())
