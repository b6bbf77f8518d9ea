"""Questions asked in every way that LlamaIndex has, and what a server's log says of them."""

import asyncio
import re
from collections import Counter

from clients import Calls, async_llm_of, llm_of, with_retries
from llama_index.core.base.response.schema import AsyncStreamingResponse
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.utils import get_tokenizer
from loopback import LoopbackServer, names_words

from hierindex import Usage
from hierindex.respond.engine import query_engine as query_engine

QUESTION = "Did the lantern meet a falcon?"
NUM_OUTPUT = 256  # what LlamaIndex leaves for an answer whose length is not told
WAYS = ["plain", "stream", "async", "async stream"]
CHAT_MODES = ["condense_plus_context", "best", "context", "condense_question"]
WITHOUT_LLM = {"no_text", "context_only"}
NEED_LLM = {mode.value for mode in ResponseMode} - WITHOUT_LLM
STREAMING = NEED_LLM - {"accumulate", "compact_accumulate"}


def count_tokens(text):
    """As LlamaIndex's prompt helper counts."""
    return len(get_tokenizer()(text))


def serve(reply=names_words, **options):
    return LoopbackServer(reply=reply, count=count_tokens, **options)


def settings_of(way, settings):
    """A model's settings; a stream tells its usage only where it is asked to."""
    asked = {"additional_kwargs": {"stream_options": {"include_usage": True}}}
    return (asked if "stream" in way else {}) | settings


async def aread(engine, question):
    """As `read`, in an event loop."""
    response = await engine.aquery(question)
    if isinstance(response, AsyncStreamingResponse):
        return "".join([piece async for piece in response.async_response_gen()]), response
    return str(response), response


def read(engine, way, question=QUESTION):
    """What an engine answers when it is asked in a way: the text and the response."""
    if "async" in way:
        return asyncio.run(aread(engine, question))
    response = engine.query(question)
    return str(response), response


def query(server, engine_of, way, question=QUESTION, **settings):
    """`read`, of an engine that is made of a model of the server."""

    async def asynchronously():
        async with async_llm_of(server, **settings) as llm:
            return await aread(engine_of(llm), question)

    if "async" in way:
        return asyncio.run(asynchronously())
    return read(engine_of(llm_of(server, **settings)), way, question)


def ask(server, retriever, embed_model, way, *, settings=None, **options):
    """The answer of a query engine, and the calls that were written down for it."""
    calls = Calls()
    if "stream" in way:
        options["streaming"] = True

    def engine_of(llm):
        return query_engine(retriever, embed_model, llm=with_retries(llm, calls), **options)

    text, _ = query(server, engine_of, way, **settings_of(way, settings or {}))
    return text, calls


def asked_of(calls):
    """The prompts and their answers, in no order: some calls are made at once."""
    return Counter((call.prompt, call.completion) for call in calls)


def log_of(server, start=0):
    """What a server's log says, as `asked_of` does of what was written down."""
    prompts = [request.prompt for request in server.requests[start:]]
    return Counter((prompt, server.reply(prompt)) for prompt in prompts)


def unmarked(answer):
    """An answer as its model said it, without what hierindex says of its sentences."""
    return re.sub(r" \[(?:\d+[?*]|\?)\]", "", answer)


def usage_of(server, start=0):
    """What a server's log says that its answers cost."""
    tokens = [outcome.tokens for outcome in server.outcomes[start:]]
    return Usage(len(tokens), sum(t.prompt_tokens for t in tokens), sum(t[1] for t in tokens))
