"""How much of what was found is read."""

import sys
from collections.abc import Sequence

from llama_index.core.schema import MetadataMode, NodeWithScore
from llama_index.core.utils import get_tokenizer

from hierindex.errors import InputError


def within_budget(found: Sequence[NodeWithScore], token_budget: int | None) -> list[NodeWithScore]:
    """The best nodes whose tokens together stay within the budget.

    Filled best first; a node that does not fit is passed over. Tokens are those of
    LlamaIndex's global tokenizer, of the text as a language model is shown it.

    Raises
    ------
    InputError
        If nodes were found and none fits.
    """
    if token_budget is None:
        return list(found)
    count, left, least, kept = get_tokenizer(), token_budget, sys.maxsize, []
    for node in found:
        n_tokens = len(count(node.node.get_content(MetadataMode.LLM)))
        if n_tokens <= left:
            kept.append(node)
            left -= n_tokens
        least = min(least, n_tokens)
    if found and not kept:
        raise InputError(f"token_budget must be at least {least} here, got {token_budget}.")
    return kept
