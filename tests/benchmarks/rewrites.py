"""Summaries of whole documents by a real language model, beside extracts and what people wrote.

12 meetings, 7 reports, and 12 chapters that have a summary by their author: ROUGE-1 and ROUGE-2 (F,
stemmed) of the extract alone, and of its rewrite with unsupported sentences kept, replaced by their
sources, and dropped; with 95% bootstrap intervals over documents. Then what became of all
sentences. Each rewrite is written to READ, with a mark and the reason at each sentence that was not
supported, to be read beside its extract by a person.

Replies are kept in CACHE, so that it can be stopped and gone on with.

Usage: python tests/benchmarks/rewrites.py DATA CACHE READ MODEL URL [N]
(folder of the evaluation data; N documents of each set; see real_model.py)
"""

import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from extractive import GOLD
from measures import rows_of, with_interval
from rouge_score.rouge_scorer import RougeScorer

from hierindex import Grounding, Quote, Span, load_embed_model
from hierindex.cache import Texts, open_cache
from hierindex.models.embedder import Embedder
from hierindex.models.llm import load_llm
from hierindex.summarize import (
    Budget,
    ExtractiveSummarizer,
    LLMRewriter,
    Resources,
    Summary,
    TwoStageSummarizer,
)
from hierindex.text.display import grounding_text
from hierindex.text.sentences import split_sentences

MOST = 12  # documents of a set
TIMEOUT = 1800
SUMMARY_TOKENS = 200
WAYS = ("keep", "extract", "drop")


def documents_of(folder: Path, name: str) -> list[tuple[str, str, list[str]]]:
    """The id, the text and people's summaries of the first documents of a set."""
    text_of = {d["doc_id"]: d["text"] for d in rows_of(folder / name / "documents.jsonl")}
    gold = defaultdict(list)
    for documents, told in GOLD[name](folder / name):
        if len(documents) == 1:
            gold[documents[0]].append(told)
    found = [(d, text_of[d], told) for d, told in gold.items()]
    return [(d, without(text, told), told) for d, text, told in found]


def without(text: str, told: list[str]) -> str:
    for summary in told:
        text = text.replace(summary, "")
    return text


def marked(summary: Summary) -> str:
    """The text, with "[?]" after what no source supports."""
    text, end = [], 0
    for claim in summary.claims:
        sign = "" if claim.excerpts else " [?]"
        text += [summary.text[end : claim.to], sign]
        end = claim.to
    return "".join(text)


def main(data: Path, cache: str, told: Path, model: str, url: str, n: int) -> None:
    warnings.simplefilter("ignore")
    llm = load_llm(model, url, timeout=TIMEOUT).model_copy(update={"temperature": 0.0})
    rewriter = LLMRewriter(llm, concurrency=1, timeout=TIMEOUT)
    embedder = Embedder(load_embed_model())
    budget = Budget(SUMMARY_TOKENS, embedder.count_text_tokens)
    scorer = RougeScorer(["rouge1", "rouge2"], use_stemmer=True)
    lines, total = list[str](), dict.fromkeys(WAYS, Grounding())
    with open_cache(cache) as kept:
        resources = Resources(completions=Texts(kept), embed=embedder.embed)
        for name in ("govreport_mini", "qmsum", "tech_books"):
            scores: dict[str, list[np.ndarray]] = {}
            start = time.monotonic()
            for document, text, gold in documents_of(data, name)[:n]:
                group = split_sentences(text, [Quote(0, len(text), Span(document, 0, len(text)))])
                (extract,) = ExtractiveSummarizer().summarize([group], budget)
                made = {"extract alone": extract}
                for way in WAYS:
                    summarizer = TwoStageSummarizer(rewriter, unsupported=way)
                    (summary,) = summarizer.summarize([group], budget, resources)
                    made[f"rewritten, {way}"] = summary
                    total[way] += summary.grounding or Grounding()
                for way, summary in made.items():
                    found = [
                        [s.fmeasure for s in scorer.score(each, summary.text).values()]
                        for each in gold
                    ]
                    scores.setdefault(way, []).append(np.mean(found, axis=0))
                rewrite = made["rewritten, keep"]
                checked = rewrite.grounding and rewrite.grounding.to_json()
                lines += [f"## {document}", grounding_text(checked), "", marked(rewrite), ""]
                lines += [f"Corrected or replaced: {made['rewritten, extract'].text}", ""]
                told.write_text("\n".join(lines))
            print(f"{name}, {len(scores['extract alone'])}, {time.monotonic() - start:.0f} s")
            for way, of in scores.items():
                print(f"    {way:<20}{'  '.join(map(with_interval, np.array(of).T))}", flush=True)
    for way, grounding in total.items():
        print(f"{way}: {grounding_text(grounding.to_json())}")


if __name__ == "__main__":
    if len(sys.argv) not in (6, 7) or not Path(sys.argv[1]).is_dir():
        sys.exit("Usage: python tests/benchmarks/rewrites.py DATA CACHE READ MODEL URL [N]")
    n = int(sys.argv[6]) if len(sys.argv) == 7 else MOST
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), sys.argv[4], sys.argv[5], n)
