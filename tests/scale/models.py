"""Embedding models that say what they are asked, by which process, and others that are odd."""

import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from fakes import HashingEmbedding

from hierindex import RaptorHierarchy
from hierindex.core.tree import ByMixture


class Asked(NamedTuple):
    """Texts that a process embedded."""

    process: int
    node: str
    texts: list[str]


class Telling(HashingEmbedding):
    """Appends what it is asked to a file, and may die once of a word.

    The process that is the first to be asked for a text with the word `deadly` is killed.
    """

    file: str
    deadly: str = ""

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        if self.deadly and any(self.deadly in text for text in texts):
            died = Path(f"{self.file}.died")
            if not died.exists():
                died.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        import ray

        node = ray.get_runtime_context().get_node_id() if ray.is_initialized() else ""
        with Path(self.file).open("a") as file:
            file.write(json.dumps(Asked(os.getpid(), node, texts)) + "\n")
        return super()._get_text_embeddings(texts)

    def asked(self) -> list[Asked]:
        return [Asked(*json.loads(line)) for line in Path(self.file).read_text().splitlines()]


class SmallPools(RaptorHierarchy):
    """RAPTOR's grouping of seven leaves at a time."""

    def _by_mixture(self) -> ByMixture:
        return replace(super()._by_mixture(), max_pool=7)


class Slow(HashingEmbedding):
    """Takes a moment for each batch."""

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        time.sleep(0.5)
        return super()._get_text_embeddings(texts)


class Different(HashingEmbedding):
    """A model whose vectors differ in each process."""

    @property
    def fingerprint(self) -> str:
        return str(os.getpid())
