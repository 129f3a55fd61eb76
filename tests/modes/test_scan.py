"""What points of a scan tell of the modes: how many lie in the basin of each, exactly where the modes are normal."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from pathtemp.modes.local import ROWS, Local, from_covariance
from pathtemp.modes.scan import Scan, cosine

DIM = 6
CENTRES = np.array([np.zeros(DIM), np.full(DIM, 2.0)])
SCALES, LOG_WEIGHTS = np.array([1.0, 0.4]), np.log([0.7, 0.3])


def log_parts(theta: np.ndarray) -> np.ndarray:
    """Log densities (n, 2) of two normals of unlike widths."""
    squares = np.sum((theta[:, None] - CENTRES) ** 2, axis=2) / SCALES**2
    return LOG_WEIGHTS - 0.5 * squares - DIM * np.log(SCALES) - 0.5 * DIM * np.log(2 * np.pi)


def gradient(theta: np.ndarray) -> np.ndarray:
    parts = log_parts(theta)
    weight = np.exp(parts - logsumexp(parts, axis=1, keepdims=True))
    return np.einsum("nk,nkd->nd", weight / SCALES**2, CENTRES - theta[:, None])


def laws() -> list[Local]:
    heights = [float(logsumexp(log_parts(centre[None]))) for centre in CENTRES]
    return [from_covariance(c, s**2 * np.eye(DIM), h) for c, s, h in zip(CENTRES, SCALES, heights, strict=True)]


def scanned(theta: np.ndarray, log_q: np.ndarray) -> Scan:
    scan = Scan(theta, log_q, gradient(theta))
    scan.explain(laws(), [float(x) for x in LOG_WEIGHTS])
    return scan


def test_points_are_held_by_the_mode_in_whose_basin_they_lie() -> None:
    theta = 3.0 * np.random.default_rng(0).normal(size=(2000, DIM))
    parts = log_parts(theta)
    scan = scanned(theta, logsumexp(parts, axis=1))
    np.testing.assert_array_equal(scan.held(2, np.ones(2000, bool)), np.bincount(parts.argmax(axis=1), minlength=2))
    np.testing.assert_array_equal(scan.held(2, np.zeros(2000, bool)), 0)


def test_tails_that_no_law_has_are_held_by_the_direction_of_the_gradient() -> None:
    """Densities are not as the laws say, so that gradients alone tell."""
    theta = 3.0 * np.random.default_rng(1).normal(size=(2000, DIM))
    scan = scanned(theta, logsumexp(log_parts(theta), axis=1) + 10.0)
    held = scan.held(2, np.ones(2000, bool))
    basins = np.bincount(log_parts(theta).argmax(axis=1), minlength=2)
    assert np.all(held <= basins)
    assert held[0] > 0.9 * basins[0]


def test_from_far_away_all_modes_lie_in_one_direction() -> None:
    theta = 3000.0 * np.random.default_rng(2).normal(size=(500, DIM))
    scan = scanned(theta, np.full(500, -1.0))
    np.testing.assert_array_equal(scan.held(2, np.ones(500, bool)), 0)


def test_two_scans_joined_are_one() -> None:
    theta = 3.0 * np.random.default_rng(3).normal(size=(300, DIM))
    log_q = logsumexp(log_parts(theta), axis=1)
    one, other = scanned(theta, log_q), scanned(theta[:100], log_q[:100])
    both = other.joined(scanned(theta[100:], log_q[100:]))
    both.explain(laws(), [float(x) for x in LOG_WEIGHTS])
    for name in ("theta", "log_q", "gradient", "known", "cosine", "owner"):
        np.testing.assert_array_equal(getattr(both, name), getattr(one, name))


def test_lengths_and_cosines_are_those_of_points_and_gradients_in_units_of_the_law() -> None:
    rng = np.random.default_rng(3)
    root = rng.normal(size=(DIM, DIM))
    law = from_covariance(rng.normal(size=DIM), root @ root.T + 0.1 * np.eye(DIM), 0.0)
    theta, slope = (3.0 * rng.normal(size=(2 * ROWS + 5, DIM)) for _ in range(2))
    slope[7] = np.nan
    z, turned = np.linalg.solve(law.matrix, (theta - law.centre).T).T, slope @ law.matrix
    np.testing.assert_allclose(law.standardise(theta), z, rtol=1e-9, atol=1e-12)
    square, found = law.square_and_cosine(theta, slope)
    np.testing.assert_allclose(square, np.sum(z**2, axis=1), rtol=1e-9)
    np.testing.assert_allclose(square, law.square(theta), rtol=1e-12)
    expected = -np.sum(z * turned, axis=1) / (np.linalg.norm(z, axis=1) * np.linalg.norm(turned, axis=1))
    expected[7] = 1.0
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(cosine(law, theta, slope), found)
