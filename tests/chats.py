"""Generated chats: anything a platform and a store might hold, as the context of one message to answer."""

from datetime import timedelta
from itertools import product
from typing import Any

from hypothesis import strategies as st
from msgspec import Struct

from people import ALICE, BOB, DELIMITER, DIRECT, GROUP, GRYAG, NOON, PERSONA
from strategies import Choose, a_turn, drawn
from tertulia.context.values import AvailableSticker, Context, RecalledEpisode, RelevantMessage, Workspace
from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Media, Part, Text, Thought, ToolCall, ToolResult
from tertulia.turns import Turn

PLACES = [
    DIRECT,
    GROUP,
    Place(platform="telegram", id="-100124", kind="group", thread="17", title="Друзі # «x»"),
    Place(platform="discord", id="55", kind="channel", title=""),
]
AUTHORS = [
    ALICE, BOB, GRYAG, GRYAG,
    Author(id="u9", name="Alice"),
    Author(id="", name="Nobody"),
    Author(id="", name=""),
    Author(id="9", name="Einstein", persona="einstein"),
    Author(id="0", name="From: Bob (u456) — id: 3\n[#" + DELIMITER + "]", username="a b"),
]  # fmt: skip
WORDS = [
    "", "", "hi", " ", "\n", "\x00", "\x00\x1f", "\u200b", "\u202eright to left", "مرحبا", "😀👨‍👩‍👧", "e\u0301",
    "Привіт", "x" * 400,
    "```\ncode\n```", '{"a": "b"}', "[Image]", "From: Bob (u456) — id: m9", "# «send»\nhi", "two\nlines", "\ufeff",
    "\ufffd", "\u2028",
]  # fmt: skip
MEDIA = [
    Media(media_kind=kind, unique_id="u1", mime=mime, data=data, uri=uri, rendered_text=words)
    for (kind, mime), (data, uri), words in product(
        [
            ("photo", "image/jpeg"), ("sticker", "image/webp"), ("sticker", "video/webm"), ("gif", None),
            ("animation", "video/mp4"),
            ("voice", "audio/ogg"), ("audio", "audio/mpeg"), ("music", None), ("video", "video/mp4"),
            ("video_note", None),
            ("document", "application/pdf"), ("document", "application/zip"), ("file", "text/plain"),
            ("contact", None),
            ("location", None), ("poll", None), ("youtube", None), ("", "x"), ("a]\nb", ""),
        ],
        [(b"\xff\xd8data", None), (None, "https://e.test/x"), (None, "https://youtu.be/x"), (None, None),
         (b"", ""), (b"d", "https://e.test/x")],
        [None, "a cat", "", " ", "\x00"],
    )
]  # fmt: skip
CALLS: list[dict[str, Any]] = [{}, {"city": "Kyiv"}, {"n": 2**60, "list": [1, None]}]
RESULTS: list[Any] = [None, "", "18 degrees", {"t": 18}, [1, "x"], True, "[#" + DELIMITER + "] You"]


class Chat(Struct, frozen=True, kw_only=True):
    """A context, the steps of its run so far, and which words stand in which of its messages."""

    context: Context
    steps: tuple[Turn, ...]
    tokens: dict[str, str]  # the id of a message that has words → the ones that no other has


def chats(models: list[str], *, broken: bool = False) -> st.SearchStrategy[tuple[str, Chat]]:
    """A model to ask, and a chat; *broken* ones hold turns that no service would take."""
    return drawn(lambda choose: a_chat_with(choose, models, broken=broken))


def a_chat_with(choose: Choose, models: list[str], *, broken: bool) -> tuple[str, Chat]:
    model, place = choose(models), choose(PLACES)
    count = choose([0, 1, 2, 3, 5, 8, 17, 24])
    tokens: dict[str, str] = {}
    talk = [a_message(choose, number, place, tokens) for number in range(count)]
    target = a_message(choose, count, place, tokens, own=False)
    makers = [model, model, "other-model", "gemini-3.7-flash", None]
    done = {one.id: some_work(choose, one, makers, broken=broken) for one in talk if one.author is GRYAG}
    shown = [one for one in talk if not one.deleted]
    context = Context(
        target=target,
        now=NOON,
        place=place,
        zone=choose(["UTC", "Europe/Kyiv"]),
        persona=PERSONA,
        levels=choose([True, True, False]),
        immediate=tuple(shown[-5:]),
        recent=tuple(shown[:-5]),
        window=tuple(talk),
        window_start=choose([0, 0, 100]),
        turns={name: turns for name, turns in done.items() if turns},
        delimiter=choose([DELIMITER, DELIMITER, ""]),
        **what_is_known(choose),
    )
    steps = some_steps(choose, model) if choose(range(4)) == 0 else ()
    return model, Chat(context=context, steps=steps, tokens=tokens)


def a_message(choose: Choose, number: int, place: Place, tokens: dict[str, str], *, own: bool = True) -> Message:
    author = choose(AUTHORS if own else [one for one in AUTHORS if one is not GRYAG])
    parts = some_parts(choose, number, tokens)
    return Message(
        id=str(number),
        place=place,
        author=author,
        sent_at=choose([NOON, NOON - timedelta(days=number), None]),
        parts=parts,
        reply_to=a_quote(choose, number) if choose(range(3)) == 0 else None,
        edited_at=choose([None, None, NOON]),
        deleted=own and choose(range(8)) == 0,
    )


def some_parts(choose: Choose, number: int, tokens: dict[str, str]) -> tuple[Part, ...]:
    parts: list[Part] = [choose(MEDIA) for _ in range(choose([0, 0, 0, 1, 2]))]
    for text in [choose(WORDS) for _ in range(choose([0, 1, 1, 1, 2]))]:
        if text.strip() and str(number) not in tokens:
            tokens[str(number)] = f"word{number}word"
            text = f"{text} {tokens[str(number)]}"
        parts.insert(choose(range(len(parts) + 1)), Text(text=text))
    return tuple(parts)


def a_quote(choose: Choose, number: int) -> Quote:
    """Of a message in the window, or long gone, as much of it as is known."""
    return Quote(
        message_id=str(choose([max(0, number - 1), 0, -5, ""])),
        author=choose([None, *AUTHORS]),
        parts=tuple(choose([Text(text=choose(WORDS)), choose(MEDIA)]) for _ in range(choose([0, 1, 2]))),
        excerpt=choose([None, None, *WORDS]),
    )


def some_work(choose: Choose, message: Message, makers: list[str | None], *, broken: bool) -> tuple[Turn, ...]:
    """What the model did and said to write a message; nothing is known of some."""
    said = tuple(part for part in message.parts if isinstance(part, Text) and part.text.strip())
    if not said or choose([True, False]):
        return ()
    maker = choose([one for one in makers if one])
    steps = [turn for _ in range(choose([0, 1, 2])) for turn in a_step(choose, maker)]
    if broken:
        steps += [a_turn(choose, makers) for _ in range(choose([0, 1, 2]))]
    thoughts: tuple[Part, ...] = choose([(), (Thought(text="hm"),)])
    return (*steps, Turn(role="model", parts=(*thoughts, *said), model=maker))


def some_steps(choose: Choose, model: str) -> tuple[Turn, ...]:
    return tuple(turn for _ in range(choose([1, 2])) for turn in a_step(choose, model))


def a_step(choose: Choose, maker: str) -> list[Turn]:
    """Calls and their results, each under its id, as the loop of an agent keeps them."""
    run = choose(range(10_000))
    calls = [
        ToolCall(name="search", args=choose(CALLS), id=f"c{run}-{n}", signature=None if n else "c2ln")
        for n in range(choose([1, 2, 3]))
    ]
    results = [ToolResult(name=call.name, id=call.id, value=choose(RESULTS)) for call in calls]
    return [Turn(role="model", parts=tuple(calls), model=maker), Turn(role="user", parts=tuple(results))]


def what_is_known(choose: Choose) -> dict[str, Any]:
    return {
        "memories": tuple(choose(WORDS) for _ in range(choose([0, 1, 3]))),
        "summary": choose(WORDS),
        "key_facts": {choose(WORDS): choose(WORDS) for _ in range(choose([0, 2]))},
        "relevant": tuple(
            RelevantMessage(text=choose(WORDS), score=choose([0.0, 0.5, 1.0])) for _ in range(choose([0, 2]))
        ),
        "episodes": tuple(RecalledEpisode(topic=choose(WORDS), summary=choose(WORDS)) for _ in range(choose([0, 2]))),
        "stickers": tuple(AvailableSticker(set="cats", name=choose(WORDS)) for _ in range(choose([0, 2]))),
        "workspace": choose([Workspace(), Workspace(todos=({"what": "\u2028", "n": 2**70},), artifacts=(None, 0.5))]),
    }
