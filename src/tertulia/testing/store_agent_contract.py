"""AgentContract: the tests of what several agents of one engine need of a store."""

import pytest
from msgspec.structs import replace

from tertulia.decisions import Decision
from tertulia.engine.store_protocols import AddedAgent, AgentStay, PlaceCast, PromptOutdated, SendStatus, StoreProtocol
from tertulia.events import MessageDecided
from tertulia.models.base import Usage
from tertulia.models.calls import Call
from tertulia.platform import Edited, PlaceMigrated, Received
from tertulia.testing.store_world import (
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
    a_task,
    apply,
    check,
    log_of,
    receive,
    say,
)

KANT = Decision(reason="answered", address="name", agent="Kant")
HUME = Decision(reason="waiting", address="mention", agent="Hume")
HEGEL = Decision(reason="waiting", address="name", agent="Hegel")
USED = Usage(input=100, cached=40, output=7, thought=3)


async def decided(store: StoreProtocol, message_id: str = "m1") -> list[tuple[str, str, str | None]]:
    """Return the agents, reasons and runs of the decisions about a message."""
    ((_, made),) = await store.inbox.decided(GROUP, message_id, most=1)
    return [(one.agent, one.reason, one.run_id) for one in made]


async def waits(store: StoreProtocol) -> list[tuple[str, str, str | None]]:
    """Return what waits in the group: the message, for whom, and how it speaks to them."""
    return [(one.message.id, one.agent, one.address) for one in await store.inbox.waiting(GROUP)]


class AgentContract:
    """Several agents share one log: what each wrote, answers, plans and spends has its name."""

    @check
    async def test_a_message_has_the_agent_that_wrote_it(self, store: StoreProtocol) -> None:
        await receive(store, a_message())
        await say(store, "Yes?", as_id="77", agent="Kant")
        await say(store, "Yes.", as_id="78")
        shown = a_message("An echo.", id="79", author=ME, agent="Hume")
        await apply(store, Received(message=shown), Edited(message=a_message("No.", id="77", author=ME, agent="Hume")))

        assert [(one.id, one.text, one.agent) for one in await log_of(store)] == [
            ("m1", "hello", None),
            ("77", "No.", "Kant"),
            ("78", "Yes.", ""),
            ("79", "An echo.", "Hume"),
        ]

    @check
    async def test_a_receipt_says_which_agent_wrote_what_the_platform_showed(self, store: StoreProtocol) -> None:
        reply = a_reply("Yes?", author=ME, agent="Kant")
        await store.outbox.put(reply)
        await apply(store, Received(message=a_message("Yes?", id="77", author=ME, agent="")))
        await store.outbox.put(replace(reply, status="sent", message_id="77", sent_at=LATER))

        assert [(one.id, one.agent) for one in await log_of(store)] == [("77", "Kant")]
        assert [one.agent for one in await store.outbox.listed()] == ["Kant"]

    @check
    async def test_a_run_and_a_task_have_their_agent(self, store: StoreProtocol) -> None:
        await receive(store, a_message())
        run, task = a_run(agent="Kant"), a_task(agent="Kant", run="r1")
        await store.runs.begin(run, PROMPT, at=NOON)
        await store.runs.end(replace(run, status="done", ended_at=LATER), tasks=[task])
        await store.tasks.take(LATER)

        assert [one.run.agent for one in await store.inspection.runs(most=9)] == ["Kant"]
        assert [one.agent for one in await store.inspection.sent(runs=["r1"], most=9)] == ["Kant"]
        assert [(one.agent, one.status) for one in await store.tasks.listed()] == [("Kant", "running")]

    @check
    async def test_usage_is_summed_by_agent(self, store: StoreProtocol) -> None:
        await receive(store, a_message())
        call = Call(model="m", usage=USED, money=0.5, begun_at=NOON, ended_at=NOON)
        for number, agent in enumerate(("Kant", "Hume", "Kant")):
            run = a_run(id=f"r{number}", agent=agent, taken=())
            await store.runs.begin(run, PROMPT, at=NOON)
            await store.runs.add_record(run, 0, a_record(), call=replace(call, run=run.id))
            await store.runs.add_call(run, replace(call, run=run.id, status="failed"))
        await store.usage.add(replace(call, agent="Hume"), place=GROUP)
        await store.usage.add(call, place=GROUP)

        found = [(row.agent, row.person is None, row.calls) for row in await store.usage.listed(NOON.date())]
        assert sorted(found) == [("", True, 1), ("Hume", False, 2), ("Hume", True, 1), ("Kant", False, 4)]
        assert [one.call.agent for one in await store.usage.calls(run="r1", most=9)] == ["Hume", "Hume"]
        assert (await store.usage.spent(NOON.date(), place=GROUP)).money == 4.0

    @check
    async def test_a_run_begins_for_one_agent_and_leaves_the_message_to_the_others_meant(
        self, store: StoreProtocol
    ) -> None:
        await receive(store, a_message(), a_message(id="m2"))
        undecided = await waits(store)
        run = a_run(agent="Kant", decisions={"m1": KANT}, meant={"m1": (HUME, HEGEL)})
        await store.runs.begin(run, PROMPT, at=LATER)

        assert undecided == [("m1", "", None), ("m2", "", None)]
        assert await waits(store) == [("m1", "Hume", "mention"), ("m1", "Hegel", "name"), ("m2", "", None)]
        assert [one.since for one in await store.inbox.waiting(GROUP)] == [NOON] * 3
        assert await decided(store) == [
            ("Kant", "answered", "r1"),
            ("Hume", "waiting", None),
            ("Hegel", "waiting", None),
        ]
        summary = [one.waiting for one in await store.inspection.places(GROUP)]
        await store.runs.begin(a_run(id="r2", agent="Hume"), PROMPT, at=LATER)
        assert await waits(store) == [("m1", "Hegel", "name"), ("m2", "", None)]
        assert summary == [2]  # messages
        with pytest.raises(PromptOutdated, match="message 'm1' was taken by run 'r2' already"):
            await store.runs.begin(a_run(id="r3", agent="Hume"), PROMPT, at=LATER)

    @check
    async def test_a_message_that_one_agent_skips_waits_for_the_others_meant(self, store: StoreProtocol) -> None:
        await receive(store, a_message())
        over = {"m1": replace(KANT, reason="rate limit")}

        assert not await store.inbox.skip(GROUP, over, at=LATER, changes=9, meant={"m1": (HUME,)})
        assert await waits(store) == [("m1", "", None)]
        assert await store.inbox.skip(GROUP, over, at=LATER, changes=0, meant={"m1": (HUME,)})
        assert await waits(store) == [("m1", "Hume", "mention")]
        await store.inbox.skip(GROUP, {"m1": replace(HUME, reason="agents in a row")}, at=LATER)
        assert await decided(store) == [("Kant", "rate limit", None), ("Hume", "agents in a row", None)]
        told = [one for one in await store.events.read(after="") if isinstance(one, MessageDecided)]
        assert [(one.agent, one.reason) for one in told] == [("Kant", "rate limit"), ("Hume", "agents in a row")]

    @check
    async def test_what_a_run_takes_in_waits_for_the_others_meant(self, store: StoreProtocol) -> None:
        await receive(store, a_message(), a_message(id="m2"))
        run = a_run(agent="Kant", decisions={"m1": KANT})
        await store.runs.begin(run, PROMPT, at=LATER)
        joined = {**run.decisions, "m2": replace(KANT, reason="joined")}
        grown = replace(run, taken=("m1", "m2"), decisions=joined, meant={"m2": (HUME,)})
        await store.runs.ask(grown, 1, PROMPT, at=LATER)

        assert await waits(store) == [("m2", "Hume", "mention")]
        assert await decided(store, "m2") == [("Kant", "joined", "r1"), ("Hume", "waiting", None)]

    @check
    async def test_an_edited_message_waits_undecided_beside_the_agents_that_acted_on_it(
        self, store: StoreProtocol
    ) -> None:
        await receive(store, a_message())
        run = a_run(agent="Kant", decisions={"m1": KANT}, meant={"m1": (HUME,)})
        await store.runs.begin(run, PROMPT, at=NOON)
        await store.inbox.edit(a_message("Hegel?", edited_at=LATER), at=LATER)
        (waiting,) = await store.inbox.waiting(GROUP)
        again = await decided(store)
        with pytest.raises(PromptOutdated, match="message 'm1' was taken by run 'r1' already"):
            await store.runs.begin(a_run(id="r2", agent="Kant"), PROMPT, at=LATER)
        run = a_run(id="r2", agent="Hegel", meant={"m1": (replace(KANT, reason="waiting"),)})
        await store.runs.begin(run, PROMPT, at=LATER)

        assert (waiting.agent, waiting.address, waiting.acted, waiting.since) == ("", None, ("Kant",), LATER)
        assert again == [("", "waiting", None), ("Kant", "answered", "r1")]
        assert await waits(store) == []
        assert await decided(store) == [("Hegel", "answered", "r2"), ("Kant", "answered", "r1")]

    @check
    async def test_an_edit_that_means_nobody_else_ends(self, store: StoreProtocol) -> None:
        await receive(store, a_message())
        await store.runs.begin(a_run(agent="Kant", decisions={"m1": KANT}), PROMPT, at=NOON)
        await store.inbox.edit(a_message("Kant!", edited_at=LATER), at=LATER)
        await store.inbox.skip(GROUP, {"m1": KANT}, at=LATER)

        assert await waits(store) == []
        assert await decided(store) == [("Kant", "answered", "r1")]

    @check
    async def test_what_waits_for_agents_ends_with_the_message(self, store: StoreProtocol) -> None:
        await receive(store, a_message())
        run = a_run(agent="Kant", decisions={"m1": KANT}, meant={"m1": (HUME, HEGEL)})
        await store.runs.begin(run, PROMPT, at=NOON)
        await store.inbox.delete(GROUP, "m1", at=LATER)

        assert await decided(store) == [
            ("Kant", "answered", "r1"),
            ("Hume", "withdrawn", None),
            ("Hegel", "withdrawn", None),
        ]

    @check
    async def test_a_sent_message_waits_for_the_other_agents_where_its_reply_says_so(
        self, store: StoreProtocol
    ) -> None:
        await say(store, "Alone.", as_id="76", agent="Kant")
        await say(store, "Hegel?", as_id="77", agent="Kant", waits=True, sent_at=LATER)
        (waiting,) = await store.inbox.waiting(GROUP)
        run = a_run(agent="Hegel", target="77", taken=("77",))
        await store.runs.begin(run, PROMPT, at=LATER)

        assert (waiting.message.id, waiting.message.agent, waiting.agent, waiting.since) == ("77", "Kant", "", LATER)
        assert await decided(store, "77") == [("Hegel", "answered", "r1")]
        assert await store.inbox.decided(GROUP, "76", most=1) == []

    @check
    async def test_a_reply_in_parts_waits_for_the_others_once_nothing_of_it_is_left_to_send(
        self, store: StoreProtocol
    ) -> None:
        found = []
        for reply_id, last in (("a", "sent"), ("b", "dropped")):
            parts = [
                a_reply(id=f"{reply_id}{n}", author=ME, reply_id=reply_id, part=n, separator=" " * n, waits=True)
                for n in range(2)
            ]
            await store.outbox.put(*parts)
            await store.outbox.put(replace(parts[0], status="sent", message_id=f"{reply_id}7", sent_at=NOON))
            found.append([one.message.id for one in await store.inbox.waiting(GROUP)])
            status: SendStatus = "sent" if last == "sent" else "dropped"
            await store.outbox.put(replace(parts[1], status=status, message_id=f"{reply_id}8", sent_at=LATER))
            found.append([one.message.id for one in await store.inbox.waiting(GROUP)])

        assert found == [[], ["a7"], ["a7"], ["a7", "b7"]]

    @check
    async def test_what_a_run_answered_before_its_receipt_does_not_wait_again(self, store: StoreProtocol) -> None:
        shown, reply = a_message("Hegel?", id="77", author=ME), a_reply("Hegel?", author=ME, agent="Kant", waits=True)
        await store.outbox.put(reply)
        await apply(store, Received(message=shown))
        run = a_run(agent="Hegel", target="77", taken=("77",), meant={"77": (HUME,)})
        await store.runs.begin(run, PROMPT, at=LATER)
        await store.outbox.put(replace(reply, status="sent", message_id="77", sent_at=LATER))
        answered = await decided(store, "77")
        again = replace(reply, id="o2", status="doubtful", sent_at=LATER)
        await store.outbox.put(again)
        await apply(store, Received(message=replace(shown, id="78")), key="u2")
        before = await waits(store)
        await store.runs.begin(replace(run, id="r2", target="78", taken=("78",), meant={}), PROMPT, at=LATER)
        await store.outbox.put(replace(again, status="sent", message_id="78"))

        assert answered == [("Hegel", "answered", "r1"), ("Hume", "waiting", None)]
        assert before == [("77", "Hume", "mention"), ("78", "", None)]
        assert await decided(store, "78") == [("Hegel", "answered", "r2")]
        assert await waits(store) == [("77", "Hume", "mention")]

    @check
    async def test_a_removed_agent_has_nothing_left_to_do(self, store: StoreProtocol) -> None:
        await receive(store, a_message(), a_message(id="m2"))
        await store.runs.begin(a_run(agent="Kant", decisions={"m1": KANT}, meant={"m1": (HUME,)}), PROMPT, at=NOON)
        await store.tasks.add(
            [
                a_task(id="t1", agent="Hume"),
                a_task(id="t2", agent="Hume", after=("t1",)),
                a_task(id="t3", agent="Kant"),
                a_task(id="t4", agent="Hume", place=DIRECT),
            ]
        )
        await store.tasks.add([a_task(id="t0", agent="Hume", status="done")])
        told = await store.agents.drop_waiting("Hume", at=LATER)

        assert [(one.id, one.status) for one in told] == [
            ("t1", "cancelled"), ("t2", "cancelled"), ("t4", "cancelled"),
        ]  # fmt: skip
        assert await waits(store) == [("m2", "", None)]
        assert await decided(store) == [("Kant", "answered", "r1"), ("Hume", "agent removed", None)]
        assert {one.id: one.status for one in await store.tasks.listed()} == {
            "t0": "done", "t1": "cancelled", "t2": "cancelled", "t3": "pending", "t4": "cancelled",
        }  # fmt: skip
        assert list(await store.agents.drop_waiting("Hume", at=LATER)) == []

    @check
    async def test_an_agent_is_in_a_place_from_one_message_to_another(self, store: StoreProtocol) -> None:
        assert not await store.agents.had_several()
        await store.agents.join(GROUP, "Kant", at=NOON)
        assert await store.agents.had_several()
        await receive(store, a_message(), a_message(id="m2"))
        for _ in range(2):
            await store.agents.join(GROUP, "Hume", at=NOON)
            await store.agents.join(DIRECT, "Hume", at=NOON)
        await store.agents.leave(GROUP, "Kant", at=LATER)
        await store.agents.join(GROUP, "Hegel", at=LATER)
        await store.agents.leave(GROUP, "Hegel", at=LATER)
        await receive(store, a_message(id="m3"))
        await store.agents.join(GROUP, "Kant", at=LATER)
        await store.agents.leave(GROUP, "Nobody", at=LATER)
        await store.agents.join(GROUP, "Fichte", at=LATER, since=0)

        assert await store.agents.stays(GROUP) == {
            "Fichte": [AgentStay(since=0, joined_at=LATER)],
            "Hume": [AgentStay(since=2, joined_at=NOON)],
            "Kant": [
                AgentStay(since=0, until=2, joined_at=NOON, left_at=LATER),
                AgentStay(since=3, joined_at=LATER),
            ],
        }
        assert list(await store.agents.places_of("Hume")) == [GROUP, DIRECT]
        assert list(await store.agents.places_of("Hegel")) == []
        assert await store.agents.stays(replace(GROUP, id="other")) == {}

    @check
    async def test_a_place_that_migrates_keeps_its_agents(self, store: StoreProtocol) -> None:
        new = replace(GROUP, id="-100999")
        await receive(store, a_message(), a_message(id="m2", place=new))
        await store.agents.join(GROUP, "Kant", at=NOON)
        for agent in ("Kant", "Hume"):
            await store.agents.join(new, agent, at=LATER)
        await store.agents.set_cast(new, PlaceCast(agents=("Kant",)))
        await store.agents.set_cast(GROUP, PlaceCast(agents=("Kant", "Hume"), default="Hume"))
        await apply(store, PlaceMigrated(old=GROUP, new=new))

        assert await store.agents.stays(new) == {
            "Hume": [AgentStay(since=2, joined_at=LATER)],
            "Kant": [AgentStay(since=1, joined_at=NOON)],
        }
        assert await store.agents.cast(new) == PlaceCast(agents=("Kant", "Hume"), default="Hume")

    @check
    async def test_a_place_has_the_agents_that_were_chosen_for_it(self, store: StoreProtocol) -> None:
        before = await store.agents.cast(GROUP)
        await store.agents.set_cast(GROUP, PlaceCast(default="Kant"))
        first = await store.agents.cast(GROUP)
        await store.agents.set_cast(GROUP, PlaceCast(agents=("Kant", "Hume")))

        assert (before, first) == (PlaceCast(), PlaceCast(default="Kant"))
        assert await store.agents.cast(GROUP) == PlaceCast(agents=("Kant", "Hume"))
        assert await store.agents.cast(DIRECT) == PlaceCast()

    @check
    async def test_who_added_an_agent_is_forgotten_and_the_agent_stays(self, store: StoreProtocol) -> None:
        kant = AddedAgent(name="Kant", text="You doubt.", at=NOON, service="telegram", who="7")
        hume = AddedAgent(name="Hume", text="You believe.", at=NOON)
        for agent in (kant, hume, replace(kant, text="You think.", at=LATER)):
            await store.agents.add(agent)
        added = list(await store.agents.added())
        exported = await store.export_person(platform="telegram", author_id="7")
        await store.forget(platform="telegram", author_id="7", at=LATER)
        left = list(await store.agents.added())
        removed = [await store.agents.remove("Hume", at=LATER) for _ in range(2)]

        assert added == [hume, replace(kant, text="You think.", at=LATER)]
        assert [(one["name"], one["text"]) for one in exported["agents"]] == [
            ("Kant", "You doubt."),
            ("Kant", "You think."),
        ]
        assert left == [hume, replace(kant, text="You think.", at=LATER, service="", who="")]
        assert removed == [True, False]
        assert [one.name for one in await store.agents.added()] == ["Kant"]

    @check
    async def test_what_is_stored_of_the_agents_of_a_place_goes_with_it(self, store: StoreProtocol) -> None:
        await receive(store, a_message(place=DIRECT, author=replace(a_message().author, id=DIRECT.id)))
        await store.agents.join(DIRECT, "Kant", at=NOON)
        await store.agents.set_cast(DIRECT, PlaceCast(default="Kant"))
        await store.forget(platform="telegram", author_id=DIRECT.id, at=LATER)

        assert (await store.agents.stays(DIRECT), await store.agents.cast(DIRECT)) == ({}, PlaceCast())
