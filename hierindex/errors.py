"""What can go wrong, as one tree of exceptions.

::

    HierindexError              something of ours failed                    exit 1
    ├── InputError              an argument, an array, a file, a level      exit 2
    │   ├── SourceError         a source that cannot be read
    │   ├── LevelError          a level that the tree does not have
    │   ├── IndexNotFoundError  a folder that holds no index
    │   └── FormatError         an index of another version of hierindex
    ├── ModelError              a model that cannot be loaded or reached    exit 2
    ├── LimitError              what may be spent on models is spent        exit 2
    ├── SummaryError            a summary that could not be written         exit 1
    └── RequestError            a request to a model that failed for good,  exit 1
                                in `hierindex.llm.failures`

`exit_status` is what the command line ends with: 2 for what its user can
mend, 1 for what failed. A message is one sentence: what is wrong, what was
given, how to mend it.
"""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


def without_password(text: str) -> str:
    """A text without the user names and passwords of the URLs in it.

    Examples
    --------
    >>> without_password("Nothing answers at http://ada:secret@localhost:8000/v1.")
    'Nothing answers at http://localhost:8000/v1.'
    """
    return re.sub(r"(?<=://)[^\s/?#]*@", "", text)


class HierindexError(Exception):
    """Base of every exception that hierindex raises on purpose; its message has no password."""

    exit_status = 1

    def __init__(self, message: str) -> None:
        super().__init__(without_password(message))


class InputError(HierindexError, ValueError):
    """An argument or an array is not what it must be."""

    exit_status = 2

    @classmethod
    def of_field(cls, error: "ValidationError") -> "InputError":
        """The first thing that pydantic found wrong, as one sentence."""
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":  # its value may be a secret in the wrong place
            return cls(f"There is no option {field!r}.")
        if first["type"] == "value_error":  # a sentence of ours
            return cls(f"{field} is wrong: {first['ctx']['error']}")
        said = first["msg"][0].lower() + first["msg"][1:]
        return cls(f"{field} is wrong: {said}, got {first['input']!r}.")


class SourceError(InputError):
    """A source of documents is missing, empty or unreadable."""


class LevelError(InputError):
    """The tree has no such level."""


class IndexNotFoundError(InputError):
    """The folder holds no index."""


class FormatError(InputError):
    """The index was written by another version of hierindex."""


class ModelError(HierindexError):
    """A model cannot be loaded, or the service behind it cannot be reached."""

    exit_status = 2


class LimitError(HierindexError):
    """The tokens or the time that a build may spend on a model are used up."""

    exit_status = 2


class SummaryError(HierindexError):
    """A group of texts could not be summarised."""


class WindowWarning(UserWarning):
    """A text is longer than the embedding model reads; the rest has no part in its vector."""


class FallbackWarning(UserWarning):
    """A rewritten summary failed and the extract stands in its place."""
