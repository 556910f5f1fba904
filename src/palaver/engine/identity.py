"""Who the agent is: one persona, with an account on each platform. What an account wrote is the agent's own."""

import asyncio
import logging
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from palaver.characters import is_blank
from palaver.context.values import Persona
from palaver.engine.background import error_text, foreign_code
from palaver.errors import InvalidValue
from palaver.messages import Author, Message, Place
from palaver.platform import Platform

log = logging.getLogger(__name__)

PATIENCE = 10.0  # seconds that a platform may take to tell a role


def platforms_by_name(platforms: Iterable[Platform]) -> dict[str, Platform]:
    """Platforms by their names; `InvalidValue` where one has none, or two have the same."""
    if isinstance(platforms, Platform):
        raise InvalidValue(f"platforms are given as a list: Engine(store, model, [{type(platforms).__name__}(…)])")
    named: dict[str, Platform] = {}
    for platform in platforms:
        if not isinstance(platform, Platform):
            raise InvalidValue(f"a platform is an instance of a subclass of Platform, not {platform!r:.100}")
        if not isinstance(getattr(platform, "name", None), str):
            raise InvalidValue(f"{type(platform).__name__} has no `name`: every platform names itself")
        if named.setdefault(platform.name, platform) is not platform:
            raise InvalidValue(f"two platforms are called {platform.name!r}: each account needs a name of its own")
    return named


class Identity:
    """The persona may be changed between runs."""

    def __init__(self, persona: Persona, platforms: Mapping[str, Platform], *, patience: float = PATIENCE) -> None:
        self.persona = persona
        self._patience = patience
        self._platforms = platforms

    def persona_on(self, platform: str) -> Persona:
        """The persona under the name by which the agent's own messages are known there."""
        return replace(self.persona, name=self.persona.name or self._platforms[platform].me.name)

    def author_on(self, platform: str) -> Author:
        return replace(self._platforms[platform].me, persona=self.persona_on(platform).name)

    def attributed(self, message: Message) -> Message:
        """Return *message* with the service of its place, and our persona on its author and the author of its quote,
        where that is our account.

        A platform may not know that its own account is an agent's. What others bear as their persona stays: it makes
        them agents, and never us.
        """
        me, quote = self.author_on(message.place.platform), message.reply_to
        message = replace(message, place=self.placed(message.place))
        if message.author.id == me.id:
            message = replace(message, author=replace(message.author, persona=me.persona))
        if quote is not None and quote.author is not None and quote.author.id == me.id:
            message = replace(message, reply_to=replace(quote, author=replace(quote.author, persona=me.persona)))
        return message

    def placed(self, place: Place) -> Place:
        """Return *place* with the service whose accounts its people have."""
        service = self._platforms[place.platform].service
        return replace(place, service="" if service == place.platform else service)

    def knows(self, platform: str) -> bool:
        return platform in self._platforms

    async def administers(self, place: Place, author: Author) -> bool:
        """Whether an author owns or administers a place. A platform that cannot say is not taken for a yes."""
        platform = self._platforms.get(place.platform)
        if platform is None:
            return False
        try:
            async with asyncio.timeout(self._patience):
                with foreign_code(platform.name):
                    return await platform.role(place, author) in ("owner", "administrator")
        except Exception as error:  # noqa: BLE001 (a platform's own)
            log.error("%s cannot tell the role of %s: %s", platform.name, author.id, error_text(error))
            return False

    def require_accounts(self) -> None:
        """Raise `InvalidValue` for a platform whose account has no id: nobody could tell what it wrote."""
        for name, platform in self._platforms.items():
            if not isinstance(getattr(platform, "me", None), Author) or is_blank(platform.me.id):
                raise InvalidValue(f"the platform {name!r} has no id of our account: `me` needs one")
