"""A transcriber against the simulator: what is said, and each refusal as our error."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from models.stub import answer, answering
from tertulia import errors
from tertulia.models.openai.transcription import MAX_FORM, Transcriber
from tertulia.parts import Media
from tertulia.sim import openai as sims
from tertulia.sim.openai import OpenAISim

OGG = b"OggS" + bytes(range(256)) + b"\r\n--x\r\n"
VOICE = Media(media_kind="voice", unique_id="v1", mime="audio/ogg; codecs=opus", data=OGG, seconds=3)


@pytest.fixture
async def sim() -> AsyncIterator[OpenAISim]:
    async with OpenAISim(transcribe=lambda data: f"  Bring milk. {data == OGG}\n") as running:
        yield running


@pytest.fixture
async def whisper(sim: OpenAISim) -> AsyncIterator[Transcriber]:
    async with Transcriber("whisper-1", key="k", base_url=sim.url) as connected:
        yield connected


async def test_a_voice_becomes_its_words(sim: OpenAISim, whisper: Transcriber) -> None:
    assert await whisper(VOICE) == "Bring milk. True"

    [received] = sim.requests
    assert (received.method, received.path, received.status) == ("POST", "/v1/audio/transcriptions", 200)
    assert 'filename="sound.ogg"' in received.body
    assert 'name="language"' not in received.body


@pytest.mark.parametrize(("tag", "sent"), [("uk", "uk"), ("pt-BR", "pt"), ("EN_us", "en"), ("xx9", ""), ("", "")])
async def test_a_language_is_a_hint_where_it_has_two_letters(
    sim: OpenAISim, whisper: Transcriber, tag: str, sent: str
) -> None:
    await whisper(VOICE, language=tag)

    assert ('name="language"\r\n\r\n' + sent in sim.requests[0].body) is bool(sent)


async def test_the_kind_says_the_format_where_the_type_does_not(sim: OpenAISim, whisper: Transcriber) -> None:
    await whisper(replace(VOICE, mime=None))

    assert 'filename="sound.ogg"\r\nContent-Type: audio/ogg' in sim.requests[0].body


UNTAKEN = [
    (replace(VOICE, mime="audio/midi"), "audio/midi is no sound that a service transcribes"),
    (replace(VOICE, mime=None, media_kind="photo"), "photo is no sound that a service transcribes"),
    (replace(VOICE, data=None), "the sound has no bytes: fetch it first"),
    (replace(VOICE, data=b"x" * MAX_FORM), "the sound has 26,214,400 bytes; services take 25 MB"),
]


@pytest.mark.parametrize(("media", "why"), UNTAKEN)
async def test_what_no_service_takes_is_not_sent(sim: OpenAISim, whisper: Transcriber, media: Media, why: str) -> None:
    with pytest.raises(errors.InvalidValue) as raised:
        await whisper(media)

    assert (str(raised.value), sim.requests) == (why, [])


async def test_a_refusal_says_what_the_service_says(sim: OpenAISim) -> None:
    formats = "['flac', 'm4a', 'mp3', 'mp4', 'mpeg', 'mpga', 'oga', 'ogg', 'wav', 'webm']"
    async with Transcriber("whisper-1", key="k", base_url=sim.url) as whisper:
        with pytest.raises(errors.RequestRefused) as raised:
            await whisper(replace(VOICE, data=b"no sound"))
    assert str(raised.value) == (
        f"the service refused the request (400): Invalid file format. Supported formats: {formats}"
    )

    async with Transcriber("whisper-9", key="k", base_url=sim.url) as unknown:
        with pytest.raises(errors.ModelUnknown):
            await unknown(VOICE)
    async with Transcriber("whisper-1", key="bad", base_url=sim.url) as refused:
        with pytest.raises(errors.KeyRefused):
            await refused(VOICE)


FAULTS = [
    (sims.RateLimited(7.0), errors.RateLimited),
    (sims.Quota(), errors.QuotaExhausted),
    (sims.Overloaded(), errors.Overloaded),
    (sims.Internal(), errors.ServiceFault),
]


@pytest.mark.parametrize(("fault", "kind"), FAULTS)
async def test_a_fault_is_the_error_that_a_chat_would_have(
    sim: OpenAISim, whisper: Transcriber, fault: Any, kind: type[Exception]
) -> None:
    sim.fail(fault)

    with pytest.raises(kind):
        await whisper(VOICE)


@pytest.mark.parametrize("body", [b"[]", b'{"text": 3}', b"{}"])
async def test_an_answer_without_a_text_is_unreadable(body: bytes) -> None:
    async with (
        answering(answer(body)) as stub,
        Transcriber("whisper-1", key="k", base_url=stub.url) as whisper,
    ):
        with pytest.raises(errors.ResponseUnreadable, match="whisper-1 answered without a text"):
            await whisper(VOICE)


async def test_a_service_that_needs_a_key_says_which() -> None:
    with pytest.raises(errors.KeyMissing, match="set OPENAI_API_KEY, or pass key= to Transcriber"):
        await Transcriber("whisper-1")(VOICE)


async def test_a_vendor_has_its_address_and_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GROQ_API_KEY", raising=False)

    with pytest.raises(errors.KeyMissing, match="set GROQ_API_KEY"):
        await Transcriber("whisper-large-v3", vendor="groq")(VOICE)
