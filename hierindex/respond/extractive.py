"""Answers without a language model, made of cited passages of the retrieved nodes."""

from dataclasses import replace

from hierindex.core.arguments import is_number, is_whole, require
from hierindex.models.embedder import Embedder
from hierindex.models.model import EmbedLike
from hierindex.models.record import Usage
from hierindex.progress import Stopwatch
from hierindex.respond.answer import Answer, listing_said, seconds_of, sources_of
from hierindex.respond.evidence import scores
from hierindex.respond.passages import extract
from hierindex.respond.quotable import Extract
from hierindex.retrieve.listing import asked_of
from hierindex.retrieve.named import named, unknown_names
from hierindex.retrieve.question import in_reading_order
from hierindex.retrieve.retrieval import Retrieval, Retrieved
from hierindex.settings import AnswerSettings
from hierindex.summarize.summary import Budget

ANSWER_TOKENS = 500
MIN_SCORE = AnswerSettings.min_score  # chosen by tests/benchmarks/refusals.py


class Extractive:
    """Answers questions by passages; see `ExtractiveSynthesizer` for the arguments and errors."""

    def __init__(
        self,
        embed_model: EmbedLike,
        *,
        answer_tokens: int = ANSWER_TOKENS,
        min_score: float | None = MIN_SCORE,
    ) -> None:
        valid = is_whole(answer_tokens, 1)
        require(valid, "answer_tokens", "an integer of at least 1", answer_tokens)
        within = min_score is None or (is_number(min_score) and 0 <= min_score <= 1)
        require(within, "min_score", "a number in [0, 1]", min_score)
        self.embedder: Embedder = Embedder(embed_model)
        self._budget = Budget(answer_tokens, self.embedder.count_text_tokens)
        self._min_score = min_score or 0.0

    def extracted(self, retrieved: Retrieved) -> Extract:
        """Return the passages that answer a question, or none if their score is too low."""
        found = extract(retrieved, self.embedder, self._budget)
        refused = not found.passages or found.score < self._min_score
        return replace(found, passages=[], refused=True) if refused else found

    def answer(self, retrieval: Retrieval, question: str) -> Answer:
        """Retrieve nodes for a question and answer it from them, in reading order.

        A question for the documents that contain some words is answered by passages with these
        words.
        """
        watch, words = Stopwatch(), asked_of(question)
        with watch("embed"):
            asked = retrieval.embedded(" ".join(words.words) if words.for_documents else question)
        with watch("search"):
            retrieved = retrieval.find(asked)
            known = scores(retrieved, self.embedder.embed_model)
        with watch("respond"):
            order = in_reading_order(retrieved.found)
            read = replace(retrieved, found=[retrieved.found[i] for i in order])
            extracted = self.extracted(read)
            as_asked = replace(retrieved, question=asked._replace(text=question))
            listing = retrieval.listing(as_asked)
            text = extracted.answer(no_answer(retrieval, question))
        passages, snapshot = extracted.passages, retrieved.snapshot
        return Answer(
            answer=f"{text}{listing_said(listing, extracted.refused)}",
            answer_kind="extractive",
            citations=[passage.citation for passage in passages],
            sources=sources_of(retrieved, known),
            usage=Usage(),
            seconds=seconds_of(watch),
            why=retrieved.why if retrieved.found else None,
            score=extracted.score,
            best=extracted.best or None,
            refused=extracted.refused,
            missing=[w for w in extracted.missing if listing is None or w not in listing.words],
            unknown=unknown_names(question, snapshot) if extracted.refused and snapshot else {},
            listing=listing,
            passages=passages,
        )


def no_answer(retrieval: Retrieval | None = None, question: str = "") -> str:
    """Return a sentence saying that nothing in the searched part of the index answers.

    >>> no_answer()
    'Nothing in the index answers this.'
    """
    where = "in the index"
    if retrieval is None:
        return f"Nothing {where} answers this."
    if retrieval.levels:
        where = f"at level {' or '.join(map(repr, retrieval.levels))}"
    elif retrieval.mode == "auto" and (files := named(question, retrieval.store.snapshot()).files):
        where = f"in {', '.join(files)}"
    return f"Nothing {where}{' that passes the filters' if retrieval.filters else ''} answers this."


NO_ANSWER = no_answer()
