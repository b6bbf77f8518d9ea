"""Libraries that are installed with an extra."""

from collections.abc import Iterator
from contextlib import contextmanager

from hierindex.errors import InputError

EXTRAS = {
    "langchain": {"langchain_core"},
    "plot": {"plotly"},
    "serve": {"anyio", "mcp", "mcp_types", "starlette", "uvicorn"},
}


@contextmanager
def extra(name: str, what: str) -> Iterator[None]:
    """Name an extra if an import fails because it is not installed.

    Parameters
    ----------
    name : str
        Of the extra.
    what : str
        The beginning of the error, such as "The explorer needs".

    Raises
    ------
    InputError
        If a library of the extra cannot be imported.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRAS[name]:
            raise
        raise InputError(f"{what} `pip install 'hierindex[{name}]'`.") from error
