"""Importing this grows a tree in memory, so that processes forked later need not load anything.

LanceDB is imported and not used, as its threads would not be in a fork.
"""

import lancedb  # noqa: F401
from edited_index import KINDS, Tree, chunks_of

from hierindex.jobs import build, job  # noqa: F401

_CHUNKS = chunks_of("", "\n\n".join(f"The keeper met boat {i} at the gate." for i in range(40)))
for _kind in KINDS:
    Tree(_kind, rewritten=True).hierarchy()(_CHUNKS)
