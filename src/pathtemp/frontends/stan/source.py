"""The text of a Stan program with its includes in place, and where each of its lines came from."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathtemp.errors import InputError
from pathtemp.io.printable import printable

GENERATED = "program.stan"
"""The file name that stanc puts into its messages; :meth:`Source.translate` turns it into the user's own."""

UNNAMED = "the Stan program"
"""What messages call a program that was given as text."""

_INCLUDE = re.compile(r'#include[ \t]+(?:<([^>\n]+)>|"([^"\n]+)"|([^\s<"][^\s]*))[ \t]*')
_INTERNAL = re.compile(r"\bpathtemp_model_namespace::\w+: ")
_LOCATION = re.compile(rf"(?:file )?['\"]?{re.escape(GENERATED)}['\"]?, line (\d+)")


@dataclass(frozen=True)
class Place:
    """A line of a file of the user, counted from one."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}"


@dataclass(frozen=True)
class Source:
    """Program text whose every line knows its origin.

    Parameters
    ----------
    text
        Stan code without ``#include``.
    places
        Origin of each line of ``text``; None for a line that pathtemp wrote.
    """

    text: str
    places: tuple[Place | None, ...]

    def place(self, line: int) -> Place | None:
        """Origin of a line of the text, counted from one."""
        return self.places[line - 1] if 1 <= line <= len(self.places) else None

    def place_at(self, offset: int) -> Place | None:
        """Origin of the line that holds the character at ``offset``."""
        return self.place(self.text.count("\n", 0, offset) + 1)

    def line(self, line: int) -> str:
        """Text of one line, counted from one."""
        return self.text.split("\n")[line - 1]

    def translate(self, message: str) -> str:
        """A message of stanc or of the compiled program, with the user's file and line in place of ours.

        >>> source = Source("parameters { real x; }", (Place("my.stan", 7),))
        >>> source.translate("Exception: x is 3 (in 'program.stan', line 1, column 2 to column 5)")
        "Exception: x is 3 (in 'my.stan', line 7, column 2 to column 5)"
        >>> source.translate("Exception: pathtemp_model_namespace::pathtemp_model: s is -1")
        'Exception: s is -1'
        """

        def replace(match: re.Match[str]) -> str:
            place = self.place(int(match.group(1)))
            return "code that pathtemp added" if place is None else f"'{place.file}', line {place.line}"

        return _LOCATION.sub(replace, _INTERNAL.sub("", message))


def _hidden(text: str, name: str) -> Iterator[tuple[int, int, bool]]:
    """Spans of the comments and strings, with whether it is a comment."""
    at, end = 0, len(text)
    while at < end:
        comment = True
        if text.startswith("//", at):
            stop = text.find("\n", at)
            stop = end if stop < 0 else stop
        elif text.startswith("/*", at):
            stop = text.find("*/", at + 2) + 2
            if stop < 2:
                raise InputError(f"{Place(name, text.count(chr(10), 0, at) + 1)}: this /* comment is never closed")
        elif text[at] == '"':
            comment = False
            stop = text.find('"', at + 1) + 1  # Stan strings know no escapes
            if stop < 1 or "\n" in text[at:stop]:
                raise InputError(f"{Place(name, text.count(chr(10), 0, at) + 1)}: this string is never closed")
        else:
            at += 1
            continue
        yield at, stop, comment
        at = stop


def code_mask(text: str, name: str = UNNAMED) -> bytearray:
    """One byte a character: 1 where it is code, 0 inside comments and strings.

    >>> list(code_mask('x; // y'))
    [1, 1, 1, 0, 0, 0, 0]
    """
    mask = bytearray(b"\1" * len(text))
    for start, stop, _ in _hidden(text, name):
        mask[start:stop] = bytes(stop - start)
    return mask


def without_comments(text: str) -> str:
    """The text with comments blanked; strings, newlines and positions are kept.

    >>> without_comments('print("// a"); // b')
    'print("// a");     '
    """
    for start, stop, comment in _hidden(text, UNNAMED):
        if comment:
            text = text[:start] + blank(text[start:stop]) + text[stop:]
    return text


def blank(text: str) -> str:
    """As many spaces, newlines kept.

    >>> blank("ab")
    '  '
    """
    return re.sub(r"[^\n]", " ", text)


def masked(text: str) -> str:
    """The text with comments and strings blanked, newlines and positions kept.

    >>> masked('a /* } */ b "{" c')
    'a         b     c'
    """
    mask = code_mask(text)
    return "".join(c if code or c == "\n" else " " for c, code in zip(text, mask, strict=True))


def read_source(program: str | os.PathLike[str], include_paths: Sequence[str | os.PathLike[str]] = ()) -> Source:
    """Read a program given as a path or as text, includes put in place.

    Includes are looked for beside the file that asks for them, then in ``include_paths``, then in the working
    directory.

    >>> read_source("parameters { real x; }").place(1)
    Place(file='the Stan program', line=1)
    """
    for folder in include_paths:
        if not os.path.isdir(folder):
            raise InputError(f"include_paths: there is no folder {printable(str(folder))!r}")
    path = program_path(program)
    if path is None:
        return _flatten(str(program), UNNAMED, None, tuple(map(Path, include_paths)), ())
    return _flatten(_text(path), path.name, path.parent, tuple(map(Path, include_paths)), (path.resolve(),))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"program: {str(path)!r} is not a text file in UTF-8") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"program: cannot read {str(path)!r} ({reason})") from None


def program_path(program: str | os.PathLike[str]) -> Path | None:
    """The path of a program, or None where the program itself was given: text with a brace or a newline."""
    if isinstance(program, str) and re.search(r"[{}\n]", program):
        return None
    return Path(program)


def _flatten(
    text: str, name: str, folder: Path | None, include_paths: tuple[Path, ...], open_files: tuple[Path, ...]
) -> Source:
    text = text.replace("\r\n", "\n")
    mask = code_mask(text, name)
    rows: list[str] = []
    places: list[Place | None] = []
    start = 0
    for number, row in enumerate(text.split("\n"), start=1):
        here = Place(name, number)
        match = next((m for m in _INCLUDE.finditer(row) if mask[start + m.start()]), None)
        start += len(row) + 1
        if match is None:
            rows.append(row)
            places.append(here)
            continue
        found = _find_include(next(group for group in match.groups() if group), folder, include_paths, here)
        if found.resolve() in open_files:
            raise InputError(f"{here}: #include {found.name!r} includes itself")
        inner = _flatten(_text(found), found.name, found.parent, include_paths, (*open_files, found.resolve()))
        # what stands before and after on the same line gets a line of its own, at the column where it stood
        rows += [row[: match.start()], inner.text, " " * match.end() + row[match.end() :]]
        places += [here, *inner.places, here]
    return Source("\n".join(rows), tuple(places))


def _find_include(wanted: str, folder: Path | None, include_paths: tuple[Path, ...], here: Place) -> Path:
    folders = [*([folder] if folder else []), *include_paths, Path.cwd()]
    for candidate in folders:
        if (candidate / wanted).is_file():
            return candidate / wanted
    searched = ", ".join(repr(str(folder)) for folder in dict.fromkeys(folders))
    raise InputError(f"{here}: #include {wanted!r} was not found in {searched}")
