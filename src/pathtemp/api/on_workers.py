"""Whole runs on the workers of a Dask cluster, one model each."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pathtemp.engines.islands.cluster import client_of, on_workers, taking_turns
from pathtemp.errors import InputError
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
        fits = on_workers(who, _tempered, sent)
    return {name: replace(pickle.loads(fit), model=models[name]) for name, fit in zip(models, fits, strict=True)}


def _tempered(model: bytes, how: Mapping[str, Any]) -> bytes:
    """The fit of one model, pickled, on a worker.

    It does not go through a file: xarray takes a lock of the cluster to write one.
    """
    from pathtemp.api.temper import temper

    with taking_turns():
        return pickle.dumps(temper(unpacked(model), progress=False, **how))
