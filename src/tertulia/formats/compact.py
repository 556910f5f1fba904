"""Compact lines of chat bots' logs, read into messages: `Alice#987654: text`, `Bob#1 → Alice#2: text`. Pure.

Also the authors of all imported messages: deleted accounts, and people of whom the source says nothing.
"""

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping

from msgspec import Struct

from tertulia.characters import visible
from tertulia.errors import InvalidValue
from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Media, Part, Text

PERSON = "person"  # name, and mostly id, of an author of whom the source says nothing

_GONE = frozenset({"deleted account", "deleted user", "[deleted]", "deleted-user", "deleted_user"})


def author_of(*, identity: str | None, name: str, username: str | None = None) -> Author:
    """Return an author as the source has them. A deleted account is unknown, and keeps its id."""
    gone = " ".join(visible(name).casefold().split()) in _GONE
    return Author(id=identity or name, name=name, username=username, unknown=gone)


def unknown_author(taken: Container[str]) -> Author:
    """Return an unknown author with an id that is not *taken*."""
    identity = PERSON
    while identity in taken:
        identity += "-"
    return Author(id=identity, name=PERSON, unknown=True)


CUE = "[RESPOND]"
MARKERS = {
    "Image": "photo", "Photo": "photo", "Sticker": "sticker", "Video": "video", "Animation": "animation",
    "Audio": "audio", "Voice": "voice", "YouTube": "youtube", "Document": "document", "Attachment": "attachment",
    "Media": "media",
}  # fmt: skip

_SHORT = 6  # digits of an id that is not written whole
_NUMBERED = r"(\S(?:.{0,126}?\S)??)#(-?[0-9]{1,40})"
_ARROW = r" ?(?:→|->) *"
_LABEL = re.compile(_NUMBERED)
_SPEAKER = re.compile(rf"{_NUMBERED}(?::(?: |\Z)|({_ARROW}))")
_TARGET = re.compile(rf"{_NUMBERED}:(?: |\Z)")
_ENDED = re.compile(r":(?: |\Z)")
_AFTER_AGENT = re.compile(rf":(?: |\Z)|({_ARROW})")
_UNNUMBERED = re.compile(rf"([^\s:#→](?:[^:#→]{{0,62}}?[^\s:#→])??)(?::(?: |\Z)|({_ARROW}))")
_MARKER = re.compile(rf"\[({'|'.join(MARKERS)})(?: x([1-9][0-9]?))?\](?:\s|\Z)")


class Label(Struct, frozen=True):
    """An author or a reply's target as a line names them; the agent mostly has no number."""

    name: str
    number: str | None = None

    @property
    def text(self) -> str:
        return self.name if self.number is None else f"{self.name}#{self.number}"


class CompactMessage(Struct, frozen=True):
    """The speaker, the target and the lines of a message."""

    speaker: Label
    target: Label | None
    lines: list[str]


def read_compact(text: str, *, agent: str | None = None) -> tuple[Message, ...]:
    """Return the messages in *text*; the speaker without a number is the agent, unless *agent* names it."""
    ended = text.rstrip()
    said = ended.removesuffix(CUE).rstrip() if ended.endswith(CUE) else text
    lines = [line.removesuffix("\r") for line in said.split("\n")]
    own = _find_agent(agent, lines) if agent else _guess_agent(lines)
    messages_in_text = list(_split_messages(lines, own))
    numbers = {
        label.number for one in messages_in_text for label in (one.speaker, one.target) if label and label != own
    }
    place = Place(platform="", id="", kind="group" if len(numbers) > 1 else "direct")
    messages: list[Message] = []
    latest: dict[Label, Message] = {}  # by what its author is known as
    for number, one in enumerate(messages_in_text, 1):
        message = Message(
            id=str(number),
            place=place,
            author=_author(one.speaker, own),
            parts=tuple(_parts("\n".join(one.lines).rstrip("\n"), str(number))),
            reply_to=_quote(one.target, latest, own) if one.target else None,
        )
        latest.update(dict.fromkeys(_author_labels(one.speaker), message))
        messages.append(message)
    return tuple(messages)


def is_compact(text: str) -> bool:
    """Return whether any line of *text* begins with `Name#number`."""
    return any(_first_line(line.removesuffix("\r"), None) for line in text.split("\n"))


def _author(label: Label, agent: Label | None) -> Author:
    if label == agent:
        return Author(id=label.number or label.name, name=label.name, persona=label.name)
    return author_of(identity=label.number, name=label.name)


def _author_labels(label: Label) -> list[Label]:
    """Return the labels under which an author may be a reply's target: the number, or name and last digits."""
    number = label.number
    if number is None:
        return [label]
    return [Label("", number), Label(label.name, ("end " if len(number) > _SHORT else "short ") + number[-_SHORT:])]


def _target_labels(label: Label) -> list[Label]:
    """Return the labels of authors whom a reply may mean: last digits match a longer number, and vice versa."""
    number = label.number
    if number is None:
        return [label]
    return [Label("", number), Label(label.name, ("short " if len(number) > _SHORT else "end ") + number[-_SHORT:])]


def _quote(target: Label, latest: Mapping[Label, Message], agent: Label | None) -> Quote:
    """Return a quote of the target's latest message: the line does not say which one it is."""
    message = next((latest[label] for label in _target_labels(target) if label in latest), None)
    if message is None:
        return Quote(message_id="", author=_author(target, agent))
    return Quote(message_id=message.id, author=message.author, parts=message.parts)


def _split_messages(lines: Iterable[str], agent: Label | None) -> Iterator[CompactMessage]:
    """Yield the messages with their lines; a line that begins no message belongs to the one before."""
    current: CompactMessage | None = None
    for number, line in enumerate(lines, 1):
        opened = _first_line(line, agent)
        if opened is None and current is not None:
            current.lines.append(line)
        elif opened is None and line.strip():
            raise InvalidValue(f"line {number}: nobody speaks in {line[:40]!r}; a line begins with `Name#number: `")
        if opened and current:
            yield current
        current = opened or current
    if current:
        yield current


def _first_line(line: str, agent: Label | None) -> CompactMessage | None:
    """Return the message that *line* begins, if any."""
    if agent and (after := _AFTER_AGENT.match(line, _end_of(agent, line))):
        return _with_target(agent, line[after.end() :], agent, reply=after[1] is not None)
    if found := _SPEAKER.match(line):
        return _with_target(Label(found[1], found[2]), line[found.end() :], agent, reply=found[3] is not None)
    return None


def _with_target(speaker: Label, rest: str, agent: Label | None, *, reply: bool) -> CompactMessage | None:
    if not reply:
        return CompactMessage(speaker, None, [rest])
    if agent and (after := _ENDED.match(rest, _end_of(agent, rest))):
        return CompactMessage(speaker, agent, [rest[after.end() :]])
    if found := _TARGET.match(rest):
        return CompactMessage(speaker, Label(found[1], found[2]), [rest[found.end() :]])
    if speaker.number and (found := _UNNUMBERED.match(rest)) and found[2] is None:
        return CompactMessage(speaker, Label(found[1]), [rest[found.end() :]])
    return None


def _end_of(label: Label, line: str) -> int:
    """Return where *label* ends in *line*; the end of the line if it begins with another."""
    return len(label.text) if line.startswith(label.text) else len(line)


def _find_agent(name: str, lines: Iterable[str]) -> Label:
    """Return the agent by name, or name and number; with its number where it has one in every line."""
    if found := _LABEL.fullmatch(name):
        return Label(found[1], found[2])
    plain = Label(name)
    opened = [one for line in lines if (one := _first_line(line, plain))]
    numbers = {one.speaker.number for one in opened if one.speaker.name == name and one.speaker.number}
    if any(plain in (one.speaker, one.target) for one in opened) or not numbers:
        return plain
    if len(numbers) > 1:
        these = ", ".join(sorted(f"{name}#{number}" for number in numbers)[:5])
        raise InvalidValue(f"several are called {name}: say which is the agent ({these})")
    return Label(name, numbers.pop())


def _guess_agent(lines: Iterable[str]) -> Label | None:
    """Return the most frequent name without a number; not all words before a colon are a name."""
    names: Counter[str] = Counter()
    beside_arrows: Counter[str] = Counter()
    for line in lines:
        arrow = _beside_arrow(line)
        names.update(filter(None, [arrow or _before_colon(line)]))
        beside_arrows.update(filter(None, [arrow]))
    found = max(names, key=lambda name: (names[name], beside_arrows[name]), default=None)
    return Label(found) if found else None


def _beside_arrow(line: str) -> str | None:
    """Return the name without a number that replies to a number, or is replied to by one."""
    found = _UNNUMBERED.match(line)
    if found and found[2] and _TARGET.match(line, found.end()):
        return found[1]
    opened = _first_line(line, None)
    return opened.target.name if opened and opened.target and opened.target.number is None else None


def _before_colon(line: str) -> str | None:
    found = _UNNUMBERED.match(line)
    return found[1] if found and found[2] is None and not _first_line(line, None) else None


def _parts(text: str, message_id: str) -> Iterator[Part]:
    """Yield the media whose markers *text* begins with, and the text after them."""
    start = count = 0
    while found := _MARKER.match(text, start):
        start = found.end()
        for _ in range(int(found[2] or 1)):
            count += 1
            yield Media(media_kind=MARKERS[found[1]], unique_id=f"{message_id}-{count}")
    if text[start:]:
        yield Text(text=text[start:])
