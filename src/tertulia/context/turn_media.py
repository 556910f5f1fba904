"""Media in the agent's own turns: what its model and its tools made. They are chosen like those of messages. Pure.

An own message with turns is shown by these, not by its parts. So where media are chosen a stand-in has the place of the
message: its parts are the media of the turns, in their order. What is chosen of them is put back into the turns.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from tertulia.context.media_budget import message_in_words, with_media
from tertulia.context.values import Context
from tertulia.media.prompt_media import sent_media_in_turn, with_sent_media
from tertulia.media.sent_forms import sent_as
from tertulia.messages import Message
from tertulia.parts import Media, Part, change_media
from tertulia.turns import Role, Turn
from tertulia.value_cache import cached, cached_for
from tertulia.wire.media_limits import MediaTaken

Turns = Mapping[str, tuple[Turn, ...]]  # by the id of the message


class OwnMedia:
    """The messages with media; of those of the agent, of which some have turns, their media."""

    def __init__(self, messages: Sequence[Message], turns: Turns, context: Context) -> None:
        taken = context.taken
        self._turns = turns
        self._with_media = with_sent_media(turns)
        self.messages = with_media(messages)
        own = [one for one in self.messages if one.id not in turns and context.is_own(one)]
        if self._with_media:
            own += (one for one in messages if one.id in self._with_media)
        self._stand_ins = {one.id: _stand_in(one, self._with_media.get(one.id, ()), taken) for one in own}

    @property
    def turns_in_words(self) -> Turns:
        """The turns with words for their media."""
        return {**self._turns, **{name: tuple(map(turn_in_words, made)) for name, made in self._with_media.items()}}

    def stand_ins(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages with stand-ins for the agent's own."""
        return [self._stand_ins.get(one.id, one) for one in messages] if self._stand_ins else messages

    def stand_ins_in_words(self, in_words: Sequence[Message]) -> Sequence[Message]:
        """Return messages in words with stand-ins in words."""
        if not self._stand_ins:
            return in_words
        found = self._stand_ins
        return [message_in_words(found[one.id]) if one.id in found and not one.deleted else one for one in in_words]

    def shown(self, chosen: Sequence[Message], in_words: Sequence[Message]) -> tuple[Message, ...]:
        """Return the messages that were *chosen*; those with turns in words, since their turns are shown."""
        if not self._with_media:
            return tuple(chosen)
        return tuple(words if one.id in self._with_media else one for one, words in zip(chosen, in_words, strict=True))

    def shown_turns(self, chosen: Sequence[Message]) -> Turns:
        """Return the turns with the media that were *chosen*, and words for all others."""
        if not self._with_media:
            return self._turns
        found = {one.id: one.parts for one in chosen if one.id in self._with_media and not one.deleted}
        shown = {
            name: cached_for(made[0], "chosen media", (made, found[name]), partial(_with_chosen, made, found[name]))
            for name, made in self._with_media.items()
            if name in found
        }
        return {**self.turns_in_words, **shown}


def turn_in_words(turn: Turn) -> Turn:
    """Return the turn with words for its media; cached."""
    return cached(turn, "media in words", partial(_with_media, change=Media.without_content))


def _with_media(turn: Turn, change: Callable[[Media], Media]) -> Turn:
    parts = change_media(turn.parts, lambda media: change(media) if media.has_content else media)
    return turn if parts is turn.parts else replace(turn, parts=parts)


def _stand_in(message: Message, turns: tuple[Turn, ...], taken: MediaTaken) -> Message:
    def make() -> Message:
        if turns:
            shown = (_as_sent(media, role, taken) for turn in turns for media, role in sent_media_in_turn(turn))
            return replace(message, parts=tuple(shown))
        parts = change_media(message.parts, lambda media: _as_sent(media, "model", taken))
        return message if parts is message.parts else replace(message, parts=parts)

    return cached_for(message, "own media", (turns, taken), make)


def _as_sent(media: Media, role: Role, taken: MediaTaken) -> Media:
    """Return media, or words if this model does not get them back."""
    goes = not media.has_content or role == "user" or sent_as(media, taken, role) != "words"
    return media if goes else media.without_content()


def _with_chosen(turns: tuple[Turn, ...], chosen: tuple[Part, ...]) -> tuple[Turn, ...]:
    rest = (part for part in chosen if isinstance(part, Media))
    return tuple(_with_media(turn, lambda _: next(rest)) for turn in turns)
