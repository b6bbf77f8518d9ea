"""Known pairs of texts, on which the similarities of an embedding model are calibrated."""

from collections.abc import Callable, Sequence
from threading import Lock
from weakref import finalize

import numpy as np

from hierindex.core.membership import Floats2d

Embed = Callable[[Sequence[str]], Floats2d]
"""A function from texts to unit vectors (n_texts, n_dims)."""


class KnownPairs:
    """Pairs of texts, with a cache of their vectors for each embedding model.

    Parameters
    ----------
    pairs : str
        Two lines per pair: a text, and a text that belongs to it and to no other.
    beside : sequence of str
        Further texts to embed in the same batch.
    """

    def __init__(self, pairs: str, beside: Sequence[str] = ()) -> None:
        lines = [line.strip() for line in pairs.strip().splitlines()]
        self.sides = lines[::2], lines[1::2]
        self._texts = [*lines[::2], *lines[1::2], *beside]
        self._vectors: dict[int, list[Floats2d]] = {}  # by id, as models are not hashable
        self._lock = Lock()

    def vectors(self, model: object, embed: Embed) -> list[Floats2d]:
        """Return the vectors of the first texts, of the second, and of the texts beside.

        Parameters
        ----------
        model : object
            The vectors are cached until it is garbage-collected.
        embed : Embed
            The model's embedding function, called once per model, also by several threads.
        """
        with self._lock:
            if id(model) not in self._vectors:
                n = len(self.sides[0])
                self._vectors[id(model)] = np.split(embed(self._texts), [n, 2 * n])
                finalize(model, self._vectors.pop, id(model), None)
            return self._vectors[id(model)]


SUPPORT = KnownPairs("""
The ferry was cancelled because of high waves.
    Since the sea was too rough, no boat crossed to the island that day.
Most members voted against a higher fee.
    The proposal to raise the annual fee failed by nineteen votes to seven.
The enzyme breaks down starch in the mouth.
    Amylase in saliva begins to split starch into sugar while food is being chewed.
Her first novel found no publisher for years.
    Eleven houses had returned the manuscript before one of them agreed to print her novel.
Unemployment fell to its lowest level in a decade.
    At four percent, fewer people were out of work than in any of the ten years before.
The cache must be cleared after every update.
    Once the new version is installed, delete the cached files, or old pages will be shown.
The general ordered a retreat across the river.
    At dusk the commander sent word that all troops were to withdraw over the bridge.
Wild bees pollinate the orchard better than hives do.
    More blossoms set fruit where solitary bees nested than where keepers had put colonies.
The designer prefers a wooden handle to a plastic one.
    I would make the grip out of wood, she said, plastic feels cheap in the hand.
The defendant was acquitted for lack of evidence.
    As nothing proved that he had been in the house, the jury found him not guilty.
The planet turns once in about ten hours.
    Jupiter's day is the shortest of all, less than ten hours from one sunrise to the next.
The agency did not check how the grants were spent.
    No official had asked the recipients for receipts, so the use of the funds is unknown.
He learned to play the violin from his uncle.
    It was his mother's brother who put a fiddle into his hands and gave him lessons.
The bread should rest overnight in a cold place.
    Leave the dough in the refrigerator until the next morning before it is baked.
New trains will run every six minutes.
    From spring on, ten departures an hour are planned on the underground line.
The painting had been hidden behind a wall.
    When workmen removed the panelling, they came upon a portrait that nobody knew of.
Patients who slept longer recovered sooner from surgery.
    After the operation, those with eight hours of sleep went home two days earlier.
The glacier has lost a third of its ice.
    Measured against the maps of 1950, one third of the ice sheet has melted.
The teacher wants smaller classes in mathematics.
    With thirty pupils she cannot help anyone with algebra; fifteen, she says, would do.
The two companies agreed to share their patents.
    Under the contract, each firm may use the inventions of the other without a licence fee.
""")
"""Sentences and their sources, each on its own topic, so that it supports no other sentence."""
