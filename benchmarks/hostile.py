"""Damaged and made-up files, kills and spoiled caches: is anything hung, crashed, lost or silently different?

``python -m benchmarks.hostile`` does it all and prints one line for each sort of trial, with a count of each outcome:

refused     one printable sentence, and nothing else
equal       what was read, resumed or built is to the last bit what it should be
opened      a made-up file whose checksum is right and whose content makes sense: it opens, and prints
hung        no answer within ten seconds
crashed     the process died, or another error than a sentence came out
different   other numbers than were written, without a word
lost        a finished round is gone

``--flips``, ``--crafted``, ``--kills`` and ``--caches`` say how many of each, so that it can be done in pieces, each
with a ``--seed`` of its own; files are opened in a process of its own with a limit on its memory, which is watched.
Each line is added to ``--keep`` as it comes.
"""

from __future__ import annotations

import argparse
import csv
import json
import select
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

SECONDS = 10.0
"""After which a try counts as hung."""

GOOD = {"refused", "equal", "opened"}
BAD = ("hung", "crashed", "different", "lost")
COLUMNS = ("sort", "seed", "tried", *sorted(GOOD), *BAD)


class Worker:
    """A process that opens files, one try after the other, and is started anew when it hangs or dies."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def outcome(self, task: dict[str, Any]) -> str:
        """What becomes of one try."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(task).encode() + b"\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], SECONDS)
        answer = process.stdout.readline().decode().strip() if ready else ""
        if answer:
            return answer
        self.stop()
        return "crashed" if ready else "hung"

    def stop(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            command = [sys.executable, "-m", "benchmarks.hostile_files", str(self._folder)]
            errors = (self._folder / "errors").open("ab")
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0
            )
            assert self._process.stdout is not None
            self._process.stdout.readline()  # it says that it is ready
        return self._process


def tries(tasks: Iterator[dict[str, Any]], folder: Path) -> dict[str, Counter[str]]:
    """Outcomes by sort of trial."""
    counts: dict[str, Counter[str]] = {}
    worker = Worker(folder)
    for task in tasks:
        outcome = worker.outcome(task)
        counts.setdefault(task["sort"], Counter())[outcome.split()[0]] += 1
        if outcome not in GOOD:
            print(f"{outcome}: {json.dumps(task)[:300]}", flush=True)
    worker.stop()
    return counts


def show(sort: str, count: Counter[str], keep: Path, seed: int) -> bool:
    """One line, here and in the file ``keep``; whether all is well."""
    told = ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(count.items()))
    print(f"{sort:<40} {sum(count.values()):>7,} tried: {told}", flush=True)
    new = not keep.exists()
    with keep.open("a", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        if new:
            rows.writerow(COLUMNS)
        rows.writerow([sort, seed, sum(count.values()), *(count[outcome] for outcome in COLUMNS[3:])])
    return set(count) <= GOOD


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flips", type=int, default=2000, help="at random, beside one in each of the first 8192 bytes")
    parser.add_argument("--crafted", type=int, default=400, help="records changed at random, beside those written out")
    parser.add_argument("--kills", type=int, default=100, help="over every kind of run")
    parser.add_argument("--caches", type=int, default=50, help="entries spoiled at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path(__file__).parent / "results" / "hostile.csv")
    options = parser.parse_args()
    from benchmarks import hostile_files, hostile_runs

    told = partial(show, keep=options.keep, seed=options.seed)
    well = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.flips or options.crafted:
            hostile_files.prepare(folder)
            for tasks in (
                hostile_files.flips(folder, options.flips, options.seed),
                hostile_files.crafted(folder, options.crafted, options.seed),
            ):
                for sort, count in tries(tasks, folder).items():
                    well &= told(sort, count)
        if options.caches:
            well &= told("spoiled caches", hostile_runs.caches(folder, options.caches, options.seed))
        for kind, count in hostile_runs.kills(folder, options.kills, options.seed):
            well &= told(f"kills of {kind}", count)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
