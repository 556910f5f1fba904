"""Translator: the agent's own lines in the language of the person they are for."""

from collections.abc import Callable

from tertulia.context.log import Log
from tertulia.engine.behavior import Behavior
from tertulia.engine.languages.lines import Lines
from tertulia.engine.store_protocols import OutboxItem, PlaceSettings, RunStore
from tertulia.messages import Author, Message, Place


class Translator:
    """Chooses the language of a line: that of the person's client, else of the agent, else `Behavior.language`."""

    def __init__(
        self,
        behavior: Behavior,
        of_agent: Callable[[str], str],
        languages: PlaceSettings,
        runs: RunStore,
        messages: Log,
    ) -> None:
        self._behavior = behavior
        self._of_agent = of_agent  # returns the language of an agent
        self._languages = languages
        self._runs = runs
        self._messages = messages

    async def lines_for(self, message: Message, agent: str = "") -> Lines:
        """Return the lines of an agent for the author of a message."""
        spoken = await self.language_of(message.place, message.author)
        return self._behavior.lines_in(spoken or self._of_agent(agent))

    async def language_of(self, place: Place, author: Author) -> str:
        """Return the language of an author, as it was last said; empty if it is unknown."""
        stored = self._languages.language
        return author.language or await stored(platform=place.author_namespace, author_id=author.id) or ""

    async def lines_for_reply(self, item: OutboxItem) -> Lines:
        """Return the lines for the person whom a reply answers."""
        journal = await self._runs.journal(item.run) if item.run else None
        target = journal.run.target if journal else item.reply.reply_to
        asked = await self._messages.get(item.reply.place, target) if target else None
        return await self.lines_for(asked, item.agent) if asked else self._behavior.lines_in("")

    async def language_for(self, message: Message) -> str:
        """Return the language of the author of a message, or that of the agent where it is unknown."""
        return await self.language_of(message.place, message.author) or self._behavior.language
