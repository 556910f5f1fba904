"""Which messages before the target are shown: the newest, and those that replies and names point to. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest

from palaver.characters import visible
from palaver.messages import Author, Message
from palaver.parts import Text

ALWAYS_SHOWN = 20  # the newest that are always shown
MAX_CANDIDATES = 256  # messages before the target among which is chosen
REPLY_DEPTH = 8  # replies to replies that are followed
MAX_PARTNERS = 3  # people besides those the target names whose talk with its author is followed

_SPOKEN = 2_000  # characters of a message in which names are looked for
_WORD = re.compile(r"@?\w[\w'’.^|`\\\[\]{}-]*")
_TRAILING = "'’.-"
_LOOSE = 4  # letters that a name must share with another form of it
_FORM = "\0"  # ends what a name begins with, where it may end otherwise


def select_messages(before: Sequence[Message], target: Message, *, most: int, certain: int = ALWAYS_SHOWN) -> list[int]:
    """The indexes of at most *most* messages *before* the target, in order.

    The *certain* newest are among them, then what replies and names point to; the rest are the newest too.
    """
    count = len(before)
    if count <= most:
        return list(range(count))
    newest = range(count - 1, -1, -1)
    found: dict[int, None] = {}
    for index in chain(newest[:certain], _pointed(before, target), newest):
        if len(found) >= most:
            break
        found[index] = None
    return sorted(found)


def _pointed(before: Sequence[Message], target: Message) -> Iterator[int]:
    """What the target points to, the surest first."""
    replied = list(_chain(before, target))
    yield from replied
    yield from (beside for index in replied[:1] for beside in (index + 1, index - 1) if 0 <= beside < len(before))
    if target.place.kind == "direct":  # it is plain there who speaks to whom
        return
    people = _people(before)
    heard = [_addressed(message, people) for message in before]
    yield from _in_turn(_talks(before, target.author.id, _named(target, people), heard))


def _talks(before: Sequence[Message], author: str, named: set[str], heard: Sequence[set[str]]) -> list[list[int]]:
    """What was said to the author, what the author said, and what those said whom the author speaks to.

    Nothing where nobody was spoken to by name: nothing tells one message from another then.
    """
    said: dict[str, list[int]] = {}
    for index in range(len(before) - 1, -1, -1):
        said.setdefault(before[index].author.id, []).append(index)
    own = said.get(author, [])
    to_author = [index for index in range(len(before) - 1, -1, -1) if author in heard[index]]
    partners = dict.fromkeys(chain(sorted(named), _partners(before, own, to_author, heard)))
    partners.pop(author, None)
    if not partners:
        return []
    talks = [to_author, own]
    for person in islice(partners, len(named) + MAX_PARTNERS):
        theirs = said.get(person, [])
        talks += [[index for index in theirs if author in heard[index]], theirs] if person in named else [theirs]
    return talks


def _partners(
    before: Sequence[Message], own: Sequence[int], to_author: Sequence[int], heard: Sequence[set[str]]
) -> Iterator[str]:
    """Whom the author spoke to and who spoke to the author, the latest first."""
    for index in sorted({*own, *to_author}, reverse=True):
        yield from sorted(heard[index])
        if before[index].author.id:
            yield before[index].author.id


def _chain(before: Sequence[Message], target: Message) -> Iterator[int]:
    """What the target replies to, what that replies to, and so on."""
    places = {message.id: index for index, message in enumerate(before)}
    quote = target.reply_to
    for _ in range(REPLY_DEPTH):
        index = None if quote is None else places.pop(quote.message_id, None)
        if index is None:
            return
        yield index
        quote = before[index].reply_to


def _in_turn(lists: Iterable[Iterable[int]]) -> Iterator[int]:
    """The first of each list, then the second of each, and so on."""
    for round_ in zip_longest(*lists):
        yield from (index for index in round_ if index is not None)


def _people(before: Iterable[Message]) -> dict[str, set[str]]:
    """The ids of those who spoke, by what they may be called."""
    called: dict[str, set[str]] = {}
    for author in {message.author.id: message.author for message in before if message.author.id}.values():
        for name in _names(author):
            called.setdefault(name, set()).add(author.id)
            if len(name) > _LOOSE:
                called.setdefault(name[:-1] + _FORM, set()).add(author.id)
    return called


def _names(author: Author) -> set[str]:
    whole = [visible(name).casefold().lstrip("@") for name in (author.name, author.username or "")]
    firsts = [name.split(maxsplit=1)[0] for name in whole if name.strip()]
    return {name for name in chain(whole, firsts) if len(name) > 1}


def _named(message: Message, people: Mapping[str, set[str]]) -> set[str]:
    """The ids of those whom a message names anywhere, or is for."""
    found = _addressed(message, people)
    for word in _WORD.findall(_said(message)):
        found |= people.get(_bare(word), set())
    return found - {message.author.id}


def _addressed(message: Message, people: Mapping[str, set[str]]) -> set[str]:
    """The ids of those a message is for: whom it answers, calls at its beginning, or mentions with an @."""
    quote, said = message.reply_to, _said(message)
    found = {quote.author.id} if quote is not None and quote.author is not None and quote.author.id else set[str]()
    if first := _WORD.search(said):
        found |= _known(_bare(first.group()), people)
    if "@" in said:
        for word in _WORD.findall(said):
            found |= people.get(_bare(word), set()) if word[0] == "@" else set()
    return found


def _known(word: str, people: Mapping[str, set[str]]) -> set[str]:
    """Whom *word* names, also where the name has another ending in it."""
    if word in people:
        return people[word]
    forms = [form for form in (word, word[:-1], word[:-2]) if len(form) >= _LOOSE]
    keys = (key for form in forms for key in (form, form + _FORM))
    return next((people[key] for key in keys if key in people), set())


def _said(message: Message) -> str:
    said = " ".join(part.text[:_SPOKEN] for part in message.parts if isinstance(part, Text))[:_SPOKEN]
    return visible(said).casefold()


def _bare(word: str) -> str:
    return word.lstrip("@").rstrip(_TRAILING)
