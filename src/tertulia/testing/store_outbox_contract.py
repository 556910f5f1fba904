"""OutboxContract: the tests of replies, and of the messages that they become."""

from typing import Any, get_args

import pytest
from msgspec.structs import replace

from tertulia.engine.store_protocols import DeliveryAttempt, OutboxItem, SendStatus, StoreProtocol
from tertulia.errors import InvalidValue
from tertulia.events import DurableEvent, ReplyDoubtful, ReplyDropped, ReplyQueued, ReplySent
from tertulia.messages import Place, Quote, Reply
from tertulia.parts import Media, Text, ToolCall, ToolResult
from tertulia.platform import Change, Delivered, PlaceMigrated, Received
from tertulia.testing.store_world import (
    BOB,
    DIRECT,
    GROUP,
    LATER,
    ME,
    NOON,
    PROMPT,
    a_message,
    a_reply,
    a_run,
    apply,
    check,
    log_of,
    receive,
    waiting,
)
from tertulia.turns import model, user

TURNS = (model(ToolCall(name="look", id="a"), by="gemini-3.8-flash"), user(ToolResult(name="look", id="a", value=1)))


def in_parts(*texts: str) -> list[OutboxItem]:
    """Return the parts of one reply, each on a line of its own."""
    return [
        a_reply(text, id=f"o{n}", author=ME, reply_id="r", part=n, separator="\n" if n else "")
        for n, text in enumerate(texts)
    ]


def sent(reply: OutboxItem, as_id: str) -> OutboxItem:
    return replace(reply, status="sent", message_id=as_id, sent_at=LATER)


def in_doubt(name: str, *, text: str = "Yes?", place: Place = GROUP, **changes: Any) -> OutboxItem:
    """Return a reply that may have been sent."""
    reply = a_reply(id=name, author=ME, status="doubtful", attempts=1, sent_at=NOON)
    return replace(reply, **{"reply": Reply(place=place, text=text), **changes})


def shown(name: str, *, text: str = "Yes?", **changes: Any) -> Received:
    """Return a message of our account, as the door hands it to the store."""
    return Received(message=a_message(text, **{"id": name, "author": ME, "agent": "", **changes}))


def arrived(delivery: str, name: str, *, place: Place = GROUP) -> Delivered:
    return Delivered(place=place, delivery_id=delivery, message_id=name)


class OutboxContract:
    """A reply is sent or not, and is a message of its place exactly where people may have seen it."""

    @check
    async def test_a_sent_reply_is_a_message_of_the_place_once(self, store: StoreProtocol) -> None:
        await receive(store, a_message("photo?"))
        photo = Media(media_kind="photo", unique_id="p1", mime="image/jpeg", data=b"\xff\xd8jpeg")
        reply = a_reply(author=ME, turns=TURNS)
        reply = replace(reply, reply=Reply(place=GROUP, text="Here.", reply_to="m1", media=(photo,)))
        await store.outbox.put(reply)
        before = await store.log.count(GROUP)
        for _ in range(2):
            await store.outbox.put(replace(reply, status="sent", message_id="77", sent_at=LATER))

        quote = Quote(message_id="m1", author=a_message().author, parts=a_message("photo?").parts)
        parts = (Text(text="Here."), photo)
        said = a_message(id="77", author=ME, sent_at=LATER, parts=parts, reply_to=quote, agent="")
        assert before == 1
        assert await log_of(store) == [a_message("photo?"), said]
        assert await store.log.turns([said]) == {"77": TURNS}

    @check
    async def test_a_doubtful_reply_is_one_message_that_its_receipt_gives_the_id_of_the_platform(
        self, store: StoreProtocol
    ) -> None:
        reply = a_reply(author=ME)
        await store.outbox.put(reply)
        await store.outbox.put(replace(reply, status="sending", attempts=1))
        await store.outbox.put(replace(reply, status="doubtful", attempts=1, sent_at=NOON))
        doubtful = [(message.id, message.doubtful) for message in await log_of(store)]
        await store.outbox.put(replace(reply, status="sent", attempts=1, message_id="77", sent_at=NOON))

        assert doubtful == [("o1", True)]
        assert [(message.id, message.doubtful) for message in await log_of(store)] == [("77", False)]

    @check
    async def test_replies_are_listed_by_their_status(self, store: StoreProtocol) -> None:
        replies = [
            a_reply(id=f"o{n}", status=status, attempts=n, why="w") for n, status in enumerate(get_args(SendStatus))
        ]
        for reply in replies:
            await store.outbox.put(reply)

        assert list(await store.outbox.unsent()) == replies[:2]
        assert list(await store.outbox.listed("doubtful", "dropped")) == replies[3:]
        assert list(await store.outbox.listed()) == replies
        assert list(await store.outbox.to_retry()) == []

    @check
    async def test_a_sent_reply_stays_sent_and_a_dropped_one_dropped(self, store: StoreProtocol) -> None:
        await store.outbox.put(a_reply(id="sent", status="sent", message_id="9"))
        await store.outbox.put(a_reply(id="dropped"))
        await store.outbox.decide("dropped", "dropped")

        with pytest.raises(InvalidValue, match="was sent already"):
            await store.outbox.put(a_reply(id="sent"))
        with pytest.raises(InvalidValue, match="was dropped"):
            await store.outbox.put(a_reply(id="dropped", status="sending"))
        with pytest.raises(InvalidValue, match="reply 'sent' is sent"):
            await store.outbox.decide("sent", "waiting")
        assert await store.outbox.decide("no such", "waiting") is None

        await store.outbox.decide("dropped", "waiting")
        assert [(reply.id, reply.status) for reply in await store.outbox.listed()] == [
            ("sent", "sent"),
            ("dropped", "waiting"),
        ]

    @check
    async def test_a_platform_may_show_a_reply_before_its_receipt_comes(self, store: StoreProtocol) -> None:
        reply = a_reply(author=ME)
        await store.outbox.put(reply)
        await apply(store, Received(message=a_message("Yes?", id="77", author=ME)))
        await store.outbox.put(sent(reply, "77"))

        assert [message.id for message in await log_of(store)] == ["77"]
        assert await waiting(store) == []

    @check
    async def test_an_echo_settles_a_doubtful_reply_on_its_row(self, store: StoreProtocol) -> None:
        echoes: tuple[Change, ...] = (shown("77"), arrived("o0", "77", place=DIRECT))
        for key, (echo, place) in enumerate(zip(echoes, (GROUP, DIRECT), strict=True)):
            await store.outbox.put(in_doubt(f"o{1 - key}", place=place))
            await apply(store, echo, key=str(key))

            log = [(one.id, one.doubtful, one.agent) for one in await log_of(store, place)]
            assert log == [("77", False, "")]
            assert await waiting(store, place) == []
        assert [one.status for one in await store.outbox.listed()] == ["sent", "sent"]

    @check
    async def test_an_echo_before_the_receipt_makes_no_second_message(self, store: StoreProtocol) -> None:
        echoes: tuple[Change, ...] = (shown("77"), arrived("o2", "78"))
        for number, echo in enumerate(echoes):
            reply = replace(a_reply(author=ME), id=f"o{number + 1}")
            await store.outbox.put(reply)
            await store.outbox.put(replace(reply, status="sending", attempts=1, sent_at=NOON))
            await apply(store, echo, key=f"u{number}")
            await store.outbox.put(
                replace(reply, status="sent", attempts=1, message_id=f"{77 + number}", sent_at=LATER)
            )

        assert [(one.id, one.doubtful) for one in await log_of(store)] == [("77", False), ("78", False)]
        assert [one.message_id for one in await store.outbox.listed("sent")] == ["77", "78"]

    @check
    async def test_what_has_arrived_is_not_sent_again(self, store: StoreProtocol) -> None:
        await store.outbox.put(in_doubt("o1"))
        await store.outbox.decide("o1", "waiting")
        await apply(store, shown("77"))

        assert await store.outbox.unsent() == []
        with pytest.raises(InvalidValue, match="was sent already"):
            await store.outbox.put(in_doubt("o1", status="sending"))
        with pytest.raises(InvalidValue, match="was sent already"):
            await store.outbox.put(in_doubt("o1"))

    @check
    async def test_echoes_settle_the_oldest_doubtful_reply_first_each_once(self, store: StoreProtocol) -> None:
        await store.outbox.put(in_doubt("o1", agent="Ada"), in_doubt("o2", agent="Bob"), in_doubt("o3", text="No."))
        for key, name in enumerate(("77", "77", "78", "79")):
            await apply(store, shown(name), key=str(key))

        log = [(one.id, one.agent, one.doubtful) for one in await log_of(store)]
        assert log == [("77", "Ada", False), ("78", "Bob", False), ("o3", "", True), ("79", "", False)]
        assert [(one.id, one.message_id) for one in await store.outbox.listed("sent")] == [("o1", "77"), ("o2", "78")]

    @check
    async def test_only_an_equal_message_of_our_account_in_the_place_settles(self, store: StoreProtocol) -> None:
        await store.outbox.put(in_doubt("o1"))
        photo = Media(media_kind="photo", unique_id="p1")
        others = (
            shown("1", text="Yes!"), shown("2", place=DIRECT), shown("3", author=BOB), shown("4", agent=None),
            shown("5", forwarded_from=BOB), shown("6", parts=(Text(text="Yes?"), photo)),
        )  # fmt: skip
        for key, other in enumerate(others):
            await apply(store, other, key=str(key))
        await apply(store, arrived("no such", "7"), key="none")
        await apply(store, replace(arrived("o1", "8"), place=DIRECT), key="elsewhere")

        assert [one.status for one in await store.outbox.listed()] == ["doubtful"]
        assert [one.id for one in await log_of(store)] == ["o1", "1", "3", "4", "5", "6"]
        assert await waiting(store) == ["1", "3", "4", "5", "6"]

    @check
    async def test_an_echo_settles_a_part_of_a_split_reply(self, store: StoreProtocol) -> None:
        first, second = in_parts("One.", "Two.")
        await store.outbox.put(first, second)
        await store.outbox.put(sent(first, "10"))
        await store.outbox.put(replace(second, status="doubtful", attempts=1, sent_at=NOON))
        await apply(store, shown("11", text="Two."))

        (whole,) = await log_of(store)
        assert (whole.id, whole.text, whole.doubtful) == ("10", "One.\nTwo.", False)

    @check
    async def test_an_echo_ends_the_attempt_that_is_under_way(self, store: StoreProtocol) -> None:
        reply, begun = a_reply(author=ME), DeliveryAttempt(number=1, begun_at=NOON)
        await store.outbox.put(reply)
        await store.outbox.put(replace(reply, status="sending", attempts=1, sent_at=NOON, attempt=begun))
        await apply(store, shown("77"))

        assert await store.outbox.attempts("o1") == {"o1": [replace(begun, ended_at=NOON, outcome="sent")]}

    @check
    async def test_a_receipt_does_not_take_the_message_of_somebody_else(self, store: StoreProtocol) -> None:
        await receive(store, a_message(id="77"))
        await store.outbox.put(a_reply(author=ME))

        with pytest.raises(InvalidValue, match="is the id of a message of somebody else"):
            await store.outbox.put(sent(a_reply(author=ME), "77"))

        assert await log_of(store) == [a_message(id="77")]
        assert [one.status for one in await store.outbox.listed()] == ["waiting"]

    @check
    async def test_a_split_reply_is_one_message_that_each_of_its_parts_names(self, store: StoreProtocol) -> None:
        parts = in_parts("One.", "Two.", "Three.")
        await store.outbox.put(*parts)
        for number, part in enumerate(parts):
            await store.outbox.put(sent(part, f"7{number}"))

        (whole,) = await log_of(store)
        assert (whole.id, whole.text) == ("70", "One.\nTwo.\nThree.")
        assert await store.log.find(GROUP, ["72", "70"]) == [(0, whole), (0, whole)]

        await store.inbox.edit(a_message("2.", id="71", author=ME, edited_at=LATER), at=LATER)
        await store.inbox.delete(GROUP, "70", at=LATER)

        (left,) = await log_of(store)
        assert (left.id, left.text, left.deleted) == ("70", "2.\nThree.", False)

    @check
    async def test_with_a_part_that_is_dropped_those_after_it_are_dropped(self, store: StoreProtocol) -> None:
        first, second, third = in_parts("One.", "Two.", "Three.")
        await store.outbox.put(first, second, third)
        await store.outbox.put(sent(first, "70"))
        await store.outbox.put(replace(second, status="doubtful", attempts=1, sent_at=LATER))
        doubtful = [(message.text, message.doubtful) for message in await log_of(store)]
        await store.outbox.decide("o1", "dropped", why="by hand")

        assert doubtful == [("One.\nTwo.", True)]
        assert [(message.text, message.doubtful) for message in await log_of(store)] == [("One.", False)]
        assert [one.status for one in await store.outbox.listed()] == ["sent", "dropped", "dropped"]

    @check
    async def test_answers_of_runs_are_dropped_and_nothing_else_is(self, store: StoreProtocol) -> None:
        await receive(store, a_message())
        await store.runs.begin(a_run(), PROMPT, at=NOON)
        answers = [a_reply(id=f"o{n}", run="r1", author=ME) for n in range(3)]
        await store.outbox.put(*answers, a_reply(id="o3", run="r1", kind="notice"), a_reply(id="o4", run="r2"))
        await store.outbox.put(sent(answers[0], "77"))

        await store.outbox.drop_answers(["r1", "no such run"], why="stopped")

        found = {one.id: (one.status, one.why) for one in await store.outbox.listed()}
        assert found == {
            "o0": ("sent", ""),
            "o1": ("dropped", "stopped"),
            "o2": ("dropped", "stopped"),
            "o3": ("waiting", ""),
            "o4": ("waiting", ""),
        }

    @check
    async def test_each_new_status_of_a_reply_is_an_event(self, store: StoreProtocol) -> None:
        published: list[DurableEvent] = []
        stop = store.events.subscribe(published.extend, lambda _: None)
        first, second = a_reply(id="o1", author=ME), a_reply(id="o2", author=ME)
        await store.outbox.put(first, second)
        await store.outbox.put(replace(first, status="sending", attempts=1))
        await store.outbox.put(replace(first, status="doubtful", attempts=1, sent_at=NOON))
        await store.outbox.put(sent(first, "77"))
        await store.outbox.decide("o2", "dropped")
        stop()

        found = [(type(event), name) for event in published if (name := getattr(event, "delivery_id", ""))]
        assert found == [
            (ReplyQueued, "o1"),
            (ReplyQueued, "o2"),
            (ReplyDoubtful, "o1"),
            (ReplySent, "o1"),
            (ReplyDropped, "o2"),
        ]
        assert [event.number for event in published] == list(range(1, len(published) + 1))

    @check
    async def test_what_is_to_be_sent_goes_to_where_its_place_is_now(self, store: StoreProtocol) -> None:
        new = replace(GROUP, id="-200")
        await receive(store, a_message(id="1"))
        reply = a_reply(author=ME)
        await store.outbox.put(replace(reply, reply=replace(reply.reply, reply_to="1")))
        await apply(store, PlaceMigrated(old=GROUP, new=new))

        assert [one.reply for one in await store.outbox.unsent()] == [Reply(place=new, text="Yes?")]
