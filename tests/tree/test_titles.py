"""Titles of nodes, by documents whose sections and words are known."""

import re
import warnings
from contextlib import contextmanager, nullcontext
from itertools import product

import pytest
from clients import llm_of
from fakes import HashingEmbedding
from loopback import LoopbackServer
from records import as_plain, chunks_of, markdown
from serve.conftest import client_of

from hierindex import (
    DocumentHierarchy,
    HierarchicalIndex,
    Node,
    RaptorHierarchy,
    SemanticHierarchy,
    sentence_splitter,
)
from hierindex.cache import Cache, open_cache
from hierindex.errors import FallbackWarning
from hierindex.node import TITLE
from hierindex.summarize import LLMRewriter, TwoStageSummarizer

KINDS = pytest.mark.parametrize("kind", [SemanticHierarchy, RaptorHierarchy, DocumentHierarchy])
SAILS = " ".join(f"The sail of canvas number {i} hangs in the wind." for i in range(8))
STONES = " ".join(f"The stone of granite number {i} grinds the flour." for i in range(8))
MILL = f"# The mill\n\n## Sails\n\n{SAILS}\n\n## Stones\n\n{STONES}"
HARBOUR = " ".join(f"A crane lifted crate number {i} from the ferry." for i in range(8))


def hierarchy_of(kind, summarizer=None, **options):
    options = {"max_children": 3, "summary_tokens": 40, **options}
    return kind(HashingEmbedding(model_name="known"), summarizer, **options)


def grown(kind, *documents, **options):
    hierarchy = hierarchy_of(kind, **options)
    chunks = chunks_of(documents, sentence_splitter(hierarchy.embed_model, 30))
    return hierarchy.grow([chunks]).nodes


def section_of(node):
    return node.metadata.get("section")


def chunks_under(nodes):
    """The chunks under each node, children before their parents, by its id."""
    under = {}
    for node in nodes:
        below = {chunk.id: chunk for child in node.children for chunk in under[child]}
        under[node.id] = [*below.values()] or [node]
    return under


@KINDS
def test_every_node_has_a_name_on_one_line(kind):
    texts = [MILL, HARBOUR, "=====", "# #", "*", "Ferry", "-- Ferry\n--", "渡船" * 99, "?" * 99]
    texts.append(f"{MILL}\n\n***")
    nodes = grown(kind, *(markdown(f"{i}.md", text) for i, text in enumerate(texts)))
    assert all(1 <= len(node.title) <= 60 and "\n" not in node.title for node in nodes)


@KINDS
@pytest.mark.parametrize(
    "text",
    [
        HARBOUR,
        f"# Ferries\n\n{SAILS}",
        f"# Part\n\n{SAILS}\n\n# Part\n\n{STONES}",
        f"{MILL}\n\n## \u2014\n\nIt is old.",
    ],
)
def test_parts_of_a_document_have_their_headings_or_first_words(kind, text):
    nodes = grown(kind, markdown("a", text))
    under = chunks_under(nodes)
    for node in nodes[:-1]:
        headings = [path_of(chunk)[-1] for chunk in under[node.id]]
        headings = [*dict.fromkeys(each for each in headings if each.strip("\u2014"))]
        if node.level and len(headings) > 1:
            assert node.title == ", ".join(headings)
        elif node.title not in headings:  # which may be those of the parent
            words = node.title.removesuffix(" \u2026")  # of what is cut
            assert words in re.sub("#+ ", "", node.text)


@KINDS
@pytest.mark.parametrize(
    ("metadata", "title"),
    [({"file_name": "talk.txt"}, "talk: solar cell, town clock"), ({TITLE: "A talk"}, "A talk")],
)
def test_what_is_said_without_headings_is_called_by_phrases(kind, metadata, title):
    """Not by the name of the speaker, who is in each line."""
    speech = "\n".join(
        f"Plant Manager: On day {i} the {thing} was discussed."
        for thing in ("solar cell", "town clock")
        for i in range(9)
    )
    options = {"scope": "document"} if kind is RaptorHierarchy else {}
    *nodes, whole = grown(kind, markdown("a", speech, **metadata), **options)
    parts = {node.title for node in nodes if node.level}
    assert whole.title == title
    assert parts >= ({"solar cell", "town clock"} if kind is not DocumentHierarchy else set())


def path_of(chunk):
    return (section_of(chunk) or "").split(" \u203a ")


def test_a_node_of_all_chunks_of_a_section_has_its_heading():
    """Also of a section that is divided again, and below the one that holds it."""
    text, named = f"{MILL}\n\n# Harbour\n\n{HARBOUR}", set()
    for most in (3, 5, 9):
        nodes = grown(SemanticHierarchy, markdown("a", text), max_children=most)
        under = chunks_under(nodes)
        for heading in ("The mill", "Sails", "Stones", "Harbour"):
            inside = [n for n in nodes if not n.level and heading in path_of(n)]
            titles = {n.title for n in nodes if n.level and under[n.id] == inside}
            assert titles <= {heading, f"The mill \u203a {heading}"}
            named |= titles
    below = {f"The mill \u203a {heading}" for heading in ("Sails", "Stones")}
    assert named == {"The mill", "Harbour", *below}


def handbook():
    """A Markdown text of three parts of two chapters of three clauses; the first part begins so."""
    lines = ["# Handbook"]
    for part, chapter, clause in product((1, 2, 3), (1, 2), (1, 2, 3)):
        number = f"{part}.{chapter}.{clause}"
        lines += [f"## Part {part}"] if number.endswith("1.1") else []
        lines += ["It is for all who work there. " * 9] if number == "1.1.1" else []
        lines += [f"### Chapter {part}.{chapter}"] if clause == 1 else []
        words = (f"Crane {number} lifts crate {i} from ship {part}." for i in range(12))
        lines += [f"#### Clause {number}", " ".join(words)]
    return "\n\n".join(lines)


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (
            3,
            {
                "Part 1": [
                    "Chapter 1.1 \u203a Clause 1.1.1",
                    "Chapter 1.1 \u203a Clause 1.1.2, Clause 1.1.3",
                    "Chapter 1.2",
                ],
                "Part 2": ["Chapter 2.1", "Chapter 2.2"],
                "Part 3": ["Chapter 3.1", "Chapter 3.2"],
            },
        ),
        (
            4,
            {
                "Part 1": ["Chapter 1.1", "Chapter 1.2"],
                "Part 2, Part 3": [
                    "Part 2 \u203a Chapter 2.1, Chapter 2.2 \u203a Clause 2.2.1",
                    "Part 2 \u203a Chapter 2.2, Part 3 \u203a Chapter 3.1",
                    "Part 3 \u203a Chapter 3.1 \u203a Clause 3.1.3, Chapter 3.2",
                ],
            },
        ),
        (
            6,
            {
                "Part 1 \u203a Chapter 1.1": [],
                "Part 1 \u203a Chapter 1.2": [],
                "Part 2": [],
                "Part 3": [],
            },
        ),
    ],
)
def test_the_headings_of_an_author_are_the_outline(tmp_path, most, expected):
    """None stands beside what is in it, in the contents, the outline and the explorer."""
    (tmp_path / "handbook.md").write_text(handbook())
    hierarchy = SemanticHierarchy(HashingEmbedding(), max_children=most)
    index = HierarchicalIndex.build(
        tmp_path / "handbook.md", tmp_path / "index", hierarchy=hierarchy
    )
    (root,) = index.tree(depth=99)["nodes"]
    assert root["title"] == "Handbook"

    def summaries(node):
        return [child for child in node["nodes"] if child["level"]]

    below = {part["title"]: summaries(part) for part in summaries(root)}
    assert {title: [node["title"] for node in nodes] for title, nodes in below.items()} == expected
    titles = {node["id"]: node["title"] for node in flat(root)}
    for found in index.outline(100):
        assert Node.of(found.node).title == titles[found.node.node_id]
    with contextmanager(client_of)(index) as client:
        shown = client.json("nodes", of=root["id"])["nodes"]
    assert [node["title"] for node in shown] == [node["title"] for node in root["nodes"]]


def flat(node):
    yield node
    for child in node["nodes"]:
        yield from flat(child)


def test_a_chunk_of_several_short_sections_has_their_headings():
    said = {name: f"A {name} turns with the wind." for name in ("Sail", "Vane", "Brake")}
    text = "# The mill\n\nIt is old.\n\n" + "".join(f"## {n}\n\n{t}\n\n" for n, t in said.items())
    document = markdown("mill.md", text)
    chunks = chunks_of([document], sentence_splitter(HashingEmbedding(), 80))
    nodes = hierarchy_of(SemanticHierarchy).grow([chunks]).nodes
    assert [node.title for node in nodes if not node.level] == ["Sail, Vane", "Brake"]


def test_many_sections_are_called_by_the_first_and_the_last():
    """Only where the node has all between them."""
    headings = [f"The duties of the harbour master, number {i}" for i in range(12)]
    text = "\n\n".join(f"# {heading}\n\n{SAILS[:90]}" for heading in headings)
    spans = []
    for kind in (SemanticHierarchy, RaptorHierarchy):
        nodes = grown(kind, markdown("a", text), max_children=6)
        number = {n.id: i for i, n in enumerate(n for n in nodes if not n.level)}
        under = chunks_under(nodes)
        for node in (n for n in nodes if n.level):
            inside = sorted(number[chunk.id] for chunk in under[node.id])
            first, last = headings[inside[0] // 2], headings[inside[-1] // 2]
            is_run = inside == [*range(inside[0], inside[-1] + 1)]
            assert node.title == (f"{first} \u2013 {last}" if is_run else first)
            spans.append(is_run)
    assert {*spans} == {True, False}


def mixed(n, of="canvas sails", text=SAILS):
    """Documents of a chunk each, whose titles are too long to be named together."""
    return [
        markdown(f"{of} {i}.md", f"{text[:50]} On day {i}.", title=f"{i} winters of {of}, a study")
        for i in range(n)
    ]


@KINDS
def test_documents_with_short_titles_are_a_group_s_name(kind):
    documents = [markdown(n, t, title=n) for n, t in (("Mill", MILL), ("Harbour", HARBOUR))]
    *_, root = grown(kind, *documents, max_children=12)
    assert root.title == "Mill, Harbour"
    assert root.titles == ("Mill", "Harbour")


@KINDS
def test_a_group_is_called_by_what_its_siblings_titles_do_not_say(kind):
    documents = [*mixed(4), *mixed(4, "harbour cranes", HARBOUR)]
    nodes = grown(kind, *documents, max_children=4, summary_tokens=80)
    *groups, root = [node for node in nodes if node.titles]
    assert [node.title for node in groups] == ["canvas sails", "harbour cranes"]
    assert [len(node.titles) for node in groups] == [4, 4]
    assert root.n_chunks == len(root.titles) == 8
    first, second = root.text.split("\n")
    assert first.startswith("canvas sails: ")
    assert second.startswith("harbour cranes: ")


@KINDS
@pytest.mark.parametrize("n", [2, 110])
def test_a_summary_of_documents_has_a_line_for_each_child(kind, n):
    nodes = {n.id: n for n in grown(kind, *mixed(n), max_children=n, summary_tokens=20 * n)}
    roots = [node for node in nodes.values() if node.titles and not node.parents]
    for root in roots:
        names = [nodes[child].document_name for child in root.children]
        lines = root.text.split("\n")
        assert root.n_chunks == n
        for line, name in zip(lines, names, strict=True):
            assert name.startswith(line.split(":")[0])
        assert {*root.titles} <= {*names}
        assert len(root.titles) == min(n, 100)
        said = "".join(root.text[quote.at : quote.to] for quote in root.quotes)
        assert "winters" not in said
    assert len(roots) == 1


@pytest.mark.spread
@pytest.mark.parametrize(
    ("metadata", "title"),
    [
        ({TITLE: " The old\n mill ", "file_name": "mill.md"}, "The old mill"),
        ({TITLE: " ", "file_name": "mill.md"}, "mill"),
        ({TITLE: ["a", "list"], "file_name": "mill.tar.gz"}, "mill.tar"),
        ({TITLE: "word " * 99}, ("word " * 20).strip()),
    ],
)
@KINDS
def test_a_whole_document_has_its_title_or_the_name_of_its_file(kind, metadata, title):
    """Also where one heading stands above all."""
    options = {"scope": "document"} if kind is RaptorHierarchy else {}
    nodes = grown(kind, markdown("a", MILL, **metadata), markdown("b", HARBOUR), **options)
    assert [n.title for n in nodes if n.whole_document == "a"] == [title]
    (other,) = [n for n in nodes if n.whole_document == "b"]
    assert other.title in other.text


def test_a_title_is_neither_in_ids_nor_in_what_is_embedded():
    text = markdown("a", HARBOUR, title="One"), markdown("a", HARBOUR, title="Another")
    one, other = (grown(DocumentHierarchy, each) for each in text)
    assert [n.id for n in one] == [n.id for n in other]
    assert [n.embedded_text for n in one] == [n.embedded_text for n in other]
    assert [one[-1].title, other[-1].title] == ["One", "Another"]
    assert "One" not in one[-1].llm_text


@pytest.mark.usefixtures("no_wait")
class TestByAModel:
    """Titles come with the summaries, in one call."""

    @pytest.fixture
    def documents(self):
        return [markdown(name, SAILS.replace("sail", f"{name} sail")) for name in "abcd"]

    @staticmethod
    def grown(reply, documents, cache=None, **options):
        """The summaries, the usage and the number of requests."""
        with LoopbackServer(reply=reply) as server, warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)
            prompt = {"prompt": options.pop("prompt")} if "prompt" in options else {}
            rewriter = LLMRewriter(llm_of(server), **prompt)
            hierarchy = hierarchy_of(DocumentHierarchy, TwoStageSummarizer(rewriter, **options))
            chunks = chunks_of(documents, sentence_splitter(hierarchy.embed_model, 30))
            with open_cache(str(cache)) if cache else nullcontext(Cache()) as memory:
                tree = hierarchy.grow([chunks], memory)
        return [n for n in tree.nodes if n.level], tree.usage, len(server.requests)

    def test_in_the_call_of_the_summary_and_from_the_cache(self, documents, tmp_path):
        def reply(prompt):
            return "**Title:** “Sails in the wind”\n\nSummary: The sails hang in the wind."

        first, usage, n_asked = self.grown(reply, documents, tmp_path)
        assert n_asked == usage.llm_calls == len(first) - usage.cached_summaries
        for node in first:
            assert node.title == "Sails in the wind"
            assert node.text == "The sails hang in the wind."
            assert node.kind == "abstractive"
        again, usage, n_asked = self.grown(reply, documents, tmp_path)
        assert (n_asked, usage.cached_summaries) == (0, len(first))
        assert as_plain(again) == as_plain(first)

    def test_headings_and_documents_come_first(self):
        documents = [markdown("a", MILL, title="Mill"), markdown("b", HARBOUR, title="Harbour")]
        nodes, *_ = self.grown(lambda _: "Title: Written\n\nThe sails hang.", documents)
        assert sorted(n.title for n in nodes) == ["Harbour", "Mill", "Written"]

    def test_of_a_prompt_of_ones_own_a_title_is_one_too(self, documents):
        reply = "Title: A song of the sea\nThe sails hang in the wind."
        nodes, *_ = self.grown(lambda _: reply, documents, prompt="Summarise: {text}")
        assert {n.text for n in nodes} == {"The sails hang in the wind."}
        assert {n.title for n in nodes} == {"A song of the sea"}

    def test_a_fallback_gets_first_words(self, documents):
        reply = "Title: Bananas\nPlanets circle 777 distant suns."
        nodes, *_ = self.grown(lambda _: reply, documents, unsupported="drop")
        assert {n.kind for n in nodes} == {"extractive_fallback"}
        assert all(n.title not in ("", "Bananas") for n in nodes)
