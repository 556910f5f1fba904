import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.parts import Media
from palaver.tokens import ESTIMATOR
from palaver.wire.media_limits import DOCUMENT_TOKENS, limits_of, media_tokens, patch_scale

MODELS = (
    "gemini-2.0-flash",
    "gemini-2.5-pro",
    "gemini-3.8-flash",
    "gemini-4-pro",
    "gemma-3-27b-it",
    "gemini-2.5-flash-image",
    "gpt-4o",
    "gpt-4.1-mini",
    "gpt-5",
    "gpt-5.6",
    "gpt-audio",
    "o4-mini",
    "qwen",
    "openai/gpt-4o",
)


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
    assert media_tokens(a_photo(width=width, height=height), model) == tokens


def test_tokens_of_sound_and_video_are_by_the_second() -> None:
    voice = a_voice(seconds=9.5)
    video = a_photo(media_kind="video", seconds=10)

    assert media_tokens(voice, "gemini-3.8-flash") == 320
    assert media_tokens(voice, "gpt-audio") == 100
    assert media_tokens(video, "gemini-2.5-flash") == 2950
    assert media_tokens(video, "gemini-3.8-flash") == 1020


def test_seconds_that_nobody_told_are_guessed_from_the_bytes() -> None:
    assert media_tokens(a_voice(size=40_000), "gemini-3.8-flash") == 320
    assert media_tokens(a_voice(), "gemini-3.8-flash") == 60 * 32


def test_what_a_model_does_not_take_counts_as_words() -> None:
    refused = [
        (a_voice(seconds=3000), "gpt-5.6"),
        (a_photo(media_kind="video", seconds=3000), "gpt-4o"),
        (a_photo(width=5000, height=5000), "gpt-audio"),
    ]

    assert [media_tokens(*one) for one in refused] == [ESTIMATOR.text(media.words) for media, _ in refused]


def test_a_sticker_counts_as_a_picture_also_if_it_moves() -> None:
    moving = a_photo(media_kind="sticker", mime="application/x-tgsticker", width=512, height=512)

    assert media_tokens(moving, "gemini-3.8-flash") == 1120
    assert media_tokens(moving, "gpt-4o") == 255


def test_an_animation_counts_as_a_picture_for_models_without_video() -> None:
    animation = a_photo(media_kind="animation", mime="video/mp4", width=512, height=512, seconds=3)

    assert media_tokens(animation, "gpt-4o") == 255
    assert media_tokens(animation, "gemini-3.8-flash") == 306
    assert media_tokens(animation, "gpt-audio") == ESTIMATOR.text(animation.words)


def test_a_long_document_counts_no_more_than_its_beginning() -> None:
    book = a_photo(media_kind="document", mime="application/pdf", size=15_000_000)

    assert media_tokens(book, "gemini-3.8-flash") == DOCUMENT_TOKENS
    assert media_tokens(book, "qwen") < 10_000
    assert media_tokens(a_photo(media_kind="document", mime="application/pdf", size=300_000), "gemini-2.5-pro") == 774


def test_who_hears_and_who_sees_videos() -> None:
    found = {model: (limits_of(model).hears, limits_of(model).sees_video) for model in MODELS}

    assert {model for model, (hears, _) in found.items() if hears} == {
        "gemini-2.0-flash", "gemini-2.5-pro", "gemini-3.8-flash", "gemini-4-pro", "gpt-audio", "qwen",
    }  # fmt: skip
    assert {model for model, (_, sees) in found.items() if sees} == {
        "gemini-2.0-flash", "gemini-2.5-pro", "gemini-3.8-flash", "gemini-4-pro",
    }  # fmt: skip


def test_types_are_taken_in_any_spelling() -> None:
    assert limits_of("gemini-3.8-flash").takes("audio/ogg; codecs=opus")
    assert limits_of("gemini-3.8-flash").takes("text/x-python")
    assert limits_of("gpt-5.6").takes("image/JPG")
    assert limits_of("gpt-5.6").takes("application/pdf")
    assert not limits_of("openai/gpt-5.6").takes("application/pdf")
    assert not limits_of("gpt-5.6").takes("image/heic")
    assert not limits_of("gpt-audio").takes("audio/ogg")


def test_the_longest_side_is_what_the_service_sees() -> None:
    assert limits_of("gpt-4o").seen_side(4096, 2048) == 1536
    assert limits_of("gpt-4o").seen_side(600, 400) == 600
    assert limits_of("gemini-2.5-pro").seen_side(4000, 3000) == 3072
    assert limits_of("qwen").seen_side(9000, 3000) == 9000


@given(st.integers(1, 20_000), st.integers(1, 20_000), st.sampled_from(MODELS))
def test_an_image_is_never_made_larger_and_its_tokens_are_bounded(width: int, height: int, model: str) -> None:
    photo = a_photo(width=width, height=height)

    assert 1 <= limits_of(model).seen_side(width, height) <= max(width, height)
    assert 0 < media_tokens(photo, model) <= 258 * 16 + 6000


@given(st.integers(1, 20_000), st.integers(1, 20_000))
def test_a_scaled_image_needs_no_more_patches_than_allowed(width: int, height: int) -> None:
    factor = patch_scale(width, height, most=1536)

    columns, rows = round(width * factor / 32, 6), round(height * factor / 32, 6)
    assert -(-columns // 1) * -(-rows // 1) <= 1536
