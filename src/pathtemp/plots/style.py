"""Colours and axes that every panel shares."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from pathtemp._types import FloatArray
from pathtemp.api.arguments import float_array, shown
from pathtemp.api.arguments import text as check_text
from pathtemp.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

P = ParamSpec("P")
Drawn = TypeVar("Drawn")

# The palette of Okabe and Ito, which colour-blind readers can tell apart.
TARGET, BASE, BETWEEN = "#0072B2", "#E69F00", "#8C8C8C"
ESTIMATE, ALARM, SKY = "#009E73", "#D55E00", "#56B4E9"

DASHES = (0, (4, 3))
"""Line style of what is exact, or aimed at."""

CENTRAL = 0.99
"""Share of the draws that a panel shows; heavy tails would otherwise hide the rest."""

RC = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.dpi": 120,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
}


def pyplot() -> Any:
    """Import matplotlib.pyplot, or say what to install."""
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        raise MissingExtraError("matplotlib", "plots") from error
    return plt


def ink() -> str:
    """The colour of text in the user's style: black on white, and white on dark."""
    return str(pyplot().rcParams["text.color"])


def _on_dark() -> bool:
    """Whether the user's style has dark pages."""
    from matplotlib.colors import to_rgb

    return sum(to_rgb(pyplot().rcParams["axes.facecolor"])) < 1.5


def veil(alpha: float) -> float:
    """How opaque a filled area is: more so on a dark page, where what shines through is black.

    >>> veil(0.45)
    0.45
    """
    return min(1.0, 0.35 + alpha) if _on_dark() else alpha


def tone(colour: str) -> str:
    """A colour of the palette; on a dark page its two blues are swapped, as the darker one is hard to see there.

    >>> tone(TARGET) == TARGET
    True
    """
    return {TARGET: SKY, SKY: TARGET}.get(colour, colour) if _on_dark() else colour


@contextmanager
def styled(context: AbstractContextManager[Any] | None = None) -> Iterator[None]:
    """The style of this package, or another, for a while.

    A notebook's backend is loaded with the first figure and turns interactive drawing on, which would be turned off
    again at the end: no later figure would be shown.
    """
    plt = pyplot()
    import matplotlib as mpl

    with plt.rc_context(RC) if context is None else context:
        yield
        interactive = plt.isinteractive()
    mpl.interactive(interactive)


def of_fit(draw: Callable[P, Drawn]) -> Callable[P, Drawn]:
    """A plot of a fit, in the style of this package; it says so where it is given something else."""
    signature = inspect.signature(draw)

    @functools.wraps(draw)
    def checked(*args: P.args, **kwargs: P.kwargs) -> Drawn:
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as error:
            taken = ", ".join(list(signature.parameters)[1:])
            raise InputError(f"{draw.__name__}: {error}; beside the fit it takes {taken or 'nothing'}") from None
        fit = given.arguments["fit"]
        if not hasattr(fit, "posterior"):
            raise InputError(f"fit: it must be a fit, as pt.temper gives, and is {shown(fit)}")
        for name, value in given.arguments.items():
            check_option(name, value)
        with styled():
            return draw(*args, **kwargs)

    return checked


def check_option(name: str, value: object) -> None:
    """Raise where an option that several plots have is of a type that none of them takes."""
    if value is None:
        return
    if name == "ax" and not hasattr(value, "set_title"):
        raise InputError(f"ax: it must be the axes of a figure of matplotlib, and is {shown(value)}")
    if name == "label":
        check_text(name, value)
    if name.endswith("density") and not callable(value):
        raise InputError(f"{name}: expected a function of an array of values, and it is {shown(value)}")


def values_of(name: str, function: Callable[[FloatArray], Any], points: FloatArray) -> FloatArray:
    """A function of the user at some points, (n,); InputError where it gives anything but a number for each."""
    try:
        values = float_array(name, function(points))
    except InputError:
        raise InputError(f"{name}: the function must give a number for each of an array of points") from None
    except Exception as error:  # whatever goes wrong inside the user's function
        raise InputError(f"{name}: the function fails at an array of points ({type(error).__name__})") from error
    if values.shape not in ((), points.shape):
        raise InputError(f"{name}: the function gives shape {values.shape} for an array of shape {points.shape}")
    return np.broadcast_to(values, points.shape)


def axes(ax: Axes | None) -> Axes:
    """The given axes, or those of a new figure."""
    if ax is not None:
        return ax
    made: Axes = pyplot().subplots(figsize=(4.2, 3.2), layout="constrained")[1]
    return made


def title(ax: Axes, text: str, note: str = "", *, alarm: bool = False) -> None:
    """A heading on the left and a result on the right of the panel."""
    ax.set_title(text, loc="left", parse_math=False)
    ax.set_title(
        note,
        loc="right",
        fontsize="small",
        color=ALARM if alarm else ink(),
        alpha=1.0 if alarm else 0.75,
        parse_math=False,
    )


def empty(ax: Axes, text: str) -> Axes:
    """A panel that says why it is empty."""
    ax.text(0.5, 0.5, text, ha="center", va="center", transform=ax.transAxes, alpha=0.75)
    ax.set(xticks=[], yticks=[])
    return ax


def central_range(values: FloatArray) -> tuple[float, float]:
    """Range of the central 99% of the finite values, a little widened.

    >>> central_range(np.array([2.0, 2.0]))
    (1.5, 2.5)
    """
    low, high = np.quantile(values, [0.5 * (1 - CENTRAL), 0.5 * (1 + CENTRAL)])
    pad = 0.08 * (high - low) or 0.5
    return float(low - pad), float(high + pad)
