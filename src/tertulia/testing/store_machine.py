"""MachineContract: a state machine that receives, edits, answers and restarts at random, beside a model in memory."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from msgspec.structs import replace

from tertulia.decisions import Decision
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.messages import Message, Place
from tertulia.parts import Text
from tertulia.testing.store_world import DIRECT, GROUP, LATER, ME, NOON, PROMPT, Opened, a_message, a_reply, a_run

PLACES = st.sampled_from([GROUP, DIRECT])
IDS = st.sampled_from([str(number) for number in range(6)])
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
        self._count = 0
        self._changes = {GROUP: 0, DIRECT: 0}

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

    @rule(place=PLACES)
    def skip(self, place: Place) -> None:
        if self._waiting[place]:
            decision = Decision(reason="blocked")
            self._do(self._store.inbox.skip(place, {self._waiting[place].pop(0): decision}, at=NOON))

    @rule(place=PLACES)
    def begin(self, place: Place) -> None:
        taken = tuple(self._waiting[place])
        if not taken or place in self._runs:
            return
        self._count += 1
        run = a_run(id=f"r{self._count}", place=place, target=taken[-1], taken=taken, horizon=len(taken))
        self._do(self._store.runs.begin(run, PROMPT, at=NOON))
        self._runs[place], self._waiting[place] = run.id, []

    @rule(place=PLACES, text=TEXTS)
    def answer(self, place: Place, text: str) -> None:
        run_id = self._runs.pop(place, None)
        if run_id is None:
            return
        journal = self._do(self._store.runs.journal(run_id))
        reply = a_reply(id=f"o-{run_id}", run=run_id, author=ME)
        reply = replace(reply, reply=replace(reply.reply, place=place, text=text))
        self._do(self._store.runs.end(replace(journal.run, status="done", ended_at=LATER), replies=[reply]))
        self._do(self._store.outbox.put(replace(reply, status="sent", message_id=f"b-{run_id}", sent_at=LATER)))
        said = a_message(text, id=f"b-{run_id}", place=place, author=ME, sent_at=LATER)
        self._messages[place][said.id] = said

    @invariant()
    def says_what_is_expected(self) -> None:
        for place, messages in self._messages.items():
            assert list(self._do(self._store.log.read(place, 0, 10_000))) == list(messages.values())
            assert self._do(self._store.log.count(place)) == len(messages)
            waiting = [one.message for one in self._do(self._store.inbox.waiting(place))]
            assert waiting == [messages[name] for name in messages if name in self._waiting[place]]
        assert {run.place: run.id for run in self._do(self._store.runs.open())} == self._runs

    def teardown(self) -> None:
        self._do(self._close())
        self._runner.close()
        self._folder.cleanup()

    async def _close(self) -> None:
        assert await self._store.check() == []
        await self._opened.__aexit__(None, None, None)

    def _do(self, work: Any) -> Any:
        return self._runner.run(_awaited(work))


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
