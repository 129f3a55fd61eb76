"""Files that appear whole or not at all, and where they can be."""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path

from pathtemp.errors import InputError
from pathtemp.io.printable import printable


def new_file(caller: str, path: str | os.PathLike[str]) -> Path:
    """The place of a file that is to be written, through links; InputError where there can be none."""
    if path == "":
        raise InputError(f"{caller}: the name of the file is empty")
    try:
        place = Path(os.path.realpath(path))
        os.fsencode(place)
        folder, taken = place.parent.is_dir(), place.is_dir()
    except (TypeError, ValueError, OSError) as error:
        reason = printable(str(error))[:60]
        raise InputError(f"{caller}: {printable(str(path))[:60]!r} is no name of a file ({reason})") from None
    if not folder:
        raise InputError(f"{caller}: there is no folder {printable(str(place.parent))}; make it first")
    if taken:
        raise InputError(f"{caller}: {printable(str(place))} is a folder; give the name of a file in it")
    if place.exists() and not place.is_file():
        raise InputError(f"{caller}: {printable(str(place))} is a device or a pipe; give the name of a file")
    return place


def write_whole(place: Path, content: bytes | memoryview, *, before: Path | None = None) -> None:
    """Write beside ``place``, sync, then move there; what was there is kept as ``before``, where that is given.

    At every moment ``place`` holds the old content or the new one, whatever is killed and however full the disk is.

    Raises
    ------
    OSError
        Where it cannot be written; ``place`` is then as it was.
    """
    beside = place.with_name(f".pathtemp-{uuid.uuid4().hex}.tmp")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if before is not None and place.exists():
            _keep(place, before)
        os.replace(beside, place)
    finally:
        beside.unlink(missing_ok=True)
    _sync_folder(place.parent)


def write_new(caller: str, place: Path, content: bytes) -> None:
    """Write what a user asked ``caller`` for; OSError with a sentence where it cannot be written."""
    try:
        write_whole(place, content)
    except OSError as error:
        shown = printable(str(place))
        reason = f"{caller}: could not write {shown}, which is as it was before ({error.strerror or error})"
        raise OSError(error.errno, reason) from error


def _keep(place: Path, before: Path) -> None:
    """Give the file a second name, in place of what had it; where the system has no links, its only name."""
    link = before.with_name(f".pathtemp-{uuid.uuid4().hex}.tmp")
    try:
        os.link(place, link)
        os.replace(link, before)
    except OSError:
        os.replace(place, before)
    finally:
        link.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make the move itself last through a power cut, where the system can sync a folder (not all can)."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
