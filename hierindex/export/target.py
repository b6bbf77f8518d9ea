"""Files and folders that are there whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from uuid import uuid4

from hierindex.errors import InputError


@contextmanager
def new(target: str | Path, *, folder: bool = False) -> Iterator[Path]:
    """A path to write to, that takes the target's place when it is whole.

    Parameters
    ----------
    target : str or Path
        Folders above it are made.
    folder : bool
        Whether a folder is written, and not a file; an empty one may be there.

    Raises
    ------
    InputError
        If something is there, or it cannot be written.
    """
    named = Path(target)
    target = named.absolute()
    partial = target.with_name(f".{target.name}-{uuid4().hex[:8]}")
    try:
        refuse_existing(named, folder=folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield partial
            if target.is_dir():
                target.rmdir()
            partial.rename(target)
        finally:
            if partial.is_dir():
                rmtree(partial)
            else:
                partial.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{str(named)!r} cannot be written: {error}.") from error


def refuse_existing(target: Path, *, folder: bool) -> None:
    """Refuse to write over what is there.

    Raises
    ------
    InputError
        Names it.
    """
    if folder and target.is_dir() and not any(target.iterdir()):
        return
    if target.exists():
        raise InputError(f"{str(target)!r} exists already; name another path, or remove it.")
