"""What Ctrl-C leaves behind, and commands that run until it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperCommand

from hierindex.cli.output import print_note

INTERRUPTED = 130  # exit status after Ctrl-C

WHOLE = "nothing unfinished was published"
KEPT = {
    "build": f"{WHOLE}, and the next build reuses what was read, embedded and written.",
    "update": f"{WHOLE}, and the next update reuses what was read, embedded and written.",
    "delete": f"{WHOLE}; `hierindex tree` shows which documents the index holds.",
    "rollback": f"{WHOLE}; `hierindex generations` lists them.",
    "verify": f"{WHOLE}; the next `hierindex verify` checks all of it again.",
    "evaluate": "finished indices are reused if --index is given.",
    "demo": f"{WHOLE}, and the next demo reuses what was read and embedded.",
    "export": "no unfinished file is left.",
    "report": "no unfinished file is left.",
}
"""What is left of the work of a command that changes something."""


class Command(TyperCommand):
    """A command that says after Ctrl-C what is kept."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print_note(f"Interrupted; {KEPT.get(str(self.name), 'nothing was changed.')}")
            raise typer.Exit(INTERRUPTED) from None


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
