"""What was kept comes back exactly: any message, turn, record and prompt."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from people import GROUP, NOON, a_message
from sizes import EXAMPLES, size
from store.builders import PROMPT, a_record, a_run, add_own, an_access, begin, prompt_sent
from stored_rows import on, read
from strategies import GEMINI_MODELS, OPENAI_MODELS, parts, turns
from tertulia.context.budget import MAX_IDS, group_reports
from tertulia.context.values import LeftOut
from tertulia.messages import Author, Message, Place, Quote
from tertulia.models.gemini import encode as gemini
from tertulia.models.openai import encode as openai
from tertulia.parts import Media, Part, Text, ToolResult
from tertulia.prompt.ledger import Ledgers
from tertulia.run.journal import FallbackStep, Journal, SentPrompt
from tertulia.store import Store, prompts
from tertulia.store.runs import SqlRuns
from tertulia.turns import Layer, Prompt, Settings, ToolSpec, Turn, model, user

SIGNATURES = ["CiQB+/a=", "CiQB-_a", "not base64 at all!", "ё\u2028", "E" * 16384, "\x00", "\ud83d", ""]

words = st.text(max_size=20) | st.sampled_from(["\ud83d", "a\ud800b", "\x00", "null", '"\\', "Привіт", "\U0001f600"])
ids = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
names = ids.map("x{}".format)  # an id that shows something
times = st.none() | st.datetimes(timezones=st.timezones())
authors, senders = (
    st.builds(Author, id=one, name=words, username=st.none() | words, persona=st.none() | words) for one in (ids, names)
)
places = st.builds(
    Place,
    platform=st.sampled_from(["telegram", "discord", ""]),
    id=names,
    kind=st.sampled_from(["direct", "group", "channel"]),
    thread=st.none() | ids,
    title=words,
)
said = st.lists(parts, max_size=4).map(tuple)
quotes = st.builds(Quote, message_id=ids, author=st.none() | authors, parts=said, excerpt=st.none() | words)
messages = st.builds(
    Message, id=names, place=places, author=senders, sent_at=times, parts=said, reply_to=st.none() | quotes,
    album=st.none() | ids, edited_at=times, deleted=st.booleans(),
)  # fmt: skip
schemas = st.sampled_from(
    [{}, {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "integer", "maximum": 2**70}}}]
)
tools = st.lists(
    st.builds(ToolSpec, name=st.sampled_from(["look", "search"]), description=words, parameters=schemas), max_size=2
).map(tuple)
numbers = st.sampled_from([None, 0, 1, 1.0, 0.1, 2, 1e-7])
how = st.builds(
    Settings, temperature=numbers, top_p=numbers, top_k=st.none() | st.integers(0, 9), stop=st.lists(words).map(tuple),
    thinking=st.sampled_from([None, -1, 0, 128, "low", "high"]), answer=st.none() | schemas,
    tool_choice=st.sampled_from([None, "auto", "any"]), safety=st.sampled_from([{}, {"HARASSMENT": "OFF"}]),
)  # fmt: skip
layers = st.builds(
    Layer,
    name=st.sampled_from(["static", "dynamic", "buffered", "trigger"]),
    instruction=words,
    turns=st.lists(turns([*GEMINI_MODELS[:3], *OPENAI_MODELS[:2]]), max_size=4).map(tuple),
)
sent = st.builds(
    Prompt, layers=st.lists(layers, max_size=4).map(tuple), tools=tools, settings=how, cached=st.none() | ids
)


def same(one: Any, other: Any) -> bool:
    """Whether they are equal, where a number that is none counts as equal to itself, and 1 and 1.0 do not."""
    return repr(one) == repr(other)


@given(messages)
async def test_any_message_is_read_as_it_was_received(message: Message) -> None:
    async with Store.open(":memory:") as store:
        await store.inbox.receive(message, at=NOON)

        (found,) = await store.log.read(message.place, 0, 9)
        assert same(_at_fixed_offsets(found), _at_fixed_offsets(message))
        assert await store.log.number(message) == 0
        assert await store.check() == []


@given(said, said)
async def test_any_edit_is_read_as_it_was_made(before: tuple[Part, ...], after: tuple[Part, ...]) -> None:
    async with Store.open(":memory:") as store:
        await store.inbox.receive(a_message(parts=before), at=NOON)
        await store.log.read(GROUP, 0, 1)

        await store.inbox.edit(a_message(parts=after, edited_at=NOON), at=NOON)

        (found,) = await store.log.read(GROUP, 0, 9)
        assert same(found.parts, after)


@given(st.lists(turns(GEMINI_MODELS), min_size=1, max_size=3).map(tuple))
async def test_any_turns_are_read_as_they_were_made(made: tuple[Turn, ...]) -> None:
    async with Store.open(":memory:") as store:
        own = a_message(id="own")
        await add_own(store, own, made)
        await begin(store, a_run())
        records = tuple((step, a_record(turn=turn, raw={"n": step})) for step, turn in enumerate(made))
        for step, record in records:
            await store.runs.add_record(a_run(), step, record)

        assert same(await store.log.turns([own]), {"own": made})
        assert same(await store.runs.journal("r1"), Journal(run=a_run(), prompt=PROMPT, records=records, tools=()))


@given(st.lists(sent, min_size=1, max_size=4))
@settings(max_examples=size(12, full=EXAMPLES))
async def test_any_prompt_is_rebuilt_as_it_was_sent(asked: list[Prompt]) -> None:
    async with Store.open(":memory:") as store:
        await begin(store, a_run())
        for step, prompt in enumerate(asked):
            await store.runs.ask(a_run(), step, prompt, at=NOON)

        for step, prompt in enumerate(asked):
            found = await prompt_sent(store, "r1", step)
            assert found is not None
            assert same(found, prompt)
            for name in ("gemini-3.8-flash", "gemini-2.0-flash", "gemma-3-27b-it"):
                assert gemini.encode_request(found, model=name) == gemini.encode_request(prompt, model=name)
            assert openai.encode_request(found, model="gpt-5.6") == openai.encode_request(prompt, model="gpt-5.6")
        assert await store.check() == []


@given(st.lists(turns(GEMINI_MODELS), min_size=2, max_size=12), st.integers(1, 5))
@settings(max_examples=size(15, full=max(50, EXAMPLES)))
async def test_a_prompt_that_grows_and_is_cut_is_rebuilt_at_every_step(made: list[Turn], cut: int) -> None:
    grown = [Prompt.of(*made[max(0, n - 7) if n > cut else 0 : n], system="Be kind. " * 40) for n in range(len(made))]
    async with Store.open(":memory:") as store:
        await begin(store, a_run())
        for step, prompt in enumerate(grown):
            await store.runs.ask(a_run(), step, prompt, at=NOON)

        assert same([await prompt_sent(store, "r1", step) for step in range(len(grown))], grown)


@pytest.mark.parametrize("signature", SIGNATURES, ids=range(len(SIGNATURES)))
async def test_a_signature_is_kept_to_the_letter(signature: str) -> None:
    turn = model(Text(text="", signature=signature), Media(media_kind="p", unique_id="u", signature=signature))
    async with Store.open(":memory:") as store:
        await add_own(store, a_message(id="own"), [turn])

        assert await store.log.turns([a_message(id="own")]) == {"own": (turn,)}


async def test_what_was_asked_again_in_a_step_is_what_was_asked_last() -> None:
    async with Store.open(":memory:") as store:
        await begin(store, a_run())
        for text in ("one", "two"):
            await store.runs.ask(a_run(), 0, Prompt.of(text), at=NOON)

        assert await prompt_sent(store, "r1", 0) == Prompt.of("two")
        assert await prompt_sent(store, "r1", 1) is None
        assert await prompt_sent(store, "r2", 0) is None


async def test_a_prompt_is_read_with_its_layers_and_what_was_left_out_of_it_in_every_step() -> None:
    left = [LeftOut(source="window", why="over the budget", ids=(str(number),), tokens=2) for number in range(30)]
    told = LeftOut(source="window", why="over the budget", ids=tuple(map(str, range(MAX_IDS))), tokens=60, count=30)
    again, second = (
        FallbackStep(step=1, fallback="again", why="it was busy", model="gpt-5"),
        Prompt.of("two", system="Be kind."),
    )
    async with Store.open(":memory:") as store:
        await store.runs.begin(a_run(model="gemini-3.8-flash"), PROMPT, at=NOON, left_out=group_reports(left))
        await store.runs.ask(a_run(model="gpt-5"), 1, second, at=NOON, tried=again)
        await store.runs.begin(a_run(id="r2"), PROMPT, at=NOON)

        found = [
            await store.prompts.sent("r1", 0),
            await store.prompts.sent("r1", 1),
            await store.prompts.sent("r2", 0),
        ]
        assert await store.check() == []

    ledger = Ledgers()
    sizes = [
        ledger.measure("here", prompt, name)
        for prompt, name in ((PROMPT, "gemini-3.8-flash"), (second, "gpt-5"), (PROMPT, ""))
    ]
    sent = SentPrompt(
        run_id="r1", step=0, at=NOON, model="gemini-3.8-flash", prompt=PROMPT, left_out=(told,), size=sizes[0]
    )
    assert found == [
        sent,
        replace(sent, step=1, model="gpt-5", prompt=second, tried=again, size=sizes[1]),
        SentPrompt(run_id="r2", step=0, at=NOON, model="", prompt=PROMPT, size=sizes[2]),
    ]


async def test_a_layer_is_kept_once_and_one_that_grew_only_as_what_it_adds() -> None:
    said = [user(f"message number {n}") for n in range(300)]
    instruction = "Be kind. " * 1000
    async with Store.open(":memory:") as store:
        for number in range(300):
            run = a_run(id=f"r{number}", place=replace(GROUP, id=str(number % 2)))
            await store.runs.begin(run, Prompt.of(*said[:number], system=instruction), at=NOON)

        rows = [row async for row in store.export()]
        kept = sum(len(suffix) for (suffix,) in await on(store, read, "layers", "suffix"))
        assert len([row for row in rows if row["table"] == "layers"]) == 301
        assert len([row for row in rows if row["table"] == "toolsets"]) == 1
        assert kept < 90_000  # 2.4 million without sharing
        assert await prompt_sent(store, "r299", 0) == Prompt.of(*said[:299], system=instruction)
        assert await store.check() == []


async def test_a_chain_of_layers_that_grew_does_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompts, "_MAX_DEPTH", 3)
    said = [user(f"message number {n} and then some") for n in range(30)]
    async with Store.open(":memory:") as store:
        await begin(store, a_run())
        for number in range(30):
            await store.runs.ask(a_run(), number, Prompt.of(*said[: number + 1]), at=NOON)

        assert max(await on(store, read, "layers", "depth")) == (3,)
        assert await prompt_sent(store, "r1", 29) == Prompt.of(*said)


async def test_with_little_at_hand_layers_are_kept_whole() -> None:
    asked = [Prompt.of(*[f"message {n} " * 20 for n in range(count)]) for count in range(1, 9)]
    async with Store.open(":memory:") as store:
        little = prompts.SqlPrompts(an_access(store), Ledgers(), cache_bytes=100)
        runs = SqlRuns(an_access(store), little)
        await begin(store, a_run())
        for step, prompt in enumerate(asked):
            await runs.ask(a_run(), step, prompt, at=NOON)

        assert max(await on(store, read, "layers", "depth")) == (0,)
        assert [await prompt_sent(store, "r1", step) for step in range(8)] == asked


async def test_prompts_are_rebuilt_after_a_restart(tmp_path: Any) -> None:
    asked = [Prompt.of(*[f"message {n} " * 20 for n in range(count)]) for count in range(1, 9)]
    for step, prompt in enumerate(asked):
        async with Store.open(tmp_path / "s.db") as store:
            await begin(store, a_run())
            await store.runs.ask(a_run(), step, prompt, at=NOON)

    async with Store.open(tmp_path / "s.db") as store:
        assert [await prompt_sent(store, "r1", step) for step in range(8)] == asked


@given(st.text(), st.text(), st.text())
def test_a_common_beginning_is_as_long_as_it_can_be_and_parts_no_character(start: str, one: str, other: str) -> None:
    first, second = ((start + rest).encode("utf-8", "replace") for rest in (one, other))

    shared = prompts.common_prefix(first, second)

    assert first[:shared] == second[:shared]
    second[shared:].decode()
    longest = next((n for n, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), None)
    assert shared >= (min(len(first), len(second)) if longest is None else longest) - 3


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), 2**70, 1.0, 5e-324, "\ud83d", {"\udfff": [None]}])
async def test_values_that_json_has_no_word_for_come_back_too(value: Any) -> None:
    turn = user(ToolResult(name="look", value=value))
    async with Store.open(":memory:") as store:
        await add_own(store, a_message(id="own"), [turn])

        assert same(await store.log.turns([a_message(id="own")]), {"own": (turn,)})


def _at_fixed_offsets(message: Message) -> Message:
    """The message with its times as they are written: a zone is then an offset."""
    from datetime import datetime

    def fixed(moment: datetime | None) -> datetime | None:
        return datetime.fromisoformat(moment.isoformat()) if moment else None

    return replace(message, sent_at=fixed(message.sent_at), edited_at=fixed(message.edited_at))
