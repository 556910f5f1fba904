"""The contract fails for platforms that do not keep it: each of these breaks one promise of a platform that does."""

import asyncio
import json
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from keyless_chat import KeylessChat
from tertulia.errors import NotSent, SendRefused
from tertulia.messages import Author, Message, Place, Reply
from tertulia.parts import Text
from tertulia.platform import Capabilities, Change, Delivery, Edited, Inbox, PlaceRole, Platform, Received
from tertulia.testing.platform_contract import PlatformContract, PlatformWorld
from testing.docs_page import corner
from testing.worlds import ExampleWorld

Corner: Any = corner().Corner


class SureOfFailure(KeylessChat):
    """Takes a receipt that was lost for a message that was not sent."""

    async def send(self, delivery: Delivery) -> str:
        try:
            return await super().send(delivery)
        except OSError as error:
            raise NotSent("no answer") from error


class NeverSure(KeylessChat):
    """Says of nothing that it was not sent."""

    async def send(self, delivery: Delivery) -> str:
        try:
            return await super().send(delivery)
        except NotSent as error:
            raise OSError from error


class BusyIsRefused(KeylessChat):
    """Takes a service that is busy for one that never takes the message."""

    async def send(self, delivery: Delivery) -> str:
        try:
            return await super().send(delivery)
        except NotSent as error:
            raise SendRefused("no") from error


class NeverRefused(KeylessChat):
    """Tries for ever what is refused for good."""

    async def send(self, delivery: Delivery) -> str:
        try:
            return await super().send(delivery)
        except SendRefused as error:
            raise NotSent("no") from error


class SendsTwice(KeylessChat):
    """Sends every message twice."""

    async def send(self, delivery: Delivery) -> str:
        await super().send(delivery)
        return await super().send(delivery)


class SaysItWasSent(KeylessChat):
    """Returns an id before anybody knows whether the message went out."""

    async def send(self, delivery: Delivery) -> str:
        try:
            return await super().send(delivery)
        except OSError:
            return f"sent-{delivery.id}"


class SendsInBackground(KeylessChat):
    """Leaves sending to tasks, of which every other one is slow."""

    is_slow = False

    async def send(self, delivery: Delivery) -> str:
        self.is_slow = not self.is_slow
        self.sending = asyncio.create_task(self._send(delivery, 0.2 if self.is_slow else 0.0))
        return f"sent-{delivery.id}"

    async def _send(self, delivery: Delivery, pause: float) -> None:
        await asyncio.sleep(pause)
        await super().send(delivery)


class SendsWhileItRuns(KeylessChat):
    """Sends only after it was connected by `run`."""

    is_connected = False

    async def run(self, inbox: Inbox) -> None:
        self.is_connected = True
        await super().run(inbox)

    async def send(self, delivery: Delivery) -> str:
        if not self.is_connected:
            raise NotSent("not connected")
        return await super().send(delivery)


class NoDeliveryKeys(Corner):  # type: ignore[misc]
    """Says that it knows keys, and does not send them."""

    async def ask(self, **request: Any) -> Any:
        request.pop("key", None)
        return await super().ask(**request)


class NeverEdits(KeylessChat):
    """Sends a new message instead of an edit."""

    async def send(self, delivery: Delivery) -> str:
        return await super().send(replace(delivery, edits=None))


class NotModifiedIsRefused(KeylessChat):
    """Takes an edit that changes nothing for one that is refused."""

    async def _ask(self, **request: Any) -> bytes:
        line = await super()._ask(**request)
        return line.replace(b"not modified", b"refused")


class CutsOff(KeylessChat):
    """Sends what fits of a long message, and nothing else."""

    def split(self, reply: Reply) -> Sequence[Reply]:
        return (replace(reply, text=reply.text[:300]),)


class NeverSplits(KeylessChat):
    """Sends messages that are longer than it says it can."""

    def split(self, reply: Reply) -> Sequence[Reply]:
        return (reply,)


class SplitsAtRandom(KeylessChat):
    """Splits the same text in another way each time."""

    lengths = count(300, -1)

    def split(self, reply: Reply) -> Sequence[Reply]:
        length = next(self.lengths)
        texts = [reply.text[start : start + length] for start in range(0, len(reply.text), length)]
        return [replace(reply, text=text) for text in texts]


class MarksUp(KeylessChat):
    """Sends text as markup, without escaping it."""

    async def send(self, delivery: Delivery) -> str:
        text = delivery.reply.text.replace("*", "").replace("&amp;", "&")
        return await super().send(replace(delivery, reply=replace(delivery.reply, text=text)))


class HidesTyping(KeylessChat):
    """Says that people see it write, and shows nothing."""

    async def preview(self, place: Place, run_id: str, text: str) -> None:
        pass


class Previewing(KeylessChat):
    """Shows previews that vanish, and keeps the contract."""

    capabilities = Capabilities(previews=True, preview_interval=0.01)


class ShowsTypingOnly(Previewing):
    """Shows that it writes, whatever the preview says."""

    async def preview(self, place: Place, run_id: str, text: str) -> None:
        await super().preview(place, run_id, "")


class Loop(KeylessChat):
    """The loop of `run`, whose parts are broken below."""

    keys = count()

    async def run(self, inbox: Inbox) -> None:
        had = None
        while True:
            try:
                update = json.loads(await self._ask(do="update", had=had))
            except (OSError, NotSent):
                await asyncio.sleep(0.01)
                continue
            await self.apply(inbox, update)
            had = update["number"]

    async def apply(self, inbox: Inbox, update: dict[str, Any]) -> None:
        await inbox.apply(self._changes(update), key=str(update["number"]))


class NeverAgain(KeylessChat):
    """Connects once."""

    async def run(self, inbox: Inbox) -> None:
        update: dict[str, Any] = {"number": None}
        while True:
            update = json.loads(await self._ask(do="update", had=update["number"]))
            await inbox.apply(self._changes(update), key=str(update["number"]))


class AcknowledgesFirst(Loop):
    """Tells the service that it has an update before that is stored."""

    async def apply(self, inbox: Inbox, update: dict[str, Any]) -> None:
        self.applying = asyncio.create_task(super().apply(inbox, update))
        await asyncio.sleep(0)


class LosesOrder(Loop):
    """Applies updates in tasks, of which every other one is slow."""

    is_slow = False

    async def apply(self, inbox: Inbox, update: dict[str, Any]) -> None:
        async def later(pause: float) -> None:
            await asyncio.sleep(pause)
            await super(LosesOrder, self).apply(inbox, update)

        self.is_slow = not self.is_slow
        self.applying = asyncio.create_task(later(0.2 if self.is_slow else 0.0))


class NewKeys(Loop):
    """Gives an update another key each time it comes."""

    async def apply(self, inbox: Inbox, update: dict[str, Any]) -> None:
        await inbox.apply(self._changes(update), key=f"key-{next(self.keys)}")


class OldKey(Loop):
    """Gives all updates of a place the same key."""

    async def apply(self, inbox: Inbox, update: dict[str, Any]) -> None:
        await inbox.apply(self._changes(update), key=update["place"])


class Changing(KeylessChat):
    """Reads updates, each of which is changed before that."""

    def changed(self, update: dict[str, Any]) -> dict[str, Any]:
        return update

    def _changes(self, update: dict[str, Any]) -> list[Change]:
        return super()._changes(self.changed(update))


class OnlyPosts(Changing):
    """Takes an edit for a message, and a command too."""

    def changed(self, update: dict[str, Any]) -> dict[str, Any]:
        return {**update, "text": update["text"].removeprefix("/"), "kind": "post"}


class CommandsAsTyped(Changing):
    """Does not know a command in capitals."""

    def changed(self, update: dict[str, Any]) -> dict[str, Any]:
        is_command = update.get("text", "").startswith("/F")
        return {**update, "text": "forget it"} if is_command else update


class NoArguments(Changing):
    """Leaves out what stands behind the name of a command."""

    def changed(self, update: dict[str, Any]) -> dict[str, Any]:
        text = update.get("text", "")
        return {**update, "text": text.split(" ")[0]} if text.startswith("/") else update


class NoAlbums(Changing):
    def changed(self, update: dict[str, Any]) -> dict[str, Any]:
        return {**update, "album": None}


class OneAlbum(Changing):
    """Takes all albums for one."""

    def changed(self, update: dict[str, Any]) -> dict[str, Any]:
        return {**update, "album": update.get("album") and "album"}


class DropsAlbumMembers(Changing):
    """Knows only the first message of an album."""

    albums: set[str]

    def changed(self, update: dict[str, Any]) -> dict[str, Any]:
        self.albums = getattr(self, "albums", set())
        album = update.get("album")
        if album in self.albums:
            return {**update, "kind": "unknown"}
        if album:
            self.albums.add(album)
        return update


class NoQuotes(Changing):
    def changed(self, update: dict[str, Any]) -> dict[str, Any]:
        return {**update, "reply_to": None}


class Shortens(Changing):
    """Takes only the beginning of a long text."""

    def changed(self, update: dict[str, Any]) -> dict[str, Any]:
        return {**update, "text": update["text"][:200]} if "text" in update else update


class Strips(Changing):
    """Takes away what looks like markup."""

    def changed(self, update: dict[str, Any]) -> dict[str, Any]:
        return {**update, "text": update["text"].replace("<b>", "")} if "text" in update else update


class NamesAreIds(Changing):
    """Takes the name of somebody for who they are."""

    def changed(self, update: dict[str, Any]) -> dict[str, Any]:
        return {**update, "author": update["name"]} if "name" in update else update


class TrustsNames(KeylessChat):
    """Takes whoever has the bot's name for the bot."""

    def _changes(self, update: dict[str, Any]) -> list[Change]:
        return [self._ours(change) for change in super()._changes(update)]

    def _ours(self, change: Change) -> Change:
        if not isinstance(change, Received) or change.message.author.name != self.me.name:
            return change
        return Received(message=replace(change.message, author=self.me))


class EditsAreNew(KeylessChat):
    """Gives an edited message an id of its own."""

    def _changes(self, update: dict[str, Any]) -> list[Change]:
        return [self._renamed(change) for change in super()._changes(update)]

    def _renamed(self, change: Change) -> Change:
        if not isinstance(change, Edited):
            return change
        return Edited(message=replace(change.message, id=f"{change.message.id}-edited"))


class WithNews(Changing):
    """Tells of an edit and of an answer to it, as if the edit were a new message as well."""

    def _changes(self, update: dict[str, Any]) -> list[Change]:
        changes = super()._changes(update)
        edited = [change.message for change in changes if isinstance(change, Edited)]
        return [*changes, *(Received(message=_named(message)) for message in edited)]


def _named(message: Message) -> Message:
    return replace(message, id=f"{message.id}-again", parts=(Text(text="again"),))


class KeepsReactions(Changing):
    """Does not notice that a reaction was taken back."""

    def changed(self, update: dict[str, Any]) -> dict[str, Any]:
        is_taken_back = update["kind"] == "react" and not update["emojis"]
        return {**update, "kind": "unknown"} if is_taken_back else update


class FirstReaction(Changing):
    """Knows one reaction of each person."""

    def changed(self, update: dict[str, Any]) -> dict[str, Any]:
        return {**update, "emojis": update["emojis"][:1]} if update["kind"] == "react" else update


class AllAdministrators(KeylessChat):
    async def role(self, place: Place, author: Author) -> PlaceRole:
        return "administrator"


class AllMembers(KeylessChat):
    async def role(self, place: Place, author: Author) -> PlaceRole:
        return "member"


def without(kind: str) -> type[KeylessChat]:
    """A platform that takes no notice of updates of a kind."""

    class Without(Changing):
        def changed(self, update: dict[str, Any]) -> dict[str, Any]:
            return {**update, "kind": "unknown"} if update["kind"] == kind else update

    Without.__name__ = Without.__qualname__ = f"Without{kind.title()}"
    return Without


BROKEN = [
    (SureOfFailure, "a_message_whose_receipt_was_lost_is_seen_once_and_listed_if_nobody_knows"),
    (SaysItWasSent, "a_message_whose_receipt_was_lost_is_seen_once_and_listed_if_nobody_knows"),
    (SaysItWasSent, "a_message_whose_request_was_lost_is_never_told_to_be_sent"),
    (NoDeliveryKeys, "a_message_whose_receipt_was_lost_is_seen_once_and_listed_if_nobody_knows"),
    (NeverSure, "a_message_that_the_service_is_too_busy_for_is_sent_later"),
    (BusyIsRefused, "a_message_that_the_service_is_too_busy_for_is_sent_later"),
    (NeverRefused, "a_message_that_is_refused_is_dropped_and_the_next_one_is_sent"),
    (SendsTwice, "a_message_is_answered_where_it_was_posted"),
    (SendsInBackground, "messages_are_stored_in_order_and_sent_in_order"),
    (SendsWhileItRuns, "a_process_that_receives_nothing_sends"),
    (NeverEdits, "a_draft_becomes_the_answer"),
    (NeverEdits, "a_draft_of_an_answer_that_somebody_stops_says_so"),
    (NeverEdits, "a_draft_that_is_visible_when_the_process_crashes_becomes_the_answer"),
    (NotModifiedIsRefused, "an_edit_whose_receipt_was_lost_counts_as_sent_when_it_changes_nothing"),
    (CutsOff, "splitting_is_pure_and_loses_nothing_but_blanks"),
    (NeverSplits, "a_long_answer_is_split_and_every_part_is_one_message_in_order"),
    (SplitsAtRandom, "splitting_is_pure_and_loses_nothing_but_blanks"),
    (MarksUp, "hostile_texts_arrive_and_are_sent_as_they_are"),
    (HidesTyping, "people_see_that_the_bot_writes"),
    (ShowsTypingOnly, "people_see_the_answer_while_it_is_written"),
    (NeverAgain, "the_platform_connects_again_by_itself"),
    (AcknowledgesFirst, "an_update_that_was_not_stored_is_delivered_again"),
    (LosesOrder, "messages_are_stored_in_order_and_sent_in_order"),
    (NewKeys, "a_stop_that_is_delivered_again_stops_nothing_else"),
    (OldKey, "what_was_posted_while_no_process_ran_is_answered"),
    (OnlyPosts, "an_edit_changes_the_message_and_starts_no_run"),
    (OnlyPosts, "a_command_is_carried_out_once_and_is_no_message"),
    (EditsAreNew, "an_edit_changes_the_message_and_starts_no_run"),
    (WithNews, "an_edit_changes_the_message_and_starts_no_run"),
    (CommandsAsTyped, "the_argument_of_a_command_arrives"),
    (NoArguments, "the_argument_of_a_command_arrives"),
    (NoAlbums, "the_messages_of_an_album_are_told_to_be_one"),
    (OneAlbum, "the_messages_of_an_album_are_told_to_be_one"),
    (DropsAlbumMembers, "the_messages_of_an_album_are_told_to_be_one"),
    (NoQuotes, "in_a_group_a_reply_to_the_bot_is_for_the_bot"),
    (Shortens, "a_long_message_arrives_whole"),
    (Strips, "hostile_texts_arrive_and_are_sent_as_they_are"),
    (NamesAreIds, "nobody_poses_as_somebody_else_by_their_name"),
    (TrustsNames, "nobody_poses_as_somebody_else_by_their_name"),
    (KeepsReactions, "reactions_are_those_that_somebody_shows_now"),
    (FirstReaction, "reactions_are_those_that_somebody_shows_now"),
    (AllAdministrators, "only_who_administers_a_group_clears_it"),
    (AllMembers, "only_who_administers_a_group_clears_it"),
    (AllMembers, "a_direct_chat_is_the_persons_own"),
    (without("delete"), "a_message_that_is_deleted_is_no_longer_seen"),
    (without("migrate"), "a_group_that_migrates_goes_on_with_its_history"),
    (without("leave"), "in_a_place_that_the_bot_is_removed_from_nothing_is_answered"),
    (without("stop"), "an_answer_that_somebody_stops_is_not_sent"),
]


@pytest.mark.parametrize(("platform", "promise"), BROKEN)
def test_a_broken_platform_is_caught(platform: type[Platform], promise: str, tmp_path: Path) -> None:
    with pytest.raises((AssertionError, OSError)):
        judge(platform, promise, tmp_path, timeout=0.5)


def test_previews_that_vanish_are_seen(tmp_path: Path) -> None:
    judge(Previewing, "people_see_the_answer_while_it_is_written", tmp_path)


def test_what_a_failed_test_compared_is_shown() -> None:
    """The asserts of the contract are rewritten by pytest, as those of a test are."""
    for module in ("contract_session", "incoming_contract", "outgoing_contract"):
        assert "@pytest_ar" in vars(sys.modules[f"tertulia.testing.{module}"])


def judge(platform: type[Platform], promise: str, folder: Path, *, timeout: float = ExampleWorld.timeout) -> None:
    """Run one test of the contract."""
    has_keys = bool(platform.capabilities.idempotency_window)

    class Contract(PlatformContract):
        def world(self) -> PlatformWorld:
            world = ExampleWorld(platform, keys=has_keys)
            world.timeout = timeout
            return world

    getattr(Contract(), f"test_{promise}")(folder)
