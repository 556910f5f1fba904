"""Media of a context become stored files; what cannot be had goes in words, and the answer goes out."""

import pytest

from engine.engines import engine_with, said, talked
from media import media_files
from media.web import Server, answer
from palaver.context.budget import Budget
from palaver.context.gather import ContextOptions
from palaver.context.values import LeftOut
from palaver.engine.context_media import NOT_HAD
from palaver.errors import MediaUnavailable, StoreFull
from palaver.media.values import MediaOptions, StoredFile
from palaver.messages import Quote
from palaver.models.scripted import Scripted
from palaver.parts import Media, Text, ToolCall
from palaver.sim.telegram import image
from palaver.store import Store
from palaver.testing import RecordedPlatform
from palaver.turns import Prompt

PNG = image(8, 8)


class Files(RecordedPlatform):
    """A platform that has one file, and counts who asks for it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def fetch(self, media: Media, *, limit: int) -> bytes:
        self.asked.append(media.file_id or "")
        if media.file_id != "cat":
            raise MediaUnavailable("it is gone")
        return PNG


def photo(name: str) -> Media:
    return Media(media_kind="photo", unique_id=name, file_id=name)


def media_of(prompt: Prompt) -> list[tuple[str, bytes | None]]:
    parts = (part for turn in prompt.turns for part in turn.parts)
    return [(part.unique_id, part.data) for part in parts if isinstance(part, Media)]


async def test_what_is_there_goes_and_what_is_gone_is_words(store: Store) -> None:
    platform, model = Files(), Scripted("Nice.", "Still nice.")

    async with engine_with(model, platform, store=store) as engine:
        await talked(engine, said("look", 1, parts=(photo("cat"), photo("dog"), Text(text="look"))), said("and?", 2))

    assert [media_of(prompt) for prompt in model.prompts] == [[("cat", PNG), ("dog", None)]] * 2
    assert platform.asked == ["cat", "dog"]
    assert platform.texts == ["Nice.", "Still nice."]
    assert [one.left_out for one in await store.prompts.sent_by()] == [
        (LeftOut(source="media", ids=("1",), why=NOT_HAD),)
    ]


async def test_a_sound_that_is_longer_than_its_sender_said_is_words(store: Store) -> None:
    data = media_files.sound("ogg", "libopus", seconds=9)
    voice = Media(media_kind="voice", unique_id="v", data=data, mime="audio/ogg", seconds=0.5)
    model = Scripted("Hm.", "Hm.", name="gemini-3.8-flash")
    options = ContextOptions(budget=Budget(media_tokens=200))

    async with engine_with(model, store=store, context=options) as engine:
        await talked(engine, said("listen", 1, parts=(voice, Text(text="listen"))), said("and?", 2))

    assert [media_of(prompt) for prompt in model.prompts] == [[("v", None)]] * 2
    assert [len(one.left_out) for one in await store.prompts.sent_by()] == [1]


async def test_a_quoted_photo_is_fetched_too(store: Store) -> None:
    platform, model = Files(), Scripted("A cat.")
    quote = Quote(message_id="7", parts=(photo("cat"),))

    async with engine_with(model, platform, store=store) as engine:
        await talked(engine, said("what is it?", 1, reply_to=quote))

    assert media_of(model.prompts[0]) == [("cat", PNG)]


async def test_two_pictures_of_a_tool_that_gives_all_the_same_id_are_both_sent(store: Store) -> None:
    def draw(shade: int) -> Media:
        """Draw."""
        return Media(media_kind="photo", unique_id="chart", data=image(8, 8, shade=shade))

    calls = [ToolCall(name="draw", id=str(shade), args={"shade": shade}) for shade in (1, 2)]
    platform = Files()

    async with engine_with(Scripted(calls, "Both."), platform, store=store, tools=[draw]) as engine:
        await talked(engine, said("draw", 1))

    (shown,) = platform.shown.values()
    assert [one.data for one in shown.media] == [image(8, 8, shade=1), image(8, 8, shade=2)]


async def test_with_a_full_disk_the_answer_goes_out_all_the_same(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_: object, **__: object) -> StoredFile:
        raise StoreFull("the disk is full")

    monkeypatch.setattr(store.media, "add", full)
    platform, model = Files(), Scripted("Words only.")

    async with engine_with(model, platform, store=store) as engine:
        await talked(engine, said("look", 1, parts=(photo("cat"),)))

    assert media_of(model.prompts[0]) == [("cat", None)]
    assert platform.texts == ["Words only."]


async def test_a_file_that_cannot_be_stored_is_sent_all_the_same(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_: object, **__: object) -> StoredFile:
        raise StoreFull("the disk is full")

    monkeypatch.setattr(store.media, "add", full)
    platform = Files()

    async with engine_with(Scripted(["Look.", Media.of(PNG, mime="image/png")]), platform, store=store) as engine:
        await talked(engine, said("paint", 1))

    (shown,) = platform.shown.values()
    assert (shown.text, [one.data for one in shown.media]) == ("Look.", [PNG])


async def test_an_address_of_a_tool_is_fetched_for_each_result_and_that_of_a_person_once(store: Store) -> None:
    server, platform = Server(b""), Files()
    options = MediaOptions(allowed_addresses=("127.0.0.1",))
    async with await server.start():
        address = f"http://127.0.0.1:{server.port}/now.png"
        seen = Media(media_kind="photo", unique_id="seen", uri=address)

        def camera() -> Media:
            """Look at the door."""
            server.answers["/now.png"] = answer(image(8, 8, shade=server.connections))
            return seen

        call = ToolCall(name="camera")
        model = Scripted(call, call, call, "Three.", call, "One.", "Nice.", "Nice.")
        async with engine_with(model, platform, store=store, tools=[camera], media=options) as engine:
            await talked(engine, said("look", 1), said("again", 2))
            await talked(engine, said("", 3, parts=(seen,)), said("", 4, parts=(seen,)))

    sent = [[one.data for one in shown.media] for shown in platform.shown.values()]
    assert sent == [[image(8, 8, shade=shade) for shade in (0, 1, 2)], [image(8, 8, shade=3)], [], []]
    assert server.connections == 5
