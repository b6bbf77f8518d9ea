"""What a language model answers from the passages that three ways of retrieval give it.

Sets with short answers: questions are asked over all paragraphs of the set, and the model reads
300 or 600 tokens found by dense search of chunks, by RAPTOR's collapsed tree, or by the default.
A question counts if its gold answer stands in the model's, after SQuAD's normalisation. Printed are
the shares, and how much more the default has than the others, with 95% bootstrap intervals over
questions.

Each answer is appended to RESULTS as a line of JSON, and is not asked for again: stop it and go on
later. Half of the questions, every second of those drawn, are read with "second" only.

Usage: python tests/benchmarks/readers.py DATA RESULTS MODEL URL first|second [N [SET ...]]
(folder of the evaluation data; N questions of each set, by default 100; see real_model.py)
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from facts import says, short
from llama_index.core.schema import Document, MetadataMode
from measures import rows_of

from hierindex import HierarchicalIndex, RaptorHierarchy, SemanticHierarchy, load_embed_model
from hierindex.models.adapters import with_retries
from hierindex.models.llm import load_llm

SETS = ("squad", "hotpotqa100", "musique200")
BUDGETS = (300, 600)  # tokens
SEED = 0
TIMEOUT = 900
PROMPT = """\
{context}

Answer the question from the text above, in a few words and without a sentence.

Question: {question}
Answer:"""

Find = Callable[[str, int], str]


def questions_of(folder: Path) -> list[tuple[str, str, tuple[str, ...]]]:
    """The id, the text and the gold of each question with a short answer, in a random order."""
    found = []
    for row in rows_of(folder / "questions.jsonl"):
        gold = row.get("answers") or [row["answer"], *row.get("aliases", ())]
        if answers := short(gold):
            found.append((row["qid"], row["question"], answers))
    return [found[i] for i in np.random.default_rng(SEED).permutation(len(found))]


def documents_of(folder: Path) -> list[Document]:
    """The paragraphs of a set, each a document of its own."""
    documents = []
    for row in rows_of(folder / "documents.jsonl"):
        parts = row.get("paragraphs") or [{"pid": row["doc_id"], "text": row["text"]}]
        documents += [
            Document(text=part["text"], id_=part["pid"], metadata={"title": row["title"]})
            for part in parts
        ]
    return documents


def ways_of(documents: list[Document], folder: Path) -> dict[str, Find]:
    """How each way finds the text within a number of tokens."""
    model = load_embed_model()
    hierarchies = {"default": SemanticHierarchy(model), "raptor": RaptorHierarchy(model)}
    for name, hierarchy in hierarchies.items():
        HierarchicalIndex.build(documents, folder / name, hierarchy=hierarchy)
    default, raptor = (HierarchicalIndex.open(folder / name, model) for name in hierarchies)

    def found(index: HierarchicalIndex, **options: object) -> Find:
        def find(question: str, budget: int) -> str:
            retriever = index.as_retriever(token_budget=budget, **options)
            nodes = retriever.retrieve(question)
            return "\n\n".join(node.get_content(MetadataMode.NONE) for node in nodes)

        return find

    return {
        "dense": found(default, level=0, by="dense"),
        "RAPTOR": found(raptor, mode="collapsed", by="dense"),
        "default": found(default),
    }


def difference(a: np.ndarray, b: np.ndarray) -> str:
    """The mean difference of two paired rows of scores, with its interval."""
    rng = np.random.default_rng(SEED)
    means = [(a - b)[rng.integers(0, len(a), len(a))].mean() for _ in range(2000)]
    low, high = np.quantile(means, [0.025, 0.975])
    return f"{(a - b).mean():+.3f} [{low:+.3f}, {high:+.3f}]"


def main(data: Path, results: Path, model: str, url: str, half: str, *rest: str) -> None:
    n, names = int(rest[0]) if rest else 100, rest[1:] or SETS
    llm = with_retries(
        load_llm(model, url, timeout=TIMEOUT).model_copy(update={"temperature": 0.0})
    )
    earlier = rows_of(results) if results.exists() else []
    known = {tuple(row["key"]): row["answer"] for row in earlier}
    print("| set | tokens | questions | dense | RAPTOR | default | to dense | to RAPTOR |")
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        asked = questions_of(data / name)[half == "second" : 2 * n : 2]
        with TemporaryDirectory() as folder:
            ways = ways_of(documents_of(data / name), Path(folder))
            for budget in BUDGETS:
                right = {way: np.zeros(len(asked)) for way in ways}
                for i, (qid, question, gold) in enumerate(asked):
                    for way, find in ways.items():
                        key = (model, name, qid, way, str(budget))
                        if key not in known:
                            prompt = PROMPT.format(
                                context=find(question, budget), question=question
                            )
                            known[key] = llm.complete(prompt, max_tokens=40).text
                            with results.open("a", encoding="utf-8") as file:
                                file.write(json.dumps({"key": key, "answer": known[key]}) + "\n")
                        right[way][i] = says(known[key], gold)
                shares = " | ".join(f"{of.mean():.2f}" for of in right.values())
                more = " | ".join(
                    difference(right["default"], right[w]) for w in ("dense", "RAPTOR")
                )
                print(f"| {name} | {budget} | {len(asked)} | {shares} | {more} |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 6 or sys.argv[5] not in ("first", "second"):
        sys.exit(
            "Usage: python tests/benchmarks/readers.py DATA RESULTS MODEL URL first|second "
            "[N [SET ...]]"
        )
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
