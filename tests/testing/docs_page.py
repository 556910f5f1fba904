"""The platform and the world that docs/platforms.md shows."""

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tertulia.testing.platform_contract import PlatformWorld

PAGE = Path(__file__).parents[2] / "docs" / "platforms.md"


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)


def corner() -> Any:
    """The module that the first block of the page is."""
    module = ModuleType("corner")
    exec(compile(blocks()[0], str(PAGE), "exec"), vars(module))  # noqa: S102 (our own page)
    return module


def world() -> PlatformWorld:
    """The world that the second block shows for it."""
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "corner", corner())
        exec(compile(blocks()[1], str(PAGE), "exec"), names)  # noqa: S102
    made: PlatformWorld = names["TestCorner"]().world()
    return made
