"""The tree as a folder of Markdown: what stands in it, and what a second export does."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml
from fakes import HashingEmbedding
from indexes import built
from llama_index.core.schema import Document

from hierindex import DocumentHierarchy, HierarchicalIndex, RaptorHierarchy, sentence_splitter
from hierindex.errors import HierindexError, InputError
from hierindex.export import markdown, to_markdown

LINK = re.compile(r"(?<!\\)\]\(([^)]+)\)")


def held(folder: Path) -> dict[str, bytes]:
    """The files of a folder, by their paths."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def pages(folder: Path) -> dict[str, str]:
    """The pages of a folder, by their paths."""
    return {path: text.decode() for path, text in held(folder).items() if path.endswith(".md")}


def front_matter(text: str) -> dict:
    return yaml.safe_load(text.split("---\n")[1])


def written(index: HierarchicalIndex, folder: Path) -> dict[str, str]:
    """The pages of an index, exported to a folder."""
    to_markdown(index, folder)
    return pages(folder)


def ungrouped(beside: Path, texts: dict[str, str]) -> HierarchicalIndex:
    """An index without groups, beside a folder."""
    return built(texts, Path(f"{beside}-index"), DocumentHierarchy)


TOPICS = {
    "boat": "harbour anchor tide hull mast",
    "bread": "dough oven yeast crust flour",
    "mill": "sails grain wind miller stones",
}


def about(topic: str, title: str) -> Document:
    """A document on a topic, which is grouped with others on it."""
    text = f"The {topic} {title} has {TOPICS[topic]}. Every {topic} needs {TOPICS[topic]}."
    return Document(id_=f"{title} {topic}", text=text, metadata={"title": f"{title} {topic}"})


@pytest.fixture
def grouped(tmp_path) -> HierarchicalIndex:
    """An index with a group for each topic."""
    titles = "new old red big far wet".split()
    return built([about(topic, title) for topic in TOPICS for title in titles], tmp_path / "index")


def test_files_keep_their_names_when_titles_change(grouped, tmp_path) -> None:
    to_markdown(grouped, tmp_path / "to")
    before = held(tmp_path / "to")
    grouped.insert(about("mill", "ancient"))
    to_markdown(grouped, tmp_path / "to")
    to_markdown(grouped, tmp_path / "fresh")
    after = held(tmp_path / "to")
    assert before.keys() - {*held(tmp_path / "fresh")}  # the titles of groups have changed
    assert not before.keys() - after.keys()
    assert len(after.keys() - before.keys()) == 1
    changed = {path for path in before if before[path] != after[path]}
    assert {path for path in changed if "mill" not in path} <= {".hierindex.json", "index.md"}


def test_a_new_document_of_the_same_title_renames_none(tmp_path) -> None:
    def report(name: str) -> Document:
        return Document(id_=name, text=f"Says {name}.", metadata={"title": "Report"})

    index = built([report("b"), report("c")], tmp_path / "index", DocumentHierarchy)
    before = written(index, tmp_path / "to")
    assert {*before} == {"index.md", "report.md", "report-2.md"}
    index.insert(report("a"))
    after = written(index, tmp_path / "to")
    assert after.keys() - before.keys() == {"report-3.md"}
    for path in ("report.md", "report-2.md"):
        ids = [front_matter(of[path])["sources"][0]["id"] for of in (before, after)]
        assert ids[0] == ids[1]


NOUNS = """
anchor barrel cabin dinghy engine ferry galley hatch island jetty keel lantern mooring net
oar pilot quay rudder sail tiller voyage winch yacht buoy compass davit fender gangway halyard
""".split()


def sentences(topic: str) -> list[str]:
    """Sentences on a topic, more than a summary has room for."""
    return [
        f"{topic} are beside the {noun} which the {noun} keeper of {topic} saw." for noun in NOUNS
    ]


def test_headings_are_the_authors(tmp_path) -> None:
    folder = tmp_path / "from"
    folder.mkdir()
    parts = [f"## {title}\n\n" + " ".join(sentences(title)) for title in ("Hulls", "Masts")]
    (folder / "boats.md").write_text("# Boats\n\n" + "\n\n".join(parts))
    (folder / "plain.txt").write_text("\n\n".join(" ".join(sentences(t)) for t in ("Oak", "Elm")))
    found = written(built(folder, tmp_path / "index", chunk_size=60), tmp_path / "to")
    assert re.findall("^#+ .*$", found["boats.md"], re.M) == ["# Boats", "## Hulls", "## Masts"]
    assert re.findall("^#+ .*$", found["plain.md"], re.M) == ["# plain"]
    for heading in ("Hulls", "Masts"):
        under = found["boats.md"].partition(f"## {heading}\n")[2].partition("\n#")[0]
        assert {*re.findall("Hulls|Masts", under)} == {heading}


def test_a_sentence_stands_once_in_a_page(grouped, tmp_path) -> None:
    for path, text in written(grouped, tmp_path / "to").items():
        body = text.partition("\n# ")[2]
        said = re.findall(r"The \w+ \w+ has|Every \w+ needs [^[]*\[", body)
        assert len(said) == len({*said}), path


def test_each_document_stands_once_and_all_links_lead_somewhere(soft, tmp_path) -> None:
    written = to_markdown(soft, tmp_path)
    found = pages(tmp_path)
    assert written["written"] == len(found)
    documents = [front_matter(text) for path, text in found.items() if "index.md" not in path]
    ids = [each["sources"][0]["id"] for each in documents]
    assert sorted(ids) == ["a.txt", "b.txt", "c.txt", "d.txt"]
    for path, text in found.items():
        links = LINK.findall(text)
        assert links
        for link in links:
            assert (tmp_path / path).parent.joinpath(unquote(link)).is_file(), (path, link)
        assert {*re.findall(r"\[\^\d+\](?!:)", text)} == {
            *re.findall(r"^\[\^\d+\](?=:)", text, re.M)
        }


def test_the_same_generation_changes_no_byte(soft, tmp_path) -> None:
    to_markdown(soft, tmp_path)
    before = {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in tmp_path.rglob("*.*")
        if path.is_file()
    }
    again = to_markdown(soft, tmp_path)
    assert [again[key] for key in ("written", "removed", "kept")] == [0, 0, []]
    assert before == {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before}


def test_what_people_wrote_is_kept(soft, tmp_path) -> None:
    to_markdown(soft, tmp_path)
    edited = next(path for path in tmp_path.rglob("a-txt.md"))
    ours = edited.read_bytes()
    edited.write_text("edited")
    (edited.parent / "mine.md").write_text("mine")
    name = edited.relative_to(tmp_path).as_posix()
    assert to_markdown(soft, tmp_path)["kept"] == [name]
    assert edited.read_text() == "edited"
    assert to_markdown(soft, tmp_path, force=True)["kept"] == []
    assert edited.read_bytes() == ours
    assert (edited.parent / "mine.md").read_text() == "mine"


def test_a_file_that_no_export_wrote_is_not_overwritten_by_force(soft, tmp_path) -> None:
    (tmp_path / "index.md").write_text("mine")
    assert to_markdown(soft, tmp_path, force=True)["kept"] == ["index.md"]
    assert (tmp_path / "index.md").read_text() == "mine"


@pytest.mark.parametrize("is_removed_already", [False, True])
def test_a_document_that_is_gone_goes(tmp_path, is_removed_already) -> None:
    index = ungrouped(tmp_path, {"a.md": "Apples are red.", "b.md": "Boats float."})
    to_markdown(index, tmp_path)
    index.delete_ref_doc("b.md")
    before = held(tmp_path)
    if is_removed_already:
        (tmp_path / "b-md.md").unlink()
    assert to_markdown(index, tmp_path)["removed"] == (not is_removed_already)
    after = held(tmp_path)
    assert [*before.keys() - after.keys()] == ["b-md.md"]


def test_a_killed_export_is_recovered_from(soft, tmp_path, monkeypatch) -> None:
    to_markdown(soft, tmp_path / "whole")
    writes = iter(range(3))

    def killed(folder, path, text, write=markdown._write):
        if next(writes, None) is None:
            raise KeyboardInterrupt
        write(folder, path, text)

    with monkeypatch.context() as patch:
        patch.setattr(markdown, "_write", killed)
        with pytest.raises(KeyboardInterrupt):
            to_markdown(soft, tmp_path / "part")
    assert len(pages(tmp_path / "part")) == 2
    assert to_markdown(soft, tmp_path / "part")["kept"] == []
    assert held(tmp_path / "part") == held(tmp_path / "whole")


HOSTILE = """# [^1]: <script>alert(1)</script> [[a|b]] `code

---
title: "x"
--- #tag $x$ %%hidden%% ==marked== &amp; \u202e
"""


def test_hostile_text_is_shown_as_it_is(tmp_path) -> None:
    texts = {'con: "x" #\n---': HOSTILE, "../../up": HOSTILE, "NUL": "Null."}
    found = written(ungrouped(tmp_path, texts), tmp_path / "in")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    for path, text in found.items():
        assert "\u202e" not in text
        body = text.partition("\n# ")[2]
        assert not re.search(r"(?<!\\)(<script|\[\[|`|\$|%%|==|(?<= )#tag)", body), path
        assert "index.md" in path or front_matter(text)["type"] == "Document"
        assert Path(path).stem not in {"nul", "con"}


NOTE = """# Shed

It stores the *mower*, `__init__.py` and 2 * 3 bicycles ([law](https://example.org)).

## Costs

- **posts** of oak
- roofing

| Item | Price |
|------|-------|
| Door | 120   |

```bash
echo "*" > _x_
```
"""


def test_a_short_document_is_shown_whole(tmp_path) -> None:
    (tmp_path / "shed.md").write_text(NOTE)
    index = built(tmp_path / "shed.md", tmp_path / "index")
    body = written(index, tmp_path / "to")["shed.md"].partition("\n# ")[2]
    lines = re.sub(r"\[\^\d+\](: .*)?", "", body).splitlines()
    shown = [line for line in lines[1:] if line and not line.startswith("[Up]")]
    assert shown == [
        r"It stores the mower, \_\_init\_\_.py and 2 * 3 bicycles (law).",
        "## Costs",
        "- posts of oak",
        "- roofing",
        "- Item | Price",
        "- Door | 120",
        "```",
        'echo "*" > _x_',
        "```",
    ]


TITLES = "word " * 80, "\u6587" * 150, "a<b>:c?d*e|f/g\\\\h.", "CON", "?!", "\u0939\u093f"


def test_names_are_safe_and_short(tmp_path) -> None:
    documents = [
        Document(id_=f"{i}", text=f"Part {i % 3} says {i}.", metadata={"title": TITLES[i % 6]})
        for i in range(30)
    ]
    paths = [*written(built(documents, tmp_path / "index", DocumentHierarchy), tmp_path / "to")]
    assert len([path for path in paths if not path.endswith("index.md")]) == 30
    for path in paths:
        assert len(path) <= 200
        assert path == path.lower()
        for name in path.removesuffix(".md").split("/"):
            assert name
            assert len(name.encode()) <= 255
            assert not re.search(r'[<>:"\\\\|?*\s]|^con(\.|$)|\.$', name), name


def test_a_document_without_a_summary_is_shown(tmp_path) -> None:
    documents = [about(topic, title) for topic in TOPICS for title in "new old red big".split()]
    index = built(documents, tmp_path / "index", RaptorHierarchy)
    found = {
        front_matter(text)["title"]: text
        for path, text in written(index, tmp_path / "to").items()
        if "index.md" not in path
    }
    for document in documents:
        assert TOPICS[document.id_.split()[1]] in found[document.id_]


def test_names_that_differ_in_case_only_are_two(tmp_path) -> None:
    index = ungrouped(tmp_path, {"a.md": "One.", "A.md": "Two.", "a.txt": "Three."})
    assert len({path.casefold() for path in written(index, tmp_path)}) == 4


def test_one_document_has_an_index(tmp_path) -> None:
    found = written(ungrouped(tmp_path, {"a.md": "Apples are red."}), tmp_path)
    assert sorted(found) == ["a-md.md", "index.md"]


def test_a_link_out_of_the_folder_is_not_followed(soft, tmp_path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / ".hierindex.json").write_text('{"../mine.md": ["", ""]}')
    with pytest.raises(HierindexError, match="is outside of"):
        to_markdown(soft, tmp_path / "in")


def test_a_folder_that_cannot_be_written_is_said_in_a_sentence(index, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file' cannot be written"):
        to_markdown(index, tmp_path / "file")
    to_markdown(index, tmp_path / "pages")
    for damaged in ("{bad", "42", "null", '{"x": []}', '{"x": 5}'):
        (tmp_path / "pages/.hierindex.json").write_text(damaged)
        with pytest.raises(InputError, match="damaged; restore it, or export to an empty folder"):
            to_markdown(index, tmp_path / "pages")


def test_lines_that_a_document_repeats_are_all_there(tmp_path):
    table = "| no | ok |\n| yes | ok |\n" * 3
    texts = {"a.md": f"| a | b |\n|---|---|\n{table}", "b.md": "The mill is old."}
    page = written(built(texts, tmp_path / "index"), tmp_path / "to")["a-md.md"]
    assert page.count("- no | ok") == page.count("- yes | ok") == 3


def test_headings_without_text_of_their_own_stand_above_those_below(tmp_path):
    said = "The mill grinds corn on day {}, and the miller sleeps all night."
    parts = (f"## Part {n}\n\n### Introduction\n\n{said.format(n)}\n\n" for n in (1, 2))
    splitter = sentence_splitter(HashingEmbedding(), chunk_size=40)
    (tmp_path / "a.md").write_text("# Mills\n\n" + "".join(parts))
    index = built(tmp_path / "a.md", tmp_path / "index", DocumentHierarchy, splitter=splitter)
    page = written(index, tmp_path / "to")["mills.md"]
    headings = re.findall("^#+ .*$", page, re.MULTILINE)
    assert headings == ["# Mills", "## Part 1", "### Introduction", "## Part 2", "### Introduction"]


def test_titles_in_links_and_numbers_are_text(tmp_path):
    texts = {"a.md": "# Errors ]\n\n100. was the last.", "b.md": "# B\n\nThe mill is old."}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    index = built([tmp_path / name for name in texts], tmp_path / "index")
    found = written(index, tmp_path / "to")
    assert "[Errors \\]](" in found["index.md"]
    assert any("100\\. was" in text for text in found.values())
