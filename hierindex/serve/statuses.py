"""The HTTP statuses of errors."""

from hierindex.errors import HierindexError, IndexNotFoundError, InputError, ModelError

STATUSES: dict[int, type[HierindexError]] = {
    404: IndexNotFoundError,
    400: InputError,
    503: ModelError,
    500: HierindexError,
}
"""The error that a status stands for; each has the exit status of those that get the status."""


class RefusedError(HierindexError):
    """A server refuses what a command may answer by itself.

    Parameters
    ----------
    status : int
        None of `STATUSES`.
    message : str
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def status_of(error: HierindexError) -> int:
    """Return the status of an error.

    >>> status_of(InputError("The question is empty."))
    400
    """
    if isinstance(error, RefusedError):
        return error.status
    return next(status for status, kind in STATUSES.items() if isinstance(error, kind))
