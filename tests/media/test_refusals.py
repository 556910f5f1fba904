"""Which media go in words after a service refused a request because of one of them."""

from datetime import timedelta

import pytest

from people import NOON
from tertulia.media.refusals import Refusals
from tertulia.parts import Media


def a_photo(name: str, mime: str = "image/jpeg", uri: str | None = None) -> tuple[Media, Media]:
    photo = Media(media_kind="photo", unique_id=name, sha256=name, mime="image/heic")
    return photo, Media(media_kind="photo", unique_id=name, data=None if uri else b"-", mime=mime, uri=uri)


FIVE = [a_photo(name) for name in "abcde"]  # the newest last


def attempts(refusals: Refusals, error: str, media: list[tuple[Media, Media]]) -> list[str]:
    found: list[str] = []
    while keys := refusals.attempt(len(found), error, media, "m"):
        found.append("".join(sorted(keys)))
    return found


@pytest.mark.parametrize(
    ("error", "media", "expected"),
    [
        ("Unable to process input image.", FIVE[:1], ["a"]),
        ("Unable to process input image.", FIVE, ["e", "d", "c", "abcde"]),
        ("Unsupported MIME type: image/webp", [*FIVE[:2], a_photo("w", "image/webp")], ["w", "abw"]),
        ("Unsupported MIME type: image/webp", FIVE[:2], ["b", "a", "ab"]),
        ("cannot fetch https://e.test/files/x-12345", [*FIVE, a_photo("u", uri="https://e.test/files/x-12345")],
         ["u", "abcdeu"]),
        ("the file x-12345 is broken", [*FIVE, a_photo("u", uri="https://e.test/files/x-12345")], ["u", "abcdeu"]),
        ("no", [], []),
    ],
)  # fmt: skip
def test_what_is_named_goes_first_else_the_newest_one_by_one(
    error: str, media: list[tuple[Media, Media]], expected: list[str]
) -> None:
    assert attempts(Refusals(now=lambda: NOON), error, media) == expected


def test_what_the_model_accepted_before_is_no_suspect() -> None:
    refusals = Refusals(now=lambda: NOON)
    refusals.accept("abce", "m")
    refusals.accept("d", "another")

    assert attempts(refusals, "bad image", FIVE) == ["d"]
    refusals.accept("d", "m")
    assert attempts(refusals, "bad image", FIVE) == ["e", "d", "c", "abcde"]


def test_media_that_were_refused_are_words_for_an_hour_and_for_that_model() -> None:
    now = NOON
    refusals = Refusals(now=lambda: now)
    refusals.add("ab", "m")

    assert (refusals.of("m"), refusals.of("another")) == ({"a", "b"}, set())
    now += timedelta(hours=1)
    assert refusals.of("m") == set()
