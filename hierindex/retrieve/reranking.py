"""Reranking of nodes by a cross-encoder."""

import asyncio
from collections.abc import Sequence

import numpy as np
from llama_index.core.schema import MetadataMode, NodeWithScore

from hierindex.core.arguments import require
from hierindex.core.membership import Floats1d
from hierindex.core.ranking import blended
from hierindex.embed.openvino import Reranker
from hierindex.errors import InputError
from hierindex.retrieve.levels import Level

CANDIDATES = 25  # at least; a cross-encoder reads each together with the question
SHARE = 0.5  # of the cross-encoder's score; not tuned


async def reranked(
    found: Sequence[NodeWithScore], question: str, reranker: Reranker
) -> list[NodeWithScore]:
    """Order nodes by the mean of a cross-encoder's scores and their own, both standardised.

    The cross-encoder reads the text that was embedded. Returned scores are standard deviations
    from the mean.

    Raises
    ------
    InputError
        If the reranker does not return one finite number per text.
    """
    if not found:
        return []
    texts = [node.get_content(MetadataMode.EMBED) for node in found]
    distinct = list(dict.fromkeys(texts))
    scores = _checked(await asyncio.to_thread(reranker.rank, question, distinct), len(distinct))
    score_of = dict(zip(distinct, scores, strict=True))
    mixed = blended(
        np.array([score_of[text] for text in texts]),
        np.array([node.get_score() for node in found]),
        SHARE,
    )
    return [
        NodeWithScore(node=found[i].node, score=float(mixed[i]))
        for i in np.argsort(-mixed, kind="stable")
    ]


def check_rerank(rerank: object, mode: str, levels: Sequence[Level], whole: bool) -> None:
    """Raise InputError if an option is not a reranker, or cannot be combined with others."""
    model = isinstance(rerank, str) or callable(getattr(rerank, "rank", None))
    require(model, "rerank", "a model's name or an object with rank(question, texts)", rerank)
    if mode == "collapsed" or any(levels):
        given = f"mode={mode!r}" if mode == "collapsed" else f"level {levels[-1]}"
        raise InputError(f"rerank scores chunks only, got {given}; use level=0, or omit rerank.")
    if whole:
        raise InputError("rerank cannot be combined with whole_documents; omit one of them.")


def _checked(scores: Sequence[float], n: int) -> Floats1d:
    try:
        x = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        x = np.zeros(0)
    if x.shape != (n,) or not np.isfinite(x).all():
        raise InputError(
            f"rerank must return a finite number for each of {n} texts, got {scores!r:.100}."
        )
    return x
