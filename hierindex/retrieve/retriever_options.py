"""Options of a retriever as users give them, under our names or LlamaIndex's."""

from collections.abc import Mapping
from inspect import signature
from typing import Any

from hierindex.errors import InputError
from hierindex.retrieve.retriever import HierarchyRetriever

KNOWN = signature(HierarchyRetriever).parameters.keys() - {"store", "embed_model"}
OURS = {"similarity_top_k": "top_k", "node_postprocessors": "postprocessors"}


def retriever_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of `HierarchyRetriever` under our names.

    Raises
    ------
    InputError
        If an option is given under both names, or does not exist.

    Examples
    --------
    >>> retriever_options({"similarity_top_k": 3, "level": 0})
    {'top_k': 3, 'level': 0}
    """
    for theirs, name in OURS.items():
        if theirs in options and name in options:
            raise InputError(f"{theirs} and {name} are the same option; pass one of them.")
    given = {OURS.get(name, name): option for name, option in options.items()}
    if given.get("postprocessors", ()) is None:  # LlamaIndex's default
        del given["postprocessors"]
    for name in given.keys() - KNOWN:
        raise InputError(
            f"There is no option {name!r}; the retriever's are {', '.join(sorted(KNOWN))}, and "
            "those of response modes go into synthesizer={...}."
        )
    return given
