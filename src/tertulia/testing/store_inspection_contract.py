"""InspectionContract: the tests of what is read of a store to be shown."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from tertulia.context.values import RecalledThing
from tertulia.decisions import Decision
from tertulia.engine.inspection import Spent
from tertulia.engine.store_protocols import DeliveryAttempt, StoreProtocol
from tertulia.errors import InvalidValue
from tertulia.memory.values import Episode, IndexEntry, Subject, Summary
from tertulia.models.base import Usage
from tertulia.models.calls import Call
from tertulia.models.prices import Price
from tertulia.parts import Media
from tertulia.testing.store_memory_contract import a_fact, learn
from tertulia.testing.store_world import (
    ALICE,
    BOB,
    DIRECT,
    GROUP,
    LATER,
    ME,
    NOON,
    PROMPT,
    a_message,
    a_record,
    a_reply,
    a_run,
    a_talk,
    a_task,
    a_tool_run,
    check,
    receive,
    say,
)
from tertulia.turns import Layer, Prompt

PRICE = Price(input=1.0, cached=0.1, output=2.0)


def a_call(**changes: object) -> Call:
    fields: dict[str, object] = {
        "model": "m", "begun_at": NOON, "ended_at": NOON + timedelta(seconds=2), "run": "r1", "step": 0,
        "usage": Usage(input=1000, cached=600, output=100, thought=50), "price": PRICE, "money": 0.00076,
    }  # fmt: skip
    return Call(**fields | changes)  # type: ignore[arg-type]


SPENT = Spent(calls=1, input=1000, cached=600, output=150, money=0.00076, without_cache=0.0013)


def rounded(spent: Spent) -> Spent:
    return replace(spent, money=round(spent.money, 9), without_cache=round(spent.without_cache, 9))


class InspectionContract:
    """Places in numbers, messages with what became of them, runs with their cost, the sums of a day."""

    @check
    async def test_a_place_is_summed_up(self, store: StoreProtocol) -> None:
        await receive(store, a_message("one"), a_message("two", id="m2"), a_message("three", id="m3", place=DIRECT))
        await store.runs.begin(a_run(), PROMPT, at=NOON)
        await say(store, "Yes?", as_id="s1")
        await store.outbox.put(a_reply(id="o9", status="doubtful"))
        found = {one.place.key: one for one in await store.inspection.places()}
        (alone,) = await store.inspection.places(DIRECT)

        group = found[GROUP.key]
        assert (group.messages, group.runs, group.waiting, group.doubtful) == (3, 1, 1, 1)
        assert (group.open_since, group.failed) == (NOON, None)
        assert group.last
        assert (group.last.number, group.last.message.text) == (2, "Yes?")
        assert group.event > 0
        assert found[DIRECT.key] == alone
        assert (alone.messages, alone.runs, alone.waiting, alone.open_since) == (1, 0, 1, None)

    @check
    async def test_a_place_has_failed_if_its_last_run_did_and_not_by_a_limit(self, store: StoreProtocol) -> None:
        await receive(store, a_message(), a_message(id="m2"))
        failed = a_run(status="failed", ended_at=LATER, why="it refused")
        await store.runs.begin(a_run(), PROMPT, at=NOON)
        await store.runs.end(failed)
        before = (await store.inspection.places())[0].failed
        limited = {"m2": Decision(reason="rate limit")}
        notice = a_run(id="r2", target="m2", taken=("m2",), horizon=0, status="failed", ended_at=LATER)
        await store.runs.end(replace(notice, decisions=limited))

        assert before == failed
        assert (await store.inspection.places())[0].failed is None

    @check
    async def test_messages_come_with_their_decisions_and_deliveries(self, store: StoreProtocol) -> None:
        talk = a_talk(4)
        await receive(store, *talk)
        await say(store, "Yes?", as_id="s1", run="r1")
        await store.inbox.skip(GROUP, {"1": Decision(reason="not addressed")}, at=LATER)
        await store.inbox.delete(GROUP, "2", at=LATER)

        every = await store.inspection.messages(GROUP, most=9)
        page = await store.inspection.messages(GROUP, before=3, most=2)
        some = await store.inspection.messages(GROUP, ids=["0", "s1", "?"], most=9)
        people = await store.inspection.messages(GROUP, people=True, most=2)

        assert [one.number for one in every] == [0, 1, 2, 3, 4]
        assert [[made.reason for made in one.decisions] for one in every] == [
            ["waiting"], ["not addressed"], ["withdrawn"], ["waiting"], [],
        ]  # fmt: skip
        assert [one.received_at for one in every] == [NOON, NOON, NOON, NOON, None]
        assert [one.delivery and (one.delivery.run, one.delivery.status) for one in every][3:] == [None, ("r1", "sent")]
        assert [one.number for one in page] == [1, 2]
        assert [one.number for one in some] == [0, 4]
        assert [one.number for one in people] == [2, 3]
        assert await store.inspection.messages(DIRECT, most=9) == []

    @check
    async def test_blocks_are_read_as_they_are_now(self, store: StoreProtocol) -> None:
        await store.place_settings.block(platform=GROUP.platform, author_id=BOB.id, at=NOON)

        assert set(await store.inspection.blocked()) == {(GROUP.platform, BOB.id)}

    @check
    async def test_runs_come_with_target_cost_and_last_prompt(self, store: StoreProtocol) -> None:
        await receive(store, a_message(), a_message(id="m2", place=DIRECT))
        await store.runs.begin(a_run(), PROMPT, at=NOON)
        layers = (Layer(name="static", instruction="Be kind."), Layer(name="trigger", turns=PROMPT.turns))
        await store.runs.ask(a_run(), 1, Prompt(layers=layers), at=NOON)
        await store.runs.add_record(a_run(), 0, a_record(), call=a_call())
        other = a_run(id="r2", place=DIRECT, target="m2", taken=("m2",), status="failed", ended_at=LATER)
        await store.runs.begin(replace(other, status="open", ended_at=None), PROMPT, at=NOON)
        await store.runs.end(other)

        second, first = await store.inspection.runs(most=9)

        assert (first.run, second.run) == (a_run(), other)
        assert first.target
        assert (first.target.number, first.target.message.id, rounded(first.spent)) == (0, "m1", SPENT)
        assert first.layers == ("static", "trigger")
        assert len(first.size.layers) == 2
        assert second.spent == Spent()
        for named in ({"place": GROUP}, {"status": "open"}, {"before": "r2"}, {"ids": ["r1"]}):
            assert [one.run.id for one in await store.inspection.runs(most=9, **named)] == ["r1"]

    @check
    async def test_prompts_of_a_day_come_with_layers_calls_and_tools(self, store: StoreProtocol) -> None:
        await receive(store, a_message())
        await store.runs.begin(a_run(), PROMPT, at=NOON)
        await store.runs.add_call(a_run(), a_call(status="failed", usage=Usage(), money=0.0))
        await store.runs.add_record(a_run(), 0, a_record(), call=a_call())
        await store.runs.begin_tool(a_run(), a_tool_run())
        await store.runs.ask(a_run(), 1, PROMPT, at=LATER)
        await store.runs.ask(a_run(), 1, PROMPT, at=LATER + timedelta(seconds=1))
        later = a_run(id="r2", target="m9", taken=(), began_at=NOON + timedelta(days=1))
        await store.runs.begin(later, PROMPT, at=NOON + timedelta(days=1))

        first, second = await store.inspection.sent(place=GROUP, day=NOON.date(), most=9)
        (last,) = await store.inspection.sent(runs=["r2"], most=9)

        assert (first.run_id, first.step, first.at, first.status, first.after) == ("r1", 0, NOON, "answered", ())
        assert rounded(first.spent) == replace(SPENT, calls=2)
        assert (second.step, second.at, second.status) == (1, LATER + timedelta(seconds=1), "under way")
        assert second.after == ("look",)
        assert second.target
        assert second.target.message.id == "m1"
        assert len(second.layers) == len(second.size.layers) == len(PROMPT.layers)
        assert (last.run_id, last.target) == ("r2", None)
        assert list(await store.inspection.days(GROUP)) == [NOON.date() + timedelta(days=1), NOON.date()]
        assert list(await store.inspection.sent(place=GROUP, day=NOON.date(), most=1)) == [second]
        with pytest.raises(InvalidValue, match="say which runs, or a place and a day"):
            await store.inspection.sent(place=GROUP, most=1)

    @check
    async def test_tools_replies_and_tasks_are_found_by_their_runs(self, store: StoreProtocol) -> None:
        await store.runs.begin(a_run(), PROMPT, at=NOON)
        await store.runs.begin_tool(a_run(), a_tool_run())
        task, reply = a_task(run="r1", due_at=LATER), a_reply(run="r1")
        await store.runs.end(a_run(status="done", ended_at=LATER), replies=[reply], tasks=[task])
        await store.outbox.change(
            replace(reply, status="sending", attempts=1, attempt=DeliveryAttempt(number=1, begun_at=NOON))
        )

        assert dict(await store.inspection.tools(["r1", "r2"])) == {"r1": [a_tool_run()]}
        assert [one.id for one in await store.inspection.replies(["r1", "r2"])] == ["o1"]
        assert list(await store.inspection.tasks(["r1"])) == [task]
        assert list(await store.inspection.due_tasks(most=9)) == [task]

    @check
    async def test_calls_are_summed_by_place_model_and_hour(self, store: StoreProtocol) -> None:
        await receive(store, a_message())
        await store.runs.begin(a_run(), PROMPT, at=NOON)
        await store.runs.add_record(a_run(), 0, a_record(), call=a_call())
        failed = a_call(status="failed", error="Overloaded", why="busy", usage=Usage(), price=None, money=0.0)
        await store.runs.add_call(a_run(), failed)
        await store.usage.add(a_call(run=None, step=None, model="n", price=None, money=0.0), place=None)
        old = a_call(run=None, step=None, ended_at=NOON - timedelta(days=1))
        await store.usage.add(old, place=None)

        sums = {one.model: one for one in await store.inspection.call_sums(NOON)}
        of_group = await store.inspection.call_sums(NOON, place=GROUP)
        of_nowhere = await store.inspection.call_sums(NOON, place=replace(GROUP, id="none"))

        ended = NOON + timedelta(seconds=2)
        assert (sums["m"].place, sums["m"].hour, rounded(sums["m"].spent)) == (GROUP.key, NOON, replace(SPENT, calls=2))
        assert (sums["m"].failed, sums["m"].answered_at, sums["m"].failed_at) == (1, ended, ended)
        assert sums["n"].place is None
        assert (list(of_group), list(of_nowhere)) == ([sums["m"]], [])
        assert sums["n"].spent == Spent(calls=1, input=1000, cached=600, output=150, unpriced=1)
        times = await store.inspection.call_times(most=3)
        assert list(times)[1:] == [
            Call(model="n", begun_at=NOON, ended_at=ended),
            Call(model="m", begun_at=NOON, ended_at=ended, status="failed", error="Overloaded", why="busy"),
        ]

    @check
    async def test_a_bot_is_told_in_numbers(self, store: StoreProtocol) -> None:
        await receive(store, a_message(), a_message(id="m2"), a_message(id="m3"))
        await store.runs.begin(a_run(), PROMPT, at=NOON)
        await store.runs.add_record(a_run(), 0, a_record(), call=a_call())
        failed = a_call(status="failed", error="Overloaded", why="busy", usage=Usage(), price=None, money=0.0)
        await store.runs.add_call(a_run(), failed)
        await store.runs.begin(a_run(id="r2", taken=("m2",)), PROMPT, at=NOON)
        await store.runs.end(a_run(id="r2", taken=("m2",), status="done", ended_at=LATER))
        await store.outbox.put(a_reply(status="doubtful", attempts=1))
        await store.tasks.add([a_task(id="t1", due_at=NOON), a_task(id="t2", due_at=LATER)])

        found = await store.inspection.figures(NOON, now=NOON)

        assert (found.waiting, found.waiting_since, found.open_runs) == (1, NOON, 1)
        assert (found.runs, found.replies) == ({"open": 1, "done": 1}, {"doubtful": 1})
        assert [(one.status, rounded(one.spent)) for one in found.calls] == [
            ("answered", SPENT),
            ("failed", Spent(calls=1)),
        ]
        assert (found.tasks_due, found.tasks_pending) == (1, 2)
        assert found.newest_event_at == NOON

    @check
    async def test_a_day_is_counted(self, store: StoreProtocol) -> None:
        await receive(store, a_message(), a_message(id="m2"))
        await store.runs.begin(a_run(), PROMPT, at=NOON)
        done = a_run(status="done", ended_at=LATER, seconds=2.5)
        await store.runs.end(done, replies=[a_reply(run="r1", author=ME)])
        await store.outbox.put(a_reply(run="r1", author=ME, status="sent", message_id="s1"))
        await learn(store, a_fact())
        today, tomorrow = (
            await store.inspection.day(NOON.date()),
            await store.inspection.day(LATER.date().replace(day=16)),
        )

        assert today.agent == ME
        assert (today.done, today.failed, today.sent, today.seconds) == (1, 0, 1, (2.5,))
        assert (today.messages, today.prompts, today.facts, today.episodes) == (3, 1, 1, 0)
        assert (tomorrow.done, tomorrow.sent, tomorrow.seconds, tomorrow.messages) == (0, 0, (), 3)

    @check
    async def test_what_was_recalled_is_found_by_its_id(self, store: StoreProtocol) -> None:
        await learn(store, fact := a_fact())
        thing = RecalledThing(kind="fact", id=fact.id, why="it is known of the author")
        await store.runs.begin(a_run(target="m9", taken=()), PROMPT, at=NOON, recalled=[thing])

        assert await store.runs.recalled("r1") == [thing]
        assert dict(await store.inspection.facts([fact.id, "?"])) == {fact.id: fact}
        assert dict(await store.inspection.episodes(["?"])) == {}
        assert await store.prompts.runs("r") == ["r1"]
        assert [one.step for one in await store.prompts.sent_by("r1")] == [0]

    @check
    async def test_people_come_with_their_names_messages_and_facts(self, store: StoreProtocol) -> None:
        later = replace(ALICE, name="Alisa")
        await receive(store, a_message(), a_message(id="m2", author=BOB), a_message(id="m3", author=later))
        await say(store, "Yes?", as_id="s1")
        await learn(store, a_fact())
        await store.place_settings.block(platform=GROUP.platform, author_id=BOB.id, at=NOON)

        every = await store.inspection.people(most=9)
        there = await store.inspection.people(place=GROUP, most=9)
        (bob,) = await store.inspection.people(person=Subject(platform=GROUP.platform, id=BOB.id), most=9)

        assert [(one.person.name, one.names, one.messages, one.facts, one.blocked) for one in every] == [
            ("Alisa", ("Alisa", "Alice"), 2, 1, False),
            ("Bob", ("Bob",), 1, 0, True),
        ]
        assert list(there) == list(every)
        assert (bob, bob.last_at) == (every[1], NOON)
        assert await store.inspection.people(person=Subject(platform=GROUP.platform, id="?"), most=9) == []
        assert [place.key for place in await store.inspection.places_of(bob.person)] == [GROUP.key]
        assert dict(await store.inspection.names([ALICE.id])) == {(GROUP.platform, ALICE.id): "Alisa"}

    @check
    async def test_facts_come_with_sources_and_uses_and_can_be_planned_to_be_forgotten(
        self, store: StoreProtocol
    ) -> None:
        await learn(store, fact := a_fact())
        subject = Subject(platform=GROUP.platform, id=ALICE.id)
        summary = Summary(subject=subject, place=GROUP, text="She likes tea.", facts=1, digest="d", made_at=NOON)
        await store.facts.summarise(summary, made_of=[fact.id])
        thing = RecalledThing(kind="fact", id=fact.id, why="it is known of the author")
        await store.runs.begin(a_run(), PROMPT, at=NOON, recalled=[thing])

        await store.runs.begin(a_run(id="r2", target="m2", taken=()), PROMPT, at=NOON)

        use = (await store.inspection.fact_uses([fact.id]))[fact.id]
        shown_to = await store.inspection.runs(fact=fact.id, most=9)

        assert [one.run.id for one in shown_to] == ["r1"]
        assert ([one.message.id for one in use.sources], use.runs) == (["m1"], 1)
        assert list(await store.inspection.summaries(subject)) == [summary]
        planned = {"facts": 1, "messages": 1, "summaries": 1}
        assert dict(await store.inspection.plan_forget_facts([fact.id])) == planned
        plan = await store.plan_forget(platform=GROUP.platform, author_id=ALICE.id)
        assert (plan.report().known, plan.report().facts, plan.report().messages) == (True, 1, 1)
        assert await store.export_person(platform=GROUP.platform, author_id=ALICE.id)

    @check
    async def test_the_newest_episodes_are_those_of_a_person_or_a_place(self, store: StoreProtocol) -> None:
        await receive(store, *a_talk(4))
        for number, people in enumerate(((ALICE.id, BOB.id), (BOB.id,))):
            seen = await store.episodes.cursor(GROUP)
            assert seen is not None
            episode = Episode(id=f"e{number}", place=GROUP, start=2 * number, stop=2 * number + 2, people=people)
            assert await store.episodes.add(episode, seen=seen)
        alice = Subject(platform=GROUP.platform, id=ALICE.id)

        assert [one.id for one in await store.inspection.newest_episodes(place=GROUP, most=9)] == ["e1", "e0"]
        assert [one.id for one in await store.inspection.newest_episodes(person=alice, most=9)] == ["e0"]
        assert [one.id for one in await store.inspection.newest_episodes(place=GROUP, most=1)] == ["e1"]
        assert set(await store.inspection.episodes(["e0", "e9"])) == {"e0"}

    @check
    async def test_the_outbox_tasks_and_media_are_bounded_lists(self, store: StoreProtocol) -> None:
        for name, status in (("o1", "sent"), ("o2", "waiting"), ("o3", "sent"), ("o4", "doubtful")):
            await store.outbox.put(a_reply(id=name))
            await store.outbox.put(a_reply(id=name, status=status, message_id=None if status == "waiting" else name))
        await store.tasks.add([a_task(id="t1"), a_task(id="t2")])
        photo = Media(media_kind="photo", unique_id="p1", file_id="f")
        await receive(store, a_message(parts=(photo,)), a_message(id="m2", parts=(replace(photo, unique_id="p2"),)))
        await store.descriptions.describe("p1", "a cat", by="m", at=NOON)
        await store.inbox.delete(GROUP, "m2", at=LATER)

        (media,) = await store.inspection.media(most=9)

        assert [one.id for one in await store.inspection.outbox(most=3)] == ["o4", "o2", "o3"]
        assert [one.id for one in await store.inspection.tasks_listed(most=9)] == ["t2", "t1"]
        assert (media.unique_id, media.kind, media.file, media.description) == ("p1", "photo", None, "a cat")
        assert (media.message.number, media.failure) == (0, "")

    @check
    async def test_messages_of_all_places_are_searched_by_index_and_by_text(self, store: StoreProtocol) -> None:
        await receive(store, *a_talk(3), a_message("elsewhere", id="m9", place=DIRECT))
        batch = await store.index_writer.unindexed(GROUP, most=10)
        assert batch is not None
        entries = [
            IndexEntry(
                number=one.number, name=one.name, at=0, length=2, traits=0, words={"tea": 1, f"n{one.number}": 2}
            )
            for one in batch.said
        ]
        assert await store.index_writer.add(batch, entries)
        await store.inbox.delete(GROUP, "2", at=LATER)

        found = await store.inspection.search([("te", False), ("n0", True)], most=9)

        assert [(one.message.id, one.matches) for one in found] == [("0", 2), ("1", 1)]
        assert await store.inspection.search([], most=9) == []
        assert await store.inspection.search([("zebra", True)], most=9) == []
        texts = ["elsewhere", "number"]
        assert [one.message.id for one in await store.inspection.containing(texts, most=9)] == ["m9"]
        assert await store.inspection.containing(["100%", "a_b", "!"], most=9) == []
