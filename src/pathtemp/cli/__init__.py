"""The command line: ``pathtemp run | report | compile | augment | demo | cache | doctor``.

Options and words are here; what a command does is in ``api/``.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from pathtemp.cli.importing import INTERRUPTED, NOTHING, importing

FAILED = 1
"""Exit status where something the user gave cannot work."""

NOT_CONVERGED = 3
"""Exit status of a run that finished but did not converge."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status is 0, 1 for an error, 2 for wrong options, 3 for a run not converged."""
    with importing():
        from pathtemp.api.environment import check_docstrings
        from pathtemp.cli.parser import make_parser
        from pathtemp.cli.words import as_options
        from pathtemp.errors import InputError, MissingExtraError, SamplingError
        from pathtemp.io.printable import printable_lines

    options = make_parser().parse_args(arguments)
    logging.basicConfig(format="%(message)s")
    try:
        check_docstrings()
        with warnings.catch_warnings():
            warnings.showwarning = _show
            status: int = options.command(options)
    except (InputError, MissingExtraError, SamplingError, OSError) as error:
        print(printable_lines(f"pathtemp: {as_options(_said(error))}"), file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print(f"pathtemp: {_interrupted(options)}", file=sys.stderr)
        return INTERRUPTED
    return status


def _interrupted(options: Any) -> str:
    """What is left of a run that Ctrl-C ended at once."""
    place = getattr(options, "checkpoint", None)
    if place is not None and place.exists():
        return "interrupted; run it again with --resume and the same --checkpoint to go on from its last round"
    return NOTHING


def _said(error: Exception) -> str:
    """An error in words: of the system's, what happened and to which file, without its number."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"


def _show(message: Any, *_: Any, **__: Any) -> None:
    """A warning as one sentence, without the line of code that gave it."""
    from pathtemp.cli.words import as_options
    from pathtemp.io.printable import printable_lines

    print(printable_lines(f"pathtemp: {as_options(str(message))}"), file=sys.stderr)
