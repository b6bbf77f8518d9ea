"""Writers of one process take turns, on whatever event loops they run."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Lock

A_MOMENT = 0.005  # seconds


@asynccontextmanager
async def turn(lock: Lock) -> AsyncIterator[None]:
    """Hold a lock; wait for it without blocking the event loop, and leave nothing if cancelled."""
    while not lock.acquire(blocking=False):
        await asyncio.sleep(A_MOMENT)
    try:
        yield
    finally:
        lock.release()
