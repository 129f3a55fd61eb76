"""The fit: what a run gives back to its user."""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import xarray as xr

from pathtemp._types import FloatArray
from pathtemp.api.arguments import positive_number, whole_number, yes_or_no
from pathtemp.api.given import check_given
from pathtemp.errors import InputError
from pathtemp.io.printable import printable
from pathtemp.model.model import Model
from pathtemp.modes.table import Modes
from pathtemp.result.arviz import installed_form, sample_stats, tree_of
from pathtemp.result.curve import LogZ
from pathtemp.result.draws import SAMPLE_DIMS, draws_dataset, stored_name
from pathtemp.result.kept_run import KeptRun, kept_state, unpickled
from pathtemp.result.other_names import OtherNames
from pathtemp.result.predictive import predictions
from pathtemp.result.run import Counts, Diagnostics, RoundRecord, Run
from pathtemp.result.summary import Summary, summarise, with_error
from pathtemp.seeds import seed_word
from pathtemp.settings import LadderSettings, PaperSettings, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Continuing(Protocol):
    """A run under way, with which a fit goes on."""

    def extend(self, *, draws: int | None, budget: float | None) -> Fit:
        """The fit of all rounds together, after more of them."""
        ...


class LogEvidence(NamedTuple):
    """log z(1) - log z(0) and its standard error, in nats."""

    value: float
    se: float


@dataclass(frozen=True, eq=False, repr=False)
class Fit(OtherNames):
    """Draws, normalising constant and verdict of one run.

    Parameters
    ----------
    posterior, base
        Draws at lam = 1 and lam = 0, constrained, over (chain, draw, ...), named as the model names them.
    path
        The joint path over (chain, iteration): ``a``, ``lam``, ``delta`` (log target - log base) and, where
        the engine kept it, ``theta0``, the first unconstrained coordinate. And over (point): ``point_a`` and
        ``point_lam`` of the draws of ``path_draws``.
    path_draws
        Some draws of the joint path by name, constrained, over (chain, draw, ...) with one chain; a figure shows any
        variable along the path from them. Empty where the engine kept none.
    log_z
        The curve log z(lam) - log z(0): ``log_z(lam)``, ``log_z.se(lam)``, ``log_z.lam``, ``log_z.mean``.
    diagnostics
        The checks behind the verdict, and the numbers behind the checks.
    history
        One record a round.
    counts
        Gradient and density evaluations, everything included.
    seconds
        Wall seconds by part.
    settings, seed
        With the model, all that the run depended on.
    name
        What the model is called.
    exact_base
        Whether the base gave exact draws; it is then normalised.
    about_base
        What the base is, in one line, where the front end says so.
    known_evidence
        Whether log z(1) - log z(0) is a log marginal likelihood; None where nobody says, and ``exact_base`` does.
    remedy
        What would make it one, where it is none and the front end knows.
    base_is_prior
        Whether the draws of the base are those of the prior.
    sample_stats
        Of each target draw over (chain, draw), where the engine keeps it: ``lp``, the log target density on the
        unconstrained scale; ``tour``, which draws of the same tour share; ``walker``, the chain of the run that made
        it. And over (lam_bin): the acceptance and the visits along the path.
    data
        The data, by group of ArviZ: ``observed_data`` and ``constant_data``.
    modes
        The separated modes that the run knows, their shares and what may be unseen; None where it did not look.
    versions
        Of Python and the libraries that made the run.
    created_at
        When, in ISO 8601, UTC.
    model
        The model, None after loading from a file.
    continuation
        The run under way, with which :meth:`extend` goes on; None where it cannot.
    """

    posterior: xr.Dataset
    base: xr.Dataset
    path: xr.Dataset
    log_z: LogZ
    diagnostics: Diagnostics
    history: tuple[RoundRecord, ...]
    counts: Counts
    seconds: dict[str, float]
    settings: Settings | PaperSettings | LadderSettings
    seed: int
    name: str
    exact_base: bool
    about_base: str = ""
    known_evidence: bool | None = None
    remedy: str = ""
    base_is_prior: bool = False
    path_draws: xr.Dataset = field(default_factory=xr.Dataset)
    sample_stats: xr.Dataset = field(default_factory=xr.Dataset)
    data: dict[str, xr.Dataset] = field(default_factory=dict)
    modes: Modes | None = None
    versions: dict[str, str] = field(default_factory=dict)
    created_at: str = ""
    model: Model | None = None
    continuation: Continuing | None = None

    @classmethod
    def from_run(
        cls,
        run: Run,
        model: Model,
        *,
        seed: int,
        settings: Settings | PaperSettings | LadderSettings,
        versions: Mapping[str, str] | None = None,
        continuation: Continuing | None = None,
    ) -> Fit:
        """Name and constrain what an engine hands over."""
        return cls(
            posterior=draws_dataset(model, run.target),
            base=draws_dataset(model, run.base, of_base=True),
            path=_path(run),
            path_draws=xr.Dataset()
            if run.points is None
            else draws_dataset(model, run.points.theta[None], of_base=True),
            log_z=run.log_z,
            diagnostics=run.diagnostics,
            history=run.history,
            counts=run.counts,
            seconds=dict(run.seconds),
            settings=settings,
            seed=seed,
            name=model.name,
            exact_base=model.sample_base is not None,
            about_base="" if model.about is None else model.about.text.partition("\n")[0],
            known_evidence=None if model.about is None else model.about.evidence,
            remedy="" if model.about is None else model.about.remedy,
            base_is_prior=model.about is not None and model.about.prior,
            sample_stats=sample_stats(run),
            data=dict(model.data),
            modes=run.modes,
            versions=library_versions() if versions is None else dict(versions),
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            model=model,
            continuation=continuation,
        )

    def extend(self, model: Any = None, *, draws: int | None = None, budget: float | None = None) -> Fit:
        """Go on where the run stopped; the kernel stays as it is, and all frozen rounds count.

        Parameters
        ----------
        model
            Of a fit that was loaded or unpickled: the model that the run was of, as a front end gives it. A file holds
            Stan programs, so that none is needed there.
        draws
            More target draws for each chain.
        budget
            More gradient equivalents, over all chains, as for :func:`pathtemp.temper`; with ``draws`` alone, as many
            as they need.

        Returns
        -------
        A new fit, of all rounds together; this one stays as it is, but cannot be extended again.
        """
        check_more(draws, budget)
        if draws is None and budget is None:
            raise InputError("extend: give budget= in gradient equivalents, or draws= for each chain, or both")
        if model is not None:
            check_given(model)
        return self._going_on(model).extend(draws=draws, budget=budget)

    def _going_on(self, model: Any) -> Continuing:
        """The run under way."""
        if self.continuation is None:
            raise InputError("extend: this kind of run cannot go on; run it again with a larger budget")
        if not isinstance(self.continuation, KeptRun):
            if model is not None:
                raise InputError("model: the fit has its own; only one that was loaded or unpickled needs it again")
            return self.continuation
        return self.continuation.with_model(self.model if model is None else model)

    @property
    def log_constant(self) -> LogEvidence:
        """The logarithm of z(1) / z(0), with its standard error: the log constant of the target's kernel.

        NaN, with an infinite error, where no chain made a round trip. Where :attr:`is_evidence`, it is the log marginal
        likelihood.
        """
        if self.diagnostics.tours == 0:
            return LogEvidence(float("nan"), float("inf"))
        return LogEvidence(float(self.log_z.mean[-1]), float(self.log_z.stderr[-1]))

    @property
    def log_marginal_likelihood(self) -> LogEvidence:
        """:attr:`log_constant` where it is a log marginal likelihood; elsewhere with a warning that it is none."""
        if not self.is_evidence:
            warnings.warn(f"log_marginal_likelihood: {self.why_no_evidence}", stacklevel=2)
        return self.log_constant

    @property
    def is_evidence(self) -> bool:
        """Whether log z(1) - log z(0) is a log marginal likelihood: base and prior are normalised alike."""
        return self.exact_base if self.known_evidence is None else self.known_evidence

    @property
    def why_no_evidence(self) -> str:
        """Why log z(1) - log z(0) is no evidence, and what would make it one; empty where it is one."""
        if self.is_evidence:
            return ""
        reason = "the base is a density of unknown mass" if not self.exact_base else "its prior may not have mass 1"
        remedy = self.remedy or "start from a base with exact draws, and normalise the prior in the target"
        return f"log z of {printable(self.name)} is the log constant of a kernel, no evidence: {reason}; {remedy}"

    @property
    def converged(self) -> bool:
        """The verdict: True when every check passed."""
        return self.diagnostics.converged

    @property
    def warnings(self) -> list[str]:
        """What did not pass, where on the path, and what to do; empty when converged."""
        return self.diagnostics.warnings

    def summary(self, *, rows: int | None = 20, var_names: Sequence[str] | None = None) -> Summary:
        """The verdict first, then log z, the diagnostics and a posterior table of at most ``rows`` rows.

        ``var_names`` chooses the variables of the table, and their order.
        """
        if rows is not None:
            whole_number("rows", rows, least=0)
        return summarise(self, rows=rows, var_names=var_names)

    def stan_variable(self, name: str) -> FloatArray:
        """Posterior draws of a variable, all chains one after the other: shape (draws, ...), as CmdStanPy has them."""
        stored = stored_name(self.posterior, name)
        if stored not in self.posterior.data_vars:
            known = ", ".join(map(str, self.posterior.data_vars))
            raise InputError(f"stan_variable: there is no {name!r}; there are {known}")
        values = self.posterior[stored].values
        return np.asarray(values.reshape(-1, *values.shape[2:]))

    def to_arviz(self, *, log_likelihood: bool | None = None) -> Any:
        """What the installed ArviZ takes: a DataTree, or, before its version 1.0, InferenceData.

        Groups: ``posterior``; ``prior`` where the base is the prior, and ``base`` where it is not; ``log_likelihood``;
        ``sample_stats``; ``observed_data`` and ``constant_data``, where the front end knows them; and ``path``, the
        joint path. Draws are in eight chains at most: the chains of the run, of which there are many, are joined in
        order to so many groups.

        Parameters
        ----------
        log_likelihood
            Whether to compute the group of that name, one number for each draw and observation, for LOO. By default
            where it is cheap: Stan programs that generate ``log_lik`` have it, PyMC and NumPyro models compute up to
            two million of them.

        Notes
        -----
        A group cannot hold a slash in a name: ``a/b`` becomes ``a%2Fb`` (and ``%`` becomes ``%25``).
        """
        return installed_form(self.to_datatree(log_likelihood=log_likelihood))

    def to_datatree(self, *, log_likelihood: bool | None = None) -> xr.DataTree:
        """The same as a DataTree, whichever ArviZ is installed."""
        if log_likelihood is not None:
            yes_or_no("log_likelihood", log_likelihood)
        return tree_of(self, log_likelihood)

    def predict(self, *, seed: int = 0) -> xr.Dataset:
        """New data from the posterior predictive distribution, one set for each draw, over (chain, draw, ...).

        PyMC and NumPyro models draw them with the data that they were given, as their own functions do. Of a Stan
        program these are the generated quantities whose names end in ``_rep``, ``_pred``, ``_tilde`` or ``_new``.
        """
        return predictions(self, seed_word(seed))

    def plot(self, *, var_names: str | Sequence[str] | None = None, **options: Any) -> Figure:
        """The figure to look at first, see :func:`pathtemp.plots.plot`.

        With ``var_names``, a row of histograms for each scalar of these variables: draws of the target and of the base.
        """
        from pathtemp.plots import marginals, plot

        return plot(self, **options) if var_names is None else marginals(self, var_names=var_names, **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything but the model to a netCDF file, see :func:`pathtemp.io.storage.save`."""
        from pathtemp.io.storage import save

        save(self, path)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write one HTML page that needs nothing else: the verdict, figures, checks with advice, settings, versions."""
        from pathtemp.report.page import write_report

        write_report(self, path)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as it is saved: without its model, which is code, and with the state from which it can go on."""
        return unpickled, (type(self), kept_state(self))

    def _repr_html_(self) -> str:
        from pathtemp.report.page import small

        return small(self)

    def __repr__(self) -> str:
        evidence, sizes = self.log_constant, self.posterior.sizes
        checks = len(self.diagnostics.checks)
        failed = f"{len(self.diagnostics.failed)} of {checks} checks failed"
        why = "interrupted" if self.diagnostics.interrupted else failed
        verdict = "converged" if self.converged else f"NOT converged ({why})"
        return (
            f"<Fit of {self.name!r}: {verdict}; log z {with_error(*evidence)}; "
            f"{sizes['chain']} x {sizes['draw']} draws; {self.diagnostics.tours} round trips>"
        )


def check_more(draws: Any, budget: Any) -> None:
    """Raise where what a fit is to be extended by is of a wrong type or size."""
    if draws is not None:
        whole_number("draws", draws, least=1)
    if budget is not None:
        positive_number("budget", budget, "number of gradient equivalents")


def library_versions() -> dict[str, str]:
    """Versions of Python and of the libraries whose numbers matter.

    >>> sorted(library_versions())
    ['jax', 'jaxlib', 'numpy', 'pathtemp', 'python', 'scipy', 'xarray']
    """
    names = ("pathtemp", "jax", "jaxlib", "numpy", "scipy", "xarray")
    return {"python": platform.python_version(), **{name: _version(name) for name in names}}


def _version(name: str) -> str:
    """Version of an installed library; "unknown" where it runs from source without being installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def _path(run: Run) -> xr.Dataset:
    variables = {"a": run.a, "lam": run.lam, "delta": run.delta, "theta0": run.theta0}
    chains, iterations = run.a.shape
    points = {} if run.points is None else {"point_a": run.points.a, "point_lam": run.points.lam}
    return xr.Dataset(
        {
            **{name: ((SAMPLE_DIMS[0], "iteration"), np.asarray(x)) for name, x in variables.items() if x is not None},
            **{name: ("point", x) for name, x in points.items()},
        },
        coords={"chain": np.arange(chains), "iteration": np.arange(iterations)},
    )
