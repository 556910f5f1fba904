"""Media of people on Telegram reach a model as bytes, and those of a tool or a model reach people."""

from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from platforms.telegram.world import telegram
from tertulia import Behavior, Engine, Media, Store, tool
from tertulia.models.base import Model
from tertulia.models.gemini.client import Gemini
from tertulia.models.scripted import Scripted
from tertulia.parts import ToolCall
from tertulia.sim.behaviours import Echo
from tertulia.sim.gemini import GeminiSim
from tertulia.sim.telegram import SimChat, TelegramSim, image

PHOTO = image(96, 64)
CHART = image(64, 64, shade=9)


@asynccontextmanager
async def bot(path: Path, sim: TelegramSim, model: Model, **options: Any) -> AsyncIterator[Engine]:
    """A bot that has answered all that waits."""
    platform = telegram(sim)
    async with (
        Store.open(path, durable=False) as store,
        Engine(store, model, [platform], behavior=Behavior(debounce=0.0), **options) as engine,
    ):
        for number, update in enumerate(sim.bot.bot_account.updates.take(0, 100)):
            await platform.apply(engine.inbox(platform.name), number, update.body)
        await engine.settled()
        yield engine


async def stored(path: Path) -> str:
    """All rows of the store, as text."""
    async with Store.open(path) as store:
        return str([row async for row in store.export()])


def inline(gemini: GeminiSim) -> list[list[bytes]]:
    """The bytes of each request."""
    return [
        [
            b64decode(part["inlineData"]["data"])
            for content in request.body["contents"]
            for part in content["parts"]
            if "inlineData" in part
        ]
        for request in gemini.requests
    ]


def photos(sim: TelegramSim, chat: SimChat) -> list[tuple[bytes, str]]:
    """The photos of the bot that people see, with their captions."""
    return [
        (sim.world.files.get(one.content["photo"][-1]["file"]).data, str(one.content.get("caption", "")))
        for one in chat.of(sim.bot)
        if "photo" in one.content
    ]


async def test_a_photo_is_fetched_once_and_no_row_has_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"
    async with TelegramSim() as sim, GeminiSim(behaviour=Echo()) as gemini:
        ann = sim.user("Ann")
        chat = sim.private(ann)
        async with Gemini("gemini-3.8-flash", key="k", base_url=gemini.url) as model:
            ann.send_photo(chat, PHOTO, caption="look")
            async with bot(path, sim, model):
                ann.send(chat, "and what else?")
            async with bot(path, sim, model):
                pass

        assert [call.method for call in sim.calls].count("download") == 1
        assert inline(gemini) == [[PHOTO], [PHOTO]]
    assert len(await stored(path)) < 100_000
    assert [file.read_bytes() for file in (tmp_path / "bot.db-media").glob("*/*")] == [PHOTO]


async def test_a_picture_of_a_tool_is_seen_by_the_model_and_sent_with_the_answer(tmp_path: Path) -> None:
    path, model = tmp_path / "bot.db", Scripted([ToolCall(name="draw", id="a")], "There you are.")

    def draw() -> Media:
        """Draw a chart."""
        return Media.of(CHART, mime="image/png")

    async with TelegramSim() as sim:
        ann = sim.user("Ann")
        chat = sim.private(ann)
        ann.send(chat, "draw!")
        async with bot(path, sim, model, tools=[draw]):
            pass

        assert photos(sim, chat) == [(CHART, "There you are.")]
    (shown,) = [media for part in model.prompts[1].turns[-1].parts for media in getattr(part, "media", ())]
    assert shown.data == CHART
    assert repr(CHART[:40])[2:-1] not in await stored(path)


async def test_a_tool_may_return_media_for_the_model_alone(tmp_path: Path) -> None:
    model = Scripted([ToolCall(name="look", id="a")], "A cat.")

    @tool(private_media=True)
    def look() -> Media:
        """Look at the camera."""
        return Media.of(CHART, mime="image/png")

    async with TelegramSim() as sim:
        ann = sim.user("Ann")
        chat = sim.private(ann)
        ann.send(chat, "who is there?")
        async with bot(tmp_path / "bot.db", sim, model, tools=[look]):
            pass

        assert [one.text for one in chat.of(sim.bot)] == ["A cat."]


async def test_an_address_of_a_tool_that_is_not_fetched_is_a_link(tmp_path: Path) -> None:
    model = Scripted([ToolCall(name="find", id="a")], "Here.")
    address = "http://192.168.0.7/cat.png"

    def find() -> Media:
        """Find a picture."""
        return Media(media_kind="photo", unique_id="cat", uri=address)

    async with TelegramSim() as sim:
        ann = sim.user("Ann")
        chat = sim.private(ann)
        ann.send(chat, "a cat!")
        async with bot(tmp_path / "bot.db", sim, model, tools=[find]):
            pass

        assert [one.text for one in chat.of(sim.bot)] == [f"Here.\n\n{address}"]
    assert address not in str([part for part in model.prompts[1].turns[-1].parts if isinstance(part, Media)])


async def test_our_own_picture_is_shown_to_the_model_again(tmp_path: Path) -> None:
    picture = Media(media_kind="photo", unique_id="made", mime="image/png", data=CHART)
    model = Scripted(["Look.", picture], "It was mine.", name="gemini-3-pro-image")

    async with TelegramSim() as sim:
        ann = sim.user("Ann")
        chat = sim.private(ann)
        ann.send(chat, "paint!")
        async with bot(tmp_path / "bot.db", sim, model):
            ann.send(chat, "whose is it?")
        async with bot(tmp_path / "bot.db", sim, model):
            pass

        assert photos(sim, chat) == [(CHART, "Look.")]
    again = [part for turn in model.prompts[1].turns for part in turn.parts if isinstance(part, Media)]
    assert [one.data for one in again] == [CHART]
