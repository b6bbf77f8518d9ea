"""Files of batches: requests and answers, one a line."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from hierindex.core.identity import digest

MOST_LINES, MOST_BYTES = 50_000, 200_000_000  # of a batch, as OpenAI documents


@dataclass(frozen=True)
class Line:
    """A request in a batch: `url` begins with /v1/, whatever the path of the service."""

    url: str
    body: dict[str, Any]

    @cached_property
    def custom_id(self) -> str:
        """Digest of all of the request, by which its answer is known."""
        return digest("line", self.url, json.dumps(self.body, sort_keys=True))

    def to_json(self) -> bytes:
        """Return the line of the input file."""
        line = {"custom_id": self.custom_id, "method": "POST", "url": self.url, "body": self.body}
        return json.dumps(line).encode() + b"\n"


class Answer(NamedTuple):
    """The answer to a request of a batch."""

    status: int  # of HTTP
    body: Any

    @property
    def is_success(self) -> bool:
        """Whether it is no error."""
        return self.status == 200

    @property
    def n_tokens(self) -> int:
        """Tokens that it reports, of prompt and completion together."""
        usage = self.body.get("usage") if isinstance(self.body, dict) else None
        total = usage.get("total_tokens") if isinstance(usage, dict) else None
        return total if isinstance(total, int) else 0


def parts(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Yield the lines of input files that are within the limits."""
    part, n_bytes = list[Line](), 0
    for line in lines:
        n_more = len(line.to_json())
        if part and (len(part) == MOST_LINES or n_bytes + n_more > MOST_BYTES):
            yield part
            part, n_bytes = [], 0
        part.append(line)
        n_bytes += n_more
    if part:
        yield part


def lines_of(content: bytes) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file that have an id; the last may be cut off."""
    for line in content.splitlines():
        with suppress(ValueError):
            read = json.loads(line)
            if isinstance(read, dict) and isinstance(read.get("custom_id"), str):
                yield read


def answer_in(line: dict[str, Any]) -> Answer | None:
    """Return the answer in a line of an output or error file, if it has one."""
    response = line.get("response")
    if not isinstance(response, dict) or not isinstance(response.get("status_code"), int):
        return None
    return Answer(response["status_code"], response.get("body"))
