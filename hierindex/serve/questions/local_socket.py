"""The socket in the folder of an index, by which a server answers the commands of its user."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from hierindex import __version__

NAME = ".server.sock"
LOCK = ".server.lock"  # locked by the operating system, which frees it when the process ends
HOLDER = ".server.pid"  # the number of the process; one that is killed leaves it behind
PATIENCE = 60.0  # seconds for each reply, as a server that hangs is of no use
LONGEST = 100  # bytes of the path of a socket; systems take 103 to 107


def identity(folder: Path) -> str:
    """Return what a command and its server must agree in: the version, and which folder it is.

    One that was moved, copied or built anew is another folder.

    Raises
    ------
    OSError
        If it does not exist.
    """
    found = folder.stat()
    return f"{__version__} {found.st_dev}:{found.st_ino}"


def connected(folder: Path) -> socket.socket:
    """Return a connection to the server of a folder.

    Raises
    ------
    OSError
        If there is none, or it is another user's.
    """
    connection = _socket()
    connection.settimeout(PATIENCE)
    try:
        with _short(folder) as path:
            if path.lstat().st_uid != os.geteuid():  # it could answer anything
                raise PermissionError
            connection.connect(str(path))
    except OSError:
        connection.close()
        raise
    return connection


def process_of(folder: Path) -> str:
    """Return the number of the process that serves a folder, which may have been moved since.

    It is empty if it is unknown.
    """
    try:
        return (folder / HOLDER).read_text()
    except OSError:  # it begins or ends at this moment
        return ""


@contextmanager
def listening(folder: Path) -> Iterator[socket.socket]:
    """Give a listening socket in a folder, which is removed when the block ends.

    Only its owner can connect to it.

    Raises
    ------
    BlockingIOError
        If another server listens in the folder.
    OSError
        If no socket can be made there.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK, mode=0o600, thread_local=False)
    try:
        lock.acquire(blocking=False)
    except Timeout as error:
        raise BlockingIOError from error
    with ExitStack() as ending:
        ending.callback(lock.release)
        holder = folder / HOLDER
        holder.write_text(str(os.getpid()))
        ending.callback(_remove, holder, holder.stat().st_ino)
        made = ending.enter_context(_socket())
        number = _bind(made, folder)
        ending.callback(_remove, folder / NAME, number)
        yield made


def _bind(made: socket.socket, folder: Path) -> int:
    """Let a socket listen in a folder, and return the number of its file."""
    with _short(folder) as path:
        path.unlink(missing_ok=True)  # of a server that was killed
        made.bind(str(path))
        path.chmod(0o600)
        made.listen()  # only now can anybody connect
        return path.stat().st_ino


def _remove(path: Path, number: int) -> None:
    """Remove a file by its number, unless the folder is gone or another one by now."""
    with suppress(OSError):
        if path.stat().st_ino == number:
            path.unlink()


def _socket() -> socket.socket:
    if not hasattr(socket, "AF_UNIX"):
        raise OSError("the system has no such sockets")
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)


@contextmanager
def _short(folder: Path) -> Iterator[Path]:
    """Give the path of a folder's socket, through a link while the block runs if it is long."""
    folder = folder.absolute()
    if len(os.fsencode(folder / NAME)) <= LONGEST:
        yield folder / NAME
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as links:
        link = Path(links, "index")
        link.symlink_to(folder, target_is_directory=True)
        yield link / NAME
