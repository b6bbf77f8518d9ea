"""Refusal of the slices of nodes that `IngestionPipeline.run(num_workers=2)` makes."""

from multiprocessing.reduction import ForkingPickler
from typing import NoReturn

from hierindex.errors import InputError


def refuse_slices(cls: type) -> None:
    """Make `multiprocessing` refuse to send instances of a class to another process.

    Each process would make one tree of its slice of the nodes. `pickle` and `copy` are not
    affected.
    """
    ForkingPickler.register(cls, _refuse)


def _refuse(hierarchy: object) -> NoReturn:
    raise InputError(
        "A hierarchy needs all nodes at once, and IngestionPipeline with num_workers slices them; "
        "run the pipeline without num_workers, or make the hierarchy in the process that has all "
        "nodes."
    )
