"""Which errors in summaries are noticed, and how many true sentences are accused.

True sentences are those of summaries and answers that people wrote: of stories, chapters and
reports, judged by the whole text, and about meetings, judged by the part that the answer is about.
Into each, errors are planted: another number, a name of another text or of the same, a negation
more or less, two names exchanged; and whole sentences about another text stand in for it. At most
200 of each are drawn.

Printed are the share that is noticed of each kind, and what `judged` says of the true ones. Texts
are divided in two halves: what is tuned on the first is read once of the second.

Usage: python tests/benchmarks/grounding.py FOLDER first|second   (of the evaluation data)
"""

import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from extractive import GOLD
from measures import rows_of

from hierindex import load_embed_model
from hierindex.models.embedder import Embedder
from hierindex.summarize.facts import NUMBER, names_in
from hierindex.summarize.grounding import judged
from hierindex.text.sentences import split_sentences

MOST, SEED = 200, 5
HALVES = ("first", "second")
LONG = 60  # words
VERB = re.compile(
    r"\b(?:is|are|was|were|will|would|can|could|should|has|have|had|does|did|must|may)\b(?! not)"
)
NOT = re.compile(r"\bnot |n['\u2019]t\b")


class Told(NamedTuple):
    """A sentence about a text: its document, and the text."""

    sentence: str
    document: str
    text: str


def sentences(text: str) -> list[str]:
    return [s.text for s in split_sentences(text) if 6 <= len(s.text.split()) <= LONG]


def told(folder: Path, half: int) -> list[Told]:
    """The sentences of the summaries of every second document."""
    found = list[Told]()
    for name in ("govreport_mini", "tech_books"):
        text_of = {d["doc_id"]: d["text"] for d in rows_of(folder / name / "documents.jsonl")}
        for documents, summary in GOLD[name](folder / name):
            text = "\n\n".join(text_of[d] for d in documents).replace(summary, "")
            found += (Told(s, documents[0], text) for s in sentences(summary))
    text_of = {d["doc_id"]: d["text"] for d in rows_of(folder / "squality" / "documents.jsonl")}
    for story in rows_of(folder / "squality" / "summaries.jsonl"):
        for summary in story["summaries"]:
            key = story["doc_id"]
            found += (Told(s, key, text_of[key]) for s in sentences(summary))
    meetings = {d["doc_id"]: d for d in rows_of(folder / "qmsum" / "documents.jsonl")}
    for question in rows_of(folder / "qmsum" / "questions.jsonl"):
        if question["kind"] == "specific":
            meeting = meetings[question["doc_id"]]
            starts = [*(at for at, *_ in meeting["turn_offsets"]), len(meeting["text"])]
            parts = (meeting["text"][starts[a] : starts[b + 1]] for a, b in question["spans"])
            text = "\n".join(parts)
            found += (Told(s, meeting["doc_id"], text) for s in sentences(question["answer"]))
    chosen = {*sorted({each.document for each in found})[half::2]}
    return [each for each in found if each.document in chosen]


def planted(true: Told, every: list[Told], rng: random.Random) -> Iterator[tuple[str, Told]]:
    """Yield the sentence with an error of each kind that it has room for."""
    said = true.sentence
    for match in list(NUMBER.finditer(said))[:1]:
        at, to = match.span(1)
        value = int(re.sub(r"\D", "", match[1]))
        kind = "year" if len(match[1]) == 4 else "number"
        yield kind, _with(true, at, to, str(value + rng.choice((1, 2, 3, 5, 10))))
    names = [n for n in dict.fromkeys(names_in(said)) if re.search(rf"\b{re.escape(n)}\b", said)]
    for name in names[:1]:
        span = re.search(rf"\b{re.escape(name)}\b", said).span()
        foreign = [*names_in(rng.choice(every).sentence)]
        if foreign and foreign[0] not in true.text:
            yield "name", _with(true, *span, foreign[0])
        own = [n for s in sentences(true.text) for n in names_in(s) if n not in said]
        if own:
            yield "name of the text", _with(true, *span, rng.choice(own))
    if len(names) > 1:
        pair = dict(zip(names[:2], names[1::-1], strict=True))
        swapped = re.sub(rf"\b(?:{'|'.join(map(re.escape, pair))})\b", lambda m: pair[m[0]], said)
        yield "names exchanged", true._replace(sentence=swapped)
    if match := NOT.search(said):
        yield "negation", _with(true, *match.span(), "")
    elif match := VERB.search(said):
        yield "negation", _with(true, match.end(), match.end(), " not")
    other = rng.choice([each for each in every if each.document != true.document])
    yield "another text", true._replace(sentence=other.sentence)


def _with(true: Told, at: int, to: int, text: str) -> Told:
    return true._replace(sentence=true.sentence[:at] + text + true.sentence[to:])


def main(folder: Path, half: int) -> None:
    rng, embedder = random.Random(SEED), Embedder(load_embed_model())
    every = told(folder, half)
    rng.shuffle(every)
    errors = defaultdict[str, list[Told]](list)
    for true in every:
        for kind, wrong in planted(true, every, rng):
            if len(errors[kind]) < MOST and wrong.sentence != true.sentence:
                errors[kind].append(wrong)
    kinds = {"true": every[:MOST], **errors}
    verdicts = judgements([each for of in kinds.values() for each in of], embedder)
    faults = {kind: [verdicts[each] for each in of] for kind, of in kinds.items()}
    false = np.mean([bool(fault) for fault in faults["true"]])
    print(f"{false:.3f} of {len(faults['true'])} true sentences are accused:")
    for why, n in Counter(fault.partition(":")[0] for fault in faults["true"] if fault).items():
        print(f"    {n} {why}")
    print("\n| error | sentences | noticed |\n|---|---|---|")
    for kind in errors:
        noticed = np.mean([bool(fault) for fault in faults[kind]])
        print(f"| {kind} | {len(faults[kind])} | {noticed:.2f} |")


def judgements(told: list[Told], embedder: Embedder) -> dict[Told, str]:
    """The fault of each sentence; those about one text are judged together."""
    about = defaultdict[str, list[Told]](list)
    for each in told:
        about[each.text].append(each)
    pairs = [
        ([each.sentence for each in of], [*dict.fromkeys(s.text for s in split_sentences(text))])
        for text, of in about.items()
    ]
    found = judged(pairs, embedder.embed)
    judgements = zip(about.values(), found, strict=True)
    return {e: v.fault for of, vs in judgements for e, v in zip(of, vs, strict=True)}


if __name__ == "__main__":
    if len(sys.argv) != 3 or not Path(sys.argv[1]).is_dir() or sys.argv[2] not in HALVES:
        sys.exit("Usage: python tests/benchmarks/grounding.py FOLDER first|second")
    main(Path(sys.argv[1]), HALVES.index(sys.argv[2]))
