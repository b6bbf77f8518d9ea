"""What was read of a table, known as long as the table stays as it was."""

from typing import Any


class Facts:
    """Values by name, of one version of a table; another version knows nothing yet.

    What is kept must be small beside the table: numbers, and each summary's parent.
    """

    def __init__(self) -> None:
        self._version = -1
        self._known: dict[str, Any] = {}

    def of(self, version: int) -> dict[str, Any]:
        """What is known of this version; to be added to."""
        if version != self._version:
            self._version, self._known = version, {}
        return self._known

    def clear(self) -> None:
        """Forget everything: a new table counts its versions anew."""
        self._version, self._known = -1, {}
