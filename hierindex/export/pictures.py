"""Pictures of an index: its tree as SVG, and the map of its chunks by Plotly."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from hierindex.core.arguments import is_whole, require
from hierindex.core.titles import without_shared_prefix
from hierindex.errors import extra
from hierindex.export.files import new, snapshot_of
from hierindex.index import HierarchicalIndex
from hierindex.retrieve.levels import Level
from hierindex.retrieve.tree import MAX_POINTS, chunk_map, reading_order
from hierindex.serve.explorer import PAGE
from hierindex.store.generations import on_newest
from hierindex.store.snapshot import Snapshot, overview
from hierindex.text.display import counted
from hierindex.unsafe import beginning

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

# The tree, in pixels.
WIDTH, HEIGHT = 800, 552
LINE = 13  # of a line of text
HEAD = 56  # above the nodes, for the heading and the names of levels
LEAST = 1.5  # lower nodes are left out
LETTER, PAD = 6.5, 4  # wider than most letters, and before a text
LONGEST = 200  # characters of a name

# The map, in characters.
TITLE = 60  # of a label
TEXT, COLUMNS = 240, 70  # of a text, and of a line of it
MAP = 800  # pixels
NAMED = 8  # parents that have a colour: --map-1 to --map-8 of the explorer
VARIABLE = re.compile(r"--([\w-]+):\s*(?:light-dark\((#\w+), (#\w+)\)|([^;]+));")


def to_svg(index: HierarchicalIndex, path: str | Path) -> int:
    """Draw the tree to a new SVG file: a column for each level, the chunks on the right.

    The heading gives the index's name and its document and token counts. Nodes are
    in reading order. A node's height is proportional to its number of chunks, and it spans the
    columns of all its levels. Colours follow the reader's light or dark theme. Nodes less than 1.5
    pixels high are left out, so a level takes at most about 10 kB.

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
        If the index is missing or empty, or the file exists or cannot be written.
    """
    with new(path) as partial:
        n_nodes, lines = _drawn(index)
        partial.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return n_nodes


@on_newest
def _drawn(index: HierarchicalIndex) -> tuple[int, list[str]]:
    """Return the number of nodes in the picture, and its lines."""
    snapshot = snapshot_of(index)
    shown, order = overview(snapshot), reading_order(snapshot)
    icicle, levels = order.icicle, shown["levels"]
    n_levels = 1 + levels[-1]["level"]
    scale = (HEIGHT - HEAD) / icicle.x1.max(initial=1)
    cells = np.flatnonzero((icicle.x1 - icicle.x0) * scale >= LEAST).tolist()
    rows = snapshot.rows(order.ids_at(cells), columns=("id", "title", "level_max"))
    left = [WIDTH * (1 - (level + 1) / n_levels) for level in range(n_levels)]
    right = [WIDTH, *left]  # by level
    columns = [_box(left[n], right[n], HEAD, HEIGHT - HEAD) for n in range(n_levels)]
    texts = [
        _text(left[each["level"]], HEAD - (2 - line) * LINE, text)
        for each in levels
        for line, text in enumerate(_heads(**each))
    ]
    nodes = [""] * n_levels
    names = names_of([row["title"] for row in rows], icicle.parent[cells].tolist())
    for cell, row, name in zip(cells, rows, names, strict=True):
        level, level_max = int(icicle.level[cell]), row["level_max"]
        y, down = HEAD + icicle.x0[cell] * scale, (icicle.x1[cell] - icicle.x0[cell]) * scale
        nodes[level] += _box(left[level_max], right[level], y, down)
        if most := int(down / LINE):
            letters = int((right[level] - left[level_max] - PAD) / LETTER)
            name, letters = beginning(name, LONGEST), max(2, letters)
            is_one = most == 1  # of which textwrap may leave only the placeholder
            lines = wrap(name, letters, max_lines=most, placeholder="…")
            lines = [beginning(name, letters)] if is_one else lines
            top = y + (down - LINE * len(lines)) / 2
            texts += [_text(left[level_max], top + LINE * i, line) for i, line in enumerate(lines)]
    name, tokens = snapshot.name, levels[0]["tokens"]
    counts = f"{counted(shown['documents'], 'document')}, {counted(tokens, 'token')}"
    told = f"A tree of {counted(shown['documents'], 'document')} in {counted(n_levels, 'level')}"
    return len(cells), [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
        f' height="{HEIGHT}" role="img" aria-label="{told}">',
        f"<title>{told}</title>",
        "<style>",
        f"text{{font:11px {colours()['words']}}}text.name{{font-size:14px;font-weight:600}}",
        "path{stroke-width:.5}",
        *_colours("light", n_levels),
        "@media(prefers-color-scheme:dark){",
        *_colours("dark", n_levels),
        "}",
        "</style>",
        f'<rect class="behind" width="{WIDTH}" height="{HEIGHT}"/>',
        *(f'<path class="l{n}" d="{d}"/>' for part in (columns, nodes) for n, d in enumerate(part)),
        f'<text class="name" x="{PAD}" y="16">{escape(beginning(f"{name}: {counts}", 90))}</text>',
        *texts,
        "</svg>",
    ]


def _colours(scheme: str, n_levels: int) -> Iterator[str]:
    """Yield the rules of a colour scheme."""
    colour = colours(scheme)
    yield f".behind{{fill:{colour['paper']}}}path{{stroke:{colour['paper']}}}"
    yield f"text{{fill:{colour['ink']}}}"
    for level, shade in enumerate(shades(n_levels, scheme)):
        yield f".l{level}{{fill:{shade}}}"


def _box(left: float, right: float, y: float, down: float) -> str:
    """Return a part of a path around a box."""
    return f"M{left:.4g} {y:.4g}H{right:.4g}v{down:.4g}H{left:.4g}z"


def _text(left: float, y: float, text: str) -> str:
    """Return a line of text below a height."""
    return f'<text x="{left + PAD:.4g}" y="{y + LINE - 2:.4g}">{escape(text)}</text>'


def _heads(level: int, nodes: int, tokens: int) -> tuple[str, str]:
    """Return the name of a level, and the number of its nodes."""
    return f"level {level}", counted(nodes, "node" if level else "chunk")


@cache
def colours(scheme: str = "light") -> dict[str, str]:
    """Return the variables of the explorer's style sheet in its light or dark colour scheme."""
    style = (PAGE / "page.css").read_text("utf-8")
    found = VARIABLE.findall(style)
    return {
        name: (dark if scheme == "dark" else light) or same for name, light, dark, same in found
    }


def shades(n: int, scheme: str = "light") -> list[str]:
    """Return a colour for each of n levels, the chunks first; text in `ink` is legible on all."""
    first, last = ([*bytes.fromhex(colours(scheme)[end][1:])] for end in ("tint", "warm"))
    steps = np.linspace(first, last, n).round().astype(int)  # (n, 3)
    return ["#" + bytes(step).hex() for step in steps.tolist()]


def names_of(titles: Sequence[str], parents: Sequence[int]) -> list[str]:
    """Return titles without the beginning shared by all children of the same parent.

    >>> names_of(["A book: mills", "A book: sails", "A book: sails", "Notes"], [0, 0, 1, 1])
    ['mills', 'sails', 'A book: sails', 'Notes']
    """
    siblings = defaultdict[int, list[str]](list)
    for title, parent in zip(titles, parents, strict=True):
        siblings[parent].append(title)
    names = {parent: iter(without_shared_prefix(group)) for parent, group in siblings.items()}
    return [next(names[parent]) for parent in parents]


def label(text: str, most: int = TITLE) -> str:
    """Return the beginning of a text on one line, escaped for Plotly.

    Plotly reads tags as formatting and text between dollar signs as TeX.

    >>> label("<b>costs $5</b>", 12)
    '&lt;b&gt;costs &#36;5…'
    """
    return _escaped(beginning(text, most))


def lines(text: str) -> str:
    """Return the beginning of a text in lines of at most 70 characters, escaped for Plotly."""
    return "<br>".join(map(_escaped, wrap(beginning(text, TEXT), COLUMNS)))


def _escaped(text: str) -> str:
    return escape(text, quote=False).replace("$", "&#36;")  # Plotly knows no &quot;


@on_newest
def plot_map(
    index: HierarchicalIndex, level: Level | None = None, max_chunks: int = MAX_POINTS
) -> "Figure":
    """Draw the chunks as points in a plane, similar ones near each other, coloured by parent.

    The legend names the parents with the most points.

    Parameters
    ----------
    index : HierarchicalIndex
    level : int or {"top", "documents", "sections", "chunks"}, optional
        Level of the parents that colour the points; the 8 with the most points get a colour. By
        default the highest level with at least 8 nodes, or else the lowest above the chunks.
    max_chunks : int
        Maximum number of points, 2,000 by default; larger values are treated as 2,000. If there are
        more chunks, a sample is drawn.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    InputError
        If the index is missing or empty, `max_chunks` is not positive, or Plotly is not installed.
    LevelError
        If the tree lacks the level.

    Notes
    -----
    `hierindex.retrieve.tree.chunk_map` places the points. The first map after an update
    takes a few seconds.
    """
    with extra("plot", "Figures need"):
        from plotly import graph_objects as go
    require(is_whole(max_chunks, 1), "max_chunks", "an integer of at least 1", max_chunks)
    snapshot = snapshot_of(index)
    if level is None:
        level = _coloured(overview(snapshot)["levels"])
    found = chunk_map(snapshot, level, max_chunks)
    points, parents = found["points"], found["parents"]
    groups = defaultdict[int, list[dict[str, Any]]](list)
    for point, text in zip(points, _texts(snapshot, points, parents), strict=True):
        group = NAMED if point["parent"] is None else min(point["parent"], NAMED)
        groups[group].append({**point, "text": text})
    colour = colours()
    names = [label(parent["title"], 36) for parent in parents[:NAMED]]
    traces = [
        go.Scatter(
            x=[point["x"] for point in group],
            y=[point["y"] for point in group],
            mode="markers",
            name=f"{names[number] if number < NAMED else 'others'} ({len(group):,})",
            hovertext=[point["text"] for point in group],
            hoverinfo="text",
            marker={
                "color": colour["quiet" if number == NAMED else f"map-{number + 1}"],
                "size": 7,
                "line": {"width": 0},
            },
            legendrank=number,
        )
        for number, group in sorted(groups.items(), reverse=True)  # the largest on top
    ]
    shown = counted(len(points), "chunk")
    if len(points) < found["chunks"]:
        shown = f"{len(points):,} of {found['chunks']:,} chunks, a sample,"
    font = {"family": colour["words"], "size": 13, "color": colour["ink"]}
    title = f"{label(snapshot.name)}: {shown} by similarity"
    below = "Near points are similar texts; long distances mean little (t-SNE of the embeddings)"
    layout = {
        "template": "none",
        "title": {"text": title, "subtitle": {"text": below}, "x": 0.02, "xanchor": "left"},
        "font": font,
        "hoverlabel": {"align": "left", "bgcolor": colour["raised"], "font": font},
        "margin": {"l": 20, "r": 20, "t": 90, "b": 20},
        "paper_bgcolor": colour["paper"],
        "plot_bgcolor": colour["paper"],
        "height": MAP,
        "xaxis": {"visible": False, "constrain": "domain"},
        "yaxis": {"visible": False, "scaleanchor": "x"},
        "legend": {"title": {"text": f"Nodes of level {level} (chunks)"}, "itemsizing": "constant"},
        "showlegend": True,
    }
    return go.Figure(traces, layout)


def _texts(
    snapshot: Snapshot, points: Sequence[Mapping[str, Any]], parents: Sequence[Mapping[str, str]]
) -> Iterator[str]:
    """Yield the text shown above each point: its title, its parent's title and its text."""
    rows = snapshot.rows([point["id"] for point in points], columns=("id", "title", "text"))
    for point, row in zip(points, rows, strict=True):
        under = [parents[point["parent"]]["title"]] if point["parent"] is not None else []
        above = [f"<b>{label(row['title'])}</b>", *(f"under {label(each)}" for each in under)]
        yield "<br>".join([*above, lines(row["text"])])


def _coloured(levels: Sequence[Mapping[str, int]]) -> int:
    """Return the highest level whose nodes use all colours, or else the lowest above the chunks."""
    above = [each["level"] for each in levels[1:] if each["nodes"] > 1] or [levels[-1]["level"]]
    many = (each["level"] for each in reversed(levels[1:]) if each["nodes"] >= NAMED)
    return next(many, above[0])
