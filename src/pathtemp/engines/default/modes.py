"""The search for modes, a stage of preparing: after the annealing pass, again for a mode met later, and at the end."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pathtemp._types import FloatArray, IntArray
from pathtemp.engines.default import early
from pathtemp.engines.default.chains import Chains
from pathtemp.engines.default.effort import THOROUGH, work_of
from pathtemp.engines.default.late_search import AFTERWARDS, LATE_DRAWS, LATE_SLOPES, late_search_cost
from pathtemp.engines.default.verdict import Frozen, target_draws, with_strict_rhat
from pathtemp.engines.protocol import Host
from pathtemp.io.persistent import persistent
from pathtemp.kernels.rounds import Record
from pathtemp.model.evaluate import energies_of, exact_draws
from pathtemp.model.model import Model
from pathtemp.modes import choose
from pathtemp.modes.ascent import CHUNK, LANES
from pathtemp.modes.beside import left_out
from pathtemp.modes.find import BATCH, among, base_stream, find_modes, narrower
from pathtemp.modes.limits import MOST_FURTHER, MOST_SCANNED, Limits
from pathtemp.modes.local import DENSE_DIM
from pathtemp.modes.mixture_base import SAFETY
from pathtemp.modes.search import Search
from pathtemp.modes.shares import mode_shares
from pathtemp.modes.table import Modes
from pathtemp.modes.union import united
from pathtemp.paths.geometric import GeometricPath
from pathtemp.result.run import Counts, Run
from pathtemp.seeds import Draws, Stream, rng, seed_word
from pathtemp.verdict import modes as gates

if TYPE_CHECKING:
    from pathtemp.engines.default.engine import TemperEngine
    from pathtemp.engines.default.plan import TemperPlan

SEARCH_SHARE = 0.1
"""Share of the budget for the search after the annealing pass."""

MOST_SEARCH = 20_000
"""Gradient evaluations of that search where no budget is given."""

MOST_FREE = 400_000
"""Gradient evaluations of that search with all that it does for the sake of its power, where no budget is given."""

LEAST_SEARCH = 4 * LANES * CHUNK
"""Gradient evaluations of that search at least, enough for a few dozen starts."""

SCAN_SHARE, POWER_SHARE, LAWS_SHARE = 0.1, 0.05, 0.15
"""Shares of the budget for the densities of the scan, of stating its power, and of local laws and their parts."""

SEARCH_SECONDS = 0.2
"""Share of the seconds of a run, where it has a limit, for that search."""

NO_SCAN = 5_000
"""Gradient evaluations of a run without a budget that buy no scan; each of the others buys one draw."""

FURTHER = 1.25
"""Points of a scan for each draw of the base in it: some lie further out."""

MOST_OF_PART = 0.2
"""Largest share of what is left of a run for the search at its end."""

SEARCHED_AFTER = (2, 6)
"""Adaptive rounds after which modes are looked for among target draws."""

MOST_RESTARTS = 3

BUDGETED = (8, 32)
"""Points that each planted mode is held against, at most, where the user gives a budget."""

AGAIN_SECONDS = 0.4
"""Share of the seconds of a run, where it has a limit, after which it does not begin again."""

ROUNDS_AFTER = 4
"""Rounds that must fit into what is left for a run to be prepared again."""


@persistent(
    *("hints", "about", "_rng", "_search", "_user_path", "_user_end", "_mixture", "_why", "_known"),
    *("_rounds", "_restarts", "_looked_at", "_excess"),
)
class ModeSearch:
    """What a run knows of the modes, and the base that it makes of them.

    Parameters
    ----------
    model, plan
        The user's model, and what is asked for.
    start
        Starts theta (chains, dim) of the chains.
    hints, about
        Points (n, dim) near modes that the user knows of, and how the base was made if by us.
    """

    def __init__(
        self, model: Model, start: FloatArray, plan: TemperPlan, *, hints: FloatArray | None, about: str
    ) -> None:
        self.hints = np.empty((0, model.dim)) if hints is None else hints
        self.about = about
        self._model, self._seed, self._budget = model, seed_word(plan.seed), plan.budget
        self._rng = rng(Stream.MODE_STARTS, self._seed)
        self._search = Search(GeometricPath(model.log_base, model.log_target), scale=_spread(start), seed=self._seed)
        self._user_path = (0.0, np.inf)
        self._user_end = start
        self._mixture, self._why = False, ""
        self._known = 0
        self._rounds = 0
        self._restarts: int | None = None
        self._looked_at = 0
        self._excess = -np.inf

    def prepare(self, engine: TemperEngine, host: Host) -> None:
        """Annealing pass, search, choice of the base; of a mode that was met in a round, the choice alone."""
        if self._restarts is None:
            early.begin_search(self._model)
            engine.anneal(host, kept_back=LEAST_SEARCH)
            chains = engine.chains
            self._user_path = (chains.reached, chains.length)
            self._user_end = chains.last_level.theta
            with host.timed("search"):
                self._find(engine, host)
            self._restarts = 0
        else:
            self._restarts += 1
        self._rounds = 0
        self._choose(engine, host)

    def _find(self, engine: TemperEngine, host: Host) -> None:
        """Search from the base and along the annealing pass."""
        model, planned = self._model, host.schedule.planned
        lam, theta = engine.chains.pool.lam_theta()
        most = SEARCH_SHARE * planned if self._budget is not None else min(SEARCH_SHARE * planned, MOST_SEARCH)
        pace = max(engine.seconds["anneal"], 1e-9) / max(engine.counts.gradients, 1)
        most = max(min(most, SEARCH_SECONDS * host.max_seconds / pace), LEAST_SEARCH)
        self._search.room, self._search.price = engine.room_before_rounds(host), engine.price
        draws = (
            base_stream(model.sample_base, self._seed)
            if model.sample_base is not None
            else among(theta[lam <= 0], self._rng)
        )
        work = work_of(engine.chains.settings)
        bought = SCAN_SHARE * planned / (FURTHER * engine.price) if engine.price else max(planned - NO_SCAN, 1024)
        drawn = model.sample_base is not None and model.dim <= DENSE_DIM
        scan = int(min(bought, work.scan, MOST_SCANNED // model.dim)) if drawn else 0
        seconds = SEARCH_SECONDS * host.max_seconds
        free = self._budget is None and scan > 0 and MOST_FREE * pace <= seconds
        if free:
            self._search.room = MOST_FREE
        limits = Limits(
            most,
            scan,
            slopes=scan if free else None,
            starts=work.starts if free else 0,
            colder=free and work is THOROUGH,
            held=work.held if free else min(work.held, BUDGETED),
            power=POWER_SHARE * planned / engine.price if engine.price else np.inf,
            further=MOST_FURTHER if free and (MOST_FREE + MOST_FURTHER) * pace <= seconds else 0.0,
        )
        self._search.climb(self.hints, found_by="given", random=False, most_gradients=most)

        def after_first() -> None:
            # Where the path is to start from the user's base, XLA works while the rest of the search does.
            if choose.why_not(self._model, self._search, self._user_path, self._user_end, vague=work.vague):
                engine.chains.begin_compiling()

        find_modes(self._search, draws, (lam, theta), limits, rng=self._rng, after_first=after_first)
        prior = engine.chains.parameters.prior
        self._search.annealed = float(prior.log_c[-1] - prior.at_base) if engine.chains.reached >= 1.0 else np.nan
        engine.free += max(self._search.counts.gradients - int(most), 0) if free else 0
        self._note(engine, host)

    def _pay(self, engine: TemperEngine) -> None:
        """Count what the search has spent."""
        spent, self._search.counts = self._search.counts, Counts()
        engine.chains.counts = engine.chains.counts + spent

    def _note(self, engine: TemperEngine, host: Host) -> None:
        """Count what the search has spent, and say so."""
        self._pay(engine)
        host.note(engine.line("modes"))

    def _choose(self, engine: TemperEngine, host: Host) -> None:
        """Choose the base by the length of the path; the chosen path is annealed when this returns."""
        with host.timed("search"):
            self._search.price = engine.price
            self._search.room = min(engine.room_before_rounds(host), LAWS_SHARE * host.schedule.planned)
            self._search.refine()
            self._known = len(self._search.modes)
            known = self._model, self._search, self._user_path, self._user_end
            law, vague = choose.bent_law(*known, self._rng), work_of(engine.chains.settings).vague
            self._why = "" if law is not None else choose.why_not(*known, vague=vague)
            if not self._why and law is None:
                self._search.divide()
            self._pay(engine)
        if self._why:
            return
        model = choose.with_mixture(self._model, self._search) if law is None else choose.with_bent(self._model, law)
        old, new = engine.chains, self._on(model, engine)
        engine.chains = new
        engine.anneal(host)
        count = len(choose.legs(self._search))
        fair = law is not None or choose.fair(self._search, self._user_end)
        paths = (self._user_path, (new.reached, new.length))
        own = SAFETY if law is not None else choose.safety(self._search)
        better, self._why = choose.verdict(count, *paths, all_reached=fair, bent=law is not None, safety=own)
        if better or self._mixture:
            self._mixture = True
            engine.forget()
        else:
            old.counts, engine.chains = new.counts, old

    def _on(self, model: Model, engine: TemperEngine) -> Chains:
        """Chains on the path from a base that knows the modes, which go on counting."""
        old = engine.chains
        assert model.sample_base is not None
        early.begin_round(engine.chains_of(model, engine.start), engine.start[0])
        theta = exact_draws(model.sample_base, seed=self._seed, stream=Draws.STARTS, count=old.settings.chains)
        energies = energies_of(GeometricPath(model.log_base, model.log_target), theta)
        old.counts = old.counts + Counts(0, len(theta))
        return _go_on_counting(old, engine.chains_of(model, (theta, energies)))

    def met_new_mode(self, engine: TemperEngine, record: Record, host: Host) -> bool:
        """Whether target draws of this round lead to a mode of some mass, and there is room to begin again with it."""
        self._rounds += 1
        if self._restarts == MOST_RESTARTS or self._rounds not in SEARCHED_AFTER:
            return False
        left, again = engine.room_before_rounds(host), self._again_cost(engine, host)
        cost = self._late_cost(host.schedule.planned, engine.price)
        if left < cost + again:
            return False
        theta = np.asarray(record.theta)[np.asarray(record.theta_lam) >= 1.0]
        new = self._late_search(theta, cost, engine, host)
        return bool(np.any(self._search.shares()[new] >= gates.MATTERS))

    def learn(self, theta: FloatArray, engine: TemperEngine, host: Host) -> bool:
        """Climb from modes (n, dim) that other islands know; whether to begin again with one that is new and matters.

        Nothing is done where there is no room to begin again: the verdict of all islands names what this one lacks.
        """
        search = self._search
        left, again = engine.room_before_rounds(host), self._again_cost(engine, host)
        if search.without_list or self._restarts == MOST_RESTARTS or left < again + LANES * CHUNK:
            return False
        search.room, search.price = left - again, engine.price
        new = search.climb(theta, found_by="island", random=False, most_gradients=search.room)
        self._note(engine, host)
        return bool(np.any(search.shares()[new] >= gates.MATTERS))

    @classmethod
    def united(cls, parts: Sequence[ModeSearch]) -> ModeSearch:
        """What the searches of several islands know together; known is a mode that every base was made with."""
        if len(parts) == 1:
            return parts[0]
        whole, together = copy(parts[0]), united([part._search for part in parts])
        known = together.known_to_all([part._known for part in parts])
        whole._search, whole._known = together.ordered(known), int(np.count_nonzero(known))
        whole._mixture = any(part._mixture for part in parts)
        whole._excess = max(part._excess for part in parts)
        reasons = {part._mixture: part._why for part in parts[::-1]}
        counts = {kind: sum(part._mixture == kind for part in parts) for kind in reasons}
        whole._why = "; ".join(f"{counts[kind]} islands: {why}" for kind, why in reasons.items())
        return whole

    def _again_cost(self, engine: TemperEngine, host: Host) -> float:
        """Gradient equivalents that it takes to begin again: an annealing pass, and a few rounds."""
        # Its moves have two gradients and more for each density.
        return ROUNDS_AFTER * engine.round_cost + (1.0 + 0.5 * engine.price) * max(host.spent_on("anneal"))

    def _late_cost(self, planned: float, price: float) -> float:
        """Gradient equivalents that a search among target draws may cost in a run of so many; a density at a price."""
        return late_search_cost(10.0 * MOST_SEARCH if self._budget is None else planned, price)

    def kept_back(self, engine: TemperEngine, left: float) -> float:
        """Gradient equivalents of the ``left`` ones for the search at the end; none where they are few."""
        cost = self._late_cost(engine.charged + left, engine.price)
        return cost if cost <= MOST_OF_PART * left else 0.0

    def search_draws(self, engine: TemperEngine, host: Host, room: float) -> bool:
        """Once for the rounds there are: climb from the target draws, and weigh what is new.

        A mode that is found here came too late for the base. A run without a budget begins again with it; else the
        base stays as it is, and the verdict names the mode.
        """
        if self._looked_at == engine.chains.rounds:
            return False
        self._looked_at = engine.chains.rounds
        self._search.room, self._search.price = room, engine.price
        with host.timed("search"):
            theta = target_draws(engine.chains).flat
            if len(self._late_search(theta, room, engine, host)):
                self._search.refine()
            self._excess = self._search.excess(theta)
            self._note(engine, host)
        return True

    def found_late(self, engine: TemperEngine, host: Host) -> bool:
        """Make ready to begin again with a mode of some mass that was found after the last round; whether there is one.

        What was spent does not count for the second turn, whose rounds are as many as those of a new run.
        """
        late = self._search.shares()[self._known :]
        no_room = self._budget is not None or self._restarts == MOST_RESTARTS or host.late(AGAIN_SECONDS)
        if no_room or self._search.without_list or not np.any(late >= gates.MATTERS):
            return False
        engine.free = engine.counts.gradients
        if not self._mixture:
            # On the same path the chains need other random numbers, which follow the number of the round.
            rounds = engine.chains.rounds
            engine.chains = _go_on_counting(engine.chains, engine.chains_of(self._model, engine.start))
            engine.chains.rounds = rounds
            engine.forget()
            engine.anneal(host)
        return True

    def _late_search(self, theta: FloatArray, room: float, engine: TemperEngine, host: Host) -> IntArray:
        """Climb from the target draws (n, dim) that are explained least; returns the numbers of new modes."""
        search = self._search
        if len(theta) == 0 or search.without_list or room < LANES * CHUNK + engine.price * AFTERWARDS:
            return np.zeros(0, np.int64)
        after = engine.price * AFTERWARDS
        search.room, search.price = room - after, engine.price
        theta = self._rng.permutation(theta)[: LATE_DRAWS if engine.price else None]
        seen = search.scan(theta, gradients=LATE_SLOPES * search.room, drawn=len(theta))
        picked = search.least_explained(seen, BATCH)
        new = search.climb(seen.theta[picked], found_by="draws", random=False, most_gradients=search.room)
        search.room += after
        self._note(engine, host)
        return np.array(new, np.int64)

    def added_to(self, run: Run, frozen: Frozen) -> Run:
        """The outcome with what is known of the modes, and gates on it; ``frozen`` is what it was made of."""
        search, draws = self._search, frozen.draws
        share: FloatArray = np.zeros(0)
        se: FloatArray = np.zeros(0)
        visited: IntArray = np.zeros(0, np.int64)
        if search.modes and not search.without_list:
            labels = search.labels(draws.flat).reshape(draws.chain.shape)
            share, se, visited = mode_shares(labels, draws.numbered_tours, len(search.modes))
        several = search.crowded or int(np.count_nonzero(share > gates.MATTERS)) > 1
        checks = run.diagnostics.checks if several else with_strict_rhat(run, frozen.rhat_limit(several=False))
        if not search.without_list:
            expected = search.shares()
            checks = (
                *checks,
                gates.check_unseen(search.unseen, search.base_starts),
                gates.check_missing(search.missing),
                gates.check_narrower(narrower(search)),
                gates.check_mass(self._excess),
                gates.check_visits(visited[: self._known], expected[: self._known]),
                gates.check_unknown(expected[self._known :]),
            )
        elif search.ridges and self._model.sample_base is not None:
            checks = (*checks, gates.check_apart(left_out(search, float(run.log_z.mean[-1]), draws.flat)))
        base = run.base
        if self._mixture and self._model.sample_base is not None:
            how = {"seed": self._seed, "stream": Draws.BASE, "count": base.shape[0] * base.shape[1]}
            base = exact_draws(self._model.sample_base, **how).reshape(base.shape)
        diagnostics = replace(run.diagnostics, checks=checks)
        return replace(run, base=base, diagnostics=diagnostics, modes=self._table(share, se, visited))

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
            unseen=float("nan") if search.without_list else search.unseen,
            mixture=self._mixture,
            why="; ".join(filter(None, (self._why, self.about))),
            looked_at=search.base_starts + search.scanned,
            noticed=None if search.without_list else search.power,
        )


def _go_on_counting(old: Chains, new: Chains) -> Chains:
    """The new chains, which count on from what the old ones have spent and met."""
    new.counts, new.seconds, new.rejected = old.counts, old.seconds, old.rejected
    return new


def _spread(theta: FloatArray) -> FloatArray:
    """Spread of the starts in each coordinate, robust where the base is heavy-tailed."""
    low, high = np.quantile(theta, [0.16, 0.84], axis=0)
    return np.maximum(0.5 * (high - low), 1e-8)
