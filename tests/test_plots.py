import dataclasses
import subprocess
import sys

import jax
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from synthetic import FAILED, cauchy_fit, fit_of, odd_model

from pathtemp import plots
from pathtemp.errors import InputError, MissingExtraError
from pathtemp.modes.table import Modes
from pathtemp.plots import style
from pathtemp.plots.arc import along
from pathtemp.plots.chosen import chosen, mode_labels
from pathtemp.plots.variables import bin_count, scalar
from pathtemp.result.curve import LogZ
from pathtemp.result.fit import Fit
from pathtemp.result.run import RoundRecord
from pathtemp.testing import cauchy_pair
from pathtemp.testing.calibration import assert_close

mpl.use("Agg")
PANELS = [
    *(plots.target_draws, plots.base_draws, plots.joint_path, plots.log_z),
    *(plots.marginal_a, plots.history, plots.hardness, plots.acceptance),
    *(plots.tours, plots.tails, plots.mode_shares, plots.modes),
]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def fit() -> Fit:
    return cauchy_fit()


def heights_and_edges(ax) -> tuple[np.ndarray, np.ndarray]:
    data = ax.patches[-2].get_data() if len(ax.patches) > 1 else ax.patches[0].get_data()
    return data.values, data.edges


def with_draws(values: np.ndarray) -> Fit:
    draws = xr.Dataset({"x": (("chain", "draw"), values)})
    return dataclasses.replace(fit_of(odd_model()), posterior=draws, base=draws)


def pixels(figure) -> np.ndarray:
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3]


@pytest.mark.parametrize("make", [plots.plot, plots.diagnose])
def test_figures_have_four_drawn_panels_and_the_verdict(fit, make):
    figure = make(fit, exact=cauchy_pair().log_z)
    image = pixels(figure)
    assert len(figure.axes) == 4
    assert figure.get_suptitle() == "cauchy_pair: converged"
    quarters = [part for row in np.array_split(image, 2) for part in np.array_split(row, 2, axis=1)]
    assert all(len(np.unique(part.reshape(-1, 3), axis=0)) > 20 for part in quarters)
    assert all(ax.get_xlabel() and ax.get_ylabel() for ax in figure.axes)
    assert make(cauchy_fit(checks=FAILED)).get_suptitle() == "cauchy_pair: NOT converged (coverage)"


@pytest.mark.parametrize("panel", PANELS)
def test_panels_make_their_own_axes_or_use_those_given(fit, panel):
    own = panel(fit)
    assert len(own.figure.axes) == 1
    ax = plt.subplots()[1]
    assert panel(fit, ax) is ax
    assert pixels(ax.figure).std() > 0


def test_the_histogram_lies_under_the_exact_density():
    fit, problem = cauchy_fit(draws=2000), cauchy_pair()
    heights, edges = heights_and_edges(plots.target_draws(fit))
    draws, width, middles = fit.posterior["theta"].values, edges[1] - edges[0], 0.5 * (edges[1:] + edges[:-1])
    shown = (draws > edges[0]) & (draws < edges[-1])
    assert heights.sum() * width == pytest.approx(shown.mean(), abs=1e-9)
    assert shown.mean() > 0.98
    mode = np.abs(middles - 10.0) < 1.0
    log_target = jax.vmap(problem.model.log_target)(middles[mode, None])
    exact = np.exp(np.asarray(log_target) - problem.log_z_end)
    error = np.sqrt(exact / (draws.size * width))
    # A bin has the mean of the density over it, which differs from that in its middle by less than a tenth.
    assert_close(heights[mode], exact, error + 0.02 * exact)


def test_overlays_are_drawn_and_named(fit):
    def flat(x):
        return np.full_like(x, 0.03)

    ax = plots.base_draws(fit, density=flat, label="θ")
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), flat(ax.lines[0].get_xdata()))
    assert ax.get_xlabel() == "θ"
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["draws", "exact"]
    line = plots.history(fit, exact=-8.0).lines[-1]
    assert list(line.get_ydata()) == [-8.0, -8.0]


def test_no_bin_crosses_the_edge_of_a_support():
    draws = np.random.default_rng(0).beta(9, 0.75, size=(4, 500))
    edges = heights_and_edges(plots.target_draws(with_draws(draws)))[1]
    assert edges[-1] == draws.max()
    assert edges[0] > draws.min()


def test_narrow_modes_far_apart_get_narrow_bins():
    rng = np.random.default_rng(0)
    draws = np.concatenate([rng.normal(-100, 1, 5000), rng.normal(100, 1, 5000)])
    assert bin_count(draws, -103.0, 103.0) == 160
    assert bin_count(draws[:5000], -103.0, -97.0) < 60
    assert bin_count(np.zeros(10), -0.5, 0.5) == 20


def test_a_scalar_is_chosen_by_its_label():
    odd = fit_of(odd_model())
    label, values = scalar(odd.posterior, "theta[<script>]")
    np.testing.assert_array_equal(values, odd.posterior["theta"].sel(school="<script>"))
    assert scalar(odd.posterior)[0] == "mu"
    assert plots.plot(odd, var=label).axes[0].get_xlabel() == "theta[<script>]"
    with pytest.raises(InputError, match=r"no 'nu' among the draws; choose one of mu, theta\[Choate\]"):
        plots.plot(odd, var="nu")


def test_the_joint_path_shows_theta_where_it_was_kept_and_delta_otherwise(fit):
    ax = plots.joint_path(fit, label="θ")
    assert ax.get_ylabel() == "θ"
    points = np.concatenate([line.get_ydata() for line in ax.lines])
    assert set(points) <= set(fit.path_draws["theta"].values.ravel())
    without = dataclasses.replace(fit, path_draws=xr.Dataset())
    ax = plots.joint_path(without, label="θ")
    assert ax.get_ylabel() == "log target − log base"
    assert set(np.concatenate([line.get_ydata() for line in ax.lines])) <= set(fit.path["delta"].values.ravel())


def test_the_joint_path_is_coloured_by_its_ends_and_thinned(fit):
    between, base, target = plots.joint_path(fit).lines
    assert len(between.get_xdata()) + len(base.get_xdata()) + len(target.get_xdata()) == fit.path["a"].size
    assert np.all(np.abs(base.get_xdata() - 1.0) >= 0.9 - 1e-12)
    assert np.all(np.abs(target.get_xdata() - 1.0) <= 0.2 + 1e-12)
    path, draws = (
        x.isel({along: np.tile(np.arange(x.sizes[along]), 10)})
        for x, along in ((fit.path, "point"), (fit.path_draws, "draw"))
    )
    many = dataclasses.replace(fit, path=path, path_draws=draws)
    assert 2000 < sum(len(line.get_xdata()) for line in plots.joint_path(many).lines) <= 4000


def test_the_band_is_two_standard_errors_wide(fit):
    ax = plots.log_z(fit)
    vertices = ax.collections[0].get_paths()[0].vertices
    at_end = vertices[vertices[:, 0] == 1.0, 1]
    value, se = fit.log_marginal_likelihood
    assert (at_end.min(), at_end.max()) == pytest.approx((value - 2 * se, value + 2 * se))
    assert len(ax.child_axes) == 1
    wide = dataclasses.replace(fit, log_z=dataclasses.replace(fit.log_z, stderr=100 * fit.log_z.stderr))
    assert len(plots.log_z(wide).child_axes) == 0


LAM = np.linspace(0.0, 1.0, 101)
CURVES = (
    (np.abs(LAM**0.4 - 0.6) / 0.6) ** 2 - 1.0,
    *(-8.0 * (1.0 - (1.0 - LAM) ** 8), -8.0 * LAM**0.3, 8.0 * LAM**8, 3.0 * LAM**2),
    *(3.0 * np.sqrt(LAM), -3.0 * LAM**3),
)


@pytest.mark.parametrize("number", range(len(CURVES)))
@pytest.mark.parametrize("band", [0.05, 0.002])
def test_nothing_lies_on_the_curve_of_log_z(fit, number: int, band: float) -> None:
    """Neither the legend nor the inset of a thin band, for convex curves and for those of other paths."""
    mean = CURVES[number] - CURVES[number][0]
    ax = plots.log_z(dataclasses.replace(fit, log_z=LogZ(LAM, mean, band * np.ptp(mean) * np.sqrt(LAM))))
    ax.figure.canvas.draw()
    assert len(ax.child_axes) == (band < 0.01)
    points = ax.transData.transform(np.column_stack([LAM, mean]))
    for box in (ax.get_legend().get_window_extent(), *(x.get_window_extent() for x in ax.child_axes)):
        assert not any(box.contains(*point) for point in points)


def test_rounds_outside_the_range_are_marked_at_its_edge(fit):
    far = dataclasses.replace(fit.history[0], log_z=-500.0)
    ax = plots.history(dataclasses.replace(fit, history=(far, *fit.history[1:])))
    low, high = ax.get_ylim()
    assert high - low < 2
    assert any(line.get_marker() == "v" and far.gradients in line.get_xdata() for line in ax.lines)


def test_hardness_that_spans_decades_is_on_a_log_scale(fit):
    assert plots.hardness(fit).get_yscale() == "linear"
    steep = dataclasses.replace(fit.diagnostics, local_length=10.0 ** -np.arange(10.0))
    assert plots.hardness(dataclasses.replace(fit, diagnostics=steep)).get_yscale() == "log"


@pytest.mark.parametrize(
    "values",
    [np.zeros((2, 0)), np.full((2, 5), np.nan), np.full((2, 5), 3.0), np.array([[1.0, np.inf, -np.inf]])],
    ids=["none", "nan", "constant", "infinite"],
)
def test_draws_of_every_kind_can_be_drawn(values):
    pixels(plots.plot(with_draws(values)))


def test_a_run_that_learned_nothing_can_be_drawn(fit):
    nan = np.full(3, np.nan)
    nothing = dataclasses.replace(
        fit,
        path=fit.path.isel(iteration=slice(0)),
        log_z=LogZ(np.linspace(0, 1, 3), nan, nan),
        history=(RoundRecord("anneal", 10, 0, float("nan"), float("nan"), float("nan"), float("nan")),),
        diagnostics=dataclasses.replace(
            fit.diagnostics,
            **{"lam": nan[:0], "local_length": nan[:0], "acceptance": nan[:0]},
            **{"khat": float("nan"), "length": float("nan")},
        ),
    )
    for make in (plots.plot, plots.diagnose):
        pixels(make(nothing))
        assert not any("nan" in ax.get_title("right") for ax in plt.gcf().axes)


def test_names_are_never_read_as_mathematics():
    fit = dataclasses.replace(fit_of(odd_model(("$\\frac{", "b", "c"))), name="$\\bad$")
    figure = plots.plot(fit)
    pixels(figure)
    assert figure.axes[0].get_xlabel() == "$\\frac{"


def test_without_matplotlib_the_message_says_what_to_install(fit, monkeypatch):
    for module in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"run: pip install 'pathtemp\[plots\]'"):
        fit.plot()


def test_matplotlib_is_imported_only_to_draw():
    script = "import sys, pathtemp, pathtemp.plots; print('matplotlib.pyplot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def with_modes(fit: Fit) -> Fit:
    """The Cauchy pair with the two modes that it has."""
    modes = Modes(
        centre={"theta": np.array([[-10.0], [10.0]])},
        log_density=np.zeros(2),
        share=np.array([0.51, 0.49]),
        share_se=np.array([0.02, 0.02]),
        visits=np.array([50, 50]),
        found_by=("base", "base"),
        starts=np.array([8, 8]),
        starts_made=16,
        unseen=0.0,
        mixture=True,
        why="a mixture",
    )
    return dataclasses.replace(fit, modes=modes)


def test_draws_are_labelled_by_the_mode_they_are_in(fit):
    labels = mode_labels(with_modes(fit))
    assert np.mean(labels == (fit.posterior["theta"].values.ravel() > 0)) > 0.99
    assert not mode_labels(fit).any()


def test_shares_of_modes_have_error_bars(fit):
    ax = plots.mode_shares(with_modes(fit))
    (bars,) = ax.containers
    assert bars.has_yerr
    assert bars.lines[0].get_ydata().tolist() == [0.51, 0.49]
    assert "did not look" in plots.mode_shares(fit).texts[0].get_text()


def test_pairs_show_every_pair_once():
    figure = plots.pairs(fit_of(odd_model(("mu", "$x$", "tau"))))
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert len(shown) == 6
    pixels(figure)
    assert len(plots.pairs(fit_of(odd_model()), var=("mu", "tau")).axes) == 1
    with pytest.raises(InputError, match="two variables or more"):
        plots.pairs(with_draws(np.zeros((2, 5))))


def test_tails_fall_to_one_draw_on_a_log_scale(fit):
    ax = plots.tails(fit)
    assert ax.get_yscale() == "log"
    target = ax.lines[1]
    assert np.isclose(target.get_ydata().min(), 0.5 / fit.posterior["theta"].size)
    assert ax.get_xscale() == "linear"
    heavy = with_draws(np.exp(np.linspace(0.0, 30.0, 100)).reshape(2, 50))
    assert plots.tails(heavy).get_xscale() == "log"


def test_tours_show_the_ends_of_each_chain(fit):
    ax = plots.tours(fit, chains=2)
    assert len(ax.lines) == 6
    assert [label.get_text() for label in ax.get_yticklabels()] == ["chain 0", "chain 1"]


def test_titles_and_notes_do_not_lie_over_each_other(fit):
    for panel in PANELS:
        ax = panel(with_modes(fit))
        ax.figure.canvas.draw()
        left, right = (title.get_window_extent() for title in (ax._left_title, ax._right_title))
        assert left.x1 < right.x0 or not ax.get_title("right"), panel.__name__


def test_panels_of_their_own_have_the_style_of_the_package(fit):
    assert not plots.log_z(fit).get_legend().get_frame_on()
    assert plots.log_z(fit).title.get_fontsize() == 10


def test_lines_are_seen_on_a_dark_page(fit):
    with plt.style.context("dark_background"):
        ax = plots.marginal_a(fit)
        assert mpl.colors.to_rgb(ax.lines[0].get_color()) == (1.0, 1.0, 1.0)
        assert mpl.colors.to_rgb(ax.get_facecolor()) == (0.0, 0.0, 0.0)
        line = plots.acceptance(fit).lines[0].get_color()
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in mpl.colors.to_rgb(line))
    # WCAG's contrast against black; the blue of light pages has 4.
    assert (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05) / 0.05 > 7


def test_a_backend_that_turns_interactive_drawing_on_keeps_it_on():
    """As that of a notebook does with the first figure: the later ones are shown too."""
    before = mpl.is_interactive()
    try:
        mpl.interactive(False)
        with style.styled():
            mpl.interactive(True)
        assert mpl.is_interactive()
    finally:
        mpl.interactive(before)


def two_variables(fit: Fit) -> Fit:
    """The Cauchy pair after a variable that does not tell its modes apart."""
    noise = xr.zeros_like(fit.posterior["theta"].isel(theta_dim_0=0, drop=True))
    noise += np.random.default_rng(0).normal(size=noise.shape)
    names = {"noise": noise}
    centre = {"noise": np.zeros(2), "theta": np.array([[-10.0], [10.0]])}
    modes = dataclasses.replace(with_modes(fit).modes, centre=centre)
    posterior, base = (xr.Dataset(names | dict(x.data_vars)) for x in (fit.posterior, fit.base))
    along = xr.zeros_like(fit.path_draws["theta"].isel(theta_dim_0=0, drop=True))
    path_draws = xr.Dataset({"noise": along} | dict(fit.path_draws.data_vars))
    return dataclasses.replace(fit, posterior=posterior, base=base, path_draws=path_draws, modes=modes, model=None)


def test_the_variable_that_separates_the_modes_is_shown(fit):
    assert chosen(fit, 1) == ["theta[0]"]
    pair = two_variables(fit)
    assert chosen(pair, 2) == ["theta[0]", "noise"]
    twin = pair.posterior.assign(twin=1.0 - pair.posterior["theta"].isel(theta_dim_0=0, drop=True))
    centre = {**pair.modes.centre, "twin": np.array([11.0, -9.0])}
    both = dataclasses.replace(pair, posterior=twin, base=twin, modes=dataclasses.replace(pair.modes, centre=centre))
    assert chosen(both, 3) == ["theta[0]", "noise", "twin"]
    assert plots.target_draws(pair).get_xlabel() == "theta[0]"
    assert [ax.get_xlabel() for ax in plots.plot(pair).axes[:2]] == ["theta[0]", "theta[0]"]
    path = plots.joint_path(pair)
    assert path.get_ylabel() == "theta[0]"
    drawn = np.concatenate([line.get_ydata() for line in path.lines])
    assert set(drawn) <= set(fit.path_draws["theta"].values.ravel())
    assert (
        plots.joint_path(pair, var="noise").get_ylabel()
        == plots.plot(pair, var="noise").axes[2].get_ylabel()
        == "noise"
    )
    assert [ax.get_xlabel() for ax in plots.marginals(pair).axes[::2]] == ["theta[0]", "noise"]


def test_a_run_that_did_not_look_for_modes_shows_the_variable_whose_draws_have_a_valley(fit):
    unknown = dataclasses.replace(two_variables(fit), modes=None)
    assert chosen(unknown, 2) == ["theta[0]", "noise"]
    assert plots.joint_path(unknown).get_ylabel() == "theta[0]"
    one = unknown.posterior.assign(theta=abs(unknown.posterior["theta"]))
    assert chosen(dataclasses.replace(unknown, posterior=one), 2) == ["noise", "theta[0]"]


def test_the_base_panel_says_where_the_path_starts_from(fit):
    assert plots.base_draws(fit).get_title("left") == "Base draws (λ = 0)"
    for var in ("theta[0]", "noise"):
        mixed = plots.base_draws(two_variables(fit), var=var)
        words = [text.get_text() for text in mixed.get_legend().get_texts()]
        assert words == ["base as given", "mixture that the path starts from"]


def test_history_cuts_no_bar_without_saying_so(fit):
    ax = plots.history(fit)
    low, high = ax.get_ylim()
    late = [r for r in fit.history if r.phase == "sample"]
    assert all(low < r.log_z - 2 * r.log_z_se and r.log_z + 2 * r.log_z_se < high for r in late)
    far = dataclasses.replace(late[0], log_z_se=100 * late[0].log_z_se)
    cut = plots.history(dataclasses.replace(fit, history=(*fit.history[:5], far, *late[1:])))
    assert "goes on outside" in [text.get_text() for text in cut.get_legend().get_texts()]
    assert cut.get_ylim()[1] - cut.get_ylim()[0] < 2


def test_the_axis_along_the_path_is_spaced_by_its_length(fit):
    scale = along(fit)
    local = fit.diagnostics.local_length
    assert scale(np.array([0.0, 1.0])) == pytest.approx([0.0, local.sum()])
    # Half of the length lies below lam = .15, and has half of the axis.
    assert scale(np.array([0.15]))[0] > 0.3 * local.sum()
    ticks = scale.ticks()
    assert (ticks[0], ticks[-1]) == (0.0, 1.0)
    # There is room for some between the ends, and none lies over another.
    assert len(ticks) > 3
    assert np.all(np.diff(scale(np.array(ticks))) >= 0.09 * local.sum())
    nothing = dataclasses.replace(fit.diagnostics, local_length=np.full(10, np.nan))
    assert not along(dataclasses.replace(fit, diagnostics=nothing)).by_length


def test_tails_leave_room_for_the_target(fit):
    heavy = np.random.default_rng(0).standard_cauchy(fit.base["theta"].shape) * 1e4
    wide = dataclasses.replace(fit, base=fit.base.assign(theta=(fit.base["theta"].dims, heavy)))
    ax = plots.tails(wide)
    target = fit.posterior["theta"].values
    low, high = ax.get_xlim()
    assert np.ptp(target) > 0.3 * (high - low)
    assert "base from" in ax.get_title("right")


def test_a_map_of_the_modes_has_their_shares(fit):
    one = plots.modes(with_modes(fit))
    assert [text.get_text() for text in one.get_legend().get_texts()] == ["0: 0.510 ± 0.020", "1: 0.490 ± 0.020"]
    pair = two_variables(fit)
    both = plots.modes(dataclasses.replace(pair, base=pair.posterior))
    assert (both.get_xlabel(), both.get_ylabel()) == ("theta[0]", "noise")
    assert plots.modes(fit).get_legend() is None
    rare = pair.posterior.copy(deep=True)
    rare["theta"].values[...] = -10.0 + rare["noise"].values[..., None]
    rare["theta"].values[0, 0] = 10.0
    ends = plots.modes(dataclasses.replace(pair, posterior=rare, base=rare)).get_xlim()
    assert ends[0] < -10.0 < 10.0 < ends[1]
    rare["theta"].values[0, 0] = -10.0
    known = plots.modes(dataclasses.replace(pair, posterior=rare, base=rare)).get_title("right")
    assert known == "2 known, 1 with draws"
    with pytest.raises(InputError, match="one or two variables"):
        plots.modes(fit, var=("a", "b", "c"))


def test_a_trace_shows_every_chain_once(fit):
    figure = plots.trace(fit)
    right = figure.axes[1]
    chains, draws = fit.posterior["theta"].shape[:2]
    assert len(right.lines) == chains
    assert sum(len(line.get_xdata()) for line in right.lines) == chains * draws
    pixels(figure)
    pixels(plots.trace(with_draws(np.full((2, 5), np.nan))))


def test_a_comparison_takes_the_table_alone():
    with pytest.raises(InputError, match=r"table: it must be the table that pt\.compare gives"):
        plots.comparison(3)
    with pytest.raises(InputError, match="probability"):
        plots.comparison(pd.DataFrame({"log_bf": [0.0]}))
