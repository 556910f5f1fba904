"""All that is remembered, as the engine asks for it; and a past that never breaks the beginning of a prompt."""

import json
import re
from datetime import timedelta
from typing import Any, Literal

import pytest
from msgspec.structs import replace

from engine import engines
from memory.talks import GARDEN, TRIP, a_said
from people import DELIMITER, DIRECT, GROUP, NOON, PERSONA, a_message, texts
from store.builders import skip
from tertulia.context import gather, sources
from tertulia.context.gather import ContextOptions, InMemoryKnowledge
from tertulia.context.stable_prefix import Marks
from tertulia.context.values import Background, RecalledEpisode, RelevantMessage
from tertulia.engine.log_views import LogSlice
from tertulia.engine.memory import Memory
from tertulia.engine.memory.learner import EpisodeWriter
from tertulia.engine.memory.recall import MemorySources
from tertulia.memory.facts import subject_of
from tertulia.messages import Message, Place
from tertulia.models.scripted import Scripted
from tertulia.profiles import PROFILES, layered, tail
from tertulia.store import Store

KNOWN = InMemoryKnowledge(background=Background(summary="A gardener."), hits=[RelevantMessage(text="x", score=1.0)])
DAY = timedelta(days=1)
MARKS = Marks(low=10, high=40)
ASKED = ("did the compost help the tomatoes?", "and the train to Lviv?")


def days(count: int) -> list[Message]:
    talks = (TRIP, GARDEN)
    return [message for day in range(count) for message in a_said(talks[day % 2], start=8 * day, at=NOON + day * DAY)]


async def test_what_is_not_given_is_not_known() -> None:
    target = a_message("the train to Lviv")
    bare = MemorySources(KNOWN)

    assert await bare.background(target) == Background(summary="A gardener.")
    assert (await bare.relevant(target), await bare.episodes(target), await bare.past(GROUP, 9)) == ((), (), "")
    assert await MemorySources(KNOWN, search=KNOWN).relevant(target) == (RelevantMessage(text="x", score=1.0),)


async def test_episodes_that_bear_on_the_target_are_told_where_they_happened() -> None:
    async with Store.open(":memory:") as store:
        for message in days(3):
            await store.inbox.receive(message, at=NOON)
        await EpisodeWriter(store.episodes, store.log).write(GROUP)
        known = MemorySources(KNOWN, episodes=store.episodes, now=lambda: NOON + 3 * DAY)
        first = (await store.episodes.listed(GROUP))[0]

        asked = a_message("when does the train to Lviv leave?")

        (told,) = await known.episodes(asked)
        assert replace(told, score=None, why="") == RecalledEpisode(
            topic=first.topic, summary=first.summary, start=0, id=first.id
        )
        assert (told.score or 0) > 0.5
        assert re.fullmatch(r"it speaks of \d+% of what the message does", told.why)
        assert await known.episodes(replace(asked, place=DIRECT)) == []
        assert await known.episodes(a_message("ok")) == ()


async def prompts(store: Store, messages: list[Message], *, tell_at: int = 0) -> list[tuple[int, str, tuple[str, ...]]]:
    """For each message from the fortieth on: where its window begins, its past, and the beginnings of two prompts."""
    episodist = EpisodeWriter(store.episodes, store.log)
    known = MemorySources(
        KNOWN, episodes=store.episodes, window_pasts=store.window_pasts, beginning=store.place_settings.beginning
    )
    found = []
    for number, message in enumerate(messages):
        await store.inbox.receive(message, at=NOON)
        if number >= tell_at:
            await episodist.write(GROUP)
        beginning = await store.place_settings.beginning(GROUP)
        log = LogSlice(store.log, beginning) if beginning else store.log
        scene = sources.agent_settings(persona=PERSONA, delimiter=DELIMITER)
        context = await gather(message, [scene, sources.window(log, marks=MARKS), sources.past(known)], NOON)
        firsts = tuple(texts(profile(context).turns[0].parts)[0] for profile in (layered, tail))
        found.append((context.window_start, context.past, firsts))
    return found


async def test_the_past_is_told_from_the_first_cut_on_and_never_changes_between_two() -> None:
    async with Store.open(":memory:") as store:
        told = await prompts(store, days(16))

    by_start: dict[int, set[str]] = {}
    for start, past, firsts in told:
        by_start.setdefault(start, set()).add(past)
        assert past == "" or all(first.startswith(f"[#{DELIMITER}] What was said before this") for first in firsts)
    assert all(len(pasts) == 1 for pasts in by_start.values())
    assert by_start[0] == {""}
    assert len(by_start) > 2
    assert all("Lviv" in past for start, (past,) in by_start.items() if start)


async def test_a_past_that_was_not_ready_when_a_window_began_waits_for_the_next() -> None:
    async with Store.open(":memory:") as store:
        told = await prompts(store, days(16), tell_at=60)

    by_start: dict[int, set[str]] = {}
    for start, past, _ in told:
        by_start.setdefault(start, set()).add(past)
    assert [len(pasts) for pasts in by_start.values()] == [1] * len(by_start)
    assert [bool(min(pasts)) for pasts in by_start.values()] == [False, False, *[True] * (len(by_start) - 2)]


async def test_a_conversation_that_began_anew_has_no_past_from_before() -> None:
    async with Store.open(":memory:") as store:
        old = a_said(["The purple xylophone was stolen from the museum"] * 8, at=NOON - DAY)
        for message in old:
            await store.inbox.receive(replace(message, id=f"old{message.id}"), at=NOON)
        await store.place_settings.clear(GROUP, 8, at=NOON)
        told = await prompts(store, days(8))

    assert "xylophone" not in repr(told)
    assert any(past for _, past, _ in told)


async def test_what_happened_in_one_place_is_told_in_no_other() -> None:
    """Every place talks of the same things with a word of its own; each is asked for all of these words."""
    kinds: tuple[Literal["group", "direct", "channel"], ...] = ("group", "direct", "channel")
    places = [
        Place(platform=platform, id=str(at), kind=kinds[at % 3], thread=thread)
        for platform in ("telegram", "discord")
        for at in range(6)
        for thread in (None, "1")
    ]
    async with Store.open(":memory:") as store:
        episodist = EpisodeWriter(store.episodes, store.log)
        for at, place in enumerate(places):
            for message in (*days(1), a_message("later", id="9", sent_at=NOON + 9 * DAY)):
                said = a_message(f"secret{at:02d}x {texts(message.parts)[0]}", id=message.id, place=place)
                await store.inbox.receive(replace(said, sent_at=message.sent_at), at=NOON)
            await episodist.write(place)
        known = MemorySources(KNOWN, episodes=store.episodes, window_pasts=store.window_pasts, now=lambda: NOON)
        for here in places:
            allowed = {
                f"secret{at:02d}x"
                for at, place in enumerate(places)
                if place == here or (here.kind == "direct" and (place.platform, place.id) == (here.platform, here.id))
            }
            told = repr(await known.past(here, 9))
            for at in range(len(places)):
                told += repr(await known.episodes(a_message(f"secret{at:02d}x train to Lviv", place=here)))

            assert set(re.findall(r"secret\d\dx", told)) == allowed


async def test_an_engine_tells_the_past_and_what_bears_on_the_target() -> None:
    async with Store.open(":memory:") as store:
        for message in days(53):
            old = replace(message, place=engines.GROUP, id=f"m{message.id}")
            await store.inbox.receive(old, at=NOON)
            await skip(store, engines.GROUP, old.id)
        await EpisodeWriter(store.episodes, store.log).write(engines.GROUP)
        model = Scripted("Yes.", "Yes.")

        async with engines.engine_with(
            model, store=store, memory=Memory(store), context=ContextOptions(history_size=400)
        ) as engine:
            asked = (engines.said(f"Gryag, {words}", f"q{at}", place=engines.GROUP) for at, words in enumerate(ASKED))
            await engines.talked(engine, *asked)

    first, second = ([layer.turns[0] for layer in prompt.layers[:2]] for prompt in model.prompts)
    assert "What was said before this" in texts(first[0].parts)[0]
    assert first[0] == second[0]
    assert "tomatoes" in json.loads(texts(first[1].parts)[0])["episodes"][0]["summary"].casefold()


@pytest.mark.parametrize("profile", sorted(PROFILES))
@pytest.mark.parametrize("levels", [True, False])
async def test_a_fact_stands_once_in_a_prompt_and_key_facts_under_words(profile: str, levels: bool) -> None:
    messages = ["I live in Lviv.", "I am allergic to peanuts.", "I have a cat called Murka.", "I love jazz."]
    how: dict[str, Any] = {"profile": profile, "context": ContextOptions(levels=levels)}
    model = Scripted(*["Ok."] * 5)
    async with Store.open(":memory:") as store:
        memory = Memory(store)
        async with engines.engine_with(model, store=store, memory=memory, **how) as engine:
            for number, text in enumerate(messages):
                await engines.talked(engine, engines.said(text, number))
                await memory.done()
            facts = [fact.text for fact in await store.facts.listed()]
            about = subject_of(engines.ALICE, engines.DIRECT)
            assert await store.facts.summary(about, place=engines.DIRECT) is not None
            await engines.talked(engine, engines.said("What do you know of me?", 9))

    prompt = model.prompts[-1]
    told = prompt.instruction + str(prompt.turns)
    assert len(facts) == 4
    assert {fact: told.count(fact) for fact in facts} == dict.fromkeys(facts, 1)
    assert "diet_" not in told
