"""Islands on real worker processes: the same fit whatever their number and whoever dies; a scheduler that goes away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tempered import problem

import pathtemp as pt
from pathtemp.engines.progress import Silent
from pathtemp.result.run import RoundRecord

pytestmark = pytest.mark.slow
distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")

HOW: dict[str, Any] = {"seed": 2, "budget": 36_000, "islands": 4, "chains": 8, "modes": "off"}

# Workers are to compute as this process does, to the last digit. conftest.py changes what XLA leaves out and what a
# density costs; and Dask gives each worker one thread for matrix products, which may round their sums otherwise.
AS_HERE = """
from pathtemp.engines.default import effort
from pathtemp.kernels import compilation
from pathtemp.model import price
compilation.QUICK.pop("xla_backend_optimization_level", None)
effort.DEAR, effort.CHEAP, price.DEAR = float("inf"), 0.0, float("inf")
"""


@pytest.fixture(autouse=True)
def workers_compute_as_here() -> Iterator[None]:
    environment = {"MALLOC_TRIM_THRESHOLD_": 65536}
    with dask.config.set({"distributed.worker.preload": [AS_HERE], "distributed.nanny.pre-spawn-environ": environment}):
        yield


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    local = distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    with local as own, distributed.Client(own) as client:
        yield client


def tempered(**options: Any) -> pt.Fit:
    return pt.temper(problem("mixture_1d").model, **(HOW | {"progress": False} | options))


def assert_same(one: pt.Fit, other: pt.Fit) -> None:
    for group in ("posterior", "base", "path"):
        for name in getattr(one, group).data_vars:
            np.testing.assert_array_equal(getattr(one, group)[name], getattr(other, group)[name])
    np.testing.assert_array_equal(one.log_z.mean, other.log_z.mean)
    np.testing.assert_array_equal(one.log_z.stderr, other.log_z.stderr)
    assert one.counts == other.counts
    assert one.diagnostics.checks == other.diagnostics.checks


class AtRound(Silent):
    """Does something once, when it first hears of a round of some phase."""

    def __init__(self, phase: str, what: Any) -> None:
        self._phase, self._what, self.heard, self.done = phase, what, 0, False

    def round(self, record: RoundRecord) -> None:
        self.heard += 1
        if record.phase == self._phase and not self.done:
            self.done = True
            self._what()


def test_one_two_and_four_workers_and_none_give_the_same_fit_and_so_does_one_that_is_killed() -> None:
    here = tempered()
    with cluster(4) as client:
        first = next(iter(client.run(os.getpid).values()))
        progress = AtRound("sample", lambda: os.kill(first, signal.SIGKILL))
        assert_same(here, tempered(client=client, progress=progress))
        assert progress.done
        assert first not in client.run(os.getpid).values()
    with cluster(2) as client:
        assert_same(here, tempered(client=client))
    with cluster(1) as client:
        fit = tempered(client=client)
        assert_same(here, fit)
        longer = fit.extend(budget=24_000)
        assert_same(here.extend(budget=24_000), longer)
    with pytest.raises(pt.InputError, match=r"^client: it is closed"):
        longer.extend(budget=24_000)


def test_lists_of_modes_are_united_alike_on_workers() -> None:
    """This process compiles as the tests do, and may round otherwise: worker is held against worker."""
    fits = []
    for workers in (1, 2):
        with cluster(workers) as client:
            fits.append(tempered(client=client, modes="auto", islands=2, budget=48_000))
    assert_same(*fits)
    assert len(fits[0].modes) == len(fits[1].modes)


def test_a_cluster_of_its_own_ends_with_the_run_and_the_fit_goes_on_here() -> None:
    fit = tempered(cluster="local", islands=2)
    assert_same(tempered(islands=2).extend(budget=24_000), fit.extend(budget=24_000))


def test_an_error_of_the_model_is_told_as_without_workers() -> None:
    import jax.numpy as jnp

    def log_q(x: Any) -> Any:
        # The starts lie where it is finite.
        return jnp.where(x[0] > 3.0, jnp.inf, -0.5 * jnp.sum((x - 2.0) ** 2))

    base = pt.normal(-5.0, 0.5, shape=(1,))
    with cluster(1) as client, pytest.raises(pt.InputError, match=r"^target: the log density is \+inf"):
        pt.temper(target=log_q, base=base, client=client, budget=24_000, chains=8, modes="off", progress=False)


def test_a_scheduler_that_goes_away_is_told_in_a_sentence(tmp_path: Path) -> None:
    import dask

    file = str(tmp_path / "scheduler.json")
    run = [sys.executable, "-m"]
    scheduler = [*run, "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", file]
    worker = [*run, "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", "--scheduler-file", file]
    started = [subprocess.Popen(scheduler, stderr=subprocess.DEVNULL)]
    try:
        while not Path(file).exists():
            assert started[0].poll() is None
            time.sleep(0.1)
        started.append(subprocess.Popen(worker, stderr=subprocess.DEVNULL))
        with dask.config.set({"distributed.comm.timeouts.connect": "2s"}):
            client = distributed.Client(scheduler_file=file, timeout="60s")
            progress = AtRound("adapt", started[0].kill)
            with pytest.raises(pt.SamplingError, match=r"^client: the scheduler at tcp://.* went away"):
                tempered(client=client, progress=progress)
            client.close(timeout=1)
        assert progress.done
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_models_are_compared_on_workers() -> None:
    model = problem("mixture_1d").model
    how: dict[str, Any] = {"budget": 24_000, "chains": 8, "modes": "off"}
    with cluster(2) as client:
        with warnings.catch_warnings():
            # Runs as short as these need not converge.
            warnings.simplefilter("ignore")
            table = pt.compare({"a": model, "b": model}, client=client, seed=3, **how)
        with pytest.raises(pt.InputError, match=r"^checkpoint: "):
            pt.compare({"a": model, "b": model}, client=client, checkpoint="run.nc")
    for seed, name in ((3, "a"), (4, "b")):
        assert table.log_evidence[name] == tempered(islands=1, seed=seed, **how).log_marginal_likelihood.value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here = pt.compare({"a": model, "b": model}, seed=3, progress=False, **how)
    assert here.log_evidence.to_dict() == table.log_evidence.to_dict()
