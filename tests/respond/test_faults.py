"""Questions to a service with faults: what passes is not noticed, and the rest is one sentence."""

import asyncio
import json
import random
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import httpx
import pytest
from clients import ATTEMPTS, Calls, llm_of, with_retries
from llama_index.core.llms import ChatMessage, CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from loopback import FILTERED, NO_JSON, NO_QUOTA, OTHER_JSON, TOO_LONG, WEB_PAGE, Fault, Outcome
from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError
from respond.asking import (
    NEED_LLM,
    QUESTION,
    STREAMING,
    WAYS,
    ask,
    query_engine,
    read,
    serve,
)

from hierindex import HierarchyRetriever, HierindexError
from hierindex.errors import ModelError
from hierindex.summarize import LLMRewriter
from hierindex.threads import started

TIMEOUT = 1.0  # seconds of a request: an answer without a delay takes some milliseconds
PASSING = [
    Fault(429, retry_after=0.01),
    Fault(429),
    Fault(500),
    Fault(503),
    Fault(502, body="<html>Bad gateway</html>", content_type="text/html"),
    Fault(dropped=True),
    NO_JSON,
    OTHER_JSON,
    WEB_PAGE,
    Fault(delay=20 * TIMEOUT),
]


ways = pytest.mark.parametrize("way", WAYS)


@pytest.mark.spread
@pytest.mark.parametrize(
    ("mode", "way"),
    [(m, w) for m in sorted(NEED_LLM) for w in WAYS if m in STREAMING or "stream" not in w],
)
def test_one_failure_is_not_noticed(store, embed_model, mode, way):
    """Of the first request, or of one in the middle; it is counted."""
    retriever = HierarchyRetriever(store, embed_model, level=0, top_k=6, token_budget=None)
    options = {"response_mode": mode, "settings": {"context_window": 1000}}
    with serve() as server:
        expected, calls = ask(server, retriever, embed_model, way, **options)
    n_calls = len(calls.made)
    for fails in {0, n_calls // 2}:
        with serve(faults={fails: Fault(503)}.get) as server:
            answer, calls = ask(server, retriever, embed_model, way, **options)
            assert len(server.requests) == calls.usage.llm_calls == n_calls + 1
        assert answer == expected
        assert [call.completion for call in calls.made if call.fault] == [""]


@pytest.mark.spread
@pytest.mark.parametrize("way", ["plain", "async"])
@pytest.mark.parametrize("mode", ["tree_summarize", "accumulate", "refine"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_faults_of_every_kind_in_many_calls(retriever, embed_model, mode, way, seed):
    """One in eight, each kind in its turn: the answer is the same, and nothing is uncounted."""
    faults = random.Random(seed).sample(PASSING, len(PASSING))
    options = {"response_mode": mode, "settings": {"context_window": 500, "timeout": TIMEOUT}}
    if mode != "tree_summarize":
        options["settings"]["context_window"] = 1300
    met = []

    def fault(number):
        if number % 8 != 3 or not faults:
            return None
        met.append(faults.pop())
        return met[-1]

    with serve() as server:
        expected, _ = ask(server, retriever, embed_model, way, **options)
        n_calls = len(server.requests)
    with serve(faults=fault) as server:
        answer, calls = ask(server, retriever, embed_model, way, **options)
        answered = server.answered
        assert len(server.requests) == calls.usage.llm_calls == n_calls + len(met)
    assert answer == expected
    assert len(met) >= 2
    assert answered == (n_calls, calls.usage.prompt_tokens, calls.usage.completion_tokens)


FINAL = {  # and the exit status of the command line
    "key": (Fault(401), 2, "cannot be used: .* 401, the key is missing or wrong", 1),
    "quota": (NO_QUOTA, 2, "cannot be used: the quota is used up", 1),
    "text": (FILTERED, 1, "failed to answer: the service refuses this text", 1),
    "length": (TOO_LONG, 1, "failed to answer: the prompt is too long", 1),
    "500": (Fault(500), 1, "failed to answer: .* HTTP status 500", ATTEMPTS),
    "dropped": (Fault(dropped=True), 1, "failed to answer: ", None),
    "pause": (Fault(429, retry_after=61), 1, "failed .* a pause of 61 s; try again", 1),
    "page": (WEB_PAGE, 1, "failed to answer: .*; check its address", ATTEMPTS),
    "busy": (Fault(429), 1, "failed to answer: .* 429: .*; try again later", 12),
}


@pytest.mark.spread
@ways
@pytest.mark.parametrize("mode", ["compact", "tree_summarize", "generation"])
@pytest.mark.parametrize(("fault", "status", "said", "n"), FINAL.values(), ids=FINAL)
def test_what_does_not_pass_is_one_sentence(
    retriever, embed_model, mode, way, fault, status, said, n
):
    with serve(faults=lambda number: fault) as server:
        with pytest.raises(HierindexError, match=rf"^LLM 'm' {said}[^\n]*\.$") as caught:
            ask(server, retriever, embed_model, way, response_mode=mode)
        assert caught.value.exit_status == status
        assert n is None or len(server.requests) == n


TOO_MUCH = "the request exceeds the available context size"
BODIES = {
    "llama.cpp": (500, {"error": {"code": 500, "message": TOO_MUCH}}, TOO_MUCH, 1),
    "LM Studio": (200, {"error": f"{TOO_MUCH}."}, TOO_MUCH, 1),
    "200, a message": (200, {"message": "The model is asleep."}, "model is asleep", ATTEMPTS),
    "OpenAI": (400, {"error": {"message": "No 'temperature' of 0.1."}}, "'temperature'", 1),
    "vLLM": (400, {"object": "error", "message": "No top_k."}, "No top_k", 1),
    "FastAPI": (422, {"detail": [{"loc": ["body", "seed"], "msg": "No int"}]}, "seed: No int", 1),
    "detail": (404, {"detail": "Model 'm' is not loaded."}, "'m' is not loaded", 1),
    "text": (413, "Payload of 9 MB is over 1 MB\n", "Payload of 9 MB is over 1 MB", 1),
    "busy": (429, {"error": {"message": "Too many tokens, wait."}}, "Too many tokens, wait", 12),
    "long": (500, {"error": "GPU " * 500}, "GPU...", ATTEMPTS),
    "page": (502, "<html>Bad</html>", "HTTP status 502\\.$", ATTEMPTS),
}


@pytest.mark.spread
@ways
@pytest.mark.parametrize(("status", "body", "said", "n"), BODIES.values(), ids=BODIES)
def test_an_error_has_the_reason_of_the_service(retriever, embed_model, way, status, body, said, n):
    """What fails each time is asked once."""
    kind = "text/plain" if isinstance(body, str) else "application/json"
    fault = Fault(status, body=body if kind == "text/plain" else json.dumps(body))
    fault = replace(fault, content_type=kind)
    with serve(faults=lambda number: fault) as server, pytest.raises(HierindexError) as caught:
        ask(server, retriever, embed_model, way, response_mode="compact")
    assert re.search(said, str(caught.value))
    assert re.fullmatch(r"LLM 'm' [^\n]{,450}\.", str(caught.value))
    assert n is None or len(server.requests) == n


@pytest.mark.spread
@pytest.mark.parametrize("status", [200, 400, 401, 403, 500])
@pytest.mark.parametrize("told", ["{key}", "'{key}'.", "sk-ab", "ab-l***e-te"])
def test_no_error_has_the_key(index, told, status):
    key = "ab-long-enough-to-be-one"
    body = json.dumps({"error": {"message": f"Not allowed: {told.format(key=key)}"}})
    fault = Fault(status, body=body)
    with serve(faults=lambda number: fault) as server:
        llm = llm_of(server).model_copy(update={"api_key": key})
        with pytest.raises(HierindexError) as caught:
            index.ask(QUESTION, llm=llm, response_mode="compact")
    assert "ab-l" not in str(caught.value)
    assert "sk-" not in str(caught.value)
    assert ("Not allowed" in str(caught.value)) == (status != 401)


def test_a_service_that_never_answered_is_asked_once(retriever, embed_model):
    with serve() as server:
        llm, calls = llm_of(server), Calls()
    with pytest.raises(ModelError, match=r"^LLM 'm' cannot be used: nothing answers at http"):
        query_engine(retriever, embed_model, llm=with_retries(llm, calls)).query(QUESTION)
    assert len(calls.made) == 1


def test_a_service_that_goes_away_is_waited_for(retriever, embed_model):
    """It was there: that nothing answers now may pass."""
    with serve() as server:
        llm, calls = with_retries(llm_of(server)), Calls()
        llm.complete("Are you there?")
    with pytest.raises(HierindexError, match="failed to answer: nothing answers at"):
        query_engine(retriever, embed_model, llm=with_retries(llm, calls)).query(QUESTION)
    assert len(calls.made) == ATTEMPTS


@pytest.mark.parametrize("way", ["stream", "async stream"])
def test_a_stream_that_breaks_off_is_not_begun_again(retriever, embed_model, way):
    with serve(faults=lambda number: Fault(dropped=True)) as server:
        with pytest.raises(HierindexError, match=r"^LLM 'm' failed to answer: [^\n]+\.$"):
            ask(server, retriever, embed_model, way, response_mode="compact")
        assert len(server.requests) == 1


def test_what_was_read_of_a_stream_is_written_down():
    calls = Calls()
    with serve(lambda prompt: "one two three four") as server:
        pieces = with_retries(llm_of(server), calls).stream_complete("Count.")
        assert [next(pieces).delta for _ in range(2)] == ["one", " two"]
        assert calls.made == []
        pieces.close()
    assert [(call.prompt, call.completion) for call in calls.made] == [("Count.", "one two")]


def test_a_clients_own_retries_are_switched_off(index):
    with serve(faults={0: Fault(500)}.get) as server:
        llm = llm_of(server, max_retries=7)
        answer = index.ask(QUESTION, llm=llm)
        assert answer.usage.llm_calls == len(server.requests) == 2
    assert llm.max_retries == 7


class Failing(CustomLLM):
    """Fails once, and asks itself: each chat is a completion."""

    fails: list[Exception]

    @property
    def metadata(self):
        return LLMMetadata(is_chat_model=True, model_name="own")

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **kwargs):
        if self.fails:
            raise self.fails.pop()
        return CompletionResponse(text="Once.")

    @llm_completion_callback()
    def stream_complete(self, prompt, formatted=False, **kwargs):
        if self.fails:
            raise self.fails.pop()
        yield CompletionResponse(text="Once.", delta="Once.")


@pytest.mark.spread
@ways
@pytest.mark.parametrize("kind", [ConnectionResetError, httpx.ReadTimeout, KeyError])
def test_a_model_that_asks_itself_is_asked_once_and_again(retriever, embed_model, way, kind):
    calls = Calls()
    llm = with_retries(Failing(fails=[kind("gone")]), calls)
    options = {"response_mode": "compact", "streaming": "stream" in way}
    said, _ = read(query_engine(retriever, embed_model, llm=llm, **options), way)
    assert said == "Once."
    assert [call.completion for call in calls.made] == ["", "Once."]


class Ending(Failing):
    """Raises what no event loop survives: instead of an answer, or after the first chunk."""

    error: type[BaseException]
    late: bool = False

    def complete(self, prompt, formatted=False, **kwargs):
        raise self.error

    def stream_complete(self, prompt, formatted=False, **kwargs):
        return self._chunks() if self.late else self.complete(prompt)

    def _chunks(self):
        yield CompletionResponse(text="Once.", delta="Once.")
        raise self.error


ENDINGS = {  # and what is raised
    StopIteration: RuntimeError,
    SystemExit: SystemExit,
    KeyboardInterrupt: KeyboardInterrupt,
}


@pytest.mark.spread
@pytest.mark.parametrize("error", ENDINGS)
@pytest.mark.parametrize("way", ["plain", "stream", "late stream", "rewrite"])
def test_what_would_end_a_loop_is_raised_at_once(error, way):
    llm, calls = Ending(fails=[], error=error, late="late" in way), Calls()
    ways = {
        "plain": lambda: with_retries(llm, calls).complete("Hello?"),
        "rewrite": lambda: LLMRewriter(llm).rewrite(["Hello.", "Bye."], max_tokens=9),
    }
    ask = ways.get(way, lambda: list(with_retries(llm, calls).stream_complete("Hello?")))
    with pytest.raises(ENDINGS[error]):
        started(ask).result(20)
    assert len(calls.made) == (way != "rewrite")


class Slow(Failing):
    """Takes its time for the second chunk."""

    timeout: float = 0.2

    def stream_complete(self, prompt, formatted=False, **kwargs):
        yield CompletionResponse(text="Once.", delta="Once.")
        time.sleep(1)


def test_a_chunk_that_does_not_come_in_time_ends_a_stream():
    calls = Calls()
    pieces = with_retries(Slow(fails=[]), calls).stream_complete("Hello?")
    assert next(pieces).delta == "Once."
    with pytest.raises(HierindexError, match="did not answer in time"):
        next(pieces)
    assert [call.completion for call in calls.made] == ["Once."]


class Broken(BaseNodePostprocessor):
    """A user's code that fails."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    error: Exception

    def _postprocess_nodes(self, nodes, query_bundle=None):
        raise self.error


class Metadata(BaseModel):
    """Of a user's own."""

    author: str


def invalid():
    """An error of a form that no model was to fill in."""
    try:
        return Metadata.model_validate({})
    except ValidationError as error:
        return error


@pytest.mark.parametrize("error", [PermissionError("index"), invalid()], ids=type)
@pytest.mark.parametrize("with_llm", [True, False])
def test_what_others_code_raises_is_not_called_a_models(index, error, with_llm):
    with serve() as server:
        options = {"llm": llm_of(server) if with_llm else None}
        with pytest.raises(type(error)) as caught:
            index.ask(QUESTION, postprocessors=[Broken(error=error)], **options)
    assert caught.value is error


def test_questions_share_a_service():
    """One that is slowed down by one question is slow for the next."""
    with serve(faults={0: Fault(429, retry_after=0.4)}.get, latency=0.05) as server:
        llm = with_retries(llm_of(server), concurrency=1)
        first, second = with_retries(llm, Calls()), with_retries(llm, Calls(), concurrency=1)
        began = time.monotonic()
        with ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(one.complete, "Hello?") for one in (first, second)]
            assert all(each.result().text for each in asked)
        assert time.monotonic() - began >= 0.4
        assert len(server.requests) == 3
        assert server.most_in_flight == 1


def test_what_a_served_model_tells_of_itself_has_no_key():
    """To handlers and events: the model's metadata, without its settings and records."""
    with serve() as server:
        copy = with_retries(llm_of(server).model_copy(update={"api_key": "sk-1"}), Calls())
    assert copy.metadata.model_name == copy.to_payload()["model_name"] == "m"
    assert "sk-1" not in f"{copy!r} {copy.to_payload()} {copy.to_dict()}"


def test_what_is_asked_by_name_is_written_down():
    calls = Calls()
    llm = with_retries(Failing(fails=[]), calls)
    assert llm.complete(prompt="Hello?").text == "Once."
    assert llm.chat(messages=[ChatMessage("Hello?")]).message.content == "Once."
    assert [call.prompt for call in calls.made] == ["Hello?"] * 2


def test_the_first_failure_is_told_at_once(retriever, embed_model):
    """Not after the answers to the other prompts; nor is any of them asked for again."""
    faults = {0: Fault(401), 1: Fault(503, delay=3), 2: Fault(delay=3), 3: Fault(delay=3)}
    with serve(faults=faults.get) as server:
        options = {"response_mode": "tree_summarize", "settings": {"context_window": 500}}
        with pytest.raises(ModelError, match="401"):
            ask(server, retriever, embed_model, "plain", **options)
        assert {*server.outcomes[1:]} <= {Outcome()}  # not known yet
        while Outcome() in server.outcomes:
            time.sleep(0.01)
        time.sleep(0.2)  # in which another attempt would come
        prompts = [request.prompt for request in server.requests]
    assert len(prompts) == len(set(prompts)) <= 4


class Blocking(Failing):
    """Has no async methods of its own, and answers four at once."""

    _together: Barrier = PrivateAttr(default_factory=lambda: Barrier(4, timeout=20))

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **kwargs):
        self._together.wait()
        return CompletionResponse(text="Once.")


@pytest.mark.parametrize("method", ["acomplete", "achat"])
def test_a_model_without_async_methods_leaves_the_loop_free(method):
    async def run():
        llm = with_retries(Blocking(fails=[]))
        asked = "Hello?" if method == "acomplete" else [ChatMessage("Hello?")]
        return await asyncio.gather(*(getattr(llm, method)(asked) for _ in range(4)))

    assert len(asyncio.run(run())) == 4
