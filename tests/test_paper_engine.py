"""The paper's engine on problems with known answers: log z, draws of the target, what it reports."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathtemp import paper
from pathtemp.errors import InputError
from pathtemp.fit import Fit
from pathtemp.links import CubicLink
from pathtemp.paper import run_paper
from pathtemp.paths.geometric import GeometricPath
from pathtemp.pseudoprior import Kernels
from pathtemp.run import RoundRecord, Run
from pathtemp.settings import PAPER
from pathtemp.testing import Problem, beta_binomial, gaussian_mixture

ALL_ADAPTATIONS = PAPER.replace(stop=False)
problem = cache(beta_binomial)


@cache
def easy_runs() -> list[Run]:
    model = problem("easy").model
    return [run_paper(model, seed=seed, settings=ALL_ADAPTATIONS.replace(adaptations=6)) for seed in range(10)]


@cache
def hard_runs() -> list[Run]:
    model = problem("hard").model
    return [run_paper(model, seed=seed, settings=ALL_ADAPTATIONS) for seed in range(4)]


def curve_errors(runs: list[Run], truth: Problem) -> np.ndarray:
    """Root mean square error over the path of log z after each adaptation, shape (run, adaptation)."""
    assert truth.log_z is not None
    return np.array(
        [
            [np.sqrt(np.mean((r.curve.mean - truth.log_z(r.curve.lam)) ** 2)) for r in run.history if r.curve]
            for run in runs
        ]
    )


def test_easy_curve_is_near_after_one_adaptation_and_nearer_after_six() -> None:
    errors = curve_errors(easy_runs(), problem("easy"))
    first, last = np.sqrt(np.mean(errors[:, [0, -1]] ** 2, axis=0))
    assert first < 0.3
    assert last < 0.1
    assert last < 0.8 * first


def test_hard_curve_is_far_off_at_first_and_found_later() -> None:
    errors = curve_errors(hard_runs(), problem("hard"))
    assert np.median(errors[:, 0]) > 5.0
    assert np.median(errors[:, -1]) < 1.0
    assert np.max(errors[:, -1]) < 3.0


@pytest.mark.parametrize("case", ["easy", "hard"])
def test_error_of_log_z_is_as_reported(case: str) -> None:
    runs = easy_runs() if case == "easy" else hard_runs()
    z = np.array([(r.log_z.mean[-1] - problem(case).log_z_end) / r.log_z.stderr[-1] for r in runs])
    assert np.sqrt(np.mean(z**2)) < 2.5
    if case == "easy":
        assert abs(np.mean(z)) < 4.0 / np.sqrt(len(z))
        assert np.sqrt(np.mean(z**2)) > 0.4


def test_draws_at_the_ends_have_the_laws_of_target_and_base() -> None:
    truth = problem("easy")
    assert truth.target_mean is not None
    assert truth.target_var is not None
    means = np.array([run.target.mean() for run in easy_runs()])
    se = means.std(ddof=1) / np.sqrt(len(means))
    assert abs(means.mean() - truth.target_mean[0]) < 4 * se
    variances = np.array([run.target.var() for run in easy_runs()])
    assert abs(variances.mean() / truth.target_var[0] - 1.0) < 0.1
    base = np.array([run.base.mean() for run in easy_runs()])  # E logit p = digamma(2) - digamma(1) = 1
    assert abs(base.mean() - 1.0) < 4 * base.std(ddof=1) / np.sqrt(len(base))


def test_run_is_complete_and_counts_what_it_spent() -> None:
    run = easy_runs()[0]
    chains, kept = PAPER.chains, PAPER.draws // PAPER.chains // 2
    assert run.a.shape == run.lam.shape == run.delta.shape == (chains, kept)
    assert run.theta0 is not None
    assert run.theta0.shape == (chains, kept)
    assert run.target.shape[::2] == run.base.shape[::2] == (chains, 1)
    assert len(run.history) == 6
    assert [r.phase for r in run.history] == ["adapt"] * 6
    spent = np.diff([0, *(r.gradients for r in run.history)])
    assert np.all(spent >= 2 * chains * kept)  # at least one leapfrog a transition, warm-up included
    assert run.counts.gradients == run.history[-1].gradients
    assert run.log_z.lam[0] == 0
    assert run.log_z.lam[-1] == 1
    shut = {check.name for check in run.diagnostics.checks if not check.passed}
    assert shut <= {"k-hat"}, run.diagnostics.warnings  # k-hat alarms on good runs, too
    assert set(run.seconds) == {"compile", "adapt"}


def test_one_compilation_serves_all_adaptations_and_seeds() -> None:
    runs = easy_runs()
    assert all(run.seconds["compile"] < 0.1 for run in runs[1:])


def test_same_seed_same_run_and_draws_are_the_last() -> None:
    settings = ALL_ADAPTATIONS.replace(adaptations=6)
    seen: list[RoundRecord] = []
    again = run_paper(problem("easy").model, seed=3, draws=7, settings=settings, progress=seen.append)
    run = easy_runs()[3]
    np.testing.assert_array_equal(again.a, run.a)
    np.testing.assert_array_equal(again.log_z.mean, run.log_z.mean)
    np.testing.assert_array_equal(again.target, run.target[:, -7:])
    assert [r.khat for r in seen] == [r.khat for r in run.history]


def test_khat_stops_the_loop() -> None:
    full = hard_runs()[1]
    stopped = run_paper(problem("hard").model, seed=1, settings=PAPER)
    last = len(stopped.history)
    khats = np.array([record.khat for record in full.history])
    assert last < len(khats)
    assert khats[last - 1] < PAPER.khat
    np.testing.assert_array_equal([r.khat for r in stopped.history], khats[:last])


def test_a_run_that_never_saw_the_target_says_so() -> None:
    run = run_paper(problem("hard").model, seed=0, settings=ALL_ADAPTATIONS.replace(adaptations=1))
    assert run.target.shape == (PAPER.chains, 0, 1)
    assert not run.diagnostics.converged
    assert any("lam = 1" in message for message in run.diagnostics.warnings)
    fit = Fit.from_run(run, problem("hard").model, seed=0, settings=PAPER)
    assert fit.posterior.sizes["draw"] == 0


def test_unequal_modes_get_their_shares() -> None:
    mixture = gaussian_mixture([0.3, 0.7], [[-4.0], [5.0]], scales=[0.5, 1.0])
    settings = ALL_ADAPTATIONS.replace(adaptations=5, chains=8, draws=6000)
    runs = [run_paper(mixture.model, seed=seed, settings=settings) for seed in range(2)]
    shares = np.array([np.mean(chain > 0) for run in runs for chain in run.target[..., 0]])
    se = shares.std(ddof=1) / np.sqrt(len(shares))
    assert abs(shares.mean() - 0.7) < 4 * se
    assert se < 0.05
    z = [run.log_z.mean[-1] / run.log_z.stderr[-1] for run in runs]
    assert np.max(np.abs(z)) < 4.0


HALF_LINE = GeometricPath(lambda x: -0.5 * jnp.sum(x**2), lambda x: jnp.sum(jnp.log(x) - x))
FLAT = Kernels.fit([0.0, 0.5, 1.0], np.zeros(3), kernels=2)


def test_starts_have_positive_density_with_and_without_a_sampler() -> None:
    for sample in (None, lambda key: jnp.abs(jax.random.normal(key, (1,))) - 1.0):
        start = jax.vmap(
            lambda key, s=sample: paper._start(key, FLAT, path=HALF_LINE, sample=s, dim=1, link=CubicLink())
        )
        starts, found = jax.jit(start)(jax.random.split(jax.random.key(1), 50))
        assert np.all(found)
        joint = paper.joint_log_density(HALF_LINE)
        assert np.all(np.isfinite(jax.vmap(lambda x, joint=joint: joint(x, FLAT))(starts)))


def test_no_start_is_an_error_of_the_base() -> None:
    nowhere = GeometricPath(lambda x: -jnp.inf + 0.0 * x[0], lambda x: -jnp.inf + 0.0 * x[0])
    assert not bool(paper._start(jax.random.key(0), FLAT, path=nowhere, sample=None, dim=1, link=CubicLink())[1])


@pytest.mark.parametrize(
    ("changes", "named"),
    [({"draws": 100}, "draws"), ({"chains": 0}, "chains"), ({"adaptations": 0}, "adaptations")],
)
def test_settings_that_cannot_work_are_refused(changes: dict[str, int], named: str) -> None:
    with pytest.raises(InputError, match=named):
        run_paper(problem("easy").model, seed=0, settings=PAPER.replace(**changes))
