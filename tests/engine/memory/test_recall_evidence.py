from msgspec.structs import replace

from people import ALICE, BOB, GROUP, NOON, a_message
from tertulia import Store
from tertulia.engine.memory.recall import OWN_MESSAGES, evidence_messages
from tertulia.memory.facts import subject_of
from tertulia.memory.values import Fact


async def test_the_last_messages_of_a_person_and_what_is_answered() -> None:
    async with Store.open(":memory:") as store:
        said = [
            a_message(str(number), id=f"m{number}", author=(ALICE, BOB)[number % 2])
            for number in range(3 * OWN_MESSAGES)
        ]
        for message in said:
            await store.inbox.receive(message, at=NOON)

        found = await evidence_messages(store.log, ALICE, place=GROUP, target="m1")

        assert found == [said[1], *[one for one in said if one.author == ALICE][-OWN_MESSAGES:]]


async def test_what_was_said_in_a_direct_chat_is_no_ground_in_the_group_it_becomes() -> None:
    direct = replace(GROUP, kind="direct")
    async with Store.open(":memory:") as store:
        await store.inbox.receive(a_message("I live in Lviv", place=direct), at=NOON)
        await store.inbox.receive(a_message("hello all", id="m2", author=BOB), at=NOON)
        told = Fact(
            id="f",
            subject=subject_of(ALICE, GROUP),
            text="Lives in Lviv.",
            place=GROUP,
            sources=("m1",),
            learned_at=NOON,
        )

        assert await evidence_messages(store.log, ALICE, place=GROUP, target="m1") == []
        assert await store.facts.learn([told]) == []


async def test_nobody_is_shown_the_words_of_who_is_blocked_as_a_reason() -> None:
    said = [a_message("Alice lives in Lviv", id="m1", author=BOB), a_message("I live in Lviv", id="m2")]
    async with Store.open(":memory:") as store:
        for message in said:
            await store.inbox.receive(message, at=NOON)
        ids = ("m1", "m2")
        await store.facts.learn(
            [
                Fact(
                    id="f",
                    subject=subject_of(ALICE, GROUP),
                    text="Lives in Lviv.",
                    place=GROUP,
                    sources=ids,
                    learned_at=NOON,
                )
            ]
        )
        assert await store.facts.why("f") == said

        await store.place_settings.block(platform="telegram", author_id=BOB.id, at=NOON)

        assert await store.facts.why("f") == said[1:]
