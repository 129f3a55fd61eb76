"""Messages of the library in the words of the command line."""

from __future__ import annotations

import re

_OPTION = re.compile(r"\b(base|budget|chains|checkpoint|data|draws|max_seconds|modes|seed)=(?=(\S)?)")
_SUBJECT = re.compile(r"^(base|budget|chains|checkpoint|data|draws|max_seconds|modes|seed): ")
_WAYS = (
    ("fit.extend, or pt.resume on its checkpoint", "--resume and its --checkpoint"),
    ("go on with fit.extend", "run it again with --checkpoint, and --resume goes on"),
    ("go on with it by pt.resume", "go on with it by --resume"),
    ("pt.resume", "--resume"),
    ("include_paths: ", "--include: "),
    ("pt.load opens it", "pathtemp report shows it"),
)


def as_options(text: str) -> str:
    """A message with options for arguments, and ``--resume`` for ``pt.resume``.

    >>> as_options("give base= if there may be one, or budget=30000")
    'give --base if there may be one, or --budget 30000'
    >>> as_options("budget: 5 gradient equivalents are too few")
    '--budget: 5 gradient equivalents are too few'
    >>> as_options("the run was interrupted; go on with fit.extend, or pt.resume on its checkpoint.")
    'the run was interrupted; go on with --resume and its --checkpoint.'
    """
    text = _SUBJECT.sub(lambda m: f"--{m[1].replace('_', '-')}: ", text)
    for ours, theirs in _WAYS:
        text = text.replace(ours, theirs)
    return _OPTION.sub(lambda m: f"--{m[1]}{' ' if (m[2] or '').isalnum() or m[2] == chr(34) else ''}", text)
