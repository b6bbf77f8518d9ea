"""Whether the check of citations tells the passages that hold an answer from others.

Short answers that people gave to questions on a paragraph, each as the answer of a language model
that cites this paragraph, another one of its article, or one of another article. Prints the share
of citations that the check finds supported, of answers with fewer than four words, which are held
against the passage together with the question, and of longer ones; and the time of a check.

Usage: python tests/benchmarks/citations.py FOLDER   (of the evaluation data)
"""

import json
import random
import sys
from itertools import groupby
from pathlib import Path
from statistics import mean, median
from time import perf_counter

from llama_index.core.base.response.schema import Response
from llama_index.core.schema import NodeWithScore, TextNode

from hierindex import load_embed_model
from hierindex.respond.cited import CitationCheck
from hierindex.respond.numbered import Passages
from hierindex.summarize.sentences import is_telling

N_QUESTIONS = 300
CITED = "own", "same article", "other article"


def main(folder: Path) -> None:
    check, rng = CitationCheck(load_embed_model()), random.Random(0)
    lines = (folder / "squad" / "documents.jsonl").read_text().splitlines()
    articles = {d["doc_id"]: d["paragraphs"] for d in map(json.loads, lines)}
    text_of = {p["pid"]: p["text"] for paragraphs in articles.values() for p in paragraphs}
    lines = (folder / "squad" / "questions.jsonl").read_text().splitlines()
    questions = [q for q in map(json.loads, lines) if q["answers"]]
    told, seconds = [], []
    for asked in rng.sample(questions, N_QUESTIONS):
        own = asked["pid"]
        beside = [p["pid"] for p in articles[asked["doc_id"]] if p["pid"] != own]
        far = [pid for pid in text_of if pid != own and pid not in beside]
        cited = [own, rng.choice(beside), rng.choice(far)]
        nodes = [NodeWithScore(node=TextNode(id_=pid, text=text_of[pid])) for pid in cited]
        passages, (answer, *_) = Passages(nodes), asked["answers"]
        response = Response(answer + "".join(f" [{number}]" for number in passages.by_number))
        start = perf_counter()
        check.add_to(response, passages, asked["question"])
        seconds.append(perf_counter() - start)
        supported = [entry["supported"] for entry in (response.metadata or {})["citations"]]
        told.append((is_telling(answer), supported))
    print(f"{'':<16}{'answers':>16}" + "".join(f"{which:>16}" for which in CITED))
    for is_long, group in groupby(sorted(told), key=lambda each: each[0]):
        rows = [supported for _, supported in group]
        shares = "".join(f"{mean(column):>16.1%}" for column in zip(*rows, strict=True))
        print(f"{'long' if is_long else 'short':<16}{len(rows):>16}{shares}")
    print(f"A check of three citations takes {1000 * median(seconds):.0f} ms (median).")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("Usage: python tests/benchmarks/citations.py FOLDER")
    main(Path(sys.argv[1]))
