"""A machine that updates an index in an object store: a process that is told what to add.

It reads texts by document id as JSON, one object a line, and writes for each the generation that it
has published, or what it was told instead.
"""

import json
import sys

from fakes import HashingEmbedding
from llama_index.core.schema import Document

from hierindex import HierarchicalIndex
from hierindex.errors import InputError

for line in sys.stdin:
    documents = [Document(text=text, id_=name) for name, text in json.loads(line).items()]
    try:
        index = HierarchicalIndex.open(sys.argv[1], HashingEmbedding())
        said: int | str = index.update(documents).generation
    except InputError as error:
        said = str(error)
    print(json.dumps(said), flush=True)  # noqa: T201
