"""The test doubles do what the tests that use them take for granted."""

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from threading import Barrier

import httpx
import numpy as np
import openai
import pytest
import torch
from fakes import HashingEmbedding
from llama_index.llms.openai_like import OpenAILike
from loopback import (
    FILTERED,
    NO_QUOTA,
    OTHER_JSON,
    REFUSAL,
    TOO_LONG,
    Fault,
    LoopbackServer,
    Outcome,
    Tokens,
    names_words,
)
from tiny_models import (
    SENTENCES,
    on_torch,
    save_tiny_bart,
    save_tiny_sentence_transformer,
    save_tiny_t5,
)
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer


def llm_of(server, **settings):
    """With a client that reads no certificates, which takes longer than its requests here."""
    fixed = {"model": "m", "api_base": server.base_url, "is_chat_model": True, "max_retries": 0}
    settings = fixed | settings
    settings.setdefault("http_client", httpx.Client(verify=False))
    return OpenAILike(api_key="k", **settings)


@asynccontextmanager
async def async_llm_of(server, **settings):
    """OpenAILike never closes its asynchronous client: give it one that is closed."""
    async with httpx.AsyncClient(verify=False) as client:
        yield llm_of(server, async_http_client=client, **settings)


def complete(server, prompt, **settings):
    return llm_of(server, **settings).complete(prompt).text


def acomplete(server, prompt, **settings):
    async def text():
        async with async_llm_of(server, **settings) as llm:
            return (await llm.acomplete(prompt)).text

    return asyncio.run(text())


def stream_complete(server, prompt, **settings):
    return "".join(piece.delta for piece in llm_of(server, **settings).stream_complete(prompt))


def astream_complete(server, prompt, **settings):
    async def text():
        async with async_llm_of(server, **settings) as llm:
            return "".join([piece.delta async for piece in await llm.astream_complete(prompt)])

    return asyncio.run(text())


calls = pytest.mark.parametrize("call", [complete, acomplete, stream_complete, astream_complete])


@calls
@pytest.mark.parametrize("is_chat_model", [True, False])
def test_every_call_is_answered(call, is_chat_model):
    with LoopbackServer(reply=lambda prompt: f"{prompt}, you said.\n") as server:
        assert call(server, "Guten  Tag", is_chat_model=is_chat_model) == (
            "Guten  Tag, you said.\n"
        )
    (request,) = server.requests
    assert request.path == ("/v1/chat/completions" if is_chat_model else "/v1/completions")
    assert request.prompt == "Guten  Tag"
    assert request.authorization == "Bearer k"
    assert request.body["model"] == "m"


def test_usage_counts_words():
    with LoopbackServer(reply=lambda prompt: "four words in all") as server:
        llm = llm_of(server)
        whole = llm.complete("one two three").additional_kwargs
        asked = {"stream_options": {"include_usage": True}}
        *_, last = llm.stream_complete("one two three", **asked)
    assert whole == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    assert last.additional_kwargs == whole


def echo_together(n):
    """Reply that waits until n requests are waiting for theirs."""
    barrier = Barrier(n, timeout=20)

    def reply(prompt):
        barrier.wait()
        return prompt

    return reply


@pytest.mark.parametrize("n_threads", [1, 4])
def test_most_in_flight_is_the_number_of_simultaneous_requests(n_threads):
    with LoopbackServer(reply=echo_together(n_threads)) as server:
        llm = llm_of(server)
        with ThreadPoolExecutor(n_threads) as pool:
            answers = list(pool.map(lambda i: llm.complete(f"number {i}").text, range(8)))
    assert answers == [f"number {i}" for i in range(8)]
    assert len(server.requests) == 8
    assert server.most_in_flight == n_threads


def test_a_burst_of_asynchronous_requests():
    async def burst(server):
        async with async_llm_of(server) as llm:
            answers = await asyncio.gather(*(llm.acomplete(f"number {i}") for i in range(40)))
        return [answer.text for answer in answers]

    with LoopbackServer(reply=echo_together(40)) as server:
        assert asyncio.run(burst(server)) == [f"number {i}" for i in range(40)]
    assert server.most_in_flight == 40


@calls
@pytest.mark.parametrize(
    ("fault", "error", "code"),
    [
        (TOO_LONG, openai.BadRequestError, "context_length_exceeded"),
        (FILTERED, openai.BadRequestError, "content_filter"),
        (NO_QUOTA, openai.RateLimitError, "insufficient_quota"),
        (Fault(500, text="Out of memory."), openai.InternalServerError, None),
    ],
    ids=str,
)
def test_code_and_message_reach_the_client(call, fault, error, code):
    server = LoopbackServer(faults=lambda number: fault)
    with server, pytest.raises(error, match=fault.text or f"fault {fault.status}") as caught:
        call(server, "Hello")
    assert caught.value.code == code
    assert server.answered == (0, 0, 0)


@calls
def test_a_delay_outlasts_a_timeout_and_ends_with_it(call):
    server = LoopbackServer(faults={0: Fault(delay=60)}.get)
    with server:
        with pytest.raises(openai.APITimeoutError):
            call(server, "Hello", timeout=0.1)
        assert call(server, "Hello", timeout=20) == "Hello"
    assert server.most_in_flight == 1
    assert server.outcomes == [Outcome(Fault(delay=60)), Outcome(Fault(), Tokens(1, 1))]


@calls
def test_a_prompt_over_the_window_is_an_error(call):
    with LoopbackServer(window=10, count=len) as server:
        assert call(server, "ten tokens") == "ten tokens"
        with pytest.raises(openai.BadRequestError, match="is 10 tokens, got 11") as caught:
            call(server, "ten tokens!")
    assert caught.value.code == "context_length_exceeded"
    assert server.answered == (1, 10, 10)


def test_the_log_tells_what_became_of_each_request():
    faults = {1: Fault(429), 2: REFUSAL, 4: Fault(dropped=True), 5: OTHER_JSON}
    usage = Counter()
    with LoopbackServer(faults=faults.get, reply=lambda prompt: "As you say.") as server:
        for number in range(7):
            with suppress(openai.OpenAIError, TypeError):
                told = llm_of(server).complete("word " * number).additional_kwargs
                usage.update(["requests"])
                usage.update(told)
    assert [outcome.fault for outcome in server.outcomes] == [
        faults.get(number, Fault()) for number in range(7)
    ]
    assert [number for number in range(7) if server.outcomes[number].tokens] == [0, 2, 3, 6]
    assert server.outcomes[2].tokens == (2, 8)
    assert server.answered._asdict() | {"total_tokens": usage["total_tokens"]} == usage


def test_a_deterministic_sentence_names_words_of_the_longest_paragraph():
    prompt = "Be brief.\n\n=== 0a1b ===\nOn day 3 the storm broke the old pier.\n\nSummary:"
    named = "The passages tell of day, the, storm, broke, old, pier and "
    assert names_words(prompt).startswith(named)
    assert names_words(prompt) == names_words(prompt) != names_words(f"{prompt} ")


def test_a_drip_outlasts_a_timeout_between_bytes():
    with LoopbackServer(faults=lambda number: Fault(drips=True)) as server:
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(complete, server, "Hello", timeout=0.3)
            with pytest.raises(TimeoutError):
                waiting.result(1.0)
            server.__exit__()
            assert isinstance(waiting.exception(20), openai.APIConnectionError)
        assert server.answered == (0, 0, 0)


def test_bart_has_a_window_and_t5_has_not(tmp_path):
    save_tiny_bart(tmp_path / "bart", window=16)
    save_tiny_t5(tmp_path / "t5", window=16)
    for name, fits in [("bart", False), ("t5", True)]:
        tokenizer = AutoTokenizer.from_pretrained(tmp_path / name)
        model = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / name)
        assert tokenizer.model_max_length == 16
        model.generate(**tokenizer("salt " * 100, return_tensors="pt", truncation=True))
        too_long = torch.full((1, 17), tokenizer.convert_tokens_to_ids("salt"))
        if fits:
            model.generate(too_long)
        else:
            with pytest.raises(IndexError):
                model.generate(too_long)


def test_tokens_can_be_counted_by_hand(tmp_path):
    save_tiny_bart(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert tokenizer.tokenize("Salt, zoo!") == ["salt", ",", "z", "##o", "##o", "!"]
    assert len(tokenizer("Salt, zoo!")["input_ids"]) == 6 + 2
    assert tokenizer.decode(tokenizer("Salt, zoo!")["input_ids"][1:-1]) == "salt, zoo!"


def test_sentence_transformer(tmp_path, transformers_log):
    save_tiny_sentence_transformer(tmp_path, window=32)
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(tmp_path), device="cpu")
    shorter = "The keeper of the lighthouse wrote a letter."
    X = model.encode([*SENTENCES, shorter])
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, rtol=1e-6)
    assert np.argmax(X[:-1] @ X[-1]) == 0
    assert model.max_seq_length == 32
    np.testing.assert_array_equal(*model.encode(["salt " * 30, "salt " * 30 + "ice"]))
    assert np.ptp(model.encode(["salt " * 29, "salt " * 29 + "ice"]), axis=0).max() > 1e-3

    llama = on_torch(tmp_path)
    assert llama.max_length == 32
    np.testing.assert_allclose(llama.get_text_embedding(shorter), X[-1], rtol=1e-5)
    assert not transformers_log.records


def cosine(a, b, dim=64):
    X = HashingEmbedding(dim=dim)._get_text_embeddings([a, b])
    return float(np.dot(*X))


def test_hashing_embedding_can_be_reasoned_about():
    assert cosine("The old harbour.", "harbour, old: THE") == pytest.approx(1)
    assert cosine("storm", "storm storm storm") == pytest.approx(1)
    assert cosine("storm", "harbour", dim=4096) == pytest.approx(0, abs=0.06)
    assert cosine("a b c d", "a b c e", dim=4096) == pytest.approx(3 / 4, abs=0.06)
    assert cosine("the keeper wrote a letter", "the keeper wrote two letters") > 0.4
    assert cosine("the keeper wrote a letter", "ships carry grain") < 0.4


@pytest.mark.parametrize("dim", [1, 2, 64, 300])
@pytest.mark.parametrize("text", ["", " .\n", "a", "one two three four five six seven"])
def test_hashing_embedding_gives_unit_vectors(text, dim):
    vector = HashingEmbedding(dim=dim).get_text_embedding(text)
    assert len(vector) == dim
    assert np.linalg.norm(vector) == pytest.approx(1)
