"""A person who is forgotten is nowhere in the file; everybody else still is."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from memory.known import a_fact, a_subject
from palaver.conversation.journal import Journal
from palaver.errors import StoreBusy
from palaver.memory.facts import Summary
from palaver.messages import Author, Message, Place, Quote
from palaver.parts import Text, ToolCall, ToolResult
from palaver.store import Forgotten, Store
from palaver.store.prompts import REMOVED
from palaver.turns import Layer, Prompt, Turn, model, user
from people import ALICE, BOB, GROUP, GRYAG, NOON, a_message, a_photo, a_quote, texts
from store.kept import a_record, a_run, a_task, a_tool_run, an_outgoing, begin, files_hold

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
    await store.standing.block("telegram", HER.id, at=NOON)
    await store.standing.block("telegram", ALICE.id, at=NOON)
    for photo in (PHOTO, SHARED):
        await store.descriptions.describe(photo.unique_id, f"words for {photo.unique_id}", by="m", at=NOON)
    await store.inbox.own(a_message("Noted.", id="6", author=GRYAG), [user(SECRET), model("Noted.")])
    await run_about(store, "r1", GROUP, [user("hello all"), user(f"From: {NICK}\n{SECRET}")])
    await run_about(store, "r2", HOME, [user(SECRET + " at home")])
    await run_about(store, "r3", ELSEWHERE, [user("nothing of hers")])


async def run_about(store: Store, name: str, place: Place, heard: list[Turn]) -> None:
    run = a_run(id=name, place=place)
    await begin(store, run)
    await store.runs.ask(run, 0, Prompt.of(*heard, system="Be kind to everybody you meet."), at=NOON)
    await store.runs.keep(run, 0, a_record(turn=heard[-1], raw={"text": texts(heard[-1].parts)}))
    said = texts(heard[-1].parts)[0]
    call = a_tool_run(call=ToolCall(name="note", args={"text": said}), result=ToolResult(name="note", value=said))
    await store.runs.begin_tool(run, call)
    replies = [replace(an_outgoing(said, id=f"o-{name}"), reply=replace(an_outgoing(said).reply, place=place))]
    await store.runs.end(run, replies=replies, tasks=[a_task(id=f"t-{name}", place=place, args={"text": said})])


async def test_nothing_of_a_forgotten_person_is_left_in_any_file(store: Store, path: Path) -> None:
    await everything_about(store)
    assert files_hold(path.parent, SECRET)

    report = await store.forget(HER.id, "telegram")

    assert report == Forgotten(
        places=1, messages=3, quotes=1, names=2, descriptions=1, layers=2, records=1, tool_runs=1, turns=1, replies=1,
        tasks=1, facts=4, blocks=1,
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

    await store.forget(HER.id, "telegram")

    assert list(await store.log.read(GROUP, 0, 9)) == [
        a_message("hello all", id="1", author=BOB),
        replace(gone, id="2"),
        a_message("really?", id="3", author=BOB, reply_to=Quote(message_id="2")),
        replace(gone, id="4"),
        a_message("mine too", id="5", author=BOB, parts=(SHARED,)),
        a_message("Noted.", id="6", author=GRYAG),
    ]
    assert await store.descriptions.described([PHOTO.unique_id, SHARED.unique_id]) == {
        SHARED.unique_id: f"words for {SHARED.unique_id}"
    }
    assert await store.facts.listed() == [a_fact("Bob drinks tea", about=BOB, sources=("3",))]
    assert await store.standing.blocked() == {("telegram", ALICE.id)}
    assert await store.prompts.rebuilt("r3", 0) == Prompt.of("nothing of hers", system="Be kind to everybody you meet.")
    assert [task.args for task in await store.tasks.listed(ELSEWHERE)] == [{"text": "nothing of hers"}]


async def test_what_held_her_words_says_that_it_was_removed(store: Store) -> None:
    await everything_about(store)

    await store.forget(HER.id, "telegram")

    assert await store.prompts.rebuilt("r1", 0) == Prompt(
        layers=(
            Layer(name="static", instruction="Be kind to everybody you meet."),
            Layer(name="buffered", instruction=REMOVED),
        )
    )
    journal = await store.runs.journal("r1")
    assert isinstance(journal, Journal)
    assert journal.records == ((0, a_record(turn=user(REMOVED), raw=None)),)
    assert journal.tools == (a_tool_run(call=ToolCall(name="note"), result=ToolResult(name="note", value=REMOVED)),)
    assert [(reply.reply.text, reply.status) for reply in await store.outbox.listed()] == [
        (REMOVED, "dropped"),
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

    await store.forget(HER.id, "telegram")

    assert await store.inbox.receive(a_message(SECRET, id="2", author=HER), at=NOON) is False
    after = await store.log.read(GROUP, 0, 9)
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False, False, False, True, True]
    assert await store.log.turns(after) == {}


async def test_she_may_come_back(store: Store) -> None:
    await everything_about(store)
    await store.log.read(HOME, 0, 9)
    await store.forget(HER.id, "telegram")
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

    report = await store.forget(HER.id, "telegram")

    assert report == Forgotten(messages=1, names=1)
    assert list(await store.log.read(twin, 0, 9)) == [a_message("I stay", id="2", author=HER, place=twin)]
    assert list(await store.log.read(GROUP, 1, 9)) == [a_message("me too", id="3", author=namesake)]


async def test_a_quote_without_an_author_is_known_by_the_message_it_names(store: Store, path: Path) -> None:
    quote = Quote(message_id="1", parts=(Text(text=SECRET),), excerpt="the blue key")
    await hear(store, a_message(SECRET, id="1", author=HER), a_message("hm", id="2", author=BOB, reply_to=quote))
    await store.inbox.edit(a_message("hmm", id="2", author=BOB, edited_at=NOON), at=NOON)

    await store.forget(HER.id, "telegram")

    assert (await store.log.read(GROUP, 1, 2))[0].reply_to == Quote(message_id="1")
    assert not files_hold(path.parent, "flowerpot")


async def test_old_versions_of_others_lose_their_quotes_of_her_too(store: Store, path: Path) -> None:
    await hear(store, a_message("so", id="2", author=BOB, reply_to=a_quote(SECRET, author=HER)))
    await store.inbox.edit(a_message("so?", id="2", author=BOB, reply_to=a_quote("x", author=ALICE)), at=NOON)

    assert (await store.forget(HER.id, "telegram")).quotes == 1
    assert not files_hold(path.parent, "flowerpot")
    assert (await store.log.read(GROUP, 0, 1))[0].reply_to == a_quote("x", author=ALICE)


async def test_of_layers_that_grew_only_those_with_her_words_go(store: Store, path: Path) -> None:
    heard = [user(f"message number {n} of somebody else, long enough") for n in range(12)]
    heard[6] = user(SECRET)
    await hear(store, a_message(SECRET, id="1", author=HER))
    await begin(store, a_run())
    for step in range(12):
        await store.runs.ask(a_run(), step, Prompt.of(*heard[: step + 1]), at=NOON)
    for step in range(12, 16):  # what was cut off held her words; what is left does not
        await store.runs.ask(a_run(), step, Prompt.of(*heard[7:], *heard[: step - 11]), at=NOON)

    report = await store.forget(HER.id, "telegram")

    removed = [(await store.prompts.rebuilt("r1", step)) for step in range(16)]
    gone = [prompt is not None and prompt.layers[1].instruction == REMOVED for prompt in removed]
    assert gone == [False] * 6 + [True] * 6 + [False] * 4
    assert report.layers == 6
    assert removed[15] == Prompt.of(*heard[7:], *heard[:4])
    assert await store.check() == []
    assert not files_hold(path.parent, "flowerpot")


async def test_layers_go_on_growing_after_somebody_was_forgotten(store: Store) -> None:
    heard = [user(SECRET), *[user(f"message number {n} of somebody else, long enough") for n in range(12)]]
    await hear(store, a_message(SECRET, id="1", author=HER))
    await begin(store, a_run())
    for step in range(6):
        await store.runs.ask(a_run(), step, Prompt.of(*heard[: step + 6]), at=NOON)

    await store.forget(HER.id, "telegram")
    await store.runs.ask(a_run(), 6, Prompt.of(*heard), at=NOON)

    assert await store.prompts.rebuilt("r1", 6) == Prompt.of(*heard)
    assert await store.check() == []


async def test_short_words_are_hers_only_where_she_was(store: Store) -> None:
    await hear(store, a_message("ok", id="1", author=HER), a_message("👍", id="2", author=HER))
    for name, place in (("r1", GROUP), ("r2", ELSEWHERE)):
        await begin(store, a_run(id=name, place=place))
        for step, text in enumerate(("ok", "👍", "looking")):
            await store.runs.ask(a_run(id=name, place=place), step, Prompt.of(f"{text}", name), at=NOON)

    await store.forget(HER.id, "telegram")

    for name, gone in (("r1", [True, True, False]), ("r2", [False, False, False])):
        prompts = [await store.prompts.rebuilt(name, step) for step in range(3)]
        assert [prompt is not None and prompt.layers[1].instruction == REMOVED for prompt in prompts] == gone


async def test_while_somebody_reads_what_was_removed_it_is_said_that_it_is_not_gone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palaver.store.sqlite._PATIENCE", 0.01)
    async with Store.open(path) as store:
        await everything_about(store)
        rows = store.export()
        await anext(rows)

        with pytest.raises(StoreBusy, match="somebody still reads what was removed; forget once more"):
            await store.forget(HER.id, "telegram")
        await rows.aclose()  # type: ignore[attr-defined]
        assert await store.forget(HER.id, "telegram") == Forgotten()

        assert not files_hold(path.parent, "flowerpot")


async def test_somebody_nobody_knows_is_forgotten_already(store: Store) -> None:
    await hear(store, a_message(id="1"))

    assert await store.forget("nobody", "telegram") == Forgotten()
    assert await store.forget("\ud800", "telegram") == Forgotten()
    assert list(await store.log.read(GROUP, 0, 9)) == [a_message(id="1")]


async def test_forgetting_twice_removes_nothing_more(store: Store) -> None:
    await everything_about(store)
    await store.forget(HER.id, "telegram")

    assert await store.forget(HER.id, "telegram") == Forgotten()
    assert await store.forget(ALICE.id, "telegram") == Forgotten(blocks=1)
    assert await store.forget(ALICE.id, "telegram") == Forgotten()
    assert await store.check() == []


async def test_what_was_built_on_a_layer_that_goes_stands_alone(store: Store, path: Path) -> None:
    heard = [user(f"message number {n} of somebody else, long enough") for n in range(12)]
    await hear(store, a_message(SECRET, id="1", author=HER))
    await begin(store, a_run())
    await store.runs.ask(a_run(), 0, Prompt.of(*heard, SECRET), at=NOON)
    await store.runs.ask(a_run(), 1, Prompt.of(*heard, "something else"), at=NOON)

    report = await store.forget(HER.id, "telegram")

    assert report.layers == 1
    assert await store.prompts.rebuilt("r1", 1) == Prompt.of(*heard, "something else")
    assert await store.check() == []
    assert not files_hold(path.parent, "flowerpot")


async def test_layers_of_many_places_are_read_with_few_of_them_at_hand(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palaver.store.layers._AT_HAND", 2)
    heard = [user(f"message number {n} of somebody else, long enough") for n in range(12)]
    places = [replace(ELSEWHERE, id=str(n)) for n in range(6)]
    await hear(store, a_message(SECRET, id="1", author=HER))
    for step in range(6):
        for place in places:
            run = a_run(id=f"r{place.id}", place=place)
            await begin(store, run)
            told = [SECRET] if (step, place.id) == (4, "3") else []
            await store.runs.ask(run, step, Prompt.of(place.id, *heard[: step + 6], *told), at=NOON)

    report = await store.forget(HER.id, "telegram")

    assert report.layers == 1
    assert await store.prompts.rebuilt("r3", 5) == Prompt.of("3", *heard[:11])
    assert await store.check() == []


async def test_what_was_remembered_of_her_is_gone_from_prompts_too(store: Store) -> None:
    fact = "collects porcelain frogs from Delft and Sintra"
    await hear(store, a_message("I collect something", id="1", author=BOB))
    await store.facts.learn([a_fact(fact, about=HER, sources=("1",))])
    await store.runs.begin(a_run(), Prompt.of("hi", system=f"Known of the author: {fact}"), at=NOON)

    assert await store.forget(HER.id, "telegram") == Forgotten(layers=1, facts=1)
    prompt = await store.prompts.rebuilt("r1", 0)
    assert prompt is not None
    assert prompt.layers[0] == Layer(name="static", instruction=REMOVED)


async def test_what_she_alone_said_of_others_is_gone_from_prompts_too_and_what_they_say_stays(store: Store) -> None:
    await hear(store, a_message("he moved", id="1", author=HER), a_message("I am tall", id="2", author=BOB))
    learned = [("lives in Delft", BOB, "1"), ("is tall", ALICE, "1"), ("is tall", BOB, "2")]
    await store.facts.learn([a_fact(text, about=about, sources=(source,)) for text, about, source in learned])
    for run, (text, *_) in zip(("r1", "r2"), learned[::2], strict=True):
        await store.runs.begin(a_run(id=run), Prompt.of("hi", system=f"Known of Bob: {text}"), at=NOON)

    report = await store.forget(HER.id, "telegram")

    assert report == Forgotten(messages=1, names=1, layers=1, facts=2)
    assert await store.facts.listed() == [a_fact("is tall", about=BOB, sources=("2",))]
    told = [await store.prompts.rebuilt(run, 0) for run in ("r1", "r2")]
    assert [prompt and prompt.layers[0].instruction for prompt in told] == [REMOVED, "Known of Bob: is tall"]


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
    insert = """INSERT INTO episodes (episode_id, place, title, start, stop, topic, summary, importance, people, tags)
        VALUES (?, ?, ?, 0, 1, ?, ?, 0.5, ?, '[]')"""
    for row in (
        ("hers", 1, 1, "keys", "They talked of hiding places.", f'["{HER.id}"]'),
        ("words", 1, 1, "keys", f"About {SECRET}.", '["u456"]'),
        ("home", 2, 2, "home", "Some visit.", "[]"),
        ("other", 1, 1, "tea", "Bob had tea.", '["u456"]'),
    ):
        await store._writer.run(lambda database, row=row: database.execute(insert, row))  # type: ignore[misc]

    report = await store.forget(HER.id, "telegram")

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

    assert await store.forget(HER.id, "telegram") == Forgotten(messages=1, names=1, tasks=1)
    await store.tasks.end(replace(running, status="done"), replies=[an_outgoing(SECRET)])

    assert await store.outbox.listed() == []
    assert [task.id for task in await store.tasks.take(NOON)] == ["b"]
    assert await store.check() == []
