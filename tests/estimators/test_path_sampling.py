from __future__ import annotations

import numpy as np
import pytest
from exact_paths import link, scale_log_z, scale_path

from pathtemp.errors import InputError
from pathtemp.estimators import marginal, path_sampling
from pathtemp.testing.calibration import assert_close, assert_scores

AT = np.linspace(0.0, 1.0, 101)


def joint_draws(seed: int | list[int], n: int = 3000):
    rng = np.random.default_rng(seed)
    a = rng.uniform(size=n)
    lam, slope = link(a)
    return a, slope * scale_path(rng, lam)


def test_trapezoid_of_the_ordered_draws():
    rng = np.random.default_rng(1)
    a, u = rng.uniform(size=50), rng.normal(size=50)
    order = np.argsort(a)
    estimate = path_sampling(a, u)
    np.testing.assert_array_equal(estimate.at, a[order])
    assert estimate.log_ratio[0] == pytest.approx(np.trapezoid(u[order], a[order]), abs=1e-14)


def test_exact_between_draws_and_flat_beyond_them():
    # U = 2 a between .2 and .8, continued as .4 and 1.6.
    a = np.linspace(0.2, 0.8, 7)
    estimate = path_sampling(a, 2.0 * a, [0.0, 0.1, 0.25, 0.5, 0.8, 1.0])
    expected = [0.0, 0.04, 0.08 + 0.0225, 0.08 + 0.21, 0.08 + 0.6, 0.08 + 0.6 + 0.32]
    np.testing.assert_allclose(estimate.mean, expected, atol=1e-14)


def test_ties_are_averaged():
    estimate = path_sampling([0.0, 0.0, 1.0], [1.0, 3.0, 4.0])
    np.testing.assert_allclose(estimate.mean, [0.0, 3.0])


def test_closed_form_with_the_link():
    a, u = joint_draws(2, n=50_000)
    found = path_sampling(a, u, AT)
    inside = found.stderr > 0
    assert_close(found.mean[inside], scale_log_z(link(AT)[0])[inside], found.stderr[inside])


def test_unbiased_for_log_z():
    mean, se = np.array([path_sampling(*joint_draws([5, run], n=300), AT).log_ratio for run in range(400)]).T
    assert_close(np.mean(mean), -np.log(10.0), np.std(mean) / 20.0)
    # Errors of 300 draws vary and go with the gradients, so the scores are those of their mean square.
    assert_scores((mean + np.log(10.0)) / np.sqrt(np.mean(se**2)))


def test_too_few_draws_for_an_error():
    assert np.isnan(path_sampling([0.0, 1.0], [1.0, 1.0]).stderr[-1])
    assert np.isnan(path_sampling([0.0, 0.5, 1.0], [1.0, 1.0, 1.0], groups=[0, 0, 0]).stderr[-1])


def test_marginal_is_uniform_when_c_is_z():
    a, u = joint_draws(3, n=20_000)
    lam, slope = link(a)
    log_p = marginal(a, u, slope * (-9.0 / (1.0 + 9.0 * lam)), AT)
    assert_close(log_p.mean, 0.0, log_p.stderr)
    assert np.trapezoid(np.exp(log_p.mean), AT) == pytest.approx(1.0, abs=1e-12)


def test_marginal_is_z_over_c():
    a, u = joint_draws(4, n=20_000)
    lam, _ = link(AT)
    truth = scale_log_z(lam) - np.log(np.trapezoid(np.exp(scale_log_z(lam)), AT))
    log_p = marginal(a, u, np.zeros(a.size), AT)
    by_groups = marginal(a, u, np.zeros(a.size), AT, groups=np.arange(a.size) % 64)
    assert_close(log_p.mean, truth, log_p.stderr)
    # Errors from 64 groups have relative standard errors of .09.
    np.testing.assert_allclose(by_groups.stderr, log_p.stderr, rtol=0.6)


@pytest.mark.parametrize(
    ("a", "u", "at", "word"),
    [
        ([0.0, 1.0], [0.0], None, "u must have 2"),
        ([0.0, 1.0], [0.0, -np.inf], None, "f'"),
        ([0.0, np.inf], [0.0, 0.0], None, "a must be finite"),
        ([0.0, 1.0], [0.0, 0.0], [1.0, 0.0], "at"),
    ],
)
def test_bad_input_names_the_argument(a, u, at, word):
    with pytest.raises(InputError, match=word):
        path_sampling(a, u, at)


def test_groups_must_match():
    with pytest.raises(InputError, match="groups"):
        path_sampling([0.0, 1.0], [0.0, 0.0], groups=[0])
