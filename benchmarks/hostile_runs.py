"""Runs that are killed and caches that are spoiled, for :mod:`benchmarks.hostile`."""

from __future__ import annotations

import logging
import multiprocessing
import os
import random
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
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
    """Every kind of run that keeps checkpoints. JAX is not used before this is called, so that processes may fork."""
    modes, at = two_modes(), jnp.array([2.0, -1.0])
    funnel, easy = pt.testing.funnel().model, pt.testing.beta_binomial("easy").model
    quiet: dict[str, Any] = {"progress": False, "seed": 1}
    along: dict[str, Any] = {**quiet, "budget": 24_000, "settings": Settings(chains=8, iterations=8)}
    small: dict[str, Any] = {**along, "settings": Settings(chains=8, iterations=8, anneal_moves=2)}
    paper: dict[str, Any] = {**quiet, "settings": PAPER.replace(draws=800, adaptations=4, stop=False, max_depth=6)}
    return {
        "pt.temper": Kind(
            lambda place: pt.temper(modes, checkpoint=place, **small),
            lambda place: pt.resume(place, modes, progress=False),
        ),
        "pt.divide_and_conquer": Kind(
            lambda place: pt.divide_and_conquer(funnel, margin="y", checkpoint=place, **along),
            lambda place: pt.resume(place, funnel, progress=False),
        ),
        "pt.path_sample": Kind(
            lambda place: pt.path_sample(moving, 2, args=(at,), checkpoint=place, **along),
            lambda place: pt.resume(place, log_q=moving, args=(at,), progress=False),
        ),
        "the paper's engine": Kind(
            lambda place: pt.temper(easy, checkpoint=place, **paper),
            lambda place: pt.resume(place, easy, progress=False),
        ),
        "the paper's engine along a margin": Kind(
            lambda place: pt.divide_and_conquer(funnel, margin="y", checkpoint=place, **paper),
            lambda place: pt.resume(place, funnel, progress=False),
        ),
    }


@contextmanager
def told_of(tell: Callable[[], None]) -> Iterator[None]:
    """Call ``tell`` after each checkpoint that is on disk."""
    write = writer.write

    def and_tell(place: Path, record: Any) -> None:
        write(place, record)
        tell()

    writer.write = and_tell
    try:
        yield
    finally:
        writer.write = write


def run_to_be_killed(kind: str, place: Path, said: Connection) -> None:
    """Say after each checkpoint that is on disk that there was one."""
    with told_of(lambda: said.send_bytes(b"kept")):
        kinds()[kind].begin(place)


@cache
def started() -> ForkServerContext:
    """What starts processes that have all modules and have not used JAX: seconds less than a new one."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.hostile_runs"])
    return context


def killed(kind: str, place: Path, rng: random.Random, rounds: int) -> int:
    """Kill a run in a round of its own choice, at any moment of it; how many checkpoints it had told of."""
    heard, said = started().Pipe(duplex=False)
    child = started().Process(target=run_to_be_killed, args=(kind, place, said))
    child.start()
    said.close()
    begun, told, ended = time.perf_counter(), 0, False
    wanted = rng.randint(1, rounds)
    while told < wanted and not ended:
        told, ended = (told, True) if _nothing(heard) else (told + 1, False)
    time.sleep(rng.uniform(0.0, min(LONGEST, 2 * (time.perf_counter() - begun) / max(told, 1))) * rng.random())
    child.kill()
    while not _nothing(heard):
        told += 1
    child.join()
    return told


def _nothing(heard: Connection) -> bool:
    """Whether the other end is closed; waits for what it says."""
    try:
        heard.recv_bytes()
    except (EOFError, OSError):
        return True
    return False


def kills(folder: Path, count: int, seed: int) -> Iterator[tuple[str, Counter[str]]]:
    """Outcomes of ``count`` kills by kind of run; nothing is done where there are none."""
    rng = random.Random(seed)
    logging.getLogger("pathtemp").setLevel(logging.ERROR)  # each kill leaves a lock, which is told of
    for number, kind in enumerate(kinds()):
        share = len(range(number, count, len(kinds())))
        if share:
            yield kind, _kills(kind, folder / f"kind-{number}", share, rng)


def _kills(kind: str, folder: Path, count: int, rng: random.Random) -> Counter[str]:
    folder.mkdir()
    rounds: list[int] = []
    with told_of(lambda: rounds.append(1)):
        reference = kinds()[kind].begin(folder / "whole.nc")
    outcomes: Counter[str] = Counter()
    for number in range(count):
        place = folder / f"kill-{number}.nc"
        told = killed(kind, place, rng, len(rounds))
        outcomes[_resumed(kind, place, told, len(rounds), reference)] += 1
    return outcomes


def _resumed(kind: str, place: Path, told: int, rounds: int, reference: pt.Fit) -> str:
    left: list[int] = []
    try:
        with warnings.catch_warnings(), told_of(lambda: left.append(1)):
            warnings.simplefilter("error")
            read_last(place)
            fit = kinds()[kind].again(place)
    except Exception as error:
        print(f"{place}: {type(error).__name__}: {error}", flush=True)
        return "crashed"
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
