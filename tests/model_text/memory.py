"""What models are asked for the memory, and what of the memory is put into prompts."""

from datetime import timedelta

from memory.known import a_fact, a_subject
from memory.labelled import DEV
from model_text.shown import a_section, in_json, shown_prompt
from people import ALICE, BOB, GROUP, GRYAG, NOON, a_context, a_message, a_photo, a_quote
from tertulia.context import sources
from tertulia.context.gather import InMemoryKnowledge
from tertulia.context.values import Background, RelevantMessage
from tertulia.engine.describers import by_model
from tertulia.engine.memory.recall import KnownFacts
from tertulia.memory.episode_summary import build_episode, summary_prompt
from tertulia.memory.episodes import build_window_past
from tertulia.memory.extract import extract_facts, facts_by_patterns
from tertulia.memory.summaries import compose_summary, summarise
from tertulia.memory.values import Episode
from tertulia.models.scripted import Scripted
from tertulia.parts import Text
from tertulia.platforms.terminal import setup
from tertulia.store import Store
from tertulia.turns import Prompt

TALK = (
    a_message("I moved to Lviv last spring. The sea is far now!", id="m1"),
    a_message("Do you like it there? The old town is lovely.", id="m2", author=BOB, reply_to=a_quote("I moved")),
    a_message("Yes, Lviv is lovely.", id="m3", author=GRYAG, reply_to=a_quote("x", author=ALICE, excerpt="Lviv")),
    a_message(
        "look", id="m4", parts=(Text(text="look"), a_photo(rendered_text="an old town"), a_photo(unique_id="p2"))
    ),
    a_message("gone", id="m5", deleted=True),
)


async def instructions() -> str:
    """Every instruction of ours that no profile holds, with what is asked under it."""
    reader = Scripted("no JSON", '{"facts": []}')
    known = [a_fact("lives in Lviv", key="home"), a_fact("likes tea", key="taste:tea")]
    await extract_facts(reader, TALK[1:], now=NOON, before=TALK[:1], known=known)
    deep = Scripted('{"other": ' + "[" * 100_000, '{"facts": []}')
    await extract_facts(deep, TALK[1:2], now=NOON)
    writer = Scripted("Alice lives in Lviv.")
    await summarise(writer, known, subject=a_subject(), place=GROUP, now=NOON)
    describer = Scripted("A cat.")
    await by_model(describer)(a_photo())
    prompts = [
        *(("facts", prompt) for prompt in reader.prompts),
        *(("a summary", prompt) for prompt in writer.prompts),
        ("facts nested too deeply", Prompt.of(deep.prompts[1].turns[-1])),
        ("an episode", summary_prompt(TALK)),
        *(("media", prompt) for prompt in describer.prompts),
    ]
    sections = [a_section(name, shown_prompt(prompt)) for name, prompt in prompts]
    sections.append(a_section("the terminal", f"{setup.SYSTEM}\n{setup.SMALL_SYSTEM}"))
    return "\n".join(sections)


async def recollections() -> str:
    """Facts under their labels, a summary without a model, an episode in its own words, the past of a window."""
    keys = "name home work taste:tea favourite:colour pet:cat plan:trip past:home family_name".split()
    facts = [
        a_fact(f"has {key or 'no key'}", id=str(number), key=key, learned_at=NOON + timedelta(minutes=number))
        for number, key in enumerate([*keys, "", "home"])
    ]
    async with Store.open(":memory:") as store:
        for message in TALK:
            await store.inbox.receive(message, at=NOON)
        await store.facts.learn(facts)
        target = a_message("well?", id="m9")
        background = await KnownFacts(store.facts, now=lambda: NOON).background(target)
    episode = build_episode(TALK, GROUP, 0)
    happened = [
        Episode(
            id=str(n), place=GROUP, start=n, stop=n + 1, began_at=NOON, topic=f"topic {n}", summary="They met. " * 40
        )
        for n in range(12)
    ]
    hit = RelevantMessage(text="the sea is warm", score=0.9, said_by="Bob", said_at=NOON)
    remembered = InMemoryKnowledge(hits=[hit], background=Background(memories=("Likes tea",)), past="2025-01-14 tea")
    gathered = await sources.relevant(remembered)(a_context())
    return "\n".join(
        [
            a_section("facts", in_json([background.memories, background.key_facts, background.summary])),
            a_section("a summary", compose_summary(facts)),
            a_section("an episode", in_json([episode.topic, episode.summary, episode.tags])),
            a_section("the past", build_window_past(happened, since=0, start=12).text),
            a_section("what was said", in_json([one.text for one in gathered.relevant])),
        ]
    )


def patterns() -> str:
    """What patterns find in the labelled messages."""
    lines = []
    for labelled in DEV:
        facts = facts_by_patterns([a_message(labelled.text)], now=NOON)
        lines += [labelled.text, *(f"  {fact.key} | {fact.text} | {fact.confidence:g}" for fact in facts)]
    return "\n".join(lines) + "\n"
