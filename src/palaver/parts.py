"""The pieces a message or a turn is made of. Pure."""

from typing import Any

from msgspec import Struct

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
    """What all parts share: frozen, named fields, and `kind` as the tag in JSON."""


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
    rendered_text: str | None = None  # what stands for it where the media itself cannot go
    signature: str | None = None
    raw: dict[str, Any] | None = None  # as received, where the fields above do not say it all; for its maker only

    @property
    def words(self) -> str:
        return self.rendered_text or f"[{self.media_kind}]"


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
    raw: dict[str, Any] | None = None  # as received, where the fields above do not say it all


class Opaque(_Part, frozen=True, kw_only=True, tag="opaque"):
    raw: dict[str, Any]  # anything else a model returned; goes back as it came, and only to its maker


Part = Text | Media | Thought | ToolCall | ToolResult | Opaque

OURS = "palaver-"  # how the ids begin that we gave to calls which came without one


def is_ours(call_id: str | None) -> bool:
    """Whether the service that made the call never saw this id."""
    return call_id is not None and call_id.startswith(OURS)
