"""The form in which each medium of a prompt went, as a call remembers it. Pure."""

from collections.abc import Iterator
from hashlib import sha256

from tertulia.media.attachments import BEGINNING, WHOLE
from tertulia.media.prompt_media import turns_with_media
from tertulia.models.calls import SentMedia
from tertulia.parts import Media, Text, ToolResult
from tertulia.turns import Prompt, Turn
from tertulia.value_cache import cached


def sent_media(prompt: Prompt) -> tuple[SentMedia, ...]:
    """Return the form of each medium of a prompt as it was sent, in order."""
    return tuple(one for turn in turns_with_media(prompt) for one in cached(turn, "sent forms", _forms))


def _forms(turn: Turn) -> tuple[SentMedia, ...]:
    return tuple(_read_forms(turn))


def _read_forms(turn: Turn) -> Iterator[SentMedia]:
    for part, following in zip(turn.parts, (*turn.parts[1:], None), strict=True):
        match part:
            case Media():
                yield _form(part, following.text if isinstance(following, Text) else "")
            case ToolResult():
                for media in part.media:
                    yield _form(media, media.rendered_text or "")


def _form(media: Media, text: str) -> SentMedia:
    """Return the form of media, which are followed by a *text*."""
    beside = text == media.words
    if media.data:
        return SentMedia(sha256=sha256(media.data).hexdigest(), mime=media.mime, beside_words=beside)
    if media.uri:
        return SentMedia(uri=media.uri, mime=media.mime, beside_words=beside)
    heading = text.partition("\n")[0]
    return SentMedia(document="whole" if heading == WHOLE else "beginning" if heading == BEGINNING else None)
