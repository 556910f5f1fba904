"""Sent forms: in which form media go to a model, and how many tokens it counts for them. Pure.

One function decides it, `sent_as`. Budgets, descriptions and words for repeated media ask it before a request is made,
`media.forms` when the bytes are attached.
"""

from typing import Literal

from msgspec.structs import replace

from tertulia.media.content_types import PDF, PICTURES, STREAMS, TGS
from tertulia.media.values import StoredFile
from tertulia.parts import Media
from tertulia.tokens import ESTIMATOR, MOVING, READ_AS_TEXT, count_media, media_mime
from tertulia.turns import Role
from tertulia.wire.media_limits import MediaTaken, spelled

SentAs = Literal["picture", "sound", "video", "document", "text", "words"]

DOCUMENT_CHARACTERS = 20_000  # of the beginning of a document, where it does not go itself; our choice
DOCUMENT_TOKENS = 20_000  # a document with more goes as its beginning; our choice
SOUND_SECONDS = 1200  # of a sound in another format; the rest is cut
STILL_SIDE = 1024  # pixels of a still of a video

_MADE_FROM = frozenset(map(spelled, PICTURES | STREAMS | {TGS}))  # types of which other forms can be made
_CHARACTERS_OF_A_TOKEN = 3  # in any script, so that the beginning of a document is not more than is counted


def sent_as(media: Media, taken: MediaTaken, role: Role = "user") -> SentAs:
    """Return in which form media go to a model, by what is known of them.

    A file that turns out to be damaged, or to say where it was taken, may go in words after all. What a model made goes
    back to it as it was, or in words.
    """
    mime = spelled(media_mime(media))
    if not media.has_content:
        return "words"
    if role == "model":
        return _itself(mime) if taken.own and taken.takes(mime) else "words"
    if media.media_kind == "youtube":
        return "video" if taken.sees_video and not media.sha256 else "words"
    return _form(media, mime, taken)


def _itself(mime: str) -> SentAs:
    forms: dict[str, SentAs] = {"image": "picture", "audio": "sound", "video": "video"}
    return forms.get(mime.partition("/")[0], "document")


def _form(media: Media, mime: str, taken: MediaTaken) -> SentAs:
    takes, is_decoded, kind = taken.takes(mime), mime in _MADE_FROM, _itself(mime)
    if kind == "picture":
        return "picture" if taken.sees and is_decoded else "words"  # other types never go as they are
    if kind == "sound":
        return "sound" if takes or (taken.hears and is_decoded) else "words"
    if kind == "video" and takes and media.media_kind != "sticker":
        return "video"
    if kind == "video" or media.media_kind in MOVING:
        return "picture" if taken.sees and is_decoded else "words"
    if mime == PDF or is_text(mime):
        return "document" if takes and _document_tokens(media, taken) <= DOCUMENT_TOKENS else "text"
    return "words"


def is_text(mime: str) -> bool:
    return mime.startswith("text/") or mime in READ_AS_TEXT


def is_beside_words(media: Media, form: SentAs) -> bool:
    """Return whether the words for media go too: a still says little of a video, a text is the beginning."""
    is_still = form == "picture" and media_mime(media).startswith("video/") and media.media_kind not in MOVING
    return is_still or form == "text"


def is_shown_itself(media: Media, taken: MediaTaken, role: Role = "user") -> bool:
    """Return whether a model gets media themselves, in some form, and no words for them."""
    form = sent_as(media, taken, role)
    return form != "words" and not is_beside_words(media, form)


def with_facts(media: Media, file: StoredFile) -> Media:
    """Return media with what is known of their stored file: it decides, not what their sender said.

    The length that the sender said stays beside it, for the words: a file may come after they were shown.
    """
    return replace(
        media,
        mime=file.mime,
        size=file.size,
        width=media.width if file.width is None else file.width,
        height=media.height if file.height is None else file.height,
        file_seconds=file.seconds,
        pages=media.pages if file.pages is None else file.pages,
    )


def media_tokens(media: Media, taken: MediaTaken) -> int:
    """Return about how many tokens a model counts for media, in the form in which it gets them."""
    form = sent_as(media, taken)
    match form:
        case "words":
            return ESTIMATOR.text(media.words)
        case "text":
            most = DOCUMENT_CHARACTERS // _CHARACTERS_OF_A_TOKEN
            return most if media.size is None or media.pages else min(most, media.size)
        case "picture":
            media = replace(media, media_kind="photo", mime="image/jpeg")
        case "sound" if not taken.takes(media_mime(media)):
            media = replace(media, file_seconds=min(media.length or SOUND_SECONDS, SOUND_SECONDS))
        case "video" if media.media_kind == "youtube":
            media = replace(media, file_seconds=media.length or taken.video_seconds)
        case _:
            pass
    tokens = count_media(media, ESTIMATOR, taken.rates)
    return min(tokens, taken.video_seconds * (taken.rates.video_second or 0)) if form == "video" else tokens


def _document_tokens(media: Media, taken: MediaTaken) -> int:
    return count_media(media, rates=taken.rates)
