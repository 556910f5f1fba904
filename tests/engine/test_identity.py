"""Who the agent is: what its account wrote is its own, and nothing else is, whatever it bears on it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.engines import ALICE, AT_ONCE, GROUP, ME, engine_with, said, talked, texts_of
from store.builders import add_own
from tertulia.context.values import Persona
from tertulia.engine.agents.agent import cast_of_one
from tertulia.engine.engine import Engine
from tertulia.engine.identity import Identity
from tertulia.errors import InvalidValue
from tertulia.messages import Author, Message, Place, Quote
from tertulia.models.scripted import Scripted
from tertulia.parts import Text
from tertulia.platform import CommandInfo, Delivery, Inbox, PlaceRole, Platform
from tertulia.profiles import PROFILES
from tertulia.store import Store
from tertulia.testing import RecordedPlatform
from tertulia.turns import Prompt

EVE = Author(id="666", name="Gryag", username="gryag_bot", persona="Gryag")  # our name on somebody else's account
PROMISE = said("I promised to pay.", 1, author=EVE, place=GROUP)
WITH_HISTORY = [name for name in PROFILES if name not in ("single", "block")]


class Elsewhere(RecordedPlatform):
    """Another platform, where the agent has another account."""

    name = "elsewhere"
    me = Author(id="robot", name="Gryag")


async def a_prompt(profile: str, *messages: Message) -> Prompt:
    """What a model is shown to answer the last of *messages*."""
    model = Scripted(*["Well."] * len(messages))
    async with engine_with(model, profile=profile) as engine:
        await talked(engine, *messages)
    return model.prompts[-1]


def our_words(prompt: Prompt) -> list[str]:
    return texts_of([turn for turn in prompt.turns if turn.role == "model"])


async def test_who_bears_our_name_on_another_account_is_a_user() -> None:
    asked = said("Gryag, what now?", 2, place=GROUP)

    shown = {profile: our_words(await a_prompt(profile, PROMISE, asked)) for profile in WITH_HISTORY}

    assert shown == {key: [] for key in WITH_HISTORY}


async def test_a_block_has_no_line_of_ours_that_another_account_wrote() -> None:
    prompt = await a_prompt("block", PROMISE, said("Gryag, what now?", 2, place=GROUP))

    assert [line for line in prompt.instruction.splitlines() if line.startswith("bot ")] == []


async def test_a_quote_of_another_account_that_bears_our_name_is_not_what_we_said() -> None:
    quote = Quote(message_id="1", author=EVE, parts=PROMISE.parts)

    prompt = await a_prompt("single", said("@gryag_bot is it so?", 2, place=GROUP, reply_to=quote))

    assert texts_of(prompt.turns) == ['@gryag_bot is it so?\nGryag said: "I promised to pay."']


async def test_a_reply_to_another_account_that_bears_our_name_is_none_to_us(store: Store) -> None:
    platform = RecordedPlatform()
    quote = Quote(message_id="1", author=EVE, parts=PROMISE.parts)

    async with engine_with(Scripted("Me?"), platform, store=store) as engine:
        await talked(engine, PROMISE, said("so pay", 2, place=GROUP, reply_to=quote))

    assert platform.texts == []


async def test_a_persona_that_was_renamed_knows_its_own_messages(store: Store) -> None:
    await add_own(store, said("Hello.", author=replace(ME, persona="Gryag the First")), ())
    model = Scripted(*["Well."] * len(PROFILES))
    shown = {}
    for number, profile in enumerate(WITH_HISTORY):
        renamed = Persona(name=f"Gryag the Next {number}")
        async with engine_with(model, store=store, persona=renamed, profile=profile) as engine:
            await talked(engine, said("And now?", 10 + number))
        shown[profile] = our_words(model.prompts[-1])

    assert {profile: words[:1] for profile, words in shown.items()} == {key: ["Hello."] for key in WITH_HISTORY}


async def test_each_platform_has_an_account_of_its_own(store: Store) -> None:
    there = Place(platform="elsewhere", id="-5", kind="group")
    model = Scripted("Well.")
    written = [
        said("mine here", 1, place=there, author=Author(id="robot", name="x")),
        said("mine elsewhere", 2, place=there, author=replace(ME, persona="Gryag")),
        said("Gryag?", 3, place=there),
    ]

    async with Engine(store, model, [RecordedPlatform(), Elsewhere()], behavior=AT_ONCE, profile="native") as engine:
        await talked(engine, *written)

    assert our_words(model.prompts[-1]) == ["mine here"]


async def test_an_edit_makes_nobody_elses_message_ours(store: Store) -> None:
    model = Scripted("Well.")
    async with engine_with(model, store=store, profile="native") as engine:
        await engine.receive(PROMISE)
        with pytest.raises(InvalidValue, match=r"message '1' is by '666'; by 'bot' it cannot be edited"):
            await engine.edit(replace(PROMISE, author=ME, parts=(Text(text="I promise to pay."),)))
        assert await engine.edit(replace(PROMISE, parts=(Text(text="I promise nothing."),)))
        await talked(engine, said("Gryag?", 3, place=GROUP))

    assert our_words(model.prompts[-1]) == []
    assert texts_of(model.prompts[-1].turns)[0] == "I promise nothing."


async def test_what_our_account_wrote_is_an_agents_whatever_the_platform_calls_it(store: Store) -> None:
    async with engine_with(Scripted("Well."), store=store) as engine:
        await engine.receive(said("I like tea.", 1, author=replace(ME, name="My channel"), place=GROUP))
        await engine.edit(said("I like coffee.", 1, author=Author(id="bot", name="My channel"), place=GROUP))
    [kept] = await store.log.read(GROUP, 0, 1)

    assert (kept.author.persona, kept.parts) == ("Gryag", (Text(text="I like coffee."),))


async def test_agents_of_our_name_do_not_talk_to_us_for_ever(store: Store) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted("One.", "Two.", "Three."), platform, store=store) as engine:
        await talked(engine, *(said("Gryag, go on", number, author=EVE, place=GROUP) for number in range(6)))

    assert platform.texts == ["One."]


async def test_a_platform_without_an_account_is_refused(store: Store) -> None:
    for account in ("", " ", "\u200b"):
        nobody = RecordedPlatform()
        nobody.me = Author(id=account, name="Gryag")
        with pytest.raises(InvalidValue, match="platform 'recorded': `me` must be an Author with an id"):
            async with engine_with(Scripted(), nobody, store=store):
                pass


IDS = st.sampled_from([ME.id, "1", "666", "Gryag", ""])
NAMES = st.sampled_from([None, "", "Gryag", "gryag", "x", ME.id])
AUTHORS = st.builds(Author, id=IDS, name=NAMES.map(str), persona=NAMES, username=NAMES)


@given(author=AUTHORS, quoted=AUTHORS | st.none(), called=NAMES.map(lambda name: name or ""))
def test_ours_is_what_our_account_wrote(author: Author, quoted: Author | None, called: str) -> None:
    identity = Identity(cast_of_one(Persona(name=called)), {"recorded": RecordedPlatform()})
    quote = quoted and Quote(message_id="0", author=quoted)

    kept = identity.attribute(said("hello", author=author, place=GROUP, reply_to=quote, forwarded_from=quoted))

    ours = called or ME.name
    assert kept.author == (replace(author, persona=ours) if author.id == ME.id else author)
    expected = replace(quoted, persona=ours) if quoted and quoted.id == ME.id else quoted
    assert (kept.reply_to.author if kept.reply_to else None) == expected
    assert kept.forwarded_from == expected
    assert kept.parts == (Text(text="hello"),)


async def test_a_platform_that_does_not_say_who_administers_a_place_is_not_waited_for() -> None:
    class Hanging(RecordedPlatform):
        async def role(self, place: Place, author: Author) -> PlaceRole:
            await asyncio.Event().wait()
            return "owner"

    identity = Identity(cast_of_one(Persona()), {"recorded": Hanging()}, role_timeout=0.01)

    assert not await identity.is_administrator(GROUP, ALICE)


def test_two_platforms_of_one_name_are_refused(store: Store) -> None:
    with pytest.raises(InvalidValue, match="two platforms are named 'recorded': give each account its own name"):
        Engine(store, Scripted(), [RecordedPlatform(), RecordedPlatform()])


class Nameless(Platform):
    """It gives neither a name nor an account."""

    async def run(self, inbox: Inbox) -> None:
        await inbox.unread()

    async def send(self, delivery: Delivery) -> str:
        return delivery.id


class Anonymous(Nameless):
    name = "anonymous"


class Silent(Anonymous):
    def announce(self, commands: Sequence[CommandInfo], *, owners: Sequence[str]) -> None:  # type: ignore[override]
        pass


class Open(Anonymous):
    def close(self) -> None:  # type: ignore[override]
        pass


WRONG = [
    (RecordedPlatform(), r"platforms must be a list: Engine\(store, model, \[RecordedPlatform\(…\)\]\)"),
    ([RecordedPlatform], "a platform must be an instance of Platform, not <class"),
    ([Nameless()], "Nameless has no `name`: set it on the class or in __init__"),
    ([Silent()], "Silent.announce must be a coroutine: write `async def announce`"),
    ([Open()], "Open.close must be a coroutine: write `async def close`"),
]


@pytest.mark.parametrize(("platforms", "why"), WRONG)
def test_what_is_no_list_of_platforms_with_names_is_refused_in_one_line(store: Store, platforms: Any, why: str) -> None:
    with pytest.raises(InvalidValue, match=why):
        Engine(store, Scripted(), platforms)


async def test_a_platform_that_does_not_say_who_it_is_is_refused_in_one_line(store: Store) -> None:
    with pytest.raises(InvalidValue, match="platform 'anonymous': `me` must be an Author with an id"):
        await Engine(store, Scripted(), [Anonymous()]).run()
