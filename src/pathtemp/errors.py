"""The errors pathtemp raises, each one clear sentence."""

from __future__ import annotations


class InputError(ValueError):
    """Something the user gave cannot work; the message names the argument and says what to do."""


class SamplingError(RuntimeError):
    """A run cannot go on; the message says what was met, where, and what to do."""


class MissingExtraError(ImportError):
    """An optional dependency is needed; the message says what to install."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; run: pip install 'pathtemp[{extra}]'")
