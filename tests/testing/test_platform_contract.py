"""Two platforms for an invented chat service keep the contract: the one of the docs, and one with all there is."""

from keyless_chat import KeylessChat
from tertulia.testing.platform_contract import PlatformContract, PlatformWorld
from testing import docs_page
from testing.worlds import ExampleWorld


def test_the_platform_of_the_docs_takes_less_than_forty_lines() -> None:
    code = docs_page.blocks()[0]
    platform = code[code.index("class Corner") : code.index("async def main")]

    assert len([line for line in platform.splitlines() if line.strip()]) < 40


class TestCorner(PlatformContract):
    def world(self) -> PlatformWorld:
        world = docs_page.world()
        world.timeout = ExampleWorld.timeout
        return world


class TestKeylessChat(PlatformContract):
    def world(self) -> PlatformWorld:
        return ExampleWorld(KeylessChat, keys=False)
