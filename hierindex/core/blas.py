"""Limit of BLAS and OpenMP to one thread."""

from collections.abc import Generator
from contextlib import contextmanager
from threading import RLock

_ALONE = RLock()


@contextmanager
def one_thread() -> Generator[None]:
    """Limit numeric libraries to one thread, for reproducible sums and fast small arrays.

    The limit applies to the whole process, so concurrent callers wait for each other.
    """
    import sklearn  # noqa: F401 - loads OpenMP and BLAS, as libraries loaded later have no limit
    from threadpoolctl import threadpool_limits

    with _ALONE, threadpool_limits(1):
        yield
