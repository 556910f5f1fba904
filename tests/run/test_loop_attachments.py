"""A run whose prompt has stored files: the loop attaches them before each call, for the model that is called."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from msgspec.structs import replace

from media import media_files
from media.attaching import FILM, PHOTO, VOICE, Files, World, now, uploads
from people import NOON
from run.loops import resumed, run_to_end
from run.scripted_runs import RUN, names
from tertulia.errors import FileGone, RequestRefused
from tertulia.media.attachments import Attachments
from tertulia.media.decoding import Decoder
from tertulia.models.base import File, Model, Response
from tertulia.models.scripted import Scripted
from tertulia.parts import Media
from tertulia.run.journal import Journal
from tertulia.run.loop import RunAnswered, RunLoop
from tertulia.run.model_calls import ModelCalls
from tertulia.run.run_host import RunHost
from tertulia.sim.faults import Overloaded
from tertulia.sim.gemini import Actor, Echo, GeminiSim
from tertulia.sim.openai import OpenAISim
from tertulia.store import Store
from tertulia.toolbox.toolbox import Toolbox
from tertulia.turns import Prompt, user
from tertulia.wire.part_forms import unseen_note


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with Store.open(":memory:") as opened:
        yield opened


@pytest.fixture
async def sim() -> AsyncIterator[GeminiSim]:
    async with GeminiSim(behaviour=Echo(), processing=0) as running:
        yield running


@pytest.fixture
async def openai_sim() -> AsyncIterator[OpenAISim]:
    async with OpenAISim(behaviour=Echo()) as running:
        yield running


@pytest.fixture
async def world(sim: GeminiSim, openai_sim: OpenAISim) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        yield World(sim, openai_sim, stack)


@pytest.fixture
async def film(store: Store) -> Media:
    return await Files(store.media).put(FILM, "video/mp4", "video")


@pytest.fixture
def attachments(store: Store, sim: GeminiSim) -> Attachments:
    start = now(sim)
    return Attachments(store.media, Decoder(), now=lambda: start)  # a clock that stands, whatever the service's does


async def ran(store: Store, attachments: Attachments, prompt: Prompt, *models: Model, **changes: Any) -> RunAnswered:
    fields: dict[str, Any] = {"toolbox": Toolbox(), "attachments": attachments, "retries": 0} | changes
    return await run_to_end(store.runs, RUN, prompt, models=list(models), **fields)


async def test_a_file_that_the_service_lost_is_uploaded_again_and_the_same_prompt_asked_again(
    store: Store, sim: GeminiSim, world: World, attachments: Attachments, film: Media
) -> None:
    prompt, model = Prompt.of(user(film, "Look")), await world.gemini()
    await attachments.attach(prompt, model)
    sim.clock.advance(49 * 3600)  # at the service

    answered = await ran(store, attachments, prompt, model)

    assert (answered.response.text, names(answered.tried)) == ("Look", ("upload again",))
    assert uploads(sim) == ["200", "200"]
    sent = [await store.prompts.sent(RUN.id, step) for step in (0, 1)]
    assert [one and one.prompt for one in sent] == [prompt, prompt]  # as stored: without bytes and handles


async def test_a_file_that_is_deleted_between_two_steps_is_uploaded_again(
    store: Store, attachments: Attachments, film: Media
) -> None:
    def lose() -> str:
        """Loses all files."""
        acting.files.lose()
        return "gone"

    box = Toolbox([lose])
    async with GeminiSim(behaviour=Actor(steps=1, parallel=1), processing=0) as acting, AsyncExitStack() as stack:
        model = await World(acting, OpenAISim(), stack).gemini()

        answered = await ran(store, attachments, Prompt.of(user(film, "Look"), tools=box.specs), model, toolbox=box)

    assert names(answered.tried) == ("upload again",)
    assert uploads(acting) == ["200", "200"]


async def test_a_service_that_loses_every_file_gets_it_inline(
    store: Store, attachments: Attachments, film: Media
) -> None:
    model = Losing()

    answered = await ran(store, attachments, Prompt.of(user(film, "Look")), model)

    assert (answered.response.text, names(answered.tried)) == ("inline", ("upload again",) * 3)


class Losing(Scripted):
    """Takes uploads, and has none of the files when it is asked."""

    account = "losing:1"

    def __init__(self) -> None:
        super().__init__("inline", name="gemini-3.8-flash")

    async def upload(self, data: bytes, *, mime: str, name: str = "") -> File:
        return File(name=name, uri=f"https://e.test/{name}", mime=mime, state="ACTIVE", size=len(data))

    def is_own_file(self, uri: str) -> bool:
        return uri.startswith("https://e.test/files/")

    async def get_file(self, name: str) -> File:
        raise FileGone(name)

    async def delete_file(self, name: str) -> None: ...

    async def respond(self, prompt: Prompt) -> Response:
        [film] = [part for part in prompt.turns[0].parts if isinstance(part, Media)]
        if film.uri:
            raise FileGone("gone", file=film.uri)
        return await super().respond(prompt)


async def test_another_key_after_a_restart_uploads_for_itself(
    store: Store, sim: GeminiSim, world: World, attachments: Attachments, film: Media
) -> None:
    prompt = Prompt.of(user(film, "Look"))
    await attachments.attach(prompt, await world.gemini())
    await store.runs.begin(RUN, prompt, at=NOON)

    after = Attachments(store.media, Decoder(), now=lambda: now(sim))
    journal = Journal(run=RUN, prompt=prompt)
    model = await world.gemini(key="new")
    answered = await resumed(store.runs, journal, models=[model], toolbox=Toolbox(), attachments=after)

    assert (answered.response.text, answered.tried) == ("Look", ())
    assert [file.owner for file in sim.files.by_name.values()] == ["k", "new"]


async def test_the_next_model_gets_forms_of_its_own(
    store: Store, sim: GeminiSim, openai_sim: OpenAISim, world: World, attachments: Attachments
) -> None:
    files = Files(store.media)
    prompt = Prompt.of(
        user(
            await files.put(PHOTO, "image/jpeg"),
            await files.put(VOICE, "audio/ogg", "voice", rendered_text="hello"),
            await files.put(media_files.pdf("a page"), "application/pdf", "document", pages=1),
            await files.put(media_files.tgs(), "application/x-tgsticker", "sticker"),
            await files.put(FILM, "video/mp4", "video"),
            "And?",
        )
    )
    sim.fail(Overloaded())

    answered = await ran(store, attachments, prompt, await world.gemini(), await world.openai())

    assert (answered.response.text, names(answered.tried)) == (
        "[voice described: hello]\n[video]\nAnd?",
        ("next model",),
    )
    [request] = openai_sim.requests
    [message] = request.body["messages"]
    assert [part["type"] for part in message["content"]] == [
        *("image_url", "text", "file", "image_url", "image_url", "text", "text")  # a still of the film beside its words
    ]
    assert [part["text"] for part in message["content"] if part["type"] == "text"] == [
        "[voice described: hello]",
        "[video]",
        "And?",
    ]


async def test_markers_are_those_of_the_prompt_as_it_was_sent(
    store: Store, world: World, attachments: Attachments
) -> None:
    files = Files(store.media)
    photo, archive = await files.put(PHOTO, "image/jpeg"), await files.put(b"PK", "application/zip", "document")
    prompt = Prompt.of(user(photo, archive, "Look"))
    await store.runs.begin(RUN, prompt, at=NOON)
    loop = RunLoop(
        Journal(run=RUN, prompt=prompt),
        RunHost(attachments=attachments),
        store=store.runs,
        models=[await world.gemini()],
        toolbox=Toolbox(),
        calls=ModelCalls(),
    )

    await loop.run_to_end()

    assert loop.markers() == {"[document]", unseen_note(photo)}


class Choosy(Scripted):
    """Refuses requests with the bytes of a file, and does not say which it is."""

    def __init__(self, *refused: bytes) -> None:
        super().__init__(*["Nice."] * 3, name="gemini-3.8-flash")
        self.refused = refused
        self.shown: list[list[bytes]] = []

    async def respond(self, prompt: Prompt) -> Response:
        media = [one for turn in prompt.turns for one in turn.parts if isinstance(one, Media)]
        self.shown.append([one.data for one in media if one.data])
        if set(self.shown[-1]) & set(self.refused):
            raise RequestRefused("Unable to process input image.")
        return await super().respond(prompt)


async def test_only_the_file_that_is_refused_becomes_words_and_the_next_run_does_not_ask_with_it(
    store: Store, attachments: Attachments
) -> None:
    data = [PHOTO + bytes(number) for number in range(4)]
    photos = [await Files(store.media).put(one, "image/jpeg") for one in data]
    model = Choosy(data[2])
    prompt = Prompt.of(user(*photos, "What are they?"))

    for number in range(2):
        run = replace(RUN, id=f"r{number}")
        answered = await run_to_end(
            store.runs, run, prompt, models=[model], toolbox=Toolbox(), attachments=attachments.for_run(str)
        )
        assert names(answered.tried) == (("without a file",) * 2 if number == 0 else ())

    without = [*data[:2], data[3]]
    assert model.shown == [data, data[:3], without, without]


async def test_where_several_files_are_refused_all_that_are_new_become_words(
    store: Store, attachments: Attachments
) -> None:
    data = [PHOTO + bytes(number) for number in range(5)]
    photos = [await Files(store.media).put(one, "image/jpeg") for one in data]
    model = Choosy(*data[3:])
    old = attachments.for_run(str)
    await run_to_end(store.runs, RUN, Prompt.of(user(*photos[:2])), models=[model], toolbox=Toolbox(), attachments=old)

    answered = await run_to_end(
        store.runs,
        replace(RUN, id="next"),
        Prompt.of(user(*photos)),
        models=[model],
        toolbox=Toolbox(),
        attachments=attachments.for_run(str),
    )

    assert names(answered.tried) == ("without a file",) * 4
    assert model.shown[-1] == data[:2]


async def test_a_file_that_the_service_refuses_goes_as_words(store: Store, attachments: Attachments) -> None:
    photo = await Files(store.media).put(PHOTO, "image/jpeg", rendered_text="a cat")
    refusing = Scripted(RequestRefused("Gemini refused the request (400): Unable to process input image."), "A cat.")

    answered = await ran(store, attachments, Prompt.of(user(photo, "What is it?")), refusing)

    assert (answered.response.text, names(answered.tried)) == ("A cat.", ("without a file",))
    assert refusing.prompts[1].turns == (user(photo.without_content(), "What is it?"),)
