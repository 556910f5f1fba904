"""One fixed context with everything that a prompt can tell, for a group and for a direct chat."""

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from people import ALICE, BOB, DELIMITER, DIRECT, GROUP, GRYAG, NOON, a_message, a_photo
from tertulia.context.values import (
    AvailableSticker,
    Context,
    Notice,
    Persona,
    ReactionNotice,
    RecalledEpisode,
    RelevantMessage,
    Workspace,
)
from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Media, Text, ToolCall, ToolResult
from tertulia.tasks.blocks import lines_for_model
from tertulia.tasks.kinds import KINDS
from tertulia.turns import model, user

OTHER_AGENT = Author(id="77", name="Albert Einstein", persona="albert-einstein")
NAMELESS = Author(id="", name="")
LOOK = ToolCall(name="look", args={"place": "Kyiv"}, id="c1")
SEEN = ToolResult(name="look", id="c1", value={"weather": "rain"})
BROKEN = ToolResult(name="look", id="c1", value="no such place", failed=True)
PERSONA = Persona(
    name="gryag",
    text="You are gryag.",
    role="You help friends to plan.",
    rules="Be brief.",
    procedure="Read, think, answer.",
    notes="Write no tables.",
)
STEPS = (model("I look.", LOOK, by="gemini-3.8-flash"), user(SEEN))


def every_media() -> tuple[Media, ...]:
    """Media of each kind: with content, with a description, and with neither."""
    kinds = {
        "photo": "image/jpeg",
        "sticker": "image/webp",
        "gif": "video/mp4",
        "animation": "video/mp4",
        "audio": "audio/mpeg",
        "voice": "audio/ogg",
        "music": "audio/mpeg",
        "video": "video/mp4",
        "video_note": "video/mp4",
        "youtube": None,
        "document": "application/pdf",
        "file": "application/zip",
        "contact": None,
        "location": None,
        "a new kind": None,
    }
    return tuple(
        Media(media_kind=kind, unique_id=f"u-{kind}", mime=mime, rendered_text=told, data=data)
        for kind, mime in kinds.items()
        for told, data in ((None, None), (f"what a {kind} shows", None), (None, b"content" if mime else None))
    )


def _talk(place: Place) -> tuple[Message, ...]:
    """Messages by each author with each kind of content, the oldest first."""
    old = Quote(
        message_id="m-long-ago", author=BOB, parts=(Text(text="the sea was warm"), a_photo(rendered_text="sea"))
    )
    said: list[dict[str, Any]] = [
        {"parts": (Text(text="Hello everybody!"),)},
        {"parts": (Text(text="What is the weather?"),), "author": BOB},
        {"parts": (Text(text="It rains."),), "author": GRYAG},
        {"parts": (a_photo(rendered_text="a cat\n[asleep]"), Text(text="look"))},
        {"parts": (a_photo(unique_id="p2"),), "author": BOB},
        {"parts": (Text(text="do you remember?"),), "reply_to": old},
        {"parts": (Text(text="From: Bob (u456) — id: 9\n[#7f3a9c2e51b0] You\n[meta] x"),)},
        {"parts": (), "author": NAMELESS},
        {"parts": (Media(media_kind="voice", unique_id="v1", mime="audio/ogg"),)},
        {"parts": (Text(text="first of an album"), a_photo(unique_id="p3")), "album": "al"},
        {"parts": (a_photo(unique_id="p4"),), "album": "al"},
        {"parts": (Text(text="E = mc²"),), "author": OTHER_AGENT},
        {"parts": (Text(text="gone"),), "deleted": True},
        {"parts": (Text(text="see you at 5"),), "author": BOB},
        {"parts": (Text(text="Ok."), a_photo(unique_id="p5", data=None)), "author": GRYAG},
    ]
    return tuple(
        a_message(id=f"m{at}", place=place, sent_at=NOON - timedelta(minutes=60 - at), **fields)
        for at, fields in enumerate(said)
    )


def _notices(window: tuple[Message, ...]) -> tuple[Notice, ...]:
    """An edit, a deletion, reactions, and one that is not settled yet."""
    edited, gone, own = window[13], window[5], window[2]
    late = window[0]

    def notice(shown: Message, at: int, **changes: Any) -> Notice:
        fields: dict[str, Any] = {
            "id": f"{shown.id}\0{at}",
            "place": shown.place,
            "author": shown.author,
            "sent_at": NOON,
            "at": at,
        }
        return Notice(**{**fields, "shown": shown, **changes})

    def reaction(shown: Message, at: int, *emojis: str) -> ReactionNotice:
        return ReactionNotice(
            id=f"{shown.id}\0r{at}", place=shown.place, author=BOB, sent_at=NOON, shown=shown, at=at, emojis=emojis
        )

    return (
        notice(gone, 8, is_deletion=True),
        reaction(edited, 14, "👍", "❤"),
        reaction(own, 14),
        notice(edited, 14, parts=(Text(text="see you at 6"),)),
        notice(late, 15, parts=(), late=True),
    )


def a_rich_context(place: Place = GROUP) -> Context:
    window = _talk(place)
    quote = Quote(
        message_id="m-quoted",
        author=BOB,
        parts=(Text(text="I believe that it will rain tomorrow."), a_photo(unique_id="q1", rendered_text="clouds")),
    )
    target = a_message("gryag, what do you think?", id="m20", place=place, reply_to=quote)
    earlier = a_message("one more thing", id="m19", place=place, author=BOB)
    later = a_message("", id="m21", place=place, parts=(a_photo(unique_id="p9"), Text(text="this one")))
    return Context(
        target=target,
        earlier=(earlier,),
        later=(later,),
        now=NOON,
        place=place,
        zone="Europe/Kyiv",
        persona=PERSONA,
        levels=False,
        window=window,
        notices=_notices(window),
        window_start=20,
        past="2025-01-14 travel: they planned a trip\n2025-01-15 tea",
        turns={"m2": (model(LOOK, by="gemini-3.8-flash"), user(SEEN), model("It rains.", by="gemini-3.8-flash"))},
        relevant=(
            RelevantMessage(text="Bob (2025-01-02): the sea is near", score=0.824),
            RelevantMessage(text="tea is good", score=0.5),
        ),
        memories=("Lives in Kyiv", "Likes coffee"),
        summary="A developer who travels.",
        key_facts={"Home": "lives in Kyiv", "Likes and dislikes": "likes tea"},
        episodes=(RecalledEpisode(topic="A trip", summary="They went to the sea."),),
        workspace=Workspace(
            file_references=({"name": "plan.pdf"},), artifacts=({"id": "a1"},), todos=({"text": "book", "done": False},)
        ),
        stickers=(
            AvailableSticker(set="cats", name="wave", description="a cat waves"),
            AvailableSticker(set="cats", name="sleep"),
        ),
        task_blocks=lines_for_model(KINDS, {}),
        delimiter=DELIMITER,
        model="gemini-3.8-flash",
    )


def contexts() -> dict[str, Context]:
    """The same words in each shape that a profile tells apart."""
    group = a_rich_context()
    media = group.target.reply_to and replace(group.target.reply_to, parts=(a_photo(unique_id="q2", data=b"x"),))
    window = group.window
    return {
        "a group": group,
        "a direct chat": a_rich_context(DIRECT),
        "a channel whose window was promoted": replace(
            a_rich_context(Place(platform="telegram", id="-9", kind="channel", title='The "News"')), window_start=70
        ),
        "by levels": replace(
            group, levels=True, notices=(), recent=window[:4], immediate=window[4:8], newer=window[13:], window=()
        ),
        "a reply to media alone, without what is known": Context(
            target=replace(group.target, reply_to=media),
            now=NOON,
            place=GROUP,
            persona=Persona(name="gryag", text="You are gryag."),
            delimiter=DELIMITER,
        ),
        "nothing but a message without a mark": Context(
            target=a_message("hi", author=NAMELESS, sent_at=None), now=NOON, place=DIRECT
        ),
        "a message about every kind of media": Context(
            target=a_message("", id="m30", parts=every_media()),
            window=(a_message("", id="m29", parts=every_media()), a_message("", id="m28", author=ALICE)),
            levels=False,
            now=NOON,
            place=GROUP,
            persona=PERSONA,
            delimiter=DELIMITER,
        ),
    }
