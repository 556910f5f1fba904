"""Telegram's simulator as a world for the contract of platforms."""

import asyncio
from collections.abc import Sequence
from itertools import count

from tertulia.messages import Author, Place
from tertulia.platforms.telegram.client import Pace
from tertulia.platforms.telegram.markdown import render
from tertulia.platforms.telegram.platform import Telegram
from tertulia.sim.telegram import SimChat, SimUser, TelegramSim
from tertulia.testing.platform_contract import Fault, PlatformWorld, Shown
from tertulia.testing.platform_world import Missing

AT_ONCE = Pace(direct=1e6, group=1e6, overall=1e6)  # messages a second


async def short_sleep(seconds: float) -> None:
    await asyncio.sleep(min(seconds, 0.01))


def telegram(sim: TelegramSim, token: str = "") -> Telegram:
    """The platform under test, for a bot of the simulator."""
    return Telegram(token or sim.token, base_url=sim.url, pace=AT_ONCE, sleep=short_sleep)


class TelegramWorld(PlatformWorld):
    """All that happens on Telegram; nobody tells a bot of a deletion."""

    timeout = 30.0  # the machine of the tests may be busy

    def __init__(self) -> None:
        super().__init__()
        self.sim = TelegramSim()
        self._users: dict[str, SimUser] = {}
        self._albums = count(1)

    async def open(self) -> None:
        await self.sim.__aenter__()

    async def close(self) -> None:
        await self.sim.__aexit__()

    def as_shown(self, text: str) -> str:
        return render(text).text

    def as_posted(self, text: str) -> str:
        return text.replace("\u202e", "")  # as Telegram does

    def platform(self) -> Telegram:
        return telegram(self.sim)

    async def person(self, name: str) -> Author:
        user = self.sim.user(name)
        self._users[str(user.id)] = user
        return Author(id=str(user.id), name=user.name)

    async def direct(self, author: Author) -> Place:
        chat = self.sim.private(self._users[author.id])
        return self._place(chat, "direct")

    async def group(self) -> Place:
        owner = self.sim.user("Owner")
        return self._place(self.sim.group("Kitchen", [owner]), "group")

    async def post(self, place: Place, author: Author, text: str) -> str:
        return self._posted(self._user(place, author).send(self._chat(place), text))

    async def post_album(self, place: Place, author: Author, texts: Sequence[str]) -> Sequence[str]:
        user, chat, album = self._user(place, author), self._chat(place), f"album-{next(self._albums)}"
        return [self._posted(user.send_photo(chat, caption=text, media_group_id=album)) for text in texts]

    async def post_photo(self, place: Place, author: Author, data: bytes) -> str:
        return self._posted(self._user(place, author).send_photo(self._chat(place), data))

    async def reply(self, place: Place, author: Author, text: str, message_id: str) -> str:
        user = self._user(place, author)
        return self._posted(user.send(self._chat(place), text, reply_to=int(message_id)))

    async def edit(self, place: Place, message_id: str, text: str) -> None:
        chat = self._chat(place)
        sender = chat.message(int(message_id)).sender
        self._users[str(sender)].edit(chat, int(message_id), text)

    async def react(self, place: Place, message_id: str, author: Author, emojis: Sequence[str]) -> None:
        self._user(place, author).react(self._chat(place), int(message_id), *emojis)

    async def command(self, place: Place, author: Author, line: str) -> None:
        self._user(place, author).send(self._chat(place), line)

    async def promote(self, place: Place, author: Author) -> None:
        self._chat(place).promote(self._user(place, author))

    async def migrate(self, place: Place) -> Place:
        return self._place(self._chat(place).migrate(), "group")

    async def leave(self, place: Place) -> None:
        self._chat(place).kick(self.sim.bot)

    async def stop(self, place: Place, author: Author) -> None:
        if place.kind != "direct":
            raise Missing("stop in a group")
        chat = self._chat(place)
        if not self._user(place, author).press_stop(chat):  # the press comes when nothing is shown any more
            self.sim.inject({"stopped_message_generation": {"chat": chat.chat.chat(), "draft_id": 1}})

    async def shown(self, place: Place) -> Sequence[Shown]:
        messages = self._chat(place).of(self.sim.bot)
        return [
            Shown(
                id=str(one.id),
                text=one.text or str(one.content.get("caption", "")),
                reply_to=None if one.reply_to is None else str(one.reply_to),
                media=int("photo" in one.content),
            )
            for one in messages
        ]

    async def previews(self, place: Place) -> Sequence[str]:
        drafts = [one.text for one in self.sim.drafts if str(one.chat) == place.id]
        return drafts + ["" for one in self.sim.actions if str(one.chat) == place.id]

    async def disconnect(self) -> None:
        self.sim.disconnect()

    async def deliver_again(self) -> None:
        self.sim.deliver_again()

    async def fail(self, *faults: Fault) -> None:
        for fault in faults:
            self.sim.fail(fault)

    def _user(self, place: Place, author: Author) -> SimUser:
        """The person; who writes in a group is a member of it."""
        user, chat = self._users[author.id], self._chat(place)
        if place.kind == "group" and not chat.chat.is_member(user.id):
            chat.add(user)
        return user

    def _chat(self, place: Place) -> SimChat:
        return self.sim.chat(int(place.id))

    def _place(self, chat: SimChat, kind: str) -> Place:
        return Place(platform=f"telegram-{self.sim.bot.id}", id=str(chat.id), kind=kind, service="telegram")  # type: ignore[arg-type]

    def _posted(self, message: object) -> str:
        return str(message.id)  # type: ignore[attr-defined]
