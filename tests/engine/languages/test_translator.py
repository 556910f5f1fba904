"""The bot's own lines are in the language of the person that they are for."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.engines import ALICE, AT_ONCE, BOB, DIRECT, GROUP, engine_with, said, talked
from people import NOON
from tertulia.engine.behavior import Behavior
from tertulia.engine.languages.lines import ENGLISH
from tertulia.engine.languages.ukrainian import UKRAINIAN
from tertulia.engine.limits import Cap, Limits
from tertulia.errors import ModelUnavailable, RequestRefused, TertuliaError
from tertulia.messages import Author
from tertulia.models import Scripted
from tertulia.platform import Capabilities, Commanded, Reacted, Stopped
from tertulia.store import Store
from tertulia.testing import HeldModel, RecordedPlatform

OLENA = Author(id="3", name="Олена", language="uk")


async def language(store: Store, author: Author = OLENA) -> str | None:
    return await store.place_settings.language(platform=DIRECT.author_namespace, author_id=author.id)


async def test_the_language_is_that_of_the_newest_message_or_reaction_that_says_one(store: Store) -> None:
    found = [await language(store)]
    async with engine_with(Scripted("1", "2", "3"), store=store) as engine:
        await talked(engine, said("a", 1, author=OLENA))
        found.append(await language(store))
        await talked(engine, said("b", 2, author=replace(OLENA, language="en")))
        found.append(await language(store))
        await talked(engine, said("c", 3, author=replace(OLENA, language="")))
        found.append(await language(store))
        reacted = Reacted(place=DIRECT, message_id="1", author=OLENA, emojis=("👍",))
        await engine.inbox("recorded").apply([reacted], key="u1")
        found.append(await language(store))

    assert found == [None, "uk", "en", "en", "uk"]


async def test_who_is_forgotten_has_no_language(store: Store) -> None:
    await store.inbox.receive(said("hi", author=OLENA), at=NOON)

    exported = await store.export_person(platform=DIRECT.author_namespace, author_id=OLENA.id)
    assert exported["person"]["language"] == "uk"
    await store.forget(platform=DIRECT.author_namespace, author_id=OLENA.id)
    assert await language(store) is None


@pytest.mark.parametrize(("author", "lines"), [(OLENA, UKRAINIAN), (ALICE, ENGLISH)])
async def test_too_many_and_a_reached_cap_are_told_in_the_language_of_the_author(author: Author, lines: Any) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted("Hi."), platform, limits=Limits(messages=1, seconds=600)) as engine:
        await talked(engine, said("a", 1, author=author), said("b", 2, author=author))
    capped = RecordedPlatform()
    async with engine_with(Scripted(), capped, limits=Limits(total=Cap(tokens=0))) as engine:
        await talked(engine, said("a", 1, author=author))

    assert (platform.texts, capped.texts) == (["Hi.", lines.too_many], [lines.spent])


async def test_a_platform_that_tells_the_language_once_has_told_it() -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted("Hi.", RequestRefused("no")), platform) as engine:
        await talked(engine, said("a", 1, author=OLENA), said("b", 2, author=replace(OLENA, language="")))

    assert platform.texts == ["Hi.", UKRAINIAN.failed]


@pytest.mark.parametrize(
    ("error", "line"),
    [(ModelUnavailable("?"), UKRAINIAN.model_unavailable), (RequestRefused("?"), UKRAINIAN.failed)],
)
async def test_an_error_is_told_in_their_language_unless_the_text_is_the_users_own(
    error: TertuliaError, line: str
) -> None:
    platform, own = RecordedPlatform(), RecordedPlatform()
    behavior = replace(AT_ONCE, error_text=lambda error: f"Oh: {error}")
    no_wait: dict[str, Any] = {"sleep": _at_once}
    async with engine_with(Scripted(*[error] * 9), platform, **no_wait) as engine:
        await talked(engine, said("a", author=OLENA))
    async with engine_with(Scripted(*[error] * 9), own, behavior=behavior, **no_wait) as engine:
        await talked(engine, said("a", author=OLENA))

    assert (platform.texts, own.texts) == ([line], [f"Oh: {error}"])


async def _at_once(_: float) -> None:
    """A sleep that takes no time."""


async def test_a_draft_that_is_stopped_says_so_in_the_language_of_who_asked(store: Store) -> None:
    platform = RecordedPlatform(capabilities=Capabilities(edits=True, drafts=True, preview_interval=0.0))
    model = HeldModel("One two three four.", pieces=2)
    async with engine_with(model, platform, store=store) as engine:
        await engine.receive(said("Gryag, count", 1, place=GROUP, author=OLENA))
        await platform.sent.wait()
        await engine.inbox("recorded").apply([Stopped(place=GROUP, author=OLENA)], key="u1")
        await engine.settled()

    assert platform.texts == [UKRAINIAN.stopped_draft]


async def test_two_people_in_a_group_are_each_answered_in_their_language() -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted(), platform) as engine:
        for number, author in enumerate([OLENA, BOB]):
            command = Commanded(message=said("/tasks", number, place=GROUP, author=author), name="tasks")
            await engine.inbox("recorded").apply([command], key=str(number))
        await engine.settled()

    assert platform.texts == [UKRAINIAN.nothing_planned, ENGLISH.nothing_planned]


async def test_who_has_no_language_or_one_without_lines_gets_that_of_the_config() -> None:
    platform, behavior = RecordedPlatform(), Behavior(debounce=0, language="uk")
    async with engine_with(Scripted(*["<think>hm</think>"] * 2), platform, behavior=behavior) as engine:
        await talked(engine, said("a", 1), said("b", 2, author=Author(id="9", name="Zoé", language="fr")))

    assert platform.texts == [UKRAINIAN.nothing_to_say] * 2
