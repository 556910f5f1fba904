"""Selection of the messages before the target: the newest, and those that replies and names point to. Pure.

In a busy group the 35 newest messages may be another conversation. So some of them are replaced by older messages that
belong to the target: first the chain of replies and its neighbours, then messages of the author and their partners.
Partners are people whom the target names, or with whom the author spoke by name or reply lately. Their messages are
taken in turns, the newest of each first. Without any name the conversations cannot be told apart, and the newest
messages are selected. The last ones before the target are the immediate level, the others the recent one.

`fit_levels` and `fit_window` then leave out what is over the budget of tokens.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from typing import NamedTuple

from tertulia.characters import visible
from tertulia.context.budget import (
    OLDER,
    Budget,
    count_tokens,
    drop_oversized,
    over_budget,
    report_messages,
    take_newest,
)
from tertulia.context.edits import fit_notices, shift_notices
from tertulia.context.log import WindowRead
from tertulia.context.media_boundary import media_of_levels
from tertulia.context.media_budget import MediaCounter, messages_in_words
from tertulia.context.stable_prefix import Marks, keep_results_with_calls, stable_cut
from tertulia.context.turn_media import OwnMedia
from tertulia.context.values import LeftOut, Notice
from tertulia.media.amounts import MediaAmount
from tertulia.messages import Author, Message
from tertulia.parts import Text
from tertulia.turns import Turn

IMMEDIATE = 5  # messages before the target
BEFORE_WINDOW = "older than the window of up to {high} messages"

ALWAYS_SHOWN = 20  # of the newest messages
MAX_CANDIDATES = 256  # messages before the target
REPLY_DEPTH = 8
MAX_PARTNERS = 3  # besides the people whom the target names

_MAX_TEXT = 2_000  # characters of a message in which names are looked for
_WORD = re.compile(r"@?\w[\w'’.^|`\\\[\]{}-]*")
_TRAILING = "'’.-"
_LOOSE = 4  # letters that a name must share with another form of it
_FORM = "\0"  # ends what a name begins with, where it may end otherwise


def select_messages(before: Sequence[Message], target: Message, *, most: int) -> list[int]:
    """Return the indexes of at most *most* messages *before* the target, in order.

    The `ALWAYS_SHOWN` newest are among them, then those that replies and names point to, then the newest of the rest.
    """
    count = len(before)
    if count <= most:
        return list(range(count))
    newest = range(count - 1, -1, -1)
    found: dict[int, None] = {}
    for index in chain(newest[:ALWAYS_SHOWN], _references(before, target), newest):
        if len(found) >= most:
            break
        found[index] = None
    return sorted(found)


def _references(before: Sequence[Message], target: Message) -> Iterator[int]:
    """Yield the indexes that the target points to, the most certain first."""
    replied = list(_chain(before, target))
    yield from replied
    yield from (beside for index in replied[:1] for beside in (index + 1, index - 1) if 0 <= beside < len(before))
    if target.place.kind == "direct":  # there is one partner
        return
    people = _people(before)
    addressees = [_addressees(message, people) for message in before]
    yield from _in_turn(_conversation_of(before, target.author.id, _mentions(target, people), addressees))


def _conversation_of(
    before: Sequence[Message], author: str, named: set[str], addressees: Sequence[set[str]]
) -> list[list[int]]:
    """Return lists of indexes, the newest first: messages to the author, by the author, and by each partner.

    Return nothing where nobody is addressed by name.
    """
    by_author: dict[str, list[int]] = {}
    for index in range(len(before) - 1, -1, -1):
        by_author.setdefault(before[index].author.id, []).append(index)
    own = by_author.get(author, [])
    to_author = [index for index in range(len(before) - 1, -1, -1) if author in addressees[index]]
    partners = dict.fromkeys(chain(sorted(named), _partners(before, own, to_author, addressees)))
    partners.pop(author, None)
    if not partners:
        return []
    lists = [to_author, own]
    for person in islice(partners, len(named) + MAX_PARTNERS):
        theirs = by_author.get(person, [])
        lists += [[index for index in theirs if author in addressees[index]], theirs] if person in named else [theirs]
    return lists


def _partners(
    before: Sequence[Message], own: Sequence[int], to_author: Sequence[int], addressees: Sequence[set[str]]
) -> Iterator[str]:
    """Yield the ids of people whom the author addressed, or who addressed the author, the latest first."""
    for index in sorted({*own, *to_author}, reverse=True):
        yield from sorted(addressees[index])
        if before[index].author.id:
            yield before[index].author.id


def _chain(before: Sequence[Message], target: Message) -> Iterator[int]:
    """Yield the message that the target replies to, the one that it replies to, and so on."""
    places = {message.id: index for index, message in enumerate(before)}
    quote = target.reply_to
    for _ in range(REPLY_DEPTH):
        index = None if quote is None else places.pop(quote.message_id, None)
        if index is None:
            return
        yield index
        quote = before[index].reply_to


def _in_turn(lists: Iterable[Iterable[int]]) -> Iterator[int]:
    """Yield the first of each list, then the second of each, and so on."""
    for round_ in zip_longest(*lists):
        yield from (index for index in round_ if index is not None)


def _people(before: Iterable[Message]) -> dict[str, set[str]]:
    """Return the ids of authors by each name that they may be called."""
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


def _mentions(message: Message, people: Mapping[str, set[str]]) -> set[str]:
    """Return the ids of people whom a message names anywhere or addresses."""
    found = _addressees(message, people)
    for word in _WORD.findall(_text(message)):
        found |= people.get(_bare(word), set())
    return found - {message.author.id}


def _addressees(message: Message, people: Mapping[str, set[str]]) -> set[str]:
    """Return the ids of people whom a message addresses: by a reply, a name at its beginning, or an @mention."""
    quote, text = message.reply_to, _text(message)
    found = {quote.author.id} if quote is not None and quote.author is not None and quote.author.id else set[str]()
    if first := _WORD.search(text):
        found |= _people_called(_bare(first.group()), people)
    if "@" in text:
        for word in _WORD.findall(text):
            found |= people.get(_bare(word), set()) if word[0] == "@" else set()
    return found


def _people_called(word: str, people: Mapping[str, set[str]]) -> set[str]:
    """Return the ids of people whom *word* names, also with another ending of the name."""
    if word in people:
        return people[word]
    forms = [form for form in (word, word[:-1], word[:-2]) if len(form) >= _LOOSE]
    keys = (key for form in forms for key in (form, form + _FORM))
    return next((people[key] for key in keys if key in people), set())


def _text(message: Message) -> str:
    """Return the beginning of its texts, to search for names."""
    text = " ".join(part.text[:_MAX_TEXT] for part in message.parts if isinstance(part, Text))[:_MAX_TEXT]
    return visible(text).casefold()


def _bare(word: str) -> str:
    return word.lstrip("@").rstrip(_TRAILING)


def fit_levels(
    before: Sequence[Message],
    after: Sequence[Message],
    allowed: Budget,
    *,
    limits: MediaAmount,
    counter: MediaCounter,
    own: OwnMedia,
) -> tuple[list[tuple[Message, ...]], Mapping[str, tuple[Turn, ...]], tuple[LeftOut, ...]]:
    """Return recent, immediate and newer messages within their budgets, media within *limits*, turns, and reports."""
    shown = messages_in_words((*before, *after))
    turns = own.turns_in_words
    counts = count_tokens(shown, turns, allowed.counter)
    split, end = max(0, len(before) - IMMEDIATE), len(before)
    newer, left_newer = take_newest(shown[end:], counts[end:], allowed.immediate, "immediate")
    immediate, left = take_newest(shown[split:end], counts[split:end], allowed.immediate, "immediate")
    recent, left_recent = take_newest(shown[:split], counts[:split], allowed.recent, "recent")
    if any(one.tokens <= allowed.immediate for one in left):  # else there would be a gap
        recent, left_recent = (), report_messages(shown[:split], counts[:split], "recent", OLDER)
    levels = (recent, immediate, newer)
    tokens = [
        most - sum(count_tokens(level, turns, allowed.counter))
        for most, level in zip((allowed.recent, allowed.immediate, allowed.immediate), levels, strict=True)
    ]
    originals = {message.id: message for message in own.stand_ins((*before, *after))}
    in_words = [own.stand_ins_in_words(level) for level in levels]
    with_media, words = media_of_levels(in_words, originals, limits, tokens=tokens, counter=counter)
    found = [own.shown(chosen, level) for chosen, level in zip(with_media, levels, strict=True)]
    made = own.shown_turns([one for level in with_media for one in level])
    return found, made, left_recent + left + left_newer + words


class FittedWindow(NamedTuple):
    """The messages of a window in words, and where it is cut so that they are within their budget."""

    messages: tuple[Message, ...]  # all of them
    cut: int  # how many of the first ones are left out
    room: int  # tokens that the others leave
    notices: tuple[Notice, ...]
    left: tuple[LeftOut, ...]


def fit_window(read: WindowRead, own: OwnMedia, marks: Marks, allowed: Budget) -> FittedWindow:
    """Return the messages of a window in words, within their budget; cuts keep the prefix stable."""
    shown = messages_in_words(read.messages)
    counts = count_tokens(shown, own.turns_in_words, allowed.counter)
    shown, counts, oversized = drop_oversized(shown, counts, allowed.window)
    notices, counts, unfit = fit_notices(read.notices, counts, allowed)
    cut = keep_results_with_calls(shown, stable_cut(counts, read.start, allowed.window, (marks.high - marks.low) // 4))
    left = report_messages(shown[:cut], counts[:cut], "window", over_budget(allowed.window))
    if read.start:
        left = (LeftOut(source="window", why=BEFORE_WINDOW.format(high=marks.high), count=read.start), *left)
    return FittedWindow(
        shown, cut, allowed.window - sum(counts[cut:]), shift_notices(notices, cut), left + oversized + unfit
    )
