"""Evaluations of small data by a model whose vectors can be computed by hand."""

import json
import re
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from fakes import HashingEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.schema import Document
from loopback import Fault, LoopbackServer

from hierindex.cli.app import main
from hierindex.errors import InputError
from hierindex.evaluate import Dataset, Question, evaluate
from hierindex.evaluate.measures import Passage, count_tokens
from hierindex.evaluate.runner import NEEDED, NO_LLM
from hierindex.evaluate.trees import EvenRuns, Trees
from hierindex.evaluate.ways import WAYS
from hierindex.record import Span

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


def whole(name):
    ends = [0, FARM.index("All rats"), len(FARM)]
    topics = tuple((Span(name, *each),) for each in pairwise(ends))
    text = f"What is the {name} about?"
    return Question(name, text, group=name, kind="overview", within=name, topics=topics)


DATA = Dataset(
    "animals",
    [Document(text=FARM, id_="farm"), Document(text=TOWN, id_="town")],
    [
        about("dogs"),
        about("rats", "town", within="town", reference="They sleep in tower 5"),
        whole("farm"),
    ],
)


@pytest.fixture(scope="module")
def model():
    return HashingEmbedding(dim=256)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where all tests find the same indices."""
    return tmp_path_factory.mktemp("indices")


@pytest.fixture(scope="module")
def seen():
    """What each way returned: the way, the question, the budget and passages."""
    return []


@pytest.fixture(scope="module")
def report(model, folder, seen):
    def spy(way):
        def spied(asked, top_k, budget):
            nodes = WAYS[way](asked, top_k, budget)
            seen.append((way, asked.question, budget, [Passage.of(node) for node in nodes]))
            return nodes

        return spied

    options = {"embed_model": model, "chunk_size": CHUNK_SIZE, "index": folder}
    return evaluate(DATA, ways={way: spy(way) for way in WAYS}, budgets=BUDGETS, **options)


def rows(report, **of):
    return [row for row in report.rows if all(getattr(row, key) == of[key] for key in of)]


def test_every_way_answers_every_question(report) -> None:
    assert report.notes == [NO_LLM]
    found = {row.way for row in report.rows}
    assert found == set(WAYS)
    for row in report.rows:
        assert 0 <= row.low <= row.mean <= row.high <= 1
        one = row.kind or row.measure == "answer words"
        assert row.questions == (1 if one else 2)
        assert (row.difference is None) == (row.way == "dense")
    for way in WAYS:
        measures = [(row.measure, row.budget) for row in rows(report, way=way, kind="")]
        assert measures[:2] == [("coverage", 60), ("coverage", 120)]
        assert {"hit@1", "hit@5", "MRR@10"} <= {measure for measure, _ in measures}
        overview = rows(report, way=way, kind="overview")
        assert [(row.measure, row.budget) for row in overview] == [
            ("breadth", 60),
            ("breadth", 120),
        ]


def test_figures_are_those_of_the_data(report) -> None:
    """The words of a question are those of its paragraph, and of no other."""
    for way in ("bm25", "dense", "hybrid", "added", "level-0", "level-0-text", "mmr"):
        assert [row.mean for row in rows(report, way=way, measure="hit@1")] == [1.0]
        assert [row.mean for row in rows(report, way=way, measure="coverage")] == [1.0, 1.0]
    lead = rows(report, way="lead", measure="MRR@10")[0]
    assert lead.mean == pytest.approx((1 / 2 + 1 / 6) / 2, abs=1e-4)
    assert lead.difference == pytest.approx(lead.mean - 1, abs=1e-4)
    assert [row.mean for row in rows(report, way="spaced", measure="breadth")] == [0.5, 1.0]
    assert [row.mean for row in rows(report, way="lead", measure="breadth")] == [0.5, 0.5]


def test_ways_return_passages_of_the_document_that_is_named(report, seen) -> None:
    texts = {document.doc_id: document.text for document in DATA.documents}
    for way, question, budget, passages in seen:
        assert passages or budget, way
        assert len({passage.id for passage in passages}) == len(passages)
        for passage in passages:
            assert passage.spans, way
            for span in passage.spans:
                assert question.within in (None, span.document), way
                assert texts[span.document][span.start : span.end] in passage.text, way
        if way != "document-order" or not budget:
            continue
        assert sum(count_tokens(p.text) for p in passages) <= budget
        assert [p.spans for p in passages] == sorted(p.spans for p in passages)


def test_indices_are_found_again(model, folder, report) -> None:
    before = len(model.batches)
    options = {"embed_model": model, "chunk_size": CHUNK_SIZE, "index": folder}
    ways = ("dense", "contiguous", "raptor", "collapsed")
    again = evaluate(DATA, ways=ways, budgets=BUDGETS, **options)
    assert len(model.batches) == before
    assert again.rows == [row for row in report.rows if row.way in ways]


def test_trees_share_vectors_and_chunks(model, tmp_path) -> None:
    def silent(*_):
        pass

    trees = Trees(DATA, tmp_path, model, CHUNK_SIZE, silent)
    n_chunks = len(trees.chunks.nodes)
    before = {text for batch in model.batches for text in batch}
    model.batches.clear()
    contiguous = trees.index("contiguous").info()
    assert contiguous["levels"][0]["nodes"] == n_chunks
    assert not {p.text for p in trees.chunks.passages} & {t for b in model.batches for t in b}
    assert before
    assert trees.chunks.bm25.scores("?!").tolist() == [0.0] * n_chunks


def test_even_runs_cut_at_equal_distances() -> None:
    assert EvenRuns(3).breakpoints([0] * 7, None).tolist() == [2, 5]
    assert EvenRuns(3).breakpoints([0] * 3, None).tolist() == []


def test_a_limit_and_ways_that_fail_are_left_out(model) -> None:
    def fails_late(asked, top_k, budget):
        if budget:
            raise InputError("Nobody is there.")
        return asked.nodes([0])

    ways = {"level-1": WAYS["level-1"], "late": fails_late, "lead": WAYS["lead"]}
    options = {"embed_model": model, "chunk_size": CHUNK_SIZE, "ways": ways}
    gold = {"spans": (Span("one", 0, 14),), "reference": "cats"}
    questions = [Question(f"{i}", "Who?", group="one", **gold) for i in range(3)]
    one = Dataset("one", [Document(text="All cats sleep.", id_="one")], questions)
    report = evaluate(one, limit=2, budgets=[500], llm=MockLLM(), **options)
    assert {(row.way, row.questions, row.groups) for row in report.rows} == {("lead", 2, 1)}
    assert report.notes == [
        "one: level-1 was left out. The index has levels 0 to 0, got level 1.",
        "one: late was left out. Nobody is there.",
    ]


def test_documents_of_stop_words_only(model) -> None:
    question = Question("q", "Where?", group="d", spans=(Span("d", 0, 4),))
    data = Dataset("stops", [Document(text="This is it, and that is not.", id_="d")], [question])
    with pytest.raises(InputError, match=r"^The documents have no words other than stop words\.$"):
        evaluate(data, ways=["bm25"], embed_model=model, chunk_size=CHUNK_SIZE)


def test_data_sets_of_one_name_are_refused(data, tmp_path) -> None:
    (other := tmp_path / "other").mkdir()
    (same := other / "animals").symlink_to(data)
    for several, named in (([data, same], f"{data} and {same}"), ([DATA, data], f"a .* {data}")):
        with pytest.raises(InputError, match=f"different names; {named} are both named 'animals'"):
            evaluate(several)


def test_metadata_do_not_count(model) -> None:
    options = {"ways": ["dense", "level-0"], "budgets": BUDGETS, "embed_model": model}
    figures = []
    for metadata in ({}, {"title": "What is told of the farm"}):
        documents = [Document(text=FARM, id_="farm", metadata=metadata)]
        data = Dataset("animals", documents, [about("dogs"), about("rats")])
        figures.append(evaluate(data, chunk_size=CHUNK_SIZE, **options).rows)
        assert documents[0].metadata == metadata
    assert figures[0] == figures[1]


def test_a_ranking_is_of_ten_documents(model) -> None:
    """The first document has more chunks than a ranking has passages."""
    documents = {"0": "\n\n".join(FARM.split("\n\n") + TOWN.split("\n\n"))}
    documents |= {f"{i}": f"The {animal} eat." for i, animal in enumerate(ANIMALS, start=1)}
    data = Dataset(
        "farms",
        [Document(text=text, id_=name) for name, text in documents.items()],
        [Question(n, "Who?", group=n, documents={n: 1}) for n in ("0", "1", "9", "10")],
    )
    asked = []

    def lead(asked_of, top_k, budget):
        if budget is None:
            asked.append(top_k)
        return WAYS["lead"](asked_of, top_k, budget)

    options = {"budgets": [100], "embed_model": model, "chunk_size": CHUNK_SIZE}
    report = evaluate(data, ways={"lead": lead}, **options)
    means = {row.measure: row.mean for row in report.rows}
    assert asked == [10, 100] * 4
    order = ["0", "1", "10", *map(str, range(2, 9)), "9"]  # sorted by their ids; the last is 11th
    assert sorted(documents) == order
    assert means["MRR@10"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 4, abs=1e-4)
    assert means["nDCG@10"] == pytest.approx((1 + 1 / np.log2(3) + 1 / 2) / 4, abs=1e-4)
    assert (means["hit@1"], means["hit@5"], means["all@5"]) == (0.25, 0.75, 0.25)


def test_rouge_is_of_the_largest_budget(model) -> None:
    reference = "All cats of the farm sleep in house 0 and all dogs in house 1."
    data = Dataset(
        "rouge",
        [Document(text=FARM, id_="farm")],
        [Question("q", "Where do they sleep?", group="farm", reference=reference)],
    )
    options = {"ways": ["lead"], "embed_model": model, "chunk_size": CHUNK_SIZE}
    one, both, other = (
        {row.measure: row.mean for row in rows(evaluate(data, budgets=b, **options), budget=None)}
        for b in ([60], [120, 60], [120])
    )
    assert set(both) == {"ROUGE-1", "ROUGE-2"}
    assert one != both == other


def test_documents_that_answer(model) -> None:
    paragraphs = {f"{i}": text for i, text in enumerate(FARM.split("\n\n"))}
    data = Dataset(
        "paragraphs",
        [Document(text=text, id_=name) for name, text in paragraphs.items()],
        [Question("q", "Where do hens and owls sleep?", group="q", documents={"2": 2, "4": 1})],
    )
    report = evaluate(data, ways=["bm25", "lead"], embed_model=model, budgets=[100])
    means = {(row.way, row.measure): row.mean for row in report.rows}
    told = ("documents", "all@5", "hit@1", "hit@5", "MRR@10", "nDCG@10")
    assert {measure for _, measure in means} == {*told}
    assert [means["lead", measure] for measure in told[:5]] == [0.0, 1.0, 0.0, 1.0, 0.3333]
    assert [means["bm25", measure] for measure in told[:5]] == [1.0] * 5


def test_an_llm_answers(model, folder) -> None:
    options = {"embed_model": model, "chunk_size": CHUNK_SIZE, "index": folder}
    report = evaluate(DATA, ways=["dense", "lead"], llm=MockLLM(), budgets=[60], **options)
    assert report.notes == []
    f1 = {row.way: row for row in report.rows if row.measure == "token F1"}
    assert f1.keys() == {"dense", "lead"}
    assert f1["dense"].mean > f1["lead"].mean > 0  # the mock repeats the prompt
    assert f1["dense"].questions == 1
    assert {row.measure for row in report.rows} >= {"ROUGE-L"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ways": ["dense", "best"]}, "There is no way 'best'; there are random, lead"),
        ({"ways": {}}, "ways must be one way or more, got {}"),
        ({"ways": []}, "ways must be one way or more, got []"),
        ({"ways": ["bm25"], "against": "dense"}, "against must be one of bm25, got 'dense'"),
        ({"budgets": []}, "budgets must be integers of at least 1, got []"),
        ({"budgets": [500, 0]}, "budgets must be integers of at least 1, got [500, 0]"),
        ({"limit": 0}, "limit must be an integer of at least 1, got 0"),
        ({"part": "some"}, "part must be one of all, tuning, held-out, got 'some'"),
    ],
)
def test_bad_options(options, message) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        evaluate(DATA, **options)


def test_no_data() -> None:
    with pytest.raises(InputError, match=r"^data must be one data set or more, got \[\]\.$"):
        evaluate([])


@pytest.mark.parametrize("missing", NEEDED)
def test_a_missing_extra_is_one_sentence(monkeypatch, missing) -> None:
    monkeypatch.setattr(
        "hierindex.evaluate.runner.find_spec", lambda name: None if name == missing else name
    )
    with pytest.raises(
        InputError, match=rf"install 'hierindex\[evaluate\]'`; {missing} is missing"
    ):
        evaluate(DATA)


def test_the_report_is_a_table_and_a_plot(report, tmp_path) -> None:
    told = str(report)
    assert "animals: 2 questions, 2 groups" in told
    assert "animals, overview: 1 questions, 1 groups" in told
    assert re.search(r"\| way +\| coverage at 60 +\| coverage at 120 +\| hit@1", told)
    assert re.search(r"\| dense +\| 1.000 +\| 1.000 +\|", told)
    assert re.search(r"\| lead .*\| \d\.\d{3} \[-\d\.\d{3}, [+-]\d\.\d{3}\]", told)
    few = replace(report, rows=[r for r in rows(report, kind="") if r.way in ("dense", "lead")])
    for name in ("plot.png", "plot.svg"):
        few.plot(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    with pytest.raises(InputError, match="cannot be written"):
        few.plot(tmp_path / "none" / "plot.png")
    with pytest.raises(InputError, match="budgets must be two or more for a plot"):
        replace(report, rows=rows(report, budget=60)).plot(tmp_path / "p.png")


@pytest.fixture
def hierindex(monkeypatch, capsys, tmp_path, model):
    """Runs a command line in this process; gives exit status, standard output and error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hierindex.evaluate.runner.load_embed_model", lambda: model)

    def run(*args):
        monkeypatch.setattr(sys, "argv", ["hierindex", "evaluate", *map(str, args)])
        with pytest.raises(SystemExit) as stop:
            main()
        return int(stop.value.code or 0), *capsys.readouterr()

    return run


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


def test_the_command(hierindex, data, tmp_path) -> None:
    options = ("--ways", "lead, bm25", "--budgets", "60,120", "--chunk-size", CHUNK_SIZE)
    status, out, err = hierindex(data, *options, "--index", "kept", "--plot", "p.svg", "--json")
    assert (status, err) == (0, "")
    told = json.loads(out)
    assert set(told) == {"part", "against", "rows", "notes", "seconds"}
    assert (told["part"], told["against"]) == ("all", "lead")
    best = next(r for r in told["rows"] if (r["way"], r["measure"]) == ("bm25", "hit@1"))
    assert best == {
        "data": "animals",
        "kind": "",
        "measure": "hit@1",
        "budget": None,
        "way": "bm25",
        "questions": 1,
        "groups": 1,
        **dict.fromkeys(("mean", "low", "high"), 1.0),
        **dict.fromkeys(("difference", "difference_low", "difference_high"), 1.0),
    }
    assert (tmp_path / "p.svg").exists()
    assert next((tmp_path / "kept").iterdir()).name.startswith("animals-")
    status, out, err = hierindex(data, *options, "--index", "kept")
    assert status == 0
    assert "| bm25 | 1.000 [" in out
    assert NO_LLM in out


def reads(prompt: str) -> str:
    """Answer with what the prompt says of the dogs' house."""
    found = re.search(r"dogs of the farm sleep in (house \d)", prompt)
    return f"In {found[1]}." if found else "Empty Response"


def test_the_command_with_a_language_model(hierindex, data) -> None:
    options = ("--ways", "lead, bm25", "--budgets", "60", "--chunk-size", CHUNK_SIZE, "--json")
    question = json.loads((data / "questions.jsonl").read_text()) | {"answer": "in house 1"}
    (data / "questions.jsonl").write_text(json.dumps(question))
    with LoopbackServer(reply=reads) as server:
        llm = ("--llm", "m", "--llm-base-url", server.base_url)
        status, out, err = hierindex(data, *options, *llm)
        assert (status, err) == (0, "")
    told = json.loads(out)
    assert told["notes"] == []
    f1 = {row["way"]: row["mean"] for row in told["rows"] if row["measure"] == "token F1"}
    assert f1["lead"] == 0 < f1["bm25"]
    assert len(server.requests) == 2
    assert all(question["question"] in request.prompt for request in server.requests)


def test_a_language_model_that_fails_is_one_sentence(hierindex, data) -> None:
    with LoopbackServer(faults=lambda number: Fault(401)) as server:
        llm = ("--llm", "m", "--llm-base-url", server.base_url)
        status, out, err = hierindex(data, "--ways", "lead", "--chunk-size", CHUNK_SIZE, *llm)
    assert (status, out) == (2, "")  # the key is the user's to mend
    assert err.count("\n") == 1
    assert "the key is missing or wrong" in err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["none"], "none does not exist; DATA must be"),
        (["animals", "--ways", "best"], "There is no way 'best'"),
        (["animals", "--budgets", "many"], "--budgets takes numbers such as 500,2000, got 'many'"),
        (["animals", "--part", "rest"], "part must be one of all, tuning, held-out"),
        (["animals", "--llm", "m"], "--llm needs --llm-base-url"),
        (["animals", "animals"], "Data sets need different names; animals and animals are both"),
        (["none", "--plot", "p.xyz"], "A plot must be a PNG, SVG or PDF file, got 'p.xyz'"),
        (["none", "--plot", "p"], "A plot must be a PNG, SVG or PDF file, got 'p'"),
        (["none", "--plot", "none/p.png"], "The plot cannot be written to none/p.png: there is"),
        (
            ["none", "--plot", "p.png", "--budgets", "500,500"],
            "budgets must be two or more for a plot, got [500]",
        ),
    ],
)
def test_bad_commands(hierindex, data, args, message) -> None:
    status, out, err = hierindex(*args)
    assert (status, out) == (2, "")
    assert err.startswith(f"hierindex: {message}")
    assert err.count("\n") == 1
