"""The settings stored in an index: written by a build, compared and used by an update."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hierindex.errors import InputError, without_password
from hierindex.models.adapters import LLMLike, as_llm
from hierindex.models.embedder import APART, EmbedLike, check_same_model, identity
from hierindex.node import Maker
from hierindex.summarize.summarizers import as_summarizer, summarizer_from_dict
from hierindex.tree.hierarchy import (
    DocumentHierarchy,
    Hierarchy,
    RaptorHierarchy,
    SemanticHierarchy,
)

if TYPE_CHECKING:
    from llama_index.core.node_parser import NodeParser

KINDS = {
    kind.class_name(): kind for kind in (SemanticHierarchy, RaptorHierarchy, DocumentHierarchy)
}
BY_METHOD = {kind.method: kind for kind in KINDS.values()}
BESIDE = ("embed_settings", "chunk_size", "splitter", "llm")
"""Stored settings in addition to `Hierarchy.settings`."""

StoredSettings = Mapping[str, Any]


def settings_of(
    hierarchy: Hierarchy, splitter: "NodeParser | None", chunk_size: int | None
) -> dict[str, Any]:
    """Return the settings to store in an index: all that determine its tree, without keys.

    For a language model with an address, the address is stored without user name and password.
    """
    settings = {
        **hierarchy.settings(),
        "embed_settings": identity(hierarchy.embedder.embed_model),
        "chunk_size": chunk_size,
        "splitter": _plain(splitter),
        "llm": _served(hierarchy.summarizer),
    }
    plain: dict[str, Any] = json.loads(json.dumps(settings, default=repr))
    return plain


def settings_in(maker: Maker) -> dict[str, Any]:
    """Return the settings stored in the nodes of an index that a pipeline made."""
    kind = BY_METHOD.get(maker.method)
    return {
        "class_name": kind.class_name() if kind else "",
        "embed_model": maker.embed_model,
        "embed_settings": maker.embed_settings,
        "summarizer": {"name": maker.summarizer},
    }


def hierarchy_of(
    settings: StoredSettings,
    embed_model: EmbedLike | None = None,
    llm: LLMLike | None = None,
    **limits: Any,
) -> Hierarchy:
    """Return the hierarchy that an index was built with.

    Parameters
    ----------
    settings : Mapping
        See `settings_of` and `settings_in`.
    embed_model : BaseEmbedding or callable, optional
        By default loaded by its name; see `Hierarchy.in_precision` for the precision.
    llm : LLM or callable, optional
        The language model that wrote the summaries.
    **limits
        Options of `LLMRewriter` that do not affect its texts, and `strict`.

    Raises
    ------
    InputError
        If the hierarchy cannot be made from its settings, or needs a language model.
    ModelError
        If a model cannot be loaded.
    """
    described = {key: value for key, value in settings.items() if key not in BESIDE}
    name, rules = described["class_name"], described.get("metadata_rules")
    kind = KINDS.get(name)
    if kind is None or rules:
        what = f"metadata rules for {rules}" if kind else name or "no hierarchy"
        raise InputError(f"The index was built with {what}; pass the hierarchy as hierarchy=.")
    summarizer = described.pop("summarizer")
    if "name" in summarizer:  # by a pipeline
        name = summarizer["name"]
        if llm is None and name != "extractive":
            raise InputError(
                f"The summaries of the index were written by {name!r}; pass it as llm=, or the "
                "hierarchy as hierarchy=."
            )
        made = as_summarizer(as_llm(llm))
    else:
        made = summarizer_from_dict(summarizer, llm, **limits)
    return kind.from_dict(described, embed_model=embed_model, summarizer=made)


def check_hierarchy(
    settings: StoredSettings, hierarchy: Hierarchy, *, may_differ: bool = False
) -> None:
    """Raise InputError if a hierarchy is not the one that an index was built with.

    With `may_differ`, only the embedding model has to be the same.
    """
    model = hierarchy.embedder.embed_model
    check_same_model(model, settings["embed_model"], settings.get("embed_settings") or "")
    given = {} if may_differ else settings_of(hierarchy, None, None)
    for key in [key for key in given if key not in ("embed_model", *BESIDE)]:
        was, now = settings.get(key), given[key]
        is_known = was and not (key == "summarizer" and "name" in was)
        if is_known and was != now:
            raise InputError(
                f"The index was built with {key}={was!r}, the hierarchy has {now!r}; leave it out, "
                "or build the index again."
            )


def check_splitter(settings: StoredSettings, splitter: "NodeParser | None") -> None:
    """Raise InputError if a splitter is not the one that an index was built with."""
    was, now = settings.get("splitter"), _plain(splitter)
    if "splitter" in settings and was != now:
        had, has = (each["class_name"] if each else "the default splitter" for each in (was, now))
        raise InputError(
            f"The index was built with {had}, got {has}; pass a splitter of the same class and "
            "settings as splitter=."
        )


def _plain(splitter: "NodeParser | None") -> dict[str, Any] | None:
    """Return the class of a splitter and its settings that are plain values, without keys."""
    if splitter is None:
        return None
    plain = {
        key: value
        for key, value in splitter.to_dict().items()
        if isinstance(value, str | int | float | None) and not APART.fullmatch(key)
    }
    return {**plain, "class_name": splitter.class_name()}


def _served(summarizer: Any) -> dict[str, Any] | None:
    """Return name, address and maximum tokens of a summariser's language model on a server."""
    llm: Any = getattr(getattr(summarizer, "rewriter", None), "llm", summarizer)
    address = getattr(llm, "api_base", None)
    if not isinstance(address, str):
        return None
    url = urlsplit(address)._replace(query="", fragment="").geturl()
    return {
        "name": llm.metadata.model_name,
        "base_url": without_password(url),
        "max_tokens": getattr(llm, "max_tokens", None),
    }
