"""Mode "auto": an outline for a question about the whole, chunks for any other."""

import asyncio
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import NodeWithScore

from hierindex.embed.embedder import unit_vectors
from hierindex.embed.failures import named_errors
from hierindex.retrieve.known_questions import THRESHOLD, about_the_whole
from hierindex.retrieve.question import Search


class Choice(NamedTuple):
    """Whether an outline answers a question, or else chunks, and the reason."""

    outline: bool
    why: str


async def choose(search: Search, model: BaseEmbedding) -> Choice:
    """Choose by the similarity of a question to questions about the whole.

    Parameters
    ----------
    search : Search
    model : BaseEmbedding
        The model of the question's vector.
    """
    question = np.asarray(unit_vectors([search.embedding])[0], dtype=np.float64)
    with named_errors(model):
        is_whole, score = await asyncio.to_thread(about_the_whole, question, model)
    if math.isnan(score):
        said = "the embedding model does not tell questions about the whole from others"
        return Choice(False, f"level 0 by {search.by}: {said}")
    said = f"the question scores {score:.2f} as one about the whole"
    if is_whole:
        return Choice(True, f"all levels for an outline: {said}, at least {THRESHOLD}")
    return Choice(False, f"level 0 by {search.by}: {said}, below {THRESHOLD}")


def why_and_shares(
    found: Sequence[NodeWithScore], choice: Choice | None
) -> tuple[str | None, dict[str, float]]:
    """Return the reason of "auto", and the shares of the nodes of an outline, by id."""
    outlined = found if choice and choice.outline else ()
    return choice and choice.why, {node.node_id: node.get_score() for node in outlined}
