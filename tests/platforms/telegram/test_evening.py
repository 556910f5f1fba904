"""An evening in a group of five: every call of the bot is checked."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from lives import Lives, lives
from platforms.telegram import tdlib
from platforms.telegram.bot_child import Life
from platforms.telegram.evening_child import LONG
from tertulia.platforms.telegram.formatted_text import Entity, FormattedText
from tertulia.sim.telegram import SimChat, SimUser, TelegramSim
from tertulia.store import Store

UNPARSED = "Bad Request: can't parse entities"
PATIENCE = 30.0  # seconds, on a busy machine
CHILD = Path(__file__).with_name("evening_child.py")


class Evening:
    """A bot in a process, and what people see of it."""

    def __init__(self, sim: TelegramSim) -> None:
        self.sim = sim

    async def answers(self, chat: SimChat, *texts: str) -> None:
        """Wait until people see exactly these answers in a chat."""
        await self.until(chat, lambda: seen(self.sim, chat) == list(texts))

    async def until(self, chat: SimChat, ready: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await self.sim.until(ready)
        except TimeoutError:
            raise AssertionError(f"people see {[text[-60:] for text in seen(self.sim, chat)]}") from None

    def quoted(self, chat: SimChat) -> list[int | None]:
        return [one.reply_to for one in chat.of(self.sim.bot)]


def seen(sim: TelegramSim, chat: SimChat) -> list[str]:
    return [one.text for one in chat.of(sim.bot)]


def cooked(*words: str) -> list[str]:
    return [f"{word}: ok 👩‍🍳" for word in words]


@asynccontextmanager
async def alive(forked: Lives, life: Life, end: signal.Signals) -> AsyncIterator[None]:
    """A bot that lives until the end of the block, where it gets a signal."""
    child = await forked.begin(life)
    try:
        yield
    finally:
        os.kill(child, end)
        await forked.end(child, timeout=PATIENCE)


async def test_an_evening_in_a_group_of_five(tmp_path: Path) -> None:
    async with TelegramSim() as sim, lives(CHILD, tmp_path / "log") as forked:
        people = [sim.user(name) for name in ("Ann", "Ben", "Cid", "Dana", "Eva")]
        evening, life = Evening(sim), Life(path=str(tmp_path / "bot.db"), url=sim.url, token=sim.token)
        async with alive(forked, life, signal.SIGKILL):
            moved = await talk(evening, *people)
            people[4].send(moved, "Tertulia, tell us a story [tale]?")
            await evening.until(moved, lambda: any(one.edits for one in moved.of(sim.bot)[1:]))  # the draft grows
            draft = moved.of(sim.bot)[-1].id
        async with alive(forked, life, signal.SIGTERM):
            await evening.until(moved, lambda: seen(sim, moved)[-1].endswith("the end"))

        first, *rest = moved.of(sim.bot)[1:]
        assert first.id == draft
        shown = " ".join(" ".join(one.text for one in (first, *rest)).split())
        assert shown == " ".join(LONG.replace("**", "").split())
        check_calls(sim)
    async with Store.open(tmp_path / "bot.db") as store:
        unsent = [(row.kind, row.status) for row in await store.outbox.listed() if row.status != "sent"]
    assert set(unsent) <= {("draft", "dropped")}  # the service may have been too busy for it


async def talk(evening: Evening, ann: SimUser, ben: SimUser, cid: SimUser, dana: SimUser, eva: SimUser) -> SimChat:
    """Talk in a group and in a forum; return the group, which has moved by then."""
    sim = evening.sim
    group, forum = sim.group("Kitchen", [ann, ben, cid, dana, eva]), sim.group("Forum", [ann, ben], forum=True)

    ann.send(group, "Good evening, everybody")  # addressed to nobody
    asked = ben.send(group, "Tertulia, what is for dinner [dinner]?")
    await evening.answers(group, *cooked("dinner"))
    assert evening.quoted(group) == [asked.id]

    (answer,) = group.of(sim.bot)
    cid.send(group, "really [really]?", reply_to=answer)
    await evening.answers(group, *cooked("dinner", "really"))

    album = sim.world.new_album()
    dana.send_photo(group, caption="Tertulia, which one [album]?", media_group_id=album)
    dana.send_photo(group, media_group_id=album)
    dana.send_photo(group, media_group_id=album)
    await evening.answers(group, *cooked("dinner", "really", "album"))

    eva.react(group, answer, "👍")
    ben.edit(group, asked, "Tertulia, what is for supper [dinner]?")
    eva.send_sticker(group, emoji="😀", set_name="Cats")
    for text in ("Tertulia", "tell us", "quickly [burst]?"):
        ann.send(group, text)
    await evening.answers(group, *cooked("dinner", "really", "album", "burst"))

    sim.fail("busy", times=2, retry_after=1)
    sim.fail(400, description=f"{UNPARSED}: entity begins in a middle of a UTF-16 symbol")
    ben.send(group, "Tertulia, and now [flood]?")
    await evening.answers(group, *cooked("dinner", "really", "album", "burst", "flood"))

    topic = forum.add_topic("Tea")
    ann.send(forum, "Tertulia, tea [tea]?", topic=topic.id)
    await evening.answers(forum, *cooked("tea"))
    assert [one.topic for one in forum.of(sim.bot)] == [topic.id]

    moved = group.migrate()
    cid.send(moved, "Tertulia, what was it [moved]?")
    await evening.answers(moved, *cooked("moved"))
    return moved


def check_calls(sim: TelegramSim) -> None:
    """Every call is accepted but for the faults we asked for; no parse_mode, and TDLib takes each text.

    The answer may be what its draft showed already: such an edit changes nothing.
    """
    failed = [call for call in sim.calls if call.status >= 400 and "is not modified" not in call.description]
    refused = [(call.status, call.description[: len(UNPARSED)]) for call in failed]
    assert refused == [
        (429, "Too Many Requests: retry after 1"),
        (429, "Too Many Requests: retry after 1"),
        (400, UNPARSED),
    ]
    for call in sim.calls:
        assert "parse_mode" not in call.params
        if text := call.params.get("text"):
            assert tdlib.refusal(formatted(text, call.params.get("entities", []))) is None


def formatted(text: str, entities: list[dict[str, Any]]) -> FormattedText:
    return FormattedText(text=text, entities=tuple(Entity(**entity) for entity in entities))
