"""Turns a collection of documents into a tree of summaries that can be asked at any level.

The public names stand in `__init__.pyi`; each is imported when it is first used.
"""

import warnings
from importlib import import_module
from typing import Any

import lazy_loader

_public, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

RULES = "Cosine Gradient Interquartile Optimal Percentile StandardDeviation TargetSize"
MOVED = {name: ("hierindex.rules", name) for name in RULES.split()}
MOVED["Found"] = ("hierindex", "RetrievedNode")
"""Names of older versions, and where they are now."""


def __getattr__(name: str) -> Any:
    if name == "__version__":  # that of pyproject.toml
        from importlib.metadata import version

        return version(__name__)
    if name not in MOVED:
        return _public(name)
    module, new = MOVED[name]
    warnings.warn(f"hierindex.{name} is now {module}.{new}.", DeprecationWarning, stacklevel=2)
    return getattr(import_module(module), new)
