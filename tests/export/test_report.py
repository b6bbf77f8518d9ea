"""A report is the explorer's page with what the index holds, in one file of a bounded size."""

import base64
import hashlib
import json
import re
from html import escape

import pytest
from fakes import HashingEmbedding
from llama_index.core.schema import TextNode
from records import metadata_of
from store.trees import columns_of

from hierindex import Quote, Span
from hierindex.errors import InputError
from hierindex.export import to_html
from hierindex.export.report import inlined, modules
from hierindex.serve.explorer import PAGE

DATA = re.compile(r'<script type="application/json" id="data">([^<]*)</script>')


def data_of(path) -> dict:
    (data,) = DATA.findall(path.read_text(encoding="utf-8"))
    return json.loads(data)


def test_it_has_all_that_the_index_holds(soft, tmp_path) -> None:
    report = to_html(soft, tmp_path / "report.html")
    data = data_of(tmp_path / "report.html")
    assert report.to_json() == {
        "nodes": len(data["nodes"]),
        "bytes": (tmp_path / "report.html").stat().st_size,
        "left_out": None,
    }
    assert data["index"].items() >= soft.info().items()
    assert data["index"]["time"] == soft.store.generations()[-1]["time"]
    assert data["left_out"] is None
    outline = []

    def walk(nodes, parent=None):
        for node in nodes:
            outline.append({**node, "parent": parent})
            walk(node["nodes"], node["id"])

    walk(soft.tree(depth=99)["nodes"])
    for node, entry in zip(data["nodes"], outline, strict=True):
        assert node["children"] == len(entry.pop("nodes"))
        assert node.items() >= entry.items()
        described = soft.describe(node["id"])
        assert node["text"] == described["text"]
        for key in ("kind", "grounding"):
            assert node[key] == described[key]
        assert len(node["quotes"]) >= 1


def test_answers_stand_before_the_tree_with_their_sources(index, tmp_path) -> None:
    question = "Who <i>met</i> a kettle?"
    to_html(index, tmp_path / "report.html", ask=[question, "Who met a kettle?"])
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    paper = page[page.index('<article id="paper"') : page.index("</article>")]
    assert "<h2>Who &lt;i&gt;met&lt;/i&gt; a kettle?</h2>" in paper
    assert all(f"<li>{escape(node['title'])}" in paper for node in index.tree()["nodes"])
    answer = index.ask("Who met a kettle?")
    for passage in answer.passages:
        assert escape(" ".join(passage.text.split())) in " ".join(paper.split())
        place = f"document={passage.citation.document}&amp;start={passage.citation.start}"
        assert place in paper


def test_a_notebook_shows_what_an_index_holds(index) -> None:
    shown = index._repr_html_()
    assert f"{index.info()['documents']} documents" in shown
    assert "<td>" in shown


@pytest.fixture
def whole(soft, tmp_path) -> int:
    """The bytes of a report of everything."""
    return to_html(soft, tmp_path / "whole.html").bytes


def test_texts_of_low_levels_are_left_out_first(soft, whole, tmp_path) -> None:
    to_html(soft, tmp_path / "all.html")
    overview = data_of(tmp_path / "all.html")["overview"]
    page = (tmp_path / "all.html").read_text(encoding="utf-8")
    front = page[page.index("<article id=") : page.index("</article>")]
    bare = len(inlined(json.dumps(overview), front).encode())
    for i in range(6):
        max_bytes = whole + 200 - i * (whole + 200 - bare) // 6  # 200 for what is left out
        path = tmp_path / f"{i}.html"
        report = to_html(soft, path, max_bytes=max_bytes)
        data = data_of(path)
        assert path.stat().st_size == report.bytes <= max_bytes
        assert data["left_out"] == report.left_out
        levels = [node["level"] for node in data["nodes"]]
        with_text = [node["level"] for node in data["nodes"] if node["text"]]
        without = [node["level"] for node in data["nodes"] if not node["text"]]
        assert not with_text or not without or min(with_text) >= max(without)
        n_missing = len(columns_of(soft.store, "id")["id"]) - len(levels)
        said = report.left_out or ""
        assert (f"nodes of the lowest levels ({n_missing:,} of " in said) == bool(n_missing)
        assert (f"texts of the lowest levels ({len(without):,} of " in said) == bool(without)
        assert (not said) == (i == 0)


def test_too_small_a_bound_and_too_large_a_file(index, tmp_path) -> None:
    for max_bytes in (1, len(inlined("").encode())):
        with pytest.raises(InputError, match="is too small for the page and its highest level"):
            to_html(index, tmp_path / "report.html", max_bytes=max_bytes)
    with pytest.raises(InputError, match="max_bytes must be an integer of at least 1"):
        to_html(index, tmp_path / "report.html", max_bytes=0)
    assert not [*tmp_path.glob("*.html")]


def test_only_the_page_may_run_script(index, tmp_path) -> None:
    text = "</script><script>alert(1)</script><!--<script>"
    quotes = (Quote(0, len(text), Span("<b>.txt", 0, len(text))),)
    record = metadata_of(quotes=quotes, documents=("<b>.txt",), title=text)
    vector = HashingEmbedding().get_text_embedding("x")
    index.store.add([TextNode(id_="<i>", text=text, embedding=vector, metadata=record)])
    to_html(index, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text not in page
    assert text in [node["text"] for node in data_of(tmp_path / "report.html")["nodes"]]
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert page.index(policy) < min(page.index("<script"), page.index("<style"))
    (code,) = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert len(re.findall("<script|<!--", page)) == 2
    assert len(styles) == len([*PAGE.glob("*.css")])
    for kind, parts in (("script-src", [code]), ("style-src", styles)):
        digests = (base64.b64encode(hashlib.sha256(part.encode()).digest()) for part in parts)
        allowed = " ".join(f"'sha256-{digest.decode()}'" for digest in digests)
        assert f"{kind} {allowed};" in policy
    assert not re.search(r'(src|href)="(?!data:|#)', page)


def test_modules_come_after_those_that_they_import() -> None:
    code = modules("main.js")
    made = re.findall(r'^modules\["([^"]+)"\] =', code, re.MULTILINE)
    assert sorted(made) == sorted(path.name for path in PAGE.glob("*.js"))
    for name, part in zip(
        made, re.split(r'^modules\["', code, flags=re.MULTILINE)[1:], strict=True
    ):
        used = re.findall(r'^const \{[^}]*\} = modules\["([^"]+)"\];', part, re.MULTILINE)
        assert {*used} <= {*made[: made.index(name)]}
    assert not re.search(r"^(import|export) ", code, re.MULTILINE)
