"""What the agent should know to answer one message: the context, gathered and frozen. Pure."""

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from palaver.messages import Author, Message, Place, Quote
from palaver.parts import Text
from palaver.turns import Turn
from palaver.value_cache import cached_for

SourceName = Literal["window", "immediate", "recent", "relevant", "background", "episodic", "past", "media"]


class Persona(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who the agent is. Its words are the operator's own: they are trusted, and go out as they are."""

    name: str = ""  # where no account is known, messages whose author bears this persona are the agent's own
    text: str = ""
    role: str = ""  # the part it plays in this place
    rules: str = ""
    procedure: str = ""
    notes: str = ""  # what the model that is asked must be told besides


class Hit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something said long ago that bears on the target."""

    text: str
    score: float
    message_id: str | None = None  # where it was said, so that it is not shown beside itself
    place: Place | None = None  # that of the target where none is named
    said_by: str = ""  # who and when, where the text does not say it yet
    said_at: datetime | None = None


class Episode(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that happened, and what it was about."""

    topic: str
    summary: str
    start: int | None = None  # the number of its first message, where it happened here
    id: str = ""


class Background(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of the author of the target."""

    memories: tuple[str, ...] = ()
    summary: str = ""
    key_facts: dict[str, str] = {}
    fact_ids: dict[str, tuple[str, ...]] = {}  # of the facts, by the memory or the key under which they are told


class Workspace(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the agent works with: JSON values, as its tools left them."""

    file_references: tuple[Any, ...] = ()
    artifacts: tuple[Any, ...] = ()
    todos: tuple[Any, ...] = ()


class Sticker(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One the agent may send."""

    set: str
    name: str
    description: str = ""


class LeftOut(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What did not go in, and why."""

    source: SourceName
    why: str
    ids: tuple[str, ...] = ()  # of the messages, facts or episodes
    text: str = ""  # the beginning of what has no id
    tokens: int = 0
    count: int = 1  # how many things; more than there are ids where these would be too many


class Notice(Message, frozen=True, kw_only=True, omit_defaults=True):
    """Tells, where it happened, that a message changed after it was shown: its parts are what that says now.

    Its own id is none that a message can have, so that nothing which belongs to the message is taken for its own.
    """

    shown: Message  # as it stands in the history
    at: int  # the index in the window of the message it stands before
    is_deletion: bool = False  # whether the message was deleted
    late: bool = False  # whether nothing came after it yet: it goes with the target, and its place is not settled


class ReactionNotice(Notice, frozen=True, kw_only=True, omit_defaults=True):
    """Tells, where it happened, that its author reacted to a message."""

    emojis: tuple[str, ...]  # all that they show since then; empty: they took them back


class Album(Message, frozen=True, kw_only=True, omit_defaults=True):
    """Messages that were sent as one album, as one message: it has the id of the first and the parts of all."""

    ids: tuple[str, ...]


class Context(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything a profile lays out as a prompt. Lists of messages are chronological."""

    target: Message
    earlier: tuple[Message, ...] = ()  # answered together with the target, and sent before it
    later: tuple[Message, ...] = ()  # the same, sent after it
    now: datetime
    place: Place
    zone: str = "UTC"
    persona: Persona = Persona()
    account: str | None = None  # the id of the agent's account here; None, as in documents: its persona decides
    levels: bool = True  # whether the history is immediate, recent and newer; else it is the window
    immediate: tuple[Message, ...] = ()
    recent: tuple[Message, ...] = ()
    newer: tuple[Message, ...] = ()  # sent after the target, and not answered with it
    window: tuple[Message, ...] = ()  # deleted ones keep their place in it, so that nothing else moves
    notices: tuple[Notice, ...] = ()  # of what changed after it was shown, and stands in the window as it was; in order
    window_start: int = 0  # how many messages of the place came before the window
    past: str = ""  # what these said, in short; the same for as long as the window begins there
    turns: dict[str, tuple[Turn, ...]] = {}  # by the id of an own message: what the model did and said to write it
    steps: tuple[Turn, ...] = ()  # of the run under way, after the target: calls and their results
    relevant: tuple[Hit, ...] = ()
    memories: tuple[str, ...] = ()
    summary: str = ""
    key_facts: dict[str, str] = {}
    episodes: tuple[Episode, ...] = ()
    workspace: Workspace = Workspace()
    stickers: tuple[Sticker, ...] = ()
    task_blocks: tuple[str, ...] = ()  # a line for each kind of task block that the model may write
    delimiter: str = ""  # kept per place; nobody who writes there can know it
    model: str = ""  # the name of the model that is asked
    left_out: tuple[LeftOut, ...] = ()

    def is_own(self, message: Message) -> bool:
        """Whether the agent itself wrote *message*."""
        return self.is_me(message.author)

    def is_me(self, author: Author) -> bool:
        """Whether *author* is the agent itself: by its account, or by its persona where no account is known."""
        if self.account is not None:
            return author.id == self.account
        return bool(author.persona) and author.persona == self.persona.name

    @property
    def identity(self) -> str:
        """What decides which messages are the agent's own; part of the key under which rendered messages are kept."""
        return f"persona {self.persona.name}" if self.account is None else f"account {self.account}"

    @property
    def batch(self) -> tuple[Message, ...]:
        """All messages that are answered, in the order they were sent; the target is among them."""
        return (*self.earlier, self.target, *self.later)

    def with_batch(self, messages: Sequence[Message]) -> "Context":
        """The context with *messages* in place of those of its batch, one for one."""
        at = len(self.earlier)
        return replace(self, earlier=tuple(messages[:at]), target=messages[at], later=tuple(messages[at + 1 :]))

    @property
    def quote(self) -> Quote | None:
        """What the batch replies to: the quote of the target, else the newest; none that quotes the batch itself."""
        ids = {message.id for message in self.batch}
        quotes = [message.reply_to for message in (*self.earlier, *self.later, self.target) if message.reply_to]
        return next((quote for quote in reversed(quotes) if quote.message_id not in ids), None)

    @property
    def question(self) -> Message:
        """The batch as one message: the target with the parts of all of them."""
        if not self.earlier and not self.later:
            return self.target
        parts = tuple(part for message in self.batch for part in message.parts)
        return replace(self.target, parts=parts, reply_to=self.quote)

    @property
    def history(self) -> tuple[Message, ...]:
        """The messages besides the batch: by levels, or the window without the deleted ones."""
        if self.levels:
            return (*self.recent, *self.immediate, *self.newer)
        return tuple(message for message in self.window_with_notices() if not message.deleted)

    def unshown_quotes(self, history: Sequence[Message]) -> dict[str, Quote]:
        """By the ids of messages of a *history*: what they reply to, where neither it nor the batch holds that.

        A quoted message that is deleted keeps its place in the window: its words are not told.
        """
        replies = [message for message in history if message.reply_to is not None and not message.deleted]
        if not replies:
            return {}
        shown = {message.id for message in (*history, *self.batch)}
        return {one.id: quote for one in replies if (quote := one.reply_to) and quote.message_id not in shown}

    @property
    def recollections(self) -> tuple[str, ...]:
        """What came to mind, each thing once: of the person, of what was said, of what happened."""
        known = (*self.key_facts.values(), *self.memories) or (self.summary,)
        happened = (": ".join(filter(None, (one.topic, one.summary))) for one in self.episodes)
        texts = (*known, *(hit.text for hit in self.relevant), *happened)
        return tuple(text for text in dict.fromkeys(texts) if text.strip())

    @property
    def late_notices(self) -> tuple[Notice, ...]:
        """The notices that go with the target."""
        return tuple(notice for notice in self.notices if notice.late)

    def window_with_notices(self, start: int = 0, stop: int | None = None) -> tuple[Message, ...]:
        """The window from index *start* up to *stop* with the notices that stand there; to its end unless it stops."""
        if not self.notices:
            return self.window[start:stop]
        told: list[Message] = []
        for notice in self.notices:
            if start <= notice.at and (stop is None or notice.at < stop) and not notice.late:
                told += (*self.window[start : notice.at], notice)
                start = notice.at
        return (*told, *self.window[start:stop])


def with_albums(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages, with those of an album that follow one another as one."""
    if not any([message.album for message in messages]):  # noqa: C419 (a list is faster here, for every turn)
        return messages
    joined: list[Message] = []
    for (_, album), found in groupby(messages, key=lambda one: (one.author.id, one.album)):
        members = list(found)
        if album is None or len(members) == 1 or any(isinstance(one, Notice) for one in members):
            joined += members
        elif sent := [one for one in members if not one.deleted]:
            joined.append(_album_of(sent) if len(sent) > 1 else sent[0])
    return joined


def _album_of(members: list[Message]) -> Album:
    """The album of these messages; cached on the first, so that it is rendered once."""
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
            ids=tuple(one.id for one in members),
        )

    return cached_for(first, "album", members, make)
