"""Topics of a corpus, where tempering fails (appendix C): what each engine reaches, and whether it says so.

The model has documents x topics and topics x words Dirichlet(.1) priors; the likelihood of a word is summed over its
topic. Its log z is so large that one per cent of it is far more than tempering can bear.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import gammaln

import pathtemp as pt
from experiments.common import Experiment, Row, Table, Tables, column, distinct, panels, where
from experiments.methods import COLOURS, LABELS, tempered
from pathtemp._types import Array, FloatArray, Key
from pathtemp.engines.paper.trace import path_nodes
from pathtemp.errors import InputError
from pathtemp.model.layout import Layout
from pathtemp.model.model import Model

METHODS = ("path_sampling", "default")
TOPICS, CONCENTRATION = 5, 0.1
POINTS = 31
MOST_WORDS, LEAST_COUNT, MOST_SHARE = 1500, 5, 0.02
"""Of a text: words kept, the rarest and the most frequent kept, as a count and as a share of all."""


@dataclass(frozen=True)
class Corpus:
    """Counts of words by document, shape (documents, words)."""

    counts: FloatArray


def made_corpus(*, documents: int, words: int, length: int, seed: int = 1) -> Corpus:
    """A corpus drawn from the model itself.

    >>> made_corpus(documents=3, words=20, length=50).counts.sum(axis=1)
    array([50., 50., 50.])
    """
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(words, CONCENTRATION), TOPICS)
    shares = rng.dirichlet(np.full(TOPICS, CONCENTRATION), documents)
    return Corpus(np.stack([rng.multinomial(length, p / p.sum()) for p in shares @ topics]).astype(np.float64))


def read_corpus(text: str) -> Corpus:
    """Paragraphs of a text as documents, without its most frequent and its rare words."""
    paragraphs = [re.findall(r"[a-z]+", part.lower()) for part in re.split(r"\n\s*\n", text)]
    total = Counter(word for part in paragraphs for word in part)
    most = MOST_SHARE * sum(total.values())
    kept = [w for w, n in total.most_common() if LEAST_COUNT <= n <= most][:MOST_WORDS]
    if not kept:
        raise InputError("corpus: no word is frequent enough; give a longer text, paragraphs apart by empty lines")
    index = {word: i for i, word in enumerate(kept)}
    table = np.zeros((len(paragraphs), len(kept)))
    for row, part in zip(table, paragraphs, strict=True):
        np.add.at(row, [index[word] for word in part if word in index], 1.0)
    return Corpus(table[table.sum(axis=1) > 0])


def model_of(corpus: Corpus) -> Model:
    """The topic model; a Dirichlet vector is one of gammas over their sum, and the flat vector their logarithms."""
    documents, words = corpus.counts.shape
    row, word = (jnp.asarray(x) for x in np.nonzero(corpus.counts))
    count = jnp.asarray(corpus.counts[np.nonzero(corpus.counts)])
    sizes = {"theta": (documents, TOPICS), "phi": (TOPICS, words)}
    layout = Layout(sizes)
    constant = float(layout.dim * gammaln(CONCENTRATION))

    def log_base(x: Array) -> Array:
        return CONCENTRATION * jnp.sum(x) - jnp.sum(jnp.exp(x)) - constant

    def log_target(x: Array) -> Array:
        parts = layout.unravel(x)
        theta, phi = jax.nn.log_softmax(parts["theta"], axis=1), jax.nn.log_softmax(parts["phi"], axis=1)
        return log_base(x) + count @ jax.nn.logsumexp(theta[row] + phi.T[word], axis=1)

    def sample_base(key: Key) -> Array:
        return jax.random.loggamma(key, CONCENTRATION, (layout.dim,))

    return Model(log_base, log_target, layout, sample_base, name="topics")


@cache
def _text(file: str) -> Model:
    return model_of(read_corpus(Path(file).read_text()))


@cache
def _made(quick: bool) -> Model:
    """A small corpus, or one whose log z, about -1e4, is far past what the paper's engine can bear."""
    size = {"documents": 10, "words": 30, "length": 40} if quick else {"documents": 60, "words": 120, "length": 50}
    return model_of(made_corpus(**size))


def _work(cell: str, quick: bool, *, file: str | None) -> list[Row]:
    model = _made(quick) if file is None else _text(file)
    begin = time.perf_counter()
    if cell == "default" and not quick:
        fit = pt.temper(model, seed=1, budget=1_000_000, progress=False)
    else:
        # The paper's ten adaptations for a text; an hour of one core on a corpus that is made, so three there.
        adaptations = 2 if quick else 3 if file is None else 10
        fit = tempered(cell, model, seed=1, adaptations=adaptations, quick=quick)
    a, lam = path_nodes(POINTS - 1)
    facts = {
        "dim": model.dim,
        "khat": fit.diagnostics.khat,
        "tours": fit.diagnostics.tours,
        "at_target": float(np.mean(fit.path["lam"].values >= 1)),
        "converged": int(fit.converged),
        "failed": "; ".join(check.name for check in fit.diagnostics.checks if not check.passed),
        "log_z_1": fit.log_marginal_likelihood.value,
        "log_z_se": fit.log_marginal_likelihood.se,
        "gradients": fit.counts.gradients,
        "seconds": time.perf_counter() - begin,
    }
    return [{"method": cell, "a": x, "log_z": z, **facts} for x, z in zip(a, fit.log_z(lam), strict=True)]


def _draw(tables: Tables) -> dict[str, Any]:
    rows = tables["curves"]
    figure, axes = panels(1, 1, width=5.0, height=3.2)
    for method in distinct(rows, "method"):
        curve = where(rows, method=method)
        verdict = "converged" if curve[0]["converged"] else "not converged"
        label = f"{LABELS[method]}: {verdict}, {curve[0]['tours']:.0f} round trips, k-hat {curve[0]['khat']:.2f}"
        axes[0, 0].plot(column(curve, "a"), column(curve, "log_z"), color=COLOURS[method], label=label)
    axes[0, 0].set(xlabel="a", ylabel="log z", title=f"topics, {rows[0]['dim']:.0f} parameters")
    axes[0, 0].legend()
    return {"curves": figure}


def of(file: str | None) -> Experiment:
    """The experiment on the text in ``file``, or on a corpus that is made."""
    return Experiment(
        "topics: a failure that says so",
        {"curves": Table(lambda _quick: list(METHODS), partial(_work, file=file))},
        _draw,
    )


EXPERIMENT = of(None)
