"""Small runs whose checkpoints are kept after every round."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import pathtemp as pt
from pathtemp.io import writer
from pathtemp.model.model import Model
from pathtemp.model.model import model as join
from pathtemp.settings import Settings

SMALL = Settings(chains=8, iterations=8, anneal_moves=2)


def two_modes() -> Model:
    centres = jnp.array([[-6.0, -6.0], [6.0, 5.0]])

    def target(x: Any) -> Any:
        return jnp.logaddexp(*(-2.0 * jnp.sum((x - c) ** 2) for c in centres))

    return join(target, pt.normal(0.0, 6.0, shape=(2,)), name="two modes")


def run_keeping(
    model: Model, folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> tuple[pt.Fit, list[Path]]:
    """A fit, and copies of the checkpoint as it was after each round."""
    copies: list[Path] = []
    write = writer.write

    def and_copy(place: Path, record: Any) -> None:
        write(place, record)
        copies.append(folder / f"after-{len(copies)}.nc")
        shutil.copy(place, copies[-1])

    with monkeypatch.context() as patch:
        patch.setattr(writer, "write", and_copy)
        place = folder / "run.nc"
        fit = pt.temper(model, progress=False, checkpoint=place, **options)
    return fit, copies


def assert_same(one: pt.Fit, other: pt.Fit) -> None:
    """Bit by bit, all but the time they took."""
    for group in ("posterior", "base", "path"):
        assert getattr(one, group).equals(getattr(other, group)), group
        for name, x in getattr(one, group).data_vars.items():
            assert x.values.tobytes() == getattr(other, group)[name].values.tobytes(), (group, name)
    assert one.log_z.mean.tobytes() == other.log_z.mean.tobytes()
    assert one.log_z.stderr.tobytes() == other.log_z.stderr.tobytes()
    assert one.counts == other.counts
    assert [r.gradients for r in one.history] == [r.gradients for r in other.history]
    np.testing.assert_array_equal([r.log_z for r in one.history], [r.log_z for r in other.history])
    assert repr(one.diagnostics.checks) == repr(other.diagnostics.checks)
    assert repr(one.modes) == repr(other.modes)
