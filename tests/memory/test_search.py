"""What was said is found in every language, by who and when, and in its own place alone."""

import asyncio
import random
from collections.abc import Sequence
from datetime import timedelta

import pytest
from msgspec.structs import replace

from memory.searching import FILL, Letters, a_search, a_store, found, hear, index, talk
from people import ALICE, BOB, DIRECT, GROUP, NOON, a_message, a_photo
from sizes import size
from tertulia.engine.memory.recall import LIKELY
from tertulia.errors import Overloaded
from tertulia.memory import search
from tertulia.memory.retrieval.features import Floats
from tertulia.messages import Author, Place
from tertulia.store import Store

EVE = Author(id="u666", name="Eve")
THREAD = replace(GROUP, thread="5")
ELSEWHERE = Place(platform="telegram", id="-5", kind="group")


@pytest.mark.parametrize(
    ("message", "question"),
    [
        ("Учора купила нову книжку про вишивання", "які книжки про вишиванку"),
        ("Бабуся живе у старому будинку біля річки", "старі будинки річкою"),
        ("Подарили мне красивую собаку", "какой собаке рады"),
        ("Мы ездили на дачу к друзьям", "поездка к другу на даче"),
        ("Kupiłam wczoraj książkę o gotowaniu", "książki o gotowaniach"),
        ("Ich habe ein neues Fahrrad gekauft", "welche Fahrräder"),
        ("我昨天买了一本书", "书"),
        ("我昨天在北京大学看电影", "北京的电影"),
        ("今日は東京で寿司を食べました", "寿司はどこ"),
        ("I bought two paintings at the fair", "When did you buy the painting?"),
        ("купив новий MacBook у магазині", "macbook магазин"),
        ("завтра meeting по проекту 東京", "東京 meetings"),
    ],
)
async def test_a_message_is_found_in_its_language(message: str, question: str) -> None:
    async with a_store() as store:
        await hear(store, *talk(*FILL, message, *FILL))
        await index(store)

        assert (await found(store, question))[0] == str(len(FILL))


@pytest.mark.parametrize("count", [0, 1, 5, 20, 60])
@pytest.mark.parametrize(
    ("message", "question"),
    [
        ("I bought a kayak in Odesa", "what did Alice buy in Odesa?"),
        ("I bought a kayak in Odesa", "kayak"),
        ("The plumber is coming on Thursday", "when does the plumber come?"),
        ("Бабуся живе у старому будинку біля річки", "старі будинки річкою"),
        ("Подарили мне красивую собаку", "кому подарили собаку?"),
        ("Mein Bruder arbeitet im Krankenhaus", "wo arbeiten deine Brüder?"),
        ("我昨天在上海买了一台新相机", "谁在上海买了相机？"),
    ],
)
async def test_what_clearly_answers_is_probable_in_a_place_of_any_size(message: str, question: str, count: int) -> None:
    async with a_store() as store:
        await hear(store, *talk(message, *(f"{text} {at}" for at in range(count) for text in FILL)))
        await index(store)

        [first, *others] = await a_search(store).find(question, place=GROUP, author=ALICE)

        assert (first.message.id, first.score >= LIKELY) == ("0", True)
        assert [one for one in others if one.score >= LIKELY] == []


@pytest.mark.parametrize("question", ["", "   ", "\n", "🙂", "?!", "\x00"])
async def test_nothing_is_found_where_nothing_is_asked(question: str) -> None:
    async with a_store() as store:
        await hear(store, *talk(*FILL, "🙂"))
        await index(store)

        assert await found(store, question) == []


async def test_what_nothing_speaks_for_is_not_found() -> None:
    async with a_store() as store:
        await hear(store, *talk(*FILL, *FILL, "the xylophone", *FILL, *FILL))
        await index(store)

        assert await found(store, "quantum chromodynamics") == []
        assert set(await found(store, "xylophone")) == {str(at) for at in range(12, 17)}


async def test_a_result_says_why_and_has_its_neighbours() -> None:
    async with a_store() as store:
        said = talk(*FILL, "I bought two paintings", "how nice")
        await hear(store, *said)
        await index(store)

        first = (await a_search(store).find("when did Bob buy a painting?", place=GROUP, author=ALICE, limit=1))[0]

        assert first.message == said[7]
        assert first.why == "it says buy, painting; its author is named"
        assert (first.before, first.after) == ((said[6],), (said[8],))
        assert (*first.before, *first.after) == (said[6], said[8])


async def test_a_time_in_the_question_counts() -> None:
    async with a_store() as store:
        days = [
            replace(one, sent_at=NOON - timedelta(days=30 - at)) for at, one in enumerate(talk(*["we ate soup"] * 9))
        ]
        await hear(store, *days)
        await index(store)
        day = f"{days[4].sent_at:%d.%m.%Y}"

        hits = await a_search(store).find(f"who ate soup on {day}", place=GROUP, author=ALICE, limit=1)

        assert (hits[0].message.id, hits[0].why) == ("4", "it says ate, soup; the time fits")


async def test_what_a_picture_shows_is_found() -> None:
    async with a_store() as store:
        photo = a_message("", id="7", parts=(a_photo(rendered_text="a zebra in the snow"),))
        bare = a_message("", id="8", parts=(a_photo(unique_id="p2"),))
        await hear(store, *talk(*FILL), photo, bare)
        await index(store)
        await store.descriptions.describe("p2", "a red tractor", by="m", at=NOON)
        await index(store)

        assert (await found(store, "zebras"))[0] == "7"
        assert (await found(store, "tractor"))[0] == "8"


async def test_only_the_place_and_thread_that_is_asked_about_answers() -> None:
    async with a_store() as store:
        await hear(store, *talk("nothing of it here"), *talk("the xylophone", place=THREAD, start=1))
        await hear(store, *talk("xylophone lessons", place=ELSEWHERE, start=2))
        await index(store)

        assert await found(store, "xylophone") == []
        assert await found(store, "xylophone", place=THREAD) == ["1"]
        assert await found(store, "xylophone", place=replace(GROUP, id="no")) == []


async def test_a_direct_chat_is_found_by_those_who_talk_there() -> None:
    async with a_store() as store:
        await hear(store, *talk("my secret is a xylophone", place=DIRECT, authors=[ALICE]))
        await index(store)

        assert await found(store, "xylophone", place=DIRECT) == ["0"]
        assert await found(store, "xylophone", place=DIRECT, author=EVE) == []
        assert await found(store, "xylophone", place=replace(DIRECT, kind="group"), author=EVE) == []


async def test_nothing_of_who_is_blocked_is_found_until_they_are_not() -> None:
    async with a_store() as store:
        await hear(store, *talk("a xylophone", "xylophone lessons", "xylophones"))
        await index(store)
        search = a_search(store)

        async def ids(author: Author = ALICE) -> set[str]:
            hits = await search.find("xylophone", place=GROUP, author=author, limit=9)
            return {one.id for hit in hits for one in (hit.message, *hit.before, *hit.after)}

        assert await ids() == {"0", "1", "2"}
        await store.place_settings.block(platform="telegram", author_id=BOB.id, at=NOON)
        assert (await ids(), await ids(BOB)) == ({"0", "2"}, set())
        await store.place_settings.unblock(platform="telegram", author_id=BOB.id)
        assert await ids() == {"0", "1", "2"}


@pytest.mark.parametrize("question", ["?", "what is it", "Who?", "…", "年", "' \" % _ *", "a" * 5000, "\ud800", "x\0y"])
async def test_any_question_may_be_asked(question: str) -> None:
    async with a_store() as store:
        await hear(store, *talk(*FILL))
        await index(store)

        assert await found(store, f"weather {question}") == await found(store, "weather") != []


async def test_a_long_letter_may_be_asked() -> None:
    async with a_store() as store:
        await hear(store, *talk(*FILL, "x " * 40_000 + "end"))
        await index(store)

        assert "0" in await found(store, "weather " + " ".join(f"word{at}" for at in range(2000)))


async def test_a_score_is_a_probability_and_the_best_come_first() -> None:
    rng = random.Random(1)  # noqa: S311
    words = "sea sun dog cat red blue run eat big old".split()
    async with a_store() as store:
        await hear(store, *talk(*[" ".join(rng.choices(words, k=6)) for _ in range(150)]))
        await index(store)

        hits = await a_search(store).find("red dog", place=GROUP, author=ALICE, limit=50)

        scores = [one.score for one in hits]
        assert len(scores) == 50
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)


async def test_what_is_new_is_read_behind_what_is_known() -> None:
    letters = Letters()
    async with a_store() as store:
        kept = a_search(store, embedders=lambda _: letters)
        for start in range(0, 12, 3):
            await hear(store, *talk(f"dog number {start}", "a cat", "the red sea", start=start))
            await index(store, lambda _: letters)
            fresh = a_search(store, embedders=lambda _: letters)
            asked = {"place": GROUP, "author": ALICE, "limit": 20}

            assert await kept.find("red dog", **asked) == await fresh.find("red dog", **asked)  # type: ignore[arg-type]


class Broken(Letters):
    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> Floats:
        if asking:
            raise Overloaded("later")
        return await super().embed(texts)


class Silent(Letters):
    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> Floats:
        if asking:
            await asyncio.Event().wait()
        return await super().embed(texts)


@pytest.mark.parametrize(("embedder", "why"), [(Broken(), "later"), (Silent(), "no vector within 0.01 s")])
async def test_who_is_not_there_costs_only_the_meaning(
    embedder: Letters, why: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(search, "EMBED_TIMEOUT", 0.01)
    async with a_store() as store:
        await hear(store, *talk(*FILL))
        await index(store, lambda _: embedder)

        kept = a_search(store, embedders=lambda _: embedder)
        for _ in range(3):  # it is not asked, nor waited for, each time
            hits = await kept.find("weather", place=GROUP, author=ALICE)
            assert [hit.message.id for hit in hits] == await found(store, "weather")
        assert [record.getMessage() for record in caplog.records] == [f"searched by words alone: {why}"]


async def isolated(store: Store, probes: int) -> None:
    """Words of one place never come from another, whoever asks; but one's own, of groups, in one's direct chat."""
    rng = random.Random(4)  # noqa: S311
    people = [Author(id=f"u{at}", name=f"Person{at}") for at in range(8)]
    places = [
        Place(platform="telegram", id=f"u{at}" if at < 4 else f"-{at}", kind="direct" if at < 4 else "group")
        for at in range(8)
    ]
    for at, place in enumerate(places):
        authors = [people[at]] if at < 4 else rng.sample(people, 3)
        await hear(store, *talk(*[f"secret{at} word{n} shared sea" for n in range(6)], place=place, authors=authors))
    await index(store)
    search = a_search(store)
    for _ in range(probes):
        where, who = rng.randrange(8), rng.randrange(8)
        query = f"secret{rng.randrange(8)} shared word{rng.randrange(6)}"
        hits = await search.find(query, place=places[where], author=people[who], limit=10)
        shown = {one.place for hit in hits if not hit.in_group for one in (hit.message, *hit.before, *hit.after)}
        assert shown <= ({places[where]} if where >= 4 or who == where else set())
        elsewhere = [hit for hit in hits if hit.in_group]
        assert not elsewhere or who == where < 4
        assert {hit.message.author.id for hit in elsewhere} <= {people[who].id}
        assert not [hit for hit in elsewhere if hit.message.place.kind == "direct" or hit.before or hit.after]


async def test_no_probe_gets_through() -> None:
    async with a_store() as store:
        await isolated(store, size(1_000, full=10_000))
