import pytest
from hypothesis import given
from hypothesis import strategies as st
from indexes import built
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from store.trees import NOUNS

from hierindex import HierarchyRetriever, load_embed_model
from hierindex.respond.evidence import LOOKED_UP, N_BEST, QuestionWords

QUESTION = "Did the lantern meet a falcon?"
WAYS = ("dense", "text", "hybrid", "context")


def score(question, *texts, likeness=0.5):
    asked = QuestionWords.of(question)
    return asked.score(likeness, [asked.stems(text) for text in texts])


def stems(question, words):
    return set().union(*(QuestionWords.of(question).stems(word) for word in words))


@pytest.mark.parametrize(
    ("question", "numbers"),
    [
        ("Why did the pump at station 12 fail?", {"12"}),
        ("What changed in version 3.11?", {"3.11"}),
        ("What is a B52?", {"b52"}),
        ("Was kostet Ticket 12?", {"12"}),
        ("2023年水泵坏了吗?", {"2023"}),
        ("Why did the pump fail?", set()),
    ],
)
def test_numbers_of_a_question(question, numbers):
    assert QuestionWords.of(question).numbers == numbers


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Where was Ada Lovelace born?", {"ada", "lovelace"}),
        ("Where did Ada and Grace meet?", {"ada", "grace"}),
        ("Pump failures in Dover", {"dover"}),
        ("Why did the pump fail?", set()),
        ("Is What in it?", set()),
        ("Did Ada die in the war in Dover?", {"ada", "dover"}),
        ("Wo ist die Pumpe von Ada?", set()),
        ("Woher nimmt er seine Angaben?", set()),
        ("水泵在哪里?", {"水泵", "泵在"}),
        ("水泵和 Ada Pump-7 在哪里?", {"ada", "pump", "水泵", "泵和"}),
        ("Who killed Officer Tippit? Answer briefly.", {"officer", "tippit"}),
        ("Quand a été construite la gare?", set()),
        ("Когда построили дорогу в Омске?", {"омске"}),
        ("WHAT BROKE THE OLD PUMP AT NOON", set()),
        ('Who said "a worn seal"?', {"worn", "seal"}),
        ("Who said “a worn seal”?", {"worn", "seal"}),
        ("Wer sagt „worn seal“?", {"worn", "seal"}),
        ("What does --keep-old do?", {"keep", "old"}),
        ("What does the dog--that old one--do?", set()),
        ("Was macht man mit -x?", {"-x"}),
        ("Which lines does /etc/pumps have?", {"etc", "pumps"}),
        ("Why is MAX_AGE low here?", {"max", "age"}),
        ("Why is maxAge low?", {"maxage"}),
        ("What is written in pump(8)?", {"pump"}),
        ("Why is a well-known pump out of date?", set()),
    ],
)
def test_names_of_a_question_have_capitals_quotes_or_the_form_of_code(question, names):
    assert QuestionWords.of(question).names == stems(question, names)


@pytest.mark.parametrize(
    ("question", "is_lookup"),
    [
        ("pump", True),
        ("Ticket 12", True),
        ("Jack Ruby", True),
        ("chapter-3.md", True),
        ("水泵", True),
        ("What is a pump?", False),
        ("the pump", False),
    ],
)
def test_nothing_but_words_is_a_lookup(question, is_lookup):
    assert QuestionWords.of(question).is_lookup == is_lookup


sentences = st.lists(st.sampled_from([*NOUNS, "12", "Ada", "why", "is"]), max_size=6).map(" ".join)


@given(sentences, st.lists(sentences, max_size=7), st.floats(-2, 3), st.floats(-2, 3))
def test_a_score_is_in_0_to_1_and_grows_with_the_likeness(question, texts, a, b):
    low, high = (score(question, *texts, likeness=likeness) for likeness in sorted([a, b]))
    assert 0 <= low <= high <= 1


@given(sentences, st.lists(sentences, min_size=1, max_size=4), sentences)
def test_a_text_more_never_answers_less(question, texts, more):
    assert score(question, *texts, more) >= score(question, *texts)


@pytest.mark.parametrize(
    ("question", "other"),
    [
        ("Why did the pump at station 12 fail?", "Why did the pump at station 15 fail?"),
        ("Why did the pump in Dover fail?", "Why did the pump in Calais fail?"),
    ],
    ids=["a number", "a name"],
)
def test_a_number_or_a_name_that_is_not_met_counts_more_than_a_word(question, other):
    text = "The pump at station 12 in Dover did fail."
    met, missing, word = (
        score(q, text) for q in (question, other, "Why did the pump at station fail slowly?")
    )
    assert met > 0.5 > missing
    assert missing < word


def test_numbers_are_met_by_any_of_the_best_five_texts():
    question, texts = "Why did pump 12 fail?", ["The pump did fail."] * (N_BEST - 1)
    assert score(question, *texts, "It is 12.") > score(question, *texts)
    assert score(question, *texts, "So.", "It is 12.") == score(question, *texts)


def test_pairs_of_characters_that_no_text_has_count():
    text = "水泵坏了"
    assert score("水泵坏了么", text) > score("水泵坏了么", "12", text[:2]) > score("河流", text)
    assert score("维修 Ada 的水泵", "维修 Ada 的水泵") > 0.5 > score("维修 Ada 的水泵", "维修水泵")


def test_what_is_looked_up_and_found_is_never_refused():
    assert score("Ticket 12", "See ticket 12 for more.", likeness=-1) >= LOOKED_UP
    assert score("Ticket 12", "See ticket 13 for more.", likeness=-1) < 0.1
    assert score("What is in ticket 12?", "See ticket 12 for more.", likeness=-1) < LOOKED_UP


@pytest.mark.parametrize(("question", "is_looked_up"), [("A Lantern", True), ("a lantern", False)])
def test_a_name_is_looked_up_by_its_words(store, embed_model, question, is_looked_up):
    query = QueryBundle(question, embedding=embed_model.get_query_embedding("falcon falcon"))
    found = HierarchyRetriever(store, embed_model, level=0, by="context", top_k=3)
    assert all("lantern" in node.text for node in found.retrieve(query)) == is_looked_up


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("When was \u00d8rsted born?", "\u00d8rsted was born in 1777."),
        ("Where is Lodz?", "\u0141\u00f3d\u017a is in Poland."),
        ("O\u00f9 est le coeur ?", "Le c\u0153ur est \u00e0 gauche."),
        ("Quand est-elle arriv\u00e9e ?", "Elle va arriver demain."),
        (
            "\u0413\u0434\u0435 \u043d\u043e\u0432\u044b\u0439 \u0434\u043e\u043c?",
            "\u0423 \u043d\u043e\u0432\u043e\u0433\u043e \u0434\u043e\u043c\u0430.",
        ),
        ("resume", "Le r\u00e9sum\u00e9 est court."),
    ],
)
def test_words_meet_their_other_forms(question: str, text: str) -> None:
    asked = QuestionWords.of(question)
    assert asked.words - asked.stems(text) <= {"born", "elle", "est-elle"}


def test_the_words_of_another_language_say_nothing() -> None:
    asked = QuestionWords.of("How many boats came in 1907?")
    with_it, without = {"1907"}, {"1908"}
    scores = [asked.score(1.0, [told], across=True) for told in (with_it, without)]
    assert scores[0] == scores[1] > 0.5 > asked.score(0.5, [with_it], across=True)


def options_of(by):
    return {"level": 0, "by": by, "top_k": 100, "token_budget": None}


def test_scores_do_not_depend_on_the_way_of_asking(index):
    first, *others = (
        {source.id: source.score for source in index.ask(QUESTION, **options_of(by)).sources}
        for by in WAYS
    )
    assert len(first) > 3
    assert len({*first.values()}) > 2
    assert all(0 <= each <= 1 for each in first.values())
    for other in others:
        shared = first.keys() & other.keys()
        assert shared
        assert {i: other[i] for i in shared} == {i: first[i] for i in shared}


@pytest.mark.parametrize("by", WAYS)
def test_a_source_has_the_score_of_the_retriever_too(index, by):
    found = index.as_retriever(**options_of(by)).retrieve(QUESTION)
    sources = index.ask(QUESTION, **options_of(by)).sources
    assert [source.raw_score for source in sources] == [round(node.score, 6) for node in found]


class Rescored(BaseNodePostprocessor):
    """Gives the first nodes other scores, and adds a node that was not searched for."""

    scores: list[float]

    def _postprocess_nodes(self, nodes, query_bundle=None):
        for found, score in zip(nodes, self.scores, strict=False):
            found.score = score
        added = NodeWithScore(node=TextNode(text="The pump failed."), score=0.7)
        return [*nodes[: len(self.scores)], added]


def test_a_node_that_was_not_searched_for_keeps_its_score(index):
    *_, added = index.ask(QUESTION, level=0, postprocessors=[Rescored(scores=[0.1])]).sources
    assert added.score == added.raw_score == 0.7


def test_nodes_of_an_overview_keep_their_scores_within_0_and_1(tmp_path):
    texts = {f"{i}.md": f"The pump of station {i} failed in May." for i in range(5)}
    index = built(texts, tmp_path, model=load_embed_model())
    options = {"mode": "collapsed", "postprocessors": [Rescored(scores=[-0.1, 0.4, 19.9])]}
    sources = index.ask("What is this about?", **options).sources
    assert [source.score for source in sources] == [0, 0.4, 1, 0.7]
