"""Figures show what an index holds, whatever its titles are."""

import sys
from html import unescape

import pytest
from indexes import built
from llama_index.core.schema import Document
from store.trees import record, tree

from hierindex import HierarchicalIndex, HierarchyStore
from hierindex.errors import InputError, LevelError
from hierindex.export import pictures, plot_map

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
    assert any("<img src=x onerror" in unescape(text) for text in figure.data[0].hovertext)


def test_an_index_of_one_chunk(tmp_path):
    index = built({"a.txt": "A bridge was closed."}, tmp_path)
    assert sum(len(trace.x) for trace in plot_map(index).data) == 1


def test_what_does_not_exist_is_named(stored, monkeypatch):
    index, _ = stored
    with pytest.raises(LevelError, match="got level 99"):
        plot_map(index, 99)
    with pytest.raises(InputError, match="max_chunks must be"):
        plot_map(index, max_chunks=0)
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(InputError, match=r"^Figures need `pip install 'hierindex\[plot\]'`\.$"):
        plot_map(index)


@pytest.mark.parametrize(
    ("text", "most", "shown"),
    [
        ("a  b\nc", 9, "a b c"),
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abcde…"),
        ("abc defg", 5, "abc…"),
        ("&lt;", 9, "&amp;lt;"),
        ('"it\'s"', 9, '"it\'s"'),
        ("$x$", 9, "&#36;x&#36;"),
        ("\u202eab\u2066c\x1b[2J", 9, "ab c [2J"),
        ("", 9, ""),
    ],
)
def test_labels(text, most, shown):
    assert pictures.label(text, most) == shown


def test_lines_are_short():
    shown = pictures.lines("many words " * 1000)
    assert all(len(line) <= pictures.COLUMNS for line in shown.split("<br>"))
    assert len(shown) < 2 * pictures.TEXT
    assert pictures.lines("x" * 10_000).count("<br>") == 3


def test_names_are_cut_inside():
    long = "the-attention-mechanisms--of-transformers--with-many-heads"
    (one,) = pictures.fitted(long, 20, 1)
    assert len(one) == 20
    assert one.startswith("the-attent")
    assert one.endswith("any-heads")
    assert "".join(pictures.fitted(long, 20, 9)) == long
    first, second = pictures.fitted("x" * 30, 10, 2)
    assert (first, second) == ("x" * 10, "x" * 5 + "\u2026" + "x" * 4)
    assert pictures.fitted("", 10, 1) == []


def test_siblings_are_called_without_their_common_beginning():
    titles = ["A book: mills", "A book: sails", "A book: sails", "Notes"]
    assert pictures.names_of(titles, [0, 0, 1, 1]) == ["mills", "sails", "A book: sails", "Notes"]


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
