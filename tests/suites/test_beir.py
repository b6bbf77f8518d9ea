"""TREC's evaluation program gives BEIR data the figures that `evaluate` gives."""

import json
from statistics import fmean

import pytest
import pytrec_eval
from fakes import HashingEmbedding
from store.trees import documents

from hierindex.evaluate import evaluate
from hierindex.evaluate.runner import WAYS

N = 40  # documents of a sentence each, so that a document is a chunk


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data in BEIR's form: some queries are documents, some relevant documents are missing."""
    folder = tmp_path_factory.mktemp("beir") / "letters"
    (folder / "qrels").mkdir(parents=True)
    sentences = [s for document in documents() for s in document.text.split("  ")][:N]
    corpus = [{"_id": f"d{i}", "title": "", "text": text} for i, text in enumerate(sentences)]
    ids = [f"d{i}" if i % 5 == 0 else f"q{i}" for i in range(N)]
    queries = [
        {"_id": name, "text": f"What met {sentence.split()[1]}?"}
        for name, sentence in zip(ids, sentences, strict=True)
    ]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    scores = [(ids[i], f"d{(i * 7 + j) % N}", j % 2) for i in range(N) for j in range(i % 4)]
    scores += [(ids[i], f"missing{i}", 1) for i in range(0, N, 6)]
    rows = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in scores)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(rows))
    return folder


def judged(folder) -> dict[str, dict[str, int]]:
    """The judgements of questions with a relevant document, as they stand in the file."""
    _, *rows = ((folder / "qrels" / "test.tsv").read_text()).splitlines()
    relevant: dict[str, dict[str, int]] = {}
    for query, document, score in (row.split("\t") for row in rows):
        if score != "0":
            relevant.setdefault(query, {})[document] = 1
    return relevant


def test_figures_are_those_of_trec_eval(folder) -> None:
    rankings = {}

    def dense(asked, top_k, budget):
        everything = asked.index.as_retriever(level=0, by="dense", top_k=N, token_budget=10**6)
        found = [each.node.ref_doc_id for each in everything.retrieve(asked.bundle)]
        others = [name for name in found if name != asked.question.id][:10]  # as BEIR has it
        rankings[asked.question.id] = {name: -float(i) for i, name in enumerate(others)}
        return WAYS["dense"](asked, top_k, budget)

    report = evaluate(folder, ways={"dense": dense}, embed_model=HashingEmbedding(), budgets=[50])
    ours = {row.measure: row.mean for row in report.rows if row.budget is None}
    relevant = judged(folder)
    assert rankings.keys() == relevant.keys()
    assert any("outside the corpus, such as 'missing0'" in note for note in report.notes)
    measures = {"hit@1": "success_1", "hit@5": "success_5", "MRR@10": "recip_rank"}
    theirs = pytrec_eval.RelevanceEvaluator(relevant, {"success.1,5", "recip_rank"})
    of_questions = theirs.evaluate(rankings).values()
    for name, measure in measures.items():
        assert ours[name] == round(fmean(each[measure] for each in of_questions), 4)
        assert 0 < ours[name] < 1
