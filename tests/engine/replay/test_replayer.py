"""Past runs on a changed bot: the past as it was, results from the journal, nothing stored but what it has cost."""

import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

import stored_rows
from engine.engines import ALICE, BOB, GROUP, engine_with, said
from inspector.evening import KEY, MODEL, NOW, MovingClock, in_group, look
from media.attaching import FILM, PHOTO
from tertulia.context.gather import ContextOptions
from tertulia.context.values import Persona
from tertulia.engine.behavior import Behavior
from tertulia.engine.engine import Engine
from tertulia.engine.limits import Cap, Limits
from tertulia.engine.memory import Memory
from tertulia.engine.replay.past_runs import runs_to_replay
from tertulia.engine.replay.recorded_tools import UNKNOWN
from tertulia.engine.replay.replayer import CAPPED, NO_WIRE
from tertulia.engine.replay.values import ChangedBot, ReplayedRun, ReplayedTool, summed
from tertulia.errors import InvalidValue, SpendCapReached
from tertulia.models import Gemini
from tertulia.models.prices import Price
from tertulia.models.scripted import Scripted
from tertulia.parts import Media, Text, ToolCall
from tertulia.platform import Reacted
from tertulia.profiles import PROFILES
from tertulia.sim import GeminiSim
from tertulia.store import Store
from tertulia.store.sqlite.migrating import tables
from tertulia.testing import RecordedPlatform

PIRATE = Persona(name="gryag", text="You are a pirate.")
COSTS = {"calls", "usage"}
PHOTO_PART = Media(media_kind="photo", unique_id="p1", file_id="f1", mime="image/jpeg")


class Photos(RecordedPlatform):
    async def fetch(self, media: Media, *, limit: int) -> bytes:
        return PHOTO


@asynccontextmanager
async def a_bot(store: Store, *answers: Any, **changes: Any) -> AsyncIterator[Engine]:
    """A bot with memory, a tool and a clock that moves a minute with each message."""
    clock = MovingClock()
    async with engine_with(
        Scripted(*answers, name=MODEL),
        Photos(),
        store=store,
        tools=[look],
        memory=Memory(store, clock=None),
        now=clock.now,
        sleep=clock.sleep,
        **changes,
    ) as engine:
        engine.clock = clock  # type: ignore[attr-defined]
        yield engine


async def talked(engine: Engine, *messages: Any) -> None:
    for message in messages:
        engine.clock.at += timedelta(minutes=1)  # type: ignore[attr-defined]
        await engine.receive(message)
        await engine.settled()


async def rows_of(store: Store) -> dict[str, Any]:
    """All rows but those of costs."""
    return {
        table.name: await stored_rows.on(store, stored_rows.read, table.name)
        for table in tables()
        if table.name not in COSTS
    }


async def replayed(engine: Engine, **changes: Any) -> list[ReplayedRun]:
    return [one async for one in engine.replay(GROUP, **changes)]


async def last_run(store: Store) -> str:
    return (await runs_to_replay(store, GROUP, most=9))[-1]


@pytest.mark.parametrize("profile", ["layered", "native", "tail"])
async def test_a_prompt_that_is_built_anew_is_the_one_that_was_sent(store: Store, profile: str) -> None:
    """Edits, deletions, reactions, facts and descriptions that came later are not in it."""
    look_call = ToolCall(name="look", args={"seat": "3A"})
    async with a_bot(store, "Hello.", [look_call], "It is free.", "Nice.", "Good.", "Fine.", profile=profile) as engine:
        persona = engine.persona
        await talked(
            engine,
            in_group("Gryag, I am allergic to peanuts", 1),
            in_group("Gryag, is 3A free?", 2, author=BOB),
            replace(in_group("Gryag, look", 3), parts=(Text(text="Gryag, look"), PHOTO_PART)),
        )
        await engine.edit(in_group("Gryag, is 3B free?", 2, author=BOB))
        await talked(engine, in_group("Gryag, what may I eat?", 4))
        await engine.delete(GROUP, "2")
        await engine.inbox("recorded").apply(
            [Reacted(place=GROUP, message_id="3", author=BOB, emojis=("👍",))], key="r"
        )
        await store.descriptions.describe("p1", "a red square", by="test", at=NOW)
        await talked(engine, in_group("Gryag, and now?", 5), in_group("I live in Kyiv", 6))
        bot = ChangedBot(models=engine.models, persona=persona)
        async with aclosing(engine.replayer()) as replayer:
            pasts = [await replayer.past(run) for run in await runs_to_replay(store, GROUP, most=9)]
            built = [await replayer.prompt(past, bot) for past in pasts]

    assert len(built) == 5
    for past, prompt in zip(pasts, built, strict=True):
        assert past.sent
        assert prompt == past.sent.prompt


async def test_what_the_search_had_found_is_what_the_run_recalled(store: Store) -> None:
    """Later messages that say the same change what the search finds now."""
    short = ContextOptions(history_size=4)
    async with a_bot(store, *["Yes."] * 9, profile="native", context=short) as engine:
        await talked(engine, in_group("The umbrella stands behind the kitchen door", 1, author=BOB))
        await talked(engine, *[in_group(f"Gryag, number {number}", number) for number in range(2, 6)])
        await talked(engine, in_group("Gryag, where does the umbrella stand?", 6))
        run = await last_run(store)
        await talked(engine, *[in_group(f"The umbrella stands behind door {one}", one) for one in range(10, 40)])
        async with aclosing(engine.replayer()) as replayer:
            past = await replayer.past(run)
            prompt = await replayer.prompt(past, ChangedBot(models=engine.models, persona=engine.persona))
        recalled = [one.id for one in await store.runs.recalled(run) if one.kind == "message"]

    assert past.sent
    assert (recalled, prompt) == (["1"], past.sent.prompt)


async def test_tools_are_answered_from_the_journal_and_only_costs_are_stored(store: Store) -> None:
    """A call that the run did not make is unknown; nothing runs, nothing is sent, and the log stays as it is."""
    call, other = ToolCall(name="look", args={"seat": "3A"}), ToolCall(name="look", args={"seat": "9Z"})
    changed = Scripted([call, other], "3A is free, 9Z I do not know.", name="pirate")
    async with a_bot(store, [call], "It is free.") as engine:
        await talked(engine, in_group("Gryag, is 3A free?", 2))
        rows, sent = await rows_of(store), list(engine.platforms["recorded"].texts)  # type: ignore[attr-defined]
        (found,) = await replayed(engine, models=changed, persona=PIRATE)
        after, spent = await rows_of(store), await store.usage.calls(most=9)
        texts = engine.platforms["recorded"].texts  # type: ignore[attr-defined]

    assert found.asked == ("Alice: Gryag, is 3A free?",)
    assert (found.before.texts, found.after.texts) == (("It is free.",), ("3A is free, 9Z I do not know.",))
    assert found.before.tools == (ReplayedTool(name="look", args={"seat": "3A"}, result="3A is free"),)
    assert found.after.tools == (
        ReplayedTool(name="look", args={"seat": "3A"}, result="3A is free"),
        ReplayedTool(name="look", args={"seat": "9Z"}, result=UNKNOWN.format(name="look"), is_known=False),
    )
    assert "You are a pirate." in changed.prompts[0].instruction
    assert (found.before.model, found.after.model, found.after.profile) == (MODEL, "pirate", "layered")
    assert (found.is_changed, found.after.spent.calls) == (True, 2)
    assert (after, texts) == (rows, sent)
    assert [(one.call.purpose, one.call.run, one.call.model) for one in spent[2:]] == [("replay", None, "pirate")] * 2
    total = summed([found])
    assert (total.runs, total.changed, total.failed) == (1, 1, 0)


async def test_another_model_alone_gets_the_prompt_that_was_sent(store: Store) -> None:
    same = Scripted("It is\nfree.", name="other")
    async with a_bot(store, "It is free.") as engine:
        await talked(engine, in_group("Gryag, is 3A free?", 2))
        sent = await store.prompts.sent(await last_run(store), 0)
        (found,) = await replayed(engine, models=same)

    assert sent
    assert same.prompts == [sent.prompt]
    assert not found.is_changed


async def test_a_cap_ends_a_replay_in_one_line(store: Store) -> None:
    """What a replay spends counts for the place and in total; nothing is asked once a cap is reached."""
    changed = Scripted("One.", "Two.", name=MODEL)
    prices = Behavior(debounce=0, prices={MODEL: Price(input=1.0, output=1.0)})
    async with a_bot(store, "Hello.", "Again.", behavior=prices) as engine:
        await talked(engine, in_group("Gryag, hello", 1), in_group("Gryag, hello again", 2))
        engine.limits = Limits(total=Cap(money=0.0))
        with pytest.raises(SpendCapReached, match=f"^{CAPPED}$"):
            await replayed(engine, models=changed)
        with pytest.raises(SpendCapReached):
            await engine.send_past_request(await last_run(store), 0, model=changed)
        engine.limits = Limits(total=Cap(money=9.0))
        with pytest.raises(InvalidValue, match="money is capped, but mystery has no price"):
            await replayed(engine, models=Scripted("Three.", name="mystery"))

    assert changed.prompts == []


async def test_a_model_that_fails_is_an_error_of_its_run(store: Store) -> None:
    async with a_bot(store, "Hello.") as engine:
        await talked(engine, in_group("Gryag, hello", 1))
        (found,) = await replayed(engine, models=Scripted(InvalidValue("no"), name="broken"), persona=PIRATE)

    assert (found.after.error, found.after.texts, found.is_changed) == ("no", (), False)
    assert summed([found]).failed == 1


async def test_requests_are_checked_against_their_hashes_with_media(store: Store) -> None:
    async with (
        GeminiSim() as sim,
        Gemini(MODEL, key=KEY, base_url=sim.url) as model,
        engine_with(model, Photos(), store=store) as engine,
    ):
        shown = replace(in_group("Gryag, look", 1), parts=(Text(text="Gryag, look"), PHOTO_PART))
        await talked_at_once(engine, shown, in_group("Gryag, and?", 2))
        runs = await runs_to_replay(store, GROUP, most=9)
        asked = [request.body for request in sim.requests]
        async with aclosing(engine.replayer()) as replayer:
            checks = [one for run in runs for one in await replayer.checks(run)]
            (first, _) = [one async for one in engine.replay(GROUP)]
        again = sim.requests[len(asked)].body
        await stored_rows.on(store, stored_rows.change, "calls", {"run_id": runs[1]}, sha256="0" * 64)
        async with aclosing(engine.replayer()) as replayer:
            (wrong,) = await replayer.checks(runs[1])
        await engine.give_order("forget person", ALICE.id, who="owner", service="recorded")
        async with aclosing(engine.replayer()) as replayer:
            (gone,) = await replayer.checks(runs[0])
        forgotten = [one async for one in engine.replay(GROUP)]

    assert [(one.run, one.step, one.is_same) for one in checks] == [(run, 0, True) for run in runs]
    assert "inlineData" in json.dumps(again)
    assert again == asked[0]
    assert first.after.error == ""
    assert (wrong.is_same, wrong.why) == (False, "not as it was sent: the program encodes otherwise since")
    assert (gone.is_same, gone.why) == (False, f"the prompts of run {runs[0]!r} were removed by a forget")
    assert {one.after.error for one in forgotten} <= {
        f"the prompts of run {run!r} were removed by a forget" for run in runs
    }


async def talked_at_once(engine: Engine, *messages: Any) -> None:
    for message in messages:
        await engine.receive(message)
        await engine.settled()


async def test_a_past_request_is_rendered_and_sent_again(store: Store) -> None:
    """The second step in another profile: its first prompt is built anew, and the run follows it."""
    call = ToolCall(name="look", args={"seat": "3A"})
    other = Scripted("Aye, 3A.", name="other")
    async with a_bot(store, [call], "It is free.") as engine:
        await talked(engine, in_group("Gryag, is 3A free?", 2))
        run, rows = await last_run(store), await rows_of(store)
        async with aclosing(engine.replayer()) as replayer:
            as_openai = await replayer.render(run, 1, "openai:gpt-5.6")
            as_single = await replayer.render(run, 1, MODEL, profile=PROFILES["plain"])
            with pytest.raises(InvalidValue, match="sent no request in step 7"):
                await replayer.render(run, 7, MODEL)
            with pytest.raises(InvalidValue, match="qwen runs in this process"):
                await replayer.render(run, 0, "qwen")
        sent = await engine.send_past_request(run, 1, model=other, profile="plain")
        after = await rows_of(store)

    openai, plain = json.loads(as_openai.body), json.loads(as_single.body)
    assert (as_openai.wire, as_openai.profile, openai["model"], openai["messages"][-1]["role"]) == (
        "openai",
        "layered",
        "gpt-5.6",
        "tool",
    )
    assert (as_single.wire, as_single.profile) == ("gemini", "plain")
    assert plain["contents"][-1]["parts"][0]["functionResponse"]["response"] == {"result": "3A is free"}
    assert (as_openai.money or 0) > 0
    assert (sent.turn.text, sent.model, sent.call.usage) == ("Aye, 3A.", "other", sent.call.usage)
    assert sent.check.why == NO_WIRE
    assert other.prompts[0].turns[-1].parts[0].value == "3A is free"  # type: ignore[union-attr]
    assert after == rows


async def test_what_is_uploaded_for_a_replay_is_deleted(store: Store) -> None:
    """No row remembers it."""

    class Films(RecordedPlatform):
        async def fetch(self, media: Media, *, limit: int) -> bytes:
            return FILM

    film = Media(media_kind="video", unique_id="film", file_id="f", mime="video/mp4")
    async with (
        GeminiSim(processing=0) as sim,
        Gemini(MODEL, key=KEY, base_url=sim.url) as model,
        Gemini(MODEL, key=KEY + "2", base_url=sim.url) as other,
        engine_with(model, Films(), store=store) as engine,
    ):
        await talked_at_once(
            engine, replace(said("Look!", 1, place=GROUP, author=ALICE), parts=(Text(text="Gryag, look"), film))
        )
        rows, files = await rows_of(store), set(sim.files.by_name)
        (found,) = [one async for one in engine.replay(GROUP, models=other)]
        uploaded = [request.path for request in sim.requests if "upload" in request.path]
        after, left = await rows_of(store), set(sim.files.by_name)

    assert found.after.error == ""
    assert len(uploaded) > 1
    assert (after, left) == (rows, files)
