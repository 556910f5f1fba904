"""In which form media go to each model, and what they count."""

import pytest
from msgspec.structs import replace

from tertulia.media.sent_forms import DOCUMENT_CHARACTERS, media_tokens, sent_as
from tertulia.models.base import Model, media_taken
from tertulia.models.gemini.client import Gemini
from tertulia.models.openai.client import OpenAI
from tertulia.parts import Media
from tertulia.tokens import ESTIMATOR
from tertulia.wire.media_limits import limits_of


def a_photo(**changes: object) -> Media:
    return Media(**{"media_kind": "photo", "unique_id": "u1", "sha256": "00", **changes})  # type: ignore[arg-type]


def a_voice(**changes: object) -> Media:
    return a_photo(**{"media_kind": "voice", "mime": "audio/ogg", **changes})


@pytest.mark.parametrize(
    ("model", "width", "height", "tokens"),
    [
        # ai.google.dev, "Understand and count tokens": 258 within 384 pixels, else 258 for each tile of 768
        ("gemini-2.5-flash", 384, 384, 258),
        ("gemini-2.5-flash", 385, 100, 258),
        ("gemini-2.0-flash", 960, 540, 516),
        ("gemini-2.5-flash", 1000, 1000, 4 * 258),
        ("gemini-2.5-flash", 6144, 6144, 16 * 258),
        # ai.google.dev, "Media resolution": 1120 whatever its pixels
        ("gemini-3.8-flash", 100, 100, 1120),
        ("gemini-3.8-flash", 4000, 3000, 1120),
        # platform.openai.com, "Images and vision": the examples of the page
        ("gpt-4o", 1024, 1024, 765),
        ("gpt-4o", 2048, 4096, 1105),
        ("gpt-4.1", 1024, 1024, 765),
        ("gpt-4o-mini", 1024, 1024, 2833 + 4 * 5667),
        ("gpt-5", 1024, 1024, 70 + 4 * 140),
        ("gpt-5-chat-latest", 1024, 1024, 70 + 4 * 140),
        ("o3", 1024, 1024, 75 + 4 * 150),
        ("o4-mini", 1024, 1024, 1762),  # 1024 patches, 1.72 each
        ("gpt-4.1-mini", 1800, 2400, 2353),  # 1452 patches, 1.62 each
        ("gpt-4.1-nano", 1024, 1024, 2520),
        ("gpt-5-mini", 1024, 1024, 1659),
        ("gpt-5.6", 1600, 1600, 3000),  # 50 × 50 patches, 1.2 each
        ("openai/gpt-4o", 1024, 1024, 765),
    ],
)
def test_tokens_of_an_image_follow_the_rule_of_the_model(model: str, width: int, height: int, tokens: int) -> None:
    assert media_tokens(a_photo(width=width, height=height), limits_of(model)) == tokens


def test_tokens_of_sound_and_video_are_by_the_second() -> None:
    voice = a_voice(seconds=9.5)
    video = a_photo(media_kind="video", seconds=10)

    assert media_tokens(voice, limits_of("gemini-3.8-flash")) == 320
    assert media_tokens(voice, limits_of("gpt-audio")) == 100
    assert media_tokens(video, limits_of("gemini-2.5-flash")) == 2950
    assert media_tokens(video, limits_of("gemini-3.8-flash")) == 1020


def test_seconds_that_nobody_told_are_guessed_from_the_bytes() -> None:
    assert media_tokens(a_voice(size=40_000), limits_of("gemini-3.8-flash")) == 320
    assert media_tokens(a_voice(), limits_of("gemini-3.8-flash")) == 60 * 32


def test_what_a_model_does_not_take_counts_as_words() -> None:
    refused = [
        (a_voice(seconds=3000), "gpt-5.6"),
        (a_photo(media_kind="video", seconds=3000), "gpt-audio"),
        (a_photo(width=5000, height=5000), "gpt-audio"),
    ]

    assert [media_tokens(media, limits_of(model)) for media, model in refused] == [
        ESTIMATOR.text(media.words) for media, _ in refused
    ]


def test_a_sticker_counts_as_a_picture_also_if_it_moves() -> None:
    moving = a_photo(media_kind="sticker", mime="application/x-tgsticker", width=512, height=512)

    assert media_tokens(moving, limits_of("gemini-3.8-flash")) == 1120
    assert media_tokens(moving, limits_of("gpt-4o")) == 255


def test_an_animation_counts_as_a_picture_for_models_without_video() -> None:
    animation = a_photo(media_kind="animation", mime="video/mp4", width=512, height=512, seconds=3)

    assert media_tokens(animation, limits_of("gpt-4o")) == 255
    assert media_tokens(animation, limits_of("gemini-3.8-flash")) == 306
    assert media_tokens(animation, limits_of("gpt-audio")) == ESTIMATOR.text(animation.words)


def test_a_video_counts_as_a_still_for_models_without_video_and_no_more_than_what_is_shown() -> None:
    video = a_photo(media_kind="video", mime="video/mp4", width=512, height=512, seconds=3 * 3600)

    assert media_tokens(video, limits_of("gpt-4o")) == 255
    assert media_tokens(video, limits_of("gemini-3.8-flash")) == 300 * 102
    assert media_tokens(video, limits_of("gemini-2.5-flash")) == 120 * 295


def test_a_video_of_youtube_counts_as_long_as_it_is_shown() -> None:
    video = Media(media_kind="youtube", unique_id="youtube:x", uri="https://www.youtube.com/watch?v=x")

    assert media_tokens(video, limits_of("gemini-3.8-flash")) == 300 * 102
    assert media_tokens(replace(video, seconds=20), limits_of("gemini-3.8-flash")) == 20 * 102
    assert media_tokens(video, limits_of("gpt-5.6")) == ESTIMATOR.text(video.words)


def test_a_long_sound_counts_what_is_left_of_it_in_another_format() -> None:
    voice = a_voice(seconds=3 * 3600)

    assert media_tokens(voice, limits_of("gpt-audio")) == 1200 * 10
    assert media_tokens(voice, limits_of("gemini-3.8-flash")) == 3 * 3600 * 32


def a_document(**changes: object) -> Media:
    return a_photo(**{"media_kind": "document", "mime": "application/pdf", **changes})


def test_a_long_document_counts_no_more_than_its_beginning() -> None:
    book = a_document(size=15_000_000)

    assert media_tokens(book, limits_of("gemini-3.8-flash")) == DOCUMENT_CHARACTERS // 3
    assert media_tokens(book, limits_of("qwen")) == DOCUMENT_CHARACTERS // 3
    assert media_tokens(a_document(size=300_000), limits_of("gemini-2.5-pro")) == 774


def test_pages_that_are_known_decide() -> None:
    short, long = a_document(size=300_000, pages=30), a_document(size=300_000, pages=36)

    assert [media_tokens(one, limits_of("gemini-3.8-flash")) for one in (short, long)] == [16_800, 6_666]
    assert [sent_as(one, limits_of("gemini-3.8-flash")) for one in (short, long)] == ["document", "text"]


def test_what_a_model_made_goes_back_as_it_was_or_in_words() -> None:
    drawn, sound = a_photo(mime="image/png"), a_voice(mime="audio/amr")

    assert [sent_as(one, limits_of("gemini-3.8-flash"), "model") for one in (drawn, sound)] == ["picture", "words"]
    assert sent_as(drawn, limits_of("gpt-5.6"), "model") == "words"


def test_a_client_may_take_less_than_its_model() -> None:
    photo, video = a_photo(), a_photo(media_kind="video")
    clients: list[Model] = [
        Gemini("gemini-3.8-flash"),
        OpenAI("google/gemini-3.8-flash", vendor="openrouter"),
        OpenAI("deepseek-chat", vendor="deepseek"),
    ]

    assert [(sent_as(photo, media_taken(one)), sent_as(video, media_taken(one))) for one in clients] == [
        ("picture", "video"),
        ("picture", "picture"),
        ("words", "words"),
    ]
