"""What the server answers by HTTP, and what it refuses."""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from urllib.parse import urlsplit

import httpx
import jsonschema
import pytest
from fakes import HashingEmbedding

from hierindex import Answer
from hierindex.serve import serve

ONLY = {"additionalProperties": False}


def closed(schema):
    """A schema whose objects have no properties but those that it names."""
    match schema:
        case {"properties": _, "type": "object"}:
            return {key: closed(each) for key, each in schema.items()} | ONLY
        case dict():
            return {key: closed(each) for key, each in schema.items()}
    return schema


def test_the_description_is_whole(http) -> None:
    description = http.get("/openapi.json").json()
    assert description["openapi"] == "3.1.0"
    named = re.findall('#/components/schemas/([^"]+)', json.dumps(description))
    assert {*named} <= {*description["components"]["schemas"]}
    for path, operations in description["paths"].items():
        ((method, operation),) = operations.items()
        assert http.request(method, path).status_code in (200, 400)
        assert operation["summary"]
        assert {"200", "default"} == {*operation["responses"]}
        assert ("requestBody" in operation) == (method == "post")


@pytest.mark.parametrize("path", ["/query", "/retrieve"])
@pytest.mark.parametrize("name", ["rerank", "llm", "llm_base_url", "embed_model"])
def test_no_model_is_loaded_by_request(http, path, name) -> None:
    answer = http.post(path, json={"question": "Who?", name: "some/model"})
    assert answer.status_code == 400
    assert name in answer.json()["error"]


def test_answers_are_as_described(http) -> None:
    description = http.get("/openapi.json").json()
    question, listing = {"question": "Who met the harbour?"}, {"question": "How many harbours met?"}
    root = http.ask("/outline", budget=200)["nodes"][0]["id"]
    answers = {
        "/query": [http.ask("/query", **question), http.ask("/query", **listing)],
        "/retrieve": [http.ask("/retrieve", **question)],
        "/outline": [http.ask("/outline")],
        "/show": [http.ask("/show", node=root, source=source) for source in (True, False)],
        "/health": [http.get("/health").json()],
    }
    assert answers["/query"][1]["listing"]["documents"]
    assert {*answers} == {*description["paths"]}
    for path, each in answers.items():
        (operation,) = description["paths"][path].values()
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        strict = closed({**schema, "components": description["components"]})
        for answer in each:
            jsonschema.validate(answer, strict)
            assert answer
    schemas = description["components"]["schemas"]
    assert {*schemas["Answer"]["properties"]} == {*Answer.__dataclass_fields__} - {"calls"}
    assert schemas["Error"]["required"] == ["error"]


def test_a_retrieval_is_that_of_the_index(http, index) -> None:
    asked = {"question": "a lantern and a violin", "mode": "level", "level": 0, "by": "dense"}
    found = http.ask("/retrieve", **asked, where=["author=Ada"])["nodes"]
    retriever = index.as_retriever(mode="level", level=0, by="dense")
    nodes = retriever.retrieve(asked["question"])
    given = [(each.node_id, each.text, each.path) for each in nodes]
    replied = http.ask("/retrieve", **asked)["nodes"]
    assert [(each["id"], each["text"], each["path"]) for each in replied] == given
    of_ada = [node.node_id for node in nodes if node.metadata["author"] == "Ada"]
    assert [each["id"] for each in found][: len(of_ada)] == of_ada
    assert {each["citations"][0]["document"] for each in found} == {"a.txt", "c.txt"}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "The body of the request must be a JSON object."),
        (b"[]", "The body of the request must be a JSON object."),
        (b"\xff\xfe", "The body of the request must be a JSON object."),
        (b'{"question": ' + b"[" * 10_000, "The body of the request must be a JSON object."),
        (b"{}", "question is missing."),
        (b'{"question": 1}', "question is invalid: it must be text, got 1."),
        (b'{"question": "a", "colour": "b"}', "There is no option 'colour'."),
        (b'{"question": "a", "min_score": false}', "min_score is invalid: it must be a number"),
        (b'{"question": "a", "mode": "level"}', "mode 'level' needs a level"),
        (b'{"question": "a", "mode": "auto", "level": 1}', "level needs mode"),
        (b'{"question": "a", "top_k": 1e99}', "top_k is invalid"),
        (b'{"question": "a", "level": "b"}', "level is invalid: it must be a whole number, top"),
        (b'{"question": "a", "mode": "b"}', "mode is invalid"),
        (b'{"question": "a", "level": false}', "level is invalid: it must be a whole number, top"),
        (b'{"question": "a", "where": [""]}', "A filter is KEY=VALUE"),
        (b'{"question": "a", "response_mode": "compact"}', "needs an LLM"),
        (b'{"question": "", "mode": "level", "level": 0}', "The question is empty"),
        (json.dumps({"question": [1] * 10_000}).encode(), "question is invalid"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_request_that_is_none_is_refused_in_a_sentence(http, body, said) -> None:
    answer = http.post("/query", content=body)
    assert answer.status_code == 400
    assert said in answer.json()["error"]
    assert len(answer.content) < 500


@pytest.mark.parametrize(
    ("path", "asked", "said"),
    [
        ("/query", {"question": "a", "level": 9}, "The index has levels 0 to"),
        ("/retrieve", {"question": "a", "where": ["autor=Ada"]}, "the nearest is author"),
        ("/retrieve", {"question": "harbour", "token_budget": 1}, "No retrieved node fits"),
        ("/outline", {"of": ["zz"]}, "No document has the id 'zz'"),
        ("/outline", {"budget": 1}, "No sentence fits a budget of 1 tokens"),
        ("/show", {"node": ""}, "nodes have an id that begins with ''"),
    ],
)
def test_what_the_index_does_not_hold_is_not_found(http, path, asked, said) -> None:
    assert said in http.sentence(path, 404, **asked)


@pytest.mark.parametrize(
    ("path", "name", "most"),
    [
        ("/retrieve", "top_k", 1000),
        ("/query", "token_budget", 100_000),
        ("/outline", "budget", 100_000),
    ],
)
def test_numbers_have_bounds_that_are_described(http, path, name, most) -> None:
    asked = {"question": "harbour"}
    assert http.ask(path, **asked, **{name: most})
    for number in (most + 1, 10**4000):
        said = http.sentence(path, **asked, **{name: number})
        assert said.startswith(f"{name} is invalid: it must be at most {most}, got 1")
    schemas = http.get("/openapi.json").json()["components"]["schemas"]
    limited = schemas[path[1:].title()]["properties"][name]
    assert limited.get("anyOf", [limited])[0]["maximum"] == most


def test_a_huge_body_is_refused_in_a_sentence(http) -> None:
    asked = {"question": "harbour " * 8_170, "level": 0, "by": "dense"}
    longest = json.dumps(asked).ljust(65_536)
    assert http.post("/retrieve", content=longest).status_code == 200
    for body in (f"{longest} ", (b" " * 2**16 for _ in range(40))):
        answer = http.post("/retrieve", content=body)
        assert answer.status_code == 413
        assert "The body of a request has at most 65,536 bytes" in answer.json()["error"]
    assert http.ask("/retrieve", question="harbour")["nodes"]


def test_other_machines_need_the_token(own) -> None:
    with serve(own, 0, "0.0.0.0") as server:
        assert "token" not in server.url
        url = f"http://127.0.0.1:{urlsplit(server.url).port}/health"
        for token in ("x", "a b", f"{server.token}x"):
            answer = httpx.get(url, headers={"Authorization": f"Bearer {token}"})
            assert (answer.status_code, [*answer.json()]) == (401, ["error"])
            assert answer.headers["www-authenticate"] == "Bearer"
        assert httpx.get(url, headers={"Authorization": f"Bearer {server.token}"}).is_success


def test_the_page_may_be_opened_with_the_token_and_from_a_link(own) -> None:
    navigates = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}
    with serve(own, 0) as server:
        assert httpx.get(server.url, headers=navigates).status_code == 200
    with serve(own, 0, "0.0.0.0") as server:
        page = server.page.replace(urlsplit(server.page).hostname, "127.0.0.1")
        assert httpx.get(page.partition("?")[0]).status_code == 401
        assert "POST /query" in httpx.get(page, follow_redirects=True).text


def test_many_at_once_get_what_each_gets_alone(http) -> None:
    words = "harbour lantern orchard glacier".split()

    def asked(word: str) -> bytes:
        return http.post("/retrieve", json={"question": word}).content

    alone = [*map(asked, words)]
    with ThreadPoolExecutor(16) as clients:
        assert [*clients.map(asked, words * 4)] == alone * 4


def test_few_threads_answer_at_once(own, monkeypatch) -> None:
    asking, most, lock = 0, 0, Lock()

    def slow(self, query):
        nonlocal asking, most
        with lock:
            asking += 1
            most = max(most, asking)
        time.sleep(0.02)
        with lock:
            asking -= 1
        return self._vector(query)

    monkeypatch.setattr(HashingEmbedding, "_get_query_embedding", slow)
    monkeypatch.setattr("hierindex.serve.app.AT_ONCE", 4)
    with serve(own, 0) as server, ThreadPoolExecutor(16) as clients:
        url = f"{server.url}retrieve"
        asked = [
            clients.submit(httpx.post, url, json={"question": str(i)}, timeout=60)
            for i in range(16)
        ]
        assert all(each.result().is_success for each in asked)
    assert 1 < most <= 5  # with the question at the start
