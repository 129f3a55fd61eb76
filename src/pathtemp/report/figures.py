"""Figures as images inside the page."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

from pathtemp.errors import MissingExtraError
from pathtemp.report.markup import Markup, h

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pathtemp.fit import Fit


def figures(fit: Fit) -> Markup:
    """The figure to look at first, and the one for when something is wrong; a line where matplotlib is absent."""
    from pathtemp.plots import diagnose, plot
    from pathtemp.plots.style import pyplot

    heading = h("h2", "Figures")
    try:
        plt = pyplot()
    except MissingExtraError as error:
        return h("section", heading, h("p", f"There are none: {error}", class_="note"), id="figures")
    captions = (
        (plot, "Draws of the target and of the base, the joint path, and log z with its band of two standard errors."),
        (diagnose, "The marginal of a, log z by round, where the path is hard, and acceptance along the path."),
    )
    shown = []
    for make, caption in captions:
        figure = make(fit)
        shown.append(h("figure", h("img", src=_image(figure), alt=caption), h("figcaption", caption)))
        plt.close(figure)
    return h("section", heading, *shown, id="figures")


def _image(figure: Figure) -> str:
    """An SVG as a data URL: inside an image, nothing of it can run or reach the network."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode()
