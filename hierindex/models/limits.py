"""Limits on concurrent requests and on spent tokens."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

from llama_index.core.utils import get_tokenizer

from hierindex.errors import LimitError
from hierindex.models.record import Request
from hierindex.threads import wait_until


class RequestLimit:
    """A limit on concurrent requests that threads share.

    Parameters
    ----------
    most : int
        Maximum number of requests in flight.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._in_flight = 0
        self._changed = Condition()

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Wait until a request may be sent, and count it as in flight during the block."""
        with self._changed:
            wait_until(self._changed, lambda: self._in_flight < self.most)
            self._in_flight += 1
        try:
            yield
        finally:
            with self._changed:
                self._in_flight -= 1
                self._changed.notify()


class TokenLimit:
    """A token budget that threads share.

    The maximum cost of a request is reserved before it is sent and replaced by its actual cost
    afterwards, which is 0 if it was not answered.

    Parameters
    ----------
    most : int
    spent : int
        Tokens that are already spent.
    completion_tokens : int
        Maximum tokens of an answer.
    """

    def __init__(self, most: int, spent: int = 0, completion_tokens: int = 0) -> None:
        self._most = most
        self._spent = spent
        self._completion_tokens = completion_tokens
        self._reserved = 0
        self._settled = Condition()

    @contextmanager
    def reserved(self, request: Request) -> Iterator[None]:
        """Reserve a request's maximum cost while it runs, then settle its actual cost.

        Raises
        ------
        LimitError
            If the tokens are not available even after all requests in flight have ended.
        """
        at_most = len(get_tokenizer()(request.prompt)) + 1 + self._completion_tokens
        with self._settled:
            wait_until(self._settled, lambda: self._holds(at_most) or not self._reserved)
            if not self._holds(at_most):
                raise LimitError(
                    f"{self._spent:,} of the {self._most:,} tokens of the budget are spent and the "
                    f"next request may take {at_most:,}"
                )
            self._reserved += at_most
        try:
            yield
        finally:
            with self._settled:
                self._reserved -= at_most
                if request.call is not None:
                    self._spent += request.call.prompt_tokens + request.call.completion_tokens
                self._settled.notify_all()

    def _holds(self, n_tokens: int) -> bool:
        return self._spent + self._reserved + n_tokens <= self._most
