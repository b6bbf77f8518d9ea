"""The picture of a tree: a column for each level, filled by the nodes that belong to it."""

import re
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

import pytest
from indexes import built
from llama_index.core.schema import Document, TextNode
from records import replace_all

from hierindex import HierarchicalIndex, HierarchyStore
from hierindex.export import pictures, to_svg

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
