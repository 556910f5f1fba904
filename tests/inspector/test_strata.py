"""Strata: the requests of a day with what repeats, what broke and why, and what they cost; the difference of two."""

from datetime import date, timedelta

import pytest

from engine.engines import GROUP
from inspector.evening import NOW, an_evening
from store.builders import PROMPT, a_run
from tertulia.errors import InvalidValue
from tertulia.inspector import runs
from tertulia.inspector.shown import MASK
from tertulia.inspector.strata import difference, strata
from tertulia.models.calls import PromptSize
from tertulia.prompt.ledger import CUT
from tertulia.store import Store
from tertulia.turns import Layer, Prompt, ToolSpec, user


async def test_the_requests_of_a_day_are_strips() -> None:
    async with an_evening() as store:
        found = await strata(store, GROUP, now=NOW)
        rows = await runs.runs(store)
        other = await strata(store, GROUP, date(2025, 1, 14), now=NOW)

    assert (found.day, found.days) == (NOW.date(), (NOW.date(),))
    assert [(one.message and one.message.text, one.step, one.after, one.status) for one in found.strips] == [
        ("Gryag, hello!", 0, (), "answered"),
        ("Gryag, is 3A free?", 0, (), "answered"),
        ("Gryag, is 3A free?", 1, ("look",), "answered"),
        ("Gryag, and 3B?", 0, (), "failed"),
    ]
    assert found.strips[2].layers[-1] == "run"
    assert found.spent.money == pytest.approx(sum(one.spent.money for one in rows))
    assert found.spent.without_cache >= found.spent.money > 0
    assert (other.strips, other.breaks) == ((), 0)


async def test_a_prefix_that_breaks_is_named(store: Store) -> None:
    def prompt(rules: str, text: str) -> Prompt:
        return Prompt(layers=(Layer(name="static", instruction=rules), Layer(name="trigger", turns=(user(text),))))

    for number, asked in enumerate((prompt("Be kind.", "a"), prompt("Be kind.", "b"), prompt("Be brief.", "c"))):
        run = a_run(id=f"r{number}", target=str(number), taken=(), place=GROUP, began_at=NOW)
        await store.runs.begin(run, asked, at=NOW + timedelta(minutes=number))

    found = await strata(store, GROUP, now=NOW)

    assert [(one.broke, one.size.broken_by, one.size.cause, one.status) for one in found.strips] == [
        (False, None, "nothing to compare with: the first request, or the first since a start", "under way"),
        (False, "trigger", "another message is answered", "under way"),
        (True, "static", "its instruction changed", "under way"),
    ]
    assert found.breaks == 1


async def test_the_history_of_the_static_layer_is_a_layer_of_its_own(store: Store) -> None:
    for number, said in enumerate((("one", "two"), ("one", "two", "three"), ("three",))):
        static = Layer(name="static", instruction="Be kind.", turns=(user(*said),))
        asked = Prompt(layers=(static, Layer(name="trigger", turns=(user(str(number)),))))
        run = a_run(id=f"r{number}", target=str(number), taken=(), place=GROUP, began_at=NOW)
        await store.runs.begin(run, asked, at=NOW + timedelta(minutes=number))

    found = await strata(store, GROUP, now=NOW)
    rows = await runs.runs(store)
    compared = await difference(store, "r1.0", "r2.0")

    assert [(one.broke, one.size.broken_by) for one in found.strips] == [
        (False, None),
        (False, "trigger"),
        (True, "history"),
    ]
    assert found.strips[2].size.cause == CUT
    assert {*(one.layers for one in found.strips), *(one.layers for one in rows)} == {("static", "history", "trigger")}
    assert sum(found.strips[0].size.layers) == sum(rows[2].size.layers) == found.strips[0].size.total
    assert [(one.name, one.before, one.after) for one in compared.layers] == [
        ("static", "", ""),
        ("history", "user: one\ntwo\nthree", "user: three"),
        ("trigger", "user: 1", "user: 2"),
    ]


async def test_two_requests_are_compared_layer_by_layer(store: Store) -> None:
    mark = await store.place_settings.delimiter(GROUP)
    layers = (Layer(name="static", instruction=f"Be kind. {mark}"), Layer(name="trigger", turns=(user("hi"),)))
    tool = ToolSpec(name="look", description="Look at a seat.")
    run = a_run(place=GROUP)
    await store.runs.begin(run, Prompt(layers=layers, tools=(tool,)), at=NOW)
    changed = (Layer(name="static", instruction=f"Be brief. {mark}"), layers[1], Layer(name="run", turns=(user("x"),)))
    await store.runs.ask(run, 1, Prompt(layers=changed, tools=(tool,)), at=NOW)

    found = await difference(store, "r1.0", "r1.1")

    assert [(one.name, one.before, one.after) for one in found.layers] == [
        ("tools", "", ""),
        ("static", f"Be kind. {MASK}", f"Be brief. {MASK}"),
        ("trigger", "", ""),
        ("run", "", "user: x"),
    ]
    assert (found.a.step, found.b.step, found.b.size != PromptSize()) == (0, 1, True)
    assert found.layers[3].tokens == (0, found.b.size.layers[2])


async def test_what_names_no_request_is_refused(store: Store) -> None:
    await store.runs.begin(a_run(), PROMPT, at=NOW)

    for named, why in (("r1", "names no request"), ("r1.x", "names no request"), ("r1.7", "has no step 7")):
        with pytest.raises(InvalidValue, match=why):
            await difference(store, named, "r1.0")
