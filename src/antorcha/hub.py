"""``torch.hub``: models from a folder with a ``hubconf.py``, and files of weights.

Nothing is downloaded. What is in the cache already (``get_dir()``), in a local folder
(``source="local"``) or behind a ``file://`` address is used; anything else raises
NotImplementedError and says where to put the file.

See https://docs.pytorch.org/docs/stable/hub.html.
"""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any
from urllib.parse import urlparse
from urllib.request import url2pathname

from antorcha.core.files import replacing
from antorcha.errors import AntorchaError, MissingFeature, ValueRangeError, explain_missing
from antorcha.serialization import load as read

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url",
           "set_dir"]  # fmt: skip
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
MODULE_HUBCONF, VAR_DEPENDENCY = "hubconf.py", "dependencies"
ENV_TORCH_HOME, ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR = "TORCH_HOME", "XDG_CACHE_HOME", "~/.cache"
READ_DATA_CHUNK = 128 * 1024
_hub_dir: str | None = None


class _Progress:
    """The part of tqdm's progress bar that downloads use, for where tqdm is not installed."""

    def __init__(
        self, total: float | None = None, disable: bool = False, unit: str | None = None,
        *args: Any, **kwargs: Any,
    ) -> None:  # fmt: skip
        self.total, self.disable, self.n = total, disable, 0

    def update(self, n: int) -> None:
        """``n`` more bytes are there."""
        if self.disable:
            return
        self.n += n
        done = f"{self.n:.1f} bytes" if self.total is None else f"{100 * self.n / self.total:.1f}%"
        sys.stderr.write(f"\r{done}")
        sys.stderr.flush()

    def set_description(self, *args: Any, **kwargs: Any) -> None:
        """Shown by tqdm alone."""

    def write(self, s: str) -> None:
        """A line of its own."""
        sys.stderr.write(f"{s}\n")

    def close(self) -> None:
        """Ends the bar."""
        self.disable = True

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.disable:
            sys.stderr.write("\n")


try:
    from tqdm import tqdm as tqdm
except ImportError:
    tqdm = _Progress


class HubError(AntorchaError, RuntimeError):
    """A folder or a file that is not what the hub expects.

    Example: ``torch.hub.load(folder, "no_such_model", source="local")``.
    """


# ---- the cache -----------------------------------------------------------------------------------


def _get_torch_home() -> str:
    cache = os.getenv(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR)
    return os.path.expanduser(os.getenv(ENV_TORCH_HOME, os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder of what was downloaded: that of `set_dir`, else ``$TORCH_HOME/hub``, with
    ``$TORCH_HOME`` by default ``~/.cache/torch``."""
    return os.path.join(_get_torch_home(), "hub") if _hub_dir is None else _hub_dir


def set_dir(d: str | os.PathLike[str]) -> None:
    """Sets the folder of `get_dir`."""
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


# ---- models --------------------------------------------------------------------------------------


def load(
    repo_or_dir: str, model: str, *args: Any, source: str = "github", trust_repo: Any = "check",
    force_reload: bool = False, verbose: bool = True, skip_validation: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """Calls the function `model` of a ``hubconf.py``, and gives what it gives.

    Args:
        repo_or_dir (str): a folder (``source="local"``), or ``"owner/name[:ref]"`` of a repository
            that is in the cache, ``get_dir()``, already
        model (str): the function's name; the other arguments are handed to it
        source (str): ``"github"`` or ``"local"``. Default: ``"github"``

    Raises NotImplementedError for a repository that would have to be downloaded, RuntimeError for a
    missing function or dependency, ValueError for another source.

    See https://docs.pytorch.org/docs/stable/hub.html#torch.hub.load.
    """
    if source.lower() not in ("github", "local"):
        raise ValueRangeError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    local = source.lower() == "local"
    folder = repo_or_dir if local else _cached(repo_or_dir, force_reload)
    with _hubconf(folder) as module:
        return _entry(module, model)(*args, **kwargs)


def list(
    github: str, force_reload: bool = False, skip_validation: bool = False,
    trust_repo: Any = "check", verbose: bool = True,
) -> builtins.list[str]:  # fmt: skip
    """The names of the functions of a ``hubconf.py``, in a folder or in a cached repository."""
    with _hubconf(_folder(github, force_reload)) as module:
        return [name for name in dir(module)
                if name[:1] != "_" and callable(getattr(module, name))]  # fmt: skip


def help(
    github: str, model: str, force_reload: bool = False, skip_validation: bool = False,
    trust_repo: Any = "check",
) -> str | None:  # fmt: skip
    """The docstring of a function of a ``hubconf.py``."""
    with _hubconf(_folder(github, force_reload)) as module:
        doc: str | None = _entry(module, model).__doc__
        return doc


def _folder(github: str, force_reload: bool) -> str:
    return github if os.path.isdir(github) else _cached(github, force_reload)


def _cached(github: str, force_reload: bool) -> str:
    """The folder of a repository that was downloaded before."""
    repository, _, ref = github.partition(":")
    owner, slash, name = repository.partition("/")
    if not slash:
        raise ValueRangeError(
            f'torch.hub: "owner/name[:ref]" is needed, or source="local" for a folder; not '
            f"{github!r}"
        )
    folders = [
        os.path.join(get_dir(), "_".join([owner, name, each.replace("/", "_")]))
        for each in ([ref] if ref else ["main", "master"])
    ]
    for folder in folders:
        if os.path.isdir(folder) and not force_reload:
            return folder
    raise MissingFeature(
        f"torch.hub: antorcha downloads nothing. Put the repository {repository} into "
        f'{folders[0]}, or load it from a folder with source="local"'
    )


@contextlib.contextmanager
def _hubconf(folder: str) -> Iterator[ModuleType]:
    """The module ``hubconf`` of a folder, which can import what lies beside it."""
    place = os.path.join(os.path.expanduser(folder), MODULE_HUBCONF)
    sys.path.insert(0, os.path.expanduser(folder))
    try:
        spec = importlib.util.spec_from_file_location(MODULE_HUBCONF, place)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(os.path.expanduser(folder))


def _entry(module: ModuleType, model: str) -> Any:
    if not isinstance(model, str):
        raise ValueRangeError("Invalid input: model should be a string of function name")
    needed = getattr(module, VAR_DEPENDENCY, None) or []
    missing = [each for each in needed if importlib.util.find_spec(each) is None]
    if missing:
        raise HubError(f"Missing dependencies: {', '.join(missing)}")
    found = getattr(module, model, None)
    if not callable(found):
        raise HubError(f"Cannot find callable {model} in hubconf")
    return found


# ---- files ---------------------------------------------------------------------------------------


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Copies what is behind a ``file://`` address to `dst`; other addresses raise
    NotImplementedError.

    Raises RuntimeError where the file's SHA-256 does not begin with `hash_prefix`.
    """
    place = os.path.expanduser(dst)
    parts = urlparse(url)
    if parts.scheme != "file":
        raise MissingFeature(
            f"torch.hub: antorcha downloads nothing. Download {url} and put it to {place}"
        )
    with open(url2pathname(parts.path), "rb") as source, replacing(place) as target:
        if hash_prefix:
            digest = hashlib.file_digest(source, "sha256").hexdigest()
            if not digest.startswith(hash_prefix):
                raise HubError(f'invalid hash value (expected "{hash_prefix}", got "{digest}")')
            source.seek(0)
        shutil.copyfileobj(source, target)


def load_state_dict_from_url(
    url: str, model_dir: str | None = None, map_location: Any = None, progress: bool = True,
    check_hash: bool = False, file_name: str | None = None, weights_only: bool = False,
) -> Any:  # fmt: skip
    """``torch.load`` of the file in `model_dir` (default: ``get_dir()/checkpoints``) that has the
    address's name; where there is none, and the address is a ``file://``, it is copied there first.

    See https://docs.pytorch.org/docs/stable/hub.html#torch.hub.load_state_dict_from_url.
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    name = file_name or os.path.basename(urlparse(url).path)
    place = os.path.join(folder, name)
    if not os.path.exists(place):
        prefix = HASH_REGEX.search(name) if check_hash else None
        os.makedirs(folder, exist_ok=True)
        download_url_to_file(url, place, prefix[1] if prefix else None, progress)
    return read(place, map_location=map_location, weights_only=weights_only)


explain_missing("torch.hub", globals())
