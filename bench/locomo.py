"""LoCoMo as messages and questions in an indexed store, for the benchmarks of search."""

import asyncio
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct

from tertulia import Author, Media, Message, Place, Store, Text
from tertulia.engine.memory.indexer import Indexer
from tertulia.memory.embeddings import Embedder, Embedders

STEP = timedelta(seconds=30)  # between the turns of a session, which has one date only
AT_ONCE = 500  # messages that are stored together


class Question(Struct, frozen=True, kw_only=True):
    text: str
    category: int
    evidence: frozenset[str]  # ids of messages


class Conversation(Struct, frozen=True, kw_only=True):
    id: str
    place: Place
    messages: tuple[Message, ...]
    questions: tuple[Question, ...]

    @property
    def asker(self) -> Author:
        return self.messages[0].author

    def ended(self) -> datetime:
        return self.messages[-1].sent_at or datetime.now(UTC)


def load(path: Path) -> list[Conversation]:
    """Read every conversation of a LoCoMo file, without questions whose evidence names no turn."""
    return [_conversation(one) for one in json.loads(path.read_text(encoding="utf-8"))]


async def store_messages(store: Store, messages: Sequence[Message]) -> None:
    for start in range(0, len(messages), AT_ONCE):
        some = messages[start : start + AT_ONCE]
        await asyncio.gather(*(store.inbox.receive(one, at=one.sent_at or datetime.now(UTC)) for one in some))


async def index(store: Store, *, embedders: Embedders) -> None:
    """Index all stored messages, as an engine does in the background."""
    indexer = Indexer(store.index_writer, embedders=embedders)
    await indexer.start()
    await indexer.done()


def no_embedder(_: str) -> Embedder | None:
    return None


def _conversation(raw: dict[str, Any]) -> Conversation:
    conversation = raw["conversation"]
    place = Place(platform="locomo", id=raw["sample_id"], kind="group")
    messages: list[Message] = []
    for name in sorted(
        (key for key in conversation if re.fullmatch(r"session_\d+", key)), key=lambda key: int(key[8:])
    ):
        began = datetime.strptime(conversation[f"{name}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        messages += [_message(turn, place, began + count * STEP) for count, turn in enumerate(conversation[name])]
    known = {message.id for message in messages}
    questions = (
        Question(text=one["question"], category=one["category"], evidence=_evidence(one["evidence"]) & known)
        for one in raw["qa"]
    )
    return Conversation(
        id=raw["sample_id"],
        place=place,
        messages=tuple(messages),
        questions=tuple(one for one in questions if one.evidence),
    )


def _message(turn: dict[str, Any], place: Place, at: datetime) -> Message:
    shown = turn.get("blip_caption", "")
    photo = (Media(media_kind="photo", unique_id=f"{place.id} {turn['dia_id']}", rendered_text=shown),) if shown else ()
    return Message(
        id=turn["dia_id"],
        place=place,
        author=Author(id=turn["speaker"], name=turn["speaker"]),
        sent_at=at,
        parts=(Text(text=turn["text"]), *photo),
    )


def _evidence(ids: list[str]) -> frozenset[str]:
    """Parse turn ids: `D8:6; D9:17` is two, `D:11:26` is `D11:26`."""
    return frozenset(f"D{a}:{b}" for one in ids for a, b in re.findall(r"D:?(\d+):(\d+)", one))
