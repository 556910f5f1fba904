"""AgentMemoryContract: the tests of what agents see of memory: what was said while they were there, and their own."""

from typing import Any

from msgspec.structs import replace

from tertulia.engine.store_protocols import StoreProtocol
from tertulia.memory.values import Episode, IndexEntry, Summary, WindowPast
from tertulia.seen_by import SeenBy
from tertulia.testing.store_memory_contract import HER, HERS, a_fact, known, learn
from tertulia.testing.store_world import ALICE, GROUP, LATER, NOON, PROMPT, a_message, a_run, a_talk, check, receive


class AgentMemoryContract:
    """An agent sees of facts, summaries, episodes and the index what it was there for, and what is its own."""

    @check
    async def test_an_agent_sees_the_facts_that_were_said_while_it_was_there(self, store: StoreProtocol) -> None:
        await store.agents.join(GROUP, "Kant", at=NOON)
        await learn(store, a_fact("likes tea", sources=("m1",)))
        await store.agents.join(GROUP, "Hume", at=NOON)
        await learn(store, a_fact("likes figs", sources=("m2",)), a_fact("likes rye", sources=("m1", "m2")))
        await store.agents.leave(GROUP, "Kant", at=NOON)
        await learn(store, a_fact("likes oats", sources=("m3",)))

        async def seen(agent: str, **how: Any) -> list[str]:
            return sorted(await known(store, seen_by=SeenBy(agent=agent, **how)))

        assert await seen("Kant", present=True) == ["likes figs", "likes rye", "likes tea"]
        assert await seen("Hume", present=True) == ["likes figs", "likes oats", "likes rye"]
        assert await seen("Hegel", present=True) == []
        assert await seen("Hegel") == sorted(await known(store))

    @check
    async def test_what_was_said_in_a_direct_chat_is_seen_by_the_agent_that_was_there(
        self, store: StoreProtocol
    ) -> None:
        await store.agents.join(HERS, "Kant", at=NOON)
        await learn(store, a_fact("has a secret", place=HERS), a_fact("likes tea", scope="everywhere"))
        await store.agents.leave(HERS, "Kant", at=NOON)
        await store.agents.join(HERS, "Hume", at=NOON)
        seen = [
            sorted(await known(store, HERS, asked_by=HER, seen_by=SeenBy(agent=agent))) for agent in ("Kant", "Hume")
        ]

        assert seen == [["has a secret", "likes tea"], ["likes tea"]]

    @check
    async def test_an_agent_may_have_facts_of_its_own(self, store: StoreProtocol) -> None:
        await learn(
            store,
            a_fact("lives in Kyiv", id="f1", key="home"),
            a_fact("lives in Lviv", id="f2", key="home", agent="Kant", learned_at=LATER, sources=("m2",)),
            a_fact("lives in Kyiv", id="f3", key="home", agent="Hume", sources=("m3",)),
        )

        async def seen(**how: Any) -> list[str]:
            return sorted(fact.id for fact in await store.facts.about(HER, place=GROUP, seen_by=SeenBy(**how)))

        assert await seen(agent="Kant", own=True) == ["f2"]
        assert await seen(agent="Hume", own=True) == ["f3"]
        assert await seen(agent="Kant") == ["f1", "f2"]
        assert await seen(agent="Hegel") == ["f1"]
        await store.inbox.delete(GROUP, "m3", at=LATER)
        assert [(one.id, one.superseded_by) for one in await store.facts.listed(HER)] == [("f1", None), ("f2", None)]
        assert await store.facts.forget(["f1"], at=LATER) == 1
        assert await seen(agent="Kant") == ["f2"]

    @check
    async def test_a_limited_agent_has_a_summary_and_a_past_of_its_own(self, store: StoreProtocol) -> None:
        await learn(store, a_fact())
        shared = Summary(subject=HER, place=GROUP, text="All.", facts=1, digest="d", made_at=NOON)
        for one in (shared, replace(shared, text="Some.", agent="Kant"), replace(shared, text="Less.", agent="Kant")):
            await store.facts.summarise(one, made_of=[])
        seen_by = [None, *(SeenBy(agent=name, present=name != "Hegel") for name in ("Kant", "Hume", "Hegel"))]
        found = [await store.facts.summary(HER, place=GROUP, seen_by=one) for one in seen_by]
        seen = await store.episodes.cursor(GROUP)
        assert seen is not None
        for past in (
            WindowPast(since=0, start=1, text="All."),
            WindowPast(since=0, start=1, text="Some.", agent="Kant"),
        ):
            await store.window_pasts.add(GROUP, past, seen=seen)
        pasts = [await store.window_pasts.find(GROUP, 0, 1, agent=agent) for agent in (None, "Kant", "Hume")]

        assert [one and one.text for one in found] == ["All.", "Less.", None, "All."]
        assert [one and one.text for one in pasts] == ["All.", "Some.", None]

    @check
    async def test_an_agent_sees_the_episodes_of_which_it_missed_nothing(self, store: StoreProtocol) -> None:
        await receive(store, *a_talk(2))
        await store.agents.join(GROUP, "Kant", at=NOON)
        await receive(store, *(replace(one, id=f"1{one.id}") for one in a_talk(4)))
        for start in (0, 2, 4):
            seen = await store.episodes.cursor(GROUP)
            assert seen is not None
            episode = Episode(id=f"e{start}", place=GROUP, start=start, stop=start + 2, summary="s", topic="t")
            assert await store.episodes.add(episode, seen=replace(seen, read=start))
        await store.agents.leave(GROUP, "Kant", at=NOON)

        async def listed(seen_by: SeenBy | None) -> list[str]:
            found = await store.episodes.visible_to(a_message(), seen_by=seen_by)
            assert list(found) == list(await store.episodes.listed(GROUP, seen_by=seen_by))
            return [one.id for one in found]

        assert await listed(SeenBy(agent="Kant", present=True)) == ["e2", "e4"]
        assert await listed(SeenBy(agent="Hume", present=True)) == []
        assert await listed(SeenBy(agent="Kant")) == await listed(None) == ["e0", "e2", "e4"]

    @check
    async def test_an_agent_finds_the_messages_that_came_while_it_was_there(self, store: StoreProtocol) -> None:
        await receive(store, *a_talk(2))
        await store.agents.join(GROUP, "Kant", at=NOON)
        await receive(store, *(replace(one, id=f"1{one.id}") for one in a_talk(2)))
        await store.agents.leave(GROUP, "Kant", at=NOON)
        await receive(store, *(replace(one, id=f"2{one.id}") for one in a_talk(2)))
        batch = await store.index_writer.unindexed(GROUP, most=9)
        assert batch is not None
        entries = [
            IndexEntry(number=one.number, name=one.name, at=one.number, length=1, traits=0, words={"number": 1})
            for one in batch.said
        ]
        await store.index_writer.add(batch, entries)
        await store.index_writer.embed(batch, "e", {one.number: bytes([one.number] * 4) for one in batch.said})

        async def found(seen_by: SeenBy | None) -> tuple[list[int], ...] | None:
            reader = store.index_reader
            view = await reader.view(GROUP, ALICE, seen_by=seen_by)
            if view is None:
                return None
            (postings,) = await reader.postings(view, [("num", False)])
            assert [name for _, name in await reader.names(view, 0)] != []
            return (
                [row[0] for row in await reader.rows(view, 0)],
                sorted(number for _, number, _ in postings),
                [number for number, _ in await reader.vectors(view, "e", 0)],
                sorted(await reader.messages(view, range(9))),
            )

        assert await found(SeenBy(agent="Kant", present=True)) == ([2, 3],) * 4
        assert await found(SeenBy(agent="Hume", present=True)) is None
        assert await found(SeenBy(agent="Kant")) == await found(None) == (list(range(6)),) * 4
        own = [
            await store.index_reader.own_view(HERS, ALICE, seen_by=SeenBy(agent="Kant", present=present))
            for present in (True, False)
        ]
        assert [one and [number for _, number in one.own or ()] for one in own] == [[2], [0, 2, 4]]

    @check
    async def test_what_an_agent_answered_is_read_once_for_its_own_facts(self, store: StoreProtocol) -> None:
        await receive(store, a_message(), a_message(id="m2"), a_message(id="m3"))
        runs = [
            a_run(id=f"r{n}", agent=agent, taken=(f"m{n}",)) for n, agent in ((1, "Kant"), (2, "Hume"), (3, "Kant"))
        ]
        for run in runs:
            await store.runs.begin(run, PROMPT, at=NOON)
        for run in runs[:2]:
            await store.runs.end(replace(run, status="done", ended_at=NOON))
        first = await store.cursors.answered(GROUP, "Kant", most=9)
        assert first is not None
        await store.facts.learn([a_fact(id="f1", agent="Kant")], reading=first)
        between = await store.cursors.answered(GROUP, "Kant", most=9)
        await store.runs.end(replace(runs[2], status="done", ended_at=NOON))
        second = await store.cursors.answered(GROUP, "Kant", most=9)
        assert second is not None
        await store.inbox.edit(a_message("changed", id="m3", edited_at=LATER), at=LATER)

        assert [[one.id for one in found.messages] for found in (first, second)] == [["m1"], ["m3"]]
        assert between is None
        assert await store.facts.learn([a_fact(id="f2", agent="Kant", sources=("m3",))], reading=second) == []
        assert await known(store, seen_by=SeenBy(agent="Kant", own=True)) == ["likes tea"]
