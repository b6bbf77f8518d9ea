"""The reference, of which every public name has one place."""

import re
from collections import Counter
from types import ModuleType

import pytest
from docs.markdown_pages import NOTEBOOKS

import hierindex
from hierindex import evaluate, export, rules, scale, serve, summarize, text

DOCUMENTED = Counter(
    name
    for page in (NOTEBOOKS / "reference").glob("*.md")
    for name in re.findall(r"(?m)^\.\. auto\w+:: (\S+)$", page.read_text())
)


@pytest.mark.parametrize(
    "module",
    [hierindex, evaluate, export, rules, scale, serve, summarize, text],
    ids=lambda module: module.__name__,
)
def test_every_public_name_stands_in_one_place(module) -> None:
    names = {
        f"{module.__name__}.{name}"
        for name in module.__all__
        if not isinstance(getattr(module, name), ModuleType)
    }
    assert names
    assert {name: DOCUMENTED[name] for name in names} == dict.fromkeys(names, 1)


def test_nothing_is_documented_twice() -> None:
    assert {*DOCUMENTED.values()} == {1}
