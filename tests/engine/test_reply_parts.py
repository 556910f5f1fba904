"""A reply that a platform splits is one row of the outbox for each part, and one message in the log."""

import asyncio
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.engines import DIRECT, GROUP, ME, engine_with, said, talked, texts_of
from people import NOON
from tertulia import Media, Reply, Text
from tertulia.engine.languages.lines import ENGLISH
from tertulia.engine.reply_parts import separators_in, split_replies
from tertulia.engine.store_protocols import OutboxItem
from tertulia.engine.task_worker import TaskHandler
from tertulia.errors import NotSent, SendRefused
from tertulia.messages import Quote
from tertulia.models import Scripted
from tertulia.platform import Capabilities, Commanded
from tertulia.store import Store
from tertulia.tasks.task import Task
from tertulia.testing import RecordedPlatform

LONG = "one two\n\nthree four\n\nfive six"  # three parts of at most ten characters
PARTS = ["one two", "three four", "five six"]


class Short(RecordedPlatform):
    """A platform whose messages hold ten characters."""

    capabilities = Capabilities(length=10, media=frozenset({"photo"}))


def item(text: str = LONG, **changes: Any) -> OutboxItem:
    reply = Reply(place=DIRECT, text=text, reply_to="7")
    fields: dict[str, Any] = {"id": "o1", "reply": reply, "made_at": NOON, "author": ME}
    return OutboxItem(**fields | changes)


def test_each_part_is_a_row_of_its_own_and_the_first_has_the_id_of_the_reply() -> None:
    photo = Media(media_kind="photo", unique_id="p", data=b"x", mime="image/png")
    whole = item(reply=Reply(place=DIRECT, text=LONG, reply_to="7", media=(photo,)))

    parts = split_replies([whole], {"recorded": Short()})

    assert parts == (
        item(reply=Reply(place=DIRECT, text="one two", reply_to="7"), reply_id="o1"),
        item(id="o1.1", reply=Reply(place=DIRECT, text="three four"), reply_id="o1", part=1, separator="\n\n"),
        item(
            id="o1.2",
            reply=Reply(place=DIRECT, text="five six", media=(photo,)),
            reply_id="o1",
            part=2,
            separator="\n\n",
        ),
    )


def test_a_reply_that_fits_stays_as_it_is() -> None:
    assert split_replies([item("short")], {"recorded": Short()}) == (item("short"),)


class Broken(RecordedPlatform):
    def __init__(self, given: Any) -> None:
        super().__init__()
        self.given = given

    def split(self, reply: Reply) -> Sequence[Reply]:
        if isinstance(self.given, BaseException):
            raise self.given
        return self.given  # type: ignore[no-any-return]


NOT_SPLIT: list[Any] = [
    ValueError("no"),
    SystemExit(3),
    None,
    (),
    (Reply(place=DIRECT, text=" "),),
    ("one two", "three four"),
    (Reply(place=DIRECT, text="one two"), None),
    (Reply(place=DIRECT, text=5),),  # type: ignore[arg-type]
    (Reply(place=DIRECT, text="one two", media="photo"),),  # type: ignore[arg-type]
    (Reply(place=DIRECT, text="one two", reply_to=7), Reply(place=DIRECT, text="three")),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("given", NOT_SPLIT)
def test_what_a_platform_cannot_split_goes_whole(given: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert split_replies([item()], {"recorded": Broken(given)}) == (item(),)
    assert "sent whole" in caplog.text


@pytest.mark.parametrize("texts", [["one two"], ["one two", "three"]])
def test_every_part_goes_to_the_place_of_its_reply(texts: list[str]) -> None:
    elsewhere = [Reply(place=GROUP, text=text) for text in texts]

    parts = split_replies([item()], {"recorded": Broken(elsewhere)})

    assert [(part.reply.place, part.reply.text) for part in parts] == [(DIRECT, text) for text in texts]


@given(st.text(alphabet="ab \n", max_size=60), st.integers(1, 12))
def test_the_parts_and_what_stands_between_them_are_the_text_as_it_was_written(text: str, length: int) -> None:
    platform = Short()
    platform.capabilities = Capabilities(length=length)

    parts = split_replies([item(text)], {"recorded": platform})

    if len(parts) > 1:
        assert "".join(part.separator + part.reply.text for part in parts).strip() == text.strip()


def test_where_a_platform_has_changed_the_text_a_line_ends_between_its_parts() -> None:
    assert separators_in("a b c", ["a", "*b*", "c"]) == ["", "\n", "\n"]


async def log_of(store: Store) -> list[tuple[str, str]]:
    return [(message.id, *texts_of([message])) for message in await store.log.read(DIRECT, 0, 99)]  # type: ignore[misc]


async def test_an_answer_goes_out_in_parts_and_is_one_message_of_log_and_prompt(store: Store) -> None:
    platform, model = Short(), Scripted(LONG, "ok")
    async with engine_with(model, platform, store=store) as engine:
        await talked(engine, said("hi", 1), said("more", 2))

    assert platform.texts == [*PARTS, "ok"]
    assert await log_of(store) == [("1", "hi"), ("s-0", LONG), ("2", "more"), ("s-3", "ok")]
    spoken = [turn for turn in model.prompts[1].turns if turn.role == "model"]
    assert texts_of(spoken) == [LONG]


async def test_what_is_said_by_itself_by_a_task_or_by_a_command_is_split_too(store: Store) -> None:
    platform = Short()

    async def ring(_: Task) -> Sequence[Reply]:
        return [Reply(place=DIRECT, text=LONG)]

    async with engine_with(Scripted(), platform, store=store, task_handlers={"ring": TaskHandler(run=ring)}) as engine:
        await engine.say(DIRECT, LONG)
        await engine.settled()
        await engine.schedule([Task(id="t", kind="ring", place=DIRECT, due_at=NOON)])
        await engine.settled()
        command = Commanded(message=said("/tasks", 3), name="tasks")
        await engine.inbox("recorded").apply([command], key="u")
        await engine.settled()

    assert platform.texts == [*PARTS, *PARTS, "Nothing is", "planned", "here."]
    assert [text for _, text in await log_of(store)] == [LONG, LONG]


async def test_a_refused_part_drops_the_rest_and_the_log_shows_what_people_saw(store: Store) -> None:
    platform = Short()
    async with engine_with(Scripted(LONG), platform, store=store) as engine:
        send = platform.send

        async def refuse_second(delivery: Any) -> str:
            if delivery.reply.text == PARTS[1]:
                raise SendRefused("no")
            return await send(delivery)

        platform.send = refuse_second  # type: ignore[method-assign]
        await talked(engine, said("hi", 1))

    assert [(one.status, one.why) for one in await store.outbox.listed()] == [
        ("sent", ""),
        ("dropped", "no"),
        ("dropped", "part 2 of the reply was dropped"),
        ("sent", ""),
    ]
    assert platform.texts == [PARTS[0], ENGLISH.refused_rest]
    assert await log_of(store) == [("1", "hi"), ("s-0", "one two")]


async def test_a_doubtful_part_is_listed_and_the_rest_follows(store: Store) -> None:
    platform = Short(TimeoutError())
    async with engine_with(Scripted(LONG), platform, store=store) as engine:
        await talked(engine, said("hi", 1))

    first, *rest = await store.outbox.listed()
    assert [first.status, *(one.status for one in rest)] == ["doubtful", "sent", "sent"]
    assert await log_of(store) == [("1", "hi"), (first.id, LONG)]


async def test_a_doubtful_part_that_is_sent_after_all_stands_where_it_belongs(store: Store) -> None:
    platform = Short(TimeoutError())
    async with engine_with(Scripted(LONG), platform, store=store) as engine:
        await talked(engine, said("@gryag_bot hi", 1, place=GROUP))
        (doubtful,) = await store.outbox.listed("doubtful")
        await store.outbox.decide(doubtful.id, "waiting")
    async with engine_with(Scripted(), platform, store=store) as engine:
        await engine.settled()

    (_, ours) = await store.log.read(GROUP, 0, 9)
    assert (ours.id, ours.parts, ours.doubtful) == ("s-3", (Text(text=LONG),), False)
    assert ours.reply_to is not None


async def test_a_part_that_waits_holds_the_next_back(store: Store) -> None:
    platform = Short()
    platform.fail_before = [NotSent("busy"), NotSent("busy")]

    async def at_once(_: float) -> None:
        await asyncio.sleep(0)

    async with engine_with(Scripted(LONG), platform, store=store, sleep=at_once) as engine:
        await talked(engine, said("hi", 1))

    assert platform.texts == PARTS
    assert [one.attempts for one in await store.outbox.listed()] == [3, 1, 1]


async def test_in_a_group_a_reply_to_any_part_is_a_reply_to_us(store: Store) -> None:
    platform, model = Short(), Scripted(LONG, "ok")
    async with engine_with(model, platform, store=store) as engine:
        await talked(engine, said("@gryag_bot hi", 1, place=GROUP))
        await talked(engine, said("what?", 2, place=GROUP, reply_to=Quote(message_id="s-2")))

    assert platform.texts == [*PARTS, "ok"]
    assert (await store.log.read(GROUP, 2, 3))[0].reply_to == Quote(message_id="s-0")


@given(st.lists(st.sampled_from(["sent", "refused", "doubtful"]), min_size=3, max_size=3))
def test_whatever_becomes_of_the_parts_they_go_in_order_and_each_once(fates: list[str]) -> None:
    errors = {"refused": SendRefused("no"), "doubtful": TimeoutError()}

    async def fated() -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
        platform = Short()
        send, left = platform.send, list(fates)

        async def sends(delivery: Any) -> str:
            fate = "sent" if delivery.kind == "error" else "refused" if delivery.plain else left.pop(0)
            receipt = await send(delivery) if fate != "refused" else ""
            if fate in errors:
                raise errors[fate]
            return receipt

        platform.send = sends  # type: ignore[method-assign]
        async with Store.open(":memory:") as store, engine_with(Scripted(LONG), platform, store=store) as engine:
            await talked(engine, said("hi", 1))
            statuses = [one.status for one in await store.outbox.listed()]
            return platform.texts, statuses, [text for _, text in (await log_of(store))[1:]]

    shown, statuses, logged = asyncio.run(fated())

    tried = fates[: fates.index("refused") + 1] if "refused" in fates else fates
    became = {"sent": "sent", "refused": "dropped", "doubtful": "doubtful"}
    told = [line] if (line := refusal_line(fates)) else []
    assert statuses == [
        *(became[one] if one else "dropped" for one, _ in zip_longest(tried, PARTS)),
        *["sent"] * len(told),
    ]
    assert shown == [*(part for part, fate in zip(PARTS, tried, strict=False) if fate != "refused"), *told]
    seen = [part for part, fate in zip(PARTS, tried, strict=False) if fate != "refused"]
    assert logged == (["\n\n".join(seen)] if seen else [])


def refusal_line(fates: list[str]) -> str:
    if "refused" not in fates:
        return ""
    return ENGLISH.refused_rest if fates.index("refused") else ENGLISH.refused
