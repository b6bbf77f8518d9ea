"""LlamaIndex's clients of a server on loopback."""

from contextlib import asynccontextmanager

import httpx
from llama_index.llms.openai_like import OpenAILike

from hierindex.models.adapters import with_retries as with_retries
from hierindex.models.llm import show_error
from hierindex.models.record import Calls as Calls

ATTEMPTS = 5  # failed requests per prompt


def llm_of(server, **settings):
    """With a client that reads no certificates, which takes longer than its requests here."""
    fixed = {"model": "m", "api_key": "k", "api_base": server.base_url, "is_chat_model": True}
    settings = {**fixed, "max_retries": 0, **settings}
    hooks = {"response": [show_error]}  # as `load_llm` has it
    settings.setdefault("http_client", httpx.Client(verify=False, event_hooks=hooks))
    return OpenAILike(**settings)


@asynccontextmanager
async def async_llm_of(server, **settings):
    """OpenAILike never closes its asynchronous client: give it one that is closed."""
    async with httpx.AsyncClient(verify=False) as client:
        yield llm_of(server, async_http_client=client, **settings)
