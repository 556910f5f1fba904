"""Owners are those that the config names. Nobody else has their commands."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engines import ALICE, AT_ONCE, BOB, DIRECT, GROUP, ME, engine_with, said, shared_by, talked, until
from engine.test_commands import told
from people import NOON
from store.builders import skip
from tertulia.context.values import Persona
from tertulia.engine.behavior import Behavior
from tertulia.engine.command_list import help_lines
from tertulia.engine.languages.lines import ENGLISH
from tertulia.engine.limits import Limits
from tertulia.engine.owner_commands import OwnerCommands
from tertulia.engine.owner_settings import OwnerSettings
from tertulia.engine.store_protocols import Command
from tertulia.errors import InvalidValue
from tertulia.messages import Author, Quote
from tertulia.models import Scripted
from tertulia.models.base import Response, Usage
from tertulia.store import Store
from tertulia.testing import Clock, RecordedPlatform
from tertulia.turns import model

OWNED = replace(AT_ONCE, owners=("recorded:1",))  # by Alice
GRYAG = Persona(name="gryag", text="You are gryag.")
PIRATE = Persona(name="gryag", text="You are a pirate.")
SENT = ["/block 2", "/unblock 2", "/limit", "/persona", "/stats", "/usage"]


@pytest.mark.parametrize("owner", ["", "1", ":1", "telegram:", "telegram: "])
def test_an_owner_is_an_account_of_a_service(owner: str) -> None:
    with pytest.raises(InvalidValue, match="an owner is an account as `service:id`, such as telegram:123; not"):
        Behavior(owners=(owner,))


@pytest.mark.parametrize("line", SENT)
async def test_for_others_there_is_no_such_command(store: Store, line: str) -> None:
    platform, name = RecordedPlatform(), line.split()[0]
    platform.administrators = {BOB.id}
    async with engine_with(Scripted(), platform, store=store, behavior=OWNED) as engine:
        direct = await told(engine, platform, line, author=BOB)
        group = await told(engine, platform, line, author=BOB, place=GROUP, key="c2")

    assert (direct, group) == ([f"There is no {name}; /help lists what there is."], [])
    assert await store.place_settings.blocked() == frozenset()


@pytest.mark.parametrize("line", SENT[2:])
async def test_in_a_group_an_owner_is_told_nothing_about_the_bot(store: Store, line: str) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted(), platform, store=store, behavior=OWNED) as engine:
        assert await told(engine, platform, line, place=GROUP) == []


async def test_an_account_of_another_service_with_the_id_of_an_owner_is_none(store: Store) -> None:
    platform, behavior = RecordedPlatform(), replace(AT_ONCE, owners=("telegram:1",))
    async with engine_with(Scripted(), platform, store=store, behavior=behavior) as engine:
        assert await told(engine, platform, "/stats") == ["There is no /stats; /help lists what there is."]


async def test_help_lists_what_owners_may_do_in_a_direct_chat_with_them(store: Store) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted(), platform, store=store, behavior=OWNED) as engine:
        direct = await told(engine, platform, "/help")
        group = await told(engine, platform, "/help", place=GROUP, key="c2")

    assert direct == ["\n".join(help_lines(ENGLISH, owner=True).values())]
    assert group == ["\n".join(help_lines(ENGLISH).values())]


async def test_an_owner_administers_every_group(store: Store) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted("Yes?"), platform, store=store, behavior=OWNED) as engine:
        await talked(engine, said("Gryag!", 1, place=GROUP, author=BOB))
        assert await told(engine, platform, "/clear", place=GROUP) == [ENGLISH.begun_anew]

    assert await store.place_settings.beginning(GROUP) == 2


async def test_an_owner_blocks_by_an_id_or_by_a_reply_and_unblocks(store: Store) -> None:
    platform, model = RecordedPlatform(), Scripted("Hello.")
    quote = Quote(message_id="1")  # this platform says no more of it
    async with engine_with(model, platform, store=store, behavior=OWNED) as engine:
        await talked(engine, said("spam", 1, place=GROUP, author=BOB))
        replied = await told(engine, platform, "/block", place=GROUP, reply_to=quote)
        blocked = [await store.place_settings.blocked()]
        await talked(engine, said("Gryag, spam", 2, place=GROUP, author=BOB))
        unblocked = await told(engine, platform, "/unblock 2", key="c2")
        blocked.append(await store.place_settings.blocked())
        named = await told(engine, platform, "/block recorded:2", key="c3")
        blocked.append(await store.place_settings.blocked())

    assert (replied, unblocked, named) == (["2 is blocked."], ["2 is unblocked."], ["2 is blocked."])
    assert blocked == [{("recorded", "2")}, frozenset(), {("recorded", "2")}]
    assert model.prompts == []


async def test_an_owner_is_told_that_nobody_is_known_by_an_id(store: Store) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted(), platform, store=store, behavior=OWNED) as engine:
        unblocked = await told(engine, platform, "/unblock 777")
        blocked = await told(engine, platform, "/block 777", key="c2")

    assert unblocked == [f"777 was not blocked.\n{ENGLISH.unknown_person}"]
    assert blocked == [f"777 is blocked.\n{ENGLISH.unknown_person}"]
    assert await store.place_settings.blocked() == {("recorded", "777")}


@pytest.mark.parametrize(
    ("line", "quote", "answer"),
    [
        ("/block", None, "Whom? /block ID, or /block as a reply to a message of theirs."),
        ("/unblock", None, "Whom? /unblock ID, or /unblock as a reply to a message of theirs."),
        ("/block Bob the Builder", None, "Whom? /block ID, or /block as a reply to a message of theirs."),
        ("/block 1", None, ENGLISH.block_nobody),
        ("/block bot", None, ENGLISH.block_nobody),
        ("/block", Quote(message_id="9", author=ME), ENGLISH.block_nobody),
        ("/block", Quote(message_id="9"), "Whom? /block ID, or /block as a reply to a message of theirs."),
    ],
)
async def test_nobody_is_blocked_by_mistake(store: Store, line: str, quote: Quote | None, answer: str) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted(), platform, store=store, behavior=OWNED) as engine:
        assert await told(engine, platform, line, reply_to=quote) == [answer]

    assert await store.place_settings.blocked() == frozenset()


async def test_an_owner_who_is_blocked_or_over_the_limit_still_has_these_commands(store: Store) -> None:
    platform = RecordedPlatform()
    await store.place_settings.block(platform="recorded", author_id=ALICE.id, at=NOON)
    limits = Limits(messages=1, seconds=3600)
    async with engine_with(Scripted(), platform, store=store, behavior=OWNED, limits=limits) as engine:
        answers = [await told(engine, platform, "/unblock 1", key=f"c{number}") for number in range(3)]

    assert answers == [["1 is unblocked."], ["1 was not blocked."], ["1 was not blocked."]]
    assert await store.place_settings.blocked() == frozenset()


async def test_the_limit_is_shown_set_and_taken_back(store: Store) -> None:
    platform, note = RecordedPlatform(), ENGLISH.until_reset.format(command="limit")
    async with engine_with(Scripted("1", "2"), platform, store=store, behavior=OWNED) as engine:
        shown = await told(engine, platform, "/limit")
        changed = await told(engine, platform, "/limit 2", key="c2")
        both = await told(engine, platform, "/limit 1 3600.5", key="c3")
        again = await told(engine, platform, "/limit", key="c4")
        limits = engine.limits
        await talked(engine, *(said("hi", number, author=BOB) for number in (1, 2)))
        answers = platform.texts[-2:]
        reset = await told(engine, platform, "/limit -", key="c5")

    assert shown == reset == ["Of one person I answer 20 messages in 60 seconds."]
    assert changed == [f"Of one person I answer 2 messages in 60 seconds.\n{note}"]
    assert both == again == [f"Of one person I answer 1 messages in 3600.5 seconds.\n{note}"]
    assert (limits, engine.limits) == (Limits(messages=1, seconds=3600.5), Limits())
    assert answers == ["1", ENGLISH.too_many]


@pytest.mark.parametrize("given", ["0", "many", "-1 60", "1 2 3", "1 nan", "1 inf", "1 -5", "1.5"])
async def test_a_limit_that_is_none_changes_nothing(store: Store, given: str) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted(), platform, store=store, behavior=OWNED) as engine:
        assert await told(engine, platform, f"/limit {given}") == [ENGLISH.limit_how]
        assert engine.limits == Limits()


async def test_the_persona_is_shown_set_and_taken_back(store: Store) -> None:
    platform, model = RecordedPlatform(), Scripted("Arr.")
    note = ENGLISH.until_reset.format(command="persona")
    async with engine_with(model, platform, store=store, behavior=OWNED, persona=GRYAG) as engine:
        shown = await told(engine, platform, "/persona")
        changed = await told(engine, platform, "/persona You are a pirate.", key="c2")
        again = await told(engine, platform, "/persona", key="c3")
        await talked(engine, said("hi", 1, author=BOB))
        now = engine.persona
        reset = await told(engine, platform, "/persona -", key="c4")

    assert (shown, reset) == (["You are gryag."], ["You are gryag."])
    assert (changed, again) == ([note], [f"You are a pirate.\n{note}"])
    assert (now, engine.persona) == (PIRATE, GRYAG)
    assert "You are a pirate." in str(model.prompts)
    assert await store.owner_settings.listed() == []


async def set_by_owner(path: Path, *lines: str, **options: Any) -> None:
    """An engine of its own on the file of a store, which an owner gives commands."""
    platform = RecordedPlatform()
    async with (
        Store.open(path) as store,
        engine_with(Scripted(), platform, store=store, behavior=OWNED, **options) as engine,
    ):
        for number, line in enumerate(lines):
            await told(engine, platform, line, key=f"c{number}")


async def in_use(path: Path, *, behavior: Behavior = OWNED, **options: Any) -> tuple[Persona, Limits, int]:
    """What an engine that starts on the file uses, and how many settings of owners are stored then."""
    async with (
        Store.open(path) as store,
        engine_with(Scripted(), store=store, behavior=behavior, **options) as engine,
    ):
        return engine.persona, engine.limits, len(await store.owner_settings.listed())


async def test_what_an_owner_set_survives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await set_by_owner(path, "/persona You are a pirate.", "/limit 3 30", persona=GRYAG)

    renamed, slower = replace(GRYAG, name="Flint"), Limits(call_timeout=9)  # the file changed in something else
    first = await in_use(path, persona=renamed, limits=slower)

    assert first == (replace(PIRATE, name="Flint"), Limits(messages=3, seconds=30, call_timeout=9), 2)


async def test_a_reset_survives_a_restart_too(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await set_by_owner(path, "/persona You are a pirate.", "/limit 3", "/persona -", "/limit -", persona=GRYAG)

    assert await in_use(path, persona=GRYAG) == (GRYAG, Limits(), 0)


async def test_a_later_change_of_the_file_wins_and_ends_what_an_owner_set(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, changed = tmp_path / "s.db", Persona(name="gryag", text="You are a gardener.")
    await set_by_owner(path, "/persona You are a pirate.", "/limit 3", persona=GRYAG)
    caplog.set_level("INFO", logger="tertulia.engine.owner_settings")

    first = await in_use(path, persona=changed)
    back = await in_use(path, persona=GRYAG)

    assert (first, back) == ((changed, Limits(messages=3), 1), (GRYAG, Limits(messages=3), 1))
    (line,) = caplog.messages
    assert line.startswith("persona: changed in the config since /persona of ")


async def test_a_change_while_the_engine_runs_follows_the_same_rule(store: Store) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted(), platform, store=store, behavior=OWNED, persona=GRYAG) as engine:
        await told(engine, platform, "/persona You are a pirate.")
        await told(engine, platform, "/limit 3", key="c2")
        engine.persona, engine.limits = replace(GRYAG, name="Flint"), Limits(call_timeout=9)
        kept = engine.persona, engine.limits
        engine.persona = Persona(text="You are a gardener.")
        await until(lambda: has_settings(store, "limit"))
        engine.persona = GRYAG

    assert kept == (replace(PIRATE, name="Flint"), Limits(messages=3, call_timeout=9))
    assert engine.persona == GRYAG


async def has_settings(store: Store, *names: str) -> bool:
    return [one.name for one in await store.owner_settings.listed()] == list(names)


async def test_an_engine_without_owners_leaves_what_they_set_alone(tmp_path: Path) -> None:
    path, other = tmp_path / "s.db", Persona(text="You are another.")
    await set_by_owner(path, "/persona You are a pirate.", persona=GRYAG)

    assert await in_use(path, behavior=AT_ONCE, persona=other) == (other, Limits(), 1)
    assert (await in_use(path, persona=GRYAG))[0] == PIRATE


async def test_a_persona_without_a_text_says_so(store: Store) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted(), platform, store=store, behavior=OWNED) as engine:
        assert await told(engine, platform, "/persona") == [ENGLISH.no_persona]


async def test_stats_count_what_is_stored_and_say_since_when_the_bot_runs(store: Store) -> None:
    platform = RecordedPlatform()
    clock: dict[str, Any] = {"clock": Clock(NOON), "zone": "Europe/Kyiv"}
    async with engine_with(Scripted("Hi.", "Ho."), platform, store=store, behavior=OWNED, **clock) as engine:
        await talked(engine, said("hi", 1, author=BOB), said("Gryag!", 2, place=GROUP))
        await told(engine, platform, "/stats")

    since = "Running since 2025-01-15 14:00 (Europe/Kyiv)."
    assert platform.texts[-1] == f"4 messages, 2 runs and 2 replies in 2 places. {since}"


async def test_usage_sums_up_tokens_and_money_by_day_and_model(store: Store) -> None:
    platform, clock = RecordedPlatform(), Clock(datetime(2026, 3, 1, 12, tzinfo=UTC))
    priced = Response(turn=model("Hi."), usage=Usage(input=1_000_000, output=100_000))
    talker = Scripted(priced, priced, name="gemini-2.5-flash")
    async with engine_with(talker, platform, store=store, behavior=OWNED, clock=clock) as engine:
        none = await told(engine, platform, "/usage")
        await talked(engine, said("hi", 1, author=BOB), said("hi", 2, place=GROUP, author=Author(id="3", name="Gryag")))
        await talked(engine, said("Gryag", 3, place=GROUP))
        some = await told(engine, platform, "/usage", key="c2")
    unpriced = Scripted(priced, name="nobody-knows")
    async with engine_with(unpriced, platform, store=store, behavior=OWNED, clock=clock) as engine:
        await talked(engine, said("hi", 4, author=BOB))
        more = await told(engine, platform, "/usage", key="c3")

    first = "2026-03-01 gemini-2.5-flash: 2,200,000 tokens, $1.1000"
    assert (none, some) == ([ENGLISH.no_usage], [first])
    assert more == [f"{first}\n2026-03-01 nobody-knows: 1,100,000 tokens, ?"]
    assert DIRECT.kind == "direct"


async def test_a_block_may_have_an_end_which_another_block_takes_away(store: Store) -> None:
    platform, clock = RecordedPlatform(), Clock(NOON)
    for author in (BOB, replace(BOB, id="3")):
        await store.inbox.receive(said("hi", author.id, place=GROUP, author=author), at=NOON)
        await skip(store, GROUP, author.id)
    async with engine_with(Scripted(), platform, store=store, behavior=OWNED, clock=clock) as engine:
        answers = [
            *await told(engine, platform, "/block 2 1h"),
            *await told(engine, platform, "/block 3 in 1 hour", key="c2"),
            *await told(engine, platform, "/block 3", key="c3"),
            *await told(engine, platform, "/block 3 soon", key="c4"),
        ]
        before = await store.place_settings.blocked()
        await clock.advance(3601)
        await engine.settled()
        after = await store.place_settings.blocked()

    assert answers == [
        "2 is blocked until 2025-01-15 13:00 (UTC).",
        "3 is blocked until 2025-01-15 13:00 (UTC).",
        "3 is blocked.",
        ENGLISH.block_whom.format(command="block"),
    ]
    assert (sorted(before), sorted(after)) == ([("recorded", "2"), ("recorded", "3")], [("recorded", "3")])


async def test_a_block_with_an_end_that_is_carried_out_twice_ends(store: Store) -> None:
    clock = Clock(NOON)
    shared = shared_by(store, behavior=OWNED, clock=clock)
    commands = OwnerCommands(shared, OwnerSettings(shared))
    command = Command(id=1, message=said("/block 2 1h", 1, place=GROUP), name="block", argument="2 1h", horizon=0)
    handler = commands.handler(command)
    assert handler is not None
    for _ in range(2):  # the process was killed before the end of the command was stored
        await handler(command, ENGLISH)
    async with engine_with(Scripted(), RecordedPlatform(), store=store, behavior=OWNED, clock=clock) as engine:
        before = await store.place_settings.blocked()
        await clock.advance(3601)
        await engine.settled()

    assert [before, await store.place_settings.blocked()] == [{("recorded", "2")}, frozenset()]


async def test_the_end_of_a_block_is_no_task_and_a_later_block_of_a_model_has_none(store: Store) -> None:
    platform, clock, block = RecordedPlatform(), Clock(NOON), store.place_settings.block
    async with engine_with(Scripted(), platform, store=store, behavior=OWNED, clock=clock) as engine:
        await told(engine, platform, "/block 2 1h", place=GROUP)
        listed = await told(engine, platform, "/tasks", place=GROUP, key="c2")
        await block(platform="recorded", author_id="2", at=NOON)
        await clock.advance(3601)
        await engine.settled()

    assert listed == [ENGLISH.nothing_planned]
    assert await store.place_settings.blocked() == {("recorded", "2")}


async def test_a_block_that_ended_while_no_process_ran_hides_nothing_from_the_next(store: Store) -> None:
    until = NOON + timedelta(hours=1)
    await store.place_settings.block(platform="recorded", author_id=BOB.id, at=NOON, until=until)
    async with engine_with(Scripted("Hello."), RecordedPlatform(), store=store, clock=Clock(until)) as engine:
        await talked(engine, said("Gryag?", 1, place=GROUP, author=BOB))

    assert [one.reply.text for one in await store.outbox.listed()] == ["Hello."]
