"""HTML in which every text is escaped unless it was made here."""

from __future__ import annotations

import re
from collections.abc import Collection
from html import escape

from pathtemp.io.printable import printable

_VOID = frozenset({"br", "img", "input", "meta"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(content: str) -> Markup:
    """Any text, as HTML: control characters made visible, everything else that could be taken for markup escaped.

    >>> text("<script>alert(1)</script>")
    '&lt;script&gt;alert(1)&lt;/script&gt;'
    """
    return Markup(escape("\n".join(printable(line) for line in content.split("\n"))))


def h(tag: str, *children: str, **attributes: str | int) -> Markup:
    """One element; children that are not :class:`Markup` are escaped, attributes always.

    >>> h("p", "a < b ", h("b", "&"), class_="note")
    '<p class="note">a &lt; b <b>&amp;</b></p>'
    """
    names = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    inside = "".join(f' {name}="{text(str(value))}"' for name, value in names.items())
    if tag in _VOID:
        return Markup(f"<{tag}{inside}>")
    content = "".join(child if isinstance(child, Markup) else text(child) for child in children)
    return Markup(f"<{tag}{inside}>{content}</{tag}>")


def rows(
    pairs: list[tuple[str, ...]], *, head: tuple[str, ...] = (), class_: str = "", lesser: Collection[str] = ()
) -> Markup:
    """A table with a heading or without; the first column names the row, and the lesser ones need a wide screen.

    >>> rows([("mu", "1", "2")], head=("", "mean", "sd"), lesser={"sd"}).count('class="lesser"')
    2
    """
    kinds = [{"class_": "lesser"} if name in lesser else {} for name in head[1:]] or [{} for _ in pairs[0][1:]]
    body = [
        h("tr", h("th", first, scope="row"), *(h("td", x, **kind) for x, kind in zip(rest, kinds, strict=True)))
        for first, *rest in pairs
    ]
    titles = [h("th", x, scope="col", **kind) for x, kind in zip(head, [{}, *kinds], strict=True)] if head else []
    top = [h("thead", h("tr", *titles))] if head else []
    return h("table", *top, h("tbody", *body), class_=class_ or "plain")


def aligned(numbers: list[str]) -> list[Markup]:
    """Numbers of one column, filled up on the right with digits that are not seen, so that their points line up.

    >>> aligned(["1.25", "10", "nan"])
    ['1.25', '10<span class="unseen">.00</span>', 'nan']
    """
    places = [len(x.partition(".")[2]) for x in numbers]
    most = max((n for x, n in zip(numbers, places, strict=True) if x[-1:].isdigit()), default=0)
    filled = []
    for x, have in zip(numbers, places, strict=True):
        missing = ("." if have == 0 else "") + "0" * (most - have) if x[-1:].isdigit() and have < most else ""
        filled.append(Markup(text(x) + (h("span", missing, class_="unseen") if missing else "")))
    return filled


def minus(text: str) -> str:
    """Text with minus signs for the hyphens that stand for them.

    >>> minus("-8.05 (log z(1) - log z(0)), R-hat")
    '−8.05 (log z(1) − log z(0)), R-hat'
    """
    return re.sub(r"(?<!\S)-(?=[\s\d])", "−", text)
