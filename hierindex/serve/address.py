"""Where a server listens, and who may ask it there."""

import ipaddress
import os
import secrets
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from hierindex.errors import InputError
from hierindex.serve.guard import hosts_of


@dataclass(frozen=True)
class Address:
    """A host and port that are listened at.

    Parameters
    ----------
    bound : socket
    url : str
        Of the root, with the token if there is one.
    hosts : set of str, optional
        Values of the header Host that are answered; None for all.
    token : str, optional
        Which a request needs. Given if other machines can reach the address.
    """

    bound: socket.socket
    url: str
    hosts: set[str] | None
    token: str | None

    @classmethod
    def at(cls, host: str, ports: Iterable[int]) -> Self:
        """Listen at the first port that is free, 0 for any; raise InputError if none is."""
        bound = _bound(host, ports)
        number = bound.getsockname()[1]
        own, every = _is_loopback(host), host in ("0.0.0.0", "::")
        token = None if own else secrets.token_urlsafe(16)
        name = socket.gethostname() if every else f"[{host}]" if ":" in host else host
        names = [name, *(("localhost", "127.0.0.1", "[::1]") if own else ())]
        url = f"http://{name}:{number}/" + (f"?token={token}" if token else "")
        return cls(bound, url, None if every else hosts_of(names, number), token)


def _bound(host: str, ports: Iterable[int]) -> socket.socket:
    """Return a listening socket."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in ports:
        try:
            bound = socket.create_server((host, number), family=family)
        except OSError as error:
            code = error.errno or 0
            reason = os.strerror(code) if code > 0 else str(error.strerror)
        except OverflowError:
            reason = "a port is a number from 0 to 65535"
        else:  # asyncio sees that the socket is of TCP by its number only, and waits 40 ms
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return bound
    raise InputError(f"Nothing can be served at {host}:{number}: {reason}.")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
