"""The context: everything that a prompt for one batch of messages is made of; frozen. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from math import isfinite
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tertulia.characters import is_blank, visible
from tertulia.errors import InvalidValue
from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Media, Text
from tertulia.tasks.kinds import BlockLine
from tertulia.turns import Turn
from tertulia.value_cache import cached_for
from tertulia.wire.media_limits import ANY_MODEL, MediaTaken

MIN_STEM = 2  # characters before a `*` in a name
SourceName = Literal["window", "immediate", "recent", "relevant", "background", "episodic", "past", "media"]


class Persona(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The persona of the agent. The operator wrote its texts: they are trusted, and are not escaped."""

    name: str = ""  # where no account is known, messages whose author bears this persona are the agent's own
    name_pattern: str = ""  # what people call it, names with a bar between; `гряг*` has any ending
    text: str = ""
    role: str = ""  # the part it plays in this place
    rules: str = ""
    procedure: str = ""
    notes: str = ""  # for the model that is asked

    def __post_init__(self) -> None:
        require_names(self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """What people call it, by `name_pattern`."""
        return tuple(name.strip() for name in self.name_pattern.split("|")) if self.name_pattern else ()


def require_names(names: Iterable[str]) -> None:
    """Raise `InvalidValue` for a name that is blank, or has a `*` that does not follow two letters at its end."""
    for name in names:
        stem = name.removesuffix("*")
        if "*" in stem or is_blank(stem) or (stem != name and len(visible(stem)) < MIN_STEM):
            raise InvalidValue(f"{name!r} is no name: write names such as gryag, or gryag* for any ending")


class RelevantMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An earlier message that is relevant to the target."""

    text: str
    score: float
    message_id: str | None = None  # where it was said, so that it is not shown beside itself
    place: Place | None = None  # that of the target where none is named
    shown: str = ""  # what its media show, in our words
    said_by: str = ""  # who and when, where the text does not say it yet
    said_at: datetime | None = None
    why: str = ""  # what speaks for it

    def with_speaker(self, day: str) -> str:
        """Return the text after its author, the *day*, and what its media show."""
        said = f"{self.said_by}{day}, {self.shown}" if self.shown else f"{self.said_by}{day}"
        return f"{said}: {self.text}" if self.text else said


class RecalledEpisode(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stretch of conversation: its topic and a summary."""

    topic: str
    summary: str
    start: int | None = None  # the number of its first message, where it happened here
    id: str = ""
    score: float | None = None
    why: str = ""  # what speaks for it


class Background(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Facts from memory about the author of the target."""

    memories: tuple[str, ...] = ()
    summary: str = ""
    key_facts: dict[str, str] = {}
    fact_ids: dict[str, tuple[str, ...]] = {}  # of the facts, by the memory or the key that shows them


class RecalledThing(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a prompt shows from memory, by its id."""

    kind: Literal["fact", "message", "episode"]
    id: str
    place: Place | None = None  # of a message
    score: float | None = None
    why: str = ""  # it is shown


class Workspace(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the agent works on, as JSON values."""

    file_references: tuple[Any, ...] = ()  # files that it may need, by name or with their content
    artifacts: tuple[Any, ...] = ()  # what it has made
    todos: tuple[Any, ...] = ()  # what is left to do


class AvailableSticker(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sticker that the agent may send."""

    set: str
    name: str
    description: str = ""


class LeftOut(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A report of what a source left out, and why."""

    source: SourceName
    why: str
    ids: tuple[str, ...] = ()  # of the messages, facts or episodes
    text: str = ""  # the beginning of what has no id
    tokens: int = 0
    count: int = 1  # how many things; more than there are ids where these would be too many


class Notice(Message, frozen=True, kw_only=True, omit_defaults=True):
    """A notice of an edit or a deletion after a message was shown; its parts are the new ones.

    It stands in the window where the change happened. Its id cannot be that of a message, so that turns and quotes of
    the message are not taken for its own.
    """

    shown: Message  # as the window shows it
    at: int  # the index in the window of the message it stands before
    is_deletion: bool = False  # whether the message was deleted
    late: bool = False  # whether no message came after it yet: it goes with the trigger, not in the window


class ReactionNotice(Notice, frozen=True, kw_only=True, omit_defaults=True):
    """A notice that its author reacted to a message."""

    emojis: tuple[str, ...]  # all of the author's since then; empty: the reaction was removed


class Album(Message, frozen=True, kw_only=True, omit_defaults=True):
    """The messages of an album as one: the id of the first, and the parts of all."""

    ids: tuple[str, ...]


class OwnNames(NamedTuple):
    """Under which names of agents the messages of an account are an agent's own."""

    names: tuple[str, ...] = ()  # none: all messages of the account are
    is_only: bool = True  # whether the account has no other agent now


class Context(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that a profile lays out as a prompt. Messages are in the order they were sent."""

    target: Message
    earlier: tuple[Message, ...] = ()  # answered together with the target, and sent before it
    later: tuple[Message, ...] = ()  # the same, sent after it
    now: datetime
    place: Place
    zone: str = "UTC"
    persona: Persona = Persona()
    account: str | None = None  # the id of the agent's account here; None, as in documents: its persona decides
    agent: OwnNames = OwnNames()  # which of the account's messages are its own
    levels: bool = True  # whether the history is immediate, recent and newer; else it is the window
    immediate: tuple[Message, ...] = ()
    recent: tuple[Message, ...] = ()
    newer: tuple[Message, ...] = ()  # sent after the target, and not answered with it
    window: tuple[Message, ...] = ()  # deleted messages keep their place in it
    notices: tuple[Notice, ...] = ()  # of changes after a message of the window was shown; in order
    window_start: int = 0  # how many messages of the place came before the window
    stable: int = 0  # how many messages of the window, from the first on, are in the stable prefix
    stable_since: int = 0  # how many messages the place had at the last step: these have not changed since
    settled_after: int = 1  # after how many further messages the words of one must not change any more
    past: str = ""  # a summary of what came before the window; the same while the window begins there
    turns: dict[str, tuple[Turn, ...]] = {}  # by the id of an own message: the turns of the model that wrote it
    written_quotes: dict[str, Quote] = {}  # by the id of a message of the batch: its quote as written beside it
    relevant: tuple[RelevantMessage, ...] = ()
    memories: tuple[str, ...] = ()
    summary: str = ""
    key_facts: dict[str, str] = {}
    fact_ids: dict[str, tuple[str, ...]] = {}  # of what is known, by the memory or the key that shows them
    episodes: tuple[RecalledEpisode, ...] = ()
    workspace: Workspace = Workspace()
    stickers: tuple[AvailableSticker, ...] = ()
    task_blocks: tuple[BlockLine, ...] = ()  # a line for each kind of task block that the model may write
    delimiter: str = ""  # a secret of the place that marks our own lines
    model: str = ""  # the name of the model that is asked
    taken: MediaTaken = ANY_MODEL  # what it takes of media
    left_out: tuple[LeftOut, ...] = ()

    def is_own(self, message: Message) -> bool:
        """Return whether the agent itself wrote *message*, and no other agent of the account."""
        if self.agent.names and message.agent is not None:
            return message.agent in self.agent.names
        return self.is_me(message.author)

    def is_me(self, author: Author) -> bool:
        """Return whether *author* is the agent: by its account, or by its persona where no account is known."""
        if self.account is not None:
            return author.id == self.account and (self.agent.is_only or author.persona in (None, self.persona.name))
        return bool(author.persona) and author.persona == self.persona.name

    @property
    def identity(self) -> str:
        """The account of the agent, or its persona where no account is known; part of the key of cached turns."""
        if self.account is None:
            return f"persona {self.persona.name}"
        return f"account {self.account}" if self.agent.is_only else f"account {self.account} {self.persona.name}"

    @property
    def batch(self) -> tuple[Message, ...]:
        """All messages that are answered, in the order they were sent; the target is one of them."""
        return (*self.earlier, self.target, *self.later)

    def with_batch(self, messages: Sequence[Message]) -> "Context":
        """Return the context with *messages* in place of those of its batch, one for one."""
        at = len(self.earlier)
        return replace(self, earlier=tuple(messages[:at]), target=messages[at], later=tuple(messages[at + 1 :]))

    @property
    def quote(self) -> Quote | None:
        """The quote of the target, else the newest of the batch; none that quotes the batch itself."""
        ids = {message.id for message in self.batch}
        quotes = [message.reply_to for message in (*self.earlier, *self.later, self.target) if message.reply_to]
        return next((quote for quote in reversed(quotes) if quote.message_id not in ids), None)

    def written(self, quote: Quote) -> Quote:
        """Return a quote of the batch as it is written beside its message: media that go already are words."""
        replies = (message.id for message in self.batch if message.reply_to == quote)
        return self.written_quotes.get(next(replies, ""), quote)

    @property
    def question(self) -> Message:
        """The batch as one message: the target with the parts of all of them."""
        if not self.earlier and not self.later:
            return self.target
        parts = tuple(part for message in self.batch for part in message.parts)
        return replace(self.target, parts=parts, reply_to=self.quote)

    @property
    def history(self) -> tuple[Message, ...]:
        """The messages besides the batch: the levels, or the window with its notices and without deleted messages."""
        if self.levels:
            return (*self.recent, *self.immediate, *self.newer)
        return tuple(message for message in self.window_with_notices() if not message.deleted)

    def as_now(self) -> "Context":
        """Return the context with the notices of edits and deletions applied to the window, and without notices."""
        edits = {one.shown.id: one for one in self.notices if not isinstance(one, ReactionNotice)}
        window = tuple(_as_now(one, edits[one.id]) if one.id in edits else one for one in self.window)
        turns = {name: made for name, made in self.turns.items() if name not in edits}
        return replace(self, window=window, turns=turns, notices=()) if self.notices else self

    def unshown_quotes(self, history: Sequence[Message]) -> dict[str, Quote]:
        """Return, by message id, the quotes of a *history* whose quoted message is neither in it nor in the batch.

        Of a message that is shown, only a marked passage is quoted. A deleted message is still in the window, so quotes
        of it are not shown.
        """
        replies = [message for message in history if message.reply_to is not None and not message.deleted]
        if not replies:
            return {}
        shown = {message.id: message.deleted for message in (*history, *self.batch)}
        quotes = ((one.id, one.reply_to) for one in replies if one.reply_to)
        told = ((name, quote.beside(deleted=shown.get(quote.message_id))) for name, quote in quotes)
        return {name: quote for name, quote in told if quote is not None}

    @property
    def recollections(self) -> tuple[str, ...]:
        """The texts from memory, each once: of the author, relevant messages, episodes."""
        known = (*self.key_facts.values(), *self.memories) or (self.summary,)
        happened = (": ".join(filter(None, (one.topic, one.summary))) for one in self.episodes)
        texts = (*known, *(hit.text for hit in self.relevant), *happened)
        return tuple(text for text in dict.fromkeys(texts) if text.strip())

    @property
    def recalled(self) -> Iterator[RecalledThing]:
        """What is shown from memory and has an id: facts, messages, episodes."""
        for shown in (*self.key_facts, *self.memories):
            for fact_id in self.fact_ids.get(shown, ()):
                yield RecalledThing(kind="fact", id=fact_id, why="it is known of the author")
        for hit in self.relevant:
            if hit.message_id:
                place, score = hit.place or self.place, hit.score if isfinite(hit.score) else None
                yield RecalledThing(kind="message", id=hit.message_id, place=place, score=score, why=hit.why)
        for episode in self.episodes:
            if episode.id:
                yield RecalledThing(kind="episode", id=episode.id, score=episode.score, why=episode.why)

    @property
    def late_notices(self) -> tuple[Notice, ...]:
        """The notices that go with the trigger."""
        return tuple(notice for notice in self.notices if notice.late)

    def window_with_notices(self, start: int = 0, stop: int | None = None) -> tuple[Message, ...]:
        """Return the window from index *start* up to *stop*, by default to its end, with the notices in it."""
        if not self.notices:
            return self.window[start:stop]
        shown: list[Message] = []
        for notice in self.notices:
            if start <= notice.at and (stop is None or notice.at < stop) and not notice.late:
                shown += (*self.window[start : notice.at], notice)
                start = notice.at
        return (*shown, *self.window[start:stop])


def _as_now(message: Message, change: Notice) -> Message:
    """Return the message after *change*, whose media are words; those that it had stay as they were shown."""
    if change.is_deletion:
        return replace(message, parts=(), deleted=True)
    known = {part.unique_id: part for part in message.parts if isinstance(part, Media)}
    parts = (known.get(part.unique_id, part) if isinstance(part, Media) else part for part in change.parts)
    return replace(message, parts=tuple(parts))


def with_albums(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages with each album as one message."""
    if not any([message.album for message in messages]):  # noqa: C419 (a list is faster here, for every turn)
        return messages
    joined: list[Message] = []
    for (_, album, _), found in groupby(messages, key=lambda one: (one.author.id, one.album, one.forwarded_from)):
        members = list(found)
        if album is None or len(members) == 1 or any(isinstance(one, Notice) for one in members):
            joined += members
        elif sent := [one for one in members if not one.deleted]:
            joined.append(_album_of(sent) if len(sent) > 1 else sent[0])
    return joined


def _album_of(members: list[Message]) -> Album:
    """Return the album of these messages; cached on the first, so that it is rendered once."""
    first = members[0]

    def make() -> Album:
        return Album(
            id=first.id,
            place=first.place,
            author=first.author,
            sent_at=first.sent_at,
            parts=tuple(part for one in members for part in one.parts if part != Text(text="")),
            reply_to=next((one.reply_to for one in members if one.reply_to), None),
            album=first.album,
            forwarded_from=first.forwarded_from,
            ids=tuple(one.id for one in members),
        )

    return cached_for(first, "album", members, make)
