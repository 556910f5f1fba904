"""The form in which each medium of a prompt went, as a call remembers it. Pure."""

from hashlib import sha256

from tertulia.media.prompt_media import media_in_turn, turns_with_media
from tertulia.models.calls import SentMedia
from tertulia.parts import Media
from tertulia.turns import Prompt, Turn
from tertulia.value_cache import cached


def sent_media(prompt: Prompt) -> tuple[SentMedia, ...]:
    """Return the form of each medium of a prompt as it was sent, in order."""
    return tuple(one for turn in turns_with_media(prompt) for one in cached(turn, "sent forms", _forms))


def _forms(turn: Turn) -> tuple[SentMedia, ...]:
    return tuple(map(_form, media_in_turn(turn)))


def _form(media: Media) -> SentMedia:
    if media.data:
        return SentMedia(sha256=sha256(media.data).hexdigest(), mime=media.mime)
    return SentMedia(uri=media.uri, mime=media.mime) if media.uri else SentMedia()
