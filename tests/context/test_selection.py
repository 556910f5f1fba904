import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from chats import AUTHORS, PLACES, WORDS
from people import ALICE, BOB, DIRECT, NOON, a_message, a_quote, a_talk
from tertulia.context import gather, sources
from tertulia.context.log import InMemoryLog
from tertulia.context.selection import select_messages
from tertulia.messages import Author, Message

CAROL = Author(id="u7", name="Олена Коваль", username="carol_k")
OTHERS = (BOB, Author(id="u8", name="Dan"))


def among(*said: Message, count: int = 100, **changes: object) -> list[Message]:
    """*said* first, then so many messages of others."""
    return [*said, *a_talk(count, authors=OTHERS)]


def found(before: list[Message], target: Message) -> set[str]:
    return {before[index].id for index in select_messages(before, target, most=35)}


def test_without_cues_it_is_the_newest() -> None:
    talk = a_talk(100)

    assert select_messages(talk, a_message("hello everybody"), most=35) == list(range(65, 100))


def test_a_short_history_is_shown_whole() -> None:
    assert select_messages(a_talk(7), a_message("Bob: hello"), most=35) == list(range(7))


def test_what_the_target_replies_to_is_shown_with_what_that_replies_to() -> None:
    root = a_message("root", id="root", author=CAROL)
    middle = a_message("middle", id="middle", author=CAROL, reply_to=a_quote(message_id="root"))
    before = among(root, *a_talk(9, authors=(CAROL,)), middle)
    before = [
        replace(message, id=f"{index}" if message.id.isdigit() else message.id) for index, message in enumerate(before)
    ]

    assert found(before, a_message("yes", reply_to=a_quote(message_id="middle", author=None))) == {
        "root",
        "9",
        "middle",
        "11",
        *(str(index) for index in range(80, 111)),
    }
    assert {"root", "middle"} <= found(before, a_message("yes", reply_to=a_quote(message_id="middle")))
    direct = replace(a_message("yes", reply_to=a_quote(message_id="middle")), place=DIRECT)
    assert {"root", "middle"} <= found(before, direct)


@pytest.mark.parametrize(
    "text",
    [
"Ол\u200bена\u00ad, ти тут?", "@carol\u2060_k hello",
        "Олена Коваль: так", "олена, ти тут?", "Олено, ти тут?", "@carol_k yes", "carol_k: yes", "yes @carol_k",
        "I think carol_k knows", "@Carol_K, thanks",
    ],
)  # fmt: skip
def test_whom_the_target_names_is_shown(text: str) -> None:
    before = among(a_message("the answer is 42", id="said", author=CAROL))

    assert "said" in found(before, a_message(text))


def test_what_was_said_to_the_author_is_shown() -> None:
    asked = a_message("Alice: which version do you have?", id="asked", author=CAROL)
    own = a_message("my screen is black", id="own", author=ALICE)

    assert {"asked", "own"} <= found(among(own, asked), a_message("version 5"))


def test_a_name_inside_another_word_is_nobody() -> None:
    before = among(a_message("old", id="old", author=Author(id="u5", name="Al")))

    assert "old" not in found(before, a_message("although"))


def test_those_named_do_not_crowd_out_the_newest() -> None:
    before = [*a_talk(200, authors=(CAROL,)), *a_talk(60, authors=OTHERS)]

    shown = select_messages(before, a_message("carol_k: hello"), most=35)

    assert shown[-20:] == list(range(240, 260))
    assert sum(index < 200 for index in shown) == 15


async def test_the_levels_are_chosen_so_and_stay_in_order() -> None:
    before = among(a_message("the answer is 42", id="said", author=CAROL), count=60)
    target = a_message("carol_k: really?", id="target")

    context = await gather(target, [sources.levels(InMemoryLog([*before, target]))], NOON)

    assert context.immediate == tuple(before[-5:])
    assert context.recent == (before[0], *before[-34:-5])


@given(
    st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(AUTHORS), st.integers(0, 80)), max_size=80),
    st.sampled_from(WORDS),
    st.sampled_from(PLACES),
    st.integers(0, 40),
)
def test_whatever_was_said_the_choice_is_in_order_and_has_the_newest(
    said: list[tuple[str, Author, int]], text: str, place: object, most: int
) -> None:
    before = [
        a_message(words, id=str(index), author=author, reply_to=a_quote(message_id=str(reply)) if reply % 3 else None)
        for index, (words, author, reply) in enumerate(said)
    ]
    target = a_message(text, place=place, reply_to=a_quote(message_id="1", author=None))

    shown = select_messages(before, target, most=most)

    assert shown == sorted(set(shown))
    assert len(shown) == min(most, len(before))
    assert set(range(max(0, len(before) - min(most, 20)), len(before))) <= set(shown)
    assert select_messages(before, target, most=most) == shown
