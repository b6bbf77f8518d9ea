"""A server of an index over standard input and output, with a model that is loaded at once."""

import sys

from fakes import HashingEmbedding

from hierindex import HierarchyStore
from hierindex.serve.mcp.reader import Reader
from hierindex.serve.mcp.server import server_of


class Talkative(HashingEmbedding):
    """A model that writes on standard output, as libraries do."""

    def _get_query_embedding(self, query: str) -> list[float]:
        sys.stdout.write("A question.\n")
        sys.stdout.flush()
        return super()._get_query_embedding(query)


if __name__ == "__main__":
    server_of(lambda: Reader(HierarchyStore(sys.argv[1]), Talkative())).run()
