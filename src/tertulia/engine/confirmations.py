"""Confirmations: the plain yes with which a person confirms that facts are forgotten."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from tertulia.characters import visible
from tertulia.engine.agents.names import name_pattern
from tertulia.engine.shared import Shared
from tertulia.engine.store_protocols import Proposal
from tertulia.memory.values import Fact
from tertulia.messages import Message
from tertulia.parts import joined_text

_WORDS = """
    yes|yep|yeah|yup|y|sure|ok|okay|okey|k|confirm|confirmed|i confirm|go ahead|do it|yes do it|ok do it|of course
    так|ага|угу|добре|гаразд|звісно|авжеж|підтверджую|ок|окей|да|конечно|хорошо|ладно|подтверждаю|давай
    tak|dobrze|jasne|ja|jawohl|oui|d'accord|sí|si|claro|vale|sim|sì|evet|はい|好|好的|是|是的|네|예
    👍|✅|👌|+
    """
YES = frozenset(word.strip() for line in _WORDS.strip().splitlines() for word in line.split("|"))
_PLEASE = re.compile(r"\b(?:please|pls|будь ласка|пожалуйста|proszę|bitte|por favor|s'il te plaît)\b")
_SKIN = re.compile("[\U0001f3fb-\U0001f3ff]")  # the colour of a hand
_AROUND = " \t\r\n.,!;:…\"'«»“”()"
_LONGEST = 80  # characters; a plain yes has fewer


class Confirmations:
    """Finds the facts that a message confirms. No model takes part in that."""

    def __init__(self, shared: Shared) -> None:
        self._proposals = shared.store.proposals
        self._identity = shared.identity
        self._now = shared.now

    async def find_facts(self, message: Message) -> Sequence[Fact]:
        """Return the facts that *message* confirms by a yes; in a group it must be addressed to us."""
        ours = [one.me for one in self._identity.platforms_beside(message.place.platform)]
        mentions = [f"@{me.username.lstrip('@')}" for me in ours if me.username]
        called = (name for agent in self._identity.cast.agents for name in agent.called)
        names = [name for name in (*mentions, *(me.name.rstrip("*") for me in ours), *called) if name]
        if not is_yes(message, names):
            return ()
        if message.place.kind != "direct" and message.reply_to is None:
            text = _normalized_text(message)
            if not any(name_pattern(name).search(text) for name in names):
                return ()
        found = await self._proposals.candidates(message, now=self._now())
        return list({one.fact.id: one.fact for one in found if confirms(message, one)}.values())


def confirms(message: Message, proposal: Proposal) -> bool:
    """Return whether a yes is meant for a proposal: the next message of its author, who quotes it or what was last."""
    if message.author.id in proposal.authors_since:
        return False
    return proposal.is_last if message.reply_to is None else message.reply_to.message_id == proposal.shown_as


def is_yes(message: Message, names: Iterable[str] = ()) -> bool:
    """Return whether a message says only yes, with or without one of *names* and a please; a forwarded yes is none."""
    if message.forwarded_from or len(message.parts) != 1 or len(joined_text(message.parts, "")) > _LONGEST:
        return False
    text = _normalized_text(message)
    for name in names:
        text = name_pattern(name).sub(" ", text)
    words = _SKIN.sub("", _PLEASE.sub(" ", text)).strip(_AROUND)
    return " ".join(words.replace(",", " ").split()) in YES


def _normalized_text(message: Message) -> str:
    """Return the text of a message, normalized for comparison."""
    return unicodedata.normalize("NFC", visible(joined_text(message.parts, ""))).casefold()
