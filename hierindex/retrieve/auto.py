"""The choice of an outline for a question about the whole, and of documents that it names."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from hierindex.models.embedder import named_errors
from hierindex.models.model import EmbedModel
from hierindex.node import Found
from hierindex.retrieve.known_questions import about_the_whole
from hierindex.retrieve.levels import Level, cut_of
from hierindex.retrieve.listing import asked_of
from hierindex.retrieve.named import named
from hierindex.retrieve.outline import outline
from hierindex.retrieve.question import Search, of_documents
from hierindex.store.filters import Filters, Part

PARTS = 20  # of an overview
READS = "the question reads like one about the whole"


class Choice(NamedTuple):
    """Whether to answer from an outline or from chunks, and why.

    `documents` are the ids of those that the outline or the chunks are of; None for all. It is
    empty if there are none of them.
    """

    outline: bool = False
    why: str | None = None
    documents: tuple[str, ...] | None = None


def choose(search: Search, model: EmbedModel, levels: Sequence[Level] = ()) -> Choice:
    """Choose by the similarity of a question to questions about the whole.

    A question that names documents, and that is about the whole with "it" in place of their
    names, is answered by an outline of these documents. If it names files instead that are no
    documents, the outline is empty. A question that asks which documents have some words is
    answered from chunks.

    Parameters
    ----------
    search : Search
    model : EmbedModel
        The model of the question's vector.
    levels : sequence of int or str
        Of an outline; by default all.
    """
    where = f"level {', '.join(map(str, levels))}" if levels else "all levels"
    documents, rest, unknown, files = named(search.question, search.snapshot)
    if documents:
        with named_errors(model):
            vector = model.get_query_embedding(rest)
        if about_the_whole(rest, vector, model).decided:
            said = f"an outline of {', '.join(documents)}, which the question names"
            return Choice(True, f"{where} for {said}: {READS}", documents)
    is_whole, score = about_the_whole(search.question, search.embedding, model)
    is_whole = is_whole and not asked_of(search.question).for_documents
    if is_whole and unknown and not documents:
        return Choice(True, f"{where} for an outline of {', '.join(unknown)}: no such document", ())
    if is_whole:
        return Choice(True, f"{where} for an outline: {READS}")
    said = READS.replace("reads", "does not read")
    if math.isnan(score):
        said = "the embedding model does not tell questions about the whole from others"
    of = f" of {', '.join(files)}, which the question names," if files else ""
    return Choice(False, f"the chunks{of} by {search.by}: {said}", files or None)


def narrowed(search: Search, choice: Choice, *, others: bool) -> tuple[Search, Choice]:
    """Restrict a search to the documents of a choice, or to others, and say so."""
    documents = choice.documents or ()
    part: Part = of_documents(documents)
    if others:
        part = Filters((part,), "not")
        of = f"{', '.join(documents)}{' that passes the filters' if search.filters else ''}"
        choice = Choice(False, f"the chunks of other documents: Nothing in {of} answers this")
    return replace(search, filters=search.filters_within(part)), choice


def outlined(
    search: Search, choice: Choice, levels: Sequence[Level], budget: int, most: int | None
) -> list[Found]:
    """Return the outline that was chosen, the largest share first.

    It has nodes of the levels, if there are any that stand on the documents of the choice alone.

    Raises
    ------
    LevelError
        If the tree lacks one of the levels.
    """
    parts = partial(outline, search, budget, of=choice.documents, question=False, whole=True)
    made = partial(parts, most=PARTS if most is None else most)
    found = made(at=cut_of(search.snapshot, levels) if levels else None)
    if not found and choice.documents:
        found = made()
    return sorted(found, key=attrgetter("score"), reverse=True)
