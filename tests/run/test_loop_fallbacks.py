"""What is asked after a model failed, and which model."""

from typing import Any

import pytest
from msgspec.structs import replace

from people import NOON
from run.loop_child import MODEL, toolbox
from run.loops import resumed
from run.scripted_runs import LOOK, OLD_CALL, RUN, TALK, TOOLS, Slept, names, ran_with
from tertulia.engine.store_protocols import RunStore
from tertulia.errors import (
    KeyRefused,
    Overloaded,
    QuotaExhausted,
    RateLimited,
    RequestRefused,
    ResponseUnreadable,
    TertuliaError,
)
from tertulia.models import Gemini
from tertulia.models.scripted import Scripted
from tertulia.parts import Thought, ToolResult
from tertulia.run.journal import FallbackStep
from tertulia.run.loop import (
    NoAnswer,
    append_turns,
)
from tertulia.sim import faults
from tertulia.sim.gemini import Fault, GeminiSim, Script
from tertulia.sim.gemini import Model as Served
from tertulia.store import Store
from tertulia.turns import Prompt, model, user

WAITED: list[tuple[list[TertuliaError], list[float]]] = [
    ([RateLimited("slow down", retry_after=7.5)], [7.5]),
    ([Overloaded("busy"), Overloaded("busy"), RateLimited("slow down", retry_after=0)], [1.0, 2.0, 0]),
    ([Overloaded("busy")] * 4, [1.0, 2.0, 4.0, 8.0]),
]


@pytest.mark.parametrize(("errors", "waited"), WAITED)
async def test_what_waiting_helps_is_waited_for(
    runs: RunStore, errors: list[TertuliaError], waited: list[float]
) -> None:
    slept, scripted = Slept(), Scripted(*errors, "Here.")

    answered = await ran_with(runs, scripted, Prompt.of("go"), sleep=slept)

    assert (slept, names(answered.tried), answered.response.text) == (waited, (), "Here.")
    assert scripted.prompts == [Prompt.of("go")] * (len(errors) + 1)


REMAINING: list[tuple[list[Any], type[TertuliaError], list[float]]] = [
    ([Overloaded("busy")] * 5, Overloaded, [1.0, 2.0, 4.0, 8.0]),
    ([RateLimited("slow down", retry_after=61)], RateLimited, []),
    ([QuotaExhausted("used up")], QuotaExhausted, []),
    ([RequestRefused("no")], RequestRefused, []),
    ([ResponseUnreadable("?")] * 2, ResponseUnreadable, []),
    ([[], " \n"], NoAnswer, []),
    ([[Thought(text="hm")], []], NoAnswer, []),
]


@pytest.mark.parametrize(("script", "error", "waited"), REMAINING)
async def test_what_remains_is_raised(
    runs: RunStore, script: list[Any], error: type[TertuliaError], waited: list[float]
) -> None:
    slept, scripted = Slept(), Scripted(*script, "never asked for")

    with pytest.raises(error):
        await ran_with(runs, scripted, Prompt.of("go"), sleep=slept)

    journal = await runs.journal(RUN.id)
    assert journal
    assert (slept, len(scripted.prompts)) == (waited, len(script))
    assert names(journal.tried) == (("again",) if error in {NoAnswer, ResponseUnreadable} else ())


EMPTYING = [
    faults.Empty(),
    faults.EmptyCandidates(),
    faults.MaxTokens(),
    faults.ContentFilter(),
    faults.BlockedPrompt(),
    faults.MalformedCall(),
]


@pytest.mark.parametrize("fault", EMPTYING, ids=lambda fault: type(fault).__name__)
async def test_an_empty_answer_is_asked_for_again_in_the_same_bytes(runs: RunStore, fault: Fault) -> None:
    async with GeminiSim(behaviour=Script(["Here."])) as sim, Gemini(MODEL, key="k", base_url=sim.url) as asked:
        sim.fail(fault)

        answered = await ran_with(runs, asked, TALK)

    assert (answered.response.text, names(answered.tried)) == ("Here.", ("again",))
    assert sim.requests[0].body == sim.requests[1].body


ALL = (
    "again", "regroup", "placeholder signatures", "drop closed signatures", "flatten", "shorten",
)  # fmt: skip


@pytest.mark.parametrize("times", range(1, len(ALL) + 1))
async def test_the_fallbacks_are_tried_one_by_one_with_legal_requests(runs: RunStore, times: int) -> None:
    async with GeminiSim(behaviour=Script(["Here."])) as sim, Gemini(MODEL, key="k", base_url=sim.url) as asked:
        sim.fail(faults.Empty(), times=times)

        answered = await ran_with(runs, asked, TALK)

    assert names(answered.tried) == ALL[:times]
    assert {request.status for request in sim.requests} == {200}
    bodies = [request.body for request in sim.requests]
    assert bodies[0] == bodies[1]
    assert all(bodies[n] != bodies[n + 1] for n in range(1, times))
    assert len(answered.turns) == 1


async def test_at_the_end_of_the_fallbacks_all_of_them_are_in_the_journal(runs: RunStore) -> None:
    async with GeminiSim() as sim, Gemini(MODEL, key="k", base_url=sim.url) as asked:
        sim.fail(faults.ContentFilter(), times=50)

        with pytest.raises(NoAnswer, match=f"^{MODEL} gave no answer that can be used: blocked SAFETY$"):
            await ran_with(runs, asked, TALK)

    journal = await runs.journal(RUN.id)
    assert journal
    assert names(journal.tried) == ALL
    assert journal.turns == ()
    assert [record.valid for _, record in journal.records] == [False] * (len(ALL) + 1)


async def test_a_signature_that_is_refused_is_replaced_by_the_placeholder(runs: RunStore) -> None:
    spoilt = model(replace(OLD_CALL, signature="c3BvaWx0"), by=MODEL)
    prompt = append_turns(
        Prompt.of("Look.", tools=TOOLS), spoilt, user(ToolResult(name="look", id="old", value="green"))
    )
    async with GeminiSim(behaviour=Script(["Green."])) as sim, Gemini(MODEL, key="k", base_url=sim.url) as asked:
        answered = await ran_with(runs, asked, prompt)

    assert (answered.response.text, names(answered.tried)) == ("Green.", ("placeholder signatures",))
    assert [request.status for request in sim.requests] == [400, 200]


async def test_what_is_too_long_is_shortened_until_it_fits(runs: RunStore) -> None:
    talk = [turn for n in range(20) for turn in (user(f"{n} " + "word " * 50), model(f"said {n}", by="small"))]
    async with (
        GeminiSim(models=[Served(name=MODEL, input_limit=400)], behaviour=Script(["Fine."])) as sim,
        Gemini(MODEL, key="k", base_url=sim.url) as asked,
    ):
        answered = await ran_with(runs, asked, Prompt.of(*talk, "Well?"))

    assert names(answered.tried) == ("shorten", "shorten")
    assert [request.status for request in sim.requests] == [400, 400, 200]
    last = sim.requests[-1].body["contents"]
    assert [content["parts"][0]["text"][:5] for content in last][-3:] == ["19 wo", "said ", "Well?"]


@pytest.mark.parametrize("fault", [faults.Internal(), faults.Overloaded(), faults.Deadline()])
async def test_a_service_that_fails_for_a_while_is_asked_again(runs: RunStore, fault: Fault) -> None:
    slept = Slept()
    async with GeminiSim(behaviour=Script(["Here."])) as sim, Gemini(MODEL, key="k", base_url=sim.url) as asked:
        sim.fail(fault, times=2)
        sim.fail(faults.RateLimited(retry_after=3))

        answered = await ran_with(runs, asked, TALK, sleep=slept)

    assert (names(answered.tried), slept[-1], len(sim.requests)) == ((), 3.0, 4)


DOWN = [
    Overloaded("busy"),
    QuotaExhausted("used up"),
    KeyRefused("who?"),
    RequestRefused("no"),
]


@pytest.mark.parametrize("error", DOWN, ids=lambda error: type(error).__name__)
async def test_where_the_first_model_does_not_answer_the_next_does_for_the_rest_of_the_run(
    runs: RunStore, error: TertuliaError
) -> None:
    slept = Slept()
    first, second = Scripted(error, name="first"), Scripted([LOOK], "It is green.", name="second")

    answered = await ran_with(runs, first, TALK, models=[first, second], sleep=slept)

    journal = await runs.journal(RUN.id)
    assert journal
    assert answered.response.text == "It is green."
    assert {turn.model for turn in answered.turns if turn.role == "model"} == {"second"}
    assert (
        answered.tried
        == journal.tried
        == (FallbackStep(step=1, fallback="next model", why=str(error), model="second"),)
    )
    assert (slept, second.prompts[0]) == ([], TALK)


async def test_every_step_is_stored_with_the_model_that_was_asked() -> None:
    first, second = Scripted([LOOK], Overloaded("busy"), name="first"), Scripted([LOOK], "Green.", name="second")
    async with Store.open(":memory:") as store:
        await ran_with(store.runs, first, TALK, models=[first, second])
        sent, journal = await store.prompts.sent_by(RUN.id), await store.runs.journal(RUN.id)

    assert journal
    assert [one.model for one in sent] == ["first", "first", "second", "second"]
    assert [record.turn.model for _, record in journal.records] == ["first", "second", "second"]
    assert journal.run.model == "second"


async def test_a_run_resumed_with_other_models_has_a_step_of_its_own_for_the_model_that_answers() -> None:
    begun, prompt = replace(RUN, model="first"), replace(TALK, cached="a handle of the first")
    async with Store.open(":memory:") as store:
        await store.runs.begin(begun, prompt, at=NOON)
        journal = await store.runs.journal(RUN.id)
        assert journal
        await resumed(store.runs, journal, model=Scripted("Here.", name="second"), toolbox=toolbox(lambda _: None))
        sent = await store.prompts.sent_by(RUN.id)

    assert [(one.step, one.model, one.prompt.cached) for one in sent] == [
        (0, "first", "a handle of the first"),
        (1, "second", None),
    ]
    why = "the run was begun with first, and is resumed with second"
    assert sent[1].tried == FallbackStep(step=1, fallback="next model", why=why, model="second")


async def test_a_model_that_says_nothing_is_asked_again_before_the_next_one(runs: RunStore) -> None:
    first, second = Scripted([], [], name="first"), Scripted("Here.", name="second")

    answered = await ran_with(runs, first, TALK, models=[first, second])

    assert [(one.fallback, one.model) for one in answered.tried] == [("again", "first"), ("next model", "second")]


async def test_the_last_model_is_waited_for_and_has_all_fallbacks(runs: RunStore) -> None:
    slept = Slept()
    first, second = Scripted(Overloaded("busy"), name="first"), Scripted(Overloaded("busy"), [], [], "Here.", name="b")

    answered = await ran_with(runs, first, TALK, models=[first, second], sleep=slept)

    assert (slept, names(answered.tried)) == ([1.0], ("next model", "again", "regroup"))


async def test_where_no_model_answers_the_trouble_of_the_last_is_raised(runs: RunStore) -> None:
    first, second = Scripted(QuotaExhausted("one"), name="first"), Scripted(QuotaExhausted("two"), name="second")

    with pytest.raises(QuotaExhausted, match="two"):
        await ran_with(runs, first, TALK, models=[first, second])
