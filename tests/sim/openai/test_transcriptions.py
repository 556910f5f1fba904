"""Transcriptions of the simulator, asked by the real OpenAI client and by hand."""

from typing import Any

import httpx2
import openai
import pytest

from tertulia.sim.openai import OpenAISim

OGG = b"OggS" + bytes(200)
FORMATS = "['flac', 'm4a', 'mp3', 'mp4', 'mpeg', 'mpga', 'oga', 'ogg', 'wav', 'webm']"


def a_file(name: str = "voice.ogg", data: bytes = OGG) -> Any:
    return (name, data)


async def test_the_real_client_transcribes(client: openai.AsyncOpenAI) -> None:
    transcript = await client.audio.transcriptions.create(model="whisper-1", file=a_file(), language="uk")
    verbose = await client.audio.transcriptions.create(model="whisper-1", file=a_file(), response_format="verbose_json")
    text = await client.audio.transcriptions.create(model="gpt-4o-transcribe", file=a_file(), response_format="text")

    assert transcript.text == verbose.text == "You hear 204 bytes of sound."
    assert (verbose.duration, text) == (1.0, "You hear 204 bytes of sound.\n")


REFUSED: list[tuple[dict[str, Any], str, type[openai.APIStatusError]]] = [
    ({"file": a_file("voice.txt")}, f"Invalid file format. Supported formats: {FORMATS}", openai.BadRequestError),
    ({"file": a_file(data=b"text")}, f"Invalid file format. Supported formats: {FORMATS}", openai.BadRequestError),
    ({"language": "en-US"}, "Invalid language 'en-US'.", openai.BadRequestError),
    ({"model": "gpt-4o"}, "The model `gpt-4o` does not exist", openai.NotFoundError),
    ({"model": "whisper-9"}, "The model `whisper-9` does not exist", openai.NotFoundError),
    ({"model": ""}, "you must provide a model parameter", openai.BadRequestError),
    (
        {"model": "gpt-4o-transcribe", "response_format": "srt"},
        "response_format 'srt' is not compatible with model 'gpt-4o-transcribe'.",
        openai.BadRequestError,
    ),
    ({"extra_body": {"speed": "2"}}, "Unrecognized request argument supplied: speed", openai.BadRequestError),
]


@pytest.mark.parametrize(("changes", "says", "kind"), REFUSED)
async def test_a_refusal_is_the_error_that_the_client_knows(
    client: openai.AsyncOpenAI, changes: dict[str, Any], says: str, kind: type[openai.APIStatusError]
) -> None:
    with pytest.raises(kind) as raised:
        await client.audio.transcriptions.create(**{"model": "whisper-1", "file": a_file(), **changes})

    assert says in str(raised.value)


async def test_a_form_is_needed_with_a_file_that_is_not_too_large(sim: OpenAISim) -> None:
    url, headers = f"{sim.url}/audio/transcriptions", {"authorization": "Bearer key"}
    async with httpx2.AsyncClient(headers=headers) as client:
        as_json = await client.post(url, json={"model": "whisper-1"})
        no_file = await client.post(url, data={"model": "whisper-1"}, files={"other": ("a.ogg", OGG)})
        large = await client.post(url, data={"model": "whisper-1"}, files={"file": ("a.ogg", OGG * 130_000)})
        got = await client.get(url)

    errors = [response.json()["error"]["message"] for response in (as_json, no_file, large)]
    assert [response.status_code for response in (as_json, no_file, large, got)] == [400, 400, 413, 405]
    assert errors[:2] == [
        "Could not parse multipart form",
        "1 validation error for Request\nbody -> file\n  field required (type=value_error.missing)",
    ]
    assert errors[2].startswith("Maximum content size limit (26214400) exceeded (")


async def test_a_transcriber_does_not_chat(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError):
        await client.chat.completions.create(model="whisper-1", messages=[{"role": "user", "content": "hi"}])
