"""Parts of replies: a reply is split by its platform; of too many, a file goes. The first may edit a visible draft."""

import logging
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from tertulia.engine.background import foreign_code, log_text
from tertulia.engine.context_media import ContextMedia
from tertulia.engine.languages.translator import Translator
from tertulia.engine.store_protocols import OutboxItem
from tertulia.messages import Reply
from tertulia.parts import Media
from tertulia.platform import Platform, with_media_as_text
from tertulia.type_checks import type_fault

log = logging.getLogger(__name__)

MOST_PARTS = 20  # messages of one reply
FILE_NAME = "answer.md"
GAP = "\n"  # between two parts, where a platform has changed the text it split


def split_replies(replies: Iterable[OutboxItem], platforms: Mapping[str, Platform]) -> tuple[OutboxItem, ...]:
    """Split each reply by its platform's `split`. The parts share a reply id, which is the id of the first part."""
    return tuple(part for reply in replies for part in _parts(reply, platforms.get(reply.reply.place.platform)))


def _parts(item: OutboxItem, platform: Platform | None) -> list[OutboxItem]:
    place = item.reply.place
    parts = [replace(part, place=place) for part in _split(item.reply, platform)] if platform else [item.reply]
    if len(parts) == 1:
        return [replace(item, reply=parts[0])]
    separators = separators_in(item.reply.text, [part.text for part in parts])
    return [
        replace(
            item,
            id=f"{item.id}.{number}" if number else item.id,
            reply=part,
            turns=() if number else item.turns,
            reply_id=item.id,
            part=number,
            separator=separators[number],
        )
        for number, part in enumerate(parts)
    ]


def edit_draft(draft: OutboxItem, deliveries: Sequence[OutboxItem], *, closing: OutboxItem) -> tuple[OutboxItem, ...]:
    """Return the deliveries such that the first edits a visible draft. Its media become a message of their own.

    If the answer has no text, the draft becomes the *closing* line.
    """
    if not deliveries or not deliveries[0].reply.text:
        return (replace(closing, edits=draft.message_id), *deliveries)
    first, *rest = deliveries
    if first.reply.media:
        name = first.reply_id or first.id
        media = replace(first.reply, text="", reply_to=None)
        beside = replace(first, id=f"{first.id}-media", reply=media, turns=(), reply_id=name, part=first.part + 1)
        first = replace(first, reply=replace(first.reply, media=()), reply_id=name)
        rest = [beside, *(replace(one, part=one.part + 1) if one.reply_id == name else one for one in rest)]
    return (replace(first, edits=draft.message_id), *rest)


def _split(reply: Reply, platform: Platform) -> Sequence[Reply]:
    """Return the parts of a reply; the whole reply where `split` fails or returns an empty part."""
    try:
        with foreign_code(platform.name):
            reply = with_media_as_text(reply, platform.capabilities_in(reply.place).media)
            parts = list(platform.split(reply))
    except Exception as error:  # noqa: BLE001 (a platform's own)
        log.error("%s.split failed; the reply is sent whole: %s", platform.name, log_text(error))
        return [reply]
    is_valid = all(type_fault(part, Reply) is None and (part.text.strip() or part.media) for part in parts)
    if parts == [reply] or (parts and is_valid):
        return parts
    log.error("%s.split returned %d parts, some invalid or empty; the reply is sent whole", platform.name, len(parts))
    return [reply]


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


class LongReplies:
    """Splits replies into messages: of one with too many, the first and a file with all of it, or the first ones."""

    def __init__(self, platforms: Mapping[str, Platform], media: ContextMedia, translator: Translator) -> None:
        self._platforms = platforms
        self.media = media
        self._translator = translator

    async def split(self, replies: Iterable[OutboxItem]) -> tuple[OutboxItem, ...]:
        made: list[OutboxItem] = []
        for item in replies:
            parts = split_replies([item], self._platforms)
            is_long = sum(bool(part.reply.text) for part in parts) > MOST_PARTS
            made += await self._shorten(item, parts) if is_long else parts
        return tuple(made)

    async def _shorten(self, item: OutboxItem, parts: Sequence[OutboxItem]) -> Sequence[OutboxItem]:
        place = item.reply.place
        if "document" not in self._platforms[place.platform].capabilities_in(place).media:
            media = [
                replace(part, reply=replace(part.reply, text="")) for part in parts[MOST_PARTS:] if part.reply.media
            ]
            words = (await self._translator.lines_for_reply(item)).cut
            cut = OutboxItem(
                id=f"{item.id}-cut",
                reply=Reply(place=place, text=words),
                made_at=item.made_at,
                run=item.run,
                task=item.task,
                kind="notice",
            )
            return [*parts[:MOST_PARTS], *media, cut]
        whole = Media(
            media_kind="document",
            unique_id=f"answer-{item.id}",
            mime="text/markdown",
            data=item.reply.text.encode(errors="replace"),
            label=FILE_NAME,
        )
        reply = replace(item.reply, text=parts[0].reply.text, media=(*item.reply.media, whole))
        return split_replies([replace(item, reply=await self.media.add_files_to_reply(reply))], self._platforms)
