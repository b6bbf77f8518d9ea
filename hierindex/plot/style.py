"""What all figures have in common: Plotly, colours, and text that is shown as it is."""

import html
from pathlib import PurePath
from textwrap import wrap
from typing import Any

from hierindex.errors import InputError
from hierindex.loading import extra
from hierindex.store.prefilter import CHUNKS
from hierindex.store.snapshot import Snapshot
from hierindex.unsafe import beginning

# Of M. Okabe and K. Ito, which people with any colour vision tell apart, without the yellow.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
DARK, INK, GREY = "#111111", "#333333", "#C4C4C4"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
LEVELS = ("#C3D8EC", "#08416F")  # of the chunks and of the top level
TITLE = 60  # characters of a label
TEXT = 240  # characters of a text
LINE = 70  # characters of a line of it


def graph_objects() -> Any:
    """Import Plotly's graph objects.

    Raises
    ------
    InputError
        If Plotly is not installed.
    """
    with extra("plot", "Figures need"):
        from plotly import graph_objects
    return graph_objects


def label(text: str, most: int = TITLE) -> str:
    """Return the beginning of a text on one line, so that Plotly shows it as it is.

    Plotly takes tags for formatting and what is between dollars for TeX.

    >>> label("<b>costs $5</b>", 12)
    '&lt;b&gt;costs &#36;5…'
    """
    return _escaped(beginning(text, most))


def lines(text: str) -> str:
    """Return the beginning of a text on lines of at most 70 characters, as Plotly shows it."""
    return "<br>".join(map(_escaped, wrap(beginning(text, TEXT), LINE)))


def _escaped(text: str) -> str:
    return html.escape(text, quote=False).replace("$", "&#36;")  # Plotly knows no &quot;


def name_of(snapshot: Snapshot) -> str:
    """Return the last part of the address of an index, as a label."""
    return label(PurePath(snapshot.uri).name)


def require_chunks(snapshot: Snapshot) -> None:
    """Raise an error if there is no index or it is empty.

    Raises
    ------
    IndexNotFoundError, InputError
    """
    snapshot.require()
    if not snapshot.count(CHUNKS):
        raise InputError("The index is empty: there is nothing to plot.")


def shades(n: int, ends: tuple[str, str] = LEVELS) -> list[str]:
    """Return a colour for each of n levels, from the chunks up to the top level."""
    first, last = ([int(each[i : i + 2], 16) for i in (1, 3, 5)] for each in ends)
    parts = (i / max(1, n - 1) for i in range(n))
    return [
        "#" + "".join(f"{round(a + (b - a) * x):02X}" for a, b in zip(first, last, strict=True))
        for x in parts
    ]


def look(title: str, below: str, **layout: Any) -> dict[str, Any]:
    """Return the layout of a figure with a title and a line below it; both are Plotly's text."""
    return {
        "template": "none",
        "title": {"text": title, "subtitle": {"text": below}, "x": 0.02, "xanchor": "left"},
        "font": {"family": FONT, "size": 13, "color": INK},
        "hoverlabel": {"align": "left", "bgcolor": "white", "font": {"family": FONT}},
        "margin": {"l": 20, "r": 20, "t": 90, "b": 20},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        **layout,
    }
