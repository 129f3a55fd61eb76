"""The build cache: one folder per compiled thing, named by its content, put in place by one rename."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pathtemp.errors import InputError
from pathtemp.io.printable import printable
from pathtemp.io.private import is_ours, open_own, private_folder

_BUILDING = "building-"
_META = "entry.json"


def cache_folder() -> Path:
    """Folder of compiled Stan programs: below ``PATHTEMP_CACHE``, or else in the platform's cache folder."""
    own = os.environ.get("PATHTEMP_CACHE")
    if own:
        return Path(own).expanduser().absolute() / "stan"
    if sys.platform == "darwin":
        root = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "pathtemp" / "stan"


@dataclass(frozen=True)
class CacheEntry:
    """One compiled thing.

    Parameters
    ----------
    kind
        "program" (a Stan program), "shim" (what each is linked with), "headers" (what each is compiled with) or
        "bridge" (what XLA calls).
    name
        File name of the program it was built for.
    key
        Hash of all that went in: source, flags, compiler and versions.
    bytes
        Size on disk.
    created
        Seconds since 1970.
    """

    kind: str
    name: str
    key: str
    bytes: int
    created: float


def cache_info() -> list[CacheEntry]:
    """What the cache holds, newest first.

    >>> all(entry.bytes > 0 for entry in cache_info())
    True
    """
    entries = []
    for meta in cache_folder().glob(f"*/{_META}"):
        if not meta.parent.name.startswith(_BUILDING):
            about = _about(meta)
            kind, _, key = meta.parent.name.partition("-")
            size = sum(file.stat().st_size for file in meta.parent.iterdir())
            name, created = about.get("name", "(damaged)"), about.get("created", 0.0)
            entries.append(CacheEntry(kind, printable(str(name)), key, size, float(created)))
    return sorted(entries, key=lambda entry: -entry.created)


def _about(meta: Path) -> dict[str, Any]:
    """What is known of an entry; nothing where that is damaged, or not ours."""
    try:
        with open(open_own(meta), "rb") as file:
            about = json.loads(file.read(100_000))
        float(about.get("created", 0.0))
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
    return dict(about)


def clear_cache() -> int:
    """Remove all compiled Stan programs; returns the bytes set free. Programs already loaded keep working."""
    folder = cache_folder()
    if not folder.exists():
        return 0
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    shutil.rmtree(folder)
    return size


@dataclass(frozen=True)
class Slot:
    """A place in the cache: ``kind-key/file``."""

    kind: str
    key: str
    file: str

    @property
    def folder(self) -> Path:
        """Folder of the finished thing."""
        return cache_folder() / f"{self.kind}-{self.key}"

    @property
    def path(self) -> Path:
        """The finished file."""
        return self.folder / self.file

    @property
    def workshop(self) -> Path:
        """Folder in which it is built; whoever holds the lock owns it."""
        return cache_folder() / f"{_BUILDING}{self.kind}-{self.key}"

    def whole(self) -> bool:
        """Whether the finished file is there, is ours, and is to the last bit what was built."""
        try:
            about = self.folder.lstat()
            if not stat.S_ISDIR(about.st_mode) or not is_ours(about):
                return False
            known = _about(self.folder / _META)
            return known.get("key") == self.key and known.get("sha256") == _digest(self.path)
        except OSError:
            return False

    def open_workshop(self) -> None:
        """An empty workshop, whatever an interrupted build left in it."""
        private_folder(cache_folder())
        self.discard()
        self.workshop.mkdir(mode=0o700)

    def publish(self, name: str) -> None:
        """Keep the built file and drop the rest of the workshop; readers see all of it or nothing."""
        for other in self.workshop.iterdir():
            if other.name != self.file:
                other.unlink()
        about = {"name": name, "created": time.time(), "key": self.key, "sha256": _digest(self.workshop / self.file)}
        (self.workshop / _META).write_text(json.dumps(about), encoding="utf-8")
        _remove(self.folder)  # a damaged entry; a whole one is never built again
        os.replace(self.workshop, self.folder)

    def discard(self) -> None:
        """Remove the workshop."""
        _remove(self.workshop)


def _remove(thing: Path) -> None:
    """Remove a folder, or whatever is in its place; a link, not what it leads to."""
    if thing.is_symlink() or thing.is_file():
        thing.unlink(missing_ok=True)
    shutil.rmtree(thing, ignore_errors=True)


def _digest(path: Path) -> str:
    with open(open_own(path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def locked(slot: Slot) -> Iterator[None]:
    """Hold the right to build a slot; the system gives it up when the process ends, however it ends."""
    import fcntl

    private_folder(cache_folder())
    place = private_folder(cache_folder() / "locks") / f"{slot.kind}-{slot.key}"
    try:
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise InputError(f"cache: the lock {place} cannot be used ({error.strerror}); remove it") from error
    with open(descriptor, "rb") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
