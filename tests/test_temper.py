"""temper() end to end on problems with exact answers: honest errors, right shares, and verdicts to believe."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tempered import BUDGET, DATA, fit, named_model, problem, unsampled_model

import pathtemp as pt
from pathtemp.errors import InputError
from pathtemp.testing import gaussian_mixture

SEEDS = range(8)


def assert_honest(z: np.ndarray) -> None:
    """Scores that are centred, and neither too wide (errors too small) nor too narrow (errors too large)."""
    n = len(z)
    assert abs(np.mean(z)) * np.sqrt(n) < 3.5
    assert stats.chi2.sf(np.sum(z**2), n) > 1e-4
    assert stats.chi2.cdf(np.sum(z**2), n) > 1e-4


def log_z_scores(name: str) -> np.ndarray:
    evidence = [fit(name, seed).log_marginal_likelihood for seed in SEEDS]
    return np.array([(e.value - problem(name).log_z_end) / e.se for e in evidence])


def positive_share(name: str) -> np.ndarray:
    return np.array([float((fit(name, seed).posterior["theta"] > 0).mean()) for seed in SEEDS])


@pytest.mark.parametrize(("name", "share"), [("cauchy_pair", 0.5), ("mixture_1d", 0.7)])
class TestTwoModes:
    def test_log_z_errors_are_honest(self, name: str, share: float) -> None:
        assert_honest(log_z_scores(name))
        assert all(fit(name, seed).log_marginal_likelihood.se < 0.06 for seed in SEEDS)

    def test_both_modes_have_their_shares(self, name: str, share: float) -> None:
        shares = positive_share(name)
        assert np.all(np.abs(shares - share) < 0.12)
        assert abs(shares.mean() - share) < 4.0 * shares.std(ddof=1) / np.sqrt(len(shares))

    def test_the_whole_curve_is_right(self, name: str, share: float) -> None:
        exact = problem(name).log_z
        assert exact is not None
        lam = np.array([1e-3, 0.02, 0.2, 0.6, 1.0])
        errors = np.array([fit(name, s).log_z(lam) - exact(lam) for s in SEEDS])
        scores = errors / np.array([np.maximum(fit(name, s).log_z.se(lam), 0.01) for s in SEEDS])
        assert np.all(np.abs(scores.mean(axis=0)) * np.sqrt(len(SEEDS)) < 4.0)
        assert np.sqrt(np.mean(errors**2)) < 0.08

    def test_runs_are_converged_and_within_budget(self, name: str, share: float) -> None:
        fits = [fit(name, seed) for seed in SEEDS]
        assert sum(f.converged for f in fits) >= len(SEEDS) - 2
        for f in fits:
            assert f.counts.gradients <= 1.05 * BUDGET
            assert f.diagnostics.tours > 100
            assert f.converged == (not f.warnings)


def test_target_draws_have_the_law_of_the_target() -> None:
    draws = np.concatenate([fit("mixture_1d", s).posterior["theta"].values.ravel() for s in SEEDS])
    mode = draws[draws > 0]
    # Moments inside one mode do not wait for jumps between modes.
    assert mode.mean() == pytest.approx(8.0, abs=0.15)
    assert mode.std() == pytest.approx(1.5, rel=0.06)
    assert draws[draws < 0].std() == pytest.approx(0.5, rel=0.08)


def test_base_draws_have_the_law_of_the_base() -> None:
    draws = fit("cauchy_pair", 0).base["theta"].values.ravel()
    assert stats.kstest(draws, "norm", args=(0.0, 5.0), method="asymp").pvalue > 1e-4


def test_the_path_is_what_was_sampled() -> None:
    path = fit("cauchy_pair", 0).path
    lam, theta, delta = (path[k].values for k in ("lam", "theta0", "delta"))
    model = problem("cauchy_pair").model
    i, j = 7, 11
    point = jnp.array([theta[i, j]])
    assert delta[i, j] == pytest.approx(float(model.log_target(point) - model.log_base(point)), rel=1e-9)
    assert np.all((lam >= 0) & (lam <= 1))
    assert np.mean(lam == 0) > 0.03
    assert np.mean(lam == 1) > 0.05


def test_history_tells_the_story() -> None:
    history = fit("cauchy_pair", 0).history
    phases = [record.phase for record in history if record.phase != "modes"]
    assert phases[0] == "anneal"
    assert phases == sorted(phases, key=["anneal", "pin", "adapt", "sample"].index)
    assert phases.count("sample") >= 2
    # A look for modes may climb from nowhere and cost nothing; a round never does.
    assert np.all(np.diff([record.gradients for record in history if record.phase != "modes"]) > 0)
    assert history[-1].log_z == pytest.approx(fit("cauchy_pair", 0).log_marginal_likelihood.value)


def test_unequal_supports() -> None:
    fits = [fit("uniform_supports", seed) for seed in range(4)]
    scores = [(f.log_marginal_likelihood.value + np.log(2.0)) / f.log_marginal_likelihood.se for f in fits]
    assert_honest(np.array(scores))
    for f in fits:
        draws = f.posterior["theta"].values
        assert np.all((draws > 0) & (draws < 2))
        assert np.all(np.isfinite(f.log_z.mean))
        assert f.diagnostics.rejections > 0
        assert float(f.log_z(0.5)) == pytest.approx(-np.log(2.0), abs=0.15)
        assert np.any(np.isneginf(f.path["delta"].values))
    pooled = np.concatenate([f.posterior["theta"].values.ravel() for f in fits])
    assert pooled.mean() == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("modes", [1, 2])
def test_a_base_that_is_only_a_density(modes: int) -> None:
    model, log_z = unsampled_model(modes)
    fits = [pt.temper(model, seed=seed, budget=70_000, progress=False) for seed in range(4)]
    scores = [(f.log_marginal_likelihood.value - log_z) / f.log_marginal_likelihood.se for f in fits]
    assert_honest(np.array(scores))
    pooled = np.concatenate([f.posterior["theta"].values.reshape(-1, 2) for f in fits])
    if modes == 2:
        assert np.mean(pooled[:, 0] > 0) == pytest.approx(0.75, abs=0.04)
    else:
        np.testing.assert_allclose(pooled.mean(axis=0), [3.0, -2.0], atol=0.05)
    for f in fits:
        assert not f.exact_base
        assert {"base"} <= {check.name for check in f.diagnostics.checks}
        # Draws at lam = 0 are the chains' own.
        base = f.base["theta"].values.reshape(-1, 2)
        np.testing.assert_allclose(base.mean(axis=0), 1.0, atol=0.6)
        np.testing.assert_allclose(base.std(axis=0), 4.0, rtol=0.15)
    assert sum(f.converged for f in fits) >= 3


class TestNamedVariables:
    @staticmethod
    @cache
    def fits() -> list[pt.Fit]:
        return [pt.temper(named_model()[0], seed=seed, budget=BUDGET, progress=False) for seed in range(4)]

    def test_posterior_has_names_shapes_and_constraints(self) -> None:
        posterior = self.fits()[0].posterior
        assert set(posterior.data_vars) == {"mu", "tau", "b"}
        assert posterior["mu"].dims == ("chain", "draw")
        assert posterior["b"].shape[2:] == (2,)
        assert bool((posterior["tau"] > 0).all())
        assert set(self.fits()[0].base.data_vars) == {"mu", "tau", "b"}

    def test_log_z(self) -> None:
        evidence = [f.log_marginal_likelihood for f in self.fits()]
        assert_honest(np.array([(e.value - named_model()[1]) / e.se for e in evidence]))

    def test_moments(self) -> None:
        precision = 1 / 25 + 3
        means = {"mu": DATA.sum() / precision, "tau": 2.0 * np.sqrt(2 / np.pi)}
        for name, mean in means.items():
            by_seed = [float(f.posterior[name].mean()) for f in self.fits()]
            assert np.mean(by_seed) == pytest.approx(mean, abs=0.06)
        sd = float(np.sqrt(np.mean([f.posterior["mu"].var() for f in self.fits()])))
        assert sd == pytest.approx(precision**-0.5, rel=0.08)
        np.testing.assert_allclose(
            np.mean([f.posterior["b"].mean(("chain", "draw")) for f in self.fits()], axis=0), 1.0, atol=0.06
        )


class TestWithoutABudget:
    @staticmethod
    @cache
    def fit() -> pt.Fit:
        return pt.temper(problem("cauchy_pair").model, seed=3, progress=False)

    def test_stops_by_itself_with_all_draws_and_converged(self) -> None:
        f = self.fit()
        assert f.converged
        assert f.warnings == []
        assert f.posterior["theta"].shape == (64, 64, 1)
        assert f.counts.gradients < 500_000
        assert f.log_marginal_likelihood.se <= 0.02
        error = f.log_marginal_likelihood.value - problem("cauchy_pair").log_z_end
        assert abs(error) < 4.0 * f.log_marginal_likelihood.se

    def test_extend_adds_draws_and_goes_on(self) -> None:
        first = self.fit()
        before = first.posterior["theta"].values.copy()
        more = first.extend(draws=20)
        assert more.posterior["theta"].shape == (64, 84, 1)
        assert np.all(np.abs(more.posterior["theta"].values) > 0)
        assert more.counts.gradients > first.counts.gradients
        assert more.path.sizes["iteration"] > first.path.sizes["iteration"]
        assert more.diagnostics.tours > first.diagnostics.tours
        assert more.log_marginal_likelihood.se <= 1.05 * first.log_marginal_likelihood.se
        assert len(more.history) > len(first.history)
        # The draws are the latest of each chain: new ones, and as many of the old as there is room for before them.
        assert not np.array_equal(more.posterior["theta"].values[:, -1], before[:, -1])
        np.testing.assert_array_equal(first.posterior["theta"].values, before)
        assert more.converged

    def test_a_real_fit_survives_a_file(self, tmp_path: Path) -> None:
        f = self.fit()
        f.save(tmp_path / "fit.nc")
        back = pt.load(tmp_path / "fit.nc")
        np.testing.assert_array_equal(back.posterior["theta"], f.posterior["theta"])
        np.testing.assert_array_equal(back.path["lam"], f.path["lam"])
        assert back.log_marginal_likelihood == f.log_marginal_likelihood
        assert back.converged == f.converged
        assert back.diagnostics.checks == f.diagnostics.checks
        assert back.settings == f.settings
        with pytest.raises(InputError, match="extend"):
            back.extend(draws=1)


@cache
def far_modes() -> pt.Model:
    """Narrow modes 15 base scales away, to either side."""
    return gaussian_mixture([0.4, 0.6], [[-15.0], [15.0]], scales=0.05, base_scale=1.0).model


@pytest.mark.parametrize("seed", range(3))
def test_a_hopeless_run_says_so(seed: int) -> None:
    """The budget is enough to go back and forth to one of the modes: the other is lost, or hardly seen."""
    f = pt.temper(far_modes(), seed=seed, budget=20_000, progress=False)
    assert not f.converged
    assert f.warnings
    for warning in f.warnings:
        assert warning.endswith(".")
        assert len(warning.split()) > 6
    assert "NOT converged" in repr(f)
    assert f.warnings[0][:40] in str(f.summary())


@pytest.mark.parametrize("seed", range(3))
def test_a_mode_that_no_start_reaches_is_not_called_converged(seed: int) -> None:
    """One wide mode where the base is and a narrow one outside it: the budget is enough for the first alone."""
    f = pt.temper(one_sided(), seed=seed, budget=20_000, progress=False)
    found = float((f.posterior["theta"] > 20).mean())
    assert not f.converged or found > 0.1


@cache
def one_sided() -> pt.Model:
    return gaussian_mixture([0.5, 0.5], [[0.0], [30.0]], scales=[1.0, 0.3], base_scale=8.0).model


def test_asking_for_more_draws_than_the_budget_gives_is_said() -> None:
    f = pt.temper(problem("cauchy_pair").model, seed=1, budget=BUDGET, draws=1000, progress=False)
    assert not f.converged
    assert any("asked for" in warning for warning in f.warnings)
    assert f.posterior.sizes["draw"] < 1000
