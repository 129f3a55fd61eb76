"""A checkpoint belongs to one run at a time: whoever writes it holds a lock beside it, with the owner's name in it.

The system gives the lock up when the owner ends, however it ends; what is then left is a file that names the owner.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pathtemp.errors import InputError
from pathtemp.io.printable import printable

log = logging.getLogger("pathtemp.checkpoint")

_guard = threading.Lock()
_busy: set[Path] = set()
"""Checkpoints that runs of this process are writing."""

_new: set[Path] = set()
"""Checkpoints that were not there when their run was asked for."""

_left: dict[Path, tuple[int, int]] = {}
"""The files that runs of this process left when they last stopped, by inode and time."""

ABSENT = (0, 0)

CANNOT_WRITE = (errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOENT)
"""Reasons for which there is no lock where no checkpoint can be written either."""


def lock_of(place: Path) -> Path:
    """The lock of a checkpoint.

    >>> lock_of(Path("run.nc")).name
    'run.nc.lock'
    """
    return place.with_name(f"{place.name}.lock")


def expect_new(place: Path) -> None:
    """Say that a run is about to begin whose checkpoint is not there yet; InputError where another one has begun."""
    with working(place):
        pass
    _new.add(place)


def take_as_it_is(place: Path) -> None:
    """Say that a run goes on from what is in a file now, whoever wrote it."""
    _new.discard(place)
    _left.pop(place, None)


@contextmanager
def working(place: Path | None) -> Iterator[None]:
    """Hold the lock of a checkpoint; InputError where another run holds it, or has written the file meanwhile."""
    if place is None:
        yield
        return
    with _guard:
        if place in _busy:
            raise InputError(f"checkpoint: {printable(str(place))} is being written by another run of this process")
        _busy.add(place)
    try:
        descriptor = _acquire(place)
        try:
            _check_unchanged(place)
            try:
                yield
            finally:
                _left[place] = _signature(place)
        finally:
            _release(place, descriptor)
    finally:
        _busy.discard(place)


def _check_unchanged(place: Path) -> None:
    known, now = ABSENT if place in _new else _left.get(place), _signature(place)
    _new.discard(place)
    if known is not None and now not in (known, ABSENT):
        raise InputError(
            f"checkpoint: {printable(str(place))} was written by another run in the meantime; go on with that one by "
            "pt.resume, or give another file"
        )


def _signature(place: Path) -> tuple[int, int]:
    try:
        about = place.stat()
    except OSError:
        return ABSENT
    return (about.st_ino, about.st_mtime_ns)


def _acquire(place: Path) -> int | None:
    """The descriptor of the lock; None where the folder cannot be written to, so that there is nothing to protect."""
    path = lock_of(place)
    while True:
        try:
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
            descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            if error.errno in CANNOT_WRITE:
                return None
            raise InputError(
                f"checkpoint: its lock {printable(str(path))} is no file that can be opened ({error.strerror})"
            ) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise InputError(f"checkpoint: its lock {printable(str(path))} is no ordinary file; remove it")
        if not _locked(descriptor):
            owner = _owner(descriptor)
            os.close(descriptor)
            raise InputError(
                f"checkpoint: {printable(str(place))} is being written by {owner}; wait for it, or give another file"
            )
        if _is_there(descriptor, path):
            break
        os.close(descriptor)  # its owner removed it as we opened it
    if os.fstat(descriptor).st_size:
        log.warning(
            "checkpoint: %s was left by %s, which ended without closing it; this run takes it over",
            printable(str(place)),
            _owner(descriptor),
        )
        os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, json.dumps({"process": os.getpid(), "host": socket.gethostname()}).encode())
    return descriptor


def _release(place: Path, descriptor: int | None) -> None:
    if descriptor is not None:
        lock_of(place).unlink(missing_ok=True)
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    """Whether the lock is ours now; where the system has none, whether its owner is gone."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (OSError, ImportError):
        return not _alive(_record(descriptor))
    return True


def _alive(record: dict[str, Any]) -> bool:
    """Whether a lock's owner may still run: always, on another host or where nobody can ask."""
    process = record.get("process")
    if not isinstance(process, int) or process <= 0:
        return False
    if record.get("host") != socket.gethostname() or os.name == "nt":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _is_there(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def _record(descriptor: int) -> dict[str, Any]:
    os.lseek(descriptor, 0, os.SEEK_SET)
    try:
        record = json.loads(os.read(descriptor, 1000))
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _owner(descriptor: int) -> str:
    record = _record(descriptor)
    if not record:
        return "another process"
    process, host = (printable(str(record.get(name, "unknown")))[:100] for name in ("process", "host"))
    return f"process {process} on {host}"
