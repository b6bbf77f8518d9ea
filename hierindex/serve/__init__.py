"""Servers of an index: a web page for people, and an HTTP API for programs.

Both need the extra `serve`. `hierindex mcp` is for agents.

The public names are listed in `__init__.pyi`; each is imported on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
