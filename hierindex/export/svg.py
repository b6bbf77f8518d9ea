"""Export of a tree as a picture."""

from collections.abc import Iterator
from html import escape
from pathlib import Path

import numpy as np

from hierindex.errors import InputError
from hierindex.export.files import NO_NODES, new
from hierindex.export.plots import FONT, shades
from hierindex.index import HierarchicalIndex
from hierindex.retrieve.contents import reading_order
from hierindex.store.generations import on_newest
from hierindex.store.snapshot import overview
from hierindex.text.display import counted
from hierindex.unsafe import beginning

WIDTH, HEIGHT = 800, 528  # pixels
HEAD = 32  # pixels above the nodes, for the names of levels
LEAST = 1.5  # pixels; lower nodes are left out
LINE = 13  # pixels of a line of text
LETTER, PAD = 6.5, 4  # pixels: wider than most letters, and before a text
COLOURS = {  # of the chunks and of the top level, of text, and of what is behind
    "light": (("#DFEAF5", "#8DB8DE"), "#10263C", "#FFFFFF"),
    "dark": (("#1D3550", "#2C5F92"), "#E4EDF6", "#0D1117"),
}


def to_svg(index: HierarchicalIndex, path: str | Path) -> int:
    """Draw the tree to a new SVG file: a column for each level, the chunks on the right.

    The height of a node is the number of chunks under it, in reading order; it spans the columns of
    all levels that it belongs to. Colours follow the reader's light or dark theme. Nodes less than
    1.5 pixels high are left out, so a level takes at most about 10 kB.

    Parameters
    ----------
    index : HierarchicalIndex
    path : str or Path
        File to create; missing parent folders are created.

    Returns
    -------
    int
        Number of nodes that are drawn.

    Raises
    ------
    IndexNotFoundError, InputError
        If there is no index, it is empty, or the file exists or cannot be written.
    """
    with new(path) as partial:
        n_nodes, lines = _drawn(index)
        partial.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return n_nodes


@on_newest
def _drawn(index: HierarchicalIndex) -> tuple[int, list[str]]:
    """Return the number of nodes in the picture, and its lines."""
    snapshot = index.table.snapshot()
    if not snapshot.n_rows():
        raise InputError(NO_NODES)
    shown, order = overview(snapshot), reading_order(snapshot)
    icicle, levels = order.icicle, shown["levels"]
    n_levels = 1 + levels[-1]["level"]
    scale = (HEIGHT - HEAD) / max(1, icicle.span(None)[1])
    cells = np.flatnonzero((icicle.x1 - icicle.x0) * scale >= LEAST).tolist()
    rows = snapshot.rows(order.ids_at(cells), columns=("id", "title", "level_max"))
    share = WIDTH / max(1, n_levels - 1 / 2)  # of a column; that of the chunks has half of it
    left = [(n_levels - 1 - level) * share for level in range(n_levels)]
    right = [WIDTH, *left]  # by level
    columns = [_box(left[n], right[n], HEAD, HEIGHT - HEAD) for n in range(n_levels)]
    texts = [
        _text(left[each["level"]], right[each["level"]], line * LINE, text)
        for each in levels
        for line, text in enumerate(_heads(**each))
    ]
    nodes = [""] * n_levels
    for cell, row in zip(cells, rows, strict=True):
        level, level_max = int(icicle.level[cell]), row["level_max"]
        y, down = HEAD + icicle.x0[cell] * scale, (icicle.x1[cell] - icicle.x0[cell]) * scale
        nodes[level] += _box(left[level_max], right[level], y, down)
        if down >= LINE:
            texts.append(_text(left[level_max], right[level], y, row["title"]))
    told = f"A tree of {counted(shown['documents'], 'document')} in {counted(n_levels, 'level')}"
    return len(cells), [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
        f' height="{HEIGHT}" role="img" aria-label="{told}">',
        f"<title>{told}</title>",
        "<style>",
        f"text{{font:11px {FONT}}}",
        "path{stroke-width:.5}",
        *_colours("light", n_levels),
        "@media(prefers-color-scheme:dark){",
        *_colours("dark", n_levels),
        "}",
        "</style>",
        f'<rect class="behind" width="{WIDTH}" height="{HEIGHT}"/>',
        *(f'<path class="l{n}" d="{d}"/>' for part in (columns, nodes) for n, d in enumerate(part)),
        *texts,
        "</svg>",
    ]


def _colours(scheme: str, n_levels: int) -> Iterator[str]:
    """Yield the rules of a colour scheme."""
    ends, text, behind = COLOURS[scheme]
    yield f".behind{{fill:{behind}}}path{{stroke:{behind}}}text{{fill:{text}}}"
    for level, colour in enumerate(shades(n_levels, ends)):
        yield f".l{level}{{fill:{colour}}}"


def _box(left: float, right: float, y: float, down: float) -> str:
    """Return a part of a path around a box."""
    return f"M{left:.4g} {y:.4g}H{right:.4g}v{down:.4g}H{left:.4g}z"


def _text(left: float, right: float, y: float, text: str) -> str:
    """Return as much of a text as fits into a box, at its top."""
    fitting = beginning(text, max(2, int((right - left - PAD) / LETTER)))
    return f'<text x="{left + PAD:.4g}" y="{y + LINE - 2:.4g}">{escape(fitting)}</text>'


def _heads(level: int, nodes: int, tokens: int) -> tuple[str, str]:
    """Return the name of a level, and its number of nodes."""
    return f"level {level}", counted(nodes, "node" if level else "chunk")
