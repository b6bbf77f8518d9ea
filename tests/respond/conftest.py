import pytest
from llama_index.core.settings import _Settings


@pytest.fixture(autouse=True)
def no_default_llm(monkeypatch):
    """`Settings.llm` is never resolved."""

    def refuse(settings):
        raise AssertionError

    monkeypatch.setattr(_Settings, "llm", property(refuse))
