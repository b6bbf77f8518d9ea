"""An OpenAI-compatible server on 127.0.0.1, for tests that talk to a real LLM client."""

import json
import re
import sys
import threading
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from select import select
from socket import MSG_DONTWAIT, MSG_PEEK, SHUT_RDWR, socket
from typing import Any, NamedTuple
from zlib import crc32


@dataclass(frozen=True)
class Fault:
    """What a request meets in the place of `reply`.

    A status other than 200 is an error in OpenAI's form with `code`. `text` is the completion,
    or an error's message. `body` is sent as it is, whatever the status. `delay` comes on top of
    the server's latency and ends when the client goes away. `dropped` cuts a stream half-way,
    else before any byte. `drips` sends one byte each 0.1 s, for as long as the client stays.
    """

    status: int = 200
    retry_after: float | None = None  # seconds
    code: str | None = None
    text: str | None = None
    finish_reason: str = "stop"
    body: str | None = None
    content_type: str = "application/json"
    delay: float = 0.0  # seconds
    dropped: bool = False
    drips: bool = False


TOO_LONG = Fault(400, code="context_length_exceeded")
NO_QUOTA = Fault(429, code="insufficient_quota")
FILTERED = Fault(400, code="content_filter")
EMPTY = Fault(text="")
REFUSAL = Fault(text="I'm sorry, but I can't help with that.")
CUT_OFF = Fault(text="The keeper wrote to the harbour that the", finish_reason="length")
NO_JSON = Fault(body='{"choices": [{"mess')
OTHER_JSON = Fault(body='{"status": "ok"}')
WEB_PAGE = Fault(body="<html>Come in.</html>", content_type="text/html")


@dataclass(frozen=True)
class Request:
    """A completion request as it came in; `prompt` joins the contents of all messages."""

    path: str
    body: dict[str, Any]
    prompt: str
    authorization: str | None


class Tokens(NamedTuple):
    """What a completion reports, or would if it were asked."""

    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True)
class Outcome:
    """What became of a request; `tokens` are those of a completion that was sent whole."""

    fault: Fault | None = None
    tokens: Tokens | None = None


class Answered(NamedTuple):
    """Requests that got a whole completion, and the sums of their tokens."""

    requests: int
    prompt_tokens: int
    completion_tokens: int


def first_words(prompt: str) -> str:
    """Return the first 12 words between the prompt's fences, or else of its last paragraph."""
    fenced = re.search(r"(?ms)^(=== \w+ ===)$\n(.*?)\n^\1$", prompt)
    asked = fenced[2] if fenced else prompt.strip().split("\n\n")[-1]
    return " ".join(asked.split()[:12])


def names_words(prompt: str) -> str:
    """Return a sentence on words of the prompt's longest paragraph; no two prompts get the same."""
    longest = max(prompt.split("\n\n"), key=len)
    words = list(dict.fromkeys(re.findall(r"\b[^\W\d_]{3,12}\b", longest)))
    named = ", ".join(words[:: len(words) // 8 + 1])
    return f"The passages tell of {named} and {crc32(prompt.encode())}."


def quotes_sentences(prompt: str) -> str:
    """Return two sentences between the prompt's fences, which the prompt determines.

    As a summary, they are supported by their sources. Without fences, it is `names_words`.
    """
    fenced = re.search(r"(?ms)^(=== \w+ ===)$\n(.*?)\n^\1$", prompt)
    if fenced is None:
        return names_words(prompt)
    text = fenced[2]
    sentences = re.findall(r"[^.!?\n]+[.!?]", text) or [text]
    i = crc32(prompt.encode()) % len(sentences)
    return " ".join(dict.fromkeys(s.strip() for s in (sentences[i - 1], sentences[i])))


def count_words(text: str) -> int:
    """Return how many words the text has."""
    return len(text.split())


def prompt_in(body: dict[str, Any]) -> str:
    """Return the contents of all messages of a request, joined."""
    contents = [message["content"] for message in body.get("messages", [])] or [body["prompt"]]
    parts = [part for c in contents for part in (c if isinstance(c, list) else [c or ""])]
    return "\n\n".join(part if isinstance(part, str) else part.get("text", "") for part in parts)


def words(text: str) -> list[str]:
    """Return the words of a text, each with the blank before it."""
    return re.split("(?= )", text)


def as_text(piece: str) -> dict[str, Any]:
    """Return a message whose content is a text."""
    return {"content": piece}


def answers_to(
    request: Request,
    text: str,
    finish_reason: str,
    tokens: Tokens,
    cut: Callable[[str], list[str]] = words,
    message: Callable[[str], dict[str, Any]] = as_text,
) -> list[dict[str, Any]]:
    """Return the whole answer; or of a stream an event per piece, then the usage if asked for.

    The answer to a request with tools is a call of the first one with the text as its arguments.
    """
    stream, chat = request.body.get("stream"), "messages" in request.body
    said = "delta" if stream else "message"
    tools = request.body.get("tools")
    choices: list[dict[str, Any]] = [
        {said: _called(tools[0], piece) if tools else {"role": "assistant"} | message(piece)}
        if chat
        else {"text": piece}
        for piece in (cut(text) if stream else [text])
    ]
    for choice in choices:
        choice |= {"index": 0, "finish_reason": finish_reason if choice is choices[-1] else None}
    usage = {**tokens._asdict(), "total_tokens": sum(tokens)}
    named = {"id": "loopback", "created": 0, "model": request.body["model"]}
    if not stream:
        return [named | {"choices": choices, "usage": usage}]
    events = [named | {"choices": [choice]} for choice in choices]
    asked = (request.body.get("stream_options") or {}).get("include_usage")
    return [*events, named | {"choices": [], "usage": usage}] if asked else events


def _called(tool: dict[str, Any], arguments: str) -> dict[str, Any]:
    function = {"name": tool["function"]["name"], "arguments": arguments}
    call = {"index": 0, "id": "call", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _is_open(connection: socket) -> bool:
    """Whether the client has not gone away."""
    try:
        return connection.recv(1, MSG_PEEK | MSG_DONTWAIT) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


class Handler(BaseHTTPRequestHandler):
    """Answers a request as the server says."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: "LoopbackServer"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = Request(self.path, body, prompt_in(body), self.headers["Authorization"])
        with self.server.in_flight(request, self.connection) as number:
            fault = self._fault(number, request)
            select([self.connection], [], [], self.server.latency + fault.delay)
            completes = fault.status == 200 and fault.body is None and not fault.drips
            completes = completes and _is_open(self.connection)
            text = fault.text or ""
            if completes and fault.text is None:
                text = self.server.reply(request.prompt)
        tokens = Tokens(self.server.count(request.prompt), self.server.count(text))
        whole = completes and not fault.dropped and _is_open(self.connection)
        # Noted before it is sent, so that a client that has it finds it in the log.
        self.server.outcomes[number] = Outcome(fault, tokens if whole else None)
        try:
            form = self.server.cut, self.server.message
            self._answer(
                request, fault, answers_to(request, text, fault.finish_reason, tokens, *form)
            )
        except ConnectionError:
            self.server.outcomes[number] = Outcome(fault)
            raise

    def _fault(self, number: int, request: Request) -> Fault:
        if self.path not in ("/v1/chat/completions", "/v1/completions"):
            return Fault(404)
        window, n_tokens = self.server.window, self.server.count(request.prompt)
        fault = self.server.faults(number) or Fault()
        if fault == Fault() and window is not None and n_tokens > window:
            said = f"This model's maximum context length is {window} tokens, got {n_tokens}."
            return replace(TOO_LONG, text=said)
        return fault

    def _answer(self, request: Request, fault: Fault, answers: list[dict[str, Any]]):
        if not _is_open(self.connection):
            self.close_connection = True
        elif fault.drips:
            self._drip()
        elif fault.body is not None:
            self._send(fault.body, fault)
        elif fault.status != 200:
            message = fault.text or f"fault {fault.status}"
            self._send(json.dumps({"error": {"message": message, "code": fault.code}}), fault)
        elif request.body.get("stream"):
            self._stream(answers, fault)
        elif fault.dropped:
            self.close_connection = True
        else:
            self._send(json.dumps(answers[0]))

    def _send(self, value: str, fault: Fault = Fault()):
        content = value.encode()
        self.send_response(fault.status)
        self.send_header("Content-Type", fault.content_type)
        self.send_header("Content-Length", str(len(content)))
        if fault.retry_after is not None:
            self.send_header("Retry-After", f"{fault.retry_after:g}")
        self.end_headers()
        self.wfile.write(content)

    def _drip(self):
        """A header without an end: no client's timeout between bytes ends it."""
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Drip: ")
        while _is_open(self.connection):
            self.wfile.write(b".")
            select([self.connection], [], [], 0.1)
        self.close_connection = True

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

    `reply` gets the prompt; `faults` gets the request's number, its index in `requests` and
    in `outcomes`. `cut` gives the pieces of a streamed text, and `message` the message that a text
    or a piece becomes. A prompt of more than `window` tokens, as `count` counts them, is an error.
    A request is in flight from its arrival until its answer is about to be sent or its client
    goes away.
    """

    daemon_threads = False  # so that closing joins them
    request_queue_size = 256  # the default of 5 makes a burst wait for retransmissions

    def __init__(
        self,
        reply: Callable[[str], str] = first_words,
        faults: Callable[[int], Fault | None] = lambda number: None,
        latency: float = 0.0,  # seconds
        window: int | None = None,
        count: Callable[[str], int] = count_words,
        cut: Callable[[str], list[str]] = words,
        message: Callable[[str], dict[str, Any]] = as_text,
    ):
        super().__init__(("127.0.0.1", 0), Handler)
        self.reply, self.faults, self.latency = reply, faults, latency
        self.window, self.count = window, count
        self.cut, self.message = cut, message
        self.base_url = f"http://127.0.0.1:{self.server_port}/v1"
        self.requests: list[Request] = []
        self.outcomes: list[Outcome] = []  # one without a fault: not yet known
        self.most_in_flight = 0
        self._lock = threading.Lock()
        self._connections: set[socket] = set()
        self._waiting: set[socket] = set()  # for an answer

    @property
    def answered(self) -> Answered:
        """Return what all completions together cost that were sent whole."""
        tokens = [outcome.tokens for outcome in self.outcomes if outcome.tokens is not None]
        sums = Tokens(*map(sum, zip(*tokens, strict=True))) if tokens else Tokens(0, 0)
        return Answered(len(tokens), *sums)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *exc_info: object):
        self.shutdown()
        for connection in self._connections.copy():
            with suppress(OSError):  # its thread may have closed it meanwhile
                connection.shutdown(SHUT_RDWR)  # which ends the wait for its client, too
        self.server_close()

    @contextmanager
    def in_flight(self, request: Request, connection: socket):
        with self._lock:
            self.requests.append(request)
            self.outcomes.append(Outcome())
            number = len(self.requests) - 1
            self._waiting.add(connection)
            self.most_in_flight = max(self.most_in_flight, sum(map(_is_open, self._waiting)))
        try:
            yield number
        finally:
            with self._lock:
                self._waiting.discard(connection)

    def process_request(self, request: Any, client_address: Any):
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any):
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any):
        if not isinstance(sys.exception(), ConnectionError):  # a client may go away
            super().handle_error(request, client_address)
