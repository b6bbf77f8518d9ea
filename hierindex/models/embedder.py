"""Embedding models: their protocol, the settings that tell them apart, and an embedder of levels.

An `Embedder` adds a window, a tokenizer and a cache to a model.
"""

import hashlib
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from hierindex.cache import Vectors
from hierindex.core.arguments import Floats2d
from hierindex.errors import InputError, WindowWarning
from hierindex.models.failures import error_of, failure_of, service_errors
from hierindex.models.openvino import (
    OpenVinoEncoder,
    Precision,
    encoder_of,
    n_cores,
    whole_tokenizer,
)
from hierindex.models.record import llm_tokenizer
from hierindex.progress import Progress, silent

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TEXTS_PER_CALL = 128  # texts between progress reports; the model splits them into batches
PER_CORE = 8  # the same of a model on OpenVINO, whose vectors do not depend on batches
# Settings of LlamaIndex's models that do not shape vectors, or are secret.
APART = re.compile(
    "embed_batch_size|num_workers|callback_manager|embeddings_cache|rate_limiter|timeout"
    "|max_retries|show_progress_bar|.*(key|token|secret|password|credentials?|headers?)"
)
DISTINCTIVE = (
    "dim dimensions normalize pooling precision query_instruction text_instruction"
).split()
"""Settings of embedding models that shape vectors."""


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
    from hierindex.models.adapters import FunctionEmbedding, name_of

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
    """Return whether two names may mean the same model, on the hub, in a folder or shortened."""
    both_of_a_hub = all(name.count("/") == 1 and not Path(name).is_dir() for name in (one, other))
    return one == other or (not both_of_a_hub and _last_part(one) == _last_part(other))


def _last_part(name: str) -> str:
    return re.split(r"[/\\]", name.rstrip("/\\"))[-1]


@contextmanager
def named_errors(embed_model: EmbedModel) -> Iterator[None]:
    """Convert errors of an embedding model's service into one sentence with the model's name.

    Raises
    ------
    ModelError
        If the service cannot be used.
    RequestError
        If it fails otherwise.
    """
    try:
        yield
    except service_errors() as error:
        named = error_of(f"The embedding model {embed_model.model_name!r}", failure_of(error))
        raise named from error


class Embedder:
    """An embedding model with a known window, which embeds a whole level at once.

    Parameters
    ----------
    embed_model : EmbedModel or callable
        The window is known for Hugging Face models. For other models, LlamaIndex's global
        tokenizer counts the tokens.
    """

    def __init__(self, embed_model: EmbedLike) -> None:
        self.embed_model: EmbedModel = as_embed_model(embed_model)
        self.name: str = model_name(self.embed_model)

    @cached_property
    def fingerprint(self) -> str | None:
        """See `fingerprint`."""
        return fingerprint(self.embed_model)

    @cached_property
    def window(self) -> int | None:
        """Maximum number of tokens that the model reads, special ones included; None if unknown."""
        window = getattr(self.embed_model, "max_length", None)
        return int(window) if window else None

    @property
    def room(self) -> int:
        """Maximum number of tokens in a text, without special ones; `sys.maxsize` if unknown."""
        return sys.maxsize if self.window is None else self.window - self.n_special_tokens

    @cached_property
    def n_special_tokens(self) -> int:
        """Number of tokens that the model adds to every text, its instruction included."""
        return int(self.count_tokens([""])[0])

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Count the tokens of each text, special ones included, (n_texts,)."""
        inputs = [f"{self._instruction}{text}" for text in texts]
        if self._tokenizer is None:
            n_tokens = [len(tokens) for tokens in map(llm_tokenizer(), inputs)]
        else:
            n_tokens = [len(encoding) for encoding in self._tokenizer.encode_batch_fast(inputs)]
        return np.array(n_tokens, dtype=np.int64)

    def count_text_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Count the tokens of each text without special ones, (n_texts,)."""
        return self.count_tokens(texts) - self.n_special_tokens

    def tokens_of(self, text: str) -> list[int]:
        """Return a text's token ids without special ones, as LlamaIndex's splitters need them."""
        if self._tokenizer is not None:  # splitters call this thousands of times: no batches
            return self._tokenizer.encode(text, add_special_tokens=False).ids
        return llm_tokenizer()(text)

    @cached_property
    def _tokenizer(self) -> "Tokenizer | None":
        """The model's tokenizer without truncation; None if unknown."""
        if self._encoder is not None:
            return self._encoder.tokenizer
        own = getattr(getattr(self._transformer, "tokenizer", None), "backend_tokenizer", None)
        return None if own is None else whole_tokenizer(own.to_str())

    @cached_property
    def _instruction(self) -> str:
        """The prompt that precedes every text."""
        if self._encoder is not None:
            return self._encoder.card.text_prompt
        prompts = getattr(self._transformer, "prompts", None) or {}
        return prompts.get("text") or ""

    @property
    def _encoder(self) -> OpenVinoEncoder | None:
        return encoder_of(self.embed_model)

    @property
    def _transformer(self) -> Any:
        """The model inside a HuggingFaceEmbedding, which has no public name for it."""
        return getattr(self.embed_model, "_model", None)

    def warn_of_summaries(self, max_tokens: int) -> None:
        """Warn if summaries of this length are longer than the window."""
        if max_tokens > self.room:
            warnings.warn(
                f"summary_tokens is {max_tokens}, more than the window of {self.window} tokens "
                f"that {self.name} reads; summaries are limited to {self.room}.",
                WindowWarning,
                stacklevel=2,
            )

    def warn_of_cut(self, n_tokens: NDArray[np.int64]) -> None:
        """Warn if chunks of these lengths are longer than the window."""
        if self.window is not None and (n_over := int((n_tokens > self.window).sum())):
            warnings.warn(
                f"{n_over} of {len(n_tokens)} chunks are longer than the {self.window} tokens "
                f"that {self.name} reads (longest: {int(n_tokens.max())}), and their vectors "
                f"ignore the rest. Use chunks of at most {self.room} of its tokens, as "
                "sentence_splitter(embed_model) makes them.",
                WindowWarning,
                stacklevel=2,
            )

    def embed(
        self,
        texts: Sequence[str],
        *,
        progress: Progress = silent,
        memory: Vectors | None = None,
    ) -> Floats2d:
        """Return unit vectors, (n_texts, n_dims) float32, computed in length-sorted batches.

        Repeated texts are embedded once. Texts in the cache `memory` are not embedded.
        """
        distinct = dict.fromkeys(texts)
        known = {} if memory is None else memory.recall(texts)
        new = sorted((text for text in distinct if text not in known), key=len, reverse=True)
        per_call = TEXTS_PER_CALL if self._encoder is None else PER_CORE * n_cores()
        progress("embed", len(known), len(distinct))
        for start in range(0, len(new), per_call):
            batch = new[start : start + per_call]
            with named_errors(self.embed_model):
                X = unit_vectors(self.embed_model.get_text_embedding_batch(batch))
            known |= dict(zip(batch, X, strict=True))
            if memory is not None:
                memory.keep(batch, X)
            progress("embed", len(known), len(distinct))
        return _matrix([known[text] for text in texts])


Rows = Sequence[Sequence[float] | NDArray[np.floating]] | Floats2d


def _matrix(vectors: Rows) -> Floats2d:
    widths = {len(vector) for vector in vectors}
    if len(widths) > 1:
        raise InputError(f"Embeddings must have the same dimension, got {sorted(widths)}.")
    return np.asarray(vectors, np.float32).reshape(len(vectors), *widths or {0})


def unit_vectors(vectors: Rows) -> Floats2d:
    """Scale vectors to length 1, (n_rows, n_dims) float32.

    Raises
    ------
    InputError
        If the dimensions differ, or a vector is zero or not finite.
    """
    X = _matrix(vectors)
    length = np.linalg.norm(X, axis=1, keepdims=True)
    if len(wrong := np.flatnonzero(~(np.isfinite(length) & (length > 0)))):
        raise InputError(
            "The embedding model must return finite, non-zero vectors, but that of text "
            f"{wrong[0]} has length {length[wrong[0], 0]}."
        )
    return np.asarray(X / length, dtype=np.float32)
