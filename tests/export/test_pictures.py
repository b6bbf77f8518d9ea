"""Pictures of trees and of chunks show what an index holds, whatever its titles are."""

import re
import sys
from collections import defaultdict
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest
from indexes import built
from llama_index.core.schema import Document, TextNode
from records import replace_all
from store.trees import record, tree

from hierindex import HierarchicalIndex, HierarchyStore
from hierindex.errors import InputError, LevelError
from hierindex.export import pictures, plot_map, to_svg

BOX = re.compile(r"M([\d.]+) ([\d.]+)H([\d.]+)v([\d.]+)H[\d.]+z")
NAMES = {"svg": "http://www.w3.org/2000/svg"}
PIXEL = 0.2  # of what is rounded


def drawn(index, path):
    """The root element, and the boxes of columns and of nodes as x0, y0, x1, y1, by level."""
    to_svg(index, path)
    root = ElementTree.fromstring(path.read_text("utf-8"))
    paths = root.findall("svg:path", NAMES)
    boxes = [
        [(x0, y, x1, y + down) for x0, y, x1, down in (map(float, b) for b in BOX.findall(d))]
        for d in (each.get("d") for each in paths)
    ]
    n = len(paths) // 2
    assert [each.get("class") for each in paths] == 2 * [f"l{level}" for level in range(n)]
    return root, boxes[:n], boxes[n:]


def test_a_level_is_a_column_that_its_nodes_fill(soft, tmp_path) -> None:
    _, columns, boxes = drawn(soft, tmp_path / "tree.svg")
    levels = soft.info()["levels"]
    assert len(columns) == len(levels)
    for (column,), each in zip(columns, levels, strict=True):
        x = (column[0] + column[2]) / 2
        inside = sorted(box for of in boxes for box in of if box[0] < x < box[2])
        inside.sort(key=lambda box: box[1])
        assert len(inside) == each["nodes"]
        ends = [column[1], *(box[3] for box in inside)]
        assert [box[1] for box in inside] == pytest.approx(ends[:-1], abs=PIXEL)
        assert ends[-1] == pytest.approx(column[3], abs=PIXEL)
    lefts = [column[0] for (column,) in columns]
    assert lefts == sorted(lefts, reverse=True)


def test_a_node_has_the_height_of_its_chunks_and_its_title(soft, tmp_path) -> None:
    root, _, boxes = drawn(soft, tmp_path / "tree.svg")
    sizes, titles = defaultdict(list), defaultdict(list)

    def walk(nodes):
        for node in nodes:
            sizes[node["level"]].append(node["chunks"])
            titles[node["level"]].append(node["title"])
            walk(node["nodes"])

    walk(soft.tree(depth=99)["nodes"])
    n_chunks = len(sizes[0])
    for level, of in enumerate(boxes):
        heights = sorted(
            (y1 - y0) * n_chunks / (pictures.HEIGHT - pictures.HEAD) for _, y0, _, y1 in of
        )
        assert heights == pytest.approx(sorted(sizes[level]), abs=0.05)
    heading, *texts = (each.text for each in root.findall("svg:text", NAMES))
    info = soft.info()
    n_tokens = info["levels"][0]["tokens"]
    assert (
        heading
        == f"{Path(soft.store.uri).name}: {info['documents']} documents, {n_tokens:,} tokens"
    )
    shown = texts[2 * len(sizes) :]  # below the heads of the levels
    all_titles = [title for of in titles.values() for title in of]
    assert any(title in shown for title in all_titles)
    for text in shown:
        assert any(all(part in title for part in text.split("…")) for title in all_titles), text


def test_a_name_is_in_the_middle_of_its_box(soft, tmp_path) -> None:
    root, _, boxes = drawn(soft, tmp_path / "tree.svg")
    (top,) = boxes[-1]
    texts = [float(each.get("y")) for each in root.findall("svg:text", NAMES)[1:]]
    lefts = [float(each.get("x")) for each in root.findall("svg:text", NAMES)[1:]]
    inside = [y for x, y in zip(lefts, texts, strict=True) if x < top[2] and y > pictures.HEAD]
    middle = (inside[0] - pictures.LINE + inside[-1]) / 2 + 2  # of the lines, which stand on y - 2
    assert middle == pytest.approx((top[1] + top[3]) / 2, abs=PIXEL)


def test_hostile_titles_are_text(tmp_path) -> None:
    title = "</text><script>alert('\"&')</script>\x00\x1b\u202e\ufffe"
    said = {"text": "A bridge. " * 3, "metadata": {"title": title}}
    index = built([Document(id_=str(i), **said) for i in range(3)], tmp_path / "index")
    root, *_ = drawn(index, tmp_path / "tree.svg")
    tags = {each.tag.partition("}")[2] for each in root.iter()}
    assert tags == {*"svg title style rect path text".split()}
    texts = [each.text for each in root.findall("svg:text", NAMES)]
    assert any(text.startswith("</text><script>") for text in texts)


def test_low_nodes_are_left_out(tmp_path, monkeypatch) -> None:
    store = HierarchyStore(tmp_path / "index")
    nodes = [TextNode(text=f"Text {i}.", embedding=[1.0, i]) for i in range(400)]
    store.add(nodes)
    assert to_svg(HierarchicalIndex(store), tmp_path / "low.svg") == 0
    monkeypatch.setattr(pictures, "LEAST", 1)
    assert to_svg(HierarchicalIndex(store), tmp_path / "all.svg") == 400
    assert (tmp_path / "all.svg").stat().st_size < 15_000


def test_another_generation_is_published_while_it_is_drawn(tmp_path, monkeypatch) -> None:
    nodes = [TextNode(text=f"Text {i}.", embedding=[1.0]) for i in range(3)]
    store, read = HierarchyStore(tmp_path / "index"), pictures.overview
    replace_all(store, nodes[:1])

    def published_first(snapshot):
        if snapshot.generation == 1:
            replace_all(store, nodes[1:], purge=True)
        return read(snapshot)

    monkeypatch.setattr(pictures, "overview", published_first)
    assert to_svg(HierarchicalIndex(store), tmp_path / "tree.svg") == 2


HOSTILE = (
    '<img src=x onerror=alert(1)><a href="javascript:alert(1)">a</a> & $x$ \u202eabc\x00\n%{y}'
)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A semantic index, with its nodes by id."""
    store = HierarchyStore(tmp_path_factory.mktemp("plotted"))
    store.add(tree())
    return HierarchicalIndex(store), {n.node_id: n for n in store.get_nodes()}


def strings(value):
    """All strings of a figure."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from strings(each)


@pytest.mark.parametrize("level", [None, 0, 1, "top"])
def test_a_map_has_each_chunk_once(stored, level):
    index, nodes = stored
    figure = plot_map(index, level)
    n_chunks = sum(record(node).level == 0 for node in nodes.values())
    assert sum(len(trace.x) for trace in figure.data) == n_chunks
    assert len({*zip(*([*trace.x] for trace in figure.data), strict=False)}) > 0
    assert f"{n_chunks} chunks" in figure.layout.title.text
    counts = [int(trace.name.rpartition("(")[2].strip(")")) for trace in figure.data]
    assert counts == [len(trace.x) for trace in figure.data]


def test_the_level_of_a_map_is_the_highest_that_uses_all_colours(stored, monkeypatch):
    index, _ = stored
    sizes = {each["level"]: each["nodes"] for each in index.info()["levels"]}
    for least in (2, sizes[1], sizes[1] + 1):
        monkeypatch.setattr(pictures, "NAMED", least)
        many = [n for n, size in sizes.items() if n and size >= least]
        assert f"level {max(many, default=1)} " in plot_map(index).layout.legend.title.text


def test_parents_without_a_colour_are_counted(stored, monkeypatch):
    index, _ = stored
    monkeypatch.setattr(pictures, "NAMED", 3)
    figure = plot_map(index, 1)
    others, *named = figure.data
    sizes = [len(trace.x) for trace in named]
    assert len(named) == 3
    assert sizes == sorted(sizes)  # the largest is drawn last
    colour = pictures.colours()
    assert [trace.marker.color for trace in named] == [colour[f"map-{n}"] for n in (3, 2, 1)]
    assert others.marker.color == colour["quiet"]
    assert others.name == f"others ({len(others.x)})"
    few = plot_map(index, 1, max_chunks=5)
    assert sum(len(trace.x) for trace in few.data) == 5
    assert "5 of" in few.layout.title.text
    assert "sample" in few.layout.title.text


def test_text_is_shown_as_it_is(tmp_path):
    folder = tmp_path / "<b>index<b>"
    documents = [
        Document(text=f"{HOSTILE} {word}. " * 3, id_=word, metadata={"title": HOSTILE})
        for word in ("bridge", "river", "tower")
    ]
    figure = plot_map(built(documents, folder, max_children=4))
    for text in strings(figure.to_dict()):
        own = text.replace("<br>", "").replace("<b>", "").replace("</b>", "")
        assert not {*own} & {*"<>$\u202e\x00\n"}, text
    for trace in figure.data:  # a template would fill in what texts look like
        assert not {key for key in trace.to_plotly_json() if key.endswith("template")}
        assert all(
            len(unescape(line)) <= 80 for text in trace.hovertext for line in text.split("<br>")
        )
    assert any("<img src=x onerror" in unescape(text) for text in figure.data[0].hovertext)


def test_what_does_not_exist_is_named(stored, monkeypatch):
    index, _ = stored
    with pytest.raises(LevelError, match="got level 99"):
        plot_map(index, 99)
    with pytest.raises(InputError, match="max_chunks must be"):
        plot_map(index, max_chunks=0)
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(InputError, match=r"^Figures need `pip install 'hierindex\[plot\]'`\.$"):
        plot_map(index)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_legible_on_all_colours(scheme):
    """The contrast that WCAG 2.2 asks of text, in 1.4.3."""
    colour = pictures.colours(scheme)
    for n in (1, 2, 9):
        fills = pictures.shades(n, scheme)
        assert len({*fills}) == n
        for fill in [*fills, colour["paper"], colour["chosen"]]:
            light, dark = sorted((luminance(fill), luminance(colour["ink"])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5
    assert len({colour[f"map-{i + 1}"] for i in range(pictures.NAMED)}) == pictures.NAMED


def luminance(colour):
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return sum(a * b for a, b in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
