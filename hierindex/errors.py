"""The exceptions of hierindex.

::

    HierindexError              an operation failed                         exit 1
    ├── InputError              an invalid argument, array or file          exit 2
    │   ├── SourceError         a source that cannot be read
    │   ├── FormatError         an index of another version of hierindex
    │   ├── GenerationError     a generation that an index does not hold
    │   └── NotFoundError       a node, document or key that an index does not hold
    │       ├── LevelError          a level that the tree does not have
    │       └── IndexNotFoundError  a folder that holds no index
    ├── ModelError              a model that cannot be loaded or reached    exit 2
    ├── LimitError              the limit of LLM tokens is reached          exit 2
    ├── SummaryError            a summary that could not be written         exit 1
    ├── DamagedError        a file of an index that is missing or damaged,  exit 1
    │                       in `hierindex.store.connection`
    └── RequestError            a request that failed after all retries,    exit 1
                                in `hierindex.models.failures`

`exit_status` is the exit status of the command line: 2 for errors that the user can correct, 1 for
other failures. A message says what is wrong, what was given and how to correct it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError

MOST_SHOWN = 200  # characters of an invalid value
REQUIRED = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text",
    "string_too_short": "text that is not empty",
    "string_too_long": "text of at most {max_length} characters",
    "list": "a list",
    "too_long": "a list of at most {max_length} entries",
    "dict": "an object",
    "finite": "a finite number",
    "literal": "{expected}",
    "greater_than": "greater than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
}
"""The requirement on a value, by pydantic's error type or its first word."""


def without_password(text: str) -> str:
    """Remove the user names and passwords of URLs from a text.

    Examples
    --------
    >>> without_password("Nothing answers at http://ada:secret@localhost:8000/v1.")
    'Nothing answers at http://localhost:8000/v1.'
    """
    return re.sub(r"(?<=://)[^\s/?#]*@", "", text)


def nearest(name: str, known: Iterable[str], prefix: str = "") -> str:
    """Return a suffix for a message that suggests the most similar name; "" if none is similar.

    Examples
    --------
    >>> nearest("metod", ["method", "mode"])
    '; the nearest is method'
    >>> nearest("home", ["method"])
    ''
    """
    similar = get_close_matches(name, [*known], n=1)
    return f"; the nearest is {prefix}{similar[0]}" if similar else ""


def requirement(error: Mapping[str, Any]) -> str:
    """Describe a pydantic error: the requirement and the value.

    Examples
    --------
    >>> requirement({"type": "greater_than_equal", "ctx": {"ge": 1}, "input": 0})
    'it must be at least 1, got 0'
    """
    kind = error["type"]
    words = REQUIRED.get(kind) or REQUIRED.get(kind.partition("_")[0])
    if words is None:
        message = error["msg"][0].lower() + error["msg"][1:]
    else:
        must = words.format(**error.get("ctx", {})).replace("'", "").removesuffix(".0")
        message = f"it must be {must}"
    known = re.findall("'([^']*)'", error["ctx"]["expected"]) if kind == "literal_error" else ()
    return f"{message}, got {shown(error['input'])}{nearest(str(error['input']), known)}"


def shown(value: Any) -> str:
    """Format an invalid value for an error message.

    Examples
    --------
    >>> shown(["top", "deep"]), shown(""), shown([])
    ("'top', 'deep'", 'nothing', 'nothing')
    """
    values = value if isinstance(value, list) else [value]
    text = ", ".join(repr(each) if each != "" else "nothing" for each in values) or "nothing"
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


class HierindexError(Exception):
    """Base class of all hierindex exceptions; their messages omit passwords in URLs."""

    exit_status = 1

    def __init__(self, message: str) -> None:
        super().__init__(without_password(message))


class InputError(HierindexError, ValueError):
    """An argument or a file is invalid."""

    exit_status = 2

    @classmethod
    def of_field(cls, error: "ValidationError", named: Callable[[str], str] = str) -> "InputError":
        """Convert the first error of a `ValidationError`; `named` maps fields to display names."""
        first = error.errors()[0]
        field = named(".".join(map(str, first["loc"])))
        if first["type"] == "missing":
            return cls(f"{field} is missing.")
        if first["type"] == "extra_forbidden":  # its value may be a secret in the wrong place
            return cls(f"There is no option {field!r}.")
        if first["type"] == "value_error":  # raised by our own validators
            return cls(f"{field} is invalid: {first['ctx']['error']}")
        return cls(f"{field} is invalid: {requirement(first)}.")


class SourceError(InputError):
    """A source of documents is missing, empty or unreadable."""


class NotFoundError(InputError):
    """The index does not hold the node, document or key, or no node fits the token budget."""


class LevelError(NotFoundError):
    """The tree does not have the requested level."""


class IndexNotFoundError(NotFoundError):
    """The folder holds no index."""

    @classmethod
    def at(cls, uri: str) -> "IndexNotFoundError":
        """Return the error for a folder, given its URI, that holds no index."""
        return cls(
            f"{uri!r} holds no index; build one with `hierindex build SOURCE --index {uri}`."
        )


class FormatError(InputError):
    """The index was written by a version of hierindex with another format."""


class GenerationError(InputError):
    """The index does not hold this generation, or a later write has removed it."""


class ModelError(HierindexError):
    """A model cannot be loaded, or the service behind it cannot be reached."""

    exit_status = 2


class LimitError(HierindexError):
    """A build has reached the `token_limit` that was set for it."""

    exit_status = 2


class SummaryError(HierindexError):
    """A group of texts could not be summarised."""


class WindowWarning(UserWarning):
    """A text or a prompt is too long for its model's window, so only a part of it is read."""


class FallbackWarning(UserWarning):
    """A model failed to write a summary, so an extract is used instead."""


@contextmanager
def extra(name: str, what: str) -> Iterator[None]:
    """If an import in the `with` block fails, raise an error that names the extra.

    Parameters
    ----------
    name : str
        Name of the extra.
    what : str
        The beginning of the message, such as "The explorer needs".

    Raises
    ------
    InputError
        If a library of the extra cannot be imported.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise InputError(f"{what} `pip install 'hierindex[{name}]'`.") from error
