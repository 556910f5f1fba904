"""Who the agent is: one persona, with an account on each platform."""

from collections.abc import Mapping

from msgspec.structs import replace

from palaver.context.values import Persona
from palaver.conversation.platform import Platform
from palaver.messages import Author


class Selves:
    """The persona may be changed between runs."""

    def __init__(self, persona: Persona, platforms: Mapping[str, Platform]) -> None:
        self.persona = persona
        self._platforms = platforms

    def persona_on(self, platform: str) -> Persona:
        """The persona under the name by which the agent's own messages are known there."""
        return replace(self.persona, name=self.persona.name or self._platforms[platform].me.name)

    def author_on(self, platform: str) -> Author:
        return replace(self._platforms[platform].me, persona=self.persona_on(platform).name)
