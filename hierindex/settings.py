"""Settings of the command line.

Every field can be set by a flag, by `HIERINDEX_<FIELD>` in the environment or by `<field> = ...`
in hierindex.toml in the working directory, in this order of precedence. API keys are no settings:
`HIERINDEX_LLM_API_KEY` is read when a model is loaded, and is not stored.
"""

import json
import os
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from hierindex.errors import InputError, nearest, shown

TOML_FILE = "hierindex.toml"
PREFIX = "HIERINDEX_"
OTHER_VARIABLES = ("LLM_API_KEY",)
"""Variables that are no settings, without their prefix."""

Text = Annotated[str, Field(min_length=1)]
Level = int | Literal["top", "documents", "sections", "chunks"]


class Retrieval(BaseModel):
    """Settings of a search for nodes; None means the default of the library."""

    mode: Literal["auto", "collapsed", "level", "traversal", "document"] | None = None
    level: Level | list[Level] | None = None
    by: Literal["dense", "hybrid", "text", "context"] | None = None
    top_k: int | None = Field(default=None, ge=1)
    token_budget: int = Field(default=2000, ge=1)
    beam: int | None = Field(default=None, ge=1)
    n_documents: int | None = Field(default=None, ge=1)
    whole_documents: bool = False
    partial_summaries: bool = False

    @field_validator("level", mode="wrap")
    @classmethod
    def _name_all_levels(cls, level: Any, read: Callable[[Any], Any]) -> Any:
        is_list = isinstance(level, str) and level.startswith("[")  # of a variable, as JSON
        try:
            return read(json.loads(level) if is_list else level)
        except ValueError:
            words = "top, documents, sections or chunks"
            raise ValueError(f"it must be a whole number, {words}, got {shown(level)}.") from None


class Settings(Retrieval):
    """Settings of the command line; None means the default of the library."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    method: Literal["semantic", "raptor", "document"] = "semantic"
    embed_model: Text | None = None
    precision: Literal["bfloat16", "float32"] = "bfloat16"
    summarizer: Text = "extractive"
    chunk_size: int | None = Field(default=None, ge=16)
    max_levels: int | None = Field(default=None, ge=1)
    seed: int = Field(default=0, ge=0, lt=2**32)
    llm: Text | None = None
    llm_base_url: Text | None = None
    llm_concurrency: int = Field(default=4, ge=1)
    llm_timeout: float = Field(default=120.0, gt=0)  # seconds per request
    llm_deadline: float | None = Field(default=None, gt=0)  # seconds per build
    llm_completion_tokens: int | None = Field(default=None, ge=1)  # per answer
    llm_record: Text | None = None
    max_llm_tokens: int | None = Field(default=None, ge=1)
    prompt: Text = "summary"
    unsupported: Literal["extract", "drop", "keep", "fail"] = "extract"
    strict: bool = False
    prompt_price: float | None = Field(default=None, ge=0)  # per million tokens
    completion_price: float | None = Field(default=None, ge=0)
    rerank: Text | None = None
    response_mode: Text | None = None
    min_score: float = Field(default=0.4, ge=0, le=1)  # as in `ExtractiveSynthesizer`

    @field_validator("llm_base_url")
    @classmethod
    def _check_address(cls, url: str | None) -> str | None:
        if url is not None and not _is_address(url):
            given = shown(url.rpartition("@")[2])  # without user name and password
            raise ValueError(f"it must be a URL such as http://localhost:8000/v1, got {given}.")
        return url


RIVALS = {"llm": "summarizer", "summarizer": "llm", "mode": "level", "level": "mode"}
"""A flag resets its rival to the default, even if the environment or the file sets it."""

MODE_OF = {"beam": "traversal", "n_documents": "document", "whole_documents": "document"}
"""Settings of a single mode, which the environment and the file set for this mode alone."""


def load_settings(named: Callable[[str], str] = str, /, **flags: Any) -> Settings:
    """Load the settings; flags that are None or an empty list count as not given.

    Settings that the mode does not use are ignored, unless they are flags.

    Raises
    ------
    InputError
        If a value is invalid, or the file cannot be read as TOML. It tells where the value stands:
        what `named` returns of a flag's name, the variable or the file.

    Examples
    --------
    >>> load_settings(method="raptor", seed=None).method
    'raptor'
    """
    given = {name: value for name, value in flags.items() if value not in (None, [])}
    reset = {RIVALS[name] for name in given if name in RIVALS}
    file, variables = _of_file(), _of_environment()
    kept = {name: value for name, value in {**file, **variables}.items() if name not in reset}

    def place(field: str) -> str:
        name = field.partition(".")[0]
        if name in given:
            return named(field)
        return PREFIX + name.upper() if name in variables else f"{field} in {TOML_FILE}"

    try:
        settings = Settings(**{**kept, **given})
    except ValidationError as error:
        raise InputError.of_field(error, place) from None
    unused = [name for name, mode in MODE_OF.items() if name not in given and mode != settings.mode]
    return settings.model_copy(update={n: Settings.model_fields[n].default for n in unused})


def flag_of(name: str) -> str:
    """Return the flag of a setting.

    >>> flag_of("top_k")
    '--top-k'
    """
    return f"--{name.replace('_', '-')}"


def misnamed_variables() -> Iterator[str]:
    """Yield a sentence on each variable that has our prefix and sets nothing."""
    known = [*OTHER_VARIABLES, *map(str.upper, Settings.model_fields)]
    for variable in sorted(os.environ):
        prefix, name = variable[: len(PREFIX)], variable[len(PREFIX) :].upper()
        if prefix.upper() == PREFIX and name not in known:
            yield f"The variable {variable} sets nothing{nearest(name, known, PREFIX)}."


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # invalid port or IPv6 address
        return False


def _of_file() -> dict[str, Any]:
    """Return the values of the file in the working directory, if there is one."""
    path = Path(TOML_FILE)
    if not path.is_file():
        return {}
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{TOML_FILE} cannot be read: {error}.") from None
    for name in values:  # without its value, which may be a secret in the wrong place
        if name not in Settings.model_fields:
            known = nearest(name, Settings.model_fields)
            raise InputError(f"{TOML_FILE} has {name!r}, which is no setting{known}.")
    return values


def _of_environment() -> dict[str, str]:
    """Return the values of variables, by the names of fields in any case."""
    values = {name.upper(): value for name, value in os.environ.items()}
    names = {name: PREFIX + name.upper() for name in Settings.model_fields}
    return {name: values[key] for name, key in names.items() if key in values}
