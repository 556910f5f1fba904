"""Parts: the pieces of a message or a turn. Pure, but for `Media.of`."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from math import inf, isfinite
from mimetypes import guess_type
from operator import is_
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tertulia.characters import is_blank, one_line, visible
from tertulia.errors import InvalidValue
from tertulia.files import read_regular

MAX_FILE = 100 * 1024 * 1024  # bytes of one file; services take no larger requests
MAX_SHOWN_TEXT = 50_000  # characters of one message, or of one tool's result, that a model is shown
_END = 10_000  # of these, from the end of a text that is longer
_NOTICE = 60  # of these, for the notice of what is left out: what was cut is not cut again
MAX_UNIQUE_ID = 500  # characters; a longer one of somebody else is replaced by its hash
MAX_LABEL = 200  # characters of a label that are shown
DESCRIBED = " described: "  # in `Media.words`, before what media show
_QUOTES = str.maketrans(dict.fromkeys('"“”„‟″＂', "'"))
_LINK = re.compile(r"https?://[^\s/?#@\\]+(?:[/?#]\S*)?", re.IGNORECASE)
SAME_AS = ", the same as "  # the same, before where they are shown already

EVENT = "event"  # the kind of what happened in a place and nobody wrote: a topic was opened, somebody joined
RECORDINGS = frozenset({"voice", "audio", "music", "video", "video_note"})  # kinds whose length says something
USUAL_MIME = {  # what media of a kind mostly are, where nothing says
    "photo": "image/jpeg",
    "image": "image/jpeg",
    "sticker": "image/webp",
    "voice": "audio/ogg",
    "audio": "audio/mpeg",
    "music": "audio/mpeg",
    "video": "video/mp4",
    "video_note": "video/mp4",
    "animation": "video/mp4",
    "gif": "video/mp4",
}


class _Part(Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    """The base of all parts: frozen, keyword-only, tagged by `kind` in JSON."""


class Text(_Part, frozen=True, kw_only=True, tag="text"):
    text: str
    signature: str | None = None  # opaque, as received; echoed back, never decoded
    raw: dict[str, Any] | None = None  # as received, where the fields above do not say it all; for its maker only


class Media(_Part, frozen=True, kw_only=True, tag="media"):
    media_kind: str  # photo, sticker, voice, …; unknown kinds are kept
    unique_id: str  # the same bytes have the same one, so that they are fetched and described once
    mime: str | None = None
    data: bytes | None = None
    uri: str | None = None
    rendered_text: str | None = None  # what it shows or says, by our account: nothing that its sender said
    label: str | None = None  # what is known without a look at it: the set and emoji of a sticker, a file's name
    file_id: str | None = None  # by which the platform gives its bytes
    account: str | None = None  # the platform that gives them by this id; None: that of their place
    sha256: str | None = None  # of the stored file with its bytes
    size: int | None = None  # bytes; this, the pixels and the pages as the platform says, or by the stored file
    width: int | None = None  # pixels
    height: int | None = None  # pixels
    seconds: float | None = None  # of a video or a sound, as the platform says: so its words never change
    file_seconds: float | None = None  # the same by the stored file, which decides what it costs
    pages: int | None = None  # of a document
    same_as: str | None = None  # where the same media are shown already, which go once: `in message 5`
    signature: str | None = None
    raw: dict[str, Any] | None = None  # as received, where the fields above do not say it all; for its maker only

    @classmethod
    def of(cls, source: str | Path | bytes, *, mime: str | None = None) -> "Media":
        """Read a file: `Media.of("cat.jpg")`. Its name says of what type it is, unless *mime* does.

        Bytes are taken as they are: `Media.of(data, mime="image/png")`.
        """
        data = source if isinstance(source, bytes) else _read(Path(source))
        mime = mime or (None if isinstance(source, bytes) else guess_type(Path(source).name)[0])
        mime = mime or "application/octet-stream"
        kind = {"image": "photo", "audio": "audio", "video": "video"}.get(mime.partition("/")[0], "document")
        return cls(media_kind=kind, unique_id=sha256(data).hexdigest(), mime=mime, data=data)

    @property
    def words(self) -> str:
        """`[photo described: a cat]`, `[document "a.pdf"]`, `[voice of 12 seconds]`: the words where they do not go.

        The label is in quotation marks, so that a name which somebody chose cannot pass for a description of ours. Both
        lose square brackets and line breaks, so that they cannot end the marker and pass for words of the sender.
        """
        if self.same_as:
            return f"[{self.kind_word}{SAME_AS}{one_line(self.same_as)}]"
        label, length, told = one_line(self._visible_label), self._told_length, one_line(self._description)
        named = f' "{label.translate(_QUOTES)}"' if label else ""
        lasting = f" of {length}" if length else ""
        return f"[{self.kind_word}{named}{lasting}{DESCRIBED if told else ''}{told}]"

    @property
    def caption(self) -> str:
        """The text for people who cannot see it."""
        return self.rendered_text or (self.sticker or ("", ""))[1] or self.label or self.words

    @property
    def sticker(self) -> tuple[str, str] | None:
        """The set and the name of a sticker that is known by these alone."""
        set_name, _, name = self.unique_id.rpartition("/")
        is_named = self.media_kind == "sticker" and not self.has_content and set_name
        return (set_name, name) if is_named else None

    @property
    def link(self) -> str:
        """The address at which people can see it; empty if there is none, or one with a password."""
        return self.uri if self.uri and _LINK.fullmatch(self.uri) else ""

    @property
    def has_content(self) -> bool:
        """Whether its bytes are here, or can be had."""
        return bool(self.data or self.uri or self.sha256 or self.file_id)

    def without_content(self) -> "Media":
        """Return it without its bytes and all that leads to them: it is sent as words. A signature is of the bytes."""
        return replace(self, data=None, uri=None, raw=None, sha256=None, file_id=None, signature=None)

    @property
    def length(self) -> float | None:
        """The seconds of a video or a sound, by its stored file if that is known."""
        return self.seconds if self.file_seconds is None else self.file_seconds

    @property
    def is_described(self) -> bool:
        """Whether it has a description or a label with visible characters, or a length that its platform says."""
        return bool(self._description or self._visible_label or self._told_length)

    @property
    def _description(self) -> str:
        return "" if self.rendered_text is None or is_blank(self.rendered_text) else self.rendered_text

    @property
    def _visible_label(self) -> str:
        return "" if self.label is None or is_blank(self.label) else self.label[:MAX_LABEL]

    @property
    def _told_length(self) -> str:
        """How long a recording is: `12 seconds`, or `2 min 5 s`."""
        if not self.seconds or not isfinite(self.seconds) or self.media_kind not in RECORDINGS:
            return ""
        minutes, seconds = divmod(max(1, round(self.seconds)), 60)
        return f"{minutes} min {seconds} s" if minutes else f"{seconds} second{'s' if seconds > 1 else ''}"

    @property
    def kind_word(self) -> str:
        """The kind as a word for a marker."""
        return re.sub(r"[^\w·-]", "", visible("_".join(self.media_kind[:200].split())))[:40] or "unknown"


class Thought(_Part, frozen=True, kw_only=True, tag="thought"):
    text: str
    signature: str | None = None
    field: str | None = None  # the field it came in, where services differ (`reasoning`, `reasoning_content`)
    raw: dict[str, Any] | None = None  # as received, where the fields above do not say it all; for its maker only


class ToolCall(_Part, frozen=True, kw_only=True, tag="tool_call"):
    name: str
    args: dict[str, Any] = {}
    id: str | None = None
    signature: str | None = None
    broken: str | None = None  # arguments that were no JSON object, as received; `args` is then empty
    raw: dict[str, Any] | None = None  # as received, where the fields above do not say it all; for its maker only


class ToolResult(_Part, frozen=True, kw_only=True, tag="tool_result"):
    name: str
    value: Any = None
    id: str | None = None
    failed: bool = False
    media: tuple[Media, ...] = ()  # pictures and documents a tool returned beside its value
    private_media: bool = False  # whether its media are for the model alone; else the answer has them too
    raw: dict[str, Any] | None = None  # as received, where the fields above do not say it all

    @property
    def outcome(self) -> str:
        """The verb for it in a sentence: `answered` or `failed`."""
        return "failed" if self.failed else "answered"


class Opaque(_Part, frozen=True, kw_only=True, tag="opaque"):
    raw: dict[str, Any]  # anything else a model returned; goes back as it came, and only to its maker


Part = Text | Media | Thought | ToolCall | ToolResult | Opaque
P = TypeVar("P", bound=Part)


def media_in(part: Part) -> tuple[Media, ...]:
    """Return the media of a part or of a tool's result; a result that is sent raw has its media inside."""
    if isinstance(part, Media):
        return (part,)
    return part.media if isinstance(part, ToolResult) and part.raw is None else ()


def change_media(parts: tuple[Part, ...], change: Callable[[Media], Media]) -> tuple[Part, ...]:
    """Return the parts with their media, also those of tool results, changed; the same ones where nothing is."""
    changed = tuple([_change_part(part, change) for part in parts])
    return parts if all(map(is_, changed, parts)) else changed


def _change_part(part: Part, change: Callable[[Media], Media]) -> Part:
    if isinstance(part, Media):
        return change(part)
    if not isinstance(part, ToolResult) or part.raw is not None or not part.media:
        return part
    media = tuple(map(change, part.media))
    return part if all(map(is_, media, part.media)) else replace(part, media=media)


def foreign_media(media: Media) -> Media:
    """Return media that somebody else made: they name no stored file, which may be another person's.

    Numbers that cannot be true are not known, and a unique id that is too long is its hash.
    """
    unique_id = media.unique_id
    safe = {
        "sha256": None,
        "file_seconds": None,
        "unique_id": unique_id if len(unique_id) <= MAX_UNIQUE_ID else _hash(unique_id),
        "seconds": media.seconds if media.seconds is not None and 0 <= media.seconds < inf else None,
        **{name: _positive(getattr(media, name)) for name in ("size", "width", "height", "pages")},
    }
    return media if all(getattr(media, name) == value for name, value in safe.items()) else replace(media, **safe)


def made_media(media: Media, *, name: str) -> Media:
    """Return media that a tool, a task or a model made: known by their bytes, else by *name*, which nobody else has.

    The id that they came with may be that of another person's photo: it leads to no file, neither a stored one nor one
    of a platform. A sticker by its set and name stays.
    """
    unique_id = sha256(media.data).hexdigest() if media.data else media.unique_id if media.sticker else name
    return foreign_media(replace(media, unique_id=unique_id, file_id=None, account=None))


def foreign_parts(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return parts that somebody else made, with `foreign_media`; the same ones where nothing changes."""
    changed = tuple(foreign_media(part) if isinstance(part, Media) else part for part in parts)
    return parts if all(map(is_, changed, parts)) else changed


def _positive(number: int | None) -> int | None:
    return number if number is not None and 0 < number < 2**53 else None


def _hash(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()


def _read(path: Path) -> bytes:
    try:
        return read_regular(path, max_size=MAX_FILE)
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        reason = getattr(error, "strerror", "") or error
        raise InvalidValue(f"cannot read {str(path)!a}: {reason}") from error


def cut(text: str, room: int = MAX_SHOWN_TEXT) -> str:
    """Return *text*, or if it is longer than *room* its beginning and end with a notice of the length between."""
    if len(text) <= room:
        return text
    end = min(_END, room // 4)
    beginning = max(0, room - end - _NOTICE)
    left = len(text) - beginning - end
    return f"{text[:beginning]}\n(… {left:,} characters are left out here …)\n{text[len(text) - end :]}"


def cut_parts(parts: Sequence[Part]) -> Sequence[Part]:
    """Return *parts* with at most `MAX_SHOWN_TEXT` characters of text, and a notice where more is left out.

    Each tool result may be as long as all texts together.
    """
    parts = cut_results(parts)
    if sum(len(_words(part)) for part in parts) <= MAX_SHOWN_TEXT:
        return parts
    return tuple(_cut_to(parts, MAX_SHOWN_TEXT))


def cut_results(parts: Sequence[Part]) -> Sequence[Part]:
    """Return *parts* with their tool results cut; the same *parts* where none is too long."""
    shown = [_cut_result(part) if isinstance(part, ToolResult) else part for part in parts]
    return parts if all(map(is_, shown, parts)) else tuple(shown)


def _cut_result(result: ToolResult) -> ToolResult:
    """Return the result with its value, as text, and the descriptions of its media cut."""
    text = result.value if isinstance(result.value, str) else _json(result.value)
    if len(text) > MAX_SHOWN_TEXT:
        result = replace(result, value=cut(text), raw=None)
    if any(len(_words(media)) > MAX_SHOWN_TEXT for media in result.media):
        result = replace(result, media=tuple(_with_words(media, cut(_words(media))) for media in result.media))
    return result


def _json(value: Any) -> str:
    """Return *value* as JSON, or nothing where JSON cannot hold it; no stored value is such."""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return ""


def joined_text(parts: Iterable[Part], separator: str) -> str:
    """Join the texts among *parts*; other parts have none."""
    return separator.join([part.text for part in parts if isinstance(part, Text)])


def cut_text(parts: Sequence[Part], *, separator: str = " ") -> str:
    """Join the texts among *parts*, cut to the length that a model is shown."""
    return joined_text(cut_parts(parts), separator)


def _cut_to(parts: Sequence[Part], room: int) -> Iterator[Part]:
    left = 0
    for part in parts:
        words = _words(part)
        if not words or len(words) <= room:
            yield part
        elif room:
            yield _with_words(part, cut(words, room))
        else:
            left += len(words)
            if isinstance(part, Media):
                yield _with_words(part, None)
        room = max(0, room - len(words))
    if left:
        yield Text(text=f"(… {left:,} more characters are left out here …)")


def _words(part: Part) -> str:
    match part:
        case Text(text=words) | Media(rendered_text=str(words)):
            return words
    return ""


def _with_words(part: P, words: str | None) -> P:
    return replace(part, rendered_text=words) if isinstance(part, Media) else replace(part, text=words)


GENERATED_ID_PREFIX = "tertulia-"  # of ids that we gave to calls without one


def is_generated_id(call_id: str | None) -> bool:
    """Return whether we made the id: the service never saw it."""
    return call_id is not None and call_id.startswith(GENERATED_ID_PREFIX)
