"""What somebody says in the first person is theirs; what they repeat of the agent's recollection is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from people import ALICE, BOB, GRYAG, a_message, a_photo, texts
from tertulia.memory.verify.statements import RecalledTexts, remove_echo
from tertulia.messages import Author

LONG = "I live in Lviv. I have worked at the port for ten years, and love it"
UKRAINIAN = "Я живу у Львові вже десять років, працюю в порту й дуже люблю своїх трьох котів"
RECALLED = RecalledTexts(
    texts=(
        "Lives in Lviv.",
        "Живе у Львові.",
        "I am vegan",
        "Works as a nurse; Loves sushi.",
        "Alice is a nurse who lives in Lviv. She has two cats.",
        "Lives in St. Petersburg.",
        "",
    ),
    names=("Alice", ""),
    messages=(
        a_message(LONG, author=BOB),
        a_message(UKRAINIAN, author=BOB),
        a_message("I have two cats", author=BOB),
        a_message("The ferry to Odesa leaves at ten every day, from the old pier", author=GRYAG),
    ),
)


@pytest.mark.parametrize(
    ("author", "text", "own"),
    [
        (ALICE, "I live in Lviv", "I live in Lviv"),
        (ALICE, "живу у Львові", "живу у Львові"),
        (ALICE, "I am vegan.", "I am vegan."),
        (ALICE, "I live in St. Petersburg.", "I live in St. Petersburg."),
        (ALICE, "my brother lives in Lviv", "my brother lives in Lviv"),
        (ALICE, "I have two cats", "I have two cats"),
        (BOB, "I live in Lviv", "I live in Lviv"),
        (BOB, "Bob lives in Lviv", "Bob lives in Lviv"),
        (BOB, LONG, LONG),
        (ALICE, "Lives in Lviv.", ""),
        (ALICE, "  lives in  LVIV!! ", ""),
        (ALICE, "She lives in Lviv", ""),
        (ALICE, "Живе у Львові", ""),
        (BOB, "Alice lives in Lviv", ""),
        (BOB, "Alice works as a nurse", ""),
        (BOB, "She is a nurse who lives in Lviv.", ""),
        (BOB, "Alice has two cats", ""),
        (ALICE, "Lives in Lviv. I love tea.\nLoves sushi.\nI hate olives", "I love tea.\n\nI hate olives"),
        (ALICE, LONG, ""),
        (ALICE, UKRAINIAN.upper(), ""),
        (ALICE, f"look: {LONG}! I live in Kyiv.", "look:  ! I live in Kyiv."),
        (BOB, "the ferry to Odesa leaves at ten every day - from the old pier. I'm there", ". I'm there"),
        (ALICE, "I live in Lviv. I have worked at the port", "I live in Lviv. I have worked at the port"),
    ],
)
def test_what_is_left_of_a_message(author: Author, text: str, own: str) -> None:
    (message,) = remove_echo([a_message(text, author=author)], RECALLED)

    assert [left.strip() for left in texts(message.parts)] == [own]


@given(st.text(max_size=80))
def test_where_nothing_was_recalled_all_is_their_own(text: str) -> None:
    message = a_message(parts=(*a_message(text).parts, a_photo()))

    assert remove_echo([message], RecalledTexts(texts=("",))) == remove_echo([message], RecalledTexts()) == [message]
