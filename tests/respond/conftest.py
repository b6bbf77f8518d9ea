import pytest
from llama_index.core.settings import _Settings
from tenacity import wait_none


@pytest.fixture(autouse=True)
def no_default_llm(monkeypatch):
    """`Settings.llm` is never resolved."""

    def refuse(settings):
        raise AssertionError

    monkeypatch.setattr(_Settings, "llm", property(refuse))


@pytest.fixture(autouse=True)
def no_wait(monkeypatch):
    """What fails is tried again at once."""
    monkeypatch.setattr("hierindex.llm.served.WAIT", wait_none())
