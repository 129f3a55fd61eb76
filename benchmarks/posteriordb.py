"""Programs of posteriordb as they are: accepted, converged, right, and what they cost, beside NUTS on the same density.

    python -m benchmarks.posteriordb FOLDER [--only NAME] [--seeds 1] [--budget N] [--without-nuts] [--out FILE.csv]

FOLDER is a checkout of posteriordb, or holds one folder a posterior, with `model.stan`, `data.json` and
`reference.json`. Each row is on disk as soon as it is made. Right is: means within .1 standard deviations of the
reference, standard deviations within 10%, 5% and 95% quantiles within .15 standard deviations, three Monte Carlo errors
of the run allowed for. NUTS evaluates gradients alone; "all evaluations" are those of gradients and of densities
together. CPU seconds are those of this process and of the C++ compiler, which is called where the cache lacks the
program (`PATHTEMP_CACHE` names another).
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import time
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import pathtemp as pt
from benchmarks.measure import Row, markdown, table
from pathtemp._types import FloatArray
from pathtemp.model.model import Model

QUANTITIES = ("mean", "sd", "q5", "q95")
ALLOWED = {"mean": 0.1, "sd": 0.1, "q5": 0.15, "q95": 0.15}
ACCOUNTS = ("compile", "start", "search", "anneal", "adapt", "sample", "verdict", "other")
ERRORS = 3.0
_INDEXED = re.compile(r"([^\[]+)(?:\[([\d,]+)\])?")


@dataclass(frozen=True)
class Case:
    """A posterior: its program, its data, and mean, sd, q5 and q95 of each reference parameter."""

    name: str
    program: Path
    data: Mapping[str, Any]
    reference: Mapping[str, Mapping[str, float]]


def cases(folder: Path) -> Iterator[Case]:
    """The posteriors with a reference, of a checkout or of a folder of folders."""
    database = folder / "posterior_database"
    if not database.is_dir():
        for place in sorted(path.parent for path in folder.glob("*/reference.json")):
            reference = json.loads((place / "reference.json").read_text())["parameters"]
            yield Case(place.name, place / "model.stan", json.loads((place / "data.json").read_text()), reference)
        return
    for file in sorted((database / "posteriors").glob("*.json")):
        about = json.loads(file.read_text())
        name = about.get("reference_posterior_name")
        draws = database / "reference_posteriors" / "draws" / "draws" / f"{name}.json.zip"
        data = database / "data" / "data" / f"{about['data_name']}.json.zip"
        program = database / "models" / "stan" / f"{about['model_name']}.stan"
        if name and draws.exists() and data.exists() and program.exists():
            yield Case(file.stem, program, unzipped(data), moments_of(unzipped(draws)))


def unzipped(path: Path) -> Any:
    """The one JSON file of an archive."""
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read(archive.namelist()[0]))


def moments_of(chains: list[Mapping[str, list[float]]]) -> dict[str, dict[str, float]]:
    """Mean, sd, q5 and q95 of each parameter over chains of draws by name.

    >>> moments_of([{"x": [0.0, 2.0]}, {"x": [0.0, 2.0]}])["x"]["mean"]
    1.0
    """
    return {name: moments(np.concatenate([np.asarray(chain[name]) for chain in chains])) for name in chains[0]}


def moments(x: FloatArray) -> dict[str, float]:
    """Mean, sd, q5 and q95 of draws."""
    q5, q95 = np.quantile(x, [0.05, 0.95])
    return {"mean": float(x.mean()), "sd": float(x.std(ddof=1)), "q5": float(q5), "q95": float(q95)}


def element(posterior: xr.Dataset, name: str) -> FloatArray:
    """Draws (chain, draw) of one number by its Stan name, such as ``beta[2,1]``."""
    match = _INDEXED.fullmatch(name)
    assert match is not None
    indices = () if match.group(2) is None else tuple(int(i) - 1 for i in match.group(2).split(","))
    return np.asarray(posterior[match.group(1)].values[(slice(None), slice(None), *indices)], float)


def errors(posterior: xr.Dataset, reference: Mapping[str, Mapping[str, float]]) -> tuple[Row, bool, float]:
    """Worst standardised error of each quantity, whether all are right, and the least effective sample size."""
    from arviz_stats import ess

    worst, right, least = dict.fromkeys(QUANTITIES, 0.0), True, np.inf
    for name, truth in reference.items():
        x = element(posterior, name)
        found = moments(x.ravel())
        if truth["sd"] < 1e-12:
            continue  # a constant, such as an entry of a Cholesky factor
        # Monte Carlo errors of a normal, over sqrt(ESS); that of a standard deviation grows with the kurtosis.
        kurtosis = float(np.mean(((x - x.mean()) / x.std()) ** 4))
        own = {"mean": 1.0, "sd": 0.5 * np.sqrt(max(kurtosis, 3.0) - 1.0), "q5": 2.1, "q95": 2.1}
        effective = float(ess(x))
        least = min(least, effective)
        for what in QUANTITIES:
            error = abs(found[what] - truth[what]) / truth["sd"]
            worst[what] = max(worst[what], error)
            right &= error < ALLOWED[what] + ERRORS * own[what] / np.sqrt(max(effective, 1.0))
    return {f"worst_{what}": value for what, value in worst.items()}, bool(right), float(least)


def started_as_stan(model: Model) -> Model:
    """The model with starts as Stan has them, uniform between -2 and 2 on the unconstrained scale."""

    def sample(key: Any) -> Any:
        return jax.random.uniform(key, (model.dim,), minval=-2.0, maxval=2.0)

    return replace(model, log_base=lambda x: jnp.zeros((), x.dtype), sample_base=sample)


def cpu_seconds() -> float:
    """CPU seconds of this process and of those that it has started and seen end."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(of.ru_utime + of.ru_stime for of in spent)


def run(case: Case, *, seed: int, budget: float | None, beside_nuts: bool) -> Row:
    """One row: what became of a posterior."""
    began, busy = time.perf_counter(), cpu_seconds()
    row: Row = {"name": case.name, "seed": seed, "accepted": False, "converged": False, "right": False}
    row |= {f"worst_{what}": float("nan") for what in QUANTITIES}
    numbers = (
        "log_z",
        "log_z_se",
        "evidence",
        "gradients",
        "densities",
        "ess",
        "stan",
        *ACCOUNTS,
        "rest",
        "wall",
        "cpu",
    )
    row |= dict.fromkeys((*numbers, "nuts_gradients", "nuts_ess", "nuts_seconds", "nuts_cpu"), float("nan"))
    row |= {"nuts_right": False, "base": "", "why": ""}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = pt.from_stan(case.program, data=dict(case.data), progress=False)
            built, building = time.perf_counter() - began, cpu_seconds() - busy
            fit = pt.temper(model, seed=seed, budget=budget, progress=False)
    except pt.InputError as error:
        return row | {"why": str(error), "wall": time.perf_counter() - began}
    wall, cpu = time.perf_counter() - began, cpu_seconds() - busy
    found, right, least = errors(fit.posterior, case.reference)
    value, se = fit.log_constant
    spent = {part: fit.seconds.get(part, 0.0) for part in ACCOUNTS}
    failed = ", ".join(check.name for check in fit.diagnostics.checks if not check.passed)
    row |= {
        "accepted": True,
        "converged": fit.converged,
        "right": right,
        **found,
        "base": fit.about_base,
        "why": failed,
    }
    row |= {"log_z": value, "log_z_se": se, "evidence": fit.is_evidence, "ess": least}
    row |= {"gradients": fit.counts.gradients, "densities": fit.counts.densities, "stan": built, **spent}
    row |= {"rest": wall - built - sum(spent.values()), "wall": wall, "cpu": cpu}
    if beside_nuts:
        busy = cpu_seconds()
        other = pt.baselines.nuts(started_as_stan(model), seed=seed)
        _, nuts_right, nuts_least = errors(other.posterior, case.reference)
        row |= {"nuts_gradients": other.gradients, "nuts_ess": nuts_least, "nuts_right": nuts_right}
        row |= {"nuts_seconds": sum(other.seconds.values()), "nuts_cpu": building + cpu_seconds() - busy}
    return row


QUALITY = ["posterior", "converged", "right", "worst mean", "sd", "q5", "q95"]
COST = ["gradients", "densities", "gradients per ESS", "all evaluations per ESS", "NUTS per ESS", "CPU s", "NUTS CPU s"]


def line(row: Row) -> list[str]:
    """One line of the printed table."""
    verdict = ("yes" if row["converged"] else f"no ({row['why']})") if row["accepted"] else f"refused: {row['why']}"
    worst = [f"{row[f'worst_{what}']:.2f}" for what in QUANTITIES]
    steep, other = row["gradients"] / row["ess"], row["nuts_gradients"] / row["nuts_ess"]
    each = (row["gradients"] + row["densities"]) / row["ess"]
    right = "yes" if row["right"] else "NO"
    costs = [f"{row['gradients']:,.0f}", f"{row['densities']:,.0f}", f"{steep:.0f}", f"{each:.0f}", f"{other:.0f}"]
    return [row["name"], verdict[:60], right, *worst, *costs, f"{row['cpu']:.0f}", f"{row['nuts_cpu']:.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", action="append", help="part of a name; may be given more than once")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--budget", type=float)
    parser.add_argument("--without-nuts", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/posteriordb.csv"))
    options = parser.parse_args()
    wanted = [c for c in cases(options.folder) if not options.only or any(part in c.name for part in options.only)]
    rows = []
    with table(options.out) as append:
        for case in wanted:
            for seed in range(options.seeds):
                rows.append(run(case, seed=seed, budget=options.budget, beside_nuts=not options.without_nuts))
                append(rows[-1])
    print(markdown([*QUALITY, *COST], map(line, rows)))


if __name__ == "__main__":
    main()
