"""What other libraries call the parts of a fit: asked for by such a name, a fit says its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

OTHER_NAMES = {
    **dict.fromkeys(
        ("samples", "draws", "get_samples", "extract", "trace", "chains"),
        "fit.posterior has the draws, fit.posterior['name'] those of one variable",
    ),
    **dict.fromkeys(("mean", "std", "quantile"), "fit.summary() has a table, and fit.posterior the draws"),
    **dict.fromkeys(("print_summary", "describe"), "print(fit.summary()) is what it is called here"),
    **dict.fromkeys(("idata", "to_inference_data", "to_inferencedata", "inference_data"), "fit.to_arviz() makes it"),
    **dict.fromkeys(("to_dataframe", "to_pandas", "draws_pd"), "fit.posterior.to_dataframe() makes it"),
    **dict.fromkeys(("stan_variables", "draws_xr"), "fit.posterior has all, fit.stan_variable(name) gives one"),
    **dict.fromkeys(("diagnose", "sampler_diagnostics", "divergences"), "fit.warnings and fit.summary() have it"),
    **dict.fromkeys(("log_prob", "lp"), "fit.sample_stats['lp'] has it at the draws"),
    **dict.fromkeys(("plot_trace", "traceplot"), "pt.plots.trace(fit) draws it"),
    **dict.fromkeys(("log_likelihood", "loo"), "fit.to_arviz(log_likelihood=True) is what ArviZ's loo takes"),
    **dict.fromkeys(("logz", "log_evidence", "evidence"), "fit.log_marginal_likelihood is its value and error"),
    **dict.fromkeys(("prior", "posterior_predictive"), "fit.base has draws of the base, fit.predict() makes new data"),
    **dict.fromkeys(("rhat", "r_hat", "ess"), "fit.summary() and fit.diagnostics have it"),
}
"""What to type here, by what is typed elsewhere."""


class OtherNames:
    """Answers an unknown attribute with what it is called here."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Called where there is no such attribute."""
            said = f"{type(self).__name__!r} object has no attribute {name!r}"
            # While a fit is unpickled nothing of it is there yet.
            if name in vars(self).get("posterior", ()):
                raise AttributeError(f"{said}; fit.posterior[{name!r}] has the draws of that variable")
            raise AttributeError(f"{said}; {OTHER_NAMES[name]}" if name in OTHER_NAMES else said)
