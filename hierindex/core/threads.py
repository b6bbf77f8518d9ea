"""One thread for small arrays, and for results that do not depend on the number of threads."""

from collections.abc import Generator
from contextlib import contextmanager
from threading import RLock

_ALONE = RLock()


@contextmanager
def one_thread() -> Generator[None]:
    """Numeric libraries use one thread inside; who comes at the same time waits.

    The limit is the whole process's, so that two who set and lifted it at different times
    would leave it behind. Sums over several threads depend on which is done first, and for
    small arrays threads cost more than they bring: mixtures of 60 rows took 17 times as long
    on two.
    """
    from threadpoolctl import threadpool_limits

    with _ALONE, threadpool_limits(1):
        yield
