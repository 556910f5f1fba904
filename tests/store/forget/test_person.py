"""A person who is forgotten is nowhere in the file; everybody else still is."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from memory.known import a_fact, a_subject
from people import ALICE, BOB, GROUP, GRYAG, NOON, a_message, a_photo, a_quote, texts
from store.builders import (
    a_record,
    a_run,
    a_task,
    a_tool_run,
    add_episode,
    add_own,
    an_outgoing,
    begin,
    files_hold,
    prompt_sent,
)
from tertulia.context.budget import group_reports
from tertulia.context.values import LeftOut
from tertulia.engine.store_protocols import DeliveryAttempt, PromptOutdated
from tertulia.errors import InvalidValue, PromptRemoved, StoreBusy
from tertulia.media.descriptions import Description
from tertulia.memory.values import Summary
from tertulia.messages import Author, Message, Place, Quote, Reply
from tertulia.parts import Text, ToolCall, ToolResult
from tertulia.run.journal import Journal
from tertulia.store import Forgotten, Store
from tertulia.store.forget import removal
from tertulia.store.log import SqlLog
from tertulia.store.threads import Operation
from tertulia.turns import Prompt, Turn, model, user

SECRET = "my grandmother keeps the blue key under the third flowerpot"
NICK = "Xanthippe"
HER = Author(id="u777001", name=NICK, username="xanthippe_of_athens")
HOME = Place(platform="telegram", id="u777001", kind="direct", title=NICK)
ELSEWHERE = Place(platform="telegram", id="-5", kind="group", title="Elsewhere")
PHOTO = a_photo(unique_id="photo-of-her-door", data=b"her own door")
SHARED = a_photo(unique_id="a-cat-all-know")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[Store]:
    async with Store.open(path) as opened:
        yield opened


async def hear(store: Store, *messages: Message) -> None:
    for message in messages:
        await store.inbox.receive(message, at=NOON)


async def test_nothing_of_a_person_is_left_in_what_was_left_out_of_a_prompt(store: Store, path: Path) -> None:
    await hear(store, a_message("hello all", id="1", author=BOB), a_message(SECRET, id="2", author=HER))
    left = [
        LeftOut(source="window", why="over", ids=("2",), tokens=9),
        LeftOut(source="background", why="over", ids=("fact-of-hers",), tokens=9),
        LeftOut(source="background", why="over", text=SECRET, tokens=9),
    ]
    await store.runs.begin(
        a_run(target="1", taken=("1",)), Prompt.of("hello all"), at=NOON, left_out=group_reports(left)
    )

    await store.forget(platform="telegram", author_id=HER.id, at=NOON)

    sent = await store.prompts.sent("r1", 0)
    assert sent is not None
    assert sent.left_out == (
        LeftOut(source="window", why="over", ids=("2",), tokens=9),
        LeftOut(source="background", why="over", tokens=18, count=2),
    )
    assert not files_hold(path.parent, "fact-of-hers")
    assert not files_hold(path.parent, "flowerpot")


async def everything_about(store: Store) -> None:
    """Her words in every room."""
    await hear(
        store,
        a_message("hello all", id="1", author=BOB),
        a_message(SECRET, id="2", author=HER),
        a_message(
            "really?", id="3", author=BOB, reply_to=Quote(message_id="2", author=HER, parts=(Text(text=SECRET),))
        ),
        a_message("", id="4", author=HER, parts=(PHOTO, SHARED)),
        a_message("mine too", id="5", author=BOB, parts=(SHARED,)),
        a_message(SECRET + " at home", id="1", author=HER, place=HOME),
    )
    await store.inbox.edit(a_message("never mind", id="2", author=replace(HER, name="X2")), at=NOON)
    for about, place, source, fact in (
        (HER, GROUP, "1", "she keeps a key somewhere"),
        (BOB, GROUP, "2", "Bob was told a secret"),
        (BOB, GROUP, "3", f"Bob is married to {NICK}"),
        (BOB, GROUP, "3", "Bob drinks tea"),
        (HER, HOME, "1", "she lives in Athens"),
    ):
        await store.facts.learn([a_fact(fact, about=about, place=place, sources=(source,))])
    await store.place_settings.block(platform="telegram", author_id=HER.id, at=NOON)
    await store.place_settings.block(platform="telegram", author_id=ALICE.id, at=NOON)
    for photo in (PHOTO, SHARED):
        await store.descriptions.describe(photo.unique_id, f"words for {photo.unique_id}", by="m", at=NOON)
    await add_own(store, a_message("Noted.", id="6", author=GRYAG), [user(SECRET), model("Noted.")])
    await run_about(store, "r1", GROUP, [user("hello all"), user(f"From: {NICK}\n{SECRET}")])
    await run_about(store, "r2", HOME, [user(SECRET + " at home")])
    await run_about(store, "r3", ELSEWHERE, [user("nothing of hers")])


async def run_about(store: Store, name: str, place: Place, heard: list[Turn]) -> None:
    run = a_run(id=name, place=place)
    await begin(store, run)
    await store.runs.ask(run, 0, Prompt.of(*heard, system="Be kind to everybody you meet."), at=NOON)
    await store.runs.add_record(run, 0, a_record(turn=heard[-1], raw={"text": texts(heard[-1].parts)}))
    said = texts(heard[-1].parts)[0]
    call = a_tool_run(call=ToolCall(name="note", args={"text": said}), result=ToolResult(name="note", value=said))
    await store.runs.begin_tool(run, call)
    replies = [replace(an_outgoing(said, id=f"o-{name}"), reply=replace(an_outgoing(said).reply, place=place))]
    await store.runs.end(run, replies=replies, tasks=[a_task(id=f"t-{name}", place=place, args={"text": said})])


async def test_nothing_of_a_forgotten_person_is_left_in_any_file(store: Store, path: Path) -> None:
    await everything_about(store)
    assert files_hold(path.parent, SECRET)

    report = await store.forget(platform="telegram", author_id=HER.id)

    assert report == Forgotten(
        places=1, messages=3, quotes=1, names=2, descriptions=1, facts=4, runs=2, prompts=4, records=2, tool_runs=2,
        replies=2, tasks=2, blocks=1,
    )  # fmt: skip
    for words in (SECRET, "grandmother", "flowerpot", NICK, HER.username or "", HER.id, PHOTO.unique_id, "X2"):
        assert not files_hold(path.parent, words), words
    for words in ("never mind", "keeps a key", "told a secret", "married", "Athens"):
        assert not files_hold(path.parent, words), words
    assert await store.check() == []
    assert (path.parent / "s.db-wal").stat().st_size == 0


async def test_everybody_else_is_still_there(store: Store) -> None:
    await everything_about(store)
    gone = a_message("", author=Author(id="", name=""), sent_at=None, deleted=True)

    await store.forget(platform="telegram", author_id=HER.id)

    assert list(await store.log.read(GROUP, 0, 9)) == [
        a_message("hello all", id="1", author=BOB),
        replace(gone, id="2"),
        a_message("really?", id="3", author=BOB, reply_to=Quote(message_id="2")),
        replace(gone, id="4"),
        a_message("mine too", id="5", author=BOB, parts=(SHARED,)),
        a_message("Noted.", id="6", author=GRYAG),
    ]
    assert await store.descriptions.find([PHOTO.unique_id, SHARED.unique_id]) == {
        SHARED.unique_id: Description(words=f"words for {SHARED.unique_id}")
    }
    assert await store.facts.listed() == [a_fact("Bob drinks tea", about=BOB, sources=("3",))]
    assert await store.place_settings.blocked() == {("telegram", ALICE.id)}
    assert await prompt_sent(store, "r3", 0) == Prompt.of("nothing of hers", system="Be kind to everybody you meet.")
    assert [task.args for task in await store.tasks.listed(ELSEWHERE)] == [{"text": "nothing of hers"}]


async def test_of_a_run_that_showed_her_words_only_that_it_was_there_is_left(store: Store) -> None:
    await everything_about(store)

    await store.forget(platform="telegram", author_id=HER.id)

    assert await prompt_sent(store, "r1", 0) is None
    assert await store.runs.journal("r1") == Journal(run=a_run(id="r1"), prompt=None, records=(), tools=())
    assert [(reply.reply.text, reply.status) for reply in await store.outbox.listed()] == [
        ("", "dropped"),
        ("nothing of hers", "waiting"),
    ]
    assert [(task.id, task.status, task.args) for task in await store.tasks.listed(GROUP)] == [
        ("t-r1", "cancelled", {})
    ]
    assert await store.runs.journal("r2") is None


async def test_her_messages_do_not_come_again_and_what_was_read_before_is_read_anew(store: Store) -> None:
    await everything_about(store)
    before = await store.log.read(GROUP, 0, 9)
    assert await store.log.turns(before) != {}

    await store.forget(platform="telegram", author_id=HER.id)

    assert await store.inbox.receive(a_message(SECRET, id="2", author=HER), at=NOON) is False
    after = await store.log.read(GROUP, 0, 9)
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False, False, False, True, True]
    assert await store.log.turns(after) == {}


async def test_she_may_come_back(store: Store) -> None:
    await everything_about(store)
    await store.log.read(HOME, 0, 9)
    await store.forget(platform="telegram", author_id=HER.id)
    again = a_message("it is me", id="9", author=HER, place=HOME)

    assert await store.log.count(HOME) == 0
    assert await store.inbox.receive(again, at=NOON) is True
    assert list(await store.log.read(HOME, 0, 9)) == [again]
    assert await store.inbox.receive(a_message("hi", id="9", author=HER), at=NOON) is True
    assert await store.check() == []


async def test_somebody_with_the_same_id_elsewhere_or_the_same_name_stays(store: Store) -> None:
    twin, namesake = replace(GROUP, platform="discord"), replace(HER, id="u8")
    await hear(
        store,
        a_message(SECRET, id="1", author=HER),
        a_message("I stay", id="2", author=HER, place=twin),
        a_message("me too", id="3", author=namesake),
    )

    report = await store.forget(platform="telegram", author_id=HER.id)

    assert report == Forgotten(messages=1, names=1)
    assert list(await store.log.read(twin, 0, 9)) == [a_message("I stay", id="2", author=HER, place=twin)]
    assert list(await store.log.read(GROUP, 1, 9)) == [a_message("me too", id="3", author=namesake)]


async def test_a_quote_without_an_author_is_known_by_the_message_it_names(store: Store, path: Path) -> None:
    quote = Quote(message_id="1", parts=(Text(text=SECRET),), excerpt="the blue key")
    await hear(store, a_message(SECRET, id="1", author=HER), a_message("hm", id="2", author=BOB, reply_to=quote))
    await store.inbox.edit(a_message("hmm", id="2", author=BOB, edited_at=NOON), at=NOON)

    await store.forget(platform="telegram", author_id=HER.id)

    assert (await store.log.read(GROUP, 1, 2))[0].reply_to == Quote(message_id="1")
    assert not files_hold(path.parent, "flowerpot")


async def test_old_versions_of_others_lose_their_quotes_of_her_too(store: Store, path: Path) -> None:
    await hear(store, a_message("so", id="2", author=BOB, reply_to=a_quote(SECRET, author=HER)))
    await store.inbox.edit(a_message("so?", id="2", author=BOB, reply_to=a_quote("x", author=ALICE)), at=NOON)

    assert (await store.forget(platform="telegram", author_id=HER.id)).quotes == 1
    assert not files_hold(path.parent, "flowerpot")
    assert (await store.log.read(GROUP, 0, 1))[0].reply_to == a_quote("x", author=ALICE)


async def test_the_prompts_of_runs_that_knew_a_message_of_hers_go_and_those_from_before_stay(
    store: Store, path: Path
) -> None:
    heard = [user(f"message number {n} of somebody else, long enough") for n in range(12)]
    heard[6] = user(SECRET)
    prompts = [Prompt.of(*heard[: n + 1]) for n in range(12)]
    await hear(store, *(a_message("hi", id=str(n), author=BOB) for n in range(6)), a_message(SECRET, author=HER))
    for number, prompt in enumerate(prompts):
        await store.runs.begin(a_run(id=f"r{number}", target="0", taken=(), horizon=number + 1), prompt, at=NOON)

    report = await store.forget(platform="telegram", author_id=HER.id)

    assert [await prompt_sent(store, f"r{number}", 0) for number in range(12)] == [*prompts[:6], *[None] * 6]
    assert (report.runs, report.prompts) == (6, 6)
    with pytest.raises(PromptRemoved, match="the prompts of run 'r6' were removed by a forget"):
        await store.prompts.sent("r6", 0)
    assert await store.check() == []
    assert not files_hold(path.parent, "flowerpot")


async def test_layers_go_on_growing_after_somebody_was_forgotten(store: Store) -> None:
    heard = [user(f"message number {n} of somebody else, long enough") for n in range(12)]
    await hear(store, a_message(SECRET, id="1", author=HER))
    for number in range(6):
        told = [user(SECRET)] if number < 3 else []
        await store.runs.begin(a_run(id=f"r{number}"), Prompt.of(*heard[: number + 6], *told), at=NOON)

    await store.forget(platform="telegram", author_id=HER.id)
    await store.runs.begin(a_run(id="r6"), Prompt.of(*heard), at=NOON)

    assert await prompt_sent(store, "r6", 0) == Prompt.of(*heard)
    assert await store.check() == []


async def test_a_run_under_way_that_showed_her_goes_on_with_nothing_but_an_honest_line(
    store: Store, path: Path
) -> None:
    run = a_run(target="2", taken=("2",), horizon=2)
    await hear(store, a_message(SECRET, id="1", author=HER), a_message("and?", id="2", author=BOB))
    await store.runs.begin(run, Prompt.of(SECRET, "and?"), at=NOON)

    await store.forget(platform="telegram", author_id=HER.id)

    refused = "showed what was forgotten since; it cannot go on"
    with pytest.raises(InvalidValue, match=refused):
        await store.runs.add_record(run, 0, a_record(turn=model(SECRET)))
    with pytest.raises(InvalidValue, match=refused):
        await store.runs.begin_tool(run, a_tool_run(call=ToolCall(name="note", args={"text": SECRET})))
    with pytest.raises(InvalidValue, match=refused):
        await store.runs.ask(run, 1, Prompt.of(SECRET), at=NOON)
    with pytest.raises(InvalidValue, match=refused):
        await store.runs.end(replace(run, status="done"), replies=[an_outgoing(SECRET)])
    assert await store.outbox.listed() == []
    await store.runs.end(replace(run, status="failed"), replies=[an_outgoing("Sorry.")])
    assert [one.reply.text for one in await store.outbox.listed()] == ["Sorry."]
    assert not files_hold(path.parent, "flowerpot")


async def test_what_is_under_way_in_her_direct_chat_comes_to_nothing(store: Store, path: Path) -> None:
    run = a_run(place=HOME, target="1", taken=("1",))
    line = an_outgoing(SECRET, reply=Reply(place=HOME, text=SECRET))
    await hear(store, a_message(SECRET, id="1", author=HER, place=HOME))
    await store.outbox.put(line)
    await begin(store, run)

    await store.forget(platform="telegram", author_id=HER.id)

    await store.runs.end(replace(run, status="done"), replies=[replace(line, id="o2")])
    with pytest.raises(InvalidValue, match="there is no reply 'o1'; it was forgotten with its place"):
        await store.outbox.change(replace(line, status="sending", attempts=1))
    with pytest.raises(PromptOutdated):
        await store.runs.begin(replace(run, id="r2"), Prompt.of(SECRET), at=NOON, changes=0)
    assert (await store.outbox.listed(), await store.runs.open()) == ([], [])
    assert not files_hold(path.parent, HER.id)


async def test_a_reply_being_sent_comes_to_its_receipt_without_her_words(store: Store, path: Path) -> None:
    sending = an_outgoing(SECRET, status="sending", attempts=1, author=GRYAG)
    await hear(store, a_message(SECRET, id="1", author=HER))
    await store.outbox.put(sending)

    await store.forget(platform="telegram", author_id=HER.id)

    with pytest.raises(InvalidValue, match="was dropped"):
        await store.outbox.change(replace(sending, status="waiting"))
    await store.outbox.change(replace(sending, status="sent", message_id="9", sent_at=NOON))
    assert [(one.reply.text, one.status) for one in await store.outbox.listed()] == [("", "sent")]
    assert not files_hold(path.parent, "flowerpot")


async def test_an_error_of_sending_keeps_no_words_of_hers(store: Store, path: Path) -> None:
    await hear(store, a_message(SECRET, id="1", author=HER))
    for number, text in enumerate(("ok", SECRET)):
        reply = an_outgoing(text, id=f"o{number}")
        await store.outbox.put(reply)
        attempt = DeliveryAttempt(number=1, begun_at=NOON, ended_at=NOON, outcome="waiting", why=f"no room: {SECRET}")
        await store.outbox.change(replace(reply, attempts=1, why="later", attempt=attempt))

    await store.forget(platform="telegram", author_id=HER.id)

    attempts = await store.outbox.attempts("o0", "o1")
    assert [one.why for items in attempts.values() for one in items] == ["", ""]
    assert not files_hold(path.parent, "flowerpot")


async def test_an_emptied_reply_is_not_sent_again(store: Store) -> None:
    await hear(store, a_message(SECRET, id="1", author=HER))
    await store.outbox.put(an_outgoing(SECRET))
    await store.forget(platform="telegram", author_id=HER.id)

    with pytest.raises(InvalidValue, match="reply 'o1' says nothing any more: somebody it came from was forgotten"):
        await store.outbox.decide("o1", "waiting")


async def test_short_words_are_hers_only_where_she_was(store: Store) -> None:
    await hear(store, a_message("ok", id="1", author=HER), a_message("👍", id="2", author=HER))
    for place in (GROUP, ELSEWHERE):
        for text in ("ok", "👍", "looking"):
            await store.tasks.add([a_task(id=f"{place.id} {text}", place=place, args={"text": text})])

    await store.forget(platform="telegram", author_id=HER.id)

    left = [task.args["text"] for place in (GROUP, ELSEWHERE) for task in await store.tasks.listed(place) if task.args]
    assert left == ["looking", "ok", "👍", "looking"]


async def test_while_somebody_reads_what_was_removed_it_is_said_that_it_is_not_gone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tertulia.store.sqlite.connection._BUSY_TIMEOUT", 0.01)
    async with Store.open(path) as store:
        await everything_about(store)
        rows = store.export()
        await anext(rows)

        with pytest.raises(StoreBusy, match="somebody still reads what was removed; forget once more"):
            await store.forget(platform="telegram", author_id=HER.id)
        await rows.aclose()  # type: ignore[attr-defined]
        assert await store.forget(platform="telegram", author_id=HER.id) == Forgotten(known=False)

        assert not files_hold(path.parent, "flowerpot")


async def test_her_direct_chat_is_read_and_written_while_it_is_removed(store: Store) -> None:
    await hear(store, *(a_message("hi", id=str(number), author=HER, place=HOME) for number in range(3)))
    write, gone = store.writer.run, list[bool]()

    async def run(unit: Operation[Any], **named: Any) -> Any:
        if getattr(unit, "func", None) is not removal.remove_place_part:
            return await write(unit, **named)
        if not gone:
            await hear(store, a_message("wait", id="3", author=HER, place=HOME))
        gone.append(await write(unit, **named))
        await SqlLog(store.reader).read(HOME, 0, 9)
        if gone == [False, True]:
            await hear(store, a_message("no, stay", id="4", author=HER, place=HOME))
        return gone[-1]

    store.writer.run = run  # type: ignore[assignment, method-assign]
    await store.forget(platform="telegram", author_id=HER.id, at=NOON)

    assert gone == [False, True, False, True]
    assert await store.names_by_platform(HER.id) == {}
    assert await store.log.count(HOME) == 0


async def test_somebody_nobody_knows_is_forgotten_already(store: Store) -> None:
    await hear(store, a_message(id="1"))

    assert await store.forget(platform="telegram", author_id="nobody") == Forgotten(known=False)
    assert await store.forget(platform="telegram", author_id="\ud800") == Forgotten(known=False)
    assert list(await store.log.read(GROUP, 0, 9)) == [a_message(id="1")]


async def test_forgetting_twice_removes_nothing_more(store: Store) -> None:
    await everything_about(store)
    await store.forget(platform="telegram", author_id=HER.id)

    assert await store.forget(platform="telegram", author_id=HER.id) == Forgotten(known=False)
    assert await store.forget(platform="telegram", author_id=ALICE.id) == Forgotten(blocks=1)
    assert await store.forget(platform="telegram", author_id=ALICE.id) == Forgotten(known=False)
    assert await store.check() == []


async def test_what_was_built_on_a_layer_that_goes_stands_alone(store: Store, path: Path) -> None:
    heard = [user(f"message number {n} of somebody else, long enough") for n in range(12)]
    await hear(store, a_message(SECRET, id="1", author=HER))
    await store.runs.begin(a_run(), Prompt.of(*heard, SECRET), at=NOON)
    await store.runs.begin(a_run(id="r2", horizon=0), Prompt.of(*heard, "something else"), at=NOON)

    report = await store.forget(platform="telegram", author_id=HER.id)

    assert report.prompts == 1
    assert await prompt_sent(store, "r2", 0) == Prompt.of(*heard, "something else")
    assert await store.check() == []
    assert not files_hold(path.parent, "flowerpot")


async def test_what_was_remembered_of_her_is_gone_from_prompts_too(store: Store) -> None:
    fact = "collects porcelain frogs from Delft and Sintra"
    await hear(store, a_message("I collect something", id="1", author=BOB))
    await store.facts.learn([a_fact(fact, about=HER, sources=("1",))])
    await store.runs.begin(a_run(), Prompt.of("hi", system=f"Known of the author: {fact}"), at=NOON)

    assert await store.forget(platform="telegram", author_id=HER.id) == Forgotten(runs=1, prompts=1, facts=1)
    assert await prompt_sent(store, "r1", 0) is None


async def test_what_she_alone_said_of_others_is_gone_from_tasks_too_and_what_they_say_stays(store: Store) -> None:
    await hear(store, a_message("he moved", id="1", author=HER), a_message("I am tall", id="2", author=BOB))
    learned = [("lives in Delft", BOB, "1"), ("is tall", ALICE, "1"), ("is tall", BOB, "2")]
    await store.facts.learn([a_fact(text, about=about, sources=(source,)) for text, about, source in learned])
    told = [
        a_task(id=f"t{number}", args={"text": f"Known of Bob: {text}"})
        for number, (text, *_) in enumerate(learned[::2])
    ]
    await store.tasks.add(told)

    report = await store.forget(platform="telegram", author_id=HER.id)

    assert report == Forgotten(messages=1, names=1, tasks=1, facts=2)
    assert await store.facts.listed() == [a_fact("is tall", about=BOB, sources=("2",))]
    assert [task.args.get("text") for task in await store.tasks.listed()] == [None, "Known of Bob: is tall"]


async def test_summaries_and_episodes_of_her_or_with_her_words_go_and_others_stay(store: Store, path: Path) -> None:
    await hear(store, a_message(SECRET, id="1", author=HER), a_message("tea?", id="2", author=BOB))
    await hear(store, a_message("at home", id="1", author=HER, place=HOME))
    for about, place, text in (
        (HER, GROUP, "A keeper of keys."),
        (BOB, GROUP, f"A friend of {NICK}."),
        (BOB, ELSEWHERE, "A drinker of tea."),
    ):
        told = Summary(subject=a_subject(about), place=place, text=text, facts=1, digest="d", made_at=NOON)
        await store.facts.summarise(told)
    for name, row, start, stop, topic, summary, people in (
        ("hers", 1, 5, 6, "keys", "They talked of hiding places.", f'["{HER.id}"]'),
        ("words", 1, 0, 1, "keys", f"About {SECRET}.", '["u456"]'),
        ("home", 2, 0, 1, "home", "Some visit.", "[]"),
        ("other", 1, 1, 2, "tea", "Bob had tea.", '["u456"]'),
    ):
        columns = {"start": start, "stop": stop, "topic": topic, "summary": summary, "people": people}
        await add_episode(store, episode_id=name, place=row, title=row, **columns)

    report = await store.forget(platform="telegram", author_id=HER.id)

    assert (report.summaries, report.episodes) == (2, 3)
    assert [row["text"] async for row in store.export() if row["table"] == "summaries"] == ["A drinker of tea."]
    assert [row["episode_id"] async for row in store.export() if row["table"] == "episodes"] == ["other"]
    for words in ("keeper of keys", "hiding places", "Some visit", NICK):
        assert not files_hold(path.parent, words), words
    assert await store.check() == []


async def test_what_followed_a_task_with_her_words_is_still_done(store: Store) -> None:
    await hear(store, a_message(SECRET, id="1", author=HER))
    plan = [a_task(id="a", run="r1", args={"text": SECRET}), a_task(id="b", run="r1", after=("a",))]
    await store.tasks.add(plan)
    (running,) = await store.tasks.take(NOON)

    assert await store.forget(platform="telegram", author_id=HER.id) == Forgotten(messages=1, names=1, tasks=1)
    await store.tasks.end(replace(running, status="done"), replies=[an_outgoing(SECRET)])

    assert await store.outbox.listed() == []
    assert [task.id for task in await store.tasks.take(NOON)] == ["b"]
    assert await store.check() == []


REPEATED = {
    "a word": ("my zyzzyva is ill", "zyzzyva"),
    "a short word": ("my puli is ill", "puli"),
    "a number": ("call me at 0671234567", "0671234567"),
    "a short number": ("my room is 7350418", "7350418"),
    "a number, put otherwise": ("call me at +380 67 123-45-67", "380671234567"),
    "Chinese": ("我住在朝阳区八里庄南里", "朝阳区"),
    "Thai": ("ฉันมีกระซิบลับ", "กระซิบ"),
    "a form of a word": ("моя мимрячка захворіла", "мимрячки"),
    "a name": ("hi", NICK),
}


@pytest.mark.parametrize(("said", "word"), REPEATED.values(), ids=REPEATED)
async def test_a_single_word_of_hers_is_gone_wherever_the_agent_repeated_it(
    store: Store, path: Path, said: str, word: str
) -> None:
    run = a_run(target="2", taken=("2",), horizon=2)
    await hear(store, a_message(said, id="1", author=HER), a_message("and?", id="2", author=BOB))
    await add_own(store, a_message(f"It was {word}!", id="3", author=GRYAG), [model(f"thinks {word}"), model("x")])
    agents = Quote(message_id="3", author=GRYAG, parts=(Text(text=f"It was {word}!"),))
    await hear(store, a_message("what?", id="4", author=BOB, reply_to=agents))
    await store.runs.begin(run, Prompt.of("and?"), at=NOON)
    await store.runs.add_record(
        run, 0, a_record(turn=model("x"), raw={"args": f"\\u{ord(word[0]):04x}{word[1:]}", "t": word})
    )
    await store.runs.begin_tool(run, a_tool_run(call=ToolCall(name="note", args={word: [word]})))
    replies = [an_outgoing(f"so {word}"), an_outgoing("tea at five", id="o2")]
    plan = [a_task(args={"text": word}), a_task(id="t2", args={"text": "tea at five"})]
    await store.runs.end(replace(run, status="done"), replies=replies, tasks=plan)
    await store.facts.learn([a_fact(f"knows {word}", about=BOB, sources=("2",))])

    report = await store.forget(platform="telegram", author_id=HER.id)

    assert not files_hold(path.parent, word)
    assert report == Forgotten(
        messages=1, names=1, quotes=1, facts=1, runs=1, prompts=1, records=1, tool_runs=1, answers=1, replies=1, tasks=1
    )
    assert [message.deleted for message in await store.log.read(GROUP, 0, 9)] == [True, False, True, False]
    assert [(one.id, one.status) for one in await store.outbox.listed()] == [("o1", "dropped"), ("o2", "waiting")]
    assert [(task.id, task.args) for task in await store.tasks.take(NOON)] == [("t2", {"text": "tea at five"})]
    assert await store.check() == []


KEPT_OF_A_RUN = ["the prompt", "the answer", "its JSON", "the arguments", "the result"]


@pytest.mark.parametrize("where", KEPT_OF_A_RUN)
async def test_a_run_for_somebody_else_goes_wherever_in_it_her_word_stands(
    store: Store, path: Path, where: str
) -> None:
    kept = dict.fromkeys(KEPT_OF_A_RUN, "tea at five") | {where: "the zyzzyva is ill"}
    run = a_run(target="2", taken=("2",), horizon=2)
    await hear(store, a_message("my zyzzyva is ill", id="1", author=HER), a_message("and?", id="2", author=BOB))
    await store.runs.begin(run, Prompt.of(kept["the prompt"]), at=NOON)
    await store.runs.add_record(run, 0, a_record(turn=model(kept["the answer"]), raw={"text": kept["its JSON"]}))
    call = ToolCall(name="note", args={"text": kept["the arguments"]})
    await store.runs.begin_tool(run, a_tool_run(call=call, result=ToolResult(name="note", value=kept["the result"])))

    report = await store.forget(platform="telegram", author_id=HER.id)

    assert report == Forgotten(messages=1, names=1, runs=1, prompts=1, records=1, tool_runs=1)
    assert await store.runs.journal("r1") == Journal(run=run, prompt=None, records=(), tools=())
    assert not files_hold(path.parent, "zyzzyva")


async def test_what_others_wrote_too_is_not_hers_alone(store: Store) -> None:
    run = a_run(target="2", taken=("2",))
    await hear(store, a_message("zyzzyva 4417", id="1", author=HER), a_message("my Zyzzyva 4417", id="2", author=BOB))
    await store.runs.begin(run, Prompt.of("my Zyzzyva 4417"), at=NOON)
    await store.runs.end(replace(run, status="done"), tasks=[a_task(args={"text": "feed the zyzzyva 4417"})])

    await store.forget(platform="telegram", author_id=HER.id)

    assert [task.args for task in await store.tasks.take(NOON)] == [{"text": "feed the zyzzyva 4417"}]


async def test_a_word_the_agent_used_before_her_is_not_hers(store: Store) -> None:
    await add_own(store, a_message("A reminder: tea.", id="0", author=GRYAG), [])
    await hear(store, a_message("what reminder", id="1", author=HER), a_message("thanks", id="2", author=BOB))
    await store.tasks.add([a_task(args={"text": "a reminder for Bob"})])

    await store.forget(platform="telegram", author_id=HER.id)

    assert [task.args for task in await store.tasks.take(NOON)] == [{"text": "a reminder for Bob"}]


async def test_reminders_and_replies_made_for_her_go_whatever_they_say_and_those_of_others_fire_once(
    store: Store,
) -> None:
    await hear(store, a_message("remind me", id="1", author=HER), a_message("remind me", id="2", author=BOB))
    for number in ("1", "2"):
        run = a_run(id=f"r{number}", target=number, taken=(number,))
        await store.runs.begin(run, Prompt.of("remind me"), at=NOON)
        tasks = [a_task(id=f"t{number}", args={"text": "now"}, made_by=run.id)]
        await store.runs.end(replace(run, status="done"), replies=[an_outgoing("Done.", id=f"o{number}", run=run.id)])
        await store.tasks.add(tasks)

    await store.forget(platform="telegram", author_id=HER.id)

    assert [(one.id, one.reply.text) for one in await store.outbox.listed()] == [("o1", ""), ("o2", "Done.")]
    assert [task.id for task in await store.tasks.take(NOON)] == ["t2"]
    assert await store.tasks.take(NOON) == []


async def test_a_direct_chat_of_somebody_else_who_quoted_her_stays(store: Store, path: Path) -> None:
    bobs = Place(platform="telegram", id=BOB.id, kind="direct", title="Bob")
    quoting = a_message("look", id="1", author=BOB, place=bobs, reply_to=a_quote(SECRET, author=HER))
    await hear(store, quoting)

    assert await store.forget(platform="telegram", author_id=HER.id) == Forgotten(quotes=1)
    assert list(await store.log.read(bobs, 0, 9)) == [replace(quoting, reply_to=Quote(message_id="m0"))]
    assert not files_hold(path.parent, "flowerpot")


async def test_all_titles_of_a_group_are_removed(store: Store, path: Path) -> None:
    parties = [replace(GROUP, title=f"{NICK} and {number} friends") for number in range(30)]
    await hear(store, *(a_message("hi", id=str(at), author=BOB, place=place) for at, place in enumerate(parties)))
    await hear(store, a_message("hello", id="hers", author=HER, place=parties[0]))
    await store.tasks.add([a_task(place=parties[1], args={"text": "cake"})])
    await store.outbox.put(an_outgoing(reply=Reply(place=parties[2], text="Yes?")))

    report = await store.forget(platform="telegram", author_id=HER.id)

    assert report == Forgotten(messages=1, names=1, titles=30)
    assert {one.place.title for one in await store.log.read(GROUP, 0, 30)} == {""}
    assert [task.place.title for task in await store.tasks.take(NOON)] == [""]
    assert [one.reply.place.title for one in await store.outbox.listed()] == [""]
    assert not files_hold(path.parent, NICK)
    assert await store.check() == []


async def test_a_group_that_was_called_by_her_name_has_no_title_until_it_is_called_again(
    store: Store, path: Path
) -> None:
    party = replace(GROUP, title=f"{NICK} and friends")
    await hear(store, a_message("hello", id="1", author=HER, place=party), a_message("hi", id="2", place=party))
    await hear(store, a_message("so", id="3", author=BOB, place=replace(GROUP, title="")))
    await store.tasks.add([a_task(place=party, args={"text": "cake"})])
    await store.outbox.put(an_outgoing(reply=Reply(place=party, text="Yes?")))

    report = await store.forget(platform="telegram", author_id=HER.id)

    assert report == Forgotten(messages=1, names=1, titles=1)
    assert not files_hold(path.parent, NICK)
    assert [task.args for task in await store.tasks.take(NOON)] == [{"text": "cake"}]
    assert await store.check() == []
