"""Settings of the command line.

Every field can be set by a flag, by `HIERINDEX_<FIELD>` in the environment or by `<field> = ...`
in hierindex.toml in the working directory, in this order of precedence. API keys are no settings:
`HIERINDEX_LLM_API_KEY` is read when a model is loaded, and is not stored.
"""

from typing import Any, Literal

from pydantic import Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from hierindex.errors import InputError

TOML_FILE = "hierindex.toml"


class Settings(BaseSettings):
    """Settings of the command line; None means the default of the library.

    The docstring of a field is the help of its flag.
    """

    model_config = SettingsConfigDict(
        env_prefix="HIERINDEX_",
        toml_file=TOML_FILE,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
    )

    method: Literal["semantic", "raptor", "document"] = "semantic"
    """How chunks are grouped; semantic by default."""
    embed_model: str | None = None
    """Name or folder of a sentence-transformers model."""
    summarizer: str = "extractive"
    """extractive (the default), or a seq2seq model's name or folder."""
    chunk_size: int | None = Field(default=None, ge=16)
    """Maximum tokens of a chunk."""
    max_levels: int | None = Field(default=None, ge=1)
    """Maximum levels above the chunks."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Random seed."""
    llm: str | None = None
    """Model of an OpenAI-compatible server."""
    llm_base_url: str | None = None
    """URL of the server; HIERINDEX_LLM_API_KEY sets its key."""
    llm_concurrency: int = Field(default=4, ge=1)
    """Maximum number of concurrent requests."""
    llm_timeout: float = Field(default=120.0, gt=0)
    """Timeout of a request in seconds."""
    llm_deadline: float | None = Field(default=None, gt=0)
    """Time limit of the build in seconds."""
    llm_completion_tokens: int | None = Field(default=None, ge=1)
    """Maximum tokens of an answer, reasoning included."""
    llm_record: str | None = None
    """File to append prompts and answers to."""
    max_llm_tokens: int | None = Field(default=None, ge=1)
    """Token limit of the build."""
    prompt: str = "summary"
    """summary, questions, or a prompt file."""
    min_grounding: float | None = Field(default=None, ge=0, le=1)
    """Minimum share of a summary that its sources support, 0 to 1."""
    grounding: str = "embedding"
    """embedding (the default), none, or an NLI model."""
    strict: bool = False
    """Fail if a summary cannot be written."""
    prompt_price: float | None = Field(default=None, ge=0)
    """With --dry-run: per million tokens."""
    completion_price: float | None = Field(default=None, ge=0)
    """With --dry-run: per million tokens."""
    mode: Literal["collapsed", "level", "traversal", "document", "auto"] | None = None
    """collapsed (all levels), level, traversal (from the roots down), document (documents by
    their summaries, then their chunks) or auto (levels chosen for the question)."""
    level: int | list[int] | None = None
    """Level to search, 0 for chunks; may be repeated."""
    by: Literal["dense", "hybrid", "text", "context"] = "dense"
    """dense (embeddings, the default), text (BM25), hybrid (both) or context (both, and the
    neighbours in reading order)."""
    top_k: int = Field(default=10, ge=1)
    """Maximum number of nodes."""
    token_budget: int = Field(default=2000, ge=1)
    """Maximum tokens of all nodes together."""
    beam: int | None = Field(default=None, ge=1)
    """Nodes that a traversal keeps at each step."""
    n_documents: int = Field(default=3, ge=1)
    """Number of documents in mode document."""
    whole_documents: bool = False
    """In mode document: whole documents."""
    merge: bool = False
    """Replace children by a parent if over half are found."""
    mmr: float | None = Field(default=None, ge=0, le=1)
    """Rerank from 1 (by similarity) to 0 (by diversity)."""
    partial_summaries: bool = False
    """With --where, include summaries with only some matching chunks."""
    response_mode: str | None = None
    """extractive, or a mode of LlamaIndex."""
    min_score: float = Field(default=0.75, ge=0, le=1)  # as in `ExtractiveSynthesizer`
    """Minimum score of an extractive answer, 0 (never refuse) to 1."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources in order of precedence: flags, environment, file."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


RIVALS = {"llm": "summarizer", "summarizer": "llm", "mode": "level", "level": "mode"}
"""A flag resets its rival to the default, even if the environment or the file sets it."""


def load_settings(**flags: Any) -> Settings:
    """Load the settings; flags that are None or an empty list count as not given.

    Raises
    ------
    InputError
        If a value is invalid, or the file cannot be read as TOML.

    Examples
    --------
    >>> load_settings(method="raptor", seed=None).method
    'raptor'
    """
    given = {name: value for name, value in flags.items() if value not in (None, [])}
    defaults = {
        rival: Settings.model_fields[rival].default
        for flag, rival in RIVALS.items()
        if flag in given and rival not in given
    }
    try:
        return Settings(**defaults, **given)
    except ValidationError as error:
        raise InputError.of_field(error) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{TOML_FILE} cannot be read: {error}.") from None
