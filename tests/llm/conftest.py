"""What tests of batches share."""

import pytest

from hierindex.llm import batches


@pytest.fixture
def no_pauses(monkeypatch):
    """Looks at a batch follow on each other at once."""
    monkeypatch.setattr(batches, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(batches, "LONGEST_PAUSE", 0.0)
