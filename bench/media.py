"""Measures a day of a photo group: tokens, stable prefix and cost of its requests, beside sending all media inline."""

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tertulia import Store
from tertulia.context import Context, gather, sources
from tertulia.context.budget import Budget
from tertulia.context.gather import InMemoryKnowledge, SourceInputs
from tertulia.context.log import InMemoryLog
from tertulia.context.media_words import undescribed_ids, with_descriptions
from tertulia.context.stable_prefix import Marks
from tertulia.media.descriptions import Description
from tertulia.media.sent_forms import media_tokens
from tertulia.messages import Author, Message, Place, Quote
from tertulia.models.gemini.encode import encode_request
from tertulia.models.prices import PRICES
from tertulia.parts import Media, Part, Text
from tertulia.profiles import PROFILES
from tertulia.tokens import ESTIMATOR, count_media
from tertulia.toolbox.toolbox import Toolbox
from tertulia.tools import open_tools
from tertulia.turns import ToolSpec
from tertulia.wire.media_limits import limits_of
from tertulia.wire.repair import repair_prompt

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script, it still finds its neighbours
from bench.common import WORDS
from bench.prefix import PERSONA, common_text

MODEL = "gemini-3.8-flash"
DAYS = 5
MORNING = datetime(2026, 11, 1, 7, tzinfo=UTC)
GROUP = Place(platform="bench", id="-100", kind="group", title="Birds and walks")
PEOPLE = [Author(id=str(100 + number), name=f"Person {number}", username=f"p{number}") for number in range(12)]
BOT = Author(id="me", name="Tertulia", persona=PERSONA.name)
FILES = "https://generativelanguage.googleapis.com/v1beta/files/"
TOOLS = ("calculator", "clock", "reminders", "memory")  # those of a new bot
CACHED_FROM = 1_024  # tokens from which a service caches a prefix
PER_RUN = 8  # descriptions that a run waits for, and that are made behind it
DESCRIPTION = (40, 60)  # tokens that are asked beside the media, and tokens of the answer
ALL = Marks(low=10**6, high=10**6)
NO_LIMIT = Budget(window=10**9, media=10**6, media_tokens=10**9, media_bytes=10**12)

Row = dict[str, Any]
Sources = Callable[[InMemoryLog], Sequence[sources.Source]]


class Day(Struct, frozen=True, kw_only=True):
    """How much of what is in a day."""

    messages: int = 600
    photos: int = 150
    stickers: int = 60
    sets: int = 25  # different stickers
    voices: int = 20
    documents: int = 5
    answers: int = 60
    seed: int = 1
    before: int = 300  # messages of the day before, of the same kinds: they fill the window and are not counted


def talk(day: Day) -> tuple[list[Message], set[str]]:
    """Return the messages of people, in order, and the ids of those that ask the bot."""
    random_ = random.Random(day.seed)
    count = day.before + day.messages
    share = count / day.messages
    media = _media_by_number(day, count, share, random_)
    asked = _asked(day, random_)
    messages: list[Message] = []
    for number in range(count):
        words = random_.choices(WORDS["Latin"], k=random_.randint(3, 18))
        parts: tuple[Part, ...] = (*media.get(number, ()),)
        asks = number in asked
        if asks and random_.random() < 0.6:
            parts = ()
        is_photo = any(isinstance(part, Media) and part.media_kind == "photo" for part in parts)
        if asks or not parts or (is_photo and random_.random() < 0.3):
            parts = (Text(text=" ".join(["Tertulia," if asks else "", *words]).strip()), *parts)
        photo = next((one for one in reversed(messages[-20:]) if _has_photo(one)), None)
        quoted = photo if asks and not is_photo and random_.random() < 0.25 else None
        messages.append(
            Message(
                id=str(number),
                place=GROUP,
                author=random_.choice(PEOPLE),
                sent_at=MORNING + timedelta(minutes=1.5 * number),
                parts=parts,
                reply_to=Quote(message_id=quoted.id, author=quoted.author, parts=quoted.parts) if quoted else None,
            )
        )
    return messages, {str(number) for number in asked}


def _has_photo(message: Message) -> bool:
    return any(isinstance(part, Media) and part.media_kind == "photo" for part in message.parts)


def _asked(day: Day, random_: random.Random) -> set[int]:
    """Return the numbers of the messages that ask the bot: half of them soon after the answer before."""
    count = round(day.answers * (day.before + day.messages) / day.messages)
    gaps = [random_.uniform(0.2, 0.4) if random_.random() < 0.5 else random_.uniform(1.2, 2.2) for _ in range(count)]
    ends = list(accumulate(gaps))
    return {round(end / ends[-1] * (day.before + day.messages - 1)) for end in ends}


def _media_by_number(day: Day, count: int, share: float, random_: random.Random) -> dict[int, list[Media]]:
    """Return media by the number of their message. A tenth of the photos was there before; stickers come often."""
    kinds = ["photo"] * round(day.photos * share) + ["sticker"] * round(day.stickers * share)
    kinds += ["voice"] * round(day.voices * share) + ["document"] * round(day.documents * share)
    numbers = random_.sample(range(count), len(kinds))
    random_.shuffle(kinds)
    popular = [1 / (rank + 1) for rank in range(day.sets)]
    found: dict[int, list[Media]] = {}
    photos: list[Media] = []
    for number, kind in sorted(zip(numbers, kinds, strict=True)):
        if kind == "sticker":
            (rank,) = random_.choices(range(day.sets), popular)
            one = _file(f"sticker{rank}", kind, "image/webp", size=30_000, label="🐦 from Birds")
        elif kind == "voice":
            seconds = random_.randint(4, 40)
            one = _file(f"voice{number}", kind, "audio/ogg", size=4_000 * seconds, seconds=seconds)
        elif kind == "document":
            one = _file(f"document{number}", kind, "application/pdf", size=100_000 * random_.randint(2, 9))
        elif photos and random_.random() < 0.1:
            one = random_.choice(photos[-60:])
        else:
            one = _file(f"photo{number}", kind, "image/jpeg", size=180_000, width=1280, height=960)
            photos.append(one)
        found[number] = [one]
    return found


def _file(name: str, kind: str, mime: str, **facts: Any) -> Media:
    return Media(media_kind=kind, unique_id=name, mime=mime, uri=FILES + name, **facts)


def description_of(name: str) -> str:
    """Return a description of one or two sentences, always the same for the same media."""
    random_ = random.Random(name)
    return " ".join(random_.choices(WORDS["Latin"], k=random_.randint(10, 28)))


class Describer:
    """Descriptions as the engine makes them: some before a run, the others behind it, each with its position."""

    def __init__(self) -> None:
        self.known: dict[str, Description] = {}
        self.made = 0  # descriptions
        self.tokens = 0  # of the media that were described
        self._shown = 0  # how many messages the last run knew

    def describe_now(self, context: Context) -> Context:
        """Return the context with descriptions of the media that are words, in messages that no run has shown."""
        context = with_descriptions(context, self.known)
        fresh = context.window[max(0, self._shown - context.window_start) :]
        wanted = [one for message in (*context.batch, *fresh) for one in _media(message) if not one.has_content]
        if missing := [one for one in wanted if one.unique_id not in self.known and not one.same_as]:
            for one in missing[:PER_RUN]:
                self._add(one, position=0)
            context = with_descriptions(context, self.known)
        return context

    def describe_later(self, context: Context, count: int) -> None:
        """Describe more of what the run has shown, before the next one."""
        self._shown = count
        media = {one.unique_id: one for message in (*context.window, *context.batch) for one in _media(message)}
        missing = [media[name] for name in media if name in undescribed_ids(context)]
        for one in missing[::-1][:PER_RUN]:
            self._add(one, position=count)

    def _add(self, media: Media, *, position: int) -> None:
        if media.unique_id not in self.known:
            self.known[media.unique_id] = Description(words=description_of(media.unique_id), position=position)
            self.made += 1
            self.tokens += count_media(replace(media, uri=FILES)) + DESCRIPTION[0]


def _media(message: Message) -> Iterator[Media]:
    return (part for part in message.parts if isinstance(part, Media))


class Way(Struct, frozen=True, kw_only=True):
    """A way to build the requests of the day."""

    name: str
    profile: str
    given: Sources
    words: bool = True  # whether media that do not go are described; else all go, also the same ones again


def of_profile(name: str) -> Way:
    def given(log: InMemoryLog) -> Sequence[sources.Source]:
        return PROFILES[name].sources(SourceInputs(log=log, memory=InMemoryKnowledge()))

    return Way(name=name, profile=name, given=given)


def inline(name: str, marks: Marks) -> Way:
    """Return the way of bots that send all media of their window with every request."""

    def given(log: InMemoryLog) -> Sequence[sources.Source]:
        return [sources.window(log, marks=marks, media_marks=ALL, budget=NO_LIMIT)]

    return Way(name=name, profile="tail", given=given, words=False)


WAYS = (
    of_profile("layered"),
    of_profile("tail"),
    inline("all media, window of 125..500", Marks()),
    inline("all media, the last 50 messages", Marks(low=50, high=50)),
)


class Piece(Struct, frozen=True, kw_only=True):
    """A part of a request as it is sent, and its tokens."""

    sent: str
    tokens: int
    is_media: bool = False


def pieces_of(body: bytes, media: dict[str, Media]) -> list[Piece]:
    """Return the parts of an encoded request in the order a service reads them. *media* are those of the day by URI."""
    request = json.loads(body)
    tools = json.dumps(request.get("tools", []))
    pieces = [Piece(sent=tools, tokens=ESTIMATOR.text(tools))]
    for content in (request["systemInstruction"], *request["contents"]):
        for part in content["parts"]:
            sent = f"{content.get('role', '')} {json.dumps(part, ensure_ascii=False)}"
            if "fileData" in part:
                tokens = media_tokens(media[part["fileData"]["fileUri"]], limits_of(MODEL))
                pieces.append(Piece(sent=sent, tokens=tokens, is_media=True))
            else:
                pieces.append(Piece(sent=sent, tokens=ESTIMATOR.text(part["text"])))
    return pieces


def stable_tokens(before: Sequence[Piece], now: Sequence[Piece]) -> int:
    """Return the tokens of *now* up to the first byte that is not that of the request before."""
    tokens = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            return tokens + (0 if new.is_media else ESTIMATOR.text(common_text(old.sent, new.sent)))
        tokens += new.tokens
    return tokens


async def default_tools() -> tuple[ToolSpec, ...]:
    """Return the declarations of the tools that a new bot has."""
    async with Store.open(":memory:") as store:
        opened = open_tools(TOOLS, store=store, now=lambda: MORNING, zone="UTC", environment={}, load=_no_module)
        async with opened as tools:
            return Toolbox(tools).specs


def _no_module(name: str) -> Any:
    raise ValueError(name)


class Replayed(Struct, frozen=True, kw_only=True):
    """The requests of a day, each with the tokens of its stable prefix, and what the descriptions needed."""

    requests: list[tuple[list[Piece], int]]
    describer: Describer

    @property
    def tokens(self) -> int:
        return sum(piece.tokens for pieces, _ in self.requests for piece in pieces)

    @property
    def stable(self) -> float:
        """The share of all tokens that are the stable prefix of their request."""
        return sum(stable for _, stable in self.requests) / self.tokens


async def replay(day: Day, way: Way) -> Replayed:
    """Answer every message that asks, in order."""
    messages, asked = talk(day)
    if not way.words:
        messages = [_with_own_ids(message) for message in messages]
    media = {one.uri: one for message in messages for one in _media(message) if one.uri}
    log, describer, tools = InMemoryLog(), Describer(), await default_tools()
    scene = sources.agent_settings(persona=PERSONA, delimiter="7f3a9c2e51b0", model=MODEL)
    given = [scene, *way.given(log)]
    first = max(int(name) for name in asked if int(name) < day.before)  # the request before the first that counts
    before: list[Piece] = []
    counted: list[tuple[list[Piece], int]] = []
    for message in messages:
        if message.id in asked:
            context = await gather(message, given, message.sent_at or MORNING)
            context = describer.describe_now(context) if way.words else context
            if int(message.id) >= first:
                prompt = repair_prompt(PROFILES[way.profile].build(context), MODEL, wire="gemini")
                pieces = pieces_of(encode_request(replace(prompt, tools=tools), model=MODEL), media)
                if int(message.id) >= day.before:
                    counted.append((pieces, stable_tokens(before, pieces)))
                else:
                    describer.made = describer.tokens = 0  # those of the day before do not count
                before = pieces
            describer.describe_later(context, await log.count(GROUP) + 1)
        log.add(message)
        if message.id in asked:
            log.add(_answer(message))
    return Replayed(requests=counted, describer=describer)


def row_of(way: Way, days: Sequence[Replayed]) -> Row:
    """Return the means of several days."""
    price = PRICES[MODEL]
    requests = [request for day in days for request in day.requests]
    tokens = sum(day.tokens for day in days)
    cached = sum(stable for _, stable in requests if stable >= CACHED_FROM)
    made = sum(day.describer.made for day in days) if way.words else 0
    asked = sum(day.describer.tokens for day in days) if way.words else 0
    paid = (tokens - cached) * price.input + cached * (price.cached or price.input)
    return {
        "way": way.name,
        "requests": len(requests) // len(days),
        "tokens": tokens // len(requests),
        "media": round(sum(piece.is_media for pieces, _ in requests for piece in pieces) / len(requests), 1),
        "stable": round(sum(stable for _, stable in requests) / tokens, 4),
        "least": round(min(day.stable for day in days), 4),
        "input": round(paid / len(days) / 1e6, 2),
        "descriptions": round((asked * price.input + made * DESCRIPTION[1] * price.output) / len(days) / 1e6, 2),
    }


def _answer(message: Message) -> Message:
    words = " ".join(random.Random(message.id).choices(WORDS["Latin"], k=30))
    return replace(message, id=f"{message.id}a", author=BOT, parts=(Text(text=words),), reply_to=None)


def _with_own_ids(message: Message) -> Message:
    """Return the message with media that are not known as the same as others."""
    parts = tuple(
        replace(part, unique_id=f"{part.unique_id} {message.id}", label=None) if isinstance(part, Media) else part
        for part in message.parts
    )
    return replace(message, parts=parts)


def table(measured: Sequence[Row]) -> str:
    lines = [
        "| requests | tokens a request | media a request | stable prefix | worst day | input | descriptions |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in measured:
        cells = (
            row["way"], f"{row['tokens']:,}", f"{row['media']:.1f}", f"{row['stable']:.1%}", f"{row['least']:.1%}",
            f"${row['input']:.2f}", f"${row['descriptions']:.2f}",
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, epilog="Example: bench/media.py --json")
    parser.add_argument("--json", action="store_true", help="print a list of objects instead of a table")
    parser.add_argument("--answers", type=int, default=Day().answers, help="how often the bot answers in the day")
    wanted = parser.parse_args()
    days = [Day(answers=wanted.answers, seed=seed) for seed in range(1, DAYS + 1)]
    measured = [row_of(way, [asyncio.run(replay(day, way)) for day in days]) for way in WAYS]
    print(json.dumps(measured, indent=1) if wanted.json else table(measured))


if __name__ == "__main__":
    main()
