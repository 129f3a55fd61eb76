import dataclasses
import itertools
import warnings

import numpy as np
import pytest
import xarray as xr
from scipy.special import logit, softmax
from synthetic import FAILED, diagnostics, fit_of, odd_model

from pathtemp.api.compare import bayes_factor, compare, probability_interval
from pathtemp.errors import InputError
from pathtemp.result.curve import LogZ
from pathtemp.result.fit import Fit
from pathtemp.testing.calibration import assert_rate

PLAIN, DENSITY_ONLY = fit_of(odd_model()), fit_of(odd_model(exact_base=False))
SEEDS = itertools.count()


def fit(log_z: float, se: float = 0.1, *, exact_base: bool = True) -> Fit:
    curve = LogZ(np.array([0.0, 1.0]), np.array([0.0, log_z]), np.array([0.0, se]))
    return dataclasses.replace(PLAIN if exact_base else DENSITY_ONLY, log_z=curve, seed=next(SEEDS))


def test_the_bayes_factor_is_the_difference_with_errors_added_in_squares():
    log_bf, se = bayes_factor(fit(-2.0, 0.3), fit(-5.0, 0.4))
    assert (log_bf, se) == pytest.approx((3.0, 0.5))
    assert bayes_factor(fit(-5.0), fit(-2.0)).log_bf == pytest.approx(-3.0)


def test_probabilities_are_those_of_bayes_rule_best_first():
    log_z = {"a": -3.0, "b": -1.0, "c": -2.5}
    fits = {name: fit(value) for name, value in log_z.items()}
    table = compare(fits)
    assert list(table.index) == ["b", "c", "a"]
    exact = dict(zip(log_z, softmax(list(log_z.values())), strict=True))
    np.testing.assert_allclose(table["probability"], [exact[name] for name in table.index])
    assert table.loc["b", ["log_bf", "log_bf_se"]].tolist() == [0.0, 0.0]
    assert table.loc["a", "log_bf"] == pytest.approx(-2.0)
    assert table.loc["a", "log_bf_se"] == pytest.approx(np.hypot(0.1, 0.1))
    assert ((table["lower"] < table["probability"]) & (table["probability"] < table["upper"])).all()


def test_prior_weights_count():
    fits = {"a": fit(-1.0), "b": fit(-1.0)}
    table = compare(fits, weights={"b": 3, "a": 1})
    assert table.loc["b", "probability"] == pytest.approx(0.75)
    assert list(table.index) == ["b", "a"]


def test_far_apart_models_do_not_overflow():
    table = compare({"a": fit(-7000.0, 3.0), "b": fit(-1.0), "c": fit(-90000.0)})
    assert table["probability"].tolist() == pytest.approx([1.0, 0.0, 0.0])
    assert np.isfinite(table.to_numpy()).all()


@pytest.mark.slow
@pytest.mark.parametrize("se", [(0.3, 0.2, 0.25), (0.05, 1.0, 0.1), (1.0, 0.7, 1.3)])
def test_intervals_hold_the_truth_as_often_as_they_say(se):
    """Estimates with normal errors about a known log evidence."""
    rng, truth, se = np.random.default_rng(11), np.array([0.0, -0.7, -1.5]), np.array(se)
    exact, runs = softmax(truth), 400
    intervals = [probability_interval(truth + se * rng.normal(size=3), se) for _ in range(runs)]
    held = np.sum([(low < exact) & (exact < high) for low, high in intervals], axis=0)
    for count in held:
        # 95%, but for the normal approximation; intervals of half or twice the width hold 67% or 99.99%.
        assert_rate(int(count), runs, at_least=0.93, at_most=0.97)


def test_the_interval_of_two_models_is_that_of_their_log_odds():
    lower, upper = probability_interval(np.array([2.0, -1.0]), np.array([0.3, 0.4]))
    np.testing.assert_allclose(logit([lower[0], upper[0]]), [3 - 1.96 * 0.5, 3 + 1.96 * 0.5], atol=0.03)
    np.testing.assert_allclose([lower[1], upper[1]], [1 - upper[0], 1 - lower[0]], rtol=1e-9)


def test_a_base_that_is_only_a_density_is_warned_about():
    warning = (
        r"compare: b may not be compared: .* no evidence: the base is a density of unknown mass; start from a base"
    )
    with pytest.warns(UserWarning, match=warning):
        compare({"a": fit(-1.0), "b": fit(-2.0, exact_base=False)})
    with pytest.warns(UserWarning, match="bayes_factor: fit_a may not be compared"):
        bayes_factor(fit(-2.0, exact_base=False), fit(-1.0))


@pytest.mark.parametrize(("width", "warned"), [(100.0, False), (10_000.0, True)])
def test_a_vague_prior_is_warned_about(width, warned):
    """Also where the variable is the exponential of a normal, or one of its elements does not vary."""
    x = np.random.default_rng(1).normal(size=(4, 1000))
    dims = ("chain", "draw")
    posterior, base = (
        xr.Dataset({"mu": (dims, s * x), "tau": (dims, np.exp(s * x / 100)), "one": (dims, np.ones_like(x))})
        for s in (1.0, width)
    )
    fits = {"a": dataclasses.replace(fit(-1.0), posterior=posterior, base=base), "b": fit(-2.0)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compare(fits)
        bayes_factor(fits["b"], fits["a"])
    said = [str(w.message) for w in caught]
    assert len(said) == (2 if warned else 0)
    assert all("posterior of 'mu' of" in s and "a vague prior lowers the evidence" in s for s in said)


def test_a_run_that_has_not_converged_is_warned_about():
    failed = dataclasses.replace(fit(-1.0), diagnostics=diagnostics(FAILED))
    with pytest.warns(UserWarning, match="not converged: fit_b;"):
        bayes_factor(fit(-1.0), failed)


def test_runs_that_share_a_seed_are_warned_about():
    one, two = fit(-1.0), fit(-2.0)
    with pytest.warns(UserWarning, match=r"share a seed .* give each run a seed= of its own"):
        bayes_factor(one, dataclasses.replace(two, seed=one.seed))
    with pytest.warns(UserWarning, match=r"compare: some of a \(seed \d+\), b"):
        compare({"a": one, "b": dataclasses.replace(two, seed=one.seed)})


def test_good_fits_are_compared_without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compare({"a": fit(-1.0), "b": fit(-2.0)})
        bayes_factor(fit(-1.0), fit(-2.0))


@pytest.mark.parametrize(
    ("fits", "weights", "sentence"),
    [
        ({"a": -1.0}, None, "at least two fits"),
        ({"a": -1.0, "b": float("nan")}, None, "log evidence of 'b' is not known"),
        ({"a": -1.0, "b": -2.0}, {"a": 1.0}, "they must agree"),
        ({"a": -1.0, "b": -2.0}, {"a": 1.0, "b": 0.0}, "weights of .b.: it must be a positive number"),
    ],
)
def test_bad_input_is_one_sentence(fits, weights, sentence):
    with pytest.raises(InputError, match=sentence):
        compare({name: fit(value) for name, value in fits.items()}, weights=weights)
