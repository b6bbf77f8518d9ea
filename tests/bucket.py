"""An object store that speaks S3's protocol on loopback."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import Request, urlopen


@contextmanager
def bucket() -> Iterator[str]:
    """Serve an object store with the bucket "library", and give its endpoint."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the server's own dependencies
        from moto.server import ThreadedMotoServer

        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())
    with urlopen(Request(f"{url}/library", method="PUT")):
        yield url
    server.stop()
