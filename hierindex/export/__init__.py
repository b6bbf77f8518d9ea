"""The tree for other programs: files, other libraries' indexes, figures.

The public names stand in `__init__.pyi`; each is imported when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
