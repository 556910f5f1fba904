import asyncio
import logging
import math
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engine_world import REMEMBERS, World
from engine.engines import ALICE, DIRECT, GROUP, ME, shared_by, store_with
from fakes import Receipts
from people import NOON, a_message
from tertulia.engine.behavior import Behavior
from tertulia.engine.languages.lines import ENGLISH
from tertulia.engine.outbox_sender import CUT_OFF, MAX_COPIES, MAX_EDIT_RETRIES, SEND_TIMEOUT, OutboxSender
from tertulia.engine.store_protocols import DeliveryAttempt, OutboxItem
from tertulia.errors import InvalidValue, KeyRefused, NotSent, SendRefused, StoreFull, StoreRefused, TertuliaError
from tertulia.media.values import StoredFile
from tertulia.messages import Place, Reply
from tertulia.parts import Media, Text
from tertulia.platform import ALL_MEDIA, Capabilities, Delivery
from tertulia.redaction import redact_keys
from tertulia.store import Store
from tertulia.store.forget.removal import empty_replies
from tertulia.tasks.task import Task
from tertulia.testing import RecordedPlatform
from tertulia.turns import model


class Slept:
    """Time that passes at once, and is counted."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)


def item(name: str = "o1", place: Place = DIRECT, **changes: Any) -> OutboxItem:
    fields: dict[str, Any] = {"id": name, "reply": Reply(place=place, text=name), "made_at": NOON, "author": ME}
    return OutboxItem(**fields | changes)


def outbox_sender(store: Store, platform: RecordedPlatform, **changes: Any) -> OutboxSender:
    own = {"grace": changes.pop("grace")} if "grace" in changes else {}
    return OutboxSender(shared_by(store, platform, **{"sleep": Slept()} | changes), **own)


async def kept(store: Store, *replies: OutboxItem) -> None:
    for one in replies:
        await store.outbox.put(one)


async def carried(store: Store, platform: RecordedPlatform, *replies: OutboxItem, **changes: Any) -> list[OutboxItem]:
    """What has become of replies that were given to a courier."""
    await kept(store, *replies)
    made = outbox_sender(store, platform, **changes)
    made.enqueue(replies)
    await made.done()
    return list(await store.outbox.listed())


async def test_a_reply_that_is_sent_has_its_receipt_and_is_a_message_of_the_place(store: Store) -> None:
    (one,) = await carried(store, RecordedPlatform(), item())

    assert one == item(status="sent", attempts=1, message_id="s-0", sent_at=NOON)
    assert [(message.id, message.author) for message in await store.log.read(DIRECT, 0, 9)] == [("s-0", ME)]


async def test_it_is_kept_as_being_sent_before_the_platform_has_it(store: Store) -> None:
    seen: list[Any] = []

    class Looking(RecordedPlatform):
        async def send(self, delivery: Delivery) -> str:
            seen.extend(await store.outbox.listed())
            return await super().send(delivery)

    await carried(store, Looking(), item())

    assert seen == [item(status="sending", attempts=1, sent_at=NOON)]


async def test_in_each_place_replies_go_one_after_another_and_places_side_by_side(store: Store) -> None:
    let, first = asyncio.Event(), asyncio.Event()

    class Slow(RecordedPlatform):
        async def send(self, delivery: Delivery) -> str:
            if delivery.id == "o1":
                first.set()
                await let.wait()
            return await super().send(delivery)

    platform = Slow()
    replies = [item("o1"), item("o2"), item("o3", place=GROUP)]
    await kept(store, *replies)
    made = outbox_sender(store, platform)
    made.enqueue(replies)
    made.enqueue(replies)  # what it has already is not taken twice
    await asyncio.gather(first.wait(), platform.sent.wait())
    assert (platform.texts, made.busy) == (["o3"], True)
    let.set()
    await made.done()

    assert (platform.texts, made.busy) == (["o3", "o1", "o2"], False)


async def test_a_reply_that_is_taken_twice_is_not_sent_again_once_it_is_in_doubt(store: Store) -> None:
    platform = RecordedPlatform(OSError())

    (one,) = await carried(store, platform, item(), item())

    assert (one.status, platform.texts) == ("doubtful", ["o1"])


UNKNOWN: list[tuple[BaseException, str]] = [
    (OSError("broken pipe"), "OSError while sending"),
    (ZeroDivisionError(), "ZeroDivisionError while sending"),
    (TertuliaError("the gateway said 502"), "the gateway said 502"),
    (TertuliaError("http://bot:hunter2@proxy:81 is late"), "http://***@proxy:81 is late"),
    (KeyRefused(), "KeyRefused while sending"),
    (StoreFull("not ours: the platform's own"), "not ours: the platform's own"),
    (asyncio.CancelledError(), "cancelled by the platform, not by shutdown"),
    (TimeoutError("no answer"), "TimeoutError while sending"),
]


@pytest.mark.parametrize(("error", "why"), UNKNOWN)
async def test_whatever_else_a_platform_raises_nobody_knows_whether_it_went_out(
    store: Store, error: Any, why: str
) -> None:
    platform = RecordedPlatform(error)

    first, second = await carried(store, platform, item("o1"), item("o2"))

    assert first == item(status="doubtful", attempts=1, unknown_attempts=1, sent_at=NOON, why=why, message_id="o1")
    assert (second.status, platform.texts) == ("sent", ["o1", "o2"])
    assert [(one.id, one.doubtful) for one in await store.log.read(DIRECT, 0, 9)] == [("o1", True), ("s-1", False)]


@pytest.mark.parametrize("kind", [NotSent, SendRefused])
async def test_what_is_stored_of_a_failure_has_no_password(store: Store, kind: type[TertuliaError]) -> None:
    platform = RecordedPlatform()
    platform.fail_before = [kind("http://bot:hunter2@proxy:81 says no")] * 2
    whys: list[str] = []

    class Watched(Slept):
        async def __call__(self, seconds: float) -> None:
            whys.extend(one.why for one in await store.outbox.listed())

    one, *_ = await carried(store, platform, item(), sleep=Watched())

    assert [*whys, one.why][0] == "http://***@proxy:81 says no"


async def test_the_id_of_a_doubtful_reply_is_in_the_log(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    name = "reminder-0123456789abcdef0123-1-0-0"

    await carried(store, RecordedPlatform(OSError()), item(name))

    assert f"the outcome of sending {name} is unknown" in redact_keys(caplog.text)


async def test_a_platform_that_knows_keys_is_asked_again_under_the_same(store: Store) -> None:
    platform = RecordedPlatform(OSError(), OSError(), capabilities=Capabilities(idempotency_window=REMEMBERS))

    (one,) = await carried(store, platform, item())

    assert (one.status, one.attempts, platform.keys, platform.texts) == ("sent", 3, ["o1"] * 3, ["o1"])


RESEND = Behavior(doubtful_replies="resend")


async def test_by_policy_a_reply_is_sent_again_but_not_for_ever(store: Store) -> None:
    platform, slept = RecordedPlatform(*[OSError()] * 99), Slept()

    (one,) = await carried(store, platform, item(), behavior=RESEND, sleep=slept)

    assert (len(platform.texts), slept.pauses) == (MAX_COPIES, [1.0, 2.0, 4.0, 8.0])
    assert (one.status, one.attempts) == ("doubtful", MAX_COPIES)


EDIT = item(edits="d1")


async def test_an_edit_of_unknown_outcome_is_made_again_but_not_for_ever(store: Store) -> None:
    platform = RecordedPlatform(*[OSError()] * 99, capabilities=Capabilities(edits=True))

    (one,) = await carried(store, platform, EDIT)

    assert (one.status, one.attempts, one.unknown_attempts) == ("doubtful", MAX_EDIT_RETRIES, MAX_EDIT_RETRIES)


OUTAGES = [(EDIT, Behavior(), MAX_EDIT_RETRIES), (item(), RESEND, MAX_COPIES)]


@pytest.mark.parametrize(("one", "behavior", "most"), OUTAGES)
async def test_attempts_that_did_not_go_out_bring_nothing_nearer_to_doubt(
    store: Store, one: OutboxItem, behavior: Behavior, most: int
) -> None:
    platform = RecordedPlatform(*[NotSent("down")] * 2 * most, OSError(), capabilities=Capabilities(edits=True))

    (sent,) = await carried(store, platform, one, behavior=behavior)

    assert (sent.status, sent.attempts, sent.unknown_attempts) == ("sent", 2 * most + 2, 1)


async def test_nor_is_it_for_ever_over_many_lives(store: Store) -> None:
    """Each life ends while the reply is being sent."""
    shown = 0
    await kept(store, item())
    for _ in range(3 * MAX_COPIES):
        begun = asyncio.Event()

        class Endless(RecordedPlatform):
            async def send(self, delivery: Delivery, begun: asyncio.Event = begun) -> str:
                nonlocal shown
                shown += 1
                begun.set()
                await asyncio.get_running_loop().create_future()
                return delivery.id

        made = outbox_sender(store, Endless(), behavior=RESEND, grace=0.0)
        await made.recover()
        if not made.busy:
            break
        await begun.wait()
        await made.close()

    (one,) = await store.outbox.listed()
    assert (shown, one.status, one.attempts, one.why) == (MAX_COPIES, "doubtful", MAX_COPIES, CUT_OFF)


LOST = [
    (timedelta(0), REMEMBERS, "sent"),
    (REMEMBERS - timedelta(seconds=1), REMEMBERS, "sent"),
    (REMEMBERS, REMEMBERS, "doubtful"),
    (timedelta(days=9), REMEMBERS, "doubtful"),
    (timedelta(seconds=-1), REMEMBERS, "doubtful"),  # the clock was set back: its key may be long forgotten
    (timedelta(days=-9), REMEMBERS, "doubtful"),
    (timedelta(0), timedelta(0), "doubtful"),
]


@pytest.mark.parametrize(("age", "remembers", "status"), LOST)
async def test_what_an_earlier_process_was_sending_goes_out_again_only_where_its_key_is_known(
    store: Store, age: timedelta, remembers: timedelta, status: str
) -> None:
    await kept(store, item(status="sending", attempts=1, sent_at=NOON - age))
    platform = RecordedPlatform(capabilities=Capabilities(idempotency_window=remembers))
    made = outbox_sender(store, platform)

    await made.recover()
    await made.done()

    (one,) = await store.outbox.listed()
    assert (one.status, platform.texts) == (status, ["o1"] if status == "sent" else [])
    if status == "doubtful":
        assert (one.attempts, one.why) == (1, CUT_OFF)


async def test_one_of_which_nobody_knows_when_it_was_sent_is_in_doubt(store: Store) -> None:
    await kept(store, item(status="sending", attempts=1))
    made = outbox_sender(store, RecordedPlatform(capabilities=Capabilities(idempotency_window=REMEMBERS)))

    await made.recover()

    assert [one.status for one in await store.outbox.listed()] == ["doubtful"]


async def test_a_clock_that_is_set_back_between_two_attempts_leaves_it_in_doubt(store: Store) -> None:
    clock = [NOON]

    def now() -> datetime:
        return clock.pop(0) if len(clock) > 1 else clock[0]

    platform = RecordedPlatform(OSError(), capabilities=Capabilities(idempotency_window=REMEMBERS))
    clock += [NOON, NOON - timedelta(hours=1)]

    (one,) = await carried(store, platform, item(), now=now)

    assert (one.status, platform.keys) == ("doubtful", ["o1"])


async def test_only_what_is_to_be_sent_is_taken_up(store: Store) -> None:
    other = Place(platform="icq", id="1", kind="direct")
    await kept(
        store,
        item("waits"),
        item("sent", status="sent", message_id="x", sent_at=NOON),
        item("doubtful", status="doubtful", attempts=1, sent_at=NOON),
        item("dropped", status="dropped"),
        item("elsewhere", place=other),
        item("lost elsewhere", place=other, status="sending", attempts=1, sent_at=NOON),
    )
    platform = RecordedPlatform()
    made = outbox_sender(store, platform)

    await made.recover()
    await made.done()

    assert platform.texts == ["waits"]
    assert [one.status for one in await store.outbox.listed()] == [
        *("sent", "sent", "doubtful", "dropped", "waiting", "sending")
    ]


async def test_what_somebody_decides_to_send_again_is_found(store: Store) -> None:
    await kept(store, item("never tried"), item("again", status="doubtful", attempts=1, sent_at=NOON))
    await store.outbox.decide("again", "waiting")
    platform = RecordedPlatform()
    made = outbox_sender(store, platform)

    await made.enqueue_retries()
    await made.done()

    assert platform.texts == ["again"]


async def test_what_somebody_has_dropped_meanwhile_is_not_sent_and_holds_nothing_up(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    replies = [item("o1"), item("o2")]
    await kept(store, *replies)
    await store.outbox.decide("o1", "dropped", why="not needed")
    platform = RecordedPlatform()
    made = outbox_sender(store, platform)

    made.enqueue(replies)
    await made.done()

    assert platform.texts == ["o2"]
    assert [one.status for one in await store.outbox.listed()] == ["dropped", "sent"]
    loud = [record for record in caplog.records if record.levelno > logging.INFO]
    assert not loud  # that is no error: /stop drops all parts of an answer that wait


async def test_what_is_refused_for_good_is_dropped_and_holds_nothing_up(store: Store) -> None:
    platform = RecordedPlatform()
    platform.fail_before = [SendRefused("no"), SendRefused("never")]

    first, second, _ = await carried(store, platform, item("o1"), item("o2"))

    assert first == item("o1", status="dropped", attempts=2, why="never", plain=True)
    assert second.status == "sent"


async def test_what_is_refused_is_sent_in_plain_text_without_quote_and_media(store: Store) -> None:
    platform = RecordedPlatform()
    platform.fail_before = [SendRefused("no")]
    photo = Media(media_kind="photo", unique_id="p", label="a cat")
    one = item(reply=Reply(place=DIRECT, text="**Look:**", reply_to="7", media=(photo,)))

    (sent,) = await carried(store, platform, one)

    plain = Reply(place=DIRECT, text=f"**Look:**\n\n{photo.caption}")
    assert sent == replace(one, reply=plain, plain=True, status="sent", attempts=2, message_id="s-0", sent_at=NOON)
    (delivery,) = platform.deliveries
    assert delivery.plain
    assert delivery.reply == plain


@pytest.mark.parametrize("error", [None, TimeoutError()])
async def test_what_is_sent_in_plain_text_is_in_the_log_as_it_was_sent(store: Store, error: Exception | None) -> None:
    class WithoutMedia(RecordedPlatform):
        async def send(self, delivery: Delivery) -> str:
            if delivery.reply.media:
                raise SendRefused("no")
            sent = await super().send(delivery)
            if delivery.plain and error:
                raise error
            return sent

    photo = Media(media_kind="photo", unique_id="p", label="a cat")
    written = (model("**Look:**", photo),)
    await store.inbox.receive(a_message("show me", id="7", place=DIRECT), at=NOON)
    first = item("o1", reply=Reply(place=DIRECT, text="Yes."), turns=written, reply_id="o1")
    reply = Reply(place=DIRECT, text="**Look:**", reply_to="7", media=(photo,))
    second = item("o1.1", reply=reply, reply_id="o1", part=1, separator="\n")

    await carried(store, WithoutMedia(), first, second)

    _, log = await store.log.read(DIRECT, 0, 9)
    assert (log.parts, log.reply_to) == ((Text(text=f"Yes.\n**Look:**\n\n{photo.caption}"),), None)
    assert await store.log.turns([log]) == {}


async def test_what_was_forgotten_meanwhile_does_not_come_back_with_how_it_was_sent(store: Store) -> None:
    class Forgetting(RecordedPlatform):
        async def send(self, delivery: Delivery) -> str:
            sent = await super().send(delivery)
            await store.writer.run(lambda database: empty_replies(database, [1], "forgotten"))
            return sent

    platform = Forgetting()
    platform.fail_before = [SendRefused("no")]

    (one,) = await carried(store, platform, item("o1", reply=Reply(place=DIRECT, text="Tea.", reply_to="7")))

    assert (one.status, one.reply) == ("sent", Reply(place=DIRECT, text=""))
    assert await store.log.read(DIRECT, 0, 9) == []


async def test_an_edit_that_is_refused_comes_as_a_new_message_unless_it_only_ends_a_draft(store: Store) -> None:
    platform = RecordedPlatform()
    platform.fail_before = [SendRefused("it is gone")] * 2

    line, answer = await carried(
        store, platform, item("o1", edits="5", purpose="draft end"), item("week-end", edits="5")
    )

    assert (line.status, answer.status, platform.texts) == ("dropped", "sent", ["week-end"])


REFUSED = {"answer": True, "task": True, "notice": False, "error": False}


@pytest.mark.parametrize("kind", REFUSED)
async def test_of_an_answer_that_is_refused_in_every_form_the_person_is_told(store: Store, kind: Any) -> None:
    platform = RecordedPlatform()
    platform.fail_before = [SendRefused("no"), SendRefused("never")]

    await carried(store, platform, item("o1", kind=kind), item("o2"))

    told = [("o1-refused", "error", ENGLISH.refused)] if REFUSED[kind] else []
    sent = [(one.id, one.kind, one.reply.text) for one in platform.deliveries]
    assert sent == [("o2", "answer", "o2"), *told]


async def test_the_notice_is_stored_with_the_drop(store: Store) -> None:
    platform = RecordedPlatform()
    platform.fail_before = [SendRefused("no"), SendRefused("never")]

    slept = Slept()

    class Troubled:
        """A log that cannot be read at once, and where the message that is answered is gone then."""

        async def get(self, place: Place, message_id: str) -> None:
            raise StoreRefused("cannot be read") if not slept.pauses else InvalidValue("gone")

    one = item(reply=Reply(place=DIRECT, text="Yes.", reply_to="7"))
    (left,) = await carried(store_with(store, log=Troubled()), platform, one, sleep=slept)

    assert (left.status, slept.pauses) == ("sending", [1.0])


async def test_a_place_that_nothing_can_be_sent_to_is_left_and_what_waits_for_it_ends(store: Store) -> None:
    platform = RecordedPlatform()
    platform.fail_before = [SendRefused("they blocked us", left=True)]

    await store.tasks.add([Task(id="t", kind="send", place=DIRECT, due_at=NOON, args={"text": "tea"})])

    first, second, other = await carried(store, platform, item("o1"), item("o2"), item("o3", place=GROUP))

    assert first == item("o1", status="dropped", attempts=1, why="they blocked us")
    assert second == item("o2", status="dropped", why="nothing can be sent to this place any more")
    assert other.status == "sent"
    assert [task.status for task in await store.tasks.listed()] == ["cancelled"]


ASKED: list[tuple[list[float | None], list[float]]] = [
    ([None, None, None], [1.0, 2.0, 4.0]),
    ([None] * 11, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0, 300.0]),
    ([7.5, None, 0.25], [7.5, 2.0, 0.25]),
    ([0.0, 0.0, 0.0], [1.0, 2.0, 4.0]),
    ([86_400.0], [86_400.0]),
    ([-5.0, math.nan, math.inf, 1e9], [1.0, 2.0, 4.0, 8.0]),
]


@pytest.mark.parametrize(("asked", "pauses"), ASKED)
async def test_a_reply_that_did_not_go_out_is_tried_again_after_as_long_as_the_platform_asks_where_that_can_be(
    store: Store, asked: list[float | None], pauses: list[float]
) -> None:
    platform, slept = RecordedPlatform(), Slept()
    platform.fail_before = [NotSent("slow down", retry_after=seconds) for seconds in asked]

    first, second = await carried(store, platform, item("o1"), item("o2"), sleep=slept)

    assert slept.pauses == pauses
    assert (first.status, first.attempts, second.status) == ("sent", len(asked) + 1, "sent")


async def test_a_reply_in_doubt_that_did_not_go_out_this_time_stays_in_doubt(store: Store) -> None:
    moments = iter([NOON + timedelta(minutes=minutes) for minutes in range(0, 99, 4)])
    platform = RecordedPlatform(OSError("first"), capabilities=Capabilities(idempotency_window=REMEMBERS))

    class Later(RecordedPlatform):
        async def send(self, delivery: Delivery) -> str:
            if platform.keys:
                raise NotSent("no connection")
            return await platform.send(delivery)

    (one,) = await carried(
        store, Later(capabilities=Capabilities(idempotency_window=REMEMBERS)), item(), now=lambda: next(moments)
    )

    assert (one.status, one.sent_at, platform.keys) == ("doubtful", NOON, ["o1"])


@pytest.mark.parametrize("given", ["\ud800", "\0", 7, True, None, "", b"1", 1.5])
async def test_whatever_a_platform_gives_for_an_id_the_reply_is_sent_once(store: Store, given: Any) -> None:
    platform = Receipts(given, capabilities=Capabilities(idempotency_window=REMEMBERS))
    (one,) = await carried(store, platform, item())
    made = outbox_sender(store, platform)
    await made.recover()
    await made.done()

    assert (one.status, platform.keys) == ("sent", ["o1"])
    assert one.message_id == ("7" if given == 7 else "o1-unknown")
    assert await store.log.count(DIRECT) == 1


async def test_an_id_that_is_another_messages_is_kept_with_the_reply_and_nowhere_else(store: Store) -> None:
    await store.inbox.receive(a_message("hello", id="s-0", place=DIRECT, author=ALICE), at=NOON)

    (one,) = await carried(store, RecordedPlatform(), item())

    assert (one.status, one.message_id, one.author) == ("sent", "s-0", None)
    assert [message.author for message in await store.log.read(DIRECT, 0, 9)] == [ALICE]


class Full:
    """An outbox that has no room for a while."""

    def __init__(self, outbox: Any, times: int) -> None:
        self._outbox = outbox
        self._times = times

    async def change(self, one: OutboxItem) -> None:
        if self._times and one.status == "sent":
            self._times -= 1
            raise StoreFull("there is no room left")
        await self._outbox.change(one)


async def test_a_receipt_is_kept_in_the_end_also_if_there_is_no_room_for_a_while(store: Store) -> None:
    platform, slept = RecordedPlatform(), Slept()
    await kept(store, item())
    made = outbox_sender(store_with(store, outbox=Full(store.outbox, 3)), platform, sleep=slept)

    made.enqueue([item()])
    await made.done()

    assert (slept.pauses, platform.texts) == ([1.0, 2.0, 4.0], ["o1"])
    assert [one.status for one in await store.outbox.listed()] == ["sent"]


def test_a_platform_that_does_not_answer_is_not_waited_for_for_ever(world: World) -> None:
    class Silent(RecordedPlatform):
        async def send(self, delivery: Delivery) -> str:
            await asyncio.sleep(math.inf if delivery.id == "o1" else 0)
            return await super().send(delivery)

    platform = Silent()
    replies = [item("o1"), item("o2")]

    async def work() -> list[OutboxItem]:
        return await carried(world.store, platform, *replies, now=world.now)

    first, second = world.loop.run(work())

    assert (first.status, first.why) == ("doubtful", "TimeoutError while sending")
    assert (second.status, platform.texts) == ("sent", ["o2"])
    assert world.loop.moment == SEND_TIMEOUT


def test_an_engine_that_closes_does_not_wait_for_such_a_platform_either(world: World) -> None:
    class Silent(RecordedPlatform):
        async def send(self, delivery: Delivery) -> str:
            await asyncio.sleep(math.inf)
            return delivery.id

    async def work() -> None:
        await kept(world.store, item("o1"), item("o2"))
        made = outbox_sender(world.store, Silent())
        made.enqueue([item("o1"), item("o2")])
        await asyncio.sleep(1)
        await made.close()

    world.loop.run(work())

    assert world.loop.moment < SEND_TIMEOUT
    assert world.rows("outbox", "outgoing_id", "status") == [("o1", "sending"), ("o2", "waiting")]


async def test_a_file_is_read_when_it_is_sent_and_one_that_is_gone_is_words(store: Store) -> None:
    stored = await store.media.add("p", b"a picture", StoredFile(sha256="", size=9, mime="image/png"), at=NOON)
    media = (
        Media(media_kind="photo", unique_id="p", sha256=stored.sha256),
        Media(media_kind="photo", unique_id="q", sha256="0" * 64, rendered_text="a dog"),
    )
    platform = RecordedPlatform()

    await carried(store, platform, item(reply=Reply(place=DIRECT, text="Look.", media=media)))

    (shown,) = platform.shown.values()
    assert (shown.text, [one.data for one in shown.media]) == ("Look.\n\na dog", [b"a picture"])


@pytest.mark.parametrize("trouble", [StoreFull("no disk"), TimeoutError()], ids=["cannot be read", "slow"])
@pytest.mark.parametrize("before", ["waiting", "sending"])
async def test_a_reply_whose_file_cannot_be_read_yet_is_not_sent_and_tried_again(
    store: Store, trouble: Exception, before: Any
) -> None:
    stored = await store.media.add("p", b"a picture", StoredFile(sha256="", size=9, mime="image/png"), at=NOON)
    statuses: list[str] = []

    class Slow:
        async def read(self, sha256: str, *, at: datetime) -> bytes | None:
            statuses.extend([one.status for one in await store.outbox.listed()])
            if len(statuses) == 1:
                raise trouble
            return await store.media.read(sha256, at=at)

    photo = Media(media_kind="photo", unique_id="p", sha256=stored.sha256)
    reply = item(reply=Reply(place=DIRECT, text="", media=(photo,)), status=before, sent_at=NOON)
    platform = RecordedPlatform(capabilities=Capabilities(idempotency_window=REMEMBERS, media=ALL_MEDIA))

    (one,) = await carried(store_with(store, media=Slow()), platform, reply)

    assert statuses == [before, before]
    assert (one.status, one.attempts, one.unknown_attempts) == ("sent", 1, 0)
    assert [[media.data for media in shown.media] for shown in platform.shown.values()] == [[b"a picture"]]


async def test_a_file_that_cannot_be_read_for_long_is_words_and_holds_up_no_other_reply(store: Store) -> None:
    slept, platform = Slept(), RecordedPlatform()

    class Broken:
        async def read(self, sha256: str, *, at: datetime) -> bytes | None:
            assert len(slept.pauses) < 20
            raise StoreRefused("it may not be read")

    photo = Media(media_kind="photo", unique_id="p", sha256="0" * 64, rendered_text="a dog")
    replies = [item("o1", reply=Reply(place=DIRECT, text="Look.", media=(photo,))), item("o2")]

    sent = await carried(store_with(store, media=Broken()), platform, *replies, sleep=slept)

    assert [one.status for one in sent] == ["sent", "sent"]
    assert platform.texts == ["Look.\n\na dog", "o2"]
    assert slept.pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]


async def test_each_attempt_is_stored_with_its_times_and_what_became_of_it(store: Store) -> None:
    moments = iter([NOON + timedelta(seconds=second) for second in range(9)])
    platform = RecordedPlatform(NotSent("down"), capabilities=Capabilities(edits=True))

    await carried(store, platform, item(), now=lambda: next(moments))

    assert await store.outbox.attempts("o1", "o2") == {
        "o1": [
            DeliveryAttempt(
                number=1, begun_at=NOON, ended_at=NOON + timedelta(seconds=1), outcome="waiting", why="down"
            ),
            DeliveryAttempt(
                number=2,
                begun_at=NOON + timedelta(seconds=2),
                ended_at=NOON + timedelta(seconds=4),
                outcome="sent",
            ),
        ]
    }
