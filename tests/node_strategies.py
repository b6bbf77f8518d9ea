"""Any node that hierindex may make or be given."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from llama_index.core.schema import ObjectType, RelatedNodeInfo

from hierindex import Grounding, Node, Quote, Span
from hierindex.node import EMBED_HIDDEN, LLM_HIDDEN, Maker

NUMBERS = st.integers(0, 10**12)
COUNTS = st.integers(0, 2**31 - 1)  # columns of a store
IDS = st.text(min_size=1, max_size=5)
PAGES = st.none() | COUNTS
SPANS = st.builds(Span, st.text(), NUMBERS, NUMBERS, PAGES, section=..., page_label=..., anchor=...)
BESIDE = st.lists(SPANS, max_size=3).map(tuple)
QUOTES = st.builds(Quote, NUMBERS, NUMBERS, st.none() | SPANS, st.booleans(), BESIDE)
KEYS = st.text(max_size=5) | st.sampled_from(["title", "level", "level_max", "grounding", "a {b}"])
REALS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | REALS
    | st.text(max_size=5)
    | st.sampled_from([" ", "{a}", "\n"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=3,
)
METADATA = st.dictionaries(KEYS, VALUES, max_size=4)
TEMPLATES = {
    "text_template": st.sampled_from(["{metadata_str}|{content}", "{content}\n", "({content})"]),
    "metadata_template": st.sampled_from(["{value} of {key}", "{key}", " "]),
    "metadata_separator": st.sampled_from(["; ", "", " "]),
    EMBED_HIDDEN: st.lists(KEYS, max_size=3),
    LLM_HIDDEN: st.lists(KEYS, max_size=3),
}
SOURCES = st.fixed_dictionaries(
    {"node_id": IDS, "metadata": METADATA, "hash": st.none() | st.text(max_size=5)}
).map(
    lambda fields: RelatedNodeInfo(**fields, node_type=ObjectType.DOCUMENT).model_dump(mode="json")
)
GROUNDINGS = st.builds(
    Grounding, *[NUMBERS] * 5, faults=st.lists(st.text(max_size=5), max_size=3).map(tuple)
)
NODES = st.builds(
    Node,
    id=IDS,
    text=st.text(),
    metadata=METADATA,
    level=COUNTS,
    level_max=COUNTS,
    kind=st.text(),
    title=st.text(),
    documents=st.lists(IDS, min_size=1, max_size=3).map(tuple),
    parents=st.lists(st.tuples(IDS, st.floats(0, 1)), max_size=3).map(tuple),
    children=st.lists(IDS, max_size=3, unique=True).map(tuple),
    previous=st.just("") | IDS,
    next=st.just("") | IDS,
    quotes=st.lists(QUOTES, max_size=5).map(tuple),
    n_tokens=COUNTS,
    grounding=st.none() | GROUNDINGS,
    whole_document=st.text(),
    document_hash=st.text(),
    read_from=st.text(),
    maker=st.builds(Maker, st.text(), st.text(), st.text(), st.text()),
    source=st.just({}) | SOURCES,
    others=st.fixed_dictionaries({EMBED_HIDDEN: st.just([]), LLM_HIDDEN: st.just([])}),
)
OTHERS = st.fixed_dictionaries({}, optional=TEMPLATES)
"""What a user's node may have beside."""
FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=32)
STORED = st.builds(
    replace,
    NODES,
    vector=st.lists(FLOATS, min_size=3, max_size=3).map(np.array),
    others=OTHERS,
    maker=st.none() | st.builds(Maker, st.text(max_size=5)),
)
COLLECTIONS = st.lists(STORED, min_size=1, max_size=4, unique_by=lambda node: node.id)
