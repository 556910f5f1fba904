"""Media of a context: each gets its stored file, fetched if needed; what cannot be had goes in words."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from secrets import token_hex

from msgspec.structs import replace

from tertulia.context.media_budget import with_media
from tertulia.context.values import Context, LeftOut
from tertulia.engine.media_descriptions import Waiting, at_once
from tertulia.media.fetcher import MediaFetcher, has_service_address, is_fetchable, with_file
from tertulia.media.prompt_media import with_sent_media
from tertulia.media.values import FetchFailure, StoredFile, file_key
from tertulia.messages import Message, Place, Reply
from tertulia.parts import Media, Part, ToolResult, change_media, made_media, media_in
from tertulia.run.journal import Run
from tertulia.turns import Turn

NOT_HAD = "its media go in words: their files cannot be had, or are larger than media.largest"

ChangeMedia = Callable[[Media], Media]


class ContextMedia:
    """Replaces the bytes of media with the hash of their stored file."""

    def __init__(self, fetcher: MediaFetcher) -> None:
        self._fetcher = fetcher

    @property
    def largest(self) -> int:
        """The bytes of the largest file that is fetched."""
        return self._fetcher.largest

    async def known_files(self, unique_ids: Collection[str]) -> Mapping[str, StoredFile | FetchFailure]:
        """Return the stored files by the unique ids of their media, and why others are not tried now."""
        return await self._fetcher.known_files(unique_ids)

    async def add_files(self, context: Context, *, while_waiting: Waiting = at_once) -> Context:
        """Return the context with the files of all media that are sent themselves, fetched inside *while_waiting*."""
        messages = with_media(chain(context.batch, context.window, context.recent, context.immediate, context.newer))
        made = with_sent_media(context.turns).values()
        parts = chain(
            chain.from_iterable(message.parts for message in messages),
            chain.from_iterable(one.reply_to.parts for one in context.batch if one.reply_to),
            chain.from_iterable(turn.parts for turns in made for turn in turns),
        )
        change = await self._change(parts, context.place, while_waiting)
        if change is None:
            return context
        left = tuple(
            LeftOut(source="media", ids=(message.id,), why=NOT_HAD)
            for message in messages
            if any(_is_changed(one) and not change(one).has_content for part in message.parts for one in media_in(part))
        )
        context = _with_media(context, change)
        return replace(context, left_out=context.left_out + left) if left else context

    async def add_files_to_result(self, run: Run, result: ToolResult) -> ToolResult:
        """Return the result of a tool with the files of its media, and their ids; what cannot be had stays as it is."""
        wanted = [one for one in result.media if is_fetchable(one)]
        if not wanted or result.raw is not None:
            return result
        files = await self._fetcher.fetch_all(wanted, run.place.platform)
        return replace(result, media=tuple(_with_known_file(one, files) for one in result.media))

    async def add_files_to_turns(self, turns: Sequence[Turn], platform: str) -> tuple[Turn, ...]:
        """Return the turns of an answer with files in place of bytes; bytes that cannot be stored stay.

        Their ids are those of their files: a tool may give the same one to all that it makes.
        """
        held = [one for turn in turns for part in turn.parts for one in media_in(part) if one.data]
        files = await self._fetcher.fetch_all(held, platform) if held else {}
        if not files:
            return tuple(turns)

        return tuple(
            _with_parts(turn, lambda media: _with_known_file(media, files) if media.data else media) for turn in turns
        )

    async def add_files_to_reply(self, reply: Reply) -> Reply:
        """Return the reply with the files of its media; what cannot be had is its address in the text."""
        wanted = [media for media in reply.media if is_fetchable(media)]
        files = await self._fetcher.fetch_all(wanted, reply.place.platform) if wanted else {}
        media, links = [], []
        for one in reply.media:
            if file := files.get(file_key(one)):
                media.append(_with_own_file(one, file))
            elif one.uri and not one.data:
                links.append(one.link or one.caption)
            else:
                media.append(one)
        text = "\n\n".join(filter(None, [reply.text, "\n".join(links)]))
        return replace(reply, text=text, media=tuple(media)) if wanted or links else reply

    async def add_files_to_task_reply(self, reply: Reply) -> Reply:
        """Return the reply of a task handler with the files of its media."""
        media = tuple(made_media(one, name=token_hex(16)) for one in reply.media)
        return await self.add_files_to_reply(replace(reply, media=media))

    async def _change(self, parts: Iterable[Part], place: Place, while_waiting: Waiting) -> ChangeMedia | None:
        """Fetch the media of *parts*; return how each is changed, None where none is to be."""
        held = [media for part in parts for media in media_in(part) if _is_changed(media)]
        if not held:
            return None
        async with while_waiting():
            files = await self._fetcher.fetch_all(held, place.platform, place=place)
        return lambda media: _with_stored_file(media, files) if _is_changed(media) else media


def _with_known_file(media: Media, files: dict[str, StoredFile]) -> Media:
    """Return media with their file, under its id; as they are where they have none."""
    key = file_key(media)
    return replace(_with_own_file(media, files[key]), unique_id=key) if key in files else media


def _with_own_file(media: Media, file: StoredFile) -> Media:
    """Return media of the agent with their file; its length is told in words too, since it is known from the start."""
    known = with_file(media, file)
    return replace(known, seconds=known.length)


def _is_changed(media: Media) -> bool:
    """Return whether media hold bytes, or lead to some that are no stored file yet."""
    return media.has_content and media.sha256 is None and not has_service_address(media)


def _with_stored_file(media: Media, files: dict[str, StoredFile]) -> Media:
    file = files.get(file_key(media))
    return media.without_content() if file is None else with_file(media, file)


def _with_media(context: Context, change: ChangeMedia) -> Context:
    def in_message(message: Message) -> Message:
        quote = message.reply_to
        parts = change_media(message.parts, change)
        quoted = change_media(quote.parts, change) if quote else ()
        if parts is message.parts and (quote is None or quoted is quote.parts):
            return message
        return replace(message, parts=parts, reply_to=quote and replace(quote, parts=quoted))

    def in_window(message: Message) -> Message:
        parts = change_media(message.parts, change)
        return message if parts is message.parts else replace(message, parts=parts)

    def or_as_it_is(media: Media) -> Media:
        changed = change(media)
        return media if media.uri and not media.data and not changed.has_content else changed

    def in_turn(turn: Turn) -> Turn:
        return _with_parts(turn, or_as_it_is if turn.role == "model" else change)  # it may be a file of its service

    return replace(
        context.with_batch([*map(in_message, context.batch)]),
        window=tuple(map(in_window, context.window)),
        recent=tuple(map(in_window, context.recent)),
        immediate=tuple(map(in_window, context.immediate)),
        newer=tuple(map(in_window, context.newer)),
        turns={name: tuple(map(in_turn, turns)) for name, turns in context.turns.items()},
    )


def _with_parts(turn: Turn, change: ChangeMedia) -> Turn:
    parts = change_media(turn.parts, change)
    return turn if parts is turn.parts else replace(turn, parts=parts)
