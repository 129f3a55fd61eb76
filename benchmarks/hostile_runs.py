"""Runs that are killed and caches that are spoiled, for :mod:`benchmarks.hostile`."""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import pathtemp as pt
from benchmarks.never_lost import same, two_modes
from pathtemp.frontends.stan.build import Artifact, build
from pathtemp.frontends.stan.cache import Slot
from pathtemp.io import writer
from pathtemp.io.checkpoint import read_last
from pathtemp.settings import PAPER, Settings

SMALL = Settings(chains=8, iterations=8, anneal_moves=2)
AT = jnp.array([2.0, -1.0])
FUNNEL, EASY = pt.testing.funnel().model, pt.testing.beta_binomial("easy").model
LONGEST = 90.0
"""Seconds for which a run may be under way before it is killed."""


def moving(theta: jax.Array, lam: jax.Array, at: jax.Array) -> jax.Array:
    """A normal that moves and widens."""
    return -0.5 * jnp.sum(((theta - at * lam) * jnp.exp(-lam)) ** 2)


@dataclass(frozen=True)
class Kind:
    """How a run of one kind is begun with a checkpoint, and how it goes on."""

    begin: Callable[[Path | None], pt.Fit]
    again: Callable[[Path], pt.Fit]


@cache
def kinds() -> dict[str, Kind]:
    """Every kind of run that keeps checkpoints."""
    modes = two_modes()
    quiet: dict[str, Any] = {"progress": False, "seed": 1}
    small: dict[str, Any] = {**quiet, "settings": SMALL}
    paper: dict[str, Any] = {**quiet, "settings": PAPER.replace(adaptations=3, stop=False)}
    return {
        "pt.temper": Kind(
            lambda place: pt.temper(modes, budget=12_000, checkpoint=place, **small),
            lambda place: pt.resume(place, modes, progress=False),
        ),
        "pt.divide_and_conquer": Kind(
            lambda place: pt.divide_and_conquer(FUNNEL, margin="y", budget=12_000, checkpoint=place, **small),
            lambda place: pt.resume(place, FUNNEL, progress=False),
        ),
        "pt.path_sample": Kind(
            lambda place: pt.path_sample(moving, 2, args=(AT,), budget=12_000, checkpoint=place, **small),
            lambda place: pt.resume(place, log_q=moving, args=(AT,), progress=False),
        ),
        "the paper's engine": Kind(
            lambda place: pt.temper(EASY, checkpoint=place, **paper),
            lambda place: pt.resume(place, EASY, progress=False),
        ),
    }


def run_to_be_killed(kind: str, place: Path) -> None:
    """Say after each checkpoint that is on disk how many there were."""
    write, told = writer.write, 0

    def and_say(place: Path, record: Any) -> None:
        nonlocal told
        write(place, record)
        told += 1
        print(told, flush=True)

    writer.write = and_say
    kinds()[kind].begin(place)


def killed(kind: str, place: Path, rng: random.Random, rounds: int) -> int:
    """Kill a run in a round of its own choice, at any moment of it; how many checkpoints it had told of."""
    command = [sys.executable, "-m", "benchmarks.hostile_runs", kind, str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        begun = time.perf_counter()
        told = [child.stdout.readline() for _ in range(rng.randint(1, rounds))]
        time.sleep(rng.uniform(0.0, min(LONGEST, 2 * (time.perf_counter() - begun) / len(told))) * rng.random())
        child.send_signal(signal.SIGKILL)
        told += child.stdout.readlines()
    return len([line for line in told if line])


def kills(folder: Path, count: int, seed: int) -> dict[str, Counter[str]]:
    """Outcomes of ``count`` kills by kind of run; nothing is done where there are none."""
    rng, counts = random.Random(seed), {}
    logging.getLogger("pathtemp").setLevel(logging.ERROR)  # each kill leaves a lock, which is told of
    for number, kind in enumerate(kinds()):
        share = len(range(number, count, len(kinds())))
        if share:
            counts[kind] = _kills(kind, folder / f"kind-{number}", share, rng)
    return counts


def _kills(kind: str, folder: Path, count: int, rng: random.Random) -> Counter[str]:
    folder.mkdir()
    rounds: list[Path] = []
    write = writer.write

    def and_count(place: Path, record: Any) -> None:
        write(place, record)
        rounds.append(place)

    writer.write = and_count
    try:
        reference = kinds()[kind].begin(folder / "whole.nc")
    finally:
        writer.write = write
    outcomes: Counter[str] = Counter()
    for number in range(count):
        place = folder / f"kill-{number}.nc"
        told = killed(kind, place, rng, len(rounds))
        outcomes[_resumed(kind, place, told, len(rounds), reference)] += 1
    return outcomes


def _resumed(kind: str, place: Path, told: int, rounds: int, reference: pt.Fit) -> str:
    left: list[int] = []
    write = writer.write

    def and_count(place: Path, record: Any) -> None:
        write(place, record)
        left.append(1)

    writer.write = and_count
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read_last(place)
            fit = kinds()[kind].again(place)
    except Exception as error:
        print(f"{place}: {type(error).__name__}: {error}", flush=True)
        return "crashed"
    finally:
        writer.write = write
    if told + len(left) > rounds:
        return "lost"
    return "equal" if same(reference, fit) else "different"


def caches(folder: Path, count: int, seed: int) -> Counter[str]:
    """Outcomes of ``count`` spoiled entries: each must be built again, and nothing else be touched."""
    rng, outcomes = random.Random(seed), Counter[str]()
    os.environ["PATHTEMP_CACHE"] = str(folder / "cache")
    precious = folder / "precious"
    precious.write_text("precious")
    for number in range(count):
        slot = Slot("program", f"{number:020d}", "out")
        command = ("sh", "-c", f"echo built > {slot.workshop / slot.file}")
        artifact = Artifact(slot, "thing.stan", (command,))
        build([artifact], progress=False)
        SPOILS[number % len(SPOILS)](slot, precious, rng)
        try:
            build([artifact], progress=False)
            fine = slot.path.read_text() == "built\n" and not slot.path.is_symlink() and slot.whole()
            outcome = "equal" if fine and precious.read_text() == "precious" else "different"
        except pt.InputError:
            outcome = "refused" if precious.read_text() == "precious" else "different"
        except Exception as error:
            print(f"cache {number}: {type(error).__name__}: {error}", flush=True)
            outcome = "crashed"
        outcomes[outcome] += 1
    del os.environ["PATHTEMP_CACHE"]
    return outcomes


def _flip(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def _linked(path: Path, precious: Path) -> None:
    path.unlink()
    path.symlink_to(precious)


def _lock_linked(slot: Slot, precious: Path) -> None:
    _linked(slot.folder.parent / "locks" / slot.folder.name, precious)
    slot.path.unlink()


SPOILS: tuple[Callable[[Slot, Path, random.Random], Any], ...] = (
    lambda slot, precious, rng: slot.path.write_bytes(b""),
    lambda slot, precious, rng: slot.path.write_bytes(slot.path.read_bytes()[:3]),
    lambda slot, precious, rng: _flip(slot.path, rng),
    lambda slot, precious, rng: slot.path.write_text("planted\n"),
    lambda slot, precious, rng: _linked(slot.path, precious),
    lambda slot, precious, rng: (slot.folder / "entry.json").unlink(),
    lambda slot, precious, rng: _flip(slot.folder / "entry.json", rng),
    lambda slot, precious, rng: _linked(slot.folder / "entry.json", precious),
    lambda slot, precious, rng: _lock_linked(slot, precious),
    lambda slot, precious, rng: slot.folder.parent.chmod(0o777),
    lambda slot, precious, rng: os.mkfifo(slot.workshop),
)


if __name__ == "__main__":
    run_to_be_killed(sys.argv[1], Path(sys.argv[2]))
