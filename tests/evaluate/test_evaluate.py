"""Evaluations of small data by a model whose vectors can be computed by hand."""

import json
import re
from collections import defaultdict
from dataclasses import replace
from functools import partial

import pytest
from fakes import HashingEmbedding
from llama_index.core.schema import Document

from hierindex import Span
from hierindex.errors import InputError
from hierindex.evaluate import Dataset, Question, evaluate, read_dataset, retrieved
from hierindex.evaluate.measures import Passage, count_tokens
from hierindex.evaluate.runner import WAYS, ways_of

ANIMALS = ("cats", "dogs", "hens", "fish", "owls", "rats", "goats", "mice", "bees", "ants")
FARM = "\n\n".join(
    f"All {animal} of the farm sleep in house {i}, which was built in the spring of the year, of "
    f"wood and stone and straw, with a door and a roof, by the man who feeds these {animal}."
    for i, animal in enumerate(ANIMALS)
)
TOWN = FARM.replace("farm", "town").replace("house", "tower")
BUDGETS = (60, 120)
CHUNK_SIZE = 50  # a paragraph


def about(animal, name="farm", **gold):
    text = {"farm": FARM, "town": TOWN}[name]
    start = text.index(f"All {animal}")
    end = text.find("\n", start) % (len(text) + 1)
    question = f"Where do {animal} of the {name} sleep?"
    gold = {"spans": (Span(name, start, end),), **gold}
    return Question(f"{name} {animal}", question, group=name, **gold)


def dataset(name, documents, questions):
    return Dataset(name, [Document(text=t, id_=n) for n, t in documents.items()], questions)


def animals(*questions):
    return dataset("animals", {"farm": FARM, "town": TOWN}, questions)


DATA = animals(
    about("dogs"),
    about("rats", "town", within="town"),
    about("hens", kind="overview", within="farm", spans=(), documents=("farm",)),
)


def first_chunks(asked, top_k, budget):
    """A way that does not search: the first chunks in the order of ids and places."""
    nodes = [node for node in asked.index.store.get_nodes() if not node.child_nodes]
    within = asked.question.within
    named = [node for node in nodes if within in (None, node.ref_doc_id)]
    return sorted(named, key=lambda node: Passage.of(node).spans[0][:3])[:top_k]


@pytest.fixture(scope="module")
def model():
    return HashingEmbedding(dim=256)


@pytest.fixture(scope="module")
def options(model, tmp_path_factory):
    """Those of all evaluations here, which find the same indices."""
    folder = tmp_path_factory.mktemp("indices")
    return {"embed_model": model, "chunk_size": CHUNK_SIZE, "budgets": BUDGETS, "index": folder}


@pytest.fixture(scope="module")
def report(options):
    return evaluate(DATA, **options)


def rows(report, **of):
    return [row for row in report.rows if all(getattr(row, key) == of[key] for key in of)]


def test_every_way_answers_every_question(report) -> None:
    assert report.notes == []
    ways = list(dict.fromkeys(row.way for row in report.rows))
    assert ways[: len(WAYS)] == list(WAYS)
    levels = ways[len(WAYS) :]
    assert levels == [f"level-{n}" for n in range(1, 1 + len(levels))] != []
    for row in report.rows:
        assert 0 <= row.low <= row.mean <= row.high <= 1
        assert row.questions == (1 if row.kind else 2)
        assert (row.difference is None) == (row.way == "dense")
    for way in ways:
        ranked = [("hit@1", None), ("hit@5", None), ("MRR@10", None)]
        for kind, measure in (("", "coverage"), ("overview", "documents")):
            measures = {(row.measure, row.budget) for row in rows(report, way=way, kind=kind)}
            assert measures == {(measure, 60), (measure, 120), *ranked}


def test_figures_are_those_of_the_data(report, options) -> None:
    """The words of a question are those of its paragraph, and of no other."""
    for way in ("dense", "text", "hybrid"):
        assert [row.mean for row in rows(report, way=way, measure="hit@1")] == [1.0, 1.0]
        assert [row.mean for row in rows(report, way=way, measure="coverage")] == [1.0, 1.0]
    ways = {"dense": WAYS["dense"], "first": first_chunks}
    first = rows(evaluate(DATA, ways=ways, **options), way="first", kind="")
    of = {(row.measure, row.budget): row for row in first}
    assert of["MRR@10", None].mean == pytest.approx((1 / 2 + 1 / 6) / 2, abs=1e-4)
    assert of["MRR@10", None].difference == pytest.approx(of["MRR@10", None].mean - 1, abs=1e-4)


def test_a_way_returns_passages_of_the_document_that_is_named(options) -> None:
    texts, seen = {"farm": FARM, "town": TOWN}, []

    def spied(way):
        def call(asked, top_k, budget):
            nodes = way(asked, top_k, budget)
            seen.append((asked.question, budget, [Passage.of(node) for node in nodes]))
            return nodes

        return call

    ways = {**WAYS, "traversal": retrieved(mode="traversal")}
    spies = {name: spied(way) for name, way in ways.items()}
    assert evaluate(DATA, ways=spies, **{**options, "budgets": BUDGETS[:1]}).notes == []
    for question, budget, passages in seen:
        assert passages
        assert len({passage.id for passage in passages}) == len(passages)
        if budget:
            assert sum(count_tokens(passage.text) for passage in passages) <= budget
        for passage in passages:
            assert passage.spans
            for span in passage.spans:
                assert question.within in (None, span.document)
                assert texts[span.document][span.start : span.end] in passage.text


def test_indices_are_found_again(model, options, report) -> None:
    before = len(model.batches)
    again = evaluate(DATA, ways=("dense", "level-1"), **options)
    assert len(model.batches) == before
    assert again.rows == [row for row in report.rows if row.way in ("dense", "level-1")]


def test_a_limit_and_ways_that_fail_are_left_out(model) -> None:
    def fails_late(asked, top_k, budget):
        if budget:
            raise InputError("Nobody is there.")
        return first_chunks(asked, top_k, budget)

    ways = {"level-1": retrieved(level=1), "late": fails_late, "dense": WAYS["dense"]}
    gold = {"spans": (Span("one", 0, 14),)}
    questions = [Question(f"{i}", "Who?", group="one", **gold) for i in range(3)]
    one = dataset("one", {"one": "All cats sleep."}, questions)
    report = evaluate(one, limit=2, embed_model=model, ways=ways)
    assert {(row.way, row.questions, row.groups) for row in report.rows} == {("dense", 2, 1)}
    assert [note.partition(" ")[0] for note in report.notes] == ["one:", "one:"]
    assert "level-1 was left out" in report.notes[0]
    assert "late was left out. Nobody is there." in report.notes[1]


def test_nothing_is_found_within_a_budget_that_no_node_fits(model, options) -> None:
    report = evaluate(DATA, limit=1, **{**options, "budgets": [1]})
    assert report.notes == []
    assert {row.mean for row in report.rows if row.budget} == {0.0}


def test_questions_without_gold_are_left_out(options) -> None:
    without = Question("q", "Who?", group="farm")
    report = evaluate(animals(without, about("dogs")), ways=["dense"], **options)
    assert {row.questions for row in report.rows} == {1}
    with pytest.raises(
        InputError, match=r"^none has no question with an expected answer \(gold\)\.$"
    ):
        evaluate(dataset("none", {"farm": FARM}, [without]))


def written_beir(folder, texts, queries, judged):
    (folder / "qrels").mkdir(parents=True)
    for name, rows in (("corpus", texts), ("queries", queries)):
        lines = [json.dumps({"_id": key, "text": text}) for key, text in rows.items()]
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    lines = [f"{query}\t{document}\t1" for query, document in judged]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *lines]))
    return folder


def test_judgements_outside_the_corpus_count_as_not_found(tmp_path, options) -> None:
    """As in pytrec_eval."""
    queries = {"half": about("dogs").text, "none": about("rats").text, "all": about("hens").text}
    judged = [("half", "farm"), ("half", "lost"), ("none", "lost"), ("none", "gone")]
    folder = written_beir(
        tmp_path / "animals", {"farm": FARM, "town": TOWN}, queries, [*judged, ("all", "farm")]
    )
    report = evaluate(folder, ways=["dense"], **options)
    assert report.notes == [
        "animals: 3 of 5 judgements are of documents outside the corpus, such as 'lost', 'gone'. "
        "They count as not found."
    ]
    figures = {row.measure: (row.questions, row.mean) for row in report.rows}
    assert figures["documents"] == (3, 0.5)
    assert figures["MRR@10"] == (3, pytest.approx(2 / 3, abs=1e-4))


def test_a_result_that_is_the_query_itself_is_left_out(tmp_path, options) -> None:
    """It has two chunks, which are nearer than the gold, and the ranking has ten passages still."""
    paragraphs = dict(zip(ANIMALS, FARM.split("\n\n"), strict=True))
    dogs = paragraphs["dogs"]
    texts = {name: f"{text} They sing." for name, text in paragraphs.items()}
    texts |= {"more": TOWN, "q": f"{dogs}\n\n{dogs.replace('All', 'So all')}"}
    with_it = read_dataset(written_beir(tmp_path / "beir", texts, {"q": dogs}, [("q", "dogs")]))
    kept = replace(with_it, questions=[replace(with_it.questions[0], without=None)])
    documents = defaultdict(set)
    lengths = {}

    def spied(name, way):
        def call(asked, top_k, budget):
            nodes = way(asked, top_k, budget)
            passages = [Passage.of(node) for node in nodes]
            case = name, asked.question.without
            documents[case] |= {span.document for each in passages for span in each.spans}
            lengths[*case, budget] = len(passages)
            return nodes

        return call

    ways = {name: spied(name, way) for name, way in ways_of([*WAYS, "level-1"]).items()}
    for data, expected in ((with_it, 1.0), (kept, 1 / 3)):
        report = evaluate(data, ways=ways, **{**options, "budgets": BUDGETS[:1]})
        means = {(row.way, row.measure): row.mean for row in report.rows}
        for name in ("dense", "text", "hybrid"):
            assert means[name, "MRR@10"] == pytest.approx(expected, abs=1e-4)
            assert lengths[name, data.questions[0].without, None] == 10
    for name in ways:
        assert "q" in documents[name, None]
        assert "q" not in documents[name, "q"]
    means = {row.measure: row.mean for row in evaluate(with_it, ways=["answer"], **options).rows}
    assert means["documents"] == 1.0


def test_answers_are_evaluated(options) -> None:
    data = animals(
        about("dogs"),
        about("rats", "town", within="town", answers=("tower 99",)),
        about("hens", kind="overview", spans=(), documents=("farm", "town")),
        Question("none", "Who invented the telescope of Galilei?", group="farm"),
        Question("marked", "Who invented the telescope of Newton?", group="farm", kind="refuse"),
    )
    report = evaluate(data, ways=["answer", "dense"], **options)
    assert (report.against, report.notes) == ("dense", [])
    found = {
        kind: {
            row.measure: (row.questions, row.mean) for row in rows(report, way="answer", kind=kind)
        }
        for kind in ("", "overview", "without gold", "refuse")
    }
    assert found[""].pop("words") > (2, 20)
    assert found[""] == {"coverage": (2, 1.0), "answer": (1, 0.0), "refused": (2, 0.0)}
    assert found["overview"]["documents"] == (1, 0.5)
    for kind in ("without gold", "refuse"):
        assert found[kind] == {"words": (1, 6.0), "refused": (1, 1.0)}
        assert rows(report, way="dense", kind=kind) == []
    for row in rows(report, way="answer"):
        assert (row.budget, row.difference) == (None, None)
    told = str(report)
    assert re.search(r"\| way +\| coverage +\| words +\| refused +\| answer +\|\n", told)
    assert re.search(r"\| way +\| coverage at 60 +\| ", told)
    assert re.search(r"without gold: 1 question, 1 group\n\n\| way +\| words \| refused \|\n", told)


def test_a_function_that_answers_is_asked_once_for_each_question(options) -> None:
    seen = defaultdict(list)

    def strict(asked, top_k, budget):
        seen["strict"].append(asked.question.id)
        settings = {"min_score": 1.0}
        return asked.index.ask(asked.question.text, filters=asked.filters, synthesizer=settings)

    def first(asked, top_k, budget):
        seen["first"].append(asked.question.id)
        return first_chunks(asked, top_k, budget)

    data = animals(*DATA.questions, Question("none", "Who?", group="farm"))
    report = evaluate(data, ways={"answer": strict, "first": first}, **options)
    assert seen["strict"] == [question.id for question in data.questions]
    assert {*seen["first"]} == {question.id for question in DATA.questions}
    assert {row.mean for row in rows(report, way="answer", measure="refused")} == {1.0}
    assert {row.mean for row in rows(report, way="answer", measure="coverage")} == {0.0}


def test_further_measures(options) -> None:
    def longest(question, passages, budget):
        assert question.text == "Who?"
        n_tokens = max(count_tokens(passage.text) for passage in passages)
        return {("longest", budget): n_tokens / 100, ("of all budgets", None): len(passages) / 10}

    data = animals(Question("q", "Who?", group="farm"))
    report = evaluate(data, ways={"first": first_chunks}, measures=longest, **options)
    found = [(row.measure, row.budget) for row in report.rows]
    assert found == [("longest", 60), ("of all budgets", None), ("longest", 120)]


def test_metadata_do_not_count(options) -> None:
    figures = []
    for metadata in ({}, {"title": "What is told of the farm"}):
        documents = [Document(text=FARM, id_="farm", metadata=metadata)]
        data = Dataset("animals", documents, [about("dogs"), about("rats")])
        figures.append(evaluate(data, ways=["dense"], **options).rows)
        assert documents[0].metadata == metadata
    assert figures[0] == figures[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ways": ["dense", "best"]}, "There is no retrieval method 'best'; there are auto, dense"),
        ({"ways": {}}, "ways must be one name or more, got {}"),
        ({"ways": []}, "ways must be one name or more, got []"),
        ({"ways": ["text"], "against": "dense"}, "against must be one of text, got 'dense'"),
        ({"budgets": []}, "budgets must be integers of at least 1, got []"),
        ({"budgets": [500, 0]}, "budgets must be integers of at least 1, got [500, 0]"),
        ({"data": []}, "data must be one data set or more, got []."),
        ({"limit": 0}, "limit must be an integer of at least 1, got 0"),
    ],
)
def test_bad_options(options, message) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        evaluate(**{"data": DATA, **options})


def test_the_report_is_a_table(report) -> None:
    told = str(report)
    assert "animals: 2 questions, 2 groups" in told
    assert "animals, overview: 1 question, 1 group" in told
    assert re.search(r"\| way +\| coverage at 60 +\| coverage at 120 +\| hit@1", told)
    assert re.search(r"\| dense +\| 1.000 +\| 1.000 +\|", told)
    assert re.search(r"\| level-1 .*\| \d\.\d{3} \[-\d\.\d{3}, [+-]\d\.\d{3}\]", told)


@pytest.fixture
def command(run, monkeypatch, tmp_path, model):
    """Runs `hierindex evaluate`; gives exit status, standard output and error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hierindex.load_embed_model", lambda *_, **__: model)
    return partial(run, "evaluate")


@pytest.fixture
def data(tmp_path):
    (tmp_path / "animals").mkdir()
    asked = about("dogs")
    question = {"qid": "q", "doc_id": "farm", "question": asked.text}
    question |= {"start": asked.spans[0].start, "end": asked.spans[0].end}
    (tmp_path / "animals" / "documents.jsonl").write_text(
        json.dumps({"doc_id": "farm", "text": FARM})
    )
    (tmp_path / "animals" / "questions.jsonl").write_text(json.dumps(question))
    return tmp_path / "animals"


def test_the_command(command, data, tmp_path) -> None:
    options = ("--ways", "level-1, text", "--budgets", "60,120", "--chunk-size", CHUNK_SIZE)
    status, out, err = command(data, *options, "--index", "kept", "--json")
    assert (status, err) == (0, "")
    told = json.loads(out)
    assert set(told) == {"against", "rows", "notes", "seconds"}
    assert told["against"] == "level-1"
    best = next(r for r in told["rows"] if (r["way"], r["measure"]) == ("text", "hit@1"))
    assert best == {
        "data": "animals",
        "kind": "",
        "measure": "hit@1",
        "budget": None,
        "way": "text",
        "questions": 1,
        "groups": 1,
        **dict.fromkeys(("mean", "low", "high"), 1.0),
        **dict.fromkeys(("difference", "difference_low", "difference_high"), 0.0),
    }
    assert next((tmp_path / "kept").iterdir()).name.startswith("animals-")
    status, out, err = command(data, *options, "--index", "kept")
    assert status == 0
    assert re.search(r"\| text +\| 1\.000 \[", out)


def test_the_command_evaluates_answers(command, data) -> None:
    none = {"qid": "none", "doc_id": "farm", "question": "Who invented the telescope of Galilei?"}
    with (data / "questions.jsonl").open("a") as file:
        file.write(f"\n{json.dumps(none)}")
    options = ("--chunk-size", CHUNK_SIZE, "--index", "kept", "--json")
    told = json.loads(command(data, *options, "--ways", "answer,text")[1])
    assert (told["against"], told["notes"]) == ("text", [])
    means = {(row["kind"], row["measure"]): row["mean"] for row in told["rows"]}
    assert means["", "coverage"] == 1.0
    assert (means["", "refused"], means["without gold", "refused"]) == (0.0, 1.0)
    told = json.loads(command(data, *options)[1])
    assert "answer" not in {row["way"] for row in told["rows"]}
    assert told["notes"] == ["animals: 1 questions without gold were left out."]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["none"], "none/documents.jsonl cannot be read"),
        (["animals", "--budgets", "many"], "--budgets takes numbers such as 500,2000, got 'many'"),
        (["animals", "animals"], "Data sets need different names; 2 are named"),
    ],
)
def test_bad_commands(command, data, args, message) -> None:
    status, out, err = command(*args)
    assert (status, out) == (2, "")
    assert err.startswith(f"hierindex: {message}")
    assert err.count("\n") == 1
