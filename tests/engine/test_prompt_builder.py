import logging
import re
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.engines import ME, engine_with, said, talked, texts_of
from people import ALICE, BOB, DELIMITER, DIRECT, GROUP, GRYAG, NOON, PERSONA, a_message, a_photo, a_talk
from sizes import size
from store.builders import add_own
from tertulia.context import gather, sources
from tertulia.context.budget import Budget
from tertulia.context.gather import (
    ContextBlock,
    ContextOptions,
    InMemoryKnowledge,
    SourceInputs,
    SourceList,
    level_sources,
    window_sources,
)
from tertulia.context.log import InMemoryLog
from tertulia.context.values import (
    AvailableSticker,
    Background,
    Context,
    Persona,
    RecalledEpisode,
    RelevantMessage,
    Workspace,
)
from tertulia.engine.behavior import FAILED, Behavior
from tertulia.engine.prompt_builder import build_prompt
from tertulia.engine.task_worker import TaskHandler
from tertulia.errors import InvalidValue
from tertulia.messages import Message, Place
from tertulia.models.scripted import Scripted
from tertulia.parts import Media, Text, cut_text
from tertulia.profiles import PROFILES, Build, Profile, profile_of
from tertulia.prompt.ledger import Ledger
from tertulia.store import Store
from tertulia.tasks.kinds import ABOUT, ABOUT_IDS
from tertulia.tasks.task import Task
from tertulia.testing import RecordedPlatform
from tertulia.turns import Prompt, Settings, ToolSpec

TALK = a_talk(60)
KNOWN = InMemoryKnowledge(
    hits=[RelevantMessage(text="h", score=0.5)],
    background=Background(memories=("m",), summary="s", key_facts={"k": "v"}),
    episodes=[RecalledEpisode(topic="t", summary="u")],
)


async def nothing(_: Task) -> None:
    """Do no work."""


async def told(name: str, config: ContextOptions) -> Prompt:
    given = profile_of(name, config).sources(SourceInputs(log=InMemoryLog(TALK), memory=KNOWN, options=config))
    context = await gather(TALK[-1], [sources.agent_settings(persona=PERSONA), *given], TALK[-1].sent_at)  # type: ignore[arg-type]
    return build_prompt(context, profile_of(name, config))


def test_profiles_are_a_mapping_of_names_to_functions() -> None:
    assert list(PROFILES) == ["layered", "tail", "native", "block", "headers", "single", "plain"]


def test_an_unknown_profile_is_named() -> None:
    with pytest.raises(InvalidValue, match="no profile is called 'x'; there are layered, tail, native"):
        profile_of("x", ContextOptions())


@pytest.mark.parametrize(
    ("name", "turns"),
    [("layered", 1 + 1 + 7 + 1), ("tail", 61), ("headers", 60), ("native", 36), ("block", 1), ("single", 1)],
)
async def test_each_profile_draws_on_its_own_sources(name: str, turns: int) -> None:
    assert len((await told(name, ContextOptions())).turns) == turns


async def test_native_with_the_block_switched_on_is_block() -> None:
    config = ContextOptions(block=ContextBlock(enabled=True, max_messages=10))

    prompt = await told("native", config)

    assert (len(prompt.turns), prompt.instruction[-9:]) == (1, "[RESPOND]")


async def test_without_levels_memories_stay_and_the_rest_goes() -> None:
    instruction = (await told("native", ContextOptions(levels=False))).instruction

    headings = [line for line in instruction.splitlines() if line.startswith("#")]
    assert headings == ["# Persona", "# Current Time", "## Current User", "# Memories about Bob (ID: u456)"]


async def test_without_levels_the_window_is_the_history() -> None:
    assert len((await told("native", ContextOptions(levels=False))).turns) == 60


@pytest.mark.parametrize("size", [100, 500, 1_000])
async def test_history_size_is_the_high_mark_of_the_window_and_a_quarter_the_low_one(size: int) -> None:
    talk = a_talk(size + 2)
    config = ContextOptions(history_size=size)
    given, shorter = (
        window_sources(SourceInputs(log=InMemoryLog(said), memory=InMemoryKnowledge(), options=config))
        for said in (talk, talk[:-1])
    )

    full, cut = await gather(talk[-2], shorter, NOON), await gather(talk[-1], given, NOON)

    assert (len(full.window), len(cut.window)) == (size, size // 4)


@pytest.mark.parametrize("levels", [True, False])
@pytest.mark.parametrize(("most", "size"), [(10, 500), (60, 500), (200, 500), (200, 50), (10, 0)])
async def test_in_a_block_its_own_maximum_decides(levels: bool, most: int, size: int) -> None:
    talk = a_talk(300)
    config = ContextOptions(history_size=size, levels=levels, block=ContextBlock(enabled=True, max_messages=most))
    for name in ("native", "block"):
        given = profile_of(name, config).sources(
            SourceInputs(log=InMemoryLog(talk), memory=InMemoryKnowledge(), options=config)
        )
        context = await gather(talk[-1], [sources.agent_settings(persona=PERSONA), *given], NOON)

        prompt = build_prompt(context, profile_of(name, config))

        assert prompt.instruction.count("message_id=") == most


def pictured(talk: list[Message], every: int) -> list[Message]:
    """The talk with a photo in each message whose number is a multiple of *every*."""
    return [
        replace(one, parts=(*one.parts, a_photo(unique_id=one.id))) if number % every == 0 else one
        for number, one in enumerate(talk)
    ]


@pytest.mark.parametrize(
    ("name", "place", "first"),
    [
        ("layered", DIRECT, 56),
        ("tail", DIRECT, 50),
        ("plain", DIRECT, 50),
        ("native", DIRECT, 45),
        ("headers", DIRECT, 60),
        ("block", DIRECT, 60),
        ("layered", GROUP, 58),
        ("tail", GROUP, 58),
        ("plain", GROUP, 58),
        ("native", GROUP, 45),
        ("headers", GROUP, 60),
        ("block", GROUP, 60),
    ],
)
async def test_a_profile_decides_from_which_message_on_media_go_as_they_are(
    name: str, place: Place, first: int
) -> None:
    talk = pictured(a_talk(61, place=place), 1)
    config = ContextOptions()
    given = profile_of(name, config).sources(
        SourceInputs(log=InMemoryLog(talk), memory=InMemoryKnowledge(), options=config)
    )

    context = await gather(talk[-1], given, NOON)

    shown = context.history if name in ("native", "block") else context.window
    themselves = [one.id for one in shown if any(isinstance(part, Media) and part.data for part in one.parts)]
    assert themselves == [one.id for one in talk[first:-1]]
    assert [part.has_content for part in context.target.parts if isinstance(part, Media)] == [True]
    assert {left.ids[0] for left in context.left_out} == {one.id for one in shown} - set(themselves)
    assert {left.source for left in context.left_out} == {"media"}


@pytest.mark.parametrize(
    ("name", "every", "place", "goal"),
    [("layered", 8, GROUP, 0.88), ("tail", 8, GROUP, 0.90), ("layered", 8, DIRECT, 0.88), ("tail", 5, DIRECT, 0.90)],
)
async def test_with_media_too_most_of_a_request_is_the_beginning_of_the_one_before(
    name: str, every: int, place: Place, goal: float
) -> None:
    log, ledger, config = InMemoryLog(), Ledger(), ContextOptions()
    given = profile_of(name, config).sources(SourceInputs(log=log, memory=InMemoryKnowledge(), options=config))
    scene = sources.agent_settings(persona=PERSONA, delimiter=DELIMITER)
    said = [
        replace(one, parts=(Text(text=f"{one.id} " + "and so it goes on " * 4),)) for one in a_talk(350, place=place)
    ]
    tokens = stable = 0
    for number, message in enumerate(pictured(said, every)):
        if number >= 150 and message.author != GRYAG:
            context = await gather(message, [scene, *given], NOON)
            entry = ledger.record_request(build_prompt(context, profile_of(name, config)))
            tokens, stable = tokens + entry.tokens, stable + entry.stable
        log.add(message)

    assert stable / tokens >= goal


async def test_history_size_none() -> None:
    assert len((await told("tail", ContextOptions(history_size=0))).turns) == 2


async def test_tools_and_settings_come_with_the_prompt() -> None:
    given = profile_of("tail", ContextOptions()).sources(
        SourceInputs(log=InMemoryLog(TALK), memory=KNOWN, options=ContextOptions())
    )
    context = await gather(TALK[-1], given, TALK[-1].sent_at)  # type: ignore[arg-type]
    tools, settings = (ToolSpec(name="look"),), Settings(temperature=0.5)

    prompt = build_prompt(context, PROFILES["tail"], tools=tools, settings=settings)

    assert (prompt.tools, prompt.settings) == (tools, settings)


async def test_the_log_says_what_was_used(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="tertulia")

    prompt = await told("native", ContextOptions())

    (record,) = caplog.records
    assert record.getMessage() == (
        f"Using multi-level context for Gemini history_length=35 system_context_length={len(prompt.instruction)}"
    )
    assert (record.history_length, record.system_context_length) == (35, len(prompt.instruction))  # type: ignore[attr-defined]


@given(
    st.sampled_from(list(PROFILES)),
    st.booleans(),
    st.integers(1, 50),
    st.sets(st.integers(0, 49), min_size=1, max_size=12),
    st.data(),
)
@settings(max_examples=size(30, full=60), deadline=None)
async def test_every_message_that_is_answered_is_told_once_and_no_other_twice(
    name: str, levels: bool, count: int, picked: set[int], data: st.DataObject
) -> None:
    talk = [a_message(f"<{number}>", id=str(number), author=(ALICE, BOB)[number % 2]) for number in range(count)]
    batch = [talk[number] for number in sorted({number % count for number in picked})]
    target = data.draw(st.sampled_from(batch))
    config = ContextOptions(levels=levels)
    given = profile_of(name, config).sources(
        SourceInputs(log=InMemoryLog(talk), memory=InMemoryKnowledge(), options=config)
    )

    context = await gather(
        target, [sources.agent_settings(persona=PERSONA, delimiter=DELIMITER), *given], NOON, batch=batch
    )

    prompt = build_prompt(context, profile_of(name, config))
    told = [text for turn in prompt.turns for part in turn.parts for text in _marks(part.text)]  # type: ignore[union-attr]
    answered, others = [message.id for message in batch], [one.id for one in talk if one not in batch]
    assert told[-len(batch) :] == answered
    history = told[: -len(batch)]
    assert history == [] if name in ("block", "single") else history[-5:] == others[-5:]
    assert len(set(told)) == len(told)
    if name == "block":
        lines = _marks(prompt.instruction)
        assert (lines[-len(batch) :], len(set(lines))) == (answered, len(lines))
        (cued,) = [line for line in prompt.instruction.splitlines() if line.endswith("[REPLY TO THIS]")]
        assert _marks(cued) == [target.id]


@pytest.mark.parametrize("name", [name for name in PROFILES if name != "single"])
@pytest.mark.parametrize("levels", [True, False])
async def test_what_others_said_after_the_target_stands_in_its_place_in_the_history(name: str, levels: bool) -> None:
    talk = [a_message(f"<{number}>", id=str(number), author=(ALICE, BOB)[number % 2]) for number in range(10)]
    config = ContextOptions(levels=levels)
    given = profile_of(name, config).sources(
        SourceInputs(log=InMemoryLog(talk), memory=InMemoryKnowledge(), options=config)
    )
    scene = sources.agent_settings(persona=PERSONA, delimiter=DELIMITER)

    context = await gather(talk[3], [scene, *given], NOON, batch=[talk[3], talk[5]])

    prompt = build_prompt(context, profile_of(name, config))
    said = "".join(part.text for turn in prompt.turns for part in turn.parts if isinstance(part, Text))
    assert _marks(prompt.instruction if name == "block" else said) == list("0124678935")


def _marks(text: str) -> list[str]:
    return re.findall(r"<(\d+)>", text)


TOLD = [f"- `# «{kind}»`: {ABOUT[kind]}" for kind in ("send", "wait", "sticker", "remember", "think")]


async def instructions(profile: str, **changes: Any) -> list[str]:
    """What an engine tells its model in two runs."""
    model = Scripted("One.", "Two.")
    async with engine_with(model, profile=profile, **changes) as engine:
        await talked(engine, said("Hi", 1), said("Hi again", 2))
    return [prompt.instruction for prompt in model.prompts]


@pytest.mark.parametrize("profile", ["layered", "tail", "native", "block", "headers"])
async def test_a_model_is_told_which_task_blocks_it_may_write_in_words_that_stay(profile: str) -> None:
    task_handlers = {
        "draw": TaskHandler(run=nothing, about="a picture of what stands below"),
        "hum": TaskHandler(run=nothing, about=None),
    }

    first, second = await instructions(profile, task_handlers=task_handlers)

    section = "\n".join([*TOLD, "- `# «draw»`: a picture of what stands below"])
    first, second = (told.replace(ABOUT_IDS["send"], "") for told in (first, second))
    begun = first.index("# Task Blocks\n")
    assert first[begun:].split("\n", 2)[2].startswith(section)
    assert second[: begun + len(section)] == first[: begun + len(section)]
    assert "hum" not in first
    assert "clear-conversation" not in first


async def test_what_the_owner_allows_is_told() -> None:
    (told, _) = await instructions(
        "layered", behavior=Behavior(debounce=0.0, model_may=frozenset({"clear-conversation"}))
    )

    assert f"- `# «clear-conversation»`: {ABOUT['clear-conversation']}" in told
    assert "`# «block»`" not in told


IDS = {"layered": (False, True), "tail": (False, True), "headers": (True, True), "native": (False, False)}


@pytest.mark.parametrize("profile", [*IDS, "block", "bare block"])
async def test_ids_are_offered_where_messages_are_shown_with_them(profile: str) -> None:
    model = Scripted("One.", "Two.")
    bare = profile == "bare block"
    options = ContextOptions(block=ContextBlock(enabled=bare, include_meta=not bare))
    async with engine_with(model, profile="native" if bare else profile, context=options) as engine:
        await talked(engine, said("Hi", 1), said("Gryag, hi", 2, place=replace(GROUP, platform="recorded")))

    told = tuple(ABOUT_IDS["send"] in prompt.instruction for prompt in model.prompts)
    assert told == IDS.get(profile, (not bare, not bare))


async def test_the_blocks_that_are_offered_can_be_chosen_and_none_be_offered() -> None:
    (some, _) = await instructions("native", behavior=Behavior(debounce=0.0, blocks=("send", "remember")))
    (none, _) = await instructions("native", behavior=Behavior(debounce=0.0, blocks=()))

    assert [line for line in some.splitlines() if "«" in line] == [TOLD[0], TOLD[3]]
    assert "«" not in none
    assert "# Task Blocks" not in none
    with pytest.raises(InvalidValue, match=r"Behavior: blocks must hold some of send, .* not fly"):
        await instructions("native", behavior=Behavior(blocks=("send", "fly")))


@pytest.mark.parametrize("profile", ["layered", "tail", "native", "block", "headers"])
async def test_stickers_of_the_options_are_told(profile: str) -> None:
    cat = AvailableSticker(set="Cats", name="😺", description="a happy cat")

    (told, _) = await instructions(profile, context=ContextOptions(stickers=(cat,)))

    assert "# Stickers\n- Cats / 😺: a happy cat" in told


@pytest.mark.parametrize("profile", ["plain", "single"])
async def test_small_profiles_say_nothing_of_blocks(profile: str) -> None:
    assert not any("«" in told for told in await instructions(profile, persona=Persona(text="You are Gryag.")))


@pytest.mark.parametrize("profile", PROFILES)
async def test_without_an_engine_nothing_is_told_of_blocks(profile: str) -> None:
    assert "«" not in (await told(profile, ContextOptions())).instruction


def the_texts(context: Context) -> Prompt:
    """A profile of a user: the history and the target as texts, with all that is remembered in the instruction."""
    known = (context.memories, context.summary, context.key_facts, context.relevant, context.episodes)
    said = (cut_text(message.parts) for message in (*context.history, *context.batch))
    return Prompt.of(*said, system=str(sum(map(bool, known))))


async def test_a_function_as_a_profile_is_given_a_full_context(store: Store) -> None:
    model = Scripted("One.", "Two.")
    async with engine_with(model, store=store, profile=the_texts) as engine:
        await talked(engine, said("first", 1), said("second", 2))

    assert texts_of(model.prompts[1].turns) == ["first", "One.", "second"]


@pytest.mark.parametrize(("given", "shown"), [(the_texts, 60), (partial(the_texts), 60)])
async def test_a_function_draws_on_the_window_and_all_that_is_remembered(given: Build, shown: int) -> None:
    profile = profile_of(given, ContextOptions())

    context = await gather(TALK[-1], profile.sources(SourceInputs(log=InMemoryLog(TALK), memory=KNOWN)), NOON)
    prompt = build_prompt(context, profile)

    assert (profile.name, len(prompt.turns), prompt.instruction) == ("the_texts", shown, "5")


@pytest.mark.parametrize(
    ("sources", "shown", "known"), [(window_sources, 60, "5"), (level_sources, 36, "5"), (lambda _: [], 1, "0")]
)
async def test_a_profile_of_ones_own_draws_on_the_sources_it_names(
    sources: SourceList, shown: int, known: str, store: Store
) -> None:
    profile = Profile(name="mine", sources=sources, build=the_texts)
    model = Scripted("One.", "Two.")

    context = await gather(TALK[-1], profile.sources(SourceInputs(log=InMemoryLog(TALK), memory=KNOWN)), NOON)
    prompt = build_prompt(context, profile_of(profile, ContextOptions()))
    async with engine_with(model, store=store, profile=profile) as engine:
        await talked(engine, said("first", 1), said("second", 2))

    assert (len(prompt.turns), prompt.instruction) == (shown, known)
    assert texts_of(model.prompts[1].turns) == (["second"] if shown == 1 else ["first", "One.", "second"])


def test_what_is_no_profile_is_refused() -> None:
    with pytest.raises(
        InvalidValue, match="a profile is a name, a Profile or a function from Context to Prompt, not 5"
    ):
        profile_of(5, ContextOptions())  # type: ignore[arg-type]


SHOWN_BY = {
    "a file reference": ("layered", "tail"),
    "an artifact": ("layered", "tail"),
    "a todo": ("layered", "tail"),
    "a waving cat": ("layered", "tail", "native", "block", "headers"),
    "a note": tuple(PROFILES),
}
WORKSPACE = Workspace(file_references=("a file reference",), artifacts=("an artifact",), todos=("a todo",))
GIVEN = [
    sources.workspace(WORKSPACE),
    sources.stickers([AvailableSticker(set="cats", name="wave", description="a waving cat")]),
    sources.notes({"scr*": "a note", "gemini-*": "another note"}),
]


async def later(context: Context) -> Context:
    for source in GIVEN:
        context = await source(context)
    return context


@pytest.mark.parametrize("given", [GIVEN, [later]], ids=["as values", "by a function"])
@pytest.mark.parametrize("profile", PROFILES)
async def test_what_an_engine_is_given_is_told_where_the_profile_shows_it(
    profile: str, given: list[sources.AnySource]
) -> None:
    model = Scripted("Yes.")
    async with engine_with(model, profile=profile, context=ContextOptions(sources=tuple(given))) as engine:
        await talked(engine, said("well?"))

    (prompt,) = model.prompts
    words = "\n".join([prompt.instruction, *texts_of(prompt.turns)])
    assert {what for what in (*SHOWN_BY, "another note") if what in words} == {
        what for what, where in SHOWN_BY.items() if profile in where
    }


async def test_notes_come_after_those_of_the_persona() -> None:
    model, persona = Scripted("Yes."), Persona(notes="Be kind.")
    async with engine_with(
        model,
        persona=persona,
        context=ContextOptions(sources=(sources.notes({"scripted": "Be brief.", "*": "Be nice."}),)),
    ) as engine:
        await talked(engine, said("well?"))

    assert "Be kind.\n\nBe brief.\n\nBe nice." in model.prompts[0].instruction


async def test_a_source_need_not_be_awaited_and_sees_what_the_profile_has_gathered() -> None:
    def todos(context: Context) -> Context:
        seen = [cut_text(message.parts) for message in context.window]
        return replace(context, workspace=Workspace(todos=(f"{context.model} saw {seen}",)))

    model = Scripted("One.", "Two.")
    async with engine_with(model, context=ContextOptions(sources=(todos,))) as engine:
        await talked(engine, said("first", 1), said("second", 2))

    assert "scripted saw ['first', 'One.']" in "".join(texts_of(model.prompts[1].turns))


@pytest.mark.parametrize("given", [lambda _: None, lambda _: 1 / 0])
async def test_a_source_that_fails_is_an_honest_line_and_nothing_is_asked(
    given: Any, caplog: pytest.LogCaptureFixture
) -> None:
    model, platform = Scripted(), RecordedPlatform()
    async with engine_with(model, platform, context=ContextOptions(sources=(given,))) as engine:
        await talked(engine, said("first"))

    assert (platform.texts, model.prompts) == ([FAILED], [])
    assert "ZeroDivisionError" in caplog.text or "the source <lambda> gave None; a source gives the" in caplog.text


@pytest.mark.parametrize(("profile", "shown"), [("tail", {"9"}), ("native", {"9"}), ("plain", {"9"})])
async def test_a_budget_is_that_of_the_sources(profile: str, shown: set[str], store: Store) -> None:
    for number in range(10):
        await add_own(store, said(f"<{number}> {'word ' * 90}", f"own {number}", author=ME), [])
    model = Scripted("Yes.")
    budget = Budget(window=150, immediate=150, recent=0)
    async with engine_with(model, store=store, profile=profile, context=ContextOptions(budget=budget)) as engine:
        await talked(engine, said("well?"))

    assert set(_marks("".join(texts_of(model.prompts[0].turns)))) == shown
