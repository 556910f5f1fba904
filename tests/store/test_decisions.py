from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from people import ALICE, DIRECT, GROUP, NOON, a_message
from store.builders import PROMPT, a_run, skip
from stored_rows import change, on
from tertulia.decisions import Decision, Reason, waits_after_edit
from tertulia.errors import InvalidValue
from tertulia.events import MessageDecided
from tertulia.messages import Place
from tertulia.store import Store, decisions

LATER = NOON + timedelta(minutes=5)


async def decided(store: Store, place: Place = GROUP) -> dict[str, Decision]:
    """The only decision about each message."""
    return {message.id: made for message, (made,) in await store.inbox.decided(place, most=99)}


async def test_a_run_claims_messages_with_what_was_decided_about_each(store: Store) -> None:
    for name in ("1", "2", "3"):
        await store.inbox.receive(a_message(id=name), at=NOON)
    await skip(store, GROUP, "1")
    why = {"2": Decision(reason="answered", address="name")}

    await store.runs.begin(a_run(target="2", taken=("1", "2"), decisions=why), PROMPT, at=LATER)

    assert await decided(store) == {
        "1": Decision(reason="answered", run_id="r1", at=LATER),  # of an album, which was skipped before
        "2": Decision(reason="answered", address="name", run_id="r1", at=LATER),
        "3": Decision(reason="waiting", at=NOON),
    }
    with pytest.raises(InvalidValue, match="was taken by run 'r1' already"):
        await store.runs.begin(a_run(id="r2", target="3", taken=("2", "3")), PROMPT, at=LATER)
    assert (await decided(store))["3"] == Decision(reason="waiting", at=NOON)


async def test_what_was_withdrawn_is_neither_claimed_nor_skipped(store: Store) -> None:
    for name in ("1", "2"):
        await store.inbox.receive(a_message(id=name), at=NOON)
    await store.inbox.delete(GROUP, "1", at=NOON)

    await skip(store, GROUP, "1")
    await store.runs.end(a_run(target="2", taken=("1", "2"), status="failed", ended_at=LATER))

    assert (await decided(store))["1"] == Decision(reason="withdrawn", at=NOON)


async def test_the_messages_of_a_run_that_is_withdrawn_wait_since_they_were_received(store: Store) -> None:
    await store.inbox.receive(a_message(id="1"), at=NOON)
    why = {"1": Decision(reason="answered", address="name")}
    await store.runs.begin(a_run(target="1", taken=("1",), decisions=why), PROMPT, at=LATER)

    await store.writer.run(lambda database: decisions.release(database, "r1"))

    assert await decided(store) == {"1": Decision(reason="waiting", at=NOON)}
    assert [one.since for one in await store.inbox.waiting(GROUP)] == [NOON]
    told = [event for event in await store.events.read(after="") if isinstance(event, MessageDecided)]
    assert [(event.message_id, event.reason, event.run_id) for event in told] == [
        ("1", "answered", "r1"),
        ("1", "waiting", None),
    ]


async def test_decisions_go_with_the_messages_of_a_place(store: Store) -> None:
    await store.inbox.receive(a_message(id="1", place=DIRECT), at=NOON)
    await store.inbox.receive(a_message(id="2"), at=NOON)

    exported = await store.export_person(author_id=ALICE.id, platform="telegram")
    await store.forget(author_id=ALICE.id, platform="telegram", at=NOON)

    assert [row["decisions"] for row in exported["messages"]] == [
        [{"agent": "", "reason": "waiting", "address": None, "at": NOON.isoformat()}]
    ] * 2
    left = [row async for row in store.export() if row["table"] == "decisions"]
    assert [(row["reason"], row["run_id"]) for row in left] == [("forgotten", None)]
    assert await store.check() == []


@pytest.mark.parametrize(
    ("column", "value", "fault"),
    [
        ("place", 77, "the decision about message 1 has the place of another one"),
        ("run_id", "gone", "the decision about message 1 names a run that is not stored"),
        ("reason", "whim", "the decision about message 1: it holds something that cannot be read: Invalid enum value"),
    ],
)
async def test_a_check_finds_what_is_wrong(store: Store, column: str, value: Any, fault: str) -> None:
    await store.inbox.receive(a_message(id="1"), at=NOON)

    await on(store, change, "decisions", **{column: value})

    (found,) = await store.check()
    assert found.startswith(fault)


@pytest.mark.parametrize(
    ("reason", "minutes", "waits"),
    [
        ("not addressed", 60, True),
        ("late edit", 0, True),
        ("not addressed", 61, False),
        *((reason, 0, False) for reason in ("waiting", "answered", "joined", "blocked", "rate limit", "withdrawn")),
    ],
)
def test_only_what_was_not_addressed_waits_after_an_edit_in_time(reason: Reason, minutes: int, waits: bool) -> None:
    edited_at = NOON + timedelta(minutes=minutes)

    assert waits_after_edit([Decision(reason=reason)], NOON, edited_at) is waits
    assert not waits_after_edit([Decision(reason=reason)], None, edited_at)


def test_what_named_agents_have_acted_on_waits_after_an_edit_in_time() -> None:
    of_agents = [Decision(reason="answered", agent="Kant", run_id="r1"), Decision(reason="waiting", agent="Hume")]

    assert waits_after_edit(of_agents, NOON, LATER)
    assert not waits_after_edit([*of_agents, Decision(reason="our own")], NOON, LATER)
    assert not waits_after_edit([], NOON, LATER)


AGENTS = ("Kant", "Hume", "Hegel")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("said"), st.none()),
        st.tuples(st.just("edited"), st.integers(0, 5)),
        st.tuples(st.just("deleted"), st.integers(0, 5)),
        st.tuples(st.just("dropped"), st.sampled_from(AGENTS)),
        st.tuples(st.just("decided"), st.lists(st.sampled_from(AGENTS), unique=True)),
        st.tuples(st.just("skipped"), st.lists(st.sampled_from(AGENTS), unique=True)),
    ),
    max_size=30,
)


@given(STEPS)
async def test_each_agent_answers_a_message_once_and_what_it_is_meant_by_waits_until_then(
    steps: list[tuple[str, Any]],
) -> None:
    """What waits is decided about as an engine does it: for the first that waits, by agents that have not acted."""
    async with Store.open(":memory:") as store:
        said = 0
        answered: dict[str, list[str]] = {}
        for number, (step, what) in enumerate([*steps, *[("decided", [])] * 20]):
            at = NOON + timedelta(seconds=number)
            snapshot = await store.inbox.snapshot(GROUP)
            match step:
                case "said":
                    await store.inbox.receive(a_message(id=str(said)), at=at)
                    said += 1
                case "edited":
                    await store.inbox.edit(a_message(f"edit {number}", id=str(what), edited_at=at), at=at)
                case "deleted":
                    await store.inbox.delete(GROUP, str(what), at=at)
                case "dropped":
                    await store.agents.drop_waiting(what, at=at)
                case "decided" | "skipped" if snapshot.waiting:
                    first = snapshot.waiting[0]
                    named = [first.agent] if first.agent else [one for one in what if one not in first.acted]
                    meant = [Decision(reason="waiting", address="name", agent=one) for one in named[1:]]
                    name, agent = first.message.id, named[0] if named else ""
                    if not agent or step == "skipped":
                        why = Decision(reason="rate limit" if agent else "not addressed", agent=agent)
                        await store.inbox.skip(GROUP, {name: why}, at=at, meant={name: meant})
                    else:
                        run = a_run(id=f"r{number}", target=name, taken=(name,), agent=agent, meant={name: meant})
                        await store.runs.begin(run, PROMPT, at=at, changes=snapshot.changes)
                        answered.setdefault(name, []).append(agent)
                    now = [(one.message.id, one.agent) for one in await store.inbox.waiting(GROUP)]
                    expected = [(name, one.agent) for one in meant]
                    assert now == expected + [(one.message.id, one.agent) for one in snapshot.waiting[1:]]

        assert await store.inbox.waiting(GROUP) == []
        for message, made in await store.inbox.decided(GROUP, most=99):
            assert sorted(one.agent for one in made if one.run_id) == sorted(answered.get(message.id, []))
        assert await store.check() == []
