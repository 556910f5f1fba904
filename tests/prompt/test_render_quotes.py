"""A reply in a prompt shows the message it quotes, or the words of that: also in the history."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from people import (
    ALICE,
    BOB,
    DELIMITER,
    DIRECT,
    GROUP,
    GRYAG,
    NOON,
    a_context,
    a_message,
    a_photo,
    a_quote,
    a_talk,
    texts,
)
from sizes import EXAMPLES, size
from tertulia.context.budget import BRIEF_LENGTH
from tertulia.context.gather import InMemoryKnowledge, SourceInputs, gather
from tertulia.context.log import InMemoryLog
from tertulia.messages import Message, Place, Quote
from tertulia.parts import Media, Text
from tertulia.profiles import PROFILES, headers, layered, plain, tail
from tertulia.prompt.render import shorten
from tertulia.turns import Prompt, Turn, user

HEADER = "From: Alice (u123) — id: 9 — 2025-01-15 12:00 — reply to: m0"
LABEL = "[replied to: Bob (u456)]"
TELLING = ("layered", "tail", "headers", "plain")  # the profiles that tell what their history replies to


def in_history(quote: Quote, place: Place = GROUP) -> Message:
    return a_message("yes", id="9", reply_to=quote, place=place)


def history(prompt: Prompt) -> tuple[Turn, ...]:
    return next(layer.turns for layer in prompt.layers if layer.name == "buffered")


SHOWN = [
    (a_quote("see you at 5"), ("see you at 5",)),
    (a_quote("see you at 5, Bob", excerpt="at 5"), ("at 5",)),
    (a_quote("x" * 3_000), ("x" * BRIEF_LENGTH + "…",)),
    (a_quote("look", parts=(Text(text="look"), a_photo(rendered_text="a cat"))), ("look", "[photo described: a cat]")),
    (a_quote("", parts=(a_photo(),)), ("[photo present uid=p1]",)),
    (a_quote("[replied to: Eve] [photo]"), ("(replied to: Eve) (photo)",)),
]


@pytest.mark.parametrize(("quote", "told"), SHOWN)
def test_headers_tell_in_brief_what_a_message_of_the_history_replies_to(quote: Quote, told: tuple[str, ...]) -> None:
    reply = in_history(quote)

    assert history(headers(a_context(window=(reply,)))) == (user(HEADER, "yes", LABEL, *told),)
    marked = (LABEL, quote.excerpt) if quote.excerpt else ()
    assert history(headers(a_context(window=(a_message(id="m0"), reply))))[1:] == (user(HEADER, "yes", *marked),)


MARKED = a_quote(parts=(Text(text="see you at 5, Bob"), a_photo()), excerpt="at 5")


@pytest.mark.parametrize("place", [GROUP, DIRECT], ids=["group", "direct"])
@pytest.mark.parametrize("profile", PROFILES)
def test_a_marked_passage_is_shown_also_where_the_message_is(profile: str, place: Place) -> None:
    quoted = a_message(id="m0", author=BOB, place=place, parts=MARKED.parts)
    target = a_message("why?", id="9", place=place, reply_to=MARKED)
    context = a_context(target, window=(quoted,), levels=False)

    prompt = PROFILES[profile].build(context)

    said = "\n".join([prompt.instruction, *(text for turn in prompt.turns for text in texts(turn.parts))])
    assert said.replace("see you at 5, Bob", "").count("at 5") == (2 if profile == "block" else 1)
    assert sum(isinstance(part, Media) for turn in prompt.turns for part in turn.parts) <= 1


@pytest.mark.parametrize("profile", TELLING)
def test_so_it_is_in_the_history_unless_the_message_was_deleted(profile: str) -> None:
    quoted = a_message(id="m0", author=BOB, parts=MARKED.parts)

    def told(*window: Message) -> list[str]:
        turn = history(PROFILES[profile].build(a_context(window=window, levels=False)))[-1]
        return [text for text in texts(turn.parts) if not text.startswith("From")]

    mark = f"[#{DELIMITER}] " if profile == "plain" else ""
    assert told(quoted, in_history(MARKED)) == ["yes", f"{mark}{LABEL}", "at 5"]
    assert told(replace(quoted, deleted=True, parts=()), in_history(MARKED)) == ["yes"]


def test_plain_tells_it_behind_the_mark_of_the_place() -> None:
    window = (in_history(a_quote(f"see [#{DELIMITER}] you")),)

    (turn,) = history(plain(a_context(window=window)))

    assert turn == user("yes", f"[#{DELIMITER}] {LABEL}", "see [#······] you")


@pytest.mark.parametrize("profile", [layered, tail])
def test_a_direct_chat_tells_it_without_a_header(profile: object) -> None:
    window = (in_history(a_quote("see you at 5"), DIRECT),)

    (turn,) = history(profile(a_context(a_message(place=DIRECT), window=window)))  # type: ignore[operator]

    assert turn == user("yes", LABEL, "see you at 5")


def test_old_turns_of_the_static_layer_tell_it_on_a_line_of_its_own() -> None:
    photo = a_photo(rendered_text="a cat")
    replies = [a_message("yes", id="0", reply_to=a_quote("look\n[meta]", parts=(Text(text="look\n[meta]"), photo)))]

    told = layered(a_context(window=(*replies, *a_talk(40)[1:]))).layers[0].turns[0]

    assert texts(told.parts)[0] == (
        f"[#{DELIMITER}] From: Alice (u123) — id: 0 — 2025-01-15 12:00 — reply to: m0\nyes\n"
        f"{LABEL} look\n(meta) [photo described: a cat]"
    )


CUT = [
    ('look [photo "a.jpg" described: a cat] x', 40, 'look [photo "a.jpg" described: a cat] x'),
    ('look [photo "a.jpg" described: a cat] x', 33, 'look [photo "a.jpg" described: a ]'),
    ('look [photo "a.jpg" described: a cat] x', 22, 'look [photo "a.jpg" de]'),
    ('look [photo "a.jpg" described: a cat] x', 15, 'look [photo "a."]'),
    ("look [voice of 12 seconds]", 18, "look [voice of 12 ]"),
    ("look [voice of reason]", 18, "look [voice of rea"),
]


@pytest.mark.parametrize(("text", "most", "left"), CUT)
def test_a_marker_that_is_cut_is_still_one(text: str, most: int, left: str) -> None:
    assert shorten(text, most) == left


def test_media_that_are_quoted_go_without_their_content() -> None:
    window = (in_history(a_quote("", parts=(a_photo(uri="https://e.test/x"),))),)

    (turn,) = history(tail(a_context(window=window)))

    assert turn.parts[-1] == Media(media_kind="photo", unique_id="p1", mime="image/jpeg")


def test_what_the_agent_said_stays_as_it_said_it() -> None:
    own = a_message("Yes.", id="9", author=GRYAG, reply_to=a_quote("old"))

    for profile in TELLING:
        assert "old" not in repr(PROFILES[profile].build(a_context(window=(a_message(id="1"), own))).turns)


def test_the_words_of_a_message_that_was_deleted_are_not_told() -> None:
    gone = a_message("secret", id="m0", deleted=True)

    for profile in TELLING:
        assert "secret" not in repr(PROFILES[profile].build(a_context(window=(gone, in_history(a_quote("secret"))))))


@pytest.mark.parametrize("profile", ["layered", "tail", "plain", "native"])
def test_every_quote_of_a_batch_is_told(profile: str) -> None:
    first = a_message("this", id="1", reply_to=a_quote("first words", message_id="x1"))
    target = a_message("that", id="2", reply_to=a_quote("second words", message_id="x2"))

    prompt = PROFILES[profile].build(a_context(target, earlier=(first,)))

    said = prompt.instruction + "\n".join(text for turn in prompt.turns for text in texts(turn.parts))
    assert (said.count("first words"), said.count("second words")) == (1, 1)


def test_what_was_told_is_the_same_turn_again() -> None:
    window = (in_history(a_quote("old")),)

    first, second = (history(tail(a_context(window=window))) for _ in range(2))

    assert first[0] is second[0]
    edited = (replace(window[0], reply_to=a_quote("new")),)
    assert texts(history(tail(a_context(window=edited)))[0].parts)[-1] == "new"


@pytest.mark.parametrize("profile", TELLING)
@given(
    replies=st.lists(st.integers(-3, 20), min_size=1, max_size=21),
    cut=st.integers(0, 20),
    deleted=st.sets(st.integers(0, 19), max_size=3),
    place=st.sampled_from([GROUP, DIRECT]),
)
@settings(max_examples=size(30, full=EXAMPLES))
def test_every_reply_shows_its_quoted_message_or_its_words(
    profile: str, replies: list[int], cut: int, deleted: set[int], place: Place
) -> None:
    talk: list[Message] = []
    for number, to in enumerate(replies):
        author = (ALICE, GRYAG, BOB)[number % 3] if number < len(replies) - 1 else ALICE
        quoted = a_quote(f"words{to}words", message_id=str(to)) if to < number else None
        if quoted and to >= 0 and (number == len(replies) - 1 or to < cut):
            quoted = quoted.update_from(talk[to])  # as `gather` does where the message is not in the window
        gone = number in deleted and number < len(replies) - 1
        text = f"words{number}words"
        talk.append(a_message(text, id=str(number), author=author, reply_to=quoted, place=place, deleted=gone))
    window = tuple(talk[min(cut, len(talk) - 1) : -1])

    prompt = PROFILES[profile].build(a_context(talk[-1], window=window))

    said = "\n".join(text for turn in prompt.turns for text in texts(turn.parts))
    hidden = {one.id for one in talk if one.deleted}
    shown = [one for one in (*window, talk[-1]) if not one.deleted and not one.author.persona]
    for quote in (one.reply_to for one in shown if one.reply_to):
        assert (f"words{quote.message_id}words" in said) == (quote.message_id not in hidden), quote


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_deleted_target_is_not_shown(profile: str) -> None:
    gone = a_message("the secret", id="2", deleted=True, reply_to=a_quote("the old secret"))
    log = InMemoryLog([a_message("hi", id="1"), gone])
    inputs = SourceInputs(log=log, memory=InMemoryKnowledge())

    prompt = PROFILES[profile].build(await gather(gone, PROFILES[profile].sources(inputs), NOON))

    assert "secret" not in str(prompt)
    assert prompt.turns[-1].role == "user"


@pytest.mark.parametrize("profile", PROFILES)
def test_a_reply_to_itself_is_a_message_without_a_quote(profile: str) -> None:
    itself = a_message("hm, hm", id="1", reply_to=a_quote("hm, hm", message_id="1"))

    assert itself == a_message("hm, hm", id="1")
    prompt = PROFILES[profile].build(a_context(itself))
    said = prompt.instruction + str(prompt.turns)
    assert said.count("hm, hm") == (2 if profile == "block" else 1)  # a line, and the turn behind it
