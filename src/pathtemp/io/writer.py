"""The checkpoint of a run, written between its rounds."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from pathtemp.io.checkpoint import write
from pathtemp.io.found_base import kept_base
from pathtemp.io.lock import working
from pathtemp.model.model import Model
from pathtemp.result.fit import library_versions


class Writer:
    """Writes the state of a run to its file; a :data:`pathtemp.engines.driver.Keep`.

    Parameters
    ----------
    place
        The file.
    plan
        What the run was asked to do.
    model
        The user's model.
    """

    def __init__(self, place: Path, plan: Any, model: Model) -> None:
        self._place, self._plan = place, plan
        self._model = known_of(model)
        self._failed = False

    def held(self) -> AbstractContextManager[None]:
        """Hold the file, so that no other run writes it."""
        return working(self._place)

    def __call__(self, state: Mapping[str, Any]) -> None:
        """Write the state between two rounds."""
        try:
            write(self._place, {"plan": self._plan, "model": self._model, "state": state})
        except OSError as error:
            # The run is worth more than its checkpoint: it goes on, and tries again after the next round.
            if not self._failed:
                reason = error.strerror or str(error)
                warnings.warn(
                    f"checkpoint: {self._place} could not be written ({reason}) and is as it was before; the run goes "
                    "on",
                    stacklevel=2,
                )
            self._failed = True
        else:
            self._failed = False


def known_of(model: Model) -> dict[str, Any]:
    """What a file keeps of a model."""
    known = {"name": model.name, "dim": model.dim, "versions": library_versions(), "recipe": model.recipe}
    return known | kept_base(model)
