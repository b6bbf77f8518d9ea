"""Turns a collection of documents into a tree of summaries that can be asked at any level.

The public names are listed in `__init__.pyi`; each is imported on first use.
"""

from typing import Any

import lazy_loader

_public, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "__version__":  # that of pyproject.toml
        from importlib.metadata import version

        return version(__name__)
    return _public(name)
