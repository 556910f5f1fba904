"""Tertulia: a conversation engine for chat agents.

Everything a bot needs is imported from here. `__init__.pyi` lists the names; each is imported when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
