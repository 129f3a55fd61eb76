"""The fit: what a run gives back to its user."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import xarray as xr

from pathtemp._types import FloatArray
from pathtemp.api.arguments import positive_number, whole_number, yes_or_no
from pathtemp.errors import InputError
from pathtemp.io.escape import escape_names
from pathtemp.model.model import Model
from pathtemp.modes.table import Modes
from pathtemp.result.curve import LogZ
from pathtemp.result.draws import SAMPLE_DIMS, draws_dataset, log_likelihood_dataset
from pathtemp.result.run import Counts, Diagnostics, RoundRecord, Run
from pathtemp.result.summary import Summary, summarise, with_error
from pathtemp.settings import LadderSettings, PaperSettings, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure


LOG_LIK = "log_lik"
"""What Stan programs call the log likelihood of each observation among their generated quantities."""


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
class Fit:
    """Draws, normalising constant and verdict of one run.

    Parameters
    ----------
    posterior, base
        Draws at lam = 1 and lam = 0, constrained, over (chain, draw, ...), named as the model names them.
    path
        The joint path over (chain, iteration): ``a``, ``lam``, ``delta`` (log target - log base) and, where
        the engine kept it, ``theta0``, the first unconstrained coordinate.
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
    modes
        The separated modes that the run knows, their shares and what may be unseen; None where it did not look.
    versions
        Of Python and the libraries that made the run.
    created_at
        When, in ISO 8601, UTC.
    model
        The model, None after loading from a file.
    continuation
        The run under way, with which :meth:`extend` goes on; None after loading from a file.
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
            modes=run.modes,
            versions=library_versions() if versions is None else dict(versions),
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            model=model,
            continuation=continuation,
        )

    def extend(self, *, draws: int | None = None, budget: float | None = None) -> Fit:
        """Go on where the run stopped; the kernel stays as it is, and all frozen rounds count.

        Parameters
        ----------
        draws
            More target draws for each chain.
        budget
            More gradient evaluations, over all chains; with ``draws`` alone, as many as they need.

        Returns
        -------
        A new fit, of all rounds together; this one stays as it is, but cannot be extended again.
        """
        check_more(draws, budget)
        if draws is None and budget is None:
            raise InputError("extend: give budget= in gradient evaluations, or draws= for each chain, or both")
        if self.continuation is None or self.model is None:
            raise InputError(
                "extend: only a fit that is still in memory can go on, made by the default engine; "
                "run pt.temper again with a larger budget"
            )
        return self.continuation.extend(draws=draws, budget=budget)

    @property
    def log_marginal_likelihood(self) -> LogEvidence:
        """The logarithm of z(1) / z(0), with its standard error."""
        return LogEvidence(float(self.log_z.mean[-1]), float(self.log_z.stderr[-1]))

    @property
    def is_evidence(self) -> bool:
        """Whether :attr:`log_marginal_likelihood` is one: the base is normalised, and so is the prior of the target."""
        return self.exact_base if self.known_evidence is None else self.known_evidence

    @property
    def converged(self) -> bool:
        """The verdict: True when every check passed."""
        return self.diagnostics.converged

    @property
    def warnings(self) -> list[str]:
        """What did not pass, where on the path, and what to do; empty when converged."""
        return self.diagnostics.warnings

    def summary(self, *, rows: int | None = 20) -> Summary:
        """The verdict first, then log z, the diagnostics and a posterior table of at most ``rows`` rows."""
        if rows is not None:
            whole_number("rows", rows, least=0)
        return summarise(self, rows=rows)

    def stan_variable(self, name: str) -> FloatArray:
        """Posterior draws of a variable, all chains one after the other: shape (draws, ...), as CmdStanPy has them."""
        if name not in self.posterior:
            known = ", ".join(map(str, self.posterior.data_vars))
            raise InputError(f"stan_variable: there is no {name!r}; there are {known}")
        values = self.posterior[name].values
        return np.asarray(values.reshape(-1, *values.shape[2:]))

    def to_arviz(self, *, log_likelihood: bool = False) -> xr.DataTree:
        """An ArviZ DataTree: posterior, prior (the base draws), sample_stats (the joint path), attributes.

        ``log_likelihood=True`` computes the group of that name, with one number for each draw and observation, for
        LOO; PyMC and NumPyro models have it, and Stan programs that generate ``log_lik``. ArviZ before 1.0 takes
        ``az.from_datatree(fit.to_arviz())``.

        A tree cannot hold a slash in a name: ``a/b`` becomes ``a%2Fb`` (and ``%`` becomes ``%25``).
        """
        yes_or_no("log_likelihood", log_likelihood)
        groups = {"posterior": self.posterior, "prior": self.base, "sample_stats": self.path}
        if log_likelihood and LOG_LIK in self.posterior:
            groups["log_likelihood"] = self.posterior[[LOG_LIK]]
        elif log_likelihood:
            if self.model is None:
                raise InputError("to_arviz: a fit from a file has no model, which log_likelihood needs; run it again")
            groups["log_likelihood"] = log_likelihood_dataset(self.model, self.posterior)
        tree = xr.DataTree.from_dict({group: escape_names(data) for group, data in groups.items()})
        evidence = self.log_marginal_likelihood
        tree.attrs = {
            "inference_library": "pathtemp",
            "inference_library_version": self.versions.get("pathtemp", ""),
            "created_at": self.created_at,
            "model_name": self.name,
            "seed": self.seed,
            "converged": int(self.converged),
            "log_marginal_likelihood": evidence.value,
            "log_marginal_likelihood_se": evidence.se,
            "sampling_time": sum(self.seconds.values()),
        }
        return tree

    def plot(self, **options: Any) -> Figure:
        """The figure to look at first, see :func:`pathtemp.plots.plot`."""
        from pathtemp.plots import plot

        return plot(self, **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything but the model to a netCDF file, see :func:`pathtemp.io.storage.save`."""
        from pathtemp.io.storage import save

        save(self, path)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write one HTML page that needs nothing else: the verdict, figures, checks with advice, settings, versions."""
        from pathtemp.report.page import write_report

        write_report(self, path)

    def _repr_html_(self) -> str:
        from pathtemp.report.page import small

        return small(self)

    def __repr__(self) -> str:
        evidence, sizes = self.log_marginal_likelihood, self.posterior.sizes
        checks = len(self.diagnostics.checks)
        verdict = "converged" if self.converged else f"NOT converged ({len(self.warnings)} of {checks} checks failed)"
        return (
            f"<Fit of {self.name!r}: {verdict}; log z {with_error(*evidence)}; "
            f"{sizes['chain']} x {sizes['draw']} draws; {self.diagnostics.tours} round trips>"
        )


def check_more(draws: Any, budget: Any) -> None:
    """Raise where what a fit is to be extended by is of a wrong type or size."""
    if draws is not None:
        whole_number("draws", draws, least=1)
    if budget is not None:
        positive_number("budget", budget, "number of gradient evaluations")


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
    return xr.Dataset(
        {name: ((SAMPLE_DIMS[0], "iteration"), np.asarray(x)) for name, x in variables.items() if x is not None},
        coords={"chain": np.arange(chains), "iteration": np.arange(iterations)},
    )
