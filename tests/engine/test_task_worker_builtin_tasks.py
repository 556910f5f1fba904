from functools import partial
from typing import Any

import pytest
from msgspec import to_builtins

from engine.engines import ALICE, BOB, DIRECT, GROUP, engine_with, said, shared_by, talked, texts_of
from fakes import Meanwhile
from people import NOON
from tertulia.engine.behavior import Behavior
from tertulia.engine.task_worker import BuiltinTasks
from tertulia.errors import InvalidValue
from tertulia.messages import Author, Place, Reply
from tertulia.models.scripted import Scripted
from tertulia.parts import Media
from tertulia.platform import PlaceRole
from tertulia.profiles import PROFILES
from tertulia.store import Store
from tertulia.tasks.kinds import DESTRUCTIVE, KINDS
from tertulia.tasks.task import FORGET_CONFIRMED, REPEATABLE, Task
from tertulia.testing import RecordedPlatform

ABOUT_ALICE = {"author": to_builtins(ALICE), "source": "1"}


def of(store: Store) -> BuiltinTasks:
    return BuiltinTasks(shared_by(store))


async def done(made: BuiltinTasks, kind: str, place: Place = DIRECT, **args: Any) -> Any:
    return await made.handlers[kind].run(Task(id="t1", kind=kind, place=place, due_at=NOON, args=args))


def test_every_kind_of_block_that_is_work_has_somebody_who_does_it(store: Store) -> None:
    handlers = of(store).handlers

    assert set(handlers) == set(KINDS) - {"wait", "think"} | {FORGET_CONFIRMED} == REPEATABLE
    assert FORGET_CONFIRMED not in KINDS  # no model can ask for it
    assert all(work.repeatable for work in handlers.values())


async def test_what_is_to_be_said_is_said_where_it_was_planned(store: Store) -> None:
    made = of(store)

    assert await done(made, "send", GROUP, text="Tea!", reply_to="5") == [Reply(place=GROUP, text="Tea!", reply_to="5")]
    assert await done(made, "send", GROUP, text="Tea!") == [Reply(place=GROUP, text="Tea!")]
    assert await done(made, "sticker", set="cats", name="wave") == [
        Reply(
            place=DIRECT,
            text="",
            media=(Media(media_kind="sticker", unique_id="cats/wave", label="wave of the set cats"),),
        )
    ]


async def test_and_nothing_of_ours_comes_out_with_it(store: Store) -> None:
    delimiter = await store.place_settings.delimiter(DIRECT)

    said_later = await done(of(store), "send", text=f"Tea! {delimiter}")

    assert [delimiter in reply.text for reply in said_later] == [False]
    assert await done(of(store), "send", text="<think>only thoughts</think>") == []


MALFORMED: list[tuple[str, dict[str, Any], str]] = [
    ("send", {}, "task t1 is no send"),
    ("send", {"text": 5}, "task t1 is no send"),
    ("sticker", {"set": "cats"}, "task t1 is no sticker"),
    ("remember", ABOUT_ALICE, "task t1 has no facts to remember"),
    ("remember", {**ABOUT_ALICE, "facts": "tea"}, "task t1 has no facts to remember"),
    ("remember", {"facts": ["tea"], "source": "1"}, "task t1 has no author"),
    ("block", {}, "task t1 has no author"),
    ("block", {"author": "1"}, "task t1 has no author"),
    ("unblock", {"author": {"id": 1}}, "task t1 has no author"),
    (FORGET_CONFIRMED, {"facts": "all"}, "task t1 has no list of facts to forget"),
    ("clear-conversation", {}, "task t1 has no number at which the conversation begins"),
    ("clear-conversation", {"beginning": "now"}, "task t1 has no number at which the conversation begins"),
]


@pytest.mark.parametrize(("kind", "args", "why"), MALFORMED)
async def test_a_task_that_does_not_say_what_is_to_be_done_is_refused(
    store: Store, kind: str, args: dict[str, Any], why: str
) -> None:
    with pytest.raises(InvalidValue, match=why):
        await done(of(store), kind, **args)

    assert await store.place_settings.blocked() == frozenset()


async def test_who_is_blocked_is_blocked_at_once_and_by_whoever_starts_later(store: Store) -> None:
    made = of(store)

    await done(made, "block", **ABOUT_ALICE)

    assert await store.place_settings.blocked() == {("recorded", ALICE.id)}


async def test_and_unblocked_likewise_and_doing_it_twice_is_doing_it_once(store: Store) -> None:
    made = of(store)
    for _ in range(2):
        await done(made, "block", **ABOUT_ALICE)
    await done(made, "block", author=to_builtins(BOB))

    for _ in range(2):
        await done(made, "unblock", **ABOUT_ALICE)

    assert await store.place_settings.blocked() == {("recorded", BOB.id)}


async def test_a_conversation_begins_where_the_run_has_seen_it_and_never_earlier(store: Store) -> None:
    made = of(store)
    assert await store.place_settings.beginning(GROUP) == 0

    await done(made, "clear-conversation", GROUP, beginning=5)
    await done(made, "clear-conversation", GROUP, beginning=3)

    assert (await store.place_settings.beginning(GROUP), await store.place_settings.beginning(DIRECT)) == (5, 0)


class Owned(RecordedPlatform):
    async def role(self, place: Place, author: Author) -> PlaceRole:
        return "owner"


async def test_what_is_said_while_a_conversation_is_being_cleared_belongs_to_the_new_one(store: Store) -> None:
    late = partial(store.inbox.receive, said("words that came meanwhile", 2, place=GROUP), at=NOON)
    model = Meanwhile(late, "Gone.\n# «clear-conversation»", "Yes.")
    may = Behavior(debounce=0.0, model_may=DESTRUCTIVE)
    async with engine_with(model, Owned(), store=store, behavior=may) as engine:
        await talked(engine, said("Gryag, old words", 1, place=GROUP), said("Gryag?", 3, place=GROUP))

    assert "old words" not in str(model.prompts[1].turns)
    assert "words that came meanwhile" in str(model.prompts[1].turns)


async def test_a_plan_is_carried_out_in_the_voice_of_the_place(store: Store) -> None:
    platform = RecordedPlatform()
    model = Scripted("# «wait»\ndelay: 0\n# «send» 1\nThere.\n# «sticker»\ncats\nwave")

    async with engine_with(model, platform, store=store) as engine:
        await talked(engine, said("Gryag?", place=GROUP))

    assert list(platform.shown.values()) == [
        Reply(place=GROUP, text="There.", reply_to="1"),
        Reply(
            place=GROUP,
            text="",
            media=(Media(media_kind="sticker", unique_id="cats/wave", label="wave of the set cats"),),
        ),
    ]


async def test_a_plan_stands_in_the_history_as_the_model_wrote_it(store: Store) -> None:
    later = "# «wait»\ndelay: 0\n# «send» 1\nThere.\n# «sticker»\ncats\nhi"
    model = Scripted(f"Ok.\n# «sticker»\ncats\nwave\n{later}", "Yes.")

    async with engine_with(model, store=store, profile=PROFILES["plain"]) as engine:
        await talked(engine, said("Gryag?"), said("And?", 2))

    assert texts_of([turn for turn in model.prompts[1].turns if turn.role == "model"]) == [
        "Ok.",
        "# «sticker»\ncats\nwave",
        "# «send» 1\nThere.",
        "# «sticker»\ncats\nhi",
    ]
