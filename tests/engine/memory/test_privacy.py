"""What is remembered is told only where it was said, and to whom it was said: a property of whole prompts."""

import json
import random
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import Struct
from msgspec.structs import replace

from engine.engines import engine_with
from memory.known import a_fact, a_subject
from memory.searching import Letters
from people import ALICE, BOB, DELIMITER, DIRECT, GROUP, GRYAG, NOON, PERSONA, a_message, a_quote
from sizes import EXAMPLES, size
from store.builders import add_own, files_hold
from tertulia.context import sources
from tertulia.context.gather import ContextOptions, SourceInputs, gather
from tertulia.context.values import Context
from tertulia.engine.background import RealClock
from tertulia.engine.log_views import LogSlice, VisibleLog
from tertulia.engine.memory import Memory
from tertulia.engine.memory.indexer import Indexer
from tertulia.engine.memory.learner import EpisodeWriter, Learner
from tertulia.engine.memory.recall import KnownFacts, MessageRecall
from tertulia.engine.prompt_builder import build_prompt
from tertulia.memory.embeddings import Embedder
from tertulia.memory.values import Summary
from tertulia.messages import Author, Message, Place, PlaceKey, Quote
from tertulia.models.base import Model, Response
from tertulia.models.scripted import Scripted
from tertulia.profiles import PROFILES, profile_of
from tertulia.store import Store
from tertulia.turns import Prompt

Kind = Literal["direct", "group", "channel"]

PROBES = size(400, full=10_000)  # prompts of a world
TARGETS = size(6, full=60)  # questions about one person
WORLDS = EXAMPLES // 10_000  # besides the first
SOURCES = {"background", "relevant", "episodic", "past"}
KINDS = {name: "levels" if name in ("native", "block") else "window" for name in PROFILES}
CONFIGS = {"levels": ContextOptions(history_size=12), "plain": ContextOptions(history_size=12, levels=False)}
LETTERS = Letters()
TURNS: tuple[tuple[Kind, ...], ...] = (("direct", "group"), ("direct", "channel"), ("group", "direct"))
CHANGES = ("edited", "edited", "deleted", "deleted", "blocked", "heard again", "read")

SECRET = re.compile(r"z[a-z]q[a-z][a-z][a-z]v[io]", re.IGNORECASE)
STATED = (
    "I live in {0}.",
    "My name is {0}.",
    "I work at {0}.",
    "I love {0} and the harbour.",
    "My favourite colour is {0}, like the kayak from {1}.",
    "I moved from {1} to {0} with my old kayak last winter, and the harbour there is full of storks.",
    "I'm from {0}. My brother hides the blue key of the cellar at {1}!",
    "Я живу в місті {0}.",
    "Мене звати {0}, а собаку звуть {1}.",
)
SMALL_TALK = (
    "What about the storks in the harbour?",
    "The kayak needs new paint before winter.",
    "Anyway, let's talk about the cellar and its key.",
    "The train was late again, and the soup was cold.",
    "Хто бачив ключ від підвалу?",
    "By the way, the market opens on Monday.",
)
ASKED = (
    "Where do I live, and what is my name?",
    "Where does {name} live? What does {name} work as, and at which company?",
    "Who hides the blue key of the cellar, and where?",
    "What did {name} say about the kayak, the harbour and the storks last winter?",
    "Tell me everything you remember about me, {name} and everybody else.",
    "Де живе {name}? Як звати собаку?",
    "Do you know {secrets}? What was said about {secrets}, and by whom?",
    "{secrets}",
)


class Said(Struct, frozen=True):
    """Where a secret was told, and by whom."""

    place: Place
    author: Author


class World(Struct, frozen=True):
    """Where people talk, what they tell there, and what has become of both."""

    places: dict[Place, list[Author]]
    secrets: dict[str, Said]
    messages: list[Message]
    withdrawn: set[str] = set()  # secrets in messages that were edited or deleted
    blocked: set[tuple[str, str]] = set()  # platforms and ids

    @property
    def newest(self) -> dict[PlaceKey, Place]:
        """What each place has become last."""
        return {place.key: place for place in self.places}

    @property
    def open(self) -> list[tuple[Place, Author]]:
        """Where somebody can still say something, and who."""
        talking = [(place, author) for place in self.newest.values() for author in self.places[place]]
        return [(place, author) for place, author in talking if (place.platform, author.id) not in self.blocked]

    def may_tell(self, secret: str, target: Message) -> bool:
        """What was said here, and in one's own direct chats what one said anywhere; and still holds."""
        said = self.secrets[secret]
        if secret in self.withdrawn or (said.place.platform, said.author.id) in self.blocked:
            return False
        if said.place == target.place:
            return True
        is_own_chat = target.place.kind == "direct" and said.place.platform == target.place.platform
        return is_own_chat and said.author.id == target.author.id


def a_world(seed: int) -> World:
    """People with the same ids on two platforms, who tell something else of themselves wherever they talk.

    In direct chats they go by a name that is a secret too. Some of these become groups, and one group a direct chat.
    """
    chance = random.Random(seed)  # noqa: S311 (nothing secret)
    names = ("Alice", "Bob", "Olena", "Alice", "Ivan")
    people = [Author(id=str(7 + at), name=name, username=f"user_{at}") for at, name in enumerate(names)]
    places: dict[Place, list[Author]] = {}
    for platform in ("telegram", "discord"):
        for at, person in enumerate(people):
            direct = Place(platform=platform, id=person.id if platform == "telegram" else f"dm{at}", kind="direct")
            places[direct] = [person]
            if at < 2:
                places[replace(direct, thread="1")] = [person]
        for group, thread in product(("-1", "-2"), (None, "1")):
            members = chance.sample(people, 3)
            places[Place(platform=platform, id=group, kind="group", thread=thread, title="Friends")] = members
        for at, kinds in enumerate(TURNS):
            for kind in kinds:
                place = Place(platform=platform, id=f"turning {at}", kind=kind, thread="1" if at % 2 else None)
                places[place] = [people[at]] if kind == "direct" else chance.sample(people, 3)
    aliases = {_secret(10_000 + at, "i"): place for at, place in enumerate(places) if place.kind == "direct"}
    for alias, place in aliases.items():
        places[place] = [replace(one, name=f"{one.name} {alias}") for one in places[place]]
    tellings = _tellings(places, chance)
    secrets = {secret: said for said, _, told in tellings for secret in told}
    secrets |= {alias: Said(place, places[place][0]) for alias, place in aliases.items()}
    return World(places=places, secrets=secrets, messages=list(_talks(tellings, places, chance)))


def _tellings(places: dict[Place, list[Author]], chance: random.Random) -> list[tuple[Said, str, list[str]]]:
    made: list[tuple[Said, str, list[str]]] = []
    for place, members in places.items():
        for said in chance.sample(list(product(members, STATED)), len(members) * len(STATED)):
            secrets = [_secret(len(made), other) for other in "io"]
            made.append((Said(place, said[0]), said[1].format(*secrets), secrets))
    return made


def _secret(number: int, other: str) -> str:
    digits = [chr(97 + number // 26**power % 26) for power in range(4)]
    return f"Z{digits[0]}q{digits[1]}{digits[2]}{digits[3]}v{other}"


def _talks(
    tellings: Sequence[tuple[Said, str, list[str]]], places: dict[Place, list[Author]], chance: random.Random
) -> Iterator[Message]:
    """What was told, among small talk that quotes it now and then, some hours apart; ids are the same in every place,
    and what is said there later has later ones."""
    last: dict[PlaceKey, tuple[int, datetime]] = {}
    for place, members in places.items():
        number, at = last.get(place.key, (0, NOON - timedelta(days=30)))
        for author, text in [(said.author, text) for said, text, _ in tellings if said.place == place]:
            at += timedelta(minutes=chance.choice((1, 1, 2, 200)))
            told = a_message(text, id=str(number), place=place, author=author, sent_at=at)
            quote = Quote(message_id=told.id, author=author, parts=told.parts) if chance.random() < 0.1 else None
            talk, person = chance.choice(SMALL_TALK), chance.choice(members)
            at += timedelta(minutes=chance.choice((1, 1, 2, 200)))
            yield told
            yield a_message(talk, id=str(number + 1), place=place, author=person, sent_at=at, reply_to=quote)
            number += 2
        last[place.key] = (number, at)


def letters(name: str) -> Embedder | None:
    return LETTERS if name in ("", LETTERS.id) else None


@asynccontextmanager
async def remembered(
    world: World, path: Path | str = ":memory:", model: Model | None = None
) -> AsyncIterator[tuple[Store, Memory]]:
    """All that was said, read to its end, first in those places that have become something else since."""
    turned = {place for place in world.places if place not in world.newest.values()}
    async with Store.open(path, durable=False) as store:
        for first in (True, False):
            for message in world.messages:
                if (message.place in turned) is first:
                    await store.inbox.receive(message, at=NOON)
            await read(store, model=model)
        yield store, a_memory(store)


async def read(store: Store, places: Iterable[Place] = (), *, model: Model | None = None) -> None:
    """What is unread, and what is to be told anew in these places."""
    said = VisibleLog(store.log, store.place_settings.blocked)
    learner = Learner(store.facts, store.cursors, said, model=model, now=lambda: NOON)
    writer = EpisodeWriter(store.episodes, said, model=model)
    for place in places:
        writer.wake(place)
    indexer = Indexer(store.index_writer, embedders=letters)
    for one in (learner, writer, indexer):
        await one.start()
        await one.done()


class Listening(Scripted):
    """Has nothing useful to say about what it is shown."""

    async def respond(self, prompt: Prompt) -> Response:
        self._script = ["Hm."]
        return await super().respond(prompt)


def a_memory(store: Store) -> Memory:
    return Memory(
        store,
        search=MessageRecall(store.index_reader, embedders=letters, likely=0.0, now=lambda: NOON),
        clock=RealClock(now=lambda: NOON),
    )


def a_target(world: World, chance: random.Random, number: int) -> Message:
    """A question in any place, by somebody who is there; it may name secrets from anywhere."""
    place, author = chance.choice(world.open)
    name = chance.choice(["Alice", "Bob", "Olena", "Ivan"])
    secrets = " ".join(chance.sample(sorted(one for one in world.secrets if one.endswith("o")), 3))
    text = chance.choice(ASKED).format(name=name, secrets=secrets)
    quote = Quote(message_id=str(chance.randrange(60))) if chance.random() < 0.2 else None
    return a_message(text, id=f"new {number}", place=place, author=author, reply_to=quote)


async def prompts(store: Store, memory: Memory, target: Message) -> AsyncIterator[tuple[str, Context, str]]:
    """The name of each profile, with what it was given and what it made of it."""
    gathered: dict[tuple[str, str], Context] = {}
    scene = sources.agent_settings(persona=PERSONA, delimiter=DELIMITER)
    for (kind, config), name in product(CONFIGS.items(), PROFILES):
        key = (kind, KINDS[name] if kind == "levels" else "plain")
        if key not in gathered:
            messages = LogSlice(
                VisibleLog(store.log, store.place_settings.blocked), await store.place_settings.beginning(target.place)
            )
            inputs = SourceInputs(log=messages, memory=memory.knowledge, options=config)
            drawn = profile_of(name, config).sources(inputs)
            gathered[key] = await gather(target, [scene, *drawn], NOON)
        yield name, gathered[key], str(build_prompt(gathered[key], profile_of(name, config)))


def secrets_in(text: str) -> set[str]:
    return {found.capitalize() for found in SECRET.findall(text.casefold())}


def recalled(context: Context) -> dict[str, str]:
    """What is not simply shown as it was said a moment ago, by its source."""
    return {
        "background": str((context.memories, context.key_facts, context.summary)),
        "relevant": str(context.relevant),
        "episodic": str(context.episodes),
        "past": context.past,
    }


async def change(world: World, store: Store, chance: random.Random) -> str:
    """Let something happen: a message is edited or deleted, somebody is blocked or heard again, all is read."""
    what = chance.choice(CHANGES)
    quoted = {(one.place, one.reply_to.message_id) for one in world.messages if one.reply_to}
    message = chance.choice([one for one in world.messages if (one.place, one.id) not in quoted])
    person = chance.choice(sorted({(one.place.platform, one.author.id) for one in world.messages}))
    match what:
        case "edited":
            now = replace(message, place=world.newest[message.place.key], parts=a_message("Never mind.").parts)
            await store.inbox.edit(now, at=NOON)
        case "deleted":
            await store.inbox.delete(message.place, message.id, at=NOON)
        case "blocked" if len(world.blocked) < 3:
            await store.place_settings.block(platform=person[0], author_id=person[1], at=NOON)
            world.blocked.add(person)
        case "heard again" if world.blocked:
            again = chance.choice(sorted(world.blocked))
            await store.place_settings.unblock(platform=again[0], author_id=again[1])
            world.blocked.remove(again)
        case "read":
            await read(store, world.newest.values())
    if what in ("edited", "deleted"):
        world.withdrawn.update(secrets_in(str(message.parts)))
    return what


async def probe(world: World, count: int, seed: int) -> tuple[int, Counter[str]]:
    """Ask while things change; how many prompts there were, and how often each source told a secret and each change
    came."""
    chance = random.Random(seed)  # noqa: S311
    asked, seen = 0, Counter[str]()
    async with remembered(world) as (store, memory):
        while asked < count:
            if chance.random() < 0.3:
                seen[await change(world, store, chance)] += 1
            target = a_target(world, chance, asked)
            named = secrets_in(str(target.parts))
            async for profile, context, prompt in prompts(store, memory, target):
                asked += 1
                leaked = [one for one in secrets_in(prompt) - named if not world.may_tell(one, target)]
                assert not leaked, (profile, target, [(one, world.secrets[one]) for one in leaked], seen)
                seen.update(source for source, text in recalled(context).items() if secrets_in(text))
    return asked, seen


@pytest.mark.torture
async def test_no_prompt_tells_what_was_said_elsewhere() -> None:
    for seed in range(1, 2 + WORLDS):
        asked, seen = await probe(a_world(seed), PROBES, seed)

        assert asked >= PROBES
        assert {source for source, times in seen.items() if times > PROBES / 50} == SOURCES
        assert set(CHANGES) <= set(seen)


@pytest.mark.parametrize("platform", ["telegram", "discord"])
async def test_of_a_forgotten_person_nothing_is_told_and_no_byte_is_left(platform: str, tmp_path: Path) -> None:
    world, chance = a_world(1), random.Random(2)  # noqa: S311
    gone = world.places[next(place for place in world.places if place.platform == platform)][0]
    theirs = {
        secret
        for secret, said in world.secrets.items()
        if said.author.id == gone.id and said.place.platform == platform
    }
    async with remembered(world, tmp_path / "s.db") as (store, memory):
        targets = [a_target(world, chance, number) for number in range(TARGETS)]
        targets = [one for one in targets if one.author.id != gone.id or one.place.platform != platform]
        told = [secrets_in(prompt) for target in targets async for *_, prompt in prompts(store, memory, target)]
        kept = _left(tmp_path, theirs)

        await store.forget(platform=platform, author_id=gone.id)
        await read(store)

        assert any(secrets & theirs for secrets in told)
        assert kept == sorted(theirs)
        for target in targets:
            named = secrets_in(str(target.parts))
            async for profile, _, prompt in prompts(store, memory, target):
                assert not (secrets_in(prompt) - named) & theirs, (profile, target)
        assert _left(tmp_path, theirs) == []
    assert _left(tmp_path, theirs) == []


def _left(folder: Path, secrets: set[str]) -> list[str]:
    """The secrets that a file holds in any case; without their ending, as the index has them."""
    files = b"\n".join(path.read_bytes() for path in folder.iterdir()).lower()
    return [one for one in sorted(secrets) if one[:-1].casefold().encode() in files]


async def test_of_a_blocked_person_nothing_is_told_until_they_are_heard_again() -> None:
    world, chance = a_world(1), random.Random(3)  # noqa: S311
    blocked = next(iter(world.places.values()))[0]
    theirs = {
        secret
        for secret, said in world.secrets.items()
        if said.author.id == blocked.id and said.place.platform == "telegram"
    }
    async with remembered(world) as (store, memory):
        world.blocked.add(("telegram", blocked.id))
        targets = [a_target(world, chance, number) for number in range(TARGETS)]

        async def told() -> list[set[str]]:
            return [
                (secrets_in(prompt) - secrets_in(str(target.parts))) & theirs
                for target in targets
                async for *_, prompt in prompts(store, memory, target)
            ]

        before = await told()
        await store.place_settings.block(platform="telegram", author_id=blocked.id, at=NOON)
        assert not any(await told())
        await read(store)
        assert not any(await told())

        await store.place_settings.unblock(platform="telegram", author_id=blocked.id)
        await read(store, world.newest.values())

        assert any(before)
        assert await told() == before


async def test_what_a_blocked_person_said_of_others_is_not_recalled_until_they_are_heard_again() -> None:
    alice, later = a_subject(), NOON + timedelta(hours=1)
    async with Store.open(":memory:") as store:
        for name, author in (("a", ALICE), ("b", BOB)):
            await store.inbox.receive(a_message(id=name, author=author), at=NOON)
        facts = [a_fact(text, sources=sources) for text, sources in (("tea", "a"), ("cake", "b"), ("both", "ab"))]
        await store.facts.learn([replace(fact, sources=tuple(fact.sources)) for fact in facts])

        async def told() -> tuple[set[str], str]:
            known = await KnownFacts(store.facts).background(a_message())
            return set(known.memories), known.summary

        async def sum_up(text: str, at: datetime, *facts: str) -> None:
            summary = Summary(subject=alice, place=GROUP, text=text, facts=3, digest="", made_at=at)
            await store.facts.summarise(summary, made_of=[a_fact(fact).id for fact in facts])

        await sum_up("a gourmet", NOON, "tea", "cake")
        assert await told() == ({"tea", "cake", "both"}, "a gourmet")
        await store.place_settings.block(platform="telegram", author_id=BOB.id, at=NOON)
        assert await told() == ({"tea", "both"}, "")
        await sum_up("a baker", later, "cake")
        await sum_up("a drinker", later, "tea")
        assert await told() == ({"tea", "both"}, "a drinker")

        await store.place_settings.unblock(platform="telegram", author_id=BOB.id)

        assert await told() == ({"tea", "cake", "both"}, "a drinker")


async def test_in_an_engine_a_group_hears_nothing_of_the_direct_chat_it_was_and_nobody_hears_the_blocked() -> None:
    group, model = replace(DIRECT, platform="recorded", kind="group"), Scripted(*["Hm."] * 6)
    direct = replace(group, kind="direct")
    async with (
        Store.open(":memory:") as store,
        engine_with(model, store=store, memory=(memory := Memory(store))) as engine,
    ):

        async def asked(text: str, number: int, **changes: Any) -> str:
            await engine.receive(a_message(text, id=str(number), **changes))
            await engine.settled()
            await memory.done()
            return str(model.prompts[-1])

        first = [await asked(f"I live in Zaqbbbvi {at}", at, place=direct) for at in range(2)]
        assert "Zaqbbbvi 0" in first[1]
        assert "Zaqbbbvi" not in await asked("Gryag, where do I live?", 2, place=group, author=ALICE)
        quote = a_quote("Zbqbbbvi", author=BOB)
        assert "Zbqbbbvi" in await asked("Gryag, I live in Zbqbbbvi", 3, place=group, author=BOB)
        assert "Zbqbbbvi" in await asked("Gryag, what?", 4, place=group, reply_to=quote)
        await store.place_settings.block(platform="recorded", author_id=BOB.id, at=NOON)
        assert "Zbqbbbvi" not in await asked("Gryag, what?", 5, place=group, reply_to=quote)


async def test_a_model_that_reads_in_the_background_is_shown_no_two_talks_together() -> None:
    world, model = a_world(1), Listening()
    async with remembered(world, model=model):
        shown = [[world.secrets[one] for one in secrets_in(str(prompt))] for prompt in model.prompts]

    groups = [{one.place for one in said if one.place.kind != "direct"} for said in shown]
    private = [{one.place for one in said if one.place.kind == "direct"} for said in shown]
    authors = [{(one.place.platform, one.author.id) for one in said} for said in shown]
    assert Counter(map(len, groups))[1] > 100
    assert Counter(map(len, private))[1] > 100
    for there, direct, people in zip(groups, private, authors, strict=True):
        assert len(people) == 1 if direct else len(there) <= 1  # a direct chat has what its person said in groups too


async def test_of_a_forgotten_person_nothing_is_left_in_what_the_agent_said(tmp_path: Path) -> None:
    own = a_message("So you live in Zaqbbbvi near the old blue harbour wall!", id="2", author=GRYAG)
    async with Store.open(tmp_path / "s.db") as store:
        await store.inbox.receive(a_message("I live in Zaqbbbvi near the old blue harbour wall", id="1"), at=NOON)
        await add_own(store, own, ())

        await store.forget(platform=GROUP.platform, author_id=ALICE.id)

        assert "Zaqbbbvi" not in str(await store.log.read(GROUP, 0, 2))
        assert not files_hold(tmp_path, "Zaqbbbvi")


async def test_of_somebody_who_is_forgotten_while_they_are_summed_up_nothing_is_left(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:

        class Forgetting(Scripted):
            async def respond(self, prompt: Prompt) -> Response:
                if self.prompts:
                    await store.forget(platform=GROUP.platform, author_id=ALICE.id)
                return await super().respond(prompt)

        said = {"sources": [1], "about": ALICE.id, "key": "home", "text": "Lives in Zaqbbbvi.", "confidence": 1}
        likes = said | {"sources": [2], "key": "taste", "text": "Loves sushi."}
        model = Forgetting(json.dumps({"facts": [said, likes]}), "Lives in Zaqbbbvi. Loves sushi.")
        for number, text in enumerate(("I live in Zaqbbbvi", "I love sushi")):
            await store.inbox.receive(a_message(text, id=str(number)), at=NOON)
        learner = Learner(store.facts, store.cursors, store.log, model=model, now=lambda: NOON)
        await learner.start()
        await learner.done()

        assert len(model.prompts) == 2
        assert not files_hold(tmp_path, "Zaqbbbvi")
