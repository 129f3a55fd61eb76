"""Text of others made fit for a terminal."""

from __future__ import annotations


def printable(name: str) -> str:
    r"""A text without control characters and marks of direction, which would otherwise reach the terminal.

    >>> printable("theta[0]"), printable("a\x1b[31m"), printable("\u202egnp.exe")
    ('theta[0]', 'a\\x1b[31m', '\\u202egnp.exe')
    """
    return name if name.isprintable() else repr(name)[1:-1]


def printable_lines(text: str) -> str:
    r"""The same for a text of several lines, which it keeps.

    >>> printable_lines("a\nb\x07")
    'a\nb\\x07'
    """
    return "\n".join(printable(line) for line in text.split("\n"))
