"""Measures how much of each request repeats the start of the previous one, on real conversations, by profile."""

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import cycle, islice, product
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tertulia.context import gather, sources
from tertulia.context.gather import InMemoryKnowledge
from tertulia.context.log import InMemoryLog, Log
from tertulia.context.stable_prefix import BUFFER, Marks
from tertulia.context.values import OwnNames, Persona
from tertulia.engine.log_views import AgentLog
from tertulia.messages import Author, Message, Place, Quote
from tertulia.models.gemini.encode import encode_request
from tertulia.parts import Media, Text
from tertulia.profiles import PROFILES
from tertulia.prompt.ledger import Ledger
from tertulia.tokens import ESTIMATOR
from tertulia.turns import Prompt, model

PERSONA = Persona(
    name="tertulia",
    text="You are Tertulia, a friend in this chat. You answer briefly and kindly, in the language you are spoken to. "
    "You know a good deal about computers, cooking and travel, and you say so when you do not know something. "
    "You make a joke now and then, never at the cost of the person you talk with.",
    rules="- Never pretend to have done what you have not done.\n- Never repeat what was said in private.\n"
    "- Ask back when a question can be read in two ways.\n- Give code in fenced blocks, and say what it does.\n"
    "- Dates and times are those of the people you talk with.",
    procedure="Read what was said last and to whom. If it is not for you, say nothing. If a tool helps, use it before "
    "you answer. Then answer in as few sentences as will do.",
)
WINDOWS = {"125..500": Marks(), "sliding 100": Marks(low=100, high=100), "sliding 30": Marks(low=30, high=30)}
BY_WINDOW = ("layered", "tail", "headers", "plain")
AGENTS = ("Ada", "Kant", "Hypatia")
BOT, DELIMITER = "bot", "7f3a9c2e51b0"  # the account of the agents
MINIMA = (1024, 4096)
CACHED_PRICE = 0.1
CHECKED = 50  # every 50th request the prediction is compared with the encoded bytes

Row = dict[str, Any]


class Transcript(Struct, frozen=True, kw_only=True):
    """A conversation. Authors with the persona are the agent."""

    name: str
    messages: tuple[Message, ...]


class Tally(Struct, kw_only=True):
    tokens: int = 0
    stable: int = 0
    requests: int = 0
    paid: dict[int, float] = {}

    def add(self, tokens: int, stable: int) -> None:
        self.tokens += tokens
        self.stable += stable
        self.requests += 1
        for least in MINIMA:
            free = stable * (1 - CACHED_PRICE) if stable >= least else 0.0
            self.paid[least] = self.paid.get(least, 0.0) + tokens - free


def transcripts(path: Path) -> Iterator[Transcript]:
    """Read LoCoMo's JSON, or a folder of IRC logs with annotations."""
    if path.is_dir():
        for log in sorted(path.glob("*.ascii.txt")):
            yield irc(log)
        return
    for sample in json.loads(path.read_text()):
        yield locomo(sample)


def locomo(sample: Row) -> Transcript:
    """Read a conversation of two people; the second is the agent."""
    conversation = sample["conversation"]
    place = Place(platform="locomo", id=sample["sample_id"], kind="direct")
    authors = {
        conversation["speaker_a"]: Author(id="a", name=conversation["speaker_a"]),
        conversation["speaker_b"]: Author(id="b", name=conversation["speaker_b"], persona=PERSONA.name),
    }
    messages: list[Message] = []
    session = 1
    while f"session_{session}_date_time" in conversation:
        began = datetime.strptime(conversation[f"session_{session}_date_time"], "%I:%M %p on %d %B, %Y")
        for number, said in enumerate(conversation.get(f"session_{session}", [])):
            messages.append(
                Message(
                    id=said["dia_id"],
                    place=place,
                    author=authors[said["speaker"]],
                    sent_at=began.replace(tzinfo=UTC) + timedelta(minutes=number),
                    parts=(Text(text=said["text"]), *_photos(said)),
                )
            )
        session += 1
    return Transcript(name=sample["sample_id"], messages=tuple(messages))


def _photos(said: Row) -> Iterator[Media]:
    for number, address in enumerate(said.get("img_url", [])):
        name = f"{said['dia_id']}-{number}"
        words = said.get("blip_caption")
        yield Media(media_kind="photo", unique_id=name, uri=address, mime="image/jpeg", rendered_text=words)


def with_media(transcript: Transcript) -> Transcript:
    """Add media in a group: a picture to every 8th message, a video to every 200th. LoCoMo has its own photos."""
    return Transcript(
        name=transcript.name, messages=tuple(_with_media(at, one) for at, one in enumerate(transcript.messages))
    )


def _with_media(at: int, message: Message) -> Message:
    if message.place.kind == "direct" or message.author.persona is not None:
        return message
    photo = Media(media_kind="photo", unique_id=message.id, uri=f"https://example.org/{at}.jpg", mime="image/jpeg")
    video = Media(media_kind="youtube", unique_id=message.id, uri=f"https://youtu.be/{at}")
    parts = (*message.parts, photo) if at % 8 == 0 else (*message.parts, video) if at % 200 == 1 else message.parts
    return replace(message, parts=parts)


def without_media(transcript: Transcript) -> Transcript:
    said = (
        replace(one, parts=tuple(part for part in one.parts if isinstance(part, Text))) for one in transcript.messages
    )
    return Transcript(name=transcript.name, messages=tuple(said))


def irc(log: Path) -> Transcript:
    """Read a group in which every message asks the agent. Links of the annotation are replies."""
    place = Place(platform="irc", id=log.name.partition(".")[0], kind="group", title="#ubuntu")
    links: dict[int, int] = {}
    annotated = log.with_name(log.name.replace(".ascii.", ".annotation."))
    for line in annotated.read_text().splitlines() if annotated.exists() else []:
        one, other, *_ = (int(word) for word in line.split() if word.isdigit())
        links[max(one, other)] = min(one, other)
    day = datetime.strptime(log.name[:10], "%Y-%m-%d").replace(tzinfo=UTC)
    messages: dict[int, Message] = {}
    for number, line in enumerate(log.read_text(errors="replace").splitlines()):
        found = re.match(r"\[(\d\d):(\d\d)\] <([^>]+)> (.*)", line)
        if not found:
            continue
        replied = messages.get(links.get(number, -1))
        messages[number] = Message(
            id=str(number),
            place=place,
            author=Author(id=found[3].casefold(), name=found[3]),
            sent_at=day + timedelta(hours=int(found[1]), minutes=int(found[2])),
            parts=(Text(text=found[4]),),
            reply_to=Quote(message_id=replied.id, author=replied.author, parts=replied.parts) if replied else None,
        )
    return Transcript(name=log.name, messages=tuple(messages.values()))


def window_of(log: Log, profile: str, marks: Marks) -> sources.AnySource:
    """Return the source of the history that a profile uses."""
    media = profile not in ("headers", "block")
    if profile not in BY_WINDOW:
        return sources.levels(log, media=media)
    return sources.window(log, marks=marks, media=media, buffer=BUFFER if profile == "layered" else None)


async def replay(transcript: Transcript, profile: str, marks: Marks, tally: Tally) -> None:
    """Build a prompt for every message of others, in order."""
    log, ledger = InMemoryLog(), Ledger()
    remembered = InMemoryKnowledge()
    history = window_of(log, profile, marks)
    settings = sources.agent_settings(persona=PERSONA, zone="UTC", delimiter=DELIMITER)
    before: list[str] = []
    asked = 0
    for message in transcript.messages:
        if message.author.persona is None:
            assert message.sent_at is not None
            now = message.sent_at + timedelta(seconds=5)
            context = await gather(message, [settings, history, sources.relevant(remembered)], now)
            prompt = PROFILES[profile].build(context)
            entry = ledger.record_request(prompt)
            tally.add(entry.tokens, entry.stable)
            if asked % CHECKED < 2:
                before = check(prompt, before, entry.share if asked % CHECKED else None)
            asked += 1
        log.add(message)


async def replay_agents(transcript: Transcript, profile: str, tallies: Mapping[str, Tally], together: int) -> None:
    """Let *together* of several agents answer each message, in turn, each after the answer of the one before it."""
    log, remembered = InMemoryLog(), InMemoryKnowledge()
    ledgers = {name: Ledger() for name in tallies}
    turns = cycle(tallies)
    for message in transcript.messages:
        assert message.sent_at is not None
        log.add(message)
        for name in islice(turns, together):
            own = OwnNames((name,), is_only=False)
            persona = replace(PERSONA, name=name, text=PERSONA.text.replace("Tertulia", name))
            settings = sources.agent_settings(persona=persona, account=BOT, agent=own, zone="UTC", delimiter=DELIMITER)
            history = window_of(AgentLog(log, own.names), profile, Marks())
            now = message.sent_at + timedelta(seconds=5)
            context = await gather(message, [settings, history, sources.relevant(remembered)], now)
            entry = ledgers[name].record_request(PROFILES[profile].build(context))
            tallies[name].add(entry.tokens, entry.stable)
            text = f"To {message.author.name}: {message.text}"  # as long as what people say
            said = replace(
                message,
                id=f"{message.id} {name}",
                author=Author(id=BOT, name=name, persona=name),
                parts=(Text(text=text),),
                reply_to=Quote(message_id=message.id, author=message.author, parts=message.parts),
                agent=name,
            )
            log.add(said, turns=[model(text)])


def rows_of_agents(path: Path) -> Iterator[Row]:
    """Yield what each of three agents repeats, where they take turns, and where all of them answer every message."""
    found = [without_media(transcript) for transcript in transcripts(path)]
    for profile, together in product(("layered", "tail"), (1, len(AGENTS))):
        how = "in turn" if together == 1 else "one after the other"
        _progress(f"{path.name}: three agents {how}, {profile}")
        tallies = {name: Tally() for name in AGENTS}
        for transcript in found:
            asyncio.run(replay_agents(transcript, profile, tallies, together))
        yield from (row(f"{path.name}, {name} {how}", profile, "125..500", tally) for name, tally in tallies.items())
    _progress("")


def check(prompt: Prompt, before: list[str], predicted: float | None) -> list[str]:
    """Return the strings of the request. If *before* is the previous request, compare with the prediction."""
    body = json.loads(encode_request(prompt, model="gemini-3.8-flash"))
    contents = [body.get("systemInstruction", {}), *body["contents"]]
    parts = [(c.get("role", ""), part) for c in contents for part in c.get("parts", [])]
    strings = [f"{role}: {part['text'] if 'text' in part else json.dumps(part)}" for role, part in parts]
    if predicted is None or not before or any("text" not in part for _, part in parts):
        return strings  # what media count the service knows, and not their bytes
    tokens = [ESTIMATOR.text(text) for text in strings]
    same = 0
    for old, new, count in zip(before, strings, tokens, strict=False):
        same += count if old == new else ESTIMATOR.text(common_text(old, new))
        if old != new:
            break
    measured = same / sum(tokens)
    assert abs(predicted - measured) < 0.05, f"predicted {predicted:.3f}, the bytes say {measured:.3f}"
    return strings


def common_text(old: str, new: str) -> str:
    """Return the beginning that two texts share."""
    different = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    return new[:different]


def rows(path: Path, profiles: Sequence[str]) -> Iterator[Row]:
    found = [with_media(transcript) for transcript in transcripts(path)]
    in_words = [without_media(transcript) for transcript in found]
    wanted = [(profile, window, "") for profile in profiles for window in WINDOWS if profile in BY_WINDOW]
    wanted += [(profile, "5 + 30", "") for profile in profiles if profile not in BY_WINDOW]
    wanted += [(profile, next(iter(WINDOWS)), " with media") for profile in profiles if profile in BY_WINDOW]
    for done, (profile, window, media) in enumerate(wanted):
        _progress(f"{path.name}: {profile}, {window}{media} ({done + 1} of {len(wanted)})")
        tally = Tally()
        for transcript in found if media else in_words:
            asyncio.run(replay(transcript, profile, WINDOWS.get(window, Marks()), tally))
        yield row(path.name + media, profile, window if profile != "single" else "none", tally)
    _progress("")


def row(data: str, profile: str, window: str, tally: Tally) -> Row:
    return {
        "data": data,
        "profile": profile,
        "window": window,
        "requests": tally.requests,
        "tokens": tally.tokens,
        "stable": round(tally.stable / tally.tokens, 4),
        **{f"cost_{least}": round(tally.paid[least] / tally.tokens, 4) for least in MINIMA},
    }


def _progress(words: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{words}", end="", file=sys.stderr, flush=True)


def table(measured: Sequence[Row]) -> str:
    lines = [
        "| data | profile | window | requests | tokens a request | stable prefix | cost from 1,024 | cost from 4,096 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    share = partial("{:.1%}".format)
    for one in measured:
        cells = (
            one["data"], one["profile"], one["window"], f"{one['requests']:,}", f"{one['tokens'] // one['requests']:,}",
            share(one["stable"]), share(one["cost_1024"]), share(one["cost_4096"]),
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, epilog="Example: bench/prefix.py locomo.json irc/ --json")
    parser.add_argument("data", nargs="+", type=Path, help="LoCoMo's JSON file, or a folder of IRC logs")
    parser.add_argument("--profile", action="append", choices=list(PROFILES), help="only this one; may be repeated")
    parser.add_argument("--json", action="store_true", help="print a list of objects instead of a table")
    parser.add_argument("--agents", action="store_true", help="three agents in one place, in `layered` and `tail`")
    wanted = parser.parse_args()
    for path in wanted.data:
        if not path.exists():
            parser.error(f"there is no {path}")
    if wanted.agents:
        measured = [one for path in wanted.data for one in rows_of_agents(path)]
    else:
        measured = [one for path in wanted.data for one in rows(path, wanted.profile or list(PROFILES))]
    print(json.dumps(measured, indent=1) if wanted.json else table(measured))


if __name__ == "__main__":
    main()
