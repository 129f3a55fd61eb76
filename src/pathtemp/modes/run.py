"""A run that looks for modes: after the annealing pass, between the adaptive rounds, and after the frozen ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from pathtemp._types import FloatArray, IntArray
from pathtemp.adapt import FEWEST_ROUNDS, AdaptiveRun
from pathtemp.engine import Engine
from pathtemp.evaluate import energies_of, exact_draws
from pathtemp.kernels.rounds import Record
from pathtemp.model import Model
from pathtemp.modes import choose, gates
from pathtemp.modes.ascent import CHUNK, LANES
from pathtemp.modes.local import DENSE_DIM
from pathtemp.modes.search import BATCH, Search, base_stream, find_modes
from pathtemp.modes.shares import mode_shares
from pathtemp.modes.table import Modes
from pathtemp.paths.geometric import GeometricPath
from pathtemp.progress import Progress
from pathtemp.run import Run
from pathtemp.verdict import target_draws

SEARCH_SHARE = 0.1
"""Share of the budget for the search after the annealing pass."""

MOST_SEARCH = 20_000
"""Gradient evaluations of that search where no budget is given."""

LEAST_SEARCH = 4 * LANES * CHUNK
"""Gradient evaluations of that search at least, enough for a few dozen starts."""

MOST_SCANNED = 8_000_000
"""Numbers in the base draws that are scanned at once (64 MB)."""

MOST_SCAN = 131_072
"""Draws of the base whose density is looked at: where one in ten thousand leads to a mode, about a dozen of them do."""

NO_SCAN = 5_000
"""Gradient evaluations of a budget that buy no scan; each of the others buys one draw."""

LOOK_SHARE = 0.01
"""Share of the budget for each look at target draws; there is none where that does not pay for a first step."""

LEAST_LOOK = 4 * LANES * CHUNK
"""Gradient evaluations of a look at least, enough for most ascents to arrive."""

MOST_OF_PART = 0.2
"""Largest share of what a run is extended by for the look at its end."""

LOOK_AT = (2, 6)
"""Adaptive rounds after which target draws are looked at."""

MOST_RESTARTS = 3

Start = tuple[FloatArray, FloatArray]


class ModesRun:
    """The adaptive loop with a base that may come to know the modes.

    Parameters
    ----------
    model, start
        The user's model, and starts theta (chains, dim) with their energies (chains, 2).
    make_engine
        Makes the engine of a model from its starts.
    budget
        Gradient evaluations of the whole run, None where it stops by itself.
    """

    def __init__(
        self,
        model: Model,
        start: Start,
        make_engine: Callable[[Model, Start], Engine],
        progress: Progress,
        *,
        seed: int,
        budget: float | None,
    ) -> None:
        self.hints: FloatArray = np.empty((0, model.dim))
        self.about = ""
        self._model, self._make, self._progress, self._seed = model, make_engine, progress, seed
        self._budget = budget
        self._run = AdaptiveRun(make_engine(model, start), progress)
        self._rng = np.random.default_rng([seed % 2**32, 4])
        self._search = Search(GeometricPath(model.log_base, model.log_target), scale=_spread(start[0]), seed=seed)
        self._user_path = (0.0, np.inf)
        self._user_end = start[0]
        self._mixture, self._why = False, ""
        self._known = 0
        self._rounds = 0
        self._restarts: int | None = None
        self._look_room = 0.0
        self._looked_at = 0

    @property
    def after_round(self) -> Callable[[], None]:
        """Called between rounds, see :class:`pathtemp.adapt.AdaptiveRun`."""
        return self._run.after_round

    @after_round.setter
    def after_round(self, call: Callable[[], None]) -> None:
        self._run.after_round = call

    @property
    def limit(self) -> tuple[float, bool] | None:
        """How far the frozen rounds go, see :meth:`sample`."""
        return self._run.limit

    def prepare(self, *, hints: FloatArray, about: str) -> None:
        """Before the warm-up: points (n, dim) near modes that the user knows of, and how the base was made if by us."""
        self.hints, self.about = hints, about

    @property
    def engine(self) -> Engine:
        """The engine at work."""
        return self._run.engine

    def warm_up(self, budget: float, *, least: float) -> None:
        """Annealing pass, search, choice of the base, adaptive rounds; from the choice on again for a new mode."""
        if self._restarts is None:
            self._run.anneal(budget, kept_back=LEAST_SEARCH)
            self._user_path = (self.engine.reached, self.engine.length)
            self._user_end = self.engine.last_level.theta
            self._find(budget)
            self._settle(budget)
            self._restarts = 0
        while not self._run.warm_up(budget, least=least, watch=partial(self._new_mode, budget=budget)):
            self._restarts += 1
            self._rounds = 0
            self._settle(budget)

    def sample(self, budget: float, *, until_done: bool) -> None:
        """Frozen rounds, then a look at the target draws; what that may cost is kept back for it."""
        cost = self._look_cost(budget)
        # A part that is short goes to the rounds.
        self._look_room = cost if cost <= MOST_OF_PART * (budget - self.engine.counts.gradients) else 0.0
        self._run.sample(budget - self._look_room, until_done=until_done)
        self._look_at_draws()

    def sample_on(self) -> None:
        """Frozen rounds until the limit that was set when the first of them began, and the look after them."""
        self._run.sample_on()
        self._look_at_draws()

    def _look_cost(self, budget: float) -> float:
        """Gradient evaluations that a look may cost in a run of ``budget``."""
        share = LOOK_SHARE * (10.0 * MOST_SEARCH if self._budget is None else budget)
        return 0.0 if share < LANES * CHUNK else max(share, LEAST_LOOK)

    def _look_at_draws(self) -> None:
        """Once for the rounds there are: climb from the target draws, and weigh what is new.

        A mode that is found here came too late for the base, which stays as it is; the verdict names it.
        """
        if self._looked_at == self.engine.rounds:
            return
        self._looked_at = self.engine.rounds
        if len(self._look(target_draws(self.engine).flat, self._look_room)):
            self._search.refine()
            self._pay()
        self._run.after_round()

    def _find(self, budget: float) -> None:
        """Search from the base and along the annealing pass."""
        engine, model = self.engine, self._model
        lam, theta = engine.pool.lam_theta()
        most = SEARCH_SHARE * budget if self._budget is not None else min(SEARCH_SHARE * budget, MOST_SEARCH)
        most = max(most, LEAST_SEARCH)
        self._search.room = self._run.before_rounds(budget) - engine.counts.gradients
        draws = (
            base_stream(model.sample_base, self._seed)
            if model.sample_base is not None
            else _again(theta[lam <= 0], self._rng)
        )
        scan = int(np.clip(budget - NO_SCAN, 1024, min(MOST_SCAN, MOST_SCANNED // model.dim)))
        if model.sample_base is None or model.dim > DENSE_DIM:
            scan = 0
        self._search.climb(self.hints, found_by="given", random=False, most_gradients=most)
        find_modes(self._search, draws, (lam, theta), most_gradients=most, scan=scan, rng=self._rng)
        self._pay()

    def _pay(self) -> None:
        """Count on the engine what the search has spent."""
        spent, self._search.counts = self._search.counts, type(self._search.counts)()
        self.engine.counts = self.engine.counts + spent
        self._run.note("modes")

    def _settle(self, budget: float) -> None:
        """Choose the base by the length of the path; the chosen path is annealed when this returns."""
        self._search.refine()
        self._known = len(self._search.modes)
        self._why = choose.why_not(self._model, self._search, self._user_path, self._user_end)
        if self._why:
            return
        self._search.divide()
        old = self._run
        model = choose.with_mixture(self._model, self._search)
        assert model.sample_base is not None
        theta = exact_draws(model.sample_base, seed=self._seed, stream=1, count=self.engine.settings.chains)
        energies = energies_of(GeometricPath(model.log_base, model.log_target), theta)
        engine = self._make(model, (theta, energies))
        engine.counts, engine.seconds, engine.rejected = old.engine.counts, old.engine.seconds, old.engine.rejected
        new = AdaptiveRun(engine, self._progress)
        new.history, new.after_round = list(old.history), old.after_round
        new.anneal(budget)
        count = len(choose.legs(self._search))
        all_reached = choose.fair(self._search, self._user_end)
        paths = (self._user_path, (engine.reached, engine.length))
        better, self._why = choose.verdict(count, *paths, all_reached=all_reached)
        if better or self._mixture:
            self._run, self._mixture = new, True
        else:
            old.engine.counts, old.history = engine.counts, new.history

    def _new_mode(self, record: Record, *, budget: float) -> bool:
        """Whether target draws of this round lead to a mode of some mass, and there is room to begin again with it."""
        self._rounds += 1
        if self._restarts == MOST_RESTARTS or self._rounds not in LOOK_AT:
            return False
        left = self._run.before_rounds(budget) - self.engine.counts.gradients
        again = FEWEST_ROUNDS * self.engine.round_gradients + self._annealing
        if left < self._look_cost(budget) + again:
            return False
        theta = np.asarray(record.theta)[np.asarray(record.theta_lam) >= 1.0]
        new = self._look(theta, self._look_cost(budget))
        return bool(np.any(self._search.shares()[new] >= gates.MATTERS))

    @property
    def _annealing(self) -> int:
        """Gradient evaluations of the dearest annealing pass so far."""
        spent = np.array([record.gradients for record in self._run.history])
        passes = np.array([record.phase == "anneal" for record in self._run.history])
        return int(np.diff(spent, prepend=0)[passes].max())

    def _look(self, theta: FloatArray, room: float) -> IntArray:
        """Climb from the target draws (n, dim) that are explained least; returns the numbers of new modes."""
        search = self._search
        if len(theta) == 0 or search.hopeless or room < LANES * CHUNK:
            return np.zeros(0, np.int64)
        search.room = room
        picked = search.strange(theta, search.log_target(theta), BATCH)
        new = search.climb(theta[picked], found_by="draws", random=False, most_gradients=room)
        self._pay()
        return np.array(new, np.int64)

    def result(self) -> Run:
        """Draws, diagnostics and verdict, with what is known of the modes; asking changes nothing."""
        engine, search = self.engine, self._search
        draws = target_draws(engine)
        run = self._run.result()
        if search.modes and not search.hopeless:
            labels = search.labels(draws.flat).reshape(draws.chain.shape)
            share, se, visited = mode_shares(labels, draws.numbered_tours, len(search.modes))
        else:
            share, se = np.zeros(0), np.zeros(0)
            visited = np.zeros(0, np.int64)
        checks = run.diagnostics.checks
        if not search.hopeless:
            expected = search.shares()
            checks = (
                *checks,
                gates.check_unseen(search.unseen, search.starts),
                gates.check_visits(visited[: self._known], expected[: self._known]),
                gates.check_unknown(expected[self._known :]),
            )
        base = run.base
        if self._mixture and self._model.sample_base is not None:
            shape = run.base.shape
            base = exact_draws(self._model.sample_base, seed=self._seed, stream=2, count=shape[0] * shape[1]).reshape(
                shape
            )
        return replace(
            run,
            base=base,
            counts=engine.counts,
            diagnostics=replace(run.diagnostics, checks=checks),
            modes=self._table(share, se, visited),
        )

    def _table(self, share: FloatArray, se: FloatArray, visited: IntArray) -> Modes:
        search = self._search
        order = np.argsort(-share, kind="stable")
        listed = [search.modes[k] for k in order]
        centres = np.array([mode.law.centre for mode in listed]).reshape(len(order), self._model.dim)
        return Modes(
            centre=self._model.draws(centres) if len(order) else {},
            log_density=np.array([mode.law.height for mode in listed]),
            share=share[order],
            share_se=se[order],
            visits=visited[order],
            found_by=tuple(mode.found_by for mode in listed),
            starts=np.array([mode.starts for mode in listed], np.int64),
            starts_made=search.starts,
            unseen=float("nan") if search.hopeless else search.unseen,
            mixture=self._mixture,
            why="; ".join(filter(None, (self._why, self.about))),
            looked_at=search.base_starts + search.scanned,
        )

    def go_on(self, *, draws: int | None, budget: float | None) -> Run:
        """More frozen rounds, see :meth:`pathtemp.adapt.AdaptiveRun.go_on`.

        The base stays what it is: a mode that it does not know stays in the verdict, however long the run.
        """
        limit = self._run.make_room(draws=draws, budget=budget)
        if not self._run.frozen:
            self.warm_up(limit, least=self.engine.settings.adapt_least * limit)
        self.sample(limit, until_done=budget is None)
        return self.result()


def _spread(theta: FloatArray) -> FloatArray:
    """Spread of the starts in each coordinate, robust where the base is heavy-tailed."""
    low, high = np.quantile(theta, [0.16, 0.84], axis=0)
    return np.maximum(0.5 * (high - low), 1e-8)


def _again(theta: FloatArray, rng: np.random.Generator) -> Callable[[int], FloatArray]:
    """Draws out of those there are, for a base without a sampler."""
    return lambda count: theta[rng.integers(len(theta), size=count)]
