"""Commands that run until they are stopped."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from hierindex.cli.output import print_note


@contextmanager
def until_stopped(sentence: str) -> Iterator[None]:
    """End the block with Ctrl-C and SIGTERM, and print a sentence then."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        print_note(sentence)
    finally:
        signal.signal(signal.SIGTERM, before)
