"""How a parent's metadata follows from its children's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierindex.tree.nodes import MAX_DISTINCT, merged_metadata

CASES = {
    "shared value": ([{"a": 1}, {"a": 1}], {"a": 1}),
    "shared list": ([{"a": [1, 2]}, {"a": [1, 2]}], {"a": [1, 2]}),
    "differing values": ([{"a": 1}, {"a": 2}], {"a": [1, 2]}),
    "missing in one": ([{"a": 1}, {}], {"a": [1]}),
    "lists are opened": ([{"a": [1, 2]}, {"a": 2}], {"a": [1, 2]}),
    "not hashable": ([{"a": {"b": 1}}, {"a": {"b": 2}}], {"a": [{"b": 1}, {"b": 2}]}),
    "pages": ([{"page": 3}, {"page": 9}, {"page": 4}], {"page": [3, 9]}),
    "ranges of pages": ([{"page": [3, 5]}, {"page": 9}], {"page": [3, 9]}),
    "one page": ([{"page": 3}, {"page": 3}], {"page": 3}),
    "days": (
        [{"date": "2024-05-01"}, {"date": "2023-01-09"}],
        {"date": ["2023-01-09", "2024-05-01"]},
    ),
    "pages without order": ([{"page_label": "ii"}, {"page_label": 4}], {"page_label": ["ii", 4]}),
    "one section": ([{"section": "A › B"}, {"section": "A › B"}], {"section": "A › B"}),
    "sections": (
        [{"section": "A › B"}, {"section": "A › C › D"}, {"section": "A › B"}],
        {"section": "A", "sections": ["A › B", "A › C › D"]},
    ),
    "titles that begin alike": (
        [{"section": "A › Bee"}, {"section": "A › Be"}],
        {"section": "A", "sections": ["A › Bee", "A › Be"]},
    ),
    "other sections": ([{"section": "A"}, {"section": "B"}], {"sections": ["A", "B"]}),
    "sections of summaries": (
        [{"sections": ["A", "B"]}, {"section": "C"}, {"section": "D", "sections": ["D", "D › E"]}],
        {"sections": ["A", "B", "C", "D", "D › E"]},
    ),
    "no section in one": ([{"section": "A"}, {}], {}),
    "sections that are no paths": ([{"section": 1}, {"section": 2}], {"section": [1, 2]}),
    "of many values some": ([{"a": i} for i in range(50)], {"a": [*range(MAX_DISTINCT)]}),
    "none": ([], {}),
}


@pytest.mark.parametrize(("children", "merged"), CASES.values(), ids=CASES)
def test_merge(children, merged) -> None:
    assert merged_metadata(children) == merged


def test_a_rule_can_be_replaced() -> None:
    children = [{"a": 1, "b": 1}, {"a": 5, "b": 2}]
    assert merged_metadata(children, {"a": sum, "b": lambda values: None}) == {"a": 6}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=5,
)


KEYS = st.sampled_from(["a", "page", "date", "section"])


@given(st.lists(st.dictionaries(KEYS, json_values), max_size=5))
def test_any_metadata_merges(children) -> None:
    merged = merged_metadata(children)
    assert set(merged) - {"sections"} <= {key for child in children for key in child}
    assert len(merged.get("sections", ())) != 1
