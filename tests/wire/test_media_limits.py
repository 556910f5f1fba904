from hypothesis import given
from hypothesis import strategies as st

from tertulia.media.sent_forms import media_tokens
from tertulia.parts import Media
from tertulia.wire.media_limits import limits_of, patch_scale

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
    photo = Media(media_kind="photo", unique_id="u1", sha256="00", width=width, height=height)

    assert 1 <= limits_of(model).seen_side(width, height) <= max(width, height)
    assert 0 < media_tokens(photo, limits_of(model)) <= 258 * 16 + 6000


@given(st.integers(1, 20_000), st.integers(1, 20_000))
def test_a_scaled_image_needs_no_more_patches_than_allowed(width: int, height: int) -> None:
    factor = patch_scale(width, height, most=1536)

    columns, rows = round(width * factor / 32, 6), round(height * factor / 32, 6)
    assert -(-columns // 1) * -(-rows // 1) <= 1536
