"""Talks about one thing after another, for what happened in them."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from people import ALICE, BOB, NOON, a_message
from tertulia.messages import Author, Message

TRIP = (
    "We should book the train to Lviv for the weekend trip",
    "The night train to Lviv leaves Kyiv at 22:50",
    "Tickets cost 450 hryvnia each, I can buy four tickets",
    "Do we need a hotel near the Lviv railway station?",
    "A hotel near Rynok square in Lviv is nicer",
    "Then I book the hotel and you buy train tickets",
    "Great, the Lviv trip is settled, train on Friday",
    "Bring a warm jacket, Lviv weekend weather is cold",
)
GARDEN = (
    "My tomatoes finally have flowers in the garden",
    "Did you water the garden tomatoes every evening?",
    "Every evening, with compost around the roots",
    "Compost helps, but watch for slugs eating leaves",
    "Slugs hate crushed eggshells around tomato roots",
    "Eggshells never worked in my garden, beer traps did",
    "Beer traps for slugs, funny, I will try compost and beer",
    "Send a picture when the tomatoes are ripe",
)
UKRAINIAN = (
    "Купив новий велосипед, їздив на ньому вздовж Дніпра",
    "Який велосипед купив, гірський чи шосейний?",
    "Шосейний, легкий, рама карбонова, дуже швидкий",
    "Скільки коштує карбонова рама зараз?",
    "Рама дорога, але велосипед уживаний, тому дешевше",
    "Треба разом поїхати велосипедами до Вишгорода",
    "До Вишгорода дорога погана, краще вздовж Дніпра",
    "Домовились, у суботу велосипедами вздовж Дніпра",
)


def a_said(
    texts: Iterable[str],
    *,
    start: int = 0,
    at: datetime = NOON,
    apart: float = 30.0,
    authors: tuple[Author, ...] = (ALICE, BOB),
    **changes: Any,
) -> list[Message]:
    """A message for each text, by the authors in turn, *apart* seconds from each other."""
    return [
        a_message(
            text,
            id=str(number),
            author=authors[number % len(authors)],
            sent_at=at + timedelta(seconds=apart * (number - start)),
            **changes,
        )
        for number, text in enumerate(texts, start)
    ]
