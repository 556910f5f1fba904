"""A prompt told in plain words, no longer than there is room."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from models.talk import LOOK
from tertulia.models.local.encode import (
    AFTER_RESULT,
    EXAMPLES,
    INSTRUCTION,
    cut_middle,
    exchanges,
    text_length,
    text_prompt,
    with_one_call,
)
from tertulia.parts import Media, Opaque, Text, Thought, ToolCall, ToolResult
from tertulia.turns import Prompt, Settings, ToolSpec, Turn, model, user
from tertulia.wire.repair import CONTINUE

CALL = ToolCall(name="look", args={"place": "Lviv"}, id="a")
RESULT = ToolResult(name="look", id="a", value={"sky": "grey"})
WIDE = 10_000


def told(*turns: Turn | str, room: int = WIDE, tools: tuple[ToolSpec, ...] = ()) -> tuple[Turn, ...]:
    return text_prompt(Prompt.of(*turns, tools=tools, system="s"), room=room).turns


def test_without_an_instruction_there_is_a_short_one() -> None:
    assert text_prompt(Prompt.of("hi"), room=WIDE).instruction == INSTRUCTION
    assert text_prompt(Prompt.of("hi", system="Be kind."), room=WIDE).instruction == "Be kind."


def test_tools_are_told_as_forms_of_an_answer() -> None:
    remind = ToolSpec(
        name="remind",
        parameters={
            "type": "object",
            "properties": {
                "when": {"enum": ["now", "later"]},
                "what": {"type": "STRING", "description": "it"},
                "x": {},
            },
            "required": ["when"],
        },
    )

    told = text_prompt(Prompt.of("hi", system="Be kind.", tools=[LOOK, remind, ToolSpec(name="now")]), room=WIDE)

    assert told.tools == ()
    assert told.instruction.splitlines() == [
        "Be kind.",
        "",
        "Answer in JSON, in one of these forms:",
        '- Talk to the person: {"reply": string}',
        '- Looks at a place.: {"tool": "look", "args": {place: string}}',
        '- remind: {"tool": "remind", "args": {when: "now" | "later", what?: string (it), x?: any}}',
        '- now: {"tool": "now", "args": {}}',
    ]


def test_media_that_nothing_describes_are_told_as_not_seen() -> None:
    photo, voice = Media(media_kind="photo", unique_id="p"), Media(media_kind="voice", unique_id="v", seconds=5.0)
    known = [
        Media(media_kind="photo", unique_id="p", rendered_text="a cat"),
        Media(media_kind="sticker", unique_id="s", label="😀"),
        Media(media_kind="document", unique_id="d"),
    ]
    why = "has no description, and you read text only: say that you cannot"

    said = told(user(photo, voice, *known))[0].text, told("Draw.", model(photo))[1].text

    assert said == (
        "\n".join(
            [
                f"[photo]\n(This photo {why} see it.)",
                f"{voice.words}\n(This voice {why} hear it.)",
                *(one.words for one in known),
            ]
        ),
        "[photo]",
    )


def test_calls_and_results_are_told() -> None:
    failed = ToolResult(name="look", id="a", value="no light", failed=True)
    photo = Media(media_kind="photo", unique_id="p")

    turns = told(
        "Look!",
        model("So:", CALL),
        user(RESULT),
        model(CALL),
        user(failed, "and?"),
        model(CALL),
        user(ToolResult(name="look", id="a", value="this", media=(photo,))),
        tools=(LOOK,),
    )

    assert turns == (
        user("Look!"),
        model('So:\n{"tool":"look","args":{"place":"Lviv"}}'),
        user(f'The tool look answered: {{"sky":"grey"}}\n{AFTER_RESULT}'),
        model('{"tool":"look","args":{"place":"Lviv"}}'),
        user("The tool look failed: no light\nand?"),
        model('{"tool":"look","args":{"place":"Lviv"}}'),
        user(f"The tool look answered: this [photo]\n{AFTER_RESULT}"),
    )


def test_where_tools_are_offered_replies_are_told_as_the_model_wrote_them() -> None:
    turns = ("Hi!", model("Hello."), "Look!", model(CALL), user(RESULT), model("Grey."), "Again!")

    assert told(*turns, tools=(LOOK,)) == (
        user("Hi!"),
        model('{"reply":"Hello."}'),
        user("Look!"),
        model('{"tool":"look","args":{"place":"Lviv"}}'),
        user(f'The tool look answered: {{"sky":"grey"}}\n{AFTER_RESULT}'),
        model('{"reply":"Grey."}'),
        user("Again!"),
    )
    assert told(*turns) == (
        user("Hi!"),
        model("Hello."),
        user('Look!\nThe tool look answered: {"sky":"grey"}'),
        model("Grey."),
        user("Again!"),
    )


def test_where_no_tool_is_offered_calls_are_not_shown_to_be_copied() -> None:
    assert told("Look!", model(CALL), user(RESULT)) == (user('Look!\nThe tool look answered: {"sky":"grey"}'),)


def test_neighbours_of_one_role_are_one_turn_and_the_last_word_is_not_the_models() -> None:
    assert told("a", "b", model("c"), model(Thought(text="hm"), Opaque(raw={"x": 1})), model("d")) == (
        user("a\nb"),
        model("c\nd"),
        CONTINUE,
    )


def test_an_exchange_begins_with_what_a_person_says() -> None:
    one = [user("a"), model(CALL), user(RESULT), model("b")]
    two = [user("c"), model("d")]

    assert exchanges([*one, *two]) == [one, two]
    assert exchanges([model("b"), *two]) == [[model("b")], two]


@pytest.mark.parametrize(("text", "short"), [("abc", "abc"), ("a" * 10 + "b" * 10, "aaa … bbb")])
def test_a_long_text_loses_its_middle(text: str, short: str) -> None:
    assert cut_middle(text, 10) == short


def test_the_oldest_exchanges_are_left_out_whole() -> None:
    history = [turn for _ in range(50) for turn in (user("Look! " * 10), model(CALL), user(RESULT), model("Grey."))]

    turns = told(*history, "And now?", room=2000, tools=(LOOK,))

    assert 10 < len(turns) < 80
    assert turns[0].parts == (Text(text="Look! " * 10),)
    assert turns[-1] == user("And now?")


def test_what_is_left_begins_at_the_same_turn_for_a_while() -> None:
    history = [
        turn for number in range(60) for turn in (user(f"question {number} " * 3), model(f"answer {number} " * 3))
    ]

    beginnings = [told(*history[:end], room=1000)[0] for end in range(40, 120, 2)]

    assert len(set(beginnings)) < len(beginnings) / 2


def test_one_message_longer_than_all_room_is_cut() -> None:
    prompt = text_prompt(Prompt.of("x" * 100, "y" * 9000, system="z" * 9000), room=1000)

    assert text_length(prompt) <= 1000
    assert " … " in prompt.instruction
    assert "y … y" in str(prompt.turns)


@given(
    st.lists(st.tuples(st.sampled_from(["user", "model"]), st.text(min_size=1, max_size=200)), min_size=1, max_size=20),
    st.integers(300, 2000),
)
def test_it_never_takes_much_more_than_the_room(said: list[tuple[str, str]], room: int) -> None:
    turns = [user(text) if role == "user" else model(text) for role, text in said]

    prompt = text_prompt(Prompt.of(*turns, system="s"), room=room)

    newlines = len(said)
    assert text_length(prompt) <= room + newlines + len("Continue.")
    assert prompt.turns[-1].role == "user"


def test_a_model_of_one_call_is_to_speak_once_a_tool_has_answered() -> None:
    failed = ToolResult(name="look", id="a", value="no light", failed=True)
    answered = Prompt.of("Look!", model(CALL), user(RESULT), tools=[LOOK])
    again = Prompt.of("Look!", model(CALL), user(RESULT), model("Grey."), "Again!", tools=[LOOK])
    retry = Prompt.of("Look!", model(CALL), user(failed), tools=[LOOK])
    forced = Prompt.of("Look!", model(CALL), user(RESULT), tools=[LOOK], settings=Settings(tool_choice="any"))
    typed = replace(answered, settings=Settings(answer={"type": "integer"}))

    assert with_one_call(answered) == Prompt.of(*EXAMPLES, *answered.turns)
    assert with_one_call(typed) == replace(typed, tools=())
    assert [with_one_call(prompt) for prompt in (again, retry, forced)] == [again, retry, forced]


def test_examples_of_speaking_of_results_stand_before_the_last_exchange() -> None:
    prompt = Prompt.of("Hi!", model("Hello."), "Look!", model(CALL), user(RESULT), tools=[LOOK], system="s")

    assert text_prompt(with_one_call(prompt), room=WIDE) == Prompt.of(
        "Hi!",
        model("Hello."),
        'Who wrote the letter?\nThe tool look answered: {"author":"Ann","year":1912}',
        model("Ann wrote the letter in 1912."),
        "How tall is the tower?\nThe tool measure answered: 52 m",
        model("The tower is 52 m tall."),
        "How many apples are left in the basket?\nThe tool count answered: 52",
        model("The answer is 52."),
        'Look!\nThe tool look answered: {"sky":"grey"}',
        system="s",
    )


def test_examples_make_way_where_there_is_no_room() -> None:
    prompt = Prompt.of("Look! " * 40, model(CALL), user(RESULT), tools=[LOOK], system="s")

    assert text_prompt(with_one_call(prompt), room=300).turns == told("Look! " * 40, model(CALL), user(RESULT))
