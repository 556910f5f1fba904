"""The contract fails for platforms that do not keep it."""

import json
from pathlib import Path
from typing import Any

import pytest

from keyless_chat import KeylessChat
from palaver.errors import NotSent
from palaver.platform import Change, Delivery, Inbox, Received
from palaver.testing import contract_session
from palaver.testing.platform_contract import PlatformContract, PlatformWorld
from testing.worlds import ExampleWorld


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


class NeverAgain(KeylessChat):
    """Connects once."""

    async def run(self, inbox: Inbox) -> None:
        update: dict[str, Any] = {"number": None}
        while True:
            update = json.loads(await self._ask(do="update", had=update["number"]))
            await inbox.apply(self._changes(update), key=str(update["number"]))


class OnlyPosts(KeylessChat):
    """Takes an edit for a message, and a command too."""

    def _changes(self, update: dict[str, Any]) -> list[Change]:
        (change,) = super()._changes({**update, "text": update["text"].removeprefix("/"), "kind": "post"})
        assert isinstance(change, Received)
        return [change]


BROKEN = [
    (SureOfFailure, "a_message_whose_receipt_was_lost_is_seen_once_and_listed_if_nobody_knows"),
    (NeverSure, "a_message_that_the_service_is_too_busy_for_is_sent_later"),
    (NeverAgain, "the_platform_connects_again_by_itself"),
    (OnlyPosts, "an_edit_changes_the_message_and_starts_no_run"),
    (OnlyPosts, "a_command_is_carried_out_once_and_is_no_message"),
]


@pytest.mark.parametrize(("platform", "promise"), BROKEN)
def test_a_broken_platform_is_caught(
    platform: type[KeylessChat], promise: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Contract(PlatformContract):
        def world(self) -> PlatformWorld:
            return ExampleWorld(platform, keys=False)

    monkeypatch.setattr(contract_session, "PATIENCE", 0.5)

    with pytest.raises((AssertionError, OSError)):
        getattr(Contract(), f"test_{promise}")(tmp_path)
