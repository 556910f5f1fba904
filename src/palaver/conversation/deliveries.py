"""Splits replies into the messages of a service: one row of the outbox for each."""

import logging
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from palaver.conversation.crew import error_text, foreign
from palaver.conversation.journal import Outgoing
from palaver.messages import Reply
from palaver.platform import Platform, type_fault

log = logging.getLogger(__name__)

GAP = "\n"  # between two parts, where a platform has changed the text it split


def deliveries_of(replies: Iterable[Outgoing], platforms: Mapping[str, Platform]) -> tuple[Outgoing, ...]:
    """Split each reply by its platform's `split`. The parts share a reply id, which is also the id of the first."""
    return tuple(part for reply in replies for part in _parts(reply, platforms.get(reply.reply.place.platform)))


def _parts(outgoing: Outgoing, platform: Platform | None) -> list[Outgoing]:
    place = outgoing.reply.place
    parts = [replace(part, place=place) for part in _split(outgoing.reply, platform)] if platform else [outgoing.reply]
    if len(parts) == 1:
        return [replace(outgoing, reply=parts[0])]
    separators = separators_in(outgoing.reply.text, [part.text for part in parts])
    return [
        replace(
            outgoing,
            id=f"{outgoing.id}.{number}" if number else outgoing.id,
            reply=part,
            turns=() if number else outgoing.turns,
            reply_id=outgoing.id,
            part=number,
            separator=separators[number],
        )
        for number, part in enumerate(parts)
    ]


def as_message_id(given: object) -> str | None:
    """The id of a message as its platform gave it, which may be a number; None for what is no id."""
    if isinstance(given, int) and not isinstance(given, bool):
        given = str(given)
    return given if isinstance(given, str) and given and given.isprintable() else None


def on_draft(draft: Outgoing, deliveries: Sequence[Outgoing], *, line: Outgoing) -> tuple[Outgoing, ...]:
    """Let the first of *deliveries* edit a draft that people see: its text, since media go only with a new message.

    Where no text comes, the draft is edited to the *line*.
    """
    if not deliveries or not deliveries[0].reply.text:
        return (replace(line, edits=draft.message_id), *deliveries)
    first, *rest = deliveries
    if first.reply.media:
        name = first.reply_id or first.id
        media = replace(first.reply, text="", reply_to=None)
        beside = replace(first, id=f"{first.id}-media", reply=media, turns=(), reply_id=name, part=first.part + 1)
        first = replace(first, reply=replace(first.reply, media=()), reply_id=name)
        rest = [beside, *(replace(one, part=one.part + 1) if one.reply_id == name else one for one in rest)]
    return (replace(first, edits=draft.message_id), *rest)


def _split(reply: Reply, platform: Platform) -> Sequence[Reply]:
    """Return the parts of a reply; the whole where `split` fails, or gives a part that says nothing."""
    try:
        with foreign(platform.name):
            parts = list(platform.split(reply))
    except Exception as error:  # noqa: BLE001 (a platform's own)
        log.error("%s cannot split a reply; it goes whole: %s", platform.name, error_text(error))
        return [reply]
    if parts == [reply] or (parts and all(map(_is_part, parts))):
        return parts
    log.error(
        "%s splits a reply into %d parts, not all of which say something; it goes whole", platform.name, len(parts)
    )
    return [reply]


def _is_part(part: Reply) -> bool:
    """Whether it is a reply that says something."""
    return type_fault(part, Reply) is None and bool(part.text.strip() or part.media)


def separators_in(text: str, parts: Sequence[str]) -> list[str]:
    """Return the white space before each part in *text*; `GAP` where the parts are not pieces of it."""
    separators: list[str] = []
    end = 0
    for part in parts:
        start = text.find(part, end)
        between = text[end:start] if start >= 0 else None
        end = end if start < 0 else start + len(part)
        separators.append(between if between is not None and not between.strip() else GAP)
    return ["", *separators[1:]]
