"""Media of a prompt: found and changed; no service gets addresses of others, or bytes that nobody checked. Pure."""

from collections.abc import Callable, Iterator, Mapping
from operator import is_

from msgspec.structs import replace

from tertulia.media.address_rules import is_youtube
from tertulia.models.base import Model, UploadsFiles
from tertulia.parts import Media, Part, ToolResult, media_in
from tertulia.turns import Prompt, Role, Turn
from tertulia.value_cache import cached

_MEDIA, _SENT_MEDIA = "media", "sent media"  # the keys of a turn's media, and of those with content


def without_foreign_uris(prompt: Prompt, model: Model) -> Prompt:
    """Return the prompt without the URIs that no service may get, see `is_foreign`; itself if it has none."""

    def hide(media: Media, role: Role) -> Media:
        if not is_foreign(media, role, model):
            return media
        has_bytes = media.data or media.sha256
        return replace(media, uri=None, raw=None) if has_bytes else media.without_content()

    return with_each_medium(prompt, hide)


def is_foreign(media: Media, role: Role, model: Model) -> bool:
    """Return whether a service must not get the URI of media: it is no video of YouTube, and no file of the service.

    Only what the model returned itself can be a file of its service. Any other URI is fetched by us, or becomes words:
    a server of one's own would fetch it from inside our network, or read a file of its disk.
    """
    if not media.uri or is_youtube(media.uri):
        return False
    return not (role == "model" and isinstance(model, UploadsFiles) and model.is_own_file(media.uri))


def without_unchecked_bytes(prompt: Prompt) -> Prompt:
    """Return the prompt without bytes that are in no stored file: nobody knows what they are. A model gets its own."""
    return with_each_medium(
        prompt, lambda media, role: media.without_content() if media.data and role == "user" else media
    )


def with_each_medium(prompt: Prompt, change: Callable[[Media, Role], Media]) -> Prompt:
    """Return the prompt with its media changed, where *change* does not return them as they are; else itself."""

    def change_part(part: Part, role: Role) -> Part:
        new = tuple(change(one, role) for one in media_in(part))
        if all(map(is_, new, media_in(part))):
            return part
        return replace(part, media=new) if isinstance(part, ToolResult) else new[0]

    return with_each_part(prompt, change_part)


def with_each_part(prompt: Prompt, change: Callable[[Part, Role], Part]) -> Prompt:
    """Return the prompt with the parts changed of turns that have media; itself where *change* changes none."""

    def change_turn(turn: Turn) -> Turn:
        parts = tuple(change(part, turn.role) for part in turn.parts)
        return turn if all(map(is_, parts, turn.parts)) else replace(turn, parts=parts)

    changed = {id(turn): new for turn in turns_with_media(prompt) if (new := change_turn(turn)) is not turn}
    if not changed:
        return prompt
    layers = (
        replace(layer, turns=tuple(changed.get(id(turn), turn) for turn in layer.turns)) for layer in prompt.layers
    )
    return replace(prompt, layers=tuple(layers))


def is_stored(media: Media) -> bool:
    """Return whether its file is to be attached."""
    return bool(media.sha256) and not media.data


def sent_media_in_turn(turn: Turn) -> tuple[tuple[Media, Role], ...]:
    """Return the media of a turn that have content, each with its role: those of a tool's result are the user's."""
    return cached(turn, _SENT_MEDIA, _sent_media_in_turn)


def _sent_media_in_turn(turn: Turn) -> tuple[tuple[Media, Role], ...]:
    return tuple(
        (media, turn.role if isinstance(part, Media) else "user")
        for part in turn.parts
        for media in media_in(part)
        if media.has_content
    )


def with_sent_media(turns: Mapping[str, tuple[Turn, ...]]) -> dict[str, tuple[Turn, ...]]:
    """Return the turns of those messages whose turns have media with content."""
    return {
        message_id: made
        for message_id, made in turns.items()
        for turn in made
        if turn.__dict__.get(_SENT_MEDIA, True) and sent_media_in_turn(turn)
    }


def media_in_turn(turn: Turn) -> tuple[Media, ...]:
    """Return the media of a turn; cached."""
    return cached(turn, _MEDIA, lambda one: tuple(media for part in one.parts for media in media_in(part)))


def turns_with_media(prompt: Prompt) -> list[Turn]:
    """Return the turns that have media; cached. At the others of a long history one look each is enough."""
    return cached(prompt, "turns with media", _turns_with_media)


def _turns_with_media(prompt: Prompt) -> list[Turn]:
    return [
        turn
        for layer in prompt.layers
        for turn in layer.turns
        if turn.__dict__.get(_MEDIA, True) and media_in_turn(turn)
    ]


def all_media(prompt: Prompt) -> Iterator[Media]:
    return (media for turn in turns_with_media(prompt) for media in media_in_turn(turn))
