"""Nodes that a parallel pipeline cuts into slices."""

import inspect
import multiprocessing

from hierindex.errors import InputError


def refuse_slices() -> None:
    """Refuse to build one tree for each slice that a parallel pipeline cuts its nodes into.

    `IngestionPipeline.run(num_workers=2)` hands every transform a slice in a process of its
    own. Nothing in the call tells so, but the caller's name does.

    Raises
    ------
    InputError
        If the caller is one of those processes.
    """
    if multiprocessing.parent_process() is None:
        return
    if any(frame.function.endswith("transformations_worker") for frame in inspect.stack(0)):
        raise InputError(
            "A hierarchy needs all nodes at once, and IngestionPipeline with num_workers slices "
            "them; run the pipeline without num_workers, or the hierarchy in a pipeline of its own."
        )
