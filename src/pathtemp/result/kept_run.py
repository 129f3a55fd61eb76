"""A run that went into a file or a pickle with its fit, and goes on once it has its model again."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import xarray as xr

if TYPE_CHECKING:
    from pathtemp.result.fit import Continuing, Fit


@dataclass(frozen=True, repr=False)
class KeptRun:
    """The state of a run after its last round, as a checkpoint holds it.

    Parameters
    ----------
    content
        The bytes of a checkpoint.
    """

    content: bytes

    def __repr__(self) -> str:
        return f"<KeptRun: {len(self.content):,} bytes>"

    def with_model(self, model: Any) -> Continuing:
        """The run with its model, ready to be extended; None where the content holds a Stan program."""
        # Imported here: a fit that nobody extends needs no engine.
        from pathtemp.api.resume import brought_back

        return brought_back(self.content, model)

    def extend(self, *, draws: int | None, budget: float | None) -> Fit:
        """Extend a run whose content holds its model."""
        return self.with_model(None).extend(draws=draws, budget=budget)


def content_of(continuation: Any) -> bytes | None:
    """The bytes from which a run goes on; None where it cannot."""
    if continuation is None or isinstance(continuation, KeptRun):
        return None if continuation is None else continuation.content
    from pathtemp.io.checkpoint import packed

    return packed(continuation.record())


def kept_state(fit: Fit) -> dict[str, Any]:
    """All fields of a fit but its model, as plain values and arrays, the run under way as bytes."""
    state = {f.name: getattr(fit, f.name) for f in fields(fit) if f.name not in ("model", "continuation")}
    # A Dataset that was read from a file may hold on to it.
    state = {name: x.load() if isinstance(x, xr.Dataset) else x for name, x in state.items()}
    return state | {"continuation": content_of(fit.continuation)}


def unpickled(cls: type[Fit], state: dict[str, Any]) -> Fit:
    """The fit of a state that :func:`kept_state` gave."""
    content = state["continuation"]
    return cls(**(state | {"continuation": None if content is None else KeptRun(content)}))
