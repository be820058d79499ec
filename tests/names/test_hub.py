"""``torch.hub``: folders, the cache, ``file://`` addresses; nothing is downloaded."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import antorcha as torch
from antorcha import hub

HUBCONF = '''
dependencies = ["antorcha"]
from helper import double

def model(n, *, bias=True):
    """A layer."""
    return double(n), bias

def _hidden(): ...
'''


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    before = hub._hub_dir
    hub.set_dir(tmp_path / "hub")
    yield tmp_path / "hub"
    hub._hub_dir = before


def repository(folder: Path) -> str:
    folder.mkdir(parents=True)
    (folder / "hubconf.py").write_text(HUBCONF)
    (folder / "helper.py").write_text("def double(n): return 2 * n\n")
    return str(folder)


def test_functions_of_a_folder(tmp_path: Path, cache: Path) -> None:
    folder = repository(tmp_path / "repo")
    assert hub.load(folder, "model", 3, source="local", bias=False) == (6, False)
    assert hub.help(folder, "model") == "A layer."
    assert "model" in hub.list(folder)
    assert "_hidden" not in hub.list(folder)
    with pytest.raises(RuntimeError, match="Cannot find callable nothing in hubconf"):
        hub.load(folder, "nothing", source="local")
    with pytest.raises(ValueError, match="Unknown source"):
        hub.load(folder, "model", source="disk")
    Path(folder, "hubconf.py").write_text(HUBCONF.replace('["antorcha"]', '["no_such_module"]'))
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_module"):
        hub.load(folder, "model", 1, source="local")


def test_repositories_in_the_cache(cache: Path) -> None:
    repository(cache / "owner_name_main")
    assert hub.load("owner/name", "model", 1) == (2, True)
    with pytest.raises(NotImplementedError, match="antorcha downloads nothing"):
        hub.load("owner/name:v2", "model", 1)


def test_files_of_weights(tmp_path: Path, cache: Path) -> None:
    place = tmp_path / "weights.pt"
    torch.save({"w": torch.ones(2)}, place)
    digest = hashlib.sha256(place.read_bytes()).hexdigest()
    named = place.rename(tmp_path / f"weights-{digest[:8]}.pt")
    state = hub.load_state_dict_from_url(named.as_uri(), check_hash=True)
    assert state["w"].tolist() == [1.0, 1.0]
    assert (cache / "checkpoints" / named.name).exists()
    assert hub.load_state_dict_from_url(f"https://example.invalid/{named.name}")["w"].sum() == 2
    with pytest.raises(NotImplementedError, match="antorcha downloads nothing"):
        hub.load_state_dict_from_url("https://example.invalid/other.pt")
    target = tmp_path / "copy.pt"
    with pytest.raises(RuntimeError, match="invalid hash value"):
        hub.download_url_to_file(named.as_uri(), str(target), hash_prefix="00")
    assert not target.exists()
