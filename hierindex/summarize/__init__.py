"""Summaries of groups: extracts, rewriting by a model, and what is checked of it.

The public names stand in `__init__.pyi`; each is imported when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
