"""Builds of one level by OpenAI's Batch API, in processes that may be killed."""

import asyncio
import random
from functools import cache

import httpx
from batch_service import BatchServer
from histories import WORDS
from llama_index.llms.openai_like import OpenAILike
from tenacity import wait_none

from hierindex.summarize.llm import LLMRewriter
from hierindex.summarize.summary import Resources

DRAW = random.Random(0)
TEXTS = [f"On day {i} they spoke of {' and '.join(DRAW.sample(WORDS, 5))}." for i in range(4)]
OTHERS = [f"On night {i} they sang of {' and '.join(DRAW.sample(WORDS, 5))}." for i in range(4)]


class Kept(dict):
    """Completions and notes that are kept in a dictionary."""

    recall = dict.get

    def keep(self, key, text):
        self[key] = text

    def noted(self, key):
        return self.get(key, "")

    def note(self, key, text):
        self[key] = text

    def note_first(self, key, text):
        self[key] = self.get(key) or text
        return self[key]

    @property
    def n_completions(self):
        return sum("The passages" in text for text in self.values())


class Killed(BaseException):
    """The end of a process."""


class Mortal(httpx.BaseTransport):
    """A transport on which the process dies at a request, before or after its effect."""

    def __init__(self, last, *, after=True):
        self.last, self.after, self.n_sent = last, after, 0
        self.network = httpx.HTTPTransport(verify=False)

    def handle_request(self, request):
        self.n_sent += 1
        if self.n_sent == self.last and not self.after:
            raise Killed
        response = self.network.handle_request(request)
        if self.n_sent == self.last:
            raise Killed
        return response


@cache
def client():
    """A client that reads no certificates, which takes longer than its requests here."""
    return httpx.Client(verify=False)


def llm_of(server, **settings):
    settings = {"api_base": server.base_url, "is_chat_model": True, "api_key": "k"} | settings
    settings = {"http_client": client(), "context_window": 8192, "max_retries": 0} | settings
    return OpenAILike(**{"model": "tiny"} | settings)


def rewriter_of(server, *, llm=None, batch=True, **settings):
    return LLMRewriter(llm_of(server, **(llm or {})), batch=batch, wait=wait_none(), **settings)


def rewrite(server, texts=TEXTS, memory=None, *, progress=None, **settings):
    """The rewrites of a build of one level, with what its index keeps."""
    rewriter = rewriter_of(server, **settings)
    resources = Resources(completions=memory, **({"progress": progress} if progress else {}))
    rewrites = rewriter.rewrite(texts, max_tokens=50, resources=resources)
    rewriter.finish(resources)
    return rewrites


def arewrite(server, texts=TEXTS, memory=None, **settings):
    rewriter, resources = rewriter_of(server, **settings), Resources(completions=memory)
    return asyncio.run(rewriter.arewrite(texts, max_tokens=50, resources=resources))


def killed_at(server, last, *, after=True, texts=TEXTS, memory=None, **settings):
    """Rewrite on a transport that dies; return whether it did, before all was written."""
    http = httpx.Client(transport=Mortal(last, after=after))
    try:
        rewrite(server, texts, memory, llm={"http_client": http}, **settings)
    except Killed:
        return True
    return False


def by_ones(texts=TEXTS, window=None):
    """What single requests give."""
    return _by_ones(tuple(texts), window)


@cache
def _by_ones(texts, window):
    with BatchServer(window=window) as server:
        return rewrite(server, texts, batch=False)


def texts_of(rewrites):
    return [each.text for each in rewrites]


def sizes(server):
    return [len(batch.lines) for batch in server.batches]


def look(server, n_looks=1):
    """Let time pass for the first batch."""
    for _ in range(n_looks):
        server.serve("GET", "/v1/batches/batch_0", {}, b"", {})


def check_paid_once(server, texts=TEXTS):
    assert [*server.paid.values()] == [1] * len({*texts})
