"""Long replies: one that would be many messages is a file, or is cut."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from tertulia.engine.context_media import ContextMedia
from tertulia.engine.languages.translator import Translator
from tertulia.engine.reply_parts import split_replies
from tertulia.engine.store_protocols import OutboxItem
from tertulia.messages import Reply
from tertulia.parts import Media
from tertulia.platform import Platform

MOST_PARTS = 20  # messages of one reply
FILE_NAME = "answer.md"


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
            return [*parts[:MOST_PARTS], *media, await self._cut_line(item)]
        whole = Media(
            media_kind="document",
            unique_id=f"answer-{item.id}",
            mime="text/markdown",
            data=item.reply.text.encode(errors="replace"),
            label=FILE_NAME,
        )
        reply = replace(item.reply, text=parts[0].reply.text, media=(*item.reply.media, whole))
        return split_replies([replace(item, reply=await self.media.add_files_to_reply(reply))], self._platforms)

    async def _cut_line(self, item: OutboxItem) -> OutboxItem:
        lines = await self._translator.lines_for_reply(item)
        reply = Reply(place=item.reply.place, text=lines.cut)
        return OutboxItem(
            id=f"{item.id}-cut", reply=reply, made_at=item.made_at, run=item.run, task=item.task, kind="notice"
        )
