"""MachineContract: a state machine that receives, edits, answers and restarts at random, beside a model in memory."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from tertulia.decisions import Decision
from tertulia.engine.store_protocols import OutboxItem, SendStatus, StoreProtocol, UpdateResult
from tertulia.engine.view import View, named, reduce
from tertulia.engine.view_reader import ViewReader
from tertulia.messages import NOBODY, Message, Place, placeholder_of
from tertulia.parts import Text
from tertulia.platform import Delivered, Received
from tertulia.testing.store_world import (
    DIRECT,
    GROUP,
    LATER,
    ME,
    NOON,
    PROMPT,
    Opened,
    a_message,
    a_reply,
    a_run,
    apply,
)

PLACES = st.sampled_from([GROUP, DIRECT])
IDS = st.sampled_from([str(number) for number in range(6)])
MOST = 3  # messages of a view
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12).filter(str.strip)


class StoreMachine(RuleBasedStateMachine):
    """What a log, an inbox and runs should say, and whether the store says it."""

    def __init__(self, stores: Callable[[Path], Callable[[], Opened]]) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._folder = TemporaryDirectory(prefix="tertulia-")
        self._open = stores(Path(self._folder.name))
        self._messages: dict[Place, dict[str, Message]] = {GROUP: {}, DIRECT: {}}
        self._waiting: dict[Place, list[str]] = {GROUP: [], DIRECT: []}
        self._runs: dict[Place, str] = {}  # the open run of each place
        self._keys: set[str] = set()  # of updates
        self._doubtful: dict[str, Place] = {}  # replies of which nobody knows whether they were sent
        self._count = 0
        self._changes = {GROUP: 0, DIRECT: 0}
        self._views = {place: View(place=place, most=MOST) for place in (GROUP, DIRECT)}  # reduced event by event

    @initialize()
    def open(self) -> None:
        self._opened = self._open()
        self._store: StoreProtocol = self._do(self._opened.__aenter__())

    @rule()
    def restart(self) -> None:
        self._do(self._opened.__aexit__(None, None, None))
        self.open()

    @rule(place=PLACES, name=IDS, text=TEXTS)
    def receive(self, place: Place, name: str, text: str) -> None:
        message = a_message(text, id=name, place=place)
        is_new = self._do(self._store.inbox.receive(message, at=NOON))

        assert is_new == (name not in self._messages[place])
        if is_new:
            self._messages[place][name] = message
            self._waiting[place].append(name)

    @rule(place=PLACES, name=IDS, text=TEXTS, key=IDS)
    def update(self, place: Place, name: str, text: str, key: str) -> None:
        message = a_message(text, id=name, place=place)
        result = self._do(apply(self._store, Received(message=message), key=key))

        assert result == UpdateResult(new=key not in self._keys)
        self._keys.add(key)
        if result.new and name not in self._messages[place]:
            self._messages[place][name] = message
            self._waiting[place].append(name)

    @rule(place=PLACES, name=IDS, text=TEXTS)
    def edit(self, place: Place, name: str, text: str) -> None:
        before = self._messages[place].get(name)
        if before is None or before.author == ME:
            return
        self._do(self._store.inbox.edit(a_message(text, id=name, place=place, edited_at=LATER), at=LATER))
        self._messages[place][name] = replace(before, parts=(Text(text=text),), edited_at=LATER)

    @rule(place=PLACES, name=IDS)
    def delete(self, place: Place, name: str) -> None:
        before = self._messages[place].get(name)
        assert self._do(self._store.inbox.delete(place, name, at=LATER)) == (before is not None)
        if before is not None:
            self._messages[place][name] = replace(before, deleted=True)
            if name in self._waiting[place]:
                self._waiting[place].remove(name)

    @precondition(lambda self: any(self._waiting.values()))
    @rule(place=PLACES)
    def skip(self, place: Place) -> None:
        if self._waiting[place]:
            decision = Decision(reason="blocked")
            self._do(self._store.inbox.skip(place, {self._waiting[place].pop(0): decision}, at=NOON))

    @precondition(lambda self: any(self._waiting.values()))
    @rule(place=PLACES)
    def begin(self, place: Place) -> None:
        taken = tuple(self._waiting[place])
        if not taken or place in self._runs:
            return
        self._count += 1
        run = a_run(id=f"r{self._count}", place=place, target=taken[-1], taken=taken, horizon=len(taken))
        self._do(self._store.runs.begin(run, PROMPT, at=NOON))
        self._runs[place], self._waiting[place] = run.id, []

    @precondition(lambda self: self._runs)
    @rule(place=PLACES, text=TEXTS, doubtful=st.booleans())
    def answer(self, place: Place, text: str, *, doubtful: bool) -> None:
        run_id = self._runs.pop(place, None)
        if run_id is None:
            return
        journal = self._do(self._store.runs.journal(run_id))
        reply = a_reply(id=f"o-{run_id}", run=run_id, author=ME)
        reply = replace(reply, reply=replace(reply.reply, place=place, text=text))
        self._do(self._store.runs.end(replace(journal.run, status="done", ended_at=LATER), replies=[reply]))
        name = reply.id if doubtful else f"b-{run_id}"
        status: SendStatus = "doubtful" if doubtful else "sent"
        self._do(self._store.outbox.put(_outcome(reply, status, name)))
        said = a_message(text, id=name, place=place, author=ME, agent="", sent_at=LATER, doubtful=doubtful)
        self._messages[place][name] = said
        if doubtful:
            self._doubtful[name] = place

    @precondition(lambda self: self._doubtful)
    @rule(how=st.sampled_from(["receipt", "echo", "own message", "dropped"]))
    def settle(self, how: str) -> None:
        """What became of the oldest doubtful reply is known: it has the id of the platform, or is removed."""
        for name, place in list(self._doubtful.items())[:1]:
            del self._doubtful[name]
            said = self._messages[place][name]
            match how:
                case "receipt":
                    (reply,) = [one for one in self._do(self._store.outbox.listed("doubtful")) if one.id == name]
                    self._do(self._store.outbox.put(_outcome(reply, "sent", f"b-{name}")))
                case "echo":
                    arrived = Delivered(place=place, delivery_id=name, message_id=f"b-{name}")
                    self._do(apply(self._store, arrived, key=f"echo {name}"))
                case "own message":  # it is the oldest of its text
                    shown = a_message(said.text, id=f"b-{name}", place=place, author=ME, agent="")
                    self._do(apply(self._store, Received(message=shown), key=f"echo {name}"))
                case _:
                    self._do(self._store.outbox.decide(name, "dropped"))
            said = _without_id(placeholder_of(said)) if how == "dropped" else _settled(said)
            key = said.id or f"removed {name}"
            self._messages[place] = {
                (key if one == name else one): (said if one == name else message)
                for one, message in self._messages[place].items()
            }

    @invariant()
    def says_what_is_expected(self) -> None:
        for place, messages in self._messages.items():
            said = self._do(self._store.log.read(place, 0, 10_000))
            assert list(map(_without_id, said)) == list(messages.values())
            assert self._do(self._store.log.count(place)) == len(messages)
            waiting = [one.message for one in self._do(self._store.inbox.waiting(place))]
            assert waiting == [messages[name] for name in messages if name in self._waiting[place]]
        assert {run.place: run.id for run in self._do(self._store.runs.open())} == self._runs
        assert {one.id for one in self._do(self._store.outbox.listed("doubtful"))} == self._doubtful.keys()

    @invariant()
    def names_in_its_events_what_a_view_shows(self) -> None:
        for place in self._messages:
            self._views[place] = self._do(self._follow(self._views[place]))
            stands = self._do(ViewReader(self._store, place, most=MOST).read())
            assert self._views[place] == replace(stands, cursor=self._views[place].cursor)

    async def _follow(self, view: View) -> View:
        """Return a view after the events that the store has behind it."""
        reader = ViewReader(self._store, view.place, most=view.most)
        for event in await self._store.events.read(after=view.cursor, place=view.place):
            names = named(event)
            view = reduce(view, event, await reader.load(names) if names else None).view
        return view

    @invariant()
    def counts_the_events_of_each_place(self) -> None:
        numbers: dict[Place, list[int]] = {GROUP: [], DIRECT: []}
        for event in self._do(self._store.events.read(after="")):
            numbers[event.place].append(event.number)
        assert all(found == list(range(1, len(found) + 1)) for found in numbers.values())

    def teardown(self) -> None:
        self._do(self._close())
        self._runner.close()
        self._folder.cleanup()

    async def _close(self) -> None:
        assert await self._store.check() == []
        await self._opened.__aexit__(None, None, None)

    def _do(self, work: Any) -> Any:
        return self._runner.run(_awaited(work))


def _without_id(message: Message) -> Message:
    """Return a message, without its id if its content was removed: such an id is of the store."""
    return replace(message, id="") if message.author == NOBODY else message


def _settled(said: Message) -> Message:
    return replace(said, id=f"b-{said.id}", doubtful=False)


def _outcome(reply: OutboxItem, status: SendStatus, name: str) -> OutboxItem:
    """Return a reply that was sent under a name, or that nobody knows to be sent."""
    return replace(reply, status=status, attempts=1, sent_at=LATER, message_id=name if status == "sent" else None)


async def _awaited(work: Any) -> Any:
    return await work


class MachineContract:
    """Whatever is done to a store, in whatever order, with restarts between: it says what was done."""

    examples = 25

    def stores(self, folder: Path) -> Callable[[], Opened]:
        raise NotImplementedError

    def test_a_store_says_what_was_done_to_it(self) -> None:
        quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
        sizes = settings(max_examples=self.examples, stateful_step_count=30, deadline=None, suppress_health_check=quiet)
        machine: Any = partial(StoreMachine, self.stores)  # hypothesis calls it as it would call the class
        run_state_machine_as_test(machine, settings=sizes)
