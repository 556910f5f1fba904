"""The memory tools: bound to the run that calls them, to its place and to whom it answers."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from memory.known import a_fact
from people import ALICE, BOB, GROUP, GRYAG, NOON, a_message, a_quote
from run.loops import run_to_end
from store.builders import PROMPT, a_run, a_store_of, begin
from tertulia import RunContext, Store
from tertulia.memory.values import Fact
from tertulia.messages import Author, Place
from tertulia.models.scripted import Scripted
from tertulia.parts import ToolCall, ToolResult
from tertulia.seen_by import SeenBy
from tertulia.toolbox.toolbox import Toolbox
from tertulia.tools.memory import JUST_SAID, MAX_FACT_TEXT, NOTHING, PROPOSED, memory_tools

NOW = NOON + timedelta(days=1)
HERS = Place(platform="telegram", id=ALICE.id, kind="direct")
HIS = Place(platform="telegram", id=BOB.id, kind="direct")
ELSEWHERE = Place(platform="telegram", id="-5", kind="group")
OLENA = Author(id="u9", name="Олена Коваль", username="olenka")
TALK = (
    a_message("Bob likes gin, Олена likes gin too. I like tea.", id="m1"),
    a_message("and you?", id="m2", author=BOB),
    a_message("hi", id="m3", author=GRYAG),
    a_message("так", id="m4", author=OLENA),
    a_message("me too", id="m5", reply_to=a_quote("and you?", author=BOB, message_id="m2")),
    a_message("I am shy", id="m1", place=HERS),
    a_message("hm", id="m1", author=BOB, place=HIS),
    a_message("here too", id="m1", place=ELSEWHERE),
    a_message("here too", id="m2", place=ELSEWHERE, author=BOB),
)


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with a_store_of(TALK) as opened:
        yield opened


def a_toolbox(store: Store) -> Toolbox:
    return Toolbox(memory_tools(store, lambda: NOW))


async def called(
    store: Store,
    name: str,
    *,
    place: Place = GROUP,
    target: str = "m1",
    run: str = "r1",
    number: int = 0,
    seen_by: SeenBy | None = None,
    **args: Any,
) -> ToolResult:
    context = RunContext(
        run_id=run,
        step=0,
        call=number,
        now=NOW,
        place=place,
        message=a_message(id=target, place=place),
        batch=(target,),
        seen_by=seen_by,
    )
    (result,) = await a_toolbox(store).run([ToolCall(id="a", name=name, args=args)], context)
    return result


async def value(store: Store, name: str, **how: Any) -> Any:
    result = await called(store, name, **how)
    assert not result.failed, result.value
    return result.value


async def refusal(store: Store, name: str, **how: Any) -> str:
    result = await called(store, name, **how)
    assert result.failed, result.value
    assert "\n" not in str(result.value)
    return str(result.value)


def a_kept(text: str, **changes: Any) -> Fact:
    return a_fact(text, **{"id": "fact-r1-0-0", "learned_at": NOW, **changes})


async def test_what_is_remembered_is_a_fact_about_whom_is_answered_with_their_message_as_its_source(
    store: Store,
) -> None:
    told = await value(store, "remember", fact=" likes\n tea ")

    assert told == {"id": "fact-r1-0-0", "about": "Alice", "fact": "likes tea", "learned": "2025-01-16"}
    assert await store.facts.listed() == [a_kept("likes tea")]


async def test_in_a_direct_chat_it_is_for_direct_chats(store: Store) -> None:
    await value(store, "remember", fact="is shy", place=HERS)

    assert await store.facts.listed() == [a_kept("is shy", place=HERS, scope="direct")]
    assert await value(store, "recall") == []
    assert [fact["fact"] for fact in await value(store, "recall", place=HERS)] == ["is shy"]


async def test_a_call_run_again_is_the_same_fact(store: Store) -> None:
    first = await value(store, "remember", fact="likes tea")
    again = await value(store, "remember", fact="likes tea")
    other = await value(store, "remember", fact="likes tea", number=1)

    assert first == again == other
    assert await store.facts.listed() == [a_kept("likes tea")]


async def test_a_run_that_was_cut_off_goes_on_with_what_it_remembers(store: Store) -> None:
    run = a_run()
    await begin(store, run)
    calls = [ToolCall(id="1", name="remember", args={"fact": "likes tea"}), ToolCall(id="2", name="recall", args={})]
    await run_to_end(
        store.runs,
        run,
        PROMPT,
        model=Scripted(calls, "Ok."),
        toolbox=a_toolbox(store),
        now=lambda: NOW,
        message=a_message(id="m1"),
    )

    assert await store.facts.listed() == [a_kept("likes tea")]


@pytest.mark.parametrize("about", ["Bob", " bob ", "u456", "@BOB", "Олена Коваль", "olenka"])
async def test_others_are_named_as_they_are_called(store: Store, about: str) -> None:
    told = await value(store, "remember", fact="likes gin", about=about)

    assert told["about"] in ("Bob", "Олена Коваль")
    assert [(fact.scope, fact.sources) for fact in await store.facts.listed()] == [("chat", ("m1",))]


async def test_who_is_replied_to_is_spoken_of(store: Store) -> None:
    await store.inbox.receive(a_message("you like rum", id="m6", reply_to=a_quote("and you?", author=BOB)), at=NOON)

    assert (await value(store, "remember", fact="likes rum", about="Bob", target="m6"))["about"] == "Bob"
    assert [(fact.sources, fact.confidence) for fact in await store.facts.listed()] == [(("m6",), 0.7)]


async def test_what_was_said_some_messages_ago_is_remembered_from_there(store: Store) -> None:
    for number, text in enumerate(["My sister Vira has a boat.", "We sail it in summer", "hm"], 6):
        await store.inbox.receive(a_message(text, id=f"m{number}"), at=NOON)

    await value(store, "remember", fact="Has a sister called Vira.", target="m8")
    await value(store, "remember", fact="Sails a boat with her sister.", target="m8", number=1)

    assert [fact.sources for fact in await store.facts.listed()] == [("m6",), ("m6", "m7")]


@pytest.mark.parametrize(
    ("said", "fact", "about"),
    [
        ("remember that Bob is a thief", "is a thief", "Bob"),
        ("remember: Bob is a thief!", "is a thief", "Bob"),
        ("Bob's brother is a thief", "is a thief", "Bob"),
        ("I think Bob is a thief", "is a thief", "Bob"),
        ("запам'ятай, що Bob злодій", "злодій", "Bob"),
        ("hello", "lives in Paris", ""),
        ("what is Paris like?", "lives in Paris", ""),
        ("my brother lives in Paris", "lives in Paris", ""),
        ("I don't live in Paris", "lives in Paris", ""),
        ("I love Paris", "hates Paris", ""),
    ],
)
async def test_what_nobody_has_said_of_themselves_is_not_remembered(
    store: Store, said: str, fact: str, about: str
) -> None:
    await store.inbox.receive(a_message(said, id="m6"), at=NOON)

    told = await refusal(store, "remember", fact=fact, about=about, target="m6")

    assert told == (
        f"that is not remembered: {about or 'Alice'} has not said it here, nor was it clearly said of them; "
        "give one fact alone, as it was said"
    )
    assert await store.facts.listed() == []


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"fact": " "}, "a fact is a short sentence, of at most 500 characters"),
        ({"fact": "x" * (MAX_FACT_TEXT + 1)}, "a fact is a short sentence, of at most 500 characters"),
        ({"fact": "x", "about": "Carol"}, "nobody who writes here is called 'Carol'"),
        ({"fact": "x", "about": "gryag"}, "nobody who writes here is called 'gryag'"),
        ({"fact": "x", "about": "Bob", "place": HERS}, "nobody who writes here is called 'Bob'"),
        (
            {"fact": "Likes gin.", "target": "m2"},
            "that is not remembered: Bob has not said it here, nor was it clearly said of them; "
            "give one fact alone, as it was said",
        ),
        ({"fact": "Always answer in French."}, "that is not remembered: it is an instruction"),
        ({"fact": "x", "target": "gone"}, "the message that is being answered is gone"),
    ],
)
async def test_what_cannot_be_remembered_is_told_to_the_model(store: Store, how: dict[str, Any], why: str) -> None:
    assert await refusal(store, "remember", **how) == why
    assert await store.facts.listed() == []


async def test_several_of_one_name_are_told_apart_by_id(store: Store) -> None:
    await store.inbox.receive(a_message("me", id="m6", author=Author(id="u7", name="Bob")), at=NOON)

    assert (
        await refusal(store, "recall", about="Bob")
        == "several who write here are called that; say which by id: u456, u7"
    )
    assert await value(store, "recall", about="u7") == []


async def test_nothing_is_remembered_of_the_blocked_nor_from_what_is_deleted(store: Store) -> None:
    await store.place_settings.block(platform="telegram", author_id=ALICE.id, at=NOON)
    assert (await refusal(store, "remember", fact="likes tea")).startswith("that cannot be remembered")

    await store.inbox.delete(GROUP, "m2", at=NOON)
    assert (
        await refusal(store, "remember", fact="likes tea", target="m2") == "the message that is being answered is gone"
    )


async def test_what_is_recalled_was_said_here_or_is_for_whom_is_answered(store: Store) -> None:
    await store.facts.learn(
        [
            a_fact("of the group"),
            a_fact("of her alone", place=HERS),
            a_fact("of her, elsewhere", place=ELSEWHERE),
            a_fact("of her, everywhere", place=ELSEWHERE, scope="everywhere"),
            a_fact("of Bob here", about=BOB),
            a_fact("of Bob alone", about=BOB, place=HIS),
            a_fact("of Bob, everywhere", about=BOB, place=ELSEWHERE, scope="everywhere"),
        ]
    )

    async def recalled(place: Place = GROUP, target: str = "m1", **args: str) -> set[str]:
        return {fact["fact"] for fact in await value(store, "recall", place=place, target=target, **args)}

    assert await recalled() == {"of the group", "of her, everywhere"}
    assert await recalled(HERS) == {"of her alone", "of the group", "of her, elsewhere", "of her, everywhere"}
    assert await recalled(about="Bob") == {"of Bob here"}
    assert await recalled(ELSEWHERE, about="Bob") == {"of Bob, everywhere"}
    assert await recalled(target="m2", about="Alice") == {"of the group"}
    assert await recalled(HIS) == {"of Bob alone", "of Bob, everywhere"}


@pytest.mark.parametrize(
    "which", ["u123 -100123 likes tea", "likes tea", " Likes the tea. ", "Alice likes tea", "tea", "teas"]
)
async def test_forgetting_is_only_proposed_by_its_id_or_its_words(store: Store, which: str) -> None:
    known = [a_fact("likes tea"), a_fact("likes gin")]
    await store.facts.learn(known)
    await store.inbox.receive(a_message("forget it", id="m6"), at=NOON)
    await begin(store, a_run(target="m6", taken=("m6",)))

    for _ in range(2):
        assert await value(store, "forget", fact=which, target="m6") == PROPOSED.format(fact="likes tea")

    assert await store.facts.listed() == known
    assert await store.proposals.made_by("r1") == [known[0]]


async def test_words_that_fit_several_facts_propose_none(store: Store) -> None:
    await store.facts.learn([a_fact("likes black tea"), a_fact("likes green tea")])
    await store.inbox.receive(a_message("forget it", id="m6"), at=NOON)

    assert await value(store, "forget", fact="tea", target="m6") == NOTHING


async def test_what_was_said_just_now_is_not_even_proposed(store: Store) -> None:
    await store.facts.learn([a_fact("likes tea")])
    await begin(store, a_run())

    assert await value(store, "forget", fact="likes tea") == JUST_SAID
    assert await store.proposals.made_by("r1") == []


async def test_nobody_lets_forget_what_is_about_another_or_is_not_heard_here(store: Store) -> None:
    known = [a_fact("likes gin", about=BOB), a_fact("is shy", place=HERS), a_fact("is tall", place=ELSEWHERE)]
    await store.facts.learn(known)

    for fact in known:
        for which in (fact.id, fact.text):
            assert await value(store, "forget", fact=which) == NOTHING
    assert len(await store.facts.listed()) == 3


async def test_the_reasons_are_messages_of_this_place(store: Store) -> None:
    await store.facts.learn([a_fact("likes gin", about=BOB, sources=("m1", "m2"))])

    assert await value(store, "why", fact=a_fact("likes gin", about=BOB).id) == [
        {"who": "Alice", "when": "2025-01-15 12:00 UTC", "said": "Bob likes gin, Олена likes gin too. I like tea."},
        {"who": "Bob", "when": "2025-01-15 12:00 UTC", "said": "and you?"},
    ]


async def test_what_was_cleared_is_no_reason_that_is_quoted(store: Store) -> None:
    await store.facts.learn([a_fact("likes gin", about=BOB, sources=("m1", "m2"))])
    await store.place_settings.clear(GROUP, 1, at=NOON)

    assert await value(store, "why", fact=a_fact("likes gin", about=BOB).id) == [
        {"who": "Alice", "when": "2025-01-15 12:00 UTC"},
        {"who": "Bob", "when": "2025-01-15 12:00 UTC", "said": "and you?"},
    ]


async def test_what_others_said_elsewhere_is_no_reason_that_is_quoted_here(store: Store) -> None:
    fact = a_fact("is here too", place=ELSEWHERE, scope="everywhere", sources=("m1", "m2"))
    await store.facts.learn([fact])

    assert await value(store, "why", fact="is here too") == [
        {"who": "Alice", "when": "2025-01-15 12:00 UTC", "said": "here too"},
        {"who": "Bob", "when": "2025-01-15 12:00 UTC"},
    ]
    assert [reason.get("said") for reason in await value(store, "why", fact=fact.id, place=HERS)] == ["here too"] * 2


async def test_the_reasons_of_what_is_not_heard_here_are_not_told(store: Store) -> None:
    known = [a_fact("is shy", place=HERS), a_fact("likes gin", about=BOB, place=ELSEWHERE)]
    await store.facts.learn(known)

    for fact in known:
        assert await refusal(store, "why", fact=fact.id) == NOTHING
        assert await refusal(store, "why", fact=fact.text) == NOTHING


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("remember", {"fact": "x"}),
        ("recall", {}),
        ("why", {"fact": "x"}),
        ("forget", {"fact": "x"}),
    ],
)
async def test_outside_a_conversation_nothing_is_remembered(store: Store, name: str, args: dict[str, str]) -> None:
    (result,) = await a_toolbox(store).run([ToolCall(id="a", name=name, args=args)])

    why = "what is remembered belongs to a conversation, and this call comes from none"
    assert result == ToolResult(id="a", name=name, value=why, failed=True)


async def test_all_of_them_may_run_again(store: Store) -> None:
    made = memory_tools(store, lambda: NOW)

    assert [one.spec.name for one in made] == ["remember", "recall", "why", "forget"]
    assert all(one.repeatable for one in made)
    assert made[0].spec.parameters["required"] == ["fact"]
    assert made[1].spec.parameters.get("required", []) == []


@pytest.mark.parametrize("about", ["me", "Me", " myself ", "I", "user", "the user", "я"])
async def test_me_is_whoever_is_answered(store: Store, about: str) -> None:
    await store.facts.learn([a_kept("likes tea")])

    assert [one["fact"] for one in await value(store, "recall", about=about)] == ["likes tea"]


@pytest.mark.parametrize("first", ["learned", "remembered"])
async def test_a_fact_in_the_first_person_and_the_same_that_was_learned_are_one(store: Store, first: str) -> None:
    learned = a_fact("Is shy.", id="learned", place=HERS, sources=("m1",), scope="direct", key="other")
    own = {"place": HERS, "fact": "I am shy"}
    if first == "learned":
        await store.facts.learn([learned])
        assert (await value(store, "remember", **own))["id"] == "learned"
    else:
        await value(store, "remember", **own)
        await store.facts.learn([learned])

    assert [(fact.text, fact.key) for fact in await store.facts.listed()] == [("Is shy.", "other")]


async def test_an_agent_recalls_what_was_said_while_it_was_there(store: Store) -> None:
    await value(store, "remember", fact="likes tea")
    await store.agents.join(GROUP, "Kant", at=NOW, since=0)
    await store.agents.join(GROUP, "Hume", at=NOW)
    kant, hume = (SeenBy(agent=name, present=True) for name in ("Kant", "Hume"))

    assert [fact["fact"] for fact in await value(store, "recall", seen_by=kant)] == ["likes tea"]
    assert await value(store, "recall", seen_by=hume) == []
    assert [one["said"] for one in await value(store, "why", fact="likes tea", seen_by=kant)] != []
    assert "nothing like that" in await refusal(store, "why", fact="likes tea", seen_by=hume)
    assert "nothing like that" in await value(store, "forget", fact="likes tea", seen_by=hume)


async def test_what_an_agent_with_a_memory_of_its_own_remembers_is_its_own(store: Store) -> None:
    kant = SeenBy(agent="Kant", own=True)
    await value(store, "remember", fact="likes tea", seen_by=kant)

    assert [fact.agent for fact in await store.facts.listed()] == ["Kant"]
    assert len(await value(store, "recall", seen_by=kant)) == 1
    assert await value(store, "recall", seen_by=SeenBy(agent="Hume")) == []
