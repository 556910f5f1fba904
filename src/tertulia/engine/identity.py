"""Identity: the agents, and our account on each platform."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from inspect import iscoroutinefunction

from msgspec.structs import replace

from tertulia.characters import is_blank
from tertulia.code_location import code_location
from tertulia.context.values import Persona
from tertulia.engine.agents.agent import Agent, Cast
from tertulia.engine.background import foreign_code, log_text
from tertulia.errors import InvalidValue
from tertulia.messages import Author, Message, Place
from tertulia.parts import foreign_parts
from tertulia.platform import Platform
from tertulia.seen_by import SeenBy

log = logging.getLogger(__name__)

ASYNC_METHODS = ("open", "close", "run", "send", "fetch", "preview", "announce", "role")  # of a platform
ROLE_TIMEOUT = 10.0  # seconds that `Platform.role` may take


def platforms_by_name(platforms: Iterable[Platform]) -> dict[str, Platform]:
    """Return platforms by their names. Raise `InvalidValue` where one has no name, or two have the same."""
    if isinstance(platforms, Platform):
        raise InvalidValue(f"platforms must be a list: Engine(store, model, [{type(platforms).__name__}(…)])")
    named: dict[str, Platform] = {}
    for platform in platforms:
        require_usable(platform)
        if named.setdefault(platform.name, platform) is not platform:
            raise InvalidValue(f"two platforms are named {platform.name!r}: give each account its own name")
    return named


def require_usable(platform: object) -> None:
    """Raise `InvalidValue` for a platform without a name, or with a method that is not `async def`."""
    if not isinstance(platform, Platform):
        raise InvalidValue(f"a platform must be an instance of Platform, not {platform!r:.100}")
    kind = type(platform).__name__
    if not isinstance(getattr(platform, "name", None), str):
        raise InvalidValue(f"{kind} has no `name`: set it on the class or in __init__")
    for name in ASYNC_METHODS:
        method = getattr(platform, name)
        if not iscoroutinefunction(method):
            code = getattr(method, "__code__", None)
            where = f"{code_location(code.co_filename, code.co_firstlineno)}: " if code else ""
            raise InvalidValue(f"{where}{kind}.{name} must be a coroutine: write `async def {name}`")


def require_account(platform: Platform) -> None:
    """Raise `InvalidValue` for a platform whose `me` has no id: its messages could not be recognised as ours."""
    if not isinstance(getattr(platform, "me", None), Author) or is_blank(platform.me.id):
        raise InvalidValue(f"platform {platform.name!r}: `me` must be an Author with an id")


class Identity:
    """Who we are: the agents, which may change at any time, and our accounts. What they wrote is our own."""

    def __init__(
        self,
        cast: Cast,
        platforms: Mapping[str, Platform],
        *,
        owners: Iterable[str] = (),
        role_timeout: float = ROLE_TIMEOUT,
    ) -> None:
        self.cast = cast
        self.had_several = not cast.is_single  # agents, also in an earlier process
        self._authors: dict[tuple[str, str], tuple[Cast, Author, Author]] = {}  # as they were made, and of what
        self._owners = frozenset(owners)
        self._role_timeout = role_timeout
        self.platforms = platforms

    @property
    def persona(self) -> Persona:
        """The persona of the default agent."""
        return self.cast.default.persona

    @persona.setter
    def persona(self, persona: Persona) -> None:
        self.cast = self.cast.with_persona(persona)

    @property
    def sees_all(self) -> bool:
        """Whether there is one agent, and never was another: what people told that one, it does not see."""
        return self.cast.is_single and not self.had_several

    def agent_named(self, name: str) -> Agent:
        """Return the agent that is stored under a name; the default agent for one that was removed."""
        return self.cast.get(name) or self.cast.default

    def language_of(self, agent: str) -> str:
        """Return the language of an agent's own lines; empty: that of the engine."""
        return self.agent_named(agent).language

    def seen_by(self, name: str) -> SeenBy | None:
        """Return what of memory the agent that is stored under a name sees; None for the only one, which sees all."""
        return None if self.sees_all else self.agent_named(name).seen_by

    def stored(self, name: str) -> str:
        """Return the name under which an agent is stored."""
        return self.cast.stored_name(self.agent_named(name))

    def persona_on(self, platform: str, agent: str = "") -> Persona:
        """Return the persona of an agent, with the name of our account where it has none."""
        persona = self.agent_named(agent).persona
        return replace(persona, name=persona.name or self.platforms[platform].me.name)

    def author_on(self, platform: str, agent: str = "") -> Author:
        """Return an agent as an author: our account, under the name of the agent where there are several."""
        me, cast = self.platforms[platform].me, self.cast
        known = self._authors.get((platform, agent))
        if known is None or known[0] is not cast or known[1] != me:
            name = self.persona_on(platform, agent).name
            known = cast, me, replace(me, persona=name, name=me.name if cast.is_single else name)
            self._authors[platform, agent] = known
        return known[2]

    def author_in(self, place: Place, agent: str = "") -> Author:
        """Return an agent as an author in a place: the account by which it speaks there."""
        return self.author_on(self.account_in(place, agent), agent)

    def account_in(self, place: Place, agent: str) -> str:
        """Return the platform by whose account an agent speaks in a place: its own one, where that sees the place."""
        own = self.agent_named(agent).accounts if agent and self.is_shared(place) else ()
        beside = [one.name for one in self.platforms_beside(place.platform)] if own else []
        return next((one for one in own if one in beside and place.platform not in own), place.platform)

    def is_shared(self, place: Place) -> bool:
        return place.platform in self.platforms and self.platforms[place.platform].is_shared(place)

    def platforms_beside(self, platform: str) -> list[Platform]:
        """Return the platforms on the service of one, in their order, with itself."""
        service = self.platforms[platform].service
        return [one for one in self.platforms.values() if one.service == service]

    def account_agent(self, platform: str) -> str:
        """Return the stored name of the agent that an account of ours is: its own one, else the default agent."""
        return self.cast.stored_name(self.cast.owner_of(platform) or self.cast.default)

    def attribute(self, message: Message) -> Message:
        """Return *message* with the service of its place, and with our persona where our account wrote it or its quote.

        Its media name no stored file: only we know which file belongs to whom.
        Platforms need not know the persona of their account. The personas of other authors stay: they mark agents.
        """
        accounts = {one.me.id: one.name for one in self.platforms_beside(message.place.platform)}
        author, quote, origin = message.author, message.reply_to, message.forwarded_from
        message = replace(
            message,
            place=self.with_service(message.place),
            author=self._with_persona(author, accounts),
            parts=foreign_parts(message.parts),
            agent=self.account_agent(accounts[author.id]) if author.id in accounts else None,
        )
        if quote is not None:
            cited = quote.author and self._with_persona(quote.author, accounts)
            message = replace(message, reply_to=replace(quote, author=cited, parts=foreign_parts(quote.parts)))
        if origin is not None and origin.id in accounts:
            message = replace(message, forwarded_from=self._with_persona(origin, accounts))
        return message

    def _with_persona(self, author: Author, accounts: Mapping[str, str]) -> Author:
        """Return an author with our persona, if it is one of our accounts: they are platforms, by the ids of these."""
        if author.id not in accounts:
            return author
        account = accounts[author.id]
        return replace(author, persona=self.persona_on(account, self.account_agent(account)).name)

    def with_service(self, place: Place) -> Place:
        """Return *place* with the service of its platform."""
        service = self.platforms[place.platform].service
        return replace(place, service="" if service == place.platform else service)

    @property
    def has_owners(self) -> bool:
        return bool(self._owners)

    def is_owner(self, place: Place, author: Author) -> bool:
        """Return whether an author is one of `Behavior.owners`."""
        return author.id in self.owners_on(place.platform)

    def owners_on(self, platform: str) -> list[str]:
        """Return the ids of the owners that have accounts on the service of a platform."""
        service = f"{self.platforms[platform].service}:" if platform in self.platforms else ":"
        return sorted(owner.removeprefix(service) for owner in self._owners if owner.startswith(service))

    async def is_administrator(self, place: Place, author: Author) -> bool:
        """Return whether an author owns or administers a place; False where the platform fails or does not know."""
        platform = self.platforms.get(place.platform)
        if platform is None:
            return False
        if self.is_owner(place, author):
            return True
        try:
            async with asyncio.timeout(self._role_timeout):
                with foreign_code(platform.name):
                    return await platform.role(place, author) in ("owner", "administrator")
        except Exception as error:  # noqa: BLE001 (a platform's own)
            log.error("%s.role failed for author %s: %s", platform.name, author.id, log_text(error))
            return False

    def require_accounts(self) -> None:
        """Raise `InvalidValue` for a platform whose `me` has no id."""
        for platform in self.platforms.values():
            require_account(platform)
