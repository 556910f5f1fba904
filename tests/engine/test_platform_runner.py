"""What a platform tells the engine is stored, and acted on."""

import asyncio
import errno
import logging
import os
import re
import signal
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engines import ALICE, AT_ONCE, BOB, DIRECT, GROUP, ME, engine_with, said, with_clock
from tertulia.engine.behavior import Behavior
from tertulia.engine.engine import Engine
from tertulia.engine.platform_runner import run_platforms
from tertulia.engine.store_protocols import UpdateResult
from tertulia.errors import InvalidValue, KeyRefused, StoreBusy, StoreFull, StoreTrouble
from tertulia.events import RunEnded, RunStarted
from tertulia.messages import Author, Place, Quote
from tertulia.models import Scripted
from tertulia.parts import Media, Text
from tertulia.platform import (
    Change,
    Commanded,
    Deleted,
    Delivery,
    Edited,
    Inbox,
    PlaceLeft,
    PlaceMigrated,
    Platform,
    Reacted,
    Received,
    Stopped,
    Trouble,
)
from tertulia.store import Store
from tertulia.testing import HeldModel, RecordedPlatform

NOON = datetime(2026, 11, 19, 12, tzinfo=UTC)

MOVED = Place(platform="recorded", id="-200", kind="group", title="Friends")


class Told(RecordedPlatform):
    """A platform on which things happen in order, each applied once the engine has settled; then it ends."""

    def __init__(self, *updates: Sequence[Change]) -> None:
        super().__init__()
        self.updates = updates
        self.engine: Engine | None = None
        self.opened = 0

    async def open(self) -> None:
        self.opened += 1

    async def run(self, inbox: Inbox) -> None:
        assert self.engine
        for number, changes in enumerate(self.updates):
            await inbox.apply(changes, key=f"u{number}", raw=f"raw {number}".encode())
            await self.engine.settled()


async def ran(store: Store, platform: Told, model: Scripted, **changes: object) -> None:
    engine = platform.engine = Engine(store, model, [platform], **{"behavior": AT_ONCE} | with_clock(changes))
    await engine.run()


async def test_a_platform_runs_and_what_it_applies_is_answered(store: Store) -> None:
    platform = Told([Received(message=said("hello"))])

    await ran(store, platform, Scripted("Hi."))

    assert (platform.opened, platform.texts) == (1, ["Hi."])


class Late(Platform):
    """Learns who it is when it is opened."""

    name = "recorded"

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def open(self) -> None:
        self.me = ME

    async def run(self, inbox: Inbox) -> None:
        raise NotImplementedError

    async def send(self, delivery: Delivery) -> str:
        self.texts.append(delivery.reply.text)
        return delivery.id


async def test_who_we_are_is_asked_for_once_the_platform_is_open(store: Store) -> None:
    platform = Late()
    async with engine_with(Scripted("Hi."), platform, store=store) as engine:
        await engine.inbox("recorded").apply([Received(message=said("hello"))], key="u1")
        await engine.settled()

    assert platform.texts == ["Hi."]


async def test_a_reaction_to_a_message_starts_no_run_and_the_next_prompt_tells_of_it(store: Store) -> None:
    platform, model = Told([Received(message=said("hello"))]), Scripted("Hi.", "I see.")
    await ran(store, platform, model)
    answer = (await store.log.read(DIRECT, 1, 2))[0]
    reacted = Reacted(place=DIRECT, message_id=answer.id, author=ALICE, emojis=("👍",))

    nothing: Sequence[Change] = ()  # the key of the first update is known
    await ran(store, Told(nothing, [reacted], [Received(message=said("so?", 9))]), model)

    lines = [part.text for turn in model.prompts[-1].turns for part in turn.parts if isinstance(part, Text)]
    assert len(model.prompts) == 2
    assert [line.partition("] ")[2] for line in lines if "reacted" in line] == ['Person — reacted 👍 to "Hi."']


async def test_the_same_update_again_is_not_answered_again(store: Store) -> None:
    first, second = Told([Received(message=said("hello"))]), Told([Received(message=said("hello"))])

    await ran(store, first, Scripted("Hi."))
    await ran(store, second, Scripted("Hi."))

    assert (first.texts, second.texts) == (["Hi."], [])


async def test_an_edit_of_an_unknown_message_of_an_unknown_time_starts_no_run_and_is_in_the_next_prompt(
    store: Store,
) -> None:
    model = Scripted("Hi.")
    platform = Told([Edited(message=said("edited", 1))], [Received(message=said("hello", 2))])

    await ran(store, platform, model)

    assert platform.texts == ["Hi."]
    assert "edited" in str(model.prompts[0].turns)


async def test_ours_is_what_the_account_of_the_receiving_platform_wrote(store: Store) -> None:
    own = said("I said so", 1, author=Author(id=ME.id, name="Gryag"))
    await ran(store, Told([Received(message=own)]), Scripted())

    (message,) = await store.log.read(DIRECT, 0, 9)
    assert message.author.persona == "Gryag"


async def test_a_place_of_another_platform_is_stored_unread_and_the_line_of_the_platform_is_logged(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    async with engine_with(Scripted(), store=store) as engine:
        elsewhere = said("hello", place=Place(platform="elsewhere", id="1", kind="direct"))
        assert await engine.inbox("recorded").apply([Received(message=elsewhere)], key="u1")

        assert await store.inbox.places() == []
    line = "update u1 of recorded is stored unread: a place of platform 'elsewhere': write Place(platform=self.name, …)"
    assert re.fullmatch(re.escape(line) + r" \(\S+/test_platform_runner\.py:\d+\)", caplog.messages[-1])


async def test_a_platform_that_makes_a_wrong_message_is_restarted_and_its_line_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Wrong(RecordedPlatform):
        ran = False

        async def run(self, inbox: Inbox) -> None:
            if not self.ran:
                self.ran = True
                said("hello", place="dm-alice")

    await run_platforms({Wrong(): Any}, until=asyncio.Event(), sleep=no_pause)  # type: ignore[dict-item]

    line = (
        r"recorded failed and is restarted in 1 s: \S+/engines\.py:\d+: InvalidValue: .*place must be of type Place, .*"
    )
    assert re.fullmatch(line, caplog.messages[-1])


async def test_a_platform_whose_port_is_in_use_is_one_line_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    class Taken(RecordedPlatform):
        ran = False

        async def run(self, inbox: Inbox) -> None:
            if not self.ran:
                self.ran = True
                raise OSError(errno.EADDRINUSE, "address already in use")

    await run_platforms({Taken(): Any}, until=asyncio.Event(), sleep=no_pause)  # type: ignore[dict-item]

    line = r"recorded failed and is restarted in 1 s: \S+\.py:\d+: OSError: \[Errno \d+\] address already in use"
    assert re.fullmatch(line, caplog.messages[-1])


@pytest.mark.parametrize("name", ["open", "run", "send", "preview", "role"])
def test_a_method_that_is_no_coroutine_is_refused_with_its_line(store: Store, name: str) -> None:
    kind = type("Wall", (RecordedPlatform,), {name: lambda *_: None})

    with pytest.raises(
        InvalidValue, match=rf"/test_platform_runner\.py:\d+: Wall\.{name} must be .*`async def {name}`"
    ):
        Engine(store, Scripted(), [kind()])


async def test_what_cannot_be_stored_is_logged_and_stored_unread(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    async with engine_with(Scripted(), store=store) as engine:
        inbox = engine.inbox("recorded")

        assert await inbox.apply([Received(message=said("?", ""))], key="u1", raw=b"?")

        assert [update.key for update in await inbox.unread()] == ["u1"]
    assert "update u1 of recorded is stored unread" in caplog.text


WRONG: list[Any] = [
    None,
    {"kind": "received"},
    Received(message=said("?", place=replace(DIRECT, kind="supergroup"))),
    Received(message=said("?", parts=("?",))),
    Received(message=said("?", sent_at="yesterday")),
    Received(message=said("?", author=Author(id="1", name=None))),  # type: ignore[arg-type]
    Received(message=said("?", parts=(Media(media_kind="photo", unique_id="p", mime=5),))),  # type: ignore[arg-type]
    Received(message=said("?", parts=(Text(text="?", raw={"odd": object()}),))),
    Deleted(place=None, message_id="1"),  # type: ignore[arg-type]
    Reacted(place=DIRECT, message_id="1", author=None, emojis=()),  # type: ignore[arg-type]
    Commanded(message=said("/help"), name=None),  # type: ignore[arg-type]
    PlaceMigrated(old=DIRECT, new=replace(DIRECT, id=9)),
    Stopped(place=DIRECT, author="1"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("change", WRONG)
async def test_a_change_with_a_field_of_another_type_is_stored_unread_and_the_next_one_is_answered(
    store: Store, change: Any
) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted("Hi."), platform, store=store) as engine:
        inbox = engine.inbox("recorded")

        assert await inbox.apply([change], key="u1", raw=b"?")
        await inbox.apply([Received(message=said("hello", 2))], key="u2")
        await engine.settled()

        assert [update.key for update in await inbox.unread()] == ["u1"]
    assert platform.texts == ["Hi."]


@pytest.mark.parametrize("wrong", [{"place": replace(DIRECT, kind="supergroup")}, {"parts": ("?",)}, {"sent_at": "?"}])
async def test_a_message_with_a_field_of_another_type_is_refused_before_it_is_stored(
    store: Store, wrong: dict[str, Any]
) -> None:
    async with engine_with(Scripted(), store=store) as engine:
        for give in (engine.receive, engine.edit):
            with pytest.raises(InvalidValue, match="Message: "):
                await give(said("?", **wrong))

    assert await store.inbox.places() == []


@pytest.mark.parametrize("text", ["", " \n", None, 5])
async def test_what_says_nothing_is_not_said(store: Store, text: Any) -> None:
    async with engine_with(Scripted(), store=store) as engine:
        with pytest.raises(InvalidValue):
            await engine.say(DIRECT, text)

    assert await store.outbox.listed() == []


async def test_what_came_of_an_update_is_bytes(store: Store) -> None:
    async with engine_with(Scripted(), store=store) as engine:
        with pytest.raises(InvalidValue, match="raw must be the bytes of the update, not 'text'"):
            await engine.inbox("recorded").apply([], key="u1", raw="text")  # type: ignore[arg-type]


async def test_changes_are_a_list_and_what_is_none_of_them_brings_no_words_into_the_log(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    async with engine_with(Scripted(), store=store) as engine:
        inbox = engine.inbox("recorded")
        with pytest.raises(InvalidValue, match="changes must be a list, not Received"):
            await inbox.apply(Received(message=said("hello")), key="u1")  # type: ignore[arg-type]

        assert await inbox.apply([said("hello")], key="u2")  # type: ignore[list-item]

    assert "update u2 of recorded is stored unread: a value of the type Message cannot be there" in caplog.text
    assert "hello" not in caplog.text


async def test_the_last_message_serves_to_read_on_from_it(store: Store) -> None:
    platform = Told([Received(message=said("one", 1))], [Received(message=said("two", 2))])
    await ran(store, platform, Scripted("Hi.", "Hi."))

    async with engine_with(Scripted(), store=store) as engine:
        last = await engine.inbox("recorded").last(DIRECT)

    assert last == said("two", 2)


@pytest.mark.parametrize("change", [Stopped(place=DIRECT), PlaceLeft(place=DIRECT)])
async def test_a_stop_ends_the_run_under_way_without_an_answer(store: Store, change: Change) -> None:
    model, platform = HeldModel(), RecordedPlatform()
    async with engine_with(model, platform, store=store) as engine:
        await engine.inbox("recorded").apply([Received(message=said("hello"))], key="u1")
        await model.asked.wait()
        await engine.inbox("recorded").apply([change], key="u2")
        await engine.settled()

    assert (platform.texts, await store.runs.open()) == ([], [])


async def test_a_deleted_message_that_waits_is_not_answered(store: Store) -> None:
    platform = Told([Received(message=said("hello")), Deleted(place=DIRECT, message_id="1")])

    await ran(store, platform, Scripted("Hi."))

    assert platform.texts == []


async def test_a_member_of_an_album_can_be_replied_to(store: Store) -> None:
    album = [Received(message=said(f"photo {number}", number, place=GROUP, album="a")) for number in (1, 2)]
    quote = Quote(message_id="2")
    model = Scripted("The second.")
    platform = Told(album, [Received(message=said("Gryag, which one?", 3, place=GROUP, reply_to=quote))])

    await ran(store, platform, model)

    _, dynamic, _, trigger = [str(layer.turns) for layer in model.prompts[0].layers]
    assert platform.texts == ["The second."]
    assert '"message_id":"2","author":"Alice (1)","text":"photo 2"' in dynamic
    assert "id: 3 — reply to: 2" in trigger


async def test_a_place_that_moves_goes_on_with_its_history(store: Store) -> None:
    model = Scripted("One.", "Two.")
    platform = Told(
        [Received(message=said("Gryag, remember the tea", 1, place=GROUP))],
        [PlaceMigrated(old=GROUP, new=MOVED)],
        [Received(message=said("Gryag, what was it?", 1, place=MOVED, author=BOB))],
    )

    await ran(store, platform, model)

    assert [reply.place.id for reply in platform.shown.values()] == ["-100", "-200"]
    assert "remember the tea" in str(model.prompts[1].turns)
    assert [message.id for message in await store.log.read(MOVED, 0, 9)] == ["-100:1", "-100:s-0", "1", "s-1"]


async def moved_while_answering(engine: Engine, model: HeldModel) -> Inbox:
    """A group gets another id while its first message is answered."""
    inbox = engine.inbox("recorded")
    await inbox.apply([Received(message=said("Gryag, hello", 1, place=GROUP))], key="u1")
    await model.asked.wait()
    await inbox.apply([PlaceMigrated(old=GROUP, new=MOVED)], key="u2")
    return inbox


async def test_what_was_being_answered_when_the_place_moved_is_sent_to_the_new_one(store: Store) -> None:
    model, platform = HeldModel("One."), RecordedPlatform()
    async with engine_with(model, platform, store=store) as engine:
        await moved_while_answering(engine, model)
        model.release()
        await engine.settled()

    assert [(reply.place.id, reply.reply_to) for reply in platform.shown.values()] == [("-200", None)]
    assert [message.id for message in await store.log.read(MOVED, 0, 9)] == ["-100:1", "s-0"]


async def test_in_a_place_that_moves_there_is_still_one_run_at_a_time(store: Store) -> None:
    model, platform = HeldModel("One.", "Two."), RecordedPlatform()
    async with engine_with(model, platform, store=store) as engine:
        inbox = await moved_while_answering(engine, model)
        await inbox.apply([Received(message=said("Gryag, again", 1, place=MOVED))], key="u3")
        model.release()
        await engine.settled()

    runs = [type(event) for event in await store.events.read(after="") if isinstance(event, RunStarted | RunEnded)]
    assert (platform.texts, runs) == (["One.", "Two."], [RunStarted, RunEnded] * 2)


async def test_what_comes_late_under_the_old_id_waits_for_the_run_in_the_new_place(store: Store) -> None:
    model, platform = HeldModel("One.", "Two.", "Three."), RecordedPlatform()
    async with engine_with(model, platform, store=store) as engine:
        inbox = engine.inbox("recorded")
        await inbox.apply([PlaceMigrated(old=GROUP, new=MOVED)], key="u1")
        await inbox.apply([Received(message=said("Gryag, hello", 1, place=MOVED))], key="u2")
        await model.asked.wait()
        await inbox.apply([Received(message=said("Gryag, late", 1, place=GROUP))], key="u3")
        await inbox.apply([Received(message=said("hello", 1))], key="u4")
        await platform.sent.wait()
        model.release()
        await engine.settled()

    assert [reply.place.id for reply in platform.shown.values()] == [DIRECT.id, MOVED.id, MOVED.id]
    kinds = [type(event) for event in await store.events.read(after="", place=MOVED)]
    assert [kind for kind in kinds if kind in (RunStarted, RunEnded)] == [RunStarted, RunEnded] * 2


async def test_a_run_is_stopped_by_the_new_id_of_its_place(store: Store) -> None:
    model, platform = HeldModel("One."), RecordedPlatform()
    async with engine_with(model, platform, store=store) as engine:
        inbox = await moved_while_answering(engine, model)
        await inbox.apply([Commanded(message=said("/stop", 2, place=MOVED), name="stop")], key="u3")
        await platform.sent.wait()
        model.release()
        await engine.settled()

    assert platform.texts == ["Stopped."]


async def test_a_place_may_move_again(store: Store) -> None:
    platform, last = RecordedPlatform(), replace(MOVED, id="-300")
    async with engine_with(Scripted(), platform, store=store) as engine:
        inbox = engine.inbox("recorded")
        await inbox.apply([PlaceMigrated(old=GROUP, new=MOVED)], key="u1")
        await inbox.apply([PlaceMigrated(old=MOVED, new=last)], key="u2")
        await engine.say(GROUP, "Good morning.")
        await engine.settled()

    assert [reply.place.id for reply in platform.shown.values()] == ["-300"]


async def test_what_waits_when_a_place_moves_is_answered_in_the_new_one(store: Store) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted("One."), platform, store=store, behavior=Behavior(debounce=0.05)) as engine:
        inbox = engine.inbox("recorded")
        await inbox.apply([Received(message=said("Gryag, hello", 1, place=GROUP))], key="u1")
        await inbox.apply([PlaceMigrated(old=GROUP, new=MOVED)], key="u2")
        await engine.settled()

    assert [(reply.place.id, reply.text) for reply in platform.shown.values()] == [("-200", "One.")]


async def test_a_place_may_move_while_something_waits_in_the_new_one_too(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted("One.", "Two."), platform, store=store) as engine:
        changes: list[Change] = [
            Received(message=said("Gryag, hello", 1, place=MOVED, author=BOB)),
            Received(message=said("Gryag, hello", 1, place=GROUP)),
            PlaceMigrated(old=GROUP, new=MOVED),
        ]
        await engine.inbox("recorded").apply(changes, key="u1")
        await engine.settled()

    assert sorted(platform.texts) == ["One.", "Two."]
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_what_was_said_before_a_place_moved_is_not_quoted_where_it_is_not(store: Store) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted("One.", "Two."), platform, store=store, behavior=Behavior(debounce=0.05)) as engine:
        inbox = engine.inbox("recorded")
        await inbox.apply([Received(message=said("Gryag, hello", 1, place=GROUP))], key="u1")
        await inbox.apply([PlaceMigrated(old=GROUP, new=MOVED)], key="u2")
        await engine.settled()
        await inbox.apply([Received(message=said("Gryag, late", 2, place=GROUP))], key="u3")
        await engine.settled()

    assert [(reply.text, reply.reply_to) for reply in platform.shown.values()] == [("One.", None), ("Two.", None)]


async def test_a_place_that_moved_back_is_answered_as_before(store: Store) -> None:
    platform = Told(
        [Received(message=said("Gryag, one", 1, place=GROUP))],
        [PlaceMigrated(old=GROUP, new=MOVED)],
        [PlaceMigrated(old=MOVED, new=GROUP)],
        [Received(message=said("Gryag, two", 2, place=GROUP))],
    )

    await ran(store, platform, Scripted("One.", "Two."))

    assert [(reply.place.id, reply.reply_to) for reply in platform.shown.values()] == [("-100", "1"), ("-100", "2")]


async def test_what_the_bot_itself_wants_to_say_is_sent_and_part_of_the_conversation(store: Store) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted(), platform, store=store) as engine:
        delivery = await engine.say(DIRECT, "Good morning.")
        await engine.settled()

    assert (platform.keys, platform.texts) == ([delivery], ["Good morning."])
    assert [message.author.id for message in await store.log.read(DIRECT, 0, 9)] == [ME.id]


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_run_of_an_engine(store: Store, name: signal.Signals) -> None:
    class Asking(RecordedPlatform):
        async def run(self, inbox: Inbox) -> None:
            os.kill(os.getpid(), name)
            await asyncio.Event().wait()

    await Engine(store, Scripted(), [Asking()]).run()


async def test_one_signal_ends_all_engines_of_a_process_and_then_the_old_handlers_stand() -> None:
    before, first_runs = signal.getsignal(signal.SIGTERM), asyncio.Event()

    class Asking(RecordedPlatform):
        def __init__(self, *, asks: bool) -> None:
            super().__init__()
            self.asks = asks

        async def run(self, inbox: Inbox) -> None:
            if self.asks:
                await first_runs.wait()
                os.kill(os.getpid(), signal.SIGTERM)
            first_runs.set()
            await asyncio.Event().wait()

    async with Store.open(":memory:") as one, Store.open(":memory:") as two:
        await asyncio.gather(
            Engine(one, Scripted(), [Asking(asks=False)]).run(), Engine(two, Scripted(), [Asking(asks=True)]).run()
        )

    assert signal.getsignal(signal.SIGTERM) is before


async def test_what_is_under_way_at_a_signal_is_answered_once_by_the_next_process(store: Store) -> None:
    model = HeldModel("Never.")

    class Asking(RecordedPlatform):
        async def run(self, inbox: Inbox) -> None:
            await inbox.apply([Received(message=said("hello"))], key="u1")
            await model.asked.wait()
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.Event().wait()

    first, second = Asking(), RecordedPlatform()
    await Engine(store, model, [first], behavior=AT_ONCE).run()
    async with engine_with(Scripted("One."), second, store=store) as engine:
        await engine.settled()

    assert (first.texts, second.texts) == ([], ["One."])


async def no_pause(_: float) -> None:
    await asyncio.sleep(0)


async def test_a_platform_that_fails_is_started_again_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(RecordedPlatform):
        def __init__(self, *errors: BaseException) -> None:
            super().__init__()
            self.errors = list(errors)
            self.ran = 0

        async def run(self, inbox: Inbox) -> None:
            self.ran += 1
            if self.errors:
                raise self.errors.pop(0)

    failing, fine = Failing(OSError("gone"), SystemExit(1), asyncio.CancelledError()), Failing()
    inbox: Inbox = None  # type: ignore[assignment]

    await run_platforms({failing: inbox, fine: inbox}, until=asyncio.Event(), sleep=no_pause)

    assert (failing.ran, fine.ran) == (4, 1)
    assert "OSError: gone" in caplog.text


async def test_no_key_is_logged_with_the_error_of_a_platform(caplog: pytest.LogCaptureFixture) -> None:
    token = "123456:AAHh4x9_secretsecretsecretsecret01"
    errors = [OSError(f"POST https://api.example/bot{token}/getUpdates failed")]

    class Failing(RecordedPlatform):
        async def run(self, inbox: Inbox) -> None:
            if errors:
                raise errors.pop()

    with caplog.at_level(logging.DEBUG):
        await run_platforms({Failing(): Any}, until=asyncio.Event(), sleep=no_pause)  # type: ignore[dict-item]

    assert "OSError: POST https://api.example/" in caplog.text
    assert token not in caplog.text
    assert token.partition(":")[2] not in caplog.text


async def test_the_pause_before_a_start_is_short_again_after_a_platform_has_run_for_long() -> None:
    paused: list[float] = []
    minutes = [0, 0, 0, 10, 0]  # that each start has run for
    time = 0.0

    class Failing(RecordedPlatform):
        async def run(self, inbox: Inbox) -> None:
            nonlocal time
            if minutes:
                time += 60 * minutes.pop(0)
                raise OSError("gone")

    async def pause(seconds: float) -> None:
        paused.append(seconds)

    await run_platforms({Failing(): Any}, until=asyncio.Event(), sleep=pause, clock=lambda: time)  # type: ignore[dict-item]

    assert paused == [1.0, 2.0, 4.0, 1.0, 2.0]


async def test_a_platform_that_waits_for_its_next_start_tells_since_when_and_why() -> None:
    errors = [OSError("gone"), OSError("still gone")]
    told: list[Trouble | None] = []
    at = NOON

    class Failing(RecordedPlatform):
        async def run(self, inbox: Inbox) -> None:
            if errors:
                raise errors.pop(0)

    failing = Failing()

    async def pause(seconds: float) -> None:
        nonlocal at
        told.append(failing.trouble)
        at += timedelta(seconds=seconds)

    await run_platforms({failing: Any}, until=asyncio.Event(), sleep=pause, now=lambda: at)  # type: ignore[dict-item]

    assert told == [
        Trouble(since=NOON, why="OSError: gone", retry_at=NOON + timedelta(seconds=1)),
        Trouble(since=NOON, why="OSError: still gone", retry_at=NOON + timedelta(seconds=3)),
    ]
    assert failing.trouble is None


async def test_a_platform_waits_for_a_store_that_cannot_be_written_for_a_while(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    troubles: list[StoreTrouble] = [StoreFull("no room"), StoreBusy("locked")]
    apply = store.updates.apply

    async def troubled(*given: Any, **named: Any) -> UpdateResult:
        if troubles:
            raise troubles.pop()
        return await apply(*given, **named)

    monkeypatch.setattr(store.updates, "apply", troubled)
    platform = Told([Received(message=said("hello"))])

    await ran(store, platform, Scripted("Hi."), sleep=no_pause)

    assert platform.texts == ["Hi."]


@pytest.mark.parametrize("error", [OSError("no network"), SystemExit(2), None])
async def test_an_engine_that_cannot_start_leaves_nothing_running(store: Store, error: BaseException | None) -> None:
    class Closed(RecordedPlatform):
        async def open(self) -> None:
            if error:
                raise error

    before = asyncio.all_tasks()
    platform = Closed(name="closed", me=Author(id="", name="Nobody"))

    with pytest.raises((OSError, RuntimeError, InvalidValue)):
        await Engine(store, Scripted(), [RecordedPlatform(), platform]).run()

    assert asyncio.all_tasks() == before
    assert store.writer.commit_listeners == []  # type: ignore[attr-defined]


async def test_a_platform_that_needs_its_operator_ends_the_engine() -> None:
    class Refused(RecordedPlatform):
        async def run(self, inbox: Inbox) -> None:
            raise KeyRefused("the token is refused")

    class Running(RecordedPlatform):
        ended = False

        async def run(self, inbox: Inbox) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                Running.ended = True

    inbox: Inbox = None  # type: ignore[assignment]

    with pytest.raises(KeyRefused):
        await run_platforms({Refused(): inbox, Running(): inbox}, until=asyncio.Event(), sleep=no_pause)

    assert Running.ended


async def test_an_engine_is_not_settled_while_a_stored_update_waits_to_be_acted_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed, released = asyncio.Event(), asyncio.Event()
    apply = store.updates.apply

    async def held(*given: Any, **named: Any) -> UpdateResult:
        result = await apply(*given, **named)
        committed.set()
        await released.wait()
        return result

    monkeypatch.setattr(store.updates, "apply", held)
    platform = RecordedPlatform()
    async with engine_with(Scripted("Hi."), platform, store=store) as engine:
        applying = asyncio.create_task(engine.inbox("recorded").apply([Received(message=said("hello"))], key="u1"))
        await committed.wait()
        settled = asyncio.create_task(engine.settled())
        asyncio.get_running_loop().call_later(0.05, released.set)

        await asyncio.wait([settled])

        assert (applying.done(), platform.texts) == (True, ["Hi."])
