"""The learner's work, as plain .py files in a folder they chose. Nothing of it is ever lost.

A file is written whole or not at all: into a new file beside it, which then takes its place. What
somebody else wrote meanwhile (an editor, another lab) is never overwritten unasked. Where a file
cannot be written, the text stays as it is, and the error says why.
"""

from __future__ import annotations

import errno
import re
import tempfile
from pathlib import Path

from antorcha.core.files import write_whole

NAME = re.compile(r"\w[\w -]{0,80}\.py")  # a file of the folder's own: no way out of it

# errno -> the word (of antorcha.lab.words) that says what happened
_KINDS = {
    errno.ENOSPC: "full",
    errno.EDQUOT: "full",
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.EROFS: "denied",
    errno.ENOENT: "gone",
    errno.ENOTDIR: "gone",
    errno.EEXIST: "gone",  # a file stands in the folder's place
}


class FileProblem(Exception):
    """A file cannot be read or written; or was changed by somebody else.

    `kind` is full, denied, gone, changed, unreadable or other; `detail` the system's own words.
    """

    def __init__(self, kind: str, path: Path, detail: str = "") -> None:
        super().__init__(f"{path}: {detail or kind}")
        self.kind = kind
        self.path = path
        self.detail = detail

    @classmethod
    def of(cls, error: OSError, path: Path) -> FileProblem:
        """The problem that an OSError speaks of."""
        return cls(_KINDS.get(error.errno or 0, "other"), path, error.strerror or str(error))


class WorkFile:
    """One file and its text in the editor.

    Args:
        path: where it is, or will be.
        start: its text while there is no file.
    """

    def __init__(self, path: Path, start: str = "") -> None:
        self.path = path
        self.start = start
        self._saved: str | None = None  # what it holds as far as we know; None: there is none
        self._ends = "\n"  # how its lines end
        self.text = start
        self.load()

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def is_saved(self) -> bool:
        """Does the file hold the text? (An untouched beginning needs no file.)"""
        return self.text == (self.start if self._saved is None else self._saved)

    def load(self) -> None:
        """Take the file's text, if there is a file. Raises FileProblem if it cannot be read."""
        saved = self._read()
        self._saved = saved
        self.text = self.start if saved is None else saved

    def save(self, *, anyway: bool = False) -> None:
        """Write the text, if the file does not hold it yet.

        Raises FileProblem, of kind ``changed`` if somebody else wrote the file since we last read
        or wrote it; `anyway` overwrites what they wrote.
        """
        if self.is_saved and not anyway:
            return
        if not anyway and self._read() not in (self._saved, self.text):
            raise FileProblem("changed", self.path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.path, self.text.replace("\n", self._ends))
        except OSError as error:
            raise FileProblem.of(error, self.path) from error
        self._saved = self.text

    def begin_with(self, start: str) -> None:
        """Let another text be the beginning; it is taken if nobody has written anything yet."""
        if self._saved is None and self.text == self.start:
            self.text = start
        self.start = start

    def aside(self) -> list[Path]:
        """The files beside it in which earlier texts were kept: ``mine_1.py``, ``mine_2.py``."""
        named = re.compile(re.escape(self.path.stem) + r"_(\d{1,4})\.py")
        try:
            found = [(named.fullmatch(path.name), path) for path in self.path.parent.iterdir()]
        except OSError:
            return []
        return [path for _, path in sorted([(int(m[1]), path) for m, path in found if m])]

    def put_aside(self, new: str) -> str:
        """Keep the text in a file of its own, before `new` takes its place. Returns that file's
        name; "" if the text is kept already, or is nothing of the learner's. Raises FileProblem."""
        if self.text.strip() in ("", self.start.strip(), new.strip()):
            return ""
        kept = self.aside()
        for path in kept:
            try:
                if path.read_text(encoding="utf-8") == self.text:
                    return path.name
            except (OSError, UnicodeDecodeError):
                continue
        number = int(kept[-1].stem.rpartition("_")[2]) + 1 if kept else 1
        path = self.path.with_name(f"{self.path.stem}_{number}.py")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, self.text)
        except OSError as error:
            raise FileProblem.of(error, path) from error
        return path.name

    def move(self, folder: Path) -> None:
        """Go on in another folder; a file of this name that is there is not overwritten unasked."""
        self.path = folder / self.name
        self._saved = None

    def _read(self) -> str | None:
        try:
            with open(self.path, encoding="utf-8", newline="") as file:
                text = file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except UnicodeDecodeError as error:
            raise FileProblem("unreadable", self.path, "it is not UTF-8 text") from error
        except OSError as error:
            raise FileProblem.of(error, self.path) from error
        self._ends = "\r\n" if "\r\n" in text else "\n"
        return text.replace("\r\n", "\n")


def programs(folder: Path) -> list[str]:
    """The names of the programs in a folder, sorted; none if it cannot be read."""
    try:
        return sorted(p.name for p in folder.iterdir() if NAME.fullmatch(p.name) and p.is_file())
    except OSError:
        return []


def find_problem(folder: Path) -> FileProblem | None:
    """Can work be saved in `folder`? It is made if it is not there; nothing is left in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"antorcha")
    except OSError as error:
        return FileProblem.of(error, folder)
    return None
