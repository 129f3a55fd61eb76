"""Chains over several devices: the same draws for any number of them, where XLA rounds batches of all sizes alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from pathtemp.kernels.spread import by_part, devices_for, parts_of

SCRIPT = """
import hashlib, json, sys
import jax
import pathtemp as pt
from pathtemp.kernels import spread

made = {}
for model in (pt.testing.mixture_1d().model,):
    for shown in map(int, sys.argv[1:]):
        jax.local_device_count = lambda: shown
        fit = pt.temper(model, seed=3, budget=48_000, chains=16, progress=False)
        used = len(fit.continuation.engine.chains.state.chains.theta.sharding.device_set)
        arrays = [fit.posterior[name].values for name in fit.posterior] + [fit.log_z.mean, fit.log_z.stderr]
        words = hashlib.sha256(b"".join(x.tobytes() for x in arrays)).hexdigest()
        made.setdefault(model.name, []).append((used, words, fit.counts.gradients))
print(json.dumps(made))
"""


def made_with(*devices: int) -> dict[str, list[tuple[int, str, int]]]:
    """Devices used, draws and log z as a word, and gradients, by model, for each number of devices that JAX shows."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={max(devices)}"
    command = [sys.executable, "-c", SCRIPT, *map(str, devices)]
    done = subprocess.run(command, env=os.environ | {"XLA_FLAGS": flags}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[tuple[int, str, int]]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
def test_draws_are_the_same_for_any_number_of_devices() -> None:
    """In more dimensions XLA compiles small batches otherwise, and draws differ by rounding."""
    for found in made_with(1, 2, 4, 8).values():
        assert [used for used, _, _ in found] == [1, 2, 4, 8]
        assert len({(words, gradients) for _, words, gradients in found}) == 1


def test_sums_in_parts_are_the_whole() -> None:
    x = jnp.arange(24.0).reshape(12, 2)
    assert by_part(x).shape == (parts_of(12), 2)
    np.testing.assert_array_equal(by_part(x).sum(axis=0), x.sum(axis=0))


@pytest.mark.parametrize(("shown", "chains", "used"), [(1, 64, 1), (8, 64, 8), (8, 12, 4), (3, 64, 2), (8, 7, 1)])
def test_chains_go_to_as_many_devices_as_divide_their_parts(
    shown: int, chains: int, used: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jax.local_device_count", lambda: shown)
    assert devices_for(chains, batch=None) == used
    assert devices_for(chains, batch=4) == 1
