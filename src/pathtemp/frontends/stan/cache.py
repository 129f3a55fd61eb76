"""The build cache: one folder per compiled thing, named by its content, put in place by one rename."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
            about = json.loads(meta.read_text(encoding="utf-8"))
            kind, _, key = meta.parent.name.partition("-")
            size = sum(file.stat().st_size for file in meta.parent.iterdir())
            entries.append(CacheEntry(kind, about["name"], key, size, about["created"]))
    return sorted(entries, key=lambda entry: -entry.created)


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

    def open_workshop(self) -> None:
        """An empty workshop, whatever an interrupted build left in it."""
        self.discard()
        self.workshop.mkdir(parents=True)

    def publish(self, name: str) -> None:
        """Keep the built file and drop the rest of the workshop; readers see all of it or nothing."""
        for other in self.workshop.iterdir():
            if other.name != self.file:
                other.unlink()
        about = {"name": name, "created": time.time()}
        (self.workshop / _META).write_text(json.dumps(about), encoding="utf-8")
        shutil.rmtree(self.folder, ignore_errors=True)  # a damaged entry; a whole one is never built again
        os.replace(self.workshop, self.folder)

    def discard(self) -> None:
        """Remove the workshop."""
        shutil.rmtree(self.workshop, ignore_errors=True)


@contextlib.contextmanager
def locked(slot: Slot) -> Iterator[None]:
    """Hold the right to build a slot; the system gives it up when the process ends, however it ends."""
    import fcntl

    folder = cache_folder() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{slot.kind}-{slot.key}").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
