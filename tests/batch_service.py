"""OpenAI's Batch API on 127.0.0.1, beside chat completions: `/v1/files` and `/v1/batches`.

It keeps to the published reference: which fields objects have, which states follow on each other,
which requests are errors, and that the lines of an output file are in no particular order.
"""

import json
import time
from collections import Counter
from collections.abc import Callable
from email import message_from_bytes
from email.policy import HTTP
from typing import Any
from urllib.parse import parse_qs, urlsplit

from batch_states import ENDPOINTS, FAILED, Batch, Plan, error, line_errors
from loopback import (
    TOO_LONG,
    Fault,
    Handler,
    LoopbackServer,
    Request,
    Tokens,
    answers_to,
    names_words,
    prompt_in,
)

MISSING = Fault(dropped=True)  # of a line: neither in the output nor among the errors
TIMED_OUT = Fault(status=0, code="request_timeout")  # of a line: an error that is none of HTTP
NO_OBJECT = Fault(body="none")  # of a line: its response


class _BatchHandler(Handler):
    server: "BatchServer"

    def do_GET(self):  # noqa: N802
        self._serve()

    def do_DELETE(self):  # noqa: N802
        self._serve()

    def do_POST(self):  # noqa: N802
        if urlsplit(self.path).path in ENDPOINTS:
            super().do_POST()
        else:
            self._serve()

    def _serve(self):
        url = urlsplit(self.path)
        given = {name: values[0] for name, values in parse_qs(url.query).items()}
        content = self.rfile.read(int(self.headers["Content-Length"] or 0))
        number = len(self.server.calls)
        self.server.calls.append(f"{self.command} {url.path}")
        fault = self.server.api_faults(number) or Fault()
        if fault.status != 200 or fault.body is not None:
            refusal = json.dumps({"error": {"message": f"fault {fault.status}"}})
            self._send(fault.body or refusal, fault)
            return
        if not self.headers["Authorization"]:
            said: Any = _refused(401, "You didn't provide an API key.")
        else:
            said = self.server.serve(self.command, url.path, given, content, self.headers)
        if fault.dropped:  # done, and not told
            self.close_connection = True
        elif isinstance(said, Fault):
            self._send(json.dumps({"error": {"message": said.text, "code": said.code}}), said)
        else:
            self._send(said if isinstance(said, str) else json.dumps(said))


def _refused(status: int, message: str) -> Fault:
    return Fault(status, text=message)


class BatchServer(LoopbackServer):
    """A `LoopbackServer` with batches, which live until it is dropped.

    `plans` gets the number of a batch, and `line_faults` the prompt of a line. `api_faults` gets
    the number of a request to the Batch API, its index in `calls`; one that is `dropped` takes
    effect, and its answer is lost. A list has at most `page` items; without it, each page is the
    whole list, as some services have it. A batch fails if the prompts of all batches that are not
    over have more than `queue` tokens. A file has at most `largest` bytes.
    """

    handler = _BatchHandler

    def __init__(
        self,
        plans: Callable[[int], Plan] = lambda number: Plan(),
        line_faults: Callable[[str], Fault | None] = lambda prompt: None,
        api_faults: Callable[[int], Fault | None] = lambda number: None,
        page: int | None = 100,
        queue: int | None = None,
        largest: int | None = None,
        **settings: Any,
    ):
        super().__init__(**{"reply": names_words, **settings})
        self.plans, self.line_faults, self.api_faults = plans, line_faults, api_faults
        self.page, self.queue, self.largest = page, queue, largest
        self.now: Callable[[], float] = time.time
        self.calls: list[str] = []
        self.files: dict[str, dict[str, Any]] = {}
        self.contents: dict[str, str] = {}
        self.batches: list[Batch] = []
        self.done = Counter[str]()  # prompts of lines that were answered
        self.n_files = 0

    @property
    def paid(self) -> Counter[str]:
        """Return how often each prompt was answered, in batches and otherwise."""
        answered = zip(self.requests, self.outcomes, strict=True)
        return self.done + Counter(r.prompt for r, outcome in answered if outcome.tokens)

    def batch(self, asked: dict[str, Any]) -> Batch:
        """Make a batch of a file."""
        number = len(self.batches)
        lines = [json.loads(line) for line in self.contents[asked["input_file_id"]].splitlines()]
        made = Batch(number, self.plans(number), asked, lines, int(self.now()))
        made.errors = list(line_errors(lines, asked["endpoint"]))
        n_tokens = sum(
            self.count(prompt_of(line["body"]))
            for each in (*self.batches, made)
            if not (each.is_over or each.errors)
            for line in each.lines
        )
        if self.queue is not None and n_tokens > self.queue:
            said = f"Enqueued token limit reached for tiny. Limit: {self.queue:,} enqueued tokens."
            made.errors.append(error("token_limit_exceeded", said))
        if made.errors:
            made.plan = FAILED
        self.batches.append(made)
        return made

    def continue_with(self, plan: Plan) -> None:
        """Let the first batch, which has not ended, go on from the first state of a plan."""
        self.batches[0].plan, self.batches[0].n_looks = plan, 0

    def serve(self, method: str, path: str, given: dict, content: bytes, headers: Any) -> Any:
        """Return the answer to a request: JSON, a text or a fault."""
        match [method, *path.removeprefix("/v1/").split("/")]:
            case ["POST", "files"]:
                return self._upload(content, headers["Content-Type"])
            case ["GET", "files"]:
                purpose = given.get("purpose")
                files = [f for f in self.files.values() if purpose in (None, f["purpose"])]
                return self._page(files, given, 10_000)
            case ["DELETE", "files", name] if name in self.files:
                del self.files[name], self.contents[name]
                return {"id": name, "object": "file", "deleted": True}
            case ["GET", "files", name, "content"] if name in self.files:
                return self.contents[name]
            case ["POST", "batches"]:
                return self._create(json.loads(content))
            case ["GET", "batches"]:
                return self._page([each.to_json() for each in self.batches], given, 100)
            case ["GET", "batches", name] if name in {each.id for each in self.batches}:
                return self._look(next(each for each in self.batches if each.id == name))
        return _refused(404, f"No such object: {path}")

    def _upload(self, content: bytes, kind: str) -> Any:
        header = f"Content-Type: {kind}\r\n\r\n".encode()
        parts = {
            part.get_param("name", header="content-disposition"): part
            for part in message_from_bytes(header + content, policy=HTTP).iter_parts()
        }
        file, purpose = parts["file"], parts["purpose"].get_content().strip()
        if not file.get_filename().endswith(".jsonl") or purpose != "batch":
            return _refused(400, "Expected a .jsonl file with the purpose batch.")
        sent = file.get_payload(decode=True)
        if self.largest is not None and len(sent) > self.largest:
            return _refused(413, "Request Entity Too Large")
        return self.add(sent.decode(), file.get_filename(), purpose)

    def add(self, content: str, filename: str, purpose: str) -> dict[str, Any]:
        """Add a file."""
        self.n_files += 1
        file = {
            "id": f"file-{self.n_files}",
            "object": "file",
            "bytes": len(content.encode()),
            "created_at": int(self.now()),
            "filename": filename,
            "purpose": purpose,
            "status": "processed",
        }
        self.files[file["id"]], self.contents[file["id"]] = file, content
        return file

    def _create(self, asked: dict[str, Any]) -> Any:
        if asked["input_file_id"] not in self.files:
            return _refused(400, "Invalid input_file_id.")
        if asked["endpoint"] not in ENDPOINTS or asked["completion_window"] != "24h":
            return _refused(400, "Invalid endpoint or completion_window.")
        return self.batch(asked).to_json()

    def _page(self, items: list[dict], given: dict[str, str], most: int) -> dict[str, Any]:
        """Return a part of a list, newest first."""
        items = items[::-1]
        if self.page is None:
            return {"object": "list", "data": items}
        limit = min(int(given.get("limit", most)), most, self.page)
        ids = [item["id"] for item in items]
        first = ids.index(given["after"]) + 1 if "after" in given else 0
        data = items[first : first + limit]
        return {
            "object": "list",
            "data": data,
            "first_id": data[0]["id"] if data else None,
            "last_id": data[-1]["id"] if data else None,
            "has_more": first + limit < len(items),
        }

    def _look(self, batch: Batch) -> dict[str, Any]:
        """Take a batch to its next state."""
        before = batch.status
        batch.n_looks += 1
        if batch.status in ("completed", "expired", "cancelled") and before != batch.status:
            self._end(batch)
        return batch.to_json()

    def _end(self, batch: Batch) -> None:
        answered, errors = [], []
        for line in batch.lines[: batch.n_done]:
            request = Request(line["url"], line["body"], prompt_of(line["body"]), None)
            said = self._answer(request)
            if said is not None:
                is_done = '"status_code": 200' in json.dumps(said)
                (answered if is_done else errors).append(said_of(line, said))
        batch.n_failed = batch.n_done - len(answered)
        code = "batch_expired" if batch.status == "expired" else "batch_cancelled"
        for line in batch.lines[batch.n_done :]:
            error = {"code": code, "message": "This request was not executed."}
            errors.append(said_of(line, {"response": None, "error": error}))
        for name, lines in (("output_file_id", answered), ("error_file_id", errors)):
            if lines:
                content = "".join(json.dumps(line) + "\n" for line in lines[::-1])
                batch.files[name] = self.add(content, f"{batch.id}.jsonl", "batch_output")["id"]

    def _answer(self, request: Request) -> dict[str, Any] | None:
        """Return what the line of an answer has, if there is one."""
        fault = self.line_faults(request.prompt) or Fault()
        if self.window is not None and self.count(request.prompt) > self.window:
            fault = TOO_LONG
        if fault.dropped:
            return None
        if fault.body is not None:
            return {"response": fault.body, "error": None}
        if fault.status == 0:
            return {"response": None, "error": {"code": fault.code, "message": "It failed."}}
        text = self.reply(request.prompt) if fault.text is None else fault.text
        tokens = Tokens(self.count(request.prompt), self.count(text))
        answered = responses_to if "input" in request.body else answers_to
        body = answered(request, text, fault.finish_reason, tokens)[0]
        if fault.status != 200:
            body = {"error": {"message": f"fault {fault.status}", "code": fault.code}}
        else:
            self.done[request.prompt] += 1
        response = {"status_code": fault.status, "request_id": "r", "body": body}
        return {"response": response, "error": None}


def said_of(line: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """Return the line of an output or error file for a line of the input file."""
    return {"id": f"batch_req_{line['custom_id']}", "custom_id": line["custom_id"], **said}


def prompt_of(body: dict[str, Any]) -> str:
    """Return the prompt of a line, also of one for `/v1/responses`."""
    return prompt_in({"prompt": body["input"]} if "input" in body else body)


def responses_to(
    request: Request, text: str, finish_reason: str, tokens: Tokens
) -> list[dict[str, Any]]:
    """Return the answer of `/v1/responses`."""
    said = {"type": "output_text", "text": text, "annotations": []}
    message = {"type": "message", "id": "m", "role": "assistant", "content": [said]}
    usage = {
        "input_tokens": tokens.prompt_tokens,
        "output_tokens": tokens.completion_tokens,
        "total_tokens": sum(tokens),
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    named = {"id": "r", "object": "response", "created_at": 0, "model": request.body["model"]}
    named |= {"status": "completed", "tools": [], "tool_choice": "auto"}
    return [{**named, "output": [{**message, "status": "completed"}], "usage": usage}]
