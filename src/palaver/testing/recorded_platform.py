"""RecordedPlatform: a platform that records deliveries, and fails on request."""

import asyncio
from collections.abc import Sequence

from palaver.messages import Author, Place, Reply
from palaver.platform import Capabilities, Change, Delivery, Inbox, PlaceRole, Platform


class RecordedPlatform(Platform):
    """`RecordedPlatform(TimeoutError(), updates=[[Received(message=…)]])`.

    Each of *errors*, and of `fail_after`, is raised by a `send` after its message is shown; each of `fail_before` by
    one whose message is not. `run` applies *updates* in order, under the keys `u0`, `u1` …, and waits.
    """

    name = "recorded"
    me = Author(id="bot", name="Gryag", username="gryag_bot")

    def __init__(
        self,
        *errors: Exception,
        capabilities: Capabilities | None = None,
        updates: Sequence[Sequence[Change]] = (),
        name: str | None = None,
        me: Author | None = None,
    ) -> None:
        self.name = name or self.name
        self.me = me or self.me
        self.capabilities = capabilities or self.capabilities
        self.updates = updates
        self.shown: dict[str, Reply] = {}  # what people see, by the id of the message
        self.deliveries: list[Delivery] = []  # all that was shown, in order
        self.previews: list[tuple[Place, str]] = []
        self.administrators: set[str] = set()  # of all groups, by their ids
        self.sent = asyncio.Event()  # at least once
        self.fail_before: list[Exception] = []
        self.fail_after = list(errors)

    @property
    def texts(self) -> list[str]:
        """The texts that people see."""
        return [reply.text for reply in self.shown.values()]

    @property
    def keys(self) -> list[str]:
        """The ids of the deliveries that were shown, repeated ones too."""
        return [delivery.id for delivery in self.deliveries]

    async def role(self, place: Place, author: Author) -> PlaceRole:
        return "administrator" if author.id in self.administrators else await super().role(place, author)

    async def run(self, inbox: Inbox) -> None:
        for number, changes in enumerate(self.updates):
            await inbox.apply(changes, key=f"u{number}")
        await asyncio.Event().wait()

    async def preview(self, place: Place, run_id: str, text: str) -> None:
        self.previews.append((place, text))

    async def send(self, delivery: Delivery) -> str:
        if self.fail_before:
            raise self.fail_before.pop(0)
        message_id = delivery.edits or self._new_id(delivery)
        self.shown[message_id] = delivery.reply
        self.deliveries.append(delivery)
        self.sent.set()
        if self.fail_after:
            raise self.fail_after.pop(0)
        return message_id

    def _new_id(self, delivery: Delivery) -> str:
        """Return the id of a new message; the same for the same delivery if the platform has an idempotency window."""
        return f"s-{delivery.id if self.capabilities.idempotency_window else len(self.deliveries)}"
