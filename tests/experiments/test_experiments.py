"""Experiments keep what they have computed, and the kept tables become figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tempered import first_that

from experiments import beta_binomial, flower, horseshoe, lda, logz_and_tempering
from experiments.__main__ import main
from experiments.common import Experiment, Row, Table, carry_out, column, kept, panels, read, where
from experiments.names import NAMES, experiment
from pathtemp.errors import InputError
from pathtemp.testing.calibration import assert_close

RESULTS = Path(__file__).parents[2] / "experiments" / "results"


def test_cells_are_computed_once_and_a_stopped_run_goes_on(tmp_path: Path) -> None:
    asked: list[str] = []

    def work(cell: str, _quick: bool) -> list[Row]:
        asked.append(cell)
        if cell == "b" and len(asked) == 2:
            raise KeyboardInterrupt
        return [{"x": 0.1}, {"x": float("nan")}]

    table, file = Table(lambda quick: ["a", "b"] if quick else ["a", "b", "c"], work), tmp_path / "t.csv"
    with pytest.raises(KeyboardInterrupt):
        kept(file, table, quick=True)
    rows = kept(file, table, quick=True)
    assert asked == ["a", "b", "b"]
    np.testing.assert_array_equal(column(rows, "x"), [0.1, np.nan, 0.1, np.nan])
    assert len(kept(file, table, quick=False)) == 6
    assert asked[3:] == ["c"]
    assert len(kept(file, table, quick=True)) == 4


@pytest.mark.slow
def test_two_processes_write_what_one_does(tmp_path: Path) -> None:
    names = ["link", "logz_and_tempering", "--quick", "--out"]
    main([*names, str(tmp_path / "one")])
    main([*names, str(tmp_path / "two"), "--processes", "2"])
    for file in ("link_curve.csv", "logz_and_tempering_curves.csv"):
        assert (tmp_path / "two" / file).read_text() == (tmp_path / "one" / file).read_text()


def test_cells_done_in_any_order_are_kept_in_theirs(tmp_path: Path) -> None:
    table = Table(lambda _quick: ["a", "b", "c"], lambda cell, _quick: [{"x": cell, "n": 1_234_567}] * 2)
    kept(tmp_path / "here.csv", table, quick=False)
    kept(
        tmp_path / "there.csv",
        table,
        quick=False,
        run=lambda cells: ((cell, table.work(cell, False)) for cell in reversed(cells)),
    )
    assert (tmp_path / "there.csv").read_text() == (tmp_path / "here.csv").read_text()


def test_fresh_computes_again(tmp_path: Path) -> None:
    count = iter(range(10))

    def draw(_tables: Any) -> Any:
        return {"f": panels(1, 1)[0]}

    made = Experiment("", {"t": Table(lambda _quick: ["a"], lambda _cell, _quick: [{"x": next(count)}])}, draw)
    for fresh, expected in ((False, 0), (False, 0), (True, 1)):
        files = carry_out("e", made, quick=True, folder=tmp_path, fresh=fresh)
        assert [file.name for file in files] == ["e_t.csv", "e_f.png"]
        assert read(files[0])[0]["x"] == expected


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_says_what_it_is_and_has_cells(name: str) -> None:
    found = experiment(name)
    assert found.about
    for table in found.tables.values():
        small, full = table.cells(True), table.cells(False)
        assert 0 < len(small) <= len(full)
        assert len(set(full)) == len(full)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in ("link", "flower") else [pytest.mark.slow]) for name in NAMES]
)
def test_kept_results_are_whole_and_can_be_drawn(name: str, tmp_path: Path) -> None:
    found = experiment(name)
    files = [RESULTS / f"{name}_{table}.csv" for table in found.tables]
    if not all(file.exists() for file in files):
        pytest.skip(f"{name} has not been run at full size")
    tables = {}
    for file, (table_name, table) in zip(files, found.tables.items(), strict=True):
        tables[table_name] = read(file)
        assert {row["cell"] for row in tables[table_name]} == set(table.cells(False))
    for figure_name, figure in found.draw(tables).items():
        figure.savefig(tmp_path / f"{figure_name}.png", dpi=40)


def test_the_command_writes_tables_and_figures(tmp_path: Path) -> None:
    main(["link", "logz_and_tempering", "--quick", "--out", str(tmp_path)])
    names = ["link_curve.csv", "link_curve.png", "logz_and_tempering_curves.csv", "logz_and_tempering_curves.png"]
    assert sorted(file.name for file in tmp_path.iterdir()) == names
    link = read(tmp_path / "link_curve.csv")
    lam = column(link, "lam")
    np.testing.assert_allclose(lam, lam[::-1], atol=1e-6)
    assert lam[0] == 0.0
    assert lam[100] == 1.0


def test_an_unknown_experiment_is_refused() -> None:
    with pytest.raises(SystemExit):
        main(["figure_99"])


def test_a_poor_fit_of_a_small_log_z_is_enough_and_a_good_one_of_a_large_is_not() -> None:
    rows = [row for cell in logz_and_tempering.SCALES for row in logz_and_tempering._work(cell, True)]
    small, large = (where(rows, scale=name)[0] for name in ("small", "large"))
    assert small["relative_error"] > 20 * large["relative_error"]
    assert small["khat"] < 0.7 < large["khat"]
    assert small["seen"] == 1.0
    assert large["seen"] < 0.2


@pytest.mark.slow
def test_rows_of_the_beta_binomial_hold_errors_against_the_truth() -> None:
    rows = beta_binomial._errors("easy/rao_blackwell/0", True)
    assert [row["adaptation"] for row in rows] == [1, 2, 3, 4]
    assert np.all(np.diff([row["gradients"] for row in rows]) > 0)
    # Its standard error is a fifth.
    assert rows[-1]["error_on_ladder"] < 1.5


def test_mixing_of_exact_draws_of_the_flower_is_perfect() -> None:
    exact = flower.problem(40).sample_target(np.random.default_rng(0), 4000).reshape(4, 1000, 2)
    facts = flower._facts(exact, 1, 1.0)
    # Of eight half chains of 500 the square exceeds 1 by a five-hundredth of chi2(7) / 7; a fiftieth of 11 of them is
    # never seen. Each petal has a hundred draws on average.
    assert max(facts["rhat_x"], facts["rhat_y"]) < 1.01
    assert facts["petals"] == 40


@pytest.mark.slow
def test_one_run_of_the_horseshoe_gives_both_regressions() -> None:
    kept = 4 * (125 + 125)

    def spread(beta: np.ndarray) -> float:
        return float(np.median(np.abs(beta[..., 0])))

    def usual(sampled: Any) -> bool:
        """The ends are visited, and the coefficients of a probit model are smaller than those of a logit.

        lam is 0 for 45% of a, and 1 for 45%; as many draws of each chain are kept as the one with fewest has.
        """
        enough = all(0.2 * kept < 4 * beta.shape[1] < 0.6 * kept for beta in (sampled.logit, sampled.probit))
        return enough and spread(sampled.probit) < spread(sampled.logit)

    sampled = first_that(usual, lambda seed: horseshoe._one_run(4, seed, True, a_min=0.45))
    for beta in (sampled.logit, sampled.probit):
        assert beta.shape[0] == 4
        assert beta.shape[2] == 4
    assert sampled.gradients > 2 * kept


def test_a_corpus_is_counted_by_paragraph() -> None:
    text = "The cat sat. " * 3 + "\n\n" + "A dog ran; the cat " * 4 + "\n \n" + "word " * 500
    text += " ".join(f"filler{i}" for i in "abcdefgh" * 100)
    counts = lda.read_corpus(text).counts
    assert sorted(counts[0][counts[0] > 0]) == [3.0, 3.0]
    assert counts[1].sum() == 8.0
    with pytest.raises(InputError, match="corpus"):
        lda.read_corpus("too short")


@pytest.mark.slow
def test_the_topic_model_has_the_density_of_its_base() -> None:
    model = lda.model_of(lda.made_corpus(documents=3, words=4, length=5))
    assert model.sample_base is not None
    draws = jax.vmap(model.sample_base)(jax.random.split(jax.random.key(0), 20_000))
    # The score of a density has mean zero under it.
    score = np.asarray(jax.vmap(jax.grad(model.log_base))(draws))
    assert_close(score.mean(axis=0), 0.0, score.std(axis=0) / np.sqrt(len(score)))
    # A corpus of one certain word has likelihood one under any topics.
    certain = lda.model_of(lda.Corpus(np.array([[4.0], [2.0]])))
    x = jnp.linspace(-2.0, 1.0, certain.dim)
    assert float(certain.log_target(x) - certain.log_base(x)) == pytest.approx(0.0, abs=1e-12)
