"""The protocol of embedding models, and the settings that tell models apart."""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeGuard, cast

from numpy.typing import NDArray

from hierindex.errors import InputError
from hierindex.models.openvino import Precision

# Settings of LlamaIndex's models that do not shape vectors, or are secret.
APART = re.compile(
    "embed_batch_size|num_workers|callback_manager|embeddings_cache|rate_limiter|timeout"
    "|max_retries|show_progress_bar|.*(key|token|secret|password|credentials?|headers?)"
)
DISTINCTIVE = (  # settings of embedding models that shape vectors
    "dim",
    "dimensions",
    "normalize",
    "pooling",
    "precision",
    "query_instruction",
    "text_instruction",
)


class EmbedModel(Protocol):
    """An embedding model: one of LlamaIndex's, or an `OpenVinoEncoder`.

    A model may also have a window (`max_length`), a `fingerprint` of its vectors, and the settings
    in `DISTINCTIVE`.
    """

    @property
    def model_name(self) -> str:
        """The model's name, or "unknown"."""
        ...

    def get_query_embedding(self, query: str) -> list[float]:
        """Return the vector of a question."""
        ...

    def get_text_embedding_batch(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of texts."""
        ...


EmbedLike = EmbedModel | Callable[[list[str]], Sequence[Sequence[float]] | NDArray[Any]]
"""An embedding model, or a function that returns the vectors of texts, (n_texts, n_dims)."""


def is_function(given: object) -> TypeGuard[Callable[..., Any]]:
    """Return whether an object is callable and not a class."""
    return callable(given) and not isinstance(given, type)


def as_embed_model(given: EmbedLike) -> EmbedModel:
    """Convert an `embed_model` argument to an embedding model.

    Raises
    ------
    InputError
        If it is neither a model nor a function, or a function without a name.
    """
    if hasattr(given, "get_text_embedding_batch") and not isinstance(given, type):
        return cast(EmbedModel, given)
    if not is_function(given):
        what = "a LlamaIndex embedding model, a function or, in a hierarchy, a model's name"
        raise InputError(f"embed_model must be {what}, got {type(given).__name__}.")
    from hierindex.models.functions import FunctionEmbedding, name_of

    return cast(EmbedModel, FunctionEmbedding(function=given, model_name=name_of(given)))


def model_name(embed_model: EmbedModel) -> str:
    """Return a model's name for `load_embed_model`, or its class if it has no name."""
    if embed_model.model_name == "unknown" and hasattr(embed_model, "class_name"):
        return cast(str, embed_model.class_name())
    return embed_model.model_name


def fingerprint(embed_model: EmbedModel) -> str | None:
    """Return a digest of everything that determines a model's vectors, or None if unknown.

    It is unknown for a model in a folder, because the folder's name does not identify the weights,
    and for a model without a name.
    """
    if hasattr(embed_model, "fingerprint"):
        return cast(str | None, embed_model.fingerprint)
    name = embed_model.model_name
    if name == "unknown" or Path(name).is_dir() or not hasattr(embed_model, "to_dict"):
        return None
    shaping = {k: v for k, v in embed_model.to_dict().items() if not APART.fullmatch(k)}
    try:
        return hashlib.sha256(json.dumps(shaping, sort_keys=True).encode()).hexdigest()
    except TypeError:
        return None


def folder_state(name: str) -> str:
    """Return the files of a model's folder with sizes and times; empty if it is not a folder."""
    files = [(path, path.stat()) for path in (sorted(Path(name).rglob("*")) if name else ())]
    return "".join(f"{path} {stat.st_size} {stat.st_mtime_ns}\n" for path, stat in files)


def identity(embed_model: EmbedModel) -> str:
    """Return the settings that distinguish models of the same name, as JSON; empty if unknown.

    Address, batch size, timeout and key are not included, because they may differ between an index
    and its questions. The precision is included, but may differ too.
    """
    keys = [key for key in DISTINCTIVE if key in vars(embed_model)]
    if embed_model.model_name == "unknown" and not keys:
        return ""
    return json.dumps({key: getattr(embed_model, key) or None for key in keys}, default=str)


def built_precision(settings: str) -> Precision:
    """Return the precision in an `identity`; float32 if the model has no such setting."""
    return "bfloat16" if json.loads(settings or "{}").get("precision") == "bfloat16" else "float32"


def must_agree(settings: str) -> dict[str, Any]:
    """Return the settings of an `identity` that must be equal for vectors to be comparable.

    The precision is not among them: vectors of both precisions have a cosine of at least 0.999.
    """
    return {key: value for key, value in json.loads(settings or "{}").items() if key != "precision"}


def check_same_model(embed_model: EmbedModel, name: str, built_by: str) -> None:
    """Raise InputError if a model's vectors cannot be compared with those of an index.

    Models are compared by name (for folders, the last part of the path) and by the settings that
    both have, since the class may differ from the one that built the index. A model without a name
    is identified by its class.

    Parameters
    ----------
    embed_model : EmbedModel
    name : str
        Name of the model that built the index.
    built_by : str
        Its `identity`.
    """
    if not name:  # the nodes were not built by a hierarchy
        return
    asked = model_name(embed_model)
    built, asks = map(must_agree, (built_by, identity(embed_model)))
    differing = [key for key in built.keys() & asks.keys() if built[key] != asks[key]]
    if not differing and is_same_name(name, asked):
        return
    first, second = (
        ", ".join([repr(each), *(f"{key}={settings[key]!r}" for key in sorted(differing))])
        for each, settings in ((name, built), (asked, asks))
    )
    raise InputError(
        f"The index was built with the embedding model {first}, not with {second}. "
        "Their vectors cannot be compared: use the first, or build the index again."
    )


def is_same_name(one: str, other: str) -> bool:
    """Return whether two names may be of the same model, from a hub, a folder or a short name."""
    both_of_a_hub = all(name.count("/") == 1 and not Path(name).is_dir() for name in (one, other))
    return one == other or (not both_of_a_hub and _last_part(one) == _last_part(other))


def _last_part(name: str) -> str:
    return re.split(r"[/\\]", name.rstrip("/\\"))[-1]
