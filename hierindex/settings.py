"""Settings: flags over environment over hierindex.toml over defaults.

Every field can be set as `HIERINDEX_<FIELD>` in the environment, or as `<field> = ...` in a
file hierindex.toml in the working directory. There is none for a key: that is read
from `HIERINDEX_LLM_API_KEY` when a model is made, and kept nowhere.
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
    """What the command line can be told; None leaves the choice to the library."""

    model_config = SettingsConfigDict(
        env_prefix="HIERINDEX_", toml_file=TOML_FILE, extra="forbid", frozen=True
    )

    method: Literal["semantic", "raptor", "document"] = "semantic"
    embed_model: str | None = None
    summarizer: str = "extractive"
    chunk_size: int | None = Field(default=None, ge=16)
    max_levels: int | None = Field(default=None, ge=1)
    seed: int = Field(default=0, ge=0, lt=2**32)
    llm: str | None = None
    llm_base_url: str | None = None
    llm_concurrency: int = Field(default=4, ge=1)
    llm_timeout: float = Field(default=120.0, gt=0)  # seconds of a request
    llm_deadline: float | None = Field(default=None, gt=0)  # seconds of a build
    llm_completion_tokens: int | None = Field(default=None, ge=1)  # of an answer
    llm_record: str | None = None
    max_llm_tokens: int | None = Field(default=None, ge=1)
    prompt: str = "summary"
    min_grounding: float | None = Field(default=None, ge=0, le=1)
    grounding: str = "embedding"
    strict: bool = False
    prompt_price: float | None = Field(default=None, ge=0)  # of a million tokens
    completion_price: float | None = Field(default=None, ge=0)
    mode: Literal["collapsed", "level", "traversal", "document", "auto"] | None = None
    level: int | list[int] | None = None
    by: Literal["dense", "hybrid", "text", "context"] = "dense"
    top_k: int = Field(default=10, ge=1)
    token_budget: int = Field(default=2000, ge=1)
    beam: int | None = Field(default=None, ge=1)
    n_documents: int = Field(default=3, ge=1)
    whole_documents: bool = False
    merge: bool = False
    mmr: float | None = Field(default=None, ge=0, le=1)
    partial_summaries: bool = False
    response_mode: str | None = None
    min_score: float = Field(default=0.75, ge=0, le=1)  # as `ExtractiveSynthesizer` has it

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, environment, file, in this order."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


RIVALS = {"llm": "summarizer", "summarizer": "llm", "mode": "level", "level": "mode"}
"""A flag that is given puts its rival back to its default, whatever environment or file say."""


def load_settings(**flags: Any) -> Settings:
    """Settings with the flags that were given, those that are not None.

    Raises
    ------
    InputError
        If a value is not what its field must be, naming field and value, or the file is no TOML.

    Examples
    --------
    >>> load_settings(method="raptor", seed=None).method
    'raptor'
    """
    given = {name: value for name, value in flags.items() if value is not None}
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
