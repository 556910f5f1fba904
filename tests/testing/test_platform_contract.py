"""Two platforms for an invented chat service keep the contract: the one of the docs, and one with all there is."""

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from keyless_chat import KeylessChat
from palaver.testing.platform_contract import PlatformContract, PlatformWorld
from testing.worlds import ExampleWorld

DOCS = Path(__file__).parents[2] / "docs" / "platforms.md"


def of_the_docs() -> PlatformWorld:
    """The platform that the docs show first, in the world that they show for it."""
    platform, world = re.findall(r"```python\n(.*?)```", DOCS.read_text("utf-8"), flags=re.DOTALL)
    corner = ModuleType("corner")
    exec(compile(platform, str(DOCS), "exec"), vars(corner))  # noqa: S102 (our own page)
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "corner", corner)
        exec(compile(world, str(DOCS), "exec"), names)  # noqa: S102
    made: PlatformWorld = names["TestCorner"]().world()
    return made


def test_the_platform_of_the_docs_takes_less_than_forty_lines() -> None:
    code = DOCS.read_text("utf-8")
    platform = code[code.index("class Corner") : code.index("async def main")]

    assert len([line for line in platform.splitlines() if line.strip()]) < 40


class TestCorner(PlatformContract):
    def world(self) -> PlatformWorld:
        return of_the_docs()


class TestKeylessChat(PlatformContract):
    def world(self) -> PlatformWorld:
        return ExampleWorld(KeylessChat, keys=False)
