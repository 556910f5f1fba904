"""Attachments: a prompt whose media are stored files becomes one with bytes, handles or words, for one model.

How it is chosen. Each file has a *form* for a model: itself, a smaller image, a still, a sound in another format, the
beginning of its text, or words. The choice follows from the facts of the file and from what the model takes, so the
same prompt is always the same bytes. A form that is a file is inline if it is small, else a handle.

Why the prefix stays. Whether a file is inline or a handle depends on its own size alone. Only where all inline files
together are too large for a request, or all media are too many, have too many tokens or bytes, are the oldest ones
words, and how many these are changes in steps. A prompt was chosen for the first model, without what its tools return
and without messages that join the run: this is checked here.

What is remembered. Turns with bytes are cached up to a number of bytes, so that each is encoded once as long as it is
in use and no longer than that.
"""

import re
from asyncio import Semaphore, gather, get_running_loop
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from datetime import datetime
from functools import partial, reduce
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from tertulia.characters import HIDING
from tertulia.errors import FileGone, RequestRefused
from tertulia.media.amounts import NOTHING, MediaAmount, amount_of, over_limit
from tertulia.media.forms import PAGES, Forms, FormsDecoder, candidates
from tertulia.media.handles import PATIENCE, Handles
from tertulia.media.prompt_media import (
    all_media,
    is_stored,
    media_in_turn,
    turns_with_media,
    with_each_medium,
    without_foreign_uris,
    without_unchecked_bytes,
)
from tertulia.media.refusals import Refusals, media_key
from tertulia.media.sent_forms import DOCUMENT_CHARACTERS, with_facts
from tertulia.media.values import Handle, MediaStore, StoredFile
from tertulia.models.base import Model, UploadsFiles, media_taken
from tertulia.parts import Media, Part, Text, ToolResult, media_in
from tertulia.turns import Prompt, Role, Turn
from tertulia.wire.media_limits import PDF, MediaTaken

REMEMBERED = 8_000_000  # bytes of files in turns that are cached; with what is encoded of them it is several times that
AT_ONCE = 2  # forms that are made for one prompt: one with many files does not hold up others

BEGINNING = "The beginning of this document, in its own words:"
WHOLE = "This document, in its own words:"

_HIDDEN = re.compile(f"[{HIDING}\U000e0000-\U000e0fff]")  # nobody sees that it is in a document, and models read it

Escape = Callable[[str], str]
TurnKey = tuple[str, str, tuple[str | None, ...]]  # the model, the text and the files


class Attached(Struct, frozen=True, kw_only=True):
    """What goes for media: a file inline, a handle, or a text beside the words; else words alone."""

    inline: StoredFile | None = None
    handle: Handle | None = None
    text: str = ""
    is_whole: bool = True  # the text is all of the document
    beside_words: bool = False  # the words for it follow the file, but in the result of a tool

    @property
    def size(self) -> int:
        """The bytes that it adds to a request."""
        return self.inline.size if self.inline else 0


WORDS = Attached()


class Attachments:
    """Attaches stored files to prompts. *escape* changes what in the text of a document looks like our markup."""

    def __init__(
        self,
        store: MediaStore,
        decoder: FormsDecoder,
        *,
        now: Callable[[], datetime],
        escape: Escape = str,
        remembered: int = REMEMBERED,
        patience: float = PATIENCE,
    ) -> None:
        self._store = store
        self._forms = Forms(store, decoder, now=now)
        self._handles = Handles(store, now=now)
        self._refusals = Refusals(now=now)
        self._left_out: frozenset[str] = frozenset()  # media that a service may have refused, by `media_key`
        self._turns = TurnCache(remembered)
        self._escape = escape
        self._patience = patience  # seconds in which forms are begun for a prompt, and uploads waited for
        self._limits: MediaAmount | None = None

    def for_run(self, escape: Escape, *, limits: MediaAmount | None = None) -> Self:
        """Return the same attachments for one run, with the *escape* of its place, which has a delimiter of its own.

        *limits* are those of all media in one request.
        """
        same = copy(self)
        same._escape, same._limits = escape, limits  # noqa: SLF001 (our own copy)
        return same

    async def attach(self, prompt: Prompt, model: Model) -> Prompt:
        """Return the prompt with the files of its media, in the forms that *model* takes; itself if it has none.

        What is not stored is words: an address of somebody else, and bytes of a tool that are not what they say, or
        could not be stored. Uploads that take too long go on; forms that would come too late are made for a later one.
        """
        if not turns_with_media(prompt):
            return prompt
        deadline = get_running_loop().time() + self._patience
        prompt = without_unchecked_bytes(without_foreign_uris(prompt, model))
        if left_out := self._left_out | self._refusals.of(model.name):
            prompt = with_each_medium(
                prompt, lambda one, _: one.without_content() if media_key(one) in left_out else one
            )
        found = [
            (media, turn.role) for turn in turns_with_media(prompt) for media in media_in_turn(turn) if is_stored(media)
        ]
        if not found:
            return prompt
        files = await self._store.get({media.sha256 for media, _ in found if media.sha256})
        each = {(media.sha256 or "", media.media_kind, role): media for media, role in found}
        taken = media_taken(model)
        choose = partial(self._choose, model=model, taken=taken, turn=Semaphore(AT_ONCE), deadline=deadline)
        chosen = await gather(*(choose(media, key[2], files.get(key[0])) for key, media in each.items()))
        choices = dict(zip(each, chosen, strict=True))
        wanted = [choices[media.sha256 or "", media.media_kind, role] for media, role in found]
        rest = iter(self._within_limits(prompt, found, wanted, files, taken))
        layers = []
        for layer in prompt.layers:
            turns = [
                await self._attach_turn(turn, rest, model) if media_in_turn(turn) else turn for turn in layer.turns
            ]
            layers.append(replace(layer, turns=tuple(turns)))
        return replace(prompt, layers=tuple(layers))

    def _within_limits(
        self,
        prompt: Prompt,
        found: Sequence[tuple[Media, Role]],
        wanted: Sequence[Attached],
        files: Mapping[str, StoredFile],
        taken: MediaTaken,
    ) -> Sequence[Attached]:
        """Return what goes for the stored media that were *found*, within the limits of one request.

        Those that are asked about are words last.
        """
        asked = _are_asked_about(prompt)
        order = sorted(range(len(asked)), key=asked.__getitem__)
        others = [
            (media, turn.role)
            for turn in turns_with_media(prompt)
            for media in media_in_turn(turn)
            if media.has_content and not is_stored(media)
        ]
        inline = taken.inline_request - sum(len(media.data or b"") for media, _ in others)
        over = over_limit([one.size for one in wanted], inline, order)
        if self._limits:
            amounts = [
                NOTHING if choice == WORDS else amount_of(with_facts(media, files[media.sha256 or ""]), taken, role)
                for (media, role), choice in zip(found, wanted, strict=True)
            ]
            left = reduce(MediaAmount.minus, (amount_of(media, taken, role) for media, role in others), self._limits)
            over = over.union(
                *(over_limit(*each, order) for each in zip(zip(*amounts, strict=True), left, strict=True))
            )
        return [WORDS if number in over else choice for number, choice in enumerate(wanted)]

    async def renew(self, error: FileGone, prompt: Prompt, model: Model) -> bool:
        """Forget the handles of an attached *prompt* that the service lost; return whether any of them was ours."""
        return await self._handles.renew(error, prompt, model)

    def leave_out(self, error: RequestRefused, prompt: Prompt, sent: Prompt, model: Model, *, attempt: int) -> bool:
        """Let media go in words because of which *sent* may have been refused; return whether there are any to try."""
        media = [*zip(all_media(prompt), all_media(sent), strict=True)]
        shown = [(one, as_sent) for one, as_sent in media if as_sent.has_content or media_key(one) in self._left_out]
        self._left_out = self._refusals.attempt(attempt, str(error), shown, model.name)
        return bool(self._left_out)

    def accept(self, prompt: Prompt, sent: Prompt, model: Model) -> None:
        """Remember that a service accepted the media of a prompt, and refused those that were left out of it."""
        shown = (
            media_key(one)
            for one, as_sent in zip(all_media(prompt), all_media(sent), strict=True)
            if as_sent.has_content
        )
        self._refusals.accept(shown, model.name)
        self._refusals.add(self._left_out, model.name)
        self._left_out = frozenset()

    async def close(self) -> None:
        """Stop the uploads that are under way."""
        await self._handles.close()

    async def _choose(
        self,
        media: Media,
        role: Role,
        file: StoredFile | None,
        *,
        model: Model,
        taken: MediaTaken,
        turn: Semaphore,
        deadline: float,
    ) -> Attached:
        """Return what goes for media; it does not depend on other media."""
        if file is None:
            return WORDS
        for form in candidates(media, file, taken, role):
            if form.how == "text":
                async with turn:
                    text = await self._forms.text(file, deadline=deadline)
                whole = len(text) < DOCUMENT_CHARACTERS and (file.pages or 1) <= PAGES
                found = Attached(text=text, is_whole=whole) if text.strip() else None
            elif taken.takes(form.mime):
                async with turn:
                    made = await self._forms.file(file, form, deadline=deadline)
                placed = await self._place(made, role, model=model, taken=taken, deadline=deadline) if made else None
                found = replace(placed, beside_words=True) if placed and form.beside_words else placed
            else:
                continue
            if found is not None:
                return found
        return WORDS

    async def _place(
        self, made: StoredFile, role: Role, *, model: Model, taken: MediaTaken, deadline: float
    ) -> Attached | None:
        """Return a file as a handle if it is large, else inline; None if it is too large for both.

        What a model made is inline if uploads change it, as they do sounds and videos: one handle is for both roles.
        """
        is_large = taken.upload_from is not None and taken.upload_from < made.size
        if is_large and isinstance(model, UploadsFiles) and (role == "user" or made.mime.startswith("image/")):
            read = partial(self._forms.content, made)
            handle = None
            if made.size <= taken.upload:
                handle = await self._handles.get(made, model, read=read, deadline=deadline)
            if handle is not None:
                return Attached(handle=handle)
        limit = taken.inline_document if made.mime == PDF else taken.inline
        return Attached(inline=made) if made.size <= limit else None

    async def _attach_turn(self, turn: Turn, chosen: Iterator[Attached], model: Model) -> Turn:
        wanted = [next(chosen) for media in media_in_turn(turn) if is_stored(media)]
        if not wanted:
            return turn
        known = self._turns.get(turn, model.name, wanted)
        if known is not None:
            return known
        files = {one.inline.sha256: one.inline for one in wanted if one.inline}
        data = {
            sha256: await (self._forms.read(sha256) if turn.role == "model" else self._forms.content(file))
            for sha256, file in files.items()
        }
        loaded = [WORDS if one.inline and not data[one.inline.sha256] else one for one in wanted]
        made = attached_turn(turn, loaded, data, self._escape)
        if loaded == wanted and not any(one.text for one in wanted):  # texts depend on `escape`
            self._turns.add(turn, model.name, wanted, made)
        return made


def _are_asked_about(prompt: Prompt) -> list[bool]:
    """Return for each stored medium whether it is in a message that is answered; one that joined the run is, too."""
    return [
        layer.name in ("trigger", "run") and turn.role == "user" and not isinstance(part, ToolResult)
        for layer in prompt.layers
        for turn in layer.turns
        for part in turn.parts
        for _ in filter(is_stored, media_in(part))
    ]


class TurnCache:
    """Turns with attached files, the last used ones up to a number of bytes. Equal turns are the same."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._turns: OrderedDict[TurnKey, tuple[Turn, list[Attached], Turn]] = OrderedDict()
        self._size = 0

    def get(self, turn: Turn, model: str, wanted: list[Attached]) -> Turn | None:
        key = _turn_key(turn, model)
        known = self._turns.get(key)
        if known is None or known[1] != wanted or known[0] != turn:
            return None
        self._turns.move_to_end(key)
        return known[2]

    def add(self, turn: Turn, model: str, wanted: list[Attached], made: Turn) -> None:
        key = _turn_key(turn, model)
        self._remove(key)
        self._turns[key] = turn, wanted, made
        self._size += _weight(wanted)
        while self._size > self._most:
            self._remove(next(iter(self._turns)))

    def _remove(self, key: TurnKey) -> None:
        entry = self._turns.pop(key, None)
        self._size -= _weight(entry[1]) if entry else 0


def _turn_key(turn: Turn, model: str) -> TurnKey:
    return model, turn.text, tuple(media.sha256 for media in media_in_turn(turn))


def _weight(wanted: Sequence[Attached]) -> int:
    return sum(one.size for one in wanted) + 1000


def attached_turn(turn: Turn, chosen: Sequence[Attached], data: Mapping[str, bytes | None], escape: Escape) -> Turn:
    """Return the turn with what was *chosen* for each of its stored media, in their order."""
    rest, parts = iter(chosen), list[Part]()
    for part in turn.parts:
        match part:
            case Media() if is_stored(part):
                choice = next(rest)
                parts.extend(_names(part, choice, parts) if turn.role == "user" else ())
                parts.append(_attached(part, choice, data))
                parts.extend([Text(text=part.words)] if choice.beside_words else [])
                parts.extend([Text(text=framed_text(choice, escape))] if choice.text else [])
            case ToolResult(raw=None, media=media) if media:
                new = [_in_result(one, next(rest), data, escape) if is_stored(one) else one for one in media]
                parts.append(replace(part, media=tuple(new)))
            case _:
                parts.append(part)
    return replace(turn, parts=tuple(parts))


def _names(media: Media, choice: Attached, before: Sequence[Part]) -> Iterator[Text]:
    """Yield the marker with the name of media that go as a file; those that go in words have it in them."""
    named = replace(media, rendered_text=None, seconds=None)
    goes = (
        (choice.inline or choice.handle) and not choice.beside_words and media.media_kind != "sticker"
    )  # which shows its label
    if goes and named.is_described and Text(text=media.words) not in before[-1:]:
        yield Text(text=named.words)


def _attached(media: Media, choice: Attached, data: Mapping[str, bytes | None]) -> Media:
    if choice.inline:
        return replace(media, data=data[choice.inline.sha256], mime=choice.inline.mime, uri=None, raw=None)
    if choice.handle:
        handle = choice.handle
        return replace(media, uri=handle.uri, mime=handle.mime, sha256=handle.sha256, raw=None)
    return media.without_content()


def _in_result(media: Media, choice: Attached, data: Mapping[str, bytes | None], escape: Escape) -> Media:
    """Return media of a tool's result. There the text of a document is the description."""
    text = framed_text(choice, escape) if choice.text else media.rendered_text
    return replace(_attached(media, choice, data), rendered_text=text)


def framed_text(choice: Attached, escape: Escape) -> str:
    """Return the text of a document, every line of it marked, so that none can pass for ours or for its sender's."""
    heading = WHOLE if choice.is_whole else BEGINNING
    text = escape("\n".join(_HIDDEN.sub("", choice.text).splitlines()))
    return "\n".join([heading, *(f"> {line}".rstrip() for line in text.splitlines())])
