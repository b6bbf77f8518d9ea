"""A server of an index over standard input and output, with a model that is loaded at once."""

import os
import sys
from pathlib import Path

from fakes import HashingEmbedding

from hierindex import HierarchicalIndex, HierarchyStore
from hierindex.serve.mcp.server import run, server_of


class Talkative(HashingEmbedding):
    """A model that writes on standard output at each new question, as libraries do."""

    def _get_query_embedding(self, query: str) -> list[float]:
        if query not in ("warm", *self.queries):
            sys.stdout.write("A question.\n")
            sys.stdout.flush()
        return super()._get_query_embedding(query)


def serve(uri: str, folder: Path) -> None:
    """With the pipe `in` of a folder as standard input, `out` as output, and the file `err`."""
    for descriptor, name in enumerate(("in", "out", "err")):
        flags = os.O_RDONLY if name == "in" else os.O_WRONLY | os.O_CREAT
        os.dup2(os.open(folder / name, flags), descriptor)
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    run(server_of({"": HierarchicalIndex(HierarchyStore(uri), Talkative())}))
