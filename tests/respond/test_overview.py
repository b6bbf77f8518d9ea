import re
from functools import cache

import pytest
from indexes import built as built_of
from indexes import where
from llama_index.core.schema import Document, NodeWithScore, TextNode
from records import metadata_of

from hierindex import ExtractiveSynthesizer, HierarchicalIndex, load_embed_model
from hierindex.models.embedder import Embedder

WHOLE = "What topics do these documents cover?"
LINE = re.compile(r"(?:(?P<title>[^\n]+?) )?\((?P<share>\d+)%\):? (?P<text>.+?) \[(?P<n>\d+)\]")
MORE = re.compile(r"and \d+ more parts? \((\d+)%\)")
THINGS = {"ships": "anchor sail rudder", "bread": "flour oven dough", "birds": "nest wing feather"}
ABOUT_THE_WHOLE = (
    "What are the main conclusions?",
    "Give me an overview.",
    "What's in here?",
    "Can you give me the short version?",
    "What should I know about this?",
    "What did they find out?",
    "What kind of text is this?",
    "Tell me what I can learn from this.",
    "tl;dr",
    "Worum geht es hier?",
    "Zusammenfassung bitte",
    "¿De qué tratan los documentos?",
    "这些文件讲的是什么?",
)
ABOUT_A_PART = (
    "How many items are in the costume collection of the museum?",
    "What kind of documents does a visa need?",
    "How are documents stored?",
    "What is the main function?",
    "Why did the pump at station 12 fail?",
    "Wo ist das Buch?",
    "Worum geht es in Kapitel 3?",
    "¿Quién tiene los documentos?",
    "这个部件是什么材料?",
    "Inhalt",  # a word alone is looked up
    "general manual",
)


@cache
def model():
    return load_embed_model()


def text_of(name, n_sentences=12):
    things = THINGS[name].split()
    return "  ".join(
        f"On day {i} the {name} keeper met the {things[i % 3]} near the {things[(i + 1) % 3]}."
        for i in range(n_sentences)
    )


def built(folder, **texts):
    documents = [
        Document(id_=f"{name}.md", text=text, metadata={"topic": name, "title": f"All {name}"})
        for name, text in texts.items()
    ]
    options = {"model": model(), "summary_tokens": 40, "max_children": 3}
    return built_of(documents, folder, chunk_size=60, **options)


def lines(answer, texts):
    """The lines of an overview, whose sentences stand at the places that are cited."""
    found = [line.groupdict() for line in LINE.finditer(answer.answer)]
    assert [int(line["n"]) for line in found] == [*range(1, len(found) + 1)]
    assert len(found) == len(answer.citations)
    for line, place in zip(found, answer.citations, strict=True):
        name = place.document.removesuffix(".md")
        assert texts[name][place.start : place.end] == line["text"] == place.quote
    return found


def share_told(answer):
    """The sum of the shares in an overview, in percent."""
    shares = [
        *(line["share"] for line in LINE.finditer(answer.answer)),
        *MORE.findall(answer.answer),
    ]
    return sum(map(int, shares))


def test_an_overview_is_the_outline_of_what_is_left_and_passes(tmp_path):
    texts = {name: text_of(name) for name in ("ships", "bread")}
    index = built(tmp_path, **texts)
    answer = index.ask(WHOLE, token_budget=200)
    assert not answer.refused
    titles = {source.title for source in answer.sources}
    assert {line["title"] for line in lines(answer, texts)} <= titles

    texts = {"ships": text_of("ships", 8), "birds": text_of("birds", 20)}  # edited, deleted, added
    index = built(tmp_path, **texts)
    answer = index.ask(WHOLE, token_budget=200)
    assert lines(answer, texts)
    assert "bread" not in answer.answer
    assert "oven" not in answer.answer

    answer = index.ask(WHOLE, filters=where(topic="ships"))
    quotes = [citation.quote for citation in answer.citations]
    assert quotes
    assert all(quote in texts["ships"] for quote in quotes)
    assert "birds" not in answer.answer

    texts["bread"] = text_of("bread")
    index = built(tmp_path, **texts)
    answer = index.ask(WHOLE, filters=where("in", topic=["ships", "bread"]))
    assert lines(answer, texts)
    assert share_told(answer) == pytest.approx(100, abs=3)  # of what passes
    assert "birds" not in answer.answer


def test_an_overview_of_a_document_follows_its_headings(tmp_path):
    parts = {
        "Sails": "Sails are cut from flax. The flax is sown in May, and reaped in August.",
        "Hulls": "Hulls are built of oak that grew in the open. Oak from a wood is too straight.",
        "Ropes": "Ropes are laid from hemp. A rope of three strands holds best.",
    }
    more = " ".join(f"They saw it there on day {i}." for i in range(40))
    text = "\n\n".join(f"# {title}\n\n{text} {more}" for title, text in parts.items())
    (tmp_path / "yard.md").write_text(text)
    index = HierarchicalIndex.build([tmp_path / "yard.md"], tmp_path / "index", chunk_size=120)
    told = index.ask("What is this about?").answer
    named = re.findall(r"(?m)^(\w+) \(\d+%\): (.*?) \[\d+\]$", told)
    assert [name for name, _ in named] == [*parts]
    assert all(quote in parts[name] for name, quote in named)


def test_nodes_that_are_no_outline_have_no_shares(harbour):
    index, _ = harbour
    answer = index.ask(WHOLE, mode="level", level="top")
    assert not answer.refused
    assert answer.citations
    assert "%" not in answer.answer
    assert answer.answer.startswith(f"{answer.sources[0].title}: ")


def ask(*texts, answer_tokens=150, **fields):
    nodes = [
        NodeWithScore(node=TextNode(text=text, metadata=metadata_of(title=title, **fields)))
        for title, text in texts
    ]
    return str(
        ExtractiveSynthesizer(model(), answer_tokens=answer_tokens).synthesize(
            "What is this about?", nodes
        )
    )


def test_a_part_without_a_sentence_is_told_by_what_it_has():
    told = ("Rain", "It rained all night.  The river rose.")
    said = ask(told, ("Figures", "Contents"))
    assert said == "Rain: It rained all night. [1]\n\nFigures: Contents [2]"


def test_a_small_part_of_several_nodes_has_one_sentence():
    rain = [
        ("Rain", f"It rained all night in the town of {town}.") for town in ("Ost", "Bar", "Ulm")
    ]
    said = ask(*rain, ("Sun", "The sun shone on the river."), documents=("almanac",))
    assert said == f"Rain: {rain[0][1]} [1]\n\nSun: The sun shone on the river. [2]"


def test_a_line_has_a_sentence_that_tells_something():
    greeting = "Ada: All set?\nBo: Yeah, well, good morning to all of you.\n"
    first = greeting + "Ada: The harbour committee repairs the northern pump in March."
    second = greeting + "Bo: The valve is new.\nAda: Okay, then."
    said = ask(("One", first), ("Two", second)).split("\n\n")
    assert said[0] == f"One: {first.splitlines()[-1]} [1]"


def test_a_single_node_is_told_from_its_first_sentence_on():
    text = "Ada: Good morning.\n\nThe harbour committee repairs the northern pump. It is old."
    assert ask(("Rain", text)) == f"Rain: {text.splitlines()[-1]} [1]"
    assert ask(("Rain", "Ada: Okay, good morning.")) == "Rain: Ada: Okay, good morning. [1]"


def test_a_single_node_of_short_parts_has_a_sentence_of_several(tmp_path):
    things = "lantern anchor winch ladder barrel pump rope sail oar mast".split()
    lines = [f"{n}. The {thing}\n{n}.1 The tenant oils it." for n, thing in enumerate(things, 1)]
    document = Document(id_="lease.md", text="\n\n".join(lines))
    answer = HierarchicalIndex.build([document], tmp_path).ask("Summarise lease.md.")
    assert len(answer.sources) == 1
    assert len(answer.citations) >= 3


@pytest.fixture(scope="module")
def harbour(tmp_path_factory):
    texts = {name: text_of(name, 20) for name in THINGS}
    return built(tmp_path_factory.mktemp("index"), **texts), texts


def test_the_top_is_told_with_the_titles_of_its_parts(harbour):
    index, _ = harbour
    answer = index.ask(WHOLE, level="top")
    (source,) = answer.sources
    told, parts = answer.answer.split("\n\nIn 3 parts: ")
    assert told.startswith(f"{source.title} (100%): ")
    titles = [child["title"] for child in index.tree(source.id, depth=1)["nodes"][0]["nodes"]]
    assert sorted(parts.split("; ")) == sorted(titles)
    assert answer.why.startswith("level top for an outline: ")

    answer = index.ask(WHOLE, level="top", synthesizer={"answer_tokens": 20})
    assert answer.answer.endswith(f"\n\nIn 3 parts: {'; '.join(parts.split('; ')[:2])}")


def test_parts_of_a_document_are_named_by_their_sections(tmp_path):
    ships, bread, birds = (text_of(name, 6).replace("  ", " ") for name in THINGS)
    text = f"# Book\n\n## Part 1\n\n### Ships\n\n{ships}\n\n### Bread\n\n{bread}\n\n"
    (tmp_path / "book.md").write_text(f"{text}## Part 2\n\n### Birds\n\n{birds}")
    options = {"model": model(), "chunk_size": 60, "summary_tokens": 40, "max_children": 4}
    index = built_of(tmp_path / "book.md", tmp_path / "index", **options)
    (book,) = index.tree(depth=1)["nodes"]
    found = [line["title"] for line in LINE.finditer(index.ask(WHOLE, level=1).answer)]
    assert found == [part["title"] for part in book["nodes"]]
    assert found == ["Part 1", "Part 2 \u203a Birds"]


def test_parts_of_a_document_without_headings_are_named_by_their_phrases(tmp_path):
    things = "anchor chain", "bread oven", "bird nest"
    said = [
        f"The {thing} of house {i} is {colour}."
        for thing in things
        for i in range(12)
        for colour in ("red", "blue")
    ]
    (tmp_path / "talk.txt").write_text(" ".join(said))
    options = {"model": model(), "chunk_size": 60, "summary_tokens": 40, "max_children": 4}
    index = built_of(tmp_path / "talk.txt", tmp_path / "index", **options)
    found = [line.groupdict() for line in LINE.finditer(index.ask(WHOLE).answer)]
    assert {line["title"] for line in found} == {*things}
    assert all(line["title"] in line["text"] for line in found)


def test_documents_are_not_split_if_there_are_several(harbour):
    index, texts = harbour
    answer = index.ask(WHOLE)
    assert sorted(line["title"] for line in lines(answer, texts)) == [
        f"All {name}" for name in sorted(THINGS)
    ]
    assert share_told(answer) == pytest.approx(100, abs=3)
    answer = index.ask(WHOLE, filters=where(topic="ships"))
    assert len(answer.citations) > 1
    assert not LINE.search(answer.answer)  # no part has a heading, and so none has a name


def test_an_overview_of_many_documents_has_at_most_20_parts(tmp_path):
    texts = {f"ship {i}": f"Ship {i} sailed over sea {i} in year {i}." for i in range(22)}
    index = built(tmp_path, **texts)
    answer = index.ask(WHOLE)
    assert 1 < len(answer.sources) <= 20
    named = re.findall(r"(?m)^(.+) \(\d+%\): Ship \d+", answer.answer)
    assert {*named} <= {source.title for source in answer.sources}
    assert share_told(answer) == pytest.approx(100, abs=10)  # each is rounded


@pytest.mark.parametrize("level", [1, "documents"])
def test_a_level_is_told_by_its_own_outline(harbour, level):
    index, texts = harbour
    answer = index.ask(WHOLE, level=level)
    everything = {"level": level, "top_k": 99, "token_budget": None}
    there = {node.node_id for node in index.as_retriever(**everything).retrieve("the oven")}
    assert {source.id for source in answer.sources} <= there
    assert lines(answer, texts)
    assert answer.why.startswith(f"level {level} for an outline: ")


@pytest.mark.parametrize("answer_tokens", [50, 70, 90])
def test_parts_that_do_not_fit_are_named(answer_tokens):
    parts = [(f"Part {i}", f"On day {i} it rained in the north.") for i in range(9)]
    *told, more = ask(*parts, answer_tokens=answer_tokens).split("\n\n")
    left = [f"Part {i}" for i in range(len(told), 9)]
    start, names = f"and {len(left)} more parts", "; ".join(left)
    assert told
    assert more == start or names.startswith(more.removeprefix(f"{start}: "))
    n_tokens = Embedder(model()).count_text_tokens(
        [re.sub(r" \[\d\]", "", p) for p in (*told, more)]
    )
    assert n_tokens.sum() <= answer_tokens


ALSO_ABOUT_THE_WHOLE = (
    "What is it all about?",
    "Can you summarize everything?",
    "What do these documents discuss?",
    "Tell me in a few sentences what the whole thing says",
    "Give me a comprehensive overview.",
    "Would you mind giving me a brief overview of the material?",
    "Short summary, please",
    "Recap all my notes",
)
ALSO_ABOUT_A_PART = (  # in words of those about the whole
    "What is the MIME type of a file decided by?",
    "What is the purpose of a lock file?",
    "Which document formats can be read?",
    "What does the archive file contain?",
    "Where are the documents kept at night?",
    "What was the conclusion of the trial?",
    "What is the main setting of the story?",
    "What topic is covered in the Chinese Facebook data?",
    "Who signed the document?",
)


@pytest.mark.parametrize("is_whole", [True, False])
def test_questions_about_the_whole_are_told_from_others(harbour, is_whole):
    retriever = harbour[0].as_retriever()
    whole, part = ABOUT_THE_WHOLE + ALSO_ABOUT_THE_WHOLE, ABOUT_A_PART + ALSO_ABOUT_A_PART
    for question in whole if is_whole else part:
        (first, *_) = retriever.retrieve(question)
        assert ("outline" in first.why) == is_whole, question
