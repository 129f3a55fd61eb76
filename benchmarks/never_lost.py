"""Runs that are killed at random moments, and checkpoints that are cut short: is any finished round lost?

``python -m benchmarks.never_lost --kills 50 --cuts 50`` prints one line a trial and a summary. Each killed run is
resumed and held, bit by bit, against one that was never stopped; every second one is started on a single core.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

import pathtemp as pt
from pathtemp.io import writer
from pathtemp.io.checkpoint import before, read_last
from pathtemp.model.model import Model
from pathtemp.model.model import model as join
from pathtemp.settings import Settings

SETTINGS = Settings(chains=8, iterations=8, anneal_moves=2)
BUDGET = 36_000


def two_modes() -> Model:
    """Two separated modes of unequal height in two dimensions."""

    def target(x: Any) -> Any:
        return jnp.logaddexp(-2.0 * jnp.sum((x + 6.0) ** 2), 1.0 - 2.0 * jnp.sum((x - 5.0) ** 2))

    return join(target, pt.normal(0.0, 6.0, shape=(2,)), name="two modes")


def run_to_be_killed(place: Path) -> None:
    """Say after each checkpoint that is on disk how many gradients it holds."""
    write = writer.write

    def and_say(place: Path, record: Any) -> None:
        write(place, record)
        print(record["state"]["engine"]["chains"]["counts"].gradients, flush=True)

    writer.write = and_say
    pt.temper(two_modes(), budget=BUDGET, seed=1, settings=SETTINGS, progress=False, checkpoint=place)


def start(place: Path, *, one_core: bool) -> subprocess.Popen[str]:
    """A run in another process, on one core or on all."""
    command = [sys.executable, "-m", "benchmarks.never_lost", "--child", str(place)]
    if one_core:
        command.append("--one-core")
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def killed(place: Path, rng: random.Random, *, one_core: bool, longest: float) -> int:
    """Kill a run a random time after its first checkpoint; the gradients in the last that it told of."""
    child = start(place, one_core=one_core)
    assert child.stdout is not None
    first = child.stdout.readline()
    time.sleep(rng.uniform(0.0, longest))
    child.send_signal(signal.SIGKILL)
    told = (first + child.stdout.read()).split()
    child.wait()
    return int(told[-1])


def same(one: pt.Fit, other: pt.Fit) -> bool:
    """Whether two fits are equal bit by bit, but for the time they took."""
    pairs = [
        (getattr(one, group)[name].values, getattr(other, group)[name].values)
        for group in ("posterior", "base", "path")
        for name in getattr(one, group).data_vars
    ]
    pairs += [(one.log_z.mean, other.log_z.mean), (one.log_z.stderr, other.log_z.stderr)]
    logs = [np.array([r.log_z for r in fit.history]) for fit in (one, other)]
    pairs.append((logs[0], logs[1]))
    checks = repr(one.diagnostics.checks) == repr(other.diagnostics.checks)
    return checks and one.counts == other.counts and all(a.tobytes() == b.tobytes() for a, b in pairs)


def kill_trial(number: int, folder: Path, model: Model, reference: pt.Fit, rng: random.Random, longest: float) -> str:
    """One kill and its resume: "equal", or what went wrong."""
    place = folder / f"kill-{number}.nc"
    told = killed(place, rng, one_core=number % 2 == 1, longest=longest)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        kept = int(read_last(place)["state"]["engine"]["chains"]["counts"].gradients)
        fit = pt.resume(place, model, progress=False)
    outcome = "equal" if same(reference, fit) else "DIFFERENT"
    if said:
        outcome = f"WARNED ({said[0].message})"
    if kept < told:
        outcome = "LOST"
    print(
        f"kill {number}: told of {told:,} gradients, kept {kept:,} of {fit.counts.gradients:,}: {outcome}", flush=True
    )
    for rest in folder.glob(".pathtemp-*"):
        rest.unlink()
    return outcome


def cut_trial(number: int, folder: Path, model: Model, reference: pt.Fit, source: Path, rng: random.Random) -> str:
    """One truncated file, with the checkpoint of a round earlier or without: "equal", "refused", or what went wrong."""
    place, with_before = folder / f"cut-{number}.nc", number % 2 == 0
    content = source.read_bytes()
    length = rng.randrange(len(content))
    place.write_bytes(content[:length])
    if with_before:
        shutil.copy(before(source), before(place))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            outcome = "equal" if same(reference, pt.resume(place, model, progress=False)) else "DIFFERENT"
        except pt.InputError as error:
            outcome = "LOST" if with_before else f"refused: {str(error).split('(')[0].strip()[-60:]}"
    print(f"cut {number}: {length:,} of {len(content):,} bytes, {outcome}", flush=True)
    return outcome.split(":")[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--cuts", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--one-core", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        if options.one_core and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        run_to_be_killed(options.child)
        return 0
    rng, model = random.Random(options.seed), two_modes()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = folder / "whole.nc"
        began = time.perf_counter()
        reference = pt.temper(model, budget=BUDGET, seed=1, settings=SETTINGS, progress=False, checkpoint=whole)
        longest = 3.0 * sum(reference.seconds[part] for part in ("adapt", "sample"))
        print(f"{time.perf_counter() - began:.1f} s for the whole run; kills within {longest:.1f} s", flush=True)
        outcomes = [kill_trial(i, folder, model, reference, rng, longest) for i in range(options.kills)]
        outcomes += [cut_trial(i, folder, model, reference, whole, rng) for i in range(options.cuts)]
    for outcome in sorted(set(outcomes)):
        print(f"{outcomes.count(outcome):4}  {outcome}")
    return 0 if set(outcomes) <= {"equal", "refused"} else 1


if __name__ == "__main__":
    sys.exit(main())
