"""A reply of many messages is a file where the platform takes files; else it is cut, and a line says so."""

from engine.engines import DIRECT, engine_with, said, talked
from tertulia.engine.languages.lines import ENGLISH
from tertulia.engine.reply_parts import FILE_NAME, MOST_PARTS
from tertulia.models import Scripted
from tertulia.platform import ALL_MEDIA, Capabilities
from tertulia.store import Store
from tertulia.testing import RecordedPlatform

WORDS = [f"word {number:02}" for number in range(25)]
LONG = "\n\n".join(WORDS)


def short(media: frozenset[str]) -> RecordedPlatform:
    return RecordedPlatform(capabilities=Capabilities(length=10, media=media))


async def test_it_is_its_beginning_and_a_file_where_the_platform_takes_files(store: Store) -> None:
    platform = short(ALL_MEDIA)
    async with engine_with(Scripted(LONG, "Yes."), platform, store=store) as engine:
        await talked(engine, said("tell me all", 1), said("really?", 2))
        prompts = await store.prompts.sent_by()

    first, second = platform.shown.values()
    (file,) = first.media
    assert (first.text, file.label, file.data, second.text) == (WORDS[0], FILE_NAME, LONG.encode(), "Yes.")
    assert any(LONG in turn.text for turn in prompts[0].prompt.turns)  # the model sees what it said


async def test_it_is_cut_where_the_platform_takes_none(store: Store) -> None:
    platform = short(frozenset())
    async with engine_with(Scripted(LONG), platform, store=store) as engine:
        await talked(engine, said("tell me all", 1))
        log = [message.text for message in await store.log.read(DIRECT, 0, 9)]

    assert platform.texts[:MOST_PARTS] == WORDS[:MOST_PARTS]
    assert " ".join(platform.texts[MOST_PARTS:]) == ENGLISH.cut
    assert log == ["tell me all", "\n\n".join(WORDS[:MOST_PARTS])]


async def test_one_that_is_not_too_long_stays_as_it_is(store: Store) -> None:
    platform = short(ALL_MEDIA)
    async with engine_with(Scripted(), platform, store=store) as engine:
        await engine.say(DIRECT, "\n\n".join(WORDS[:MOST_PARTS]))
        await engine.settled()

    assert platform.texts == WORDS[:MOST_PARTS]
