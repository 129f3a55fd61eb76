"""Folders and files that belong to the user alone, for what is run later: nobody else may put anything there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pathtemp.errors import InputError
from pathtemp.io.printable import printable

ADVICE = "set PATHTEMP_CACHE to a folder of your own"


def private_folder(folder: Path) -> Path:
    """The folder, made where it is missing, that only its owner reads and writes; InputError where it cannot be.

    A folder of another user is never used. One of ours that others may write to is closed to them.
    """
    shown = printable(str(folder))
    try:
        _make(folder)
        about = folder.stat()
        if not stat.S_ISDIR(about.st_mode):
            raise NotADirectoryError(20, "Not a directory")
        if not is_ours(about):
            raise InputError(f"cache: the folder {shown} belongs to another user (uid {about.st_uid}); {ADVICE}")
        if os.name == "posix" and about.st_mode & 0o077:
            folder.chmod(0o700)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cache: the folder {shown} cannot be used ({reason}); {ADVICE}") from error
    return folder


def _make(folder: Path) -> None:
    """Make a folder and those above it, for their owner alone whatever the umask is."""
    if not folder.parent.is_dir():
        _make(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def is_ours(about: os.stat_result) -> bool:
    """Whether a file belongs to who runs this process."""
    return not hasattr(os, "geteuid") or about.st_uid == os.geteuid()


def open_own(path: Path) -> int:
    """The descriptor of an ordinary file of ours, read through no link; OSError for any other."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    about = os.fstat(descriptor)
    if not (stat.S_ISREG(about.st_mode) and is_ours(about)):
        os.close(descriptor)
        raise PermissionError(1, "not an ordinary file of this user", str(path))
    return descriptor
