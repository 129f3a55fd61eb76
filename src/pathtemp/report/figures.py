"""Figures as images inside the page."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from pathtemp.errors import MissingExtraError
from pathtemp.report.markup import Markup, h

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pathtemp.result.fit import Fit

FIRST = "Draws of the target and of the base, the joint path, and log z with its band of two standard errors."

SECOND = "How it went: the marginal of a, log z by round, where the path is hard, and acceptance."

THIRD = "Tours of four chains, tails of a variable, and the modes with their shares."

OF_MARGIN = "The marginal density and its logarithm, the walk along the margin, and acceptance."


def figures(fit: Fit) -> Markup:
    """The figure to look at first, and the one for when something is wrong; a line where matplotlib is absent."""
    from pathtemp.plots import diagnose
    from pathtemp.plots.style import pyplot, styled

    heading = h("h2", "Figures")
    try:
        plt = pyplot()
    except MissingExtraError as error:
        return h("section", heading, h("p", f"There are none: {error}", class_="note"), id="figures")
    makers: list[tuple[Callable[[], Figure], str]] = [(fit.plot, OF_MARGIN if hasattr(fit, "marginal") else FIRST)]
    if not hasattr(fit, "marginal"):
        makers += [(partial(diagnose, fit), SECOND), (partial(_tours, fit), THIRD)]
    shown = []
    # The page turns its figures over for dark screens, so that they have to be light whatever the user's style.
    with styled(plt.style.context("default")):
        for make, caption in makers:
            figure = make()
            shown.append(h("figure", h("img", src=_image(figure), alt=caption), h("figcaption", caption)))
            plt.close(figure)
    return h("section", heading, *shown, id="figures")


def _tours(fit: Fit) -> Figure:
    """Tours and tails, and a map of the modes where there are several."""
    from pathtemp.plots import mode_shares, modes, tails, tours
    from pathtemp.plots.style import pyplot, styled

    several = fit.modes is not None and len(fit.modes) > 1
    plt = pyplot()
    with styled():
        figure: Figure
        size = (8.4, 6.2 if several else 3.1)
        figure, panels = plt.subplots(2 if several else 1, 2, figsize=size, squeeze=False, layout="constrained")
        tours(fit, panels[0, 0])
        tails(fit, panels[0, 1])
        if several:
            modes(fit, panels[1, 0])
            mode_shares(fit, panels[1, 1])
    return figure


def _image(figure: Figure) -> str:
    """An SVG as a data URL: inside an image, nothing of it can run or reach the network."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode()
