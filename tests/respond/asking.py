"""Questions asked in every way that LlamaIndex has, and what a server's log says of them."""

import asyncio
import re
from collections import Counter

from clients import async_llm_of, llm_of
from llama_index.core.utils import get_tokenizer
from loopback import LoopbackServer, names_words

from hierindex import Usage
from hierindex.models.adapters import with_retries
from hierindex.models.record import Calls
from hierindex.respond.engine import query_engine

QUESTION = "Did the lantern meet a falcon?"
NUM_OUTPUT = 256  # what LlamaIndex leaves for an answer whose length is not told
WAYS = ["plain", "stream", "async", "async stream"]


def count_tokens(text):
    """As LlamaIndex's prompt helper counts."""
    return len(get_tokenizer()(text))


def serve(reply=names_words, **options):
    return LoopbackServer(reply=reply, count=count_tokens, **options)


def settings_of(way, settings):
    """A model's settings; a stream tells its usage only where it is asked to."""
    asked = {"additional_kwargs": {"stream_options": {"include_usage": True}}}
    return (asked if "stream" in way else {}) | settings


def ask(server, retriever, embed_model, way, *, question=QUESTION, settings=None, **options):
    """The answer of a query engine, and the calls that were written down for it."""
    settings, calls = settings_of(way, settings or {}), Calls()
    if "stream" in way:
        options["streaming"] = True

    def engine(llm):
        return query_engine(retriever, embed_model, llm=with_retries(llm, calls), **options)

    async def answer():
        async with async_llm_of(server, **settings) as llm:
            response = await engine(llm).aquery(question)
            if "stream" not in way:
                return str(response)
            return "".join([piece async for piece in response.async_response_gen()])

    if "async" in way:
        return asyncio.run(answer()), calls
    return str(engine(llm_of(server, **settings)).query(question)), calls


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
