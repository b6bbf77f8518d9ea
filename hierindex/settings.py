"""Settings: the name, type, limits, default and help of each, declared once.

Defaults in Python, the flags of commands, `HIERINDEX_<NAME>` in the environment and `<name> = ...`
in hierindex.toml in the working directory are derived from here. A flag takes precedence over a
variable, and a variable over the file. The help of a setting explains None. API keys are not
settings: `HIERINDEX_LLM_API_KEY` is read when a model is loaded, and is not stored.
"""

import os
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_type_hints

from annotated_types import Ge, Gt, Le, Lt, MinLen

from hierindex.errors import InputError, nearest, shown

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema

TOML_FILE = "hierindex.toml"
PREFIX = "HIERINDEX_"
ADDRESS = re.compile(r"https?://([^\s/@]*@)?(\[[\da-f:]+\]|[\w.-]+)(:\d+)?(/\S*)?")

# Defaults of arguments that are no settings.
OUTLINE_TOKENS = 1000
CONTEXT = 300  # characters on each side of a passage
REPORT_MB = 5.0  # most mail servers take as much
HOST = "127.0.0.1"
EXPLORER_PORT, QUESTIONS_PORT, MCP_PORT = 8733, 8734, 8735

RIVALS = {"llm": "summarizer", "summarizer": "llm", "mode": "level", "level": "mode"}
"""A flag resets its rival to the default, even if the environment or the file sets it."""


class Help(NamedTuple):
    """The help of a setting: the placeholder for its value, and a description.

    Help pages add the default, unless it is None or False.
    """

    value: str
    text: str

    def __get_pydantic_json_schema__(
        self, schema: "CoreSchema", handler: "GetJsonSchemaHandler"
    ) -> dict[str, Any]:
        return {**handler(schema), "description": self.text.replace("--", "")}


class Checked(NamedTuple):
    """A pydantic validator that calls a function with a value and the parser of its type."""

    check: Callable[[Any, Callable[[Any], Any]], Any]

    def __get_pydantic_core_schema__(
        self, kind: Any, handler: "GetCoreSchemaHandler"
    ) -> "CoreSchema":
        from pydantic_core.core_schema import no_info_wrap_validator_function

        return no_info_wrap_validator_function(self.check, handler(kind))


def _levels(level: Any, read: Callable[[Any], Any]) -> Any:
    try:
        return read(level)
    except ValueError:
        words = "top, documents, sections or chunks"
        raise ValueError(f"it must be a whole number, {words}, got {shown(level)}.") from None


def _address(url: Any, read: Callable[[Any], str]) -> str:
    address = read(url)
    if not ADDRESS.fullmatch(address):
        given = shown(address.rpartition("@")[2])  # without user name and password
        raise ValueError(f"it must be a URL such as http://localhost:8000/v1, got {given}.")
    return address


Text = Annotated[str, MinLen(1)]
Count = Annotated[int, Ge(1)]
Score = Annotated[float, Ge(0), Le(1)]
Seconds = Annotated[float, Gt(0)]
Level = int | Literal["top", "documents", "sections", "chunks"]
OneLevel = Annotated[Level, Checked(_levels)]


@dataclass(frozen=True, kw_only=True)
class TreeSettings:
    """Settings of a tree."""

    method: Annotated[
        Literal["semantic", "raptor", "document"],
        Help(
            "NAME",
            "How chunks are grouped: semantic (segments of each document), raptor (clusters of "
            "all chunks) or document (all chunks of each document).",
        ),
    ] = "semantic"
    embed_model: Annotated[
        Text | None,
        Help(
            "MODEL",
            "Name or folder of a sentence-transformers model, or multilingual. By default the "
            "bundled all-MiniLM-L6-v2.",
        ),
    ] = None
    precision: Annotated[
        Literal["bfloat16", "float32"],
        Help(
            "NAME",
            "Precision of the embedding model on a CPU: bfloat16 (float32 if the processor lacks "
            "it) or float32.",
        ),
    ] = "bfloat16"
    chunk_size: Annotated[
        Annotated[int, Ge(16)] | None,
        Help("N", "Maximum tokens of a chunk. By default the embedding model's window."),
    ] = None
    max_levels: Annotated[
        Count | None, Help("N", "Maximum levels above the chunks. No limit by default.")
    ] = None
    seed: Annotated[int, Ge(0), Lt(2**32), Help("N", "Random seed.")] = 0


@dataclass(frozen=True, kw_only=True)
class SummarySettings:
    """Settings of summaries."""

    summarizer: Annotated[
        Text, Help("MODEL", "extractive, or a seq2seq model's name or folder.")
    ] = "extractive"
    prompt: Annotated[
        Text,
        Help("NAME|FILE", "Prompt of the language model: summary, questions, or a prompt file."),
    ] = "summary"
    unsupported: Annotated[
        Literal["extract", "drop", "keep", "fail"],
        Help(
            "WHAT",
            "What to do with a rewritten sentence that no source supports: extract (use the most "
            "similar source instead), drop, keep (and mark it) or fail.",
        ),
    ] = "extract"
    strict: Annotated[
        bool,
        Help("", "Fail if a model writes no usable summary. By default an extract is used."),
    ] = False


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """Settings of a search for nodes."""

    mode: Annotated[
        Literal["auto", "collapsed", "level", "traversal", "document"] | None,
        Help(
            "NAME",
            "What to search: auto (chunks, or an outline for a question about the whole index or "
            "about documents that it names), collapsed (all levels), level (see --level), "
            "traversal (from the roots down) or document (the chunks of the documents with the "
            "best summaries). By default auto, or level with --level.",
        ),
    ] = None
    level: Annotated[
        Level | Annotated[list[Level], MinLen(1)] | None,
        Checked(_levels),
        Help(
            "N|WORD",
            "Level to search: a number (0 for the chunks), or top, documents, sections or chunks. "
            "May be repeated. By default the mode decides.",
        ),
    ] = None
    by: Annotated[
        Literal["dense", "hybrid", "text", "context"] | None,
        Help(
            "NAME",
            "Scoring: dense (embeddings), text (BM25), hybrid (both) or context (both, and "
            "neighbours in reading order). By default context with --mode auto, otherwise dense.",
        ),
    ] = None
    top_k: Annotated[
        Count | None, Help("N", "Maximum number of nodes. By default 10, or 20 for an outline.")
    ] = None
    token_budget: Annotated[Count, Help("N", "Maximum tokens of all nodes together.")] = 2000


@dataclass(frozen=True, kw_only=True)
class AnswerSettings:
    """Settings of an answer."""

    rerank: Annotated[
        Text | None,
        Help("MODEL", "Cross-encoder that reranks chunks, by name or folder. None by default."),
    ] = None
    response_mode: Annotated[
        Text | None,
        Help(
            "MODE",
            "extractive (quote passages), or with --llm a mode of LlamaIndex such as refine. By "
            "default extractive, or tree_summarize with --llm.",
        ),
    ] = None
    min_score: Annotated[
        Score,
        Help("SCORE", "Minimum score of an extractive answer, 0 (never refuse) to 1."),
    ] = 0.4


@dataclass(frozen=True, kw_only=True)
class LLMSettings:
    """Settings of a language model."""

    llm: Annotated[
        Text | None, Help("MODEL", "Model of an OpenAI-compatible server. None by default.")
    ] = None
    llm_base_url: Annotated[
        Annotated[Text, Checked(_address)] | None,
        Help("URL", "URL of the server, no default. The key is read from HIERINDEX_LLM_API_KEY."),
    ] = None
    llm_concurrency: Annotated[Count, Help("N", "Maximum number of concurrent requests.")] = 4
    llm_timeout: Annotated[Seconds, Help("SECONDS", "Timeout of a request.")] = 120.0
    llm_completion_tokens: Annotated[
        Count | None,
        Help(
            "N",
            "Maximum tokens of a completion, reasoning included. By default 4 times the length of "
            "a summary for summaries, and the server's limit for answers to questions.",
        ),
    ] = None
    max_llm_tokens: Annotated[
        Count | None,
        Help("N", "Maximum tokens of all prompts and completions together. None by default."),
    ] = None
    llm_record: Annotated[
        Text | None, Help("FILE", "File to append prompts and answers to. None by default.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class Settings(LLMSettings, AnswerSettings, SearchSettings, SummarySettings, TreeSettings):
    """All settings."""

    def chosen(self, names: str) -> dict[str, Any]:
        """Return the settings with these names, separated by spaces, as a dict."""
        return {name: getattr(self, name) for name in names.split()}


GROUPS = {
    "Tree": TreeSettings,
    "Summaries": SummarySettings,
    "Search": SearchSettings,
    "Answer": AnswerSettings,
    "Language model": LLMSettings,
}
"""Parts of `Settings`, by the titles that help pages give them."""
SEARCH = " ".join(field.name for field in fields(SearchSettings))
NAMES = {field.name: field.default for field in fields(Settings)}
"""The default of each setting."""


def load_settings(named: Callable[[str], str] = str, /, **flags: Any) -> Settings:
    """Load the settings; flags that are None or an empty list count as missing.

    Raises
    ------
    InputError
        If a value is invalid, or the file cannot be read as TOML. The message names the flag (as
        `named` returns it), the variable or the file.

    Examples
    --------
    >>> load_settings(method="raptor", seed=None).method
    'raptor'
    """
    from pydantic import TypeAdapter, ValidationError

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
        return TypeAdapter(Settings).validate_python({**kept, **given})
    except ValidationError as error:
        raise InputError.of_field(error, place) from None


def help_of(group: type) -> Iterator[tuple[str, Any, Help]]:
    """Yield the name, type and help of each setting of a group.

    >>> next(help_of(TreeSettings))[2].text.rpartition(". ")[2]
    'Default: semantic.'
    """
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        hint = hints[field.name]
        said = next(each for each in hint.__metadata__ if isinstance(each, Help))
        is_said = field.default is not None and field.default is not False
        default = f" Default: {field.default}." if is_said else ""
        yield field.name, hint.__origin__, said._replace(text=f"{said.text}{default}")


def flag_of(name: str) -> str:
    """Return the flag of a setting.

    >>> flag_of("top_k")
    '--top-k'
    """
    return f"--{name.replace('_', '-')}"


def misnamed_variables() -> Iterator[str]:
    """Yield a sentence for each variable that has the prefix of hierindex but is not a setting."""
    known = ["LLM_API_KEY", *map(str.upper, NAMES)]
    for variable in sorted(os.environ):
        name = variable.removeprefix(PREFIX)
        if name != variable and name not in known:
            yield f"The variable {variable} is unknown{nearest(name, known, PREFIX)}."


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
        if name not in NAMES:
            raise InputError(
                f"{TOML_FILE} has {name!r}, which is not a setting{nearest(name, NAMES)}."
            )
    return values


def _of_environment() -> dict[str, str]:
    """Return the values of variables by the names of settings."""
    names = {name: PREFIX + name.upper() for name in NAMES}
    return {name: os.environ[key] for name, key in names.items() if key in os.environ}
