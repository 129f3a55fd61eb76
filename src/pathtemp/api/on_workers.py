"""Whole runs on the workers of a Dask cluster, one model each."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pathtemp.engines.islands.cluster import client_of, on_workers, taking_turns
from pathtemp.errors import InputError
from pathtemp.io.storage import load
from pathtemp.io.travel import packed, unpacked
from pathtemp.model.model import Model
from pathtemp.result.fit import Fit
from pathtemp.seeds import seed_word

NOT_THERE = ("client", "cluster", "checkpoint", "progress", "target", "base", "dim", "model")
"""Arguments of ``pt.temper`` that make no sense on a worker."""


def tempered(models: Mapping[str, Model], client: Any, how: Mapping[str, Any]) -> dict[str, Fit]:
    """The fit of each model, tempered on the workers; seeds follow on that in ``how``."""
    refused = [name for name in how if name in NOT_THERE]
    if refused:
        raise InputError(f"{refused[0]}: it cannot be given for models on workers; leave it out")
    first = seed_word(how.get("seed", 0))
    options = [dict(how) | {"seed": first + k} for k in range(len(models))]
    sent = [(packed(model), one) for model, one in zip(models.values(), options, strict=True)]
    with client_of(client, None) as who:
        files = on_workers(who, _tempered, sent)
    return {name: replace(_read(file), model=models[name]) for name, file in zip(models, files, strict=True)}


def _tempered(model: bytes, how: Mapping[str, Any]) -> bytes:
    """The file of the fit of one model, on a worker."""
    from pathtemp.api.temper import temper

    with taking_turns(), tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "fit.nc"
        temper(unpacked(model), progress=False, **how).save(place)
        return place.read_bytes()


def _read(content: bytes) -> Fit:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "fit.nc"
        place.write_bytes(content)
        return load(place)
