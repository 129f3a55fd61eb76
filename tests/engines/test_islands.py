"""Islands search and adapt apart, tell each other of modes, and are judged together."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tempered import BUDGET, PRICE, first_that, narrow, problem

import pathtemp as pt
from pathtemp.engines.default.trace import Trace
from pathtemp.engines.islands.board import Board
from pathtemp.engines.islands.pool import joined_curve, joined_estimate, joined_history
from pathtemp.engines.progress import Silent
from pathtemp.errors import InfiniteDensity, MissingExtraError
from pathtemp.estimators.tours import TargetVisits
from pathtemp.io.travel import packed, unpacked
from pathtemp.kernels.kept import Kept, joined
from pathtemp.modes.local import from_covariance
from pathtemp.modes.mode import Mode
from pathtemp.modes.search import Search
from pathtemp.modes.union import united
from pathtemp.paths.geometric import GeometricPath
from pathtemp.result.curve import LogZ, unknown
from pathtemp.result.run import RoundRecord
from pathtemp.seeds import island_word
from pathtemp.testing.calibration import assert_close
from pathtemp.verdict.travel import check_islands

NAN, INF = float("nan"), float("inf")


def search_of(centres: list[float], starts: list[int], log_mass: list[float] | None = None) -> Search:
    """A search that lists unit normals of one dimension, six apart, of which a mixture is made."""

    def log_target(x: jax.Array) -> jax.Array:
        return jax.nn.logsumexp(-0.5 * (x[0] - jnp.arange(0.0, 30.0, 6.0)) ** 2)

    search = Search(GeometricPath(lambda x: -0.5 * jnp.sum(x**2) / 100, log_target), scale=np.ones(1), seed=0)
    masses = [0.0] * len(centres) if log_mass is None else log_mass
    laws = [from_covariance(np.array([x]), np.eye(1), 0.0) for x in centres]
    search.modes = [Mode(law, mass, "base", n, from_base=n) for law, mass, n in zip(laws, masses, starts, strict=True)]
    search.starts = search.base_starts = sum(starts)
    return search


class TestLists:
    def test_the_same_mode_is_one_and_its_starts_add_up(self) -> None:
        union = united([search_of([0.0, 6.0], [5, 3]), search_of([6.01, 12.0, 0.02], [2, 1, 7])])
        assert [round(float(law.centre[0])) for law in union.search.laws] == [0, 6, 12]
        assert [mode.starts for mode in union.search.modes] == [12, 5, 1]
        assert union.place.tolist() == [[0, 1, -1], [2, 0, 1]]
        assert union.search.base_starts == 18

    def test_an_island_is_told_of_what_it_lacks_and_of_nothing_negligible(self) -> None:
        union = united([search_of([0.0], [5]), search_of([0.0, 6.0, 12.0], [5, 1, 1], [0.0, -1.0, -9.0])])
        np.testing.assert_array_equal(union.lacking(0, least=0.01), [[6.0]])
        assert union.lacking(1, least=0.01).shape == (0, 1)

    def test_known_is_what_every_base_was_made_with(self) -> None:
        union = united([search_of([0.0, 6.0], [5, 3]), search_of([6.0, 12.0, 0.0], [2, 1, 7])])
        # The second island met its last mode too late.
        known = union.known_to_all([2, 2])
        assert known.tolist() == [False, True, False]
        assert [float(law.centre[0]) for law in union.ordered(known).laws] == [6.0, 0.0, 12.0]

    def test_the_parts_stay_as_they_are(self) -> None:
        one, two = search_of([0.0], [5]), search_of([0.0], [3])
        united([one, two])
        assert (one.modes[0].starts, one.starts, two.modes[0].starts) == (5, 5, 3)


class TestPool:
    def test_draws_count_in_proportion_to_visits(self) -> None:
        """Of a run that was thinned to every second visit, and one that was not, the same share of visits is kept."""

        def kept(stride: int) -> Kept:
            rows = 8 // stride
            return Kept(np.arange(float(rows))[:, None], np.arange(rows) % 2, np.arange(rows), rows, 8, stride)  # type: ignore[arg-type]

        both = joined([kept(1), kept(2)], chains=2)
        assert int(both.size) == 8
        assert int(both.stride) == 2
        assert np.asarray(both.chain).tolist() == [0, 0, 0, 0, 2, 3, 2, 3]

    def test_tours_of_all_chains(self) -> None:
        base, target = np.array([[1], [0], [1], [0]], bool), np.array([[0], [1], [0], [1]], bool)
        one, two = TargetVisits(1), TargetVisits(1)
        one.add(base, target)
        two.add(np.array([[1], [0], [0], [1]], bool), np.array([[0], [1], [1], [0]], bool))
        ended, under_way = TargetVisits.joined([one, two]).values()
        assert (sorted(ended), under_way.tolist()) == ([1.0, 2.0], [1.0])

    def test_visits_and_moves_along_the_path_add_up(self) -> None:
        traces = [Trace(1), Trace(2)]
        for count, trace in enumerate(traces, 1):
            trace.at_ends += count
            trace.moves += 10.0 * count
        whole = Trace.joined(traces)
        assert whole.at_ends.tolist() == [3.0, 3.0]
        assert set(whole.moves) == {30.0}
        assert len(whole.returns) == 3

    def test_an_island_that_knows_nothing_changes_nothing(self) -> None:
        lam = np.array([0.0, 0.5, 1.0])
        known = LogZ(lam, np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.1, 0.2]))
        curve = joined_curve([unknown(lam), known], np.array([0.0, 1.0]), same_path=True)
        np.testing.assert_array_equal(curve.mean, known.mean)
        np.testing.assert_allclose(curve.stderr, known.stderr)
        assert joined_estimate([(NAN, INF), (2.0, 0.2)], np.array([0.0, 1.0])) == (2.0, 0.2)
        assert np.isnan(joined_curve([unknown(lam), unknown(lam)], np.array([0.5, 0.5]), same_path=True).mean[-1])

    def test_paths_that_differ_widen_the_curve_between_the_ends_alone(self) -> None:
        lam, se = np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.1, 0.1])
        curves = [LogZ(lam, np.array([0.0, middle, 2.0]), se) for middle in (1.0, 3.0)]
        weights = np.array([0.5, 0.5])
        same, apart = (joined_curve(curves, weights, same_path=same) for same in (True, False))
        np.testing.assert_allclose(same.stderr, [0.0, 0.1 / np.sqrt(2), 0.1 / np.sqrt(2)])
        np.testing.assert_allclose(apart.stderr, [0.0, np.sqrt(0.005 + 1.0), 0.1 / np.sqrt(2)])

    def test_the_history_counts_the_gradients_of_all(self) -> None:
        def line(gradients: int) -> RoundRecord:
            return RoundRecord("adapt", gradients, 1, 0.0, NAN, NAN, 0.8)

        whole = joined_history([[line(10), line(30)], [line(20), line(25)]])
        assert [record.gradients for record in whole] == [10, 30, 35, 55]


class TestGate:
    def test_islands_that_agree_pass_and_one_that_does_not_is_named(self) -> None:
        se = np.full(4, 0.02)
        assert check_islands(np.array([1.0, 1.03, 0.98, 1.01]), se).passed
        closed = check_islands(np.array([1.0, 1.03, 0.6, 1.01]), se)
        assert not closed.passed
        assert closed.message.startswith("Island 2 gives log z(1) = 0.6")

    def test_an_island_that_knows_nothing_closes_it(self) -> None:
        closed = check_islands(np.array([1.0, NAN]), np.array([0.02, INF]))
        assert not closed.passed
        assert "number 1" in closed.message


def test_seeds_of_islands_differ() -> None:
    words = [island_word(seed, k) for seed in (0, 1) for k in range(100)]
    assert len(set(words)) == 200
    assert island_word(5, 0) == 5


def test_one_display_for_all() -> None:
    class Shown(Silent):
        told: list[int]

        def __init__(self) -> None:
            self.told = []

        def round(self, record: RoundRecord) -> None:
            self.told.append(record.gradients)

    shown = Shown()
    board = Board(shown, islands=2)
    line = RoundRecord("sample", 100, 1, 0.0, NAN, NAN, 0.8)
    for island, gradients in ((0, 100), (1, 50), (0, 200)):
        board.of(island).round(replace(line, gradients=gradients))
    assert shown.told == [100, 150, 250]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"islands": 0}, "islands"),
        ({"islands": 2.5}, "islands"),
        ({"islands": 2, "checkpoint": "run.nc"}, "checkpoint"),
        ({"islands": 2, "settings": pt.settings.PAPER}, "islands"),
        ({"islands": 4, "budget": 8_000}, "budget"),
        ({"client": 3}, "client"),
        ({"cluster": "slurm"}, "cluster"),
        ({"client": 3, "cluster": "local"}, "cluster"),
    ],
)
def test_what_islands_cannot_do_is_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(pt.InputError, match=f"^{named}: "):
        pt.temper(problem("mixture_1d").model, progress=False, **options)


class TestTravel:
    def test_a_model_arrives_as_it_was_and_once(self) -> None:
        content = packed(problem("mixture_1d").model)
        model = unpacked(content)
        assert model is unpacked(content)
        x = jnp.array([0.3])
        assert float(model.log_target(x)) == float(problem("mixture_1d").model.log_target(x))

    def test_what_cannot_travel_is_told(self) -> None:
        lock = __import__("threading").Lock()
        model = replace(problem("mixture_1d").model, log_target=lambda x: (lock, jnp.sum(x))[1])
        with pytest.raises(pt.InputError, match=r"^model: .* cannot be sent to workers"):
            packed(model)

    def test_errors_travel(self) -> None:
        there = InfiniteDensity(np.zeros(1), np.array([0.0, INF]), "x = 0", "; mend it")
        assert str(pickle.loads(pickle.dumps(there))) == str(there)
        assert str(pickle.loads(pickle.dumps(MissingExtraError("a", "b")))) == str(MissingExtraError("a", "b"))


@pytest.mark.slow
class TestRuns:
    def test_log_z_and_draws_are_those_of_all_islands(self) -> None:
        target = problem("mixture_1d")
        fit = pt.temper(target.model, seed=5, budget=BUDGET, islands=2, progress=False)
        value, se = fit.log_marginal_likelihood
        assert_close(value, float(target.log_z(1.0)), se)
        assert fit.counts.cost(PRICE) <= BUDGET
        assert fit.path.sizes["chain"] == 2 * pt.settings.DEFAULT.chains
        assert {check.name for check in fit.diagnostics.checks} >= {"islands", "tours", "mode visits"}
        longer = fit.extend(budget=60_000)
        assert longer.diagnostics.tours > fit.diagnostics.tours
        assert longer.log_marginal_likelihood.se < se
        with pytest.raises(pt.InputError, match=r"^extend: budget"):
            longer.extend(budget=100.0)

    def test_a_mode_that_one_island_knows_is_known_to_all(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The second island is kept from finding the narrow mode, which the first is told of by the user."""
        from pathtemp.engines.islands import archipelago

        target = narrow()
        centres = np.array([[8.0, 0.0]])
        tasks = archipelago.Begun.tasks

        def one_is_told(self: archipelago.Begun) -> list[Any]:
            first, *others = tasks(self)
            return [first, *(replace(task, modes=np.empty((0, 2))) for task in others)]

        monkeypatch.setattr(archipelago.Begun, "tasks", one_is_told)
        monkeypatch.setattr("pathtemp.engines.default.modes.MOST_SCANNED", 0)

        def run(seed: int) -> pt.Fit:
            return pt.temper(
                target.model, modes=centres, seed=seed, islands=2, chains=32, budget=240_000, progress=False
            )

        fit = first_that(lambda made: made.converged, run)
        assert fit.modes is not None
        assert len(fit.modes) == 2
        value, se = fit.log_marginal_likelihood
        assert_close(value, 0.0, se)
