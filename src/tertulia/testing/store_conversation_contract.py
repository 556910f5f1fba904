"""ConversationContract: the tests of the log, the inbox, updates, decisions, events and settings of places."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal

import pytest
from msgspec.structs import replace

from tertulia.context.edits import MessageChange, Reaction
from tertulia.decisions import Decision
from tertulia.engine.store_protocols import Command, PlaceSnapshot, StoreProtocol, UpdateResult, WaitingMessage
from tertulia.errors import InvalidValue
from tertulia.events import DurableEvent, MessageDecided, MessageReceived
from tertulia.messages import Author, Quote
from tertulia.parts import Media, Text
from tertulia.platform import (
    Change,
    Commanded,
    Deleted,
    Edited,
    PlaceJoined,
    PlaceLeft,
    PlaceMigrated,
    Reacted,
    Received,
    Stopped,
    Update,
)
from tertulia.testing.store_world import (
    ALICE,
    BOB,
    DIRECT,
    GROUP,
    LATER,
    NOON,
    Opened,
    a_message,
    a_run,
    a_talk,
    apply,
    check,
    check_restarts,
    log_of,
    receive,
    say,
    waiting,
)
from tertulia.turns import Prompt, model

Kind = Literal["direct", "group", "channel"]
NOT_ADDRESSED = Decision(reason="not addressed", at=LATER)
UNSTORABLE: tuple[Change, ...] = (
    Received(message=a_message("?", id="")),
    Received(message=a_message("?", id="1", author=Author(id="\u200b", name="Nobody"))),
    Edited(message=a_message("?", id="\ud800")),
    Deleted(place=replace(GROUP, id=""), message_id="1"),
    Received(message=a_message("?", id="1", reply_to=Quote(message_id="\ud800"))),
    Received(message=a_message("?", id="1", parts=(Text(text="?", raw={"odd": object()}),))),
    PlaceMigrated(old=GROUP, new=replace(GROUP, id=" ")),
    Stopped(place=replace(GROUP, thread="\ud800")),
)


async def _reactions(store: StoreProtocol) -> list[Reaction]:
    return [change for change in await store.log.changes(GROUP, 0) if isinstance(change, Reaction)]


class ConversationContract:
    """Messages are stored once, in order, and are found again as they were."""

    @check
    async def test_messages_are_numbered_as_they_came(self, store: StoreProtocol) -> None:
        talk = a_talk(7)
        await receive(store, *talk)

        assert await store.log.count(GROUP) == 7
        assert [await store.log.number(message) for message in talk] == list(range(7))
        ranges = [(0, 0), (0, 1), (2, 5), (5, 7), (6, 99), (7, 9), (3, 2)]
        found = [list(await store.log.read(GROUP, start, stop)) for start, stop in ranges]
        assert found == [talk[start:stop] for start, stop in ranges]

    @check
    async def test_a_place_nobody_wrote_in_is_empty(self, store: StoreProtocol) -> None:
        assert await store.log.count(GROUP) == 0
        assert await log_of(store) == []
        assert await store.log.number(a_message()) is None
        assert await store.log.turns([a_message()]) == {}
        assert await store.inbox.snapshot(GROUP) == PlaceSnapshot(waiting=(), count=0, changes=0)

    @check
    async def test_a_message_comes_back_as_it_was(self, store: StoreProtocol) -> None:
        olha = Author(id="7", name="Olha")
        photo = Media(media_kind="photo", unique_id="p1", mime="image/jpeg", data=b"\xff\xd8jpeg")
        messages = [
            a_message("", id="1", parts=(Text(text="тест 👩\u200d👧 朝"), photo, Text(text="' \" % :x \\ {}"))),
            a_message("yes", id="2", reply_to=Quote(message_id="1", author=ALICE, parts=(Text(text="тест"),))),
            a_message("her words", id="3", forwarded_from=olha),
            a_message("whose?", id="4", forwarded_from=Author(id="unknown", name="Ann", unknown=True)),
            a_message("later", id="5", album="a", sent_at=None, author=replace(ALICE, name="Alisa", username=None)),
        ]
        await receive(store, *messages)

        assert await log_of(store) == messages

    @check
    async def test_messages_are_found_by_their_ids(self, store: StoreProtocol) -> None:
        talk = a_talk(7)
        await receive(store, *talk)

        assert list(await store.log.find(GROUP, ["5", "nowhere", "0"])) == [(5, talk[5]), (0, talk[0])]
        assert (await store.log.get(GROUP, "5"), await store.log.get(GROUP, "nowhere")) == (talk[5], None)
        assert list(await store.log.find(GROUP, [])) == list(await store.log.find(DIRECT, ["0"])) == []

    @check
    async def test_places_and_their_threads_do_not_mix(self, store: StoreProtocol) -> None:
        places = [GROUP, DIRECT, replace(GROUP, thread="9"), replace(GROUP, platform="discord")]
        messages = [a_message(f"in {n}", place=place) for n, place in enumerate(places)]

        assert [await store.inbox.receive(message, at=NOON) for message in messages] == [True] * 4
        assert [await log_of(store, place) for place in places] == [[message] for message in messages]

    @check
    async def test_people_and_places_that_are_renamed_are_shown_as_they_were_called(self, store: StoreProtocol) -> None:
        renamed = replace(GROUP, title="Best friends")
        talk = [
            a_message(id="1"),
            a_message(id="2", author=replace(ALICE, name="Alisa")),
            a_message(id="3", place=renamed),
        ]
        await receive(store, *talk)

        assert await log_of(store, renamed) == talk
        assert list(await store.inbox.places()) == [renamed]

    @check_restarts
    async def test_what_was_stored_is_there_after_a_restart(self, opened: Callable[[], Opened]) -> None:
        async with opened() as store:
            await receive(store, a_message())
            secret = await store.place_settings.delimiter(GROUP)
        async with opened() as store:
            assert await store.inbox.receive(a_message("again"), at=LATER) is False
            assert await log_of(store) == [a_message()]
            assert await store.place_settings.delimiter(replace(GROUP, title="Another title")) == secret

    @check
    async def test_a_message_is_new_once(self, store: StoreProtocol) -> None:
        told = await asyncio.gather(*(store.inbox.receive(a_message(), at=NOON) for _ in range(20)))

        assert sorted(told) == [False] * 19 + [True]
        assert await store.inbox.receive(a_message("something else"), at=LATER) is False
        assert await log_of(store) == [a_message()]

    @check
    async def test_messages_that_come_at_once_are_stored_in_the_order_in_which_they_were_given(
        self, store: StoreProtocol
    ) -> None:
        talk = a_talk(30)
        await asyncio.gather(*(store.inbox.receive(message, at=NOON) for message in talk))

        assert await log_of(store) == talk

    @check
    async def test_an_edit_keeps_number_album_and_quote(self, store: StoreProtocol) -> None:
        quote = Quote(message_id="m0", author=BOB, parts=(Text(text="hm"),))
        await receive(store, a_message("helo", reply_to=quote, album="a"), a_message(id="m2"))

        assert await store.inbox.edit(a_message("hello", sent_at=None), at=LATER) is True
        edited = a_message("hello", reply_to=quote, album="a", edited_at=LATER)
        assert await log_of(store) == [edited, a_message(id="m2")]
        assert await store.log.number(edited) == 0
        assert (await store.inbox.snapshot(GROUP)).changes == 1

    @check
    async def test_an_edit_older_than_the_last_one_changes_nothing(self, store: StoreProtocol) -> None:
        await receive(store, a_message("1"))
        await store.inbox.edit(a_message("3", edited_at=LATER), at=LATER)

        assert await store.inbox.edit(a_message("2", edited_at=NOON), at=LATER) is True
        assert await log_of(store) == [a_message("3", edited_at=LATER)]

    @check
    async def test_nobody_edits_the_message_of_another(self, store: StoreProtocol) -> None:
        await receive(store, a_message("mine"))

        with pytest.raises(InvalidValue, match="cannot be edited"):
            await store.inbox.edit(a_message("yours", author=BOB), at=LATER)

    @check
    async def test_a_deleted_message_keeps_its_number_stays_deleted_and_does_not_wait(
        self, store: StoreProtocol
    ) -> None:
        await receive(store, a_message("1"), a_message("2", id="m2"))

        assert await store.inbox.delete(GROUP, "m1", at=NOON) is True
        await store.inbox.edit(a_message("late", edited_at=LATER), at=LATER)

        assert await log_of(store) == [a_message("late", edited_at=LATER, deleted=True), a_message("2", id="m2")]
        assert await waiting(store) == ["m2"]
        assert await store.inbox.delete(GROUP, "never seen", at=LATER) is False
        assert await store.inbox.edit(a_message(id="never seen"), at=LATER) is False

    @check
    async def test_changes_are_those_of_messages_that_a_run_had_shown(self, store: StoreProtocol) -> None:
        talk = a_talk(4)
        await receive(store, *talk)
        await store.runs.begin(a_run(target="0", horizon=3, taken=()), Prompt.of("hi"), at=NOON)
        edited = replace(talk[1], parts=a_message("edited").parts, edited_at=NOON)
        for change in (edited, replace(talk[3], parts=()), replace(talk[0], parts=())):
            await store.inbox.edit(change, at=NOON)
        await store.inbox.delete(GROUP, "1", at=NOON)

        assert list(await store.log.changes(GROUP, 1)) == [
            MessageChange(number=1, position=4, before=talk[1]),
            MessageChange(number=1, position=4, before=edited),
        ]
        assert list(await store.log.changes(DIRECT, 0)) == []

    @check
    async def test_reactions_are_those_that_people_show_now(self, store: StoreProtocol) -> None:
        def shown(author: Author, *emojis: str) -> Reacted:
            return Reacted(place=GROUP, message_id="m1", author=author, emojis=emojis)

        await receive(store, a_message())
        await apply(store, shown(ALICE, "👍"), shown(BOB, "🔥"), key="u1")
        await apply(store, shown(replace(ALICE, name="Another name"), "👀"), shown(BOB), key="u2")
        await receive(store, a_message(id="m2"))
        await apply(store, shown(ALICE, "👀"), shown(BOB, "🔥"), key="u3")

        changes = [(one.position, one.author.id, one.emojis) for one in await _reactions(store)]
        assert changes == [(1, ALICE.id, ("👀",)), (2, BOB.id, ("🔥",))]

    @check
    async def test_the_messages_of_an_album_are_found_with_what_was_decided_about_each(
        self, store: StoreProtocol
    ) -> None:
        album = [a_message(id=name, album="a1") for name in ("1", "2", "3")]
        await receive(store, *album, a_message(id="4", album="a2"), a_message(id="5", album="a1", author=BOB))
        await store.inbox.skip(GROUP, {"1": NOT_ADDRESSED}, at=LATER)
        await store.inbox.delete(GROUP, "3", at=LATER)

        found = await store.inbox.album(GROUP, ALICE.id, "a1")
        assert list(found) == [(album[0], NOT_ADDRESSED), (album[1], Decision(reason="waiting", at=NOON))]

    @check
    async def test_the_language_of_a_client_is_known_of_its_account_and_is_in_no_message(
        self, store: StoreProtocol
    ) -> None:
        for name, language in (("1", "uk"), ("2", ""), ("3", "en")):
            await receive(store, a_message(id=name, author=replace(ALICE, language=language)))

        languages = [
            await store.place_settings.language(platform=GROUP.platform, author_id=one) for one in (ALICE.id, "nobody")
        ]
        assert languages == ["en", None]
        assert {message.author for message in await log_of(store)} == {ALICE}

    @check
    async def test_the_agents_own_messages_have_their_turns_and_do_not_wait(self, store: StoreProtocol) -> None:
        await receive(store, a_message())
        turns = (model("Yes?", by="gemini-3.8-flash"),)
        await say(store, "Yes?", as_id="77", turns=turns)

        messages = await log_of(store)
        assert [message.id for message in messages] == ["m1", "77"]
        assert await store.log.turns(messages) == {"77": turns}
        assert await waiting(store) == ["m1"]
        assert await store.inbox.receive(messages[1], at=LATER) is False

    @check
    async def test_a_snapshot_has_what_waits_and_the_counts_of_its_place(self, store: StoreProtocol) -> None:
        talk = a_talk(3)
        await receive(store, *talk)

        expected = tuple(WaitingMessage(message=one, since=NOON, number=number) for number, one in enumerate(talk))
        assert await store.inbox.snapshot(GROUP) == PlaceSnapshot(waiting=expected, count=3, changes=0)
        assert await store.inbox.snapshot(GROUP, most=2) == PlaceSnapshot(waiting=expected[:2], count=3, changes=0)

    @check
    async def test_a_message_waits_until_it_is_decided_about(self, store: StoreProtocol) -> None:
        talk = a_talk(3)
        await receive(store, *talk)
        await store.runs.begin(a_run(target="1", taken=("0", "1")), Prompt.of("hi"), at=LATER)

        assert await store.inbox.skip(GROUP, {"2": NOT_ADDRESSED}, at=LATER) is True

        assert await waiting(store) == []
        assert list(await store.inbox.places()) == []
        assert list(await store.inbox.decided(GROUP, most=9)) == [
            (talk[0], (Decision(reason="answered", run_id="r1", at=LATER),)),
            (talk[1], (Decision(reason="answered", run_id="r1", at=LATER),)),
            (talk[2], (NOT_ADDRESSED,)),
        ]

    @check
    async def test_nothing_is_skipped_where_the_place_has_changed(self, store: StoreProtocol) -> None:
        await receive(store, a_message())
        await store.inbox.edit(a_message("gryag, hello"), at=NOON)

        assert await store.inbox.skip(GROUP, {"m1": NOT_ADDRESSED}, at=LATER, changes=0) is False
        assert await waiting(store) == ["m1"]

    @check
    async def test_what_was_not_addressed_waits_again_when_it_is_edited_in_time(self, store: StoreProtocol) -> None:
        minutes = (59, 61)
        for number in range(2):
            await receive(store, a_message("hello", id=str(number)))
        await store.inbox.skip(GROUP, {"0": NOT_ADDRESSED, "1": NOT_ADDRESSED}, at=NOON)
        for number in range(2):
            edited_at = NOON + timedelta(minutes=minutes[number])
            await store.inbox.edit(a_message("gryag?", id=str(number), edited_at=edited_at), at=edited_at)

        assert await waiting(store) == ["0"]

    @check
    async def test_an_update_is_applied_once_and_as_a_whole(self, store: StoreProtocol) -> None:
        changes = (Received(message=a_message("one", id="1")), Received(message=a_message("two", id="2")))

        first = await apply(store, *changes)
        again = await apply(store, *changes, Received(message=a_message("three", id="3")))
        elsewhere = await store.updates.apply("elsewhere", (), key="u1", raw=None, at=NOON, keep=timedelta(days=7))

        told = [UpdateResult(new=True), UpdateResult(new=False), UpdateResult(new=True)]
        assert [first, again, elsewhere] == told
        assert [message.text for message in await log_of(store)] == ["one", "two"]

    @check
    async def test_an_update_that_cannot_be_stored_stays_unread(self, store: StoreProtocol) -> None:
        for number, change in enumerate(UNSTORABLE):
            good = Received(message=a_message("good", id="7"))
            outcome = await apply(store, good, change, key=str(number), raw=b"raw")
            assert (outcome.new, bool(outcome.refused)) == (True, True), change

        assert await log_of(store) == []
        unread = [Update(key=str(number), raw=b"raw") for number in range(len(UNSTORABLE))]
        assert list(await store.updates.unread(GROUP.platform)) == unread

    @check
    async def test_raw_updates_are_removed_when_they_are_too_old(self, store: StoreProtocol) -> None:
        await apply(store, raw=b"old")
        await apply(store, key="u2", raw=b"new", at=NOON + timedelta(days=8))

        assert list(await store.updates.unread(GROUP.platform)) == [Update(key="u2", raw=b"new")]
        assert await apply(store, at=NOON + timedelta(days=9)) == UpdateResult(new=False)

    @check
    async def test_a_place_of_several_accounts_is_found_again(self, store: StoreProtocol) -> None:
        other = a_message(id="m2", place=replace(GROUP, platform="telegram2"))
        said = Commanded(message=a_message(), name="help", agent="Ada")
        await apply(store, said)
        await store.inbox.receive(other, at=NOON)

        both = ["telegram2", GROUP.platform]
        assert await store.updates.first_platform(GROUP.id, both) == GROUP.platform
        assert await store.updates.first_platform(GROUP.id, ["telegram2"]) == "telegram2"
        assert await store.updates.first_platform("elsewhere", both) is None
        assert [one.agent for one in await store.updates.commands()] == ["Ada"]

    @check
    async def test_a_command_is_there_until_it_was_carried_out(self, store: StoreProtocol) -> None:
        said = a_message("/forget tea", id="9")
        await apply(store, Received(message=a_message("one", id="1")))
        await apply(store, Commanded(message=said, name="forget", argument="tea"), key="u2")

        (command,) = await store.updates.commands()
        assert command == Command(id=command.id, message=said, name="forget", argument="tea", horizon=1)
        await store.updates.end(command)
        assert list(await store.updates.commands()) == []
        with pytest.raises(InvalidValue, match="there is no command"):
            await store.updates.end(command)

    @check
    async def test_what_waits_in_a_place_that_was_left_is_not_answered(self, store: StoreProtocol) -> None:
        topic = replace(GROUP, thread="7")
        await receive(store, a_message(), a_message(place=topic))

        await apply(store, PlaceLeft(place=GROUP))
        assert (await waiting(store), await waiting(store, topic)) == ([], [])
        await apply(store, PlaceJoined(place=GROUP), Received(message=a_message(id="m2")), key="u2")
        assert await waiting(store) == ["m2"]

    @check
    async def test_a_place_that_migrates_goes_on_under_its_new_id(self, store: StoreProtocol) -> None:
        new = replace(GROUP, id="-200")
        await receive(store, a_message("before", id="1"))

        await apply(store, PlaceMigrated(old=GROUP, new=new))
        await receive(store, a_message("after", id="2", place=new))
        late = Edited(message=a_message("before!", id="1", edited_at=LATER))
        await apply(store, late, key="u2")

        found = await log_of(store, new)
        assert [(message.text, message.place) for message in found] == [("before!", new), ("after", new)]
        assert await log_of(store) == found
        assert await store.updates.migrated_places() == {GROUP.key: new}

    @check
    async def test_events_are_numbered_and_published_after_the_commit(self, store: StoreProtocol) -> None:
        published: list[DurableEvent] = []
        stop = store.events.subscribe(published.extend, lambda _: None)
        cursor = await store.events.last()
        await receive(store, a_message())
        await store.inbox.skip(GROUP, {"m1": NOT_ADDRESSED}, at=LATER)
        stop()
        await receive(store, a_message(id="m2"))

        read = list(await store.events.read(after=cursor))
        assert published == read[:2]
        assert [(type(event), event.number) for event in read] == [
            (MessageReceived, 1),
            (MessageDecided, 2),
            (MessageReceived, 3),
        ]
        assert list(await store.events.read(after=read[1].cursor)) == read[2:]
        assert await store.events.last() == read[2].cursor

    @check
    async def test_a_conversation_begins_later_and_never_earlier(self, store: StoreProtocol) -> None:
        found = [await store.place_settings.beginning(GROUP)]
        for beginning in (7, 3, 7, 12, -1):
            await store.place_settings.clear(GROUP, beginning, at=NOON)
            found.append(await store.place_settings.beginning(GROUP))

        assert found == [0, 7, 7, 7, 12, 12]
        assert await store.place_settings.beginning(DIRECT) == 0

    @check
    async def test_a_place_that_becomes_a_group_or_a_direct_chat_begins_anew(self, store: StoreProtocol) -> None:
        kinds: dict[str, Kind] = {"d": "direct", "g": "group", "c": "channel"}
        table: list[tuple[str, Kind, int]] = [
            ("ddd", "direct", 0),
            ("ddd", "group", 3),
            ("dddgg", "group", 3),
            ("ggd", "direct", 2),
            ("ddggdg", "group", 5),
            ("ddggdg", "direct", 6),
            ("ccgcg", "group", 0),
        ]
        found = []
        for number, (history, asked, _) in enumerate(table):
            for message_id, kind in enumerate(history):
                place = replace(DIRECT, id=f"p{number}", kind=kinds[kind], title=kind)
                await receive(store, a_message(id=str(message_id), place=place))
            found.append(await store.place_settings.beginning(replace(DIRECT, id=f"p{number}", kind=asked)))

        assert found == [beginning for _, _, beginning in table]

    @check
    async def test_a_block_holds_on_its_platform_until_it_ends(self, store: StoreProtocol) -> None:
        settings, hour = store.place_settings, timedelta(hours=1)
        await receive(store, a_message())
        blocks: list[tuple[str, str, datetime | None]] = [
            ("telegram", ALICE.id, None),
            ("discord", ALICE.id, NOON + hour),
            ("telegram", BOB.id, NOON + hour),
            ("telegram", BOB.id, NOON + 2 * hour),
        ]
        known = [await settings.block(platform=one, author_id=who, at=NOON, until=end) for one, who, end in blocks]
        ends = [await settings.end_blocks(NOON + number * hour) for number in range(3)]

        assert known == [True, False, False, True]
        assert ends == [NOON + hour, NOON + 2 * hour, None]
        assert await settings.blocked() == {("telegram", ALICE.id)}
        assert await settings.unblock(platform="telegram", author_id=ALICE.id) is True
        assert await settings.unblock(platform="telegram", author_id=ALICE.id) is False
        assert await settings.unblock(platform="telegram", author_id="never seen") is None
        assert await settings.blocked() == frozenset()
