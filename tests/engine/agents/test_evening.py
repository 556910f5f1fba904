"""An evening of five agents and four people: who answers, in which order, once, and what each of them was told."""

import asyncio

import pytest
from msgspec.structs import replace

from engine.agents.evening import ANN, BOB, CLEO, DAN, Evening, an_evening
from engine.engines import DIRECT, GROUP, engine_with, talked
from engine.engines import said as message
from tertulia.engine.agents.agent import Agent
from tertulia.engine.behavior import FAILED
from tertulia.engine.limits import Limits
from tertulia.errors import ModelUnavailable
from tertulia.messages import Quote
from tertulia.models.scripted import Scripted
from tertulia.parts import Text
from tertulia.profiles import PROFILES
from tertulia.store import Store

FIVE = tuple(Agent(name=name) for name in ("Marie", "Albert", "Albert Einstein", "Niels", "Lise"))
ALONE = Agent(name="Niels", knows="present")
SILENCE = "# «think»\nNot for me."


async def test_every_message_is_answered_by_those_it_means_in_their_order_and_once() -> None:
    async with an_evening(FIVE) as evening:
        say, sent = evening.say, evening.platform.shown

        assert await say(ANN, "Good evening.") == []
        assert await say(ANN, "Albert Einstein, is it late?") == [("Albert Einstein", "I see, 1.")]
        assert await say(BOB, "Albert, do you know Albert Einstein?") == [
            ("Albert", "I see, 1."), ("Albert Einstein", "I see, 2."),
        ]  # fmt: skip
        of_albert = list(sent)[-2]
        assert await say(CLEO, "What of Marie?", reply_to=Quote(message_id=of_albert)) == [("Albert", "I see, 2.")]
        assert await say(DAN, "@niels, Marie says hello") == [("Niels", "I see, 1.")]
        several = await say(ANN, "Lise, Niels, Marie: what is a proton?")
        assert [name for name, _ in several] == ["Lise", "Niels", "Marie"]

        evening.models["Marie"].next = ["Ask Lise about that."]
        assert await say(BOB, "Marie, and a neutron?") == [
            ("Marie", "Ask Lise about that."), ("Lise", "I see, 2."), ("Marie", "I see, 3."),
        ]  # fmt: skip  # a reply to Marie means her; then three in a row are agents

        decided = await evening.store.inbox.decided(GROUP, most=99)
        assert all(one.reason != "waiting" for _, found in decided for one in found)
        assert evening.leaks() == {}


async def test_each_sees_the_answer_of_the_one_before_as_words_of_another() -> None:
    async with an_evening(FIVE) as evening:
        evening.models["Lise"].next = ["It is heavy."]
        await evening.say(ANN, "Lise, Niels, Marie: what is a proton?")

        for name in ("Niels", "Marie"):
            [prompt] = evening.models[name].prompts
            spoken = [(turn.role, turn.text) for turn in prompt.turns if "It is heavy." in str(turn.parts)]
            assert [role for role, _ in spoken] == ["user"], name
            assert "Lise" in str(prompt)
        assert "I see, 1." in str(evening.models["Marie"].prompts[0])

        await evening.say(BOB, "Lise, how heavy?")
        roles = [turn.role for turn in evening.models["Lise"].prompts[-1].turns if "It is heavy." in str(turn.parts)]
        assert roles == ["model"]


async def test_bursts_and_albums_mean_all_that_one_of_their_messages_means() -> None:
    async with an_evening(FIVE) as evening:
        for text in ("Niels,", "and Marie:", "what is that?"):
            await evening.receive(ANN, text)
        await evening.settled()
        for text in ("", "Lise, look"):
            await evening.receive(BOB, text, album="a")
        await evening.settled()

        assert evening.since(0) == [("Niels", "I see, 1."), ("Marie", "I see, 1."), ("Lise", "I see, 1.")]
        for name, count in (("Niels", 3), ("Marie", 3)):
            assert sum(one in str(evening.models[name].prompts[0]) for one in list(evening.told)[:3]) == count


async def test_one_that_fails_and_one_that_is_silent_do_not_hold_the_next() -> None:
    async with an_evening(FIVE) as evening:
        evening.models["Lise"].next = [ModelUnavailable("away")] * 9
        evening.models["Niels"].next = [SILENCE]

        said = await evening.say(ANN, "Lise, Niels, Marie: are you there?")

        assert [name for name, _ in said] == ["Lise", "Marie"]
        assert said[1] == ("Marie", "I see, 1.")
        assert await evening.say(BOB, "Niels?") == [("Niels", "I see, 2.")]


async def test_one_that_passes_its_time_does_not_hold_the_next() -> None:
    async with an_evening(FIVE, limits=Limits(run_timeout=1.0)) as evening:
        evening.models["Lise"].held = asyncio.Event()

        said = await evening.say(ANN, "Lise, Marie: are you there?")

        assert [name for name, _ in said] == ["Lise", "Marie"]
        assert said[0][1] != FAILED
        assert said[1][1] == "I see, 1."


async def test_one_that_is_removed_in_the_middle_of_its_answer_says_nothing_and_its_words_stay() -> None:
    async with an_evening(FIVE, behavior={"cancel_tasks": "nothing"}) as evening:
        evening.models["Emmy"].next = ["Symmetry.\n\n# «wait»\ndelay: 600\n\n# «send»\nlater", "never said"]
        assert await evening.command(ANN, "/agent add Emmy: You are Emmy.") == ["Emmy is here from now on."]
        assert await evening.say(BOB, "Emmy?") == [("Emmy", "Symmetry.")]

        evening.models["Emmy"].held, before = asyncio.Event(), len(evening.platform.deliveries)
        evening.models["Emmy"].asked.clear()
        await evening.receive(CLEO, "Emmy, Marie: go on")
        while not evening.models["Emmy"].asked.is_set():
            await evening.clock.advance(0.5)
            await asyncio.sleep(0)
        told = await evening.command(ANN, "/agent remove Emmy", DIRECT)

        assert "Emmy is gone; what was said stays." in told
        assert evening.since(before)[-1] == ("Marie", "I see, 1.")
        assert "never said" not in str(evening.platform.texts)
        assert "Emmy was removed; planned tasks that are cancelled here: 1." in told
        await evening.clock.advance(700)
        await evening.settled()
        assert "later" not in str(evening.platform.texts)
        [words] = [one for one in await evening.store.log.read(GROUP, 0, 99) if "Symmetry" in one.text]
        assert (words.agent, words.author.persona) == ("Emmy", "Emmy")
        for name in ("Marie", "Lise"):
            await evening.say(DAN, f"{name}, who said that?")
            shown = [one.role for one in evening.models[name].prompts[-1].turns if "Symmetry" in str(one.parts)]
            assert (shown, "Emmy" in str(evening.models[name].prompts[-1])) == (["user"], True)
        assert await evening.say(DAN, "Emmy?") == []
        assert await evening.say(DAN, "what?", reply_to=Quote(message_id=words.id)) == []
        assert evening.leaks() == {}


async def test_in_a_direct_chat_the_new_agent_sees_nothing_of_what_the_former_was_told() -> None:
    async with an_evening(FIVE) as evening:
        assert await evening.say(ANN, "Hello.", DIRECT) == [("Marie", "I see, 1.")]
        assert await evening.say(ANN, "Niels, are you there?", DIRECT) == [("Marie", "I see, 2.")]
        told = await evening.command(ANN, "/agent Niels", DIRECT)
        assert told[0].startswith("Here: Niels")
        assert await evening.say(ANN, "Where do I live?", DIRECT) == [("Niels", "I see, 1.")]
        assert await evening.say(ANN, "Niels, where?") == [("Niels", "I see, 2.")]
        await evening.command(ANN, "/agent Marie", DIRECT)
        assert await evening.say(ANN, "And now?", DIRECT) == [("Marie", "I see, 3.")]

        told_to = [
            name
            for _, name in sorted(
                (secret, *there) for secret, (place, there) in evening.told.items() if place == DIRECT
            )
        ]
        marie, niels = (
            {one for one in evening.shown(name) if evening.told[one][0] == DIRECT} for name in ("Marie", "Niels")
        )
        assert marie & niels == set()
        assert len(marie) == told_to.count("Marie") - 1  # it has not seen its last answer
        assert evening.leaks() == {}


async def test_administrators_say_who_is_in_a_group_and_who_comes_later_sees_what_it_knows() -> None:
    async with an_evening((*FIVE[:3], ALONE, FIVE[4])) as evening:
        assert await evening.command(BOB, "/agents Marie, Niels") == ["Only an administrator can change who is here."]
        assert await evening.command(ANN, "/agents Marie, Albert Einstein") == [
            "Here: Marie (answers where nobody is named), Albert Einstein.\nNot here: Albert, Niels, Lise."
        ]
        assert await evening.say(BOB, "Niels, Albert and Marie?") == [("Marie", "I see, 1.")]
        await evening.command(ANN, "/agents Marie, Niels, Lise")
        missed = {one for one, (_, there) in evening.told.items() if "Niels" not in there}

        said = await evening.say(CLEO, "Niels and Lise, what has Bob said? Where does Bob live?")

        assert [name for name, _ in said] == ["Niels", "Lise"]
        assert len(missed) == 2
        assert evening.shown("Niels") & missed == set()
        assert evening.shown("Lise") >= missed
        await evening.command(ANN, "/agents Marie")
        await evening.say(DAN, "Marie, they are away.")
        await evening.command(ANN, "/agents -")
        await evening.say(DAN, "Niels, what was said while you were away?")
        assert evening.shown("Niels") & missed == set()
        assert evening.leaks() == {}


async def test_locked_agents_are_changed_by_nobody() -> None:
    async with an_evening(FIVE, locked=True) as evening:
        refused = "Who is here is set in tertulia.toml, and commands cannot change it."
        assert await evening.command(ANN, "/agents Marie") == [refused]
        assert await evening.command(ANN, "/agent Niels", DIRECT) == [refused]
        assert [line.split(":")[0] for line in await evening.command(BOB, "/agents")] == ["Here"]


@pytest.mark.parametrize("most", [1, 2, 4])
async def test_agents_in_a_row_holds_over_all_of_them(most: int) -> None:
    async with an_evening(FIVE, behavior={"agents_in_a_row": most}) as evening:
        names = [one.name for one in FIVE]
        for name, other in zip(names, [*names[1:], names[0]], strict=True):
            evening.models[name].next = [f"@{other}?"] * 9

        said = await evening.say(ANN, "Marie?")

        assert [name for name, _ in said] == names[: most + 1]


@pytest.mark.parametrize("profile", sorted(PROFILES))
async def test_a_quote_of_what_was_said_while_an_agent_was_away_has_no_words_for_it(profile: str) -> None:
    async with an_evening((*FIVE[:3], ALONE), profile=profile) as evening:
        await evening.command(ANN, "/agents Marie")
        await evening.say(BOB, "Nobody else hears this.")
        missed = set(evening.told)
        quote = await evening.quote(GROUP, 1)
        assert quote
        await evening.command(ANN, "/agents -")

        await evening.say(CLEO, "Niels, Marie: what is that?", reply_to=quote)
        await evening.say(DAN, "Niels and Marie?")

        assert evening.shown("Niels") & missed == set()
        assert evening.shown("Marie") & missed == missed


async def test_one_that_is_removed_before_its_turn_is_passed_over() -> None:
    async with an_evening(FIVE) as evening:
        await evening.command(ANN, "/agent add Emmy: You are Emmy.", DIRECT)
        marie, before = evening.models["Marie"], len(evening.platform.deliveries)
        marie.held = asyncio.Event()
        await evening.receive(CLEO, "Marie, Emmy, Lise: go on")
        while not marie.asked.is_set():
            await evening.clock.advance(0.5)
            await asyncio.sleep(0)
        removed = asyncio.create_task(evening.command(ANN, "/agent remove Emmy", DIRECT))
        while len(evening.platform.deliveries) == before:  # noqa: ASYNC110 (a list tells nobody)
            await asyncio.sleep(0.001)
        marie.held.set()
        await removed

        assert [name for name, _ in evening.since(before + 1)] == ["Marie", "Lise"]


async def test_an_edit_that_means_another_is_answered_by_it_and_nobody_answers_twice() -> None:
    async with an_evening(FIVE) as evening:
        asked = await evening.receive(ANN, "Niels?")
        await evening.settled()
        for text in ("Marie?", "Niels and Marie?"):
            await evening.engine.edit(replace(asked, parts=(Text(text=text),)))
            await evening.settled()

        assert [name for name, _ in evening.since(0)] == ["Niels", "Marie"]


def roles(evening: Evening, name: str, words: str) -> list[str]:
    return [turn.role for turn in evening.models[name].prompts[-1].turns if words in str(turn.parts)]


async def test_the_only_agent_is_joined_by_another_and_left_alone_again() -> None:
    async with an_evening(FIVE[:1]) as evening:
        evening.models["Marie"].next = ["Radium glows.", "Hello Ann."]
        evening.models["Emmy"].next = ["Symmetry."]
        await evening.say(BOB, "Marie?")
        await evening.say(ANN, "Hi", DIRECT)
        told_to_marie = {one for one, (place, _) in evening.told.items() if place == DIRECT}

        await evening.command(ANN, "/agent add Emmy: You are Emmy.", DIRECT)
        said = await evening.say(BOB, "Emmy and Marie?")
        assert said == [("Emmy", "Symmetry."), ("Marie", "I see, 3.")]
        assert (roles(evening, "Emmy", "Radium"), roles(evening, "Marie", "Radium")) == (["user"], ["model"])
        await evening.command(ANN, "/agent Emmy", DIRECT)
        await evening.say(ANN, "To Emmy alone", DIRECT)
        assert evening.shown("Emmy") & told_to_marie == set()
        told_to_emmy = {one for one, (place, there) in evening.told.items() if place == DIRECT and "Emmy" in there}

        await evening.command(ANN, "/agent remove Emmy", DIRECT)
        await evening.say(BOB, "Marie, who said that?")
        assert (roles(evening, "Marie", "Radium"), roles(evening, "Marie", "Symmetry")) == (["model"], ["user"])
        await evening.say(ANN, "Where do I live?", DIRECT)
        assert roles(evening, "Marie", "Hello Ann.") == ["model"]
        assert len(told_to_emmy) == 2
        assert evening.shown("Marie") & told_to_emmy == set()


async def test_an_engine_with_one_agent_does_not_see_what_another_was_told_in_an_earlier_process(store: Store) -> None:
    emmy, marie = Scripted("I see."), Scripted("And now?")
    both = [Agent(name="Emmy", models=(emmy,)), Agent(name="Marie", models=(marie,))]
    async with engine_with(emmy, store=store, agents=both) as engine:
        await talked(engine, message("Only between us", 1))

    async with engine_with(marie, store=store, agents=both[1:]) as engine:
        await talked(engine, message("Who is there?", 2))

    assert "Only between us" not in str(marie.prompts)
