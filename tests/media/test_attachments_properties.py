"""Any file for any model: the service takes the request, and the same prompt is the same bytes."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from hashlib import sha256
from itertools import chain
from random import Random
from typing import Any

import pytest
from PIL import Image

from media import media_files as files
from media.attaching import FILM, PHOTO, VOICE, Files
from people import NOON
from tertulia.media.attachments import BEGINNING, WHOLE, Attachments
from tertulia.media.decoding import Decoder
from tertulia.media.sent_forms import SentAs, sent_as, with_facts
from tertulia.models.base import Model, media_taken
from tertulia.models.gemini.client import Gemini
from tertulia.models.openai.client import OpenAI
from tertulia.models.scripted import Scripted
from tertulia.parts import Media, Text, ToolCall, ToolResult
from tertulia.sim.gemini import Echo, GeminiSim
from tertulia.sim.openai import OpenAISim
from tertulia.store import Store
from tertulia.turns import Prompt, Turn, model, user
from tertulia.wire.media_limits import limits_of

GEMINI = ("gemini-2.0-flash", "gemini-2.5-pro", "gemini-3.8-flash", "gemini-4-pro", "gemma-3-27b-it")
OPENAI = ("gpt-4o", "gpt-5.6", "gpt-audio", "o4-mini", "qwen3", "mistral-small-2506", "openai/gpt-4.1-mini")

STORED: tuple[
    tuple[str, str, bytes, dict[str, Any]], ...
] = (  # the type by content, the kind that its sender says, the bytes, and what is known of them
    ("image/jpeg", "photo", PHOTO, {"width": 64, "height": 48}),
    ("image/jpeg", "document", files.taken_at_home(), {"width": 48, "height": 64, "has_metadata": True}),
    ("image/png", "photo", files.image("PNG", Image.new("RGB", (5000, 2500), "red")), {"width": 5000, "height": 2500}),
    ("image/webp", "sticker", files.image("WEBP"), {"width": 64, "height": 48}),
    ("image/gif", "animation", files.animation("GIF"), {"width": 64, "height": 48}),
    ("image/tiff", "document", files.image("TIFF"), {"width": 64, "height": 48}),
    ("image/heic", "document", b"no picture", {"width": 64, "height": 48}),
    ("image/jpeg", "photo", b"\xff\xd8\xff no picture", {}),
    ("application/x-tgsticker", "sticker", files.tgs(), {"width": 512, "height": 512}),
    ("video/webm", "sticker", files.video("webm", "libvpx-vp9"), {"seconds": 2.0}),
    ("video/mp4", "animation", files.video("mp4"), {"seconds": 2.0}),
    ("video/mp4", "video", FILM, {"seconds": 2.0}),
    ("video/x-matroska", "video", files.video("matroska", "libvpx-vp9"), {"seconds": 2.0}),
    ("audio/ogg", "voice", VOICE, {"seconds": 1.0}),
    ("audio/wav", "audio", files.wav(), {"seconds": 1.0}),
    ("audio/amr", "voice", b"#!AMR\n no sound", {"seconds": 1.0}),
    ("application/pdf", "document", files.pdf("a", "b"), {"pages": 2}),
    ("application/pdf", "document", files.pdf(*map(str, range(60))), {"pages": 60}),
    ("application/pdf", "photo", b"%PDF- no document", {}),
    ("text/plain", "document", "Привіт".encode("utf-16"), {}),
    ("text/html", "document", b"<html>" * 20_000, {}),
    ("application/json", "document", b"{}", {}),
    ("application/zip", "document", b"PK", {}),
    ("application/octet-stream", "sticker", b"\0", {}),
)


DAMAGED = {sha256(data).hexdigest()[:8] for _, _, data, _ in STORED if b" no " in data or data.startswith(b"no ")}


@pytest.fixture
async def models() -> AsyncIterator[list[Model]]:
    async with AsyncExitStack() as stack:
        gemini = await stack.enter_async_context(GeminiSim(behaviour=Echo(), models=None, processing=0))
        openai = await stack.enter_async_context(OpenAISim(behaviour=Echo(), models=None))
        clients: list[Gemini | OpenAI] = [Gemini(name, key="k", base_url=gemini.url) for name in GEMINI]
        clients += [OpenAI(name, key="k", base_url=openai.url) for name in OPENAI]
        yield [await stack.enter_async_context(client) for client in clients]


@pytest.fixture
async def media() -> AsyncIterator[tuple[Attachments, list[Media]]]:
    async with Store.open(":memory:") as store:
        put = Files(store.media).put
        found = [await put(data, mime, kind, **facts) for mime, kind, data, facts in STORED]
        known = await store.media.get({one.sha256 or "" for one in found})
        stored = [with_facts(one, known[one.sha256 or ""]) for one in found]
        yield Attachments(store.media, Decoder(), now=lambda: NOON), stored


async def test_every_service_takes_every_file_and_the_same_prompt_is_the_same_bytes(
    models: list[Model], media: tuple[Attachments, list[Media]]
) -> None:
    attachments, stored = media
    random = Random(16)  # noqa: S311 (the same prompts each time)

    for client in models:
        for one in stored:
            attached = await attachments.attach(Prompt.of(user(one, "What is it?")), client)
            assert (await client.respond(attached)).text.endswith("What is it?"), (client.name, one.mime)
            for part in attached.turns[0].parts:
                assert not isinstance(part, Media) or not part.data or limits_of(client.name).takes(part.mime or "")
            returned = await attachments.attach(Prompt.of("Draw.", model(one, by=client.name), "And?"), client)
            said = [sent_as(one, media_taken(client), role) for role in ("user", "model")]
            seen = [form_of(attached.turns[0]), form_of(returned.turns[1])]
            assert seen == said or (one.unique_id in DAMAGED and "words" in seen), (client.name, one, said, seen)

        turns = list(chain.from_iterable(some_turns(random, stored, number, client.name) for number in range(6)))
        whole = await attachments.attach(Prompt.of(*turns, "And?"), client)
        assert (await client.respond(whole)).text.endswith("And?")
        assert await attachments.attach(Prompt.of(*turns, "And?"), client) == whole
        assert (await attachments.attach(Prompt.of(*turns[:5]), client)).turns == whole.turns[:5]

    unknown = await attachments.attach(Prompt.of(user(*stored)), Scripted(name="mine"))
    assert {part.mime for part in unknown.turns[0].parts if isinstance(part, Media) and part.data} == {
        *("image/jpeg", "image/png", "image/webp", "audio/mpeg", "audio/wav"),
    }


def form_of(turn: Turn) -> SentAs:
    """Return in which form the file of a turn really goes."""
    forms: dict[str, SentAs] = {"image": "picture", "audio": "sound", "video": "video"}
    for part in turn.parts:
        if isinstance(part, Media) and (part.data or part.uri):
            return forms.get((part.mime or "").partition("/")[0], "document")
        if isinstance(part, Text) and part.text.startswith((WHOLE, BEGINNING)):
            return "text"
    return "words"


def some_turns(random: Random, stored: list[Media], number: int, name: str) -> list[Turn]:
    """A person's turn, a turn of the model, or a call with files in its result."""
    some = random.sample(stored, 3)
    match number % 3:
        case 0:
            return [user(*some, "Look.")]
        case 1:
            return [user("Draw."), model(*some, "Here.", by=name)]
        case _:
            call = ToolCall(name="look", id=f"c{number}", signature="c2ln")
            return [user("Find."), model(call, by=name), user(ToolResult(name="look", id=call.id, media=tuple(some)))]
