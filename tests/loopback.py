"""An OpenAI-compatible server on 127.0.0.1, for tests that talk to a real LLM client."""

import json
import re
import sys
import threading
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR, socket
from typing import Any


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request; `dropped` cuts a stream half-way, else before any byte."""

    status: int = 200
    retry_after: float | None = None  # seconds
    empty: bool = False
    dropped: bool = False


@dataclass(frozen=True)
class Request:
    """A completion request as it came in; `prompt` joins the contents of all messages."""

    path: str
    body: dict[str, Any]
    prompt: str
    authorization: str | None


def first_words(prompt: str) -> str:
    """Return the first 12 words between the prompt's fences, or else of its last paragraph."""
    fenced = re.search(r"(?ms)^(=== \w+ ===)$\n(.*?)\n^\1$", prompt)
    asked = fenced[2] if fenced else prompt.strip().split("\n\n")[-1]
    return " ".join(asked.split()[:12])


def _prompt(body: dict[str, Any]) -> str:
    contents = [message["content"] for message in body.get("messages", [])] or [body["prompt"]]
    parts = [part for c in contents for part in (c if isinstance(c, list) else [c or ""])]
    return "\n\n".join(part if isinstance(part, str) else part.get("text", "") for part in parts)


def _answers(request: Request, text: str) -> list[dict[str, Any]]:
    """Return the whole answer; or of a stream an event per word, then the usage if asked for."""
    stream, chat = request.body.get("stream"), "messages" in request.body
    said = "delta" if stream else "message"
    choices: list[dict[str, Any]] = [
        {said: {"role": "assistant", "content": piece}} if chat else {"text": piece}
        for piece in (re.split("(?= )", text) if stream else [text])
    ]
    for choice in choices:
        choice |= {"index": 0, "finish_reason": "stop" if choice is choices[-1] else None}
    n_prompt, n_text = len(request.prompt.split()), len(text.split())
    usage = {"prompt_tokens": n_prompt, "completion_tokens": n_text}
    usage["total_tokens"] = n_prompt + n_text
    named = {"id": "loopback", "created": 0, "model": request.body["model"]}
    if not stream:
        return [named | {"choices": choices, "usage": usage}]
    events = [named | {"choices": [choice]} for choice in choices]
    asked = (request.body.get("stream_options") or {}).get("include_usage")
    return [*events, named | {"choices": [], "usage": usage}] if asked else events


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: "LoopbackServer"

    def do_GET(self):
        self._send({"object": "list", "data": [{"id": "loopback", "object": "model"}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = Request(self.path, body, _prompt(body), self.headers["Authorization"])
        with self.server.in_flight(request) as number:
            self.server.closing.wait(self.server.latency)
            fault = self.server.faults(number) or Fault()
            if self.path not in ("/v1/chat/completions", "/v1/completions"):
                fault = Fault(404)
            silent = fault.empty or fault.status != 200
            text = "" if silent else self.server.reply(request.prompt)
        if fault.status != 200:
            self._send({"error": {"message": f"fault {fault.status}"}}, fault)
        elif body.get("stream"):
            self._stream(_answers(request, text), fault)
        elif fault.dropped:
            self.close_connection = True
        else:
            self._send(_answers(request, text)[0])

    def _send(self, value: Any, fault: Fault | None = None):
        content = json.dumps(value).encode()
        self.send_response(fault.status if fault else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if fault and fault.retry_after is not None:
            self.send_header("Retry-After", f"{fault.retry_after:g}")
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, events: list[dict[str, Any]], fault: Fault):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        data = [f"data: {json.dumps(event)}\n\n".encode() for event in events]
        whole = [*data, b"data: [DONE]\n\n", b""]
        for chunk in data[: len(data) // 2] if fault.dropped else whole:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        self.close_connection = fault.dropped

    def log_message(self, *args: Any):
        pass


class LoopbackServer(ThreadingHTTPServer):
    """Serves chat and text completions, streamed or whole, while its `with` block lasts.

    `reply` gets the prompt; `faults` gets the request's number, its index in `requests`.
    A request is in flight from its arrival until its answer is about to be sent.
    """

    daemon_threads = False  # so that closing joins them
    request_queue_size = 256  # the default of 5 makes a burst wait for retransmissions

    def __init__(
        self,
        reply: Callable[[str], str] = first_words,
        faults: Callable[[int], Fault | None] = lambda number: None,
        latency: float = 0.0,  # seconds
    ):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reply, self.faults, self.latency = reply, faults, latency
        self.base_url = f"http://127.0.0.1:{self.server_port}/v1"
        self.requests: list[Request] = []
        self.most_in_flight = self._now_in_flight = 0
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._connections: set[socket] = set()

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *exc_info: object):
        self.closing.set()
        self.shutdown()
        for connection in self._connections.copy():
            with suppress(OSError):  # its thread may have closed it meanwhile
                connection.shutdown(SHUT_RDWR)
        self.server_close()

    @contextmanager
    def in_flight(self, request: Request):
        with self._lock:
            self.requests.append(request)
            number = len(self.requests) - 1
            self._now_in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._now_in_flight)
        try:
            yield number
        finally:
            with self._lock:
                self._now_in_flight -= 1

    def process_request(self, request: Any, client_address: Any):
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any):
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any):
        if not isinstance(sys.exception(), ConnectionError):  # a client may go away
            super().handle_error(request, client_address)
