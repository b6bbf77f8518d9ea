"""The web page that describes a server's endpoints."""

from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import Any

FOLDER = Path(__file__).parent
KINDS = {"boolean": "true or false", "integer": "a whole number", "number": "a number"}
LIMITS = {"minimum": "from", "maximum": "to"}


def page_of(description: Mapping[str, Any], root: str) -> str:
    """Return the page for an OpenAPI description; `root` is the beginning of the paths."""
    page = Template((FOLDER / "api.html").read_text("utf-8"))
    endpoints = "\n".join(_endpoints(description["paths"]))
    return page.substitute(root=escape(root.rstrip("/")), endpoints=endpoints)


def _endpoints(paths: Mapping[str, Any]) -> Iterator[str]:
    for path, of_path in paths.items():
        beside = of_path.get("parameters", [])
        ((method, operation),) = ((k, v) for k, v in of_path.items() if v is not beside)
        fields = {each["name"]: each["schema"] for each in beside}
        for content in operation.get("requestBody", {}).get("content", {}).values():
            fields |= content["schema"]["properties"]
        rows = (
            f'<tr><th scope="row">{name}</th><td>{_described(schema)}</td></tr>\n'
            for name, schema in sorted(fields.items(), key=lambda field: "default" in field[1])
        )
        yield f"<h2><code>{method.upper()} {path}</code></h2>"
        yield f"<p>{escape(operation['summary'])}</p>"
        yield f"<table><tbody>\n{''.join(rows)}</tbody></table>" if fields else ""


def _described(schema: Mapping[str, Any]) -> str:
    default = schema.get("default", "")
    usual = f", by default {default}" if default else "" if "default" in schema else ", required"
    said = [_kind(schema) + usual, schema.get("description")]
    return "<br>".join(map(escape, filter(None, said)))


def _kind(schema: Mapping[str, Any]) -> str:
    """Describe in words which values a schema allows."""
    if "enum" in schema:
        return ", ".join(filter(None, schema["enum"]))
    if "anyOf" in schema:
        kinds = (each for each in schema["anyOf"] if each["type"] != "null")
        return " or ".join(map(_kind, kinds))
    if schema["type"] == "array":
        return f"list of {_kind(schema['items'])}"
    limits = (f"{words} {schema[key]:,}" for key, words in LIMITS.items() if key in schema)
    return " ".join([KINDS.get(schema["type"], "text"), *limits])
