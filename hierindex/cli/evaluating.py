"""The `evaluate` command."""

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import hierindex
from hierindex.cli import options
from hierindex.cli.options import argument, option
from hierindex.cli.output import print_result, terminal_width
from hierindex.errors import InputError

if TYPE_CHECKING:
    from hierindex.settings import Settings

Data = Annotated[
    list[Path],
    argument("DATA", "Folders with documents.jsonl and questions.jsonl."),
]


@options.with_settings("embed_model precision chunk_size")
def evaluate(
    data: Data,
    *,
    ways: Annotated[
        str | None,
        option(
            "WAY,...",
            "Retrieval methods: auto, dense, text, hybrid, collapsed, level-1, level-2 ...; "
            "all by default. Also answer, which asks each question and measures the answer.",
        ),
    ] = None,
    budgets: Annotated[str, option("N,...", "Token budgets of the retrieved text.")] = "500,2000",
    against: Annotated[
        str | None,
        option(
            "WAY", "Baseline of the comparison; by default dense, or the first if that is missing."
        ),
    ] = None,
    limit: Annotated[
        int | None, option("N", "Maximum number of questions per DATA; by default all.", min=1)
    ] = None,
    index: Annotated[
        Path | None,
        option("DIR", "Folder to keep and reuse the indices; by default they are temporary."),
    ] = None,
    settings: "Settings",
    as_json: options.AsJson = False,
) -> None:
    """Compare retrieval methods on questions whose answers are known.

    Each line of documents.jsonl is a JSON object with doc_id and text. Each
    line of questions.jsonl has qid, doc_id, question and the expected answer:
    start and end (character offsets), evidence (passages, word for word),
    gold_titles (ids of documents) or answer (a text, word for word). By
    default, a question with evidence searches only its own document, any
    other question all documents; the field within names another document
    to search.

    A BEIR folder is read as well. Judgements of documents that the corpus
    lacks count as not found, and a document with the id of a query does not
    count as its result.

    With --ways answer, coverage and documents measure the citations, answer
    measures the text, words is its length, and refused is the share of
    refusals. Questions without an expected answer are asked, too: they should
    be refused.
    """
    if not all(budget.strip().isdecimal() for budget in budgets.split(",")):
        raise InputError(f"--budgets takes numbers such as 500,2000, got {budgets!r}.")
    from hierindex.cli.progress import ShownProgress
    from hierindex.evaluate.measures import table
    from hierindex.models.load import DEFAULT_EMBED_MODEL

    model = settings.embed_model or DEFAULT_EMBED_MODEL
    with closing(ShownProgress(model)) as progress:
        report = hierindex.evaluate.evaluate(
            data,
            ways=None if ways is None else [way.strip() for way in ways.split(",")],
            budgets=[int(budget) for budget in budgets.split(",")],
            against=against,
            limit=limit,
            index=index,
            embed_model=hierindex.load_embed_model(model, precision=settings.precision),
            chunk_size=settings.chunk_size,
            progress=progress,
        )
    print_result(report.to_json(), as_json, partial(table, width=terminal_width()))
