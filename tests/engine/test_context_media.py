"""Media of a context become stored files; what cannot be had goes in words, and the answer goes out."""

import pytest

from engine.engines import engine_with, said, talked
from fakes import Files
from media import media_files
from media.web import Server, answer
from tertulia.context.budget import Budget
from tertulia.context.gather import ContextOptions
from tertulia.context.values import LeftOut
from tertulia.engine.behavior import Behavior
from tertulia.engine.context_media import NOT_HAD
from tertulia.errors import MediaUnavailable, StoreFull
from tertulia.media.prompt_media import all_media
from tertulia.media.values import MediaOptions, StoredFile
from tertulia.messages import Quote
from tertulia.models.scripted import Scripted
from tertulia.parts import Media, Text, ToolCall
from tertulia.sim.telegram import image
from tertulia.store import Store
from tertulia.testing import HeldModel
from tertulia.turns import Prompt

PNG = image(8, 8)


def a_cat(media: Media) -> bytes:
    """The only file that the platform has."""
    if media.file_id != "cat":
        raise MediaUnavailable("it is gone")
    return PNG


def photo(name: str) -> Media:
    return Media(media_kind="photo", unique_id=name, file_id=name)


def media_of(prompt: Prompt) -> list[tuple[str, bytes | None]]:
    parts = (part for turn in prompt.turns for part in turn.parts)
    return [(part.unique_id, part.data) for part in parts if isinstance(part, Media)]


async def test_what_is_there_goes_and_what_is_gone_is_words(store: Store) -> None:
    platform, model = Files(a_cat), Scripted("Nice.", "Still nice.")

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
    platform, model = Files(a_cat), Scripted("A cat.")
    quote = Quote(message_id="7", parts=(photo("cat"),))

    async with engine_with(model, platform, store=store) as engine:
        await talked(engine, said("what is it?", 1, reply_to=quote))

    assert media_of(model.prompts[0]) == [("cat", PNG)]


async def test_two_pictures_of_a_tool_that_gives_all_the_same_id_are_both_sent(store: Store) -> None:
    def draw(shade: int) -> Media:
        """Draw."""
        return Media(media_kind="photo", unique_id="chart", data=image(8, 8, shade=shade))

    calls = [ToolCall(name="draw", id=str(shade), args={"shade": shade}) for shade in (1, 2)]
    platform = Files(a_cat)

    async with engine_with(Scripted(calls, "Both."), platform, store=store, tools=[draw]) as engine:
        await talked(engine, said("draw", 1))

    (shown,) = platform.shown.values()
    assert [one.data for one in shown.media] == [image(8, 8, shade=1), image(8, 8, shade=2)]


def shades(prompt: Prompt) -> list[int]:
    """The pictures that go themselves, by their shade, in the order of the prompt."""
    known = {image(8, 8, shade=shade): shade for shade in range(40)}
    return [known[one.data] for one in all_media(prompt) if one.data]


def a_picture(shade: int) -> Media:
    return Media(media_kind="photo", unique_id=f"s{shade}", data=image(8, 8, shade=shade), mime="image/png")


LIMITS = [Budget(media=8), Budget(media_bytes=8 * len(image(8, 8)))]


@pytest.mark.parametrize("budget", LIMITS, ids=["number", "bytes"])
async def test_pictures_of_tools_count_like_all_others(store: Store, budget: Budget) -> None:
    def draw(begin: int) -> list[Media]:
        """Draw."""
        return [a_picture(shade) for shade in range(begin, begin + 6)]

    calls = [[ToolCall(name="draw", id=str(begin), args={"begin": begin})] for begin in (10, 20)]
    model = Scripted("Nice.", *calls, "Done.", name="gemini-3.8-flash")
    seen, asked = [said("look", at, parts=(a_picture(at), Text(text="look"))) for at in (1, 2)]

    async with engine_with(
        model, store=store, tools=[draw], context=ContextOptions(budget=budget), profile="tail"
    ) as engine:
        await talked(engine, seen, asked)

    assert [shades(prompt) for prompt in model.prompts[1:]] == [[1, 2], [1, 2, *range(10, 16)], [2, 15, *range(20, 26)]]


async def test_a_photo_that_joins_a_run_counts_and_is_asked_about(store: Store) -> None:
    def draw() -> list[Media]:
        """Draw."""
        return [a_picture(shade) for shade in range(10, 14)]

    model = HeldModel([ToolCall(name="draw", id="a")], "Done.", name="gemini-3.8-flash")
    behavior = Behavior(debounce=0.0, during_run="next_step")
    options = ContextOptions(budget=Budget(media=4))

    async with engine_with(model, store=store, tools=[draw], behavior=behavior, context=options) as engine:
        await engine.receive(said("look", 1, parts=(a_picture(1), Text(text="look"))))
        await model.asked.wait()
        await engine.receive(said("this too", 2, parts=(a_picture(2), a_picture(3), Text(text="this too"))))
        model.release()
        await engine.settled()

    assert shades(model.prompts[-1]) == [1, 13, 2, 3]


async def test_a_joining_photo_that_is_gone_takes_no_room_of_another(store: Store) -> None:
    model = HeldModel([ToolCall(name="look", id="a")], "Done.", name="gemini-3.8-flash")
    behavior = Behavior(debounce=0.0, during_run="next_step")
    options = ContextOptions(budget=Budget(media=1))

    async def look() -> str:
        return "green"

    async with engine_with(
        model, Files(a_cat), store=store, tools=[look], behavior=behavior, context=options
    ) as engine:
        await engine.receive(said("look", 1, parts=(photo("dog"), Text(text="look"))))
        await model.asked.wait()
        await engine.receive(said("these", 2, parts=(photo("dog"), photo("cat"), Text(text="these"))))
        model.release()
        await engine.settled()

    assert media_of(model.prompts[-1]) == [("dog", None), ("dog", None), ("cat", PNG)]


async def test_with_a_full_disk_the_answer_goes_out_all_the_same(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_: object, **__: object) -> StoredFile:
        raise StoreFull("the disk is full")

    monkeypatch.setattr(store.media, "add", full)
    platform, model = Files(a_cat), Scripted("Words only.")

    async with engine_with(model, platform, store=store) as engine:
        await talked(engine, said("look", 1, parts=(photo("cat"),)))

    assert media_of(model.prompts[0]) == [("cat", None)]
    assert platform.texts == ["Words only."]


async def test_a_file_that_cannot_be_stored_is_sent_all_the_same(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_: object, **__: object) -> StoredFile:
        raise StoreFull("the disk is full")

    monkeypatch.setattr(store.media, "add", full)
    platform = Files(a_cat)

    async with engine_with(Scripted(["Look.", Media.of(PNG, mime="image/png")]), platform, store=store) as engine:
        await talked(engine, said("paint", 1))

    (shown,) = platform.shown.values()
    assert (shown.text, [one.data for one in shown.media]) == ("Look.", [PNG])


async def test_an_address_of_a_tool_is_fetched_for_each_result_and_that_of_a_person_once(store: Store) -> None:
    server, platform = Server(b""), Files(a_cat)
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
