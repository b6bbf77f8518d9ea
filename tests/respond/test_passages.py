"""What a passage without a language model consists of."""

import pytest
from indexes import documents_of
from llama_index.core.schema import NodeWithScore, TextNode
from records import metadata_of

from hierindex import (
    ExtractiveSynthesizer,
    HierarchicalIndex,
    Passage,
    Quote,
    Span,
    load_embed_model,
)
from hierindex.errors import InputError

FILLER = "Nobody on the quay remembered the name of the old ship that lay there for a winter."
TEXTS = {
    "stores.md": "# Stores\n\nUnder the bench are, from left to right:\n\n"
    + "\n".join(
        f"- {n} tins of {what}" for n, what in enumerate("peas oats rice figs salt".split())
    )
    + "\n- the spare anchor rope of the dinghy, forty metres of it, coiled and dry",
    "crew.md": "| name | role | berth | since | papers | phone |\n|---|---|---|---|---|---|\n"
    + "\n".join(
        f"| {name} | {role} | forward cabin, port side, lower bunk | 2019 | valid | 555 {i} |"
        for i, (name, role) in enumerate(
            [("Ada Lunde", "skipper"), ("Cato Rist", "cook"), ("Eva Moe", "engineer")]
        )
    ),
    "talk.txt": f"Mia Strand: {FILLER} {FILLER} {FILLER} The pump was sold to a farmer in Vik. "
    + " ".join([FILLER] * 4),
    "long.md": "# Log\n\n"
    + " ".join([FILLER] * 4)
    + " The mast broke in a squall off Bodø. "
    + " ".join([FILLER] * 4),
    "front.md": "---\ntags: [varnish]\nstatus: draft\n---\n# Hull\n\nThe hull gets a coat of tar"
    " in May, and a second one if the first is dull after a week of sun.",
    "files.md": "The file anchor.txt has the weights of all anchors on board.",
    "paper.md": "# Keels\n\nKeels of lead are heavier than those of iron and last longer."
    "\n\n# References\n\nLind, E. (2001). Keels of bronze and their corrosion. Journal of Keels.",
}


def quoted(question, *texts):
    """The passages of texts that are each a document of one chunk."""
    nodes = [
        NodeWithScore(
            node=TextNode(text=text, metadata=metadata_of(quotes=(quote,), documents=(id_,)))
        )
        for id_, text in ((f"{i}.md", text) for i, text in enumerate(texts))
        for quote in [Quote(0, len(text), Span(id_, 0, len(text)))]
    ]
    synthesizer = ExtractiveSynthesizer(load_embed_model(), min_score=None)
    passages = synthesizer.synthesize(question, nodes).metadata["passages"]
    return [Passage.from_json(each) for each in passages]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return HierarchicalIndex.build(
        documents_of(TEXTS), tmp_path_factory.mktemp("passages") / "index"
    )


def first(index, question):
    return index.ask(question).passages[0]


def test_an_item_stands_below_what_introduces_its_list(index):
    passage = first(index, "How long is the spare anchor rope of the dinghy?")
    assert passage.lead == "Under the bench are, from left to right:\n…"
    assert (
        passage.best == "- the spare anchor rope of the dinghy, forty metres of it, coiled and dry"
    )
    assert passage.text.startswith("- ")
    assert passage.text.endswith(passage.best)


@pytest.fixture(scope="module")
def manual(tmp_path_factory):
    """Many short texts with the same options and numbers; one text explains each."""
    does = "pays out the rope, hauls in the rope, stops the drum, turns the drum back".split(", ")
    options = [
        f"-{option}, --option-{i}: Winch {does[i % 4]} by {i} turns. {FILLER}\n\n"
        f"Option {i} is given with -{after} or -{before}, and seldom twice. {FILLER}"
        for i, (before, option, after) in enumerate(
            zip("hKkMmXx", "KkMmXxp", "kMmXxph", strict=True)
        )
    ]
    clauses = [
        f"{i}.{j} The hirer of the {what} {duty}. {FILLER}\n\nClause {j} and {i} of it are old."
        for i, what in enumerate(["crane", "dinghy", "winch"], 1)
        for j, duty in enumerate(["pays in May", "oils the chain", "is ashore by six"], 1)
    ]
    words = [
        f"The fairlead is oiled with the winch. {FILLER}",
        f"Fairlead: The rope of the winch runs over it. {FILLER}",
        f"Nobody pays for a fairlead, as every winch comes with one. {FILLER}",
    ]
    texts = {
        "words.md": "\n\n".join(words),
        "winch.md": "\n\n".join(options),
        "terms.md": "\n\n".join(clauses),
    }
    folder = tmp_path_factory.mktemp("manual")
    return HierarchicalIndex.build(documents_of(texts), folder / "index", chunk_size=48)


@pytest.mark.parametrize(
    ("question", "begins"),
    [
        *((f"What does winch -{option} do?", f"-{option}, --option-") for option in "kXp"),
        *((f"What does clause {number} say?", f"{number} The hirer") for number in ("1.2", "3.1")),
        ("What does a fairlead do?", "Fairlead: "),
    ],
)
def test_what_a_question_names_is_explained_where_it_stands_first(manual, question, begins):
    assert first(manual, question).best.startswith(begins)


def test_options_and_dotted_numbers_are_searched_to_the_letter(tmp_path):
    texts = ["Pass -k here.", *(f"Pass -K here, or k {i}." for i in range(9))]
    texts += [
        "Clause 3.2 is here.",
        *(f"Clauses 3 and 2 are here, and 3.21, {i}." for i in range(9)),
    ]
    documents = documents_of({f"{i}.md": text for i, text in enumerate(texts)})
    index = HierarchicalIndex.build(documents, tmp_path)
    for words, text in (("-k", texts[0]), ("What is -k for?", texts[0]), ("clause 3.2", texts[10])):
        assert index.as_retriever(by="text", level=0, top_k=1).retrieve(words)[0].text == text
    assert [*index.ask("Which documents mention -k?").listing.documents] == ["0.md"]
    assert not index.ask("-k").answer.startswith("The question has no word")


def test_a_part_is_found_though_nothing_is_called_so(tmp_path):
    terms = "2.1 The hirer pays in May.\n\n2.10 Visits at night cost 350 crowns.\n\n4.2 It ends."
    documents = documents_of({"terms.md": terms, "crew.md": f"2 of 10 cooks pay. {FILLER}"})
    index = HierarchicalIndex.build(documents, tmp_path)
    for question in ("What does clause 2.10 say?", "What does section 2.10 say?"):
        answer = index.ask(question)
        assert answer.passages[0].best.startswith("2.10")
        assert not answer.missing
    assert index.ask("What does clause 7.7 say?").missing == ["7.7"]


STEPS = "\n".join(
    f"{n}. {step} the filter, as the crew does."
    for n, step in enumerate(("Open", "Pull out", "Wash", "Dry", "Turn", "Push in", "Close"), 1)
)
LEASE = {
    "lease.md": "# Lease\n\n## 1. Rent\n\nThe rent is 900 crowns.\n\n## 2. Repairs\n\n"
    "The tenant mends the roof.\n",
    "Brewtek manual.md": "# Brewtek manual\n\n## Filter\n\nIt is changed so:\n\n"
    f"{STEPS}\n\n## Colours\n\nIt is red. {FILLER}\n",
}


def test_a_part_of_a_document_is_no_question_about_the_whole(tmp_path):
    index = HierarchicalIndex.build(documents_of(LEASE), tmp_path)
    answer = index.ask("Summarise section 2 of lease.md")
    assert "mends the roof" in answer.passages[0].text
    assert "Summarise" not in answer.missing
    steps = index.ask("How do I change the filter?").passages[0].text
    assert STEPS in steps
    overview = index.ask("Give me an overview of the manual.")
    assert {each.document for each in overview.citations} == {"Brewtek manual.md"}


def test_a_minus_sign_is_no_part_of_a_number(tmp_path):
    texts = {"cold.md": "The sensor in the hold read -5.3 degrees in May.", "warm.md": FILLER}
    answer = HierarchicalIndex.build(documents_of(texts), tmp_path).ask(
        "When did the sensor read 5.3 degrees?"
    )
    assert answer.passages[0].text == texts["cold.md"]
    assert not answer.missing


def test_a_row_stands_below_the_head_of_its_table(index):
    passage = first(index, "What is the phone number of the engineer Eva Moe?")
    assert passage.lead == "\n".join(TEXTS["crew.md"].split("\n")[:2])
    assert "| Eva Moe | engineer |" in passage.best


def test_a_record_answers_alone():
    records = [f"article: {name}; price: {n}.95" for n, name in enumerate(("loaf", "roll", "bun"))]
    (passage,) = quoted("What is the price of a roll?", "\n\n".join(records))
    assert passage.text == records[1]


def test_a_part_of_a_turn_has_its_speaker_above(index):
    passage = first(index, "To whom was the pump sold?")
    assert passage.lead == "Mia Strand: …"
    assert passage.best == "The pump was sold to a farmer in Vik."
    assert passage.title == "talk.txt"


def test_a_long_paragraph_is_cut_at_sentences(index):
    passage = first(index, "When did the mast break?")
    assert passage.best in passage.text
    assert 30 <= len(passage.text.split()) <= 60
    assert passage.text.startswith(("Nobody", "The mast"))
    assert passage.text.endswith(".")
    span = passage.citation
    assert TEXTS["long.md"][span.start : span.end] == passage.text == span.quote


@pytest.mark.parametrize(
    ("before", "begins"),
    [(f"{FILLER} Vik has a lock of iron.", "Vik has"), ("## Locks\n\n", "It was"), ("", "It was")],
    ids=["a sentence", "a heading", "nothing"],
)
def test_a_passage_begins_before_a_sentence_that_depends_on_another(before, begins):
    text = f"{before} It was forged by Ola Nes in the year of the flood. {' '.join([FILLER] * 6)}"
    passage = quoted("Who forged it in the year of the flood?", text)[0]
    assert passage.best.startswith("It was forged")
    assert passage.text.startswith(begins)


def test_what_a_reply_quotes_stands_below_its_author():
    cited = [f"> {FILLER}"] * 3 + ["> The pump of the ferry was sold to a farmer in Vik."]
    text = "\n".join(["Hello,", "", "On Monday, Ada wrote:", *cited, "I have told the bank."])
    passage = quoted("To whom was the pump sold?", text)[0]
    assert passage.lead == "On Monday, Ada wrote:\n\u2026"
    assert passage.best == cited[-1]


def test_an_empty_line_of_a_quotation_is_not_quoted_alone():
    text = f"> The pump was sold to a farmer in Vik.\n>\n> {FILLER}\n>\n> {FILLER}\n"
    assert not quoted("To whom was the pump sold?", text)[0].text.endswith(">")


def test_a_file_that_is_no_document_is_noted_unless_the_answer_has_its_name(index):
    answer = index.ask("How many coats of tar does the hull get in fronts.txt?")
    assert answer.passages
    assert answer.unknown == {"fronts.txt": ["front.md"]}
    assert "no document 'fronts.txt'" in str(answer)
    answer = index.ask("Whose weights does anchor.txt have?")
    assert not answer.refused
    assert answer.unknown == {}


def test_a_short_paragraph_is_quoted_as_a_whole(index):
    passage = first(index, "How many coats of tar does the hull get?")
    assert passage.text == TEXTS["front.md"].rpartition("\n")[2]
    assert passage.best == passage.text


@pytest.mark.parametrize(
    ("question", "quoted"),
    [
        ("Which keels last longer?", False),
        ("What did Lind write on the corrosion of bronze keels in 2001?", True),
    ],
)
def test_references_are_quoted_only_if_their_words_are_asked_for(index, question, quoted):
    assert first(index, question).text.startswith("Lind, E. (2001)") == quoted


def test_no_heading_is_quoted_alone(index):
    for question in ("Stores", "hull", "What does the log say?"):
        assert all(
            "\n" in p.text.strip("#") or p.text[0] != "#" for p in index.ask(question).passages
        )


def test_sender_and_subject_of_a_mail_answer(tmp_path):
    text = "From: Ada Bell <ada@roof.example>\nTo: Bo <bo@roof.example>\nSubject: Slates\n\n"
    (tmp_path / "a.eml").write_text(f"{text}Two of them came down last night. Can you look?\n")
    (tmp_path / "b.txt").write_text(f"{FILLER}\n")
    index = HierarchicalIndex.build(tmp_path, tmp_path / "index")
    passage = first(index, "What did Ada Bell write to Bo?")
    about = "subject: Slates; from: Ada Bell <ada@roof.example>; to: Bo <bo@roof.example>"
    assert (passage.best, passage.lead) == (about, f"{about}\n")
    assert passage.text.startswith("Two of them came down last night.")
    assert index.ask("Where is the ship?").passages[0].lead == ""


def test_a_fact_of_two_documents_is_shown_once():
    texts = f"The lamp is green. {FILLER}", f"The lamp is green. {FILLER} {FILLER}"
    passages = quoted("Which colour has the lamp?", *texts)
    assert sum("The lamp is green." in passage.text for passage in passages) == 1


def test_a_sentence_that_began_another_passage_is_not_repeated():
    fact = "The mast broke because of a squall off the cape."
    passages = quoted(
        "Why did the mast break?", f"The crew was tired. {fact}", f"{fact} Nobody fell."
    )
    assert sum(fact in passage.text for passage in passages) == 1


def test_the_sentence_that_defines_a_term_is_first():
    definition = "A _spring line_ runs from the bow aft, or from the stern forward, to the quay."
    used = "What the spring line is, the crew had to learn."
    text = "\n\n".join([f"{used} {FILLER} {FILLER}"] * 2 + [f"{FILLER} {FILLER} {definition}"])
    assert quoted("What is a spring line?", text)[0].best == definition


@pytest.mark.parametrize(
    "sentence",
    [
        "LVM, the Logical Volume Manager, is another way to divide disks.",
        "The LVM (of Linux) is a layer above the disks.",
    ],
)
def test_what_a_thing_is_comes_before_what_else_is_said_of_it(sentence):
    other = "LVM is not easy: what is LVM for?"
    text = f"{other}\n\n# Disks\n\n{FILLER} {FILLER} {sentence}"
    assert quoted("What is LVM?", text)[0].best == sentence


def test_what_is_announced_is_quoted():
    table = "The crew of the boat is:\n\n| name | role |\n|---|---|\n| Ada | cook |\n| Bo | mate |"
    (passage,) = quoted("Who is in the crew of the boat?", table)
    assert passage.text == table


def test_a_row_of_a_table_that_began_in_another_chunk_has_no_head(tmp_path):
    rows = "\n".join(f"| Person{i} | role {i} | lives in house {i} |" for i in range(5, 40))
    index = HierarchicalIndex.build(documents_of({"crew.md": rows}), tmp_path)
    passage = first(index, "What is the role of Person31?")
    assert "| Person31 |" in passage.best
    assert passage.lead == ""


def test_the_title_page_is_first_if_a_question_asks_who_wrote_it(tmp_path):
    page = "A Study of Keels\n\nEva Lind\n\nUniversity of Vik"
    parts = (f"Part {i} of the paper on keels is on keels of sort {i}." for i in range(9))
    body = "\n\n".join(f"{part} {' '.join([FILLER] * 5)}" for part in parts)
    text = f"{page}\n\n{' '.join([FILLER] * 12)}\n\n{body}"
    index = HierarchicalIndex.build(documents_of({"keels.md": text}), tmp_path)
    assert first(index, "Who wrote the paper on keels?").text == page


@pytest.mark.parametrize("question", ["x", "X?", " a . "])
def test_a_letter_is_no_question(index, question):
    with pytest.raises(InputError, match="A question needs a word"):
        index.ask(question)


@pytest.mark.parametrize("question", ["why?", "And?", "warum?"])
def test_a_question_needs_words_with_content(index, question):
    answer = index.ask(question)
    assert answer.refused
    assert "no word to search for" in str(answer)


@pytest.mark.parametrize("question", ["C++", "水", "WHO", "war"])
def test_a_sign_or_a_word_of_one_character_is_one(index, question):
    assert index.ask(question).answer


def test_a_passage_of_a_summary_of_several_documents_is_titled_by_its_own(index):
    for passage in index.ask("Which keels last longer?", level="top").passages:
        assert passage.title == passage.citation.document


@pytest.mark.parametrize(
    ("other", "n"),
    [
        ("The mast broke in a squall off the cape, as the log tells.", 1),
        ("The mast broke in a squall off the cape near Vik.", 2),
        ("The mast of 1931 broke in a squall off the cape.", 2),
        ("The mast never broke in a squall off the cape.", 2),
    ],
    ids=["more", "a name", "a number", "a negation"],
)
def test_a_sentence_that_says_nearly_the_same_is_not_shown(other, n):
    texts = ("The mast broke in a squall off the cape.", other)
    assert len(quoted("Why did the mast break?", *texts)) == n


def test_the_labels_of_an_axis_are_no_content():
    text = f"The curve of the tides has a peak in May.\n\n0.0\n0.5\n1.0\n1.5\n2.0\n\n{FILLER}"
    passage = quoted("When has the curve of the tides a peak?", text)[0]
    assert passage.best.startswith("The curve")
    assert "0.5" not in passage.text


SERVERS = {
    "samba.md": "# Samba\n\nSamba shares folders with Windows machines. The Samba server reads its "
    "configuration from smb.conf when it starts, and prints its version to a log.",
    "postfix.md": "# Postfix\n\nPostfix is the mail server here. The port that the mail server uses"
    " is 25, which the firewall leaves open.",
    "tools.md": "# Tools\n\n## dpkg -P\n\nIt purges what is left of it.\n\n## Commands\n\n"
    "dpkg is the base command for handling packages on the system.",
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    path = tmp_path_factory.mktemp("servers") / "index"
    return HierarchicalIndex.build(documents_of(SERVERS), path)


def test_the_subject_of_a_question_comes_before_what_is_said_of_others(servers):
    answer = servers.ask("Which port does Samba use?")
    assert "Samba" in answer.passages[0].text
    assert answer.missing == ["port"]
    assert str(answer).endswith("\n\nNot in the passages found: port")
    assert "25" in first(servers, "Which port does Postfix use?").text


def test_a_heading_answers_less_than_a_sentence(servers):
    best = first(servers, "What is dpkg?").best
    assert best == "dpkg is the base command for handling packages on the system."


KESTREL = (
    "# Kestrel\n\nkestrel [options] FILE\nKestrel is yet another tool that checks mails.\n\n"
    + "".join(
        f"## Part {i}\n\nRun kestrel again. If kestrel stops, kestrel tells why kestrel stops and "
        f"what kestrel has read, in file {i}. {FILLER}\n\n"
        for i in range(40)
    )
)


@pytest.mark.parametrize("question", ["What is Kestrel?", "What's kestrel?", "what is a kestrel"])
def test_what_is_defined_at_the_beginning_of_a_document_is_found(tmp_path, question):
    index = HierarchicalIndex.build(documents_of({"kestrel.md": KESTREL}), tmp_path)
    assert "is yet another tool that checks mails." in first(index, question).text
