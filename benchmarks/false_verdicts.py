"""Does a run that cannot work ever call itself converged?

    python -m benchmarks.false_verdicts [--seeds 4] [--only FAMILY] [--processes 1] [--out FILE.csv]

A converged run is wrong when its log z is off by more than 4 se + .05, or the share of a mode by more than half of
itself and more than chance. It is FALSE when it is wrong even about those modes alone that its own draws near lam = 1
visited, in whatever phase. A mode that no draw ever visited cannot be known of: where leaving such modes out of the
truth makes the run right, it is listed as unseen.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

import numpy as np

import pathtemp as pt
from benchmarks.impossible import SCENARIOS, Scenario
from benchmarks.measure import Row, flat_draws, markdown, shares, table
from benchmarks.parallel import spread
from benchmarks.watch import Witness, watched
from pathtemp._types import FloatArray

NAMED = {f"{scenario.family}: {scenario.name}, {scenario.chains}": scenario for scenario in SCENARIOS}


def judge(problem: pt.testing.Problem, fit: pt.Fit, witness: Witness) -> Row:
    """What the run said and what was true."""
    value, se = fit.log_marginal_likelihood
    share = shares(problem, flat_draws(fit)) if problem.shares is not None else np.ones(1)
    truth = problem.shares if problem.shares is not None else np.ones(1)
    seen = witness.seen | (share > 0)
    known = np.where(seen, truth, 0.0) if seen.any() else truth
    wrong = is_wrong(fit, share, truth, problem.log_z_end)
    wrong_of_seen = is_wrong(fit, share, known / known.sum(), problem.log_z_end + np.log(known.sum()))
    said = "right" if not wrong else "FALSE" if wrong_of_seen else "unseen"
    return {
        "outcome": said if fit.converged else "warned",
        "converged": fit.converged,
        "failed": "; ".join(check.name for check in fit.diagnostics.checks if not check.passed),
        "error": value - problem.log_z_end,
        "se": se,
        "wrong": wrong,
        "share": float(share[-1]),
        **{f"{phase}_visits": int(visits[-1]) for phase, visits in witness.visits.items()},
        "modes_seen": int(seen.sum()),
        "tours": fit.diagnostics.tours,
        "khat": fit.diagnostics.khat,
    }


def is_wrong(fit: pt.Fit, share: FloatArray, truth: FloatArray, log_z: float) -> bool:
    """Whether the fit misses the true shares ``truth`` (modes,) or the true ``log_z``.

    A share by more than four standard errors of as many independent draws as the fit claims to be worth, at least.
    """
    value, se = fit.log_marginal_likelihood
    off = not abs(value - log_z) <= 4.0 * se + 0.05
    ess = max(float(np.nan_to_num(fit.diagnostics.ess_bulk, nan=1.0)), 1.0)
    chance = 4.0 * np.sqrt(truth * (1.0 - truth) / ess)
    return off or bool(np.any(np.abs(share - truth) > np.maximum(0.5 * truth, chance)))


def run(name: str, seeds: range) -> list[Row]:
    """All runs of one scenario, named by its family and its own name."""
    scenario = NAMED[name]
    problem = scenario.make()
    rows = [one(scenario, seed, problem) for seed in seeds]
    for row in rows:
        print(" | ".join(line(row)), flush=True)
    return rows


def one(scenario: Scenario, seed: int, problem: pt.testing.Problem) -> Row:
    """One run of a scenario, watched."""
    began = time.perf_counter()
    with watched(problem) as witness:
        fit = pt.temper(problem.model, budget=scenario.budget, chains=scenario.chains, seed=seed, progress=False)
    about = {"family": scenario.family, "scenario": scenario.name, "seed": seed, "budget": scenario.budget}
    return about | judge(problem, fit, witness) | {"seconds": time.perf_counter() - began}


def line(row: Row) -> list[str]:
    """One line of the printed table."""
    visits = "/".join(str(row[f"{phase}_visits"]) for phase in ("anneal", "adapt", "sample"))
    cells = (row["family"], row["scenario"], row["seed"], row["outcome"], row["failed"])
    numbers = (f"{row['error']:+.3f}", f"{row['se']:.3f}", f"{row['share']:.3f}", visits)
    return [*map(str, cells), *numbers]


HEADER = [
    "family",
    "scenario",
    "seed",
    "outcome",
    "gates that failed",
    "log z error",
    "se",
    "last mode's share",
    "its visits: anneal/adapt/sample",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--only", choices=sorted({s.family for s in SCENARIOS}))
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/false_verdicts.csv"))
    options = parser.parse_args()
    names = [name for name, scenario in NAMED.items() if options.only in (None, scenario.family)]
    with table(options.out) as append:
        results = spread(run, names, seeds=options.seeds, processes=options.processes, append=append)
    rows = [row for name in names for row in results[name]]
    print(markdown(HEADER, map(line, rows)))
    outcomes = Counter(row["outcome"] for row in rows)
    print(f"\n{len(rows)} runs: " + ", ".join(f"{count} {name}" for name, count in outcomes.most_common()))
    print(f"false converged: {outcomes['FALSE']}")


if __name__ == "__main__":
    main()
