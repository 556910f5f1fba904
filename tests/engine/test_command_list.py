"""What is announced is what there is, in every language."""

import asyncio
import re
from collections.abc import Sequence
from datetime import timedelta

import pytest
from msgspec.structs import replace

from engine.engines import AT_ONCE, engine_with
from tertulia.engine.behavior import Behavior
from tertulia.engine.command_list import AUDIENCES, HELP, announced_commands, help_lines
from tertulia.engine.languages.lines import ENGLISH
from tertulia.engine.languages.ukrainian import UKRAINIAN
from tertulia.models import Scripted
from tertulia.platform import CommandInfo
from tertulia.testing import RecordedPlatform

NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")  # what services allow
LONGEST = 256  # characters of a description, on Telegram


class Announcing(RecordedPlatform):
    """A platform that remembers what it was told to announce."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.announced: list[tuple[Sequence[CommandInfo], Sequence[str]]] = []
        self.told = asyncio.Event()
        self._error = error

    async def announce(self, commands: Sequence[CommandInfo], *, owners: Sequence[str]) -> None:
        self.announced.append((commands, owners))
        self.told.set()
        if self._error:
            raise self._error


def test_every_command_has_a_short_description_in_every_language() -> None:
    commands = announced_commands(Behavior(language="uk"))

    assert [(one.name, one.who) for one in commands] == list(AUDIENCES.items())
    assert {tuple(one.descriptions) for one in commands} == {("", "en", "uk")}
    assert all(one.descriptions[""] == one.descriptions["uk"] for one in commands)
    assert all(NAME.fullmatch(one.name) for one in commands)
    assert all(0 < len(text) <= LONGEST for one in commands for text in one.descriptions.values())


def test_help_lists_the_commands_of_owners_for_owners_alone() -> None:
    assert set(help_lines(UKRAINIAN, owner=True)) == set(AUDIENCES)
    assert help_lines(ENGLISH) == HELP
    assert set(HELP) == {name for name, who in AUDIENCES.items() if who != "owners"}


async def test_a_platform_announces_the_commands_with_the_owners_of_its_service() -> None:
    platform = Announcing()
    behavior = replace(AT_ONCE, owners=("recorded:7", "recorded:a:b", "elsewhere:9"))
    async with engine_with(Scripted(), platform, behavior=behavior):
        await platform.told.wait()

    assert platform.announced == [(announced_commands(behavior), ["7", "a:b"])]


async def test_a_platform_that_cannot_announce_them_runs_on(caplog: pytest.LogCaptureFixture) -> None:
    platform = Announcing(OSError("no connection"))
    async with engine_with(Scripted("Hi."), platform) as engine:
        async with asyncio.timeout(timedelta(minutes=1).total_seconds()):
            await platform.told.wait()
        await engine.settled()

    assert "recorded could not announce the commands: " in caplog.text
