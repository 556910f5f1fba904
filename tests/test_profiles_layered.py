import json
import math
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins
from msgspec.structs import replace

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
    texts,
)
from tertulia.context.values import Context, Persona, RecalledEpisode, RelevantMessage, Workspace
from tertulia.messages import Message, Place
from tertulia.parts import Media, Part, Text, ToolCall, ToolResult
from tertulia.profiles import Build, layered, tail
from tertulia.prompt.media_markers import markers_in
from tertulia.turns import Layer, Prompt, Turn, model, user


def layers_of(prompt: Prompt) -> dict[str, Layer]:
    return {layer.name: layer for layer in prompt.layers}


def known_in(prompt: Prompt) -> dict[str, object]:
    (turn,) = layers_of(prompt)["dynamic"].turns
    found: dict[str, object] = json.loads("".join(texts(turn.parts)))
    return found


@pytest.mark.parametrize("count", [0, 1, 16, 17, 399, 400])
def test_the_order_is_static_dynamic_buffered_trigger(count: int) -> None:
    prompt = layered(a_context(window=tuple(a_talk(count))))

    assert [layer.name for layer in prompt.layers] == ["static", "dynamic", "buffered", "trigger"]


def test_the_order_of_tail_is_static_buffered_dynamic_trigger() -> None:
    prompt = tail(a_context(window=tuple(a_talk(3))))

    assert [layer.name for layer in prompt.layers] == ["static", "buffered", "dynamic", "trigger"]


def test_the_static_layer_says_what_the_operator_says() -> None:
    persona = Persona(
        name="gryag", text="You are gryag.", role="A doorman.", rules="Be short.", procedure="Think.", notes="No lists."
    )

    instruction = layered(a_context(persona=persona)).instruction

    assert instruction.startswith(
        "# Persona\nYou are gryag.\n\n# Role\nA doorman.\n\n# Rules\nBe short.\n\n# Procedure\nThink.\n\n"
        "# Notes\nNo lists.\n\n# Conversation\n"
    )


def test_the_dynamic_layer_is_json_in_a_fixed_order() -> None:
    context = a_context(
        a_message(reply_to=a_quote("hi")),
        zone="Europe/Kyiv",
        workspace=Workspace(file_references=("a.txt",), artifacts=({"id": 1},), todos=("buy milk",)),
        memories=("Lives in Kyiv",),
        summary="A developer.",
        key_facts={"Job": "Developer"},
        relevant=(RelevantMessage(text="coffee", score=0.82),),
        episodes=(RecalledEpisode(topic="First", summary="They met"),),
    )

    assert list(known_in(layered(context)).items()) == [
        ("file_references", ["a.txt"]),
        ("artifacts", [{"id": 1}]),
        ("todos", ["buy milk"]),
        ("current_datetime", "2025-01-15T14:00:00+02:00"),
        ("current_author", {"name": "Alice", "id": "u123", "username": "alice_ua"}),
        ("quote", {"message_id": "m0", "author": "Bob (u456)", "text": "hi"}),
        ("memories", ["Lives in Kyiv"]),
        ("profile", "A developer."),
        ("key_facts", {"Job": "Developer"}),
        ("relevant", [{"relevance": 0.82, "text": "coffee"}]),
        ("episodes", [{"topic": "First", "summary": "They met"}]),
        ("mark", DELIMITER),
    ]


def test_what_is_empty_is_not_in_the_dynamic_layer() -> None:
    assert list(known_in(layered(a_context(delimiter="")))) == [
        "file_references",
        "artifacts",
        "todos",
        "current_datetime",
        "current_author",
    ]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=10,
)


@given(st.text(), st.lists(anything, max_size=3), st.text(), st.text())
def test_the_dynamic_layer_parses_for_every_input(name: str, files: list[object], memory: str, said: str) -> None:
    context = a_context(
        a_message(author=replace(ALICE, name=name), reply_to=a_quote(said)),
        workspace=Workspace(file_references=tuple(files)),
        memories=(memory,),
        key_facts={said: memory},
    )

    for profile in (layered, tail):
        assert "current_datetime" in known_in(profile(context))


def test_in_groups_others_speak_behind_headers() -> None:
    window = (a_message("hi", id="1", author=BOB), a_message("Yes?", id="2", author=GRYAG))

    prompt = layered(a_context(window=window))

    assert layers_of(prompt)["buffered"].turns == (
        user("From: Bob (u456) — id: 1 — 2025-01-15 12:00", "hi"),
        model("Yes?"),
    )
    assert layers_of(prompt)["trigger"].turns == (user("From: Alice (u123) — id: m1 — 2025-01-15 12:00", "hello"),)


@pytest.mark.parametrize("profile", [layered, tail])
def test_in_direct_chats_there_is_no_header(profile: object) -> None:
    talk = tuple(a_talk(40, place=DIRECT, authors=(ALICE, GRYAG)))
    context = a_context(a_message(place=DIRECT), window=talk)

    prompt = profile(context)  # type: ignore[operator]

    assert not any("From:" in text for turn in prompt.turns for text in texts(turn.parts))


def test_old_turns_are_told_in_the_static_layer() -> None:
    window = tuple(a_talk(17))

    layers = layers_of(layered(a_context(window=window)))

    (told,) = layers["static"].turns
    assert (told.role, len(told.parts), len(layers["buffered"].turns)) == ("user", 13, 4)
    assert texts(told.parts)[:2] == [
        f"[#{DELIMITER}] From: Alice (u123) — id: 0 — 2025-01-15 11:43\nmessage number 0",
        f"[#{DELIMITER}] You\nmessage number 1",
    ]


def test_what_the_agent_did_is_told_with_what_it_said() -> None:
    done = (
        model(ToolCall(name="look", args={"at": "sky"}, id="a")),
        user(ToolResult(name="look", value="blue", id="a")),
        model("It is blue."),
    )
    window = (a_message("It is blue.", id="0", author=GRYAG), *a_talk(20)[1:])

    layers = layers_of(layered(a_context(window=window, turns={"0": done})))

    assert texts(layers["static"].turns[0].parts)[0] == (
        f'[#{DELIMITER}] You\n(called look with {{"at":"sky"}}) (look answered: blue) It is blue.'
    )


def test_what_is_told_is_what_the_agent_did_in_this_context() -> None:
    window = (a_message("It is blue.", id="0", author=GRYAG), *a_talk(20)[1:])
    turns = [
        {"0": (model(ToolCall(name=name, id="a")), user(ToolResult(name=name, value=1, id="a")))} for name in "xyx"
    ]

    first, other, again = (
        texts(layers_of(layered(a_context(window=window, turns=done)))["static"].turns[0].parts)[0] for done in turns
    )

    assert (first, other) == (
        f"[#{DELIMITER}] You\n(called x with {{}}) (x answered: 1) It is blue.",
        f"[#{DELIMITER}] You\n(called y with {{}}) (y answered: 1) It is blue.",
    )
    assert again == first


@pytest.mark.parametrize("profile", [layered, tail])
@pytest.mark.parametrize("place", [GROUP, DIRECT])
def test_media_that_are_replied_to_say_whose_they_are(profile: Build, place: Place) -> None:
    target = a_message("ok?", place=place, reply_to=a_quote(parts=(a_photo(),)))

    trigger = layers_of(profile(a_context(target)))["trigger"].turns[0]

    assert trigger.parts[-3:] == (Text(text="ok?"), Text(text="[replied to: Bob (u456)]"), a_photo())


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((Text(text="look"), a_photo()), "look"),
        ((a_photo(), a_photo()), "[Image x2]"),
        ((a_photo(rendered_text="a cat"),), "[photo described: a cat]"),
        ((a_photo(rendered_text="x" * 2_000),), f"[photo described: {'x' * 1_982}]…"),
        ((Text(text="x" * 2_000),), "x" * 2_000),
        ((Text(text="x" * 2_001),), "x" * 2_000 + "…"),
    ],
)
def test_the_quote_is_its_words(parts: tuple[Part, ...], text: str) -> None:
    known = known_in(tail(a_context(a_message(reply_to=a_quote(parts=parts)))))

    assert known["quote"] == {"message_id": "m0", "author": "Bob (u456)", "text": text}


def test_nothing_that_says_nothing_is_in_the_dynamic_layer() -> None:
    context = a_context(
        delimiter="",
        memories=("", "\u200b"),
        summary=" ",
        key_facts={"": ""},
        relevant=(RelevantMessage(text="", score=1),),
        episodes=(RecalledEpisode(topic="", summary=" "),),
    )
    some = a_context(
        relevant=(RelevantMessage(text="tea", score=math.nan),),
        episodes=(RecalledEpisode(topic="", summary="They met"),),
    )

    assert known_in(tail(context)) == known_in(tail(a_context(delimiter="")))
    assert [known_in(tail(some))[key] for key in ("relevant", "episodes")] == [
        [{"relevance": 0.0, "text": "tea"}],
        [{"summary": "They met"}],
    ]


def test_media_that_are_told_are_words() -> None:
    window = (a_message("", id="0", parts=(a_photo(rendered_text="a cat"),)), *a_talk(20)[1:])

    layers = layers_of(layered(a_context(window=window)))

    assert texts(layers["static"].turns[0].parts)[0].endswith("\n[photo described: a cat]")


def contexts(messages: list[Message], place: Place) -> list[Context]:
    """The contexts of a conversation as it goes on: each message of others in turn is the target."""
    return [
        a_context(message, place=place, window=tuple(messages[:number]), now=NOON + timedelta(minutes=number))
        for number, message in enumerate(messages)
        if message.author != GRYAG
    ]


def test_media_without_words_are_the_same_in_the_buffer_and_in_the_static_layer() -> None:
    photo, poll = Media(media_kind="photo", unique_id="AQAD"), Media(media_kind="poll", unique_id="p")
    quote = a_quote("", parts=(photo,), message_id="m-gone")
    message = a_message(id="m1", parts=(Text(text="look"), photo, poll), reply_to=quote)

    prompt = layered(a_context(window=(message, *a_talk(30))))

    assert "\nlook [photo] [poll]\n[replied to: Bob (u456)] [photo]" in layers_of(prompt)["static"].turns[0].text
    assert markers_in(prompt) >= {"[photo]", "[poll]"}


@pytest.mark.parametrize("place", [GROUP, DIRECT])
def test_what_was_promoted_stays_byte_for_byte(place: Place) -> None:
    talk = a_talk(120, place=place)

    told = [layers_of(layered(context))["static"] for context in contexts(talk, place)]

    assert len({layer.instruction for layer in told}) == 1
    parts = [layer.turns[0].parts if layer.turns else () for layer in told]
    assert all(after[: len(before)] == before for before, after in pairwise(parts))
    assert sum(before != after for before, after in pairwise(parts)) == 8


@pytest.mark.parametrize("profile", [layered, tail])
@pytest.mark.parametrize("place", [GROUP, DIRECT])
def test_no_message_is_sent_twice_and_none_is_lost(profile: object, place: Place) -> None:
    talk = a_talk(60, place=place)

    for context in contexts(talk, place):
        prompt = profile(context)  # type: ignore[operator]
        said = [text.rpartition("\n")[2] for turn in prompt.turns for text in texts(turn.parts)]
        numbers = [text for text in said if text.startswith("message number")]
        assert numbers == [f"message number {n}" for n in range(int(context.target.id) + 1)]


@pytest.mark.parametrize(
    "changes",
    [
        {"now": NOON + timedelta(seconds=1)},
        {"memories": ("new",)},
        {"relevant": (RelevantMessage(text="b", score=0.1), RelevantMessage(text="a", score=0.2))},
        {"workspace": Workspace(todos=("new",))},
    ],
    ids=["clock", "memory", "recall", "workspace"],
)
def test_what_changes_leaves_the_stable_layers_alone(changes: dict[str, object]) -> None:
    context = a_context(
        window=tuple(a_talk(40)), relevant=(RelevantMessage(text="a", score=0.2), RelevantMessage(text="b", score=0.1))
    )
    changed = replace(context, **changes)

    stable = [layers_of(layered(one))["static"] for one in (context, changed)]
    stable_too = [tail(one).layers[:2] for one in (context, changed)]

    assert stable[0] == stable[1]
    assert stable_too[0] == stable_too[1]


def test_the_same_history_is_the_same_turns() -> None:
    context = a_context(window=tuple(a_talk(40)), persona=PERSONA)

    first, second = layers_of(layered(context)), layers_of(layered(context))

    assert first["static"].turns[0] is second["static"].turns[0]


def test_an_edit_of_what_was_promoted_is_seen() -> None:
    talk = a_talk(40)
    layered(a_context(window=tuple(talk)))
    talk[3] = replace(talk[3], parts=(Text(text="edited"),))

    told = layers_of(layered(a_context(window=tuple(talk))))["static"].turns[0]

    assert texts(told.parts)[3].endswith("\nedited")


def an_agents_work(exchanges: int, size: int) -> Context:
    """An agent's talk with one person: each answer read a file of that *size* with a tool."""
    window, turns = list[Message](), dict[str, tuple[Turn, ...]]()
    for number in range(exchanges):
        window.append(a_message(f"read {number}", id=f"q{number}", place=DIRECT))
        window.append(a_message(f"I have read {number}.", id=f"a{number}", place=DIRECT, author=GRYAG))
        call = ToolCall(id=f"c{number}", name="read", args={"file": number})
        result = ToolResult(id=f"c{number}", name="read", value=f"<{number}> " + "some words " * (size // 11))
        turns[f"a{number}"] = (model(call), user(result), model(f"I have read {number}."))
    return a_context(a_message("and now?", id="now", place=DIRECT), window=tuple(window), turns=turns, levels=False)


def test_large_results_leave_the_buffer_long_before_its_messages_are_too_many() -> None:
    prompts = [layered(an_agents_work(exchanges, 36_000)) for exchanges in range(1, 40)]

    sent = [len(json.dumps(to_builtins(layer)).encode()) for prompt in prompts for layer in prompt.layers[1:]]
    assert max(sent) < 40_000  # the last answer with its result, never more
    assert all(any("read" in text for text in texts(prompt.layers[2].turns[-1].parts)) for prompt in prompts)


@pytest.mark.parametrize("size", [0, 400, 4_000, 36_000])
def test_the_static_layer_grows_at_its_end_alone_whatever_tools_return(size: int) -> None:
    told = [layered(an_agents_work(exchanges, size)).layers[0].turns for exchanges in range(1, 40)]

    parts = [turns[0].parts if turns else () for turns in told]
    assert all(after[: len(before)] == before for before, after in pairwise(parts))
    assert len({len(one) for one in parts}) <= {0: 6, 400: 6, 4_000: 14, 36_000: 40}[size]
