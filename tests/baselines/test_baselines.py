"""The baselines on problems with known answers: one run of each in the fast tier, many seeds in the slow one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tempered import assert_mean, converged, easy, first_that

import pathtemp as pt
from pathtemp.baselines.discrete import Update
from pathtemp.errors import InputError
from pathtemp.settings import LADDER, PAPER
from pathtemp.testing import beta_binomial, gaussian_mixture
from pathtemp.testing.calibration import assert_close, assert_rate, assert_scores

SMALL = LADDER.replace(draws=240, moves=5, adaptations=4)
CONTINUOUS = PAPER.replace(stop=False, adaptations=4)
HALVES = 8
"""Groups of draws from which standard errors come: the halves of four chains."""
SEEDS = range(64)
"""They show errors of a third of their size, and a bias of two standard errors, nine times in ten at least."""


@cache
def discrete(update: Update, seed: int) -> pt.Fit:
    return pt.baselines.discrete_tempering(easy().model, update=update, seed=seed, settings=SMALL)


@cache
def empirical(seed: int) -> pt.Fit:
    return pt.baselines.empirical_tempering(easy().model, seed=seed, settings=CONTINUOUS)


def assert_log_z(fit: pt.Fit) -> None:
    value, se = fit.log_marginal_likelihood
    assert_close(value, easy().log_z_end, se, df=HALVES - 1)


def halves(draws: np.ndarray) -> np.ndarray:
    """Draws (chain, draw) as two chains for each, since halves are all but independent."""
    half = draws.shape[1] // 2
    return draws[:, : 2 * half].reshape(-1, half)


@pytest.mark.parametrize("update", [pytest.param("importance", marks=pytest.mark.slow), "rao_blackwell"])
def test_discrete_tempering(update: Update) -> None:
    fit, truth = discrete(update, 0), easy()
    assert_log_z(fit)
    assert truth.target_mean is not None
    p = fit.posterior["p"].values
    assert_mean(halves(np.log(p / (1 - p))), float(truth.target_mean[0]))
    assert_mean(halves(fit.base["p"].values), 2.0 / 3.0)


def test_its_fit_opens_again(tmp_path: Path) -> None:
    discrete("importance", 0).save(tmp_path / "fit.nc")
    again = pt.load(tmp_path / "fit.nc")
    assert again.settings == discrete("importance", 0).settings
    assert again.log_marginal_likelihood == discrete("importance", 0).log_marginal_likelihood


def test_gradients_and_history_are_counted() -> None:
    fit = discrete("importance", 0)
    assert len(fit.history) == SMALL.adaptations
    updates = SMALL.chains * SMALL.draws * SMALL.moves * SMALL.adaptations
    # Each takes 1 to 4 leapfrogs, equally often.
    assert_close(fit.counts.gradients / updates, 2.5, np.sqrt(1.25 / updates))
    assert fit.history[-1].gradients == fit.counts.gradients


def test_a_fit_of_a_ladder_goes_to_a_file_and_comes_back(tmp_path: Path) -> None:
    fit = discrete("importance", 0)
    fit.save(tmp_path / "fit.nc")
    again = pt.load(tmp_path / "fit.nc")
    assert again.settings == SMALL
    np.testing.assert_array_equal(again.log_z.mean, fit.log_z.mean)
    assert "discrete tempering, importance" in str(again.summary())


@pytest.mark.slow
def test_empirical_tempering() -> None:
    fit = empirical(0)
    assert_log_z(fit)
    assert list(fit.diagnostics.log_z_by_estimator) == ["empirical", "path_sampling"]
    precision = next(check for check in fit.diagnostics.checks if check.name == "log z error")
    assert precision.passed == (fit.log_marginal_likelihood.se <= 0.1)


@pytest.mark.slow
def test_log_linear_tempering_with_the_truth_and_without() -> None:
    truth = easy()
    for log_zeta in (truth.log_z_end, None):
        fit = pt.baselines.log_linear_tempering(truth.model, log_zeta=log_zeta, seed=3, settings=CONTINUOUS)
        assert_log_z(fit)
        assert fit.posterior.sizes["draw"] > 0
    with pytest.raises(InputError, match="log_zeta"):
        pt.baselines.log_linear_tempering(truth.model, log_zeta=np.inf)


def test_nuts_samples_one_mode_well() -> None:
    truth = easy()
    assert truth.target_mean is not None
    assert truth.target_var is not None
    fit, again = (pt.baselines.nuts(truth.model, draws=1000, warm_up=300, seed=1) for _ in range(2))
    np.testing.assert_array_equal(fit.flat, again.flat)
    x, mean = halves(fit.flat[..., 0]), float(truth.target_mean[0])
    assert_mean(x, mean)
    assert_mean((x - mean) ** 2, float(truth.target_var[0]))
    # At some hundred effective draws in each of four chains, R-hat is below 1.05 but for one run in a million.
    assert fit.rhat < 1.05
    assert fit.gradients > fit.spent.sum() > 4000


def test_bad_input_is_refused_before_sampling() -> None:
    with pytest.raises(InputError, match="update"):
        pt.baselines.discrete_tempering(easy().model, update="bridge")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="ladder: it must increase from 0 to 1"):
        LADDER.replace(ladder=(0.0, 0.5, 0.5, 1.0))
    with pytest.raises(InputError, match="draws"):
        LADDER.replace(draws=1)
    with pytest.raises(InputError, match="acceptance"):
        LADDER.replace(acceptance=1.0)
    with pytest.raises(InputError, match="warm_up"):
        pt.baselines.nuts(easy().model, warm_up=3)


@pytest.mark.slow
class TestManySeeds:
    @pytest.mark.parametrize("update", ["importance", "rao_blackwell"])
    def test_errors_of_discrete_tempering_are_honest(self, update: Update) -> None:
        evidence = [discrete(update, seed).log_marginal_likelihood for seed in SEEDS]
        # Halves of one chain are not quite independent, which makes errors too small.
        assert_scores([(e.value - easy().log_z_end) / e.se for e in evidence], df=HALVES - 1, spread=(0.85, 1.5))

    def test_rao_blackwell_is_less_noisy(self) -> None:
        """By its own error, which is honest; over 64 runs the mean of either is known to four per cent."""
        noise = [
            np.mean([discrete(update, s).log_marginal_likelihood.se for s in SEEDS])
            for update in ("rao_blackwell", "importance")
        ]
        assert noise[0] < noise[1]

    def test_errors_of_empirical_tempering_are_honest_and_shrink(self) -> None:
        exact, fits = easy().log_z, [empirical(seed) for seed in SEEDS]
        assert exact is not None
        evidence = [fit.log_marginal_likelihood for fit in fits]
        # The logarithm of a share of few draws has a bias besides.
        z = [(e.value - easy().log_z_end) / e.se for e in evidence]
        assert_scores(z, df=HALVES - 1, spread=(0.85, 1.5), bias=0.6)

        def error(fit: pt.Fit, at: int) -> float:
            curve = fit.history[at].curve
            assert curve is not None
            return float(np.sqrt(np.mean((curve.mean - exact(curve.lam)) ** 2)))

        # The draws of the last adaptation are as many as of the first, and are spread better over the path.
        assert_rate(sum(error(fit, -1) < error(fit, 0) for fit in fits), len(fits), at_least=0.5)


@pytest.mark.slow
def test_discrete_tempering_without_round_trips_is_not_converged() -> None:
    """Two rungs between which log z changes by hundreds, and forty draws: no chain comes back from the other end."""
    small = SMALL.replace(adaptations=1, ladder=(0.0, 1.0), draws=40)
    fit = pt.baselines.discrete_tempering(beta_binomial("hard").model, settings=small)
    assert not fit.converged
    assert any("round trip" in warning for warning in fit.warnings)


@pytest.mark.slow
def test_empirical_tempering_converges_with_draws_enough() -> None:
    settings = PAPER.replace(stop=False, adaptations=2, draws=30_000)

    def run(seed: int) -> pt.Fit:
        return pt.baselines.empirical_tempering(easy().model, seed=seed, settings=settings)

    assert_log_z(first_that(converged, run))


@pytest.mark.slow
def test_nuts_stays_in_one_of_two_modes() -> None:
    """Of 24 chains all start on one side once in eight million runs."""
    far_apart = gaussian_mixture([0.3, 0.7], [[-8.0], [8.0]], scales=[0.5, 1.5], base_scale=8.0)
    assert pt.baselines.nuts(far_apart.model, draws=300, warm_up=200, chains=24, seed=1).rhat > 1.2
