from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from strategies import GEMINI_MODELS, OPENAI_MODELS, histories, plausible
from tertulia.errors import ContextTooLong, RequestRefused, ResponseUnreadable, TertuliaError
from tertulia.models.gemini import encode as gemini
from tertulia.models.openai import encode as openai
from tertulia.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from tertulia.run import fallbacks
from tertulia.run.fallbacks import FALLBACKS, Fallback, next_prompt
from tertulia.turns import Layer, Prompt, Turn, model, user
from tertulia.wire import lint
from tertulia.wire.repair import repair_prompt
from tertulia.wire.rules import PLACEHOLDER_SIGNATURE
from tertulia.wire.signatures import Wire

MAKER = "gemini-3.8-flash"
CALL = ToolCall(name="look", args={"place": "Kyiv"}, id="a", signature="c2ln", raw={"functionCall": {}})
BARE = ToolCall(name="look", args={"place": "Kyiv"}, id="a")
HELD = replace(BARE, signature=PLACEHOLDER_SIGNATURE)
RESULT = ToolResult(name="look", id="a", value={"seen": "[meta] Bob:\nhi"})
SIGNED = Text(text="Green.", signature="c2ln")
OPAQUE = Opaque(raw={"executableCode": {}})
PHOTO = Media(media_kind="photo", unique_id="p", data=b"p", mime="image/png")


def by(*parts: Part | str) -> Turn:
    return model(*parts, by=MAKER)


CHANGED: list[tuple[str, Fallback, list[Turn], list[Turn] | None]] = [
    ("neighbours", fallbacks.regroup, [user("a"), user("b"), by("c"), by("d"), user("e")],
     [user("a", "b"), by("c", "d"), user("e")]),
    ("results apart", fallbacks.regroup, [user("a"), by(BARE, BARE), user(RESULT), user(RESULT), user("e")],
     [user("a"), by(BARE, BARE), user(RESULT, RESULT), user("e")]),
    ("two makers", fallbacks.regroup, [by("a"), model("b", by="gpt-5.6"), user("e")], None),
    ("open and closed", fallbacks.placeholders,
     [user("a"), by(CALL), user(RESULT), by(SIGNED), user("e"), by(Thought(text="", signature="x"), SIGNED, CALL)],
     [user("a"), by(HELD), user(RESULT), by(SIGNED), user("e"), by(Text(text="Green."), HELD)]),
    ("nothing signed", fallbacks.placeholders, [user("a"), by(BARE), user(RESULT), by(HELD), user(RESULT)], None),
    ("closed only", fallbacks.drop_signatures,
     [user("a"), by(OPAQUE, CALL), user(RESULT), by(SIGNED), by(Text(text="", signature="x")), user("e"), by(CALL)],
     [user("a"), by(BARE), user(RESULT), by(Text(text="Green.")), user("e"), by(CALL)]),
    ("nothing closed", fallbacks.drop_signatures, [user("e"), by(CALL), user(RESULT)], None),
    ("old calls", fallbacks.flatten,
     [user("a"), by("I look.", CALL), user(RESULT), by(SIGNED), user("e"), by(CALL), user(RESULT)],
     [user("a"), by("I look."),
      user('(You called look with {"place":"Kyiv"}; it answered: {"seen":"(meta) Bob:\\nhi"})'),
      by(SIGNED), user("e"), by(CALL), user(RESULT)]),
    ("only a call", fallbacks.flatten,
     [user("a"), by(BARE), user(ToolResult(name="look", id="a", value="no", failed=True, media=(PHOTO,))), user("e")],
     [user("a"), user('(You called look with {"place":"Kyiv"}; it failed: "no" [photo])'), user("e")]),
    ("a long result", fallbacks.flatten, [user(ToolResult(name="look", value="x" * 999)), user("e")],
     [user(f'(You called look; it answered: "{"x" * 299}…)'), user("e")]),
    ("photos", fallbacks.without_media,
     [user(PHOTO, "a"), by(BARE), user(replace(RESULT, media=(PHOTO,))), user("e")],
     [user("[photo]", "a"), by(BARE), user(replace(RESULT, media=(PHOTO.without_content(),))), user("e")]),
    ("no photos", fallbacks.without_media, [user(PHOTO.without_content(), "a"), by(CALL), user(RESULT)], None),
    ("old photos", fallbacks.without_old_media,
     [user(PHOTO, "a"), by("b"), user(PHOTO, "e"), by(BARE), user(replace(RESULT, media=(PHOTO,)))],
     [user("[photo]", "a"), by("b"), user(PHOTO, "e"), by(BARE), user(replace(RESULT, media=(PHOTO,)))]),
    ("no old photos", fallbacks.without_old_media, [user(PHOTO, "e")], None),
    ("by exchanges", fallbacks.shorten,
     [user("a"), by(CALL), user(RESULT), by("b"), user("c"), by("d"), user("e"), by(CALL), user(RESULT)],
     [user("c"), by("d"), user("e"), by(CALL), user(RESULT)]),
    ("no history", fallbacks.shorten, [user("e", "f"), by(CALL), user(RESULT)], None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("fallback", "turns", "expected"), [row[1:] for row in CHANGED], ids=[row[0] for row in CHANGED]
)
def test_a_fallback_changes_what_it_is_for(fallback: Fallback, turns: list[Turn], expected: list[Turn] | None) -> None:
    made = fallback(Prompt.of(*turns, system="s"))

    assert made == (None if expected is None else Prompt.of(*expected, system="s"))


def test_of_the_static_layer_whole_messages_are_left_out_and_of_the_trigger_none() -> None:
    told = user(*(f"message {number}" for number in range(10)))
    layers = (
        Layer(name="static", instruction="s", turns=(told,)),
        Layer(name="dynamic", turns=(user("it is noon"),)),
        Layer(name="trigger", turns=(user("quoted"), user("e"))),
    )

    made = fallbacks.shorten(Prompt(layers=layers))

    assert made == Prompt(layers=(replace(layers[0], turns=(replace(told, parts=told.parts[5:]),)), *layers[1:]))


def tried_with(prompt: Prompt, trouble: TertuliaError) -> list[tuple[str, Prompt]]:
    found: list[tuple[str, Prompt]] = []
    while following := next_prompt(prompt, trouble, [name for name, _ in found]):
        found.append(following)
        prompt = following[1]
    return found


TROUBLES: list[tuple[TertuliaError, tuple[str, ...]]] = [
    (ResponseUnreadable("?"), ("again", "regroup", "placeholder signatures", "drop closed signatures", "flatten",
                               "shorten", "shorten")),
    (RequestRefused("no"), ("regroup", "placeholder signatures", "drop closed signatures", "flatten", "shorten",
                            "shorten")),
    (ContextTooLong("long"), ("shorten", "shorten")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("trouble", "names"),
    [
        (RequestRefused("Gemini refused the request (400): Unable to process input image."), ("without media",)),
        (RequestRefused("the image data you provided does not represent a valid image"), ("without media",)),
        (RequestRefused("Request contains an invalid argument."), ("without any media",)),
        (ContextTooLong("too many tokens in images"), ("without media",)),
        (ResponseUnreadable("the image"), ("again",)),
    ],
)
def test_media_become_words_when_they_may_be_why_a_request_was_refused(trouble: TertuliaError, names: Any) -> None:
    found = tried_with(Prompt.of(user(PHOTO, "a")), trouble)

    assert tuple(name for name, _ in found) == names


@pytest.mark.parametrize(("trouble", "names"), TROUBLES)
def test_the_fallbacks_are_tried_in_order(trouble: TertuliaError, names: Any) -> None:
    said = [user("a"), user("b"), by(CALL), user(RESULT), by(SIGNED), *[user("c"), by("d" * 300)] * 2, user("e")]

    found = tried_with(Prompt.of(*said), trouble)

    assert tuple(name for name, _ in found) == names


def test_a_prompt_that_is_too_long_loses_old_media_then_all_media_then_history() -> None:
    said = [user(PHOTO, "a"), by("b"), user("c"), by("d" * 300), user(PHOTO, "e")]

    found = tried_with(Prompt.of(*said), ContextTooLong("long"))

    assert [name for name, _ in found][:3] == ["without old media", "without media", "shorten"]
    assert found[0][1].turns[-1] == said[-1]


def test_a_name_that_is_no_fallback_any_more_leaves_the_others() -> None:
    assert next_prompt(Prompt.of("a"), ResponseUnreadable("?"), ["once known"]) == ("again", Prompt.of("a"))


@given(st.one_of(plausible(GEMINI_MODELS), plausible(OPENAI_MODELS), histories(GEMINI_MODELS + OPENAI_MODELS)))
def test_every_fallback_is_legal_and_keeps_what_was_said_last(drawn: tuple[str, list[Turn]]) -> None:
    name, turns = drawn
    wire: Wire = "openai" if name in OPENAI_MODELS else "gemini"
    encode = openai.encode_request if wire == "openai" else gemini.encode_request
    prompt = Prompt.of(*turns, user("the last word"), system="s")

    found = [made for _, made in tried_with(prompt, ResponseUnreadable("?"))]

    assert len(found) <= len(FALLBACKS)
    for one in found:
        assert lint(encode(repair_prompt(one, name, wire=wire), model=name), model=name, strict=True) == []
        assert "the last word" in [part.text for part in one.turns[-1].parts if isinstance(part, Text)]
        assert one.instruction == "s"
