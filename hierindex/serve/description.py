"""The description of endpoints by OpenAPI."""

from collections.abc import Mapping
from inspect import getdoc
from typing import Any

from pydantic import TypeAdapter

from hierindex import __version__
from hierindex.serve.endpoint import GENERATION, Endpoint

TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "Needed where other machines can ask; the server says it when it starts.",
}
ERROR = {
    "type": "object",
    "properties": {"error": {"type": "string", "description": "A sentence."}},
    "required": ["error"],
}


def described(endpoints: Mapping[str, type[Endpoint]]) -> dict[str, Any]:
    """Return the description of endpoints by their paths, as a document of OpenAPI 3.1."""
    schemas: dict[str, Any] = {"Error": ERROR}

    def schema_of(kind: Any) -> dict[str, Any]:
        schema = TypeAdapter(kind).json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(schema.pop("$defs", {}))
        return schema

    def operation(endpoint: type[Endpoint]) -> dict[str, Any]:
        asked = schema_of(endpoint)
        for name, most in endpoint.most.items():
            asked["properties"][name]["maximum"] = most
        found = _response("The answer.", schema_of(endpoint.answers()))
        number = {"schema": {"type": "integer"}, "description": "The generation that answers."}
        return {
            "operationId": endpoint.__name__.lower(),
            "summary": (getdoc(endpoint) or "").partition("\n")[0],
            **(_body(asked) if endpoint.method == "POST" else _parameters(asked)),
            "responses": {
                "200": {**found, "headers": {GENERATION: number}},
                "default": _response("An error.", {"$ref": "#/components/schemas/Error"}),
            },
        }

    paths = {path: {each.method.lower(): operation(each)} for path, each in endpoints.items()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "hierindex", "version": __version__},
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": TOKEN}},
    }


def _response(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _body(asked: dict[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": asked}}}}


def _parameters(asked: dict[str, Any]) -> dict[str, Any]:
    required = asked.get("required", ())
    return {
        "parameters": [
            {"name": name, "in": "query", "required": name in required, "schema": schema}
            for name, schema in asked["properties"].items()
        ]
    }
