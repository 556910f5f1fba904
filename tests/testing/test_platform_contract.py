"""Two platforms for an invented chat service keep the contract: the one of the docs, and one with all there is."""

import re
from pathlib import Path
from typing import Any

from keyless_chat import KeylessChat
from palaver.testing.platform_contract import PlatformContract, PlatformWorld
from testing.worlds import ExampleWorld, WholeWorld

DOCS = Path(__file__).parents[2] / "docs" / "platforms.md"


def of_the_docs() -> Any:
    """The platform that the docs show first."""
    code = re.findall(r"```python\n(.*?)```", DOCS.read_text("utf-8"), flags=re.DOTALL)[0]
    names: dict[str, Any] = {"__name__": "docs"}
    exec(compile(code, str(DOCS), "exec"), names)  # noqa: S102 (our own page)
    return names["Corner"]


def test_the_platform_of_the_docs_takes_less_than_forty_lines() -> None:
    code = DOCS.read_text("utf-8")
    platform = code[code.index("class Corner") : code.index("async def main")]

    assert len([line for line in platform.splitlines() if line.strip()]) < 40


class TestCorner(PlatformContract):
    def world(self) -> PlatformWorld:
        return ExampleWorld(of_the_docs())


class TestKeylessChat(PlatformContract):
    def world(self) -> PlatformWorld:
        return WholeWorld(KeylessChat, keys=False)
