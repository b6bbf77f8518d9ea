"""The HTTP API of indexes: its endpoints, their description, and the server."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from inspect import getdoc
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from annotated_types import Le
from pydantic import ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict  # before Python 3.12, pydantic reads no other

from hierindex import __version__
from hierindex.core.arguments import require
from hierindex.errors import InputError, extra
from hierindex.index import HierarchicalIndex
from hierindex.respond.answer import Answer, Source, outline_json
from hierindex.respond.asking import MODES, NEED_LLM
from hierindex.retrieve.levels import WITH_LEVEL
from hierindex.retrieve.retrieval import LETTER, outlined
from hierindex.serve.endpoint import Endpoint, showing, written_by
from hierindex.settings import (
    HOST,
    OUTLINE_TOKENS,
    QUESTIONS_PORT,
    SEARCH,
    AnswerSettings,
    Count,
    Score,
    SearchSettings,
)
from hierindex.store.filters import BEGINS, known_filters
from hierindex.store.snapshot import Snapshot

with extra("serve", "The server needs"):
    from starlette.responses import HTMLResponse, JSONResponse
    from starlette.routing import BaseRoute, Route

    from hierindex.serve.app import EVENTS, application
    from hierindex.serve.server import Server

if TYPE_CHECKING:
    from hierindex.models.adapters import LLMLike

Tokens = Annotated[Count, Le(100_000)]
Text = Annotated[str, Field(json_schema_extra={"pattern": f"^(?!{LETTER}$)"})]
QUOTING = [mode for mode in MODES if mode not in NEED_LLM]
NONE, TAKING = {"type": "null"}, {"enum": [None, *WITH_LEVEL]}
LEVELS: dict[str, Any] = {  # as a mode takes them
    "if": {"required": ["mode"], "properties": {"mode": {"const": "level"}}},
    "then": {"required": ["level"], "properties": {"level": {"not": NONE}}},
    "else": {
        "if": {"required": ["mode"], "properties": {"mode": {"not": TAKING}}},
        "then": {"properties": {"level": NONE}},
    },
}
Where = Annotated[
    list[Annotated[str, Field(json_schema_extra={"pattern": BEGINS})]],
    Field(description="Filters KEY=VALUE, also with !=, <, <=, >, >= or ~ (contains)."),
]

STREAMS = (
    "With the header `Accept: text/event-stream`, the text of an answer comes as it is written, in "
    "events `text` before the event `answer`."
)
TOKEN = {"type": "http", "scheme": "bearer"}
PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="color-scheme" content="light dark">
<meta name="viewport" content="width=device-width">
<title>hierindex</title>
</head>
<body>
<h1>hierindex</h1>
<p>Requests and replies are JSON; <a href="/openapi.json">openapi.json</a> describes all fields.</p>
<dl>
{}
</dl>
</body>
</html>
"""


class Error(TypedDict):
    """A request that was refused or failed."""

    error: str


class Nodes(TypedDict):
    """Nodes with the scores of their search, and the sum of their tokens."""

    nodes: list[Source]
    tokens: int


class Healthy(TypedDict):
    """The version of hierindex, and the newest generation."""

    version: str
    generation: int


class Question(Endpoint):
    """A question about an index."""

    method: ClassVar[Literal["GET", "POST"]] = "POST"


@dataclass(frozen=True, kw_only=True)
class BoundedSearch(SearchSettings):
    """Search settings with upper limits."""

    top_k: Annotated[Count, Le(1000)] | None = SearchSettings.top_k
    token_budget: Tokens = SearchSettings.token_budget


class Retrieve(Question, BoundedSearch):  # type: ignore[misc]  # it is frozen, as all endpoints
    """The nodes retrieved for a question."""

    model_config: ClassVar[ConfigDict] = ConfigDict(json_schema_extra=LEVELS)
    reply: ClassVar[Any] = Nodes
    question: Text
    where: Where = Field(default=[])

    def answer_from(self, index: HierarchicalIndex, snapshot: Snapshot) -> dict[str, Any]:
        """Return the nodes like the sources of an answer, but with search scores only."""
        retrieval = index.as_retriever(**self.options(snapshot))
        return outline_json(retrieval.find(retrieval.embedded(self.question)))

    def options(self, snapshot: Snapshot) -> dict[str, Any]:
        """Return the options of `HierarchyRetriever`."""
        given = self.model_dump(include={*SEARCH.split()})
        return {**given, "filters": known_filters(self.where, snapshot)}


class Query(Retrieve):  # type: ignore[misc]
    """An answer with its sources."""

    reply: ClassVar[Any] = Answer
    response_mode: str | None = Field(default=None, json_schema_extra={"enum": [*QUOTING, None]})
    min_score: Score = AnswerSettings.min_score

    def answer_from(self, index: HierarchicalIndex, snapshot: Snapshot) -> dict[str, Any]:
        """Return the answer."""
        return index.ask(
            self.question,
            llm=self.llm,
            response_mode=self.response_mode,
            synthesizer={"min_score": self.min_score},
            show=showing.get(),
            **self.options(snapshot),
        ).to_json()


class Written(Query):  # type: ignore[misc]
    """An answer with its sources, written by the language model of the server."""

    response_mode: str | None = Field(default=None, json_schema_extra={"enum": [*MODES, None]})


class Outline(Question):
    """The nodes that best summarise an index, or a part of it, within a token budget."""

    reply: ClassVar[Any] = Nodes
    of: list[str] = Field(default=[])
    budget: Tokens = OUTLINE_TOKENS
    question: Text | None = None
    where: Where = Field(default=[])

    def answer_from(self, index: HierarchicalIndex, snapshot: Snapshot) -> dict[str, Any]:
        """Return the nodes in reading order, and the sum of their tokens."""
        filters = known_filters(self.where, snapshot)
        of, load = self.of or None, index.encoder
        return outline_json(outlined(index.table, load, self.budget, self.question, of, filters))


class Show(Question):
    """A node by its id or a prefix of it, optionally with the passages that it cites."""

    node: str
    source: bool = False

    def answer_from(self, index: HierarchicalIndex, snapshot: Snapshot) -> dict[str, Any]:
        """Return the node's text, position in the tree and citations."""
        shown = index.describe(self.node)
        if self.source:
            shown["passages"] = [each.to_json() for each in index.sources(shown["id"])]
        return shown


class Health(Endpoint):
    """Whether the index can be read."""

    reply: ClassVar[Any] = Healthy

    def answer_from(self, index: HierarchicalIndex, snapshot: Snapshot) -> dict[str, Any]:
        """Return the version of hierindex, and the number of the generation."""
        return {"version": __version__, "generation": snapshot.generation}


KINDS: tuple[type[Endpoint], ...] = (Query, Retrieve, Outline, Show, Health)
ENDPOINTS = {kind.__name__.lower(): kind for kind in KINDS}


def serve(
    index: HierarchicalIndex | Mapping[str, HierarchicalIndex],
    port: int | None = None,
    host: str = HOST,
    llm: "LLMLike | None" = None,
) -> Server:
    """Start the HTTP API in a thread; `/openapi.json` and the page at `/` describe it.

    Parameters
    ----------
    index : HierarchicalIndex or mapping of str to HierarchicalIndex
        With several indexes, paths begin with the index's name: `/minutes/query`.
    port : int, optional
        By default 8734, or a free port if it is in use; 0 for a free port.
    host : str
        Address to listen on; by default 127.0.0.1, which every user of this machine can reach. On
        an address that other machines can reach, requests need the server's token.
    llm : LLM or callable, optional
        Language model that answers; without one, passages are quoted.

    Returns
    -------
    Server
        Use it in a `with` block, which closes the server.

    Raises
    ------
    InputError
        If the extra `serve` is not installed, or the address or port cannot be used, or a name
        contains characters other than letters, digits, underscores, hyphens and dots.
    """
    indexes = index if isinstance(index, Mapping) else {"": index}
    given = bool(indexes) and all(isinstance(i, HierarchicalIndex) for i in indexes.values())
    require(given, "index", "a HierarchicalIndex, or several by their names", index)
    for name in indexes if [*indexes] != [""] else ():
        if not re.fullmatch("[A-Za-z0-9_][A-Za-z0-9_.-]*", name):  # a part of a URL
            raise InputError(
                f"An index's name must be of letters, digits, _, - and ., got {name!r}."
            )
    ports = (QUESTIONS_PORT, 0) if port is None else (port,)
    endpoints = ENDPOINTS if llm is None else {**ENDPOINTS, "query": written_by(llm, Written)}
    warm = (partial(Query(question="Is all loaded?").answer, i, {}) for i in indexes.values())
    names = [] if "" in indexes else [*indexes]
    app = application(indexes, endpoints, _pages(described(endpoints, names)))
    return Server(app, host, ports, warm)


def described(endpoints: Mapping[str, type[Endpoint]], names: Sequence[str] = ()) -> dict[str, Any]:
    """Return an OpenAPI 3.1 document that describes the endpoints.

    Their requests are JSON objects, or empty. `names` are the possible values of `{index}`, with
    which a path begins.
    """
    kinds = dict.fromkeys([Error, *chain(*((each, each.reply) for each in endpoints.values()))])
    schemas, definitions = TypeAdapter.json_schemas(
        [(kind, "validation", TypeAdapter(kind)) for kind in kinds],
        ref_template="#/components/schemas/{model}",
    )

    def json_of(kind: Any) -> dict[str, Any]:
        return {"application/json": {"schema": schemas[kind, "validation"]}}

    def operation(endpoint: type[Endpoint]) -> dict[str, Any]:
        answer = {**json_of(endpoint.reply), EVENTS: {"schema": {"type": "string"}}}
        body = {"requestBody": {"required": True, "content": json_of(endpoint)}}
        return {
            "operationId": endpoint.__name__.lower(),
            "summary": (getdoc(endpoint) or "").partition("\n")[0],
            **(body if endpoint.method == "POST" else {}),
            "responses": {
                "200": {"description": "The answer.", "content": answer},
                "default": {"description": "An error.", "content": json_of(Error)},
            },
        }

    index = {"name": "index", "in": "path", "required": True, "schema": {"enum": [*names]}}
    above, shared = ("/{index}/", {"parameters": [index]}) if names else ("/", {})
    paths = {
        f"{above}{name}": {each.method.lower(): operation(each), **shared}
        for name, each in endpoints.items()
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "hierindex", "version": __version__, "description": STREAMS},
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {
            "schemas": definitions.get("$defs", {}),
            "securitySchemes": {"token": TOKEN},
        },
    }


def _pages(description: Mapping[str, Any]) -> list[BaseRoute]:
    """Return the routes of a description: `/openapi.json`, and the page that lists its paths."""
    listed = "\n".join(
        f"<dt><code>{method.upper()} {path}</code></dt><dd>{escape(operation['summary'])}</dd>"
        for path, operations in description["paths"].items()
        for method, operation in operations.items()
        if method != "parameters"
    )

    return [
        Route("/openapi.json", lambda request: JSONResponse(description)),
        Route("/", lambda request: HTMLResponse(PAGE.format(listed))),
    ]
