"""Facts as values: which are the same, which one supersedes, who may hear them, and which go first."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memory.known import a_fact, a_subject
from memory.visibility import may_hear
from people import ALICE, BOB, DIRECT, GROUP, NOON
from tertulia.errors import InvalidValue
from tertulia.memory.facts import (
    default_scope,
    fact_key,
    facts_digest,
    facts_to_drop,
    is_single_key,
    merge_again,
    merge_facts,
    subject_of,
)
from tertulia.memory.values import Fact, Subject, check_fact
from tertulia.memory.verify.comparison import frame, normalize
from tertulia.messages import Place

LATER = NOON + timedelta(days=1)
ELSEWHERE = Place(platform="telegram", id="-5", kind="group")
TOPIC = replace(GROUP, thread="7")
OTHER_DIRECT = replace(DIRECT, thread="2")
DISCORD = replace(GROUP, platform="discord")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("likes tea", "Likes  TEA."),
        ("likes tea", "likes the tea"),
        ("has a cat", "has cat!"),
        ("User likes tea", "likes tea"),
        ("Alice likes tea", "likes tea"),
        ("She likes tea", "he likes tea"),
        ("doesn't eat meat", "doesn’t eat meat"),
        ("does not eat meat", "doesn't eat meat"),
        ("Живе у Києві", "живе у києві."),
        ("Вона любить каву", "любить каву"),
        ("ﬁsh and chips", "fish and chips"),
        ("住在东京", "住在东京。"),
        ("🙂", " 🙂 "),
    ],
)
def test_trivial_rewording_is_the_same_fact(one: str, other: str) -> None:
    assert normalize(one, "Alice") == normalize(other, "Alice")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("likes tea", "likes coffee"),
        ("likes tea", "does not like tea"),
        ("is 30", "is 31"),
        ("lives in Kyiv", "works in Kyiv"),
        ("Bob likes tea", "likes tea"),
        ("🙂", "🙁"),
        ("the", "a"),
        ("knows C++", "knows C#"),
    ],
)
def test_other_words_are_another_fact(one: str, other: str) -> None:
    assert normalize(one, "Alice") != normalize(other, "Alice")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("likes tea", "does not like tea", True),
        ("likes tea", "doesn't like tea", True),
        ("likes tea", "no longer likes tea", True),
        ("has a cat", "has no cat", True),
        ("drinks coffee", "never drinks coffee", True),
        ("п'є каву", "не п'є каву", True),
        ("їсть м'ясо", "більше не їсть м'ясо", True),
        ("is 30 years old", "is 31 years old", True),
        ("has 2 cats", "has 3 cats", True),
        ("має 2 коти", "має 3 коти", True),
        ("visited Rome in 2019", "visited Rome in 2021", False),
        ("has a meeting on 5 May", "has a meeting on 9 May", False),
        ("likes tea", "likes coffee", False),
        ("is in class 5", "is in class 6", False),
    ],
)
def test_what_became_untrue_or_changed_its_count_has_the_same_frame(one: str, other: str, same: bool) -> None:
    assert (frame(normalize(one)) == frame(normalize(other))) is same


def test_the_same_fact_twice_is_one_with_both_sources() -> None:
    known = a_fact("likes tea", confidence=0.6)
    again = a_fact("Likes the tea!", sources=("m2", "m1"), confidence=0.9, learned_at=LATER)

    assert merge_facts([known], [again]) == [replace(known, sources=("m1", "m2"), confidence=0.9, learned_at=LATER)]
    assert merge_facts([again], [known]) == [replace(again, sources=("m2", "m1"))]


def test_a_fact_that_gets_a_key_from_its_repetition_supersedes_what_that_key_had() -> None:
    old = a_fact("lives in Kyiv", id="old", key="home")
    known = a_fact("moved to Lviv", id="known", learned_at=LATER)
    again = a_fact("moved to Lviv", id="again", key="home", learned_at=LATER)

    assert merge_facts([old, known], [again]) == [
        replace(old, held_until=LATER, superseded_by="known"),
        replace(known, key="home"),
    ]


def test_the_same_id_is_the_same_fact_and_changes_nothing() -> None:
    known = a_fact("likes tea")

    assert merge_facts([known], [replace(known, text="likes gin", learned_at=LATER)]) == [known]


@pytest.mark.parametrize(
    "other",
    [
        a_fact("likes tea", about=BOB),
        a_fact("likes tea", place=ELSEWHERE),
        a_fact("likes tea", place=TOPIC, id="topic"),
        a_fact("likes tea", place=DIRECT),
        a_fact("likes tea", place=DISCORD, id="discord"),
        a_fact("likes tea", scope="everywhere", id="everywhere"),
    ],
)
def test_the_same_words_for_other_ears_are_another_fact(other: Fact) -> None:
    known = a_fact("likes tea")

    assert merge_facts([known], [other]) == [known, other]


def test_a_newer_fact_of_the_same_key_supersedes_the_older_and_keeps_it() -> None:
    old, new = a_fact("lives in Kyiv", key="home"), a_fact("lives in Lviv", key="home", learned_at=LATER)

    assert merge_facts([old], [new]) == [replace(old, held_until=LATER, superseded_by=new.id), new]
    assert merge_facts([], [old, new]) == merge_facts([old], [new])


def test_of_each_kind_there_is_one() -> None:
    old, new = a_fact("loves tea", key="taste:tea"), a_fact("hates tea", key="taste:tea", learned_at=LATER)

    assert merge_facts([old], [new]) == [replace(old, held_until=LATER, superseded_by=new.id), new]
    assert [is_single_key(key) for key in ("name", "taste", "taste:", "favourite:colour", "pet:cat", "", ":")] == [
        True, False, False, True, False, False, False,
    ]  # fmt: skip


def test_what_is_heard_of_late_but_held_before_is_superseded_at_once() -> None:
    known = a_fact("lives in Lviv", key="home", held_from=LATER)
    late = a_fact("lives in Kyiv", key="home", held_from=NOON, learned_at=LATER + timedelta(days=9))

    assert merge_facts([known], [late]) == [known, replace(late, held_until=LATER, superseded_by=known.id)]


def test_what_others_say_of_a_person_never_ends_what_they_said_themselves() -> None:
    own, heard = (
        a_fact("lives in Lviv", key="home"),
        a_fact("lives in Rome", key="home", hearsay=True, learned_at=LATER),
    )
    kept = replace(heard, held_until=LATER, superseded_by=own.id)

    assert merge_facts([own], [heard]) == [own, kept]
    assert merge_facts([heard], [own]) == [kept, own]


def test_of_what_others_say_the_newest_holds_until_the_person_says_it() -> None:
    first, second = (
        a_fact(f"lives in {town}", key="home", hearsay=True, learned_at=NOON + timedelta(days=days))
        for days, town in enumerate(["Rome", "Oslo"])
    )
    own = a_fact("lives in Lviv", key="home")

    for order in ([first, second, own], [own, first, second], [first, own, second], [own, second, first]):
        assert {fact.id: fact.superseded_by for fact in merge_facts([], order)} == {
            first.id: second.id, second.id: own.id, own.id: None,
        }  # fmt: skip


def test_what_others_said_and_the_person_says_too_is_their_own() -> None:
    heard = a_fact("lives in Rome", hearsay=True, confidence=0.6, id="heard")
    own = a_fact("lives in Rome", sources=("m2",))

    assert merge_facts([heard], [own]) == [replace(own, id="heard", sources=("m1", "m2"))]
    assert merge_facts([own], [heard]) == [replace(own, sources=("m2", "m1"))]


def test_what_is_heard_of_late_stands_in_its_time() -> None:
    towns = [
        a_fact(f"lives in {town}", key="home", held_from=NOON + timedelta(days=days))
        for days, town in enumerate(["Kyiv", "Lviv", "Odesa"])
    ]
    first, second, third = towns

    for order in ([first, third, second], [third, second, first], towns):
        assert {fact.id: fact.superseded_by for fact in merge_facts([], order)} == {
            first.id: second.id, second.id: third.id, third.id: None,
        }  # fmt: skip


def test_what_comes_true_again_is_a_fact_of_its_own() -> None:
    first, second = a_fact("lives in Kyiv", key="home"), a_fact("lives in Lviv", key="home", learned_at=LATER)
    third = a_fact("lives in Kyiv", key="home", learned_at=LATER + timedelta(days=1), id="3", sources=("m3",))

    facts = merge_facts([first, second], [])
    assert [fact.superseded_by for fact in merge_facts(merge_facts([first], [second]), [third])] == [
        second.id,
        "3",
        None,
    ]
    assert facts == [first, second]


def test_an_old_message_read_once_more_does_not_make_its_fact_true_again() -> None:
    facts = merge_facts([a_fact("lives in Kyiv", key="home")], [a_fact("lives in Lviv", key="home", sources=("m2",))])

    again = a_fact("lives in Kyiv", key="home", id="again", learned_at=LATER)

    assert merge_facts(facts, [again]) == [replace(facts[0], learned_at=LATER), facts[1]]


def test_what_became_untrue_is_superseded_without_a_key() -> None:
    old, new = a_fact("likes tea"), a_fact("no longer likes tea", learned_at=LATER)

    assert merge_facts([old], [new]) == [replace(old, held_until=LATER, superseded_by=new.id), new]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (a_fact("Lives in Lviv.", key="home"), a_fact("No longer lives in Lviv.", key="past:home")),
        (a_fact("Moved to Lviv.", key="home"), a_fact("No longer lives in Lviv.", key="past:home")),
        (a_fact("Works at Google as a designer.", key="work"), a_fact("No longer works at Google.", key="past:work")),
        (a_fact("Переїхала до Львова.", key="home"), a_fact("Більше не живе у Львові.", key="past:home")),
        (a_fact("No longer lives in Lviv.", key="past:home"), a_fact("Moved to Lviv.", key="home")),
        (a_fact("Is vegan.", key="diet"), a_fact("Is no longer vegan.", key="past:diet")),
        (a_fact("Loves coffee.", key="taste"), a_fact("Hates coffee now.", key="taste")),
        (a_fact("likes coffee"), a_fact("can't stand coffee")),
        (a_fact("Любить каву."), a_fact("Ненавидить каву.")),
        (a_fact("Подобається кава."), a_fact("Не любить каву.")),
        (a_fact("Is Polish.", key="nationality"), a_fact("Is German.", key="nationality")),
        (a_fact("Is married.", key="family:marriage"), a_fact("Is divorced.", key="family:marriage")),
    ],
)
def test_what_came_to_an_end_or_is_liked_no_more_no_longer_holds(old: Fact, new: Fact) -> None:
    newer = replace(new, learned_at=LATER)

    assert merge_facts([old], [newer]) == [replace(old, held_until=LATER, superseded_by=new.id), newer]


@pytest.mark.parametrize(
    ("kind", "text", "key"),
    [
        ("home", "Lives in Lviv.", "home"),
        ("home", "Lived in Lviv until 2019.", "past:home"),
        ("work", "No longer works at a bank.", "past:work"),
        ("work", "Більше не працює в банку.", "past:work"),
        ("origin", "Was born in Lviv.", "origin"),
        ("taste", "Does not like tea.", "taste"),
    ],
)
def test_what_no_longer_holds_has_a_key_of_its_own(kind: str, text: str, key: str) -> None:
    assert fact_key(kind, text) == key


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (a_fact("Lives in Kyiv.", key="home"), a_fact("No longer lives in Lviv.", key="past:home")),
        (a_fact("Is from Lviv.", key="origin"), a_fact("No longer lives in Lviv.", key="past:home")),
        (a_fact("Lives in New York.", key="home"), a_fact("No longer lives in New Orleans.", key="past:home")),
        (a_fact("plays chess", key="plays"), a_fact("plays go", key="plays")),
        (a_fact("has a cat Tom", key="pet:cat"), a_fact("has a cat Jerry", key="pet:cat")),
        (a_fact("likes tea", key="taste:tea"), a_fact("loves coffee", key="taste:coffee")),
        (a_fact("lives in Kyiv", key="home"), a_fact("works at a bank", key="work")),
        (a_fact("lives in Kyiv", key="home"), a_fact("lives in Lviv", key="home", about=BOB)),
        (a_fact("lives in Kyiv", key="home"), a_fact("lives in Lviv", key="home", place=ELSEWHERE)),
        (a_fact("lives in Kyiv", key="home"), a_fact("lives in Lviv", key="home", place=DIRECT)),
        (a_fact("is Al", key=""), a_fact("is Bo", key="")),
    ],
)
def test_what_can_be_true_beside_the_other_or_is_for_other_ears_supersedes_nothing(old: Fact, new: Fact) -> None:
    assert merge_facts([old], [new]) == [old, new]


def test_what_is_for_the_same_ears_supersedes_wherever_it_was_said() -> None:
    old = a_fact("lives in Kyiv", key="home", place=DIRECT)
    new = a_fact("lives in Lviv", key="home", place=OTHER_DIRECT, id="new", learned_at=LATER)

    assert merge_facts([old], [new])[0].superseded_by == "new"


def facts() -> st.SearchStrategy[Fact]:
    def made(number: int, text: str, key: str, about: Any, where: Place, hours: int, hearsay: bool) -> Fact:
        at, sources = NOON + timedelta(hours=hours), (f"m{number % 7}",)
        return a_fact(
            text, id=str(number), key=key, about=about, place=where, learned_at=at, sources=sources, hearsay=hearsay
        )

    words = st.sampled_from(
        ["likes tea", "Likes tea.", "does not like tea", "lives in Kyiv", "lives in Lviv", "is 3", "is 4"]
    )
    keys = st.sampled_from(["", "home", "likes"])
    people = st.sampled_from([ALICE, BOB])
    places = st.sampled_from([GROUP, DIRECT, ELSEWHERE])
    return st.builds(made, st.integers(0, 40), words, keys, people, places, st.integers(0, 5), st.booleans())


@given(st.lists(facts(), max_size=12), st.lists(facts(), max_size=6))
def test_merging_loses_nothing_invents_nothing_and_is_done_after_once(first: list[Fact], second: list[Fact]) -> None:
    known = merge_facts([], first)
    after = merge_facts(known, second)

    ids = [fact.id for fact in after]
    assert len(set(ids)) == len(ids)
    assert set(ids) <= {fact.id for fact in (*first, *second)}
    assert {fact.id for fact in known} <= set(ids)
    assert all(fact.superseded_by is None or fact.superseded_by in ids for fact in after)
    assert all((fact.superseded_by is None) == (fact.held_until is None) for fact in after)
    said = {(fact.subject, source) for fact in (*first, *second) for source in fact.sources}
    assert {(fact.subject, source) for fact in after for source in fact.sources} <= said
    assert [fact.id for fact in merge_facts(after, known)] == ids


@given(st.lists(facts(), max_size=12))
def test_nobody_ends_by_hearsay_what_a_person_said(learned: list[Fact]) -> None:
    known = {fact.id: fact for fact in merge_facts([], learned)}

    assert not [
        fact for fact in known.values() if fact.superseded_by and not fact.hearsay and known[fact.superseded_by].hearsay
    ]


@given(st.lists(facts(), max_size=12))
def test_of_one_key_one_fact_holds_for_the_same_ears(learned: list[Fact]) -> None:
    holding = [fact for fact in merge_facts([], learned) if fact.superseded_by is None and is_single_key(fact.key)]
    ears = [(fact.subject, fact.key, fact.scope, fact.place if fact.scope == "chat" else None) for fact in holding]

    assert len(ears) == len(set(ears))


HER, HIM = a_subject(ALICE), a_subject(BOB)


@pytest.mark.parametrize(
    ("fact", "place", "listener", "heard"),
    [
        (a_fact(), GROUP, HER, True),
        (a_fact(), replace(GROUP, title="Renamed"), HER, True),
        (a_fact(), GROUP, HIM, True),  # he was there
        (a_fact(), TOPIC, HER, False),
        (a_fact(), ELSEWHERE, HER, False),
        (a_fact(), DIRECT, HER, True),  # she said it
        (a_fact(), OTHER_DIRECT, HER, True),
        (a_fact(), DIRECT, HIM, False),
        (a_fact(), replace(DIRECT, platform="discord"), Subject(platform="discord", id=ALICE.id), False),
        (a_fact(), DISCORD, HER, False),
        (a_fact(place=DIRECT), DIRECT, HER, True),
        (a_fact(place=DIRECT), OTHER_DIRECT, HER, True),
        (a_fact(place=DIRECT), GROUP, HER, False),
        (a_fact(place=DIRECT), DIRECT, HIM, False),
        (a_fact(place=DIRECT), replace(DIRECT, id="8"), HIM, False),
        (a_fact(place=DIRECT), replace(DIRECT, platform="discord"), HER, False),
        (a_fact(place=DIRECT), replace(DIRECT, platform="discord"), Subject(platform="discord", id=ALICE.id), False),
        (a_fact(place=DIRECT), replace(DIRECT, kind="group"), HER, False),
        (a_fact(place=DIRECT, scope="chat"), DIRECT, HER, True),
        (a_fact(place=DIRECT, scope="chat"), OTHER_DIRECT, HER, False),
        (a_fact(place=DIRECT, scope="chat"), replace(DIRECT, kind="group"), HER, False),
        (a_fact(), replace(GROUP, kind="channel"), HER, True),
        (a_fact(), replace(GROUP, kind="direct"), HER, True),
        (a_fact(scope="direct"), DIRECT, HER, True),
        (a_fact(scope="direct"), GROUP, HER, False),
        (a_fact(scope="everywhere"), ELSEWHERE, HER, True),
        (a_fact(scope="everywhere"), DIRECT, HER, True),
        (a_fact(scope="everywhere"), GROUP, HIM, True),
        (a_fact(scope="everywhere"), ELSEWHERE, HIM, False),
        (a_fact(scope="everywhere"), DISCORD, HER, False),
        (a_fact(place=DIRECT, scope="everywhere"), GROUP, HER, False),
    ],
)
def test_who_may_hear_a_fact(fact: Fact, place: Place, listener: Subject, heard: bool) -> None:
    assert may_hear(fact, place, listener) is heard


def test_what_others_said_of_somebody_in_a_group_stays_there() -> None:
    assert not may_hear(a_fact(), DIRECT, HER, own=False)
    assert may_hear(a_fact(), GROUP, HER, own=False)
    assert may_hear(a_fact(scope="direct"), DIRECT, HER, own=False)


def test_what_is_said_in_private_is_for_private_ears() -> None:
    assert [default_scope(place) for place in (DIRECT, GROUP, replace(GROUP, kind="channel"))] == [
        "direct",
        "chat",
        "chat",
    ]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"text": " \n"}, "a fact needs words"),
        ({"text": "x" * 4001}, "a fact has at most 4,000 characters"),
        ({"sources": ()}, "a fact needs a message that says so"),
        ({"subject": a_subject(platform="discord")}, "a fact is about somebody on the platform where it was said"),
        ({"place": DIRECT, "scope": "everywhere"}, "what was said in a direct chat is not for everywhere"),
        ({"confidence": 1.5}, "a confidence is from 0 to 1, not 1.5"),
        ({"confidence": float("nan")}, "a confidence is from 0 to 1, not nan"),
        ({"learned_at": NOON.replace(tzinfo=None)}, "the moments of a fact need a time zone"),
        ({"held_until": NOON.replace(tzinfo=None)}, "the moments of a fact need a time zone"),
    ],
)
def test_what_can_be_no_fact_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        check_fact(a_fact(**changes))

    assert str(refused.value) == why


def test_what_no_longer_holds_goes_first_then_the_doubtful_then_the_old() -> None:
    past = a_fact("past", held_until=NOON, superseded_by="x", confidence=1.0, learned_at=LATER)
    older = a_fact("older past", held_until=NOON - timedelta(days=1), superseded_by="x")
    doubtful = a_fact("doubtful", confidence=0.3, learned_at=LATER)
    old, new = a_fact("old"), a_fact("new", learned_at=LATER)
    known = [past, new, doubtful, older, old]

    assert [[fact.text for fact in facts_to_drop(known, limit)] for limit in (5, 4, 3, 2, 1, 0, -1)] == [
        [],
        ["older past"],
        ["past", "older past"],
        ["doubtful", "past", "older past"],
        ["old", "doubtful", "past", "older past"],
        ["new", "old", "doubtful", "past", "older past"],
        ["new", "old", "doubtful", "past", "older past"],
    ]


def test_a_digest_changes_with_any_fact_and_not_with_their_order() -> None:
    one, other = a_fact("one"), a_fact("half \ud83d")

    assert facts_digest([one, other]) == facts_digest([other, one])
    assert len({facts_digest(some) for some in ([], [one], [one, other], [replace(one, text="two")])}) == 4


def test_a_subject_is_an_author_on_a_platform() -> None:
    assert subject_of(ALICE, GROUP) == Subject(platform="telegram", id="u123", name="Alice")


def test_what_a_removed_fact_had_superseded_is_merged_again() -> None:
    kyiv = a_fact("lives in Kyiv", key="home")
    lviv = a_fact("lives in Lviv", key="home", learned_at=LATER)
    old, new = merge_facts([], [kyiv, lviv])

    assert merge_again([old], [new.id], []) == [kyiv]
    assert merge_again([old, new], [], [new.id]) == [old, new]


def test_a_freed_fact_that_another_repeats_is_removed() -> None:
    freed = replace(a_fact("likes tea", id="freed"), superseded_by="gone", held_until=LATER)
    same = a_fact("likes tea", id="same", sources=("m2",))

    assert merge_again([freed, same], ["gone"], []) == [replace(same, sources=("m2", "m1"))]
