"""Figures show what an index holds, whatever its titles are."""

import sys
from html import unescape
from itertools import combinations

import pytest
from fakes import HashingEmbedding
from llama_index.core.schema import Document
from store.trees import HIERARCHIES, record, tree

from hierindex import HierarchicalIndex, HierarchyStore, SemanticHierarchy
from hierindex.errors import IndexNotFoundError, InputError, LevelError
from hierindex.export import drawing, plot_map, plot_tree, plots

HOSTILE = (
    '<img src=x onerror=alert(1)><a href="javascript:alert(1)">a</a> & $x$ \u202eabc\x00\n%{y}'
)
PLOTS = [plot_tree, plot_map]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """An index of each hierarchy, with its nodes by id."""

    def made(hierarchy):
        store = HierarchyStore(tmp_path_factory.mktemp(hierarchy.__name__))
        store.add(tree(hierarchy))
        return HierarchicalIndex(store), {n.node_id: n for n in store.get_nodes()}

    return {hierarchy: made(hierarchy) for hierarchy in HIERARCHIES}


def built(folder, *texts, title=None):
    hierarchy = SemanticHierarchy(embed_model=HashingEmbedding(), max_children=4)
    documents = [
        Document(text=text, id_=f"{i}.txt", metadata={} if title is None else {"title": title})
        for i, text in enumerate(texts)
    ]
    return HierarchicalIndex.build(documents, folder, hierarchy=hierarchy)


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


@pytest.mark.parametrize("hierarchy", HIERARCHIES)
def test_an_icicle_has_each_node_once_in_its_parent(stored, hierarchy):
    index, nodes = stored[hierarchy]
    (drawn,) = plot_tree(index).data
    assert sorted(drawn.ids) == sorted(nodes)
    places = zip(drawn.ids, drawn.parents, drawn.values, drawn.marker.colors, strict=True)
    chunks = dict(zip(drawn.ids, drawn.values, strict=True))
    fills = drawing.shades(1 + max(record(node).level for node in nodes.values()))
    for node_id, parent, value, fill in places:
        of = record(nodes[node_id])
        assert parent == next((each for each, _ in of.parents), "")
        assert fill == fills[of.level]
        below = [chunks[i] for i, up in zip(drawn.ids, drawn.parents, strict=True) if up == node_id]
        assert value == (sum(below) if of.level else 1)


def test_an_icicle_is_bounded_and_says_so(stored):
    index, nodes = stored[SemanticHierarchy]
    n_summaries = sum(record(node).level > 0 for node in nodes.values())
    figure = plot_tree(index, max_nodes=n_summaries)  # each of several chunks here
    assert all(record(nodes[node_id]).level for node_id in figure.data[0].ids)
    drawn = f"the {n_summaries} of {len(nodes)} nodes with the most chunks"
    assert drawn in figure.layout.title.text
    one = plot_tree(index, max_nodes=1)
    assert [*one.data[0].parents] == [""]
    part = plot_tree(index, figure.data[0].ids[1][:12])
    assert part.data[0].parents[0] == ""
    assert {*part.data[0].ids} < {*nodes}


def test_several_roots_are_in_one_box(tmp_path):
    store = HierarchyStore(tmp_path / "index")
    store.add(tree(SemanticHierarchy, max_levels=1))
    index = HierarchicalIndex(store)
    roots = index.info()["roots"]
    (drawn,) = plot_tree(index).data
    first, *others = zip(drawn.ids, drawn.parents, drawn.labels, drawn.values, strict=True)
    n_chunks = sum(value for _, parent, _, value in others if parent == first[0])
    assert first[1:] == ("", "index", n_chunks)
    assert {node_id for node_id, parent, *_ in others if parent == first[0]} == {*roots}
    assert {*drawn.marker.colors} == {drawing.colours()["chosen"], *drawing.shades(2)}
    assert drawn.marker.colors[0] == drawing.colours()["chosen"]
    assert f"{len(others)} nodes" in plot_tree(index).layout.title.text
    assert plot_tree(index, roots[0]).data[0].ids[0] == roots[0]


def test_boxes_have_names_that_fit_and_tell_all_titles(tmp_path):
    title = "wind and water mills of the old town and of its neighbours"
    texts = [f"The {word} was closed. It is old. " * 200 for word in ("bridge", "river", "tower")]
    figure = plot_tree(built(tmp_path, *texts, title=title))
    (drawn,) = figure.data
    levels = 1 + max(map(len, paths(drawn).values()))
    for name, shown in zip(drawn.labels, drawn.hovertext, strict=True):
        assert len(name) <= plots.WIDTH // levels
        own = shown.removeprefix("<b>").partition("</b>")[0]
        assert all(part in own for part in name.split("\u2026"))
    assert sum(f"<b>{title}</b>" in shown for shown in drawn.hovertext) >= 3
    assert any("\u2026" in name for name in drawn.labels)


def paths(drawn):
    """The ids above each box."""
    above = dict(zip(drawn.ids, drawn.parents, strict=True))

    def path(node_id):
        return [] if above[node_id] == "" else [*path(above[node_id]), above[node_id]]

    return {node_id: path(node_id) for node_id in drawn.ids}


@pytest.mark.parametrize("level", [None, 0, 1, "top"])
def test_a_map_has_each_chunk_once(stored, level):
    index, nodes = stored[SemanticHierarchy]
    figure = plot_map(index, level)
    n_chunks = sum(record(node).level == 0 for node in nodes.values())
    assert sum(len(trace.x) for trace in figure.data) == n_chunks
    assert len({*zip(*([*trace.x] for trace in figure.data), strict=False)}) > 0
    assert f"{n_chunks} chunks" in figure.layout.title.text
    counts = [int(trace.name.rpartition("(")[2].strip(")")) for trace in figure.data]
    assert counts == [len(trace.x) for trace in figure.data]


def test_the_level_of_a_map_is_the_highest_that_uses_all_colours(stored, monkeypatch):
    index, _ = stored[SemanticHierarchy]
    sizes = {each["level"]: each["nodes"] for each in index.info()["levels"]}
    for least in (2, sizes[1], sizes[1] + 1):
        monkeypatch.setattr(plots, "NAMED", least)
        many = [n for n, size in sizes.items() if n and size >= least]
        assert f"level {max(many, default=1)} " in plot_map(index).layout.legend.title.text


def test_parents_without_a_colour_are_counted(stored, monkeypatch):
    index, _ = stored[SemanticHierarchy]
    monkeypatch.setattr(plots, "NAMED", 3)
    figure = plot_map(index, 1)
    others, *named = figure.data
    sizes = [len(trace.x) for trace in named]
    assert len(named) == 3
    assert sizes == sorted(sizes)  # the largest is drawn last
    colour = drawing.colours()
    assert [trace.marker.color for trace in named] == [colour[f"map-{n}"] for n in (3, 2, 1)]
    assert others.marker.color == colour["quiet"]
    assert others.name == f"others ({len(others.x)})"
    few = plot_map(index, 1, max_chunks=5)
    assert sum(len(trace.x) for trace in few.data) == 5
    assert "5 of" in few.layout.title.text
    assert "sample" in few.layout.title.text


def test_names_stand_on_points_of_their_own_and_apart(stored):
    index, _ = stored[SemanticHierarchy]
    figure = plot_map(index, 1)
    names = figure.layout.annotations
    first = figure.data[-1]
    assert (names[0].x, names[0].y) in {*zip(first.x, first.y, strict=True)}
    all_y = [y for trace in figure.data for y in trace.y]
    all_x = [x for trace in figure.data for x in trace.x]
    pixels = plots.MAP - plots.HEAD - plots.BOTTOM
    line = plots.ROW * max(max(all_y) - min(all_y), max(all_x) - min(all_x)) / pixels
    assert len(names) > 1
    for one, other in combinations(names, 2):
        assert one.x != other.x or abs(one.y - other.y) >= line


def test_text_is_shown_as_it_is(tmp_path):
    folder = tmp_path / "<b>index<b>"
    texts = [f"{HOSTILE} {word}. " * 3 for word in ("bridge", "river", "tower")]
    index = built(folder, *texts, title=HOSTILE)
    figures = [plot(index) for plot in PLOTS]
    for figure in figures:
        for text in strings(figure.to_dict()):
            own = text.replace("<br>", "").replace("<b>", "").replace("</b>", "")
            assert not {*own} & {*"<>$\u202e\x00\n"}, text
        for trace in figure.data:  # a template would fill in what texts look like
            assert not {key for key in trace.to_plotly_json() if key.endswith("template")}
    labels = [unescape(each) for each in figures[0].data[0].labels]
    assert any(each.startswith("<img src=x onerror") for each in labels)


def test_an_index_of_one_chunk(tmp_path):
    index = built(tmp_path, "A bridge was closed.")
    assert [*plot_tree(index).data[0].values] == [1] * len(plot_tree(index).data[0].ids)
    assert sum(len(trace.x) for trace in plot_map(index).data) == 1


@pytest.mark.parametrize("plot", PLOTS)
def test_there_is_nothing_to_plot(tmp_path, plot):
    with pytest.raises(IndexNotFoundError):
        plot(HierarchicalIndex(HierarchyStore(tmp_path / "none")))
    index = built(tmp_path / "one", "A bridge was closed.")
    index.store.delete("0.txt")
    with pytest.raises(InputError, match="The index is empty: there is nothing to plot"):
        plot(index)


def test_what_does_not_exist_is_named(stored):
    index, _ = stored[SemanticHierarchy]
    with pytest.raises(LevelError, match="got level 99"):
        plot_map(index, 99)
    with pytest.raises(InputError, match="begins with 'zz'"):
        plot_tree(index, "zz")
    with pytest.raises(InputError, match="max_nodes must be an integer of at least 1, got 0"):
        plot_tree(index, max_nodes=0)
    with pytest.raises(InputError, match="max_chunks must be"):
        plot_map(index, max_chunks=0)


def test_plotly_is_asked_for_in_one_sentence(stored, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    index, _ = stored[SemanticHierarchy]
    for plot in PLOTS:
        with pytest.raises(InputError, match=r"^Figures need `pip install 'hierindex\[plot\]'`\.$"):
            plot(index)


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
    assert plots.label(text, most) == shown


def test_lines_are_short():
    shown = plots.lines("many words " * 1000)
    assert all(len(line) <= plots.LINE for line in shown.split("<br>"))
    assert len(shown) < 2 * plots.TEXT
    assert plots.lines("x" * 10_000).count("<br>") == 3


def test_names_are_cut_inside():
    long = "the-attention-mechanisms--of-transformers--with-many-heads"
    (one,) = drawing.fitted(long, 20, 1)
    assert len(one) == 20
    assert one.startswith("the-attent")
    assert one.endswith("any-heads")
    assert "".join(drawing.fitted(long, 20, 9)) == long
    first, second = drawing.fitted("x" * 30, 10, 2)
    assert (first, second) == ("x" * 10, "x" * 5 + "\u2026" + "x" * 4)
    assert drawing.fitted("", 10, 1) == []


def test_siblings_are_called_without_their_common_beginning():
    titles = ["A book: mills", "A book: sails", "A book: sails", "Notes"]
    assert drawing.names_of(titles, [0, 0, 1, 1]) == ["mills", "sails", "A book: sails", "Notes"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_legible_on_all_colours(scheme):
    """The contrast that WCAG 2.2 asks of text, in 1.4.3."""
    colour = drawing.colours(scheme)
    for n in (1, 2, 9):
        fills = drawing.shades(n, scheme)
        assert len({*fills}) == n
        for fill in [*fills, colour["paper"], colour["chosen"]]:
            light, dark = sorted((luminance(fill), luminance(colour["ink"])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5
    assert len({colour[f"map-{i + 1}"] for i in range(plots.NAMED)}) == plots.NAMED


def luminance(colour):
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return sum(a * b for a, b in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
