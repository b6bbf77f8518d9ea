"""Make language models, summarisers and hierarchies from settings."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hierindex.errors import InputError
from hierindex.jobs.settings import BY_METHOD
from hierindex.models.load import DEFAULT_EMBED_MODEL, load_embed_model
from hierindex.settings import Settings, flag_of, load_settings
from hierindex.summarize.extractive import ExtractiveSummarizer
from hierindex.summarize.llm import PROMPTS, LLMRewriter
from hierindex.summarize.seq2seq import Seq2SeqRewriter
from hierindex.summarize.summary import Summarizer
from hierindex.summarize.two_stage import Rewriter, TwoStageSummarizer
from hierindex.tree.hierarchy import Hierarchy

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

REMEMBERED = "remembered"  # the language model of an index


def llm_of(settings: Settings) -> "LLM":
    """Return the language model that the settings name."""
    assert settings.llm is not None
    if settings.llm_base_url is None:
        raise InputError("--llm needs --llm-base-url; there is no default address.")
    from hierindex.models.llm import load_llm

    return load_llm(
        settings.llm,
        settings.llm_base_url,
        timeout=settings.llm_timeout,
        completion_tokens=settings.llm_completion_tokens,
    )


def hierarchy_of(settings: Settings) -> Hierarchy:
    """Return the hierarchy described by the settings, with its models loaded."""
    summarizer = _summarizer(settings)
    name = settings.embed_model or DEFAULT_EMBED_MODEL
    is_exact = settings.precision == "float32"
    return BY_METHOD[settings.method](  # by name, the model is loaded once sources are checked
        embed_model=load_embed_model(name, precision="float32") if is_exact else name,
        summarizer=summarizer,
        max_levels=settings.max_levels,
        seed=settings.seed,
    )


def as_built(remembered: Mapping[str, Any], flags: dict[str, Any]) -> dict[str, Any]:
    """Return the options of an update: its language model, the limits of requests, and `strict`.

    Parameters
    ----------
    remembered : Mapping
        Settings stored in the index, see `settings_of`.
    flags : dict
        Flags of the command line. `llm` may be "remembered".

    Raises
    ------
    InputError
        If `llm` is not the model that wrote the summaries, or none is remembered.
    """
    if flags.get("llm") == REMEMBERED:
        if not (served := remembered.get("llm")):
            raise InputError(
                "--llm remembered cannot be used: the index remembers no language model with an "
                "address."
            )
        address = {
            "llm_base_url": served["base_url"],
            "llm_completion_tokens": served["max_tokens"],
        }
        flags = {**address, **flags, "llm": served["name"]}
    settings, wrote = load_settings(flag_of, **flags), _writer(remembered["summarizer"])
    if "llm" in flags and settings.llm != wrote:
        raise InputError(
            f"--llm {settings.llm} contradicts the index, which was built with {wrote or 'none'}; "
            "omit --llm, or build the index again with --replace."
        )
    models: dict[str, Any] = {"strict": settings.strict}
    if settings.llm is not None and settings.llm == wrote:
        models |= {"llm": llm_of(settings), **_limits(settings)}
    return models


def _writer(summarizer: Mapping[str, Any]) -> str | None:
    """Return the language model that wrote the summaries of an index, if any."""
    if name := summarizer.get("name"):  # of nodes that a pipeline made
        return None if name == "extractive" else str(name)
    written: str | None = summarizer.get("rewriter", {}).get("llm")
    return written


def _limits(settings: Settings) -> dict[str, Any]:
    """Return the options of `LLMRewriter` that do not affect its texts."""
    return {
        "concurrency": settings.llm_concurrency,
        "timeout": settings.llm_timeout,
        "token_limit": settings.max_llm_tokens,
        "record": settings.llm_record,
    }


def _summarizer(settings: Settings) -> Summarizer:
    rewriter: Rewriter
    if settings.llm is None and settings.summarizer == "extractive":
        return ExtractiveSummarizer()
    if settings.llm is None:
        rewriter = Seq2SeqRewriter(settings.summarizer)
    elif settings.summarizer == "extractive":
        llm = llm_of(settings)
        rewriter = LLMRewriter(llm, prompt=_prompt(settings.prompt), **_limits(settings))
    else:
        raise InputError(f"Pass --llm or --summarizer, not both, got {settings.summarizer}.")
    return TwoStageSummarizer(rewriter, strict=settings.strict, unsupported=settings.unsupported)


def _prompt(name: str) -> str:
    """Return a built-in prompt, or else the contents of the file of this name."""
    if name in PROMPTS:
        return PROMPTS[name]
    try:
        return Path(name).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise InputError(
            f"The prompt {name!r} is neither {' nor '.join(PROMPTS)}, nor a file that can be read: "
            f"{error}."
        ) from error
