"""Which failures of a request are tried again, how often, and after how long."""

from typing import Any

from tenacity import RetryCallState, retry_if_exception
from tenacity.wait import wait_base, wait_random_exponential

from hierindex.llm.checks import UnusableError
from hierindex.llm.failures import Failure, RequestError

ATTEMPTS = 5  # that fail
UNUSABLE = 2  # answers to one prompt; at temperature 0 a third would be no other
WAIT = wait_random_exponential(multiplier=0.5, max=20)


def attempts(wait: wait_base) -> dict[str, Any]:
    """What `Retrying` and `AsyncRetrying` take, for one prompt.

    Parameters
    ----------
    wait : wait_base
        Tenacity's, between attempts; a busy service is waited for by `AdaptiveLimit`.
    """
    n_failed = n_unusable = 0

    def again(error: BaseException) -> bool:
        nonlocal n_failed, n_unusable
        match error:
            case UnusableError():
                n_unusable += 1
                return error.again and n_unusable < UNUSABLE
            case RequestError(failure=Failure(kind="busy")):
                return True  # until `Service` gives it up
            case RequestError(failure=Failure(kind="again")):
                n_failed += 1
                return n_failed < ATTEMPTS
        return False

    def pause(state: RetryCallState) -> float:
        error = None if state.outcome is None else state.outcome.exception()
        busy = isinstance(error, RequestError) and error.failure.kind == "busy"
        return 0.0 if busy else wait(state)

    return {"retry": retry_if_exception(again), "wait": pause, "reraise": True}
