"""Shared places: what several accounts of ours see in one place, under the same ids, is stored once.

Such a place is stored as the place of the account that was there first, its home. What another account sees is moved
there before it is stored, so a message that both receive has one id in one place. Files are fetched by the account that
saw them.
"""

from collections.abc import Sequence
from typing import assert_never

from msgspec.structs import replace

from tertulia.engine.identity import Identity
from tertulia.engine.store_protocols import UpdateStore
from tertulia.messages import Message, Place
from tertulia.parts import Media, Part
from tertulia.platform import (
    COMMAND,
    Change,
    Commanded,
    Deleted,
    Delivered,
    Edited,
    PlaceJoined,
    PlaceLeft,
    PlaceMigrated,
    Reacted,
    Received,
    Stopped,
)


class SharedPlaces:
    """Knows the home of each shared place."""

    def __init__(self, identity: Identity, store: UpdateStore) -> None:
        self._identity = identity
        self._store = store
        self._homes: dict[tuple[str, str], str] = {}  # platforms, by service and id

    async def at_home(self, change: Change) -> Change | None:
        """Return a change in the place where it is stored; None where another account of ours reports it."""
        match change:
            case Received(message=message) | Edited(message=message):
                is_known = self._commands_another(message) or (isinstance(change, Edited) and self._is_ours(message))
                return None if is_known else replace(change, message=await self._moved(message))
            case Commanded(message=message) if self._is_ours(message):  # words: the list of commands begins with one
                return Received(message=await self._moved(message))
            case Commanded(message=message):
                return replace(change, message=await self._moved(message), agent=self._commanded(message))
            case Deleted() | Reacted() | Delivered() | Stopped():
                return replace(change, place=await self._home(change.place))
            case PlaceMigrated(old=old, new=new):  # an account has its own log of a place that is not shared
                return change if await self._home(new) is new else PlaceLeft(place=old)
            case PlaceJoined(place=place) | PlaceLeft(place=place):
                return change if await self._home(place) is place else None
            case _:
                assert_never(change)

    def is_shared(self, place: Place) -> bool:
        """Return whether several accounts of ours may be in a place, and see it under one id."""
        return self._identity.is_shared(place) and len(self._identity.platforms_beside(place.platform)) > 1

    def update_key(self, changes: Sequence[Change], platform: str, key: str) -> tuple[str, str]:
        """Return under which platform and key an update is stored: a command that several accounts receive, once.

        Unlike a message it has no row in the log that tells.
        """
        for change in changes:
            if isinstance(change, Commanded) and self.is_shared(place := change.message.place):
                return place.platform, f"command {place.id} {change.message.id}"
        return platform, key

    async def _home(self, place: Place) -> Place:
        """Return the home of a place: itself, if no other account was there first."""
        if not self.is_shared(place):
            return place
        platforms = self._identity.platforms_beside(place.platform)
        key = platforms[0].service, place.id
        if key not in self._homes:
            known = await self._store.first_platform(place.id, [one.name for one in platforms])
            self._homes.setdefault(key, known or place.platform)  # another account may have come meanwhile
        home = self._homes[key]
        return place if home == place.platform else replace(place, platform=home)

    async def _moved(self, message: Message) -> Message:
        """Return a message in the home of its place."""
        home, account, quote = await self._home(message.place), message.place.platform, message.reply_to
        if home is message.place:
            return message
        if quote is not None:
            quote = replace(quote, parts=_fetched_by(account, quote.parts))
        return replace(message, place=home, parts=_fetched_by(account, message.parts), reply_to=quote)

    def _is_ours(self, message: Message) -> bool:
        """Return whether one of our accounts wrote a message in a shared place."""
        beside = self._identity.platforms_beside(message.place.platform)
        return self.is_shared(message.place) and message.author.id in [one.me.id for one in beside]

    def _commands_another(self, message: Message) -> bool:
        """Return whether a message is a command for another account of ours, which receives it itself."""
        beside = self._identity.platforms_beside(message.place.platform)
        others = [(one.me.username or "").lower() for one in beside if one.name != message.place.platform]
        return bool(whom := self._named_account(message)) and whom in others

    def _commanded(self, message: Message) -> str:
        """Return the agent whose account a command names; empty where it names none."""
        return self._identity.account_agent(message.place.platform) if self._named_account(message) else ""

    def _named_account(self, message: Message) -> str:
        """Return the username that a command in a shared place names."""
        found = COMMAND.match(message.text.strip()) if self.is_shared(message.place) else None
        return (found["bot"] or "").lower() if found else ""


def _fetched_by(account: str, parts: Sequence[Part]) -> tuple[Part, ...]:
    return tuple(replace(part, account=account) if isinstance(part, Media) and part.file_id else part for part in parts)
