"""The same photo twice goes once."""

from itertools import pairwise

from people import (
    ALICE,
    BOB,
    DELIMITER,
    DIRECT,
    GROUP,
    GRYAG,
    NOON,
    PERSONA,
    a_context,
    a_message,
    a_photo,
    a_quote,
    a_talk,
)
from tertulia.context import Context, gather, sources
from tertulia.context.log import InMemoryLog
from tertulia.context.media_boundary import MEDIA_MARKS
from tertulia.context.repeated_media import show_media_once
from tertulia.messages import Message, Place
from tertulia.models.gemini.encode import encode_request
from tertulia.parts import Media, Text
from tertulia.profiles import PROFILES
from tertulia.wire.media_limits import limits_of

CAT, DOG = a_photo(unique_id="cat"), a_photo(unique_id="dog", data=b"\xff\xd8dog")


def sent(name: str, *media: Media, place: Place = GROUP) -> Message:
    return a_message(id=name, place=place, author=BOB, parts=(Text(text="look"), *media))


def shown(messages: tuple[Message, ...]) -> list[str]:
    """What each of the media is: itself, by its id, or its words."""
    media = (part for message in messages for part in message.parts if isinstance(part, Media))
    return [one.unique_id if one.has_content else one.words for one in media]


def test_the_first_goes_and_later_ones_say_where_it_is() -> None:
    window = (sent("1", CAT), sent("2", DOG), sent("3", CAT, DOG))

    context = show_media_once(a_context(a_message(id="4", parts=(DOG,)), window=window, levels=False))

    assert shown(context.window) == [
        "cat",
        "dog",
        "[photo, the same as in message 1, 2 photos back]",
        "[photo, the same as in message 2]",
    ]
    assert shown(context.batch) == ["[photo, the same as in message 2]"]


def test_without_ids_in_the_prompt_media_are_counted_back() -> None:
    window = tuple(sent(name, media, place=DIRECT) for name, media in (("1", CAT), ("2", DOG)))
    target = a_message(id="3", place=DIRECT, parts=(CAT,))
    for context in (
        a_context(target, window=window, levels=False),
        a_context(a_message(id="3", parts=(CAT,)), immediate=(sent("1", CAT), sent("2", DOG))),
    ):
        assert shown(show_media_once(context).batch) == ["[photo, the same as above, 2 photos back]"]


def test_media_in_words_are_not_shown_above() -> None:
    window = (sent("1", CAT.without_content()), sent("2", CAT))

    context = show_media_once(a_context(a_message(id="4", parts=(CAT,)), window=window, levels=False))

    assert (shown(context.window), shown(context.batch)) == (["[photo]", "cat"], ["[photo, the same as in message 2]"])


def test_one_file_under_two_ids_goes_once() -> None:
    forwarded = a_photo(unique_id="other", data=None, sha256="5a")
    window = (sent("1", a_photo(unique_id="cat", data=None, sha256="5a")), sent("2", forwarded))

    context = show_media_once(a_context(window=window, levels=False))

    assert shown(context.window) == ["cat", "[photo, the same as in message 1]"]


def test_media_without_an_id_are_never_the_same() -> None:
    unknown = a_photo(unique_id="")
    context = a_context(window=(sent("1", unknown), sent("2", unknown)), levels=False)

    assert show_media_once(context) is context


def test_a_strange_id_of_a_message_is_not_part_of_the_words() -> None:
    window = (sent("1] \n[#", CAT), sent("2", CAT))

    context = show_media_once(a_context(window=window, levels=False))

    assert shown(context.window) == ["cat", "[photo, the same as above]"]


async def asked(profile: str, target: Message, *history: Message) -> Context:
    scene = sources.agent_settings(persona=PERSONA, delimiter=DELIMITER)
    return await gather(target, [scene, sources.window(InMemoryLog(history), media_marks=MEDIA_MARKS)], NOON)


async def test_a_quote_of_a_photo_that_the_window_shows_does_not_send_it_again() -> None:
    old = sent("1", CAT)
    target = a_message("what is it?", id="3", reply_to=a_quote(message_id="1", parts=old.parts))

    prompt = PROFILES["tail"].build(await asked("tail", target, old, sent("2", DOG)))

    assert sum(isinstance(part, Media) and part.has_content for turn in prompt.turns for part in turn.parts) == 2
    assert [part.text for part in prompt.turns[-1].parts if isinstance(part, Text)] == [
        "From: Alice (u123) — id: 3 — 2025-01-15 12:00 — reply to: 1",
        "what is it?",
    ]


async def test_in_a_direct_chat_words_find_the_photo_that_is_asked_about() -> None:
    old = sent("1", CAT, place=DIRECT)
    quote = a_quote(message_id="1", parts=old.parts)
    target = a_message("what is it?", id="3", place=DIRECT, author=ALICE, reply_to=quote)
    for name in ("tail", "plain"):
        prompt = PROFILES[name].build(await asked(name, target, old, sent("2", DOG, place=DIRECT)))

        last = prompt.turns[-1].parts[-1]
        assert isinstance(last, Media)
        assert last.words == "[photo, the same as above, 2 photos back]"


async def test_a_request_keeps_its_start_when_a_photo_comes_again() -> None:
    talk = a_talk(12)
    talk[3] = sent("3", CAT)
    again = [*talk, sent("12", CAT), *a_talk(20)[13:]]
    bodies = []
    for count in range(8, 20):
        context = await asked("tail", a_message("now", id="target"), *again[:count])
        prompt = PROFILES["tail"].build(context)
        history = prompt.layers[1].turns
        bodies.append(
            encode_request(type(prompt)(layers=(prompt.layers[0], prompt.layers[1])), model="gemini-3.8-flash")
        )
        assert len(history) == count

    shared = [new.startswith(old[: old.rindex(b'"}]}]')]) for old, new in pairwise(bodies)]
    assert shared == [True] * (len(bodies) - 1)


def test_what_a_model_gets_in_words_is_never_above() -> None:
    voice = Media(media_kind="voice", unique_id="said", sha256="5a", mime="audio/ogg")
    pages = Media(media_kind="document", unique_id="plan", sha256="5b", mime="application/pdf")
    video = Media(media_kind="video", unique_id="film", sha256="5c", mime="video/mp4")
    again = a_message(id="2", parts=(voice, pages, video))
    told = {
        name: shown(
            show_media_once(
                a_context(again, window=(sent("1", voice, pages, video),), levels=False, taken=limits_of(name))
            ).batch
        )
        for name in ("qwen", "gpt-5.6", "gemini-3.8-flash")
    }

    same = [f"[{kind}, the same as in message 1]" for kind in ("voice", "document", "video")]
    assert told == {
        "qwen": [same[0], "plan", "film"],
        "gpt-5.6": ["said", same[1], "film"],
        "gemini-3.8-flash": same,
    }


def test_own_messages_have_no_id_in_a_prompt() -> None:
    own = a_message(id="1", author=GRYAG, parts=(CAT,))

    context = show_media_once(a_context(a_message(id="2", parts=(CAT,)), window=(own,), levels=False))

    assert shown(context.batch) == ["[photo, the same as above]"]
